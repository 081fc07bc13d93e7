/* SPDX-License-Identifier: BSD-3-Clause */
/* A session's images: their memory, what workers place with, and who hands them out. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/log.h"
#include "gpu/gpu_export.h"
#include "memory/region.h"
#include "session/answer.h"
#include "session/session.h"

#define PART_BYTES ((size_t)512) /* parts of a region, and images, begin at multiples */

/* The next part of a region of `used` bytes so far. A NULL region only counts. */
static void *part_take(const struct region *region, size_t *used, size_t bytes)
{
	const size_t at = *used;

	*used = RTE_ALIGN_CEIL(at + bytes, PART_BYTES);
	return region->device ? region->device + at : NULL;
}

/* Where everything of one description is: images, bitmaps and table in the workers' memory, the rest
 * where the CPU reads it too. */
static void view_lay_out(struct place_view *view, bool own, const struct region *device,
			 size_t *device_used, const struct region *host, size_t *host_used)
{
	const size_t bitmaps = (size_t)view->ring * view->present_words * sizeof(uint32_t);

	if (!own)
		view->images = part_take(device, device_used, view->ring * (size_t)view->stride);
	view->present = part_take(device, device_used, bitmaps);
	view->table = part_take(device, device_used, sizeof(*view->table));
	view->shared = part_take(host, host_used, sizeof(*view->shared));
	view->present_host = part_take(host, host_used, bitmaps);
}

static void images_lay_out(struct session_images *images, size_t *device_used, size_t *host_used)
{
	*device_used = 0;
	*host_used = 0;
	for (uint32_t i = 0; i < images->count; i++)
		view_lay_out(&images->view[i], images->own[i], &images->device, device_used,
			     &images->host, host_used);
	for (uint32_t i = 0; i < images->count && images->running; i++)
		images->gpu[i] =
			part_take(&images->host, host_used, image_gpu_bytes(images->view[i].ring));
}

/* ---- the caller's own memory for images ---- */

static int own_check_byte(const struct gdrcap_session *session, const char *name, const uint8_t *at,
			  struct gdrcap_error *error)
{
	const int device = session->plan.ordinal;
	int ordinal = -1;

	switch (gpu_memory_kind(session->memory.gpu, at, &ordinal)) {
	case GPU_MEMORY_OWN:
	case GPU_MEMORY_PINNED:
		return 0;
	case GPU_MEMORY_OTHER:
		return error_set(
			error, -EINVAL,
			"the caller's memory for '%s' at %p is CUDA device %d's, and the "
			"session's is device %d: allocate it there (cudaSetDevice(%d)), or "
			"set gpu: %d",
			name, (const void *)at, ordinal, device, device, ordinal);
	case GPU_MEMORY_MANAGED:
		return error_set(
			error, -EINVAL,
			"the caller's memory for '%s' at %p is managed, and moves between "
			"GPU and CPU: pass an address from cudaMalloc() or cudaHostAlloc()",
			name, (const void *)at);
	default:
		return error_set(
			error, -EINVAL,
			"the caller's memory for '%s' at %p is the CPU's, which CUDA device "
			"%d does not reach: pin it (cudaHostAlloc(), or cudaHostRegister() "
			"of all of it), or pass an address from cudaMalloc()",
			name, (const void *)at, device);
	}
}

static int own_take(struct gdrcap_session *session, uint32_t index, struct gdrcap_error *error)
{
	const struct image_buffers *own = &session->settings.image_buffers[index];
	struct place_view *view = &session->images.view[index];
	const char *name = session->settings.image[index].name;
	int ret;

	if (!own->addr)
		return 0;
	session->images.own[index] = true;
	view->images = own->addr;
	view->stride = own->stride;
	if (!session->plan.cuda) {
		if (region_can_write(own->addr, own->stride * view->ring))
			return 0;
		return error_set(
			error, -EFAULT,
			"the caller's memory for '%s' at %p, %zu bytes, is not all "
			"there, or cannot be written: pass the CPU's memory (with gpu: host no "
			"GPU's)",
			name, own->addr, (size_t)own->stride * view->ring);
	}
	ret = own_check_byte(session, name, own->addr, error);
	if (ret == 0)
		ret = own_check_byte(session, name,
				     (const uint8_t *)own->addr + own->stride * view->ring - 1,
				     error);
	return ret;
}

/* Of their kind: the GPU's own, unless pinned memory was asked for. */
static int images_allocate(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct session_images *images = &session->images;
	struct region_config config = {
		.gpu = session->memory.gpu,
		.kind = !session->plan.cuda				   ? GDRCAP_MEMORY_HOST
			: session->settings.memory == GDRCAP_MEMORY_PINNED ? GDRCAP_MEMORY_PINNED
									   : GDRCAP_MEMORY_DEVICE,
		.slot_shift = REGION_IMAGE_SHIFT,
		.cpu_workers = !session->plan.cuda,
		.dump = session->settings.dump_frames,
		.less = "ring: in image",
	};
	const struct kernel_ops *ops = session->memory.ops;
	size_t device_used, host_used;
	int ret;

	images_lay_out(images, &device_used, &host_used);
	config.bytes = device_used;
	ret = region_create(&images->device, &config, error);
	if (ret < 0)
		return ret;
	config.kind = session->plan.cuda ? GDRCAP_MEMORY_PINNED : GDRCAP_MEMORY_HOST;
	config.bytes = host_used;
	ret = region_create(&images->host, &config, error);
	if (ret < 0)
		return ret;
	images_lay_out(images, &device_used, &host_used);
	ret = ops->fill(session->memory.device, images->device.device, 0, images->device.bytes);
	if (ret < 0)
		return error_set(error, ret, "the images' memory cannot be cleared: %s",
				 kernel_error());
	log_info("memory: images in %s memory, %zu MiB", plan_memory_name(images->device.kind),
		 images->device.bytes >> 20);
	return 0;
}

/* ---- for the assembler ---- */

static int image_close(void *context, uint32_t slot, uint32_t use, uint32_t pieces, int fill)
{
	const struct session_image *image = context;
	struct gdrcap_session *session = image->session;

	return session->memory.ops->place_close(session->memory.device,
						&session->images.view[image->index], slot, use,
						pieces, fill);
}

static int image_close_whole(void *context, const struct place_whole *images, uint32_t count)
{
	const struct session_image *image = context;
	struct gdrcap_session *session = image->session;

	return session->memory.ops->place_close_whole(
		session->memory.device, &session->images.view[image->index], images, count);
}

static uint64_t image_time_ns(void *context, uint64_t ticks)
{
	const struct session_image *image = context;
	const double ago =
		(double)(int64_t)(rte_rdtsc() - ticks) * image->session->images.ns_a_tick;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - (uint64_t)(int64_t)ago;
}

static uint64_t image_began(void *context)
{
	const struct gdrcap_session *session = ((const struct session_image *)context)->session;
	uint64_t last = session->run.start_tsc;

	if (session->ports.clock)
		return session->ports.clock->began;

	for (uint32_t i = 0; i < session->workers.rx_count; i++)
		last = RTE_MAX(last, atomic_load_explicit(&session->workers.rx[i].began_tsc,
							  memory_order_relaxed));
	return last;
}

/* A sender that fell silent had no more to send, or it was lost; a file ends where its capture did. */
static bool image_came_on(void *context)
{
	const struct gdrcap_session *session = ((const struct session_image *)context)->session;

	return !session->run.ended_idle || session_reads_files_only(session);
}

static bool image_has_all(void *context)
{
	const struct gdrcap_session *session = ((const struct session_image *)context)->session;
	uint64_t found = 0;

	for (uint32_t i = 0; i < session->images.count; i++)
		found += session->images.handed[i].assembler.found;
	return session->settings.images_wanted && found >= session->settings.images_wanted;
}

/* In a run of files times are ns: session_clock_create(). */
static uint64_t time_of(const struct gdrcap_session *session, uint64_t us)
{
	return session_reads_files_only(session) ? 1000 * us : us * (rte_get_tsc_hz() / 1000000);
}

static void image_init(struct gdrcap_session *session, uint32_t index)
{
	struct session_images *images = &session->images;
	const struct image_settings *settings = &session->settings.image[index];
	const bool files = session_reads_files_only(session);
	const struct assembler_config config = {
		.view = &images->view[index],
		.data = images->view[index].images,
		.open = settings->open,
		.timeout = time_of(session, settings->timeout_us),
		.linger = time_of(session, settings->linger_us),
		.shut = time_of(session, ASSEMBLER_SHUT_US),
		.dated = files,
		.fill = settings->fill,
		.drop_incomplete = settings->drop_incomplete,
		/* A file waits: there is no need to. */
		.drop_oldest = settings->drop_oldest && !files,
		.close = image_close,
		.close_whole = image_close_whole,
		.began = image_began,
		.came_on = image_came_on,
		.has_all = image_has_all,
		.time_ns = files ? NULL : image_time_ns,
		.ns_a_tick = images->ns_a_tick,
		.context = &images->image[index],
	};

	images->image[index] = (struct session_image){ session, index };
	images_init(&images->handed[index], &config, session->memory.ops, session->memory.device,
		    settings->name);
	image_gpu_init(&images->handed[index].gpu, images->gpu[index], images->view[index].ring);
}

int session_images_create(struct gdrcap_session *session, struct gdrcap_error *error)
{
	struct session_images *images = &session->images;
	int ret = 0;

	if (!session->settings.images)
		return 0;
	images->handed = calloc(session->settings.images, sizeof(*images->handed));
	if (!images->handed)
		return error_set(error, -ENOMEM, "no memory for the images' accounts");
	images->count = session->settings.images;
	images->running = session->settings.consumer == CONSUMER_GPU;
	images->ns_a_tick = 1e9 / (double)rte_get_tsc_hz();
	for (uint32_t i = 0; i < images->count; i++) {
		const struct image_settings *settings = &session->settings.image[i];

		images->view[i].layout = settings->layout;
		images->view[i].stride = RTE_ALIGN_CEIL(
			image_in_buffer(&settings->layout, settings->layout.bytes), PART_BYTES);
		images->view[i].present_words = place_words(settings->layout.pieces);
		images->view[i].ring = settings->ring;
		images->resident |= settings->engine == IMAGE_ENGINE_RESIDENT ||
				    (settings->engine == IMAGE_ENGINE_AUTO && images->running) ||
				    /* else the CPU would look at what a front publishes */
				    session->settings.rx_by == RX_BY_GPU;
	}
	for (uint32_t i = 0; i < images->count && ret == 0; i++)
		ret = error_of_config(error, own_take(session, i, error));
	if (ret == 0)
		ret = images_allocate(session, error);
	if (ret < 0) {
		session_images_destroy(session);
		return ret;
	}
	for (uint32_t i = 0; i < images->count; i++)
		image_init(session, i);
	return 0;
}

void session_images_end(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->images.count; i++)
		images_end(&session->images.handed[i]);
}

void session_images_leave(struct gdrcap_session *session)
{
	for (uint32_t i = 0; i < session->images.count; i++)
		image_gpu_end(&session->images.handed[i].gpu);
}

int session_images_failure(const struct gdrcap_session *session)
{
	int failure = 0;

	for (uint32_t i = 0; i < session->images.count && !failure; i++)
		failure = atomic_load_explicit(&session->images.handed[i].assembler.failure,
					       memory_order_relaxed);
	return failure;
}

void session_images_destroy(struct gdrcap_session *session)
{
	struct session_images *images = &session->images;

	for (uint32_t i = 0; i < images->count; i++)
		ring_wake_close(&images->handed[i].ring.wake);
	region_destroy(&images->host);
	region_destroy(&images->device);
	free(images->handed);
	images->handed = NULL;
	images->count = 0;
}

struct gdrcap_images *gdrcap_get_images(struct gdrcap_session *session, uint32_t index)
{
	if (guest_check(session, "session", NULL) < 0)
		return NULL;
	return index < session->images.count ? &session->images.handed[index] : NULL;
}

int gdrcap_get_gpu_images(struct gdrcap_images *images, struct gdrcap_gpu_images *gpu_images,
			  size_t size)
{
	const int ret = answer_check(images, "images", gpu_images, size);
	struct gdrcap_gpu_images all;

	if (ret < 0 || !images->gpu.entry)
		return ret < 0 ? ret : -EINVAL;
	all = image_gpu_view(&images->gpu);
	answer_give(gpu_images, size, &all, sizeof(all));
	return 0;
}
