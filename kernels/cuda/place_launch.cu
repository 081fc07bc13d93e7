/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that launches finite kernels for what rings published. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "kernels/cuda/place_launch.cuh"
#include "kernels/frame_records.h"
#include "base/thread_signals.h"

/*
 * Launches that may be under way: one that works and one that waits, so that the GPU does not idle while
 * the thread is told of an end. More would only take bursts one by one.
 */
#define LAUNCHES 2u
#define LAUNCH_BURSTS_MAX 1024u /* of a ring, in one launch */

/* An idle thread spins, and then naps: a launch takes some us anyway. */
#define IDLE_SPINS 4096u
#define IDLE_NAP_NS 20000L

struct place_launcher {
	pthread_t thread;
	struct kernel_workers *workers;
	struct burst_ring_view *rings;
	uint32_t ring_count, blocks_max;
	uint64_t next[PLACE_LAUNCH_RINGS]; /* bursts launched for, by ring */
	cudaEvent_t ended[LAUNCHES];
	uint64_t launches;
	int left;  /* release: the thread is through. Partner: acquire loads by who joins */
	int error; /* the device's, before `left` */
};

/* What is published and not launched for. */
static void launch_collect(const struct place_launcher *l, struct place_launch *launch)
{
	launch->bursts = 0;
	for (uint32_t r = 0; r < l->ring_count; r++) {
		const struct burst_ring_view *ring = &l->rings[r];
		const uint32_t bits = ring_burst_bits(ring);
		uint32_t n = 0;

		/* TAKE, partner PUBLISH: for the kernel too, whose launch comes after it */
		while (n < LAUNCH_BURSTS_MAX &&
		       burst_word_is(__atomic_load_n(
					     &ring->ready[(l->next[r] + n) & ring->burst_mask].word,
					     __ATOMIC_ACQUIRE),
				     l->next[r] + n, bits))
			n++;
		launch->from[r] = l->next[r];
		launch->count[r] = n;
		launch->bursts += n;
	}
}

static cudaError_t launch_run(struct place_launcher *l, struct place_launch *launch)
{
	struct kernel_workers *workers = l->workers;
	const uint32_t blocks = launch->bursts < l->blocks_max ? launch->bursts : l->blocks_max;
	void *args[] = { &workers->memory, launch };
	cudaError_t error =
		cudaLaunchKernel(workers->program->entry, dim3(blocks), dim3(workers->threads),
				 args, workers->shared_bytes, workers->stream);

	if (!error)
		error = cudaEventRecord(l->ended[l->launches % LAUNCHES], workers->stream);
	for (uint32_t r = 0; r < l->ring_count; r++)
		l->next[r] += launch->count[r];
	l->launches++;
	return error;
}

/* cudaErrorNotReady: as many launches are under way as may be. */
static cudaError_t launch_room(struct place_launcher *l)
{
	cudaError_t error = cudaSuccess;

	if (l->launches >= LAUNCHES) {
		error = cudaEventQuery(l->ended[l->launches % LAUNCHES]);
		if (error == cudaErrorNotReady)
			cudaGetLastError();
	}
	return error;
}

static bool launcher_stopped(const struct place_launcher *l)
{
	bool all = true;

	/* STOP: no data depends on it */
	for (uint32_t r = 0; r < l->ring_count; r++)
		all = all && __atomic_load_n(l->rings[r].stop, __ATOMIC_RELAXED);
	return all;
}

static void idle(uint32_t rounds)
{
	const struct timespec nap = { 0, IDLE_NAP_NS };

	if (rounds < IDLE_SPINS)
		place_pause();
	else
		nanosleep(&nap, NULL);
}

static void *launcher_main(void *argument)
{
	struct place_launcher *l = (struct place_launcher *)argument;
	cudaError_t error = cudaSetDevice(l->workers->device->ordinal);
	struct place_launch launch = {};
	uint32_t rounds = 0;

	prctl(PR_SET_TIMERSLACK, 1UL); /* ns; else a nap takes 50 us more */
	while (!error) {
		error = launch_room(l);
		if (error == cudaErrorNotReady) {
			error = cudaSuccess;
			place_pause();
			continue;
		}
		if (error)
			break;
		launch_collect(l, &launch);
		if (launch.bursts) {
			error = launch_run(l, &launch);
			rounds = 0;
		} else if (launcher_stopped(l)) {
			break;
		} else {
			idle(rounds);
			rounds += rounds < IDLE_SPINS;
		}
	}
	if (!error)
		error = cudaStreamSynchronize(l->workers->stream);
	l->error = error;
	__atomic_store_n(&l->left, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void launcher_free(struct place_launcher *l)
{
	for (uint32_t i = 0; i < LAUNCHES; i++)
		if (l->ended[i])
			cudaEventDestroy(l->ended[i]);
	cudaGetLastError();
	l->workers->launcher = NULL;
	free(l->rings);
	free(l);
}

static struct place_launcher *launcher_alloc(struct kernel_workers *workers,
					     const struct kernel_job *job)
{
	struct place_launcher *l = (struct place_launcher *)calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->workers = workers;
	l->rings = (struct burst_ring_view *)malloc(job->ring_count * sizeof(*l->rings));
	if (!l->rings) {
		free(l);
		return NULL;
	}
	memcpy(l->rings, job->rings, job->ring_count * sizeof(*l->rings));
	l->ring_count = job->ring_count;
	l->blocks_max = workers->blocks;
	return l;
}

/* It polls: beside another thread that does, both would wait for the scheduler, some ms each time. A thread
 * that cannot have its CPUs runs where the scheduler puts it. */
static void launcher_cpus(const struct place_launcher *l, const struct kernel_job *job)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (uint32_t i = 0; i < job->cpu_count; i++)
		if (job->cpus[i] >= 0 && job->cpus[i] < CPU_SETSIZE)
			CPU_SET(job->cpus[i], &set);
	if (job->cpus && CPU_COUNT(&set))
		pthread_setaffinity_np(l->thread, sizeof(set), &set);
}

int launcher_start(struct kernel_workers *workers, const struct kernel_job *job)
{
	struct place_launcher *l;
	cudaError_t error = cudaSuccess;
	sigset_t before;
	int ret;

	if (job->ring_count > PLACE_LAUNCH_RINGS)
		return kernel_fail(-EINVAL, "%u rings: kernels are launched for %u at most",
				   job->ring_count, PLACE_LAUNCH_RINGS);
	l = launcher_alloc(workers, job);
	if (!l)
		return kernel_fail(-ENOMEM, "no memory for the thread that launches kernels");
	workers->launcher = l;
	for (uint32_t i = 0; i < LAUNCHES && !error; i++)
		error = cudaEventCreateWithFlags(&l->ended[i], cudaEventDisableTiming);
	if (error) {
		launcher_free(l);
		return cuda_fail(error, "making ready to launch kernels");
	}
	thread_signals_block(&before);
	ret = pthread_create(&l->thread, NULL, launcher_main, l);
	if (!ret) {
		pthread_setname_np(l->thread, "gdrcap-launch");
		launcher_cpus(l, job);
	}
	thread_signals_restore(&before);
	if (ret) {
		launcher_free(l);
		return kernel_fail(-ret, "the thread that launches kernels: %s", strerror(ret));
	}
	return 0;
}

int launcher_join(struct kernel_workers *workers, unsigned int timeout_ms)
{
	struct place_launcher *l = workers->launcher;
	const struct timespec pause = { 0, 100000 };
	cudaError_t error;

	for (uint64_t waited = 0; !__atomic_load_n(&l->left, __ATOMIC_ACQUIRE); waited++) {
		if (waited >= timeout_ms * 10ull)
			return kernel_fail(-ETIMEDOUT,
					   "placing kernels did not end within %u ms: is every "
					   "ring's stop word set?",
					   timeout_ms);
		nanosleep(&pause, NULL);
	}
	pthread_join(l->thread, NULL);
	error = (cudaError_t)l->error;
	launcher_free(l);
	return error ? cuda_fail(error, "placing kernels failed") : 0;
}

int launcher_running(struct kernel_workers *workers)
{
	const struct place_launcher *l = workers->launcher;

	if (!__atomic_load_n(&l->left, __ATOMIC_ACQUIRE))
		return 1;
	return l->error ? cuda_fail((cudaError_t)l->error, "placing kernels failed") : 0;
}
