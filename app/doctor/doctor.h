/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One check is one function and one row of the table in doctor_checks.c. A check looks at the
 * machine and the tree and adds its findings, one for each thing it looked at. With nothing to look
 * at (no card, no GPU) it may add none: then "not applicable" is added for it.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdint.h>

#include "doctor/machine.h"
#include "doctor/examine.h"

struct gdrcap_doctor;

struct doctor_check {
	const char *id, *group;
	enum gdrcap_severity severity;
	const char *why; /* one sentence, no full stop needed inside */
	void (*run)(struct gdrcap_doctor *doctor);
};
extern const struct doctor_check doctor_checks[]; /* id NULL: the end */

struct tree *doctor_tree(struct gdrcap_doctor *doctor);
const struct machine *doctor_machine(const struct gdrcap_doctor *doctor);

/*
 * Adds a finding of the check that runs. `subject` and `remedy` may be NULL; `read` is a format.
 * finding_remedy() adds a line of remedy to the last finding. Too many findings, or texts beyond
 * 2 KiB, are cut.
 */
void finding(struct gdrcap_doctor *doctor, const char *subject, enum gdrcap_health verdict,
	     const char *read, ...) __attribute__((format(printf, 4, 5)));
void finding_remedy(struct gdrcap_doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The remedy "install this package", as a command of the machine's distribution. */
enum doctor_package {
	PACKAGE_RDMA_CORE, /* libibverbs and mlx5's provider */
	PACKAGE_NVIDIA_DRIVER,
	PACKAGE_MSTFLINT, /* mstconfig */
	PACKAGE_ETHTOOL,
	PACKAGE_PCIUTILS, /* setpci, lspci */
	PACKAGE_GDRCOPY,
	PACKAGE_GDRCOPY_LIBRARY,
};
void finding_install(struct gdrcap_doctor *doctor, enum doctor_package package);

#endif
