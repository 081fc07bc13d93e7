/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that arrive from a file, and two models of what became of them. Where contents cannot be
 * taken for one another within reach, the model knows each frame's true place. Else it tries every
 * place of the file, from the expected one outwards, frame by frame, and keeps frames that are in
 * doubt. Included once, after cmocka.h.
 */
#ifndef GDRCAP_TEST_EXPECT_MODEL_H
#define GDRCAP_TEST_EXPECT_MODEL_H

#include "kernels/frame_records.h"
#include "number_set.h"
#include "verdict/verdict.h"

#define QUEUES 2
#define FRAMES_MAX 5000u

#define EARLY_MAX 1000u

/* A frame that came before its place. */
struct before {
	bool waits;
	uint64_t place;
	uint8_t verdict;
	uint32_t queue, class;
};

struct scene {
	struct store_frame frames[FRAMES_MAX];
	struct frame_store_view store;
	struct frame_layout layout;
	struct verdict verdict;
	uint64_t random;
	bool search; /* the model searches places instead of knowing them */

	struct number_set seen;
	uint64_t next, next_here[QUEUES]; /* newest + 1 */
	uint64_t received, valid, damaged, duplicate, reordered, unknown;
	struct before doubt[QUEUES], early[EARLY_MAX];

	struct frame_record record;
	struct frame_result last;
	uint64_t run_place;
	uint32_t queue;
};

/* contents: of how many kinds the file's frames are, in turn; 0: at random. */
static void scene_begin(struct scene *scene, uint32_t frames, uint32_t contents, bool in_turn,
			uint64_t seed)
{
	uint32_t first[FRAMES_MAX];

	memset(scene, 0, sizeof(*scene));
	memset(first, 0xff, sizeof(first));
	scene->random = seed;
	scene->layout.format = FRAME_ETHERNET;
	for (uint32_t i = 0; i < frames; i++) {
		const uint32_t content =
			in_turn ? i % contents : (uint32_t)random_below(&scene->random, contents);

		if (first[content] == UINT32_MAX)
			first[content] = i;
		scene->frames[i].class_first = first[content];
	}
	scene->store.frames = scene->frames;
	scene->store.count = frames;
	assert_int_equal(verdict_create(&scene->verdict, QUEUES,
					&(struct verdict_config){ .layout = &scene->layout,
								  .expect = &scene->store }),
			 0);
}

static void scene_end(struct scene *scene)
{
	verdict_destroy(&scene->verdict);
	number_set_free(&scene->seen);
}

static void model_add(struct scene *scene, uint32_t queue, uint64_t place, uint8_t verdict)
{
	const bool late = place < scene->next_here[queue];

	scene->received++;
	if (!late)
		scene->next_here[queue] = place + 1;
	if (place >= scene->next)
		scene->next = place + 1;
	if (!number_add(&scene->seen, place)) {
		scene->duplicate++;
		return;
	}
	scene->reordered += late;
	if (verdict == FRAME_VALID)
		scene->valid++;
	else
		scene->damaged++;
}

static uint32_t agreeing(const struct scene *scene, uint64_t place, const uint32_t *class,
			 uint32_t count)
{
	uint32_t n = 0;

	while (n < count && scene->frames[(place + n) % scene->store.count].class_first == class[n])
		n++;
	return n;
}

/* Tries every place within a loop either way; returns how many frames it finds together. */
static uint32_t model_fit(const struct scene *scene, uint64_t expected, const uint32_t *class,
			  uint32_t left, uint64_t *place)
{
	uint32_t most = 0;

	for (uint32_t far = 0; far <= scene->store.count && most < left; far++) {
		uint32_t n =
			far < scene->store.count ? agreeing(scene, expected + far, class, left) : 0;

		if (n > most) {
			most = n;
			*place = expected + far;
		}
		n = far && far <= expected && most < left
			    ? agreeing(scene, expected - far, class, left)
			    : 0;
		if (n > most) {
			most = n;
			*place = expected - far;
		}
	}
	assert_true(most);
	return most;
}

static void model_believe(struct scene *scene, struct before *frame, bool early)
{
	frame->waits = false;
	if (early && scene->next_here[frame->queue] <= frame->place)
		scene->next_here[frame->queue] = frame->place + 1;
	model_add(scene, frame->queue, frame->place, frame->verdict);
}

static void model_reached(struct scene *scene, bool end)
{
	for (bool again = true; again;) {
		again = false;
		for (uint32_t i = 0; i < QUEUES + EARLY_MAX; i++) {
			const bool early = i >= QUEUES;
			struct before *frame = early ? &scene->early[i - QUEUES] : &scene->doubt[i];

			if (frame->waits &&
			    (frame->place < scene->next ||
			     (frame->place == scene->next &&
			      (!early || (end && frame->place % scene->store.count))))) {
				model_believe(scene, frame, early);
				again = true;
			}
		}
	}
}

static void model_early(struct scene *scene)
{
	struct before *doubt = &scene->doubt[scene->queue], *slot = NULL;

	doubt->waits = false;
	for (uint32_t i = 0; i < EARLY_MAX; i++) {
		if (scene->early[i].waits && scene->early[i].place == doubt->place) {
			scene->received++;
			scene->duplicate++;
			return;
		}
		if (!scene->early[i].waits && !slot)
			slot = &scene->early[i];
	}
	assert_non_null(slot);
	*slot = *doubt;
	slot->waits = true;
}

static uint64_t far_from(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* True: the record is a copy of the frame in doubt. */
static bool model_doubt(struct scene *scene, const uint32_t *class)
{
	struct before *doubt = &scene->doubt[scene->queue];
	const uint32_t count = scene->record.count;
	uint64_t old, new;
	uint32_t old_fits, new_fits;

	if (!doubt->waits)
		return false;
	old_fits = model_fit(scene, scene->next, class, count, &old);
	new_fits = model_fit(scene, doubt->place + 1, class, count, &new);
	if (new_fits < old_fits ||
	    (new_fits == old_fits &&
	     (far_from(new, doubt->place + 1) > far_from(old, scene->next) ||
	      (far_from(new, doubt->place + 1) == far_from(old, scene->next) &&
	       (old != scene->next || doubt->place + 1 - old >= scene->store.count))))) {
		if (old == scene->next)
			model_early(scene);
		return false;
	}
	if (count == 1 && new == doubt->place) {
		scene->received++;
		scene->duplicate++;
		return true;
	}
	model_believe(scene, doubt, false);
	return false;
}

static void model_search(struct scene *scene)
{
	const struct frame_record *record = &scene->record;
	uint32_t class[256], left = record->count, *at = class;

	class[0] = (uint32_t)record->sequence;
	for (uint32_t i = 1; i < left; i++)
		class[i] = scene->frames[(class[i - 1] + 1) % scene->store.count].class_first;
	if (model_doubt(scene, class))
		return;
	if (scene->next == 0 && scene->store.count > 1 && left > 1) {
		uint64_t place = 0;

		if (model_fit(scene, 0, class, left, &place) > 1 &&
		    place == scene->store.count - 1) {
			scene->doubt[scene->queue] = (struct before){
				.waits = true,
				.place = place,
				.verdict = record->verdict,
				.queue = scene->queue,
				.class = class[0],
			};
			model_early(scene);
			left--;
			at++;
		}
	}
	while (left) {
		uint64_t place = 0;
		const uint32_t n = model_fit(scene, scene->next, at, left, &place);

		if (record->count == 1 && place > scene->next) {
			if (scene->doubt[scene->queue].waits)
				model_early(scene);
			scene->doubt[scene->queue] = (struct before){
				.waits = true,
				.place = place,
				.verdict = record->verdict,
				.queue = scene->queue,
				.class = class[0],
			};
			break;
		}
		for (uint32_t i = 0; i < n; i++)
			model_add(scene, scene->queue, place + i, record->verdict);
		left -= n;
		at += n;
	}
	model_reached(scene, false);
}

/* Behind the newest: late, or a second copy. False: nothing is behind. */
static bool model_behind(struct scene *scene, struct before *frame)
{
	for (uint64_t place = scene->next; place-- > 0;)
		if (agreeing(scene, place, &frame->class, 1)) {
			frame->waits = false;
			model_add(scene, frame->queue, place, frame->verdict);
			return true;
		}
	return false;
}

static void model_finish(struct scene *scene)
{
	for (;;) {
		struct before *first = NULL;

		for (uint32_t q = 0; q < QUEUES; q++)
			if (scene->doubt[q].waits &&
			    (!first || scene->doubt[q].place < first->place))
				first = &scene->doubt[q];
		if (!first)
			break;
		if (first->place / scene->store.count ==
			    (scene->next ? scene->next - 1 : 0) / scene->store.count ||
		    !model_behind(scene, first))
			model_believe(scene, first, false);
		model_reached(scene, true);
	}
	model_reached(scene, true);
	for (uint32_t i = 0; i < EARLY_MAX; i++)
		if (scene->early[i].waits)
			model_behind(scene, &scene->early[i]);
}

static void run_flush(struct scene *scene)
{
	if (!scene->record.count)
		return;
	if (scene->search)
		model_search(scene);
	else
		for (uint32_t i = 0; i < scene->record.count; i++)
			model_add(scene, scene->queue, scene->run_place + i, scene->record.verdict);
	verdict_add(&scene->verdict, scene->queue, &scene->record);
	scene->record.count = 0;
}

/* Frame `place` % count of the file arrives. */
static void arrive(struct scene *scene, uint64_t place, uint8_t verdict)
{
	const struct frame_result frame = {
		.sequence = scene->frames[place % scene->store.count].class_first,
		.header_ok = 1,
		.verdict = verdict,
		.payload_bytes = 100,
		.wrong_bits = verdict == FRAME_VALID ? 0 : 3,
	};

	if (scene->record.count && scene->record.count < 256 &&
	    record_joins(&scene->layout, &scene->store, &scene->last, &frame)) {
		scene->record.count++;
		scene->record.bytes += 100;
		scene->record.frame_bytes += 100;
	} else {
		run_flush(scene);
		record_begin(&scene->record, &frame, 0, 100);
		scene->run_place = place;
	}
	scene->last = frame;
}

static void unknown(struct scene *scene)
{
	run_flush(scene);
	verdict_add(&scene->verdict, scene->queue,
		    &(struct frame_record){
			    .verdict = FRAME_DAMAGED_HEADER, .count = 1, .frame_bytes = 100 });
	scene->received++;
	scene->unknown++;
}

static void check(struct scene *scene)
{
	uint64_t gaps, filled, valid, damaged, waiting;
	struct gdrcap_counts counts;

	run_flush(scene);
	valid = scene->valid;
	damaged = scene->damaged;
	for (uint32_t i = 0; i < QUEUES + EARLY_MAX; i++) {
		const struct before *frame =
			i < QUEUES ? &scene->doubt[i] : &scene->early[i - QUEUES];

		if (frame->waits)
			++*(frame->verdict == FRAME_VALID ? &valid : &damaged);
	}
	waiting = valid - scene->valid + damaged - scene->damaged;
	verdict_total(&scene->verdict, false, 0, &counts);
	gaps = scene->next - scene->seen.used;
	filled = scene->unknown < gaps ? scene->unknown : gaps;
	assert_int_equal(counts.received, scene->received + waiting);
	assert_int_equal(counts.valid, valid);
	assert_int_equal(counts.damaged, damaged + scene->unknown);
	assert_int_equal(counts.duplicate, scene->duplicate);
	assert_int_equal(counts.reordered, scene->reordered);
	assert_int_equal(counts.lost, gaps - filled);
	assert_int_equal(counts.sent, counts.valid + counts.damaged + counts.lost);
	assert_int_equal(counts.bytes, 100 * counts.received);
	assert_int_equal(counts.bits_checked, 800 * (counts.received - scene->unknown));
	verdict_stream_counts(&scene->verdict, &scene->verdict.streams[0], false, 0, &counts);
	assert_int_equal(counts.received, counts.valid + counts.damaged + counts.duplicate);
	assert_int_equal(counts.valid, valid);
	assert_int_equal(counts.sent, counts.valid + counts.damaged + counts.lost);
	assert_int_equal(counts.bytes, 100 * counts.received);
}

#endif
