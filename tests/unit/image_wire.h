/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of images made by hand, byte for byte as the formats' documents have them, and their layouts. */
#ifndef GDRCAP_TEST_IMAGE_WIRE_H
#define GDRCAP_TEST_IMAGE_WIRE_H

#include <string.h>

#include "pattern/frame_bytes.h"
#include "pattern/image_layout.h"

struct wire {
	uint32_t len;
	uint8_t at[9600];
};

/* What is below UDP. */
struct wire_shape {
	uint32_t tags;	  /* VLAN, 0..2 */
	uint32_t options; /* IPv4, words of 4 bytes */
	uint32_t ipv6;
};

/* A UDP datagram of `bytes` bytes; returns where they are. Frames shorter than 60 bytes are padded. */
static inline uint8_t *wire_udp(struct wire *wire, const struct wire_shape *shape, uint32_t bytes)
{
	uint8_t *at = wire->at + 12;

	memset(wire->at, 0, 12);
	memcpy(wire->at, "\x02\0\0\0\0\x01\x02\0\0\0\0\x02", 12);
	for (uint32_t t = 0; t < shape->tags; t++, at += 4) {
		frame_put16(at, shape->tags - t == 2 ? 0x88a8 : 0x8100);
		frame_put16(at + 2, 5 + t);
	}
	frame_put16(at, shape->ipv6 ? 0x86dd : 0x0800);
	at += 2;
	if (shape->ipv6) {
		memset(at, 0xfe, 40);
		frame_put32(at, 0x60000000);
		frame_put16(at + 4, 8 + bytes);
		at[6] = 17;
		at[7] = 64;
		at += 40;
	} else {
		const uint32_t header = 20 + 4 * shape->options;

		memset(at, 1, header); /* options: no operation */
		at[0] = (uint8_t)(0x40 | header / 4);
		frame_put16(at + 2, header + 8 + bytes);
		frame_put16(at + 6, 0x4000);
		at[9] = 17;
		at += header;
	}
	frame_put16(at, 40000);
	frame_put16(at + 2, 5004);
	frame_put16(at + 4, 8 + bytes);
	frame_put16(at + 6, 0);
	wire->len = (uint32_t)(at + 8 - wire->at) + bytes;
	while (wire->len < 60)
		wire->at[wire->len++] = 0xee;
	return at + 8;
}

/* Byte i of image `number`: no two pieces are alike. */
static inline uint8_t wire_pixel(uint64_t number, uint64_t i)
{
	const uint64_t x = (number * 1000003u + i) * 0x9e3779b97f4a7c15u;

	return (uint8_t)(x >> 56);
}

static inline void wire_pixels(uint8_t *to, uint64_t number, uint64_t from, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		to[i] = wire_pixel(number, from + i);
}

/* ---- layouts ---- */

static inline struct image_field wire_field(uint32_t at, uint32_t bytes)
{
	return (struct image_field){ .at = (uint16_t)at,
				     .bytes = (uint8_t)bytes,
				     .mask = UINT64_MAX,
				     .divide = 1,
				     .times = 1 };
}

static inline struct image_field wire_item(uint32_t id)
{
	struct image_field field = wire_field(id, 6);

	field.item = 1;
	return field;
}

/* Without fields, of one row. */
static inline struct image_layout wire_layout(uint32_t parser, uint64_t bytes, uint32_t piece)
{
	return (struct image_layout){
		.base = IMAGE_BASE_UDP,
		.parser = parser,
		.kind_begin = UINT64_MAX,
		.kind_end = UINT64_MAX,
		.late = 64,
		.legs = 1,
		.counts = 1,
		.bytes = bytes,
		.row_bytes = bytes,
		.pitch = bytes,
		.piece = piece,
		.row_pieces = (uint32_t)((bytes + piece - 1) / piece),
		.pieces = (uint32_t)((bytes + piece - 1) / piece),
		.known = 1,
	};
}

static inline struct image_layout wire_layout_gvsp(uint64_t bytes, uint32_t piece)
{
	struct image_layout layout = wire_layout(IMAGE_PARSER_GVSP, bytes, piece);

	layout.number_first = 1;
	layout.timestamp = wire_field(12, 8);
	layout.fields[0] = wire_field(24, 4); /* width */
	layout.fields[1] = wire_field(28, 4);
	return layout;
}

/* Rows of `width` pixels, `pitch` bytes apart. */
static inline struct image_layout wire_layout_rtp(uint32_t width, uint32_t height,
						  uint32_t group_pixels, uint32_t group_bytes,
						  uint64_t pitch)
{
	struct image_layout layout = wire_layout(IMAGE_PARSER_RTP_RAW, pitch * height, group_bytes);

	layout.number_modulus = (uint64_t)1 << 32;
	layout.late = 90000;
	layout.counts = 0;
	layout.width = width;
	layout.height = height;
	layout.group_pixels = group_pixels;
	layout.group_bytes = group_bytes;
	layout.row_bytes = (uint64_t)width / group_pixels * group_bytes;
	layout.pitch = pitch;
	layout.row_pieces = width / group_pixels;
	layout.pieces = layout.row_pieces * height;
	layout.timestamp = wire_field(4, 4);
	return layout;
}

/* A heap is an image; `bytes` is the most that one may have. */
static inline struct image_layout wire_layout_spead(uint64_t bytes)
{
	struct image_layout layout = wire_layout(IMAGE_PARSER_SPEAD, bytes, 8);

	layout.number = wire_item(1);
	layout.place[0] = wire_item(3);
	layout.place_terms = 1;
	layout.partial = 1;
	layout.known = 0;
	return layout;
}

/*
 * A counter in each datagram: u64 number of the packet at 0, of which `packets` make an image, u16 stream at
 * 8, u16 free at 10, then `piece` bytes.
 */
static inline struct image_layout wire_layout_counter(uint32_t packets, uint32_t piece)
{
	struct image_layout layout =
		wire_layout(IMAGE_PARSER_FIELDS, (uint64_t)packets * piece, piece);

	layout.stream = wire_field(8, 2);
	layout.number = wire_field(0, 8);
	layout.number.divide = packets;
	layout.place[0] = wire_field(0, 8);
	layout.place[0].modulo = packets;
	layout.place[0].times = piece;
	layout.place_terms = 1;
	layout.payload = 12;
	layout.timestamp = wire_field(0, 8);
	return layout;
}

/* ---- packets ---- */

static const struct wire_shape wire_plain;

static inline void wire_counter(struct wire *wire, const struct image_layout *layout, uint64_t k,
				uint32_t stream)
{
	const uint32_t packets = layout->pieces, piece = layout->piece;
	uint8_t *udp = wire_udp(wire, &wire_plain, 12 + piece);

	frame_put64(udp, k);
	frame_put16(udp + 8, stream);
	frame_put16(udp + 10, 0);
	wire_pixels(udp + 12, k / packets + stream, k % packets * piece, piece);
}

enum wire_gvsp { WIRE_LEADER = 1, WIRE_TRAILER, WIRE_DATA };

/* Header of a GVSP packet with `bytes` bytes behind it; returns where these are. */
static inline uint8_t *wire_gvsp(struct wire *wire, const struct wire_shape *shape, int extended,
				 uint64_t block, uint32_t id, uint32_t kind, uint32_t bytes)
{
	const uint32_t header = extended ? 20 : 8;
	uint8_t *udp = wire_udp(wire, shape, header + bytes);

	memset(udp, 0, header + bytes);
	if (!extended) {
		frame_put16(udp + 2, (uint32_t)block);
		frame_put32(udp + 4, kind << 24 | id);
	} else {
		udp[4] = (uint8_t)(0x80 | kind);
		frame_put64(udp + 8, block);
		frame_put32(udp + 16, id);
	}
	return udp + header;
}

/* Packet `id` of the 0 .. packets + 1 of an image: leader, data, trailer. */
static inline void wire_gvsp_packet(struct wire *wire, const struct image_layout *layout,
				    int extended, uint64_t block, uint32_t id)
{
	const uint64_t from = (uint64_t)(id - 1) * layout->piece;
	uint8_t *data;

	if (!id) {
		data = wire_gvsp(wire, &wire_plain, extended, block, 0, WIRE_LEADER, 36);
		frame_put16(data + 2, 1);
		frame_put64(data + 4, 1000 * block); /* time stamp */
		frame_put32(data + 16, 640);
		frame_put32(data + 20, 480);
	} else if (id > layout->pieces) {
		wire_gvsp(wire, &wire_plain, extended, block, id, WIRE_TRAILER, 8);
	} else {
		const uint32_t bytes = image_piece_bytes(layout, id - 1);

		data = wire_gvsp(wire, &wire_plain, extended, block, id, WIRE_DATA, bytes);
		wire_pixels(data, block, from, bytes);
	}
}

/* ---- RFC 4175 ---- */

struct wire_line {
	uint32_t bytes, line, pixel;
};

/* A packet with these lines; returns where their bytes begin. */
static inline uint8_t *wire_rtp(struct wire *wire, const struct wire_line *lines, uint32_t count,
				uint32_t csrc, int extension, uint32_t padding)
{
	uint32_t bytes = 12 + 4 * csrc + (extension ? 4 + 4 * 3 : 0) + 2 + 6 * count + padding;
	uint8_t *rtp, *at;

	for (uint32_t l = 0; l < count; l++)
		bytes += lines[l].bytes;
	rtp = wire_udp(wire, &wire_plain, bytes);
	memset(rtp, 0x99, bytes);
	rtp[0] = (uint8_t)(0x80 | (padding ? 0x20 : 0) | (extension ? 0x10 : 0) | csrc);
	rtp[1] = 96;
	frame_put32(rtp + 4, 0xfffffff0);
	at = rtp + 12 + 4 * csrc;
	if (extension) {
		frame_put16(at + 2, 3);
		at += 4 + 4 * 3;
	}
	at += 2;
	for (uint32_t l = 0; l < count; l++, at += 6) {
		frame_put16(at, lines[l].bytes);
		frame_put16(at + 2, lines[l].line);
		frame_put16(at + 4, lines[l].pixel | (l + 1 < count ? 0x8000u : 0));
	}
	if (padding)
		rtp[bytes - 1] = (uint8_t)padding;
	return at;
}

/* ---- SPEAD ---- */

#define WIRE_ITEM(id, value) ((uint64_t)(0x8000u | (id)) << 48 | (value))
#define WIRE_ADDRESS(id, value) ((uint64_t)(id) << 48 | (value))

/* A packet with these items (addresses have no bit 63) and `bytes` bytes behind them. */
static inline uint8_t *wire_spead(struct wire *wire, const uint64_t *items, uint32_t count,
				  uint32_t bytes)
{
	uint8_t *udp = wire_udp(wire, &wire_plain, 8 + 8 * count + bytes);

	frame_put32(udp, 0x53040206);
	frame_put16(udp + 4, 0);
	frame_put16(udp + 6, count);
	for (uint32_t i = 0; i < count; i++)
		frame_put64(udp + 8 + 8 * i, items[i]);
	memset(udp + 8 + 8 * count, 0x5a, bytes);
	return udp + 8 + 8 * count;
}

/* ---- hostile ---- */

static inline uint64_t wire_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Some bytes are random, most of them in the headers; its end is cut off, in half of the cases with a
 * UDP length that says so. Returns the length. */
static inline uint32_t wire_spoil(struct wire *wire, uint64_t *state)
{
	const uint32_t wrong = (uint32_t)(wire_random(state) % 8);
	const uint32_t reach = wire_random(state) % 4 ? 80 : wire->len;
	uint32_t len = wire->len;

	for (uint32_t w = 0; w < wrong; w++) {
		const uint64_t r = wire_random(state);
		const uint32_t from = r & 1 ? 42 : 0; /* often behind UDP */

		wire->at[from + (r >> 8) % (reach - from)] =
			r & 2 ? (uint8_t)(r >> 40) : (r & 4 ? 0xff : 0);
	}
	if (wire_random(state) % 4 == 0)
		len = (uint32_t)(wire_random(state) % (wire->len + 1));
	if (len > 42 && wire_random(state) % 2)
		frame_put16(wire->at + 38, len - 34);
	return len;
}

#endif
