/* SPDX-License-Identifier: BSD-3-Clause */
/* driver_table.c: names of ports to facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "port/driver_table.h"
#include "port/port.h"

static void facts_by_name(void **state)
{
	static const struct {
		const char *name;
		enum driver_writes writes;
		bool missed_exact, error_exact, umem;
	} cases[] = {
		{ "ring:wire", DRIVER_PASSES_ON, true, true, false },
		{ "ring:", DRIVER_PASSES_ON, true, true, false },
		{ "0000:3b:00.0", DRIVER_WRITES_DMA, true, false, false },
		{ "0000:3b:00.0,rxq_cqe_comp_en=0", DRIVER_WRITES_DMA, true, false, false },
		{ "ffff:FF:1f.7", DRIVER_WRITES_DMA, true, false, false },
		{ "3b:00.0", DRIVER_WRITES_DMA, true, false, false },
		/* All that is no vdev and no wire can only be a ConnectX. */
		{ "mlx5_0", DRIVER_WRITES_DMA, true, false, false },
		{ "enp59s0f0np0", DRIVER_WRITES_DMA, true, false, false },
		{ "eth0,dv_flow_en=0", DRIVER_WRITES_DMA, true, false, false },
		{ "xnet_null0", DRIVER_WRITES_DMA, true, false, false },
		{ "RING:a", DRIVER_WRITES_DMA, true, false, false },
		{ "net_null0,copy=0", DRIVER_PASSES_ON, true, true, false },
		{ "net_memif1,role=server", DRIVER_COPIES, true, true, false },
		{ "net_pcap0,rx_pcap=x", DRIVER_COPIES, true, true, false },
		{ "net_af_packet0,iface=eth0", DRIVER_COPIES, false, false, false },
		{ "net_af_xdp0,iface=eth0", DRIVER_COPIES, false, false, true },
		{ "net_tap0", DRIVER_COPIES, false, false, false },
		/* Unknown, or only nearly known: the careful answer. */
		{ "net_ice0", DRIVER_COPIES, false, false, false },
		{ "net_af", DRIVER_COPIES, false, false, false },
		{ "", DRIVER_COPIES, false, false, false },
		{ ",a=b", DRIVER_COPIES, false, false, false },
		{ "eth_null0", DRIVER_COPIES, false, false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct driver_facts *facts = driver_facts_find(cases[i].name);

		assert_non_null(facts);
		if (facts->writes != cases[i].writes)
			print_error("%s\n", cases[i].name);
		assert_int_equal(facts->writes, cases[i].writes);
		assert_int_equal(facts->missed_exact, cases[i].missed_exact);
		assert_int_equal(facts->error_exact, cases[i].error_exact);
		assert_int_equal(facts->umem, cases[i].umem);
		assert_non_null(facts->prefix);
		assert_true(strlen(facts->what) > 0);
	}
}

static void pci_addresses(void **state)
{
	static const char *const good[] = { "0000:3b:00.0", "3b:00.0", "0:0:0.0",
					    "0000:00:1f.7,a=b" };
	static const char *const bad[] = { "",
					   "3b",
					   "3b:00",
					   "3b:00.",
					   "0000:3b:00",
					   "0000:3b:00.0x",
					   "0000:3b:00.0 ",
					   "ring:3b:00.0",
					   "net_null0",
					   "3b:00.0.1",
					   "0000:3b:00.0:1" };

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (!port_name_is_pci(good[i]))
			print_error("%s\n", good[i]);
		assert_true(port_name_is_pci(good[i]));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (port_name_is_pci(bad[i]))
			print_error("%s\n", bad[i]);
		assert_false(port_name_is_pci(bad[i]));
	}
}

static void connectx_names(void **state)
{
	static const char *const cards[] = { "0000:3b:00.0", "3b:00.0,a=b", "mlx5_0", "enp1s0",
					     "eth0",	     "net",	    "eth" };
	static const char *const others[] = {
		"", ",a", "ring:a", "net_null0", "net_", "eth_pcap0"
	};

	for (size_t i = 0; i < sizeof(cards) / sizeof(cards[0]); i++) {
		assert_true(port_name_is_connectx(cards[i]));
		assert_false(port_name_is_vdev(cards[i]));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(port_name_is_connectx(others[i]));
	assert_true(port_name_is_vdev("net_null0"));
	assert_true(port_name_is_vdev("eth_pcap0,a=b"));
	/* The driver wants room for a frame of the MTU, its FCS included. */
	assert_int_equal(port_room_min("mlx5_0"), 1518);
	assert_true(driver_facts_find("mlx5_0")->room_fcs);
	assert_false(driver_facts_find("net_af_packet0")->room_fcs);
}

/* Its frames are in its sender's memory: no session can have it. */
static void wires_of_others(void **state)
{
	assert_true(driver_facts_find("net_ring0")->shared_mbufs);
	assert_true(driver_facts_find("net_ring_own")->shared_mbufs);
	assert_false(driver_facts_find("ring:a")->shared_mbufs);
	assert_false(driver_facts_find("net_memif0")->shared_mbufs);
}

/* Read by us, unless they are interfaces or are sent into. */
static void files(void **state)
{
	assert_true(port_name_is_file("net_pcap0,rx_pcap=x"));
	assert_true(port_name_is_file("net_pcap7,infinite_rx=1,rx_pcap=x,rx_pcap=y"));
	assert_false(port_name_is_file("net_pcap0,iface=eth0"));
	assert_false(port_name_is_file("net_pcap0,tx_pcap=x"));
	assert_false(port_name_is_file("net_pcap0,rx_pcap=x,tx_pcap=y"));
	assert_false(port_name_is_file("net_null0,rx_pcap=x"));
	assert_true(port_name_has_files("net_pcap0,rx_pcap=x"));
	assert_true(port_name_has_files("net_pcap0,tx_pcap=y,rx_pcap=x"));
	assert_false(port_name_has_files("net_pcap0,tx_pcap=y"));
	assert_false(port_name_has_files("net_null0,rx_pcap=x"));
}

static void wires_and_listeners(void **state)
{
	assert_true(port_name_is_wire("ring:a"));
	assert_false(port_name_is_wire("ring"));
	assert_false(port_name_is_wire("net_ring0"));
	assert_true(port_name_listens("net_memif0,role=server,id=1"));
	assert_true(port_name_listens("net_memif0,role=master"));
	assert_false(port_name_listens("net_memif0,role=client"));
	assert_false(port_name_listens("net_memif0"));
}

/* What AF_PACKET's driver insists on in a slot follows its devarg; test_af_packet.c has the rest.
 */
static void af_packet_frames(void **state)
{
	assert_int_equal(port_room_min("net_af_packet0,iface=a"), 2048 - 32);
	assert_int_equal(port_room_min("net_af_packet0,iface=a,framesz=4096"), 4096 - 32);
	assert_int_equal(port_room_min("net_af_packet0,framesz=-1"), 2048 - 32);
	assert_int_equal(driver_facts_find("net_af_packet0,iface=a")->frame_max, 0);
	assert_int_equal(driver_facts_find("net_af_xdp0,iface=a")->frame_max, 3000);
	assert_int_equal(driver_facts_find("net_memif0,bsize=4096")->frame_max, 1518);
	assert_int_equal(port_room_min("net_memif0,framesz=4096"), 0);
	/* The driver's other name is no way around its facts. */
	assert_ptr_equal(driver_facts_find("eth_af_packet0,iface=a"),
			 driver_facts_find("net_af_packet0,iface=a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_by_name),
		cmocka_unit_test(pci_addresses),
		cmocka_unit_test(connectx_names),
		cmocka_unit_test(wires_of_others),
		cmocka_unit_test(files),
		cmocka_unit_test(wires_and_listeners),
		cmocka_unit_test(af_packet_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
