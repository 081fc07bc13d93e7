/* SPDX-License-Identifier: BSD-3-Clause */
/* Prometheus' text format, version 0.0.4, of a run. */
#include "metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_line.h"

struct writer {
	FILE *to;
	struct metrics *metrics;
	enum metric last; /* whose HELP and TYPE stand above; METRIC_COUNT: none */
};

/* Label values are UTF-8, with three escapes. What a file's or a device's name has besides ASCII need not be. */
static void label(struct writer *writer, const char *name, const char *value)
{
	fprintf(writer->to, "%s=\"", name);
	for (; *value; value++)
		if (*value == '\\' || *value == '"')
			fprintf(writer->to, "\\%c", *value);
		else if (*value == '\n')
			fputs("\\n", writer->to);
		else
			fputc((unsigned char)*value >= 0x80 ? '?' : *value, writer->to);
	fputc('"', writer->to);
}

/* Name, value, ..., NULL. */
#define LABELS(...)                                                                                \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

/* The name and its labels, NULL: none. A label without name or value is left out. */
static void head(struct writer *writer, enum metric metric, const char *const *labels)
{
	const struct metrics_row *row = &metrics_rows[metric];
	char before = '{';

	if (writer->last != metric)
		fprintf(writer->to, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
			row->counter ? "counter" : "gauge");
	writer->last = metric;
	fputs(row->name, writer->to);
	for (uint32_t i = 0; labels && labels[i]; i += 2) {
		if (!labels[i][0] || !labels[i + 1][0])
			continue;
		fputc(before, writer->to);
		label(writer, labels[i], labels[i + 1]);
		before = ',';
	}
	fputs(before == ',' ? "} " : " ", writer->to);
}

/* Series `index` of a metric. */
static void put(struct writer *writer, enum metric metric, uint32_t index, uint64_t value,
		const char *const *labels)
{
	uint64_t *highest = &writer->metrics->highest[metric][index];

	if (metrics_rows[metric].counter && value < *highest)
		value = *highest;
	*highest = value;
	head(writer, metric, labels);
	fprintf(writer->to, "%" PRIu64 "\n", value);
}

static void put_seconds(struct writer *writer, enum metric metric, double value)
{
	double *highest = &writer->metrics->highest_seconds[metric];

	if (metrics_rows[metric].counter && value < *highest)
		value = *highest;
	*highest = value;
	head(writer, metric, NULL);
	fprintf(writer->to, "%.6f\n", value);
}

static void put_run(struct writer *writer, const struct report *report, int running)
{
	const json_t *object = report->object;
	const char *pattern = report_option(report, "pattern.name", 0);

	if (report_has_session(report))
		put(writer, METRIC_INFO, 0, 1,
		    LABELS("version", json_text_at(object, "version"), "command", report->command,
			   "pattern", pattern ? pattern : "", "gpu",
			   json_text_at(object, "memory.gpu"), "registration",
			   json_text_at(object, "memory.registration"), "rx_by",
			   json_text_at(object, "rx_by"), "tx_by", json_text_at(object, "tx_by")));
	put(writer, METRIC_RUNNING, 0, running != 0, NULL);
	if (report->result != REPORT_RUNNING)
		put(writer, METRIC_RUN_FAILED, 0, report->result == REPORT_FAIL, NULL);
	put(writer, METRIC_START_TIME, 0, writer->metrics->start_time, NULL);
}

/* A count of the JSON object that is a series as it is, where it is known. */
struct series {
	enum metric metric;
	uint32_t index;
	const char *path, *label, *value; /* label: NULL: it has none */
};

static void put_series(struct writer *writer, const json_t *object, const struct series *series,
		       size_t count)
{
	uint64_t value;

	for (; count--; series++)
		if (json_get_count(object, series->path, &value))
			put(writer, series->metric, series->index, value,
			    series->label ? LABELS(series->label, series->value) : NULL);
}

#define PUT(writer, object, series)                                                                \
	put_series(writer, object, series, sizeof(series) / sizeof((series)[0]))

static void put_arrivals(struct writer *writer, const struct report *report, uint64_t now_ns)
{
	static const struct series series[] = {
		{ .metric = METRIC_RECEIVED, .path = "frames.received" },
		{ .metric = METRIC_RECEIVED_BYTES, .path = "bytes" },
	};
	const uint64_t received = json_count_at(report->object, "frames.received");
	struct metrics *metrics = writer->metrics;

	PUT(writer, report->object, series);
	if (received > metrics->received)
		metrics->received_ns = now_ns;
	metrics->received = received;
	if (metrics->received_ns)
		put_seconds(writer, METRIC_SINCE_FRAME,
			    (double)(now_ns - metrics->received_ns) * 1e-9);
}

/* Where every frame is checked. */
static void put_verdict(struct writer *writer, const struct report *report)
{
	static const struct series series[] = {
		{ METRIC_FRAMES, 0, "frames.valid", "verdict", "valid" },
		{ METRIC_FRAMES, 1, "frames.damaged", "verdict", "damaged" },
		{ METRIC_FRAMES, 2, "frames.duplicate", "verdict", "duplicate" },
		{ METRIC_FRAMES, 3, "filtered", "verdict", "filtered" },
		{ .metric = METRIC_REORDERED, .path = "frames.reordered" },
		{ .metric = METRIC_STALE, .path = "stale" },
		{ .metric = METRIC_CUT, .path = "cut" },
		{ .metric = METRIC_BITS_CHECKED, .path = "bits.checked" },
		{ .metric = METRIC_BITS_WRONG, .path = "bits.wrong" },
	};

	if (json_is_integer(json_at(report->object, "frames.valid")))
		PUT(writer, report->object, series);
}

static void put_loss(struct writer *writer, const struct report *report, int running)
{
	static const struct series lost[] = {
		{ METRIC_LOST, 0, "lost_by.nic_missed", "cause", "nic_missed" },
		{ METRIC_LOST, 1, "lost_by.nic_error", "cause", "nic_error" },
		{ METRIC_LOST, 2, "lost_by.unexplained", "cause", "unexplained" },
	};
	static const struct series series[] = {
		{ .metric = METRIC_IN_FLIGHT_OR_LOST, .path = "frames.lost" },
		{ .metric = METRIC_UNTRACKED, .path = "untracked" },
		{ .metric = METRIC_CONFLICTS, .path = "conflicts" },
		{ .metric = METRIC_LOCK_LOST, .path = "lock_lost" },
		{ .metric = METRIC_STREAMS, .path = "streams_seen" },
		{ .metric = METRIC_STREAM_RESTARTS, .path = "restarts" },
	};

	/* Before the end a frame that is missing may yet arrive. */
	put_series(writer, report->object, lost, running ? 2 : 3);
	PUT(writer, report->object, series);
}

static void put_causes(struct writer *writer, const struct report *report)
{
	static const struct {
		const char *path, *side;
	} sides[] = { { "lost_by.causes", "receiver" }, { "sender.causes", "sender" } };
	uint32_t index = 0;

	for (int s = 0; s < 2; s++) {
		const json_t *causes = json_at(report->object, sides[s].path);
		json_t *count;
		const char *name;

		json_object_foreach ((json_t *)(uintptr_t)causes, name, count) {
			if (!json_is_null(count) && index < METRICS_SERIES_MAX)
				put(writer, METRIC_PORT_EVENTS, index, json_count_at(causes, name),
				    LABELS("side", sides[s].side, "event", name));
			index++;
		}
	}
}

static void put_events(struct writer *writer)
{
	static const char *const names[METRICS_EVENT_KINDS] = {
		[GDRCAP_EVENT_LINK_DOWN] = "link_down",
		[GDRCAP_EVENT_LINK_UP] = "link_up",
		[GDRCAP_EVENT_PORT_GONE] = "port_gone",
		[GDRCAP_EVENT_NO_SLOTS] = "no_slots",
		[GDRCAP_EVENT_QUEUE_RESTARTED] = "queue_restarted",
		[GDRCAP_EVENT_CONSUMER_LATE] = "consumer_late",
		[GDRCAP_EVENT_CONSUMER_MOVES] = "consumer_moves",
		[GDRCAP_EVENT_SAVER_BEHIND] = "saver_behind",
	};
	const struct metrics *metrics = writer->metrics;

	for (uint32_t sends = 0; sends < 2; sends++)
		for (uint32_t p = 0; p < GDRCAP_PORTS_MAX; p++) {
			char port[16];

			snprintf(port, sizeof(port), "%u", p);
			if (metrics->link[sends][p] != METRICS_LINK_UNKNOWN)
				put(writer, METRIC_LINK_UP, sends * GDRCAP_PORTS_MAX + p,
				    metrics->link[sends][p] == METRICS_LINK_UP,
				    LABELS("side", sends ? "sender" : "receiver", "port", port));
		}
	for (uint32_t kind = 0; kind < METRICS_EVENT_KINDS; kind++)
		if (names[kind])
			put(writer, METRIC_EVENTS, kind, metrics->events[kind],
			    LABELS("kind", names[kind]));
	/* END is counted by none. */
	put(writer, METRIC_EVENTS, GDRCAP_EVENT_END, metrics->events_dropped,
	    LABELS("kind", "not_told"));
}

static void put_memory(struct writer *writer, const struct report *report)
{
	static const struct series series[] = {
		{ .metric = METRIC_QUEUE_RESTARTS, .path = "queue_restarts" },
		{ .metric = METRIC_RING_IN_FLIGHT, .path = "in_flight" },
		{ .metric = METRIC_POOL_SLOTS, .path = "memory.slots" },
		{ .metric = METRIC_POOL_EMPTY, .path = "pool_empty.times" },
	};
	static const struct series saved[] = {
		{ METRIC_SAVED, 0, "saved.frames", "file", "save" },
		{ METRIC_SAVED, 1, "saved.damaged_frames", "file", "save_damaged" },
		{ METRIC_SAVE_MISSED, 0, "saved.missed", "file", "save" },
		{ METRIC_SAVE_MISSED, 1, "saved.damaged_missed", "file", "save_damaged" },
	};

	PUT(writer, report->object, series);
	put_seconds(writer, METRIC_POOL_EMPTY_SECONDS,
		    json_number_at(report->object, "pool_empty.seconds"));
	for (int i = 0; i < 4; i++)
		if (report_option(report, saved[i].value, 0))
			put_series(writer, report->object, &saved[i], 1);
}

static void put_sender(struct writer *writer, const struct report *report)
{
	static const struct series series[] = {
		{ .metric = METRIC_SENT, .path = "sender.frames" },
		{ .metric = METRIC_SENT_BYTES, .path = "sender.bytes" },
		{ .metric = METRIC_TX_STALLED, .path = "tx_stalled" },
		{ .metric = METRIC_TX_STARVED, .path = "sender.starved" },
		{ .metric = METRIC_TX_ERRORS, .path = "sender.errors" },
	};

	if (json_is_object(json_object_get(report->object, "sender")))
		PUT(writer, report->object, series);
}

_Static_assert(RESULTS_CAUSES_MAX <= METRICS_SERIES_MAX &&
		       GDRCAP_IMAGES_MAX * 6 <= METRICS_SERIES_MAX &&
		       2 * GDRCAP_PORTS_MAX <= METRICS_SERIES_MAX &&
		       METRICS_EVENT_KINDS <= METRICS_SERIES_MAX,
	       "each series has its place");

/* Of each description; they may have one name, so the number tells them apart. */
static void put_image_parts(struct writer *writer, const struct report *report,
			    const struct series *series, size_t count)
{
	const json_t *all = json_object_get(report->object, "images"), *images;
	size_t i;

	json_array_foreach (all, i, images)
		for (uint32_t n = 0; n < count; n++) {
			char number[24];
			uint64_t value;

			if (!json_get_count(images, series[n].path, &value))
				continue;
			snprintf(number, sizeof(number), "%zu", i);
			put(writer, series[n].metric, (uint32_t)(i * count + n), value,
			    LABELS("image", number, "name", json_text_at(images, "name"),
				   series[n].label, series[n].value));
		}
}

static void put_images(struct writer *writer, const struct report *report)
{
	static const struct series ends[] = {
		{ METRIC_IMAGES, 0, "complete", "end", "complete" },
		{ METRIC_IMAGES, 0, "incomplete", "end", "incomplete" },
		{ METRIC_IMAGES, 0, "dropped", "end", "dropped" },
		{ METRIC_IMAGES, 0, "skipped", "end", "skipped" },
	};
	static const struct series frames[] = {
		{ METRIC_IMAGE_FRAMES, 0, "frames.placed", "verdict", "placed" },
		{ METRIC_IMAGE_FRAMES, 0, "frames.duplicate", "verdict", "duplicate" },
		{ METRIC_IMAGE_FRAMES, 0, "frames.second_leg", "verdict", "second_leg" },
		{ METRIC_IMAGE_FRAMES, 0, "frames.conflict", "verdict", "conflict" },
		{ METRIC_IMAGE_FRAMES, 0, "frames.late", "verdict", "late" },
		{ METRIC_IMAGE_FRAMES, 0, "frames.no_room", "verdict", "no_room" },
		{ METRIC_IMAGE_FRAMES, 0, "frames.misfit", "verdict", "misfit" },
		{ METRIC_IMAGE_FRAMES, 0, "frames.filtered", "verdict", "filtered" },
	};
	static const struct series open = { METRIC_IMAGES_OPEN, 0, "open", "", "" };
	static const struct series bytes = { METRIC_IMAGE_BYTES, 0, "bytes", "", "" };
	static const struct series lost = { METRIC_IMAGE_PIECES_LOST, 0, "pieces.lost", "", "" };

	put_image_parts(writer, report, ends, 4);
	put_image_parts(writer, report, &open, 1);
	put_image_parts(writer, report, frames, 8);
	put_image_parts(writer, report, &bytes, 1);
	put_image_parts(writer, report, &lost, 1);
	if (report->saves_images) {
		put(writer, METRIC_IMAGES_SAVED, 0, report->images_saved, NULL);
		put(writer, METRIC_IMAGES_MISSED, 0, report->images_missed, NULL);
	}
}

void metrics_event(struct metrics *metrics, const struct gdrcap_event *event)
{
	const bool link =
		event->kind == GDRCAP_EVENT_LINK_DOWN || event->kind == GDRCAP_EVENT_LINK_UP;

	metrics->events_dropped += event->dropped;
	if (event->kind < METRICS_EVENT_KINDS)
		metrics->events[event->kind]++;
	if (link && event->port >= 0 && event->port < GDRCAP_PORTS_MAX)
		metrics->link[event->sends == 1][event->port] =
			event->kind == GDRCAP_EVENT_LINK_UP ? METRICS_LINK_UP : METRICS_LINK_DOWN;
}

char *metrics_text(struct metrics *metrics, const struct report *report, int running,
		   uint64_t now_ns, size_t *bytes)
{
	struct writer writer = { .metrics = metrics, .last = METRIC_COUNT };
	char *text = NULL;
	int failed;

	writer.to = open_memstream(&text, bytes);
	if (!writer.to)
		return NULL;
	put_run(&writer, report, running);
	if (report_ran(report) && report_receives(report)) {
		put_arrivals(&writer, report, now_ns);
		put_verdict(&writer, report);
		put_loss(&writer, report, running);
	}
	if (report_ran(report)) {
		put_causes(&writer, report);
		put_events(&writer);
	}
	if (report_ran(report) && report_receives(report))
		put_memory(&writer, report);
	if (report_ran(report)) {
		put_sender(&writer, report);
		put_images(&writer, report);
	}
	failed = ferror(writer.to);
	if (fclose(writer.to) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
