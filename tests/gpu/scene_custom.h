/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random traffic of others for a kernel back end: custom layouts with and without a known phase,
 * rules that say which frames are meant, and what spoils such frames.
 */
#ifndef GDRCAP_TEST_SCENE_CUSTOM_H
#define GDRCAP_TEST_SCENE_CUSTOM_H

#include "../unit/kernel_scene.h"

/* A field somewhere in the first `room` bytes. */
static void custom_field(struct scene *scene, struct frame_field *field, uint32_t room)
{
	field->bytes = (uint8_t)(1 + scene_below(scene, 8));
	field->little = (uint8_t)scene_below(scene, 2);
	field->offset =
		(uint16_t)scene_below(scene, room > field->bytes ? room - field->bytes + 1 : 1);
}

static void custom_field_put(const struct frame_field *field, uint8_t *frame, uint32_t len,
			     uint64_t value)
{
	for (uint32_t i = 0; i < field->bytes; i++) {
		const uint32_t at = field->offset + (field->little ? i : field->bytes - 1 - i);

		if (at < len)
			frame[at] = (uint8_t)(value >> (8 * i));
	}
}

static void custom_layout(struct scene *scene, bool self_phase)
{
	struct frame_custom *custom = &scene->layout.custom;
	static const uint8_t usual[] = { 0, 14, 18, 22, 42, 46, 62, 100 };

	memset(&scene->layout, 0, sizeof(scene->layout));
	scene->layout.format = FRAME_CUSTOM;
	custom->payload = scene_chance(scene, 2) ? usual[scene_below(scene, sizeof(usual))]
						 : scene_below(scene, FRAME_CUSTOM_PAYLOAD_MAX + 1);
	custom->self_phase = self_phase;
	if (scene_chance(scene, 2))
		custom_field(scene, &custom->sequence, custom->payload);
	if (scene_chance(scene, 3))
		custom_field(scene, &custom->stream, custom->payload);
	custom->sequence_start = scene_chance(scene, 2) ? 0 : scene_next(&scene->random);
	custom->sequence_step = scene_chance(scene, 2) ? 1 : 1 + scene_below(scene, 5000);
	if (scene_chance(scene, 2))
		custom->payload_bytes = 1 + scene_below(scene, scene_chance(scene, 2) ? 60 : 1450);
}

/* Headers of a few kinds, so that rules made from the same values often agree. */
static void custom_headers(struct scene *scene, uint8_t *frame, uint32_t len)
{
	static const uint16_t types[] = { 0x0800, 0x86dd, 0x88b5, 0x0806 };
	uint32_t at = 12, ip;
	uint8_t head[128];

	for (uint32_t i = 0; i < sizeof(head); i++)
		head[i] = (uint8_t)scene_next(&scene->random);
	memset(head, 2, 12);
	head[5] = (uint8_t)scene_below(scene, 2);
	head[11] = (uint8_t)scene_below(scene, 2);
	for (uint32_t tags = scene_below(scene, 4); tags > 1; tags--, at += 4) {
		frame_put16(head + at, scene_chance(scene, 2) ? 0x8100 : 0x88a8);
		frame_put16(head + at + 2, 0xe000 | scene_below(scene, 3));
	}
	frame_put16(head + at, types[scene_below(scene, 4)]);
	ip = at + 2;
	if (frame_be16(head + at) == 0x0800) {
		const uint32_t words = scene_chance(scene, 3) ? 5 + scene_below(scene, 11) : 5;

		head[ip] = (uint8_t)(0x40 | words);
		frame_put16(head + ip + 6, scene_chance(scene, 8) ? 0x2001 : 0x4000);
		head[ip + 9] = scene_chance(scene, 4) ? 6 : 17;
		frame_put32(head + ip + 12, 0xc0000200 | scene_below(scene, 4));
		frame_put32(head + ip + 16, 0xc0000200 | scene_below(scene, 4));
		frame_put16(head + ip + 4 * words, 4000 + scene_below(scene, 2));
		frame_put16(head + ip + 4 * words + 2, 4000 + scene_below(scene, 2));
	} else if (frame_be16(head + at) == 0x86dd) {
		head[ip] = 0x60;
		head[ip + 6] = scene_chance(scene, 4) ? 6 : 17;
		memset(head + ip + 8, 0x20, 32);
		head[ip + 23] = (uint8_t)scene_below(scene, 4);
		head[ip + 39] = (uint8_t)scene_below(scene, 4);
		frame_put16(head + ip + 40, 4000 + scene_below(scene, 2));
		frame_put16(head + ip + 42, 4000 + scene_below(scene, 2));
	}
	memcpy(frame, head, len < sizeof(head) ? len : sizeof(head));
}

/* Rules from the values of custom_headers(), and of an own layout where there is one. */
static void custom_rules(struct scene *scene)
{
	static const uint16_t types[] = { 0x0800, 0x86dd, 0x88b5, 0x0806 };
	struct frame_match *match = &scene->layout.match;

	match->count = 1 + scene_below(scene, FRAME_MATCH_RULES);
	for (uint32_t r = 0; r < match->count; r++) {
		struct frame_match_rule *rule = &match->rule[r];
		const bool old = scene_chance(scene, 2);

		memset(rule, 0, sizeof(*rule));
		rule->fields =
			(uint32_t)(scene_next(&scene->random) & scene_next(&scene->random)) & 0xff;
		memset(rule->src_mac, 2, 6);
		memset(rule->dst_mac, 2, 6);
		rule->src_mac[5] = (uint8_t)scene_below(scene, 2);
		rule->dst_mac[5] = (uint8_t)scene_below(scene, 2);
		rule->ethertype = types[scene_below(scene, 4)];
		rule->vlan = (uint16_t)scene_below(scene, 3);
		rule->src_port = (uint16_t)(4000 + scene_below(scene, 2));
		rule->dst_port = (uint16_t)(4000 + scene_below(scene, 2));
		rule->ip_version = old ? 4 : 6;
		rule->src_prefix = (uint8_t)(1 + scene_below(scene, old ? 32 : 128));
		rule->dst_prefix = (uint8_t)(1 + scene_below(scene, old ? 32 : 128));
		memset(rule->src_ip, 0x20, 16);
		memset(rule->dst_ip, 0x20, 16);
		rule->src_ip[15] = (uint8_t)scene_below(scene, 4);
		rule->dst_ip[15] = (uint8_t)scene_below(scene, 4);
		if (old) {
			frame_put32(rule->src_ip, 0xc0000200 | scene_below(scene, 4));
			frame_put32(rule->dst_ip, 0xc0000200 | scene_below(scene, 4));
		}
	}
}

/* Fills the frames as a sender with this layout does, losses, repeats and cut frames included. */
static void custom_fill(struct scene *scene)
{
	const struct frame_layout *layout = &scene->layout;
	const struct frame_custom *custom = &layout->custom;
	const uint32_t stream = scene_below(scene, 65536);
	uint64_t number = scene_below(scene, 1000), position = scene_next(&scene->random) >> 8;

	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < scene->burst[b].count; i++) {
			const struct frame_desc desc = scene->burst[b].desc[i];
			uint8_t *frame = scene_frame(scene, desc);
			const uint32_t bytes = frame_payload_bytes(layout, desc.len);
			struct pattern_place place;
			struct frame_header header;
			int ok;

			if (!frame)
				continue;
			custom_headers(scene, frame, desc.len);
			custom_field_put(&custom->stream, frame, desc.len, stream);
			custom_field_put(&custom->sequence, frame, desc.len,
					 custom->sequence_start + number * custom->sequence_step);
			frame_parse(layout, frame_crc32c_table, frame, desc.len, &header, &ok);
			frame_place(layout, &header, &place);
			if (custom->self_phase)
				place.position = position;
			if (bytes)
				pattern_fill(&scene->pattern, &place, frame + custom->payload,
					     bytes);
			position += bytes;
			if (scene_chance(scene, 40)) {
				number += scene_below(scene, 5);
				position += scene_below(scene, 5) * bytes;
			} else if (!scene_chance(scene, 60)) {
				number++;
			}
		}
	}
}

/* Bits from elsewhere in a stretch of a payload, as after a slip or from many senders. */
static void custom_splice(struct scene *scene, uint8_t *payload, uint32_t bytes)
{
	struct pattern_place place = { .position = scene_next(&scene->random) >> 8 };
	const uint32_t part = scene_chance(scene, 2) ? 12 + scene_below(scene, 5) : bytes;
	uint8_t other[FRAME_MAX_BYTES];
	uint32_t at = scene_chance(scene, 2) ? 0 : scene_below(scene, bytes);

	for (; at < bytes; at += part) {
		const uint32_t slip = scene_below(scene, 8);
		const uint32_t n = bytes - at < part ? bytes - at : part;

		place.position += 1 + scene_below(scene, 1000);
		pattern_fill(&scene->pattern, &place, other, n + 1);
		for (uint32_t i = 0; i < n; i++)
			payload[at + i] =
				(uint8_t)((uint32_t)(other[i] << 8 | other[i + 1]) >> (8 - slip));
	}
}

/* Spoils about one payload in `one_in`, in ways that a search for the phase must bear. */
static void custom_spoil(struct scene *scene, uint32_t one_in)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < scene->burst[b].count; i++) {
			const struct frame_desc desc = scene->burst[b].desc[i];
			const uint32_t bytes = frame_payload_bytes(&scene->layout, desc.len);
			uint8_t *frame = scene_frame(scene, desc);
			uint8_t *payload;

			if (!frame || !bytes || !scene_chance(scene, one_in))
				continue;
			payload = frame + scene->layout.custom.payload;
			switch (scene_below(scene, 6)) {
			case 0: /* in the first words */
				payload[scene_below(scene, bytes < 16 ? bytes : 16)] ^= 0x10;
				break;
			case 1: /* no signal, of either kind */
				memset(payload, scene_chance(scene, 2) ? 0 : 0xff, bytes);
				break;
			case 2:
				custom_splice(scene, payload, bytes);
				break;
			case 3: /* about as many wrong bits as are borne */
				for (uint32_t n = 0; n < bytes; n++)
					payload[n] ^= scene_chance(scene, 2)   ? 0x11
						      : scene_chance(scene, 2) ? 0x0e
									       : 0;
				break;
			case 4: /* now and then a bit: words in between are right */
				for (uint32_t n = 0; n < bytes; n += 1 + scene_below(scene, 30))
					payload[n] ^= (uint8_t)(1u << scene_below(scene, 8));
				break;
			default: /* right only at the end */
				for (uint32_t n = 0; n < bytes * 3 / 5; n++)
					payload[n] = (uint8_t)scene_next(&scene->random);
				break;
			}
		}
	}
}

/* A custom scene, with rules or without. */
static int custom_make(struct scene *scene, uint64_t seed, enum pattern_kind kind, bool self_phase,
		       bool rules)
{
	const struct pattern_config pattern_config = {
		.kind = kind,
		.invert = -1,
		.restart = !self_phase && (seed & 1),
		.value = (uint8_t)seed,
		.seed = seed,
	};

	if (scene_make(scene, seed, PATTERN_NONE, 0))
		return -1;
	pattern_free(&scene->pattern);
	if (pattern_init(&scene->pattern, &pattern_config))
		return -1;
	custom_layout(scene, self_phase);
	if (rules)
		custom_rules(scene);
	custom_fill(scene);
	return 0;
}

#endif
