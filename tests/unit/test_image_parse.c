/* SPDX-License-Identifier: BSD-3-Clause */
/* What frames say of images: UDP below, fields, and rubbish of every format. */
#include "image_guard.h"

#define HOSTILE 100000u

/* ---- below ---- */

static void test_every_way_to_udp(void **state)
{
	struct image_layout layout = wire_layout_counter(10, 100);

	layout.stream.bytes = 0;
	for (uint32_t tags = 0; tags < 3; tags++) {
		for (uint32_t options = 0; options < 12; options++) {
			const struct wire_shape shape = { tags, options % 11, options == 11 };
			uint8_t *udp = wire_udp(&wire, &shape, 112);

			frame_put64(udp, 1234567);
			assert_int_equal(parse(&layout), IMAGE_DATA);
			assert_int_equal(packet.base, udp - wire.at);
			assert_int_equal(packet.number, 123456);
			assert_part(&layout, 700, 7, 1, udp + 12, 100);
			assert_int_equal(next_part(&layout), 0);
			assert_cut_anywhere(&layout, wire.len, (uint32_t)(udp - wire.at) - 8);
		}
	}
}

static void assert_filtered(const struct image_layout *layout, uint32_t at, uint8_t value)
{
	const uint8_t was = wire.at[at];

	wire.at[at] = value;
	assert_int_equal(parse(layout), IMAGE_FILTERED);
	wire.at[at] = was;
}

static void test_what_is_no_udp_is_filtered(void **state)
{
	const struct image_layout layout = wire_layout_counter(10, 100);
	const struct wire_shape three_tags = { 2, 0, 0 }, ipv6 = { 0, 0, 1 };

	wire_counter(&wire, &layout, 0, 0);
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_filtered(&layout, 13, 0x06);  /* EtherType */
	assert_filtered(&layout, 14, 0x44);  /* a header of 16 bytes */
	assert_filtered(&layout, 14, 0x65);  /* version 6 */
	assert_filtered(&layout, 14 + 9, 6); /* TCP */
	assert_filtered(&layout, 14 + 7, 1); /* not the first fragment */
	assert_filtered(&layout, 14 + 6, 0x5f);
	wire_udp(&wire, &ipv6, 112);
	assert_filtered(&layout, 14, 0x45);
	assert_filtered(&layout, 14 + 6, 44); /* a header between */
	wire_udp(&wire, &three_tags, 112);
	memmove(wire.at + 16, wire.at + 12, wire.len - 12);
	wire.len += 4;
	assert_int_equal(parse(&layout), IMAGE_FILTERED);
}

/* UDP's length counts: what follows is padding, and what is past the frame was never there. */
static void test_udp_lengths(void **state)
{
	const struct image_layout layout = wire_layout_counter(10, 20);
	uint8_t *udp = wire_udp(&wire, &wire_plain, 32);

	frame_put64(udp, 3);
	wire.len += 50;
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_part(&layout, 60, 3, 1, udp + 12, 20);
	for (uint32_t lie = 0; lie < 8 + 12; lie++) {
		frame_put16(udp - 4, lie);
		assert_int_not_equal(parse(&layout), IMAGE_FILTERED);
		assert_true(packet.what == IMAGE_MISFIT || next_part(&layout) < 0);
	}
	for (uint32_t lie = 8 + 32 + 51; lie < 65536; lie += 97) {
		frame_put16(udp - 4, lie);
		assert_int_equal(parse(&layout), IMAGE_MISFIT);
	}
}

static void test_rules_filter(void **state)
{
	struct image_layout layout = wire_layout_counter(10, 100);

	layout.match.count = 1;
	layout.match.rule[0].fields = FRAME_MATCH_DST_PORT;
	layout.match.rule[0].dst_port = 5004;
	wire_counter(&wire, &layout, 0, 0);
	assert_int_equal(parse(&layout), IMAGE_DATA);
	layout.match.rule[0].dst_port = 5005;
	assert_int_equal(parse(&layout), IMAGE_FILTERED);
}

/* ---- fields ---- */

/* At the frame's first byte: two kinds of numbers, three kinds of packets, a length, an end. */
static struct image_layout fields_layout(void)
{
	struct image_layout layout = wire_layout(IMAGE_PARSER_FIELDS, 1000, 100);

	layout.base = IMAGE_BASE_FRAME;
	layout.kind = wire_field(0, 1);
	layout.kind.mask = 3;
	layout.kind.shift = 2;
	layout.kind_data = 0;
	layout.kind_begin = 1;
	layout.kind_end = 2;
	layout.number = wire_field(1, 3);
	layout.number.little = 1;
	layout.number_first = 5;
	layout.number_modulus = 1000;
	layout.stream = wire_field(4, 2);
	layout.place[0] = wire_field(6, 1);
	layout.place[0].subtract = 1;
	layout.place[0].modulo = 5;
	layout.place[0].times = 100;
	layout.place[1] = wire_field(7, 1);
	layout.place[1].times = 500;
	layout.place_terms = 2;
	layout.length = wire_field(8, 2);
	layout.end_mark = wire_field(10, 1);
	layout.end_mark.mask = 0x80;
	layout.end_pieces = wire_field(11, 2);
	layout.payload = 16;
	layout.payload_more = wire_field(13, 1);
	layout.payload_more.times = 4;
	return layout;
}

static void fields_packet(uint8_t kind, uint32_t number)
{
	memset(wire.at, 0xcc, sizeof(wire.at));
	wire.len = 16 + 8 + 100 + 7;
	wire.at[0] = (uint8_t)(kind << 2 | 0xf3);
	wire.at[1] = (uint8_t)number;
	wire.at[2] = (uint8_t)(number >> 8);
	wire.at[3] = (uint8_t)(number >> 16);
	frame_put16(wire.at + 4, 0xbeef);
	wire.at[6] = 1 + 8; /* 8 % 5 = 3 */
	wire.at[7] = 1;
	frame_put16(wire.at + 8, 100);
	wire.at[10] = 0x7f;
	frame_put16(wire.at + 11, 9);
	wire.at[13] = 2;
}

static void test_fields(void **state)
{
	const struct image_layout layout = fields_layout();

	fields_packet(0, 5);
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_int_equal(packet.number, 5);
	assert_int_equal(packet.modulus, 1000);
	assert_int_equal(packet.stream, 0xbeef);
	assert_int_equal(packet.ends, 0);
	assert_int_equal(packet.pieces, 0);
	assert_part(&layout, 800, 8, 1, wire.at + 16 + 8, 100);
	assert_cut_anywhere(&layout, wire.len - 7, 0);
	wire.at[10] = 0x80;
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_int_equal(packet.ends, 1);
	assert_int_equal(packet.pieces, 9);
	frame_put16(wire.at + 11, 65535);
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	assert_int_equal(packet.pieces, IMAGE_WHY_PIECES);
	fields_packet(1, 1004);
	wire.at[10] = 0x80;
	assert_int_equal(parse(&layout), IMAGE_BEGIN);
	assert_int_equal(packet.ends, 0);
	assert_int_equal(next_part(&layout), 0);
	fields_packet(2, 1004);
	assert_int_equal(parse(&layout), IMAGE_END);
	assert_int_equal(packet.ends, 1);
	assert_int_equal(packet.pieces, 9);
	fields_packet(3, 1004);
	assert_int_equal(parse(&layout), IMAGE_FILTERED);
}

static void test_fields_misfit(void **state)
{
	const struct image_layout layout = fields_layout();

	fields_packet(0, 4); /* below the first number */
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	fields_packet(0, 1005);
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	fields_packet(0, 5);
	wire.at[6] = 0; /* less than what is subtracted */
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_int_equal(next_part(&layout), -1);
	fields_packet(0, 5);
	wire.at[7] = 2; /* past the image */
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_int_equal(next_part(&layout), -1);
	fields_packet(0, 5);
	frame_put16(wire.at + 8, 108); /* longer than the frame */
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	frame_put16(wire.at + 8, 99); /* no whole piece */
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_int_equal(next_part(&layout), -1);
	frame_put16(wire.at + 8, 0);
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_int_equal(next_part(&layout), -1);
	fields_packet(0, 5);
	wire.at[13] = 255;
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
}

/* All 64 bits, both orders; and the largest numbers overflow into nothing that is placed. */
static void test_fields_of_64_bits(void **state)
{
	struct image_layout layout = wire_layout_counter(10, 128);

	layout.number = wire_field(0, 8);
	layout.place[0].modulo = 0;
	layout.place[0].times = UINT64_MAX / 3;
	wire_counter(&wire, &layout, 0, 0);
	frame_put64(wire.at + 42, 0x0123456789abcdefu);
	assert_int_equal(parse(&layout), IMAGE_DATA);
	assert_true(packet.number == 0x0123456789abcdefu);
	assert_int_equal(next_part(&layout), -1);
	layout.place[0].times = UINT64_MAX - 127; /* 128 bytes before the image */
	wire.at[49] = 1;
	memset(wire.at + 42, 0, 7);
	parse(&layout);
	assert_int_equal(next_part(&layout), -1);
	layout.payload_more = wire_field(0, 8); /* 4 bytes before the payload */
	frame_put64(wire.at + 42, UINT64_MAX - 3);
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	layout.payload_more.bytes = 0;
	layout.end_mark = wire_field(7, 1);
	layout.end_pieces = wire_field(0, 8);
	frame_put64(wire.at + 42, ((uint64_t)1 << 32) + 1);
	assert_int_equal(parse(&layout), IMAGE_MISFIT);
	assert_int_equal(packet.pieces, IMAGE_WHY_PIECES);
	layout.end_pieces.bytes = 0;
	frame_put64(wire.at + 42, 0x0123456789abcdefu);
	layout.number.little = 1;
	parse(&layout);
	assert_true(packet.number == 0xefcdab8967452301u);
	layout.number.shift = 4;
	layout.number.mask = 0xfff;
	parse(&layout);
	assert_true(packet.number == 0x230);
}

/* Only the packet that ends a heap may end within a piece: else some bytes of it would never be asked for. And none goes
 * on behind the heap's end. */
static void test_heap_ends(void **state)
{
	static const struct {
		uint64_t heap_bytes; /* 0: not said */
		uint32_t bytes;	     /* of the packet, from byte 800 on */
		uint32_t why;
	} cases[] = { { 900, 100, IMAGE_WHY_NONE },	  { 904, 100, IMAGE_WHY_PAYLOAD },
		      { 90000, 100, IMAGE_WHY_PAYLOAD },  { 899, 100, IMAGE_WHY_SPEAD_HEAP },
		      { 700, 100, IMAGE_WHY_SPEAD_HEAP }, { 807, 8, IMAGE_WHY_SPEAD_HEAP },
		      { 808, 8, IMAGE_WHY_NONE },	  { 0, 100, IMAGE_WHY_NONE } };
	const struct image_layout layout = wire_layout_spead(100000);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t items[] = { WIRE_ITEM(1, 77), WIRE_ITEM(3, 800),
					   WIRE_ITEM(4, cases[i].bytes),
					   WIRE_ITEM(2, cases[i].heap_bytes) };
		const uint32_t why = cases[i].why;

		wire_spead(&wire, items, 3 + (cases[i].heap_bytes != 0), cases[i].bytes);
		assert_int_equal(parse(&layout),
				 why == IMAGE_WHY_SPEAD_HEAP ? IMAGE_MISFIT : IMAGE_DATA);
		if (why != IMAGE_WHY_SPEAD_HEAP)
			assert_int_equal(next_part(&layout), why == IMAGE_WHY_NONE ? 1 : -1);
		if (why != IMAGE_WHY_NONE)
			assert_int_equal(packet.pieces, why);
	}
}

/* ---- rubbish ---- */

/* Every part lies in the frame and in the image, and is of pieces that there are. */
static uint32_t assert_parts_inside(const struct image_layout *layout, uint32_t len)
{
	uint32_t parts = 0;

	while (image_next_part(layout, end - len, &packet, &part) > 0) {
		const uint64_t in_row = part.place % layout->pitch;

		assert_true(part.bytes && part.pieces);
		assert_true(part.from < len && part.bytes <= len - part.from);
		assert_true(part.place < layout->bytes && part.bytes <= layout->bytes - part.place);
		assert_true(in_row + part.bytes <= layout->row_bytes);
		assert_true(part.piece < layout->pieces &&
			    part.pieces <= layout->pieces - part.piece);
		assert_true(image_piece_place(layout, part.piece) == part.place);
		parts++;
	}
	return parts;
}

/* Packets of a format, spoilt. Some must remain data. */
static void hostile(const struct image_layout *layout, uint64_t seed)
{
	const struct wire whole = wire;
	uint32_t placed = 0;

	for (uint32_t n = 0; n < HOSTILE; n++) {
		uint32_t len;

		wire = whole;
		len = wire_spoil(&wire, &seed);
		parse_cut(layout, len);
		assert_true(packet.base <= len && packet.end <= len && packet.what <= IMAGE_END);
		assert_true(packet.what <= IMAGE_MISFIT || packet.pieces <= layout->pieces);
		if (packet.what == IMAGE_DATA)
			placed += assert_parts_inside(layout, len) != 0;
		else
			assert_true(packet.what <= IMAGE_MISFIT || !packet.parts);
	}
	assert_in_range(placed, HOSTILE / 20, HOSTILE * 19 / 20);
}

static void test_hostile(void **state)
{
	const struct wire_line lines[] = { { 500, 0, 440 }, { 600, 1, 0 }, { 5, 2, 0 } };
	const uint64_t items[] = { WIRE_ITEM(3, 800), WIRE_ITEM(1, 77), WIRE_ITEM(4, 104),
				   WIRE_ITEM(2, 90000) };
	struct image_layout layout = fields_layout();

	fields_packet(0, 5);
	hostile(&layout, 1);
	layout = wire_layout_counter(10, 100);
	wire_counter(&wire, &layout, 12, 3);
	hostile(&layout, 2);
	layout.bytes = 750; /* rows of 200 bytes, 300 apart, the last of 150 */
	layout.row_bytes = 200;
	layout.pitch = 300;
	layout.piece = 50;
	layout.row_pieces = 4;
	layout.pieces = 11;
	layout.place[0].modulo = 17;
	layout.place[0].times = 50;
	hostile(&layout, 7);
	layout = wire_layout_gvsp(10000, 1364);
	wire_gvsp(&wire, &wire_plain, 0, 7, 3, WIRE_DATA, 1364);
	hostile(&layout, 3);
	wire_gvsp(&wire, &wire_plain, 1, 7, 3, WIRE_DATA, 1364);
	hostile(&layout, 4);
	layout = wire_layout_rtp(640, 4, 2, 5, 1664);
	wire_rtp(&wire, lines, 3, 2, 1, 9);
	hostile(&layout, 5);
	layout = wire_layout_spead(100000);
	wire_spead(&wire, items, 4, 104);
	hostile(&layout, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_way_to_udp),
		cmocka_unit_test(test_what_is_no_udp_is_filtered),
		cmocka_unit_test(test_udp_lengths),
		cmocka_unit_test(test_rules_filter),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_fields_misfit),
		cmocka_unit_test(test_fields_of_64_bits),
		cmocka_unit_test(test_heap_ends),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, guard_create, NULL);
}
