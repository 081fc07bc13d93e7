/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Very many images with loss, copies and another order, placed, assembled and handed out: every byte and
 * every bit of each, and the counts by cause, against what was sent, by arithmetic of the test's own.
 * Usage: test_place_million_cuda [IMAGES [SEED [host]]]; 1000000 is the real thing. 77 without a GPU.
 */
#include <errno.h>

#include "config/image_load.h"
#include "image_plan.h"

#define DEFAULT_IMAGES 20000u
#define SCENES 16u /* each with a layout, an engine and a number of workers of its own */
#define SLOT_SHIFT 10u
#define BURST_MOST 64u
#define UNDER_WAY 32u  /* bursts: fewer images than there are buffers */
#define LATE_AGAIN 16u /* copies of images that were handed out, before each part */
#define NEVER (1ull << 62)
#define STUCK_S 60

/* ---- what comes ---- */

/* Compares the images that wait for it, and gives them back. */
static int images_compare(struct million *m)
{
	const int ret = truth_compare(&m->truth, m->compare, m->waiting, m->found);

	gdrcap_image_release(m->images, m->taken, m->waiting);
	m->waiting = 0;
	return ret;
}

/* One that was handed out: what is said of it. */
static void image_take(struct million *m, const struct gdrcap_image *image)
{
	const uint32_t stream = (uint32_t)image->stream_id;
	const uint64_t i = (image->number - m->first_number) * m->streams + stream;
	const struct sent_image *sent = i < m->count ? &m->sent[i] : NULL;
	uint32_t pieces;

	if (stream >= m->streams || !sent ||
	    (m->last[stream] && image->number <= m->last[stream])) {
		m->wrong_images++;
		return;
	}
	pieces = (uint32_t)__builtin_popcountll(sent->there);
	if (image->end != (enum gdrcap_image_end)sent->end || image->received != pieces ||
	    image->pieces != m->truth.pieces || image->bytes != m->truth.bytes)
		m->wrong_images++;
	m->last[stream] = image->number;
	m->handed++;
	m->compare[m->waiting] = (struct truth_image){
		.id = (uint64_t)stream << 48 | image->number,
		.there = sent->there,
		.data = image->data,
		.present = image->present,
	};
	m->taken[m->waiting++] = image;
}

static int round_once(struct million *m)
{
	const struct place_record *first;
	const struct gdrcap_image *image;
	uint32_t records;
	int ret = 0;

	first = scene_collect(&m->s, &records);
	for (uint32_t r = 0; first && r < records; r++)
		assembler_add(&m->images->assembler, 1, scene_record(&m->s, first, r));
	assembler_round(&m->images->assembler, 1, 1);
	while (!ret && gdrcap_image_poll(m->images, &image, 1) == 1) {
		image_take(m, image);
		if (m->waiting == COMPARE_AT_ONCE)
			ret = images_compare(m);
	}
	if (!ret && !first && m->waiting)
		ret = images_compare(m);
	return ret;
}

/* Sends what was ordered, and waits until all of it was looked at. */
static int part_play(struct million *m)
{
	const time_t until = time(NULL) + STUCK_S;
	struct place_scene *s = &m->s;
	uint32_t next = 0;
	int ret = 0;

	while (!ret && (next < m->orders || s->collected < s->published)) {
		while (next < m->orders && s->published - s->collected < UNDER_WAY) {
			const uint32_t left = m->orders - next;
			uint32_t n = 1 + (uint32_t)(place_random(&m->random) % BURST_MOST);

			n = n < left ? n : left;
			for (uint32_t f = 0; f < n; f++) {
				const uint32_t slot = m->order[next++].slot;
				const uint32_t piece = m->write[slot].piece;
				const uint64_t rest =
					m->truth.bytes - (uint64_t)piece * m->truth.piece;

				s->desc[(s->next_desc + f) & (s->descs - 1)] = (struct frame_desc){
					slot,
					(uint16_t)(m->truth.payload +
						   (rest < m->truth.piece ? rest : m->truth.piece)),
					TRUTH_FRAME_AT
				};
			}
			scene_publish(s, n);
		}
		ret = round_once(m);
		if (time(NULL) > until || s->ops->running(s->workers) <= 0) {
			fprintf(stderr, "hangs: %s\n", kernel_error());
			ret = -1;
		}
	}
	return ret;
}

/* Copies of frames of images that are gone: nothing of them may be written. */
static int again_play(struct million *m, uint32_t from)
{
	uint32_t slots = 0;

	m->orders = 0;
	for (uint32_t n = 0; n < LATE_AGAIN && from > 40 * m->streams; n++) {
		/* older than those that are still open, and not so old that the stream began anew */
		const uint32_t back = (OPEN + 4 + (uint32_t)(place_random(&m->random) % 20));
		const uint32_t i = from - 1 - back * m->streams;
		const uint32_t p = (uint32_t)(place_random(&m->random) % m->truth.pieces);

		m->write[slots] = frame_of(m, i, p, slots);
		frame_add(m, slots++, UINT32_MAX, 0);
		m->planned.again++;
		m->planned.late_least += m->sent[i].end != GDRCAP_IMAGE_COMPLETE;
	}
	return !slots || (!truth_write(&m->truth, m->write, slots) && !part_play(m)) ? 0 : -1;
}

/* ---- a run ---- */

static int image_close(void *context, uint32_t slot, uint32_t use, uint32_t pieces, int fill)
{
	struct million *m = context;

	return m->s.ops->place_close(m->s.device, &m->s.view, slot, use, pieces, fill);
}

static int image_close_whole(void *context, const struct place_whole *images, uint32_t count)
{
	struct million *m = context;

	return m->s.ops->place_close_whole(m->s.device, &m->s.view, images, count);
}

static bool is(const char *what, uint64_t found, uint64_t planned)
{
	if (found != planned)
		fprintf(stderr, "%s: %llu, planned %llu\n", what, (unsigned long long)found,
			(unsigned long long)planned);
	return found == planned;
}

static bool counts_are(const struct million *m)
{
	const struct planned *p = &m->planned;
	struct gdrcap_image_counts c;
	bool good;

	assembler_counts(&m->images->assembler, &c);
	good = is("frames", c.frames, p->placed + p->again + p->misfit + p->filtered);
	good = is("placed", c.placed, p->placed) && good;
	/* a copy of an image that is complete is late once its entry is closed */
	good = is("duplicate and late", c.duplicate + c.late, p->again) && good;
	good = is("late at least", c.late >= p->late_least, true) && good;
	good = is("no room", c.no_room, 0) && good;
	good = is("misfits", c.misfit, p->misfit) && good;
	good = is("filtered", c.filtered, p->filtered) && good;
	good = is("begun", c.begun, p->begun) && good;
	good = is("complete", c.complete, p->complete) && good;
	good = is("newer", c.newer, p->newer) && good;
	good = is("stopped", c.stopped, p->stopped) && good;
	good = is("incomplete", c.incomplete, p->newer + p->stopped) && good;
	good = is("dropped", c.dropped, 0) && good;
	good = is("skipped", c.skipped, m->count - p->begun) && good;
	good = is("pieces lost", c.pieces_lost, p->pieces_lost) && good;
	good = is("handed out", m->handed, p->begun) && good;
	good = is("images that are said to be another", m->wrong_images, 0) && good;
	good = is("wrong bytes", m->found->wrong_bytes, 0) && good;
	good = is("wrong bits", m->found->wrong_bits, 0) && good;
	return is("bytes behind images", m->found->wrong_guards, 0) && good;
}

static bool layout_make(struct million *m, struct image_layout *layout)
{
	const uint32_t pieces = 8 + (uint32_t)(place_random(&m->random) % 33);
	const uint32_t most = 8000 / pieces < 400 ? 8000 / pieces : 400;
	struct image_settings settings = { 0 };
	struct gdrcap_error error = { .text = "" };
	char text[512], wrap[32] = "";

	m->truth.pieces = pieces;
	m->truth.piece = 1000 / pieces + 2;
	m->truth.piece += (uint32_t)(place_random(&m->random) % (most - m->truth.piece + 1));
	m->truth.bytes =
		(uint64_t)pieces * m->truth.piece - place_random(&m->random) % m->truth.piece;
	m->truth.payload = TRUTH_HEAD + (uint32_t)(place_random(&m->random) % 19);
	m->streams = 1 + (uint32_t)(place_random(&m->random) % STREAMS_MAX);
	m->first_number = 100 + place_random(&m->random) % 1000;
	m->modulus = happens(m, 2) ? 2000 + place_random(&m->random) % 1000 : 0;
	if (m->modulus)
		snprintf(wrap, sizeof(wrap), ", wrap: %u, first: 0", (unsigned int)m->modulus);
	snprintf(text, sizeof(text),
		 "{base: frame, stream: {at: 14, bytes: 2}, number: {at: 16, bytes: 4%s}, "
		 "index: {at: 20, bytes: 2}, piece: %u, bytes: %u, data: {payload: %u}, "
		 "match: [\"ethertype=0x88b6\"]}",
		 wrap, m->truth.piece, (unsigned int)m->truth.bytes, m->truth.payload);
	if (image_load_text(text, "scene", &settings, &error)) {
		fprintf(stderr, "%s\n", error.text);
		return false;
	}
	*layout = settings.layout;
	return true;
}

static void million_create(struct million *m, const struct image_layout *layout)
{
	const struct assembler_config config = {
		.view = &m->s.view,
		.open = OPEN,
		.timeout = NEVER,
		.linger = NEVER,
		.fill = TRUTH_FILL,
		.shut = ASSEMBLER_SHUT_US * 1000,
		.close = image_close,
		.close_whole = image_close_whole,
		.ns_a_tick = 1,
		.context = m,
	};
	struct assembler_config own = config;

	m->s.slot_shift = SLOT_SHIFT;
	m->s.descs = SLOTS;
	m->s.bursts = 1024;
	m->s.images = PLACE_RING_MAX;
	scene_create(&m->s, layout);
	memset(m->s.view.shared, 0, sizeof(*m->s.view.shared)); /* the assembler gives them */
	m->truth.frames = m->s.frames;
	m->truth.slot_shift = SLOT_SHIFT;
	m->truth.stride = m->s.view.stride;
	m->truth.guard = PLACE_GUARD;
	m->truth.gpu = m->s.gpu;
	m->write = shared_alloc(&m->s, SLOTS * sizeof(*m->write));
	m->compare = shared_alloc(&m->s, COMPARE_AT_ONCE * sizeof(*m->compare));
	m->found = shared_alloc(&m->s, sizeof(*m->found));
	m->order = calloc(2 * SLOTS, sizeof(*m->order));
	m->sent = calloc(m->count, sizeof(*m->sent));
	m->images = calloc(1, sizeof(*m->images));
	own.data = m->s.view.images;
	images_init(m->images, &own, m->s.ops, m->s.device, "million");
}

static void million_free(struct million *m)
{
	shared_free(&m->s, m->write);
	shared_free(&m->s, m->compare);
	shared_free(&m->s, m->found);
	free(m->order);
	free(m->sent);
	free(m->images);
	scene_destroy(&m->s);
}

static int million_play(struct million *m)
{
	/* copies, misfits and frames of others need slots as well */
	const uint32_t part = SLOTS * 9 / 10 / m->truth.pieces / m->streams * m->streams;
	int ret = 0;

	for (uint32_t i = 0; i < m->count; i++)
		image_plan(m, i);
	ends_plan(m);
	for (uint32_t from = 0; from < m->count && !ret; from += part) {
		const uint32_t to = m->count - from < part ? m->count : from + part;

		ret = again_play(m, from);
		if (!ret)
			ret = part_plan(m, from, to);
		if (!ret)
			ret = part_play(m);
	}
	for (bool over = false; !over && !ret;) {
		over = assembler_finish(&m->images->assembler, 1);
		ret = round_once(m);
	}
	for (uint32_t i = 0; i < 3 && !ret; i++)
		ret = round_once(m);
	return ret;
}

/* One layout, one engine. */
static bool scene_run(const struct kernel_ops *ops, struct kernel_device *device, uint32_t count,
		      uint64_t seed, bool resident, struct truth_found *all)
{
	struct million *m = calloc(1, sizeof(*m));
	struct image_layout layout;
	uint32_t workers;
	bool good = false;

	m->random = seed;
	m->s.ops = ops;
	m->s.device = device;
	m->s.gpu = ops != &kernel_host_ops;
	workers = 1 + (uint32_t)(place_random(&m->random) % (m->s.gpu ? 24 : 3));
	if (!layout_make(m, &layout)) {
		free(m);
		return false;
	}
	m->count = (count + m->streams - 1) / m->streams * m->streams;
	million_create(m, &layout);
	if (!scene_start(&m->s, workers, resident, m->truth.payload + m->truth.piece)) {
		good = !million_play(m) && counts_are(m);
		good = scene_stop(&m->s) && good;
	}
	printf("%s, %2u workers: %u images of %u pieces, %u bytes, %u streams: %llu incomplete, "
	       "%llu copies, %llu misfits: %s\n",
	       !m->s.gpu  ? "host"
	       : resident ? "resident"
			  : "launched",
	       workers, m->count, m->truth.pieces, (unsigned int)m->truth.bytes, m->streams,
	       (unsigned long long)(m->planned.newer + m->planned.stopped),
	       (unsigned long long)m->planned.again, (unsigned long long)m->planned.misfit,
	       good ? "right" : "WRONG");
	fflush(stdout);
	all->images += m->found->images;
	all->bytes += m->found->bytes;
	million_free(m);
	free(m);
	return good;
}

int main(int argc, char **argv)
{
	const uint32_t images = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : DEFAULT_IMAGES;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	const bool host = argc > 3 && !strcmp(argv[3], "host");
	const struct kernel_ops *ops = host ? &kernel_host_ops : &kernel_cuda_ops;
	struct truth_found all = { 0 };
	struct kernel_device *device;
	const int ret = ops->open(0, &device);
	bool good = true;

	if (ret) {
		printf("skipped: %s\n", kernel_error());
		return ret == -ENODEV ? 77 : 1;
	}
	if (!host)
		cudaSetDevice(0);
	if (truth_open(!host)) {
		fprintf(stderr, "the test's own kernels do not run\n");
		return 1;
	}
	for (uint32_t n = 0; n < SCENES && good; n++)
		good = scene_run(ops, device, (images + SCENES - 1) / SCENES, place_random(&seed),
				 n & 1, &all);
	printf("%llu images, %llu bytes compared\n", all.images, all.bytes);
	truth_close();
	ops->close(device);
	return good ? 0 : 1;
}
