/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays the network card, see card.h: its kernels, and its life. */
#include "bench/card.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/card_play.cuh"
#include "kernels/cuda/device.cuh"

#define RESET_MS 5000u

struct bench_card {
	int ordinal;
	uint32_t count, blocks;
	cudaStream_t stream;
	struct card_job *job; /* GPU memory */
	struct card_state *states;
	struct card_counts *counts; /* pinned */
	uint32_t *stop;		    /* pinned */
	bool runs;		    /* since it was started or reset, until it is joined */
};

__global__ void __launch_bounds__(CARD_THREADS) card_kernel(const struct card_job *jobs)
{
	__shared__ struct card_job job;
	const uint32_t q = blockIdx.x / jobs->blocks;
	struct card_state *state = &jobs->states[q];
	const uint32_t begin = *(volatile uint32_t *)&state->next_chunk;

	for (uint32_t i = threadIdx.x; i < sizeof(job) / 4; i += blockDim.x)
		((uint32_t *)&job)[i] = ((const uint32_t *)jobs)[i];
	__syncthreads();
	if (job.queue[q].list)
		card_copying(job, job.queue[q], state);
	else if (job.queue[q].go && threadIdx.x < 32)
		card_on_word(job, job.queue[q], state);
	else if (!job.queue[q].go)
		card_lying(job, job.queue[q], state, begin);
}

/* Behind the card, when all its blocks have left. */
__global__ void card_tell_kernel(const struct card_job *job)
{
	struct card_state *state = &job->states[threadIdx.x];
	struct card_counts *counts = &job->counts[threadIdx.x];

	if (!job->queue[threadIdx.x].list && !job->queue[threadIdx.x].go) {
		state->wire = state->completed = (uint64_t)state->next_chunk * CARD_CHUNK;
		state->chunk = state->next_chunk;
	}
	store_relaxed_system(&counts->wire, state->wire);
	store_relaxed_system(&counts->completed, state->completed);
	store_relaxed_system(&counts->out_of_buffer, state->out_of_buffer);
	store_relaxed_system(&counts->flushed, state->flushed);
	store_release_system(&counts->over, 1);
}

__global__ void card_reset_kernel(const struct card_job *job)
{
	struct card_state *state = &job->states[threadIdx.x];

	state->base = (uint32_t)state->completed;
	state->failed = 0;
	store_relaxed_system((uint32_t *)job->queue[threadIdx.x].record, 0);
}

/* ---- life ---- */

static int card_set_up(struct bench_card *card, const struct card_queue *queues)
{
	struct cudaFuncAttributes attributes;
	struct card_job job = {};
	cudaError_t error = cudaFuncGetAttributes(&attributes, (const void *)card_kernel);
	int least = 0, greatest = 0;

	if (!error)
		error = cudaFuncGetAttributes(&attributes, (const void *)card_tell_kernel);
	if (!error)
		error = cudaFuncGetAttributes(&attributes, (const void *)card_reset_kernel);
	if (!error)
		error = cudaDeviceGetStreamPriorityRange(&least, &greatest);
	/* of a priority that persistent kernels' streams do not have: see device.cu */
	if (!error)
		error = cudaStreamCreateWithPriority(&card->stream, cudaStreamNonBlocking,
						     least - 2 > greatest ? least - 2 : greatest);
	if (!error)
		error = cudaMalloc((void **)&card->job, sizeof(*card->job));
	if (!error)
		error = cudaMalloc((void **)&card->states, CARD_QUEUES_MAX * sizeof(*card->states));
	if (!error)
		error = cudaMemset(card->states, 0, CARD_QUEUES_MAX * sizeof(*card->states));
	if (!error)
		error = cudaHostAlloc((void **)&card->counts,
				      CARD_QUEUES_MAX * sizeof(*card->counts), cudaHostAllocMapped);
	if (!error)
		error = cudaHostAlloc((void **)&card->stop, 64, cudaHostAllocMapped);
	if (!error) {
		memcpy(job.queue, queues, card->count * sizeof(*queues));
		job.states = card->states;
		job.counts = card->counts;
		job.stop = card->stop;
		job.blocks = card->blocks;
		error = cudaMemcpy(card->job, &job, sizeof(job), cudaMemcpyHostToDevice);
	}
	return error ? cuda_fail(error, "setting up the card that a kernel plays") : 0;
}

int bench_card_open(int ordinal, const struct card_queue *queues, uint32_t count, uint32_t blocks,
		    struct bench_card **opened)
{
	current_device current(ordinal);
	struct bench_card *card;
	int ret;

	if (current.error)
		return cuda_fail(current.error, "opening the GPU for the card");
	if (!count || count > CARD_QUEUES_MAX || !blocks || blocks > CARD_BLOCKS_MAX)
		return kernel_fail(-EINVAL, "a card of %u queues, %u blocks each", count, blocks);
	card = (struct bench_card *)calloc(1, sizeof(*card));
	if (!card)
		return kernel_fail(-ENOMEM, "no memory for the card");
	card->ordinal = ordinal;
	card->count = count;
	card->blocks = queues[0].list || queues[0].go ? 1 : blocks;
	ret = card_set_up(card, queues);
	if (ret)
		bench_card_close(card);
	else
		*opened = card;
	return ret;
}

/* What says that it has left comes last. */
static int card_launch(struct bench_card *card, const void *kernel, uint32_t blocks,
		       uint32_t threads)
{
	current_device current(card->ordinal);
	cudaError_t error = current.error;
	void *args[] = { &card->job };

	memset(card->counts, 0, CARD_QUEUES_MAX * sizeof(*card->counts));
	__atomic_store_n(card->stop, 0, __ATOMIC_SEQ_CST);
	if (!error)
		error = cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), args, 0,
					 card->stream);
	if (!error)
		error = cudaLaunchKernel((const void *)card_tell_kernel, dim3(1), dim3(card->count),
					 args, 0, card->stream);
	card->runs = !error;
	return error ? cuda_fail(error, "launching the card that a kernel plays") : 0;
}

int bench_card_start(struct bench_card *card)
{
	return card_launch(card, (const void *)card_kernel, card->count * card->blocks,
			   CARD_THREADS);
}

int bench_card_reset(struct bench_card *card)
{
	const int ret = card_launch(card, (const void *)card_reset_kernel, 1, card->count);

	return ret ? ret : bench_card_join(card, RESET_MS);
}

void bench_card_stop(struct bench_card *card)
{
	__atomic_store_n(card->stop, 1, __ATOMIC_RELAXED);
}

static bool card_has_left(const struct bench_card *card)
{
	bool left = true;

	for (uint32_t q = 0; q < card->count; q++)
		left = left && __atomic_load_n(&card->counts[q].over, __ATOMIC_ACQUIRE);
	return left;
}

/* By its own words: compute-sanitizer waits for all kernels when a stream is found to have nothing left, and
 * fronts and checkers run on. */
int bench_card_join(struct bench_card *card, uint32_t timeout_ms)
{
	const struct timespec tick = { 0, 1000000 };
	current_device current(card->ordinal);
	cudaError_t error = current.error;

	for (uint32_t ms = 0; !error && card->runs && !card_has_left(card); ms++) {
		if (ms >= timeout_ms) {
			error = cudaStreamQuery(card->stream);
			if (error != cudaErrorNotReady)
				break;
			cudaGetLastError();
			return kernel_fail(
				-ETIMEDOUT,
				"the card that a kernel plays did not leave within %u ms",
				timeout_ms);
		}
		nanosleep(&tick, NULL);
	}
	card->runs = false;
	return error ? cuda_fail(error, "the card that a kernel plays failed") : 0;
}

const struct card_counts *bench_card_counts(const struct bench_card *card, uint32_t queue)
{
	return &card->counts[queue];
}

void bench_card_close(struct bench_card *card)
{
	current_device current(card->ordinal);

	if (card->stream)
		cudaStreamDestroy(card->stream);
	cudaFree(card->job);
	cudaFree(card->states);
	cudaFreeHost(card->counts);
	cudaFreeHost(card->stop);
	cudaGetLastError();
	free(card);
}
