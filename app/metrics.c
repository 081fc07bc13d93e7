/* SPDX-License-Identifier: BSD-3-Clause */
/* Prometheus' text format, version 0.0.4, of a run. */
#include "metrics.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
	const struct gdrcap_summary *summary = &report->summary;
	const char *pattern = report_option(report, "pattern.name", 0);

	if (report->has_session)
		put(writer, METRIC_INFO, 0, 1,
		    LABELS("version", report->version, "command", report->command, "pattern",
			   pattern ? pattern : "", "gpu", summary->gpu, "registration",
			   summary->registration, "rx_by", summary->rx_by, "tx_by",
			   summary->tx_by));
	put(writer, METRIC_RUNNING, 0, running != 0, NULL);
	if (report->result != REPORT_RUNNING)
		put(writer, METRIC_RUN_FAILED, 0, report->result == REPORT_FAIL, NULL);
	put(writer, METRIC_START_TIME, 0, writer->metrics->start_time, NULL);
}

static void put_arrivals(struct writer *writer, const struct report *report, uint64_t now_ns)
{
	struct metrics *metrics = writer->metrics;
	const struct gdrcap_counts *total = &report->summary.total;

	put(writer, METRIC_RECEIVED, 0, total->received, NULL);
	put(writer, METRIC_RECEIVED_BYTES, 0, total->bytes, NULL);
	if (total->received > metrics->received)
		metrics->received_ns = now_ns;
	metrics->received = total->received;
	if (metrics->received_ns)
		put_seconds(writer, METRIC_SINCE_FRAME,
			    (double)(now_ns - metrics->received_ns) * 1e-9);
}

/* Where every frame is checked. */
static void put_verdict(struct writer *writer, const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const struct gdrcap_counts *total = &summary->total;
	const bool ordered = (summary->known & GDRCAP_HAS_LOSS) != 0;

	put(writer, METRIC_FRAMES, 0, total->valid, LABELS("verdict", "valid"));
	put(writer, METRIC_FRAMES, 1, total->damaged, LABELS("verdict", "damaged"));
	if (ordered)
		put(writer, METRIC_FRAMES, 2, total->duplicate, LABELS("verdict", "duplicate"));
	put(writer, METRIC_FRAMES, 3, total->filtered, LABELS("verdict", "filtered"));
	if (ordered)
		put(writer, METRIC_REORDERED, 0, total->reordered, NULL);
	if (summary->known & GDRCAP_HAS_STALE)
		put(writer, METRIC_STALE, 0, summary->stale, NULL);
	put(writer, METRIC_CUT, 0, summary->cut, NULL);
	put(writer, METRIC_BITS_CHECKED, 0, total->bits_checked, NULL);
	put(writer, METRIC_BITS_WRONG, 0, total->bits_wrong, NULL);
}

static void put_loss(struct writer *writer, const struct report *report, int running)
{
	const struct gdrcap_summary *summary = &report->summary;
	const bool ordered = (summary->known & GDRCAP_HAS_LOSS) != 0 && !report->image_count;

	if (summary->known & GDRCAP_HAS_NIC_MISSED)
		put(writer, METRIC_LOST, 0, summary->nic_missed, LABELS("cause", "nic_missed"));
	if (summary->known & GDRCAP_HAS_NIC_ERROR)
		put(writer, METRIC_LOST, 1, summary->nic_error, LABELS("cause", "nic_error"));
	/* Before the end a frame that is missing may yet arrive. */
	if (ordered && !running)
		put(writer, METRIC_LOST, 2, summary->unexplained, LABELS("cause", "unexplained"));
	if (ordered) {
		put(writer, METRIC_IN_FLIGHT_OR_LOST, 0, summary->total.lost, NULL);
		put(writer, METRIC_UNTRACKED, 0, summary->untracked, NULL);
		put(writer, METRIC_CONFLICTS, 0, summary->conflicts, NULL);
	}
	if (summary->known & GDRCAP_HAS_LOCK)
		put(writer, METRIC_LOCK_LOST, 0, summary->lock_lost, NULL);
	if (ordered) {
		put(writer, METRIC_STREAMS, 0, summary->streams, NULL);
		put(writer, METRIC_STREAM_RESTARTS, 0, summary->total.restarts, NULL);
	}
}

static void put_causes(struct writer *writer, const struct report *report)
{
	for (uint32_t i = 0; i < report->cause_count; i++) {
		const struct gdrcap_cause *cause = &report->causes[i];

		if (cause->known)
			put(writer, METRIC_PORT_EVENTS, i, cause->count,
			    LABELS("side", cause->sender ? "sender" : "receiver", "event",
				   cause->name));
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
	const struct gdrcap_summary *summary = &report->summary;
	const bool save = report_option(report, "save", 0) != NULL;
	const bool damaged = report_option(report, "save_damaged", 0) != NULL;

	put(writer, METRIC_QUEUE_RESTARTS, 0, summary->queue_restarts, NULL);
	put(writer, METRIC_RING_IN_FLIGHT, 0, summary->in_flight, NULL);
	put(writer, METRIC_POOL_SLOTS, 0, summary->slots, NULL);
	put(writer, METRIC_POOL_EMPTY, 0, summary->pool_empty, NULL);
	put_seconds(writer, METRIC_POOL_EMPTY_SECONDS, summary->pool_empty_seconds);
	if (save)
		put(writer, METRIC_SAVED, 0, summary->saved, LABELS("file", "save"));
	if (damaged)
		put(writer, METRIC_SAVED, 1, summary->damaged_saved,
		    LABELS("file", "save_damaged"));
	if (save)
		put(writer, METRIC_SAVE_MISSED, 0, summary->save_missed, LABELS("file", "save"));
	if (damaged)
		put(writer, METRIC_SAVE_MISSED, 1, summary->damaged_missed,
		    LABELS("file", "save_damaged"));
}

static void put_sender(struct writer *writer, const struct gdrcap_summary *summary)
{
	put(writer, METRIC_SENT, 0, summary->total.sent, NULL);
	put(writer, METRIC_SENT_BYTES, 0, summary->tx_bytes, NULL);
	put(writer, METRIC_TX_STALLED, 0, summary->tx_stalled, NULL);
	put(writer, METRIC_TX_STARVED, 0, summary->tx_starved, NULL);
	if (summary->known & GDRCAP_HAS_TX_ERROR)
		put(writer, METRIC_TX_ERRORS, 0, summary->tx_error, NULL);
}

/* One label value of a metric of images, and where its count is. */
struct image_part {
	const char *value;
	size_t offset; /* in struct gdrcap_image_counts */
};

_Static_assert(REPORT_CAUSES_MAX <= METRICS_SERIES_MAX &&
		       GDRCAP_IMAGES_MAX * 6 <= METRICS_SERIES_MAX &&
		       2 * GDRCAP_PORTS_MAX <= METRICS_SERIES_MAX &&
		       METRICS_EVENT_KINDS <= METRICS_SERIES_MAX,
	       "each series has its place");

#define PART(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct gdrcap_image_counts, name)                                  \
	}

/* Of each description; they may have one name, so the number tells them apart. */
static void put_image_parts(struct writer *writer, const struct report *report, enum metric metric,
			    const char *name, const struct image_part *parts, uint32_t count)
{
	for (uint32_t i = 0; i < report->image_count; i++)
		for (uint32_t n = 0; n < count; n++) {
			const char *counts = (const char *)&report->images[i].counts;
			char number[16];
			uint64_t value;

			if (!strcmp(parts[n].value, "skipped") &&
			    !report->images[i].counts.has_skipped)
				continue;
			memcpy(&value, counts + parts[n].offset, sizeof(value));
			snprintf(number, sizeof(number), "%u", i);
			put(writer, metric, i * count + n, value,
			    LABELS("image", number, "name", report->images[i].name, name,
				   parts[n].value));
		}
}

static void put_images(struct writer *writer, const struct report *report)
{
	static const struct image_part ends[] = { PART(complete), PART(incomplete), PART(dropped),
						  PART(skipped) };
	static const struct image_part frames[] = {
		PART(placed),  PART(duplicate), PART(late),
		PART(no_room), PART(misfit),	PART(filtered)
	};
	static const struct image_part open = PART(open), bytes = PART(bytes),
				       lost = PART(pieces_lost);

	put_image_parts(writer, report, METRIC_IMAGES, "end", ends, 4);
	put_image_parts(writer, report, METRIC_IMAGES_OPEN, "", &open, 1);
	put_image_parts(writer, report, METRIC_IMAGE_FRAMES, "verdict", frames, 6);
	put_image_parts(writer, report, METRIC_IMAGE_BYTES, "", &bytes, 1);
	put_image_parts(writer, report, METRIC_IMAGE_PIECES_LOST, "", &lost, 1);
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
	if (report->has_summary && report_receives(report)) {
		put_arrivals(&writer, report, now_ns);
		if (!report->image_count)
			put_verdict(&writer, report);
		put_loss(&writer, report, running);
	}
	if (report->has_summary) {
		put_causes(&writer, report);
		put_events(&writer);
	}
	if (report->has_summary && report_receives(report))
		put_memory(&writer, report);
	if (report->has_summary && (report->summary.known & GDRCAP_HAS_TX_STALLED))
		put_sender(&writer, &report->summary);
	if (report->has_summary)
		put_images(&writer, report);
	failed = ferror(writer.to);
	if (fclose(writer.to) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
