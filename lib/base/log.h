/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines and error texts. Control code only: nothing on the frame path calls this. */
#ifndef GDRCAP_LOG_H
#define GDRCAP_LOG_H

#include <pthread.h>
#include <stdbool.h>

#include "gdrcap.h"

#define LOG_WORDS_BYTES 200

/*
 * Where a session's lines go, from log_open() to log_close(); `line` NULL: warnings and errors go to
 * stderr. A line belongs to the log of its thread: that of the scope that the thread is in, or that
 * of the thread which started it. A thread that has none (EAL's own ones) has its lines told to the
 * oldest log there is, and without any to stderr. No line of one log ever reaches another's sink:
 * what comes for a log that is closed is dropped.
 */
struct log {
	void (*line)(void *context, enum gdrcap_log_level level, const char *line);
	void *context;
	/* log.c's: */
	uint64_t id; /* 0: never opened; no id is used twice */
	struct log *newer;
	unsigned int users; /* threads that are in `line` */
};
void log_open(struct log *log);
/* Waits until no other thread is in its sink. Its context may end afterwards. One that was never
 * opened may be closed too. */
void log_close(struct log *log);

/* Each call of the API that may log has its session's log for the thread's, to the end of the block. */
struct log_scope {
	uint64_t before;
	int cancel; /* the thread is not cancelled inside */
};
struct log_scope log_scope_begin(const struct log *log);
void log_scope_end(struct log_scope *scope);
#define LOG_SCOPE(log)                                                                             \
	struct log_scope log_scope __attribute__((cleanup(log_scope_end), unused)) =               \
		log_scope_begin(log)

/* What a new thread takes over from the one that starts it. */
uint64_t log_of_thread(void);
void log_adopt(uint64_t id);

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

/*
 * A line of DPDK's, on the thread that DPDK is called on, which may have locks that a sink would wait
 * for. So it is told when the thread logs again or leaves its scope; that of a thread without a scope
 * by the next of its session's threads that does.
 */
void log_driver_line(enum gdrcap_log_level level, const char *text);

/* True on a thread that is in a sink. */
bool log_in_sink(void);

/* No sink is called any more. */
void log_end(void);
/* True when no other thread is in a sink. */
bool log_is_idle(void);

/* Fills *error (may be NULL) and returns `code`, a negative errno. */
int error_set(struct gdrcap_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* An error that was filled becomes the configuration's, unless memory was what lacked. Returns `code`. */
int error_of_config(struct gdrcap_error *error, int code);
/* Before a call of DPDK's whose failure will be told with its words. */
void log_words_forget(void);
/* Appends the errors and warnings that DPDK has logged on this thread since the outermost scope began,
 * or since the call above, as far as there is room. Returns `code`. */
int error_add_words(struct gdrcap_error *error, int code);

#endif
