/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verdict: what became of every frame. The accountant feeds it the records that the consumer
 * wrote; everybody else reads snapshots.
 *
 *   received = valid + damaged + duplicate + filtered
 *   sent     = valid + damaged + lost            over unique sequence numbers
 *
 * A damaged frame whose header cannot be read has no sequence number: it is counted in the totals
 * only, where it fills one gap. Where the sender's count is known and there is no gap left, it can
 * only be a second copy and counts as a duplicate; where `sent` itself comes from the sequence
 * numbers, or from a file that somebody played, it is one frame more that was sent.
 *
 * A stream is an id from one source address: what two senders send with the same id is kept apart,
 * and counted as a conflict (verdict_streams.c).
 *
 * Own frames (config.layout and expect NULL, or a layout of our own): numbers begin with 0 and are
 * what the header says. A lone frame far from the others is in doubt, and a sender that starts again
 * begins a new life of its stream: verdict_own.c. An end-of-stream frame says how many frames its
 * stream had, and how many streams its sender has: verdict_ends.c.
 *
 * Frames of a custom layout with a sequence field: a raw number's signed distance from the newest of its
 * stream, in as many bits as the field has, divided by the step, leads to the 64-bit frame number;
 * numbering begins with the first frame seen. The field has no checksum. So a lone frame whose
 * number is no whole step away, is more than VERDICT_JUMP ahead, or is too far behind to be told
 * from a duplicate, is in doubt: it counts as damaged with an unreadable header until the stream's
 * next frame goes on from it, which proves it after all. So is one of a PRBS that runs on through
 * the stream whose payload says that it is the next, and whose number says otherwise; that is
 * proved by the very next number only. If that contradicts the stream's first
 * frame by more than SEQUENCE_WINDOW, that one's number was damaged. (A loss of half of what the
 * field can say, or more, cannot be seen.)
 *
 * A custom layout's PRBS that runs on through the stream: see verdict_phase.h.
 *
 * Expected from a file: see verdict_expect.c.
 */
#ifndef GDRCAP_VERDICT_H
#define GDRCAP_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/burst_ring.h"
#include "gdrcap.h"
#include "pattern/frame_store.h"
#include "pattern/phase.h"
#include "verdict/ranges.h"
#include "verdict/sequence.h"

#define VERDICT_STREAM_IDS 65536u
#define VERDICT_SOURCES 65536u /* values of frame_result.source */
/* Streams of which anything was seen. Of most, in hostile traffic, that is one frame: only of those
 * that sent more, GDRCAP_STREAMS_MAX at most, is it known which frames came. */
#define VERDICT_STREAMS_SEEN 65536u
/* A custom layout's PRBS without sequence numbers: this many frames, lost or late, are looked for. */
#define VERDICT_PHASE_AHEAD 1024u
#define VERDICT_PHASE_BACK 64u
/* A lone frame more than this many ahead is in doubt. */
#define VERDICT_JUMP 4096u
/* Frames by which a stream may go on while a frame 0 that restarts it is in doubt. */
#define VERDICT_STRAGGLERS 1024u
/* Streams of a custom layout are numbered from here, so that frames before the first one seen have numbers. */
#define VERDICT_FIRST_NUMBER (1ull << 63)

/* What the frames are, decided at create. */
struct verdict_config {
	/* Not 0: the sender is ours, its streams are 0 .. own_streams - 1 and begin with sequence
	 * number 0; frames of other streams are somebody else's and filtered. */
	uint32_t own_streams;
	/* Frames of a custom layout: their numbers and phases; others: NULL. Kept, not copied. */
	const struct frame_layout *layout;
	const struct pattern *pattern;
	const struct frame_store_view *expect; /* frames of a file, or NULL. Kept, not copied */
	bool ranges;			       /* of own frames: which numbers came is kept */
	uint32_t senders; /* end-of-stream frames of this many senders make an end; 0: of one */
};

/* What several frames said, of which some may be forged: the values said most often. */
#define VERDICT_VOTES 3u
struct verdict_votes {
	uint64_t value[VERDICT_VOTES];
	uint32_t count[VERDICT_VOTES]; /* 0: no value */
};

/* Who sends, by source address: place 0 also for those who are not looked at. */
struct verdict_sender {
	uint32_t streams; /* that it has, as its end-of-stream frames say; 0: they said nothing */
	struct verdict_votes streams_said;
	uint32_t ended; /* streams whose end-of-stream frame came */
	uint32_t live;	/* streams that sent more than one frame */
	bool heard;	/* a frame came, other than an end-of-stream frame */
};

struct verdict_stream {
	struct sequence sequence;
	uint32_t id;
	uint32_t sender; /* its source: index in senders[] */
	bool live;	 /* more than one frame was seen: `sequence` has memory for which */
	bool listed;	 /* in listed[] */
	uint64_t received, valid, damaged, duplicate, reordered;
	uint64_t bits_checked, bits_wrong, bytes;
	uint64_t announced;	   /* frames that it had, as its sender says; where `ended` */
	struct verdict_votes ends; /* what its end-of-stream frames said */
	bool ended; /* its end-of-stream frame came, or verdict_expect_whole() was called */
	/* Own frames. */
	uint32_t restarts;		     /* times that its sender began again */
	uint64_t past_expected, past_unique; /* frames of the lives before this one */
	bool born;			     /* frame 0 of this life was seen, ... */
	uint64_t birth; /* ... sent at this time, ns since the Unix epoch; 0: it had none */
	/* Expected from a file: frames, among the valid and damaged, that came before their place;
	 * they count as sent, but have no number yet. */
	uint64_t ahead;
	bool doubted;	     /* `doubt` is a frame in doubt, counted as unreadable */
	bool doubt_restarts; /* own frames: it is a frame 0, from which a new life may go on */
	uint64_t doubt_next; /* with doubt_restarts: sequence.next when it came, ... */
	uint64_t doubt_copy; /* ... number of a lone copy that came since; UINT64_MAX: none */
	/* Frames of a custom layout with a sequence field. */
	bool numbered;	      /* raw and number are known */
	bool alone;	      /* `first` is the only frame that was believed so far */
	uint64_t raw, number; /* of the newest frame: as on the wire, and unwrapped */
	struct frame_record doubt, first;
	uint32_t doubt_queue, first_queue;
	/* A custom layout's PRBS. */
	uint32_t phase; /* that the frame after the newest should begin with; 0: none is held */
	uint64_t phase_number; /* of that frame */
	uint32_t arrived; /* without a sequence field: that would go on from the last to arrive */
	uint64_t arrived_number; /* of the frame that begins with it */
};

/* Of all senders of a kind. */
struct verdict_tally {
	uint32_t ended;	  /* senders that ended each of their streams */
	uint64_t missing; /* streams that they announced, and whose end has not come */
	uint64_t silent;  /* streams that live, of senders that announced nothing */
};

struct verdict_queue {
	uint64_t received, valid, damaged, duplicate, reordered, filtered;
	uint64_t bits_checked, bits_wrong, bytes;
	uint64_t *next;		     /* by stream index: highest sequence number seen here + 1 */
	struct verdict_stream *last; /* stream of the last record; NULL: none */
};

struct verdict_places; /* verdict_expect.c */
struct verdict_phases; /* verdict_phase.c */

/* Writer: the accountant. */
struct verdict {
	struct verdict_queue queues[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	uint32_t queue_count;
	struct verdict_stream *streams; /* in order of appearance */
	uint32_t stream_count;
	uint32_t *stream_hash; /* index + 1 by id and sender; 0: empty (verdict_streams.c) */
	uint32_t live_count;
	uint32_t listed[GDRCAP_STREAMS_MAX]; /* those that readers are told of: indices */
	uint32_t listed_count;
	struct verdict_sender *senders; /* by source, VERDICT_SOURCES */
	uint32_t senders_live, senders_heard;
	uint32_t streams_ended;	       /* of all senders */
	struct verdict_tally tally[2]; /* of senders without, and with, a stream that lives */
	uint64_t unique;     /* different frames of ours that came and can be told apart */
	uint64_t unreadable; /* damaged frames without a sequence number */
	uint64_t
		stale; /* seen before their bytes were there, if these ever came, whatever else they
			 * are counted as */
	uint64_t unmatched; /* among the filtered: frames of others' streams, config.own_streams */
	uint64_t
		late_copies; /* among the duplicates: own frames that came after their stream's end */
	uint64_t untracked; /* among the filtered: frames that found no room, of too many streams */
	uint32_t restarts;  /* of all streams */
	uint32_t conflicts; /* ids that more than one source address used */
	uint32_t conflict_id;	/* the first of them */
	uint64_t *live_ids;	/* bit by id: a stream of this id is live, ... */
	uint64_t *conflict_ids; /* ... more than one is */
	struct gdrcap_damage damage[GDRCAP_DAMAGE_MAX];
	uint32_t damage_count;
	struct verdict_config config;
	struct verdict_places *places; /* config.expect */
	struct verdict_phases *phases; /* custom layout's PRBS */
	uint64_t
		lock_lost; /* custom layout's PRBS: a payload did not go on where it should: verdict_phase.h */
	bool whole;		    /* verdict_expect_whole() was called */
	struct ranges_pool *ranges; /* config.ranges */
	bool finished;		    /* verdict_finish() was called */
};

int verdict_create(struct verdict *verdict, uint32_t queues, const struct verdict_config *config);
void verdict_destroy(struct verdict *verdict);

/* One record of queue `queue`. No allocation (the window of a stream's second frame excepted), lock or
 * system call. */
void verdict_add(struct verdict *verdict, uint32_t queue, const struct frame_record *record);

/* Renews the work that may go into looking for phases (VERDICT_PHASE_BUDGET): once for every round
 * in which the accountant takes a queue's bursts. */
void verdict_round(struct verdict *verdict);

/* No record will follow: frames whose number is still in doubt are kept among the damaged, and those
 * of a file whose place is get one. */
void verdict_finish(struct verdict *verdict);

/* Expected from a file, after the last record: the sender is known to have played its file to the end,
 * so what is missing of the last loop that was seen is lost. A stream whose end-of-stream frame said
 * how many frames it had keeps that. No frame seen: nothing is known. */
void verdict_expect_whole(struct verdict *verdict);

/* True when every sender that was seen, and as many as config.senders says, ended each of its streams.
 * Any count of frames that are still missing is then known: `sent` is what they announced. */
bool verdict_ended(const struct verdict *verdict);
/* Senders that were waited for and of whom nothing came, and streams that those who ended some say
 * they have, and whose end did not come: what of them is lost is not known. `left`: somebody left,
 * so that streams count, too, whose sender said nothing about its end. */
void verdict_unheard(const struct verdict *verdict, bool left, uint32_t *senders,
		     uint32_t *streams);
/* True when any stream has ended. */
bool verdict_end_seen(const struct verdict *verdict);

/* Totals. `sent` is what the sender handed to the wire; sent_known false: what the sender
 * announced, for streams that have ended, else taken from the sequence numbers. */
void verdict_total(const struct verdict *verdict, bool sent_known, uint64_t sent,
		   struct gdrcap_counts *total);
void verdict_queue_counts(const struct verdict *verdict, uint32_t queue,
			  struct gdrcap_counts *counts);
/* The stream that readers know by this index, below listed_count. */
static inline const struct verdict_stream *verdict_listed(const struct verdict *verdict,
							  uint32_t index)
{
	return &verdict->streams[verdict->listed[index]];
}

/* Sent as in verdict_total(). */
void verdict_stream_counts(const struct verdict *verdict, const struct verdict_stream *stream,
			   bool sent_known, uint64_t sent, struct gdrcap_counts *counts);

/* config.ranges: as gdrcap_get_ranges(). */
int verdict_stream_ranges(const struct verdict *verdict, const struct verdict_stream *stream,
			  struct gdrcap_numbers *to, uint32_t room);

#endif
