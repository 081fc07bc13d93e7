/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stale-read detector: tells frames that a consumer saw before their bytes were there from
 * frames that were damaged on their way.
 *
 * Why there may be such frames: CUDA's documentation of GPUDirect RDMA ("GPUDirect RDMA", chapter
 * "Design Considerations", section "Synchronization and Memory Ordering") gives a kernel that runs
 * while a device writes into GPU memory no promise about what it sees of these writes, and in which
 * order; calls of the CPU made after the transfer give one. A persistent kernel is such a kernel.
 *
 * How it works: before a slot goes back, its consumer writes words over the first and the last
 * STALE_EDGE_BYTES of where the frame lay, each made from the slot, from how often the slot was so
 * poisoned (its generation) and from the word's place in the slot. A later frame in the slot that
 * is found anything but valid is read again, at system scope: at once, since its last bytes may
 * have come just after they were read; and, where a word at its edges was still this generation's
 * poison then, until it is right or the ring's stale_us have passed since the burst was first read.
 * A frame that came right is FRAME_DAMAGED_STALE. So is one whose bytes never came: whose first
 * words still were the poison when the time was up; nobody can read its header. Any other keeps the
 * outcome that it had at first. The poison only says where waiting is worth while: other damaged
 * frames are not waited for. A frame that did not fit its slot is never right, so it is not looked
 * at.
 *
 * Before a slot's first frame its memory holds STALE_FILL everywhere (generation 0). That is a
 * pattern that frames do carry: one word of it may be chance, so two words at the edges must have
 * it, and all of them where nothing came. A damaged frame, or somebody else's, that carries it itself is
 * waited for in vain, once a slot.
 *
 * A frame that is, or comes right as, an end-of-stream frame is taken as one: it has no data to be
 * stale.
 *
 * What is not seen, unless it comes within the microsecond or so before the frame is read again:
 * late bytes of the middle where those at the edges are there; of the end of a frame that is longer
 * or shorter than the one before in its slot, whose end was poisoned elsewhere; of a frame without
 * a whole aligned word (at generation 0, without two); and, with header-data split, of a frame's
 * first piece, which lies in host memory, and of frames that have no other. Never seen: late bytes
 * of a frame that is valid without them (padding, a payload that is not compared). Bytes of a split
 * frame's rest that never come leave it its header: it is damaged as that says.
 *
 * Compiles as C and CUDA, so that the CPU backend and the kernels do the same.
 */
#ifndef GDRCAP_STALE_H
#define GDRCAP_STALE_H

#include "kernels/frame_records.h"
#ifdef __CUDACC__
#include "kernels/cuda/ptx.cuh"
#endif

#define STALE_EDGE_BYTES 64u /* at each end */
#define STALE_FILL 0x55u     /* every byte of the slots before the run */

#define STALE_EDGE_WORDS (STALE_EDGE_BYTES / 8)

/*
 * The poison of generation `generation` in word `index` (from the slot's first byte, 8 bytes each)
 * of a slot. store_mix() is splitmix64's finaliser, and the constant its increment (Steele, Lea,
 * Flood 2014).
 */
GDRCAP_HD uint64_t stale_word(uint32_t slot, uint32_t generation, uint32_t index)
{
	if (!generation)
		return STALE_FILL * 0x0101010101010101u;
	return store_mix(store_mix((uint64_t)slot << 32 | generation) +
			 (index + 1) * 0x9e3779b97f4a7c15u);
}

/* The whole words, by address, of where a frame lies: with header-data split of its rest. */
struct stale_area {
	uint64_t *word;	      /* first */
	uint32_t count;	      /* words; 0: there is nothing to poison */
	uint32_t slot, index; /* index: of the first word, in the slot */
	uint32_t lead;	      /* bytes of the frame before the first word */
	uint32_t whole;	      /* 1: the frame begins here, and with it its headers */
	uint32_t generation;  /* of the poison that lay there when the frame came */
};

/* `rest`, `rest_len`: of a frame that can be reached. Reads the slot's generation. */
GDRCAP_HD void stale_area_of(const struct burst_ring_view *ring, struct frame_desc desc,
			     const struct frame_pieces *pieces, struct stale_area *area)
{
	const uint32_t offset = desc.offset & ~FRAME_DESC_CUT, skip = (0u - offset) & 7;

	area->count = 0;
	area->slot = desc.slot;
	area->generation = pieces->rest_len ? ring->generation[desc.slot] : 0;
	area->index = (offset + skip) / 8;
	area->lead = pieces->head_len + skip;
	area->whole = !pieces->head_len;
	area->word = (uint64_t *)(void *)(pieces->rest + skip);
	if (pieces->rest_len > skip)
		area->count = (pieces->rest_len - skip) / 8;
}

/* Words at both edges; where the edges meet, all words. */
GDRCAP_HD uint32_t stale_edges(const struct stale_area *area)
{
	return area->count < 2 * STALE_EDGE_WORDS ? area->count : 2 * STALE_EDGE_WORDS;
}

/* Which word edge word k is. */
GDRCAP_HD uint32_t stale_edge(const struct stale_area *area, uint32_t k)
{
	return k < STALE_EDGE_WORDS || area->count < 2 * STALE_EDGE_WORDS
		       ? k
		       : area->count - 2 * STALE_EDGE_WORDS + k;
}

/* At system scope: what is in memory now. */
GDRCAP_HD uint64_t stale_load(const uint64_t *at)
{
#ifdef __CUDA_ARCH__
	return load_relaxed_system(at);
#else
	return __atomic_load_n(at, __ATOMIC_RELAXED);
#endif
}

/* Bit k: edge word k is the poison. 0 where too few are to wait for the frame. */
GDRCAP_HD uint32_t stale_seen(const struct stale_area *area)
{
	const uint32_t edges = stale_edges(area);
	uint32_t seen = 0;

	for (uint32_t k = 0; k < edges; k++) {
		const uint32_t w = stale_edge(area, k);
		const uint64_t poison = stale_word(area->slot, area->generation, area->index + w);

		if (stale_load(&area->word[w]) == poison)
			seen |= 1u << k;
	}
	return area->generation || (seen & (seen - 1)) ? seen : 0;
}

/*
 * 1: nothing of the frame is there. Two words have the EtherType, wherever it starts, so that no
 * header of it was read; of a later generation they cannot be chance. The words behind them may be
 * another poison's, since frames differ in length.
 */
GDRCAP_HD int stale_is_absent(const struct stale_area *area)
{
	const uint32_t edges = stale_edges(area);
	const uint32_t asked = area->generation ? 3 : (1u << edges) - 1;

	return area->whole && edges >= 2 && (stale_seen(area) & asked) == asked;
}

/* What is said of a frame that never came. */
GDRCAP_HD void stale_absent(struct frame_result *result)
{
	frame_unreachable(result);
	result->verdict = FRAME_DAMAGED_STALE;
}

/* 1: no more is to be read of a frame with this outcome. */
GDRCAP_HD int stale_settles(const struct frame_result *result)
{
	return result->verdict == FRAME_VALID || result->verdict == FRAME_END;
}

/*
 * The outcome of a frame that settled: `result` is what it is now, `before` what it was at first.
 * Names the first byte that was poison (`seen`: stale_seen()) and is another now; where all of
 * these words are what they should be, the first byte that was poison; where none was seen, what
 * was wrong at first (0 and 0 where that was the header).
 */
GDRCAP_HD void stale_found(const struct stale_area *area, uint32_t seen,
			   const struct frame_result *before, struct frame_result *result)
{
	const uint32_t edges = stale_edges(area);
	int named = 0;

	if (result->verdict == FRAME_END)
		return;
	result->verdict = FRAME_DAMAGED_STALE;
	result->offset = before->offset;
	result->expected = before->expected;
	result->got = before->got;
	for (uint32_t k = 0; k < edges; k++) {
		const uint32_t w = stale_edge(area, k);
		uint64_t poison = stale_word(area->slot, area->generation, area->index + w);
		uint64_t word = stale_load(&area->word[w]);
		uint32_t byte = 0;

		if (!(seen >> k & 1) || (named && word == poison))
			continue;
		/* the first byte in memory is the lowest: CPUs and GPUs here are little-endian */
		while (byte < 7 && !((word ^ poison) >> (8 * byte) & 0xff))
			byte++;
		if (word == poison)
			byte = 0;
		result->offset = (uint16_t)(area->lead + 8 * w + byte);
		result->expected = (uint8_t)(word >> (8 * byte));
		result->got = (uint8_t)(poison >> (8 * byte));
		named = 1;
		if (word != poison)
			return;
	}
}

/* Writes the next generation's poison into edge word k. */
GDRCAP_HD void stale_poison(const struct stale_area *area, uint32_t k)
{
	const uint32_t w = stale_edge(area, k);

	area->word[w] = stale_word(area->slot, area->generation + 1, area->index + w);
}

#endif
