/* SPDX-License-Identifier: BSD-3-Clause */
/* Between assembler.c and assembler_counts.c. */
#ifndef GDRCAP_ASSEMBLER_INTERNAL_H
#define GDRCAP_ASSEMBLER_INTERNAL_H

#include "image/assembler.h"

/* Pieces that the image has, as far as is known; 0: it is not. A sender that says fewer than came is
 * wrong. */
uint32_t assembler_expected(const struct assembler *assembler, const struct assembler_slot *entry);
/* `outcome`: record->outcome, or what time makes of it. */
void assembler_count_frames(struct assembler *assembler, const struct place_record *record,
			    uint32_t outcome);
/* Once for each image. */
void assembler_count_no_room(struct assembler *assembler, const struct place_record *record);
/* Once, when no image leaves a list any more. */
void assembler_count_rest(struct assembler *assembler);
/* An image leaves its stream's list. True: it is dropped. */
bool assembler_count_image(struct assembler *assembler, struct assembler_slot *entry);
/* Nobody had taken it. */
void assembler_count_taken_back(struct assembler *assembler, const struct assembler_slot *entry);

#endif
