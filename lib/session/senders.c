/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the senders hand over what they were asked to. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/clock.h"
#include "base/patience.h"
#include "port/af_packet.h"
#include "port/kernel_drops.h"
#include "port/memif_rings.h"
#include "session/session.h"

/* So much of the time between two looks counts at most: this process may have been stopped. */
#define LOOK_MOST_S 1u
/* A memif's other end may have no core for seconds on a busy machine; a stop in the middle is to return soon. */
#define LINGER_MS 5000u
#define LINGER_ALL_MS 30000u
#define LINGER_STOPPED_MS 500u
#define UNKNOWN_MS 500u /* rings whose number of frames left is not known */
#define FLUSH_MS 1000u	/* all in all */
#define SETTLE_MS 30u	/* and SEND_STOP_MS before: a stop takes 100 ms where nothing moves */
#define SETTLE_LOOKS 20u

static struct session_trying senders_look(const struct gdrcap_session *session)
{
	struct session_trying now = { .tsc = rte_rdtsc(), .vain = session->watch.trying.vain };

	for (uint32_t i = 0; i < session->workers.tx_count; i++) {
		const struct tx_worker *worker = &session->workers.tx[i];

		now.sent += atomic_load_explicit(&worker->sent, memory_order_relaxed);
		now.stalled += atomic_load_explicit(&worker->stalled, memory_order_relaxed);
		now.idle += atomic_load_explicit(&worker->idle, memory_order_relaxed);
	}
	return now;
}

/* Of a port that has frames to take. */
static const struct port *port_of_vain(const struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		if (!atomic_load_explicit(&session->workers.tx[i].finished, memory_order_acquire))
			return &session->ports.pairs[i / session->settings.queues].tx;
	return &session->ports.pairs[0].tx;
}

/* Only time in which a sender tried counts: one without a core did not, nor one whose next frame is
 * not due. */
void session_senders_watch(struct gdrcap_session *session)
{
	const uint64_t hz = rte_get_tsc_hz();
	const struct session_trying before = session->watch.trying;
	const struct port *port;
	struct session_trying now;
	char what[512];

	if (session->workers.tx_count == 0 || session->workers.rx_count ||
	    session->settings.give_up_ms == 0)
		return;
	now = senders_look(session);
	if (now.sent != before.sent || (now.stalled == before.stalled && now.idle != before.idle))
		now.vain = 0;
	else if (before.tsc && now.stalled != before.stalled)
		now.vain += RTE_MIN(now.tsc - before.tsc, LOOK_MOST_S * hz);
	session->watch.trying = now;
	if (now.vain <= session->settings.give_up_ms * (hz / 1000))
		return;
	port = port_of_vain(session);
	snprintf(
		what, sizeof(what),
		"port %s took nothing for %.1f s (--give-up): %s; start that first, or wait longer "
		"(0: for ever)",
		port->name, session->settings.give_up_ms / 1e3,
		port_link_up(port) ? "its other end left, never came, or does not take what it gets"
				   : "its link is down, or its other end never came (ip link)");
	session_fail(session, -ETIMEDOUT, what);
}

/* Seconds since a port took something, or since the start. */
static double senders_silence(const struct gdrcap_session *session)
{
	uint64_t last = session->run.start_tsc;

	for (uint32_t i = 0; i < session->workers.tx_count; i++)
		last = RTE_MAX(last, atomic_load_explicit(&session->workers.tx[i].last_tsc,
							  memory_order_relaxed));
	return (double)tsc_since(last) / (double)rte_get_tsc_hz();
}

/* Send queues, whoever's they are: there is one kind. */
static uint32_t queues_count(const struct gdrcap_session *session)
{
	return session->workers.tx_count + session->sending.count;
}

/* When queue i last handed something over. */
static uint64_t queue_last(const struct gdrcap_session *session, uint32_t i)
{
	return atomic_load_explicit(session->sending.count ? &session->sending.queues[i].last_tsc
							   : &session->workers.tx[i].last_tsc,
				    memory_order_relaxed);
}

static uint64_t queue_sent(const struct gdrcap_session *session, uint32_t i)
{
	return atomic_load_explicit(session->sending.count ? &session->sending.queues[i].sent
							   : &session->workers.tx[i].sent,
				    memory_order_relaxed);
}

/* What sending ports were given and did not leave yet. */
struct left {
	int error;	 /* the kernel keeps some of an AF_PACKET socket's, and why; or 0 */
	uint64_t places; /* of memifs' rings, that the other ends have not taken */
	bool waits; /* for a memif of which that is not known, some time after its last frame */
	bool moved; /* some have left just now */
	const struct port *socket, *memif; /* of the last of them */
};

static int socket_of(const struct port *port, uint32_t queue)
{
	return port->drops && port_name_is_af_packet(port->name)
		       ? kernel_drops_socket(port->drops, queue)
		       : -1;
}

/* What is left in the rings of AF_PACKET's sockets. */
static void sockets_flush(const struct gdrcap_session *session, struct left *left)
{
	for (uint32_t i = 0; left->error == 0 && i < queues_count(session); i++) {
		const struct port *port = session_sending_port(session, i);
		const int fd = socket_of(port, i % session->settings.queues);

		if (fd < 0)
			continue;
		left->error = af_packet_flush(fd, &left->moved);
		if (left->error)
			left->socket = port;
	}
}

static uint64_t port_sent(const struct gdrcap_session *session, uint32_t p)
{
	const uint32_t queues = session->settings.queues;
	uint64_t sent = 0;

	for (uint32_t q = 0; queues_count(session) && q < queues; q++)
		sent += queue_sent(session, p * queues + q);
	return sent;
}

uint64_t session_sender_may_lose(const struct gdrcap_session *session, uint32_t p)
{
	const uint64_t sent = port_sent(session, p);
	struct af_packet_ring ring;
	const struct port *port;

	if (sent == 0)
		return 0;
	port = session_sending_port(session, p * session->settings.queues);
	if (!port_name_is_af_packet(port->name))
		return UINT64_MAX;
	af_packet_ring(&ring, port->name);
	return RTE_MIN(sent, (uint64_t)ring.frames * ring.queues);
}

/* Of a sender into its own receiver that tells what came. */
static bool senders_alone(const struct gdrcap_session *session)
{
	return !session->workers.rx_count || session->sending.count;
}

void session_senders_begin(struct gdrcap_session *session)
{
	for (uint32_t p = 0; queues_count(session) && p < session->settings.ports; p++) {
		const struct port *port =
			session_sending_port(session, p * session->settings.queues);

		if (port->facts->joins)
			(void)memif_rings_lost(port->id, port_name_listens(port->name));
	}
}

/* What other ends that left, or were killed, had not taken. */
static void lost_tell(struct gdrcap_session *session, uint32_t p)
{
	const struct port *port = session_sending_port(session, p * session->settings.queues);
	const uint64_t sent = port_sent(session, p);
	struct memif_lost lost;

	if (!port->facts->joins || sent == 0)
		return;
	lost = memif_rings_lost(port->id, port_name_listens(port->name));
	if (lost.unknown)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"port %s: its other end left, and how many frames it had not received "
			"by then, which are lost, is not known",
			port->name);
	else if (lost.places)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"port %s: up to %llu frames that it took are lost: its other end left "
			"before it had received them",
			port->name, (unsigned long long)RTE_MIN(lost.places, sent));
}

/* A memif's memory goes with the one who leaves, and with it what the other end has not taken out of
 * it; unless that has left itself. */
static void memifs_look(const struct gdrcap_session *session, struct left *left)
{
	const uint32_t queues = session->settings.queues;

	if (!senders_alone(session))
		return;
	for (uint32_t i = 0; i < queues_count(session); i += queues) {
		const struct port *port = session_sending_port(session, i);
		uint64_t last = 0, sent = 0, places;

		for (uint32_t q = 0; q < queues; q++) {
			last = RTE_MAX(last, queue_last(session, i + q));
			sent += queue_sent(session, i + q);
		}
		if (!last || !port->facts->joins || !port_link_up(port))
			continue;
		if (!memif_rings_left(port->id, port_name_listens(port->name), queues, &places)) {
			left->waits |= !tsc_older(last, UNKNOWN_MS);
			continue;
		}
		/* A server sees places that its client has not given again yet. */
		left->places += RTE_MIN(places, sent);
		if (places)
			left->memif = port;
	}
}

static struct left senders_left(const struct gdrcap_session *session)
{
	struct left left = { 0 };

	sockets_flush(session, &left);
	memifs_look(session, &left);
	return left;
}

void session_sending_kick(const struct gdrcap_session *session)
{
	struct left left = { 0 };

	if (session->sending.count)
		sockets_flush(session, &left);
}

static void left_tell(struct gdrcap_session *session, const struct left *left)
{
	if (left->places)
		session_message(
			session, GDRCAP_LOG_WARNING,
			"port %s: up to %llu of the last frames are lost: its other end has "
			"not taken them and took none for a while before this end left",
			left->memif->name, (unsigned long long)left->places);
	if (left->error == 0)
		return;
	/* An interface that is down does not even say whether it has any. */
	if (left->error == -ENETDOWN && session->sending.count) {
		session_message(
			session, GDRCAP_LOG_WARNING,
			"port %s: its link is down, and whether the last frames that it took "
			"before were sent is not known",
			left->socket->name);
		return;
	}
	session->run.failure = left->error;
	session_message(session, GDRCAP_LOG_ERROR,
			"port %s: the last frames that it was given are still with the kernel, "
			"which does not send them: %s; is the link up, and does the other end take "
			"frames of this length (ip -d link show; MTU)?",
			left->socket->name, strerror(-left->error));
}

/* The built-in sender sent all frames, or for as long, as it was asked to: it was not stopped before. */
static bool sender_is_through(const struct gdrcap_session *session)
{
	const uint64_t asked = session->run.tx_asked;

	return session->run.ended_by_time || (asked && session_sent(session) >= asked);
}

/* After how long what is left is given up. */
struct settle_limits {
	uint32_t still_ms; /* while nothing moves */
	uint32_t all_ms;   /* whether something moves or not */
};

/* The caller's stop is to return soon. */
static struct settle_limits settle_limits(const struct gdrcap_session *session,
					  const struct left *left)
{
	if (session->sending.count)
		return (struct settle_limits){ SETTLE_MS, FLUSH_MS };
	if (left->error)
		return (struct settle_limits){ FLUSH_MS, FLUSH_MS };
	if (sender_is_through(session))
		return (struct settle_limits){ LINGER_MS, LINGER_ALL_MS };
	return (struct settle_limits){ LINGER_STOPPED_MS, FLUSH_MS };
}

void session_senders_settle(struct gdrcap_session *session)
{
	struct patience patience, all;
	struct left left;
	uint64_t before = 0;
	unsigned int looks = 0;

	if (session->run.failure)
		return;
	patience_begin(&patience);
	patience_begin(&all);
	for (;;) {
		struct settle_limits limits;

		left = senders_left(session);
		if (left.error == 0 && left.places == 0 && !left.waits)
			return;
		limits = settle_limits(session, &left);
		if (left.waits || left.moved || left.places < before) {
			patience_begin(&patience);
			looks = 0;
		}
		before = left.places;
		/* Looks: a thread that had no core before has had one when this one slept so often. */
		if (looks++ >= SETTLE_LOOKS &&
		    patience_ends(&patience, limits.still_ms, NULL, NULL))
			break;
		if (patience_ends(&all, limits.all_ms, NULL, NULL))
			break;
		sleep_ms(SESSION_TICK_MS);
	}
	left_tell(session, &left);
}

/* What the run's end left unsent. Where `seconds` ended it, that was asked for too; one who stops
 * it himself knows. */
void session_senders_judge(struct gdrcap_session *session)
{
	const uint64_t sent = session_sent(session), asked = session->run.tx_asked;
	bool down = false;

	session_own_senders_judge(session);
	for (uint32_t p = 0;
	     queues_count(session) && senders_alone(session) && p < session->settings.ports; p++)
		lost_tell(session, p);
	if (session->workers.tx_count == 0 || (asked && sent >= asked))
		return;
	for (uint32_t p = 0; session->watch.link_tsc && p < session->settings.ports; p++)
		down |= session->watch.link[GDRCAP_PORTS_MAX + p] != LINK_UP;
	if (asked && (!session->run.ended_by_time || down || session->run.failure))
		atomic_store(&session->run.tx_missing, asked - sent);
	if (session->run.failure)
		return;
	if (session->plan.pcap.frames && session->settings.loops != UINT64_MAX &&
	    sent == session->plan.pcap.frames * session->settings.loops)
		session_message(session, GDRCAP_LOG_WARNING,
				"the file was sent %llu time%s to its end, and has %llu frames; "
				"loops (--loops) is how often it is sent",
				(unsigned long long)session->settings.loops,
				session->settings.loops == 1 ? "" : "s",
				(unsigned long long)session->plan.pcap.frames);
	if (down)
		session_message(session, GDRCAP_LOG_WARNING,
				"the port's link was down when the run ended: nothing was sent in "
				"the last %.1f s, which the rates do not count",
				senders_silence(session));
	else if (asked && session->run.ended_by_time)
		session_message(session, GDRCAP_LOG_WARNING,
				"frames sent: %llu of %llu; the time to run was over first",
				(unsigned long long)sent, (unsigned long long)asked);
}
