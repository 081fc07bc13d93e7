/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames through the driver and two software cards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "nic.h"
#include "rig.h"

#define MARK 0x1234
#define IPV4_UDP_SIZE 100

static void rule(uint16_t port, uint16_t ether_type, uint16_t queue, uint32_t mark)
{
	struct rte_flow_error error = { 0 };

	if (rig_rule(port, ether_type, queue, mark, &error) == NULL)
		fail_msg("rule refused: %s", error.message);
}

static void whole(const struct rig_run *run)
{
	assert_int_equal(run->sent, run->count);
	assert_int_equal(run->received, run->count);
	assert_int_equal(run->damaged, 0);
	assert_int_equal(run->disordered, 0);
}

/* So many that every 16-bit index of the rings wraps. */
static void all_sizes_arrive_in_order(void **state)
{
	struct rig *rig = *state;
	struct rig_run run = { .count = 150000, .shortest = 60, .longest = 1514 };
	struct rte_eth_stats stats[2];

	rig_ports_start(rig);
	rule(1, RIG_ETHERTYPE, 0, MARK);
	rig_run(rig, &run);
	whole(&run);
	assert_int_equal(run.marked[0], run.count);
	assert_int_equal(run.marked[1], MARK);
	rte_eth_stats_get(0, &stats[0]);
	rte_eth_stats_get(1, &stats[1]);
	assert_int_equal(stats[0].opackets, run.count);
	assert_int_equal(stats[1].ipackets, run.count);
	assert_int_equal(stats[0].obytes, stats[1].ibytes);
	assert_int_equal(stats[1].imissed, 0);
	assert_int_equal(rig_xstat(1, "rx_phy_packets"), run.count);
	assert_int_equal(rig_xstat(0, "tx_phy_packets"), run.count);
	assert_int_equal(soft_devices[0].count.bad_doorbells, 0);
	assert_int_equal(soft_devices[1].count.cq_overruns, 0);
}

static void both_ways_over_several_queues(void **state)
{
	struct rig *rig = *state;
	struct rig_run run = { .count = 3000, .shortest = 60, .longest = 300, .tx_queue = 2 };

	for (unsigned int i = 0; i < 2; i++)
		rig->port[i].rx_queues = rig->port[i].tx_queues = 4;
	rig_ports_start(rig);
	rule(0, RIG_ETHERTYPE, 3, 0);
	rule(1, RIG_ETHERTYPE, 1, 0);
	rig_run(rig, &run);
	whole(&run);
	assert_int_equal(run.queue[1], run.count);
	run = (struct rig_run){ .count = 3000, .shortest = 60, .longest = 300, .other_way = true };
	rig_run(rig, &run);
	whole(&run);
	assert_int_equal(run.queue[3], run.count);
}

/* One frame: sends it, waits for it. The vector functions receive nothing into fewer than four
 * places. */
static struct rte_mbuf *exchange(struct rte_mbuf *mbuf)
{
	struct rte_mbuf *back[4];

	assert_int_equal(rte_eth_tx_burst(0, 0, &mbuf, 1), 1);
	nic_settle();
	if (rte_eth_rx_burst(1, 0, back, 4) == 0)
		fail_msg("the frame did not arrive");
	return back[0];
}

/* A frame shorter than the smallest is padded by the sending card. */
static void short_frames_are_padded(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *back;
	uint64_t number;

	rig_ports_start(rig);
	rule(1, RIG_ETHERTYPE, 0, 0);
	back = exchange(rig_frame(rig->pool, &rig->memory, 40, RIG_ETHERTYPE, 7));
	assert_int_equal(back->pkt_len, 60);
	back->pkt_len = 40;
	assert_int_equal(rig_check(back, &rig->memory, &number), 0);
	rte_pktmbuf_free(back);
}

static void chain_is_one_frame(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *head, *tail, *back;
	uint64_t number;

	rig->port[0].tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	rig_ports_start(rig);
	rule(1, RIG_ETHERTYPE, 0, 0);
	head = rig_frame(rig->pool, &rig->memory, 1000, RIG_ETHERTYPE, 9);
	tail = rte_pktmbuf_alloc(rig->pool);
	/* The last 300 bytes move to a buffer of their own. */
	memcpy(rig_host(&rig->memory, rte_pktmbuf_append(tail, 300)),
	       rig_host(&rig->memory, rte_pktmbuf_mtod_offset(head, uint8_t *, 700)), 300);
	memset(rig_host(&rig->memory, rte_pktmbuf_mtod_offset(head, uint8_t *, 700)), 0, 300);
	assert_int_equal(rte_pktmbuf_trim(head, 300), 0);
	assert_int_equal(rte_pktmbuf_chain(head, tail), 0);
	back = exchange(head);
	assert_int_equal(back->pkt_len, 1000);
	assert_int_equal(rig_check(back, &rig->memory, &number), 0);
	rte_pktmbuf_free(back);
}

/* A received frame of three buffers, then back in order. */
static void jumbo_fills_several_buffers(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *head, *tail, *back, *part;
	uint32_t at = 0;

	rig->port[0].tx_offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	rig->port[0].rx_offloads = rig->port[1].rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
	rig->port[0].mtu = rig->port[1].mtu = 4500;
	rig_ports_start(rig);
	rule(1, RIG_ETHERTYPE, 0, 0);
	head = rig_frame(rig->pool, &rig->memory, 1900, RIG_ETHERTYPE, 1);
	for (unsigned int i = 0; i < 2; i++) {
		tail = rig_frame(rig->pool, &rig->memory, 1100, RIG_ETHERTYPE, 2 + i);
		assert_int_equal(rte_pktmbuf_chain(head, tail), 0);
	}
	rte_mbuf_refcnt_update(head, 1);
	for (tail = head->next; tail != NULL; tail = tail->next)
		rte_mbuf_refcnt_update(tail, 1);
	back = exchange(head);
	assert_int_equal(back->pkt_len, 4100);
	assert_int_equal(back->nb_segs, 3);
	part = back;
	for (tail = head; tail != NULL; tail = tail->next) {
		const uint8_t *sent = rig_host(&rig->memory, rte_pktmbuf_mtod(tail, uint8_t *));

		for (uint32_t i = 0; i < tail->data_len; i++, at++) {
			if (at == part->data_len) {
				part = part->next;
				at = 0;
			}
			assert_int_equal(
				rig_host(&rig->memory, rte_pktmbuf_mtod(part, uint8_t *))[at],
				sent[i]);
		}
	}
	rte_pktmbuf_free(back);
	rte_eth_dev_stop(0); /* lets go of the sent frame */
	rte_pktmbuf_free(head);
}

/* Headers into memory of the host, payload into that of the device. */
static void split_puts_headers_elsewhere(void **state)
{
	struct rig *rig = *state;
	static struct rte_mempool *headers;
	struct rte_mbuf *back;
	const uint8_t *payload;
	struct rte_mbuf *sent;

	if (headers == NULL)
		headers = rte_pktmbuf_pool_create("headers", 2047, 0, 0, 512, SOCKET_ID_ANY);
	assert_non_null(headers);
	rig->port[1].pool = headers;
	rig->port[1].pool2 = rig->pool;
	rig->port[1].split = 64;
	rig_ports_start(rig);
	rule(1, RIG_ETHERTYPE, 0, 0);
	sent = rig_frame(rig->pool, &rig->memory, 1000, RIG_ETHERTYPE, 5);
	back = exchange(sent);
	assert_int_equal(back->nb_segs, 2);
	assert_int_equal(back->data_len, 64);
	assert_ptr_equal(back->pool, headers);
	assert_int_equal(back->next->data_len, 936);
	assert_int_equal(rte_pktmbuf_mtod(back, uint8_t *)[12], RIG_ETHERTYPE >> 8);
	payload = rig_host(&rig->memory, rte_pktmbuf_mtod(back->next, uint8_t *));
	for (uint32_t i = 64; i < 1000; i++)
		assert_int_equal(payload[i - 64], (uint8_t)((5 * 2654435761u >> 8) + i * 7));
	rte_pktmbuf_free(back);
}

static void time_stamps_rise(void **state)
{
	struct rig *rig = *state;
	struct rig_run run = { .count = 2000, .shortest = 60, .longest = 200 };

	rig->port[1].rx_offloads = RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	rig_ports_start(rig);
	rule(1, RIG_ETHERTYPE, 0, 0);
	rig_run(rig, &run);
	whole(&run);
	assert_int_equal(run.stamped, run.count);
	/* Of the real time, in nanoseconds. */
	assert_true(run.last_stamp <= nic_now_ns());
	assert_true(run.last_stamp > nic_now_ns() - 60000000000ull);
}

static struct rte_mbuf *udp_frame(struct rig *rig, bool wrong)
{
	struct rte_mbuf *mbuf =
		rig_frame(rig->pool, &rig->memory, IPV4_UDP_SIZE, RTE_ETHER_TYPE_IPV4, 3);
	uint8_t *data = rig_host(&rig->memory, rte_pktmbuf_mtod(mbuf, uint8_t *));
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(data + 14);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	*ip = (struct rte_ipv4_hdr){ .version_ihl = 0x45,
				     .total_length = RTE_BE16(IPV4_UDP_SIZE - 14),
				     .time_to_live = 64,
				     .next_proto_id = 17,
				     .src_addr = RTE_BE32(0x0a000001),
				     .dst_addr = RTE_BE32(0x0a000002) };
	*udp = (struct rte_udp_hdr){ .src_port = RTE_BE16(1000),
				     .dst_port = RTE_BE16(2000),
				     .dgram_len = RTE_BE16(IPV4_UDP_SIZE - 34) };
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp->dgram_cksum = rte_ipv4_udptcp_cksum(ip, udp);
	if (wrong)
		data[IPV4_UDP_SIZE - 1] ^= 1;
	return mbuf;
}

static void checksums_are_judged(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *back;

	rig->port[1].rx_offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM;
	rig_ports_start(rig);
	rule(1, RTE_ETHER_TYPE_IPV4, 0, 0);
	back = exchange(udp_frame(rig, false));
	assert_true(back->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	assert_true(back->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	assert_int_equal(back->packet_type & RTE_PTYPE_L4_MASK, RTE_PTYPE_L4_UDP);
	rte_pktmbuf_free(back);
	back = exchange(udp_frame(rig, true));
	assert_true(back->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	assert_false((back->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	rte_pktmbuf_free(back);
}

static void checksums_are_filled_in(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *sent, *back;
	struct rte_ipv4_hdr *ip;

	rig->port[0].tx_offloads = RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
	rig->port[1].rx_offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM;
	rig_ports_start(rig);
	rule(1, RTE_ETHER_TYPE_IPV4, 0, 0);
	sent = udp_frame(rig, false);
	ip = (struct rte_ipv4_hdr *)(rig_host(&rig->memory, rte_pktmbuf_mtod(sent, uint8_t *)) +
				     14);
	ip->hdr_checksum = 0;
	((struct rte_udp_hdr *)(ip + 1))->dgram_cksum = RTE_BE16(0x1111);
	sent->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
	sent->l2_len = 14;
	sent->l3_len = 20;
	back = exchange(sent);
	assert_true(back->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_GOOD);
	assert_true(back->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_GOOD);
	rte_pktmbuf_free(back);
}

/*
 * Without DevX the driver puts the tag in with the CPU, which may not read this memory; the test
 * does it then. A rule on the EtherType alone means untagged frames to the engine of dv_flow_en=1.
 */
static void tag_is_put_in_and_taken_out(void **state)
{
	struct rte_flow_item_vlan vlan = { .tci = RTE_BE16(0x123),
					   .inner_type = RTE_BE16(RIG_ETHERTYPE) };
	struct rte_flow_item_vlan mask = { .tci = RTE_BE16(0xfff), .inner_type = RTE_BE16(0xffff) };
	struct rte_flow_item items[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_VLAN, .spec = &vlan, .mask = &mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE,
		  .conf = &(struct rte_flow_action_queue){ 0 } },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	bool by_card = strcmp(getenv("SOFTMLX5_DEVX"), "0") != 0;
	struct rte_flow_error error = { 0 };
	struct rig *rig = *state;
	struct rte_mbuf *sent, *back;
	uint64_t number;
	uint8_t *data;

	rig->port[0].tx_offloads = by_card ? RTE_ETH_TX_OFFLOAD_VLAN_INSERT : 0;
	rig->port[1].rx_offloads = RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	rig_ports_start(rig);
	if (rte_flow_create(1, &(struct rte_flow_attr){ .ingress = 1 }, items, actions, &error) ==
	    NULL)
		fail_msg("rule refused: %s", error.message);
	sent = rig_frame(rig->pool, &rig->memory, 200, RIG_ETHERTYPE, 8);
	if (by_card) {
		sent->ol_flags |= RTE_MBUF_F_TX_VLAN;
		sent->vlan_tci = 0x2123;
	} else {
		data = rig_host(&rig->memory, rte_pktmbuf_prepend(sent, 4));
		memmove(data, data + 4, 12);
		memcpy(data + 12, "\x81\x00\x21\x23", 4);
	}
	back = exchange(sent);
	assert_int_equal(back->pkt_len, 200);
	assert_true(back->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED);
	assert_int_equal(back->vlan_tci, 0x2123);
	assert_int_equal(rig_check(back, &rig->memory, &number), 0);
	rte_pktmbuf_free(back);
}

/* More frames than buffers are posted: exactly the rest is counted as missed. */
static void no_buffers_is_counted(void **state)
{
	struct rig *rig = *state;
	struct rte_mbuf *frames[32], *back[32];
	unsigned int sent = 0, received = 0;
	uint16_t count;

	rig->port[1].descriptors = 256;
	rig_ports_start(rig);
	rule(1, RIG_ETHERTYPE, 0, 0);
	while (sent < 1000) {
		frames[0] = rig_frame(rig->pool, &rig->memory, 100, RIG_ETHERTYPE, sent);
		assert_non_null(frames[0]);
		if (rte_eth_tx_burst(0, 0, frames, 1) == 1)
			sent++;
		else
			rte_pktmbuf_free(frames[0]);
	}
	nic_settle();
	while ((count = rte_eth_rx_burst(1, 0, back, 32)) > 0) {
		received += count;
		rte_pktmbuf_free_bulk(back, count);
	}
	assert_int_equal(received, 256);
	assert_int_equal(rig_xstat(1, "rx_out_of_buffer"), 1000 - 256);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(all_sizes_arrive_in_order, rig_reset),
		cmocka_unit_test_teardown(both_ways_over_several_queues, rig_reset),
		cmocka_unit_test_teardown(short_frames_are_padded, rig_reset),
		cmocka_unit_test_teardown(chain_is_one_frame, rig_reset),
		cmocka_unit_test_teardown(jumbo_fills_several_buffers, rig_reset),
		cmocka_unit_test_teardown(split_puts_headers_elsewhere, rig_reset),
		cmocka_unit_test_teardown(time_stamps_rise, rig_reset),
		cmocka_unit_test_teardown(checksums_are_judged, rig_reset),
		cmocka_unit_test_teardown(checksums_are_filled_in, rig_reset),
		cmocka_unit_test_teardown(tag_is_put_in_and_taken_out, rig_reset),
		cmocka_unit_test_teardown(no_buffers_is_counted, rig_reset),
	};
	int failed;

	rig_start(argc, argv);
	failed = cmocka_run_group_tests(tests, rig_setup, rig_teardown);
	rig_stop();
	return failed;
}
