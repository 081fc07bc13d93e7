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

/* With legs 0, addresses are not compared. */
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

/* ---- bytes ---- */

#define PAYLOAD_AT 54u /* of a counter's */

/* A piece that its sender sends again with one other bit is a conflict: each of 10^6, and no copy without one. */
static void test_every_other_bit(void **state)
{
	enum { FRAMES = 1000000, PIECES = 64, PIECE = 61 };
	const struct image_layout layout = wire_layout_counter(PIECES, PIECE);
	uint64_t random = 4;
	uint32_t copies = 0;

	rig_create(&rig, &layout, 4, 3);
	for (uint32_t p = 0; p < PIECES; p++)
		sent_by(&layout, 9, p, 1);
	rig_flush(&rig);
	for (uint32_t i = 0; i < FRAMES; i++) {
		const uint64_t r = scene_next(&random);

		wire_counter(&wire, &layout, 9 * PIECES + r % PIECES, 0);
		wire.at[MAC_AT + 5] = 1;
		if (i % 64)
			wire.at[PAYLOAD_AT + (r >> 8) % PIECE] ^= (uint8_t)(1 << (r >> 40) % 8);
		else
			copies++;
		rig_wire(&rig, &wire);
	}
	rig_flush(&rig);
	assert_int_equal(rig_frames(&rig, PLACE_PLACED), PIECES);
	assert_int_equal(rig_frames(&rig, PLACE_DUPLICATE), copies);
	assert_int_equal(rig_frames(&rig, PLACE_CONFLICT), FRAMES - copies);
	assert_int_equal(rig.view[0].shared->conflict[0].bytes, 1);
	assert_int_equal(rig.view[0].shared->conflict[0].second.mac[5], 1);
	for (uint32_t p = 0; p < PIECES; p++)
		assert_piece(0, 9, p, true);
	rig_destroy(&rig);
}

/* Bytes [from, from + bytes) of a heap; byte `other` of them is another, if it is not 0. */
static void spead_part(uint32_t from, uint32_t bytes, uint32_t other)
{
	uint8_t *udp = wire_udp(&wire, &wire_plain, 8 + 32 + bytes);

	frame_put64(udp, 0x5304020600000004u);
	frame_put64(udp + 8, (uint64_t)0x8001 << 48 | 7);
	frame_put64(udp + 16, (uint64_t)0x8002 << 48 | 10000);
	frame_put64(udp + 24, (uint64_t)0x8003 << 48 | from);
	frame_put64(udp + 32, (uint64_t)0x8004 << 48 | bytes);
	wire_pixels(udp + 40, 7, from, bytes);
	udp[40 + other] ^= other ? 0x40 : 0;
	rig_wire(&rig, &wire);
}

/* Pieces that are new are placed, whatever those beside them are. */
static void test_overlap(void **state)
{
	enum { FROM = 800, BYTES = 800 };
	static const struct {
		uint32_t from, bytes, other;
		enum place_outcome outcome;
	} cases[] = {
		{ 400, 2400, 0, PLACE_PLACED },	     /* around */
		{ 400, 2400, 1, PLACE_PLACED },	     /* other bytes where none were */
		{ 400, 2400, 400, PLACE_CONFLICT },  /* the first that was there */
		{ 400, 2400, 1199, PLACE_CONFLICT }, /* the last */
		{ FROM, BYTES, 0, PLACE_DUPLICATE }, { FROM + 80, 80, 79, PLACE_CONFLICT },
	};
	const struct image_layout layout = wire_layout_spead(20000);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t fresh = cases[i].bytes > BYTES ? cases[i].bytes - BYTES : 0;
		const struct place_record *record;

		rig_create(&rig, &layout, 2, 1);
		spead_part(FROM, BYTES, 0);
		rig_flush(&rig);
		spead_part(cases[i].from, cases[i].bytes, cases[i].other);
		record = last_record();
		assert_int_equal(record->outcome, cases[i].outcome);
		assert_int_equal(record->bytes, fresh);
		assert_int_equal(record->pieces, fresh / 8);
		assert_int_equal(record->slot, 0);
		for (uint32_t b = FROM; b < FROM + BYTES; b++)
			assert_int_equal(rig_image(&rig.view[0], 0)[b], wire_pixel(7, b));
		rig_destroy(&rig);
	}
}

/* What is converted is compared as it is in the image. */
static void test_converted(void **state)
{
	static const enum image_convert converts[] = { IMAGE_CONVERT_SWAP16, IMAGE_CONVERT_MONO10P,
						       IMAGE_CONVERT_UNPACK12_BE,
						       IMAGE_CONVERT_INT8_FLOAT32 };
	enum { PIECES = 3, PIECE = 1200 };

	for (size_t c = 0; c < sizeof(converts) / sizeof(converts[0]); c++) {
		struct image_layout layout = wire_layout_counter(PIECES, PIECE);

		layout.convert = (uint8_t)converts[c];
		layout.convert_from = (uint8_t)image_convert_from(converts[c]);
		layout.convert_to = (uint8_t)image_convert_to(converts[c]);
		rig_create(&rig, &layout, 4, 1);
		for (uint32_t copy = 0; copy < 10; copy++) {
			wire_counter(&wire, &layout, 9 * PIECES + 1, 0);
			wire.at[PAYLOAD_AT + copy * 117] ^= copy > 1;
			rig_wire(&rig, &wire);
		}
		rig_flush(&rig);
		assert_int_equal(rig_frames(&rig, PLACE_PLACED), 1);
		assert_int_equal(rig_frames(&rig, PLACE_DUPLICATE), 1);
		assert_int_equal(rig_frames(&rig, PLACE_CONFLICT), 8);
		rig_destroy(&rig);
	}
}

/* An image that the caller has is his to change: what differs from it then is late. */
static void test_callers_image(void **state)
{
	const struct image_layout layout = wire_layout_counter(2, 100);

	rig_create(&rig, &layout, 4, 1);
	sent_by(&layout, 5, 0, 1);
	sent_by(&layout, 5, 1, 1);
	rig_flush(&rig);
	__atomic_store_n(&rig.view[0].shared->out[0], 1, __ATOMIC_RELEASE);
	rig_image(&rig.view[0], 0)[17] ^= 1;
	sent_by(&layout, 5, 0, 1);
	assert_int_equal(last_record()->outcome, PLACE_LATE);
	assert_int_equal(last_record()->slot, PLACE_NO_SLOT);
	sent_by(&layout, 5, 1, 1);
	assert_int_equal(last_record()->outcome, PLACE_DUPLICATE);
	/* another use of the buffer was handed out */
	__atomic_store_n(&rig.view[0].shared->out[0], 2, __ATOMIC_RELEASE);
	sent_by(&layout, 5, 0, 1);
	assert_int_equal(last_record()->outcome, PLACE_CONFLICT);
	rig_destroy(&rig);
}

/*
 * Two legs at once: a burst has a piece of one, and workers place it while others have its copy. No copy counts as other
 * bytes; with `other` each of the second does, whichever was first.
 */
static void legs_race(bool other)
{
	enum { IMAGES = 8, PIECES = 64, PIECE = 8000, ROUNDS = 16 };
	struct image_layout layout = wire_layout_counter(PIECES, PIECE);

	layout.legs = 2;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		rig_create(&rig, &layout, IMAGES, 4);
		for (uint32_t n = 0; n < 2 * IMAGES * PIECES; n++) {
			wire_counter(&wire, &layout, n / 2, 0);
			wire.at[MAC_AT + 5] = (uint8_t)(1 + n % 2);
			/* each byte: what is not stored yet is none of either */
			for (uint32_t b = 0; other && n % 2 && b < PIECE; b++)
				wire.at[PAYLOAD_AT + b] ^= 0xff;
			rig_wire(&rig, &wire);
			rig_publish(&rig);
		}
		rig_flush(&rig);
		assert_int_equal(rig_frames(&rig, PLACE_PLACED), IMAGES * PIECES);
		assert_int_equal(rig_frames(&rig, other ? PLACE_CONFLICT : PLACE_DUPLICATE),
				 IMAGES * PIECES);
		rig_destroy(&rig);
	}
}

static void test_legs_race(void **state)
{
	legs_race(false);
}

static void test_legs_that_differ_race(void **state)
{
	legs_race(true);
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
		cmocka_unit_test(test_second_sender),
		cmocka_unit_test(test_two_legs),
		cmocka_unit_test(test_any_sender),
		cmocka_unit_test(test_every_second_sender),
		cmocka_unit_test(test_tags_and_ipv6),
		cmocka_unit_test(test_every_other_bit),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_converted),
		cmocka_unit_test(test_callers_image),
		cmocka_unit_test(test_legs_race),
		cmocka_unit_test(test_legs_that_differ_race),
		cmocka_unit_test(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
