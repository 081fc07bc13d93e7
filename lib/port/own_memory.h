/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of rings and records that a card shares with whoever runs our own queues: a CPU thread or a
 * GPU. Control code. */
#ifndef GDRCAP_OWN_MEMORY_H
#define GDRCAP_OWN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "port/devx.h"

struct own_memory_config {
	enum gdrcap_memory kind; /* HOST; PINNED: the GPU reaches it, too; DEVICE: the GPU's own */
	int16_t gpu;		 /* gpudev id; not of HOST */
	bool cpu_front;		 /* DEVICE: a CPU thread reads and writes it, by a mapping */
	size_t bytes;		 /* rounded up to pages of 64 KiB */
	const char *what;	 /* for error texts: "the completion queue" */
};

struct own_memory {
	uint8_t *base;	/* as it was got: the GPU's address */
	uint8_t *front; /* as whoever runs the queue reaches it */
	size_t bytes;
	enum gdrcap_memory kind;
	int16_t gpu;
	bool registered, mapped; /* with the GPU; for the CPU */
	struct devx_umem umem;
};

/* Zeros, but where it is a GPU's that the CPU does not reach. */
int own_memory_create(struct devx_card *card, struct own_memory *memory,
		      const struct own_memory_config *config, struct gdrcap_error *error);
/* No queue of the card may use it any more. All zeros: nothing. */
void own_memory_destroy(struct own_memory *memory);

#endif
