/* SPDX-License-Identifier: BSD-3-Clause */
/* The accountant at work on two queues while several threads borrow its verdict all the time, and
 * what it owes to whoever saves frames (a double here). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

#include "verdict/accountant.h"
#include "base/eal.h"
#include "nap.h"
#include "gpu/gpu_open.h"
#include "image_scene.h"
#include "kernels/frame_records.h"
#include "number_set.h"
#include "test_long.h"
#include "memory/region.h"

#define QUEUES 2u
#define BURSTS ((uint64_t)test_cases(20000, 4000)) /* of each queue */
#define READERS 6u
#define RUNS_MAX 5u

/* Port, rx worker and consumer of one queue in one thread. */
struct source {
	struct ring_producer *ring;
	uint32_t queue;
	uint64_t random;
	uint64_t frames, filtered, damaged;
	pthread_t thread;
};

/* Stands for lib/save: what it was shown, and what it holds back. */
struct save {
	struct ring_producer **rings;
	uint64_t shown[QUEUES], flushed[QUEUES]; /* bursts */
	uint64_t hold[QUEUES];			 /* so many of the newest are held */
	uint64_t answer[QUEUES]; /* of the last save_hold(), or what it must have been */
	bool odd;		 /* answers that nobody can follow */
	uint32_t flushes, ends;
	_Atomic bool full;	/* bursts are not to be shown */
	_Atomic uint64_t asked; /* times that it was so */
	bool wrong;
};

bool save_has_room(struct save *save, uint32_t queue)
{
	const bool full = atomic_load(&save->full);

	if (full)
		atomic_fetch_add(&save->asked, 1);
	return !full;
}

/* In order, each once, done and not released. */
void save_burst(struct save *save, uint32_t queue, uint64_t burst)
{
	if (queue >= QUEUES || burst != save->shown[queue]++ || save->ends ||
	    !ring_is_done(save->rings[queue], burst) ||
	    atomic_load(&save->rings[queue]->collected) > burst)
		save->wrong = true;
}

void save_flush(struct save *save)
{
	save->flushes++;
	for (uint32_t q = 0; q < QUEUES; q++)
		save->flushed[q] = save->shown[q];
}

uint64_t save_hold(const struct save *save, uint32_t queue, uint64_t through)
{
	struct save *mine = (struct save *)save;
	const uint64_t held = save->hold[queue];
	uint64_t answer = held < through ? through - held : 0;

	if (through != save->shown[queue] || through != save->flushed[queue])
		mine->wrong = true;
	/* What it said before stays released. */
	if (answer < save->answer[queue])
		answer = save->answer[queue];
	mine->answer[queue] = answer;
	if (save->odd)
		return through & 1 ? UINT64_MAX : 0;
	return answer;
}

void save_end(struct save *save)
{
	for (uint32_t q = 0; q < QUEUES; q++)
		if (!save->odd && save->rings[q] &&
		    atomic_load(&save->rings[q]->collected) != save->answer[q])
			save->wrong = true;
	save->ends++;
}

struct stage {
	struct accountant accountant;
	struct save save;
	struct ring_producer *rings[QUEUES];
	struct source source[QUEUES];
	_Atomic int over;
	_Atomic uint64_t borrowed;
};

static int16_t gpu;

static int gpu_set_up(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)64 << 20 };

	if (eal_start(&needs, NULL) < 0)
		return -1;
	gpu = (int16_t)gpu_open_host(false, NULL);
	return gpu < 0 ? -1 : 0;
}

static void stage_begin(struct stage *stage, bool saves)
{
	const struct verdict_config verdict = { .own_streams = QUEUES };
	const struct region region = { .gpu = gpu, .slot_shift = 11 };
	const struct ring_config config = {
		.region = &region, .frames = 2048, .burst_max = 64, .came = true
	};

	memset(stage, 0, sizeof(*stage));
	for (uint32_t q = 0; q < QUEUES; q++) {
		struct ring_producer *ring = aligned_alloc(RING_LINE, sizeof(*ring));

		assert_non_null(ring);
		assert_int_equal(ring_create(ring, &config, NULL), 0);
		stage->rings[q] = ring;
		stage->source[q] = (struct source){ .ring = ring, .queue = q, .random = q + 1 };
	}
	stage->save.rings = stage->rings;
	assert_int_equal(accountant_create(&stage->accountant, stage->rings, QUEUES, &verdict,
					   saves ? &stage->save : NULL),
			 0);
}

static void stage_end(struct stage *stage)
{
	accountant_destroy(&stage->accountant);
	for (uint32_t q = 0; q < QUEUES; q++) {
		ring_destroy(stage->rings[q]);
		free(stage->rings[q]);
	}
}

/* The consumer's word on a burst of `count` frames: some records, valid, filtered or unreadable. */
static void source_result(struct source *source, uint64_t burst, uint32_t first, uint32_t count)
{
	struct ring_producer *ring = source->ring;
	struct burst_result *result = &ring->result[burst & ring->burst_mask];
	struct frame_record *record;
	uint32_t records = 0;

	while (count) {
		const uint32_t kind = records % 3;
		const uint32_t n = kind == 1 ? 1 : records + 1 == RUNS_MAX ? count : 1 + count / 2;

		ring->view.records[(first + records) & ring->desc_mask] = (struct frame_record){
			.sequence = source->frames,
			.stream = (uint16_t)source->queue,
			.count = (uint16_t)n,
			.verdict = kind == 0   ? FRAME_VALID
				   : kind == 1 ? FRAME_DAMAGED_HEADER
					       : FRAME_FILTERED,
			.header_ok = kind == 0,
			.frame_bytes = 100 * n,
		};
		if (kind == 0)
			source->frames += n;
		else if (kind == 1)
			source->damaged += n;
		else
			source->filtered += n;
		records++;
		count -= n;
	}
	record = &ring->view.records[first & ring->desc_mask];
	if (records == 1 && record_is_plain(record)) {
		struct burst_plain plain;

		record_to_plain(record, &plain);
		memset(record, 0xff, sizeof(*record)); /* not to be read */
		burst_tell(result, &plain, burst, ring->burst_bits);
		return;
	}
	__atomic_store_n(&result->done, burst_word(burst, ring->burst_bits, records, 0),
			 __ATOMIC_RELEASE);
}

static void *source_run(void *arg)
{
	struct source *source = arg;
	struct ring_producer *ring = source->ring;
	unsigned int idle = 0;

	for (uint64_t b = 0; b < BURSTS;) {
		/* One or more: now and then a burst without any records, such as nobody looked at. */
		const uint32_t want = 1 + (uint32_t)random_below(&source->random, 64);
		const uint32_t room = ring_room(ring), n = want < room ? want : room;

		ring->reclaimed = atomic_load_explicit(&ring->collected, memory_order_acquire);
		if (ring->reclaimed)
			ring->tail = ring->end[(ring->reclaimed - 1) & ring->burst_mask];
		if (ring->head + n - ring->tail > ring->desc_mask + 1 ||
		    ring->burst - ring->reclaimed > ring->burst_mask) {
			thread_idle(++idle);
			continue;
		}
		idle = 0;
		ring->head += n;
		ring_publish(ring);
		source_result(source, b, ring->head - n, random_below(&source->random, 9) ? n : 0);
		b++;
	}
	return NULL;
}

static void *reader_run(void *arg)
{
	struct stage *stage = arg;
	struct gdrcap_counts last = { 0 }, now;

	while (!atomic_load(&stage->over)) {
		const struct verdict *verdict = accountant_borrow(&stage->accountant);

		verdict_total(verdict, true, verdict->unique, &now);
		accountant_return(&stage->accountant);
		atomic_fetch_add(&stage->borrowed, 1);
		/* It stood still meanwhile, and never goes back. */
		if (now.received != now.valid + now.damaged + now.duplicate + now.filtered ||
		    now.received < last.received || now.valid < last.valid ||
		    now.bytes < last.bytes || now.bytes != 100 * now.received)
			return (void *)1;
		last = now;
	}
	return NULL;
}

static void at_work(bool saves)
{
	static struct stage stage;
	pthread_t reader[READERS];
	struct gdrcap_counts counts;
	uint64_t frames = 0, all = 0;
	void *bad;

	stage_begin(&stage, saves);
	stage.save.hold[0] = 3;
	assert_int_equal(accountant_start(&stage.accountant, NULL, NULL), 0);
	for (uint32_t i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&reader[i], NULL, reader_run, &stage), 0);
	for (uint32_t q = 0; q < QUEUES; q++)
		assert_int_equal(
			pthread_create(&stage.source[q].thread, NULL, source_run, &stage.source[q]),
			0);
	/* They end only if the accountant gets on although it is borrowed. */
	for (uint32_t q = 0; q < QUEUES; q++)
		pthread_join(stage.source[q].thread, NULL);
	accountant_stop(&stage.accountant);
	atomic_store(&stage.over, 1);
	for (uint32_t i = 0; i < READERS; i++) {
		pthread_join(reader[i], &bad);
		assert_null(bad);
	}
	assert_true(atomic_load(&stage.borrowed) >= READERS);
	for (uint32_t q = 0; q < QUEUES; q++) {
		const struct source *source = &stage.source[q];

		/* Everything is released at the end. */
		assert_true(atomic_load(&stage.rings[q]->collected) == BURSTS);
		assert_true(atomic_load(&stage.rings[q]->accounted) == BURSTS);
		assert_true(stage.save.shown[q] == (saves ? BURSTS : 0));
		verdict_queue_counts(&stage.accountant.verdict, q, &counts);
		assert_true(counts.received == source->frames + source->filtered + source->damaged);
		assert_true(counts.valid == source->frames);
		assert_true(counts.filtered == source->filtered);
		assert_true(counts.damaged == source->damaged);
		frames += source->frames;
		all += counts.received;
	}
	verdict_total(&stage.accountant.verdict, true, frames, &counts);
	assert_true(counts.received == all);
	assert_true(counts.valid == frames);
	assert_int_equal(counts.lost, 0);
	assert_false(stage.save.wrong);
	assert_int_equal(stage.save.ends, saves);
	assert_int_equal(stage.save.flushes != 0, saves);
	stage_end(&stage);
}

static void borrowed_all_the_time(void **state)
{
	at_work(false);
}

static void frames_are_saved(void **state)
{
	at_work(true);
}

static void wait_for(_Atomic uint64_t *counter, uint64_t value)
{
	unsigned int idle = 0;

	while (atomic_load(counter) < value)
		thread_idle(++idle);
}

static void publish(struct stage *stage, uint32_t queue, uint64_t from, uint64_t count)
{
	struct ring_producer *ring = stage->rings[queue];

	for (uint64_t b = from; b < from + count; b++) {
		ring->head += 4;
		ring_publish(ring);
		source_result(&stage->source[queue], b, ring->head - 4, 4);
	}
}

/* Who sleeps is woken up: the accountant by results and the stop, who waits for slots by it. Else this test
 * does not end in time. */
static void an_accountant_that_sleeps(void **state)
{
	static struct stage stage;
	struct wake giver;
	uint32_t ticket;

	stage_begin(&stage, false);
	wake_init(&giver);
	stage.rings[0]->giver = &giver;
	stage.accountant.sleeps = true;
	stage.accountant.sleep_us = 3600000000u;
	assert_int_equal(accountant_start(&stage.accountant, NULL, NULL), 0);
	for (uint64_t b = 0; b < 100; b++) {
		while (!(atomic_load(&stage.accountant.wake.word) & 1))
			nap();
		/* Readers get the lock of one that sleeps. */
		accountant_borrow(&stage.accountant);
		accountant_return(&stage.accountant);
		assert_true(wake_arm(&giver, &ticket));
		publish(&stage, 0, b, 1);
		wake_look(&stage.accountant.wake);
		while (atomic_load(&giver.word) & 1)
			nap();
		assert_true(atomic_load(&stage.rings[0]->collected) == b + 1);
	}
	accountant_stop(&stage.accountant);
	stage_end(&stage);
}

/* What is held is accounted, but not released before the end. */
static void held_bursts_stay(void **state)
{
	static struct stage stage;

	for (int odd = 0; odd < 2; odd++) {
		stage_begin(&stage, true);
		stage.save.hold[0] = 10;
		stage.save.hold[1] = UINT64_MAX;
		stage.save.odd = odd;
		assert_int_equal(accountant_start(&stage.accountant, NULL, NULL), 0);
		for (uint64_t b = 0; b < 100; b++)
			for (uint32_t q = 0; q < QUEUES; q++) {
				struct ring_producer *ring = stage.rings[q];

				publish(&stage, q, b, 1);
				wait_for(&ring->accounted, b + 1);
			}
		/* Lent between two rounds. */
		accountant_borrow(&stage.accountant);
		if (!odd) {
			assert_true(atomic_load(&stage.rings[0]->collected) == 90);
			assert_true(atomic_load(&stage.rings[1]->collected) == 0);
		} else {
			/* Never beyond what was shown, and never back. */
			assert_true(atomic_load(&stage.rings[0]->collected) <= 100);
			assert_true(atomic_load(&stage.rings[0]->collected) > 0);
		}
		accountant_return(&stage.accountant);
		accountant_stop(&stage.accountant);
		for (uint32_t q = 0; q < QUEUES; q++)
			assert_true(atomic_load(&stage.rings[q]->collected) == 100);
		assert_false(stage.save.wrong);
		assert_int_equal(stage.save.ends, 1);
		stage_end(&stage);
	}
}

/* Bursts stay in the ring while the saver has no room, but at the stop. */
static void a_saver_without_room(void **state)
{
	static struct stage stage;
	struct ring_producer *ring;

	stage_begin(&stage, true);
	ring = stage.rings[0];
	assert_int_equal(accountant_start(&stage.accountant, NULL, NULL), 0);
	for (uint64_t b = 0; b < 100; b += 10) {
		atomic_store(&stage.save.full, true);
		atomic_store(&stage.save.asked, 0);
		publish(&stage, 0, b, 10);
		wait_for(&stage.save.asked, 3);
		assert_true(atomic_load(&ring->accounted) == b);
		if (b == 90)
			break;
		atomic_store(&stage.save.full, false);
		wait_for(&ring->collected, b + 10);
	}
	accountant_stop(&stage.accountant);
	assert_true(atomic_load(&ring->collected) == 100);
	assert_true(stage.save.shown[0] == 100);
	assert_false(stage.save.wrong);
	stage_end(&stage);
}

/* What is finished when it is stopped is counted; what is not stays. */
static void stop_takes_what_is_done(void **state)
{
	static struct stage stage;
	struct ring_producer *ring;

	stage_begin(&stage, false);
	ring = stage.rings[1];
	assert_int_equal(accountant_start(&stage.accountant, NULL, NULL), 0);
	for (uint32_t b = 0; b < 200; b++) {
		ring->head += 4;
		ring_publish(ring);
		if (b != 150)
			source_result(&stage.source[1], b, ring->head - 4, 4);
	}
	accountant_stop(&stage.accountant);
	assert_true(atomic_load(&ring->collected) == 150);
	/* Borrowing works after the end, and stopping twice. */
	assert_true(accountant_borrow(&stage.accountant)->queues[1].received == 600);
	accountant_return(&stage.accountant);
	accountant_stop(&stage.accountant);
	stage_end(&stage);
}

/* A piece of an image, placed and done by queue q, that came at `came`. */
static void place(struct stage *stage, struct scene *scene, uint32_t q, uint64_t number,
		  uint32_t piece, uint64_t came)
{
	struct ring_producer *ring = stage->rings[q];
	const uint32_t slot = (uint32_t)ring->burst & ring->burst_mask;
	const struct place_record record = scene_place(scene, 0, number, piece, 0);

	memcpy(&ring->view.records[ring->head & ring->desc_mask], &record, sizeof(record));
	ring->came[slot] = came;
	ring->head++;
	ring_publish(ring);
	__atomic_store_n(&ring->result[slot].done,
			 burst_word(ring->burst - 1, ring->burst_bits, 1, 0), __ATOMIC_RELEASE);
}

/* Pieces of one image by both queues: its times are the bursts', and not the accountant's. */
static void images_have_arrival_times(void **state)
{
	static struct stage stage;
	struct scene *scene = scene_begin(4, 2);
	const struct gdrcap_image *image;

	stage_begin(&stage, false);
	scene->images.assembler.config.timeout = UINT64_MAX / 4;
	stage.accountant.images = &scene->images;
	stage.accountant.image_count = 1;
	assert_int_equal(accountant_start(&stage.accountant, NULL, NULL), 0);
	for (uint32_t piece = 0; piece < SCENE_PIECES; piece++)
		place(&stage, scene, piece % QUEUES, 1, piece, piece == 0 ? 1500 : 1000 + piece);
	for (uint32_t q = 0; q < QUEUES; q++)
		wait_for(&stage.rings[q]->accounted, SCENE_PIECES / QUEUES);
	accountant_stop(&stage.accountant);
	image = scene_take(scene);
	assert_non_null(image);
	assert_int_equal(image->end, GDRCAP_IMAGE_COMPLETE);
	assert_int_equal(image->first_time, 1001);
	assert_int_equal(image->last_time, 1500);
	ring_wake_close(&scene->images.ring.wake);
	free(scene);
	stage_end(&stage);
}

static const struct gdrcap_image *wait_for_image(struct scene *scene)
{
	const struct gdrcap_image *image;

	while (!(image = scene_take(scene)))
		nap();
	return image;
}

/* A run of a file, by the file's clock: what is open is closed when the next frame is due so late; or when that frame
 * waits for a buffer, and the caller has had the others for a long time. */
static void clock_of_a_file(void **state)
{
	static struct source_clock clock;
	static struct stage stage;

	for (int waits = 0; waits < 2; waits++) {
		struct scene *scene = scene_begin(2, 2);
		const struct gdrcap_image *image, *next;

		stage_begin(&stage, false);
		clock = (struct source_clock){ .step_ns = 100,
					       .count = 1,
					       .rings = stage.rings,
					       .wake = &stage.accountant.wake };
		stage.accountant.images = &scene->images;
		stage.accountant.image_count = 1;
		stage.accountant.clock = &clock;
		assert_int_equal(accountant_start(&stage.accountant, NULL, NULL), 0);
		source_clock_hold(&clock, 0, 1000, false);
		wait_for(&clock.limit, 1100);
		for (uint32_t piece = 0; piece < SCENE_PIECES; piece++)
			place(&stage, scene, 0, 1, piece, 1000);
		image = wait_for_image(scene);
		assert_int_equal(image->end, GDRCAP_IMAGE_COMPLETE);
		place(&stage, scene, 0, 2, 7, 1050);
		source_clock_hold(&clock, 0, waits ? 1060 : 1151, waits);
		wait_for(&stage.rings[0]->accounted, SCENE_PIECES + 1);
		if (waits) {
			accountant_borrow(&stage.accountant);
			stage.accountant.stuck = 1;
			accountant_return(&stage.accountant);
		}
		next = wait_for_image(scene);
		assert_int_equal(next->number, 2);
		assert_int_equal(next->end, GDRCAP_IMAGE_TIMEOUT);
		wait_for(&clock.now, 1151);
		accountant_stop(&stage.accountant);
		ring_wake_close(&scene->images.ring.wake);
		free(scene);
		stage_end(&stage);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(borrowed_all_the_time),
		cmocka_unit_test(frames_are_saved),
		cmocka_unit_test(an_accountant_that_sleeps),
		cmocka_unit_test(held_bursts_stay),
		cmocka_unit_test(a_saver_without_room),
		cmocka_unit_test(stop_takes_what_is_done),
		cmocka_unit_test(images_have_arrival_times),
		cmocka_unit_test(clock_of_a_file),
	};

	return cmocka_run_group_tests(tests, gpu_set_up, NULL);
}
