/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of gdrcap_bench.h: the runner asks each stage for its points and runs them one after
 * the other. A stage is one row in bench_stages.c and one file here; it prints nothing.
 */
#ifndef GDRCAP_BENCH_INTERNAL_H
#define GDRCAP_BENCH_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/measure.h"
#include "kernels/kernels.h"

#define BENCH_CPUS_MAX 256
#define BENCH_POINTS_MAX 512 /* of one stage */
#define BENCH_LIMITS_MORE 3

struct bench {
	const struct gdrcap_bench_config *config;
	struct gdrcap_bench_machine machine;
	bool cuda;   /* the GPU is one of CUDA's, not the host's twin */
	int ordinal; /* of the CUDA device */
	const struct kernel_ops *ops;
	struct kernel_device *device; /* open as long as the bench runs */
	int cpus[BENCH_CPUS_MAX];
	uint32_t cpu_count;
	uint32_t run_ms;
	/* Results so far: limits come first. */
	struct gdrcap_bench_result *results;
	size_t result_count;
};

/* One run. */
struct bench_sample {
	double value; /* in the stage's unit */
	double limit; /* in the same; 0: the median of the stage that the row names, if its unit is
		       * the same */
	double mpps, gbps, seconds;
	uint64_t frames, validated, damaged, lost;
	bool sequence_checked;
	/* Latencies of this run, ns, ascending; the runner merges nothing: percentiles are of the
	 * median run. Owned by the stage, until its next run or close. */
	const double *latencies;
	uint64_t latency_count;
	char note[128];
};

struct bench_stage {
	struct gdrcap_bench_stage about;
	/* Measured along with it, besides about.limit: the stage takes its limits from them. NULL:
	 * no more. */
	const char *more_limits[BENCH_LIMITS_MORE];
	bool needs_cuda; /* left out, with a result that says so, where there is none */
	/* Cores that a run keeps busy; NULL: one a queue, and none without queues. */
	uint32_t (*cores)(const struct bench *bench, const struct gdrcap_bench_point *point);
	/* Fills up to BENCH_POINTS_MAX points that make sense on this machine (fewer with
	 * config->quick) and returns their number; .stage is filled by the runner. */
	uint32_t (*points)(const struct bench *bench, struct gdrcap_bench_point *points);
	size_t state_bytes; /* of the state for the runs of a point, which comes zeroed */
	/* 0, or a negative errno with cause and remedy. */
	int (*open)(const struct bench *bench, const struct gdrcap_bench_point *point, void *state,
		    struct gdrcap_error *error);
	/* About run_ms long. Called once more before the first that counts, as a warm-up. */
	int (*run)(void *state, uint32_t run_ms, struct bench_sample *sample,
		   struct gdrcap_error *error);
	void (*close)(void *state); /* also after an open() that failed half-way */
};

/* With a state, which bench_stage_close() frees. */
int bench_stage_open(const struct bench_stage *stage, const struct bench *bench,
		     const struct gdrcap_bench_point *point, void **state,
		     struct gdrcap_error *error);
void bench_stage_close(const struct bench_stage *stage, void *state);

/* Each in the file of its name. */
extern const struct bench_stage bench_memory_read; /* limit_memory.c: host memory, one core */
/* limit_cuda.c: */
extern const struct bench_stage bench_gpu_memory, bench_copy, bench_zero_copy, bench_round_trip;
extern const struct bench_stage bench_mempool, bench_ring;	 /* stage_ring.c */
extern const struct bench_stage bench_rx_burst, bench_rx_worker; /* stage_rx.c */
extern const struct bench_stage bench_front;	   /* stage_front.c: an own queue's, by a CPU */
extern const struct bench_stage bench_consumer;	   /* stage_consumer.c: frames resident */
extern const struct bench_stage bench_latency;	   /* stage_latency.c */
extern const struct bench_stage bench_sender;	   /* stage_sender.c */
extern const struct bench_stage bench_send;	   /* stage_send.c: the caller's frames */
extern const struct bench_stage bench_path;	   /* stage_path.c: whole, through sessions */
extern const struct bench_stage bench_image_place; /* stage_image_place.c: placing alone */
extern const struct bench_stage bench_image_path;  /* stage_image_path.c: beside bench_path */
/* stage_image_latency.c: */
extern const struct bench_stage bench_image_latency, bench_image_close;
extern const struct bench_stage
	bench_gpu_front; /* stage_gpu_front.c: built with CUDA only, as the next */
extern const struct bench_stage bench_front_latency;		   /* stage_front_latency.c */
extern const struct bench_stage bench_idle_cost, bench_idle_reads; /* stage_idle.c */

/* The rows, in the order of measuring. */
extern const struct bench_stage *const bench_stages[];
extern const size_t bench_stage_count;

/* Median of a limit measured before with this stage and, where given (not NULL), memory and
 * pattern; of several points the best. 0: not measured. */
double bench_limit(const struct bench *bench, const char *stage, const char *memory);

/* Simple operations a nanosecond that the slowest of the bench's first `cores` CPUs does now, with
 * all of them at work, at most as many as there are: the best of some slices, 2 ms in all. 0: not
 * known. */
double bench_core_speed(const struct bench *bench, uint32_t cores);
/* ns of the monotonic clock. */
uint64_t bench_now_ns(void);
/* Pins the calling thread to bench->cpus[index % cpu_count]; returns the CPU. */
int bench_pin(const struct bench *bench, uint32_t index);

#endif
