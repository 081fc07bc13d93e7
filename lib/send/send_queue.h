/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send queue in the hands of the caller: slots go from the caller's thread to a worker that hands
 * them to the port, and come back. Two rings of one producer and one consumer each, and no mempool call
 * on the caller's side.
 *
 * All mbufs of the queue's pool are the queue's: one that lies in the pool is one that the port, or on a
 * wire the receiver, has given back. So that nobody keeps any, and they come back in their order, the pool
 * has no caches.
 *
 * Names of the orderings, as in docs/design.md: SUBMIT, TAKE OVER; OPEN; BACK, HARVEST; CLOSE; LEFT.
 */
#ifndef GDRCAP_SEND_QUEUE_H
#define GDRCAP_SEND_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread.h"
#include "capture/ring_producer.h"
#include "base/rest.h"
#include "capture/ring_wake.h"
#include "gdrcap.h"
#include "kernels/kernels.h"
#include "send/send_gpu.h"
#include "send/send_memory.h"

#include <rte_mbuf_core.h>

#define SEND_LINE 64
#define SEND_UNSENT 0x80000000u /* in `back`: the run ended before */
#define SEND_IN_TWO 0x80000000u /* in `bytes`: the frame has two pieces */
#define SEND_CLOSED UINT64_MAX	/* submitted: nothing more can be */
#define SEND_BURST_MOST 256u
#define SEND_BYTES_MIN 60u  /* of an Ethernet frame without FCS */
#define SEND_DIRECT_US 200u /* `direct`: the worker looks as often where all is handed over */

struct rte_mbuf;
struct rte_mempool;
struct region;

/* SEND_TELL: submitted, and to be told. */
enum send_state { SEND_FREE, SEND_RESERVED, SEND_SUBMITTED, SEND_TELL, SEND_TOLD };

/* A frame on its way to the worker. A slot's number, not its mbuf: no line of an mbuf moves between the
 * caller's core and the worker's, which fills it in and has it back from the port. */
struct send_entry {
	uint32_t slot;
	uint32_t bytes; /* SEND_IN_TWO */
};

/* Of a slot, where the port takes two pieces. Writer: the caller's thread. */
struct send_pieces {
	struct rte_mbuf *segment; /* the second */
	struct rte_mbuf_ext_shared_info shared;
};
/* The same slot's, of a frame in two pieces; `left` is 0 else. Writer: the caller's thread; from SUBMIT to BACK the
 * worker. */
struct send_parts {
	uint8_t left;	/* mbufs that are not back */
	uint8_t memory; /* of the payload, and 1; of no meaning where none is left */
};

/* Frames from number `first` on wait. Writer: the caller's thread before SUBMIT; `open`: any, once. */
struct send_gate {
	uint64_t first;
	uint64_t due;	   /* tick of the TSC; 0: at once */
	struct wake *work; /* of whoever waits for it */
	_Atomic int open;
};

struct send_config {
	uint16_t port, queue;
	uint32_t burst;
	const struct region *region;
	struct rte_mempool *pool;
	const struct kernel_ops *ops;
	struct kernel_device *device;
	struct send_memory *memories; /* SEND_MEMORIES of them */
	struct rte_mempool
		*segments;  /* mbufs without memory for second pieces, as many as slots; NULL:
				       * the port sends one piece only */
	uint32_t bytes_max; /* of a frame in memory */
	_Atomic int *turn; /* of a port whose queues send their first frame one after the other: its
			     * driver registers memory then; NULL: they need not */
	bool device_is_gpu; /* and cannot read memory of kind HOST */
	uint32_t idle_us;   /* an idle worker sleeps for so long at most; 0: it polls */
	bool wire; /* a software wire in this process: who receives gives slots back, and wakes the worker */
	bool direct; /* who submits hands over to the port himself: send_direct.c */
	void *gpu; /* send_gpu_bytes(gpu_slots) that a running kernel shares, zeroed; NULL: the frames
		    * are a thread's of the caller's */
	uint32_t gpu_slots; /* at least the pool's */
};

enum send_phase { SEND_RUN, SEND_PAUSE };

/* Whether frames are held back. Nobody has looked yet: the port may well take them, and that is no stall. */
enum send_hold { SEND_LINK_UP, SEND_LINK_UNSEEN, SEND_LINK_DOWN };

/* What an mbuf that comes back may have lost, from rearm_data on: to be written in one go. */
struct direct_mbuf {
	uint64_t rearm, ol_flags;
};

struct gdrcap_tx {
	/* Before the start. */
	struct send_config config;
	struct rte_mbuf **mbufs;    /* of slots; the worker's to read */
	struct send_pieces *pieces; /* of slots; NULL: the port sends one piece only */
	struct send_parts *parts;   /* with `pieces` */
	struct direct_mbuf fresh;   /* of each of the pool */
	uint8_t *data; /* where the frame of slot 0 begins, for the caller's CPU or kernels */
	uint32_t slot_shift;
	uint32_t slot_count;
	uint32_t slot_first; /* number in the region of slot 0 */
	uint32_t
		mask; /* of the rings below: at least as many entries as slots, so none runs over */
	struct send_entry
		*entries; /* of frame i & mask. Writer: caller; reader: worker, after TAKE OVER */
	struct send_gate *gates; /* of gate g & mask: at most one a frame */
	uint32_t *back; /* slots that came back. Writer: worker; reader: caller, after HARVEST */
	uint64_t tsc_hz;
	bool asks; /* the driver looks for what was sent when it is asked for its descriptors */

	/* The caller's thread. */
	_Alignas(SEND_LINE) uint32_t *free; /* a stack: the last one back is the first to go */
	uint32_t free_count;
	uint8_t *state; /* of slots: enum send_state */
	uint64_t *tag;	/* of slots that are to be told */
	uint32_t *told; /* a ring: slots that gdrcap_tx_poll() is to tell; SEND_UNSENT */
	uint64_t told_first, told_end;
	uint64_t harvested;  /* of `back` */
	uint64_t next, gate; /* numbers of the next frame and gate */
	uint64_t pending;    /* slots that are with the worker */
	struct send_lent lent[SEND_MEMORIES];

	/* Writer: the caller's thread; the worker once, CLOSE. Reader: worker. */
	_Alignas(SEND_LINE) _Atomic uint64_t submitted; /* frames; SEND_CLOSED */
	_Atomic uint64_t gates_set;
	_Atomic uint64_t closed_at; /* what `submitted` was before. Writer: worker */

	/* Worker only; `direct`: whoever has taken the port. */
	_Alignas(SEND_LINE) uint64_t taken; /* frames that the port has, or that were given up */
	uint64_t gates_passed;
	uint64_t at_back; /* next in `back` */
	struct thread_naps naps;
	struct rest rest; /* not with `direct` or a running kernel */
	/* Who receives on the same wire: before the start; NULL: nobody here. */
	struct wake *receiver;

	/* Writer: the same. Readers: anybody, relaxed; `returned`: the caller's thread. */
	_Alignas(SEND_LINE) _Atomic uint64_t returned; /* of `back` */
	_Atomic uint64_t sent, bytes_sent, stalled, unsent, idle;
	_Atomic uint64_t at_port; /* first pieces that the port has not given back */
	_Atomic uint64_t segments_at_port;
	_Atomic uint64_t first_tsc, last_tsc;
	_Atomic int paused;
	_Atomic int finished;

	/* Writer: control. Reader: worker; `stop`: the caller's thread too. */
	_Alignas(SEND_LINE) _Atomic int stop;
	_Atomic int hold;  /* enum send_hold: hand nothing over unless the link is up */
	_Atomic int phase; /* enum send_phase */

	/* `direct`: somebody has the port. PORT: whoever makes it 1 may use the port and what is the
	 * worker's, until the release store of 0. Writer: worker, the caller's thread. */
	_Alignas(SEND_LINE) _Atomic int port_taken;

	/* Both of them, where the caller sleeps. */
	_Alignas(SEND_LINE) struct ring_wake wake;
	/* What the worker sleeps on: who submits, opens a gate, gives slots back or ends the run wakes it. */
	struct wake work;

	/* A running kernel in the place of the caller's thread, whose part the worker plays then. */
	_Alignas(SEND_LINE) struct send_gpu gpu;
	_Atomic uint64_t refused; /* frames. Writer: worker */
	uint64_t refused_seq;	  /* the first of them; before the release of `refused` */
	uint32_t refused_bytes;	  /* its length */
	uint64_t gpu_submitted;	  /* what cannot be; before the release of `gpu_fault` */
	_Atomic int gpu_fault;	  /* the kernel said that. Writer: worker */
	_Atomic bool started;	  /* streams may wait: the run's end will let them go */

	struct thread thread;
};

/* True when all of the frame is back; part of it is, by who collects. */
static inline bool send_part_back(struct gdrcap_tx *tx, uint32_t slot)
{
	struct send_parts *parts;

	if (!tx->parts)
		return true;
	parts = &tx->parts[slot];
	if (__builtin_expect(parts->left, 0) == 0)
		return true;
	if (--parts->left)
		return false;
	counter_add(&tx->lent[parts->memory - 1].freed, 1);
	return true;
}

/* The caller's thread: the slot is free, or to be told. `entry`: as in `back`. */
static inline void send_slot_back(struct gdrcap_tx *tx, uint32_t at, uint32_t entry)
{
	if (__builtin_expect(tx->state[at] == SEND_TELL, 0)) {
		tx->state[at] = SEND_TOLD;
		tx->told[tx->told_end++ & tx->mask] = entry;
	} else {
		tx->state[at] = SEND_FREE;
		tx->free[tx->free_count++] = at;
	}
}

static inline uint8_t *send_data(const struct gdrcap_tx *tx, uint32_t slot)
{
	return tx->data + ((size_t)slot << tx->slot_shift);
}

/* After its port was started, which takes the pool's mbufs that it needs for itself. */
int send_create(struct gdrcap_tx *tx, const struct send_config *config, struct gdrcap_error *error);
void send_destroy(struct gdrcap_tx *tx);
/* The thread's body, by whose the frames are. */
void send_worker_run(void *tx);
void send_gpu_run(void *tx);
static inline void (*send_body(const struct gdrcap_tx *tx))(void *tx)
{
	return tx->gpu.room ? send_gpu_run : send_worker_run;
}
/* Frame `i` of an array as submitted: 0, or what is wrong with it. */
int send_frame_check(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frame, unsigned int i,
		     uint64_t time_most, struct gdrcap_error *error);
/* Takes what the port has given back: by the worker, and after it has left by the caller's thread. How
 * many. */
uint32_t send_collect(struct gdrcap_tx *tx);
/* The same for second pieces. */
uint32_t send_collect_segments(struct gdrcap_tx *tx);
/* A driver that gives memory back only with the next frame is asked to look. Who collects. */
void send_ask(const struct gdrcap_tx *tx);

/* ---- frames of two pieces, in the caller's thread: send_pieces.c ---- */

/* LEND: all payloads, whose memories send_frame_check() has found, or none. */
int send_lend(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count,
	      struct gdrcap_error *error);
/* They are not sent after all. */
void send_lend_back(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count);
/* The second piece is the caller's memory itself. */
void send_segment(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frame);

/* ---- in the caller's thread, without the worker: send_direct.c ---- */

/* Takes the port; false: the worker has it, and keeps it for longer than this thread waits. */
bool send_port_take(struct gdrcap_tx *tx);
void send_port_leave(struct gdrcap_tx *tx);
/* Frames that need nothing but the port, where none waits before them: handed over, or in the ring. False:
 * nothing was done, and they may be wrong. */
bool send_direct(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames, unsigned int count);
/* HARVEST: slots that the worker has given back are free, or wait to be told. */
void send_harvest(struct gdrcap_tx *tx);
/* What waits in the ring and may go, to the port; what the port has given back is free, or waits to be told,
 * or is reserved at once, up to `max` of it (0: none): how many. */
uint32_t send_direct_look(struct gdrcap_tx *tx, struct gdrcap_tx_frame *frames, uint32_t max);

/* ---- for both bodies: send_worker.c ---- */

/* Frames that the port took. *due: when the next may go, where a time is what it waits for. */
uint32_t send_hand_over(struct gdrcap_tx *tx, uint64_t *due);
/* There was nothing to do, `idle` times. */
void send_wait(struct gdrcap_tx *tx, unsigned int idle, uint64_t due);
/* To the port, the first one in turn with other queues: how many it took. */
uint16_t send_burst(struct gdrcap_tx *tx, struct rte_mbuf **mbufs, uint16_t n);
/* `bytes` of `taken` frames are at the port since `now`, a tick. */
void send_count(struct gdrcap_tx *tx, uint32_t taken, uint64_t bytes, uint64_t now);
/* PAUSE, until the port is started again. */
void send_pause(struct gdrcap_tx *tx);
/* After a stop: what may still go, for a while; then the rest is given up and said to be. */
void send_offer(struct gdrcap_tx *tx);
void send_close(struct gdrcap_tx *tx);

#endif
