/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session says of its run, into the report: all of it, or as much as who asks often needs. */
#ifndef GDRCAP_APP_RUN_LOOP_COLLECT_H
#define GDRCAP_APP_RUN_LOOP_COLLECT_H

#include "run_loop.h"

/* All that is counted. */
void run_collect(struct run *run);
/* The same but for its parts; streams, which are one of them. */
void run_collect_totals(struct run *run);
void run_collect_streams(struct run *run);
/* Images instead of frames that are checked. */
void run_collect_images(struct run *run);
/* Once, when the run has ended: waits until the rules' counts are whole, for a second and a little. */
void run_settle_rules(struct run *run);

#endif
