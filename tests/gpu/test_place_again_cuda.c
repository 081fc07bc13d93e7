/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers that come again, on a GPU, by both engines: images that are complete and closed, and images that
 * are closed while their frames come; and what closing makes of a short piece. Argument "host": the same by the CPU backend.
 */
#include <errno.h>

#include "place_scene.h"

#define HEAD 26u /* an Ethernet header, a number, a piece */
#define PIECES 8u
#define PIECE 64u
#define IMAGES 16u
#define CLOSINGS 2000u

static struct kernel_device *device;
static uint32_t told[IMAGES]; /* the last use of each buffer that a record told */
static const struct kernel_ops *ops = &kernel_cuda_ops;

static struct image_field field(uint32_t at, uint32_t bytes, uint64_t times)
{
	return (struct image_field){ .at = (uint16_t)at,
				     .bytes = (uint8_t)bytes,
				     .mask = UINT64_MAX,
				     .divide = 1,
				     .times = times };
}

static const struct image_layout *layout_of_pieces(void)
{
	static struct image_layout layout = {
		.base = IMAGE_BASE_FRAME,
		.parser = IMAGE_PARSER_FIELDS,
		.kind_begin = UINT64_MAX,
		.kind_end = UINT64_MAX,
		.late = 64,
		.counts = 1,
		.place_terms = 1,
		.payload = HEAD,
		.bytes = PIECES * PIECE,
		.row_bytes = PIECES * PIECE,
		.pitch = PIECES * PIECE,
		.piece = PIECE,
		.row_pieces = PIECES,
		.pieces = PIECES,
		.partial = 1,
		.convert_from = 1,
		.convert_to = 1,
	};

	layout.number = field(14, 8, 1);
	layout.place[0] = field(22, 4, PIECE);
	return &layout;
}

/* Frame i, in slot i, is piece i / 2 of image 1 + i % 2; descriptors come round. */
static bool begin(struct place_scene *s, bool resident)
{
	*s = (struct place_scene){ .ops = ops,
				   .device = device,
				   .gpu = ops == &kernel_cuda_ops,
				   .slot_shift = 11,
				   .descs = 4096,
				   .bursts = 256,
				   .images = IMAGES };
	memset(told, 0, sizeof(told));
	scene_create(s, layout_of_pieces());
	for (uint32_t i = 0; i < 2 * PIECES; i++) {
		uint8_t *frame = s->host_frames + ((size_t)i << s->slot_shift) + 128;

		frame[14 + 7] = (uint8_t)(1 + i % 2);
		frame[22 + 3] = (uint8_t)(i / 2);
		memset(frame + HEAD, (int)i, PIECE);
	}
	for (uint32_t d = 0; d < s->descs; d++)
		s->desc[d] = (struct frame_desc){ d % (2 * PIECES), HEAD + PIECE, 128 };
	if (s->ops->copy_in(device, s->frames, s->host_frames, (size_t)(2 * PIECES) << 11))
		return false;
	return !scene_start(s, 2, resident, PIECE);
}

static bool end(struct place_scene *s, bool good)
{
	good = (!s->workers || scene_stop(s)) && good;
	scene_destroy(s);
	return good;
}

/* Adds up what was collected. False: it hangs. */
static bool collect(struct place_scene *s, uint64_t through, uint64_t frames[PLACE_OUTCOMES])
{
	const time_t until = time(NULL) + 60;

	while (s->collected < through) {
		uint32_t records;
		const struct place_record *first = scene_collect(s, &records);

		for (uint32_t r = 0; first && r < records; r++) {
			const struct place_record *record = scene_record(s, first, r);

			frames[record->outcome] += record->count;
			if (record->slot < IMAGES &&
			    (int32_t)(record->use - told[record->slot]) > 0)
				told[record->slot] = record->use;
		}
		if (time(NULL) > until || s->ops->running(s->workers) <= 0) {
			fprintf(stderr, "hangs: %s\n", kernel_error());
			return false;
		}
	}
	return true;
}

/* All frames of both images once. */
static bool both(struct place_scene *s, enum place_outcome outcome)
{
	uint64_t frames[PLACE_OUTCOMES] = { 0 };

	scene_publish(s, 2 * PIECES);
	if (!collect(s, s->published, frames))
		return false;
	if (frames[outcome] != 2 * PIECES)
		fprintf(stderr, "%llu of %u frames are %u\n", (unsigned long long)frames[outcome],
			2 * PIECES, outcome);
	return frames[outcome] == 2 * PIECES;
}

/* Returns when it is done. */
static bool close_whole(struct place_scene *s, uint32_t use)
{
	const struct place_whole images[2] = { { 0, use }, { 1, use } };
	uint8_t byte;

	return !s->ops->place_close_whole(device, &s->view, images, 2) &&
	       !s->ops->copy_out(device, &byte, s->view.images, 1);
}

static bool complete_images(bool resident)
{
	struct place_scene s;
	bool good = begin(&s, resident) && both(&s, PLACE_PLACED) && both(&s, PLACE_DUPLICATE);

	good = good && close_whole(&s, 2) && both(&s, PLACE_DUPLICATE);
	s.view.shared->window[0].last = 3;
	good = good && close_whole(&s, 1) && both(&s, PLACE_LATE);
	/* the sender was silent */
	s.view.shared->window[0].last = 0;
	good = good && both(&s, PLACE_PLACED) && both(&s, PLACE_DUPLICATE);
	return end(&s, good);
}

/* Closes what was opened, and gives its buffer back when it is closed. */
static uint32_t close_open(struct place_scene *s, uint32_t closing[IMAGES])
{
	uint32_t closed = 0;

	for (uint32_t slot = 0; slot < IMAGES; slot++) {
		const uint32_t was =
			__atomic_load_n(&s->view.shared->closed[slot].use, __ATOMIC_ACQUIRE);

		if (closing[slot] && was == closing[slot]) {
			closing[slot] = 0;
			place_give(s->view.shared, slot);
			closed++;
		} else if (!closing[slot] && told[slot] != was) {
			closing[slot] = told[slot];
			if (s->ops->place_close(device, &s->view, slot, told[slot], 0, -1))
				fprintf(stderr, "close: %s\n", kernel_error());
		}
	}
	return closed;
}

/*
 * Nothing says that a frame is late, so none is: a frame whose image is closed between find and ENTER looks
 * again, and begins it again.
 */
static bool closed_while_they_come(bool resident)
{
	struct place_scene s;
	uint64_t frames[PLACE_OUTCOMES] = { 0 };
	uint32_t closing[IMAGES] = { 0 }, closed = 0;
	bool good = begin(&s, resident);

	while (good && closed < CLOSINGS) {
		if (s.published - s.collected < 32)
			scene_publish(&s, 2 * PIECES);
		closed += close_open(&s, closing);
		good = collect(&s, s.published > 16 ? s.published - 16 : 0, frames);
	}
	good = good && collect(&s, s.published, frames);
	printf("%s: %u closings, frames placed %llu, duplicate %llu, late %llu, no room %llu\n",
	       resident ? "resident" : "launched", closed, (unsigned long long)frames[PLACE_PLACED],
	       (unsigned long long)frames[PLACE_DUPLICATE], (unsigned long long)frames[PLACE_LATE],
	       (unsigned long long)frames[PLACE_NO_ROOM]);
	good = good && frames[PLACE_LATE] == 0 && frames[PLACE_NO_ROOM] == 0 &&
	       frames[PLACE_PLACED] + frames[PLACE_DUPLICATE] == s.published * 2 * PIECES;
	return end(&s, good);
}

/* Places pieces 0 to 2, of which 2 is short, and a shorter copy of 1; closes the image with `expected` pieces: it has `there` of them. */
static bool short_piece(bool resident, uint32_t expected, uint32_t there)
{
	struct place_scene s;
	uint64_t frames[PLACE_OUTCOMES] = { 0 };
	uint8_t rest[2] = { 0 };
	uint32_t present = 0;
	bool good = begin(&s, resident);

	for (uint32_t i = 0; i < 3; i++)
		s.desc[i] = (struct frame_desc){ 2 * i, HEAD + PIECE - (i == 2), 128 };
	s.desc[3] = (struct frame_desc){ 2, HEAD + PIECE - 1, 128 };
	if (good)
		scene_publish(&s, 3);
	good = good && collect(&s, s.published, frames);
	if (good)
		scene_publish(&s, 1);
	good = good && collect(&s, s.published, frames) && frames[PLACE_PLACED] == 3 &&
	       frames[PLACE_DUPLICATE] == 1 &&
	       !s.ops->place_close(device, &s.view, 0, 1, expected, 0x77);
	while (good && __atomic_load_n(&s.view.shared->closed[0].use, __ATOMIC_ACQUIRE) != 1)
		good = s.ops->running(s.workers) > 0;
	present = s.view.present_host[0];
	good = good && s.view.shared->closed[0].last_bytes == (there == 3 ? PIECE - 1 : 0) &&
	       s.view.shared->closed[0].bytes == there * PIECE - (there == 3);
	good = good && !s.ops->copy_out(device, rest, s.view.images + 3 * PIECE - 2, 2) &&
	       s.view.shared->closed[0].pieces == there && present == (1u << there) - 1 &&
	       rest[0] == (there == 3 ? 4 : 0x77) && rest[1] == (there == 3 ? PLACE_GUARD : 0x77);
	if (!good)
		fprintf(stderr, "short piece, %u expected: %llu placed, bitmap %x, %02x %02x\n",
			expected, (unsigned long long)frames[PLACE_PLACED], present, rest[0],
			rest[1]);
	return end(&s, good);
}

/* A packet of two pieces and a short one, twice. */
static bool short_piece_of_several(bool resident)
{
	struct place_scene s;
	uint64_t frames[PLACE_OUTCOMES] = { 0 };
	uint8_t rest[2] = { 1, 0 };
	bool good = begin(&s, resident);

	for (uint32_t i = 0; i < 2; i++) {
		s.desc[i] = (struct frame_desc){ 0, HEAD + 2 * PIECE + 10, 128 };
		if (good)
			scene_publish(&s, 1);
		good = good && collect(&s, s.published, frames);
	}
	good = good && frames[PLACE_PLACED] == 1 && frames[PLACE_DUPLICATE] == 1 &&
	       !s.ops->place_close(device, &s.view, 0, 1, 3, -1);
	while (good && __atomic_load_n(&s.view.shared->closed[0].use, __ATOMIC_ACQUIRE) != 1)
		good = s.ops->running(s.workers) > 0;
	good = good && !s.ops->copy_out(device, rest, s.view.images + 2 * PIECE + 9, 2) &&
	       s.view.shared->closed[0].pieces == 3 &&
	       s.view.shared->closed[0].bytes == 2 * PIECE + 10 &&
	       s.view.shared->closed[0].last_bytes == 10 && rest[0] == 0 && rest[1] == PLACE_GUARD;
	if (!good)
		fprintf(stderr, "several pieces: %llu placed, %llu duplicate, %02x %02x\n",
			(unsigned long long)frames[PLACE_PLACED],
			(unsigned long long)frames[PLACE_DUPLICATE], rest[0], rest[1]);
	return end(&s, good);
}

int main(int argc, char **argv)
{
	bool good = true;
	int ret;

	if (argc > 1 && !strcmp(argv[1], "host"))
		ops = &kernel_host_ops;
	ret = ops->open(0, &device);
	if (ret) {
		printf("skipped: %s\n", kernel_error());
		return ret == -ENODEV ? 77 : 1;
	}
	if (ops == &kernel_cuda_ops)
		cudaSetDevice(0);
	for (int resident = 0; resident < 2 && good; resident++)
		good = complete_images(resident) && closed_while_they_come(resident) &&
		       short_piece(resident, 3, 3) && short_piece(resident, 0, 2) &&
		       short_piece(resident, 8, 2) && short_piece_of_several(resident);
	printf("%s\n", good ? "passed" : "FAILED");
	ops->close(device);
	return good ? 0 : 1;
}
