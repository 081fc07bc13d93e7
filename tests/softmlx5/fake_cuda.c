/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A CUDA driver library without a GPU, for the DMA plugin and its test: memory that the CPU may not
 * touch, and asynchronous copies that happen at the synchronisation and not before.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define AREAS_MAX 16
#define COPIES_MAX 4096
#define INVALID_VALUE 1
#define OUT_OF_MEMORY 2
#define INVALID_CONTEXT 201
#define MEMORY_TYPE 2
#define DEVICE_ORDINAL 9

static struct area {
	uint8_t *device;
	uint8_t *host;
	size_t size;
} areas[AREAS_MAX];
static unsigned int area_count;

static struct copy {
	uint8_t *to;
	const uint8_t *from;
	size_t size;
} copies[COPIES_MAX];
static unsigned int copy_count;

static int the_context;
static _Thread_local unsigned int pushed;

static uint8_t *host_of(uint64_t address, size_t size)
{
	for (unsigned int i = 0; i < area_count; i++) {
		uint64_t start = (uintptr_t)areas[i].device;

		if (address >= start && address - start <= areas[i].size &&
		    size <= areas[i].size - (address - start))
			return areas[i].host + (address - start);
	}
	return NULL;
}

int cuInit(unsigned int flags);
int cuInit(unsigned int flags)
{
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device);
int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &the_context;
	return device == 0 ? 0 : INVALID_VALUE;
}

int cuCtxSetCurrent(void *context);
int cuCtxSetCurrent(void *context)
{
	pushed = context != NULL;
	return 0;
}

int cuCtxPushCurrent_v2(void *context);
int cuCtxPushCurrent_v2(void *context)
{
	pushed++;
	return context == &the_context ? 0 : INVALID_CONTEXT;
}

int cuCtxPopCurrent_v2(void **context);
int cuCtxPopCurrent_v2(void **context)
{
	*context = &the_context;
	return pushed-- > 0 ? 0 : INVALID_CONTEXT;
}

int cuMemAlloc_v2(uint64_t *address, size_t size);
int cuMemAlloc_v2(uint64_t *address, size_t size)
{
	struct area *area = &areas[area_count];
	int file = memfd_create("fake_cuda", MFD_CLOEXEC);

	if (area_count == AREAS_MAX || file < 0 || ftruncate(file, (off_t)size) < 0)
		return OUT_OF_MEMORY;
	area->size = size;
	area->host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	/* Of its own and private: only these functions lead to it. */
	area->device = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	close(file);
	if (area->host == MAP_FAILED || area->device == MAP_FAILED)
		return OUT_OF_MEMORY;
	area_count++;
	*address = (uintptr_t)area->device;
	return 0;
}

int cuPointerGetAttribute(void *data, int attribute, uint64_t address);
int cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
	if (host_of(address, 1) == NULL)
		return INVALID_VALUE;
	*(int *)data = attribute == MEMORY_TYPE ? 2 : 0;
	return attribute == MEMORY_TYPE || attribute == DEVICE_ORDINAL ? 0 : INVALID_VALUE;
}

int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t size);
int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t size)
{
	memset(host_of(address, size), value, size);
	return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
	memcpy(host_of(to, size), from, size);
	return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size)
{
	memcpy(to, host_of(from, size), size);
	return 0;
}

static int later(void *to, const void *from, size_t size)
{
	if (to == NULL || from == NULL)
		return INVALID_VALUE;
	if (pushed == 0)
		return INVALID_CONTEXT;
	if (copy_count == COPIES_MAX)
		abort();
	copies[copy_count++] = (struct copy){ to, from, size };
	return 0;
}

int cuStreamCreate(void **stream, unsigned int flags);
int cuStreamCreate(void **stream, unsigned int flags)
{
	*stream = &copies;
	return flags == 1 && pushed > 0 ? 0 : INVALID_VALUE;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream)
{
	return later(host_of(to, size), from, size);
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream)
{
	return later(to, host_of(from, size), size);
}

int cuStreamSynchronize(void *stream);
int cuStreamSynchronize(void *stream)
{
	for (unsigned int i = 0; i < copy_count; i++)
		memcpy(copies[i].to, copies[i].from, copies[i].size);
	copy_count = 0;
	return pushed > 0 ? 0 : INVALID_CONTEXT;
}
