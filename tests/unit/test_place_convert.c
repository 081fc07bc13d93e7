/* SPDX-License-Identifier: BSD-3-Clause */
/* Payloads that are converted while they are placed: each number, wherever it lies, and what is said of images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "convert_reference.h"
#include "image/assembler.h"
#include "kernels/host/host_workers.h"
#include "kernels/place_convert.h"
#include "place_rig.h"

#define ROOM 4096u

static struct place_rig rig;
static struct wire wire;

/* Memory of which the byte behind the last cannot be touched, and none before the first. */
static uint8_t *guarded_room(void)
{
	uint8_t *at = mmap(NULL, 3 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	assert_int_equal(mprotect(at + ROOM, ROOM, PROT_READ | PROT_WRITE), 0);
	return at + ROOM;
}

/* Nothing is written in front of these bytes or behind them. */
static void assert_converts(uint32_t convert, uint8_t *from, uint8_t *to, uint32_t bytes)
{
	uint8_t want[ROOM];
	const uint32_t out = reference_convert(convert, want, from, bytes);
	uint8_t before[8], behind[8];
	const uint32_t room = (uint32_t)((uintptr_t)to % ROOM);
	const uint32_t after = (ROOM - (room + out) % ROOM) % ROOM;
	const uint32_t low = room < 8 ? room : 8, high = after < 8 ? after : 8;

	memcpy(before, to - low, low);
	memcpy(behind, to + out, high);
	host_convert(convert, to, from, bytes);
	assert_memory_equal(to, want, out);
	assert_memory_equal(to - low, before, low);
	assert_memory_equal(to + out, behind, high);
}

static void test_any_place_and_length(void **state)
{
	uint8_t *from = guarded_room(), *to = guarded_room();
	uint64_t random = 5;

	for (uint32_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)wire_random(&random);
	for (uint32_t convert = 1; convert < IMAGE_CONVERTS; convert++) {
		const uint32_t in = image_convert_from(convert), out = image_convert_to(convert);

		for (uint32_t groups = 0; groups < 40; groups++)
			for (uint32_t shift = 0; shift < 64; shift++) {
				const uint32_t a = shift % 8, b = shift / 8;

				assert_converts(convert, from + a, to + b, groups * in);
				assert_converts(convert, from + ROOM - a - groups * in,
						to + ROOM - b - groups * out, groups * in);
			}
	}
	munmap(from - ROOM, 3 * ROOM);
	munmap(to - ROOM, 3 * ROOM);
}

/* Every number there is, at every place of a step. */
static void test_every_number(void **state)
{
	static uint8_t from[8 * 65536], to[16 * 65536], want[16 * 65536];

	for (uint32_t convert = 1; convert < IMAGE_CONVERTS; convert++)
		for (uint32_t place = 0; place < 4; place++) {
			const struct reference_row *row = &reference_rows[convert];
			const uint32_t groups = sizeof(from) / 8;
			const uint32_t bytes = groups * place_convert_needs(convert);
			uint32_t out;

			memset(from, 0x3c, sizeof(from));
			for (uint32_t n = 0; n < groups; n++)
				for (uint32_t b = 0; b < row->in; b++) {
					const uint32_t at = n * 8 * place_convert_needs(convert) +
							    place % (64 / row->out) * row->in + b;
					uint8_t *byte = &from[at / 8];

					/* the 16 bits of n, again and again */
					*byte = (uint8_t)((*byte & ~(1u << at % 8)) |
							  (n >> b % 16 & 1) << at % 8);
				}
			out = reference_convert(convert, want, from, bytes);
			host_convert(convert, to, from, bytes);
			assert_memory_equal(to, want, out);
		}
}

/* Numbers known from elsewhere: RFC 4175's picture of a pixel group, GenICam's of Mono10p, and halves. */
static void test_known_numbers(void **state)
{
	static const struct {
		uint32_t convert, bytes;
		uint8_t from[8];
		uint16_t to[4];
	} known[] = {
		{ IMAGE_CONVERT_UNPACK10_BE,
		  5,
		  { 0xff, 0xc0, 0x10, 0x08, 0x03 },
		  { 1023, 1, 2, 3 } },
		{ IMAGE_CONVERT_MONO10P, 5, { 0xff, 0x07, 0x20, 0xc0, 0x00 }, { 1023, 1, 2, 3 } },
		{ IMAGE_CONVERT_UNPACK12_BE, 3, { 0xab, 0xc1, 0x23 }, { 0xabc, 0x123 } },
		{ IMAGE_CONVERT_MONO12P, 3, { 0xbc, 0x3a, 0x12 }, { 0xabc, 0x123 } },
		{ IMAGE_CONVERT_INT8_FLOAT16,
		  4,
		  { 1, 0xff, 127, 0x80 },
		  { 0x3c00, 0xbc00, 0x57f0, 0xd800 } },
		/* 2049 and 2051 lie between two halves: to the even one */
		{ IMAGE_CONVERT_INT16BE_FLOAT16,
		  8,
		  { 8, 1, 8, 3, 0x7f, 0xff, 0x80, 0 },
		  { 0x6800, 0x6802, 0x7800, 0xf800 } },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		uint16_t to[4] = { 0 };

		host_convert(known[i].convert, (uint8_t *)to, known[i].from, known[i].bytes);
		assert_memory_equal(to, known[i].to, sizeof(to));
	}
}

/* ---- images ---- */

static void layout_convert(struct image_layout *layout, uint32_t convert)
{
	layout->convert = (uint8_t)convert;
	layout->convert_from = (uint8_t)image_convert_from(convert);
	layout->convert_to = (uint8_t)image_convert_to(convert);
}

/* Row `row` of two, of which only pixels [from, to) came: the rest is `fill`. */
static void assert_row(const struct image_layout *layout, uint32_t row, uint32_t from, uint32_t to,
		       uint8_t fill)
{
	const uint32_t in = layout->convert_from, out = layout->convert_to;
	const uint8_t *image = rig_image(&rig.view[0], 0) + row * layout->pitch / in * out;
	uint8_t sent[ROOM], want[2 * ROOM];

	for (uint32_t i = 0; i < layout->row_bytes; i++)
		sent[i] = wire_pixel(0xfffffff0, row * layout->pitch + i);
	reference_convert(layout->convert, want, sent, (uint32_t)layout->row_bytes);
	memset(want, fill, from / in * out);
	memset(want + to / in * out, fill, (layout->row_bytes - to) / in * out);
	assert_memory_equal(image, want, layout->row_bytes / in * out);
}

static void line(const struct image_layout *layout, uint32_t row, uint32_t from, uint32_t bytes)
{
	const struct wire_line lines[] = { { bytes, row,
					     from / layout->group_bytes * layout->group_pixels } };

	wire_pixels(wire_rtp(&wire, lines, 1, 0, 0, 0), 0xfffffff0, row * layout->pitch + from,
		    bytes);
	rig_wire(&rig, &wire);
}

/* 4:2:2 of 10 bits in padded rows, the first without its middle, of which some comes twice. */
static void test_video_with_holes(void **state)
{
	struct image_layout layout = wire_layout_rtp(400, 2, 2, 5, 1100);
	const uint8_t *image;
	struct gdrcap_range ranges[4];
	struct rig_sums sums;

	layout_convert(&layout, IMAGE_CONVERT_UNPACK10_BE);
	rig_create(&rig, &layout, 2, 1);
	line(&layout, 0, 0, 300);
	line(&layout, 0, 250, 100);
	line(&layout, 0, 0, 350);
	line(&layout, 1, 5, 995);
	rig_flush(&rig);
	sums = rig_sums(&rig, 0, 1);
	assert_int_equal(sums.bytes, 350 + 995);
	assert_int_equal(sums.pieces, 70 + 199);
	assert_int_equal(sums.duplicate, 1);
	assert_row(&layout, 0, 0, 350, 0xa5);
	assert_row(&layout, 1, 5, 1000, 0xa5);
	assert_int_equal(host_place_close(NULL, &rig.view[0], 0, 1, 0, 0x11), 0);
	assert_row(&layout, 0, 0, 350, 0x11);
	assert_row(&layout, 1, 5, 1000, 0x11);
	/* padding is left alone */
	image = rig_image(&rig.view[0], 0);
	for (uint32_t i = 1600; i < 1760; i++)
		assert_int_equal(image[i], 0xa5);
	assert_int_equal(rig.view[0].shared->closed[0].bytes, 350 + 995);
	/* of the buffer, too */
	assert_int_equal(
		image_bits_missing(&layout, rig.view[0].present_host, layout.pieces, ranges, 4), 2);
	assert_int_equal(ranges[0].from, 560);
	assert_int_equal(ranges[0].bytes, 1040);
	assert_int_equal(ranges[1].from, 1760);
	assert_int_equal(ranges[1].bytes, 8);
	rig_destroy(&rig);
}

/* A packet that ends within a group is a misfit, also where a sender's last piece may be shorter. */
static void test_groups_are_whole(void **state)
{
	struct image_layout layout = wire_layout_gvsp(1000, 500);
	const uint8_t *image;
	uint8_t sent[500], want[800];

	layout.partial = 1;
	layout.known = 0;
	layout_convert(&layout, IMAGE_CONVERT_MONO10P);
	rig_create(&rig, &layout, 2, 1);
	for (uint32_t bytes = 1; bytes <= 11; bytes++) {
		wire_pixels(wire_gvsp(&wire, &wire_plain, 0, bytes % 5 ? 1 : bytes / 5, 1,
				      WIRE_DATA, bytes),
			    1, 0, bytes);
		rig_wire(&rig, &wire);
	}
	rig_flush(&rig);
	assert_int_equal(rig_frames(&rig, PLACE_MISFIT), 9);
	assert_int_equal(rig_frames(&rig, PLACE_PLACED), 2);
	image = rig_image(&rig.view[0], 0);
	for (uint32_t i = 0; i < 10; i++)
		sent[i] = wire_pixel(1, i);
	reference_convert(layout.convert, want, sent, 10);
	assert_memory_equal(image, want, 8);
	assert_int_equal(image[8], 0xa5);
	assert_memory_equal(rig_image(&rig.view[0], 1), want, 16);
	assert_int_equal(rig_image(&rig.view[0], 1)[16], 0xa5);
	rig_destroy(&rig);
}

/* Whole images by each conversion, through several workers. */
static void test_each_conversion(void **state)
{
	for (uint32_t convert = 1; convert < IMAGE_CONVERTS; convert++) {
		const uint32_t in = image_convert_from(convert);
		struct image_layout layout = wire_layout_counter(37, in * 61);
		uint8_t sent[ROOM], want[4 * ROOM];

		layout_convert(&layout, convert);
		rig_create(&rig, &layout, 4, 2);
		for (uint32_t k = 0; k < 3 * layout.pieces; k++) {
			wire_counter(&wire, &layout, k, 0);
			rig_wire(&rig, &wire);
		}
		rig_flush(&rig);
		assert_int_equal(rig_frames(&rig, PLACE_PLACED), 3 * layout.pieces);
		for (uint32_t s = 0; s < 3; s++)
			for (uint32_t p = 0; p < layout.pieces; p++) {
				const uint64_t at = p * layout.piece;
				const uint64_t number = rig.view[0].shared->head[s].number;

				wire_pixels(sent, number, at, layout.piece);
				reference_convert(convert, want, sent, layout.piece);
				assert_memory_equal(rig_image(&rig.view[0], s) +
							    at / in * image_convert_to(convert),
						    want, 61 * image_convert_to(convert));
			}
		rig_destroy(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_place_and_length),
		cmocka_unit_test(test_every_number),
		cmocka_unit_test(test_known_numbers),
		cmocka_unit_test(test_video_with_holes),
		cmocka_unit_test(test_groups_are_whole),
		cmocka_unit_test(test_each_conversion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
