/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON object of a run: schema gdrcap.summary/1, keys.def. */
#include <stdio.h>
#include <string.h>

#include "base/json_line.h"
#include "summary/results.h"

/* Keys are put into `object`, the later ones of a path into what is there by then. */
struct filler {
	json_t *object;
	uint32_t what; /* GDRCAP_JSON_* */
	int rc;	       /* not 0: no memory */
};

/* Takes `value` over. An object that is not known has no keys. */
static void fill(struct filler *filler, const char *path, json_t *value)
{
	const char *dot = strrchr(path, '.');
	json_t *to = filler->object;
	char parent[64];

	if (dot) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(dot - path), path);
		to = json_at(filler->object, parent);
	}
	if (json_is_object(to))
		filler->rc |= json_object_set_new(to, dot ? dot + 1 : path, value);
	else
		json_decref(value);
}

#define OBJECT(path, known, type, meaning)                                                         \
	fill(filler, path, (known) ? json_object() : json_null());
#define KEY(path, type, value, meaning) fill(filler, path, value);
#define SETUP(path, type, value, meaning)                                                          \
	if (filler->what & GDRCAP_JSON_SETUP)                                                      \
		fill(filler, path, value);
#define PART(path, type, value, meaning)                                                           \
	if (filler->what & GDRCAP_JSON_PARTS)                                                      \
		fill(filler, path, value);
#define NOTE(path, type, meaning)

/* NULL: no memory. */
static json_t *filled(const struct filler *filler)
{
	if (!filler->rc && filler->object)
		return filler->object;
	json_decref(filler->object);
	return NULL;
}

static const char *const memory_names[] = {
	[GDRCAP_MEMORY_AUTO] = "auto",
	[GDRCAP_MEMORY_DEVICE] = "device",
	[GDRCAP_MEMORY_PINNED] = "pinned",
	[GDRCAP_MEMORY_HOST] = "host",
};
/* What CPU threads play a GPU with is none. */
static const char *memory_name(const struct gdrcap_summary *summary)
{
	return summary->memory == GDRCAP_MEMORY_DEVICE && strcmp(summary->driver, "gpu_host") == 0
		       ? "emulated device"
		       : memory_names[summary->memory];
}

static const char *const step_names[] = {
	[GDRCAP_STEP_PASSED] = "passed",
	[GDRCAP_STEP_FAILED] = "failed",
	[GDRCAP_STEP_SKIPPED] = "skipped",
};
const char *const results_end_names[] = {
	[GDRCAP_IMAGE_COMPLETE] = "complete",
	[GDRCAP_IMAGE_NEWER] = "newer",
	[GDRCAP_IMAGE_TIMEOUT] = "timeout",
	[GDRCAP_IMAGE_STOPPED] = "stopped",
};

static const char *command_of(const struct results *r)
{
	if (!r->config)
		return NULL;
	if (!results_receive(r))
		return "replay";
	return results_option(r, "tx_port", 0) ? "loopback" : "capture";
}

static const char *result_name(const struct results *r, const struct reasons *reasons)
{
	return r->state == RESULTS_RUNNING ? "running" : reasons->count ? "fail" : "pass";
}

/* ---- values ---- */

static json_t *ratio_to_json(const struct gdrcap_counts *counts)
{
	return counts->bits_checked
		       ? json_real((double)counts->bits_wrong / (double)counts->bits_checked)
		       : json_null();
}

static json_t *bits_to_json(const struct gdrcap_counts *c)
{
	struct filler filler[1] = { { .object = json_object() } };

#define KEYS_BITS
#include "summary/keys.def"
#undef KEYS_BITS
	return filled(filler);
}

/* Which counts mean something; the others are null. `judged`: every frame was checked. */
static json_t *frames_to_json(const struct gdrcap_counts *c, bool received, bool judged,
			      bool ordered)
{
	struct filler filler[1] = { { .object = json_object() } };

#define KEYS_FRAMES
#include "summary/keys.def"
#undef KEYS_FRAMES
	return filled(filler);
}

/* Of receiving ports, or of sending ones. */
static json_t *causes_to_json(const struct results *r, bool sender)
{
	struct filler filler = { .object = json_object() };

	for (uint32_t i = 0; i < r->cause_count; i++) {
		const struct gdrcap_cause *cause = &r->causes[i];

		if ((cause->sender != 0) == sender)
			fill(&filler, cause->name, json_count_if(cause->known, cause->count));
	}
	return filled(&filler);
}

/* All values of an option. */
static json_t *options_to_json(const struct results *r, const char *key)
{
	json_t *array = r->config ? json_array() : json_null();
	const char *value;

	for (uint32_t i = 0; (value = results_option(r, key, i)); i++)
		json_add(&array, json_text(value));
	return array;
}

/* Rules, and who applies them. */
static json_t *match_to_json(const struct results *r)
{
	json_t *rules = r->config ? options_to_json(r, "match") : json_array();

	return json_pack("{s:o, s:o}", "rules", rules, "applied",
			 json_array_size(rules) == 0 ? json_string("none")
			 : r->state == RESULTS_NONE  ? json_null()
			 : r->summary.software_match ? json_string("software")
						     : json_string("card"));
}

/* The rules that the cards apply, be they configured or made for our own frames. */
static json_t *steering_to_json(const struct results *r)
{
	json_t *rules;

	if (r->rule_count == 0)
		return json_null();
	rules = json_array();
	for (uint32_t i = 0; i < r->rule_count; i++)
		json_add(&rules,
			 json_pack("{s:o, s:o}", "rule", json_text(r->rules[i].text), "frames",
				   json_count_if(r->rules[i].known, r->rules[i].frames)));
	return json_pack("{s:s, s:o}", "by", "card", "rules", rules);
}

static json_t *memory_to_json(const struct results *r)
{
	const struct gdrcap_summary *s = &r->summary;
	struct filler filler[1] = { { .object = r->state == RESULTS_NONE ? json_null()
									 : json_object() } };

#define KEYS_MEMORY
#include "summary/keys.def"
#undef KEYS_MEMORY
	return filled(filler);
}

static json_t *cores_to_json(const struct gdrcap_summary *summary)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < summary->core_count && i < GDRCAP_CORES_MAX; i++)
		json_add(&array, json_integer(summary->cores[i]));
	return array;
}

static bool saves(const struct results *r)
{
	return results_option(r, "save", 0) || results_option(r, "save_damaged", 0);
}

/* ---- arrays ---- */

static json_t *queues_to_json(const struct results *r)
{
	const bool judged = (r->summary.known & GDRCAP_HAS_VERDICT) != 0;
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->queue_count; i++) {
		const struct gdrcap_counts *c = &r->queues[i];
		struct filler filler[1] = { { .object = json_object() } };

#define KEYS_QUEUE
#include "summary/keys.def"
#undef KEYS_QUEUE
		json_add(&array, filled(filler));
	}
	return array;
}

/* [first, length], or of several [first, length, step, times]. */
static json_t *ranges_to_json(const struct results_stream *stream)
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

static json_t *streams_to_json(const struct results *r)
{
	/* Of a run that only sends: what it sent, and nothing of what came. */
	const bool received = results_receive(r);
	const bool ordered = received && (r->summary.known & GDRCAP_HAS_LOSS);
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->stream_count; i++) {
		const struct results_stream *stream = &r->streams[i];
		const struct gdrcap_counts *c = &stream->counts;
		struct filler filler[1] = { { .object = json_object() } };

#define KEYS_STREAM
#include "summary/keys.def"
#undef KEYS_STREAM
		if (r->has_ranges)
			fill(filler, "ranges", ranges_to_json(stream));
		json_add(&array, filled(filler));
	}
	return array;
}

static json_t *damage_to_json(const struct results *r)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->damage_count; i++) {
		const struct gdrcap_damage *damage = &r->damage[i];
		/* Only a payload was compared byte by byte; only a good header names its frame. */
		const bool compared = damage->wrong_bits != 0;
		/* Of a stale frame such a byte may be known: as it was seen, and as it came. */
		const bool placed = compared || (damage->kind && !strcmp(damage->kind, "stale") &&
						 damage->expected != damage->got);
		struct filler filler[1] = { { .object = json_object() } };

#define KEYS_DAMAGE
#include "summary/keys.def"
#undef KEYS_DAMAGE
		json_add(&array, filled(filler));
	}
	return array;
}

static json_t *step_causes_to_json(const struct gdrcap_step *step)
{
	json_t *array = json_array();

	for (uint32_t n = 0; step->causes && step->causes[n]; n++)
		json_add(&array, json_text(step->causes[n]));
	return array;
}

static json_t *stages_to_json(const struct results *r)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->step_count; i++) {
		const struct gdrcap_step *step = &r->steps[i];
		struct filler filler[1] = { { .object = json_object() } };

#define KEYS_STAGE
#include "summary/keys.def"
#undef KEYS_STAGE
		json_add(&array, filled(filler));
	}
	return array;
}

static json_t *errors_to_json(const struct reasons *reasons)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < reasons->count; i++)
		json_add(&array, json_text(reasons->text[i]));
	return array;
}

static json_t *messages_to_json(const struct results *r)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->message_count; i++)
		json_add(&array, json_text(r->messages[i]));
	return array;
}

/* ---- images ---- */

static void image_counts_fill(struct filler *filler, const struct gdrcap_image_counts *c)
{
#define KEYS_IMAGE
#include "summary/keys.def"
#undef KEYS_IMAGE
}

static json_t *image_streams_to_json(const struct results_images *images)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < images->stream_count; i++) {
		struct filler filler = { .object = json_object() };

		image_counts_fill(&filler, &images->streams[i].counts);
		fill(&filler, "id", json_count(images->streams[i].id));
		json_add(&array, filled(&filler));
	}
	return array;
}

static json_t *refused_to_json(const struct results_images *images)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < images->refused_count; i++) {
		const struct gdrcap_refused *refused = &images->refused[i];

		json_add(&array, json_pack("{s:s, s:o, s:b, s:s}", "reason", refused->reason,
					   "frames", json_count(refused->frames), "misfit",
					   refused->misfit, "text", refused->text));
	}
	return array;
}

static json_t *conflicts_to_json(const struct results_images *images)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < images->conflict_count; i++) {
		const struct gdrcap_conflict *conflict = &images->conflicts[i];

		json_add(&array, json_pack("{s:o, s:o, s:o, s:s, s:s, s:s}", "stream",
					   json_count(conflict->stream_id), "number",
					   json_count(conflict->number), "frames",
					   json_count(conflict->frames), "other",
					   conflict->other_bytes ? "bytes" : "sender", "first",
					   conflict->first, "second", conflict->second));
	}
	return array;
}

static json_t *incomplete_to_json(const struct results_images *images)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < images->incomplete_count; i++) {
		const struct gdrcap_incomplete *image = &images->incomplete[i];
		json_t *missing = json_array();

		for (uint32_t n = 0; n < image->ranges && n < GDRCAP_RANGES_MAX; n++)
			json_add(&missing, json_pack("[o, o]", json_count(image->missing[n].from),
						     json_count(image->missing[n].bytes)));
		json_add(&array,
			 json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "number",
				   json_count(image->number), "stream",
				   json_count(image->stream_id), "by",
				   results_end_names[image->end <= GDRCAP_IMAGE_STOPPED
							     ? image->end
							     : GDRCAP_IMAGE_STOPPED],
				   "pieces", json_count_if(image->pieces != 0, image->pieces),
				   "received", json_count(image->received), "ranges",
				   json_count(image->ranges), "missing", missing));
	}
	return array;
}

static json_t *images_to_json(const struct results *r, uint32_t what)
{
	json_t *array = r->image_count ? json_array() : json_null();

	for (uint32_t i = 0; i < r->image_count; i++) {
		const struct results_images *images = &r->images[i];
		struct filler filler[1] = { { .object = json_object(), .what = what } };

		image_counts_fill(filler, &images->counts);
#define KEYS_IMAGES
#include "summary/keys.def"
#undef KEYS_IMAGES
		json_add(&array, filled(filler));
	}
	return array;
}

json_t *results_to_json(const struct results *r, const struct reasons *reasons, uint32_t what)
{
	const struct gdrcap_summary *s = &r->summary;
	const struct gdrcap_counts *t = &s->total;
	const bool session = r->state != RESULTS_NONE;
	const bool run = r->state == RESULTS_RUNNING || r->state == RESULTS_OVER;
	const bool received = run && results_receive(r);
	const bool judged = received && (s->known & GDRCAP_HAS_VERDICT);
	const bool ordered = received && (s->known & GDRCAP_HAS_LOSS);
	const bool sent = run && (s->known & GDRCAP_HAS_TX_STALLED);
	struct filler filler[1] = { { .object = json_object(), .what = what } };

#define KEYS_RUN
#include "summary/keys.def"
#undef KEYS_RUN
	return filled(filler);
}
