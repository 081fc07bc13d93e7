/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules by which receiving cards choose a session's frames. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "session/session.h"

void session_rules_choose(struct gdrcap_session *session)
{
	const struct settings *settings = &session->settings;
	const struct frame_layout *layout = &session->frames.layout;
	struct frame_match_rule *rule = &session->ports.steered.rule[0];
	char *text = session->ports.steered_text[0];
	const size_t bytes = sizeof(session->ports.steered_text[0]);
	int used;

	session->ports.steered = layout->match;
	for (uint32_t i = 0; i < settings->match.count; i++)
		memcpy(session->ports.steered_text[i], settings->match.rule[i].text, bytes);
	if (layout->match.count)
		return;
	if (layout->format == FRAME_CUSTOM || session->frames.expect ||
	    !settings_validates(settings)) {
		snprintf(text, bytes, "every frame");
		return;
	}
	session->ports.steered.count = 1;
	*rule = (struct frame_match_rule){ .fields = FRAME_MATCH_ETHERTYPE,
					   .ethertype = layout->ethertype };
	if (layout->format == FRAME_IPV4_UDP)
		*rule = (struct frame_match_rule){ .fields = FRAME_MATCH_DST_PORT,
						   .dst_port = layout->udp_port };
	used = layout->format == FRAME_IPV4_UDP
		       ? snprintf(text, bytes, "dst_port=%u", layout->udp_port)
		       : snprintf(text, bytes, "ethertype=0x%04x", layout->ethertype);
	if (!layout->vlan)
		return;
	rule->fields |= FRAME_MATCH_VLAN;
	rule->vlan = layout->vlan & 0xfff;
	snprintf(text + used, bytes - (size_t)used, ",vlan=%u", rule->vlan);
}

/* What became of a rule in the card. */
static void rule_tell(const struct gdrcap_session *session, const struct session_pair *pair,
		      uint32_t r)
{
	const struct steering_rule *rule = &pair->steering.rule[r];
	const uint16_t queues = (uint16_t)session->settings.queues;
	char where[96];

	if (rule->spread)
		snprintf(where, sizeof(where), "over %u queues by IP addresses and UDP ports",
			 queues);
	else if (queues == 1)
		snprintf(where, sizeof(where), "to the queue");
	else
		snprintf(where, sizeof(where), "all to queue %u, as a card spreads IP frames only",
			 r % queues);
	log_info("port %s: the card steers \"%s\" %s; frames with %s%s%s", pair->rx.name,
		 session->ports.steered_text[r], where,
		 rule->tags_most == 2	? "up to two VLAN tags"
		 : rule->tags_most == 1 ? "at most one VLAN tag"
					: "no VLAN tag of their own rule",
		 rule->counted ? "" : "; it does not count them",
		 rule->marked ? "" : "; it does not mark them");
}

void session_rules_tell(const struct gdrcap_session *session, const struct session_pair *pair)
{
	for (uint32_t r = 0; r < pair->steering.rules; r++)
		rule_tell(session, pair, r);
}

int session_rules_create(struct gdrcap_session *session, struct session_pair *pair,
			 struct gdrcap_error *error)
{
	const char *text[GDRCAP_MATCH_MAX];
	const struct steering_config config = {
		.port = pair->rx.id,
		.name = pair->rx.name,
		.first_queue = pair->own ? OWN_RX_FLOW_QUEUE(0) : 0,
		.queues = (uint16_t)session->settings.queues,
		.match = &session->ports.steered,
		.text = text,
	};

	if (!pair->rx.isolated)
		return 0;
	for (uint32_t i = 0; i < GDRCAP_MATCH_MAX; i++)
		text[i] = session->ports.steered_text[i];
	return steering_create(&pair->steering, &config, error);
}
