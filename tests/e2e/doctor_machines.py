# SPDX-License-Identifier: BSD-3-Clause
"""Machines, healthy and not, and what `gdrcap doctor` has to say of each.

A machine is a function that returns it and what is expected: whether it is able, the verdict of
each finding that is neither "ok" nor "not applicable" ("CHECK SUBJECT", or "CHECK" of the machine
itself), and the remedies of those that the machine is about, line by line.
"""
import hashlib

from doctor_base import (
    CAP_IPC_LOCK, CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_RAWIO, CAPABILITIES_ALL, CARDS, EACCES, GPU,
    INTERFACES, KERNELS, OPEN_DRIVER, PORTS, base, host, inbox, memlock, mounts, nvidia_driver,
    ofed, peermem, status, switch)
from doctor_tree import Machine


class Expected:
    def __init__(self, able, findings, remedies=None):
        self.able = able
        self.findings = dict(findings)
        self.remedies = dict(remedies or {})


def each(check, subjects, verdict):
    return {"%s %s" % (check, subject): verdict for subject in subjects}


# Nobody but a tool that talks to the card's firmware can know these.
ALWAYS = each("nic-firmware-options", CARDS, "unknown")


def expected(able, *findings, remedies=None):
    result = Expected(able, ALWAYS, remedies)
    for finding in findings:
        result.findings.update(finding)
    return result


# ---- machines ----

def healthy():
    """ConnectX-6 Dx and A100 below one switch, nvidia-peermem, all tuned."""
    return base(), expected(True)


def r750():
    """The published proof of concept: A100 and two cards, each below its own root of socket 1."""
    m = Machine()
    host(m, isolated="")
    m.file("/etc/os-release", 'ID="rhel"', 'ID_LIKE="fedora"',
           'PRETTY_NAME="Red Hat Enterprise Linux 8.5 (Ootpa)"')
    m.file("/proc/sys/kernel/osrelease", "4.18.0-348.el8.x86_64")
    m.file("/proc/cmdline", "BOOT_IMAGE=(hd0,gpt2)/vmlinuz root=/dev/mapper/rhel-root ro quiet")
    m.files("/sys/class/dmi/id", product_name="PowerEdge R750", sys_vendor="Dell Inc.")
    m.file("/proc/kallsyms", "0000000000000000 t ib_register_client\t[ib_core]",
           "0000000000000000 t ib_register_peer_memory_client\t[ib_core]")
    nvidia_driver(m, "NVIDIA UNIX x86_64 Kernel Module  495.29.05  Thu Sep 30 16:00:29 UTC 2021")
    ofed(m, "5.5-1.0.3")
    peermem(m, "495.29.05")
    ways = {"0000:98:00.0": "pci0000:97/0000:97:02.0/0000:98:00.0",
            "0000:b1:00.0": "pci0000:b0/0000:b0:02.0/0000:b1:00.0",
            "0000:ca:00.0": "pci0000:c9/0000:c9:02.0/0000:ca:00.0"}
    for way in ways.values():
        m.bridge(way.rsplit("/", 1)[0], (0x8086, 0x347A), node=1)
    m.card(ways["0000:98:00.0"], 0, "ens4f0", control=0x293F, node=1)
    m.card(ways["0000:b1:00.0"], 1, "ens5f0", device=0x1019, control=0x293F, node=1,
           firmware="16.32.1010")
    m.gpu(ways["0000:ca:00.0"], 0, device=0x20F1, name="NVIDIA A100-PCIE-40GB", node=1,
          bar1=64 << 30)
    # CUDA 11.5 does not have these attributes.
    m.fact("cuda/driver", "11.5")
    for attribute in ("dma_buf_supported", "stream_memory_operations"):
        m.no_fact("cuda/0/" + attribute)
    cards = ("0000:98:00.0", "0000:b1:00.0")
    pairs = ["%s 0000:ca:00.0" % card for card in cards]
    remedies = {}
    for card, pair in zip(cards, pairs):
        remedies["pcie-topology " + pair] = [
            "nvidia-smi topo -m  # to compare",
            "# move card %s or GPU 0000:ca:00.0 to slots below one PCIe switch; if the machine has "
            "none, of one root complex (its manual has a diagram)" % card]
        remedies["pcie-read-request " + card] = [
            "sudo setpci -s %s CAP_EXP+8.w=593f  # until the next start" % card]
    remedies["cpu-isolation"] = [
        "sudo grubby --update-kernel=ALL --args='isolcpus=60,61,62,63 nohz_full=60,61,62,63'",
        "sudo reboot"]
    remedies["stream-memory-operations 0000:ca:00.0"] = [
        "# NVIDIA's driver 515 or later, which needs no NVreg_EnableStreamMemOPs=1 any more:",
        "sudo dnf module enable nvidia-driver:open-dkms  # releases 8 and 9 only",
        "sudo dnf install nvidia-open  # from NVIDIA's repository"]
    return m, Expected(True, {
        **each("nic-firmware-options", cards, "unknown"), **each("pcie-topology", pairs, "warn"),
        **each("pcie-read-request", cards, "warn"), **each("devx", cards, "unknown"),
        "stream-memory-operations 0000:ca:00.0": "warn", "peermem-deadlock": "warn",
        "cpu-isolation": "warn"}, remedies)


def sockets_apart():
    """The healthy one's card and GPU, on different sockets."""
    m = Machine()
    host(m)
    nvidia_driver(m)
    ofed(m)
    peermem(m, peerdirect_support=0, persistent_api_support=1)
    m.bridge("pci0000:97/0000:97:02.0", (0x8086, 0x347A), node=1)
    m.gpu("pci0000:97/0000:97:02.0/0000:98:00.0", 0, node=1)
    m.bridge("pci0000:16/0000:16:02.0", (0x8086, 0x347A))
    m.card("pci0000:16/0000:16:02.0/0000:17:00.0", 0, "ens6f0np0")
    m.iommu("identity")
    return m, Expected(True, {
        "nic-firmware-options 0000:17:00.0": "unknown",
        "pcie-topology 0000:17:00.0 0000:98:00.0": "fail", "numa 0000:98:00.0": "warn"},
        {"numa 0000:98:00.0": ["# put a card into a slot of node 1, or use a GPU of a card's node"],
         "pcie-topology 0000:17:00.0 0000:98:00.0": [
             "nvidia-smi topo -m  # to compare",
             "# move card 0000:17:00.0 or GPU 0000:98:00.0 to slots below one PCIe switch; if the "
             "machine has none, of one CPU socket (its manual has a diagram)"]})


LOAD_PEERMEM = ["sudo modprobe nvidia-peermem",
                "echo nvidia-peermem | sudo tee /etc/modules-load.d/nvidia-peermem.conf"]


def no_peermem():
    m = base()
    m.drop("/sys/module/nvidia_peermem")
    for client in ("nv_mem", "nv_mem_nc"):
        m.drop("/sys/kernel/mm/memory_peers/" + client)
    return m, expected(
        False, {"gpu-memory-registration": "fail", "peermem-loaded": "warn",
                "dma-buf " + GPU: "warn"},
        remedies={"peermem-loaded": LOAD_PEERMEM,
                  "gpu-memory-registration": LOAD_PEERMEM + [
                      "# or, for GPUs since Turing, NVIDIA's open kernel modules, which make "
                      "dma-bufs: see dma-buf"]})


def no_peermem_inbox():
    """And the kernel's own RDMA core: loading the module would say "Invalid argument"."""
    m, want = no_peermem()
    inbox(m)
    first = ["# this kernel's RDMA core lacks the interface: install NVIDIA's DOCA-OFED (package "
             "doca-ofed), then NVIDIA's driver once more, then:"]
    want.findings["peermem-interface"] = "warn"
    want.remedies = {
        "peermem-loaded": first + LOAD_PEERMEM,
        "peermem-interface": [
            "# first NVIDIA's DOCA-OFED, from NVIDIA's repository:",
            "sudo apt-get install doca-ofed",
            "# then NVIDIA's driver once more, so that nvidia-peermem is built against it (else "
            "modprobe says \"Invalid argument\"):",
            "sudo dkms status",
            "# sudo dkms install --force MODULE/VERSION -k 6.1.0-27-amd64, with nvidia's line from "
            "there"]}
    return m, want


def dmabuf():
    """The same with NVIDIA's open kernel modules: nothing else is needed."""
    m, _ = no_peermem_inbox()
    nvidia_driver(m, OPEN_DRIVER)
    m.fact("cuda/0/dma_buf_supported", 1)
    return m, expected(True)


def no_async():
    """Captures well, by the driver's queues: nothing that a GPU needs to drive its own."""
    m, _ = dmabuf()
    m.file("/proc/sys/kernel/osrelease", "5.15.0-119-generic")
    m.file("/proc/driver/nvidia/params", "EnableStreamMemOPs: 0", 'RegistryDwords: ""')
    m.fact("process/user", 1000)
    m.fact("symbol/mlx5dv_devx_umem_reg_ex", "no")
    m.facts("cuda/0", stream_memory_operations=0, gpu_direct_rdma_writes_ordering=0,
            kernel_timeout=1)
    return m, expected(
        True, {"umem": "warn", "peer-mapping": "warn"},
        {check + " " + GPU: "warn" for check in ("stream-memory-operations", "gpu-front",
                                                 "kernels-together", "write-ordering")},
        remedies={
            "umem": ["sudo apt-get install rdma-core ibverbs-providers",
                     "# Linux 6.1 or later, or NVIDIA's DOCA-OFED (package doca-ofed)",
                     "# or by address, with nvidia-peermem: see peermem-loaded"],
            "peer-mapping": [
                "echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' | sudo tee "
                "/etc/modprobe.d/nvidia-peer-mapping.conf",
                "sudo update-initramfs -u && sudo reboot",
                "# or run as root; without either a CPU thread rings the doorbell for the GPU, and "
                "receiving needs no doorbell at all"],
            "kernels-together " + GPU: [
                "# a display is on this GPU, and kernels that run for seconds are ended; without "
                "it:", "sudo systemctl isolate multi-user.target"]})


def nv_peer_mem():
    m = base()
    m.drop("/sys/module/nvidia_peermem")
    m.drop("/sys/kernel/mm/memory_peers/nv_mem_nc")
    m.module("nv_peer_mem", "1.3-0")
    return m, expected(True, {"nv-peer-mem": "fail"}, remedies={"nv-peer-mem": [
        "sudo service nv_peer_mem stop; sudo rmmod nv_peer_mem",
        "sudo dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms",
        "sudo modprobe nvidia-peermem"]})


def legacy_ofed():
    """MLNX_OFED 4.9 LTS wants the other way of nvidia-peermem."""
    m = base("ubuntu")
    m.file("/proc/sys/kernel/osrelease", "5.4.0-200-generic")
    ofed(m, "4.9-7.1.0")
    m.file("/proc/kallsyms", "0000000000000000 T ib_register_client\t[ib_core]",
           "0000000000000000 T ib_register_peer_memory_client\t[ib_core]")
    return m, expected(True, {"peermem-mode peerdirect_support": "warn"}, remedies={
        "peermem-mode peerdirect_support": [
            "echo 'options nvidia-peermem peerdirect_support=1' | sudo tee "
            "/etc/modprobe.d/nvidia-peermem-peerdirect_support.conf",
            "sudo modprobe -r nvidia-peermem; sudo modprobe nvidia-peermem"]})


def acs():
    m = base()
    top = "pci0000:16/0000:16:02.0/0000:17:00.0/"
    for port in PORTS:
        m.bridge(top + port, acs=0x001D)
    m.iommu("identity")
    return m, expected(True, each("pcie-acs", PORTS, "fail"), remedies={
        "pcie-acs " + port: [
            "sudo setpci -s %s ECAP_ACS+0x6.w=0000  # until the next start" % port,
            "# at each start: the kernel argument pci=disable_acs_redir=%s (several bridges: with "
            "';' between), or ACS off in the BIOS" % port,
            "# not on a host that passes these devices on to virtual machines: ACS keeps those "
            "apart"] for port in PORTS})


def iommu(name="debian", kind="DMA-FQ"):
    m = base(name)
    m.iommu(kind)
    remedy = {"rhel": ["sudo grubby --update-kernel=ALL --args='iommu=pt'"]}.get(
        name, ["sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&iommu=pt /' /etc/default/grub && "
               "sudo update-grub"]) + ["sudo reboot"]
    return m, expected(False, each("pcie-iommu", CARDS, "fail"), {"pcie-iommu " + GPU: "warn"},
                       remedies={"pcie-iommu " + card: remedy for card in CARDS})


def iommu_rhel():
    return iommu("rhel", "DMA")


def bar1():
    m = base()
    m.gpu("pci0000:16/0000:16:02.0/0000:17:00.0/%s/%s" % (PORTS[0], GPU), 0, bar1=256 << 20)
    m.iommu("identity")
    return m, expected(True, {"pcie-bar1 " + GPU: "warn"}, remedies={"pcie-bar1 " + GPU: [
        "# BIOS: \"Above 4G Decoding\" and \"Resizable BAR\" on; then, for a GPU whose driver has "
        "to ask for it:",
        "echo 'options nvidia NVreg_EnableResizableBar=1' | sudo tee "
        "/etc/modprobe.d/gdrcap-bar1.conf",
        "sudo update-initramfs -u", "sudo reboot"]})


def small_memlock():
    """A service of root's that may lock 64 KiB, without the right to go beyond."""
    m = base()
    status(m, CAPABILITIES_ALL & ~(1 << CAP_IPC_LOCK))
    memlock(m, "65536", "65536")
    return m, expected(False, {"memlock": "fail"}, remedies={"memlock": [
        "ulimit -l unlimited  # this shell; where the hard limit forbids it:",
        "printf '* - memlock unlimited\\nroot - memlock unlimited\\n' | sudo tee "
        "/etc/security/limits.d/gdrcap.conf  # then log in again",
        "# a systemd service: LimitMEMLOCK=infinity"]})


def small_memlock_root():
    """The limit alone harms nobody who has that right."""
    m = base()
    memlock(m, "65536", "65536")
    return m, expected(True)


def into_infiniband(m, number):
    """A ConnectX-6, which can, as InfiniBand."""
    folder, name = m.way[CARDS[number]], INTERFACES[number]
    net, port = "%s/net/%s" % (folder, name), "%s/infiniband/mlx5_%d/ports/1" % (folder, number)
    m.files(folder, device="0x101b")
    m.file(folder + "/class", "0x020700")
    m.files(net, type=32, mtu=2044)
    m.files(port, link_layer="InfiniBand")


def infiniband():
    m = base()
    for number in range(2):
        into_infiniband(m, number)
    return m, expected(False, each("nic-link-layer", CARDS, "fail"), remedies={
        "nic-link-layer " + card: [
            "sudo mstconfig -d %s set LINK_TYPE_P%d=2  # Ethernet" % (card, number + 1),
            "sudo mstfwreset -d %s reset  # or reboot" % card]
        for number, card in enumerate(CARDS)})


def infiniband_one():
    """The other port is fit."""
    m = base()
    into_infiniband(m, 1)
    return m, expected(True, {"nic-link-layer " + CARDS[1]: "warn"})


def link_down():
    m = base()
    for number, name in enumerate(INTERFACES):
        net = "%s/net/%s" % (m.way[CARDS[number]], name)
        m.files(net, carrier=0, operstate="down", speed=-1)
        m.files("%s/infiniband/mlx5_%d/ports/1" % (m.way[CARDS[number]], number), state="1: DOWN")
        m.fact("ethtool/%s/speed" % name, "unknown")
    return m, expected(False, each("nic-link", CARDS, "fail"), each("nic-speed", CARDS, "unknown"),
                       remedies={"nic-link " + card: [
                           "# plug in cable and transceiver, and bring the other end up",
                           "sudo ethtool %s  # \"Link detected\", and why not" % name,
                           "sudo ethtool -m %s  # is a transceiver seen?" % name]
                           for card, name in zip(CARDS, INTERFACES)})


def no_gpu():
    m = base()
    m.drop(m.way.pop(GPU))
    m.drop("/sys/bus/pci/devices/" + GPU)
    for start in ("/proc/driver", "/sys/module/nvidia", "/sys/module/nvidia_uvm",
                  "/sys/module/nvidia_peermem", "/sys/kernel/mm/memory_peers/nv_mem",
                  "/sys/kernel/mm/memory_peers/nv_mem_nc", "/dev/nvidia0", "/dev/nvidiactl",
                  "/dev/nvidia-uvm", "/gdrcap/facts/cuda", "/gdrcap/facts/nvml"):
        m.drop(start)
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        m.fact("library/" + library, "%s: cannot open shared object file: No such file or "
               "directory" % library)
    return m, expected(False, {"gpu-found": "fail"}, remedies={"gpu-found": [
        "sudo lspci -d 10de:  # nothing: the card is not seated, has no power, or is not passed "
        "through to this machine",
        "gdrcap loopback  # tries all but GPU and card"]})


def no_nic():
    m = base()
    for card in CARDS:
        m.drop(m.way.pop(card))
        m.drop("/sys/bus/pci/devices/" + card)
    for start in ("/sys/class/infiniband", "/sys/class/infiniband_verbs", "/dev/infiniband",
                  "/gdrcap/facts/ethtool", "/sys/module/mlx5_core", "/sys/module/mlx5_ib"):
        m.drop(start)
    for name in INTERFACES:
        m.drop("/sys/class/net/" + name)
    return m, Expected(False, {"nic-present": "fail"}, {"nic-present": [
        "lspci -nn -d 15b3:  # does the machine see a card?",
        "# an NVIDIA ConnectX-5 or later is needed to receive into GPU memory without a copy; a "
        "virtual machine must be given one by its host"]})


def in_container(m):
    """Of the host's: /sys, /proc/driver and the kernel. Of its own: files, rights, interfaces."""
    mounts(m, "overlay / overlay rw,relatime,lowerdir=/var/lib/docker/overlay2/l/ABC,"
           "upperdir=/var/lib/docker/overlay2/def/diff 0 0")
    m.file("/proc/self/cgroup", "0::/")
    m.files("/sys/fs/cgroup", **{"memory.max": "max", "cpu.max": "max 100000",
                                 "hugetlb.2MB.max": "max"})
    for address in m.way:
        shorten(m, address)
    m.no_fact("kernel/messages")
    m.fact("kernel/messages_error", "Operation not permitted")
    m.drop("/sys/firmware/efi")
    m.folder("/sys/firmware")  # hidden by the runtime


def shorten(m, address):
    """Config space as one sees it who is not root."""
    path = m.way[address] + "/config"
    m.raw(path, m.entries[path][1][:64])


UNKNOWN_CONFIG = {**each("pcie-acs", PORTS, "unknown"),
                  **each("pcie-payload", (GPU, *CARDS), "unknown"),
                  **each("pcie-read-request", CARDS, "unknown")}


def container():
    """docker run, and nothing else."""
    m = base("ubuntu")
    in_container(m)
    m.file("/.dockerenv")
    status(m, 0xA80425FB)
    memlock(m, "8388608", "8388608")
    for name in INTERFACES:
        m.drop("/sys/class/net/" + name)
        m.drop("/gdrcap/facts/ethtool/" + name)
    for number, card in enumerate(CARDS):
        m.drop("%s/net" % m.way[card])
        m.folder("%s/net" % m.way[card])
        m.drop("/dev/infiniband/uverbs%d" % number)
    for start in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/gdrcap/facts/cuda",
                  "/gdrcap/facts/nvml", "/gdrcap/facts/process/access"):
        m.drop(start)
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        m.fact("library/" + library, "%s: cannot open shared object file: No such file or "
               "directory" % library)
    return m, expected(
        False, {"libcuda": "fail", "container-gpu-files": "fail", "capabilities": "fail",
                "memlock": "fail", "module-symbols": "unknown", "secure-boot": "unknown"},
        each("container-rdma-files", CARDS, "fail"), each("container-network", CARDS, "fail"),
        UNKNOWN_CONFIG,
        {check + " " + GPU: "unknown" for check in ("gpu-found", "gpudirect-rdma", "dma-buf",
                                                    "write-ordering")},
        remedies={
            "container-gpu-files": [
                "# docker run --gpus all, with nvidia-container-toolkit on the host:",
                "# sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart "
                "docker"],
            "container-rdma-files " + CARDS[0]: [
                "# docker run --device /dev/infiniband/uverbs0 --device /dev/infiniband/rdma_cm, "
                "or --device /dev/infiniband"],
            "container-network " + CARDS[0]: [
                "# docker run --network host; or on the host: sudo ip link set INTERFACE netns "
                "PID"],
            "memlock": ["# docker run --ulimit memlock=-1 --cap-add IPC_LOCK; in Kubernetes, "
                        "IPC_LOCK in the pod's securityContext"]})


def kubernetes():
    """A pod with all devices, of a cluster whose GPU Operator loads no nvidia-peermem."""
    m, _ = no_peermem()
    in_container(m)
    m.folder("/run/secrets/kubernetes.io/serviceaccount")
    m.link("/var/run", "/run")
    m.files("/sys/fs/cgroup", **{"memory.max": 8 << 30, "cpu.max": "400000 100000",
                                 "hugetlb.2MB.max": 0, "hugetlb.1GB.max": 0})
    status(m, sum(1 << cap for cap in (CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_SYS_RAWIO)))
    return m, expected(
        False, {"gpu-memory-registration": "fail", "peermem-loaded": "warn",
                "dma-buf " + GPU: "warn", "kubernetes GPU Operator": "warn",
                "container-cpus": "warn", "container-memory hugepages of 2 MiB": "warn",
                "container-memory hugepages of 1 GiB": "warn", "module-symbols": "unknown",
                "secure-boot": "unknown"},
        UNKNOWN_CONFIG,
        remedies={
            "peermem-loaded": ["# on the host, not in this container:"] + LOAD_PEERMEM,
            "kubernetes GPU Operator": [
                "# either dma-buf: helm upgrade ... --set driver.kernelModuleType=open, for GPUs "
                "since Turing",
                "# or nvidia-peermem: helm upgrade ... --set driver.rdma.enabled=true (and "
                "driver.rdma.useHostMofed=true where OFED is on the host); then, in the driver's "
                "namespace:",
                "kubectl logs -n gpu-operator daemonset/nvidia-driver-daemonset -c "
                "nvidia-peermem-ctr"],
            "container-memory hugepages of 2 MiB": [
                "# in the pod's spec: limits: hugepages-2Mi: 512Mi, and as much memory"]})


NVIDIAS = "  # from NVIDIA's repository"


def fresh(name):
    """A new installation, with nothing of NVIDIA's and nothing tuned."""
    m = Machine()
    host(m, name, isolated="")
    m.file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro quiet")
    switch(m)
    m.iommu("DMA-FQ")
    m.driver(GPU, "nouveau")
    m.module("nouveau")
    m.module("mlx5_core")
    for start in ("/dev/nvidia0", "/proc/driver", "/gdrcap/facts/cuda", "/gdrcap/facts/nvml",
                  "/sys/class/infiniband", "/sys/class/infiniband_verbs", "/dev/infiniband",
                  "/usr"):
        m.drop(start)
    m.file("/proc/kallsyms", "0000000000000000 T mlx5_core_access_reg\t[mlx5_core]")
    for number, card in enumerate(CARDS):
        m.drop("%s/infiniband" % m.way[card])
        m.drop("%s/infiniband_verbs" % m.way[card])
        m.fact("ethtool/%s/pause" % INTERFACES[number], "rx on, tx on, autonegotiated off")
    for library in ("libcuda.so.1", "libnvidia-ml.so.1", "libibverbs.so.1", "libmlx5.so.1"):
        m.fact("library/" + library, "%s: cannot open shared object file: No such file or "
               "directory" % library)
    for n in range(64):
        m.file("/sys/devices/system/cpu/cpufreq/policy%d/scaling_governor" % n, "schedutil")
    for node in range(2):
        m.file("/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/free_hugepages" % node,
               "0")
    m.file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0")
    m.file("/sys/kernel/security/lockdown", "none [integrity] confidentiality")
    m.raw("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
          b"\x06\x00\x00\x00\x01")
    install = "sudo dnf install " if name == "rhel" else "sudo apt-get install "
    argument = ("sudo grubby --update-kernel=ALL --args='%s'" if name == "rhel" else
                "sudo sed -i 's/^GRUB_CMDLINE_LINUX=\"/&%s /' /etc/default/grub && "
                "sudo update-grub")
    kernel = KERNELS[name]
    return m, expected(
        False, {"nvidia-driver": "fail", "libcuda": "fail", "gpu-memory-registration": "unknown",
                "peermem-loaded": "warn", "peermem-interface": "unknown", "umem": "unknown",
                "hugepages node0": "warn", "cpu-governor": "warn", "cpu-isolation": "warn", "lockdown": "warn",
                "secure-boot": "warn"},
        {check + " " + GPU: "unknown" for check in ("gpu-found", "gpudirect-rdma", "dma-buf",
                                                    "write-ordering")},
        each("nic-rdma", CARDS, "fail"), each("nic-pause", CARDS, "warn"),
        each("pcie-iommu", CARDS, "fail"), {"pcie-iommu " + GPU: "warn"},
        each("rdma-core", ("libibverbs.so.1", "libmlx5.so.1"), "fail"),
        remedies={
            "nvidia-driver": {
                "debian": ["sudo apt-get install nvidia-open-kernel-dkms nvidia-driver  # from "
                           "contrib and non-free"],
                "ubuntu": ["sudo apt-get install nvidia-open" + NVIDIAS],
                "rhel": ["sudo dnf module enable nvidia-driver:open-dkms  # releases 8 and 9 only",
                         "sudo dnf install nvidia-open" + NVIDIAS]}[name] + [
                    "echo 'blacklist nouveau' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf",
                    "sudo dracut --force && sudo reboot" if name == "rhel" else
                    "sudo update-initramfs -u && sudo reboot"],
            "libcuda": [install + {"debian": "libcuda1", "ubuntu": "nvidia-open" + NVIDIAS,
                                   "rhel": "nvidia-driver-cuda" + NVIDIAS}[name]],
            "rdma-core libmlx5.so.1": [install + (
                "rdma-core libibverbs" if name == "rhel" else "rdma-core ibverbs-providers")],
            "nic-rdma " + CARDS[0]: ["sudo modprobe mlx5_ib"] + {
                "debian": [],
                "ubuntu": ["sudo apt-get install linux-modules-extra-%s  # if modprobe does not "
                           "find it" % kernel],
                "rhel": ["sudo dnf install kernel-modules-%s  # if modprobe does not find it"
                         % kernel]}[name] + [
                "echo mlx5_ib | sudo tee /etc/modules-load.d/gdrcap-mlx5_ib.conf  # at each boot"],
            "nic-pause " + CARDS[0]: ["sudo ethtool -A ens6f0np0 rx off tx off"],
            "pcie-iommu " + CARDS[0]: [argument % "iommu=pt", "sudo reboot"],
            "cpu-isolation": [argument % "isolcpus=44,45,46,47 nohz_full=44,45,46,47",
                              "sudo reboot"],
            "hugepages node0": ["echo 256 | sudo tee /sys/devices/system/node/node0/hugepages/"
                                "hugepages-2048kB/nr_hugepages"],
            "nic-firmware-options " + CARDS[0]: [
                install + "mstflint",
                "sudo mstconfig -d %s q CQE_COMPRESSION REAL_TIME_CLOCK_ENABLE" % CARDS[0],
                "# for timestamps in ns: sudo mstconfig -d %s set REAL_TIME_CLOCK_ENABLE=1, then "
                "reboot; compression is not used by the capture" % CARDS[0]],
            "secure-boot": ["sudo mokutil --import %s  # then reboot and enrol the key that DKMS "
                            "signs with" % ("/var/lib/shim-signed/mok/MOK.der" if name == "ubuntu"
                                            else "/var/lib/dkms/mok.pub")]})


def fresh_debian():
    return fresh("debian")


def fresh_ubuntu():
    return fresh("ubuntu")


def fresh_rhel():
    return fresh("rhel")


def not_root():
    """The healthy one, captured by an ordinary user: what he may not read is not known."""
    m = base()
    status(m, 0)
    memlock(m, "8388608", "8388608")
    for address in m.way:
        shorten(m, address)
    m.fact("process/user", 1000)
    m.no_fact("kernel/messages")
    m.fact("kernel/messages_error", "Operation not permitted")
    m.raw("/sys/kernel/security/lockdown", b"")
    m.refuse("/sys/kernel/security/lockdown", EACCES)
    return m, expected(
        False, {"capabilities": "fail", "memlock": "fail", "module-symbols": "unknown",
                "lockdown": "unknown", "peer-mapping": "unknown"}, UNKNOWN_CONFIG,
        remedies={"lockdown": ["sudo cat /sys/kernel/security/lockdown"],
                  "capabilities": [
                      "sudo setcap cap_net_raw,cap_net_admin,cap_sys_rawio,cap_ipc_lock+ep "
                      "\"$(command -v gdrcap)\"  # or run as root",
                      "# a container: docker run --cap-add NET_RAW --cap-add NET_ADMIN --cap-add "
                      "SYS_RAWIO --cap-add IPC_LOCK",
                      "# a systemd service, such as gdrcap-capture@: AmbientCapabilities=CAP_NET_RAW "
                      "CAP_NET_ADMIN CAP_SYS_RAWIO CAP_IPC_LOCK"]})


def clocks_apart():
    """ptp4l sets the card's clock, and nobody the system's."""
    m = base()
    m.facts("clock", state="unsynchronized", offset_ns=0, max_error_us=16000000, programs="ptp4l")
    m.folder("/sys/devices/" + m.way[CARDS[0]].split("/sys/devices/", 1)[1] + "/ptp/ptp0")
    remedy = "sudo phc2sys -a -r"
    return m, expected(
        True, {"clock-sync": "warn", "clock-card " + CARDS[0]: "warn"},
        remedies={"clock-sync": ["# ptp4l sets the card's clock; from there the system's: " + remedy],
                  "clock-card " + CARDS[0]: ["# the system's clock after the card's: " + remedy +
                                             ", or the service phc2sys of linuxptp"]})


def no_clock():
    """Nobody sets it; and one that two programs set."""
    m = base("rhel")
    m.facts("clock", state="unsynchronized", offset_ns=0, max_error_us=16000000, programs="")
    return m, expected(True, {"clock-sync": "warn"}, remedies={"clock-sync": [
        "sudo dnf install chrony", "sudo systemctl enable --now chronyd"]})


def noise(m, keep=()):
    """The same noise each time, in each file but those of these names."""
    for path, (kind, *_) in m.entries.items():
        if kind == "file" and path.rsplit("/", 1)[1] not in keep:
            m.raw(path, b"\xff\x00\n" + hashlib.sha512(path.encode()).digest())
    return m


# What noise makes of checks that have no device for their subject. An answer of dlopen() that is
# not "yes" says why not; no name in a folder is noise.
NOISE = {"clock-sync": "unknown", "clock-offset": "unknown", "memlock": "unknown", "hugepages": "unknown", "cpu-governor": "unknown",
         "cpu-isolation": "unknown", "lockdown": "unknown", "secure-boot": "unknown",
         "peermem-mode peerdirect_support": "unknown", "peermem-deadlock": "unknown",
         "peermem-mode persistent_api_support": "unknown"}


def garbage():
    """Which functions there are can be read, and nothing else."""
    return noise(base(), ("vendor", "device", "class")), expected(
        False, NOISE,
        {"nvidia-driver": "unknown", "libcuda": "fail", "capabilities": "unknown",
         "peer-mapping": "unknown"}, each("devx", CARDS, "warn"),
        each("rdma-core", ("libibverbs.so.1", "libmlx5.so.1"), "fail"),
        each("pcie-acs", PORTS, "unknown"), each("numa", CARDS, "unknown"),
        each("pcie-link", (GPU, "0000:17:00.0", *CARDS), "unknown"),
        *(each(check, (GPU, *CARDS), "unknown") for check in ("pcie-payload", "pcie-iommu")),
        *(each(check, (GPU,), "unknown") for check in (
            "gpu-found", "gpudirect-rdma", "dma-buf", "write-ordering", "pcie-bar1")),
        *(each(check, CARDS, "unknown") for check in (
            "nic-rdma", "nic-link-layer", "nic-link", "nic-speed", "nic-mtu", "nic-pause",
            "nic-firmware", "pcie-read-request")))


def garbage_all():
    """Not even that."""
    return noise(base()), Expected(False, {**NOISE, "gpu-found": "fail", "nic-present": "fail"})


MACHINES = (healthy, r750, sockets_apart, no_peermem, no_peermem_inbox, dmabuf, no_async, nv_peer_mem,
            legacy_ofed, acs, iommu, iommu_rhel, bar1, small_memlock, small_memlock_root,
            infiniband, infiniband_one, link_down, no_gpu, no_nic, container, kubernetes,
            fresh_debian, fresh_ubuntu, fresh_rhel, not_root, clocks_apart, no_clock, garbage, garbage_all)
