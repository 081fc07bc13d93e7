/* SPDX-License-Identifier: BSD-3-Clause */
/* Many runs, for people. */
#include <ctype.h>
#include <string.h>

#include "merge/merge.h"

#define RED "\033[31m"
#define GREEN "\033[32m"
#define PLAIN "\033[0m"
#define NAME_COLUMNS 28

static const enum merge_which columns[] = { MERGE_SENT,	   MERGE_RECEIVED, MERGE_VALID,
					    MERGE_DAMAGED, MERGE_LOST,	   MERGE_DUPLICATE };

void merge_print_safe(FILE *to, const char *text)
{
	for (; *text; text++)
		fputc(isprint((unsigned char)*text) ? *text : '?', to);
}

static void print_count(FILE *to, struct merge_count count)
{
	char text[TEXT_COUNT_BYTES];

	fprintf(to, " %15s", count.known ? text_count(text, count.count) : "unknown");
}

/* What does not fit is written out, and the line goes on below. */
static void print_name(FILE *to, const char *name)
{
	const size_t length = strlen(name);

	fprintf(to, "  ");
	merge_print_safe(to, name);
	if (length > NAME_COLUMNS)
		fprintf(to, "\n  %*s", NAME_COLUMNS, "");
	else
		fprintf(to, "%*s", (int)(NAME_COLUMNS - length), "");
}

static void print_row(FILE *to, const char *name, const char *role,
		      const struct merge_counts *counts)
{
	print_name(to, name);
	fprintf(to, " %-8s", role);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		print_count(to, counts->of[columns[i]]);
	fprintf(to, "\n");
}

static bool all_known(const struct merge_counts *counts)
{
	bool known = true;

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		known &= counts->of[columns[i]].known;
	return known;
}

static void print_input(FILE *to, const struct merge_input *input)
{
	static const struct merge_counts unknown;
	char name[512];

	if (input->state != MERGE_READ) {
		print_row(to, input->file, input->state == MERGE_REFUSED ? "refused" : "unknown",
			  &unknown);
		return;
	}
	snprintf(name, sizeof(name), "%s%s%s", input->run.host, input->run.host[0] ? ": " : "",
		 input->file);
	print_row(to, name,
		  input->sends && input->receives ? "both"
		  : input->sends		  ? "sender"
						  : "receiver",
		  &input->total);
}

static void print_lines(FILE *to, const char *title, const char (*lines)[MERGE_REASON_BYTES],
			uint32_t count)
{
	for (uint32_t i = 0; i < count && i < MERGE_REASONS_MAX; i++) {
		fprintf(to, "%s", title);
		merge_print_safe(to, lines[i]);
		fprintf(to, "\n");
	}
	if (count > MERGE_REASONS_MAX)
		fprintf(to, "%sand %u more\n", title, count - MERGE_REASONS_MAX);
}

void merge_print_text(FILE *to, const struct merge *merge, bool colour)
{
	char text[TEXT_COUNT_BYTES];
	const struct merge_count *total = merge->total.of;

	fprintf(to, "  %-*s %-8s %15s %15s %15s %15s %15s %15s\n", NAME_COLUMNS, "machine: file",
		"role", "sent", "received", "valid", "damaged", "lost", "duplicate");
	for (uint32_t i = 0; i < merge->input_count; i++)
		print_input(to, &merge->inputs[i]);
	print_row(to, "all", "", &merge->total);
	if (!all_known(&merge->total))
		print_row(to, "all, as far as is known", "", &merge->least);
	fprintf(to, "\n");
	print_lines(to, "  note: ", merge->messages, merge->message_count);
	print_lines(to, "  ", merge->errors, merge->error_count);
	if (merge->status == REPORT_EXIT_OK && merge_is_of_images(merge))
		fprintf(to, "%sPASS%s: %u run%s of images, each of which passed\n",
			colour ? GREEN : "", colour ? PLAIN : "", merge->receivers,
			report_plural(merge->receivers));
	else if (merge->status == REPORT_EXIT_OK)
		fprintf(to, "%sPASS%s: each of %s frames of %u stream%s is there once and right\n",
			colour ? GREEN : "", colour ? PLAIN : "",
			text_count(text, total[MERGE_SENT].count), merge->stream_count,
			report_plural(merge->stream_count));
	else
		fprintf(to, "%sFAIL%s: %u reason%s above\n", colour ? RED : "", colour ? PLAIN : "",
			merge->error_count, report_plural(merge->error_count));
}
