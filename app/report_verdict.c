/* SPDX-License-Identifier: BSD-3-Clause */
/* The last line of a run. */
#include "base/json_line.h"
#include "base/text.h"
#include "report_rows.h"

/* "PASS: " or "FAIL: " */
static void print_word(FILE *to, const struct report *report, int colour)
{
	const bool pass = report->result == REPORT_PASS;

	fprintf(to, "%s%s%s: ",
		!colour ? ""
		: pass	? REPORT_GREEN
			: REPORT_RED,
		pass ? "PASS" : "FAIL", colour ? REPORT_PLAIN : "");
}

/* Of all descriptions together. */
static uint64_t images_sum(const struct report *report, const char *path)
{
	const json_t *images = json_object_get(report->object, "images"), *one;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach (images, i, one)
		sum += json_count_at(one, path);
	return sum;
}

static void print_images_pass(FILE *to, const struct report *report)
{
	const uint64_t complete = images_sum(report, "complete");
	const uint64_t restarts = images_sum(report, "restarts");
	const uint64_t misfits = images_sum(report, "frames.misfit");
	const uint64_t cut = images_sum(report, "cut.by_start") + images_sum(report, "cut.by_stop");
	char count[TEXT_COUNT_BYTES];

	fprintf(to, "%s image%s, every one complete", text_count(count, complete),
		report_plural(complete));
	if (cut)
		fprintf(to, "; cut by the run's start or stop: %s", text_count(count, cut));
	if (restarts)
		fprintf(to, "; times that numbers went on elsewhere: %s",
			text_count(count, restarts));
	if (misfits)
		fprintf(to, "; frames that matched and did not fit the layout: %s",
			text_count(count, misfits));
	fprintf(to, "\n");
}

static void print_pass(FILE *to, const struct report *report)
{
	const json_t *object = report->object;
	const uint64_t valid = json_count_at(object, "frames.valid");
	const uint64_t sent =
		json_count_at(object, "frames.sent") + json_count_at(object, "sending.sent");
	const uint64_t restarts = json_count_at(object, "restarts");
	char count[TEXT_COUNT_BYTES];

	if (!report_receives(report)) {
		fprintf(to, "%s frame%s sent\n", text_count(count, sent), report_plural(sent));
		return;
	}
	if (valid == 0) {
		const uint64_t saved = json_count_at(object, "saved.frames");

		fprintf(to, "%s frame%s saved; nothing says what they should be\n",
			text_count(count, saved), report_plural(saved));
		return;
	}
	fprintf(to, "%s frame%s %s, every one valid", text_count(count, valid),
		report_plural(valid), report_option(report, "tx_port", 0) ? "sent" : "received");
	if (restarts)
		fprintf(to, "; senders that began again: %s", text_count(count, restarts));
	fprintf(to, "\n");
}

void report_print_verdict(FILE *to, const struct report *report, int colour)
{
	json_t *errors, *error;
	size_t i;

	print_word(to, report, colour);
	if (report->result == REPORT_PASS && report_images(report)) {
		print_images_pass(to, report);
	} else if (report->result == REPORT_PASS) {
		print_pass(to, report);
	} else {
		errors = report_errors(report);
		json_array_foreach (errors, i, error)
			fprintf(to, "%s%s", i ? "; " : "", json_string_value(error));
		json_decref(errors);
		fprintf(to, "\n");
	}
}
