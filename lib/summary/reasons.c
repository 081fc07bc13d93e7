/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a run passed, and why not. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "summary/results.h"

/* What happened to frames outranks how the run ended. */
__attribute__((format(printf, 2, 3))) static void add(struct reasons *reasons, const char *format,
						      ...)
{
	va_list arguments;

	reasons->code = GDRCAP_FAILED_FRAMES;
	if (reasons->count == RESULTS_REASONS_MAX)
		return;
	va_start(arguments, format);
	vsnprintf(reasons->text[reasons->count++], RESULTS_REASON_BYTES, format, arguments);
	va_end(arguments);
}

const char *reason_count(char *to, uint64_t count, const char *noun, const char *what)
{
	char digits[TEXT_COUNT_BYTES];

	snprintf(to, RESULTS_REASON_BYTES, "%s %s%s %s", text_count(digits, count), noun,
		 count == 1 ? "" : "s", what);
	return to;
}

static void add_count(struct reasons *reasons, uint64_t count, const char *noun, const char *what)
{
	char reason[RESULTS_REASON_BYTES];

	if (count)
		add(reasons, "%s", reason_count(reason, count, noun, what));
}

static bool is_on(const struct results *results, const char *option)
{
	const char *value = results_option(results, option, 0);

	return value && strcmp(value, "true") == 0;
}

static void judge_sent(const struct gdrcap_summary *summary, struct reasons *reasons)
{
	char missing[TEXT_COUNT_BYTES], asked[TEXT_COUNT_BYTES];

	if (summary->tx_missing)
		add(reasons, "%s of %s frames not sent", text_count(missing, summary->tx_missing),
		    text_count(asked, summary->tx_asked));
	add_count(reasons, summary->save_missed + summary->damaged_missed, "frame", "not saved");
	add_count(reasons, summary->sending_failed, "frame",
		  "submitted and taken by the port, which then could not send them");
	add_count(reasons, summary->sending_unsent, "frame", "submitted and not sent");
	add_count(reasons, summary->sending_refused, "frame",
		  "submitted with a length that no frame has, and not sent");
}

/* A run that saves frames, has no option for what they should be, and got none of gdrcap's: it wants all. */
static bool is_recording(const struct results *results)
{
	const struct gdrcap_counts *total = &results->summary.total;

	return results->records && total->valid + total->damaged == 0;
}

uint64_t results_drops_unseen(const struct gdrcap_summary *summary)
{
	const uint64_t lost = summary->known & GDRCAP_HAS_LOSS ? summary->total.lost : 0;

	return summary->missed_in_run > lost ? summary->missed_in_run - lost : 0;
}

/* The frames dropped may be others' where most frames received were. */
static void judge_drops(const struct results *results, struct reasons *reasons)
{
	const struct gdrcap_summary *summary = &results->summary;
	const struct gdrcap_counts *total = &summary->total;

	if (!summary->steered && !is_recording(results) && total->filtered > total->received / 2)
		return;
	add_count(reasons, results_drops_unseen(summary), "frame", REASON_DROPPED);
}

/* The reason that most frames were refused for; `misfits`: of those that match. */
static const struct gdrcap_refused *most_refused(const struct results *results, bool misfits)
{
	const struct gdrcap_refused *most = NULL;

	for (uint32_t i = 0; i < results->image_count; i++)
		for (uint32_t n = 0; n < results->images[i].refused_count; n++)
			if ((!misfits || results->images[i].refused[n].misfit) &&
			    (!most || results->images[i].refused[n].frames > most->frames))
				most = &results->images[i].refused[n];
	return most;
}

static void judge_misfits(const struct results *results, uint64_t misfits, struct reasons *reasons)
{
	const struct gdrcap_refused *most = most_refused(results, true);
	char count[TEXT_COUNT_BYTES], part[TEXT_COUNT_BYTES];

	add(reasons,
	    "%s frame%s matched and did not fit the layout (--allow-misfits lets that pass): %s %s",
	    text_count(count, misfits), misfits == 1 ? "" : "s",
	    most ? text_count(part, most->frames) : "they are", most ? most->text : "wrong");
}

static void judge_conflicts(const struct results *results, uint64_t frames, struct reasons *reasons)
{
	const struct gdrcap_conflict *first = NULL;
	char count[TEXT_COUNT_BYTES];

	for (uint32_t i = 0; i < results->image_count && !first; i++)
		if (results->images[i].conflict_count)
			first = &results->images[i].conflicts[0];
	if (!first)
		add_count(reasons, frames, "frame", "in conflict with images");
	else if (first->other_bytes)
		add(reasons,
		    "%s frame%s with other bytes than were there: image %llu of stream %llu, from %s and then from %s; "
		    "%s",
		    text_count(count, frames), frames == 1 ? "" : "s",
		    (unsigned long long)first->number, (unsigned long long)first->stream_id,
		    first->first, first->second,
		    strcmp(first->first, first->second)
			    ? "the two legs do not send the same images"
			    : "the sender was started again, or uses a number for two images");
	else
		add(reasons,
		    "%s frame%s of a second sender with the same ids: image %llu of stream %llu is from %s, the frame "
		    "from %s; give each sender a stream or a port of its own, or set legs=2 if both send the same "
		    "images",
		    text_count(count, frames), frames == 1 ? "" : "s",
		    (unsigned long long)first->number, (unsigned long long)first->stream_id,
		    first->first, first->second);
}

static void judge_no_image(const struct results *results, struct reasons *reasons)
{
	const struct gdrcap_refused *most = most_refused(results, false);

	if (most)
		add(reasons, "no frame received was of an image: %llu of them are frames %s",
		    (unsigned long long)most->frames, most->text);
	else
		add(reasons, "no frame received was of an image: does --image say what the sender "
			     "sends (--explain-image), and do the rules let it pass?");
}

/* Frames of streams that are too many: what no stream has of those without room. */
static void judge_more_streams(const struct results *results, struct reasons *reasons)
{
	char count[TEXT_COUNT_BYTES];
	uint64_t frames = 0;

	for (uint32_t i = 0; i < results->image_count; i++) {
		const struct results_images *images = &results->images[i];

		frames += images->counts.no_room;
		for (uint32_t s = 0; s < images->stream_count; s++)
			frames -= images->streams[s].counts.no_room;
	}
	if (frames)
		add(reasons,
		    "%s frame%s of streams beyond the first %u, whose images are not handed out, and not "
		    "counted; receive fewer streams (match), or check stream.at",
		    text_count(count, frames), frames == 1 ? "" : "s", GDRCAP_IMAGE_STREAMS_MAX);
}

static void judge_images(const struct results *results, struct reasons *reasons)
{
	struct gdrcap_image_counts total;

	results_images_total(results, &total);
	add_count(reasons, total.incomplete, "image", "incomplete");
	add_count(reasons, total.dropped, "image", "dropped");
	judge_more_streams(results, reasons);
	add_count(reasons, total.skipped, "image", "skipped");
	if (total.conflict)
		judge_conflicts(results, total.conflict, reasons);
	if (!is_on(results, "allow_late"))
		add_count(
			reasons, total.late, "frame",
			"of images that had been handed out: copies, a second sender, one that began again at a lower "
			"number, or frames out of order (--allow-late lets that pass)");
	if (total.misfit && !is_on(results, "allow_misfits"))
		judge_misfits(results, total.misfit, reasons);
	judge_drops(results, reasons);
	judge_sent(&results->summary, reasons);
	if (reasons->count == 0 && total.complete == 0 && total.cut_by_start + total.cut_by_stop)
		add(reasons,
		    "no image came whole: the run began or ended in the middle of each; let it last several "
		    "times as long as an image takes");
	if (reasons->count == 0 && results->summary.total.received && total.complete == 0)
		judge_no_image(results, reasons);
}

/* Streams and their senders. */
static void judge_streams(const struct gdrcap_summary *summary, struct reasons *reasons)
{
	if (summary->senders_unheard)
		add(reasons,
		    "senders that --senders waits for and of which nothing came: %u; are they "
		    "running, with a source address each (--src-mac)?",
		    summary->senders_unheard);
	if (summary->streams_unheard)
		add(reasons,
		    REASON_ENDS_MISSING "%u; what of them is lost is not known (of a "
					"sender that says no ends: --end never)",
		    summary->streams_unheard);
	if (summary->conflicts)
		add(reasons,
		    "stream ids that more than one source address used: %u; give each sender "
		    "streams of its own (gdrcap replay --first-stream N), and one that is started "
		    "again its old address (--src-mac)",
		    summary->conflicts);
}

static void judge_frames(const struct results *results, struct reasons *reasons)
{
	const struct gdrcap_summary *summary = &results->summary;
	const struct gdrcap_counts *total = &summary->total;

	add_count(reasons, total->damaged, "frame", REASON_DAMAGED);
	add_count(reasons, summary->stale, "frame",
		  "seen before their bytes were there: set --flush host, and report it where that "
		  "is set");
	add_count(reasons, total->lost, "frame", REASON_LOST);
	add_count(reasons, total->duplicate, "frame", REASON_DUPLICATED);
	add_count(reasons, total->reordered, "frame", REASON_REORDERED);
	judge_drops(results, reasons);
	/* Where there are too many streams that is what ended the run. */
	if (reasons->count == 0)
		add_count(reasons, summary->untracked, "frame",
			  "not judged: they are of more streams than there is room for");
	else if (summary->untracked)
		reasons->code = GDRCAP_FAILED_FRAMES;
	judge_streams(summary, reasons);
	judge_sent(summary, reasons);
	if (summary->lock_lost && reasons->count == 0)
		add(reasons,
		    "the payload did not go on where the frame before it ended; times: %llu",
		    (unsigned long long)summary->lock_lost);
	if (reasons->count == 0 && total->received && !is_recording(results) &&
	    (summary->known & GDRCAP_HAS_VERDICT ? total->valid == 0
						 : total->filtered == total->received))
		add(reasons, "no frame received was ours: check EtherType, VLAN, UDP port, frame "
			     "format and rules against the sender's");
}

static void judge_sender(const struct gdrcap_summary *summary, struct reasons *reasons)
{
	if (summary->known & GDRCAP_HAS_TX_ERROR)
		add_count(reasons, summary->tx_error, "frame",
			  "taken by the port, which then could not send them");
	judge_sent(summary, reasons);
	if (summary->total.sent + summary->sending_sent == 0 && reasons->count == 0)
		add(reasons,
		    "no frame was sent: is the link up, and does the other end take frames?");
}

static void judge_received(const struct results *results, struct reasons *reasons)
{
	char came[TEXT_COUNT_BYTES], asked[TEXT_COUNT_BYTES];
	struct gdrcap_image_counts images;

	results_images_total(results, &images);
	if (images.complete < results->images_asked && !results->failure)
		add(reasons, "%s of %s images came whole", text_count(came, images.complete),
		    text_count(asked, results->images_asked));
	if (results->rx_came < results->rx_asked && !results->failure)
		add(reasons, "%s of %s frames received", text_count(came, results->rx_came),
		    text_count(asked, results->rx_asked));
}

void results_judge(const struct results *results, struct reasons *reasons)
{
	*reasons = (struct reasons){ 0 };
	if (results->failure) {
		add(reasons, "%s", results->failure_text);
		/* A step of the self-test failed. */
		if (results->state != RESULTS_CREATED || results->failure != -EIO)
			reasons->code = GDRCAP_FAILED_RUN;
	}
	if (results->state <= RESULTS_CREATED && reasons->count == 0) {
		add(reasons, "nothing ran");
		reasons->code = GDRCAP_FAILED_RUN;
	}
	if (results->state != RESULTS_OVER)
		return;
	if (results->image_count)
		judge_images(results, reasons);
	else if (results_receive(results))
		judge_frames(results, reasons);
	else
		judge_sender(&results->summary, reasons);
	judge_received(results, reasons);
	if (reasons->count == 0 && results_receive(results) && results->summary.total.received == 0)
		add(reasons, "no frame was received: is the sender running and the link up, and is "
			     "this the right port?");
}
