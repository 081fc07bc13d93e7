/* SPDX-License-Identifier: BSD-3-Clause */
/* What a session says of its run, into the report. */
#include "run_loop_collect.h"

#include <string.h>
#include <time.h>

#include "signals.h"

#define RULES_NS 1200000000 /* a card tells its rules' counts once a second */

void run_collect(struct run *run, uint32_t what)
{
	struct report *report = &run->report;
	struct image_taker_counts taken = { 0 };

	if (run->taker)
		image_taker_counts(run->taker, &taken);
	report->images_saved = taken.saved;
	report->images_missed = taken.missed;
	report_collect(report, run->session, what);
}

void run_images_total(const struct run *run, struct gdrcap_image_counts *total)
{
	struct gdrcap_image_counts counts;

	memset(total, 0, sizeof(*total));
	for (uint32_t i = 0; !gdrcap_get_image_counts(run->session, i, &counts, sizeof(counts));
	     i++)
		results_images_add(total, &counts);
}

/* True when the rules' counts cannot become more: they are all that came to the queues. */
static bool rules_settled(const struct gdrcap_session *session)
{
	struct gdrcap_summary summary = { 0 };
	struct gdrcap_rule rule;
	uint64_t hits = 0;
	uint32_t n = 0;

	gdrcap_get_summary(session, &summary, sizeof(summary));
	for (; !gdrcap_get_rule(session, n, &rule, sizeof(rule)); n++) {
		if (!rule.known)
			return true;
		hits += rule.frames;
	}
	return n == 0 || hits >= summary.total.received + summary.nic_missed + summary.nic_error;
}

/* Waits until the rules' counts are whole, for a second and a little. */
static void settle_rules(const struct run *run)
{
	const struct timespec tick = { .tv_nsec = RUN_STEP_MS * 1000000L };
	const uint64_t until = clock_ns() + RULES_NS;

	while (!rules_settled(run->session) && clock_ns() < until)
		nanosleep(&tick, NULL);
}

void run_collect_end(struct run *run)
{
	struct report *report = &run->report;
	uint32_t n = 0;

	while (n < RESULTS_CAUSES_MAX &&
	       !gdrcap_get_cause(run->session, n, &report->causes[n], sizeof(report->causes[n])))
		n++;
	report->cause_count = n;
	settle_rules(run);
	run_collect(run, GDRCAP_JSON_ALL);
	report_judge(report, gdrcap_judge(run->session, NULL));
}
