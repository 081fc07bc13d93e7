/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session says of its run, into the report. */
#ifndef GDRCAP_APP_RUN_LOOP_COLLECT_H
#define GDRCAP_APP_RUN_LOOP_COLLECT_H

#include "run_loop.h"

/* `what`: GDRCAP_JSON_*. */
void run_collect(struct run *run, uint32_t what);
/* All descriptions of images together. */
void run_images_total(const struct run *run, struct gdrcap_image_counts *total);
/* Once, when the run has ended: everything, and the verdict. */
void run_collect_end(struct run *run);

#endif
