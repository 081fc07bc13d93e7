/* SPDX-License-Identifier: BSD-3-Clause */
/* Images closed by the CPU backend, beside workers that still place; and frames that mean them harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "kernels/host/host_workers.h"
#include "place_rig.h"
#include "test_long.h"

static struct place_rig rig;
static struct wire wire;

static void close_image_of(uint32_t slot, uint32_t use, uint32_t pieces, int fill)
{
	assert_int_equal(
		kernel_host_ops.place_close(rig.device, &rig.view[0], slot, use, pieces, fill), 0);
	assert_int_equal(rig.view[0].shared->closed[slot].use, use);
}

static void close_image(uint32_t slot, uint32_t use, int fill)
{
	close_image_of(slot, use, 0, fill);
}

/* ---- records ---- */

static const struct place_record *record_at_frame(uint32_t first)
{
	for (uint32_t r = 0; r < rig.records; r++)
		if (rig.record[r].first == first)
			return &rig.record[r];
	fail_msg("no record begins at frame %u", first);
	return NULL;
}

static void assert_record(uint32_t first, uint32_t count, uint32_t outcome, uint32_t layout)
{
	const struct place_record *record = record_at_frame(first);

	assert_int_equal(record->count, count);
	assert_int_equal(record->outcome, outcome);
	assert_int_equal(record->layout, layout);
	if (outcome == PLACE_PLACED || outcome == PLACE_DUPLICATE)
		return;
	assert_int_equal(record->slot, PLACE_NO_SLOT);
	assert_int_equal(record->stream, PLACE_NO_STREAM);
	assert_int_equal(record->use + record->bytes + record->pieces + record->past, 0);
	assert_int_equal(record->ends, 0);
	/* why, and two values of the frame */
	if (outcome == PLACE_MISFIT || outcome == PLACE_FILTERED)
		assert_in_range(record->expected, IMAGE_WHY_NONE + 1, IMAGE_WHYS - 1);
	else
		assert_int_equal(record->expected + record->number, 0);
}

/* Two kinds of images; frames of neither, cut, out of reach, wrong: each has its record. */
static void test_what_becomes_of_frames(void **state)
{
	struct image_layout layout[2] = { wire_layout_counter(10, 100),
					  wire_layout_gvsp(1000, 100) };

	memset(&rig, 0, sizeof(rig));
	rig.views = 2;
	layout[0].match.count = 1;
	layout[0].match.rule[0].fields = FRAME_MATCH_SRC_PORT;
	layout[0].match.rule[0].src_port = 40001;
	for (uint32_t v = 0; v < 2; v++)
		rig_images_create(&rig.images[v], &layout[v], 4);
	rig_start(&rig, &kernel_host_ops, 1);
	for (uint32_t i = 0; i < 3; i++) {
		wire_gvsp_packet(&wire, &layout[1], 0, 9, i + 1);
		rig_wire(&rig, &wire);
	}
	for (uint32_t i = 0; i < 2; i++) {
		wire_counter(&wire, &layout[0], i, 0);
		frame_put16(wire.at + 34, 40001);
		rig_wire(&rig, &wire);
	}
	wire.at[13] = 6;
	rig_wire(&rig, &wire);
	wire.at[13] = 0;
	wire.at[23] = 6;
	rig_wire(&rig, &wire);
	wire.at[23] = 17;
	rig_wire(&rig, &wire)->offset |= FRAME_DESC_CUT;
	rig_wire(&rig, &wire)->slot = SCENE_SLOTS;
	frame_put16(wire.at + 34, 40000);
	rig_wire(&rig, &wire); /* GVSP of status 0, block 0 */
	wire_gvsp_packet(&wire, &layout[1], 0, 9, 2);
	rig_wire(&rig, &wire);
	rig_flush(&rig);
	assert_record(0, 3, PLACE_PLACED, 1);
	assert_record(3, 2, PLACE_PLACED, 0);
	assert_record(5, 2, PLACE_FILTERED, 0);
	assert_record(7, 1, PLACE_MISFIT, 0); /* cut, out of reach: two reasons */
	assert_record(8, 1, PLACE_MISFIT, 0);
	assert_record(9, 1, PLACE_MISFIT, 1);
	assert_record(10, 1, PLACE_DUPLICATE, 1);
	assert_int_equal(rig.records, 7);
	assert_int_equal(record_at_frame(0)->bytes, 300);
	assert_int_equal(record_at_frame(0)->frame_bytes, 3 * (42 + 8 + 100));
	assert_int_equal(record_at_frame(0)->past, 3);
	rig_destroy(&rig);
}

/* Leaders tell of an image, however late they come; nobody else does. */
static void test_leaders(void **state)
{
	const struct image_layout layout = wire_layout_gvsp(1000, 100);
	const struct place_head *head;

	rig_create(&rig, &layout, 4, 1);
	head = &rig.view[0].shared->head[0];
	wire_gvsp_packet(&wire, &layout, 1, 77, 11);
	rig_wire(&rig, &wire);
	wire_gvsp_packet(&wire, &layout, 1, 77, 1);
	rig_wire(&rig, &wire);
	rig_flush(&rig);
	assert_int_equal(head->timestamp, 0);
	assert_int_equal(head->fields[0], 0);
	wire_gvsp_packet(&wire, &layout, 1, 77, 0);
	rig_wire(&rig, &wire);
	rig_flush(&rig);
	assert_int_equal(rig.record[0].count, 2);
	assert_int_equal(rig.record[0].expected, 10);
	assert_int_equal(rig.record[1].count, 1);
	assert_int_equal(rig.record[1].bytes, 0);
	assert_int_equal(head->timestamp, 77000);
	assert_int_equal(head->fields[0], 640);
	assert_int_equal(head->number, 77);
	assert_int_equal(head->use, 1);
	rig_destroy(&rig);
}

/* ---- closing ---- */

/* Only what is missing is filled, and rows' padding never; the bitmap is the CPU's. */
static void close_rows(int fill)
{
	const struct image_layout layout = wire_layout_rtp(80, 6, 2, 5, 256);
	const struct wire_line lines[] = { { 200, 1, 0 }, { 50, 3, 20 }, { 5, 5, 78 } };
	const struct place_view *view;
	uint32_t pieces = 0;

	rig_create(&rig, &layout, 2, 2);
	view = &rig.view[0];
	memset(wire_rtp(&wire, lines, 3, 0, 0, 0), 0x33, 255);
	rig_wire(&rig, &wire);
	rig_flush(&rig);
	close_image(0, 1, fill);
	for (uint32_t i = 0; i < layout.bytes; i++) {
		const uint32_t row = i / 256, at = i % 256, piece = row * 40 + at / 5;
		const bool placed =
			row == 1 || (row == 3 && at >= 50 && at < 100) || (row == 5 && at >= 195);
		const uint8_t missing = fill < 0 ? 0xa5 : (uint8_t)fill;

		if (at >= 200) {
			assert_int_equal(rig_image(view, 0)[i], 0xa5);
			continue;
		}
		assert_int_equal(rig_image(view, 0)[i], placed ? 0x33 : missing);
		assert_int_equal(rig_present(view, view->present_host, 0, piece), placed);
		pieces += placed && at % 5 == 0;
	}
	assert_int_equal(view->shared->closed[0].pieces, pieces);
	assert_int_equal(view->shared->closed[0].bytes, 5 * pieces);
	rig_destroy(&rig);
}

static void test_close_fills_what_is_missing(void **state)
{
	close_rows(0);
	close_rows(255);
	close_rows(-1);
}

/* A last piece that is shorter. */
static void test_close_counts_bytes(void **state)
{
	const struct image_layout layout = wire_layout_gvsp(1050, 100);

	rig_create(&rig, &layout, 2, 1);
	for (uint32_t id = 3; id < 12; id++) {
		wire_gvsp_packet(&wire, &layout, 0, 1, id);
		rig_wire(&rig, &wire);
	}
	rig_flush(&rig);
	close_image(0, 1, 9);
	assert_int_equal(rig.view[0].shared->closed[0].pieces, 9);
	assert_int_equal(rig.view[0].shared->closed[0].bytes, 850);
	assert_int_equal(rig_image(&rig.view[0], 0)[199], 9);
	assert_int_equal(rig_image(&rig.view[0], 0)[200], wire_pixel(1, 200));
	assert_int_equal(kernel_host_ops.place_close(rig.device, &rig.view[0], 2, 1, 0, 0),
			 -EINVAL);
	rig_destroy(&rig);
}

/* A piece that ends within itself is there if it is the image's last: else its rest is an older image's. */
static void test_close_short_piece(void **state)
{
	static const struct {
		uint32_t expected, placed;
	} cases[] = { { 13, 13 }, { 0, 12 }, { 14, 12 } };
	const struct image_layout layout = wire_layout_spead(1000);
	const uint64_t items[] = { WIRE_ITEM(1, 77), WIRE_ITEM(3, 0), WIRE_ITEM(4, 100),
				   WIRE_ITEM(2, 100) };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool there = cases[i].placed == 13;

		rig_create(&rig, &layout, 2, 1);
		wire_spead(&wire, items, 4, 100);
		rig_wire(&rig, &wire);
		rig_flush(&rig);
		close_image_of(0, 1, cases[i].expected, 0x11);
		assert_int_equal(rig.view[0].shared->closed[0].pieces, cases[i].placed);
		assert_int_equal(rig.view[0].shared->closed[0].bytes, there ? 100 : 96);
		assert_int_equal(rig.view[0].shared->closed[0].last_bytes, there ? 4 : 0);
		assert_int_equal(rig_present(&rig.view[0], rig.view[0].present_host, 0, 12), there);
		assert_int_equal(rig_image(&rig.view[0], 0)[95], 0x5a);
		assert_int_equal(rig_image(&rig.view[0], 0)[96], there ? 0x5a : 0x11);
		assert_int_equal(rig_image(&rig.view[0], 0)[103], there ? 0xa5 : 0x11);
		rig_destroy(&rig);
	}
}

/* Of a piece that is there whole a shorter copy is a duplicate, and the sender's short last packet still fits. */
static void test_short_copy_of_a_whole_piece(void **state)
{
	struct image_layout layout = wire_layout_gvsp(1050, 100);
	static const struct {
		uint32_t id, bytes, outcome;
	} frames[] = { { 1, 100, PLACE_PLACED },   { 2, 100, PLACE_PLACED },
		       { 2, 50, PLACE_DUPLICATE }, { 3, 40, PLACE_PLACED },
		       { 3, 40, PLACE_DUPLICATE }, { 4, 40, PLACE_MISFIT } };

	layout.partial = 1;
	rig_create(&rig, &layout, 2, 1);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		wire_gvsp_packet(&wire, &layout, 0, 1, frames[i].id);
		frame_put16(wire.at + 38, 16 + frames[i].bytes); /* the rest is padding */
		rig_wire(&rig, &wire);
		rig_flush(&rig);
		assert_int_equal(rig.record[rig.records - 1].outcome, frames[i].outcome);
	}
	close_image_of(0, 1, 3, 0);
	assert_int_equal(rig.view[0].shared->closed[0].pieces, 3);
	assert_int_equal(rig.view[0].shared->closed[0].bytes, 240);
	assert_int_equal(rig.view[0].shared->closed[0].last_bytes, 40);
	rig_destroy(&rig);
}

#define LITMUS_PIECES 64u
#define LITMUS_PIECE 1000u
#define LITMUS_RING 4u

/* Closes image k as soon as it is open, or a little later. */
static void litmus_close(uint64_t k, uint32_t spin)
{
	const struct place_view *view = &rig.view[0];
	const uint32_t slot = (uint32_t)(k % LITMUS_RING), use = (uint32_t)(k / LITMUS_RING + 1);

	while (place_word_use(place_load64(&view->table->slot[slot].word)) != use)
		rig_collect(&rig);
	while (spin--)
		__asm__ volatile("");
	rig_window(view, 0, k);
	close_image(slot, use, 0);
}

/* What was closed is what its bitmap says. */
static void litmus_check(uint64_t k)
{
	const struct place_view *view = &rig.view[0];
	const uint32_t slot = (uint32_t)(k % LITMUS_RING);

	for (uint32_t p = 0; p < LITMUS_PIECES; p++)
		for (uint32_t i = 0; i < LITMUS_PIECE; i += LITMUS_PIECE - 1) {
			const uint64_t at = (uint64_t)p * LITMUS_PIECE + i;

			assert_int_equal(rig_image(view, slot)[at],
					 rig_present(view, view->present_host, slot, p)
						 ? wire_pixel(k, at)
						 : 0);
		}
}

/*
 * CLOSE against ENTER: images are closed while workers place into them. What is closed is the caller's:
 * it stays as it is until the buffer is given again, however many of its packets still come.
 */
static void test_nothing_is_written_after_close(void **state)
{
	const struct image_layout layout = wire_layout_counter(LITMUS_PIECES, LITMUS_PIECE);
	uint8_t *copy = malloc(layout.bytes);
	const uint64_t images = test_cases(1000, 150);
	uint32_t cut_short = 0;
	uint64_t random = 5;

	assert_non_null(copy);
	rig_create(&rig, &layout, LITMUS_RING, 4);
	for (uint64_t k = 0; k < images; k++) {
		const uint32_t slot = (uint32_t)(k % LITMUS_RING);
		const uint32_t cut = (uint32_t)(scene_next(&random) % (LITMUS_PIECES / 8));

		/* an image's packets twice, so that many come after it is closed */
		for (uint32_t p = 0; p < 2 * LITMUS_PIECES; p++) {
			wire_counter(&wire, &layout, k * LITMUS_PIECES + p % LITMUS_PIECES, 0);
			rig_wire(&rig, &wire);
			if (p % 8 < 7)
				continue;
			rig_publish(&rig);
			if (p / 8 != cut)
				continue;
			litmus_close(k, (uint32_t)(scene_next(&random) % 4096));
			litmus_check(k);
			memcpy(copy, rig_image(&rig.view[0], slot), layout.bytes);
		}
		rig_flush(&rig);
		assert_memory_equal(copy, rig_image(&rig.view[0], slot), layout.bytes);
		cut_short += rig.view[0].shared->closed[slot].pieces < LITMUS_PIECES;
		rig.records = 0;
		rig_give(&rig.view[0], slot);
	}
	assert_true(cut_short > images / 10);
	rig_destroy(&rig);
	free(copy);
}

/* ---- hostile ---- */

#define HOSTILE_SLOTS 64u
#define HOSTILE_SHIFT 14u
#define HOSTILE_END 12288u /* of what can be touched of a slot */
#define HOSTILE_FRAMES 100000u

/* Slots of which the last page cannot be touched. */
static uint8_t *hostile_region(void)
{
	const size_t bytes = (size_t)HOSTILE_SLOTS << HOSTILE_SHIFT;
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	for (uint32_t s = 0; s < HOSTILE_SLOTS; s++)
		assert_int_equal(mprotect(at + ((size_t)s << HOSTILE_SHIFT) + HOSTILE_END, RIG_PAGE,
					  PROT_NONE),
				 0);
	return at;
}

/* Bytes that no bit stands for were not written. */
static void assert_only_pieces(const struct place_view *view, uint32_t slot)
{
	const struct image_layout *layout = &view->layout;
	const uint8_t *image = rig_image(view, slot);

	for (uint64_t i = 0; i < layout->bytes; i++) {
		const uint64_t at = i % layout->pitch;
		const uint32_t piece =
			(uint32_t)(i / layout->pitch * layout->row_pieces + at / layout->piece);

		if (image[i] != 0xa5 &&
		    (at >= layout->row_bytes || !rig_present(view, view->present, slot, piece)))
			fail_msg("slot %u: byte %llu", slot, (unsigned long long)i);
	}
}

/* Spoilt copies of `wire`, of which each ends where memory does. Counts and bytes agree; images are
 * handed out and come back meanwhile. */
static void hostile(const struct image_layout *layout, uint64_t seed)
{
	struct rig_images images;
	const struct wire whole = wire;
	const struct place_view *view = &images.view;
	const struct host_work work = { .places = view, .place_count = 1, .step = 1 };
	struct frame_desc desc[HOSTILE_SLOTS];
	struct place_record record[HOSTILE_SLOTS];
	struct burst_ring_view ring = { .desc = desc,
					.records = (struct frame_record *)record,
					.frames = hostile_region(),
					.frames_bytes = (uint64_t)HOSTILE_SLOTS << HOSTILE_SHIFT,
					.desc_mask = HOSTILE_SLOTS - 1,
					.slot_shift = HOSTILE_SHIFT };
	uint32_t frames[PLACE_OUTCOMES] = { 0 }, sum = 0;

	rig_images_create(&images, layout, 4);
	for (uint32_t n = 0; n < HOSTILE_FRAMES; n += HOSTILE_SLOTS) {
		uint32_t records, closing;

		for (uint32_t s = 0; s < HOSTILE_SLOTS; s++) {
			wire = whole;
			desc[s].len = (uint16_t)wire_spoil(&wire, &seed);
			desc[s].slot = s;
			desc[s].offset = (uint16_t)(HOSTILE_END - desc[s].len);
			memcpy(ring.frames + ((size_t)s << HOSTILE_SHIFT) + desc[s].offset, wire.at,
			       desc[s].len);
		}
		records = host_burst_place(&ring, &work, 0, burst_word(0, 0, HOSTILE_SLOTS, 0));
		for (uint32_t r = 0; r < records; r++) {
			assert_true(record[r].outcome < PLACE_OUTCOMES);
			assert_int_equal(record[r].first, sum % HOSTILE_SLOTS);
			assert_true(record[r].past <= layout->pieces);
			if (record[r].outcome == PLACE_MISFIT ||
			    record[r].outcome == PLACE_FILTERED)
				assert_in_range(record[r].expected, IMAGE_WHY_NONE + 1,
						IMAGE_WHYS - 1);
			else
				assert_true(record[r].expected <= layout->pieces);
			frames[record[r].outcome] += record[r].count;
			sum += record[r].count;
		}
		closing = (uint32_t)(wire_random(&seed) % 4);
		if (!view->table->slot[closing].word)
			continue;
		assert_only_pieces(view, closing);
		host_place_close(NULL, view, closing, 1, 0, 0xa5);
		memset(rig_image(view, closing), 0xa5, layout->bytes);
		rig_give(view, closing);
	}
	assert_int_equal(sum, (HOSTILE_FRAMES + HOSTILE_SLOTS - 1) / HOSTILE_SLOTS * HOSTILE_SLOTS);
	for (uint32_t o = 0; o < PLACE_OUTCOMES; o++)
		if (o != PLACE_LATE && !frames[o])
			fail_msg("outcome %u never came", o);
	munmap(ring.frames, ring.frames_bytes);
	rig_images_free(&images);
}

static void test_hostile(void **state)
{
	const struct wire_line lines[] = { { 500, 0, 440 }, { 600, 1, 0 }, { 5, 2, 0 } };
	const uint64_t items[] = { WIRE_ITEM(3, 800), WIRE_ITEM(1, 77), WIRE_ITEM(4, 104),
				   WIRE_ITEM(2, 9000) };
	struct image_layout layout = wire_layout_counter(10, 100);

	wire_counter(&wire, &layout, 12, 3);
	hostile(&layout, 2);
	layout = wire_layout_gvsp(10000, 1364);
	wire_gvsp_packet(&wire, &layout, 0, 7, 3);
	hostile(&layout, 3);
	wire_gvsp_packet(&wire, &layout, 1, 7, 8);
	hostile(&layout, 4);
	layout = wire_layout_rtp(640, 4, 2, 5, 1664);
	wire_rtp(&wire, lines, 3, 2, 1, 9);
	hostile(&layout, 5);
	layout = wire_layout_spead(10000);
	wire_spead(&wire, items, 4, 104);
	hostile(&layout, 6);
}

/* ---- jobs ---- */

static void assert_refused(struct place_view *view, const char *word)
{
	struct kernel_job job = { .role = KERNEL_PLACE,
				  .rings = &rig.ring.view,
				  .ring_count = 1,
				  .places = view,
				  .place_count = view ? 1 : 0 };
	struct kernel_workers *workers;

	assert_int_equal(kernel_host_ops.start(rig.device, &job, &workers), -EINVAL);
	if (!strstr(kernel_error(), word))
		fail_msg("\"%s\" does not say \"%s\"", kernel_error(), word);
}

#define REFUSED(change, word)                                                                      \
	do {                                                                                       \
		struct place_view view = rig.view[0];                                              \
                                                                                                   \
		view.change;                                                                       \
		assert_refused(&view, word);                                                       \
	} while (0)

static void test_bad_jobs_are_refused(void **state)
{
	const struct image_layout layout = wire_layout_rtp(640, 4, 2, 5, 1664);

	rig_create(&rig, &layout, 2, 1);
	assert_refused(NULL, "1 to 4");
	REFUSED(table = NULL, "missing");
	REFUSED(shared = NULL, "missing");
	REFUSED(images = NULL, "missing");
	REFUSED(present = NULL, "missing");
	REFUSED(present_host = NULL, "missing");
	REFUSED(ring = 0, "buffers");
	REFUSED(ring = PLACE_RING_MAX + 1, "buffers");
	REFUSED(stride = layout.bytes - 1, "too small");
	REFUSED(present_words--, "too small");
	REFUSED(layout.piece = 0, "pieces");
	REFUSED(layout.piece = 6, "pieces");
	REFUSED(layout.pitch = 1599, "pieces");
	REFUSED(layout.row_pieces = 0, "pieces");
	REFUSED(layout.pieces++, "pieces");
	REFUSED(layout.bytes += 1664, "pieces");
	REFUSED(layout.bytes = 0, "pieces");
	REFUSED(layout.group_pixels = 0, "groups");
	REFUSED(layout.convert = IMAGE_CONVERTS, "conversion");
	REFUSED(layout.convert = IMAGE_CONVERT_UNPACK10_BE, "conversion");
	REFUSED(layout.parser = IMAGE_PARSER_SPEAD + 1, "parser");
	REFUSED(layout.place_terms = IMAGE_TERMS_MAX + 1, "terms");
	REFUSED(layout.timestamp.at = 253, "timestamp");
	REFUSED(layout.timestamp.divide = 0, "timestamp");
	REFUSED(layout.timestamp.item = 1, "SPEAD");
	REFUSED(layout.match.count = FRAME_MATCH_RULES + 1, "rules");
	rig.view[0].layout.convert_from = 5;
	rig.view[0].layout.convert_to = 8;
	REFUSED(layout.convert = IMAGE_CONVERT_UNPACK12_BE, "conversion");
	REFUSED(layout.convert = IMAGE_CONVERT_UNPACK10_BE, "no whole groups"); /* pitch 1664 */
	rig.ring.view.records = NULL;
	REFUSED(ring = 2, "records");
	rig.ring.view.records = rig.ring.records;
	rig.ring.view.generation = rig.stop;
	REFUSED(ring = 2, "poison");
	rig.ring.view.generation = NULL;
	rig_destroy(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_becomes_of_frames),
		cmocka_unit_test(test_leaders),
		cmocka_unit_test(test_close_fills_what_is_missing),
		cmocka_unit_test(test_close_counts_bytes),
		cmocka_unit_test(test_close_short_piece),
		cmocka_unit_test(test_short_copy_of_a_whole_piece),
		cmocka_unit_test(test_nothing_is_written_after_close),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_bad_jobs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
