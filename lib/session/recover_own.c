/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues of our own that a card has ended with an error, or whose completions are not to be
 * believed: reset under the run, one by one, while the port and its rules stay as they are. What
 * comes meanwhile finds no slot, and counts as lost by the error.
 */
#include <stdio.h>

#include "base/log.h"
#include "session/session.h"

#define ENDED_LOOKS 10u

static bool front_stopped(const struct cq_worker *cq)
{
	/* Partner: the release store in cq_stop(), or front_mark(). */
	return atomic_load_explicit(&cq->state, memory_order_acquire) == CQ_STOPPED;
}

/* Why a queue is in error, for people. `fault` of a front that is STOPPED stays as it is. */
static const char *fault_text(const struct cq_worker *cq, char *text, size_t bytes)
{
	const struct cq_fault *fault = &cq->fault;

	if (!front_stopped(cq))
		snprintf(text, bytes, "the card has ended it");
	else if (fault->kind == CQ_ERROR)
		snprintf(text, bytes, "the card reports syndrome 0x%02x",
			 fault->cqe[CQ_SYNDROME_AT]);
	else
		snprintf(text, bytes, "%s", cq_worker_fault_words(fault));
	return text;
}

/*
 * The card has ended the queue, and its front comes to no completion that says so: at so many looks in a row
 * it had done nothing but idle rounds. Nothing is reset sooner, since what the front has not taken by then is
 * lost.
 */
static bool queue_ended_unsaid(struct own_queues *own, uint32_t q, const struct rx_worker *worker)
{
	const uint64_t idle = atomic_load_explicit(&worker->idle, memory_order_relaxed);
	const uint64_t moved = atomic_load_explicit(&worker->frames, memory_order_relaxed) +
			       atomic_load_explicit(&worker->back, memory_order_relaxed);

	if (moved != own->moved[q])
		own->ended[q] = 0;
	else if (idle != own->idle[q])
		own->ended[q] = own_queues_failed(own, q) ? own->ended[q] + 1 : 0;
	own->moved[q] = moved;
	own->idle[q] = idle;
	return own->ended[q] >= ENDED_LOOKS;
}

/* Bits of the queues that are to be reset. */
static uint32_t queues_look(struct gdrcap_session *session, uint32_t p)
{
	struct own_queues *own = session->ports.pairs[p].own;
	const struct rx_worker *workers = &session->workers.rx[p * session->settings.queues];
	uint32_t found = 0;

	session_ports_lock(session);
	own_queues_look(own);
	for (uint32_t q = 0; q < own->count; q++)
		if (!own->dead[q] &&
		    (front_stopped(&own->cq[q]) || queue_ended_unsaid(own, q, &workers[q])))
			found |= 1u << q;
	session_ports_unlock(session);
	return found;
}

/* One that was started RECOVER_TRIES times without a frame in between is left alone. */
static bool queue_gives_up(struct gdrcap_session *session, uint32_t p, uint32_t q)
{
	struct own_queues *own = session->ports.pairs[p].own;
	const uint64_t frames =
		atomic_load_explicit(&session->workers.rx[p * session->settings.queues + q].frames,
				     memory_order_relaxed);

	own->tries[q] = frames == own->frames[q] ? own->tries[q] + 1 : 1;
	own->frames[q] = frames;
	own->dead[q] = own->tries[q] > RECOVER_TRIES;
	return own->dead[q];
}

static bool queues_left(const struct own_queues *own)
{
	for (uint32_t q = 0; q < own->count; q++)
		if (!own->dead[q])
			return true;
	return false;
}

/* They are paused. */
static void queues_heal(struct gdrcap_session *session, uint32_t p, uint32_t found)
{
	struct session_pair *pair = &session->ports.pairs[p];
	struct own_queues *own = pair->own;

	for (uint32_t q = 0; q < own->count; q++) {
		struct gdrcap_error error;
		char why[96], how[160];
		int ret;

		if (!(found >> q & 1))
			continue;
		fault_text(&own->cq[q], why, sizeof(why));
		if (queue_gives_up(session, p, q)) {
			session_message(
				session, GDRCAP_LOG_ERROR,
				"port %s: receive queue %u was started %u times and brought "
				"no frame (%s); dmesg has the card's words",
				pair->rx.name, q, RECOVER_TRIES, why);
			continue;
		}
		session_ports_lock(session);
		ret = own_queues_reset(own, q, &error);
		session_ports_unlock(session);
		if (ret < 0) {
			own->dead[q] = true;
			session_message(session, GDRCAP_LOG_ERROR,
					"port %s: receive queue %u was in error (%s), and does not "
					"start again: %s",
					pair->rx.name, q, why, error.text);
			continue;
		}
		snprintf(how, sizeof(how), "in error (%s) and started again", why);
		recover_told(session, pair, 1u << q, how);
	}
}

void recover_own(struct gdrcap_session *session, uint32_t p)
{
	struct session_pair *pair = &session->ports.pairs[p];
	/* Fronts on the GPU that were told to pause end, however long that takes, and others have to follow. */
	const bool pausing = session->fronts.pausing && !session->run.cut;
	uint32_t found;

	if (pair->recover.rx_dead)
		return;
	if (session->fronts.count)
		session_fronts_look(session, p);
	found = queues_look(session, p);
	/* Nothing more is going to come: the end tells what was seen. */
	if (!pausing && (!found || atomic_load(&session->run.ending)))
		return;
	if (!recover_pause(session, p))
		return;
	queues_heal(session, p, found);
	if (!queues_left(pair->own))
		recover_port_dies(session, p);
	/* Fronts on the GPU are one kernel, of all ports. */
	if (queues_left(pair->own) || session->fronts.count)
		recover_go_on(session, p);
}

static bool queue_is_ended(struct gdrcap_session *session, struct own_queues *own, uint32_t q)
{
	bool ended;

	session_ports_lock(session);
	ended = own_queues_failed(own, q);
	session_ports_unlock(session);
	return ended;
}

void recover_own_end(struct gdrcap_session *session, uint32_t p)
{
	const struct session_pair *pair = &session->ports.pairs[p];
	struct own_queues *own = pair->own;
	char why[96];

	for (uint32_t q = 0; q < own->count && !pair->recover.rx_dead; q++)
		if (!own->dead[q] &&
		    (front_stopped(&own->cq[q]) || queue_is_ended(session, own, q)))
			session_message(session, GDRCAP_LOG_WARNING,
					"port %s: receive queue %u was in error when the run ended "
					"(%s); frames since then are lost",
					pair->rx.name, q,
					fault_text(&own->cq[q], why, sizeof(why)));
}
