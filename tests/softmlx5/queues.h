/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues as objects, for the Verbs and the DevX calls. The lock is held. */
#ifndef SOFT_QUEUES_H
#define SOFT_QUEUES_H

#include "soft.h"

/*
 * A new queue of the device, with a number, and memory of its own where ring is NULL. NULL with
 * errno set. Numbers of one device differ between kinds of objects, too: a mix-up is not found by
 * luck.
 */
struct soft_cq *cq_create(struct soft_device *device, uint32_t log_size, void *ring, void *record);
struct soft_rq *rq_create(struct soft_device *device, uint32_t log_size, uint32_t log_stride,
			  void *ring, void *record);
struct soft_sq *sq_create(struct soft_device *device, uint32_t log_size, void *ring, void *record);
struct soft_uar *uar_create(struct soft_device *device);

void cq_destroy(struct soft_cq *cq);
void rq_destroy(struct soft_rq *rq);
void sq_destroy(struct soft_sq *sq);
void uar_destroy(struct soft_uar *uar);

void rq_set_state(struct soft_rq *rq, enum soft_state state);
void sq_set_state(struct soft_sq *sq, enum soft_state state);

struct soft_cq *cq_by_number(struct soft_device *device, uint32_t number);
struct soft_rq *rq_by_number(struct soft_device *device, uint32_t number);
struct soft_sq *sq_by_number(struct soft_device *device, uint32_t number);
struct soft_uar *uar_by_number(struct soft_device *device, uint32_t number);

/* channel.c: where the queue's events go. */
void channel_attach(struct soft_channel *channel, struct soft_cq *cq);
void channel_attach_verbs(struct ibv_comp_channel *ibv, struct soft_cq *cq);
/* The driver rang the doorbell for it, perhaps; entries were written into it. */
void cq_arm(struct soft_cq *cq);
void cq_look(struct soft_cq *cq);

/* Rounded up. */
uint32_t log2_above(uint32_t value);

#endif
