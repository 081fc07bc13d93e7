/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random traffic for a kernel back end, and a producer that plays it through burst rings: shared by
 * the CPU backend's unit test and the CUDA test. The same seed makes the same scene.
 */
#ifndef GDRCAP_TEST_KERNEL_SCENE_H
#define GDRCAP_TEST_KERNEL_SCENE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/frame_records.h"
#include "kernels/kernels.h"
#include "nap.h"
#include "store_build.h"

#define SCENE_BURSTS 24u
#define SCENE_SLOT_SHIFT 14u
#define SCENE_STALE_US 100u
#define SCENE_SLOTS 2048u
#define SCENE_BYTES ((size_t)SCENE_SLOTS << SCENE_SLOT_SHIFT)
#define SCENE_FILE_BYTES 1013u
#define SCENE_RINGS_MAX 2u
#define SCENE_HANG_SECONDS 240
#define SCENE_HEAD_SHIFT 8u
#define SCENE_HEADS_BYTES ((size_t)SCENE_SLOTS << SCENE_HEAD_SHIFT)

struct scene_burst {
	uint32_t count;
	struct tx_request request;
	struct frame_desc desc[BURST_FRAMES_MAX];
	struct frame_desc head[BURST_FRAMES_MAX]; /* header-data split */
};

struct scene {
	uint64_t random; /* generator's state */
	struct frame_layout layout;
	struct pattern pattern;
	uint8_t file[SCENE_FILE_BYTES];
	uint32_t rings, workers, hint;
	uint32_t ring_bursts, ring_descs;	/* sizes of a ring */
	struct scene_burst burst[SCENE_BURSTS]; /* burst b goes to ring b % rings */
	uint8_t *frames;			/* SCENE_BYTES, host memory */
	struct built_store store;		/* view.count not 0: frames of a file */
	/* kernel_scene_more.h; NULL: frames lie whole; no slot is poisoned */
	uint8_t *heads;	      /* SCENE_HEADS_BYTES */
	uint32_t *generation; /* SCENE_SLOTS, stale_us SCENE_STALE_US: before the scene is played */
	uint32_t *generation_after;
};

enum scene_shape {
	SCENE_ETHERNET,
	SCENE_VLAN,
	SCENE_UDP,
	SCENE_UDP_VLAN,
	SCENE_RAW,
	SCENE_CUSTOM, /* position by number; of this and the next two, senders are not ours */
	SCENE_PHASE,  /* a phase, and a number */
	SCENE_PHASE_ONLY,
	SCENE_SHAPES
};

/* What a back end said of a burst. */
struct scene_result {
	uint32_t records;
	bool plain; /* told by PLAIN */
	struct frame_record record[BURST_FRAMES_MAX];
};

/* Where rings and frames lie: CPU memory or what a GPU can reach. */
struct scene_memory {
	void *(*ring_alloc)(size_t bytes); /* both sides read and write; zeroed */
	void (*ring_free)(void *memory);
};

static inline uint64_t scene_next(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint32_t scene_below(struct scene *scene, uint32_t n)
{
	return (uint32_t)(scene_next(&scene->random) % n);
}

static inline bool scene_chance(struct scene *scene, uint32_t one_in)
{
	return scene_below(scene, one_in) == 0;
}

/* A length in memory: often usual ones, sometimes any. */
static inline uint32_t scene_len(struct scene *scene)
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

static inline void scene_descs(struct scene *scene)
{
	uint16_t slot[SCENE_SLOTS];
	uint32_t used = 0, fixed = scene_chance(scene, 2) ? scene_len(scene) : 0;
	/* small bursts of small frames, which kernels have ways of their own for */
	const bool small = scene_chance(scene, 3);
	const uint32_t jitter = scene_chance(scene, 2) ? 1 : 20;
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

		burst->count = scene_chance(scene, 4) ? BURST_FRAMES_MAX
						      : 1 + scene_below(scene, BURST_FRAMES_MAX);
		if (small) {
			burst->count = 1 + scene_below(scene, 40);
			fixed = 56 + scene_below(scene, 80);
		}
		if (burst->count > SCENE_SLOTS - used)
			burst->count = SCENE_SLOTS - used;
		for (uint32_t i = 0; i < burst->count; i++) {
			struct frame_desc *desc = &burst->desc[i];

			desc->slot = slot[used++];
			desc->len = (uint16_t)(fixed ? fixed : scene_len(scene));
			if (small)
				desc->len = (uint16_t)(desc->len + scene_below(scene, jitter));
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

static inline void scene_requests(struct scene *scene)
{
	uint64_t sequence = scene_below(scene, 1000), position = 0;
	const uint32_t stream = scene_below(scene, 65536);

	/* near the ends of the numbers too */
	if (scene_chance(scene, 4))
		sequence = 0 - (uint64_t)(scene_below(scene, 2000) >> scene_below(scene, 8));
	if (scene_chance(scene, 2))
		position = scene_next(&scene->random);
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		struct scene_burst *burst = &scene->burst[b];

		burst->request.sequence = sequence;
		burst->request.position = position;
		burst->request.time_ns = scene_next(&scene->random);
		burst->request.stream = stream;
		burst->request.end = !scene->layout.raw && scene_chance(scene, 8);
		if (burst->request.end)
			continue;
		sequence += burst->count;
		for (uint32_t i = 0; i < burst->count; i++)
			position += frame_payload_bytes(&scene->layout, burst->desc[i].len);
	}
}

/* A custom layout: fields in any place behind the EtherType, then the payload. */
static inline void scene_custom(struct scene *scene, bool number, bool self_phase)
{
	struct frame_custom *custom = &scene->layout.custom;
	uint32_t at = 14 + scene_below(scene, 16);

	custom->self_phase = self_phase;
	if (scene_chance(scene, 2)) {
		custom->stream.offset = (uint16_t)at;
		custom->stream.bytes = (uint8_t)(1 + scene_below(scene, 2));
		custom->stream.little = (uint8_t)scene_below(scene, 2);
		at += 2 + scene_below(scene, 16);
	}
	if (number) {
		custom->sequence.offset = (uint16_t)at;
		custom->sequence.bytes = (uint8_t)(1 + scene_below(scene, 8));
		custom->sequence.little = (uint8_t)scene_below(scene, 2);
		at += 8;
	}
	custom->sequence_start = scene_next(&scene->random) >> scene_below(scene, 64);
	custom->sequence_step = scene_chance(scene, 2) ? 1 : 1 + scene_below(scene, 300);
	custom->payload = at + scene_below(scene, FRAME_CUSTOM_PAYLOAD_MAX + 1 - at);
	custom->payload_bytes = scene_chance(scene, 3) ? 1 + scene_below(scene, 1600) : 0;
}

/* One rule names the frames, others may not. */
static inline void scene_rules(struct scene *scene)
{
	struct frame_match *match = &scene->layout.match;
	struct frame_match_rule *rule;

	if (scene_chance(scene, 2))
		return;
	match->count = 1 + scene_below(scene, FRAME_MATCH_RULES);
	for (uint32_t r = 0; r < match->count; r++) {
		rule = &match->rule[r];
		rule->fields = FRAME_MATCH_VLAN | FRAME_MATCH_SRC_IP | FRAME_MATCH_DST_PORT;
		rule->vlan = (uint16_t)scene_below(scene, 4095);
		rule->ip_version = 4;
		rule->src_prefix = (uint8_t)(1 + scene_below(scene, 32));
		rule->dst_port = (uint16_t)scene_below(scene, 65536);
	}
	rule = &match->rule[scene_below(scene, match->count)];
	rule->fields = FRAME_MATCH_ETHERTYPE | FRAME_MATCH_VLAN;
	rule->ethertype = scene->layout.ethertype ? scene->layout.ethertype : FRAME_ETHERTYPE;
	rule->vlan = scene->layout.vlan & 0x0fff;
	if (scene->layout.format == FRAME_IPV4_UDP) {
		rule->fields |= FRAME_MATCH_DST_PORT | FRAME_MATCH_DST_IP;
		rule->dst_port = scene->layout.udp_port;
		rule->dst_prefix = 24;
		memcpy(rule->dst_ip, "\xc0\0\x02", 3); /* 192.0.2.2 is the default */
	}
}

static inline int scene_layout(struct scene *scene, uint32_t shape)
{
	struct frame_config frame = { .format = FRAME_ETHERNET };

	if (shape == SCENE_RAW) {
		frame_layout_proof(&scene->layout);
		return 0;
	}
	if (shape == SCENE_UDP || shape == SCENE_UDP_VLAN)
		frame.format = FRAME_IPV4_UDP;
	if (shape == SCENE_VLAN || shape == SCENE_UDP_VLAN)
		frame.vlan = (uint16_t)(1 + scene_below(scene, 4000));
	if (shape >= SCENE_CUSTOM)
		frame.format = FRAME_CUSTOM;
	if (frame_layout_init(&scene->layout, &frame))
		return -1;
	if (shape >= SCENE_CUSTOM)
		scene_custom(scene, shape != SCENE_PHASE_ONLY, shape != SCENE_CUSTOM);
	scene_rules(scene);
	return 0;
}

/* A scene for pattern `kind` and layout `shape` (enum scene_shape). */
static inline int scene_make(struct scene *scene, uint64_t seed, enum pattern_kind kind,
			     uint32_t shape)
{
	struct pattern_config pattern_config = { .kind = kind, .invert = -1 };

	memset(scene, 0, sizeof(*scene));
	scene->random = seed;
	if (scene_layout(scene, shape))
		return -1;
	pattern_config.restart = scene_chance(scene, 3) && !scene->layout.custom.self_phase;
	pattern_config.value = (uint8_t)scene_below(scene, 256);
	pattern_config.seed = scene_next(&scene->random);
	if (pattern_is_prbs(kind) && scene_chance(scene, 4))
		pattern_config.invert = (int)scene_below(scene, 2);
	for (uint32_t i = 0; i < SCENE_FILE_BYTES; i++)
		scene->file[i] = (uint8_t)scene_below(scene, 256);
	if (kind == PATTERN_FILE) {
		pattern_config.file = scene->file;
		pattern_config.file_bytes = 1 + scene_below(scene, SCENE_FILE_BYTES);
	}
	if (shape == SCENE_RAW)
		pattern_config = (struct pattern_config){ .kind = PATTERN_COUNTER8,
							  .restart = 1,
							  .invert = -1 };
	if (pattern_init(&scene->pattern, &pattern_config))
		return -1;
	scene->rings = 1 + scene_below(scene, SCENE_RINGS_MAX);
	scene->workers = 1 + scene_below(scene, 5);
	scene->hint = scene_chance(scene, 2) ? 60 : 0;
	scene->ring_bursts = 1u << scene_below(scene, 6);
	scene->ring_descs = BURST_FRAMES_MAX << scene_below(scene, 3);
	scene_descs(scene);
	scene_requests(scene);
	scene->frames = aligned_alloc(4096, SCENE_BYTES);
	if (!scene->frames)
		return -1;
	memset(scene->frames, 0xa5, SCENE_BYTES);
	return 0;
}

static inline void scene_free(struct scene *scene)
{
	pattern_free(&scene->pattern);
	free(scene->frames);
	scene->frames = NULL;
}

/* Where a frame begins in the region. */
static inline uint64_t scene_at(struct frame_desc desc)
{
	return ((uint64_t)desc.slot << SCENE_SLOT_SHIFT) + (desc.offset & 0x7fffu);
}

static inline uint8_t *scene_frame(const struct scene *scene, struct frame_desc desc)
{
	const uint64_t at = scene_at(desc);

	return at + desc.len <= SCENE_BYTES ? scene->frames + at : NULL;
}

/* One frame's bytes or descriptor are spoilt, in one of the ways of a wire, a switch or a liar. */
static inline void scene_spoil_frame(struct scene *scene, struct frame_desc *desc)
{
	uint8_t *frame = scene_frame(scene, *desc);
	const uint32_t own = scene->layout.own_offset;
	uint32_t at, n;

	if (!frame || desc->len < own + FRAME_HEADER_BYTES)
		return;
	switch (scene_below(scene, 10)) {
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
	case 4: /* custom */
		frame[scene->layout.vlan ? 16 : 12] ^= 0x40;
		break;
	case 5: /* all random */
		for (uint32_t i = 0; i < desc->len; i++)
			frame[i] = (uint8_t)scene_next(&scene->random);
		break;
	case 6: /* a header that is right but claims other things */
		at = own + (scene_chance(scene, 3) ? 3 : 4 + scene_below(scene, 28));
		if (scene_chance(scene, 3)) /* another stream */
			at = own + 4 + scene_below(scene, 2);
		frame[at] ^= (uint8_t)(1u << scene_below(scene, 8));
		frame_put32(frame + own + 32, frame_crc32c(frame_crc32c_table, frame + own, 32));
		break;
	case 7: /* the first or last payload byte */
		at = own + FRAME_HEADER_BYTES;
		if (at < desc->len)
			frame[scene_chance(scene, 2) ? at : desc->len - 1u] ^= 0x81;
		break;
	case 8: /* it did not fit its slot; the rest may be right */
		desc->offset |= FRAME_DESC_CUT;
		desc->len = (uint16_t)(desc->len - scene_below(scene, 3));
		break;
	default: /* poison that was never overwritten, from somewhere on */
		at = scene_below(scene, desc->len);
		memset(frame + at, 0xa5, desc->len - at);
		break;
	}
}

/* Spoils about one frame in `one_in`, and the order of some: duplicates and exchanges. */
static inline void scene_spoil(struct scene *scene, uint32_t one_in)
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

#include "kernel_scene_play.h"

#endif
