/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines and error texts. Control code only: nothing on the frame path calls this. */
#ifndef GDRCAP_LOG_H
#define GDRCAP_LOG_H

#include <pthread.h>
#include <stdbool.h>

#include "gdrcap.h"

/* Where lines go: to the sink that came last and is still there; without one, or to one whose
 * `line` is NULL, warnings and errors go to stderr. Each session has its own from create to
 * destroy. */
struct log_sink {
	void (*line)(void *context, enum gdrcap_log_level level, const char *line);
	void *context;
	struct log_sink *below; /* log.c's */
	unsigned int users;	/* log.c's: threads that are in `line` */
};
void log_push(struct log_sink *sink);
/* Waits until no other thread is in it. Its context may end afterwards. */
void log_pop(struct log_sink *sink);
void log_line(enum gdrcap_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(GDRCAP_LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(GDRCAP_LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_line(GDRCAP_LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(GDRCAP_LOG_DEBUG, __VA_ARGS__)

/*
 * For locks under which lines are logged. A sink may call the library, which would wait for the
 * lock that its own thread has: so a thread's lines wait, in order, until it has given back the
 * last such lock. Those of a thread that is in a sink wait until it is out again.
 */
void log_lock(pthread_mutex_t *lock);
void log_unlock(pthread_mutex_t *lock);

/* True on a thread that is in a sink. */
bool log_in_sink(void);

/* No sink is called any more. */
void log_end(void);
/* True when no other thread is in a sink. */
bool log_is_idle(void);

/* Fills *error (may be NULL) and returns `code`, a negative errno. */
int error_set(struct gdrcap_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
