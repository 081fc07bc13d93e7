/* SPDX-License-Identifier: BSD-3-Clause */
/* Between assembler.c, assembler_close.c, assembler_counts.c, image_time.c and image_conflict.c. */
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

/* True: the image of `head` is from another sender than the stream's, which is the first one since the stream's last
 * silence. Notes both senders. */
bool assembler_is_alien(const struct assembler *assembler, struct assembler_stream *stream,
			const struct place_head *head);

/* Begins to close an open image. The device closes it; assembler_is_closed() is true after that. */
void assembler_close(struct assembler *assembler, struct assembler_slot *entry,
		     enum gdrcap_image_end end);
bool assembler_is_closed(const struct assembler *assembler, const struct assembler_slot *entry);
/* After that: what came is known exactly, also of records that are not here yet. */
void assembler_note_closed(struct assembler *assembler, struct assembler_slot *entry);
/* From now on workers begin no image that comes before this one in the order of handing out. */
void assembler_move_window(struct assembler *assembler, const struct assembler_slot *entry);
/* The run has as many whole images as it is to have. */
bool assembler_has_all(const struct assembler *assembler);

/* More than `ticks` after `since`. */
bool image_time_over(uint64_t now, uint64_t since, uint64_t ticks);
/* One that is open is closed by time. */
bool assembler_is_due(const struct assembler *assembler, uint64_t now,
		      const struct assembler_slot *entry);
/* Behind this time the first of a stream's is; UINT64_MAX: none is open. */
uint64_t assembler_stream_due(const struct assembler *assembler,
			      const struct assembler_stream *stream);

#endif
