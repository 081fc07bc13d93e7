/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send queues.
 *
 * A WQE is a whole number of 64-byte blocks; within it, segments of 16 bytes: control, Ethernet
 * (with the start of the frame inline, if asked for), then data by reference or inline. A
 * multi-packet WQE holds a frame in each data segment.
 */
#include <string.h>

#include "memory.h"
#include "nic.h"
#include "packet.h"

#define OPCODE_MULTI_PACKET 0x29
#define PASS_FRAMES 32 /* no further WQE in a pass after that many frames */
#define FRAMES_MAX 96  /* of a pass; a multi-packet WQE has up to 61 */
#define GATHER_ROOM (1024 * 1024)
#define FRAME_MIN 60 /* the card pads to that */
#define DATA_INLINE (1u << 31)
#define INSERT_CVLAN 0x8000
#define INLINE_MIN 2 /* bytes of inline header that the Ethernet segment itself has room for */
#define COMPLETE_FIRST_ERROR 1
#define COMPLETE_ALWAYS 2
#define CONTROL_DS 0x3f

/* Frames read and not yet sent. */
static struct {
	uint8_t room[GATHER_ROOM] __attribute__((aligned(64)));
	uint32_t used;
	struct soft_frame frames[FRAMES_MAX + 1];
	unsigned int count;
} gather;

struct wqe {
	struct soft_sq *sq;
	uint16_t block;
	uint32_t start;	 /* byte in the ring */
	uint32_t length; /* bytes */
	uint8_t opcode;
	uint8_t complete; /* completion mode */
};

static uint32_t ring_bytes(const struct soft_sq *sq)
{
	return SOFT_BLOCK << sq->log_size;
}

/* A segment of the WQE, which may go on at the ring's start. */
static const void *segment(const struct wqe *wqe, uint32_t offset)
{
	return wqe->sq->ring + ((wqe->start + offset) & (ring_bytes(wqe->sq) - 1));
}

static void copy_out(const struct wqe *wqe, uint32_t offset, uint8_t *to, uint32_t length)
{
	uint32_t at = (wqe->start + offset) & (ring_bytes(wqe->sq) - 1);
	uint32_t first = ring_bytes(wqe->sq) - at;

	if (first > length)
		first = length;
	memcpy(to, wqe->sq->ring + at, first);
	memcpy(to + first, wqe->sq->ring, length - first);
}

static int wqe_at(struct soft_sq *sq, uint16_t block, struct wqe *wqe)
{
	const struct mlx5_wqe_ctrl_seg *control;
	uint32_t word;

	wqe->sq = sq;
	wqe->block = block;
	wqe->start = (block & ((1u << sq->log_size) - 1)) * SOFT_BLOCK;
	control = segment(wqe, 0);
	word = be32toh(control->opmod_idx_opcode);
	wqe->opcode = (uint8_t)word;
	wqe->length = (be32toh(control->qpn_ds) & CONTROL_DS) * SOFT_SEGMENT;
	wqe->complete = control->fm_ce_se >> 2 & 3;
	if ((word >> 8 & 0xffff) != block || be32toh(control->qpn_ds) >> 8 != sq->number ||
	    wqe->length < 2 * SOFT_SEGMENT)
		return -1;
	return 0;
}

static uint16_t blocks_of(const struct wqe *wqe)
{
	return (uint16_t)((wqe->length + SOFT_BLOCK - 1) / SOFT_BLOCK);
}

static void complete_wqe(const struct wqe *wqe)
{
	struct mlx5_cqe64 *cqe;

	if (wqe->complete < COMPLETE_ALWAYS)
		return;
	cqe = completion(wqe->sq->cq);
	cqe->sop_drop_qpn = htobe32((uint32_t)wqe->opcode << 24 | wqe->sq->number);
	cqe->wqe_counter = htobe16(wqe->block);
	cqe->op_own = MLX5_CQE_REQ << 4;
}

static void complete_error(struct soft_sq *sq, uint16_t block, uint8_t opcode, uint8_t syndrome)
{
	struct mlx5_err_cqe *cqe = (struct mlx5_err_cqe *)completion(sq->cq);

	cqe->syndrome = syndrome;
	cqe->s_wqe_opcode_qpn = htobe32((uint32_t)opcode << 24 | sq->number);
	cqe->wqe_counter = htobe16(block);
	cqe->op_own = MLX5_CQE_REQ_ERR << 4;
	sq->device->count.flushed += syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
}

static uint16_t posted(const struct soft_sq *sq)
{
	/* Acquire: the WQEs were written before the record. */
	return (uint16_t)be32toh(__atomic_load_n(&sq->record[1], __ATOMIC_ACQUIRE));
}

/* What was posted to a queue in error comes back unsent. */
static void flush_posted(struct soft_sq *sq)
{
	uint16_t end = posted(sq);
	struct wqe wqe;

	while (sq->next != end) {
		if (wqe_at(sq, sq->next, &wqe) < 0)
			break;
		if (wqe.complete != COMPLETE_FIRST_ERROR)
			complete_error(sq, sq->next, wqe.opcode, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		sq->next = (uint16_t)(sq->next + blocks_of(&wqe));
	}
	sq->rung = false;
}

void sq_fail(struct soft_sq *sq, uint16_t block, uint8_t syndrome)
{
	struct wqe wqe;

	soft_log("%s: send queue %u fails at block %u, syndrome %u", sq->device->ibv.name,
		 sq->number, block, syndrome);
	complete_error(sq, block, 0, syndrome);
	sq->state = SOFT_ERROR;
	if (wqe_at(sq, block, &wqe) < 0) {
		sq->next = posted(sq);
		return;
	}
	sq->next = (uint16_t)(block + blocks_of(&wqe));
	flush_posted(sq);
}

static uint8_t *gather_room(uint32_t length)
{
	uint8_t *place = gather.room + gather.used;

	return length > GATHER_ROOM - gather.used ? NULL : place;
}

static void gather_keep(struct soft_frame *frame)
{
	gather.used = (gather.used + frame->length + FRAME_MIN + SOFT_BLOCK - 1) / SOFT_BLOCK *
		      SOFT_BLOCK;
	gather.count++;
}

/* Adds what a data segment holds or names. Bytes of the WQE that it takes, or 0 with *syndrome set.
 */
static uint32_t add_data(const struct wqe *wqe, uint32_t offset, struct soft_frame *frame,
			 uint8_t *syndrome)
{
	const struct mlx5_wqe_data_seg *data = segment(wqe, offset);
	uint32_t length = be32toh(data->byte_count);
	bool here = (length & DATA_INLINE) != 0;
	struct soft_region *region;
	uint64_t address;

	length &= ~DATA_INLINE;
	if (length > SOFT_FRAME_MAX - frame->length ||
	    (here && length > wqe->length - offset - sizeof(uint32_t))) {
		*syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
		return 0;
	}
	if (here) {
		copy_out(wqe, offset + sizeof(uint32_t), frame->data + frame->length, length);
		frame->length += length;
		return (length + sizeof(uint32_t) + SOFT_SEGMENT - 1) / SOFT_SEGMENT * SOFT_SEGMENT;
	}
	address = be64toh(data->addr);
	region = soft_region_find(wqe->sq->device, be32toh(data->lkey), address, length);
	if (region == NULL) {
		*syndrome = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
		return 0;
	}
	soft_region_read(region, address, frame->data + frame->length, length);
	frame->length += length;
	return SOFT_SEGMENT;
}

static void insert_vlan(struct soft_frame *frame, uint16_t tci)
{
	memmove(frame->data + 16, frame->data + 12, frame->length - 12);
	memcpy(frame->data + 12, (uint8_t[]){ 0x81, 0x00, (uint8_t)(tci >> 8), (uint8_t)tci }, 4);
	frame->length += 4;
}

/* One frame in the whole WQE. */
static uint8_t gather_send(const struct wqe *wqe)
{
	const struct mlx5_wqe_eth_seg *ethernet = segment(wqe, SOFT_SEGMENT);
	struct soft_frame *frame = &gather.frames[gather.count];
	uint16_t header = be16toh(ethernet->inline_hdr_sz), tag = 0;
	uint32_t offset = 2 * SOFT_SEGMENT, taken;
	uint8_t syndrome = 0;

	*frame = (struct soft_frame){ .data = gather_room(SOFT_FRAME_MAX + 4),
				      .checksums = ethernet->cs_flags };
	if (header & INSERT_CVLAN) {
		memcpy(&tag, ethernet->inline_hdr_start, sizeof(tag));
	} else if (header != 0) {
		/* The header begins in the Ethernet segment's last two bytes. */
		if (header > INLINE_MIN)
			offset += (header - INLINE_MIN + SOFT_SEGMENT - 1u) / SOFT_SEGMENT *
				  SOFT_SEGMENT;
		if (header > SOFT_FRAME_MAX || offset > wqe->length)
			return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		copy_out(wqe, 2 * SOFT_SEGMENT - INLINE_MIN, frame->data, header);
		frame->length = header;
	}
	while (offset < wqe->length) {
		taken = add_data(wqe, offset, frame, &syndrome);
		if (taken == 0)
			return syndrome;
		offset += taken;
	}
	if (frame->length < 14)
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	if (header & INSERT_CVLAN) {
		soft_dma_complete();
		insert_vlan(frame, be16toh(tag));
	}
	gather_keep(frame);
	return 0;
}

/* A frame in each data segment. */
static uint8_t gather_multi(const struct wqe *wqe)
{
	const struct mlx5_wqe_eth_seg *ethernet = segment(wqe, SOFT_SEGMENT);
	uint32_t offset = 2 * SOFT_SEGMENT, taken;
	uint8_t syndrome = 0;

	while (offset < wqe->length) {
		struct soft_frame *frame = &gather.frames[gather.count];

		*frame = (struct soft_frame){ .data = gather_room(SOFT_FRAME_MAX),
					      .checksums = ethernet->cs_flags };
		if (gather.count == FRAMES_MAX || frame->data == NULL)
			return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
		taken = add_data(wqe, offset, frame, &syndrome);
		if (taken == 0)
			return syndrome;
		if (frame->length < 14)
			return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
		offset += taken;
		gather_keep(frame);
	}
	return 0;
}

static void send_gathered(struct soft_device *device)
{
	soft_dma_complete();
	for (unsigned int i = 0; i < gather.count; i++) {
		struct soft_frame *frame = &gather.frames[i];

		if (frame->length < FRAME_MIN) {
			memset(frame->data + frame->length, 0, FRAME_MIN - frame->length);
			frame->length = FRAME_MIN;
		}
		if (frame->checksums & (MLX5_ETH_WQE_L3_CSUM | MLX5_ETH_WQE_L4_CSUM))
			packet_fill_checksums(frame->data, frame->length,
					      frame->checksums & MLX5_ETH_WQE_L3_CSUM,
					      frame->checksums & MLX5_ETH_WQE_L4_CSUM);
		wire_send(device, frame);
	}
	gather.count = 0;
	gather.used = 0;
}

/* 0, or the syndrome of what is wrong with the WQE. */
static uint8_t gather_wqe(const struct wqe *wqe)
{
	if (soft_fault(&wqe->sq->device->faults.tx_error))
		return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	switch (wqe->opcode) {
	case MLX5_OPCODE_NOP:
		return 0;
	case MLX5_OPCODE_SEND:
		return gather_send(wqe);
	case OPCODE_MULTI_PACKET:
		return gather_multi(wqe);
	default:
		return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	}
}

unsigned int sq_run(struct soft_sq *sq)
{
	struct wqe done[FRAMES_MAX], wqe;
	unsigned int wqes = 0, before;
	uint16_t end = posted(sq);
	uint8_t syndrome = 0;

	if (sq->state == SOFT_ERROR) {
		flush_posted(sq);
		return 1;
	}
	if (!wire_ready(sq->device))
		return 0;
	while (sq->next != end && wqes < FRAMES_MAX && gather.count < PASS_FRAMES) {
		before = gather.count;
		if (wqe_at(sq, sq->next, &wqe) < 0 ||
		    (uint16_t)(end - sq->next) < blocks_of(&wqe)) {
			syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
			break;
		}
		syndrome = gather_wqe(&wqe);
		if (syndrome != 0) {
			gather.count = before;
			break;
		}
		done[wqes++] = wqe;
		sq->next = (uint16_t)(sq->next + blocks_of(&wqe));
	}
	send_gathered(sq->device);
	for (unsigned int i = 0; i < wqes; i++)
		complete_wqe(&done[i]);
	if (syndrome != 0)
		sq_fail(sq, sq->next, syndrome);
	else if (sq->next == end)
		sq->rung = false;
	return wqes + (syndrome != 0);
}
