/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend: CPU threads that stand for a GPU, so that every path runs without one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gdrcap_udp.h"
#include "kernels/host/host_workers.h"

struct kernel_device {
	uint32_t cpus; /* online when it was opened */
};

static int host_open(int ordinal, struct kernel_device **device)
{
	struct kernel_device *opened = calloc(1, sizeof(*opened));
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!opened)
		return kernel_fail(-ENOMEM, "no memory for the host device");
	opened->cpus = cpus > 0 ? (uint32_t)cpus : 1;
	*device = opened;
	return 0;
}

static void host_close(struct kernel_device *device)
{
	free(device);
}

static void host_info(const struct kernel_device *device, struct kernel_info *info)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->name, sizeof(info->name), "%u CPU%s", device->cpus,
		 device->cpus == 1 ? "" : "s");
	info->units = device->cpus;
	info->writes_ordering = -1;
	info->flush_options = -1;
}

static int host_fill(struct kernel_device *device, void *at, uint8_t byte, size_t bytes)
{
	memset(at, byte, bytes);
	return 0;
}

static int host_copy(struct kernel_device *device, void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return 0;
}

static int host_gather(struct kernel_device *device, const struct kernel_copy *copies,
		       uint32_t count)
{
	if (count > KERNEL_COPIES_MAX)
		return kernel_fail(-EINVAL, "%u copies at once: at most %u", count,
				   KERNEL_COPIES_MAX);
	for (uint32_t i = 0; i < count; i++)
		memcpy(copies[i].to, copies[i].from, copies[i].bytes);
	return 0;
}

static int host_flush(struct kernel_device *device)
{
	/* what a device wrote before its completion was read is visible to every CPU */
	return 0;
}

static int host_after(struct kernel_device *device, void *stream, void (*release)(void *arg),
		      void *arg)
{
	if (stream)
		return kernel_fail(
			-ENOTSUP,
			"a CUDA stream was given, but the frames are consumed by the CPU: "
			"pass no stream, or choose a CUDA device");
	release(arg);
	return 0;
}

static int host_sum(struct kernel_device *device, void *stream, const struct kernel_sum *sums,
		    uint32_t count)
{
	struct gdrcap_udp udp;

	if (stream)
		return kernel_fail(-ENOTSUP,
				   "a CUDA stream was given, but the CPU computes checksums: pass "
				   "no stream, or choose a CUDA device");
	for (uint32_t i = 0; i < count; i++) {
		const struct kernel_sum *sum = &sums[i];

		if (gdrcap_udp_find(sum->frame, sum->bytes, sum->bytes + sum->payload_bytes, &udp))
			gdrcap_udp_put(sum->frame, &udp,
				       udp.sum + gdrcap_udp_share(sum->frame, sum->bytes,
								  sum->payload, &udp, 0, 1));
	}
	return 0;
}

static int stream_refuse(void)
{
	return kernel_fail(-ENOTSUP,
			   "a CUDA stream was given, but there is no GPU (gpu: host), and the "
			   "calling thread is the stream: pass no stream, or choose a CUDA "
			   "device");
}

static int host_wait_word(struct kernel_device *device, void *stream, const uint64_t *word,
			  uint64_t least)
{
	if (stream)
		return stream_refuse();
	/* Whoever takes what is counted acquires that. */
	for (uint32_t polls = 0; (int64_t)(__atomic_load_n(word, __ATOMIC_ACQUIRE) - least) < 0;
	     polls += polls < UINT32_MAX)
		host_idle(polls);
	return 0;
}

static int host_write_word(struct kernel_device *device, void *stream, uint64_t *word,
			   uint64_t value)
{
	if (stream)
		return stream_refuse();
	/* Partner: the worker's COLLECT, BACK or SUBMIT. */
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	return 0;
}

static int host_map_register(struct kernel_device *device, void *at, void **mapped, bool *plain)
{
	(void)at;
	*mapped = NULL;
	*plain = false;
	return kernel_fail(-ENOTSUP, "the CPU backend has no kernels that ring");
}

static void host_unmap_register(struct kernel_device *device, void *at)
{
	(void)at;
}

const struct kernel_ops kernel_host_ops = {
	.name = "host",
	.stream_is_caller = 1,
	.open = host_open,
	.close = host_close,
	.info = host_info,
	.fill = host_fill,
	.copy_in = host_copy,
	.copy_out = host_copy,
	.gather = host_gather,
	.start = host_workers_start,
	.join = host_workers_join,
	.running = host_workers_running,
	.starved = host_workers_starved,
	.workers_per_ring = host_workers_per_ring,
	.flush = host_flush,
	.place_close = host_place_close,
	.place_close_whole = host_place_close_whole,
	.after = host_after,
	.sum = host_sum,
	.wait_word = host_wait_word,
	.write_word = host_write_word,
	.map_register = host_map_register,
	.unmap_register = host_unmap_register,
};
