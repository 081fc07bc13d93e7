/* SPDX-License-Identifier: BSD-3-Clause */
/* What counts of a summary's object. It is anybody's: nothing in it is believed that does not add up. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "merge/merge.h"

static const char *const keys[] = { "sent", "received",	 "valid",     "damaged",
				    "lost", "duplicate", "reordered", "filtered" };

int merge_refuse(struct merge_input *input, enum merge_state state, const char *format, ...)
{
	va_list arguments;

	input->state = state;
	va_start(arguments, format);
	vsnprintf(input->why, sizeof(input->why), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

void merge_input_free(struct merge_input *input)
{
	for (uint32_t i = 0; i < input->stream_count; i++)
		free(input->streams[i].ranges.rows);
	free(input->streams);
	free(input->errors);
	input->streams = NULL;
	input->errors = NULL;
	input->stream_count = 0;
	input->error_count = 0;
}

struct merge_count merge_sum(struct merge_count a, struct merge_count b)
{
	struct merge_count sum = { .known = a.known && b.known };

	if (sum.known && __builtin_add_overflow(a.count, b.count, &sum.count))
		sum = (struct merge_count){ 0 };
	return sum;
}

bool merge_count_of(const json_t *value, struct merge_count *count)
{
	const char *text = json_string_value(value);

	*count = (struct merge_count){ 0 };
	if (json_is_null(value))
		return true;
	if (json_is_integer(value) && json_integer_value(value) >= 0) {
		*count = (struct merge_count){ (uint64_t)json_integer_value(value), true };
		return true;
	}
	if (!text || !isdigit((unsigned char)text[0]) || strspn(text, "0123456789") != strlen(text))
		return false;
	errno = 0;
	*count = (struct merge_count){ strtoull(text, NULL, 10), true };
	return errno == 0;
}

static int read_count(struct merge_input *input, const json_t *object, const char *key,
		      struct merge_count *count)
{
	if (merge_count_of(json_object_get(object, key), count))
		return 0;
	return merge_refuse(input, MERGE_REFUSED, "its \"%s\" is %s: no summary of gdrcap's", key,
			    json_object_get(object, key) ? "not a count" : "missing");
}

static int read_frames(struct merge_input *input, const json_t *frames, struct merge_counts *counts)
{
	for (int i = 0; i < MERGE_FILTERED; i++)
		if (read_count(input, frames, keys[i], &counts->of[i]) < 0)
			return -EINVAL;
	return 0;
}

/* What the terms come to is `whole`, or one of them is not known. */
static bool adds_up(const struct merge_counts *counts, enum merge_which whole, enum merge_which a,
		    enum merge_which b, enum merge_which c, enum merge_which d)
{
	const struct merge_count *of = counts->of;
	unsigned __int128 sum;

	if (!of[whole].known || !of[a].known || !of[b].known || !of[c].known || !of[d].known)
		return true;
	sum = (unsigned __int128)of[a].count + of[b].count + of[c].count;
	/* MERGE_LOST stands twice where there are three terms. */
	if (d != c)
		sum += of[d].count;
	return sum == of[whole].count;
}

/* The identities of docs/json.md. `what`: for the reason. */
static int check(struct merge_input *input, const struct merge_counts *counts, const char *what)
{
	if (!adds_up(counts, MERGE_SENT, MERGE_VALID, MERGE_DAMAGED, MERGE_LOST, MERGE_LOST))
		return merge_refuse(input, MERGE_REFUSED,
				    "does not add up: %ssent is not valid + damaged + lost", what);
	if (!adds_up(counts, MERGE_RECEIVED, MERGE_VALID, MERGE_DAMAGED, MERGE_DUPLICATE,
		     MERGE_FILTERED))
		return merge_refuse(
			input, MERGE_REFUSED,
			"does not add up: %sreceived is not valid + damaged + duplicate + "
			"filtered",
			what);
	return 0;
}

static int read_stream(struct merge_input *input, const json_t *object, struct merge_stream *stream)
{
	struct merge_count id, restarts;
	char what[32];

	if (read_count(input, object, "stream", &id) < 0 ||
	    read_frames(input, json_object_get(object, "frames"), &stream->counts) < 0)
		return -EINVAL;
	if (!id.known || id.count >= MERGE_STREAM_IDS)
		return merge_refuse(input, MERGE_REFUSED,
				    "has a stream whose id is not from 0 to %u: no summary of "
				    "gdrcap's",
				    MERGE_STREAM_IDS - 1);
	stream->id = (uint32_t)id.count;
	stream->restarted = json_object_get(object, "restarts") &&
			    (!merge_count_of(json_object_get(object, "restarts"), &restarts) ||
			     restarts.count != 0);
	stream->counts.of[MERGE_FILTERED] = (struct merge_count){ 0, true };
	snprintf(what, sizeof(what), "stream %" PRIu32 ": ", stream->id);
	if (check(input, &stream->counts, what) < 0)
		return -EINVAL;
	return merge_ranges_read(input, json_object_get(object, "ranges"), stream);
}

/* No more in the streams than in all: what is not listed is the rest. */
static int check_sums(struct merge_input *input)
{
	static const enum merge_which parts[] = { MERGE_VALID, MERGE_DAMAGED, MERGE_RECEIVED,
						  MERGE_DUPLICATE, MERGE_REORDERED };

	for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
		unsigned __int128 sum = 0;

		for (uint32_t i = 0; i < input->stream_count; i++)
			sum += input->streams[i].counts.of[parts[p]].count;
		if (input->total.of[parts[p]].known && sum > input->total.of[parts[p]].count)
			return merge_refuse(input, MERGE_REFUSED,
					    "does not add up: its streams have more %s frames than "
					    "all of them together",
					    keys[parts[p]]);
	}
	return 0;
}

/* The same of what a sender sent; a receiver's own estimate is not bound by it. */
static int check_sent(struct merge_input *input)
{
	unsigned __int128 sum = 0;

	for (uint32_t i = 0; i < input->stream_count; i++)
		sum += input->streams[i].counts.of[MERGE_SENT].count;
	if (input->sends && !input->receives && sum > input->total.of[MERGE_SENT].count)
		return merge_refuse(
			input, MERGE_REFUSED,
			"does not add up: its streams have more sent frames than all of "
			"them together");
	return 0;
}

static int read_streams(struct merge_input *input, const json_t *array)
{
	const size_t count = json_array_size(array);

	if (!json_is_array(array) || count > GDRCAP_STREAMS_MAX)
		return merge_refuse(input, MERGE_REFUSED,
				    "its \"streams\" are no list of at most %d: no summary of "
				    "gdrcap's",
				    GDRCAP_STREAMS_MAX);
	input->streams = calloc(count + 1, sizeof(*input->streams));
	if (!input->streams)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const int rc = read_stream(input, json_array_get(array, i), &input->streams[i]);

		input->stream_count = (uint32_t)i + 1;
		if (rc < 0)
			return rc;
	}
	if (check_sums(input) < 0)
		return -EINVAL;
	return check_sent(input);
}

static int read_errors(struct merge_input *input, const json_t *array)
{
	size_t count = json_array_size(array);

	if (!json_is_array(array))
		return merge_refuse(input, MERGE_REFUSED,
				    "its \"errors\" are no list: no summary of gdrcap's");
	if (count > REPORT_ERRORS_MAX)
		count = REPORT_ERRORS_MAX;
	input->errors = calloc(count + 1, sizeof(*input->errors));
	if (!input->errors)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(array, i));

		snprintf(input->errors[i], sizeof(input->errors[i]), "%s", text ? text : "?");
	}
	input->error_count = (uint32_t)count;
	return 0;
}

bool merge_same_run(const struct merge_input *a, const struct merge_input *b)
{
	return a->has_run && b->has_run && !strcmp(a->run.host, b->run.host) &&
	       a->run.pid == b->run.pid && a->run.started_ns == b->run.started_ns;
}

int merge_run(struct merge_input *input, const json_t *object)
{
	const json_t *run = json_object_get(object, "run"),
		     *elapsed = json_object_get(object, "elapsed_seconds");
	const char *host = json_string_value(json_object_get(run, "host"));
	struct merge_count pid, started;

	input->elapsed = json_is_number(elapsed) ? json_number_value(elapsed) : -1;
	if (!run)
		return 0;
	if (read_count(input, run, "pid", &pid) < 0 ||
	    read_count(input, run, "started_ns", &started) < 0)
		return -EINVAL;
	snprintf(input->run.host, sizeof(input->run.host), "%s", host ? host : "");
	input->run.pid = (uint32_t)pid.count;
	input->run.started_ns = started.count;
	input->has_run = pid.known && started.known;
	return 0;
}

static void read_text(const json_t *object, const char *key, char *to, size_t bytes)
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(to, bytes, "%s", text ? text : "");
}

/* Who it is; of which version. */
static int read_head(struct merge_input *input, const json_t *object)
{
	const char *schema = json_string_value(json_object_get(object, "schema"));
	const char *command = json_string_value(json_object_get(object, "command"));
	const bool both = command && !strcmp(command, "loopback");

	if (!schema)
		return merge_refuse(input, MERGE_REFUSED,
				    "is no summary of gdrcap's: it has no \"schema\"; give what "
				    "gdrcap capture, replay or loopback printed with --json");
	if (strcmp(schema, RESULTS_SCHEMA) != 0)
		return merge_refuse(
			input, MERGE_REFUSED,
			"is of schema %.64s, not %s; give what gdrcap capture, replay or "
			"loopback of this version printed with --json",
			schema, RESULTS_SCHEMA);
	/* A session that receives, and sends the caller's own frames elsewhere, is no sender of what it
	 * receives. */
	input->sends = command && (!strcmp(command, "replay") ||
				   (both && json_is_object(json_object_get(object, "sender"))));
	input->receives = command && (!strcmp(command, "capture") || both);
	if (!input->sends && !input->receives)
		return merge_refuse(input, MERGE_REFUSED,
				    "its \"command\" is none of gdrcap's that send or receive");
	read_text(object, "pattern", input->pattern, sizeof(input->pattern));
	read_text(object, "frame_size", input->frame_size, sizeof(input->frame_size));
	return merge_run(input, object);
}

static int refuse_pass(struct merge_input *input, const char *wrong)
{
	return merge_refuse(input, MERGE_REFUSED,
			    "does not add up: its \"result\" is \"pass\", and its \"%s\" say that "
			    "the run failed",
			    wrong);
}

static int read_if_there(struct merge_input *input, const json_t *object, const char *key,
			 struct merge_count *count)
{
	*count = (struct merge_count){ 0 };
	return json_object_get(object, key) ? read_count(input, object, key, count) : 0;
}

/* Of a run's images: none is whole, or more lack something than its start and stop cut. */
static int check_pass_images(struct merge_input *input, const json_t *images, const char **wrong)
{
	for (size_t i = 0; i < json_array_size(images); i++) {
		const json_t *image = json_array_get(images, i),
			     *cut = json_object_get(image, "cut");
		struct merge_count complete, incomplete, by_start, by_stop;

		if (read_if_there(input, image, "complete", &complete) < 0 ||
		    read_if_there(input, image, "incomplete", &incomplete) < 0 ||
		    read_if_there(input, cut, "by_start", &by_start) < 0 ||
		    read_if_there(input, cut, "by_stop", &by_stop) < 0)
			return -EINVAL;
		if (!complete.count || incomplete.count > merge_sum(by_start, by_stop).count)
			*wrong = "images";
	}
	return 0;
}

/* What makes a run fail, by itself. */
static int check_pass(struct merge_input *input, const json_t *object)
{
	static const struct {
		const char *part, *key;
	} none_of[] = {
		{ NULL, "conflicts" },	       { NULL, "stale" },
		{ NULL, "lock_lost" },	       { "saved", "missed" },
		{ "saved", "damaged_missed" }, { "sender", "errors" },
		{ "bits", "wrong" },
	};
	const json_t *stages = json_object_get(object, "stages");
	const char *wrong = input->error_count					 ? "errors"
			    : json_array_size(json_object_get(object, "damage")) ? "damage"
										 : NULL;

	for (size_t i = 0; i < sizeof(none_of) / sizeof(none_of[0]); i++) {
		const char *part = none_of[i].part, *key = none_of[i].key;
		const json_t *in = part ? json_object_get(object, part) : object;
		struct merge_count count;

		/* What a receiver's own sender could not send is lost, or came all the same. */
		if (part && !strcmp(part, "sender") && input->receives)
			continue;
		if (read_if_there(input, in, key, &count) < 0)
			return -EINVAL;
		wrong = count.count ? key : wrong;
	}
	for (size_t i = 0; i < json_array_size(stages); i++) {
		const char *state =
			json_string_value(json_object_get(json_array_get(stages, i), "state"));

		wrong = state && !strcmp(state, "failed") ? "stages" : wrong;
	}
	if (check_pass_images(input, json_object_get(object, "images"), &wrong) < 0)
		return -EINVAL;
	return wrong ? refuse_pass(input, wrong) : 0;
}

/* The same, by its counts of frames. */
static int check_pass_frames(struct merge_input *input, const json_t *object)
{
	const struct merge_count *of = input->total.of;
	struct merge_count dropped, in_flight;

	if (input->failed)
		return 0;
	if (read_if_there(input, json_object_get(object, "lost_by"), "in_run", &dropped) < 0 ||
	    read_if_there(input, object, "in_flight", &in_flight) < 0)
		return -EINVAL;
	/* Where most frames are others' these may be, too. */
	if (dropped.count && of[MERGE_FILTERED].count <= of[MERGE_RECEIVED].count / 2)
		return refuse_pass(input, "lost_by.in_run");
	/* Without a verdict they are batches that the caller kept. */
	return in_flight.count && of[MERGE_VALID].known ? refuse_pass(input, "in_flight") : 0;
}

/* How it ended, if it did. */
static int read_result(struct merge_input *input, const json_t *object)
{
	const char *result = json_string_value(json_object_get(object, "result"));
	const json_t *errors = json_object_get(object, "errors");
	const char *reason = json_string_value(json_array_get(errors, 0));
	const int rc = read_errors(input, errors);

	if (rc < 0)
		return rc;
	if (!result ||
	    (strcmp(result, "pass") && strcmp(result, "fail") && strcmp(result, "running")))
		return merge_refuse(input, MERGE_REFUSED,
				    "its \"result\" is none: no summary of gdrcap's");
	if (strcmp(result, "running") == 0)
		return merge_refuse(input, MERGE_UNKNOWN,
				    "its run had not ended: the last line is still \"running\"");
	if (!json_is_object(json_object_get(object, "frames")))
		return merge_refuse(input, MERGE_UNKNOWN, "nothing ran there: %s",
				    reason ? reason : "it has no \"frames\"");
	input->failed = strcmp(result, "fail") == 0;
	return input->failed ? 0 : check_pass(input, object);
}

int merge_object(struct merge_input *input, const json_t *object)
{
	int rc;

	if (!json_is_object(object))
		return merge_refuse(input, MERGE_REFUSED,
				    "is no summary of gdrcap's: no JSON object; give what gdrcap "
				    "capture, replay or loopback printed with --json");
	rc = read_head(input, object);
	if (!rc)
		rc = read_result(input, object);
	if (!rc)
		rc = read_frames(input, json_object_get(object, "frames"), &input->total);
	if (!rc)
		rc = read_count(input, object, keys[MERGE_FILTERED],
				&input->total.of[MERGE_FILTERED]);
	if (!rc)
		rc = check_pass_frames(input, object);
	if (!rc)
		rc = read_count(input, object, "untracked", &input->untracked);
	input->of_images = input->receives && !input->total.of[MERGE_VALID].known &&
			   json_array_size(json_object_get(object, "images"));
	if (!rc && input->sends && !input->total.of[MERGE_SENT].known)
		rc = merge_refuse(input, MERGE_REFUSED,
				  "says it sends, and not how much: no summary of gdrcap's");
	if (!rc && input->receives && !input->total.of[MERGE_RECEIVED].known)
		rc = merge_refuse(input, MERGE_REFUSED,
				  "says it receives, and not how much: no summary of gdrcap's");
	if (!rc)
		rc = check(input, &input->total, "");
	if (!rc)
		rc = read_streams(input, json_object_get(object, "streams"));
	return rc;
}
