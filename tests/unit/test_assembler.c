/* SPDX-License-Identifier: BSD-3-Clause */
/* The assembler: order, what closes an image, what is counted; and random streams, of which every image
 * must come once, in order, with the bitmap of what was placed. */
#include "image_scene.h"

static void scene_end(struct scene *scene)
{
	ring_wake_close(&scene->images.ring.wake);
	free(scene);
}

static void complete_at_once_and_in_order(void **state)
{
	struct scene *scene = scene_begin(8, 2);

	scene_image(scene, 0, 5, 0, 0);
	scene_expect(scene, 5, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	/* 6 is still open when 7 is complete */
	scene_image(scene, 0, 6, 3, 4);
	scene_image(scene, 0, 7, 0, 0);
	scene_expect_none(scene);
	scene_frame(scene, 0, 6, 3);
	scene_expect(scene, 6, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_expect(scene, 7, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	/* 9 began first */
	scene_frame(scene, 0, 9, 0);
	scene_image(scene, 0, 8, 0, 0);
	scene_expect(scene, 8, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assert_int_equal(scene_counts(scene).complete, 4);
	assert_int_equal(scene_counts(scene).open, 1);
	scene_end(scene);
}

static void a_newer_one_closes_the_oldest(void **state)
{
	struct scene *scene = scene_begin(8, 2);
	struct gdrcap_range ranges[2];
	const struct gdrcap_image *image;

	scene_image(scene, 0, 1, 10, 13);
	scene_image(scene, 0, 2, 0, 0);
	scene_expect_none(scene);
	scene_frame(scene, 0, 3, 0);
	scene_later(scene, 0);
	image = scene_take(scene);
	assert_non_null(image);
	assert_int_equal(image->number, 1);
	assert_int_equal(image->end, GDRCAP_IMAGE_NEWER);
	assert_int_equal(image->placed, 37 * SCENE_PIECE);
	assert_int_equal(gdrcap_image_missing(image, ranges, 2), 1);
	assert_int_equal(ranges[0].from, 10 * SCENE_PIECE);
	assert_int_equal(ranges[0].bytes, 3 * SCENE_PIECE);
	scene_expect(scene, 2, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	/* what comes of it now is late */
	scene_frame(scene, 0, 1, 10);
	assert_int_equal(scene_counts(scene).late, 1);
	assert_int_equal(scene_counts(scene).pieces_lost, 3);
	assert_int_equal(scene->images.assembler.incomplete_count, 1);
	assert_int_equal(scene->images.assembler.incomplete[0].missing[0].from, 10 * SCENE_PIECE);
	scene_end(scene);
}

static void times_close(void **state)
{
	struct scene *scene = scene_begin(8, 2);

	scene_image(scene, 0, 1, 0, 1);
	scene_later(scene, 100);
	scene_expect_none(scene);
	/* a second copy keeps nothing open */
	scene_frame(scene, 0, 1, 5);
	scene_later(scene, 1);
	scene_expect(scene, 1, GDRCAP_IMAGE_TIMEOUT, SCENE_PIECES - 1);
	/* nor does a clock that goes back a little end one */
	scene_image(scene, 0, 2, 0, 2);
	scene->now--;
	scene_later(scene, 0);
	scene_expect_none(scene);
	scene->now++;
	scene_frame(scene, 0, 2, 1);
	/* nor does time in which its frames may have waited for somebody without a core */
	scene->now += 101;
	assert_true(assembler_round(&scene->images.assembler, scene->now, scene->now - 50));
	scene_expect_none(scene);
	scene->now -= 101;
	assert_false(assembler_round(&scene->images.assembler, scene->now, scene->now));
	/* after an end marker less is waited for */
	scene_trailer(scene, 2, 0);
	scene_later(scene, 10);
	scene_expect_none(scene);
	scene_later(scene, 1);
	scene_expect(scene, 2, GDRCAP_IMAGE_TIMEOUT, SCENE_PIECES - 1);
	/* an older one that goes on for ever holds up a complete one no longer than that */
	scene_frame(scene, 0, 3, 0);
	scene_image(scene, 0, 4, 0, 0);
	for (uint32_t piece = 1; piece < 4; piece++) {
		scene_later(scene, 33);
		scene_expect_none(scene);
		scene_frame(scene, 0, 3, piece);
	}
	scene_later(scene, 2);
	scene_expect(scene, 3, GDRCAP_IMAGE_TIMEOUT, 4);
	scene_expect(scene, 4, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assert_int_equal(scene_counts(scene).timeout, 3);
	scene_end(scene);
}

/* An image that misses pieces waits `timeout` for them, however long an older one goes on. */
static void times_close_behind_an_older_one(void **state)
{
	struct scene *scene = scene_begin(8, 3);

	scene_frame(scene, 0, 1, 0);
	scene_frame(scene, 0, 2, 0);
	for (uint32_t piece = 1; piece < 3; piece++) {
		scene_later(scene, 40);
		scene_frame(scene, 0, 1, piece);
	}
	scene_frame(scene, 0, 3, 0);
	/* 2 is over, 1 and 3 are not */
	scene_later(scene, 21);
	assert_int_equal(assembler_over(&scene->images.assembler), scene->now + 80);
	scene_frame(scene, 0, 2, 1);
	assert_int_equal(scene_counts(scene).late, 1);
	scene_frame(scene, 0, 1, 3);
	scene_expect_none(scene);
	/* what ended 3 ends it while 1 goes on */
	scene_trailer(scene, 3, 0);
	scene_later(scene, 11);
	scene_frame(scene, 0, 3, 1);
	assert_int_equal(scene_counts(scene).late, 2);
	scene_later(scene, 90);
	scene_expect(scene, 1, GDRCAP_IMAGE_TIMEOUT, 4);
	scene_expect(scene, 2, GDRCAP_IMAGE_TIMEOUT, 1);
	scene_expect(scene, 3, GDRCAP_IMAGE_TIMEOUT, 1);
	scene_end(scene);
}

/* One that begins in front of a complete one may hold that up for as long as if it had been there before. */
static void times_close_what_begins_before_a_complete_one(void **state)
{
	struct scene *scene = scene_begin(8, 3);

	scene_frame(scene, 0, 1, 0);
	scene->slow = true;
	scene_later(scene, 101);
	scene_image(scene, 0, 4, 0, 1);
	scene_later(scene, 80);
	scene_frame(scene, 0, 4, 0);
	/* by now 4 would be over, if it was not complete, and nothing is open */
	scene_later(scene, 30);
	scene_frame(scene, 0, 3, 0);
	assert_int_equal(assembler_over(&scene->images.assembler), scene->now + 71);
	scene_later(scene, 71);
	scene->slow = false;
	scene_closings(scene);
	scene_later(scene, 0);
	scene_expect(scene, 1, GDRCAP_IMAGE_TIMEOUT, 1);
	scene_expect(scene, 3, GDRCAP_IMAGE_TIMEOUT, 1);
	scene_expect(scene, 4, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_end(scene);
}

static void the_stop_closes_all(void **state)
{
	struct scene *scene = scene_begin(8, 4);
	const struct gdrcap_image *image;

	scene_image(scene, 0, 1, 0, 1);
	scene_image(scene, 0, 2, 0, 0);
	scene_image(scene, 1, 9, 0, 2);
	scene->slow = true;
	assert_false(assembler_finish(&scene->images.assembler, scene->now));
	scene_expect_none(scene);
	scene_closings(scene);
	assert_true(assembler_finish(&scene->images.assembler, scene->now));
	assembler_end(&scene->images.assembler, scene->now);
	scene_expect(scene, 1, GDRCAP_IMAGE_STOPPED, SCENE_PIECES - 1);
	scene_expect(scene, 2, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_expect(scene, 9, GDRCAP_IMAGE_STOPPED, SCENE_PIECES - 2);
	assert_int_equal(gdrcap_image_poll(&scene->images, &image, 1), -108);
	assert_int_equal(scene_counts(scene).stopped, 2);
	scene_end(scene);
}

/* A device that is dead closes nothing. */
static void what_is_not_closed_is_dropped(void **state)
{
	struct scene *scene = scene_begin(8, 4);

	scene_image(scene, 0, 1, 0, 1);
	scene_image(scene, 0, 2, 0, 0);
	scene->slow = true;
	assert_false(assembler_finish(&scene->images.assembler, scene->now));
	assembler_end(&scene->images.assembler, scene->now);
	scene_expect(scene, 2, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assert_int_equal(scene_counts(scene).dropped, 1);
	scene_end(scene);

	scene = scene_begin(8, 4);
	scene->broken = true;
	scene_image(scene, 0, 1, 0, 1);
	scene_later(scene, 1000);
	assert_int_equal(scene->images.assembler.failure, -5);
	assert_int_equal(scene_counts(scene).dropped, 1);
	scene_end(scene);
}

static void numbers(void **state)
{
	struct scene *scene = scene_begin(8, 2);
	const struct gdrcap_image *image;

	scene_image(scene, 0, 10, 0, 0);
	scene_image(scene, 0, 14, 0, 0);
	scene_expect(scene, 10, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	image = scene_take(scene);
	assert_int_equal(image->skipped, 3);
	assert_int_equal(scene_counts(scene).skipped, 3);
	/* the sender begins anew */
	scene_image(scene, 0, 0x100000, 0, 0);
	scene_image(scene, 0, 1, 0, 0);
	scene_image(scene, 0, 2, 0, 0);
	scene_expect(scene, 0x100000, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_expect(scene, 1, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_expect(scene, 2, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assert_int_equal(scene_counts(scene).restarts, 2);
	assert_int_equal(scene_counts(scene).skipped, 3);
	/* a wild number costs one image, and holds nothing up */
	scene_frame(scene, 0, 0x55555555, 0);
	scene_image(scene, 0, 3, 0, 0);
	scene_image(scene, 0, 4, 0, 0);
	scene_later(scene, 0);
	scene_expect(scene, 0x55555555, GDRCAP_IMAGE_NEWER, 1);
	scene_expect(scene, 3, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_expect(scene, 4, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_end(scene);
}

/* A worker looked at the window just before it was moved on. */
static void late_by_a_hair(void **state)
{
	struct scene *scene = scene_begin(8, 2);
	const struct place_record record = scene_place(scene, 0, 6, 0, 0);

	scene_image(scene, 0, 7, 0, 0);
	scene_expect(scene, 7, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assembler_add(&scene->images.assembler, scene->now, &record);
	scene_later(scene, 0);
	scene_expect_none(scene);
	assert_int_equal(scene_counts(scene).dropped, 1);
	assert_int_equal(scene_counts(scene).open, 0);
	scene_image(scene, 0, 8, 0, 0);
	scene_expect(scene, 8, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assert_int_equal(scene_counts(scene).restarts, 0);
	scene_end(scene);
}

static void no_buffer_no_image(void **state)
{
	struct scene *scene = scene_begin(2, 2);
	const struct gdrcap_image *held[2];

	scene_image(scene, 0, 1, 0, 0);
	scene_image(scene, 0, 2, 0, 0);
	held[0] = scene_take(scene);
	held[1] = scene_take(scene);
	scene_image(scene, 0, 3, 0, 0);
	scene_image(scene, 0, 4, 0, 0);
	assert_int_equal(scene_counts(scene).dropped, 2);
	assert_int_equal(scene_counts(scene).no_room, 2 * SCENE_PIECES);
	/* the rest of one that began without stays without, in the other queue too */
	gdrcap_image_release(&scene->images, &held[1], 1);
	gdrcap_image_release(&scene->images, &held[0], 1);
	scene_later(scene, 0);
	scene_frame(scene, 0, 4, 0);
	assert_int_equal(scene_counts(scene).dropped, 2);
	scene_image(scene, 0, 6, 0, 0);
	held[0] = scene_take(scene);
	assert_int_equal(held[0]->number, 6);
	assert_int_equal(held[0]->seq, 2);
	assert_int_equal(held[0]->skipped, 1); /* 5: of 3 and 4 something came */
	scene_end(scene);
}

static void the_latest_or_none(void **state)
{
	struct scene *scene = scene_begin(3, 2);

	scene->images.assembler.config.drop_oldest = true;
	for (uint64_t number = 1; number <= 9; number++) {
		scene_image(scene, 0, number, 0, 0);
		scene_later(scene, 0);
	}
	assert_int_equal(scene_counts(scene).no_room, 0);
	assert_int_equal(scene_counts(scene).dropped, 7);
	scene_expect(scene, 8, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_expect(scene, 9, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	scene_expect_none(scene);
	scene_end(scene);

	scene = scene_begin(3, 2);
	scene->images.assembler.config.drop_incomplete = true;
	scene_image(scene, 0, 1, 0, 1);
	scene_image(scene, 0, 2, 0, 0);
	scene_later(scene, 101);
	scene_expect(scene, 2, GDRCAP_IMAGE_COMPLETE, SCENE_PIECES);
	assert_int_equal(scene_counts(scene).dropped, 1);
	assert_int_equal(scene_counts(scene).incomplete, 0);
	assert_int_equal(scene_counts(scene).pieces_lost, 1);
	scene_end(scene);
}

/* The sender says how many pieces there are. */
static void the_sender_says(void **state)
{
	struct scene *scene = scene_begin(8, 2);
	const struct gdrcap_image *image;

	scene->view.layout.known = 0;
	for (uint32_t piece = 0; piece < 10; piece++)
		scene_frame(scene, 0, 1, piece);
	scene_expect_none(scene);
	scene_trailer(scene, 1, 10);
	scene_later(scene, 0);
	image = scene_take(scene);
	assert_int_equal(image->end, GDRCAP_IMAGE_COMPLETE);
	assert_int_equal(image->pieces, 10);
	assert_int_equal(image->bytes, 10 * SCENE_PIECE);
	assert_int_equal(image->present[0], 0x3ff);
	/* nothing more is written into it, though there were room for it */
	scene_frame(scene, 0, 1, 10);
	assert_int_equal(scene_counts(scene).late, 1);
	/* fewer than came: it is wrong */
	for (uint32_t piece = 0; piece < 10; piece++)
		scene_frame(scene, 0, 2, piece == 4 ? 12 : piece);
	scene_trailer(scene, 2, 10);
	scene_later(scene, 11);
	image = scene_take(scene);
	assert_int_equal(image->end, GDRCAP_IMAGE_TIMEOUT);
	assert_int_equal(image->pieces, 13);
	assert_int_equal(image->received, 10);
	/* nobody said */
	scene_frame(scene, 0, 3, 0);
	scene_later(scene, 101);
	image = scene_take(scene);
	assert_int_equal(image->pieces, 0);
	assert_int_equal(image->end, GDRCAP_IMAGE_TIMEOUT);
	assert_int_equal(scene_counts(scene).pieces_expected, 23);
	assert_int_equal(scene_counts(scene).pieces_lost, 3);
	scene_end(scene);
}

/* ---- random streams ---- */

#define STREAMS 3u
#define IMAGES 60u /* of a stream */
#define FRAMES (IMAGES * SCENE_PIECES)

static uint32_t dice(uint64_t *seed, uint32_t sides)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33) % sides;
}

struct truth {
	uint32_t order[STREAMS][FRAMES]; /* in which the frames come */
	uint64_t last[STREAMS];
	uint64_t back; /* times that a number was not more than the one before */
	bool has_last[STREAMS];
	uint64_t handed, complete;
	const struct gdrcap_image *held[SCENE_RING];
	uint32_t holding;
};

static void truth_take(struct truth *truth, struct scene *scene, uint64_t *seed)
{
	const struct gdrcap_image *image = scene_take(scene);
	const struct scene_entry *entry;

	if (image) {
		uint32_t there = 0;

		entry = &scene->entry[(size_t)(image->data - scene->data) / scene->view.stride];
		/* what was placed, and no more */
		assert_memory_equal(image->present, entry->present, sizeof(entry->present));
		for (uint32_t w = 0; w < SCENE_WORDS; w++)
			there += (uint32_t)__builtin_popcount(image->present[w]);
		assert_int_equal(image->received, there);
		assert_int_equal(image->end == GDRCAP_IMAGE_COMPLETE, there == SCENE_PIECES);
		assert_int_equal(image->number, entry->number);
		assert_int_equal(image->seq, truth->handed);
		truth->back += truth->has_last[image->stream] &&
			       image->number <= truth->last[image->stream];
		truth->last[image->stream] = image->number;
		truth->has_last[image->stream] = true;
		truth->handed++;
		truth->complete += there == SCENE_PIECES;
		truth->held[truth->holding++] = image;
	}
	if (truth->holding && dice(seed, 3)) {
		const uint32_t i = dice(seed, truth->holding);

		gdrcap_image_release(&scene->images, &truth->held[i], 1);
		truth->held[i] = truth->held[--truth->holding];
	}
}

/* The records of a queue are collected in order, those of two in any. */
static void queue_collect(struct scene *scene, uint32_t q, uint32_t count)
{
	for (; count && scene->waiting[q]; count--) {
		assembler_add(&scene->images.assembler, scene->now, &scene->queue[q][0]);
		memmove(&scene->queue[q][0], &scene->queue[q][1],
			--scene->waiting[q] * sizeof(scene->queue[q][0]));
	}
}

static void truth_step(struct truth *truth, struct scene *scene, uint64_t *seed)
{
	const uint32_t q = dice(seed, SCENE_QUEUES);

	queue_collect(scene, q, dice(seed, 8));
	scene->now += dice(seed, 4);
	if (!dice(seed, 3))
		scene_closings(scene);
	if (!dice(seed, 400))
		scene->now += 150;
	if (!dice(seed, 4))
		(void)assembler_round(&scene->images.assembler, scene->now, scene->now);
	if (!dice(seed, 5))
		truth_take(truth, scene, seed);
	(void)scene_counts(scene);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Frames and images overtake each other, by `reach` frames. */
static void orders_make(struct truth *truth, uint32_t reach, uint64_t *seed)
{
	uint64_t key[FRAMES];

	for (uint32_t s = 0; s < STREAMS; s++) {
		for (uint32_t i = 0; i < FRAMES; i++)
			key[i] = (uint64_t)(i + dice(seed, reach)) << 32 | i;
		qsort(key, FRAMES, sizeof(key[0]), compare);
		for (uint32_t i = 0; i < FRAMES; i++)
			truth->order[s][i] = (uint32_t)key[i];
	}
}

static uint64_t play(uint64_t seed)
{
	struct scene *scene = scene_begin(4 + dice(&seed, SCENE_RING - 4), 1 + dice(&seed, 4));
	const uint32_t loss = dice(&seed, 30), twice = dice(&seed, 10), reach = 1 + dice(&seed, 90);
	static struct truth truth;
	uint64_t placed = 0, silences = 0;

	memset(&truth, 0, sizeof(truth));
	orders_make(&truth, reach, &seed);
	scene->slow = dice(&seed, 2);
	for (uint32_t i = 0; i < FRAMES; i++)
		for (uint32_t s = 0; s < STREAMS; s++) {
			const uint32_t at = truth.order[s][i];

			for (uint32_t copy = 0; copy <= (dice(&seed, 100) < twice); copy++) {
				const uint32_t q = dice(&seed, SCENE_QUEUES);

				if (dice(&seed, 1000) < loss)
					continue;
				while (scene->waiting[q] == SCENE_WAITING)
					queue_collect(scene, q, 1);
				scene->queue[q][scene->waiting[q]++] =
					scene_place(scene, s, 100 * s + at / SCENE_PIECES,
						    at % SCENE_PIECES, 0);
			}
			truth_step(&truth, scene, &seed);
		}
	for (uint32_t q = 0; q < SCENE_QUEUES; q++)
		queue_collect(scene, q, SCENE_WAITING);
	while (!assembler_finish(&scene->images.assembler, scene->now))
		scene_closings(scene);
	assembler_end(&scene->images.assembler, scene->now);
	for (uint32_t i = 0; i < 2 * SCENE_RING; i++)
		truth_take(&truth, scene, &seed);
	assert_int_equal(truth.handed,
			 scene_counts(scene).complete + scene_counts(scene).incomplete);
	assert_int_equal(truth.complete, scene_counts(scene).complete);
	assert_int_equal(scene_counts(scene).open, 0);
	for (uint32_t s = 0; s < STREAMS; s++)
		silences += scene->images.assembler.stream[s].silences;
	/* in order, but for what comes after a silence */
	assert_true(truth.back <= silences);
	assert_int_equal(scene_counts(scene).restarts, truth.back);
	for (uint32_t o = 0; o < PLACE_OUTCOMES; o++)
		placed += scene->frames[o];
	assert_int_equal(scene_counts(scene).frames, placed);
	assert_int_equal(scene_counts(scene).placed, scene->frames[PLACE_PLACED]);
	assert_int_equal(scene_counts(scene).no_room, scene->frames[PLACE_NO_ROOM]);
	scene_end(scene);
	return truth.complete;
}

static void random_streams(void **state)
{
	uint64_t complete = 0;

	for (uint64_t seed = 1; seed <= 200; seed++)
		complete += play(seed);
	/* of 36,000 */
	assert_true(complete > 5000 && complete < 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(complete_at_once_and_in_order),
		cmocka_unit_test(a_newer_one_closes_the_oldest),
		cmocka_unit_test(times_close),
		cmocka_unit_test(times_close_behind_an_older_one),
		cmocka_unit_test(times_close_what_begins_before_a_complete_one),
		cmocka_unit_test(the_stop_closes_all),
		cmocka_unit_test(what_is_not_closed_is_dropped),
		cmocka_unit_test(numbers),
		cmocka_unit_test(late_by_a_hair),
		cmocka_unit_test(no_buffer_no_image),
		cmocka_unit_test(the_latest_or_none),
		cmocka_unit_test(the_sender_says),
		cmocka_unit_test(random_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
