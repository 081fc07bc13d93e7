/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast cores are just now, all of them at once: simple operations a nanosecond. A core whose
 * other hyperthread is busy, be it with a thread of another virtual machine, or one that was
 * throttled, does half of what it did before, and no figure of a run tells that.
 */
#include "bench/bench_util.h"

#define SLICES 4u /* the best counts: others may have had the core in one */
#define SLICE_NS UINT64_C(400000)
#define ROUNDS 500u /* between two looks at the clock */
#define CHAINS 8u   /* that wait for nothing of each other, more than any core has units */
#define STEP_OPERATIONS 3u

struct speeds {
	double best[BENCH_CPUS_MAX]; /* of each core; written by it */
};

/* One chain's; neither vectors nor what a compiler finds out beforehand take its place. */
#define STEP(x)                                                                                    \
	do {                                                                                       \
		(x) ^= (x) >> 7;                                                                   \
		(x) += UINT64_C(0x9e3779b9);                                                       \
		__asm__ volatile("" : "+r"(x));                                                    \
	} while (0)

static void chains_run(uint64_t x[CHAINS])
{
	uint64_t a = x[0], b = x[1], c = x[2], d = x[3], e = x[4], f = x[5], g = x[6], h = x[7];

	for (uint32_t i = 0; i < ROUNDS; i++) {
		STEP(a);
		STEP(b);
		STEP(c);
		STEP(d);
		STEP(e);
		STEP(f);
		STEP(g);
		STEP(h);
	}
	x[0] = a, x[1] = b, x[2] = c, x[3] = d, x[4] = e, x[5] = f, x[6] = g, x[7] = h;
}

static void core_run(void *arg, uint32_t index)
{
	struct speeds *speeds = arg;
	uint64_t x[CHAINS] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	double best = 0;

	for (uint32_t slice = 0; slice < SLICES; slice++) {
		const uint64_t began = bench_now_ns();
		uint64_t rounds = 0, now;
		double speed;

		do {
			chains_run(x);
			rounds += ROUNDS;
			now = bench_now_ns();
		} while (now - began < SLICE_NS);
		speed = (double)(rounds * CHAINS * STEP_OPERATIONS) / (double)(now - began);
		best = speed > best ? speed : best;
	}
	speeds->best[index] = best;
}

double bench_core_speed(const struct bench *bench, uint32_t cores)
{
	const uint32_t count = cores < bench->cpu_count ? cores : bench->cpu_count;
	struct gdrcap_error error;
	struct speeds speeds;
	double least = 0;

	if (count == 0 || bench_on_cores(bench, count, core_run, &speeds, NULL, &error) < 0)
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (i == 0 || speeds.best[i] < least)
			least = speeds.best[i];
	return least;
}
