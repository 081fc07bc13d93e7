/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of CUDA and of the public API that have to succeed: what fails ends the test. */
#ifndef GDRCAP_TEST_API_CALLS_CUH
#define GDRCAP_TEST_API_CALLS_CUH

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <cuda_runtime.h>

#include "gdrcap.h"

static inline void cuda_check(cudaError_t result, const char *what)
{
	if (result == cudaSuccess)
		return;
	printf("FAIL: %s: %s\n", what, cudaGetErrorString(result));
	exit(1);
}
#define CUDA(call) cuda_check(call, #call)

static inline void api_check(int result, const struct gdrcap_error *error, const char *what)
{
	if (result >= 0)
		return;
	printf("FAIL: %s: %s\n", what, error ? error->text : strerror(-result));
	exit(1);
}

static inline void option_set(struct gdrcap_config *config, const char *key, const char *value)
{
	struct gdrcap_error error;

	api_check(gdrcap_config_set(config, key, value, &error), &error, key);
}

/* `more`: KEY=VALUE, up to NULL; NULL: none. */
static inline void options_set(struct gdrcap_config *config, char **more)
{
	for (char **option = more; option && *option; option++) {
		const std::string text = *option;
		const size_t at = text.find('=');

		option_set(config, text.substr(0, at).c_str(), text.substr(at + 1).c_str());
	}
}

#endif
