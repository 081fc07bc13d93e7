/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a bench for people: a table for each stage, as wide as it must be. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_report.h"
#include "report.h"

#define CELL_BYTES 40
#define NOTES_MAX 1536 /* of a stage's points, three each */
#define COLUMNS 100

#define BOLD "\033[1m"
#define RED "\033[31m"
#define PLAIN "\033[0m"

/* "12.3k", "4.56G": three digits that count, of 1000 and more. */
static void format_digits(char *to, double value)
{
	static const char units[] = " kMGTPE";
	int unit = 0;

	for (; value >= 999.5; unit++)
		value /= 1000;
	snprintf(to, CELL_BYTES, "%.*f%c",
		 value >= 99.95	  ? 0
		 : value >= 9.995 ? 1
				  : 2,
		 value, units[unit]);
}

/* Four digits that count; three and a unit from 100,000 on. */
static void format_value(char *to, double value)
{
	if (value == 0)
		snprintf(to, CELL_BYTES, "0");
	else if (value >= 1e15 || value < 1e-3)
		snprintf(to, CELL_BYTES, "%.3g", value);
	else if (value >= 1e5)
		format_digits(to, value);
	else
		snprintf(to, CELL_BYTES, "%.*f",
			 4 - (value >= 1) - (value >= 10) - (value >= 100) - (value >= 1000),
			 value);
}

static void format_rate(char *to, double value)
{
	if (value == 0)
		snprintf(to, CELL_BYTES, "-");
	else
		format_value(to, value);
}

static void format_count(char *to, uint64_t count)
{
	if (count < 1000)
		snprintf(to, CELL_BYTES, "%" PRIu64, count);
	else
		format_digits(to, (double)count);
}

static void format_number(char *to, uint32_t number)
{
	if (number)
		snprintf(to, CELL_BYTES, "%" PRIu32, number);
	else
		snprintf(to, CELL_BYTES, "-");
}

static void format_text(char *to, const char *text)
{
	snprintf(to, CELL_BYTES, "%s", text[0] ? text : "-");
}

/* ---- columns ---- */

#define RESULT const struct gdrcap_bench_result *result

static void cell_frame(char *to, RESULT)
{
	format_number(to, result->point.frame_bytes);
}

static void cell_burst(char *to, RESULT)
{
	format_number(to, result->point.burst);
}

static void cell_blocks(char *to, RESULT)
{
	format_number(to, result->point.blocks);
}

static void cell_queues(char *to, RESULT)
{
	format_number(to, result->point.queues);
}

static void cell_pattern(char *to, RESULT)
{
	format_text(to, result->point.pattern);
}

static void cell_memory(char *to, RESULT)
{
	format_text(to, result->point.memory);
}

static void cell_source(char *to, RESULT)
{
	format_text(to, result->point.source);
}

static void cell_median(char *to, RESULT)
{
	format_value(to, result->median);
}

/* How far the run that was furthest from the median was. */
static void cell_spread(char *to, RESULT)
{
	const double most = fmax(result->most - result->median, result->median - result->least);

	if (result->runs < 2 || result->median == 0)
		snprintf(to, CELL_BYTES, "-");
	else
		snprintf(to, CELL_BYTES, "+-%.1f%%", fmin(100 * most / result->median, 1e6));
}

/* Of the median run, or of the first of equal ones. */
static void cell_core_speed(char *to, RESULT)
{
	uint32_t i = 0;

	while (i + 1 < result->runs && result->run[i] != result->median)
		i++;
	format_rate(to, result->core_speed[i]);
}

static void cell_limit(char *to, RESULT)
{
	format_rate(to, result->limit);
}

static void cell_of_limit(char *to, RESULT)
{
	if (result->of_limit == 0)
		snprintf(to, CELL_BYTES, "-");
	else
		snprintf(to, CELL_BYTES, "%.1f%%", fmin(100 * result->of_limit, 1e6));
}

static void cell_mpps(char *to, RESULT)
{
	format_rate(to, result->mpps);
}

static void cell_gbps(char *to, RESULT)
{
	format_rate(to, result->gbps);
}

static void cell_p50(char *to, RESULT)
{
	format_rate(to, result->p50_ns);
}

static void cell_p99(char *to, RESULT)
{
	format_rate(to, result->p99_ns);
}

static void cell_p999(char *to, RESULT)
{
	format_rate(to, result->p999_ns);
}

static void cell_max(char *to, RESULT)
{
	format_rate(to, result->max_ns);
}

static void cell_samples(char *to, RESULT)
{
	format_count(to, result->samples);
}

static void cell_frames(char *to, RESULT)
{
	format_count(to, result->frames);
}

/* In words where every one was, so that 99.99 % of them does not look like all. */
static void cell_validated(char *to, RESULT)
{
	if (result->validated && result->validated == result->frames)
		snprintf(to, CELL_BYTES, "all");
	else if (result->validated)
		snprintf(to, CELL_BYTES, "%" PRIu64, result->validated);
	else
		snprintf(to, CELL_BYTES, "none");
}

static void cell_lost(char *to, RESULT)
{
	snprintf(to, CELL_BYTES, "%" PRIu64, result->lost);
}

static void cell_damaged(char *to, RESULT)
{
	snprintf(to, CELL_BYTES, "%" PRIu64, result->damaged);
}

/* A column is shown where one of its cells says something, and always where that is NULL. */
static const struct column {
	const char *head;
	void (*cell)(char *to, RESULT);
	const char *nothing; /* what says nothing */
	int of_point;	     /* else of what was found */
	int left;	     /* texts begin below their heading */
} columns[] = {
	{ "frame", cell_frame, "-", 1, 0 },
	{ "burst", cell_burst, "-", 1, 0 },
	{ "blocks", cell_blocks, "-", 1, 0 },
	{ "queues", cell_queues, "-", 1, 0 },
	{ "pattern", cell_pattern, "-", 1, 1 },
	{ "memory", cell_memory, "-", 1, 1 },
	{ "source", cell_source, "-", 1, 1 },
	{ "", cell_median, NULL, 0, 0 },
	{ "spread", cell_spread, NULL, 0, 0 },
	{ "op/ns", cell_core_speed, "-", 0, 0 },
	{ "limit", cell_limit, "-", 0, 0 },
	{ "of limit", cell_of_limit, "-", 0, 0 },
	{ "Mpps", cell_mpps, "-", 0, 0 },
	{ "Gb/s", cell_gbps, "-", 0, 0 },
	{ "p50", cell_p50, "-", 0, 0 },
	{ "p99", cell_p99, "-", 0, 0 },
	{ "p99.9", cell_p999, "-", 0, 0 },
	{ "max", cell_max, "-", 0, 0 },
	{ "samples", cell_samples, "0", 0, 0 },
	{ "frames", cell_frames, "0", 0, 0 },
	{ "validated", cell_validated, NULL, 0, 0 },
	{ "lost", cell_lost, NULL, 0, 0 },
	{ "damaged", cell_damaged, "0", 0, 0 },
};
#define COLUMN_COUNT (sizeof(columns) / sizeof(columns[0]))
#define MEDIAN_COLUMN 7
#define VALIDATED_COLUMN 20

/* One stage's. */
struct table {
	const struct bench_report *report;
	const struct bench_row *row;
	int width[COLUMN_COUNT]; /* 0: not shown */
	char notes[NOTES_MAX][256];
	size_t note_count;
};

static void cell(const struct column *column, char *to, RESULT)
{
	if (result->error[0] && !column->of_point)
		snprintf(to, CELL_BYTES, "-");
	else
		column->cell(to, result);
}

/* The median is in the stage's unit; a rate in the same would be there twice. */
static const char *head_of(const struct table *table, size_t index)
{
	return index == MEDIAN_COLUMN ? table->row->unit : columns[index].head;
}

static void measure_column(struct table *table, size_t index)
{
	const struct column *column = &columns[index];
	const char *head = head_of(table, index);
	/* Rates alone have no frames that could be validated or lost. */
	int shown = 0, frames = 0;
	char text[CELL_BYTES];

	for (size_t i = 0; i < table->report->count; i++) {
		const struct gdrcap_bench_result *result = &table->report->results[i];

		if (strcmp(result->point.stage, table->row->id))
			continue;
		frames |= result->frames != 0;
		cell(column, text, result);
		shown |= !column->nothing || (strcmp(text, column->nothing) && strcmp(text, "-"));
		if ((int)strlen(text) > table->width[index])
			table->width[index] = (int)strlen(text);
	}
	if ((index >= VALIDATED_COLUMN && !frames) ||
	    (index > MEDIAN_COLUMN && !strcmp(head, table->row->unit)))
		shown = 0;
	if ((int)strlen(head) > table->width[index])
		table->width[index] = (int)strlen(head);
	if (!shown)
		table->width[index] = 0;
}

/* Its number from 1; texts that are there are not repeated. 0: no room. */
static size_t note_number(struct table *table, const char *text)
{
	size_t i = 0;

	while (i < table->note_count && strcmp(table->notes[i], text))
		i++;
	if (i == NOTES_MAX)
		return 0;
	if (i == table->note_count)
		snprintf(table->notes[table->note_count++], sizeof(table->notes[0]), "%s", text);
	return i + 1;
}

static void print_notes(FILE *to, struct table *table, RESULT)
{
	static const char unordered[] = "bytes are checked, order is not: frames are repeated";
	const char *const texts[] = {
		result->error,
		result->note,
		result->error[0] || !result->validated || result->sequence_checked ? "" : unordered,
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const size_t number = texts[i][0] ? note_number(table, texts[i]) : 0;

		if (number)
			fprintf(to, " [%zu]", number);
	}
}

/* Breaks lines between words. */
static void print_words(FILE *to, const char *text, int indent)
{
	int column = indent;

	while (*text) {
		const int length = (int)strcspn(text, " ");

		if (column > indent && column + 1 + length > COLUMNS) {
			fprintf(to, "\n%*s", indent, "");
			column = indent;
		}
		column += fprintf(to, "%s%.*s", column > indent ? " " : "", length, text);
		text += length;
		text += strspn(text, " ");
	}
	fprintf(to, "\n");
}

static void print_result(FILE *to, struct table *table, RESULT, int colour)
{
	const int wrong = colour && (result->damaged || result->lost);

	fprintf(to, "%s ", wrong ? RED : "");
	for (size_t i = 0; i < COLUMN_COUNT; i++) {
		char text[CELL_BYTES];

		if (!table->width[i])
			continue;
		cell(&columns[i], text, result);
		fprintf(to, "%s%*s", i == MEDIAN_COLUMN ? "  " : " ",
			columns[i].left ? -table->width[i] : table->width[i], text);
	}
	fputs(wrong ? PLAIN : "", to);
	print_notes(to, table, result);
	fprintf(to, "\n");
}

static void print_heading(FILE *to, const struct table *table, int colour)
{
	const struct bench_row *row = table->row;
	const int length =
		fprintf(to, "\n%s%s%s  ", colour ? BOLD : "", row->id, colour ? PLAIN : "") - 1;

	print_words(to, row->what, length - (colour ? (int)strlen(BOLD PLAIN) : 0));
	fprintf(to, "  in %s, %s is better%s%s\n ", row->unit,
		row->less_is_better ? "less" : "more", row->limit[0] ? "; limited by " : "",
		row->limit);
	for (size_t i = 0; i < COLUMN_COUNT; i++)
		if (table->width[i])
			fprintf(to, "%s%*s", i == MEDIAN_COLUMN ? "  " : " ",
				columns[i].left ? -table->width[i] : table->width[i],
				head_of(table, i));
	fprintf(to, "\n");
}

static void print_stage(FILE *to, struct table *table, int colour)
{
	const struct bench_report *report = table->report;

	for (size_t i = 0; i < COLUMN_COUNT; i++)
		measure_column(table, i);
	print_heading(to, table, colour);
	for (size_t i = 0; i < report->count; i++)
		if (!strcmp(report->results[i].point.stage, table->row->id))
			print_result(to, table, &report->results[i], colour);
	for (size_t i = 0; i < table->note_count; i++) {
		const int length = fprintf(to, "  [%zu] ", i + 1);

		print_words(to, table->notes[i], length);
	}
}

static int has_results(const struct bench_report *report, const char *id)
{
	for (size_t i = 0; i < report->count; i++)
		if (!strcmp(report->results[i].point.stage, id))
			return 1;
	return 0;
}

void bench_print_table(FILE *to, const struct bench_report *report, int colour)
{
	for (size_t i = 0; i < report->row_count; i++) {
		struct table table = { .report = report, .row = &report->rows[i] };

		if (has_results(report, table.row->id))
			print_stage(to, &table, colour);
	}
}

void bench_print_header(FILE *to, const struct bench_report *report)
{
	const struct gdrcap_bench_machine *machine = &report->machine;
	const struct bench_parameters *parameters = &report->parameters;
	char memory[REPORT_TEXT_BYTES], cache[REPORT_TEXT_BYTES] = "not known";

	if (machine->cache_bytes)
		report_text_bytes(cache, machine->cache_bytes);
	fprintf(to, "%s bench\n", report->version);
	fprintf(to, "  %-10s%s: %u CPUs for this process (%s), last-level cache %s\n", "CPU",
		machine->cpu[0] ? machine->cpu : "not known", machine->cpus, parameters->cores,
		cache);
	fprintf(to, "  %-10s%s, %s hugepages; Linux %s\n", "memory",
		report_text_bytes(memory, machine->memory_bytes),
		machine->hugepages ? "with" : "without", machine->kernel);
	if (machine->gpu[0])
		fprintf(to, "  %-10s%s: %u multiprocessors, driver %s, CUDA %s\n", "GPU",
			machine->gpu, machine->gpu_units,
			machine->gpu_driver[0] ? machine->gpu_driver : "not known", machine->cuda);
	else
		fprintf(to, "  %-10snone: CPU threads stand in for it\n", "GPU");
	fprintf(to, "  %-10smedians of %u run%s", "figures", parameters->runs,
		parameters->runs == 1 ? "" : "s");
	if (parameters->run_ms)
		fprintf(to, " of %u ms", parameters->run_ms);
	fprintf(to,
		" after a warm-up%s; spread: of the run furthest from the median;\n  %-10sop/ns: "
		"simple operations of the slowest core before and after the run, all at work\n",
		parameters->quick ? ", quick" : "", "");
}
