/* SPDX-License-Identifier: BSD-3-Clause */
/* What the latency's stage and its limit, the empty round trip, have in common. */
#ifndef GDRCAP_BENCH_LATENCY_H
#define GDRCAP_BENCH_LATENCY_H

#include "bench/bench.h"

#define LATENCY_FRAME_BYTES 64u
#define LATENCY_BURST 16u
#define LATENCY_BLOCKS 16u /* of a GPU; its twin has one thread */
#define LATENCY_LOAD_PERCENT 10u

#define LATENCY_SAMPLES_LEAST 20000u /* a run, if it need not be longer than ... */
#define LATENCY_TIMES_MOST 10u	     /* ... so many times what it should be */
#define LATENCY_SAMPLES_MOST (1u << 20)

/* ns from burst to burst at LATENCY_LOAD_PERCENT of the rate that a consumer of so many blocks
 * moves with such bursts, measured now; *mpps: that load. */
int latency_load(const struct bench *bench, uint32_t blocks, uint64_t *spacing_ns, double *mpps,
		 struct gdrcap_error *error);

/* Takes over the samples of a run, in any order: sorts them, and makes of the median the value. */
void latency_sample(double *ns, uint64_t count, struct bench_sample *sample);

/* True when a run has begun long enough ago and has enough samples, or no room or time for more. */
static inline bool latency_is_over(uint64_t samples, uint64_t elapsed_ns, uint32_t run_ms)
{
	const uint64_t run_ns = (uint64_t)run_ms * 1000000u;

	return samples >= LATENCY_SAMPLES_MOST || elapsed_ns >= LATENCY_TIMES_MOST * run_ns ||
	       (samples >= LATENCY_SAMPLES_LEAST && elapsed_ns >= run_ns);
}

#endif
