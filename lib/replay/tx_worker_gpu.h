/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sender on the GPU, as its queue's CPU thread has it: what both share, and what the thread does
 * meanwhile. It sleeps, copies the kernel's counts, mends a queue that the card has stopped, rings
 * where the kernel cannot (PROXY of kernels/send.h), and has queue and ring back when the kernel has left.
 * Between start and stop it touches no ring and no frame.
 */
#ifndef GDRCAP_TX_WORKER_GPU_H
#define GDRCAP_TX_WORKER_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/send.h"
#include "replay/tx_own.h"

struct tx_worker;

struct tx_gpu_config {
	const struct kernel_ops *ops;
	struct kernel_device *device;
	int16_t gpu; /* gpudev id */
};

struct tx_gpu {
	struct tx_gpu_config config;
	/* Pinned. */
	struct send_words *words;
	struct send_status *status;
	struct send_place *place;
	struct sq_mark *mark;
	void *memory;
	bool registered;

	uint8_t *tables; /* GPU memory: slots, sizes */
	size_t sizes_at;
	uint64_t *bell;	     /* the register as kernels have it; NULL: the thread rings */
	uint64_t *host_bell; /* as the CPU has it */
	bool bell_plain;     /* it is memory: a card in software */
	char why[200];	     /* bell NULL: why */
	uint64_t rung;	     /* of status->rings */
	uint32_t resumes;    /* as told */
	uint64_t began_tsc;
};

/* For a worker that exists, with a queue of ours in pinned memory; before kernels run. */
int tx_gpu_create(struct tx_gpu *gpu, const struct tx_gpu_config *config,
		  const struct tx_worker *worker, struct gdrcap_error *error);
void tx_gpu_destroy(struct tx_gpu *gpu);
/* What the kernel is to be given, from now on; `wall_ns`: the time of day. */
void tx_gpu_show(struct tx_gpu *gpu, const struct tx_worker *worker, struct kernel_send *send,
		 uint64_t wall_ns);
/* The thread's part until the kernel has left. False: it was told to and does not, so queue and ring stay
 * its own. */
bool tx_gpu_run(struct tx_gpu *gpu, struct tx_worker *worker);

#endif
