/* SPDX-License-Identifier: BSD-3-Clause */
/* Images and batches with a count of who looks at their memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

static struct lease *lease_new(struct handle *handle, struct dlpack_device *device,
			       const void *data)
{
	struct lease *lease = calloc(1, sizeof(*lease));

	if (!lease) {
		PyErr_NoMemory();
		return NULL;
	}
	if (device->type == 0)
		*device = handle->cuda ? cuda_device_of(data)
				       : (struct dlpack_device){ DLPACK_CPU, 0 };
	atomic_init(&lease->refs, 1);
	lease->handle = handle;
	lease->device = *device;
	handle_ref(handle);
	return lease;
}

struct lease *lease_new_image(struct handle *handle, uint32_t index, struct gdrcap_images *images,
			      const struct gdrcap_image *image)
{
	struct lease *lease = lease_new(handle, &handle->image_device[index], image->data);

	if (!lease) {
		gdrcap_image_release(images, &image, 1);
		return NULL;
	}
	lease->images = images;
	lease->image = image;
	return lease;
}

struct lease *lease_new_batch(struct handle *handle, struct gdrcap_queue *queue,
			      const struct gdrcap_batch *batch)
{
	struct lease *lease = lease_new(handle, &handle->frame_device, batch->data);

	if (!lease) {
		gdrcap_release(queue, &batch, 1);
		return NULL;
	}
	lease->queue = queue;
	lease->batch = batch;
	return lease;
}

struct lease *lease_new_slot(struct handle *handle, struct gdrcap_tx *tx,
			     const struct gdrcap_tx_frame *frame)
{
	struct lease *lease = lease_new(handle, &handle->slot_device, frame->data);

	if (!lease) {
		gdrcap_tx_cancel(tx, frame, 1);
		return NULL;
	}
	lease->tx = tx;
	lease->frame = *frame;
	return lease;
}

struct lease *lease_ref(struct lease *lease)
{
	atomic_fetch_add_explicit(&lease->refs, 1, memory_order_relaxed);
	return lease;
}

/* Tells why a buffer is lost, by the way of the session's lines. */
static void lease_lost(const struct lease *lease, int code)
{
	char line[256];

	snprintf(
		line, sizeof(line),
		"%s cannot be given back behind its CUDA streams (%s): its buffer is not used again "
		"in this run; keep a stream until the tensors that were taken on it are gone",
		lease->tx      ? "a slot"
		: lease->image ? "an image"
			       : "a batch",
		strerror(-code));
	log_line(lease->handle->log, GDRCAP_LOG_ERROR, line);
}

/* A send queue is one thread's at a time, and this may be any, where nobody may wait: so one that was not
 * submitted is put where the next one who sends finds it. */
static void slot_give_back(struct lease *lease)
{
	struct handle *handle = lease->handle;
	int ret = 0;

	if (!lease->submitted && lease->streams && !handle_is_childs(handle))
		ret = cuda_mark(handle, lease);
	if (ret < 0)
		lease_lost(lease, ret);
	if (lease->submitted || ret < 0) {
		free(lease);
	} else {
		pthread_mutex_lock(&handle->dropping);
		lease->next = handle->dropped;
		handle->dropped = lease;
		pthread_mutex_unlock(&handle->dropping);
	}
	handle_unref(handle);
}

static struct lease *dropped_take(struct handle *handle)
{
	struct lease *lease;

	pthread_mutex_lock(&handle->dropping);
	lease = handle->dropped;
	handle->dropped = NULL;
	pthread_mutex_unlock(&handle->dropping);
	return lease;
}

void leases_cancel(struct handle *handle)
{
	struct lease *lease = dropped_take(handle), *next;

	for (; lease; lease = next) {
		next = lease->next;
		/* A kernel may still write to it. */
		if (lease->mark && !cuda_marked(handle, lease, false)) {
			pthread_mutex_lock(&handle->dropping);
			lease->next = handle->dropped;
			handle->dropped = lease;
			pthread_mutex_unlock(&handle->dropping);
			continue;
		}
		gdrcap_tx_cancel(lease->tx, &lease->frame, 1);
		free(lease);
	}
}

void leases_forget(struct handle *handle)
{
	struct lease *lease = dropped_take(handle), *next;

	for (; lease; lease = next) {
		next = lease->next;
		if (lease->mark && !handle_is_childs(handle))
			cuda_marked(handle, lease, true);
		free(lease);
	}
}

/* With the last reference. */
static void lease_give_back(struct lease *lease)
{
	struct handle *handle = lease->handle;
	int ret = 0;

	if (lease->tx)
		return slot_give_back(lease);
	if (lease->streams && !handle_is_childs(handle))
		ret = cuda_release(handle, lease);
	else if (lease->image)
		gdrcap_image_release(lease->images, &lease->image, 1);
	else
		gdrcap_release(lease->queue, &lease->batch, 1);
	if (ret < 0)
		lease_lost(lease, ret);
	free(lease);
	handle_unref(handle);
}

static bool lease_drop(struct lease *lease)
{
	/* Release: this reader's last look comes before the buffer is used again; acquire: for who
	 * gives it back. */
	return atomic_fetch_sub_explicit(&lease->refs, 1, memory_order_acq_rel) == 1;
}

void lease_unref(struct lease *lease)
{
	if (lease && lease_drop(lease))
		lease_give_back(lease);
}

void lease_unref_gil(struct lease *lease)
{
	/* Only the end of a session takes long. */
	if (!lease || !lease_drop(lease))
		return;
	if (atomic_load_explicit(&lease->handle->refs, memory_order_relaxed) > 1) {
		lease_give_back(lease);
		return;
	}
	Py_BEGIN_ALLOW_THREADS;
	lease_give_back(lease);
	Py_END_ALLOW_THREADS;
}

int lease_copy(struct lease *lease, uint64_t from, uint64_t bytes, void *to)
{
	int ret;

	/* Another thread may release the image meanwhile. */
	lease_ref(lease);
	Py_BEGIN_ALLOW_THREADS;
	pthread_mutex_lock(&lease->handle->copying);
	ret = gdrcap_image_copy(lease->image, from, bytes, to);
	pthread_mutex_unlock(&lease->handle->copying);
	Py_END_ALLOW_THREADS;
	lease_unref_gil(lease);
	return ret;
}

int lease_add_stream(struct lease *lease, uint64_t stream)
{
	if (stream == 0)
		return 0;
	for (uint32_t i = 0; i < lease->streams; i++)
		if (lease->stream[i] == stream)
			return 0;
	if (lease->streams == LEASE_STREAMS) {
		PyErr_Format(PyExc_BufferError,
			     "it was given to %u CUDA streams already, and more cannot be "
			     "remembered; copy it on one of them",
			     LEASE_STREAMS);
		return -1;
	}
	lease->stream[lease->streams++] = stream;
	return 0;
}

/* CUDA's own protocol, which numba-cuda, cuda.core and newer others have: a method, or a tuple at first. NULL without
 * an exception: the object has none. */
static PyObject *protocol_handle(PyObject *object)
{
	PyObject *pair = PyObject_GetAttrString(object, "__cuda_stream__"), *handle = NULL;

	if (pair && PyCallable_Check(pair)) {
		PyObject *called = PyObject_CallNoArgs(pair);

		Py_DECREF(pair);
		if (!called)
			return NULL;
		pair = called;
	}
	if (pair && PyTuple_Check(pair) && PyTuple_Size(pair) == 2)
		handle = Py_XNewRef(PyTuple_GetItem(pair, 1));
	else if (!pair && PyErr_ExceptionMatches(PyExc_AttributeError))
		PyErr_Clear();
	Py_XDECREF(pair);
	return handle;
}

int stream_from_object(PyObject *object, uint64_t *stream)
{
	static const char *const names[] = { "cuda_stream", "ptr" };
	PyObject *number = PyLong_Check(object) ? Py_NewRef(object) : protocol_handle(object);

	if (PyErr_Occurred())
		return -1;
	for (size_t i = 0; !number && i < sizeof(names) / sizeof(names[0]); i++) {
		number = PyObject_GetAttrString(object, names[i]);
		if (!number && !PyErr_ExceptionMatches(PyExc_AttributeError))
			return -1;
		PyErr_Clear();
	}
	if (!number || !PyLong_Check(number)) {
		Py_XDECREF(number);
		PyErr_SetString(
			PyExc_TypeError,
			"stream: an integer handle, torch.cuda.Stream, cupy.cuda.Stream or an object "
			"with __cuda_stream__ is expected");
		return -1;
	}
	*stream = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (PyErr_Occurred())
		return -1;
	/* The null stream, by the name that every thread gives it. */
	if (*stream == 0)
		*stream = CUDA_STREAM_LEGACY;
	return 0;
}
