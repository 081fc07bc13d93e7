/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Releases behind CUDA streams, by the driver that the process has loaded: nothing of CUDA is linked.
 *
 * Whoever drops a tensor does not say on which streams it is still read; all that it was given to are
 * known. A lane is a stream of ours that waits for those, and behind which the buffer is given back: so
 * several streams can be waited for, none of the caller's has to live on, and the lanes say when all has
 * come back, before the session is destroyed.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "native.h"

#define LANES 8u /* of a session: one a stream of the caller's, while there are no more */

#define CU_POINTER_MEMORY_TYPE 2
#define CU_POINTER_DEVICE 9
#define CU_MEMORY_HOST 1u
#define CU_MEMORY_DEVICE 2u
#define CU_STREAM_NON_BLOCKING 1u
#define CU_EVENT_DISABLE_TIMING 2u

typedef void *cu_handle; /* CUstream, CUevent, CUcontext */

static struct {
	int (*cuPointerGetAttribute)(void *value, int attribute, uint64_t at);
	int (*cuDevicePrimaryCtxRetain)(cu_handle *context, int device);
	int (*cuDevicePrimaryCtxRelease_v2)(int device);
	int (*cuCtxPushCurrent_v2)(cu_handle context);
	int (*cuCtxPopCurrent_v2)(cu_handle *context);
	int (*cuStreamCreate)(cu_handle *stream, unsigned int flags);
	int (*cuStreamDestroy_v2)(cu_handle stream);
	int (*cuStreamSynchronize)(cu_handle stream);
	int (*cuStreamWaitEvent)(cu_handle stream, cu_handle event, unsigned int flags);
	int (*cuEventCreate)(cu_handle *event, unsigned int flags);
	int (*cuEventDestroy_v2)(cu_handle event);
	int (*cuEventRecord)(cu_handle event, cu_handle stream);
	int (*cuEventQuery)(cu_handle event);
	bool there;
} cu;

static void cu_load(void)
{
	/* Null without a driver; never closed. */
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	bool there = library != NULL;

#define LOAD(name)                                                                                 \
	do {                                                                                       \
		*(void **)&cu.name = there ? dlsym(library, #name) : NULL;                         \
		there = there && cu.name;                                                          \
	} while (0)
	LOAD(cuPointerGetAttribute);
	LOAD(cuDevicePrimaryCtxRetain);
	LOAD(cuDevicePrimaryCtxRelease_v2);
	LOAD(cuCtxPushCurrent_v2);
	LOAD(cuCtxPopCurrent_v2);
	LOAD(cuStreamCreate);
	LOAD(cuStreamDestroy_v2);
	LOAD(cuStreamSynchronize);
	LOAD(cuStreamWaitEvent);
	LOAD(cuEventCreate);
	LOAD(cuEventDestroy_v2);
	LOAD(cuEventRecord);
	LOAD(cuEventQuery);
#undef LOAD
	cu.there = there;
}

static bool cu_there(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, cu_load);
	return cu.there;
}

struct dlpack_device cuda_device_of(const void *data)
{
	struct dlpack_device device = { DLPACK_CPU, 0 };
	unsigned int type = 0;
	int ordinal = 0;

	if (cu_there() &&
	    cu.cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, (uintptr_t)data) == 0 &&
	    type == CU_MEMORY_DEVICE &&
	    cu.cuPointerGetAttribute(&ordinal, CU_POINTER_DEVICE, (uintptr_t)data) == 0) {
		device.type = DLPACK_CUDA;
		device.id = ordinal;
	}
	return device;
}

int cuda_gpu_of(const void *data)
{
	int ordinal = 0;

	return cu_there() && cu.cuPointerGetAttribute(&ordinal, CU_POINTER_DEVICE,
						      (uintptr_t)data) == 0
		       ? ordinal
		       : 0;
}

enum gdrcap_memory cuda_memory_of(const struct handle *handle, const void *data)
{
	unsigned int type = 0;

	if (!handle->cuda || !cu_there() ||
	    cu.cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, (uintptr_t)data))
		return GDRCAP_MEMORY_HOST;
	return type == CU_MEMORY_DEVICE ? GDRCAP_MEMORY_DEVICE
	       : type == CU_MEMORY_HOST ? GDRCAP_MEMORY_PINNED
					: GDRCAP_MEMORY_HOST;
}

/* ---- lanes ---- */

struct lane {
	uint64_t caller; /* the stream that it began with */
	cu_handle stream, event;
};

struct cuda_lanes {
	pthread_mutex_t lock;
	int device;
	cu_handle
		context; /* the primary one, as the library and everybody else has; NULL: none yet */
	struct lane lane[LANES];
	uint32_t count;
};

struct cuda_lanes *cuda_lanes_new(void)
{
	struct cuda_lanes *lanes = calloc(1, sizeof(*lanes));

	if (lanes)
		pthread_mutex_init(&lanes->lock, NULL);
	return lanes;
}

/* With the lock and the context. NULL: CUDA refuses. */
static struct lane *lane_for(struct cuda_lanes *lanes, uint64_t caller)
{
	struct lane *lane;

	for (uint32_t i = 0; i < lanes->count; i++)
		if (lanes->lane[i].caller == caller)
			return &lanes->lane[i];
	if (lanes->count == LANES)
		return &lanes->lane[(caller >> 4) % LANES];
	lane = &lanes->lane[lanes->count];
	if (cu.cuEventCreate(&lane->event, CU_EVENT_DISABLE_TIMING))
		return NULL;
	if (cu.cuStreamCreate(&lane->stream, CU_STREAM_NON_BLOCKING)) {
		cu.cuEventDestroy_v2(lane->event);
		return NULL;
	}
	lane->caller = caller;
	lanes->count++;
	return lane;
}

/* With the lock and the context: a lane that comes behind all of these; NULL: CUDA refuses. */
static struct lane *lane_behind(struct cuda_lanes *lanes, const uint64_t *stream, uint32_t streams)
{
	struct lane *lane = lane_for(lanes, stream[0]);

	/* An event may be recorded again at once: a stream waits for what it was when it was told to. */
	for (uint32_t i = 0; lane && i < streams; i++)
		if (cu.cuEventRecord(lane->event, (cu_handle)(uintptr_t)stream[i]) ||
		    cu.cuStreamWaitEvent(lane->stream, lane->event, 0))
			return NULL;
	return lane;
}

int cuda_behind(struct handle *handle, int device, const uint64_t *stream, uint32_t streams,
		int (*then)(void *context, struct CUstream_st *behind), void *context)
{
	struct cuda_lanes *lanes = handle->cuda;
	cu_handle popped;
	int ret = -EIO;

	if (!lanes || !cu_there())
		return -ENODEV;
	pthread_mutex_lock(&lanes->lock);
	if (!lanes->context) {
		lanes->device = device;
		if (cu.cuDevicePrimaryCtxRetain(&lanes->context, lanes->device))
			lanes->context = NULL;
	}
	if (lanes->context && cu.cuCtxPushCurrent_v2(lanes->context) == 0) {
		struct lane *lane = lane_behind(lanes, stream, streams);

		if (lane)
			ret = then(context, lane->stream);
		cu.cuCtxPopCurrent_v2(&popped);
	}
	pthread_mutex_unlock(&lanes->lock);
	return ret;
}

static int release_then(void *context, struct CUstream_st *behind)
{
	const struct lease *lease = context;
	const int ret =
		lease->image ? gdrcap_image_release_after(lease->images, &lease->image, 1, behind)
			     : gdrcap_release_after(lease->queue, &lease->batch, 1, behind);

	return ret < 0 ? ret : 0;
}

int cuda_release(struct handle *handle, const struct lease *lease)
{
	return cuda_behind(handle, lease->device.id, lease->stream, lease->streams, release_then,
			   (void *)(uintptr_t)lease);
}

/* ---- marks ---- */

static int mark_then(void *context, struct CUstream_st *behind)
{
	struct lease *lease = context;

	if (cu.cuEventCreate(&lease->mark, CU_EVENT_DISABLE_TIMING)) {
		lease->mark = NULL;
		return -EIO;
	}
	if (cu.cuEventRecord(lease->mark, behind) == 0)
		return 0;
	cu.cuEventDestroy_v2(lease->mark);
	lease->mark = NULL;
	return -EIO;
}

int cuda_mark(struct handle *handle, struct lease *lease)
{
	return cuda_behind(handle, handle->slot_gpu, lease->stream, lease->streams, mark_then,
			   lease);
}

bool cuda_marked(struct handle *handle, struct lease *lease, bool ends)
{
	struct cuda_lanes *lanes = handle->cuda;
	bool passed = false;
	cu_handle popped;

	pthread_mutex_lock(&lanes->lock);
	if (cu.cuCtxPushCurrent_v2(lanes->context) == 0) {
		passed = cu.cuEventQuery(lease->mark) == 0;
		if (passed || ends) {
			cu.cuEventDestroy_v2(lease->mark);
			lease->mark = NULL;
		}
		cu.cuCtxPopCurrent_v2(&popped);
	}
	pthread_mutex_unlock(&lanes->lock);
	return passed;
}

void cuda_finish(struct handle *handle)
{
	struct cuda_lanes *lanes = handle->cuda;
	cu_handle popped;

	if (!lanes)
		return;
	if (lanes->context && !handle_is_childs(handle) &&
	    cu.cuCtxPushCurrent_v2(lanes->context) == 0) {
		for (uint32_t i = 0; i < lanes->count; i++) {
			cu.cuStreamSynchronize(lanes->lane[i].stream);
			cu.cuStreamDestroy_v2(lanes->lane[i].stream);
			cu.cuEventDestroy_v2(lanes->lane[i].event);
		}
		cu.cuCtxPopCurrent_v2(&popped);
		cu.cuDevicePrimaryCtxRelease_v2(lanes->device);
	}
	pthread_mutex_destroy(&lanes->lock);
	free(lanes);
}
