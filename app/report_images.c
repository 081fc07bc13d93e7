/* SPDX-License-Identifier: BSD-3-Clause */
/* A run's images, as text and as JSON (docs/json.md). */
#include <inttypes.h>
#include <string.h>

#include "json_line.h"
#include "report_images.h"

static const char *end_name(uint32_t end)
{
	switch (end) {
	case GDRCAP_IMAGE_COMPLETE:
		return "complete";
	case GDRCAP_IMAGE_NEWER:
		return "newer";
	case GDRCAP_IMAGE_TIMEOUT:
		return "timeout";
	default:
		return "stopped";
	}
}

void report_images_total(const struct report *report, struct gdrcap_image_counts *total)
{
	memset(total, 0, sizeof(*total));
	for (uint32_t i = 0; i < report->image_count; i++) {
		const struct gdrcap_image_counts *counts = &report->images[i].counts;

		total->frames += counts->frames;
		total->no_room += counts->no_room;
		total->misfit += counts->misfit;
		total->begun += counts->begun;
		total->complete += counts->complete;
		total->incomplete += counts->incomplete;
		total->dropped += counts->dropped;
		total->skipped += counts->skipped;
		total->restarts += counts->restarts;
		total->pieces_lost += counts->pieces_lost;
		total->bytes += counts->bytes;
	}
}

/* ---- text ---- */

static void print_frames(FILE *to, const struct gdrcap_image_counts *counts)
{
	report_print_row(to, "received", counts->frames, "frames");
	report_print_row(to, "  placed", counts->placed, "frames");
	report_print_row(to, "  duplicate", counts->duplicate,
			 "frames: all that they brought was there");
	report_print_row(to, "  late", counts->late, "frames of images that had been handed out");
	report_print_row(to, "  no room", counts->no_room, "frames of images that found no buffer");
	report_print_row(to, "  misfit", counts->misfit, "frames that are meant, and wrong");
	report_print_row(to, "  filtered", counts->filtered, "frames that are not meant");
}

static void print_images(FILE *to, const struct gdrcap_image_counts *counts)
{
	report_print_row(to, "begun", counts->begun, "images");
	report_print_row(to, "  complete", counts->complete, "images");
	report_print_row(to, "  incomplete", counts->incomplete, "images");
	report_print_row(to, "    by newer", counts->newer,
			 "images, closed since newer ones were open");
	report_print_row(to, "    by timeout", counts->timeout,
			 "images, of which nothing came any more");
	report_print_row(to, "    by the stop", counts->stopped, "images");
	report_print_row(to, "  dropped", counts->dropped, "images that nobody got");
	if (counts->open)
		report_print_row(to, "  open", counts->open, "images");
	if (counts->has_skipped)
		report_print_row(to, "skipped", counts->skipped, "images of which nothing came");
	else
		fprintf(to, "  %-18s%27s\n", "skipped", "not known");
	if (counts->restarts)
		report_print_row(to, "restarts", counts->restarts,
				 "times that numbers went on elsewhere");
	report_print_row(to, "pieces expected", counts->pieces_expected, "pieces of closed images");
	report_print_row(to, "  placed", counts->pieces_placed, "pieces");
	report_print_row(to, "  lost", counts->pieces_lost, "pieces");
	report_print_row(to, "bytes", counts->bytes, "bytes of closed images");
}

static void print_streams(FILE *to, const struct report_images *images)
{
	char text[REPORT_TEXT_BYTES];

	fprintf(to, "\n  %-20s %15s %15s %15s %15s %15s\n", "stream", "begun", "complete",
		"incomplete", "dropped", "skipped");
	for (uint32_t s = 0; s < images->stream_count; s++) {
		const struct gdrcap_image_counts *counts = &images->streams[s].counts;
		const uint64_t cells[] = { counts->begun, counts->complete, counts->incomplete,
					   counts->dropped, counts->skipped };

		fprintf(to, "  %-20" PRIu64, images->streams[s].id);
		for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
			fprintf(to, " %15s", report_text_count(text, cells[i]));
		fprintf(to, "\n");
	}
}

void report_print_images(FILE *to, const struct report *report)
{
	for (uint32_t i = 0; i < report->image_count; i++) {
		const struct report_images *images = &report->images[i];

		if (report->image_count > 1)
			fprintf(to, "%s  %s:\n", i ? "\n" : "", images->name);
		print_frames(to, &images->counts);
		print_images(to, &images->counts);
		if (images->stream_count > 1)
			print_streams(to, images);
	}
	if (!report->saves_images)
		return;
	report_print_row(to, "saved", report->images_saved, "images");
	report_print_row(to, "  missed", report->images_missed,
			 "images that came faster than they could be written");
}

void report_print_incomplete(FILE *to, const struct report *report)
{
	for (uint32_t i = 0; i < report->image_count; i++) {
		const struct report_images *images = &report->images[i];

		if (images->incomplete_count)
			fprintf(to, "\n  The first incomplete images of %s:\n", images->name);
		for (uint32_t n = 0; n < images->incomplete_count; n++) {
			const struct gdrcap_incomplete *image = &images->incomplete[n];

			fprintf(to, "  stream %" PRIu64 " number %" PRIu64 " (%s): %" PRIu32,
				image->stream_id, image->number, end_name(image->end),
				image->received);
			if (image->pieces)
				fprintf(to, " of %" PRIu32 " pieces; missing bytes", image->pieces);
			else
				fprintf(to, " pieces, of nobody knows how many; missing bytes");
			for (uint32_t r = 0; r < image->ranges && r < GDRCAP_RANGES_MAX; r++)
				fprintf(to, "%s %" PRIu64 "-%" PRIu64, r ? "," : "",
					image->missing[r].from,
					image->missing[r].from + image->missing[r].bytes - 1);
			if (image->ranges > GDRCAP_RANGES_MAX)
				fprintf(to, " and %" PRIu32 " ranges more",
					image->ranges - GDRCAP_RANGES_MAX);
			fprintf(to, "\n");
		}
	}
}

/* ---- JSON ---- */

static json_t *counts_to_json(const struct gdrcap_image_counts *counts)
{
	json_t *frames = json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "received", json_count(counts->frames),
		"placed", json_count(counts->placed), "duplicate", json_count(counts->duplicate),
		"late", json_count(counts->late), "no_room", json_count(counts->no_room), "misfit",
		json_count(counts->misfit), "filtered", json_count(counts->filtered));
	json_t *by = json_pack("{s:o, s:o, s:o}", "newer", json_count(counts->newer), "timeout",
			       json_count(counts->timeout), "stopped", json_count(counts->stopped));
	json_t *pieces = json_pack(
		"{s:o, s:o, s:o}", "expected", json_count(counts->pieces_expected), "placed",
		json_count(counts->pieces_placed), "lost", json_count(counts->pieces_lost));

	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "frames", frames,
		"begun", json_count(counts->begun), "complete", json_count(counts->complete),
		"incomplete", json_count(counts->incomplete), "incomplete_by", by, "dropped",
		json_count(counts->dropped), "open", json_count(counts->open), "skipped",
		json_count_if(counts->has_skipped, counts->skipped), "restarts",
		json_count(counts->restarts), "pieces", pieces, "bytes", json_count(counts->bytes));
}

static json_t *incomplete_to_json(const struct gdrcap_incomplete *image)
{
	json_t *ranges = json_array();

	for (uint32_t r = 0; r < image->ranges && r < GDRCAP_RANGES_MAX; r++)
		if (json_array_append_new(ranges,
					  json_pack("[o, o]", json_count(image->missing[r].from),
						    json_count(image->missing[r].bytes))))
			return NULL;
	return json_pack("{s:o, s:o, s:s, s:o, s:I, s:I, s:o}", "number", json_count(image->number),
			 "stream", json_count(image->stream_id), "by", end_name(image->end),
			 "pieces", json_count_if(image->pieces != 0, image->pieces), "received",
			 (json_int_t)image->received, "ranges", (json_int_t)image->ranges,
			 "missing", ranges);
}

static json_t *description_to_json(const struct report *report, const struct report_images *images,
				   int compact)
{
	json_t *object = counts_to_json(&images->counts), *streams = json_array();
	json_t *incomplete = json_array();
	int rc = 0;

	for (uint32_t s = 0; s < images->stream_count; s++) {
		json_t *stream = counts_to_json(&images->streams[s].counts);

		rc |= json_object_set_new(stream, "id", json_count(images->streams[s].id));
		rc |= json_array_append_new(streams, stream);
	}
	for (uint32_t n = 0; n < images->incomplete_count; n++)
		rc |= json_array_append_new(incomplete, incomplete_to_json(&images->incomplete[n]));
	rc |= json_object_set_new(object, "name", json_text(images->name));
	rc |= json_object_set_new(object, "streams", streams);
	rc |= json_object_set_new(object, "first_incomplete", incomplete);
	rc |= json_object_set_new(object, "saved",
				  report->saves_images
					  ? json_pack("{s:o, s:o}", "images",
						      json_count(report->images_saved), "missed",
						      json_count(report->images_missed))
					  : json_null());
	if (compact) {
		json_object_del(object, "streams");
		json_object_del(object, "first_incomplete");
	}
	if (!rc)
		return object;
	json_decref(object);
	return NULL;
}

json_t *report_images_to_json(const struct report *report, int compact)
{
	json_t *array;

	if (report->image_count == 0)
		return json_null();
	array = json_array();
	for (uint32_t i = 0; i < report->image_count; i++)
		if (json_array_append_new(
			    array, description_to_json(report, &report->images[i], compact))) {
			json_decref(array);
			return NULL;
		}
	return array;
}
