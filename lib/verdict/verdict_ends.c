/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End-of-stream frames: how many frames a stream had, and how many streams its sender has.
 *
 * They have a checksum and no signature: anybody on the network can send one. So what was said most
 * often counts, of what was said as often the least (gdrcap's sender says everything five times).
 * Frames beyond a stream's end void what its ends said so far. A sender of whom no stream lives
 * counts only while fewer senders live than are waited for: that all of a sender's frames are lost
 * is seen, and what an unknown sender says is not loss. A stream of which no frame came counts where its
 * sender has room for it among the streams that it announced, or said its end twice.
 */
#include "verdict/verdict_internal.h"

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

void verdict_sender_weigh(struct verdict *verdict, const struct verdict_sender *sender, bool on)
{
	struct verdict_tally *tally = &verdict->tally[sender->live != 0];
	/* Two programs may send from one address: then more streams live than one says. */
	const uint32_t ended = sender->streams && sender->ended >= sender->streams &&
			       sender->ended >= sender->live;
	const uint32_t missing =
		sender->streams > sender->ended ? sender->streams - sender->ended : 0;
	const uint32_t silent = sender->streams == 0 && sender->live > sender->ended
					? sender->live - sender->ended
					: 0;

	tally->ended += on ? ended : -ended;
	tally->missing += on ? missing : -(uint64_t)missing;
	tally->silent += on ? silent : -(uint64_t)silent;
}

static void stream_set_ended(struct verdict *verdict, struct verdict_stream *stream, bool ended)
{
	struct verdict_sender *sender = &verdict->senders[stream->sender];
	const uint32_t change = (uint32_t)ended - (uint32_t)stream->ended;

	verdict_sender_weigh(verdict, sender, false);
	sender->ended += change;
	verdict->streams_ended += change;
	stream->ended = ended;
	verdict_sender_weigh(verdict, sender, true);
}

void verdict_end_stream(struct verdict *verdict, struct verdict_stream *stream, uint64_t frames)
{
	stream_set_ended(verdict, stream, true);
	stream->announced = frames;
}

void verdict_end_void(struct verdict *verdict, struct verdict_stream *stream)
{
	stream_set_ended(verdict, stream, false);
	stream->announced = 0;
	stream->ends = (struct verdict_votes){ 0 };
}

static void sender_says(struct verdict *verdict, struct verdict_sender *sender, uint32_t streams)
{
	uint32_t count;

	/* More than can be told apart are believed, too: else their missing ends were nobody's. */
	if (streams == 0)
		return;
	verdict_sender_weigh(verdict, sender, false);
	votes_add(&sender->streams_said, streams);
	sender->streams = (uint32_t)votes_best(&sender->streams_said, &count);
	verdict_sender_weigh(verdict, sender, true);
}

void verdict_add_end(struct verdict *verdict, uint32_t queue, const struct frame_record *record)
{
	struct verdict_stream *stream;
	uint32_t count;

	verdict->queues[queue].filtered += record->count;
	if (!record->header_ok || verdict_is_custom(verdict))
		return;
	/* Counted as filtered already, and never as untracked: it is no frame of a stream. */
	stream = verdict_stream_find(verdict, record);
	if (!stream)
		return;
	sender_says(verdict, &verdict->senders[stream->sender], record->detail);
	/* One that comes late: the stream is beyond it. */
	if (record->sequence < stream->sequence.next)
		return;
	votes_add(&stream->ends, record->sequence);
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

void verdict_unheard(const struct verdict *verdict, bool left, uint32_t *senders, uint32_t *streams)
{
	const struct verdict_tally *quiet = &verdict->tally[0], *live = &verdict->tally[1];
	const uint32_t waited_for = senders_waited_for(verdict), heard = verdict->senders_heard;
	uint64_t unheard = live->missing + (left ? live->silent : 0);

	if (verdict->senders_live < waited_for)
		unheard += quiet->missing;
	*streams = (uint32_t)(unheard < UINT32_MAX ? unheard : UINT32_MAX);
	*senders = waited_for > 1 && heard < waited_for ? waited_for - heard : 0;
}

bool verdict_end_seen(const struct verdict *verdict)
{
	return verdict->whole || verdict->streams_ended;
}

bool verdict_ended(const struct verdict *verdict)
{
	const uint32_t live = verdict->tally[1].ended, waited_for = senders_waited_for(verdict);

	if (verdict->whole)
		return true;
	if (live < verdict->senders_live)
		return false;
	return live >= waited_for || live + verdict->tally[0].ended >= waited_for;
}
