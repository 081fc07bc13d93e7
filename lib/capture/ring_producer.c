/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving side's end of a burst ring: memory, views, and what is published. */
#include "capture/ring_producer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_gpudev.h>

#include "base/log.h"
#include "memory/region.h"

#define PAGE ((size_t)64 << 10)

/* Takes `bytes` from the block at its own cache line. A NULL block only counts. */
static void *carve(uint8_t *block, size_t *used, size_t bytes)
{
	const size_t at = *used;

	*used = RTE_ALIGN_CEIL(at + bytes, (size_t)128);
	return block ? block + at : NULL;
}

/* What the producer tells the consumer of a burst. */
static void ring_lay_out_words(struct ring_producer *ring, uint8_t *block, size_t *used,
			       const struct ring_config *config)
{
	const size_t descs = (size_t)ring->desc_mask + 1, bursts = (size_t)ring->burst_mask + 1;

	ring->ready = carve(block, used, bursts * sizeof(*ring->ready));
	if (config->inlines && !config->replay) /* requests have to be read anyway */
		ring->beside = carve(block, used, bursts * sizeof(*ring->beside));
	ring->desc = carve(block, used, descs * sizeof(*ring->desc));
}

/* A front's part of its own, in GPU memory. */
static size_t ring_lay_out_front(struct ring_producer *ring, uint8_t *block,
				 const struct ring_config *config)
{
	const size_t bursts = (size_t)ring->burst_mask + 1;
	size_t used = 0;

	if (!config->front->host_reads)
		ring_lay_out_words(ring, block, &used, config);
	ring->free_word = carve(block, &used, bursts * sizeof(*ring->free_word));
	ring->front_end = carve(block, &used, bursts * sizeof(*ring->front_end));
	return used;
}

static size_t ring_lay_out(struct ring_producer *ring, uint8_t *block,
			   const struct ring_config *config)
{
	const size_t descs = (size_t)ring->desc_mask + 1, bursts = (size_t)ring->burst_mask + 1;
	size_t used = 0;

	ring->stop = carve(block, &used, sizeof(*ring->stop));
	if (config->streams)
		ring->told = carve(block, &used, sizeof(*ring->told));
	if (!config->front || config->front->host_reads)
		ring_lay_out_words(ring, block, &used, config);
	if (config->front)
		ring->echo = carve(block, &used, bursts * sizeof(*ring->echo));
	if (config->heads)
		ring->head_desc = carve(block, &used, descs * sizeof(*ring->head_desc));
	ring->result = carve(block, &used, bursts * sizeof(*ring->result));
	if (config->replay)
		ring->request = carve(block, &used, bursts * sizeof(*ring->request));
	else
		ring->view.records = carve(block, &used, descs * sizeof(struct frame_record));
	return used;
}

static int ring_memory(struct ring_producer *ring, const struct ring_config *config,
		       struct gdrcap_error *error)
{
	ring->memory_bytes = RTE_ALIGN_CEIL(ring_lay_out(ring, NULL, config), PAGE);
	ring->memory = mmap(NULL, ring->memory_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (ring->memory == MAP_FAILED) {
		ring->memory = NULL;
		return error_set(error, -ENOMEM, "no memory for a burst ring of %zu KiB",
				 ring->memory_bytes >> 10);
	}
	if (rte_gpu_mem_register(ring->gpu, ring->memory_bytes, ring->memory) < 0)
		return error_set(
			error, -rte_errno,
			"the GPU refused to register a burst ring of %zu KiB: %s; raise the "
			"locked-memory limit (ulimit -l unlimited)",
			ring->memory_bytes >> 10, rte_strerror(rte_errno));
	ring->registered = true;
	ring_lay_out(ring, ring->memory, config);
	return 0;
}

/* The front's part, zeroed: no word of it says that something is there. */
static int ring_gpu_memory(struct ring_producer *ring, const struct ring_config *config,
			   struct gdrcap_error *error)
{
	const struct ring_front *front = config->front;
	uint8_t *reached;
	int ret;

	ring->gpu_bytes = RTE_ALIGN_CEIL(ring_lay_out_front(ring, NULL, config), PAGE);
	ring->gpu_memory = rte_gpu_mem_alloc(ring->gpu, ring->gpu_bytes, (unsigned int)PAGE);
	reached = ring->gpu_memory;
	if (!reached)
		return error_set(error, rte_errno ? -rte_errno : -ENOMEM,
				 "the GPU has no %zu KiB to give for a burst ring: %s; free memory "
				 "on it (nvidia-smi shows who holds it)",
				 ring->gpu_bytes >> 10, rte_strerror(rte_errno));
	if (front->cpu_workers) {
		reached = rte_gpu_mem_cpu_map(ring->gpu, ring->gpu_bytes, ring->gpu_memory);
		ring->gpu_mapped = reached != NULL;
		if (!reached)
			return error_set(error, -rte_errno,
					 "cannot map a burst ring in GPU memory: %s",
					 rte_strerror(rte_errno));
	}
	ret = front->fill(front->context, reached, 0, ring->gpu_bytes);
	if (ret < 0)
		return error_set(error, ret, "a burst ring in GPU memory cannot be written: %s",
				 strerror(-ret));
	ring_lay_out_front(ring, reached, config);
	return 0;
}

/* The consumer's view of it. */
static void ring_show(struct ring_producer *ring, const struct ring_config *config)
{
	struct burst_ring_view *view = &ring->view;

	view->desc = ring->desc;
	view->ready = ring->ready;
	view->beside = ring->beside;
	view->result = ring->result;
	view->request = ring->request;
	view->free_word = ring->free_word;
	view->stop = ring->stop;
	view->frames = config->region->device;
	view->frames_bytes = config->region->bytes;
	view->desc_mask = ring->desc_mask;
	view->burst_mask = ring->burst_mask;
	view->slot_shift = config->region->slot_shift;
	view->generation = config->generation;
	view->stale_us = config->stale_us;
	if (!config->heads)
		return;
	view->head_desc = ring->head_desc;
	view->heads = config->heads->device;
	view->heads_bytes = config->heads->bytes;
	view->head_shift = config->heads->slot_shift;
}

int ring_create(struct ring_producer *ring, const struct ring_config *config,
		struct gdrcap_error *error)
{
	const struct region *region = config->region;
	uint32_t bursts;
	int ret;

	memset(ring, 0, sizeof(*ring));
	ring->gpu = region->gpu;
	ring->burst_max = config->burst_max;
	wake_init(&ring->taker);
	ring->work = config->sleeps ? &ring->taker : NULL;
	ring->desc_mask = rte_align32pow2(RTE_MAX(config->frames, BURST_FRAMES_MAX)) - 1;
	bursts = RING_SMALL_BURSTS + (ring->desc_mask + 1) / config->burst_max + 2;
	bursts = rte_align32pow2(bursts + (config->streams ? RING_AHEAD : 0));
	ring->burst_mask = bursts - 1;
	ring->burst_bits = (uint32_t)__builtin_ctz(bursts);
	ret = ring_memory(ring, config, error);
	if (ret == 0 && config->front)
		ret = ring_gpu_memory(ring, config, error);
	if (ret < 0)
		goto err;
	ring->mbuf = calloc((size_t)ring->desc_mask + 1, sizeof(struct rte_mbuf *));
	ring->end = calloc(bursts, sizeof(*ring->end));
	if (config->heads)
		ring->head_mbuf = calloc((size_t)ring->desc_mask + 1, sizeof(struct rte_mbuf *));
	if (config->times)
		ring->tsc = calloc((size_t)ring->desc_mask + 1, sizeof(*ring->tsc));
	if (config->came)
		ring->came = calloc(bursts, sizeof(*ring->came));
	if (!ring->mbuf || !ring->end || (config->heads && !ring->head_mbuf) ||
	    (config->times && !ring->tsc) || (config->came && !ring->came)) {
		ret = error_set(error, -ENOMEM, "no memory for a burst ring");
		goto err;
	}
	ring_show(ring, config);
	return 0;
err:
	ring_destroy(ring);
	return ret;
}

void ring_destroy(struct ring_producer *ring)
{
	if (ring->gpu_mapped && rte_gpu_mem_cpu_unmap(ring->gpu, ring->gpu_memory) < 0)
		log_warning("the GPU kept a burst ring mapped: %s", rte_strerror(rte_errno));
	if (ring->gpu_memory && rte_gpu_mem_free(ring->gpu, ring->gpu_memory) < 0)
		log_warning("the GPU kept a burst ring's memory: %s", rte_strerror(rte_errno));
	if (ring->registered && rte_gpu_mem_unregister(ring->gpu, ring->memory) < 0)
		log_warning("the GPU kept a burst ring registered: %s", rte_strerror(rte_errno));
	if (ring->memory)
		munmap(ring->memory, ring->memory_bytes);
	free(ring->mbuf);
	free(ring->head_mbuf);
	free(ring->end);
	free(ring->tsc);
	free(ring->came);
	ring_wake_close(&ring->wake);
	memset(ring, 0, sizeof(*ring));
}
