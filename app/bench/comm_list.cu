/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checker behind DPDK's own hand-over, rte_gpu_comm_list, instead of the burst ring: what the
 * work threads do is the same code, only the warps that take bursts and give them back are others.
 * They overlap the same round trips as the ring's.
 *
 * The list has no place for outcomes, so these go where the ring has them.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "bench/bench_kernels.cuh"
#include "kernels/cuda/check.cuh"
#include "kernels/kernel_job.h"

#define START_TIMEOUT_MS 5000u
/*
 * An item is always the same block's, and a block has more of them than it has in flight: so its
 * DONE is out before the block looks at it again, and a READY that it finds there is the next one.
 */
#define ITEMS_PER_BLOCK 16u

/* By value. */
struct comm_view {
	const struct bench_comm_item *items;
	uint32_t count, burst; /* items; frames of each at most */
};

__device__ __forceinline__ uint32_t load_acquire_system(const uint32_t *at)
{
	uint32_t value;

	asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
	return value;
}

__device__ __forceinline__ void store_release_system(uint32_t *at, uint32_t value)
{
	asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

/* One poll by the take warp: as ring_poll(). */
__device__ __forceinline__ uint32_t comm_poll(const struct ring_shared &s, const uint32_t *status,
					      bool ask_stop, uint32_t *stop)
{
	uint32_t word = 0;

	if (lane_index() == 1 && ask_stop)
		word = load_relaxed_system(s.ring.stop);
	if (lane_index() == 0)
		word = load_acquire_system(status);
	*stop = ask_stop ? __shfl_sync(WARP_ALL, word, 1) : 0;
	word = __shfl_sync(WARP_ALL, word, 0);
	__syncwarp();
	return word;
}

/* Waits for an item; `word` is what an earlier poll saw of it. False: stopped. */
__device__ __forceinline__ bool comm_wait(const struct ring_shared &s, const uint32_t *status,
					  uint32_t word)
{
	uint32_t sleep_ns = POLL_SLEEP_FIRST_NS, stop;

	for (uint32_t polls = 0; word != BENCH_COMM_READY; polls++) {
		word = comm_poll(s, status, polls % POLLS_PER_STOP == POLLS_PER_STOP - 1, &stop);
		if (stop)
			return false;
		if (word == BENCH_COMM_READY)
			break;
		__nanosleep(sleep_ns);
		if (polls % POLLS_PER_SLEEP == POLLS_PER_SLEEP - 1)
			sleep_ns = min(sleep_ns * 2, POLL_SLEEP_MAX_NS);
	}
	return true;
}

/* Where the ring would say that the frame lies. */
__device__ __forceinline__ struct frame_desc comm_desc(const struct burst_ring_view &ring,
						       ulonglong2 frame)
{
	const uint64_t at = frame.x - (uint64_t)(uintptr_t)ring.frames;

	if (at >= ring.frames_bytes) /* outside: it cannot be reached there either */
		return { 0xffffffffu, (uint16_t)frame.y, 0 };
	return { (uint32_t)(at >> ring.slot_shift), (uint16_t)frame.y,
		 (uint16_t)(at & ((1u << ring.slot_shift) - 1)) };
}

/* Brings the item's frames into *in and asks for the next item meanwhile: as burst_fetch(). */
__device__ __forceinline__ uint32_t comm_fetch(const struct ring_shared &s,
					       const struct comm_view &view, struct burst_in *in,
					       uint64_t burst, uint32_t turn, bool in_use,
					       bool ask_stop, uint32_t *stop)
{
	const struct bench_comm_item item = view.items[burst % view.count];
	const uint64_t after = burst + s.job.workers_per_ring;
	const uint32_t lane = lane_index();
	ulonglong2 frame[DESC_PER_LANE];
	uint32_t count = 0, next;

	/* all loads are under way before the first is waited for */
#pragma unroll
	for (uint32_t i = 0; i < DESC_PER_LANE; i++)
		if (lane + 32 * i < view.burst)
			frame[i] = *(const ulonglong2 *)&item.frames[lane + 32 * i];
	if (lane == 0)
		count = *(const volatile uint32_t *)item.count;
	next = comm_poll(s, view.items[after % view.count].status, ask_stop, stop);
	count = min(__shfl_sync(WARP_ALL, count, 0), view.burst);
	if (in_use)
		barrier_sync(BARRIER_IN_EMPTY + turn, 32 + s.work_threads);
#pragma unroll
	for (uint32_t i = 0; i < DESC_PER_LANE; i++)
		if (lane + 32 * i < count)
			in->desc[lane + 32 * i] = comm_desc(s.ring, frame[i]);
	if (lane == 0) {
		in->burst = burst;
		in->first = (uint32_t)burst * view.burst;
		in->count = count;
	}
	barrier_arrive(BARRIER_IN_FULL + turn, 32 + s.work_threads);
	return next;
}

/* The take warp: as ring_take_warp(). */
__device__ __forceinline__ void comm_take_warp(struct ring_shared &s, const struct comm_view &view)
{
	uint64_t burst = s.worker;
	uint32_t word = 0, turn = 0, stop = 0;

	for (uint64_t round = 0;; round++) {
		if (stop || !comm_wait(s, view.items[burst % view.count].status, word)) {
			ring_leave(s, round, turn);
			return;
		}
		word = comm_fetch(s, view, &s.in[turn], burst, turn, round >= s.turns,
				  round % POLLS_PER_STOP == 0, &stop);
		burst += s.job.workers_per_ring;
		turn = turn_next(s, turn);
	}
}

/* The done warp. The burst is that of the result whose word is given: bursts come in order, and so
 * do items. */
__device__ __forceinline__ void comm_done_warp(struct ring_shared &s, const struct comm_view &view)
{
	uint64_t burst = s.worker;

	for (uint32_t turn = 0, left = 0;; turn = turn_next(s, turn)) {
		uint64_t *done, word;

		barrier_sync(BARRIER_OUT_FULL + turn, 32 + s.work_threads);
		done = s.out[turn].done;
		word = s.out[turn].word;
		if (!done && ++left == s.groups)
			return;
		barrier_arrive(BARRIER_OUT_EMPTY + turn, 32 + s.work_threads);
		if (done && lane_index() == 0) {
			if (word != DONE_TOLD)
				*done = word;
			store_release_system(view.items[burst % view.count].status,
					     (uint32_t)BENCH_COMM_DONE);
		}
		burst += s.job.workers_per_ring;
	}
}

__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	comm_list_kernel(const struct device_job *job, struct comm_view view)
{
	extern __shared__ uint4 memory[];
	struct check_shared<false> &s = *(struct check_shared<false> *)memory;

	struct work_group group;

	if (!check_enter(s, job))
		return;
	group = work_group_of(s.ring);
	if (threadIdx.x < 32)
		comm_take_warp(s.ring, view);
	else if (threadIdx.x < RING_THREADS)
		comm_done_warp(s.ring, view);
	else
		ring_work_group(s.ring, group, [&s, group](const struct burst_in &in, uint32_t) {
			return check_burst<false, false>(s, group, in);
		});
}

/* Groups of a block, and its shared memory: as check_program(), whose code it runs. */
static cudaError_t comm_groups(int ordinal, uint32_t *groups, size_t *shared_bytes)
{
	const struct kernel_program program = check_program();
	int most = 0;
	const cudaError_t error =
		cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal);

	*groups = program_groups(&program, (size_t)most, shared_bytes);
	return error;
}

int bench_comm_load(int ordinal)
{
	struct cudaFuncAttributes attributes;
	uint32_t groups;
	size_t shared_bytes;
	cudaError_t error = comm_groups(ordinal, &groups, &shared_bytes);

	if (!error)
		error = cudaFuncGetAttributes(&attributes, (const void *)comm_list_kernel);
	if (!error)
		error = cudaFuncSetAttribute((const void *)comm_list_kernel,
					     cudaFuncAttributeMaxDynamicSharedMemorySize,
					     (int)shared_bytes);
	return error ? cuda_fail(error, "loading the kernel of rte_gpu_comm_list") : 0;
}

/* ---- start ---- */

struct comm_part {
	const void *from;
	size_t bytes, at;
};
enum { COMM_JOB, COMM_RING, COMM_CRC, COMM_WINDOWS, COMM_POWERS, COMM_ITEMS, COMM_PARTS };

/* What the kernel needs, in memory of its own, before it is launched. */
static int comm_upload(struct bench_gpu *gpu, const struct kernel_job *job,
		       const struct bench_comm_item *items, uint32_t item_count, uint32_t groups,
		       struct comm_view *view)
{
	const struct pattern_tables tables = pattern_plan_tables(&job->plan);
	struct device_job image = {};
	struct comm_part part[COMM_PARTS] = {
		{ &image, sizeof(image), 0 },
		{ job->rings, sizeof(job->rings[0]), 0 },
		{ frame_crc32c_table, sizeof(frame_crc32c_table), 0 },
		{ job->plan.windows, tables.windows_bytes, 0 },
		{ job->plan.powers, tables.powers_bytes, 0 },
		{ items, item_count * sizeof(items[0]), 0 },
	};
	size_t bytes = 0;
	uint8_t *memory;
	cudaError_t error;

	for (int i = 0; i < COMM_PARTS; i++) {
		part[i].at = bytes;
		bytes += (part[i].bytes + 255) & ~(size_t)255;
	}
	error = cudaMalloc(&gpu->memory, bytes);
	if (error)
		return cuda_fail(error, "taking memory for rte_gpu_comm_list's kernel");
	memory = (uint8_t *)gpu->memory;
	image.layout = job->layout;
	frame_look_init(&image.look, &job->layout);
	image.plan = job->plan;
	image.plan.windows = (const uint64_t *)(memory + part[COMM_WINDOWS].at);
	image.plan.powers = (const uint32_t *)(memory + part[COMM_POWERS].at);
	image.plan.file = NULL;
	image.rings = (const struct burst_ring_view *)(memory + part[COMM_RING].at);
	image.crc_table = (const uint32_t *)(memory + part[COMM_CRC].at);
	image.started = gpu->control->started;
	image.gate = &gpu->control->gate;
	image.workers_per_ring = job->workers_per_ring;
	image.groups = groups;
	view->items = (const struct bench_comm_item *)(memory + part[COMM_ITEMS].at);
	for (int i = 0; i < COMM_PARTS && !error; i++)
		if (part[i].bytes)
			error = cudaMemcpyAsync(memory + part[i].at, part[i].from, part[i].bytes,
						cudaMemcpyHostToDevice, gpu->stream);
	if (!error)
		error = cudaStreamSynchronize(gpu->stream);
	return error ? cuda_fail(error, "copying rte_gpu_comm_list's tables") : 0;
}

/* The gate opens when every block runs: as in workers.cu. */
static int comm_wait_started(struct bench_gpu *gpu, uint32_t blocks)
{
	const struct timespec tick = { 0, 1000000 };
	uint32_t started = 0;
	int ret;

	for (uint32_t ms = 0; ms < START_TIMEOUT_MS; ms++) {
		started = 0;
		for (uint32_t i = 0; i < blocks; i++)
			started += __atomic_load_n(&gpu->control->started[i], __ATOMIC_RELAXED);
		if (started == blocks) {
			__atomic_store_n(&gpu->control->gate, GATE_OPEN, __ATOMIC_SEQ_CST);
			return 0;
		}
		ret = bench_gpu_running(gpu);
		if (ret < 0)
			return ret;
		if (ret == 0)
			break;
		nanosleep(&tick, NULL);
	}
	__atomic_store_n(&gpu->control->gate, GATE_LEAVE, __ATOMIC_SEQ_CST);
	cudaStreamSynchronize(gpu->stream);
	return kernel_fail(-EBUSY,
			   "only %u of %u blocks of rte_gpu_comm_list's kernel came to run: "
			   "take fewer, or end what else runs on the GPU (nvidia-smi)",
			   started, blocks);
}

static int comm_launch(struct bench_gpu *gpu, const struct kernel_job *job, uint32_t groups,
		       size_t shared_bytes, struct comm_view *view)
{
	const uint32_t threads = RING_THREADS + groups * group_threads(job, groups);
	void *args[] = { &gpu->memory, view };
	cudaError_t error;

	memset(gpu->control, 0, sizeof(*gpu->control));
	error = cudaLaunchKernel((const void *)comm_list_kernel, dim3(job->workers_per_ring),
				 dim3(threads), args, shared_bytes, gpu->stream);
	if (error)
		return cuda_fail(error, "launching rte_gpu_comm_list's kernel");
	return comm_wait_started(gpu, job->workers_per_ring);
}

int bench_gpu_comm_start(struct bench_gpu *gpu, const struct kernel_job *job,
			 const struct bench_comm_item *items, uint32_t item_count, uint32_t burst)
{
	current_device current(gpu->ordinal);
	struct comm_view view = { NULL, item_count, burst };
	size_t shared_bytes;
	uint32_t groups;
	int ret;

	if (current.error)
		return cuda_fail(current.error, "starting rte_gpu_comm_list's kernel");
	ret = kernel_job_check(job);
	if (ret)
		return ret;
	if (job->ring_count != 1 || job->role != KERNEL_CHECK || job->store ||
	    job->rings[0].head_desc || job->rings[0].generation || job->layout.match.count ||
	    job->layout.format == FRAME_FOREIGN || job->plan.kind == PATTERN_FILE)
		return kernel_fail(-EINVAL, "rte_gpu_comm_list's kernel checks one ring of whole "
					    "frames of our own, of no file");
	if (!job->workers_per_ring || !burst || burst > BURST_FRAMES_MAX ||
	    job->workers_per_ring >= gpu->units ||
	    item_count < ITEMS_PER_BLOCK * job->workers_per_ring ||
	    item_count % job->workers_per_ring)
		return kernel_fail(-EINVAL,
				   "%u blocks and %u items of %u frames: fewer blocks than "
				   "%u multiprocessors, a multiple of them as items, %u a block at "
				   "least",
				   job->workers_per_ring, item_count, burst, gpu->units,
				   ITEMS_PER_BLOCK);
	current.error = comm_groups(gpu->ordinal, &groups, &shared_bytes);
	if (current.error)
		return cuda_fail(current.error, "asking for the GPU's shared memory");
	ret = comm_upload(gpu, job, items, item_count, groups, &view);
	if (!ret)
		ret = comm_launch(gpu, job, groups, shared_bytes, &view);
	if (ret && gpu->memory) {
		cudaFree(gpu->memory);
		cudaGetLastError();
		gpu->memory = NULL;
	}
	return ret;
}
