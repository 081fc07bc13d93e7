/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of an examination; checks use doctor.h. */
#ifndef DOCTOR_INTERNAL_H
#define DOCTOR_INTERNAL_H

#include <stdbool.h>

#include "doctor/doctor.h"
#include "doctor/machine.h"

#define DOCTOR_FINDINGS_MAX 2048u
#define DOCTOR_PAIRS_MAX (MACHINE_GPUS_MAX * MACHINE_CARDS_MAX)
#define DOCTOR_PAIRS_KEPT 256u
#define PAIRS_CPUS_MAX 4096u

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

struct gdrcap_doctor {
	struct tree *tree;
	struct machine machine;
	struct gdrcap_machine facts;	  /* what callers see of it; pairs.c */
	const struct doctor_check *check; /* that runs */
	bool open;			  /* the last finding may get remedies */
	bool said;			  /* the check has added a finding */
	bool no_memory;
	bool live; /* live tests too */
	uint32_t count, pairs;
	struct gdrcap_finding findings[DOCTOR_FINDINGS_MAX];
	struct gdrcap_pair pair[DOCTOR_PAIRS_KEPT]; /* best first */
	struct doctor_choice choice;
};

/* What is no file: asks this machine and keeps the answers as facts of the tree. facts.c */
void doctor_facts(struct gdrcap_doctor *doctor);

/* Which GPU and card to use together. pairs.c */
void doctor_pairs(struct gdrcap_doctor *doctor);
bool pairs_infiniband(struct tree *tree, const struct machine_card *card);
bool pairs_up(struct tree *tree, const struct machine_card *card); /* there is a carrier */
struct pairs_cpus {
	bool near[PAIRS_CPUS_MAX]; /* and usable; 0 only where there is no other */
	bool zero;		   /* that one is usable nevertheless */
	bool isolated[PAIRS_CPUS_MAX];
};
/* CPUs near a function; NULL: near anything. */
void pairs_cpus(struct gdrcap_doctor *doctor, const struct machine_pci *pci,
		struct pairs_cpus *cpus);

/* Of the pairs, and the rest, what a configuration should have. write_config.c */
void doctor_choose(struct gdrcap_doctor *doctor);

/* Findings of the live tests. live.c */
void doctor_live(struct gdrcap_doctor *doctor, const struct gdrcap_doctor_config *config);
/* One row of a table of checks. doctor.c */
void doctor_check_run(struct gdrcap_doctor *doctor, const struct doctor_check *check,
		      const struct gdrcap_doctor_config *config);

#endif
