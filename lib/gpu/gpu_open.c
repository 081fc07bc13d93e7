/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens each gpudev once in a process. */
#include "gpu/gpu_open.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <rte_bus_vdev.h>
#include <rte_errno.h>
#include <rte_gpudev.h>

#include "base/log.h"
#include "gpu/gpu_drivers.h"

/* gpudevs belong to the process; sessions may be created by several threads. */
static pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER;
static bool registered;

static int gpu_by_name(const char *name)
{
	int16_t id;

	RTE_GPU_FOREACH(id)
	{
		struct rte_gpu_info info;

		if (rte_gpu_info_get(id, &info) == 0 && strcmp(info.name, name) == 0)
			return id;
	}
	return -ENODEV;
}

static int open_once(const char *name, const char *args, struct gdrcap_error *error)
{
	int id = gpu_by_name(name), ret;

	if (id >= 0)
		return id;
	log_words_forget();
	ret = rte_vdev_init(name, args);
	if (ret < 0)
		return error_add_words(
			error,
			error_set(error, ret, "the gpudev %s (%s) cannot be opened: %s%s", name,
				  args, rte_strerror(-ret),
				  ret == -ENOMEM && strncmp(name, "gpu_cuda", 8) == 0
					  ? "; a CUDA context alone takes some 500 MiB of the "
					    "GPU's memory, before any pool: free "
					    "some (nvidia-smi shows who holds it)"
					  : ""));
	id = gpu_by_name(name);
	if (id < 0)
		return error_set(error, id, "the gpudev %s opened, but EAL does not list it", name);
	return id;
}

static int open_locked(const char *name, const char *args, struct gdrcap_error *error)
{
	int id;

	log_lock(&gpu_lock);
	if (!registered) {
		gpu_host_register();
		gpu_cuda_register();
		registered = true;
	}
	id = open_once(name, args, error);
	log_unlock(&gpu_lock);
	return id;
}

int gpu_open_host(bool guard, struct gdrcap_error *error)
{
	/* Two names: a session with a guard must not get the memory of one without. */
	return guard ? open_locked("gpu_host1", "guard=1", error)
		     : open_locked("gpu_host", "guard=0", error);
}

int gpu_open_cuda(int ordinal, struct gdrcap_error *error)
{
	char name[32], args[32];

	snprintf(name, sizeof(name), "gpu_cuda%d", ordinal);
	snprintf(args, sizeof(args), "ordinal=%d", ordinal);
	return open_locked(name, args, error);
}
