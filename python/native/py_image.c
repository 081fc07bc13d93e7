/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap.Image, and the bitmap of what came of one. */
#include <string.h>

#include "native.h"

struct image_object {
	PyObject ob_base;
	struct lease *lease; /* NULL: released */
	/* What can be read after the release, too. */
	unsigned long long seq, number, stream_id, bytes, placed, skipped, first_time, last_time,
		timestamp, fields[4];
	unsigned int stream, end, pieces, received;
};

struct present_object {
	PyObject ob_base;
	struct lease *lease;
	struct tensor words;
	Py_ssize_t count;
};

static PyTypeObject *image_type, *present_type;

static const char *const end_names[] = {
	[GDRCAP_IMAGE_COMPLETE] = "complete",
	[GDRCAP_IMAGE_NEWER] = "newer",
	[GDRCAP_IMAGE_TIMEOUT] = "timeout",
	[GDRCAP_IMAGE_STOPPED] = "stopped",
};

/* ---- present ---- */

static void present_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	lease_unref_gil(((struct present_object *)self)->lease);
	release(self);
	Py_DECREF(type);
}

static Py_ssize_t present_length(PyObject *self)
{
	return ((struct present_object *)self)->count;
}

static PyObject *present_item(PyObject *self, Py_ssize_t index)
{
	const struct present_object *present = (struct present_object *)self;
	const uint32_t *words = (const uint32_t *)present->words.data;

	if (index < 0 || index >= present->count) {
		PyErr_Format(PyExc_IndexError, "piece %zd: the image has %zd", index,
			     present->count);
		return NULL;
	}
	return PyBool_FromLong(words[index / 32] >> (index % 32) & 1);
}

static int present_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct present_object *present = (struct present_object *)self;

	return tensor_get_buffer(self, &present->words, present->lease, view, flags);
}

static PyType_Slot present_slots[] = {
	{ Py_tp_doc,
	  "Which pieces of an image came: a sequence of bool, one a piece; empty where nobody said how\n"
	  "many there are (missing() tells of those, too).\n\n"
	  "As a buffer it is uint32 words, bit i % 32 of word i // 32 being piece i, in host memory "
	  "that a GPU reads too; only to read." },
	{ Py_tp_dealloc, (void *)present_dealloc },
	{ Py_sq_length, (void *)present_length },
	{ Py_sq_item, (void *)present_item },
	{ Py_bf_getbuffer, (void *)present_get_buffer },
	{ Py_bf_releasebuffer, (void *)tensor_put_buffer },
	{ 0, NULL },
};
static PyType_Spec present_spec = {
	.name = "gdrcap.Present",
	.basicsize = sizeof(struct present_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = present_slots,
};

/* ---- images ---- */

/* The lease, or NULL with an exception when the image was released. */
static struct lease *image_lease(PyObject *self)
{
	const struct image_object *image = (struct image_object *)self;

	if (!image->lease)
		PyErr_Format(PyExc_ValueError,
			     "image %llu was released: its buffer is used again; copy() what is to "
			     "be kept, or release it later",
			     image->number);
	return image->lease;
}

static struct lease *image_tensor(PyObject *self, struct tensor *tensor)
{
	struct lease *lease = image_lease(self);

	if (lease)
		tensor_bytes(tensor, lease->image->data, (int64_t)lease->image->bytes,
			     lease->device);
	return lease;
}

PyObject *image_new(struct lease *lease)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(image_type, Py_tp_alloc);
	struct image_object *object = (struct image_object *)alloc(image_type, 0);
	const struct gdrcap_image *image = lease->image;

	if (!object) {
		lease_unref_gil(lease);
		return NULL;
	}
	object->lease = lease;
	object->seq = image->seq;
	object->number = image->number;
	object->stream_id = image->stream_id;
	object->stream = image->stream;
	object->end = image->end;
	object->bytes = image->bytes;
	object->placed = image->placed;
	object->pieces = image->pieces;
	object->received = image->received;
	object->skipped = image->skipped;
	object->first_time = image->first_time;
	object->last_time = image->last_time;
	object->timestamp = image->timestamp;
	for (int i = 0; i < 4; i++)
		object->fields[i] = image->fields[i];
	return (PyObject *)object;
}

static void image_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	lease_unref_gil(((struct image_object *)self)->lease);
	release(self);
	Py_DECREF(type);
}

static PyObject *image_repr(PyObject *self)
{
	const struct image_object *image = (struct image_object *)self;

	return PyUnicode_FromFormat("<gdrcap.Image %llu of stream %llu: %llu of %llu bytes%s>",
				    image->number, image->stream_id, image->placed, image->bytes,
				    image->lease ? "" : ", released");
}

static PyObject *image_end(PyObject *self, void *closure)
{
	const uint32_t end = ((struct image_object *)self)->end;

	return PyUnicode_FromString(end < sizeof(end_names) / sizeof(end_names[0]) ? end_names[end]
										   : "unknown");
}

static PyObject *image_complete(PyObject *self, void *closure)
{
	return PyBool_FromLong(((struct image_object *)self)->end == GDRCAP_IMAGE_COMPLETE);
}

static PyObject *image_released(PyObject *self, void *closure)
{
	return PyBool_FromLong(!((struct image_object *)self)->lease);
}

static PyObject *image_fields(PyObject *self, void *closure)
{
	const unsigned long long *fields = ((struct image_object *)self)->fields;

	return Py_BuildValue("(KKKK)", fields[0], fields[1], fields[2], fields[3]);
}

static PyObject *image_present(PyObject *self, void *closure)
{
	struct lease *lease = image_lease(self);
	struct present_object *present;
	allocfunc alloc;

	if (!lease)
		return NULL;
	alloc = (allocfunc)PyType_GetSlot(present_type, Py_tp_alloc);
	present = (struct present_object *)alloc(present_type, 0);
	if (!present)
		return NULL;
	present->lease = lease_ref(lease);
	present->count = lease->image->pieces;
	tensor_bytes(&present->words, (uint8_t *)(uintptr_t)lease->image->present,
		     (present->count + 31) / 32, (struct dlpack_device){ DLPACK_CPU, 0 });
	present->words.dtype = dtype_uint32;
	present->words.strides[0] = 4;
	present->words.read_only = true;
	return (PyObject *)present;
}

static PyObject *image_address(PyObject *self, void *closure)
{
	const struct lease *lease = image_lease(self);

	return lease ? PyLong_FromVoidPtr(lease->image->data) : NULL;
}

static PyObject *image_device(PyObject *self, void *closure)
{
	struct tensor tensor;

	return image_tensor(self, &tensor) ? tensor_dlpack_device(&tensor) : NULL;
}

static PyObject *image_cuda(PyObject *self, void *closure)
{
	struct tensor tensor;
	struct lease *lease = image_tensor(self, &tensor);

	return lease ? tensor_cuda_array_interface(&tensor, lease) : NULL;
}

static PyObject *image_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct tensor tensor;
	struct lease *lease = image_tensor(self, &tensor);

	return lease ? tensor_dlpack(&tensor, lease, args, kwargs) : NULL;
}

static PyObject *image_dlpack_device(PyObject *self, PyObject *unused)
{
	return image_device(self, NULL);
}

static PyObject *image_view(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct tensor tensor;
	struct lease *lease = image_tensor(self, &tensor);

	return lease ? tensor_view(&tensor, lease, args, kwargs) : NULL;
}

static int image_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct tensor tensor;
	struct lease *lease = image_tensor(self, &tensor);

	view->obj = NULL;
	return lease ? tensor_get_buffer(self, &tensor, lease, view, flags) : -1;
}

static Py_ssize_t image_length(PyObject *self)
{
	return (Py_ssize_t)((struct image_object *)self)->bytes;
}

static PyObject *image_missing(PyObject *self, PyObject *unused)
{
	struct lease *lease = image_lease(self);
	struct gdrcap_range *range;
	PyObject *list = NULL;
	int count;

	if (!lease)
		return NULL;
	count = gdrcap_image_missing(lease->image, NULL, 0);
	if (count < 0)
		return raise_code(count, "what is missing: %s", strerror(-count));
	range = PyMem_Calloc((size_t)count + 1, sizeof(*range));
	if (!range)
		return PyErr_NoMemory();
	gdrcap_image_missing(lease->image, range, (unsigned int)count);
	list = PyList_New(count);
	for (int i = 0; list && i < count; i++) {
		PyObject *pair = Py_BuildValue("(KK)", (unsigned long long)range[i].from,
					       (unsigned long long)range[i].bytes);

		if (!pair || PyList_SetItem(list, i, pair) < 0)
			Py_CLEAR(list);
	}
	PyMem_Free(range);
	return list;
}

/* The range that is asked for; -1 with an exception. */
static int copy_range(const struct gdrcap_image *image, PyObject *bytes, Py_ssize_t from,
		      Py_ssize_t *count)
{
	const Py_ssize_t there = (Py_ssize_t)image->bytes;

	*count = bytes == Py_None ? there - from : PyLong_AsSsize_t(bytes);
	if (*count == -1 && PyErr_Occurred())
		return -1;
	if (from >= 0 && from <= there && *count >= 0 && *count <= there - from)
		return 0;
	PyErr_Format(PyExc_ValueError, "copy: bytes %zd to %zd: the image has %zd", from,
		     from + *count, there);
	return -1;
}

static PyObject *image_copy(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "start", "bytes", NULL };
	struct lease *lease = image_lease(self);
	PyObject *bytes = Py_None, *copy;
	Py_ssize_t from = 0, count;
	int ret;

	if (!lease ||
	    !PyArg_ParseTupleAndKeywords(args, kwargs, "|nO:copy", names, &from, &bytes) ||
	    copy_range(lease->image, bytes, from, &count) < 0)
		return NULL;
	copy = PyBytes_FromStringAndSize(NULL, count);
	if (!copy || count == 0)
		return copy;
	ret = lease_copy(lease, (uint64_t)from, (uint64_t)count, PyBytes_AsString(copy));
	if (ret == 0)
		return copy;
	Py_DECREF(copy);
	return raise_code(ret, "copying the image: %s", strerror(-ret));
}

/* Gives the object's claim back; others' over the same memory stay. */
static int image_let_go(PyObject *self, PyObject *stream)
{
	struct image_object *image = (struct image_object *)self;
	struct lease *lease = image_lease(self);
	uint64_t handle;

	if (!lease)
		return -1;
	if (stream != Py_None) {
		if (lease->device.type != DLPACK_CUDA) {
			PyErr_SetString(PyExc_ValueError,
					"stream: this image lies in host memory; leave it out");
			return -1;
		}
		if (stream_from_object(stream, &handle) < 0 || lease_add_stream(lease, handle) < 0)
			return -1;
	}
	image->lease = NULL;
	lease_unref_gil(lease);
	return 0;
}

static PyObject *image_release(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "stream", NULL };
	PyObject *stream = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:release", names, &stream) ||
	    image_let_go(self, stream) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *image_enter(PyObject *self, PyObject *unused)
{
	return image_lease(self) ? Py_NewRef(self) : NULL;
}

static PyObject *image_exit(PyObject *self, PyObject *args)
{
	if (((struct image_object *)self)->lease && image_let_go(self, Py_None) < 0)
		return NULL;
	Py_RETURN_FALSE;
}

#define MEMBER(name, type, doc)                                                                    \
	{                                                                                          \
#name, type, offsetof(struct image_object, name), READONLY, doc                    \
	}
static PyMemberDef image_members[] = {
	MEMBER(seq, T_ULONGLONG, "One more an image that is taken, without gaps, from 0."),
	MEMBER(number, T_ULONGLONG,
	       "The sender's, extended to 64 bits; a time stamp where that is "
	       "the number."),
	MEMBER(stream, T_UINT, "Index of its stream."),
	MEMBER(stream_id, T_ULONGLONG, "The sender's id of its stream; 0 where there is one."),
	MEMBER(bytes, T_ULONGLONG,
	       "Bytes that it has, with its rows' padding; where nobody said: "
	       "the most that there can be."),
	MEMBER(placed, T_ULONGLONG, "Bytes that came, second copies not counted."),
	MEMBER(pieces, T_UINT, "Pieces that it has; 0: nobody said how many."),
	MEMBER(received, T_UINT, "Pieces that came."),
	MEMBER(skipped, T_ULONGLONG,
	       "Images of the stream of which nothing came, since the one "
	       "before."),
	MEMBER(first_time, T_ULONGLONG, "Arrival of the first piece, ns since the Unix epoch."),
	MEMBER(last_time, T_ULONGLONG, "Arrival of the last piece, ns since the Unix epoch."),
	MEMBER(timestamp, T_ULONGLONG, "The sender's, in its unit; 0 where the layout has none."),
	{ 0 },
};
static PyGetSetDef image_getset[] = {
	{ "end", image_end, NULL,
	  "What closed it: \"complete\", \"newer\", \"timeout\" or \"stopped\".", NULL },
	{ "complete", image_complete, NULL, "Whether all of it came.", NULL },
	{ "released", image_released, NULL, "Whether release() was called.", NULL },
	{ "fields", image_fields, NULL, "The four fields of the layout; 0 where there is none.",
	  NULL },
	{ "present", image_present, NULL, "Which pieces came: gdrcap.Present.", NULL },
	{ "address", image_address, NULL, "Of the first byte; a device pointer in GPU memory.",
	  NULL },
	{ "device", image_device, NULL,
	  "DLPack's (type, index): (1, 0) host, (2, n) CUDA device n.", NULL },
	{ "__cuda_array_interface__", image_cuda, NULL, "Version 3; AttributeError in host memory.",
	  NULL },
	{ 0 },
};
static PyMethodDef image_methods[] = {
	{ "missing", image_missing, METH_NOARGS,
	  "missing($self, /)\n--\n\nBytes that did not come: [(first byte, bytes), ...] in order." },
	{ "copy", (PyCFunction)(void *)image_copy, METH_VARARGS | METH_KEYWORDS,
	  "copy($self, /, start=0, bytes=None)\n--\n\nThese bytes in host memory, wherever the image "
	  "lies." },
	{ "view", (PyCFunction)(void *)image_view, METH_VARARGS | METH_KEYWORDS,
	  "view($self, /, dtype='uint8', shape=None, *, pitch=None)\n--\n\n"
	  "An array of this type and shape over the same memory.\n\n"
	  "shape: elements by dimension, one of which may be -1. pitch: bytes from one row to the "
	  "next." },
	{ "release", (PyCFunction)(void *)image_release, METH_VARARGS | METH_KEYWORDS,
	  "release($self, /, stream=None)\n--\n\nGives the buffer back, once all views and tensors are "
	  "gone, too.\n\nstream: a CUDA stream that is to come this far first: a handle, a "
	  "torch.cuda.Stream or a cupy.cuda.Stream." },
	{ "__enter__", image_enter, METH_NOARGS, NULL },
	{ "__exit__", image_exit, METH_VARARGS, NULL },
	{ "__dlpack__", (PyCFunction)(void *)image_dlpack, METH_VARARGS | METH_KEYWORDS,
	  "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
	  "A DLPack capsule over the image's bytes, or a copy in host memory." },
	{ "__dlpack_device__", image_dlpack_device, METH_NOARGS,
	  "__dlpack_device__($self, /)\n--\n\n(type, index) of the memory: (1, 0) host, (2, n) CUDA "
	  "device n." },
	{ 0 },
};
static PyType_Slot image_slots[] = {
	{ Py_tp_doc,
	  "One image: a one-dimensional array of its bytes (uint8), where they lie.\n\n"
	  "numpy.from_dlpack(), torch.from_dlpack(), cupy.from_dlpack() and, in host memory,\n"
	  "memoryview() make arrays over the same memory. The buffer is given back when the image\n"
	  "and all that was made of it are gone, and the streams that took it have come that far." },
	{ Py_tp_dealloc, (void *)image_dealloc },
	{ Py_tp_repr, (void *)image_repr },
	{ Py_tp_members, image_members },
	{ Py_tp_getset, image_getset },
	{ Py_tp_methods, image_methods },
	{ Py_sq_length, (void *)image_length },
	{ Py_bf_getbuffer, (void *)image_get_buffer },
	{ Py_bf_releasebuffer, (void *)tensor_put_buffer },
	{ 0, NULL },
};
static PyType_Spec image_spec = {
	.name = "gdrcap.Image",
	.basicsize = sizeof(struct image_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = image_slots,
};

int image_init(PyObject *module)
{
	image_type = type_add(module, &image_spec, NULL);
	present_type = type_add(module, &present_spec, NULL);
	return image_type && present_type ? 0 : -1;
}
