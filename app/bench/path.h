/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the stage of whole paths runs: sessions as a user would make them, from one of two sources.
 *
 * "ring": the loopback. Own frames, written on the device, over a software wire; numbers checked.
 *
 * "null": DPDK's net_null gives empty mbufs, as fast as the pool does, and no bytes. So before the
 * run every slot of the pool gets the same right frame, where the driver will say that it received
 * one. They come in the pool's order, which is none, and again and again: they are of a custom
 * layout without a number, whose pattern begins anew in each, so that the order means nothing, runs
 * of right frames fold all the same, and a frame counts as valid only if all that follows its
 * Ethernet header was compared on the device. Nothing of the path is left out or added for it.
 */
#ifndef GDRCAP_BENCH_PATH_H
#define GDRCAP_BENCH_PATH_H

#include "bench/bench.h"

#define PATH_PATTERN "prbs31"

/* As stage_path.c's row. */
uint32_t path_points(const struct bench *bench, struct gdrcap_bench_point *points);

bool path_is_null(const struct gdrcap_bench_point *point);
/* Threads of the point's sessions that are busy all the time. */
uint32_t path_threads(const struct bench *bench, const struct gdrcap_bench_point *point);
/* True when each of them, and the caller, can have a CPU. */
bool path_fits(const struct bench *bench, const struct gdrcap_bench_point *point);

/* The point's session as options, to be freed; 0 or a negative errno. */
int path_config(const struct bench *bench, const struct gdrcap_bench_point *point,
		struct gdrcap_config **config, struct gdrcap_error *error);

/* Between create and start, "null" only: a right frame into every slot. */
int path_fill(struct gdrcap_session *session, struct gdrcap_error *error);

#endif
