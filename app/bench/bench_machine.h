/* SPDX-License-Identifier: BSD-3-Clause */
/* What a bench runs on: EAL, the GPU or its twin, CPUs; and what can be said of them. */
#ifndef GDRCAP_BENCH_MACHINE_H
#define GDRCAP_BENCH_MACHINE_H

#include "bench/bench.h"

/* Fills machine, cuda, ordinal, ops, device, cpus and cpu_count; the rest is the runner's. */
int bench_open(struct bench *bench, const struct gdrcap_bench_config *config,
	       struct gdrcap_error *error);
void bench_close(struct bench *bench);

#endif
