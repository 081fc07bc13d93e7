/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend places images: each byte, each bit, each count, through real burst rings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place_rig.h"

static struct place_rig rig;
static struct wire wire;

/* The image in `slot` is `number`'s, whole; its padding was not written. */
static void assert_image(const struct place_view *view, uint32_t slot, uint64_t number)
{
	const struct image_layout *layout = &view->layout;
	const uint8_t *image = rig_image(view, slot);

	for (uint64_t i = 0; i < layout->bytes; i++) {
		const uint8_t want =
			i % layout->pitch < layout->row_bytes ? wire_pixel(number, i) : 0xa5;

		if (image[i] != want)
			fail_msg("image %llu, byte %llu: %02x, not %02x",
				 (unsigned long long)number, (unsigned long long)i, image[i], want);
	}
	for (uint32_t p = 0; p < layout->pieces; p++)
		assert_true(rig_present(view, view->present, slot, p));
}

static void test_gvsp_images(void **state)
{
	const struct image_layout layout = wire_layout_gvsp(10000, 1364);

	rig_create(&rig, &layout, 8, 2);
	for (uint64_t block = 65534; block < 65534 + 4; block++) {
		const uint64_t number = block > 65535 ? block - 65535 : block;

		for (uint32_t id = 0; id < layout.pieces + 2; id++) {
			wire_gvsp_packet(&wire, &layout, 0, number, id);
			rig_wire(&rig, &wire);
		}
	}
	rig_flush(&rig);
	assert_int_equal(rig_frames(&rig, PLACE_PLACED), 4 * (layout.pieces + 2));
	for (uint32_t s = 0; s < 4; s++) {
		const struct place_head *head = &rig.view[0].shared->head[s];
		const struct rig_sums sums = rig_sums(&rig, s, 1);
		const uint64_t number = s > 1 ? s - 1 : 65534 + s;

		assert_int_equal(head->number, 65534 + s);
		assert_int_equal(head->timestamp, 1000 * number);
		assert_int_equal(head->fields[0], 640);
		assert_int_equal(head->fields[1], 480);
		assert_int_equal(sums.bytes, 10000);
		assert_int_equal(sums.pieces, layout.pieces);
		assert_int_equal(sums.expected, layout.pieces);
		assert_int_equal(sums.ends, 1);
		assert_image(&rig.view[0], s, number);
	}
	rig_destroy(&rig);
}

/* ---- order, loss, second copies ---- */

static void shuffle(uint32_t *order, uint32_t count, uint64_t *state)
{
	for (uint32_t i = count; i > 1; i--) {
		const uint32_t j = (uint32_t)(scene_next(state) % i), was = order[i - 1];

		order[i - 1] = order[j];
		order[j] = was;
	}
}

/* Two streams of images, in any order within three images, some packets lost, some twice; by workers
 * beside each other. Bytes, bitmaps, records and counts agree. */
static void test_any_order(void **state)
{
	enum { IMAGES = 3, PIECES = 70, FRAMES = 2 * IMAGES * PIECES };
	const struct image_layout layout = wire_layout_counter(PIECES, 300);
	uint64_t random = 1;

	for (uint32_t workers = 1; workers < 5; workers++) {
		uint32_t order[FRAMES], copies[FRAMES] = { 0 }, twice = 0;

		rig_create(&rig, &layout, 8, workers);
		for (uint32_t i = 0; i < FRAMES; i++)
			order[i] = i;
		shuffle(order, FRAMES, &random);
		for (uint32_t i = 0; i < FRAMES; i++) {
			const uint32_t n = order[i], times = scene_next(&random) % 8;

			copies[n] = times == 0 ? 0 : times == 1 ? 2 : 1;
			twice += copies[n] == 2;
			for (uint32_t c = 0; c < copies[n]; c++) {
				wire_counter(&wire, &layout, n / 2, n % 2);
				rig_wire(&rig, &wire);
				if (scene_next(&random) % 32 == 0)
					rig_publish(&rig);
			}
		}
		rig_flush(&rig);
		assert_int_equal(rig_frames(&rig, PLACE_DUPLICATE), twice);
		assert_int_equal(rig_frames(&rig, PLACE_NO_ROOM), 0);
		for (uint32_t s = 0; s < 2 * IMAGES; s++) {
			const struct place_head *head = &rig.view[0].shared->head[s];
			const struct rig_sums sums = rig_sums(&rig, s, 1);
			uint32_t pieces = 0;

			for (uint32_t p = 0; p < PIECES; p++) {
				const uint32_t n = 2 * (uint32_t)(head->number * PIECES + p) +
						   (uint32_t)head->stream_id;

				assert_int_equal(
					rig_present(&rig.view[0], rig.view[0].present, s, p),
					copies[n] != 0);
				pieces += copies[n] != 0;
				for (uint32_t i = 0; i < 300; i++)
					assert_int_equal(
						rig_image(&rig.view[0], s)[300 * p + i],
						copies[n]
							? wire_pixel(head->number + head->stream_id,
								     300 * p + i)
							: 0xa5);
			}
			assert_int_equal(sums.pieces, pieces);
			assert_int_equal(sums.bytes, 300 * pieces);
			assert_int_equal(sums.placed, pieces);
		}
		rig_destroy(&rig);
	}
}

/* Lines of several rows a packet, in any order; rows are padded. */
static void test_rows_of_video(void **state)
{
	enum { ROWS = 30, LINES = 3 };
	const struct image_layout layout = wire_layout_rtp(128, ROWS, 2, 5, 352);
	uint32_t order[ROWS / LINES];
	uint64_t random = 2;

	rig_create(&rig, &layout, 2, 3);
	for (uint32_t i = 0; i < ROWS / LINES; i++)
		order[i] = i;
	shuffle(order, ROWS / LINES, &random);
	for (uint32_t i = 0; i < ROWS / LINES; i++) {
		const uint32_t row = order[i] * LINES;
		uint8_t *at = wire_udp(&wire, &wire_plain, 14 + LINES * (6 + 320));

		memset(at, 0, 14);
		at[0] = 0x80;
		at[1] = row + LINES == ROWS ? 0x80 : 0;
		frame_put32(at + 4, 90000);
		at += 14;
		for (uint32_t l = 0; l < LINES; l++, at += 6) {
			frame_put16(at, 320);
			frame_put16(at + 2, row + l);
			frame_put16(at + 4, l + 1 < LINES ? 0x8000 : 0);
		}
		for (uint32_t l = 0; l < LINES; l++)
			wire_pixels(at + 320 * l, 90000, (row + l) * 352, 320);
		rig_wire(&rig, &wire);
		rig_publish(&rig);
	}
	rig_flush(&rig);
	assert_int_equal(rig_frames(&rig, PLACE_PLACED), ROWS / LINES);
	assert_int_equal(rig_sums(&rig, 0, 1).ends, 1);
	assert_int_equal(rig_sums(&rig, 0, 1).pieces, layout.pieces);
	assert_image(&rig.view[0], 0, 90000);
	assert_int_equal(rig.view[0].shared->head[0].timestamp, 90000);
	rig_destroy(&rig);
}

/* Bytes [from, from + bytes) of a heap of 4004 bytes, each `fill`. */
static void spead_part(uint32_t from, uint32_t bytes, uint8_t fill)
{
	uint8_t *udp = wire_udp(&wire, &wire_plain, 8 + 32 + bytes);

	frame_put64(udp, 0x5304020600000004u);
	frame_put64(udp + 8, (uint64_t)0x8001 << 48 | 7);
	frame_put64(udp + 16, (uint64_t)0x8002 << 48 | 4004);
	frame_put64(udp + 24, (uint64_t)0x8003 << 48 | from);
	frame_put64(udp + 32, (uint64_t)0x8004 << 48 | bytes);
	memset(udp + 40, fill, bytes);
	rig_wire(&rig, &wire);
}

static void assert_filled(uint32_t from, uint32_t to, uint8_t fill)
{
	for (uint32_t i = from; i < to; i++)
		assert_int_equal(rig_image(&rig.view[0], 0)[i], fill);
}

/* Of pieces that are there already no byte is written again, wherever they lie in the packet. */
static void test_overlaps(void **state)
{
	const struct image_layout layout = wire_layout_spead(20000);

	rig_create(&rig, &layout, 2, 1);
	spead_part(800, 800, 1);
	spead_part(2400, 8, 2);
	spead_part(0, 4000, 3); /* in front, between, behind */
	spead_part(3200, 804, 4);
	spead_part(1000, 3000, 5);
	rig_flush(&rig);
	assert_filled(0, 800, 3);
	assert_filled(800, 1600, 1);
	assert_filled(1600, 2400, 3);
	assert_filled(2400, 2408, 2);
	assert_filled(2408, 4000, 3);
	assert_filled(4000, 4004, 4);
	assert_filled(4004, 20000, 0xa5);
	assert_int_equal(rig.records, 2);
	assert_int_equal(rig.record[0].count, 2);
	assert_int_equal(rig.record[0].pieces, 101);
	assert_int_equal(rig.record[0].bytes, 808);
	assert_int_equal(rig.record[0].past, 301);
	assert_int_equal(rig.record[0].expected, 501);
	assert_int_equal(rig.record[1].outcome, PLACE_CONFLICT);
	assert_int_equal(rig.record[1].count, 3);
	assert_int_equal(rig.record[1].pieces, 400);
	assert_int_equal(rig.record[1].bytes, 3196);
	assert_int_equal(rig.record[1].past, 501);
	assert_int_equal(rig.record[1].expected, 501);
	assert_int_equal(rig.record[1].slot, 0);
	assert_int_equal(rig.record[1].use, 1);
	rig_destroy(&rig);
}

/* ---- numbers, streams, buffers ---- */

static const struct place_record *place_one(const struct image_layout *layout, uint64_t image,
					    uint32_t piece, uint32_t stream)
{
	wire_counter(&wire, layout, image * layout->pieces + piece, stream);
	rig_wire(&rig, &wire);
	rig_flush(&rig);
	return &rig.record[rig.records - 1];
}

static void test_no_room(void **state)
{
	const struct image_layout layout = wire_layout_counter(4, 100);
	const struct place_record *record;

	rig_create(&rig, &layout, 2, 1);
	assert_int_equal(place_one(&layout, 10, 0, 0)->slot, 0);
	assert_int_equal(place_one(&layout, 11, 0, 0)->slot, 1);
	record = place_one(&layout, 12, 0, 0);
	assert_int_equal(record->outcome, PLACE_NO_ROOM);
	assert_int_equal(record->number, 12);
	assert_int_equal(record->slot, PLACE_NO_SLOT);
	assert_int_equal(record->stream, 0);
	assert_int_equal(kernel_host_ops.place_close(rig.device, &rig.view[0], 0, 1, 0, 0), 0);
	rig_give(&rig.view[0], 0);
	/* it does not begin in its middle */
	assert_int_equal(place_one(&layout, 12, 1, 0)->outcome, PLACE_NO_ROOM);
	record = place_one(&layout, 13, 0, 0);
	assert_int_equal(record->outcome, PLACE_PLACED);
	assert_int_equal(record->slot, 0);
	assert_int_equal(record->use, 2);
	assert_int_equal(place_one(&layout, 11, 1, 0)->slot, 1);
	assert_int_equal(place_one(&layout, 13, 0, 0)->outcome, PLACE_DUPLICATE);
	rig_destroy(&rig);
}

static void test_late(void **state)
{
	const struct image_layout layout = wire_layout_counter(4, 100);
	const struct place_record *record;

	rig_create(&rig, &layout, 8, 1);
	place_one(&layout, 200, 0, 3);
	place_one(&layout, 198, 0, 3);
	rig_window(&rig.view[0], 0, 199);
	assert_int_equal(place_one(&layout, 198, 1, 3)->outcome, PLACE_PLACED); /* still open */
	record = place_one(&layout, 199, 0, 3);
	assert_int_equal(record->outcome, PLACE_LATE);
	assert_int_equal(record->stream, 0);
	assert_int_equal(record->slot, PLACE_NO_SLOT);
	assert_int_equal(record->number + record->bytes + record->pieces + record->past, 0);
	assert_int_equal(place_one(&layout, 199 - 64, 0, 3)->outcome, PLACE_LATE);
	assert_int_equal(place_one(&layout, 199, 0, 4)->outcome, PLACE_PLACED); /* another stream */
	/* further behind: the sender began anew */
	assert_int_equal(place_one(&layout, 199 - 65, 0, 3)->outcome, PLACE_PLACED);
	assert_int_equal(rig.view[0].table->stream[0].newest, 199 - 65);
	rig_destroy(&rig);
}

static void test_streams_run_out(void **state)
{
	const struct image_layout layout = wire_layout_counter(4, 100);
	const struct place_record *record;

	rig_create(&rig, &layout, PLACE_STREAMS_MAX + 2, 2);
	for (uint32_t s = 0; s < PLACE_STREAMS_MAX; s++)
		assert_int_equal(place_one(&layout, 5, 0, 1000 + s)->stream, s);
	record = place_one(&layout, 5, 0, 7);
	assert_int_equal(record->outcome, PLACE_NO_ROOM);
	assert_int_equal(record->stream, PLACE_NO_STREAM);
	assert_int_equal(place_one(&layout, 5, 1, 1063)->stream, 63);
	rig_destroy(&rig);
}

/* 32 bits that wrap, from a first number, in steps both ways over the end. */
static void test_numbers_wrap(void **state)
{
	static const uint32_t numbers[] = { 0xfffffffe, 0xffffffff, 1,		0xfffffffd,
					    0,		0x80000000, 0xffffffff, 3 };
	static const uint64_t extended[] = { 0xfffffffe,  0xffffffff,  0x100000001, 0xfffffffd,
					     0x100000000, 0x180000000, 0x1ffffffff, 0x200000003 };
	struct image_layout layout = wire_layout_counter(1, 100);

	layout.number = wire_field(0, 4);
	layout.number_modulus = (uint64_t)1 << 32;
	layout.place_terms = 0;
	layout.late = 1 << 20;
	rig_create(&rig, &layout, 8, 1);
	for (uint32_t i = 0; i < 8; i++) {
		const struct place_record *record;

		/* so that it begins again */
		for (uint32_t s = 0; i == 6 && s < i; s++)
			kernel_host_ops.place_close(rig.device, &rig.view[0], s, 1, 0, -1);
		record = place_one(&layout, (uint64_t)numbers[i] << 32, 0, 0);
		assert_int_equal(record->outcome, PLACE_PLACED);
		assert_int_equal(record->slot, i);
		assert_true(rig.view[0].shared->head[i].number == extended[i]);
	}
	rig_destroy(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gvsp_images),	cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_rows_of_video),	cmocka_unit_test(test_overlaps),
		cmocka_unit_test(test_no_room),		cmocka_unit_test(test_late),
		cmocka_unit_test(test_streams_run_out), cmocka_unit_test(test_numbers_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
