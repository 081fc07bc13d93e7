/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap.Slot: room for one frame that is to be sent, the caller's until it is submitted. */
#include <errno.h>
#include <string.h>

#include "native.h"

struct slot_object {
	PyObject ob_base;
	struct lease *lease; /* NULL: submitted, or given back */
	uint32_t room;
	bool submitted;
};

static PyTypeObject *slot_type;

/* The lease, or NULL with an exception. */
static struct lease *slot_lease(PyObject *self)
{
	const struct slot_object *slot = (struct slot_object *)self;

	if (!slot->lease)
		PyErr_SetString(
			PyExc_ValueError,
			slot->submitted
				? "the slot was submitted: its memory is the queue's; reserve() "
				  "another"
				: "the slot was given back; reserve() another");
	else if (handle_check(slot->lease->handle) == 0)
		return slot->lease;
	return NULL;
}

static struct lease *slot_tensor(PyObject *self, struct tensor *tensor)
{
	struct lease *lease = slot_lease(self);

	if (lease)
		tensor_bytes(tensor, lease->frame.data, ((struct slot_object *)self)->room,
			     lease->device);
	return lease;
}

PyObject *slot_new(struct lease *lease)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(slot_type, Py_tp_alloc);
	struct slot_object *slot = (struct slot_object *)alloc(slot_type, 0);

	if (!slot) {
		lease_unref_gil(lease);
		return NULL;
	}
	slot->lease = lease;
	slot->room = lease->frame.bytes;
	lease->frame.bytes = 0;
	return (PyObject *)slot;
}

static void slot_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	lease_unref_gil(((struct slot_object *)self)->lease);
	release(self);
	Py_DECREF(type);
}

/* ---- for who submits it ---- */

struct lease *slot_take(PyObject *object, const struct gdrcap_tx *tx, Py_ssize_t i)
{
	struct slot_object *slot = (struct slot_object *)object;
	struct lease *lease;
	unsigned int views;

	if (!PyObject_TypeCheck(object, slot_type)) {
		PyErr_Format(PyExc_TypeError, "slot %zd: %R is none; reserve() makes them", i,
			     (PyObject *)Py_TYPE(object));
		return NULL;
	}
	lease = slot_lease(object);
	if (!lease)
		return NULL;
	if (lease->tx != tx) {
		PyErr_Format(PyExc_ValueError, "slot %zd: it is of another send queue", i);
		return NULL;
	}
	/* With the GIL, and without a view, nobody can make one. */
	views = atomic_load_explicit(&lease->refs, memory_order_acquire) - 1;
	if (views) {
		PyErr_Format(
			PyExc_BufferError,
			"slot %zd: %u views of it are still there (memoryviews, arrays, tensors), and "
			"what is written to them would change the frame on its way; drop them first",
			i, views);
		return NULL;
	}
	slot->lease = NULL;
	slot->submitted = true;
	return lease;
}

void slot_put_back(PyObject *object, struct lease *lease)
{
	struct slot_object *slot = (struct slot_object *)object;

	slot->lease = lease;
	slot->submitted = false;
}

/* ---- members ---- */

static PyObject *slot_get_bytes(PyObject *self, void *closure)
{
	const struct lease *lease = slot_lease(self);

	return lease ? PyLong_FromUnsignedLong(lease->frame.bytes) : NULL;
}

static int slot_set_bytes(PyObject *self, PyObject *value, void *closure)
{
	const struct slot_object *slot = (struct slot_object *)self;
	struct lease *lease = slot_lease(self);
	Py_ssize_t bytes;

	if (!lease)
		return -1;
	bytes = value ? PyNumber_AsSsize_t(value, NULL) : -1;
	if (bytes == -1 && PyErr_Occurred())
		return -1;
	if (bytes < 0 || bytes > slot->room) {
		PyErr_Format(PyExc_ValueError, "bytes: %zd; allowed: 0 to %u", bytes, slot->room);
		return -1;
	}
	lease->frame.bytes = (uint32_t)bytes;
	return 0;
}

static PyObject *slot_get_tag(PyObject *self, void *closure)
{
	const struct lease *lease = slot_lease(self);

	if (lease && !(lease->frame.flags & GDRCAP_TX_TELL))
		Py_RETURN_NONE;
	return lease ? PyLong_FromUnsignedLongLong(lease->frame.tag) : NULL;
}

static int slot_set_tag(PyObject *self, PyObject *value, void *closure)
{
	struct lease *lease = slot_lease(self);
	unsigned long long tag = 0;

	if (!lease)
		return -1;
	if (value && value != Py_None) {
		PyObject *number = PyNumber_Index(value);

		tag = number ? PyLong_AsUnsignedLongLong(number) : 0;
		Py_XDECREF(number);
		if (PyErr_Occurred())
			return -1;
	}
	lease->frame.tag = tag;
	lease->frame.flags = value && value != Py_None ? GDRCAP_TX_TELL : 0;
	return 0;
}

static PyObject *slot_get_time(PyObject *self, void *closure)
{
	const struct lease *lease = slot_lease(self);

	return lease ? PyLong_FromUnsignedLongLong(lease->frame.time_ns) : NULL;
}

static int slot_set_time(PyObject *self, PyObject *value, void *closure)
{
	struct lease *lease = slot_lease(self);
	PyObject *number = lease && value ? PyNumber_Index(value) : NULL;
	unsigned long long time_ns;

	if (lease && !value)
		PyErr_SetString(PyExc_TypeError, "time_ns: 0 stands for none");
	if (!number)
		return -1;
	time_ns = PyLong_AsUnsignedLongLong(number);
	Py_DECREF(number);
	if (PyErr_Occurred())
		return -1;
	lease->frame.time_ns = time_ns;
	return 0;
}

static PyObject *slot_get_payload(PyObject *self, void *closure)
{
	const struct lease *lease = slot_lease(self);

	if (lease && !lease->frame.payload)
		Py_RETURN_NONE;
	return lease ? Py_BuildValue("(Kk)", (unsigned long long)(uintptr_t)lease->frame.payload,
				     (unsigned long)lease->frame.payload_bytes)
		     : NULL;
}

static int slot_set_payload(PyObject *self, PyObject *value, void *closure)
{
	struct lease *lease = slot_lease(self);
	uint64_t address = 0, bytes = 0;

	if (!lease || (value && value != Py_None && span_of(value, &address, &bytes) < 0))
		return -1;
	/* Asking may have called anybody's code. */
	lease = slot_lease(self);
	if (!lease)
		return -1;
	if (bytes > UINT32_MAX) {
		PyErr_SetString(PyExc_ValueError, "payload: it is longer than any frame");
		return -1;
	}
	lease->frame.payload = (const void *)(uintptr_t)address;
	lease->frame.payload_bytes = (uint32_t)bytes;
	return 0;
}

static PyObject *slot_get_submitted(PyObject *self, void *closure)
{
	return PyBool_FromLong(((struct slot_object *)self)->submitted);
}

static PyObject *slot_address(PyObject *self, void *closure)
{
	const struct lease *lease = slot_lease(self);

	return lease ? PyLong_FromVoidPtr(lease->frame.data) : NULL;
}

static PyObject *slot_device(PyObject *self, void *closure)
{
	struct tensor tensor;

	return slot_tensor(self, &tensor) ? tensor_dlpack_device(&tensor) : NULL;
}

/* ---- methods ---- */

static PyObject *slot_write(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "data", "at", NULL };
	const struct slot_object *slot = (struct slot_object *)self;
	PyObject *done = NULL;
	struct lease *lease;
	Py_ssize_t at = 0;
	Py_buffer data;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "y*|n:write", names, &data, &at))
		return NULL;
	lease = slot_lease(self);
	if (!lease)
		;
	else if (lease->device.type != DLPACK_CPU)
		PyErr_SetString(PyExc_BufferError,
				"write: the slot lies in GPU memory: fill it by a kernel, as "
				"torch.from_dlpack(slot), or set sender.memory: pinned");
	else if (at < 0 || at > slot->room || data.len > slot->room - at)
		PyErr_Format(PyExc_ValueError, "write: bytes %zd to %zd; the slot has room for %u",
			     at, at + data.len, slot->room);
	else {
		memcpy(lease->frame.data + at, data.buf, (size_t)data.len);
		lease->frame.bytes = (uint32_t)(at + data.len);
		done = PyLong_FromUnsignedLong(lease->frame.bytes);
	}
	PyBuffer_Release(&data);
	return done;
}

static PyObject *slot_release(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "stream", NULL };
	struct slot_object *slot = (struct slot_object *)self;
	PyObject *stream = Py_None;
	uint64_t number = 0;
	struct lease *lease;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:release", names, &stream) ||
	    (stream != Py_None && stream_from_object(stream, &number) < 0))
		return NULL;
	lease = slot_lease(self);
	if (lease && number && !lease->handle->cuda) {
		PyErr_SetString(PyExc_ValueError,
				"stream: this session has no GPU (gpu: host); leave it out");
		return NULL;
	}
	if (!lease || lease_add_stream(lease, number) < 0)
		return NULL;
	slot->lease = NULL;
	lease_unref_gil(lease);
	Py_RETURN_NONE;
}

static PyObject *slot_view(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct tensor tensor;
	struct lease *lease = slot_tensor(self, &tensor);

	return lease ? tensor_view(&tensor, lease, args, kwargs) : NULL;
}

static PyObject *slot_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct tensor tensor;
	struct lease *lease = slot_tensor(self, &tensor);

	return lease ? tensor_dlpack(&tensor, lease, args, kwargs) : NULL;
}

static PyObject *slot_dlpack_device(PyObject *self, PyObject *unused)
{
	return slot_device(self, NULL);
}

static int slot_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct tensor tensor;
	struct lease *lease = slot_tensor(self, &tensor);

	view->obj = NULL;
	return lease ? tensor_get_buffer(self, &tensor, lease, view, flags) : -1;
}

static Py_ssize_t slot_length(PyObject *self)
{
	return ((struct slot_object *)self)->room;
}

static PyObject *slot_repr(PyObject *self)
{
	const struct slot_object *slot = (struct slot_object *)self;

	return PyUnicode_FromFormat("<gdrcap.Slot of %u bytes%s>", slot->room,
				    slot->lease	      ? ""
				    : slot->submitted ? ", submitted"
						      : ", given back");
}

static PyGetSetDef slot_getset[] = {
	{ "bytes", slot_get_bytes, slot_set_bytes,
	  "Bytes of the frame that are in the slot, headers too, without FCS: 0 until write() or you\n"
	  "set it.",
	  NULL },
	{ "tag", slot_get_tag, slot_set_tag,
	  "A number with which poll() tells that the frame is through; None: it does not.", NULL },
	{ "time_ns", slot_get_time, slot_set_time,
	  "It is sent no earlier, in ns since the Unix epoch; 0: at once.", NULL },
	{ "payload", slot_get_payload, slot_set_payload,
	  "What follows the slot's bytes: a buffer or an array in memory that was registered\n"
	  "(Session.register()), sent from where it lies; read as (address, bytes), or None.",
	  NULL },
	{ "submitted", slot_get_submitted, NULL, "Whether it was submitted.", NULL },
	{ "address", slot_address, NULL, "Of the first byte; a device pointer in GPU memory.",
	  NULL },
	{ "device", slot_device, NULL, "DLPack's (type, index): (1, 0) host, (2, n) CUDA device n.",
	  NULL },
	{ 0 },
};
static PyMethodDef slot_methods[] = {
	{ "write", (PyCFunction)(void *)slot_write, METH_VARARGS | METH_KEYWORDS,
	  "write($self, /, data, at=0)\n--\n\nCopies data to byte `at` of a slot in host memory, and "
	  "sets `bytes` to the end of it,\nwhich is returned." },
	{ "release", (PyCFunction)(void *)slot_release, METH_VARARGS | METH_KEYWORDS,
	  "release($self, /, stream=None)\n--\n\nGives the slot back unsent, once all views of it are "
	  "gone.\n\nstream: a CUDA stream that is to come this far first." },
	{ "view", (PyCFunction)(void *)slot_view, METH_VARARGS | METH_KEYWORDS,
	  "view($self, /, dtype='uint8', shape=None, *, pitch=None)\n--\n\n"
	  "An array of this type and shape over the slot, as Image.view()." },
	{ "__dlpack__", (PyCFunction)(void *)slot_dlpack, METH_VARARGS | METH_KEYWORDS,
	  "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
	  "A DLPack capsule over the slot. The stream is remembered: submit() waits for it." },
	{ "__dlpack_device__", slot_dlpack_device, METH_NOARGS,
	  "__dlpack_device__($self, /)\n--\n\n(type, index) of the memory: (1, 0) host, (2, n) CUDA "
	  "device n." },
	{ 0 },
};
static PyType_Slot slot_slots[] = {
	{ Py_tp_doc,
	  "Room for one frame: an array of bytes (uint8) to write to, where it lies.\n\n"
	  "memoryview(), numpy.from_dlpack() and, in GPU memory, torch.from_dlpack() and\n"
	  "cupy.from_dlpack() make arrays over it. They are to be gone when it is submitted: from\n"
	  "then on its memory is the queue's. One that is dropped is given back unsent." },
	{ Py_tp_dealloc, (void *)slot_dealloc },
	{ Py_tp_repr, (void *)slot_repr },
	{ Py_tp_getset, slot_getset },
	{ Py_tp_methods, slot_methods },
	{ Py_sq_length, (void *)slot_length },
	{ Py_bf_getbuffer, (void *)slot_get_buffer },
	{ Py_bf_releasebuffer, (void *)tensor_put_buffer },
	{ 0, NULL },
};
static PyType_Spec slot_spec = {
	.name = "gdrcap.Slot",
	.basicsize = sizeof(struct slot_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = slot_slots,
};

int slot_init(PyObject *module)
{
	slot_type = type_add(module, &slot_spec, NULL);
	return slot_type ? 0 : -1;
}
