/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON object of a run: schema gdrcap.summary/1, docs/json.md. */
#include <string.h>

#include "json_line.h"
#include "report_images.h"

static const char *const result_names[] = {
	[REPORT_RUNNING] = "running",
	[REPORT_PASS] = "pass",
	[REPORT_FAIL] = "fail",
};
static const char *const memory_names[] = {
	[GDRCAP_MEMORY_AUTO] = "auto",
	[GDRCAP_MEMORY_DEVICE] = "device",
	[GDRCAP_MEMORY_PINNED] = "pinned",
	[GDRCAP_MEMORY_HOST] = "host",
};
static const char *const step_names[] = {
	[GDRCAP_STEP_PASSED] = "passed",
	[GDRCAP_STEP_FAILED] = "failed",
	[GDRCAP_STEP_SKIPPED] = "skipped",
};

static json_t *run_to_json(const struct report_run *run)
{
	return json_pack("{s:o, s:I, s:o}", "host", json_text_if(run->host), "pid",
			 (json_int_t)run->pid, "started_ns", json_count(run->started_ns));
}

/* Which counts mean something; the others are null. `judged`: every frame was checked. */
static json_t *frames_to_json(const struct gdrcap_counts *counts, int received, int judged,
			      int ordered)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sent", json_count(counts->sent),
			 "received", json_count_if(received, counts->received), "valid",
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

	return json_pack("{s:o, s:o, s:o}", "checked", json_count(counts->bits_checked), "wrong",
			 json_count(counts->bits_wrong), "ratio", ratio);
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
		"{s:s, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "kind", memory_names[summary->memory],
		"gpu", json_text(summary->gpu), "driver", json_text(summary->driver),
		"region_bytes", json_count(summary->region_bytes), "slot_bytes",
		(json_int_t)summary->slot_bytes, "slots", (json_int_t)summary->slots, "split",
		(json_int_t)summary->split, "registration", json_text_if(summary->registration));
}

/* When its first frame was to be sent, and was. */
static json_t *start_to_json(const struct gdrcap_summary *summary)
{
	if (!summary->start_ns)
		return json_null();
	return json_pack("{s:o, s:o}", "asked", json_time(summary->start_ns), "late_ns",
			 json_count_if(summary->known & GDRCAP_HAS_START, summary->start_late_ns));
}

/* What was asked of the sender, what it did, and how far its gaps were off. */
static json_t *sender_to_json(const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const int paced = (summary->known & GDRCAP_HAS_PACE) != 0;
	json_t *asked =
		json_pack("{s:o, s:o, s:o, s:o}", "gbps",
			  json_number_if(summary->asked_gbps > 0, summary->asked_gbps), "mpps",
			  json_number_if(summary->asked_mpps > 0, summary->asked_mpps), "seconds",
			  json_number_if(summary->asked_seconds > 0, summary->asked_seconds),
			  "frames", json_count_if(summary->tx_asked != 0, summary->tx_asked));
	json_t *gaps = paced ? json_pack("{s:o, s:o, s:o}", "p50", json_count(summary->gap_p50_ns),
					 "p99", json_count(summary->gap_p99_ns), "max",
					 json_count(summary->gap_max_ns))
			     : json_null();

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "asked", asked,
		"gbps", json_number(summary->tx_gbps), "mpps", json_number(summary->tx_mpps),
		"seconds", json_number(summary->tx_seconds), "frames",
		json_count(summary->total.sent), "bytes", json_count(summary->tx_bytes),
		"gap_error_ns", gaps, "starved", json_count(summary->tx_starved), "errors",
		json_count_if(summary->known & GDRCAP_HAS_TX_ERROR, summary->tx_error), "proxies",
		json_count_if(strcmp(summary->tx_by, "gpu") == 0, summary->tx_proxies), "start",
		start_to_json(summary), "causes", causes_to_json(report, 1));
}

/* The caller's own frames. */
static json_t *sending_to_json(const struct gdrcap_summary *summary)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "submitted",
		json_count(summary->sending_submitted), "sent", json_count(summary->sending_sent),
		"unsent", json_count(summary->sending_unsent), "refused",
		json_count(summary->sending_refused), "bytes", json_count(summary->sending_bytes),
		"stalled", json_count(summary->sending_stalled), "failed",
		json_count_if(summary->known & GDRCAP_HAS_SENDING_FAILED, summary->sending_failed));
}

static json_t *pool_empty_to_json(const struct gdrcap_summary *summary)
{
	return json_pack("{s:o, s:o}", "times", json_count(summary->pool_empty), "seconds",
			 json_number(summary->pool_empty_seconds));
}

static int saves(const struct report *report)
{
	return report_option(report, "save", 0) || report_option(report, "save_damaged", 0);
}

static json_t *saved_to_json(const struct gdrcap_summary *summary)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "frames", json_count(summary->saved), "missed",
			 json_count(summary->save_missed), "damaged_frames",
			 json_count(summary->damaged_saved), "damaged_missed",
			 json_count(summary->damaged_missed));
}

/* All values of an option. */
static json_t *options_to_json(const struct report *report, const char *key)
{
	json_t *array = json_array();
	const char *value;

	for (uint32_t i = 0; (value = report_option(report, key, i)); i++)
		json_add(&array, json_text(value));
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
		json_add(&rules,
			 json_pack("{s:o, s:o}", "rule", json_text(report->rules[i].text), "frames",
				   json_count_if(report->rules[i].known, report->rules[i].frames)));
	return json_pack("{s:s, s:o}", "by", "card", "rules", rules);
}

static json_t *cores_to_json(const struct gdrcap_summary *summary)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < summary->core_count && i < GDRCAP_CORES_MAX; i++)
		json_add(&array, json_integer(summary->cores[i]));
	return array;
}

static json_t *queues_to_json(const struct report *report)
{
	const int judged = report->image_count == 0;
	json_t *array = json_array();
	for (uint32_t i = 0; i < report->queue_count; i++) {
		const struct gdrcap_counts *counts = &report->queues[i];

		json_add(&array, json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "queue",
					   (json_int_t)i, "received", json_count(counts->received),
					   "valid", json_count_if(judged, counts->valid), "damaged",
					   json_count_if(judged, counts->damaged), "duplicate",
					   json_count_if(judged, counts->duplicate), "reordered",
					   json_count_if(judged, counts->reordered), "filtered",
					   json_count_if(judged, counts->filtered), "bytes",
					   json_count(counts->bytes), "bits",
					   judged ? bits_to_json(counts) : json_null()));
	}
	return array;
}

/* [first, length], or of several [first, length, step, times]. */
static json_t *ranges_to_json(const struct report_stream *stream)
{
	json_t *array = stream->ranges ? json_array() : json_null();

	for (uint32_t i = 0; i < stream->range_count; i++) {
		const struct gdrcap_numbers *range = &stream->ranges[i];
		json_t *row = json_array();

		json_add(&row, json_count(range->first));
		json_add(&row, json_count(range->length));
		if (range->times > 1) {
			json_add(&row, json_count(range->step));
			json_add(&row, json_count(range->times));
		}
		json_add(&array, row);
	}
	return array;
}

static json_t *streams_to_json(const struct report *report)
{
	/* Of a run that only sends: what it sent, and nothing of what came. */
	const int received = report_receives(report);
	const int ordered = received && (report->summary.known & GDRCAP_HAS_LOSS);
	json_t *array = json_array();

	for (uint32_t i = 0; i < report->stream_count; i++) {
		const struct report_stream *stream = &report->streams[i];
		json_t *object = json_pack(
			"{s:I, s:o, s:o, s:o}", "stream", (json_int_t)stream->stream, "frames",
			frames_to_json(&stream->counts, received, received, ordered), "bits",
			received ? bits_to_json(&stream->counts) : json_null(), "restarts",
			json_count_if(ordered, stream->counts.restarts));

		if (report->has_ranges &&
		    json_object_set_new(object, "ranges", ranges_to_json(stream))) {
			json_decref(object);
			object = NULL;
		}
		json_add(&array, object);
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

		json_add(&array,
			 json_pack("{s:o, s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "kind",
				   json_text(damage->kind), "sequence",
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
			json_add(&causes, json_text(step->causes[n]));
		json_add(&array, json_pack("{s:o, s:s, s:o, s:o}", "name", json_text(step->name),
					   "state", step_names[step->state], "detail",
					   json_text(step->detail), "causes", causes));
	}
	return array;
}

/* What was asked for. */
static int add_config(json_t *object, const struct report *report)
{
	const int known = report->config != NULL;
	const struct json_row rows[] = {
		{ "ports", known ? options_to_json(report, "port") : json_null() },
		{ "tx_ports", known ? options_to_json(report, "tx_port") : json_null() },
		{ "pattern", json_text(known ? report_option(report, "pattern.name", 0) : NULL) },
		{ "frame_size", json_text(known ? report_option(report, "frame.size", 0) : NULL) },
	};

	return json_put(object, rows, sizeof(rows) / sizeof(rows[0]));
}

/* What was measured: null throughout where nothing ran. */
static int add_summary(json_t *object, const struct report *report)
{
	const struct gdrcap_summary *s = &report->summary;
	const bool run = report->has_summary, received = run && report_receives(report);
	const bool session = report->has_session, ordered = s->known & GDRCAP_HAS_LOSS;
	const bool judged = received && !report->image_count, numbered = received && ordered,
		   sent = run && (s->known & GDRCAP_HAS_TX_STALLED);
	const struct json_row rows[] = {
		{ "elapsed_seconds", json_number_if(run, s->elapsed_seconds) },
		{ "seconds", json_number_if(received, s->seconds) },
		{ "frames",
		  run ? frames_to_json(&s->total, received, judged, ordered) : json_null() },
		{ "filtered", json_count_if(received, s->total.filtered) },
		{ "bytes", json_count_if(received, s->total.bytes) },
		{ "lost_by", received ? lost_by_to_json(report) : json_null() },
		{ "tx_stalled", json_count_if(sent, s->tx_stalled) },
		{ "bits", judged ? bits_to_json(&s->total) : json_null() },
		{ "lock_lost", json_count_if(run && (s->known & GDRCAP_HAS_LOCK), s->lock_lost) },
		{ "stale", json_count_if(run && (s->known & GDRCAP_HAS_STALE), s->stale) },
		{ "pool_empty", received ? pool_empty_to_json(s) : json_null() },
		{ "cut", json_count_if(received, s->cut) },
		{ "queue_restarts", json_count_if(received, s->queue_restarts) },
		{ "restarts", json_count_if(numbered, s->total.restarts) },
		{ "untracked", json_count_if(numbered, s->untracked) },
		{ "conflicts", json_count_if(numbered, s->conflicts) },
		{ "sender", sent ? sender_to_json(report) : json_null() },
		{ "sending",
		  run && (s->known & GDRCAP_HAS_SENDING) ? sending_to_json(s) : json_null() },
		{ "saved", run && saves(report) ? saved_to_json(s) : json_null() },
		{ "clock", session ? json_text_if(s->clock) : json_null() },
		{ "rx_by", session ? json_text_if(s->rx_by) : json_null() },
		{ "tx_by", session ? json_text_if(s->tx_by) : json_null() },
		{ "match", match_to_json(report) },
		{ "steering", steering_to_json(report) },
		{ "ended_by_sender", received ? json_boolean(s->ended_by_sender) : json_null() },
		{ "rate", received ? json_pack("{s:o, s:o}", "gbps", json_number(s->gbps), "mpps",
					       json_number(s->mpps))
				   : json_null() },
		{ "memory", session ? memory_to_json(s) : json_null() },
		{ "blocks", json_count_if(session, s->blocks) },
		{ "cores", session ? cores_to_json(s) : json_null() },
	};

	return json_put(object, rows, sizeof(rows) / sizeof(rows[0]));
}

/* Parts of the totals, which may be many, and what does not change while a run goes on. */
static void leave_out(json_t *object)
{
	static const char *const keys[] = {
		"ports", "tx_ports", "pattern", "frame_size", "clock",
		"rx_by", "tx_by",    "match",	"memory",     "blocks",
		"cores", "queues",   "streams", "damage",     "stages",
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_del(object, keys[i]);
}

json_t *report_to_json(const struct report *report, int compact)
{
	json_t *object = json_object(), *errors = json_array(), *messages = json_array();
	int rc;

	for (uint32_t i = 0; i < report->error_count; i++)
		json_add(&errors, json_text(report->errors[i]));
	for (uint32_t i = compact ? report->messages_told : 0; i < report->message_count; i++)
		json_add(&messages, json_text(report->messages[i]));
	const struct json_row head[] = {
		{ "schema", json_string(REPORT_SCHEMA) },
		{ "version", json_text(report->version) },
		{ "command", json_text(report->command) },
		{ "run", run_to_json(&report->run) },
		{ "result", json_string(result_names[report->result]) },
	};
	const struct json_row tail[] = {
		{ "images", report_images_to_json(report, compact) },
		{ "queues", queues_to_json(report) },
		{ "streams", streams_to_json(report) },
		{ "damage", damage_to_json(report) },
		{ "stages", steps_to_json(report) },
		{ "errors", errors },
		{ "messages", messages },
	};

	rc = json_put(object, head, sizeof(head) / sizeof(head[0]));
	rc |= add_config(object, report);
	rc |= add_summary(object, report);
	rc |= json_put(object, tail, sizeof(tail) / sizeof(tail[0]));
	if (rc) {
		json_decref(object);
		return NULL;
	}
	if (compact)
		leave_out(object);
	return object;
}

int report_print_json(FILE *to, const struct report *report, int compact)
{
	return json_line_print(to, report_to_json(report, compact), REPORT_JSON_FLAGS);
}
