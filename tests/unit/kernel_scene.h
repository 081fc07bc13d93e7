/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random traffic for a kernel back end, and a producer that plays it through burst rings: shared by
 * the host twin's unit test and the CUDA test. The same seed makes the same scene.
 */
#ifndef GDRCAP_TEST_KERNEL_SCENE_H
#define GDRCAP_TEST_KERNEL_SCENE_H

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels.h"

#define SCENE_BURSTS 24u
#define SCENE_SLOT_SHIFT 14u
#define SCENE_SLOTS 2048u
#define SCENE_BYTES ((size_t)SCENE_SLOTS << SCENE_SLOT_SHIFT)
#define SCENE_FILE_BYTES 1013u
#define SCENE_RINGS_MAX 2u
#define SCENE_HANG_SECONDS 60

struct scene_burst {
	uint32_t count;
	struct burst_order order;
	struct frame_desc desc[BURST_FRAMES_MAX];
};

struct scene {
	uint64_t random; /* generator's state */
	struct frame_layout layout;
	struct pattern_plan plan;
	uint8_t file[SCENE_FILE_BYTES];
	uint32_t rings, workers, hint;
	uint32_t ring_bursts, ring_descs; /* sizes of a ring */
	struct scene_burst burst[SCENE_BURSTS]; /* burst b goes to ring b % rings */
	uint8_t *frames; /* SCENE_BYTES, host memory */
};

/* What a back end said of a burst. */
struct scene_result {
	uint32_t runs;
	struct frame_run run[BURST_FRAMES_MAX];
};

/* Where rings and frames lie: CPU memory or what a GPU can reach. */
struct scene_memory {
	void *(*ring_alloc)(size_t bytes); /* both sides read and write; zeroed */
	void (*ring_free)(void *memory);
};

static uint64_t scene_next(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint32_t scene_below(struct scene *scene, uint32_t n)
{
	return (uint32_t)(scene_next(&scene->random) % n);
}

static bool scene_chance(struct scene *scene, uint32_t one_in)
{
	return scene_below(scene, one_in) == 0;
}

/* A length in memory: often usual ones, sometimes any. */
static uint32_t scene_len(struct scene *scene)
{
	static const uint16_t usual[] = {
		60, 64, 124, 128, 508, 512, 1514, 1500, 4096, 9000, 9212
	};

	switch (scene_below(scene, 8)) {
	case 0:
		return scene_below(scene, 9600); /* also too short and too long */
	case 1:
		return 60 + scene_below(scene, 160);
	case 2:
	case 3:
		return 60;
	default:
		return usual[scene_below(scene, sizeof(usual) / sizeof(usual[0]))];
	}
}

static void scene_descs(struct scene *scene)
{
	uint16_t slot[SCENE_SLOTS];
	uint32_t used = 0, fixed = scene_chance(scene, 2) ? scene_len(scene) : 0;
	const uint32_t offset_mask = scene_chance(scene, 2) ? 0xff : 0xf0;

	for (uint32_t i = 0; i < SCENE_SLOTS; i++)
		slot[i] = (uint16_t)i;
	for (uint32_t i = SCENE_SLOTS - 1; i; i--) {
		const uint32_t j = scene_below(scene, i + 1);
		const uint16_t other = slot[j];

		slot[j] = slot[i];
		slot[i] = other;
	}
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		struct scene_burst *burst = &scene->burst[b];

		burst->count = scene_chance(scene, 4) ? BURST_FRAMES_MAX :
							1 + scene_below(scene, BURST_FRAMES_MAX);
		if (burst->count > SCENE_SLOTS - used)
			burst->count = SCENE_SLOTS - used;
		for (uint32_t i = 0; i < burst->count; i++) {
			struct frame_desc *desc = &burst->desc[i];

			desc->slot = slot[used++];
			desc->len = (uint16_t)(fixed ? fixed : scene_len(scene));
			desc->offset = (uint16_t)(scene_below(scene, 256) & offset_mask);
			if (scene_chance(scene, 300))
				desc->slot = SCENE_SLOTS + scene_below(scene, 3) * 0x7ffff000u;
			if (desc->slot == SCENE_SLOTS - 1 && scene_chance(scene, 2)) {
				/* on the region's end, and one past it */
				desc->len = 1500;
				desc->offset = (uint16_t)((1u << SCENE_SLOT_SHIFT) - 1500 +
							  scene_below(scene, 2));
			}
		}
	}
}

static void scene_orders(struct scene *scene)
{
	uint64_t sequence = scene_below(scene, 1000), position = 0;
	const uint32_t stream = scene_below(scene, 65536);

	/* near the ends of the numbers too */
	if (scene_chance(scene, 4))
		sequence = 0 - (uint64_t)scene_below(scene, 2000);
	if (scene_chance(scene, 2))
		position = scene_next(&scene->random);
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		struct scene_burst *burst = &scene->burst[b];

		burst->order.sequence = sequence;
		burst->order.position = position;
		burst->order.time_ns = scene_next(&scene->random);
		burst->order.stream = stream;
		sequence += burst->count;
		for (uint32_t i = 0; i < burst->count; i++)
			position += frame_payload_bytes(&scene->layout, burst->desc[i].len);
	}
}

/* A scene for pattern `kind` and layout `shape`: 0 Ethernet, 1 VLAN, 2 UDP, 3 both, 4 raw. */
static int scene_make(struct scene *scene, uint64_t seed, enum pattern_kind kind, uint32_t shape)
{
	struct frame_config frame = { .format = FRAME_ETHERNET };
	struct pattern_config pattern = { .kind = kind, .invert = -1 };

	memset(scene, 0, sizeof(*scene));
	scene->random = seed;
	frame.format = shape >= 2 ? FRAME_IPV4_UDP : FRAME_ETHERNET;
	frame.vlan = shape == 1 || shape == 3 ? (uint16_t)(1 + scene_below(scene, 4000)) : 0;
	if (frame_layout_init(&scene->layout, &frame))
		return -1;
	pattern.restart = scene_chance(scene, 3);
	pattern.value = (uint8_t)scene_below(scene, 256);
	pattern.seed = scene_next(&scene->random);
	if (pattern_is_prbs(kind) && scene_chance(scene, 4))
		pattern.invert = (int)scene_below(scene, 2);
	for (uint32_t i = 0; i < SCENE_FILE_BYTES; i++)
		scene->file[i] = (uint8_t)scene_below(scene, 256);
	if (kind == PATTERN_FILE) {
		pattern.file = scene->file;
		pattern.file_bytes = 1 + scene_below(scene, SCENE_FILE_BYTES);
	}
	if (shape == 4) {
		frame_layout_proof(&scene->layout);
		pattern = (struct pattern_config){ .kind = PATTERN_COUNTER8,
						   .restart = 1,
						   .invert = -1 };
	}
	if (pattern_plan_init(&scene->plan, &pattern))
		return -1;
	scene->rings = 1 + scene_below(scene, SCENE_RINGS_MAX);
	scene->workers = 1 + scene_below(scene, 5);
	scene->hint = scene_chance(scene, 2) ? 60 : 0;
	scene->ring_bursts = 1u << scene_below(scene, 6);
	scene->ring_descs = BURST_FRAMES_MAX << scene_below(scene, 3);
	scene_descs(scene);
	scene_orders(scene);
	scene->frames = aligned_alloc(4096, SCENE_BYTES);
	if (!scene->frames)
		return -1;
	memset(scene->frames, 0xa5, SCENE_BYTES);
	return 0;
}

static void scene_free(struct scene *scene)
{
	pattern_plan_free(&scene->plan);
	free(scene->frames);
	scene->frames = NULL;
}

static uint8_t *scene_frame(const struct scene *scene, struct frame_desc desc)
{
	const uint64_t at = ((uint64_t)desc.slot << SCENE_SLOT_SHIFT) + desc.offset;

	return at + desc.len <= SCENE_BYTES ? scene->frames + at : NULL;
}

/* One frame's bytes or descriptor are spoilt, in one of the ways of a wire, a switch or a liar. */
static void scene_spoil_frame(struct scene *scene, struct frame_desc *desc)
{
	uint8_t *frame = scene_frame(scene, *desc);
	const uint32_t own = scene->layout.own_offset;
	uint32_t at, n;

	if (!frame || desc->len < own + FRAME_HEADER_BYTES)
		return;
	switch (scene_below(scene, 9)) {
	case 0: /* one bit anywhere, padding too */
		frame[scene_below(scene, desc->len)] ^= (uint8_t)(1u << scene_below(scene, 8));
		break;
	case 1: /* a header bit */
		frame[scene_below(scene, own + FRAME_HEADER_BYTES)] ^=
			(uint8_t)(1u << scene_below(scene, 8));
		break;
	case 2: /* a stretch of rubbish */
		at = own + scene_below(scene, desc->len - own);
		n = 1 + scene_below(scene, desc->len - at);
		for (uint32_t i = 0; i < n; i++)
			frame[at + i] = (uint8_t)scene_next(&scene->random);
		break;
	case 3: /* cut short */
		desc->len = (uint16_t)scene_below(scene, desc->len);
		break;
	case 4: /* foreign */
		frame[scene->layout.vlan ? 16 : 12] ^= 0x40;
		break;
	case 5: /* all random */
		for (uint32_t i = 0; i < desc->len; i++)
			frame[i] = (uint8_t)scene_next(&scene->random);
		break;
	case 6: /* a header that is right but claims other things */
		at = own + (scene_chance(scene, 3) ? 3 : 4 + scene_below(scene, 28));
		frame[at] ^= (uint8_t)(1u << scene_below(scene, 8));
		frame_put32(frame + own + 32, frame_crc32c(frame_crc32c_table, frame + own, 32));
		break;
	case 7: /* the first or last payload byte */
		at = own + FRAME_HEADER_BYTES;
		if (at < desc->len)
			frame[scene_chance(scene, 2) ? at : desc->len - 1u] ^= 0x81;
		break;
	default: /* poison that was never overwritten, from somewhere on */
		at = scene_below(scene, desc->len);
		memset(frame + at, 0xa5, desc->len - at);
		break;
	}
}

/* Spoils about one frame in `one_in`, and the order of some: duplicates and exchanges. */
static void scene_spoil(struct scene *scene, uint32_t one_in)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		struct scene_burst *burst = &scene->burst[b];

		for (uint32_t i = 0; i < burst->count; i++)
			if (scene_chance(scene, one_in))
				scene_spoil_frame(scene, &burst->desc[i]);
		for (uint32_t n = burst->count / one_in; n; n--) {
			const uint32_t i = scene_below(scene, burst->count);
			const uint32_t j = scene_below(scene, burst->count);
			const struct frame_desc other = burst->desc[j];

			if (scene_chance(scene, 2))
				burst->desc[j] = burst->desc[i];
			burst->desc[i] = other;
		}
	}
}

/* ---- the producer ---- */

struct scene_ring {
	struct burst_ring_view view;
	struct frame_desc *desc;
	uint64_t *ready;
	struct burst_result *result;
	struct frame_run *overflow;
	struct burst_order *order;
	uint32_t bits;
	uint64_t published, collected; /* bursts */
	uint32_t head, tail; /* descriptors */
};

static void *scene_part(const struct scene_memory *memory, size_t bytes)
{
	void *part = memory->ring_alloc(bytes);

	if (!part) {
		fprintf(stderr, "no memory for a ring\n");
		exit(1);
	}
	return part;
}

static void scene_ring_create(struct scene_ring *ring, const struct scene *scene,
			      const struct scene_memory *memory, uint8_t *frames, uint32_t *stop)
{
	memset(ring, 0, sizeof(*ring));
	ring->desc = scene_part(memory, scene->ring_descs * sizeof(*ring->desc));
	ring->ready = scene_part(memory, scene->ring_bursts * sizeof(*ring->ready));
	ring->result = scene_part(memory, scene->ring_bursts * sizeof(*ring->result));
	ring->overflow = scene_part(memory, scene->ring_descs * sizeof(*ring->overflow));
	ring->order = scene_part(memory, scene->ring_bursts * sizeof(*ring->order));
	/* free-running indices pass 2^32 in the middle of a run */
	ring->head = ring->tail = 0 - 3 * BURST_FRAMES_MAX;
	ring->view.desc = ring->desc;
	ring->view.ready = ring->ready;
	ring->view.result = ring->result;
	ring->view.overflow = ring->overflow;
	ring->view.order = ring->order;
	ring->view.stop = stop;
	ring->view.frames = frames;
	ring->view.frames_bytes = SCENE_BYTES;
	ring->view.desc_mask = scene->ring_descs - 1;
	ring->view.burst_mask = scene->ring_bursts - 1;
	ring->view.slot_shift = SCENE_SLOT_SHIFT;
	while (scene->ring_bursts >> ring->bits > 1)
		ring->bits++;
}

static void scene_ring_free(struct scene_ring *ring, const struct scene_memory *memory)
{
	memory->ring_free(ring->desc);
	memory->ring_free(ring->ready);
	memory->ring_free(ring->result);
	memory->ring_free(ring->overflow);
	memory->ring_free(ring->order);
}

static bool scene_ring_publish(struct scene_ring *ring, const struct scene_burst *burst)
{
	const uint32_t at = ring->published & ring->view.burst_mask;

	if (ring->published - ring->collected > ring->view.burst_mask ||
	    ring->head - ring->tail + burst->count > ring->view.desc_mask + 1)
		return false;
	for (uint32_t i = 0; i < burst->count; i++)
		ring->desc[(ring->head + i) & ring->view.desc_mask] = burst->desc[i];
	ring->order[at] = burst->order;
	/* PUBLISH */
	__atomic_store_n(&ring->ready[at],
			 burst_word(ring->published, ring->bits, burst->count, ring->head),
			 __ATOMIC_RELEASE);
	ring->head += burst->count;
	ring->published++;
	return true;
}

static bool scene_ring_collect(struct scene_ring *ring, const struct scene_burst *burst,
			       struct scene_result *result)
{
	struct burst_result *from = &ring->result[ring->collected & ring->view.burst_mask];
	/* COLLECT */
	const uint64_t done = __atomic_load_n(&from->done, __ATOMIC_ACQUIRE);

	if (!burst_word_is(done, ring->collected, ring->bits))
		return false;
	result->runs = burst_word_count(done);
	for (uint32_t r = 0; r < result->runs && r < BURST_FRAMES_MAX; r++)
		result->run[r] =
			r ? ring->overflow[(ring->tail + r) & ring->view.desc_mask] : from->run;
	ring->tail += burst->count;
	ring->collected++;
	return true;
}

static uint32_t scene_bursts_of(const struct scene *scene, uint32_t ring)
{
	return (SCENE_BURSTS - ring + scene->rings - 1) / scene->rings;
}

/*
 * Plays the scene through a back end whose frames lie at `frames`. 0; on an error says what
 * happened and returns -1. result: SCENE_BURSTS entries.
 */
static int scene_play(const struct scene *scene, const struct kernel_ops *ops,
		      struct kernel_device *device, const struct scene_memory *memory,
		      uint8_t *frames, enum kernel_role role, struct scene_result *result)
{
	uint32_t *stop = scene_part(memory, sizeof(*stop));
	struct burst_ring_view views[SCENE_RINGS_MAX];
	struct scene_ring ring[SCENE_RINGS_MAX];
	struct kernel_workers *workers;
	struct kernel_job job = {
		.role = role,
		.rings = views,
		.ring_count = scene->rings,
		.workers_per_ring = scene->workers,
		.frame_bytes_hint = scene->hint,
		.layout = scene->layout,
		.plan = scene->plan,
	};
	const time_t until = time(NULL) + SCENE_HANG_SECONDS;
	uint32_t left = SCENE_BURSTS;
	int ret;

	for (uint32_t r = 0; r < scene->rings; r++) {
		scene_ring_create(&ring[r], scene, memory, frames, stop);
		views[r] = ring[r].view;
	}
	ret = ops->start(device, &job, &workers);
	if (ret) {
		fprintf(stderr, "%s: start: %s\n", ops->name, kernel_error());
		goto out;
	}
	while (left && !ret) {
		for (uint32_t r = 0; r < scene->rings; r++) {
			const uint32_t total = scene_bursts_of(scene, r);
			uint64_t b = ring[r].published;

			if (b < total)
				scene_ring_publish(&ring[r], &scene->burst[b * scene->rings + r]);
			b = ring[r].collected * scene->rings + r;
			if (ring[r].collected < total &&
			    scene_ring_collect(&ring[r], &scene->burst[b], &result[b]))
				left--;
		}
		sched_yield();
		if (ops->running(workers) <= 0 || time(NULL) > until) {
			fprintf(stderr, "%s: %s with %u of %u bursts not done: %s\n", ops->name,
				time(NULL) > until ? "hangs" : "left", left, SCENE_BURSTS,
				kernel_error());
			ret = -1;
		}
	}
	__atomic_store_n(stop, 1, __ATOMIC_RELAXED);
	if (ops->join(workers, SCENE_HANG_SECONDS * 1000)) {
		fprintf(stderr, "%s: join: %s\n", ops->name, kernel_error());
		exit(1);
	}
out:
	for (uint32_t r = 0; r < scene->rings; r++)
		scene_ring_free(&ring[r], memory);
	memory->ring_free(stop);
	return ret ? -1 : 0;
}

/* ---- comparing ---- */

static void run_print(const char *who, const struct frame_run *run)
{
	fprintf(stderr,
		"  %s: first %u count %u verdict %u header_ok %u stream %u sequence %llu bytes %u "
		"wire %u "
		"wrong_bits %u offset %u expected %02x got %02x\n",
		who, run->first, run->count, run->verdict, run->header_ok, run->stream,
		(unsigned long long)run->sequence, run->bytes, run->wire_bytes, run->wrong_bits,
		run->offset, run->expected, run->got);
}

/* True when both said the same; else prints the first difference. */
static bool scene_same_runs(const struct scene *scene, const struct scene_result *want,
			    const struct scene_result *got)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		const uint32_t runs = want[b].runs < got[b].runs ? want[b].runs : got[b].runs;

		for (uint32_t r = 0; r < runs; r++) {
			const struct frame_desc desc = scene->burst[b].desc[want[b].run[r].first];

			if (!memcmp(&want[b].run[r], &got[b].run[r], sizeof(struct frame_run)))
				continue;
			fprintf(stderr,
				"burst %u (of %u frames), run %u; frame %u: slot %u offset %u len "
				"%u\n",
				b, scene->burst[b].count, r, want[b].run[r].first, desc.slot,
				desc.offset, desc.len);
			run_print("want", &want[b].run[r]);
			run_print("got ", &got[b].run[r]);
			return false;
		}
		if (want[b].runs != got[b].runs) {
			fprintf(stderr, "burst %u: %u runs, not %u\n", b, got[b].runs,
				want[b].runs);
			return false;
		}
	}
	return true;
}

/* True when both regions are the same; else names the first frame that differs. */
static bool scene_same_frames(const struct scene *scene, const uint8_t *want, const uint8_t *got)
{
	if (!memcmp(want, got, SCENE_BYTES))
		return true;
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < scene->burst[b].count; i++) {
			const struct frame_desc desc = scene->burst[b].desc[i];
			const size_t from = ((size_t)desc.slot << SCENE_SLOT_SHIFT) + desc.offset;

			if (from + desc.len > SCENE_BYTES)
				continue;
			for (uint32_t at = 0; at < desc.len; at++) {
				if (want[from + at] == got[from + at])
					continue;
				fprintf(stderr,
					"burst %u frame %u (slot %u offset %u len %u): byte %u is "
					"%02x, not "
					"%02x; own header at %u, payload at %u\n",
					b, i, desc.slot, desc.offset, desc.len, at, got[from + at],
					want[from + at], scene->layout.own_offset,
					frame_payload_offset(&scene->layout));
				return false;
			}
		}
	}
	for (size_t at = 0; at < SCENE_BYTES; at++) {
		if (want[at] == got[at])
			continue;
		fprintf(stderr, "slot %zu byte %zu, outside all frames: %02x, not %02x\n",
			at >> SCENE_SLOT_SHIFT, at & ((1u << SCENE_SLOT_SHIFT) - 1), got[at],
			want[at]);
		break;
	}
	return false;
}

#endif
