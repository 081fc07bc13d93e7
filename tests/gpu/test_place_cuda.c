/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images placed by CUDA, resident and launched: random orders, losses and copies, each byte and each
 * bit compared with what was sent. Usage: test_place_cuda [ROUNDS [SEED]]. 77 without a
 * GPU.
 */
#include <errno.h>

#include "../unit/convert_reference.h"
#include "place_scene.h"

#define DEFAULT_ROUNDS (8u * IMAGE_CONVERTS)
#define HEAD 50u /* bytes before the payload, of which the first 14 are Ethernet's */
#define IMAGES 16u

static struct kernel_device *cuda;
static uint64_t images_compared, bytes_compared;

/* Byte `at` of image `number`. */
static uint8_t image_byte(uint64_t number, uint64_t at)
{
	const uint64_t word =
		(at / 8 + 1) * 0x9e3779b97f4a7c15u ^ (number + 1) * 0xd6e8feb86659fd93u;

	return (uint8_t)(word >> 8 * (at % 8) ^ word >> 17);
}

static void put(uint8_t *at, uint64_t value, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

static struct image_field field(uint32_t at, uint32_t bytes, uint64_t times)
{
	return (struct image_field){ .at = (uint16_t)at,
				     .bytes = (uint8_t)bytes,
				     .mask = UINT64_MAX,
				     .divide = 1,
				     .times = times };
}

/* A number, and which piece of the image: frames of one piece. */
static void layout_counter(struct image_layout *layout, uint32_t convert, uint32_t piece,
			   uint64_t bytes)
{
	*layout = (struct image_layout){
		.base = IMAGE_BASE_FRAME,
		.parser = IMAGE_PARSER_FIELDS,
		.kind_data = 0,
		.kind_begin = UINT64_MAX,
		.kind_end = UINT64_MAX,
		.number = field(14, 8, 1),
		.late = 64,
		.counts = 1,
		.place = { field(22, 4, piece) },
		.place_terms = 1,
		.payload = HEAD,
		.bytes = bytes,
		.row_bytes = bytes,
		.pitch = bytes,
		.piece = piece,
		.row_pieces = (uint32_t)((bytes + piece - 1) / piece),
		.pieces = (uint32_t)((bytes + piece - 1) / piece),
		.known = 1,
		.convert = (uint8_t)convert,
		.convert_from = (uint8_t)image_convert_from(convert),
		.convert_to = (uint8_t)image_convert_to(convert),
	};
}

/* Lines of pixels with padding behind them: frames of many pieces, several lines each. */
static void layout_lines(struct image_layout *layout, uint32_t convert, uint32_t width,
			 uint32_t height)
{
	/* a pixel group: a group of the conversion, or five bytes */
	const uint32_t group = convert ? image_convert_from(convert) : 5;

	layout_counter(layout, convert, group, 0);
	layout->parser = IMAGE_PARSER_RTP_RAW;
	layout->base = IMAGE_BASE_FRAME;
	layout->number.bytes = 0;
	layout->place_terms = 0;
	layout->width = width;
	layout->height = height;
	layout->group_pixels = 2;
	layout->group_bytes = group;
	layout->row_bytes = width / 2 * group;
	layout->pitch = layout->row_bytes + (convert ? 7 * group : 27);
	layout->bytes = layout->pitch * height;
	layout->row_pieces = width / 2;
	layout->pieces = width / 2 * height;
}

/* A frame of the image's pieces from *piece on, which moves on; returns its length. */
static uint32_t packet_write(const struct image_layout *layout, uint8_t *frame, uint64_t number,
			     uint32_t *piece, uint32_t room)
{
	const uint32_t most = room / layout->piece;
	uint32_t n[2], lines, at;

	if (layout->parser == IMAGE_PARSER_FIELDS) {
		const uint64_t place = (uint64_t)*piece * layout->piece;
		const uint32_t bytes = image_piece_bytes(layout, *piece);

		put(frame + 14, number, 8);
		put(frame + 22, *piece, 4);
		for (uint32_t b = 0; b < bytes; b++)
			frame[HEAD + b] = image_byte(number, place + b);
		++*piece;
		return HEAD + bytes;
	}
	/* what is left of the line, and of the next one what there is room for */
	n[0] = layout->row_pieces - *piece % layout->row_pieces;
	n[1] = 0;
	if (n[0] >= most)
		n[0] = most;
	else if (*piece + n[0] < layout->pieces)
		n[1] = most - n[0] < layout->row_pieces ? most - n[0] : layout->row_pieces;
	lines = n[1] ? 2 : 1;
	frame[0] = 0x80;
	put(frame + 4, number, 4);
	at = 14 + 6 * lines;
	for (uint32_t l = 0; l < lines; l++) {
		uint8_t *header = frame + 14 + 6 * l;

		put(header, n[l] * layout->piece, 2);
		put(header + 2, *piece / layout->row_pieces, 2);
		put(header + 4, *piece % layout->row_pieces * 2, 2);
		if (l + 1 < lines)
			header[4] |= 0x80;
		for (uint32_t b = 0; b < n[l] * layout->piece; b++)
			frame[at++] = image_byte(number, image_piece_place(layout, *piece) + b);
		*piece += n[l];
	}
	return at;
}

struct sent {
	uint32_t first, last; /* pieces [first, last) */
	uint32_t image, len;
	bool lost;
};

/* Frames of IMAGES images in slots, in an order of their own; returns how many there are. */
static uint32_t frames_make(struct place_scene *s, struct sent *sent, uint64_t *random,
			    uint64_t first_number, uint32_t room)
{
	const struct image_layout *layout = &s->view.layout;
	uint32_t count = 0;

	for (uint32_t i = 0; i < IMAGES; i++)
		for (uint32_t piece = 0; piece < layout->pieces;) {
			uint8_t *frame = s->host_frames + ((size_t)count << s->slot_shift) + 128;
			const uint32_t first = piece;
			const uint32_t len =
				packet_write(layout, frame, first_number + i, &piece, room);

			sent[count] = (struct sent){ first, piece, i, len,
						     place_random(random) % 50 == 0 };
			s->desc[count] = (struct frame_desc){ count, (uint16_t)len, 128 };
			count++;
		}
	return count;
}

static void shuffle(struct place_scene *s, uint32_t *order, uint32_t count, uint64_t *random)
{
	struct frame_desc *desc = malloc(s->descs * sizeof(*desc));

	for (uint32_t i = count - 1; i; i--) {
		const uint32_t far = i < 700 ? i : 700,
			       j = i - (uint32_t)(place_random(random) % (far + 1));
		const uint32_t other = order[i];

		order[i] = order[j];
		order[j] = other;
	}
	memcpy(desc, s->desc, s->descs * sizeof(*desc));
	for (uint32_t i = 0; i < count; i++)
		s->desc[i] = desc[order[i]];
	free(desc);
}

/* Piece `p` of image `number` as it lies in the buffer; returns its bytes. */
static uint32_t piece_in_buffer(const struct image_layout *layout, uint64_t number, uint32_t p,
				uint8_t want[4 * FRAME_MAX_BYTES])
{
	const uint32_t bytes = image_piece_bytes(layout, p);
	uint8_t sent[FRAME_MAX_BYTES];

	for (uint32_t b = 0; b < bytes; b++)
		sent[b] = image_byte(number, image_piece_place(layout, p) + b);
	return reference_convert(layout->convert, want, sent, bytes);
}

/* Closes image buffer `slot`, and compares it with what was sent of image `image`. */
static bool image_compare(struct place_scene *s, uint32_t slot, const uint32_t *want,
			  uint64_t number)
{
	const struct place_view *view = &s->view;
	const struct image_layout *layout = &view->layout;
	const uint32_t use = view->shared->head[slot].use;
	static uint8_t piece[4 * FRAME_MAX_BYTES];
	uint8_t *image = malloc(view->stride);
	uint32_t pieces = 0;
	bool same;

	if (s->ops->place_close(s->device, view, slot, use, 0, 0x77)) {
		fprintf(stderr, "close: %s\n", kernel_error());
		return false;
	}
	while (__atomic_load_n(&view->shared->closed[slot].use, __ATOMIC_ACQUIRE) != use)
		;
	s->ops->copy_out(s->device, image, view->images + slot * view->stride, view->stride);
	same = !memcmp(view->present_host + (size_t)slot * view->present_words, want,
		       4ull * view->present_words);
	if (!same)
		fprintf(stderr, "image %llu: the bitmap is wrong\n", (unsigned long long)number);
	for (uint32_t p = 0; p < layout->pieces && same; p++) {
		const uint64_t place = image_in_buffer(layout, image_piece_place(layout, p));
		const uint32_t bytes = piece_in_buffer(layout, number, p, piece);
		const bool there = want[p / 32] >> p % 32 & 1;

		pieces += there;
		for (uint32_t b = 0; b < bytes && same; b++) {
			const uint8_t expected = there ? piece[b] : 0x77;

			same = image[place + b] == expected;
			if (!same)
				fprintf(stderr,
					"image %llu, piece %u, byte %u: %02x, expected %02x\n",
					(unsigned long long)number, p, b, image[place + b],
					expected);
		}
	}
	for (uint64_t b = s->image_bytes; b < view->stride && same; b++)
		same = image[b] == PLACE_GUARD;
	if (same && view->shared->closed[slot].pieces != pieces) {
		fprintf(stderr, "image %llu: %u pieces counted, %u sent\n",
			(unsigned long long)number, view->shared->closed[slot].pieces, pieces);
		same = false;
	}
	images_compared++;
	bytes_compared += s->image_bytes;
	free(image);
	return same;
}

/* Publishes `count` frames in bursts of any size; adds up the outcomes of frames and the pieces. */
static bool play(struct place_scene *s, uint32_t count, uint64_t *random,
		 uint64_t frames[PLACE_OUTCOMES], uint64_t *pieces)
{
	const time_t until = time(NULL) + 60;
	uint32_t next = 0, records;

	memset(frames, 0, PLACE_OUTCOMES * sizeof(*frames));
	*pieces = 0;
	while (next < count || s->collected < s->published) {
		const struct place_record *first;

		if (next < count && s->published - s->collected < s->bursts) {
			const uint32_t most =
				1 + (uint32_t)(place_random(random) % BURST_FRAMES_MAX);
			const uint32_t n = most < count - next ? most : count - next;

			scene_publish(s, n);
			next += n;
		}
		first = scene_collect(s, &records);
		for (uint32_t r = 0; first && r < records; r++) {
			const struct place_record *record = scene_record(s, first, r);

			frames[record->outcome] += record->count;
			*pieces += record->pieces;
		}
		if (time(NULL) > until || s->ops->running(s->workers) <= 0) {
			fprintf(stderr, "hangs: %s\n", kernel_error());
			return false;
		}
	}
	return true;
}

/* Copies with another bit, of frames that were placed: each is a conflict, and changes nothing. */
static bool others_play(struct place_scene *s, const struct sent *sent, uint32_t count,
			uint32_t total, uint64_t *random)
{
	uint64_t frames[PLACE_OUTCOMES], pieces;
	uint32_t others = 0;

	for (uint32_t i = 0; i < count && total + others < s->descs; i++) {
		const uint32_t slot = count + others;
		uint8_t *frame = s->host_frames + ((size_t)slot << s->slot_shift);

		if (sent[i].lost || place_random(random) % 8)
			continue;
		memcpy(frame, s->host_frames + ((size_t)i << s->slot_shift),
		       (size_t)1 << s->slot_shift);
		frame[128 + sent[i].len - 1] ^= 0x10;
		s->desc[total + others] = (struct frame_desc){ slot, (uint16_t)sent[i].len, 128 };
		others++;
	}
	s->ops->copy_in(cuda, s->frames, s->host_frames, (size_t)(count + others) << s->slot_shift);
	if (!play(s, others, random, frames, &pieces))
		return false;
	if (frames[PLACE_CONFLICT] != others || pieces)
		fprintf(stderr, "%llu of %u frames with another bit are conflicts, %llu pieces\n",
			(unsigned long long)frames[PLACE_CONFLICT], others,
			(unsigned long long)pieces);
	return frames[PLACE_CONFLICT] == others && !pieces;
}

static bool round_play(const struct image_layout *layout, bool resident, uint32_t workers,
		       uint64_t seed, uint32_t room)
{
	struct place_scene s = { .ops = &kernel_cuda_ops,
				 .device = cuda,
				 .gpu = true,
				 .slot_shift = 11,
				 .descs = 32768,
				 .bursts = 1024,
				 .images = IMAGES };
	struct sent *sent = calloc(s.descs, sizeof(*sent));
	uint32_t *order = calloc(s.descs, sizeof(*order)), *want;
	uint64_t random = seed, frames[PLACE_OUTCOMES], pieces = 0, wanted = 0;
	uint32_t count, total = 0, copies = 0;
	bool good;

	scene_create(&s, layout);
	count = frames_make(&s, sent, &random, 1000, room);
	want = calloc((size_t)IMAGES * s.view.present_words, 4);
	for (uint32_t i = 0; i < count; i++) {
		if (sent[i].lost)
			continue;
		order[total++] = i;
		if (place_random(&random) % 40 == 0) {
			order[total++] = i;
			copies++;
		}
		for (uint32_t p = sent[i].first; p < sent[i].last; p++)
			want[sent[i].image * s.view.present_words + p / 32] |= 1u << p % 32;
		wanted += sent[i].last - sent[i].first;
	}
	s.ops->copy_in(cuda, s.frames, s.host_frames, (size_t)count << s.slot_shift);
	shuffle(&s, order, total, &random);
	good = !scene_start(&s, workers, resident, room);
	good = good && play(&s, total, &random, frames, &pieces);
	/* two copies of a frame of many pieces at the same time may each place some */
	if (good && (frames[PLACE_PLACED] + frames[PLACE_DUPLICATE] != total ||
		     frames[PLACE_DUPLICATE] > copies ||
		     (layout->parser == IMAGE_PARSER_FIELDS && frames[PLACE_DUPLICATE] != copies) ||
		     pieces != wanted)) {
		fprintf(stderr,
			"placed %llu of %u, duplicates %llu of %u, conflicts %llu, late %llu, no room "
			"%llu, misfits %llu, filtered %llu; pieces %llu of %llu\n",
			(unsigned long long)frames[PLACE_PLACED], total - copies,
			(unsigned long long)frames[PLACE_DUPLICATE], copies,
			(unsigned long long)frames[PLACE_CONFLICT],
			(unsigned long long)frames[PLACE_LATE],
			(unsigned long long)frames[PLACE_NO_ROOM],
			(unsigned long long)frames[PLACE_MISFIT],
			(unsigned long long)frames[PLACE_FILTERED], (unsigned long long)pieces,
			(unsigned long long)wanted);
		good = false;
	}
	good = good && others_play(&s, sent, count, total, &random);
	for (uint32_t slot = 0; slot < IMAGES && good; slot++) {
		const uint64_t number = s.view.shared->head[slot].number;

		good = number - 1000 < IMAGES &&
		       image_compare(&s, slot, want + (number - 1000) * s.view.present_words,
				     number);
	}
	if (s.workers)
		good = scene_stop(&s) && good;
	scene_destroy(&s);
	free(sent);
	free(order);
	free(want);
	return good;
}

int main(int argc, char **argv)
{
	const uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : DEFAULT_ROUNDS;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	const int ret = kernel_cuda_ops.open(0, &cuda);
	bool good = true;

	if (ret) {
		printf("skipped: %s\n", kernel_error());
		return ret == -ENODEV ? 77 : 1;
	}
	cudaSetDevice(0);
	for (uint32_t r = 0; r < rounds && good; r++) {
		struct image_layout layout;
		const uint32_t workers = 1 + (uint32_t)(place_random(&seed) % 24);
		/* half of the rounds by each conversion in turn */
		const uint32_t convert = r & 4 ? r / 8 % IMAGE_CONVERTS : IMAGE_CONVERT_NONE;
		const uint32_t group = image_convert_from(convert);
		const uint32_t piece =
			group * (1 + (uint32_t)(place_random(&seed) % (1500 / group)));

		if (r & 2)
			layout_lines(&layout, convert,
				     20 + 2 * (uint32_t)(place_random(&seed) % 800), 60);
		else
			layout_counter(&layout, convert, piece,
				       (uint64_t)piece * (100 + place_random(&seed) % 1500) +
					       place_random(&seed) % (piece / group) * group);
		good = round_play(&layout, r & 1, workers, seed,
				  r & 2 ? 200 + (uint32_t)(place_random(&seed) % 1200) : piece);
		if (!good)
			fprintf(stderr, "round %u, %s, %u blocks\n", r,
				r & 1 ? "resident" : "launched", workers);
	}
	printf("%llu images, %llu bytes compared\n", (unsigned long long)images_compared,
	       (unsigned long long)bytes_compared);
	kernel_cuda_ops.close(cuda);
	return good ? 0 : 1;
}
