/* SPDX-License-Identifier: BSD-3-Clause */
/* A job on a CUDA device: its tables, rings and store in one piece of memory, and the job as kernels see it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device.cuh"
#include "kernels/kernel_job.h"

/* Bursts of a front. */
#define DEFAULT_FRONT_EAGER 8u

/* A part of the job's memory: where it is copied from, and where it comes to lie. */
struct job_part {
	const void *from;
	size_t bytes, at;
};

enum {
	PART_JOB,
	PART_RINGS,
	PART_CRC,
	PART_PRBS,
	PART_WINDOWS,
	PART_POWERS,
	PART_FILE,
	PART_PLACES,
	PART_FRONTS,
	PART_SENDS,
	PART_STORE_DATA, /* last, since a job can do without its own copy of a store */
	PART_STORE_FRAMES,
	PART_STORE_BUCKETS,
	PARTS
};

static const void *part_address(const struct job_part *part, const uint8_t *memory)
{
	return part->bytes ? memory + part->at : NULL;
}

static uint32_t prbs_table_words(const struct kernel_job *job)
{
	const bool writes = job->role == KERNEL_WRITE;
	const bool finds = job->role == KERNEL_CHECK && !job->store &&
			   job->layout.format == FRAME_CUSTOM && job->layout.custom.self_phase;

	return (writes || finds) && pattern_is_prbs(job->pattern.kind)
		       ? PRBS_LANE_WORDS + PRBS_STEP_WORDS
		       : 0;
}

/* Places the parts behind each other; returns the bytes that they need. */
static size_t parts_place(struct job_part *part, uint32_t count)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		part[i].at = bytes;
		bytes += (part[i].bytes + 255) & ~(size_t)255;
	}
	return bytes;
}

/*
 * Takes memory of the pool for the job's parts. A copy of a resident store, that workers read at
 * the GPU's speed, is made where there is room; else they read it where it is, over PCIe.
 */
static int job_memory(struct kernel_workers *workers, const struct kernel_job *job,
		      struct job_part part[PARTS])
{
	const struct frame_store_view *store = job->store;
	struct kernel_device *device = workers->device;
	cudaError_t error;

	for (uint32_t i = PART_STORE_DATA; i < PARTS; i++)
		part[i].bytes = 0;
	if (store && store->resident) {
		part[PART_STORE_DATA].bytes = store->data_bytes;
		part[PART_STORE_FRAMES].bytes = store->count * sizeof(store->frames[0]);
		if (job->role == KERNEL_CHECK)
			part[PART_STORE_BUCKETS].bytes =
				((size_t)store->bucket_mask + 1) * sizeof(store->buckets[0]);
		error = cudaMallocFromPoolAsync(&workers->memory, parts_place(part, PARTS),
						device->pool, device->copy_stream);
		if (!error)
			return 0;
		cudaGetLastError();
		for (uint32_t i = PART_STORE_DATA; i < PARTS; i++)
			part[i].bytes = 0;
	}
	error = cudaMallocFromPoolAsync(&workers->memory, parts_place(part, PARTS), device->pool,
					device->copy_stream);
	return error ? cuda_fail(error, "allocating the kernel's tables") : 0;
}

/* The job as the kernel sees it; part addresses are the device's. */
static void job_image(struct device_job *image, const struct kernel_workers *workers,
		      const struct kernel_job *job, const struct job_part part[PARTS])
{
	const uint8_t *memory = (const uint8_t *)workers->memory;

	image->layout = job->layout;
	if (job->layout.format != FRAME_CUSTOM)
		frame_look_init(&image->look, &job->layout);
	image->pattern = job->pattern;
	image->pattern.windows = (const uint64_t *)part_address(&part[PART_WINDOWS], memory);
	image->pattern.powers = (const uint32_t *)part_address(&part[PART_POWERS], memory);
	image->pattern.file = (const uint8_t *)part_address(&part[PART_FILE], memory);
	if (job->store)
		image->store = *job->store;
	if (part[PART_STORE_FRAMES].bytes) {
		image->store.data = (const uint8_t *)part_address(&part[PART_STORE_DATA], memory);
		image->store.frames =
			(const struct store_frame *)part_address(&part[PART_STORE_FRAMES], memory);
		image->store.buckets = (const struct store_bucket *)part_address(
			&part[PART_STORE_BUCKETS], memory);
	}
	image->rings = (const struct burst_ring_view *)part_address(&part[PART_RINGS], memory);
	image->crc_table = (const uint32_t *)part_address(&part[PART_CRC], memory);
	image->prbs_tables = (const uint32_t *)part_address(&part[PART_PRBS], memory);
	image->started = workers->control->started;
	image->gate = &workers->control->gate;
	image->places = (const struct place_view *)part_address(&part[PART_PLACES], memory);
	image->place_count = job->place_count;
	if (job->role == KERNEL_FRONT)
		image->fronts =
			(const struct kernel_front *)part_address(&part[PART_FRONTS], memory);
	if (job->role == KERNEL_SEND)
		image->sends = (const struct kernel_send *)part_address(&part[PART_SENDS], memory);
	image->workers_per_ring = workers->per_ring;
	image->groups = workers->groups;
}

/* The job's fronts, which are told how fast the GPU's clock is. NULL: no memory. */
static struct kernel_front *fronts_copy(const struct kernel_device *device,
					const struct kernel_job *job, size_t bytes)
{
	struct kernel_front *fronts = (struct kernel_front *)malloc(bytes + 1);

	if (fronts && bytes)
		memcpy(fronts, job->fronts, bytes);
	for (uint32_t r = 0; fronts && r < bytes / sizeof(*fronts); r++)
		fronts[r].ticks_per_us = device->ticks_per_us;
	for (uint32_t r = 0; fronts && r < bytes / sizeof(*fronts); r++)
		fronts[r].eager = fronts[r].eager ? fronts[r].eager : DEFAULT_FRONT_EAGER;
	return fronts;
}

int job_upload(struct kernel_workers *workers, const struct kernel_job *job)
{
	const struct pattern_tables tables = pattern_table_bytes(&job->pattern);
	const struct frame_store_view no_store = {};
	const struct frame_store_view *store = job->store ? job->store : &no_store;
	const size_t prbs_bytes = prbs_table_words(job) * sizeof(uint32_t);
	const size_t front_bytes =
		job->role == KERNEL_FRONT ? job->ring_count * sizeof(job->fronts[0]) : 0;
	struct kernel_front *fronts = fronts_copy(workers->device, job, front_bytes);
	uint32_t *prbs_tables = (uint32_t *)malloc(prbs_bytes + 1);
	struct device_job image = {};
	struct job_part part[PARTS] = {
		{ &image, sizeof(image), 0 },
		{ job->rings, job->ring_count * sizeof(job->rings[0]), 0 },
		{ frame_crc32c_table, sizeof(frame_crc32c_table), 0 },
		{ prbs_tables, prbs_bytes, 0 },
		{ job->pattern.windows, tables.windows_bytes, 0 },
		{ job->pattern.powers, tables.powers_bytes, 0 },
		{ job->pattern.file, tables.file_bytes, 0 },
		{ job->places, job->place_count * sizeof(job->places[0]), 0 },
		{ fronts, front_bytes, 0 },
		{ job->sends,
		  job->role == KERNEL_SEND ? job->ring_count * sizeof(job->sends[0]) : 0, 0 },
		{ store->data, 0, 0 },
		{ store->frames, 0, 0 },
		{ store->buckets, 0, 0 },
	};
	int ret;

	if (!prbs_tables || !fronts) {
		free(fronts);
		free(prbs_tables);
		return kernel_fail(-ENOMEM, "no memory for the kernel's tables");
	}
	if (prbs_bytes)
		prbs_tables_build(prbs_tables, job->pattern.degree, job->pattern.tap);
	ret = job_memory(workers, job, part);
	if (!ret)
		job_image(&image, workers, job, part);
	for (int i = 0; i < PARTS && !ret; i++)
		if (part[i].bytes)
			ret = cuda_copy_in(workers->device, (uint8_t *)workers->memory + part[i].at,
					   part[i].from, part[i].bytes);
	free(fronts);
	free(prbs_tables);
	return ret;
}
