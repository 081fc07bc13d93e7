/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The staged first frame: the proof of concept's, sent from tx_port[0] into port[0], followed step
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
#include "selftest/prove_internal.h"

#define LINK_MS 5000u /* autonegotiation and training take seconds */
#define SAMPLE_BYTES 64u

/* What a card may have done is no cause where there is none. */
static const char *const *stage_causes(const struct prove *prove, enum prove_stage stage)
{
	const struct session_pair *pair = &prove->session->pairs[0];
	const struct prove_text *text = &prove_texts[stage];
	const bool card = pair->rx.facts->writes == DRIVER_WRITES_DMA ||
			  pair->tx.facts->writes == DRIVER_WRITES_DMA;

	return card || !text->software ? text->causes : text->software;
}

static int stage_end(struct prove *prove, enum prove_stage stage, enum gdrcap_stage_state state,
		     const char *format, va_list args)
{
	struct gdrcap_stage out = {
		.name = prove_texts[stage].name,
		.state = state,
		.causes = state == GDRCAP_STAGE_FAILED ? stage_causes(prove, stage) : NULL,
	};

	vsnprintf(out.detail, sizeof(out.detail), format, args);
	if (prove->report)
		prove->report(prove->context, &out);
	if (state != GDRCAP_STAGE_FAILED)
		return 0;
	return error_set(prove->error, -EIO, "stage \"%s\" failed: %s", out.name, out.detail);
}

int prove_passed(struct prove *prove, enum prove_stage stage, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = stage_end(prove, stage, GDRCAP_STAGE_PASSED, format, args);
	va_end(args);
	return ret;
}

int prove_failed(struct prove *prove, enum prove_stage stage, const char *format, ...)
{
	va_list args;
	int ret;

	va_start(args, format);
	ret = stage_end(prove, stage, GDRCAP_STAGE_FAILED, format, args);
	va_end(args);
	return ret;
}

static int prove_ports(struct prove *prove)
{
	const struct session_pair *pair = &prove->session->pairs[0];
	struct patience patience;

	patience_begin(&patience);
	while (!port_link_up(&pair->rx) || !port_link_up(&pair->tx))
		if (!prove_within(&patience, LINK_MS))
			return prove_failed(prove, PROVE_PORTS_UP, "%s is down after %u s",
					    port_link_up(&pair->rx) ? pair->tx.name : pair->rx.name,
					    LINK_MS / 1000);
	return prove_passed(prove, PROVE_PORTS_UP, "%s plays into %s", pair->tx.name,
			    pair->rx.name);
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
			return prove_failed(prove, PROVE_MEMORY, "cannot be written: %s",
					    kernel_error());
		if (session->ops->copy_out(session->device, sample, region->device + at,
					   sizeof(sample)) < 0)
			return prove_failed(prove, PROVE_MEMORY, "cannot be read: %s",
					    kernel_error());
		for (size_t k = 0; k < sizeof(sample); k++)
			if (sample[k] != SESSION_POISON)
				return prove_failed(
					prove, PROVE_MEMORY,
					"byte %zu is 0x%02x after the memory was filled with "
					"0x%02x",
					at + k, sample[k], SESSION_POISON);
	}
	return prove_passed(prove, PROVE_MEMORY, "%s, %zu MiB of 0x%02x",
			    plan_memory_name(region->kind), region->bytes >> 20, SESSION_POISON);
}

/* True when the sender's card says that it could not send it: an error completion, for which its
 * driver is to be asked. */
static bool sender_failed(const struct prove *prove)
{
	const struct session_pair *pair = &prove->session->pairs[0];
	struct port_counters now;

	if (pair->tx.facts->writes == DRIVER_WRITES_DMA)
		(void)rte_eth_tx_descriptor_status(pair->tx.id, 0, 0);
	port_counters(&pair->tx, &now);
	return now.tx_error != prove->tx_before.tx_error;
}

static int prove_sent(struct prove *prove)
{
	const struct session_pair *pair = &prove->session->pairs[0];
	const struct region *region = &prove->session->region;
	struct rte_mbuf *m = rte_pktmbuf_alloc(pair->tx_pool[0]);
	struct patience patience;

	if (!m)
		return prove_failed(prove, PROVE_SENT, "the sender's pool is empty");
	m->data_len = PROOF_BYTES;
	m->pkt_len = PROOF_BYTES;
	if (prove->session->ops->copy_in(prove->session->device,
					 prove_for_device(region, rte_pktmbuf_mtod(m, void *)),
					 prove->frame, PROOF_BYTES) < 0) {
		rte_pktmbuf_free(m);
		return prove_failed(prove, PROVE_SENT, "the frame cannot be written to memory: %s",
				    kernel_error());
	}
	port_counters(&pair->rx, &prove->rx_before);
	port_counters(&pair->tx, &prove->tx_before);
	xstats_read(&pair->rx_xstats, &prove->wire_before);
	patience_begin(&patience);
	while (rte_eth_tx_burst(pair->tx.id, 0, &m, 1) == 0) {
		/* A shared memory port has buffers to send into once its peer has polled. */
		prove_look(prove);
		if (!prove_within(&patience, PROVE_ARRIVE_MS)) {
			rte_pktmbuf_free(m);
			return prove_failed(prove, PROVE_SENT, "%s took no frame within %u ms",
					    pair->tx.name, PROVE_ARRIVE_MS);
		}
	}
	patience_begin(&patience);
	while (!prove_look(prove) && prove_within(&patience, PROVE_ARRIVE_MS))
		if (sender_failed(prove))
			return prove_failed(prove, PROVE_SENT,
					    "%s took the frame, and its card could not send it: an "
					    "error completion",
					    pair->tx.name);
	return prove_passed(prove, PROVE_SENT,
			    "%u bytes: Ethernet, IPv4, UDP port 12345, payload 0..31", PROOF_BYTES);
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
	static int (*const steps[])(struct prove * prove) = {
		prove_ports,   prove_memory,	prove_rules, prove_sent,
		prove_steered, prove_completed, prove_bytes, prove_consumer,
	};
	struct prove prove = {
		.session = session, .report = stage, .context = context, .error = error
	};
	int ret = guest_check(session, "session", error);

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	if (session->state != SESSION_CREATED || !settings_sends(&session->settings) ||
	    !settings_receives(&session->settings))
		return error_set(error, -EINVAL,
				 "the staged first frame needs a session with tx_port that has not "
				 "started");
	ret = prove_prepare(&prove);
	for (size_t i = 0; ret == 0 && i < sizeof(steps) / sizeof(steps[0]); i++)
		ret = steps[i](&prove);
	if (prove.received)
		rte_pktmbuf_free(prove.received);
	pattern_plan_free(&prove.pattern);
	return prove_rules_end(&prove, ret);
}
