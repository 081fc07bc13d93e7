/* SPDX-License-Identifier: BSD-3-Clause */
/* A run as a service: what its manager is told, and when (docs/service.md). */
#ifndef GDRCAP_APP_RUN_LOOP_NOTIFY_H
#define GDRCAP_APP_RUN_LOOP_NOTIFY_H

#include "run_loop.h"

/* Asks the environment for a manager. Never a reason not to run. */
void run_notify_open(struct run *run);
/* The run has begun: what --ready says. */
void run_notify_ready(struct run *run);
/* While the run goes on, as often as one likes: what has to be said again, and that there is progress. */
void run_notify_tick(struct run *run);
/* One of the session's. */
void run_notify_event(struct run *run, const struct gdrcap_event *event);
/* What a live line says; more often than every few seconds is too often. */
void run_notify_status(struct run *run, const char *line);
/* A file is opened anew, and then that is done: run_notify_ready(). */
void run_notify_reloading(struct run *run);
/* The run ends; again: nothing. */
void run_notify_stopping(struct run *run);
/* The verdict. */
void run_notify_end(struct run *run);

#endif
