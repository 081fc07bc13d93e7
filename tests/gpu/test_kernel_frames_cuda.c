/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA kernels against the CPU backend on frames of others: custom layouts with and without a
 * known phase, rules, end-of-stream frames, frames of a file written and expected; and gather().
 * Usage: test_kernel_frames_cuda [ROUNDS [SEED]]. 77 without a GPU.
 */
#include "scene_custom.h"
#include "scene_store.h"

#include "kernel_pair.h"

#define DEFAULT_ROUNDS 3u
#define GATHER_GUARD 64u /* bytes between stretches, which must stay as they are */
#define BIG_STORE_BYTES ((uint64_t)300 << 20)

static uint64_t verdicts[FRAME_VERDICTS];

/* So that a test that never got to a verdict is seen. */
static void verdicts_count(void)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		for (uint32_t r = 0; r < wanted[b].records; r++)
			verdicts[wanted[b].record[r].verdict] += wanted[b].record[r].count;
}

static bool custom_round(uint64_t seed, enum pattern_kind kind, bool self_phase, bool rules,
			 uint8_t *device_frames)
{
	bool good = false;

	if (custom_make(&scene, seed, kind, self_phase, rules)) {
		fprintf(stderr, "the custom scene could not be made\n");
		return false;
	}
	for (uint32_t step = 0; step < 4; step++) {
		if (step == 1)
			scene_spoil(&scene, 17);
		if (step > 1)
			custom_spoil(&scene, step == 2 ? 20 : 2);
		if (!compare_checked(device_frames)) {
			fprintf(stderr,
				"CHECK differs (damage step %u): custom seed %#" PRIx64
				" pattern %s self_phase %u rules %u payload %u bytes %u sequence "
				"%u at %u workers %u hint %u\n",
				step, seed, pattern_name(kind), self_phase, rules,
				scene.layout.custom.payload, scene.layout.custom.payload_bytes,
				scene.layout.custom.sequence.bytes,
				scene.layout.custom.sequence.offset, scene.workers, scene.hint);
			goto out;
		}
		verdicts_count();
	}
	good = true;
out:
	scene_free(&scene);
	return good;
}

/* Our own frames with end-of-stream frames among them, and with rules that name some of them. */
static bool own_round(uint64_t seed, enum pattern_kind kind, uint32_t shape, uint8_t *device_frames,
		      uint8_t *copy)
{
	bool good;

	if (scene_make(&scene, seed, kind, shape))
		return false;
	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		scene.burst[b].request.end = scene_chance(&scene, 3);
	good = compare_written(device_frames, copy) && compare_checked(device_frames);
	verdicts_count();
	if (good) {
		scene.layout.match.count = 1;
		scene.layout.match.rule[0] = (struct frame_match_rule){
			.fields = FRAME_MATCH_VLAN,
			.vlan = scene.layout.vlan & 0x0fff,
		};
		scene_spoil(&scene, 9);
		good = compare_checked(device_frames);
		custom_rules(&scene);
		good = good && compare_checked(device_frames);
	}
	if (!good)
		fprintf(stderr, "END or rules differ: seed %#" PRIx64 " pattern %s layout %u\n",
			seed, pattern_name(kind), shape);
	scene_free(&scene);
	return good;
}

/* WRITE or CHECK of a scene by the CPU backend and the kernel, both with the store. */
static bool store_compare(const struct store_scene *store, enum kernel_role role,
			  uint8_t *device_frames, uint8_t *copy)
{
	const struct kernel_ops *ops = &kernel_cuda_ops;
	struct kernel_ops with = store_ops(&kernel_host_ops, &store->view);

	if (role == KERNEL_WRITE)
		memset(scene.frames, 0xa5, SCENE_BYTES);
	if (!done(ops->copy_in(cuda, device_frames, scene.frames, SCENE_BYTES), "copy_in") ||
	    scene_play(&scene, &with, host, &plain, scene.frames, role, wanted))
		return false;
	with = store_ops(ops, &store->view);
	if (scene_play(&scene, &with, cuda, &pinned, device_frames, role, found) ||
	    !done(ops->copy_out(cuda, copy, device_frames, SCENE_BYTES), "copy_out"))
		return false;
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		frames_compared += role == KERNEL_WRITE ? scene.burst[b].count : 0;
		records_compared += wanted[b].records;
	}
	return scene_same_frames(&scene, scene.frames, copy) &&
	       scene_same_runs(&scene, wanted, found);
}

static bool store_round(uint64_t seed, uint8_t *device_frames, uint8_t *copy)
{
	const bool resident = seed & 1;
	struct store_scene store;
	bool good;

	if (scene_make(&scene, seed, PATTERN_PRBS31, (uint32_t)(seed % 4)) ||
	    store_make(&scene, &store, &pinned, resident)) {
		fprintf(stderr, "the store could not be made\n");
		return false;
	}
	store_requests(&scene, &store);
	good = store_compare(&store, KERNEL_WRITE, device_frames, copy);
	store.view.resident = 1;
	store_capture(&scene, &store);
	for (uint32_t step = 0; step < 4 && good; step++) {
		if (step == 1 || step == 3)
			scene_spoil(&scene, step == 1 ? 20 : 2);
		if (step == 2)
			custom_rules(&scene);
		good = store_compare(&store, KERNEL_CHECK, device_frames, copy);
		verdicts_count();
		if (!good)
			fprintf(stderr, "damage step %u: ", step);
	}
	if (!good)
		fprintf(stderr, "STORE differs: seed %#" PRIx64 " workers %u hint %u\n", seed,
			scene.workers, scene.hint);
	store_free(&store);
	scene_free(&scene);
	return good;
}

/* One gather of random stretches; both regions are compared whole. */
static bool gather_round(uint64_t seed, uint32_t count, const uint8_t *from, const uint8_t *source,
			 uint8_t *to, uint8_t *wanted_bytes, size_t to_bytes)
{
	static struct kernel_copy copies[KERNEL_COPIES_MAX];
	uint64_t random = seed;
	size_t at = 0;

	memset(to, 0xee, to_bytes);
	memset(wanted_bytes, 0xee, to_bytes);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t bytes = (uint32_t)(scene_next(&random) % (i % 8 ? 1600 : 9300));
		const uint64_t begin = scene_next(&random) % (SCENE_BYTES - bytes);

		at += seed & 1 ? scene_next(&random) % 16 : (16 - at % 16) % 16;
		copies[i] = (struct kernel_copy){ from + begin, to + at, bytes, 0 };
		memcpy(wanted_bytes + at, source + begin, bytes);
		at += bytes + GATHER_GUARD;
	}
	return done(kernel_cuda_ops.gather(cuda, copies, count), "gather") &&
	       !memcmp(to, wanted_bytes, to_bytes);
}

/* Memory for the tests beside running kernels: taking or giving some back then would wait for the
 * kernels' end. */
struct beside {
	uint8_t *device_frames, *source, *to, *wanted, *store_data;
	struct store_frame *store_frames;
	size_t to_bytes;
	uint32_t *stop;
};

static bool beside_alloc(struct beside *beside, uint8_t *device_frames)
{
	beside->device_frames = device_frames;
	beside->to_bytes = (size_t)KERNEL_COPIES_MAX * (FRAME_MAX_BYTES / 3);
	beside->source = pinned_alloc(SCENE_BYTES);
	beside->to = pinned_alloc(beside->to_bytes);
	beside->wanted = plain_alloc(beside->to_bytes);
	beside->store_data = pinned_alloc(BIG_STORE_BYTES);
	beside->store_frames = pinned_alloc(sizeof(*beside->store_frames));
	beside->stop = pinned_alloc(sizeof(*beside->stop));
	return beside->source && beside->to && beside->wanted && beside->store_data &&
	       beside->store_frames && beside->stop;
}

static void beside_free(struct beside *beside)
{
	pinned_free(beside->source);
	pinned_free(beside->to);
	free(beside->wanted);
	pinned_free(beside->store_data);
	pinned_free(beside->store_frames);
	pinned_free(beside->stop);
}

/* gather() from GPU and pinned memory. */
static bool test_gather(const struct beside *beside, uint64_t seed)
{
	const struct kernel_ops *ops = &kernel_cuda_ops;
	struct kernel_copy too_many = { 0 };
	uint64_t random = seed;

	for (size_t i = 0; i < SCENE_BYTES; i += 8)
		memcpy(beside->source + i, &(uint64_t){ scene_next(&random) }, 8);
	if (!done(ops->copy_in(cuda, beside->device_frames, beside->source, SCENE_BYTES),
		  "copy_in"))
		return false;
	for (uint32_t round = 0; round < 8; round++) {
		const uint32_t count = round < 4 ? KERNEL_COPIES_MAX : 1u << round;
		const uint8_t *from = round & 2 ? beside->source : beside->device_frames;

		if (gather_round(seed + round, count, from, beside->source, beside->to,
				 beside->wanted, beside->to_bytes))
			continue;
		fprintf(stderr, "GATHER %u differs: seed %#" PRIx64 "\n", round, seed);
		return false;
	}
	if (ops->gather(cuda, NULL, 0) || !ops->gather(cuda, &too_many, KERNEL_COPIES_MAX + 1)) {
		fprintf(stderr, "gather of none, or of too many\n");
		return false;
	}
	return true;
}

/* How long a save keeps its thread: no judgement, only said. */
static void gather_time(const struct beside *beside, uint32_t count)
{
	static struct kernel_copy copies[KERNEL_COPIES_MAX];
	const uint32_t times = 200;
	struct timespec begin, end;

	for (uint32_t i = 0; i < count; i++)
		copies[i] = (struct kernel_copy){ beside->device_frames + i * 8192 + 128,
						  beside->to + i * 2048, 1514, 0 };
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint32_t n = 0; n < times; n++)
		kernel_cuda_ops.gather(cuda, copies, count);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("gather of %u frames of 1514 bytes beside running kernels: %.1f us\n", count,
	       ((double)(end.tv_sec - begin.tv_sec) * 1e6 +
		(double)(end.tv_nsec - begin.tv_nsec) / 1e3) /
		       times);
}

/* A store of several hundred MiB is uploaded while another kernel runs. */
static bool big_store_start(const struct beside *beside, struct kernel_job job,
			    struct kernel_workers **workers)
{
	const struct frame_store_view view = {
		.data = beside->store_data,
		.frames = beside->store_frames,
		.count = 1,
		.data_bytes = BIG_STORE_BYTES,
		.resident = 1,
	};

	beside->store_frames->at = BIG_STORE_BYTES - 64;
	beside->store_frames->len = 60;
	job.role = KERNEL_WRITE;
	job.store = &view;
	return done(kernel_cuda_ops.start(cuda, &job, workers), "start with a big store");
}

static bool test_beside(uint8_t *device_frames, uint64_t seed)
{
	const struct kernel_ops *ops = &kernel_cuda_ops;
	struct kernel_workers *check = NULL, *write = NULL;
	const struct frame_config frame = { .format = FRAME_ETHERNET };
	struct kernel_job job = { .role = KERNEL_CHECK, .ring_count = 1 };
	struct beside beside;
	struct scene_ring ring;
	bool good = beside_alloc(&beside, device_frames);

	if (!good) {
		fprintf(stderr, "no memory\n");
		return false;
	}
	memset(&scene, 0, sizeof(scene));
	scene.ring_bursts = 8;
	scene.ring_descs = 2048;
	scene_ring_create(&ring, &scene, &pinned, device_frames, beside.stop, KERNEL_CHECK);
	frame_layout_init(&job.layout, &frame);
	job.rings = &ring.view;
	good = done(ops->start(cuda, &job, &check), "start of check") &&
	       big_store_start(&beside, job, &write) && test_gather(&beside, seed);
	for (uint32_t count = 1; good && count <= KERNEL_COPIES_MAX; count *= 8)
		gather_time(&beside, count);
	__atomic_store_n(beside.stop, 1, __ATOMIC_RELAXED);
	if (check)
		good = done(ops->join(check, 5000), "join of check") && good;
	if (write)
		good = done(ops->join(write, 5000), "join of write") && good;
	scene_ring_free(&ring, &pinned);
	beside_free(&beside);
	return good;
}

static bool rounds_play(uint32_t rounds, uint64_t seed, uint8_t *device_frames)
{
	uint8_t *copy = aligned_alloc(4096, SCENE_BYTES);
	bool good = copy != NULL;

	for (uint32_t round = 0; round < rounds && good; round++) {
		for (uint32_t kind = PATTERN_NONE; kind < PATTERN_FILE && good; kind++) {
			const bool rules = (seed & 3) == 0;

			good = custom_round(seed++, kind, false, rules, device_frames);
			if (pattern_is_prbs(kind))
				good = good &&
				       custom_round(seed++, kind, true, !rules, device_frames) &&
				       custom_round(seed++, kind, true, rules, device_frames);
			good = good && own_round(seed++, kind, kind % 4, device_frames, copy);
		}
		for (uint32_t n = 0; n < 6 && good; n++)
			good = store_round(seed++, device_frames, copy);
	}
	free(copy);
	return good;
}

int main(int argc, char **argv)
{
	const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : DEFAULT_ROUNDS;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) << 20;
	uint8_t *device_frames = NULL;
	bool good;
	int ret = pair_open(&device_frames);

	if (ret)
		return ret;
	setvbuf(stdout, NULL, _IOLBF, 0); /* under a sanitizer a test may be ended from outside */
	printf("seed %#" PRIx64 "\n", seed);
	good = test_beside(device_frames, seed) && rounds_play(rounds, seed, device_frames);
	pair_close(device_frames);
	printf("frames by verdict:");
	for (uint32_t v = 0; v < FRAME_VERDICTS; v++) {
		printf(" %" PRIu64, verdicts[v]);
		/* STALE is of test_kernel_more_cuda: memory does not change here */
		if (!verdicts[v] && rounds && v != FRAME_DAMAGED_STALE) {
			fprintf(stderr, "\nno frame with verdict %u was compared\n", v);
			good = false;
		}
	}
	printf("\n%s: kernel and CPU backend compared on %" PRIu64 " frames written and %" PRIu64
	       " runs\n",
	       good ? "PASS" : "FAIL", frames_compared, records_compared);
	return good ? 0 : 1;
}
