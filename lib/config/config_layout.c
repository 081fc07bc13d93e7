/* SPDX-License-Identifier: BSD-3-Clause */
/* What frames look like, from a completed configuration; and what depends on it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_common.h>

#include "base/log.h"
#include "base/parse.h"
#include "config/config.h"
#include "replay/pacing.h"

void config_frame(const struct gdrcap_config *config, struct frame_config *frame)
{
	memset(frame, 0, sizeof(*frame));
	switch (config->format) {
	case GDRCAP_FORMAT_UDP:
		frame->format = FRAME_IPV4_UDP;
		break;
	case GDRCAP_FORMAT_FOREIGN:
		frame->format = FRAME_FOREIGN;
		break;
	default:
		frame->format = FRAME_ETHERNET;
		break;
	}
	frame->ethertype = config->ethertype;
	frame->vlan = config->vlan;
	frame->src_port = config->src_port;
	frame->dst_port = config->dst_port;
	/* Empty texts leave zero. */
	parse_mac(config->src_mac, frame->src_mac);
	parse_mac(config->dst_mac, frame->dst_mac);
	parse_ipv4(config->src_ip, &frame->src_ip);
	parse_ipv4(config->dst_ip, &frame->dst_ip);
}

/* A PRBS that runs on through the stream: each frame's phase is in its own data. */
static bool phase_is_own(const struct gdrcap_config *config)
{
	enum pattern_kind kind = PATTERN_NONE;

	pattern_from_name(config->pattern, &kind);
	return pattern_is_prbs(kind) && !config->restart;
}

static bool more_than_one_queue(const struct gdrcap_config *config)
{
	return config->queues > 1 || config->port[1][0];
}

static void foreign_set(const struct gdrcap_config *config, struct frame_foreign *foreign)
{
	*foreign = (struct frame_foreign){
		.sequence = { .offset = (uint16_t)config->sequence_offset,
			      .bytes = (uint8_t)config->sequence_bytes,
			      .little = config->sequence_order == GDRCAP_ORDER_LITTLE },
		.stream = { .offset = (uint16_t)config->stream_offset,
			    .bytes = (uint8_t)config->stream_bytes },
		.sequence_start = config->sequence_start,
		.sequence_step = config->sequence_step,
		.payload = config->foreign_payload,
		.payload_bytes = config->foreign_payload_bytes,
		.self_phase = phase_is_own(config),
	};
}

int config_layout(const struct gdrcap_config *config, struct frame_layout *layout)
{
	struct frame_config frame;
	char why[128];
	int ret;

	config_frame(config, &frame);
	ret = frame_layout_init(layout, &frame);
	if (ret < 0)
		return ret;
	if (config->format == GDRCAP_FORMAT_FOREIGN)
		foreign_set(config, &layout->foreign);
	for (uint32_t i = 0; i < GDRCAP_MATCH_MAX && config->match[i][0]; i++) {
		ret = frame_match_parse(&layout->match.rule[i], config->match[i], why, sizeof(why));
		if (ret < 0)
			return ret;
		layout->match.count = i + 1;
	}
	return 0;
}

static int check_field(const char *name, uint32_t offset, uint32_t bytes,
		       struct gdrcap_error *error)
{
	if (bytes == 0 || offset + bytes <= FRAME_FIELD_END_MAX)
		return 0;
	return error_set(error, -EINVAL,
			 "foreign.%s_offset: %u bytes at %u reach past the first %u bytes of the "
			 "frame, which are the ones that can be read",
			 name, bytes, offset, FRAME_FIELD_END_MAX);
}

int config_check_foreign(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	enum pattern_kind kind = PATTERN_NONE;
	int ret;

	if (config->format != GDRCAP_FORMAT_FOREIGN)
		return 0;
	if (config->tx_port[0][0] && !config->pcap[0])
		return error_set(
			error, -EINVAL,
			"frame.format: foreign frames can be received, not made; give pcap: "
			"FILE to send somebody else's frames, or another format");
	if (config->expect[0])
		return error_set(error, -EINVAL,
				 "expect: frames are compared with a file or with a pattern in a "
				 "foreign layout; give one of expect and format: foreign");
	ret = check_field("sequence", config->sequence_offset, config->sequence_bytes, error);
	if (ret == 0)
		ret = check_field("stream", config->stream_offset, config->stream_bytes, error);
	if (ret < 0)
		return ret;
	if (config->sequence_bytes < 8 && config->sequence_bytes &&
	    config->sequence_start >> (8 * config->sequence_bytes))
		return error_set(
			error, -EINVAL, "foreign.sequence_start: %llu does not fit %u bytes",
			(unsigned long long)config->sequence_start, config->sequence_bytes);
	if (config->sequence_bytes < 8 && config->sequence_bytes &&
	    config->sequence_step >> (8 * config->sequence_bytes))
		return error_set(error, -EINVAL,
				 "foreign.sequence_step: %llu does not fit %u bytes",
				 (unsigned long long)config->sequence_step, config->sequence_bytes);
	if (!config->sequence_bytes && phase_is_own(config) && more_than_one_queue(config))
		return error_set(
			error, -EINVAL,
			"queues: frames without a sequence number are followed in the order "
			"in which they came, which is one queue's of one port; leave out "
			"queues and other ports, or give foreign.sequence_offset and "
			"sequence_bytes");
	pattern_from_name(config->pattern, &kind);
	if (config->sequence_bytes || config->restart || pattern_is_prbs(kind) ||
	    kind == PATTERN_NONE || kind == PATTERN_CONSTANT)
		return 0;
	return error_set(
		error, -EINVAL,
		"pattern: without a sequence number only the place of a PRBS can be found "
		"in the data, not of %s; give foreign.sequence_offset and sequence_bytes, or "
		"pattern.restart: true where it starts anew in each frame",
		config->pattern);
}

/* ---- files, rates, the end ---- */

static int check_pcap(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	if (!config->pcap[0]) {
		if (config->speed[0])
			return error_set(
				error, -EINVAL,
				"speed: is of a file's own times; give pcap: FILE, or rate "
				"for a pattern");
		return 0;
	}
	if (!config->tx_port[0][0])
		return error_set(
			error, -EINVAL,
			"pcap: a capture sends nothing; to compare frames with a file give "
			"expect: FILE, to receive from one port: net_pcap0,rx_pcap=FILE");
	if (config->tx_port[1][0] || config->queues > 1)
		return error_set(error, -EINVAL,
				 "pcap: a file's order is kept by one sending port with one queue; "
				 "leave out the other ports, and queues");
	if (config->speed[0] && config->rate[0])
		return error_set(error, -EINVAL,
				 "rate: a file is played at a rate or at a speed; give one of rate "
				 "and speed");
	return 0;
}

static int check_receiver_files(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	const char *given = config->expect[0]	      ? "expect"
			    : config->save[0]	      ? "save"
			    : config->save_damaged[0] ? "save_damaged"
			    : config->match[0][0]     ? "match"
						      : NULL;

	if (given && !config->port[0][0])
		return error_set(error, -EINVAL,
				 "%s: is about frames received, and nothing is; leave it out",
				 given);
	if (config->expect[0] && more_than_one_queue(config))
		return error_set(
			error, -EINVAL,
			"queues: a file's frames are expected in their order, which is one "
			"queue's of one port; leave out queues and other ports");
	if (config->consumer != GDRCAP_CONSUMER_VALIDATE && given && strcmp(given, "match"))
		return error_set(error, -EINVAL,
				 "%s: needs the built-in consumer; the caller's own has the frames",
				 given);
	if (config->save[0] && strcmp(config->save, config->save_damaged) == 0)
		return error_set(error, -EINVAL,
				 "save_damaged: %s is the file of save too; give another",
				 config->save);
	if (config->save_around && !config->save_damaged[0])
		return error_set(error, -EINVAL,
				 "save_around: is about frames around damaged ones; give "
				 "save_damaged: FILE too");
	return 0;
}

/* Options that would mean nothing here: whoever gives one expects something of it. */
static int check_unused(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	const bool foreign = config->format == GDRCAP_FORMAT_FOREIGN;
	const struct {
		bool unused;
		const char *text;
	} checks[] = {
		{ !config->pcap[0] && strcmp(config->loops, "1"),
		  "loops: is how often a file is played; give pcap: FILE, or leave it out" },
		{ config->pcap[0] && config->streams > 1,
		  "streams: a file's frames are one stream; leave it out" },
		{ !config->pcap[0] && !config->expect[0] && config->pcap_memory,
		  "pcap_memory: is for a file's frames; give pcap or expect, or leave it out" },
		{ !config->save[0] && config->save_every > 1,
		  "save_every: is of the frames that save takes; give save: FILE too" },
		{ !foreign && (config->sequence_bytes || config->stream_bytes ||
			       config->foreign_payload_bytes || config->foreign_payload != 14),
		  "foreign: describes frames of format foreign; set frame.format: foreign" },
		{ config->idle_ms && config->tx_port[0][0],
		  "idle: ends a capture whose sender is elsewhere; leave it out" },
		{ config->senders > 1 && config->tx_port[0][0],
		  "senders: is of a capture, whose senders are elsewhere; leave it out" },
		{ config->first_stream && (config->port[0][0] || config->pcap[0]),
		  "first_stream: is of a replay of a pattern, whose receiver is elsewhere; leave it "
		  "out" },
		{ config->first_stream + RTE_MAX(config->streams, 1u) > 65536,
		  "first_stream: ids end at 65535; give a lower one, or fewer streams" },
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i].unused)
			return error_set(error, -EINVAL, "%s", checks[i].text);
	return 0;
}

int config_check_files(const struct gdrcap_config *config, struct gdrcap_error *error)
{
	struct pacing_config pacing;
	int ret = check_pcap(config, error);

	if (ret == 0)
		ret = check_receiver_files(config, error);
	if (ret == 0)
		ret = check_unused(config, error);
	if (ret == 0 && config->rate[0] && !config->tx_port[0][0] &&
	    pacing_parse_rate(config->rate, &pacing) == 0 && pacing.kind != PACING_NONE)
		ret = error_set(error, -EINVAL,
				"rate: is of the sender, and nothing is sent; leave it out");
	return ret;
}

/* UINT64_MAX: for ever. The text was checked. */
uint64_t config_loops(const struct gdrcap_config *config)
{
	uint64_t loops = 1;

	if (strcmp(config->loops, "forever") == 0)
		return UINT64_MAX;
	parse_count(config->loops, &loops);
	return loops;
}

void config_pacing(const struct gdrcap_config *config, struct pacing_config *pacing)
{
	*pacing = (struct pacing_config){ .kind = PACING_NONE, .value = 1 };
	if (config->rate[0])
		pacing_parse_rate(config->rate, pacing);
	else if (config->speed[0])
		pacing_parse_speed(config->speed, pacing);
	else if (config->pcap[0])
		pacing->kind = PACING_ORIGINAL;
}
