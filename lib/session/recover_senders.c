/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at the send queues of a session's cards, whoever's frames they send: what stands still, and what
 * was in error. */
#include "session/recover.h"

#include <stdio.h>

#include <rte_ethdev.h>

#include "base/log.h"
#include "session/session.h"

/* A send queue, the built-in sender's or the caller's. */
struct queue_seen {
	uint64_t sent, stalled;
	bool finished, hold;
};

static uint64_t count_of(const _Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

static struct queue_seen queue_see(const struct gdrcap_session *session, uint32_t i)
{
	if (session->sending.count) {
		const struct gdrcap_tx *tx = &session->sending.queues[i];

		return (struct queue_seen){
			count_of(&tx->sent),
			count_of(&tx->stalled),
			atomic_load_explicit(&tx->finished, memory_order_relaxed),
			atomic_load_explicit(&tx->hold, memory_order_relaxed),
		};
	}
	return (struct queue_seen){
		count_of(&session->workers.tx[i].sent),
		count_of(&session->workers.tx[i].stalled),
		atomic_load_explicit(&session->workers.tx[i].finished, memory_order_relaxed),
		atomic_load_explicit(&session->workers.tx[i].hold, memory_order_relaxed),
	};
}

static void sender_stuck(struct gdrcap_session *session, const struct session_pair *pair,
			 const struct port *port, uint32_t q)
{
	struct xstats_values values;
	char why[160] = "is the other end there, and does it receive? ethtool and dmesg say more";

	session_ports_lock(session);
	xstats_read(&pair->tx_xstats, &values);
	session_ports_unlock(session);
	if (pair->recover.tx_failing)
		snprintf(why, sizeof(why),
			 "the queue is in error and the driver cannot start it "
			 "again; dmesg has the card's words");
	else if (xstats_known(&values, XSTATS_PAUSE_RX) && values.count[XSTATS_PAUSE_RX])
		snprintf(why, sizeof(why),
			 "the other side holds it up with pause frames (%llu so "
			 "far; flow control: ethtool -a INTERFACE)",
			 (unsigned long long)values.count[XSTATS_PAUSE_RX]);
	session_message(session, GDRCAP_LOG_WARNING,
			"port %s: send queue %u has taken no frame for %u ms: %s", port->name, q,
			RECOVER_STUCK_MS, why);
}

/* The driver starts a send queue in error again by itself. What it counts are pieces of the queue,
 * so only that there were some is told. */
static void sender_errors(struct gdrcap_session *session, struct session_pair *pair,
			  const struct port *port)
{
	struct port_counters counters;
	bool grew;

	session_port_counters(session, port, &counters);
	grew = counters.tx_error != pair->recover.tx_errors;
	pair->recover.tx_errors = counters.tx_error;
	if (grew && !pair->recover.tx_failing)
		session_message(session, GDRCAP_LOG_WARNING,
				"port %s: a send queue was in error and the driver started it "
				"again; frames that were in it are lost (dmesg has the card's "
				"words)",
				port->name);
	pair->recover.tx_failing = grew;
}

/* After the senders' ends a driver hears of an error only when it is asked for something. The caller's
 * queues are asked by who collects what they gave back: send_ask(). */
static void sender_ask(const struct gdrcap_session *session, uint32_t i)
{
	const struct tx_worker *worker;

	if (session->sending.count || session->own_senders.count)
		return;
	worker = &session->workers.tx[i];
	if (atomic_load_explicit(&worker->finished, memory_order_acquire))
		(void)rte_eth_tx_descriptor_status(worker->config.port, worker->config.queue, 0);
}

void recover_senders(struct gdrcap_session *session, uint32_t p)
{
	const uint32_t queues = session->settings.queues;
	struct session_pair *pair = &session->ports.pairs[p];
	const struct port *port = session_sending_port(session, p * queues);

	if (session->workers.tx_count + session->sending.count == 0 || !recover_is_card(port))
		return;
	for (uint32_t q = 0; q < queues; q++) {
		const struct queue_seen seen = queue_see(session, p * queues + q);

		sender_ask(session, p * queues + q);
		switch (recover_sender_look(&pair->recover.tx[q], recover_now_ms(), seen.sent,
					    seen.stalled, seen.finished || seen.hold)) {
		case RECOVER_STUCK:
			sender_stuck(session, pair, port, q);
			break;
		case RECOVER_MOVES:
			session_message(session, GDRCAP_LOG_WARNING,
					"port %s: send queue %u sends again", port->name, q);
			break;
		default:
			break;
		}
	}
	if (session->own_senders.count)
		session_own_senders_watch(session, p);
	else
		sender_errors(session, pair, port);
}
