/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames to files. The accountant shows every finished burst here before its slots go back; what is
 * wanted is copied (from GPU memory too, many frames at once) into a bounce buffer, from which a
 * thread of its own writes pcapng. Nothing here waits for the file: what the buffer cannot take,
 * and what would be taken while the accountant is behind (a few damaged frames excepted), is not
 * saved and counted. Where the ports are files, which can wait (`patient`), the accountant shows a
 * burst only when the buffer has room for all of it: save_has_room().
 *
 *   accountant -> save_burst() -> [list] -> save_flush(): gather -> bounce ring -> writer -> files
 */
#ifndef GDRCAP_SAVE_H
#define GDRCAP_SAVE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/burst_ring.h"
#include "gdrcap.h"
#include "kernels/kernels.h"
#include "pattern/frame_store.h"

struct ring_producer;
struct rx_clock;
struct save;

#define SAVE_AROUND_MAX 256u

struct save_config {
	const char *all;     /* path of --save, or "" */
	uint32_t every;	     /* of all frames: each N-th, 1: every one */
	const char *damaged; /* path of --save-damaged, or "" */
	uint32_t around;     /* frames of the same queue before and after a damaged one,
			  * 0..SAVE_AROUND_MAX */
	uint32_t
		stall_ms; /* a pipe whose reader, or a file whose system takes nothing for this long
			    * ends; 0: 10 s. A pipe at any time, a file in save_finish() */
	struct ring_producer *const *rings; /* by queue; kept */
	uint32_t queues;
	/* Whose ticks each queue's times are, copied. Queues with the same pointer share one copy,
	 * which the writer renews. NULL: the CPU's. A frame without a time gets that at which it is
	 * written: later than it came, but never the same for all. */
	const struct rx_clock *const *clocks;
	const char *const *names; /* of each queue's port, for the files; copied */
	bool patient; /* the ports lose nothing while they wait for slots (files): no frame is left out
		       * because many wait, or because the buffer is full */
	uint32_t slots;	    /* that a queue can have: those of its pool, and no more than what its
			 * port allows in flight. Frames are taken while fewer than half wait */
	uint32_t frame_max; /* longest frame in memory, bytes */
	bool dump;	    /* core dumps have the frames that wait to be written */
	size_t buffer_bytes; /* of the bounce buffer, rounded up to a power of two, and `patient` to what
			      * one burst may need; 0: 64 MiB */
	int16_t gpu;	     /* gpudev id: the bounce buffer is registered with it */
	const struct kernel_ops *ops;
	struct kernel_device *device;
	/* What the frames should be, for comments. Kept, not copied. */
	const struct frame_layout *layout;
	const struct pattern *pattern;
	const struct frame_store_view *expect; /* or NULL */
};

/* Opens the files and starts the writer on `cpus`. */
int save_create(struct save **save, const struct save_config *config, const cpu_set_t *cpus,
		struct gdrcap_error *error);

/* The accountant only, `patient`, before it shows a burst of `queue`: false while the writer has to
 * write first. True also where it writes no more, and where the queue has ended and the writer did
 * not get on for stall_ms: what the buffer cannot take is not saved then. */
bool save_has_room(struct save *save, uint32_t queue);
/* Any thread: the accountant was last told to wait. */
bool save_is_full(const struct save *save);
/* The accountant only: burst `burst` of queue `queue` is finished, its results can be read. */
void save_burst(struct save *save, uint32_t queue, uint64_t burst);
/* The accountant only, after some bursts: copies what is wanted of them. */
void save_flush(struct save *save);
/* After it, for `queue`: the number of the first burst whose slots must not go back yet (frames
 * before a damaged one that is still to come); `through` is the one after the last shown. Asked
 * again while nothing comes, it may say more: a queue that has ended needs none of them. */
uint64_t save_hold(const struct save *save, uint32_t queue, uint64_t through);
/* The accountant only: no burst will be shown any more. */
void save_end(struct save *save);

/* While it runs, frames in the buffer are in none of these; after save_finish() the sums are all
 * that was wanted. */
struct save_counts {
	uint64_t saved, missed; /* frames written to --save, and that could not be taken */
	/* The same of --save-damaged, frames around included. */
	uint64_t damaged_saved, damaged_missed;
	int error; /* negative errno that ended the writing (disk full), else 0 */
};
void save_counts(const struct save *save, struct save_counts *counts);

/* What the port lost, for the files' statistics. Before save_finish(). */
void save_set_lost(struct save *save, uint32_t queue, uint64_t received, uint64_t lost);
/* Writes what is in the buffer, ends the writer and closes the files. 0, or why they are not
 * whole; asked again, the same. A writer whose file system does not answer is left behind, with
 * the little memory that it may still touch; another one writes the other file. */
int save_finish(struct save *save, struct gdrcap_error *error);
void save_destroy(struct save *save);
/* True on the writer's own thread. */
bool save_is_writer(const struct save *save);
/* At the end of the process, when the accountant has left: tells the writer to end with what is in
 * the buffer. True when it has. Any thread; frees nothing. */
bool save_leave(struct save *save);

#endif
