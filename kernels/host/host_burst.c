/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "frame_runs.h"
#include "host_workers.h"

/* The CPU's own prefetcher starts only once a frame is under way; slots are too far apart for it to
 * see the next one coming. */
#define PREFETCH_BYTES 512u

static void prefetch_frame(const uint8_t *frame, uint32_t len)
{
	const uint32_t bytes = len < PREFETCH_BYTES ? len : PREFETCH_BYTES;

	for (uint32_t at = 0; frame && at < bytes; at += 64)
		__builtin_prefetch(frame + at);
}

/* The result of the frame behind one whose result is `last`. */
static void frame_judge(const struct host_work *work, const uint8_t *frame, uint32_t len,
			const struct frame_result *last, struct frame_result *result)
{
	if (!frame)
		frame_unreachable(result);
	else if (work->store)
		frame_expect_check_after(work->layout, work->store, last->sequence, frame, len,
					 result);
	else
		frame_check_fast(work->layout, work->plan, frame, len, result);
}

uint32_t host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
			  uint64_t burst, uint64_t ready)
{
	const uint32_t first = burst_word_first(ready), count = burst_frames(ready);
	struct frame_result last = { 0 }, result;
	struct frame_run run;
	uint32_t runs = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct frame_desc desc = ring->desc[(first + i) & ring->desc_mask];
		const uint8_t *frame = frame_at(ring, desc);

		if (i + 1 < count) {
			const struct frame_desc next =
				ring->desc[(first + i + 1) & ring->desc_mask];

			prefetch_frame(frame_at(ring, next), next.len);
		}
		frame_judge(work, frame, desc.len, &last, &result);
		if (desc.offset & FRAME_DESC_CUT)
			frame_cut(&result);
		if (i && run_joins(work->layout, work->store, &last, &result)) {
			run.count++;
			run.bytes += run_bytes(&result);
			run.wire_bytes += desc.len;
			run.phase_next = result.phase_next;
		} else {
			if (i)
				*run_at(ring, burst, first, runs++) = run;
			run_begin(&run, &result, i, desc.len);
		}
		last = result;
	}
	if (count)
		*run_at(ring, burst, first, runs++) = run;
	return runs;
}

static void stored_write(const struct burst_ring_view *ring, const struct frame_store_view *store,
			 const struct burst_order *order, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct frame_desc desc = ring->desc[(first + i) & ring->desc_mask];
		const uint8_t *stored = order_stored(store, order, i, desc.len);
		uint8_t *frame = frame_at(ring, desc);

		if (frame && stored)
			memcpy(frame, stored, desc.len);
	}
}

void host_burst_write(const struct burst_ring_view *ring, const struct host_work *work,
		      uint64_t burst, uint64_t ready)
{
	const uint32_t first = burst_word_first(ready), count = burst_frames(ready);
	const struct burst_order order = ring->order[burst & ring->burst_mask];
	uint64_t before = 0;

	if (work->store && !order.end) {
		stored_write(ring, work->store, &order, first, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct frame_desc desc = ring->desc[(first + i) & ring->desc_mask];
		const uint32_t bytes = frame_payload_bytes(work->layout, desc.len);
		uint8_t *frame = frame_at(ring, desc);
		struct frame_header header;

		order_header(&header, &order, i, before, bytes, work->plan->kind);
		before += bytes;
		/* a slot out of reach stays unwritten; what was sent from it is not valid */
		if (frame)
			frame_write(work->layout, work->plan, frame, desc.len, &header);
	}
}
