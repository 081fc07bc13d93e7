/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that a CUDA stream waits for, and writes: the driver's stream memory operations. */
#include <errno.h>

#include <cuda.h>

extern "C" {
#include "gpu/cuda_driver.h"
}
#include "kernels/cuda/device.cuh"

/* Those that need no option of the kernel module, and the attribute that says so, came with CUDA 11.7. */
#if CUDA_VERSION >= 11070
#define WORDS_ABI 11070
#define WORDS_ATTRIBUTE CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS

/* The same for all GPUs: found again, they do not change. Written before anybody has the device. */
static struct {
	CUresult (*wait)(CUstream stream, CUdeviceptr word, cuuint64_t least, unsigned int flags);
	CUresult (*write)(CUstream stream, CUdeviceptr word, cuuint64_t value, unsigned int flags);
} driver;

bool cuda_stream_words_find(int ordinal)
{
	CUresult (*attribute)(int *value, CUdevice_attribute which, CUdevice device) = NULL;
	void *call[3] = { NULL, NULL, NULL };
	int can = 0;

	if (cuda_driver_call("cuDeviceGetAttribute", WORDS_ABI, &call[0]) ||
	    cuda_driver_call("cuStreamWaitValue64", WORDS_ABI, &call[1]) ||
	    cuda_driver_call("cuStreamWriteValue64", WORDS_ABI, &call[2]) || !call[0] || !call[1] ||
	    !call[2])
		return false;
	*(void **)&attribute = call[0];
	*(void **)&driver.wait = call[1];
	*(void **)&driver.write = call[2];
	return attribute(&can, WORDS_ATTRIBUTE, ordinal) == CUDA_SUCCESS && can == 1;
}

static int words_fail(const struct kernel_device *device)
{
	return kernel_fail(
		-ENOTSUP,
		"GPU %d (%s), or its driver, has no stream memory operations of 64 bits: "
		"update the driver (515 or later), or take batches by gdrcap_poll() or a "
		"running kernel",
		device->ordinal, device->name);
}

int cuda_wait_word(struct kernel_device *device, void *stream, const uint64_t *word, uint64_t least)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;

	if (!device->stream_words)
		return words_fail(device);
	if (!error)
		error = (cudaError_t)driver.wait((CUstream)stream, (CUdeviceptr)(uintptr_t)word,
						 least, CU_STREAM_WAIT_VALUE_GEQ);
	return error ? cuda_fail(error, "queueing a wait in the stream") : 0;
}

int cuda_write_word(struct kernel_device *device, void *stream, uint64_t *word, uint64_t value)
{
	current_device current(device->ordinal);
	cudaError_t error = current.error;

	if (!device->stream_words)
		return words_fail(device);
	/* With the fence that is its default: what the stream's work has written and read comes before. Partner:
	 * the worker's COLLECT, BACK or SUBMIT. */
	if (!error)
		error = (cudaError_t)driver.write((CUstream)stream, (CUdeviceptr)(uintptr_t)word,
						  value, CU_STREAM_WRITE_VALUE_DEFAULT);
	return error ? cuda_fail(error, "queueing a write in the stream") : 0;
}
#else
bool cuda_stream_words_find(int ordinal)
{
	return false;
}

int cuda_wait_word(struct kernel_device *device, void *stream, const uint64_t *word, uint64_t least)
{
	return kernel_fail(-ENOTSUP, "this library was built with CUDA before 11.7, which has no "
				     "stream memory operations for every program: build it with a "
				     "later one");
}

int cuda_write_word(struct kernel_device *device, void *stream, uint64_t *word, uint64_t value)
{
	return cuda_wait_word(device, stream, word, value);
}
#endif
