/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is said of a frame in a file: how a damaged one differs from what it should be, as the
 * checker found it, with the bytes expected; and where a frame beside it stands.
 */
#ifndef GDRCAP_COMMENT_H
#define GDRCAP_COMMENT_H

#include "capture/burst_ring.h"
#include "pattern/frame_store.h"

#define COMMENT_BYTES 512u
#define COMMENT_SHOWN 8u /* bytes expected and got, from the first wrong one */

/* What frames should be. */
struct comment_reference {
	const struct frame_layout *layout;
	const struct pattern *pattern;
	const struct frame_store_view *expect; /* or NULL: layout and pattern say it */
};

/* A damaged frame, of `length` bytes, the first `captured` of which are at `frame`. */
void comment_damaged(char text[COMMENT_BYTES], const struct comment_reference *reference,
		     const struct frame_record *found, const uint8_t *frame, uint32_t captured,
		     uint32_t length);

/* A frame `distance` frames of its queue after (below 0: before) a damaged one. */
void comment_neighbour(char text[COMMENT_BYTES], int distance);

#endif
