/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Is this machine able to capture frames into GPU memory, and if not, what is to be done?
 *
 * Reads files under /sys, /proc, /etc and /dev, asks the CUDA driver where its library is there, and
 * changes nothing. Needs no GPU, card, root or hugepages, and starts neither EAL nor a session
 * (live tests aside).
 */
#ifndef DOCTOR_EXAMINE_H
#define DOCTOR_EXAMINE_H

#include "gdrcap.h"

#ifdef __cplusplus
extern "C" {
#endif

enum gdrcap_severity {
	GDRCAP_SEVERITY_FATAL, /**< a failed check means that it cannot work */
	GDRCAP_SEVERITY_SLOW,  /**< it works, below the line rate or with losses */
	GDRCAP_SEVERITY_INFO,
};
enum gdrcap_health {
	GDRCAP_HEALTH_OK,
	GDRCAP_HEALTH_WARN,
	GDRCAP_HEALTH_FAIL,
	GDRCAP_HEALTH_UNKNOWN, /**< cannot be read; `remedy` says how it can */
	GDRCAP_HEALTH_NOT_APPLICABLE,
};

/** What one check says of one thing. Texts live as long as the doctor. */
struct gdrcap_finding {
	const char *id;	     /**< "peermem-loaded": stable */
	const char *group;   /**< "gpu", "peer-memory", "nic", "pcie", "host", "container" */
	const char *subject; /**< PCI address, interface, ...; "": the machine */
	enum gdrcap_severity severity;
	enum gdrcap_health verdict;
	const char *read;   /**< what was read, file and value; several are separated by "; " */
	const char *why;    /**< one sentence: why it matters */
	const char *remedy; /**< commands for this machine, one a line; a line that is no command
			     * begins with "# "; "": nothing to do */
	uint32_t order;	    /**< in which the checks found it */
};

struct gdrcap_doctor; /**< one examination */

struct gdrcap_doctor_config {
	size_t size;	  /**< sizeof(struct gdrcap_doctor_config) of the caller */
	const char *root; /**< folder that stands for /, from gdrcap_doctor_capture(); NULL: this
			   * machine */
	uint32_t live;	  /**< 1: live tests too: GPU memory is allocated and registered */
	/** Called before each check; may be NULL. */
	void (*progress)(void *context, const char *id);
	void *context;
};

int gdrcap_doctor_create(const struct gdrcap_doctor_config *config, struct gdrcap_doctor **doctor,
			 struct gdrcap_error *error);
void gdrcap_doctor_destroy(struct gdrcap_doctor *doctor);

struct gdrcap_machine_gpu {
	char pci[16], name[64];
	int cuda_ordinal; /**< for option gpu; -1: unknown */
	int numa_node;	  /**< -1: unknown */
};
struct gdrcap_machine_card {
	char pci[16], model[32]; /**< "ConnectX-6 Dx"; "": none that DPDK's mlx5 driver takes */
	char interface[32], rdma[32], driver[32]; /**< "": none */
	int numa_node;				  /**< -1: unknown */
	int virtual_function;
};
/** What was examined. Texts are "" where unknown. */
struct gdrcap_machine {
	char distribution[64], kernel[128];
	char container[32], virtual_machine[32]; /**< "": none, as far as can be seen */
	int root;				 /**< 1: the examiner had the rights of root */
	uint32_t gpus, cards;
	struct gdrcap_machine_gpu gpu[32];
	struct gdrcap_machine_card card[64];
};
const struct gdrcap_machine *gdrcap_doctor_machine(const struct gdrcap_doctor *doctor);

/** Worst first; NULL after the last. */
const struct gdrcap_finding *gdrcap_doctor_finding(const struct gdrcap_doctor *doctor,
						   uint32_t index);
/** 1: nothing fatal failed. With `unknown` not NULL: how many fatal checks could not be read. */
int gdrcap_doctor_able(const struct gdrcap_doctor *doctor, uint32_t *unknown);

/** A GPU and a card to use together, best first. */
struct gdrcap_pair {
	char gpu[16], card[16]; /**< PCI addresses */
	char interface[32];	/**< the card's; "": none */
	int cuda_ordinal;	/**< for option gpu; -1: unknown */
	char path[8];  /**< between them, as nvidia-smi topo names it: "PIX", "PXB", "PHB", "NODE",
		       * "SYS" */
	int numa_node; /**< of the card; -1: unknown */
	char cores[256]; /**< CPUs near both, isolated ones first: "2,4-7" */
};
/** -ENOENT after the last. */
int gdrcap_doctor_pair(const struct gdrcap_doctor *doctor, uint32_t index,
		       struct gdrcap_pair *pair);

/** A YAML configuration for the best pair (or for what there is), with comments that say why. */
int gdrcap_doctor_write_config(const struct gdrcap_doctor *doctor, const char *path,
			       struct gdrcap_error *error);
/** A new folder with all that was read, for `root` on another machine. No environment, no addresses
 * of other hosts, no kernel arguments and messages but those that checks look for. */
int gdrcap_doctor_capture(const struct gdrcap_doctor *doctor, const char *path,
			  struct gdrcap_error *error);

#ifdef __cplusplus
}
#endif
#endif
