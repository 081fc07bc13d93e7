/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A send queue of our own on a ConnectX: its objects, from the ring's memory to the doorbell register.
 * Control code; what is done for each frame is done by whoever drives it, by sq_front.h.
 *
 * It needs no rule and no port of DPDK's: frames leave by the card's port as its queues' frames do.
 * Order: devx_open(), devx_key_create(), own_tx_create(), frames, own_tx_destroy(), ...
 *
 * A queue is reset under the run in three steps: own_tx_halt(), after which nothing more is sent or
 * completed; whoever drives it takes the completions that are left (sq_skip()) and forgets what was
 * posted (sq_restart()); own_tx_start().
 */
#ifndef GDRCAP_OWN_TX_H
#define GDRCAP_OWN_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "port/devx.h"
#include "port/own_memory.h"
#include "port/sq_front.h"

struct own_tx_config {
	struct devx_card *card;
	uint32_t key;	/* of the frames' memory: devx_key_create() */
	uint32_t slots; /* frames that can be out */
	/* Where ring, record and completions lie: HOST for a CPU thread; PINNED for the GPU too. */
	enum gdrcap_memory memory;
	int16_t gpu; /* gpudev id; not of HOST */
	/* A register that other queues of this card ring too; NULL: one of its own. */
	struct mlx5dv_devx_uar *uar;
};

struct own_tx {
	struct own_tx_config config;
	/* As a CPU reaches them. */
	struct sq_queue queue;

	struct own_memory rings, completions;
	struct devx_object domain, tis, cq, sq;
	struct mlx5dv_devx_uar *uar;
	bool own_uar;
	enum prm_state state; /* as far as it is known here */
};

/* Ready to send. On failure nothing is left. */
int own_tx_create(struct own_tx *tx, const struct own_tx_config *config,
		  struct gdrcap_error *error);
/* Nobody drives it any more. All zeros: nothing. A failure is that of the card or its driver, which
 * may still read its memory: that then stays. */
int own_tx_destroy(struct own_tx *tx, struct gdrcap_error *error);

/* `failed`: the card itself has stopped it. The record is 0 then. */
int own_tx_halt(struct own_tx *tx, bool failed, struct gdrcap_error *error);
int own_tx_start(struct own_tx *tx, struct gdrcap_error *error);

/* What a queue's state means, for people: after sq_poll() said that it no longer runs. */
void own_tx_explain(const struct sq_front *front, char *text, size_t bytes);

#endif
