/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steering of received frames: tables of rules in order of priority, as both flow engines of the
 * driver program them.
 */
#ifndef SOFT_STEERING_H
#define SOFT_STEERING_H

#include "packet.h"
#include "soft.h"

#define RULE_COUNTERS_MAX 4
#define PRIORITIES 16 /* of the root table, as on a ConnectX with DevX */

struct soft_counter {
	struct ibv_counters ibv;
	uint32_t number; /* of DevX */
	uint64_t packets;
	uint64_t bytes;
};

struct soft_rule {
	struct soft_rule *next;
	struct soft_table *table;
	uint32_t priority;  /* lower: earlier */
	uint64_t order;	    /* among rules of one priority: later ones come first */
	bool any_multicast; /* Verbs: "all multicast" as the only condition */
	uint64_t mask[FIELDS_SIZE / 8];
	uint64_t value[FIELDS_SIZE / 8];
	/* What to do. */
	struct soft_hash *hash;
	struct soft_table *jump;
	bool drop;
	bool miss; /* to the kernel */
	bool pop_vlan;
	bool tagged;
	uint32_t tag;
	struct soft_counter *counters[RULE_COUNTERS_MAX];
	unsigned int counter_count;
};

struct soft_table {
	struct soft_device *device;
	uint32_t level;
	bool receive; /* tables of the transmit side are kept, and never searched */
	struct soft_rule *first;
	unsigned int users;
};

/* What becomes of a frame. */
struct soft_verdict {
	struct soft_hash *hash; /* NULL: not for a queue of the driver */
	bool dropped;
	bool pop_vlan;
	uint32_t tag;
};

struct soft_table *steering_root(struct soft_device *device);
void steering_insert(struct soft_table *table, struct soft_rule *rule);
void steering_remove(struct soft_rule *rule);
void steering_decide(struct soft_device *device, const struct packet *packet,
		     struct soft_verdict *verdict);

/* Rules must not lead into an object that goes away: EBUSY where one does. */
bool steering_uses(const struct soft_device *device, const struct soft_hash *hash);

/* hash.c */
struct soft_hash *hash_create(struct soft_device *device, uint32_t log_size);
/* All queues become NULL. 0 or a positive errno. */
int hash_resize(struct soft_hash *hash, uint32_t log_size);
void hash_destroy(struct soft_hash *hash);
/* Hashes the packet by key and fields; *result is 0 where the frame has not the fields. */
struct soft_rq *hash_choose(const struct soft_hash *hash, const struct packet *packet,
			    uint32_t *result, uint8_t *type);
int hash_set_key(struct soft_hash *hash, const uint8_t *key, size_t length);

enum soft_hash_field {
	HASH_SRC_IP = 1 << 0,
	HASH_DST_IP = 1 << 1,
	HASH_L4_SPORT = 1 << 2,
	HASH_L4_DPORT = 1 << 3,
};

#endif
