/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plays cases of image_model.py through the CPU backend's placer and the assembler. In: u32 numbers, least
 * significant byte first; a case is PLAY_WORDS of them, then operations (enum play) with theirs. Out:
 * lines, one an operation that says something.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/place_rig.h"
#include "image/images.h"
#include "kernels/host/host_workers.h"

#define PLAY_SLOT_SHIFT 9u
#define PLAY_FRAMES 64u /* a burst, at most */
#define PLAY_HELD 16u

enum play { PLAY_END, PLAY_FRAME, PLAY_BURST, PLAY_LATER, PLAY_TAKE, PLAY_RELEASE };

struct play_case {
	uint32_t size, row, pitch, piece, partial, known, late, first, wrap, counts_numbers, ring,
		open, timeout, linger, fill, drop_incomplete, drop_oldest, convert, legs;
};

static struct {
	struct rig_images images;
	struct gdrcap_images out;
	struct burst_ring_view ring;
	struct frame_desc desc[PLAY_FRAMES];
	struct place_record record[PLAY_FRAMES] __attribute__((aligned(16)));
	uint8_t frames[PLAY_FRAMES << PLAY_SLOT_SHIFT];
	uint32_t count;
	uint64_t now;
	const struct gdrcap_image *held[PLAY_HELD];
	uint32_t holds;
} play;

static int play_close(void *context, uint32_t slot, uint32_t use, uint32_t pieces, int fill)
{
	return host_place_close(NULL, &play.images.view, slot, use, pieces, fill);
}

static int play_close_whole(void *context, const struct place_whole *images, uint32_t count)
{
	return host_place_close_whole(NULL, &play.images.view, images, count);
}

static void layout_of(const struct play_case *what, struct image_layout *layout)
{
	const uint32_t rest = what->size % what->pitch;

	*layout = wire_layout(IMAGE_PARSER_FIELDS, what->size, what->piece);
	layout->base = IMAGE_BASE_FRAME;
	layout->kind = wire_field(0, 1);
	layout->kind_data = 0;
	layout->kind_begin = 1;
	layout->kind_end = 2;
	layout->stream = wire_field(1, 1);
	layout->number = wire_field(2, 2);
	layout->number_first = what->first;
	layout->number_modulus = what->wrap;
	layout->late = what->late;
	layout->counts = what->counts_numbers;
	layout->place[0] = wire_field(4, 2);
	layout->place_terms = 1;
	layout->payload = 14;
	layout->length = wire_field(6, 2);
	layout->end_mark = wire_field(8, 1);
	layout->end_mark.mask = 0x80;
	layout->end_pieces = wire_field(9, 1);
	layout->timestamp = wire_field(10, 4);
	layout->row_bytes = what->row;
	layout->pitch = what->pitch;
	layout->row_pieces = (what->row + what->piece - 1) / what->piece;
	layout->pieces = what->size / what->pitch * layout->row_pieces +
			 ((rest < what->row ? rest : what->row) + what->piece - 1) / what->piece;
	layout->partial = what->partial;
	layout->convert = (uint8_t)what->convert;
	layout->convert_from = (uint8_t)image_convert_from(what->convert);
	layout->convert_to = (uint8_t)image_convert_to(what->convert);
	layout->known = what->known;
	layout->legs = what->legs;
}

static void play_begin(const struct play_case *what)
{
	struct image_layout layout;
	const struct assembler_config config = { .view = &play.images.view,
						 .open = what->open,
						 .timeout = what->timeout,
						 .linger = what->linger,
						 .fill = (int)what->fill,
						 .drop_incomplete = what->drop_incomplete,
						 .drop_oldest = what->drop_oldest,
						 .close = play_close,
						 .close_whole = play_close_whole };
	struct assembler_config here = config;

	memset(&play, 0, sizeof(play));
	layout_of(what, &layout);
	rig_images_create(&play.images, &layout, what->ring);
	memset(play.images.view.shared, 0, sizeof(*play.images.view.shared));
	here.data = play.images.view.images;
	images_init(&play.out, &here, &kernel_host_ops, NULL, "play");
	play.ring = (struct burst_ring_view){ .desc = play.desc,
					      .records = (struct frame_record *)play.record,
					      .frames = play.frames,
					      .frames_bytes = sizeof(play.frames),
					      .desc_mask = PLAY_FRAMES - 1,
					      .slot_shift = PLAY_SLOT_SHIFT };
}

static void play_burst(void)
{
	const struct host_work work = { .places = &play.images.view, .place_count = 1, .step = 1 };
	const uint32_t records =
		host_burst_place(&play.ring, &work, 0, burst_word(0, 0, play.count, 0));

	printf("burst ");
	for (uint32_t r = 0; r < records; r++)
		for (uint32_t f = 0; f < play.record[r].count; f++)
			putchar("PDCLNMF"[play.record[r].outcome]);
	putchar('\n');
	for (uint32_t r = 0; r < records; r++)
		assembler_add(&play.out.assembler, play.now, &play.record[r]);
	(void)assembler_round(&play.out.assembler, play.now, play.now);
	play.count = 0;
}

static void play_take(void)
{
	const struct image_layout *layout = &play.images.view.layout;
	const struct gdrcap_image *image;

	if (gdrcap_image_poll(&play.out, &image, 1) != 1) {
		puts("none");
		return;
	}
	printf("image %" PRIu64 " %" PRIu64 " %u %" PRIu64 " %" PRIu64 " %u %u %" PRIu64 " %" PRIu64
	       " %" PRIu64 " %" PRIu64 " ",
	       image->number, image->stream_id, image->end, image->bytes, image->placed,
	       image->pieces, image->received, image->skipped, image->first_time, image->last_time,
	       image->timestamp);
	for (uint32_t p = 0; p < play.images.view.layout.pieces; p++)
		putchar('0' + (int)(image->present[p / 32] >> p % 32 & 1));
	putchar(' ');
	for (uint64_t i = 0; i < image_in_buffer(layout, layout->bytes); i++)
		printf("%02x", image->data[i]);
	putchar('\n');
	play.held[play.holds++] = image;
}

static void play_release(uint32_t which)
{
	gdrcap_image_release(&play.out, &play.held[which], 1);
	memmove(&play.held[which], &play.held[which + 1],
		(--play.holds - which) * sizeof(play.held[0]));
	(void)assembler_round(&play.out.assembler, play.now, play.now);
}

static void play_end(void)
{
	struct gdrcap_image_counts c;

	if (!assembler_finish(&play.out.assembler, play.now))
		puts("not finished");
	assembler_end(&play.out.assembler, play.now);
	assembler_counts(&play.out.assembler, &c);
	printf("counts %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
	       "\n",
	       c.placed, c.duplicate, c.second_leg, c.conflict, c.late, c.no_room, c.misfit,
	       c.filtered, c.begun, c.complete, c.newer, c.timeout, c.stopped, c.dropped, c.skipped,
	       c.restarts, c.pieces_expected, c.pieces_placed, c.pieces_lost, c.bytes);
	fflush(stdout);
	rig_images_free(&play.images);
}

/* ---- input ---- */

static bool play_word(uint32_t *word)
{
	return fread(word, sizeof(*word), 1, stdin) == 1;
}

static uint32_t play_need(void)
{
	uint32_t word;

	if (!play_word(&word))
		exit(1);
	return word;
}

static void play_frame(void)
{
	const uint32_t len = play_need(), slot = play.count++;
	const uint32_t offset = (1u << PLAY_SLOT_SHIFT) - len;

	if (fread(play.frames + ((size_t)slot << PLAY_SLOT_SHIFT) + offset, 1, len, stdin) != len)
		exit(1);
	play.desc[slot] = (struct frame_desc){ .slot = slot,
					       .len = (uint16_t)len,
					       .offset = (uint16_t)offset };
}

int main(void)
{
	struct play_case what;

	while (fread(&what, sizeof(what), 1, stdin) == 1) {
		uint32_t op;

		play_begin(&what);
		while ((op = play_need()) != PLAY_END) {
			if (op == PLAY_FRAME)
				play_frame();
			else if (op == PLAY_BURST)
				play_burst();
			else if (op == PLAY_TAKE)
				play_take();
			else if (op == PLAY_RELEASE)
				play_release(play_need());
			else {
				play.now += play_need();
				(void)assembler_round(&play.out.assembler, play.now, play.now);
			}
		}
		play_end();
	}
	return 0;
}
