/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules and counters by Verbs: the flow engine of dv_flow_en=0. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "nic.h"
#include "soft_steering.h"

/* What every part of a rule starts with. */
struct spec_header {
	enum ibv_flow_spec_type type;
	uint16_t size;
};

struct verbs_flow {
	struct ibv_flow ibv;
	struct soft_rule rule;
};

/* Sets bytes of the rule's mask and value. */
static void want(struct soft_rule *rule, unsigned int at, const void *value, const void *mask,
		 size_t length)
{
	uint8_t *to_value = (uint8_t *)rule->value + at, *to_mask = (uint8_t *)rule->mask + at;

	for (size_t i = 0; i < length; i++) {
		to_mask[i] |= ((const uint8_t *)mask)[i];
		to_value[i] |= ((const uint8_t *)value)[i] & ((const uint8_t *)mask)[i];
	}
}

static void want_byte(struct soft_rule *rule, unsigned int at, uint8_t value, uint8_t mask)
{
	want(rule, at, &value, &mask, 1);
}

static void want_version(struct soft_rule *rule, unsigned int version)
{
	want_byte(rule, FIELD_FLAGS, (uint8_t)(version << FLAGS_IP_VERSION_SHIFT),
		  0xf << FLAGS_IP_VERSION_SHIFT);
}

static void want_ethernet(struct soft_rule *rule, const struct ibv_flow_spec_eth *spec)
{
	const struct ibv_flow_eth_filter *val = &spec->val, *mask = &spec->mask;

	want(rule, FIELD_DMAC, val->dst_mac, mask->dst_mac, 6);
	want(rule, FIELD_SMAC, val->src_mac, mask->src_mac, 6);
	want(rule, FIELD_ETHERTYPE, &val->ether_type, &mask->ether_type, 2);
	if (mask->vlan_tag != 0) {
		want(rule, FIELD_TCI, &val->vlan_tag, &mask->vlan_tag, 2);
		want_byte(rule, FIELD_FLAGS, FLAGS_CVLAN, FLAGS_CVLAN);
	}
}

static void want_ipv4(struct soft_rule *rule, const struct ibv_flow_spec_ipv4_ext *spec)
{
	const struct ibv_flow_ipv4_ext_filter *val = &spec->val, *mask = &spec->mask;

	want_version(rule, 4);
	want(rule, FIELD_SRC_IP + 12, &val->src_ip, &mask->src_ip, 4);
	want(rule, FIELD_DST_IP + 12, &val->dst_ip, &mask->dst_ip, 4);
	want_byte(rule, FIELD_IP_PROTOCOL, val->proto, mask->proto);
	want_byte(rule, FIELD_TOS, val->tos, mask->tos);
	want_byte(rule, FIELD_TTL, val->ttl, mask->ttl);
}

static void want_ipv6(struct soft_rule *rule, const struct ibv_flow_spec_ipv6 *spec)
{
	const struct ibv_flow_ipv6_filter *val = &spec->val, *mask = &spec->mask;

	want_version(rule, 6);
	want(rule, FIELD_SRC_IP, val->src_ip, mask->src_ip, 16);
	want(rule, FIELD_DST_IP, val->dst_ip, mask->dst_ip, 16);
	want_byte(rule, FIELD_IP_PROTOCOL, val->next_hdr, mask->next_hdr);
	want_byte(rule, FIELD_TOS, val->traffic_class, mask->traffic_class);
	want_byte(rule, FIELD_TTL, val->hop_limit, mask->hop_limit);
}

static void want_ports(struct soft_rule *rule, const struct ibv_flow_spec_tcp_udp *spec,
		       unsigned int at, uint8_t protocol)
{
	want_byte(rule, FIELD_IP_PROTOCOL, protocol, 0xff);
	want(rule, at, &spec->val.src_port, &spec->mask.src_port, 2);
	want(rule, at + 2, &spec->val.dst_port, &spec->mask.dst_port, 2);
}

/* Parts of a rule follow each other without regard to alignment. */
static int add_counter(struct soft_rule *rule, const void *spec)
{
	struct ibv_counters *counters;

	if (rule->counter_count == RULE_COUNTERS_MAX)
		return EINVAL;
	memcpy(&counters,
	       (const uint8_t *)spec + offsetof(struct ibv_flow_spec_counter_action, counters),
	       sizeof(counters));
	rule->counters[rule->counter_count++] = container(counters, struct soft_counter, ibv);
	return 0;
}

static int add_spec(struct soft_rule *rule, const struct spec_header *header)
{
	switch (header->type) {
	case IBV_FLOW_SPEC_ETH:
		want_ethernet(rule, (const void *)header);
		return 0;
	case IBV_FLOW_SPEC_IPV4_EXT:
		want_ipv4(rule, (const void *)header);
		return 0;
	case IBV_FLOW_SPEC_IPV6:
		want_ipv6(rule, (const void *)header);
		return 0;
	case IBV_FLOW_SPEC_TCP:
		want_ports(rule, (const void *)header, FIELD_TCP_SPORT, 6);
		return 0;
	case IBV_FLOW_SPEC_UDP:
		want_ports(rule, (const void *)header, FIELD_UDP_SPORT, 17);
		return 0;
	case IBV_FLOW_SPEC_ACTION_TAG:
		rule->tagged = true;
		rule->tag = ((const struct ibv_flow_spec_action_tag *)header)->tag_id;
		return 0;
	case IBV_FLOW_SPEC_ACTION_DROP:
		rule->drop = true;
		return 0;
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return add_counter(rule, header);
	default:
		return EOPNOTSUPP;
	}
}

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct soft_sq *sq = container(qp, struct soft_sq, ibv);
	const uint8_t *place = (const uint8_t *)(attr + 1);
	struct verbs_flow *flow;
	int error = 0;

	flow = calloc(1, sizeof(*flow));
	if (flow == NULL)
		return NULL;
	if (attr->port != 1 || attr->priority >= PRIORITIES || sq->hash == NULL)
		error = EINVAL;
	for (unsigned int i = 0; error == 0 && i < attr->num_of_specs; i++) {
		const struct spec_header *header = (const void *)place;

		if (header->size < sizeof(*header))
			error = EINVAL;
		else
			error = add_spec(&flow->rule, header);
		place += header->size;
	}
	if (attr->type == IBV_FLOW_ATTR_MC_DEFAULT)
		flow->rule.any_multicast = true;
	else if (attr->type != IBV_FLOW_ATTR_NORMAL && attr->type != IBV_FLOW_ATTR_ALL_DEFAULT)
		error = EOPNOTSUPP;
	else if (error == 0 && !flow->rule.drop && soft_fault(&sq->device->faults.refuse_rule))
		error = ENOSPC;
	if (error != 0) {
		free(flow);
		errno = error;
		return NULL;
	}
	flow->ibv.context = qp->context;
	flow->rule.priority = attr->priority;
	flow->rule.hash = flow->rule.drop ? NULL : sq->hash;
	nic_lock();
	steering_insert(steering_root(sq->device), &flow->rule);
	nic_unlock();
	return &flow->ibv;
}

static int destroy_flow(struct ibv_flow *ibv)
{
	struct verbs_flow *flow = container(ibv, struct verbs_flow, ibv);

	nic_lock();
	steering_remove(&flow->rule);
	nic_unlock();
	free(flow);
	return 0;
}

static struct ibv_counters *create_counters(struct ibv_context *context,
					    struct ibv_counters_init_attr *attr)
{
	struct soft_counter *counter = calloc(1, sizeof(*counter));

	if (counter == NULL)
		return NULL;
	counter->ibv.context = context;
	return &counter->ibv;
}

static int destroy_counters(struct ibv_counters *counters)
{
	free(container(counters, struct soft_counter, ibv));
	return 0;
}

/* The driver attaches packets to index 0 and bytes to index 1. */
static int attach_counters(struct ibv_counters *counters, struct ibv_counter_attach_attr *attr,
			   struct ibv_flow *flow)
{
	if (attr->counter_desc == IBV_COUNTER_PACKETS && attr->index == 0)
		return 0;
	return attr->counter_desc == IBV_COUNTER_BYTES && attr->index == 1 ? 0 : EOPNOTSUPP;
}

static int read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count,
			 uint32_t flags)
{
	struct soft_counter *counter = container(counters, struct soft_counter, ibv);

	nic_lock();
	if (count > 0)
		values[0] = counter->packets;
	if (count > 1)
		values[1] = counter->bytes;
	nic_unlock();
	return 0;
}

void verbs_flow_fill(struct verbs_context *verbs)
{
	verbs->ibv_create_flow = create_flow;
	verbs->ibv_destroy_flow = destroy_flow;
	verbs->create_counters = create_counters;
	verbs->destroy_counters = destroy_counters;
	verbs->attach_counters_point_flow = attach_counters;
	verbs->read_counters = read_counters;
}
