/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session says of its run, into the report. */
#include "run_loop_collect.h"

#include <time.h>

#include "report_images.h"
#include "signals.h"

#define RULES_NS 1200000000 /* a card tells its rules' counts once a second */

/* What the ports say; their drivers ask the cards, so not for every live line. */
static void run_collect_ports(struct run *run)
{
	struct report *report = &run->report;
	uint32_t n;

	for (n = 0; n < REPORT_CAUSES_MAX; n++)
		if (gdrcap_get_cause(run->session, n, &report->causes[n],
				     sizeof(report->causes[n])))
			break;
	report->cause_count = n;
	for (n = 0; n < GDRCAP_MATCH_MAX; n++)
		if (gdrcap_get_rule(run->session, n, &report->rules[n], sizeof(report->rules[n])))
			break;
	report->rule_count = n;
}

/* True when the rules' counts cannot become more: they are all that came to the queues. */
static int rules_settled(const struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const uint64_t came = summary->total.received + summary->nic_missed + summary->nic_error;
	uint64_t hits = 0;

	for (uint32_t i = 0; i < report->rule_count; i++) {
		if (!report->rules[i].known)
			return 1;
		hits += report->rules[i].frames;
	}
	return report->rule_count == 0 || hits >= came;
}

void run_settle_rules(struct run *run)
{
	const struct timespec tick = { .tv_nsec = RUN_STEP_MS * 1000000L };
	const uint64_t until = clock_ns() + RULES_NS;

	while (!rules_settled(&run->report) && clock_ns() < until) {
		struct report *report = &run->report;

		nanosleep(&tick, NULL);
		for (uint32_t n = 0; n < report->rule_count; n++)
			gdrcap_get_rule(run->session, n, &report->rules[n],
					sizeof(report->rules[n]));
	}
}

void run_collect_images(struct run *run)
{
	struct report *report = &run->report;
	struct image_taker_counts taken = { 0 };

	for (uint32_t i = 0; i < report->image_count; i++) {
		struct report_images *images = &report->images[i];
		uint32_t n;

		gdrcap_get_image_counts(run->session, i, &images->counts, sizeof(images->counts));
		for (n = 0; n < GDRCAP_IMAGE_STREAMS_MAX; n++)
			if (gdrcap_get_image_stream(run->session, i, n, &images->streams[n].id,
						    &images->streams[n].counts,
						    sizeof(images->streams[n].counts)))
				break;
		images->stream_count = n;
		for (n = 0; n < GDRCAP_INCOMPLETE_MAX; n++)
			if (gdrcap_get_incomplete(run->session, i, n, &images->incomplete[n],
						  sizeof(images->incomplete[n])))
				break;
		images->incomplete_count = n;
	}
	if (run->taker)
		image_taker_counts(run->taker, &taken);
	report->images_saved = taken.saved;
	report->images_missed = taken.missed;
}

void run_collect_totals(struct run *run)
{
	gdrcap_get_summary(run->session, &run->report.summary, sizeof(run->report.summary));
	run->report.has_summary = 1;
	run_collect_ports(run);
	run_collect_images(run);
}

void run_collect_streams(struct run *run)
{
	struct report *report = &run->report;
	uint32_t n;

	for (n = 0; n < GDRCAP_STREAMS_MAX; n++)
		if (gdrcap_get_stream_counts(run->session, n, &report->streams[n].stream,
					     &report->streams[n].counts,
					     sizeof(report->streams[n].counts)))
			break;
	report->stream_count = n;
}

void run_collect(struct run *run)
{
	struct report *report = &run->report;
	struct gdrcap_session *session = run->session;
	uint32_t n;

	run_collect_totals(run);
	run_collect_streams(run);
	for (n = 0; n < GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX; n++)
		if (gdrcap_get_queue_counts(session, n, &report->queues[n],
					    sizeof(report->queues[n])))
			break;
	report->queue_count = n;
	for (n = 0; n < GDRCAP_DAMAGE_MAX; n++)
		if (gdrcap_get_damage(session, n, &report->damage[n], sizeof(report->damage[n])))
			break;
	report->damage_count = n;
	for (n = 0; n < REPORT_MESSAGES_MAX; n++) {
		report->messages[n] = gdrcap_get_message(session, n);
		if (!report->messages[n])
			break;
	}
	report->message_count = n;
}
