/* SPDX-License-Identifier: BSD-3-Clause */
/* The self-test's way into the receiving port: its rule, its queue, its completion. */
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/log.h"
#include "selftest/selftest_internal.h"

#define POLL_FRAMES 8u /* the mlx5 driver's vector functions bring nothing for fewer than 4 */
#define LOOK_POLLS 64u /* of a queue that hears others all the time, before time is looked at */
#define COUNT_MS 1200u /* that driver reads its rules' counters once a second */
#define SELFTEST_RULE "ethertype=0x0800,dst_port=12345"

int selftest_rules(struct selftest *selftest)
{
	struct session_pair *pair = &selftest->session->ports.pairs[0];
	const char *const text[] = { SELFTEST_RULE };
	struct frame_match match = { .count = 1 };
	const struct steering_config config = {
		.port = pair->rx.id,
		.name = pair->rx.name,
		.first_queue = pair->own ? OWN_RX_FLOW_QUEUE(0) : 0,
		.queues = pair->own ? (uint16_t)pair->own->count : pair->rx.rx_queues,
		.match = &match,
		.text = text,
	};
	struct gdrcap_error error;
	char why[128];
	int ret;

	if (!pair->rx.isolated)
		return 0;
	if (frame_match_parse(&match.rule[0], SELFTEST_RULE, why, sizeof(why)) < 0)
		return selftest_failed(selftest, SELFTEST_STEERED, "its rule \"%s\" %s",
				       SELFTEST_RULE, why);
	session_ports_lock(selftest->session);
	/* In place of the session's, which may mean the same frames: then a card refuses it. */
	steering_destroy(&pair->steering);
	selftest->own_rule = true;
	ret = steering_create(&pair->steering, &config, &error);
	session_ports_unlock(selftest->session);
	return ret < 0 ? selftest_failed(selftest, SELFTEST_STEERED, "%s", error.text) : 0;
}

int selftest_rules_end(struct selftest *selftest, int ret)
{
	struct session_pair *pair = &selftest->session->ports.pairs[0];
	struct gdrcap_error error;
	int again;

	if (!selftest->own_rule)
		return ret;
	session_ports_lock(selftest->session);
	steering_destroy(&pair->steering);
	again = session_rules_create(selftest->session, pair, &error);
	session_ports_unlock(selftest->session);
	if (again == 0)
		return ret;
	if (ret < 0)
		log_warning("%s", error.text);
	return ret < 0 ? ret : error_set(selftest->error, again, "%s", error.text);
}

/* The same at queues of our own: their threads do not run yet. */
static bool own_look(struct selftest *selftest)
{
	const struct gdrcap_session *session = selftest->session;
	const struct session_pair *pair = &session->ports.pairs[0];
	const struct region *region = &session->memory.region;
	struct rte_mbuf *m = &selftest->stand_in;
	struct frame_desc desc;

	for (uint32_t q = 0; q < pair->own->count; q++)
		for (uint32_t n = 0; n < LOOK_POLLS && !selftest->received; n++) {
			if (!own_queues_take(pair->own, q, &session->workers.rx[q], &desc))
				break;
			if (desc.len != SELFTEST_BYTES)
				continue;
			*m = (struct rte_mbuf){
				.buf_addr =
					region->base + ((size_t)desc.slot << region->slot_shift),
				.data_off = desc.offset,
				.data_len = desc.len,
				.pkt_len = desc.len,
				.nb_segs = 1,
			};
			selftest->received = m;
			selftest->queue = q;
		}
	return selftest->received != NULL;
}

/* Other traffic on the port is passed over. A frame of the right length may hold anything: that is
 * what the later steps are for. */
bool selftest_look(struct selftest *selftest)
{
	const struct session_pair *pair = &selftest->session->ports.pairs[0];

	if (pair->own)
		return own_look(selftest);
	for (uint16_t q = 0; q < pair->rx.rx_queues; q++) {
		struct rte_mbuf *mbuf[POLL_FRAMES];
		uint16_t count = 1;

		for (uint32_t n = 0; n < LOOK_POLLS && !selftest->received && count > 0; n++) {
			count = rte_eth_rx_burst(pair->rx.id, q, mbuf, POLL_FRAMES);
			for (uint16_t i = 0; i < count; i++) {
				if (!selftest->received &&
				    (mbuf[i]->pkt_len == SELFTEST_BYTES ||
				     (mbuf[i]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_BAD))) {
					selftest->received = mbuf[i];
					selftest->queue = q;
				} else {
					rte_pktmbuf_free(mbuf[i]);
				}
			}
		}
	}
	return selftest->received != NULL;
}

/* What the card's counters say since the frame was sent. */
struct clues {
	struct steering_hits rule;
	uint64_t missed, error;
	struct xstats_values wire;
};

static uint64_t clue(const struct selftest *selftest, const struct clues *clues,
		     enum xstats_cause cause)
{
	return xstats_known(&clues->wire, cause)
		       ? clues->wire.count[cause] - selftest->wire_before.count[cause]
		       : 0;
}

/* What the rule for it took, when its card's driver has read it. */
static struct steering_hits rule_hits(const struct selftest *selftest)
{
	struct steering_hits hits[STEERING_RULES_MAX];
	struct patience patience;

	patience_begin(&patience);
	do
		steering_query(&selftest->session->ports.pairs[0].steering, hits);
	while (hits[0].known && hits[0].frames == 0 && selftest_within(&patience, COUNT_MS));
	return hits[0];
}

static void clues_read(struct selftest *selftest, struct clues *clues)
{
	struct session_pair *pair = &selftest->session->ports.pairs[0];
	struct port_counters now;

	clues->rule = rule_hits(selftest);
	session_port_counters(selftest->session, &pair->rx, &now);
	clues->missed = now.missed - selftest->rx_before.missed;
	clues->error = now.error - selftest->rx_before.error;
	xstats_read(&pair->rx_xstats, &clues->wire);
}

/* What stands in a queue of our own in place of the first frame; CQ_NONE: nothing. */
static enum cq_kind own_kind(const struct selftest *selftest)
{
	const struct gdrcap_session *session = selftest->session;
	const struct own_queues *own = session->ports.pairs[0].own;
	enum cq_kind kind = CQ_NONE;

	for (uint32_t q = 0; q < own->count && kind == CQ_NONE; q++)
		kind = own_queues_kind(own, q, &session->workers.rx[q]);
	return kind;
}

/* It reached a queue, and the queue did not have it. */
static int not_completed(struct selftest *selftest, const struct clues *clues)
{
	const struct session_pair *pair = &selftest->session->ports.pairs[0];
	const uint64_t none = clue(selftest, clues, XSTATS_NO_BUFFER);
	const uint64_t failing = clue(selftest, clues, XSTATS_QUEUE_ERROR);
	enum cq_kind kind;

	if (clues->rule.frames)
		selftest_passed(selftest, SELFTEST_STEERED,
				"the rule of %s for it took %llu frame%s", pair->rx.name,
				(unsigned long long)clues->rule.frames,
				clues->rule.frames == 1 ? "" : "s");
	else
		selftest_passed(selftest, SELFTEST_STEERED, "%s counted it", pair->rx.name);
	if (clues->missed || none || clues->error || failing)
		return selftest_failed(
			selftest, SELFTEST_COMPLETED,
			"%s dropped it: %llu more missed, %llu more with errors%s", pair->rx.name,
			(unsigned long long)RTE_MAX(clues->missed, none),
			(unsigned long long)RTE_MAX(clues->error, failing),
			pair->rx.facts->writes != DRIVER_WRITES_DMA ? ""
			: clues->missed || none
				? ": its queue had no free buffer"
				: ": its card could not write it, and the queue is in error");
	if (pair->own && (kind = own_kind(selftest)) != CQ_NONE)
		return selftest_failed(selftest, SELFTEST_COMPLETED,
				       "a completion came to %s that is not to be believed: %s",
				       pair->rx.name, cq_worker_words(kind));
	return selftest_failed(
		selftest, SELFTEST_COMPLETED,
		"no completion came to %s within %u ms: its card could not write the "
		"frame, or its queue is in error",
		pair->rx.name, SELFTEST_ARRIVE_MS);
}

static int not_steered(struct selftest *selftest, const struct clues *clues)
{
	const struct session_pair *pair = &selftest->session->ports.pairs[0];
	const uint64_t damaged =
		clue(selftest, clues, XSTATS_WIRE_CRC) + clue(selftest, clues, XSTATS_WIRE_LENGTH);
	const uint64_t full = clue(selftest, clues, XSTATS_CARD_FULL);
	const uint64_t physical = clue(selftest, clues, XSTATS_WIRE_FRAMES_RX);

	if (damaged)
		return selftest_failed(
			selftest, SELFTEST_STEERED,
			"%llu frame%s came to %s damaged on the wire (wire_crc), and its "
			"card threw %s away",
			(unsigned long long)damaged, damaged == 1 ? "" : "s", pair->rx.name,
			damaged == 1 ? "it" : "them");
	if (full)
		return selftest_failed(
			selftest, SELFTEST_STEERED,
			"the buffer of %s's card was full (card_full): %llu frame%s thrown "
			"away",
			pair->rx.name, (unsigned long long)full, full == 1 ? "" : "s");
	if (!xstats_known(&clues->wire, XSTATS_WIRE_FRAMES_RX))
		return selftest_failed(selftest, SELFTEST_STEERED,
				       "no frame of %u bytes came to %s within %u ms",
				       SELFTEST_BYTES, pair->rx.name, SELFTEST_ARRIVE_MS);
	if (physical == 0)
		return selftest_failed(selftest, SELFTEST_STEERED,
				       "no frame came to the physical port of %s within %u ms",
				       pair->rx.name, SELFTEST_ARRIVE_MS);
	return selftest_failed(
		selftest, SELFTEST_STEERED,
		"%llu frame%s came to the physical port of %s within %u ms, and none of %u bytes to "
		"its queues%s",
		(unsigned long long)physical, physical == 1 ? "" : "s", pair->rx.name,
		SELFTEST_ARRIVE_MS, SELFTEST_BYTES,
		clues->rule.known ? ": the rule " SELFTEST_RULE " took none" : "");
}

/* It came out of a queue. */
static int steered(struct selftest *selftest)
{
	const struct session_pair *pair = &selftest->session->ports.pairs[0];
	const struct steering_hits rule = rule_hits(selftest);

	if (pair->rx.facts->writes != DRIVER_WRITES_DMA && selftest->queue != 0)
		return selftest_failed(selftest, SELFTEST_STEERED,
				       "the frame came out of queue %u, not 0", selftest->queue);
	if (!pair->rx.isolated)
		return selftest_passed(selftest, SELFTEST_STEERED, "to queue %u of %s",
				       selftest->queue, pair->rx.name);
	if (!rule.known)
		return selftest_passed(
			selftest, SELFTEST_STEERED,
			"to queue %u of %s, by its card's rule, which it does not count",
			selftest->queue, pair->rx.name);
	return selftest_passed(selftest, SELFTEST_STEERED,
			       "to queue %u of %s, by its card's rule, which took %llu frame%s",
			       selftest->queue, pair->rx.name, (unsigned long long)rule.frames,
			       rule.frames == 1 ? "" : "s");
}

int selftest_steered(struct selftest *selftest)
{
	struct patience patience;
	struct clues clues;

	patience_begin(&patience);
	while (!selftest_look(selftest) && selftest_within(&patience, SELFTEST_ARRIVE_MS))
		;
	if (selftest->received)
		return steered(selftest);
	clues_read(selftest, &clues);
	if (clues.rule.frames || clues.missed || clues.error ||
	    clue(selftest, &clues, XSTATS_NO_BUFFER) || clue(selftest, &clues, XSTATS_QUEUE_ERROR))
		return not_completed(selftest, &clues);
	return not_steered(selftest, &clues);
}

void selftest_parts(const struct selftest *selftest, struct selftest_part parts[2])
{
	const struct gdrcap_session *session = selftest->session;
	const struct rte_mbuf *m = selftest->received;

	memset(parts, 0, 2 * sizeof(*parts));
	parts[0].region = &session->memory.heads;
	parts[1].region = &session->memory.region;
	if (session->settings.split) {
		parts[0].at = rte_pktmbuf_mtod(m, uint8_t *);
		parts[0].len = m->data_len;
		m = m->next;
	}
	if (m) {
		parts[1].at = rte_pktmbuf_mtod(m, uint8_t *);
		parts[1].len = m->data_len;
	}
}

static bool part_inside(const struct selftest_part *part)
{
	const struct region *region = part->region;

	return part->len == 0 || (part->at >= region->base && part->len <= region->bytes &&
				  part->at <= region->base + region->bytes - part->len);
}

int selftest_completed(struct selftest *selftest)
{
	const uint32_t split = selftest->session->settings.split;
	const uint32_t head = split < SELFTEST_BYTES ? split : SELFTEST_BYTES;
	const uint32_t segments = head && head < SELFTEST_BYTES ? 2 : 1;
	const struct rte_mbuf *m = selftest->received;
	struct selftest_part parts[2];

	if (m->nb_segs != segments || m->pkt_len != SELFTEST_BYTES)
		return selftest_failed(selftest, SELFTEST_COMPLETED,
				       "it has %u bytes in %u segments, not %u in %s", m->pkt_len,
				       m->nb_segs, SELFTEST_BYTES, segments == 1 ? "one" : "two");
	if (m->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_BAD)
		return selftest_failed(selftest, SELFTEST_COMPLETED,
				       "the port flagged it as damaged");
	selftest_parts(selftest, parts);
	if (parts[0].len != head || parts[0].len + parts[1].len != SELFTEST_BYTES)
		return selftest_failed(selftest, SELFTEST_COMPLETED,
				       "its parts have %u and %u bytes, not %u and %u",
				       parts[0].len, parts[1].len, head, SELFTEST_BYTES - head);
	if (!part_inside(&parts[0]) || !part_inside(&parts[1]))
		return selftest_failed(selftest, SELFTEST_COMPLETED,
				       "its address is outside the region");
	if (parts[1].len == 0)
		return selftest_passed(selftest, SELFTEST_COMPLETED,
				       "%u bytes, all in host memory: no more than split",
				       m->pkt_len);
	return selftest_passed(selftest, SELFTEST_COMPLETED, "%u bytes in slot %zu%s", parts[1].len,
			       (size_t)(parts[1].at - parts[1].region->base) >>
				       parts[1].region->slot_shift,
			       head ? ", those before in host memory" : "");
}
