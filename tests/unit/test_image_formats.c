/* SPDX-License-Identifier: BSD-3-Clause */
/* GVSP, RFC 4175 and SPEAD, byte for byte, whole and cut short anywhere. */
#include "image_guard.h"

/* ---- GVSP ---- */

static void test_gvsp(void **state)
{
	const struct image_layout layout = wire_layout_gvsp(10000, 1364);
	const struct wire_shape tagged = { 1, 3, 0 };

	for (int extended = 0; extended < 2; extended++) {
		const uint64_t block = extended ? 0xfedcba9876543210u : 65401;
		uint8_t *data;

		wire_gvsp(&wire, &tagged, extended, block, 0, WIRE_LEADER, 36);
		assert_int_equal(parse(&layout), IMAGE_BEGIN);
		assert_true(packet.number == block);
		assert_int_equal(packet.modulus, extended ? 0 : 65535);
		data = wire_gvsp(&wire, &tagged, extended, block, 3, WIRE_DATA, 1364);
		assert_int_equal(parse(&layout), IMAGE_DATA);
		assert_int_equal(packet.ends, 0);
		assert_part(&layout, 2 * 1364, 2, 1, data, 1364);
		assert_cut_anywhere(&layout, wire.len, 14 + 4 + 32);
		data = wire_gvsp(&wire, &tagged, extended, block, 8, WIRE_DATA, 10000 - 7 * 1364);
		assert_int_equal(parse(&layout), IMAGE_DATA);
		assert_part(&layout, 7 * 1364, 7, 1, data, 10000 - 7 * 1364);
		wire_gvsp(&wire, &tagged, extended, block, 9, WIRE_TRAILER, 8);
		assert_int_equal(parse(&layout), IMAGE_END);
		assert_int_equal(packet.ends, 1);
		assert_int_equal(packet.pieces, 8);
		wire_gvsp(&wire, &tagged, extended, block, 4, WIRE_TRAILER,
			  8); /* a smaller image */
		parse(&layout);
		assert_int_equal(packet.pieces, 3);
		wire_gvsp(&wire, &tagged, extended, block, 0xffffff, WIRE_TRAILER, 8);
		/* more than an image has room for: it must not pass for whole */
		assert_int_equal(parse(&layout), IMAGE_MISFIT);
		assert_int_equal(packet.pieces, IMAGE_WHY_PIECES);
		/* more than a piece: its place, counted in packets, would be another's */
		wire_gvsp(&wire, &tagged, extended, block, 2, WIRE_DATA, 1365);
		assert_int_equal(parse(&layout), IMAGE_DATA);
		assert_int_equal(next_part(&layout), -1);
	}
}

static void gvsp_misfits(const struct image_layout *layout, int extended, uint64_t block,
			 uint32_t id, uint32_t kind, uint32_t bytes)
{
	wire_gvsp(&wire, &wire_plain, extended, block, id, kind, bytes);
	parse(layout);
	if (packet.what == IMAGE_DATA)
		assert_int_equal(next_part(layout), -1);
	else
		assert_int_equal(packet.what, IMAGE_MISFIT);
}

static void test_gvsp_misfits(void **state)
{
	const struct image_layout layout = wire_layout_gvsp(10000, 1364);
	uint8_t *data;

	for (int extended = 0; extended < 2; extended++) {
		gvsp_misfits(&layout, extended, 0, 1, WIRE_DATA, 1364); /* there is no block 0 */
		gvsp_misfits(&layout, extended, 1, 0, WIRE_DATA, 1364);
		gvsp_misfits(&layout, extended, 1, 9, WIRE_DATA, 1364);
		gvsp_misfits(&layout, extended, 1, 8, WIRE_DATA, 1364); /* past the end */
		gvsp_misfits(&layout, extended, 1, 1, WIRE_DATA, 1363);
		gvsp_misfits(&layout, extended, 1, 1, WIRE_DATA, 0);
		gvsp_misfits(&layout, extended, 1, 0xffffff, WIRE_DATA, 1364);
		gvsp_misfits(&layout, extended, 1, 0, WIRE_TRAILER, 8);
		data = wire_gvsp(&wire, &wire_plain, extended, 1, 1, WIRE_DATA, 1364);
		data[extended ? -20 : -8] = 0x80; /* the camera's error */
		assert_int_equal(parse(&layout), IMAGE_MISFIT);
		wire_gvsp(&wire, &wire_plain, extended, 1, 1, 4, 1364); /* all in one */
		assert_int_equal(parse(&layout), IMAGE_FILTERED);
	}
	for (uint32_t bytes = 0; bytes < 20; bytes++) {
		uint8_t *udp = wire_udp(&wire, &wire_plain, bytes);

		memset(udp, 0x83, bytes);
		memset(udp, 0, bytes < 4 ? bytes : 4);
		wire.len = 42 + bytes;
		assert_int_equal(parse(&layout), IMAGE_MISFIT);
	}
	/* ids of 32 bits, whose product with the size passes 2^32 */
	gvsp_misfits(&layout, 1, 1, 3148800, WIRE_DATA, 1364);
	gvsp_misfits(&layout, 1, 1, UINT32_MAX, WIRE_DATA, 1364);
}

/* ---- RFC 4175 ---- */

static void test_rtp_lines(void **state)
{
	/* 4:2:2 of 10 bits: two pixels in five bytes; rows of 1600 bytes, 1664 apart */
	const struct image_layout layout = wire_layout_rtp(640, 4, 2, 5, 1664);
	const struct wire_line lines[] = {
		{ 500, 0, 440 }, { 1600, 1, 0 }, { 5, 2, 0 }, { 10, 3, 6 }
	};

	for (uint32_t shape = 0; shape < 4 * 3 * 2; shape++) {
		const uint32_t count = 1 + shape % 4, csrc = shape / 4 % 3 * 7;
		const uint32_t padding = shape % 5 ? shape % 5 : 0;
		const uint8_t *at = wire_rtp(&wire, lines, count, csrc, shape / 12, padding);

		assert_int_equal(parse(&layout), IMAGE_DATA);
		assert_int_equal(packet.number, 0xfffffff0u);
		assert_int_equal(packet.modulus, (uint64_t)1 << 32);
		assert_int_equal(packet.parts, count);
		assert_part(&layout, 1100, 220, 100, at, 500);
		if (count > 1)
			assert_part(&layout, 1664, 320, 320, at + 500, 1600);
		if (count > 2)
			assert_part(&layout, 2 * 1664, 640, 1, at + 2100, 5);
		if (count > 3)
			assert_part(&layout, 3 * 1664 + 15, 963, 2, at + 2105, 10);
		assert_int_equal(next_part(&layout), 0);
		wire.at[42 + 1] |= 0x80;
		parse(&layout);
		assert_int_equal(packet.ends, 1);
		assert_cut_anywhere(&layout, wire.len - padding, 34);
	}
}

static void assert_rtp_misfits(const struct image_layout *layout, struct wire_line second)
{
	const struct wire_line lines[] = { { 5, 0, 0 }, second };

	wire_rtp(&wire, lines, 2, 0, 0, 0);
	assert_int_equal(parse(layout), IMAGE_DATA);
	assert_int_equal(next_part(layout), 1);
	assert_int_equal(next_part(layout), -1);
}

static void test_rtp_misfits(void **state)
{
	const struct image_layout layout = wire_layout_rtp(640, 4, 2, 5, 1600);
	const struct wire_line one = { 5, 0, 0 };
	uint8_t *at;

	assert_rtp_misfits(&layout, (struct wire_line){ 5, 4, 0 });
	assert_rtp_misfits(&layout, (struct wire_line){ 5, 0x7fff, 0 });
	assert_rtp_misfits(&layout, (struct wire_line){ 5, 1, 1 }); /* inside a group */
	assert_rtp_misfits(&layout,
			   (struct wire_line){ 5, 1, 640 }); /* would be the next row's first */
	assert_rtp_misfits(&layout, (struct wire_line){ 10, 1, 638 });
	assert_rtp_misfits(&layout, (struct wire_line){ 4, 1, 0 });
	assert_rtp_misfits(&layout, (struct wire_line){ 0, 1, 0 });
	/* a line that is longer than the packet */
	at = wire_rtp(&wire, &one, 1, 0, 0, 0);
	frame_put16(at - 6, 10);
	wire.len = (uint32_t)(at - wire.at) + 5;
	parse(&layout);
	assert_int_equal(next_part(&layout), -1);
	wire_rtp(&wire, &one, 1, 0, 0, 5);
	frame_put16(wire.at + 42 + 14, 10); /* padding is no line */
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_int_equal(next_part(&layout), -1);
	/* headers that never end, a version, an extension past the end, more padding than packet */
	wire_rtp(&wire, &one, 1, 0, 0, 0);
	memset(wire.at + 42 + 14, 0xff, wire.len - 42 - 14);
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	wire_rtp(&wire, &one, 1, 0, 0, 0);
	wire.at[42] = 0x40;
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	wire_rtp(&wire, &one, 1, 0, 1, 0);
	frame_put16(wire.at + 42 + 14, 0xffff);
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	wire_rtp(&wire, &one, 1, 15, 0, 20);
	wire.at[wire.len - 1] = 255;
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	wire.at[wire.len - 1] = 0;
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
}

/* ---- SPEAD ---- */

static void test_spead(void **state)
{
	const struct image_layout layout = wire_layout_spead(100000);
	/* a descriptor's and a value's addresses among them */
	uint64_t items[] = { WIRE_ITEM(1, 77),	  WIRE_ITEM(2, 70003), WIRE_ITEM(3, 8000),
			     WIRE_ITEM(4, 1000),  WIRE_ADDRESS(5, 1),  WIRE_ADDRESS(0x1600, 0),
			     WIRE_ITEM(0x1601, 9) };
	const uint32_t count = sizeof(items) / sizeof(items[0]);

	for (uint32_t turn = 0; turn < count; turn++) {
		const uint64_t first = items[0];
		uint8_t *data = wire_spead(&wire, items, count, 1000 + 13);

		assert_int_equal(parse(&layout), IMAGE_DATA);
		assert_int_equal(packet.number, 77);
		assert_int_equal(packet.pieces, (70003 + 7) / 8);
		assert_part(&layout, 8000, 1000, 125, data, 1000);
		assert_int_equal(next_part(&layout), 0);
		assert_cut_anywhere(&layout, wire.len - 13, 34);
		memmove(items, items + 1, sizeof(items) - sizeof(items[0]));
		items[count - 1] = first;
	}
	/* the heap's end, which is no whole piece */
	items[2] = WIRE_ITEM(3, 69000);
	items[3] = WIRE_ITEM(4, 1003);
	items[0] = WIRE_ITEM(1, 77);
	items[1] = WIRE_ITEM(2, 70003);
	wire_spead(&wire, items, count, 1003);
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_int_equal(next_part(&layout), 1);
	assert_int_equal(part.piece, 8625);
	assert_int_equal(part.pieces, 126);
}

static void assert_spead(const struct image_layout *layout, uint64_t a, uint64_t b, uint64_t c,
			 uint32_t what, int fits)
{
	const uint64_t items[] = { a, b, c };

	wire_spead(&wire, items, 3, 1000);
	assert_int_equal(parse(layout), what);
	if (what == IMAGE_DATA)
		assert_int_equal(next_part(layout), fits);
}

static void test_spead_misfits(void **state)
{
	const struct image_layout layout = wire_layout_spead(100000);
	const uint64_t n = WIRE_ITEM(1, 1), at = WIRE_ITEM(3, 0), bytes = WIRE_ITEM(4, 1000);

	assert_spead(&layout, n, at, bytes, IMAGE_DATA, 1);
	assert_spead(&layout, WIRE_ADDRESS(1, 1), at, bytes, IMAGE_MISFIT, 0); /* no number */
	assert_spead(&layout, n, WIRE_ADDRESS(3, 0), bytes, IMAGE_MISFIT, 0);
	assert_spead(&layout, n, at, WIRE_ADDRESS(4, 1000), IMAGE_MISFIT, 0);
	assert_spead(&layout, n, at, WIRE_ITEM(4, 1001), IMAGE_MISFIT, 0);
	assert_spead(&layout, n, at, WIRE_ITEM(4, 0xffffffffffff), IMAGE_MISFIT, 0);
	assert_spead(&layout, n, WIRE_ITEM(3, 4), bytes, IMAGE_DATA, -1); /* not on a piece */
	assert_spead(&layout, n, WIRE_ITEM(3, 99008), bytes, IMAGE_DATA, -1);
	assert_spead(&layout, n, WIRE_ITEM(3, 0xfffffffffff8), bytes, IMAGE_DATA, -1);
	assert_spead(&layout, n, at, WIRE_ITEM(4, 0), IMAGE_FILTERED, 0); /* it only controls */
	assert_spead(&layout, n, WIRE_ITEM(6, 2), bytes, IMAGE_FILTERED, 0);
	/* a stream's start with data is data; the null item's byte is none */
	for (uint32_t id = 0; id < 0x1602; id += 0x1601) {
		const uint64_t items[] = { n, at, bytes, WIRE_ITEM(6, 0), WIRE_ADDRESS(id, 0) };

		wire_spead(&wire, items, 5, 1000);
		assert_int_equal(parse(&layout), id ? IMAGE_DATA : IMAGE_FILTERED);
	}
	/* no magic, more items than bytes */
	assert_spead(&layout, n, at, bytes, IMAGE_DATA, 1);
	wire.at[42 + 1] = 5;
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	wire.at[42 + 1] = 4;
	frame_put16(wire.at + 42 + 6, 128 + 1);
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	frame_put16(wire.at + 42 + 6, 65535);
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gvsp),	  cmocka_unit_test(test_gvsp_misfits),
		cmocka_unit_test(test_rtp_lines), cmocka_unit_test(test_rtp_misfits),
		cmocka_unit_test(test_spead),	  cmocka_unit_test(test_spead_misfits),
	};

	return cmocka_run_group_tests(tests, guard_create, NULL);
}
