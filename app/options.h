/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line of a subcommand: the library's options, by gdrcap_option_at(), and the few that
 * only a program has. A --config file is read first, whatever its place; options override it.
 */
#ifndef GDRCAP_APP_OPTIONS_H
#define GDRCAP_APP_OPTIONS_H

#include <stddef.h>

#include "gdrcap.h"
#include "ready.h"

struct app_options {
	const char *command;	      /* the subcommand's name */
	struct gdrcap_config *config; /* the caller's to free, whatever options_parse() returns */
	int json;		      /* 1: one JSON object at the end, on standard output */
	double json_lines;	      /* seconds between JSON lines; 0: none */
	const char *json_file;	      /* where they go, of argv; NULL: to standard output */
	const char *metrics;	      /* where to listen, of argv; NULL: nowhere */
	const char *metrics_textfile; /* of argv; NULL: none */
	int telemetry;		      /* 1: answer DPDK's telemetry clients */
	int json_compact;	      /* 1: lines before the last are short */
	int quiet;		      /* 1: the result and errors only */
	const char *save_images;      /* a file, of argv; NULL: none */
	const char *image_format, *image_size; /* as given; NULL: they are not */
	int save_format;		       /* enum image_format */
	int save_bits;			       /* image_bits_of() */
	uint32_t save_width, save_height;      /* of pictures */
	uint32_t save_images_every;	       /* 1.. */
	const char *ready;		       /* a file, or READY_STDOUT; NULL: nobody is told */
	const char *wait_ready[READY_WAITED_MAX]; /* as given, of argv */
	uint32_t wait_lists, wait_files;	  /* of them, and files named there */
	uint64_t wait_ms;			  /* 0: no limit */
	int wait_limited;			  /* 1: --wait-seconds was given */
	int verbose;				  /* how often --verbose was given, at most 2 */
	char refused[512];			  /* why, where options_parse() fails */
	int saves_to_stdout; /* 1: frames go to standard output, so text must not */
};

struct options_command {
	const char *name;	     /* "capture" */
	const char *purpose;	     /* one sentence, without a full stop */
	const char *const *examples; /* command lines, each after its explanation; NULL-ended */
	unsigned int commands;	     /* options of any of these: GDRCAP_FOR_* */
	/* Puts in what the command takes where nobody said anything; may be NULL. 0 or a negative errno. */
	int (*complete)(struct gdrcap_config *config, struct gdrcap_error *error);
};

/*
 * argv[0] is the subcommand's name. 0; 1: --help, --explain-image, or what a shell asks for (--complete),
 * was printed, exit with 0; negative errno: the
 * error is on stderr and in `refused`, exit with 2. What depends on several options is not checked here,
 * but by gdrcap_create().
 */
int options_parse(int argc, char **argv, const struct options_command *command,
		  struct app_options *options);

#endif
