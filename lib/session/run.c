/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's start. The watch over its run: watch.c; its end: stop.c. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/log.h"
#include "session/cpu_claim.h"
#include "session/session.h"

/* A thread of its own launches the kernels that place images. */
static bool launches(const struct gdrcap_session *session)
{
	return session->plan.cuda && session->images.count && !session->images.resident;
}

/* Threads of the run: where there are not cores for each, all share all. */
static uint32_t threads_planned(const struct gdrcap_session *session)
{
	const uint32_t blocks = session->plan.cuda	   ? 0
				: session->settings.blocks ? session->settings.blocks
							   : 1;

	return session->workers.rx_count * (!session->fronts.count + blocks) +
	       session->workers.tx_count * (1 + !session->plan.cuda) + session->sending.count +
	       (session->workers.rx_count != 0) + launches(session) +
	       (session->frames.file && session->frames.file->streamed);
}

/* How many threads of this process's sessions poll on each CPU. */
static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER;
static uint16_t users[CPU_SETSIZE];
static int claims[CPU_SETSIZE]; /* cpu_claim() + 1, where there are users; 0: none */

/* Those that nobody has come first; the order is else as it was, by NUMA node. */
static void cpus_sort(int *cpus, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		const int cpu = cpus[i];
		uint32_t at = i;

		for (; at > 0 && users[cpus[at - 1]] > users[cpu]; at--)
			cpus[at] = cpus[at - 1];
		cpus[at] = cpu;
	}
}

/* Claims the CPUs that are taken. Unless each was asked for, those that no other process has come first, and those
 * of this process's sessions last. Returns how many of them other processes have. */
static uint32_t cpus_claim(struct session_workers *workers, bool asked)
{
	uint32_t ours = 0, others = 0;

	for (uint32_t i = 0; i < workers->cpu_count && ours < workers->cpus_taken; i++) {
		const int cpu = workers->cpus[i];
		const int claim = users[cpu] ? -EADDRINUSE : cpu_claim(cpu);

		if (claim == -EADDRINUSE && !asked)
			continue;
		if (claim >= 0)
			claims[cpu] = claim + 1;
		others += claim == -EADDRINUSE && !users[cpu];
		memmove(&workers->cpus[ours + 1], &workers->cpus[ours],
			(i - ours) * sizeof(*workers->cpus));
		workers->cpus[ours++] = cpu;
	}
	for (; ours < workers->cpus_taken; ours++)
		others += !users[workers->cpus[ours]];
	return others;
}

void session_cpus_take(struct gdrcap_session *session)
{
	struct session_workers *workers = &session->workers;
	const uint32_t threads = threads_planned(session);
	const bool asked = session->settings.cores.count != 0;
	uint32_t others;

	workers->cpus_taken = RTE_MIN(threads, workers->cpu_count);
	workers->cpus_shared = threads > workers->cpu_count;
	pthread_mutex_lock(&users_lock);
	if (!asked)
		cpus_sort(workers->cpus, workers->cpu_count);
	others = cpus_claim(workers, asked);
	workers->cpus_shared |= others && !asked;
	for (uint32_t i = 0; i < workers->cpus_taken; i++) {
		/* Where they were asked for, each thread keeps its own all the same. */
		if (users[workers->cpus[i]]++ && !asked)
			workers->cpus_shared = true;
	}
	pthread_mutex_unlock(&users_lock);
	if (others)
		log_line(
			session->plan.idle_us ? GDRCAP_LOG_INFO : GDRCAP_LOG_WARNING,
			"%u of the %u CPUs for this session's threads are another process's that uses "
			"gdrcap too; give each process others (cores)",
			others, workers->cpus_taken);
}

void session_cpus_give(struct gdrcap_session *session)
{
	struct session_workers *workers = &session->workers;

	pthread_mutex_lock(&users_lock);
	for (uint32_t i = 0; i < workers->cpus_taken; i++) {
		const int cpu = workers->cpus[i];

		if (--users[cpu] || !claims[cpu])
			continue;
		close(claims[cpu] - 1);
		claims[cpu] = 0;
	}
	pthread_mutex_unlock(&users_lock);
	workers->cpus_taken = 0;
}

void session_cpus(const struct gdrcap_session *session, cpu_set_t *set)
{
	CPU_ZERO(set);
	for (uint32_t i = 0; i < session->workers.cpu_count; i++)
		CPU_SET((size_t)session->workers.cpus[i], set);
}

struct cpu_deal {
	const struct gdrcap_session *session;
	uint32_t next;
	bool shared;
};

static void cpu_next(struct cpu_deal *deal, cpu_set_t *set)
{
	if (deal->shared) {
		session_cpus(deal->session, set);
		return;
	}
	CPU_ZERO(set);
	CPU_SET((size_t)deal->session->workers.cpus[deal->next++], set);
}

/* The file's frames that the role compares with, or copies; NULL: layout and pattern say it. */
static const struct frame_store_view *job_store(const struct gdrcap_session *session,
						enum kernel_role role)
{
	const struct file_frames *file =
		role == KERNEL_WRITE ? session->frames.file : session->frames.expect;

	return file ? &file->view : NULL;
}

static int device_job_start(struct gdrcap_session *session, enum kernel_role role,
			    struct cpu_deal *deal, struct kernel_workers **workers,
			    struct gdrcap_error *error)
{
	const bool check = role != KERNEL_WRITE;
	const uint32_t count = check ? session->workers.rx_count : session->workers.tx_count;
	struct burst_ring_view views[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct kernel_job job = {
		.role = role,
		.rings = views,
		.ring_count = count,
		.workers_per_ring = check ? session->settings.blocks : 0,
		.frame_bytes_hint = session->plan.frame_bytes_max,
		.layout = session->frames.layout,
		.pattern = session->frames.pattern,
		.store = job_store(session, role),
		.places = session->images.view,
		.place_count = session->images.count,
		.resident = session->images.resident,
	};
	struct kernel_wakes wakes[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	struct kernel_workers *started = NULL;
	int ret;

	for (uint32_t i = 0; i < count; i++) {
		struct ring_producer *ring =
			check ? &session->workers.rx[i].ring : &session->workers.tx[i].ring;

		views[i] = ring->view;
		wakes[i].work = ring->work;
		wakes[i].done =
			check ? &session->workers.accountant.wake : &session->workers.tx[i].wake;
	}
	if (session_wakes(session))
		job.wakes = wakes;
	if (!session->plan.cuda && !deal->shared) {
		job.cpus = &session->workers.cpus[deal->next];
		job.cpu_count =
			count * (check && session->settings.blocks ? session->settings.blocks : 1);
		deal->next += job.cpu_count;
	} else if (check && launches(session)) {
		/* else it would share the caller's CPU, which may be one that another polls on */
		job.cpus = &session->workers.cpus[deal->shared ? 0 : deal->next];
		job.cpu_count = deal->shared ? session->workers.cpu_count : 1;
		deal->next += !deal->shared;
	}
	ret = session->memory.ops->start(session->memory.device, &job, &started);
	if (ret < 0)
		return error_set(error, ret, "%s", kernel_error());
	guest_lock();
	*workers = started;
	guest_unlock();
	if (check)
		session->jobs.blocks = session->memory.ops->workers_per_ring(started);
	return 0;
}

/* On the next CPU. */
static int worker_start(struct thread *thread, const char *kind, uint32_t number,
			struct cpu_deal *deal, void (*run)(void *worker), void *worker,
			struct gdrcap_error *error)
{
	cpu_set_t cpus;
	char name[24];

	snprintf(name, sizeof(name), "gdrcap-%s%u", kind, number);
	cpu_next(deal, &cpus);
	return thread_start(thread, name, &cpus, run, worker, error);
}

static int senders_start(struct gdrcap_session *session, struct cpu_deal *deal,
			 struct gdrcap_error *error)
{
	int ret = 0;

	if (session->frames.file && session->frames.file->streamed) {
		cpu_set_t cpus;

		cpu_next(deal, &cpus);
		ret = file_frames_start(session->frames.file, &cpus, error);
	}
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		session->workers.tx[i].config.start_ns = session->run.start_ns;
	if (ret == 0)
		ret = device_job_start(session, KERNEL_WRITE, deal, &session->jobs.write, error);
	if (ret == 0)
		ret = session_gpu_senders_start(session, error);
	for (uint32_t i = 0; ret == 0 && i < session->workers.tx_count; i++)
		ret = worker_start(&session->workers.tx[i].thread, "tx", i, deal, tx_worker_run,
				   &session->workers.tx[i], error);
	return ret;
}

static int receivers_start(struct gdrcap_session *session, struct cpu_deal *deal,
			   struct gdrcap_error *error)
{
	int ret = 0;

	if (session->fronts.count)
		return session_fronts_start(session, error);
	for (uint32_t i = 0; ret == 0 && i < session->workers.rx_count; i++)
		ret = worker_start(&session->workers.rx[i].thread, "rx", i, deal,
				   session->workers.rx[i].cq ? cq_worker_run : rx_worker_run,
				   &session->workers.rx[i], error);
	return ret;
}

/* When the senders begin, where that was asked for. */
static int start_settle(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct settings *settings = &session->settings;
	const uint64_t now = time_ns(CLOCK_REALTIME);
	int ret;

	if (!settings_starts_later(settings))
		return 0;
	/* It has taken some time to get here. */
	ret = settings_check_start(settings, now, error);
	if (ret < 0)
		return error_of_config(error, ret);
	session->run.start_ns =
		settings->start.after ? now + settings->start.ns : settings->start.ns;
	log_line(GDRCAP_LOG_PROGRESS, "the first frame is sent in %.3f s (start_at)",
		 (double)(session->run.start_ns - now) / 1e9);
	return 0;
}

int gdrcap_start(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct cpu_deal deal = { .session = session };
	struct gdrcap_error own = { 0 };
	int ret = guest_check(session, "session", error);
	cpu_set_t cpus;
	bool collect;

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	error = error ? error : &own;
	collect = settings_collects(&session->settings) && session->workers.rx_count != 0;
	log_lock(&session->run.lock);
	if (session->run.state != SESSION_CREATED) {
		log_unlock(&session->run.lock);
		return error_set(error, -EALREADY, "a session runs once; create another");
	}
	ret = start_settle(session, error);
	if (ret < 0) {
		log_unlock(&session->run.lock);
		return ret;
	}
	deal.shared = session->workers.cpus_shared;
	if (deal.shared)
		thread_share_cores();
	session->run.state = SESSION_RUNNING;
	session_streams_open(session);
	session->run.start_tsc = rte_rdtsc();
	atomic_store(&session->run.began_ns, now_ns());
	patience_begin(&session->watch.progress);
	quiet_init(&session->run.quiet, session->workers.rx, session->workers.rx_count);
	quiet_init(&session->watch.idle, session->workers.rx, session->workers.rx_count);
	recover_begin(session);
	session_sent_files_look(session);
	session_file_times_tell(session);
	session_senders_begin(session);
	session_drops_first(session);
	/* Receivers take the first, nearest cores. */
	ret = receivers_start(session, &deal, error);
	if (ret == 0 && collect)
		ret = device_job_start(session, session->images.count ? KERNEL_PLACE : KERNEL_CHECK,
				       &deal, &session->jobs.check, error);
	if (ret == 0 && (collect || session->fronts.count)) {
		cpu_next(&deal, &cpus);
		ret = accountant_start(&session->workers.accountant, &cpus, error);
	}
	/* Last, before they are written. */
	if (ret == 0)
		ret = session_sent_files_begin(session, error);
	if (ret == 0 && session->workers.tx_count)
		ret = senders_start(session, &deal, error);
	for (uint32_t i = 0; ret == 0 && i < session->sending.count; i++)
		ret = worker_start(&session->sending.queues[i].thread, "tx", i, &deal,
				   send_body(&session->sending.queues[i]),
				   &session->sending.queues[i], error);
	if (ret == 0)
		ret = session_control_start(session, error);
	if (ret < 0) {
		session->run.failure = ret;
		session_keep_failure(session, error->text);
	}
	log_unlock(&session->run.lock);
	if (ret < 0) {
		gdrcap_stop(session, NULL);
		/* It never ran: nothing was counted. */
		atomic_store(&session->run.began_ns, 0);
	}
	return ret;
}
