/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run has to say, for people. No locale is set: the numbers look alike everywhere. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report_images.h"

#define STREAMS_SHOWN 16

#define RED "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"

const char *report_text_count(char *to, uint64_t count)
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *end = to;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*end++ = ',';
		*end++ = digits[i];
	}
	*end = '\0';
	return to;
}

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

void report_print_step(FILE *to, const struct gdrcap_step *step, uint32_t number, int colour)
{
	static const char dots[] = "............................";
	static const char *const words[] = {
		[GDRCAP_STEP_PASSED] = "passed",
		[GDRCAP_STEP_FAILED] = "FAILED",
		[GDRCAP_STEP_SKIPPED] = "skipped",
	};
	int failed = step->state == GDRCAP_STEP_FAILED;
	const char *tint = failed ? RED : step->state == GDRCAP_STEP_PASSED ? GREEN : "";
	size_t length = strlen(step->name);
	size_t skip = length < sizeof(dots) - 4 ? length : sizeof(dots) - 4;

	fprintf(to, "  %2" PRIu32 "  %s %s %s%s%s%s%s\n", number, step->name, dots + skip,
		colour ? tint : "", words[step->state], colour ? PLAIN : "",
		step->detail[0] ? "  " : "", step->detail);
	if (!failed || !step->causes || !step->causes[0])
		return;
	fprintf(to, "\n      Likely causes, the likeliest first:\n");
	for (uint32_t i = 0; step->causes[i]; i++)
		fprintf(to, "      %" PRIu32 ". %s\n", i + 1, step->causes[i]);
	fprintf(to, "\n");
}

void report_print_row(FILE *to, const char *name, uint64_t count, const char *unit)
{
	char text[REPORT_TEXT_BYTES];

	fprintf(to, "  %-18s%27s  %s\n", name, report_text_count(text, count), unit);
}

static void print_row_if(FILE *to, int known, const char *name, uint64_t count, const char *unit)
{
	if (known)
		report_print_row(to, name, count, unit);
	else
		fprintf(to, "  %-18s%27s\n", name, "not known");
}

/* What the cards of receiving or of sending ports counted, and what can be done about it. */
static void print_causes(FILE *to, const struct report *report, int sender)
{
	char text[REPORT_TEXT_BYTES];

	for (uint32_t i = 0; i < report->cause_count; i++) {
		const struct gdrcap_cause *cause = &report->causes[i];

		if (cause->sender == sender && cause->known && cause->count)
			fprintf(to, "    %-22s%21s  %s\n", cause->name,
				report_text_count(text, cause->count), cause->meaning);
	}
}

static void print_rules(FILE *to, const struct report *report)
{
	char text[REPORT_TEXT_BYTES];

	for (uint32_t i = 0; i < report->rule_count; i++) {
		const struct gdrcap_rule *rule = &report->rules[i];

		fprintf(to, "  %-18s%27s  frames by the card's rule %s\n", i ? "" : "steered",
			rule->known ? report_text_count(text, rule->frames) : "not known",
			rule->text);
	}
}

static void print_sender(FILE *to, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;

	report_print_row(to, "tx stalled", summary->tx_stalled,
			 "polls in which the sender was held back");
	report_print_row(to, "tx starved", summary->tx_starved,
			 "polls in which its next frames were not ready");
	print_row_if(to, summary->known & GDRCAP_HAS_TX_ERROR, "tx errors", summary->tx_error,
		     "frames that the port took and could not send");
	print_causes(to, report, 1);
	if (summary->known & GDRCAP_HAS_START)
		fprintf(to, "  %-18s%27.6f  s after the time of --start-at\n", "tx start",
			(double)summary->start_late_ns / 1e9);
	fprintf(to, "  %-18s%27.3f  s, first hand-over to last\n", "tx time", summary->tx_seconds);
	if (summary->asked_seconds > 0)
		fprintf(to, "  %-18s%27.3f  s, by the file's own times\n", "  asked",
			summary->asked_seconds);
	fprintf(to, "  %-18s%27.6f  Gb/s on the wire, with FCS, preamble and gap\n", "tx rate",
		summary->tx_gbps);
	if (summary->asked_gbps > 0)
		fprintf(to, "  %-18s%27.6f  Gb/s\n", "  asked", summary->asked_gbps);
	fprintf(to, "  %-18s%27.6f  Mpps\n", "", summary->tx_mpps);
	if (summary->asked_mpps > 0)
		fprintf(to, "  %-18s%27.6f  Mpps\n", "  asked", summary->asked_mpps);
	if (summary->known & GDRCAP_HAS_PACE)
		fprintf(to,
			"  %-18s%27s  p50 %.3f us, p99 %.3f us, max %.3f us (hand-over to the port)\n",
			"tx gap error", "", (double)summary->gap_p50_ns / 1e3,
			(double)summary->gap_p99_ns / 1e3, (double)summary->gap_max_ns / 1e3);
}

/* The caller's own frames. */
static void print_sending(FILE *to, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;

	if (!(summary->known & GDRCAP_HAS_SENDING))
		return;
	report_print_row(to, "submitted", summary->sending_submitted, "frames of the caller's");
	report_print_row(to, "  sent", summary->sending_sent, "frames that the ports took");
	report_print_row(to, "", summary->sending_bytes, "bytes in memory, without FCS");
	report_print_row(to, "  unsent", summary->sending_unsent,
			 "frames that waited when the run ended");
	report_print_row(to, "  refused", summary->sending_refused,
			 "frames of a running kernel's, with a length that no frame has");
	report_print_row(to, "  stalled", summary->sending_stalled,
			 "polls in which a port took nothing");
	print_row_if(to, summary->known & GDRCAP_HAS_SENDING_FAILED, "  failed",
		     summary->sending_failed, "frames that a port took and could not send");
}

/* What the ports did not hand over. */
static void print_port_losses(FILE *to, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const int own = summary->rx_by[0] && strcmp(summary->rx_by, "driver");

	print_row_if(to, summary->known & GDRCAP_HAS_NIC_MISSED, "  no buffer", summary->nic_missed,
		     "frames that the port missed");
	/* A queue of our own has no damaged ones: they never get there. */
	print_row_if(to, summary->known & GDRCAP_HAS_NIC_ERROR,
		     own ? "  queue in error" : "  bad on the wire", summary->nic_error,
		     own ? "frames of queues in error, until they ran again"
			 : "frames that the port refused");
	if (!report->image_count)
		print_row_if(to, summary->known & GDRCAP_HAS_LOSS, "  unexplained",
			     summary->unexplained, "frames that no counter explains");
	print_causes(to, report, 0);
	if (summary->pool_empty)
		fprintf(to, "  %-18s%27.3f  s without a free slot: the consumer had them all\n",
			"pool empty", summary->pool_empty_seconds);
}

static void print_port_rest(FILE *to, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;

	print_rules(to, report);
	if (summary->cut)
		report_print_row(
			to, "cut", summary->cut,
			"frames of which only the beginning may have come, ours or others'");
	if (summary->queue_restarts)
		report_print_row(to, "queue restarts", summary->queue_restarts,
				 "receive queues in error that were started again");
}

static void print_losses(FILE *to, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const int ordered = (summary->known & GDRCAP_HAS_LOSS) != 0;
	const struct gdrcap_counts *total = &summary->total;

	print_row_if(to, ordered, "lost", total->lost, "frames");
	print_port_losses(to, report);
	print_row_if(to, ordered, "duplicate", total->duplicate, "frames");
	print_row_if(to, ordered, "reordered", total->reordered, "frames");
	if (summary->known & GDRCAP_HAS_LOCK)
		report_print_row(to, "lock lost", summary->lock_lost,
				 "times that a payload did not go on where the one before ended");
	report_print_row(to, "filtered", total->filtered, "frames that are not meant");
	print_port_rest(to, report);
}

static void print_saved(FILE *to, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;

	if (report_option(report, "save", 0)) {
		report_print_row(to, "saved", summary->saved, report_option(report, "save", 0));
		report_print_row(to, "  missed", summary->save_missed,
				 "frames that the file did not take");
	}
	if (report_option(report, "save_damaged", 0)) {
		report_print_row(to, "saved, damaged", summary->damaged_saved,
				 report_option(report, "save_damaged", 0));
		report_print_row(to, "  missed", summary->damaged_missed,
				 "frames that the file did not take");
	}
}

static void print_rate(FILE *to, const struct gdrcap_summary *summary)
{
	fprintf(to, "  %-18s%27.3f  %s\n", "time", summary->seconds, "s, first frame to last");
	fprintf(to, "  %-18s%27.3f  %s\n", "rate", summary->gbps,
		"Gb/s received, with FCS, preamble and gap");
	fprintf(to, "  %-18s%27.3f  %s\n", "", summary->mpps, "Mpps received");
}

static void print_totals(FILE *to, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const struct gdrcap_counts *total = &summary->total;
	char ratio[REPORT_TEXT_BYTES];

	if (!report_receives(report)) {
		print_sending(to, report);
		if (!(summary->known & GDRCAP_HAS_TX_STALLED))
			return;
		report_print_row(to, "sent", total->sent, "frames");
		report_print_row(to, "", summary->tx_bytes, "bytes in memory, without FCS");
		print_sender(to, report);
		return;
	}
	report_print_row(to, "sent", total->sent, "frames");
	report_print_row(to, "received", total->received, "frames");
	report_print_row(to, "", total->bytes, "bytes in memory, without FCS");
	report_print_row(to, "valid", total->valid, "frames");
	report_print_row(to, "damaged", total->damaged, "frames");
	if (summary->known & GDRCAP_HAS_STALE)
		report_print_row(to, "  stale", summary->stale,
				 "frames that were seen before their bytes were there");
	print_losses(to, report);
	report_print_row(to, "bits checked", total->bits_checked, "payload bits");
	report_print_row(to, "bits wrong", total->bits_wrong, "payload bits");
	fprintf(to, "  %-18s%27s  %s\n", "bit error ratio",
		report_text_ratio(ratio, total->bits_wrong, total->bits_checked),
		"wrong / checked payload bits");
	print_saved(to, report);
	if (summary->known & GDRCAP_HAS_TX_STALLED)
		print_sender(to, report);
	print_sending(to, report);
	print_rate(to, summary);
}

static void print_cells(FILE *to, const uint64_t *cells, size_t count)
{
	char text[REPORT_TEXT_BYTES];

	for (size_t i = 0; i < count; i++)
		fprintf(to, " %15s", report_text_count(text, cells[i]));
	fprintf(to, "\n");
}

static void print_queues(FILE *to, const struct report *report)
{
	fprintf(to, "\n  %-8s %15s %15s %15s %15s %15s %15s\n", "queue", "received", "valid",
		"damaged", "duplicate", "reordered", "filtered");
	for (uint32_t i = 0; i < report->queue_count; i++) {
		const struct gdrcap_counts *counts = &report->queues[i];

		fprintf(to, "  %-8" PRIu32, i);
		print_cells(to,
			    (const uint64_t[]){ counts->received, counts->valid, counts->damaged,
						counts->duplicate, counts->reordered,
						counts->filtered },
			    6);
	}
}

static void print_streams(FILE *to, const struct report *report)
{
	uint32_t shown = report->stream_count;

	if (shown > STREAMS_SHOWN)
		shown = STREAMS_SHOWN;
	fprintf(to, "\n  %-8s %15s %15s %15s %15s %15s %15s\n", "stream", "sent", "valid",
		"damaged", "lost", "duplicate", "reordered");
	for (uint32_t i = 0; i < shown; i++) {
		const struct gdrcap_counts *counts = &report->streams[i].counts;

		fprintf(to, "  %-8" PRIu32, report->streams[i].stream);
		print_cells(to,
			    (const uint64_t[]){ counts->sent, counts->valid, counts->damaged,
						counts->lost, counts->duplicate,
						counts->reordered },
			    6);
	}
	if (shown < report->stream_count)
		fprintf(to, "  and %" PRIu32 " more: --json lists them all\n",
			report->stream_count - shown);
}

static void print_damage(FILE *to, const struct report *report)
{
	char sequence[REPORT_TEXT_BYTES];

	fprintf(to, "\n  The first damaged frames:\n");
	for (uint32_t i = 0; i < report->damage_count; i++) {
		const struct gdrcap_damage *damage = &report->damage[i];

		if (damage->header_ok)
			fprintf(to, "  stream %" PRIu32 " sequence %s, ", damage->stream,
				report_text_count(sequence, damage->sequence));
		else
			fprintf(to, "  sequence number unreadable, ");
		fprintf(to, "queue %" PRIu32 ", %s", damage->queue,
			damage->kind ? damage->kind : "not known");
		if (damage->wrong_bits)
			fprintf(to,
				": first wrong byte at offset %" PRIu32
				" of the frame: expected 0x%02x, got 0x%02x; %" PRIu32
				" wrong bit%s",
				damage->offset, damage->expected, damage->got, damage->wrong_bits,
				report_plural(damage->wrong_bits));
		else if (report_damage_is_late(damage))
			fprintf(to,
				": at offset %" PRIu32
				" of the frame 0x%02x was seen, and 0x%02x came later",
				damage->offset, damage->got, damage->expected);
		fprintf(to, "\n");
	}
}

void report_print_table(FILE *to, const struct report *report)
{
	if (report->image_count) {
		if (report->summary.known & GDRCAP_HAS_TX_STALLED)
			report_print_row(to, "sent", report->summary.total.sent, "frames");
		report_print_images(to, report);
		fprintf(to, "  lost at the ports\n");
		print_port_losses(to, report);
		print_port_rest(to, report);
		if (report->summary.known & GDRCAP_HAS_TX_STALLED)
			print_sender(to, report);
		print_sending(to, report);
		print_rate(to, &report->summary);
		report_print_incomplete(to, report);
	} else {
		print_totals(to, report);
	}
	if (report->queue_count > 1 && !report->image_count)
		print_queues(to, report);
	if (report->stream_count > 1 && (report->summary.known & GDRCAP_HAS_LOSS))
		print_streams(to, report);
	if (report->damage_count)
		print_damage(to, report);
	if (report->message_count) {
		fprintf(to, "\n  Messages of the run:\n");
		for (uint32_t i = 0; i < report->message_count; i++)
			fprintf(to, "  %s\n", report->messages[i]);
	}
	fprintf(to, "\n");
}

static void print_images_pass(FILE *to, const struct report *report, int colour)
{
	struct gdrcap_image_counts total;
	char count[REPORT_TEXT_BYTES];

	report_images_total(report, &total);
	fprintf(to, "%sPASS%s: %s image%s, every one complete", colour ? GREEN : "",
		colour ? PLAIN : "", report_text_count(count, total.complete),
		report_plural(total.complete));
	if (total.restarts)
		fprintf(to, "; times that numbers went on elsewhere: %s",
			report_text_count(count, total.restarts));
	if (total.misfit)
		fprintf(to, "; frames that were meant, and wrong: %s",
			report_text_count(count, total.misfit));
	fprintf(to, "\n");
}

void report_print_verdict(FILE *to, const struct report *report, int colour)
{
	const struct gdrcap_counts *total = &report->summary.total;
	const uint64_t sent = total->sent + report->summary.sending_sent;
	char count[REPORT_TEXT_BYTES];

	if (report->result == REPORT_PASS) {
		if (!report_receives(report)) {
			fprintf(to, "%sPASS%s: %s frame%s sent\n", colour ? GREEN : "",
				colour ? PLAIN : "", report_text_count(count, sent),
				report_plural(sent));
			return;
		}
		if (report->image_count) {
			print_images_pass(to, report, colour);
			return;
		}
		fprintf(to, "%sPASS%s: %s frame%s %s, every one valid", colour ? GREEN : "",
			colour ? PLAIN : "", report_text_count(count, total->valid),
			report_plural(total->valid),
			report_option(report, "tx_port", 0) ? "sent" : "received");
		if (total->restarts)
			fprintf(to, "; senders that began again: %s",
				report_text_count(count, total->restarts));
		fprintf(to, "\n");
		return;
	}
	fprintf(to, "%sFAIL%s: ", colour ? RED : "", colour ? PLAIN : "");
	for (uint32_t i = 0; i < report->error_count; i++)
		fprintf(to, "%s%s", i ? "; " : "", report->errors[i]);
	fprintf(to, "\n");
}
