/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The persistent writer. For each burst of generated frames:
 *   1. one thread a frame sums up the payload before it, writes the headers and the payload's first
 *      word into shared memory, and the state from which a PRBS goes on;
 *   2. one warp a frame writes the payload from the next aligned word on, summing it up for UDP,
 * and then what was prepared in shared memory.
 * For each burst of a file's frames:
 *   1. one thread a frame looks up where the frame lies in the store;
 *   2. one warp a frame copies it. The store is in GPU memory, or in pinned memory behind PCIe.
 *
 * Built twice: `stored` is constant. With it there may be both, since end-of-stream frames are
 * generated for a file's frames too.
 */
#include "kernels/cuda/block.cuh"
#include "kernels/cuda/unaligned16.cuh"

/* Headers and the payload's first four bytes, and a word against bank conflicts (an odd stride). */
#define HEAD_BYTES ((FRAME_MAX_OVERHEAD + 4u + 3u) / 4u * 4u)
#define HEAD_STRIDE (HEAD_BYTES / 4u | 1u)

struct write_item {
	struct pattern_place place;
	uint8_t *frame;
	uint32_t len;	       /* bytes to write; 0: the slot stays as it is */
	uint32_t start, bytes; /* payload: offset and length */
	uint32_t head;	       /* bytes that step 1 prepared */
	uint32_t state;	       /* PRBS: 32 uninverted bits from payload byte head - start */
};

struct write_shared {
	struct ring_shared ring;
	uint32_t crc_table[256];
	struct write_item item[BURST_FRAMES_MAX];
	const uint8_t *stored[BURST_FRAMES_MAX]; /* the file's frames */
	uint64_t totals[8];
	uint32_t next_frame;
	uint32_t lane_table[PRBS_LANE_WORDS], step_table[PRBS_STEP_WORDS];
	uint32_t head[BURST_FRAMES_MAX][HEAD_STRIDE];
};
static_assert(sizeof(write_shared) <= 64 << 10, "a block of Turing has 64 KiB");

void prbs_tables_build(uint32_t *tables, uint32_t degree, uint32_t tap)
{
	uint32_t column[33][32]; /* [32 * d bits on][state bit] */

	for (uint32_t bit = 0; bit < 32; bit++) {
		uint32_t word = 1u << bit;

		for (uint32_t d = 0; d <= 32; d++) {
			column[d][bit] = word;
			for (uint32_t step = 0; step < 32; step++)
				word = word << 1 | ((word >> (degree - 1) ^ word >> (tap - 1)) & 1);
		}
	}
	for (uint32_t d = 0; d <= 32; d++) {
		for (uint32_t nibble = 0; nibble < 8; nibble++) {
			for (uint32_t value = 0; value < 16; value++) {
				const uint32_t at = nibble * 16 + value;
				uint32_t word = 0;

				for (uint32_t b = 0; b < 4; b++)
					word ^= value >> b & 1 ? column[d][4 * nibble + b] : 0;
				if (d < 32)
					tables[at * 32 + d] = word;
				else
					tables[PRBS_LANE_WORDS + at] = word;
			}
		}
	}
}

/* Step 1: frame i of the burst. `before`: payload bytes of the frames before it. */
__device__ __forceinline__ void prepare_frame(struct write_shared &s, const struct burst_in &in,
					      uint32_t i, uint64_t before, uint32_t bytes)
{
	const struct device_job &job = s.ring.job;
	const struct frame_desc desc = in.desc[i];
	struct write_item *item = &s.item[i];
	uint8_t *head = (uint8_t *)s.head[i];
	struct pattern_place place = { 0, 0, 0 };
	struct frame_header header;
	uint32_t start, next, word = 0;

	item->frame = frame_at(&s.ring.ring, desc);
	item->len = item->frame ? min((uint32_t)desc.len, FRAME_LEN_MAX) : 0;
	request_header(&header, &in.request, i, before, bytes, job.pattern.kind);
	start = frame_write_headers(&job.layout, s.crc_table, head, desc.len, &header);
	if (!job.layout.raw) {
		place.position = header.position;
		place.sequence = header.sequence;
		place.stream = header.stream;
	}
	if (!start || (in.request.end && !job.layout.raw))
		bytes = 0; /* too short for its headers: all zero; or an end-of-stream frame */
	if (bytes)
		word = pattern_word(&job.pattern, &place, 0) & byte_mask(0, (int)bytes);
	for (uint32_t b = 0; b < 4; b++)
		head[start + b] = (uint8_t)(word >> (8 * b));
	/* payload bytes up to the next aligned word: 1 to 4 */
	next = 4 - (uint32_t)((uintptr_t)item->frame + start) % 4;
	item->place = place;
	item->start = start;
	item->bytes = bytes;
	item->head = min(start + next, item->len);
	if (pattern_is_prbs(job.pattern.kind) && bytes > next)
		item->state = pattern_swap32(pattern_word(&job.pattern, &place, next)) ^
			      (0u - job.pattern.invert);
}

/* Writes the payload and padding after the head; returns the lane's part of its sum in 16-bit words
 * as they lie in memory (little-endian). */
__device__ __forceinline__ uint32_t write_body(const struct write_shared &s,
					       const struct write_item &item)
{
	const struct pattern &pattern = s.ring.job.pattern;
	const uint32_t invert = 0u - pattern.invert, lane = lane_index();
	const bool prbs = pattern_is_prbs(pattern.kind);
	uint32_t sum = 0, state = 0;

	if (prbs)
		state = prbs_by_lane(s.lane_table, lane, item.state);
	for (uint32_t row = item.head; row < item.len; row += 128) {
		const uint32_t at = row + 4 * lane, o = at - item.start;
		uint32_t word = 0;

		if (prbs) {
			word = pattern_swap32(state ^ invert);
			state = prbs_by_step(s.step_table, state);
		} else if (o < item.bytes) {
			word = pattern_word(&pattern, &item.place, o);
		}
		word &= byte_mask(0, (int)(item.bytes - o));
		sum += (word & 0xffff) + (word >> 16);
		if (at + 4 <= item.len) {
			*(uint32_t *)(item.frame + at) = word;
		} else {
			for (uint32_t b = at; b < item.len; b++)
				item.frame[b] = (uint8_t)(word >> (8 * (b - at)));
		}
	}
	return sum;
}

/* Completes the UDP checksum in the head. */
__device__ __forceinline__ void write_udp_checksum(const struct write_item &item,
						   uint32_t own_offset, uint8_t *head,
						   uint32_t body_sum)
{
	/* lanes 0..27: addresses (of the pseudo header), UDP header, own header, first word */
	const uint32_t lane = lane_index(), at = own_offset - 16 + 2 * lane;
	uint32_t sum = frame_fold16(body_sum);

	/* payload offsets are even in the datagram: an even start means swapped words */
	if ((item.head - item.start) % 2 == 0)
		sum = __byte_perm(sum, 0, 0x4401);
	if (at < item.head)
		sum += (uint32_t)head[at] << 8;
	if (at + 1 < item.head)
		sum += head[at + 1];
	if (lane == 31)
		sum += 17 + item.start - own_offset + 8 + item.bytes;
	sum = ~frame_fold16(warp_sum(sum)) & 0xffff;
	__syncwarp(); /* all have read the field that lane 0 now writes */
	if (lane == 0)
		frame_put16(head + own_offset - 2, sum ? sum : 0xffff);
	__syncwarp();
}

/* Step 2. */
__device__ __forceinline__ void write_frames(struct write_shared &s, const struct burst_in &in)
{
	const struct frame_layout &layout = s.ring.job.layout;
	const uint32_t count = in.count;

	for (uint32_t i; (i = warp_next(&s.next_frame)) < count;) {
		const struct write_item item = s.item[i];
		uint8_t *head = (uint8_t *)s.head[i];
		uint32_t sum;

		if (!item.len)
			continue;
		sum = write_body(s, item);
		if (item.start && layout.format == FRAME_IPV4_UDP)
			write_udp_checksum(item, layout.own_offset, head, sum);
		for (uint32_t b = lane_index(); b < item.head; b += 32)
			item.frame[b] = head[b];
	}
}

__device__ __forceinline__ void write_stored(struct write_shared &s, const struct burst_in &in,
					     uint32_t thread)
{
	const uint32_t count = in.count;

	if (thread < count) {
		struct write_item *item = &s.item[thread];
		const uint32_t len = in.desc[thread].len;

		item->frame = frame_at(&s.ring.ring, in.desc[thread]);
		s.stored[thread] = request_stored(&s.ring.job.store, &in.request, thread, len);
		item->len = item->frame && s.stored[thread] ? len : 0;
	}
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	for (uint32_t i; (i = warp_next(&s.next_frame)) < count;)
		warp_copy(s.item[i].frame, s.stored[i], s.item[i].len);
}

template <bool stored>
__device__ __forceinline__ uint32_t write_burst(struct write_shared &s, const struct burst_in &in,
						uint32_t thread)
{
	const uint32_t bytes =
		thread < in.count ? frame_payload_bytes(&s.ring.job.layout, in.desc[thread].len)
				  : 0;
	uint64_t sum;

	if (thread == 0)
		s.next_frame = 0;
	if (stored && !in.request.end) {
		write_stored(s, in, thread);
		return 0;
	}
	sum = block_scan(bytes, s.totals, thread, s.ring.work_threads);
	if (thread < in.count)
		prepare_frame(s, in, thread, sum - bytes, bytes);
	barrier_sync(BARRIER_WORK, s.ring.work_threads);
	write_frames(s, in);
	return 0;
}

template <bool stored>
__global__ void __launch_bounds__(RING_THREADS + WORK_THREADS_LARGE)
	write_kernel(const struct device_job *job)
{
	extern __shared__ uint4 memory[];
	struct write_shared &s = *(struct write_shared *)memory;

	for (uint32_t i = threadIdx.x; i < 256; i += blockDim.x)
		s.crc_table[i] = job->crc_table[i];
	if (!ring_enter(s.ring, job, true))
		return;
	if (pattern_is_prbs(s.ring.job.pattern.kind)) {
		for (uint32_t i = threadIdx.x; i < PRBS_LANE_WORDS; i += blockDim.x)
			s.lane_table[i] = s.ring.job.prbs_tables[i];
		for (uint32_t i = threadIdx.x; i < PRBS_STEP_WORDS; i += blockDim.x)
			s.step_table[i] = s.ring.job.prbs_tables[PRBS_LANE_WORDS + i];
		__syncthreads();
	}
	ring_run(s.ring, [&s](const struct burst_in &in, uint32_t thread) {
		return write_burst<stored>(s, in, thread);
	});
}

struct kernel_program write_program(void)
{
	return { "write", (const void *)write_kernel<false>, sizeof(struct write_shared) };
}

struct kernel_program write_store_program(void)
{
	return { "write", (const void *)write_kernel<true>, sizeof(struct write_shared) };
}
