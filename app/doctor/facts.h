/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is asked of the machine and lies in no file: names for tree_fact(). A fact that is not there
 * (-ENOENT) is unknown. N counts the devices of the library that was asked, IF is an interface.
 *
 * Libraries, "yes" or what dlopen() says:
 *   library/libcuda.so.1 library/libcuda.so library/libnvidia-ml.so.1 library/libgdrapi.so.2
 *   library/libibverbs.so.1 library/libmlx5.so.1
 *   symbol/mlx5dv_devx_general_cmd symbol/mlx5dv_devx_umem_reg_ex ("yes", "no": of libmlx5.so.1)
 *
 * The CUDA driver, where libcuda.so.1 loads:
 *   cuda/error   why its devices are not known: "cuInit: 100 (no CUDA-capable device is detected)",
 *                "no answer within 700 ms"; not there where they are
 *   cuda/driver  the CUDA version that it has, "13.0"
 *   cuda/count   devices; N is the ordinal, as it is with this environment's CUDA_* variables
 *   cuda/N/pci   "0000:3b:00.0"
 *   cuda/N/name cuda/N/compute ("9.0") cuda/N/integrated
 *   cuda/N/gpu_direct_rdma_supported cuda/N/dma_buf_supported
 *   cuda/N/stream_memory_operations (of 64 bits; since CUDA 11.7)
 *   cuda/N/multiprocessors cuda/N/concurrent_kernels cuda/N/kernel_timeout
 *   cuda/N/gpu_direct_rdma_writes_ordering (0, 100, 200)
 *   cuda/N/gpu_direct_rdma_flush_writes_options (bits: 1 host, 2 memory operations)
 *
 * NVML, where libnvidia-ml.so.1 loads:
 *   nvml/error nvml/driver nvml/count
 *   nvml/N/pci nvml/N/name nvml/N/bar1_total nvml/N/bar1_used (bytes)
 *
 * The kernel, of each ConnectX interface (SIOCETHTOOL):
 *   ethtool/IF/driver ethtool/IF/driver_version ethtool/IF/firmware
 *   ethtool/IF/pause   "rx on, tx off, autonegotiated off"
 *   ethtool/IF/speed   Mbit/s; "unknown" while the link is down
 *   ethtool/IF/stat/NAME   rx_out_of_buffer, rx_discards_phy, rx_pause_ctrl_phy,
 *                tx_pause_ctrl_phy, rx_global_pause, tx_global_pause; those that the driver has
 *
 * The system's clock (adjtimex()), and who sets it, of those programs that are known:
 *   clock/state   "synchronized", "unsynchronized"
 *   clock/offset_ns clock/max_error_us   still to be corrected; at most
 *   clock/programs   "chronyd phc2sys": of /proc/PID/comm, names of FACTS_CLOCK_PROGRAMS
 *
 * This process:
 *   process/cpus   CPUs that it may run on, "0-3,8"
 *   process/user   effective user id
 *   process/namespaces   "initial": those that the kernel began with; "own": a container's
 *   process/access/PATH   of a device file, whether it may be read and written: 0, or an errno
 *   process/memlock   RLIMIT_MEMLOCK: bytes, or "unlimited"
 *
 * The kernel's messages, those lines only that checks look for (FACTS_MESSAGES), newest last:
 *   kernel/messages   "" where there is none
 *   kernel/symbols   lines of /proc/kallsyms, so that it is read once (this machine only)
 *   kernel/messages_error   why they cannot be read
 */
#ifndef DOCTOR_FACTS_H
#define DOCTOR_FACTS_H

#include "doctor/machine.h"
#include "doctor/tree.h"

/* What a line of the kernel's messages must have in it to be kept. */
#define FACTS_MESSAGES                                                                             \
	"disagrees about version of symbol", "nvidia_peermem", "nvidia-peermem", "nv_peer_mem",    \
		"ib_register_peer_memory_client", "NVRM: Xid", "mlx5_core: probe of", "Lockdown:"

/* The number of a GPU in NVML; -1: it did not say. */
int facts_nvml_number(struct tree *tree, const char *pci);

/* ---- their sources ---- */

/* Libraries, CUDA and NVML are asked at the same time in processes of their own, for a broken one
 * may hang, crash or leave threads behind: begun first, ended last. facts_libraries.c */
struct facts_asked {
	int pid[2], fd[2]; /* fd -1: it does not run */
};
void facts_libraries_begin(struct facts_asked *asked, struct tree *tree);
void facts_libraries_end(struct facts_asked *asked, struct tree *tree, unsigned int limit_ms);
/* facts_clock.c */
#define FACTS_CLOCK_PROGRAMS "chronyd", "systemd-timesyn", "ntpd", "ptp4l", "phc2sys"
void facts_clock(struct tree *tree);
/* facts_ethtool.c */
void facts_ethtool(struct tree *tree, const char *interface);

#endif
