/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames whose headers lie in slots and whose payloads in a caller's own buffer, all of it GPU memory, are sent
 * by a card, which is software and of this program, and come to another's receive queue in GPU memory. Each
 * is copied out and compared, byte for byte; nothing else on the CPU can read them. 77 without a GPU.
 */
#include "api.h"

#include <cuda_runtime_api.h>

#include "nic.h"

#define LEFT "0000:aa:00.0"
#define RIGHT "0000:aa:00.1"
#define FRAMES 4000u
#define HEAD 64u /* bytes in the slot */
#define BUFFER_BYTES (4u << 20)
#define PAYLOAD_MAX 1400u
#define FRAME_SIZE 1518
#define SKIP 77

static uint8_t *buffer;	     /* registered, GPU memory */
static uint8_t *buffer_host; /* what it holds */

static uint32_t payload_at(uint64_t number)
{
	return (uint32_t)(number * 4099 % (BUFFER_BYTES - PAYLOAD_MAX));
}

static uint32_t payload_bytes(uint64_t number)
{
	return 1 + (uint32_t)(number * 37 % PAYLOAD_MAX);
}

static void head_fill(uint8_t *head, uint64_t number)
{
	for (uint32_t i = 0; i < HEAD; i++)
		head[i] = (uint8_t)(number * 7 + i * 3);
	memcpy(head + 14, &number, sizeof(number));
}

static void buffer_new(void)
{
	buffer_host = malloc(BUFFER_BYTES);
	assert_non_null(buffer_host);
	for (uint32_t i = 0; i < BUFFER_BYTES; i++)
		buffer_host[i] = (uint8_t)(i * 2654435761u >> 24);
	/* Aligned to much more than the 64 KiB that are asked for. */
	assert_int_equal(cudaMalloc((void **)&buffer, BUFFER_BYTES), cudaSuccess);
	assert_int_equal(cudaMemcpy(buffer, buffer_host, BUFFER_BYTES, cudaMemcpyHostToDevice),
			 cudaSuccess);
}

static struct gdrcap_session *end_new(const char *key, const char *port, const char *role,
				      const char *thread)
{
	API_FREED struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session;
	struct gdrcap_error error = { 0 };

	assert_non_null(config);
	api_set(config, key, "%s", port);
	api_set(config, "gpu", "0");
	api_set(config, "memory", "device");
	api_set(config, "frame.size", "%u", FRAME_SIZE);
	api_set(config, role, "host");
	if (thread)
		api_set(config, "sender.thread", "%s", thread);
	if (gdrcap_create(config, &session, &error))
		fail_msg("%s: %s", port, error.text);
	return session;
}

/* True: it was submitted. */
static bool send_one(struct gdrcap_tx *tx, uint64_t number)
{
	struct gdrcap_error error = { 0 };
	struct gdrcap_tx_frame frame;
	uint8_t head[HEAD];

	if (gdrcap_tx_reserve(tx, &frame, 1) != 1)
		return false;
	head_fill(head, number);
	assert_int_equal(cudaMemcpy(frame.data, head, HEAD, cudaMemcpyHostToDevice), cudaSuccess);
	frame.bytes = HEAD;
	frame.payload = buffer + payload_at(number);
	frame.payload_bytes = payload_bytes(number);
	if (gdrcap_tx_submit(tx, &frame, 1, &error))
		fail_msg("%s", error.text);
	return true;
}

static void check_one(const uint8_t *frame, uint32_t bytes, uint64_t number)
{
	uint8_t came[HEAD + PAYLOAD_MAX], head[HEAD];

	assert_int_equal(bytes, HEAD + payload_bytes(number));
	assert_int_equal(cudaMemcpy(came, frame, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
	head_fill(head, number);
	assert_memory_equal(came, head, HEAD);
	assert_memory_equal(came + HEAD, buffer_host + payload_at(number), bytes - HEAD);
}

static uint32_t receive(struct gdrcap_queue *queue, uint64_t next)
{
	const struct gdrcap_batch *batch[8];
	const int n = gdrcap_poll(queue, batch, 8);
	uint32_t frames = 0;

	assert_true(n >= 0);
	for (int b = 0; b < n; b++)
		for (uint32_t i = 0; i < batch[b]->count; i++)
			check_one(gdrcap_frame(batch[b], i), gdrcap_frame_bytes(batch[b], i),
				  next + frames++);
	gdrcap_release(queue, batch, (unsigned int)n);
	return frames;
}

static void sent_from_the_gpu(const char *thread)
{
	struct gdrcap_session *right = end_new("port", RIGHT, "consumer", NULL);
	struct gdrcap_session *left = end_new("tx_port", LEFT, "sender", thread);
	struct gdrcap_queue *queue = gdrcap_get_queue(right, 0);
	struct gdrcap_tx *tx = gdrcap_get_tx(left, 0);
	struct gdrcap_error error = { 0 };
	uint64_t sent = 0, came = 0;

	if (gdrcap_tx_register(left, buffer, BUFFER_BYTES, GDRCAP_MEMORY_DEVICE, &error))
		fail_msg("%s", error.text);
	assert_int_equal(gdrcap_start(right, &error), 0);
	assert_int_equal(gdrcap_start(left, &error), 0);
	while (came < FRAMES) {
		if (sent < FRAMES && send_one(tx, sent))
			sent++;
		came += receive(queue, came);
	}
	assert_int_equal(gdrcap_stop(left, &error), 0);
	assert_int_equal(gdrcap_stop(right, &error), 0);
	gdrcap_destroy(left);
	gdrcap_destroy(right);
	printf("%u frames of two pieces in GPU memory, handed over by the %s's thread: all intact\n",
	       FRAMES, thread);
}

static void test_session(void **state)
{
	sent_from_the_gpu("session");
}

static void test_caller(void **state)
{
	sent_from_the_gpu("caller");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_caller),
	};
	int gpus;

	if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
		printf("no GPU\n");
		return SKIP;
	}
	nic_lock();
	soft_faults_parse("pause=1,link=1");
	nic_unlock();
	buffer_new();
	return cmocka_run_group_tests_name("send_card_cuda", tests, NULL, NULL);
}
