/* SPDX-License-Identifier: BSD-3-Clause */
/* Options together: others' frames, files, rates and the end. */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/settings_internal.h"

bool settings_phase_is_own(const struct settings *settings)
{
	return pattern_is_prbs(settings->pattern.kind) && !settings->pattern.restart;
}

static bool more_than_one_queue(const struct settings *settings)
{
	return settings->queues > 1 || settings->rx.count > 1;
}

int settings_settle_receiver(struct settings *settings, struct gdrcap_error *error)
{
	const char *given = settings->split		    ? "split"
			    : settings->stale_us	    ? "stale_check"
			    : settings->clock != CLOCK_AUTO ? "clock"
							    : NULL;

	settings->times = settings->save[0] || settings->save_damaged[0] || settings->batch_times;
	if (given && !settings_receives(settings))
		return error_set(error, -EINVAL,
				 "%s: is about frames received, and nothing is; leave it out",
				 given);
	if (settings->clock != CLOCK_AUTO && !settings->times)
		return error_set(error, -EINVAL,
				 "clock: is of the arrival times in saved files; give save or "
				 "save_damaged: FILE too, or leave it out");
	if (settings->stale_us && (settings->save[0] || settings->save_damaged[0]))
		return error_set(
			error, -EINVAL,
			"stale_check: writes over frames once they are checked, so %s would "
			"hold its marks in their place; give one of the two",
			settings->save[0] ? "save" : "save_damaged");
	return 0;
}

/* ---- others' frames ---- */

static int check_field(const char *name, const struct frame_field *field,
		       struct gdrcap_error *error)
{
	if (field->bytes == 0 || field->offset + field->bytes <= FRAME_FIELD_END_MAX)
		return 0;
	return error_set(error, -EINVAL,
			 "custom.%s_offset: %u bytes at %u reach past the first %u bytes of the "
			 "frame, which are the ones that can be read",
			 name, field->bytes, field->offset, FRAME_FIELD_END_MAX);
}

static int check_number(const char *name, uint64_t number, uint32_t bytes,
			struct gdrcap_error *error)
{
	if (bytes == 0 || bytes >= 8 || !(number >> (8 * bytes)))
		return 0;
	return error_set(error, -EINVAL, "custom.%s: %llu does not fit %u bytes", name,
			 (unsigned long long)number, bytes);
}

int settings_check_custom(const struct settings *settings, struct gdrcap_error *error)
{
	const struct frame_custom *custom = &settings->custom;
	const enum pattern_kind kind = settings->pattern.kind;
	int ret;

	if (!settings_is_custom(settings))
		return 0;
	if (settings_sends(settings) && !settings->pcap[0])
		return error_set(
			error, -EINVAL,
			"frame.format: frames of a custom layout can be received, not made; give pcap: "
			"FILE to send somebody else's frames, or another format");
	if (settings->expect[0])
		return error_set(error, -EINVAL,
				 "expect: frames are compared with a file or with a pattern in a "
				 "custom layout; give one of expect and format: custom");
	ret = check_field("sequence", &custom->sequence, error);
	if (ret == 0)
		ret = check_field("stream", &custom->stream, error);
	if (ret == 0)
		ret = check_number("sequence_start", custom->sequence_start, custom->sequence.bytes,
				   error);
	if (ret == 0)
		ret = check_number("sequence_step", custom->sequence_step, custom->sequence.bytes,
				   error);
	if (ret < 0)
		return ret;
	if (!custom->sequence.bytes && custom->self_phase && more_than_one_queue(settings))
		return error_set(
			error, -EINVAL,
			"queues: frames without a sequence number are followed in the order "
			"in which they came, which is one queue's of one port; leave out "
			"queues and other ports, or give custom.sequence_offset and "
			"sequence_bytes");
	if (custom->sequence.bytes || settings->pattern.restart || pattern_is_prbs(kind) ||
	    kind == PATTERN_NONE || kind == PATTERN_CONSTANT)
		return 0;
	return error_set(
		error, -EINVAL,
		"pattern: without a sequence number only the place of a PRBS can be found "
		"in the data, not of %s; give custom.sequence_offset and sequence_bytes, or "
		"pattern.restart: true where it starts again in each frame",
		pattern_name(kind));
}

/* ---- files, rates, the end ---- */

static int check_pcap(const struct settings *settings, struct gdrcap_error *error)
{
	const bool rate = settings->rate.value > 0, speed = settings->speed.value > 0;

	if (!settings->pcap[0])
		return speed ? error_set(
				       error, -EINVAL,
				       "speed: is of a file's own times; give pcap: FILE, or rate "
				       "for a pattern")
			     : 0;
	if (!settings_sends(settings))
		return error_set(
			error, -EINVAL,
			"pcap: a capture sends nothing; to compare frames with a file give "
			"expect: FILE, to receive from one port: net_pcap0,rx_pcap=FILE");
	if (settings->tx.count > 1 || settings->queues > 1)
		return error_set(error, -EINVAL,
				 "pcap: a file's order is kept by one sending port with one queue; "
				 "leave out the other ports, and queues");
	if (speed && rate)
		return error_set(error, -EINVAL,
				 "rate: a file is played at a rate or at a speed; give one of rate "
				 "and speed");
	return 0;
}

static int check_receiver_files(const struct settings *settings, struct gdrcap_error *error)
{
	const char *given = settings->expect[0]		? "expect"
			    : settings->save[0]		? "save"
			    : settings->save_damaged[0] ? "save_damaged"
			    : settings->match.count	? "match"
							: NULL;

	if (given && !settings_receives(settings))
		return error_set(error, -EINVAL,
				 "%s: is about frames received, and nothing is; leave it out",
				 given);
	if (settings->expect[0] && more_than_one_queue(settings))
		return error_set(
			error, -EINVAL,
			"queues: a file's frames are expected in their order, which is one "
			"queue's of one port; leave out queues and other ports");
	if (settings->save_around && !settings->save_damaged[0])
		return error_set(error, -EINVAL,
				 "save_around: is about frames around damaged ones; give "
				 "save_damaged: FILE too");
	return 0;
}

/* Options that would mean nothing here are refused: the caller expects something of them. */
static int check_unused(const struct settings *settings, struct gdrcap_error *error)
{
	const struct frame_custom *custom = &settings->custom;
	const bool sends = settings_sends(settings);
	const struct {
		bool unused;
		const char *text;
	} checks[] = {
		{ !settings->pcap[0] && settings->loops != 1,
		  "loops: is how often a file is played; give pcap: FILE, or leave it out" },
		{ settings->pcap[0] && settings->streams > 1,
		  "streams: a file's frames are one stream; leave it out" },
		{ !settings->pcap[0] && !settings->expect[0] && settings->pcap_memory,
		  "pcap_memory: is for a file's frames; give pcap or expect, or leave it out" },
		{ !settings->save[0] && settings->save_every > 1,
		  "save_every: is of the frames that save takes; give save: FILE too" },
		{ !settings_is_custom(settings) &&
			  (custom->sequence.bytes || custom->stream.bytes ||
			   custom->payload_bytes || custom->payload != 14),
		  "custom: describes frames of format custom; set frame.format: custom" },
		{ settings->idle_ms && sends,
		  "idle: ends a capture whose sender is elsewhere; leave it out" },
		{ settings->senders > 1 && sends,
		  "senders: is of a capture, whose senders are elsewhere; leave it out" },
		{ settings->first_stream && (settings_receives(settings) || settings->pcap[0]),
		  "first_stream: is of a replay of a pattern, whose receiver is elsewhere; leave it "
		  "out" },
		{ settings->first_stream + RTE_MAX(settings->streams, 1u) > 65536,
		  "first_stream: ids end at 65535; give a lower one, or fewer streams" },
		{ settings_starts_later(settings) && !sends,
		  "start_at: is of the built-in sender, and it sends nothing; leave it out" },
		{ settings->rate.kind != PACING_NONE && !sends,
		  "rate: is of the sender, and nothing is sent; leave it out" },
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (checks[i].unused)
			return error_set(error, -EINVAL, "%s", checks[i].text);
	return 0;
}

int settings_check_start(const struct settings *settings, uint64_t now, struct gdrcap_error *error)
{
	const uint64_t at = settings->start.ns;

	if (settings->start.after || at == 0)
		return 0;
	if (at <= now)
		return error_set(error, -EINVAL,
				 "start_at: has passed %.3f s ago, by this machine's clock; give a "
				 "later time, or +SECONDS from the start of the run",
				 (double)(now - at) / 1e9);
	if (at - now > SETTINGS_START_MOST_NS)
		return error_set(error, -EINVAL,
				 "start_at: is %.0f days ahead, by this machine's clock; allowed: "
				 "366 at most",
				 (double)(at - now) / 86400e9);
	return 0;
}

/* Numbers that two receivers of one stream agree on. */
static int check_ranges(const struct settings *settings, struct gdrcap_error *error)
{
	if (!settings->ranges)
		return 0;
	if (!settings_receives(settings))
		return error_set(error, -EINVAL,
				 "ranges: is about frames received, and nothing is; leave it out");
	if (!settings_is_custom(settings) && !settings->expect[0])
		return 0;
	return error_set(error, -EINVAL,
			 "ranges: is of gdrcap's own frames; those of %s are numbered from the "
			 "first one that a receiver sees, which several receivers do not have in "
			 "common; leave it out",
			 settings->expect[0] ? "a file (expect)" : "a custom layout");
}

int settings_settle_files(struct settings *settings, struct gdrcap_error *error)
{
	int ret;

	if (settings->rate.value > 0)
		settings->pacing = settings->rate;
	else if (settings->speed.value > 0)
		settings->pacing = settings->speed;
	else
		settings->pacing = (struct pacing_config){
			.kind = settings->pcap[0] ? PACING_ORIGINAL : PACING_NONE, .value = 1
		};
	/* A file played into our own port is what is expected there. */
	if (settings->pcap[0] && settings_receives(settings) && !settings->expect[0] &&
	    !settings_is_custom(settings) && settings_validates(settings))
		memcpy(settings->expect, settings->pcap, sizeof(settings->expect));
	ret = check_pcap(settings, error);
	if (ret == 0)
		ret = check_receiver_files(settings, error);
	if (ret == 0)
		ret = check_ranges(settings, error);
	if (ret == 0)
		ret = check_unused(settings, error);
	if (ret == 0)
		ret = settings_check_start(settings, time_ns(CLOCK_REALTIME), error);
	return ret;
}
