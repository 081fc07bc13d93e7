/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ports' drivers tell of a run: why frames were lost or a sender was slow, which rules put
 * the frames into our queues, whose clock their times are from. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "session/answer.h"
#include "session/session.h"

/* What XSTATS_QUEUE_ERROR is at queues of our own, which are reset by us. */
static const char own_queue_error[] =
	"work entries that came back unused, or with an error, when a queue was in error and was started "
	"again; what came meanwhile is nic_error, and the messages say why";

/* `own`: queues of our own, NULL: none. The driver counts for queues of its own; ours are the only ones of a
 * session that has some. */
static void values_add(struct xstats_values *sum, const struct xstats *xstats,
		       struct own_queues *own)
{
	struct xstats_values values;

	xstats_read(xstats, &values);
	if (own) {
		values.known |= UINT64_C(1) << XSTATS_NO_BUFFER | UINT64_C(1) << XSTATS_QUEUE_ERROR;
		values.count[XSTATS_NO_BUFFER] = own_queues_lost(own).missed;
		values.count[XSTATS_QUEUE_ERROR] = own_queues_flushed(own);
	}
	sum->known |= values.known;
	for (uint32_t c = 0; c < XSTATS_CAUSES; c++)
		sum->count[c] += values.count[c];
}

/* Each card is asked once for everything. What is kept changes nothing in the run. */
void session_causes_ask(const struct gdrcap_session *asked)
{
	struct gdrcap_session *session = (struct gdrcap_session *)(uintptr_t)asked;
	struct xstats_values rx = { 0 }, tx = { 0 };

	session_ports_lock(session);
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		values_add(&rx, &session->ports.pairs[p].rx_xstats, session->ports.pairs[p].own);
		values_add(&tx, &session->ports.pairs[p].tx_xstats, NULL);
	}
	session_ports_unlock(session);
	pthread_mutex_lock(&session->lines.lock);
	session->ports.rx_causes = rx;
	session->ports.tx_causes = tx;
	pthread_mutex_unlock(&session->lines.lock);
}

uint64_t session_causes_lost(const struct gdrcap_session *session)
{
	static const enum xstats_cause received[] = { XSTATS_CARD_FULL, XSTATS_WIRE_CRC,
						      XSTATS_WIRE_LENGTH };
	pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&session->lines.lock;
	uint64_t lost = 0;

	pthread_mutex_lock(lock);
	for (size_t i = 0; i < sizeof(received) / sizeof(received[0]); i++)
		lost += session->ports.rx_causes.count[received[i]];
	lost += session->ports.tx_causes.count[XSTATS_TX_DISCARD];
	pthread_mutex_unlock(lock);
	return lost;
}

int gdrcap_get_cause(const struct gdrcap_session *session, uint32_t index,
		     struct gdrcap_cause *cause, size_t size)
{
	const int ret = answer_check(session, "session", cause, size);
	const struct xstats_values *values;
	struct gdrcap_cause all;
	pthread_mutex_t *lock;

	if (ret < 0)
		return ret;
	if (index >= XSTATS_CAUSES)
		return -ENOENT;
	LOG_SCOPE(&session->log);
	if (index == 0)
		session_causes_ask(session);
	all = (struct gdrcap_cause){
		.name = xstats_cause_name((enum xstats_cause)index),
		.meaning = index == XSTATS_QUEUE_ERROR && settings_own_queues(&session->settings)
				   ? own_queue_error
				   : xstats_cause_meaning((enum xstats_cause)index),
		.sender = xstats_cause_is_senders((enum xstats_cause)index),
	};
	lock = (pthread_mutex_t *)(uintptr_t)&session->lines.lock;
	pthread_mutex_lock(lock);
	values = all.sender ? &session->ports.tx_causes : &session->ports.rx_causes;
	all.known = xstats_known(values, (enum xstats_cause)index);
	all.count = values->count[index];
	pthread_mutex_unlock(lock);
	answer_give(cause, size, &all, sizeof(all));
	return 0;
}

static const struct port *port_at(const struct gdrcap_session *session, uint32_t index, bool sends)
{
	const struct session_pair *pair = &session->ports.pairs[index];

	return sends && !pair->both ? &pair->tx : &pair->rx;
}

int gdrcap_get_port(const struct gdrcap_session *session, uint32_t index, struct gdrcap_port *port,
		    size_t size)
{
	const int ret = answer_check(session, "session", port, size);
	const struct settings *settings;
	struct rte_ether_addr mac;
	const struct port *at;
	struct gdrcap_port all = { 0 };

	if (ret < 0)
		return ret;
	settings = &session->settings;
	if (index >= settings->rx.count + settings->tx.count)
		return -ENOENT;
	LOG_SCOPE(&session->log);
	all.sends = index >= settings->rx.count;
	if (all.sends)
		index -= settings->rx.count;
	all.name = (all.sends ? &settings->tx : &settings->rx)->port[index].name;
	session_ports_lock(session);
	at = port_at(session, index, all.sends);
	if (at->open && rte_eth_macaddr_get(at->id, &mac) == 0 && !rte_is_zero_ether_addr(&mac)) {
		all.has_mac = 1;
		memcpy(all.mac, mac.addr_bytes, sizeof(all.mac));
	}
	all.link_up = at->open && port_link_up(at);
	session_ports_unlock(session);
	answer_give(port, size, &all, sizeof(all));
	return 0;
}

/* All receiving ports have as many rules, or none. */
static uint32_t rule_count(const struct gdrcap_session *session)
{
	uint32_t most = 0;

	for (uint32_t p = 0; session->workers.rx_count && p < session->settings.ports; p++)
		if (session->ports.pairs[p].steering.rules > most)
			most = session->ports.pairs[p].steering.rules;
	return most;
}

int gdrcap_get_rule(const struct gdrcap_session *session, uint32_t index, struct gdrcap_rule *rule,
		    size_t size)
{
	struct steering_hits hits[STEERING_RULES_MAX];
	int ret = answer_check(session, "session", rule, size);
	struct gdrcap_rule all;

	if (ret < 0)
		return ret;
	LOG_SCOPE(&session->log);
	ret = -ENOENT;
	session_ports_lock(session);
	if (index >= rule_count(session) || index >= STEERING_RULES_MAX)
		goto out;
	ret = 0;
	all = (struct gdrcap_rule){ .text = session->ports.steered_text[index], .known = 1 };
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		const struct session_pair *pair = &session->ports.pairs[p];

		if (index >= pair->steering.rules)
			continue;
		steering_query(&pair->steering, hits);
		all.known &= hits[index].known && !pair->rules_anew;
		all.frames += hits[index].frames;
	}
	if (!all.known)
		all.frames = 0;
	answer_give(rule, size, &all, sizeof(all));
out:
	session_ports_unlock(session);
	return ret;
}

/* "" where nobody asked for times. */
static const char *clock_name(const struct gdrcap_session *session)
{
	/* By whose they are: bits. */
	static const char *const names[] = {
		"",	"CPU",	     "card",	   "card, CPU",
		"file", "file, CPU", "file, card", "file, card, CPU",
	};
	uint32_t whose = 0;

	if (session->workers.rx_count == 0 || !session->settings.times)
		return "";
	for (uint32_t p = 0; p < session->settings.ports; p++) {
		const uint16_t port = session->ports.pairs[p].rx_clock.port;

		whose |= port == RX_CLOCK_CPU ? 1 : port == RX_CLOCK_FILE ? 4 : 2;
	}
	return names[whose];
}

static void tx_by_fill(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	static const char *const names[] = {
		[TX_BY_DRIVER] = "driver",
		[TX_BY_CPU] = "cpu",
		[TX_BY_GPU] = "gpu",
	};
	const struct session_own_senders *own = &session->own_senders;

	if (session->workers.tx_count + session->sending.count)
		snprintf(summary->tx_by, sizeof(summary->tx_by), "%s",
			 names[session->settings.tx_by]);
	for (uint32_t i = 0; i < own->gpu_count; i++)
		summary->tx_proxies += own->gpus[i].bell == NULL;
}

void session_ports_summary(const struct gdrcap_session *session, struct gdrcap_summary *summary)
{
	summary->steered = session->workers.rx_count != 0;
	for (uint32_t p = 0; p < session->settings.ports; p++)
		summary->steered &= session->ports.pairs[p].rx.isolated;
	/* Where cards choose, the checker's rules leave nothing to do. */
	summary->software_match = session->frames.layout.match.count != 0 && !summary->steered;
	summary->split = session->settings.split;
	summary->queue_restarts = session->ports.queue_restarts;
	region_registration(&session->memory.region, summary->registration,
			    sizeof(summary->registration));
	snprintf(summary->clock, sizeof(summary->clock), "%s", clock_name(session));
	tx_by_fill(session, summary);
	snprintf(summary->rx_by, sizeof(summary->rx_by), "%s",
		 session->workers.rx_count == 0		   ? ""
		 : session->settings.rx_by == RX_BY_GPU	   ? "gpu"
		 : settings_own_queues(&session->settings) ? "cpu"
							   : "driver");
}
