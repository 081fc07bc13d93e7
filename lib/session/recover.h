/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of a card that no longer move: found, started again or reported, while the run goes on.
 *
 * What of a receive queue in error can be seen through DPDK's mlx5 driver (22.11), and what cannot:
 *
 * - The card gives the queue's posted buffers back with errors, and the driver throws them away:
 *   rte_eth_stats.ierrors, and q_errors[] of the queue, in which rx_nombuf is too. Buffers are
 *   counted, so this says that a queue was in error, not how many frames were lost.
 * - Its scalar functions start such a queue again by themselves. Its vector functions do so only
 *   where the last entry happens to look free: at the ring's end, or behind a compressed
 *   completion, after which they walk two rings out of step and crash when a compressed one is at
 *   an end (hence rxq_cqe_comp_en=0). Else they hand out nothing from then on, and the state
 *   outlives a stop of the port. So with these the port is started again at once.
 * - rx_wqe_errors counts the queues of the kernel's interface, not ours; whether out_of_buffer
 *   counts frames for a queue in error is not documented; the physical port's counters count anybody's
 *   frames. None of these says that a queue is in error.
 * - The rules' hits count what was steered to our queues, whether or not it came out. The driver
 *   reads them once a second, and later where its thread has no core: so they say something only
 *   where they are more than the frames that came out and those that had found no buffer by then.
 * - rte_eth_dev_rx_queue_stop() is refused with the vector functions, and with queues made by Verbs
 *   the driver asks for a state that there is none of. So a whole port is started again.
 */
#ifndef GDRCAP_RECOVER_H
#define GDRCAP_RECOVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gdrcap.h"

struct gdrcap_session;

#define RECOVER_LOOK_MS 100u  /* between two looks */
#define RECOVER_QUIET_MS 300u /* so long without a frame: more errors meanwhile are no recovery */
#define RECOVER_HITS_MS 2000u /* so long after the last frame the hits are surely read */
#define RECOVER_TRIES 3u      /* starts without a frame in between */

/* ---- receiving ---- */

/* One look at a receiving port. Its counters only grow, but over a restart of the port. */
struct recover_sample {
	uint64_t ms; /* of a clock that does not jump */
	uint32_t queues;
	bool stays; /* the driver does not bring a queue back by itself: the vector functions */
	bool room;  /* slots are free, so a queue that works has buffers */
	bool hits_known;
	uint64_t hits;				  /* frames that the rules put into our queues */
	uint64_t missed;			  /* frames that found no buffer */
	uint64_t errors;			  /* rte_eth_stats.ierrors */
	uint64_t queue_errors[GDRCAP_QUEUES_MAX]; /* dpdk_stats_get() */
	uint64_t frames[GDRCAP_QUEUES_MAX];	  /* that came out of the queue */
};

struct recover_queue {
	uint64_t quiet_ms;     /* since when nothing came although slots were free */
	uint32_t quiet_errors; /* looks since then that found more errors */
	uint64_t error_frames; /* that had come at the last look that found errors */
	uint32_t tries;	       /* starts since the last frame */
	bool erred;	       /* the last look found errors */
	bool error;	       /* it is not known to have come out of them */
	bool dead;	       /* given up */
};

struct recover {
	bool begun;
	struct recover_sample last;
	uint64_t quiet_ms; /* the same of all its queues together */
	uint64_t quiet_hits, quiet_missed;
	int64_t base; /* frames_left() when the rules were made */
	struct recover_queue queue[GDRCAP_QUEUES_MAX];
};

/* Bits of queues. */
struct recover_found {
	uint32_t healed; /* had errors, and bring frames again: the driver's work */
	uint32_t silent; /* bring nothing of what the rules put into them; a dead one may have it */
	uint32_t error;	 /* had errors, and bring nothing */
	uint32_t dead;	 /* the same, after RECOVER_TRIES starts: not looked at any more */
};

/* `silent` and `error` are to be started again now. */
struct recover_found recover_look(struct recover *recover, const struct recover_sample *sample);
/* At the run's end: bits of queues whose errors nothing was said of; those that brought frames
 * since then are in *healed instead. */
uint32_t recover_left(const struct recover *recover, uint32_t *healed);
/* The port was started again for these queues, which is how `sample` finds it. */
void recover_restarted(struct recover *recover, uint32_t queues,
		       const struct recover_sample *sample);

/* ---- sending ---- */

#define RECOVER_STUCK_MS 1000u

struct recover_sender {
	uint64_t sent, stalled; /* at the last look */
	uint64_t since_ms;	/* since when it wants to send and nothing is taken */
	bool stuck;
};

enum recover_move {
	RECOVER_AS_BEFORE,
	RECOVER_STUCK, /* for RECOVER_STUCK_MS: told once */
	RECOVER_MOVES, /* again */
};

/* `excused`: it has nothing to send, or waits for the link, which is told elsewhere. */
enum recover_move recover_sender_look(struct recover_sender *sender, uint64_t ms, uint64_t sent,
				      uint64_t stalled, bool excused);

/* ---- a session's ports: control thread, under run_lock ---- */

/* Of one session_pair. */
struct recover_pair {
	struct recover rx;
	struct recover_sender tx[GDRCAP_QUEUES_MAX];
	uint64_t tx_errors;		    /* at the last look */
	bool tx_failing;		    /* they grew in it */
	uint32_t told;			    /* restarts of rx that were reported */
	bool rx_dead;			    /* no queue of rx is left */
	_Atomic int rx_removed, tx_removed; /* the cards were. Writer: EAL's interrupt thread */
};

/* Before the workers start. */
void recover_begin(struct gdrcap_session *session);
/* Looks where the last look is old enough. */
void recover_watch(struct gdrcap_session *session);
/* When the workers have ended: says what was not said yet. */
void recover_end(struct gdrcap_session *session);

#endif
