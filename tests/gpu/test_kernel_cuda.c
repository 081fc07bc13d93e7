/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The CUDA kernels against the CPU backend, on the same random scenes: frames written must be equal
 * byte for byte, runs bit for bit. Usage: test_kernel_cuda [ROUNDS [SEED]]. 77 without a GPU.
 */
#include "kernel_pair.h"

#define DEFAULT_ROUNDS 3u
#define LAYOUTS 4u

/* One scene: written, checked whole, then with little and with much damage. */
static bool round_play(uint64_t seed, enum pattern_kind kind, uint32_t shape,
		       uint8_t *device_frames, uint8_t *copy)
{
	bool good = false;

	if (scene_make(&scene, seed, kind, shape)) {
		fprintf(stderr, "the scene could not be made\n");
		return false;
	}
	if (!compare_written(device_frames, copy)) {
		fprintf(stderr, "WRITE differs");
		goto out;
	}
	for (uint32_t one_in = 0; one_in <= 48; one_in += 16) {
		if (one_in)
			scene_spoil(&scene, 1 + one_in % 47);
		if (!compare_checked(device_frames)) {
			fprintf(stderr, "CHECK differs (damage step %u)", one_in);
			goto out;
		}
	}
	good = true;
out:
	if (!good)
		fprintf(stderr,
			": seed %#" PRIx64 " pattern %s layout %u rings %u workers %u bursts %u "
			"descs %u hint %u restart %u\n",
			seed, pattern_name(kind), shape, scene.rings, scene.workers,
			scene.ring_bursts, scene.ring_descs, scene.hint, scene.pattern.restart);
	scene_free(&scene);
	return good;
}

/* Both roles at once with copies beside them, as in a loopback; too many blocks are refused. */
static bool test_together(uint8_t *device_frames)
{
	const struct kernel_ops *ops = &kernel_cuda_ops;
	struct kernel_workers *check = NULL, *write = NULL, *third = NULL;
	const struct frame_config frame = { .format = FRAME_ETHERNET };
	uint32_t *stop = pinned_alloc(sizeof(*stop));
	struct kernel_job job = { .role = KERNEL_CHECK, .ring_count = 1 };
	uint8_t byte[3] = { 0, 0, 0 };
	struct scene_ring ring;
	bool good;

	memset(&scene, 0, sizeof(scene));
	scene.ring_bursts = 8;
	scene.ring_descs = 2048;
	scene_ring_create(&ring, &scene, &pinned, device_frames, stop, KERNEL_CHECK);
	frame_layout_init(&job.layout, &frame);
	job.rings = &ring.view;
	good = done(ops->start(cuda, &job, &check), "start of check");
	job.role = KERNEL_WRITE;
	good = good && done(ops->start(cuda, &job, &write), "start of write");
	good = good && done(ops->fill(cuda, device_frames, 0x3c, 1000001), "fill beside kernels");
	good = good && done(ops->copy_out(cuda, byte, device_frames + 999999, 3), "copy_out") &&
	       byte[0] == 0x3c && byte[1] == 0x3c;
	good = good && done(ops->flush(cuda), "flush");
	if (good)
		printf("defaults: %u blocks check, %u write\n", ops->workers_per_ring(check),
		       ops->workers_per_ring(write));
	job.workers_per_ring = 1024;
	if (good && ops->start(cuda, &job, &third) == 0) {
		fprintf(stderr, "1024 more blocks were not refused\n");
		good = false;
	} else if (good) {
		printf("refused as it should: %s\n", kernel_error());
	}
	if (good && ops->join(check, 50) == 0) {
		fprintf(stderr, "the kernel left without being told to\n");
		return false;
	}
	__atomic_store_n(stop, 1, __ATOMIC_RELAXED);
	if (check)
		good = done(ops->join(check, 5000), "join of check") && good;
	if (write)
		good = done(ops->join(write, 5000), "join of write") && good;
	scene_ring_free(&ring, &pinned);
	pinned_free(stop);
	return good;
}

static void released(void *argument)
{
	__atomic_fetch_add((int *)argument, 1, __ATOMIC_RELEASE);
}

static bool test_after(void)
{
	cudaStream_t stream;
	int calls = 0;
	bool good;

	if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
		return false;
	good = done(kernel_cuda_ops.after(cuda, stream, released, &calls), "after") &&
	       cudaStreamSynchronize(stream) == cudaSuccess &&
	       __atomic_load_n(&calls, __ATOMIC_ACQUIRE) == 1;
	cudaStreamDestroy(stream);
	if (!good)
		fprintf(stderr, "after() did not call back\n");
	return good;
}

static bool test_refusals(void)
{
	struct kernel_device *none;

	if (kernel_cuda_ops.open(4711, &none) == 0) {
		fprintf(stderr, "GPU 4711 was opened\n");
		return false;
	}
	printf("refused as it should: %s\n", kernel_error());
	return true;
}

static bool rounds_play(uint32_t rounds, uint64_t seed, uint8_t *device_frames)
{
	uint8_t *copy = aligned_alloc(4096, SCENE_BYTES);
	bool good = copy != NULL;

	for (uint32_t round = 0; round < rounds && good; round++) {
		for (uint32_t kind = PATTERN_NONE; kind < PATTERN_KINDS && good; kind++)
			for (uint32_t shape = 0; shape < LAYOUTS && good; shape++)
				good = round_play(seed++, (enum pattern_kind)kind, shape,
						  device_frames, copy);
		good = good && round_play(seed++, PATTERN_COUNTER8, 4, device_frames, copy);
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
	good = test_refusals() && test_together(device_frames) && test_after() &&
	       rounds_play(rounds, seed, device_frames);
	pair_close(device_frames);
	printf("%s: kernel and CPU backend compared on %" PRIu64 " frames written and %" PRIu64
	       " runs\n",
	       good ? "PASS" : "FAIL", frames_compared, records_compared);
	return good ? 0 : 1;
}
