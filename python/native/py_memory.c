/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap.Memory: the caller's memory that frames are sent from. It stays while any of them is on its way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "native.h"

/* What is registered, and what keeps it there. */
struct kept {
	Py_buffer view;	 /* of a buffer */
	PyObject *owner; /* of an array on a GPU */
	uint64_t address, bytes;
	enum gdrcap_memory kind;
	struct kept *next;
};

struct memory_object {
	PyObject ob_base;
	struct handle *handle; /* NULL: not registered any more */
	struct kept *kept;
	unsigned long long address, bytes;
	enum gdrcap_memory kind;
};

static PyTypeObject *memory_type;

/* ---- where bytes lie ---- */

static uint64_t number_of(PyObject *object)
{
	PyObject *number = object ? PyNumber_Index(object) : NULL;
	const unsigned long long value = number ? PyLong_AsUnsignedLongLong(number) : 0;

	Py_XDECREF(number);
	return value;
}

/* Whether these strides, or none, are those of elements side by side. */
static bool is_dense(PyObject *shape, PyObject *strides, uint64_t item)
{
	bool dense = true;

	if (!strides || strides == Py_None)
		return true;
	for (Py_ssize_t i = PySequence_Size(shape) - 1; i >= 0 && !PyErr_Occurred(); i--) {
		PyObject *length = PySequence_GetItem(shape, i);
		PyObject *stride = length ? PySequence_GetItem(strides, i) : NULL;
		const uint64_t count = stride ? number_of(length) : 0;

		dense &= count == 1 || (!PyErr_Occurred() && number_of(stride) == item);
		item *= count;
		Py_XDECREF(length);
		Py_XDECREF(stride);
	}
	return dense;
}

static uint64_t product_of(PyObject *shape)
{
	uint64_t product = 1;

	for (Py_ssize_t i = 0; i < PySequence_Size(shape) && !PyErr_Occurred(); i++) {
		PyObject *length = PySequence_GetItem(shape, i);

		if (__builtin_mul_overflow(product, number_of(length), &product))
			product = UINT64_MAX / 32;
		Py_XDECREF(length);
	}
	return product;
}

/* NULL with an exception: this one, or an earlier one. */
static PyObject *interface_get(PyObject *interface, const char *key)
{
	return PyErr_Occurred() ? NULL : PyMapping_GetItemString(interface, key);
}

/* By CUDA's array interface. */
static int span_of_array(PyObject *interface, uint64_t *address, uint64_t *bytes)
{
	PyObject *shape = interface_get(interface, "shape");
	PyObject *typestr = interface_get(interface, "typestr");
	PyObject *data = interface_get(interface, "data");
	PyObject *strides = NULL, *first;
	const char *type =
		typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8AndSize(typestr, NULL) : NULL;
	uint64_t item = type && strlen(type) > 2 ? strtoull(type + 2, NULL, 10) : 0;
	bool dense = false;

	if (shape && data && item) {
		strides = PyMapping_GetItemString(interface, "strides");
		if (!strides)
			PyErr_Clear();
		first = PySequence_GetItem(data, 0);
		*address = number_of(first);
		Py_XDECREF(first);
		dense = !PyErr_Occurred() && is_dense(shape, strides, item);
		if (!dense || __builtin_mul_overflow(product_of(shape), item, bytes))
			*bytes = 0;
	}
	Py_XDECREF(shape);
	Py_XDECREF(typestr);
	Py_XDECREF(data);
	Py_XDECREF(strides);
	if (PyErr_Occurred())
		return -1;
	if (dense)
		return 0;
	PyErr_SetString(PyExc_BufferError, "the array's elements do not lie side by side");
	return -1;
}

/* A buffer, which *view keeps, or an array on a GPU. */
static int span_get(PyObject *object, Py_buffer *view, uint64_t *address, uint64_t *bytes)
{
	PyObject *interface;
	int ret;

	view->obj = NULL;
	if (PyObject_CheckBuffer(object)) {
		if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) == 0) {
			*address = (uintptr_t)view->buf;
			*bytes = (uint64_t)view->len;
			return 0;
		}
		/* An image's bytes may lie on the GPU. */
		if (!PyErr_ExceptionMatches(PyExc_BufferError) ||
		    !PyObject_HasAttrString(object, "__cuda_array_interface__"))
			return -1;
		PyErr_Clear();
	}
	interface = PyObject_GetAttrString(object, "__cuda_array_interface__");
	if (!interface) {
		if (PyErr_ExceptionMatches(PyExc_AttributeError))
			PyErr_Format(
				PyExc_TypeError,
				"%R is neither a buffer nor an array on a GPU; of a tensor in host "
				"memory give tensor.numpy()",
				(PyObject *)Py_TYPE(object));
		return -1;
	}
	ret = span_of_array(interface, address, bytes);
	Py_DECREF(interface);
	return ret;
}

int span_of(PyObject *object, uint64_t *address, uint64_t *bytes)
{
	Py_buffer view;
	const int ret = span_get(object, &view, address, bytes);

	if (view.obj)
		PyBuffer_Release(&view);
	return ret;
}

/* ---- what is kept ---- */

/* With the GIL. */
static int kept_release(void *context)
{
	struct kept *kept = context;

	if (kept->view.obj)
		PyBuffer_Release(&kept->view);
	Py_XDECREF(kept->owner);
	free(kept);
	return 0;
}

void kept_free(struct handle *handle)
{
	struct kept *kept = handle->kept, *next;

	/* Of an interpreter that is gone, or too busy to say when, it stays. */
	for (; kept && Py_IsInitialized(); kept = next) {
		next = kept->next;
		Py_AddPendingCall(kept_release, kept);
	}
}

/* ---- the type ---- */

static struct kept *kept_new(PyObject *object)
{
	struct kept *kept = calloc(1, sizeof(*kept));

	if (!kept) {
		PyErr_NoMemory();
		return NULL;
	}
	if (span_get(object, &kept->view, &kept->address, &kept->bytes) < 0) {
		free(kept);
		return NULL;
	}
	if (!kept->view.obj)
		kept->owner = Py_NewRef(object);
	return kept;
}

PyObject *memory_new(struct handle *handle, PyObject *object)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(memory_type, Py_tp_alloc);
	struct memory_object *memory = (struct memory_object *)alloc(memory_type, 0);
	struct gdrcap_error error = { 0 };
	struct kept *kept = memory ? kept_new(object) : NULL;
	int ret;

	if (!kept) {
		Py_XDECREF((PyObject *)memory);
		return NULL;
	}
	handle_ref(handle);
	kept->kind = cuda_memory_of(handle, (const void *)(uintptr_t)kept->address);
	Py_BEGIN_ALLOW_THREADS;
	ret = gdrcap_tx_register(handle->session, (void *)(uintptr_t)kept->address, kept->bytes,
				 kept->kind, &error);
	Py_END_ALLOW_THREADS;
	if (ret < 0) {
		kept_release(kept);
		handle_let_go(handle);
		Py_DECREF((PyObject *)memory);
		return raise_error(&error);
	}
	memory->handle = handle;
	memory->kept = kept;
	memory->address = kept->address;
	memory->bytes = kept->bytes;
	memory->kind = kept->kind;
	return (PyObject *)memory;
}

static int memory_unregister(struct handle *handle, const struct kept *kept,
			     struct gdrcap_error *error)
{
	int ret;

	Py_BEGIN_ALLOW_THREADS;
	ret = gdrcap_tx_unregister(handle->session, (void *)(uintptr_t)kept->address, error);
	Py_END_ALLOW_THREADS;
	return ret;
}

/* While frames in it are on their way it stays until the session's end. */
static void memory_let_go(struct memory_object *memory)
{
	struct handle *handle = memory->handle;
	struct kept *kept = memory->kept;
	struct gdrcap_error error;

	memory->handle = NULL;
	memory->kept = NULL;
	if (!handle)
		return;
	if (memory_unregister(handle, kept, &error) < 0) {
		pthread_mutex_lock(&handle->dropping);
		kept->next = handle->kept;
		handle->kept = kept;
		pthread_mutex_unlock(&handle->dropping);
	} else {
		kept_release(kept);
	}
	handle_let_go(handle);
}

static PyObject *memory_method_unregister(PyObject *self, PyObject *unused)
{
	struct memory_object *memory = (struct memory_object *)self;
	struct handle *handle = memory->handle;
	struct kept *kept = memory->kept;
	struct gdrcap_error error = { 0 };
	int ret;

	if (!handle)
		Py_RETURN_NONE;
	if (handle_check(handle) < 0)
		return NULL;
	/* Another thread finds that it is being done. */
	memory->handle = NULL;
	memory->kept = NULL;
	ret = memory_unregister(handle, kept, &error);
	if (ret < 0) {
		memory->handle = handle;
		memory->kept = kept;
		return raise_error(&error);
	}
	kept_release(kept);
	handle_let_go(handle);
	Py_RETURN_NONE;
}

static PyObject *memory_close(PyObject *self, PyObject *unused)
{
	memory_let_go((struct memory_object *)self);
	Py_RETURN_NONE;
}

static PyObject *memory_exit(PyObject *self, PyObject *args)
{
	PyObject *kind = PyTuple_GetItem(args, 0), *done;

	if (!kind)
		return NULL;
	/* What was raised is what matters. */
	done = kind == Py_None ? memory_method_unregister(self, NULL) : memory_close(self, NULL);
	if (!done)
		return NULL;
	Py_DECREF(done);
	Py_RETURN_FALSE;
}

static void memory_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	memory_let_go((struct memory_object *)self);
	release(self);
	Py_DECREF(type);
}

static PyObject *memory_enter(PyObject *self, PyObject *unused)
{
	return Py_NewRef(self);
}

static PyObject *memory_kind(PyObject *self, void *closure)
{
	const enum gdrcap_memory kind = ((struct memory_object *)self)->kind;

	return PyUnicode_FromString(kind == GDRCAP_MEMORY_DEVICE   ? "device"
				    : kind == GDRCAP_MEMORY_PINNED ? "pinned"
								   : "host");
}

static PyObject *memory_registered(PyObject *self, void *closure)
{
	return PyBool_FromLong(((struct memory_object *)self)->handle != NULL);
}

static PyMemberDef memory_members[] = {
	{ "address", T_ULONGLONG, offsetof(struct memory_object, address), READONLY,
	  "Of the first byte; a device pointer in GPU memory." },
	{ "bytes", T_ULONGLONG, offsetof(struct memory_object, bytes), READONLY,
	  "Bytes that are registered." },
	{ 0 },
};
static PyGetSetDef memory_getset[] = {
	{ "kind", memory_kind, NULL, "\"device\", \"pinned\" or \"host\".", NULL },
	{ "registered", memory_registered, NULL, "Whether it still is.", NULL },
	{ 0 },
};
static PyMethodDef memory_methods[] = {
	{ "unregister", memory_method_unregister, METH_NOARGS,
	  "unregister($self, /)\n--\n\nThe memory is the caller's alone again. Error: frames with "
	  "payloads in it are still on\ntheir way (errno EBUSY), and nothing has changed." },
	{ "close", memory_close, METH_NOARGS,
	  "close($self, /)\n--\n\nThe same, but what is on its way keeps the memory until the session's "
	  "end." },
	{ "__enter__", memory_enter, METH_NOARGS, NULL },
	{ "__exit__", memory_exit, METH_VARARGS, NULL },
	{ 0 },
};
static PyType_Slot memory_slots[] = {
	{ Py_tp_doc,
	  "Memory that frames' payloads are sent from, made by Session.register(). It keeps "
	  "the buffer\nor array that it is of." },
	{ Py_tp_dealloc, (void *)memory_dealloc },
	{ Py_tp_members, memory_members },
	{ Py_tp_getset, memory_getset },
	{ Py_tp_methods, memory_methods },
	{ 0, NULL },
};
static PyType_Spec memory_spec = {
	.name = "gdrcap.Memory",
	.basicsize = sizeof(struct memory_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = memory_slots,
};

int memory_init(PyObject *module)
{
	memory_type = type_add(module, &memory_spec, NULL);
	return memory_type ? 0 : -1;
}
