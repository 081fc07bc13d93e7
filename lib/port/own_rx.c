/* SPDX-License-Identifier: BSD-3-Clause */
/* A receive queue of our own: its objects, from the rings' memory to the rules' name for it. */
#include "port/own_rx.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_pmd_mlx5.h>

#include "base/log.h"

#ifdef MLX5_EXTERNAL_RX_QUEUE_ID_MIN
#define FLOW_QUEUE_MIN MLX5_EXTERNAL_RX_QUEUE_ID_MIN
#else
#define FLOW_QUEUE_MIN RTE_PMD_MLX5_EXTERNAL_RX_QUEUE_ID_MIN
#endif
_Static_assert(OWN_RX_FLOW_QUEUE(0) == FLOW_QUEUE_MIN, "DPDK's first external queue");

/* log2 of a work entry's bytes: where its slot is; with several, that is behind a link to the next work entry,
 * which only lists of them use. */
#define WORK_SHIFT 4u
#define WORK_STRIDES_SHIFT 5u
#define CQE_SHIFT 6u
#define LINE 64u       /* a record's bytes: no other is in its line */
#define CQ_PER_SLOT 2u /* a completion an entry is what can come; as much again to spare */

_Static_assert(sizeof(struct mlx5_wqe_data_seg) == 1u << WORK_SHIFT, "a work entry");
_Static_assert(sizeof(struct mlx5_wqe_srq_next_seg) + sizeof(struct mlx5_wqe_data_seg) ==
		       1u << WORK_STRIDES_SHIFT,
	       "a work entry of strides");

static uint32_t log2_of(uint32_t power)
{
	return (uint32_t)__builtin_ctz(power);
}

/* ---- memory ---- */

static uint32_t work_shift(const struct own_rx *rx)
{
	return rx->front.stride_shift ? WORK_STRIDES_SHIFT : WORK_SHIFT;
}

static uint32_t work_count(const struct own_rx *rx)
{
	return rx->config.slots >> rx->front.stride_shift;
}

/* The work entries, the record (if it is here), the completion queue's own, which nobody reads. */
static size_t record_at(const struct own_rx *rx)
{
	/* of whole lines: a queue of strides may have few work entries */
	return RTE_ALIGN_CEIL((size_t)work_count(rx) << work_shift(rx), (size_t)LINE);
}

static int rings_create(struct own_rx *rx, struct gdrcap_error *error)
{
	const struct own_rx_config *config = &rx->config;
	const struct own_memory_config memory = {
		.kind = config->memory == GDRCAP_MEMORY_HOST ? GDRCAP_MEMORY_HOST
							     : GDRCAP_MEMORY_PINNED,
		.gpu = config->gpu,
		.bytes = record_at(rx) + 2 * LINE,
		.what = "a receive queue",
	};

	return own_memory_create(config->card, &rx->rings, &memory, error);
}

/* Writes `bytes` of `byte` into the completion queue's memory. */
static int completions_fill(struct own_rx *rx, size_t at, int byte, size_t bytes,
			    struct gdrcap_error *error)
{
	const struct own_rx_config *config = &rx->config;
	uint8_t *place = rx->completions.front + at;
	int ret;

	if (config->memory != GDRCAP_MEMORY_DEVICE || config->cpu_front) {
		memset(place, byte, bytes);
		return 0;
	}
	ret = config->fill(config->fill_context, place, byte, bytes);
	return ret < 0 ? error_set(
				 error, ret,
				 "port %s: a completion queue in GPU memory cannot be written: %s",
				 config->card->name, strerror(-ret))
		       : 0;
}

static size_t cq_bytes(const struct own_rx *rx)
{
	return (size_t)rx->front.cq_entries << CQE_SHIFT;
}

static int completions_create(struct own_rx *rx, struct gdrcap_error *error)
{
	const struct own_rx_config *config = &rx->config;
	const struct own_memory_config memory = {
		.kind = config->memory,
		.gpu = config->gpu,
		.cpu_front = config->cpu_front,
		.bytes = cq_bytes(rx) + LINE,
		.what = "a completion queue",
	};
	int ret = own_memory_create(config->card, &rx->completions, &memory, error);

	if (ret < 0)
		return ret;
	rx->front.cq = rx->completions.front;
	return completions_fill(rx, 0, OWN_RX_PRESET, cq_bytes(rx), error);
}

/* Once and for all: a slot that is free is posted again by the record alone. */
static void work_write(struct own_rx *rx)
{
	const struct own_rx_config *config = &rx->config;
	const uint32_t strides = rx->front.stride_shift;
	uint8_t *place = rx->rings.base;

	memset(place, 0, record_at(rx));
	for (uint32_t i = 0; i < config->slots; i += 1u << strides) {
		place += 1u << work_shift(rx);
		/* The last of it. */
		((struct mlx5_wqe_data_seg *)(void *)place)[-1] = (struct mlx5_wqe_data_seg){
			.byte_count = htobe32(1u << (config->slot_shift + strides)),
			.lkey = htobe32(config->key),
			.addr = htobe64((uintptr_t)config->base +
					((uint64_t)(config->first_slot + i) << config->slot_shift)),
		};
	}
}

/* The card does not look at it now, and the front waits. */
static int record_reset(struct own_rx *rx, struct gdrcap_error *error)
{
	if (rx->config.record_beside)
		return completions_fill(rx, cq_bytes(rx), 0, LINE, error);
	__atomic_store_n(rx->front.record, 0, __ATOMIC_RELEASE);
	return 0;
}

static int memory_create(struct own_rx *rx, struct gdrcap_error *error)
{
	int ret = rings_create(rx, error);

	if (ret == 0)
		ret = completions_create(rx, error);
	if (ret < 0)
		return ret;
	work_write(rx);
	rx->front.record =
		(uint32_t *)(rx->config.record_beside ? rx->completions.front + cq_bytes(rx)
						      : rx->rings.front + record_at(rx));
	return record_reset(rx, error);
}

/* ---- objects ---- */

static int objects_create(struct own_rx *rx, struct gdrcap_error *error)
{
	const struct own_rx_config *config = &rx->config;
	struct devx_card *card = config->card;
	const struct devx_cq_config cq = {
		.ring = { &rx->completions.umem, 0 },
		.record = { &rx->rings.umem, record_at(rx) + LINE },
		.log_entries = log2_of(rx->front.cq_entries),
	};
	const struct devx_rq_config rq = {
		.wq = { .ring = { &rx->rings.umem, 0 },
			.record =
				config->record_beside
					? (struct devx_place){ &rx->completions.umem, cq_bytes(rx) }
					: (struct devx_place){ &rx->rings.umem, record_at(rx) },
			.log_entries = log2_of(work_count(rx)),
			.log_entry_bytes = work_shift(rx),
			.log_strides = rx->front.stride_shift,
			.log_stride_bytes = config->slot_shift,
			.pads = config->pads },
		.cq = &rx->cq_object,
		.counter = &rx->counter,
	};
	int ret = devx_cq_create(card, &rx->cq_object, &cq, error);

	if (ret == 0)
		ret = devx_counter_create(card, &rx->counter, error);
	if (ret == 0)
		ret = devx_counter_read(card, &rx->counter, &rx->counted, error);
	if (ret == 0)
		ret = devx_rq_create(card, &rx->rq, &rq, error);
	return ret;
}

/* ---- rules ---- */

static int flow_map(struct own_rx *rx, struct gdrcap_error *error)
{
	const struct own_rx_config *config = &rx->config;
	int ret;

	log_words_forget();
	ret = rte_pmd_mlx5_external_rx_queue_id_map(
		config->port, (uint16_t)OWN_RX_FLOW_QUEUE(config->queue), rx->rq.number);
	rx->mapped = ret == 0;
	if (ret == 0)
		return 0;
	return error_add_words(
		error,
		error_set(error, ret,
			  "port %s: the driver's rules cannot lead to a queue of our own: %s; "
			  "leave the queues to the driver",
			  config->card->name, rte_strerror(-ret)));
}

static int flow_unmap(struct own_rx *rx, struct gdrcap_error *error)
{
	const struct own_rx_config *config = &rx->config;
	int ret;

	if (!rx->mapped)
		return 0;
	log_words_forget();
	ret = rte_pmd_mlx5_external_rx_queue_id_unmap(config->port,
						      (uint16_t)OWN_RX_FLOW_QUEUE(config->queue));
	if (ret == 0) {
		rx->mapped = false;
		return 0;
	}
	return error_add_words(
		error, error_set(error, ret, "port %s: rules still lead to queue %u of our own: %s",
				 config->card->name, config->queue, rte_strerror(-ret)));
}

/* ---- the queue ---- */

static int strides_check(const struct own_rx_config *config, struct gdrcap_error *error)
{
	const uint32_t strides = config->strides, most = config->slots / CQ_FRONT_ENTRIES_MIN;

	if (strides <= 1)
		return 0;
	if (strides & (strides - 1) || strides > most)
		return error_set(
			error, -EINVAL,
			"port %s: a receive queue of %u slots with %u a work entry; it takes a "
			"power of two up to %u, for %u work entries at least",
			config->card->name, config->slots, strides, most, CQ_FRONT_ENTRIES_MIN);
	return devx_strides_check(config->card, log2_of(strides), config->slot_shift, error);
}

static int config_check(const struct own_rx_config *config, struct gdrcap_error *error)
{
	const uint32_t slots = config->slots;

	if (slots == 0 || slots > CQ_FRONT_SLOTS_MAX || slots & (slots - 1))
		return error_set(error, -EINVAL,
				 "port %s: a receive queue of %u slots; it takes a power of two up "
				 "to %u",
				 config->card->name, slots, CQ_FRONT_SLOTS_MAX);
	if (config->memory == GDRCAP_MEMORY_DEVICE && !config->cpu_front && !config->fill)
		return error_set(error, -EINVAL,
				 "port %s: a completion queue in GPU memory that nobody here can "
				 "write",
				 config->card->name);
	if (config->queue > UINT16_MAX - OWN_RX_FLOW_QUEUE(0))
		return error_set(error, -EINVAL, "port %s: up to %u queues of our own",
				 config->card->name, UINT16_MAX - OWN_RX_FLOW_QUEUE(0) + 1);
	return strides_check(config, error);
}

int own_rx_create(struct own_rx *rx, const struct own_rx_config *config, struct gdrcap_error *error)
{
	int ret = config_check(config, error);

	memset(rx, 0, sizeof(*rx));
	if (ret < 0)
		return ret;
	rx->config = *config;
	rx->front = (struct cq_front_queue){
		.cq_entries = config->slots * CQ_PER_SLOT,
		.slots = config->slots,
		.first_slot = config->first_slot,
		.slot_bytes = 1u << config->slot_shift,
		.stride_shift = config->strides ? log2_of(config->strides) : 0,
	};
	ret = memory_create(rx, error);
	if (ret == 0)
		ret = objects_create(rx, error);
	if (ret == 0)
		ret = flow_map(rx, error);
	if (ret < 0)
		own_rx_destroy(rx, NULL); /* the first error is the one to tell */
	return ret;
}

int own_rx_destroy(struct own_rx *rx, struct gdrcap_error *error)
{
	struct devx_card *card = rx->config.card;
	int ret;

	if (!card)
		return 0;
	ret = flow_unmap(rx, error);
	if (ret == 0)
		ret = devx_destroy(card, &rx->rq, "a receive queue", error);
	if (ret == 0)
		ret = devx_destroy(card, &rx->counter, "a queue counter", error);
	if (ret == 0)
		ret = devx_destroy(card, &rx->cq_object, "a completion queue", error);
	if (ret < 0)
		return ret;
	own_memory_destroy(&rx->completions);
	own_memory_destroy(&rx->rings);
	memset(rx, 0, sizeof(*rx));
	return 0;
}

int own_rx_start(struct own_rx *rx, struct gdrcap_error *error)
{
	return devx_rq_modify(rx->config.card, &rx->rq, PRM_STATE_RESET, PRM_STATE_READY, error);
}

int own_rx_halt(struct own_rx *rx, struct gdrcap_error *error)
{
	struct devx_card *card = rx->config.card;
	enum prm_state state;
	int ret = devx_rq_state(card, &rx->rq, &state, error);

	if (ret == 0 && state == PRM_STATE_READY) {
		ret = devx_rq_modify(card, &rx->rq, state, PRM_STATE_ERROR, error);
		state = PRM_STATE_ERROR;
	}
	if (ret == 0 && state != PRM_STATE_RESET)
		ret = devx_rq_modify(card, &rx->rq, state, PRM_STATE_RESET, error);
	return ret < 0 ? ret : record_reset(rx, error);
}

int own_rx_counters(struct own_rx *rx, struct own_rx_counters *counters, struct gdrcap_error *error)
{
	enum prm_state state = PRM_STATE_RESET;
	uint32_t now;
	int ret = devx_counter_read(rx->config.card, &rx->counter, &now, error);

	if (ret == 0)
		ret = devx_rq_state(rx->config.card, &rx->rq, &state, error);
	if (ret < 0)
		return ret;
	rx->out_of_buffer += (uint32_t)(now - rx->counted);
	rx->counted = now;
	counters->out_of_buffer = rx->out_of_buffer;
	counters->failed = state == PRM_STATE_ERROR;
	return 0;
}
