/* SPDX-License-Identifier: BSD-3-Clause */
/* A send queue of ours for a tx worker: slots, and what is done when the card stops it. */
#include "replay/tx_own.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/log.h"
#include "capture/mbuf_desc.h"
#include "memory/region.h"

/* A queue that stops again before it has sent anything is left alone for so long. */
#define RETRY_MS 10u

/* Takes all mbufs out of the pool: their slots are the worker's. */
static int slots_take(struct tx_own *own, const struct region *region, struct rte_mempool *pool,
		      struct gdrcap_error *error)
{
	own->objects = calloc(pool->size, sizeof(*own->objects));
	own->slot = calloc(pool->size, sizeof(*own->slot));
	if (!own->objects || !own->slot)
		return error_set(error, -ENOMEM, "no memory for %u slots", pool->size);
	own->pool = pool;
	while (own->slot_count < pool->size &&
	       rte_mempool_get(pool, &own->objects[own->slot_count]) == 0) {
		struct rte_mbuf *m = own->objects[own->slot_count];
		struct frame_desc desc;

		rte_pktmbuf_reset_headroom(m);
		desc = mbuf_desc(m, region->base, region->slot_shift);
		own->slot[own->slot_count++] = desc.slot;
		own->offset = desc.offset;
	}
	return own->slot_count ? 0 : error_set(error, -ENOMEM, "a sender's pool has no slot");
}

static void slots_give(struct tx_own *own)
{
	if (own->slot_count)
		rte_mempool_put_bulk(own->pool, own->objects, own->slot_count);
	free(own->objects);
	free(own->slot);
}

int tx_own_create(struct tx_own *own, const struct tx_own_config *config,
		  struct gdrcap_error *error)
{
	struct own_tx_config queue = {
		.card = config->card,
		.key = config->key,
		.memory = config->memory,
		.gpu = config->gpu,
	};
	int ret;

	memset(own, 0, sizeof(*own));
	own->base = config->region->base;
	own->slot_shift = config->region->slot_shift;
	ret = slots_take(own, config->region, config->pool, error);
	if (ret < 0)
		goto err;
	queue.slots = own->slot_count;
	ret = own_tx_create(&own->tx, &queue, error);
	if (ret < 0)
		goto err;
	own->front.queue = own->tx.queue;
	own->front.mark = calloc(sq_marks_max(&own->tx.queue), sizeof(*own->front.mark));
	if (!own->front.mark) {
		ret = error_set(error, -ENOMEM, "no memory for a send queue's marks");
		goto err;
	}
	return 0;
err:
	tx_own_destroy(own, NULL);
	return ret;
}

int tx_own_destroy(struct tx_own *own, struct gdrcap_error *error)
{
	int ret = own_tx_destroy(&own->tx, error);

	if (ret < 0)
		return ret;
	free(own->front.mark);
	slots_give(own);
	memset(own, 0, sizeof(*own));
	return 0;
}

/* ---- errors ---- */

/* For another thread: all of it in a word. */
static uint64_t why_of(const struct sq_front *front)
{
	return (uint64_t)front->state << 48 | (uint64_t)(front->counter & 0xffff) << 32 |
	       (front->state == SQ_FAILED ? front->syndrome : (uint32_t)(front->bad >> 32));
}

void tx_own_explain(const struct tx_own *own, char *text, size_t bytes)
{
	const uint64_t why = atomic_load_explicit(&own->why, memory_order_relaxed);
	const struct sq_front front = {
		.state = (uint32_t)(why >> 48),
		.counter = (uint32_t)(why >> 32 & 0xffff),
		.syndrome = (uint32_t)why,
		.bad = why << 32,
	};

	own_tx_explain(&front, text, bytes);
}

static int queue_reset(struct tx_own *own)
{
	struct sq_front *front = &own->front;
	int ret = own_tx_halt(&own->tx, front->state == SQ_FAILED, NULL);

	if (ret < 0)
		return ret;
	sq_skip(front);
	if (front->state == SQ_FAILED)
		front->sent += sq_sent_before(front);
	sq_restart(front);
	return own_tx_start(&own->tx, NULL);
}

void tx_own_recover(struct tx_own *own)
{
	struct sq_front *front = &own->front;
	const uint64_t now = rte_rdtsc();
	int ret;

	if (own->reset_tsc && front->sent == own->reset_frames &&
	    now - own->reset_tsc < rte_get_tsc_hz() / 1000 * RETRY_MS)
		return;
	atomic_store_explicit(&own->why, why_of(front), memory_order_relaxed);
	ret = queue_reset(own);
	own->reset_tsc = now;
	own->reset_frames = front->sent;
	atomic_store_explicit(&own->failing, ret, memory_order_relaxed);
	atomic_store_explicit(&own->lost, front->lost, memory_order_relaxed);
	if (ret == 0)
		/* After `why` and `lost`, for who acquires it. */
		atomic_fetch_add_explicit(&own->resets, 1, memory_order_release);
	else
		front->state = SQ_BROKEN; /* tried again, from the start */
}
