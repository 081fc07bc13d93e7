/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run: senders, the wire, receivers, then the workers on the device. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "log.h"
#include "session.h"

#define DRAIN_MS 60u /* a stop waits for frames in flight until none came for so long */
#define DRAIN_MOST_MS 2000u
#define CONSUMER_MS 2000u /* and so long for a consumer that still makes progress */
#define LEAVE_MS                                                                                   \
	1000u /* workers on the device leave within 100 ms; a fault is certain after this */

#define RATE_MISSED 0.99 /* a rate below this part of the one asked for was not reached */
#define RATE_SLACK_S 0.002 /* of a file's times: a start and an end */

static void stop_words_set(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->rx_count; i++)
		/* STOP: no data depends on it. */
		__atomic_store_n(session->rx[i].ring.stop, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < session->tx_count; i++)
		__atomic_store_n(session->tx[i].ring.stop, 1, __ATOMIC_RELAXED);
}

static void device_job_join(struct gdrcap_session *session, struct kernel_workers **workers,
			    const char *what)
{
	int ret;

	if (!*workers)
		return;
	ret = session->ops->join(*workers, LEAVE_MS);
	if (ret < 0) {
		if (!session->failure)
			session->failure = ret;
		session->stranded |= ret == -ETIMEDOUT;
		session_message(session, GDRCAP_LOG_ERROR, "the %s did not end well: %s", what,
				kernel_error());
	}
	*workers = NULL;
}

static void senders_stop(struct gdrcap_session *session)
{
	if (!atomic_load(&session->ending))
		session_end(session);
	for (uint32_t i = 0; i < session->tx_count; i++)
		thread_join(&session->tx[i].thread);
}

/*
 * Frames on the wire arrive while the receivers still run. An idle machine has them within a few
 * ms; a loaded one gets time for as long as some still come, since a frame left behind would be
 * called lost.
 */
static void drain_wire(struct gdrcap_session *session)
{
	const struct timespec tick = { .tv_nsec = SESSION_TICK_NS };
	const uint64_t since = rte_rdtsc();
	uint64_t arrived = 0, last = since;

	while (session->tx_count && !session->failure && !tsc_older(last, DRAIN_MS) &&
	       !tsc_older(since, DRAIN_MOST_MS)) {
		const uint64_t now = session_arrived(session);

		if (now >= session_sent(session))
			return;
		if (now != arrived)
			last = rte_rdtsc();
		arrived = now;
		nanosleep(&tick, NULL);
	}
}

static bool receivers_join(struct gdrcap_session *session, unsigned int timeout_ms)
{
	const uint64_t since = rte_rdtsc();
	bool all = true;

	for (uint32_t i = 0; i < session->rx_count; i++) {
		const uint64_t gone_ms = (rte_rdtsc() - since) * 1000 / rte_get_tsc_hz();
		const unsigned int left =
			gone_ms < timeout_ms ? timeout_ms - (unsigned int)gone_ms : 0;

		all &= thread_join_within(&session->rx[i].thread, left);
	}
	return all;
}

static void receivers_phase(struct gdrcap_session *session, enum rx_phase phase)
{
	for (uint32_t i = 0; i < session->rx_count; i++)
		atomic_store_explicit(&session->rx[i].phase, (int)phase, memory_order_relaxed);
}

/* The files get what is still in the buffer, and what the run lost. */
static void saver_stop(struct gdrcap_session *session)
{
	struct gdrcap_error error;
	int ret;

	if (!session->save)
		return;
	for (uint32_t q = 0; q < session->rx_count; q++) {
		struct port_counters counters;

		/* A port's own counters are told with its first queue. */
		port_counters(&session->pairs[q / session->plan.queues].rx, &counters);
		save_set_lost(session->save, q,
			      atomic_load_explicit(&session->rx[q].frames, memory_order_relaxed),
			      q % session->plan.queues ? 0 : counters.missed + counters.error);
	}
	ret = save_finish(session->save, &error);
	if (ret < 0)
		session_message(session, GDRCAP_LOG_WARNING, "%s", error.text);
}

/* Says where the sender did not do what was asked. */
static void sender_judge(struct gdrcap_session *session)
{
	struct gdrcap_summary summary = { 0 };

	session_sender_summary(session, &summary);
	if (session->tx_count == 0 || summary.tx_seconds <= 0)
		return;
	if (summary.asked_gbps > 0 && summary.tx_gbps < RATE_MISSED * summary.asked_gbps)
		session_message(session, GDRCAP_LOG_WARNING,
				"the rate was not reached: %.3f Gb/s of %.3f; the port, or this "
				"machine's cores, cannot do more", summary.tx_gbps,
				summary.asked_gbps);
	if (summary.asked_mpps > 0 && summary.tx_mpps < RATE_MISSED * summary.asked_mpps)
		session_message(session, GDRCAP_LOG_WARNING,
				"the rate was not reached: %.6f Mpps of %.6f; the port, or this "
				"machine's cores, cannot do more", summary.tx_mpps,
				summary.asked_mpps);
	if (summary.asked_seconds > 0 &&
	    RATE_MISSED * summary.tx_seconds > summary.asked_seconds + RATE_SLACK_S)
		session_message(session, GDRCAP_LOG_WARNING,
				"the file's times were not kept: it took %.3f s instead of %.3f; the "
				"port, or this machine's cores, cannot do more", summary.tx_seconds,
				summary.asked_seconds);
}

/* Each has published its last burst, and receives nothing more. */
static void receivers_end(struct gdrcap_session *session)
{
	const struct timespec tick = { .tv_nsec = SESSION_TICK_NS };
	const uint64_t since = rte_rdtsc();

	receivers_phase(session, RX_DRAIN);
	for (uint32_t i = 0; i < session->rx_count; i++) {
		struct rx_worker *worker = &session->rx[i];

		if (!worker->thread.running) /* never was: the start failed */
			atomic_store(&worker->ring.ended, 1);
		while (!atomic_load(&worker->ring.ended) && !tsc_older(since, CONSUMER_MS))
			nanosleep(&tick, NULL);
	}
}

static void receivers_stop(struct gdrcap_session *session)
{
	const bool validate = session->config.consumer == GDRCAP_CONSUMER_VALIDATE;
	uint64_t collected;

	receivers_end(session);
	if (!validate) {
		/* The caller may keep batches; whoever destroys the session ends these threads. */
		receivers_join(session, DRAIN_MS);
		return;
	}
	do {
		collected = session_bursts_collected(session);
		if (receivers_join(session, CONSUMER_MS)) {
			session_moves(session);
			return;
		}
	} while (!session->failure && session_bursts_collected(session) != collected);
	if (!session->failure)
		session->failure = -ETIMEDOUT;
	session_message(
		session, GDRCAP_LOG_ERROR,
		"the consumer is dead: %llu bursts stay unchecked, and their frames count as lost",
		(unsigned long long)(session_bursts_published(session) -
				     session_bursts_collected(session)));
	receivers_phase(session, RX_ABANDON);
	receivers_join(session, CONSUMER_MS);
}

/* What is still on a software wire when nobody receives any more. */
static void wires_empty(struct gdrcap_session *session)
{
	struct rte_mbuf *mbufs[64];

	for (uint32_t p = 0; p < session->plan.ports; p++)
		for (uint16_t q = 0; session->plan.wire[p] && q < session->plan.queues; q++) {
			uint16_t n;

			while ((n = rte_eth_rx_burst(session->pairs[p].rx.id, q, mbufs, 64)) != 0)
				rte_pktmbuf_free_bulk(mbufs, n);
		}
}

/* Every slot is back where no card holds some in its queues: a leak is an error of ours, unless the
 * caller still has batches. */
static void slots_check(struct gdrcap_session *session)
{
	if (!receivers_join(session, 0))
		return;
	for (uint32_t p = 0; p < session->plan.ports; p++) {
		const struct rte_mempool *pool = session->pairs[p].rx_pool;

		if (session->plan.wire[p] && !session->failure &&
		    rte_mempool_avail_count(pool) != session->plan.pool_slots)
			session_message(session, GDRCAP_LOG_ERROR,
					"port %s: %u of %u slots are back",
					session->pairs[p].rx.name, rte_mempool_avail_count(pool),
					session->plan.pool_slots);
	}
}

void session_abandon(struct gdrcap_session *session)
{
	receivers_phase(session, RX_ABANDON);
	receivers_join(session, CONSUMER_MS);
}

int gdrcap_stop(struct gdrcap_session *session, struct gdrcap_error *error)
{
	bool running;

	pthread_mutex_lock(&session->run_lock);
	running = session->state == SESSION_RUNNING;
	if (running)
		session->state = SESSION_STOPPED;
	pthread_mutex_unlock(&session->run_lock);
	if (running) {
		senders_stop(session);
		drain_wire(session);
		receivers_stop(session);
		accountant_stop(&session->accountant);
		saver_stop(session);
		stop_words_set(session);
		device_job_join(session, &session->write, "frame writer");
		device_job_join(session, &session->check, "consumer");
		for (uint32_t i = 0; i < session->tx_count; i++)
			tx_worker_reclaim(&session->tx[i]);
		sender_judge(session);
		wires_empty(session);
		slots_check(session);
	}
	if (session->failure)
		return error_set(error, session->failure, "%s",
				 session->failure_text[0] ? session->failure_text :
							    strerror(-session->failure));
	return 0;
}
