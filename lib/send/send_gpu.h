/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send queue in the hands of a kernel that is already running: slots to it, lengths and a count back, in
 * memory that both sides read. The kernel's side: gdrcap_device_tx.cuh. Frame `seq` of the queue has the
 * slot that the worker put at seq & mask, and goes after frame seq - 1, so the kernel names no slot: it
 * cannot give one twice, nor one that it does not have. Orderings, by name:
 *
 * ROOM: the worker's add, release, to `room`, after the slot's entry, its length of 0 and the last access to
 * its memory, by the port too. Partner: the kernel's ld.acquire.sys in gdrcap_gpu_tx_reserve(). Without it
 * the kernel would write where a frame is being sent, or where a slot's entry of a round ago says.
 * SUBMIT: the kernel's st.release.sys of `submitted`, behind a barrier of the block, after frames and
 * lengths. Partner: the worker's acquire load in send_gpu_look(). Without it the port would send what lay
 * in the slot before, or as many bytes as its last frame had.
 * STOP: a bit of `room`, set by any thread. No data depends on it; it is in that word so that one read of
 * the CPU's memory is enough for both, and it is the one that lets a stream go that waits for room
 * (stream_count.h).
 * LATE: a stream's order to submit stands behind its wait for room, which STOP ends without any. So what a
 * stream submits once STOP is set may be more than there was room for, and the rest is nobody's.
 *
 * All that the kernel writes is untrusted: `submitted` is compared with the room that there was, a length
 * is read once and is the worker's to check, and nothing else is read of what the kernel can write. Tests:
 * tests/unit/test_send_gpu.c and its mutants, tests/gpu/test_send_litmus_cuda.cu.
 */
#ifndef GDRCAP_SEND_GPU_H
#define GDRCAP_SEND_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/stream_count.h"
#include "gdrcap.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SEND_GPU_STOP STREAM_COUNT_ENOUGH /* in `room` */

struct send_gpu {
	/* Read by both sides; room NULL: the queue is a CPU thread's. */
	uint64_t *room;			  /* slots given so far. Writer: the worker; STOP */
	uint64_t *submitted;		  /* frames so far. Writer: the kernel */
	struct gdrcap_gpu_tx_slot *slots; /* of frame seq & mask. Writer: the worker, before ROOM */
	uint32_t *bytes; /* of it. Writer: the kernel; the worker before ROOM, which makes it 0 */
	uint32_t mask;
	/* Streams submit: what has no length is left out, and LATE. Writer: the caller's threads, once. */
	uint32_t by_stream;
	/* The worker's own. */
	uint32_t count;	   /* slots */
	uint32_t *slot;	   /* which one frame seq & mask has */
	uint64_t *last;	   /* the number of the frame that had this slot last, + 1; 0: none did */
	uint64_t given;	   /* slots so far */
	uint64_t told;	   /* of them by ROOM */
	uint64_t accepted; /* frames so far */
};

/* Of the memory that a queue of `slots` shares with its kernel. */
size_t send_gpu_bytes(uint32_t slots);
/* `memory`: zeroed, aligned to 64. 0 or -ENOMEM. */
int send_gpu_init(struct send_gpu *gpu, void *memory, uint32_t slots);
/* Frees the worker's own. */
void send_gpu_fini(struct send_gpu *gpu);

/* What the kernel is told. */
struct gdrcap_gpu_tx send_gpu_view(const struct send_gpu *gpu, uint32_t bytes_max);

/* A slot that is free; `data` as the kernel addresses it. Each at most once until it was taken. */
void send_gpu_give(struct send_gpu *gpu, uint32_t slot, uint8_t *data);
/* ROOM: of all that were given. */
void send_gpu_tell(struct send_gpu *gpu);
/* SUBMIT: how many frames wait to be taken, in *count; false: the kernel says what cannot be. */
bool send_gpu_look(const struct send_gpu *gpu, uint64_t *count);
/* Streams submit from now on; before the first of them does. Any thread. */
void send_gpu_by_stream(struct send_gpu *gpu);
/* They do. */
bool send_gpu_is_by_stream(const struct send_gpu *gpu);
/* The slot of the next one; there is one. *bytes is what the kernel says. */
uint32_t send_gpu_take(struct send_gpu *gpu, uint32_t *bytes);
/* STOP; any thread, also several times. */
void send_gpu_stop(const struct send_gpu *gpu);

#ifdef __cplusplus
}
#endif

#endif
