/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How soon a running kernel sees an image: from PUBLISH of the burst with its last packet until this thread
 * sees the word that the kernel writes when gdrcap_gpu_image_try_next() has returned it: one write over the
 * bus more than the kernel itself waits. This thread publishes, assembles and looks in turn, as the
 * accountant does with little load.
 *
 * Usage: test_image_latency_cuda [IMAGES]. 77 without a GPU.
 */
#include <errno.h>

#include "image/images.h"
#include "running_taker.h"
#include "place_scene.h"

#define PIECE 1364u
#define HEAD 50u
#define RING 8u
#define FIRST 200u /* images that are not counted */
#define HANG_NS 20000000000u

static struct kernel_device *cuda;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct image_field field(uint32_t at, uint32_t bytes, uint64_t times)
{
	return (struct image_field){ .at = (uint16_t)at,
				     .bytes = (uint8_t)bytes,
				     .mask = UINT64_MAX,
				     .divide = 1,
				     .times = times };
}

static struct image_layout layout_of(uint32_t pieces)
{
	const uint64_t bytes = (uint64_t)pieces * PIECE;

	return (struct image_layout){
		.base = IMAGE_BASE_FRAME,
		.parser = IMAGE_PARSER_FIELDS,
		.kind_begin = UINT64_MAX,
		.kind_end = UINT64_MAX,
		.number = field(14, 8, 1),
		.late = 64,
		.counts = 1,
		.place = { field(22, 4, PIECE) },
		.place_terms = 1,
		.payload = HEAD,
		.bytes = bytes,
		.row_bytes = bytes,
		.pitch = bytes,
		.piece = PIECE,
		.row_pieces = pieces,
		.pieces = pieces,
		.known = 1,
	};
}

static void frame_make(uint8_t *frame, uint64_t number, uint32_t piece)
{
	for (uint32_t i = 0; i < 8; i++)
		frame[14 + i] = (uint8_t)(number >> 8 * (7 - i));
	for (uint32_t i = 0; i < 4; i++)
		frame[22 + i] = (uint8_t)(piece >> 8 * (3 - i));
	memset(frame + HEAD, (int)(number & 0xff), PIECE);
}

struct latency {
	struct place_scene scene;
	struct gdrcap_images *images;
	struct taker_words *words;
	uint64_t *ns;
	uint32_t count, pieces;
};

static int image_close(void *context, uint32_t slot, uint32_t use, uint32_t pieces, int fill)
{
	const struct latency *l = context;

	return kernel_cuda_ops.place_close(cuda, &l->scene.view, slot, use, pieces, fill);
}

static int image_close_whole(void *context, const struct place_whole *images, uint32_t count)
{
	const struct latency *l = context;

	return kernel_cuda_ops.place_close_whole(cuda, &l->scene.view, images, count);
}

/* A round of the accountant's. */
static void work(struct latency *l)
{
	const struct place_record *first;
	uint32_t records;

	while ((first = scene_collect(&l->scene, &records)))
		for (uint32_t r = 0; r < records; r++)
			assembler_add(&l->images->assembler, now_ns(),
				      scene_record(&l->scene, first, r));
	(void)images_feed(l->images);
}

/* False: it does not come. */
static bool image_play(struct latency *l, uint32_t number)
{
	const uint64_t since = now_ns();
	uint64_t sent, seen;

	scene_publish(&l->scene, l->pieces - 1);
	while (l->scene.collected != l->scene.published) {
		work(l);
		if (now_ns() - since > HANG_NS)
			return false;
	}
	assembler_round(&l->images->assembler, now_ns(), now_ns());
	sent = now_ns();
	scene_publish(&l->scene, 1);
	do {
		work(l);
		seen = now_ns();
		if (seen - sent > HANG_NS)
			return false;
	} while (__atomic_load_n(&l->words->seen, __ATOMIC_ACQUIRE) != number + 1);
	l->ns[number] = seen - sent;
	/* the next does not come at once */
	while (now_ns() - seen < 20000)
		work(l);
	return true;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double at(const struct latency *l, double part)
{
	return (double)l->ns[FIRST + (uint32_t)((l->count - FIRST - 1) * part)] / 1000;
}

static bool play(uint32_t pieces, bool resident, uint32_t count)
{
	struct latency l = { .count = count, .pieces = pieces };
	const struct image_layout layout = layout_of(pieces);
	struct assembler_config config = {
		.open = 2,
		.timeout = UINT64_MAX / 4,
		.linger = UINT64_MAX / 4,
		.fill = -1,
		.shut = ASSEMBLER_SHUT_US * 1000,
		.close = image_close,
		.close_whole = image_close_whole,
		.ns_a_tick = 1,
		.context = &l,
	};
	struct gdrcap_gpu_images view;
	uint32_t descs = 1;
	bool good = true;

	while (descs < count * pieces)
		descs *= 2;
	l.scene = (struct place_scene){ .ops = &kernel_cuda_ops,
					.device = cuda,
					.gpu = true,
					.slot_shift = 11,
					.descs = descs,
					.bursts = 1024,
					.images = RING };
	scene_create(&l.scene, &layout);
	/* the assembler gives the buffers */
	memset(l.scene.view.shared, 0, sizeof(*l.scene.view.shared));
	for (uint32_t i = 0; i < count * pieces; i++) {
		frame_make(l.scene.host_frames + ((size_t)i << 11) + 128, 1 + i / pieces,
			   i % pieces);
		l.scene.desc[i] = (struct frame_desc){ i, HEAD + PIECE, 128 };
	}
	kernel_cuda_ops.copy_in(cuda, l.scene.frames, l.scene.host_frames, (size_t)descs << 11);
	l.ns = calloc(count, sizeof(*l.ns));
	l.words = shared_alloc(&l.scene, sizeof(*l.words));
	l.images = calloc(1, sizeof(*l.images));
	config.view = &l.scene.view;
	config.data = l.scene.view.images;
	images_init(l.images, &config, &kernel_cuda_ops, cuda, "latency");
	image_gpu_init(&l.images->gpu, shared_alloc(&l.scene, image_gpu_bytes(RING)), RING);
	view = image_gpu_view(&l.images->gpu);
	if (taker_start(&view, l.words) || scene_start(&l.scene, 4, resident, HEAD + PIECE)) {
		fprintf(stderr, "FAIL: kernels do not start\n");
		return false;
	}
	for (uint32_t i = 0; i < count && good; i++)
		good = image_play(&l, i);
	image_gpu_end(&l.images->gpu);
	good = scene_stop(&l.scene) && good;
	good = cudaDeviceSynchronize() == cudaSuccess && good && l.words->wrong == 0;
	qsort(l.ns + FIRST, count - FIRST, sizeof(*l.ns), compare);
	printf("%s, %u pieces of %u bytes: last packet published to image seen by a running kernel: "
	       "p50 %.2f us, p90 %.2f, p99 %.2f, most %.2f; %u images, %u wrong: %s\n",
	       resident ? "resident" : "launched", pieces, PIECE, at(&l, 0.5), at(&l, 0.9),
	       at(&l, 0.99), at(&l, 1), count - FIRST, l.words->wrong, good ? "passed" : "FAILED");
	fflush(stdout);
	shared_free(&l.scene, l.images->gpu.entry);
	shared_free(&l.scene, l.words);
	scene_destroy(&l.scene);
	free(l.images);
	free(l.ns);
	return good;
}

int main(int argc, char **argv)
{
	const uint32_t count = FIRST + (argc > 1 ? (uint32_t)atoi(argv[1]) : 3000u);
	const int ret = kernel_cuda_ops.open(0, &cuda);
	bool good = true;

	if (ret) {
		printf("skipped: %s\n", kernel_error());
		return ret == -ENODEV ? 77 : 1;
	}
	cudaSetDevice(0);
	good = play(8, true, count) && good;
	good = play(64, true, count / 4 + FIRST) && good;
	good = play(8, false, count) && good;
	kernel_cuda_ops.close(cuda);
	printf("%s\n", good ? "PASS" : "FAIL");
	return good ? 0 : 1;
}
