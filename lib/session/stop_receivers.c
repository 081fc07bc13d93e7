/* SPDX-License-Identifier: BSD-3-Clause */
/* The receivers' end: what is on the wire, what the consumer still has, and their threads. */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "session/session.h"

/* When a stream's end came, a stop waits for those of the others so long at most: a sender sends them
 * right behind each other, but a loaded machine may keep it from its core between two. */
#define DRAIN_ENDS_MS 1000u
#define PORT_KERNEL_FRAMES (1u << 20) /* more than any kernel's ring has */
#define CALLER_MS 60u		      /* for batches that the caller keeps */
/* A consumer without progress is dead after so long. Time in which CPU threads of it had no core
 * does not count, here and where they are to leave. */
#define CONSUMER_MS 2000u

void session_worker_join(struct gdrcap_session *session, struct thread *thread)
{
	if (thread_join_unless_stuck(thread))
		return;
	session_watch_workers(session);
	session->run.given_up = true;
}

/* The accounts are borrowed only where they have changed since: this is asked once a tick. */
static enum session_ends ends_look(struct gdrcap_session *session)
{
	/* First: what is counted here is in the accounts. */
	const uint64_t collected = session_bursts_collected(session);
	const struct verdict *verdict;

	if (session->run.ends_known && collected == session->run.ends_collected)
		return session->run.ends;
	verdict = accountant_borrow(&session->workers.accountant);
	session->run.ends = !verdict_end_seen(verdict) ? SESSION_ENDS_NONE
			    : verdict_ended(verdict)   ? SESSION_ENDS_ALL
						       : SESSION_ENDS_SOME;
	accountant_return(&session->workers.accountant);
	session->run.ends_collected = collected;
	session->run.ends_known = true;
	return session->run.ends;
}

/* For how long there must be silence (`quiet`), in ms. What is left at a port is called lost where it is known
 * how much was sent; where it is not there is nothing to wait for: 0. */
static uint32_t drain_ms(struct gdrcap_session *session)
{
	const uint32_t quiet_ms = session->settings.quiet_ms;
	uint32_t ms = session_sends_itself(session) ? quiet_ms : 0;

	if (!settings_validates(&session->settings))
		return ms;
	switch (ends_look(session)) {
	case SESSION_ENDS_ALL:
		return quiet_ms;
	case SESSION_ENDS_SOME:
		return RTE_MAX(quiet_ms, DRAIN_ENDS_MS);
	default:
		/* What is not judged yet may have an end. */
		return session_bursts_collected(session) != session_bursts_published(session)
			       ? quiet_ms
			       : ms;
	}
}

/*
 * Frames on the wire arrive while the receivers still run. An idle machine has them within a few
 * ms; a loaded one gets the time that it needs, since a frame left behind would be called lost.
 * Those of a sender far away may come for ever: only what is there now is waited for.
 */
void session_drain_wire(struct gdrcap_session *session)
{
	uint64_t arrived = 0;

	if (session->run.failure || session->workers.rx_count == 0 || session->run.cut ||
	    drain_ms(session) == 0)
		return;
	quiet_begin(&session->run.quiet);
	while (!session->run.failure && !quiet_is_over(&session->run.quiet, drain_ms(session))) {
		const uint64_t now = session_arrived(session);

		if ((session_sends_itself(session) && now >= session_handed_over(session)) ||
		    session_is_blocked(session, &session->run.quiet))
			return;
		if (session_sends_itself(session) && now != arrived)
			quiet_begin(&session->run.quiet);
		arrived = now;
		session_watch_consumer(session);
		session_watch_workers(session);
		sleep_ms(SESSION_TICK_MS);
	}
}

bool session_receivers_join(struct gdrcap_session *session, unsigned int timeout_ms)
{
	const uint64_t since = rte_rdtsc();
	bool all = true;

	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		const uint64_t gone_ms = (rte_rdtsc() - since) * 1000 / rte_get_tsc_hz();
		const unsigned int left =
			gone_ms < timeout_ms ? timeout_ms - (unsigned int)gone_ms : 0;

		all &= session->fronts.count
			       ? front_follow_is_through(&session->fronts.follow[i])
			       : thread_join_within(&session->workers.rx[i].thread, left);
	}
	return all;
}

void session_receivers_phase(struct gdrcap_session *session, enum rx_phase phase)
{
	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		session_receiver_set(session, i, phase);
}

/* A front on the GPU ends when the consumer is through, which may be dead. */
static bool receiver_has_ended(const struct gdrcap_session *session, struct rx_worker *worker)
{
	return atomic_load(&worker->ring.ended) || thread_is_stuck(&worker->thread) ||
	       (worker->fronted && (session->watch.stuck || session->run.failure));
}

void session_drops_first(struct gdrcap_session *session)
{
	struct port_counters counters;

	for (uint32_t p = 0; session->workers.rx_count && p < session->settings.ports; p++) {
		const struct port *port = &session->ports.pairs[p].rx;

		session_port_counters(session, port, &counters);
		/* What the kernel has kept since the port was opened, and what comes next, has a hole between. */
		if (counters.missed && port->facts->interface) {
			port_flush(port, PORT_KERNEL_FRAMES);
			session_port_counters(session, port, &counters);
		}
		session->ports.pairs[p].drops_first = counters.missed;
	}
}

void session_drops_last(struct gdrcap_session *session)
{
	struct port_counters counters;

	for (uint32_t p = 0; session->workers.rx_count && p < session->settings.ports; p++) {
		struct session_pair *pair = &session->ports.pairs[p];

		session_port_counters(session, &pair->rx, &counters);
		session_ports_lock(session);
		pair->drops_last = counters.missed;
		pair->drops_final = true;
		session_ports_unlock(session);
	}
}

uint64_t session_drops_in_run(const struct gdrcap_session *session, uint32_t p, uint64_t dropped)
{
	return dropped - RTE_MIN(dropped, session->ports.pairs[p].drops_first);
}

static void receivers_drain(struct gdrcap_session *session)
{
	session_drops_last(session);
	session_receivers_phase(session, RX_DRAIN);
}

/* Each has published its last burst, and receives nothing more; but for one that hangs. */
static void receivers_end(struct gdrcap_session *session)
{
	receivers_drain(session);
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		struct rx_worker *worker = &session->workers.rx[i];

		if (worker->fronted && session->workers.accountant.thread.running)
			continue; /* is seen to end, while the consumer still has bursts */
		if (!worker->thread.running) /* never was: the start failed */
			ring_end(&worker->ring);
		while (!receiver_has_ended(session, worker))
			sleep_ms(SESSION_TICK_MS);
		if (!atomic_load(&worker->ring.ended))
			session_worker_join(session, &worker->thread);
	}
}

bool session_receivers_cut(struct gdrcap_session *session)
{
	const uint32_t ms = session->run.cut ? 0 : drain_ms(session);

	if (ms && !quiet_is_over(&session->run.quiet, ms) &&
	    !session_is_blocked(session, &session->run.quiet))
		return false;
	if (!session->run.cut)
		receivers_drain(session);
	session->run.cut = true;
	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		if (!receiver_has_ended(session, &session->workers.rx[i]))
			return false;
	return !settings_collects(&session->settings) || session->watch.stuck ||
	       session->run.failure ||
	       session_bursts_collected(session) == session_bursts_published(session);
}

void session_receivers_close(struct gdrcap_session *session)
{
	if (settings_validates(&session->settings))
		return;
	receivers_drain(session);
	session->run.cut = true;
	atomic_store(&session->workers.accountant.images_end, true);
	accountant_wake(&session->workers.accountant);
}

/* Those of a consumer on the CPU, of who collects its results, and of who takes the slots back. */
bool session_consumer_is_starved(void *arg)
{
	struct gdrcap_session *session = arg;
	struct thread *accountant = &session->workers.accountant.thread;
	bool starved = session->jobs.check && session->memory.ops->starved(session->jobs.check);

	/* A file waits for what it is saved to. */
	starved |= session->frames.save && save_is_full(session->frames.save);
	starved |= session->jobs.front && session->memory.ops->starved(session->jobs.front);
	starved |= !thread_has_left(accountant) &&
		   thread_is_starved(&accountant->look, accountant->id);
	for (uint32_t i = 0; i < session->workers.rx_count; i++) {
		struct thread *thread = &session->workers.rx[i].thread;

		starved |= !thread_has_left(thread) && thread_is_starved(&thread->look, thread->id);
	}
	return starved;
}

/* True when the receivers have every slot back. */
static bool consumer_finishes(struct gdrcap_session *session)
{
	struct patience patience;
	uint64_t collected = 0;

	patience_begin(&patience);
	while (!session_receivers_join(session, 0)) {
		const uint64_t now = session_bursts_collected(session);

		if (now != collected && !session->run.failure)
			patience_begin(&patience);
		collected = now;
		if (patience_ends(&patience, CONSUMER_MS, session_consumer_is_starved, session))
			return false;
		sleep_ms(SESSION_TICK_MS);
	}
	session_moves(session);
	return true;
}

void session_abandon(struct gdrcap_session *session)
{
	session_receivers_phase(session, RX_ABANDON);
	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		session_worker_join(session, &session->workers.rx[i].thread);
}

void session_receivers_stop(struct gdrcap_session *session)
{
	receivers_end(session);
	if (!settings_collects(&session->settings)) {
		/* The caller may keep batches; whoever destroys the session ends these threads. */
		session_receivers_join(session, CALLER_MS);
		return;
	}
	if (consumer_finishes(session))
		return;
	if (session_bursts_published(session) != session_bursts_collected(session)) {
		if (!session->run.failure)
			session->run.failure = -ETIMEDOUT;
		session_message(
			session, GDRCAP_LOG_ERROR,
			"the consumer is dead: bursts that stay unchecked: %llu; their frames count as lost",
			(unsigned long long)(session_bursts_published(session) -
					     session_bursts_collected(session)));
	}
	session_abandon(session);
}
