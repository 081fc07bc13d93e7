/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DevX commands, their contexts and the objects that they make.
 *
 * Bit positions are those of the command and context structures that the device documents; contexts
 * of a receive or send queue hold that of its work queue.
 */
#ifndef SOFT_DEVX_FIELDS_H
#define SOFT_DEVX_FIELDS_H

#include "bits.h"
#include "soft_devx.h"

#define HEADER 16  /* bytes of a command before what it is about */
#define CONTEXT 32 /* where the context begins in most commands */
#define WORK_QUEUE (CONTEXT + 48)
#define RQ_LIST (CONTEXT + 240)
#define OUT_MIN 16

#define OPCODE SOFT_FIELD(0, 16)
#define IN_NUMBER SOFT_FIELD(72, 24)
#define OUT_STATUS SOFT_FIELD(0, 8)
#define OUT_SYNDROME SOFT_FIELD(32, 32)
#define OUT_NUMBER SOFT_FIELD(72, 24)
#define OUT_Q_COUNTER SOFT_FIELD(88, 8)
#define OUT_FLOW_COUNTER SOFT_FIELD(64, 32)
#define STATUS_BAD_OP 2
#define SYNDROME 0x50f7 /* of whatever is refused */

enum command {
	QUERY_HCA_CAP = 0x100,
	CREATE_CQ = 0x400,
	ALLOC_Q_COUNTER = 0x771,
	QUERY_Q_COUNTER = 0x773,
	ALLOC_TRANSPORT_DOMAIN = 0x816,
	CREATE_TIR = 0x900,
	MODIFY_TIR = 0x901,
	CREATE_SQ = 0x904,
	MODIFY_SQ = 0x905,
	CREATE_RQ = 0x908,
	MODIFY_RQ = 0x909,
	QUERY_RQ = 0x90b,
	CREATE_TIS = 0x912,
	QUERY_TIS = 0x915,
	CREATE_RQT = 0x916,
	MODIFY_RQT = 0x917,
	ALLOC_FLOW_COUNTER = 0x939,
	QUERY_FLOW_COUNTER = 0x93b,
};

/* The contexts' fields. */
#define CQC_OVERRUN_IGNORED SOFT_FIELD(14, 1)
#define CQC_COMPRESS SOFT_FIELD(17, 1)
#define CQC_MINI_FORMAT SOFT_FIELD(18, 2)
#define CQC_RECORD_UMEM SOFT_FIELD(32, 32)
#define CQC_MINI_FORMAT_EXT SOFT_FIELD(92, 2)
#define CQC_LOG_SIZE SOFT_FIELD(99, 5)
#define CQC_UAR SOFT_FIELD(104, 24)
#define CQC_RECORD_ADDRESS 448
#define CREATE_CQ_UMEM_OFFSET 640
#define CREATE_CQ_UMEM SOFT_FIELD(704, 32)
#define WQ_TYPE SOFT_FIELD(0, 4)
#define WQ_UAR SOFT_FIELD(104, 24)
#define WQ_RECORD_ADDRESS 128
#define WQ_LOG_STRIDE SOFT_FIELD(268, 4)
#define WQ_LOG_SIZE SOFT_FIELD(283, 5)
#define WQ_LOG_STRIDES SOFT_FIELD(308, 4)
#define WQ_LOG_STRIDE_SIZE SOFT_FIELD(317, 3)
#define WQ_RECORD_UMEM SOFT_FIELD(320, 32)
#define WQ_UMEM SOFT_FIELD(352, 32)
#define WQ_UMEM_OFFSET 384
#define WQ_STRIDING 3
#define LOG_STRIDES_MIN 9 /* of a WQE, as the field counts; a signed number */
#define LOG_STRIDE_SIZE_MIN 6
#define RQC_KEEP_VLAN SOFT_FIELD(3, 1)
#define RQC_MEMORY_TYPE SOFT_FIELD(4, 4)
#define RQC_FLUSH_IN_ERROR SOFT_FIELD(13, 1)
#define RQC_COUNTER SOFT_FIELD(96, 8)
#define RQC_CQ SOFT_FIELD(72, 24)
#define RQC_MEMORY_INLINE 0
#define SQC_CQ SOFT_FIELD(72, 24)
#define QUEUE_STATE SOFT_FIELD(8, 4)
#define MODIFY_FROM SOFT_FIELD(64, 4) /* the state that it is in */
#define MODIFY_MASK 128
#define MODIFY_RQ_VLAN 2
#define MODIFY_TIR_TABLE 2
#define MODIFY_TIR_HASH 4
#define TISC_TRANSPORT_DOMAIN SOFT_FIELD(296, 24)
#define RQTC_SIZE SOFT_FIELD(208, 16)
#define TIRC_TYPE SOFT_FIELD(32, 4)
#define TIRC_INLINE_RQ SOFT_FIELD(232, 24)
#define TIRC_TABLE SOFT_FIELD(264, 24)
#define TIRC_KEY 40 /* byte */
#define TIRC_KEY_SIZE 40
#define TIRC_OUTER 640
#define TIRC_L3_IPV6 SOFT_FIELD(TIRC_OUTER, 1)
#define TIRC_L4_UDP SOFT_FIELD(TIRC_OUTER + 1, 1)
#define TIRC_FIELDS SOFT_FIELD(TIRC_OUTER + 2, 30)

struct rq_table {
	uint32_t number;
	uint32_t log_size;
	uint32_t queues[512];
};

struct mlx5dv_devx_obj {
	struct soft_device *device;
	uint32_t file;	   /* of the context that it was made by */
	enum command kind; /* that created it */
	uint32_t number;
	void *content;
};

/* devx_create.c: 0 or a positive errno. The lock is held. */
int soft_devx_create(struct mlx5dv_devx_obj *object, const uint8_t *in, size_t in_length,
		     uint8_t *out);
/* What soft_devx_create() made goes; EBUSY where a rule leads to it. */
int soft_devx_destroy(struct mlx5dv_devx_obj *object);
int devx_fill_table(const struct mlx5dv_devx_obj *object, struct rq_table *table, const uint8_t *in,
		    size_t in_length);
/* Takes over a table as it is now. */
int devx_use_table(struct soft_hash *hash, uint32_t number);
int devx_use_fields(struct soft_hash *hash, const uint8_t *context);

#endif
