/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c: which GPU and memory for which ports, and how large everything is. No EAL, no hugepages,
 * no GPU: how many CUDA devices there are, the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "gpu/gpu_drivers.h"
#include "port/dpdk_release.h"
#include "session/plan.h"
#include "memory/region.h"
#include "sysfs_tree.h"

static int cuda_devices;

/* Instead of the library's own. */
int gpu_cuda_count(char *why, unsigned int why_bytes)
{
	if (cuda_devices == 0)
		snprintf(why, why_bytes, "the test has none");
	return cuda_devices;
}

static const struct port_case {
	const char *name;
	bool copies, wire, umem, pci;
	uint32_t frame_max;
} ports[] = {
	{ .name = "ring:a", .wire = true },
	{ .name = "0000:3b:00.0", .pci = true },
	{ .name = "enp59s0f0np0", .pci = true },
	{ .name = "mlx5_1,rx_vec_en=0", .pci = true },
	{ .name = "3b:00.1,dv_flow_en=0", .pci = true },
	{ .name = "net_null0" },
	{ .name = "net_null0,copy=0" },
	{ .name = "net_null0,size=64,copy=1", .copies = true },
	{ .name = "net_memif0,role=client", .copies = true },
	{ .name = "net_pcap0,iface=eth0", .copies = true },
	{ .name = "net_af_packet0,iface=veth0", .copies = true },
	{ .name = "net_af_xdp0,iface=veth0", .copies = true, .umem = true, .frame_max = 3000 },
	{ .name = "net_tap0", .copies = true },
	{ .name = "net_of_somebody0", .copies = true },
};
#define PORTS (sizeof(ports) / sizeof(ports[0]))

static struct gdrcap_config *config; /* of one case after the other */

static void option(const char *key, const char *format, ...)
{
	char value[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	assert_int_equal(gdrcap_config_set(config, key, value[0] ? value : NULL, NULL), 0);
}

static void option_add(const char *key, const char *value)
{
	assert_int_equal(gdrcap_config_add(config, key, value, NULL), 0);
}

static void config_for(const char *port, const char *tx_port)
{
	gdrcap_config_free(config);
	config = gdrcap_config_new();
	option("port", "%s", port);
	option("tx_port", "%s", tx_port);
	/* Within every driver's limit. */
	option("frame.size", "512");
}

/* What a session of `config` would plan. */
static int planned(struct plan *plan, struct gdrcap_error *error)
{
	static struct settings settings;
	int ret = config_settle(config, &settings, error);

	return ret ? ret : plan_create(plan, &settings, error);
}

/* What the design says; -errno for what cannot be. */
static int memory_expected(bool copies, const char *gpu, enum gdrcap_memory asked, bool *cuda)
{
	*cuda = strcmp(gpu, "host") != 0 && cuda_devices > 0;
	if (strcmp(gpu, "1") == 0 && asked == GDRCAP_MEMORY_HOST)
		return -EINVAL;
	if (strcmp(gpu, "1") == 0 && cuda_devices < 2)
		return -ENODEV;
	if (strcmp(gpu, "auto") == 0 && asked == GDRCAP_MEMORY_HOST)
		*cuda = false;
	if (asked == GDRCAP_MEMORY_DEVICE && copies)
		return -ENOTSUP;
	if (asked != GDRCAP_MEMORY_AUTO)
		return (int)asked;
	if (!copies)
		return GDRCAP_MEMORY_DEVICE;
	return *cuda ? GDRCAP_MEMORY_PINNED : GDRCAP_MEMORY_HOST;
}

static void memory_is(const struct port_case *rx, const struct port_case *tx, const char *gpu,
		      enum gdrcap_memory asked)
{
	const bool copies = rx->copies || (tx && tx->copies);
	struct gdrcap_error error = { 0 };
	struct plan plan;
	int expected, ret;
	char tx_name[64];
	bool cuda;

	snprintf(tx_name, sizeof(tx_name), "%s", tx ? tx->name : "");
	/* Another device of the same driver. */
	if (strncmp(tx_name, "net_", 4) == 0)
		*strchr(tx_name, '0') = '9';
	config_for(rx->name, tx_name);
	option("gpu", "%s", gpu);
	option("memory", "%s", plan_memory_name(asked));
	expected = memory_expected(copies, gpu, asked, &cuda);
	ret = planned(&plan, &error);
	if (expected < 0) {
		assert_int_equal(ret, expected);
		assert_int_equal(error.code, expected);
		if (expected == -ENODEV) {
			assert_non_null(strstr(error.text, "--gpu host"));
		} else if (asked == GDRCAP_MEMORY_DEVICE) {
			/* It names the port that cannot, and the memory that can. */
			assert_non_null(strstr(error.text, rx->copies ? rx->name : tx_name));
			assert_non_null(
				strstr(error.text, cuda ? "--memory pinned" : "--memory host"));
		} else {
			assert_non_null(strstr(error.text, "pinned"));
		}
		return;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(plan.memory, expected);
	assert_int_equal(plan.cuda, cuda);
	assert_int_equal(plan.ordinal, strcmp(gpu, "1") == 0);
	assert_int_equal(plan.umem, rx->umem || (tx && tx->umem));
	assert_int_equal(plan.pci, rx->pci || (tx && tx->pci));
	assert_int_equal(plan.pools, rx->wire || !tx ? 1 : 2);
}

static void memory_of_each_kind(void **state)
{
	static const char *const gpus[] = { "auto", "host", "1" };

	for (cuda_devices = 0; cuda_devices <= 2; cuda_devices++)
		for (size_t g = 0; g < 3; g++)
			for (int asked = GDRCAP_MEMORY_AUTO; asked <= GDRCAP_MEMORY_HOST; asked++)
				for (size_t rx = 1; rx < PORTS; rx++) {
					memory_is(&ports[0], &ports[0], gpus[g], asked);
					memory_is(&ports[rx], NULL, gpus[g], asked);
					for (size_t tx = 1; tx < PORTS; tx++)
						if (!ports[rx].pci || !ports[tx].pci)
							memory_is(&ports[rx], &ports[tx], gpus[g],
								  asked);
					memory_is(&ports[1], &ports[3], gpus[g], asked);
				}
	cuda_devices = 0;
}

/* A session that only sends has a pool for each queue, and its ports count as any. */
static void sends_only(void **state)
{
	struct gdrcap_error error = { 0 };
	struct plan plan;

	config_for("", "net_af_xdp0,iface=veth0");
	option_add("tx_port", "net_null0");
	assert_int_equal(planned(&plan, &error), 0);
	assert_int_equal(plan.pools, 2);
	assert_true(plan.umem);
}

/* Frames of a file decide the slots, and there is one stream of them. */
static void plays_a_file(void **state)
{
	/* Two frames, of 60 and 3000 bytes. */
	static const uint8_t header[24] = { 0xd4, 0xc3,	       0xb2, 0xa1, 2, 0, 4,
					    0,	  [16] = 0xff, 0xff, 0,	   0, 1 };
	static const uint32_t lengths[] = { 60, 3000 };
	static const uint8_t bytes[3000];
	char path[] = "/tmp/gdrcap_test_plan_XXXXXX";
	struct gdrcap_error error = { 0 };
	struct plan plan;
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	fwrite(header, sizeof(header), 1, file);
	for (int i = 0; i < 2; i++) {
		const uint32_t record[] = { 100, (uint32_t)i, lengths[i], lengths[i] };

		fwrite(record, sizeof(record), 1, file);
		fwrite(bytes, lengths[i], 1, file);
	}
	fclose(file);
	config_for("", "net_null0");
	option("pcap", "%s", path);
	option("loops", "3");
	assert_int_equal(planned(&plan, &error), 0);
	assert_int_equal(plan.pcap.frames, 2);
	assert_int_equal(plan.pcap.bytes, 3060);
	assert_int_equal(plan.frame_bytes_max, 3004);
	assert_int_equal(plan.slot_shift, 12);
	/* A frame that the port cannot carry is named before anything is opened. */
	option("tx_port", "net_af_packet0,iface=a,framesz=2048");
	assert_int_equal(planned(&plan, &error), -EMSGSIZE);
	assert_non_null(strstr(error.text, "3004"));
	unlink(path);
	assert_true(planned(&plan, &error) < 0);
	assert_non_null(strstr(error.text, path));
}

static void refused_as(enum gdrcap_error_kind kind, int code, const char *text1, const char *text2)
{
	struct gdrcap_error error = { 0 };
	struct plan plan;

	assert_int_equal(planned(&plan, &error), code);
	if (!strstr(error.text, text1) || !strstr(error.text, text2))
		print_error("\"%s\" has not \"%s\" and \"%s\"\n", error.text, text1, text2);
	assert_non_null(strstr(error.text, text1));
	assert_non_null(strstr(error.text, text2));
	assert_int_equal(error.kind, kind);
}

/* Whatever the machine. */
static void refused(int code, const char *text1, const char *text2)
{
	refused_as(GDRCAP_ERROR_CONFIG, code, text1, text2);
}

/* A running kernel writes where a GPU can; a CPU thread in its place anywhere. */
static void a_kernel_sends(void **state)
{
	struct plan plan;

	cuda_devices = 1;
	config_for("", "net_null0,size=64,copy=1");
	option("sender", "gpu");
	assert_int_equal(planned(&plan, NULL), 0);
	assert_int_equal(plan.memory, GDRCAP_MEMORY_PINNED);
	option("sender.memory", "pinned");
	assert_int_equal(planned(&plan, NULL), 0);
	option("sender.memory", "host");
	refused(-ENOTSUP, "sender.memory: a kernel", "use pinned");
	option("sender", "host");
	assert_int_equal(planned(&plan, NULL), 0);
	option("sender", "gpu");
	cuda_devices = 0;
	assert_int_equal(planned(&plan, NULL), 0);
	assert_int_equal(plan.tx_memory, GDRCAP_MEMORY_HOST);
}

static void guard_needs_device_memory(void **state)
{
	struct plan plan;

	config_for("net_pcap0,iface=eth0", "");
	option("guard", "true");
	refused(-ENOTSUP, "guard", "net_pcap0");
	config_for("ring:a", "ring:a");
	option("guard", "true");
	for (cuda_devices = 0; cuda_devices < 2; cuda_devices++) {
		assert_int_equal(planned(&plan, NULL), 0);
		assert_false(plan.cuda);
		assert_int_equal(plan.memory, GDRCAP_MEMORY_DEVICE);
	}
	cuda_devices = 0;
}

static uint32_t shift_of(const char *port, const char *frame_size, uint32_t slot_bytes)
{
	struct plan plan;
	uint32_t shift;

	config_for(port, strncmp(port, "ring:", 5) ? "" : port);
	option("frame.size", "%s", frame_size);
	option("slot_bytes", "%u", slot_bytes);
	assert_int_equal(planned(&plan, NULL), 0);
	shift = plan.slot_shift;
	return shift;
}

static void slots_hold_the_largest_frame(void **state)
{

	/* 128 bytes of headroom, and the frame without its FCS. */
	assert_int_equal(shift_of("ring:a", "64", 0), 8);
	assert_int_equal(shift_of("ring:a", "132", 0), 8);
	assert_int_equal(shift_of("ring:a", "133", 0), 9);
	assert_int_equal(shift_of("ring:a", "64,1518", 0), 11);
	assert_int_equal(shift_of("ring:a", "1924", 0), 11);
	assert_int_equal(shift_of("ring:a", "1925", 0), 12);
	assert_int_equal(shift_of("ring:a", "9216", 0), 14);
	assert_int_equal(shift_of("ring:a", "64", 16384), 14);
	assert_int_equal(shift_of("ring:a", "132", 256), 8);
	/* The kernel's own block size decides. */
	assert_int_equal(shift_of("net_af_packet0,iface=a", "64", 0), 12);
	assert_int_equal(shift_of("net_af_xdp0,iface=a", "64", 0), 12);
	config_for("ring:a", "ring:a");
	option("frame.size", "133");
	option("slot_bytes", "256");
	refused(-EMSGSIZE, "slot_bytes", "257");
	config_for("net_af_packet0,iface=a", "");
	option("slot_bytes", "2048");
	refused(-EMSGSIZE, "slot_bytes: 2048 are too few", "give 4096");
	config_for("net_af_xdp0,iface=a", "");
	option("frame.size", "64,3001");
	refused(-EMSGSIZE, "net_af_xdp0", "3000");
	config_for("net_af_packet0,iface=a", "");
	/* The ring follows the frames; what was given for it and is too small is refused. */
	assert_int_equal(shift_of("net_af_packet0,iface=a", "9216", 0), 14);
	option("frame.size", "64-9000");
	option("port", "net_af_packet0,iface=a,framesz=2048");
	refused(-EMSGSIZE, "framesz=2048 holds frames of up to 1971 bytes", "9000");
	/* No slot has so much: the text says what is needed, and what there is. */
	config_for("net_af_packet0,iface=a,framesz=32768", "");
	refused(-EMSGSIZE, "need slots of 32864 bytes", "16384 at most");
	config_for("net_af_packet0,iface=a", "");
	option("frame.vlan", "7");
	refused(-ENOTSUP, "net_af_packet0", "net_af_xdp0");
}

/* Whatever the pool: each of its queue's two threads may keep some slots to itself, and there are
 * others. */
static void pool_is_enough(const struct plan *plan, uint32_t descriptors)
{
	assert_int_equal(((size_t)plan->pool_slots << plan->slot_shift) % REGION_ALIGN, 0);
	assert_true(plan->pool_slots >= 2 * REGION_POOL_CACHE_MOST + descriptors + 64);
	assert_true((size_t)plan->pool_slots * plan->pools << plan->slot_shift <=
		    plan->region_bytes);
	assert_true(plan->eal_bytes >= (size_t)plan->pools * plan->pool_slots * 128);
}

static void pools_of_all_sizes(void **state)
{
	static const uint32_t queues[] = { 1, 2, 7, 16 }, descriptors[] = { 64, 1024, 32768 };
	static const char *const rx[] = { "ring:a", "net_null0" };

	for (size_t q = 0; q < 4; q++)
		for (size_t d = 0; d < 3; d++)
			for (size_t p = 0; p < 2; p++) {
				struct gdrcap_error error;
				unsigned long long least = 0;
				const char *at;
				struct plan plan;

				config_for(rx[p], p ? "net_null1" : "ring:a");
				option("queues", "%u", queues[q]);
				option("descriptors", "%u", descriptors[d]);
				assert_int_equal(planned(&plan, NULL), 0);
				pool_is_enough(&plan, descriptors[d]);
				assert_int_equal(plan.pools, queues[q] * (p ? 2 : 1));
				/* Too small: the text says how large, and that is true. */
				option("pool", "%llu", (unsigned long long)(1 << 20));
				refused(-EINVAL, "pool:", "MiB");
				planned(&plan, &error);
				at = strrchr(error.text, ':');
				assert_int_equal(sscanf(at, ": %llu MiB", &least), 1);
				option("pool", "%llu", (unsigned long long)(least << 20));
				assert_int_equal(planned(&plan, NULL), 0);
				pool_is_enough(&plan, descriptors[d]);
				assert_true(plan.region_bytes <= least << 20);
				option("pool", "%llu",
				       (unsigned long long)((least << 20) - (1 << 20)));
				refused(-EINVAL, "pool:", "MiB");
			}
}

static void pool_given(void **state)
{
	struct plan plan;

	config_for("net_null0", "net_null1");
	option("pool", "%llu", (unsigned long long)((1ull << 30) + 1000));
	assert_int_equal(planned(&plan, NULL), 0);
	assert_int_equal(plan.slot_shift, 10);
	assert_int_equal(plan.pool_slots, 1 << 19);
	assert_true(plan.region_bytes == 1ull << 30);
	/* The caller's memory: all of it is the region. */
	option("pool", "0");
	gdrcap_config_set_memory(config, (void *)(uintptr_t)(1 << 20), (1ull << 30) + 65536);
	assert_int_equal(planned(&plan, NULL), 0);
	assert_true(plan.region_bytes == (1ull << 30) + 65536);
	assert_int_equal(plan.pool_slots, 1 << 19);
	gdrcap_config_set_memory(config, (void *)(uintptr_t)(1 << 20), 65536);
	refused(-EINVAL, "gdrcap_config_set_memory: these ports", "MiB");
	gdrcap_config_set_memory(config, NULL, 0);
	/* Whole pages, and few of them: here of 512 KiB, and of 64 MiB. */
	option("pool", "%llu", (unsigned long long)(2 * ((UINT64_C(42) << 20) - 1024)));
	assert_int_equal(planned(&plan, NULL), 0);
	assert_int_equal(plan.pool_slots, 83 << 9);
	option("pool", "%llu", (unsigned long long)(2 * ((UINT64_C(4160) << 20) - 1024)));
	assert_int_equal(planned(&plan, NULL), 0);
	assert_int_equal(plan.pool_slots, 4096 << 10);
	/* More slots than indices in comfort. */
	option("slot_bytes", "256");
	option("frame.size", "64");
	option("pool", "%llu", (unsigned long long)(1ull << 40));
	refused(-EINVAL, "pool:", "slots");
	/* Of all pools together. */
	option("queues", "8");
	refused(-EINVAL, "pool:", "slots");
}

static void several_ports(void **state)
{
	struct plan plan;

	config_for("ring:a", "ring:a");
	option_add("port", "net_null0");
	option_add("tx_port", "net_null1");
	option_add("port", "ring:b");
	option_add("tx_port", "ring:b");
	assert_int_equal(planned(&plan, NULL), 0);
	assert_int_equal(plan.pools, 4);
	/* One that copies decides for all: there is one region. */
	option("tx_port", "ring:a");
	option_add("tx_port", "net_tap1");
	option_add("tx_port", "ring:b");
	assert_int_equal(planned(&plan, NULL), 0);
	assert_int_equal(plan.memory, GDRCAP_MEMORY_HOST);
	option("memory", "device");
	refused(-ENOTSUP, "net_tap1", "--memory host");
}

/* ---- ConnectX ---- */

static void card_names(void **state)
{
	struct plan plan;

	config_for("enp59s0f0np0", "3b:00.1,rx_vec_en=0");
	assert_int_equal(planned(&plan, NULL), 0);
	assert_true(plan.pci);
	assert_string_equal(plan.port[0].card.pci, "0000:3b:00.0");
	assert_string_equal(plan.tx_port[0].card.rdma, "mlx5_1");
	/* GPU memory, or memory like it: nothing may be inlined; 508 bytes are no whole lines. */
	assert_string_equal(plan.port[0].opened,
			    "0000:3b:00.0,txq_inline_max=0,txq_inline_mpw=0,mprq_en=0,dv_flow_en=1,"
			    "rxq_cqe_comp_en=0,rxq_pkt_pad_en=1" DPDK_SENDS_NOTHING);
	assert_string_equal(plan.tx_port[0].opened,
			    "0000:3b:00.1,rx_vec_en=0,txq_inline_max=0,txq_inline_mpw=0,mprq_en=0,"
			    "dv_flow_en=1");
	/* Memory that the CPU reads, whole lines. */
	option("memory", "host");
	option("frame.size", "68,132");
	assert_int_equal(planned(&plan, NULL), 0);
	assert_string_equal(
		plan.port[0].opened,
		"0000:3b:00.0,mprq_en=0,dv_flow_en=1,rxq_cqe_comp_en=0" DPDK_SENDS_NOTHING);
	/* Others' frames have any length. */
	option("tx_port", "%s", "");
	assert_int_equal(planned(&plan, NULL), 0);
	assert_string_equal(plan.port[0].opened,
			    "0000:3b:00.0,mprq_en=0,dv_flow_en=1,rxq_cqe_comp_en=0,"
			    "rxq_pkt_pad_en=1" DPDK_SENDS_NOTHING);
	config_for("net_null0,copy=0", "");
	assert_int_equal(planned(&plan, NULL), 0);
	assert_string_equal(plan.port[0].opened, "net_null0,copy=0");
	assert_string_equal(plan.port[0].card.pci, "");
}

static void cards_refused(void **state)
{

	config_for("eth7", "");
	refused_as(GDRCAP_ERROR_RUN, -ENOENT, "called eth7", "net_af_packet0,iface=eth0");
	config_for("ens1", "");
	refused_as(GDRCAP_ERROR_RUN, -ENODEV, "ens1 is not a ConnectX", "net_af_packet0,iface=");
	config_for("0000:3c:00.0", "");
	refused_as(GDRCAP_ERROR_RUN, -ENODEV, "0000:3c:00.0", "modprobe mlx5_ib");
	config_for("mlx5_0", "0000:3b:00.0");
	refused(-EINVAL, "tx_port: \"mlx5_0\" and \"0000:3b:00.0\" are one port", "each port once");
	config_for("mlx5_0", "");
	option_add("port", "enp59s0f0np0");
	refused(-EINVAL, "port: \"mlx5_0\" and \"enp59s0f0np0\" are one port", "");
	config_for("mlx5_0,txq_inline_max=64", "");
	refused(-EINVAL, "txq_inline_max=64 is refused", "cannot read this memory");
}

/* The driver wants room for a frame of the least MTU, and for the FCS, where it receives. */
static void card_slots(void **state)
{
	static const struct {
		const char *size;
		uint32_t shift, shift_sends;
	} cases[] = { { "64", 11, 8 },	  { "132", 11, 8 },   { "1518", 11, 11 },
		      { "1920", 11, 11 }, { "1921", 12, 11 }, { "1924", 12, 11 },
		      { "1925", 12, 12 }, { "9216", 14, 14 } };
	struct plan plan;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		config_for("mlx5_0", "mlx5_1");
		option("frame.size", "%s", cases[i].size);
		assert_int_equal(planned(&plan, NULL), 0);
		assert_int_equal(plan.slot_shift, cases[i].shift);
		option("port", "%s", "");
		assert_int_equal(planned(&plan, NULL), 0);
		assert_int_equal(plan.slot_shift, cases[i].shift_sends);
	}
	config_for("mlx5_0", "");
	option("slot_bytes", "1024");
	refused(-EMSGSIZE, "slot_bytes", "1646");
}

static void split_frames(void **state)
{
	struct plan plan, whole;

	config_for("mlx5_0", "mlx5_1");
	assert_int_equal(planned(&whole, NULL), 0);
	assert_true(whole.heads_bytes == 0);
	option("split", "64");
	assert_int_equal(planned(&plan, NULL), 0);
	/* As many as the receiving pools have slots; the sender's frames lie whole. */
	assert_true(plan.heads_bytes == (size_t)plan.pool_slots << REGION_HEAD_SHIFT);
	assert_true(plan.region_bytes == whole.region_bytes);
	assert_true(plan.eal_bytes >= whole.eal_bytes + (size_t)plan.pool_slots * 128);
	option("queues", "3");
	assert_int_equal(planned(&plan, NULL), 0);
	assert_true(plan.heads_bytes == (size_t)3 * plan.pool_slots << REGION_HEAD_SHIFT);
	option("queues", "1");
	option_add("port", "ring:a");
	option_add("tx_port", "ring:a");
	refused(-ENOTSUP, "split: port ring:a (software wire)", "a ConnectX-5 or later can");
	config_for("net_memif0,role=server", "");
	option("split", "32");
	refused(-ENOTSUP, "split: port net_memif0", "leave split out");
}

/* Only a card has a clock. */
static void cards_only(void **state)
{
	struct plan plan;

	config_for("net_null0", "");
	option("consumer.batch_times", "true");
	option("clock", "card");
	refused(-ENOTSUP, "clock: port net_null0", "a ConnectX");
	option("clock", "cpu");
	assert_int_equal(planned(&plan, NULL), 0);
	option("port", "mlx5_0");
	option("clock", "card");
	assert_int_equal(planned(&plan, NULL), 0);
}

/* Of a longer one the driver would compare the beginning. */
static void memif_secrets(void **state)
{
	struct plan plan;

	config_for("net_memif0,role=client,secret=12345678901234567890123", "");
	assert_int_equal(planned(&plan, NULL), 0);
	config_for("net_memif0,role=client,secret=123456789012345678901234", "");
	refused(-EINVAL, "net_memif0", "more than the 23 letters");
}

static int cards_there(void **state)
{
	char devices[128];
	int ret = tree_make(state);

	snprintf(devices, sizeof(devices), "%s/bus/pci/devices", root);
	return ret ? ret : setenv("SYSFS_PCI_DEVICES", devices, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_each_kind),
		cmocka_unit_test(sends_only),
		cmocka_unit_test(plays_a_file),
		cmocka_unit_test(a_kernel_sends),
		cmocka_unit_test(guard_needs_device_memory),
		cmocka_unit_test(slots_hold_the_largest_frame),
		cmocka_unit_test(pools_of_all_sizes),
		cmocka_unit_test(pool_given),
		cmocka_unit_test(several_ports),
		cmocka_unit_test(card_names),
		cmocka_unit_test(cards_refused),
		cmocka_unit_test(card_slots),
		cmocka_unit_test(split_frames),
		cmocka_unit_test(cards_only),
		cmocka_unit_test(memif_secrets),
	};

	return cmocka_run_group_tests(tests, cards_there, tree_remove);
}
