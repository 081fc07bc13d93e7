/* SPDX-License-Identifier: BSD-3-Clause */
/* The three ways to play, each in a session of its own. */
#ifndef PINGPONG_WAYS_H
#define PINGPONG_WAYS_H

#include "player.h"

enum way { WAY_CPU, WAY_STREAM, WAY_KERNEL, WAYS };
extern const char *const way_names[WAYS];  /* as options say them */
extern const char *const way_titles[WAYS]; /* as the table does */

#define OPTIONS_MAX 64u

struct wanted {
	uint32_t rank, ranks, local_rank; /* local: of this machine's ranks */
	uint32_t cores;			  /* a rank; 0: as gdrcap chooses */
	uint64_t rounds;
	double timeout_s; /* without a message */
	const char *dir;
	bool ways[WAYS];
	const char *options[OPTIONS_MAX]; /* KEY=VALUE */
	uint32_t option_count;
};

/* What came of it. */
struct outcome {
	struct play play;  /* as it ended */
	uint64_t *trip_ns; /* rank 0: freed by the caller */
	char who[64];	   /* played */
};

/* 0 when all messages came and were right; texts go to stderr. */
int way_play(const struct wanted *wanted, enum way way, struct outcome *outcome);

#endif
