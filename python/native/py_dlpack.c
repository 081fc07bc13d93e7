/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensors for others: DLPack, and CUDA's array interface. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

#define CAPSULE "dltensor"
#define CAPSULE_VERSIONED "dltensor_versioned"

/* What a capsule points to; plain C, as its deleter may run without Python. */
struct export
{
	union {
		struct dlpack_managed legacy;
		struct dlpack_versioned versioned;
	} managed;
	struct lease *lease; /* NULL: a copy */
	void *copy;
	int64_t shape[TENSOR_DIMS], strides[TENSOR_DIMS];
};

static void export_free(struct export *export)
{
	lease_unref(export->lease);
	free(export->copy);
	free(export);
}

static void delete_legacy(struct dlpack_managed *self)
{
	export_free(self->context);
}

static void delete_versioned(struct dlpack_versioned *self)
{
	export_free(self->context);
}

/* Of a capsule that nobody consumed: a consumer renames it. */
static void capsule_free(PyObject *capsule)
{
	if (PyCapsule_IsValid(capsule, CAPSULE)) {
		struct dlpack_managed *legacy = PyCapsule_GetPointer(capsule, CAPSULE);

		export_free(legacy->context);
	} else if (PyCapsule_IsValid(capsule, CAPSULE_VERSIONED)) {
		struct dlpack_versioned *versioned =
			PyCapsule_GetPointer(capsule, CAPSULE_VERSIONED);

		export_free(versioned->context);
	}
}

static void fill(struct export *export, struct dlpack_tensor *to, const struct tensor *tensor)
{
	const int64_t item = tensor->dtype->dl.bits / 8;

	for (int i = 0; i < tensor->ndim; i++) {
		export->shape[i] = tensor->shape[i];
		export->strides[i] = tensor->strides[i] / item;
	}
	to->data = tensor->data;
	to->device = tensor->device;
	to->ndim = tensor->ndim;
	to->dtype = tensor->dtype->dl;
	to->shape = export->shape;
	to->strides = export->strides;
	to->byte_offset = 0;
}

static PyObject *capsule_new(struct export *export, const struct tensor *tensor, bool versioned)
{
	void *managed = &export->managed;
	PyObject *capsule;

	if (versioned) {
		struct dlpack_versioned *to = managed;

		to->major = DLPACK_MAJOR;
		to->minor = DLPACK_MINOR;
		to->context = export;
		to->deleter = delete_versioned;
		to->flags = (tensor->read_only ? DLPACK_FLAG_READ_ONLY : 0) |
			    (export->copy ? DLPACK_FLAG_IS_COPIED : 0);
		fill(export, &to->tensor, tensor);
	} else {
		struct dlpack_managed *to = managed;

		to->context = export;
		to->deleter = delete_legacy;
		fill(export, &to->tensor, tensor);
	}
	capsule = PyCapsule_New(managed, versioned ? CAPSULE_VERSIONED : CAPSULE, capsule_free);
	if (!capsule)
		export_free(export);
	return capsule;
}

/* ---- what was asked for ---- */

struct request {
	uint64_t stream; /* that will read it; 0: none */
	bool versioned, copies;
};

static int request_version(struct request *request, PyObject *version)
{
	PyObject *major;

	if (version == Py_None)
		return 0;
	major = PySequence_GetItem(version, 0);
	if (!major)
		return -1;
	request->versioned = PyLong_AsLong(major) >= (long)DLPACK_MAJOR;
	Py_DECREF(major);
	return PyErr_Occurred() ? -1 : 0;
}

/* None: the default stream, as the standard has it; -1: the consumer synchronises by itself, and on
 * which stream it reads is not known: behind the default one is the best that can be done. */
static int request_stream(struct request *request, PyObject *stream, bool cuda)
{
	long long number = stream == Py_None ? (long long)CUDA_STREAM_LEGACY : -1;

	if (!cuda) {
		if (stream == Py_None)
			return 0;
		PyErr_SetString(PyExc_ValueError,
				"stream: these bytes lie in host memory; leave it out");
		return -1;
	}
	if (stream != Py_None)
		number = PyLong_AsLongLong(stream);
	if (number == -1 && PyErr_Occurred())
		return -1;
	if (number == 0 || number < -1) {
		PyErr_Format(PyExc_ValueError,
			     "stream: %lld is none; allowed: None, -1, 1 (default stream), 2 (a "
			     "thread's), or a handle",
			     number);
		return -1;
	}
	request->stream = number == -1 ? CUDA_STREAM_LEGACY : (uint64_t)number;
	return 0;
}

/* Whether it goes to another device, or is to be copied. */
static int request_device(struct request *request, const struct tensor *tensor, PyObject *device,
			  PyObject *copy)
{
	long type = tensor->device.type, id = tensor->device.id;
	int wanted = copy == Py_None ? -1 : PyObject_IsTrue(copy);
	bool elsewhere;

	if (copy != Py_None && wanted < 0)
		return -1;
	if (device != Py_None) {
		PyObject *pair = PySequence_Tuple(device);

		if (!pair || !PyArg_ParseTuple(pair, "ll", &type, &id)) {
			Py_XDECREF(pair);
			return -1;
		}
		Py_DECREF(pair);
	}
	elsewhere = type != tensor->device.type || (type != DLPACK_CPU && id != tensor->device.id);
	if (elsewhere && wanted == 0) {
		PyErr_SetString(
			PyExc_BufferError,
			"copy=False: these bytes lie on another device, and can only be copied");
		return -1;
	}
	request->copies = elsewhere || wanted == 1;
	if (request->copies && type != DLPACK_CPU) {
		PyErr_SetString(
			PyExc_BufferError,
			"dl_device, copy: copies are made in host memory only; copy the tensor "
			"where it is to go");
		return -1;
	}
	return 0;
}

/* ---- copies ---- */

/* Bytes from the first element's to behind the last one's. */
static int64_t span_bytes(const struct tensor *tensor)
{
	int64_t bytes = tensor->dtype->dl.bits / 8;

	for (int i = 0; i < tensor->ndim; i++) {
		if (tensor->shape[i] == 0)
			return 0;
		bytes += (tensor->shape[i] - 1) * tensor->strides[i];
	}
	return bytes;
}

static PyObject *copy_new(struct export *export, const struct tensor *tensor, struct lease *lease,
			  bool versioned)
{
	const int64_t bytes = span_bytes(tensor);
	struct tensor copy = *tensor;
	int ret = 0;

	export->copy = malloc(bytes ? (size_t)bytes : 1);
	if (!export->copy) {
		export_free(export);
		return PyErr_NoMemory();
	}
	copy.data = export->copy;
	copy.device = (struct dlpack_device){ DLPACK_CPU, 0 };
	copy.read_only = false;
	if (tensor->device.type != DLPACK_CPU)
		ret = lease_copy(lease, (uint64_t)(tensor->data - lease->image->data),
				 (uint64_t)bytes, export->copy);
	else
		memcpy(export->copy, tensor->data, (size_t)bytes);
	if (ret == 0)
		return capsule_new(export, &copy, versioned);
	export_free(export);
	return raise_code(ret, "copying from GPU memory: %s", strerror(-ret));
}

PyObject *tensor_dlpack(const struct tensor *tensor, struct lease *lease, PyObject *args,
			PyObject *kwargs)
{
	static char *names[] = { "stream", "max_version", "dl_device", "copy", NULL };
	PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
	struct request request = { 0 };
	struct export *export;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", names, &stream,
					 &version, &device, &copy) ||
	    request_version(&request, version) < 0 ||
	    request_device(&request, tensor, device, copy) < 0)
		return NULL;
	if (!request.copies &&
	    request_stream(&request, stream, tensor->device.type == DLPACK_CUDA) < 0)
		return NULL;
	if (!request.versioned && tensor->read_only && !request.copies) {
		PyErr_SetString(
			PyExc_BufferError,
			"this can only be read, which DLPack before 1.0 cannot say; ask for "
			"max_version=(1, 0)");
		return NULL;
	}
	if (request.copies && tensor->device.type != DLPACK_CPU && !lease->image) {
		PyErr_SetString(PyExc_BufferError, "only images are copied from GPU memory");
		return NULL;
	}
	export = calloc(1, sizeof(*export));
	if (!export)
		return PyErr_NoMemory();
	if (request.copies)
		return copy_new(export, tensor, lease, request.versioned);
	if (lease_add_stream(lease, request.stream) < 0) {
		free(export);
		return NULL;
	}
	export->lease = lease_ref(lease);
	return capsule_new(export, tensor, request.versioned);
}

PyObject *tensor_dlpack_device(const struct tensor *tensor)
{
	return Py_BuildValue("(ii)", (int)tensor->device.type, (int)tensor->device.id);
}

/* ---- CUDA's array interface ---- */

static PyObject *tuple_of(const int64_t *numbers, int count)
{
	PyObject *tuple = PyTuple_New(count);

	for (int i = 0; tuple && i < count; i++) {
		PyObject *number = PyLong_FromLongLong(numbers[i]);

		if (!number || PyTuple_SetItem(tuple, i, number) < 0)
			Py_CLEAR(tuple);
	}
	return tuple;
}

PyObject *tensor_cuda_array_interface(const struct tensor *tensor, struct lease *lease)
{
	if (tensor->device.type != DLPACK_CUDA) {
		PyErr_SetString(PyExc_AttributeError,
				"__cuda_array_interface__: these bytes lie in host memory");
		return NULL;
	}
	/* It says nothing of the stream that will read. */
	if (lease_add_stream(lease, CUDA_STREAM_LEGACY) < 0)
		return NULL;
	return Py_BuildValue("{s:i, s:N, s:N, s:s, s:(KO), s:O}", "version", 3, "shape",
			     tuple_of(tensor->shape, tensor->ndim), "strides",
			     tuple_of(tensor->strides, tensor->ndim), "typestr",
			     tensor->dtype->typestr, "data",
			     (unsigned long long)(uintptr_t)tensor->data,
			     tensor->read_only ? Py_True : Py_False, "stream", Py_None);
}
