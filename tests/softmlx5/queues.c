/* SPDX-License-Identifier: BSD-3-Clause */
#include "queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nic.h"

#define CQ_NUMBERS 0x1000u
#define RQ_NUMBERS 0x2000u
#define SQ_NUMBERS 0x4000u
#define RECORD_SIZE 64
#define LOG_SIZE_MAX 22

uint32_t log2_above(uint32_t value)
{
	uint32_t log = 0;

	while (log < 31 && 1u << log < value)
		log++;
	return log;
}

/* The ring, and behind it the doorbell record. */
static void *ring_memory(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t all = (bytes + RECORD_SIZE + page - 1) / page * page;
	void *memory = aligned_alloc(page, all);

	if (memory != NULL)
		memset(memory, 0, all);
	return memory;
}

struct soft_cq *cq_create(struct soft_device *device, uint32_t log_size, void *ring, void *record)
{
	struct soft_cq *cq = calloc(1, sizeof(*cq));
	size_t bytes = (size_t)SOFT_BLOCK << log_size;
	uint32_t slot = soft_slot((void *const *)device->cqs, &device->cq_end);

	errno = ENOMEM;
	if (cq == NULL || slot == 0 || log_size > LOG_SIZE_MAX)
		goto fail;
	cq->device = device;
	cq->number = CQ_NUMBERS + slot;
	cq->log_size = log_size;
	cq->own_memory = ring == NULL;
	if (ring == NULL) {
		ring = ring_memory(bytes);
		record = (uint8_t *)ring + bytes;
		if (ring == NULL)
			goto fail;
		for (uint32_t i = 0; i < 1u << log_size; i++)
			((struct mlx5_cqe64 *)ring)[i].op_own = MLX5_CQE_INVALID << 4;
	}
	cq->ring = ring;
	cq->record = record;
	device->cqs[slot] = cq;
	return cq;
fail:
	free(cq);
	return NULL;
}

struct soft_rq *rq_create(struct soft_device *device, uint32_t log_size, uint32_t log_stride,
			  void *ring, void *record)
{
	struct soft_rq *rq = calloc(1, sizeof(*rq));
	size_t bytes = (size_t)1 << (log_size + log_stride);
	uint32_t slot = soft_slot((void *const *)device->rqs, &device->rq_end);

	errno = ENOMEM;
	if (rq == NULL || slot == 0)
		goto fail;
	errno = EINVAL;
	if (log_size > LOG_SIZE_MAX || log_stride < 4 || log_stride > 9)
		goto fail;
	rq->device = device;
	rq->number = RQ_NUMBERS + slot;
	rq->log_size = log_size;
	rq->log_stride = log_stride;
	rq->own_memory = ring == NULL;
	if (ring == NULL) {
		ring = ring_memory(bytes);
		record = (uint8_t *)ring + bytes;
		if (ring == NULL)
			goto fail;
	}
	rq->ring = ring;
	rq->record = record;
	device->rqs[slot] = rq;
	return rq;
fail:
	free(rq);
	return NULL;
}

struct soft_sq *sq_create(struct soft_device *device, uint32_t log_size, void *ring, void *record)
{
	struct soft_sq *sq = calloc(1, sizeof(*sq));
	size_t bytes = (size_t)SOFT_BLOCK << log_size;
	uint32_t slot = soft_slot((void *const *)device->sqs, &device->sq_end);

	errno = ENOMEM;
	if (sq == NULL || slot == 0 || log_size > 16)
		goto fail;
	sq->device = device;
	sq->number = SQ_NUMBERS + slot;
	sq->log_size = log_size;
	sq->own_memory = ring == NULL;
	if (ring == NULL) {
		ring = ring_memory(bytes);
		record = (uint8_t *)ring + bytes;
		if (ring == NULL)
			goto fail;
	}
	sq->ring = ring;
	sq->record = record;
	device->sqs[slot] = sq;
	return sq;
fail:
	free(sq);
	return NULL;
}

struct soft_uar *uar_create(struct soft_device *device)
{
	struct soft_uar *uar = calloc(1, sizeof(*uar));
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uint32_t slot = soft_slot((void *const *)device->uars, &device->uar_end);

	errno = ENOMEM;
	if (uar == NULL || slot == 0)
		goto fail;
	uar->page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (uar->page == MAP_FAILED)
		goto fail;
	uar->device = device;
	uar->number = slot;
	uar->dv = (struct mlx5dv_devx_uar){
		.base_addr = uar->page,
		.reg_addr = uar->page + SOFT_UAR_SQ,
		.page_id = slot,
	};
	device->uars[slot] = uar;
	return uar;
fail:
	free(uar);
	return NULL;
}

void cq_destroy(struct soft_cq *cq)
{
	soft_log("%s: completion queue %u: %u entries, the driver at %u", cq->device->ibv.name,
		 cq->number, cq->next, be32toh(*cq->record));
	completion_forget(cq);
	cq->device->cqs[cq->number - CQ_NUMBERS] = NULL;
	if (cq->own_memory)
		free(cq->ring);
	free(cq);
}

void rq_destroy(struct soft_rq *rq)
{
	soft_log("%s: receive queue %u: %lu frames, WQE %u of %u, %u strides each",
		 rq->device->ibv.name, rq->number, (unsigned long)rq->frames, rq->next,
		 rq->record != NULL ? be32toh(*rq->record) : rq->far_posted,
		 rq->striding ? 1u << rq->log_strides : 1u);
	rq->device->rqs[rq->number - RQ_NUMBERS] = NULL;
	/* A table of queues may outlive its queues: it then drops. */
	for (unsigned int i = 1; i < SOFT_OBJECTS_MAX; i++) {
		struct soft_hash *hash = rq->device->hashes[i];

		for (uint32_t n = 0; hash != NULL && n < 1u << hash->log_size; n++)
			if (hash->queues[n] == rq)
				hash->queues[n] = NULL;
	}
	if (rq->own_memory)
		free(rq->ring);
	free(rq);
}

void sq_destroy(struct soft_sq *sq)
{
	sq->device->sqs[sq->number - SQ_NUMBERS] = NULL;
	if (sq->own_uar)
		uar_destroy(sq->uar);
	if (sq->own_memory)
		free(sq->ring);
	free(sq);
}

void uar_destroy(struct soft_uar *uar)
{
	uar->device->uars[uar->number] = NULL;
	munmap(uar->page, (size_t)sysconf(_SC_PAGESIZE));
	free(uar);
}

void rq_set_state(struct soft_rq *rq, enum soft_state state)
{
	if (state == SOFT_RESET) {
		rq->next = 0;
		rq->next_stride = 0;
		rq->far_posted = 0;
	}
	rq->state = state;
}

void sq_set_state(struct soft_sq *sq, enum soft_state state)
{
	if (state == SOFT_RESET) {
		sq->next = 0;
		sq->rung = false;
	}
	sq->state = state;
}

struct soft_cq *cq_by_number(struct soft_device *device, uint32_t number)
{
	return number - CQ_NUMBERS < SOFT_OBJECTS_MAX ? device->cqs[number - CQ_NUMBERS] : NULL;
}

struct soft_rq *rq_by_number(struct soft_device *device, uint32_t number)
{
	return number - RQ_NUMBERS < SOFT_OBJECTS_MAX ? device->rqs[number - RQ_NUMBERS] : NULL;
}

struct soft_sq *sq_by_number(struct soft_device *device, uint32_t number)
{
	return number - SQ_NUMBERS < SOFT_OBJECTS_MAX ? device->sqs[number - SQ_NUMBERS] : NULL;
}

struct soft_uar *uar_by_number(struct soft_device *device, uint32_t number)
{
	return number < SOFT_OBJECTS_MAX ? device->uars[number] : NULL;
}
