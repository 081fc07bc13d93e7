/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of a run that loopback and capture share: signals, session, live line, end, report.
 *
 *   run_open()   signals, configuration, session, header
 *   selftest()   loopback: the self-test
 *   run_loop()   start, wait for the end while saying how it goes, stop, count
 *   run_close()  prints the result; always, also after a failure
 *
 * All of it is one thread's, the main thread's.
 */
#ifndef GDRCAP_APP_RUN_LOOP_H
#define GDRCAP_APP_RUN_LOOP_H

#include <stdio.h>

#include "gdrcap.h"
#include "image_taker.h"
#include "json_file.h"
#include "options.h"
#include "report.h"

/* How long after a signal, or after the last frame, the loop may notice it. */
#define RUN_STEP_MS 20

struct run;
struct run_metrics; /* run_loop_metrics.c */
struct run_notify;  /* run_loop_notify.c */

struct run_command {
	struct options_command options;
	int (*selftest)(struct run *run); /* before the run starts, or NULL */
	int receives, sends;		  /* which ports it takes, and needs */
};

struct run {
	const struct run_command *command;
	const struct app_options *options;
	struct gdrcap_session *session;
	struct image_taker *taker; /* NULL: no images */
	struct report report;
	struct json_file json;	     /* of --json-file */
	struct run_metrics *metrics; /* NULL: nobody asked for them */
	struct run_notify *notify;   /* NULL: no service manager wants to know */
	/* Lines for people that the program itself has; as the library's. */
	void (*log)(void *run, enum gdrcap_log_level level, const char *line);
	struct gdrcap_image_counts images_before; /* of the live line */
	FILE *text;				  /* header, steps and live lines; NULL: none */
	int colour;				  /* `text` is a terminal and NO_COLOR is not set */
	int rewrite;	 /* `text` is a terminal: the live line is written over itself */
	int log_rewrite; /* so is a log line, on standard error */
	int live_shown;	 /* the cursor stands behind a live line */
	int log_level;	 /* highest that goes to stderr */
};

/* The whole command, from its arguments to its exit status. */
int run_command(int argc, char **argv, const struct run_command *command);

#endif
