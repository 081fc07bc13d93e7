/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verdict: what became of every frame. The accountant feeds it the runs that the consumer
 * wrote; everybody else reads snapshots.
 *
 *   received = valid + damaged + duplicate + filtered
 *   sent     = valid + damaged + lost            over unique sequence numbers
 *
 * A damaged frame whose header cannot be read has no sequence number: it is counted in the totals
 * only, where it fills one gap. Where the sender's count is known and there is no gap left, it can
 * only be a second copy and counts as a duplicate; where `sent` itself comes from the sequence
 * numbers, it is one frame more that was sent.
 */
#ifndef GDRCAP_VERDICT_H
#define GDRCAP_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "burst_ring.h"
#include "gdrcap.h"
#include "sequence.h"

#define VERDICT_STREAM_IDS 65536u

struct verdict_stream {
	struct sequence sequence;
	uint32_t id;
	uint64_t received, valid, damaged, duplicate, reordered;
	uint64_t bits_checked, bits_wrong, bytes;
};

struct verdict_queue {
	uint64_t received, valid, damaged, duplicate, reordered, filtered;
	uint64_t bits_checked, bits_wrong, bytes;
	uint64_t *next; /* by stream index: highest sequence number seen here + 1 */
};

/* Writer: the accountant. */
struct verdict {
	struct verdict_queue queues[GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX];
	uint32_t queue_count;
	struct verdict_stream *streams; /* in order of appearance */
	uint32_t stream_count;
	uint16_t *stream_index; /* by id: index + 1; 0: not seen */
	uint64_t unreadable; /* damaged frames without a sequence number */
	uint64_t strangers; /* among the filtered: frames of others' streams, or of too many */
	struct gdrcap_damage damage[GDRCAP_DAMAGE_MAX];
	uint32_t damage_count;
	/* Not 0: the sender is ours, its streams are 0 .. own_streams - 1 and begin with sequence
	 * number 0; frames of other streams are somebody else's and filtered. */
	uint32_t own_streams;
};

int verdict_create(struct verdict *verdict, uint32_t queues, uint32_t own_streams);
void verdict_destroy(struct verdict *verdict);

/* One run of queue `queue`. No allocation (a new stream's window excepted), lock or system call. */
void verdict_add(struct verdict *verdict, uint32_t queue, const struct frame_run *run);

/* Different frames of ours that came and can be told apart: what `sent` is compared with. */
uint64_t verdict_unique(const struct verdict *verdict);

/* Totals. `sent` is what the sender handed to the wire; sent_known false: taken from the sequence
 * numbers. */
void verdict_total(const struct verdict *verdict, bool sent_known, uint64_t sent,
		   struct gdrcap_counts *total);
void verdict_queue_counts(const struct verdict *verdict, uint32_t queue,
			  struct gdrcap_counts *counts);
/* By index; sent as in verdict_total(). */
void verdict_stream_counts(const struct verdict *verdict, uint32_t index, bool sent_known,
			   uint64_t sent, struct gdrcap_counts *counts);

#endif
