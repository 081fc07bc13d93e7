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
	uint32_t threads;		  /* not 0: all ranks are threads of this process */
	uint64_t rounds;
	double timeout_s; /* without a message */
	const char *dir;
	bool ways[WAYS];
	const char *options[OPTIONS_MAX]; /* KEY=VALUE */
	uint32_t option_count;
};

/* A rank that this process plays, in one way. */
struct seat {
	struct wanted wanted;
	enum way way;
	struct player player; /* player.first: as it ended */
	uint64_t *trip_ns;    /* rank 0 */
	char who[64];	      /* played */
	int ret; /* 0: all messages came and were right; what is wrong stands on stderr */
};

/* One after the other: all that waits for the GPU, before anybody plays. */
int seat_open(struct seat *seat, const struct wanted *wanted, enum way way);
/* A thread each. */
void *seat_play(void *seat);
/* When all have played. Also after a seat_open() that failed. */
void seat_close(struct seat *seat);

#endif
