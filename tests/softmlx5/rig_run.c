/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending, receiving and checking; fixtures of the tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_mbuf_dyn.h>

#include "faults.h"
#include "nic.h"
#include "rig.h"

#define BURST 32
#define BUFFERS 8192
/* Without a frame, each after the card had nothing left to do: then none comes. The driver takes
 * some to get a queue out of an error. */
#define QUIET_POLLS 64
#define WINDOWS_MAX 100
#define DESCRIPTORS 512

static const char all_off[] =
	"drop=off,corrupt=off,duplicate=off,reorder=off,link_down=off,tx_error=off,crc=off,"
	"discard=off,no_buffers=off,rx_error=off,revoke=off,late=off,stale=off,"
	"wrong_owner=off,flip=off,refuse_peer=off,refuse_dmabuf=off,refuse=off,refuse_rule=off,"
	"refuse_channel=off,torn=off,wrong_entry=off,refuse_umem=off,refuse_object=off,"
	"link=1,link_ms=0,pause=0,play=0,gone=0,no_key_check=0,loose_match=0,ignore_doorbells=0,"
	"ignore_records=0,strict_states=0";

static void usual_ports(struct rig *rig)
{
	for (uint16_t i = 0; i < 2; i++)
		rig->port[i] = (struct rig_port){ .id = i,
						  .rx_queues = 1,
						  .tx_queues = 1,
						  .descriptors = DESCRIPTORS,
						  .isolated = true,
						  .pool = rig->pool };
}

int rig_setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig_memory(&rig->memory, (size_t)BUFFERS * RIG_BUFFER, true);
	assert_int_equal(rig_map(&rig->memory), 0);
	rig->pool = rig_pool("rig", &rig->memory);
	usual_ports(rig);
	*state = rig;
	return 0;
}

int rig_teardown(void **state)
{
	free(*state);
	return 0;
}

void rig_ports_start(struct rig *rig)
{
	rig_port_start(&rig->port[0]);
	rig_port_start(&rig->port[1]);
}

int rig_reset(void **state)
{
	struct rig *rig = *state;
	struct rte_flow_error error;

	nic_lock();
	assert_int_equal(soft_faults_parse(all_off), 0);
	nic_unlock();
	for (uint16_t i = 0; i < 2; i++) {
		rte_flow_flush(i, &error);
		rte_eth_dev_stop(i);
		rte_eth_stats_reset(i);
		rte_eth_xstats_reset(i);
	}
	usual_ports(rig);
	assert_int_equal(rte_mempool_avail_count(rig->pool), BUFFERS);
	return 0;
}

static uint32_t length_of(const struct rig_run *run, uint64_t number)
{
	return run->shortest + (uint32_t)(number * 37 % (run->longest - run->shortest + 1));
}

static void send_burst(struct rig *rig, struct rig_run *run)
{
	struct rte_mbuf *frames[BURST];
	uint16_t count = 0, done;

	while (count < BURST && run->sent + count < run->count) {
		frames[count] =
			rig_frame(rig->pool, &rig->memory, length_of(run, run->sent + count),
				  run->ether_type, run->sent + count);
		if (frames[count] == NULL)
			break;
		count++;
	}
	done = rte_eth_tx_burst(run->other_way, run->tx_queue, frames, count);
	run->sent += done;
	rte_pktmbuf_free_bulk(frames + done, (unsigned int)(count - done));
}

static void check_stamp(struct rig_run *run, const struct rte_mbuf *mbuf, uint64_t *last)
{
	static int offset = -2;
	static uint64_t flag;
	uint64_t stamp;
	int bit;

	if (offset == -2) {
		offset = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
		bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, NULL);
		flag = bit >= 0 ? 1ull << bit : 0;
		if (offset < 0)
			offset = -2; /* registered with the first port that wants it */
	}
	if (offset < 0 || (mbuf->ol_flags & flag) == 0)
		return;
	stamp = *RTE_MBUF_DYNFIELD(mbuf, offset, uint64_t *);
	run->stamped += stamp >= *last;
	*last = run->last_stamp = stamp;
}

static unsigned int receive(struct rig *rig, struct rig_run *run, uint64_t *expected,
			    uint64_t *last)
{
	const struct rig_port *port = &rig->port[!run->other_way];
	struct rte_mbuf *frames[BURST];
	unsigned int all = 0;
	uint64_t number;

	for (uint16_t queue = 0; queue < port->rx_queues; queue++) {
		uint16_t count = rte_eth_rx_burst(port->id, queue, frames, BURST);

		for (uint16_t i = 0; i < count; i++) {
			run->damaged += rig_check(frames[i], &rig->memory, &number) != 0 ||
					frames[i]->pkt_len != length_of(run, number);
			run->disordered += number != *expected;
			*expected = number + 1;
			if (frames[i]->ol_flags & RTE_MBUF_F_RX_FDIR_ID) {
				run->marked[0]++;
				run->marked[1] = frames[i]->hash.fdir.hi;
			}
			check_stamp(run, frames[i], last);
		}
		rte_pktmbuf_free_bulk(frames, count);
		run->queue[queue] += count;
		all += count;
	}
	run->received += all;
	return all;
}

void rig_run(struct rig *rig, struct rig_run *run)
{
	uint64_t expected = 0, last = 0, before;
	unsigned int quiet = 0, opened = 0;

	if (run->ether_type == 0)
		run->ether_type = RIG_ETHERTYPE;
	while (run->sent < run->count || run->received < run->count) {
		before = run->sent;
		if (run->sent < run->count &&
		    run->sent - run->received < run->lost + DESCRIPTORS / 2)
			send_burst(rig, run);
		if (receive(rig, run, &expected, &last) > 0 || run->sent > before) {
			quiet = 0;
		} else if (++quiet <= QUIET_POLLS) {
			nic_settle();
		} else if (run->lossy && run->sent < run->count && ++opened < WINDOWS_MAX) {
			/* What is missing will not come: the window opens again. */
			run->lost = run->sent - run->received;
			quiet = 0;
		} else {
			break;
		}
	}
	/* Nothing more than was sent? */
	nic_settle();
	while (receive(rig, run, &expected, &last) > 0)
		;
}
