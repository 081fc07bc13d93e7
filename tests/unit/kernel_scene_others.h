/* SPDX-License-Identifier: BSD-3-Clause */
/* Scenes of kernel_scene.h with other frames than our own: of somebody else's sender, of a file.
 */
#ifndef GDRCAP_TEST_KERNEL_SCENE_OTHERS_H
#define GDRCAP_TEST_KERNEL_SCENE_OTHERS_H

#include "kernel_scene.h"

static void scene_field_put(const struct frame_field *field, uint8_t *frame, uint64_t value)
{
	for (uint32_t i = 0; i < field->bytes; i++, value >>= 8)
		frame[field->offset + (field->little ? i : field->bytes - 1 - i)] = (uint8_t)value;
}

/*
 * Somebody else's sender: fills all frames, in order, that are long enough for the layout. Returns
 * how many must be valid: those of which a phase can be found, where it must.
 */
static uint32_t scene_custom_fill(struct scene *scene)
{
	const struct frame_custom *custom = &scene->layout.custom;
	uint64_t mask = UINT64_MAX, position = scene->burst[0].request.position, k = 0;
	uint32_t filled = 0;

	if (custom->sequence.bytes)
		mask >>= 64 - 8 * custom->sequence.bytes;
	while (mask + 1 && custom->sequence_step > mask)
		scene->layout.custom.sequence_step /= 2;
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < scene->burst[b].count; i++, k++) {
			const struct frame_desc desc = scene->burst[b].desc[i];
			uint8_t *frame = scene_frame(scene, desc);
			struct pattern_place place = { .stream = scene->burst[0].request.stream };
			uint32_t bytes = custom->payload_bytes;

			if (!frame || desc.len < custom->payload + bytes)
				continue;
			if (!bytes)
				bytes = desc.len - custom->payload;
			/* nothing to check is no valid frame */
			if (!bytes && scene->pattern.kind != PATTERN_NONE)
				continue;
			for (uint32_t at = 0; at < custom->payload; at++)
				frame[at] = (uint8_t)at;
			frame_put16(frame + 12, FRAME_ETHERTYPE);
			scene_field_put(&custom->stream, frame, place.stream);
			scene_field_put(&custom->sequence, frame,
					custom->sequence_start + k * custom->sequence_step);
			if (custom->stream.bytes < 2)
				place.stream &= custom->stream.bytes ? 0xff : 0;
			place.sequence = frame_number(
				&scene->layout, custom->sequence_start + k * custom->sequence_step);
			place.position = custom->self_phase ? position : place.sequence * bytes;
			pattern_fill(&scene->pattern, &place, frame + custom->payload, bytes);
			position += bytes;
			filled += !custom->self_phase || bytes >= 12;
		}
	}
	return filled;
}

/*
 * Turns the scene into one of a file's frames, after scene_make(): requests name stretches of the
 * file, slots have its frames' lengths, and some reach beyond what there is.
 */
static void scene_store_make(struct scene *scene, const struct built_memory *memory)
{
	const uint32_t count = 2 + scene_below(scene, 300);
	const uint8_t **bytes = calloc(count, sizeof(*bytes));
	uint32_t *len = calloc(count, sizeof(*len));

	if (!bytes || !len)
		abort();
	for (uint32_t i = 0; i < count; i++) {
		uint8_t *frame = malloc(FRAME_LEN_MAX + 1);
		const uint32_t like = scene_below(scene, count);

		if (!frame)
			abort();
		len[i] = scene_len(scene) % (FRAME_LEN_MAX + 1);
		for (uint32_t at = 0; at < len[i]; at++)
			frame[at] = (uint8_t)scene_next(&scene->random);
		if (like < i) {
			len[i] = len[like];
			memcpy(frame, bytes[like], len[i]);
			if (len[i] && scene_chance(scene, 2))
				frame[scene_below(scene, len[i])] ^= 1;
		}
		if (len[i] > 13 && scene_chance(scene, 2))
			frame_put16(frame + 12, scene->layout.ethertype);
		bytes[i] = frame;
	}
	built_create(&scene->store, memory, bytes, len, count);
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		struct scene_burst *burst = &scene->burst[b];
		const uint32_t from = scene_below(scene, count);

		if (!burst->request.end)
			burst->request.position = from;
		for (uint32_t i = 0; i < burst->count; i++) {
			const uint32_t stored = from + i < count ? len[from + i] : 60;

			burst->desc[i].len =
				(uint16_t)(stored < 60 && scene_chance(scene, 2) ? 60 : stored);
			if (scene_chance(scene, 100))
				burst->desc[i].len = (uint16_t)scene_len(scene);
		}
	}
	for (uint32_t i = 0; i < count; i++)
		free((void *)bytes[i]);
	free(bytes);
	free(len);
}

#endif
