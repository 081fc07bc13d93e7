/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend: runs equal those of the reference, frames equal frame_write()'s, life and death.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "base/wake.h"
#include "big_memory.h"
#include "kernel_reference.h"
#include "kernel_scene_others.h"

#define ROUNDS 2 /* a scene of each pattern and layout, twice */

static struct kernel_device *device;
static struct scene_result results[SCENE_BURSTS], expected[SCENE_BURSTS];

static void *host_alloc(size_t bytes)
{
	void *memory = aligned_alloc(128, (bytes + 127) & ~(size_t)127);

	if (memory)
		memset(memory, 0, (bytes + 127) & ~(size_t)127);
	return memory;
}

static const struct scene_memory host_memory = { host_alloc, free };

/* Bursts in which all is well must be one run: else a slip in both checkers would go unseen. */
static void assert_whole_bursts_valid(const struct scene *scene, const struct scene_result *result)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		const struct scene_burst *burst = &scene->burst[b];
		bool whole = burst->count > 0;

		for (uint32_t i = 0; i < burst->count; i++)
			whole = whole && scene_frame(scene, burst->desc[i]) &&
				burst->desc[i].len <= FRAME_LEN_MAX &&
				burst->request.sequence + i &&
				burst->desc[i].len >= frame_payload_offset(&scene->layout);
		if (!whole || scene->layout.raw)
			continue;
		if (burst->request.end) {
			assert_int_equal(result[b].records, burst->count);
			assert_int_equal(result[b].record[0].verdict, FRAME_END);
			assert_int_equal(result[b].record[0].sequence, burst->request.sequence);
			continue;
		}
		assert_int_equal(result[b].records, 1);
		assert_int_equal(result[b].record[0].verdict, FRAME_VALID);
		assert_int_equal(result[b].record[0].count, burst->count);
		assert_int_equal(result[b].record[0].sequence, burst->request.sequence);
	}
}

/* Spoils the frames step by step; the CPU backend must say what the reference says. */
static void round_check(struct scene *scene, bool whole)
{
	for (uint32_t one_in = 0; one_in <= 32; one_in += 16) {
		if (one_in)
			scene_spoil(scene, one_in);
		reference_check(scene, scene, expected);
		if (!one_in && whole)
			assert_whole_bursts_valid(scene, expected);
		assert_int_equal(scene_play(scene, &kernel_host_ops, device, &host_memory,
					    scene->frames, KERNEL_CHECK, results),
				 0);
		if (!scene_same_runs(scene, expected, results))
			fail_msg("records differ: pattern %s", pattern_name(scene->pattern.kind));
	}
}

static void round_write(struct scene *scene)
{
	uint8_t *frames = malloc(SCENE_BYTES);

	assert_non_null(frames);
	assert_int_equal(scene_play(scene, &kernel_host_ops, device, &host_memory, scene->frames,
				    KERNEL_WRITE, results),
			 0);
	reference_write(scene, frames);
	if (!scene_same_frames(scene, frames, scene->frames))
		fail_msg("written frames differ: pattern %s", pattern_name(scene->pattern.kind));
	free(frames);
}

static struct scene *round_begin(uint64_t seed, enum pattern_kind kind, uint32_t shape)
{
	struct scene *scene = malloc(sizeof(*scene));

	printf("seed %#llx pattern %s layout %u\n", (unsigned long long)seed, pattern_name(kind),
	       shape);
	assert_non_null(scene);
	assert_int_equal(scene_make(scene, seed, kind, shape), 0);
	return scene;
}

static void round_end(struct scene *scene)
{
	scene_free(scene);
	free(scene);
}

static void round_play(uint64_t seed, enum pattern_kind kind, uint32_t shape)
{
	struct scene *scene = round_begin(seed, kind, shape);

	round_write(scene);
	round_check(scene, true);
	round_end(scene);
}

static void test_equals_reference(void **state)
{
	uint64_t seed = 0x6764726361700000u;

	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t kind = PATTERN_NONE; kind < PATTERN_KINDS; kind++)
			round_play(++seed, (enum pattern_kind)kind, (kind + round) % 4);
	round_play(++seed, PATTERN_COUNTER8, SCENE_RAW);
}

static uint32_t frames_of(const struct scene_result *result, enum frame_verdict verdict)
{
	uint32_t frames = 0;

	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		for (uint32_t r = 0; r < result[b].records; r++)
			frames += result[b].record[r].verdict == verdict ? result[b].record[r].count
									 : 0;
	return frames;
}

static void test_custom_equals_reference(void **state)
{
	uint64_t seed = 0x6764726361710000u;

	for (uint32_t kind = PATTERN_NONE; kind < PATTERN_KINDS; kind++) {
		for (uint32_t shape = SCENE_CUSTOM; shape < SCENE_SHAPES; shape++) {
			struct scene *scene;
			uint32_t filled;

			if (shape != SCENE_CUSTOM && !pattern_is_prbs(kind))
				continue;
			scene = round_begin(++seed, (enum pattern_kind)kind, shape);
			filled = scene_custom_fill(scene);
			reference_check(scene, scene, expected);
			assert_int_equal(frames_of(expected, FRAME_VALID), filled);
			assert_int_equal(frames_of(expected, FRAME_DAMAGED_PAYLOAD), 0);
			round_check(scene, false);
			round_end(scene);
		}
	}
}

static void test_stores_equal_reference(void **state)
{
	for (uint64_t seed = 1; seed < 9; seed++) {
		struct scene *scene = round_begin(seed, PATTERN_PRBS31, seed % 4);

		scene_store_make(scene, &built_here);
		round_write(scene);
		round_check(scene, false);
		assert_true(frames_of(expected, FRAME_VALID) || scene->layout.match.count);
		built_destroy(&scene->store, &built_here);
		round_end(scene);
	}
}

/* ---- life ---- */

static void ring_of(struct scene_ring *ring, struct scene *scene, uint32_t *stop)
{
	scene->ring_bursts = 4;
	scene->ring_descs = BURST_FRAMES_MAX;
	scene_ring_create(ring, scene, &host_memory, host_alloc(SCENE_BYTES), stop, KERNEL_CHECK);
}

static struct kernel_job job_of(const struct scene_ring *ring)
{
	struct kernel_job job = { .role = KERNEL_CHECK, .rings = &ring->view, .ring_count = 1 };
	const struct frame_config frame = { 0 };

	frame_layout_init(&job.layout, &frame);
	return job;
}

static void test_join_waits_for_stop(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct kernel_workers *workers;
	struct scene_ring ring;
	struct kernel_job job;
	int cpus[] = { 0, 1 << 20, -1 }; /* those that do not exist are no error */
	uint32_t stop = 0;

	ring_of(&ring, scene, &stop);
	job = job_of(&ring);
	job.workers_per_ring = 3;
	job.cpus = cpus;
	job.cpu_count = 3;
	assert_int_equal(kernel_host_ops.start(device, &job, &workers), 0);
	assert_int_equal(kernel_host_ops.workers_per_ring(workers), 3);
	assert_int_equal(kernel_host_ops.running(workers), 1);
	assert_int_equal(kernel_host_ops.join(workers, 1), -ETIMEDOUT);
	assert_non_null(strstr(kernel_error(), "stop word"));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	assert_int_equal(kernel_host_ops.join(workers, SCENE_HANG_SECONDS * 1000), 0);
	free(ring.view.frames);
	scene_ring_free(&ring, &host_memory);
	free(scene);
}

static void armed_becomes(struct wake *wake, uint32_t armed)
{
	const time_t until = time(NULL) + SCENE_HANG_SECONDS;

	while ((atomic_load(&wake->word) & 1) != armed) {
		assert_true(time(NULL) < until);
		nap();
	}
}

/* Idle workers sleep; each result wakes who waits for it. */
static void test_workers_sleep(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct wake work, done;
	const struct kernel_wakes wakes = { &work, &done };
	struct kernel_workers *workers;
	struct scene_ring ring;
	struct scene_result result;
	struct kernel_job job;
	uint32_t stop = 0, ticket;

	wake_init(&work);
	wake_init(&done);
	ring_of(&ring, scene, &stop);
	job = job_of(&ring);
	job.workers_per_ring = 2;
	job.wakes = &wakes;
	scene->burst[0].count = 1;
	assert_int_equal(kernel_host_ops.start(device, &job, &workers), 0);
	for (int i = 0; i < 20; i++) {
		armed_becomes(&work, 1);
		assert_true(wake_arm(&done, &ticket));
		assert_true(scene_ring_publish(&ring, &scene->burst[0]));
		wake_look(&work);
		armed_becomes(&done, 0);
		assert_true(scene_ring_collect(&ring, &scene->burst[0], &result));
	}
	armed_becomes(&work, 1);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	wake_look(&work);
	assert_int_equal(kernel_host_ops.join(workers, SCENE_HANG_SECONDS * 1000), 0);
	free(ring.view.frames);
	scene_ring_free(&ring, &host_memory);
	free(scene);
}

static void test_untaken_bursts_stay(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct kernel_workers *workers;
	struct scene_ring ring;
	struct scene_result result;
	struct kernel_job job;
	uint32_t stop = 1;

	ring_of(&ring, scene, &stop);
	job = job_of(&ring);
	scene->burst[0].count = 1;
	assert_true(scene_ring_publish(&ring, &scene->burst[0]));
	assert_int_equal(kernel_host_ops.start(device, &job, &workers), 0);
	assert_int_equal(kernel_host_ops.workers_per_ring(workers), 1);
	assert_int_equal(kernel_host_ops.join(workers, SCENE_HANG_SECONDS * 1000), 0);
	assert_false(scene_ring_collect(&ring, &scene->burst[0], &result));
	free(ring.view.frames);
	scene_ring_free(&ring, &host_memory);
	free(scene);
}

static void assert_refused(struct scene_ring *ring, struct kernel_job *job, const char *word)
{
	struct kernel_workers *workers;

	assert_int_equal(kernel_host_ops.start(device, job, &workers), -EINVAL);
	assert_non_null(strstr(kernel_error(), word));
}

static void test_bad_jobs_are_refused(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct burst_ring_view view;
	struct scene_ring ring;
	struct kernel_job job;
	uint32_t stop = 0;

	ring_of(&ring, scene, &stop);
	view = ring.view;
	job = job_of(&ring);
	job.ring_count = 0;
	assert_refused(&ring, &job, "at least one ring");
	job.ring_count = 1;
	job.pattern.kind = PATTERN_KINDS;
	assert_refused(&ring, &job, "pattern");
	job.pattern.kind = PATTERN_NONE;
	ring.view.desc_mask = 6;
	assert_refused(&ring, &job, "power of two");
	ring.view = view;
	ring.view.frames++;
	assert_refused(&ring, &job, "begin and end");
	ring.view = view;
	ring.view.records = NULL;
	assert_refused(&ring, &job, "records");
	ring.view = view;
	ring.view.request = NULL;
	job.role = KERNEL_WRITE;
	assert_refused(&ring, &job, "requests");
	job.role = (enum kernel_role)9;
	assert_refused(&ring, &job, "role");
	free(view.frames);
	scene_ring_free(&ring, &host_memory);
	free(scene);
}

static void test_bad_custom_layouts_are_refused(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	struct scene_ring ring;
	struct kernel_job job;
	struct frame_custom *custom = &job.layout.custom;
	uint32_t stop = 0;

	ring_of(&ring, scene, &stop);
	job = job_of(&ring);
	job.layout.format = FRAME_CUSTOM;
	custom->payload = FRAME_CUSTOM_PAYLOAD_MAX + 1;
	assert_refused(&ring, &job, "payload at 101");
	custom->payload = FRAME_CUSTOM_PAYLOAD_MAX;
	custom->sequence.bytes = 9;
	assert_refused(&ring, &job, "sequence field of 9");
	custom->sequence.bytes = 8;
	custom->sequence.offset = FRAME_FIELD_END_MAX - 7;
	assert_refused(&ring, &job, "sequence field");
	custom->sequence.bytes = 0; /* there is none: its place does not matter */
	custom->stream.bytes = 200;
	assert_refused(&ring, &job, "stream field");
	custom->stream.bytes = 2;
	custom->self_phase = 1;
	assert_refused(&ring, &job, "no phase");
	custom->self_phase = 0;
	job.layout.match.count = FRAME_MATCH_RULES + 1;
	assert_refused(&ring, &job, "match rules");
	job.layout.match.count = 0;
	job.role = KERNEL_WRITE;
	assert_refused(&ring, &job, "cannot be made");
	free(ring.view.frames);
	scene_ring_free(&ring, &host_memory);
	free(scene);
}

static void test_bad_stores_are_refused(void **state)
{
	const uint8_t bytes[100] = { 1 }, *const pointers[] = { bytes, bytes, bytes + 1 };
	const uint32_t len[] = { 100, 60, 99 };
	struct scene *scene = calloc(1, sizeof(*scene));
	struct frame_store_view view;
	struct built_store store;
	struct scene_ring ring;
	struct kernel_job job;
	uint32_t stop = 0;

	built_create(&store, &built_here, pointers, len, 3);
	ring_of(&ring, scene, &stop);
	job = job_of(&ring);
	view = store.view;
	job.store = &view;
	view.count = 0;
	assert_refused(&ring, &job, "without frames");
	view = store.view;
	view.data++;
	assert_refused(&ring, &job, "not aligned");
	view = store.view;
	view.bucket_mask = 0;
	assert_refused(&ring, &job, "table");
	view.bucket_mask = 5;
	assert_refused(&ring, &job, "table");
	view = store.view;
	view.buckets = NULL;
	assert_refused(&ring, &job, "table");
	view = store.view;
	view.resident = 0;
	assert_refused(&ring, &job, "that change");
	view = store.view;
	view.data_bytes -= 16;
	assert_refused(&ring, &job, "stored frame 2: 99 bytes");
	view = store.view;
	store.frames[1].at += 8;
	assert_refused(&ring, &job, "stored frame 1");
	store.frames[1].at -= 8;
	store.frames[0].at = 0 - 16ull;
	assert_refused(&ring, &job, "stored frame 0");
	store.frames[0].at = 0;
	store.frames[1].len = FRAME_LEN_MAX + 1;
	assert_refused(&ring, &job, "stored frame 1");
	store.frames[1].len = 60;
	store.frames[2].class_first = 3;
	assert_refused(&ring, &job, "equal to frame 3 of 3");
	store.frames[2].class_first = 2;
	store.buckets[0].frame = 4;
	assert_refused(&ring, &job, "frame 3 of 3");
	for (uint32_t b = 0; b <= view.bucket_mask; b++)
		store.buckets[b].frame = 1;
	assert_refused(&ring, &job, "full");
	built_destroy(&store, &built_here);
	free(ring.view.frames);
	scene_ring_free(&ring, &host_memory);
	free(scene);
}

static void count_call(void *argument)
{
	++*(int *)argument;
}

static void test_memory_and_order(void **state)
{
	uint8_t memory[64], copy[64];
	struct kernel_info info;
	int calls = 0;

	assert_int_equal(kernel_host_ops.fill(device, memory, 0x5a, sizeof(memory)), 0);
	assert_int_equal(kernel_host_ops.copy_out(device, copy, memory, sizeof(copy)), 0);
	assert_int_equal(copy[63], 0x5a);
	copy[1] = 1;
	assert_int_equal(kernel_host_ops.copy_in(device, memory, copy, sizeof(copy)), 0);
	assert_int_equal(memory[1], 1);
	{
		const struct kernel_copy copies[] = {
			{ .from = memory, .to = copy + 8, .bytes = 3 },
			{ .from = memory + 60, .to = copy, .bytes = 0 },
			{ .from = memory + 1, .to = copy + 20, .bytes = 1 },
		};

		memset(copy, 0, sizeof(copy));
		assert_int_equal(kernel_host_ops.gather(device, copies, 3), 0);
		assert_memory_equal(copy, "\0\0\0\0\0\0\0\0\x5a\x01\x5a\0", 12);
		assert_int_equal(copy[20], 1);
		assert_int_equal(copy[21], 0);
		assert_int_equal(kernel_host_ops.gather(device, copies, KERNEL_COPIES_MAX + 1),
				 -EINVAL);
	}
	assert_int_equal(kernel_host_ops.flush(device), 0);
	assert_int_equal(kernel_host_ops.after(device, NULL, count_call, &calls), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(kernel_host_ops.after(device, &calls, count_call, &calls), -ENOTSUP);
	assert_int_equal(calls, 1);
	kernel_host_ops.info(device, &info);
	assert_non_null(strstr(info.name, "CPU"));
	assert_true(info.units >= 1);
	assert_int_equal(info.writes_ordering, -1);
}

static int device_open(void **state)
{
	return kernel_host_ops.open(0, &device);
}

static int device_close(void **state)
{
	kernel_host_ops.close(device);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equals_reference),
		cmocka_unit_test(test_custom_equals_reference),
		cmocka_unit_test(test_stores_equal_reference),
		cmocka_unit_test(test_join_waits_for_stop),
		cmocka_unit_test(test_workers_sleep),
		cmocka_unit_test(test_untaken_bursts_stay),
		cmocka_unit_test(test_bad_jobs_are_refused),
		cmocka_unit_test(test_bad_custom_layouts_are_refused),
		cmocka_unit_test(test_bad_stores_are_refused),
		cmocka_unit_test(test_memory_and_order),
	};

	big_memory_is_kept();
	return cmocka_run_group_tests(tests, device_open, device_close);
}
