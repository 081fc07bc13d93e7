/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scenes of kernel_scene.h in other memory: frames in two pieces, as header-data split leaves them,
 * and slots with the poison of the stale-read detector. What is said of the frames must be what is
 * said of the scene they were made from.
 */
#ifndef GDRCAP_TEST_KERNEL_SCENE_MORE_H
#define GDRCAP_TEST_KERNEL_SCENE_MORE_H

#include "kernel_scene.h"
#include "kernels/stale.h"

/* Where the frame of a slot was cut: a scene may name a slot more than once. */
struct scene_cut {
	uint32_t head_slot, head_len;
	uint16_t head_offset;
	bool made;
};

/* Where a first piece of `most` bytes at most ends: mostly as a card is told, but any may come. */
static inline uint32_t scene_cut_at(struct scene *scene, uint32_t most)
{
	const uint32_t at = scene_chance(scene, 8)   ? scene_below(scene, FRAME_HEAD_BYTES_MAX + 1)
			    : scene_chance(scene, 3) ? 32u << scene_below(scene, 3)
						     : 32 + scene_below(scene, 97);

	return at < most ? at : most;
}

/* A frame that cannot be reached: for whole frames' reason, or because its first piece cannot. */
static inline void scene_split_unreachable(struct scene *apart, struct frame_desc *desc,
					   struct frame_desc *head)
{
	const uint32_t len = desc->len;

	*head = (struct frame_desc){ 0 };
	if (scene_chance(apart, 3) || !len)
		return;
	*desc = (struct frame_desc){ .offset = (uint16_t)scene_below(apart, 64) };
	head->len = (uint16_t)(len < 100 ? len : 100);
	head->slot = SCENE_SLOTS + scene_below(apart, 2) * 0x7fffff00u;
	if (scene_chance(apart, 3)) { /* one byte past the end */
		head->slot = SCENE_SLOTS - 1;
		head->offset = (uint16_t)((1u << SCENE_HEAD_SHIFT) - head->len + 1);
	} else if (len > FRAME_HEAD_BYTES_MAX && scene_chance(apart, 2)) {
		*head = (struct frame_desc){ .len = FRAME_HEAD_BYTES_MAX + 1 };
	}
	desc->len = (uint16_t)(len - head->len);
}

/* `apart` becomes `scene` with every frame in two pieces: free it with scene_apart_free(). */
static inline void scene_split(const struct scene *scene, struct scene *apart)
{
	struct scene_cut *cuts = calloc(SCENE_SLOTS, sizeof(*cuts));
	uint32_t heads = 0;

	*apart = *scene;
	apart->frames = aligned_alloc(4096, SCENE_BYTES);
	apart->heads = aligned_alloc(4096, SCENE_HEADS_BYTES);
	if (!cuts || !apart->frames || !apart->heads)
		abort();
	memcpy(apart->frames, scene->frames, SCENE_BYTES);
	memset(apart->heads, 0x5a, SCENE_HEADS_BYTES);
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < apart->burst[b].count; i++) {
			struct frame_desc *desc = &apart->burst[b].desc[i];
			struct frame_desc *head = &apart->burst[b].head[i];
			const uint8_t *frame = scene_frame(scene, *desc);
			struct scene_cut *cut;

			if (!frame) {
				scene_split_unreachable(apart, desc, head);
				continue;
			}
			cut = &cuts[desc->slot % SCENE_SLOTS];
			if (!cut->made) {
				cut->made = true;
				cut->head_slot = heads++;
				cut->head_len = scene_cut_at(apart, desc->len);
				cut->head_offset = (uint16_t)(scene_chance(apart, 2)
								      ? 128
								      : scene_below(apart, 129));
			}
			head->slot = cut->head_slot;
			head->offset = cut->head_offset;
			head->len =
				(uint16_t)(cut->head_len < desc->len ? cut->head_len : desc->len);
			desc->len = (uint16_t)(desc->len - head->len);
			memcpy(apart->heads + ((size_t)head->slot << SCENE_HEAD_SHIFT) +
				       head->offset,
			       frame, head->len);
			memcpy(apart->frames + (frame - scene->frames), frame + head->len,
			       desc->len);
		}
	}
	free(cuts);
}

static inline void scene_apart_free(struct scene *apart)
{
	free(apart->frames);
	free(apart->heads);
	apart->frames = NULL;
	apart->heads = NULL;
}

/* Spoils frames, but no order: each slot stays that of one frame. */
static inline void scene_spoil_frames(struct scene *scene, uint32_t one_in)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++)
		for (uint32_t i = 0; i < scene->burst[b].count; i++)
			if (scene_chance(scene, one_in))
				scene_spoil_frame(scene, &scene->burst[b].desc[i]);
}

/* Word w of `words` is one of the first or the last 64 bytes'. */
static inline bool scene_word_is_edge(uint32_t w, uint32_t words)
{
	return w < 8 || w + 8 >= words;
}

/* The whole aligned words of a reachable frame: index of the first in the region, and how many. */
static inline uint32_t scene_words(struct frame_desc desc, size_t *first)
{
	const size_t at = scene_at(desc);
	const size_t begin = (at + 7) / 8, end = (at + desc.len) / 8;

	*first = begin;
	return end > begin ? (uint32_t)(end - begin) : 0;
}

/* The poison of `generation` in word w of the region. */
static inline uint64_t scene_poison(size_t w, uint32_t generation)
{
	const uint32_t slot_words = 1u << (SCENE_SLOT_SHIFT - 3);

	return stale_word((uint32_t)(w / slot_words), generation, (uint32_t)(w % slot_words));
}

static inline void scene_poison_word(uint8_t *frames, size_t w, uint32_t generation)
{
	const uint64_t word = scene_poison(w, generation);

	memcpy(frames + 8 * w, &word, 8);
}

/* What must be said of frame i of burst b, if it is not right: nothing of it ever came. */
static inline bool scene_is_absent(const struct scene *scene, uint32_t b, uint32_t i)
{
	const struct frame_desc desc = scene->burst[b].desc[i];
	uint32_t words, asked, generation;
	size_t first;

	if (!scene->generation || !scene_frame(scene, desc) || scene->burst[b].head[i].len ||
	    desc.offset & FRAME_DESC_CUT)
		return false;
	words = scene_words(desc, &first);
	generation = scene->generation[desc.slot];
	asked = generation ? 2 : words;
	for (uint32_t w = 0; w < asked && words >= 2; w++) {
		const uint64_t poison = scene_poison(first + w, generation);

		if (scene_word_is_edge(w, words) &&
		    memcmp(scene->frames + 8 * (first + w), &poison, 8))
			return false;
	}
	return words >= 2;
}

/* Generations for a scene whose frames came into poisoned slots; frees with the two arrays. */
static inline void scene_generations(struct scene *scene)
{
	static const uint32_t some[] = { 0, 0, 1, 2, 77, UINT32_MAX };

	scene->generation = calloc(SCENE_SLOTS, sizeof(*scene->generation));
	scene->generation_after = calloc(SCENE_SLOTS, sizeof(*scene->generation_after));
	if (!scene->generation || !scene->generation_after)
		abort();
	for (uint32_t slot = 0; slot < SCENE_SLOTS; slot++)
		scene->generation[slot] = some[scene_below(scene, 6)];
}

/* Poison that no frame's bytes ever replaced, at one edge of some frames or both. */
static inline void scene_poison_some(struct scene *scene, uint32_t one_in)
{
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < scene->burst[b].count; i++) {
			const struct frame_desc desc = scene->burst[b].desc[i];
			uint32_t words, skip;
			size_t first;

			if (!scene_frame(scene, desc) || !scene_chance(scene, one_in))
				continue;
			words = scene_words(desc, &first);
			skip = scene_chance(scene, 2) ? 0 : scene_below(scene, words + 1);
			for (uint32_t w = skip; w < words; w++)
				if (scene_word_is_edge(w, words))
					scene_poison_word(scene->frames, first + w,
							  scene->generation[desc.slot]);
		}
	}
}

/* What must be in the slots, and in the generations, when the scene was played. */
static inline void scene_poison_all(const struct scene *scene, uint8_t *frames,
				    uint32_t *generation)
{
	memcpy(frames, scene->frames, SCENE_BYTES);
	memcpy(generation, scene->generation, SCENE_SLOTS * sizeof(*generation));
	for (uint32_t b = 0; b < SCENE_BURSTS; b++) {
		for (uint32_t i = 0; i < scene->burst[b].count; i++) {
			const struct frame_desc desc = scene->burst[b].desc[i];
			const struct frame_desc head = scene->burst[b].head[i];
			uint32_t words;
			size_t first;

			if (!scene_frame(scene, desc) || !desc.len)
				continue;
			if (scene->heads &&
			    (head.len > FRAME_HEAD_BYTES_MAX ||
			     ((uint64_t)head.slot << SCENE_HEAD_SHIFT) + head.offset + head.len >
				     SCENE_HEADS_BYTES))
				continue;
			words = scene_words(desc, &first);
			for (uint32_t w = 0; w < words; w++)
				if (scene_word_is_edge(w, words))
					scene_poison_word(frames, first + w,
							  scene->generation[desc.slot] + 1);
			generation[desc.slot] = scene->generation[desc.slot] + 1;
		}
	}
}

static inline bool scene_same_generations(const uint32_t *want, const uint32_t *got)
{
	for (uint32_t slot = 0; slot < SCENE_SLOTS; slot++) {
		if (want[slot] == got[slot])
			continue;
		fprintf(stderr, "slot %u: generation %u, not %u\n", slot, got[slot], want[slot]);
		return false;
	}
	return true;
}

static inline void scene_generations_free(struct scene *scene)
{
	free(scene->generation);
	free(scene->generation_after);
	scene->generation = NULL;
	scene->generation_after = NULL;
}

#endif
