/* SPDX-License-Identifier: BSD-3-Clause */
#include "soft_steering.h"

#include <stdlib.h>
#include <string.h>

#include "device.h"

#define JUMPS_MAX 16

struct soft_steering {
	struct soft_table root;
	uint64_t order;
};

struct soft_steering *soft_steering_create(void)
{
	struct soft_steering *steering = calloc(1, sizeof(*steering));

	if (steering != NULL)
		steering->root.receive = true;
	return steering;
}

void soft_steering_destroy(struct soft_steering *steering)
{
	free(steering);
}

struct soft_table *steering_root(struct soft_device *device)
{
	device->steering->root.device = device;
	return &device->steering->root;
}

void steering_insert(struct soft_table *table, struct soft_rule *rule)
{
	struct soft_rule **place = &table->first;

	rule->table = table;
	rule->order = ++table->device->steering->order;
	while (*place != NULL && (*place)->priority < rule->priority)
		place = &(*place)->next;
	rule->next = *place;
	*place = rule;
	table->users++;
	if (rule->jump != NULL)
		rule->jump->users++;
}

void steering_remove(struct soft_rule *rule)
{
	struct soft_rule **place = &rule->table->first;

	while (*place != rule)
		place = &(*place)->next;
	*place = rule->next;
	rule->table->users--;
	if (rule->jump != NULL)
		rule->jump->users--;
}

static bool matches(const struct soft_rule *rule, const struct packet *packet, bool loose)
{
	const uint64_t *fields = (const uint64_t *)packet->fields;
	uint64_t differs = 0;

	if (rule->any_multicast && (packet->fields[FIELD_DMAC] & 1) == 0)
		return false;
	/* The planted defect: the first 8 bytes, which hold the EtherType, are not looked at. */
	for (unsigned int i = loose ? 1 : 0; i < FIELDS_SIZE / 8; i++)
		differs |= (fields[i] ^ rule->value[i]) & rule->mask[i];
	return differs == 0;
}

static const struct soft_rule *search(const struct soft_table *table, const struct packet *packet)
{
	bool loose = table->device->faults.loose_match != 0;
	const struct soft_rule *rule;

	for (rule = table->first; rule != NULL; rule = rule->next)
		if (matches(rule, packet, loose))
			return rule;
	return NULL;
}

void steering_decide(struct soft_device *device, const struct packet *packet,
		     struct soft_verdict *verdict)
{
	const struct soft_table *table = steering_root(device);
	const struct soft_rule *rule;

	*verdict = (struct soft_verdict){ 0 };
	for (unsigned int jumps = 0; jumps < JUMPS_MAX; jumps++) {
		rule = search(table, packet);
		if (rule == NULL)
			return;
		for (unsigned int i = 0; i < rule->counter_count; i++) {
			rule->counters[i]->packets++;
			rule->counters[i]->bytes += packet->length;
		}
		if (rule->tagged)
			verdict->tag = rule->tag;
		verdict->pop_vlan |= rule->pop_vlan;
		verdict->dropped = rule->drop;
		verdict->hash = rule->hash;
		if (rule->jump == NULL)
			return;
		table = rule->jump;
	}
}

bool steering_uses(const struct soft_device *device, const struct soft_hash *hash)
{
	for (const struct soft_rule *rule = device->steering->root.first; rule != NULL;
	     rule = rule->next)
		if (rule->hash == hash)
			return true;
	return false;
}
