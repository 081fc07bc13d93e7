/* SPDX-License-Identifier: BSD-3-Clause */
/* One line of a run that goes on, for people. */
#include "base/text.h"
#include "report.h"

static void format_sender_tick(char *to, size_t bytes, const struct report_tick *tick)
{
	const uint64_t frames = tick->now->total.sent - tick->before->total.sent;
	const uint64_t sent_bytes = tick->now->tx_bytes - tick->before->tx_bytes;
	const double nanoseconds = tick->interval > 0 ? tick->interval * 1e9 : 1;
	char sent[TEXT_COUNT_BYTES];

	snprintf(to, bytes, "%6.0f s  %s frame%s sent  %.6f Gb/s  %.6f Mpps", tick->elapsed,
		 text_count(sent, tick->now->total.sent), report_plural(tick->now->total.sent),
		 (double)(sent_bytes + 24 * frames) * 8 / nanoseconds,
		 (double)frames * 1e3 / nanoseconds);
}

static void format_image_tick(char *to, size_t bytes, const struct report_tick *tick)
{
	const struct gdrcap_image_counts *now = tick->images;
	const double seconds = tick->interval > 0 ? tick->interval : 1;
	const uint64_t begun = now->complete + now->incomplete - tick->images_before->complete -
			       tick->images_before->incomplete;
	char complete[TEXT_COUNT_BYTES], incomplete[TEXT_COUNT_BYTES], dropped[TEXT_COUNT_BYTES],
		skipped[TEXT_COUNT_BYTES], lost[TEXT_COUNT_BYTES];

	snprintf(
		to, bytes,
		"%6.0f s  %s image%s complete  %.1f a second  %.3f Gb/s  incomplete %s  dropped %s  "
		"skipped %s  pieces lost %s",
		tick->elapsed, text_count(complete, now->complete), report_plural(now->complete),
		(double)begun / seconds,
		(double)(now->bytes - tick->images_before->bytes) * 8 / seconds / 1e9,
		text_count(incomplete, now->incomplete), text_count(dropped, now->dropped),
		text_count(skipped, now->skipped), text_count(lost, now->pieces_lost));
}

void report_format_tick(char *to, size_t bytes, const struct report_tick *tick)
{
	const struct gdrcap_counts *now = &tick->now->total, *before = &tick->before->total;
	uint64_t frames = now->received - before->received;
	/* On the wire a frame has 24 bytes more than in memory: FCS, preamble and gap. */
	double bits = (double)(now->bytes - before->bytes + 24 * frames) * 8;
	double nanoseconds = tick->interval > 0 ? tick->interval * 1e9 : 1;
	char received[TEXT_COUNT_BYTES], damaged[TEXT_COUNT_BYTES], open[TEXT_COUNT_BYTES];

	if (tick->now->queues == 0) {
		format_sender_tick(to, bytes, tick);
		return;
	}
	if (tick->images) {
		format_image_tick(to, bytes, tick);
		return;
	}
	/* Before the end a frame that is missing may yet arrive: it is not called lost. */
	snprintf(to, bytes,
		 "%6.0f s  %s frame%s  %.3f Gb/s  %.3f Mpps  damaged %s  in flight or lost %s",
		 tick->elapsed, text_count(received, now->received), report_plural(now->received),
		 bits / nanoseconds, (double)frames * 1e3 / nanoseconds,
		 text_count(damaged, now->damaged), text_count(open, now->lost));
}
