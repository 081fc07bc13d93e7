/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The results of a run, as its session has them, and what is made of them: why it failed, if it did, and the
 * JSON object of schema gdrcap.summary/1. Nothing here talks to a session.
 */
#ifndef GDRCAP_RESULTS_H
#define GDRCAP_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "gdrcap.h"

#define RESULTS_SCHEMA "gdrcap.summary/1"
#define RESULTS_CAUSES_MAX 32
#define RESULTS_STEPS_MAX 32
#define RESULTS_REFUSED_MAX 48
#define RESULTS_CONFLICTS_MAX 16
#define RESULTS_MESSAGES_MAX 256
#define RESULTS_REASONS_MAX 32
#define RESULTS_REASON_BYTES 512
#define RESULTS_JSON_FLAGS JSON_REAL_PRECISION(12)

enum results_state {
	RESULTS_NONE, /* there is no session: what was asked for may be known, nothing else is */
	RESULTS_CREATED,
	RESULTS_RUNNING,
	RESULTS_OVER,
};

/* Which run it is, of all of a site's: no other has all three. */
struct results_run {
	char host[256];
	uint32_t pid;
	uint64_t started_ns; /* since the Unix epoch */
};

struct results_stream {
	uint32_t id;
	struct gdrcap_counts counts;
	struct gdrcap_numbers *ranges; /* NULL: not known */
	uint32_t range_count;
};

struct results_images {
	const char *name;
	struct gdrcap_image_counts counts;
	struct {
		uint64_t id;
		struct gdrcap_image_counts counts;
	} streams[GDRCAP_IMAGE_STREAMS_MAX];
	uint32_t stream_count;
	struct gdrcap_incomplete incomplete[GDRCAP_INCOMPLETE_MAX];
	uint32_t incomplete_count;
	struct gdrcap_refused refused[RESULTS_REFUSED_MAX];
	uint32_t refused_count;
	struct gdrcap_conflict conflicts[RESULTS_CONFLICTS_MAX];
	uint32_t conflict_count;
};

/* Begins with zeros. Large: not for a stack. */
struct results {
	enum results_state state;
	const char *version;
	struct results_run run;
	const struct gdrcap_config *config; /* NULL: it could not be read */
	bool records;			    /* `save`, and no option says what frames should be */
	int failure; /* negative errno that ended it early, or kept it from beginning; 0: none */
	char failure_text[512];

	/* To be received, of a run that was to receive so many and did not end by its time; 0: any number. */
	uint64_t rx_asked, rx_came;
	uint64_t images_asked; /* whole ones; the same */
	struct gdrcap_summary summary;
	struct gdrcap_counts queues[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	uint32_t queue_count;
	struct results_stream streams[GDRCAP_STREAMS_MAX];
	uint32_t stream_count;
	bool has_ranges; /* they were asked for, and the run has ended */
	struct gdrcap_damage damage[GDRCAP_DAMAGE_MAX];
	uint32_t damage_count;
	struct results_images images[GDRCAP_IMAGES_MAX]; /* in place of frames that are checked */
	uint32_t image_count;
	struct gdrcap_cause causes[RESULTS_CAUSES_MAX];
	uint32_t cause_count;
	struct gdrcap_rule rules[GDRCAP_MATCH_MAX];
	uint32_t rule_count;
	struct gdrcap_step steps[RESULTS_STEPS_MAX];
	uint32_t step_count;
	const char *messages[RESULTS_MESSAGES_MAX];
	uint32_t message_count;
};

/* This host and process, and the time that it is. */
void results_run_now(struct results_run *run);
/* Option `key` of the configuration, value `index`; NULL: there is none. */
const char *results_option(const struct results *results, const char *key, uint32_t index);
/* True where frames are received; else the run only sends. */
bool results_receive(const struct results *results);
/* Of the counts those that a verdict or a line of a run that goes on adds up over descriptions of images. */
void results_images_add(struct gdrcap_image_counts *total,
			const struct gdrcap_image_counts *counts);
void results_images_total(const struct results *results, struct gdrcap_image_counts *total);
/* By enum gdrcap_image_end. */
extern const char *const results_end_names[];

/* Reasons that `gdrcap merge` looks for: a frame that one receiver lacks may be at another. */
#define REASON_DAMAGED "damaged"
#define REASON_LOST "lost"
#define REASON_DUPLICATED "duplicated"
#define REASON_REORDERED "reordered"
#define REASON_DROPPED                                                                             \
	"dropped by a port in the run: the receiver was too slow; a warning names the port and "   \
	"what helps"
#define REASON_ENDS_MISSING "streams whose end did not come: "
/* "1,234 frames lost". Returns `to`, of RESULTS_REASON_BYTES. */
const char *reason_count(char *to, uint64_t count, const char *noun, const char *what);

/*
 * Frames that the ports dropped in the run, and that `lost` does not count: no gap shows them at a stream's end, in
 * images or to a consumer of the caller's.
 */
uint64_t results_drops_unseen(const struct gdrcap_summary *summary);

/* Why a run failed. */
struct reasons {
	int code; /* 0: it has not; GDRCAP_FAILED_FRAMES, GDRCAP_FAILED_RUN */
	uint32_t count;
	char text[RESULTS_REASONS_MAX][RESULTS_REASON_BYTES];
};
/* Of a run that is over; of another one what is wrong by now. */
void results_judge(const struct results *results, struct reasons *reasons);

/* The object; NULL: no memory. `what`: GDRCAP_JSON_*. */
json_t *results_to_json(const struct results *results, const struct reasons *reasons,
			uint32_t what);

#endif
