/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of DPDK's af_packet driver, made large enough for the frames. */
#include "port/af_packet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include "base/log.h"
#include "port/devargs.h"
#include "port/driver_table.h"

#define SLOT_STEP 512u	 /* so that few pages hold whole slots */
#define SLOT_LEAST 2048u /* an Ethernet frame of the usual MTU, and the driver's own choice */
#define SLOT_ALIGN 16u	 /* TPACKET_ALIGNMENT */
#define SLOT_MOST 65536u
#define FRAMES 512u /* the driver's choice */
#define FCS 4u

/* Of a slot the driver takes so much for a header, sent frames begin there; ... */
#define SENT_AT 32u
/* ... received ones begin at 66, as their network header is aligned; at 80, should the kernel not
 * know where that is, as of a frame that another program sends. */
#define RECEIVED_AT 80u

static const char *const known[] = { "iface",	"qdisc_bypass", "qpairs",
				     "blocksz", "framesz",	"framecnt" };
#define KNOWN_NUMBERS 2u /* from there on: counts and sizes */

bool port_name_is_af_packet(const char *name)
{
	return strcmp(driver_facts_find(name)->prefix, "net_af_packet") == 0;
}

/* That the driver takes, the last. 0: not given, or no number. */
static uint32_t number_of(const char *args, const char *key)
{
	char value[16] = "";
	unsigned long number;
	unsigned int n = 0;
	char *end;

	while (devargs_value(args, key, n, value, sizeof(value)) >= 0)
		n++;
	if (value[0] < '0' || value[0] > '9')
		return 0;
	number = strtoul(value, &end, 10);
	return *end == '\0' && number <= INT32_MAX ? (uint32_t)number : 0;
}

void af_packet_ring(struct af_packet_ring *ring, const char *args)
{
	const uint32_t slot = number_of(args, "framesz"), frames = number_of(args, "framecnt"),
		       queues = number_of(args, "qpairs");

	*ring = (struct af_packet_ring){
		.slot_bytes = slot ? slot : SLOT_LEAST,
		.frames = frames ? frames : FRAMES,
		.queues = queues ? queues : 1,
	};
}

uint32_t af_packet_room(const struct af_packet_ring *ring)
{
	return ring->slot_bytes > SENT_AT ? ring->slot_bytes - SENT_AT : 0;
}

uint32_t af_packet_cut(const struct af_packet_ring *ring)
{
	return ring->slot_bytes > RECEIVED_AT ? ring->slot_bytes - RECEIVED_AT : 0;
}

int af_packet_flush(int socket, bool *moved)
{
	ssize_t ret;

	do {
		ret = sendto(socket, NULL, 0, MSG_DONTWAIT, NULL, 0);
		*moved |= ret > 0;
	} while (ret > 0 || (ret < 0 && errno == EINTR));
	return ret < 0 ? -errno : 0;
}

/* A slot for frames of so many bytes with FCS: one byte more than they have in memory. */
static uint32_t slot_for(uint16_t frame_bytes_max)
{
	const uint32_t least = (uint32_t)RTE_MAX(frame_bytes_max, FCS) - FCS + 1 + RECEIVED_AT;

	return RTE_MAX(SLOT_LEAST, RTE_ALIGN_CEIL(least, SLOT_STEP));
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
	while (b) {
		const uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The driver would say nothing of a name that it does not know but that it does not start. */
static int names_check(const char *port, const char *args, struct gdrcap_error *error)
{
	for (const char *at = args; at && *at; at = strchr(at, ',')) {
		size_t bytes, i;

		at += *at == ',';
		bytes = strcspn(at, "=,");
		for (i = 0; i < RTE_DIM(known); i++)
			if (strlen(known[i]) == bytes && strncmp(at, known[i], bytes) == 0)
				break;
		if (i == RTE_DIM(known))
			return error_set(
				error, -EINVAL,
				"port %s: its driver has no argument \"%.*s\"; it has "
				"iface, qpairs, blocksz, framesz, framecnt and qdisc_bypass",
				port, (int)bytes, at);
		if (i >= KNOWN_NUMBERS && number_of(at, known[i]) == 0)
			return error_set(error, -EINVAL, "port %s: %s= takes a number from 1", port,
					 known[i]);
	}
	return 0;
}

/* The driver takes the ring for one row of slots, so that no block may end within one, and the
 * kernel takes whole blocks only. */
static int blocks_check(const char *port, const struct af_packet_ring *ring, uint32_t block,
			struct gdrcap_error *error)
{
	const uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE), slot = ring->slot_bytes;

	if (block % page || block % slot)
		return error_set(
			error, -EINVAL,
			"port %s: blocksz=%u must be a multiple of the page of %u bytes and "
			"of framesz=%u; leave blocksz out",
			port, block, page, slot);
	if (ring->frames % (block / slot))
		return error_set(error, -EINVAL,
				 "port %s: framecnt=%u must be a multiple of the %u frames that a "
				 "block of %u bytes holds; give %u",
				 port, ring->frames, block / slot, block,
				 (uint32_t)RTE_ALIGN_MUL_CEIL(ring->frames, block / slot));
	/* The driver counts the bytes of both directions in 32 bits. */
	if ((uint64_t)slot * ring->frames > UINT32_MAX / 2)
		return error_set(error, -EINVAL,
				 "port %s: framecnt=%u frames of %u bytes are more than the 2 GiB "
				 "that its driver can address; give fewer",
				 port, ring->frames, slot);
	return 0;
}

int af_packet_devargs(const char *port, uint16_t frame_bytes_max, char *out, size_t bytes,
		      struct gdrcap_error *error)
{
	const uint32_t needed = slot_for(frame_bytes_max), page = (uint32_t)sysconf(_SC_PAGESIZE);
	const char *args = devargs_of(port);
	const uint32_t given = number_of(args, "framesz");
	uint32_t block;
	struct af_packet_ring ring;
	int used, ret = names_check(port, args, error);

	if (ret < 0)
		return ret;
	af_packet_ring(&ring, args);
	if (!given)
		ring.slot_bytes = needed;
	if (af_packet_cut(&ring) + FCS <= frame_bytes_max)
		return error_set(
			error, -EMSGSIZE,
			"port %s: framesz=%u holds frames of up to %u bytes, and frame.size, "
			"or the file, has %u; leave framesz out, or give %u",
			port, ring.slot_bytes,
			af_packet_cut(&ring) ? af_packet_cut(&ring) + FCS - 1 : 0, frame_bytes_max,
			needed);
	if (ring.slot_bytes % SLOT_ALIGN || ring.slot_bytes > SLOT_MOST)
		return error_set(
			error, -EINVAL,
			"port %s: framesz=%u is not a multiple of %u up to %u, as the kernel "
			"and the driver ask for; leave framesz out, or give %u",
			port, ring.slot_bytes, SLOT_ALIGN, SLOT_MOST, needed);
	block = number_of(args, "blocksz");
	if (!block)
		block = ring.slot_bytes / common_divisor(ring.slot_bytes, page) * page;
	ret = blocks_check(port, &ring, block, error);
	if (ret < 0)
		return ret;
	used = snprintf(out, bytes, "%s", port);
	if (!given && used >= 0 && (size_t)used < bytes)
		used += snprintf(out + used, bytes - (size_t)used, ",framesz=%u", ring.slot_bytes);
	if (!number_of(args, "blocksz") && used >= 0 && (size_t)used < bytes)
		used += snprintf(out + used, bytes - (size_t)used, ",blocksz=%u", block);
	return used >= 0 && (size_t)used < bytes
		       ? 0
		       : error_set(error, -ENAMETOOLONG, "port %s: its arguments are too long",
				   port);
}
