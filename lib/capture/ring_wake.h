/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a consumer on the CPU sleeps until a burst comes: a descriptor that its producer makes
 * readable. Where nobody asked for one the producer loads one word a burst; where somebody did, it
 * pays a fence; a system call only when the consumer has said that it sleeps.
 *
 * ARM: the consumer found no burst. It stores in `armed` which one it waits for, fences
 * (seq_cst), and looks once more. Partner, WAKE: the producer's PUBLISH (or `ended`), a fence
 * (seq_cst), then its load of `armed`. Each stores before its fence what the other loads after its
 * own: so in the one total order of the fences the later one's owner sees the other's store. Either
 * the consumer finds the burst, or the producer finds `armed` and wakes it. Without one of the
 * fences both loads could be done before both stores are seen (x86 does that, too), and the
 * consumer would sleep beside a burst that is there. tests/unit/test_ring_wake.c fails then.
 *
 * That the descriptor was asked for the producer may see late, so that it passes over that one
 * burst. An idle one looks again with each round, and one that is not has another burst to publish.
 */
#ifndef GDRCAP_RING_WAKE_H
#define GDRCAP_RING_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ring_wake {
	/* Writer: consumer, once. Release; partner: the producer's acquire load. */
	_Atomic int asked;
	int fd; /* before `asked` */
	/* The burst that is waited for and 1: the descriptor is not readable. 0: it is, or is about to
	 * be: whoever takes the number back makes it so. Writer: consumer; to 0 also the producer. */
	_Atomic uint64_t armed;
};

/* ---- consumer: one thread ---- */

/* The descriptor, made when it is first asked for, and readable then; or a negative errno. */
int ring_wake_fd(struct ring_wake *wake);
void ring_wake_close(struct ring_wake *wake);
/* Burst `next` is not there: from now on the descriptor is readable when it is, at the latest. True:
 * the caller must look once more, and call ring_wake_disarm() if it finds something. */
bool ring_wake_arm(struct ring_wake *wake, uint64_t next);
/* The descriptor is readable again, since there may be more. */
void ring_wake_disarm(struct ring_wake *wake);

/* ---- producer ---- */

void ring_wake_sleeper(struct ring_wake *wake, uint64_t published);
/* After `ended` was set. */
void ring_wake_end(struct ring_wake *wake);

/* After PUBLISH, and in idle rounds. `published`: so many bursts are. */
static inline void ring_wake_look(struct ring_wake *wake, uint64_t published)
{
	if (__builtin_expect(atomic_load_explicit(&wake->asked, memory_order_acquire), 0))
		ring_wake_sleeper(wake, published);
}

#endif
