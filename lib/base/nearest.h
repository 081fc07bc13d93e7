/* SPDX-License-Identifier: BSD-3-Clause */
/* "Did you mean": the one of several names that a wrong one may be a slip of. */
#ifndef GDRCAP_NEAREST_H
#define GDRCAP_NEAREST_H

/* Begins as { .name = "qeues" }. */
struct nearest {
	const char *name;
	const char *best; /* NULL: none is near */
	unsigned int edits;
	char hint[64];
};

/* One name more; of equally near ones the first counts. */
void nearest_consider(struct nearest *nearest, const char *candidate);
/* "; did you mean '--queues'?", with `dashes` as "--", or "". */
const char *nearest_hint(struct nearest *nearest, const char *dashes);

#endif
