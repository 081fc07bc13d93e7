/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the host side (device.cu, workers.cu, job_upload.cu) and the persistent kernels (check.cu, check_store.cu,
 * write.cu) share. Inside kernels/cuda only.
 */
#ifndef GDRCAP_CUDA_JOB_CUH
#define GDRCAP_CUDA_JOB_CUH

#include <cuda_runtime.h>

#include "kernels/front.h"
#include "kernels/kernels.h"
#include "kernels/send.h"

/*
 * A block is two ring warps (take, done) and the warps that work on frames, in groups. At least 256
 * threads a group, one a frame of a burst; 30 warps with the ring warps make the largest block
 * there is.
 */
#define RING_THREADS 64u
#define WORK_THREADS_SMALL 256u
#define SEND_THREADS 256u /* of a sender's block */
#define WORK_THREADS_LARGE 960u
/* Groups of work threads in a block, each with a burst of its own (ring.cuh). */
#define GROUPS_MAX 3u
static_assert(WORK_THREADS_SMALL >= BURST_FRAMES_MAX &&
		      WORK_THREADS_LARGE / GROUPS_MAX >= BURST_FRAMES_MAX &&
		      WORK_THREADS_LARGE % (32 * GROUPS_MAX) == 0 &&
		      WORK_THREADS_LARGE % (32 * 2) == 0,
	      "a thread a frame, whole warps");

/*
 * Tables for PRBS by word (prbs.cuh): how 32 bits continue 32 * lane bits on, for each lane, and
 * 1024 bits on. By nibble of the word: [8][16][32] and [8][16] words.
 */
#define PRBS_LANE_WORDS (8u * 16u * 32u)
#define PRBS_STEP_WORDS (8u * 16u)

/* A running job. In device memory; all pointers are the device's. */
struct device_job {
	struct frame_layout layout;
	struct frame_look look; /* of own frames */
	struct pattern pattern;
	struct frame_store_view store; /* of jobs that have one */
	const struct burst_ring_view *rings;
	const uint32_t *crc_table;   /* 256 words */
	const uint32_t *prbs_tables; /* lane table, then step table; see prbs_tables_needed() */
	uint32_t *started;	     /* pinned: one word a block, 1: it runs; writers: blocks */
	const uint32_t *gate;	     /* pinned: writer: start() */
	uint32_t workers_per_ring;
	uint32_t groups; /* of work threads in a block; 0: one */
	union {
		const struct place_view *places;   /* KERNEL_PLACE */
		const struct kernel_front *fronts; /* KERNEL_FRONT: of each ring */
		const struct kernel_send *sends;   /* KERNEL_SEND: of each ring */
	};
	uint32_t place_count;
	uint32_t reserved;
};

enum gate_state {
	GATE_SHUT = 0, /* blocks wait: some are not running yet */
	GATE_OPEN = 1,
	GATE_LEAVE = 2, /* not all can run at the same time: give up */
};

/* A kernel as the host side sees it. */
struct kernel_program {
	const char *name;
	const void
		*entry; /* __global__ function of (const struct device_job *), or as its id says */
	size_t shared_bytes;	/* dynamic shared memory of a block with one group */
	size_t group_bytes = 0; /* of each further group; 0: there can be one only */
	uint32_t threads =
		0; /* of a block of one that is finite, launched again and again; 0: it runs on */
};

/* One body may be built several times: what a job does not need costs it no register. */
enum kernel_program_id {
	PROGRAM_CHECK,		  /* own frames, no match rules; a PRBS or not checked */
	PROGRAM_CHECK_ANY_FORMAT, /* any layout, with or without rules */
	PROGRAM_CHECK_PATTERN,	  /* as the first, any pattern */
	PROGRAM_CHECK_ANY_FORMAT_PATTERN,
	PROGRAM_CHECK_STORE, /* frames expected from a file */
	/* header-data split, or the stale-read detector: */
	PROGRAM_CHECK_SPLIT_OR_STALE, /* any layout and pattern */
	PROGRAM_CHECK_STORE_SPLIT_OR_STALE,
	PROGRAM_WRITE,
	PROGRAM_WRITE_STORE, /* frames of a file */
	PROGRAM_PLACE,
	PROGRAM_PLACE_LAUNCH, /* finite: (const struct device_job *, struct place_launch) */
	PROGRAM_PLACE_CLOSE,  /* finite: place.cu */
	PROGRAM_PLACE_CLOSE_WHOLE,
	PROGRAM_FRONT,
	PROGRAM_SEND,
	PROGRAMS
};

struct kernel_program check_program(void);
struct kernel_program check_any_format_program(void);
struct kernel_program check_pattern_program(void);
struct kernel_program check_any_format_pattern_program(void);
struct kernel_program check_store_program(void);
struct kernel_program check_split_or_stale_program(void);
struct kernel_program check_store_split_or_stale_program(void);
struct kernel_program write_program(void);
struct kernel_program write_store_program(void);
struct kernel_program place_program(void);
struct kernel_program place_launch_program(void);
struct kernel_program place_close_program(void);
struct kernel_program place_close_whole_program(void);
struct kernel_program front_program(void);
struct kernel_program send_program(void);

/* Host: fills `tables` (PRBS_LANE_WORDS + PRBS_STEP_WORDS) for the polynomial x^degree + x^tap + 1.
 */
void prbs_tables_build(uint32_t *tables, uint32_t degree, uint32_t tap);

#endif
