/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send queue of a ConnectX without a driver: work entries for frames that lie in memory, the
 * doorbell, and completions that give the frames' slots back. One logic for whoever drives the
 * queue, a CPU thread or a kernel: C and CUDA. It knows neither DPDK nor Verbs; own_tx.h makes the
 * objects. Nothing here reads a frame.
 *
 * The ring consists of blocks of 64 bytes. A work entry is a whole number of blocks and may go on at
 * the ring's start; segments of 16 bytes: control, Ethernet, then 16 bytes a frame (length, key,
 * address). A burst of frames becomes entries of one shape, so that each frame's place follows from
 * its number alone and many lanes may write at once:
 *
 *   small frames   entries of up to 60 frames (multi-packet, opcode 0x29), 16 blocks each; what is
 *                  left is shorter, and a single frame is a SEND
 *   large frames   a SEND each, one block: an entry is through when all its frames are, so those of
 *                  a long one would hold each other's slots
 *
 * The last entry of every few bursts is marked: the card writes a completion for it, which says that
 * all before it are sent too. Frames go and come back in order, so "so many are sent" is all there
 * is to say. The others have a completion only where they are the first to fail.
 *
 * Orderings, by name. The card is the partner of all but the first.
 *
 * WRITTEN: the writer's release after a frame's last byte (DONE of burst_ring.h; a barrier of the
 * block in a kernel). Partner: this side's acquire before sq_bell(). Without it the card would send
 * what lay in the slot before.
 *
 * POSTED: the entries, then (release) the record, which says how many blocks there are. Partner: the
 * card reads the record, then the entries. Without it the card would run an entry of a lap ago: send
 * other frames, or stop with an error.
 *
 * RUNG: the record, then (fence that orders memory and device) the register. Partner: the card,
 * woken by the register, reads the record. Without it the card would find nothing new, and sleep
 * beside frames that nobody rings for again.
 *
 * SENT: the completion's last 8 bytes (acquire), then whatever is done with the slots and blocks
 * that it gives back. Partner: the card has read frames and entries when it writes it, the owner
 * bit last. Without it a frame would be written over while the card reads it.
 *
 * All that the card writes is untrusted: a completion counts only if it is the one for the oldest
 * mark that is out, of this queue and of the kind that a sent entry has. Anything else ends in
 * SQ_BROKEN, and gives back nothing.
 */
#ifndef GDRCAP_SQ_FRONT_H
#define GDRCAP_SQ_FRONT_H

#include <stdint.h>

#include "base/device_order.h"

#ifdef __CUDACC__
#define SQ_HD __host__ __device__ __forceinline__
#else
#define SQ_HD static inline
#endif

#define SQ_BLOCK 64u
#define SQ_SEGMENT 16u
#define SQ_DATA (2 * SQ_SEGMENT) /* where an entry's first frame stands, byte */
#define SQ_MULTI_MAX 60u	 /* frames of an entry: 62 segments; six bits count them */
#define SQ_MULTI_BLOCKS 16u	 /* of a full one */
#define SQ_LARGE 4096u		 /* bytes of a frame from which its burst has an entry for each */
#define SQ_BLOCKS_MIN 1024u
#define SQ_BLOCKS_MAX 32768u /* the card counts them in 16 bits */
#define SQ_MARK_BURSTS 4u    /* a completion every so many bursts */

enum sq_opcode {
	SQ_NOP = 0x00,
	SQ_SEND = 0x0a,
	SQ_MULTI = 0x29,
};
/* When an entry has a completion (control segment, byte 11). */
#define SQ_IF_FIRST_TO_FAIL (1u << 2)
#define SQ_ALWAYS (2u << 2)

/* As whoever drives the queue sees it: plain pointers. */
struct sq_queue {
	uint8_t *ring;	       /* `blocks` of 64 bytes, a power of two */
	const uint8_t *cq;     /* `cqes` of 64 bytes, a power of two; preset to "invalid" (0xf1) */
	uint32_t *record;      /* be32: blocks posted, 16 bits count */
	uint64_t *bell;	       /* the register; NULL: somebody else rings, see sq_front.rings */
	uint32_t blocks, cqes; /* SQ_BLOCKS_MIN or more blocks */
	uint32_t number;       /* the queue's, 24 bits */
	uint32_t key;	       /* of the frames' memory */
	uint32_t
		mark_frames; /* a completion every so many frames at least: an eighth of the slots */
};

/* A marked entry that is out. */
struct sq_mark {
	uint64_t frames, blocks; /* through with it: as of struct sq_front */
	uint32_t counter;	 /* by which its completion names it: its first block, 16 bits */
	uint32_t reserved;
};

enum sq_state {
	SQ_RUNS,
	SQ_FAILED, /* the card stopped the queue: an error completion */
	SQ_BROKEN, /* a completion that no entry has */
};

struct sq_front {
	struct sq_queue queue;
	struct sq_mark *mark;	/* queue.cqes / 2 of them */
	uint64_t posted, freed; /* blocks, since the last reset */
	uint64_t frames, sent;	/* posted; sent, or given up by a reset */
	uint64_t marks, seen;	/* marks made; completions taken */
	uint64_t cqe;		/* the next entry of the completion queue, of all time */
	uint64_t rings;		/* doorbells rung or, without a register, asked for */
	uint64_t bell;		/* what the register gets: the last entry's first 8 bytes */
	uint64_t lost;		/* frames that resets gave up */
	uint32_t bursts_unmarked, frames_unmarked, blocks_unmarked;
	uint32_t state;	   /* enum sq_state */
	uint32_t syndrome; /* SQ_FAILED: the card's, and the vendor's above it */
	uint32_t counter;  /* with state: of the completion */
	uint64_t bad;	   /* the same: its last 8 bytes */
};

/* ---- arithmetic ---- */

SQ_HD uint32_t sq_be32(uint32_t value)
{
	return value >> 24 | (value >> 8 & 0xff00) | (value & 0xff00) << 8 | value << 24;
}

/* Entries of a burst; `each`: one a frame. */
SQ_HD uint32_t sq_entries(uint32_t count, int each)
{
	return each ? count : (count + SQ_MULTI_MAX - 1) / SQ_MULTI_MAX;
}

/* Blocks of an entry. */
SQ_HD uint32_t sq_entry_blocks(uint32_t frames)
{
	return (2 + frames + 3) / 4;
}

SQ_HD uint32_t sq_blocks(uint32_t count, int each)
{
	const uint32_t rest = count % SQ_MULTI_MAX;

	if (each)
		return count;
	return count / SQ_MULTI_MAX * SQ_MULTI_BLOCKS + (rest ? sq_entry_blocks(rest) : 0);
}

/* Frames of entry e of a burst. */
SQ_HD uint32_t sq_entry_frames(uint32_t count, int each, uint32_t e)
{
	const uint32_t left = count - e * SQ_MULTI_MAX;

	if (each)
		return 1;
	return left < SQ_MULTI_MAX ? left : SQ_MULTI_MAX;
}

/* First block of entry e, from the burst's. */
SQ_HD uint32_t sq_entry_block(int each, uint32_t e)
{
	return each ? e : e * SQ_MULTI_BLOCKS;
}

/* Where frame i of a burst stands, bytes from the burst's first block. */
SQ_HD uint32_t sq_frame_place(int each, uint32_t i)
{
	if (each)
		return i * SQ_BLOCK + SQ_DATA;
	return i / SQ_MULTI_MAX * SQ_MULTI_BLOCKS * SQ_BLOCK + SQ_DATA +
	       i % SQ_MULTI_MAX * SQ_SEGMENT;
}

/* ---- entries: any lane ---- */

/* 16 bytes of the ring, `at` bytes from block `block`. */
SQ_HD void sq_put(const struct sq_queue *queue, uint64_t block, uint32_t at, uint64_t first,
		  uint64_t second)
{
	const uint32_t offset = ((uint32_t)block * SQ_BLOCK + at) & (queue->blocks * SQ_BLOCK - 1);
	uint64_t *to = (uint64_t *)(queue->ring + offset);

	to[0] = first;
	to[1] = second;
}

/* The first 8 bytes of the entry at `block`, as they stand in memory: what the register gets too. */
SQ_HD uint64_t sq_control(const struct sq_queue *queue, uint64_t block, uint32_t frames)
{
	const uint32_t opcode = frames > 1 ? SQ_MULTI : frames ? SQ_SEND : SQ_NOP;
	const uint32_t segments = 2 + frames;

	return sq_be32((uint32_t)(block & 0xffff) << 8 | opcode) |
	       (uint64_t)sq_be32(queue->number << 8 | segments) << 32;
}

/* Entry at `block`: what stands before its frames. `complete`: SQ_ALWAYS or SQ_IF_FIRST_TO_FAIL. No
 * part of a frame is inline, and nothing in it is for the card to fill in. */
SQ_HD void sq_write_entry(const struct sq_queue *queue, uint64_t block, uint32_t frames,
			  uint32_t complete)
{
	/* Bytes 8..15: signature, -, -, complete; immediate. Little-endian, as all that CUDA runs
	 * on. */
	sq_put(queue, block, 0, sq_control(queue, block, frames), (uint64_t)complete << 24);
	sq_put(queue, block, SQ_SEGMENT, 0, 0);
}

/* Frame i of the burst at `block`. `address`: as the card knows it. */
SQ_HD void sq_write_frame(const struct sq_queue *queue, uint64_t block, int each, uint32_t i,
			  uint64_t address, uint32_t bytes)
{
	sq_put(queue, block, sq_frame_place(each, i),
	       sq_be32(bytes) | (uint64_t)sq_be32(queue->key) << 32,
	       sq_be32((uint32_t)(address >> 32)) | (uint64_t)sq_be32((uint32_t)address) << 32);
}

/* ---- a burst: one lane ---- */

SQ_HD uint32_t sq_marks_max(const struct sq_queue *queue)
{
	/* The other half: completions of entries that are flushed, and of the one that failed. */
	return queue->cqes / 2;
}

/* True when a burst of so many frames finds room now. */
SQ_HD int sq_fits(const struct sq_front *front, uint32_t count, int each)
{
	return front->state == SQ_RUNS &&
	       front->queue.blocks - (front->posted - front->freed) >= sq_blocks(count, each) &&
	       front->marks - front->seen < sq_marks_max(&front->queue);
}

/* True when the burst that comes next is to be marked. Fewer than three bursts, an eighth of the
 * blocks or `mark_frames` frames are ever out behind the last mark, so whoever waits for room waits
 * for a completion that will come. */
SQ_HD int sq_mark_due(const struct sq_front *front, uint32_t count, int each)
{
	return front->bursts_unmarked + 1 >= SQ_MARK_BURSTS ||
	       front->frames_unmarked + count >= front->queue.mark_frames ||
	       front->blocks_unmarked + sq_blocks(count, each) >= front->queue.blocks / 8;
}

/* After the entries of a burst of `count` frames at front->posted were written; its last one has
 * SQ_ALWAYS if `marked`. Nothing reaches the card before sq_bell(). count 0: one SQ_NOP. */
SQ_HD void sq_burst_add(struct sq_front *front, uint32_t count, int each, int marked)
{
	const uint32_t entries = count ? sq_entries(count, each) : 1;
	const uint32_t blocks = count ? sq_blocks(count, each) : 1;
	const uint64_t last = front->posted + sq_entry_block(each, entries - 1);
	struct sq_mark *mark;

	front->bell = sq_control(&front->queue, last,
				 count ? sq_entry_frames(count, each, entries - 1) : 0);
	front->posted += blocks;
	front->frames += count;
	front->bursts_unmarked = marked ? 0 : front->bursts_unmarked + 1;
	front->frames_unmarked = marked ? 0 : front->frames_unmarked + count;
	front->blocks_unmarked = marked ? 0 : front->blocks_unmarked + blocks;
	if (!marked)
		return;
	mark = &front->mark[front->marks & (sq_marks_max(&front->queue) - 1)];
	mark->frames = front->frames;
	mark->blocks = front->posted;
	mark->counter = (uint32_t)(last & 0xffff);
	front->marks++;
}

/* What the record says, as it stands in memory. */
SQ_HD uint32_t sq_record(const struct sq_front *front)
{
	return sq_be32((uint32_t)(front->posted & 0xffff));
}

/* ---- completions: one lane ---- */

/* Where the next one will stand: its last 8 bytes are the owner's, all else is written before. */
SQ_HD const uint8_t *sq_cqe_at(const struct sq_front *front)
{
	return front->queue.cq + (front->cqe & (front->queue.cqes - 1)) * SQ_BLOCK;
}

#define SQ_CQE_LAST 56u	    /* byte: queue's number, counter, signature, owner byte */
#define SQ_CQE_SYNDROME 55u /* of an error; the vendor's is before it */
#define SQ_CQE_SENT 0u
#define SQ_CQE_ERROR 13u
#define SQ_CQE_INVALID 15u

/* True when `last` is there for entry front->cqe of the completion queue. */
SQ_HD int sq_cqe_is_new(const struct sq_front *front, uint64_t last)
{
	const uint32_t owner = (uint32_t)(last >> 56);

	return owner >> 4 != SQ_CQE_INVALID &&
	       (owner & 1) == (front->cqe & front->queue.cqes ? 1u : 0u);
}

/*
 * Takes a completion that is new: `last` was loaded with acquire (SENT), `syndrome` are the two bytes
 * before, little-endian. Only the one for the oldest mark gives something back.
 */
SQ_HD void sq_take(struct sq_front *front, uint64_t last, uint32_t syndrome)
{
	const uint32_t owner = (uint32_t)(last >> 56), opcode = owner >> 4;
	const uint32_t counter = (uint32_t)(last >> 40 & 0xff) | (uint32_t)(last >> 32 & 0xff) << 8;
	const uint32_t number = sq_be32((uint32_t)last) & 0xffffff;
	const struct sq_mark *mark = &front->mark[front->seen & (sq_marks_max(&front->queue) - 1)];

	front->cqe++;
	/* Bits 3..2: compressed, or with data inline: no send queue of ours has those. */
	if (opcode == SQ_CQE_SENT && (owner & 0xc) == 0 && number == front->queue.number &&
	    front->seen != front->marks && counter == mark->counter) {
		front->sent = mark->frames;
		front->freed = mark->blocks;
		front->seen++;
		return;
	}
	front->state =
		opcode == SQ_CQE_ERROR && number == front->queue.number ? SQ_FAILED : SQ_BROKEN;
	front->syndrome = syndrome >> 8 | (syndrome & 0xff) << 8;
	front->counter = counter;
	front->bad = last;
}

/* The card's queue was reset and is ready again, and the record is 0; what it had not sent is given
 * up. Completions that came meanwhile were taken by sq_skip(). */
SQ_HD void sq_restart(struct sq_front *front)
{
	front->lost += front->frames - front->sent;
	front->sent = front->frames;
	front->posted = 0;
	front->freed = 0;
	front->seen = front->marks;
	front->bursts_unmarked = 0;
	front->frames_unmarked = 0;
	front->blocks_unmarked = 0;
	front->state = SQ_RUNS;
}

/* ---- by a CPU ---- */

#ifndef __CUDA_ARCH__

/* POSTED and RUNG: all bursts added so far. */
static inline void sq_bell(struct sq_front *front)
{
	const struct sq_queue *queue = &front->queue;

	/* POSTED: entries before the record. Partner: the card reads the record first. */
	device_order_store();
	__atomic_store_n(queue->record, sq_record(front), __ATOMIC_RELEASE);
	front->rings++;
	if (!queue->bell)
		return;
	/* RUNG: the record before the register. Partner: the card, which the register wakes. */
	device_order_register();
	__atomic_store_n(queue->bell, front->bell, __ATOMIC_RELAXED);
	device_order_register(); /* now, not when the buffer is full */
}

static inline uint64_t sq_cqe_last(const struct sq_front *front)
{
	/* SENT: before slots and blocks are used again. Partner: the card, owner last. */
	const uint64_t last = __atomic_load_n((const uint64_t *)(sq_cqe_at(front) + SQ_CQE_LAST),
					      __ATOMIC_ACQUIRE);

	device_order_load();
	return last;
}

/* Takes all completions that are there. Returns the frames that came back. */
static inline uint64_t sq_poll(struct sq_front *front)
{
	const uint64_t before = front->sent;

	while (front->state == SQ_RUNS) {
		const uint8_t *cqe = sq_cqe_at(front);
		const uint64_t last = sq_cqe_last(front);

		if (!sq_cqe_is_new(front, last))
			break;
		sq_take(front, last,
			(uint32_t)cqe[SQ_CQE_SYNDROME - 1] | (uint32_t)cqe[SQ_CQE_SYNDROME] << 8);
	}
	return front->sent - before;
}

/* While the queue is reset: completions that nobody wants any more. As many as the ring has at most,
 * should the card write on. */
static inline void sq_skip(struct sq_front *front)
{
	for (uint32_t i = 0; i < front->queue.cqes; i++, front->cqe++)
		if (!sq_cqe_is_new(front, sq_cqe_last(front)))
			break;
}

/*
 * SQ_FAILED: frames behind the last completion that the card has sent, since it takes entries in their
 * order and the error names the first that failed. 0 where it names none that is out. Of an entry that
 * failed some frames may be sent: none of them counts. Reads the ring, which nobody writes meanwhile.
 */
static inline uint64_t sq_sent_before(const struct sq_front *front)
{
	const struct sq_queue *queue = &front->queue;
	uint64_t block = front->freed, frames = 0;

	while (block < front->posted && (block & 0xffff) != front->counter) {
		const uint8_t *entry = queue->ring + (block & (queue->blocks - 1)) * SQ_BLOCK;
		const uint32_t segments = entry[7] & 0x3f;

		if (segments < 2)
			return 0;
		frames += segments - 2;
		block += sq_entry_blocks(segments - 2);
	}
	return block < front->posted ? frames : 0;
}

/* An entry without a frame, marked: its completion says that all before it are sent. False: no room
 * for it now. */
static inline int sq_post_nop(struct sq_front *front)
{
	if (!sq_fits(front, 1, 1))
		return 0;
	sq_write_entry(&front->queue, front->posted, 0, SQ_ALWAYS);
	sq_burst_add(front, 0, 0, 1);
	return 1;
}

#endif

#ifdef __cplusplus
static_assert(sizeof(struct sq_mark) == 24, "three words");
#else
_Static_assert(sizeof(struct sq_mark) == 24, "three words");
#endif

#endif
