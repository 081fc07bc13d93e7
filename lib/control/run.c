/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's run: consumer, receivers, senders are started in this order and end in reverse. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "log.h"
#include "session.h"

#define TICK_US 1000u /* of gdrcap_wait_end() */
#define DRAIN_MS 60u /* a stop waits for frames in flight until none came for so long */
#define DRAIN_MOST_MS 2000u
#define CONSUMER_MS 2000u /* and so long for a consumer that still makes progress */
#define LEAVE_MS 1000u /* workers on the device leave within 100 ms; a fault is certain after this */

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
static uint64_t session_arrived(struct gdrcap_session *session)
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

static uint64_t bursts_published(const struct gdrcap_session *session)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < session->rx_count; i++)
		n += atomic_load_explicit(&session->rx[i].ring.published, memory_order_relaxed);
	return n;
}

static uint64_t bursts_collected(const struct gdrcap_session *session)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < session->rx_count; i++)
		n += atomic_load_explicit(&session->rx[i].ring.collected, memory_order_relaxed);
	return n;
}

static bool tsc_older(uint64_t since, uint64_t ms)
{
	return rte_rdtsc() - since > ms * (rte_get_tsc_hz() / 1000);
}

/* ---- start ---- */

/* Threads of the run: where there are not cores for each, all share all. */
static uint32_t threads_planned(const struct gdrcap_session *session)
{
	const uint32_t blocks = session->plan.cuda ? 0 : session->config.blocks ? session->config.blocks : 1;

	return session->rx_count * (1 + blocks) + session->tx_count * (1 + !session->plan.cuda) + 1;
}

struct cpu_deal {
	const struct gdrcap_session *session;
	uint32_t next;
	bool shared;
};

static void cpu_next(struct cpu_deal *deal, cpu_set_t *set)
{
	CPU_ZERO(set);
	if (deal->shared)
		for (uint32_t i = 0; i < deal->session->cpu_count; i++)
			CPU_SET((size_t)deal->session->cpus[i], set);
	else
		CPU_SET((size_t)deal->session->cpus[deal->next++], set);
}

static int device_job_start(struct gdrcap_session *session, enum kernel_role role,
			    struct cpu_deal *deal, struct kernel_workers **workers,
			    struct gdrcap_error *error)
{
	const bool check = role == KERNEL_CHECK;
	const uint32_t count = check ? session->rx_count : session->tx_count;
	struct burst_ring_view views[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct kernel_job job = {
		.role = role,
		.rings = views,
		.ring_count = count,
		.workers_per_ring = check ? session->config.blocks : 0,
		.frame_bytes_hint = session->plan.frame_bytes_max,
		.layout = session->layout,
		.plan = session->pattern,
	};
	int ret;

	for (uint32_t i = 0; i < count; i++)
		views[i] = check ? session->rx[i].ring.view : session->tx[i].ring.view;
	if (!session->plan.cuda && !deal->shared) {
		job.cpus = &session->cpus[deal->next];
		job.cpu_count = count * (check && session->config.blocks ? session->config.blocks : 1);
		deal->next += job.cpu_count;
	}
	ret = session->ops->start(session->device, &job, workers);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	if (check)
		session->blocks = session->ops->workers_per_ring(*workers);
	return 0;
}

static int senders_start(struct gdrcap_session *session, struct cpu_deal *deal,
			 struct gdrcap_error *error)
{
	int ret = device_job_start(session, KERNEL_WRITE, deal, &session->write, error);

	for (uint32_t i = 0; ret == 0 && i < session->tx_count; i++) {
		struct tx_worker *worker = &session->tx[i];
		cpu_set_t cpus;
		char name[24];

		snprintf(name, sizeof(name), "gdrcap-tx%u", i);
		cpu_next(deal, &cpus);
		ret = thread_start(&worker->thread, name, &cpus, tx_worker_run, worker, error);
	}
	return ret;
}

static int receivers_start(struct gdrcap_session *session, struct cpu_deal *deal,
			   struct gdrcap_error *error)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < session->rx_count; i++) {
		struct rx_worker *worker = &session->rx[i];
		cpu_set_t cpus;
		char name[24];

		snprintf(name, sizeof(name), "gdrcap-rx%u", i);
		cpu_next(deal, &cpus);
		ret = thread_start(&worker->thread, name, &cpus, rx_worker_run, worker, error);
	}
	return ret;
}

int gdrcap_start(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const bool validate = session->config.consumer == GDRCAP_CONSUMER_VALIDATE;
	struct cpu_deal deal = { .session = session };
	cpu_set_t cpus;
	int ret = 0;

	pthread_mutex_lock(&session->run_lock);
	if (session->state != SESSION_CREATED) {
		pthread_mutex_unlock(&session->run_lock);
		return error_set(error, -EALREADY, "a session runs once; create another");
	}
	deal.shared = threads_planned(session) > session->cpu_count;
	session->state = SESSION_RUNNING;
	session->start_tsc = rte_rdtsc();
	session->progress_tsc = session->start_tsc;
	session->quiet_tsc = session->start_tsc;
	/* Receivers take the first, nearest cores. */
	ret = receivers_start(session, &deal, error);
	if (ret == 0 && validate)
		ret = device_job_start(session, KERNEL_CHECK, &deal, &session->check, error);
	if (ret == 0 && validate) {
		cpu_next(&deal, &cpus);
		ret = accountant_start(&session->accountant, &cpus, error);
	}
	if (ret == 0 && session->tx_count)
		ret = senders_start(session, &deal, error);
	if (ret < 0)
		session->failure = ret;
	pthread_mutex_unlock(&session->run_lock);
	if (ret < 0)
		gdrcap_stop(session, NULL);
	return ret;
}

/* ---- while it runs ---- */

static void run_end(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->tx_count; i++)
		atomic_store_explicit(&session->tx[i].stop, 1, memory_order_relaxed);
	session->quiet_tsc = rte_rdtsc();
	atomic_store(&session->ending, 1);
}

static void run_fail(struct gdrcap_session *session, int code, const char *what)
{
	if (session->failure)
		return;
	session->failure = code;
	session_message(session, GDRCAP_LOG_ERROR, "the run ends: %s", what);
	run_end(session);
}

static void watch_device(struct gdrcap_session *session, struct kernel_workers *workers)
{
	if (workers && session->ops->running(workers) < 0)
		run_fail(session, -EIO, kernel_error());
}

/* A consumer that makes no progress is reported, and that it moves again too; nobody quits for it. */
static void watch_consumer(struct gdrcap_session *session)
{
	const uint64_t collected = bursts_collected(session);
	const uint32_t limit_ms = session->config.watchdog_ms;

	if (session->config.consumer != GDRCAP_CONSUMER_VALIDATE)
		return;
	if (collected != session->progress_count || collected == bursts_published(session)) {
		if (session->stuck)
			session_message(session, GDRCAP_LOG_WARNING, "the consumer moves again");
		session->stuck = false;
		session->progress_count = collected;
		session->progress_tsc = rte_rdtsc();
	} else if (!session->stuck && limit_ms && tsc_older(session->progress_tsc, limit_ms)) {
		session->stuck = true;
		session_message(session, GDRCAP_LOG_WARNING,
				"the consumer has made no progress for %u ms with %llu bursts waiting: is "
				"the GPU busy with another process (nvidia-smi), or a debugger attached?",
				limit_ms,
				(unsigned long long)(bursts_published(session) - collected));
	}
}

static void watch_flush(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->rx_count; i++)
		if (atomic_load_explicit(&session->rx[i].flush_error, memory_order_relaxed))
			run_fail(session, -EIO,
				 "the GPU refused to flush GPUDirect RDMA writes; try --flush none on a "
				 "device that orders them (gdrcap prints which do)");
}

static bool run_is_over(const struct gdrcap_session *session)
{
	const struct gdrcap_config *config = &session->config;
	bool sending = session->tx_count == 0;

	if (config->seconds_ms && tsc_older(session->start_tsc, config->seconds_ms))
		return true;
	for (uint32_t i = 0; i < session->tx_count; i++)
		sending |= !atomic_load_explicit(&session->tx[i].finished, memory_order_acquire);
	return !sending || (session->tx_count == 0 && config->frames &&
			    session_received(session) >= config->frames);
}

/* Nothing of the sender's is in flight: all of it came, or nothing came for quiet_ms and the consumer
 * is through with what was there then, unless it is stuck. Others' frames may come for ever, so without
 * a sender there is nothing to wait for: the stop takes what was received. */
static bool run_is_quiet(struct gdrcap_session *session)
{
	uint64_t arrived;

	for (uint32_t i = 0; i < session->tx_count; i++)
		if (!atomic_load_explicit(&session->tx[i].finished, memory_order_acquire))
			return false;
	arrived = session_arrived(session);
	if (session->tx_count == 0 || arrived >= session_sent(session))
		return true;
	if (arrived != session->quiet_count) {
		session->quiet_count = arrived;
		session->quiet_tsc = rte_rdtsc();
		session->quiet_bursts = 0;
	}
	if (!tsc_older(session->quiet_tsc, session->config.quiet_ms))
		return false;
	if (session->quiet_bursts == 0)
		session->quiet_bursts = bursts_published(session);
	return session->config.consumer != GDRCAP_CONSUMER_VALIDATE || session->stuck ||
	       session->failure || bursts_collected(session) >= session->quiet_bursts;
}

/* One look at everything. True when nothing more will come. */
static bool run_watch(struct gdrcap_session *session)
{
	watch_device(session, session->check);
	watch_device(session, session->write);
	watch_flush(session);
	watch_consumer(session);
	if (!atomic_load(&session->ending) && run_is_over(session))
		run_end(session);
	return atomic_load(&session->ending) && run_is_quiet(session);
}

int gdrcap_wait_end(struct gdrcap_session *session, uint32_t timeout_ms)
{
	const struct timespec tick = { .tv_nsec = TICK_US * 1000 };
	const uint64_t since = rte_rdtsc();
	bool over;

	for (;;) {
		/* Another thread may stop the session meanwhile. */
		pthread_mutex_lock(&session->run_lock);
		over = session->state != SESSION_RUNNING || run_watch(session);
		pthread_mutex_unlock(&session->run_lock);
		if (over || timeout_ms == 0 || tsc_older(since, timeout_ms))
			return over;
		nanosleep(&tick, NULL);
	}
}

/* ---- stop ---- */

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
		run_end(session);
	for (uint32_t i = 0; i < session->tx_count; i++)
		thread_join(&session->tx[i].thread);
}

/*
 * Frames on the wire arrive while the receivers still run. An idle machine has them within a few ms;
 * a loaded one gets time for as long as some still come, since a frame left behind would be called
 * lost.
 */
static void drain_wire(struct gdrcap_session *session)
{
	const struct timespec tick = { .tv_nsec = TICK_US * 1000 };
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
		const unsigned int left = gone_ms < timeout_ms ? timeout_ms - (unsigned int)gone_ms : 0;

		all &= thread_join_within(&session->rx[i].thread, left);
	}
	return all;
}

static void receivers_phase(struct gdrcap_session *session, enum rx_phase phase)
{
	for (uint32_t i = 0; i < session->rx_count; i++)
		atomic_store_explicit(&session->rx[i].phase, (int)phase, memory_order_relaxed);
}

/* Each has published its last burst, and receives nothing more. */
static void receivers_end(struct gdrcap_session *session)
{
	const struct timespec tick = { .tv_nsec = TICK_US * 1000 };
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
		collected = bursts_collected(session);
		if (receivers_join(session, CONSUMER_MS))
			return;
	} while (!session->failure && bursts_collected(session) != collected);
	if (!session->failure)
		session->failure = -ETIMEDOUT;
	session_message(session, GDRCAP_LOG_ERROR,
			"the consumer is dead: %llu bursts stay unchecked",
			(unsigned long long)(bursts_published(session) - bursts_collected(session)));
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
			session_message(session, GDRCAP_LOG_ERROR, "port %s: %u of %u slots are back",
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
		session->end_tsc = rte_rdtsc();
		accountant_stop(&session->accountant);
		stop_words_set(session);
		device_job_join(session, &session->write, "frame writer");
		device_job_join(session, &session->check, "consumer");
		for (uint32_t i = 0; i < session->tx_count; i++)
			tx_worker_reclaim(&session->tx[i]);
		wires_empty(session);
		slots_check(session);
	}
	if (session->failure)
		return error_set(error, session->failure, "%s",
				 session->message_count ? session->messages[session->message_count - 1] :
							  strerror(-session->failure));
	return 0;
}
