/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Batches, or images, through a CUDA graph that was captured once: graph CONFIG.yaml [check]. The configuration
 * has consumer: host; with image: the images are taken. Each replay gets its batch by new parameters of
 * the graph's first node, and the batch goes back when the stream has come past it. "check" adds up every
 * batch on the CPU, too.
 */
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#include <gdrcap_device.cuh>

#define BLOCKS 32
#define THREADS 256
#define FRAME_BYTES 16384 /* a slot's at most */

struct told { /* by the last node, in host memory */
	unsigned long long replays, sum;
};

__global__ static void add_batch(struct gdrcap_batch batch, unsigned long long *sum)
{
	unsigned long long mine = 0;

	for (uint32_t i = blockIdx.x; i < batch.count; i += gridDim.x) {
		const uint8_t *frame = gdrcap_gpu_frame(batch, i);

		for (uint32_t at = threadIdx.x; at < gdrcap_gpu_frame_bytes(batch, i);
		     at += blockDim.x)
			mine += frame[at];
	}
	atomicAdd(sum, mine);
}

__global__ static void add_image(const uint8_t *data, uint64_t bytes, unsigned long long *sum)
{
	unsigned long long mine = 0;

	for (uint64_t at = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; at < bytes;
	     at += (uint64_t)gridDim.x * blockDim.x)
		mine += data[at];
	atomicAdd(sum, mine);
}

__global__ static void tell(const unsigned long long *sum, struct told *told)
{
	told->sum = *sum;
	told->replays++;
}

static void cuda(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "graph: %s: %s\n", what, cudaGetErrorString(error));
	exit(1); /* the library's threads and kernels leave first */
}

struct work {
	cudaStream_t stream;
	cudaGraphExec_t exec;
	cudaGraphNode_t node; /* that has the batch */
	cudaKernelNodeParams params;
	unsigned long long *sum; /* on the device */
	struct told *told;
	uint8_t *frame; /* for `check`: pinned, since a copy to other memory may wait for the GPU */
};

/* Takes over what one batch needs: two kernels, here. All of it before gdrcap_start(): memory, code and graph. */
static void work_capture(struct work *work, bool images)
{
	size_t roots = 1;
	cudaGraph_t graph;

	cuda(cudaStreamCreateWithFlags(&work->stream, cudaStreamNonBlocking), "stream");
	cuda(cudaMalloc(&work->sum, sizeof(*work->sum)), "memory");
	cuda(cudaMemset(work->sum, 0, sizeof(*work->sum)), "memory");
	cuda(cudaHostAlloc(&work->told, sizeof(*work->told), cudaHostAllocMapped), "memory");
	cuda(cudaHostAlloc(&work->frame, FRAME_BYTES, cudaHostAllocDefault), "memory");
	memset(work->told, 0, sizeof(*work->told));
	cuda(cudaStreamBeginCapture(work->stream, cudaStreamCaptureModeThreadLocal), "capture");
	if (images)
		add_image<<<BLOCKS, THREADS, 0, work->stream>>>(nullptr, 0, work->sum);
	else
		add_batch<<<BLOCKS, THREADS, 0, work->stream>>>(gdrcap_batch{}, work->sum);
	tell<<<1, 1, 0, work->stream>>>(work->sum, work->told);
	cuda(cudaStreamEndCapture(work->stream, &graph), "capture");
	/* The first of the two, which waits for none. */
	cuda(cudaGraphGetRootNodes(graph, &work->node, &roots), "nodes");
	work->params.func = images ? (void *)add_image : (void *)add_batch;
	work->params.gridDim = dim3(BLOCKS);
	work->params.blockDim = dim3(THREADS);
	cuda(cudaGraphInstantiateWithFlags(&work->exec, graph, 0), "instantiation");
	/* Once with nothing, so that nothing is loaded beside kernels that run. The graph itself stays: its
	 * nodes name those of `exec`. */
	cuda(cudaGraphLaunch(work->exec, work->stream), "launch");
	cuda(cudaStreamSynchronize(work->stream), "the first replay");
}

/* The parameters of this replay: those before keep theirs, also while they run. */
static void work_replay(struct work *work, void **args)
{
	work->params.kernelParams = args;
	cuda(cudaGraphExecKernelNodeSetParams(work->exec, work->node, &work->params), "parameters");
	cuda(cudaGraphLaunch(work->exec, work->stream), "launch");
}

static bool check(const struct work *work, unsigned long long sum)
{
	cuda(cudaStreamSynchronize(work->stream), "a replay");
	if (work->told->sum == sum)
		return true;
	fprintf(stderr, "graph: the GPU's sum is %llu, the CPU's %llu\n", work->told->sum, sum);
	return false;
}

/* The CPU's sum of a batch, wherever its frames lie. */
static unsigned long long batch_sum(const struct work *work, const struct gdrcap_batch *batch)
{
	unsigned long long sum = 0;

	for (uint32_t i = 0; i < batch->count; i++) {
		const uint32_t bytes = gdrcap_frame_bytes(batch, i);

		cuda(cudaMemcpyAsync(work->frame, gdrcap_frame(batch, i), bytes, cudaMemcpyDefault,
				     work->stream),
		     "copy");
		cuda(cudaStreamSynchronize(work->stream), "copy");
		for (uint32_t at = 0; at < bytes; at++)
			sum += work->frame[at];
	}
	return sum;
}

static bool batches_take(struct work *work, struct gdrcap_queue *queue, bool checks)
{
	const struct gdrcap_batch *batches[16];
	unsigned long long sum = 0;
	bool good = true;
	int n;

	while ((n = gdrcap_wait(queue, batches, 16, -1)) >= 0) {
		for (int i = 0; i < n; i++) {
			struct gdrcap_batch batch = {};
			void *args[] = { &batch, &work->sum };

			/* What the kernel reads: the library's struct may have more members. */
			batch.data = batches[i]->data;
			batch.pkts = batches[i]->pkts;
			batch.count = batches[i]->count;
			batch.slot_bytes = batches[i]->slot_bytes;
			if (checks)
				sum += batch_sum(work, batches[i]);
			work_replay(work, args);
			good = (!checks || check(work, sum)) && good;
			if (gdrcap_release_after(queue, &batches[i], 1, work->stream) == 1)
				continue;
			cuda(cudaStreamSynchronize(work->stream), "a replay");
			gdrcap_release(queue, &batches[i], 1);
		}
	}
	return good;
}

static bool images_take(struct work *work, struct gdrcap_images *images, bool checks)
{
	const struct gdrcap_image *image;
	unsigned long long sum = 0;
	bool good = true;

	while (gdrcap_image_wait(images, &image, 1, -1) == 1) {
		const uint8_t *data = image->data;
		uint64_t bytes = image->bytes;
		void *args[] = { &data, &bytes, &work->sum };
		std::vector<uint8_t> copy(checks ? bytes : 0);

		if (checks && gdrcap_image_copy(image, 0, bytes, copy.data()))
			good = false;
		for (uint8_t byte : copy)
			sum += byte;
		work_replay(work, args);
		good = (!checks || check(work, sum)) && good;
		if (gdrcap_image_release_after(images, &image, 1, work->stream) == 1)
			continue;
		cuda(cudaStreamSynchronize(work->stream), "a replay");
		gdrcap_image_release(images, &image, 1);
	}
	return good;
}

int main(int argc, char **argv)
{
	const bool checks = argc == 3 && strcmp(argv[2], "check") == 0;
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session = nullptr;
	struct gdrcap_error error = {};
	struct work work = {};
	bool good;

	if (!(argc == 2 || checks) || gdrcap_config_load(config, argv[1], &error) ||
	    gdrcap_create(config, &session, &error)) {
		fprintf(stderr, "graph: %s\n", error.text[0] ? error.text : "give one file");
		gdrcap_config_free(config);
		return 1;
	}
	gdrcap_config_free(config);
	struct gdrcap_images *images = gdrcap_get_images(session, 0);

	work_capture(&work, images != nullptr);
	if (gdrcap_start(session, &error)) {
		fprintf(stderr, "graph: %s\n", error.text);
		gdrcap_destroy(session);
		return 1;
	}
	good = images ? images_take(&work, images, checks)
		      : batches_take(&work, gdrcap_get_queue(session, 0), checks);
	if (gdrcap_stop(session, &error)) {
		fprintf(stderr, "graph: %s\n", error.text);
		good = false;
	}
	cuda(cudaStreamSynchronize(work.stream), "the last replay");
	printf("%llu %s, their bytes' sum %llu\n", work.told->replays - 1,
	       images ? "images" : "batches", work.told->sum);
	gdrcap_destroy(session);
	return good ? 0 : 1;
}
