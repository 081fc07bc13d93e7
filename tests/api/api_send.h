/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of sending share: frames whose bytes follow from their number, and what came of them. */
#ifndef GDRCAP_TEST_API_SEND_H
#define GDRCAP_TEST_API_SEND_H

#include "api.h"

#include <stdlib.h>
#include <time.h>

/* sender: host, with the thread that the test is to be played with: each is, with both. */
static inline void send_by_caller(struct gdrcap_config *config)
{
	const char *thread = getenv("TEST_SENDER_THREAD");

	api_set(config, "sender", "host");
	if (thread)
		api_set(config, "sender.thread", "%s", thread);
}

/* Frames of the caller's over "ring:test", to his own threads. */
static inline void send_config(struct gdrcap_config **config)
{
	gdrcap_config_free(*config);
	*config = gdrcap_config_new();
	assert_non_null(*config);
	api_set(*config, "port", "ring:test");
	api_set(*config, "tx_port", "ring:test");
	api_set(*config, "gpu", "host");
	api_set(*config, "frame.size", "%u", API_FRAME);
	api_set(*config, "consumer", "host");
	send_by_caller(*config);
}

/* Each byte of frame `number` follows from both. */
static inline uint8_t byte_of(uint64_t number, uint32_t i)
{
	return (uint8_t)(number * 7 + (number >> 8) * 13 + i);
}

static inline void frame_fill(const struct gdrcap_tx_frame *frame, uint64_t number)
{
	for (uint32_t i = 0; i < frame->bytes; i++)
		frame->data[i] = byte_of(number, i);
	memcpy(frame->data, &number, sizeof(number));
}

/* Its number; the rest is as it was filled. */
static inline uint64_t frame_number(const uint8_t *at, uint32_t bytes)
{
	uint64_t number;

	memcpy(&number, at, sizeof(number));
	for (uint32_t i = sizeof(number); i < bytes; i++)
		if (at[i] != byte_of(number, i))
			return UINT64_MAX;
	return number;
}

static inline uint32_t bytes_of(uint64_t number)
{
	return 60 + (uint32_t)(number % (API_FRAME - 4 - 60 + 1));
}

/* Takes what is there; the frames are `*next`, ... and nothing else. */
static inline void receive(struct gdrcap_queue *queue, uint64_t *next)
{
	const struct gdrcap_batch *batch[8];
	int n = gdrcap_wait(queue, batch, 8, 10000);

	assert_true(n >= 0);
	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++, (*next)++) {
			assert_int_equal(gdrcap_frame_bytes(batch[b], i), bytes_of(*next));
			assert_int_equal(frame_number(gdrcap_frame(batch[b], i),
						      gdrcap_frame_bytes(batch[b], i)),
					 *next);
		}
	gdrcap_release(queue, batch, (unsigned int)n);
}

static inline void counts_are(struct gdrcap_session *session, uint64_t submitted, uint64_t sent,
			      uint64_t unsent)
{
	struct gdrcap_summary summary;
	struct gdrcap_tx_counts counts;

	assert_int_equal(gdrcap_get_tx_counts(session, 0, &counts, sizeof(counts)), 0);
	assert_int_equal(counts.submitted, submitted);
	assert_int_equal(counts.sent, sent);
	assert_int_equal(counts.unsent, unsent);
	assert_int_equal(counts.failed, 0);
	/* The summary has the same, of the only queue. */
	assert_int_equal(gdrcap_get_summary(session, &summary, sizeof(summary)), 0);
	assert_true(summary.known & GDRCAP_HAS_SENDING);
	assert_int_equal(!(summary.known & GDRCAP_HAS_SENDING_FAILED), !counts.failed_known);
	assert_int_equal(summary.sending_submitted, submitted);
	assert_int_equal(summary.sending_sent, sent);
	assert_int_equal(summary.sending_unsent, unsent);
	assert_int_equal(summary.sending_bytes, counts.bytes);
	assert_int_equal(summary.sending_stalled, counts.stalled);
	assert_int_equal(summary.sending_failed, 0);
	assert_int_equal(gdrcap_get_tx_counts(session, 1, &counts, sizeof(counts)), -ENOENT);
}

static inline int submit(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			 unsigned int count)
{
	struct gdrcap_error error = { 0 };
	const int ret = gdrcap_tx_submit(tx, frames, count, &error);

	if (ret)
		print_error("submit: %d, %s\n", ret, error.text);
	return ret;
}

static inline void refused(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			   unsigned int count, int code, const char *part)
{
	struct gdrcap_error error = { 0 };

	api_failed(gdrcap_tx_submit(tx, frames, count, &error), code, &error, part);
	assert_int_equal(gdrcap_tx_submit(tx, frames, count, NULL), code);
}

static inline uint64_t wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t api_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A stop takes no longer where this machine lets it: of many, one does. */
#define API_STOP_MS 100u
#define API_STOPS 60

#endif
