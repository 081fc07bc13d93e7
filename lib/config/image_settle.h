/* SPDX-License-Identifier: BSD-3-Clause */
/* From what was written of a layout to the layout, with everything proved that placers rely on. */
#ifndef GDRCAP_IMAGE_SETTLE_H
#define GDRCAP_IMAGE_SETTLE_H

#include "config/image_draft.h"
#include "config/yaml_reader.h"

/* A map of `reader`, which has just begun, into the draft. 0, -EINVAL or -ENOMEM. */
int image_draft_map(struct image_draft *draft, struct yaml_reader *reader);

/* 0 or -EINVAL. */
int image_settle(const struct image_draft *draft, struct image_settings *image);

/* The parts of it. *most: the greatest value that the field can have. */
int image_settle_field(const struct image_draft *draft, enum image_key key, uint32_t i,
		       struct image_field *field, uint64_t *most);
/* Where payloads go, and how far. */
int image_settle_shape(const struct image_draft *draft, struct image_layout *layout);
/* Sampling (a word's number) and depth of a layout's `sampling`; false: none. */
bool image_sampling(uint32_t row, uint64_t *sampling, uint64_t *depth);
/* What it is converted to; after its shape. */
int image_settle_convert(const struct image_draft *draft, struct image_layout *layout);
int image_settle_place(const struct image_draft *draft, struct image_layout *layout);

#endif
