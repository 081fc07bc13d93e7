/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placing payloads into images: the persistent kernel; the finite one, which is launched for the bursts
 * that were published since the last; and the one that closes an image with pieces missing.
 */
#include "kernels/cuda/place.cuh"
#include "kernels/cuda/place_launch.cuh"

/* ---- persistent ---- */

/* Followed by the groups behind the first. */
struct place_shared_memory {
	struct ring_shared ring;
	struct place_view views[KERNEL_PLACES_MAX];
	struct place_group group[1];
};
static_assert(sizeof(struct place_shared_memory) <= 64 << 10, "a block of Turing has 64 KiB");

/* By all threads of a block; a barrier follows. */
__device__ __forceinline__ void views_copy(struct place_view *to, const struct device_job *job)
{
	for (uint32_t w = threadIdx.x; w < job->place_count * sizeof(*to) / 4; w += blockDim.x)
		((uint32_t *)to)[w] = ((const uint32_t *)job->places)[w];
}

__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	place_kernel(const struct device_job *job)
{
	extern __shared__ uint4 memory[];
	struct place_shared_memory &s = *(struct place_shared_memory *)memory;
	struct work_group group;

	views_copy(s.views, job);
	if (threadIdx.x < max(1u, job->groups))
		s.group[threadIdx.x].known.use = 0;
	if (!ring_enter(s.ring, job, false))
		return;
	group = work_group_of(s.ring);
	ring_run_groups(s.ring, group, [&s, group](const struct burst_in &in, uint32_t) {
		return place_burst({ s.views, s.ring.job.place_count, &s.ring.ring,
				     &s.group[group.index], group.thread, s.ring.work_threads,
				     group.index },
				   in);
	});
}

struct kernel_program place_program(void)
{
	return { "place", (const void *)place_kernel, sizeof(struct place_shared_memory),
		 sizeof(struct place_group) };
}

/* ---- finite ---- */

struct place_launch_memory {
	struct place_view views[KERNEL_PLACES_MAX];
	struct burst_ring_view ring;
	struct burst_in in;
	struct place_group group;
	uint32_t records;
};

/* Brings burst `burst` of a ring. The launch came after its PUBLISH, so no TAKE is needed. */
__device__ __forceinline__ void launch_take(struct place_launch_memory &s, uint64_t burst)
{
	const uint64_t word = load_acquire_system(&s.ring.ready[burst & s.ring.burst_mask].word);
	const uint32_t first = burst_word_first(word), count = burst_frames(word);

	for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
		*(uint64_t *)&s.in.desc[i] =
			*(const volatile uint64_t *)&s.ring.desc[(first + i) & s.ring.desc_mask];
	if (threadIdx.x == 0) {
		s.in.burst = burst;
		s.in.first = first;
		s.in.count = count;
	}
	__syncthreads();
}

/* DONE, partner COLLECT: by the first warp, behind a barrier. */
__device__ __forceinline__ void launch_done(const struct place_launch_memory &s)
{
	const uint32_t bits = ring_burst_bits(&s.ring);
	uint64_t *done = &s.ring.result[s.in.burst & s.ring.burst_mask].done;

	if (lane_index() - 1 < BURST_PLAIN_WORDS - 1)
		store_relaxed_system(done + lane_index(), burst_word(s.in.burst, bits, 0, 0));
	__syncwarp();
	if (lane_index() == 0)
		store_release_system(done, burst_word(s.in.burst, bits, s.records, 0));
}

/* Block k of B takes bursts k, k + B, ... of all rings', one ring's after the other's. */
__global__ void __launch_bounds__(PLACE_LAUNCH_THREADS)
	place_launch_kernel(const struct device_job *job, struct place_launch launch)
{
	extern __shared__ uint4 memory[];
	struct place_launch_memory &s = *(struct place_launch_memory *)memory;
	uint32_t ring = 0, before = 0;

	views_copy(s.views, job);
	if (threadIdx.x == 0)
		s.group.known.use = 0;
	for (uint32_t n = blockIdx.x; n < launch.bursts; n += gridDim.x) {
		uint32_t records;

		for (; n - before >= launch.count[ring]; ring++)
			before += launch.count[ring];
		__syncthreads(); /* the burst before is through with shared memory */
		for (uint32_t w = threadIdx.x; w < sizeof(s.ring) / 4; w += blockDim.x)
			((uint32_t *)&s.ring)[w] = ((const uint32_t *)&job->rings[ring])[w];
		__syncthreads();
		launch_take(s, launch.from[ring] + (n - before));
		records = place_burst({ s.views, job->place_count, &s.ring, &s.group, threadIdx.x,
					blockDim.x, 0 },
				      s.in);
		if (threadIdx.x == 0)
			s.records = records;
		__syncthreads();
		if (threadIdx.x < 32)
			launch_done(s);
	}
}

struct kernel_program place_launch_program(void)
{
	return { "place", (const void *)place_launch_kernel, sizeof(struct place_launch_memory), 0,
		 PLACE_LAUNCH_THREADS };
}

/* ---- closing ---- */

struct place_close_memory {
	uint32_t pieces;
	uint64_t short_piece; /* place_slot.short_piece */
	uint32_t beyond;      /* 1: pieces behind the short one are there, or missing */
	unsigned long long bytes;
};

/* A warp fills piece `i` of an image. */
__device__ __forceinline__ void warp_fill_piece(const struct image_layout &layout, uint8_t *image,
						uint32_t i, uint32_t bytes, uint8_t fill)
{
	uint8_t *at = image + image_in_buffer(&layout, image_piece_place(&layout, i));
	const uint64_t size = image_in_buffer(&layout, bytes);

	for (uint64_t b = lane_index(); b < size; b += 32)
		at[b] = fill;
}

/* One warp a word of the bitmap: counts, and fills what is missing. `last_bytes`: of the last expected, if it is short. */
__device__ __forceinline__ void close_word(const struct place_view &view, uint32_t slot, uint32_t w,
					   uint32_t expected, uint32_t last_bytes, int fill,
					   uint32_t *pieces, uint64_t *bytes)
{
	const struct image_layout &layout = view.layout;
	const uint64_t at = (uint64_t)slot * view.present_words + w;
	const uint32_t word = *(const volatile uint32_t *)&view.present[at];
	const uint32_t i = 32 * w + lane_index();
	const uint32_t size = i < layout.pieces ? image_piece_bytes(&layout, i) : 0;
	const bool is_short = last_bytes && i + 1 == expected;
	uint32_t missing = __ballot_sync(WARP_ALL, size && !(word >> lane_index() & 1));

	*pieces += word >> lane_index() & 1;
	*bytes += word >> lane_index() & 1 ? is_short ? last_bytes : size : 0;
	if (lane_index() == 0)
		view.present_host[at] = word;
	for (; fill >= 0 && missing; missing &= missing - 1) {
		const int lane = __ffs(missing) - 1;

		warp_fill_piece(layout, view.images + slot * view.stride, 32 * w + lane,
				__shfl_sync(WARP_ALL, size, lane), (uint8_t)fill);
	}
}

/* The whole block: a short piece that is not the image's last lacks its end, and is missing. Else how many bytes it has. */
__device__ __forceinline__ uint32_t short_look(const struct place_view &view, uint32_t slot,
					       struct place_close_memory &s)
{
	const uint32_t short_at = place_short_at(s.short_piece);
	volatile uint32_t *present = view.present + (uint64_t)slot * view.present_words;

	if (!short_at)
		return 0;
	for (uint32_t w = short_at / 32 + threadIdx.x; w < place_words(view.layout.pieces);
	     w += blockDim.x)
		if (present[w] & (w == short_at / 32 ? WARP_ALL << short_at % 32 : WARP_ALL))
			s.beyond = 1;
	__syncthreads();
	if (threadIdx.x == 0 && s.beyond)
		present[(short_at - 1) / 32] &= ~(1u << (short_at - 1) % 32);
	__syncthreads();
	return s.beyond ? 0 : place_short_bytes(s.short_piece);
}

/* CLOSE; see kernel_ops.place_close(). */
__global__ void place_close_kernel(const __grid_constant__ struct place_view view, uint32_t slot,
				   uint32_t use, uint32_t expected, int fill)
{
	__shared__ struct place_close_memory s;
	uint32_t pieces = 0, last_bytes;
	uint64_t bytes = 0;

	if (threadIdx.x == 0) {
		s.pieces = 0;
		s.bytes = 0;
		place_close(&view.table->slot[slot]);
		s.short_piece = place_load_relaxed(&view.table->slot[slot].short_piece);
		s.beyond = expected != place_short_at(s.short_piece);
	}
	__syncthreads();
	last_bytes = short_look(view, slot, s);
	for (uint32_t w = threadIdx.x / 32; w < place_words(view.layout.pieces);
	     w += blockDim.x / 32)
		close_word(view, slot, w, expected, last_bytes, fill, &pieces, &bytes);
	atomicAdd(&s.pieces, pieces);
	atomicAdd(&s.bytes, (unsigned long long)bytes);
	__syncthreads();
	if (threadIdx.x == 0) {
		view.shared->closed[slot].pieces = s.pieces;
		view.shared->closed[slot].bytes = s.bytes;
		view.shared->closed[slot].last_bytes = last_bytes;
		store_release_system(&view.shared->closed[slot].use, use);
	}
}

struct kernel_program place_close_program(void)
{
	return { "place_close", (const void *)place_close_kernel, 0 };
}

int cuda_place_close(struct kernel_device *device, const struct place_view *view, uint32_t slot,
		     uint32_t use, uint32_t pieces, int fill)
{
	current_device current(device->ordinal);
	struct place_view by_value = *view;
	void *args[] = { &by_value, &slot, &use, &pieces, &fill };
	cudaError_t error = current.error;

	if (!error)
		error = cudaLaunchKernel(device->program[PROGRAM_PLACE_CLOSE].entry, dim3(1),
					 dim3(PLACE_CLOSE_THREADS), args, 0, device->copy_stream);
	return error ? cuda_fail(error, "closing an image") : 0;
}

/* ---- closing entries of what is complete ---- */

struct place_wholes {
	uint32_t count;
	struct place_whole image[PLACE_WHOLE_MAX];
};

/* SHUT, one thread an image; see kernel_ops.place_close_whole(). */
__global__ void place_close_whole_kernel(struct place_table *table,
					 const __grid_constant__ struct place_wholes wholes)
{
	if (threadIdx.x < wholes.count)
		place_shut(&table->slot[wholes.image[threadIdx.x].slot],
			   wholes.image[threadIdx.x].use);
}

struct kernel_program place_close_whole_program(void)
{
	return { "place_close_whole", (const void *)place_close_whole_kernel, 0 };
}

int cuda_place_close_whole(struct kernel_device *device, const struct place_view *view,
			   const struct place_whole *images, uint32_t count)
{
	current_device current(device->ordinal);
	struct place_table *table = view->table;
	struct place_wholes wholes = {};
	void *args[] = { &table, &wholes };
	cudaError_t error = current.error;

	wholes.count = count;
	memcpy(wholes.image, images, count * sizeof(*images));
	if (!error)
		error = cudaLaunchKernel(device->program[PROGRAM_PLACE_CLOSE_WHOLE].entry, dim3(1),
					 dim3(PLACE_WHOLE_MAX), args, 0, device->copy_stream);
	return error ? cuda_fail(error, "closing images that are complete") : 0;
}
