/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside lib/save only: what the accountant's side (save_take.c), the writer (save_writer.c) and
 * control (save.c) share.
 *
 * Between the first two is the bounce buffer: records, each a multiple of SAVE_ALIGN bytes, in a
 * circle; head and tail count bytes and never wrap. A record lies in one piece: where the end of
 * the circle is too near, one that says SAVE_SKIP fills it. Orderings, by name:
 *   HAND_OVER  accountant: store-release of head after gather() has copied the records' frames.
 *              partner: the writer's load-acquire of head before it reads them.
 *   ROOM       writer: store-release of tail after its last look at a record.
 *              partner: the accountant's load-acquire of tail before it writes there again.
 */
#ifndef GDRCAP_SAVE_INTERNAL_H
#define GDRCAP_SAVE_INTERNAL_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/thread.h"
#include "capture/ring_producer.h"
#include "port/rx_clock.h"
#include "save/comment.h"
#include "save/pcapng.h"
#include "save/save.h"

#define SAVE_ALIGN 64u

/* Files, and bits of them. */
enum save_index {
	SAVE_ALL,
	SAVE_DAMAGED,
	SAVE_FILES,
};

enum save_kind {
	SAVE_SKIP, /* nothing but `bytes` holds */
	SAVE_FRAME,
};

/* One frame, or a gap; the frame's bytes follow. Writer: accountant. */
struct save_record {
	uint32_t bytes; /* of all */
	uint16_t kind;	/* enum save_kind */
	/* 1 << SAVE_ALL, 1 << SAVE_DAMAGED; the writer clears them before it writes, so that one
	 * which takes over from another that was given up does not write it again. */
	uint16_t files;
	uint32_t queue;
	int32_t distance; /* frames after a damaged one, below 0 before; 0: no neighbour of one */
	uint32_t captured, length;    /* bytes of the frame here, and that it had in memory */
	uint64_t ticks;		      /* when it came; 0: nobody knows */
	uint64_t dropped[SAVE_FILES]; /* of this queue, before it, that were not taken */
	struct frame_record found;    /* damaged: what was found */
	uint8_t reserved[32];
};
_Static_assert(sizeof(struct save_record) % SAVE_ALIGN == 0, "frames begin at cache lines");

/* Frames of a queue are numbered from 0 as they were received: the descriptor of frame n has the
 * free-running index base + n. */
struct save_queue {
	/* Accountant only. */
	bool started;
	uint32_t base;
	uint64_t shown;	     /* frames of bursts that were shown */
	uint64_t seen, held; /* number of the burst after the last shown; of the first kept back */
	uint64_t kept;	     /* number of the first frame of burst `held` */
	uint64_t until;	     /* frames up to and with the next of --save; UINT64_MAX: none */
	uint64_t next;	     /* frames below it are in --save-damaged, or missed there */
	uint32_t after;	     /* this many more are wanted after a damaged one */
	bool behind;	     /* too many slots wait: nothing is taken */
	uint64_t dropped[SAVE_FILES]; /* not taken since the last that was */
	uint64_t missed[SAVE_FILES], wanted[SAVE_FILES];

	/* Writer only. */
	_Alignas(RING_LINE) uint64_t last_ns; /* time of the last frame */
	struct rx_clock *clock;		      /* of its frames' times, in save->clocks */
	uint64_t saved[SAVE_FILES];

	/* Control, before save_finish(). */
	bool port_known;
	uint64_t port_received, port_lost;
};

struct save_file {
	char *path;	      /* NULL: not wanted */
	struct pcapng pcapng; /* the writer's while it found, else control's */
	uint64_t taken;	      /* the writer's, as pcapng: records for it */
	/* Writer: accountant. */
	_Alignas(RING_LINE) _Atomic uint64_t missed;
	/* Writer: the writer. `lost` were taken, and are not in the file. */
	_Alignas(RING_LINE) _Atomic uint64_t saved;
	_Atomic uint64_t lost;
	_Atomic int error; /* negative errno that ended it */
};

struct save_bounce {
	uint8_t *base;
	size_t bytes; /* a power of two */
	bool registered;
	/* Accountant only. */
	uint64_t filled; /* where the next record goes; head after the next gather() */
	uint64_t room;	 /* tail as last seen */
	_Alignas(RING_LINE) _Atomic uint64_t head; /* HAND_OVER */
	_Alignas(RING_LINE) _Atomic uint64_t tail; /* ROOM */
};

struct save {
	struct ring_producer *const *rings;
	struct save_queue *queues;
	uint32_t queue_count;
	uint32_t every, around, slots, frame_max;
	bool patient;
	int16_t gpu;
	const struct kernel_ops *ops;
	struct kernel_device *device;
	struct comment_reference reference;
	struct save_file files[SAVE_FILES];

	/* Accountant only. */
	struct kernel_copy *copies; /* KERNEL_COPIES_MAX */
	uint32_t listed;	    /* copies to be made */
	bool ended;		    /* no burst will be shown any more */
	bool broken;		    /* gather() failed: nothing is taken any more */
	struct patience patience;   /* with a writer that is waited for, and ... */
	uint64_t progress;	    /* ... how far it was */
	_Atomic bool full;	    /* writer: accountant. The last save_has_room() said no */

	uint64_t burst_bytes; /* of the buffer, that a burst may need */
	struct save_bounce bounce;

	/* Writer: accountant, once; the text before the code, which is released. */
	char gather_text[200];
	_Atomic int gather_error;

	/* Control. */
	_Alignas(RING_LINE) _Atomic int stop; /* no record will come any more */
	/* The writer's while it found. The first is the CPU's, the others are of ports. */
	struct rx_clock *clocks;
	uint32_t clock_count;
	uint64_t start_ns;
	uint32_t stall_ms;
	struct thread writer;
	bool finished;
	int result; /* of save_finish() */
	struct gdrcap_error result_error;
};

/* The writer thread's body. */
void save_writer_run(void *save);
/* A number that changes when the writer gets on, and whether that has no core. */
uint64_t save_writer_progress(const struct save *save);
bool save_writer_is_starved(void *save);
/* Bytes of the record of a frame that has so many. */
static inline uint32_t save_record_bytes(uint32_t captured)
{
	return ((uint32_t)sizeof(struct save_record) + captured + SAVE_ALIGN - 1) / SAVE_ALIGN *
	       SAVE_ALIGN;
}
/* Why a file could not be written. */
const char *save_file_why(const struct save_file *file, int error);

#endif
