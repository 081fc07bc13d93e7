/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames and images to a kernel that is already running: the device side of gdrcap_get_gpu_queue() and
 * gdrcap_get_gpu_images(); frames from one: gdrcap_device_tx.cuh. Inline only; compute capability 7.0 or
 * later.
 *
 * Each function is called by all threads of a block, except those that ask for a frame or a piece,
 * gdrcap_gpu_frame() to gdrcap_gpu_frame_vlan() and gdrcap_gpu_piece_present(), which any thread may
 * call. Block k of W takes batches k, k + W, ... :
 *
 *     for (uint64_t seq = blockIdx.x;; seq += gridDim.x) {
 *             struct gdrcap_batch batch;
 *             int got;
 *
 *             while ((got = gdrcap_gpu_try_next(queue, seq, &batch)) == 0)
 *                     __nanosleep(200);
 *             if (got < 0)
 *                     return;
 *             for (uint32_t i = threadIdx.x; i < batch.count; i += blockDim.x)
 *                     use(gdrcap_gpu_frame(batch, i), gdrcap_gpu_frame_bytes(batch, i));
 *             gdrcap_gpu_release(queue, seq);
 *     }
 *
 * and images in the same way:
 *
 *     for (uint64_t seq = blockIdx.x;; seq += gridDim.x) {
 *             struct gdrcap_image image;
 *             int got;
 *
 *             while ((got = gdrcap_gpu_image_try_next(images, seq, &image)) == 0)
 *                     __nanosleep(200);
 *             if (got < 0)
 *                     return;
 *             use(image.data, image.bytes);
 *             gdrcap_gpu_image_release(images, seq);
 *     }
 *
 * Kernels that end, in a CUDA stream that waits for a batch or an image and gives it back, use the same calls but the
 * releases: gdrcap_stream.h.
 *
 * All blocks must be able to run at the same time, beside those that check or place frames (leave them
 * some multiprocessors), and nothing may wait for the whole device
 * (cudaMalloc, cudaFree, the default stream, a kernel that is loaded lazily) while they do.
 */
#ifndef GDRCAP_DEVICE_CUH
#define GDRCAP_DEVICE_CUH

#include "gdrcap.h"
#include "gdrcap_device_tx.cuh"
#include "gdrcap_udp.h"

/* The tag of batch `seq` in ready and done words: the ring's generation + 1. */
__device__ __forceinline__ uint32_t gdrcap_gpu_tag(const struct gdrcap_gpu_queue &queue,
						   uint64_t seq)
{
	return (uint32_t)((seq >> __popc(queue.burst_mask)) + 1) & 0xffffu;
}

/* TAKE: what the capture thread and the card wrote, before we read it. The partner is its
 * store-release of this word (PUBLISH). Strides count 8-byte words. */
__device__ __forceinline__ uint64_t gdrcap_gpu_word(const struct gdrcap_gpu_queue &queue,
						    uint64_t seq)
{
	uint64_t word;

	asm volatile("ld.acquire.sys.u64 %0, [%1];"
		     : "=l"(word)
		     : "l"(queue.ready + (seq & queue.burst_mask) * queue.ready_stride)
		     : "memory");
	return word;
}

/**
 * Batch `seq`, if it is there: 1 and *batch filled for every thread, 0 none yet, -1 the session is
 * stopping and it was not there. The frames and batch->pkts stay until gdrcap_gpu_release().
 */
__device__ __forceinline__ int gdrcap_gpu_try_next(const struct gdrcap_gpu_queue &queue,
						   uint64_t seq, struct gdrcap_batch *batch)
{
	__shared__ uint64_t shared_word;
	__shared__ uint32_t shared_stop;
	const bool leader = threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0;
	uint64_t word;

	__syncthreads(); /* all have read what the call before left */
	if (leader) {
		uint32_t stop = 0;

		word = gdrcap_gpu_word(queue, seq);
		/* Only an idle block asks: a GPU reads one and the same word of host memory for one
		 * block after the other. What was published before the stop is still taken. */
		if ((uint32_t)(word >> 48) != gdrcap_gpu_tag(queue, seq)) {
			asm volatile("ld.acquire.sys.u32 %0, [%1];"
				     : "=r"(stop)
				     : "l"(queue.stop)
				     : "memory");
			if (stop)
				word = gdrcap_gpu_word(queue, seq);
		}
		shared_word = word;
		shared_stop = stop;
	}
	__syncthreads();
	word = shared_word;
	if ((uint32_t)(word >> 48) != gdrcap_gpu_tag(queue, seq))
		return shared_stop ? -1 : 0;
	batch->seq = seq;
	batch->data = queue.data;
	batch->pkts = queue.pkts + ((uint32_t)word & queue.pkt_mask);
	batch->count = (uint32_t)(word >> 32) & 0x3fffu; /* flags above */
	batch->slot_bytes = queue.slot_bytes;
	batch->heads = queue.heads ? queue.heads + ((uint32_t)word & queue.pkt_mask) : nullptr;
	batch->head_data = queue.head_data;
	batch->head_slot_bytes = queue.head_slot_bytes;
	batch->reserved = 0;
	batch->times = nullptr;
	return 1;
}

/** Gives the batch back: no thread of the block may touch its frames afterwards. */
__device__ __forceinline__ void gdrcap_gpu_release(const struct gdrcap_gpu_queue &queue,
						   uint64_t seq)
{
	__syncthreads();
	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {
		const uint64_t word = (uint64_t)gdrcap_gpu_tag(queue, seq) << 48;

		/* DONE: every thread's last access, before the slots are used again. The partner is
		 * the capture thread's load-acquire (COLLECT). */
		asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(
				     queue.done + (seq & queue.burst_mask) * queue.done_stride),
			     "l"(word)
			     : "memory");
	}
}

/** First byte of frame `i` of the batch; with header-data split, of what follows its head. */
__device__ __forceinline__ uint8_t *gdrcap_gpu_frame(const struct gdrcap_batch &batch, uint32_t i)
{
	return batch.data + (size_t)batch.pkts[i].slot * batch.slot_bytes +
	       (batch.pkts[i].offset & ~GDRCAP_PKT_CUT);
}

/** True when only its first bytes came. */
__device__ __forceinline__ bool gdrcap_gpu_frame_is_cut(const struct gdrcap_batch &batch,
							uint32_t i)
{
	return batch.pkts[i].offset & GDRCAP_PKT_CUT;
}

/** Its length, without FCS; with header-data split, of what follows its head: 0 where nothing does.
 */
__device__ __forceinline__ uint32_t gdrcap_gpu_frame_bytes(const struct gdrcap_batch &batch,
							   uint32_t i)
{
	return batch.pkts[i].len;
}

/** Bytes that it had on the wire, with FCS, but without preamble and gap (20 more). 0: it was cut, and
 * nobody knows. */
__device__ __forceinline__ uint32_t gdrcap_gpu_frame_wire_bytes(const struct gdrcap_batch &batch,
								uint32_t i)
{
	if (gdrcap_gpu_frame_is_cut(batch, i))
		return 0;
	return (batch.heads ? batch.heads[i].len : 0) + batch.pkts[i].len + 4;
}

/** Header-data split: first byte of frame `i`, in host memory. NULL where frames lie whole. */
__device__ __forceinline__ uint8_t *gdrcap_gpu_head(const struct gdrcap_batch &batch, uint32_t i)
{
	if (!batch.heads)
		return nullptr;
	return batch.head_data + (size_t)batch.heads[i].slot * batch.head_slot_bytes +
	       batch.heads[i].offset;
}

/** So many of its bytes are there; 0 where frames lie whole. */
__device__ __forceinline__ uint32_t gdrcap_gpu_head_bytes(const struct gdrcap_batch &batch,
							  uint32_t i)
{
	return batch.heads ? batch.heads[i].len : 0;
}

/** Id of its outermost VLAN tag, 0..4095, or -1 without one. */
__device__ __forceinline__ int gdrcap_gpu_frame_vlan(const struct gdrcap_batch &batch, uint32_t i)
{
	const uint8_t *head = gdrcap_gpu_head(batch, i);
	const uint8_t *at = head ? head : gdrcap_gpu_frame(batch, i);
	const uint32_t bytes =
		head ? gdrcap_gpu_head_bytes(batch, i) : gdrcap_gpu_frame_bytes(batch, i);

	if (bytes < 18 ||
	    !((at[12] == 0x81 && at[13] == 0x00) || (at[12] == 0x88 && at[13] == 0xa8)))
		return -1;
	return (at[14] & 15) << 8 | at[15];
}

/* ---- images ---- */

/* GIVE: the image's bytes and bitmap, and what the CPU wrote of it, before we read them. The partner is
 * the CPU's store-release of this word. */
__device__ __forceinline__ uint64_t gdrcap_gpu_image_word(const struct gdrcap_gpu_images &images,
							  uint64_t seq)
{
	const size_t at = (size_t)(seq & images.mask) * images.stride;
	uint64_t word;

	asm volatile("ld.acquire.sys.u64 %0, [%1];"
		     : "=l"(word)
		     : "l"((const char *)images.ready + at)
		     : "memory");
	return word;
}

/**
 * Image `seq`, if it is there: 1 and *image filled for every thread, 0 none yet, -1 the session is
 * stopping and it was not there. image->data, a device pointer, and image->present stay until
 * gdrcap_gpu_image_release(). A block that keeps an image for long costs images: it has a buffer of
 * the ring.
 */
__device__ __forceinline__ int gdrcap_gpu_image_try_next(const struct gdrcap_gpu_images &images,
							 uint64_t seq, struct gdrcap_image *image)
{
	__shared__ uint64_t shared_word;
	__shared__ uint32_t shared_stop;
	__shared__ struct gdrcap_image shared_image;
	const uint32_t threads = blockDim.x * blockDim.y * blockDim.z;
	const uint32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	const char *from =
		(const char *)images.images + (size_t)(seq & images.mask) * images.stride;

	__syncthreads(); /* all have read what the call before left */
	if (thread == 0) {
		uint32_t stop = 0;

		shared_word = gdrcap_gpu_image_word(images, seq);
		/* END: what was given before the stop is still taken. The partner is the CPU's
		 * store-release of the stop word, after the last image's. */
		if (shared_word != seq + 1) {
			asm volatile("ld.acquire.sys.u32 %0, [%1];"
				     : "=r"(stop)
				     : "l"(images.stop)
				     : "memory");
			if (stop)
				shared_word = gdrcap_gpu_image_word(images, seq);
		}
		shared_stop = stop;
	}
	__syncthreads();
	if (shared_word != seq + 1)
		return shared_stop ? -1 : 0;
	/* What only this header has is 0. */
	for (uint32_t w = thread; w < sizeof(*image) / 8; w += threads)
		((uint64_t *)&shared_image)[w] =
			w < images.image_bytes / 8 ? ((const volatile uint64_t *)from)[w] : 0;
	__syncthreads();
	*image = shared_image;
	return 1;
}

/** Gives the image back: no thread of the block may touch its bytes or bitmap afterwards. */
__device__ __forceinline__ void gdrcap_gpu_image_release(const struct gdrcap_gpu_images &images,
							 uint64_t seq)
{
	__syncthreads();
	/* BACK: every thread's last access, before the buffer is used again. The partner is the CPU's
	 * load-acquire of this word. */
	if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
		asm volatile(
			"st.release.sys.u64 [%0], %1;" ::"l"(images.done + (seq & images.mask)),
			"l"(seq + 1)
			: "memory");
}

/** True when piece `i`, of image.pieces or, where these are 0, of the most that there can be, came. */
__device__ __forceinline__ bool gdrcap_gpu_piece_present(const struct gdrcap_image &image,
							 uint32_t i)
{
	return image.end == GDRCAP_IMAGE_COMPLETE || (image.present[i / 32] >> i % 32 & 1);
}

/* ---- frames to be sent ---- */

/**
 * Writes the UDP checksum into a frame of the caller's: `bytes` of it at `frame`, and, where it is
 * sent in two pieces, `payload_bytes` more at `payload`. By all 32 threads of a warp (in the order of
 * their numbers in the block), with the same arguments, when all that it covers was written by threads
 * of this warp, or of others behind a barrier. True: it is written, for every thread of the warp to
 * see. False: it is a frame that gdrcap_tx_checksum_after() leaves as it is, too.
 */
__device__ __forceinline__ bool gdrcap_udp_checksum(uint8_t *frame, uint32_t bytes,
						    const void *payload = nullptr,
						    uint32_t payload_bytes = 0)
{
	const uint32_t lane =
		((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % 32;
	struct gdrcap_udp udp;
	uint32_t sum;

	__syncwarp(); /* what the others of the warp have written */
	if (!gdrcap_udp_find(frame, bytes, bytes + (payload ? payload_bytes : 0), &udp))
		return false;
	sum = gdrcap_udp_share(frame, bytes, (const uint8_t *)payload, &udp, lane, 32);
	for (int other = 16; other; other /= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, other);
	if (lane == 0)
		gdrcap_udp_put(frame, &udp, sum + udp.sum);
	__syncwarp();
	return true;
}

#endif
