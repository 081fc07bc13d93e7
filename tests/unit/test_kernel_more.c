/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CPU backend with header-data split and in poisoned slots, on random scenes: frames in two
 * pieces get the outcomes that they have in one, and slots the poison that is due.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "big_memory.h"
#include "kernel_reference.h"
#include "kernel_scene_more.h"
#include "kernel_scene_others.h"

static struct kernel_device *device;
static struct scene_result results[SCENE_BURSTS], expected[SCENE_BURSTS];
static uint32_t absent; /* frames of which nothing came, so far */

static void *host_alloc(size_t bytes)
{
	void *memory = aligned_alloc(128, (bytes + 127) & ~(size_t)127);

	if (memory)
		memset(memory, 0, (bytes + 127) & ~(size_t)127);
	return memory;
}

static const struct scene_memory host_memory = { host_alloc, free };

static void assert_played(struct scene *scene, const char *what)
{
	assert_int_equal(scene_play(scene, &kernel_host_ops, device, &host_memory, scene->frames,
				    KERNEL_CHECK, results),
			 0);
	if (!scene_same_runs(scene, expected, results))
		fail_msg("runs differ: %s, pattern %s", what, pattern_name(scene->pattern.kind));
}

/* Whole and damaged frames, cut where they like. */
static void split_rounds(struct scene *scene)
{
	struct scene *apart = malloc(sizeof(*apart));

	assert_non_null(apart);
	for (uint32_t one_in = 0; one_in <= 16; one_in += 16) {
		if (one_in)
			scene_spoil(scene, one_in);
		reference_check(scene, scene, expected);
		scene_split(scene, apart);
		assert_played(apart, "in two pieces");
		scene_apart_free(apart);
	}
	free(apart);
}

/* Slots that were poisoned, frames that came into them in part; whole or in two pieces. */
static void poison_round(struct scene *scene, bool split)
{
	struct scene *play = malloc(sizeof(*play)), *made = scene;
	uint32_t *generation = malloc(SCENE_SLOTS * sizeof(*generation));
	uint8_t *frames = malloc(SCENE_BYTES), *before = malloc(SCENE_BYTES);

	assert_true(play && generation && frames && before);
	memcpy(before, scene->frames, SCENE_BYTES);
	scene_generations(scene);
	scene_poison_some(scene, 8);
	if (split) {
		scene_split(scene, play);
		made = play;
	}
	reference_check(scene, made, expected);
	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		for (uint32_t r = 0; r < expected[b].records; r++)
			absent += expected[b].record[r].verdict == FRAME_DAMAGED_STALE;
	scene_poison_all(made, frames, generation);
	assert_played(made, split ? "poisoned, in two pieces" : "poisoned");
	assert_true(scene_same_frames(made, frames, made->frames));
	assert_true(scene_same_generations(generation, made->generation_after));
	if (split)
		scene_apart_free(play);
	memcpy(scene->frames, before, SCENE_BYTES);
	scene_generations_free(scene);
	free(play);
	free(generation);
	free(frames);
	free(before);
}

static void round_play(uint64_t seed, enum pattern_kind kind, uint32_t shape, bool store)
{
	struct scene *scene = malloc(sizeof(*scene));

	printf("seed %#llx pattern %s layout %u\n", (unsigned long long)seed, pattern_name(kind),
	       shape);
	assert_non_null(scene);
	assert_int_equal(scene_make(scene, seed, kind, shape), 0);
	if (store)
		scene_store_make(scene, &built_here);
	if (shape >= SCENE_CUSTOM)
		scene_custom_fill(scene);
	else
		reference_write(scene, scene->frames);
	poison_round(scene, seed & 1);
	scene_spoil_frames(scene, 16);
	poison_round(scene, !(seed & 1));
	split_rounds(scene);
	if (store)
		built_destroy(&scene->store, &built_here);
	scene_free(scene);
	free(scene);
}

static void test_own_frames(void **state)
{
	uint64_t seed = 0x6764726361720000u;

	for (uint32_t kind = PATTERN_NONE; kind < PATTERN_KINDS; kind++)
		round_play(++seed, (enum pattern_kind)kind, kind % 4, false);
	for (uint32_t shape = SCENE_ETHERNET; shape <= SCENE_UDP_VLAN; shape++)
		round_play(++seed, PATTERN_PRBS31, shape, false);
	round_play(++seed, PATTERN_COUNTER8, SCENE_RAW, false);
}

static void test_custom_frames(void **state)
{
	uint64_t seed = 0x6764726361730000u;

	for (uint32_t kind = PATTERN_NONE; kind < PATTERN_KINDS; kind++)
		for (uint32_t shape = SCENE_CUSTOM; shape < SCENE_SHAPES; shape++)
			if (shape == SCENE_CUSTOM || pattern_is_prbs(kind))
				round_play(++seed, (enum pattern_kind)kind, shape, false);
}

static void test_stores(void **state)
{
	for (uint64_t seed = 1; seed < 9; seed++)
		round_play(seed, PATTERN_PRBS31, seed % 4, true);
}

/* The rounds before had what they are about. */
static void test_frames_that_never_came(void **state)
{
	assert_true(absent > 100);
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
		cmocka_unit_test(test_own_frames),
		cmocka_unit_test(test_custom_frames),
		cmocka_unit_test(test_stores),
		cmocka_unit_test(test_frames_that_never_came),
	};

	big_memory_is_kept();
	return cmocka_run_group_tests(tests, device_open, device_close);
}
