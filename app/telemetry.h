/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counts of a run for DPDK's telemetry clients: JSON over a SOCK_SEQPACKET socket in EAL's run-time folder, on a
 * thread of its own, which knows the last counts and nothing of the run, of DPDK or of a port. docs/metrics.md says
 * what it answers, docs/design.md why it is not DPDK's own server.
 */
#ifndef GDRCAP_APP_TELEMETRY_H
#define GDRCAP_APP_TELEMETRY_H

#include <stddef.h>

#include "report.h"

struct telemetry;

/* The socket is there; clients wait. NULL: it cannot be, and `why` says what helps. */
struct telemetry *telemetry_open(char *why, size_t bytes);
const char *telemetry_path(const struct telemetry *telemetry);
/* Answers from now on. 0 or a negative errno. */
int telemetry_start(struct telemetry *telemetry);
/* The counts from now on, and their text for Prometheus. Waits for nobody but, below a millisecond, for an answer that is
 * being written. Without memory they stay as they were. */
void telemetry_set(struct telemetry *telemetry, const struct report *report, const json_t *streams,
		   const char *metrics);
/* Ends its connections and removes the socket; NULL is let through. */
void telemetry_close(struct telemetry *telemetry);

#endif
