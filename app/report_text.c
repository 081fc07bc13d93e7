/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run has to say, for people. No locale is set: the numbers look alike everywhere. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_line.h"
#include "base/text.h"
#include "report_rows.h"

#define STREAMS_SHOWN 16

const char *report_text_ratio(char *to, uint64_t wrong, uint64_t checked)
{
	if (!checked)
		snprintf(to, REPORT_TEXT_BYTES, "not known");
	else if (!wrong)
		snprintf(to, REPORT_TEXT_BYTES, "< %.1e", 1.0 / (double)checked);
	else
		snprintf(to, REPORT_TEXT_BYTES, "%.3e", (double)wrong / (double)checked);
	return to;
}

const char *report_text_bytes(char *to, uint64_t bytes)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	uint64_t scale = 1;
	size_t unit = 0;

	while (unit + 1 < sizeof(units) / sizeof(units[0]) && bytes / scale >= 1024) {
		scale *= 1024;
		unit++;
	}
	if (bytes % scale == 0)
		snprintf(to, REPORT_TEXT_BYTES, "%" PRIu64 " %s", bytes / scale, units[unit]);
	else
		snprintf(to, REPORT_TEXT_BYTES, "%.1f %s", (double)bytes / (double)scale,
			 units[unit]);
	return to;
}

const char *report_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

void report_print_rows(FILE *to, const json_t *object, const struct report_row *rows, size_t count)
{
	char text[TEXT_COUNT_BYTES];
	uint64_t value;

	for (const struct report_row *row = rows; row < rows + count; row++) {
		const bool known = json_get_count(object, row->path, &value);

		if (known && (value || row->when != ROW_NOT_ZERO))
			fprintf(to, "  %-18s%27s  %s\n", row->label, text_count(text, value),
				row->meaning);
		else if (!known && row->when == ROW_ALWAYS)
			fprintf(to, "  %-18s%27s\n", row->label, "not known");
	}
}

void report_print_number(FILE *to, const char *label, double value, int decimals,
			 const char *meaning)
{
	fprintf(to, "  %-18s%27.*f  %s\n", label, decimals, value, meaning);
}

void report_print_cells(FILE *to, const json_t *object, const char *const *paths, size_t count)
{
	char text[TEXT_COUNT_BYTES];

	for (size_t i = 0; i < count; i++)
		fprintf(to, " %15s", text_count(text, json_count_at(object, paths[i])));
	fprintf(to, "\n");
}

#define ROWS(to, object, rows) report_print_rows(to, object, rows, sizeof(rows) / sizeof((rows)[0]))

/* What the cards of receiving or of sending ports counted, and what can be done about it. */
static void print_causes(FILE *to, const struct report *report, const char *path)
{
	const json_t *causes = json_at(report->object, path);
	char text[TEXT_COUNT_BYTES];

	for (uint32_t i = 0; i < report->cause_count; i++) {
		const uint64_t count = json_count_at(causes, report->causes[i].name);

		if (count)
			fprintf(to, "    %-22s%21s  %s\n", report->causes[i].name,
				text_count(text, count), report->causes[i].meaning);
	}
}

static void print_rules(FILE *to, const struct report *report)
{
	const json_t *rules = json_at(report->object, "steering.rules"), *rule;
	char text[TEXT_COUNT_BYTES];
	uint64_t frames;
	size_t i;

	json_array_foreach (rules, i, rule) {
		const bool known = json_get_count(rule, "frames", &frames);

		fprintf(to, "  %-18s%27s  frames by the card's rule %s\n", i ? "" : "steered",
			known ? text_count(text, frames) : "not known", json_text_at(rule, "rule"));
	}
}

static void print_sender(FILE *to, const struct report *report)
{
	static const struct report_row rows[] = {
		{ "tx stalled", "tx_stalled", "polls in which the sender was held back",
		  ROW_ALWAYS },
		{ "tx starved", "sender.starved", "polls in which its next frames were not ready",
		  ROW_ALWAYS },
		{ "tx errors", "sender.errors", "frames that the port took and could not send",
		  ROW_ALWAYS },
	};
	const json_t *sender = json_object_get(report->object, "sender");
	const json_t *gaps = json_object_get(sender, "gap_error_ns");
	uint64_t late;

	if (!json_is_object(sender))
		return;
	ROWS(to, report->object, rows);
	print_causes(to, report, "sender.causes");
	if (json_get_count(sender, "start.late_ns", &late))
		report_print_number(to, "tx start", (double)late / 1e9, 6,
				    "s after the time of --start-at");
	report_print_number(to, "tx time", json_number_at(sender, "seconds"), 3,
			    "s, first hand-over to last");
	if (json_number_at(sender, "asked.seconds") > 0)
		report_print_number(to, "  asked", json_number_at(sender, "asked.seconds"), 3,
				    "s, by the file's own times");
	report_print_number(to, "tx rate", json_number_at(sender, "gbps"), 6,
			    "Gb/s on the wire, with FCS, preamble and gap");
	if (json_number_at(sender, "asked.gbps") > 0)
		report_print_number(to, "  asked", json_number_at(sender, "asked.gbps"), 6, "Gb/s");
	report_print_number(to, "", json_number_at(sender, "mpps"), 6, "Mpps");
	if (json_number_at(sender, "asked.mpps") > 0)
		report_print_number(to, "  asked", json_number_at(sender, "asked.mpps"), 6, "Mpps");
	if (json_is_object(gaps))
		fprintf(to,
			"  %-18s%27s  p50 %.3f us, p99 %.3f us, max %.3f us (hand-over to the port)\n",
			"tx gap error", "", (double)json_count_at(gaps, "p50") / 1e3,
			(double)json_count_at(gaps, "p99") / 1e3,
			(double)json_count_at(gaps, "max") / 1e3);
}

/* The caller's own frames. */
static void print_sending(FILE *to, const struct report *report)
{
	static const struct report_row rows[] = {
		{ "submitted", "submitted", "frames of the caller's", ROW_ALWAYS },
		{ "  sent", "sent", "frames that the ports took", ROW_ALWAYS },
		{ "", "bytes", "bytes in memory, without FCS", ROW_ALWAYS },
		{ "  unsent", "unsent", "frames that waited when the run ended", ROW_ALWAYS },
		{ "  refused", "refused",
		  "frames of a running kernel's, with a length that no frame has", ROW_ALWAYS },
		{ "  stalled", "stalled", "polls in which a port took nothing", ROW_ALWAYS },
		{ "  failed", "failed", "frames that a port took and could not send", ROW_ALWAYS },
	};
	const json_t *sending = json_object_get(report->object, "sending");

	if (json_is_object(sending))
		ROWS(to, sending, rows);
}

/* What the ports did not hand over. */
static void print_port_losses(FILE *to, const struct report *report)
{
	const char *rx_by = json_text_at(report->object, "rx_by");
	/* A queue of our own has no damaged ones: they never get there. */
	const bool own = rx_by[0] && strcmp(rx_by, "driver") != 0;
	const struct report_row rows[] = {
		{ "  no buffer", "lost_by.nic_missed", "frames that the port missed", ROW_ALWAYS },
		{ own ? "  queue in error" : "  bad on the wire", "lost_by.nic_error",
		  own ? "frames of queues in error, until they ran again"
		      : "frames that the port refused",
		  ROW_ALWAYS },
		{ "  unexplained", "lost_by.unexplained", "frames that no counter explains",
		  ROW_ALWAYS },
	};

	report_print_rows(to, report->object, rows, report_images(report) ? 2 : 3);
	print_causes(to, report, "lost_by.causes");
	if (json_count_at(report->object, "pool_empty.times"))
		report_print_number(to, "pool empty",
				    json_number_at(report->object, "pool_empty.seconds"), 3,
				    "s without a free slot: the consumer had them all");
}

static void print_port_rest(FILE *to, const struct report *report)
{
	static const struct report_row rows[] = {
		{ "cut", "cut", "frames of which only the beginning may have come, ours or others'",
		  ROW_NOT_ZERO },
		{ "queue restarts", "queue_restarts",
		  "receive queues in error that were started again", ROW_NOT_ZERO },
	};

	print_rules(to, report);
	ROWS(to, report->object, rows);
}

static void print_saved(FILE *to, const struct report *report)
{
	const char *save = report_option(report, "save", 0);
	const char *damaged = report_option(report, "save_damaged", 0);
	const char *missed = "frames that the file did not take";
	const struct report_row rows[] = {
		{ "saved", "saved.frames", save, ROW_KNOWN },
		{ "  missed", "saved.missed", missed, ROW_KNOWN },
		{ "saved, damaged", "saved.damaged_frames", damaged, ROW_KNOWN },
		{ "  missed", "saved.damaged_missed", missed, ROW_KNOWN },
	};

	if (save)
		report_print_rows(to, report->object, rows, 2);
	if (damaged)
		report_print_rows(to, report->object, rows + 2, 2);
}

static void print_rate(FILE *to, const json_t *object)
{
	report_print_number(to, "time", json_number_at(object, "seconds"), 3,
			    "s, first frame to last");
	report_print_number(to, "rate", json_number_at(object, "rate.gbps"), 3,
			    "Gb/s received, with FCS, preamble and gap");
	report_print_number(to, "", json_number_at(object, "rate.mpps"), 3, "Mpps received");
}

static void print_sent(FILE *to, const struct report *report)
{
	static const struct report_row rows[] = {
		{ "sent", "sender.frames", "frames", ROW_KNOWN },
		{ "", "sender.bytes", "bytes in memory, without FCS", ROW_KNOWN },
	};

	print_sending(to, report);
	ROWS(to, report->object, rows);
	print_sender(to, report);
}

static void print_received(FILE *to, const struct report *report)
{
	static const struct report_row came[] = {
		{ "sent", "frames.sent", "frames", ROW_ALWAYS },
		{ "received", "frames.received", "frames", ROW_ALWAYS },
		{ "", "bytes", "bytes in memory, without FCS", ROW_ALWAYS },
		{ "valid", "frames.valid", "frames", ROW_ALWAYS },
		{ "damaged", "frames.damaged", "frames", ROW_ALWAYS },
		{ "  stale", "stale", "frames that were seen before their bytes were there",
		  ROW_KNOWN },
		{ "lost", "frames.lost", "frames", ROW_ALWAYS },
	};
	static const struct report_row order[] = {
		{ "duplicate", "frames.duplicate", "frames", ROW_ALWAYS },
		{ "reordered", "frames.reordered", "frames", ROW_ALWAYS },
		{ "lock lost", "lock_lost",
		  "times that a payload did not go on where the one before ended", ROW_KNOWN },
		{ "filtered", "filtered", "frames that are not meant", ROW_ALWAYS },
	};
	static const struct report_row bits[] = {
		{ "bits checked", "bits.checked", "payload bits", ROW_ALWAYS },
		{ "bits wrong", "bits.wrong", "payload bits", ROW_ALWAYS },
	};
	char ratio[REPORT_TEXT_BYTES];

	ROWS(to, report->object, came);
	print_port_losses(to, report);
	ROWS(to, report->object, order);
	print_port_rest(to, report);
	ROWS(to, report->object, bits);
	fprintf(to, "  %-18s%27s  %s\n", "bit error ratio",
		report_text_ratio(ratio, json_count_at(report->object, "bits.wrong"),
				  json_count_at(report->object, "bits.checked")),
		"wrong / checked payload bits");
	print_saved(to, report);
	print_sender(to, report);
	print_sending(to, report);
	print_rate(to, report->object);
}

static void print_images(FILE *to, const struct report *report)
{
	static const struct report_row rows[] = {
		{ "sent", "sender.frames", "frames", ROW_KNOWN },
	};

	ROWS(to, report->object, rows);
	report_print_images(to, report);
	fprintf(to, "  lost at the ports\n");
	print_port_losses(to, report);
	print_port_rest(to, report);
	print_sender(to, report);
	print_sending(to, report);
	print_rate(to, report->object);
	report_print_incomplete(to, report);
}

static void print_queues(FILE *to, const json_t *queues)
{
	static const char *const paths[] = { "received",  "valid",     "damaged",
					     "duplicate", "reordered", "filtered" };
	const json_t *queue;
	size_t i;

	fprintf(to, "\n  %-8s %15s %15s %15s %15s %15s %15s\n", "queue", "received", "valid",
		"damaged", "duplicate", "reordered", "filtered");
	json_array_foreach (queues, i, queue) {
		fprintf(to, "  %-8zu", i);
		report_print_cells(to, queue, paths, 6);
	}
}

static void print_streams(FILE *to, const json_t *streams)
{
	static const char *const paths[] = {
		"frames.sent", "frames.valid",	   "frames.damaged",
		"frames.lost", "frames.duplicate", "frames.reordered"
	};
	const size_t count = json_array_size(streams);

	fprintf(to, "\n  %-8s %15s %15s %15s %15s %15s %15s\n", "stream", "sent", "valid",
		"damaged", "lost", "duplicate", "reordered");
	for (size_t i = 0; i < count && i < STREAMS_SHOWN; i++) {
		const json_t *stream = json_array_get(streams, i);

		fprintf(to, "  %-8" PRIu64, json_count_at(stream, "stream"));
		report_print_cells(to, stream, paths, 6);
	}
	if (count > STREAMS_SHOWN)
		fprintf(to, "  and %zu more: --json lists them all\n", count - STREAMS_SHOWN);
}

static void print_damage(FILE *to, const json_t *frames)
{
	char sequence[TEXT_COUNT_BYTES];
	const json_t *frame;
	uint64_t number, bits;
	size_t i;

	fprintf(to, "\n  The first damaged frames:\n");
	json_array_foreach (frames, i, frame) {
		const unsigned int expected = (unsigned int)json_count_at(frame, "expected");
		const unsigned int got = (unsigned int)json_count_at(frame, "got");
		const char *kind = json_text_at(frame, "kind");

		if (json_get_count(frame, "sequence", &number))
			fprintf(to, "  stream %" PRIu64 " sequence %s, ",
				json_count_at(frame, "stream"), text_count(sequence, number));
		else
			fprintf(to, "  sequence number unreadable, ");
		fprintf(to, "queue %" PRIu64 ", %s", json_count_at(frame, "queue"),
			kind[0] ? kind : "not known");
		if (json_get_count(frame, "wrong_bits", &bits))
			fprintf(to,
				": first wrong byte at offset %" PRIu64
				" of the frame: expected 0x%02x, got 0x%02x; %" PRIu64
				" wrong bit%s",
				json_count_at(frame, "offset"), expected, got, bits,
				report_plural(bits));
		else if (json_get_count(frame, "offset", &number))
			fprintf(to,
				": at offset %" PRIu64
				" of the frame 0x%02x was seen, and 0x%02x came later",
				number, got, expected);
		fprintf(to, "\n");
	}
}

void report_print_table(FILE *to, const struct report *report)
{
	const json_t *queues = json_object_get(report->object, "queues");
	const json_t *streams = json_object_get(report->object, "streams");
	const json_t *damage = json_object_get(report->object, "damage");
	const json_t *messages = json_object_get(report->object, "messages"), *message;
	size_t i;

	if (report_images(report))
		print_images(to, report);
	else if (report_receives(report))
		print_received(to, report);
	else
		print_sent(to, report);
	if (json_array_size(queues) > 1 && !report_images(report))
		print_queues(to, queues);
	if (json_array_size(streams) > 1 && !json_is_null(json_at(report->object, "frames.lost")))
		print_streams(to, streams);
	if (json_array_size(damage))
		print_damage(to, damage);
	if (json_array_size(messages))
		fprintf(to, "\n  Messages of the run:\n");
	json_array_foreach (messages, i, message)
		fprintf(to, "  %s\n", json_string_value(message));
	fprintf(to, "\n");
}

void report_print_step(FILE *to, const struct gdrcap_step *step, uint32_t number, int colour)
{
	static const char dots[] = "............................";
	static const char *const words[] = {
		[GDRCAP_STEP_PASSED] = "passed",
		[GDRCAP_STEP_FAILED] = "FAILED",
		[GDRCAP_STEP_SKIPPED] = "skipped",
	};
	int failed = step->state == GDRCAP_STEP_FAILED;
	const char *tint = failed			       ? REPORT_RED
			   : step->state == GDRCAP_STEP_PASSED ? REPORT_GREEN
							       : "";
	size_t length = strlen(step->name);
	size_t skip = length < sizeof(dots) - 4 ? length : sizeof(dots) - 4;

	fprintf(to, "  %2" PRIu32 "  %s %s %s%s%s%s%s\n", number, step->name, dots + skip,
		colour ? tint : "", words[step->state], colour ? REPORT_PLAIN : "",
		step->detail[0] ? "  " : "", step->detail);
	if (!failed || !step->causes || !step->causes[0])
		return;
	fprintf(to, "\n      Likely causes, the likeliest first:\n");
	for (uint32_t i = 0; step->causes[i]; i++)
		fprintf(to, "      %" PRIu32 ". %s\n", i + 1, step->causes[i]);
	fprintf(to, "\n");
}
