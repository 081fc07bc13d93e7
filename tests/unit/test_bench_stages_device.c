/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bench's stages on resident frames, with the host's twin: everything that is counted was
 * validated, and what is not right is found.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "bench/placing.h"

#define RUN_MS 5u
#define TRIES 40
#define BURST 64u

static struct gdrcap_bench_config config = { 0 };
static struct bench bench = { .config = &config };

static int set_up(void **state)
{
	cpu_set_t cpus;

	(void)state;
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE && bench.cpu_count < BENCH_CPUS_MAX; cpu++)
		if (CPU_ISSET(cpu, &cpus))
			bench.cpus[bench.cpu_count++] = cpu;
	bench.machine.cache_bytes = 256 << 10; /* so that regions are small */
	bench.machine.memory_bytes = UINT64_C(8) << 30;
	bench.ops = &kernel_host_ops;
	return bench.ops->open(0, &bench.device);
}

static int tear_down(void **state)
{
	(void)state;
	bench.ops->close(bench.device);
	return 0;
}

/* One warm-up and one run of a point. Latencies stay in *opened until its stage closes it. */
static void stage_run(const struct bench_stage *stage, const struct gdrcap_bench_point *point,
		      void **opened, struct bench_sample *sample)
{
	struct gdrcap_error error = { .text = "" };

	if (bench_stage_open(stage, &bench, point, opened, &error) < 0)
		fail_msg("open: %s", error.text);
	/* on a busy machine a thread may get no CPU for as long as a run is */
	for (int i = 0; i < 2 || (sample->value <= 0 && i < TRIES); i++) {
		*sample = (struct bench_sample){ 0 };
		if (stage->run(*opened, RUN_MS, sample, &error) < 0)
			fail_msg("run: %s", error.text);
	}
	assert_true(sample->value > 0);
	assert_true(sample->seconds > 0);
	assert_true(sample->frames > 0);
	assert_int_equal(sample->damaged, 0);
	assert_int_equal(sample->lost, 0);
}

static struct gdrcap_bench_point point_of(uint32_t frame_bytes, uint32_t rings, const char *pattern,
					  const char *memory, const char *source)
{
	struct gdrcap_bench_point point = {
		.frame_bytes = frame_bytes,
		.burst = BURST,
		.blocks = 1,
		.queues = rings,
	};

	snprintf(point.pattern, sizeof(point.pattern), "%s", pattern);
	snprintf(point.memory, sizeof(point.memory), "%s", memory);
	snprintf(point.source, sizeof(point.source), "%s", source);
	return point;
}

static void test_consumer_validates_all(void **state)
{
	static const char *const patterns[] = { "prbs31", "counter16be", "random" };
	static const uint32_t sizes[] = { 64, 128, 1500, 9000 };

	(void)state;
	for (size_t p = 0; p < 3; p++) {
		for (size_t s = 0; s < 4; s++) {
			const struct gdrcap_bench_point point =
				point_of(sizes[s], 1, patterns[p], "host", "resident");
			struct bench_sample sample;
			void *opened;

			stage_run(&bench_consumer, &point, &opened, &sample);
			assert_int_equal(sample.validated, sample.frames);
			assert_int_equal(sample.frames % BURST, 0);
			assert_true(sample.sequence_checked);
			assert_true(sample.gbps > 0 && sample.gbps == sample.value);
			bench_stage_close(&bench_consumer, opened);
		}
	}
}

/* Several rings, and first pieces elsewhere. */
static void test_consumer_rings_and_split(void **state)
{
	static const char *const memories[] = { "host", "host-split" };
	static const uint32_t sizes[] = { 64, 1500 };

	(void)state;
	for (size_t m = 0; m < 2; m++) {
		for (size_t s = 0; s < 2; s++) {
			const struct gdrcap_bench_point point =
				point_of(sizes[s], 4, "prbs31", memories[m], "resident");
			struct bench_sample sample;
			void *opened;

			stage_run(&bench_consumer, &point, &opened, &sample);
			assert_int_equal(sample.validated, sample.frames);
			bench_stage_close(&bench_consumer, opened);
		}
	}
}

static void test_consumer_refuses(void **state)
{
	struct gdrcap_bench_point point = point_of(1500, 1, "prbs32", "host", "resident");
	struct gdrcap_error error;
	void *opened;

	(void)state;
	assert_true(bench_stage_open(&bench_consumer, &bench, &point, &opened, &error) < 0);
	assert_non_null(strstr(error.text, "prbs32"));
	point = point_of(63, 1, "prbs31", "host", "resident");
	assert_true(bench_stage_open(&bench_consumer, &bench, &point, &opened, &error) < 0);
	point = point_of(64, 1, "prbs31", "device", "resident");
	assert_true(bench_stage_open(&bench_consumer, &bench, &point, &opened, &error) < 0);
	assert_non_null(strstr(error.text, "device"));
}

/* ---- what is wrong is found ---- */

static struct resident *resident_make(const char *memory, uint32_t burst)
{
	const struct resident_config asked = {
		.frame_bytes = 512,
		.burst = burst,
		.rings = 1,
		.pattern = "prbs31",
		.memory = memory,
	};
	struct gdrcap_error error = { .text = "" };
	struct resident *resident;

	if (resident_create(&bench, &asked, &resident, &error) < 0 ||
	    resident_fill(resident, &error) < 0)
		fail_msg("%s", error.text);
	return resident;
}

/* So many times round all slots. */
static struct resident_counts laps_check(struct resident *resident, uint32_t laps)
{
	struct resident_counts counts = { 0 };
	struct gdrcap_error error = { .text = "" };

	if (resident_start(resident, KERNEL_CHECK, 1, &error) < 0 ||
	    resident_play(resident, 0, (uint64_t)laps * resident->ring[0].slots / resident->burst,
			  &counts, &error) < 0 ||
	    resident_stop(resident, &error) < 0)
		fail_msg("%s", error.text);
	assert_int_equal(counts.frames, (uint64_t)laps * resident->ring[0].slots);
	assert_int_equal(counts.lost, 0);
	return counts;
}

static uint8_t *slot_of(struct resident *resident, uint32_t slot)
{
	return resident->frames + ((size_t)slot << resident->slot_shift);
}

static void test_damaged_frame_is_counted(void **state)
{
	struct resident *resident = resident_make("host", BURST);
	struct resident_counts counts = laps_check(resident, 2);

	(void)state;
	assert_true(resident->ring[0].slots > 2 * BURST);
	assert_int_equal(counts.validated, counts.frames);
	assert_int_equal(counts.damaged, 0);
	/* the last payload bit of one frame */
	slot_of(resident, BURST + 5)[512 - FRAME_FCS_BYTES - 1] ^= 1;
	counts = laps_check(resident, 2);
	assert_int_equal(counts.damaged, 2);
	assert_int_equal(counts.validated, counts.frames - 2 * BURST);
	/* and a header */
	slot_of(resident, 2 * BURST)[20] ^= 0x80;
	counts = laps_check(resident, 1);
	assert_int_equal(counts.damaged, 2);
	assert_int_equal(counts.validated, counts.frames - 2 * BURST);
	resident_destroy(resident);
}

/* One run a burst, whatever is wrong with it. */
static void test_damaged_frame_alone(void **state)
{
	struct resident *resident = resident_make("host", 1);
	struct resident_counts counts;

	(void)state;
	slot_of(resident, 5)[512 - FRAME_FCS_BYTES - 1] ^= 1;
	counts = laps_check(resident, 1);
	assert_int_equal(counts.damaged, 1);
	assert_int_equal(counts.validated, counts.frames - 1);
	resident_destroy(resident);
}

/* Valid frames that are not where they belong are not validated. */
static void test_frames_in_wrong_slots(void **state)
{
	struct resident *resident = resident_make("host", BURST);
	const size_t bytes = (size_t)BURST << resident->slot_shift;
	struct resident_counts counts;

	(void)state;
	memcpy(slot_of(resident, 0), slot_of(resident, 1), 512);
	counts = laps_check(resident, 1);
	assert_int_equal(counts.damaged, 0);
	assert_int_equal(counts.validated, counts.frames - BURST);
	/* a whole burst of valid frames in order, from elsewhere */
	memcpy(slot_of(resident, 0), slot_of(resident, BURST), bytes);
	counts = laps_check(resident, 1);
	assert_int_equal(counts.damaged, 0);
	assert_int_equal(counts.validated, counts.frames - BURST);
	resident_destroy(resident);
}

/* The first piece is read where the split says. */
static void test_split_reads_heads(void **state)
{
	struct resident *resident = resident_make("host-split", BURST);
	struct resident_counts counts;

	(void)state;
	memset(slot_of(resident, 3), 0, RESIDENT_SPLIT);
	counts = laps_check(resident, 1);
	assert_int_equal(counts.validated, counts.frames);
	resident->heads[(3u << RESIDENT_HEAD_SHIFT) + RESIDENT_SPLIT - 1] ^= 1;
	counts = laps_check(resident, 1);
	assert_int_equal(counts.damaged, 1);
	resident_destroy(resident);
}

/* ---- sender and latency ---- */

static void test_sender_writer(void **state)
{
	static const uint32_t sizes[] = { 64, 1500 };

	(void)state;
	for (size_t s = 0; s < 2; s++) {
		const struct gdrcap_bench_point point =
			point_of(sizes[s], 1, "prbs31", "host", "resident");
		struct bench_sample sample;
		void *opened;

		stage_run(&bench_sender, &point, &opened, &sample);
		assert_true(sample.validated > 0 && sample.validated <= sample.frames);
		assert_true(sample.value == sample.mpps);
		bench_stage_close(&bench_sender, opened);
	}
}

static void test_sender_tx_worker(void **state)
{
	static const uint32_t sizes[] = { 64, 1500 };

	(void)state;
	for (size_t s = 0; s < 2; s++) {
		const struct gdrcap_bench_point point =
			point_of(sizes[s], 1, "prbs31", "host", "null");
		struct bench_sample sample;
		void *opened;

		stage_run(&bench_sender, &point, &opened, &sample);
		assert_true(sample.validated > 0);
		assert_true(sample.value == sample.mpps);
		bench_stage_close(&bench_sender, opened);
	}
}

static void test_latency(void **state)
{
	struct gdrcap_bench_point point = point_of(64, 1, "prbs31", "host", "resident");
	struct bench_sample sample;
	void *opened;

	(void)state;
	point.burst = 16;
	stage_run(&bench_latency, &point, &opened, &sample);
	assert_true(sample.latency_count > 0);
	assert_int_equal(sample.validated, sample.frames);
	assert_int_equal(sample.frames, 16 * sample.latency_count);
	for (uint64_t i = 1; i < sample.latency_count; i++)
		assert_true(sample.latencies[i - 1] <= sample.latencies[i]);
	assert_true(sample.latencies[0] > 0);
	assert_true(sample.value == sample.latencies[(sample.latency_count - 1) / 2]);
	bench_stage_close(&bench_latency, opened);
}

/* ---- images ---- */

static void test_image_place(void **state)
{
	static const uint32_t sizes[] = { 118, 1092, 1418, 9018 };

	(void)state;
	for (size_t s = 0; s < 4; s++) {
		struct gdrcap_bench_point point = point_of(sizes[s], 1, "", "host", "threads");
		struct bench_sample sample;
		void *opened;

		point.burst = 256;
		stage_run(&bench_image_place, &point, &opened, &sample);
		assert_true(sample.value > 0 && sample.value < sample.gbps);
		assert_true(sample.limit > 0);
		bench_stage_close(&bench_image_place, opened);
	}
}

static void test_image_latency(void **state)
{
	static const struct bench_stage *const stages[] = { &bench_image_latency,
							    &bench_image_close };
	struct gdrcap_bench_point point = point_of(1418, 1, "", "host", "threads");

	(void)state;
	point.burst = 16;
	for (size_t s = 0; s < 2; s++) {
		struct bench_sample sample;
		void *opened;

		stage_run(stages[s], &point, &opened, &sample);
		assert_true(sample.latency_count > 0);
		assert_true(sample.latencies[0] > 0);
		/* each in its own run */
		assert_true(sample.latencies[sample.latency_count - 1] < sample.seconds * 1e9);
		bench_stage_close(stages[s], opened);
	}
}

/* What lies in an image otherwise than it was sent, and what could not be placed. */
static void test_image_damage_is_counted(void **state)
{
	const struct placing_config asked = {
		.frame_bytes = 1418,
		.payload = 50,
		.pieces = BURST,
		.burst = BURST,
		.blocks = 1,
		.under_way = 4,
		.bytes = 16 << 20,
	};
	struct gdrcap_error error = { .text = "" };
	struct resident_counts counts = { 0 };
	struct placing placing = { 0 };
	uint64_t damaged;
	uint8_t *frame;

	(void)state;
	if (placing_create(&placing, &bench, &asked, &error) < 0 ||
	    placing_fill(&placing, &error) < 0 || placing_start(&placing, 1, &error) < 0)
		fail_msg("%s", error.text);
	for (uint32_t lap = 0; lap < 3; lap++) {
		const uint32_t bursts = placing.resident->ring[0].slots / BURST;

		/* a payload byte of each image, then a piece that the image does not have */
		for (uint32_t n = 0; n < bursts && lap; n++) {
			frame = slot_of(placing.resident, n * BURST + 7) + PLACING_FRAME_AT;
			frame[lap == 1 ? 1413 : 22] ^= 1;
		}
		if (resident_play(placing.resident, 0, bursts, &counts, &error) < 0 ||
		    placing_compare(&placing, &damaged, &error) < 0)
			fail_msg("%s", error.text);
		assert_int_equal(damaged > 0, lap == 1);
		assert_int_equal(counts.lost > 0, lap == 2);
		assert_int_equal(placing.wrong > 0, lap == 2);
	}
	placing_close(&placing);
}

/* ---- points ---- */

static uint32_t points_of(const struct bench_stage *stage, uint32_t quick)
{
	static struct gdrcap_bench_point points[BENCH_POINTS_MAX];
	uint32_t count;

	memset(points, 0, sizeof(points));
	config.quick = quick;
	count = stage->points(&bench, points);
	config.quick = 0;
	assert_in_range(count, 1, BENCH_POINTS_MAX);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(points[i].blocks > 0 || stage == &bench_image_path);
		assert_int_equal(points[i].pattern[sizeof(points[i].pattern) - 1], 0);
		assert_null(strstr(points[i].memory, "pinned"));
	}
	return count;
}

static void test_points(void **state)
{
	static const struct bench_stage *const stages[] = {
		&bench_consumer,      &bench_sender,	  &bench_latency,   &bench_image_place,
		&bench_image_latency, &bench_image_close, &bench_image_path
	};
	const uint32_t cpus = bench.cpu_count;

	(void)state;
	for (bench.cpu_count = 1; bench.cpu_count <= 64; bench.cpu_count *= 4)
		for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++)
			assert_true(points_of(stages[i], 1) <= points_of(stages[i], 0));
	bench.cpu_count = cpus;
}

/* Without a GPU their results say so. */
static void test_stages_that_need_cuda(void **state)
{
	(void)state;
	assert_true(bench_copy.needs_cuda && bench_zero_copy.needs_cuda &&
		    bench_round_trip.needs_cuda && bench_idle_cost.needs_cuda &&
		    bench_idle_reads.needs_cuda);
	assert_false(bench_consumer.needs_cuda || bench_sender.needs_cuda ||
		     bench_latency.needs_cuda);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_consumer_validates_all),
		cmocka_unit_test(test_consumer_rings_and_split),
		cmocka_unit_test(test_consumer_refuses),
		cmocka_unit_test(test_damaged_frame_is_counted),
		cmocka_unit_test(test_damaged_frame_alone),
		cmocka_unit_test(test_frames_in_wrong_slots),
		cmocka_unit_test(test_split_reads_heads),
		cmocka_unit_test(test_sender_writer),
		cmocka_unit_test(test_sender_tx_worker),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_image_place),
		cmocka_unit_test(test_image_latency),
		cmocka_unit_test(test_image_damage_is_counted),
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_stages_that_need_cuda),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
