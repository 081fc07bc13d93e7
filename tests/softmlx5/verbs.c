/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues by Verbs: completion, receive and send queues, tables of receive queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "nic.h"
#include "queues.h"
#include "soft_steering.h"

#define RX_FIELDS_PORTS (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP)

struct table {
	struct ibv_rwq_ind_table ibv;
	uint32_t log_size;
	struct soft_rq *queues[]; /* 1 << log_size */
};

static struct soft_cq *verbs_cq_create(struct ibv_context *context, uint32_t entries,
				       void *cq_context, struct ibv_comp_channel *channel)
{
	struct soft_device *device = soft_device(context);
	struct soft_cq *cq;
	struct ibv_cq *ibv;

	/* As libmlx5 does: one more than asked for, rounded up to a power of two. */
	nic_lock();
	cq = cq_create(device, log2_above(entries + 1), NULL, NULL);
	if (cq != NULL)
		cq->uar = uar_create(device);
	if (cq != NULL && cq->uar == NULL) {
		cq_destroy(cq);
		cq = NULL;
	}
	nic_unlock();
	if (cq == NULL)
		return NULL;
	ibv = ibv_cq_ex_to_cq(&cq->ibv);
	ibv->context = context;
	ibv->channel = channel;
	ibv->cq_context = cq_context;
	ibv->handle = cq->number;
	ibv->cqe = (1 << cq->log_size) - 1;
	channel_attach_verbs(channel, cq);
	return cq;
}

static struct soft_cq *cq_of(struct ibv_cq *ibv)
{
	return container(ibv, struct soft_cq, ibv);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct soft_cq *cq;

	if (cqe < 1 || cqe > 4194303) {
		errno = EINVAL;
		return NULL;
	}
	cq = verbs_cq_create(context, (uint32_t)cqe, cq_context, channel);
	return cq != NULL ? ibv_cq_ex_to_cq(&cq->ibv) : NULL;
}

struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *cq_attr,
				   struct mlx5dv_cq_init_attr *mlx5_cq_attr)
{
	struct soft_cq *cq;

	if (cq_attr->cqe < 1 || cq_attr->cqe > 4194303) {
		errno = EINVAL;
		return NULL;
	}
	cq = verbs_cq_create(context, cq_attr->cqe, cq_attr->cq_context, cq_attr->channel);
	if (cq == NULL)
		return NULL;
	if (mlx5_cq_attr->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE) {
		cq->compress = true;
		cq->compress_format =
			mlx5_cq_attr->cqe_comp_res_format == MLX5DV_CQE_RES_FORMAT_CSUM_STRIDX ? 3
											       : 0;
	}
	return &cq->ibv;
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct soft_cq *cq = cq_of(ibv);

	nic_lock();
	uar_destroy(cq->uar);
	cq_destroy(cq);
	nic_unlock();
	return 0;
}

static struct ibv_wq *wq_create(struct ibv_context *context, struct ibv_wq_init_attr *attr,
				const struct mlx5dv_wq_init_attr *dv)
{
	const struct mlx5dv_striding_rq_init_attr *striding = NULL;
	uint32_t log_stride = 4 + log2_above(attr->max_sge);
	struct soft_rq *rq;

	if (attr->wq_type != IBV_WQT_RQ || attr->max_wr == 0 || attr->max_sge == 0) {
		errno = EINVAL;
		return NULL;
	}
	if (dv != NULL && dv->comp_mask & MLX5DV_WQ_INIT_ATTR_MASK_STRIDING_RQ) {
		striding = &dv->striding_rq_attrs;
		log_stride = 5;
	}
	nic_lock();
	rq = rq_create(soft_device(context), log2_above(attr->max_wr), log_stride, NULL, NULL);
	if (rq != NULL) {
		rq->cq = cq_of(attr->cq);
		rq->vlan_strip = (attr->create_flags & IBV_WQ_FLAGS_CVLAN_STRIPPING) != 0;
		/* The driver takes a card with DevX and this clock for one of real time. */
		rq->split_time = soft_context(context)->devx;
		rq->striding = striding != NULL;
		rq->flushes = true;
		rq->file = soft_context(context)->file;
		if (striding != NULL) {
			rq->log_strides = (uint8_t)striding->single_wqe_log_num_of_strides;
			rq->log_stride_size = (uint8_t)striding->single_stride_log_num_of_bytes;
		}
	}
	nic_unlock();
	if (rq == NULL)
		return NULL;
	rq->ibv.context = context;
	rq->ibv.pd = attr->pd;
	rq->ibv.cq = attr->cq;
	rq->ibv.wq_num = rq->number;
	rq->ibv.state = IBV_WQS_RESET;
	rq->ibv.wq_type = IBV_WQT_RQ;
	return &rq->ibv;
}

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	return wq_create(context, attr, NULL);
}

struct ibv_wq *mlx5dv_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr,
				struct mlx5dv_wq_init_attr *mlx5_wq_attr)
{
	return wq_create(context, wq_init_attr, mlx5_wq_attr);
}

static int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	struct soft_rq *rq = container(wq, struct soft_rq, ibv);

	nic_lock();
	if (attr->attr_mask & IBV_WQ_ATTR_STATE) {
		wq->state = attr->wq_state;
		rq_set_state(rq, attr->wq_state == IBV_WQS_RDY	   ? SOFT_READY
				 : attr->wq_state == IBV_WQS_RESET ? SOFT_RESET
								   : SOFT_ERROR);
	}
	if (attr->attr_mask & IBV_WQ_ATTR_FLAGS && attr->flags_mask & IBV_WQ_FLAGS_CVLAN_STRIPPING)
		rq->vlan_strip = (attr->flags & IBV_WQ_FLAGS_CVLAN_STRIPPING) != 0;
	nic_unlock();
	return 0;
}

static int destroy_wq(struct ibv_wq *wq)
{
	nic_lock();
	rq_destroy(container(wq, struct soft_rq, ibv));
	nic_unlock();
	return 0;
}

static struct ibv_rwq_ind_table *create_table(struct ibv_context *context,
					      struct ibv_rwq_ind_table_init_attr *attr)
{
	size_t count = (size_t)1 << attr->log_ind_tbl_size;
	struct table *table;

	if (attr->log_ind_tbl_size > 9) {
		errno = EINVAL;
		return NULL;
	}
	table = calloc(1, sizeof(*table) + count * sizeof(table->queues[0]));
	if (table == NULL)
		return NULL;
	table->ibv.context = context;
	table->log_size = attr->log_ind_tbl_size;
	for (size_t i = 0; i < count; i++)
		table->queues[i] = container(attr->ind_tbl[i], struct soft_rq, ibv);
	return &table->ibv;
}

static int destroy_table(struct ibv_rwq_ind_table *ibv)
{
	free(container(ibv, struct table, ibv));
	return 0;
}

/* A QP that hashes frames to the queues of a table. */
static int hash_qp(struct soft_sq *sq, const struct ibv_qp_init_attr_ex *attr)
{
	struct table *table = container(attr->rwq_ind_tbl, struct table, ibv);
	uint64_t fields = attr->rx_hash_conf.rx_hash_fields_mask;
	struct soft_hash *hash = hash_create(sq->device, table->log_size);
	unsigned int end = 0;
	uint32_t slot = soft_slot((void *const *)sq->device->hashes, &end);

	if (hash == NULL || slot == 0) {
		if (hash != NULL)
			hash_destroy(hash);
		return ENOMEM;
	}
	memcpy(hash->queues, table->queues, sizeof(hash->queues[0]) << table->log_size);
	hash->hashes = fields != 0;
	hash->ipv6 = (fields & (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)) != 0;
	hash->udp = (fields & (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)) != 0;
	if (fields & (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_SRC_IPV6))
		hash->fields |= HASH_SRC_IP;
	if (fields & (IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_DST_IPV6))
		hash->fields |= HASH_DST_IP;
	if (fields & RX_FIELDS_PORTS)
		hash->fields |= HASH_L4_SPORT;
	if (fields & (IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP))
		hash->fields |= HASH_L4_DPORT;
	if (hash->hashes && hash_set_key(hash, attr->rx_hash_conf.rx_hash_key,
					 attr->rx_hash_conf.rx_hash_key_len) != 0) {
		hash_destroy(hash);
		return EINVAL;
	}
	hash->number = slot;
	sq->device->hashes[slot] = hash;
	sq->hash = hash;
	return 0;
}

static struct ibv_qp *qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	bool receives = attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE;
	/* As libmlx5 does: control, Ethernet and data segments, or those with the inline data, in
	 * whole blocks. */
	uint32_t bytes = 48, wqe = attr->cap.max_inline_data + 4 + 32, blocks;
	struct soft_sq *sq;
	int error = 0;

	if (attr->qp_type != IBV_QPT_RAW_PACKET) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (attr->cap.max_inline_data != 0 && wqe > bytes)
		bytes = wqe;
	blocks = (bytes + SOFT_BLOCK - 1) / SOFT_BLOCK *
		 (attr->cap.max_send_wr ? attr->cap.max_send_wr : 1);
	if (blocks > 65536 / 2) {
		errno = EINVAL;
		return NULL;
	}
	nic_lock();
	sq = sq_create(soft_device(context), receives ? 0 : log2_above(blocks), NULL, NULL);
	if (sq != NULL && receives)
		error = hash_qp(sq, attr);
	if (sq != NULL && !receives) {
		sq->cq = cq_of(attr->send_cq);
		sq->uar = uar_create(sq->device);
		sq->own_uar = sq->uar != NULL;
		error = sq->uar == NULL ? ENOMEM : 0;
	}
	if (error != 0) {
		sq_destroy(sq);
		sq = NULL;
		errno = error;
	}
	nic_unlock();
	if (sq == NULL)
		return NULL;
	sq->ibv.context = context;
	sq->ibv.pd = attr->pd;
	sq->ibv.send_cq = attr->send_cq;
	sq->ibv.recv_cq = attr->recv_cq;
	sq->ibv.qp_num = sq->number;
	sq->ibv.qp_type = attr->qp_type;
	sq->ibv.state = IBV_QPS_RESET;
	return &sq->ibv;
}

/* verbs.h calls this one, and not the operation, for the plainest attributes. */
struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex all = { 0 };

	memcpy(&all, attr, sizeof(*attr));
	all.comp_mask = IBV_QP_INIT_ATTR_PD;
	all.pd = pd;
	return qp_create(pd->context, &all);
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *qp_attr,
				struct mlx5dv_qp_init_attr *mlx5_qp_attr)
{
	return qp_create(context, qp_attr);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct soft_sq *sq = container(qp, struct soft_sq, ibv);

	if (!(attr_mask & IBV_QP_STATE))
		return 0;
	nic_lock();
	qp->state = attr->qp_state;
	if (attr->qp_state == IBV_QPS_RESET)
		sq_set_state(sq, SOFT_RESET);
	else if (attr->qp_state == IBV_QPS_RTS)
		sq_set_state(sq, SOFT_READY);
	else if (attr->qp_state == IBV_QPS_ERR)
		sq_set_state(sq, SOFT_ERROR);
	nic_unlock();
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct soft_sq *sq = container(qp, struct soft_sq, ibv);

	nic_lock();
	if (sq->hash != NULL && steering_uses(sq->device, sq->hash)) {
		nic_unlock();
		return EBUSY;
	}
	if (sq->hash != NULL) {
		sq->device->hashes[sq->hash->number] = NULL;
		hash_destroy(sq->hash);
	}
	sq_destroy(sq);
	nic_unlock();
	return 0;
}

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
	if (obj_type & MLX5DV_OBJ_PD)
		obj->pd.out->pdn = container(obj->pd.in, struct soft_pd, ibv)->number;
	if (obj_type & MLX5DV_OBJ_CQ) {
		struct soft_cq *cq = cq_of(obj->cq.in);

		*obj->cq.out = (struct mlx5dv_cq){
			.buf = cq->ring,
			.dbrec = (__be32 *)(uintptr_t)cq->record,
			.cqe_cnt = 1u << cq->log_size,
			.cqe_size = SOFT_BLOCK,
			.cq_uar = cq->uar->page,
			.cqn = cq->number,
		};
	}
	if (obj_type & MLX5DV_OBJ_QP) {
		struct soft_sq *sq = container(obj->qp.in, struct soft_sq, ibv);
		struct mlx5dv_qp *out = obj->qp.out;
		uint64_t mask = out->comp_mask;

		*out = (struct mlx5dv_qp){
			.dbrec = (__be32 *)(uintptr_t)sq->record,
			.sq = { sq->ring, 1u << sq->log_size, SOFT_BLOCK },
			.bf = { sq->uar->page + SOFT_UAR_SQ, 0 },
			.comp_mask = mask & (MLX5DV_QP_MASK_UAR_MMAP_OFFSET |
					     MLX5DV_QP_MASK_RAW_QP_HANDLES),
			.tisn = 1,
			.sqn = sq->number,
		};
	}
	if (obj_type & MLX5DV_OBJ_RWQ) {
		struct soft_rq *rq = container(obj->rwq.in, struct soft_rq, ibv);

		*obj->rwq.out = (struct mlx5dv_rwq){
			.buf = rq->ring,
			.dbrec = (__be32 *)(uintptr_t)rq->record,
			.wqe_cnt = 1u << rq->log_size,
			.stride = 1u << rq->log_stride,
		};
	}
	return 0;
}

void verbs_fill(struct verbs_context *verbs)
{
	verbs->create_wq = create_wq;
	verbs->modify_wq = modify_wq;
	verbs->destroy_wq = destroy_wq;
	verbs->create_rwq_ind_table = create_table;
	verbs->destroy_rwq_ind_table = destroy_table;
	verbs->create_qp_ex = qp_create;
}
