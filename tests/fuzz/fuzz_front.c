/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue written by a broken card: no descriptor reaches out of the queue's slots, frames
 * come in the order of their work entries, and what is not taken is of a kind that says why.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/cq_front.h"

#define MOST 64u
#define HEADER 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was taken is exactly what is a frame in order, one by one. */
static void look(const struct cq_front_queue *queue, uint64_t index, uint32_t next, uint32_t most,
		 const struct frame_desc *desc, uint32_t n, uint64_t bytes)
{
	assert(n <= most);
	for (uint32_t i = 0; i < n; i++) {
		assert(desc[i].slot == queue->first_slot + (next + i) % queue->slots);
		assert(desc[i].len >= 1 && desc[i].len <= queue->slot_bytes);
		assert(desc[i].offset == 0);
		/* in its work entry, where there are such of several slots */
		if (queue->stride_shift) {
			const uint8_t *cqe = queue->cq + cq_at(index + i, queue->cq_entries);
			const uint32_t entry = (uint32_t)cqe[2] << 8 | cqe[3];
			const uint32_t stride = (uint32_t)cqe[60] << 8 | cqe[61];
			const uint32_t place = (entry << queue->stride_shift) + stride;

			assert(stride < 1u << queue->stride_shift);
			assert(desc[i].slot == queue->first_slot + place % queue->slots);
		}
		assert(cq_kind_at(queue, index + i, next + i) == CQ_FRAME);
		bytes -= desc[i].len;
	}
	assert(bytes == 0);
	if (n < most)
		assert(cq_kind_at(queue, index + n, next + n) != CQ_FRAME);
	assert((uint32_t)cq_kind_at(queue, index + n, next + n) < CQ_KINDS);
}

/* Some completions become more like frames in order, by a byte of theirs that nobody reads: else hardly one of
 * them would be any. */
static void mend(const struct cq_front_queue *queue, uint8_t *cq, uint64_t index, uint32_t next)
{
	const uint32_t shift = queue->stride_shift;

	for (uint32_t i = 0; i < queue->cq_entries; i++, index++, next++) {
		uint8_t *cqe = cq + cq_at(index, queue->cq_entries);
		const uint32_t counter = cq_counter(next, shift), entry = next >> shift;

		if (cqe[16] & 1) {
			cqe[60] = (uint8_t)(counter >> 8);
			cqe[61] = (uint8_t)counter;
			cqe[63] =
				(uint8_t)(CQ_OP_RECEIVED << 4 | cq_owner(index, queue->cq_entries));
		}
		if (cqe[16] & 2) {
			cqe[2] = (uint8_t)(entry >> 8);
			cqe[3] = (uint8_t)entry;
		}
		if (cqe[16] & 4) {
			cqe[44] = 0;
			cqe[45] = shift != 0;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cq_front_queue queue = { .first_slot = 7 };
	struct frame_desc desc[MOST];
	uint64_t index, bytes;
	uint32_t next, length;
	uint8_t *cq;

	if (size < HEADER)
		return 0;
	queue.slots = 1u << (2 + data[0] % 6);
	queue.stride_shift = data[0] / 6 % (1 + data[0] % 6);
	queue.cq_entries = queue.slots << (1 + data[1] % 2);
	queue.slot_bytes = 1 + (data[2] | (uint32_t)data[3] << 8) % UINT16_MAX;
	index = (uint64_t)data[4] * queue.cq_entries + data[5] % queue.cq_entries;
	next = data[6] | (uint32_t)data[7] << 8;
	/* of its own size: the address sanitizer looks */
	length = queue.cq_entries * CQ_BYTES;
	cq = aligned_alloc(CQ_BYTES, length);
	if (!cq)
		return 0;
	memset(cq, 0xf1, length);
	memcpy(cq, data + HEADER, size - HEADER < length ? size - HEADER : length);
	mend(&queue, cq, index, next);
	queue.cq = cq;
	assert(cq_front_queue_fits(&queue));
	for (uint32_t round = 0; round < 8; round++) {
		const uint32_t to_end = queue.cq_entries - index % queue.cq_entries;
		const uint32_t most = to_end < MOST ? to_end : MOST;
		const uint32_t n =
			cq_take(&queue, index, next, most, desc, &bytes, queue.stride_shift != 0);

		look(&queue, index, next, most, desc, n, bytes);
		/* Past what stopped it, as after a reset. */
		index += n + 1;
		next = round & 1 ? 0 : next + n;
	}
	free(cq);
	return 0;
}
