/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that lie in their memory already, and rings over them: what the consumer's, the sender's,
 * the latency's and the images' stages have in common. One CPU thread publishes bursts and collects results, no
 * port. Frame n of a ring is always in the ring's slot n modulo their number, its sequence number
 * that remainder; so a burst that is right is one run.
 */
#ifndef GDRCAP_BENCH_RESIDENT_H
#define GDRCAP_BENCH_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/patience.h"
#include "bench/bench.h"

#define RESIDENT_RINGS_MAX 16u
#define RESIDENT_BURSTS 1024u /* of a ring: under way at most */
#define RESIDENT_BURST_BITS 10u
#define RESIDENT_STREAM 7u

struct bench_gpu;

struct resident_config {
	uint32_t frame_bytes; /* with FCS */
	uint32_t burst, rings;
	const char *pattern; /* "prbs31", ... */
	/* "device" (the GPU's), "pinned", "host". With "-split" at its end, of each frame the first
	 * RESIDENT_SPLIT bytes are taken from host memory, as with header-data split. */
	const char *memory;
	size_t bytes;	/* of the frames' region; 0: many times what the caches hold */
	uint32_t descs; /* of a ring, a power of two; 0: as many as the bursts under way can have */
	uint32_t least; /* frames, however small the caches are; 0: two bursts a ring */
	/* Slots somebody else filled: every frame there is to be checked by itself. NULL: own. */
	uint8_t *frames;
	uint32_t slot_shift; /* of these slots */
	uint16_t offset;     /* of the frame in its slot */
};

struct resident_ring;
struct resident_counts;

/* Of KERNEL_PLACE: where to, and who is told of a burst that is done, before it counts as collected. */
struct resident_place {
	struct place_view view;
	uint32_t persistent; /* as struct kernel_job's `resident` */
	void (*account)(void *context, const struct resident_ring *ring,
			struct resident_counts *counts);
	void *context;
};

#define RESIDENT_SPLIT 128u
#define RESIDENT_HEAD_SHIFT 7u /* log2 of FRAME_HEAD_BYTES_MAX */

struct resident_ring {
	struct burst_ring_view view; /* the consumer's */
	struct frame_desc *desc, *head_desc;
	struct burst_ready *ready;
	struct burst_beside *beside;
	struct burst_result *result;
	struct tx_request *request;
	uint64_t published, collected; /* bursts */
	uint64_t most;		       /* bursts under way; RESIDENT_BURSTS, or fewer */
	uint32_t first_slot, slots;    /* a multiple of the burst */
};

struct resident_counts {
	uint64_t frames, validated, damaged, lost;
	double seconds;
};

struct resident {
	const struct bench *bench;
	struct bench_gpu *gpu; /* NULL: the host's twin */
	uint32_t frame_bytes, burst, rings, descs, payload_bytes, split;
	enum kernel_role role; /* of the workers that run */
	struct frame_layout layout;
	struct pattern pattern;
	uint8_t *frames, *heads;
	size_t bytes;
	bool pinned, borrowed;
	uint32_t slot_shift;
	uint16_t offset;
	uint32_t *stop;
	struct kernel_workers *workers; /* NULL: none run */
	struct resident_place *place;
	/* Of resident_watch(): since when nothing moves, and how long workers could have. */
	uint64_t still_ns;
	struct patience patience;
	struct resident_ring ring[RESIDENT_RINGS_MAX];
};

/* The slots hold zeros; resident_fill() writes frames into them. */
int resident_create(const struct bench *bench, const struct resident_config *config,
		    struct resident **created, struct gdrcap_error *error);
/* No workers may run; after a resident_stop() that failed, nothing is given back. */
void resident_destroy(struct resident *resident);
/* Both of them, of whatever a stage has made, NULL too; what goes wrong is logged. */
void resident_close(struct resident *resident);
int resident_fill(struct resident *resident, struct gdrcap_error *error);

/* Workers on empty rings. `blocks` a ring; 0: the back end's default. */
int resident_start(struct resident *resident, enum kernel_role role, uint32_t blocks,
		   struct gdrcap_error *error);
int resident_stop(struct resident *resident, struct gdrcap_error *error);
/* As if nothing was ever published: what resident_start() begins with. */
void resident_reset(struct resident *resident, enum kernel_role role);

/* Publishes for `ms`, or with 0 until each ring has had `bursts`, and collects all results. Adds to
 * *counts; of KERNEL_WRITE only frames and seconds. */
int resident_play(struct resident *resident, uint32_t ms, uint64_t bursts,
		  struct resident_counts *counts, struct gdrcap_error *error);

/* Memory that both sides see (`shared`), or as the frames'; zeroed. NULL: *error says why. */
void *resident_alloc(const struct resident *resident, size_t bytes, bool shared,
		     struct gdrcap_error *error);
void resident_free(const struct resident *resident, void *memory, bool shared);

/* As bench_stage.cores: the thread that publishes, and on the host the workers. */
uint32_t resident_cores(const struct bench *bench, const struct gdrcap_bench_point *point);

/* ---- one burst ---- */

static inline bool resident_has_room(const struct resident_ring *ring)
{
	return ring->published - ring->collected < ring->most;
}

/* Writes descriptors and request of the next burst. */
void resident_describe(const struct resident *resident, struct resident_ring *ring);

static inline void resident_publish(const struct resident *resident, struct resident_ring *ring)
{
	const uint32_t first = (uint32_t)(ring->published * resident->burst);

	const uint32_t slot = (uint32_t)ring->published & (RESIDENT_BURSTS - 1);

	burst_publish(&ring->ready[slot], ring->view.beside ? &ring->beside[slot] : NULL,
		      &ring->desc[first & ring->view.desc_mask], ring->published,
		      RESIDENT_BURST_BITS, resident->burst, first);
	ring->published++;
}

/* True when the oldest burst is done. */
static inline bool resident_done(const struct resident_ring *ring)
{
	return burst_is_done(&ring->result[ring->collected & (RESIDENT_BURSTS - 1)],
			     ring->collected, RESIDENT_BURST_BITS);
}

/* Counts the oldest burst, which is done, and goes on to the next. */
void resident_account(const struct resident *resident, struct resident_ring *ring,
		      struct resident_counts *counts);

/* Now and then: an error when workers failed, or when nothing has come back since `moved_ns` for
 * too long. */
int resident_watch(struct resident *resident, uint64_t moved_ns, struct gdrcap_error *error);

/* For a sample: rates from counts; of frames that are `checked`, those that are right. */
void resident_sample(const struct resident *resident, const struct resident_counts *counts,
		     bool checked, struct bench_sample *sample);

#endif
