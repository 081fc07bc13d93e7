/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a run is: sums over its workers' counters. */
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
		n += atomic_load_explicit(&session->rx[i].ring.collected, memory_order_relaxed);
	return n;
}
