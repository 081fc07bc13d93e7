/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for places of images that another sender, or the same one again, has filled: through real burst rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place_rig.h"

#define MAC_AT 6u /* in a frame of wire_plain's */
#define IP_AT 26u
#define PORT_AT 34u

static struct place_rig rig;
static struct wire wire;

/* Piece `piece` of image `image`, from sender `sender`. */
static void sent_by(const struct image_layout *layout, uint64_t image, uint32_t piece,
		    uint8_t sender)
{
	wire_counter(&wire, layout, image * layout->pieces + piece, 0);
	wire.at[MAC_AT + 5] = sender;
	rig_wire(&rig, &wire);
}

static const struct place_record *last_record(void)
{
	rig_flush(&rig);
	return &rig.record[rig.records - 1];
}

static void assert_piece(uint32_t slot, uint64_t image, uint32_t piece, bool there)
{
	const struct place_view *view = &rig.view[0];
	const uint32_t bytes = view->layout.piece;

	assert_int_equal(rig_present(view, view->present, slot, piece), there);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(rig_image(view, slot)[piece * bytes + i],
				 there ? wire_pixel(image, piece * bytes + i) : 0xa5);
}

/* A second sender fills no hole, describes no image, and is named beside the first. */
static void test_second_sender(void **state)
{
	const struct image_layout layout = wire_layout_counter(4, 100);
	const struct place_conflict *conflict;
	const struct place_record *record;

	rig_create(&rig, &layout, 4, 1);
	conflict = &rig.view[0].shared->conflict[0];
	sent_by(&layout, 7, 0, 1);
	sent_by(&layout, 7, 1, 2);
	sent_by(&layout, 7, 0, 2);
	record = last_record();
	assert_int_equal(rig.records, 2);
	assert_int_equal(record->outcome, PLACE_CONFLICT);
	assert_int_equal(record->count, 2);
	assert_int_equal(record->slot, 0);
	assert_int_equal(record->stream, 0);
	assert_int_equal(record->bytes + record->pieces + record->past + record->expected, 0);
	assert_int_equal(conflict->noted, 1);
	assert_int_equal(conflict->number, 7);
	assert_int_equal(conflict->first.mac[5], 1);
	assert_int_equal(conflict->second.mac[5], 2);
	assert_int_equal(conflict->second.port, 40000);
	assert_int_equal(conflict->second.ip_bytes, 4);
	/* the first one's copy is one, and its other pieces come; the next image is of who begins it */
	sent_by(&layout, 7, 0, 1);
	assert_int_equal(last_record()->outcome, PLACE_DUPLICATE);
	sent_by(&layout, 7, 1, 1);
	assert_int_equal(last_record()->outcome, PLACE_PLACED);
	sent_by(&layout, 8, 3, 2);
	assert_int_equal(last_record()->outcome, PLACE_PLACED);
	sent_by(&layout, 8, 2, 3);
	assert_int_equal(last_record()->outcome, PLACE_CONFLICT);
	assert_int_equal(conflict->second.mac[5], 2); /* the first conflict's */
	for (uint32_t p = 0; p < 4; p++) {
		assert_piece(0, 7, p, p < 2);
		assert_piece(1, 8, p, p == 3);
	}
	rig_destroy(&rig);
}

/* A declared second leg fills holes; a third sender does not. */
static void test_two_legs(void **state)
{
	struct image_layout layout = wire_layout_counter(4, 100);

	layout.legs = 2;
	rig_create(&rig, &layout, 4, 1);
	sent_by(&layout, 7, 0, 1);
	sent_by(&layout, 7, 1, 2);
	assert_int_equal(last_record()->outcome, PLACE_PLACED);
	sent_by(&layout, 7, 2, 3);
	assert_int_equal(last_record()->outcome, PLACE_CONFLICT);
	sent_by(&layout, 7, 2, 1);
	sent_by(&layout, 7, 3, 2);
	assert_int_equal(last_record()->outcome, PLACE_PLACED);
	sent_by(&layout, 7, 0, 2);
	assert_int_equal(last_record()->outcome, PLACE_DUPLICATE);
	for (uint32_t p = 0; p < 4; p++)
		assert_piece(0, 7, p, true);
	rig_destroy(&rig);
}

/* Senders whose addresses nobody compares. */
static void test_any_sender(void **state)
{
	struct image_layout layout = wire_layout_counter(4, 100);

	layout.legs = 0;
	rig_create(&rig, &layout, 4, 1);
	for (uint32_t p = 0; p < 4; p++)
		sent_by(&layout, 7, p, (uint8_t)p);
	rig_flush(&rig);
	assert_int_equal(rig_frames(&rig, PLACE_PLACED), 4);
	rig_destroy(&rig);
}

/* Each of 10^6 frames of senders that differ in one address, or a byte of it, by several workers. */
static void test_every_second_sender(void **state)
{
	enum { FRAMES = 1000000, PIECES = 64 };
	static const uint32_t at[] = { MAC_AT,	   MAC_AT + 1, MAC_AT + 2, MAC_AT + 3,
				       MAC_AT + 4, MAC_AT + 5, IP_AT,	   IP_AT + 1,
				       IP_AT + 2,  IP_AT + 3,  PORT_AT,	   PORT_AT + 1 };
	const struct image_layout layout = wire_layout_counter(PIECES, 64);
	uint64_t random = 3;

	rig_create(&rig, &layout, 4, 3);
	for (uint32_t p = 0; p < PIECES; p += 2) {
		wire_counter(&wire, &layout, 9 * PIECES + p, 0);
		rig_wire(&rig, &wire);
	}
	rig_flush(&rig);
	for (uint32_t i = 0; i < FRAMES; i++) {
		const uint64_t r = scene_next(&random);
		uint8_t *byte;

		wire_counter(&wire, &layout, 9 * PIECES + r % PIECES, 0);
		byte = &wire.at[at[(r >> 8) % (sizeof(at) / sizeof(at[0]))]];
		*byte = (uint8_t)(*byte ^ (1 + (r >> 16) % 255));
		rig_wire(&rig, &wire);
	}
	rig_flush(&rig);
	assert_int_equal(rig_frames(&rig, PLACE_PLACED), PIECES / 2);
	assert_int_equal(rig_frames(&rig, PLACE_CONFLICT), FRAMES);
	for (uint32_t p = 0; p < PIECES; p++)
		assert_piece(0, 9, p, p % 2 == 0);
	rig_destroy(&rig);
}

/* What is below UDP: a VLAN number and IPv6 addresses tell senders apart, a tag's priority does not. */
static void test_tags_and_ipv6(void **state)
{
	static const struct {
		struct wire_shape shape;
		uint32_t at;
		uint8_t flip;
		enum place_outcome outcome;
	} cases[] = {
		{ { .tags = 1 }, 15, 1, PLACE_CONFLICT },
		{ { .tags = 1 }, 14, 0xe0, PLACE_DUPLICATE },
		{ { .tags = 2 }, 15, 1, PLACE_CONFLICT },
		{ { .options = 3 }, IP_AT + 3, 1, PLACE_CONFLICT },
		{ { .options = 3 }, PORT_AT + 12, 1, PLACE_CONFLICT },
		{ { .ipv6 = 1 }, 14 + 8, 1, PLACE_CONFLICT },
		{ { .ipv6 = 1 }, 14 + 23, 1, PLACE_CONFLICT },
		{ { .ipv6 = 1 }, 14 + 24, 1, PLACE_DUPLICATE }, /* to another address */
		{ { .tags = 2, .ipv6 = 1 }, 14 + 8 + 8 + 15, 1, PLACE_CONFLICT },
	};
	const struct image_layout layout = wire_layout_gvsp(1000, 500);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		rig_create(&rig, &layout, 4, 1);
		for (uint32_t copy = 0; copy < 2; copy++) {
			memset(wire_gvsp(&wire, &cases[i].shape, 0, 5, 1, WIRE_DATA, 500), 3, 500);
			wire.at[cases[i].at] ^= copy ? cases[i].flip : 0;
			rig_wire(&rig, &wire);
		}
		assert_int_equal(last_record()->outcome, cases[i].outcome);
		rig_destroy(&rig);
	}
}

/* Leaders and trailers bring no data: of an image that was handed out they are placed, and its data is late. */
static void test_late(void **state)
{
	const struct image_layout layout = wire_layout_gvsp(1000, 500);

	rig_create(&rig, &layout, 4, 1);
	wire_gvsp_packet(&wire, &layout, 0, 6, 1);
	rig_wire(&rig, &wire);
	rig_flush(&rig);
	rig_window(&rig.view[0], 0, 5);
	for (uint32_t id = 0; id < layout.pieces + 2; id++) {
		wire_gvsp_packet(&wire, &layout, 0, 5, id);
		rig_wire(&rig, &wire);
	}
	assert_int_equal(last_record()->outcome, PLACE_PLACED);
	assert_int_equal(last_record()->slot, PLACE_NO_SLOT);
	assert_int_equal(last_record()->stream, 0);
	assert_int_equal(last_record()->expected + last_record()->ends, 0);
	assert_int_equal(rig_frames(&rig, PLACE_LATE), layout.pieces);
	assert_int_equal(rig_frames(&rig, PLACE_PLACED), 1 + 2);
	rig_destroy(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_second_sender), cmocka_unit_test(test_two_legs),
		cmocka_unit_test(test_any_sender),    cmocka_unit_test(test_every_second_sender),
		cmocka_unit_test(test_tags_and_ipv6), cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
