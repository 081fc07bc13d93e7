/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a run is: sums over its workers' counters. */
#include <rte_common.h>
#include <rte_cycles.h>

#include "session/session.h"

uint64_t session_sent(const struct gdrcap_session *session)
{
	uint64_t sent = 0;

	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		sent += atomic_load_explicit(&session->workers.tx[i].sent, memory_order_relaxed);
	return sent;
}

bool session_sends_itself(const struct gdrcap_session *session)
{
	return session->workers.tx_count ||
	       (session->sending.count && session->settings.rx.port[0].wire);
}

uint64_t session_handed_over(const struct gdrcap_session *session)
{
	return session_sent(session) + session_sending_sent(session);
}

uint64_t session_received(const struct gdrcap_session *session)
{
	uint64_t received = 0;

	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		received +=
			atomic_load_explicit(&session->workers.rx[i].frames, memory_order_relaxed);
	return received;
}

/* Frames of our sender that have arrived. Frames of a custom layout and second copies must not end the wait
 * for the sender's own; a consumer that is the caller's does not say which are which. */
uint64_t session_arrived(struct gdrcap_session *session)
{
	uint64_t arrived;

	if (!settings_validates(&session->settings))
		return session_received(session);
	arrived = accountant_borrow(&session->workers.accountant)->unique;
	accountant_return(&session->workers.accountant);
	return arrived;
}

uint64_t session_stream_sent(const struct gdrcap_session *session, uint32_t id)
{
	const struct tx_worker *worker;

	if (session->workers.tx_count == 0 || id < session->settings.first_stream)
		return 0;
	id -= session->settings.first_stream;
	worker = &session->workers.tx[id % session->workers.tx_count];
	if (id / session->workers.tx_count >= worker->config.stream_count)
		return 0;
	return atomic_load_explicit(&worker->streams[id / session->workers.tx_count].sent,
				    memory_order_relaxed);
}

uint64_t session_bursts_published(const struct gdrcap_session *session)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		n += atomic_load_explicit(&session->workers.rx[i].ring.published,
					  memory_order_relaxed);
	return n;
}

uint64_t session_bursts_collected(const struct gdrcap_session *session)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		n += atomic_load_explicit(&session->workers.rx[i].ring.accounted,
					  memory_order_relaxed);
	return n;
}

/* Each sender's rate is what it handed over before its last hand-over, in the time between its first
 * and its last: n frames have n - 1 gaps. The rates add up. */
static void sender_rate(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	const double hz = (double)rte_get_tsc_hz();
	uint64_t first = UINT64_MAX, last = 0;

	for (uint32_t i = 0; i < session->workers.tx_count; i++) {
		const struct tx_worker *worker = &session->workers.tx[i];
		const uint64_t from =
			atomic_load_explicit(&worker->first_tsc, memory_order_relaxed);
		const uint64_t to = atomic_load_explicit(&worker->last_tsc, memory_order_relaxed);
		uint64_t frames, bytes;

		if (from == 0)
			continue;
		first = RTE_MIN(first, from);
		last = RTE_MAX(last, to);
		if (to <= from)
			continue;
		frames = atomic_load_explicit(&worker->sent, memory_order_relaxed) -
			 atomic_load_explicit(&worker->last_frames, memory_order_relaxed);
		bytes = atomic_load_explicit(&worker->bytes, memory_order_relaxed) -
			atomic_load_explicit(&worker->last_bytes, memory_order_relaxed);
		summary->tx_mpps += (double)frames * hz / (double)(to - from) / 1e6;
		summary->tx_gbps += 8.0 * (double)(bytes + PACING_WIRE_OVERHEAD * frames) * hz /
				    (double)(to - from) / 1e9;
	}
	if (last > first)
		summary->tx_seconds = (double)(last - first) / hz;
	if (first != UINT64_MAX && session->run.start_ns &&
	    tx_start_late(&session->workers.tx[0], first, &summary->start_late_ns))
		summary->known |= GDRCAP_HAS_START;
}

void session_sender_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	const struct pacing *pacings[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct pacing_gaps gaps;

	if (session->workers.tx_count == 0)
		return;
	summary->known |= GDRCAP_HAS_TX_STALLED;
	summary->start_ns = session->run.start_ns;
	for (uint32_t i = 0; i < session->workers.tx_count; i++) {
		const struct tx_worker *worker = &session->workers.tx[i];

		pacings[i] = &worker->pacing;
		summary->tx_stalled += atomic_load_explicit(&worker->stalled, memory_order_relaxed);
		summary->tx_starved += atomic_load_explicit(&worker->starved, memory_order_relaxed);
		summary->tx_bytes += atomic_load_explicit(&worker->bytes, memory_order_relaxed);
	}
	sender_rate(session, summary);
	switch (session->settings.pacing.kind) {
	case PACING_BITS:
		summary->asked_gbps = session->settings.pacing.value / 1e9;
		break;
	case PACING_FRAMES:
		summary->asked_mpps = session->settings.pacing.value / 1e6;
		break;
	case PACING_ORIGINAL:
		/* One worker's, at its last frame. */
		summary->asked_seconds =
			(double)atomic_load_explicit(&session->workers.tx[0].last_due,
						     memory_order_relaxed) /
			(double)rte_get_tsc_hz();
		break;
	default:
		return;
	}
	pacing_gaps(pacings, session->workers.tx_count, &gaps);
	if (gaps.count == 0)
		return;
	summary->known |= GDRCAP_HAS_PACE;
	summary->gap_p50_ns = gaps.p50_ns;
	summary->gap_p99_ns = gaps.p99_ns;
	summary->gap_max_ns = gaps.max_ns;
}
