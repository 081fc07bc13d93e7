/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PUBLISH/TAKE and DONE/COLLECT between a CPU thread and running kernels: the checker's own take,
 * work and done warps, and the consumer of gdrcap_device.cuh; INLINE and PLAIN ("told"). Payload in
 * pinned memory, or in GPU memory that a copy engine writes before PUBLISH and reads after COLLECT.
 * Usage: test_ring_litmus_cuda [BURSTS]. 77 without a GPU.
 *
 * A copy of the headers with st.relaxed in place of st.release, or ld.relaxed in place of
 * ld.acquire, must make it fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../unit/ring_litmus.h"
#include "gdrcap_device.cuh"
#include "kernels/cuda/records.cuh"

#define PAYLOAD_WORDS (LITMUS_FRAMES * LITMUS_WORDS)
#define HANG_SECONDS 60

static void check(cudaError_t error, const char *what)
{
	if (error != cudaSuccess) {
		fprintf(stderr, "FAIL: %s: %s\n", what, cudaGetErrorString(error));
		exit(1);
	}
}
#define CHECK(call) check(call, #call)

/* Threads 0..63: one payload word each, checked and overwritten. */
__device__ uint32_t payload_take(const struct litmus &ring, uint64_t burst, uint32_t thread)
{
	uint64_t *frame;
	uint32_t wrong;

	if (thread >= PAYLOAD_WORDS)
		return 0;
	frame = litmus_frame(&ring, burst, thread / LITMUS_WORDS);
	wrong = frame[thread % LITMUS_WORDS] != litmus_value(burst, thread % LITMUS_WORDS, 0);
	frame[thread % LITMUS_WORDS] = litmus_value(burst, thread % LITMUS_WORDS, 1);
	return wrong;
}

/* The same words, which stay as they are: what they are like goes into an outcome that is told. */
__device__ uint32_t payload_look(const struct litmus &ring, uint64_t burst, uint32_t thread)
{
	const uint32_t w = thread % LITMUS_WORDS;

	if (thread >= PAYLOAD_WORDS)
		return 0;
	return *(volatile uint64_t *)&litmus_frame(&ring, burst, thread / LITMUS_WORDS)[w] !=
	       litmus_value(burst, w, 0);
}

/* What the take warp brought is this burst's. */
__device__ uint32_t burst_in_wrong(const struct burst_in &in, bool order)
{
	uint32_t wrong = in.count != LITMUS_FRAMES || in.first != litmus_first(in.burst);

	for (uint32_t i = 0; i < LITMUS_FRAMES; i++)
		wrong += litmus_wrong_desc(in.burst, i, &in.desc[i]);
	if (!order)
		return wrong;
	return wrong + (in.request.sequence != litmus_value(in.burst, 100, 0)) +
	       (in.request.time_ns != litmus_value(in.burst, 101, 0));
}

/* The machinery of check.cu and write.cu. */
__global__ void ring_kernel(const struct device_job *job, struct litmus ring)
{
	__shared__ struct ring_shared s;
	__shared__ uint32_t wrong[GROUPS_MAX];
	struct work_group group;

	if (threadIdx.x < GROUPS_MAX)
		wrong[threadIdx.x] = 0;
	if (!ring_enter(s, job, true))
		return;
	group = work_group_of(s);
	ring_run_groups(s, group, [&](const struct burst_in &in, uint32_t thread) -> uint32_t {
		uint32_t mine = payload_take(ring, in.burst, thread);

		if (thread == 0)
			mine += burst_in_wrong(in, true);
		if (mine)
			atomicAdd(&wrong[group.index], mine);
		barrier_sync(BARRIER_WORK + group.index, s.work_threads);
		if (thread == 0)
			litmus_answer(&ring, in.burst, atomicExch(&wrong[group.index], 0));
		return 0; /* as a writer: its done word in lap 65535 is 0 */
	});
}

/* That of check.cu where small bursts are told: descriptors beside the ready word, outcomes of
 * words that nobody orders. Some are told as other bursts are, between them. */
__global__ void told_kernel(const struct device_job *job, struct litmus ring)
{
	__shared__ struct ring_shared s;
	__shared__ uint32_t wrong[GROUPS_MAX];
	struct work_group group;

	if (threadIdx.x < GROUPS_MAX)
		wrong[threadIdx.x] = 0;
	if (!ring_enter(s, job, false))
		return;
	group = work_group_of(s);
	ring_run_groups(s, group, [&](const struct burst_in &in, uint32_t thread) -> uint32_t {
		uint32_t mine = payload_look(ring, in.burst, thread);

		if (thread == 0)
			mine += burst_in_wrong(in, false);
		if (mine)
			atomicAdd(&wrong[group.index], mine);
		barrier_sync(BARRIER_WORK + group.index, s.work_threads);
		mine = wrong[group.index];
		barrier_sync(BARRIER_WORK + group.index, s.work_threads);
		if (thread == 0)
			wrong[group.index] = 0;
		if (in.burst % 5 == 0) {
			if (thread == 0)
				litmus_answer(&ring, in.burst, mine);
			return 1;
		}
		if (thread < 32)
			plain_store(plain_to_of(s, in.burst), litmus_plain(in.burst, mine));
		return RECORDS_PUBLISHED;
	});
}

/* An embedder's consumer. */
__global__ void queue_kernel(struct gdrcap_gpu_queue queue, struct litmus ring)
{
	__shared__ uint32_t wrong;

	if (threadIdx.x == 0)
		wrong = 0;
	for (uint64_t seq = blockIdx.x;; seq += gridDim.x) {
		struct gdrcap_batch batch;
		uint32_t mine;
		int got;

		while ((got = gdrcap_gpu_try_next(queue, seq, &batch)) == 0)
			__nanosleep(100);
		if (got < 0)
			return;
		mine = payload_take(ring, seq, threadIdx.x);
		if (threadIdx.x == 0)
			mine += litmus_wrong_words(&ring, seq) + (batch.count != LITMUS_FRAMES) +
				(batch.seq != seq);
		if (threadIdx.x < LITMUS_FRAMES)
			mine += batch.pkts[threadIdx.x].slot !=
				(uint32_t)litmus_value(seq, threadIdx.x, 0);
		if (mine)
			atomicAdd(&wrong, mine);
		__syncthreads();
		if (threadIdx.x == 0)
			litmus_answer(&ring, seq, atomicExch(&wrong, 0));
		gdrcap_gpu_release(queue, seq);
	}
}

/* ---- the producer ---- */

struct bench {
	struct litmus ring;
	uint64_t *copy; /* device payload: its host copy; pinned payload: the payload */
	size_t payload_bytes;
	bool device_payload, told;
	cudaStream_t kernel_stream, copy_stream;
	uint64_t wrong, plain; /* values; bursts */
};

template <typename T> static T *pinned(size_t count)
{
	void *memory;

	CHECK(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped));
	memset(memory, 0, count * sizeof(T));
	return (T *)memory;
}

static void bench_create(struct bench *bench, uint32_t bits, bool device_payload)
{
	const size_t depth = (size_t)1 << bits;
	struct litmus *ring = &bench->ring;

	memset(bench, 0, sizeof(*bench));
	ring->desc = pinned<struct frame_desc>(depth * LITMUS_FRAMES);
	ring->ready = pinned<struct burst_ready>(depth);
	ring->beside = pinned<struct burst_beside>(depth);
	ring->result = pinned<struct burst_result>(depth);
	ring->records = pinned<struct frame_record>(depth * LITMUS_FRAMES);
	ring->request = pinned<struct tx_request>(depth);
	ring->stop = pinned<uint32_t>(1);
	ring->burst_mask = (uint32_t)depth - 1;
	ring->burst_bits = bits;
	bench->payload_bytes = depth * PAYLOAD_WORDS * sizeof(uint64_t);
	bench->device_payload = device_payload;
	bench->copy = pinned<uint64_t>(depth * PAYLOAD_WORDS);
	ring->frames = bench->copy;
	if (device_payload)
		CHECK(cudaMalloc((void **)&ring->frames, bench->payload_bytes));
	CHECK(cudaStreamCreateWithFlags(&bench->kernel_stream, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&bench->copy_stream, cudaStreamNonBlocking));
}

static void bench_free(struct bench *bench)
{
	if (bench->device_payload)
		CHECK(cudaFree(bench->ring.frames));
	CHECK(cudaFreeHost(bench->copy));
	CHECK(cudaFreeHost(bench->ring.desc));
	CHECK(cudaFreeHost(bench->ring.ready));
	CHECK(cudaFreeHost(bench->ring.beside));
	CHECK(cudaFreeHost(bench->ring.result));
	CHECK(cudaFreeHost(bench->ring.records));
	CHECK(cudaFreeHost(bench->ring.request));
	CHECK(cudaFreeHost(bench->ring.stop));
	CHECK(cudaStreamDestroy(bench->kernel_stream));
	CHECK(cudaStreamDestroy(bench->copy_stream));
}

static uint64_t *payload_of(const struct bench *bench, uint64_t burst)
{
	return bench->copy + (burst & bench->ring.burst_mask) * PAYLOAD_WORDS;
}

static void payload_fill(struct bench *bench, uint64_t burst)
{
	for (uint32_t i = 0; i < PAYLOAD_WORDS; i++)
		payload_of(bench, burst)[i] = litmus_value(burst, i % LITMUS_WORDS, 0);
}

static void payload_check(struct bench *bench, uint64_t burst)
{
	for (uint32_t i = 0; i < PAYLOAD_WORDS; i++)
		bench->wrong += payload_of(bench, burst)[i] !=
				litmus_value(burst, i % LITMUS_WORDS, !bench->told);
}

static void publish(struct bench *bench, uint64_t burst)
{
	const struct litmus *ring = &bench->ring;

	litmus_fill(ring, burst);
	burst_publish(&ring->ready[burst & ring->burst_mask],
		      bench->told && burst % 3 ? &ring->beside[burst & ring->burst_mask] : NULL,
		      &ring->desc[litmus_first(burst) & litmus_desc_mask(ring)], burst,
		      ring->burst_bits, LITMUS_FRAMES, litmus_first(burst));
}

static void collect(struct bench *bench, uint64_t burst)
{
	const struct litmus *ring = &bench->ring;
	const struct burst_result *result = &ring->result[burst & ring->burst_mask];
	const time_t until = time(NULL) + HANG_SECONDS;

	for (uint32_t polls = 1; !burst_is_done(result, burst, ring->burst_bits); polls++) {
		if (polls % 1000000 || time(NULL) < until)
			continue;
		fprintf(stderr, "FAIL: burst %llu never came back (%s)\n",
			(unsigned long long)burst,
			cudaGetErrorString(cudaStreamQuery(bench->kernel_stream)));
		exit(1);
	}
	bench->wrong += result->done & BURST_PLAIN ? litmus_wrong_plain(ring, burst)
						   : litmus_wrong_answer(ring, burst);
	bench->plain += (result->done & BURST_PLAIN) != 0;
}

static void play_pinned(struct bench *bench, uint64_t bursts)
{
	const uint64_t depth = (uint64_t)bench->ring.burst_mask + 1;

	for (uint64_t b = 0; b < bursts + depth; b++) {
		if (b >= depth && b - depth < bursts) {
			collect(bench, b - depth);
			payload_check(bench, b - depth);
		}
		if (b < bursts) {
			payload_fill(bench, b);
			publish(bench, b);
		}
	}
}

/* A lap of the ring at a time, since a copy costs more than a burst. */
static void play_device(struct bench *bench, uint64_t bursts)
{
	const uint64_t depth = (uint64_t)bench->ring.burst_mask + 1;
	uint64_t *frames = bench->ring.frames;

	for (uint64_t first = 0; first < bursts; first += depth) {
		for (uint64_t b = first; b < first + depth; b++)
			payload_fill(bench, b);
		CHECK(cudaMemcpyAsync(frames, bench->copy, bench->payload_bytes,
				      cudaMemcpyHostToDevice, bench->copy_stream));
		CHECK(cudaStreamSynchronize(bench->copy_stream));
		for (uint64_t b = first; b < first + depth; b++)
			publish(bench, b);
		for (uint64_t b = first; b < first + depth; b++)
			collect(bench, b);
		CHECK(cudaMemcpyAsync(bench->copy, frames, bench->payload_bytes,
				      cudaMemcpyDeviceToHost, bench->copy_stream));
		CHECK(cudaStreamSynchronize(bench->copy_stream));
		for (uint64_t b = first; b < first + depth; b++)
			payload_check(bench, b);
	}
}

static bool report(struct bench *bench, const char *consumer, uint32_t blocks, uint64_t bursts)
{
	printf("%-6s %-6s payload, ring of %5u, %2u blocks: %llu bursts, %llu wrong values\n",
	       consumer, bench->device_payload ? "GPU" : "pinned", bench->ring.burst_mask + 1,
	       blocks, (unsigned long long)bursts, (unsigned long long)bench->wrong);
	fflush(stdout);
	return bench->wrong == 0;
}

static bool play(struct bench *bench, const char *consumer, uint32_t blocks, uint64_t bursts)
{
	if (bench->device_payload)
		play_device(bench, bursts);
	else
		play_pinned(bench, bursts);
	__atomic_store_n(bench->ring.stop, 1, __ATOMIC_RELAXED);
	CHECK(cudaStreamSynchronize(bench->kernel_stream));
	return report(bench, consumer, blocks, bursts);
}

static bool test_ring(uint32_t bits, uint32_t blocks, uint32_t groups, bool device_payload,
		      bool told, uint64_t bursts)
{
	struct bench bench;
	struct burst_ring_view *view = pinned<struct burst_ring_view>(1);
	struct device_job *job = pinned<struct device_job>(1);
	uint32_t *started = pinned<uint32_t>(blocks), *gate = pinned<uint32_t>(1);
	char name[16];
	bool good;

	bench_create(&bench, bits, device_payload);
	bench.told = told;
	view->desc = bench.ring.desc;
	view->ready = bench.ring.ready;
	view->beside = told ? bench.ring.beside : NULL;
	view->result = bench.ring.result;
	view->request = bench.ring.request;
	view->stop = bench.ring.stop;
	view->burst_mask = bench.ring.burst_mask;
	view->desc_mask = litmus_desc_mask(&bench.ring);
	job->rings = view;
	job->workers_per_ring = blocks;
	job->started = started;
	job->gate = gate;
	job->groups = groups;
	*gate = GATE_OPEN;
	if (told)
		told_kernel<<<blocks, RING_THREADS + groups * 64, 0, bench.kernel_stream>>>(
			job, bench.ring);
	else
		ring_kernel<<<blocks, RING_THREADS + groups * 64, 0, bench.kernel_stream>>>(
			job, bench.ring);
	CHECK(cudaGetLastError());
	snprintf(name, sizeof(name), "%s/%u", told ? "told" : "ring", groups);
	good = play(&bench, name, blocks, bursts) &&
	       bench.plain == (told ? bursts - (bursts + 4) / 5 : 0);
	bench_free(&bench);
	CHECK(cudaFreeHost(view));
	CHECK(cudaFreeHost(job));
	CHECK(cudaFreeHost(started));
	CHECK(cudaFreeHost(gate));
	return good;
}

static bool test_queue(uint32_t bits, uint32_t blocks, bool device_payload, uint64_t bursts)
{
	struct gdrcap_gpu_queue queue = {};
	struct bench bench;
	bool good;

	bench_create(&bench, bits, device_payload);
	queue.pkts = (const struct gdrcap_pkt *)bench.ring.desc;
	queue.ready = &bench.ring.ready[0].word;
	queue.ready_stride = sizeof(struct burst_ready) / sizeof(uint64_t);
	queue.done = &bench.ring.result[0].done;
	queue.done_stride = sizeof(struct burst_result) / sizeof(uint64_t);
	queue.stop = bench.ring.stop;
	queue.pkt_mask = litmus_desc_mask(&bench.ring);
	queue.burst_mask = bench.ring.burst_mask;
	queue_kernel<<<blocks, 64, 0, bench.kernel_stream>>>(queue, bench.ring);
	CHECK(cudaGetLastError());
	good = play(&bench, "queue", blocks, bursts);
	bench_free(&bench);
	return good;
}

int main(int argc, char **argv)
{
	static const struct {
		uint32_t bits, blocks;
	} shape[] = { { 0, 1 }, { 0, 2 }, { 1, 1 }, { 2, 3 }, { 4, 8 }, { 7, 16 }, { 10, 32 } };
	const uint64_t bursts = argc > 1 ? strtoull(argv[1], NULL, 0) : 200000;
	struct cudaFuncAttributes attributes;
	int count = 0;
	bool good = true;

	if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
		printf("skipped: no CUDA device\n");
		return 77;
	}
	/* loaded before any runs */
	CHECK(cudaFuncGetAttributes(&attributes, ring_kernel));
	CHECK(cudaFuncGetAttributes(&attributes, told_kernel));
	CHECK(cudaFuncGetAttributes(&attributes, queue_kernel));
	for (uint32_t device = 0; device < 2; device++) {
		for (uint32_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
			/* a lap costs two copies: fewer bursts where a lap is short; whole laps */
			const uint64_t lap = (uint64_t)1 << shape[i].bits;
			uint64_t n = bursts << (shape[i].blocks >= 8 ? 3 : 0);

			if (device)
				n = (n < lap * 20000 ? n : lap * 20000) / lap * lap;
			for (uint32_t told = 0; told < 2; told++)
				for (uint32_t groups = 1; groups <= GROUPS_MAX; groups++)
					good = test_ring(shape[i].bits, shape[i].blocks, groups,
							 device, told, n) &&
					       good;
			good = test_queue(shape[i].bits, shape[i].blocks, device, n) && good;
		}
	}
	printf("%s\n", good ? "PASS" : "FAIL");
	return good ? 0 : 1;
}
