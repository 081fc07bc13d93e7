/* SPDX-License-Identifier: BSD-3-Clause */
/* connectx.c: names against a made-up /sys, and the driver's arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/connectx.h"
#include "port/dpdk_release.h"
#include "sysfs_tree.h"

static struct gdrcap_error error;

static void found_by_any_name(void **state)
{
	static const char *const names[] = {
		"0000:3b:00.0", "3b:00.0", "enp59s0f0np0", "mlx5_0", "0000:3b:00.0,dv_flow_en=0",
		"mlx5_0,a=b"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct connectx_card card;

		memset(&card, 0xa5, sizeof(card));
		assert_int_equal(connectx_find(&card, names[i], root, &error), 0);
		assert_string_equal(card.pci, "0000:3b:00.0");
		assert_string_equal(card.interface, "enp59s0f0np0");
		assert_string_equal(card.rdma, "mlx5_0");
		assert_int_equal(card.device, 0x101d);
		assert_int_equal(card.numa_node, 1);
	}
}

static void not_found(void **state)
{
	static const struct {
		const char *name;
		int code;
		const char *says;
	} cases[] = {
		{ "eth7", -ENOENT, "called eth7" },
		{ "lo", -ENODEV, "net_af_packet0,iface=lo" },
		{ "0000:99:00.0", -ENOENT, "no PCI device 0000:99:00.0" },
		{ "ens1", -ENODEV, "vendor is 0x8086" },
		{ "17:00.0", -ENODEV, "vendor is 0x8086" },
		{ "0001:5e:00.1", -ENODEV, "dpdk-devbind.py --bind=mlx5_core 0001:5e:00.1" },
		{ "5e:00.2", -ENODEV, "kernel driver none" },
		{ "enp59s0f0npf0vf1", -ENOTSUP, "representor" },
		{ "sf0", -ENOTSUP, "mlx5_core.sf.4" },
		{ "", -ENOENT, "not the name" },
		{ ",a=b", -ENOENT, "not the name" },
		{ "../net/enp59s0f0np0", -ENOENT, "not the name" },
		{ "..", -ENOENT, "not the name" },
		{ "net/x", -ENOENT, "not the name" },
		{ "0000:3b:00.0x", -ENOENT, "called 0000:3b:00.0x" },
	};
	struct connectx_card card;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		error.text[0] = '\0';
		if (connectx_find(&card, cases[i].name, root, &error) != cases[i].code ||
		    !strstr(error.text, cases[i].says))
			fail_msg("%s: %s", cases[i].name, error.text);
	}
}

static void root_of_eal(void **state)
{
	struct connectx_card card;
	char devices[128];

	snprintf(devices, sizeof(devices), "%s/bus/pci/devices", root);
	setenv("SYSFS_PCI_DEVICES", devices, 1);
	assert_int_equal(connectx_find(&card, "mlx5_0", NULL, &error), 0);
	setenv("SYSFS_PCI_DEVICES", "/nonsense", 1);
	assert_int_not_equal(connectx_find(&card, "0000:3b:00.0", NULL, &error), 0);
	unsetenv("SYSFS_PCI_DEVICES");
}

static const uint16_t whole[] = { 64, 1024 }, odd[] = { 64, 1514 };

static void arguments(void **state)
{
	static const struct connectx_card card = { .pci = "0000:3b:00.0", .device = 0x101d };
	static const struct {
		const char *port;
		bool cpu_reads;
		const uint16_t *lengths;
		const char *result; /* "!..." is in the error */
	} cases[] = {
		{ "3b:00.0", false, whole,
		  "0000:3b:00.0,txq_inline_max=0,txq_inline_mpw=0,mprq_en=0,dv_flow_en=1,"
		  "rxq_cqe_comp_en=0" },
		{ "mlx5_0", false, odd,
		  "0000:3b:00.0,txq_inline_max=0,txq_inline_mpw=0,mprq_en=0,dv_flow_en=1,"
		  "rxq_cqe_comp_en=0,rxq_pkt_pad_en=1" },
		{ "mlx5_0", false, NULL,
		  "0000:3b:00.0,txq_inline_max=0,txq_inline_mpw=0,mprq_en=0,dv_flow_en=1,"
		  "rxq_cqe_comp_en=0,rxq_pkt_pad_en=1" },
		{ "mlx5_0", true, whole, "0000:3b:00.0,mprq_en=0,dv_flow_en=1,rxq_cqe_comp_en=0" },
		/* what the user says stays as he said it, and comes once */
		{ "mlx5_0,dv_flow_en=0,rxq_pkt_pad_en=0,rxq_cqe_comp_en=0", true, odd,
		  "0000:3b:00.0,dv_flow_en=0,rxq_pkt_pad_en=0,rxq_cqe_comp_en=0,mprq_en=0" },
		{ "x,txq_inline_max=0,txq_inline_mpw=0x0,mprq_en=00,dv_flow_en=1,rxq_cqe_comp_en=3",
		  false, whole,
		  "0000:3b:00.0,txq_inline_max=0,txq_inline_mpw=0x0,mprq_en=00,dv_flow_en=1,"
		  "rxq_cqe_comp_en=3" },
		{ "x,txq_inline_max=290", true, whole,
		  "0000:3b:00.0,txq_inline_max=290,mprq_en=0,dv_flow_en=1,rxq_cqe_comp_en=0" },
		{ "x,list=vf[0,2],class=eth", true, whole,
		  "0000:3b:00.0,list=vf[0,2],class=eth,mprq_en=0,dv_flow_en=1,rxq_cqe_comp_en=0" },
		/* what cannot work */
		{ "x,txq_inline_max=290", false, whole, "!txq_inline_max=290 is refused" },
		{ "x,txq_inline_mpw=1", false, whole, "!cannot read this memory" },
		{ "x,txq_inline_min=18", false, whole, "!txq_inline_min=18 is refused" },
		{ "x,txq_inline=64", false, whole, "!txq_inline=64 is refused" },
		{ "x,txq_max_inline_len=64", false, whole, "!txq_max_inline_len=64 is refused" },
		{ "x,mprq_en=1", true, whole, "!mprq_en=1 is refused: a multi-packet" },
		{ "x,dv_flow_en=2", true, whole, "!hardware steering (2) wants templates" },
		{ "x,dv_flow_en=-1", true, whole, "!dv_flow_en=-1 is refused" },
		{ "x,dv_flow_en=on", true, whole, "!dv_flow_en takes a number" },
		{ "x,dv_flow_en", true, whole, "!dv_flow_en takes a number" },
		{ "x,dv_flow_en=", true, whole, "!dv_flow_en takes a number" },
		{ "x,a=1,b=2,a=1", true, whole, "!a is there twice" },
		{ "x,", true, whole, "!not KEY=VALUE" },
		{ "x,a=1,,b=2", true, whole, "!not KEY=VALUE" },
		{ "x,list=vf[0,2", true, whole, "!not KEY=VALUE" },
		{ "x,representor=vf0", true, whole, "!representors cannot be opened" },
		{ "x,a=]", true, whole, "!not KEY=VALUE" },
		/* by which the session itself hands its card to the driver */
		{ "x,cmd_fd=7", true, whole, "!cmd_fd=7 is refused: the session opens the card" },
		{ "x,pd_handle=0", true, whole, "!pd_handle=0 is refused: the session opens" },
	};
	char out[512];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct connectx_use use = {
			.card = &card,
			.cpu_reads = cases[i].cpu_reads,
			.sends = true,
			.receives = true,
			.lengths = cases[i].lengths,
			.length_count = cases[i].lengths ? 2 : 0,
		};
		const bool refused = cases[i].result[0] == '!';
		const int ret = connectx_devargs(cases[i].port, &use, out, sizeof(out), &error);

		if (refused && (ret != -EINVAL || !strstr(error.text, cases[i].result + 1)))
			fail_msg("%s: %d %s", cases[i].port, ret, error.text);
		if (!refused && (ret != 0 || strcmp(out, cases[i].result) != 0))
			fail_msg("%s: %d %s", cases[i].port, ret, ret ? error.text : out);
	}
}

/* With receive queues of our own. */
static void own_arguments(void **state)
{
	static const char *const refused[] = { "dv_flow_en=0", "dv_flow_en=2",
					       "rxq_cqe_comp_en=1" };
	static const struct connectx_card card = { .pci = "0000:3b:00.0", .device = 0x101d };
	const struct connectx_use use = { .card = &card, .receives = true, .own_rx = true };
	char port[64], says[64], out[256];

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		snprintf(port, sizeof(port), "x,%s", refused[i]);
		snprintf(says, sizeof(says), "%s is refused", refused[i]);
		assert_int_equal(connectx_devargs(port, &use, out, sizeof(out), &error), -EINVAL);
		assert_int_equal(error.kind, GDRCAP_ERROR_CONFIG);
		if (!strstr(error.text, says))
			fail_msg("%s: %s", port, error.text);
	}
	assert_int_equal(connectx_devargs("x,dv_flow_en=0x1,rxq_cqe_comp_en=0", &use, out,
					  sizeof(out), &error),
			 0);
	assert_string_equal(out, "0000:3b:00.0,dv_flow_en=0x1,rxq_cqe_comp_en=0,txq_inline_max=0,"
				 "txq_inline_mpw=0,mprq_en=0,rxq_pkt_pad_en=1");
}

static void long_arguments(void **state)
{
	static const struct connectx_card card = { .pci = "0000:3b:00.0" };
	const struct connectx_use use = { .card = &card, .receives = true };
	static const char expected[] =
		"0000:3b:00.0,txq_inline_max=0,txq_inline_mpw=0,mprq_en=0,"
		"dv_flow_en=1,rxq_cqe_comp_en=0,rxq_pkt_pad_en=1" DPDK_SENDS_NOTHING;
	char out[sizeof(expected)], many[512] = "x";

	for (size_t bytes = 0; bytes < sizeof(expected); bytes++)
		assert_int_equal(connectx_devargs("x", &use, out, bytes, &error), -ENAMETOOLONG);
	assert_int_equal(connectx_devargs("x", &use, out, sizeof(expected), &error), 0);
	assert_string_equal(out, expected);
	for (int i = 0; i < 40; i++)
		sprintf(many + strlen(many), ",k%d=1", i);
	assert_int_equal(connectx_devargs(many, &use, out, sizeof(out), &error), -EINVAL);
}

/* With drivers that lay send queues together, and only of a port that has none. */
static void sends_nothing(void **state)
{
	static const struct connectx_card card = { .pci = "0000:3b:00.0", .device = 0x101d };
	struct connectx_use use = { .card = &card, .cpu_reads = true, .receives = true };
	char out[512];

	assert_int_equal(connectx_devargs("x", &use, out, sizeof(out), &error), 0);
	assert_int_equal(strstr(out, ",txq_mem_algn=0") != NULL, DPDK_SENDS_TOGETHER);
	assert_int_equal(connectx_devargs("x,txq_mem_algn=12", &use, out, sizeof(out), &error),
			 DPDK_SENDS_TOGETHER ? -EINVAL : 0);
	use.sends = true;
	assert_int_equal(connectx_devargs("x", &use, out, sizeof(out), &error), 0);
	assert_null(strstr(out, "txq_mem_algn"));
	assert_int_equal(connectx_devargs("x,txq_mem_algn=12", &use, out, sizeof(out), &error), 0);
}

static void connectx4(void **state)
{
	struct connectx_card card = { .pci = "0000:3b:00.0" };
	struct connectx_use use = { .card = &card, .sends = true };
	char out[512];

	for (uint16_t device = 0x1010; device <= 0x101f; device++) {
		const bool old = device >= 0x1013 && device <= 0x1016;

		card.device = device;
		use.sends = true;
		use.cpu_reads = false;
		assert_int_equal(connectx_devargs("x", &use, out, sizeof(out), &error),
				 old ? -ENOTSUP : 0);
		use.cpu_reads = true;
		assert_int_equal(connectx_devargs("x", &use, out, sizeof(out), &error), 0);
		use.cpu_reads = false;
		use.sends = false;
		assert_int_equal(connectx_devargs("x", &use, out, sizeof(out), &error), 0);
	}
}

/* What a port only sends is not padded on its way into memory. */
static void sending_only(void **state)
{
	static const struct connectx_card card = { .pci = "0000:3b:00.0" };
	const struct connectx_use use = { .card = &card, .sends = true };
	char out[512];

	assert_int_equal(connectx_devargs("x", &use, out, sizeof(out), &error), 0);
	assert_null(strstr(out, "rxq_pkt_pad_en"));
}

static void reasons_for(const char *port, const char *opened, const char *const says[],
			size_t count)
{
	const char *at;
	char text[768];

	memset(text, 'x', sizeof(text));
	connectx_reasons(port, opened, text, sizeof(text));
	at = text;
	for (size_t i = 0; i < count; i++) {
		at = strstr(at, says[i]);
		if (!at)
			fail_msg("%s: no %s in %s", port, says[i], text);
	}
	if (count == 0)
		assert_string_equal(text, "");
}

/* Each argument once, those for one reason together; not what the user said. */
static void reasons(void **state)
{
	static const char *const all[] = { "txq_inline_max=0, txq_inline_mpw=0 (the CPU would copy",
					   "); mprq_en=0 (a multi", "); dv_flow_en=1 (rules are" };
	static const char *const one[] = { "mprq_en=0 (a multi" };
	char text[768];

	reasons_for("x", "0000:3b:00.0,txq_inline_max=0,txq_inline_mpw=0,mprq_en=0,dv_flow_en=1",
		    all, 3);
	reasons_for("x,dv_flow_en=1,a=b", "0000:3b:00.0,dv_flow_en=1,a=b,mprq_en=0", one, 1);
	connectx_reasons("x,dv_flow_en=1", "0000:3b:00.0,dv_flow_en=1,mprq_en=0", text,
			 sizeof(text));
	assert_null(strstr(text, "dv_flow_en"));
	assert_int_equal(text[strlen(text) - 1], ')');
	reasons_for("x,mprq_en=0", "0000:3b:00.0,mprq_en=0", NULL, 0);
	reasons_for("x", "0000:3b:00.0", NULL, 0);
	for (size_t bytes = 1; bytes < 200; bytes++) {
		memset(text, 'x', sizeof(text));
		connectx_reasons("x", "0000:3b:00.0,txq_inline_max=0,mprq_en=0", text, bytes);
		assert_true(strlen(text) < bytes);
		assert_int_equal(text[bytes], 'x');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_any_name), cmocka_unit_test(not_found),
		cmocka_unit_test(root_of_eal),	     cmocka_unit_test(arguments),
		cmocka_unit_test(own_arguments),     cmocka_unit_test(long_arguments),
		cmocka_unit_test(sends_nothing),     cmocka_unit_test(connectx4),
		cmocka_unit_test(sending_only),	     cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(tests, tree_make, tree_remove);
}
