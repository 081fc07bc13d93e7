/* SPDX-License-Identifier: BSD-3-Clause */
/* Steering: each frame to where the rules say, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ip.h>
#include <rte_thash.h>
#include <rte_udp.h>

#include "nic.h"
#include "rig.h"

#define QUEUES 4
#define SIZE 128

/* What a frame carries; 0 or NULL: not at all. */
struct shape {
	uint8_t dst[6];
	uint16_t vlan;
	uint16_t type; /* EtherType, of a frame without IP */
	uint32_t src4, dst4;
	uint8_t src6; /* last byte of the addresses */
	uint16_t src_port, dst_port;
};

static const struct rte_flow_attr ingress = { .ingress = 1 };
static const struct rte_flow_item_eth any_eth;

/* Of an IPv6 address, which DPDK's releases have as an array or in a struct. */
static void last_byte(void *address, uint8_t byte)
{
	((uint8_t *)address)[15] = byte;
}

static struct rte_mbuf *frame(struct rig *rig, const struct shape *shape)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(rig->pool);
	uint8_t *data, *at;
	uint16_t type = shape->src4   ? RTE_ETHER_TYPE_IPV4
			: shape->src6 ? RTE_ETHER_TYPE_IPV6
				      : shape->type;
	struct rte_udp_hdr udp = { .src_port = rte_cpu_to_be_16(shape->src_port),
				   .dst_port = rte_cpu_to_be_16(shape->dst_port),
				   .dgram_len = RTE_BE16(16) };

	assert_non_null(mbuf);
	data = at = rig_host(&rig->memory, rte_pktmbuf_append(mbuf, SIZE));
	memset(data, 0, SIZE);
	memcpy(at, shape->dst, 6);
	memcpy(at + 6, "\x02\x00\x00\x00\x00\x09", 6);
	at += 12;
	if (shape->vlan != 0) {
		memcpy(at,
		       (uint8_t[]){ 0x81, 0, (uint8_t)(shape->vlan >> 8), (uint8_t)shape->vlan },
		       4);
		at += 4;
	}
	*at++ = (uint8_t)(type >> 8);
	*at++ = (uint8_t)type;
	if (shape->src4) {
		struct rte_ipv4_hdr ip = { .version_ihl = 0x45,
					   .total_length = RTE_BE16(36),
					   .time_to_live = 9,
					   .next_proto_id = 17,
					   .src_addr = rte_cpu_to_be_32(shape->src4),
					   .dst_addr = rte_cpu_to_be_32(shape->dst4) };

		ip.hdr_checksum = rte_ipv4_cksum(&ip);
		memcpy(at, &ip, sizeof(ip));
		memcpy(at + sizeof(ip), &udp, sizeof(udp));
	} else if (shape->src6) {
		struct rte_ipv6_hdr ip = { .vtc_flow = RTE_BE32(0x60000000),
					   .payload_len = RTE_BE16(16),
					   .proto = 17,
					   .hop_limits = 9 };

		last_byte(&ip.src_addr, shape->src6);
		last_byte(&ip.dst_addr, (uint8_t)(shape->src6 + 1));
		memcpy(at, &ip, sizeof(ip));
		memcpy(at + sizeof(ip), &udp, sizeof(udp));
	}
	return mbuf;
}

static uint64_t arrived_before;

static void send_one(struct rig *rig, const struct shape *shape)
{
	struct rte_mbuf *mbuf = frame(rig, shape);

	arrived_before = soft_devices[1].count.rx_packets_phy;
	assert_int_equal(rte_eth_tx_burst(0, 0, &mbuf, 1), 1);
}

/* The queue that the frame came to, with its mbuf; -1: none of them. */
static int arrival(struct rig *rig, struct rte_mbuf **mbuf)
{
	struct rte_mbuf *back[4];

	nic_settle();
	assert_true(soft_devices[1].count.rx_packets_phy > arrived_before);
	for (uint16_t queue = 0; queue < rig->port[1].rx_queues; queue++) {
		if (rte_eth_rx_burst(1, queue, back, 4) == 0)
			continue;
		if (mbuf != NULL)
			*mbuf = back[0];
		else
			rte_pktmbuf_free(back[0]);
		return queue;
	}
	return -1;
}

static int goes_to(struct rig *rig, const struct shape *shape)
{
	send_one(rig, shape);
	return arrival(rig, NULL);
}

static struct rte_flow *add(const struct rte_flow_item *items,
			    const struct rte_flow_action *actions, uint32_t priority)
{
	struct rte_flow_attr attr = ingress;
	struct rte_flow_error error = { 0 };
	struct rte_flow *flow;

	attr.priority = priority;
	flow = rte_flow_create(1, &attr, items, actions, &error);
	if (flow == NULL)
		fail_msg("rule refused: %s", error.message);
	return flow;
}

static struct rte_flow *to_queue(const struct rte_flow_item *items, uint16_t queue,
				 uint32_t priority)
{
	struct rte_flow_action_queue to = { .index = queue };
	struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};

	return add(items, actions, priority);
}

static void start(struct rig *rig)
{
	rig->port[1].rx_queues = QUEUES;
	rig->port[1].rss = 0;
	rig_ports_start(rig);
}

static void by_ether_type(void **state)
{
	struct rig *rig = *state;
	uint64_t before = soft_devices[1].count.to_kernel;
	struct rte_flow_error error;
	struct rte_flow *flow;

	start(rig);
	flow = rig_rule(1, 0x88b5, 2, 0, &error);
	assert_non_null(flow);
	assert_non_null(rig_rule(1, 0x88b6, 3, 0, &error));
	assert_int_equal(goes_to(rig, &(struct shape){ .type = 0x88b5 }), 2);
	assert_int_equal(goes_to(rig, &(struct shape){ .type = 0x88b6 }), 3);
	assert_int_equal(goes_to(rig, &(struct shape){ .type = 0x88b7 }), -1);
	assert_int_equal(soft_devices[1].count.to_kernel - before, 1);
	assert_int_equal(rte_flow_destroy(1, flow, &error), 0);
	assert_int_equal(goes_to(rig, &(struct shape){ .type = 0x88b5 }), -1);
	assert_int_equal(soft_devices[1].count.to_kernel - before, 2);
}

static void by_mac_and_vlan(void **state)
{
	struct rte_flow_item_eth mac = { .dst.addr_bytes = { 2, 0, 0, 0, 0, 7 } };
	struct rte_flow_item_eth mac_mask = { .dst.addr_bytes = { 255, 255, 255, 255, 255, 255 } };
	struct rte_flow_item_vlan vlan = { .tci = RTE_BE16(100) };
	struct rte_flow_item_vlan vlan_mask = { .tci = RTE_BE16(0xfff) };
	struct rte_flow_item macs[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH, .spec = &mac, .mask = &mac_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_item vlans[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH, .spec = &any_eth, .mask = &any_eth },
		{ .type = RTE_FLOW_ITEM_TYPE_VLAN, .spec = &vlan, .mask = &vlan_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rig *rig = *state;

	start(rig);
	to_queue(macs, 1, 0);
	to_queue(vlans, 2, 1);
	assert_int_equal(
		goes_to(rig, &(struct shape){ .dst = { 2, 0, 0, 0, 0, 7 }, .type = 0x88b5 }), 1);
	assert_int_equal(
		goes_to(rig, &(struct shape){ .dst = { 2, 0, 0, 0, 0, 8 }, .type = 0x88b5 }), -1);
	assert_int_equal(goes_to(rig, &(struct shape){ .vlan = 100, .type = 0x88b5 }), 2);
	assert_int_equal(goes_to(rig, &(struct shape){ .vlan = 0x8000 | 100, .type = 0x88b5 }), 2);
	assert_int_equal(goes_to(rig, &(struct shape){ .vlan = 101, .type = 0x88b5 }), -1);
}

static void by_address_and_port(void **state)
{
	struct rte_flow_item_ipv4 ipv4 = { .hdr.dst_addr = RTE_BE32(0x0a000100) };
	struct rte_flow_item_ipv4 ipv4_mask = { .hdr.dst_addr = RTE_BE32(0xffffff00) };
	struct rte_flow_item_ipv6 ipv6 = { 0 };
	struct rte_flow_item_ipv6 ipv6_mask = { 0 };
	struct rte_flow_item_udp udp = { .hdr.dst_port = RTE_BE16(4791) };
	struct rte_flow_item_udp udp_mask = { .hdr.dst_port = RTE_BE16(0xffff) };
	struct rte_flow_item net[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &ipv4, .mask = &ipv4_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_item port[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_IPV4 },
		{ .type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_item six[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_IPV6, .spec = &ipv6, .mask = &ipv6_mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct shape shape = {
		.src4 = 0x0a000001, .dst4 = 0x0a000102, .src_port = 1, .dst_port = 2
	};
	struct rig *rig = *state;

	last_byte(&ipv6.hdr.src_addr, 5);
	memset(&ipv6_mask.hdr.src_addr, 0xff, sizeof(ipv6_mask.hdr.src_addr));
	start(rig);
	to_queue(port, 3, 0);
	to_queue(net, 1, 1);
	to_queue(six, 2, 1);
	assert_int_equal(goes_to(rig, &shape), 1);
	shape.dst_port = 4791; /* both match: the earlier priority decides */
	assert_int_equal(goes_to(rig, &shape), 3);
	shape.dst4 = 0x0b000001;
	assert_int_equal(goes_to(rig, &shape), 3);
	shape.dst_port = 4792;
	assert_int_equal(goes_to(rig, &shape), -1);
	assert_int_equal(goes_to(rig, &(struct shape){ .src6 = 5 }), 2);
	assert_int_equal(goes_to(rig, &(struct shape){ .src6 = 6 }), -1);
}

static void drop_mark_and_count(void **state)
{
	struct rte_flow_action_queue to = { .index = 1 };
	struct rte_flow_action_mark mark = { .id = 0xabcde };
	struct rte_flow_item_eth type = { .type = RTE_BE16(0x88b5) },
				 other = { .type = RTE_BE16(0x88b6) };
	struct rte_flow_item_eth mask = { .type = RTE_BE16(0xffff) };
	struct rte_flow_item items[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH, .spec = &type, .mask = &mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_item dropped[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH, .spec = &other, .mask = &mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &mark },
		{ .type = RTE_FLOW_ACTION_TYPE_COUNT },
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_action drop[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_DROP },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_action asked[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_COUNT },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_query_count hits = { 0 };
	struct rte_flow_error error = { 0 };
	uint64_t before = soft_devices[1].count.dropped_by_rule;
	struct rig *rig = *state;
	struct rte_mbuf *mbuf = NULL;
	struct rte_flow *flow;

	start(rig);
	flow = rte_flow_create(1, &ingress, items, actions, &error);
	if (flow == NULL) {
		/* The engine of dv_flow_en=1 counts only with DevX. */
		assert_string_equal(getenv("SOFTMLX5_DEVX"), "0");
		actions[1].type = RTE_FLOW_ACTION_TYPE_VOID;
		flow = add(items, actions, 0);
	}
	add(dropped, drop, 0);
	for (unsigned int i = 0; i < 5; i++) {
		send_one(rig, &(struct shape){ .type = 0x88b5 });
		assert_int_equal(arrival(rig, &mbuf), 1);
		assert_true(mbuf->ol_flags & RTE_MBUF_F_RX_FDIR_ID);
		assert_int_equal(mbuf->hash.fdir.hi, 0xabcde);
		rte_pktmbuf_free(mbuf);
	}
	assert_int_equal(goes_to(rig, &(struct shape){ .type = 0x88b6 }), -1);
	assert_int_equal(soft_devices[1].count.dropped_by_rule - before, 1);
	if (actions[1].type == RTE_FLOW_ACTION_TYPE_VOID)
		return;
	assert_int_equal(rte_flow_query(1, flow, asked, &hits, &error), 0);
	assert_true(hits.hits_set);
	assert_int_equal(hits.hits, 5);
	assert_int_equal(hits.bytes, 5 * SIZE);
}

/* Over four queues, the queue and the reported hash are those that DPDK's own function computes. */
static void rss_equals_softrss(void **state)
{
	static uint8_t key[40];
	uint16_t queues[QUEUES] = { 0, 1, 2, 3 };
	struct rte_flow_action_rss rss = { .types = RTE_ETH_RSS_NONFRAG_IPV4_UDP,
					   .key_len = sizeof(key),
					   .queue_num = QUEUES,
					   .key = key,
					   .queue = queues };
	struct rte_flow_item items[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_IPV4 },
		{ .type = RTE_FLOW_ITEM_TYPE_UDP },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &rss },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	unsigned int reached[QUEUES] = { 0 };
	struct rig *rig = *state;
	struct rte_mbuf *mbuf = NULL;

	for (unsigned int i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 29 + 7);
	rig->port[1].rx_offloads = RTE_ETH_RX_OFFLOAD_RSS_HASH;
	rig->port[1].rx_queues = QUEUES;
	rig->port[1].rss = RTE_ETH_RSS_NONFRAG_IPV4_UDP;
	rig_ports_start(rig);
	add(items, actions, 0);
	for (uint32_t i = 0; i < 64; i++) {
		struct shape shape = { .src4 = 0x0a000001 + i * 77,
				       .dst4 = 0xc0a80001 + i,
				       .src_port = (uint16_t)(1000 + i),
				       .dst_port = (uint16_t)(5000 - i) };
		uint32_t tuple[3] = { shape.src4, shape.dst4,
				      (uint32_t)shape.src_port << 16 | shape.dst_port };
		uint32_t hash = rte_softrss(tuple, 3, key);
		int queue;

		send_one(rig, &shape);
		queue = arrival(rig, &mbuf);
		assert_int_equal(queue, hash % QUEUES);
		assert_int_equal(mbuf->hash.rss, hash);
		rte_pktmbuf_free(mbuf);
		reached[queue]++;
	}
	for (unsigned int i = 0; i < QUEUES; i++)
		assert_int_not_equal(reached[i], 0);
}

/* Not isolated: the port's own rules take what is for its address, and broadcast. */
static void default_rules_take_ones_own(void **state)
{
	struct rig *rig = *state;

	rig->port[1].isolated = false;
	rig_ports_start(rig);
	assert_int_equal(
		goes_to(rig, &(struct shape){ .dst = { 2, 0x15, 0xb3, 0, 0, 1 }, .type = 0x88b5 }),
		0);
	assert_int_equal(goes_to(rig, &(struct shape){ .dst = { 255, 255, 255, 255, 255, 255 },
						       .type = 0x88b5 }),
			 0);
	assert_int_equal(
		goes_to(rig, &(struct shape){ .dst = { 2, 9, 9, 9, 9, 9 }, .type = 0x88b5 }), -1);
}

/* What the model cannot match, it refuses. */
static void unknown_headers_are_refused(void **state)
{
	struct rte_flow_item_vxlan vxlan = { .vni = { 1, 2, 3 } },
				   mask = { .vni = { 255, 255, 255 } };
	struct rte_flow_item items[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_IPV4 },
		{ .type = RTE_FLOW_ITEM_TYPE_UDP },
		{ .type = RTE_FLOW_ITEM_TYPE_VXLAN, .spec = &vxlan, .mask = &mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE,
		  .conf = &(struct rte_flow_action_queue){ 0 } },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_error error = { 0 };
	struct rig *rig = *state;

	start(rig);
	assert_null(rte_flow_create(1, &ingress, items, actions, &error));
	assert_non_null(error.message);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(by_ether_type, rig_reset),
		cmocka_unit_test_teardown(by_mac_and_vlan, rig_reset),
		cmocka_unit_test_teardown(by_address_and_port, rig_reset),
		cmocka_unit_test_teardown(drop_mark_and_count, rig_reset),
		cmocka_unit_test_teardown(rss_equals_softrss, rig_reset),
		cmocka_unit_test_teardown(default_rules_take_ones_own, rig_reset),
		cmocka_unit_test_teardown(unknown_headers_are_refused, rig_reset),
	};
	int failed;

	rig_start(argc, argv);
	failed = cmocka_run_group_tests(tests, rig_setup, rig_teardown);
	rig_stop();
	return failed;
}
