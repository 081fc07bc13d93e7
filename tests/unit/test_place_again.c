/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers that come again: of images that are complete, that found no buffer, that were closed while their
 * packets came; and what is remembered of a stream. By the CPU backend. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>

#include "place_rig.h"

static struct place_rig rig;
static struct wire wire;

static const struct place_record *place_one(const struct image_layout *layout, uint64_t image,
					    uint32_t piece)
{
	wire_counter(&wire, layout, image * layout->pieces + piece, 0);
	rig_wire(&rig, &wire);
	rig_flush(&rig);
	return &rig.record[rig.records - 1];
}

static void close_whole(uint32_t slot, uint32_t use)
{
	const struct place_whole image = { slot, use };

	assert_int_equal(kernel_host_ops.place_close_whole(rig.device, &rig.view[0], &image, 1), 0);
}

/* What the assembler does when a stream is silent. */
static void forget(void)
{
	rig.view[0].shared->window[0].last = 0;
	rig.view[0].shared->window[0].forgotten++;
}

static void test_complete_images_are_closed(void **state)
{
	const struct image_layout layout = wire_layout_counter(2, 100);

	rig_create(&rig, &layout, 4, 1);
	for (uint64_t image = 1; image <= 2; image++)
		for (uint32_t piece = 0; piece < 2; piece++)
			place_one(&layout, image, piece);
	assert_int_equal(place_one(&layout, 1, 0)->outcome, PLACE_DUPLICATE);
	rig_window(&rig.view[0], 0, 2);
	close_whole(0, 2); /* another use */
	assert_int_equal(place_one(&layout, 1, 0)->outcome, PLACE_DUPLICATE);
	close_whole(0, 1);
	assert_int_equal(place_one(&layout, 1, 0)->outcome, PLACE_LATE);
	assert_int_equal(place_one(&layout, 2, 0)->outcome, PLACE_DUPLICATE);
	close_whole(1, 1);
	/* a sender that begins anew: at once, and from the number that was handed out */
	forget();
	assert_int_equal(place_one(&layout, 1, 0)->slot, 2);
	assert_int_equal(place_one(&layout, 2, 0)->slot, 3);
	assert_int_equal(place_one(&layout, 1, 1)->outcome, PLACE_PLACED);
	/* the buffer is another image's by now, which stays open */
	rig_give(&rig.view[0], 0);
	assert_int_equal(place_one(&layout, 3, 0)->use, 2);
	close_whole(0, 1);
	assert_int_equal(place_one(&layout, 3, 1)->outcome, PLACE_PLACED);
	rig_destroy(&rig);
}

/* Two workers further apart than `late`: the slower one's image takes the newest number back, and what was handed out
 * since is still late when a copy of it comes. */
static void test_late_behind_a_slow_worker(void **state)
{
	struct image_layout layout = wire_layout_counter(1, 100);

	layout.late = 4;
	rig_create(&rig, &layout, 4, 1);
	assert_int_equal(place_one(&layout, 300, 0)->outcome, PLACE_PLACED);
	assert_int_equal(place_one(&layout, 10, 0)->outcome, PLACE_PLACED);
	rig_window(&rig.view[0], 0, 300);
	close_whole(0, 1);
	assert_int_equal(place_one(&layout, 300, 0)->outcome, PLACE_LATE);
	rig_destroy(&rig);
}

/* Packets of several images in turn, while buffers come back: none begins in its middle. */
static void test_mixed_without_room(void **state)
{
	enum { MIXED = PLACE_NO_ROOMS - 1, PIECES = 6 };
	const struct image_layout layout = wire_layout_counter(PIECES, 100);

	rig_create(&rig, &layout, 2, 1);
	place_one(&layout, 1, 0);
	place_one(&layout, 2, 0);
	for (uint32_t piece = 0; piece < PIECES; piece++) {
		for (uint64_t image = 0; image < MIXED; image++) {
			const struct place_record *record = place_one(&layout, 10 + image, piece);

			assert_int_equal(record->outcome, PLACE_NO_ROOM);
			assert_int_equal(record->number, 10 + image);
		}
		if (piece == 1)
			for (uint32_t s = 0; s < 2; s++) {
				kernel_host_ops.place_close(rig.device, &rig.view[0], s, 1, 0, -1);
				rig_give(&rig.view[0], s);
			}
		/* the next one has its buffer, and those before it none still */
		if (piece == 2)
			assert_int_equal(place_one(&layout, 10 + MIXED, 0)->outcome, PLACE_PLACED);
		if (piece > 2)
			break;
	}
	/* but an older one that did not come before may have it */
	assert_int_equal(place_one(&layout, 9, 0)->outcome, PLACE_PLACED);
	rig_destroy(&rig);
}

/* Nor is a stream without a buffer for ever: after a silence, or so many images later. */
static void test_without_room_no_longer(void **state)
{
	const struct image_layout layout = wire_layout_counter(2, 100);

	rig_create(&rig, &layout, 2, 1);
	place_one(&layout, 1, 0);
	place_one(&layout, 2, 0);
	assert_int_equal(place_one(&layout, 3, 0)->outcome, PLACE_NO_ROOM);
	kernel_host_ops.place_close(rig.device, &rig.view[0], 0, 1, 0, -1);
	rig_give(&rig.view[0], 0);
	assert_int_equal(place_one(&layout, 3, 0)->outcome, PLACE_NO_ROOM);
	forget();
	assert_int_equal(place_one(&layout, 3, 0)->outcome, PLACE_PLACED);
	/* and what found none before the silence is not what finds none behind it */
	assert_int_equal(place_one(&layout, 4, 0)->outcome, PLACE_NO_ROOM);
	forget();
	assert_int_equal(place_one(&layout, 5, 0)->outcome, PLACE_NO_ROOM);
	kernel_host_ops.place_close(rig.device, &rig.view[0], 1, 1, 0, -1);
	rig_give(&rig.view[0], 1);
	assert_int_equal(place_one(&layout, 5, 1)->outcome, PLACE_NO_ROOM);
	assert_int_equal(place_one(&layout, 4, 1)->outcome, PLACE_PLACED);
	for (uint64_t image = 100; image < 100 + PLACE_NO_ROOMS - 2; image++)
		place_one(&layout, image, 0);
	rig_give(&rig.view[0], 0);
	assert_int_equal(place_one(&layout, 5, 1)->outcome, PLACE_NO_ROOM);
	assert_int_equal(place_one(&layout, 200, 0)->outcome, PLACE_PLACED);
	rig_give(&rig.view[0], 1);
	assert_int_equal(place_one(&layout, 5, 1)->outcome, PLACE_PLACED);
	rig_destroy(&rig);
}

/* Numbers wrap, more than half of them, while there is no buffer. */
static void test_numbers_go_on_without_room(void **state)
{
	struct image_layout layout = wire_layout_counter(1, 100);
	const struct place_record *record;

	layout.number = wire_field(0, 4);
	layout.number_modulus = 40;
	layout.place_terms = 0;
	layout.late = 4;
	rig_create(&rig, &layout, 2, 1);
	for (uint64_t number = 0; number < 95; number++) {
		record = place_one(&layout, (number % 40) << 32, 0);
		assert_int_equal(record->outcome, number < 2 ? PLACE_PLACED : PLACE_NO_ROOM);
		assert_int_equal(record->number, number < 2 ? 0 : number);
		if (number < 2)
			kernel_host_ops.place_close(rig.device, &rig.view[0], (uint32_t)number, 1,
						    0, -1);
	}
	rig_give(&rig.view[0], 0);
	assert_int_equal(place_one(&layout, 15ull << 32, 0)->slot, 0);
	assert_int_equal(rig.view[0].shared->head[0].number, 95);
	rig_destroy(&rig);
}

/* ---- closed while its packets come ---- */

struct closer {
	pthread_t thread;
	_Atomic bool stop;
	_Atomic uint32_t closed;
	_Atomic uint32_t
		may; /* close so many more until frames were placed: fewer than PLACE_TRIES */
};

/* Closes what is open, and gives its buffer back. */
static void *closer_main(void *argument)
{
	struct closer *closer = argument;
	const struct place_view *view = &rig.view[0];

	while (!closer->stop)
		for (uint32_t s = 0; s < view->ring; s++) {
			const uint32_t use =
				place_word_use(place_load64(&view->table->slot[s].word));

			if (!use || !closer->may) {
				sched_yield();
				continue;
			}
			closer->may--;
			kernel_host_ops.place_close(rig.device, view, s, use, 0, -1);
			rig_give(view, s);
			closer->closed++;
		}
	return NULL;
}

/*
 * ENTER fails where an image is closed after it was found. It is looked for again, and begins again, since
 * nothing says that it is late.
 */
static void test_closed_while_they_come(void **state)
{
	const struct image_layout layout = wire_layout_counter(8, 100);
	struct closer closer = { 0 };
	uint64_t sum = 0, frames = 0;

	rig_create(&rig, &layout, 8, 1);
	assert_int_equal(pthread_create(&closer.thread, NULL, closer_main, &closer), 0);
	for (uint32_t n = 0; n < 100000 || closer.closed < 1000; n++, frames++) {
		closer.may = PLACE_TRIES / 2;
		/* two images in turn: each frame finds, and enters */
		wire_counter(&wire, &layout, n % 2 * 8 + n / 2 % 8, 0);
		rig_wire(&rig, &wire);
		if (rig.records < RIG_RECORDS / 2)
			continue;
		sum += rig_frames(&rig, PLACE_PLACED) + rig_frames(&rig, PLACE_DUPLICATE);
		assert_int_equal(rig_frames(&rig, PLACE_LATE), 0);
		rig.records = 0;
	}
	rig_flush(&rig);
	closer.stop = true;
	pthread_join(closer.thread, NULL);
	sum += rig_frames(&rig, PLACE_PLACED) + rig_frames(&rig, PLACE_DUPLICATE);
	assert_int_equal(sum, frames);
	assert_int_equal(rig_frames(&rig, PLACE_LATE), 0);
	rig_destroy(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete_images_are_closed),
		cmocka_unit_test(test_late_behind_a_slow_worker),
		cmocka_unit_test(test_mixed_without_room),
		cmocka_unit_test(test_without_room_no_longer),
		cmocka_unit_test(test_numbers_go_on_without_room),
		cmocka_unit_test(test_closed_while_they_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
