/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file's frames in memory that the device can read (frame_store.h): all of them at once, or, of a
 * file that is larger than it may take, a window that a thread keeps filled ahead of the sender.
 *
 * A streamed store's frames[] and data are rings. Orderings:
 *   FILL   reader thread: store-release of `filled` after frames, data and times.
 *          partner: the tx worker's load-acquire in file_frames_ready().
 *   USED   tx worker: store-release of `used` after the device's last read of the frames
 *          (COLLECT).
 *          partner: the reader thread's load-acquire before it writes over them.
 */
#ifndef GDRCAP_FILE_FRAMES_H
#define GDRCAP_FILE_FRAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread.h"
#include "gdrcap.h"
#include "pattern/frame_store.h"
#include "replay/pcap_file.h"

#define FILE_FRAMES_LINE 64

/* Memory that the device reads too. */
struct file_memory {
	void *base;
	size_t bytes;
	int16_t gpu;
	bool registered;
};

struct file_frames {
	struct frame_store_view view;
	uint64_t *
		time_ns; /* by index in frames[]: when it is due since the first; CPU only. Never falls:
			    * a frame whose time is before an earlier frame's is due with that one */
	uint64_t span_ns; /* from the first frame to the last, and the mean gap: a loop */
	uint64_t count;	  /* frames of the file */
	uint64_t bytes;	  /* their lengths in memory */
	uint32_t len_max; /* longest frame; known before streaming too: files are scanned once */
	bool streamed;
	struct file_memory memory, table;
	/* The same as in the view, for the thread that writes them. */
	struct store_frame *frames;
	uint8_t *data;
	/* Streamed: the reader thread. */
	struct pcap_file *file;
	struct thread thread;
	uint64_t loops;	    /* to read; UINT64_MAX: for ever */
	uint64_t data_head; /* offset in data after the newest frame */
	_Alignas(FILE_FRAMES_LINE) _Atomic uint64_t filled; /* frames in the window's history, loops
							     * included; writer: reader */
	_Atomic int failed; /* negative errno: the file broke off; `error` says why */
	struct gdrcap_error error;
	_Alignas(FILE_FRAMES_LINE) _Atomic uint64_t used; /* of them no longer needed; writer: the
							   * tx worker */
	_Atomic int stop;
};

/* What a scan of a file finds; before memory and EAL are there, so that slots can be sized. */
struct file_scan {
	uint64_t frames, bytes;
	uint64_t first_ns, last_ns; /* last: the latest time */
	uint64_t steps_back;	    /* frames whose time is before that of the frame before them */
	uint64_t gap_max_ns; /* longest time between two frames that are due one after the other */
	uint64_t data_bytes; /* that the frames take in a store */
	uint32_t len_min, len_max;
	uint64_t refused; /* frames that no rule of `match` names; they are in nothing else here */
};
/* Reads the whole file once, telling how far it is where that takes long. A file without frames, or
 * without one that `match` accepts, is an error. `match` NULL: all frames. */
int file_frames_scan(const char *path, const struct frame_match *match, struct file_scan *scan,
		     struct gdrcap_error *error);

struct file_frames_config {
	const char *path;
	const struct file_scan *scan;
	const struct frame_match *match; /* as of the scan */
	int16_t gpu;	   /* gpudev id: the memory is registered with it; negative: with none */
	size_t memory_max; /* bytes; a file that needs more is streamed. For `expect`: refused */
	bool expect;	   /* build classes and the hash table */
	bool dump;	   /* core dumps have them */
	uint64_t loops;	   /* replay: how often the file is played; 0: for ever */
};
int file_frames_create(struct file_frames **frames, const struct file_frames_config *config,
		       struct gdrcap_error *error);
/* Streamed: starts the reader. */
int file_frames_start(struct file_frames *frames, const cpu_set_t *cpus,
		      struct gdrcap_error *error);
void file_frames_destroy(struct file_frames *frames);

/*
 * The tx worker, for frame number `from` of the run (loops included): how many frames from there on
 * are there and lie next to each other in frames[]; *index is where. 0: none yet.
 */
uint32_t file_frames_ready(const struct file_frames *frames, uint64_t from, uint32_t *index);

/*
 * The class table, built from view.frames and view.data: for tests and for `expect`. Fills
 * class_first of `frames`, and of *view what the table is; *buckets is the caller's to free(). Its
 * size is bucket_mask + 1 entries in a block of whole 64 KiB. 0, or -ENOMEM.
 */
int file_frames_index(struct frame_store_view *view, struct store_frame *frames,
		      struct store_bucket **buckets);
/* The most bytes that such a table, and making it, take. */
size_t file_frames_index_bytes(uint64_t frames);

#endif
