/* SPDX-License-Identifier: BSD-3-Clause */
/* Submitting: slots that the caller filled, and copies of frames of his. */
#include <errno.h>
#include <string.h>

#include "sender.h"

#define CHUNK 64u	 /* frames that are copied at once */
#define STREAMS_MOST 16u /* of all frames that are submitted together */
#define FRAME_LEAST 60u	 /* without FCS; a copy is padded to it */

/* ---- slots ---- */

struct order {
	struct sender_object *sender;
	struct gdrcap_tx *tx;
	struct lease **lease;
	struct gdrcap_tx_frame *frames;
	PyObject *list;
	Py_ssize_t count; /* that are taken */
	uint64_t stream[STREAMS_MOST];
	uint32_t streams;
	struct gdrcap_error error;
};

static int order_add_stream(struct order *order, uint64_t stream)
{
	for (uint32_t i = 0; i < order->streams; i++)
		if (order->stream[i] == stream)
			return 0;
	if (order->streams == STREAMS_MOST) {
		PyErr_Format(PyExc_ValueError,
			     "more than %u CUDA streams write these slots: submit fewer at once",
			     STREAMS_MOST);
		return -1;
	}
	order->stream[order->streams++] = stream;
	return 0;
}

/* The slots' leases, and the streams that they were given to. */
static int order_take(struct order *order)
{
	const Py_ssize_t all = PyList_Size(order->list);

	for (order->count = 0; order->count < all; order->count++) {
		struct lease *lease = slot_take(PyList_GetItem(order->list, order->count),
						order->tx, order->count);

		if (!lease)
			return -1;
		order->lease[order->count] = lease;
		order->frames[order->count] = lease->frame;
		for (uint32_t i = 0; i < lease->streams; i++)
			if (order_add_stream(order, lease->stream[i]) < 0) {
				order->count++;
				return -1;
			}
	}
	return 0;
}

static void order_put_back(struct order *order)
{
	while (order->count-- > 0)
		slot_put_back(PyList_GetItem(order->list, order->count),
			      order->lease[order->count]);
}

static void order_done(struct order *order)
{
	for (Py_ssize_t i = 0; i < order->count; i++) {
		order->lease[i]->submitted = true;
		lease_unref_gil(order->lease[i]);
	}
}

static int submit_then(void *context, struct CUstream_st *behind)
{
	struct order *order = context;

	return gdrcap_tx_submit_after(order->tx, order->frames, (unsigned int)order->count, behind,
				      &order->error);
}

/* 0 or a negative errno, and an exception. */
static int order_submit(struct order *order, struct handle *handle)
{
	int ret;

	if (!order->streams) {
		ret = gdrcap_tx_submit(order->tx, order->frames, (unsigned int)order->count,
				       &order->error);
	} else {
		Py_BEGIN_ALLOW_THREADS;
		ret = cuda_behind(handle, handle->slot_gpu, order->stream, order->streams,
				  submit_then, order);
		Py_END_ALLOW_THREADS;
	}
	if (ret == -ESHUTDOWN)
		raise_over();
	else if (ret < 0 && order->error.code)
		raise_error(&order->error);
	else if (ret < 0)
		raise_code(ret, "CUDA cannot wait for the stream: is it one that lives, of the "
				"session's GPU?");
	return ret;
}

/* What all of them are given: time and tag. */
static int order_set(struct order *order, PyObject *tag, unsigned long long time_ns)
{
	unsigned long long number = 0;

	if (tag != Py_None) {
		number = PyLong_AsUnsignedLongLong(tag);
		if (PyErr_Occurred())
			return -1;
	}
	for (Py_ssize_t i = 0; i < order->count; i++) {
		struct gdrcap_tx_frame *frame = &order->frames[i];

		if (time_ns)
			frame->time_ns = time_ns;
		if (tag == Py_None)
			continue;
		frame->tag = number;
		frame->flags |= GDRCAP_TX_TELL;
	}
	return 0;
}

static int order_after(struct order *order, const struct handle *handle, PyObject *after)
{
	uint64_t stream;

	if (after == Py_None)
		return 0;
	if (!handle->cuda) {
		PyErr_SetString(
			PyExc_ValueError,
			"after: this session has no GPU (gpu: host), and waits for no stream: "
			"synchronise it, and leave `after` out");
		return -1;
	}
	return stream_from_object(after, &stream) < 0 ? -1 : order_add_stream(order, stream);
}

static PyObject *order_run(struct order *order, PyObject *after, PyObject *tag,
			   unsigned long long time_ns)
{
	struct handle *handle = sender_begin(order->sender);
	int ret = -1;

	if (!handle)
		return NULL;
	if (order_after(order, handle, after) == 0 && order_take(order) == 0 &&
	    order_set(order, tag, time_ns) == 0)
		ret = order_submit(order, handle);
	if (ret < 0)
		order_put_back(order);
	else
		order_done(order);
	sender_end(handle);
	return ret < 0 ? NULL : Py_NewRef(Py_None);
}

/* submit(list of slots, after, tag, time_ns) */
PyObject *sender_submit(PyObject *self, PyObject *args)
{
	struct sender_object *sender = (struct sender_object *)self;
	struct order order = { .sender = sender, .tx = sender->tx };
	PyObject *list, *after, *tag, *done = NULL;
	unsigned long long time_ns;
	size_t count;

	if (!PyArg_ParseTuple(args, "OOOK:submit", &list, &after, &tag, &time_ns))
		return NULL;
	/* Of our own, so that nobody changes it meanwhile. */
	order.list = PySequence_List(list);
	if (!order.list)
		return NULL;
	count = (size_t)PyList_Size(order.list);
	order.lease = PyMem_Calloc(count + 1, sizeof(struct lease *));
	order.frames = PyMem_Calloc(count + 1, sizeof(*order.frames));
	if (order.lease && order.frames)
		done = order_run(&order, after, tag, time_ns);
	else
		PyErr_NoMemory();
	PyMem_Free(order.lease);
	PyMem_Free(order.frames);
	Py_DECREF(order.list);
	return done;
}

/* ---- copies ---- */

/* A frame of the caller's: all of it, or its headers and a payload in registered memory. */
struct piece {
	Py_buffer view;
	uint64_t payload, payload_bytes;
};

static int piece_get(const struct sender_object *sender, struct piece *piece, PyObject *item,
		     Py_ssize_t i)
{
	const bool pair = PyTuple_Check(item) && PyTuple_Size(item) == 2;
	uint64_t bytes;

	if (pair && span_of(PyTuple_GetItem(item, 1), &piece->payload, &piece->payload_bytes) < 0)
		return -1;
	if (PyObject_GetBuffer(pair ? PyTuple_GetItem(item, 0) : item, &piece->view, PyBUF_SIMPLE) <
	    0)
		return -1;
	bytes = (uint64_t)piece->view.len + piece->payload_bytes;
	/* 0: the run was over before anybody could ask. */
	if ((bytes <= sender->bytes_max && piece->payload_bytes <= sender->bytes_max) ||
	    sender->bytes_max == 0)
		return 0;
	raise_code(-EMSGSIZE,
		   "frame %zd: it has %llu bytes; allowed: up to %u, which is frame.size without "
		   "FCS",
		   i, (unsigned long long)bytes, sender->bytes_max);
	return -1;
}

static void piece_put(const struct piece *piece, struct gdrcap_tx_frame *frame)
{
	uint32_t bytes = (uint32_t)piece->view.len;

	memcpy(frame->data, piece->view.buf, bytes);
	if (piece->payload_bytes) {
		frame->payload = (const void *)(uintptr_t)piece->payload;
		frame->payload_bytes = (uint32_t)piece->payload_bytes;
	} else if (bytes < FRAME_LEAST) {
		memset(frame->data + bytes, 0, FRAME_LEAST - bytes);
		bytes = FRAME_LEAST;
	}
	frame->bytes = bytes;
}

/* Some of them, into slots that are free: how many, or a negative errno; with an exception: `raised`. */
static struct taken send_some(struct sender_object *sender, const struct piece *pieces,
			      size_t count, PyObject *after, PyObject *tag,
			      unsigned long long time_ns, int64_t until)
{
	struct gdrcap_tx_frame frames[CHUNK];
	struct order order = { .frames = frames, .tx = sender->tx };
	struct taken taken =
		sender_take(sender, frames, count < CHUNK ? (unsigned int)count : CHUNK, until);
	struct handle *handle;
	int ret = -1;

	if (taken.raised || taken.count <= 0)
		return taken;
	order.count = taken.count;
	/* Whoever closes the session meanwhile takes the slots, too. */
	handle = sender_begin(sender);
	if (handle) {
		for (int i = 0; i < taken.count; i++)
			piece_put(&pieces[i], &frames[i]);
		if (order_after(&order, handle, after) == 0 && order_set(&order, tag, time_ns) == 0)
			ret = order_submit(&order, handle);
		if (ret < 0)
			gdrcap_tx_cancel(order.tx, frames, (unsigned int)taken.count);
		sender_end(handle);
	}
	taken.raised = ret < 0;
	return taken;
}

static PyObject *send_all(struct sender_object *sender, const struct piece *pieces, size_t count,
			  PyObject *after, PyObject *tag, unsigned long long time_ns, int64_t until)
{
	size_t sent = 0;

	while (sent < count) {
		const struct taken taken =
			send_some(sender, &pieces[sent], count - sent, after, tag, time_ns, until);

		if (taken.raised || taken.count < 0) {
			/* That some were sent must not be lost; the next call says what is wrong. */
			if (sent && (!taken.raised || PyErr_ExceptionMatches(PyExc_OSError) ||
				     PyErr_ExceptionMatches(PyExc_EOFError))) {
				PyErr_Clear();
				break;
			}
			return taken.raised ? NULL : raise_over();
		}
		if (taken.count == 0)
			break;
		sent += (size_t)taken.count;
	}
	return PyLong_FromSize_t(sent);
}

/* send(list of frames, after, tag, time_ns, seconds): how many. */
PyObject *sender_send(PyObject *self, PyObject *args)
{
	struct sender_object *sender = (struct sender_object *)self;
	PyObject *list, *after, *tag, *seconds, *done = NULL, *frames;
	unsigned long long time_ns;
	struct piece *pieces;
	Py_ssize_t count, got = 0;
	int64_t until;

	if (!PyArg_ParseTuple(args, "OOOKO:send", &list, &after, &tag, &time_ns, &seconds) ||
	    until_from(seconds, &until) < 0)
		return NULL;
	if (sender->handle && sender->handle->slot_device.type == DLPACK_CUDA) {
		PyErr_SetString(PyExc_BufferError,
				"send: the slots lie in GPU memory: reserve() them and fill them "
				"by a kernel, or set sender.memory: pinned");
		return NULL;
	}
	frames = PySequence_List(list);
	if (!frames)
		return NULL;
	count = PyList_Size(frames);
	pieces = PyMem_Calloc((size_t)count + 1, sizeof(*pieces));
	if (!pieces)
		PyErr_NoMemory();
	while (pieces && got < count &&
	       piece_get(sender, &pieces[got], PyList_GetItem(frames, got), got) == 0)
		got++;
	if (pieces && got == count)
		done = send_all(sender, pieces, (size_t)count, after, tag, time_ns, until);
	for (Py_ssize_t i = 0; pieces && i <= got && i < count; i++)
		if (pieces[i].view.obj)
			PyBuffer_Release(&pieces[i].view);
	PyMem_Free(pieces);
	Py_DECREF(frames);
	return done;
}
