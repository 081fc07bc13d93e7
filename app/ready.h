/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several machines, one run: a receiver says in one line of JSON (schema gdrcap.ready/1, docs/machines.md) that frames
 * can come, and a sender waits for such lines. Main thread only.
 */
#ifndef GDRCAP_APP_READY_H
#define GDRCAP_APP_READY_H

#include "gdrcap.h"

#define READY_SCHEMA "gdrcap.ready/1"
#define READY_STDOUT "-"
#define READY_WAITED_MAX 256u /* files that a sender waits for */

/* Before a run: what an earlier one left at `path` is removed, so that nobody takes it for this one's. 0, or a negative
 * errno with the reason: another file than such a line is left alone. */
int ready_begin(const char *path, struct gdrcap_error *error);
/* The run has begun: a line on standard output, or a file that is there as a whole or not at all. */
int ready_tell(const char *path, const char *command, const struct gdrcap_session *session,
	       struct gdrcap_error *error);

struct ready_wait {
	const char *const *lists; /* as given: FILE[,FILE...] */
	uint32_t list_count;
	uint64_t limit_ms;    /* 0: none */
	int (*stopped)(void); /* true: somebody asks to end it */
	void (*log)(void *context, enum gdrcap_log_level level, const char *line);
	void *context;
};

/* Until each file is there and says what it should. 0; -EINTR: stopped; -ETIMEDOUT; or another negative errno: one of them
 * is none such, or cannot be read. */
int ready_wait(const struct ready_wait *wait, struct gdrcap_error *error);

#endif
