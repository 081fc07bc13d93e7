/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a bench in memory: added, found by their point, compared with another file's. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench_report.h"

static int point_equal(const struct gdrcap_bench_point *a, const struct gdrcap_bench_point *b)
{
	return !strcmp(a->stage, b->stage) && a->frame_bytes == b->frame_bytes &&
	       a->burst == b->burst && a->blocks == b->blocks && a->queues == b->queues &&
	       !strcmp(a->pattern, b->pattern) && !strcmp(a->memory, b->memory) &&
	       !strcmp(a->source, b->source);
}

struct gdrcap_bench_result *bench_report_find(const struct bench_report *report,
					      const struct gdrcap_bench_point *point)
{
	for (size_t i = 0; i < report->count; i++)
		if (point_equal(&report->results[i].point, point))
			return &report->results[i];
	return NULL;
}

int bench_report_add(struct bench_report *report, const struct gdrcap_bench_result *result)
{
	struct gdrcap_bench_result *place = bench_report_find(report, &result->point);

	if (!place && report->count == report->room) {
		const size_t room = report->room ? 2 * report->room : 64;
		struct gdrcap_bench_result *results =
			realloc(report->results, room * sizeof(*results));

		if (!results)
			return -ENOMEM;
		report->results = results;
		report->room = room;
	}
	if (!place)
		place = &report->results[report->count++];
	*place = *result;
	return 0;
}

const struct bench_row *bench_report_row(const struct bench_report *report, const char *id)
{
	for (size_t i = 0; i < report->row_count; i++)
		if (!strcmp(report->rows[i].id, id))
			return &report->rows[i];
	return NULL;
}

void bench_report_free(struct bench_report *report)
{
	free(report->results);
	report->results = NULL;
	report->count = report->room = 0;
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
	size_t used = (size_t)snprintf(to, bytes, "%s", point->stage);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].number && used < bytes)
			used += (size_t)snprintf(to + used, bytes - used, ", %s%u%s",
						 numbers[i].before, numbers[i].number,
						 numbers[i].after);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i][0] && used < bytes)
			used += (size_t)snprintf(to + used, bytes - used, ", %s", texts[i]);
}

void bench_cores_text(char *to, size_t bytes)
{
	size_t used = 0;
	cpu_set_t set;

	to[0] = '\0';
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && used < bytes; cpu++) {
		int last = cpu;

		if (!CPU_ISSET(cpu, &set))
			continue;
		while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
			last++;
		used += (size_t)snprintf(to + used, bytes - used, "%s%d", used ? "," : "", cpu);
		if (last > cpu && used < bytes)
			used += (size_t)snprintf(to + used, bytes - used, "-%d", last);
		cpu = last;
	}
}

void bench_report_rows(struct bench_report *report)
{
	const struct gdrcap_bench_stage *stage;

	for (size_t i = 0; i < BENCH_STAGES_MAX && (stage = gdrcap_bench_stage_at(i)); i++) {
		struct bench_row *row = &report->rows[report->row_count++];

		snprintf(row->id, sizeof(row->id), "%s", stage->id);
		snprintf(row->group, sizeof(row->group), "%s", stage->group);
		snprintf(row->what, sizeof(row->what), "%s", stage->what);
		snprintf(row->unit, sizeof(row->unit), "%s", stage->unit);
		snprintf(row->limit, sizeof(row->limit), "%s", stage->limit ? stage->limit : "");
		row->less_is_better = stage->less_is_better;
	}
}

const char *bench_report_difference(const struct bench_report *a, const struct bench_report *b)
{
	const struct gdrcap_bench_machine *m = &a->machine, *n = &b->machine;
	const struct bench_parameters *p = &a->parameters, *q = &b->parameters;

	if (strcmp(a->version, b->version))
		return "of another version";
	if (strcmp(m->cpu, n->cpu) || m->cpus != n->cpus || m->cache_bytes != n->cache_bytes)
		return "of another machine, or of other CPUs";
	if (strcmp(m->gpu, n->gpu) || m->gpu_units != n->gpu_units)
		return "of another GPU";
	if (strcmp(m->kernel, n->kernel) || strcmp(m->gpu_driver, n->gpu_driver) ||
	    strcmp(m->cuda, n->cuda))
		return "of another kernel or GPU driver";
	if (m->hugepages != n->hugepages)
		return n->hugepages ? "with hugepages, which there are not now"
				    : "without hugepages, which there are now";
	if (p->quick != q->quick || p->runs != q->runs || p->run_ms != q->run_ms)
		return "with another of --quick, --runs and --run-time";
	if (strcmp(p->gpu, q->gpu) || strcmp(p->cores, q->cores))
		return "with another of --gpu and --cores";
	return NULL;
}
