/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion entries.
 *
 * They are collected while the card works and written in one go, after the data that they stand for
 * is in place. With compression, neighbours that differ only in length and hash (or stride) share a
 * title entry.
 */
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "nic.h"
#include "queues.h"

#define PENDING_MAX 256
#define SESSION_MAX 64 /* entries that one title stands for */
#define MINIS 8	       /* in an entry */
#define FORMAT_COMPRESSED 3
#define OWNER_CHECK_MAX                                                                            \
	15 /* log2: the driver's 16-bit index cannot tell a full larger ring from an empty one */

/* Values of the CQ context's mini_cqe_res_format. */
#define MINI_HASH 0
#define MINI_CSUM_STRIDX 3

static struct pending {
	struct soft_cq *cq;
	struct mlx5_cqe64 cqe;
} pending[PENDING_MAX];
static unsigned int pending_count;
static uint64_t delay_us;
static bool wrong_owner;
static uint64_t torn_us;

struct mlx5_cqe64 *completion(struct soft_cq *cq)
{
	struct pending *entry;

	if (pending_count == PENDING_MAX)
		completion_flush();
	entry = &pending[pending_count++];
	entry->cq = cq;
	memset(&entry->cqe, 0, sizeof(entry->cqe));
	return &entry->cqe;
}

void completion_delay(uint64_t us)
{
	delay_us = us;
}

void completion_wrong_owner(void)
{
	wrong_owner = true;
}

void completion_torn(uint64_t us)
{
	torn_us = us;
}

void completion_forget(struct soft_cq *cq)
{
	for (unsigned int i = 0; i < pending_count; i++)
		if (pending[i].cq == cq)
			pending[i].cq = NULL;
}

static bool has_room(struct soft_cq *cq, uint32_t entries)
{
	uint16_t used;

	if (cq->overrun_ignored || cq->log_size > OWNER_CHECK_MAX)
		return true;
	/* Acquire: the driver has read the entries before it says so. */
	used = (uint16_t)(cq->next - be32toh(__atomic_load_n(cq->record, __ATOMIC_ACQUIRE)));
	return used + entries <= 1u << cq->log_size;
}

/* Entries on their way to a far ring, which neighbour each other there. */
static struct {
	struct mlx5_cqe64 whole[PENDING_MAX], first[PENDING_MAX];
	uint32_t at; /* of the first */
	unsigned int count;
} far;

/*
 * Two copies, one after the other: the entries as nobody takes them yet, then as they are. What the
 * second one changes is each entry's last word alone, so whoever sees that sees the rest.
 */
static void far_flush(struct soft_cq *cq)
{
	const struct soft_dma *dma;
	uint64_t offset;

	if (far.count == 0)
		return;
	dma = cq->far.region->dma;
	offset = cq->far.offset + (uint64_t)far.at * SOFT_BLOCK;
	for (unsigned int i = 0; i < far.count; i++) {
		far.first[i] = far.whole[i];
		far.first[i].op_own = MLX5_CQE_INVALID << 4;
		if (torn_us != 0) /* the planted defect: the last word alone */
			memset(&far.first[i], 0, SOFT_BLOCK - sizeof(uint64_t));
		if (torn_us != 0)
			far.first[i].op_own = far.whole[i].op_own;
	}
	dma->write(cq->far.region, offset, far.first, (size_t)far.count * SOFT_BLOCK);
	dma->complete();
	if (torn_us != 0)
		usleep((useconds_t)torn_us);
	torn_us = 0;
	dma->write(cq->far.region, offset, far.whole, (size_t)far.count * SOFT_BLOCK);
	dma->complete();
	far.count = 0;
}

static void far_put(struct soft_cq *cq, uint32_t index, const struct mlx5_cqe64 *cqe, uint64_t last)
{
	uint32_t at = index & ((1u << cq->log_size) - 1);

	if (far.count == PENDING_MAX || (far.count > 0 && at != far.at + far.count))
		far_flush(cq);
	if (far.count == 0)
		far.at = at;
	far.whole[far.count] = *cqe;
	memcpy((uint8_t *)&far.whole[far.count] + SOFT_BLOCK - sizeof(last), &last, sizeof(last));
	far.count++;
}

static void put(struct soft_cq *cq, uint32_t index, const struct mlx5_cqe64 *cqe)
{
	uint64_t last;
	uint8_t owner = index >> cq->log_size & 1, *place;

	if (wrong_owner) {
		wrong_owner = false;
		owner ^= 1;
	}
	memcpy(&last, (const uint8_t *)cqe + SOFT_BLOCK - sizeof(last), sizeof(last));
	last = (last & ~(1ull << 56)) | (uint64_t)owner << 56;
	if (cq->ring == NULL) {
		far_put(cq, index, cqe, last);
		return;
	}
	place = (uint8_t *)&cq->ring[index & ((1u << cq->log_size) - 1)];
	if (torn_us != 0) {
		/* The planted defect. */
		__atomic_store_n((uint64_t *)(place + SOFT_BLOCK - sizeof(last)), last,
				 __ATOMIC_RELEASE);
		usleep((useconds_t)torn_us);
		torn_us = 0;
	}
	memcpy(place, cqe, SOFT_BLOCK - sizeof(last));
	/* Release: whoever sees the owner bit sees the rest, and the data. */
	__atomic_store_n((uint64_t *)(place + SOFT_BLOCK - sizeof(last)), last, __ATOMIC_RELEASE);
}

/* May b be a mini entry under the title a? All but what a mini entry carries is the same. */
static bool alike(const struct soft_cq *cq, const struct mlx5_cqe64 *a, const struct mlx5_cqe64 *b,
		  unsigned int distance)
{
	const uint8_t *x = (const uint8_t *)a, *y = (const uint8_t *)b;

	if (a->op_own >> 4 != MLX5_CQE_RESP_SEND || a->op_own != b->op_own)
		return false;
	if (a->wqe_id != b->wqe_id || memcmp(x + 28, y + 28, 12) != 0 ||
	    a->sop_drop_qpn != b->sop_drop_qpn)
		return false;
	if (cq->compress_format == MINI_CSUM_STRIDX)
		return memcmp(x + 12, y + 12, 4) == 0; /* no room for a hash */
	return (uint16_t)(be16toh(a->wqe_counter) + distance) == be16toh(b->wqe_counter);
}

static void put_session(struct soft_cq *cq, const struct pending *const *entry, unsigned int count)
{
	struct mlx5_cqe64 title = entry[0]->cqe, array;
	uint32_t *mini = (uint32_t *)&array;
	uint32_t base = cq->next;

	for (unsigned int i = 0; i < count; i++) {
		const struct mlx5_cqe64 *cqe = &entry[i]->cqe;
		unsigned int place = i % MINIS * 2;

		if (i % MINIS == 0)
			memset(&array, 0, sizeof(array));
		if (cq->compress_format == MINI_CSUM_STRIDX)
			mini[place] = (uint32_t)cqe->wqe_counter << 16;
		else
			memcpy(&mini[place], (const uint8_t *)cqe + 12, 4);
		mini[place + 1] = cqe->byte_cnt;
		/* The first array follows the title, the others stand at every eighth entry. */
		if (i % MINIS == MINIS - 1 || i == count - 1)
			memcpy(&cq->ring[(base + (i < MINIS ? 1 : i / MINIS * MINIS)) &
					 ((1u << cq->log_size) - 1)],
			       &array, sizeof(array));
	}
	title.byte_cnt = htobe32(count);
	title.op_own = (uint8_t)((title.op_own & 0xf0) | FORMAT_COMPRESSED << 2);
	put(cq, base, &title);
	cq->next = base + count;
	cq->device->count.compressed += count - 1;
}

/* A session does not go over the ring's end: the driver's vector functions read on behind the
 * title. */
static unsigned int session_room(const struct soft_cq *cq)
{
	uint32_t left = (1u << cq->log_size) - (cq->next & ((1u << cq->log_size) - 1));

	return left < SESSION_MAX ? left : SESSION_MAX;
}

/* The entries of one queue, from the first on; they are taken out of the list. */
static void flush_queue(unsigned int first)
{
	const struct pending *run[SESSION_MAX];
	struct soft_cq *cq = pending[first].cq;
	unsigned int count = 0;

	for (unsigned int i = first; i <= pending_count; i++) {
		struct pending *next = NULL;

		if (i < pending_count) {
			if (pending[i].cq != cq)
				continue;
			next = &pending[i];
			next->cq = NULL;
		}
		if (count > 0 && (next == NULL || !cq->compress || count == session_room(cq) ||
				  !alike(cq, &run[0]->cqe, &next->cqe, count))) {
			if (!has_room(cq, count)) {
				cq->device->count.cq_overruns += count;
				soft_log("%s: completion queue %u overrun", cq->device->ibv.name,
					 cq->number);
			} else if (count == 1) {
				put(cq, cq->next++, &run[0]->cqe);
			} else {
				put_session(cq, run, count);
			}
			count = 0;
		}
		if (next != NULL)
			run[count++] = next;
	}
	if (cq->ring == NULL)
		far_flush(cq);
	cq_look(cq);
}

void completion_flush(void)
{
	if (pending_count == 0)
		return;
	soft_dma_complete();
	if (delay_us != 0) {
		usleep((useconds_t)delay_us);
		delay_us = 0;
	}
	for (unsigned int i = 0; i < pending_count; i++)
		if (pending[i].cq != NULL)
			flush_queue(i);
	pending_count = 0;
}
