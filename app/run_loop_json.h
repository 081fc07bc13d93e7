/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the JSON of a run goes: standard output, whose reader the run is for, or a file. */
#ifndef GDRCAP_APP_RUN_LOOP_JSON_H
#define GDRCAP_APP_RUN_LOOP_JSON_H

#include "run_loop.h"

/* Opens the file of --json-file, if there is one. 0, or a negative errno with the reason in run->report: then
 * the result goes to standard output. */
int run_json_open(struct run *run);
/* After SIGHUP, at the next step of the run: the file that is at its path now. */
void run_json_reopen(struct run *run);
/* A line of a run that goes on. A negative errno: standard output has failed, so nobody reads the result. */
int run_json_line(struct run *run);
/* 1: that is where the final object goes. What is wrong with the command line or the configuration is no run's, and goes
 * to standard output. */
int run_json_to_file(const struct run *run);
/* The final object. 0 or a negative errno. */
int run_json_end(struct run *run);

#endif
