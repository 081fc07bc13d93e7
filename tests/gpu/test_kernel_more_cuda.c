/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA kernels against the CPU backend on frames in two pieces (header-data split) and in
 * poisoned slots (stale-read detector), and frames whose bytes come after they were published, by
 * the CPU's stores and by a copy engine. Usage: test_kernel_more_cuda [ROUNDS [SEED]]. 77 without a
 * GPU.
 */
#include "scene_custom.h"
#include "scene_store.h"

#include "../unit/kernel_scene_more.h"
#include "kernel_pair.h"

#define DEFAULT_ROUNDS 1u

static uint64_t verdicts[FRAME_VERDICTS];

static void verdicts_count(void)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		for (uint32_t r = 0; r < wanted[b].records; r++)
			verdicts[wanted[b].record[r].verdict] += wanted[b].record[r].count;
}

/*
 * Plays `made` on both and compares outcomes, slots and generations. `store`: NULL, or what frames
 * are expected from. `pinned_frames`: frames lie there and not in GPU memory; NULL: they do.
 */
static bool more_compare(struct scene *made, const struct store_scene *store,
			 uint8_t *device_frames, uint8_t *pinned_frames, uint8_t *copy)
{
	const struct kernel_ops *ops = &kernel_cuda_ops;
	struct kernel_ops with = *ops;
	uint8_t *to = pinned_frames ? pinned_frames : device_frames;
	static uint32_t generation[SCENE_SLOTS];

	if (!done(ops->copy_in(cuda, to, made->frames, SCENE_BYTES), "copy_in"))
		return false;
	with = store ? store_ops(&kernel_host_ops, &store->view) : kernel_host_ops;
	if (scene_play(made, &with, host, &plain, made->frames, KERNEL_CHECK, wanted))
		return false;
	if (made->generation)
		memcpy(generation, made->generation_after, sizeof(generation));
	with = store ? store_ops(ops, &store->view) : *ops;
	if (scene_play(made, &with, cuda, &pinned, to, KERNEL_CHECK, found) ||
	    !done(ops->copy_out(cuda, copy, to, SCENE_BYTES), "copy_out"))
		return false;
	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		records_compared += wanted[b].records;
	verdicts_count();
	return scene_same_runs(made, wanted, found) &&
	       scene_same_frames(made, made->frames, copy) &&
	       (!made->generation || scene_same_generations(generation, made->generation_after));
}

/*
 * A scene in all its forms: whole or in two pieces, with poison or without. Poison needs a slot for
 * each frame: `slots` says that it has.
 */
static bool forms_compare(const struct store_scene *store, bool slots, uint8_t *device_frames,
			  uint8_t *pinned_frames, uint8_t *copy)
{
	bool good = true;

	for (uint32_t form = slots ? 1 : 2; form < 4 && good; form += slots ? 1 : 2) {
		static struct scene one, apart;
		struct scene *made = &one;
		const bool poison = form & 1, split = form & 2;

		one = scene;
		one.frames = aligned_alloc(4096, SCENE_BYTES);
		if (!one.frames)
			return false;
		memcpy(one.frames, scene.frames, SCENE_BYTES);
		if (poison) {
			scene_generations(&one);
			scene_poison_some(&one, 8);
		}
		if (split) {
			scene_split(&one, &apart);
			made = &apart;
		}
		good = more_compare(made, store, device_frames, pinned_frames, copy);
		if (!good)
			fprintf(stderr, "CHECK differs: %s%s: ", split ? "in two pieces" : "whole",
				poison ? ", poisoned" : "");
		if (split)
			scene_apart_free(&apart);
		free(one.frames);
		scene_generations_free(&one);
		scene.random = one.random;
	}
	return good;
}

static bool steps_compare(const struct store_scene *store, bool custom, uint8_t *device_frames,
			  uint8_t *pinned_frames, uint8_t *copy)
{
	for (uint32_t step = 0; step < 4; step++) {
		if (step == 1)
			scene_spoil_frames(&scene, 17);
		if (step == 2 && custom)
			custom_spoil(&scene, 10);
		if (step == 3)
			scene_spoil(&scene, 5);
		if (!forms_compare(store, step < 3, device_frames, step == 2 ? pinned_frames : NULL,
				   copy)) {
			fprintf(stderr, "damage step %u: ", step);
			return false;
		}
	}
	return true;
}

static bool own_round(uint64_t seed, enum pattern_kind kind, uint32_t shape, uint8_t *device_frames,
		      uint8_t *pinned_frames, uint8_t *copy)
{
	bool good;

	if (scene_make(&scene, seed, kind, shape))
		return false;
	good = !scene_play(&scene, &kernel_host_ops, host, &plain, scene.frames, KERNEL_WRITE,
			   wanted) &&
	       steps_compare(NULL, false, device_frames, pinned_frames, copy);
	if (!good)
		fprintf(stderr, "OWN: seed %#" PRIx64 " pattern %s layout %u workers %u hint %u\n",
			seed, pattern_name(kind), shape, scene.workers, scene.hint);
	scene_free(&scene);
	return good;
}

static bool custom_round(uint64_t seed, enum pattern_kind kind, bool self_phase, bool rules,
			 uint8_t *device_frames, uint8_t *pinned_frames, uint8_t *copy)
{
	bool good;

	if (custom_make(&scene, seed, kind, self_phase, rules))
		return false;
	good = steps_compare(NULL, true, device_frames, pinned_frames, copy);
	if (!good)
		fprintf(stderr,
			"CUSTOM: seed %#" PRIx64 " pattern %s self_phase %u rules %u payload %u "
			"workers %u hint %u\n",
			seed, pattern_name(kind), self_phase, rules, scene.layout.custom.payload,
			scene.workers, scene.hint);
	scene_free(&scene);
	return good;
}

static bool store_round(uint64_t seed, uint8_t *device_frames, uint8_t *pinned_frames,
			uint8_t *copy)
{
	struct store_scene store;
	bool good;

	if (scene_make(&scene, seed, PATTERN_PRBS31, (uint32_t)(seed % 4)) ||
	    store_make(&scene, &store, &pinned, true))
		return false;
	store_capture(&scene, &store);
	if (seed & 1)
		custom_rules(&scene);
	good = steps_compare(&store, false, device_frames, pinned_frames, copy);
	if (!good)
		fprintf(stderr, "STORE: seed %#" PRIx64 " workers %u hint %u\n", seed,
			scene.workers, scene.hint);
	store_free(&store);
	scene_free(&scene);
	return good;
}

static bool rounds_play(uint32_t rounds, uint64_t seed, uint8_t *device_frames,
			uint8_t *pinned_frames)
{
	uint8_t *copy = aligned_alloc(4096, SCENE_BYTES);
	bool good = copy != NULL;

	for (uint32_t round = 0; round < rounds && good; round++) {
		for (uint32_t kind = PATTERN_NONE; kind < PATTERN_KINDS && good; kind++) {
			const bool rules = (seed & 3) == 0;

			good = own_round(seed++, kind, kind % 4, device_frames, pinned_frames,
					 copy);
			if (kind != PATTERN_FILE)
				good = good && custom_round(seed++, kind, false, rules,
							    device_frames, pinned_frames, copy);
			if (pattern_is_prbs(kind))
				good = good && custom_round(seed++, kind, true, !rules,
							    device_frames, pinned_frames, copy);
		}
		good = good && own_round(seed++, PATTERN_COUNTER8, SCENE_RAW, device_frames,
					 pinned_frames, copy);
		for (uint32_t n = 0; n < 4 && good; n++)
			good = store_round(seed++, device_frames, pinned_frames, copy);
	}
	free(copy);
	return good;
}

/* ---- late bytes ---- */

#define LATE_TRIES 200u
#define LATE_LEN 1514u
#define LATE_SLOT 5u
#define LATE_DELAY_NS 20000u

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* How the right bytes come: stores of this CPU, or a copy engine's. */
static bool late_bring(uint8_t *to, const uint8_t *from, bool device)
{
	const uint64_t until = now_ns() + LATE_DELAY_NS;

	while (now_ns() < until)
		;
	if (device)
		return done(kernel_cuda_ops.copy_in(cuda, to, from, LATE_LEN), "copy_in");
	memcpy(to, from, LATE_LEN);
	return true;
}

/* The first byte that came late; none where it came before the kernel looked for poison, and the
 * header had not been there. */
static bool late_byte_is_named(const struct frame_record *record, const uint8_t *right,
			       const uint8_t *before)
{
	if (!record->expected && !record->got)
		return record->offset == 0 || record->offset == 14;
	return record->offset < LATE_LEN && record->expected == right[record->offset] &&
	       record->got == before[record->offset] && record->expected != record->got;
}

/*
 * One frame a try into the same slot, always in the slot's present poison when it is published. Its
 * bytes come a little later; how late is the machine's. So a try may end as it likes (too late: its
 * header cannot be read; even before the kernel looked: valid), but most are stale, and each that
 * is says so in every field.
 */
static bool late_tries(struct scene_ring *ring, uint8_t *slot, bool device, uint32_t *stale)
{
	struct frame_layout layout;
	struct pattern pattern;
	const struct frame_config config = { .format = FRAME_ETHERNET };
	const struct pattern_config pattern_config = { .kind = PATTERN_PRBS31, .invert = -1 };
	const uint64_t until = now_ns() + SCENE_HANG_SECONDS * 1000000000ull;
	/* pinned memory cannot be taken or given back beside a running kernel */
	static uint8_t right[LATE_LEN], before[LATE_LEN];
	struct scene_burst burst = { .count = 1 };
	struct scene_result result;
	bool good =
		!frame_layout_init(&layout, &config) && !pattern_init(&pattern, &pattern_config);

	burst.desc[0] = (struct frame_desc){ LATE_SLOT, LATE_LEN, 128 };
	for (uint32_t try = 0; try < LATE_TRIES && good; try++) {
		const struct frame_header header = {
			.sequence = try,
			.position = 1000u * try,
			.stream = 9,
			.payload_bytes = (uint16_t)frame_payload_bytes(&layout, LATE_LEN),
			.pattern = PATTERN_PRBS31,
			.version = FRAME_VERSION,
		};
		const struct frame_record *record = &result.record[0];

		frame_write(&layout, &pattern, right, LATE_LEN, &header);
		good = done(kernel_cuda_ops.copy_out(cuda, before, slot, LATE_LEN), "copy_out") &&
		       scene_ring_publish(ring, &burst) && late_bring(slot, right, device);
		while (good && !scene_ring_collect(ring, &burst, &result))
			good = now_ns() < until;
		if (!good || result.records != 1)
			return false;
		if (record->verdict == FRAME_DAMAGED_STALE && !record->header_ok) {
			good = !record->sequence && !record->stream && !record->bytes &&
			       !record->wrong_bits && !record->offset && !record->expected &&
			       !record->got;
		} else if (record->verdict == FRAME_DAMAGED_STALE) {
			++*stale;
			good = record->sequence == try && record->stream == 9 &&
			       record->header_ok == 1 && record->bytes == header.payload_bytes &&
			       !record->wrong_bits && late_byte_is_named(record, right, before);
		} else if (record->verdict != FRAME_VALID && record->verdict != FRAME_FILTERED) {
			/* seen while it came, with all of its edges there or time up */
			good = record->verdict == FRAME_DAMAGED_PAYLOAD ||
			       record->verdict == FRAME_DAMAGED_HEADER;
		}
		good = good && ring->view.generation[LATE_SLOT] == try + 1;
		if (!good)
			record_print("late", record);
	}
	pattern_free(&pattern);
	return good;
}

static bool test_late(uint8_t *frames, bool device)
{
	const struct kernel_ops *ops = &kernel_cuda_ops;
	const struct pattern_config pattern_config = { .kind = PATTERN_PRBS31, .invert = -1 };
	const struct frame_config frame = { .format = FRAME_ETHERNET };
	struct kernel_job job = { .role = KERNEL_CHECK, .ring_count = 1, .workers_per_ring = 1 };
	uint32_t *stop = pinned_alloc(sizeof(*stop)), stale = 0;
	uint32_t *generation = pinned_alloc(SCENE_SLOTS * sizeof(*generation));
	struct kernel_workers *workers = NULL;
	struct scene_ring ring;
	bool good;

	memset(&scene, 0, sizeof(scene));
	scene.ring_bursts = 8;
	scene.ring_descs = 2048;
	scene_ring_create(&ring, &scene, &pinned, frames, stop, KERNEL_CHECK);
	ring.view.generation = generation;
	ring.view.stale_us = SCENE_STALE_US;
	frame_layout_init(&job.layout, &frame);
	good = !pattern_init(&job.pattern, &pattern_config) &&
	       done(ops->fill(cuda, frames, STALE_FILL, SCENE_BYTES), "fill");
	job.rings = &ring.view;
	good = good && done(ops->start(cuda, &job, &workers), "start");
	good = good && late_tries(&ring, frames + ((size_t)LATE_SLOT << SCENE_SLOT_SHIFT) + 128,
				  device, &stale);
	__atomic_store_n(stop, 1, __ATOMIC_RELAXED);
	if (workers)
		good = done(ops->join(workers, 5000), "join") && good;
	printf("late bytes in %s memory: %u of %u frames stale\n", device ? "GPU" : "pinned", stale,
	       LATE_TRIES);
	/* a machine that always takes longer than that says nothing about the detector */
	if (good && !stale) {
		fprintf(stderr, "no late frame was seen as stale\n");
		good = false;
	}
	pattern_free(&job.pattern);
	scene_ring_free(&ring, &pinned);
	pinned_free(generation);
	pinned_free(stop);
	return good;
}

int main(int argc, char **argv)
{
	const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : DEFAULT_ROUNDS;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) << 20;
	uint8_t *device_frames = NULL, *pinned_frames;
	bool good;
	int ret = pair_open(&device_frames);

	if (ret)
		return ret;
	setvbuf(stdout, NULL, _IOLBF, 0); /* under a sanitizer a test may be ended from outside */
	printf("seed %#" PRIx64 "\n", seed);
	pinned_frames = pinned_alloc(SCENE_BYTES);
	good = pinned_frames && test_late(pinned_frames, false) && test_late(device_frames, true) &&
	       rounds_play(rounds, seed, device_frames, pinned_frames);
	pinned_free(pinned_frames);
	pair_close(device_frames);
	printf("frames by verdict:");
	for (uint32_t v = 0; v < FRAME_VERDICTS; v++) {
		printf(" %" PRIu64, verdicts[v]);
		if (!verdicts[v] && rounds) {
			fprintf(stderr, "\nno frame with verdict %u was compared\n", v);
			good = false;
		}
	}
	printf("\n%s: kernel and CPU backend compared on %" PRIu64 " records\n",
	       good ? "PASS" : "FAIL", records_compared);
	return good ? 0 : 1;
}
