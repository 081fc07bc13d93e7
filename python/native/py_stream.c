/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream-ordered calls (gdrcap_stream.h), and what kernels between them are passed. */
#include <errno.h>

#include "native.h"

/* As python/gdrcap/_streams.py names them. */
enum ordered {
	BATCH_WAIT,
	BATCH_RELEASE,
	IMAGE_WAIT,
	IMAGE_RELEASE,
	FRAMES_ROOM,
	FRAMES_SEND,
};

struct order {
	unsigned int what, index;
	unsigned long long seq;
	unsigned int count;
	uint64_t stream;
};

static int order_call(struct gdrcap_session *session, const struct order *order,
		      struct gdrcap_error *error)
{
	struct CUstream_st *stream = (struct CUstream_st *)(uintptr_t)order->stream;
	struct gdrcap_queue *queue = gdrcap_get_queue(session, order->index);
	struct gdrcap_images *images = gdrcap_get_images(session, order->index);
	struct gdrcap_tx *tx = gdrcap_get_tx(session, order->index);

	switch ((enum ordered)order->what) {
	case BATCH_WAIT:
		return gdrcap_wait_on_stream(queue, order->seq, stream, error);
	case BATCH_RELEASE:
		return gdrcap_release_on_stream(queue, order->seq, stream, error);
	case IMAGE_WAIT:
		return gdrcap_image_wait_on_stream(images, order->seq, stream, error);
	case IMAGE_RELEASE:
		return gdrcap_image_release_on_stream(images, order->seq, stream, error);
	case FRAMES_ROOM:
		return gdrcap_room_on_stream(tx, order->seq, order->count, stream, error);
	case FRAMES_SEND:
		return gdrcap_send_on_stream(tx, order->seq, order->count, stream, error);
	}
	return -EINVAL;
}

PyObject *stream_order(struct handle *handle, PyObject *args)
{
	struct gdrcap_error error = { 0 };
	struct order order = { 0 };
	PyObject *stream;
	int ret;

	if (!PyArg_ParseTuple(args, "IIKIO:on_stream", &order.what, &order.index, &order.seq,
			      &order.count, &stream))
		return NULL;
	if (stream != Py_None && stream_from_object(stream, &order.stream) < 0)
		return NULL;
	handle_ref(handle);
	/* Without a GPU a wait takes as long as it takes. */
	Py_BEGIN_ALLOW_THREADS;
	ret = order_call(handle->session, &order, &error);
	Py_END_ALLOW_THREADS;
	handle_let_go(handle);
	if (ret == -ESHUTDOWN) {
		PyErr_SetString(PyExc_EOFError, error.text);
		return NULL;
	}
	if (ret < 0)
		return raise_error(&error);
	Py_RETURN_NONE;
}

PyObject *stream_view(struct handle *handle, PyObject *args)
{
	struct gdrcap_gpu_queue queue = { 0 };
	struct gdrcap_gpu_images images = { 0 };
	struct gdrcap_gpu_tx tx = { 0 };
	unsigned int what, index;
	const void *view = &tx;
	size_t bytes = sizeof(tx);
	int ret;

	if (!PyArg_ParseTuple(args, "II:view", &what, &index))
		return NULL;
	if (what == BATCH_WAIT) {
		view = &queue;
		bytes = sizeof(queue);
		ret = gdrcap_get_gpu_queue(gdrcap_get_queue(handle->session, index), &queue, bytes);
	} else if (what == IMAGE_WAIT) {
		view = &images;
		bytes = sizeof(images);
		ret = gdrcap_get_gpu_images(gdrcap_get_images(handle->session, index), &images,
					    bytes);
	} else {
		ret = gdrcap_get_gpu_tx(gdrcap_get_tx(handle->session, index), &tx, bytes);
	}
	if (ret < 0)
		return raise_code(ret, "there is no such number %u for streams: set %s", index,
				  what == FRAMES_ROOM ? "sender: gpu" : "consumer: gpu");
	return PyBytes_FromStringAndSize(view, (Py_ssize_t)bytes);
}
