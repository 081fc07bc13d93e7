/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at a session's cards while it runs, and starts again what no longer moves: recover.h. */
#include "session/recover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "base/clock.h"
#include "base/log.h"
#include "port/dpdk_release.h"
#include "session/session.h"

#define PAUSE_MS 500u /* a thread answers within that, or it hardly runs at all */
#define TOLD_MOST 16u /* restarts of a port that are reported one by one */

/* "receive queue 0 was", "receive queues 1, 3 were". */
static const char *queues_were(uint32_t queues, char *text, size_t bytes)
{
	const bool many = __builtin_popcount(queues) > 1;
	size_t used = (size_t)snprintf(text, bytes, "receive queue%s", many ? "s" : "");

	for (uint32_t q = 0; q < GDRCAP_QUEUES_MAX && used < bytes; q++)
		if (queues >> q & 1)
			used += (size_t)snprintf(text + used, bytes - used, "%s %u",
						 queues & ((1u << q) - 1) ? "," : "", q);
	if (used < bytes)
		snprintf(text + used, bytes - used, many ? " were" : " was");
	return text;
}

/* ---- looking ---- */

/* Frames that the rules put into our queues since they were made. */
static bool pair_hits(const struct session_pair *pair, uint64_t *frames)
{
	struct steering_hits hits[STEERING_RULES_MAX];

	*frames = 0;
	steering_query(&pair->steering, hits);
	for (uint32_t r = 0; r < pair->steering.rules; r++) {
		if (!hits[r].known)
			return false;
		*frames += hits[r].frames;
	}
	return pair->steering.rules != 0;
}

static bool pair_has_room(const struct gdrcap_session *session, const struct session_pair *pair)
{
	const uint32_t ring = session->settings.descriptors;

	for (uint32_t q = 0; q < session->settings.queues; q++) {
		const struct rte_mempool *heads = pair->head_pool[q];

		if (rte_mempool_avail_count(pair->rx_pool[q]) < ring ||
		    (heads && rte_mempool_avail_count(heads) < ring))
			return false;
	}
	return true;
}

static uint64_t frames_of(const struct gdrcap_session *session, uint32_t p, uint32_t q)
{
	const struct rx_worker *worker = &session->workers.rx[p * session->settings.queues + q];

	return atomic_load_explicit(&worker->frames, memory_order_relaxed);
}

/* False: the driver does not answer. */
static bool sample_take(const struct gdrcap_session *session, uint32_t p,
			struct recover_sample *sample)
{
	const struct session_pair *pair = &session->ports.pairs[p];
	const uint32_t queues = session->settings.queues;
	struct rte_eth_burst_mode mode;
	struct rte_eth_stats stats;
	int ret;

	memset(sample, 0, sizeof(*sample));
	session_ports_lock(session);
	ret = dpdk_stats_get(pair->rx.id, &stats, sample->queue_errors, queues);
	session_ports_unlock(session);
	if (ret != 0)
		return false;
	sample->ms = recover_now_ms();
	sample->queues = queues;
	sample->stays = rte_eth_rx_burst_mode_get(pair->rx.id, 0, &mode) == 0 &&
			strstr(mode.info, "Vector");
	sample->room = pair_has_room(session, pair);
	sample->hits_known = pair_hits(pair, &sample->hits);
	sample->missed = stats.imissed - pair->rx.missed_base;
	sample->errors = stats.ierrors;
	for (uint32_t q = 0; q < queues; q++)
		sample->frames[q] = frames_of(session, p, q);
	return true;
}

/* ---- starting a port again ---- */

static void receivers_set(struct gdrcap_session *session, uint32_t p, enum rx_phase phase)
{
	for (uint32_t q = 0; q < session->settings.queues; q++)
		session_receiver_set(session, p * session->settings.queues + q, phase);
}

bool session_threads_are(const struct gdrcap_session *session, uint32_t p,
			 int (*paused)(const struct gdrcap_session *session, uint32_t i),
			 int wanted, uint64_t since)
{
	uint32_t q = 0;

	while (q < session->settings.queues) {
		if (paused(session, p * session->settings.queues + q) == wanted)
			q++;
		else if (tsc_older(since, PAUSE_MS))
			return false;
		else
			sleep_ms(SESSION_TICK_MS);
	}
	return true;
}

/* After its last access to the port. Partner: the release store in rx_pause(). */
static int receiver_paused(const struct gdrcap_session *session, uint32_t i)
{
	return atomic_load_explicit(&session->workers.rx[i].paused, memory_order_acquire);
}

/* From then on the port is ours. False: a thread does not answer; all go on as before. */
bool recover_pause(struct gdrcap_session *session, uint32_t p)
{
	const uint64_t since = rte_rdtsc();

	if (session->fronts.count)
		return session_fronts_pause(session);
	/* One that has not left the last pause would be taken for one in this. */
	if (!session_threads_are(session, p, receiver_paused, 0, since))
		return false;
	receivers_set(session, p, RX_PAUSE);
	if (session_threads_are(session, p, receiver_paused, 1, since))
		return true;
	receivers_set(session, p, RX_RUN);
	return false;
}

void recover_go_on(struct gdrcap_session *session, uint32_t p)
{
	if (session->fronts.count)
		session_fronts_go_on(session);
	else
		receivers_set(session, p, RX_RUN);
}

/* Frames wait in them, or came since the last look: it was their threads that did not run. */
static bool queues_have_frames(const struct gdrcap_session *session, uint32_t p, uint32_t queues)
{
	const struct session_pair *pair = &session->ports.pairs[p];

	for (uint16_t q = 0; q < session->settings.queues; q++)
		if (queues >> q & 1 &&
		    (frames_of(session, p, q) != pair->recover.rx.last.frames[q] ||
		     rte_eth_rx_queue_count(pair->rx.id, q) > 0))
			return true;
	return false;
}

/*
 * A start makes rules anew, and some of the driver's counters: what was counted stays counted. Not
 * so the rules' hits: the driver last read them up to a second ago. Nobody reads meanwhile what the
 * port counts.
 */
static int port_start_again(struct gdrcap_session *session, struct session_pair *pair,
			    struct gdrcap_error *error)
{
	struct xstats_values before, sent_before;
	int ret;

	session_ports_lock(session);
	pair->rules_anew = true;
	steering_destroy(&pair->steering);
	port_stop(&pair->rx);
	xstats_read(&pair->rx_xstats, &before);
	xstats_read(&pair->tx_xstats, &sent_before);
	ret = port_restart(&pair->rx, error);
	if (ret == 0) {
		xstats_go_on(&pair->rx_xstats, &before);
		if (pair->both)
			xstats_go_on(&pair->tx_xstats, &sent_before);
		ret = session_rules_create(session, pair, error);
	}
	session_ports_unlock(session);
	return ret;
}

/* ---- what is found ---- */

static bool ports_left(const struct gdrcap_session *session)
{
	for (uint32_t p = 0; p < session->settings.ports; p++)
		if (!session->ports.pairs[p].recover.rx_dead)
			return true;
	return false;
}

/* Its receivers stay away from it. */
void recover_port_dies(struct gdrcap_session *session, uint32_t p)
{
	session->ports.pairs[p].recover.rx_dead = true;
	receivers_set(session, p, RX_PAUSE);
	if (!ports_left(session))
		session_fail(session, -EIO, "nothing is left to receive on");
}

void recover_told(struct gdrcap_session *session, struct session_pair *pair, uint32_t queues,
		  const char *how)
{
	struct gdrcap_event event =
		event_of_port(GDRCAP_EVENT_QUEUE_RESTARTED, (uint32_t)(pair - session->ports.pairs),
			      false, queues & (queues - 1) ? -1 : __builtin_ctz(queues));
	char names[96];

	event.count = (uint64_t)__builtin_popcount(queues);
	session->ports.queue_restarts += (uint32_t)event.count;
	if (pair->recover.told++ >= TOLD_MOST)
		return;
	session_tell(session, GDRCAP_LOG_WARNING, event,
		     "port %s: %s %s; frames meanwhile are lost%s", pair->rx.name,
		     queues_were(queues, names, sizeof(names)), how,
		     pair->recover.told == TOLD_MOST ? " (later ones are only counted)" : "");
}

static void told_driver(struct gdrcap_session *session, struct session_pair *pair, uint32_t queues)
{
	recover_told(session, pair, queues, "in error and started again by the driver");
}

static void port_heal(struct gdrcap_session *session, uint32_t p, const struct recover_found *found)
{
	const uint32_t queues = found->error | found->silent;
	struct session_pair *pair = &session->ports.pairs[p];
	struct recover_sample sample;
	struct gdrcap_error error;

	int ret;

	if (!recover_pause(session, p))
		return;
	if (!found->error && queues_have_frames(session, p, queues)) {
		receivers_set(session, p, RX_RUN);
		return;
	}
	if (!session_sending_pause(session, p)) {
		receivers_set(session, p, RX_RUN);
		return;
	}
	ret = port_start_again(session, pair, &error);
	session_sending_go_on(session, p);
	if (ret < 0) {
		session_message(session, GDRCAP_LOG_ERROR,
				"port %s: a receive queue was in error, and the port does not "
				"start again: %s",
				pair->rx.name, error.text);
		recover_port_dies(session, p);
		return;
	}
	if (sample_take(session, p, &sample))
		recover_restarted(&pair->recover.rx, queues, &sample);
	recover_told(session, pair, queues,
		     found->error ? "in error and started again"
				  : "given frames that did not come out, and started again");
	receivers_set(session, p, RX_RUN);
}

static void queues_given_up(struct gdrcap_session *session, uint32_t p, uint32_t queues)
{
	struct session_pair *pair = &session->ports.pairs[p];
	const struct recover *rx = &pair->recover.rx;
	uint32_t alive = 0;
	char names[96];

	session_message(session, GDRCAP_LOG_ERROR,
			"port %s: %s started %u times and brought no frame: the card may not write "
			"the frames' memory any more; was the GPU reset, or its driver loaded "
			"anew? Load nvidia-peermem after the GPU's driver (modprobe -r "
			"nvidia-peermem; modprobe nvidia-peermem) and run again; dmesg has the "
			"card's words",
			pair->rx.name, queues_were(queues, names, sizeof(names)), RECOVER_TRIES);
	/* Those that never had a frame are no reason to go on. */
	for (uint32_t q = 0; q < session->settings.queues; q++)
		alive += !rx->queue[q].dead && rx->last.frames[q];
	if (alive == 0)
		recover_port_dies(session, p);
}

static void receiver_look(struct gdrcap_session *session, uint32_t p)
{
	struct session_pair *pair = &session->ports.pairs[p];
	struct recover_sample sample;
	struct recover_found found;

	if (pair->recover.rx_dead || !sample_take(session, p, &sample))
		return;
	found = recover_look(&pair->recover.rx, &sample);
	if (found.healed)
		told_driver(session, pair, found.healed);
	if (found.dead)
		queues_given_up(session, p, found.dead);
	/* Nothing more is going to come: the end tells what was seen. */
	if ((found.error || found.silent) && !pair->recover.rx_dead &&
	    !atomic_load(&session->run.ending))
		port_heal(session, p, &found);
}

/* ---- removal ---- */

static int port_removed(uint16_t port, enum rte_eth_event_type event, void *removed, void *detail)
{
	atomic_store((_Atomic int *)removed, 1);
	return 0;
}

static void removal_watch(struct port *port, _Atomic int *removed, bool on)
{
	int ret = -EAGAIN;

	if (!recover_is_card(port))
		return;
	if (on)
		ret = rte_eth_dev_callback_register(port->id, RTE_ETH_EVENT_INTR_RMV, port_removed,
						    removed);
	/* -EAGAIN: it is running just now. */
	while (!on && ret == -EAGAIN)
		ret = rte_eth_dev_callback_unregister(port->id, RTE_ETH_EVENT_INTR_RMV,
						      port_removed, removed);
	if (on && ret < 0)
		log_debug("port %s: its removal will not be noticed: %s", port->name,
			  rte_strerror(-ret));
}

static void removal_look(struct gdrcap_session *session, const struct port *port,
			 _Atomic int *removed, struct gdrcap_event gone)
{
	if (!atomic_load(removed) || session->run.failure)
		return;
	session_tell(session, GDRCAP_LOG_ERROR, gone,
		     "port %s: the card was removed, or its driver gave it up (dmesg says which)",
		     port->name);
	session_fail(session, -ENODEV, "a card is gone");
}

/* ---- a session's run ---- */

void recover_begin(struct gdrcap_session *session)
{
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		struct session_pair *pair = &session->ports.pairs[p];
		struct recover_sample sample;

		pair->recover = (struct recover_pair){ .rx_dead = false };
		if (session->workers.rx_count && recover_is_card(&pair->rx) && !pair->own &&
		    sample_take(session, p, &sample))
			recover_look(&pair->recover.rx, &sample);
		removal_watch(&pair->rx, &pair->recover.rx_removed, true);
		removal_watch(&pair->tx, &pair->recover.tx_removed, true);
	}
}

void recover_watch(struct gdrcap_session *session)
{
	if (!tsc_older(session->watch.recover_tsc, RECOVER_LOOK_MS))
		return;
	session->watch.recover_tsc = rte_rdtsc();
	for (uint32_t p = 0; p < session->settings.ports && !session->run.failure; p++) {
		struct session_pair *pair = &session->ports.pairs[p];

		removal_look(session, &pair->rx, &pair->recover.rx_removed,
			     event_of_port(GDRCAP_EVENT_PORT_GONE, p, false, -1));
		removal_look(session, &pair->tx, &pair->recover.tx_removed,
			     event_of_port(GDRCAP_EVENT_PORT_GONE, p, true, -1));
		if (session->workers.rx_count && pair->own)
			recover_own(session, p);
		else if (session->workers.rx_count && recover_is_card(&pair->rx))
			receiver_look(session, p);
		recover_senders(session, p);
	}
}

void recover_end(struct gdrcap_session *session)
{
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		struct session_pair *pair = &session->ports.pairs[p];
		uint32_t queues, healed;
		char names[96];

		removal_watch(&pair->rx, &pair->recover.rx_removed, false);
		removal_watch(&pair->tx, &pair->recover.tx_removed, false);
		recover_senders(session, p);
		if (session->workers.rx_count && pair->own) {
			recover_own_end(session, p);
			continue;
		}
		if (session->workers.rx_count == 0 || !recover_is_card(&pair->rx) ||
		    pair->recover.rx_dead)
			continue;
		receiver_look(session, p);
		queues = recover_left(&pair->recover.rx, &healed);
		if (healed)
			told_driver(session, pair, healed);
		if (queues)
			session_message(session, GDRCAP_LOG_WARNING,
					"port %s: %s in error when the run ended; frames since "
					"then are lost",
					pair->rx.name, queues_were(queues, names, sizeof(names)));
	}
}
