/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs that a process uses, as other processes with gdrcap see it. */
#ifndef GDRCAP_CPU_CLAIM_H
#define GDRCAP_CPU_CLAIM_H

/* A descriptor that has the CPU until it is closed, at the latest by the end of the process; -EADDRINUSE: another
 * process of this network namespace has it; or another negative errno: not known. */
int cpu_claim(int cpu);

#endif
