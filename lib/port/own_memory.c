/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of rings and records: allocated, made reachable for the GPU, the CPU and the card. */
#include "port/own_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_gpudev.h>

#include "base/log.h"
#include "gpu/gpu_export.h"

#define PAGE ((size_t)64 << 10) /* in which GPU memory is mapped for others */

static int host_get(struct own_memory *memory, const struct own_memory_config *config,
		    struct gdrcap_error *error)
{
	void *raw = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);

	if (raw == MAP_FAILED)
		return error_set(error, -errno, "cannot map %zu KiB of host memory for %s: %s",
				 memory->bytes >> 10, config->what, strerror(errno));
	memory->base = raw;
	memory->front = raw;
	if (memory->kind == GDRCAP_MEMORY_HOST)
		return 0;
	if (rte_gpu_mem_register(memory->gpu, memory->bytes, raw) < 0)
		return error_set(error, -rte_errno,
				 "the GPU refused to register %zu KiB of host memory for %s: %s; "
				 "raise the locked-memory limit (ulimit -l unlimited)",
				 memory->bytes >> 10, config->what, rte_strerror(rte_errno));
	memory->registered = true;
	return 0;
}

static int device_get(struct own_memory *memory, const struct own_memory_config *config,
		      struct gdrcap_error *error)
{
	memory->base = rte_gpu_mem_alloc(memory->gpu, memory->bytes, (unsigned int)PAGE);
	if (!memory->base)
		return error_set(error, rte_errno ? -rte_errno : -ENOMEM,
				 "the GPU has no %zu KiB to give for %s: %s; free memory on it "
				 "(nvidia-smi shows who holds it)",
				 memory->bytes >> 10, config->what, rte_strerror(rte_errno));
	memory->front = memory->base;
	if (!config->cpu_front)
		return 0;
	memory->front = rte_gpu_mem_cpu_map(memory->gpu, memory->bytes, memory->base);
	if (!memory->front)
		return error_set(error, -rte_errno, "cannot map GPU memory of %s for the CPU: %s",
				 config->what, rte_strerror(rte_errno));
	memory->mapped = true;
	memset(memory->front, 0, memory->bytes);
	return 0;
}

/* `context`: the gpudev id. */
static int memory_export(void *context, void *base, size_t bytes)
{
	return gpu_export((int16_t)(intptr_t)context, base, bytes);
}

int own_memory_create(struct devx_card *card, struct own_memory *memory,
		      const struct own_memory_config *config, struct gdrcap_error *error)
{
	const bool device = config->kind == GDRCAP_MEMORY_DEVICE;
	struct dmabuf_memory shared = {
		.export_fd = device ? memory_export : NULL,
		.context = (void *)(intptr_t)config->gpu,
	};
	int ret;

	memset(memory, 0, sizeof(*memory));
	memory->kind = config->kind;
	memory->gpu = config->gpu;
	memory->bytes = (config->bytes + PAGE - 1) / PAGE * PAGE;
	ret = device ? device_get(memory, config, error) : host_get(memory, config, error);
	shared.base = memory->base;
	shared.bytes = memory->bytes;
	if (ret == 0)
		ret = devx_umem_create(card, &memory->umem, &shared, config->what, error);
	if (ret < 0)
		own_memory_destroy(memory);
	return ret;
}

void own_memory_destroy(struct own_memory *memory)
{
	if (!memory->base)
		return;
	devx_umem_destroy(&memory->umem);
	if (memory->mapped && rte_gpu_mem_cpu_unmap(memory->gpu, memory->base) < 0)
		log_warning("the GPU kept a ring's memory mapped: %s", rte_strerror(rte_errno));
	if (memory->registered && rte_gpu_mem_unregister(memory->gpu, memory->base) < 0)
		log_warning("the GPU kept a ring's memory registered: %s", rte_strerror(rte_errno));
	if (memory->kind != GDRCAP_MEMORY_DEVICE)
		munmap(memory->base, memory->bytes);
	else if (rte_gpu_mem_free(memory->gpu, memory->base) < 0)
		log_warning("the GPU kept a ring's memory: %s", rte_strerror(rte_errno));
	memset(memory, 0, sizeof(*memory));
}
