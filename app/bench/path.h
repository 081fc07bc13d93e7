/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the stage of whole paths runs: sessions as a user would make them, from one of two sources, or over
 * ports that were given: then "driver", "cpu" or "gpu" says who takes the frames from the port (rx_by).
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

#include <pthread.h>

#include "bench/bench.h"

#define PATH_PATTERN "prbs31"

/* One session at a time, with the same options each time. */
struct path {
	const struct bench *bench;
	struct gdrcap_bench_point point;
	struct gdrcap_config *config;
	bool image; /* images are placed, and taken by a thread: path_image.c; else frames checked */
};

/* As stage_path.c's row. */
int path_run(void *state, uint32_t run_ms, struct bench_sample *sample, struct gdrcap_error *error);
void path_close(void *state);
uint32_t path_points(const struct bench *bench, struct gdrcap_bench_point *points);

/* "driver", "cpu" or "gpu": who sends, of ports that were given. */
const char *path_tx_by(const struct bench *bench);
bool path_is_null(const struct gdrcap_bench_point *point);
/* Threads of the point's sessions that are busy all the time. */
uint32_t path_threads(const struct bench *bench, const struct gdrcap_bench_point *point);
/* True when each of them, and the caller, can have a CPU. */
bool path_fits(const struct bench *bench, const struct gdrcap_bench_point *point);

/* Where the point's session runs: the first of its options. `ret`: as bench_set(). */
int path_place(const struct bench *bench, const struct gdrcap_bench_point *point,
	       struct gdrcap_config *config, int ret, struct gdrcap_error *error);
/* Its frames are all alike: those of path_fill(). */
int path_alike(const struct gdrcap_bench_point *point, struct gdrcap_config *config, int ret,
	       struct gdrcap_error *error);
/* The point's session as options, to be freed; `image`: the layout, of frames that are placed; NULL: they
 * are checked. 0 or a negative errno. */
int path_config(const struct bench *bench, const struct gdrcap_bench_point *point,
		const char *image, struct gdrcap_config **config, struct gdrcap_error *error);

/* Between create and start, with path_alike(): a right frame into every slot. */
int path_fill(struct gdrcap_session *session, struct gdrcap_error *error);

/* ---- path_image.c ---- */

/* As path_open() of frames. */
int path_image_open(struct path *path, const struct bench *bench,
		    const struct gdrcap_bench_point *point, struct gdrcap_error *error);
/* As path_fill(), and the pool gives its slots in one order from now on: that of an image after the
 * other. */
int path_image_fill(struct gdrcap_session *session, struct gdrcap_error *error);

/* A thread that takes the images and gives them back. */
struct path_taker {
	struct gdrcap_images *images;
	pthread_t thread;
	_Atomic int stop;
};
int path_taker_start(struct path_taker *taker, struct gdrcap_session *session,
		     struct gdrcap_error *error);
void path_taker_stop(struct path_taker *taker);

#endif
