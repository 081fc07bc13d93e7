/* SPDX-License-Identifier: BSD-3-Clause */
/* Plays a scene through burst rings, and compares what came of it. Included by kernel_scene.h. */
#ifndef GDRCAP_TEST_KERNEL_SCENE_PLAY_H
#define GDRCAP_TEST_KERNEL_SCENE_PLAY_H

/* ---- the producer ---- */

struct scene_ring {
	struct burst_ring_view view;
	struct frame_desc *desc;
	struct burst_ready *ready;
	struct burst_beside *beside;
	struct burst_result *result;
	struct frame_record *records;
	struct tx_request *request;
	struct frame_desc *head_desc; /* NULL: frames lie whole */
	uint32_t bits;
	uint64_t published, collected; /* bursts */
	uint32_t head, tail;	       /* descriptors */
};

static inline void *scene_part(const struct scene_memory *memory, size_t bytes)
{
	void *part = memory->ring_alloc(bytes);

	if (!part) {
		fprintf(stderr, "no memory for a ring\n");
		exit(1);
	}
	return part;
}

static inline void scene_ring_create(struct scene_ring *ring, const struct scene *scene,
				     const struct scene_memory *memory, uint8_t *frames,
				     uint32_t *stop, enum kernel_role role)
{
	memset(ring, 0, sizeof(*ring));
	ring->desc = scene_part(memory, scene->ring_descs * sizeof(*ring->desc));
	ring->ready = scene_part(memory, scene->ring_bursts * sizeof(*ring->ready));
	ring->beside = scene_part(memory, scene->ring_bursts * sizeof(*ring->beside));
	ring->result = scene_part(memory, scene->ring_bursts * sizeof(*ring->result));
	ring->records = scene_part(memory, scene->ring_descs * sizeof(*ring->records));
	ring->request = scene_part(memory, scene->ring_bursts * sizeof(*ring->request));
	/* free-running indices pass 2^32 in the middle of a record */
	ring->head = ring->tail = 0 - 3 * BURST_FRAMES_MAX;
	ring->view.desc = ring->desc;
	ring->view.ready = ring->ready;
	ring->view.beside = role == KERNEL_CHECK ? ring->beside : NULL;
	ring->view.result = ring->result;
	ring->view.records = ring->records;
	ring->view.request = ring->request;
	ring->view.stop = stop;
	ring->view.frames = frames;
	ring->view.frames_bytes = SCENE_BYTES;
	ring->view.desc_mask = scene->ring_descs - 1;
	ring->view.burst_mask = scene->ring_bursts - 1;
	ring->view.slot_shift = SCENE_SLOT_SHIFT;
	while (scene->ring_bursts >> ring->bits > 1)
		ring->bits++;
	if (!scene->heads)
		return;
	ring->head_desc = scene_part(memory, scene->ring_descs * sizeof(*ring->head_desc));
	ring->view.head_desc = ring->head_desc;
	ring->view.head_shift = SCENE_HEAD_SHIFT;
	ring->view.heads_bytes = SCENE_HEADS_BYTES;
}

static inline void scene_ring_free(struct scene_ring *ring, const struct scene_memory *memory)
{
	memory->ring_free(ring->desc);
	memory->ring_free(ring->ready);
	memory->ring_free(ring->beside);
	memory->ring_free(ring->result);
	memory->ring_free(ring->records);
	memory->ring_free(ring->request);
	if (ring->head_desc)
		memory->ring_free(ring->head_desc);
}

static inline bool scene_ring_publish(struct scene_ring *ring, const struct scene_burst *burst)
{
	const uint32_t at = ring->published & ring->view.burst_mask;

	if (ring->published - ring->collected > ring->view.burst_mask ||
	    ring->head - ring->tail + burst->count > ring->view.desc_mask + 1)
		return false;
	for (uint32_t i = 0; i < burst->count; i++) {
		const uint32_t d = (ring->head + i) & ring->view.desc_mask;

		ring->desc[d] = burst->desc[i];
		if (ring->head_desc)
			ring->head_desc[d] = burst->head[i];
	}
	ring->request[at] = burst->request;
	burst_publish(&ring->ready[at], ring->view.beside ? &ring->beside[at] : NULL, burst->desc,
		      ring->published, ring->bits, burst->count, ring->head);
	ring->head += burst->count;
	ring->published++;
	return true;
}

static inline bool scene_ring_collect(struct scene_ring *ring, const struct scene_burst *burst,
				      struct scene_result *result)
{
	const uint64_t b = ring->collected;
	struct frame_record plain;

	if (!burst_is_done(&ring->result[b & ring->view.burst_mask], b, ring->bits))
		return false;
	result->records = burst_records(&ring->view, b);
	result->plain = ring->result[b & ring->view.burst_mask].done & BURST_PLAIN;
	for (uint32_t r = 0; r < result->records && r < BURST_FRAMES_MAX; r++)
		result->record[r] = *record_read(&ring->view, b, ring->tail, r, &plain);
	ring->tail += burst->count;
	ring->collected++;
	return true;
}

static inline uint32_t scene_bursts_of(const struct scene *scene, uint32_t ring)
{
	return (SCENE_BURSTS - ring + scene->rings - 1) / scene->rings;
}

/*
 * Plays the scene through a back end whose frames lie at `frames`. 0; on an error says what
 * happened and returns -1. result: SCENE_BURSTS entries.
 */
static inline int scene_play(const struct scene *scene, const struct kernel_ops *ops,
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
		.pattern = scene->pattern,
		.store = scene->store.view.count ? &scene->store.view : NULL,
	};
	const time_t until = time(NULL) + SCENE_HANG_SECONDS;
	uint32_t left = SCENE_BURSTS, *generation = NULL;
	uint8_t *heads = NULL;
	int ret;

	if (scene->heads) {
		heads = scene_part(memory, SCENE_HEADS_BYTES);
		memcpy(heads, scene->heads, SCENE_HEADS_BYTES);
	}
	if (scene->generation) {
		generation = scene_part(memory, SCENE_SLOTS * sizeof(*generation));
		memcpy(generation, scene->generation, SCENE_SLOTS * sizeof(*generation));
	}
	for (uint32_t r = 0; r < scene->rings; r++) {
		scene_ring_create(&ring[r], scene, memory, frames, stop, role);
		ring[r].view.heads = heads;
		ring[r].view.generation = generation;
		ring[r].view.stale_us = SCENE_STALE_US;
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
		nap();
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
	if (heads)
		memory->ring_free(heads);
	if (generation) {
		memcpy(scene->generation_after, generation, SCENE_SLOTS * sizeof(*generation));
		memory->ring_free(generation);
	}
	memory->ring_free(stop);
	return ret ? -1 : 0;
}

/* ---- comparing ---- */

static inline void record_print(const char *who, const struct frame_record *record)
{
	fprintf(stderr,
		"  %s: first %u count %u verdict %u header_ok %u stream %u sequence %llu bytes %u "
		"wire %u "
		"wrong_bits %u offset %u expected %02x got %02x phases %08x %08x detail %u\n",
		who, record->first, record->count, record->verdict, record->header_ok,
		record->stream, (unsigned long long)record->sequence, record->bytes,
		record->frame_bytes, record->wrong_bits, record->offset, record->expected,
		record->got, record->phase_first, record->phase_next, record->detail);
}

/* True when both said the same; else prints the first difference. */
static inline bool scene_same_runs(const struct scene *scene, const struct scene_result *want,
				   const struct scene_result *got)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		const uint32_t records =
			want[b].records < got[b].records ? want[b].records : got[b].records;

		for (uint32_t r = 0; r < records; r++) {
			const struct frame_desc desc =
				scene->burst[b].desc[want[b].record[r].first];

			if (!memcmp(&want[b].record[r], &got[b].record[r],
				    sizeof(struct frame_record)))
				continue;
			fprintf(stderr,
				"burst %u (of %u frames), record %u; frame %u: slot %u offset %u len "
				"%u\n",
				b, scene->burst[b].count, r, want[b].record[r].first, desc.slot,
				desc.offset, desc.len);
			record_print("want", &want[b].record[r]);
			record_print("got ", &got[b].record[r]);
			return false;
		}
		if (!scene->generation && !scene->heads &&
		    got[b].plain != (got[b].records == 1 && record_is_plain(&got[b].record[0]))) {
			fprintf(stderr, "burst %u: %stold by PLAIN\n", b,
				got[b].plain ? "" : "not ");
			return false;
		}
		if (want[b].records != got[b].records) {
			fprintf(stderr, "burst %u: %u records, not %u\n", b, got[b].records,
				want[b].records);
			return false;
		}
	}
	return true;
}

/* True when both regions are the same; else names the first frame that differs. */
static inline bool scene_same_frames(const struct scene *scene, const uint8_t *want,
				     const uint8_t *got)
{
	if (!memcmp(want, got, SCENE_BYTES))
		return true;
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < scene->burst[b].count; i++) {
			const struct frame_desc desc = scene->burst[b].desc[i];
			const size_t from = scene_at(desc);

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
