/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The persistent checker. For each burst:
 *   1. all threads bring the first STAGE_BYTES of every frame into shared memory, together;
 *   2. one thread a frame reads its header there and, if the payload is all there, checks it;
 *   3. one warp a frame checks the longer payloads where they lie;
 *   4. one thread a frame, together, turn outcomes into runs.
 */
#include "block.cuh"
#include "prbs.cuh"

#define PIECE_BYTES 16u
#define STAGE_PIECES 8u
#define STAGE_BYTES (PIECE_BYTES * STAGE_PIECES)
/* One word more than the bytes need, so that threads which walk their frames in step meet no bank
 * conflict. */
#define STAGE_STRIDE (STAGE_BYTES / 4 + 1)
/* Pieces that a warp has under way for a long payload: with 30 warps 60 KiB a multiprocessor. */
#define PIECES_AT_ONCE 4u

/* A frame starts up to 15 bytes into its first piece; its headers and first word must be staged. */
static_assert(STAGE_BYTES >= PIECE_BYTES - 1 + FRAME_MAX_OVERHEAD + 4, "stage holds the headers");

/* In the list of long payloads: the first word was wrong already. */
#define LONG_IS_WRONG 0x8000u

struct run_mark { /* a run's first frame, and the sums over the frames before it */
	uint32_t index, bytes, wire_bytes;
};

struct check_shared {
	struct ring_shared ring;
	struct frame_result result[BURST_FRAMES_MAX];
	uint64_t position[BURST_FRAMES_MAX];
	struct run_mark mark[BURST_FRAMES_MAX + 1];
	uint64_t totals[8];
	uint32_t longs, next_long;
	uint16_t long_frame[BURST_FRAMES_MAX];
	uint32_t stage[BURST_FRAMES_MAX][STAGE_STRIDE];
};

__device__ __forceinline__ void stage_frames(struct check_shared &s, const struct burst_in &in,
					     uint32_t thread)
{
	const uint32_t pieces = in.count * STAGE_PIECES;

	for (uint32_t i = thread; i < pieces; i += s.ring.work_threads) {
		const uint32_t f = i / STAGE_PIECES, piece = i % STAGE_PIECES;
		const struct frame_desc desc = in.desc[f];
		const uint8_t *frame = frame_at(&s.ring.ring, desc);
		const uint8_t *at =
			(const uint8_t *)((uintptr_t)frame & ~(uintptr_t)(PIECE_BYTES - 1)) +
			piece * PIECE_BYTES;
		uint32_t *to = &s.stage[f][piece * PIECE_BYTES / 4];

		/* the region begins and ends at whole pieces */
		if (frame && at < frame + desc.len) {
			const uint4 bytes = *(const uint4 *)at;

			to[0] = bytes.x;
			to[1] = bytes.y;
			to[2] = bytes.z;
			to[3] = bytes.w;
		}
	}
}

/* Four bytes of a staged frame from byte `at` of its stage. */
__device__ __forceinline__ uint32_t stage_word(const uint32_t *stage, uint32_t at)
{
	return __funnelshift_r(stage[at / 4], stage[at / 4 + 1], 8 * (at % 4));
}

/* Compares a staged payload word by word with the definition. */
__device__ __noinline__ void payload_count_staged(const struct pattern_plan *plan,
						  struct pattern_place place, const uint32_t *stage,
						  uint32_t at, uint32_t bytes, uint32_t start,
						  struct frame_result *result)
{
	uint32_t wrong_bits = 0;

	for (uint32_t o = 0; o < bytes; o += 4) {
		const uint32_t expected = pattern_word(plan, &place, o),
			       got = stage_word(stage, at + o);
		const uint32_t wrong = (expected ^ got) & byte_mask(0, (int)(bytes - o));

		if (!wrong)
			continue;
		if (!wrong_bits) {
			const uint32_t byte = (__ffs(wrong) - 1) / 8;

			result->offset = (uint16_t)(start + o + byte);
			result->expected = (uint8_t)(expected >> (8 * byte));
			result->got = (uint8_t)(got >> (8 * byte));
			result->verdict = FRAME_DAMAGED_PAYLOAD;
		}
		wrong_bits += __popc(wrong);
	}
	result->wrong_bits = wrong_bits;
}

/* True when all staged payload bytes of a PRBS are right; the first word is known to be. */
__device__ __forceinline__ bool prbs_staged_is_right(const struct pattern_plan &plan,
						     const uint32_t *stage, uint32_t at,
						     uint32_t bytes, uint32_t first)
{
	const struct prbs_taps taps = prbs_taps_of(plan);
	uint32_t before = pattern_swap32(first), wrong = 0;

	for (uint32_t o = 4; o < bytes; o += 4) {
		const uint32_t word = pattern_swap32(stage_word(stage, at + o));

		wrong |= pattern_swap32(prbs_error(taps, before, word)) &
			 byte_mask(0, (int)(bytes - o));
		before = word;
	}
	return !wrong;
}

/* Step 2: frame i of the burst, from its staged bytes. */
__device__ __forceinline__ void frame_check_staged(struct check_shared &s,
						   const struct burst_in &in, uint32_t i)
{
	const struct device_job &job = s.ring.job;
	const struct frame_desc desc = in.desc[i];
	const uint8_t *frame = frame_at(&s.ring.ring, desc);
	const uint32_t shift = (uint32_t)(uintptr_t)frame % PIECE_BYTES;
	const uint32_t start = frame_payload_offset(&job.layout), at = shift + start;
	const uint32_t *stage = s.stage[i];
	struct frame_result result;
	struct frame_header header;
	struct pattern_place place;
	enum frame_verdict verdict;
	uint32_t bytes, expected, got, mask;
	int header_ok;

	if (!frame) {
		frame_unreachable(&s.result[i]);
		return;
	}
	verdict = frame_parse(&job.layout, s.ring.crc_table, (const uint8_t *)stage + shift,
			      desc.len, &header, &header_ok);
	bytes = frame_result_begin(&job.layout, &job.plan, verdict, &header, header_ok, &result);
	s.result[i] = result;
	if (!bytes)
		return;
	place.position = header.position;
	place.sequence = header.sequence;
	place.stream = header.stream;
	expected = pattern_word(&job.plan, &place, 0);
	got = stage_word(stage, at);
	mask = byte_mask(0, (int)bytes);
	if (at + bytes > STAGE_BYTES) {
		const uint32_t wrong = (expected ^ got) & mask;

		s.position[i] = header.position;
		s.long_frame[atomicAdd(&s.longs, 1)] = (uint16_t)(i | (wrong ? LONG_IS_WRONG : 0));
		return;
	}
	if (!((expected ^ got) & mask) &&
	    (bytes <= 4 || (pattern_is_prbs(job.plan.kind) &&
			    prbs_staged_is_right(job.plan, stage, at, bytes, got))))
		return;
	payload_count_staged(&job.plan, place, stage, at, bytes, start, &s.result[i]);
}

struct long_payload {
	const uint8_t *payload;
	uint32_t bytes;
	struct pattern_place place;
};

/*
 * A warp: 0 in all lanes when the payload follows the recurrence; its first word was compared.
 * Lanes read pieces next to each other, and the word before a lane's piece comes from its
 * neighbour.
 */
__device__ __forceinline__ uint32_t warp_check_prbs(const struct pattern_plan &plan,
						    const struct long_payload &frame)
{
	const struct prbs_taps taps = prbs_taps_of(plan);
	const uint32_t lane = lane_index();
	const uint32_t shift = (uint32_t)(uintptr_t)frame.payload % PIECE_BYTES;
	const uint4 *pieces = (const uint4 *)(frame.payload - shift);
	const int end = (int)frame.bytes;
	const uint32_t count = (shift + frame.bytes + PIECE_BYTES - 1) / PIECE_BYTES;
	uint32_t wrong = 0, carry = 0;

	for (uint32_t first = 0; first < count; first += 32 * PIECES_AT_ONCE) {
		uint4 piece[PIECES_AT_ONCE];

#pragma unroll
		for (uint32_t k = 0; k < PIECES_AT_ONCE; k++) {
			const uint32_t p = first + 32 * k + lane;

			piece[k] = p < count ? pieces[p] : make_uint4(0, 0, 0, 0);
		}
#pragma unroll
		for (uint32_t k = 0; k < PIECES_AT_ONCE; k++) {
			const uint32_t p = first + 32 * k + lane;
			const uint32_t w0 = pattern_swap32(piece[k].x),
				       w1 = pattern_swap32(piece[k].y);
			const uint32_t w2 = pattern_swap32(piece[k].z),
				       w3 = pattern_swap32(piece[k].w);
			const int o =
				(int)(p * PIECE_BYTES) - (int)shift; /* of the piece's first byte */
			uint32_t e0, e1, e2, e3, before;

			if (first + 32 * k >= count)
				break;
			/* lane 0 takes what lane 31 had one round ago */
			before = __shfl_sync(WARP_ALL, lane == 31 ? carry : w3, (lane + 31) & 31);
			carry = w3;
			e0 = prbs_error(taps, before, w0);
			e1 = prbs_error(taps, w0, w1);
			e2 = prbs_error(taps, w1, w2);
			e3 = prbs_error(taps, w2, w3);
			if (o < 4 || o + (int)PIECE_BYTES > end) {
				e0 = pattern_swap32(e0) & byte_mask(4 - o, end - o);
				e1 = pattern_swap32(e1) & byte_mask(-o, end - o - 4);
				e2 = pattern_swap32(e2) & byte_mask(-4 - o, end - o - 8);
				e3 = pattern_swap32(e3) & byte_mask(-8 - o, end - o - 12);
			}
			wrong |= e0 | e1 | e2 | e3;
		}
	}
	return __any_sync(WARP_ALL, wrong != 0);
}

/* The same for any pattern: lanes compute the words that they read. */
__device__ __forceinline__ uint32_t warp_check_words(const struct pattern_plan &plan,
						     const struct long_payload &frame)
{
	const uint32_t shift = (uint32_t)(uintptr_t)frame.payload % 4;
	const uint32_t *words = (const uint32_t *)(frame.payload - shift);
	const uint32_t count = (shift + frame.bytes + 3) / 4;
	uint32_t wrong = 0;

#pragma unroll 2
	for (uint32_t w = lane_index(); w < count; w += 32) {
		const uint32_t got = words[w];

		if (w) {
			const uint32_t o = 4 * w - shift;

			wrong |= (got ^ pattern_word(&plan, &frame.place, o)) &
				 byte_mask(0, (int)(frame.bytes - o));
		} else {
			wrong |= (got ^ pattern_word(&plan, &frame.place, 0) << (8 * shift)) &
				 byte_mask((int)shift, (int)(shift + frame.bytes));
		}
	}
	return __any_sync(WARP_ALL, wrong != 0);
}

/* A warp counts what is wrong with a payload by the definition. */
__device__ __noinline__ void warp_count(const struct pattern_plan &plan, struct long_payload frame,
					uint32_t start, struct frame_result *result)
{
	uint32_t wrong_bits = 0, first = 0xffffffffu, expected_byte = 0, got_byte = 0, least;

	for (uint32_t o = 4 * lane_index(); o < frame.bytes; o += 128) {
		const uint32_t bytes = min(4u, frame.bytes - o);
		const uint32_t expected = pattern_word(&plan, &frame.place, o);
		uint32_t got = 0, wrong;

		for (uint32_t b = 0; b < bytes; b++)
			got |= (uint32_t)frame.payload[o + b] << (8 * b);
		wrong = (expected ^ got) & byte_mask(0, (int)bytes);
		wrong_bits += __popc(wrong);
		if (wrong && first == 0xffffffffu) {
			const uint32_t byte = (__ffs(wrong) - 1) / 8;

			first = o + byte;
			expected_byte = expected >> (8 * byte) & 0xff;
			got_byte = got >> (8 * byte) & 0xff;
		}
	}
	wrong_bits = warp_sum(wrong_bits);
	least = warp_min(first);
	if (wrong_bits && first == least) {
		result->wrong_bits = wrong_bits;
		result->offset = (uint16_t)(start + first);
		result->expected = (uint8_t)expected_byte;
		result->got = (uint8_t)got_byte;
		result->verdict = FRAME_DAMAGED_PAYLOAD;
	}
}

/* Step 3. */
__device__ __forceinline__ void check_longs(struct check_shared &s, const struct burst_in &in)
{
	const struct device_job &job = s.ring.job;
	const uint32_t start = frame_payload_offset(&job.layout);
	const uint32_t longs = s.longs;

	for (uint32_t n; (n = warp_next(&s.next_long)) < longs;) {
		const uint32_t item = s.long_frame[n], i = item & ~LONG_IS_WRONG;
		struct long_payload frame;
		uint32_t wrong = item & LONG_IS_WRONG;

		frame.payload = frame_at(&s.ring.ring, in.desc[i]) + start;
		frame.bytes = s.result[i].payload_bytes;
		frame.place.position = s.position[i];
		frame.place.sequence = s.result[i].sequence;
		frame.place.stream = s.result[i].stream;
		if (!wrong)
			wrong = pattern_is_prbs(job.plan.kind) ? warp_check_prbs(job.plan, frame) :
								 warp_check_words(job.plan, frame);
		if (wrong)
			warp_count(job.plan, frame, start, &s.result[i]);
	}
}

/* A run in two 16-byte stores: over PCIe it is one write. */
__device__ __forceinline__ void run_store(struct frame_run *to, const struct frame_run &run)
{
	static_assert(sizeof(run) == 2 * sizeof(uint4), "a run is two pieces");
	union {
		struct frame_run run;
		uint4 piece[2];
	} out;

	out.run = run;
	((uint4 *)to)[0] = out.piece[0];
	((uint4 *)to)[1] = out.piece[1];
}

/* Step 4. Returns the number of runs. */
__device__ __forceinline__ uint32_t write_runs(struct check_shared &s, const struct burst_in &in,
					       uint32_t thread)
{
	/* sums in one word: bytes and wire bytes below 2^24 each, heads at most 256 */
	const uint32_t wire_at = 25, heads_at = 50, sum_mask = (1u << 25) - 1;
	const uint32_t count = in.count;
	const bool mine = thread < count;
	const bool head = mine && (!thread || !run_joins(&s.result[thread - 1], &s.result[thread]));
	const uint64_t value = mine ? (uint64_t)run_bytes(&s.result[thread]) |
					      (uint64_t)in.desc[thread].len << wire_at |
					      (uint64_t)head << heads_at :
				      0;
	const uint64_t sum = block_scan(value, s.totals, thread, s.ring.work_threads);
	const uint64_t before = sum - value;
	uint32_t runs;

	if (head) {
		struct run_mark *mark = &s.mark[before >> heads_at];

		mark->index = thread;
		mark->bytes = (uint32_t)before & sum_mask;
		mark->wire_bytes = (uint32_t)(before >> wire_at) & sum_mask;
	}
	if (thread == BURST_FRAMES_MAX - 1) {
		struct run_mark *end = &s.mark[sum >> heads_at];

		end->index = count;
		end->bytes = (uint32_t)sum & sum_mask;
		end->wire_bytes = (uint32_t)(sum >> wire_at) & sum_mask;
		s.longs = (uint32_t)(sum >> heads_at);
	}
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	runs = s.longs;
	if (thread < runs) {
		const struct run_mark mark = s.mark[thread], next = s.mark[thread + 1];
		struct frame_run run;

		run_begin(&run, &s.result[mark.index], mark.index, 0);
		run.count = (uint16_t)(next.index - mark.index);
		run.bytes = next.bytes - mark.bytes;
		run.wire_bytes = next.wire_bytes - mark.wire_bytes;
		run_store(run_at(&s.ring.ring, in.burst, in.first, thread), run);
	}
	return runs;
}

__device__ __forceinline__ uint32_t check_burst(struct check_shared &s, const struct burst_in &in,
						uint32_t thread)
{
	if (thread == 0) {
		s.longs = 0;
		s.next_long = 0;
	}
	stage_frames(s, in, thread);
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	if (thread < in.count)
		frame_check_staged(s, in, thread);
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	check_longs(s, in);
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	return write_runs(s, in, thread);
}

__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	check_kernel(const struct device_job *job)
{
	extern __shared__ uint4 memory[];
	struct check_shared &s = *(struct check_shared *)memory;

	if (!ring_enter(s.ring, job, false))
		return;
	if (threadIdx.x < 32)
		ring_take_warp(s.ring);
	else if (threadIdx.x < RING_THREADS)
		ring_done_warp(s.ring);
	else
		ring_work(s.ring, threadIdx.x - RING_THREADS,
			  [&s](const struct burst_in &in, uint32_t thread) {
				  return check_burst(s, in, thread);
			  });
}

struct kernel_program check_program(void)
{
	return { "check", (const void *)check_kernel, sizeof(struct check_shared) };
}
