/* SPDX-License-Identifier: BSD-3-Clause */
/* Possible causes of each step's failure, for people. */
#include "selftest/selftest_causes.h"

#include <stddef.h>

static const char *const ports_up[] = {
	"no cable, or the other end is down: ip link show; ethtool INTERFACE",
	"the interface is administratively down: ip link set INTERFACE up",
	"the card's port is in InfiniBand mode: mlxconfig -d DEVICE set LINK_TYPE_P1=2, then "
	"reboot",
	NULL,
};

static const char *const ports_up_software[] = {
	"the interface is down: ip link set INTERFACE up; of a veth pair, both ends",
	"nothing is at its other end: no cable, or a peer that is down or gone (ip link show)",
	"a port of another process: its other end does not run",
	NULL,
};

static const char *const memory[] = {
	"another process holds the GPU in a broken state: nvidia-smi; dmesg | grep -i xid",
	"the CPU map of the memory does not reach the GPU's memory: remove guard, or reload the "
	"driver",
	NULL,
};

static const char *const sent[] = {
	"the sending port takes no frame: its link is down (ip link show), or its queue is in "
	"error "
	"(dmesg | tail)",
	"an error completion: the card may not read the sender's memory; its registration was "
	"revoked or never made: modprobe nvidia-peermem for GPU memory, dmesg | grep mlx5",
	NULL,
};

static const char *const steered[] = {
	"the two ports are not cabled to each other: swap --port and --tx-port, or check with "
	"ethtool -p INTERFACE",
	"a switch between them does not pass the frame: cable the ports directly",
	"the frame went to another queue or to the kernel: a steering rule is missing or another "
	"program owns the port (ip -d link show)",
	"damaged on the wire (wire_crc): reseat or change cable and transceivers; both ends must "
	"have "
	"the same FEC (ethtool --show-fec INTERFACE)",
	"the card's own buffer was full (card_full): PCIe is slower than the wire; see LnkSta in "
	"lspci -vv -s DEVICE",
	"the interface filters it, on a port without rules: ip link set INTERFACE promisc on",
	NULL,
};

static const char *const completed[] = {
	"the card had no receive buffer (more missed: raise --descriptors), or refused to write it "
	"(more with errors: the queue is in error); see nic_missed and nic_error, and dmesg | grep "
	"mlx5",
	"the memory's registration was revoked: reload nvidia-peermem after the GPU driver "
	"(modprobe -r nvidia-peermem; modprobe nvidia-peermem)",
	"the receive buffer is smaller than the frame: raise --frame-size or --slot-bytes",
	NULL,
};

static const char *const completed_own[] = {
	"the memory's registration was revoked: reload nvidia-peermem after the GPU driver "
	"(modprobe -r nvidia-peermem; modprobe nvidia-peermem), and see dmesg | grep mlx5",
	"the slot is smaller than the frame: raise --frame-size or --slot-bytes",
	"the card completes otherwise than it is known to: leave --rx-by out, and tell of the card and "
	"its firmware (mstflint -d DEVICE q)",
	NULL,
};

static const char *const changed[] = {
	"the card wrote to another address than the GPU's memory: an IOMMU translates between "
	"them; "
	"boot with iommu=pt, or turn it off",
	"PCIe access control redirects peer writes to the root complex, which drops them: turn ACS "
	"off "
	"on each bridge between card and GPU (setpci -s BRIDGE ECAP_ACS+0x6.w=0000)",
	"nvidia-peermem was loaded before the RDMA stack or built for another one: reinstall the "
	"GPU "
	"driver after the RDMA stack, then modprobe nvidia-peermem",
	"card and GPU hang on different root complexes that do not forward peer writes: see "
	"nvidia-smi topo -m; move one card",
	"the write is not yet visible: try --flush host",
	NULL,
};

static const char *const right[] = {
	"part of the frame has arrived: the write is not yet visible; try --flush host",
	"another sender's frame has landed in the slot: stop other traffic, or cable the ports "
	"directly",
	"bits are damaged on the way: check cable and transceivers (ethtool -S INTERFACE | grep -i "
	"err)",
	NULL,
};

static const char *const consumer[] = {
	"the consumer does not run: the GPU is busy with another process (nvidia-smi), or a "
	"debugger "
	"holds it",
	"the running kernel reads old bytes: try --flush host",
	NULL,
};

const struct selftest_text selftest_texts[SELFTEST_STAGES] = {
	[SELFTEST_PORTS_UP] = { "ports up", ports_up, ports_up_software, NULL },
	[SELFTEST_MEMORY] = { "memory ready and poisoned", memory, NULL, NULL },
	[SELFTEST_SENT] = { "frame sent", sent, NULL, NULL },
	[SELFTEST_STEERED] = { "steered", steered, NULL, NULL },
	[SELFTEST_COMPLETED] = { "completed", completed, NULL, completed_own },
	[SELFTEST_CHANGED] = { "bytes changed", changed, NULL, NULL },
	[SELFTEST_RIGHT] = { "bytes right", right, NULL, NULL },
	[SELFTEST_CONSUMER] = { "consumer saw it", consumer, NULL, NULL },
};
