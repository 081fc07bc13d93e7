/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues.
 *
 * A cyclic queue's WQE is a list of 1, 2, 4... buffers that a frame fills one after the other. A
 * striding queue's WQE is one large buffer of equal strides, of which a frame takes as many as it
 * needs (MPRQ).
 */
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "nic.h"
#include "soft_steering.h"

#define FILLER (1u << 31) /* of an MPRQ completion: these strides hold no frame */
#define STRIDES_SHIFT 16
#define INVALID_KEY 0x100 /* ends a list of buffers */
#define SEGMENTS_MAX 32
#define VLAN_STRIPPED 1
#define LATE_MAX 256
#define READER_NS 2000000000ull /* a sender is held up for a second look at most */
#define HOLD_NS 20000000000ull	/* data wait for a first look, by a reader that may have no core */
#define ROOM_LOW 128		/* buffers; more than a sender's pass has frames */
#define FRAME_STRIDES 8		/* that a long frame takes, more or less */

/* Data that comes after its completion: the "stale" fault. */
static struct late {
	struct soft_device *device;
	bool for_reader; /* due when its reader asks, or else: */
	uint64_t due_ns;
	uint64_t address;
	uint32_t key;
	uint32_t length;
	uint8_t *data;
} late[LATE_MAX];
static unsigned int late_count;
/* Of them, for a reader: its threads look at these without the lock. */
static unsigned int held_count;
static uint64_t reading_ns; /* it has them, and is to come once more: until then at most; 0: not */

/* A piece of a frame and where it goes. */
struct piece {
	struct soft_region *region;
	uint64_t address;
	uint32_t length;
};

static const struct mlx5_wqe_data_seg *wqe_of(const struct soft_rq *rq, uint16_t index)
{
	return (const struct mlx5_wqe_data_seg *)(rq->ring +
						  ((uint32_t)(index & ((1u << rq->log_size) - 1))
						   << rq->log_stride));
}

static uint16_t posted_far(struct soft_rq *rq)
{
	uint32_t record;

	soft_far_read(&rq->far_record, 0, &record, sizeof(record));
	rq->far_posted = (uint16_t)be32toh(record);
	return rq->far_posted;
}

/* At least so many were posted; all of them where the next WQE is not. */
static uint16_t posted(struct soft_rq *rq)
{
	if (rq->record == NULL)
		return rq->far_posted != rq->next ? rq->far_posted : posted_far(rq);
	/* Acquire: the WQEs were written before the record. */
	return (uint16_t)be32toh(__atomic_load_n(rq->record, __ATOMIC_ACQUIRE));
}

/* Buffers, or strides of them, of so many WQEs. */
static uint32_t room_of(const struct soft_rq *rq, uint16_t wqes)
{
	return rq->striding && wqes > 0 ? ((uint32_t)wqes << rq->log_strides) - rq->next_stride
					: wqes;
}

bool rx_has_room(const struct soft_device *device)
{
	for (unsigned int i = 1; i < device->rq_end; i++) {
		struct soft_rq *rq = device->rqs[i];
		uint32_t half, low, left;

		if (rq == NULL || rq->state != SOFT_READY)
			continue;
		half = 1u << (rq->log_size + (rq->striding ? rq->log_strides : 0)) >> 1;
		low = ROOM_LOW * (rq->striding ? FRAME_STRIDES : 1);
		half = half < low ? half : low;
		left = room_of(rq, (uint16_t)(posted(rq) - rq->next));
		if (left < half && rq->record == NULL)
			left = room_of(rq, (uint16_t)(posted_far(rq) - rq->next));
		if (left < half)
			return false;
	}
	return true;
}

static void complete_error(struct soft_rq *rq, uint16_t wqe, uint8_t syndrome)
{
	struct mlx5_err_cqe *cqe = (struct mlx5_err_cqe *)completion(rq->cq);

	cqe->syndrome = syndrome;
	cqe->s_wqe_opcode_qpn = htobe32(rq->number);
	cqe->wqe_counter = htobe16(wqe);
	cqe->op_own = MLX5_CQE_RESP_ERR << 4;
	rq->device->count.flushed += syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
}

/* What was posted comes back, flushed, where the queue was made so. */
void rq_flush(struct soft_rq *rq)
{
	uint16_t end = rq->record != NULL ? posted(rq) : posted_far(rq);

	for (; rq->flushes && rq->next != end; rq->next++)
		complete_error(rq, rq->next, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
}

/* The WQE of the error comes back with the syndrome, the others that were posted flushed. */
void rq_fail(struct soft_rq *rq, uint16_t wqe, uint8_t syndrome)
{
	soft_log("%s: receive queue %u fails at WQE %u, syndrome %u", rq->device->ibv.name,
		 rq->number, wqe, syndrome);
	complete_error(rq, wqe, syndrome);
	rq->state = SOFT_ERROR;
	rq->device->count.rx_wqe_err++;
	rq->next = (uint16_t)(wqe + 1);
	rq_flush(rq);
}

static void write_late(struct soft_rq *rq, const struct piece *piece, const uint8_t *data)
{
	struct late *entry = &late[late_count];

	if (late_count == LATE_MAX)
		return;
	*entry = (struct late){
		.device = rq->device,
		.for_reader = rq->device->faults.stale_us == 0,
		.due_ns = nic_now_ns() + (rq->device->faults.stale_us != 0
						  ? rq->device->faults.stale_us * 1000
						  : HOLD_NS),
		.address = piece->address,
		.key = piece->region->key,
		.length = piece->length,
		.data = malloc(piece->length),
	};
	if (entry->data == NULL)
		return;
	memcpy(entry->data, data, piece->length);
	late_count++;
	if (entry->for_reader)
		__atomic_add_fetch(&held_count, 1, __ATOMIC_RELAXED);
}

/* Writes what is due, or what waits for its reader. */
static void late_write(uint64_t now_ns, bool reader)
{
	unsigned int kept = 0;

	for (unsigned int i = 0; i < late_count; i++) {
		struct late *entry = &late[i];
		struct soft_region *region;

		if (entry->due_ns > now_ns && !(reader && entry->for_reader)) {
			late[kept++] = *entry;
			continue;
		}
		if (entry->for_reader)
			__atomic_sub_fetch(&held_count, 1, __ATOMIC_RELAXED);
		region = soft_region_find(entry->device, entry->key, entry->address, entry->length);
		if (region != NULL)
			soft_region_write(region, entry->address, entry->data, entry->length);
		soft_dma_complete();
		free(entry->data);
	}
	late_count = kept;
}

void rx_poll(uint64_t now_ns)
{
	late_write(now_ns, false);
	if (now_ns > reading_ns)
		__atomic_store_n(&reading_ns, 0, __ATOMIC_RELAXED);
}

bool rx_holds_back(void)
{
	return __atomic_load_n(&held_count, __ATOMIC_RELAXED) != 0 ||
	       __atomic_load_n(&reading_ns, __ATOMIC_RELAXED) != 0;
}

void rx_hand_over(bool comes_back)
{
	bool held = held_count != 0;

	late_write(0, true);
	__atomic_store_n(&reading_ns, held && comes_back ? nic_now_ns() + READER_NS : 0,
			 __ATOMIC_RELAXED);
}

/* Where the bytes go. Number of pieces, or 0 with *syndrome set. */
static unsigned int scatter(struct soft_rq *rq, const struct mlx5_wqe_data_seg *data,
			    unsigned int segments, uint32_t skip, uint32_t length,
			    struct piece *pieces, uint8_t *syndrome)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < segments && length > 0; i++, data++) {
		struct piece *piece = &pieces[count];
		uint32_t room = be32toh(data->byte_count), key = be32toh(data->lkey);

		if (key == INVALID_KEY && room == 0)
			break;
		if (room <= skip) {
			skip -= room;
			continue;
		}
		piece->length = room - skip < length ? room - skip : length;
		piece->address = be64toh(data->addr) + skip;
		skip = 0;
		piece->region = soft_region_find(rq->device, key, piece->address, piece->length);
		if (piece->region == NULL) {
			*syndrome = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
			return 0;
		}
		length -= piece->length;
		count++;
	}
	if (length > 0) {
		*syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
		return 0;
	}
	return count;
}

static void write_pieces(struct soft_rq *rq, const struct piece *pieces, unsigned int count,
			 uint8_t *data)
{
	struct soft_faults *faults = &rq->device->faults;
	bool stale = soft_fault(&faults->stale);

	if (soft_fault(&faults->flip))
		data[pieces[0].length / 2] ^= 1;
	for (unsigned int i = 0; i < count; i++) {
		if (stale)
			write_late(rq, &pieces[i], data);
		else
			soft_region_write(pieces[i].region, pieces[i].address, data,
					  pieces[i].length);
		data += pieces[i].length;
	}
	if (soft_fault(&faults->late))
		completion_delay(faults->late_us);
	if (soft_fault(&faults->wrong_owner))
		completion_wrong_owner();
	if (soft_fault(&faults->torn))
		completion_torn(faults->torn_us);
}

static struct mlx5_cqe64 *complete_frame(struct soft_rq *rq, const struct packet *packet,
					 uint32_t tag, uint32_t hash, uint8_t hash_type,
					 bool stripped)
{
	struct mlx5_cqe64 *cqe = completion(rq->cq);
	uint8_t *bytes = (uint8_t *)cqe;

	hash = htobe32(hash);
	memcpy(bytes + 12, &hash, sizeof(hash));
	bytes[16] = hash_type;
	cqe->hds_ip_ext = (uint8_t)(MLX5_CQE_L2_OK | (packet->l3_ok ? MLX5_CQE_L3_OK : 0) |
				    (packet->l4_ok ? MLX5_CQE_L4_OK : 0));
	cqe->l4_hdr_type_etc = (uint8_t)((stripped ? VLAN_STRIPPED : 0) | packet->l3_type << 2 |
					 packet->l4_type << 4 | packet->fragment << 7);
	cqe->vlan_info = stripped ? htobe16(packet->tci) : 0;
	cqe->timestamp = htobe64(nic_timestamp(rq->split_time));
	cqe->sop_drop_qpn = htobe32(tag & 0xffffff);
	cqe->op_own = MLX5_CQE_RESP_SEND << 4;
	return cqe;
}

/* Strides of an MPRQ WQE that hold nothing. */
static void complete_filler(struct soft_rq *rq, uint32_t strides)
{
	struct mlx5_cqe64 *cqe = completion(rq->cq);

	cqe->byte_cnt = htobe32(FILLER | strides << STRIDES_SHIFT);
	cqe->wqe_id = htobe16(rq->next);
	cqe->wqe_counter = htobe16(rq->next_stride);
	cqe->op_own = MLX5_CQE_RESP_SEND << 4;
}

static void next_wqe(struct soft_rq *rq)
{
	rq->next++;
	rq->next_stride = 0;
}

/* Makes room of that many strides in one WQE. False: no WQE is left. fills: though it has room. */
static bool stride_room(struct soft_rq *rq, uint32_t strides, bool fills)
{
	uint32_t all = 1u << rq->log_strides;

	if ((strides > all - rq->next_stride || fills) && posted(rq) != rq->next) {
		complete_filler(rq, all - rq->next_stride);
		next_wqe(rq);
	}
	return posted(rq) != rq->next;
}

static void out_of_buffer(struct soft_rq *rq)
{
	rq->device->count.out_of_buffer++;
	if (rq->counter != NULL)
		rq->counter->out_of_buffer++;
}

static void rq_deliver(struct soft_rq *rq, const struct packet *packet,
		       const struct soft_verdict *verdict, uint32_t hash, uint8_t hash_type,
		       bool stripped)
{
	uint32_t strides =
		(packet->length + (1u << rq->log_stride_size) - 1) >> rq->log_stride_size;
	unsigned int segments = 1u << (rq->log_stride - 4), count;
	struct soft_faults *faults = &rq->device->faults;
	const struct mlx5_wqe_data_seg *data;
	struct piece pieces[SEGMENTS_MAX];
	struct mlx5_cqe64 *cqe;
	uint8_t syndrome = 0;
	uint32_t skip = 0;

	if (rq->state != SOFT_READY || soft_fault(&faults->no_buffers) ||
	    (rq->striding ? !stride_room(rq, strides, soft_fault(&faults->filler))
			  : posted(rq) == rq->next && !faults->ignore_records)) {
		out_of_buffer(rq);
		return;
	}
	if (soft_fault(&faults->rx_error)) {
		rq_fail(rq, rq->next, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
		return;
	}
	data = wqe_of(rq, rq->next);
	if (rq->striding) {
		data++; /* behind the link to the next WQE */
		segments = 1;
		skip = (uint32_t)rq->next_stride << rq->log_stride_size;
	}
	count = scatter(rq, data, segments, skip, packet->length, pieces, &syndrome);
	if (count > 0 && soft_fault(&faults->revoke)) {
		pieces[0].region->revoked = true;
		count = 0;
		syndrome = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	}
	if (count == 0 && syndrome == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR && !rq->striding) {
		/* The frame is lost, the queue goes on. */
		complete_error(rq, rq->next, syndrome);
		next_wqe(rq);
		return;
	}
	if (count == 0) {
		rq_fail(rq, rq->next, syndrome);
		return;
	}
	write_pieces(rq, pieces, count, packet->data);
	cqe = complete_frame(rq, packet, verdict->tag, hash, hash_type, stripped);
	rq->frames++;
	if (!rq->striding) {
		cqe->byte_cnt = htobe32(packet->length);
		cqe->wqe_counter = htobe16((uint16_t)(rq->next + soft_fault(&faults->wrong_entry)));
		next_wqe(rq);
		return;
	}
	cqe->byte_cnt = htobe32(packet->length | strides << STRIDES_SHIFT);
	cqe->wqe_id = htobe16((uint16_t)(rq->next + soft_fault(&faults->wrong_entry)));
	cqe->wqe_counter = htobe16((uint16_t)(rq->next_stride + soft_fault(&faults->wrong_stride)));
	rq->next_stride = (uint16_t)(rq->next_stride + strides);
	if (rq->next_stride == 1u << rq->log_strides)
		next_wqe(rq);
}

void rx_deliver(struct soft_device *device, uint8_t *data, uint32_t length)
{
	struct soft_verdict verdict;
	struct packet packet;
	struct soft_rq *rq;
	uint32_t hash;
	uint8_t type;
	bool strip;

	packet_parse(&packet, data, length);
	steering_decide(device, &packet, &verdict);
	if (verdict.dropped) {
		device->count.dropped_by_rule++;
		return;
	}
	if (verdict.hash == NULL) {
		device->count.to_kernel++;
		return;
	}
	rq = hash_choose(verdict.hash, &packet, &hash, &type);
	if (rq == NULL) {
		device->count.dropped_by_rule++;
		return;
	}
	strip = packet.tagged && (rq->vlan_strip || verdict.pop_vlan);
	if (strip)
		packet_strip_vlan(&packet);
	rq_deliver(rq, &packet, &verdict, hash, type, strip);
}
