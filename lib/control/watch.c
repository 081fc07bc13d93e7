/* SPDX-License-Identifier: BSD-3-Clause */
/* The watch over a run: its end, and what goes wrong meanwhile. */
#include <errno.h>

#include <rte_cycles.h>

#include "log.h"
#include "session.h"

#define LINK_LOOK_MS 100u /* a driver may ask the kernel for it */
#define QUIET_LOOKS 16u /* of each receiver, since silence says nothing of one without a core */

/* Rises while the receiver's thread runs, whether there is something to receive or not. */
static uint64_t receiver_looks(const struct rx_worker *worker)
{
	return atomic_load_explicit(&worker->idle, memory_order_relaxed) +
	       atomic_load_explicit(&worker->frames, memory_order_relaxed);
}

void session_quiet_begin(struct gdrcap_session *session)
{
	session->quiet_tsc = rte_rdtsc();
	session->quiet_bursts = 0;
	for (uint32_t i = 0; i < session->rx_count; i++)
		session->quiet_looks[i] = receiver_looks(&session->rx[i]);
}

bool session_is_quiet(const struct gdrcap_session *session, uint32_t ms)
{
	if (!tsc_older(session->quiet_tsc, ms))
		return false;
	for (uint32_t i = 0; i < session->rx_count && !session->failure; i++)
		if (session->rx[i].thread.running &&
		    receiver_looks(&session->rx[i]) - session->quiet_looks[i] < QUIET_LOOKS)
			return false;
	return true;
}

void session_end(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->tx_count; i++)
		atomic_store_explicit(&session->tx[i].stop, 1, memory_order_relaxed);
	session_quiet_begin(session);
	atomic_store(&session->ending, 1);
}

void session_fail(struct gdrcap_session *session, int code, const char *what)
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
		session_fail(session, -EIO, kernel_error());
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
			session_fail(session, -EIO,
				 "the GPU refused to flush GPUDirect RDMA writes; try --flush none "
				 "on a "
				 "device that orders them (gdrcap prints which do)");
}

/* A streamed file that broke off ends its sender; here is why. */
void session_watch_file(struct gdrcap_session *session)
{
	const struct file_frames *file = session->file;

	if (file && file->streamed &&
	    atomic_load_explicit(&file->failed, memory_order_acquire))
		session_fail(session, -EIO, file->error.text);
}

/* A link that was never up may be waited for; one that goes down is worth a word. */
static void watch_link(struct gdrcap_session *session, const struct port *port,
		       enum session_link *link)
{
	const bool up = port->open && port_link_up(port);

	if (!port->open || up == (*link == LINK_UP))
		return;
	if (*link == LINK_WAITED_FOR)
		log_info("port %s: the link is up", port->name);
	else
		session_message(session, GDRCAP_LOG_WARNING, "port %s: the link is %s", port->name,
				up ? "up again" : "down");
	*link = up ? LINK_UP : LINK_DOWN;
}

/* A link that goes down ends nothing: its sender waits, its receiver hears nothing. */
static void watch_links(struct gdrcap_session *session)
{
	if (!tsc_older(session->link_tsc, LINK_LOOK_MS))
		return;
	session->link_tsc = rte_rdtsc();
	for (uint32_t p = 0; p < session->plan.ports; p++) {
		enum session_link *link = &session->link[GDRCAP_PORTS_MAX + p];

		if (!atomic_load(&session->ended_by_sender))
			watch_link(session, &session->pairs[p].rx, &session->link[p]);
		watch_link(session, &session->pairs[p].tx, link);
		session->link_lost |= *link == LINK_DOWN;
		for (uint32_t q = 0; session->tx_count && q < session->plan.queues; q++)
			atomic_store_explicit(&session->tx[p * session->plan.queues + q].hold,
					      *link != LINK_UP, memory_order_relaxed);
	}
}

/* All of the sender's streams said their end. */
static bool sender_said_end(struct gdrcap_session *session)
{
	bool ended;

	if (session->config.end != GDRCAP_END_STREAM ||
	    session->config.consumer != GDRCAP_CONSUMER_VALIDATE)
		return false;
	ended = verdict_ended(accountant_borrow(&session->accountant));
	accountant_return(&session->accountant);
	if (ended)
		atomic_store(&session->ended_by_sender, 1);
	return ended;
}

/* A capture that heard nothing for long enough, after it heard something. */
static bool run_is_idle(struct gdrcap_session *session)
{
	const uint64_t received = session_received(session);

	if (received != session->idle_count) {
		session->idle_count = received;
		session->idle_tsc = rte_rdtsc();
	}
	session->ended_idle = session->config.idle_ms && received &&
			      tsc_older(session->idle_tsc, session->config.idle_ms);
	return session->ended_idle;
}

static bool run_is_over(struct gdrcap_session *session)
{
	const struct gdrcap_config *config = &session->config;
	bool sending = session->tx_count == 0;

	if (config->seconds_ms && tsc_older(session->start_tsc, config->seconds_ms))
		return true;
	for (uint32_t i = 0; i < session->tx_count; i++)
		sending |= !atomic_load_explicit(&session->tx[i].finished, memory_order_acquire);
	if (session->tx_count)
		return !sending;
	return (config->frames && session_received(session) >= config->frames) ||
	       sender_said_end(session) || run_is_idle(session);
}

/* Nothing of the sender's is in flight: all of it came, or nothing came for quiet_ms, in which each
 * receiver looked, and the consumer is through with what was there then, unless it is stuck.
 * Others' frames may come for ever, so without a sender, and unless one far away has said its end,
 * there is nothing to wait for: the stop takes what was received. */
static bool run_is_quiet(struct gdrcap_session *session)
{
	uint64_t arrived;

	for (uint32_t i = 0; i < session->tx_count; i++)
		if (!atomic_load_explicit(&session->tx[i].finished, memory_order_acquire))
			return false;
	if (session->rx_count == 0)
		return true;
	if (session->tx_count == 0 && (!atomic_load(&session->ended_by_sender) ||
				       (session->config.seconds_ms &&
					tsc_older(session->start_tsc, session->config.seconds_ms))))
		return true;
	/* Not all frames: somebody else's may come for ever. */
	arrived = session_arrived(session);
	if (session->tx_count && arrived >= session_sent(session))
		return true;
	if (arrived != session->quiet_count) {
		session->quiet_count = arrived;
		session_quiet_begin(session);
	}
	if (!session_is_quiet(session, session->config.quiet_ms))
		return false;
	if (session->quiet_bursts == 0)
		session->quiet_bursts = session_bursts_published(session);
	return session->config.consumer != GDRCAP_CONSUMER_VALIDATE || session->stuck ||
	       session->failure || session_bursts_collected(session) >= session->quiet_bursts;
}

bool session_watch(struct gdrcap_session *session)
{
	watch_device(session, session->check);
	watch_device(session, session->write);
	watch_flush(session);
	watch_consumer(session);
	session_watch_file(session);
	watch_links(session);
	recover_watch(session);
	if (!atomic_load(&session->ending) && run_is_over(session))
		session_end(session);
	return atomic_load(&session->ending) && run_is_quiet(session);
}
