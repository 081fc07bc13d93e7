# SPDX-License-Identifier: BSD-3-Clause
"""What the machines of doctor_machines.py are made of: a tuned host with NVIDIA's driver,
DOCA-OFED, and a GPU and a card below one PCIe switch."""
from doctor_tree import Machine

GPU = "0000:19:00.0"
CARDS = ("0000:1c:00.0", "0000:1c:00.1")
# The switch's ports above GPU and card.
PORTS = ("0000:18:00.0", "0000:18:04.0")
INTERFACES = ("ens6f0np0", "ens6f1np1")

KERNELS = {"debian": "6.1.0-27-amd64", "ubuntu": "6.8.0-49-generic",
           "rhel": "5.14.0-503.14.1.el9_5.x86_64"}
RELEASES = {
    "debian": ('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"', 'VERSION_ID="12"', "ID=debian"),
    "ubuntu": ('PRETTY_NAME="Ubuntu 24.04.1 LTS"', 'VERSION_ID="24.04"', "ID=ubuntu",
               "ID_LIKE=debian"),
    "rhel": ('NAME="Red Hat Enterprise Linux"', 'ID="rhel"', 'ID_LIKE="fedora"',
             'VERSION_ID="9.5"', 'PRETTY_NAME="Red Hat Enterprise Linux 9.5 (Plow)"'),
}

CAPABILITIES_ALL = 0x1FFFFFFFFFF
CAP_NET_ADMIN, CAP_NET_RAW, CAP_IPC_LOCK, CAP_SYS_RAWIO = 12, 13, 14, 17
EACCES = 13

CLOSED_DRIVER = "NVIDIA UNIX x86_64 Kernel Module  550.127.05  Tue Oct  8 03:22:07 UTC 2024"
OPEN_DRIVER = ("NVIDIA UNIX Open Kernel Module for x86_64  550.127.05  Release Build  "
               "(dvs-builder@U16-I3-C16-2-3)  Tue Oct  8 02:56:30 UTC 2024")


def status(m, capabilities=CAPABILITIES_ALL):
    m.file("/proc/self/status", "Name:\tgdrcap", "State:\tR (running)", "Uid:\t0\t0\t0\t0",
           "CapInh:\t0000000000000000", "CapPrm:\t%016x" % capabilities,
           "CapEff:\t%016x" % capabilities, "CapBnd:\t%016x" % capabilities)


def memlock(m, soft, hard):
    m.file("/proc/self/limits",
           "Limit                     Soft Limit           Hard Limit           Units     ",
           "Max cpu time              unlimited            unlimited            seconds   ",
           "Max locked memory         %-20s %-20s bytes     " % (soft, hard),
           "Max address space         unlimited            unlimited            bytes     ")
    m.fact("process/memlock", soft)


def mounts(m, *first):
    m.file("/proc/mounts", *first, "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0",
           "sysfs /sys sysfs rw,nosuid,nodev,noexec,relatime 0 0",
           "hugetlbfs /dev/hugepages hugetlbfs rw,relatime,pagesize=2M 0 0")


def distribution(m, name):
    m.file("/etc/os-release", *RELEASES[name])
    m.file("/proc/sys/kernel/osrelease", KERNELS[name])
    m.file("/boot/config-" + KERNELS[name], "CONFIG_INFINIBAND=m",
           "CONFIG_INFINIBAND_ON_DEMAND_PAGING=y")


def host(m, name="debian", isolated="8-15,40-47"):
    """Two sockets of 16 cores, examined by root; tuned for the purpose."""
    distribution(m, name)
    status(m)
    memlock(m, "unlimited", "unlimited")
    mounts(m, "/dev/sda2 / ext4 rw,relatime 0 0")
    m.file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro quiet iommu=pt"
           " isolcpus=%s nohz_full=%s" % (isolated, isolated))
    m.file("/proc/self/uid_map", "         0          0 4294967295")
    m.file("/proc/self/cgroup", "0::/user.slice/user-0.slice/session-1.scope")
    m.file("/proc/cpuinfo", "processor\t: 0", "model name\t: Intel(R) Xeon(R) Gold 6326",
           "flags\t\t: fpu vme de pse tsc msr pae mce cx8 apic sep avx512f constant_tsc", "")
    m.file("/proc/kallsyms", "0000000000000000 T ib_register_client\t[ib_core]",
           "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]",
           "0000000000000000 T ib_register_peer_memory_client\t[ib_core]")
    m.files("/sys/class/dmi/id", product_name="SYS-420GP-TNR", sys_vendor="Supermicro")
    m.folder("/sys/class/net")
    m.folder("/sys/class/iommu")
    cpu = "/sys/devices/system/cpu"
    m.files(cpu, online="0-63", isolated=isolated, nohz_full=isolated or "(null)")
    for n in range(64):
        m.file("%s/cpu%d/topology/thread_siblings_list" % (cpu, n), "%d,%d" % (n % 32, n % 32 + 32))
        m.file("%s/cpufreq/policy%d/scaling_governor" % (cpu, n), "performance")
    for node, cpus in enumerate(("0-15,32-47", "16-31,48-63")):
        folder = "/sys/devices/system/node/node%d" % node
        m.file(folder + "/cpulist", cpus)
        m.file(folder + "/hugepages/hugepages-2048kB/free_hugepages", "1024")
        m.file(folder + "/hugepages/hugepages-1048576kB/free_hugepages", "0")
    m.file("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "2048")
    m.file("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "0")
    m.folder("/dev/hugepages")
    m.file("/sys/kernel/security/lockdown", "[none] integrity confidentiality")
    m.file("/sys/kernel/security/lsm", "lockdown,capability,yama,apparmor")
    m.raw("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
          b"\x06\x00\x00\x00\x00")
    m.fact("process/cpus", "0-7,16-39,48-63" if isolated else "0-63")
    m.fact("process/user", 0)
    m.facts("clock", state="synchronized", offset_ns=-345, max_error_us=1200, programs="chronyd")
    m.fact("kernel/messages", "")
    for library in ("libibverbs.so.1", "libmlx5.so.1"):
        m.fact("library/" + library, "yes")
    m.fact("library/libgdrapi.so.2",
           "libgdrapi.so.2: cannot open shared object file: No such file or directory")
    for symbol in ("mlx5dv_devx_general_cmd", "mlx5dv_devx_umem_reg_ex"):
        m.fact("symbol/" + symbol, "yes")
    for program in ("setpci", "mstconfig"):
        m.file("/usr/bin/" + program)
    m.file("/usr/sbin/ethtool")


def nvidia_driver(m, line=CLOSED_DRIVER):
    m.file("/proc/driver/nvidia/version", "NVRM version: " + line,
           "GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)")
    for name in ("nvidia", "nvidia_uvm"):
        m.module(name, "550.127.05")
    for name in ("nvidiactl", "nvidia-uvm"):
        m.file("/dev/" + name)
        m.fact("process/access/dev/" + name, 0)
    for library in ("libcuda.so.1", "libnvidia-ml.so.1"):
        m.fact("library/" + library, "yes")
    m.fact("cuda/driver", "12.4")


def ofed(m, version="24.10-0.7.0"):
    """NVIDIA's DOCA-OFED: its modules have versions, and the RDMA core takes peers."""
    m.module("mlx_compat")
    m.module("mlx5_core", version)
    for name in ("ib_core", "ib_uverbs", "mlx5_ib"):
        m.module(name, version)
    m.folder("/sys/kernel/mm/memory_peers")


def inbox(m):
    """The kernel's own RDMA core, which knows nothing of peers."""
    for name in ("mlx_compat", "mlx5_core", "ib_core", "ib_uverbs", "mlx5_ib"):
        if "/sys/module/%s/initstate" % name in m.entries:
            m.drop("/sys/module/" + name)
    m.drop("/sys/kernel/mm/memory_peers")
    for name in ("mlx5_core", "ib_core", "ib_uverbs", "mlx5_ib"):
        m.module(name)
    m.file("/proc/kallsyms", "0000000000000000 T ib_register_client\t[ib_core]",
           "0000000000000000 T ib_umem_dmabuf_get\t[ib_uverbs]")


def peermem(m, version="550.127.05", **parameters):
    m.module("nvidia_peermem", version, **parameters)
    for client in ("nv_mem", "nv_mem_nc"):
        m.file("/sys/kernel/mm/memory_peers/%s/version" % client, "1.0")


def switch(m):
    """A PCIe switch below a root port of socket 0, with a GPU and a card of two ports."""
    top = "pci0000:16/0000:16:02.0"
    m.bridge(top, (0x8086, 0x347A))
    m.bridge(top + "/0000:17:00.0")
    m.bridge(top + "/0000:17:00.0/" + PORTS[0])
    m.bridge(top + "/0000:17:00.0/" + PORTS[1])
    m.gpu("%s/0000:17:00.0/%s/%s" % (top, PORTS[0], GPU), 0)
    for number, address in enumerate(CARDS):
        m.card("%s/0000:17:00.0/%s/%s" % (top, PORTS[1], address), number, INTERFACES[number])


def base(name="debian"):
    m = Machine()
    host(m, name)
    nvidia_driver(m)
    ofed(m)
    peermem(m, peerdirect_support=0, persistent_api_support=1)
    switch(m)
    m.iommu("identity")
    return m
