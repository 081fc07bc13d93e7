/* SPDX-License-Identifier: BSD-3-Clause */
/* A software card whose receive queues are our own: what the tests of them have in common. Frames
 * come from the driver's port 0 over the cable to port 1. */
#ifndef SOFT_OWN_RIG_H
#define SOFT_OWN_RIG_H

#include <infiniband/mlx5dv.h>

#include "port/own_rx.h"
#include "port/port.h"
#include "port/steering.h"
#include "rig.h"

#define OWN_QUEUES 4
#define OWN_SLOT_SHIFT 14   /* 16 KiB: a slot takes any frame */
#define OWN_STRIDE_SHIFT 13 /* 8 KiB: the longest stride that there is */
#define OWN_FRAME_MAX 9018
#define OWN_STRIDES 16u /* of a work entry, where queues are not cyclic */
#define OWN_RECEIVER "0000:aa:00.1"

/* A queue and the test's own front: as little as there can be. */
struct own_queue {
	struct own_rx rx;
	uint32_t index; /* of the next completion */
	uint32_t next;	/* place of a work entry that it is of (capture/cq_front.h) */
	uint32_t posted;
	bool far; /* the test reaches the rings by copies alone: they are read to, or written from */
	struct mlx5_cqe64 copy;
};

struct own_rig {
	struct rig_memory sent, slots; /* of frames; the CPU may not touch either */
	struct rte_mempool *pool;
	struct port port[2];
	struct devx_card card;
	struct ibv_mr *key;
	struct own_queue queue[OWN_QUEUES];
	uint32_t queues;
	struct steering steering;
	/* Where a queue's rings lie: host memory; a GPU's, which gpu_host stands in for; or, with the
	 * slots, a CUDA device's. */
	bool in_gpu, record_beside, cuda;
	int16_t gpu;
	uint32_t strides; /* of a work entry; 0: queues are cyclic */
	const char *rule; /* NULL: frames of RIG_ETHERTYPE */
	uint64_t number;  /* of the next frame that is sent */
};

/* All rings and slots in memory of a CUDA device; before own_rig_setup(). False: there is none. */
bool own_rig_cuda(void);

/* Queues with so many strides a work entry; before own_rig_setup(). */
void own_rig_strides(uint32_t strides);

/* EAL without ports; the arguments' "devx" or "verbs" says what the cards can. Exits on an error. */
void own_rig_init(int argc, char **argv);
/* Both ports open and started, the second one without queues of the driver's. For a group's setup. */
int own_rig_setup(void **state);
int own_rig_teardown(void **state);
/* For a test's teardown: rules and queues gone, faults off. */
int own_rig_reset(void **state);

/* So many queues of `slots` slots of 1 << shift bytes each, all posted, and a rule for
 * RIG_ETHERTYPE to them. */
void own_rig_queues(struct own_rig *rig, uint32_t queues, uint32_t slots, uint32_t shift);
/* The same without rule, posting and start; a step of it may fail. */
int own_rig_queue(struct own_rig *rig, uint32_t queue, uint32_t slots, uint32_t shift,
		  struct gdrcap_error *error);
void own_rig_rule(struct own_rig *rig);
void own_rig_faults(const char *text);

/* Sends frames of these numbers of bytes, rig->number on. */
void own_rig_send(struct own_rig *rig, uint64_t count, uint32_t shortest, uint32_t longest);
uint32_t own_rig_length(uint64_t number, uint32_t shortest, uint32_t longest);

/* So many places more; what is no whole work entry yet is told with the next. */
void own_post(struct own_queue *queue, uint32_t count);
uint32_t own_record(struct own_queue *queue);
/* So many bytes of a slot, as the test may read them. */
const uint8_t *own_slot(const struct own_rig *rig, const struct own_queue *queue, uint32_t slot,
			uint32_t bytes);
/* The next completion, or NULL: there is none, and after all that was sent none comes. */
const struct mlx5_cqe64 *own_look(struct own_queue *queue); /* without that look at the card */
const struct mlx5_cqe64 *own_next(struct own_queue *queue);
/* The length that a frame's completion says. */
uint32_t own_length(const struct own_queue *queue, const struct mlx5_cqe64 *cqe);
/* What a frame's completion says: checked against its slot's bytes. Returns its number. */
uint64_t own_frame_check(const struct own_rig *rig, struct own_queue *queue,
			 const struct mlx5_cqe64 *cqe);
/* The next `count` frames are there, one after the other from `number` on; each is given back. */
void own_receive(struct own_rig *rig, struct own_queue *queue, uint64_t count, uint64_t number);
/* Frames that found no work entry. */
uint64_t own_out_of_buffer(struct own_queue *queue);
/* Completions until there are none; how many. */
uint32_t own_drain(struct own_queue *queue);

#endif
