/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a bench for people: one table, a heading for each stage and a row for each point. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/bench_report.h"
#include "flags.h"
#include "report.h"

#define CELL_BYTES 40
#define POINT_BYTES 160
#define ROW "  %-62s %9s %8s %6s %8s %7s %7s %9s\n"

/* Four digits that count, with a unit from 100,000 on; "-": there is none. */
static const char *format_figure(char to[CELL_BYTES], double value)
{
	static const char units[] = " kMGTPE";
	int unit = 0;

	for (; value >= 99999.5 && units[unit + 1]; unit++)
		value /= 1000;
	if (value == 0)
		snprintf(to, CELL_BYTES, "-");
	else if (value < 1e-3)
		snprintf(to, CELL_BYTES, "%.3g", value);
	else
		snprintf(to, CELL_BYTES, "%.*f%.*s",
			 4 - (value >= 1) - (value >= 10) - (value >= 100) - (value >= 1000), value,
			 unit > 0, units + unit);
	return to;
}

/* How far the run that was furthest from the median was. */
static const char *format_spread(char to[CELL_BYTES], const struct gdrcap_bench_result *result)
{
	const double most = fmax(result->most - result->median, result->median - result->least);

	if (result->runs < 2 || result->median == 0)
		return "-";
	snprintf(to, CELL_BYTES, "+-%.1f%%", fmin(100 * most / result->median, 1e6));
	return to;
}

/* Of the median run, or of the first of equal ones. */
static double core_speed(const struct gdrcap_bench_result *result)
{
	uint32_t i = 0;

	while (i + 1 < result->runs && result->run[i] != result->median)
		i++;
	return result->core_speed[i];
}

/* In words where every one was, so that 99.99 % of them does not look like all. */
static const char *format_validated(char to[CELL_BYTES], const struct gdrcap_bench_result *result)
{
	if (!result->frames)
		return "-";
	if (!result->validated)
		return "none";
	if (result->validated == result->frames)
		return result->sequence_checked ? "all" : "bytes";
	snprintf(to, CELL_BYTES, "%" PRIu64, result->validated);
	return to;
}

static void print_more(const char *text)
{
	if (text[0]) {
		printf("%5s", "");
		flags_print_words(text, 5, 5);
	}
}

static void print_latency(const struct gdrcap_bench_result *result)
{
	char p50[CELL_BYTES], p99[CELL_BYTES], p999[CELL_BYTES], most[CELL_BYTES];

	if (result->samples)
		printf("%6sns: p50 %s, p99 %s, p99.9 %s, the longest of %" PRIu64 " %s\n", "",
		       format_figure(p50, result->p50_ns), format_figure(p99, result->p99_ns),
		       format_figure(p999, result->p999_ns), result->samples,
		       format_figure(most, result->max_ns));
}

static void print_wrong(const struct gdrcap_bench_result *result)
{
	if (result->lost || result->damaged)
		printf("%6sframes lost: %" PRIu64 ", damaged: %" PRIu64 "\n", "", result->lost,
		       result->damaged);
}

void bench_print_result(const struct gdrcap_bench_result *result)
{
	char cell[6][CELL_BYTES], limit[CELL_BYTES] = "-", point[POINT_BYTES];

	bench_format_point(point, sizeof(point), &result->point);
	if (result->error[0]) {
		printf("  %s%snot measured\n", point, point[0] ? ": " : "");
		print_more(result->error);
		return;
	}
	if (result->of_limit != 0)
		snprintf(limit, sizeof(limit), "%.1f%%", fmin(100 * result->of_limit, 1e6));
	printf(ROW, point, format_figure(cell[0], result->median), format_spread(cell[1], result),
	       format_figure(cell[2], core_speed(result)), limit,
	       format_figure(cell[3], result->mpps), format_figure(cell[4], result->gbps),
	       format_validated(cell[5], result));
	print_wrong(result);
	print_latency(result);
	print_more(result->note);
}

void bench_print_stage(const struct gdrcap_bench_stage *stage)
{
	const int column = printf("\n%s ", stage->id) - 1;

	flags_print_words(stage->what, column, column);
	printf("  in %s, %s is better%s%s\n", stage->unit, stage->less_is_better ? "less" : "more",
	       stage->limit ? "; limited by " : "", stage->limit ? stage->limit : "");
	printf(ROW, "", stage->unit, "spread", "op/ns", "of limit", "Mpps", "Gb/s", "validated");
}

void bench_format_point(char *to, size_t bytes, const struct gdrcap_bench_point *point)
{
	const struct {
		const char *before;
		uint32_t number;
		const char *after;
	} numbers[] = {
		{ "", point->frame_bytes, " B" },
		{ "burst ", point->burst, "" },
		{ "", point->blocks, point->blocks == 1 ? " block" : " blocks" },
		{ "", point->queues, point->queues == 1 ? " queue" : " queues" },
	};
	const char *const texts[] = { point->pattern, point->memory, point->source };
	size_t used = 0;

	to[0] = '\0';

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].number && used < bytes)
			used += (size_t)snprintf(to + used, bytes - used, "%s%s%u%s",
						 used ? ", " : "", numbers[i].before,
						 numbers[i].number, numbers[i].after);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i][0] && used < bytes)
			used += (size_t)snprintf(to + used, bytes - used, "%s%s", used ? ", " : "",
						 texts[i]);
}

void bench_print_header(const struct bench_report *report)
{
	const struct gdrcap_bench_machine *machine = &report->machine;
	const struct bench_parameters *parameters = &report->parameters;
	char memory[REPORT_TEXT_BYTES], cache[REPORT_TEXT_BYTES] = "not known";

	if (machine->cache_bytes)
		report_text_bytes(cache, machine->cache_bytes);
	printf("%s bench\n", gdrcap_version());
	printf("  %-10s%s; CPUs for this process: %u (%s), last-level cache %s\n", "CPU",
	       machine->cpu[0] ? machine->cpu : "not known", machine->cpus, parameters->cores,
	       cache);
	printf("  %-10s%s, %s hugepages; Linux %s\n", "memory",
	       report_text_bytes(memory, machine->memory_bytes),
	       machine->hugepages ? "with" : "without", machine->kernel);
	if (machine->gpu[0])
		printf("  %-10s%s: %u multiprocessors, driver %s, CUDA %s\n", "GPU", machine->gpu,
		       machine->gpu_units,
		       machine->gpu_driver[0] ? machine->gpu_driver : "not known", machine->cuda);
	else
		printf("  %-10snone: CPU threads stand in for it\n", "GPU");
	printf("  %-10smedians of %u run%s", "figures", parameters->runs,
	       parameters->runs == 1 ? "" : "s");
	if (parameters->run_ms)
		printf(" of %u ms", parameters->run_ms);
	printf(" after a warm-up%s; spread: of the run furthest from the median;\n  %-10sop/ns: "
	       "simple operations of the slowest core before and after the run, all at work\n",
	       parameters->quick ? ", quick" : "", "");
}
