/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a front on the GPU has received, for those that look at a receiver's counters: there is no thread of
 * the CPU's that publishes, so the accountant learns of each burst by the front's words in pinned memory
 * (`head` of kernels/front.h), and keeps struct rx_worker and its ring as a receiver's thread would. It also
 * says how far it is itself (ROOM), and what nobody on the host holds any more (LEASE).
 *
 * frames and bursts are exact; bytes and looks are as the front last told them, and exact when it has ended.
 */
#ifndef GDRCAP_FRONT_FOLLOW_H
#define GDRCAP_FRONT_FOLLOW_H

#include "capture/rx_worker.h"
#include "kernels/front.h"

struct front_follow {
	struct rx_worker *worker;
	struct front_words *words;   /* writer: accountant; `phase`: control */
	struct front_status *status; /* writer: the front, or control while none runs */
	bool leased;		     /* somebody on the host reads frames after they were checked */

	/* Writer: control, while no front runs: what those before counted. */
	_Alignas(RING_LINE) _Atomic uint64_t bytes, passes, empty;
};

/* `worker` exists, `words` and `status` are all zeros. */
void front_follow_init(struct front_follow *follow, struct rx_worker *worker,
		       struct front_words *words, struct front_status *status, bool leased);

/* Accountant: looks at what the front has published since, at `now` (TSC). Returns the number of the first burst
 * that it has not. */
uint64_t front_follow_look(struct front_follow *follow, uint64_t now);
/* Accountant: the bursts before `through` are in the verdict, and nobody wants their frames. */
void front_follow_release(struct front_follow *follow, uint64_t through);

/* Control: what the front is to do. RX_PAUSE: it ends with all that has come. */
void front_follow_phase(struct front_follow *follow, enum rx_phase phase);
/* True when it has ended. Acquires its last access to completions and record. */
bool front_follow_has_ended(const struct front_follow *follow);
/* True when nothing follows it, and all that it published is released. Any thread. */
bool front_follow_is_through(const struct front_follow *follow);
/* Control: no front runs. What the last one counted is kept, and its status cleared for the next, which runs. */
void front_follow_begin(struct front_follow *follow);

#endif
