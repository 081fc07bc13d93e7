/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON object of many runs: schema gdrcap.merge/1, docs/merge.md. */
#include <inttypes.h>

#include "gdrcap.h"
#include "base/json_line.h"
#include "merge/merge.h"

static const char *const state_names[] = {
	[MERGE_READ] = "read",
	[MERGE_UNKNOWN] = "unknown",
	[MERGE_REFUSED] = "refused",
};

static json_t *count_to_json(struct merge_count count)
{
	return json_count_if(count.known, count.count);
}

static json_t *frames_to_json(const struct merge_counts *counts)
{
	const struct merge_count *of = counts->of;

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sent", count_to_json(of[MERGE_SENT]),
		"received", count_to_json(of[MERGE_RECEIVED]), "valid",
		count_to_json(of[MERGE_VALID]), "damaged", count_to_json(of[MERGE_DAMAGED]), "lost",
		count_to_json(of[MERGE_LOST]), "duplicate", count_to_json(of[MERGE_DUPLICATE]),
		"reordered", count_to_json(of[MERGE_REORDERED]));
}

static json_t *run_to_json(const struct merge_input *input)
{
	if (!input->has_run)
		return json_null();
	return json_pack("{s:o, s:I, s:o}", "host", json_text_if(input->run.host), "pid",
			 (json_int_t)input->run.pid, "started_ns",
			 json_count(input->run.started_ns));
}

static json_t *file_to_json(const struct merge_input *input)
{
	const bool read = input->state == MERGE_READ;
	const char *role = input->sends && input->receives ? "both"
			   : input->sends		   ? "sender"
							   : "receiver";

	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "file", json_text(input->file),
			 "state", state_names[input->state], "why",
			 read ? json_null() : json_text(input->why), "run", run_to_json(input),
			 "role", read ? json_string(role) : json_null(), "result",
			 read ? json_string(input->failed ? "fail" : "pass") : json_null(),
			 "frames", read ? frames_to_json(&input->total) : json_null(), "filtered",
			 read ? count_to_json(input->total.of[MERGE_FILTERED]) : json_null());
}

static json_t *texts_to_json(const char (*texts)[MERGE_REASON_BYTES], uint32_t count)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < count && i < MERGE_REASONS_MAX; i++)
		json_add(&array, json_text(texts[i]));
	return array;
}

static json_t *merge_to_json(const struct merge *merge)
{
	json_t *files = json_array(), *streams = json_array();

	for (uint32_t i = 0; i < merge->input_count; i++)
		json_add(&files, file_to_json(&merge->inputs[i]));
	for (uint32_t i = 0; i < merge->stream_count; i++) {
		const struct merge_joined *joined = &merge->streams[i];

		json_add(&streams,
			 json_pack("{s:I, s:I, s:I, s:o}", "stream", (json_int_t)joined->id,
				   "senders", (json_int_t)joined->senders, "receivers",
				   (json_int_t)joined->receivers, "frames",
				   frames_to_json(&joined->counts)));
	}
	return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema",
			 MERGE_SCHEMA, "version", gdrcap_version(), "result",
			 merge->status == REPORT_EXIT_OK ? "pass" : "fail", "frames",
			 frames_to_json(&merge->total), "filtered",
			 count_to_json(merge->total.of[MERGE_FILTERED]), "at_least",
			 frames_to_json(&merge->least), "unsettled_streams",
			 json_count(merge->unsettled), "files", files, "streams", streams, "errors",
			 texts_to_json(merge->errors, merge->error_count), "messages",
			 texts_to_json(merge->messages, merge->message_count));
}

int merge_print_json(FILE *to, const struct merge *merge)
{
	return json_line_print(to, merge_to_json(merge), 0);
}
