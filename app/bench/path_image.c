/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole paths of path.h that place images: how slots are filled, and who takes the images. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/log.h"
#include "bench/bench_util.h"
#include "bench/path.h"
#include "bench/placing.h"
#include "session/session.h"

#define PAYLOAD 50u
/* Frames of an image, and buffers: many more frames than blocks have under way, some 12,000, since an image
 * that finds no buffer is lost; far fewer images than in all slots, or a number would find its image of
 * before. */
#define PIECES_CUDA 2048u
#define IMAGES_CUDA 32u
#define PIECES_HOST 64u
#define IMAGES_HOST 64u
#define FILL_BYTES ((size_t)16 << 20)
#define WAIT_US 10000 /* until who takes looks whether to stop */
#define TAKE_MAX 64u
#define NO_FRAME UINT32_MAX

/* ---- options ---- */

int path_image_open(struct path *path, const struct bench *bench,
		    const struct gdrcap_bench_point *point, struct gdrcap_error *error)
{
	const uint32_t piece = point->frame_bytes - FRAME_FCS_BYTES - PAYLOAD;
	const bool persistent = strcmp(point->source, "resident") == 0;
	char more[96], text[384];

	path->bench = bench;
	path->point = *point;
	path->image = true;
	snprintf(path->point.source, sizeof(path->point.source), "null");
	snprintf(more, sizeof(more), ", ring: %u, timeout: 60, engine: %s",
		 bench->cuda ? IMAGES_CUDA : IMAGES_HOST, persistent ? "resident" : "launched");
	placing_layout(text, sizeof(text), piece, PAYLOAD, bench->cuda ? PIECES_CUDA : PIECES_HOST,
		       more);
	return path_config(bench, &path->point, text, &path->config, error);
}

/* ---- slots ---- */

/* The pool's slots in the order in which they will come, into `order`: frame of slot. Without its cache, a
 * pool is a queue, and one receiver gives them back as they came. Returns how many there are, or 0. */
static uint32_t pool_order(struct gdrcap_session *session, uint32_t *order)
{
	const struct region *region = &session->memory.region;
	struct rte_mempool *pool = session->ports.pairs[0].rx_pool[0];
	struct rte_mbuf **mbufs;
	uint32_t count;

	pool->cache_size = 0;
	count = rte_mempool_avail_count(pool);
	mbufs = malloc(count * sizeof(struct rte_mbuf *));
	if (!mbufs || rte_mempool_get_bulk(pool, (void **)mbufs, count) < 0) {
		free(mbufs);
		return 0;
	}
	for (uint32_t i = 0; i < count; i++)
		order[(size_t)((uint8_t *)mbufs[i]->buf_addr - region->base) >>
		      region->slot_shift] = i;
	rte_mempool_put_bulk(pool, (void **)mbufs, count);
	free(mbufs);
	return count;
}

/* Slots of frames of whole images; the rest are nobody's. */
static int slots_write(struct gdrcap_session *session, const uint32_t *order, uint32_t frames,
		       uint8_t *copy, struct gdrcap_error *error)
{
	const struct region *region = &session->memory.region;
	const uint32_t pieces = session->images.view[0].layout.pieces;
	const uint32_t bytes = session->settings.sizes.length[0];
	int ret = 0;

	for (size_t at = 0; at < region->bytes && !ret; at += FILL_BYTES) {
		const size_t end = RTE_MIN(at + FILL_BYTES, region->bytes);

		memset(copy, 0, end - at);
		for (size_t s = at >> region->slot_shift; s < end >> region->slot_shift; s++)
			if (order[s] < frames / pieces * pieces)
				placing_frame(copy + (s << region->slot_shift) - at +
						      RTE_PKTMBUF_HEADROOM,
					      bytes, PAYLOAD, order[s] / pieces, order[s] % pieces);
		ret = session->memory.ops->copy_in(session->memory.device, region->device + at,
						   copy, end - at);
	}
	return ret < 0 ? error_set(error, ret, "the slots cannot be filled: %s", kernel_error())
		       : 0;
}

int path_image_fill(struct gdrcap_session *session, struct gdrcap_error *error)
{
	const struct region *region = &session->memory.region;
	const size_t slots = region->bytes >> region->slot_shift;
	uint32_t *order = malloc(slots * sizeof(*order)), frames;
	uint8_t *copy = malloc(FILL_BYTES);
	int ret = 0;

	if (!order || !copy) {
		ret = error_set(error, -ENOMEM, "no memory for frames to fill slots with");
		goto out;
	}
	for (size_t s = 0; s < slots; s++)
		order[s] = NO_FRAME;
	frames = pool_order(session, order);
	ret = frames ? slots_write(session, order, frames, copy, error)
		     : error_set(error, -ENOMEM, "no memory for the order of the pool's slots");
out:
	free(order);
	free(copy);
	return ret;
}

/* ---- images ---- */

static void *taker_main(void *argument)
{
	struct path_taker *taker = argument;
	const struct gdrcap_image *image[TAKE_MAX];
	int n = 0;

	while (n >= 0 && !atomic_load_explicit(&taker->stop, memory_order_relaxed)) {
		n = gdrcap_image_wait(taker->images, image, TAKE_MAX, WAIT_US);
		if (n > 0)
			gdrcap_image_release(taker->images, image, (unsigned int)n);
	}
	return NULL;
}

int path_taker_start(struct path_taker *taker, struct gdrcap_session *session,
		     struct gdrcap_error *error)
{
	int ret;

	taker->images = gdrcap_get_images(session, 0);
	taker->stop = 0;
	ret = pthread_create(&taker->thread, NULL, taker_main, taker);
	return ret ? error_set(error, -ret, "no thread that takes images: %s", strerror(ret)) : 0;
}

void path_taker_stop(struct path_taker *taker)
{
	atomic_store_explicit(&taker->stop, 1, memory_order_relaxed);
	pthread_join(taker->thread, NULL);
}
