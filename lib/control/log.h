/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines and error texts. Control code only: nothing on the frame path calls this. */
#ifndef GDRCAP_LOG_H
#define GDRCAP_LOG_H

#include "gdrcap.h"

/* Where lines go: to the sink that came last and is still there; without one, or to one whose
 * `line` is NULL, warnings and errors go to stderr. Each session has its own from create to
 * destroy. */
struct log_sink {
	void (*line)(void *context, enum gdrcap_log_level level, const char *line);
	void *context;
	struct log_sink *below; /* log.c's */
};
void log_push(struct log_sink *sink);
/* Its context may end afterwards. */
void log_pop(struct log_sink *sink);
void log_line(enum gdrcap_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(GDRCAP_LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(GDRCAP_LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_line(GDRCAP_LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(GDRCAP_LOG_DEBUG, __VA_ARGS__)

/* Fills *error (may be NULL) and returns `code`, a negative errno. */
int error_set(struct gdrcap_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
