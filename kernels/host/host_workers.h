/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend's threads. Inside kernels/host only. */
#ifndef GDRCAP_HOST_WORKERS_H
#define GDRCAP_HOST_WORKERS_H

#include "kernels/kernels.h"

int host_workers_start(struct kernel_device *device, const struct kernel_job *job,
		       struct kernel_workers **workers);
int host_workers_join(struct kernel_workers *workers, unsigned int timeout_ms);
bool host_workers_starved(struct kernel_workers *workers);
int host_workers_running(struct kernel_workers *workers);
uint32_t host_workers_per_ring(const struct kernel_workers *workers);

/* Between two looks of a thread that waits: the number of those before. */
void host_idle(uint32_t polls);

/* ---- host_burst.c: the work on one burst ---- */

/* What frames are made of, or compared with. */
struct host_work {
	const struct frame_layout *layout;
	const struct pattern *pattern;
	const struct frame_store_view *store; /* NULL: layout and pattern */
	uint32_t step;			      /* a worker takes every step-th burst of its ring */
	const struct place_view *places;      /* KERNEL_PLACE */
	uint32_t place_count;
};

/* Checks the burst's frames, writes its records and returns their number. */
uint32_t host_burst_check(const struct burst_ring_view *ring, const struct host_work *work,
			  uint64_t burst, uint64_t ready);
/* The same where the ring has header-data split or the stale-read detector (stale.h). */
uint32_t host_burst_check_more(const struct burst_ring_view *ring, const struct host_work *work,
			       uint64_t burst, uint64_t ready);
/* Writes the burst's frames as ordered. */
void host_burst_write(const struct burst_ring_view *ring, const struct host_work *work,
		      uint64_t burst, uint64_t ready);

/* ---- host_place.c, host_close.c ---- */

/* Copies the burst's payloads into images, writes its place_records and returns their number. */
uint32_t host_burst_place(const struct burst_ring_view *ring, const struct host_work *work,
			  uint64_t burst, uint64_t ready);
/* kernel_ops.place_close_whole(), and place_close() */
int host_place_close_whole(struct kernel_device *device, const struct place_view *view,
			   const struct place_whole *images, uint32_t count);
int host_place_close(struct kernel_device *device, const struct place_view *view, uint32_t slot,
		     uint32_t use, uint32_t pieces, int fill);

/* ---- host_compare.c ---- */

/* Whether the image in `slot` has the bytes of all parts of the packet, as they are in the image. */
int host_place_equal(const struct place_view *view, uint32_t slot, const uint8_t *frame,
		     const struct image_packet *packet);

/* ---- host_convert.c ---- */

/* `bytes` bytes as sent, whole groups of `convert`, into the image. */
void host_convert(uint32_t convert, uint8_t *to, const uint8_t *from, uint32_t bytes);

#endif
