/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues of our own of which a work entry is several slots, where they are not as cyclic ones are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "capture/cq_front.h"
#include "own_rig.h"

#define SLOTS 64u
#define SMALL_SHIFT 8u
#define SKIP 77

/* Work entries of several strides are counted in 16 bits, too. */
static void entries_wrap(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];

	rig->strides = 8; /* the fewest that there are */
	own_rig_queues(rig, 1, 1024, SMALL_SHIFT);
	while (queue->next < 8 * (UINT16_MAX + 200)) {
		own_rig_send(rig, 512, 64, 100);
		own_receive(rig, queue, 512, rig->number - 512);
	}
	assert_int_equal(own_out_of_buffer(queue), 0);
}

/* A work entry goes back as a whole: before that, it has no room. */
static void room_of_strides(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];
	uint64_t first = rig->number;

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	own_rig_send(rig, SLOTS + 100, 64, 200);
	assert_int_equal(own_out_of_buffer(queue), 100);
	for (uint32_t i = 0; i < SLOTS; i++)
		assert_int_equal(own_frame_check(rig, queue, own_next(queue)), first + i);
	own_post(queue, OWN_STRIDES - 1);
	own_rig_send(rig, 5, 64, 200);
	assert_int_equal(own_out_of_buffer(queue), 105);
	own_post(queue, 1);
	first = rig->number;
	own_rig_send(rig, OWN_STRIDES + 3, 64, 200);
	assert_int_equal(own_out_of_buffer(queue), 108);
	for (uint32_t i = 0; i < OWN_STRIDES; i++)
		assert_int_equal(own_frame_check(rig, queue, own_next(queue)), first + i);
	assert_null(own_next(queue));
}

/* What the product's front takes the next completion for, which is there. */
static enum cq_kind kind_of_next(struct own_queue *queue)
{
	assert_non_null(own_next(queue));
	return cq_kind_at(&queue->rx.front, queue->index - 1, queue->next);
}

/* Of strides it takes the next slot, too, which is the card's still; and where there is none in its work entry,
 * that is filled. The front believes neither. */
static void frame_longer_than_a_stride(void **state)
{
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];

	own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
	own_rig_send(rig, 1, 256, 256);
	own_receive(rig, queue, 1, rig->number - 1);
	own_rig_send(rig, 1, 257, 257);
	assert_int_equal(kind_of_next(queue), CQ_LENGTH);
	queue->next += 2;
	own_rig_send(rig, OWN_STRIDES - 4, 64, 256);
	own_receive(rig, queue, OWN_STRIDES - 4, rig->number - (OWN_STRIDES - 4));
	own_rig_send(rig, 1, 257, 257);
	assert_int_equal(kind_of_next(queue), CQ_FILLER);
	queue->next++;
	assert_int_equal(kind_of_next(queue), CQ_LENGTH);
}

/* Planted: what a card says of strides that is not so. */
static void wrong_strides_show(void **state)
{
	static const struct {
		const char *knob;
		enum cq_kind kind;
		uint32_t places; /* that it takes, of 13 that are left */
	} rows[] = {
		{ "1.wrong_entry=1", CQ_ORDER, 1 },
		{ "1.wrong_stride=1", CQ_ORDER, 1 },
		{ "1.filler=1", CQ_FILLER, 13 },
	};
	struct own_rig *rig = *state;
	struct own_queue *queue = &rig->queue[0];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		own_rig_queues(rig, 1, SLOTS, SMALL_SHIFT);
		own_rig_send(rig, 3, 64, 256);
		own_receive(rig, queue, 3, rig->number - 3);
		own_rig_faults(rows[i].knob);
		own_rig_send(rig, 1, 64, 256);
		assert_int_equal(kind_of_next(queue), rows[i].kind);
		queue->next += rows[i].places;
		if (rows[i].kind == CQ_FILLER) /* the frame, in the next work entry */
			own_receive(rig, queue, 1, rig->number - 1);
		own_rig_send(rig, 5, 64, 256);
		own_receive(rig, queue, 5, rig->number - 5);
		own_rig_reset(state);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(entries_wrap, own_rig_reset),
		cmocka_unit_test_teardown(room_of_strides, own_rig_reset),
		cmocka_unit_test_teardown(frame_longer_than_a_stride, own_rig_reset),
		cmocka_unit_test_teardown(wrong_strides_show, own_rig_reset),
	};

	/* Where the record lies in a GPU. */
	const struct CMUnitTest cuda[] = {
		cmocka_unit_test_teardown(room_of_strides, own_rig_reset),
	};

	own_rig_init(argc, argv);
	own_rig_strides(OWN_STRIDES);
	if (argc > 1 && strcmp(argv[1], "cuda") == 0) {
		if (!own_rig_cuda()) {
			printf("no GPU\n");
			return SKIP;
		}
		return cmocka_run_group_tests(cuda, own_rig_setup, own_rig_teardown);
	}
	return cmocka_run_group_tests(tests, own_rig_setup, own_rig_teardown);
}
