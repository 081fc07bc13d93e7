/* SPDX-License-Identifier: BSD-3-Clause */
/* What the workers must make of a scene: frame_check() and frame_expect_check() frame by frame,
 * and records by their description in burst_ring.h. */
#ifndef GDRCAP_TEST_KERNEL_REFERENCE_H
#define GDRCAP_TEST_KERNEL_REFERENCE_H

#include "kernel_scene_more.h"

/* Frame i of burst b. `made`: the scene as it is played, which may have it in two pieces. */
static struct frame_record reference_run(const struct scene *scene, const struct scene *made,
					 uint32_t b, uint32_t i)
{
	const struct frame_desc desc = scene->burst[b].desc[i];
	const uint8_t *frame = scene_frame(scene, desc);
	const struct frame_result none = { .verdict = FRAME_DAMAGED_LENGTH };
	struct frame_result one = { .verdict = FRAME_DAMAGED_LENGTH };
	struct frame_record record;

	if (frame && scene->store.view.count)
		frame_expect_check(&scene->layout, &scene->store.view, frame, desc.len, &one);
	else if (frame)
		frame_check(&scene->layout, &scene->pattern, frame_crc32c_table, frame, desc.len,
			    &one);
	if (desc.offset & FRAME_DESC_CUT && frame && one.verdict != FRAME_FILTERED &&
	    one.verdict != FRAME_END) {
		const struct frame_result was = one;

		one = none;
		if (!scene->store.view.count) {
			one.sequence = was.sequence;
			one.stream = was.stream;
			one.header_ok = was.header_ok;
			one.source = was.source;
		}
	}
	if (one.verdict != FRAME_VALID && one.verdict != FRAME_END && scene_is_absent(made, b, i)) {
		one = none;
		one.verdict = FRAME_DAMAGED_STALE;
	}
	memset(&record, 0, sizeof(record));
	record.verdict = one.verdict;
	record.count = 1;
	record.first = (uint16_t)i;
	record.frame_bytes = desc.len;
	if (one.verdict == FRAME_FILTERED)
		return record;
	record.bytes = one.payload_bytes;
	record.header_ok = one.header_ok;
	record.sequence = one.sequence;
	record.stream = (uint16_t)one.stream;
	record.source = one.source;
	record.phase_first = one.phase_first;
	record.phase_next = one.phase_next;
	record.detail = one.detail;
	if (one.verdict != FRAME_VALID && one.verdict != FRAME_END) {
		record.wrong_bits = one.wrong_bits;
		record.offset = one.offset;
		record.expected = one.expected;
		record.got = one.got;
	}
	return record;
}

/* `record` so far, of which `last` is the last frame. */
static bool reference_joins(const struct scene *scene, const struct frame_record *record,
			    const struct frame_record *last, const struct frame_record *next)
{
	const struct frame_custom *custom = &scene->layout.custom;
	uint64_t follows = record->sequence + record->count * custom->sequence_step;

	if (record->verdict != next->verdict)
		return false;
	if (next->verdict == FRAME_FILTERED)
		return true;
	if (next->verdict != FRAME_VALID || record->stream != next->stream ||
	    record->source != next->source)
		return false;
	if (scene->store.view.count) {
		follows = (last->sequence + 1) % scene->store.view.count;
		return scene->store.frames[follows].class_first == next->sequence;
	}
	if (scene->layout.format != FRAME_CUSTOM)
		return record->sequence + record->count == next->sequence && next->sequence;
	if (custom->sequence.bytes && custom->sequence.bytes < 8)
		follows %= 1ull << (8 * custom->sequence.bytes);
	if (custom->sequence.bytes && follows != next->sequence)
		return false;
	return !custom->self_phase || record->phase_next == next->phase_first;
}

static void reference_check(const struct scene *scene, const struct scene *made,
			    struct scene_result *result)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		const struct scene_burst *burst = &scene->burst[b];
		struct frame_record last = { 0 };

		result[b].records = 0;
		for (uint32_t i = 0; i < burst->count; i++) {
			const struct frame_record next = reference_run(scene, made, b, i);
			struct frame_record *record =
				&result[b].record[i ? result[b].records - 1 : 0];

			if (i && reference_joins(scene, record, &last, &next)) {
				record->count++;
				record->bytes += next.bytes;
				record->frame_bytes += next.frame_bytes;
				record->phase_next = next.phase_next;
			} else {
				result[b].record[result[b].records++] = next;
			}
			last = next;
		}
	}
}

static void reference_write(const struct scene *scene, uint8_t *frames)
{
	const struct frame_store_view *store = &scene->store.view;

	memset(frames, 0xa5, SCENE_BYTES);
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		const struct scene_burst *burst = &scene->burst[b];
		const bool end = burst->request.end;
		uint64_t position = burst->request.position;

		for (uint32_t i = 0; i < burst->count; i++) {
			const struct frame_desc desc = burst->desc[i];
			const uint8_t *at = scene_frame(scene, desc);
			const struct frame_header header = {
				.sequence = burst->request.sequence + (end ? 0 : i),
				.position = position,
				.time_ns = burst->request.time_ns,
				.stream = (uint16_t)burst->request.stream,
				.payload_bytes = end ? 0
						     : (uint16_t)frame_payload_bytes(&scene->layout,
										     desc.len),
				.pattern = end ? 0xff : (uint8_t)scene->pattern.kind,
				.version = FRAME_VERSION,
			};

			position += header.payload_bytes;
			if (!at)
				continue;
			if (!store->count || end) {
				frame_write(&scene->layout, &scene->pattern,
					    frames + (at - scene->frames), desc.len, &header);
				continue;
			}
			if (burst->request.position + i < store->count) {
				const uint64_t from = store->frames[burst->request.position + i].at;

				if (from + desc.len <= store->data_bytes)
					memcpy(frames + (at - scene->frames), store->data + from,
					       desc.len);
			}
		}
	}
}

#endif
