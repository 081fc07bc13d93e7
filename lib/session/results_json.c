/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's results as a whole: collected, judged, and as JSON. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_line.h"
#include "base/parse.h"
#include "config/config.h"
#include "session/session.h"
#include "summary/results.h"

/* What the drivers say; they ask the cards. */
static void collect_ports(const struct gdrcap_session *session, struct results *to)
{
	while (to->cause_count < RESULTS_CAUSES_MAX &&
	       !gdrcap_get_cause(session, to->cause_count, &to->causes[to->cause_count],
				 sizeof(to->causes[0])))
		to->cause_count++;
	while (to->rule_count < GDRCAP_MATCH_MAX &&
	       !gdrcap_get_rule(session, to->rule_count, &to->rules[to->rule_count],
				sizeof(to->rules[0])))
		to->rule_count++;
}

static void collect_images(const struct gdrcap_session *session, struct results *to)
{
	for (uint32_t i = 0; i < session->images.count && i < GDRCAP_IMAGES_MAX; i++) {
		struct results_images *images = &to->images[i];
		uint32_t n;

		images->name = session->images.handed[i].name;
		gdrcap_get_image_counts(session, i, &images->counts, sizeof(images->counts));
		for (n = 0; n < GDRCAP_IMAGE_STREAMS_MAX; n++)
			if (gdrcap_get_image_stream(session, i, n, &images->streams[n].id,
						    &images->streams[n].counts,
						    sizeof(images->streams[n].counts)))
				break;
		images->stream_count = n;
		for (n = 0; n < GDRCAP_INCOMPLETE_MAX; n++)
			if (gdrcap_get_incomplete(session, i, n, &images->incomplete[n],
						  sizeof(images->incomplete[n])))
				break;
		images->incomplete_count = n;
		for (n = 0; n < RESULTS_REFUSED_MAX; n++)
			if (gdrcap_get_refused(session, i, n, &images->refused[n],
					       sizeof(images->refused[n])))
				break;
		images->refused_count = n;
		for (n = 0; n < RESULTS_CONFLICTS_MAX; n++)
			if (gdrcap_get_conflict(session, i, n, &images->conflicts[n],
						sizeof(images->conflicts[n])))
				break;
		images->conflict_count = n;
	}
	to->image_count = session->images.count;
}

/* Without memory they are not known, and the counts are. */
static void collect_ranges(const struct gdrcap_session *session, struct results *to)
{
	const char *asked = results_option(to, "ranges", 0);
	uint32_t on = 0;

	if (to->state != RESULTS_OVER || !asked || parse_bool(asked, &on) || !on)
		return;
	to->has_ranges = true;
	for (uint32_t i = 0; i < to->stream_count; i++) {
		struct results_stream *stream = &to->streams[i];
		const int count = gdrcap_get_ranges(session, i, NULL, 0);

		if (count < 0)
			continue;
		stream->ranges = calloc((size_t)count + 1, sizeof(*stream->ranges));
		if (!stream->ranges)
			continue;
		stream->range_count = (uint32_t)count;
		gdrcap_get_ranges(session, i, stream->ranges, stream->range_count);
	}
}

static void collect_parts(const struct gdrcap_session *session, struct results *to)
{
	const uint32_t queues = RTE_DIM(to->queues);

	while (to->stream_count < GDRCAP_STREAMS_MAX &&
	       !gdrcap_get_stream_counts(
		       session, to->stream_count, &to->streams[to->stream_count].id,
		       &to->streams[to->stream_count].counts, sizeof(to->streams[0].counts)))
		to->stream_count++;
	while (to->queue_count < queues &&
	       !gdrcap_get_queue_counts(session, to->queue_count, &to->queues[to->queue_count],
					sizeof(to->queues[0])))
		to->queue_count++;
	while (to->damage_count < GDRCAP_DAMAGE_MAX &&
	       !gdrcap_get_damage(session, to->damage_count, &to->damage[to->damage_count],
				  sizeof(to->damage[0])))
		to->damage_count++;
	memcpy(to->steps, session->selftest.steps, sizeof(to->steps));
	to->step_count = session->selftest.step_count;
	collect_ranges(session, to);
}

static void collect_messages(const struct gdrcap_session *session, struct results *to)
{
	while (to->message_count < RESULTS_MESSAGES_MAX &&
	       (to->messages[to->message_count] = gdrcap_get_message(session, to->message_count)))
		to->message_count++;
}

static void collect_state(const struct gdrcap_session *session, struct results *to)
{
	to->state = !atomic_load(&session->run.began_ns)  ? RESULTS_CREATED
		    : !atomic_load(&session->run.over_ns) ? RESULTS_RUNNING
							  : RESULTS_OVER;
	to->version = gdrcap_version();
	to->run = session->id;
	to->config = session->config;
	to->records = session->frames.save && config_says_no_frames(session->config);
	if (to->state == RESULTS_RUNNING)
		return;
	if (session->workers.rx_count && !session->workers.tx_count && !session->run.ended_by_time)
		to->rx_asked = session->settings.frames;
	if (!session->run.ended_by_time)
		to->images_asked = session->settings.images_wanted;
	to->rx_came = session_received(session);
	to->failure = session->run.failure ? session->run.failure : session->selftest.failure;
	if (session->run.failure)
		session_failure_text(session, to->failure_text, sizeof(to->failure_text));
	else
		snprintf(to->failure_text, sizeof(to->failure_text), "%s",
			 session->selftest.failure_text);
}

/* NULL: no memory. */
static struct results *collect(const struct gdrcap_session *session)
{
	struct results *results = calloc(1, sizeof(*results));

	if (!results)
		return NULL;
	collect_state(session, results);
	gdrcap_get_summary(session, &results->summary, sizeof(results->summary));
	collect_images(session, results);
	return results;
}

static void results_free(struct results *results)
{
	for (uint32_t i = 0; results && i < results->stream_count; i++)
		free(results->streams[i].ranges);
	free(results);
}

/* Takes `results` over. */
static int give_json(struct results *results, const struct reasons *reasons, uint32_t what,
		     char **json)
{
	size_t bytes;

	*json = json_line_text(results_to_json(results, reasons, what), RESULTS_JSON_FLAGS, &bytes);
	results_free(results);
	return *json ? 0 : -ENOMEM;
}

int gdrcap_get_json(const struct gdrcap_session *session, uint32_t what, char **json)
{
	const int ret = guest_check(session, "session", NULL);
	struct reasons *reasons;
	struct results *results;
	int rc = -ENOMEM;

	if (ret < 0 || !json)
		return ret < 0 ? ret : -EINVAL;
	*json = NULL;
	reasons = calloc(1, sizeof(*reasons));
	results = collect(session);
	if (results && reasons) {
		collect_ports(session, results);
		collect_messages(session, results);
		if (what & GDRCAP_JSON_PARTS)
			collect_parts(session, results);
		results_judge(results, reasons);
		rc = give_json(results, reasons, what, json);
	} else {
		results_free(results);
	}
	free(reasons);
	return rc;
}

int gdrcap_config_get_json(const struct gdrcap_config *config, char **json)
{
	struct results *results;
	struct reasons *reasons;
	int rc = -ENOMEM;

	if (!json)
		return -EINVAL;
	*json = NULL;
	reasons = calloc(1, sizeof(*reasons));
	results = calloc(1, sizeof(*results));
	if (results && reasons) {
		results->version = gdrcap_version();
		results->config = config;
		results_run_now(&results->run);
		results_judge(results, reasons);
		rc = give_json(results, reasons, GDRCAP_JSON_ALL, json);
	} else {
		results_free(results);
	}
	free(reasons);
	return rc;
}

void gdrcap_free_json(char *json)
{
	free(json);
}

/* "REASON; REASON", as far as there is room. */
static void join(const struct reasons *reasons, char *to, size_t bytes)
{
	size_t used = 0;

	for (uint32_t i = 0; i < reasons->count && used < bytes; i++)
		used += (size_t)snprintf(to + used, bytes - used, "%s%s", i ? "; " : "",
					 reasons->text[i]);
}

int gdrcap_judge(const struct gdrcap_session *session, struct gdrcap_error *why)
{
	int ret = guest_check(session, "session", why);
	struct reasons *reasons;
	struct results *results;

	if (ret < 0)
		return ret;
	reasons = calloc(1, sizeof(*reasons));
	results = collect(session);
	if (!results || !reasons) {
		ret = error_set(why, -ENOMEM, "no memory for the results");
	} else if (results->state == RESULTS_RUNNING) {
		ret = error_set(why, -EAGAIN, "the run goes on: gdrcap_stop() ends it");
	} else {
		results_judge(results, reasons);
		ret = reasons->code;
		if (why)
			*why = (struct gdrcap_error){ .code = ret };
		if (why)
			join(reasons, why->text, sizeof(why->text));
	}
	results_free(results);
	free(reasons);
	return ret;
}
