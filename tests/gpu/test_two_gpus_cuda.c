/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions on two GPUs of one process: each has its own memory, both have every frame right, and who uses
 * GPU 1 alone makes no context on GPU 0. 77 with fewer than two GPUs. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include <gdrcap.h>

#include "gpu/cuda_driver.h"

#define FRAMES "200000"

static void fail(const char *what, const char *why)
{
	printf("FAIL: %s: %s\n", what, why);
	exit(1);
}

/* A loopback on GPU `gpu`; with consumer host its frames are the caller's. */
static struct gdrcap_session *session_new(int gpu, const char *consumer)
{
	struct gdrcap_config *config = gdrcap_config_new();
	struct gdrcap_session *session;
	struct gdrcap_error error;
	char wire[32], number[8];

	snprintf(wire, sizeof(wire), "ring:gpu%d", gpu);
	snprintf(number, sizeof(number), "%d", gpu);
	const char *const options[][2] = {
		{ "port", wire },	  { "tx_port", wire },	{ "gpu", number },
		{ "memory", "device" },	  { "frames", FRAMES }, { "frame.size", "64" },
		{ "consumer", consumer },
	};
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (gdrcap_config_set(config, options[i][0], options[i][1], &error))
			fail(options[i][0], error.text);
	if (gdrcap_create(config, &session, &error))
		fail("create", error.text);
	gdrcap_config_free(config);
	return session;
}

static void session_start(struct gdrcap_session *session)
{
	struct gdrcap_error error;

	if (gdrcap_start(session, &error))
		fail("start", error.text);
}

/* To its end: all frames came, and were right. */
static void session_check(struct gdrcap_session *session)
{
	struct gdrcap_summary summary;
	struct gdrcap_error error;

	while (!gdrcap_wait_end(session, 1000))
		;
	if (gdrcap_stop(session, &error))
		fail("run", error.text);
	gdrcap_get_summary(session, &summary, sizeof(summary));
	if (summary.total.valid != strtoull(FRAMES, NULL, 10) || summary.total.damaged)
		fail("run", "not every frame is right");
	printf("%s: %llu valid\n", summary.gpu, (unsigned long long)summary.total.valid);
}

static int context_is_active(int gpu)
{
	CUresult (*state)(CUdevice device, unsigned int *flags, int *active);
	unsigned int flags;
	int active = -1;

	if (cuda_driver_call("cuDevicePrimaryCtxGetState", 11040, (void **)&state) || !state ||
	    state(gpu, &flags, &active) != CUDA_SUCCESS)
		fail("cuDevicePrimaryCtxGetState", "not answered");
	return active;
}

/* Before anything else of this process has asked for GPU 0. */
static void test_one_alone(void)
{
	struct gdrcap_session *session = session_new(1, "validate");

	session_start(session);
	session_check(session);
	gdrcap_destroy(session);
	if (!context_is_active(1) || context_is_active(0))
		fail("GPU 1 alone", context_is_active(0) ? "there is a context on GPU 0"
							 : "there is none on GPU 1");
}

static void test_both_check(void)
{
	struct gdrcap_session *session[2];

	for (int i = 0; i < 2; i++)
		session[i] = session_new(i, "validate");
	for (int i = 0; i < 2; i++)
		session_start(session[i]);
	for (int i = 0; i < 2; i++)
		session_check(session[i]);
	for (int i = 0; i < 2; i++)
		gdrcap_destroy(session[i]);
}

/* A batch of session i is GPU i's, and the caller's device stays what it was. */
static void test_memory(void)
{
	struct gdrcap_session *session[2];

	for (int i = 0; i < 2; i++)
		session[i] = session_new(i, "host");
	for (int i = 0; i < 2; i++)
		session_start(session[i]);
	for (int i = 0; i < 2; i++) {
		struct gdrcap_queue *queue = gdrcap_get_queue(session[i], 0);
		const struct gdrcap_batch *batch;
		struct cudaPointerAttributes attributes;
		int current = -1;

		while (gdrcap_wait(queue, &batch, 1, -1) == 1) {
			if (cudaPointerGetAttributes(&attributes, batch->data) ||
			    attributes.type != cudaMemoryTypeDevice || attributes.device != i)
				fail("batch", "its memory is not the session's GPU's");
			gdrcap_release(queue, &batch, 1);
		}
		if (cudaGetDevice(&current) || current != 0)
			fail("caller", "the library changed its device");
	}
	for (int i = 0; i < 2; i++)
		gdrcap_stop(session[i], NULL);
	for (int i = 0; i < 2; i++)
		gdrcap_destroy(session[i]);
}

int main(void)
{
	int count = 0;

	if (cudaGetDeviceCount(&count) != cudaSuccess || count < 2) {
		printf("%d CUDA devices here; this needs two\n", count);
		return 77;
	}
	test_one_alone();
	test_both_check();
	test_memory();
	printf("PASS\n");
	return 0;
}
