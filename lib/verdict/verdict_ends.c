/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End-of-stream frames: how many frames a stream had, and how many streams its sender has.
 *
 * They have a checksum and no signature: anybody on the network can send one. So what was said most
 * often counts, of what was said as often the least (gdrcap's sender says everything five times).
 * Frames beyond a stream's end void what its ends said so far. A sender of whom no stream lives
 * counts only while fewer senders live than are waited for: that all of a sender's frames are lost
 * is seen, and a stranger's word is not loss. A stream of which no frame came counts where its
 * sender has room for it among the streams that it announced, or said its end twice.
 */
#include "verdict_internal.h"

static void votes_add(struct verdict_votes *votes, uint64_t value)
{
	uint32_t least = 0;

	for (uint32_t i = 0; i < VERDICT_VOTES; i++) {
		if (votes->count[i] && votes->value[i] == value) {
			votes->count[i] += votes->count[i] < UINT32_MAX;
			return;
		}
		if (votes->count[i] < votes->count[least])
			least = i;
	}
	votes->value[least] = value;
	votes->count[least] = 1;
}

/* Of at least one. */
static uint64_t votes_best(const struct verdict_votes *votes, uint32_t *count)
{
	uint64_t best = UINT64_MAX;

	*count = 0;
	for (uint32_t i = 0; i < VERDICT_VOTES; i++)
		if (votes->count[i] > *count ||
		    (votes->count[i] && votes->count[i] == *count && votes->value[i] < best)) {
			best = votes->value[i];
			*count = votes->count[i];
		}
	return best;
}

void verdict_end_stream(struct verdict *verdict, struct verdict_stream *stream, uint64_t frames)
{
	verdict->senders[stream->sender].ended += !stream->ended;
	stream->ended = true;
	stream->announced = frames;
}

void verdict_end_void(struct verdict *verdict, struct verdict_stream *stream)
{
	verdict->senders[stream->sender].ended -= stream->ended;
	stream->ended = false;
	stream->announced = 0;
	stream->ends = (struct verdict_votes){ 0 };
}

static void sender_says(struct verdict_sender *sender, uint32_t streams)
{
	uint32_t count;

	if (streams == 0 || streams > GDRCAP_STREAMS_MAX)
		return;
	votes_add(&sender->streams_said, streams);
	sender->streams = (uint32_t)votes_best(&sender->streams_said, &count);
}

void verdict_add_end(struct verdict *verdict, uint32_t queue, const struct frame_run *run)
{
	struct verdict_stream *stream;
	uint32_t count;

	verdict->queues[queue].filtered += run->count;
	if (!run->header_ok || verdict_is_foreign(verdict))
		return;
	/* Counted as filtered already, and never as untracked: it is no frame of a stream. */
	stream = verdict_stream_find(verdict, run);
	if (!stream)
		return;
	sender_says(&verdict->senders[stream->sender], run->detail);
	/* One that comes late: the stream is beyond it. */
	if (run->sequence < stream->sequence.next)
		return;
	votes_add(&stream->ends, run->sequence);
	verdict_end_stream(verdict, stream, votes_best(&stream->ends, &count));
}

static uint32_t senders_waited_for(const struct verdict *verdict)
{
	return verdict->config.senders ? verdict->config.senders : 1;
}

static bool sender_counts(const struct verdict *verdict, const struct verdict_sender *sender)
{
	return sender->live || verdict->senders_live < senders_waited_for(verdict);
}

bool verdict_end_counts(const struct verdict *verdict, const struct verdict_stream *stream)
{
	const struct verdict_sender *sender = &verdict->senders[stream->sender];
	uint32_t count;

	if (!stream->ended || !sender_counts(verdict, sender))
		return false;
	if (stream->sequence.unique || sender->ended <= sender->streams)
		return true;
	votes_best(&stream->ends, &count);
	return count > 1;
}

void verdict_unheard(const struct verdict *verdict, uint32_t *senders, uint32_t *streams)
{
	const uint32_t waited_for = senders_waited_for(verdict);
	uint32_t heard = 0;

	*streams = 0;
	for (uint32_t i = 0; i < verdict->sender_count; i++) {
		const struct verdict_sender *sender = &verdict->senders[i];

		heard += sender->heard;
		if (sender_counts(verdict, sender) && sender->ended < sender->streams)
			*streams += sender->streams - sender->ended;
	}
	*senders = waited_for > 1 && heard < waited_for ? waited_for - heard : 0;
}

bool verdict_end_seen(const struct verdict *verdict)
{
	bool seen = verdict->whole;

	for (uint32_t i = 0; i < verdict->sender_count; i++)
		seen |= verdict->senders[i].ended != 0;
	return seen;
}

bool verdict_ended(const struct verdict *verdict)
{
	uint32_t ended = 0;

	if (verdict->whole)
		return true;
	for (uint32_t i = 0; i < verdict->sender_count; i++) {
		const struct verdict_sender *sender = &verdict->senders[i];

		/* Two programs may send from one address: then more streams live than one says. */
		if (sender->streams && sender->ended >= sender->streams &&
		    sender->ended >= sender->live)
			ended += sender_counts(verdict, sender);
		else if (sender->live)
			return false;
	}
	return ended >= senders_waited_for(verdict);
}
