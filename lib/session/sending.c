/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's send queues in the hands of the caller: made, watched, stopped, counted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/clock.h"
#include "base/eal.h"
#include "base/log.h"
#include "session/answer.h"
#include "session/session.h"

#define BACK_MS 500u /* for slots that the caller is collecting just now */

const struct port *session_sending_port(const struct gdrcap_session *session, uint32_t i)
{
	const struct session_pair *pair = &session->ports.pairs[i / session->settings.queues];

	return pair->both ? &pair->rx : &pair->tx;
}

int session_sending_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct settings *settings = &session->settings;
	struct session_sending *sending = &session->sending;
	const uint32_t count = settings->ports * settings->queues;
	int ret;

	if (!settings_lends(settings))
		return 0;
	/* Aligned: cache lines have one writer each. */
	sending->queues = aligned_alloc(SEND_LINE, count * sizeof(*sending->queues));
	if (!sending->queues)
		return error_set(error, -ENOMEM, "no memory for %u send queues", count);
	ret = session_sending_gpu_create(session, count, error);
	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < count; i++) {
		struct session_pair *pair = &session->ports.pairs[i / settings->queues];
		const struct port *port = session_sending_port(session, i);
		struct send_config config = {
			.port = port->id,
			.queue = (uint16_t)(i % settings->queues),
			.burst = settings->burst,
			.region = session_sending_region(session),
			.pool = pair->tx_pool[i % settings->queues],
			.ops = session->memory.ops,
			.device = session->memory.device,
			.device_is_gpu = session->plan.cuda,
			.memories = sending->memories,
			.bytes_max = session->plan.frame_bytes_max - FRAME_FCS_BYTES,
			.idle_us = session->plan.idle_auto &&
						   settings->sender_thread == SENDER_THREAD_CALLER
					   ? 0
					   : session->plan.idle_us,
			.wire = settings->rx.port[i / settings->queues].wire,
			.direct = settings->sender_thread == SENDER_THREAD_CALLER,
			.turn = port->facts->writes == DRIVER_WRITES_DMA ? &pair->tx_turn : NULL,
			.gpu = session_sending_gpu_words(session, i),
			.gpu_slots = session->plan.pool_slots,
		};
		char name[RTE_MEMPOOL_NAMESIZE];

		snprintf(name, sizeof(name), "gc%u_s%u", session->number, i);
		if (port_has_tx_segments(port) && settings->sender == SENDER_HOST) {
			config.segments =
				rte_pktmbuf_pool_create(name, session->plan.pool_slots, 0,
							sizeof(uint64_t), 0, SOCKET_ID_ANY);
			if (!config.segments)
				return error_set(
					error, -rte_errno,
					"pool: no memory for the descriptors of second "
					"pieces: %s; ask for a smaller one; " EAL_MEMORY_REMEDY,
					rte_strerror(rte_errno));
		}
		ret = send_create(&sending->queues[i], &config, error);
		if (ret < 0)
			return ret;
		sending->count++;
	}
	return 0;
}

void session_sending_destroy(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->sending.count; i++)
		send_destroy(&session->sending.queues[i]);
	session_memory_destroy(session);
	region_destroy(&session->sending.gpu);
	free(session->sending.queues);
	session->sending = (struct session_sending){ 0 };
}

void session_sending_end(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->sending.count; i++) {
		send_gpu_stop(&session->sending.queues[i].gpu);
		atomic_store_explicit(&session->sending.queues[i].stop, 1, memory_order_relaxed);
		wake_look(&session->sending.queues[i].work);
	}
}

void session_sending_join(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->sending.count; i++) {
		struct gdrcap_tx *tx = &session->sending.queues[i];

		session_worker_join(session, &tx->thread);
		/* The start failed before this thread's: what was submitted is told to be unsent. */
		if (!tx->thread.body) {
			atomic_store_explicit(&tx->hold, SEND_LINK_UNSEEN, memory_order_relaxed);
			send_body(tx)(tx);
		}
	}
}

void session_sending_hold(struct gdrcap_session *session, uint32_t p, bool hold)
{
	for (uint32_t q = 0; session->sending.count && q < session->settings.queues; q++) {
		struct gdrcap_tx *tx = &session->sending.queues[p * session->settings.queues + q];

		atomic_store_explicit(&tx->hold, hold ? SEND_LINK_DOWN : SEND_LINK_UP,
				      memory_order_relaxed);
		wake_look(&tx->work);
	}
}

void session_sending_look(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->sending.count; i += session->settings.queues)
		session_sending_hold(session, i / session->settings.queues,
				     !port_link_up(session_sending_port(session, i)));
}

/* ---- a port that is started again ---- */

static void sending_set(struct gdrcap_session *session, uint32_t p, enum send_phase phase)
{
	for (uint32_t q = 0; q < session->settings.queues; q++) {
		struct gdrcap_tx *tx = &session->sending.queues[p * session->settings.queues + q];

		/* SEND_RUN: after the last access to the port. Partner: the acquire load in
		 * send_pause(). */
		atomic_store_explicit(&tx->phase, (int)phase, memory_order_release);
		wake_look(&tx->work);
	}
}

/* After its last access to the port. Partner: the release store in send_pause(). */
static int sending_paused(const struct gdrcap_session *session, uint32_t i)
{
	return atomic_load_explicit(&session->sending.queues[i].paused, memory_order_acquire);
}

bool session_sending_pause(struct gdrcap_session *session, uint32_t p)
{
	const uint64_t since = rte_rdtsc();
	uint64_t at_port = 0;

	if (!session->ports.pairs[p].both)
		return true;
	/* One that has not left the last pause would be taken for one in this. */
	if (!session_threads_are(session, p, sending_paused, 0, since))
		return false;
	sending_set(session, p, SEND_PAUSE);
	if (!session_threads_are(session, p, sending_paused, 1, since)) {
		sending_set(session, p, SEND_RUN);
		return false;
	}
	for (uint32_t q = 0; q < session->settings.queues; q++)
		at_port += atomic_load_explicit(
			&session->sending.queues[p * session->settings.queues + q].at_port,
			memory_order_relaxed);
	if (at_port)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"port %s: it is started again; frames that it took last, of which it is not known whether they were sent: %llu",
			session->ports.pairs[p].rx.name, (unsigned long long)at_port);
	return true;
}

void session_sending_go_on(struct gdrcap_session *session, uint32_t p)
{
	if (session->ports.pairs[p].both)
		sending_set(session, p, SEND_RUN);
}

/* ---- the end ---- */

uint64_t session_sending_sent(const struct gdrcap_session *session)
{
	uint64_t sent = 0;

	for (uint32_t i = 0; i < session->sending.count; i++)
		sent += atomic_load_explicit(&session->sending.queues[i].sent,
					     memory_order_relaxed);
	return sent;
}

uint32_t session_sending_back(const struct gdrcap_session *session, uint32_t i)
{
	const struct gdrcap_tx *tx = &session->sending.queues[i];
	const uint32_t slots = session->plan.pool_slots;
	const uint64_t since = rte_rdtsc();
	uint32_t back;

	/* Those that the port does not have are the caller's. He may be collecting some just now. */
	do {
		back = slots - (uint32_t)atomic_load_explicit(&tx->at_port, memory_order_relaxed) +
		       rte_mempool_avail_count(tx->config.pool);
		if (back != slots)
			sleep_ms(SESSION_TICK_MS);
	} while (back != slots && !tsc_older(since, BACK_MS));
	return back;
}

void session_sending_judge(struct gdrcap_session *session)
{
	uint64_t unsent = 0;

	for (uint32_t i = 0; i < session->sending.count; i++)
		unsent += atomic_load_explicit(&session->sending.queues[i].unsent,
					       memory_order_relaxed);
	if (unsent)
		session_message(session, GDRCAP_LOG_WARNING,
				"frames submitted and not sent: %llu; they waited for a stream, "
				"for their time, for the link or for the port when the run ended",
				(unsigned long long)unsent);
	session_sending_gpu_judge(session);
}

/* ---- for the caller ---- */

struct gdrcap_tx *gdrcap_get_tx(struct gdrcap_session *session, uint32_t index)
{
	if (guest_check(session, "session", NULL) < 0)
		return NULL;
	return index < session->sending.count ? &session->sending.queues[index] : NULL;
}

static struct gdrcap_tx_counts queue_counts(const struct gdrcap_session *session, uint32_t index)
{
	const struct gdrcap_tx *tx = &session->sending.queues[index];
	struct gdrcap_tx_counts all = { 0 };
	struct port_counters port = { 0 };
	uint64_t from, to;

	/* In the order of a frame's way, backwards: none is counted at two places. */
	all.at_port = atomic_load_explicit(&tx->at_port, memory_order_relaxed);
	all.unsent = atomic_load_explicit(&tx->unsent, memory_order_acquire);
	all.sent = atomic_load_explicit(&tx->sent, memory_order_acquire);
	all.refused = atomic_load_explicit(&tx->refused, memory_order_acquire);
	all.bytes = atomic_load_explicit(&tx->bytes_sent, memory_order_relaxed);
	all.stalled = atomic_load_explicit(&tx->stalled, memory_order_relaxed);
	all.submitted = atomic_load_explicit(&tx->submitted, memory_order_relaxed);
	if (all.submitted == SEND_CLOSED)
		all.submitted = RTE_MAX(atomic_load_explicit(&tx->closed_at, memory_order_relaxed),
					all.sent + all.unsent);
	all.submitted += all.refused;
	from = atomic_load_explicit(&tx->first_tsc, memory_order_relaxed);
	to = atomic_load_explicit(&tx->last_tsc, memory_order_relaxed);
	if (to > from)
		all.seconds = (double)(to - from) / (double)rte_get_tsc_hz();
	if (index % session->settings.queues == 0) {
		const struct session_pair *pair =
			&session->ports.pairs[index / session->settings.queues];

		session_port_counters(session, session_sending_port(session, index), &port);
		all.failed_known = session_sending_port(session, index)->facts->tx_error_counted &&
				   !pair->tx_unseen;
		/* What others' drivers call errors may be sent after all, or be no frames. */
		all.failed = all.failed_known ? port.tx_error : 0;
		all.failed += pair->tx_unwritten;
	}
	return all;
}

int gdrcap_get_tx_counts(const struct gdrcap_session *session, uint32_t index,
			 struct gdrcap_tx_counts *counts, size_t size)
{
	const int ret = answer_check(session, "session", counts, size);
	struct gdrcap_tx_counts all;

	if (ret < 0)
		return ret;
	if (index >= session->sending.count)
		return -ENOENT;
	LOG_SCOPE(&session->log);
	all = queue_counts(session, index);
	answer_give(counts, size, &all, sizeof(all));
	return 0;
}

void session_sending_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	bool known = true;

	for (uint32_t i = 0; i < session->sending.count; i++) {
		const struct gdrcap_tx_counts counts = queue_counts(session, i);

		summary->sending_submitted += counts.submitted;
		summary->sending_sent += counts.sent;
		summary->sending_unsent += counts.unsent;
		summary->sending_bytes += counts.bytes;
		summary->sending_stalled += counts.stalled;
		summary->sending_failed += counts.failed;
		summary->sending_refused += counts.refused;
		/* A port's are told with its first queue. */
		known &= counts.failed_known || i % session->settings.queues;
	}
	if (session->sending.count == 0)
		return;
	summary->known |= GDRCAP_HAS_SENDING;
	if (known)
		summary->known |= GDRCAP_HAS_SENDING_FAILED;
	else
		summary->sending_failed = 0;
}
