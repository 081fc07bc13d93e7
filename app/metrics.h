/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run counts, as text for Prometheus: docs/metrics.md. What is not known is absent, never 0; a counter
 * never falls. Nothing here talks to a session. All of it is one thread's.
 */
#ifndef GDRCAP_APP_METRICS_H
#define GDRCAP_APP_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "report.h"

enum metric {
	METRIC_INFO,
	METRIC_RUNNING,
	METRIC_RUN_FAILED,
	METRIC_START_TIME,
	METRIC_RECEIVED,
	METRIC_RECEIVED_BYTES,
	METRIC_SINCE_FRAME,
	METRIC_FRAMES,
	METRIC_REORDERED,
	METRIC_STALE,
	METRIC_CUT,
	METRIC_BITS_CHECKED,
	METRIC_BITS_WRONG,
	METRIC_LOST,
	METRIC_IN_FLIGHT_OR_LOST,
	METRIC_UNTRACKED,
	METRIC_CONFLICTS,
	METRIC_LOCK_LOST,
	METRIC_STREAMS,
	METRIC_STREAM_RESTARTS,
	METRIC_PORT_EVENTS,
	METRIC_LINK_UP,
	METRIC_EVENTS,
	METRIC_QUEUE_RESTARTS,
	METRIC_RING_IN_FLIGHT,
	METRIC_POOL_SLOTS,
	METRIC_POOL_EMPTY,
	METRIC_POOL_EMPTY_SECONDS,
	METRIC_SAVED,
	METRIC_SAVE_MISSED,
	METRIC_SENT,
	METRIC_SENT_BYTES,
	METRIC_TX_STALLED,
	METRIC_TX_STARVED,
	METRIC_TX_ERRORS,
	METRIC_IMAGES,
	METRIC_IMAGES_OPEN,
	METRIC_IMAGE_FRAMES,
	METRIC_IMAGE_BYTES,
	METRIC_IMAGE_PIECES_LOST,
	METRIC_IMAGES_SAVED,
	METRIC_IMAGES_MISSED,
	METRIC_COUNT,
};

struct metrics_row {
	const char *name;
	int counter; /* else a gauge */
	const char *help;
};
extern const struct metrics_row metrics_rows[METRIC_COUNT];

#define METRICS_SERIES_MAX 64 /* of one metric */
#define METRICS_EVENT_KINDS (GDRCAP_EVENT_END + 1)

/* Begins with zeros. */
struct metrics {
	/* What a counter had: counts that are settled later may be set right downwards. */
	uint64_t highest[METRIC_COUNT][METRICS_SERIES_MAX];
	double highest_seconds[METRIC_COUNT];
	uint64_t start_time;		      /* s since the Unix epoch */
	uint64_t events[METRICS_EVENT_KINDS]; /* that came, by kind */
	uint64_t events_dropped;	      /* that nobody was told of */
	enum { METRICS_LINK_UNKNOWN, METRICS_LINK_DOWN, METRICS_LINK_UP } link[2][GDRCAP_PORTS_MAX];
	uint64_t received;    /* when it last grew */
	uint64_t received_ns; /* of the monotonic clock, then; 0: no frame yet */
};

/* An event of the session. */
void metrics_event(struct metrics *metrics, const struct gdrcap_event *event);

/* The text, ended by a NUL, which is the caller's to free. `running`: frames may still come. `now_ns`: of the
 * monotonic clock. NULL: no memory. */
char *metrics_text(struct metrics *metrics, const struct report *report, int running,
		   uint64_t now_ns, size_t *bytes);

#endif
