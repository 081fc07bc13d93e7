/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that lie in memory and are handed to a consumer again and again. */
#include "bench/resident.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "bench/bench_util.h"
#ifdef GDRCAP_WITH_CUDA
#include "bench/bench_kernels.h"
#endif

#define DEVICE_BYTES ((size_t)1 << 30) /* 64-byte frames are a quarter of it: more than any L2 */
#define PINNED_BYTES ((size_t)256 << 20)
#define CACHE_TIMES 4u /* the host's working set, in last-level caches */
#define CACHE_UNKNOWN ((size_t)64 << 20)
#define LARGE_PAGE ((size_t)2 << 20)
#define SLOT_SHIFT_MIN 8u

_Static_assert(1u << RESIDENT_BURST_BITS == RESIDENT_BURSTS, "log2");
_Static_assert(RESIDENT_SPLIT <= FRAME_HEAD_BYTES_MAX &&
		       FRAME_HEAD_BYTES_MAX == 1u << RESIDENT_HEAD_SHIFT,
	       "a first piece fits its slot");

uint32_t resident_cores(const struct bench *bench, const struct gdrcap_bench_point *point)
{
	return bench->cuda ? 1 : 1 + point->queues * point->blocks;
}

/* ---- memory ---- */

static void *host_alloc(size_t bytes, struct gdrcap_error *error)
{
	const size_t align = bytes < LARGE_PAGE ? 4096 : LARGE_PAGE;
	const size_t rounded = (bytes + align - 1) / align * align;
	void *memory = aligned_alloc(align, rounded);

	if (!memory) {
		error_set(error, -ENOMEM, "no %zu MiB of memory", rounded >> 20);
		return NULL;
	}
	/* Fewer TLB misses; where the kernel refuses, only speed is lost. */
	(void)madvise(memory, rounded, MADV_HUGEPAGE);
	memset(memory, 0, rounded);
	return memory;
}

void *resident_alloc(const struct resident *resident, size_t bytes, bool shared,
		     struct gdrcap_error *error)
{
#ifdef GDRCAP_WITH_CUDA
	if (resident->gpu) {
		void *memory = bench_gpu_alloc(resident->gpu, bytes, shared || resident->pinned);

		if (!memory)
			error_set(error, -ENOMEM, "%zu MiB: %s", bytes >> 20, kernel_error());
		return memory;
	}
#endif
	return host_alloc(bytes, error);
}

void resident_free(const struct resident *resident, void *memory, bool shared)
{
	if (!memory)
		return;
#ifdef GDRCAP_WITH_CUDA
	if (resident->gpu) {
		bench_gpu_free(resident->gpu, memory, shared || resident->pinned);
		return;
	}
#endif
	free(memory);
}

/* How much memory the frames take. */
static int region_bytes(const struct bench *bench, struct resident *resident,
			const struct resident_config *config, struct gdrcap_error *error)
{
	const uint32_t frames =
		config->least ? config->least : 2 * resident->rings * resident->burst;
	const size_t least = (size_t)frames << resident->slot_shift;
	const size_t cache =
		bench->machine.cache_bytes ? bench->machine.cache_bytes : CACHE_UNKNOWN;
	const size_t touched = ((size_t)resident->frame_bytes + 63) / 64 * 64;

	if (config->bytes)
		resident->bytes = config->bytes;
	else if (bench->cuda)
		resident->bytes = resident->pinned || resident->split ? PINNED_BYTES : DEVICE_BYTES;
	else
		resident->bytes = (CACHE_TIMES * cache / touched + 1) << resident->slot_shift;
	if (resident->bytes < least && !resident->borrowed)
		resident->bytes = least;
	if (!bench->cuda && resident->bytes > bench_memory_available() / 2)
		return error_set(error, -ENOMEM,
				 "a working set of %u times the last-level cache takes %zu MiB at "
				 "%u bytes a frame, more than half of what is free: leave this "
				 "frame size out",
				 CACHE_TIMES, resident->bytes >> 20, resident->frame_bytes);
	return 0;
}

/* ---- rings ---- */

static int ring_memory(struct resident *resident, struct resident_ring *ring,
		       struct gdrcap_error *error)
{
	const size_t descs = resident->descs;

	ring->desc = resident_alloc(resident, descs * sizeof(*ring->desc), true, error);
	if (ring->desc)
		ring->ready = resident_alloc(resident, RESIDENT_BURSTS * sizeof(*ring->ready), true,
					     error);
	if (ring->ready)
		ring->beside = resident_alloc(resident, RESIDENT_BURSTS * sizeof(*ring->beside),
					      true, error);
	if (ring->beside)
		ring->result = resident_alloc(resident, RESIDENT_BURSTS * sizeof(*ring->result),
					      true, error);
	if (ring->result)
		ring->request = resident_alloc(resident, RESIDENT_BURSTS * sizeof(*ring->request),
					       true, error);
	if (ring->request)
		ring->view.records =
			resident_alloc(resident, descs * sizeof(struct frame_record), true, error);
	if (ring->view.records && resident->split)
		ring->head_desc =
			resident_alloc(resident, descs * sizeof(*ring->head_desc), true, error);
	return ring->view.records && (!resident->split || ring->head_desc) ? 0 : -ENOMEM;
}

static int ring_create(struct resident *resident, uint32_t r, struct gdrcap_error *error)
{
	struct resident_ring *ring = &resident->ring[r];
	const uint32_t slots =
		(uint32_t)(resident->bytes >> resident->slot_shift) / resident->rings;

	ring->slots = slots / resident->burst * resident->burst;
	ring->first_slot = r * slots;
	ring->most = RESIDENT_BURSTS;
	if (ring_memory(resident, ring, error) < 0)
		return -ENOMEM;
	ring->view.desc = ring->desc;
	ring->view.ready = ring->ready;
	ring->view.result = ring->result;
	ring->view.request = ring->request;
	ring->view.stop = resident->stop;
	ring->view.frames = resident->frames;
	ring->view.frames_bytes = resident->bytes;
	ring->view.desc_mask = resident->descs - 1;
	ring->view.burst_mask = RESIDENT_BURSTS - 1;
	ring->view.slot_shift = resident->slot_shift;
	return 0;
}

static void ring_destroy(const struct resident *resident, struct resident_ring *ring)
{
	resident_free(resident, ring->head_desc, true);
	resident_free(resident, ring->view.records, true);
	resident_free(resident, ring->request, true);
	resident_free(resident, ring->result, true);
	resident_free(resident, ring->beside, true);
	resident_free(resident, ring->ready, true);
	resident_free(resident, ring->desc, true);
}

/* ---- life ---- */

/* Copies what each frame begins with into host memory. */
static int heads_make(struct resident *resident, struct gdrcap_error *error)
{
	const struct bench *bench = resident->bench;
	const size_t slots = resident->bytes >> resident->slot_shift;
	uint8_t *copy, *heads;
	int ret;

	heads = resident_alloc(resident, slots << RESIDENT_HEAD_SHIFT, true, error);
	if (!heads)
		return -ENOMEM;
	copy = malloc(resident->bytes);
	ret = copy ? bench->ops->copy_out(bench->device, copy, resident->frames, resident->bytes)
		   : kernel_fail(-ENOMEM, "no %zu MiB of memory", resident->bytes >> 20);
	for (size_t slot = 0; slot < slots && !ret; slot++)
		memcpy(heads + (slot << RESIDENT_HEAD_SHIFT), copy + (slot << resident->slot_shift),
		       resident->split);
	free(copy);
	if (ret) {
		resident_free(resident, heads, true);
		return error_set(error, ret, "%s", kernel_error());
	}
	resident->heads = heads;
	return 0;
}

int resident_fill(struct resident *resident, struct gdrcap_error *error)
{
	struct resident_counts counts = { 0 };
	int ret = resident_start(resident, KERNEL_WRITE, 0, error), stopped;

	if (ret < 0)
		return ret;
	ret = resident_play(resident, 0, resident->ring[0].slots / resident->burst, &counts, error);
	stopped = resident_stop(resident, ret ? NULL : error);
	ret = ret ? ret : stopped;
	return ret || !resident->split ? ret : heads_make(resident, error);
}

static bool ends_with_split(const char *memory)
{
	const size_t bytes = strlen(memory);

	return bytes > 6 && !strcmp(memory + bytes - 6, "-split");
}

static int patterns_init(struct resident *resident, const struct resident_config *config,
			 struct gdrcap_error *error)
{
	const struct frame_config frame = { .format = FRAME_ETHERNET };
	struct pattern_config pattern = { .invert = -1 };
	int ret = pattern_from_name(config->pattern, &pattern.kind);

	if (ret == 0)
		ret = frame_layout_init(&resident->layout, &frame);
	if (ret == 0)
		ret = pattern_init(&resident->pattern, &pattern);
	if (ret < 0)
		return error_set(error, ret, "pattern \"%s\" cannot be used here", config->pattern);
	resident->payload_bytes =
		frame_payload_bytes(&resident->layout, resident->frame_bytes - FRAME_FCS_BYTES);
	return 0;
}

static int config_check(const struct bench *bench, const struct resident_config *config,
			struct gdrcap_error *error)
{
	if (config->frame_bytes < FRAME_MIN_BYTES || config->frame_bytes > FRAME_MAX_BYTES ||
	    !config->burst || config->burst > BURST_FRAMES_MAX || !config->rings ||
	    config->rings > RESIDENT_RINGS_MAX)
		return error_set(error, -EINVAL,
				 "%u rings, bursts of %u frames of %u bytes: at most %u, %u and %u",
				 config->rings, config->burst, config->frame_bytes,
				 RESIDENT_RINGS_MAX, BURST_FRAMES_MAX, FRAME_MAX_BYTES);
	if (bench->cuda == !strncmp(config->memory, "host", 4))
		return error_set(error, -EINVAL, "frames in %s memory: %s has none", config->memory,
				 bench->ops->name);
	return 0;
}

static void config_take(struct resident *resident, const struct bench *bench,
			const struct resident_config *config)
{
	resident->bench = bench;
	resident->frame_bytes = config->frame_bytes;
	resident->burst = config->burst;
	resident->rings = config->rings;
	resident->descs = config->descs ? config->descs : RESIDENT_BURSTS * BURST_FRAMES_MAX;
	resident->split = ends_with_split(config->memory) ? RESIDENT_SPLIT : 0;
	resident->pinned = !strncmp(config->memory, "pinned", 6);
	resident->offset = config->offset;
	resident->borrowed = config->frames != NULL;
	resident->frames = config->frames;
	resident->slot_shift = SLOT_SHIFT_MIN;
	while (1u << resident->slot_shift < config->frame_bytes + config->offset)
		resident->slot_shift++;
	if (config->frames)
		resident->slot_shift = config->slot_shift;
}

/* All that is allocated; resident_destroy() undoes what was done. */
static int memory_take(struct resident *resident, const struct resident_config *config,
		       struct gdrcap_error *error)
{
	int ret = region_bytes(resident->bench, resident, config, error);

	if (ret < 0)
		return ret;
	if (!resident->borrowed)
		resident->frames = resident_alloc(resident, resident->bytes, false, error);
	resident->stop = resident->frames ? resident_alloc(resident, 64, true, error) : NULL;
	if (!resident->stop)
		return -ENOMEM;
	for (uint32_t r = 0; r < resident->rings && !ret; r++)
		ret = ring_create(resident, r, error);
	return ret;
}

int resident_create(const struct bench *bench, const struct resident_config *config,
		    struct resident **created, struct gdrcap_error *error)
{
	struct resident *resident;
	int ret = config_check(bench, config, error);

	if (ret < 0)
		return ret;
	resident = calloc(1, sizeof(*resident));
	if (!resident)
		return error_set(error, -ENOMEM, "no memory for rings");
	config_take(resident, bench, config);
#ifdef GDRCAP_WITH_CUDA
	if (bench->cuda)
		ret = bench_gpu_open(bench->ordinal, &resident->gpu);
#endif
	if (ret < 0)
		error_set(error, ret, "%s", kernel_error());
	else
		ret = patterns_init(resident, config, error);
	if (ret == 0)
		ret = memory_take(resident, config, error);
	if (ret < 0)
		resident_destroy(resident);
	else
		*created = resident;
	return ret;
}

void resident_destroy(struct resident *resident)
{
	/* Workers that did not leave still use it. */
	if (resident->workers)
		return;
	for (uint32_t r = 0; r < resident->rings; r++)
		ring_destroy(resident, &resident->ring[r]);
	resident_free(resident, resident->stop, true);
	resident_free(resident, resident->heads, true);
	if (!resident->borrowed)
		resident_free(resident, resident->frames, false);
	pattern_free(&resident->pattern);
#ifdef GDRCAP_WITH_CUDA
	if (resident->gpu)
		bench_gpu_close(resident->gpu);
#endif
	free(resident);
}

void resident_close(struct resident *resident)
{
	struct gdrcap_error error;

	if (!resident)
		return;
	if (resident_stop(resident, &error) < 0)
		log_warning("bench: %s", error.text);
	resident_destroy(resident);
}
