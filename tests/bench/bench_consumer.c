/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast a back end checks or writes frames that lie in its memory already: one CPU thread
 * publishes bursts into rings and collects results, no port. Every frame is counted as validated
 * only when its burst came back as one run of valid frames.
 *
 * bench_consumer [-o cuda|host] [-w] [-m device|pinned] [-s FRAME_BYTES] [-k BLOCKS] [-b BURST]
 *                [-r RINGS] [-t MILLISECONDS] [-p PATTERN] [-S HEAD_BYTES]
 * -w: write instead of check. -S: header-data split, so many first bytes in host memory. Without -s, -k or -b: a table over usual ones. Frame bytes are with
 * FCS, and so are the Gb/s.
 */
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef GDRCAP_WITH_CUDA
#include <cuda_runtime_api.h>
#endif

#include "kernels.h"

#define RINGS_MAX 16u
#define RING_BURSTS 1024u
#define REGION_BYTES ((size_t)256 << 20)
#define STREAM 7u
#define HEAD_SHIFT 7u /* log2 of FRAME_HEAD_BYTES_MAX */

struct options {
	const struct kernel_ops *ops;
	const char *memory, *pattern;
	enum kernel_role role;
	uint32_t bytes, blocks, burst, rings, ms, split;
};

struct ring {
	struct burst_ring_view view;
	struct frame_desc *desc, *head_desc;
	struct burst_ready *ready;
	struct burst_result *result;
	struct burst_order *order;
	uint64_t published, collected;
	uint32_t first_slot, slots;
};

struct bench {
	struct options options;
	struct kernel_device *device;
	struct frame_layout layout;
	struct pattern_plan plan;
	uint8_t *frames, *heads; /* heads: NULL, or slots of 2^HEAD_SHIFT bytes, one a frame's slot */
	uint32_t slot_shift;
	uint32_t *stop;
	struct ring ring[RINGS_MAX];
	uint64_t good, bad; /* frames */
};

static void die(const char *what)
{
	fprintf(stderr, "bench_consumer: %s: %s\n", what, kernel_error());
	exit(1);
}

static bool on_cuda(const struct bench *bench)
{
	return bench->options.ops != &kernel_host_ops;
}

/* Memory that both sides see, or the device's own. */
static void *memory_alloc(const struct bench *bench, size_t bytes, bool device)
{
	void *memory = NULL;

#ifdef GDRCAP_WITH_CUDA
	if (on_cuda(bench)) {
		const cudaError_t error =
			device ? cudaMalloc(&memory, bytes) :
				 cudaHostAlloc(&memory, bytes, cudaHostAllocMapped);

		if (error != cudaSuccess) {
			fprintf(stderr, "bench_consumer: %zu MiB: %s\n", bytes >> 20,
				cudaGetErrorString(error));
			exit(1);
		}
		if (!device)
			memset(memory, 0, bytes);
		return memory;
	}
#endif
	memory = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	if (!memory)
		exit(1);
	memset(memory, 0, bytes);
	return memory;
}

static void memory_free(const struct bench *bench, void *memory, bool device)
{
#ifdef GDRCAP_WITH_CUDA
	if (on_cuda(bench)) {
		if (device)
			cudaFree(memory);
		else
			cudaFreeHost(memory);
		return;
	}
#endif
	free(memory);
}

static void ring_create(struct bench *bench, uint32_t r)
{
	struct ring *ring = &bench->ring[r];
	const uint32_t slots = (uint32_t)(REGION_BYTES >> bench->slot_shift) / bench->options.rings;
	const size_t descs = (size_t)RING_BURSTS * BURST_FRAMES_MAX;

	memset(ring, 0, sizeof(*ring));
	ring->desc = memory_alloc(bench, descs * sizeof(*ring->desc), false);
	ring->ready = memory_alloc(bench, RING_BURSTS * sizeof(*ring->ready), false);
	ring->result = memory_alloc(bench, RING_BURSTS * sizeof(*ring->result), false);
	ring->order = memory_alloc(bench, RING_BURSTS * sizeof(*ring->order), false);
	ring->view.overflow = memory_alloc(bench, descs * sizeof(struct frame_run), false);
	ring->slots = slots / bench->options.burst * bench->options.burst;
	ring->first_slot = r * slots;
	ring->view.desc = ring->desc;
	ring->view.ready = ring->ready;
	ring->view.result = ring->result;
	ring->view.order = ring->order;
	ring->view.stop = bench->stop;
	ring->view.frames = bench->frames;
	ring->view.frames_bytes = REGION_BYTES;
	ring->view.desc_mask = (uint32_t)descs - 1;
	ring->view.burst_mask = RING_BURSTS - 1;
	ring->view.slot_shift = bench->slot_shift;
	if (!bench->heads)
		return;
	ring->head_desc = memory_alloc(bench, descs * sizeof(*ring->head_desc), false);
	ring->view.head_desc = ring->head_desc;
	ring->view.heads = bench->heads;
	ring->view.heads_bytes = REGION_BYTES >> bench->slot_shift << HEAD_SHIFT;
	ring->view.head_shift = HEAD_SHIFT;
}

static void ring_free(struct bench *bench, uint32_t r)
{
	struct ring *ring = &bench->ring[r];

	memory_free(bench, ring->desc, false);
	memory_free(bench, ring->ready, false);
	memory_free(bench, ring->result, false);
	memory_free(bench, ring->order, false);
	memory_free(bench, ring->view.overflow, false);
	if (ring->head_desc)
		memory_free(bench, ring->head_desc, false);
}

static uint32_t burst_bits(void)
{
	return (uint32_t)__builtin_ctz(RING_BURSTS);
}

/* A whole frame's descriptor becomes that of its rest, which stays where it is. */
static void frame_part(const struct bench *bench, struct frame_desc *desc, struct frame_desc *head)
{
	const uint16_t part =
		(uint16_t)(desc->len < bench->options.split ? desc->len : bench->options.split);

	*head = (struct frame_desc){ .slot = desc->slot, .len = part };
	desc->len = (uint16_t)(desc->len - part);
	desc->offset = part;
}

/* The ring's slots in turn: frame n of the ring is always in slot n modulo their number. */
static void ring_publish(struct bench *bench, struct ring *ring)
{
	const uint32_t burst = bench->options.burst, at = ring->published & ring->view.burst_mask;
	const uint64_t frame = ring->published * burst % ring->slots;
	const uint32_t first = (uint32_t)(ring->published * burst);
	const uint16_t len = (uint16_t)(bench->options.bytes - FRAME_FCS_BYTES);

	for (uint32_t i = 0; i < burst; i++) {
		struct frame_desc *desc = &ring->desc[(first + i) & ring->view.desc_mask];

		desc->slot = ring->first_slot + (uint32_t)frame + i;
		desc->len = len;
		desc->offset = 0;
		if (ring->head_desc)
			frame_part(bench, desc,
				   &ring->head_desc[(first + i) & ring->view.desc_mask]);
	}
	if (bench->options.role == KERNEL_WRITE)
		ring->order[at] = (struct burst_order){
			.sequence = frame,
			.position = frame * frame_payload_bytes(&bench->layout, len),
			.stream = STREAM,
		};
	__atomic_store_n(&ring->ready[at].word, burst_word(ring->published, burst_bits(), burst, first),
			 __ATOMIC_RELEASE);
	ring->published++;
}

static void ring_collect(struct bench *bench, struct ring *ring)
{
	const uint32_t burst = bench->options.burst;

	for (; ring->collected < ring->published; ring->collected++) {
		const struct burst_result *result =
			&ring->result[ring->collected & ring->view.burst_mask];
		const uint64_t done = __atomic_load_n(&result->done, __ATOMIC_ACQUIRE);
		bool good;

		if (!burst_word_is(done, ring->collected, burst_bits()))
			break;
		good = bench->options.role == KERNEL_WRITE ||
		       (burst_word_count(done) == 1 && result->run.verdict == FRAME_VALID &&
			result->run.count == burst && result->run.stream == STREAM);
		bench->good += good ? burst : 0;
		bench->bad += good ? 0 : burst;
	}
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct kernel_workers *bench_start(struct bench *bench)
{
	struct burst_ring_view views[RINGS_MAX];
	struct kernel_job job = {
		.role = bench->options.role,
		.rings = views,
		.ring_count = bench->options.rings,
		.workers_per_ring = bench->options.blocks,
		.frame_bytes_hint = bench->options.bytes,
		.layout = bench->layout,
		.plan = bench->plan,
	};
	struct kernel_workers *workers;

	*bench->stop = 0;
	bench->good = bench->bad = 0;
	for (uint32_t r = 0; r < bench->options.rings; r++) {
		ring_create(bench, r);
		views[r] = bench->ring[r].view;
	}
	if (bench->options.ops->start(bench->device, &job, &workers))
		die("start");
	return workers;
}

static void bench_stop(struct bench *bench, struct kernel_workers *workers)
{
	__atomic_store_n(bench->stop, 1, __ATOMIC_RELAXED);
	if (bench->options.ops->join(workers, 10000))
		die("join");
	for (uint32_t r = 0; r < bench->options.rings; r++)
		ring_free(bench, r);
}

/* Plays until `seconds` have passed, or with 0 until each slot was used once. Seconds taken. */
static double bench_play(struct bench *bench, struct kernel_workers *workers, double seconds)
{
	const double begin = now();
	double end = begin;
	uint64_t left = 1, checks = 0;

	while (left) {
		const bool more = !seconds || end - begin < seconds;

		left = 0;
		for (uint32_t r = 0; r < bench->options.rings; r++) {
			struct ring *ring = &bench->ring[r];
			const uint64_t last =
				seconds ? UINT64_MAX : ring->slots / bench->options.burst;

			for (uint32_t n = 0; n < 16 && more && ring->published < last &&
					     ring->published - ring->collected < RING_BURSTS; n++)
				ring_publish(bench, ring);
			ring_collect(bench, ring);
			left += ring->published - ring->collected +
				(more && ring->published < last);
		}
		if (!on_cuda(bench))
			sched_yield();
		if (++checks % 64 == 0) {
			end = now();
			if (bench->options.ops->running(workers) < 0)
				die("running");
		}
	}
	return now() - begin;
}

/* Copies what each frame begins with into host memory. */
static void heads_make(struct bench *bench)
{
	const uint32_t slots = (uint32_t)(REGION_BYTES >> bench->slot_shift);
	uint8_t *copy = malloc(REGION_BYTES);

	bench->heads = memory_alloc(bench, (size_t)slots << HEAD_SHIFT, false);
	if (!copy || bench->options.ops->copy_out(bench->device, copy, bench->frames, REGION_BYTES))
		die("copy_out");
	for (size_t slot = 0; slot < slots; slot++)
		memcpy(bench->heads + (slot << HEAD_SHIFT), copy + (slot << bench->slot_shift),
		       bench->options.split);
	free(copy);
}

/* Fills the region with what is to be checked. */
static void bench_prepare(struct bench *bench)
{
	const struct options kept = bench->options;
	struct kernel_workers *workers;

	bench->options.role = KERNEL_WRITE;
	bench->options.blocks = 0;
	workers = bench_start(bench);
	bench_play(bench, workers, 0);
	bench_stop(bench, workers);
	bench->options = kept;
	if (kept.split && kept.role == KERNEL_CHECK)
		heads_make(bench);
}

static void bench_run(struct bench *bench)
{
	const struct options *options = &bench->options;
	struct kernel_workers *workers;
	double seconds, frames;
	uint32_t blocks;

	bench->slot_shift = 8;
	while ((1u << bench->slot_shift) < options->bytes)
		bench->slot_shift++;
	bench_prepare(bench);
	workers = bench_start(bench);
	blocks = options->ops->workers_per_ring(workers);
	seconds = bench_play(bench, workers, options->ms / 1e3);
	bench_stop(bench, workers);
	if (bench->heads)
		memory_free(bench, bench->heads, false);
	bench->heads = NULL;
	frames = (double)(bench->good + bench->bad);
	printf("%-5s %5u B  %2u ring%c x %3u blocks  burst %3u  %9.2f Mpps  %9.1f Gb/s  %llu %s, "
	       "%llu not\n",
	       options->role == KERNEL_CHECK ? "check" : "write", options->bytes, options->rings,
	       options->rings == 1 ? ' ' : 's', blocks, options->burst, frames / seconds / 1e6,
	       frames * options->bytes * 8 / seconds / 1e9, (unsigned long long)bench->good,
	       options->role == KERNEL_CHECK ? "validated" : "written",
	       (unsigned long long)bench->bad);
	fflush(stdout);
	if (bench->bad || !bench->good)
		exit(1);
}

static void bench_table(struct bench *bench)
{
	static const uint32_t sizes[] = { 64, 512, 1500, 9000 };
	static const uint32_t blocks[] = { 1, 2, 4, 8, 16, 32 };
	static const uint32_t bursts[] = { 32, 64, 256 };
	const struct options given = bench->options;

	for (uint32_t s = 0; s < (given.bytes ? 1 : 4); s++) {
		for (uint32_t b = 0; b < (given.burst ? 1 : 3); b++) {
			for (uint32_t k = 0; k < (given.blocks ? 1 : on_cuda(bench) ? 6 : 2); k++) {
				bench->options.bytes = given.bytes ? given.bytes : sizes[s];
				bench->options.burst = given.burst ? given.burst : bursts[b];
				bench->options.blocks = given.blocks ? given.blocks : blocks[k];
				bench_run(bench);
			}
		}
	}
	bench->options = given;
}

static const struct kernel_ops *ops_named(const char *name)
{
#ifdef GDRCAP_WITH_CUDA
	if (!strcmp(name, "cuda"))
		return &kernel_cuda_ops;
#endif
	if (!strcmp(name, "host"))
		return &kernel_host_ops;
	fprintf(stderr, "bench_consumer: no back end \"%s\" in this build\n", name);
	exit(2);
}

static void options_read(struct options *options, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "o:wm:s:k:b:r:t:p:S:")) != -1) {
		const uint32_t number = optarg ? (uint32_t)strtoul(optarg, NULL, 0) : 0;

		switch (option) {
		case 'o': options->ops = ops_named(optarg); break;
		case 'w': options->role = KERNEL_WRITE; break;
		case 'm': options->memory = optarg; break;
		case 's': options->bytes = number; break;
		case 'k': options->blocks = number; break;
		case 'b': options->burst = number; break;
		case 'r': options->rings = number; break;
		case 't': options->ms = number; break;
		case 'p': options->pattern = optarg; break;
		case 'S': options->split = number; break;
		default: exit(2);
		}
	}
	if (options->burst > BURST_FRAMES_MAX || !options->rings || options->rings > RINGS_MAX ||
	    (options->bytes &&
	     (options->bytes < FRAME_MIN_BYTES || options->bytes > FRAME_MAX_BYTES)) ||
	    !options->ms || options->split > FRAME_HEAD_BYTES_MAX) {
		fprintf(stderr, "bench_consumer: a number is out of range\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	static struct bench bench = {
		.options = { .ops = &kernel_host_ops, .memory = "device", .pattern = "prbs31",
			     .role = KERNEL_CHECK, .rings = 1, .ms = 500 },
	};
	const struct frame_config frame = { .format = FRAME_ETHERNET };
	struct pattern_config pattern = { .invert = -1 };
	struct kernel_info info;
	bool device;

	options_read(&bench.options, argc, argv);
	if (pattern_from_name(bench.options.pattern, &pattern.kind) ||
	    pattern_plan_init(&bench.plan, &pattern) || frame_layout_init(&bench.layout, &frame)) {
		fprintf(stderr, "bench_consumer: pattern \"%s\" cannot be used here\n",
			bench.options.pattern);
		return 2;
	}
	if (bench.options.ops->open(0, &bench.device))
		die("open");
	bench.options.ops->info(bench.device, &info);
	device = !strcmp(bench.options.memory, "device");
	printf("%s: %s, frames in %s memory, %s\n", bench.options.ops->name, info.name,
	       on_cuda(&bench) ? bench.options.memory : "host", bench.options.pattern);
	bench.frames = memory_alloc(&bench, REGION_BYTES, device);
	bench.stop = memory_alloc(&bench, sizeof(*bench.stop), false);
	bench_table(&bench);
	memory_free(&bench, bench.stop, false);
	memory_free(&bench, bench.frames, device);
	bench.options.ops->close(bench.device);
	pattern_plan_free(&bench.plan);
	return 0;
}
