/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches, images and send slots by gdrcap_stream.h on the CPU backend, where the calling thread is the stream. What
 * streams of a GPU do: tests/gpu/test_on_stream_cuda.cu. */
#include "api_images.h"
#include "api_send_gpu.h"

#include <stdatomic.h>

#include <gdrcap_device_host.h>

#define RING 4u

/* ---- batches ---- */

struct truth {
	uint64_t frames, batches, next;
};

static void batch_use(const struct gdrcap_batch *batch, struct truth *truth)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		uint64_t sequence;
		uint32_t stream;

		assert_true(
			api_frame(gdrcap_frame(batch, i), batch->pkts[i].len, &stream, &sequence));
		assert_int_equal(sequence, truth->next++);
	}
	assert_true(batch->count > 0);
	truth->frames += batch->count;
	truth->batches++;
}

static struct gdrcap_gpu_queue view_of_queue(struct gdrcap_session *session)
{
	struct gdrcap_gpu_queue view;

	assert_int_equal(gdrcap_get_gpu_queue(gdrcap_get_queue(session, 0), &view, sizeof(view)),
			 0);
	return view;
}

struct stopper {
	struct gdrcap_session *session;
	int ret;
	pthread_t thread;
};

static void *stopper_run(void *arg)
{
	struct stopper *stopper = arg;

	api_wait_end(stopper->session);
	stopper->ret = gdrcap_stop(stopper->session, NULL);
	return NULL;
}

/* One batch after the other; the wait that none follows is ended by the stop, of another thread. */
static void batches(void **state)
{
	const uint64_t frames[] = { 1, 30000, 400000 };

	for (uint32_t round = 0; round < 3; round++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct gdrcap_error error = { 0 };
		struct gdrcap_summary summary;
		struct truth truth = { 0 };
		struct stopper stopper;
		struct gdrcap_gpu_queue view;
		struct gdrcap_queue *queue;
		struct gdrcap_batch batch;
		uint64_t seq = 0;
		int got;

		api_config(&config, "gpu", frames[round]);
		stopper.session = api_create(config);
		queue = gdrcap_get_queue(stopper.session, 0);
		view = view_of_queue(stopper.session);
		api_start(stopper.session);
		assert_int_equal(pthread_create(&stopper.thread, NULL, stopper_run, &stopper), 0);
		for (;; seq++) {
			int ret = gdrcap_wait_on_stream(queue, seq, NULL, &error);

			if (ret == -ESHUTDOWN)
				break;
			assert_int_equal(ret, 0);
			got = gdrcap_host_try_next(&view, seq, &batch);
			/* behind a wait there is a batch, or the end */
			assert_int_not_equal(got, 0);
			if (got < 0)
				break;
			assert_int_equal(batch.seq, seq);
			batch_use(&batch, &truth);
			assert_int_equal(gdrcap_release_on_stream(queue, seq, NULL, &error), 0);
		}
		pthread_join(stopper.thread, NULL);
		assert_int_equal(stopper.ret, 0);
		api_failed(gdrcap_wait_on_stream(queue, seq, NULL, &error), -ESHUTDOWN, &error,
			   "the run is over");
		api_failed(gdrcap_release_on_stream(queue, seq, NULL, &error), -ESHUTDOWN, &error,
			   "the run is over");
		assert_int_equal(truth.frames, frames[round]);
		do
			gdrcap_get_summary(stopper.session, &summary, sizeof(summary));
		while (summary.in_flight);
		assert_int_equal(summary.total.received, frames[round]);
		assert_int_equal(summary.bursts, truth.batches);
		assert_int_equal(summary.bursts, seq);
		gdrcap_destroy(stopper.session);
	}
}

/* What came before the stop is there after it, and is given back in any order. */
static void after_the_stop(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_summary summary;
	struct truth truth = { 0 };
	struct gdrcap_gpu_queue view;
	struct gdrcap_queue *queue;
	struct gdrcap_batch batch;

	api_config(&config, "gpu", 600);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	view = view_of_queue(session);
	api_start(session);
	api_wait_end(session);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	gdrcap_get_summary(session, &summary, sizeof(summary));
	assert_true(summary.bursts > 1);
	for (uint64_t seq = 0; seq < summary.bursts; seq++) {
		assert_int_equal(gdrcap_wait_on_stream(queue, seq, NULL, NULL), 0);
		assert_int_equal(gdrcap_host_try_next(&view, seq, &batch), 1);
		batch_use(&batch, &truth);
	}
	assert_int_equal(truth.frames, 600);
	assert_int_equal(gdrcap_host_try_next(&view, summary.bursts, &batch), -1);
	for (uint64_t seq = summary.bursts; seq-- > 0;) {
		gdrcap_get_summary(session, &summary, sizeof(summary));
		assert_int_equal(summary.in_flight, 600);
		assert_int_equal(gdrcap_release_on_stream(queue, seq, NULL, &error), 0);
	}
	do
		gdrcap_get_summary(session, &summary, sizeof(summary));
	while (summary.in_flight);
	gdrcap_destroy(session);
}

/* What is wrong is refused, and says why. */
static void refused(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct CUstream_st *stream = (struct CUstream_st *)(uintptr_t)64;
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_summary summary;
	struct gdrcap_queue *queue;

	assert_int_equal(gdrcap_wait_on_stream(NULL, 0, NULL, NULL), -EINVAL);
	assert_int_equal(gdrcap_release_on_stream(NULL, 0, NULL, NULL), -EINVAL);
	assert_int_equal(gdrcap_image_wait_on_stream(NULL, 0, NULL, NULL), -EINVAL);
	assert_int_equal(gdrcap_image_release_on_stream(NULL, 0, NULL, NULL), -EINVAL);
	assert_int_equal(gdrcap_room_on_stream(NULL, 0, 1, NULL, NULL), -EINVAL);
	assert_int_equal(gdrcap_send_on_stream(NULL, 0, 1, NULL, NULL), -EINVAL);

	api_config(&config, "host", 1);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	api_start(session);
	api_failed(gdrcap_wait_on_stream(queue, 0, NULL, &error), -EINVAL, &error, "consumer: gpu");
	api_failed(gdrcap_release_on_stream(queue, 0, NULL, &error), -EINVAL, &error,
		   "consumer: gpu");
	gdrcap_destroy(session);

	api_config(&config, "gpu", 3000);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	api_failed(gdrcap_wait_on_stream(queue, 0, NULL, &error), -EINVAL, &error,
		   "gdrcap_start() before");
	api_start(session);
	api_failed(gdrcap_wait_on_stream(queue, 0, stream, &error), -ENOTSUP, &error, "no GPU");
	assert_int_equal(gdrcap_wait_on_stream(queue, 0, NULL, &error), 0);
	api_failed(gdrcap_release_on_stream(queue, 0, stream, &error), -ENOTSUP, &error, "no GPU");
	api_failed(gdrcap_wait_on_stream(queue, UINT64_MAX, NULL, &error), -EINVAL, &error,
		   "cannot be");
	api_failed(gdrcap_wait_on_stream(queue, UINT64_C(1) << 62, NULL, &error), -EINVAL, &error,
		   "cannot be");
	api_wait_end(session);
	gdrcap_get_summary(session, &summary, sizeof(summary));
	api_failed(gdrcap_wait_on_stream(queue, summary.bursts + GDRCAP_STREAM_AHEAD, NULL, &error),
		   -EAGAIN, &error, "too far ahead");
	/* Given back at once, it would be taken from its user when it comes. */
	api_failed(gdrcap_release_on_stream(queue, summary.bursts, NULL, &error), -EAGAIN, &error,
		   "is not there");
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	gdrcap_destroy(session);
}

/* ---- images ---- */

static void images(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_error error = { 0 };
	struct gdrcap_image_counts counts;
	struct gdrcap_gpu_images view;
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	struct gdrcap_image image;
	uint64_t seq = 0;
	int got;

	/* Their bytes are compared; with the ring as deep as all of them none is dropped. */
	images_config(&config, "gpu", 60 * PIECES, 60);
	session = api_create(config);
	images = gdrcap_get_images(session, 0);
	assert_int_equal(gdrcap_get_gpu_images(images, &view, sizeof(view)), 0);
	api_failed(gdrcap_image_wait_on_stream(images, 0, NULL, &error), -EINVAL, &error,
		   "gdrcap_start() before");
	/* Frames are the placing's: there are no batches to wait for. */
	api_start(session);
	api_failed(gdrcap_wait_on_stream(gdrcap_get_queue(session, 0), 0, NULL, &error), -EINVAL,
		   &error, "no image");
	for (;; seq++) {
		const int ret = gdrcap_image_wait_on_stream(images, seq, NULL, &error);

		if (ret == -ESHUTDOWN)
			break;
		assert_int_equal(ret, 0);
		got = gdrcap_host_image_try_next(&view, seq, &image);
		assert_int_not_equal(got, 0);
		if (got < 0) /* the run has ended by itself: no stop is needed for that */
			break;
		assert_int_equal(image.seq, seq);
		check_bytes(&image);
		assert_int_equal(gdrcap_image_release_on_stream(images, seq, NULL, &error), 0);
	}
	assert_int_equal(seq, 60);
	api_stop(session);
	assert_int_equal(gdrcap_get_image_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(counts.complete, 60);
	assert_int_equal(counts.dropped, 0);
	api_failed(gdrcap_image_wait_on_stream(images, 60, NULL, &error), -ESHUTDOWN, &error,
		   "the run is over");
	gdrcap_destroy(session);
}

/* A ring of few buffers goes round: those that streams give back are used again. */
static void images_go_round(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_image_counts counts;
	struct gdrcap_gpu_images view;
	struct gdrcap_session *session;
	struct gdrcap_images *images;
	struct gdrcap_image image;
	uint64_t seq = 0;

	images_config(&config, "gpu", 0, RING);
	session = api_create(config);
	images = gdrcap_get_images(session, 0);
	assert_int_equal(gdrcap_get_gpu_images(images, &view, sizeof(view)), 0);
	api_start(session);
	for (; seq < 500; seq++) {
		assert_int_equal(gdrcap_image_wait_on_stream(images, seq, NULL, NULL), 0);
		assert_int_equal(gdrcap_host_image_try_next(&view, seq, &image), 1);
		assert_int_equal(image.seq, seq);
		check_bytes(&image);
		/* It will have the buffer of this one. */
		assert_int_equal(gdrcap_image_release_on_stream(images, seq + RING, NULL, NULL),
				 -EAGAIN);
		assert_int_equal(gdrcap_image_release_on_stream(images, seq, NULL, NULL), 0);
	}
	assert_int_equal(gdrcap_image_release_on_stream(images, 3, NULL, NULL), -EINVAL);
	api_stop(session);
	assert_int_equal(gdrcap_get_image_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_true(counts.complete + counts.incomplete >= 500);
	gdrcap_destroy(session);
}

/* ---- frames to be sent ---- */

/* Of every `count` slots the "kernel" fills some, more and fewer; the others are left out. */
static void send_some(void **state)
{
	const uint64_t all = 100000;
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_error error = { 0 };
	struct gdrcap_tx_counts counts;
	struct gdrcap_session *session;
	uint64_t next = 0, number = 0, seq = 0;
	struct gdrcap_queue *queue;
	struct gdrcap_gpu_tx view;
	struct gdrcap_tx *tx;

	gpu_config(&config);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	tx = gdrcap_get_tx(session, 0);
	view = view_of(session);
	api_failed(gdrcap_room_on_stream(tx, 0, 1, NULL, &error), -EINVAL, &error,
		   "gdrcap_start() before");
	api_start(session);
	api_failed(gdrcap_room_on_stream(tx, 0, 0, NULL, &error), -EINVAL, &error, "0 frames");
	api_failed(gdrcap_room_on_stream(tx, 0, view.count + 1, NULL, &error), -EINVAL, &error,
		   "the queue's slots");
	api_failed(gdrcap_send_on_stream(tx, UINT64_C(1) << 62, 1, NULL, &error), -EINVAL, &error,
		   "cannot be");
	for (uint32_t round = 0; number < all; round++) {
		const uint32_t count = 1 + round % 40, fills = (round * 7) % (count + 1);

		/* Else nobody would make room. */
		while (number - next > view.count / 2)
			assert_true(receive(queue, &next, false) >= 0);
		assert_int_equal(gdrcap_room_on_stream(tx, seq, count, NULL, &error), 0);
		assert_int_equal(gdrcap_gpu_tx_reserve(view, seq, (int)count), (int)count);
		/* which of them does not matter */
		for (uint32_t i = count - fills; i < count; i++, number++)
			gdrcap_gpu_tx_set_bytes(view, seq + i,
						fill(gdrcap_gpu_tx_data(view, seq + i), number));
		assert_int_equal(gdrcap_send_on_stream(tx, seq, count, NULL, &error), 0);
		seq += count;
	}
	while (next < number)
		assert_true(receive(queue, &next, false) >= 0);
	assert_int_equal(gdrcap_gpu_tx_first(view), seq);
	api_stop(session);
	counts = counts_of(session);
	assert_int_equal(counts.sent, number);
	assert_int_equal(counts.submitted, number);
	assert_int_equal(counts.refused + counts.unsent, 0);
	api_failed(gdrcap_room_on_stream(tx, seq, 1, NULL, &error), -ESHUTDOWN, &error,
		   "too late to send");
	api_failed(gdrcap_send_on_stream(tx, seq, 1, NULL, &error), -ESHUTDOWN, &error,
		   "too late to send");
	gdrcap_destroy(session);
}

struct late {
	struct gdrcap_session *session;
	struct gdrcap_gpu_tx view;
	pthread_t thread;
	_Atomic bool waits;
	int got;
};

/* Fills the queue, and one wait more, for room that never comes; then, as a stream that was let go by the end. */
static void *late_run(void *arg)
{
	struct late *late = arg;
	struct gdrcap_tx *tx = gdrcap_get_tx(late->session, 0);
	const uint32_t all = late->view.count;

	assert_int_equal(gdrcap_room_on_stream(tx, 0, all, NULL, NULL), 0);
	for (uint32_t i = 0; i < all; i++)
		gdrcap_gpu_tx_set_bytes(late->view, i, fill(gdrcap_gpu_tx_data(late->view, i), i));
	assert_int_equal(gdrcap_send_on_stream(tx, 0, all, NULL, NULL), 0);
	atomic_store(&late->waits, true);
	assert_int_equal(gdrcap_room_on_stream(tx, all, 5, NULL, NULL), 0);
	late->got = gdrcap_gpu_tx_reserve(late->view, all, 5);
	/* as a write that is in the stream already */
	__atomic_store_n(late->view.submitted, all + 5u, __ATOMIC_RELEASE);
	return NULL;
}

/* The end lets a wait for room go; what is submitted behind it is nothing, and no fault. */
static void end_while_waiting(void **state)
{
	for (uint32_t round = 0; round < 20; round++) {
		API_FREED struct gdrcap_config *config = NULL;
		struct late late = { .got = 1 };
		struct gdrcap_tx_counts counts;

		gpu_config(&config);
		late.session = api_create(config);
		late.view = view_of(late.session);
		api_start(late.session);
		assert_int_equal(pthread_create(&late.thread, NULL, late_run, &late), 0);
		while (!atomic_load(&late.waits))
			sched_yield();
		assert_int_equal(gdrcap_stop(late.session, NULL), 0);
		pthread_join(late.thread, NULL);
		assert_int_equal(late.got, -1);
		counts = counts_of(late.session);
		assert_int_equal(counts.submitted, late.view.count);
		assert_int_equal(counts.refused, 0);
		gdrcap_destroy(late.session);
	}
}

/* A count that cannot be still ends a run that goes on. */
static void wrong_count(void **state)
{
	API_FREED struct gdrcap_config *config = NULL;
	struct gdrcap_error error = { 0 };
	struct gdrcap_session *session;
	struct gdrcap_gpu_tx view;

	gpu_config(&config);
	session = api_create(config);
	view = view_of(session);
	api_start(session);
	assert_int_equal(
		gdrcap_send_on_stream(gdrcap_get_tx(session, 0), view.count, 1, NULL, &error), 0);
	api_wait_end(session);
	api_failed(gdrcap_stop(session, &error), -EPROTO, &error, "never had slots for so many");
	gdrcap_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches),	     cmocka_unit_test(after_the_stop),
		cmocka_unit_test(refused),	     cmocka_unit_test(images),
		cmocka_unit_test(images_go_round),   cmocka_unit_test(send_some),
		cmocka_unit_test(end_while_waiting), cmocka_unit_test(wrong_count),
	};

	/* without `refused`: a consumer on the CPU has no such front */
	const struct CMUnitTest fronted[] = {
		cmocka_unit_test(batches),   cmocka_unit_test(after_the_stop),
		cmocka_unit_test(images),    cmocka_unit_test(images_go_round),
		cmocka_unit_test(send_some), cmocka_unit_test(end_while_waiting),
	};

	return api_fronted() ? cmocka_run_group_tests_name("on_stream", fronted, NULL, NULL)
			     : cmocka_run_group_tests_name("on_stream", tests, NULL, NULL);
}
