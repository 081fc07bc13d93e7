/* SPDX-License-Identifier: BSD-3-Clause */
/* Resident frames: bursts to workers and back. */
#include "bench/resident.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/log.h"
#include "kernels/frame_records.h"

#define PUBLISH_AT_ONCE 16u /* bursts into a ring before the next one's turn */
#define LOOPS_PER_LOOK 64u  /* at the clock, and whether workers still run */
#define STUCK_MS 5000u
#define JOIN_MS 10000u

/* ---- one burst ---- */

/* A whole frame's descriptor becomes that of its rest, which stays where it is. */
static void describe_parts(const struct resident *resident, struct frame_desc *desc,
			   struct frame_desc *head)
{
	const uint16_t part = (uint16_t)(desc->len < resident->split ? desc->len : resident->split);

	*head = (struct frame_desc){ .slot = desc->slot, .len = part };
	desc->len = (uint16_t)(desc->len - part);
	desc->offset = part;
}

void resident_describe(const struct resident *resident, struct resident_ring *ring)
{
	const uint32_t burst = resident->burst, mask = ring->view.desc_mask;
	const uint32_t first = (uint32_t)(ring->published * burst);
	const uint64_t frame = ring->published * burst % ring->slots;
	const uint16_t len = (uint16_t)(resident->frame_bytes - FRAME_FCS_BYTES);

	/* Hundreds of millions a second: those of the lap before are the same. */
	if (resident->role == KERNEL_PLACE && ring->published > mask / burst &&
	    (mask + 1) % ring->slots == 0)
		return;
	for (uint32_t i = 0; i < burst; i++)
		ring->desc[(first + i) & mask] = (struct frame_desc){
			.slot = ring->first_slot + (uint32_t)frame + i,
			.len = len,
			.offset = resident->offset,
		};
	if (ring->view.head_desc)
		for (uint32_t i = 0; i < burst; i++)
			describe_parts(resident, &ring->desc[(first + i) & mask],
				       &ring->head_desc[(first + i) & mask]);
	if (resident->role == KERNEL_WRITE)
		ring->request[ring->published & (RESIDENT_BURSTS - 1)] = (struct tx_request){
			.sequence = frame,
			.position = frame * resident->payload_bytes,
			.stream = RESIDENT_STREAM,
		};
}

/* Counts what the records say of a burst that is not one record of what was expected. */
static void account_records(const struct resident *resident, const struct resident_ring *ring,
			    uint32_t records, struct resident_counts *counts)
{
	const uint32_t first = (uint32_t)(ring->collected * resident->burst);
	struct frame_record plain;
	uint64_t seen = 0;

	for (uint32_t r = 0; r < records && r < resident->burst; r++) {
		const struct frame_record *record =
			record_read(&ring->view, ring->collected, first, r, &plain);

		seen += record->count;
		if (frame_is_damaged(record->verdict))
			counts->damaged += record->count;
		else if (resident->borrowed && record->verdict == FRAME_VALID)
			counts->validated += record->count;
	}
	counts->lost += seen < resident->burst ? resident->burst - seen : 0;
}

void resident_account(const struct resident *resident, struct resident_ring *ring,
		      struct resident_counts *counts)
{
	const uint32_t records = burst_records(&ring->view, ring->collected);
	const uint32_t first = (uint32_t)(ring->collected * resident->burst);
	struct frame_record plain;
	const struct frame_record *record =
		record_read(&ring->view, ring->collected, first, 0, &plain);

	counts->frames += resident->burst;
	if (resident->role == KERNEL_PLACE) {
		resident->place->account(resident->place->context, ring, counts);
	} else if (resident->role == KERNEL_CHECK) {
		if (!resident->borrowed && records == 1 && record->verdict == FRAME_VALID &&
		    record->count == resident->burst && record->stream == RESIDENT_STREAM &&
		    record->sequence == ring->collected * resident->burst % ring->slots &&
		    record->bytes == resident->burst * resident->payload_bytes)
			counts->validated += resident->burst;
		else
			account_records(resident, ring, records, counts);
	}
	ring->collected++;
}

/* ---- workers ---- */

/* `views` has room for every ring. */
static void job_make(const struct resident *resident, enum kernel_role role, uint32_t blocks,
		     struct burst_ring_view *views, struct kernel_job *job)
{
	const struct bench *bench = resident->bench;

	*job = (struct kernel_job){
		.role = role,
		.rings = views,
		.ring_count = resident->rings,
		.workers_per_ring = blocks,
		.frame_bytes_hint = resident->frame_bytes,
		.layout = resident->layout,
		.pattern = resident->pattern,
	};
	if (role == KERNEL_PLACE) {
		job->places = &resident->place->view;
		job->place_count = 1;
		job->resident = resident->place->persistent;
	}
	/* CPU 0 of the list publishes. */
	if (bench->cpu_count > 1) {
		job->cpus = &bench->cpus[1];
		job->cpu_count = bench->cpu_count - 1;
	}
	for (uint32_t r = 0; r < resident->rings; r++) {
		views[r] = resident->ring[r].view;
		if (role == KERNEL_CHECK && resident->heads) {
			views[r].head_desc = resident->ring[r].head_desc;
			views[r].heads = resident->heads;
			views[r].heads_bytes = resident->bytes >> resident->slot_shift
									  << RESIDENT_HEAD_SHIFT;
			views[r].head_shift = RESIDENT_HEAD_SHIFT;
		}
	}
}

void resident_reset(struct resident *resident, enum kernel_role role)
{
	resident->role = role;
	*resident->stop = 0;
	for (uint32_t r = 0; r < resident->rings; r++) {
		struct resident_ring *ring = &resident->ring[r];

		memset(ring->ready, 0, RESIDENT_BURSTS * sizeof(*ring->ready));
		memset(ring->beside, 0, RESIDENT_BURSTS * sizeof(*ring->beside));
		ring->view.beside = role == KERNEL_CHECK && resident->bench->ops->reads_inline
					    ? ring->beside
					    : NULL;
		memset(ring->result, 0, RESIDENT_BURSTS * sizeof(*ring->result));
		ring->published = ring->collected = 0;
		ring->view.head_desc =
			role == KERNEL_CHECK && resident->heads ? ring->head_desc : NULL;
	}
}

int resident_start(struct resident *resident, enum kernel_role role, uint32_t blocks,
		   struct gdrcap_error *error)
{
	const struct bench *bench = resident->bench;
	struct burst_ring_view views[RESIDENT_RINGS_MAX];
	struct kernel_job job;
	int ret;

	resident_reset(resident, role);
	job_make(resident, role, blocks, views, &job);
	ret = bench->ops->start(bench->device, &job, &resident->workers);
	if (ret == 0)
		return 0;
	resident->workers = NULL;
	return error_set(error, ret, "%s", kernel_error());
}

int resident_stop(struct resident *resident, struct gdrcap_error *error)
{
	int ret;

	if (!resident->workers)
		return 0;
	/* STOP */
	__atomic_store_n(resident->stop, 1, __ATOMIC_RELAXED);
	ret = resident->bench->ops->join(resident->workers, JOIN_MS);
	if (ret == -ETIMEDOUT)
		return error_set(error, ret, "%s", kernel_error());
	resident->workers = NULL;
	return ret ? error_set(error, ret, "%s", kernel_error()) : 0;
}

/* Room and results of one ring. Returns the bursts that are under way or still to come. */
static uint64_t ring_turn(const struct resident *resident, struct resident_ring *ring,
			  uint64_t last, struct resident_counts *counts)
{
	for (uint32_t n = 0;
	     n < PUBLISH_AT_ONCE && ring->published < last && resident_has_room(ring); n++) {
		resident_describe(resident, ring);
		resident_publish(resident, ring);
	}
	while (ring->collected < ring->published && resident_done(ring))
		resident_account(resident, ring, counts);
	return ring->published - ring->collected + (ring->published < last);
}

static bool workers_starve(void *arg)
{
	struct resident *resident = arg;

	return resident->bench->ops->starved(resident->workers);
}

/* Nothing came back for a while, in which the workers may have had no core: then for as long again
 * in which they had one. */
static bool is_stuck(struct resident *resident, uint64_t moved_ns)
{
	if (bench_now_ns() - moved_ns <= STUCK_MS * 1000000ull)
		return false;
	if (resident->still_ns != moved_ns) {
		resident->still_ns = moved_ns;
		patience_begin(&resident->patience);
	}
	return patience_ends(&resident->patience, STUCK_MS, workers_starve, resident);
}

int resident_watch(struct resident *resident, uint64_t moved_ns, struct gdrcap_error *error)
{
	const int running = resident->bench->ops->running(resident->workers);

	if (running < 0)
		return error_set(error, running, "%s", kernel_error());
	if (running == 0 || is_stuck(resident, moved_ns))
		return error_set(error, -ETIMEDOUT,
				 "no burst comes back from the workers any more: see dmesg, and "
				 "whether other programs use the GPU (nvidia-smi)");
	return 0;
}

int resident_play(struct resident *resident, uint32_t ms, uint64_t bursts,
		  struct resident_counts *counts, struct gdrcap_error *error)
{
	const uint64_t begin = bench_now_ns(), end = begin + (uint64_t)ms * 1000000u;
	uint64_t left = 1, now, moved = begin, frames = counts->frames, last[RESIDENT_RINGS_MAX];
	int ret = 0;

	for (uint32_t r = 0; r < resident->rings; r++)
		last[r] = ms ? UINT64_MAX : resident->ring[r].published + bursts;
	for (uint32_t loop = 1; left && !ret; loop++) {
		left = 0;
		for (uint32_t r = 0; r < resident->rings; r++)
			left += ring_turn(resident, &resident->ring[r], last[r], counts);
		/* the twin's threads may have no CPU of their own */
		if (!resident->gpu)
			sched_yield();
		if (loop % LOOPS_PER_LOOK)
			continue;
		now = bench_now_ns();
		moved = counts->frames != frames ? now : moved;
		frames = counts->frames;
		ret = resident_watch(resident, moved, error);
		if (ms && now >= end)
			for (uint32_t r = 0; r < resident->rings; r++)
				last[r] = 0;
	}
	counts->seconds += (double)(bench_now_ns() - begin) * 1e-9;
	return ret;
}

void resident_sample(const struct resident *resident, const struct resident_counts *counts,
		     bool checked, struct bench_sample *sample)
{
	sample->seconds = counts->seconds;
	sample->frames = counts->frames;
	sample->validated = counts->validated;
	sample->damaged = counts->damaged;
	sample->lost = counts->lost;
	sample->mpps =
		(double)(checked ? counts->validated : counts->frames) / counts->seconds / 1e6;
	sample->gbps = sample->mpps * resident->frame_bytes * 8 / 1e3;
}
