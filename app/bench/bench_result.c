/* SPDX-License-Identifier: BSD-3-Clause */
/* From a point's runs to its result: median, spread, limit. */
#include "bench/bench_result.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

const struct bench_stage *bench_stage_find(const char *id)
{
	for (size_t i = 0; i < bench_stage_count; i++)
		if (strcmp(bench_stages[i]->about.id, id) == 0)
			return bench_stages[i];
	return NULL;
}

bool bench_point_equal(const struct gdrcap_bench_point *a, const struct gdrcap_bench_point *b)
{
	return strcmp(a->stage, b->stage) == 0 && a->frame_bytes == b->frame_bytes &&
	       a->burst == b->burst && a->blocks == b->blocks && a->queues == b->queues &&
	       strcmp(a->pattern, b->pattern) == 0 && strcmp(a->memory, b->memory) == 0 &&
	       strcmp(a->source, b->source) == 0;
}

double bench_limit(const struct bench *bench, const char *stage, const char *memory)
{
	const struct bench_stage *row = bench_stage_find(stage);
	double best = 0;

	for (size_t i = 0; row && i < bench->result_count; i++) {
		const struct gdrcap_bench_result *result = &bench->results[i];

		if (strcmp(result->point.stage, stage) != 0 || result->error[0] ||
		    (memory && strcmp(result->point.memory, memory) != 0))
			continue;
		if (best == 0 ||
		    (row->about.less_is_better ? result->median < best : result->median > best))
			best = result->median;
	}
	return best;
}

/* What its row names, of the same memory, or of none. */
static double limit_of(const struct bench *bench, const struct bench_stage *stage,
		       const struct gdrcap_bench_point *point)
{
	const struct bench_stage *row =
		stage->about.limit ? bench_stage_find(stage->about.limit) : NULL;
	double limit;

	if (!row || strcmp(row->about.unit, stage->about.unit) != 0)
		return 0;
	if (!point->memory[0])
		return bench_limit(bench, row->about.id, NULL);
	limit = bench_limit(bench, row->about.id, point->memory);
	return limit > 0 ? limit : bench_limit(bench, row->about.id, "");
}

/* Nearest rank: the least value that no more than 1 - part of all exceed. */
static double percentile(const double *ascending, uint64_t count, double part)
{
	const uint64_t rank = (uint64_t)ceil((double)count * part);

	return ascending[rank ? rank - 1 : 0];
}

int bench_run_take(struct bench_run *run, const struct bench_sample *sample, double core_speed,
		   struct gdrcap_error *error)
{
	if (!isfinite(sample->value) || sample->value <= 0)
		return error_set(error, -ERANGE,
				 "the run was too short to be measured; give it "
				 "more time (--run-time)");
	memset(run, 0, sizeof(*run));
	run->sample = *sample;
	run->sample.latencies = NULL;
	run->core_speed = core_speed;
	if (!sample->latency_count)
		return 0;
	run->p50_ns = percentile(sample->latencies, sample->latency_count, 0.5);
	run->p99_ns = percentile(sample->latencies, sample->latency_count, 0.99);
	run->p999_ns = percentile(sample->latencies, sample->latency_count, 0.999);
	run->max_ns = sample->latencies[sample->latency_count - 1];
	return 0;
}

/* Of an even number of runs the worse of the two in the middle: a run that there was. */
static const struct bench_run *median_of(const struct bench_stage *stage,
					 const struct bench_run *runs, uint32_t count)
{
	uint8_t order[GDRCAP_BENCH_RUNS_MAX] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i;

		for (; at > 0 && runs[order[at - 1]].sample.value > runs[i].sample.value; at--)
			order[at] = order[at - 1];
		order[at] = (uint8_t)i;
	}
	return &runs[order[stage->about.less_is_better ? count / 2 : (count - 1) / 2]];
}

void bench_result_make(const struct bench *bench, const struct bench_stage *stage,
		       const struct bench_run *runs, uint32_t count,
		       const struct bench_sample *warm_up, struct gdrcap_bench_result *result)
{
	const struct bench_run *median = median_of(stage, runs, count);
	const struct bench_sample *sample = &median->sample;

	result->runs = count;
	result->damaged = warm_up->damaged;
	result->lost = warm_up->lost;
	result->least = result->most = runs[0].sample.value;
	for (uint32_t i = 0; i < count; i++) {
		result->run[i] = runs[i].sample.value;
		result->core_speed[i] = runs[i].core_speed;
		result->least = fmin(result->least, result->run[i]);
		result->most = fmax(result->most, result->run[i]);
		result->damaged += runs[i].sample.damaged;
		result->lost += runs[i].sample.lost;
	}
	result->median = sample->value;
	result->limit = sample->limit > 0 ? sample->limit : limit_of(bench, stage, &result->point);
	if (result->limit > 0 && result->median > 0)
		result->of_limit = stage->about.less_is_better ? result->limit / result->median
							       : result->median / result->limit;
	result->mpps = sample->mpps;
	result->gbps = sample->gbps;
	result->seconds = sample->seconds;
	result->frames = sample->frames;
	result->validated = sample->validated;
	result->sequence_checked = sample->sequence_checked;
	result->p50_ns = median->p50_ns;
	result->p99_ns = median->p99_ns;
	result->p999_ns = median->p999_ns;
	result->max_ns = median->max_ns;
	result->samples = sample->latency_count;
	snprintf(result->note, sizeof(result->note), "%s", sample->note);
}

void bench_result_fail(struct gdrcap_bench_result *result, const char *why)
{
	const struct gdrcap_bench_point point = result->point;

	*result = (struct gdrcap_bench_result){ .point = point };
	snprintf(result->error, sizeof(result->error), "%s", why);
}
