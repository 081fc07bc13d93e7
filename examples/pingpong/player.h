/* SPDX-License-Identifier: BSD-3-Clause */
/* Who plays: kernels on a GPU (player_gpu.cu), or the CPU in their place (player_cpu.c). */
#ifndef PINGPONG_PLAYER_H
#define PINGPONG_PLAYER_H

#include <gdrcap.h>

#include "play.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Answers of one batch at most: one message is on its way, but hellos may gather. */
#define ANSWERS_MAX 8u

struct player_ops;

/* One way of one rank. */
struct player {
	const struct player_ops *ops;
	struct gdrcap_session *session;
	struct gdrcap_queue *queue;
	struct gdrcap_tx *tx;
	struct gdrcap_gpu_queue gpu_queue; /* stream-ordered and kernel-driven */
	struct gdrcap_gpu_tx gpu_tx;
	struct play *play; /* where it is played */
	struct progress *progress;
	struct play first; /* what it begins with, and how it ended */
	void *stream;	   /* NULL: the CPU */
	void *own;	   /* the player's */
	int gpu;
};

/* 0 or a negative errno. */
struct player_ops {
	const char *name;
	/* Allocates and loads all; before the start. */
	int (*open)(struct player *player);
	void (*close)(struct player *player);
	/* CPU-driven: writes a hello, or what frame `in` is answered with, to `out`, and waits for it: its length. */
	int (*hello)(struct player *player, uint8_t *out);
	int (*answer)(struct player *player, const uint8_t *in, uint32_t bytes, uint8_t *out);
	/* Puts a hello, as frame `seq`, into the stream; submits: itself. Waits for it. */
	int (*hello_queue)(struct player *player, uint64_t seq, bool submits);
	/* Puts the answers to batch `seq`, as frames tx_seq, ... into the stream. */
	int (*batch)(struct player *player, uint64_t seq, uint64_t tx_seq);
	/* Kernel-driven: plays until it is over, or the run is. */
	int (*run)(struct player *player);
	/* Waits for all of it, and fills in player->first, its trips included. */
	int (*end)(struct player *player);
};

extern const struct player_ops player_cpu;
#if defined(PINGPONG_GPU) || defined(__CUDACC__)
extern const struct player_ops player_gpu;
#endif

#ifdef __cplusplus
}
#endif

#endif
