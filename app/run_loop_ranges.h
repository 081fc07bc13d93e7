/* SPDX-License-Identifier: BSD-3-Clause */
/* Which frames of each stream came, for `gdrcap merge`. */
#ifndef GDRCAP_APP_RUN_LOOP_RANGES_H
#define GDRCAP_APP_RUN_LOOP_RANGES_H

#include "run_loop.h"

/* Once, when the run has ended and its streams are in the report. */
void run_ranges_collect(struct run *run);
void run_ranges_free(struct run *run);

#endif
