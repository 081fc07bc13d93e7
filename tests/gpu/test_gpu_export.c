/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu_cuda_export() on a real device. Exit 77 without one, or where none makes dma-bufs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "gpu/gpu_export.h"

#define BYTES ((size_t)8 << 20)
#define PAGE ((size_t)64 << 10)

static CUcontext context;
static char *memory;

static void whole_and_part(void **state)
{
	int fd = gpu_cuda_export(context, memory, BYTES), part;

	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	/* a dma-buf tells its size by its end */
	assert_int_equal(lseek(fd, 0, SEEK_END), BYTES);
	part = gpu_cuda_export(context, memory + PAGE, PAGE);
	assert_true(part >= 0 && part != fd);
	close(part);
	close(fd);
}

static void wrong_memory(void **state)
{
	static char host[4096] __attribute__((aligned(4096)));

	assert_true(gpu_cuda_export(context, memory + 1, PAGE) < 0);
	assert_true(gpu_cuda_export(context, memory, (size_t)1 << 40) < 0);
	assert_true(gpu_cuda_export(context, host, sizeof(host)) < 0);
	assert_int_equal(cudaGetLastError(), cudaSuccess); /* nothing left for the application */
}

static void context_kept(void **state)
{
	int device = -1, fd = gpu_cuda_export(context, memory, BYTES);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(cudaGetDevice(&device), cudaSuccess);
	assert_int_equal(device, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_and_part),
		cmocka_unit_test(wrong_memory),
		cmocka_unit_test(context_kept),
	};
	CUresult (*current)(CUcontext * context) = NULL;
	enum cudaDriverEntryPointQueryResult found;
	int count = 0, fd;

	if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
		printf("no CUDA device\n");
		return 77;
	}
	/* the Runtime's own context, which its first allocation makes */
	if (cudaMalloc((void **)&memory, BYTES) != cudaSuccess ||
#if CUDART_VERSION >= 12050
	    cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", (void **)&current, 11040,
					     cudaEnableDefault, &found) != cudaSuccess ||
#elif CUDART_VERSION >= 12000
	    cudaGetDriverEntryPoint("cuCtxGetCurrent", (void **)&current, cudaEnableDefault,
				    &found) != cudaSuccess ||
#else
	    cudaGetDriverEntryPoint("cuCtxGetCurrent", (void **)&current, cudaEnableDefault) !=
		    cudaSuccess ||
#endif
	    current(&context) != CUDA_SUCCESS || !context) {
		printf("CUDA does not start\n");
		return 1;
	}
	fd = gpu_cuda_export(context, memory, BYTES);
	if (fd == -ENOTSUP) {
		printf("this GPU or its driver makes no dma-bufs (open kernel modules?)\n");
		return 77;
	}
	if (fd >= 0)
		close(fd);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
