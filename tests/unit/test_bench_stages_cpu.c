/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bench's stages of the CPU, each for some milliseconds at every point that it has here:
 * figures are figures, frames are counted and none is missing, points are distinct, what was
 * measured of the limit is found again, and memory is read that no cache can hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "bench/bench.h"
#include "base/eal.h"

#define RUN_MS 5u
#define CACHE_BYTES (UINT64_C(3) << 20) /* as the test says: a small one is quickly read */

static struct {
	struct gdrcap_bench_config config;
	struct bench bench;
	struct gdrcap_bench_point points[BENCH_POINTS_MAX];
	cpu_set_t cpus; /* of this thread */
} scene;

static int open_all(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)512 << 20 };
	int count;

	count = eal_cpus(NULL, 0, -1, scene.bench.cpus, BENCH_CPUS_MAX, NULL);
	if (count < 1 || eal_start(&needs, NULL) < 0)
		return -1;
	scene.bench.config = &scene.config;
	scene.bench.cpu_count = (uint32_t)count;
	scene.bench.machine.cpus = (uint32_t)count;
	scene.bench.machine.cache_bytes = CACHE_BYTES;
	return pthread_getaffinity_np(pthread_self(), sizeof(scene.cpus), &scene.cpus);
}

static uint32_t points_of(const struct bench_stage *stage)
{
	uint32_t count;

	memset(scene.points, 0, sizeof(scene.points));
	count = stage->points(&scene.bench, scene.points);
	assert_in_range(count, 1, BENCH_POINTS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		assert_string_equal(scene.points[i].stage, "");
		for (uint32_t k = 0; k < i; k++)
			assert_memory_not_equal(&scene.points[i], &scene.points[k],
						sizeof(scene.points[i]));
		snprintf(scene.points[i].stage, sizeof(scene.points[i].stage), "%s",
			 stage->about.id);
	}
	return count;
}

static void measure(const struct bench_stage *stage, const struct gdrcap_bench_point *point,
		    uint32_t run_ms, struct bench_sample *sample)
{
	struct gdrcap_error error = { 0 };
	void *state = NULL;
	int ret = bench_stage_open(stage, &scene.bench, point, &state, &error);

	if (ret < 0)
		fail_msg("%s", error.text);
	/* The same state, more than once. */
	for (int i = 0; i < 3; i++) {
		memset(sample, 0, sizeof(*sample));
		ret = stage->run(state, run_ms, sample, &error);
		if (ret < 0)
			fail_msg("%s", error.text);
		assert_true(isfinite(sample->value) && sample->value > 0);
		assert_true(isfinite(sample->seconds) && sample->seconds > 0);
		assert_true(isfinite(sample->limit) && sample->limit >= 0);
		assert_true(sample->lost == 0 && sample->damaged == 0);
		assert_true(memchr(sample->note, 0, sizeof(sample->note)) != NULL);
	}
	bench_stage_close(stage, state);
}

static void pool_is_left(struct rte_mempool *pool, void *context)
{
	fail_msg("pool %s is left", pool->name);
}

/* All of it is given back: EAL's own list of ports and pools has none of ours. */
static void assert_nothing_left(void)
{
	cpu_set_t cpus;
	uint16_t port;

	RTE_ETH_FOREACH_DEV(port)
	{
		char name[RTE_ETH_NAME_MAX_LEN] = "";

		rte_eth_dev_get_name_by_port(port, name);
		fail_msg("port %s is left", name);
	}
	rte_mempool_walk(pool_is_left, NULL);
	assert_int_equal(pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus), 0);
	assert_true(CPU_EQUAL(&cpus, &scene.cpus));
}

/* A stage whose unit is ns a frame. */
static void frames_stage(const struct bench_stage *stage)
{
	const uint32_t count = points_of(stage);
	struct bench_sample sample;

	assert_string_equal(stage->about.unit, "ns/frame");
	assert_true(stage->about.less_is_better);
	for (uint32_t i = 0; i < count; i++) {
		measure(stage, &scene.points[i], RUN_MS, &sample);
		assert_true(sample.frames >= scene.points[i].burst);
		assert_int_equal(sample.frames % scene.points[i].burst, 0);
		assert_true(fabs(sample.value - sample.seconds * 1e9 / (double)sample.frames) <
			    1e-6 * sample.value);
		assert_true(fabs(sample.mpps * sample.value - 1e3) < 1e-3);
		assert_true(sample.gbps == 0);
		/* It ends: soon after its time, but for a machine that is busy with other things. */
		assert_true(sample.seconds < 60);
	}
	assert_nothing_left();
}

static void rx_burst(void **state)
{
	frames_stage(&bench_rx_burst);
}

static void mempool(void **state)
{
	frames_stage(&bench_mempool);
}

static void ring(void **state)
{
	frames_stage(&bench_ring);
}

static void rx_worker(void **state)
{
	frames_stage(&bench_rx_worker);
	assert_string_equal(bench_rx_worker.about.limit, bench_rx_burst.about.id);
}

/* Bursts are as long as the card was fast. */
static void front(void **state)
{
	const uint32_t count = points_of(&bench_front);
	struct bench_sample sample;

	for (uint32_t i = 0; i < count; i++) {
		const struct gdrcap_bench_point *point = &scene.points[i];

		assert_in_range(bench_front.cores(&scene.bench, point), 1, scene.bench.cpu_count);
		measure(&bench_front, point, RUN_MS, &sample);
		assert_true(sample.frames > 0);
		assert_true(fabs(sample.mpps * sample.value - 1e3) < 1e-3);
		assert_int_equal(strstr(sample.note, "frames a burst") != NULL, point->blocks != 0);
	}
	assert_nothing_left();
}

/* The limit is that of the same burst and source. */
static void limit_is_alike(void **state)
{
	static struct gdrcap_bench_result results[BENCH_POINTS_MAX];
	const uint32_t count = points_of(&bench_rx_burst);
	struct bench_sample sample;
	uint32_t worker;

	for (uint32_t i = 0; i < count; i++) {
		results[i].point = scene.points[i];
		results[i].median = 100 + i;
	}
	snprintf(results[count - 1].error, sizeof(results[0].error), "not measured");
	scene.bench.results = results;
	scene.bench.result_count = count;
	worker = points_of(&bench_rx_worker);
	for (uint32_t i = 0; i < worker; i++) {
		const struct gdrcap_bench_point *point = &scene.points[i];
		double limit = 0;

		for (uint32_t k = 0; k + 1 < count; k++)
			if (results[k].point.burst == point->burst &&
			    strcmp(results[k].point.source, point->source) == 0)
				limit = results[k].median;
		measure(&bench_rx_worker, point, 1, &sample);
		assert_true(sample.limit == limit);
	}
	scene.bench.results = NULL;
	scene.bench.result_count = 0;
}

static void quick_is_less(void **state)
{
	static const struct bench_stage *const stages[] = { &bench_rx_burst, &bench_mempool,
							    &bench_ring, &bench_rx_worker };

	for (size_t i = 0; i < RTE_DIM(stages); i++) {
		const uint32_t all = points_of(stages[i]);

		scene.config.quick = 1;
		assert_in_range(points_of(stages[i]), 1, all - 1);
		scene.config.quick = 0;
	}
}

/* One core has nobody who consumes on another. */
static void one_core(void **state)
{
	const uint32_t cpus = scene.bench.cpu_count;
	uint32_t count;

	scene.bench.cpu_count = 1;
	count = points_of(&bench_ring);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(scene.points[i].blocks, 0);
	assert_int_equal(points_of(&bench_memory_read), 1);
	scene.bench.cpu_count = cpus;
}

static uint64_t piece_mib(const struct bench_sample *sample)
{
	unsigned long long mib = 0;
	unsigned int bits = 0;

	assert_int_equal(sscanf(sample->note, "each core reads its own %llu MiB, %u bits a load",
				&mib, &bits),
			 2);
	assert_true(bits == 128 || bits == 256 || bits == 512);
	return mib;
}

/* The cores that share a cache read four times of it at least. */
static void memory_read(void **state)
{
	const uint32_t count = points_of(&bench_memory_read);
	const uint64_t set = 4 * CACHE_BYTES >> 20;
	struct bench_sample sample;

	assert_string_equal(bench_memory_read.about.unit, "Gb/s");
	for (uint32_t i = 0; i < count; i++) {
		measure(&bench_memory_read, &scene.points[i], RUN_MS, &sample);
		assert_true(sample.value == sample.gbps);
		assert_true(piece_mib(&sample) * scene.points[i].queues >= set);
		assert_true(sample.value < 1e5);
	}
	measure(&bench_memory_read, &scene.points[0], RUN_MS, &sample);
	assert_true(piece_mib(&sample) >= set);
	assert_nothing_left();
}

/* It says so, rather than reading a cache or taking the machine's last memory. */
static void memory_is_bounded(void **state)
{
	const uint64_t physical =
		(uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	struct gdrcap_error error = { 0 };
	void *unused = NULL;

	points_of(&bench_memory_read);
	scene.bench.machine.cache_bytes = physical / 4;
	assert_int_equal(bench_stage_open(&bench_memory_read, &scene.bench, &scene.points[0],
					  &unused, &error),
			 -ENOMEM);
	assert_non_null(strstr(error.text, "--cores"));
	assert_null(unused);
	scene.bench.machine.cache_bytes = CACHE_BYTES;
}

/* Of no cores nothing is known; of more than there are, those. The threads do not stay. */
static void core_speed(void **state)
{
	const uint32_t count = scene.bench.cpu_count;

	assert_true(bench_core_speed(&scene.bench, 0) == 0);
	assert_true(bench_core_speed(&scene.bench, 1) > 0);
	assert_true(bench_core_speed(&scene.bench, count + 1) > 0);
	scene.bench.cpu_count = 0;
	assert_true(bench_core_speed(&scene.bench, 1) == 0);
	scene.bench.cpu_count = count;
	assert_int_equal(rte_lcore_count(), 1);
}

/* Cores that a run keeps busy. */
static void cores_of_stages(void **state)
{
	const struct gdrcap_bench_point alone = { .queues = 1 }, two = { .queues = 1, .blocks = 1 };
	const struct gdrcap_bench_point many = { .queues = 4, .blocks = 2 };
	struct bench with_gpu = scene.bench;

	with_gpu.cuda = true;
	assert_int_equal(bench_ring.cores(&scene.bench, &alone), 1);
	assert_int_equal(bench_ring.cores(&scene.bench, &two), 2);
	/* One publishes; without a GPU others check. */
	assert_int_equal(bench_consumer.cores(&scene.bench, &many), 9);
	assert_int_equal(bench_consumer.cores(&with_gpu, &many), 1);
	assert_int_equal(bench_sender.cores(&with_gpu, &two), 1);
	/* The accountant too. */
	assert_int_equal(bench_path.cores(&with_gpu, &many), 4 + 4 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(core_speed),	 cmocka_unit_test(cores_of_stages),
		cmocka_unit_test(rx_burst),	 cmocka_unit_test(mempool),
		cmocka_unit_test(ring),		 cmocka_unit_test(rx_worker),
		cmocka_unit_test(front),	 cmocka_unit_test(limit_is_alike),
		cmocka_unit_test(quick_is_less), cmocka_unit_test(one_core),
		cmocka_unit_test(memory_read),	 cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, open_all, NULL);
}
