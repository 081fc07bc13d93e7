/* SPDX-License-Identifier: BSD-3-Clause */
/* What several stages of the CPU share: threads on cores of their own, and a receive port that
 * always has frames, without anybody else on it. */
#ifndef GDRCAP_BENCH_UTIL_H
#define GDRCAP_BENCH_UTIL_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/bench.h"

struct gdrcap_session;
struct rte_mempool;
struct rx_worker;

/* How often a loop that is measured looks at the clock: every so many bursts, a power of two. */
#define BENCH_LOOK 64u

/* Runs body(arg, 0..count-1), each in a thread that DPDK knows, on CPU `index` of the bench's, and
 * all begun at once. Returns when all have ended. *away, if not NULL: what part of the time others
 * had the core that suffered most of it, which a figure should not hide. */
int bench_on_cores(const struct bench *bench, uint32_t count,
		   void (*body)(void *arg, uint32_t index), void *arg, double *away,
		   struct gdrcap_error *error);
/* A loop on one core or two that is timed: the beginning of a stage's state. */
struct bench_loop {
	const struct bench *bench;
	uint64_t run_cycles;	 /* asked for */
	uint64_t cycles, frames; /* of the last run; the loop's to set */
};
/* Runs body(state, core) on so many cores for run_ms, and fills value, mpps,
 * seconds, frames and note of a stage whose unit is ns a frame and that reads none. */
int bench_loop_run(struct bench_loop *loop, uint32_t cores,
		   void (*body)(void *state, uint32_t index), uint32_t run_ms,
		   struct bench_sample *sample, struct gdrcap_error *error);

/* Adds to the sample's note that it was so, if it matters. */
void bench_note_away(struct bench_sample *sample, double away);

/* Points of all combinations, the first list changing least often; 0 ends a list, NULL is 0, texts
 * too may be NULL. */
struct bench_grid {
	const uint32_t *queues, *frame_bytes, *bursts, *blocks;
	const char *pattern, *memory, *source;
	bool needs_cuda; /* left out where there is none */
	bool always;	 /* also where they do not fit: the result says why */
};
#define BENCH_LIST(...) ((const uint32_t[]){ __VA_ARGS__, 0 })
struct bench_points {
	const struct bench *bench;
	struct gdrcap_bench_point *points; /* room for BENCH_POINTS_MAX */
	uint32_t count;
	/* Which of them this machine can have; NULL: all. */
	bool (*fits)(const struct bench *bench, const struct gdrcap_bench_point *point);
};
/* The runner drops what is there already. */
void bench_points_add(struct bench_points *to, const struct bench_grid *grids, size_t count);
/* Of stages that go by bursts: of both sources, in frames of 64 bytes. Returns their number. */
uint32_t bench_burst_points(const struct bench *bench, const char *source, const char *second,
			    struct gdrcap_bench_point *points);
/* Gb/s that so many cores read from memory: as one does, each, up to what all do. 0: not measured.
 */
double bench_memory_limit(const struct bench *bench, uint32_t cores);
/* A number in a file of the kernel's, or `otherwise`: no such file, or "max". */
uint64_t bench_file_number(const char *path, uint64_t otherwise);
/* Bytes that this machine, and this container, could give now. */
uint64_t bench_memory_available(void);
/* Median of `stage` with the burst and the source of `point`, or 0. */
double bench_limit_alike(const struct bench *bench, const char *stage,
			 const struct gdrcap_bench_point *point);

/* A session's receive port, pool and rx worker, of which nothing runs. */
struct bench_rx {
	struct gdrcap_session *session;
	struct rx_worker *worker;
	struct rte_mempool *pool;
	uint16_t port, sender;
	bool wire; /* frames come when bench_rx_feed() sends them; else always (net_null) */
};

/* point->source: "ring" or "null". */
int bench_rx_open(struct bench_rx *rx, const struct gdrcap_bench_point *point,
		  struct gdrcap_error *error);
void bench_rx_close(struct bench_rx *rx);
/* Sends n frames on the wire, so that the port has them. No payload is written. */
void bench_rx_feed(const struct bench_rx *rx, uint16_t n);

/* Sets an option of a session to what the format makes, unless something was wrong `before`. 0 or a
 * negative errno: the next call's `before`. */
int bench_set(struct gdrcap_config *config, int before, struct gdrcap_error *error, const char *key,
	      const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
