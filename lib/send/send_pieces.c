/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of two pieces: the second one is the caller's memory, which is lent until it is back. */
#include "send/send_queue.h"

#include <errno.h>

#include <rte_mbuf.h>

#include "base/log.h"
#include "capture/ring_producer.h"

static void segment_free(void *at, void *context)
{
	/* The mbuf goes to its pool next, where it is found. */
}

void send_segment(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frame)
{
	struct send_pieces *pieces = &tx->pieces[frame->slot];
	struct rte_mbuf *segment = pieces->segment;

	tx->parts[frame->slot].left = 2;
	pieces->shared.free_cb = segment_free;
	rte_mbuf_ext_refcnt_set(&pieces->shared, 1);
	segment->ol_flags = 0;
	rte_pktmbuf_attach_extbuf(segment, (void *)(uintptr_t)frame->payload, RTE_BAD_IOVA,
				  (uint16_t)frame->payload_bytes, &pieces->shared);
	segment->data_off = 0;
	segment->data_len = (uint16_t)frame->payload_bytes;
	segment->nb_segs = 1;
	segment->next = NULL;
}

/* LEND, one half. Found above; should it be closed meanwhile, the look after the fence sees that. */
static void lend(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (frames[i].payload)
			counter_add(&tx->lent[tx->parts[frames[i].slot].memory - 1].lent, 1);
}

void send_lend_back(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		struct send_parts *parts = &tx->parts[frames[i].slot];

		if (frames[i].payload)
			counter_add(&tx->lent[parts->memory - 1].lent, UINT64_MAX);
		parts->left = 0;
	}
}

/* LEND, the other half. */
static bool lend_holds(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
		       unsigned int count)
{
	bool holds = true;

	/* Partner: CLOSE MEMORY in gdrcap_tx_unregister(). */
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned int i = 0; i < count; i++)
		if (frames[i].payload)
			holds &= atomic_load_explicit(
				&tx->config.memories[tx->parts[frames[i].slot].memory - 1].open,
				memory_order_relaxed);
	return holds;
}

int send_lend(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count,
	      struct gdrcap_error *error)
{
	bool any = false;

	for (unsigned int i = 0; i < count; i++)
		any |= frames[i].payload != NULL;
	if (!any)
		return 0;
	lend(tx, frames, count);
	if (lend_holds(tx, frames, count))
		return 0;
	send_lend_back(tx, frames, count);
	return error_set(error, -EFAULT, "a payload's memory is being unregistered");
}
