/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The checks, in files by group, and what they read the machine with. Each adds one finding at
 * least; doctor_checks.c has the table.
 */
#ifndef DOCTOR_CHECKS_H
#define DOCTOR_CHECKS_H

#include "doctor/doctor.h"
#include "doctor/facts.h"
#include "doctor/machine.h"
#include "doctor/tree.h"

/* Rings, mempools and EAL's own; GPU memory needs none. */
#define HUGEPAGES_WANTED (UINT64_C(512) << 20)

/* checks_gpu.c */
void check_nvidia_driver(struct gdrcap_doctor *doctor);
void check_libcuda(struct gdrcap_doctor *doctor);
void check_gpu_found(struct gdrcap_doctor *doctor);
void check_gpudirect(struct gdrcap_doctor *doctor);
void check_dmabuf(struct gdrcap_doctor *doctor);
void check_write_ordering(struct gdrcap_doctor *doctor);

/* checks_peer.c */
void check_registration(struct gdrcap_doctor *doctor);
void check_peermem(struct gdrcap_doctor *doctor);
void check_peer_interface(struct gdrcap_doctor *doctor);
void check_nv_peer_mem(struct gdrcap_doctor *doctor);
void check_peermem_mode(struct gdrcap_doctor *doctor);
void check_peermem_deadlock(struct gdrcap_doctor *doctor);
void check_module_symbols(struct gdrcap_doctor *doctor);

/* checks_gdrcopy.c */
void check_gdrcopy(struct gdrcap_doctor *doctor);

/* checks_nic.c */
void check_nic_present(struct gdrcap_doctor *doctor);
void check_nic_driver(struct gdrcap_doctor *doctor);
void check_nic_rdma(struct gdrcap_doctor *doctor);
void check_nic_link_layer(struct gdrcap_doctor *doctor);
void check_nic_link(struct gdrcap_doctor *doctor);

/* checks_nic_port.c */
void check_nic_model(struct gdrcap_doctor *doctor);
void check_nic_function(struct gdrcap_doctor *doctor);
void check_nic_speed(struct gdrcap_doctor *doctor);
void check_nic_mtu(struct gdrcap_doctor *doctor);
void check_nic_pause(struct gdrcap_doctor *doctor);
void check_nic_firmware(struct gdrcap_doctor *doctor);
void check_nic_firmware_options(struct gdrcap_doctor *doctor);

/* checks_topology.c */
void check_pcie_topology(struct gdrcap_doctor *doctor);
void check_pcie_acs(struct gdrcap_doctor *doctor);

/* checks_pcie.c */
void check_pcie_link(struct gdrcap_doctor *doctor);
void check_pcie_payload(struct gdrcap_doctor *doctor);
void check_pcie_read_request(struct gdrcap_doctor *doctor);
void check_pcie_bar1(struct gdrcap_doctor *doctor);
/* Remedy: install setpci, where it is not there. */
void finding_setpci(struct gdrcap_doctor *doctor);
/* Why no more than the first 64 bytes of config space were read. */
const char *config_hidden(const struct gdrcap_doctor *doctor);

/* checks_iommu.c */
void check_pcie_iommu(struct gdrcap_doctor *doctor);
/* Remedy: start the kernel with this argument too. No '/', '&' or quote in it. */
void finding_kernel_argument(struct gdrcap_doctor *doctor, const char *argument);

/* checks_host.c */
void check_rdma_core(struct gdrcap_doctor *doctor);
void check_uverbs(struct gdrcap_doctor *doctor);
void check_capabilities(struct gdrcap_doctor *doctor);
void check_memlock(struct gdrcap_doctor *doctor);
void check_hugepages(struct gdrcap_doctor *doctor);
void check_hugepage_files(struct gdrcap_doctor *doctor);

/* checks_cpu.c */
void check_numa(struct gdrcap_doctor *doctor);
void check_governor(struct gdrcap_doctor *doctor);
void check_isolation(struct gdrcap_doctor *doctor);
void check_lockdown(struct gdrcap_doctor *doctor);
void check_secure_boot(struct gdrcap_doctor *doctor);

/* checks_container.c */
void check_container_gpu(struct gdrcap_doctor *doctor);
void check_container_rdma(struct gdrcap_doctor *doctor);
void check_container_network(struct gdrcap_doctor *doctor);
void check_container_memory(struct gdrcap_doctor *doctor);
void check_container_cpus(struct gdrcap_doctor *doctor);
void check_kubernetes(struct gdrcap_doctor *doctor);

#endif
