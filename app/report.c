/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of a run: the library's results, and what the program has to add. Its text: report_text.c. */
#include "report.h"

#include <stdarg.h>
#include <string.h>

#include "base/json_line.h"

void report_error(struct report *report, enum report_status status, const char *format, ...)
{
	va_list arguments;

	report->result = REPORT_FAIL;
	if (report->status == REPORT_EXIT_OK)
		report->status = status;
	if (report->error_count == REPORT_ERRORS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(report->errors[report->error_count++], sizeof(report->errors[0]), format,
		  arguments);
	va_end(arguments);
}

const char *report_option(const struct report *report, const char *key, uint32_t index)
{
	return gdrcap_config_get(report->config, key, index);
}

bool report_receives(const struct report *report)
{
	return report_option(report, "port", 0) != NULL;
}

bool report_has_session(const struct report *report)
{
	return json_is_object(json_object_get(report->object, "memory"));
}

bool report_ran(const struct report *report)
{
	return json_is_object(json_object_get(report->object, "frames"));
}

uint32_t report_images(const struct report *report)
{
	return (uint32_t)json_array_size(json_object_get(report->object, "images"));
}

void report_collect(struct report *report, const struct gdrcap_session *session, uint32_t what)
{
	char *text = NULL;

	json_decref(report->object);
	report->object = NULL;
	if (session ? gdrcap_get_json(session, what, &text)
		    : gdrcap_config_get_json(report->config, &text))
		return;
	report->object = json_loads(text, 0, NULL);
	gdrcap_free_json(text);
}

void report_judge(struct report *report, int failed)
{
	char reason[RESULTS_REASON_BYTES];

	if (report->images_missed)
		report_error(report, REPORT_EXIT_FRAMES, "%s",
			     reason_count(reason, report->images_missed, "image", "not saved"));
	/* What happened to frames and images outranks how the run ended. */
	if (failed == GDRCAP_FAILED_FRAMES || report->images_missed)
		report->status = REPORT_EXIT_FRAMES;
	else if (failed && report->status == REPORT_EXIT_OK)
		report->status = REPORT_EXIT_NOT_RUN;
	report->result = failed || report->error_count ? REPORT_FAIL : REPORT_PASS;
}

void report_free(struct report *report)
{
	json_decref(report->object);
	report->object = NULL;
}

json_t *report_errors(const struct report *report)
{
	const json_t *theirs = json_object_get(report->object, "errors");
	json_t *errors = json_array(), *error;
	size_t n;

	/* What kept it from beginning is the program's to say, if it does. */
	if (report_ran(report) || !report->error_count)
		json_array_foreach (theirs, n, error)
			json_add(&errors, json_incref(error));
	for (uint32_t i = 0; i < report->error_count; i++)
		json_add(&errors, json_text(report->errors[i]));
	return errors;
}

/* ---- JSON ---- */

/* The messages that were not told yet, the program's own behind them. */
static json_t *messages(const struct report *report, bool compact)
{
	const json_t *theirs = json_object_get(report->object, "messages");
	json_t *array = json_array(), *message;
	size_t n;

	json_array_foreach (theirs, n, message)
		if (!compact || n >= report->messages_told)
			json_add(&array, json_incref(message));
	return array;
}

/* Of each description the same, as they share a file. */
static json_t *images(const struct report *report)
{
	json_t *array = json_deep_copy(json_object_get(report->object, "images")), *image;
	size_t n;

	if (report->saves_images)
		json_array_foreach (array, n, image)
			json_object_set_new(image, "saved",
					    json_pack("{s:o, s:o}", "images",
						      json_count(report->images_saved), "missed",
						      json_count(report->images_missed)));
	return array;
}

json_t *report_to_json(const struct report *report, bool compact)
{
	static const char *const results[] = {
		[REPORT_RUNNING] = "running",
		[REPORT_PASS] = "pass",
		[REPORT_FAIL] = "fail",
	};
	json_t *object = json_copy(report->object);
	const struct json_row rows[] = {
		{ "command", json_text(report->command) },
		{ "result", json_string(results[report->result]) },
		{ "images", images(report) },
		{ "errors", report_errors(report) },
		{ "messages", messages(report, compact) },
	};

	if (json_put(object, rows, sizeof(rows) / sizeof(rows[0])) == 0)
		return object;
	json_decref(object);
	return NULL;
}

int report_print_json(FILE *to, const struct report *report, bool compact)
{
	return json_line_print(to, report_to_json(report, compact), RESULTS_JSON_FLAGS);
}
