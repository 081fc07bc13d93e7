/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive-side scaling: the Toeplitz hash over addresses and ports, and the table of queues that it
 * indexes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "soft_steering.h"

#define KEY_SIZE 40
#define TUPLE_MAX 36 /* bytes: IPv6 addresses and ports */
#define TYPE_IPV4 1
#define TYPE_IPV6 2

struct soft_hash *hash_create(struct soft_device *device, uint32_t log_size)
{
	struct soft_hash *hash = calloc(1, sizeof(*hash));

	if (hash == NULL)
		return NULL;
	hash->device = device;
	hash->log_size = log_size;
	hash->queues = calloc((size_t)1 << log_size, sizeof(hash->queues[0]));
	if (hash->queues == NULL) {
		free(hash);
		return NULL;
	}
	return hash;
}

int hash_resize(struct soft_hash *hash, uint32_t log_size)
{
	struct soft_rq **queues = calloc((size_t)1 << log_size, sizeof(queues[0]));

	if (queues == NULL)
		return ENOMEM;
	free(hash->queues);
	hash->queues = queues;
	hash->log_size = log_size;
	return 0;
}

void hash_destroy(struct soft_hash *hash)
{
	free(hash->terms);
	free(hash->queues);
	free(hash);
}

/* 32 bits of the key, from that bit on; beyond its end, zeros. */
static uint32_t window(const uint8_t *key, unsigned int bit)
{
	uint64_t bits = 0;

	for (unsigned int i = 0; i < 5; i++)
		bits = bits << 8 | (bit / 8 + i < KEY_SIZE ? key[bit / 8 + i] : 0);
	return (uint32_t)(bits >> (8 - bit % 8));
}

int hash_set_key(struct soft_hash *hash, const uint8_t *key, size_t length)
{
	if (length != KEY_SIZE)
		return EINVAL;
	if (hash->terms == NULL)
		hash->terms = malloc(TUPLE_MAX * sizeof(hash->terms[0]));
	if (hash->terms == NULL)
		return ENOMEM;
	memcpy(hash->key, key, KEY_SIZE);
	for (unsigned int byte = 0; byte < TUPLE_MAX; byte++) {
		for (unsigned int value = 0; value < 256; value++) {
			uint32_t result = 0;

			for (unsigned int bit = 0; bit < 8; bit++)
				if (value & 0x80u >> bit)
					result ^= window(key, byte * 8 + bit);
			hash->terms[byte][value] = result;
		}
	}
	return 0;
}

static unsigned int tuple_of(const struct soft_hash *hash, const struct packet *packet,
			     uint8_t *tuple)
{
	bool ipv6 = packet->l3_type == L3_IPV6;
	unsigned int size = ipv6 ? 16 : 4, skip = ipv6 ? 0 : 12, length = 0;
	uint32_t ports = hash->fields & (HASH_L4_SPORT | HASH_L4_DPORT);
	unsigned int port = packet->l4_type == L4_UDP ? FIELD_UDP_SPORT : FIELD_TCP_SPORT;

	if (packet->l3_type == L3_NONE || ipv6 != hash->ipv6)
		return 0;
	if (ports != 0 && (packet->l4_type == L4_NONE || (packet->l4_type == L4_UDP) != hash->udp))
		return 0;
	if (hash->fields & HASH_SRC_IP) {
		memcpy(tuple, packet->fields + FIELD_SRC_IP + skip, size);
		length += size;
	}
	if (hash->fields & HASH_DST_IP) {
		memcpy(tuple + length, packet->fields + FIELD_DST_IP + skip, size);
		length += size;
	}
	if (hash->fields & HASH_L4_SPORT) {
		memcpy(tuple + length, packet->fields + port, 2);
		length += 2;
	}
	if (hash->fields & HASH_L4_DPORT) {
		memcpy(tuple + length, packet->fields + port + 2, 2);
		length += 2;
	}
	return length;
}

struct soft_rq *hash_choose(const struct soft_hash *hash, const struct packet *packet,
			    uint32_t *result, uint8_t *type)
{
	uint8_t tuple[TUPLE_MAX];
	unsigned int length;
	uint32_t value = 0;

	*result = 0;
	*type = 0;
	if (!hash->hashes || hash->terms == NULL)
		return hash->queues[0];
	length = tuple_of(hash, packet, tuple);
	for (unsigned int i = 0; i < length; i++)
		value ^= hash->terms[i][tuple[i]];
	if (length != 0) {
		*result = value;
		*type = packet->l3_type == L3_IPV6 ? TYPE_IPV6 : TYPE_IPV4;
	}
	return hash->queues[value & ((1u << hash->log_size) - 1)];
}
