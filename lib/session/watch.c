/* SPDX-License-Identifier: BSD-3-Clause */
/* The watch over a run: its end, and what goes wrong meanwhile. */
#include <errno.h>
#include <stdio.h>

#include <rte_cycles.h>

#include "base/log.h"
#include "session/session.h"

#define LINK_LOOK_MS 100u /* a driver may ask the kernel for it */
#define ROOM_MS 2000u	  /* receivers have had no room for so long: nobody is going to make some */

void session_end(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		tx_worker_stop(&session->workers.tx[i]);
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		atomic_store_explicit(&session->workers.rx[i].awake, 1, memory_order_relaxed);
		wake_look(&session->workers.rx[i].wake);
	}
	session_sending_end(session);
	quiet_begin(&session->run.quiet);
	atomic_store(&session->run.ending, 1);
}

void session_fail(struct gdrcap_session *session, int code, const char *what)
{
	if (session->run.failure)
		return;
	session->run.failure = code;
	session_message(session, GDRCAP_LOG_ERROR, "the run ends: %s", what);
	session_end(session);
}

static void watch_device(struct gdrcap_session *session, struct kernel_workers *workers)
{
	if (workers && session->memory.ops->running(workers) < 0)
		session_fail(session, -EIO, kernel_error());
}

void session_moves(struct gdrcap_session *session)
{
	if (session->watch.stuck)
		session_tell(session, GDRCAP_LOG_WARNING, event_of(GDRCAP_EVENT_CONSUMER_MOVES),
			     "the consumer moves again");
	session->watch.stuck = false;
}

/* A consumer that makes no progress is reported, and that it moves again too; nobody quits for it.
 */
void session_watch_consumer(struct gdrcap_session *session)
{
	const uint64_t collected = session_bursts_collected(session);
	const uint32_t limit_ms = session->settings.watchdog_ms;
	struct gdrcap_event late = event_of(GDRCAP_EVENT_CONSUMER_LATE);

	if (!settings_collects(&session->settings))
		return;
	if (collected != session->watch.progress_count ||
	    collected == session_bursts_published(session)) {
		session_moves(session);
		session->watch.progress_count = collected;
		patience_begin(&session->watch.progress);
	} else if (!session->watch.stuck && limit_ms &&
		   patience_ends(&session->watch.progress, limit_ms, session_consumer_is_starved,
				 session)) {
		session->watch.stuck = true;
		late.count = session_bursts_published(session) - collected;
		session_tell(
			session, GDRCAP_LOG_WARNING, late,
			"the consumer has made no progress for %u ms, bursts that wait: %llu; is the GPU busy with another process (nvidia-smi), or a debugger attached?",
			limit_ms, (unsigned long long)late.count);
	}
}

static void watch_worker(struct gdrcap_session *session, struct thread *thread,
			 const struct port *port, uint32_t queue)
{
	char what[512];

	if (session->run.hung)
		return;
	if (thread_is_stuck(thread)) {
		session->run.hung = true;
		snprintf(what, sizeof(what),
			 "port %s, queue %u: its driver has not come back from a call for %u s "
			 "(dmesg may say why); frames that are there count as lost",
			 port->name, queue, thread_stuck_ms / 1000);
		session_fail(session, -ETIMEDOUT, what);
	} else if (!session->watch.starved &&
		   thread->patience.starved_ns >= UINT64_C(1000000) * thread_stuck_ms) {
		session->watch.starved = true;
		session_message(
			session, GDRCAP_LOG_WARNING,
			"thread %s has had no core for %u s and is waited for: end what holds "
			"the machine's cores, or name free ones (cores)",
			thread->name, thread_stuck_ms / 1000);
	}
}

void session_watch_workers(struct gdrcap_session *session)
{
	const uint32_t queues = session->settings.queues;

	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		watch_worker(session, &session->workers.rx[i].thread,
			     &session->ports.pairs[i / queues].rx, i % queues);
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		watch_worker(session, &session->workers.tx[i].thread,
			     &session->ports.pairs[i / queues].tx, i % queues);
	for (uint32_t i = 0; i < session->sending.count; i++)
		watch_worker(session, &session->sending.queues[i].thread,
			     session_sending_port(session, i), i % queues);
}

static void watch_flush(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		if (atomic_load_explicit(&session->workers.rx[i].flush_error, memory_order_relaxed))
			session_fail(
				session, -EIO,
				"the GPU refused to flush GPUDirect RDMA writes; try --flush none "
				"on a "
				"device that orders them (gdrcap prints which do)");
}

/* A streamed file that broke off ends its sender; here is why. */
void session_watch_file(struct gdrcap_session *session)
{
	const struct file_frames *file = session->frames.file;

	if (file && file->streamed && atomic_load_explicit(&file->failed, memory_order_acquire))
		session_fail(session, -EIO, file->error.text);
}

static void watch_interface(struct gdrcap_session *session, const struct port *port,
			    const struct interface *interface, struct gdrcap_event gone,
			    uint64_t may_lose)
{
	char what[400], lost[100] = "";

	if (session->run.failure || !interface_is_gone(interface))
		return;
	if (may_lose == UINT64_MAX)
		snprintf(lost, sizeof(lost), "; some of the last frames that it took may be lost");
	else if (may_lose)
		snprintf(lost, sizeof(lost),
			 "; up to %llu of the last frames that it took may be lost",
			 (unsigned long long)may_lose);
	snprintf(what, sizeof(what),
		 "port %s: its interface is gone: it was deleted, or moved to another network "
		 "namespace; have it back (ip link), and begin a new run%s",
		 port->name, lost);
	session_event(session, gone, "%s", what);
	session_fail(session, -ENODEV, what);
}

void session_watch_interfaces(struct gdrcap_session *session)
{
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		const struct session_pair *pair = &session->ports.pairs[p];

		watch_interface(session, &pair->rx, &pair->rx_interface,
				event_of_port(GDRCAP_EVENT_PORT_GONE, p, false, -1),
				pair->both ? session_sender_may_lose(session, p) : 0);
		watch_interface(session, &pair->tx, &pair->tx_interface,
				event_of_port(GDRCAP_EVENT_PORT_GONE, p, true, -1),
				session_sender_may_lose(session, p));
	}
}

/* They may be anybody's, and a sender on this machine may have sent them again: so they are told and
 * not counted. */
void session_interfaces_judge(struct gdrcap_session *session)
{
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		char name[IF_NAMESIZE];
		const uint64_t dropped =
			interface_dropped(&session->ports.pairs[p].rx_interface, name);

		if (dropped)
			session_message(
				session, GDRCAP_LOG_WARNING,
				"interface %s: frames that the kernel dropped before any program could have them: %llu (ip -s link show %s); they were longer "
				"than its MTU, or no core had time for them (more cores, or a "
				"larger net.core.netdev_max_backlog); of a sender on this machine, "
				"some may have been sent again",
				name, (unsigned long long)dropped, name);
	}
}

/* One that goes down, or came back. */
static void link_changed(struct gdrcap_session *session, uint32_t p, bool sends, bool up)
{
	const struct port *port = sends ? &session->ports.pairs[p].tx : &session->ports.pairs[p].rx;
	const bool peer_left = !up && !sends && port->facts->joins;
	const enum gdrcap_event_kind kind = up		? GDRCAP_EVENT_LINK_UP
					    : peer_left ? GDRCAP_EVENT_PORT_GONE
							: GDRCAP_EVENT_LINK_DOWN;
	char what[400];

	session_tell(session, GDRCAP_LOG_WARNING, event_of_port(kind, p, sends, -1),
		     "port %s: the link is %s%s", port->name, up ? "up again" : "down",
		     peer_left ? ": the other end left; what it had handed over and was not "
				 "received yet is lost"
			       : "");
	if (up || atomic_load(&session->run.ending) || session->settings.link_down != LINK_DOWN_END)
		return;
	snprintf(what, sizeof(what), "port %s: its link is down (link_down: end)", port->name);
	session_fail(session, -ENETDOWN, what);
}

/* A link that was never up may be waited for; one that goes down is worth a word. */
static void watch_link(struct gdrcap_session *session, uint32_t p, bool sends)
{
	const struct port *port = sends ? &session->ports.pairs[p].tx : &session->ports.pairs[p].rx;
	enum session_link *link = &session->watch.link[(sends ? GDRCAP_PORTS_MAX : 0) + p];
	const bool up = port->open && port_link_up(port);

	/* What failed is said; an interface that is gone is neither up nor down. */
	if (!port->open || up == (*link == LINK_UP) || session->run.failure)
		return;
	if (*link != LINK_WAITED_FOR) {
		link_changed(session, p, sends, up);
	} else {
		log_info("port %s: the link is up", port->name);
		session_event(session, event_of_port(GDRCAP_EVENT_LINK_UP, p, sends, -1),
			      "port %s: the link is up", port->name);
	}
	*link = up ? LINK_UP : LINK_DOWN;
}

/* While a link is down its sender waits, and its receiver hears nothing. */
static void watch_links(struct gdrcap_session *session)
{
	if (!tsc_older(session->watch.link_tsc, LINK_LOOK_MS))
		return;
	session->watch.link_tsc = rte_rdtsc();
	session_sending_kick(session);
	/* After the end of the sender's streams somebody may clean up. */
	if (!atomic_load(&session->run.ending)) {
		session_watch_interfaces(session);
		session_senders_watch(session);
		session_file_times_watch(session);
	}
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		const enum session_link *link = &session->watch.link[GDRCAP_PORTS_MAX + p];

		if (!atomic_load(&session->run.ended_by_sender))
			watch_link(session, p, false);
		if (session->workers.rx_count && !atomic_load(&session->run.ending))
			session->watch.peer_left |= session->ports.pairs[p].rx.facts->joins &&
						    session->watch.link[p] == LINK_DOWN;
		watch_link(session, p, true);
		session->watch.link_lost |= *link == LINK_DOWN;
		session_sending_hold(session, p,
				     session->ports.pairs[p].both
					     ? session->watch.link[p] != LINK_UP
					     : *link != LINK_UP);
		for (uint32_t q = 0; session->workers.tx_count && q < session->settings.queues; q++)
			atomic_store_explicit(
				&session->workers.tx[p * session->settings.queues + q].hold,
				*link != LINK_UP, memory_order_relaxed);
	}
}

/* All of the sender's streams said their end. */
static bool sender_said_end(struct gdrcap_session *session)
{
	bool ended;

	if (session->settings.end != END_STREAM || !settings_validates(&session->settings))
		return false;
	ended = verdict_ended(accountant_borrow(&session->workers.accountant));
	accountant_return(&session->workers.accountant);
	if (ended)
		atomic_store(&session->run.ended_by_sender, 1);
	return ended;
}

bool session_is_blocked(struct gdrcap_session *session, struct quiet *quiet)
{
	const bool validate = settings_collects(&session->settings);
	uint64_t sent, arrived;

	/* Files that wait for what they are saved to may do so for long: the end does not. */
	if (session->frames.save && save_is_full(session->frames.save) &&
	    atomic_load(&session->run.ending))
		return true;
	if (!quiet_is_blocked(quiet, ROOM_MS))
		return false;
	/* It makes room, and if it does not that is going to be reported. */
	if (validate && !session->watch.stuck && !session->run.failure &&
	    session_bursts_collected(session) != session_bursts_published(session))
		return false;
	sent = session_handed_over(session);
	arrived = session_arrived(session);
	if (validate)
		session_fail(session, -ETIMEDOUT,
			     session_bursts_collected(session) == session_bursts_published(session)
				     ? "receivers take nothing any more, though the consumer waits "
				       "for frames: what is still at their ports counts as lost"
				     : "the consumer makes no progress, so that receivers have no "
				       "room for frames that are still at their ports: these count "
				       "as lost");
	else if (session_sends_itself(session) && arrived < sent)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"frames sent that have not been received: %llu of %llu; there was no room "
			"while the caller kept its batches",
			(unsigned long long)(sent - arrived), (unsigned long long)sent);
	return true;
}

/* A capture that heard nothing for long enough, after it heard something. */
static bool run_is_idle(struct gdrcap_session *session)
{
	const uint64_t received = session_received(session);

	if (received != session->watch.idle_count) {
		session->watch.idle_count = received;
		quiet_begin(&session->watch.idle);
	}
	if (session->settings.idle_ms == 0 || received == 0)
		return false;
	session->run.ended_idle = quiet_is_over(&session->watch.idle, session->settings.idle_ms);
	return session->run.ended_idle || session_is_blocked(session, &session->watch.idle);
}

/* `seconds` are over; a sender's that begins later count from then. */
static bool time_is_over(const struct gdrcap_session *session)
{
	uint64_t since = session->run.start_tsc;

	if (session->run.start_ns)
		since = atomic_load_explicit(&session->workers.tx[0].started_tsc,
					     memory_order_acquire);
	return session->settings.seconds_ms && since &&
	       tsc_older(since, session->settings.seconds_ms);
}

static bool run_is_over(struct gdrcap_session *session)
{
	const struct settings *settings = &session->settings;
	bool sending = session->workers.tx_count == 0;

	session->run.ended_by_time = time_is_over(session);
	if (session->run.ended_by_time)
		return true;
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		sending |= !atomic_load_explicit(&session->workers.tx[i].finished,
						 memory_order_acquire);
	if (session->workers.tx_count)
		return !sending;
	if (settings->frames && session->workers.rx_count &&
	    session_received(session) >= settings->frames)
		return true;
	if (settings->images_wanted && session_images_complete(session) >= settings->images_wanted)
		return true;
	/* Nothing else ends files: one that waits for its consumer, or a pipe, is not silent. */
	if (session_reads_files_only(session)) {
		session->run.ended_idle = session_sources_are_over(session);
		if (session->run.ended_idle)
			sender_said_end(session);
		return session->run.ended_idle;
	}
	/* A sender of the caller's alone goes on until it is stopped. */
	return session->workers.rx_count && (sender_said_end(session) || run_is_idle(session));
}

/* True when the sender, here or far away, has handed over all that it will. Quiet begins after. */
static bool senders_are_through(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		if (!atomic_load_explicit(&session->workers.tx[i].finished, memory_order_acquire)) {
			quiet_begin(&session->run.quiet);
			return false;
		}
	/* The caller's go on until the run is over, and are told so then: session_end(). */
	for (uint32_t i = 0; i < session->sending.count; i++)
		if (!atomic_load_explicit(&session->sending.queues[i].finished,
					  memory_order_acquire)) {
			quiet_begin(&session->run.quiet);
			return false;
		}
	return true;
}

/* Each receiver has looked, and nothing of the sender's came for quiet_ms. */
static bool receivers_hear_nothing(struct gdrcap_session *session)
{
	uint32_t quiet_ms = session->settings.quiet_ms;
	const uint64_t arrived = session_arrived(session);

	/* Not all frames: somebody else's may come for ever. */
	if (session_sends_itself(session) && arrived >= session_handed_over(session))
		return true;
	if (!session_sends_itself(session) && time_is_over(session)) {
		/* No longer for what may still be under way. */
		quiet_ms = 0;
	} else if (arrived != session->run.quiet_count) {
		session->run.quiet_count = arrived;
		session->run.quiet_bursts = 0;
		quiet_begin(&session->run.quiet);
	}
	return quiet_is_over(&session->run.quiet, quiet_ms);
}

/* Nothing of the sender's is in flight: all of it came, or nothing came for quiet_ms, which each
 * receiver looked for, and the consumer is through with what was there then, unless it is stuck.
 * Others' frames may come for ever, so without a sender, and unless one far away has said its end,
 * nothing more is received. */
static bool run_is_quiet(struct gdrcap_session *session)
{
	if (session->run.hung)
		return true;
	if (!senders_are_through(session))
		return false;
	if (session->workers.rx_count == 0)
		return true;
	if (!session_sends_itself(session) && !atomic_load(&session->run.ended_by_sender))
		return session_receivers_cut(session);
	if (!receivers_hear_nothing(session))
		return session_is_blocked(session, &session->run.quiet);
	if (session->run.quiet_bursts == 0)
		session->run.quiet_bursts = session_bursts_published(session);
	return !settings_collects(&session->settings) || session->watch.stuck ||
	       session->run.failure ||
	       session_bursts_collected(session) >= session->run.quiet_bursts;
}

static void watch_images(struct gdrcap_session *session)
{
	const int failure = session_images_failure(session);

	if (failure && !session->run.failure)
		session_fail(session, failure, "an image could not be closed");
}

bool session_watch(struct gdrcap_session *session)
{
	watch_device(session, session->jobs.check);
	watch_device(session, session->jobs.write);
	watch_device(session, session->jobs.send);
	watch_device(session, session->jobs.front);
	watch_flush(session);
	session_watch_consumer(session);
	session_watch_workers(session);
	session_watch_sending(session);
	session_watch_file(session);
	session_watch_sources(session);
	watch_images(session);
	watch_links(session);
	session_events_watch(session);
	recover_watch(session);
	if (!atomic_load(&session->run.ending) && run_is_over(session))
		session_end(session);
	return atomic_load(&session->run.ending) && run_is_quiet(session);
}
