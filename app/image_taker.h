/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who takes a run's images: a thread for each description, which gives each back at once, and where
 * they are to be saved one more, which writes copies of them. What it cannot keep up with is counted, and
 * holds nothing up.
 */
#ifndef GDRCAP_APP_IMAGE_TAKER_H
#define GDRCAP_APP_IMAGE_TAKER_H

#include <stdint.h>

#include "gdrcap.h"
#include "image_file.h"

struct image_taker;

struct image_taker_config {
	struct image_file file; /* images go there; path NULL: nowhere */
	uint32_t every;		/* of those handed out, the first and every so many; 1: all */
};

struct image_taker_counts {
	uint64_t saved, missed; /* images; missed: they came faster than they could be written */
};

/* Of a session that was not started yet: opens the file. NULL: *error says why. */
struct image_taker *image_taker_open(struct gdrcap_session *session,
				     const struct image_taker_config *config,
				     struct gdrcap_error *error);
/* After gdrcap_start(). 0 or a negative errno. */
int image_taker_start(struct image_taker *taker, struct gdrcap_error *error);
/* After gdrcap_stop(): waits until all are written. 0, or why not all are: -errno. */
int image_taker_finish(struct image_taker *taker, struct gdrcap_error *error);
/* Any time; what is written so far. */
void image_taker_counts(struct image_taker *taker, struct image_taker_counts *counts);
/* NULL is allowed. */
void image_taker_close(struct image_taker *taker);

#endif
