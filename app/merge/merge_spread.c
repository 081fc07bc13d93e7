/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream whose frames came to several receivers (link aggregation, ECMP): what they have together is known by their
 * ranges, and by nothing else. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "merge/merge_scene.h"

static bool holds(const struct merge_part *part)
{
	const struct merge_count *of = part->stream->counts.of;

	return part->input->receives && (of[MERGE_VALID].count || of[MERGE_DAMAGED].count);
}

/* The first file that has frames, and not which; NULL: there is none. */
static const struct merge_input *without_ranges(const struct merge_scene *scene)
{
	for (uint32_t i = 0; i < scene->count; i++)
		if (holds(&scene->parts[i]) && !scene->parts[i].stream->ranges.known)
			return scene->parts[i].input;
	return NULL;
}

/* Sums of several receivers prove nothing: a frame that came to two hides one that is lost. But all
 * different frames are among the first that any of them knows of. */
void merge_spread_unsettled(struct merge_scene *scene, uint64_t sent, uint64_t unique)
{
	char why[MERGE_REASON_BYTES], a[TEXT_COUNT_BYTES], b[TEXT_COUNT_BYTES], c[TEXT_COUNT_BYTES];
	const struct merge_input *without = without_ranges(scene);
	uint64_t most = unique;

	if (!scene->restarted && scene->said.known && scene->said.count < most)
		most = scene->said.count;
	if (most < sent && scene->whole)
		scene->joined->lost_least = sent - most;
	snprintf(why, sizeof(why),
		 "%" PRIu32 " receivers have %s frames of the %s sent, so %s%s; which of them came "
		 "to more than one is not known: %.100s%s. %s%s",
		 scene->holders, text_count(a, unique), text_count(b, sent),
		 most < sent || unique > sent
			 ? text_count(c, most < sent ? sent - most : unique - sent)
			 : "as many may be lost as came twice",
		 most < sent	 ? " or more are lost"
		 : unique > sent ? " or more came twice"
				 : "",
		 scene->restarted ? "its sender began again"
		 : without	  ? without->file
				  : "their ranges are too many to be joined",
		 scene->restarted || !without ? "" : " has no ranges of it",
		 scene->restarted || !without ? "Lead" : "Run receivers with --ranges, or lead",
		 " each stream to one of them (hash by addresses and ports, not frame by frame), "
		 "and give its sender's summary");
	merge_unsettled(scene, why);
}

/* No sender's summary: what was sent is what a receiver heard of the stream's end, else the numbers from the lowest to
 * the highest. */
static struct merge_count sent_by_ranges(const struct merge_scene *scene)
{
	struct merge_count announced = { 0 };
	uint64_t first = UINT64_MAX, end = 0;

	for (uint32_t i = 0; i < scene->count; i++) {
		const struct merge_part *part = &scene->parts[i];
		const struct merge_ranges *ranges = &part->stream->ranges;
		const struct merge_count sent = part->stream->counts.of[MERGE_SENT];

		if (!part->input->receives)
			continue;
		if (sent.known && sent.count != ranges->end - ranges->first) {
			if (announced.known && announced.count != sent.count)
				return (struct merge_count){ 0 };
			announced = sent;
		}
		if (ranges->count && ranges->first < first)
			first = ranges->first;
		if (ranges->end > end)
			end = ranges->end;
	}
	if (!announced.known)
		return (struct merge_count){ end - first, true };
	return announced.count >= end ? announced : (struct merge_count){ 0 };
}

/* What came to more than one receiver is there once, and besides so often again. Which copy counts where one is damaged
 * and one is not, nobody knows. */
static void count_again(struct merge_counts *counts, uint64_t again, bool damaged)
{
	struct merge_count *of = counts->of;

	of[MERGE_DUPLICATE] = merge_sum(of[MERGE_DUPLICATE], (struct merge_count){ again, true });
	if (again == 0)
		return;
	if (damaged) {
		of[MERGE_VALID] = of[MERGE_DAMAGED] = (struct merge_count){ 0 };
		return;
	}
	if (of[MERGE_VALID].known)
		of[MERGE_VALID].count -= again;
}

static void unite(struct merge_scene *scene, uint64_t unique)
{
	struct merge_joined *joined = scene->joined;
	char again[TEXT_COUNT_BYTES];

	scene->united = true;
	joined->again = scene->unique.count - unique;
	joined->valid = joined->counts.of[MERGE_VALID].count;
	joined->damaged = joined->counts.of[MERGE_DAMAGED].count;
	count_again(&joined->counts, joined->again, joined->damaged != 0);
	scene->unique.count = unique;
	if (!joined->senders)
		joined->counts.of[MERGE_SENT] = sent_by_ranges(scene);
	if (joined->again)
		merge_message(scene->merge,
			      "stream %" PRIu32 ": frames that came to more than one receiver: %s",
			      joined->id, text_count(again, joined->again));
}

int merge_spread_unite(struct merge_scene *scene)
{
	struct merge_ranges *of;
	uint32_t count = 0;
	uint64_t unique;
	int rc;

	if (scene->holders < 2 || scene->restarted || !scene->unique.known || !scene->said.known ||
	    without_ranges(scene))
		return 0;
	of = calloc(scene->count, sizeof(*of));
	if (!of)
		return -ENOMEM;
	for (uint32_t i = 0; i < scene->count; i++)
		if (holds(&scene->parts[i]))
			of[count++] = scene->parts[i].stream->ranges;
	rc = merge_unite(of, count, &scene->merge->work, &unique);
	free(of);
	if (!rc)
		unite(scene, unique);
	return rc == -EOVERFLOW ? 0 : rc;
}

void merge_spread_doubt(struct merge_scene *scene)
{
	struct merge_count *of = scene->joined->counts.of;
	uint64_t most = 0;

	if (scene->holders < 2 || scene->united)
		return;
	for (uint32_t i = 0; i < scene->count; i++) {
		const struct merge_part *part = &scene->parts[i];
		const uint64_t valid = part->stream->counts.of[MERGE_VALID].count;

		if (part->input->receives && valid > most)
			most = valid;
	}
	scene->joined->doubtful = of[MERGE_VALID].count > most ? of[MERGE_VALID].count - most : 0;
	of[MERGE_VALID] = of[MERGE_DUPLICATE] = (struct merge_count){ 0 };
}

static void take(struct merge_count *from, uint64_t count)
{
	from->count -= count < from->count ? count : from->count;
}

void merge_spread_totals(struct merge *merge)
{
	for (uint32_t i = 0; i < merge->stream_count; i++) {
		const struct merge_joined *joined = &merge->streams[i];
		struct merge_count *least = merge->least.of;
		const uint64_t again = joined->again;

		if (joined->doubtful) {
			merge->total.of[MERGE_VALID] = (struct merge_count){ 0 };
			merge->total.of[MERGE_DUPLICATE] = (struct merge_count){ 0 };
			take(&least[MERGE_VALID], joined->doubtful);
		}
		if (again == 0)
			continue;
		count_again(&merge->total, again, joined->damaged != 0);
		least[MERGE_DUPLICATE] =
			merge_sum(least[MERGE_DUPLICATE], (struct merge_count){ again, true });
		take(&least[MERGE_VALID], again < joined->valid ? again : joined->valid);
		take(&least[MERGE_DAMAGED], again < joined->damaged ? again : joined->damaged);
	}
}
