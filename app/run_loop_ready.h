/* SPDX-License-Identifier: BSD-3-Clause */
/* A run among those of other machines: receivers say that they are ready, senders wait for it. */
#ifndef GDRCAP_APP_RUN_LOOP_READY_H
#define GDRCAP_APP_RUN_LOOP_READY_H

#include "run_loop.h"

/* Who receives is not ready yet, and who sends waits for those who receive, with nothing of this machine's taken
 * meanwhile. 0, or a negative errno with the reason in run->report. */
int run_ready_open(struct run *run);

#endif
