/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of all files, joined by id, and what they come to. No files, no JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "merge/merge_scene.h"

#define WORK_MOST (1u << 27) /* some seconds */

static const struct merge_count none = { 0, true };

static int by_id(const void *a, const void *b)
{
	const struct merge_part *x = a, *y = b;

	if (x->stream->id != y->stream->id)
		return x->stream->id < y->stream->id ? -1 : 1;
	return x->input < y->input ? -1 : x->input > y->input;
}

static struct merge_count larger(struct merge_count a, struct merge_count b)
{
	if (!a.known || !b.known)
		return (struct merge_count){ 0 };
	return a.count > b.count ? a : b;
}

/* Frames of a file that its streams do not have: not listed, or without a readable header. */
static uint64_t rest_of(const struct merge_input *input, enum merge_which which)
{
	uint64_t rest = input->total.of[which].count;

	for (uint32_t i = 0; i < input->stream_count; i++) {
		const uint64_t count = input->streams[i].counts.of[which].count;

		rest = count < rest ? rest - count : 0;
	}
	return rest;
}

/* What a receiver received is in its streams, but for frames without a readable header and others'. */
static bool lists_all(const struct merge_input *input)
{
	return input->total.of[MERGE_VALID].known && rest_of(input, MERGE_VALID) == 0 &&
	       input->untracked.count == 0;
}

/* What the parts come to, as sums: `lost` and `sent` are settled later. */
static void add_parts(struct merge_scene *scene)
{
	struct merge_joined *joined = scene->joined;
	struct merge_count sent = none, said = none;
	const struct merge_input *last = NULL, *holder = NULL;

	for (int which = MERGE_RECEIVED; which < MERGE_COUNTS; which++)
		joined->counts.of[which] = none;
	scene->unique = none;
	scene->said = none;
	for (uint32_t i = 0; i < scene->count; i++) {
		const struct merge_part *part = &scene->parts[i];
		const struct merge_count *of = part->stream->counts.of;
		const bool again =
			part->input == last; /* its id is two senders', to this receiver */

		last = part->input;
		joined->senders += part->input->sends && !again;
		joined->receivers += part->input->receives && !again;
		scene->restarted |= again || part->stream->restarted;
		if (part->input->sends)
			sent = merge_sum(sent, of[MERGE_SENT]);
		if (!part->input->receives)
			continue;
		for (int which = MERGE_RECEIVED; which < MERGE_COUNTS; which++)
			joined->counts.of[which] = merge_sum(joined->counts.of[which], of[which]);
		if (part->input != holder && (of[MERGE_VALID].count || of[MERGE_DAMAGED].count)) {
			holder = part->input;
			scene->holders++;
		}
		/* Where nobody knows what is a second copy, nobody knows how many are different. */
		scene->unique =
			merge_sum(scene->unique, merge_sum(of[MERGE_VALID], of[MERGE_DAMAGED]));
		if (!of[MERGE_DUPLICATE].known)
			scene->unique = (struct merge_count){ 0 };
		said = again ? merge_sum(said, of[MERGE_SENT]) : of[MERGE_SENT];
		scene->said = larger(scene->said, said);
	}
	joined->counts.of[MERGE_SENT] = joined->senders ? sent : scene->said;
}

void merge_unsettled(struct merge_scene *scene, const char *why)
{
	struct merge *merge = scene->merge;

	scene->joined->counts.of[MERGE_LOST] = (struct merge_count){ 0 };
	/* The first few are told in full, the rest counted. */
	if (merge->unsettled++ < 8)
		merge_error(merge, REPORT_EXIT_FRAMES,
			    "stream %" PRIu32 ": what is lost is unknown: %s", scene->joined->id,
			    why);
}

/* Senders and receivers say different things of one stream: these are no summaries of one run. */
static bool contradicts(struct merge_scene *scene)
{
	const struct merge_count sent = scene->joined->counts.of[MERGE_SENT];
	const uint64_t unique = scene->unique.count;
	char why[200], a[TEXT_COUNT_BYTES], b[TEXT_COUNT_BYTES];
	uint64_t seen = scene->said.known ? scene->said.count : 0;

	if (scene->joined->receivers == 1 && scene->unique.known && unique > seen)
		seen = unique;
	/* A receiver that missed the first frames counts from the first that came. */
	for (uint32_t i = 0; !scene->restarted && i < scene->count; i++)
		if (scene->parts[i].input->receives && scene->parts[i].stream->ranges.end > seen)
			seen = scene->parts[i].stream->ranges.end;
	if (!scene->joined->senders || !sent.known || seen <= sent.count)
		return false;
	snprintf(
		why, sizeof(why),
		"receivers saw numbers of %s frames, and %s were sent: are these files of the same "
		"runs, and is every sender's there?",
		text_count(a, seen), text_count(b, sent.count));
	merge_unsettled(scene, why);
	return true;
}

/* What is lost of the stream. */
static void settle(struct merge_scene *scene)
{
	struct merge_joined *joined = scene->joined;
	struct merge_count *lost = &joined->counts.of[MERGE_LOST];
	const struct merge_count sent = joined->counts.of[MERGE_SENT];
	const uint64_t unique = scene->unique.count;

	if (contradicts(scene))
		return;
	if (!sent.known)
		merge_unsettled(scene, "what was sent is not known");
	else if (!scene->unique.known)
		merge_unsettled(scene,
				"a receiver did not judge its frames one by one, or they have no "
				"numbers");
	else if (scene->holders > 1 && !scene->united && (scene->whole || sent.count == unique))
		merge_spread_unsettled(scene, sent.count, unique);
	else if (sent.count == unique)
		*lost = none;
	else if (!scene->whole)
		merge_unsettled(scene, "not every receiver's counts of it are there");
	else
		*lost = (struct merge_count){ sent.count - unique, true };
	if (lost->known)
		joined->lost_least = joined->gaps = lost->count;
}

static int collect(struct merge *merge, struct merge_part **parts, uint32_t *count)
{
	size_t room = 1;

	for (uint32_t i = 0; i < merge->input_count; i++)
		room += merge->inputs[i].stream_count;
	*parts = calloc(room, sizeof(**parts));
	merge->streams = calloc(room, sizeof(*merge->streams));
	if (!*parts || !merge->streams)
		return -ENOMEM;
	*count = 0;
	for (uint32_t i = 0; i < merge->input_count; i++)
		for (uint32_t s = 0; s < merge->inputs[i].stream_count; s++)
			(*parts)[(*count)++] = (struct merge_part){ &merge->inputs[i],
								    &merge->inputs[i].streams[s] };
	qsort(*parts, *count, sizeof(**parts), by_id);
	return 0;
}

static bool is_whole(const struct merge *merge)
{
	for (uint32_t i = 0; i < merge->input_count; i++) {
		const struct merge_input *input = &merge->inputs[i];

		if (input->state != MERGE_READ || (input->receives && !lists_all(input)))
			return false;
	}
	return merge->receivers != 0;
}

static int join_streams(struct merge *merge)
{
	const bool whole = is_whole(merge);
	struct merge_part *parts = NULL;
	uint32_t count, end;
	int rc = collect(merge, &parts, &count);

	merge->work = WORK_MOST;
	for (uint32_t i = 0; !rc && i < count; i = end) {
		struct merge_scene scene = {
			.merge = merge,
			.joined = &merge->streams[merge->stream_count++],
			.parts = &parts[i],
			.whole = whole,
		};

		for (end = i + 1; end < count && parts[end].stream->id == parts[i].stream->id;)
			end++;
		scene.count = end - i;
		scene.joined->id = parts[i].stream->id;
		add_parts(&scene);
		rc = merge_spread_unite(&scene);
		merge_spread_doubt(&scene);
		settle(&scene);
		merge_judge_overlap(&scene);
	}
	free(parts);
	return rc;
}

/* ---- all streams together ---- */

static void add_least(struct merge_counts *least, enum merge_which which, uint64_t count)
{
	least->of[which] = merge_sum(least->of[which], (struct merge_count){ count, true });
}

/* Frames of senders whose streams are not listed, a file's above all, against streams that no sender
 * lists. Returns what of the former is lost; unknown where that cannot be said. */
static struct merge_count settle_rest(struct merge *merge, uint64_t rest, bool whole)
{
	struct merge_count said = none, unique = none;
	char a[TEXT_COUNT_BYTES], b[TEXT_COUNT_BYTES];

	for (uint32_t i = 0; i < merge->stream_count; i++) {
		const struct merge_joined *joined = &merge->streams[i];

		if (joined->senders)
			continue;
		said = merge_sum(said, joined->counts.of[MERGE_SENT]);
		unique = merge_sum(unique, merge_sum(joined->counts.of[MERGE_VALID],
						     joined->counts.of[MERGE_DAMAGED]));
	}
	if (whole && said.known && said.count <= rest && unique.known && unique.count <= rest)
		return (struct merge_count){ rest - said.count, true };
	merge->unsettled++;
	merge_error(
		merge, REPORT_EXIT_FRAMES,
		whole && said.known && said.count > rest
			? "senders sent %s frames of streams that they do not list, and receivers "
			  "saw numbers of %s of such: are these files of the same runs, and is "
			  "every sender's there?"
			: "senders sent %s frames of streams that they do not list; what came of "
			  "them is unknown, %s being their receivers' numbers",
		text_count(a, rest), text_count(b, said.count));
	return (struct merge_count){ 0 };
}

/* Damaged frames without a readable header fill gaps of streams that their receiver has a part in;
 * of a receiver that is alone, any. What is left over came, though no gap is there for it. */
static uint64_t fill_gaps(struct merge *merge, const struct merge_input *input, uint64_t unreadable,
			  uint64_t *rest_gaps)
{
	const bool alone = merge->receivers == 1;

	for (uint32_t i = 0; unreadable && i < merge->stream_count; i++) {
		struct merge_joined *joined = &merge->streams[i];
		bool has = alone;
		uint64_t n;

		for (uint32_t s = 0; joined->gaps && !has && s < input->stream_count; s++)
			has = input->streams[s].id == joined->id;
		if (!has)
			continue;
		n = joined->gaps < unreadable ? joined->gaps : unreadable;
		joined->gaps -= n;
		unreadable -= n;
	}
	if (alone) {
		const uint64_t n = *rest_gaps < unreadable ? *rest_gaps : unreadable;

		*rest_gaps -= n;
		unreadable -= n;
	}
	return unreadable;
}

/* Sums of what receivers counted; unknown where a file's are. */
static void add_files(struct merge *merge)
{
	for (int which = MERGE_RECEIVED; which < MERGE_COUNTS; which++) {
		struct merge_count sum = none;

		if (which == MERGE_LOST)
			continue;
		for (uint32_t i = 0; i < merge->input_count; i++) {
			const struct merge_input *input = &merge->inputs[i];
			const struct merge_count count = input->total.of[which];

			if (input->state == MERGE_READ && !input->receives)
				continue;
			if (input->state != MERGE_READ) {
				sum = (struct merge_count){ 0 };
				continue;
			}
			sum = merge_sum(sum, count);
			add_least(&merge->least, which, count.count);
		}
		merge->total.of[which] = merge->receivers ? sum : (struct merge_count){ 0 };
	}
}

/* What was sent, and what of it is lost, by streams and by what no stream has. */
static void add_sent(struct merge *merge, bool all_read)
{
	struct merge_count sent = none, rest = none, lost, left = none;
	bool claimed = true; /* each stream is a sender's that was read */
	uint64_t gaps;

	for (uint32_t i = 0; i < merge->input_count; i++)
		if (merge->inputs[i].sends && merge->inputs[i].state == MERGE_READ)
			rest = merge_sum(
				rest, (struct merge_count){ rest_of(&merge->inputs[i], MERGE_SENT),
							    true });
	for (uint32_t i = 0; i < merge->stream_count; i++) {
		const struct merge_joined *joined = &merge->streams[i];

		claimed &= joined->senders != 0;
		if (!joined->senders && rest.count)
			continue;
		sent = merge_sum(sent, joined->counts.of[MERGE_SENT]);
		add_least(&merge->least, MERGE_SENT, joined->counts.of[MERGE_SENT].count);
	}
	add_least(&merge->least, MERGE_SENT, rest.count);
	lost = rest.known && rest.count ? settle_rest(merge, rest.count, is_whole(merge)) : rest;
	gaps = lost.count;
	for (uint32_t i = 0; i < merge->input_count; i++)
		if (merge->inputs[i].receives && merge->inputs[i].state == MERGE_READ)
			left = merge_sum(
				left,
				(struct merge_count){
					fill_gaps(merge, &merge->inputs[i],
						  rest_of(&merge->inputs[i], MERGE_DAMAGED), &gaps),
					true });
	if (lost.known)
		lost.count = gaps;
	for (uint32_t i = 0; i < merge->stream_count; i++) {
		const struct merge_joined *joined = &merge->streams[i];
		const struct merge_count of = { joined->gaps, joined->counts.of[MERGE_LOST].known };

		add_least(&merge->least, MERGE_LOST, of.known ? of.count : joined->lost_least);
		lost = merge_sum(lost, of);
	}
	sent = merge_sum(sent, rest);
	/* More than were sent: second copies, if all senders are here; else their sender is not. */
	if (merge->senders && claimed && left.count) {
		merge->total.of[MERGE_DUPLICATE] =
			merge_sum(merge->total.of[MERGE_DUPLICATE], left);
		merge->total.of[MERGE_DAMAGED].count -=
			merge->total.of[MERGE_DAMAGED].known ? left.count : 0;
	} else {
		sent = merge_sum(sent, left);
	}
	if (!is_whole(merge))
		lost = (struct merge_count){ 0 };
	if (!all_read || (!merge->senders && !is_whole(merge)))
		sent = (struct merge_count){ 0 };
	merge->total.of[MERGE_SENT] = sent;
	merge->total.of[MERGE_LOST] = lost;
}

/* The same run again adds nothing. */
static void refuse_twice(struct merge *merge, struct merge_input *input)
{
	for (const struct merge_input *other = merge->inputs; other < input; other++) {
		if (other->state != MERGE_READ ||
		    (!merge_same_run(other, input) && other->text_hash != input->text_hash))
			continue;
		merge_refuse(input, MERGE_REFUSED, "is the run of %s once more: give each once",
			     other->file);
		merge_input_free(input);
		return;
	}
}

int merge_join(struct merge *merge)
{
	bool all_read = true;
	int rc;

	for (uint32_t i = 0; i < merge->input_count; i++)
		if (merge->inputs[i].state == MERGE_READ)
			refuse_twice(merge, &merge->inputs[i]);
	for (uint32_t i = 0; i < merge->input_count; i++) {
		const struct merge_input *input = &merge->inputs[i];

		all_read &= input->state == MERGE_READ;
		merge->senders += input->state == MERGE_READ && input->sends;
		merge->receivers += input->state == MERGE_READ && input->receives;
		merge->of_images += input->state == MERGE_READ && input->of_images;
	}
	for (int which = 0; which < MERGE_COUNTS; which++)
		merge->least.of[which] = none;
	merge_judge_files(merge);
	rc = join_streams(merge);
	if (rc < 0)
		return rc;
	add_files(merge);
	merge_spread_totals(merge);
	add_sent(merge, all_read);
	/* How frames without a readable header count is settled above. */
	for (int which = 0; which < MERGE_COUNTS; which++)
		if (merge->total.of[which].known)
			merge->least.of[which] = merge->total.of[which];
	merge_judge_all(merge);
	return 0;
}

void merge_free(struct merge *merge)
{
	free(merge->streams);
	merge->streams = NULL;
	merge->stream_count = 0;
}
