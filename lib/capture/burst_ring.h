/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The burst ring's layout: memory that the port's worker (a CPU thread) and the frames' worker (a
 * persistent kernel, its host twin or an embedder's consumer) both see. Single producer; one
 * consumer for each burst. This header knows neither DPDK nor CUDA; it compiles as C and CUDA.
 *
 * Two directions use the same ring. Capture: the producer publishes received frames, the consumer
 * checks them and writes runs. Replay: the producer publishes empty slots with an order, the
 * consumer writes frames into them.
 *
 * Bursts are numbered from 0. Burst b uses ready[b & burst_mask] and result[b & burst_mask].
 * Descriptors are a ring of their own: burst b's are desc[(first + i) & desc_mask].
 *
 * Orderings, by name:
 *
 * PUBLISH: the producer's store-release of ready[b] after desc[] (and head_desc[], order[b]).
 * Partner, TAKE: the consumer's load-acquire (system scope) of ready[b] before it reads them.
 *
 * DONE: the consumer's store-release (system scope) of result[b].done after the runs and after its
 * last access to the frames. Partner, COLLECT: the load-acquire of result[b].done before the runs
 * are read and before the slots are reused.
 *
 * STOP: one relaxed word; no data depends on it.
 */
#ifndef GDRCAP_BURST_RING_H
#define GDRCAP_BURST_RING_H

#include <stdint.h>

/* One frame: 8 bytes. Writer: producer. */
struct frame_desc {
	uint32_t slot; /* index in the region */
	uint16_t len; /* bytes in memory, without FCS */
	uint16_t offset; /* of the frame's first byte from its slot's first, bytes; FRAME_DESC_CUT */
};

/* In offset: the frame did not fit its slot, and only its beginning is there, so it is damaged if
 * it is meant at all. Slots are smaller. For frames whose own header does not say how long they
 * should be. */
#define FRAME_DESC_CUT 0x8000u

/*
 * Frames next to each other in arrival order that have the same outcome: consecutive sequence
 * numbers of one stream, all valid; or one damaged frame; or neighbouring filtered frames. A burst
 * of valid frames in order is one run, so its accounting is O(1). 48 bytes. Writer: consumer.
 */
struct frame_run {
	uint64_t sequence; /* of the first frame: see struct frame_result */
	uint32_t bytes; /* payload bytes compared, the run's sum */
	uint32_t wrong_bits;
	uint16_t stream;
	uint16_t count; /* frames, 1.. */
	uint16_t offset; /* damaged: first wrong byte, from the frame's first byte */
	uint8_t expected, got; /* damaged */
	uint8_t verdict; /* enum frame_verdict */
	uint8_t header_ok;
	uint16_t first; /* index in the burst of the run's first frame */
	uint32_t wire_bytes; /* the frames' lengths in memory, sum */
	uint32_t phase_first, phase_next; /* of the first frame, of the last: struct frame_result */
	uint32_t detail; /* struct frame_result */
	uint32_t reserved;
};

/* What tells the consumer that a burst is there: a cache line of its own, for each waiting consumer
 * polls its line over the bus, and the producer's store to a line that others poll waits for them. */
struct burst_ready {
	uint64_t word; /* burst_word(): written last (PUBLISH) */
	uint64_t reserved[7];
};

/* What the consumer writes for a burst: one cache line. Writer: consumer; reader: accountant. */
struct burst_result {
	uint64_t done; /* burst_tag() | runs << 32; written last (DONE) */
	uint64_t reserved;
	struct frame_run run; /* run 0; runs 1.. are in overflow[(first + r) & desc_mask] */
};

/* Replay: what to write into the burst's slots. 32 bytes. Writer: producer. */
struct burst_order {
	uint64_t sequence; /* of the burst's first frame */
	uint64_t position; /* of its first payload byte in the stream; frames of a store: index of
			    * the first in store.frames, the burst's are next to each other there */
	uint64_t time_ns; /* send time for the headers */
	uint32_t stream;
	uint32_t end; /* 1: end-of-stream frames, all alike: `sequence` is the number of frames
		       * that the stream had, `position` the number of the sender's streams */
};

/* The ring as the consumer sees it: pointers valid for the consumer. Passed by value. */
struct burst_ring_view {
	const struct frame_desc *desc;
	const struct burst_ready *ready;
	struct burst_result *result;
	struct frame_run *overflow; /* capture only */
	const struct burst_order *order; /* replay only, index burst & burst_mask */
	const uint32_t *stop; /* not 0: leave; burst not yet taken stay untaken */
	uint8_t *frames; /* region base */
	uint64_t frames_bytes; /* region length: no descriptor may reach past it */
	uint32_t desc_mask, burst_mask;
	uint32_t slot_shift; /* log2 of the slot size in bytes */
	uint32_t head_shift; /* the same of the slots in `heads` */
	/*
	 * Header-data split; NULL: frames lie whole in their slots. Else the first bytes of the frame
	 * of descriptor i are where head_desc[i] says, in `heads`, and desc[i] is the rest: its len is 0
	 * for a frame that has no more bytes. The frame's length is the sum. Capture only.
	 */
	const struct frame_desc *head_desc;
	uint8_t *heads; /* host memory that the consumer reads over PCIe */
	uint64_t heads_bytes;
	/* Stale-read detector (kernels/stale.h), by slot of `frames`: how often the slot was poisoned.
	 * Writer: the consumer that has the slot's frame. NULL: no detector. Capture only. */
	uint32_t *generation;
	uint32_t stale_us; /* how long a frame that shows poison is waited for, us a burst */
	uint32_t reserved;
};

#define BURST_FRAMES_MAX 256u /* frames in one burst at most */

/*
 * ready and done words: bits 63..48 the lap + 1 of the ring (so that zeroed memory is never
 * ready and a word of the lap before is never mistaken), 47..32 frames (ready) or runs (done),
 * 31..0 the free-running index of the first descriptor (ready), 0 (done).
 * burst_bits = log2(burst_mask + 1).
 */
#ifdef __CUDACC__
#define BURST_RING_HD __host__ __device__ __forceinline__
#else
#define BURST_RING_HD static inline
#endif

BURST_RING_HD uint64_t burst_word(uint64_t burst, uint32_t burst_bits, uint32_t count,
				  uint32_t first)
{
	return ((burst >> burst_bits) + 1) << 48 | (uint64_t)(uint16_t)count << 32 | first;
}

BURST_RING_HD int burst_word_is(uint64_t word, uint64_t burst, uint32_t burst_bits)
{
	return (uint16_t)(word >> 48) == (uint16_t)((burst >> burst_bits) + 1);
}

BURST_RING_HD uint32_t burst_word_count(uint64_t word)
{
	return (uint32_t)(word >> 32) & 0xffff;
}

BURST_RING_HD uint32_t burst_word_first(uint64_t word)
{
	return (uint32_t)word;
}

#ifdef __cplusplus
static_assert(sizeof(struct frame_desc) == 8, "8 bytes a frame");
static_assert(sizeof(struct frame_run) == 48, "run");
static_assert(sizeof(struct burst_result) == 64, "one cache line");
static_assert(sizeof(struct burst_ready) == 64, "one cache line");
static_assert(sizeof(struct burst_order) == 32, "order");
#else
_Static_assert(sizeof(struct frame_desc) == 8, "8 bytes a frame");
_Static_assert(sizeof(struct burst_result) == 64, "one cache line");
_Static_assert(sizeof(struct burst_ready) == 64, "one cache line");
_Static_assert(sizeof(struct burst_order) == 32, "order");
#endif

#endif
