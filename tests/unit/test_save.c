/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames to files, against a model of which frames must be in them. The frames' memory cannot be
 * touched by the CPU at the addresses that the code under test sees, and slots are overwritten as
 * soon as they may go back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "save_play.h"

static void refused(struct play *play, int code, const char *text)
{
	struct gdrcap_error error;

	assert_int_equal(save_create(&play->save, &play->config, NULL, &error), code);
	assert_null(play->save);
	if (!strstr(error.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, error.text);
}

static void nothing_is_missed(void **state)
{
	static const uint32_t arounds[] = { 0, 1, 3, 20, 120 };
	static const uint32_t everies[] = { 1, 2, 7, 64, 1000 };
	static const uint32_t bursts[] = { 1, 13, 64 };

	for (uint32_t i = 0; i < 15; i++) {
		struct play play;

		play_prepare(&play, i, bursts[i % 3]);
		play.config.around = arounds[i % 5];
		play.config.every = everies[(i / 3) % 5];
		play.damage = i % 4 == 3 ? 900 : 40;
		if (i == 6)
			play.config.all = "";
		if (i == 8) {
			play.config.damaged = "";
			play.config.around = 0;
		}
		play_start(&play);
		play_run(&play);
		assert_int_equal(play_finish(&play, 0), 0);
		play_end(&play);
	}
}

/* Every second frame is damaged; none is; all are. */
static void much_damage(void **state)
{
	static const uint32_t damages[] = { 2, 0, 1 };

	for (uint32_t i = 0; i < 3; i++) {
		struct play play;

		play_prepare(&play, 100 + i, 32);
		play.damage = damages[i];
		play_start(&play);
		play_run(&play);
		assert_int_equal(play_finish(&play, 0), 0);
		play_end(&play);
	}
}

/* Longer than what is kept of a frame. */
static void long_frames(void **state)
{
	struct play play;

	play_prepare(&play, 7, 64);
	play.longest = 9600;
	/* room for all of them, however slow the writer is */
	play.config.buffer_bytes = (size_t)128 << 20;
	play_start(&play);
	play_run(&play);
	assert_int_equal(play_finish(&play, 0), 0);
	play_end(&play);
}

/* It waits as well where all of a burst are damaged, and those before it are wanted; where a burst is
 * more than the buffer that was asked for, and where the device fails. */
static void a_file_waits_for_room(void **state)
{
	static const uint32_t damages[] = { 1, 30, 300 };

	for (uint32_t i = 0; i < 6; i++) {
		struct play play;

		play_prepare(&play, 250 + i, 64);
		play.config.buffer_bytes = 1;
		play.config.patient = true;
		play.config.around = 100;
		play.damage = damages[i % 3];
		for (uint32_t q = 0; q < QUEUES; q++)
			play.lane[q].limit = 1000;
		play.longest = 9212;
		gathers_left = i < 3 ? 0 : 20;
		play_start(&play);
		play_run(&play);
		assert_true((play_finish(&play, i < 3 ? 0 : -EIO) == 0) == (i < 3));
		play_end(&play);
	}
}

/* The buffer has room for some frames only: what is missed is counted, where it is missing. */
static void small_buffer(void **state)
{
	uint64_t missed = 0;

	for (uint32_t i = 0; i < 4; i++) {
		struct play play;

		/* Burst by burst, some fit and some do not: the circle ends anywhere. */
		play_prepare(&play, 200 + i, 64);
		play.config.buffer_bytes = i < 2 ? 1 : 100000;
		play.ahead = i < 2 ? 4 : 1;
		play.longest = 9212;
		play_start(&play);
		play_run(&play);
		missed += play_finish(&play, 0);
		play_end(&play);
	}
	assert_true(missed != 0);
}

/* A pipe whose reader goes away is an error and no signal. */
static void reader_leaves(void **state)
{
	struct save_counts counts;
	struct gdrcap_error error;
	struct play play;
	char path[160];
	int from;

	play_prepare(&play, 401, 64);
	snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	play.config.all = path;
	refused(&play, -ENXIO, "no process reads this pipe");
	from = open(path, O_RDONLY | O_NONBLOCK);
	assert_true(from >= 0);
	play_start(&play);
	close(from);
	play_run(&play);
	save_end(play.save);
	assert_int_equal(save_finish(play.save, &error), -EPIPE);
	assert_non_null(strstr(error.text, "keep its reader running"));
	save_counts(play.save, &counts);
	assert_true(counts.error == -EPIPE && counts.saved == 0);
	assert_true(counts.missed == QUEUES * 5000);
	assert_true(counts.damaged_saved != 0 && counts.damaged_missed == 0);
	unlink(path);
	play_end(&play);
}

/* More bursts wait than may: frames pass unsaved until the accountant has caught up. */
static void accountant_behind(void **state)
{
	uint64_t missed = 0;

	for (uint32_t i = 0; i < 4; i++) {
		struct play play;

		play_prepare(&play, 300 + i, 64);
		play.ahead = 30;
		play_start(&play);
		play_run(&play);
		missed += play_finish(&play, 0);
		play_end(&play);
	}
	assert_true(missed != 0);
}

/* To the frame: of 576 frames that wait, with 1024 slots, the first two bursts pass. */
static void half_of_the_slots(void **state)
{
	struct save_counts counts;
	struct play play;

	play_prepare(&play, 8, 64);
	play.config.damaged = "";
	play.config.around = 0;
	play_start(&play);
	for (uint32_t b = 0; b < 9; b++) {
		while (ring_pending(play.lane[0].ring) < 64)
			lane_receive(&play, 0, 64);
		lane_publish(&play, 0);
	}
	for (uint32_t b = 0; b < 9; b++) {
		lane_account(&play, 0, 1);
		save_counts(play.save, &counts);
		assert_true(counts.missed == (b == 0 ? 64 : 128));
	}
	clock_gettime(CLOCK_REALTIME, &play.end);
	for (uint32_t q = 0; q < QUEUES; q++)
		play.lane[q].limit = play.lane[q].frames;
	assert_int_equal(play_finish(&play, 0), 128);
	play_end(&play);
}

/* Half of the slots are never out because frames are wanted that may come. */
static void holding_has_a_limit(void **state)
{
	struct play play;
	struct lane *lane;

	play_prepare(&play, 5, 64);
	play.config.around = SAVE_AROUND_MAX;
	play.config.slots = 600;
	play.damage = 0;
	play_start(&play);
	lane = &play.lane[0];
	for (uint32_t i = 0; i < 400; i++) {
		lane_receive(&play, 0, 7);
		lane_publish(&play, 0);
		lane_account(&play, 0, 1);
		assert_true(lane->frames - lane->frames_back <= 600 / 4);
	}
	/* A damaged one then has fewer before it: the others are missed, not written from slots
	 * that are somebody else's by now. */
	play.damage = 1;
	lane->limit = lane->frames + 1;
	lane_receive(&play, 0, 1);
	lane_publish(&play, 0);
	lane_account(&play, 0, 1);
	clock_gettime(CLOCK_REALTIME, &play.end);
	assert_in_range(play_finish(&play, 0), SAVE_AROUND_MAX - 150, SAVE_AROUND_MAX);
	play_end(&play);
	/* With slots enough it is what `around` says, by whole bursts. */
	play_prepare(&play, 5, 64);
	play.config.around = 100;
	play.damage = 0;
	play_start(&play);
	lane = &play.lane[0];
	for (uint32_t i = 0; i < 400; i++) {
		lane_receive(&play, 0, 7);
		lane_publish(&play, 0);
		lane_account(&play, 0, 1);
		if (lane->frames > 200)
			assert_in_range(lane->frames - lane->frames_back, 100, 106);
	}
	/* Nothing will come: nothing is kept, although nobody said that it is over. */
	atomic_store(&lane->ring->ended, 1);
	lane_account(&play, 0, 1);
	assert_int_equal(lane->free_count, SLOTS);
	play_end(&play);
}

/* The device fails: what came before is in the files, the rest is counted, the capture goes on. */
static void device_fails(void **state)
{
	struct gdrcap_error error;
	struct play play;

	for (unsigned int left = 1; left < 80; left += 20) {
		play_prepare(&play, left, 64);
		gathers_left = left;
		play_start(&play);
		play_run(&play);
		assert_true(play_finish(&play, -EIO) != 0);
		assert_int_equal(save_finish(play.save, &error), -EIO);
		assert_non_null(strstr(error.text, "the device fell off the bus"));
		play_end(&play);
	}
}

/* The disk is full in the middle: the files end with a whole frame. */
static void disk_full(void **state)
{
	struct rlimit unlimited, limited;
	struct gdrcap_error error;
	struct play play;

	getrlimit(RLIMIT_FSIZE, &unlimited);
	for (rlim_t limit = 20000; limit < 800000; limit *= 3) {
		play_prepare(&play, limit, 64);
		play.damage = 2;
		play_start(&play);
		limited = unlimited;
		limited.rlim_cur = limit;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
		play_run(&play);
		assert_true(play_finish(&play, -EFBIG) != 0);
		setrlimit(RLIMIT_FSIZE, &unlimited);
		assert_int_equal(save_finish(play.save, &error), -EFBIG);
		assert_non_null(strstr(error.text, "it holds the first"));
		play_end(&play);
	}
}

static void what_is_refused(void **state)
{
	char other[160];
	struct play play;
	struct save_config good;
	struct stat status;

	play_prepare(&play, 1, 64);
	good = play.config;
	play.config.damaged = play.config.all;
	refused(&play, -EBUSY, "another option, session or run of gdrcap uses it");
	/* The same file by another name. */
	snprintf(other, sizeof(other), "%s/link", folder);
	assert_int_equal(link(play.paths[0], other), 0);
	play.config.damaged = other;
	refused(&play, -EBUSY, "another option, session or run of gdrcap uses it");
	unlink(other);
	assert_int_equal(symlink(play.paths[0], other), 0);
	refused(&play, -ELOOP, "it is a symbolic link; name the file that it leads to");
	unlink(other);
	play.config = good;
	play.config.all = folder;
	refused(&play, -EISDIR, "save: cannot write");
	play.config = good;
	play.config.damaged = "/nowhere/at/all";
	refused(&play, -ENOENT, "save_damaged: cannot write /nowhere/at/all: No such file");
	play.config = good;
	play.config.all = play.config.damaged = "";
	refused(&play, -EINVAL, "nothing is to be saved");
	play.config = good;
	play.config.around = SAVE_AROUND_MAX + 1;
	refused(&play, -EINVAL, "save_around");
	play.config = good;
	if (stat("/dev/full", &status) == 0) {
		play.config.all = "/dev/full";
		refused(&play, -ENOSPC, "free space");
	}
	free(play.lane[1].ring->tsc);
	play.lane[1].ring->tsc = NULL;
	play.config = good;
	refused(&play, -EINVAL, "receive times");
	play_end(&play);
}

/* A descriptor that reaches past the memory is not followed; of a frame that did not fit its slot
 * nobody knows the length. */
static void hostile_descriptor(void **state)
{
	struct save_counts counts;
	struct play play;

	play_prepare(&play, 1, 64);
	play.damage = 1;
	play_start(&play);
	lane_receive(&play, 0, 4);
	play.lane[0].ring->desc[1].slot = SLOTS;
	play.lane[0].ring->desc[2].slot = UINT32_MAX;
	play.lane[0].ring->desc[3].offset |= FRAME_DESC_CUT;
	lane_publish(&play, 0);
	lane_account(&play, 0, 1);
	save_end(play.save);
	assert_int_equal(save_finish(play.save, NULL), 0);
	save_counts(play.save, &counts);
	assert_true(counts.saved == 1 && counts.missed == 3);
	assert_true(counts.damaged_saved == 1 && counts.damaged_missed == 3);
	play_end(&play);
}

/* Whatever the records say, each frame of the burst is looked at once. */
static void hostile_runs(void **state)
{
	struct save_counts counts;
	struct play play;
	uint64_t random = 1;

	play_prepare(&play, 1, 64);
	play.config.around = 2;
	play_start(&play);
	while (play.lane[0].frames < play.lane[0].limit) {
		struct ring_producer *ring = play.lane[0].ring;
		const uint64_t b = ring->burst;
		uint8_t *record;

		lane_receive(&play, 0, 1 + (uint32_t)random_below(&random, 64));
		lane_publish(&play, 0);
		ring->result[b & ring->burst_mask].done =
			burst_word(b, ring->burst_bits, (uint32_t)random_below(&random, 300), 0);
		for (uint32_t r = 0; r < 70; r++) {
			record = (uint8_t *)&ring->view
					 .records[(ring->head + r - 64) & ring->desc_mask];
			for (uint32_t i = 0; i < sizeof(struct frame_record); i++)
				record[i] = (uint8_t)random_next(&random);
			((struct frame_record *)(void *)record)->verdict %= FRAME_VERDICTS;
			if (r & 1)
				((struct frame_record *)(void *)record)->first %= 64;
		}
		lane_account(&play, 0, 1);
	}
	save_end(play.save);
	assert_int_equal(save_finish(play.save, NULL), 0);
	save_counts(play.save, &counts);
	assert_true(counts.saved == play.lane[0].frames && counts.missed == 0);
	assert_true(counts.damaged_saved != 0 && counts.damaged_missed == 0);
	assert_true(counts.damaged_saved <= counts.saved);
	play_end(&play);
}

/* Nothing came at all: files that can be read. */
static void no_frames(void **state)
{
	struct play play;

	play_prepare(&play, 1, 64);
	for (uint32_t q = 0; q < QUEUES; q++)
		play.lane[q].limit = 0;
	play_start(&play);
	clock_gettime(CLOCK_REALTIME, &play.end);
	assert_int_equal(play_finish(&play, 0), 0);
	play_end(&play);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_missed),	 cmocka_unit_test(much_damage),
		cmocka_unit_test(long_frames),		 cmocka_unit_test(small_buffer),

		cmocka_unit_test(reader_leaves),	 cmocka_unit_test(accountant_behind),
		cmocka_unit_test(half_of_the_slots),	 cmocka_unit_test(holding_has_a_limit),
		cmocka_unit_test(device_fails),		 cmocka_unit_test(disk_full),
		cmocka_unit_test(what_is_refused),	 cmocka_unit_test(hostile_descriptor),
		cmocka_unit_test(hostile_runs),		 cmocka_unit_test(no_frames),

		cmocka_unit_test(a_file_waits_for_room),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
