/* SPDX-License-Identifier: BSD-3-Clause */
/* Where images or batches come from: poll, wait, descriptor. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "native.h"

struct source_object {
	PyObject ob_base;
	struct handle *handle;	      /* NULL: closed */
	struct gdrcap_images *images; /* NULL: batches */
	struct gdrcap_queue *queue;
	uint32_t index;
};

static PyTypeObject *source_type;

PyObject *source_new(struct handle *handle, int images, Py_ssize_t index)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(source_type, Py_tp_alloc);
	struct source_object *source = (struct source_object *)alloc(source_type, 0);

	if (!source)
		return NULL;
	if (images && index >= 0 && index < GDRCAP_IMAGES_MAX)
		source->images = gdrcap_get_images(handle->session, (uint32_t)index);
	else if (!images && index >= 0 && index < QUEUES_MAX)
		source->queue = gdrcap_get_queue(handle->session, (uint32_t)index);
	if (!source->images && !source->queue) {
		Py_DECREF((PyObject *)source);
		PyErr_Format(
			PyExc_IndexError,
			images ? "images %zd: there are fewer; option image describes them"
			       : "queue %zd: there are fewer; options port and queues make them",
			index);
		return NULL;
	}
	source->index = (uint32_t)index;
	source->handle = handle;
	handle_ref(handle);
	return (PyObject *)source;
}

static void source_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	handle_let_go(((struct source_object *)self)->handle);
	release(self);
	Py_DECREF(type);
}

static struct handle *source_handle(const struct source_object *source)
{
	if (!source->handle) {
		PyErr_SetString(PyExc_ValueError, "the session is closed");
		return NULL;
	}
	return handle_check(source->handle) == 0 ? source->handle : NULL;
}

/* An image or a batch, as the library gives it. */
struct taken {
	const struct gdrcap_image *image;
	const struct gdrcap_batch *batch;
};

static int take(const struct source_object *source, struct taken *taken, int64_t usec)
{
	if (source->images)
		return usec ? gdrcap_image_wait(source->images, &taken->image, 1, usec)
			    : gdrcap_image_poll(source->images, &taken->image, 1);
	return usec ? gdrcap_wait(source->queue, &taken->batch, 1, usec)
		    : gdrcap_poll(source->queue, &taken->batch, 1);
}

static PyObject *taken_object(struct handle *handle, const struct source_object *source,
			      const struct taken *taken)
{
	struct lease *lease = source->images ? lease_new_image(handle, source->index,
							       source->images, taken->image)
					     : lease_new_batch(handle, source->queue, taken->batch);

	if (!lease)
		return NULL;
	return source->images ? image_new(lease) : batch_new(lease);
}

static PyObject *taken_none(int ret)
{
	if (ret == 0)
		Py_RETURN_NONE;
	if (ret == -ESHUTDOWN) {
		PyErr_SetString(PyExc_EOFError, "the run is over, and the last one was taken");
		return NULL;
	}
	if (ret == -EINVAL)
		return raise_code(ret, "these are not yours to take: batches need the option "
				       "consumer: host and no image; images consumer: host");
	return raise_code(ret, "taking the next one: %s", strerror(-ret));
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* Waits for `usec` (-1: for ever), in slices between which signals are looked for. 1, 0, -errno, or
 * 2: an exception. */
static int take_waiting(struct source_object *source, struct taken *taken, int64_t usec)
{
	const int64_t until = usec < 0 ? INT64_MAX : now_us() + usec;
	int64_t left = usec < 0 ? INT64_MAX : usec;
	int ret;

	do {
		const int64_t slice = left < WAIT_SLICE_US ? left : WAIT_SLICE_US;

		Py_BEGIN_ALLOW_THREADS;
		ret = take(source, taken, slice > 0 ? slice : 0);
		Py_END_ALLOW_THREADS;
		if (ret)
			return ret;
		if (PyErr_CheckSignals() < 0)
			return 2;
		left = until - now_us();
	} while (left > 0);
	return 0;
}

static PyObject *source_take(struct source_object *source, int64_t usec)
{
	struct handle *handle = source_handle(source);
	struct taken taken = { 0 };
	atomic_bool *busy;
	PyObject *object;
	int ret;

	if (!handle)
		return NULL;
	busy = source->images ? &handle->image_busy[source->index]
			      : &handle->queue_busy[source->index];
	if (atomic_exchange(busy, true)) {
		PyErr_Format(
			PyExc_RuntimeError,
			"%s %u: another thread waits there already; they are for one thread at a "
			"time",
			source->images ? "images" : "queue", source->index);
		return NULL;
	}
	/* The session stays while somebody waits in it. */
	handle_ref(handle);
	ret = take(source, &taken, 0);
	if (ret == 0 && usec)
		ret = take_waiting(source, &taken, usec);
	atomic_store(busy, false);
	object = ret == 2   ? NULL
		 : ret == 1 ? taken_object(handle, source, &taken)
			    : taken_none(ret);
	handle_let_go(handle);
	return object;
}

/* Seconds to microseconds; None: -1, for ever. */
static int usec_from(PyObject *seconds, int64_t *usec)
{
	double value;

	*usec = -1;
	if (seconds == Py_None)
		return 0;
	value = PyFloat_AsDouble(seconds);
	if (value == -1 && PyErr_Occurred())
		return -1;
	if (!(value >= 0)) {
		PyErr_SetString(PyExc_ValueError, "timeout: seconds, 0 or more, or None");
		return -1;
	}
	if (value < 1e12)
		*usec = (int64_t)(value * 1e6);
	return 0;
}

static PyObject *source_poll(PyObject *self, PyObject *unused)
{
	return source_take((struct source_object *)self, 0);
}

static PyObject *source_wait(PyObject *self, PyObject *args)
{
	PyObject *seconds = Py_None;
	int64_t usec;

	if (!PyArg_ParseTuple(args, "|O", &seconds) || usec_from(seconds, &usec) < 0)
		return NULL;
	return source_take((struct source_object *)self, usec);
}

static PyObject *source_fileno(PyObject *self, PyObject *unused)
{
	const struct source_object *source = (struct source_object *)self;
	int fd;

	if (!source_handle(source))
		return NULL;
	fd = source->images ? gdrcap_image_fd(source->images) : gdrcap_queue_fd(source->queue);
	return fd < 0 ? taken_none(fd) : PyLong_FromLong(fd);
}

static PyObject *source_close(PyObject *self, PyObject *unused)
{
	struct source_object *source = (struct source_object *)self;
	struct handle *handle = source->handle;

	source->handle = NULL;
	handle_let_go(handle);
	Py_RETURN_NONE;
}

/* Another one of the same, which keeps the session while its descriptor is waited for. */
static PyObject *source_hold(PyObject *self, PyObject *unused)
{
	const struct source_object *source = (struct source_object *)self;

	return source_handle(source)
		       ? source_new(source->handle, source->images != NULL, source->index)
		       : NULL;
}

static PyMethodDef source_methods[] = {
	{ "poll", source_poll, METH_NOARGS, NULL },	{ "wait", source_wait, METH_VARARGS, NULL },
	{ "fileno", source_fileno, METH_NOARGS, NULL }, { "hold", source_hold, METH_NOARGS, NULL },
	{ "close", source_close, METH_NOARGS, NULL },	{ 0 },
};
static PyType_Slot source_slots[] = {
	{ Py_tp_dealloc, (void *)source_dealloc },
	{ Py_tp_methods, source_methods },
	{ 0, NULL },
};
static PyType_Spec source_spec = {
	.name = "gdrcap._native.Source",
	.basicsize = sizeof(struct source_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = source_slots,
};

int source_init(PyObject *module)
{
	source_type = type_add(module, &source_spec, NULL);
	return source_type ? 0 : -1;
}
