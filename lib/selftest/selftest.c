/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The self-test: the proof of concept's frame, sent from tx_port[0] into port[0], followed step
 * by step. All of it is control code; the session does not run yet.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/guest.h"
#include "base/log.h"
#include "selftest/selftest_internal.h"

#define LINK_MS 5000u /* autonegotiation and training take seconds */
#define SAMPLE_BYTES 64u

/* What a card may have done is no cause where there is none. */
static const char *const *step_causes(const struct selftest *selftest, enum selftest_step step)
{
	const struct session_pair *pair = &selftest->session->ports.pairs[0];
	const struct selftest_text *text = &selftest_texts[step];
	const bool card = pair->rx.facts->writes == DRIVER_WRITES_DMA ||
			  pair->tx.facts->writes == DRIVER_WRITES_DMA;

	if (pair->own && text->own)
		return text->own;
	return card || !text->software ? text->causes : text->software;
}

static int step_end(struct selftest *selftest, enum selftest_step step,
		    enum gdrcap_step_state state, const char *format, va_list args)
{
	struct session_selftest *kept = &selftest->session->selftest;
	struct gdrcap_step out = {
		.name = selftest_texts[step].name,
		.state = state,
		.causes = state == GDRCAP_STEP_FAILED ? step_causes(selftest, step) : NULL,
	};

	vsnprintf(out.detail, sizeof(out.detail), format, args);
	if (kept->step_count < RESULTS_STEPS_MAX)
		kept->steps[kept->step_count++] = out;
	if (selftest->report)
		selftest->report(selftest->context, &out);
	if (state != GDRCAP_STEP_FAILED)
		return 0;
	return error_set(selftest->error, -EIO, "step \"%s\" failed: %s", out.name, out.detail);
}

int selftest_passed(struct selftest *selftest, enum selftest_step step, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = step_end(selftest, step, GDRCAP_STEP_PASSED, format, args);
	va_end(args);
	return ret;
}

int selftest_failed(struct selftest *selftest, enum selftest_step step, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = step_end(selftest, step, GDRCAP_STEP_FAILED, format, args);
	va_end(args);
	return ret;
}

static int selftest_ports(struct selftest *selftest)
{
	const struct session_pair *pair = &selftest->session->ports.pairs[0];
	struct patience patience;

	patience_begin(&patience);
	while (!port_link_up(&pair->rx) || !port_link_up(&pair->tx))
		if (!selftest_within(&patience, LINK_MS))
			return selftest_failed(selftest, SELFTEST_PORTS_UP, "%s is down after %u s",
					       port_link_up(&pair->rx) ? pair->tx.name
								       : pair->rx.name,
					       LINK_MS / 1000);
	return selftest_passed(selftest, SELFTEST_PORTS_UP, "%s plays into %s", pair->tx.name,
			       pair->rx.name);
}

/* All of it was filled when the session was created; samples are filled again, since a port that
 * hears other traffic may have used them already. */
static int selftest_memory(struct selftest *selftest)
{
	const struct gdrcap_session *session = selftest->session;
	const struct region *region = &session->memory.region;
	const uint32_t slots[] = { 0, region->slots / 2, region->slots - 1 };
	uint8_t sample[SAMPLE_BYTES];

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		const size_t at = ((size_t)(slots[i] + 1) << region->slot_shift) - SAMPLE_BYTES;

		if (session->memory.ops->fill(session->memory.device, region->device + at,
					      SESSION_POISON, sizeof(sample)) < 0)
			return selftest_failed(selftest, SELFTEST_MEMORY, "cannot be written: %s",
					       kernel_error());
		if (session->memory.ops->copy_out(session->memory.device, sample,
						  region->device + at, sizeof(sample)) < 0)
			return selftest_failed(selftest, SELFTEST_MEMORY, "cannot be read: %s",
					       kernel_error());
		for (size_t k = 0; k < sizeof(sample); k++)
			if (sample[k] != SESSION_POISON)
				return selftest_failed(
					selftest, SELFTEST_MEMORY,
					"byte %zu is 0x%02x after the memory was filled with "
					"0x%02x",
					at + k, sample[k], SESSION_POISON);
	}
	return selftest_passed(selftest, SELFTEST_MEMORY, "%s, %zu MiB of 0x%02x",
			       plan_memory_name(region->kind), region->bytes >> 20, SESSION_POISON);
}

/* The sender's first queue, where it is one of ours; NULL: the driver's. Its worker does not run yet. */
static struct tx_own *own_queue(const struct selftest *selftest)
{
	const struct session_own_senders *own = &selftest->session->own_senders;

	return own->count ? &own->queues[0] : NULL;
}

/* True when the sender's card says that it could not send it: an error completion, for which its
 * driver is to be asked. */
static bool sender_failed(const struct selftest *selftest)
{
	const struct session_pair *pair = &selftest->session->ports.pairs[0];
	struct tx_own *own = own_queue(selftest);
	struct port_counters now;

	if (own) {
		tx_own_poll(own);
		return atomic_load_explicit(&own->resets, memory_order_relaxed) != 0 ||
		       atomic_load_explicit(&own->failing, memory_order_relaxed) != 0;
	}
	if (pair->tx.facts->writes == DRIVER_WRITES_DMA)
		(void)rte_eth_tx_descriptor_status(pair->tx.id, 0, 0);
	port_counters(&pair->tx, &now);
	return now.tx_error != selftest->tx_before.tx_error;
}

/* A slot of the sender's, and what names it to who sends it. */
struct staged {
	uint8_t *frame; /* NULL: there is none */
	struct rte_mbuf *m;
	struct frame_desc desc;
};

static struct staged slot_take(const struct selftest *selftest)
{
	const struct region *region = &selftest->session->memory.region;
	struct tx_own *own = own_queue(selftest);
	struct staged staged = { 0 };

	if (own && tx_own_room(own)) {
		staged.desc = tx_own_desc(own, SELFTEST_BYTES);
		staged.frame = region->base + ((uint64_t)staged.desc.slot << region->slot_shift) +
			       staged.desc.offset;
	} else if (!own) {
		staged.m = rte_pktmbuf_alloc(selftest->session->ports.pairs[0].tx_pool[0]);
	}
	if (staged.m) {
		staged.m->data_len = SELFTEST_BYTES;
		staged.m->pkt_len = SELFTEST_BYTES;
		staged.frame = rte_pktmbuf_mtod(staged.m, uint8_t *);
	}
	return staged;
}

static void slot_give(const struct selftest *selftest, struct staged *staged)
{
	if (staged->m)
		rte_pktmbuf_free(staged->m);
	else
		tx_own_drop(own_queue(selftest), 1);
}

static bool slot_send(const struct selftest *selftest, struct staged *staged)
{
	struct tx_own *own = own_queue(selftest);

	if (!own)
		return rte_eth_tx_burst(selftest->session->ports.pairs[0].tx.id, 0, &staged->m,
					1) == 1;
	if (tx_own_send(own, &staged->desc, 1) == 0)
		return false;
	(void)tx_own_flush(own); /* the queue is empty, so there is room */
	return true;
}

static int selftest_sent(struct selftest *selftest)
{
	const struct session_pair *pair = &selftest->session->ports.pairs[0];
	const struct region *region = &selftest->session->memory.region;
	struct staged staged = slot_take(selftest);
	struct patience patience;

	if (!staged.frame)
		return selftest_failed(selftest, SELFTEST_SENT, "the sender's pool is empty");
	if (selftest->session->memory.ops->copy_in(selftest->session->memory.device,
						   selftest_for_device(region, staged.frame),
						   selftest->frame, SELFTEST_BYTES) < 0) {
		slot_give(selftest, &staged);
		return selftest_failed(selftest, SELFTEST_SENT,
				       "the frame cannot be written to memory: %s", kernel_error());
	}
	session_port_counters(selftest->session, &pair->rx, &selftest->rx_before);
	port_counters(&pair->tx, &selftest->tx_before);
	xstats_read(&pair->rx_xstats, &selftest->wire_before);
	patience_begin(&patience);
	while (!slot_send(selftest, &staged)) {
		/* A shared memory port has buffers to send into once its peer has polled. */
		selftest_look(selftest);
		if (!selftest_within(&patience, SELFTEST_ARRIVE_MS)) {
			slot_give(selftest, &staged);
			return selftest_failed(selftest, SELFTEST_SENT,
					       "%s took no frame within %u ms", pair->tx.name,
					       SELFTEST_ARRIVE_MS);
		}
	}
	patience_begin(&patience);
	while (!selftest_look(selftest) && selftest_within(&patience, SELFTEST_ARRIVE_MS))
		if (sender_failed(selftest))
			return selftest_failed(
				selftest, SELFTEST_SENT,
				"%s took the frame, and its card could not send it: an "
				"error completion",
				pair->tx.name);
	return selftest_passed(selftest, SELFTEST_SENT,
			       "%u bytes: Ethernet, IPv4, UDP port 12345, payload 0..31",
			       SELFTEST_BYTES);
}

static int selftest_prepare(struct selftest *selftest)
{
	const struct pattern_config pattern = { .kind = PATTERN_COUNTER8,
						.restart = 1,
						.invert = -1 };
	const struct frame_header header = { 0 };
	int ret;

	frame_layout_proof(&selftest->layout);
	ret = pattern_init(&selftest->pattern, &pattern);
	if (ret < 0)
		return error_set(selftest->error, ret, "no memory for the first frame's pattern");
	frame_write(&selftest->layout, &selftest->pattern, selftest->frame, SELFTEST_BYTES,
		    &header);
	return 0;
}

int gdrcap_selftest(struct gdrcap_session *session,
		    void (*step)(void *context, const struct gdrcap_step *step), void *context,
		    struct gdrcap_error *error)
{
	static int (*const steps[])(struct selftest * selftest) = {
		selftest_ports,	  selftest_memory,    selftest_rules, selftest_sent,
		selftest_steered, selftest_completed, selftest_bytes, selftest_consumer,
	};
	struct gdrcap_error own = { 0 };
	struct selftest selftest = {
		.session = session,
		.report = step,
		.context = context,
		.error = error ? error : &own,
	};
	int ret = guest_check(session, "session", error);

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	if (session->run.state != SESSION_CREATED || !settings_sends(&session->settings) ||
	    !settings_receives(&session->settings))
		return error_set(error, -EINVAL,
				 "the self-test needs a session with tx_port that has not "
				 "started");
	ret = selftest_prepare(&selftest);
	for (size_t i = 0; ret == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		ret = steps[i](&selftest);
	if (selftest.received && selftest.received != &selftest.stand_in)
		rte_pktmbuf_free(selftest.received);
	pattern_free(&selftest.pattern);
	ret = selftest_rules_end(&selftest, ret);
	session->selftest.failure = ret;
	if (ret < 0)
		snprintf(session->selftest.failure_text, sizeof(session->selftest.failure_text),
			 "%s", selftest.error->text);
	return ret;
}
