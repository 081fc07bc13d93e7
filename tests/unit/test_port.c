/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c: which ethdev a name means, where the driver calls it otherwise; and what a close frees. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "base/eal.h"
#include "port/port.h"

/* Of the ethdev with this name nothing is known by its name, ... */
static const char *renamed;
/* ... and of none anything else. */
static bool hidden;

int __real_rte_eth_dev_get_port_by_name(const char *name, uint16_t *port);
int __wrap_rte_eth_dev_get_port_by_name(const char *name, uint16_t *port);
int __wrap_rte_eth_dev_get_port_by_name(const char *name, uint16_t *port)
{
	if (renamed && strcmp(name, renamed) == 0)
		return -ENODEV;
	return __real_rte_eth_dev_get_port_by_name(name, port);
}

int __real_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info);
int __wrap_rte_eth_dev_info_get(uint16_t port, struct rte_eth_dev_info *info)
{
	return hidden ? -ENODEV : __real_rte_eth_dev_info_get(port, info);
}

static struct port first;

static int setup(void **state)
{
	const struct eal_needs needs = { .memory_bytes = (size_t)32 << 20 };

	if (eal_start(&needs, NULL) < 0 ||
	    port_open(&first, "net_null0,copy=0", "net_null0,copy=0", NULL) < 0)
		return -1;
	return first.id == 0 ? 0 : -1;
}

static int teardown(void **state)
{
	port_close(&first);
	return 0;
}

/* As a bond of a ConnectX's two ports is: "0000:3b:00.0_mlx5_bond_0". */
static void found_by_its_device(void **state)
{
	struct port port, embedded;

	renamed = "net_null1";
	assert_int_equal(port_open(&port, "net_null1", "net_null1", NULL), 0);
	assert_int_not_equal(port.id, first.id);
	assert_string_equal(port.device, "net_null1");
	/* there already: not ours to close */
	assert_int_equal(port_open(&embedded, "net_null1", "net_null1", NULL), 0);
	assert_int_equal(embedded.id, port.id);
	assert_string_equal(embedded.device, "");
	port_close(&embedded);
	assert_true(rte_eth_dev_is_valid_port(port.id));
	port_close(&port);
	assert_false(rte_eth_dev_is_valid_port(port.id));
	renamed = NULL;
}

/* What has no ethdev is given back, and nobody else's is closed in its place. */
static void no_ethernet_port(void **state)
{
	struct gdrcap_error error;
	struct port port;

	renamed = "net_null2";
	hidden = true;
	assert_int_equal(port_open(&port, "net_null2", "net_null2", &error), -ENODEV);
	assert_non_null(strstr(error.text, "is not an Ethernet port"));
	hidden = false;
	renamed = NULL;
	assert_false(port.open);
	assert_true(rte_eth_dev_is_valid_port(first.id));
	assert_int_equal(rte_vdev_init("net_null2", ""), 0);
	assert_int_equal(rte_vdev_uninit("net_null2"), 0);
}

static size_t allocated(void)
{
	struct rte_malloc_socket_stats stats;

	assert_int_equal(rte_malloc_get_socket_stats((int)rte_socket_id(), &stats), 0);
	return stats.heap_allocsz_bytes;
}

/* Of EAL's memory, with which an embedder opens one session after the other. */
static void memif_gives_all_back(void **state)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(
		"memif", 127, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rte_mempool *const pools[] = { pool, pool };
	const struct port_queues queues = {
		.rx_queues = 2,
		.tx_queues = 3,
		.descriptors = 64,
		.frame_bytes_max = 1518,
		.rx_pool = pools,
	};
	struct port port;
	size_t before = 0;
	char name[80];

	assert_non_null(pool);
	snprintf(name, sizeof(name), "net_memif0,role=server,socket=gdrcap-test-port-%d",
		 (int)getpid());
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(port_open(&port, name, name, NULL), 0);
		port.rx_queues = queues.rx_queues;
		port.tx_queues = queues.tx_queues;
		assert_int_equal(port_configure(&port, &queues, NULL), 0);
		assert_int_equal(port_start(&port, NULL), 0);
		port_close(&port);
		/* The driver's table of sockets stays. */
		if (i == 0)
			before = allocated();
	}
	assert_int_equal(allocated(), before);
	rte_mempool_free(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_its_device),
		cmocka_unit_test(no_ethernet_port),
		cmocka_unit_test(memif_gives_all_back),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
