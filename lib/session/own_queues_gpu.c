/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues that a front on the GPU polls, as the CPU sees them while none does: completions that no front took. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "session/own_queues.h"

static uint8_t *cq_copy(const struct own_queues *own, uint32_t q, struct cq_front_queue *queue)
{
	const size_t bytes = (size_t)own->cq[q].queue.cq_entries * CQ_BYTES;
	uint8_t *copy = malloc(bytes);

	*queue = own->cq[q].queue;
	if (copy && own->gpu.read(own->gpu.context, copy, queue->cq, bytes) < 0) {
		free(copy);
		return NULL;
	}
	queue->cq = copy;
	return copy;
}

int own_front_discard(struct own_queues *own, uint32_t q, struct gdrcap_error *error)
{
	struct cq_worker *cq = &own->cq[q];
	struct own_place *place = &own->place[q];
	struct cq_front_queue queue;
	uint8_t *copy = cq_copy(own, q, &queue);
	uint64_t frames = 0, flushed = 0;
	int ret = 0;

	if (!copy)
		return error_set(error, -EIO,
				 "port %s: the completions of receive queue %u in GPU memory "
				 "cannot be read",
				 own->card.name, q);
	for (uint32_t n = 0; n < queue.cq_entries; n++, place->next++) {
		const uint32_t at = place->next - place->first;
		const enum cq_kind kind = cq_kind_at(&queue, place->next, at);
		const bool passed =
			kind == CQ_NONE && cq_kind_at(&queue, place->next + 1, at + 1) != CQ_NONE;

		if (kind == CQ_NONE && !passed)
			break;
		if (passed && ret == 0)
			/* It is of an older lap, or says so: two laps on it would be taken for new. */
			ret = own->gpu.fill(own->gpu.context,
					    (uint8_t *)(uintptr_t)cq->queue.cq +
						    cq_at(place->next, queue.cq_entries) +
						    CQ_BYTES - 1,
					    CQ_OP_INVALID << 4, 1);
		flushed += kind == CQ_FLUSHED;
		frames += cq_had_frame(kind);
	}
	free(copy);
	counter_add(&cq->discarded, frames);
	counter_add(&cq->flushed, flushed);
	return ret < 0 ? error_set(error, ret,
				   "port %s: the completions of receive queue %u in GPU memory "
				   "cannot be written",
				   own->card.name, q)
		       : 0;
}

/* What the completion is that stands `ahead` entries behind the next; *words: of it. */
static enum cq_kind cqe_look(const struct own_queues *own, uint32_t q, uint32_t ahead,
			     struct cq_words *words)
{
	const struct cq_front_queue *queue = &own->cq[q].queue;
	const uint32_t at = own->place[q].next + ahead;
	uint8_t cqe[CQ_BYTES];

	if (own->gpu.read(own->gpu.context, cqe, queue->cq + cq_at(at, queue->cq_entries),
			  sizeof(cqe)) < 0)
		return CQ_NONE;
	*words = (struct cq_words){
		.tail = cq_load32(cqe + CQ_TAIL_AT),
		.entry = cq_load32(cqe + CQ_ENTRY_AT),
		.byte_cnt = cq_load32(cqe + CQ_LENGTH_AT),
		.syndrome = cqe[CQ_SYNDROME_AT],
	};
	return cq_kind_of(queue, words, at, at - own->place[q].first);
}

enum cq_kind own_front_look(const struct own_queues *own, uint32_t q)
{
	struct cq_words words;
	const bool later = cqe_look(own, q, 1, &words) != CQ_NONE;
	const enum cq_kind kind = cqe_look(own, q, 0, &words);

	return kind == CQ_NONE && later ? CQ_ORDER : kind;
}

bool own_front_take(struct own_queues *own, uint32_t q, struct frame_desc *desc)
{
	const struct cq_front_queue *queue = &own->cq[q].queue;
	struct own_place *place = &own->place[q];
	struct cq_words words;
	uint64_t word;

	if (cqe_look(own, q, 0, &words) != CQ_FRAME)
		return false;
	word = cq_desc(queue->first_slot, queue->slots, place->next - place->first,
		       cq_length(cq_swap32(words.byte_cnt), queue->stride_shift));
	memcpy(desc, &word, sizeof(word));
	place->next++;
	return true;
}
