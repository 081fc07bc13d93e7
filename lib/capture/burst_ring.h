/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The burst ring's layout: memory that the port's worker (a CPU thread) and the frames' worker (a
 * persistent kernel, the CPU backend or an embedder's consumer) both see. Single producer; one
 * consumer for each burst. This header knows neither DPDK nor CUDA; it compiles as C and CUDA.
 *
 * Two directions use the same ring. Capture: the producer publishes received frames, the consumer
 * checks them and writes records. Replay: the producer publishes empty slots with a request, the
 * consumer writes frames into them.
 *
 * Bursts are numbered from 0. Burst b uses ready[b & burst_mask] and result[b & burst_mask], a
 * cache line each, next to those of its neighbours. Descriptors and records are rings of their own:
 * burst b's are desc[(first + i) & desc_mask] and records[(first + i) & desc_mask].
 *
 * Orderings, by name:
 *
 * PUBLISH: the producer's store-release of ready[b].word after desc[] (and head_desc[], request[b]).
 * Partner, TAKE: the consumer's load-acquire (system scope) of it before it reads them.
 *
 * DONE: the consumer's store-release (system scope) of result[b].done after the records and after its
 * last access to the frames. Partner, COLLECT: the load-acquire of result[b].done before the records
 * are read and before the slots are reused.
 *
 * STOP: one relaxed word; no data depends on it.
 *
 * Over a bus each ordering of two accesses costs a round trip, so where few words tell all, each
 * of them says by itself which burst it belongs to, and none has to wait for another:
 *
 * INLINE: a small burst's descriptors stand in ready[b] and beside[b] too, so that a consumer that
 * loads the whole line has them with the word. The line's words may arrive in any order, so each
 * says which use of the line it is from: a mark that changes with every use. Between two uses the
 * burst went through TAKE to COLLECT, so a reader finds words of this use or of the one before, and
 * those differ in the mark. It leans on 8-byte accesses being single-copy atomic. Without the mark a
 * consumer would check the slots of the burst before.
 *
 *   ready[b], 64 bytes       bit 63          48 47     46      45      32 31                0
 *     word                   | generation + 1  | mark | INLINE | frames   | first descriptor |
 *                            bit 63 62          48 47           32 31                        0
 *     desc[0..6]             | cut | mark | offset | len           | slot                    |
 *   beside[b], 128 bytes: 16 more descriptors
 *
 * PLAIN: the outcome of a burst that is one record of valid frames stands in four words, result[b].done
 * and .plain[0..2], in relaxed stores. It is done when all four carry the ring's generation; other
 * bursts of a checker give plain[] their generation too, so that a reader finds words of this use
 * or of the one before. No store of the consumer has to be seen before them. On a CPU the store of
 * done is a release. On a GPU, where that would cost a round trip, nothing orders the loads from the
 * frames before the words but the data: what they brought decides what is stored (the values, and
 * whether the burst is PLAIN at all), and PTX's memory model lets no store be seen before the loads
 * that its value depends on (axiom No-Thin-Air). If that did not hold, a slot could be handed to the
 * port while it is still being read, and its frame would count as damaged.
 *
 *   done                     bit 63          48 47 46          45      32 31                0
 *                            | generation + 1  | 0 | PLAIN     | 1        | payload bytes    |
 *   plain[0]                 | generation + 1  | sequence number, bits 47..0                 |
 *   plain[1]                 | generation + 1  | sequence, bits 63..48 | stream | frames     |
 *   plain[2]                 | generation + 1  | source                | frame bytes         |
 *
 * tests/unit/ring_litmus.h plays all of these, CPU against CPU and CPU against GPU.
 */
#ifndef GDRCAP_BURST_RING_H
#define GDRCAP_BURST_RING_H

#include <stdint.h>

/* One frame: 8 bytes. Writer: producer. */
struct frame_desc {
	uint32_t slot; /* index in the region */
	uint16_t len;  /* bytes in memory, without FCS */
	uint16_t
		offset; /* of the frame's first byte from its slot's first, bytes; FRAME_DESC_CUT */
};

/* In offset: the frame did not fit its slot, or the kernel's, and only its beginning is there, so
 * it is damaged if it is meant at all. Slots are smaller. For frames whose own header does not say
 * how long they should be, and for the caller's own consumer. */
#define FRAME_DESC_CUT 0x8000u

/*
 * Frames next to each other in arrival order that have the same outcome: consecutive sequence
 * numbers of one stream, all valid; or one damaged frame; or neighbouring filtered frames. A burst
 * of valid frames in order is one record, so its accounting is O(1). 48 bytes. Writer: consumer.
 */
struct frame_record {
	uint64_t sequence; /* of the first frame: see struct frame_result */
	uint32_t bytes;	   /* payload bytes compared, the record's sum */
	uint32_t wrong_bits;
	uint16_t stream;
	uint16_t count;	       /* frames, 1.. */
	uint16_t offset;       /* damaged: first wrong byte, from the frame's first byte */
	uint8_t expected, got; /* damaged */
	uint8_t verdict;       /* enum frame_verdict */
	uint8_t header_ok;
	uint16_t first;			  /* index in the burst of the record's first frame */
	uint32_t frame_bytes;		  /* the frames' lengths in memory, sum */
	uint32_t phase_first, phase_next; /* of the first frame, of the last: struct frame_result */
	uint32_t detail;		  /* of the first frame: struct frame_result */
	uint32_t source;		  /* struct frame_result */
};

/* Descriptors of a burst that stand in its ready line, and beside it. */
#define BURST_READY_DESCS 7u
#define BURST_BESIDE_DESCS 16u
#define BURST_INLINE_MAX (BURST_READY_DESCS + BURST_BESIDE_DESCS) /* frames, for INLINE */

/* What tells the consumer that a burst is there: a cache line of its own, for each waiting consumer
 * polls its line over the bus, and the producer's store to a line that others poll waits for them.
 * Writer of this and the next: producer, by burst_publish(). */
struct burst_ready {
	uint64_t word;			  /* burst_word(): written last (PUBLISH) */
	uint64_t desc[BURST_READY_DESCS]; /* struct frame_desc, with a mark in BURST_DESC_MARK */
};

struct burst_beside {
	uint64_t desc[BURST_BESIDE_DESCS]; /* likewise, those that follow */
};

/* What the consumer writes for a burst, its records apart: one cache line. Writer: consumer; reader:
 * accountant. */
struct burst_result {
	uint64_t
		done; /* burst_word() of the records; written last (DONE), or with plain[] (PLAIN) */
	uint64_t plain[3]; /* struct burst_plain */
	uint64_t reserved[4];
};

/* Replay: what to write into the burst's slots. 32 bytes. Writer: producer. */
struct tx_request {
	uint64_t sequence; /* of the burst's first frame */
	uint64_t position; /* of its first payload byte in the stream; frames of a store: index of
			    * the first in store.frames, the burst's are next to each other there */
	uint64_t time_ns;  /* send time for the headers */
	uint32_t stream;
	uint32_t end; /* 1: end-of-stream frames, all alike: `sequence` is the number of frames
		       * that the stream had, `position` the number of the sender's streams */
};

/* The ring as the consumer sees it: pointers valid for the consumer. Passed by value. */
struct burst_ring_view {
	const struct frame_desc *desc;
	const struct burst_ready *ready;
	const struct burst_beside *beside; /* NULL: nothing is INLINE */
	struct burst_result *result;
	struct frame_record *records;	  /* records of bursts that are not PLAIN; capture only */
	const struct tx_request *request; /* replay only, index burst & burst_mask */
	const uint32_t *stop;		  /* not 0: leave; burst not yet taken stay untaken */
	uint8_t *frames;		  /* region base */
	uint64_t frames_bytes;		  /* region length: no descriptor may reach past it */
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
	/*
	 * FREE: by burst & burst_mask, burst_word() with neither count nor first: the consumer's last access
	 * to the burst's frames is over. In GPU memory, for a front on the GPU that gives slots back without
	 * asking the host. Writer: a block's done warp; partner: the front (kernels/cuda/front.cuh). Without
	 * it a slot would be given to the card while it is still being read. NULL: nobody asks.
	 */
	uint64_t *free_word;
};

#define BURST_FRAMES_MAX 256u /* frames in one burst at most */

/*
 * ready and done words: bits 63..48 the ring's generation + 1 (so that zeroed memory is never ready
 * and a word of the generation before is never mistaken), 47..46 flags, 45..32 frames (ready) or
 * records (done), 31..0 the free-running index of the first descriptor (ready), 0 (done; PLAIN:
 * payload bytes). burst_bits = log2(burst_mask + 1).
 */
#define BURST_COUNT_MASK 0x3fffu
#define BURST_INLINE_MARK ((uint64_t)1 << 47) /* ready: INLINE: the mark of the descriptors */
#define BURST_INLINE ((uint64_t)1 << 46)      /* ready */
#define BURST_PLAIN ((uint64_t)1 << 46)	      /* done: plain[] tells all */
#define BURST_GENERATION_SHIFT 48u
#define BURST_DESC_MARK ((uint64_t)1 << 62) /* in a descriptor: bit 14 of its offset */

#ifdef __CUDACC__
#define BURST_RING_HD __host__ __device__ __forceinline__
#else
#define BURST_RING_HD static inline
#endif

BURST_RING_HD uint64_t burst_word(uint64_t burst, uint32_t burst_bits, uint32_t count,
				  uint32_t first)
{
	return ((burst >> burst_bits) + 1) << BURST_GENERATION_SHIFT |
	       (uint64_t)(count & BURST_COUNT_MASK) << 32 | first;
}

BURST_RING_HD int burst_word_is(uint64_t word, uint64_t burst, uint32_t burst_bits)
{
	return (uint16_t)(word >> BURST_GENERATION_SHIFT) == (uint16_t)((burst >> burst_bits) + 1);
}

BURST_RING_HD uint32_t burst_word_count(uint64_t word)
{
	return (uint32_t)(word >> 32) & BURST_COUNT_MASK;
}

BURST_RING_HD uint32_t burst_word_first(uint64_t word)
{
	return (uint32_t)word;
}

/* PLAIN: one record of valid frames. What is not here is 0 in its struct frame_record, but for verdict
 * and header_ok. */
struct burst_plain {
	uint64_t sequence;	     /* of the first frame */
	uint32_t bytes, frame_bytes; /* as in struct frame_record */
	uint16_t stream, count;
	uint16_t source;
};

#define BURST_PLAIN_WORDS 4u /* done and plain[] */

/* Bits 47..0 of word w of the four, done first; above is the generation, as in burst_word().
 * Selects, since a GPU's lanes ask for one each. */
BURST_RING_HD uint64_t burst_plain_bits(const struct burst_plain *plain, uint32_t w)
{
	const uint64_t done = BURST_PLAIN | (uint64_t)1 << 32 | plain->bytes;
	const uint64_t low = plain->sequence & (((uint64_t)1 << BURST_GENERATION_SHIFT) - 1);
	const uint64_t rest = (plain->sequence >> BURST_GENERATION_SHIFT) << 32 |
			      (uint32_t)plain->stream << 16 | plain->count;

	const uint64_t last = (uint64_t)plain->source << 32 | plain->frame_bytes;

	return w < 2 ? (w ? low : done) : (w == 2 ? rest : last);
}

/* ---- host ---- */

/* The outcome of a burst that is done and PLAIN. */
static inline void burst_plain_read(const struct burst_result *result, struct burst_plain *plain)
{
	uint64_t word[3];

	for (uint32_t w = 0; w < 3; w++)
		word[w] = __atomic_load_n(&result->plain[w], __ATOMIC_RELAXED);
	plain->sequence = (word[0] & (((uint64_t)1 << BURST_GENERATION_SHIFT) - 1)) |
			  (word[1] >> 32 & 0xffff) << BURST_GENERATION_SHIFT;
	plain->bytes = (uint32_t)__atomic_load_n(&result->done, __ATOMIC_RELAXED);
	plain->frame_bytes = (uint32_t)word[2];
	plain->source = (uint16_t)(word[2] >> 32);
	plain->stream = (uint16_t)(word[1] >> 16);
	plain->count = (uint16_t)word[1];
}

/* Producer: the descriptors of a small burst, with the mark that those before them had not, each in
 * one store: a reader may look at any time. Returns what the ready word says of it. */
static inline uint64_t burst_write_inline(struct burst_ready *ready, struct burst_beside *beside,
					  const struct frame_desc *desc, uint32_t count)
{
	const uint64_t mark = ~ready->desc[0] & BURST_DESC_MARK;
	uint64_t raw, all = 0;

	for (uint32_t i = 0; i < BURST_INLINE_MAX; i++) {
		uint64_t *to = i < BURST_READY_DESCS ? &ready->desc[i]
						     : &beside->desc[i - BURST_READY_DESCS];

		__builtin_memcpy(&raw, &desc[i < count ? i : 0], sizeof(raw));
		all |= raw;
		__atomic_store_n(to, (raw & ~BURST_DESC_MARK) | mark, __ATOMIC_RELAXED);
	}
	/* offsets of slots larger than any that is needed have no room for a mark */
	if (all & BURST_DESC_MARK)
		return 0;
	return BURST_INLINE | (mark ? BURST_INLINE_MARK : 0);
}

/*
 * Producer: publishes `count` frames as burst `burst`, the descriptors of which are written, the
 * first at `desc`, number `first`. `beside`: NULL where nobody reads it.
 */
static inline void burst_publish(struct burst_ready *ready, struct burst_beside *beside,
				 const struct frame_desc *desc, uint64_t burst, uint32_t burst_bits,
				 uint32_t count, uint32_t first)
{
	uint64_t word = burst_word(burst, burst_bits, count, first);

	if (beside && count <= BURST_INLINE_MAX)
		word |= burst_write_inline(ready, beside, desc, count);
	/* PUBLISH: the descriptors and the request before the word. Partner: the consumer's TAKE. */
	__atomic_store_n(&ready->word, word, __ATOMIC_RELEASE);
}

/* COLLECT: true when the consumer is through with burst b. What it wrote, and its last reads of the
 * frames, come before what follows. Partner: the consumer's DONE, or PLAIN. */
static inline int burst_is_done(const struct burst_result *result, uint64_t burst,
				uint32_t burst_bits)
{
	const uint64_t done = __atomic_load_n(&result->done, __ATOMIC_ACQUIRE);
	int all = burst_word_is(done, burst, burst_bits);

	if (all && (done & BURST_PLAIN))
		for (uint32_t w = 0; w < 3; w++)
			all &= burst_word_is(__atomic_load_n(&result->plain[w], __ATOMIC_ACQUIRE),
					     burst, burst_bits);
	return all;
}

/* Checker: DONE, by a CPU, of a burst that is not PLAIN. */
static inline void burst_publish_records(struct burst_result *result, uint32_t records,
					 uint64_t burst, uint32_t burst_bits)
{
	for (uint32_t w = 1; w < BURST_PLAIN_WORDS; w++)
		__atomic_store_n(&result->plain[w - 1], burst_word(burst, burst_bits, 0, 0),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&result->done, burst_word(burst, burst_bits, records, 0),
			 __ATOMIC_RELEASE);
}

/* Checker: PLAIN, by a CPU; DONE for what else it wrote. */
static inline void burst_tell(struct burst_result *result, const struct burst_plain *plain,
			      uint64_t burst, uint32_t burst_bits)
{
	const uint64_t generation = burst_word(burst, burst_bits, 0, 0);

	for (uint32_t w = 1; w < BURST_PLAIN_WORDS; w++)
		__atomic_store_n(&result->plain[w - 1], generation | burst_plain_bits(plain, w),
				 __ATOMIC_RELAXED);
	__atomic_store_n(&result->done, generation | burst_plain_bits(plain, 0), __ATOMIC_RELEASE);
}

#ifdef __cplusplus
static_assert(sizeof(struct frame_desc) == 8, "8 bytes a frame");
static_assert(sizeof(struct frame_record) == 48, "record");
static_assert(sizeof(struct burst_result) == 64, "one cache line");
static_assert(sizeof(struct burst_ready) == 64, "one cache line");
static_assert(sizeof(struct burst_beside) == 128, "two cache lines");
static_assert(sizeof(struct tx_request) == 32, "request");
#else
_Static_assert(sizeof(struct frame_desc) == 8, "8 bytes a frame");
_Static_assert(sizeof(struct burst_result) == 64, "one cache line");
_Static_assert(sizeof(struct burst_ready) == 64, "one cache line");
_Static_assert(sizeof(struct burst_beside) == 128, "two cache lines");
_Static_assert(sizeof(struct tx_request) == 32, "request");
#endif

#endif
