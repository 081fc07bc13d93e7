/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender over a software wire, with the CPU backend writing: what comes out is what was requested,
 * in order, each once; and its counters say so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_cycles.h>

#include "base/clock.h"
#include "number_set.h"
#include "pcap_bytes.h"
#include "tx_scene.h"

#define STREAMS_MAX 8u

/* ---- frames of the pattern ---- */

struct seen {
	uint32_t first, step;
	uint64_t next[STREAMS_MAX]; /* sequence number */
	uint64_t ends[STREAMS_MAX], ended_at[STREAMS_MAX];
	uint64_t frames, bytes, streams_said;
	const struct tx_config *config;
	uint64_t turn; /* frames so far: which length is next */
};

static void pattern_frame(void *context, const struct rte_mbuf *mbuf, const uint8_t *bytes)
{
	struct seen *seen = context;
	struct frame_result result;
	uint32_t s;

	assert_int_equal(mbuf->pkt_len, mbuf->data_len);
	frame_check_ahead(&scene.layout, &scene.pattern, bytes, mbuf->data_len, NULL, &result);
	s = (result.stream - seen->first) / seen->step;
	assert_true(s < STREAMS_MAX && seen->first + s * seen->step == result.stream);
	if (result.verdict == FRAME_END) {
		assert_int_equal(mbuf->data_len, 60);
		seen->ends[s]++;
		seen->ended_at[s] = result.sequence;
		seen->streams_said = result.detail;
		return;
	}
	assert_int_equal(result.verdict, FRAME_VALID);
	assert_int_equal(seen->ends[s], 0);
	assert_true(result.sequence == seen->next[s]);
	assert_int_equal(mbuf->data_len,
			 seen->config->lengths[seen->turn % seen->config->length_count]);
	seen->next[s]++;
	seen->turn++;
	seen->frames++;
	seen->bytes += mbuf->data_len;
}

static void seen_begin(struct seen *seen, const struct tx_config *config)
{
	memset(seen, 0, sizeof(*seen));
	seen->first = config->stream_first;
	seen->step = config->stream_step;
	seen->config = config;
}

/* The worker says what was seen. */
static void counters_agree(const struct run *run, const struct seen *seen)
{
	const struct tx_worker *worker = run->worker;
	const uint64_t last = atomic_load(&worker->last_frames);

	assert_true(atomic_load(&worker->sent) == seen->frames);
	assert_true(atomic_load(&worker->bytes) == seen->bytes);
	for (uint32_t s = 0; s < seen->config->stream_count; s++)
		assert_true(atomic_load(&worker->streams[s].sent) == seen->next[s]);
	assert_true((seen->frames != 0) == (atomic_load(&worker->first_tsc) != 0));
	assert_true(atomic_load(&worker->last_tsc) >= atomic_load(&worker->first_tsc));
	assert_true(last <= seen->frames && (last != 0) == (seen->frames != 0));
	assert_in_range(atomic_load(&worker->last_bytes), last * 14, last * 1514);
}

static void pattern_in_order(void **state)
{
	static const uint32_t bursts[] = { 1, 7, 64, 256 };

	for (size_t b = 0; b < sizeof(bursts) / sizeof(bursts[0]); b++) {
		struct tx_config config = run_config();
		struct seen seen;
		struct run run;

		config.stream_first = 5;
		config.stream_step = 3;
		config.stream_count = 4;
		config.frames = 20011;
		seen_begin(&seen, &config);
		run_open(&run, &config, bursts[b], 1024);
		run_go(&run);
		assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), config.frames);
		counters_agree(&run, &seen);
		run_close(&run);
	}
}

/* Sender and writer sleep until they are woken, at full speed, at a rate, and on a wire whose receiver, this
 * thread, tells of no room. Who receives is woken. */
static void a_sender_that_sleeps(void **state)
{
	for (int way = 0; way < 4; way++) {
		struct tx_config config = run_config();
		struct wake receiver;
		struct seen seen;
		struct run run;
		uint32_t ticket;

		wake_init(&receiver);
		config.idle_us = 1000;
		config.writer_wakes = true;
		config.frames = way & 1 ? 400 : 20011;
		if (way & 1)
			config.pacing = (struct pacing_config){ PACING_FRAMES, 4000 };
		seen_begin(&seen, &config);
		run_open(&run, &config, 16, way & 2 ? 64 : 1024);
		run.worker->receiver = &receiver;
		assert_true(wake_arm(&receiver, &ticket));
		run_go(&run);
		assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), config.frames);
		assert_int_equal(receiver.word, 2);
		counters_agree(&run, &seen);
		run_close(&run);
	}
}

/* A wire of 64 frames that nobody empties for a while, and then one frame at a time. */
static void a_full_wire_loses_nothing(void **state)
{
	struct tx_config config = run_config();
	struct seen seen;
	struct run run;

	config.frames = 5000;
	seen_begin(&seen, &config);
	run_open(&run, &config, 50, 64);
	run_go(&run);
	while (atomic_load(&run.worker->stalled) < 100)
		assert_true(time(NULL) < run.until && nap());
	/* As many as fit, of a burst that fits only in part too. */
	assert_int_equal(atomic_load(&run.worker->sent), 63);
	assert_int_equal(run_receive(&run, 1, pattern_frame, &seen), config.frames);
	counters_agree(&run, &seen);
	run_close(&run);
}

static void a_held_sender_hands_over_nothing(void **state)
{
	struct tx_config config = run_config();
	struct seen seen;
	struct run run;

	config.frames = 1000;
	seen_begin(&seen, &config);
	run_open(&run, &config, 64, 1024);
	atomic_store(&run.worker->hold, 1);
	run_go(&run);
	while (atomic_load(&run.worker->stalled) < 100)
		assert_true(time(NULL) < run.until && nap());
	assert_int_equal(atomic_load(&run.worker->sent), 0);
	assert_int_equal(atomic_load(&run.worker->first_tsc), 0);
	atomic_store(&run.worker->hold, 0);
	assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), config.frames);
	counters_agree(&run, &seen);
	run_close(&run);
}

/* Nothing before its time, though frames are written then; and what is handed over says when. */
static void a_sender_starts_at_its_time(void **state)
{
	for (int paced = 0; paced < 2; paced++) {
		struct tx_config config = run_config();
		uint64_t started, late, now;
		struct seen seen;
		struct run run;

		config.frames = 1000;
		config.start_ns = time_ns(CLOCK_REALTIME) + 300000000;
		if (paced)
			config.pacing = (struct pacing_config){ PACING_FRAMES, 1e6 };
		seen_begin(&seen, &config);
		run_open(&run, &config, 64, 1024);
		run_go(&run);
		while (atomic_load(&run.worker->sent) == 0)
			assert_true(time(NULL) < run.until && nap());
		now = time_ns(CLOCK_REALTIME);
		started = atomic_load(&run.worker->started_tsc);
		assert_true(now >= config.start_ns && started > 0);
		assert_true(atomic_load(&run.worker->first_tsc) >= started);
		assert_true(tx_start_late(run.worker, atomic_load(&run.worker->first_tsc), &late));
		assert_true(late <= now - config.start_ns);
		/* The first was written before, and says its time all the same. */
		assert_in_range(run.worker->ring.request[0].time_ns, config.start_ns,
				config.start_ns + 2 * late + 1000000);
		assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), config.frames);
		counters_agree(&run, &seen);
		run_close(&run);
	}
}

/* One that is stopped before its time has sent nothing, and keeps nothing. */
static void a_sender_is_stopped_before_its_time(void **state)
{
	struct tx_config config = run_config();
	uint64_t late = 7;
	struct run run;

	config.start_ns = time_ns(CLOCK_REALTIME) + UINT64_C(3600000000000);
	run_open(&run, &config, 64, 1024);
	run_go(&run);
	while (atomic_load(&run.worker->idle) < 5)
		assert_true(time(NULL) < run.until && nap());
	atomic_store(&run.worker->stop, 1);
	while (!atomic_load(&run.worker->finished))
		assert_true(time(NULL) < run.until && nap());
	assert_int_equal(atomic_load(&run.worker->sent), 0);
	assert_false(tx_start_late(run.worker, rte_rdtsc(), &late));
	assert_int_equal(late, 7);
	run_close(&run);
}

/* ---- the end of the streams ---- */

/* It sends nothing before the other has sent, or has nothing to send. */
static void senders_in_turn(void **state)
{
	struct tx_worker *other = aligned_alloc(RING_LINE, sizeof(*other));
	struct tx_config config = run_config();

	assert_non_null(other);
	config.frames = 10;
	config.after = other;
	for (uint32_t way = 0; way < 3; way++) {
		struct seen seen;
		struct run run;

		memset(other, 0, sizeof(*other));
		seen_begin(&seen, &config);
		run_open(&run, &config, 64, 1024);
		run_go(&run);
		for (uint32_t n = 0; n < 100; n++)
			nap();
		assert_int_equal(atomic_load(&run.worker->sent), 0);
		atomic_store(&other->finished, way == 0);
		atomic_store(&run.worker->stop, way == 1);
		atomic_store(&other->sent, way == 2);
		assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), way == 1 ? 0 : 10);
		run_close(&run);
	}
	free(other);
}

static void ends_agree(const struct run *run, const struct seen *seen)
{
	for (uint32_t s = 0; s < seen->config->stream_count; s++) {
		assert_int_equal(seen->ends[s], TX_END_TIMES);
		assert_true(seen->ended_at[s] == seen->next[s]);
	}
	assert_int_equal(seen->streams_said, seen->config->end_streams);
	counters_agree(run, seen);
}

static void end_frames(void **state)
{
	struct tx_config config = run_config();
	struct seen seen;
	struct run run;

	config.stream_first = 1;
	config.stream_count = 3;
	config.stream_step = 2;
	config.end_streams = 6;
	config.frames = 1000;
	seen_begin(&seen, &config);
	run_open(&run, &config, 64, 1024);
	run_go(&run);
	assert_int_equal(run_receive(&run, 64, pattern_frame, &seen),
			 config.frames + 3 * TX_END_TIMES);
	ends_agree(&run, &seen);
	run_close(&run);
}

/* Stopped with frames requested and written, and a burst sent in part: the number is of those that
 * were handed over. */
static void end_frames_after_a_stop(void **state)
{
	struct tx_config config = run_config();
	struct seen seen;
	struct run run;

	config.end_streams = 1;
	seen_begin(&seen, &config);
	run_open(&run, &config, 50, 64);
	run_go(&run);
	while (atomic_load(&run.worker->stalled) < 100)
		assert_true(time(NULL) < run.until && nap());
	atomic_store(&run.worker->stop, 1);
	/* Until the sender has seen that, the wire is full: the slots of what it orders no more
	 * come back, but for those on the wire and one of an end-of-stream frame. */
	while (rte_mempool_in_use_count(scene.pool) > 63 + 1)
		assert_true(time(NULL) < run.until && nap());
	assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), 63 + TX_END_TIMES);
	assert_int_equal(seen.frames, 63);
	ends_agree(&run, &seen);
	run_close(&run);
}

/* Nobody takes them: the sender ends all the same. */
static void end_frames_are_given_up(void **state)
{
	struct tx_config config = run_config();
	struct seen seen;
	struct run run;

	config.end_streams = 1;
	config.frames = 100;
	seen_begin(&seen, &config);
	run_open(&run, &config, 50, 64);
	atomic_store(&run.worker->stop, 1);
	atomic_store(&run.worker->hold, 1);
	run_go(&run);
	assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), 0);
	run_close(&run);
}

/* ---- frames of a file ---- */

#define FILE_COUNT 3000u

static uint32_t file_len(uint64_t number)
{
	return 14 + (uint32_t)(mixed(number) % 1500);
}

static struct file_frames *file_open(size_t memory_max, uint64_t loops, size_t cut)
{
	struct gdrcap_error error = { 0 };
	struct bytes bytes = { 0 };
	struct file_frames *frames;
	struct file_scan scan;
	char path[64];
	const struct file_frames_config config = {
		.path = path,
		.scan = &scan,
		.gpu = scene.gpu,
		.memory_max = memory_max,
		.loops = loops,
	};

	pcap_head(&bytes, true, 262144, 1);
	for (uint32_t i = 0; i < FILE_COUNT; i++)
		pcap_frame(&bytes, 1, i * 1000, i, file_len(i));
	bytes_save(&bytes, path);
	assert_int_equal(file_frames_scan(path, NULL, &scan, &error), 0);
	assert_int_equal(file_frames_create(&frames, &config, &error), 0);
	if (cut)
		assert_int_equal(truncate(path, (off_t)(bytes.count - cut)), 0);
	unlink(path);
	bytes_free(&bytes);
	assert_int_equal(frames->streamed, memory_max < SIZE_MAX);
	assert_int_equal(file_frames_start(frames, NULL, &error), 0);
	return frames;
}

struct played {
	uint64_t next, bytes, ends;
	uint64_t ended_at;
};

static void file_frame(void *context, const struct rte_mbuf *mbuf, const uint8_t *bytes)
{
	struct played *played = context;
	const uint64_t number = played->next % FILE_COUNT;
	struct frame_result result;

	if (mbuf->data_len != file_len(number) || bytes[0] != frame_byte(number, 0)) {
		frame_check_ahead(&scene.layout, &scene.pattern, bytes, mbuf->data_len, NULL,
				  &result);
		assert_int_equal(result.verdict, FRAME_END);
		played->ends++;
		played->ended_at = result.sequence;
		return;
	}
	assert_int_equal(played->ends, 0);
	for (uint32_t i = 0; i < mbuf->data_len; i++)
		if (bytes[i] != frame_byte(number, i))
			fail();
	played->next++;
	played->bytes += mbuf->data_len;
}

static void file_runs(struct file_frames *file, struct tx_config *config, uint64_t want)
{
	struct played played = { 0 };
	struct run run;

	config->file = file;
	run_open(&run, config, 64, 1024);
	run_go(&run);
	run_receive(&run, 64, file_frame, &played);
	assert_true(played.next == want);
	assert_true(atomic_load(&run.worker->sent) == want);
	assert_true(atomic_load(&run.worker->bytes) == played.bytes);
	assert_int_equal(played.ends, config->end_streams ? TX_END_TIMES : 0);
	if (config->end_streams)
		assert_true(played.ended_at == want);
	if (file->streamed)
		assert_true(atomic_load(&file->used) == want);
	run_close(&run);
	file_frames_destroy(file);
}

static void files_in_laps(void **state)
{
	static const size_t memory[] = { SIZE_MAX, 0, 200000 };

	for (size_t m = 0; m < sizeof(memory) / sizeof(memory[0]); m++) {
		struct tx_config config = run_config();

		config.end_streams = 1;
		file_runs(file_open(memory[m], 3, 0), &config, 3 * FILE_COUNT);
		config = run_config();
		config.frames = FILE_COUNT + 500;
		file_runs(file_open(memory[m], 0, 0), &config, FILE_COUNT + 500);
	}
}

/* A streamed file that is not whole any more: what was there is sent, and the sender ends. */
static void a_file_that_breaks_off(void **state)
{
	struct tx_config config = run_config();
	struct file_frames *file;

	/* Less than the last frame and its record. */
	file = file_open(0, 1, file_len(FILE_COUNT - 1) / 2 + 1);
	config.end_streams = 1;
	file_runs(file, &config, FILE_COUNT - 1);
}

/* ---- paced ---- */

/* Nothing is sent before it is due. */
static void no_earlier_than_due(void **state)
{
	struct tx_config config = run_config();
	const uint64_t frames = 20000, rate = 200000;
	struct pacing_gaps gaps;
	const struct pacing *pacing;
	struct seen seen;
	struct run run;
	uint64_t took;

	config.stream_count = 2;
	config.frames = frames;
	config.pacing = (struct pacing_config){ PACING_FRAMES, (double)rate };
	seen_begin(&seen, &config);
	run_open(&run, &config, 64, 1024);
	run_go(&run);
	assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), frames);
	counters_agree(&run, &seen);
	took = atomic_load(&run.worker->last_tsc) - atomic_load(&run.worker->first_tsc);
	assert_true(took >=
		    (frames - atomic_load(&run.worker->last_frames)) * rte_get_tsc_hz() / rate);
	pacing = &run.worker->pacing;
	pacing_gaps(&pacing, 1, &gaps);
	assert_int_equal(gaps.count, frames - 1);
	run_close(&run);
}

static void a_files_own_times(void **state)
{
	static const size_t memory[] = { SIZE_MAX, 0 };

	for (size_t m = 0; m < 2; m++) {
		struct tx_config config = run_config();
		struct played played = { 0 };
		struct run run;
		uint64_t took, due;

		config.file = file_open(memory[m], 5, 0);
		/* 5 loops of 3 ms, at double speed. */
		config.pacing = (struct pacing_config){ PACING_ORIGINAL, 2 };
		run_open(&run, &config, 64, 1024);
		run_go(&run);
		run_receive(&run, 64, file_frame, &played);
		assert_int_equal(played.next, 5 * FILE_COUNT);
		took = atomic_load(&run.worker->last_tsc) - atomic_load(&run.worker->first_tsc);
		due = (uint64_t)(run.worker->pacing.due >> 64);
		/* The last frame's time, loops included: a gap is 1 us everywhere. */
		assert_in_range(due, (5 * FILE_COUNT - 1) * rte_get_tsc_hz() / 2000000 - 1,
				(5 * FILE_COUNT - 1) * rte_get_tsc_hz() / 2000000);
		assert_true(took >= due);
		assert_int_equal(atomic_load(&run.worker->pacing.rebased), 0);
		run_close(&run);
		file_frames_destroy(config.file);
	}
}

/* One frame an hour: the first comes, and a stop need not wait for the second. */
static void a_slow_sender_stops(void **state)
{
	struct tx_config config = run_config();
	struct seen seen;
	struct run run;

	config.pacing = (struct pacing_config){ PACING_FRAMES, 1 / 3600.0 };
	config.end_streams = 1;
	seen_begin(&seen, &config);
	run_open(&run, &config, 64, 1024);
	run_go(&run);
	while (atomic_load(&run.worker->sent) == 0)
		assert_true(time(NULL) < run.until && nap());
	atomic_store(&run.worker->stop, 1);
	assert_int_equal(run_receive(&run, 64, pattern_frame, &seen), 1 + TX_END_TIMES);
	ends_agree(&run, &seen);
	run_close(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pattern_in_order),
		cmocka_unit_test(a_sender_that_sleeps),
		cmocka_unit_test(a_full_wire_loses_nothing),
		cmocka_unit_test(a_held_sender_hands_over_nothing),
		cmocka_unit_test(a_sender_starts_at_its_time),
		cmocka_unit_test(a_sender_is_stopped_before_its_time),
		cmocka_unit_test(senders_in_turn),
		cmocka_unit_test(end_frames),
		cmocka_unit_test(end_frames_after_a_stop),
		cmocka_unit_test(end_frames_are_given_up),
		cmocka_unit_test(files_in_laps),
		cmocka_unit_test(a_file_that_breaks_off),
		cmocka_unit_test(no_earlier_than_due),
		cmocka_unit_test(a_files_own_times),
		cmocka_unit_test(a_slow_sender_stops),
	};

	return cmocka_run_group_tests(tests, scene_open, scene_close);
}
