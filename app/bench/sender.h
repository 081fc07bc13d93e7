/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's stage with the real tx worker, sending into net_null. */
#ifndef GDRCAP_BENCH_SENDER_H
#define GDRCAP_BENCH_SENDER_H

#include "bench/bench.h"

struct sender_tx;

int sender_tx_open(const struct bench *bench, const struct gdrcap_bench_point *point,
		   struct sender_tx **opened, struct gdrcap_error *error);
int sender_tx_run(struct sender_tx *tx, uint32_t run_ms, struct bench_sample *sample,
		  struct gdrcap_error *error);
void sender_tx_close(struct sender_tx *tx);

#endif
