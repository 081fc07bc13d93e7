/* SPDX-License-Identifier: BSD-3-Clause */
/* The card's commands that make queues and counters. */
#include "port/devx.h"

#include <errno.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include "base/log.h"

/* What was asked, by whom it was refused and what may help. */
static int refused(const struct devx_card *card, const char *asked, const char *what, int code,
		   const void *out, struct gdrcap_error *error)
{
	const uint32_t status = prm_get(out, PRM_STATUS), syndrome = prm_get(out, PRM_SYNDROME);
	const char *remedy =
		code == EPERM || code == EACCES ? "rights: be root, or have CAP_NET_RAW"
		: code == ENOMEM || code == ENOSPC
			? "the card has no more of them, or no memory: fewer queues or smaller ones"
			: "see dmesg, and whether the card's firmware is a current one, or leave the "
			  "queues to the driver";

	code = code ? code : EIO;
	if (!status)
		return error_set(error, -code, "port %s: cannot %s %s: %s; %s", card->name, asked,
				 what, strerror(code), remedy);
	return error_set(error, -code,
			 "port %s: the card refuses to %s %s: %s (status 0x%x, syndrome 0x%x); %s",
			 card->name, asked, what, strerror(code), status, syndrome, remedy);
}

int devx_create(struct devx_card *card, struct devx_object *object, const void *in, size_t in_bytes,
		struct prm_field answer, const char *what, struct gdrcap_error *error)
{
	uint8_t out[PRM_OUT_BYTES] = { 0 };

	errno = 0;
	object->number = 0;
	object->handle = mlx5dv_devx_obj_create(card->context, in, in_bytes, out, sizeof(out));
	if (!object->handle)
		return refused(card, "make", what, errno, out, error);
	object->number = prm_get(out, answer);
	return 0;
}

int devx_modify(struct devx_card *card, struct devx_object *object, const void *in, size_t in_bytes,
		const char *what, struct gdrcap_error *error)
{
	uint8_t out[PRM_OUT_BYTES] = { 0 };
	int code;

	errno = 0;
	code = mlx5dv_devx_obj_modify(object->handle, in, in_bytes, out, sizeof(out));
	if (code == 0)
		return 0;
	return refused(card, "change", what, code > 0 ? code : errno, out, error);
}

int devx_destroy(struct devx_card *card, struct devx_object *object, const char *what,
		 struct gdrcap_error *error)
{
	const uint8_t out[PRM_OUT_BYTES] = { 0 };
	int code;

	if (!object->handle)
		return 0;
	errno = 0;
	code = mlx5dv_devx_obj_destroy(object->handle);
	if (code != 0)
		return refused(card, "destroy", what, code > 0 ? code : errno, out, error);
	memset(object, 0, sizeof(*object));
	return 0;
}

int devx_cq_create(struct devx_card *card, struct devx_object *cq,
		   const struct devx_cq_config *config, struct gdrcap_error *error)
{
	uint8_t in[PRM_CREATE_CQ_IN_BYTES] = { 0 };
	uint8_t *context = in + PRM_CREATE_CQ_CONTEXT;

	if (config->log_entries > card->log_cq_max)
		return error_set(error, -EINVAL,
				 "port %s: a completion queue of 2^%u entries; the card has up to "
				 "2^%u: give smaller receive queues",
				 card->name, config->log_entries, card->log_cq_max);
	prm_set(in, PRM_OPCODE, PRM_CREATE_CQ);
	prm_set(context, PRM_CQC_RECORD_VALID, 1);
	prm_set(context, PRM_CQC_RECORD_UMEM, config->record.umem->number);
	prm_set64(context, PRM_CQC_RECORD_OFFSET, config->record.offset);
	prm_set(context, PRM_CQC_COLLAPSED, config->first_only);
	prm_set(context, PRM_CQC_OVERRUN_IGNORE, 1);
	prm_set(context, PRM_CQC_LOG_SIZE, config->log_entries);
	prm_set(context, PRM_CQC_EQN, card->event_queue);
	prm_set(context, PRM_CQC_UAR, card->uar->page_id);
	prm_set(in, PRM_CREATE_CQ_UMEM_VALID, 1);
	prm_set(in, PRM_CREATE_CQ_UMEM, config->ring.umem->number);
	prm_set64(in, PRM_CREATE_CQ_UMEM_OFFSET, config->ring.offset);
	return devx_create(card, cq, in, sizeof(in), PRM_NUMBER, "a completion queue", error);
}

int devx_counter_create(struct devx_card *card, struct devx_object *counter,
			struct gdrcap_error *error)
{
	uint8_t in[PRM_ALLOC_Q_COUNTER_IN_BYTES] = { 0 };

	prm_set(in, PRM_OPCODE, PRM_ALLOC_Q_COUNTER);
	return devx_create(card, counter, in, sizeof(in), PRM_ALLOC_Q_COUNTER_NUMBER,
			   "a queue counter", error);
}

int devx_counter_read(struct devx_card *card, const struct devx_object *counter,
		      uint32_t *out_of_buffer, struct gdrcap_error *error)
{
	uint8_t in[PRM_QUERY_Q_COUNTER_IN_BYTES] = { 0 };
	uint8_t out[PRM_QUERY_Q_COUNTER_OUT_BYTES] = { 0 };
	int code;

	prm_set(in, PRM_OPCODE, PRM_QUERY_Q_COUNTER);
	prm_set(in, PRM_QUERY_Q_COUNTER_NUMBER, counter->number);
	errno = 0;
	code = mlx5dv_devx_obj_query(counter->handle, in, sizeof(in), out, sizeof(out));
	if (code != 0)
		return refused(card, "read", "a queue counter", code > 0 ? code : errno, out,
			       error);
	*out_of_buffer = prm_get(out, PRM_Q_COUNTER_OUT_OF_BUFFER);
	return 0;
}

void devx_wq_fill(const struct devx_card *card, void *wq, const struct devx_wq_config *config)
{
	prm_set(wq, PRM_WQ_TYPE, config->log_strides ? PRM_WQ_CYCLIC_STRIDING : PRM_WQ_CYCLIC);
	if (config->log_strides) {
		prm_set(wq, PRM_WQ_LOG_STRIDES, config->log_strides - PRM_WQ_LOG_STRIDES_ZERO);
		prm_set(wq, PRM_WQ_LOG_STRIDE_BYTES,
			config->log_stride_bytes - PRM_WQ_LOG_STRIDE_BYTES_ZERO);
	}
	prm_set(wq, PRM_WQ_PADDING, config->pads);
	prm_set(wq, PRM_WQ_PD, card->pd_number);
	prm_set(wq, PRM_WQ_UAR, config->uar);
	prm_set(wq, PRM_WQ_RECORD_VALID, 1);
	prm_set(wq, PRM_WQ_RECORD_UMEM, config->record.umem->number);
	prm_set64(wq, PRM_WQ_RECORD_OFFSET, config->record.offset);
	prm_set(wq, PRM_WQ_LOG_STRIDE, config->log_entry_bytes);
	prm_set(wq, PRM_WQ_LOG_SIZE, config->log_entries);
	prm_set(wq, PRM_WQ_UMEM_VALID, 1);
	prm_set(wq, PRM_WQ_UMEM, config->ring.umem->number);
	prm_set64(wq, PRM_WQ_UMEM_OFFSET, config->ring.offset);
}

int devx_strides_check(const struct devx_card *card, uint32_t log_strides,
		       uint32_t log_stride_bytes, struct gdrcap_error *error)
{
	const struct devx_strides *can = &card->strides;

	if (!can->frames_max)
		return error_set(
			error, -ENOTSUP,
			"port %s: the card has no receive queues with several frames a work "
			"entry (rdma-core's ibv_devinfo -v has its striding RQ); give one",
			card->name);
	if (log_strides < can->frames_min || log_strides > can->frames_max)
		return error_set(error, -ENOTSUP,
				 "port %s: receive queues with %u frames a work entry; the card "
				 "takes %u to %u, or one",
				 card->name, 1u << log_strides, 1u << can->frames_min,
				 1u << can->frames_max);
	if (log_stride_bytes < can->bytes_min || log_stride_bytes > can->bytes_max)
		return error_set(
			error, -ENOTSUP,
			"port %s: slots of %u bytes in receive queues with several frames a "
			"work entry; the card takes %u to %u: give one frame a work entry, "
			"or frames that fit smaller slots",
			card->name, 1u << log_stride_bytes, 1u << can->bytes_min,
			1u << can->bytes_max);
	return 0;
}

int devx_rq_create(struct devx_card *card, struct devx_object *rq,
		   const struct devx_rq_config *config, struct gdrcap_error *error)
{
	uint8_t in[PRM_QUEUE_IN_BYTES] = { 0 };
	uint8_t *context = in + PRM_QUEUE_CONTEXT;

	if (config->wq.log_entries > card->log_wq_max)
		return error_set(
			error, -EINVAL,
			"port %s: a receive queue of 2^%u work entries; the card has up to "
			"2^%u: give smaller ones",
			card->name, config->wq.log_entries, card->log_wq_max);
	prm_set(in, PRM_OPCODE, PRM_CREATE_RQ);
	prm_set(context, PRM_RQC_KEEP_VLAN, 1);
	prm_set(context, PRM_RQC_FLUSH_IN_ERROR, 1);
	prm_set(context, PRM_QUEUE_TS_FORMAT, card->rx_time);
	prm_set(context, PRM_QUEUE_CQ, config->cq->number);
	prm_set(context, PRM_RQC_COUNTER, config->counter->number);
	devx_wq_fill(card, context + PRM_QUEUE_WQ, &config->wq);
	return devx_create(card, rq, in, sizeof(in), PRM_NUMBER, "a receive queue", error);
}

int devx_rq_state(struct devx_card *card, const struct devx_object *rq, enum prm_state *state,
		  struct gdrcap_error *error)
{
	uint8_t in[PRM_QUERY_RQ_IN_BYTES] = { 0 }, out[PRM_QUERY_RQ_OUT_BYTES] = { 0 };
	int code;

	prm_set(in, PRM_OPCODE, PRM_QUERY_RQ);
	prm_set(in, PRM_NUMBER, rq->number);
	errno = 0;
	code = mlx5dv_devx_obj_query(rq->handle, in, sizeof(in), out, sizeof(out));
	if (code != 0)
		return refused(card, "read", "a receive queue's state", code > 0 ? code : errno,
			       out, error);
	*state = (enum prm_state)prm_get(out + PRM_QUEUE_CONTEXT, PRM_QUEUE_STATE);
	return 0;
}

int devx_rq_modify(struct devx_card *card, struct devx_object *rq, enum prm_state from,
		   enum prm_state to, struct gdrcap_error *error)
{
	static const char *const what[] = {
		[PRM_STATE_RESET] = "a receive queue's state to \"reset\"",
		[PRM_STATE_READY] = "a receive queue's state to \"ready\"",
		[PRM_STATE_ERROR] = "a receive queue's state to \"error\"",
	};
	uint8_t in[PRM_QUEUE_IN_BYTES] = { 0 };

	prm_set(in, PRM_OPCODE, PRM_MODIFY_RQ);
	prm_set(in, PRM_MODIFY_FROM, from);
	prm_set(in, PRM_MODIFY_NUMBER, rq->number);
	prm_set(in + PRM_QUEUE_CONTEXT, PRM_QUEUE_STATE, to);
	return devx_modify(card, rq, in, sizeof(in), what[to], error);
}
