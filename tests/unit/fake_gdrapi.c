/* SPDX-License-Identifier: BSD-3-Clause */
/* Built as a shared library whose soname is libgdrapi.so.2. One buffer at a time. */
#include "fake_gdrapi.h"

#include <errno.h>
#include <stdlib.h>

typedef struct {
	unsigned long h;
} gdr_mh_t;
struct gdr_info {
	uint64_t va, mapped_size;
	uint32_t page_size;
	uint64_t tm_cycles;
	uint32_t cycles_per_ms;
	unsigned int mapped : 1, wc_mapping : 1;
	int mapping_type;
};

#define HANDLE 0x1234ul

struct fake_gdrapi fake_gdrapi;
static void *memory;

void *gdr_open(void);
int gdr_close(void *gdr);
int gdr_pin_buffer(void *gdr, unsigned long gpu, size_t bytes, uint64_t token, uint32_t space,
		   gdr_mh_t *handle);
int gdr_unpin_buffer(void *gdr, gdr_mh_t handle);
int gdr_get_info_v2(void *gdr, gdr_mh_t handle, struct gdr_info *info);
int gdr_map(void *gdr, gdr_mh_t handle, void **cpu, size_t bytes);
int gdr_unmap(void *gdr, gdr_mh_t handle, void *cpu, size_t bytes);

void *gdr_open(void)
{
	if (fake_gdrapi.fail_open)
		return NULL;
	fake_gdrapi.open++;
	return &fake_gdrapi;
}

int gdr_close(void *gdr)
{
	fake_gdrapi.misuse += gdr != &fake_gdrapi || fake_gdrapi.pinned;
	fake_gdrapi.open--;
	return 0;
}

int gdr_pin_buffer(void *gdr, unsigned long gpu, size_t bytes, uint64_t token, uint32_t space,
		   gdr_mh_t *handle)
{
	if (fake_gdrapi.fail_pin)
		return fake_gdrapi.fail_pin;
	fake_gdrapi.misuse += gdr != &fake_gdrapi || fake_gdrapi.pinned || token || space ||
			      gpu % 65536 || bytes % 65536;
	fake_gdrapi.pinned++;
	fake_gdrapi.gpu = gpu;
	fake_gdrapi.bytes = bytes;
	handle->h = HANDLE;
	return 0;
}

int gdr_unpin_buffer(void *gdr, gdr_mh_t handle)
{
	fake_gdrapi.misuse += handle.h != HANDLE || fake_gdrapi.pinned != 1 || fake_gdrapi.mapped;
	fake_gdrapi.pinned--;
	return 0;
}

int gdr_get_info_v2(void *gdr, gdr_mh_t handle, struct gdr_info *info)
{
	if (fake_gdrapi.fail_info)
		return fake_gdrapi.fail_info;
	fake_gdrapi.misuse += handle.h != HANDLE;
	*info = (struct gdr_info){
		.va = fake_gdrapi.gpu - fake_gdrapi.shift,
		.mapped_size = fake_gdrapi.bytes,
		.mapped = 1,
		.mapping_type = 1,
	};
	return 0;
}

int gdr_map(void *gdr, gdr_mh_t handle, void **cpu, size_t bytes)
{
	if (fake_gdrapi.fail_map)
		return fake_gdrapi.fail_map;
	fake_gdrapi.misuse += handle.h != HANDLE || bytes != fake_gdrapi.bytes;
	memory = calloc(1, bytes + fake_gdrapi.shift);
	if (!memory)
		return ENOMEM;
	fake_gdrapi.mapped++;
	*cpu = memory;
	return 0;
}

int gdr_unmap(void *gdr, gdr_mh_t handle, void *cpu, size_t bytes)
{
	/* The CPU's address, not the device's. */
	fake_gdrapi.misuse += handle.h != HANDLE || cpu != memory || bytes != fake_gdrapi.bytes;
	free(memory);
	memory = NULL;
	fake_gdrapi.mapped--;
	return 0;
}
