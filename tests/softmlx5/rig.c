/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

#include <errno.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "nic.h"

#define PORTS 2
#define PAGE 65536
#define DEVARGS "txq_inline_max=0,txq_inline_mpw=0"

void rig_start(int argc, char **argv)
{
	const char *devargs = argc > 2 ? argv[2] : "";
	char first[256], second[256];
	const char *const words[] = { argv[0],
				      "--no-huge",
				      "--no-shconf",
				      "--no-telemetry",
				      "-m",
				      "256",
				      "-l",
				      "0",
				      "--log-level=lib.eal:error",
				      "-a",
				      first,
				      "-a",
				      second };
	char *arguments[RTE_DIM(words)];

	setenv("SOFTMLX5_DEVX", argc > 1 && strcmp(argv[1], "verbs") == 0 ? "0" : "1", 1);
	snprintf(first, sizeof(first), "0000:aa:00.0," DEVARGS "%s%s", devargs[0] ? "," : "",
		 devargs);
	snprintf(second, sizeof(second), "0000:aa:00.1," DEVARGS "%s%s", devargs[0] ? "," : "",
		 devargs);
	for (size_t i = 0; i < RTE_DIM(words); i++)
		arguments[i] = (char *)(uintptr_t)words[i];
	if (rte_eal_init(RTE_DIM(arguments), arguments) < 0) {
		fprintf(stderr, "EAL: %s\n", rte_strerror(rte_errno));
		exit(1);
	}
	if (rte_eth_dev_count_avail() != PORTS) {
		fprintf(stderr, "%u ports instead of %u\n", rte_eth_dev_count_avail(), PORTS);
		exit(1);
	}
}

void rig_stop(void)
{
	for (uint16_t i = 0; i < PORTS; i++) {
		rte_eth_dev_stop(i);
		rte_eth_dev_close(i);
	}
	rte_eal_cleanup();
}

void rig_memory(struct rig_memory *memory, size_t size, bool hidden)
{
	uint8_t *place;

	memory->size = RTE_ALIGN(size, PAGE);
	memory->file = memfd_create("rig", MFD_CLOEXEC);
	assert_true(memory->file >= 0);
	assert_int_equal(ftruncate(memory->file, (off_t)memory->size), 0);
	memory->host =
		mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->file, 0);
	assert_ptr_not_equal(memory->host, MAP_FAILED);
	/* Aligned as DPDK wants external memory. */
	place = mmap(NULL, memory->size + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(place, MAP_FAILED);
	place = RTE_PTR_ALIGN(place, PAGE);
	memory->device = mmap(place, memory->size, hidden ? PROT_NONE : PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, memory->file, 0);
	assert_ptr_equal(memory->device, place);
}

int rig_map(const struct rig_memory *memory)
{
	struct rte_eth_dev_info info;
	uint16_t port;

	if (rte_extmem_register(memory->device, memory->size, NULL, 0, PAGE) < 0)
		return -rte_errno;
	RTE_ETH_FOREACH_DEV(port)
	{
		if (rte_eth_dev_info_get(port, &info) < 0)
			return -ENODEV;
		if (rte_dev_dma_map(info.device, memory->device, RTE_BAD_IOVA, memory->size) < 0)
			return -rte_errno;
	}
	return 0;
}

struct rte_mempool *rig_pool(const char *name, const struct rig_memory *memory)
{
	struct rte_pktmbuf_extmem area = { .buf_ptr = memory->device,
					   .buf_iova = RTE_BAD_IOVA,
					   .buf_len = memory->size,
					   .elt_size = RIG_BUFFER };
	struct rte_mempool *pool;

	pool = rte_pktmbuf_pool_create_extbuf(name, (unsigned int)(memory->size / RIG_BUFFER), 0, 0,
					      RIG_BUFFER, SOCKET_ID_ANY, &area, 1);
	assert_non_null(pool);
	return pool;
}

static void setup_rx(const struct rig_port *port, uint16_t queue)
{
	union rte_eth_rxseg segments[2] = {
		{ .split = { .mp = port->pool, .length = port->split } },
		{ .split = { .mp = port->pool2 } },
	};
	struct rte_eth_rxconf conf = { .offloads = port->rx_offloads };

	if (port->pool2 != NULL) {
		conf.rx_seg = segments;
		conf.rx_nseg = 2;
		conf.offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT | RTE_ETH_RX_OFFLOAD_SCATTER;
	}
	assert_int_equal(rte_eth_rx_queue_setup(port->id, queue, port->descriptors, SOCKET_ID_ANY,
						&conf, port->pool2 != NULL ? NULL : port->pool),
			 0);
}

void rig_port_start(const struct rig_port *port)
{
	struct rte_eth_conf conf = {
		.rxmode = { .offloads = port->rx_offloads,
			    .mq_mode = port->rss != 0 ? RTE_ETH_MQ_RX_RSS : RTE_ETH_MQ_RX_NONE },
		.txmode = { .offloads = port->tx_offloads },
		.rx_adv_conf.rss_conf.rss_hf = port->rss,
		.intr_conf.rxq = port->interrupts,
	};
	struct rte_eth_txconf tx = { .offloads = port->tx_offloads };
	struct rte_flow_error error;

	assert_int_equal(rte_flow_isolate(port->id, port->isolated, &error), 0);
	if (port->mtu != 0)
		conf.rxmode.mtu = port->mtu;
	assert_int_equal(rte_eth_dev_configure(port->id, port->rx_queues, port->tx_queues, &conf),
			 0);
	for (uint16_t queue = 0; queue < port->rx_queues; queue++)
		setup_rx(port, queue);
	for (uint16_t queue = 0; queue < port->tx_queues; queue++)
		assert_int_equal(rte_eth_tx_queue_setup(port->id, queue, port->descriptors,
							SOCKET_ID_ANY, &tx),
				 0);
	assert_int_equal(rte_eth_dev_start(port->id), 0);
}

struct rte_flow *rig_rule(uint16_t port, uint16_t ether_type, uint16_t queue, uint32_t mark,
			  struct rte_flow_error *error)
{
	struct rte_flow_item_eth type = { .type = rte_cpu_to_be_16(ether_type) };
	struct rte_flow_item_eth mask = { .type = RTE_BE16(0xffff) };
	struct rte_flow_action_queue to = { .index = queue };
	struct rte_flow_action_mark with = { .id = mark };
	struct rte_flow_item items[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH, .spec = &type, .mask = &mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_action actions[3] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
	};

	actions[1] = (struct rte_flow_action){ .type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &with };
	if (mark == 0)
		actions[1].type = RTE_FLOW_ACTION_TYPE_END;
	actions[2] = (struct rte_flow_action){ .type = RTE_FLOW_ACTION_TYPE_END };
	return rte_flow_create(port, &(struct rte_flow_attr){ .ingress = 1 }, items, actions,
			       error);
}

static uint8_t pattern(uint64_t number, uint32_t at)
{
	return (uint8_t)((number * 2654435761u >> 8) + at * 7);
}

struct rte_mbuf *rig_frame(struct rte_mempool *pool, const struct rig_memory *memory,
			   uint32_t length, uint16_t ether_type, uint64_t number)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	uint8_t *data;

	if (mbuf == NULL)
		return NULL;
	data = rig_host(memory, rte_pktmbuf_append(mbuf, (uint16_t)length));
	memcpy(data, (uint8_t[]){ 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 }, 12);
	data[12] = (uint8_t)(ether_type >> 8);
	data[13] = (uint8_t)ether_type;
	memcpy(data + 14, &number, sizeof(number));
	for (uint32_t i = 22; i < length; i++)
		data[i] = pattern(number, i);
	return mbuf;
}

unsigned int rig_check(const struct rte_mbuf *mbuf, const struct rig_memory *memory,
		       uint64_t *number)
{
	const uint8_t *data = rig_host(memory, rte_pktmbuf_mtod(mbuf, uint8_t *));
	unsigned int wrong = 0;

	memcpy(number, data + 14, sizeof(*number));
	for (uint32_t i = 22; i < mbuf->pkt_len; i++)
		wrong += data[i] != pattern(*number, i);
	return wrong;
}

uint64_t rig_xstat(uint16_t port, const char *name)
{
	uint64_t id, value;

	nic_report(); /* one that the driver reads from a file */
	if (rte_eth_xstats_get_id_by_name(port, name, &id) < 0 ||
	    rte_eth_xstats_get_by_id(port, &id, &value, 1) != 1)
		return UINT64_MAX;
	return value;
}
