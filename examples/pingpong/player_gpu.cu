/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that play: one for each message, one for each batch, and one that runs on. A warp each. */
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

#include <gdrcap_device.cuh>

#include "player.h"

#define WARP 32

struct own {
	struct play *play; /* GPU memory */
	uint64_t *trip_ns;
	struct progress *progress;
};

__device__ static uint64_t now_ns(void)
{
	uint64_t now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
	return now;
}

/* For the CPU: one lane's stores, which it watches, and reads more of only when the stream has ended. */
__device__ static void progress_tell(const struct play *play, struct progress *progress,
				     uint64_t *steps, uint32_t bytes)
{
	*steps += bytes != 0;
	if (threadIdx.x == 0) {
		*(volatile uint64_t *)&progress->steps = *steps;
		*(volatile uint32_t *)&progress->bytes = bytes;
		if (play->over)
			*(volatile uint32_t *)&progress->over = 1;
	}
}

__global__ static void hello_kernel(const struct play *play, uint8_t *out)
{
	message_write(play, out, MESSAGE_HELLO, 0, 0);
}

__global__ static void answer_kernel(struct play *play, struct progress *progress, uint64_t steps,
				     const uint8_t *in, uint32_t bytes, uint8_t *out)
{
	progress_tell(play, progress, &steps, play_step(play, in, bytes, out, now_ns()));
}

__global__ static void hello_queue_kernel(const struct play *play, struct gdrcap_gpu_tx tx,
					  uint64_t seq, bool submits)
{
	uint32_t bytes;

	if (gdrcap_gpu_tx_reserve(tx, seq, 1) != 1)
		return;
	bytes = message_write(play, gdrcap_gpu_tx_data(tx, seq), MESSAGE_HELLO, 0, 0);
	if (threadIdx.x == 0)
		gdrcap_gpu_tx_set_bytes(tx, seq, bytes);
	if (submits)
		gdrcap_gpu_tx_submit(tx, seq, 1);
}

/* The answers to a batch: how many there are. */
__device__ static uint32_t batch_answer(struct play *play, struct progress *progress,
					const struct gdrcap_batch &batch,
					const struct gdrcap_gpu_tx tx, uint64_t tx_seq,
					uint64_t *steps)
{
	uint32_t answers = 0;

	/* one more than there is room for: as in player_cpu.c */
	for (uint32_t i = 0; i < batch.count; i++) {
		const uint64_t at = tx_seq + (answers < ANSWERS_MAX ? answers : ANSWERS_MAX - 1);
		const uint32_t bytes = play_step(play, gdrcap_gpu_frame(batch, i),
						 gdrcap_gpu_frame_bytes(batch, i),
						 gdrcap_gpu_tx_data(tx, at), now_ns());

		if (bytes && threadIdx.x == 0)
			gdrcap_gpu_tx_set_bytes(tx, at, bytes);
		answers += bytes && answers < ANSWERS_MAX;
		progress_tell(play, progress, steps, bytes);
	}
	return answers;
}

/* Behind the waits for the batch and for room, before the write that submits. */
__global__ static void batch_kernel(struct play *play, struct progress *progress,
				    struct gdrcap_gpu_queue queue, uint64_t seq,
				    struct gdrcap_gpu_tx tx, uint64_t tx_seq)
{
	struct gdrcap_batch batch;
	uint64_t steps = seq; /* it changes, which is what matters */

	/* The run is over: the stream was let go by that. */
	if (gdrcap_gpu_try_next(queue, seq, &batch) <= 0 ||
	    gdrcap_gpu_tx_reserve(tx, tx_seq, ANSWERS_MAX) != (int)ANSWERS_MAX)
		return;
	batch_answer(play, progress, batch, tx, tx_seq, &steps);
	if (threadIdx.x == 0)
		*(volatile uint64_t *)&progress->batches = seq + 1;
}

__global__ static void run_kernel(struct play *play, struct progress *progress,
				  struct gdrcap_gpu_queue queue, struct gdrcap_gpu_tx tx)
{
	uint64_t tx_seq = gdrcap_gpu_tx_first(tx), steps = 0;

	for (uint64_t seq = 0; !*(volatile uint32_t *)&play->over; seq++) {
		struct gdrcap_batch batch;
		int got;

		while ((got = gdrcap_gpu_try_next(queue, seq, &batch)) == 0)
			;
		if (got < 0)
			return;
		while ((got = gdrcap_gpu_tx_reserve(tx, tx_seq, ANSWERS_MAX)) >= 0 &&
		       got < (int)ANSWERS_MAX)
			;
		if (got < 0)
			return;
		tx_seq = gdrcap_gpu_tx_submit(
			tx, tx_seq, (int)batch_answer(play, progress, batch, tx, tx_seq, &steps));
		gdrcap_gpu_release(queue, seq);
	}
}

static int fail(const char *what)
{
	const cudaError_t error = cudaGetLastError();

	if (error == cudaSuccess)
		return 0;
	fprintf(stderr, "pingpong: %s: %s\n", what, cudaGetErrorString(error));
	return -EIO;
}

static int gpu_open(struct player *player)
{
	const void *const kernels[] = { (const void *)hello_kernel, (const void *)answer_kernel,
					(const void *)hello_queue_kernel,
					(const void *)batch_kernel, (const void *)run_kernel };
	const size_t trips = (player->first.rounds + 1) * sizeof(uint64_t);
	struct own *own = new struct own();
	struct play play = player->first;
	cudaStream_t stream = nullptr;

	player->own = own;
	cudaSetDevice(player->gpu);
	/* Loaded now: what is loaded later waits for kernels that run, and for streams that wait. */
	for (const void *kernel : kernels)
		cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 0);
	if (cudaMalloc(&own->play, sizeof(*own->play)) || cudaMalloc(&own->trip_ns, trips) ||
	    cudaMemset(own->trip_ns, 0, trips) ||
	    cudaHostAlloc(&own->progress, sizeof(*own->progress), cudaHostAllocMapped) ||
	    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))
		return fail("setting up the GPU");
	memset(own->progress, 0, sizeof(*own->progress));
	play.trip_ns = own->trip_ns;
	if (cudaMemcpy(own->play, &play, sizeof(play), cudaMemcpyHostToDevice) ||
	    cudaDeviceSynchronize())
		return fail("setting up the GPU");
	player->play = own->play;
	player->progress = own->progress;
	player->stream = stream;
	return fail("setting up the GPU");
}

static void gpu_close(struct player *player)
{
	struct own *own = (struct own *)player->own;

	if (player->stream)
		cudaStreamDestroy((cudaStream_t)player->stream);
	cudaFree(own->play);
	cudaFree(own->trip_ns);
	cudaFreeHost(own->progress);
	delete own;
	player->own = nullptr;
	player->stream = nullptr;
}

static int gpu_hello(struct player *player, uint8_t *out)
{
	const cudaStream_t stream = (cudaStream_t)player->stream;

	hello_kernel<<<1, WARP, 0, stream>>>(player->play, out);
	cudaStreamSynchronize(stream);
	return fail("a hello") ? -EIO : (int)player->first.bytes;
}

/* The CPU launches, and waits: what the other two ways do without. */
static int gpu_answer(struct player *player, const uint8_t *in, uint32_t bytes, uint8_t *out)
{
	const cudaStream_t stream = (cudaStream_t)player->stream;

	answer_kernel<<<1, WARP, 0, stream>>>(player->play, player->progress,
					      player->progress->steps, in, bytes, out);
	cudaStreamSynchronize(stream);
	return fail("an answer") ? -EIO : (int)player->progress->bytes;
}

static int gpu_hello_queue(struct player *player, uint64_t seq, bool submits)
{
	const cudaStream_t stream = (cudaStream_t)player->stream;

	hello_queue_kernel<<<1, WARP, 0, stream>>>(player->play, player->gpu_tx, seq, submits);
	cudaStreamSynchronize(stream);
	return fail("a hello");
}

static int gpu_batch(struct player *player, uint64_t seq, uint64_t tx_seq)
{
	batch_kernel<<<1, WARP, 0, (cudaStream_t)player->stream>>>(
		player->play, player->progress, player->gpu_queue, seq, player->gpu_tx, tx_seq);
	return fail("answers in the stream");
}

static int gpu_run(struct player *player)
{
	run_kernel<<<1, WARP, 0, (cudaStream_t)player->stream>>>(player->play, player->progress,
								 player->gpu_queue, player->gpu_tx);
	return fail("the kernel");
}

static int gpu_end(struct player *player)
{
	struct own *own = (struct own *)player->own;
	uint64_t *trip_ns = player->first.trip_ns;

	if (cudaStreamSynchronize((cudaStream_t)player->stream) ||
	    cudaMemcpy(&player->first, own->play, sizeof(player->first), cudaMemcpyDeviceToHost) ||
	    (trip_ns && cudaMemcpy(trip_ns, own->trip_ns, player->first.rounds * sizeof(*trip_ns),
				   cudaMemcpyDeviceToHost)))
		return fail("the end");
	player->first.trip_ns = trip_ns;
	return 0;
}

const struct player_ops player_gpu = {
	"GPU",		 gpu_open,  gpu_close, gpu_hello, gpu_answer,
	gpu_hello_queue, gpu_batch, gpu_run,   gpu_end,
};
