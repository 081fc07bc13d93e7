# SPDX-License-Identifier: BSD-3-Clause
"""A machine as `gdrcap doctor --root` takes it: files, links and facts by path, first in memory.

Paths begin with "/". Devices lie where the kernel has them, below /sys/devices; what is below
/sys/bus and /sys/class are relative links to there, and so are driver and iommu_group.
"""
import os
import struct

# Where capabilities lie in config space, as in lspci -xxxx of such devices: (id, at) in the order
# of the list, PCI Express being 0x10.
CARD_CAPABILITIES = ((0x10, 0x60), (0x03, 0x48), (0x11, 0x9C), (0x09, 0xC0), (0x01, 0x40))
GPU_CAPABILITIES = ((0x01, 0x60), (0x00, 0x68), (0x10, 0x78), (0x11, 0xC8))
BRIDGE_CAPABILITIES = ((0x01, 0x40), (0x05, 0x48), (0x10, 0x68), (0x0D, 0xA4))
EXPRESS = 0x10
# Extended ones: AER, device serial number, ACS.
AER, SERIAL, ACS = 0x0001, 0x0003, 0x000D


def config_space(vendor, device, cls, capabilities, control, payload_most, acs=None, bridge=False):
    """4096 bytes. control: DevCtl. payload_most: its code in DevCap. acs: ACSCtl; None: no ACS."""
    config = bytearray(4096)
    struct.pack_into("<HHHHB", config, 0, vendor, device, 0x0546, 0x0010, 0xA1)
    config[9:12] = cls.to_bytes(3, "little")
    config[0x0E] = 0x01 if bridge else 0x80
    config[0x34] = capabilities[0][1]
    for (number, at), following in zip(capabilities, [*capabilities[1:], (0, 0)]):
        config[at] = number
        config[at + 1] = following[1]
        if number == EXPRESS:
            struct.pack_into("<HIH", config, at + 2, 0x0162 if bridge else 0x0002,
                             0x10008FE0 | payload_most, control)
    extended = [AER, SERIAL] + ([ACS] if acs is not None else [])
    for i, number in enumerate(extended):
        at, following = 0x100 + 0x48 * i, 0x100 + 0x48 * (i + 1) if i + 1 < len(extended) else 0
        struct.pack_into("<HH", config, at, number, following << 4 | 1)
        if number == ACS:
            struct.pack_into("<HH", config, at + 4, 0x005F, acs)
    return bytes(config)


class Machine:
    def __init__(self):
        self.entries = {}  # path -> ("file", bytes), ("link", target), ("folder",), ("fifo",), ...
        self.way = {}  # PCI address -> its folder
        self.refused = []

    # ---- files ----

    def file(self, path, *lines):
        self.entries[path] = ("file", "".join(line + "\n" for line in lines).encode())

    def files(self, folder, **values):
        for name, value in values.items():
            self.file("%s/%s" % (folder, name), str(value))

    def raw(self, path, data):
        self.entries[path] = ("file", data)

    def folder(self, path):
        self.entries[path] = ("folder",)

    def link(self, path, target):
        """target: from "/"; it becomes relative."""
        self.entries[path] = ("link", os.path.relpath(target, os.path.dirname(path)))

    def drop(self, start):
        """What has this path, or one below it."""
        gone = [path for path in self.entries if path == start or path.startswith(start + "/")]
        assert gone, start
        for path in gone:
            del self.entries[path]

    def fact(self, name, value):
        """What is asked of libraries and the kernel: lib/doctor/facts.h."""
        self.file("/gdrcap/facts/" + name, str(value))

    def facts(self, folder, **values):
        for name, value in values.items():
            self.fact("%s/%s" % (folder, name), value)

    def no_fact(self, name):
        self.drop("/gdrcap/facts/" + name)

    def refuse(self, path, error):
        """As if the one who captured the machine had no right to read it."""
        self.refused.append("%d %s" % (error, path))
        self.file("/gdrcap/refused", *self.refused)

    def write(self, root, damaged=False):
        """damaged: where a file or a link is in place of a folder, what was in it is left out."""
        root = os.path.realpath(root)
        for path, entry in self.entries.items():
            try:
                parent = os.path.dirname(root + path)
                # What a damaged machine's link leads to may be this machine's.
                if (os.path.realpath(parent) + "/").startswith(root + "/"):
                    os.makedirs(parent, exist_ok=True)
                    self.write_one(root + path, *entry)
            except OSError:
                if not damaged:
                    raise

    @staticmethod
    def write_one(path, kind, *data):
        if kind == "folder":
            os.makedirs(path, exist_ok=True)
        elif kind == "link":
            os.symlink(data[0], path)
        elif kind == "fifo":
            os.mkfifo(path)
        else:
            with open(path, "xb") as file:
                if kind == "sparse":
                    file.truncate(data[0])
                else:
                    file.write(data[0])

    # ---- PCI ----

    def function(self, way, ident, cls, config, driver=None, node=0, speed="16.0", width=16):
        """A PCI function. way: "pci0000:16/0000:16:02.0/...", the last is its own address."""
        address = way.rsplit("/", 1)[1]
        folder = "/sys/devices/" + way
        self.way[address] = folder
        vendor, device = ident
        self.files(folder, vendor="0x%04x" % vendor, device="0x%04x" % device,
                   revision="0xa1", numa_node=node, enable=1, irq=0,
                   current_link_speed=speed + " GT/s PCIe", max_link_speed=speed + " GT/s PCIe",
                   current_link_width=width, max_link_width=width)
        self.file(folder + "/class", "0x%06x" % cls)
        self.raw(folder + "/config", config)
        self.link("/sys/bus/pci/devices/" + address, folder)
        self.link(folder + "/subsystem", "/sys/bus/pci")
        self.driver(address, driver)
        return folder

    def driver(self, address, name):
        self.entries.pop(self.way[address] + "/driver", None)
        if name:
            self.folder("/sys/bus/pci/drivers/" + name)
            self.link(self.way[address] + "/driver", "/sys/bus/pci/drivers/" + name)

    def bridge(self, way, ident=(0x1000, 0xC010), acs=0, node=0):
        """A port of a PCIe switch or of a root complex, with the capability ACS."""
        return self.function(way, ident, 0x060400,
                             config_space(*ident, 0x060400, BRIDGE_CAPABILITIES, 0x2937, 2, acs,
                                          bridge=True), "pcieport", node)

    def card(self, way, number, interface, device=0x101D, control=0x593F, node=0, mbps=100000,
             firmware="22.39.1002"):
        """A ConnectX port, up. control: DevCtl, of which 0x5... is a read request of 4096 bytes."""
        folder = self.function(way, (0x15B3, device), 0x020000,
                               config_space(0x15B3, device, 0x020000, CARD_CAPABILITIES, control,
                                            2), "mlx5_core", node)
        rdma = "mlx5_%d" % number
        net, ib = "%s/net/%s" % (folder, interface), "%s/infiniband/%s" % (folder, rdma)
        verbs = "%s/infiniband_verbs/uverbs%d" % (folder, number)
        self.files(net, carrier=1, operstate="up", flags="0x1003", speed=mbps, mtu=9000, type=1,
                   address="b8:ce:f6:00:00:%02x" % number, duplex="full", ifindex=number + 2,
                   phys_port_name="p%s" % way[-1])
        self.files(ib, fw_ver=firmware, node_type="1: CA", board_id="MT_0000000359")
        self.files(ib + "/ports/1", link_layer="Ethernet", state="4: ACTIVE",
                   phys_state="5: LinkUp", rate="100 Gb/sec (4X EDR)")
        self.files(verbs, ibdev=rdma, abi_version=1, dev="231:%d" % (192 + number))
        for link, target in (("/sys/class/net/" + interface, net),
                             ("/sys/class/infiniband/" + rdma, ib),
                             ("/sys/class/infiniband_verbs/uverbs%d" % number, verbs),
                             (net + "/device", folder), (ib + "/device", folder),
                             (verbs + "/device", folder)):
            self.link(link, target)
        self.file("/sys/class/infiniband_verbs/abi_version", "6")
        self.file("/dev/infiniband/uverbs%d" % number)
        self.fact("process/access/dev/infiniband/uverbs%d" % number, 0)
        self.facts("ethtool/" + interface, driver="mlx5_core", firmware=firmware, speed=mbps,
                   pause="rx off, tx off, autonegotiated off")
        self.facts("ethtool/%s/stat" % interface, rx_out_of_buffer=0, rx_discards_phy=0,
                   rx_pause_ctrl_phy=0, tx_pause_ctrl_phy=0)
        return folder

    def gpu(self, way, ordinal, device=0x20B5, name="NVIDIA A100-PCIE-80GB", node=0,
            compute="8.0", bar1=128 << 30, driver="nvidia"):
        """A GPU that CUDA has. While it idles its link is slow."""
        folder = self.function(way, (0x10DE, device), 0x030200,
                               config_space(0x10DE, device, 0x030200, GPU_CAPABILITIES, 0x2937, 1),
                               driver, node)
        address = way.rsplit("/", 1)[1]
        self.file(folder + "/current_link_speed", "2.5 GT/s PCIe")
        base = 0x20_0000_0000_00 + (ordinal << 40)
        regions = [(0xA4000000, 16 << 20, 0x40200), (base, bar1, 0x14220C), None,
                   (base + bar1, 32 << 20, 0x14220C)] + [None] * 9
        self.file(folder + "/resource",
                  *("0x%016x 0x%016x 0x%016x" % (r[0], r[0] + r[1] - 1, r[2]) if r
                    else "0x%016x 0x%016x 0x%016x" % (0, 0, 0) for r in regions))
        self.file("/proc/driver/nvidia/gpus/%s/information" % address,
                  "Model: \t\t %s" % name, "IRQ:   \t\t 255",
                  "GPU UUID: \t GPU-00000000-0000-0000-0000-00000000000%d" % ordinal,
                  "Video BIOS: \t 92.00.45.00.05", "Bus Type: \t PCIe",
                  "Bus Location: \t %s" % address, "Device Minor: \t %d" % ordinal)
        self.file("/dev/nvidia%d" % ordinal)
        self.fact("cuda/count", ordinal + 1)
        self.facts("cuda/%d" % ordinal, pci=address, name=name, compute=compute, integrated=0,
                   gpu_direct_rdma_supported=1, dma_buf_supported=0,
                   gpu_direct_rdma_writes_ordering=100, gpu_direct_rdma_flush_writes_options=1,
                   stream_memory_operations=1, multiprocessors=108, concurrent_kernels=1,
                   kernel_timeout=0)
        self.fact("nvml/count", ordinal + 1)
        self.facts("nvml/%d" % ordinal, pci=address, name=name, bar1_total=bar1,
                   bar1_used=2 << 20)
        return folder

    def iommu(self, kind, unit="dmar0"):
        """An IOMMU with each function in a group of this type: "identity", "DMA", "DMA-FQ"."""
        self.folder("/sys/devices/virtual/iommu/" + unit)
        self.link("/sys/class/iommu/" + unit, "/sys/devices/virtual/iommu/" + unit)
        for number, (address, folder) in enumerate(sorted(self.way.items())):
            group = "/sys/kernel/iommu_groups/%d" % number
            self.file(group + "/type", kind)
            self.link("%s/devices/%s" % (group, address), folder)
            self.link(folder + "/iommu_group", group)

    def module(self, name, version=None, **parameters):
        folder = "/sys/module/" + name
        self.files(folder, initstate="live", refcnt=0)
        if version:
            self.file(folder + "/version", version)
        self.files(folder + "/parameters", **parameters)
