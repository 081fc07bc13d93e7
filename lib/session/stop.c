/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a run: senders, the wire, receivers (stop_receivers.c), then the workers on the
 * device. */
#include <errno.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
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

#define RATE_MISSED 0.99   /* a rate below this part of the one asked for was not reached */
#define RATE_SLACK_S 0.002 /* of a file's times: a start and an end */

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
	for (uint32_t i = 0; i < session->workers.tx_count; i++) {
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
	const char *what = role == KERNEL_CHECK	 ? "consumer"
			   : role == KERNEL_SEND ? "sender on the GPU"
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
			"%llu frames were not saved: they came faster than they could be "
			"written, or were cut; save fewer (save_every), to a faster disk, or "
			"say how long frames are (--frame-size)",
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

/* Own frames: a sender that began again, and streams that cannot be told apart by their ids. */
static void streams_judge(struct gdrcap_session *session, const struct verdict *verdict)
{
	for (uint32_t i = 0; verdict->restarts && i < verdict->listed_count; i++) {
		const struct verdict_stream *stream = verdict_listed(verdict, i);

		if (stream->restarts)
			session_message(
				session, GDRCAP_LOG_WARNING,
				"the sender of stream %u began again, times: %u; what it had "
				"sent before and did not arrive is not known, unless it said how "
				"much it was",
				stream->id, stream->restarts);
	}
	if (verdict->conflicts)
		session_message(session, GDRCAP_LOG_ERROR,
				"stream %u came from more than one source address (such ids: %u): "
				"give each sender streams of its own (gdrcap replay "
				"--first-stream N), and one that is started again its old address "
				"(--src-mac)",
				verdict->conflict_id, verdict->conflicts);
	if (verdict->late_copies)
		session_message(session, GDRCAP_LOG_WARNING,
				"frames that came again after their stream's end: %llu; was its "
				"sender started again, and its first frames lost?",
				(unsigned long long)verdict->late_copies);
	if (session->run.ended_idle && session_hears_ends(session) && verdict->senders_live &&
	    !verdict_end_seen(verdict))
		session_message(session, GDRCAP_LOG_WARNING,
				"no stream said its end: what was lost after the last frame that "
				"came is not known");
	if (verdict->untracked == 0)
		return;
	if (!session->run.failure)
		session->run.failure = -EOVERFLOW;
	session_message(session, GDRCAP_LOG_ERROR,
			"%llu frames were not judged: they are of more than %u streams; %s",
			(unsigned long long)verdict->untracked, GDRCAP_STREAMS_MAX,
			settings_is_custom(&session->settings)
				? "give custom.stream_offset and stream_bytes of another field, or "
				  "--match fewer"
				: "let the senders use fewer, or --match fewer");
}

/* A file waits; what comes to others meanwhile is missed when their own room is full. */
static void receivers_judge_pools(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		const struct port *port = &session->ports.pairs[i / session->settings.queues].rx;
		const struct rx_worker *worker = &session->workers.rx[i];
		const uint64_t times = atomic_load_explicit(&worker->starved, memory_order_relaxed);
		const double hz = (double)rte_get_tsc_hz();
		struct port_counters counters;

		if (!times || port->facts->reads_first)
			continue;
		if (rx_worker_ended_starved(worker))
			session_message(session, GDRCAP_LOG_WARNING,
					"port %s, queue %u: the run was stopped while no slot was "
					"free: frames that were still at the port are not counted",
					port->name, i % session->settings.queues);
		/* Whose sender was held up instead: nothing was missed. */
		session_port_counters(session, port, &counters);
		if ((port->facts->missed_exact ||
		     session->ports.pairs[i / session->settings.queues].own) &&
		    counters.missed == 0)
			continue;
		session_message(
			session, GDRCAP_LOG_WARNING,
			"port %s, queue %u: no slot was free %llu times, %.3f s in all: the "
			"consumer was slower than the frames came; %s",
			port->name, i % session->settings.queues, (unsigned long long)times,
			(double)atomic_load_explicit(&worker->starved_tsc, memory_order_relaxed) /
				hz,
			settings_collects(&session->settings)
				? "raise --blocks, or --pool for what is short"
				: "release batches sooner, or raise --pool for what is short");
	}
}

/* Says what the counts alone do not. */
static void receivers_judge(struct gdrcap_session *session)
{
	uint64_t cut = 0;

	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		cut += atomic_load_explicit(&session->workers.rx[i].cut, memory_order_relaxed);
	if (cut)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"%llu frames were longer than --frame-size, which is %u, and filled "
			"the room that the port has: of what was longer still only the "
			"beginning came%s; say with --frame-size how long they can be",
			(unsigned long long)cut, session->plan.frame_bytes_max,
			settings_validates(&session->settings)
				? ", and those that are meant count as damaged"
				: "");
	receivers_judge_pools(session);
	streams_judge(session, accountant_borrow(&session->workers.accountant));
	accountant_return(&session->workers.accountant);
}

/* By more than what a start and an end make. */
static bool rate_missed(double done, double asked, double seconds)
{
	return asked > 0 && done < RATE_MISSED * asked &&
	       seconds * (1 - done / asked) > RATE_SLACK_S;
}

/* What a rate's average does not show. */
static void senders_judge_pace(struct gdrcap_session *session)
{
	uint64_t rebased = 0, late = 0, late_max_ns = 0;

	for (uint32_t i = 0; i < session->workers.tx_count; i++) {
		const struct pacing *pacing = &session->workers.tx[i].pacing;
		const uint64_t most =
			atomic_load_explicit(&pacing->late_max_ns, memory_order_relaxed);

		rebased += atomic_load_explicit(&pacing->rebased, memory_order_relaxed);
		late += atomic_load_explicit(&pacing->late, memory_order_relaxed);
		late_max_ns = RTE_MAX(late_max_ns, most);
	}
	if (rebased)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"the sender was behind by more than %u ms, and did not catch up, %llu "
			"times",
			PACING_LAG_MS, (unsigned long long)rebased);
	if (late)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"the port, which keeps the send times itself, was given %llu frames too "
			"late, by %.3f us at most",
			(unsigned long long)late, (double)late_max_ns / 1e3);
}

/* Says where the sender did not do what was asked. */
static void sender_judge(struct gdrcap_session *session)
{
	const char *why = session->watch.link_lost
				  ? "the link was down for a while"
				  : "the port, or this machine's cores, cannot do more";
	struct gdrcap_summary summary = { 0 };

	session_sender_summary(session, &summary);
	if (session->workers.tx_count == 0 || summary.tx_seconds <= 0)
		return;
	if (rate_missed(summary.tx_gbps, summary.asked_gbps, summary.tx_seconds))
		session_message(session, GDRCAP_LOG_WARNING,
				"the rate was not reached: %.6f Gb/s of %.6f; %s", summary.tx_gbps,
				summary.asked_gbps, why);
	if (rate_missed(summary.tx_mpps, summary.asked_mpps, summary.tx_seconds))
		session_message(session, GDRCAP_LOG_WARNING,
				"the rate was not reached: %.6f Mpps of %.6f; %s", summary.tx_mpps,
				summary.asked_mpps, why);
	if (summary.asked_seconds > 0 &&
	    RATE_MISSED * summary.tx_seconds > summary.asked_seconds + RATE_SLACK_S)
		session_message(session, GDRCAP_LOG_WARNING,
				"the file's times were not kept: it took %.3f s instead of %.3f; "
				"%s",
				summary.tx_seconds, summary.asked_seconds, why);
	if (summary.tx_seconds < RATE_MISSED * summary.asked_seconds - RATE_SLACK_S)
		session_message(session, GDRCAP_LOG_WARNING,
				"the file's times were not kept: it took only %.3f s instead of "
				"%.3f, since its first frames were held up",
				summary.tx_seconds, summary.asked_seconds);
	senders_judge_pace(session);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		if (atomic_load_explicit(&session->workers.tx[i].end_unsaid,
					 memory_order_relaxed)) {
			session_message(
				session, GDRCAP_LOG_WARNING,
				"the end-of-stream frames could not be sent: receivers do "
				"not learn that it is over, nor how many frames there were");
			break;
		}
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
		job_left(session, session->jobs.send);

	atomic_store(&session->run.ending, 1);
	atomic_store(&session->control.stop, 1);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		atomic_store_explicit(&session->workers.tx[i].stop, 1, memory_order_relaxed);
	session_sending_end(session);
	session_receivers_phase(session, RX_ABANDON);
	stop_words_set(session);
	session_images_leave(session);
	if (session->jobs.selftest_stop)
		__atomic_store_n(session->jobs.selftest_stop, 1, __ATOMIC_RELAXED);
	if (session->frames.file)
		atomic_store_explicit(&session->frames.file->stop, 1, memory_order_relaxed);
	atomic_store(&session->workers.accountant.stop, 1);
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
	session_drain_wire(session);
	session_receivers_stop(session);
	recover_end(session);
	session_causes_ask(session);
	accountant_stop(&session->workers.accountant);
	session_images_end(session);
	if (session->run.ended_idle && session->frames.expect) {
		/* The accountant has ended; readers may still look. */
		pthread_mutex_lock(&session->workers.accountant.lock);
		verdict_expect_whole(&session->workers.accountant.verdict);
		pthread_mutex_unlock(&session->workers.accountant.lock);
	}
	receivers_judge(session);
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
	sender_judge(session);
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
		atomic_store(&session->run.stopping, false);
	}
	while (other && atomic_load(&session->run.stopping))
		sleep_ms(1);
}

int gdrcap_stop(struct gdrcap_session *session, struct gdrcap_error *error)
{
	int ret = guest_check(session, "session", error);

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	if (is_own_thread(session))
		return stop_later(session, error);
	stop_once(session);
	if (session->run.failure == -ESHUTDOWN && !session->lines.failure_text[0])
		return error_set(
			error, -ESHUTDOWN,
			"the process began to end in the run, which was broken off: what was "
			"in flight then counts as lost; stop sessions before exit()");
	if (session->run.failure)
		return error_set(error, session->run.failure, "%s",
				 session->lines.failure_text[0] ? session->lines.failure_text
								: strerror(-session->run.failure));
	return 0;
}
