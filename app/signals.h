/* SPDX-License-Identifier: BSD-3-Clause */
/* SIGINT and SIGTERM of a long command: the first asks for an end in order, the next ends it. */
#ifndef GDRCAP_APP_SIGNALS_H
#define GDRCAP_APP_SIGNALS_H

#include <signal.h>
#include <stdint.h>

/* `at_once` is written to stderr when the next one ends the program: what that costs. It stays the
 * caller's and is read as long as the program runs. SIGPIPE and SIGXFSZ are ignored from now
 * on. `reopen`: SIGHUP is no wish to end, but asks for logs to be opened anew, with nohup(1) too. */
void signals_install(const char *at_once, int reopen);

/* The first one's number; 0: none has come. */
int signals_stop(void);

/* 1: SIGHUP has come since the last call, to a process that opens logs anew. */
int signals_reopen(void);

/* A thread that is started between the two has every signal blocked: they are the other threads'. */
void signals_hold(sigset_t *before);
void signals_release(const sigset_t *before);

/* ns of the monotonic clock. Async-signal-safe. */
uint64_t clock_ns(void);

#endif
