/* SPDX-License-Identifier: BSD-3-Clause */
/* DevX: the driver hands commands of the device through. */
#include <errno.h>
#include <stdlib.h>

#include "device.h"
#include "devx_fields.h"
#include "nic.h"
#include "queues.h"

struct soft_hash *devx_hash(struct mlx5dv_devx_obj *object)
{
	return object->kind == CREATE_TIR ? object->content : NULL;
}

struct soft_counter *devx_counter(struct mlx5dv_devx_obj *object)
{
	return object->kind == ALLOC_FLOW_COUNTER ? object->content : NULL;
}

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *context, const void *in,
					       size_t inlen, void *out, size_t outlen)
{
	struct mlx5dv_devx_obj *object = calloc(1, sizeof(*object));
	int error = EINVAL;

	if (object == NULL)
		return NULL;
	object->device = soft_device(context);
	object->file = soft_context(context)->file;
	object->kind = (enum command)bits_get(in, OPCODE);
	if (soft_context(context)->devx && inlen >= HEADER && outlen >= OUT_MIN) {
		nic_lock();
		error = soft_devx_create(object, in, inlen, out);
		nic_unlock();
	}
	if (error != 0) {
		free(object);
		errno = error;
		return NULL;
	}
	return object;
}

static enum soft_state state_of(const uint8_t *context)
{
	uint32_t state = bits_get(context, QUEUE_STATE);

	return state == 0 ? SOFT_RESET : state == 1 ? SOFT_READY : SOFT_ERROR;
}

static uint32_t state_number(enum soft_state state)
{
	return state == SOFT_RESET ? 0 : state == SOFT_READY ? 1 : 3;
}

static int modify_table(struct mlx5dv_devx_obj *object, const uint8_t *in, size_t in_length)
{
	int error = devx_fill_table(object, object->content, in, in_length);

	for (unsigned int i = 1; error == 0 && i < SOFT_OBJECTS_MAX; i++) {
		struct soft_hash *hash = object->device->hashes[i];

		if (hash != NULL && hash->table == object->number)
			error = devx_use_table(hash, object->number);
	}
	return error;
}

static int modify_tir(struct mlx5dv_devx_obj *object, const uint8_t *in)
{
	struct soft_hash *hash = object->content;
	uint64_t what = bits_get64(in, MODIFY_MASK);
	int error = 0;

	if (what & MODIFY_TIR_TABLE)
		error = devx_use_table(hash, bits_get(in + CONTEXT, TIRC_TABLE));
	if (error == 0 && what & MODIFY_TIR_HASH)
		error = devx_use_fields(hash, in + CONTEXT);
	return error;
}

static int modify_rq(struct mlx5dv_devx_obj *object, const uint8_t *in)
{
	struct soft_rq *rq = object->content;
	enum soft_state to = state_of(in + CONTEXT);

	if (rq->device->faults.strict_states &&
	    bits_get(in, MODIFY_FROM) != state_number(rq->state))
		return EINVAL;
	if (rq->state == SOFT_READY && to == SOFT_ERROR)
		rq_flush(rq);
	/* Whatever it completed is there before the command is done. */
	completion_flush();
	rq_set_state(rq, to);
	if (bits_get64(in, MODIFY_MASK) & MODIFY_RQ_VLAN)
		rq->vlan_strip = !bits_get(in + CONTEXT, RQC_KEEP_VLAN);
	return 0;
}

/* A command that has its object's kind: the creating one and the modifying one differ by one. */
static int modify(struct mlx5dv_devx_obj *object, const uint8_t *in, size_t in_length)
{
	uint32_t command = bits_get(in, OPCODE);

	if (command != object->kind + 1u || bits_get(in, IN_NUMBER) != object->number)
		return EINVAL;
	switch ((int)command) {
	case MODIFY_RQ:
		return modify_rq(object, in);
	case MODIFY_SQ:
		sq_set_state(object->content, state_of(in + CONTEXT));
		return 0;
	case MODIFY_TIR:
		return modify_tir(object, in);
	case MODIFY_RQT:
		return modify_table(object, in, in_length);
	default:
		return EOPNOTSUPP;
	}
}

int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			   size_t outlen)
{
	int error = EINVAL;

	if (inlen >= HEADER && outlen >= OUT_MIN) {
		nic_lock();
		error = modify(obj, in, inlen);
		nic_unlock();
		bits_set(out, OUT_STATUS, error == 0 ? 0 : STATUS_BAD_OP);
		bits_set(out, OUT_SYNDROME, error == 0 ? 0 : SYNDROME);
	}
	errno = error;
	return error;
}

int mlx5dv_devx_obj_query(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			  size_t outlen)
{
	uint32_t command = bits_get(in, OPCODE);
	struct soft_counter *counter = devx_counter(obj);

	memset(out, 0, outlen);
	if (command == QUERY_Q_COUNTER && obj->kind == ALLOC_Q_COUNTER && outlen >= 256) {
		nic_lock();
		bits_set(out, SOFT_FIELD(384, 32),
			 (uint32_t)((struct soft_q_counter *)obj->content)->out_of_buffer);
		nic_unlock();
		return 0;
	}
	if (command == QUERY_RQ && obj->kind == CREATE_RQ && outlen >= WORK_QUEUE) {
		nic_lock();
		bits_set((uint8_t *)out + CONTEXT, QUEUE_STATE,
			 state_number(((struct soft_rq *)obj->content)->state));
		nic_unlock();
		return 0;
	}
	if (command == QUERY_FLOW_COUNTER && counter != NULL && outlen >= HEADER + 16) {
		nic_lock();
		bits_set64((uint8_t *)out + HEADER, 0, counter->packets);
		bits_set64((uint8_t *)out + HEADER, 64, counter->bytes);
		if (bits_get(in, SOFT_FIELD(192, 1)))
			counter->packets = counter->bytes = 0;
		nic_unlock();
		return 0;
	}
	bits_set(out, OUT_STATUS, STATUS_BAD_OP);
	return EOPNOTSUPP;
}

int mlx5dv_devx_obj_destroy(struct mlx5dv_devx_obj *obj)
{
	int error;

	nic_lock();
	error = soft_devx_destroy(obj);
	nic_unlock();
	if (error == 0)
		free(obj);
	return error;
}

/* Of a Verbs send queue, the driver asks for the transport domain. */
int mlx5dv_devx_qp_query(struct ibv_qp *qp, const void *in, size_t inlen, void *out, size_t outlen)
{
	if (bits_get(in, OPCODE) != QUERY_TIS || outlen < HEADER + 160)
		return EOPNOTSUPP;
	memset(out, 0, outlen);
	bits_set((uint8_t *)out + HEADER, TISC_TRANSPORT_DOMAIN, 1);
	return 0;
}

int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t inlen, void *out,
			    size_t outlen)
{
	int error = EOPNOTSUPP;

	if (bits_get(in, OPCODE) == QUERY_HCA_CAP)
		error = devx_query_caps(soft_device(context), in, out, outlen);
	if (error != 0) {
		memset(out, 0, outlen);
		bits_set(out, OUT_STATUS, STATUS_BAD_OP);
		errno = error;
	}
	return error;
}
