/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's own consumer on the CPU: gdrcap_poll() and gdrcap_release() in all orders. */
#include "api.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define HELD_MAX 4096

/* What one queue has brought so far. */
struct taken {
	uint64_t batches, frames;
	uint64_t next[GDRCAP_STREAMS_MAX]; /* sequence number, by stream */
};

static struct gdrcap_session *begin(uint64_t frames, uint32_t queues, uint32_t streams)
{
	struct gdrcap_session *session;
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "host", frames);
	api_set(config, "queues", "%u", queues);
	api_set(config, "streams", "%u", streams);
	session = api_create(config);
	api_start(session);
	return session;
}

/* Batches and frames come complete and in order. */
static void take(struct taken *taken, const struct gdrcap_batch *batch)
{
	assert_true(batch->seq == taken->batches);
	assert_in_range(batch->count, 1, 256);
	for (uint32_t i = 0; i < batch->count; i++) {
		uint64_t sequence = 0;
		uint32_t stream = 0;

		assert_int_equal(
			api_frame(api_frame_at(batch, i), batch->pkts[i].len, &stream, &sequence),
			1);
		assert_true(sequence == taken->next[stream]);
		taken->next[stream]++;
	}
	taken->batches++;
	taken->frames += batch->count;
}

static void stats_are(const struct gdrcap_session *session, uint64_t frames, uint64_t in_flight)
{
	struct gdrcap_summary summary;
	struct gdrcap_counts counts, sum = { 0 };

	assert_int_equal(gdrcap_get_summary(session, &summary, sizeof(summary)), 0);
	assert_true(summary.total.received == frames);
	assert_true(summary.total.bytes == frames * (API_FRAME - 4));
	assert_true(summary.in_flight == in_flight);
	/* Nobody but the caller knows what became of them, and nothing is claimed. */
	gdrcap_get_summary(session, &summary, sizeof(summary));
	assert_int_equal(summary.known & GDRCAP_HAS_VERDICT, 0);
	assert_true(summary.total.received == frames);
	assert_true(summary.total.bytes == frames * (API_FRAME - 4));
	assert_int_equal(summary.total.lost + summary.total.damaged + summary.unexplained, 0);
	for (uint32_t i = 0; gdrcap_get_queue_counts(session, i, &counts, sizeof(counts)) == 0;
	     i++) {
		sum.received += counts.received;
		sum.bytes += counts.bytes;
	}
	assert_true(sum.received == frames);
	assert_true(sum.bytes == summary.total.bytes);
}

/* The one thread of an embedder does everything. */
static void in_order(void **state)
{
	static struct taken taken;
	struct gdrcap_session *session = begin(100000, 1, 3);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const struct gdrcap_batch *batch[32];
	int n;

	memset(&taken, 0, sizeof(taken));
	while (!gdrcap_wait_end(session, 0) || taken.frames < 100000) {
		n = gdrcap_poll(queue, batch, 32);
		assert_true(n >= 0);
		for (int i = 0; i < n; i++)
			take(&taken, batch[i]);
		gdrcap_release(queue, batch, (unsigned int)n);
		if (n == 0)
			sched_yield();
	}
	api_stop(session);
	assert_int_equal(gdrcap_poll(queue, batch, 32), -ESHUTDOWN);
	assert_int_equal(gdrcap_wait(queue, batch, 32, -1), -ESHUTDOWN);
	stats_are(session, 100000, 0);
	gdrcap_destroy(session);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Each frame's, where it was asked for: between the start and now, and in order. */
static void times_of_arrival(void **state)
{
	for (uint32_t asked = 0; asked < 2; asked++) {
		/* The clock may be set while the test runs, a little. */
		const uint64_t slack = 1000000000, start = now_ns() - slack;
		const struct gdrcap_batch *batch;
		struct gdrcap_session *session;
		struct gdrcap_config *config API_FREED = NULL;
		struct gdrcap_queue *queue;
		uint64_t frames = 0, last = start;

		api_config(&config, "host", 20000);
		api_set(config, "consumer.batch_times", "%u", asked);
		session = api_create(config);
		queue = gdrcap_get_queue(session, 0);
		assert_true(gdrcap_time_ns(queue, 0) == 0);
		api_start(session);
		for (; frames < 20000; frames += batch->count) {
			assert_int_equal(gdrcap_wait(queue, &batch, 1, -1), 1);
			assert_int_equal(batch->times != NULL, asked);
			/* Nothing splits frames here. */
			assert_null(batch->heads);
			assert_null(batch->head_data);
			for (uint32_t i = 0; asked && i < batch->count; i++) {
				const uint64_t ns = gdrcap_time_ns(queue, batch->times[i]);

				assert_true(ns >= last && ns <= now_ns() + slack);
				last = ns;
			}
			gdrcap_release(queue, &batch, 1);
		}
		assert_true(gdrcap_time_ns(NULL, 1) == 0);
		api_stop(session);
		gdrcap_destroy(session);
	}
}

/* Held for long and given back in any order, with and without a stream. */
static void out_of_order(void **state)
{
	static const struct gdrcap_batch *held[600];
	static struct taken taken;
	struct gdrcap_session *session = begin(100000, 1, 1);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	unsigned int count = 0;
	uint32_t random = 1;

	memset(&taken, 0, sizeof(taken));
	while (taken.frames < 100000) {
		const struct gdrcap_batch *batch;
		int n = gdrcap_wait(queue, &batch, 1, 1000);

		assert_in_range(n, 0, 1);
		if (n == 1) {
			take(&taken, batch);
			held[count++] = batch;
		}
		/* Full, or nothing comes because we have it all: give half of them back, any half.
		 */
		for (unsigned int left = n == 0 || count == 600 ? count / 2 + 1 : 0; left && count;
		     left--) {
			unsigned int which = (random = random * 1664525 + 1013904223) % count;

			if (random >> 31)
				gdrcap_release(queue, &held[which], 1);
			else
				assert_int_equal(gdrcap_release_after(queue, &held[which], 1, NULL),
						 1);
			held[which] = held[--count];
		}
	}
	gdrcap_release(queue, held, count);
	api_wait_end(session);
	api_stop(session);
	stats_are(session, 100000, 0);
	gdrcap_destroy(session);
}

/* A stream is an error where there is no GPU that has streams. */
static void stream_without_gpu(void **state)
{
	struct gdrcap_session *session = begin(10, 1, 1);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const struct gdrcap_batch *batch;

	assert_int_equal(gdrcap_wait(queue, &batch, 1, -1), 1);
	assert_int_equal(gdrcap_release_after(queue, &batch, 1, (void *)&batch), -ENOTSUP);
	/* It is still ours. */
	assert_int_equal(gdrcap_release_after(queue, &batch, 1, NULL), 1);
	gdrcap_destroy(session);
}

/* Batches go through a second thread, which gives them back. */
struct passing {
	struct gdrcap_queue *queue;
	const struct gdrcap_batch *batch[HELD_MAX];
	_Atomic uint64_t in, out;
	_Atomic int over;
};

static void *releaser_run(void *arg)
{
	struct passing *passing = arg;

	while (!atomic_load(&passing->over) ||
	       atomic_load(&passing->out) != atomic_load(&passing->in)) {
		const uint64_t out = atomic_load(&passing->out);

		if (out == atomic_load(&passing->in)) {
			sched_yield();
			continue;
		}
		gdrcap_release(passing->queue, &passing->batch[out % HELD_MAX], 1);
		atomic_store(&passing->out, out + 1);
	}
	return NULL;
}

static void released_by_another_thread(void **state)
{
	static struct passing passing;
	static struct taken taken;
	struct gdrcap_session *session = begin(100000, 1, 1);
	pthread_t releaser;

	memset(&taken, 0, sizeof(taken));
	memset(&passing, 0, sizeof(passing));
	passing.queue = gdrcap_get_queue(session, 0);
	pthread_create(&releaser, NULL, releaser_run, &passing);
	while (taken.frames < 100000) {
		const struct gdrcap_batch *batch;
		const uint64_t in = atomic_load(&passing.in);

		if (in - atomic_load(&passing.out) == HELD_MAX) {
			sched_yield();
			continue;
		}
		assert_int_equal(gdrcap_wait(passing.queue, &batch, 1, -1), 1);
		take(&taken, batch);
		passing.batch[in % HELD_MAX] = batch;
		atomic_store(&passing.in, in + 1);
	}
	atomic_store(&passing.over, 1);
	pthread_join(releaser, NULL);
	api_wait_end(session);
	api_stop(session);
	stats_are(session, 100000, 0);
	gdrcap_destroy(session);
}

/* Nobody polls: all slots are out, the sender waits, and then nothing is lost. */
static void slow_consumer(void **state)
{
	static struct taken taken;
	struct gdrcap_session *session = begin(60000, 1, 1);
	struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
	const struct gdrcap_batch *batch[16];
	struct gdrcap_summary summary;

	memset(&taken, 0, sizeof(taken));
	/* There are 16384 slots. */
	do {
		sched_yield();
		gdrcap_get_summary(session, &summary, sizeof(summary));
	} while (summary.tx_stalled == 0 || summary.in_flight < 12000);
	assert_true(summary.total.received <= summary.slots);
	assert_int_equal(gdrcap_wait_end(session, 0), 0);
	while (taken.frames < 60000) {
		int n = gdrcap_wait(queue, batch, 16, -1);

		assert_true(n > 0);
		for (int i = 0; i < n; i++)
			take(&taken, batch[i]);
		gdrcap_release(queue, batch, (unsigned int)n);
	}
	api_wait_end(session);
	api_stop(session);
	stats_are(session, 60000, 0);
	gdrcap_destroy(session);
}

/* Frames of these lengths as a pcap file. */
static void pcap_write(char *path, const uint32_t *lengths, uint32_t count)
{
	static const uint8_t header[24] = { 0xd4, 0xc3,	       0xb2, 0xa1, 2, 0, 4,
					    0,	  [16] = 0xff, 0xff, 0,	   0, 1 };
	static uint8_t bytes[16384];
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(header, sizeof(header), 1, file), 1);
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t record[] = { 100, i, lengths[i], lengths[i] };

		memset(bytes, (int)i + 1, lengths[i]);
		assert_int_equal(fwrite(record, sizeof(record), 1, file), 1);
		assert_int_equal(fwrite(bytes, lengths[i], 1, file), 1);
	}
	assert_int_equal(fclose(file), 0);
}

/* Whoever plays into the port decides how long frames are: the beginning of one that has no room is
 * marked, and where it lies is found all the same. */
static void longer_than_a_slot(void **state)
{
	static const uint32_t lengths[] = { 60, 5000, 1514, 1515, 9000, 60, 1920, 1921 };
	char path[] = "/tmp/gdrcap_test_api_XXXXXX";
	const struct gdrcap_batch *batch;
	struct gdrcap_session *session;
	struct gdrcap_summary summary;
	struct gdrcap_config *config API_FREED = NULL;
	uint32_t frames = 0, cut = 0;

	pcap_write(path, lengths, 8);
	api_config(&config, "host", 8);
	api_unset(config, "tx_port");
	api_unset(config, "pattern");
	api_set(config, "port", "net_pcap0,rx_pcap=%s", path);
	api_set(config, "frame.size", "1518");
	session = api_create(config);
	api_start(session);
	while (frames < 8) {
		assert_int_equal(gdrcap_wait(gdrcap_get_queue(session, 0), &batch, 1, -1), 1);
		for (uint32_t i = 0; i < batch->count; i++, frames++) {
			/* 2048 less DPDK's headroom */
			const int longer = lengths[frames] > 1920;

			assert_int_equal(gdrcap_frame_is_cut(batch, i), longer);
			assert_int_equal(batch->pkts[i].len, longer ? 1920 : lengths[frames]);
			assert_int_equal(gdrcap_frame(batch, i)[0], frames + 1);
			assert_int_equal(gdrcap_frame(batch, i)[batch->pkts[i].len - 1],
					 frames + 1);
			cut += (uint32_t)longer;
		}
		gdrcap_release(gdrcap_get_queue(session, 0), &batch, 1);
	}
	api_wait_end(session);
	assert_int_equal(gdrcap_stop(session, NULL), 0);
	assert_non_null(strstr(gdrcap_get_message(session, 0),
			       "frames longer than --frame-size (1518): 3;"));
	gdrcap_get_summary(session, &summary, sizeof(summary));
	assert_int_equal(cut, 3);
	assert_int_equal(summary.cut, 3);
	assert_int_equal(summary.cut, 3);
	gdrcap_destroy(session);
	unlink(path);
}

/* What was held when the run was stopped, and what was never polled, is there afterwards. */
static void batches_outlive_the_stop(void **state)
{
	static const struct gdrcap_batch *held[HELD_MAX];
	static struct taken taken;
	unsigned int count = 0;

	for (int give_back = 0; give_back < 2; give_back++) {
		struct gdrcap_session *session = begin(0, 1, 1);
		struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
		struct gdrcap_summary summary;
		int n;

		memset(&taken, 0, sizeof(taken));
		for (count = 0; count < 20; count++)
			assert_int_equal(gdrcap_wait(queue, &held[count], 1, -1), 1);
		api_stop(session);
		while ((n = gdrcap_wait(queue, &held[count], 64, -1)) > 0) {
			count += (unsigned int)n;
			assert_true(count < HELD_MAX - 64);
		}
		assert_int_equal(n, -ESHUTDOWN);
		for (unsigned int i = 0; i < count; i++)
			take(&taken, held[i]);
		gdrcap_get_summary(session, &summary, sizeof(summary));
		assert_true(summary.total.received == taken.frames);
		/* The queue's thread takes back what is given back in order, so not all at once. */
		if (give_back) {
			gdrcap_release(queue, held, count);
			do {
				sched_yield();
				gdrcap_get_summary(session, &summary, sizeof(summary));
			} while (summary.in_flight);
		}
		gdrcap_destroy(session);
	}
}

/* With very many bursts out only full ones are published: the last frames wait, and the stop
 * publishes them. */
static void last_frames_are_published(void **state)
{
	for (uint64_t frames = 15000; frames < 15005; frames++) {
		static struct taken taken;
		struct gdrcap_summary summary;
		struct gdrcap_session *session;
		const struct gdrcap_batch *batch;
		struct gdrcap_queue *queue;
		struct gdrcap_config *config API_FREED = NULL;

		api_config(&config, "host", frames);
		api_set(config, "burst", "7");
		session = api_create(config);
		api_start(session);
		queue = gdrcap_get_queue(session, 0);
		api_wait_end(session);
		api_stop(session);
		gdrcap_get_summary(session, &summary, sizeof(summary));
		assert_true(summary.total.received == frames);
		memset(&taken, 0, sizeof(taken));
		while (gdrcap_poll(queue, &batch, 1) == 1) {
			take(&taken, batch);
			gdrcap_release(queue, &batch, 1);
		}
		assert_true(taken.frames == frames);
		gdrcap_destroy(session);
	}
}

/* Stopped at any moment: after the end was told nothing more came. */
static void nothing_after_the_end(void **state)
{
	for (int i = 0; i < 60; i++) {
		static struct taken taken;
		struct gdrcap_session *session = begin(0, 1, 1);
		struct gdrcap_queue *queue = gdrcap_get_queue(session, 0);
		struct gdrcap_summary summary;
		struct passing passing = { .queue = queue };
		const struct gdrcap_batch *batch;
		int n;

		memset(&taken, 0, sizeof(taken));
		for (int k = 0; k < i; k++) {
			n = gdrcap_poll(passing.queue, &batch, 1);
			if (n == 1) {
				take(&taken, batch);
				gdrcap_release(queue, &batch, 1);
			}
		}
		api_stop(session);
		while ((n = gdrcap_poll(queue, &batch, 1)) == 1) {
			take(&taken, batch);
			gdrcap_release(queue, &batch, 1);
		}
		assert_int_equal(n, -ESHUTDOWN);
		do {
			gdrcap_get_summary(session, &summary, sizeof(summary));
			sched_yield();
		} while (summary.in_flight);
		assert_true(summary.total.received == taken.frames);
		assert_true(summary.bursts == taken.batches);
		gdrcap_destroy(session);
	}
}

/* As above, with a thread that polls while the session is stopped. */
struct poller {
	struct gdrcap_queue *queue;
	uint64_t frames, batches;
	pthread_t thread;
};

static void *poller_run(void *arg)
{
	struct poller *poller = arg;
	const struct gdrcap_batch *batch[8];
	int n;

	while ((n = gdrcap_wait(poller->queue, batch, 8, -1)) > 0) {
		for (int i = 0; i < n; i++) {
			uint64_t sequence;
			uint32_t stream;

			for (uint32_t k = 0; k < batch[i]->count; k++)
				if (!api_frame(api_frame_at(batch[i], k), batch[i]->pkts[k].len,
					       &stream, &sequence))
					return (void *)1;
			poller->frames += batch[i]->count;
			poller->batches++;
		}
		gdrcap_release(poller->queue, batch, (unsigned int)n);
	}
	return n == -ESHUTDOWN ? NULL : (void *)2;
}

static void polled_while_stopped(void **state)
{
	for (int i = 0; i < 40; i++) {
		struct gdrcap_session *session = begin(0, 2, 4);
		struct gdrcap_summary summary;
		struct poller poller[2];
		void *bad;

		for (uint32_t q = 0; q < 2; q++) {
			poller[q] = (struct poller){ .queue = gdrcap_get_queue(session, q) };
			pthread_create(&poller[q].thread, NULL, poller_run, &poller[q]);
		}
		usleep((useconds_t)(i * 100));
		api_stop(session);
		for (uint32_t q = 0; q < 2; q++) {
			pthread_join(poller[q].thread, &bad);
			assert_null(bad);
		}
		do {
			gdrcap_get_summary(session, &summary, sizeof(summary));
			sched_yield();
		} while (summary.in_flight);
		assert_true(summary.total.received == poller[0].frames + poller[1].frames);
		assert_true(summary.bursts == poller[0].batches + poller[1].batches);
		gdrcap_destroy(session);
	}
}

static void waiting(void **state)
{
	struct gdrcap_session *session;
	const struct gdrcap_batch *batch[2];
	struct gdrcap_queue *queue;
	struct gdrcap_gpu_queue gpu_queue;
	struct gdrcap_config *config API_FREED = NULL;

	api_config(&config, "host", 300);
	session = api_create(config);
	queue = gdrcap_get_queue(session, 0);
	/* Nothing before the start, whatever is waited. */
	assert_int_equal(gdrcap_poll(queue, batch, 2), 0);
	assert_int_equal(gdrcap_wait(queue, batch, 2, 0), 0);
	assert_int_equal(gdrcap_wait(queue, batch, 2, 2000), 0);
	assert_int_equal(gdrcap_get_gpu_queue(queue, &gpu_queue, sizeof(gpu_queue)), -EINVAL);
	api_start(session);
	/* The longest wait that can be asked for ends with the first batch. */
	assert_in_range(gdrcap_wait(queue, batch, 2, INT64_MAX), 1, 2);
	/* Room for none: none, and that is no end. */
	api_stop(session);
	assert_int_equal(gdrcap_poll(queue, batch, 0), 0);
	assert_int_equal(gdrcap_wait(queue, batch, 0, -1), 0);
	gdrcap_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_order),
		cmocka_unit_test(times_of_arrival),
		cmocka_unit_test(out_of_order),
		cmocka_unit_test(stream_without_gpu),
		cmocka_unit_test(released_by_another_thread),
		cmocka_unit_test(slow_consumer),
		cmocka_unit_test(longer_than_a_slot),
		cmocka_unit_test(batches_outlive_the_stop),
		cmocka_unit_test(last_frames_are_published),
		cmocka_unit_test(nothing_after_the_end),
		cmocka_unit_test(polled_while_stopped),
		cmocka_unit_test(waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
