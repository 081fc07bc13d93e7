/* SPDX-License-Identifier: BSD-3-Clause */
/* Between options.c and its parts. */
#ifndef GDRCAP_APP_OPTIONS_INSIDE_H
#define GDRCAP_APP_OPTIONS_INSIDE_H

#include <stdbool.h>

#include "options.h"

/* Says why, and keeps it. Returns -EINVAL. */
int options_refuse(struct app_options *options, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- options_help.c ---- */

/* The command has this option of the library's. */
bool options_takes(const struct options_command *command, const struct gdrcap_option *option);
/* `own`: options that only the program has, up to NULL. For people; and for a shell: app/completion/gdrcap. */
void options_help(const struct options_command *command, const struct gdrcap_option *const own[]);
void options_list(const struct options_command *command, const struct gdrcap_option *const own[]);

/* ---- options_files.c ---- */

/* Refuses a run that would overwrite a file which it reads, or write two things into one file; or that would print
 * what it saves. Sets saves_to_stdout. 0 or -EINVAL. */
int options_files_stay(struct app_options *options);

/* ---- options_ready.c ---- */

/* Files that are waited for, and for how long. 0 or -EINVAL. */
int options_wait_for(struct app_options *options, const char *list);
int options_wait_limit(struct app_options *options, const char *seconds);
/* When all is read, and options_files_stay() has looked at standard output. 0 or -EINVAL. */
int options_ready_settle(struct app_options *options);
/* NULL: no file. */
const char *options_ready_file(const struct app_options *options);

/* ---- options_images.c ---- */

/* Prints a file for --config or --image: what is kept of each layout, as one of a list. 1 or -EINVAL. */
int options_images_explain(struct app_options *options);
/* Who takes images is this program, and which of them go to a file it knows. 0 or -EINVAL. */
int options_images_complete(struct app_options *options);

#endif
