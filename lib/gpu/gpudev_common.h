/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What both gpudev drivers share: the record of who holds which memory, and the vdev's life. A
 * driver adds a backend: how memory is got, registered and mapped. Control path: each call locks.
 */
#ifndef GDRCAP_GPUDEV_COMMON_H
#define GDRCAP_GPUDEV_COMMON_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_log.h>

#include <bus_vdev_driver.h>
#include <gpudev_driver.h>

#include "gpu/gpu_drivers.h"

/* Allocations this large start at this alignment, so that they can be rte_extmem_register()ed with
 * pages of 2 MiB: the mlx5 driver's work grows with the square of the number of pages. */
#define GPU_LARGE_BYTES ((size_t)2 << 20)

/* One allocation, registration or mapping. The driver owns base, base_bytes, cpu and handle. */
struct gpu_block {
	LIST_ENTRY(gpu_block) next;
	uintptr_t start;	 /* as the caller knows it */
	size_t bytes;		 /* allocation: rounded up to whole pages; else as asked */
	unsigned int references; /* of a mapping */
	void *base;		 /* what the driver gives back */
	size_t base_bytes;
	void *cpu;	      /* where the CPU can reach it */
	unsigned long handle; /* of a mapping made by GDRCopy */
	int file;	      /* behind an allocation of gpu_host */
};
LIST_HEAD(gpu_blocks, gpu_block);

struct gpu_device;

/* Each call has the device's lock, returns 0 or a negative errno, and logs its own failure.
 * A NULL call has nothing to do. */
struct gpu_backend {
	/* In: bytes. Out: start, a multiple of `align`, and the driver's fields. */
	int (*allocate)(struct gpu_device *device, struct gpu_block *block, size_t align);
	int (*release)(struct gpu_device *device, struct gpu_block *block);
	int (*register_host)(struct gpu_device *device, struct gpu_block *block);
	int (*unregister_host)(struct gpu_device *device, struct gpu_block *block);
	/* In: start and bytes inside `allocation`. Out: cpu. */
	int (*map)(struct gpu_device *device, const struct gpu_block *allocation,
		   struct gpu_block *mapping);
	int (*unmap)(struct gpu_device *device, struct gpu_block *mapping);
	/* A new file descriptor of a dma-buf of exactly these bytes, or a negative errno.
	 * `allocation`: what they lie in; NULL: the caller's own memory. Logs nothing. */
	int (*export)(struct gpu_device *device, const struct gpu_block *allocation, void *base,
		      size_t bytes);
	/* enum gpu_memory_kind of the byte at `at`; *ordinal: whose, of another GPU's. Logs nothing. */
	int (*kind)(struct gpu_device *device, const void *at, int *ordinal);
	/* CPU writes through a mapping reach the GPU before what the CPU writes next. No lock. */
	int (*write_barrier)(struct gpu_device *device);
	/* Frees `device`, which holds no memory any more. */
	void (*destroy)(struct gpu_device *device);
};

/* First member of each driver's own device. process_private of its rte_gpu. */
struct gpu_device {
	const struct gpu_backend *backend;
	const char *driver; /* begins each log line */
	int logtype;
	pthread_mutex_t lock; /* over the lists */
	struct gpu_blocks allocated, registered, mapped;
};

#define gpu_log(level, type, driver, format, ...)                                                  \
	rte_log(RTE_LOG_##level, type, "%s: " format "\n", driver, ##__VA_ARGS__)
#define device_log(level, device, format, ...)                                                     \
	gpu_log(level, (device)->logtype, (device)->driver, format, ##__VA_ARGS__)

/* The value of the vdev's only argument `key`, a decimal number up to `max`; `value` is left as it
 * is without one. Anything else: -EINVAL, logged. */
int gpu_vdev_number(struct rte_vdev_device *vdev, const char *key, unsigned long max,
		    unsigned long *value, const char *driver, int logtype);

/* Makes `device` known to gpudev under the vdev's name; of `facts` the hardware fields are taken.
 * On failure `device` is still the caller's. */
int gpu_device_publish(struct rte_vdev_device *vdev, struct gpu_device *device,
		       const struct rte_gpu_info *facts);
/* The vdev's remove call of both drivers. */
int gpu_device_remove(struct rte_vdev_device *vdev);

#endif
