/* SPDX-License-Identifier: BSD-3-Clause */
/* A burst checked, written or copied by CPU threads: what the CUDA kernels do. */
#include <string.h>
#include <time.h>

#include "kernels/frame_records.h"
#include "kernels/host/host_fetch.h"
#include "kernels/host/host_workers.h"
#include "kernels/stale.h"

/* The result of the frame behind one whose result is `last`. */
static void frame_judge(const struct host_work *work, const uint8_t *frame, uint32_t len,
			const struct frame_result *last, const struct pattern_ahead *ahead,
			struct frame_result *result)
{
	if (frame && !work->store) {
		frame_check_ahead(work->layout, work->pattern, frame, len, ahead, result);
		return;
	}
	ahead_all(ahead);
	if (frame)
		frame_expect_check_after(work->layout, work->store, last->sequence, frame, len,
					 result);
	else
		frame_unreachable(result);
}

/* Of a frame that did not fit its slot. Which one of a file's it is, its beginning does not say. */
static void judge_cut(const struct host_work *work, struct frame_result *result)
{
	if (work->store && result->verdict != FRAME_FILTERED)
		frame_unreachable(result);
	else
		frame_cut(result);
}

/* ---- header-data split, stale-read detector ---- */

/* One frame of a ring that has either. */
struct host_frame {
	struct frame_desc desc, head;
	struct frame_pieces pieces;
	uint32_t len;
	int reachable;
};

static void host_frame_at(const struct burst_ring_view *ring, uint32_t index,
			  struct host_frame *frame)
{
	const struct frame_desc none = { 0 };

	frame->desc = ring->desc[index & ring->desc_mask];
	frame->head = ring->head_desc ? ring->head_desc[index & ring->desc_mask] : none;
	frame->len = frame_pieces_len(frame->desc, frame->head);
	frame->reachable = frame_pieces(ring, frame->desc, frame->head, &frame->pieces);
}

/* A frame in two pieces. What its headers may reach into is put together; the rest stays. */
static void judge_pieces(const struct host_work *work, const struct host_frame *frame,
			 const struct frame_result *last, struct frame_result *result)
{
	const struct frame_pieces *pieces = &frame->pieces;
	const uint32_t room = FRAME_HEAD_BYTES_MAX - pieces->head_len;
	const uint32_t part = pieces->rest_len < room ? pieces->rest_len : room;
	uint8_t front[FRAME_HEAD_BYTES_MAX];
	const struct frame_span span = {
		.first = front,
		.rest = pieces->rest + part,
		.first_bytes = FRAME_HEAD_BYTES_MAX,
	};

	memcpy(front, pieces->head, pieces->head_len);
	memcpy(front + pieces->head_len, pieces->rest, part);
	if (work->store)
		frame_expect_check_span(work->layout, work->store, last->sequence, &span,
					frame->len, result);
	else
		frame_check_span(work->layout, work->pattern, &span, frame->len, result);
}

static void judge_once(const struct host_work *work, const struct host_frame *frame,
		       const struct frame_result *last, const struct pattern_ahead *ahead,
		       struct frame_result *result)
{
	if (frame->reachable && frame->pieces.head_len) {
		ahead_all(ahead);
		judge_pieces(work, frame, last, result);
	} else {
		frame_judge(work, frame->reachable ? frame->pieces.rest : NULL, frame->len, last,
			    ahead, result);
	}
	if (frame_pieces_cut(frame->desc, frame->head))
		judge_cut(work, result);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Reads a frame that is not right again, at least once; more than once where poison was `seen`.
 * *until_ns: when that ends, the same for all frames of a burst; 0: this is the first.
 */
static void stale_again(const struct burst_ring_view *ring, const struct host_work *work,
			const struct host_frame *frame, const struct stale_area *area,
			uint32_t seen, const struct frame_result *last, uint64_t *until_ns,
			struct frame_result *result)
{
	struct frame_result again;
	int over, absent;

	if (seen && !*until_ns)
		*until_ns = now_ns() + (uint64_t)ring->stale_us * 1000u;
	do {
		over = !seen || now_ns() >= *until_ns;
		/* what is read below is what other CPUs and devices have written by now */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		/* before the frame is read: what comes in between is seen */
		absent = over && seen && stale_is_absent(area);
		judge_once(work, frame, last, NULL, &again);
		if (stale_settles(&again)) {
			stale_found(area, seen, result, &again);
			*result = again;
			return;
		}
	} while (!over);
	if (absent)
		stale_absent(result);
}

__attribute__((noinline)) static void stale_follow(const struct burst_ring_view *ring,
						   const struct host_work *work,
						   const struct host_frame *frame,
						   const struct frame_result *last,
						   uint64_t *until_ns, struct frame_result *result)
{
	struct stale_area area;
	uint32_t edges;

	stale_area_of(ring, frame->desc, &frame->pieces, &area);
	if (!stale_settles(result) && !frame_pieces_cut(frame->desc, frame->head))
		stale_again(ring, work, frame, &area, stale_seen(&area), last, until_ns, result);
	edges = stale_edges(&area);
	for (uint32_t k = 0; k < edges; k++)
		stale_poison(&area, k);
	ring->generation[frame->desc.slot] = area.generation + 1;
}

/* ---- bursts ---- */

/* One body. `more`, a constant: the ring has header-data split or the stale-read detector. */
static inline __attribute__((always_inline)) uint32_t
burst_check(const struct burst_ring_view *ring, const struct host_work *work, uint64_t burst,
	    uint64_t ready, const int more)
{
	const uint32_t first = burst_word_first(ready), count = burst_frames(ready);
	struct frame_result last = { 0 }, result;
	struct frame_record record;
	struct fetch fetch;
	uint64_t until_ns = 0;
	uint32_t records = 0;

	fetch_begin(&fetch, burst, work->step, ready);
	for (uint32_t i = 0; i < count; i++) {
		const struct frame_desc desc = ring->desc[(first + i) & ring->desc_mask];
		const struct pattern_ahead *ahead;
		uint32_t len = desc.len;

		if (i)
			fetch_arrived(&fetch, len);
		ahead = fetch_more(ring, &fetch);
		if (more) {
			struct host_frame whole;

			host_frame_at(ring, first + i, &whole);
			len = whole.len;
			judge_once(work, &whole, &last, ahead, &result);
			if (ring->generation && whole.reachable && desc.len)
				stale_follow(ring, work, &whole, &last, &until_ns, &result);
		} else {
			frame_judge(work, frame_at(ring, desc), len, &last, ahead, &result);
			if (desc.offset & FRAME_DESC_CUT)
				judge_cut(work, &result);
		}
		if (i && record_joins(work->layout, work->store, &last, &result)) {
			record.count++;
			record.bytes += run_bytes(&result);
			record.frame_bytes += len;
			record.phase_next = result.phase_next;
		} else {
			if (i)
				*record_at(ring, first, records++) = record;
			record_begin(&record, &result, i, len);
		}
		last = result;
	}
	if (count)
		*record_at(ring, first, records++) = record;
	return records;
}

uint32_t host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
			  uint64_t burst, uint64_t ready)
{
	return burst_check(ring, work, burst, ready, 0);
}

uint32_t host_burst_check_more(const struct burst_ring_view *ring, const struct host_work *work,
			       uint64_t burst, uint64_t ready)
{
	return burst_check(ring, work, burst, ready, 1);
}

static void stored_write(const struct burst_ring_view *ring, const struct frame_store_view *store,
			 const struct tx_request *request, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct frame_desc desc = ring->desc[(first + i) & ring->desc_mask];
		const uint8_t *stored = request_stored(store, request, i, desc.len);
		uint8_t *frame = frame_at(ring, desc);

		if (frame && stored)
			memcpy(frame, stored, desc.len);
	}
}

void host_burst_write(const struct burst_ring_view *ring, const struct host_work *work,
		      uint64_t burst, uint64_t ready)
{
	const uint32_t first = burst_word_first(ready), count = burst_frames(ready);
	const struct tx_request request = ring->request[burst & ring->burst_mask];
	uint64_t before = 0;

	if (work->store && !request.end) {
		stored_write(ring, work->store, &request, first, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct frame_desc desc = ring->desc[(first + i) & ring->desc_mask];
		const uint32_t bytes = frame_payload_bytes(work->layout, desc.len);
		uint8_t *frame = frame_at(ring, desc);
		struct frame_header header;

		request_header(&header, &request, i, before, bytes, work->pattern->kind);
		before += bytes;
		/* a slot out of reach stays unwritten; what was sent from it is not valid */
		if (frame)
			frame_write(work->layout, work->pattern, frame, desc.len, &header);
	}
}
