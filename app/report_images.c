/* SPDX-License-Identifier: BSD-3-Clause */
/* A run's images, for people. */
#include <inttypes.h>
#include <string.h>

#include "base/json_line.h"
#include "report_rows.h"

static const struct report_row image_rows[] = {
	{ "received", "frames.received", "frames", ROW_ALWAYS },
	{ "  placed", "frames.placed", "frames", ROW_ALWAYS },
	{ "  duplicate", "frames.duplicate", "frames: all that they brought was there",
	  ROW_ALWAYS },
	{ "  second leg", "frames.second_leg", "frames: all that they brought was there",
	  ROW_NOT_ZERO },
	{ "  conflict", "frames.conflict", "frames of another sender, or with other bytes",
	  ROW_NOT_ZERO },
	{ "  late", "frames.late", "frames of images that had been handed out", ROW_ALWAYS },
	{ "  no room", "frames.no_room", "frames of images that found no buffer", ROW_ALWAYS },
	{ "  misfit", "frames.misfit", "frames that are meant, and wrong", ROW_ALWAYS },
	{ "  filtered", "frames.filtered", "frames that are not meant", ROW_ALWAYS },
	{ "begun", "begun", "images", ROW_ALWAYS },
	{ "  complete", "complete", "images", ROW_ALWAYS },
	{ "  incomplete", "incomplete", "images", ROW_ALWAYS },
	{ "    by newer", "incomplete_by.newer", "images, closed since newer ones were open",
	  ROW_ALWAYS },
	{ "    by timeout", "incomplete_by.timeout", "images, of which nothing came any more",
	  ROW_ALWAYS },
	{ "    by the stop", "incomplete_by.stopped", "images", ROW_ALWAYS },
	{ "    cut by start", "cut.by_start", "images in whose middle the run began",
	  ROW_NOT_ZERO },
	{ "    cut by stop", "cut.by_stop", "images in whose middle the run ended", ROW_NOT_ZERO },
	{ "  dropped", "dropped", "images that nobody got", ROW_ALWAYS },
	{ "  open", "open", "images", ROW_NOT_ZERO },
	{ "skipped", "skipped", "images of which nothing came", ROW_ALWAYS },
	{ "restarts", "restarts", "times that numbers went on elsewhere", ROW_NOT_ZERO },
	{ "pieces expected", "pieces.expected", "pieces of closed images", ROW_ALWAYS },
	{ "  placed", "pieces.placed", "pieces", ROW_ALWAYS },
	{ "  lost", "pieces.lost", "pieces", ROW_ALWAYS },
	{ "bytes", "bytes", "bytes of closed images", ROW_ALWAYS },
};
static const struct report_row saved_rows[] = {
	{ "saved", "images", "images", ROW_ALWAYS },
	{ "  missed", "missed", "images that came faster than they could be written", ROW_ALWAYS },
};

static void print_streams(FILE *to, const json_t *streams)
{
	static const char *const paths[] = { "begun", "complete", "incomplete", "dropped",
					     "skipped" };
	const json_t *stream;
	size_t i;

	fprintf(to, "\n  %-20s %15s %15s %15s %15s %15s\n", "stream", "begun", "complete",
		"incomplete", "dropped", "skipped");
	json_array_foreach (streams, i, stream) {
		fprintf(to, "  %-20" PRIu64, json_count_at(stream, "id"));
		report_print_cells(to, stream, paths, 5);
	}
}

static void print_refused(FILE *to, const json_t *images)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(images, "refused"), i, one)
		fprintf(to, "  %s: %" PRIu64 " frames %s\n",
			json_is_true(json_object_get(one, "misfit")) ? "misfit" : "filtered",
			json_count_at(one, "frames"), json_text_at(one, "text"));
}

static void print_conflicts(FILE *to, const json_t *images)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(images, "conflicts"), i, one)
		fprintf(to,
			"  conflict: %" PRIu64 " frames of stream %" PRIu64
			"; the first, of another %s: image %" PRIu64
			" is from %s, the frame from %s\n",
			json_count_at(one, "frames"), json_count_at(one, "stream"),
			json_text_at(one, "other"), json_count_at(one, "number"),
			json_text_at(one, "first"), json_text_at(one, "second"));
}

void report_print_images(FILE *to, const struct report *report)
{
	const json_t *all = json_object_get(report->object, "images"), *images;
	json_t *saved;
	size_t i;

	json_array_foreach (all, i, images) {
		const json_t *streams = json_object_get(images, "streams");

		if (json_array_size(all) > 1)
			fprintf(to, "%s  %s:\n", i ? "\n" : "", json_text_at(images, "name"));
		report_print_rows(to, images, image_rows,
				  sizeof(image_rows) / sizeof(image_rows[0]));
		print_refused(to, images);
		print_conflicts(to, images);
		if (json_array_size(streams) > 1)
			print_streams(to, streams);
	}
	if (!report->saves_images)
		return;
	saved = json_pack("{s:o, s:o}", "images", json_count(report->images_saved), "missed",
			  json_count(report->images_missed));
	report_print_rows(to, saved, saved_rows, 2);
	json_decref(saved);
}

static void print_one(FILE *to, const json_t *image)
{
	const json_t *missing = json_object_get(image, "missing"), *range;
	const uint64_t ranges = json_count_at(image, "ranges");
	uint64_t pieces;
	size_t i;

	fprintf(to, "  stream %" PRIu64 " number %" PRIu64 " (%s): %" PRIu64,
		json_count_at(image, "stream"), json_count_at(image, "number"),
		json_text_at(image, "by"), json_count_at(image, "received"));
	if (json_get_count(image, "pieces", &pieces))
		fprintf(to, " of %" PRIu64 " pieces", pieces);
	else
		fprintf(to, " pieces (total unknown: no trailer or end mark came)");
	if (json_array_size(missing))
		fprintf(to, "; missing bytes");
	json_array_foreach (missing, i, range) {
		const uint64_t from = (uint64_t)json_integer_value(json_array_get(range, 0));
		const uint64_t bytes = (uint64_t)json_integer_value(json_array_get(range, 1));

		fprintf(to, "%s %" PRIu64 "-%" PRIu64, i ? "," : "", from, from + bytes - 1);
	}
	if (ranges > json_array_size(missing))
		fprintf(to, " and %" PRIu64 " ranges more",
			ranges - (uint64_t)json_array_size(missing));
	fprintf(to, "\n");
}

void report_print_incomplete(FILE *to, const struct report *report)
{
	const json_t *all = json_object_get(report->object, "images"), *images, *image;
	size_t i, n;

	json_array_foreach (all, i, images) {
		const json_t *first = json_object_get(images, "first_incomplete");

		if (json_array_size(first))
			fprintf(to, "\n  The first incomplete images of %s:\n",
				json_text_at(images, "name"));
		json_array_foreach (first, n, image)
			print_one(to, image);
	}
}
