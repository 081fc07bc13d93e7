/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's side of the burst ring. In a block, the take warp waits for bursts and brings their
 * descriptors into shared memory, the work threads turn them into results, and the done warp gives
 * them back: so the three round trips over PCIe (1 to 2 us each) run while frames are worked on.
 * What is PLAIN is told by the work threads themselves: there nothing has to be waited for.
 *
 * The work threads are one group, or up to GROUPS_MAX that take the block's bursts in turn: while
 * one waits for memory or at a barrier, another has something to do. One group has two bursts in
 * flight on either side; several have one each.
 */
#ifndef GDRCAP_CUDA_RING_CUH
#define GDRCAP_CUDA_RING_CUH

#include "kernels/frame_records.h"
#include "kernels/cuda/job.cuh"
#include "kernels/cuda/ptx.cuh"

/* In count of struct burst_in: the ring was stopped. */
#define BURST_LEAVE 0xffffffffu
/* In word of struct burst_out, beside the generation: the outcome is there already. No done word has it: those
 * that are PLAIN are written by others. */
#define DONE_TOLD BURST_PLAIN

/*
 * A block that waits asks again after the first time, which doubles every few polls, up to
 * the last: short against a burst and, when nothing comes for some 100 us, long against the bus.
 */
#define POLL_SLEEP_FIRST_NS 32u
#define POLL_SLEEP_MAX_NS 1024u
#define POLL_SLEEP_NEAR_NS 64u /* of a ring in GPU memory, which has no bus to spare */
#define POLLS_PER_SLEEP 16u
/*
 * STOP is read when so many ticks of a multiprocessor's clock, about a ms, have passed since its last
 * answer came. All blocks read the same word, and a GPU reads a line of host memory for one of them after the
 * other, 1.4 us each: 700 thousand a second. Blocks that ask for more than that wait for each other, and all
 * other reads over the bus wait with them. Counted from the answer, blocks that once asked together do so
 * one after the other from then on.
 */
#define STOP_TICKS (1u << 21)
#define BURSTS_PER_CLOCK 64u /* a busy block looks at the clock so seldom */

#define WARP_ALL 0xffffffffu

/* What a poll reads, a word a lane: the ready line, and what is beside it. */
#define READY_WORDS ((uint32_t)(sizeof(struct burst_ready) / 8))
#define POLL_WORDS (1 + BURST_INLINE_MAX)
static_assert(POLL_WORDS <= 32, "a lane a word");
#define WORDS_A_LINE 8u /* of host memory */

/* Cache lines that a poll reads from the ring, but for the stop word's; the bench counts them. */
#ifndef RING_READS
#define RING_READS(count)
#endif

/* Bursts in flight between two sides; a group has its own, and a single one has two. */
#define RING_TURNS 3u
static_assert(RING_TURNS >= GROUPS_MAX && RING_TURNS >= 2, "a turn for each group");

/* Named barriers of a block; 0 is __syncthreads(). All 16 are taken. */
enum ring_barrier {
	BARRIER_WORK = 1, /* among a group's work threads; by group */
	/* by turn: */
	BARRIER_IN_FULL = BARRIER_WORK + GROUPS_MAX,	   /* take warp -> work threads */
	BARRIER_IN_EMPTY = BARRIER_IN_FULL + RING_TURNS,   /* work threads -> take warp */
	BARRIER_OUT_FULL = BARRIER_IN_EMPTY + RING_TURNS,  /* work threads -> done warp */
	BARRIER_OUT_EMPTY = BARRIER_OUT_FULL + RING_TURNS, /* done warp -> work threads */
	BARRIERS = BARRIER_OUT_EMPTY + RING_TURNS,
};
static_assert(BARRIERS <= 16, "a block has 16 barriers");

struct burst_in { /* writer: take warp */
	uint64_t burst;
	uint32_t count, first;
	struct tx_request request; /* KERNEL_WRITE */
	struct frame_desc desc[BURST_FRAMES_MAX];
};

struct burst_out {	/* writer: work thread 0 */
	uint64_t *done; /* NULL: leave */
	uint64_t word;	/* with DONE_TOLD: nothing of it is left to be written */
};

struct ring_shared {
	struct device_job job;
	struct burst_ring_view ring;
	uint32_t burst_bits, worker, role_has_order, inlines;
	uint32_t work_threads, groups, turns; /* threads of a group; groups; bursts in flight */
	struct burst_in in[RING_TURNS];
	struct burst_out out[RING_TURNS];
};

/* Waits for `threads` threads, with those that arrived. Whole warps. */
__device__ __forceinline__ void barrier_sync(uint32_t barrier, uint32_t threads)
{
	__syncwarp();
	asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/*
 * Counts in without waiting; what this thread did before is seen after the partner's sync. Work
 * threads meet at BARRIER_WORK first: racecheck takes what a thread did since its last wait for
 * unordered with the partner, and the meeting costs next to nothing.
 */
__device__ __forceinline__ void barrier_arrive(uint32_t barrier, uint32_t threads)
{
	__syncwarp();
	asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ __forceinline__ uint32_t lane_index(void)
{
	return threadIdx.x & 31;
}

/* What a poll saw of a ready line. */
struct ring_seen {
	uint64_t word; /* the same in all lanes */
	uint64_t mine; /* lane 0's: the word; lane l's: descriptor l - 1 */
	bool wide;     /* lanes have one; else only lane 0 has */
};

/* What the take warp needs for each burst, in registers: the bus waits for what is read from shared memory between a
 * poll's answer and the next poll. */
struct ring_taker {
	struct burst_ring_view ring;
	uint32_t burst_bits, step;
	bool has_order, inlines;
};

__device__ __forceinline__ struct ring_taker ring_taker_of(const struct ring_shared &s)
{
	return { s.ring, s.burst_bits, s.job.workers_per_ring, s.role_has_order != 0,
		 s.inlines != 0 };
}

/* STOP, if it is due; *answer: the clock when its last answer came. The same in all lanes. */
__device__ __forceinline__ bool ring_stopped(const struct burst_ring_view &ring, uint32_t *answer)
{
	bool stopped;

	if (!__any_sync(WARP_ALL, (uint32_t)clock64() - *answer >= STOP_TICKS))
		return false;
	stopped = __any_sync(WARP_ALL, load_relaxed_system(ring.stop));
	*answer = (uint32_t)clock64();
	return stopped;
}

/*
 * One poll by the take warp: the ready word, with `wide` the descriptors beside it, in one round trip. TAKE: the
 * acquire of lane 0; __syncwarp() hands its request on to the other lanes.
 */
__device__ __forceinline__ struct ring_seen ring_poll(const struct burst_ring_view &ring,
						      uint64_t burst, bool wide)
{
	const uint32_t words = wide ? POLL_WORDS : 1, lane = lane_index();
	const uint64_t slot = burst & ring.burst_mask;
	const uint64_t *at = &ring.ready[slot].word + lane;
	struct ring_seen seen = { 0, 0, wide };

	RING_READS((words + WORDS_A_LINE - 1) / WORDS_A_LINE);
	if (lane >= READY_WORDS)
		at = &ring.beside[slot].desc[lane - READY_WORDS];
	if (lane < words)
		seen.mine = load_acquire_system(at);
	seen.word = __shfl_sync(WARP_ALL, seen.mine, 0);
	__syncwarp();
	return seen;
}

/*
 * Waits for `burst`; *seen is what an earlier poll saw, then the poll that saw it. `wide` until
 * nothing has come for long. False: stopped.
 */
__device__ __forceinline__ bool ring_wait(const struct ring_taker &t, uint64_t burst, bool wide,
					  struct ring_seen *seen, uint32_t *answer)
{
	const uint32_t sleep_max_ns = t.ring.free_word ? POLL_SLEEP_NEAR_NS : POLL_SLEEP_MAX_NS;
	uint32_t sleep_ns = POLL_SLEEP_FIRST_NS;

	for (uint32_t polls = 0; !burst_word_is(seen->word, burst, t.burst_bits); polls++) {
		*seen = ring_poll(t.ring, burst, wide && sleep_ns < POLL_SLEEP_MAX_NS);
		if (burst_word_is(seen->word, burst, t.burst_bits))
			break;
		__nanosleep(sleep_ns);
		if (polls % POLLS_PER_SLEEP == POLLS_PER_SLEEP - 1) {
			sleep_ns = min(sleep_ns * 2, sleep_max_ns);
			if (ring_stopped(t.ring, answer))
				return false;
		}
	}
	return true;
}

#define DESC_PER_LANE (BURST_FRAMES_MAX / 32)

/* True when a poll saw the burst's descriptors too: INLINE, all with the mark of the word. */
__device__ __forceinline__ bool burst_is_inline(const struct ring_seen &seen, uint32_t count)
{
	const bool mark = seen.mine & BURST_DESC_MARK, want = seen.word & BURST_INLINE_MARK;
	const bool mine = lane_index() - 1 < count; /* lane 0 has the word */

	return seen.wide && (seen.word & BURST_INLINE) && count <= BURST_INLINE_MAX &&
	       __all_sync(WARP_ALL, !mine || mark == want);
}

/* The take warp gives a burst to work threads, by the descriptors that it saw with its word. */
__device__ __forceinline__ void burst_give_inline(const struct ring_shared &s, struct burst_in *in,
						  uint64_t burst, const struct ring_seen &seen,
						  uint32_t count, uint32_t turn, bool in_use)
{
	const uint32_t lane = lane_index();

	if (in_use)
		barrier_sync(BARRIER_IN_EMPTY + turn, 32 + s.work_threads);
	if (lane - 1 < count)
		*(uint64_t *)&in->desc[lane - 1] = seen.mine & ~BURST_DESC_MARK;
	if (lane == 0) {
		in->burst = burst;
		in->first = burst_word_first(seen.word);
		in->count = count;
	}
	barrier_arrive(BARRIER_IN_FULL + turn, 32 + s.work_threads);
}

/* Brings the burst's descriptors and request into *in, and asks for the next burst meanwhile. */
__device__ __forceinline__ struct ring_seen
burst_fetch(const struct ring_shared &s, const struct ring_taker &t, struct burst_in *in,
	    uint64_t burst, uint64_t word, uint32_t turn, bool in_use, bool wide)
{
	const uint32_t lane = lane_index(), first = burst_word_first(word),
		       count = burst_frames(word);
	uint64_t desc[DESC_PER_LANE], request = 0;
	struct ring_seen next;

	/* all loads are under way before the first is waited for */
#pragma unroll
	for (uint32_t i = 0; i < DESC_PER_LANE; i++) {
		const uint32_t at = lane + 32 * i;

		if (at < count)
			desc[i] = *(const uint64_t *)&t.ring.desc[(first + at) & t.ring.desc_mask];
	}
	if (t.has_order && lane < sizeof(struct tx_request) / 8)
		request = ((const uint64_t *)&t.ring.request[burst & t.ring.burst_mask])[lane];
	next = ring_poll(t.ring, burst + t.step, wide);
	if (in_use)
		barrier_sync(BARRIER_IN_EMPTY + turn, 32 + s.work_threads);
#pragma unroll
	for (uint32_t i = 0; i < DESC_PER_LANE; i++)
		if (lane + 32 * i < count)
			*(uint64_t *)&in->desc[lane + 32 * i] = desc[i];
	if (t.has_order && lane < sizeof(struct tx_request) / 8)
		((uint64_t *)&in->request)[lane] = request;
	if (lane == 0) {
		in->burst = burst;
		in->first = first;
		in->count = count;
	}
	barrier_arrive(BARRIER_IN_FULL + turn, 32 + s.work_threads);
	return next;
}

/* The turn of the round after one of `turn`. */
__device__ __forceinline__ uint32_t turn_next(const struct ring_shared &s, uint32_t turn)
{
	return turn + 1 == s.turns ? 0 : turn + 1;
}

/* The take warp's last act: all groups leave. */
__device__ __forceinline__ void ring_leave(struct ring_shared &s, uint64_t round, uint32_t turn)
{
	for (uint32_t g = 0; g < s.groups; g++, round++) {
		if (round >= s.turns)
			barrier_sync(BARRIER_IN_EMPTY + turn, 32 + s.work_threads);
		if (lane_index() == 0)
			s.in[turn].count = BURST_LEAVE;
		barrier_arrive(BARRIER_IN_FULL + turn, 32 + s.work_threads);
		turn = turn_next(s, turn);
	}
}

/* The take warp. A burst that was taken is worked on to its end even when STOP comes meanwhile. */
__device__ __forceinline__ void ring_take_warp(struct ring_shared &s)
{
	const struct ring_taker t = ring_taker_of(s);
	struct ring_seen seen = { 0, 0, false };
	uint64_t burst = s.worker;
	uint32_t turn = 0, answer = (uint32_t)clock64(); /* as if STOP had just been read */
	bool wide = t.inlines;

	/* what an earlier poll saw belongs to `burst`, or is no match; zero never matches generation 0 */
	for (uint64_t round = 0;; round++) {
		const bool in_use = round >= s.turns;
		uint32_t count;

		if ((round % BURSTS_PER_CLOCK == 0 && ring_stopped(t.ring, &answer)) ||
		    !ring_wait(t, burst, wide, &seen, &answer)) {
			ring_leave(s, round, turn);
			return;
		}
		count = burst_frames(seen.word);
		/* small bursts are mostly followed by small ones */
		wide = t.inlines && count <= BURST_INLINE_MAX;
		if (wide && burst_is_inline(seen, count)) {
			burst_give_inline(s, &s.in[turn], burst, seen, count, turn, in_use);
			seen = ring_poll(t.ring, burst + t.step, wide);
		} else {
			seen = burst_fetch(s, t, &s.in[turn], burst, seen.word, turn, in_use, wide);
		}
		burst += t.step;
		turn = turn_next(s, turn);
	}
}

/*
 * What is written for a burst that is not PLAIN, by the done warp. DONE, partner COLLECT: the
 * barrier puts all that the work threads read and wrote for the burst before the release, and the
 * release at system scope is cumulative. Checkers give the generation to the other words too, so
 * that no word of a generation long ago is ever taken for one of PLAIN.
 */
__device__ __forceinline__ void burst_done(const struct ring_shared &s, uint64_t *done,
					   uint64_t word)
{
	const uint32_t lane = lane_index();

	if (!s.role_has_order && lane - 1 < BURST_PLAIN_WORDS - 1)
		store_relaxed_system(done + lane,
				     word >> BURST_GENERATION_SHIFT << BURST_GENERATION_SHIFT);
	__syncwarp();
	if (lane == 0)
		store_release_system(done, word);
}

/* FREE: the barrier puts the work threads' last accesses before it, of what is PLAIN too. */
__device__ __forceinline__ void burst_free(const struct ring_shared &s, const uint64_t *done,
					   uint64_t word)
{
	const size_t slot = (size_t)(done - &s.ring.result->done) / (sizeof(*s.ring.result) / 8);

	if (lane_index() == 0)
		store_release_gpu(&s.ring.free_word[slot],
				  word >> BURST_GENERATION_SHIFT << BURST_GENERATION_SHIFT);
}

/* The done warp: the groups' bursts in turn, until all groups have left. */
__device__ __forceinline__ void ring_done_warp(struct ring_shared &s)
{
	for (uint32_t turn = 0, left = 0;; turn = turn_next(s, turn)) {
		uint64_t *done, word;

		barrier_sync(BARRIER_OUT_FULL + turn, 32 + s.work_threads);
		done = s.out[turn].done;
		word = s.out[turn].word;
		if (!done && ++left == s.groups)
			return;
		barrier_arrive(BARRIER_OUT_EMPTY + turn, 32 + s.work_threads);
		if (done && !(word & DONE_TOLD))
			burst_done(s, done, word);
		if (done && s.ring.free_word)
			burst_free(s, done, word);
	}
}

/* A group of work threads, as one of them sees it. */
struct work_group {
	uint32_t index, thread; /* the group's number, and the thread's in the group */
};

__device__ __forceinline__ struct work_group work_group_of(const struct ring_shared &s)
{
	const uint32_t thread = threadIdx.x - RING_THREADS;

	return { thread / s.work_threads, thread % s.work_threads };
}

/* Work threads: hand the burst's result to the done warp. */
__device__ __forceinline__ void ring_give(struct ring_shared &s, uint32_t turn, bool in_use,
					  struct work_group group, uint64_t *done, uint64_t word)
{
	if (in_use)
		barrier_sync(BARRIER_OUT_EMPTY + turn, 32 + s.work_threads);
	if (group.thread == 0) {
		s.out[turn].done = done;
		s.out[turn].word = word;
	}
	barrier_sync(BARRIER_WORK + group.index, s.work_threads);
	barrier_arrive(BARRIER_OUT_FULL + turn, 32 + s.work_threads);
}

/* What work() returns of a burst whose outcome it wrote itself: PLAIN. */
#define RECORDS_PUBLISHED 0xffffffffu

/*
 * The loop of a group of work threads. work(in, thread) does one burst and returns, in thread 0,
 * the number of records, or RECORDS_PUBLISHED; it may use the group's BARRIER_WORK.
 */
template <typename Work>
__device__ __forceinline__ void ring_work_group(struct ring_shared &s, struct work_group group,
						Work work)
{
	uint32_t turn = group.index;

	/* of several groups each has its turn; one has all. Of the round only whether it is the
	 * first generation matters */
	for (uint32_t round = turn;; round = min(round + s.groups, s.turns)) {
		const struct burst_in &in = s.in[turn];
		const bool in_use = round >= s.turns;
		uint64_t *done = NULL, word = 0;
		uint32_t records;

		barrier_sync(BARRIER_IN_FULL + turn, 32 + s.work_threads);
		if (in.count == BURST_LEAVE) {
			ring_give(s, turn, in_use, group, NULL, 0);
			return;
		}
		records = work(in, group.thread);
		if (group.thread == 0) {
			const bool told = records == RECORDS_PUBLISHED;

			done = &s.ring.result[in.burst & s.ring.burst_mask].done;
			word = burst_word(in.burst, s.burst_bits, told ? 0 : records, 0) |
			       (told ? DONE_TOLD : 0);
		}
		barrier_sync(BARRIER_WORK + group.index, s.work_threads);
		barrier_arrive(BARRIER_IN_EMPTY + turn, 32 + s.work_threads);
		ring_give(s, turn, in_use, group, done, word);
		turn = s.groups == 1 ? turn_next(s, turn) : turn;
	}
}

/*
 * Copies the job and waits until all blocks run. False: leave. Blocks that waited for others which
 * found no room would never end, so start() looks at `started` before it opens the gate.
 */
__device__ __forceinline__ bool ring_enter(struct ring_shared &s, const struct device_job *job,
					   bool role_has_order)
{
	const uint32_t words = sizeof(*job) / 4;
	uint32_t state;

	for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
		((uint32_t *)&s.job)[i] = ((const uint32_t *)job)[i];
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < sizeof(s.ring) / 4; i += blockDim.x)
		((uint32_t *)&s.ring)[i] =
			((const uint32_t *)&s.job.rings[blockIdx.x / s.job.workers_per_ring])[i];
	__syncthreads();
	if (threadIdx.x == 0) {
		s.burst_bits = ring_burst_bits(&s.ring);
		s.worker = blockIdx.x % s.job.workers_per_ring;
		s.groups = max(1u, s.job.groups);
		s.work_threads = (blockDim.x - RING_THREADS) / s.groups;
		s.turns = max(2u, s.groups);
		s.role_has_order = role_has_order;
		/* more blocks than lines: a block may skip what marks tell apart */
		s.inlines = !role_has_order && s.ring.beside &&
			    s.job.workers_per_ring <= s.ring.burst_mask + 1;
		*(volatile uint32_t *)&s.job.started[blockIdx.x] = 1;
		while (!(state = load_relaxed_system(s.job.gate)))
			__nanosleep(POLL_SLEEP_MAX_NS);
		s.out[0].word = state;
	}
	__syncthreads();
	state = (uint32_t)s.out[0].word;
	__syncthreads();
	return state == GATE_OPEN;
}

/* What each thread of a block does from then on: the ring's two warps, and the work threads. */
template <typename Work>
__device__ __forceinline__ void ring_run_groups(struct ring_shared &s, struct work_group group,
						Work work)
{
	if (threadIdx.x < 32)
		ring_take_warp(s);
	else if (threadIdx.x < RING_THREADS)
		ring_done_warp(s);
	else
		ring_work_group(s, group, work);
}

/* The same with one group. */
template <typename Work> __device__ __forceinline__ void ring_run(struct ring_shared &s, Work work)
{
	ring_run_groups(s, { 0, threadIdx.x - RING_THREADS }, work);
}

static_assert(sizeof(struct device_job) % 4 == 0 && sizeof(struct burst_ring_view) % 4 == 0,
	      "copied by words");

#endif
