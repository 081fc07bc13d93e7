/* SPDX-License-Identifier: BSD-3-Clause */
/* A send queue before its thread starts and after it has left. */
#include "send/send_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "base/log.h"
#include "memory/region.h"

/* Each round hands over or is idle. Acquire as in rx_rounds(). */
static uint64_t send_rounds(const void *arg)
{
	const struct gdrcap_tx *tx = arg;

	return atomic_load_explicit(&tx->sent, memory_order_acquire) +
	       atomic_load_explicit(&tx->idle, memory_order_acquire);
}

static int send_memory(struct gdrcap_tx *tx)
{
	const size_t entries = (size_t)tx->mask + 1;

	tx->mbufs = calloc(tx->slot_count, sizeof(struct rte_mbuf *));
	tx->state = calloc(tx->slot_count, sizeof(*tx->state));
	tx->tag = calloc(tx->slot_count, sizeof(*tx->tag));
	tx->free = calloc(tx->slot_count, sizeof(*tx->free));
	tx->told = calloc(entries, sizeof(*tx->told));
	tx->back = calloc(entries, sizeof(*tx->back));
	tx->entries = calloc(entries, sizeof(*tx->entries));
	tx->gates = calloc(entries, sizeof(*tx->gates));
	if (tx->config.segments) {
		tx->pieces = calloc(tx->slot_count, sizeof(*tx->pieces));
		tx->parts = calloc(tx->slot_count, sizeof(*tx->parts));
	}
	return tx->mbufs && tx->state && tx->tag && tx->free && tx->told && tx->back &&
			       tx->entries && tx->gates && !tx->config.segments == !tx->pieces &&
			       !tx->pieces == !tx->parts
		       ? 0
		       : -ENOMEM;
}

static uint32_t slot_number(const struct region *region, const struct rte_mbuf *m)
{
	return (uint32_t)((size_t)((const uint8_t *)m->buf_addr - region->base) >>
			  region->slot_shift);
}

/* The pool's slots lie side by side, and a frame begins at the same place of each. */
static void slots_name(struct gdrcap_tx *tx, struct rte_mbuf **mbufs, uint32_t count)
{
	const struct region *region = tx->config.region;

	mbufs[0]->ol_flags &= RTE_MBUF_F_EXTERNAL;
	mbufs[0]->data_off = RTE_PKTMBUF_HEADROOM;
	memcpy(&tx->fresh, &mbufs[0]->rearm_data, sizeof(tx->fresh));
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t at = slot_number(region, mbufs[i]) - tx->slot_first;
		const uint8_t *data = (const uint8_t *)mbufs[i]->buf_addr + RTE_PKTMBUF_HEADROOM;

		tx->mbufs[at] = mbufs[i];
		tx->data =
			region->device + (data - region->base) - ((size_t)at << region->slot_shift);
		tx->free[tx->free_count++] = at;
	}
}

/* Each slot has one for a second piece, which says whose it is. */
static int segments_take(struct gdrcap_tx *tx, struct gdrcap_error *error)
{
	for (uint32_t i = 0; tx->config.segments && i < tx->slot_count; i++) {
		if (rte_mempool_get(tx->config.segments, (void **)&tx->pieces[i].segment) < 0)
			return error_set(error, -ENOMEM,
					 "send queue %u has no mbufs for second pieces",
					 tx->config.queue);
		*(uint32_t *)rte_mbuf_to_priv(tx->pieces[i].segment) = i;
	}
	return 0;
}

/* Takes all that is in the pool. */
static int slots_take(struct gdrcap_tx *tx, struct gdrcap_error *error)
{
	const uint32_t count = rte_mempool_avail_count(tx->config.pool);
	struct rte_mbuf **mbufs = calloc(count, sizeof(struct rte_mbuf *));
	uint32_t least = UINT32_MAX, most = 0;
	int ret;

	if (!mbufs || count == 0 ||
	    rte_mempool_get_bulk(tx->config.pool, (void **)mbufs, count) < 0) {
		free(mbufs);
		return error_set(error, -ENOMEM, "send queue %u has no slots; raise pool",
				 tx->config.queue);
	}
	for (uint32_t i = 0; i < count; i++) {
		least = RTE_MIN(least, slot_number(tx->config.region, mbufs[i]));
		most = RTE_MAX(most, slot_number(tx->config.region, mbufs[i]));
	}
	/* Those of mbufs that the port keeps for itself stay empty. */
	tx->slot_first = least;
	tx->slot_shift = tx->config.region->slot_shift;
	tx->slot_count = most - least + 1;
	tx->mask = rte_align32pow2(tx->slot_count) - 1;
	ret = send_memory(tx);
	if (ret == 0)
		slots_name(tx, mbufs, count);
	free(mbufs);
	return ret < 0 ? error_set(error, ret, "no memory for a send queue of %u slots",
				   tx->slot_count)
		       : 0;
}

/* The kernel has all of them to begin with. */
static int gpu_take(struct gdrcap_tx *tx, struct gdrcap_error *error)
{
	int ret;

	if (!tx->config.gpu)
		return 0;
	/* No pool has more: but what it has is a driver's to say, and the memory was sized before. */
	if (tx->slot_count > tx->config.gpu_slots)
		return error_set(error, -EINVAL,
				 "send queue %u has %u slots, and its pool was made for %u",
				 tx->config.queue, tx->slot_count, tx->config.gpu_slots);
	ret = send_gpu_init(&tx->gpu, tx->config.gpu, tx->slot_count);
	if (ret < 0)
		return error_set(error, ret, "no memory for a send queue of %u slots",
				 tx->slot_count);
	while (tx->free_count) {
		const uint32_t at = tx->free[--tx->free_count];

		send_gpu_give(&tx->gpu, at, send_data(tx, at));
	}
	send_gpu_tell(&tx->gpu);
	return 0;
}

int send_create(struct gdrcap_tx *tx, const struct send_config *config, struct gdrcap_error *error)
{
	int ret;

	memset(tx, 0, sizeof(*tx));
	tx->config = *config;
	tx->thread.rounds = send_rounds;
	tx->naps.most_us = config->direct && !config->idle_us ? SEND_DIRECT_US : config->idle_us;
	wake_init(&tx->work);
	rest_init(&tx->rest, config->idle_us && !config->direct && !config->gpu ? &tx->work : NULL);
	tx->thread.wake = &tx->work;
	tx->tsc_hz = rte_get_tsc_hz();
	tx->asks = rte_eth_tx_descriptor_status(config->port, config->queue, 0) >= 0;
	/* Until the control thread has looked. */
	tx->hold = SEND_LINK_UNSEEN;
	ret = slots_take(tx, error);
	if (ret == 0)
		ret = segments_take(tx, error);
	if (ret == 0)
		ret = gpu_take(tx, error);
	if (ret < 0)
		send_destroy(tx);
	return ret;
}

void send_destroy(struct gdrcap_tx *tx)
{
	ring_wake_close(&tx->wake);
	rte_mempool_free(tx->config.segments);
	send_gpu_fini(&tx->gpu);
	free(tx->mbufs);
	free(tx->pieces);
	free(tx->parts);
	free(tx->state);
	free(tx->tag);
	free(tx->free);
	free(tx->told);
	free(tx->back);
	free(tx->entries);
	free(tx->gates);
	memset(tx, 0, sizeof(*tx));
}
