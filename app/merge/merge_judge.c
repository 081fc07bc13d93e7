/* SPDX-License-Identifier: BSD-3-Clause */
/* Why the runs together are no pass. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "merge/merge_scene.h"

#define APART_SECONDS 60 /* clocks that nobody sets may differ by so much */

void merge_error(struct merge *merge, enum report_status status, const char *format, ...)
{
	va_list arguments;

	if (merge->status == REPORT_EXIT_OK || status == REPORT_EXIT_USAGE)
		merge->status = status;
	if (merge->error_count++ >= MERGE_REASONS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(merge->errors[merge->error_count - 1], MERGE_REASON_BYTES, format, arguments);
	va_end(arguments);
}

void merge_message(struct merge *merge, const char *format, ...)
{
	va_list arguments;

	if (merge->message_count == MERGE_REASONS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(merge->messages[merge->message_count++], MERGE_REASON_BYTES, format, arguments);
	va_end(arguments);
}

/* What a sender writes and a receiver expects: of those that know it. */
static void judge_pair(struct merge *merge, const struct merge_input *sender,
		       const struct merge_input *receiver)
{
	if (!receiver->total.of[MERGE_VALID].known || sender->stream_count == 0)
		return;
	if (strcmp(sender->pattern, receiver->pattern) != 0)
		merge_error(merge, REPORT_EXIT_USAGE,
			    "%s sent the pattern %s, and %s expected %s: these are no files of one "
			    "run; give both the same --pattern",
			    sender->file, sender->pattern, receiver->file, receiver->pattern);
	else if (strcmp(sender->frame_size, receiver->frame_size) != 0)
		merge_message(merge,
			      "%s has frame_size %s, and %s %s: a receiver's only says how long a "
			      "frame may be",
			      sender->file, sender->frame_size, receiver->file,
			      receiver->frame_size);
}

/* Each with the first of the other kind, of all that were read: equal is transitive. */
static void judge_configurations(struct merge *merge)
{
	const struct merge_input *sender = NULL, *receiver = NULL;

	for (uint32_t i = 0; i < merge->input_count; i++) {
		const struct merge_input *input = &merge->inputs[i];

		if (input->state != MERGE_READ || (input->sends && input->receives))
			continue;
		if (!sender && input->sends && input->stream_count)
			sender = input;
		if (!receiver && input->receives && input->total.of[MERGE_VALID].known)
			receiver = input;
	}
	for (uint32_t i = 0; sender && receiver && i < merge->input_count; i++) {
		const struct merge_input *input = &merge->inputs[i];

		if (input->state != MERGE_READ || (input->sends && input->receives))
			continue;
		if (input->sends)
			judge_pair(merge, input, receiver);
		else if (input != receiver)
			judge_pair(merge, sender, input);
	}
}

/* By the machines' clocks: receivers may wait for long, but not for a day's other runs. */
static void judge_times(struct merge *merge)
{
	const struct merge_input *first = NULL, *last = NULL;
	double hours;

	for (uint32_t i = 0; i < merge->input_count; i++) {
		const struct merge_input *input = &merge->inputs[i];

		if (input->state != MERGE_READ || !input->has_run)
			continue;
		if (!first || input->run.started_ns < first->run.started_ns)
			first = input;
		if (!last || input->run.started_ns > last->run.started_ns)
			last = input;
	}
	if (!first)
		return;
	hours = (double)(last->run.started_ns - first->run.started_ns) / 3600e9;
	if (hours > 1)
		merge_message(
			merge,
			"%s began %.1f hours before %s: are these files of the same runs, and "
			"are the machines' clocks right?",
			first->file, hours, last->file);
}

/* Seconds from the end of `a` to the begin of `b`, by their machines' clocks; below 0 where they overlap, or nobody
 * knows. */
static double apart(const struct merge_input *a, const struct merge_input *b)
{
	if (!a->has_run || !b->has_run || a->elapsed < 0)
		return -1;
	return ((double)b->run.started_ns - (double)a->run.started_ns) / 1e9 - a->elapsed;
}

void merge_judge_overlap(struct merge_scene *scene)
{
	const uint64_t pairs = (uint64_t)scene->count * scene->count;

	for (uint64_t i = 0; i < pairs && !scene->merge->apart; i++) {
		const struct merge_part *a = &scene->parts[i / scene->count];
		const struct merge_part *b = &scene->parts[i % scene->count];
		const bool pair = (a->input->sends && b->input->receives) ||
				  (a->input->receives && b->input->sends);
		const double seconds = pair ? apart(a->input, b->input) : -1;

		if (seconds <= APART_SECONDS)
			continue;
		scene->merge->apart = true;
		merge_error(
			scene->merge, REPORT_EXIT_FRAMES,
			"%s had ended %.0f s before %s began, by their machines' clocks, and both "
			"have stream %" PRIu32
			": these are no files of the same runs, or the clocks are not right "
			"(gdrcap doctor, group clock)",
			a->input->file, seconds, b->input->file, scene->joined->id);
	}
}

void merge_judge_files(struct merge *merge)
{
	for (uint32_t i = 0; i < merge->input_count; i++) {
		const struct merge_input *input = &merge->inputs[i];

		if (input->state == MERGE_UNKNOWN)
			merge_error(merge, REPORT_EXIT_FRAMES, "%s: unknown: %s", input->file,
				    input->why);
		else if (input->state == MERGE_REFUSED)
			merge_error(merge, REPORT_EXIT_USAGE, "%s: %s", input->file, input->why);
	}
	judge_configurations(merge);
	judge_times(merge);
	if (merge->receivers == 0)
		merge_error(
			merge, REPORT_EXIT_FRAMES,
			"what came is unknown: no summary of a receiver (gdrcap capture) was read");
	if (merge_is_of_images(merge))
		merge_message(merge, "all receivers assembled images, whose frames have no numbers "
				     "to join: each run's own verdict is all that is known");
	else if (merge->senders == 0 && merge->receivers)
		merge_message(
			merge,
			"no summary of a sender (gdrcap replay) was read: what was sent is as "
			"the receivers' sequence numbers say");
}

static bool is_reason(const char *error, struct merge_count count, const char *what)
{
	char reason[RESULTS_REASON_BYTES];

	return count.known && count.count &&
	       !strcmp(error, reason_count(reason, count.count, "frame", what));
}

/* Frames that a receiver lost are lost of its streams, which are joined, or of what was sent in all: a
 * count beyond both is nowhere else. */
static bool covers_lost(const struct merge *merge, const struct merge_input *input)
{
	const struct merge_count own = input->total.of[MERGE_LOST],
				 all = merge->total.of[MERGE_LOST];
	unsigned __int128 streams = 0;

	for (uint32_t i = 0; i < input->stream_count; i++)
		streams += input->streams[i].counts.of[MERGE_LOST].count;
	return own.count <= streams || (all.known && own.count <= all.count);
}

/* Of a receiver alone: what it says is judged here, of all of them. */
static bool is_judged_here(const struct merge *merge, const struct merge_input *input,
			   const char *error)
{
	const struct merge_count *of = input->total.of;
	bool sent_known = merge->senders && merge->unsettled == 0;

	for (uint32_t i = 0; i < merge->stream_count; i++)
		sent_known &= merge->streams[i].senders != 0;
	if (!strncmp(error, REASON_ENDS_MISSING, strlen(REASON_ENDS_MISSING)))
		return sent_known && merge->total.of[MERGE_LOST].known;
	return (is_reason(error, of[MERGE_LOST], REASON_LOST) && covers_lost(merge, input)) ||
	       is_reason(error, of[MERGE_DAMAGED], REASON_DAMAGED) ||
	       is_reason(error, of[MERGE_DUPLICATE], REASON_DUPLICATED) ||
	       is_reason(error, of[MERGE_REORDERED], REASON_REORDERED);
}

static void judge_failed(struct merge *merge, const struct merge_input *input)
{
	if (input->error_count == 0)
		merge_error(merge, REPORT_EXIT_FRAMES, "%s failed, and does not say why",
			    input->file);
	for (uint32_t n = 0; n < input->error_count; n++)
		if (!input->receives || !is_judged_here(merge, input, input->errors[n]))
			merge_error(merge, REPORT_EXIT_FRAMES, "%s failed: %s", input->file,
				    input->errors[n]);
}

/* Else it has been said of what files nothing is known. */
static bool all_read(const struct merge *merge)
{
	for (uint32_t i = 0; i < merge->input_count; i++)
		if (merge->inputs[i].state != MERGE_READ)
			return false;
	return true;
}

static void judge_count(struct merge *merge, enum merge_which which, const char *what)
{
	const struct merge_count all = merge->total.of[which], least = merge->least.of[which];
	char reason[RESULTS_REASON_BYTES];

	if (all.known && all.count)
		merge_error(merge, REPORT_EXIT_FRAMES, "%s",
			    reason_count(reason, all.count, "frame", what));
	else if (!all.known && least.count)
		merge_error(merge, REPORT_EXIT_FRAMES, "at least %s",
			    reason_count(reason, least.count, "frame", what));
	else if (!all.known && all_read(merge) && merge->unsettled == 0)
		merge_error(merge, REPORT_EXIT_FRAMES, "how many frames were %s is unknown", what);
}

static void judge_streams(struct merge *merge)
{
	for (uint32_t i = 0; i < merge->stream_count; i++) {
		const struct merge_joined *joined = &merge->streams[i];

		if (joined->senders > 1)
			merge_error(merge, REPORT_EXIT_FRAMES,
				    "stream %" PRIu32 " is of %" PRIu32
				    " senders: give each streams "
				    "of its own (gdrcap replay --first-stream N)",
				    joined->id, joined->senders);
	}
	if (merge->unsettled > 8)
		merge_error(merge, REPORT_EXIT_FRAMES,
			    "streams of which it is unknown what is lost: %" PRIu32,
			    merge->unsettled);
}

static void judge_input(struct merge *merge, const struct merge_input *input)
{
	char lost[TEXT_COUNT_BYTES];

	if (input->failed)
		judge_failed(merge, input);
	if (input->receives && !covers_lost(merge, input))
		merge_error(merge, REPORT_EXIT_FRAMES,
			    "%s lost %s frames in all, and its streams fewer: of which the others "
			    "are is unknown",
			    input->file, text_count(lost, input->total.of[MERGE_LOST].count));
}

void merge_judge_all(struct merge *merge)
{
	for (uint32_t i = 0; i < merge->input_count; i++)
		if (merge->inputs[i].state == MERGE_READ)
			judge_input(merge, &merge->inputs[i]);
	judge_streams(merge);
	if (merge->receivers == 0 || merge_is_of_images(merge))
		return;
	judge_count(merge, MERGE_DAMAGED, REASON_DAMAGED);
	judge_count(merge, MERGE_LOST, REASON_LOST);
	judge_count(merge, MERGE_DUPLICATE, REASON_DUPLICATED);
	judge_count(merge, MERGE_REORDERED, REASON_REORDERED);
	if (merge->error_count == 0 && merge->total.of[MERGE_VALID].count == 0)
		merge_error(merge, REPORT_EXIT_FRAMES, "no valid frame was received");
}
