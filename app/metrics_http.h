/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics over HTTP, on a thread of its own, which knows the last text and nothing of the run. */
#ifndef GDRCAP_APP_METRICS_HTTP_H
#define GDRCAP_APP_METRICS_HTTP_H

#include <stddef.h>
#include <stdint.h>

struct metrics_http;

/* 1: this program was built with libmicrohttpd. */
int metrics_http_possible(void);

/* Answers at a socket that listens, which it takes over. NULL: it cannot; the socket stays the caller's. */
struct metrics_http *metrics_http_start(int fd);
/* The text from now on, which it takes over: malloc(). Waits for nobody but, some us, for a copy of the one before.
 * Ends connections that are slow at `now_ns` of the monotonic clock. */
void metrics_http_set(struct metrics_http *http, char *text, size_t bytes, uint64_t now_ns);
/* Ends what is being answered. */
void metrics_http_stop(struct metrics_http *http);

#endif
