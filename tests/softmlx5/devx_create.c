/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects that DevX commands make: queues in the driver's memory, tables of them, counters. */
#include <errno.h>
#include <stdlib.h>

#include "devx_fields.h"
#include "memory.h"
#include "nic.h"
#include "queues.h"

static struct rq_table *tables[SOFT_OBJECTS_MAX];
static uint32_t numbers; /* of objects that are nothing but a number */

static int create_cq(struct mlx5dv_devx_obj *object, const uint8_t *in)
{
	const uint8_t *context = in + HEADER;
	uint32_t log_size = bits_get(context, CQC_LOG_SIZE);
	uint64_t bytes = (uint64_t)SOFT_BLOCK << log_size;
	struct soft_far far;
	void *ring = soft_umem_far(object->device, bits_get(in, CREATE_CQ_UMEM),
				   bits_get64(in, CREATE_CQ_UMEM_OFFSET), bytes, &far);
	void *record = soft_umem(object->device, bits_get(context, CQC_RECORD_UMEM),
				 bits_get64(context, CQC_RECORD_ADDRESS), 8);
	struct soft_cq *cq;

	if ((ring == NULL && far.region == NULL) || record == NULL)
		return EINVAL;
	/* The model compresses only where it may touch the ring. */
	if (ring == NULL && bits_get(context, CQC_COMPRESS))
		return EOPNOTSUPP;
	cq = cq_create(object->device, log_size, ring != NULL ? ring : record, record);
	if (cq == NULL)
		return errno;
	cq->ring = ring;
	cq->far = far;
	cq->overrun_ignored = bits_get(context, CQC_OVERRUN_IGNORED);
	cq->compress = bits_get(context, CQC_COMPRESS);
	cq->compress_format = (uint8_t)bits_get(context, CQC_MINI_FORMAT);
	/* Only formats that the card knows. */
	if (cq->compress && (bits_get(context, CQC_MINI_FORMAT_EXT) != 0 ||
			     (cq->compress_format != 0 && cq->compress_format != 3))) {
		cq_destroy(cq);
		return EINVAL;
	}
	cq->uar = uar_by_number(object->device, bits_get(context, CQC_UAR));
	object->content = cq;
	object->number = cq->number;
	return 0;
}

/* Ring and doorbell record of a work queue, in the driver's memory. far: where the record may be far,
 * or NULL. */
static int work_queue(struct soft_device *device, const uint8_t *wq, uint64_t bytes,
		      uint64_t record_bytes, void **ring, void **record, struct soft_far *far)
{
	struct soft_far at;

	*ring = soft_umem(device, bits_get(wq, WQ_UMEM), bits_get64(wq, WQ_UMEM_OFFSET), bytes);
	*record = soft_umem_far(device, bits_get(wq, WQ_RECORD_UMEM),
				bits_get64(wq, WQ_RECORD_ADDRESS), record_bytes, &at);
	if (far != NULL)
		*far = at;
	return *ring == NULL || (*record == NULL && (far == NULL || at.region == NULL)) ? EINVAL
											: 0;
}

#define LOG_STRIDES_WQE 5 /* bytes: a link and one buffer */

/* False: the card makes no such striding queue. */
static bool strides_get(struct soft_rq *rq, const uint8_t *wq)
{
	/* Four bits, in two's complement. */
	rq->log_strides =
		(uint8_t)(LOG_STRIDES_MIN + (((int)bits_get(wq, WQ_LOG_STRIDES) ^ 8) - 8));
	rq->log_stride_size = (uint8_t)(LOG_STRIDE_SIZE_MIN + bits_get(wq, WQ_LOG_STRIDE_SIZE));
	return rq->log_stride == LOG_STRIDES_WQE && rq->device->faults.log_strides_min != 0 &&
	       rq->log_strides >= rq->device->faults.log_strides_min &&
	       rq->log_strides <= SOFT_LOG_STRIDES_MAX;
}

static int create_rq(struct mlx5dv_devx_obj *object, const uint8_t *in)
{
	const uint8_t *context = in + CONTEXT, *wq = in + WORK_QUEUE;
	uint32_t log_size = bits_get(wq, WQ_LOG_SIZE), log_stride = bits_get(wq, WQ_LOG_STRIDE);
	struct soft_cq *cq = cq_by_number(object->device, bits_get(context, RQC_CQ));
	void *ring, *record;
	struct soft_far far;
	struct soft_rq *rq;
	int error;

	if (cq == NULL || bits_get(context, RQC_MEMORY_TYPE) != RQC_MEMORY_INLINE)
		return EINVAL;
	error = work_queue(object->device, wq, 1ull << (log_size + log_stride), 4, &ring, &record,
			   &far);
	if (error != 0)
		return error;
	rq = rq_create(object->device, log_size, log_stride, ring, record);
	if (rq == NULL)
		return errno;
	rq->far_record = far;
	rq->cq = cq;
	rq->file = object->file;
	rq->counter = object->device->q_counters[bits_get(context, RQC_COUNTER)];
	rq->flushes = bits_get(context, RQC_FLUSH_IN_ERROR);
	rq->vlan_strip = !bits_get(context, RQC_KEEP_VLAN);
	rq->split_time = true;
	rq->striding = bits_get(wq, WQ_TYPE) == WQ_STRIDING;
	if (rq->striding && !strides_get(rq, wq)) {
		rq_destroy(rq);
		return EINVAL;
	}
	object->content = rq;
	object->number = rq->number;
	return 0;
}

static int create_sq(struct mlx5dv_devx_obj *object, const uint8_t *in)
{
	const uint8_t *context = in + CONTEXT, *wq = in + WORK_QUEUE;
	uint32_t log_size = bits_get(wq, WQ_LOG_SIZE);
	struct soft_cq *cq = cq_by_number(object->device, bits_get(context, SQC_CQ));
	struct soft_uar *uar = uar_by_number(object->device, bits_get(wq, WQ_UAR));
	void *ring, *record;
	struct soft_sq *sq;
	int error;

	if (cq == NULL || uar == NULL)
		return EINVAL;
	error = work_queue(object->device, wq, (uint64_t)SOFT_BLOCK << log_size, 8, &ring, &record,
			   NULL);
	if (error != 0)
		return error;
	sq = sq_create(object->device, log_size, ring, record);
	if (sq == NULL)
		return errno;
	sq->cq = cq;
	sq->uar = uar;
	object->content = sq;
	object->number = sq->number;
	return 0;
}

/* A queue of its own context's; those of others are not to be reached. */
static struct soft_rq *rq_of(const struct mlx5dv_devx_obj *object, uint32_t number)
{
	struct soft_rq *rq = rq_by_number(object->device, number);

	return rq != NULL && rq->file == object->file ? rq : NULL;
}

int devx_fill_table(const struct mlx5dv_devx_obj *object, struct rq_table *table, const uint8_t *in,
		    size_t in_length)
{
	uint32_t size = bits_get(in + CONTEXT, RQTC_SIZE);

	if (size == 0 || size > 512 || (size & (size - 1)) != 0 || in_length < RQ_LIST + size * 4)
		return EINVAL;
	table->log_size = log2_above(size);
	for (uint32_t i = 0; i < size; i++) {
		table->queues[i] = bits_get(in + RQ_LIST + i * 4, SOFT_FIELD(8, 24));
		if (rq_of(object, table->queues[i]) == NULL)
			return EINVAL;
	}
	return 0;
}

static int create_table(struct mlx5dv_devx_obj *object, const uint8_t *in, size_t in_length)
{
	struct rq_table *table = calloc(1, sizeof(*table));
	unsigned int end = 0;
	uint32_t slot = soft_slot((void *const *)tables, &end);

	if (table == NULL || slot == 0 || devx_fill_table(object, table, in, in_length) != 0) {
		free(table);
		return EINVAL;
	}
	table->number = slot;
	tables[slot] = table;
	object->content = table;
	object->number = slot;
	return 0;
}

int devx_use_table(struct soft_hash *hash, uint32_t number)
{
	struct rq_table *table = number < SOFT_OBJECTS_MAX ? tables[number] : NULL;

	if (table == NULL || hash_resize(hash, table->log_size) != 0)
		return EINVAL;
	hash->table = number;
	for (uint32_t i = 0; i < 1u << table->log_size; i++)
		hash->queues[i] = rq_by_number(hash->device, table->queues[i]);
	return 0;
}

int devx_use_fields(struct soft_hash *hash, const uint8_t *context)
{
	uint32_t fields = bits_get(context, TIRC_FIELDS);

	hash->hashes = fields != 0;
	hash->fields = fields & (HASH_SRC_IP | HASH_DST_IP | HASH_L4_SPORT | HASH_L4_DPORT);
	hash->ipv6 = bits_get(context, TIRC_L3_IPV6);
	hash->udp = bits_get(context, TIRC_L4_UDP);
	return hash->hashes ? hash_set_key(hash, context + TIRC_KEY, TIRC_KEY_SIZE) : 0;
}

static int create_tir(struct mlx5dv_devx_obj *object, const uint8_t *in)
{
	const uint8_t *context = in + CONTEXT;
	struct soft_hash *hash = hash_create(object->device, 0);
	unsigned int end = 0;
	uint32_t slot = soft_slot((void *const *)object->device->hashes, &end);
	int error = ENOMEM;

	if (hash == NULL || slot == 0)
		goto fail;
	if (bits_get(context, TIRC_TYPE) != 0) {
		error = devx_use_table(hash, bits_get(context, TIRC_TABLE));
	} else {
		hash->queues[0] = rq_of(object, bits_get(context, TIRC_INLINE_RQ));
		error = hash->queues[0] != NULL ? 0 : EINVAL;
	}
	if (error == 0)
		error = devx_use_fields(hash, context);
	if (error != 0)
		goto fail;
	hash->number = slot;
	object->device->hashes[slot] = hash;
	object->content = hash;
	object->number = slot;
	return 0;
fail:
	if (hash != NULL)
		hash_destroy(hash);
	return error;
}

static int create_counter(struct mlx5dv_devx_obj *object)
{
	struct soft_counter *counter = calloc(1, sizeof(*counter));

	if (counter == NULL)
		return ENOMEM;
	counter->number = ++numbers;
	object->content = counter;
	object->number = counter->number;
	return 0;
}

static int create_q_counter(struct mlx5dv_devx_obj *object)
{
	struct soft_q_counter **sets = object->device->q_counters, *set;
	uint32_t number = 1;

	while (number < SOFT_Q_COUNTERS && sets[number] != NULL)
		number++;
	if (number == SOFT_Q_COUNTERS)
		return ENOSPC;
	set = calloc(1, sizeof(*set));
	if (set == NULL)
		return ENOMEM;
	set->number = number;
	sets[number] = set;
	object->content = set;
	object->number = number;
	return 0;
}

int soft_devx_create(struct mlx5dv_devx_obj *object, const uint8_t *in, size_t in_length,
		     uint8_t *out)
{
	struct soft_field answer = OUT_NUMBER;
	int error = 0;

	if (soft_fault(&object->device->faults.refuse_object)) {
		bits_set(out, OUT_STATUS, STATUS_BAD_OP);
		bits_set(out, OUT_SYNDROME, SYNDROME);
		return EINVAL;
	}
	switch ((int)object->kind) {
	case CREATE_CQ:
		error = create_cq(object, in);
		break;
	case CREATE_RQ:
		error = create_rq(object, in);
		break;
	case CREATE_SQ:
		error = create_sq(object, in);
		break;
	case CREATE_RQT:
		error = create_table(object, in, in_length);
		break;
	case CREATE_TIR:
		error = create_tir(object, in);
		break;
	case ALLOC_FLOW_COUNTER:
		error = create_counter(object);
		answer = OUT_FLOW_COUNTER;
		break;
	case ALLOC_Q_COUNTER:
		error = create_q_counter(object);
		answer = OUT_Q_COUNTER;
		break;
	case CREATE_TIS:
	case ALLOC_TRANSPORT_DOMAIN:
		object->number = ++numbers;
		break;
	default:
		soft_log("%s: no such object: command 0x%x", object->device->ibv.name,
			 object->kind);
		error = EOPNOTSUPP;
		break;
	}
	bits_set(out, OUT_STATUS, error == 0 ? 0 : STATUS_BAD_OP);
	bits_set(out, OUT_SYNDROME, error == 0 ? 0 : SYNDROME);
	bits_set(out, answer, object->number);
	return error;
}

/* What queues name goes after them. */
static bool in_use(const struct mlx5dv_devx_obj *object)
{
	const struct soft_device *device = object->device;

	for (unsigned int i = 1; i < device->rq_end; i++)
		if (device->rqs[i] != NULL &&
		    ((object->kind == CREATE_CQ && device->rqs[i]->cq == object->content) ||
		     (object->kind == ALLOC_Q_COUNTER &&
		      device->rqs[i]->counter == object->content)))
			return true;
	for (unsigned int i = 1; i < device->sq_end; i++)
		if (device->sqs[i] != NULL && object->kind == CREATE_CQ &&
		    device->sqs[i]->cq == object->content)
			return true;
	return false;
}

int soft_devx_destroy(struct mlx5dv_devx_obj *object)
{
	if (in_use(object))
		return EBUSY;
	switch ((int)object->kind) {
	case CREATE_CQ:
		cq_destroy(object->content);
		break;
	case CREATE_RQ:
		rq_destroy(object->content);
		break;
	case CREATE_SQ:
		sq_destroy(object->content);
		break;
	case CREATE_RQT:
		tables[object->number] = NULL;
		free(object->content);
		break;
	case CREATE_TIR:
		if (steering_uses(object->device, object->content))
			return EBUSY;
		object->device->hashes[object->number] = NULL;
		hash_destroy(object->content);
		break;
	case ALLOC_Q_COUNTER:
		object->device->q_counters[object->number] = NULL;
		free(object->content);
		break;
	case ALLOC_FLOW_COUNTER:
		free(object->content);
		break;
	default:
		break;
	}
	return 0;
}
