/* SPDX-License-Identifier: BSD-3-Clause */
/* The host twin: runs equal those of the reference, frames equal frame_write()'s, life and death.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <unistd.h>

#include "kernel_scene.h"

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

/* ---- the reference: frame_check(), and runs by their description in burst_ring.h ---- */

static struct frame_run reference_run(const struct scene *scene, struct frame_desc desc, uint32_t i)
{
	const uint8_t *frame = scene_frame(scene, desc);
	struct frame_result one = { .verdict = FRAME_DAMAGED_LENGTH };
	struct frame_run run;

	if (frame)
		frame_check(&scene->layout, &scene->plan, frame_crc32c_table, frame, desc.len,
			    &one);
	memset(&run, 0, sizeof(run));
	run.verdict = one.verdict;
	run.count = 1;
	run.first = (uint16_t)i;
	run.wire_bytes = desc.len;
	if (one.verdict == FRAME_FILTERED)
		return run;
	run.bytes = one.payload_bytes;
	run.header_ok = one.header_ok;
	run.sequence = one.sequence;
	run.stream = (uint16_t)one.stream;
	if (one.verdict != FRAME_VALID) {
		run.wrong_bits = one.wrong_bits;
		run.offset = one.offset;
		run.expected = one.expected;
		run.got = one.got;
	}
	return run;
}

static void reference_check(const struct scene *scene, struct scene_result *result)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		const struct scene_burst *burst = &scene->burst[b];

		result[b].runs = 0;
		for (uint32_t i = 0; i < burst->count; i++) {
			const struct frame_run next = reference_run(scene, burst->desc[i], i);
			struct frame_run *run = &result[b].run[i ? result[b].runs - 1 : 0];

			if (i && run->verdict == next.verdict &&
			    (next.verdict == FRAME_FILTERED ||
			     (next.verdict == FRAME_VALID && run->stream == next.stream &&
			      run->sequence + run->count == next.sequence && next.sequence))) {
				run->count++;
				run->bytes += next.bytes;
				run->wire_bytes += next.wire_bytes;
			} else {
				result[b].run[result[b].runs++] = next;
			}
		}
	}
}

static void reference_write(const struct scene *scene, uint8_t *frames)
{
	memset(frames, 0xa5, SCENE_BYTES);
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		const struct scene_burst *burst = &scene->burst[b];
		uint64_t position = burst->order.position;

		for (uint32_t i = 0; i < burst->count; i++) {
			const struct frame_desc desc = burst->desc[i];
			const uint8_t *at = scene_frame(scene, desc);
			const struct frame_header header = {
				.sequence = burst->order.sequence + i,
				.position = position,
				.time_ns = burst->order.time_ns,
				.stream = (uint16_t)burst->order.stream,
				.payload_bytes =
					(uint16_t)frame_payload_bytes(&scene->layout, desc.len),
				.pattern = (uint8_t)scene->plan.kind,
				.version = FRAME_VERSION,
			};

			position += header.payload_bytes;
			if (at)
				frame_write(&scene->layout, &scene->plan,
					    frames + (at - scene->frames), desc.len, &header);
		}
	}
}

/* Bursts in which all is well must be one run: else a slip in both checkers would go unseen. */
static void assert_whole_bursts_valid(const struct scene *scene, const struct scene_result *result)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		const struct scene_burst *burst = &scene->burst[b];
		bool whole = burst->count > 0;

		for (uint32_t i = 0; i < burst->count; i++)
			whole = whole && scene_frame(scene, burst->desc[i]) &&
				burst->desc[i].len <= FRAME_LEN_MAX && burst->order.sequence + i &&
				burst->desc[i].len >= frame_payload_offset(&scene->layout);
		if (!whole || scene->layout.raw)
			continue;
		assert_int_equal(result[b].runs, 1);
		assert_int_equal(result[b].run[0].verdict, FRAME_VALID);
		assert_int_equal(result[b].run[0].count, burst->count);
		assert_int_equal(result[b].run[0].sequence, burst->order.sequence);
	}
}

static void round_play(uint64_t seed, enum pattern_kind kind, uint32_t shape)
{
	struct scene *scene = malloc(sizeof(*scene));
	uint8_t *frames = malloc(SCENE_BYTES);

	assert_non_null(scene);
	assert_non_null(frames);
	assert_int_equal(scene_make(scene, seed, kind, shape), 0);
	assert_int_equal(scene_play(scene, &kernel_host_ops, device, &host_memory, scene->frames,
				    KERNEL_WRITE, results), 0);
	reference_write(scene, frames);
	if (!scene_same_frames(scene, frames, scene->frames))
		fail_msg("written frames differ: seed %#llx pattern %s layout %u",
			 (unsigned long long)seed, pattern_name(kind), shape);
	for (uint32_t one_in = 0; one_in <= 32; one_in += 16) {
		if (one_in)
			scene_spoil(scene, one_in);
		reference_check(scene, expected);
		if (!one_in)
			assert_whole_bursts_valid(scene, expected);
		assert_int_equal(scene_play(scene, &kernel_host_ops, device, &host_memory,
					    scene->frames, KERNEL_CHECK, results), 0);
		if (!scene_same_runs(scene, expected, results))
			fail_msg("runs differ: seed %#llx pattern %s layout %u",
				 (unsigned long long)seed, pattern_name(kind), shape);
	}
	scene_free(scene);
	free(frames);
	free(scene);
}

static void test_equals_reference(void **state)
{
	uint64_t seed = 0x6764726361700000u;

	for (uint32_t round = 0; round < ROUNDS; round++)
		for (uint32_t kind = PATTERN_NONE; kind < PATTERN_KINDS; kind++)
			round_play(++seed, (enum pattern_kind)kind, (kind + round) % 4);
	round_play(++seed, PATTERN_COUNTER8, 4);
}

/* ---- life ---- */

static void ring_of(struct scene_ring *ring, struct scene *scene, uint32_t *stop)
{
	scene->ring_bursts = 4;
	scene->ring_descs = BURST_FRAMES_MAX;
	scene_ring_create(ring, scene, &host_memory, host_alloc(SCENE_BYTES), stop);
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
	job.plan.kind = PATTERN_KINDS;
	assert_refused(&ring, &job, "pattern");
	job.plan.kind = PATTERN_NONE;
	ring.view.desc_mask = 6;
	assert_refused(&ring, &job, "power of two");
	ring.view = view;
	ring.view.frames++;
	assert_refused(&ring, &job, "begin and end");
	ring.view = view;
	ring.view.overflow = NULL;
	assert_refused(&ring, &job, "overflow");
	ring.view = view;
	ring.view.order = NULL;
	job.role = KERNEL_WRITE;
	assert_refused(&ring, &job, "orders");
	job.role = (enum kernel_role)9;
	assert_refused(&ring, &job, "role");
	free(view.frames);
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
		cmocka_unit_test(test_join_waits_for_stop),
		cmocka_unit_test(test_untaken_bursts_stay),
		cmocka_unit_test(test_bad_jobs_are_refused),
		cmocka_unit_test(test_memory_and_order),
	};

	return cmocka_run_group_tests(tests, device_open, device_close);
}
