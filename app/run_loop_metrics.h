/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of a run: who gets them, and when. */
#ifndef GDRCAP_APP_RUN_LOOP_METRICS_H
#define GDRCAP_APP_RUN_LOOP_METRICS_H

#include "run_loop.h"

/* Opens what was asked for, and says there that nothing runs yet. 0, or a negative errno with the reason in
 * run->report. */
int run_metrics_open(struct run *run);
/* When the program has given up what it may not do any more: the thread that answers has no more either. The same. */
int run_metrics_start(struct run *run);
/* While the run goes on, as often as one likes: once a second it does something. */
void run_metrics_tick(struct run *run);
/* One of the session's. */
void run_metrics_event(struct run *run, const struct gdrcap_event *event);
/* The final counts. */
void run_metrics_end(struct run *run);

#endif
