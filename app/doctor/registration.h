/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two ways in which a card is given GPU memory: by its address, which takes a module that
 * answers for it (nvidia-peermem), and as a dma-buf. One of them is enough. Several checks ask.
 */
#ifndef DOCTOR_REGISTRATION_H
#define DOCTOR_REGISTRATION_H

#include <stddef.h>
#include <stdint.h>

#include "doctor/doctor.h"

#define READ_TEXT 640u /* of what was read, for the functions below */

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };

/* A GPU, whoever knows it: the PCI bus, CUDA, or both. */
struct gpu_seen {
	char pci[16];
	int ordinal;		       /* CUDA's; -1: it did not say */
	const struct machine_gpu *gpu; /* NULL: not on the PCI bus */
};
uint32_t gpus_seen(struct gdrcap_doctor *doctor, struct gpu_seen gpus[MACHINE_GPUS_MAX]);
/* A number that CUDA says of a device: 0, -ENOENT (it did not), -EINVAL (it is none). */
int cuda_number(struct gdrcap_doctor *doctor, int ordinal, const char *name, unsigned int *number);

/* Loaded: ANSWER_UNKNOWN where there is no list of modules. */
enum answer module_loaded(struct gdrcap_doctor *doctor, const char *name);
/* The line of NVIDIA's kernel module that has its version and kind; -ENOENT, ... */
int nvidia_driver_line(struct gdrcap_doctor *doctor, char line[256]);

/* The RDMA core has the interface that such modules register with. */
enum answer peer_interface(struct gdrcap_doctor *doctor, char read[READ_TEXT]);
/* Such a module has registered itself. */
enum answer peer_client(struct gdrcap_doctor *doctor, char read[READ_TEXT]);
/* The GPU's driver makes dma-bufs of its memory. */
enum answer dmabuf_export(struct gdrcap_doctor *doctor, int ordinal, char read[READ_TEXT]);
/* The RDMA core takes dma-bufs. */
enum answer dmabuf_import(struct gdrcap_doctor *doctor, char read[READ_TEXT]);
/* Both, of one GPU at least. */
enum answer dmabuf_way(struct gdrcap_doctor *doctor);

/* A device file that this process may read and write: 0, -ENOENT, -EACCES, ...; of another machine
 * what was found there, or else that it exists. */
int device_access(struct gdrcap_doctor *doctor, const char *path);
/* The file through which programs reach a card's RDMA device: as device_access(). -ENODEV: the
 * kernel has made none, or the card is no ConnectX. checks_host.c */
int rdma_device_file(struct gdrcap_doctor *doctor, const struct machine_card *card, char path[80]);

/* A remedy that has to be done outside the container, if this is one, is said to be so. */
void finding_host(struct gdrcap_doctor *doctor);
/* The remedy "load nvidia-peermem, now and at each start", with what it takes. */
void finding_load_peermem(struct gdrcap_doctor *doctor);

#endif
