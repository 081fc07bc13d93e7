/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c: which ethdev a name means, where the driver calls it otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_ethdev.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_its_device),
		cmocka_unit_test(no_ethernet_port),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
