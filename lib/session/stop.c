/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run: senders, the wire, receivers (stop_receivers.c), then the workers on the
 * device. */
#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/log.h"
#include "session/session.h"

/* Kernels leave within 100 ms, and CPU threads as soon as they have a core: time without one does
 * not count. */
#define LEAVE_MS 1000u

static void stop_words_set(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		ring_leave(&session->workers.rx[i].ring);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		ring_leave(&session->workers.tx[i].ring);
}

/* All that the workers of this role were given they have done. */
static bool job_is_through(const struct gdrcap_session *session, enum kernel_role role)
{
	if (role == KERNEL_CHECK)
		return session_bursts_collected(session) == session_bursts_published(session);
	for (uint32_t i = 0; role == KERNEL_FRONT && i < session->fronts.count; i++)
		if (!front_follow_has_ended(&session->fronts.follow[i]))
			return false;
	for (uint32_t i = 0; role != KERNEL_FRONT && i < session->workers.tx_count; i++) {
		const struct ring_producer *ring = &session->workers.tx[i].ring;
		const uint64_t published =
			atomic_load_explicit(&ring->published, memory_order_relaxed);
		const uint64_t words = (uint64_t)ring->burst_mask + 1;

		for (uint64_t b = published > words ? published - words : 0; b < published; b++)
			if (!ring_is_done(ring, b))
				return false;
	}
	return true;
}

/* Workers that leave late change nothing in what they have done: the results stand. */
static void device_job_join(struct gdrcap_session *session, struct kernel_workers **workers,
			    enum kernel_role role)
{
	const char *what = role == KERNEL_CHECK	  ? "consumer"
			   : role == KERNEL_SEND  ? "sender on the GPU"
			   : role == KERNEL_FRONT ? "front on the GPU"
						  : "frame writer";
	struct kernel_workers *left = *workers;
	int ret;

	if (!left)
		return;
	guest_lock();
	*workers = NULL;
	session->jobs.joining++;
	guest_unlock();
	ret = session->memory.ops->join(left, LEAVE_MS);
	guest_lock();
	session->jobs.joining--;
	guest_unlock();
	if (ret == 0)
		return;
	session->run.given_up |= ret == -ETIMEDOUT;
	if (ret == -ETIMEDOUT && job_is_through(session, role)) {
		session_message(session, GDRCAP_LOG_WARNING,
				"the %s has done its work and does not leave: %s", what,
				kernel_error());
		return;
	}
	/* The process ends, and CUDA has ended before: the job was told to leave in time. */
	if (session->run.failure == -ESHUTDOWN)
		return;
	if (!session->run.failure)
		session->run.failure = ret;
	session_message(session, GDRCAP_LOG_ERROR, "the %s did not end well: %s", what,
			kernel_error());
}

static void senders_stop(struct gdrcap_session *session)
{
	session_sending_look(session);
	if (!atomic_load(&session->run.ending))
		session_end(session);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		session_worker_join(session, &session->workers.tx[i].thread);
	session_sending_join(session);
}

/* What was to be saved and is not. The text has the cause where it is not that they were slow. */
static void saver_judge(struct gdrcap_session *session, int ret, const struct gdrcap_error *error)
{
	struct save_counts counts;

	if (ret < 0) {
		if (!session->run.failure)
			session->run.failure = ret;
		session_message(session, GDRCAP_LOG_ERROR, "%s", error->text);
		return;
	}
	save_counts(session->frames.save, &counts);
	if (counts.missed + counts.damaged_missed)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"frames that were not saved: %llu; they came faster than they could be "
			"written, or were longer than --frame-size; save fewer (save_every), or to a "
			"faster disk",
			(unsigned long long)(counts.missed + counts.damaged_missed));
}

/* The files get what is still in the buffer, and what the run lost. */
static void saver_stop(struct gdrcap_session *session)
{
	struct gdrcap_error error;
	int ret;

	if (!session->frames.save)
		return;
	for (uint32_t q = 0; q < session->workers.rx_count; q++) {
		struct port_counters counters;

		/* A port's own counters are told with its first queue. */
		session_port_counters(
			session, &session->ports.pairs[q / session->settings.queues].rx, &counters);
		save_set_lost(
			session->frames.save, q,
			atomic_load_explicit(&session->workers.rx[q].frames, memory_order_relaxed),
			q % session->settings.queues ? 0 : counters.missed + counters.error);
	}
	ret = save_finish(session->frames.save, &error);
	saver_judge(session, ret, &error);
}

/* What is still on a software wire when nobody receives any more. */
static void wires_empty(struct gdrcap_session *session)
{
	struct rte_mbuf *mbufs[64];

	if (session->run.hung)
		return;
	for (uint32_t p = 0; p < session->settings.ports; p++)
		for (uint16_t q = 0;
		     session->settings.rx.port[p].wire && q < session->settings.queues; q++) {
			uint16_t n;

			while ((n = rte_eth_rx_burst(session->ports.pairs[p].rx.id, q, mbufs,
						     64)) != 0)
				rte_pktmbuf_free_bulk(mbufs, n);
		}
}

/* Every slot is back where no card holds some in its queues: a leak is an error of ours, unless the
 * caller still has batches. */
static void slots_check(struct gdrcap_session *session)
{
	const struct plan *plan = &session->plan;

	if (!session_receivers_join(session, 0))
		return;
	for (uint32_t i = 0; i < session->settings.ports * session->settings.queues; i++) {
		const struct session_pair *pair =
			&session->ports.pairs[i / session->settings.queues];
		const uint32_t q = i % session->settings.queues;
		uint32_t back;

		if (!session->settings.rx.port[i / session->settings.queues].wire ||
		    session->run.failure)
			continue;
		back = session->sending.count ? session_sending_back(session, i)
					      : rte_mempool_avail_count(pair->rx_pool[q]);
		if (back != plan->pool_slots)
			session_message(session, GDRCAP_LOG_ERROR,
					"port %s, queue %u: %u of %u slots are back", pair->rx.name,
					q, back, plan->pool_slots);
	}
}

static bool job_left(const struct gdrcap_session *session, struct kernel_workers *job)
{
	return !job || session->memory.ops->running(job) != 1;
}

/* The session's threads on the CPU, the saver's excepted; NULL: there are no more. */
static const struct thread *own_thread(const struct gdrcap_session *session, unsigned int i)
{
	if (i < session->workers.tx_count)
		return &session->workers.tx[i].thread;
	i -= session->workers.tx_count;
	if (i < session->workers.rx_count)
		return &session->workers.rx[i].thread;
	i -= session->workers.rx_count;
	if (i < session->sending.count)
		return &session->sending.queues[i].thread;
	i -= session->sending.count;
	return i == 0				? &session->workers.accountant.thread
	       : i == 1				? &session->control.thread
	       : i == 2 && session->frames.file ? &session->frames.file->thread
						: NULL;
}

/* Consumers last: the accountant takes what they finished, and the saver what it hands over. */
bool session_leave(struct guest *guest)
{
	struct gdrcap_session *session = container_of(guest, struct gdrcap_session, guest);
	bool left = session->jobs.joining == 0 && session->jobs.selftest_stop == NULL;

	/* Asked before they are told, so that the first look says whether anything was running. */
	for (unsigned int i = 0; own_thread(session, i); i++)
		left &= thread_has_left(own_thread(session, i));
	left &= job_left(session, session->jobs.check) && job_left(session, session->jobs.write) &&
		job_left(session, session->jobs.send) && job_left(session, session->jobs.front);

	atomic_store(&session->run.ending, 1);
	atomic_store(&session->control.stop, 1);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		tx_worker_stop(&session->workers.tx[i]);
	session_sending_end(session);
	session_receivers_phase(session, RX_ABANDON);
	stop_words_set(session);
	session_images_leave(session);
	if (session->jobs.selftest_stop)
		__atomic_store_n(session->jobs.selftest_stop, 1, __ATOMIC_RELAXED);
	if (session->frames.file)
		atomic_store_explicit(&session->frames.file->stop, 1, memory_order_relaxed);
	atomic_store(&session->workers.accountant.stop, 1);
	accountant_wake(&session->workers.accountant);
	left = left && (!session->frames.save || save_leave(session->frames.save));
	/* What is in flight is given up: the results are no verdict. */
	if (!left && !session->run.failure)
		session->run.failure = -ESHUTDOWN;
	return left;
}

/* They may log, and so call the caller's log function. */
static bool is_own_thread(const struct gdrcap_session *session)
{
	for (unsigned int i = 0; own_thread(session, i); i++)
		if (thread_is_self(own_thread(session, i)))
			return true;
	return session->frames.save && save_is_writer(session->frames.save);
}

/* What waits for a thread cannot be done by it. */
static int stop_later(struct gdrcap_session *session, struct gdrcap_error *error)
{
	log_lock(&session->run.lock);
	if (session->run.state == SESSION_RUNNING && !atomic_load(&session->run.ending))
		session_end(session);
	log_unlock(&session->run.lock);
	return error_set(error, -EDEADLK,
			 "gdrcap_stop() waits for the session's threads and was called on one of "
			 "them, by the log function; the run ends, gdrcap_wait_end() returns 1, "
			 "and gdrcap_stop() is then for another thread");
}

static void session_halt(struct gdrcap_session *session)
{
	session_control_join(session);
	if (!atomic_load(&session->run.ending))
		session_watch_interfaces(session);
	senders_stop(session);
	session_senders_settle(session);
	session_watch_file(session);
	session_watch_sources(session);
	session_drain_wire(session);
	session_receivers_stop(session);
	/* No front touches a queue any more. Whoever still runs is not going to end by itself. */
	if (session->fronts.count)
		session_receivers_phase(session, RX_ABANDON);
	device_job_join(session, &session->jobs.front, KERNEL_FRONT);
	session_fronts_end(session);
	recover_end(session);
	session_causes_ask(session);
	/* The caller may give batches back after the stop: then whoever destroys the session ends it. */
	if (!session->workers.accountant.follows)
		accountant_stop(&session->workers.accountant);
	session_images_end(session);
	if (session->run.ended_idle && session->frames.expect) {
		/* The accountant has ended; readers may still look. */
		pthread_mutex_lock(&session->workers.accountant.lock);
		verdict_expect_whole(&session->workers.accountant.verdict);
		pthread_mutex_unlock(&session->workers.accountant.lock);
	}
	session_receivers_judge(session);
	session_images_judge(session);
	session_interfaces_judge(session);
	saver_stop(session);
	stop_words_set(session);
	device_job_join(session, &session->jobs.send, KERNEL_SEND);
	device_job_join(session, &session->jobs.write, KERNEL_WRITE);
	device_job_join(session, &session->jobs.check, KERNEL_CHECK);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		if (!session->workers.tx[i].thread.running)
			tx_worker_reclaim(&session->workers.tx[i]);
	session_senders_judge(session);
	session_sending_judge(session);
	session_sent_files_judge(session);
	session_rate_judge(session);
	wires_empty(session);
	slots_check(session);
}

/* The first caller stops it; others wait until it has, but for a log function that is called meanwhile. */
static void stop_once(struct gdrcap_session *session)
{
	const pthread_t self = pthread_self();
	bool running, other;

	log_lock(&session->run.lock);
	running = session->run.state == SESSION_RUNNING;
	if (running) {
		session->run.state = SESSION_STOPPED;
		session->run.stopper = self;
		atomic_store(&session->run.stopping, true);
	}
	other = !running && session->run.state == SESSION_STOPPED &&
		!pthread_equal(session->run.stopper, self);
	log_unlock(&session->run.lock);
	if (running) {
		session_halt(session);
		atomic_store(&session->run.over_ns, now_ns());
		atomic_store(&session->run.stopping, false);
	}
	while (other && atomic_load(&session->run.stopping))
		sleep_ms(SESSION_TICK_MS);
}

void session_failure_text(const struct gdrcap_session *session, char *to, size_t bytes)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&session->lines.lock;

	pthread_mutex_lock(lock);
	snprintf(to, bytes, "%s",
		 session->lines.failure_text[0] ? session->lines.failure_text
		 : session->run.failure == -ESHUTDOWN
			 ? "the process began to end in the run, which was broken off: what was "
			   "in flight then counts as lost; stop sessions before exit()"
			 : strerror(-session->run.failure));
	pthread_mutex_unlock(lock);
}

int gdrcap_stop(struct gdrcap_session *session, struct gdrcap_error *error)
{
	char text[sizeof(session->lines.failure_text)];
	int ret = guest_check(session, "session", error);

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	if (is_own_thread(session))
		return stop_later(session, error);
	stop_once(session);
	if (!session->run.failure)
		return 0;
	session_failure_text(session, text, sizeof(text));
	return error_set(error, session->run.failure, "%s", text);
}
