/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from a running kernel, for which a CPU thread stands: the same functions, compiled for the host. */
#ifndef GDRCAP_TEST_API_SEND_GPU_H
#define GDRCAP_TEST_API_SEND_GPU_H

#include "api.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#include <gdrcap_device_tx.cuh>

#define FRAME_MOST (API_FRAME - 4u)

static inline void gpu_config(struct gdrcap_config **config)
{
	gdrcap_config_free(*config);
	*config = gdrcap_config_new();
	assert_non_null(*config);
	api_set(*config, "port", "ring:test");
	api_set(*config, "tx_port", "ring:test");
	api_set(*config, "gpu", "host");
	api_set(*config, "frame.size", "%u", API_FRAME);
	api_set(*config, "consumer", "host");
	api_set(*config, "sender", "gpu");
}

static inline struct gdrcap_gpu_tx view_at(struct gdrcap_session *session, uint32_t index)
{
	struct gdrcap_gpu_tx view;

	assert_int_equal(gdrcap_get_gpu_tx(gdrcap_get_tx(session, index), &view, sizeof(view)), 0);
	assert_int_equal(view.bytes_max, FRAME_MOST);
	return view;
}

static inline struct gdrcap_gpu_tx view_of(struct gdrcap_session *session)
{
	return view_at(session, 0);
}

static inline struct gdrcap_tx_counts counts_of(struct gdrcap_session *session)
{
	struct gdrcap_tx_counts counts;

	assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(gdrcap_get_tx_counts(session, 1, &counts, sizeof(counts)), -ENOENT);
	assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	return counts;
}

/* ---- frames: each byte follows from the number ---- */

static inline uint32_t bytes_of(uint64_t number)
{
	return 60 + (uint32_t)(number * 31 % (FRAME_MOST - 60 + 1));
}

static inline uint8_t byte_of(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 7 + (number >> 8) * 13 + i);
}

static inline uint32_t fill(uint8_t *data, uint64_t number)
{
	const uint32_t bytes = bytes_of(number);

	for (uint32_t i = sizeof(number); i < bytes; i++)
		data[i] = byte_of(number, i);
	memcpy(data, &number, sizeof(number));
	return bytes;
}

/* Takes what is there: frames of rising numbers, each whole and none twice; without `gaps` all of them. How
 * many, or a negative errno. */
static inline int receive(struct gdrcap_queue *queue, uint64_t *next, bool gaps)
{
	const struct gdrcap_batch *batch[8];
	const int n = gdrcap_wait(queue, batch, 8, 10000);
	int frames = 0;

	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++, frames++) {
			const uint8_t *at = gdrcap_frame(batch[b], i);
			uint64_t number;

			memcpy(&number, at, sizeof(number));
			if (gaps)
				assert_true(number >= *next);
			else
				assert_int_equal(number, *next);
			assert_int_equal(gdrcap_frame_bytes(batch[b], i), bytes_of(number));
			for (uint32_t k = sizeof(number); k < bytes_of(number); k++)
				assert_int_equal(at[k], byte_of(number, k));
			*next = number + 1;
		}
	if (n < 0)
		return n;
	gdrcap_release(queue, batch, (unsigned int)n);
	return frames;
}

/* ---- the kernel ---- */

struct kernel {
	struct gdrcap_gpu_tx tx;
	uint64_t count;	   /* frames to be sent */
	uint64_t sent;	   /* submitted by it */
	uint64_t returned; /* slots that said whom they had before */
	uint64_t wrong;	   /* of them not in the order of a wire */
	pthread_t thread;
};

/* As a block: until it has sent its frames, or is told to leave. */
static inline void *kernel_run(void *arg)
{
	struct kernel *kernel = arg;
	const struct gdrcap_gpu_tx tx = kernel->tx;
	uint64_t seq = gdrcap_gpu_tx_first(tx);

	while (kernel->sent < kernel->count) {
		const uint64_t left = kernel->count - kernel->sent;
		/* It may submit fewer than it was given, and leave the rest for later. */
		const int n = gdrcap_gpu_tx_reserve(tx, seq, 1 + (int)(seq % 97));
		const int used = (uint64_t)n > left ? (int)left : n;

		if (n < 0)
			return NULL;
		if (n == 0) {
			sched_yield();
			continue;
		}
		for (int i = 0; i < used; i++) {
			const uint64_t number = seq + (uint64_t)i;
			const uint64_t back = gdrcap_gpu_tx_back(tx, number);

			kernel->wrong += back != (number < tx.count ? 0 : number - tx.count + 1);
			kernel->returned += back != 0;
			gdrcap_gpu_tx_set_bytes(tx, number,
						fill(gdrcap_gpu_tx_data(tx, number), number));
		}
		seq = gdrcap_gpu_tx_submit(tx, seq, used);
		kernel->sent += (uint64_t)used;
	}
	return NULL;
}

static inline void kernel_start(struct kernel *kernel, struct gdrcap_session *session,
				uint64_t count)
{
	*kernel = (struct kernel){ .tx = view_of(session), .count = count };
	assert_int_equal(pthread_create(&kernel->thread, NULL, kernel_run, kernel), 0);
}

static inline void kernel_join(struct kernel *kernel)
{
	assert_int_equal(pthread_join(kernel->thread, NULL), 0);
	assert_int_equal(kernel->wrong, 0);
}

#endif
