/* SPDX-License-Identifier: BSD-3-Clause */
/* Persistent kernels on a CUDA device: started, watched, joined. */
#include <errno.h>
#include <time.h>

#include "kernels/cuda/place_launch.cuh"
#include "kernels/kernel_job.h"

/*
 * Defaults. A block waits about 2.5 us for the bus per burst (the ready word, then descriptors and
 * the next ready word together) while it checks the burst before, so few blocks keep up with bursts
 * of 256; 16 keep up with bursts of 32, which a busy port gives when it is polled often: 16 x 32 /
 * 2.5 us is 200 million frames a second. Writing takes a block 8 us for a burst of 64 frames of 64
 * bytes and 22 us for 256, and a sender's core requests up to 90 million frames a second.
 */
#define DEFAULT_CHECK 16u
#define DEFAULT_WRITE 32u
/* Of all rings together: some ten bursts wait while a launch is under way. */
#define DEFAULT_LAUNCH 32u

/* Up to this length nearly all of a frame is in the first pieces, which one thread each checks. */
#define SMALL_FRAME_BYTES 128u

/* Of a front's block. */
#define DEFAULT_FRONT_WARPS 16u

#define START_TIMEOUT_MS 5000u

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void sleep_us(long us)
{
	const struct timespec pause = { 0, us * 1000 };

	nanosleep(&pause, NULL);
}

/* Of each group, for the job's frames. */
static uint32_t group_threads(const struct kernel_job *job, uint32_t groups)
{
	/* a warp takes a whole frame of a store, and waits for memory most of the time */
	if (!job->store && job->frame_bytes_hint && job->frame_bytes_hint <= SMALL_FRAME_BYTES)
		return WORK_THREADS_SMALL;
	return WORK_THREADS_LARGE / groups;
}

uint32_t program_groups(const struct kernel_program *program, size_t block_shared_bytes,
			size_t *shared_bytes)
{
	uint32_t groups = 1;

	*shared_bytes = program->shared_bytes;
	while (program->group_bytes && groups < GROUPS_MAX &&
	       *shared_bytes + program->group_bytes <= block_shared_bytes) {
		*shared_bytes += program->group_bytes;
		groups++;
	}
	return groups;
}

/*
 * How many blocks can join those that run, wherever these lie. Persistent blocks that wait for room
 * would wait for ever. A multiprocessor refuses a block of this kernel when more than
 * 1 - 1/blocks_per_unit of it is taken, so blocks that fill less than that of the whole GPU cannot
 * be in the way on every one. What is left over lets fill() and gather() run.
 */
static uint32_t blocks_that_fit(const struct kernel_device *device, uint32_t blocks_per_unit)
{
	double load = 0, room;
	uint32_t blocks = 0;

	for (uint32_t i = 0; i < DEVICE_JOBS_MAX; i++) {
		const struct kernel_workers *other = &device->job[i];

		if (!other->busy || other->launcher)
			continue;
		blocks += other->room;
		load += (double)other->room / other->blocks_per_unit;
	}
	if (blocks_per_unit == 1) /* one multiprocessor stays free */
		return blocks + 1 < device->units ? device->units - 1 - blocks : 0;
	room = (device->units * (1.0 - 1.0 / blocks_per_unit) - load) * blocks_per_unit;
	return room > 0 ? (uint32_t)room : 0;
}

static enum kernel_program_id program_of(const struct kernel_job *job)
{
	const bool any_format = job->layout.match.count || job->layout.format == FRAME_CUSTOM;
	bool split_or_stale = false;

	if (job->role == KERNEL_PLACE)
		return job->resident ? PROGRAM_PLACE : PROGRAM_PLACE_LAUNCH;
	if (job->role == KERNEL_FRONT)
		return PROGRAM_FRONT;
	if (job->role == KERNEL_SEND)
		return PROGRAM_SEND;
	if (job->role == KERNEL_WRITE)
		return job->store ? PROGRAM_WRITE_STORE : PROGRAM_WRITE;
	for (uint32_t r = 0; r < job->ring_count; r++)
		split_or_stale =
			split_or_stale || job->rings[r].head_desc || job->rings[r].generation;
	if (split_or_stale)
		return job->store ? PROGRAM_CHECK_STORE_SPLIT_OR_STALE
				  : PROGRAM_CHECK_SPLIT_OR_STALE;
	if (job->store)
		return PROGRAM_CHECK_STORE;
	if (job->pattern.kind == PATTERN_NONE || pattern_is_prbs(job->pattern.kind))
		return any_format ? PROGRAM_CHECK_ANY_FORMAT : PROGRAM_CHECK;
	return any_format ? PROGRAM_CHECK_ANY_FORMAT_PATTERN : PROGRAM_CHECK_PATTERN;
}

/* Finite kernels wait for room, and take none for long: of one launch so many blocks. */
static void launch_choose(struct kernel_workers *workers, const struct kernel_job *job)
{
	workers->per_ring = job->workers_per_ring;
	if (!workers->per_ring)
		workers->per_ring =
			job->ring_count < DEFAULT_LAUNCH ? DEFAULT_LAUNCH / job->ring_count : 1;
	workers->blocks = workers->per_ring * job->ring_count;
}

/* All fronts of a job are alike. */
static uint32_t front_warps(const struct kernel_job *job)
{
	return job->fronts[0].warps ? job->fronts[0].warps : DEFAULT_FRONT_WARPS;
}

/* Decides workers->program, per_ring and blocks. */
static int blocks_choose(struct kernel_workers *workers, const struct kernel_job *job)
{
	const struct kernel_device *device = workers->device;
	const struct kernel_program *program = &device->program[program_of(job)];
	uint32_t fit, wanted;
	int per_unit = 0;
	cudaError_t error;

	workers->groups =
		program_groups(program, device->block_shared_bytes, &workers->shared_bytes);
	workers->threads = RING_THREADS + workers->groups * group_threads(job, workers->groups);
	if (program->threads)
		workers->threads = program->threads;
	else if (job->role == KERNEL_FRONT)
		workers->threads = 32 * front_warps(job);
	else if (job->role == KERNEL_SEND)
		workers->threads = SEND_THREADS;
	error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
		&per_unit, program->entry, (int)workers->threads, workers->shared_bytes);
	if (error)
		return cuda_fail(error, "asking how many blocks fit a multiprocessor");
	if (per_unit < 1)
		return kernel_fail(-ENOTSUP, "%s is too small for a block of the %s kernel",
				   device->name, program->name);
	workers->program = program;
	workers->blocks_per_unit = (uint32_t)per_unit;
	if (program->threads) {
		launch_choose(workers, job);
		workers->room = 0;
		return 0;
	}
	fit = job->instead ? workers->room : blocks_that_fit(device, workers->blocks_per_unit);
	wanted = job->role == KERNEL_FRONT || job->role == KERNEL_SEND ? 1 : job->workers_per_ring;
	if (!wanted) {
		/* checkers leave room for writers, two of which fit where one of them does */
		const uint32_t checkers = per_unit == 1 ? fit / 2 : fit / 3 * 2;
		const uint32_t share =
			(job->role == KERNEL_WRITE ? fit : checkers) / job->ring_count;

		wanted = job->role == KERNEL_WRITE ? DEFAULT_WRITE : DEFAULT_CHECK;
		wanted = wanted < share ? wanted : share ? share : 1;
	}
	workers->per_ring = wanted;
	workers->blocks = wanted * job->ring_count;
	if (workers->blocks > fit || workers->blocks > DEVICE_BLOCKS_MAX)
		return kernel_fail(
			-EBUSY,
			"%u blocks of the %s kernel (%u rings, %u each) cannot all run at the "
			"same time on %s: %u can, beside what runs; use fewer blocks or queues",
			workers->blocks, program->name, job->ring_count, wanted, device->name,
			fit < DEVICE_BLOCKS_MAX ? fit : DEVICE_BLOCKS_MAX);
	if (!job->instead)
		workers->room = workers->blocks;
	return 0;
}

/* cudaErrorNotReady while the kernel runs; that is no error to leave for others to find. */
static cudaError_t kernel_query(const struct kernel_workers *workers)
{
	cudaError_t error = cudaStreamQuery(workers->stream);

	if (error == cudaErrorNotReady)
		cudaGetLastError();
	return error;
}

static uint32_t blocks_started(const struct kernel_workers *workers)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < workers->blocks; i++)
		count += __atomic_load_n(&workers->control->started[i], __ATOMIC_RELAXED);
	return count;
}

/* Launches and waits until every block runs. */
static int job_launch(struct kernel_workers *workers)
{
	const struct kernel_program *program = workers->program;
	const uint64_t until = now_ms() + START_TIMEOUT_MS;
	void *args[] = { &workers->memory };
	uint32_t started;
	cudaError_t error;

	for (uint32_t i = 0; i < workers->blocks; i++)
		workers->control->started[i] = 0;
	__atomic_store_n(&workers->control->gate, GATE_SHUT, __ATOMIC_SEQ_CST);
	error = cudaLaunchKernel(program->entry, dim3(workers->blocks), dim3(workers->threads),
				 args, workers->shared_bytes, workers->stream);
	if (error)
		return cuda_fail(error, "launching a persistent kernel");
	for (;;) {
		started = blocks_started(workers);
		error = started < workers->blocks ? kernel_query(workers) : cudaErrorNotReady;
		if (error != cudaErrorNotReady)
			return cuda_fail(error, "starting a persistent kernel");
		if (started == workers->blocks) {
			__atomic_store_n(&workers->control->gate, GATE_OPEN, __ATOMIC_SEQ_CST);
			return 0;
		}
		if (now_ms() > until)
			break;
		sleep_us(50);
	}
	__atomic_store_n(&workers->control->gate, GATE_LEAVE, __ATOMIC_SEQ_CST);
	cudaStreamSynchronize(workers->stream);
	return kernel_fail(
		-EBUSY,
		"only %u of %u blocks of the %s kernel came to run on %s within %u ms: other "
		"kernels hold its multiprocessors; end them (nvidia-smi) or use fewer blocks",
		started, workers->blocks, program->name, workers->device->name, START_TIMEOUT_MS);
}

static void memory_free(struct kernel_workers *workers)
{
	if (workers->memory)
		cudaFreeAsync(workers->memory, workers->device->copy_stream);
	workers->memory = NULL;
	cudaGetLastError();
}

static void workers_release(struct kernel_workers *workers)
{
	struct kernel_device *device = workers->device;

	memory_free(workers);
	pthread_mutex_lock(&device->lock);
	workers->busy = false;
	pthread_mutex_unlock(&device->lock);
}

/* Takes a free job of the device and room for its blocks, or those of the workers that have left. */
static int workers_take(struct kernel_device *device, const struct kernel_job *job,
			struct kernel_workers **taken)
{
	struct kernel_workers *workers = job->instead;
	int ret;

	pthread_mutex_lock(&device->lock);
	for (uint32_t i = 0; i < DEVICE_JOBS_MAX && !workers; i++)
		if (!device->job[i].busy)
			workers = &device->job[i];
	if (workers)
		ret = blocks_choose(workers, job);
	else
		ret = kernel_fail(-EBUSY, "%s runs %u jobs of this process already; end one first",
				  device->name, DEVICE_JOBS_MAX);
	if (!ret)
		workers->busy = true;
	pthread_mutex_unlock(&device->lock);
	*taken = workers;
	return ret;
}

int cuda_workers_start(struct kernel_device *device, const struct kernel_job *job,
		       struct kernel_workers **started)
{
	current_device current(device->ordinal);
	struct kernel_workers *workers = job->instead;
	int ret;

	if (current.error)
		ret = cuda_fail(current.error, "starting a persistent kernel");
	else
		ret = kernel_job_check(job);
	if (!ret)
		ret = workers_take(device, job, &workers);
	if (ret) {
		if (job->instead)
			workers_release(job->instead);
		return ret;
	}
	memory_free(workers);
	ret = job_upload(workers, job);
	if (!ret)
		ret = workers->program->threads ? launcher_start(workers, job)
						: job_launch(workers);
	if (ret) {
		workers_release(workers);
		return ret;
	}
	*started = workers;
	return 0;
}

int cuda_workers_join(struct kernel_workers *workers, unsigned int timeout_ms)
{
	current_device current(workers->device->ordinal);
	const uint64_t until = now_ms() + timeout_ms;
	cudaError_t error;
	int ret;

	if (workers->launcher) {
		ret = launcher_join(workers, timeout_ms);
		if (!workers->launcher)
			workers_release(workers);
		return ret;
	}
	while ((error = kernel_query(workers)) == cudaErrorNotReady) {
		if (now_ms() >= until)
			return kernel_fail(
				-ETIMEDOUT,
				"the persistent kernel did not leave within %u ms: is every "
				"ring's stop word set?",
				timeout_ms);
		sleep_us(100);
	}
	workers_release(workers);
	return error ? cuda_fail(error, "the persistent kernel failed") : 0;
}

int cuda_workers_running(struct kernel_workers *workers)
{
	current_device current(workers->device->ordinal);
	cudaError_t error;

	if (workers->launcher)
		return launcher_running(workers);
	error = kernel_query(workers);
	if (error == cudaErrorNotReady)
		return 1;
	return error ? cuda_fail(error, "the persistent kernel failed") : 0;
}

bool cuda_workers_starved(struct kernel_workers *workers)
{
	(void)workers; /* no CPU threads */
	return false;
}

uint32_t cuda_workers_per_ring(const struct kernel_workers *workers)
{
	return workers->per_ring;
}
