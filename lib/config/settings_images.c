/* SPDX-License-Identifier: BSD-3-Clause */
/* Options together: images. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config/image_load.h"
#include "config/settings_internal.h"

#define IMAGE_BUFFER_ALIGNMENT 64u /* gdrcap_image.h promises it */

/* Frames that bring no data to an image are filtered: do two layouts of one base name the same field as
 * what tells kinds apart, and no value of it in common? */
static bool kinds_differ(const struct image_layout *a, const struct image_layout *b)
{
	const uint64_t of_a[] = { a->kind_begin, a->kind_data, a->kind_end };
	const uint64_t of_b[] = { b->kind_begin, b->kind_data, b->kind_end };

	if (a->parser != IMAGE_PARSER_FIELDS || b->parser != IMAGE_PARSER_FIELDS ||
	    a->base != b->base || !a->kind.bytes || memcmp(&a->kind, &b->kind, sizeof(a->kind)))
		return false;
	for (uint32_t i = 0; i < 9; i++)
		if (of_a[i / 3] == of_b[i % 3] && of_a[i / 3] != UINT64_MAX)
			return false;
	return true;
}

/* Can one frame be of both? Only rules and kinds count: what else a layout asks of a frame makes it a
 * misfit of the first, not a frame of the second. */
static bool layouts_meet(const struct image_layout *a, const struct image_layout *b)
{
	static const struct frame_match every = { .count = 1 };
	const struct frame_match *of_a = a->match.count ? &a->match : &every;
	const struct frame_match *of_b = b->match.count ? &b->match : &every;

	if (kinds_differ(a, b))
		return false;
	for (uint32_t i = 0; i < of_a->count; i++)
		for (uint32_t j = 0; j < of_b->count; j++)
			if (frame_match_meets(&of_a->rule[i], a->base == IMAGE_BASE_UDP,
					      &of_b->rule[j], b->base == IMAGE_BASE_UDP))
				return true;
	return false;
}

/* A rule that no frame of the layout can agree with is a mistake. */
static int check_rules(const struct image_settings *image, struct gdrcap_error *error)
{
	static const struct frame_match_rule every;
	const struct frame_match *match = &image->layout.match;
	const bool udp = image->layout.base == IMAGE_BASE_UDP;

	for (uint32_t i = 0; i < match->count; i++)
		if (!frame_match_meets(&match->rule[i], udp, &every, udp))
			return error_set(error, -EINVAL,
					 "image: '%s' counts from UDP, and no frame of EtherType "
					 "0x%04x has UDP; give base: frame, or another match",
					 image->name, match->rule[i].ethertype);
	return 0;
}

static int check_pair(const struct image_settings *a, const struct image_settings *b,
		      struct gdrcap_error *error)
{
	if (strcmp(a->name, b->name) == 0)
		return error_set(error, -EINVAL,
				 "image: two are called '%s'; give each its own name: in its map",
				 a->name);
	if (!layouts_meet(&a->layout, &b->layout))
		return 0;
	return error_set(error, -EINVAL,
			 "image: a frame can be of '%s' and of '%s'; give each match: rules of its "
			 "own that differ in a field, or one kind: field with values of its own",
			 a->name, b->name);
}

/* Of the session are then the rules of all layouts, for the cards: those that they have, or none where one
 * takes every frame, or where they are too many. */
static void settle_rules(struct settings *settings)
{
	struct match_list all = { 0 };
	bool every = false;

	for (uint32_t i = 0; i < settings->images; i++) {
		const struct image_settings *image = &settings->image[i];
		const struct match_list *own =
			image->match.count ? &image->match : &settings->match;

		every |= !own->count;
		for (uint32_t r = 0; r < own->count; r++) {
			uint32_t known = 0;

			while (known < all.count &&
			       memcmp(&all.rule[known].rule, &own->rule[r].rule,
				      sizeof(own->rule[r].rule)))
				known++;
			every |= known == GDRCAP_MATCH_MAX;
			if (known == all.count && !every)
				all.rule[all.count++] = own->rule[r];
		}
	}
	if (every)
		all.count = 0;
	settings->match = all;
	settings->layout.match.count = all.count;
	for (uint32_t i = 0; i < all.count; i++)
		settings->layout.match.rule[i] = all.rule[i].rule;
}

/* What the caller gave for the images of `index`; whether the GPU reaches it, image_memory.c asks. */
static int check_buffers(const struct settings *settings, uint32_t index,
			 struct gdrcap_error *error)
{
	const struct image_buffers *own = &settings->image_buffers[index];
	const struct image_settings *image = &settings->image[index];
	const struct image_layout *layout = &image->layout;
	const uint64_t needed = image_in_buffer(layout, layout->bytes);

	if (!own->addr)
		return 0;
	if (index >= settings->images)
		return error_set(error, -EINVAL,
				 "gdrcap_config_set_image_memory: memory for images of description "
				 "%u, and there are %u; add image, or leave it out",
				 index, settings->images);
	if ((uintptr_t)own->addr % IMAGE_BUFFER_ALIGNMENT || own->stride % IMAGE_BUFFER_ALIGNMENT)
		return error_set(error, -EINVAL,
				 "gdrcap_config_set_image_memory: %p and stride %" PRIu64
				 " of '%s' must be multiples of 64; align both",
				 own->addr, own->stride, image->name);
	if (own->stride < needed)
		return error_set(error, -EINVAL,
				 "gdrcap_config_set_image_memory: stride %" PRIu64
				 " of '%s' is less than an image's %" PRIu64 " bytes; raise it",
				 own->stride, image->name, needed);
	if (own->bytes / own->stride < image->ring)
		return error_set(error, -EINVAL,
				 "gdrcap_config_set_image_memory: %" PRIu64 " bytes are %" PRIu64
				 " buffers for '%s', and ring: is %u; give "
				 "more memory, or a smaller ring",
				 own->bytes, own->bytes / own->stride, image->name, image->ring);
	for (uint32_t i = 0; i < index; i++) {
		const struct image_buffers *other = &settings->image_buffers[i];

		if (other->addr && (uintptr_t)own->addr < (uintptr_t)other->addr + other->bytes &&
		    (uintptr_t)other->addr < (uintptr_t)own->addr + own->bytes)
			return error_set(error, -EINVAL,
					 "gdrcap_config_set_image_memory: '%s' and '%s' have the "
					 "same memory; give each its own",
					 settings->image[i].name, image->name);
	}
	return 0;
}

int settings_settle_images(struct settings *settings, struct gdrcap_error *error)
{
	int ret = 0;

	for (uint32_t i = settings->images; i < SETTINGS_IMAGES_MAX && !ret; i++)
		ret = check_buffers(settings, i, error);
	if (!ret && settings->images_wanted && !settings->images)
		return error_set(
			error, -EINVAL,
			"images: %llu images are wanted, and this run assembles none; describe "
			"them with image (--image), or count frames with frames (--frames)",
			(unsigned long long)settings->images_wanted);
	if (ret || !settings->images)
		return ret;
	if (!settings_receives(settings))
		return error_set(error, -EINVAL,
				 "image: is of frames received, and nothing is; leave it out");
	if (settings_validates(settings))
		return error_set(error, -EINVAL,
				 "image: images are handed to the program's own thread or kernel, "
				 "not checked; set consumer: host or gpu");
	if (settings_is_custom(settings))
		return error_set(error, -EINVAL,
				 "frame.format: custom describes frames, and image images; leave "
				 "one of the two out");
	for (uint32_t i = 0; i < settings->images; i++) {
		struct image_settings *image = &settings->image[i];

		if (image->drop_oldest && settings->consumer == CONSUMER_GPU)
			return error_set(
				error, -EINVAL,
				"image: full: drop_oldest takes back what nobody has taken, "
				"and a running kernel is given each image at once; use full: "
				"drop_new, or consumer: host");
		if (!image->match.count)
			image->layout.match = settings->layout.match;
		if (!image->name[0])
			snprintf(image->name, sizeof(image->name), "image%u", i);
	}
	for (uint32_t i = 0; i < settings->images && !ret; i++) {
		ret = check_rules(&settings->image[i], error);
		if (!ret)
			ret = check_buffers(settings, i, error);
		for (uint32_t j = 0; j < i && !ret; j++)
			ret = check_pair(&settings->image[j], &settings->image[i], error);
	}
	if (!ret)
		settle_rules(settings);
	return ret;
}
