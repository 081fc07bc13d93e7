/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An examination: is this machine able to capture frames into GPU memory, and if not, what is to be
 * done? It reads files under /sys, /proc, /etc and /dev, asks the CUDA driver where its library is
 * there, and changes nothing. It needs no GPU, card, root or hugepages, and starts neither EAL nor a
 * session (live tests aside).
 *
 * One check is one function and one row of the table at the end of its group's file. A check looks
 * at the machine and the tree and adds its findings, one for each thing it looked at. With nothing
 * to look at (no card, no GPU) it may add none: then "not applicable" is added for it.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "doctor/machine.h"
#include "doctor/tree.h"
#include "gdrcap.h"

#define DOCTOR_FINDINGS_MAX 2048u
#define DOCTOR_PAIRS_MAX (MACHINE_GPUS_MAX * MACHINE_CARDS_MAX)
#define DOCTOR_PAIRS_KEPT 256u
#define PAIRS_CPUS_MAX 4096u

enum severity {
	SEVERITY_FATAL, /* a failed check means that it cannot work */
	SEVERITY_SLOW,	/* it works, below the line rate or with losses */
	SEVERITY_INFO,
};
enum health {
	HEALTH_OK,
	HEALTH_WARN,
	HEALTH_FAIL,
	HEALTH_UNKNOWN, /* cannot be read; `remedy` says how it can */
	HEALTH_NOT_APPLICABLE,
};

struct doctor;
struct gpu_seen;

struct doctor_check {
	const char *id, *group; /* "peermem-loaded", "peer-memory": stable */
	enum severity severity;
	const char *why; /* it matters: one sentence, no full stop needed inside */
	/* One of them: once, for each ConnectX, for each that has an interface, for each GPU. */
	void (*run)(struct doctor *doctor);
	void (*card)(struct doctor *doctor, const struct machine_card *card);
	void (*interface)(struct doctor *doctor, const struct machine_card *card);
	void (*gpu)(struct doctor *doctor, const struct gpu_seen *gpu);
};
/* Of each file, in the order of docs/doctor.md; id NULL: the end. */
extern const struct doctor_check checks_gpu[], checks_gdrcopy[], checks_peer[], checks_nic[],
	checks_nic_port[], checks_topology[], checks_pcie[], checks_iommu[], checks_host[],
	checks_cpu[], checks_container[], checks_queues[], checks_clock[], checks_live[];

/* What one check says of one thing. */
struct finding {
	const struct doctor_check *check;
	enum health verdict;
	char *subject; /* PCI address, interface, ...; "": the machine */
	char *read;    /* what was read, file and value; several are separated by "; " */
	char *remedy; /* commands for this machine, one a line; a line that is no command begins with
			* "# "; "": nothing to do */
	uint32_t order; /* in which the checks found it */
};

/* A GPU, whoever knows it: the PCI bus, CUDA, or both. */
struct gpu_seen {
	char pci[16];
	int ordinal;		       /* CUDA's; -1: it did not say */
	const struct machine_gpu *gpu; /* NULL: not on the PCI bus */
};

/* A GPU and a card to use together. */
struct pair {
	const struct machine_gpu *gpu;
	const struct machine_card *card;
	const char *path; /* between them, as nvidia-smi topo names it: "PIX", "PXB", ... */
	char cores[256];  /* CPUs near both, isolated ones first: "2,4-7" */
};

/* What a configuration for this machine is about. */
struct doctor_choice {
	const struct machine_gpu *gpu;		  /* NULL: none */
	const struct machine_card *card, *sender; /* NULL: none */
	const char *path; /* between GPU and card; NULL: one of them is missing */
	uint64_t mbits;	  /* of the card's link; 0: unknown */
	uint32_t queues;
	uint32_t cores;
	uint32_t core[GDRCAP_CORES_MAX];
	bool isolated; /* one of them at least */
};

struct doctor {
	struct tree *tree;
	struct machine machine;
	struct gpu_seen gpu[MACHINE_GPUS_MAX];
	uint32_t gpus;
	const struct doctor_check *check; /* that runs */
	bool open;			  /* the last finding may get remedies */
	bool said;			  /* the check has added a finding */
	bool no_memory;
	bool live; /* live tests too */
	uint32_t count, pairs;
	struct finding findings[DOCTOR_FINDINGS_MAX]; /* in the end worst first */
	struct pair pair[DOCTOR_PAIRS_KEPT];	      /* best first */
	struct doctor_choice choice;
};

struct doctor_config {
	const char *root; /* folder that stands for /, from doctor_capture(); NULL: this machine */
	bool live;	  /* live tests too: GPU memory is allocated and registered */
	/* Called before each check; may be NULL. */
	void (*progress)(const char *id);
};

int doctor_create(const struct doctor_config *config, struct doctor **doctor,
		  struct gdrcap_error *error);
void doctor_destroy(struct doctor *doctor);

/* True: nothing fatal failed. With `unknown` not NULL: how many fatal checks could not be read. */
bool doctor_able(const struct doctor *doctor, uint32_t *unknown);
/* A YAML configuration for the best pair (or for what there is), with comments that say why. */
int doctor_write_config(const struct doctor *doctor, const char *path, struct gdrcap_error *error);
/* A new folder with all that was read, for `root` on another machine. No environment, no addresses
 * of other hosts, no kernel arguments and messages but those that checks look for. */
int doctor_capture(const struct doctor *doctor, const char *path, struct gdrcap_error *error);

#define DOCTOR_SCHEMA "gdrcap.doctor/1"

/* For people: worst first, then what is fine in one line a group; all: each check. */
void doctor_print_text(FILE *to, const struct doctor *doctor, int all, int colour);
/* One line, ended by a line feed and flushed. 0 or a negative errno. */
int doctor_print_json(FILE *to, const struct doctor *doctor);
/* The same shape for what could not be examined: no checks, able null, and why. */
int doctor_print_json_error(FILE *to, const char *why);

/* ---- for the checks ---- */

/*
 * Adds a finding of the check that runs. `subject` may be NULL; `read` is a format. remedy() adds a
 * line of remedy to the last finding. Too many findings, or texts beyond 2 KiB, are cut.
 */
void finding(struct doctor *doctor, const char *subject, enum health verdict, const char *read, ...)
	__attribute__((format(printf, 4, 5)));
void remedy(struct doctor *doctor, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A remedy that has to be done outside the container, if this is one, is said to be so. */
void remedy_on_host(struct doctor *doctor);

/* The remedy "install this package", as a command of the machine's distribution. */
enum doctor_package {
	PACKAGE_RDMA_CORE, /* libibverbs and mlx5's provider */
	PACKAGE_NVIDIA_DRIVER,
	PACKAGE_MSTFLINT, /* mstconfig */
	PACKAGE_ETHTOOL,
	PACKAGE_PCIUTILS, /* setpci, lspci */
	PACKAGE_GDRCOPY,
	PACKAGE_GDRCOPY_LIBRARY,
	PACKAGE_CHRONY,
};
void remedy_install(struct doctor *doctor, enum doctor_package package);
/* Installs setpci, where it is not there. checks_pcie.c */
void remedy_setpci(struct doctor *doctor);
/* Starts the kernel with this argument too. No '/', '&' or quote in it. checks_iommu.c */
void remedy_kernel_argument(struct doctor *doctor, const char *argument);
/* Loads nvidia-peermem, now and at each start, with what it takes. registration.c */
void remedy_load_peermem(struct doctor *doctor);

/* ---- what several checks ask: registration.c ---- */

/* Rings, mempools and EAL's own; GPU memory needs none. */
#define HUGEPAGES_WANTED (UINT64_C(512) << 20)
#define READ_TEXT 640u /* of what was read, for the functions below */

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };
const char *answer_word(enum answer answer); /* "yes", "no", "not known" */

/* A GPU that CUDA has; NULL: it has none, or did not say. */
const struct gpu_seen *gpu_of_cuda(const struct doctor *doctor);
/* A number that CUDA says of a device: 0, -ENOENT (it did not), -EINVAL (it is none). */
int cuda_number(struct doctor *doctor, int ordinal, const char *name, unsigned int *number);

/* Loaded: ANSWER_UNKNOWN where there is no list of modules. */
enum answer module_loaded(struct doctor *doctor, const char *name);
/* The line of NVIDIA's kernel module that has its version and kind; -ENOENT, ... */
int nvidia_driver_line(struct doctor *doctor, char line[256]);

/*
 * A card is given GPU memory in two ways: by its address, which takes a module that answers for it
 * (nvidia-peermem), and as a dma-buf. One of them is enough.
 */
/* The RDMA core has the interface that such modules register with. */
enum answer peer_interface(struct doctor *doctor, char read[READ_TEXT]);
/* Such a module has registered itself. */
enum answer peer_client(struct doctor *doctor, char read[READ_TEXT]);
/* The GPU's driver makes dma-bufs of its memory. */
enum answer dmabuf_export(struct doctor *doctor, int ordinal, char read[READ_TEXT]);
/* The RDMA core takes dma-bufs. */
enum answer dmabuf_import(struct doctor *doctor, char read[READ_TEXT]);
/* Both, of one GPU at least. */
enum answer dmabuf_way(struct doctor *doctor);

/* A device file that this process may read and write: 0, -ENOENT, -EACCES, ...; of another machine
 * what was found there, or else that it exists. */
int device_access(struct doctor *doctor, const char *path);
/* The file through which programs reach a card's RDMA device: as device_access(). -ENODEV: the
 * kernel has made none, or the card is not a ConnectX. checks_host.c */
int rdma_device_file(struct doctor *doctor, const struct machine_card *card, char path[80]);
/* Why no more than the first 64 bytes of config space were read. checks_pcie.c */
const char *config_hidden(const struct doctor *doctor);
bool card_is_virtual(const struct machine_card *card);

/* ---- the examination's parts ---- */

/* What is no file: asks this machine and keeps the answers as facts of the tree. facts.c */
void doctor_facts(struct doctor *doctor);
/* GPUs that the PCI bus or CUDA has. registration.c */
void doctor_gpus(struct doctor *doctor);
/* Which GPU and card to use together. pairs.c */
void doctor_pairs(struct doctor *doctor);
bool pairs_infiniband(struct tree *tree, const struct machine_card *card);
bool pairs_up(struct tree *tree, const struct machine_card *card); /* there is a carrier */
struct pairs_cpus {
	bool near[PAIRS_CPUS_MAX]; /* and usable; 0 only where there is no other */
	bool zero;		   /* that one is usable nevertheless */
	bool isolated[PAIRS_CPUS_MAX];
};
/* CPUs near a function; NULL: near anything. */
void pairs_cpus(struct doctor *doctor, const struct machine_pci *pci, struct pairs_cpus *cpus);
/* Sets the CPUs of a list of the kernel's, "0-3,8"; of "" and "(null)" none. Their number; -EINVAL:
 * it is no list. */
int cpus_read(const char *text, bool *set, size_t max);
/* Of the pairs, and the rest, what a configuration should have. write_config.c */
void doctor_choose(struct doctor *doctor);

#endif
