/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that header-data split left in two pieces are whole in the files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "save_play.h"

/* Frames of the split's length, and shorter, are among them; the damaged ones and those around them
 * too. */
static void frames_are_whole(void **state)
{
	static const uint32_t splits[] = { 32, 64, 100, 128 };

	for (uint32_t i = 0; i < 8; i++) {
		struct play play;

		play_prepare_split(&play, i, i & 1 ? 64 : 7, splits[i % 4]);
		if (i & 2)
			play.longest = 2 * splits[i % 4];
		play_start(&play);
		play_run(&play);
		assert_int_equal(play_finish(&play, 0), 0);
		play_end(&play);
	}
}

/* More than is kept of a frame; and a limit that the first piece alone is over. */
static void frames_are_cut(void **state)
{
	static const uint32_t most[] = { 1000, 65, 64, 40 };

	for (uint32_t i = 0; i < 4; i++) {
		struct play play;

		play_prepare_split(&play, 10 + i, 64, 64);
		play.config.frame_max = most[i];
		play_start(&play);
		play_run(&play);
		assert_int_equal(play_finish(&play, 0), 0);
		play_end(&play);
	}
}

/* Two copies a frame: more than one gather() may have. */
static void more_than_one_list(void **state)
{
	struct play play;

	play_prepare_split(&play, 20, 64, 32);
	play.config.patient = true;
	play.longest = 64;
	play_start(&play);
	gathers = 0;
	for (uint32_t q = 0; q < QUEUES; q++) {
		struct lane *lane = &play.lane[q];

		lane->limit = SLOTS;
		while (lane->frames < SLOTS) {
			lane_receive(&play, q, 64);
			lane_publish(&play, q);
		}
		while (lane->shown != lane->ring->burst)
			save_burst(play.save, q, lane->shown++);
	}
	assert_int_equal(gathers, 1);
	clock_gettime(CLOCK_REALTIME, &play.end);
	assert_int_equal(play_finish(&play, 0), 0);
	assert_int_equal(gathers, 2);
	play_end(&play);
}

static void hostile_descriptors(void **state)
{
	struct save_counts counts;
	struct ring_producer *ring;
	struct play play;

	play_prepare_split(&play, 30, 64, 64);
	play_start(&play);
	ring = play.lane[0].ring;
	lane_receive(&play, 0, 7);
	ring->head_desc[1].slot = SLOTS;
	ring->head_desc[2].slot = UINT32_MAX;
	ring->head_desc[3].len = 1000;
	ring->desc[4].slot = UINT32_MAX;
	ring->desc[5].offset |= FRAME_DESC_CUT;
	ring->desc[6] = (struct frame_desc){ 0 };
	ring->head_desc[6] = (struct frame_desc){ 0 };
	lane_publish(&play, 0);
	lane_account(&play, 0, 1);
	save_end(play.save);
	assert_int_equal(save_finish(play.save, NULL), 0);
	save_counts(play.save, &counts);
	/* The first, and one of no bytes. */
	assert_true(counts.saved == 2 && counts.missed == 5);
	play_end(&play);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_whole),
		cmocka_unit_test(frames_are_cut),
		cmocka_unit_test(more_than_one_list),
		cmocka_unit_test(hostile_descriptors),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
