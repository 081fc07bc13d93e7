/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a run is: sums over its workers' counters. */
#include <rte_common.h>
#include <rte_cycles.h>

#include "session.h"

uint64_t session_sent(const struct gdrcap_session *session)
{
	uint64_t sent = 0;

	for (uint32_t i = 0; i < session->tx_count; i++)
		sent += atomic_load_explicit(&session->tx[i].sent, memory_order_relaxed);
	return sent;
}

uint64_t session_received(const struct gdrcap_session *session)
{
	uint64_t received = 0;

	for (uint32_t i = 0; i < session->rx_count; i++)
		received += atomic_load_explicit(&session->rx[i].frames, memory_order_relaxed);
	return received;
}

/* Frames of our sender that have arrived. Foreign frames and second copies must not end the wait
 * for the sender's own; a consumer that is the caller's does not say which are which. */
uint64_t session_arrived(struct gdrcap_session *session)
{
	uint64_t arrived;

	if (session->config.consumer != GDRCAP_CONSUMER_VALIDATE)
		return session_received(session);
	arrived = verdict_unique(accountant_borrow(&session->accountant));
	accountant_return(&session->accountant);
	return arrived;
}

uint64_t session_stream_sent(const struct gdrcap_session *session, uint32_t id)
{
	const struct tx_worker *worker;

	if (session->tx_count == 0)
		return 0;
	worker = &session->tx[id % session->tx_count];
	if (id / session->tx_count >= worker->config.stream_count)
		return 0;
	return atomic_load_explicit(&worker->streams[id / session->tx_count].sent,
				    memory_order_relaxed);
}

uint64_t session_bursts_published(const struct gdrcap_session *session)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < session->rx_count; i++)
		n += atomic_load_explicit(&session->rx[i].ring.published, memory_order_relaxed);
	return n;
}

uint64_t session_bursts_collected(const struct gdrcap_session *session)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < session->rx_count; i++)
		n += atomic_load_explicit(&session->rx[i].ring.accounted, memory_order_relaxed);
	return n;
}

/* What the first hand-overs of all senders began and the last ones ended: a rate over n frames is
 * over n - 1 gaps, so the last hand-over's frames do not count. */
static void sender_rate(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	uint64_t first = UINT64_MAX, last = 0, frames = 0, bytes = 0;

	for (uint32_t i = 0; i < session->tx_count; i++) {
		const struct tx_worker *worker = &session->tx[i];
		const uint64_t from =
			atomic_load_explicit(&worker->first_tsc, memory_order_relaxed);

		if (from == 0)
			continue;
		first = RTE_MIN(first, from);
		last = RTE_MAX(last, atomic_load_explicit(&worker->last_tsc, memory_order_relaxed));
		frames += atomic_load_explicit(&worker->sent, memory_order_relaxed) -
			  atomic_load_explicit(&worker->last_frames, memory_order_relaxed);
		bytes += atomic_load_explicit(&worker->bytes, memory_order_relaxed) -
			 atomic_load_explicit(&worker->last_bytes, memory_order_relaxed);
	}
	if (last <= first)
		return;
	summary->tx_seconds = (double)(last - first) / (double)rte_get_tsc_hz();
	summary->tx_mpps = (double)frames / summary->tx_seconds / 1e6;
	summary->tx_gbps = 8.0 * (double)(bytes + PACING_WIRE_OVERHEAD * frames) /
			   summary->tx_seconds / 1e9;
}

/* A file's own times, for as many of its frames as were sent. */
static double asked_seconds(const struct gdrcap_session *session)
{
	const struct file_frames *file = session->file;
	const uint64_t sent = session_sent(session);
	uint64_t laps, left;

	if (!file || sent == 0)
		return 0;
	laps = (sent - 1) / file->count;
	left = (sent - 1) % file->count;
	/* A streamed file's times are not all in memory: by whole laps, and the mean. */
	return ((double)laps * (double)file->span_ns +
		(file->streamed ? (double)left * (double)file->span_ns / (double)file->count :
				  (double)file->time_ns[left])) /
	       session->pacing.value * 1e-9;
}

void session_sender_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	const struct pacing *pacings[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct pacing_gaps gaps;

	if (session->tx_count == 0)
		return;
	summary->known |= GDRCAP_HAS_TX_STALLED;
	for (uint32_t i = 0; i < session->tx_count; i++) {
		const struct tx_worker *worker = &session->tx[i];

		pacings[i] = &worker->pacing;
		summary->tx_stalled += atomic_load_explicit(&worker->stalled, memory_order_relaxed);
		summary->tx_starved += atomic_load_explicit(&worker->starved, memory_order_relaxed);
		summary->tx_bytes += atomic_load_explicit(&worker->bytes, memory_order_relaxed);
	}
	sender_rate(session, summary);
	switch (session->pacing.kind) {
	case PACING_BITS:
		summary->asked_gbps = session->pacing.value / 1e9;
		break;
	case PACING_FRAMES:
		summary->asked_mpps = session->pacing.value / 1e6;
		break;
	case PACING_ORIGINAL:
		summary->asked_seconds = asked_seconds(session);
		break;
	default:
		return;
	}
	pacing_gaps(pacings, session->tx_count, &gaps);
	if (gaps.count == 0)
		return;
	summary->known |= GDRCAP_HAS_PACE;
	summary->gap_p50_ns = gaps.p50_ns;
	summary->gap_p99_ns = gaps.p99_ns;
	summary->gap_max_ns = gaps.max_ns;
}
