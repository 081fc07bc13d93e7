/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive queue for the caller's own consumer: poll, wait, release. */
#include "session/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/assertion.h"
#include "base/guest.h"
#include "capture/ring_wait.h"
#include "session/answer.h"

/* The public frame descriptor is the ring's own: no copy on the way to the caller. */
_Static_assert(sizeof(struct gdrcap_pkt) == sizeof(struct frame_desc) &&
		       offsetof(struct gdrcap_pkt, slot) == offsetof(struct frame_desc, slot) &&
		       offsetof(struct gdrcap_pkt, len) == offsetof(struct frame_desc, len) &&
		       offsetof(struct gdrcap_pkt, offset) == offsetof(struct frame_desc, offset) &&
		       GDRCAP_PKT_CUT == FRAME_DESC_CUT,
	       "gdrcap_pkt is frame_desc");

int queue_create(struct gdrcap_queue *queue, struct ring_producer *ring,
		 enum consumer_kind consumer, const struct kernel_ops *ops,
		 struct kernel_device *device, const struct rx_clock *clock)
{
	memset(queue, 0, sizeof(*queue));
	queue->ring = ring;
	queue->ops = ops;
	queue->device = device;
	queue->consumer = consumer;
	queue->data = ring->view.frames;
	queue->slot_bytes = 1u << ring->view.slot_shift;
	queue->head_slot_bytes = ring->view.head_desc ? 1u << ring->view.head_shift : 0;
	if (clock) {
		queue->timed = true;
		queue->clock = *clock;
	}
	if (consumer != CONSUMER_HOST)
		return 0;
	queue->batches = calloc((size_t)ring->burst_mask + 1, sizeof(*queue->batches));
	return queue->batches ? 0 : -ENOMEM;
}

void queue_destroy(struct gdrcap_queue *queue)
{
	free(queue->gaps);
	free(queue->batches);
	memset(queue, 0, sizeof(*queue));
}

/* ---- what a caller promises, checked with assertions ---- */

#ifdef GDRCAP_ASSERTIONS
static void poll_begins(struct gdrcap_queue *queue)
{
	assertion(!atomic_exchange(&queue->polled, true),
		  "receive queue %u is polled by two threads at the same time: gdrcap_poll() and "
		  "gdrcap_wait() are for one thread a queue",
		  queue->index);
}

static void poll_ends(struct gdrcap_queue *queue)
{
	atomic_store(&queue->polled, false);
}

static void batch_taken(struct queue_batch *entry)
{
	atomic_store(&entry->held, true);
}

static void batch_given_back(struct queue_batch *entry)
{
	assertion(
		atomic_exchange(&entry->held, false),
		"batch %llu of receive queue %u is given back twice: each batch is released once, "
		"by gdrcap_release() or gdrcap_release_after()",
		(unsigned long long)entry->batch.seq, entry->queue->index);
}
#else
static void poll_begins(struct gdrcap_queue *queue)
{
}
static void poll_ends(struct gdrcap_queue *queue)
{
}
static void batch_taken(struct queue_batch *entry)
{
}
static void batch_given_back(struct queue_batch *entry)
{
}
#endif

/* ---- polling ---- */

/* 0 when batches can be had from it. */
static int queue_check(const struct gdrcap_queue *queue, const struct gdrcap_batch **batches)
{
	if (guest_is_child())
		return -EPERM;
	return queue && queue->batches && batches ? 0 : -EINVAL;
}

static void queue_release(struct queue_batch *entry)
{
	struct ring_producer *ring = entry->queue->ring;
	struct burst_result *result = &ring->result[(uint32_t)entry->burst & ring->burst_mask];

	/* DONE: the caller's last accesses to the frames. Partner: COLLECT in ring_is_done(). */
	__atomic_store_n(&result->done, burst_word(entry->burst, ring->burst_bits, 0, 0),
			 __ATOMIC_RELEASE);
	wake_look(ring->giver);
}

/* Fills the batch of burst queue->next if it is published. */
static struct queue_batch *queue_fill(struct gdrcap_queue *queue)
{
	struct ring_producer *ring = queue->ring;
	const uint32_t slot = (uint32_t)queue->next & ring->burst_mask;
	struct queue_batch *entry = &queue->batches[slot];
	uint32_t first;
	uint64_t word;

	/* TAKE. Partner: PUBLISH in ring_publish(). */
	word = __atomic_load_n(&ring->ready[slot].word, __ATOMIC_ACQUIRE);
	if (!burst_word_is(word, queue->next, ring->burst_bits))
		return NULL;
	first = burst_word_first(word) & ring->desc_mask;
	entry->queue = queue;
	entry->burst = queue->next++;
	entry->batch = (struct gdrcap_batch){
		.seq = queue->given,
		.data = queue->data,
		.pkts = (const struct gdrcap_pkt *)&ring->desc[first],
		.count = burst_word_count(word),
		.slot_bytes = queue->slot_bytes,
	};
	if (ring->head_desc) {
		entry->batch.heads = (const struct gdrcap_pkt *)&ring->head_desc[first];
		entry->batch.head_data = ring->view.heads;
		entry->batch.head_slot_bytes = queue->head_slot_bytes;
	}
	if (queue->timed)
		entry->batch.times = &ring->tsc[first];
	if (queue->filters)
		entry->batch.count = queue_filter(queue, first, entry->batch.count);
	return entry;
}

/* The next batch that has frames. */
static const struct gdrcap_batch *queue_take(struct gdrcap_queue *queue)
{
	struct queue_batch *entry = queue_fill(queue);

	for (; entry && entry->batch.count == 0; entry = queue_fill(queue))
		queue_release(entry);
	if (!entry)
		return NULL;
	queue->given++;
	batch_taken(entry);
	return &entry->batch;
}

static int queue_poll(struct gdrcap_queue *queue, const struct gdrcap_batch **batches,
		      unsigned int max)
{
	unsigned int n = 0;
	int ended;

	if (max == 0)
		return 0;
	/* Read before the ring: whoever sees it set also sees the last burst. Partner: the release
	 * store in ring_end(). */
	ended = atomic_load_explicit(&queue->ring->ended, memory_order_acquire);
	if (queue->timed)
		rx_clock_renew(&queue->clock);
	while (n < max) {
		const struct gdrcap_batch *batch = queue_take(queue);

		if (!batch)
			break;
		batches[n++] = batch;
	}
	return n ? (int)n : ended ? -ESHUTDOWN : 0;
}

/* One poll of the caller's. */
struct queue_taker {
	struct gdrcap_queue *queue;
	const struct gdrcap_batch **batches;
	unsigned int max;
};

static int taker_poll(void *context)
{
	const struct queue_taker *taker = context;

	return queue_poll(taker->queue, taker->batches, taker->max);
}

static uint64_t taker_next(void *context)
{
	return ((const struct queue_taker *)context)->queue->next;
}

int gdrcap_poll(struct gdrcap_queue *queue, const struct gdrcap_batch **batches, unsigned int max)
{
	struct queue_taker taker = { queue, batches, max };
	int ret = queue_check(queue, batches);

	if (ret < 0)
		return ret;
	poll_begins(queue);
	ret = queue_poll(queue, batches, max);
	if (ret == 0 && max && atomic_load_explicit(&queue->ring->wake.asked, memory_order_relaxed))
		ret = ring_poll_arm(&(struct ring_poll){ &queue->ring->wake, taker_poll, taker_next,
							 &taker, false, NULL });
	poll_ends(queue);
	return ret;
}

int gdrcap_queue_fd(struct gdrcap_queue *queue)
{
	if (guest_is_child())
		return -EPERM;
	return queue && queue->batches ? ring_wake_fd(&queue->ring->wake) : -EINVAL;
}

uint64_t gdrcap_time_ns(struct gdrcap_queue *queue, uint64_t time)
{
	return !guest_is_child() && queue && queue->timed ? rx_clock_ns(&queue->clock, time) : 0;
}

static void taker_left(void *context)
{
	poll_ends(((const struct queue_taker *)context)->queue);
}

int gdrcap_wait(struct gdrcap_queue *queue, const struct gdrcap_batch **batches, unsigned int max,
		int64_t usec)
{
	struct queue_taker taker = { queue, batches, max };
	int ret = queue_check(queue, batches);

	if (ret < 0 || max == 0)
		return ret;
	poll_begins(queue);
	ret = ring_poll_wait(&(struct ring_poll){ &queue->ring->wake, taker_poll, taker_next,
						  &taker, queue->sleeps, taker_left },
			     usec);
	poll_ends(queue);
	return ret;
}

static void queue_release_later(void *arg)
{
	queue_release(arg);
}

static struct queue_batch *entry_of(const struct gdrcap_batch *batch)
{
	return (struct queue_batch *)((uintptr_t)batch - offsetof(struct queue_batch, batch));
}

void gdrcap_release(struct gdrcap_queue *queue, const struct gdrcap_batch *const *batches,
		    unsigned int count)
{
	if (guest_is_child() || !queue || !batches)
		return;
	for (unsigned int i = 0; i < count; i++) {
		struct queue_batch *entry = entry_of(batches[i]);

		if (!batches[i])
			continue;
		batch_given_back(entry);
		queue_release(entry);
	}
}

int gdrcap_release_after(struct gdrcap_queue *queue, const struct gdrcap_batch *const *batches,
			 unsigned int count, struct CUstream_st *stream)
{
	if (guest_is_child())
		return -EPERM;
	if (!queue || !batches)
		return -EINVAL;
	for (unsigned int i = 0; i < count; i++) {
		struct queue_batch *entry = entry_of(batches[i]);
		int ret;

		if (!batches[i])
			return i ? (int)i : -EINVAL;
		batch_given_back(entry);
		ret = queue->ops->after(queue->device, stream, queue_release_later, entry);
		if (ret == 0)
			continue;
		batch_taken(entry);
		return i ? (int)i : ret;
	}
	return (int)count;
}

int gdrcap_get_gpu_queue(struct gdrcap_queue *queue, struct gdrcap_gpu_queue *gpu_queue,
			 size_t size)
{
	const int ret = answer_check(queue, "queue", gpu_queue, size);
	const struct ring_producer *ring;
	struct gdrcap_gpu_queue all;

	if (ret < 0 || queue->consumer != CONSUMER_GPU)
		return ret < 0 ? ret : -EINVAL;
	ring = queue->ring;
	all = (struct gdrcap_gpu_queue){
		.pkts = (const struct gdrcap_pkt *)ring->desc,
		.ready = &ring->ready[0].word,
		.done = &ring->result[0].done,
		.stop = ring->stop,
		.data = queue->data,
		.pkt_mask = ring->desc_mask,
		.burst_mask = ring->burst_mask,
		.ready_stride = sizeof(struct burst_ready) / sizeof(uint64_t),
		.done_stride = sizeof(struct burst_result) / sizeof(uint64_t),
		.slot_bytes = queue->slot_bytes,
		.heads = (const struct gdrcap_pkt *)ring->head_desc,
		.head_data = ring->view.heads,
		.head_slot_bytes = queue->head_slot_bytes,
	};
	answer_give(gpu_queue, size, &all, sizeof(all));
	return 0;
}
