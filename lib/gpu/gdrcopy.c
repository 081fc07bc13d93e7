/* SPDX-License-Identifier: BSD-3-Clause */
/* GPU memory mapped for the CPU by GDRCopy's library, where there is one. */
#include "gpu/gdrcopy.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu_drivers.h"

/* ---- what libgdrapi.so.2 exports, as its users know it ---- */

typedef void *gdr_t;
typedef struct {
	unsigned long h;
} gdr_mh_t;
/* gdr_get_info and gdr_get_info_v2 both begin so; the second adds one enum. The rest is room for
 * what a later library may add. */
struct gdr_info {
	uint64_t va; /* of the first pinned page */
	uint64_t mapped_size;
	uint32_t page_size;
	uint64_t tm_cycles;
	uint32_t cycles_per_ms;
	unsigned int flags;
	uint64_t room[16];
};

struct gdrcopy {
	void *library;
	gdr_t handle;
	gdr_t (*open)(void);
	int (*close)(gdr_t handle);
	int (*pin)(gdr_t handle, unsigned long gpu, size_t bytes, uint64_t token, uint32_t space,
		   gdr_mh_t *memory);
	int (*unpin)(gdr_t handle, gdr_mh_t memory);
	int (*info)(gdr_t handle, gdr_mh_t memory, struct gdr_info *info);
	int (*map)(gdr_t handle, gdr_mh_t memory, void **cpu, size_t bytes);
	int (*unmap)(gdr_t handle, gdr_mh_t memory, void *cpu, size_t bytes);
};

/* The library returns 0 or a positive errno. */
static int gdr_error(int ret)
{
	return ret > 0 && ret < 4096 ? -ret : -EIO;
}

static int library_load(struct gdrcopy *gdrcopy, char *why, size_t why_bytes)
{
	gdrcopy->library = dlopen("libgdrapi.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!gdrcopy->library)
		gdrcopy->library = dlopen("libgdrapi.so", RTLD_NOW | RTLD_LOCAL);
	if (!gdrcopy->library) {
		const char *cause = dlerror();

		snprintf(why, why_bytes, "GDRCopy is missing (%s): install the package libgdrapi",
			 cause ? cause : "dlopen");
		return -ENOTSUP;
	}
	*(void **)&gdrcopy->open = dlsym(gdrcopy->library, "gdr_open");
	*(void **)&gdrcopy->close = dlsym(gdrcopy->library, "gdr_close");
	*(void **)&gdrcopy->pin = dlsym(gdrcopy->library, "gdr_pin_buffer");
	*(void **)&gdrcopy->unpin = dlsym(gdrcopy->library, "gdr_unpin_buffer");
	*(void **)&gdrcopy->map = dlsym(gdrcopy->library, "gdr_map");
	*(void **)&gdrcopy->unmap = dlsym(gdrcopy->library, "gdr_unmap");
	*(void **)&gdrcopy->info = dlsym(gdrcopy->library, "gdr_get_info_v2");
	if (!gdrcopy->info)
		*(void **)&gdrcopy->info = dlsym(gdrcopy->library, "gdr_get_info");
	if (gdrcopy->open && gdrcopy->close && gdrcopy->pin && gdrcopy->unpin && gdrcopy->map &&
	    gdrcopy->unmap && gdrcopy->info)
		return 0;
	snprintf(why, why_bytes,
		 "GDRCopy's libgdrapi lacks functions of version 2: install 2.0 or later");
	return -ENOTSUP;
}

int gdrcopy_open(struct gdrcopy **result, char *why, size_t why_bytes)
{
	struct gdrcopy *gdrcopy = calloc(1, sizeof(*gdrcopy));
	int ret;

	if (!gdrcopy) {
		snprintf(why, why_bytes, "no memory");
		return -ENOMEM;
	}
	ret = library_load(gdrcopy, why, why_bytes);
	if (ret)
		goto err;
	gdrcopy->handle = gdrcopy->open();
	if (!gdrcopy->handle) {
		snprintf(why, why_bytes,
			 "GDRCopy's /dev/gdrdrv does not open: load its kernel module (modprobe "
			 "gdrdrv) and let this user read and write /dev/gdrdrv");
		ret = -ENOTSUP;
		goto err;
	}
	*result = gdrcopy;
	return 0;

err:
	if (gdrcopy->library)
		dlclose(gdrcopy->library);
	free(gdrcopy);
	return ret;
}

void gdrcopy_close(struct gdrcopy *gdrcopy)
{
	gdrcopy->close(gdrcopy->handle);
	dlclose(gdrcopy->library);
	free(gdrcopy);
}

int gdrcopy_map(struct gdrcopy *gdrcopy, uintptr_t gpu, size_t bytes,
		struct gdrcopy_mapping *mapping)
{
	uintptr_t first = gpu & ~(uintptr_t)(GPU_PAGE_BYTES - 1);
	size_t span = (gpu + bytes - first + GPU_PAGE_BYTES - 1) & ~(GPU_PAGE_BYTES - 1);
	struct gdr_info info = { 0 };
	gdr_mh_t memory;
	void *base;
	int ret;

	ret = gdrcopy->pin(gdrcopy->handle, first, span, 0, 0, &memory);
	if (ret)
		return gdr_error(ret);
	ret = gdrcopy->map(gdrcopy->handle, memory, &base, span);
	if (ret)
		goto err_pin;
	/* The driver may begin its mapping at an earlier page than it was asked for. */
	ret = gdrcopy->info(gdrcopy->handle, memory, &info);
	if (ret || info.va > gpu) {
		ret = ret ? ret : EIO;
		goto err_map;
	}
	mapping->cpu = (uint8_t *)base + (gpu - info.va);
	mapping->base = base;
	mapping->base_bytes = span;
	mapping->handle = memory.h;
	return 0;

err_map:
	gdrcopy->unmap(gdrcopy->handle, memory, base, span);
err_pin:
	gdrcopy->unpin(gdrcopy->handle, memory);
	return gdr_error(ret);
}

int gdrcopy_unmap(struct gdrcopy *gdrcopy, const struct gdrcopy_mapping *mapping)
{
	gdr_mh_t memory = { .h = mapping->handle };
	int ret = gdrcopy->unmap(gdrcopy->handle, memory, mapping->base, mapping->base_bytes);

	if (ret)
		return gdr_error(ret);
	ret = gdrcopy->unpin(gdrcopy->handle, memory);
	return ret ? gdr_error(ret) : 0;
}
