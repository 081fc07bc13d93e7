/* SPDX-License-Identifier: BSD-3-Clause */
/* A send queue of our own: its objects. */
#include "port/own_tx.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include "base/log.h"

#define BLOCK_SHIFT 6u
#define CQE_SHIFT 6u
#define LINE 64u /* a record's bytes: no other is in its line */
#define CQ_ENTRIES 1024u
#define CQ_PRESET 0xf1 /* of each byte: an entry of no completion, with the second lap's owner */
#define RECORD_SEND 1u /* of the two words of a record: the first is a receive queue's */
#define MARK_SHARE 8u  /* a completion every so large a part of the slots */

static uint32_t log2_of(uint32_t power)
{
	return (uint32_t)__builtin_ctz(power);
}

/* A block a frame, so that large ones find room as small ones do. */
static uint32_t blocks_for(uint32_t slots)
{
	uint32_t blocks = SQ_BLOCKS_MIN;

	while (blocks < SQ_BLOCKS_MAX && blocks < slots)
		blocks *= 2;
	return blocks;
}

/* ---- memory ---- */

/* The blocks, their record, the completion queue's, which nobody reads. */
static size_t record_at(const struct own_tx *tx)
{
	return (size_t)tx->queue.blocks << BLOCK_SHIFT;
}

static int memory_create(struct own_tx *tx, struct gdrcap_error *error)
{
	const struct own_tx_config *config = &tx->config;
	const struct own_memory_config rings = {
		.kind = config->memory,
		.gpu = config->gpu,
		.bytes = record_at(tx) + 2 * LINE,
		.what = "a send queue",
	};
	const struct own_memory_config completions = {
		.kind = config->memory,
		.gpu = config->gpu,
		.bytes = (size_t)tx->queue.cqes << CQE_SHIFT,
		.what = "a send queue's completions",
	};
	int ret = own_memory_create(config->card, &tx->rings, &rings, error);

	if (ret == 0)
		ret = own_memory_create(config->card, &tx->completions, &completions, error);
	if (ret < 0)
		return ret;
	memset(tx->completions.front, CQ_PRESET, (size_t)tx->queue.cqes << CQE_SHIFT);
	tx->queue.ring = tx->rings.front;
	tx->queue.cq = tx->completions.front;
	tx->queue.record = (uint32_t *)(tx->rings.front + record_at(tx)) + RECORD_SEND;
	return 0;
}

static void record_reset(const struct own_tx *tx)
{
	__atomic_store_n(tx->queue.record, 0, __ATOMIC_RELEASE);
}

/* ---- objects ---- */

/* The way out of the card, by its port and priority 0. */
static int way_create(struct own_tx *tx, struct gdrcap_error *error)
{
	uint8_t domain[PRM_ALLOC_DOMAIN_IN_BYTES] = { 0 }, tis[PRM_CREATE_TIS_IN_BYTES] = { 0 };
	struct devx_card *card = tx->config.card;
	int ret;

	prm_set(domain, PRM_OPCODE, PRM_ALLOC_TRANSPORT_DOMAIN);
	ret = devx_create(card, &tx->domain, domain, sizeof(domain), PRM_NUMBER,
			  "a transport domain", error);
	if (ret < 0)
		return ret;
	prm_set(tis, PRM_OPCODE, PRM_CREATE_TIS);
	prm_set(tis + PRM_TIS_CONTEXT, PRM_TISC_DOMAIN, tx->domain.number);
	return devx_create(card, &tx->tis, tis, sizeof(tis), PRM_NUMBER, "a way out (TIS)", error);
}

static int sq_create(struct own_tx *tx, struct gdrcap_error *error)
{
	struct devx_card *card = tx->config.card;
	const struct devx_wq_config wq = {
		.ring = { &tx->rings.umem, 0 },
		.record = { &tx->rings.umem, record_at(tx) },
		.log_entries = log2_of(tx->queue.blocks),
		.log_entry_bytes = BLOCK_SHIFT,
		.uar = tx->uar->page_id,
	};
	uint8_t in[PRM_QUEUE_IN_BYTES] = { 0 };
	uint8_t *context = in + PRM_QUEUE_CONTEXT;

	prm_set(in, PRM_OPCODE, PRM_CREATE_SQ);
	prm_set(context, PRM_SQC_FLUSH_IN_ERROR, 1);
	prm_set(context, PRM_SQC_MULTI_PACKET, 1);
	prm_set(context, PRM_SQC_INLINE_MODE, 0);
	prm_set(context, PRM_QUEUE_TS_FORMAT, card->tx_time);
	prm_set(context, PRM_QUEUE_CQ, tx->cq.number);
	prm_set(context, PRM_SQC_TIS_COUNT, 1);
	prm_set(context, PRM_SQC_TIS, tx->tis.number);
	devx_wq_fill(card, context + PRM_QUEUE_WQ, &wq);
	return devx_create(card, &tx->sq, in, sizeof(in), PRM_NUMBER, "a send queue", error);
}

static int objects_create(struct own_tx *tx, struct gdrcap_error *error)
{
	struct devx_card *card = tx->config.card;
	const struct devx_cq_config cq = {
		.ring = { &tx->completions.umem, 0 },
		.record = { &tx->rings.umem, record_at(tx) + LINE },
		.log_entries = log2_of(tx->queue.cqes),
	};
	int ret = 0;

	tx->uar = tx->config.uar;
	if (!tx->uar) {
		ret = devx_uar_create(card, &tx->uar, error);
		tx->own_uar = ret == 0;
	}
	if (ret == 0)
		ret = way_create(tx, error);
	if (ret == 0)
		ret = devx_cq_create(card, &tx->cq, &cq, error);
	if (ret == 0)
		ret = sq_create(tx, error);
	if (ret < 0)
		return ret;
	tx->queue.bell = tx->uar->reg_addr;
	tx->queue.number = tx->sq.number;
	return own_tx_start(tx, error);
}

/* ---- the queue ---- */

/* Entries have no part of a frame inline, since the CPU may not be able to read it. */
static int config_check(const struct own_tx_config *config, uint32_t blocks,
			struct gdrcap_error *error)
{
	const struct devx_card *card = config->card;

	if (config->memory == GDRCAP_MEMORY_DEVICE)
		return error_set(error, -ENOTSUP,
				 "port %s: a send queue's ring in GPU memory is not supported: the "
				 "card reads it from the host's",
				 card->name);
	if (card->inline_mode == PRM_INLINE_MODE_L2)
		return error_set(
			error, -ENOTSUP,
			"port %s: the card wants the first bytes of each frame within its "
			"work entry; send queues of our own take a ConnectX-5 or later, or "
			"leave them to the driver",
			card->name);
	if (log2_of(blocks) > card->log_wq_max)
		return error_set(error, -EINVAL,
				 "port %s: a send queue of 2^%u blocks; the card has up to 2^%u: "
				 "give a smaller pool",
				 card->name, log2_of(blocks), card->log_wq_max);
	return 0;
}

int own_tx_create(struct own_tx *tx, const struct own_tx_config *config, struct gdrcap_error *error)
{
	const uint32_t blocks = blocks_for(config->slots);
	int ret = config_check(config, blocks, error);

	memset(tx, 0, sizeof(*tx));
	if (ret < 0)
		return ret;
	tx->config = *config;
	tx->queue = (struct sq_queue){
		.blocks = blocks,
		.cqes = CQ_ENTRIES,
		.key = config->key,
		.mark_frames = config->slots > MARK_SHARE ? config->slots / MARK_SHARE : 1,
	};
	ret = memory_create(tx, error);
	if (ret == 0)
		ret = objects_create(tx, error);
	if (ret < 0)
		own_tx_destroy(tx, NULL); /* the first error is the one to tell */
	return ret;
}

int own_tx_destroy(struct own_tx *tx, struct gdrcap_error *error)
{
	struct devx_card *card = tx->config.card;
	int ret;

	if (!card)
		return 0;
	ret = devx_destroy(card, &tx->sq, "a send queue", error);
	if (ret == 0)
		ret = devx_destroy(card, &tx->cq, "a send queue's completion queue", error);
	if (ret == 0)
		ret = devx_destroy(card, &tx->tis, "a way out (TIS)", error);
	if (ret == 0)
		ret = devx_destroy(card, &tx->domain, "a transport domain", error);
	if (ret < 0)
		return ret;
	if (tx->own_uar)
		devx_uar_destroy(&tx->uar);
	own_memory_destroy(&tx->completions);
	own_memory_destroy(&tx->rings);
	memset(tx, 0, sizeof(*tx));
	return 0;
}

static int state_change(struct own_tx *tx, enum prm_state from, enum prm_state to,
			struct gdrcap_error *error)
{
	static const char *const what[] = {
		[PRM_STATE_RESET] = "a send queue's state to \"reset\"",
		[PRM_STATE_READY] = "a send queue's state to \"ready\"",
		[PRM_STATE_ERROR] = "a send queue's state to \"error\"",
	};
	uint8_t in[PRM_QUEUE_IN_BYTES] = { 0 };

	prm_set(in, PRM_OPCODE, PRM_MODIFY_SQ);
	prm_set(in, PRM_MODIFY_FROM, from);
	prm_set(in, PRM_MODIFY_NUMBER, tx->sq.number);
	prm_set(in + PRM_QUEUE_CONTEXT, PRM_QUEUE_STATE, to);
	return devx_modify(tx->config.card, &tx->sq, in, sizeof(in), what[to], error);
}

int own_tx_start(struct own_tx *tx, struct gdrcap_error *error)
{
	const int ret = state_change(tx, PRM_STATE_RESET, PRM_STATE_READY, error);

	if (ret == 0)
		tx->state = PRM_STATE_READY;
	return ret;
}

int own_tx_halt(struct own_tx *tx, bool failed, struct gdrcap_error *error)
{
	int ret;

	if (tx->state == PRM_STATE_READY) {
		/* A refusal may mean that the card has stopped it meanwhile: that shows below. */
		if (!failed)
			(void)state_change(tx, PRM_STATE_READY, PRM_STATE_ERROR, NULL);
		tx->state = PRM_STATE_ERROR;
	}
	if (tx->state == PRM_STATE_ERROR) {
		ret = state_change(tx, PRM_STATE_ERROR, PRM_STATE_RESET, error);
		if (ret < 0)
			return ret;
		tx->state = PRM_STATE_RESET;
	}
	record_reset(tx);
	return 0;
}

void own_tx_explain(const struct sq_front *front, char *text, size_t bytes)
{
	/* As the card's manual counts them. */
	static const char *const syndromes[] = {
		[0x01] = "a length that does not fit",
		[0x02] = "a work entry that it does not know",
		[0x04] = "memory that is not registered, or no longer",
		[0x05] = "the queue was in error already",
		[0x10] = "a bad response",
		[0x11] = "the memory could not be reached",
	};
	const uint32_t syndrome = front->syndrome & 0xff;
	const char *what =
		syndrome < sizeof(syndromes) / sizeof(syndromes[0]) ? syndromes[syndrome] : NULL;

	if (front->state == SQ_FAILED)
		snprintf(text, bytes,
			 "the card stopped it at entry %u: %s (syndrome 0x%02x, "
			 "vendor's 0x%02x)",
			 front->counter, what ? what : "an error", syndrome,
			 front->syndrome >> 8 & 0xff);
	else if (front->state == SQ_BROKEN)
		snprintf(text, bytes, "it completed what was not sent (0x%016llx)",
			 (unsigned long long)front->bad);
	else
		snprintf(text, bytes, "it runs");
}
