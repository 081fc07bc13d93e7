/* SPDX-License-Identifier: BSD-3-Clause */
/* A tx worker before its thread starts and after it has left. */
#include "replay/tx_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_cycles.h>

#include "base/log.h"

/* A file is played so often, and no further. */
static uint64_t tx_limit(const struct tx_config *config)
{
	const struct file_frames *file = config->file;
	uint64_t frames;

	if (!file || file->loops == UINT64_MAX ||
	    __builtin_mul_overflow(file->count, file->loops, &frames) || frames > config->frames)
		return config->frames;
	return frames;
}

static int tx_sizes_create(struct tx_worker *worker, struct gdrcap_error *error)
{
	const struct tx_config *config = &worker->config;

	worker->sizes = calloc(config->length_count, sizeof(*worker->sizes));
	if (!worker->sizes && config->length_count)
		return error_set(error, -ENOMEM, "no memory for %u frame sizes",
				 config->length_count);
	for (uint32_t i = 0; i < config->length_count; i++) {
		const uint16_t length = config->lengths[i];

		worker->sizes[i].length = length;
		worker->sizes[i].payload = (uint16_t)frame_payload_bytes(config->layout, length);
	}
	return 0;
}

/* Each round hands over or is idle, but for some that only request. Acquire as in rx_rounds(). */
static uint64_t tx_rounds(const void *arg)
{
	const struct tx_worker *worker = arg;

	return atomic_load_explicit(&worker->sent, memory_order_acquire) +
	       atomic_load_explicit(&worker->idle, memory_order_acquire);
}

int tx_worker_create(struct tx_worker *worker, const struct tx_config *config,
		     const struct ring_config *ring, struct gdrcap_error *error)
{
	struct ring_config own = *ring;
	struct timespec now;
	int ret;

	memset(worker, 0, sizeof(*worker));
	worker->config = *config;
	worker->thread.rounds = tx_rounds;
	worker->limit = tx_limit(config);
	worker->naps.most_us = config->idle_us;
	wake_init(&worker->wake);
	rest_init(&worker->rest, config->idle_us && config->writer_wakes ? &worker->wake : NULL);
	worker->thread.wake = &worker->wake;
	ret = tx_sizes_create(worker, error);
	if (ret < 0)
		return ret;
	worker->streams = calloc(config->stream_count, sizeof(*worker->streams));
	if (!worker->streams) {
		ret = error_set(error, -ENOMEM, "no memory for %u streams", config->stream_count);
		goto err;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	worker->clock_tsc = rte_rdtsc();
	worker->clock_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	worker->tsc_hz = rte_get_tsc_hz();
	pacing_init(&worker->pacing, &config->pacing, worker->tsc_hz);
	if (config->clock)
		worker->clock_map = config->clock->map;
	own.times |= config->pacing.kind != PACING_NONE;
	ret = ring_create(&worker->ring, &own, error);
	if (ret < 0)
		goto err;
	return 0;
err:
	free(worker->streams);
	free(worker->sizes);
	return ret;
}

void tx_worker_destroy(struct tx_worker *worker)
{
	ring_destroy(&worker->ring);
	free(worker->streams);
	free(worker->sizes);
	worker->streams = NULL;
	worker->sizes = NULL;
}
