/* SPDX-License-Identifier: BSD-3-Clause */
#include "own_rig.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/eal.h"
#include "base/log.h"
#include "capture/cq_front.h"
#include "device.h"
#include "faults.h"
#include "memory.h"
#include "nic.h"
#include "own_gpu.h"

#define BUFFERS 1024 /* more than a send queue holds: it gives them back when more is sent */
#define BURST 32
#define SLOTS_BYTES ((size_t)64 << 20)
#define SENDER "0000:aa:00.0,txq_inline_max=0,txq_inline_mpw=0"
#define OPCODE_INVALID 15

static bool cuda;
static int16_t cuda_gpu;
static uint32_t strides_given;

bool own_rig_cuda(void)
{
	cuda = own_gpu_start(&cuda_gpu);
	return cuda;
}

void own_rig_strides(uint32_t strides)
{
	strides_given = strides;
}

void own_rig_init(int argc, char **argv)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)256 << 20, .pci = true };
	struct gdrcap_error error;

	setenv("SOFTMLX5_DEVX", argc > 1 && strcmp(argv[1], "verbs") == 0 ? "0" : "1", 1);
	if (eal_start(&needs, &error) == 0)
		return;
	fprintf(stderr, "%s\n", error.text);
	exit(1);
}

void own_rig_faults(const char *text)
{
	nic_lock();
	assert_int_equal(soft_faults_parse(text), 0);
	nic_unlock();
}

static void receiver_open(struct own_rig *rig)
{
	const struct connectx_use use = { .receives = true };
	struct connectx_card found;
	struct connectx_use with = use;
	struct gdrcap_error error = { 0 };
	char opened[256], handed[256];

	if (connectx_find(&found, OWN_RECEIVER, NULL, &error) < 0 ||
	    devx_open(&rig->card, &found, OWN_RECEIVER, &error) < 0)
		fail_msg("%s", error.text);
	with.card = &found;
	assert_int_equal(connectx_devargs(OWN_RECEIVER, &with, opened, sizeof(opened), &error), 0);
	assert_int_equal(devx_devargs(&rig->card, opened, handed, sizeof(handed), &error), 0);
	if (port_open(&rig->port[1], handed, OWN_RECEIVER, &error) < 0)
		fail_msg("%s", error.text);
	devx_probed(&rig->card, true);
}

static struct rte_mempool *pool_create(const struct rig_memory *memory)
{
	struct rte_pktmbuf_extmem area = { .buf_ptr = memory->device,
					   .buf_iova = RTE_BAD_IOVA,
					   .buf_len = memory->size,
					   .elt_size = 1u << OWN_SLOT_SHIFT };

	return rte_pktmbuf_pool_create_extbuf("own", BUFFERS, 0, 0, 1u << OWN_SLOT_SHIFT,
					      SOCKET_ID_ANY, &area, 1);
}

/* host: in a GPU's case a shadow. */
static void slots_get(struct own_rig *rig)
{
	rig->cuda = rig->record_beside = cuda;
	if (!cuda) {
		rig_memory(&rig->slots, SLOTS_BYTES, true);
		return;
	}
	rig->gpu = cuda_gpu;
	rig->slots.size = SLOTS_BYTES;
	rig->slots.device = own_gpu_memory(SLOTS_BYTES);
	rig->slots.host = malloc(SLOTS_BYTES);
	assert_true(rig->slots.device && rig->slots.host);
}

int own_rig_setup(void **state)
{
	struct own_rig *rig = calloc(1, sizeof(*rig));
	struct rig_port port = {
		.tx_queues = 1, .descriptors = 512, .isolated = true, .mtu = 9000
	};
	struct gdrcap_error error = { 0 };

	assert_non_null(rig);
	if (port_open(&rig->port[0], SENDER, SENDER, &error) < 0)
		fail_msg("%s", error.text);
	receiver_open(rig);
	rig_memory(&rig->sent, (size_t)BUFFERS << OWN_SLOT_SHIFT, true);
	assert_int_equal(rig_map(&rig->sent), 0);
	rig->pool = pool_create(&rig->sent);
	assert_non_null(rig->pool);
	slots_get(rig);
	rig->strides = strides_given;
	if (devx_key_create(&rig->card, &rig->key, rig->slots.device, rig->slots.size, &error) < 0)
		fail_msg("%s", error.text);
	for (uint32_t i = 0; i < 2; i++) {
		port.id = rig->port[i].id;
		rig_port_start(&port);
	}
	*state = rig;
	return 0;
}

int own_rig_teardown(void **state)
{
	struct own_rig *rig = *state;

	assert_int_equal(devx_key_destroy(&rig->key), 0);
	for (uint32_t i = 0; i < 2; i++) {
		rte_eth_dev_stop(rig->port[i].id);
		port_close(&rig->port[i]);
	}
	devx_close(&rig->card);
	rte_mempool_free(rig->pool);
	if (rig->cuda)
		free(rig->slots.host);
	free(rig);
	return 0;
}

int own_rig_reset(void **state)
{
	struct own_rig *rig = *state;
	struct gdrcap_error error = { 0 };

	own_rig_faults(
		"drop=off,no_buffers=off,rx_error=off,revoke=off,late=off,wrong_owner=off,"
		"torn=off,wrong_entry=off,wrong_stride=off,filler=off,flip=off,refuse=off,refuse_dmabuf=off,refuse_peer=off,refuse_umem=off,refuse_object=off,"
		"ignore_records=0,strict_states=0");
	nic_lock();
	soft_regions_restore();
	nic_unlock();
	steering_destroy(&rig->steering);
	for (uint32_t i = 0; i < OWN_QUEUES; i++)
		if (own_rx_destroy(&rig->queue[i].rx, &error) < 0)
			fail_msg("%s", error.text);
	memset(rig->queue, 0, sizeof(rig->queue));
	rig->queues = 0;
	rig->rule = NULL;
	rig->strides = strides_given;
	rig->in_gpu = rig->record_beside = false;
	if (rig->cuda)
		rig->record_beside = true;
	nic_settle();
	return 0;
}

int own_rig_queue(struct own_rig *rig, uint32_t queue, uint32_t slots, uint32_t shift,
		  struct gdrcap_error *error)
{
	const struct own_rx_config config = {
		.card = &rig->card,
		.port = rig->port[1].id,
		.queue = (uint16_t)queue,
		.base = rig->slots.device,
		.key = rig->key->lkey,
		.slot_shift = shift,
		.first_slot = queue * slots,
		.slots = slots,
		.strides = rig->strides,
		.memory = rig->in_gpu || rig->cuda ? GDRCAP_MEMORY_DEVICE : GDRCAP_MEMORY_HOST,
		.record_beside = rig->record_beside,
		.gpu = rig->gpu,
		.cpu_front = !rig->cuda,
		.fill = rig->cuda ? own_gpu_fill : NULL,
	};
	struct own_queue *own = &rig->queue[queue];

	assert_true((size_t)(queue + 1) * slots << shift <= rig->slots.size);
	memset(own, 0, sizeof(*own));
	own->far = rig->cuda;
	return own_rx_create(&own->rx, &config, error);
}

void own_rig_rule(struct own_rig *rig)
{
	struct frame_match match = { .count = 1 };
	const struct steering_config config = {
		.port = rig->port[1].id,
		.name = OWN_RECEIVER,
		.first_queue = OWN_RX_FLOW_QUEUE(0),
		.queues = (uint16_t)rig->queues,
		.match = &match,
	};
	struct gdrcap_error error = { 0 };
	char why[200];

	if (frame_match_parse(&match.rule[0], rig->rule ? rig->rule : "ethertype=0x88b5", why,
			      sizeof(why)) < 0)
		fail_msg("%s", why);
	if (steering_create(&rig->steering, &config, &error) < 0)
		fail_msg("%s", error.text);
}

void own_rig_queues(struct own_rig *rig, uint32_t queues, uint32_t slots, uint32_t shift)
{
	struct gdrcap_error error = { 0 };

	own_rig_faults("strict_states=1");
	for (uint32_t q = 0; q < queues; q++) {
		if (own_rig_queue(rig, q, slots, shift, &error) < 0)
			fail_msg("%s", error.text);
		own_post(&rig->queue[q], slots);
		if (own_rx_start(&rig->queue[q].rx, &error) < 0)
			fail_msg("%s", error.text);
	}
	rig->queues = queues;
	own_rig_rule(rig);
}

uint32_t own_rig_length(uint64_t number, uint32_t shortest, uint32_t longest)
{
	return shortest + (uint32_t)(number * 37 % (longest - shortest + 1));
}

void own_rig_send(struct own_rig *rig, uint64_t count, uint32_t shortest, uint32_t longest)
{
	while (count > 0) {
		struct rte_mbuf *frames[BURST];
		uint16_t burst = 0, done = 0;

		for (; burst < BURST && burst < count; burst++) {
			frames[burst] = rig_frame(rig->pool, &rig->sent,
						  own_rig_length(rig->number, shortest, longest),
						  RIG_ETHERTYPE, rig->number);
			assert_non_null(frames[burst]);
			rig->number++;
		}
		while (done < burst) {
			done = (uint16_t)(done + rte_eth_tx_burst(rig->port[0].id, 0, frames + done,
								  (uint16_t)(burst - done)));
			if (done < burst)
				nic_settle();
		}
		count -= burst;
	}
}

void own_post(struct own_queue *queue, uint32_t count)
{
	uint32_t record;

	queue->posted += count;
	record = htobe32(queue->posted >> queue->rx.front.stride_shift & 0xffff);
	if (queue->far && queue->rx.config.record_beside)
		assert_int_equal(own_gpu_write(queue->rx.front.record, &record, sizeof(record)), 0);
	else
		/* Release: whatever was read of the slots comes before. Partner: the model's acquire.
		 */
		__atomic_store_n(queue->rx.front.record, record, __ATOMIC_RELEASE);
}

uint32_t own_record(struct own_queue *queue)
{
	uint32_t record = 0;

	if (!queue->far || !queue->rx.config.record_beside)
		return *queue->rx.front.record;
	assert_int_equal(own_gpu_read(queue->rx.front.record, &record, sizeof(record)), 0);
	return record;
}

const uint8_t *own_slot(const struct own_rig *rig, const struct own_queue *queue, uint32_t slot,
			uint32_t bytes)
{
	const struct cq_front_queue *front = &queue->rx.front;
	uint8_t *at = rig->slots.device + (size_t)(front->first_slot + slot) * front->slot_bytes;
	uint8_t *host = rig_host(&rig->slots, at);

	if (rig->cuda)
		assert_int_equal(own_gpu_read(at, host, bytes), 0);
	return host;
}

const struct mlx5_cqe64 *own_look(struct own_queue *queue)
{
	const struct cq_front_queue *front = &queue->rx.front;
	const struct mlx5_cqe64 *cqe =
		(const struct mlx5_cqe64 *)front->cq + (queue->index & (front->cq_entries - 1));
	uint8_t owned;

	if (queue->far) {
		assert_int_equal(own_gpu_read(cqe, &queue->copy, sizeof(queue->copy)), 0);
		cqe = &queue->copy;
	}
	/* Acquire: partner is the model's release of a completion's last word. */
	owned = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
	if (owned >> 4 == OPCODE_INVALID || (owned & 1) != !!(queue->index & front->cq_entries))
		return NULL;
	queue->index++;
	return cqe;
}

const struct mlx5_cqe64 *own_next(struct own_queue *queue)
{
	const struct mlx5_cqe64 *cqe = own_look(queue);

	if (cqe == NULL) {
		nic_settle();
		cqe = own_look(queue);
	}
	return cqe;
}

uint32_t own_length(const struct own_queue *queue, const struct mlx5_cqe64 *cqe)
{
	const uint32_t said = be32toh(cqe->byte_cnt);

	if (queue->rx.front.stride_shift)
		assert_int_equal(said >> 16, 1);
	return said & 0xffff;
}

uint64_t own_frame_check(const struct own_rig *rig, struct own_queue *queue,
			 const struct mlx5_cqe64 *cqe)
{
	const struct cq_front_queue *front = &queue->rx.front;
	const uint32_t slot = queue->next & (front->slots - 1), strides = front->stride_shift;
	const uint32_t bytes = own_length(queue, cqe);
	const struct rig_memory readable = { 0 };
	struct rte_mbuf frame = { .pkt_len = bytes };
	uint64_t number;

	assert_int_equal(mlx5dv_get_cqe_opcode((struct mlx5_cqe64 *)(uintptr_t)cqe),
			 MLX5_CQE_RESP_SEND);
	assert_int_equal(be16toh(cqe->wqe_counter),
			 queue->next & (strides ? (1u << strides) - 1 : 0xffff));
	if (strides)
		assert_int_equal(be16toh(cqe->wqe_id), queue->next >> strides & 0xffff);
	/* The product's front sees the same. */
	if (!queue->far)
		assert_int_equal(cq_kind_at(front, queue->index - 1, queue->next), CQ_FRAME);
	assert_true(bytes <= front->slot_bytes);
	frame.buf_addr = (void *)(uintptr_t)own_slot(rig, queue, slot, bytes);
	assert_int_equal(rig_check(&frame, &readable, &number), 0);
	queue->next++;
	return number;
}

void own_receive(struct own_rig *rig, struct own_queue *queue, uint64_t count, uint64_t number)
{
	for (uint64_t i = 0; i < count; i++) {
		const struct mlx5_cqe64 *cqe = own_next(queue);

		if (cqe == NULL)
			fail_msg("frame %lu of %lu did not come", (unsigned long)i,
				 (unsigned long)count);
		assert_int_equal(own_frame_check(rig, queue, cqe), number + i);
		own_post(queue, 1);
	}
}

uint64_t own_out_of_buffer(struct own_queue *queue)
{
	struct own_rx_counters counters;
	struct gdrcap_error error = { 0 };

	nic_settle();
	if (own_rx_counters(&queue->rx, &counters, &error) < 0)
		fail_msg("%s", error.text);
	return counters.out_of_buffer;
}

uint32_t own_drain(struct own_queue *queue)
{
	uint32_t count = 0;

	while (own_next(queue) != NULL)
		count++;
	return count;
}
