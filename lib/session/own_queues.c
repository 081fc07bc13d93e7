/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues of the session's own, from the card's context to the front that polls them. */
#include "session/own_queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include <rte_mbuf_core.h>

#include "base/log.h"
#include "memory/region.h"
#include "port/port.h"

int own_queues_open(struct own_queues **own, const struct connectx_card *found, const char *name,
		    const char *devargs, char *opened, size_t bytes, struct gdrcap_error *error)
{
	struct own_queues *made = aligned_alloc(RING_LINE, sizeof(*made));
	int ret;

	if (!made)
		return error_set(error, -ENOMEM, "no memory for receive queues");
	memset(made, 0, sizeof(*made));
	*own = made;
	ret = devx_open(&made->card, found, name, error);
	return ret < 0 ? ret : devx_devargs(&made->card, devargs, opened, bytes, error);
}

int own_queues_create(struct own_queues *own, const struct port *port, struct region *region,
		      uint32_t queues, uint32_t slots, uint32_t strides, struct gdrcap_error *error)
{
	int ret;

	if (!port->isolated)
		return error_set(error, -ENOTSUP,
				 "rx_by: the driver of port %s makes no rules, and without one "
				 "nothing comes to queues of our own; leave rx_by out",
				 port->name);
	ret = devx_key_create(&own->card, &own->key, region->base, region->bytes, error);
	while (ret == 0 && own->count < queues) {
		struct own_rx_config config = {
			.card = &own->card,
			.port = port->id,
			.queue = (uint16_t)own->count,
			.base = region->base,
			.slot_shift = region->slot_shift,
			.slots = slots,
			.strides = strides,
			.memory = own->gpu.kind,
			.gpu = region->gpu,
			.cpu_front = own->gpu.cpu_front,
			.fill = own->gpu.fill,
			.fill_context = own->gpu.context,
		};

		config.key = own->key->lkey;
		ret = region_take(region, slots, &config.first_slot, error);
		if (ret == 0)
			ret = own_rx_create(&own->rx[own->count], &config, error);
		own->count += ret == 0;
	}
	if (ret == 0)
		log_info(
			"port %s: receive queues of our own: %u, of %u slots each, a work entry's: %u",
			port->name, queues, slots, strides);
	return ret;
}

int own_queues_poll(struct own_queues *own, uint32_t queue, struct rx_worker *worker,
		    struct gdrcap_error *error)
{
	struct own_rx *rx = &own->rx[queue];
	struct cq_front_queue front = rx->front;
	int ret;

	/* As much as the driver's queues have, behind their headroom. */
	front.slot_bytes -= RTE_PKTMBUF_HEADROOM;
	if (worker) {
		ret = cq_worker_create(&own->cq[queue], worker, &front, error);
		return ret < 0 ? ret : own_rx_start(rx, error);
	}
	own->cq[queue].queue = front;
	cq_record_store(front.record, front.slots >> front.stride_shift);
	return own_rx_start(rx, error);
}

bool own_queues_take(struct own_queues *own, uint32_t queue, const struct rx_worker *worker,
		     struct frame_desc *desc)
{
	return worker->fronted ? own_front_take(own, queue, desc)
			       : cq_worker_take(&own->cq[queue], worker, desc);
}

enum cq_kind own_queues_kind(const struct own_queues *own, uint32_t queue,
			     const struct rx_worker *worker)
{
	return worker->fronted ? own_front_look(own, queue)
			       : cq_worker_look(&own->cq[queue], worker);
}

void own_queues_destroy(struct own_queues *own)
{
	struct gdrcap_error error;

	for (; own && own->count; own->count--)
		if (own_rx_destroy(&own->rx[own->count - 1], &error) < 0)
			log_warning("%s", error.text);
	if (own && own->key && devx_key_destroy(&own->key) < 0)
		log_warning("port %s: the frames' memory stays registered: %s", own->card.name,
			    strerror(errno));
}

void own_queues_close(struct own_queues **own)
{
	if (!*own)
		return;
	devx_close(&(*own)->card);
	free(*own);
	*own = NULL;
}

/* ---- while they are polled ---- */

/* The card, its front or a reset under way say that the queue takes nothing. */
static bool queue_stands(const struct own_queues *own, uint32_t q, bool failed)
{
	return failed || own->missed[q].reset ||
	       atomic_load_explicit(&own->cq[q].state, memory_order_relaxed) == CQ_STOPPED;
}

/* The card's counter, and whether the queue is in error: in this order, so that what an error costs is never
 * taken for what came before it. */
static void queue_look(struct own_queues *own, uint32_t q)
{
	struct own_missed *missed = &own->missed[q];
	struct own_rx_counters counters = { 0 };
	bool posted = false; /* the first time since a reset */

	if (missed->reset) {
		missed->reset = atomic_load_explicit(&own->cq[q].reposts, memory_order_relaxed) ==
				missed->reposts;
		posted = !missed->reset;
	}
	if (own_rx_counters(&own->rx[q], &counters, NULL) < 0)
		counters.out_of_buffer = own->rx[q].out_of_buffer;
	missed->all = counters.out_of_buffer;
	missed->stands = queue_stands(own, q, counters.failed);
	if (posted)
		missed->in_error += missed->all - missed->running;
	if (!missed->stands || posted)
		missed->running = missed->all;
}

void own_queues_look(struct own_queues *own)
{
	for (uint32_t q = 0; q < own->count; q++)
		queue_look(own, q);
}

struct own_lost own_queues_lost(struct own_queues *own)
{
	struct own_lost lost = { 0 };

	/* Frames counted as missed stay so, even if the queue fails before the next look. */
	own_queues_look(own);
	for (uint32_t q = 0; q < own->count; q++) {
		const struct own_missed *missed = &own->missed[q];
		const struct cq_worker *cq = &own->cq[q];
		const uint64_t in_error =
			missed->in_error + (missed->stands ? missed->all - missed->running : 0);

		lost.missed += missed->all - in_error;
		/* The frame of an error is none of those that are thrown away. */
		lost.error += in_error +
			      atomic_load_explicit(&cq->discarded, memory_order_relaxed) +
			      atomic_load_explicit(&cq->stops[CQ_ERROR], memory_order_relaxed);
	}
	return lost;
}

uint64_t own_queues_flushed(struct own_queues *own)
{
	uint64_t flushed = 0;

	for (uint32_t q = 0; q < own->count; q++) {
		const struct cq_worker *cq = &own->cq[q];

		flushed += atomic_load_explicit(&cq->flushed, memory_order_relaxed) +
			   atomic_load_explicit(&cq->stops[CQ_ERROR], memory_order_relaxed);
	}
	return flushed;
}

bool own_queues_failed(struct own_queues *own, uint32_t queue)
{
	struct own_rx_counters counters;

	return own_rx_counters(&own->rx[queue], &counters, NULL) == 0 && counters.failed;
}

int own_queues_reset(struct own_queues *own, uint32_t queue, struct gdrcap_error *error)
{
	struct own_rx *rx = &own->rx[queue];
	int ret = own_rx_halt(rx, error);

	if (ret < 0)
		return ret;
	own->missed[queue].reposts =
		atomic_load_explicit(&own->cq[queue].reposts, memory_order_relaxed);
	own->missed[queue].reset = true;
	if (own->gpu.kind != GDRCAP_MEMORY_HOST) {
		struct own_place *place = &own->place[queue];

		ret = own_front_discard(own, queue, error);
		place->first = place->next;
		place->reset = true;
		atomic_store_explicit(&own->cq[queue].state, CQ_RUNS, memory_order_release);
		return ret;
	}
	/* Nothing is posted until its front has found the queue empty and has every slot. */
	cq_worker_was_reset(&own->cq[queue]);
	return own_rx_start(rx, error);
}
