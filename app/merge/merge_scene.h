/* SPDX-License-Identifier: BSD-3-Clause */
/* One stream while it is joined: merge_join.c, and merge_spread.c where its frames came to several receivers. */
#ifndef GDRCAP_APP_MERGE_SCENE_H
#define GDRCAP_APP_MERGE_SCENE_H

#include "merge/merge.h"

/* One file's part in a stream. */
struct merge_part {
	const struct merge_input *input;
	const struct merge_stream *stream;
};

/* Of one stream, while its parts are looked at. */
struct merge_scene {
	struct merge *merge;
	struct merge_joined *joined;
	const struct merge_part *parts;
	uint32_t count;
	bool whole; /* every file was read, and every receiver lists all that it received */
	struct merge_count unique; /* different frames that came to each receiver, summed */
	uint32_t holders;	   /* receivers that have frames of it */
	bool restarted; /* its numbers began again: `said` is no bound of different frames */
	struct merge_count said; /* that were sent, by the receivers' numbers */
	bool united; /* all holders' ranges were joined: `unique` is of all receivers together */
};

/* It is not known what is lost of the stream. */
void merge_unsettled(struct merge_scene *scene, const char *why);

/* Of several holders: joins their ranges, if all have them, and then counts what came to more than one as
 * duplicates. 0 or -ENOMEM. */
int merge_spread_unite(struct merge_scene *scene);
/* Nobody knows which of their valid frames are copies. */
void merge_spread_doubt(struct merge_scene *scene);
/* Several holders, and not united. */
void merge_spread_unsettled(struct merge_scene *scene, uint64_t sent, uint64_t unique);
/* What merge_spread_unite() found, or did not, in what all files' totals come to. */
void merge_spread_totals(struct merge *merge);

/* ---- merge_judge.c ---- */

/* A sender and a receiver of its frames whose runs were at different times. */
void merge_judge_overlap(struct merge_scene *scene);

#endif
