/* SPDX-License-Identifier: BSD-3-Clause */
/* Images copied on the GPU, into memory of gst-plugins-bad's CUDA library. */
#include <dlfcn.h>

#include <gst/cuda/gstcudautils.h>

#include "cuda_memory.h"

struct cuda {
	GstCudaContext *context;
	GstCudaAllocator *allocator;
	CUstream stream;
	GstVideoInfo info;
};

GstCaps *cuda_caps(const GstCaps *caps)
{
	GstCaps *copy = gst_caps_copy(caps);

	gst_caps_set_features(copy, 0,
			      gst_caps_features_new(GST_CAPS_FEATURE_MEMORY_CUDA_MEMORY, NULL));
	return copy;
}

/* The context that the image was allocated in: the CUDA Runtime's. GStreamer would make another, and
 * memory of two contexts is copied as if it were two GPUs'. The library does not lend this call. */
static GstCudaContext *context_of(const struct gdrcap_image *image)
{
	CUresult (*attribute)(void *data, CUpointer_attribute which, CUdeviceptr at) = NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	const CUdeviceptr at = (CUdeviceptr)(guintptr)image->data;
	CUcontext context = NULL;
	int ordinal = -1;

	if (driver)
		*(void **)&attribute = dlsym(driver, "cuPointerGetAttribute");
	if (!attribute || attribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at) != CUDA_SUCCESS ||
	    attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) != CUDA_SUCCESS)
		context = NULL;
	if (driver)
		dlclose(driver); /* others hold it: it was there */
	return context && gst_cuda_load_library() ? gst_cuda_context_new_wrapped(context, ordinal)
						  : NULL;
}

void cuda_free(struct cuda *cuda)
{
	if (!cuda)
		return;
	if (cuda->stream && gst_cuda_context_push(cuda->context)) {
		CuStreamDestroy(cuda->stream);
		gst_cuda_context_pop(NULL);
	}
	gst_clear_object(&cuda->allocator);
	gst_clear_object(&cuda->context);
	g_free(cuda);
}

struct cuda *cuda_new(const struct gdrcap_image *image, const GstVideoInfo *info)
{
	struct cuda *cuda = g_new0(struct cuda, 1);
	GstMemory *one = NULL;

	cuda->info = *info;
	cuda->context = context_of(image);
	if (cuda->context && gst_cuda_context_push(cuda->context)) {
		/* Not the default stream, which waits for others and others for it. */
		if (CuStreamCreate(&cuda->stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
			cuda->stream = NULL;
		gst_cuda_context_pop(NULL);
	}
	if (cuda->stream) {
		gst_cuda_memory_init_once();
		cuda->allocator = (GstCudaAllocator *)gst_allocator_find(GST_CUDA_MEMORY_TYPE_NAME);
	}
	if (cuda->allocator) /* not every format has memory */
		one = gst_cuda_allocator_alloc(cuda->allocator, cuda->context, &cuda->info);
	if (!one) {
		cuda_free(cuda);
		return NULL;
	}
	gst_memory_unref(one);
	return cuda;
}

gboolean cuda_query(struct cuda *cuda, GstElement *element, GstQuery *query)
{
	return gst_cuda_handle_context_query(element, query, cuda->context);
}

static gboolean rows_copy(struct cuda *cuda, CUdeviceptr to, gsize pitch,
			  const struct gdrcap_image *image, const struct pixels *pixels)
{
	const CUDA_MEMCPY2D copy = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = (CUdeviceptr)(guintptr)image->data,
		.srcPitch = pixels->stride,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.dstPitch = pitch,
		.WidthInBytes = pixels->row,
		.Height = pixels->rows,
	};
	gboolean copied;

	if (!gst_cuda_context_push(cuda->context))
		return FALSE;
	copied = CuMemcpy2DAsync(&copy, cuda->stream) == CUDA_SUCCESS &&
		 CuStreamSynchronize(cuda->stream) == CUDA_SUCCESS;
	gst_cuda_context_pop(NULL);
	return copied;
}

gboolean cuda_fill(struct cuda *cuda, GstBuffer *buffer, const struct gdrcap_image *image,
		   const struct pixels *pixels)
{
	GstMemory *memory = gst_cuda_allocator_alloc(cuda->allocator, cuda->context, &cuda->info);
	gint stride[GST_VIDEO_MAX_PLANES] = { 0 };
	gsize offset[GST_VIDEO_MAX_PLANES] = { 0 };
	GstMapInfo map;
	gboolean copied;

	if (!memory)
		return FALSE;
	if (!gst_memory_map(memory, &map, GST_MAP_WRITE | GST_MAP_CUDA)) {
		gst_memory_unref(memory);
		return FALSE;
	}
	stride[0] = GST_VIDEO_INFO_PLANE_STRIDE(&GST_CUDA_MEMORY_CAST(memory)->info, 0);
	copied = rows_copy(cuda, (CUdeviceptr)(guintptr)map.data, (gsize)stride[0], image, pixels);
	gst_memory_unmap(memory, &map);
	gst_buffer_append_memory(buffer, memory);
	gst_buffer_add_video_meta_full(
		buffer, GST_VIDEO_FRAME_FLAG_NONE, GST_VIDEO_INFO_FORMAT(&cuda->info),
		(guint)GST_VIDEO_INFO_WIDTH(&cuda->info), pixels->rows, 1, offset, stride);
	return copied;
}
