/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session tells of its run, at any time and from any thread. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_version.h>

#include "base/clock.h"
#include "session/answer.h"
#include "session/session.h"

static void queue_unchecked(const struct gdrcap_session *session, uint32_t index,
			    struct gdrcap_counts *counts)
{
	const struct gdrcap_queue *queue = &session->workers.queues[index];
	const struct rx_worker *worker = &session->workers.rx[index];

	*counts = (struct gdrcap_counts){
		.filtered = atomic_load_explicit(&queue->filtered, memory_order_relaxed),
		.received = atomic_load_explicit(&worker->frames, memory_order_relaxed),
		.bytes = atomic_load_explicit(&worker->bytes, memory_order_relaxed),
	};
}

/* True when the frames received are our sender's own, so that what it sent is what is expected. */
static bool sent_known(const struct gdrcap_session *session)
{
	return session->workers.tx_count &&
	       (!settings_is_custom(&session->settings) || session->frames.expect);
}

static struct accountant *accountant_of(const struct gdrcap_session *session)
{
	return (struct accountant *)(uintptr_t)&session->workers.accountant;
}

/* What the cards admit to have lost, where the drivers count it exactly. */
static void summary_losses(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	bool missed_exact = true, error_exact = true;
	uint64_t explained = 0;

	for (uint32_t p = 0; session->workers.rx_count && p < session->settings.ports; p++) {
		const struct port *port = &session->ports.pairs[p].rx;
		struct port_counters counters;

		session_port_counters(session, port, &counters);
		missed_exact &= session_drops_exact(session, p);
		error_exact &= port->facts->error_exact || session->ports.pairs[p].own;
		summary->nic_missed += counters.missed;
		if (session_drops_exact(session, p))
			summary->missed_in_run += session_drops_in_run(session, p, counters.missed);
		summary->nic_error += counters.error;
	}
	if (session->workers.rx_count == 0)
		return;
	/* What went with a memif's other end nobody counted. */
	if (missed_exact && !session->watch.peer_left) {
		summary->known |= GDRCAP_HAS_NIC_MISSED;
		explained += summary->nic_missed;
	}
	if (error_exact) {
		summary->known |= GDRCAP_HAS_NIC_ERROR;
		explained += summary->nic_error;
	} else {
		summary->nic_error = 0;
	}
	explained += session_causes_lost(session) + session_own_senders_lost(session);
	summary->unexplained =
		summary->total.lost > explained ? summary->total.lost - explained : 0;
}

static void summary_sender(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	bool exact = true;

	session_sender_summary(session, summary);
	summary->tx_asked = session->run.tx_asked;
	summary->tx_missing = atomic_load(&session->run.tx_missing);
	for (uint32_t p = 0; session->workers.tx_count && p < session->settings.ports; p++) {
		const struct port *port = &session->ports.pairs[p].tx;
		struct port_counters counters;

		session_port_counters(session, port, &counters);
		exact &= port->facts->tx_error_counted && !session->ports.pairs[p].tx_unseen;
		summary->tx_error += counters.tx_error + session->ports.pairs[p].tx_unwritten;
	}
	/* Of queues of our own the driver knows nothing. */
	if (session->own_senders.count) {
		exact = true;
		summary->tx_error = session_own_senders_lost(session);
	}
	if (session->workers.tx_count && exact)
		summary->known |= GDRCAP_HAS_TX_ERROR;
	else
		summary->tx_error = 0;
}

static void summary_saved(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	struct save_counts counts;

	if (!session->frames.save)
		return;
	save_counts(session->frames.save, &counts);
	summary->saved = counts.saved;
	summary->save_missed = counts.missed;
	summary->damaged_saved = counts.damaged_saved;
	summary->damaged_missed = counts.damaged_missed;
}

/* Which of the verdict's counts mean something for these frames. */
static uint32_t summary_known(const struct gdrcap_session *session)
{
	const struct frame_custom *custom = &session->frames.layout.custom;
	uint32_t known = 0;

	if (!settings_validates(&session->settings) || session->workers.rx_count == 0)
		return 0;
	known = GDRCAP_HAS_VERDICT;
	if (!settings_is_custom(&session->settings) || session->frames.expect ||
	    custom->sequence.bytes || custom->self_phase)
		known |= GDRCAP_HAS_LOSS;
	if (settings_is_custom(&session->settings) && custom->self_phase)
		known |= GDRCAP_HAS_LOCK;
	if (session->settings.stale_us)
		known |= GDRCAP_HAS_STALE;
	return known;
}

/* From the first poll that brought frames to the last. */
static double summary_seconds(const struct gdrcap_session *session)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		const struct rx_worker *worker = &session->workers.rx[i];
		const uint64_t from =
			atomic_load_explicit(&worker->first_tsc, memory_order_relaxed);

		if (from == 0)
			continue;
		first = RTE_MIN(first, from);
		last = RTE_MAX(last, atomic_load_explicit(&worker->last_tsc, memory_order_relaxed));
	}
	return last > first ? (double)(last - first) / (double)rte_get_tsc_hz() : 0;
}

static void summary_machine(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	uint64_t starved_tsc = 0, back;

	summary->ports = session->settings.ports;
	summary->queues = session->workers.rx_count;
	summary->core_count = session->workers.cpu_count;
	memcpy(summary->cores, session->workers.cpus,
	       session->workers.cpu_count * sizeof(summary->cores[0]));
	summary->memory = session->memory.region.kind;
	snprintf(summary->gpu, sizeof(summary->gpu), "%s", session->memory.device_info.name);
	snprintf(summary->driver, sizeof(summary->driver), "%s", session->memory.gpu_driver);
	summary->region_bytes = session->memory.region.bytes;
	summary->slot_bytes = 1u << session->memory.region.slot_shift;
	summary->slots = session->memory.region.slots;
	summary->blocks = session->jobs.blocks;
	summary->failed = session->run.failure != 0;
	summary->ended_by_sender = session->run.ended_by_sender;
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		const struct rx_worker *worker = &session->workers.rx[i];

		summary->cut += atomic_load_explicit(&worker->cut, memory_order_relaxed);
		summary->pool_empty += atomic_load_explicit(&worker->starved, memory_order_relaxed);
		starved_tsc += atomic_load_explicit(&worker->starved_tsc, memory_order_relaxed);
		summary->bursts += atomic_load_explicit(&worker->bursts, memory_order_relaxed);
		/* Read `back` first: what is not back yet can only grow by what comes later. */
		back = atomic_load_explicit(&worker->back, memory_order_acquire);
		summary->in_flight +=
			atomic_load_explicit(&worker->frames, memory_order_relaxed) - back;
	}
	summary->pool_empty_seconds = (double)starved_tsc / (double)rte_get_tsc_hz();
	session_ports_summary(session, summary);
}

/* The caller's own consumer has the frames: what became of each, it knows. Images count theirs. The
 * accounts are borrowed. */
static void summary_unchecked(const struct gdrcap_session *session, struct gdrcap_counts *total)
{
	total->sent = session_sent(session);
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		struct gdrcap_counts counts;

		queue_unchecked(session, i, &counts);
		total->filtered += counts.filtered;
		total->received += counts.received;
		total->bytes += counts.bytes;
	}
	for (uint32_t i = 0; i < session->images.count; i++) {
		struct gdrcap_image_counts counts;

		assembler_counts(&session->images.handed[i].assembler, &counts);
		total->filtered += counts.filtered;
	}
}

/* Streams that said nothing of their end fail the run: their memif's other end left, or it was said
 * how many senders are waited for. A count of frames is another end. */
static bool ends_are_due(const struct gdrcap_session *session)
{
	const uint64_t frames = session->settings.frames;

	return (session->watch.peer_left || session->settings.senders > 1) &&
	       (frames == 0 || session_received(session) < frames);
}

/* Streams of a pattern that leave for a receiver elsewhere: those of a custom layout may have no id, and
 * frames of a file have whose they are. */
static uint32_t streams_played(const struct gdrcap_session *session)
{
	uint32_t count = 0;

	if (settings_receives(&session->settings) || settings_is_custom(&session->settings) ||
	    session->frames.file)
		return 0;
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		count += session->workers.tx[i].config.stream_count;
	return RTE_MIN(count, GDRCAP_STREAMS_MAX);
}

static double elapsed_seconds(const struct gdrcap_session *session)
{
	const uint64_t began = atomic_load(&session->run.began_ns);
	const uint64_t over = atomic_load(&session->run.over_ns);

	return began ? (double)((over ? over : now_ns()) - began) / 1e9 : 0;
}

static void summary_fill(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	const struct verdict *verdict;

	summary_machine(session, summary);
	verdict = accountant_borrow(accountant_of(session));
	if (settings_validates(&session->settings) && session->workers.rx_count) {
		verdict_total(verdict, sent_known(session), session_sent(session), &summary->total);
		summary->lock_lost = verdict->lock_lost;
		summary->stale = verdict->stale;
		summary->untracked = verdict->untracked;
		summary->conflicts = verdict->conflicts;
		if (session_hears_ends(session))
			verdict_unheard(verdict, ends_are_due(session), &summary->senders_unheard,
					&summary->streams_unheard);
	} else {
		summary_unchecked(session, &summary->total);
	}
	/* Of the moment of these counts. */
	summary->elapsed_seconds = elapsed_seconds(session);
	summary->known |= summary_known(session);
	summary->streams = verdict->listed_count + streams_played(session);
	accountant_return(accountant_of(session));
	summary_losses(session, summary);
	summary_sender(session, summary);
	session_sending_summary(session, summary);
	summary_saved(session, summary);
	summary->seconds = summary_seconds(session);
	if (summary->seconds > 0) {
		const struct gdrcap_counts *total = &summary->total;

		summary->mpps = (double)total->received / summary->seconds / 1e6;
		summary->gbps = 8.0 *
				(double)(total->bytes + PACING_WIRE_OVERHEAD * total->received) /
				summary->seconds / 1e9;
	}
}

int gdrcap_get_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary,
		       size_t size)
{
	const int ret = answer_check(session, "session", summary, size);
	struct gdrcap_summary all = { 0 };

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	summary_fill(session, &all);
	answer_give(summary, size, &all, sizeof(all));
	return 0;
}

int gdrcap_get_queue_counts(const struct gdrcap_session *session, uint32_t index,
			    struct gdrcap_counts *counts, size_t size)
{
	const int ret = answer_check(session, "session", counts, size);
	struct gdrcap_counts all;

	if (ret < 0)
		return ret;
	if (index >= session->workers.rx_count)
		return -ENOENT;
	if (!settings_validates(&session->settings)) {
		queue_unchecked(session, index, &all);
	} else {
		verdict_queue_counts(accountant_borrow(accountant_of(session)), index, &all);
		accountant_return(accountant_of(session));
	}
	answer_give(counts, size, &all, sizeof(all));
	return 0;
}

int gdrcap_get_stream_counts(const struct gdrcap_session *session, uint32_t index, uint32_t *stream,
			     struct gdrcap_counts *counts, size_t size)
{
	const struct verdict *verdict;
	struct gdrcap_counts all;
	int ret = answer_check(session, "session", counts, size);

	if (ret < 0 || !stream)
		return ret < 0 ? ret : -EINVAL;
	if (index < streams_played(session)) {
		*stream = session->settings.first_stream + index;
		all = (struct gdrcap_counts){ .sent = session_stream_sent(session, *stream) };
		answer_give(counts, size, &all, sizeof(all));
		return 0;
	}
	ret = -ENOENT;
	verdict = accountant_borrow(accountant_of(session));
	if (index < verdict->listed_count) {
		const struct verdict_stream *listed = verdict_listed(verdict, index);

		*stream = listed->id;
		verdict_stream_counts(verdict, listed, sent_known(session),
				      session_stream_sent(session, *stream), &all);
		answer_give(counts, size, &all, sizeof(all));
		ret = 0;
	}
	accountant_return(accountant_of(session));
	return ret;
}

int gdrcap_get_ranges(const struct gdrcap_session *session, uint32_t index,
		      struct gdrcap_numbers *ranges, uint32_t room)
{
	const struct verdict *verdict;
	int ret = guest_check(session, "session", NULL);

	if (ret < 0 || (!ranges && room))
		return ret < 0 ? ret : -EINVAL;
	if (index < streams_played(session))
		return -ENODATA;
	verdict = accountant_borrow(accountant_of(session));
	ret = -ENOENT;
	if (index < verdict->listed_count)
		ret = verdict_stream_ranges(verdict, verdict_listed(verdict, index), ranges, room);
	accountant_return(accountant_of(session));
	return ret;
}

int gdrcap_get_damage(const struct gdrcap_session *session, uint32_t index,
		      struct gdrcap_damage *damage, size_t size)
{
	const struct verdict *verdict;
	int ret = answer_check(session, "session", damage, size);

	if (ret < 0)
		return ret;
	ret = -ENOENT;
	verdict = accountant_borrow(accountant_of(session));
	if (index < verdict->damage_count) {
		answer_give(damage, size, &verdict->damage[index], sizeof(verdict->damage[index]));
		ret = 0;
	}
	accountant_return(accountant_of(session));
	return ret;
}

const char *gdrcap_get_message(const struct gdrcap_session *session, uint32_t index)
{
	pthread_mutex_t *lock;
	const char *line;

	if (guest_check(session, "session", NULL) < 0)
		return NULL;
	lock = (pthread_mutex_t *)(uintptr_t)&session->lines.lock;
	/* A line that was kept once stays until the session is destroyed. */
	pthread_mutex_lock(lock);
	line = index < session->lines.message_count ? session->lines.messages[index] : NULL;
	pthread_mutex_unlock(lock);
	return line;
}

const char *gdrcap_version(void)
{
#ifdef GDRCAP_WITH_CUDA
	return "gdrcap " GDRCAP_VERSION " (" RTE_VER_PREFIX " " RTE_STR(RTE_VER_YEAR) "." RTE_STR(
		RTE_VER_MONTH) "." RTE_STR(RTE_VER_MINOR) ", CUDA Runtime " GDRCAP_CUDA_VERSION ")";
#else
	return "gdrcap " GDRCAP_VERSION " (" RTE_VER_PREFIX " " RTE_STR(RTE_VER_YEAR) "." RTE_STR(
		RTE_VER_MONTH) "." RTE_STR(RTE_VER_MINOR) ", built without CUDA)";
#endif
}
