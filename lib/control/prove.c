/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The staged first frame: the proof of concept's, sent from tx_port[0] into port[0], followed step
 * by step. All of it is control code; the session does not run yet.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "log.h"
#include "prove_causes.h"
#include "session.h"

#define PROOF_BYTES 74u /* Ethernet 14, IPv4 20, UDP 8, payload 32; without FCS */
#define LINK_MS 5000u /* autonegotiation and training take seconds */
#define ARRIVE_MS 1000u
#define SAMPLE_BYTES 64u

struct prove {
	struct gdrcap_session *session;
	void (*report)(void *context, const struct gdrcap_stage *stage);
	void *context;
	struct gdrcap_error *error;
	struct frame_layout layout; /* the proof of concept's */
	struct pattern_plan pattern;
	uint8_t frame[PROOF_BYTES]; /* as it must arrive */
	struct port_counters before; /* of the receiving port */
	struct rte_mbuf *received;
	uint32_t queue; /* where it came */
};

static int stage_end(struct prove *prove, enum prove_stage stage, enum gdrcap_stage_state state,
		     const char *format, va_list args)
{
	struct gdrcap_stage out = {
		.name = prove_texts[stage].name,
		.state = state,
		.causes = state == GDRCAP_STAGE_FAILED ? prove_texts[stage].causes : NULL,
	};

	vsnprintf(out.detail, sizeof(out.detail), format, args);
	if (prove->report)
		prove->report(prove->context, &out);
	if (state != GDRCAP_STAGE_FAILED)
		return 0;
	return error_set(prove->error, -EIO, "stage \"%s\" failed: %s", out.name, out.detail);
}

static __attribute__((format(printf, 3, 4))) int passed(struct prove *prove, enum prove_stage stage,
							const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = stage_end(prove, stage, GDRCAP_STAGE_PASSED, format, args);
	va_end(args);
	return ret;
}

static __attribute__((format(printf, 3, 4))) int failed(struct prove *prove, enum prove_stage stage,
							const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = stage_end(prove, stage, GDRCAP_STAGE_FAILED, format, args);
	va_end(args);
	return ret;
}

static bool within(uint64_t since_tsc, uint32_t ms)
{
	const struct timespec tick = { .tv_nsec = 100000 };

	nanosleep(&tick, NULL);
	return rte_rdtsc() - since_tsc < (uint64_t)ms * rte_get_tsc_hz() / 1000;
}

/* Where the region's byte at `at` is for the device. */
static uint8_t *for_device(const struct prove *prove, const void *at)
{
	const struct region *region = &prove->session->region;

	return region->device + ((const uint8_t *)at - region->base);
}

static int prove_ports(struct prove *prove)
{
	const struct session_pair *pair = &prove->session->pairs[0];
	const uint64_t since = rte_rdtsc();

	while (!port_link_up(&pair->rx) || !port_link_up(&pair->tx))
		if (!within(since, LINK_MS))
			return failed(prove, PROVE_PORTS_UP, "%s is down after %u s",
				      port_link_up(&pair->rx) ? pair->tx.name : pair->rx.name,
				      LINK_MS / 1000);
	return passed(prove, PROVE_PORTS_UP, "%s plays into %s", pair->tx.name, pair->rx.name);
}

/* All of it was filled when the session was created; samples are filled again, since a port that
 * hears other traffic may have used them already. */
static int prove_memory(struct prove *prove)
{
	const struct gdrcap_session *session = prove->session;
	const struct region *region = &session->region;
	const uint32_t slots[] = { 0, region->slots / 2, region->slots - 1 };
	uint8_t sample[SAMPLE_BYTES];

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		const size_t at = ((size_t)(slots[i] + 1) << region->slot_shift) - SAMPLE_BYTES;

		if (session->ops->fill(session->device, region->device + at, SESSION_POISON,
				       sizeof(sample)) < 0)
			return failed(prove, PROVE_MEMORY, "cannot be written: %s", kernel_error());
		if (session->ops->copy_out(session->device, sample, region->device + at,
					   sizeof(sample)) < 0)
			return failed(prove, PROVE_MEMORY, "cannot be read: %s", kernel_error());
		for (size_t k = 0; k < sizeof(sample); k++)
			if (sample[k] != SESSION_POISON)
				return failed(prove, PROVE_MEMORY,
					      "byte %zu is 0x%02x after the memory was filled with "
					      "0x%02x",
					      at + k, sample[k], SESSION_POISON);
	}
	return passed(prove, PROVE_MEMORY, "%s, %zu MiB of 0x%02x",
		      plan_memory_name(region->kind), region->bytes >> 20, SESSION_POISON);
}

/* Other traffic on the port is passed over. A frame of the right length may hold anything: that is
 * what the later stages are for. */
static bool look_for_frame(struct prove *prove)
{
	const struct session_pair *pair = &prove->session->pairs[0];

	for (uint16_t q = 0; q < pair->rx.rx_queues; q++) {
		struct rte_mbuf *m;

		while (!prove->received && rte_eth_rx_burst(pair->rx.id, q, &m, 1) == 1) {
			if (m->pkt_len == PROOF_BYTES ||
			    (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_BAD)) {
				prove->received = m;
				prove->queue = q;
			} else {
				rte_pktmbuf_free(m);
			}
		}
	}
	return prove->received != NULL;
}

static int prove_sent(struct prove *prove)
{
	const struct session_pair *pair = &prove->session->pairs[0];
	const uint64_t since = rte_rdtsc();
	struct rte_mbuf *m = rte_pktmbuf_alloc(pair->tx_pool);
	uint8_t *to;

	if (!m)
		return failed(prove, PROVE_SENT, "the sender's pool is empty");
	m->data_len = PROOF_BYTES;
	m->pkt_len = PROOF_BYTES;
	to = for_device(prove, rte_pktmbuf_mtod(m, void *));
	if (prove->session->ops->copy_in(prove->session->device, to, prove->frame, PROOF_BYTES) <
	    0) {
		rte_pktmbuf_free(m);
		return failed(prove, PROVE_SENT, "the frame cannot be written to memory: %s",
			      kernel_error());
	}
	port_counters(&pair->rx, &prove->before);
	while (rte_eth_tx_burst(pair->tx.id, 0, &m, 1) == 0) {
		/* A shared memory port has buffers to send into once its peer has polled. */
		look_for_frame(prove);
		if (!within(since, ARRIVE_MS)) {
			rte_pktmbuf_free(m);
			return failed(prove, PROVE_SENT, "%s took no frame within %u ms",
				      pair->tx.name, ARRIVE_MS);
		}
	}
	return passed(prove, PROVE_SENT, "%u bytes: Ethernet, IPv4, UDP port 12345, payload 0..31",
		      PROOF_BYTES);
}

static int prove_steered(struct prove *prove)
{
	const struct session_pair *pair = &prove->session->pairs[0];
	const uint64_t since = rte_rdtsc();
	struct port_counters now;

	while (!look_for_frame(prove) && within(since, ARRIVE_MS))
		;
	port_counters(&pair->rx, &now);
	if (prove->received && pair->rx.facts->writes != DRIVER_WRITES_DMA && prove->queue != 0)
		return failed(prove, PROVE_STEERED, "the frame came out of queue %u, not 0",
			      prove->queue);
	if (prove->received)
		return passed(prove, PROVE_STEERED, "to queue %u of %s", prove->queue,
			      pair->rx.name);
	if (now.missed != prove->before.missed || now.error != prove->before.error) {
		passed(prove, PROVE_STEERED, "%s counted it", pair->rx.name);
		return failed(prove, PROVE_COMPLETED,
			      "%s dropped it: %llu more missed, %llu more with errors",
			      pair->rx.name,
			      (unsigned long long)(now.missed - prove->before.missed),
			      (unsigned long long)(now.error - prove->before.error));
	}
	return failed(prove, PROVE_STEERED, "no frame of %u bytes came to %s within %u ms",
		      PROOF_BYTES, pair->rx.name, ARRIVE_MS);
}

static int prove_completed(struct prove *prove)
{
	const struct region *region = &prove->session->region;
	const struct rte_mbuf *m = prove->received;
	const uint8_t *at = rte_pktmbuf_mtod(m, const uint8_t *);

	if (m->nb_segs != 1 || m->pkt_len != PROOF_BYTES)
		return failed(prove, PROVE_COMPLETED,
			      "it has %u bytes in %u segments, not %u in one", m->pkt_len,
			      m->nb_segs, PROOF_BYTES);
	if (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_BAD)
		return failed(prove, PROVE_COMPLETED, "the port flagged it as damaged");
	if (at < region->base || at + PROOF_BYTES > region->base + region->bytes)
		return failed(prove, PROVE_COMPLETED, "its address is outside the region");
	return passed(prove, PROVE_COMPLETED, "%u bytes in slot %zu", m->pkt_len,
		      (size_t)(at - region->base) >> region->slot_shift);
}

static int prove_bytes(struct prove *prove)
{
	const uint8_t *at = rte_pktmbuf_mtod(prove->received, const uint8_t *);
	uint8_t got[PROOF_BYTES];
	uint32_t poison = 0, first = PROOF_BYTES;
	int ret;

	if (prove->session->ops->copy_out(prove->session->device, got, for_device(prove, at),
					  PROOF_BYTES) < 0)
		return failed(prove, PROVE_CHANGED, "the memory cannot be read: %s",
			      kernel_error());
	for (uint32_t i = 0; i < PROOF_BYTES; i++) {
		poison += got[i] == SESSION_POISON && prove->frame[i] != SESSION_POISON;
		if (got[i] != prove->frame[i] && i < first)
			first = i;
	}
	if (poison >= PROOF_BYTES / 2)
		return failed(prove, PROVE_CHANGED,
			      "a completion came, but %u of %u bytes still hold 0x%02x", poison,
			      PROOF_BYTES, SESSION_POISON);
	ret = passed(prove, PROVE_CHANGED, "0x%02x is overwritten", SESSION_POISON);
	if (ret == 0 && first != PROOF_BYTES)
		return failed(prove, PROVE_RIGHT, "byte %u is 0x%02x, not 0x%02x", first,
			      got[first], prove->frame[first]);
	return ret < 0 ? ret : passed(prove, PROVE_RIGHT, "all %u as sent", PROOF_BYTES);
}

/* Waits for the consumer's word on the one burst in `ring`; reports a bad one. */
static int consumer_verdict(struct prove *prove, struct ring_producer *ring,
			    struct kernel_workers *workers)
{
	const struct burst_result *result = &ring->result[0];
	const uint64_t since = rte_rdtsc();

	while (!ring_is_done(ring, 0)) {
		if (prove->session->ops->running(workers) < 0)
			return failed(prove, PROVE_CONSUMER, "it died: %s", kernel_error());
		if (!within(since, ARRIVE_MS))
			return failed(prove, PROVE_CONSUMER, "it gave no result within %u ms",
				      ARRIVE_MS);
	}
	if (burst_word_count(result->done) != 1 || result->run.verdict == FRAME_FILTERED)
		return failed(prove, PROVE_CONSUMER,
			      "it did not recognise the frame, whose bytes are right in memory");
	if (result->run.verdict != FRAME_VALID || result->run.bytes != prove->layout.raw_payload)
		return failed(prove, PROVE_CONSUMER,
			      "it found %u wrong bits, the first in byte %u: 0x%02x, not 0x%02x",
			      result->run.wrong_bits, result->run.offset, result->run.got,
			      result->run.expected);
	return 0;
}

static int prove_consumer(struct prove *prove)
{
	struct gdrcap_session *session = prove->session;
	const struct region *region = &session->region;
	const struct ring_config config = {
		.region = region, .frames = 1, .burst_max = 1,
	};
	const uint64_t offset =
		(uint64_t)(rte_pktmbuf_mtod(prove->received, uint8_t *) - region->base);
	struct ring_producer *ring = aligned_alloc(RING_LINE, sizeof(*ring));
	struct kernel_workers *workers = NULL;
	struct kernel_job job = {
		.role = KERNEL_CHECK,
		.ring_count = 1,
		.workers_per_ring = 1,
		.frame_bytes_hint = PROOF_BYTES,
		.layout = prove->layout,
		.plan = prove->pattern,
	};
	int ret, join;

	if (!ring)
		return error_set(prove->error, -ENOMEM, "no memory for the first frame's ring");
	ret = ring_create(ring, &config, prove->error);
	if (ret < 0)
		goto err;
	job.rings = &ring->view;
	ret = session->ops->start(session->device, &job, &workers);
	if (ret < 0) {
		ret = failed(prove, PROVE_CONSUMER, "it does not start: %s", kernel_error());
		goto err_ring;
	}
	ring->desc[0] = (struct frame_desc){
		.slot = (uint32_t)(offset >> region->slot_shift),
		.len = PROOF_BYTES,
		.offset = (uint16_t)(offset & ((1u << region->slot_shift) - 1)),
	};
	ring->head = 1;
	ring_publish(ring);
	ret = consumer_verdict(prove, ring, workers);
	__atomic_store_n(ring->stop, 1, __ATOMIC_RELAXED);
	join = session->ops->join(workers, ARRIVE_MS);
	if (ret == 0 && join < 0)
		ret = failed(prove, PROVE_CONSUMER, "it does not leave: %s", kernel_error());
	else if (ret == 0)
		ret = passed(prove, PROVE_CONSUMER, "%u payload bytes checked, all right",
			     prove->layout.raw_payload);
	if (join == -ETIMEDOUT) {
		/* It may still come back to the ring. */
		session->stranded = true;
		session->proof_ring = ring;
		return ret;
	}
err_ring:
	ring_destroy(ring);
err:
	free(ring);
	return ret;
}

static int prove_prepare(struct prove *prove)
{
	const struct pattern_config pattern = { .kind = PATTERN_COUNTER8,
						.restart = 1,
						.invert = -1 };
	const struct frame_header header = { 0 };
	int ret;

	frame_layout_proof(&prove->layout);
	ret = pattern_plan_init(&prove->pattern, &pattern);
	if (ret < 0)
		return error_set(prove->error, ret, "no memory for the first frame's pattern");
	frame_write(&prove->layout, &prove->pattern, prove->frame, PROOF_BYTES, &header);
	return 0;
}

int gdrcap_prove(struct gdrcap_session *session,
		 void (*stage)(void *context, const struct gdrcap_stage *stage), void *context,
		 struct gdrcap_error *error)
{
	static int (*const steps[])(struct prove *prove) = {
		prove_ports,	 prove_memory, prove_sent,     prove_steered,
		prove_completed, prove_bytes,  prove_consumer,
	};
	struct prove prove = { .session = session, .report = stage, .context = context,
			       .error = error };
	int ret;

	if (session->state != SESSION_CREATED || !session->plan.sends ||
	    !session->plan.receives)
		return error_set(error, -EINVAL,
				 "the staged first frame needs a session with tx_port that has not "
				 "started");
	ret = prove_prepare(&prove);
	for (size_t i = 0; ret == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		ret = steps[i](&prove);
	if (prove.received)
		rte_pktmbuf_free(prove.received);
	pattern_plan_free(&prove.pattern);
	return ret;
}
