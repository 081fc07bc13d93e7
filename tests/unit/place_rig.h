/* SPDX-License-Identifier: BSD-3-Clause */
/* Images placed by a back end's workers from frames that a test gives it, through a real burst ring. */
#ifndef GDRCAP_TEST_PLACE_RIG_H
#define GDRCAP_TEST_PLACE_RIG_H

#include <sys/mman.h>

#include "image_wire.h"
#include "kernel_scene.h"

#define RIG_PAGE ((size_t)4096)
#define RIG_RECORDS 65536u

/* Memory of one kind of images; a page that cannot be touched follows each image, another comes before. */
struct rig_images {
	struct place_view view;
	uint8_t *mapped;
	size_t bytes;
};

struct place_rig {
	struct rig_images images[KERNEL_PLACES_MAX];
	struct place_view view[KERNEL_PLACES_MAX];
	uint32_t views;
	struct scene *scene;
	struct scene_burst burst;
	struct scene_ring ring;
	struct kernel_device *device;
	struct kernel_workers *workers;
	uint32_t *stop;
	uint32_t next; /* slot */
	struct place_record *record;
	uint32_t records;
};

static inline void *rig_alloc(size_t bytes)
{
	void *memory = aligned_alloc(128, (bytes + 127) & ~(size_t)127);

	if (!memory)
		abort();
	memset(memory, 0, (bytes + 127) & ~(size_t)127);
	return memory;
}

static const struct scene_memory rig_memory = { rig_alloc, free };

/* Buffers 0 .. ring - 1 are given. */
static inline void rig_images_create(struct rig_images *images, const struct image_layout *layout,
				     uint32_t ring)
{
	const size_t bytes = image_in_buffer(layout, layout->bytes);
	const size_t whole = (bytes + RIG_PAGE - 1) & ~(RIG_PAGE - 1);
	const size_t stride = whole + RIG_PAGE;
	struct place_view *view = &images->view;

	images->bytes = stride * ring + RIG_PAGE;
	images->mapped = mmap(NULL, images->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (images->mapped == MAP_FAILED)
		abort();
	view->layout = *layout;
	view->ring = ring;
	view->stride = stride;
	view->images = images->mapped + RIG_PAGE + whole - bytes;
	view->present_words = place_words(layout->pieces);
	view->present = rig_alloc((size_t)ring * view->present_words * 4);
	view->present_host = rig_alloc((size_t)ring * view->present_words * 4);
	view->table = rig_alloc(sizeof(*view->table));
	view->shared = rig_alloc(sizeof(*view->shared));
	for (uint32_t s = 0; s < ring; s++) {
		uint8_t *pages = images->mapped + RIG_PAGE + s * stride;

		if (mprotect(pages, whole, PROT_READ | PROT_WRITE))
			abort();
		memset(pages, 0xa5, whole);
		place_give(view->shared, s);
	}
}

static inline void rig_images_free(struct rig_images *images)
{
	munmap(images->mapped, images->bytes);
	free(images->view.present);
	free(images->view.present_host);
	free(images->view.table);
	free(images->view.shared);
}

static inline uint8_t *rig_image(const struct place_view *view, uint32_t slot)
{
	return view->images + slot * view->stride;
}

static inline int rig_present(const struct place_view *view, const uint32_t *present, uint32_t slot,
			      uint32_t piece)
{
	return present[(size_t)slot * view->present_words + piece / 32] >> piece % 32 & 1;
}

/* Buffer `slot` may be taken again. */
static inline void rig_give(const struct place_view *view, uint32_t slot)
{
	place_give(view->shared, slot);
}

/* Images of the stream up to `number` were handed out. */
static inline void rig_window(const struct place_view *view, uint32_t stream, uint64_t number)
{
	__atomic_store_n(&view->shared->window[stream].last, number + 1, __ATOMIC_RELEASE);
}

/* Without images: rig_images_create() before. */
static inline void rig_start(struct place_rig *rig, const struct kernel_ops *ops, uint32_t workers)
{
	struct kernel_job job = { .role = KERNEL_PLACE,
				  .rings = &rig->ring.view,
				  .ring_count = 1,
				  .workers_per_ring = workers,
				  .places = rig->view,
				  .place_count = rig->views };

	rig->scene = calloc(1, sizeof(*rig->scene));
	rig->record = calloc(RIG_RECORDS, sizeof(*rig->record));
	rig->stop = rig_alloc(sizeof(*rig->stop));
	if (!rig->scene || !rig->record)
		abort();
	rig->scene->ring_bursts = 8;
	rig->scene->ring_descs = 4 * BURST_FRAMES_MAX;
	scene_ring_create(&rig->ring, rig->scene, &rig_memory, rig_alloc(SCENE_BYTES), rig->stop,
			  KERNEL_PLACE);
	for (uint32_t v = 0; v < rig->views; v++)
		rig->view[v] = rig->images[v].view;
	if (ops->open(0, &rig->device) || ops->start(rig->device, &job, &rig->workers)) {
		fprintf(stderr, "start: %s\n", kernel_error());
		abort();
	}
}

/* One kind of images. */
static inline void rig_create(struct place_rig *rig, const struct image_layout *layout,
			      uint32_t ring, uint32_t workers)
{
	memset(rig, 0, sizeof(*rig));
	rig_images_create(&rig->images[0], layout, ring);
	rig->views = 1;
	rig_start(rig, &kernel_host_ops, workers);
}

static inline void rig_destroy(struct place_rig *rig)
{
	__atomic_store_n(rig->stop, 1, __ATOMIC_RELAXED);
	if (kernel_host_ops.join(rig->workers, SCENE_HANG_SECONDS * 1000))
		abort();
	kernel_host_ops.close(rig->device);
	for (uint32_t v = 0; v < rig->views; v++)
		rig_images_free(&rig->images[v]);
	free(rig->ring.view.frames);
	scene_ring_free(&rig->ring, &rig_memory);
	free(rig->scene);
	free(rig->record);
	free(rig->stop);
}

/* Takes the results of the oldest burst, if it is done. */
static inline bool rig_collect(struct place_rig *rig)
{
	struct scene_ring *ring = &rig->ring;
	const uint64_t b = ring->collected;
	const struct burst_result *result = &ring->result[b & ring->view.burst_mask];
	const uint32_t count = burst_word_count(ring->ready[b & ring->view.burst_mask].word);
	uint32_t records;

	if (!burst_is_done(result, b, ring->bits))
		return false;
	records = burst_records(&ring->view, b);
	if ((result->done & BURST_PLAIN) || rig->records + records > RIG_RECORDS)
		abort();
	for (uint32_t r = 0; r < records; r++)
		memcpy(&rig->record[rig->records++], record_at(&ring->view, ring->tail, r),
		       sizeof(struct place_record));
	ring->tail += count;
	ring->collected++;
	return true;
}

/* Publishes the frames given since the last time; waits until all are placed. */
static inline void rig_flush(struct place_rig *rig)
{
	while (rig->burst.count && !scene_ring_publish(&rig->ring, &rig->burst))
		if (!rig_collect(rig))
			nap();
	rig->burst.count = 0;
	while (rig->ring.collected < rig->ring.published)
		if (!rig_collect(rig))
			nap();
}

/* Publishes them, and waits for nothing but room. */
static inline void rig_publish(struct place_rig *rig)
{
	while (rig->burst.count && !scene_ring_publish(&rig->ring, &rig->burst))
		if (!rig_collect(rig))
			nap();
	rig->burst.count = 0;
}

/* A slot is taken again only after all that the ring can hold. */
static inline struct frame_desc *rig_frame(struct place_rig *rig, const uint8_t *frame,
					   uint32_t len)
{
	struct frame_desc *desc = &rig->burst.desc[rig->burst.count];

	if (rig->burst.count == BURST_FRAMES_MAX)
		rig_publish(rig);
	desc = &rig->burst.desc[rig->burst.count++];
	desc->slot = rig->next++ % SCENE_SLOTS;
	desc->len = (uint16_t)len;
	desc->offset = (uint16_t)(64 + rig->next % 61);
	memcpy(rig->ring.view.frames + scene_at(*desc), frame, len);
	return desc;
}

static inline struct frame_desc *rig_wire(struct place_rig *rig, const struct wire *wire)
{
	return rig_frame(rig, wire->at, wire->len);
}

/* Frames of all records with this outcome. */
static inline uint32_t rig_frames(const struct place_rig *rig, enum place_outcome outcome)
{
	uint32_t frames = 0;

	for (uint32_t r = 0; r < rig->records; r++)
		if (rig->record[r].outcome == outcome)
			frames += rig->record[r].count;
	return frames;
}

/* Of an image buffer's use. */
struct rig_sums {
	uint64_t bytes;
	uint32_t pieces, placed, duplicate, ends, expected;
};

static inline struct rig_sums rig_sums(const struct place_rig *rig, uint32_t slot, uint32_t use)
{
	struct rig_sums sums = { 0 };

	for (uint32_t r = 0; r < rig->records; r++) {
		const struct place_record *record = &rig->record[r];

		if (record->slot != slot || record->use != use)
			continue;
		sums.bytes += record->bytes;
		sums.pieces += record->pieces;
		sums.ends |= record->ends;
		sums.expected = record->expected > sums.expected ? record->expected : sums.expected;
		if (record->outcome == PLACE_PLACED)
			sums.placed += record->count;
		else
			sums.duplicate += record->count;
	}
	return sums;
}

#endif
