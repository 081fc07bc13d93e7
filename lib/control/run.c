/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's run: its start, and the watch over it. Its end: stop.c. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include <rte_cycles.h>

#include "log.h"
#include "session.h"

/* Threads of the run: where there are not cores for each, all share all. */
static uint32_t threads_planned(const struct gdrcap_session *session)
{
	const uint32_t blocks = session->plan.cuda	 ? 0
				: session->config.blocks ? session->config.blocks
							 : 1;

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
		job.cpu_count =
			count * (check && session->config.blocks ? session->config.blocks : 1);
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

void session_end(struct gdrcap_session *session)
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
	session_end(session);
}

static void watch_device(struct gdrcap_session *session, struct kernel_workers *workers)
{
	if (workers && session->ops->running(workers) < 0)
		run_fail(session, -EIO, kernel_error());
}

void session_moves(struct gdrcap_session *session)
{
	if (session->stuck)
		session_message(session, GDRCAP_LOG_WARNING, "the consumer moves again");
	session->stuck = false;
}

/* A consumer that makes no progress is reported, and that it moves again too; nobody quits for it.
 */
static void watch_consumer(struct gdrcap_session *session)
{
	const uint64_t collected = session_bursts_collected(session);
	const uint32_t limit_ms = session->config.watchdog_ms;

	if (session->config.consumer != GDRCAP_CONSUMER_VALIDATE)
		return;
	if (collected != session->progress_count ||
	    collected == session_bursts_published(session)) {
		session_moves(session);
		session->progress_count = collected;
		session->progress_tsc = rte_rdtsc();
	} else if (!session->stuck && limit_ms && tsc_older(session->progress_tsc, limit_ms)) {
		session->stuck = true;
		session_message(
			session, GDRCAP_LOG_WARNING,
			"the consumer has made no progress for %u ms with %llu bursts waiting: is "
			"the GPU busy with another process (nvidia-smi), or a debugger attached?",
			limit_ms,
			(unsigned long long)(session_bursts_published(session) - collected));
	}
}

static void watch_flush(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->rx_count; i++)
		if (atomic_load_explicit(&session->rx[i].flush_error, memory_order_relaxed))
			run_fail(session, -EIO,
				 "the GPU refused to flush GPUDirect RDMA writes; try --flush none "
				 "on a "
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

/* Nothing of the sender's is in flight: all of it came, or nothing came for quiet_ms and the
 * consumer is through with what was there then, unless it is stuck. Others' frames may come for
 * ever, so without a sender there is nothing to wait for: the stop takes what was received. */
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
		session->quiet_bursts = session_bursts_published(session);
	return session->config.consumer != GDRCAP_CONSUMER_VALIDATE || session->stuck ||
	       session->failure || session_bursts_collected(session) >= session->quiet_bursts;
}

/* One look at everything. True when nothing more will come. */
static bool run_watch(struct gdrcap_session *session)
{
	watch_device(session, session->check);
	watch_device(session, session->write);
	watch_flush(session);
	watch_consumer(session);
	if (!atomic_load(&session->ending) && run_is_over(session))
		session_end(session);
	return atomic_load(&session->ending) && run_is_quiet(session);
}

int gdrcap_wait_end(struct gdrcap_session *session, uint32_t timeout_ms)
{
	const struct timespec tick = { .tv_nsec = SESSION_TICK_NS };
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
