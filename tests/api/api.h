/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the public API share: a loopback over a wire in this process, and a frame that
 * is read by hand from docs/frame-format.md. */
#ifndef GDRCAP_TEST_API_H
#define GDRCAP_TEST_API_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#include <cmocka.h>
#ifdef __cplusplus
}
#endif

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdrcap.h>

#define API_MAGIC 0x6743
#define API_HEADER 14u /* where the own header starts: untagged Ethernet */
#define API_PAYLOAD (API_HEADER + 36u)
#define API_FRAME 200u /* bytes with FCS */

/* A configuration that is freed where its variable ends. */
#define API_FREED __attribute__((cleanup(api_config_free)))
static inline void api_config_free(struct gdrcap_config **config)
{
	gdrcap_config_free(*config);
}

/* An option's value, as the format makes it. */
__attribute__((format(printf, 3, 4))) static inline void
api_set(struct gdrcap_config *config, const char *key, const char *format, ...)
{
	struct gdrcap_error error = { 0 };
	char value[512];
	va_list arguments;
	int ret;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	ret = gdrcap_config_set(config, key, value, &error);
	if (ret)
		print_error("%s: %d, %s\n", key, ret, error.text);
	assert_int_equal(ret, 0);
}

/* Its default. */
static inline void api_unset(struct gdrcap_config *config, const char *key)
{
	assert_int_equal(gdrcap_config_set(config, key, NULL, NULL), 0);
}

static const char *const api_memory[] = { "auto", "device", "pinned", "host" };

/* Over cards of the software ConnectX instead, with fronts (front_thread.c) on the receiving one. */
static inline bool api_fronted(void)
{
	return getenv("TEST_FRONTED") != NULL;
}

/* `frames` over "ring:test"; every payload byte is the low byte of its position in the stream. What
 * *config was is freed. */
static inline void api_config(struct gdrcap_config **config, const char *consumer, uint64_t frames)
{
	gdrcap_config_free(*config);
	*config = gdrcap_config_new();
	assert_non_null(*config);
	api_set(*config, "port", api_fronted() ? "0000:aa:00.1,dv_flow_en=1" : "ring:test");
	api_set(*config, "tx_port", api_fronted() ? "0000:aa:00.0,dv_flow_en=1" : "ring:test");
	api_set(*config, "rx_by", api_fronted() ? "gpu" : "driver");
	api_set(*config, "gpu", "host");
	api_set(*config, "frame.size", "%u", API_FRAME);
	api_set(*config, "pattern", "counter8");
	api_set(*config, "consumer", "%s", consumer);
	api_set(*config, "frames", "%llu", (unsigned long long)frames);
	/* A loaded machine may hold up the consumer for seconds, which is no error of the API's. */
	if (strcmp(consumer, "validate") == 0)
		api_set(*config, "consumer.watchdog", "60");
}

static inline struct gdrcap_session *api_create(const struct gdrcap_config *config)
{
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error = { 0 };
	int ret = gdrcap_create(config, &session, &error);

	if (ret)
		print_error("create: %d, %s\n", ret, error.text);
	assert_int_equal(ret, 0);
	assert_non_null(session);
	return session;
}

static inline void api_start(struct gdrcap_session *session)
{
	struct gdrcap_error error = { 0 };
	int ret = gdrcap_start(session, &error);

	if (ret)
		print_error("start: %d, %s\n", ret, error.text);
	assert_int_equal(ret, 0);
}

/* What a run says on a machine whose cores others have (BUSY of tests/e2e/connectx.py): nothing is wrong with it. */
static inline bool api_is_busy(const char *message)
{
	static const char *const parts[] = { "rate was not reached", "did not catch up",
					     "with pause frames", "sends again", "had no core" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(message, parts[i]))
			return true;
	return false;
}

static inline void api_stop(struct gdrcap_session *session)
{
	struct gdrcap_error error = { 0 };
	int ret = gdrcap_stop(session, &error), wrong = 0;

	if (ret)
		print_error("stop: %d, %s\n", ret, error.text);
	for (uint32_t i = 0; gdrcap_get_message(session, i); i++) {
		print_error("message: %s\n", gdrcap_get_message(session, i));
		wrong += !api_is_busy(gdrcap_get_message(session, i));
	}
	assert_int_equal(ret, 0);
	assert_int_equal(wrong, 0);
}

static inline void api_wait_end(struct gdrcap_session *session)
{
	while (!gdrcap_wait_end(session, 1000))
		;
}

/* The call failed as it should, and says something. */
static inline void api_failed(int ret, int code, const struct gdrcap_error *error, const char *part)
{
	if (ret != code || !strstr(error->text, part))
		print_error("%d instead of %d, \"%s\" with \"%s\"?\n", ret, code, error->text,
			    part);
	assert_int_equal(ret, code);
	assert_int_equal(error->code, code);
	assert_non_null(strstr(error->text, part));
}

static inline void api_create_fails(const struct gdrcap_config *config, int code, const char *part)
{
	struct gdrcap_session *session = (struct gdrcap_session *)(uintptr_t)1;
	struct gdrcap_error error = { 0 };
	int ret = gdrcap_create(config, &session, &error);

	api_failed(ret, code, &error, part);
	assert_null(session);
	/* Nobody is obliged to ask why. */
	assert_int_equal(gdrcap_create(config, &session, NULL), code);
	assert_null(session);
}

static inline uint64_t api_be(const uint8_t *at, int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *at++;
	return value;
}

/* The frame's stream and sequence number; 0 when the frame is not one of ours, whole and right. */
static inline int api_frame(const uint8_t *frame, uint32_t len, uint32_t *stream,
			    uint64_t *sequence)
{
	const uint8_t *own = frame + API_HEADER;
	const uint32_t bytes = len - API_PAYLOAD;
	uint64_t position;

	if (len != API_FRAME - 4 || api_be(frame + 12, 2) != 0x88b5 ||
	    api_be(own, 2) != API_MAGIC || own[2] != 1 || api_be(own + 6, 2) != bytes)
		return 0;
	*stream = (uint32_t)api_be(own + 4, 2);
	*sequence = api_be(own + 8, 8);
	position = api_be(own + 16, 8);
	if (position != *sequence * bytes)
		return 0;
	for (uint32_t i = 0; i < bytes; i++)
		if (frame[API_PAYLOAD + i] != (uint8_t)(position + i))
			return 0;
	return 1;
}

static inline const uint8_t *api_frame_at(const struct gdrcap_batch *batch, uint32_t i)
{
	return gdrcap_frame(batch, i);
}

#endif
