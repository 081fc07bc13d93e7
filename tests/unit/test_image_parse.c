/* SPDX-License-Identifier: BSD-3-Clause */
/* What frames say of images: every format, byte for byte, whole and cut short anywhere, and rubbish. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>

#include "image_wire.h"
#include "pattern/image_parse.h"

#define GUARD ((size_t)4096)
#define ROOM ((size_t)3 * 4096)
#define HOSTILE 100000u

static struct wire wire;
static struct image_packet packet;
static struct image_part part;
static uint8_t *end; /* of memory: the page behind it cannot be touched */

static int guard_create(void **state)
{
	uint8_t *at = mmap(NULL, ROOM + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (at == MAP_FAILED)
		return -1;
	end = at + ROOM;
	return mprotect(end, GUARD, PROT_NONE);
}

/* The frame's first `len` bytes, where no byte can be read behind them. */
static const uint8_t *guarded(uint32_t len)
{
	memcpy(end - len, wire.at, len);
	return end - len;
}

static uint32_t parse_cut(const struct image_layout *layout, uint32_t len)
{
	image_parse(layout, guarded(len), len, &packet);
	return packet.what;
}

static uint32_t parse(const struct image_layout *layout)
{
	return parse_cut(layout, wire.len);
}

static int next_part(const struct image_layout *layout)
{
	return image_next_part(layout, end - wire.len, &packet, &part);
}

static void assert_part(const struct image_layout *layout, uint64_t place, uint32_t piece,
			uint32_t pieces, const uint8_t *from, uint32_t bytes)
{
	assert_int_equal(next_part(layout), 1);
	assert_int_equal(part.place, place);
	assert_int_equal(part.piece, piece);
	assert_int_equal(part.pieces, pieces);
	assert_int_equal(part.from, from - wire.at);
	assert_int_equal(part.bytes, bytes);
}

/* A frame that ends anywhere before its datagram does is no data. `udp`: where its UDP header is, which
 * says in turn what it should, and that the datagram ends where the frame does; 0: it has none. */
static void assert_cut_anywhere(const struct image_layout *layout, uint32_t whole, uint32_t udp)
{
	for (uint32_t len = 0; len < whole; len++) {
		for (uint32_t lie = 0; lie < (udp && len >= udp + 8 ? 2u : 1u); lie++) {
			const uint32_t was = frame_be16(wire.at + udp + 4);
			int fits;

			if (lie)
				frame_put16(wire.at + udp + 4, len - udp);
			parse_cut(layout, len);
			if (lie)
				frame_put16(wire.at + udp + 4, was);
			if (packet.what != IMAGE_DATA)
				continue;
			do {
				fits = image_next_part(layout, end - len, &packet, &part);
			} while (fits > 0);
			if (!fits)
				fail_msg("%u of %u bytes are data", len, whole);
		}
	}
}

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
	parse(&layout);
	assert_int_equal(packet.pieces, layout.pieces);
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
	parse(&layout);
	assert_int_equal(packet.pieces, layout.pieces);
	frame_put64(wire.at + 42, 0x0123456789abcdefu);
	layout.number.little = 1;
	parse(&layout);
	assert_true(packet.number == 0xefcdab8967452301u);
	layout.number.shift = 4;
	layout.number.mask = 0xfff;
	parse(&layout);
	assert_true(packet.number == 0x230);
}

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
		parse(&layout);
		assert_int_equal(packet.pieces, layout.pieces);
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
		assert_true(packet.pieces <= layout->pieces);
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
	const uint64_t items[] = { WIRE_ITEM(3, 800), WIRE_ITEM(1, 77), WIRE_ITEM(4, 100),
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
	wire_spead(&wire, items, 4, 100);
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
		cmocka_unit_test(test_gvsp),
		cmocka_unit_test(test_gvsp_misfits),
		cmocka_unit_test(test_rtp_lines),
		cmocka_unit_test(test_rtp_misfits),
		cmocka_unit_test(test_spead),
		cmocka_unit_test(test_spead_misfits),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, guard_create, NULL);
}
