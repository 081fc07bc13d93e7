/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches, images and send slots in the hands of CUDA streams: waits for words that running kernels look at, and
 * writes of those that they write. */
#include <errno.h>

#include "base/guest.h"
#include "base/log.h"
#include "base/stream_count.h"
#include "session/session.h"

_Static_assert(GDRCAP_STREAM_AHEAD == RING_AHEAD, "as gdrcap_stream.h promises");

void session_streams_open(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		atomic_store_explicit(&session->workers.queues[i].started, true,
				      memory_order_relaxed);
	for (uint32_t i = 0; i < session->images.count; i++)
		atomic_store_explicit(&session->images.handed[i].started, true,
				      memory_order_relaxed);
	for (uint32_t i = 0; i < session->sending.count; i++)
		atomic_store_explicit(&session->sending.queues[i].started, true,
				      memory_order_relaxed);
}

static int is_over(const char *what, uint64_t seq, struct gdrcap_error *error)
{
	return error_set(error, -ESHUTDOWN, "the run is over, and %s %llu is none of it", what,
			 (unsigned long long)seq);
}

static int not_started(struct gdrcap_error *error)
{
	return error_set(error, -EINVAL,
			 "the session was not started, and nothing would end a wait: call "
			 "gdrcap_start() before");
}

static int cannot_be(const char *what, uint64_t seq, struct gdrcap_error *error)
{
	return error_set(error, -EINVAL,
			 "%s %llu cannot be: they are numbered from 0, and those that were given "
			 "back long ago are no more",
			 what, (unsigned long long)seq);
}

/* What kernel_error() has to say. */
static int queued(int ret, struct gdrcap_error *error)
{
	return ret < 0 ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* 0: thing `seq`, of which `word` counts, is there, or may be waited for. `depth`: words of the ring, after which
 * its place is another's. */
static int number_check(uint64_t word, uint64_t seq, uint64_t depth, const char *what,
			struct gdrcap_error *error)
{
	const uint64_t count = stream_count_of(word);

	if (seq >= STREAM_COUNT_ENOUGH || seq + depth < count)
		return cannot_be(what, seq, error);
	if (seq < count)
		return 0;
	if (stream_count_ended(word))
		return is_over(what, seq, error);
	if (seq - count >= GDRCAP_STREAM_AHEAD)
		return error_set(error, -EAGAIN,
				 "%s %llu is too far ahead: %llu have come, and %u more may be "
				 "waited for; try again when some have",
				 what, (unsigned long long)seq, (unsigned long long)count,
				 GDRCAP_STREAM_AHEAD);
	return 0;
}

/* A release in a stream is behind a wait for the same number; one by the calling thread is done at once, and a batch that
 * came later would be taken from its user. */
static int back_check(const struct kernel_ops *ops, const uint64_t *told, uint64_t seq,
		      const char *what, struct gdrcap_error *error)
{
	const uint64_t count = stream_count_of(__atomic_load_n(told, __ATOMIC_RELAXED));

	if (!ops->stream_is_caller || seq < count)
		return 0;
	return error_set(error, -EAGAIN,
			 "%s %llu is not there, %llu have come, and without a GPU it would be "
			 "given back at once: wait for it before",
			 what, (unsigned long long)seq, (unsigned long long)count);
}

/* ---- batches ---- */

static int queue_check(const struct gdrcap_queue *queue, uint64_t seq, struct gdrcap_error *error)
{
	int ret = guest_check(queue, "queue", error);

	if (ret < 0)
		return ret;
	if (queue->consumer != CONSUMER_GPU || !queue->ring->told)
		return error_set(error, -EINVAL,
				 "the queue's batches are not for streams to wait for: set "
				 "consumer: gpu, and no image");
	if (!atomic_load_explicit(&queue->started, memory_order_relaxed))
		return not_started(error);
	return number_check(__atomic_load_n(queue->ring->told, __ATOMIC_RELAXED), seq,
			    (uint64_t)queue->ring->burst_mask + 1, "batch", error);
}

int gdrcap_wait_on_stream(struct gdrcap_queue *queue, uint64_t seq, struct CUstream_st *stream,
			  struct gdrcap_error *error)
{
	const int ret = queue_check(queue, seq, error);

	if (ret < 0)
		return ret;
	return queued(queue->ops->wait_word(queue->device, stream, queue->ring->told, seq + 1),
		      error);
}

int gdrcap_release_on_stream(struct gdrcap_queue *queue, uint64_t seq, struct CUstream_st *stream,
			     struct gdrcap_error *error)
{
	int ret = queue_check(queue, seq, error);
	const struct ring_producer *ring;

	if (ret == 0)
		ret = back_check(queue->ops, queue->ring->told, seq, "batch", error);
	if (ret < 0)
		return ret;
	ring = queue->ring;
	/* DONE, by the stream. Partner: COLLECT in ring_is_done(). */
	return queued(queue->ops->write_word(queue->device, stream,
					     &ring->result[(uint32_t)seq & ring->burst_mask].done,
					     burst_word(seq, ring->burst_bits, 0, 0)),
		      error);
}

/* ---- images ---- */

static int images_check(const struct gdrcap_images *images, uint64_t seq,
			struct gdrcap_error *error)
{
	int ret = guest_check(images, "images", error);

	if (ret < 0)
		return ret;
	if (!images->gpu.entry)
		return error_set(error, -EINVAL,
				 "the images are not for streams to wait for: set consumer: gpu");
	if (!atomic_load_explicit(&images->started, memory_order_relaxed))
		return not_started(error);
	return number_check(__atomic_load_n(images->gpu.told, __ATOMIC_RELAXED), seq,
			    (uint64_t)images->gpu.mask + 1, "image", error);
}

int gdrcap_image_wait_on_stream(struct gdrcap_images *images, uint64_t seq,
				struct CUstream_st *stream, struct gdrcap_error *error)
{
	const int ret = images_check(images, seq, error);

	if (ret < 0)
		return ret;
	return queued(images->ops->wait_word(images->device, stream, images->gpu.told, seq + 1),
		      error);
}

int gdrcap_image_release_on_stream(struct gdrcap_images *images, uint64_t seq,
				   struct CUstream_st *stream, struct gdrcap_error *error)
{
	int ret = images_check(images, seq, error);

	if (ret == 0)
		ret = back_check(images->ops, images->gpu.told, seq, "image", error);
	if (ret < 0)
		return ret;
	/* BACK, by the stream. Partner: the acquire load in image_gpu_next_back(). What never came is given
	 * back after the run's end only, when no buffer is used again. */
	return queued(images->ops->write_word(images->device, stream,
					      &images->gpu.done[(uint32_t)seq & images->gpu.mask],
					      seq + 1),
		      error);
}

/* ---- slots to send from ---- */

static int tx_check(const struct gdrcap_tx *tx, uint64_t seq, uint32_t count,
		    struct gdrcap_error *error)
{
	int ret = guest_check(tx, "send queue", error);

	if (ret < 0)
		return ret;
	if (!tx->gpu.room)
		return error_set(error, -EINVAL,
				 "the send queue is not for streams: set sender: gpu");
	if (!atomic_load_explicit(&tx->started, memory_order_relaxed))
		return not_started(error);
	if (seq >= STREAM_COUNT_ENOUGH - UINT32_MAX)
		return cannot_be("frame", seq, error);
	if (count == 0 || count > tx->gpu.count)
		return error_set(error, -EINVAL, "%u frames at once: 1 to %u, the queue's slots",
				 count, tx->gpu.count);
	if (stream_count_ended(__atomic_load_n(tx->gpu.room, __ATOMIC_RELAXED)))
		return error_set(error, -ESHUTDOWN, "the run is over: it is too late to send");
	return 0;
}

int gdrcap_room_on_stream(struct gdrcap_tx *tx, uint64_t seq, uint32_t count,
			  struct CUstream_st *stream, struct gdrcap_error *error)
{
	const int ret = tx_check(tx, seq, count, error);

	if (ret < 0)
		return ret;
	/* STOP may come before the wait: the kernels behind it are told so, and LATE. */
	send_gpu_by_stream(&tx->gpu);
	return queued(
		tx->config.ops->wait_word(tx->config.device, stream, tx->gpu.room, seq + count),
		error);
}

int gdrcap_send_on_stream(struct gdrcap_tx *tx, uint64_t seq, uint32_t count,
			  struct CUstream_st *stream, struct gdrcap_error *error)
{
	const int ret = tx_check(tx, seq, count, error);

	if (ret < 0)
		return ret;
	send_gpu_by_stream(&tx->gpu);
	/* SUBMIT, by the stream. Partner: the acquire load in send_gpu_look(). */
	return queued(tx->config.ops->write_word(tx->config.device, stream, tx->gpu.submitted,
						 seq + count),
		      error);
}
