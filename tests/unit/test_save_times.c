/* SPDX-License-Identifier: BSD-3-Clause */
/* The times that frames have in the files: those of the clock of their queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "port/rx_clock.h"
#include "save_play.h"

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#define TIMES 10u

/* The ticks of a queue's frames, and the times that they must have in the file; 0: about now. */
static void times_are(const uint64_t ticks[QUEUES][TIMES], const uint64_t ns[QUEUES][TIMES],
		      const struct rx_clock *const clocks[QUEUES])
{
	const uint64_t start = now_ns(), slack = 1000000000;
	struct reader reader;
	struct play play;

	play_prepare(&play, 1, 64);
	play.config.clocks = clocks;
	play.damage = 0;
	play_start(&play);
	for (uint32_t q = 0; q < QUEUES; q++) {
		struct ring_producer *ring = play.lane[q].ring;
		const uint32_t at = ring->head;

		while (play.lane[q].frames < TIMES)
			lane_receive(&play, q, 1);
		for (uint32_t i = 0; ticks[q][0] && i < TIMES; i++)
			ring->tsc[(at + i) & ring->desc_mask] = ticks[q][i];
		lane_publish(&play, q);
		lane_account(&play, q, 1);
	}
	save_end(play.save);
	assert_int_equal(save_finish(play.save, NULL), 0);
	reader_open(&reader, play.paths[0]);
	assert_int_equal(reader.frames, QUEUES * TIMES);
	for (size_t i = 0; i < reader.frames; i++) {
		const struct reader_frame *frame = &reader.frame[i];
		const uint64_t want = ns[frame->interface][frame_be32(frame->bytes + 4)];

		if (want)
			assert_true(frame->ns == want);
		else
			assert_in_range(frame->ns, start - slack, now_ns() + slack);
	}
	for (uint32_t q = 0; q < QUEUES; q++) {
		assert_in_range(reader.interface[q].start_ns, start - slack, now_ns() + slack);
		assert_in_range(reader.interface[q].end_ns, reader.interface[q].start_ns,
				now_ns() + slack);
	}
	reader_close(&reader);
	play_end(&play);
}

/* Each queue's frames have the time of its clock: the CPU's, a card's of real time, another's. */
static void times_of_arrival(void **state)
{
	const uint64_t day = 1700000000000000123, hour = 3600000000000;
	const struct rx_clock real = { .port = 5, .real_time = true };
	const struct rx_clock ticking = {
		.port = 6,
		.ticks = 1000,
		.ns = day,
		.slope = (int64_t)2 << 48,
		.renewed = rte_rdtsc(),
	};
	const struct rx_clock *clocks[QUEUES] = { NULL, &real, &ticking };
	uint64_t ticks[QUEUES][TIMES] = { 0 }, ns[QUEUES][TIMES] = { 0 };

	for (uint32_t i = 0; i < TIMES; i++) {
		ticks[1][i] = ns[1][i] = day + i * 1000;
		ticks[2][i] = 500 + i * 1000;
		ns[2][i] = day + 2 * ticks[2][i] - 2000;
	}
	/* The card gave none; the next one has its own again. */
	ticks[1][3] = ns[1][3] = ticks[2][5] = ns[2][5] = 0;
	/* Of one that is a little back, the last time that a card gave counts. */
	ticks[1][1] = ns[1][1] = 0;
	ticks[1][2] -= 2500;
	ns[1][2] = ns[1][0];
	/* A little back, as cards do; then an hour, since somebody set the clock. */
	ticks[1][5] -= 1500;
	ns[1][5] = ns[1][4];
	for (uint32_t i = 7; i < TIMES; i++)
		ticks[1][i] = ns[1][i] = ns[1][i] - hour;
	times_are(ticks, ns, clocks);
	/* Two queues of one port. */
	clocks[0] = &real;
	for (uint32_t i = 0; i < TIMES; i++)
		ticks[0][i] = ns[0][i] = day + hour + i;
	times_are(ticks, ns, clocks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_of_arrival),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
