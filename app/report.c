/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict of a run. Its JSON object: report_json.c; its text: report_text.c. */
#include <stdarg.h>
#include <string.h>

#include "report_images.h"

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

int report_receives(const struct report *report)
{
	return report_option(report, "port", 0) != NULL;
}

int report_damage_is_late(const struct gdrcap_damage *damage)
{
	return damage->kind && !strcmp(damage->kind, "stale") && damage->expected != damage->got;
}

const char *report_count_reason(char *to, uint64_t count, const char *noun, const char *what)
{
	char text[REPORT_TEXT_BYTES];

	snprintf(to, REPORT_REASON_BYTES, "%s %s%s %s", report_text_count(text, count), noun,
		 report_plural(count), what);
	return to;
}

static void judge_noun(struct report *report, uint64_t count, const char *noun, const char *what)
{
	char reason[REPORT_REASON_BYTES];

	if (count)
		report_error(report, REPORT_EXIT_FRAMES, "%s",
			     report_count_reason(reason, count, noun, what));
}

static void judge_count(struct report *report, uint64_t count, const char *what)
{
	judge_noun(report, count, "frame", what);
}

/* Frames that should have been sent, or be in a file, and were not or are not. */
static void judge_missing(struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const uint64_t unsaved = summary->save_missed + summary->damaged_missed;
	char missing[REPORT_TEXT_BYTES], asked[REPORT_TEXT_BYTES];

	/* What happened to frames outranks how the run ended. */
	if (summary->tx_missing || unsaved || summary->sending_failed || summary->sending_unsent ||
	    summary->sending_refused)
		report->status = REPORT_EXIT_FRAMES;
	if (summary->tx_missing)
		report_error(report, REPORT_EXIT_FRAMES, "%s of %s frames not sent",
			     report_text_count(missing, summary->tx_missing),
			     report_text_count(asked, summary->tx_asked));
	judge_count(report, unsaved, "not saved");
	judge_count(report, summary->sending_failed,
		    "submitted and taken by the port, which then could not send them");
	judge_count(report, summary->sending_unsent, "submitted and not sent");
	judge_count(report, summary->sending_refused,
		    "submitted with a length that no frame has, and not sent");
}

static void judge_images(struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	struct gdrcap_image_counts total;

	report_images_total(report, &total);
	/* What happened to images outranks how the run ended. */
	if (total.incomplete || total.dropped || total.skipped || total.no_room ||
	    report->images_missed)
		report->status = REPORT_EXIT_FRAMES;
	judge_noun(report, total.incomplete, "image", "incomplete");
	judge_noun(report, total.dropped, "image", "dropped");
	judge_noun(report, total.skipped, "image", "skipped");
	judge_noun(report, report->images_missed, "image", "not saved");
	judge_missing(report);
	if (summary->failed && report->error_count == 0)
		report_error(report, REPORT_EXIT_NOT_RUN,
			     "the run ended early; the messages say why");
	if (report->error_count == 0 && summary->total.received == 0)
		report_error(report, REPORT_EXIT_FRAMES,
			     "no frame was received: is the sender running and the link up, and "
			     "is this the right port?");
	else if (report->error_count == 0 && total.complete == 0)
		report_error(report, REPORT_EXIT_FRAMES,
			     "no frame received was of an image: does --image say what the sender "
			     "sends (--explain-image), and do the rules let it pass?");
}

/* Whatever came, or could come, from the wire. */
static void judge_receiver(struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;
	const struct gdrcap_counts *total = &summary->total;

	/* What happened to frames outranks how the run ended. */
	if (total->damaged || total->lost || total->duplicate || total->reordered ||
	    summary->untracked || summary->senders_unheard || summary->streams_unheard ||
	    summary->conflicts)
		report->status = REPORT_EXIT_FRAMES;
	judge_count(report, total->damaged, REPORT_DAMAGED);
	judge_count(report, summary->stale,
		    "seen before their bytes were there: set --flush host, and report it where "
		    "that is set");
	judge_count(report, total->lost, REPORT_LOST);
	judge_count(report, total->duplicate, REPORT_DUPLICATED);
	judge_count(report, total->reordered, REPORT_REORDERED);
	/* The session has said it: gdrcap_stop() fails. */
	if (report->error_count == 0)
		judge_count(report, summary->untracked,
			    "not judged: they are of more streams than there is room for");
	if (summary->senders_unheard)
		report_error(report, REPORT_EXIT_FRAMES,
			     "senders that --senders waits for and of which nothing came: %u; are "
			     "they running, with a source address each (--src-mac)?",
			     summary->senders_unheard);
	if (summary->streams_unheard)
		report_error(report, REPORT_EXIT_FRAMES,
			     REPORT_ENDS_MISSING
			     "%u; what of them is lost is not "
			     "known (of a sender that says no ends: --end never)",
			     summary->streams_unheard);
	if (summary->conflicts)
		report_error(
			report, REPORT_EXIT_FRAMES,
			"stream ids that more than one source address used: %u; give each sender "
			"streams of its own (gdrcap replay --first-stream N), and one that is "
			"started again its old address (--src-mac)",
			summary->conflicts);
	judge_missing(report);
	if (summary->lock_lost && report->error_count == 0)
		report_error(
			report, REPORT_EXIT_FRAMES,
			"the payload did not go on where the frame before it ended; times: %llu",
			(unsigned long long)summary->lock_lost);
	if (summary->failed && report->error_count == 0)
		report_error(report, REPORT_EXIT_NOT_RUN,
			     "the run ended early; the messages say why");
	if (report->error_count == 0 && total->received == 0)
		report_error(report, REPORT_EXIT_FRAMES,
			     "no frame was received: is the sender running and the link up, and "
			     "is this the right port?");
	else if (report->error_count == 0 && total->valid == 0)
		report_error(report, REPORT_EXIT_FRAMES,
			     "no frame received was ours: check EtherType, VLAN, UDP port, "
			     "frame format and rules against the sender's");
}

static void judge_sender(struct report *report)
{
	const struct gdrcap_summary *summary = &report->summary;

	if (summary->known & GDRCAP_HAS_TX_ERROR)
		judge_count(report, summary->tx_error,
			    "taken by the port, which then could not send them");
	judge_missing(report);
	if (summary->failed && report->error_count == 0)
		report_error(report, REPORT_EXIT_NOT_RUN,
			     "the run ended early; the messages say why");
	if (summary->total.sent + summary->sending_sent == 0 && report->error_count == 0)
		report_error(report, REPORT_EXIT_FRAMES,
			     "no frame was sent: is the link up, and does the other end take "
			     "frames?");
}

void report_judge(struct report *report)
{
	if (report->has_summary && report->image_count)
		judge_images(report);
	else if (report->has_summary && report_receives(report))
		judge_receiver(report);
	else if (report->has_summary)
		judge_sender(report);
	else if (report->error_count == 0)
		report_error(report, REPORT_EXIT_NOT_RUN, "nothing ran");
	if (report->error_count == 0)
		report->result = REPORT_PASS;
}
