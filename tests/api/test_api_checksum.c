/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap_tx_checksum_after() through the public API, and what comes of its frames. */
#include "api.h"

#include <unistd.h>

#include "../unit/udp_frames.h"

#define SIZE 1518u
#define FRAMES 3000u
#define BATCH 200u /* more than one call of the back end */
#define MEMORY_BYTES (1u << 20)
#define ROOM 2048u

static struct udp_frame scene;

/* One that has, or has not, a checksum, and fits; its bytes follow from the number. */
static void frame_make(uint64_t number, uint32_t head_min)
{
	uint64_t random = number * 1000;

	do {
		udp_make(&scene, &random);
		if (number % 3 == 0)
			udp_spoil(&scene, &random);
	} while (scene.all < 60 || scene.all > SIZE - 4 || scene.head < head_min);
}

/* As it is to come. */
static void frame_expect(uint64_t number, uint32_t head_min, bool whole)
{
	uint32_t is = 0, at;

	frame_make(number, head_min);
	if (whole)
		scene.head = scene.all;
	at = udp_reference(&scene, &is);
	if (at)
		udp_set(scene.bytes + at, is);
}

static struct gdrcap_session *session_of(struct gdrcap_config *config)
{
	struct gdrcap_session *session;

	api_set(config, "gpu", "host");
	api_set(config, "frame.size", "%u", SIZE);
	api_set(config, "consumer", "host");
	api_set(config, "sender", "host");
	session = api_create(config);
	api_start(session);
	return session;
}

static void receive(struct gdrcap_queue *queue, uint64_t *next, uint32_t head_min, bool whole)
{
	const struct gdrcap_batch *batch[8];
	const int n = gdrcap_wait(queue, batch, 8, -1);

	assert_true(n > 0);
	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++, (*next)++) {
			frame_expect(*next, head_min, whole);
			assert_int_equal(gdrcap_frame_bytes(batch[b], i), scene.all);
			assert_memory_equal(gdrcap_frame(batch[b], i), scene.bytes, scene.all);
		}
	gdrcap_release(queue, batch, (unsigned int)n);
}

static void sum_and_submit(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
			   unsigned int count)
{
	struct gdrcap_error error = { 0 };
	int ret = gdrcap_tx_checksum_after(tx, frames, count, NULL, &error);

	if (ret == 0)
		ret = gdrcap_tx_submit_after(tx, frames, count, NULL, &error);
	if (ret)
		print_error("%d, %s\n", ret, error.text);
	assert_int_equal(ret, 0);
}

static void in_slots(void **state)
{
	struct gdrcap_config *config API_FREED = gdrcap_config_new();
	struct gdrcap_tx_frame frames[BATCH];
	uint64_t number = 0, next = 0;
	struct gdrcap_session *session;
	struct gdrcap_tx *tx;

	api_set(config, "port", "ring:test");
	api_set(config, "tx_port", "ring:test");
	session = session_of(config);
	tx = gdrcap_get_tx(session, 0);
	while (number < FRAMES) {
		const int n = gdrcap_tx_reserve(tx, frames, BATCH);

		assert_true(n >= 0);
		for (int i = 0; i < n; i++) {
			frame_make(number++, 60);
			frames[i].bytes = scene.all;
			memcpy(frames[i].data, scene.bytes, scene.all);
		}
		sum_and_submit(tx, frames, (unsigned int)n);
		while (next < number)
			receive(gdrcap_get_queue(session, 0), &next, 60, true);
	}
	api_stop(session);
	gdrcap_destroy(session);
}

/* Headers in slots, data in the caller's memory, at any address. */
static void in_two_pieces(void **state)
{
	struct gdrcap_config *config API_FREED = gdrcap_config_new();
	uint8_t *memory = aligned_alloc(65536, MEMORY_BYTES);
	char folder[] = "/tmp/gdrcap-sum-XXXXXX", path[64];
	struct gdrcap_session *session;
	uint64_t next = 0;
	struct gdrcap_tx *tx;

	assert_non_null(memory);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "socket-abstract=no,socket=%s/s", folder);
	api_set(config, "port", "net_memif0,role=server,%s", path);
	api_set(config, "tx_port", "net_memif1,role=client,%s", path);
	api_set(config, "memory", "host");
	session = session_of(config);
	tx = gdrcap_get_tx(session, 0);
	assert_int_equal(
		gdrcap_tx_register(session, memory, MEMORY_BYTES, GDRCAP_MEMORY_HOST, NULL), 0);
	/* One at a time, so that the payload's memory is free again. */
	for (uint64_t number = 0; number < FRAMES / 10; number++) {
		uint8_t *payload = memory + number % (MEMORY_BYTES / ROOM) * ROOM + number % 67;
		struct gdrcap_tx_frame frame;
		int n;

		while ((n = gdrcap_tx_reserve(tx, &frame, 1)) == 0)
			;
		assert_int_equal(n, 1);
		frame_make(number, 18);
		frame.bytes = scene.head;
		memcpy(frame.data, scene.bytes, scene.head);
		if (scene.all > scene.head) {
			frame.payload = payload;
			frame.payload_bytes = scene.all - scene.head;
			memcpy(payload, scene.bytes + scene.head, frame.payload_bytes);
		}
		sum_and_submit(tx, &frame, 1);
		while (next <= number)
			receive(gdrcap_get_queue(session, 0), &next, 18, false);
	}
	api_stop(session);
	gdrcap_destroy(session);
	free(memory);
	unlink(path + strlen("socket-abstract=no,socket="));
	rmdir(folder);
}

static void sum_fails(struct gdrcap_tx *tx, const struct gdrcap_tx_frame *frames,
		      unsigned int count, struct CUstream_st *stream, int code, const char *part)
{
	struct gdrcap_error error = { 0 };

	api_failed(gdrcap_tx_checksum_after(tx, frames, count, stream, &error), code, &error, part);
	assert_int_equal(gdrcap_tx_checksum_after(tx, frames, count, stream, NULL), code);
}

/* An error, and no frame is touched, those before the wrong one neither. */
static void refused(void **state)
{
	struct gdrcap_config *config API_FREED = gdrcap_config_new();
	struct gdrcap_tx_frame frames[2], wrong[2];
	struct gdrcap_session *session;
	struct gdrcap_tx *tx;

	api_set(config, "port", "ring:test");
	api_set(config, "tx_port", "ring:test");
	session = session_of(config);
	tx = gdrcap_get_tx(session, 0);
	assert_int_equal(gdrcap_tx_reserve(tx, frames, 2), 2);
	frame_make(1, 60);
	for (int i = 0; i < 2; i++) {
		frames[i].bytes = scene.all;
		memcpy(frames[i].data, scene.bytes, scene.all);
	}
	memcpy(wrong, frames, sizeof(wrong));
	wrong[1].bytes = 59;
	sum_fails(tx, wrong, 2, NULL, -EMSGSIZE, "frame 1: it has 59 bytes");
	wrong[1] = frames[1];
	wrong[1].slot = UINT32_MAX;
	sum_fails(tx, wrong, 2, NULL, -EINVAL, "frame 1: its slot is not reserved");
	wrong[1] = frames[1];
	wrong[1].bytes = 60;
	wrong[1].payload = wrong;
	wrong[1].payload_bytes = 60;
	sum_fails(tx, wrong, 2, NULL, -EFAULT, "frame 1: its payload");
	sum_fails(tx, NULL, 1, NULL, -EINVAL, "give the frames");
	sum_fails(NULL, frames, 1, NULL, -EINVAL, "send queue");
	sum_fails(tx, frames, 1, (struct CUstream_st *)wrong, -ENOTSUP, "pass no stream");
	assert_memory_equal(frames[0].data, scene.bytes, scene.all);
	assert_int_equal(gdrcap_tx_checksum_after(tx, NULL, 0, NULL, NULL), 0);
	/* Twice is as once, and a frame stays reserved. */
	assert_int_equal(gdrcap_tx_checksum_after(tx, frames, 2, NULL, NULL), 0);
	assert_int_equal(gdrcap_tx_checksum_after(tx, frames, 2, NULL, NULL), 0);
	frame_expect(1, 60, true);
	assert_memory_equal(frames[0].data, scene.bytes, scene.all);
	assert_int_equal(gdrcap_tx_cancel(tx, frames, 2), 0);
	sum_fails(tx, frames, 1, NULL, -EINVAL, "not reserved");
	api_stop(session);
	gdrcap_destroy(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_slots),
		cmocka_unit_test(in_two_pieces),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
