/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ConnectX's commands: where their fields stand, as the device documents it.
 *
 * A command, its answer and the contexts in them are big-endian dwords; a field is counted in bits
 * from the start of its structure, a dword's most significant bit first, and does not cross a dword
 * except those of 64 bits. tests/check_prm.py compares every position with DPDK's header.
 */
#ifndef GDRCAP_PRM_H
#define GDRCAP_PRM_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

struct prm_field {
	uint16_t bit;
	uint8_t width; /* 1 to 32 */
};
#define PRM_FIELD(bit, width) ((struct prm_field){ bit, width })

static inline void prm_set(void *base, struct prm_field field, uint32_t value)
{
	uint8_t *place = (uint8_t *)base + field.bit / 32 * 4;
	const unsigned int shift = 32u - field.bit % 32u - field.width;
	const uint32_t ones = field.width == 32 ? UINT32_MAX : (1u << field.width) - 1;
	uint32_t dword;

	memcpy(&dword, place, sizeof(dword));
	dword = htobe32((be32toh(dword) & ~(ones << shift)) | ((value & ones) << shift));
	memcpy(place, &dword, sizeof(dword));
}

static inline uint32_t prm_get(const void *base, struct prm_field field)
{
	const unsigned int shift = 32u - field.bit % 32u - field.width;
	uint32_t dword;

	memcpy(&dword, (const uint8_t *)base + field.bit / 32 * 4, sizeof(dword));
	dword = be32toh(dword) >> shift;
	return field.width == 32 ? dword : dword & ((1u << field.width) - 1);
}

static inline void prm_set64(void *base, uint32_t bit, uint64_t value)
{
	value = htobe64(value);
	memcpy((uint8_t *)base + bit / 8, &value, sizeof(value));
}

enum prm_opcode {
	PRM_QUERY_HCA_CAP = 0x100,
	PRM_CREATE_CQ = 0x400,
	PRM_ALLOC_Q_COUNTER = 0x771,
	PRM_QUERY_Q_COUNTER = 0x773,
	PRM_ALLOC_TRANSPORT_DOMAIN = 0x816,
	PRM_CREATE_SQ = 0x904,
	PRM_MODIFY_SQ = 0x905,
	PRM_CREATE_RQ = 0x908,
	PRM_MODIFY_RQ = 0x909,
	PRM_QUERY_RQ = 0x90b,
	PRM_CREATE_TIS = 0x912,
};

/* ---- any command, any answer ---- */
#define PRM_OPCODE PRM_FIELD(0, 16)
#define PRM_OP_MOD PRM_FIELD(48, 16)
#define PRM_STATUS PRM_FIELD(0, 8)
#define PRM_SYNDROME PRM_FIELD(32, 32)
#define PRM_NUMBER PRM_FIELD(72, 24) /* of the object that was made */
#define PRM_OUT_BYTES 16u

/* ---- QUERY_HCA_CAP ---- */
#define PRM_QUERY_CAP_IN_BYTES 16u
#define PRM_QUERY_CAP_OUT_BYTES (16u + 4096u)
#define PRM_CAP 16u		   /* byte of the answer where the capabilities begin */
#define PRM_CAP_GENERAL_CURRENT 1u /* op_mod */
#define PRM_CAP_ETHERNET_CURRENT 3u
#define PRM_CAP_LOG_MAX_CQ_SIZE PRM_FIELD(200, 8)
#define PRM_CAP_SQ_TS_FORMAT PRM_FIELD(1088, 2)
#define PRM_CAP_RQ_TS_FORMAT PRM_FIELD(1090, 2)
#define PRM_CAP_LOG_MAX_WQ_SIZE PRM_FIELD(987, 5)
#define PRM_ETH_INLINE_MODE PRM_FIELD(18, 2) /* of the Ethernet capabilities: see the SQ's */
#define PRM_INLINE_MODE_L2 0u		     /* what a card wants inline */
#define PRM_INLINE_MODE_CONTEXT 1u	     /* as the vport's context says */
#define PRM_INLINE_MODE_NONE 2u		     /* nothing: ConnectX-5 and later */

/* Time stamps of completions: what cards can, and what a queue asks for. */
#define PRM_CAP_TS_FREE_RUNNING 0u
#define PRM_TS_FREE_RUNNING 0u
#define PRM_TS_DEFAULT 1u

/* ---- CREATE_CQ ---- */
#define PRM_CREATE_CQ_IN_BYTES 272u
#define PRM_CREATE_CQ_CONTEXT 16u /* byte */
#define PRM_CREATE_CQ_UMEM_OFFSET 640u
#define PRM_CREATE_CQ_UMEM PRM_FIELD(704, 32)
#define PRM_CREATE_CQ_UMEM_VALID PRM_FIELD(736, 1)
#define PRM_CQC_RECORD_VALID PRM_FIELD(6, 1)
#define PRM_CQC_CQE_SIZE PRM_FIELD(8, 3) /* 0: 64 bytes */
#define PRM_CQC_COLLAPSED PRM_FIELD(11, 1)
#define PRM_CQC_OVERRUN_IGNORE PRM_FIELD(14, 1)
#define PRM_CQC_RECORD_UMEM PRM_FIELD(32, 32)
#define PRM_CQC_LOG_SIZE PRM_FIELD(99, 5)
#define PRM_CQC_UAR PRM_FIELD(104, 24)
#define PRM_CQC_EQN PRM_FIELD(184, 8)
#define PRM_CQC_RECORD_OFFSET 448u

/* ---- Q counter ---- */
#define PRM_ALLOC_Q_COUNTER_IN_BYTES 16u
#define PRM_ALLOC_Q_COUNTER_NUMBER PRM_FIELD(88, 8) /* in the answer */
#define PRM_QUERY_Q_COUNTER_IN_BYTES 32u
#define PRM_QUERY_Q_COUNTER_OUT_BYTES 256u
#define PRM_QUERY_Q_COUNTER_NUMBER PRM_FIELD(248, 8) /* in the command */
#define PRM_Q_COUNTER_OUT_OF_BUFFER PRM_FIELD(384, 32)

/* ---- work queues: part of the contexts of receive and send queues ---- */
#define PRM_WQ_BYTES 192u
#define PRM_WQ_TYPE PRM_FIELD(0, 4)
#define PRM_WQ_CYCLIC 1u
#define PRM_WQ_CYCLIC_STRIDING 3u      /* of receive queues */
#define PRM_WQ_PADDING PRM_FIELD(5, 2) /* 1: writes are filled up to whole cache lines */
#define PRM_WQ_PD PRM_FIELD(72, 24)
#define PRM_WQ_UAR PRM_FIELD(104, 24)
#define PRM_WQ_RECORD_OFFSET 128u
#define PRM_WQ_LOG_STRIDE PRM_FIELD(268, 4)
#define PRM_WQ_LOG_SIZE PRM_FIELD(283, 5)
#define PRM_WQ_RECORD_VALID PRM_FIELD(288, 1)
#define PRM_WQ_UMEM_VALID PRM_FIELD(289, 1)
/* Strides of a work entry, 512 times 2^n, where n has a sign; bytes of a stride, 64 times 2^n. */
#define PRM_WQ_LOG_STRIDES PRM_FIELD(308, 4)
#define PRM_WQ_LOG_STRIDES_ZERO 9u
#define PRM_WQ_LOG_STRIDE_BYTES PRM_FIELD(317, 3)
#define PRM_WQ_LOG_STRIDE_BYTES_ZERO 6u
#define PRM_WQ_RECORD_UMEM PRM_FIELD(320, 32)
#define PRM_WQ_UMEM PRM_FIELD(352, 32)
#define PRM_WQ_UMEM_OFFSET 384u

/* ---- CREATE_RQ, MODIFY_RQ, and the same of send queues ---- */
#define PRM_QUEUE_CONTEXT 32u		      /* byte of the command */
#define PRM_QUEUE_WQ 48u		      /* byte of the context */
#define PRM_QUEUE_IN_BYTES (32u + 48u + 192u) /* all four commands */
#define PRM_MODIFY_FROM PRM_FIELD(64, 4)      /* state that the queue is in */
#define PRM_MODIFY_NUMBER PRM_FIELD(72, 24)
#define PRM_QUEUE_STATE PRM_FIELD(8, 4) /* of either context */
#define PRM_QUEUE_TS_FORMAT PRM_FIELD(26, 2)
#define PRM_QUEUE_CQ PRM_FIELD(72, 24)
#define PRM_RQC_KEEP_VLAN PRM_FIELD(3, 1)
#define PRM_RQC_FLUSH_IN_ERROR PRM_FIELD(13, 1)
#define PRM_RQC_COUNTER PRM_FIELD(96, 8)

/* ---- QUERY_RQ: the context stands in the answer ---- */
#define PRM_QUERY_RQ_IN_BYTES 16u
#define PRM_QUERY_RQ_OUT_BYTES PRM_QUEUE_IN_BYTES

/* ---- CREATE_SQ: what only its context has ---- */
#define PRM_SQC_FLUSH_IN_ERROR PRM_FIELD(3, 1)
#define PRM_SQC_MULTI_PACKET PRM_FIELD(4, 1)
#define PRM_SQC_INLINE_MODE PRM_FIELD(5, 3) /* least that is inline; 0: nothing */
#define PRM_SQC_TIS_COUNT PRM_FIELD(256, 16)
#define PRM_SQC_TIS PRM_FIELD(360, 24)

/* ---- ALLOC_TRANSPORT_DOMAIN, CREATE_TIS ---- */
#define PRM_ALLOC_DOMAIN_IN_BYTES 16u
#define PRM_CREATE_TIS_IN_BYTES (32u + 160u)
#define PRM_TIS_CONTEXT 32u /* byte */
#define PRM_TISC_DOMAIN PRM_FIELD(296, 24)

enum prm_state {
	PRM_STATE_RESET = 0,
	PRM_STATE_READY = 1,
	PRM_STATE_ERROR = 3,
};

#endif
