/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON object of a run: schema gdrcap.summary/1, docs/json.md. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_line.h"
#include "report_images.h"

/* Integers are signed in jansson, and where many programs read them. A larger one is text: exact, so
 * that the sums hold, and no number that is wrong. */
json_t *report_json_count(uint64_t count)
{
	char digits[24];

	if (count <= INT64_MAX)
		return json_integer((json_int_t)count);
	snprintf(digits, sizeof(digits), "%" PRIu64, count);
	return json_string(digits);
}

static json_t *json_count_if(int known, uint64_t count)
{
	return known ? report_json_count(count) : json_null();
}

static json_t *json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

/* Device names and file names may hold any bytes; JSON is UTF-8. */
json_t *report_json_text(const char *text)
{
	json_t *string;
	char *copy;

	if (!text)
		return json_null();
	string = json_string(text);
	if (string)
		return string;
	copy = strdup(text);
	if (!copy)
		return NULL;
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	string = json_string(copy);
	free(copy);
	return string;
}

static json_t *json_text_if(const char *text)
{
	return text[0] ? report_json_text(text) : json_null();
}

/* Takes `item` over; a NULL item or a failure empties *array to NULL, so errors need one check. */
static void array_add(json_t **array, json_t *item)
{
	if (*array && item && json_array_append_new(*array, item) == 0)
		return;
	if (!*array)
		json_decref(item);
	json_decref(*array);
	*array = NULL;
}

static const char *result_name(enum report_result result)
{
	switch (result) {
	case REPORT_RUNNING:
		return "running";
	case REPORT_PASS:
		return "pass";
	default:
		return "fail";
	}
}

static const char *memory_name(enum gdrcap_memory memory)
{
	switch (memory) {
	case GDRCAP_MEMORY_DEVICE:
		return "device";
	case GDRCAP_MEMORY_PINNED:
		return "pinned";
	case GDRCAP_MEMORY_HOST:
		return "host";
	default:
		return "auto";
	}
}

static const char *step_name(enum gdrcap_step_state state)
{
	switch (state) {
	case GDRCAP_STEP_PASSED:
		return "passed";
	case GDRCAP_STEP_SKIPPED:
		return "skipped";
	default:
		return "failed";
	}
}

/* Which counts mean something; the others are null. `judged`: every frame was checked. */
static json_t *frames_to_json(const struct gdrcap_counts *counts, int received, int judged,
			      int ordered)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sent",
			 report_json_count(counts->sent), "received",
			 json_count_if(received, counts->received), "valid",
			 json_count_if(judged, counts->valid), "damaged",
			 json_count_if(judged, counts->damaged), "lost",
			 json_count_if(ordered, counts->lost), "duplicate",
			 json_count_if(ordered, counts->duplicate), "reordered",
			 json_count_if(ordered, counts->reordered));
}

static json_t *bits_to_json(const struct gdrcap_counts *counts)
{
	double checked = (double)counts->bits_checked;
	json_t *ratio = counts->bits_checked ? json_real((double)counts->bits_wrong / checked)
					     : json_null();

	return json_pack("{s:o, s:o, s:o}", "checked", report_json_count(counts->bits_checked),
			 "wrong", report_json_count(counts->bits_wrong), "ratio", ratio);
}

/* Of receiving ports, or of sending ones. */
static json_t *causes_to_json(const struct report *report, int sender)
{
	json_t *object = json_object();

	for (uint32_t i = 0; object && i < report->cause_count; i++) {
		const struct gdrcap_cause *cause = &report->causes[i];

		if (cause->sender == sender &&
		    json_object_set_new(object, cause->name,
					json_count_if(cause->known, cause->count))) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

static json_t *lost_by_to_json(const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const int ordered = (summary->known & GDRCAP_HAS_LOSS) != 0;

	return json_pack("{s:o, s:o, s:o, s:o}", "nic_missed",
			 json_count_if(summary->known & GDRCAP_HAS_NIC_MISSED, summary->nic_missed),
			 "nic_error",
			 json_count_if(summary->known & GDRCAP_HAS_NIC_ERROR, summary->nic_error),
			 "unexplained", json_count_if(ordered, summary->unexplained), "causes",
			 causes_to_json(report, 0));
}

static json_t *memory_to_json(const struct gdrcap_summary *summary)
{
	return json_pack(
		"{s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "kind", memory_name(summary->memory),
		"gpu", report_json_text(summary->gpu), "driver", report_json_text(summary->driver),
		"region_bytes", report_json_count(summary->region_bytes), "slot_bytes",
		(json_int_t)summary->slot_bytes, "slots", (json_int_t)summary->slots, "split",
		(json_int_t)summary->split, "registration", json_text_if(summary->registration));
}

static json_t *number_if(int known, double value)
{
	return known ? json_number(value) : json_null();
}

/* What was asked of the sender, what it did, and how far its gaps were off. */
static json_t *sender_to_json(const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const int paced = (summary->known & GDRCAP_HAS_PACE) != 0;
	json_t *asked =
		json_pack("{s:o, s:o, s:o, s:o}", "gbps",
			  number_if(summary->asked_gbps > 0, summary->asked_gbps), "mpps",
			  number_if(summary->asked_mpps > 0, summary->asked_mpps), "seconds",
			  number_if(summary->asked_seconds > 0, summary->asked_seconds), "frames",
			  json_count_if(summary->tx_asked != 0, summary->tx_asked));
	json_t *gaps =
		paced ? json_pack("{s:o, s:o, s:o}", "p50", report_json_count(summary->gap_p50_ns),
				  "p99", report_json_count(summary->gap_p99_ns), "max",
				  report_json_count(summary->gap_max_ns))
		      : json_null();

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "asked", asked,
			 "gbps", json_number(summary->tx_gbps), "mpps",
			 json_number(summary->tx_mpps), "seconds", json_number(summary->tx_seconds),
			 "frames", report_json_count(summary->total.sent), "bytes",
			 report_json_count(summary->tx_bytes), "gap_error_ns", gaps, "starved",
			 report_json_count(summary->tx_starved), "errors",
			 json_count_if(summary->known & GDRCAP_HAS_TX_ERROR, summary->tx_error),
			 "causes", causes_to_json(report, 1));
}

static json_t *pool_empty_to_json(const struct gdrcap_summary *summary)
{
	return json_pack("{s:o, s:o}", "times", report_json_count(summary->pool_empty), "seconds",
			 json_number(summary->pool_empty_seconds));
}

static int saves(const struct report *report)
{
	return report_option(report, "save", 0) || report_option(report, "save_damaged", 0);
}

static json_t *saved_to_json(const struct gdrcap_summary *summary)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "frames", report_json_count(summary->saved),
			 "missed", report_json_count(summary->save_missed), "damaged_frames",
			 report_json_count(summary->damaged_saved), "damaged_missed",
			 report_json_count(summary->damaged_missed));
}

/* All values of an option. */
static json_t *options_to_json(const struct report *report, const char *key)
{
	json_t *array = json_array();
	const char *value;

	for (uint32_t i = 0; (value = report_option(report, key, i)); i++)
		array_add(&array, report_json_text(value));
	return array;
}

/* Rules, and who applies them. */
static json_t *match_to_json(const struct report *report)
{
	json_t *rules = options_to_json(report, "match");

	return json_pack("{s:o, s:o}", "rules", rules, "applied",
			 json_array_size(rules) == 0	  ? json_string("none")
			 : !report->has_session		  ? json_null()
			 : report->summary.software_match ? json_string("software")
							  : json_string("card"));
}

/* The rules that the cards apply, be they configured or made for our own frames. */
static json_t *steering_to_json(const struct report *report)
{
	json_t *rules;

	if (report->rule_count == 0)
		return json_null();
	rules = json_array();
	for (uint32_t i = 0; i < report->rule_count; i++)
		array_add(&rules, json_pack("{s:o, s:o}", "rule",
					    report_json_text(report->rules[i].text), "frames",
					    json_count_if(report->rules[i].known,
							  report->rules[i].frames)));
	return json_pack("{s:s, s:o}", "by", "card", "rules", rules);
}

static json_t *cores_to_json(const struct gdrcap_summary *summary)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < summary->core_count && i < GDRCAP_CORES_MAX; i++)
		array_add(&array, json_integer(summary->cores[i]));
	return array;
}

static json_t *queues_to_json(const struct report *report)
{
	const int judged = report->image_count == 0;
	json_t *array = json_array();

	for (uint32_t i = 0; i < report->queue_count; i++) {
		const struct gdrcap_counts *counts = &report->queues[i];

		array_add(&array,
			  json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "queue",
				    (json_int_t)i, "received", report_json_count(counts->received),
				    "valid", json_count_if(judged, counts->valid), "damaged",
				    json_count_if(judged, counts->damaged), "duplicate",
				    json_count_if(judged, counts->duplicate), "reordered",
				    json_count_if(judged, counts->reordered), "filtered",
				    json_count_if(judged, counts->filtered), "bytes",
				    report_json_count(counts->bytes), "bits",
				    judged ? bits_to_json(counts) : json_null()));
	}
	return array;
}

static json_t *streams_to_json(const struct report *report)
{
	const int ordered = (report->summary.known & GDRCAP_HAS_LOSS) != 0;
	json_t *array = json_array();

	for (uint32_t i = 0; i < report->stream_count; i++) {
		const struct report_stream *stream = &report->streams[i];

		array_add(&array,
			  json_pack("{s:I, s:o, s:o, s:o}", "stream", (json_int_t)stream->stream,
				    "frames", frames_to_json(&stream->counts, 1, 1, ordered),
				    "bits", bits_to_json(&stream->counts), "restarts",
				    json_count_if(ordered, stream->counts.restarts)));
	}
	return array;
}

static json_t *damage_to_json(const struct report *report)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < report->damage_count; i++) {
		const struct gdrcap_damage *damage = &report->damage[i];
		/* Only a payload was compared byte by byte; only a good header names its frame. */
		int compared = damage->wrong_bits != 0;
		int placed = compared || report_damage_is_late(damage);

		array_add(&array,
			  json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "kind",
				    report_json_text(damage->kind), "sequence",
				    json_count_if(damage->header_ok, damage->sequence), "stream",
				    json_count_if(damage->header_ok, damage->stream), "queue",
				    (json_int_t)damage->queue, "wrong_bits",
				    json_count_if(compared, damage->wrong_bits), "offset",
				    json_count_if(placed, damage->offset), "expected",
				    json_count_if(placed, damage->expected), "got",
				    json_count_if(placed, damage->got)));
	}
	return array;
}

static json_t *steps_to_json(const struct report *report)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < report->step_count; i++) {
		const struct gdrcap_step *step = &report->steps[i];
		json_t *causes = json_array();

		for (uint32_t n = 0; step->causes && step->causes[n]; n++)
			array_add(&causes, report_json_text(step->causes[n]));
		array_add(&array,
			  json_pack("{s:o, s:s, s:o, s:o}", "name", report_json_text(step->name),
				    "state", step_name(step->state), "detail",
				    report_json_text(step->detail), "causes", causes));
	}
	return array;
}

/* The part of the object that says what was asked for. */
static int add_config(json_t *object, const struct report *report)
{
	const int known = report->config != NULL;
	int rc = 0;

	rc |= json_object_set_new(object, "ports",
				  known ? options_to_json(report, "port") : json_null());
	rc |= json_object_set_new(object, "tx_ports",
				  known ? options_to_json(report, "tx_port") : json_null());
	rc |= json_object_set_new(object, "pattern",
				  known ? report_json_text(report_option(report, "pattern.name", 0))
					: json_null());
	rc |= json_object_set_new(object, "frame_size",
				  known ? report_json_text(report_option(report, "frame.size", 0))
					: json_null());
	return rc;
}

/* The part that was measured: null throughout where nothing ran. */
static int add_summary(json_t *object, const struct report *report)
{
	const struct gdrcap_summary *summary = report->has_summary ? &report->summary : NULL;
	const struct gdrcap_summary *session = report->has_session ? &report->summary : NULL;
	const int received = report_receives(report);
	int rc = 0;
	const int judged = received && !report->image_count;
	int stalled = summary && (summary->known & GDRCAP_HAS_TX_STALLED);
	const int numbered = summary && received && (summary->known & GDRCAP_HAS_LOSS);

	rc |= json_object_set_new(object, "seconds",
				  summary && received ? json_number(summary->seconds)
						      : json_null());
	rc |= json_object_set_new(object, "frames",
				  summary ? frames_to_json(&summary->total, received, judged,
							   (summary->known & GDRCAP_HAS_LOSS) != 0)
					  : json_null());
	rc |= json_object_set_new(object, "filtered",
				  summary && received ? report_json_count(summary->total.filtered)
						      : json_null());
	rc |= json_object_set_new(object, "bytes",
				  summary && received ? report_json_count(summary->total.bytes)
						      : json_null());
	rc |= json_object_set_new(object, "lost_by",
				  summary && received ? lost_by_to_json(report) : json_null());
	rc |= json_object_set_new(object, "tx_stalled",
				  stalled ? report_json_count(summary->tx_stalled) : json_null());
	rc |= json_object_set_new(object, "bits",
				  summary && judged ? bits_to_json(&summary->total) : json_null());
	rc |= json_object_set_new(object, "lock_lost",
				  json_count_if(summary && (summary->known & GDRCAP_HAS_LOCK),
						report->summary.lock_lost));
	rc |= json_object_set_new(object, "stale",
				  json_count_if(summary && (summary->known & GDRCAP_HAS_STALE),
						report->summary.stale));
	rc |= json_object_set_new(object, "pool_empty",
				  summary && received ? pool_empty_to_json(summary) : json_null());
	rc |= json_object_set_new(
		object, "cut", summary && received ? report_json_count(summary->cut) : json_null());
	rc |= json_object_set_new(object, "queue_restarts",
				  summary && received ? report_json_count(summary->queue_restarts)
						      : json_null());
	rc |= json_object_set_new(object, "restarts",
				  json_count_if(numbered, report->summary.total.restarts));
	rc |= json_object_set_new(object, "untracked",
				  json_count_if(numbered, report->summary.untracked));
	rc |= json_object_set_new(object, "conflicts",
				  json_count_if(numbered, report->summary.conflicts));
	rc |= json_object_set_new(object, "sender", stalled ? sender_to_json(report) : json_null());
	rc |= json_object_set_new(object, "saved",
				  summary && saves(report) ? saved_to_json(summary) : json_null());
	rc |= json_object_set_new(object, "clock",
				  session ? json_text_if(session->clock) : json_null());
	rc |= json_object_set_new(object, "match", match_to_json(report));
	rc |= json_object_set_new(object, "steering", steering_to_json(report));
	rc |= json_object_set_new(object, "ended_by_sender",
				  summary && received ? json_boolean(summary->ended_by_sender)
						      : json_null());
	rc |= json_object_set_new(
		object, "rate",
		summary && received ? json_pack("{s:o, s:o}", "gbps", json_number(summary->gbps),
						"mpps", json_number(summary->mpps))
				    : json_null());
	rc |= json_object_set_new(object, "memory",
				  session ? memory_to_json(session) : json_null());
	rc |= json_object_set_new(object, "blocks",
				  session ? json_integer(session->blocks) : json_null());
	rc |= json_object_set_new(object, "cores", session ? cores_to_json(session) : json_null());
	return rc;
}

static int add_texts(json_t *object, const struct report *report)
{
	json_t *errors = json_array(), *messages = json_array();
	int rc = 0;

	for (uint32_t i = 0; i < report->error_count; i++)
		array_add(&errors, report_json_text(report->errors[i]));
	for (uint32_t i = 0; i < report->message_count; i++)
		array_add(&messages, report_json_text(report->messages[i]));
	rc |= json_object_set_new(object, "errors", errors);
	rc |= json_object_set_new(object, "messages", messages);
	return rc;
}

json_t *report_to_json(const struct report *report)
{
	json_t *object = json_object();
	int rc = 0;

	if (!object)
		return NULL;
	rc |= json_object_set_new(object, "schema", json_string(REPORT_SCHEMA));
	rc |= json_object_set_new(object, "version", report_json_text(report->version));
	rc |= json_object_set_new(object, "command", report_json_text(report->command));
	rc |= json_object_set_new(object, "result", json_string(result_name(report->result)));
	rc |= add_config(object, report);
	rc |= add_summary(object, report);
	rc |= json_object_set_new(object, "images", report_images_to_json(report));
	rc |= json_object_set_new(object, "queues", queues_to_json(report));
	rc |= json_object_set_new(object, "streams", streams_to_json(report));
	rc |= json_object_set_new(object, "damage", damage_to_json(report));
	rc |= json_object_set_new(object, "stages", steps_to_json(report));
	rc |= add_texts(object, report);
	if (rc) {
		json_decref(object);
		return NULL;
	}
	return object;
}

int report_print_json(FILE *to, const struct report *report)
{
	return json_line_print(to, report_to_json(report), JSON_REAL_PRECISION(12));
}
