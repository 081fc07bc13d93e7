/* SPDX-License-Identifier: BSD-3-Clause */
/* From a point's runs to its result. */
#ifndef GDRCAP_BENCH_RESULT_H
#define GDRCAP_BENCH_RESULT_H

#include "bench/bench.h"

/* What is kept of a run: its latencies are the stage's, until the next. */
struct bench_run {
	struct bench_sample sample;
	double core_speed; /* mean of before and after it; 0: not known */
	double p50_ns, p99_ns, p999_ns, max_ns;
};

/* 0, or -ERANGE for a value that is no number. */
int bench_run_take(struct bench_run *run, const struct bench_sample *sample, double core_speed,
		   struct gdrcap_error *error);
/* Fills all but result->point. `count` is at least 1. Of the warm-up only what went wrong counts.
 */
void bench_result_make(const struct bench *bench, const struct bench_stage *stage,
		       const struct bench_run *runs, uint32_t count,
		       const struct bench_sample *warm_up, struct gdrcap_bench_result *result);
/* A point that was not measured, and why. */
void bench_result_fail(struct gdrcap_bench_result *result, const char *why);

bool bench_point_equal(const struct gdrcap_bench_point *a, const struct gdrcap_bench_point *b);
/* NULL: there is none of that id. */
const struct bench_stage *bench_stage_find(const char *id);

#endif
