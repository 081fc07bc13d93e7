/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays over an image's or a frame's memory: dtype, shape, buffer protocol. */
#include <string.h>

#include "native.h"

static const struct dtype dtypes[] = {
	{ "uint8", "|u1", "B", { DLPACK_UINT, 8, 1 } },
	{ "uint16", "<u2", "H", { DLPACK_UINT, 16, 1 } },
	{ "uint32", "<u4", "I", { DLPACK_UINT, 32, 1 } },
	{ "uint64", "<u8", "Q", { DLPACK_UINT, 64, 1 } },
	{ "int8", "|i1", "b", { DLPACK_INT, 8, 1 } },
	{ "int16", "<i2", "h", { DLPACK_INT, 16, 1 } },
	{ "int32", "<i4", "i", { DLPACK_INT, 32, 1 } },
	{ "int64", "<i8", "q", { DLPACK_INT, 64, 1 } },
	{ "float16", "<f2", "e", { DLPACK_FLOAT, 16, 1 } },
	{ "float32", "<f4", "f", { DLPACK_FLOAT, 32, 1 } },
	{ "float64", "<f8", "d", { DLPACK_FLOAT, 64, 1 } },
	{ "complex64", "<c8", "Zf", { DLPACK_COMPLEX, 64, 1 } },
	{ "complex128", "<c16", "Zd", { DLPACK_COMPLEX, 128, 1 } },
	{ "bool", "|b1", "?", { DLPACK_BOOL, 8, 1 } },
};
const struct dtype *const dtype_uint8 = &dtypes[0], *const dtype_uint32 = &dtypes[2];
PyTypeObject *array_type;

static int64_t item_bytes(const struct dtype *dtype)
{
	return dtype->dl.bits / 8;
}

static const struct dtype *dtype_named(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++)
		if (!strcmp(dtypes[i].name, dot ? dot + 1 : name) ||
		    !strcmp(dtypes[i].typestr, name) ||
		    (dtypes[i].typestr[0] == '<' && dtypes[i].typestr[1] && name[0] == '=' &&
		     !strcmp(dtypes[i].typestr + 1, name + 1)))
			return &dtypes[i];
	return NULL;
}

/* "uint16", "<u2", numpy.uint16, numpy.dtype, torch.uint16: what each calls itself. */
static PyObject *dtype_word(PyObject *object)
{
	static const char *const names[] = { "str", "__name__" };

	if (PyUnicode_Check(object))
		return Py_NewRef(object);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		PyObject *word = PyObject_GetAttrString(object, names[i]);

		if (word && PyUnicode_Check(word))
			return word;
		Py_XDECREF(word);
		PyErr_Clear();
	}
	return PyObject_Str(object);
}

const struct dtype *dtype_from_object(PyObject *object)
{
	PyObject *word = dtype_word(object);
	const char *name = word ? PyUnicode_AsUTF8AndSize(word, NULL) : NULL;
	const struct dtype *dtype = name ? dtype_named(name) : NULL;

	if (name && !dtype)
		PyErr_Format(
			PyExc_TypeError,
			"dtype %R: none that an image can have; allowed: bool, int8 ... int64, "
			"uint8 ... uint64, float16, float32, float64, complex64, complex128, in "
			"this machine's byte order (the other order: option image, convert)",
			object);
	Py_XDECREF(word);
	return dtype;
}

/* ---- tensors ---- */

void tensor_bytes(struct tensor *tensor, uint8_t *data, int64_t bytes, struct dlpack_device device)
{
	memset(tensor, 0, sizeof(*tensor));
	tensor->data = data;
	tensor->dtype = dtype_uint8;
	tensor->ndim = 1;
	tensor->shape[0] = bytes;
	tensor->strides[0] = 1;
	tensor->device = device;
}

int64_t tensor_count(const struct tensor *tensor)
{
	int64_t count = 1;

	for (int i = 0; i < tensor->ndim; i++)
		count *= tensor->shape[i];
	return count;
}

static bool is_contiguous(const struct tensor *tensor)
{
	int64_t stride = item_bytes(tensor->dtype);

	for (int i = tensor->ndim - 1; i >= 0; i--) {
		if (tensor->strides[i] != stride && tensor->shape[i] > 1)
			return false;
		stride *= tensor->shape[i];
	}
	return true;
}

/* ---- views ---- */

/* One dimension; -1 stands for what is left, once. */
static int dim_from(PyObject *object, int64_t *dim)
{
	*dim = PyLong_AsLongLong(object);
	if (*dim == -1 && PyErr_Occurred())
		return -1;
	if (*dim >= -1)
		return 0;
	PyErr_Format(PyExc_ValueError, "shape: %lld is no length; allowed: 0 and more, and -1 once",
		     (long long)*dim);
	return -1;
}

static int shape_from_tuple(struct tensor *tensor, PyObject *shape)
{
	PyObject *tuple = PySequence_Tuple(shape);
	int rc = tuple ? 0 : -1;

	if (tuple && PyTuple_Size(tuple) > TENSOR_DIMS) {
		PyErr_Format(PyExc_ValueError, "shape: %zd dimensions; at most %d",
			     PyTuple_Size(tuple), TENSOR_DIMS);
		rc = -1;
	}
	for (tensor->ndim = 0; rc == 0 && tensor->ndim < PyTuple_Size(tuple); tensor->ndim++)
		rc = dim_from(PyTuple_GetItem(tuple, tensor->ndim), &tensor->shape[tensor->ndim]);
	Py_XDECREF(tuple);
	return rc;
}

static int shape_from_object(struct tensor *tensor, PyObject *shape)
{
	tensor->ndim = 1;
	tensor->shape[0] = -1;
	if (shape == Py_None)
		return 0;
	if (PyLong_Check(shape))
		return dim_from(shape, &tensor->shape[0]);
	return shape_from_tuple(tensor, shape);
}

/* The dimension that is -1, from `items` that there are. */
static int shape_settle(struct tensor *tensor, int64_t items)
{
	int64_t known = 1;
	int open = -1;

	for (int i = 0; i < tensor->ndim; i++) {
		if (tensor->shape[i] >= 0) {
			if (__builtin_mul_overflow(known, tensor->shape[i], &known))
				known = INT64_MAX / 32; /* too many, whatever the rest is */
		} else if (open >= 0) {
			PyErr_SetString(PyExc_ValueError, "shape: only one dimension can be -1");
			return -1;
		} else {
			open = i;
		}
	}
	if (open >= 0)
		tensor->shape[open] = known ? items / known : 0;
	return 0;
}

/* Of the first dimension each entry begins `pitch` bytes behind the one before it. */
static int view_rows(struct tensor *view, int64_t bytes, int64_t pitch)
{
	const int64_t item = item_bytes(view->dtype);
	const bool open = view->ndim > 0 && view->shape[0] == -1;
	int64_t row = item, rows;

	if (view->ndim < 2) {
		PyErr_SetString(PyExc_ValueError,
				"pitch: a shape of two dimensions or more has rows; give one");
		return -1;
	}
	if (pitch <= 0 || pitch % item) {
		PyErr_Format(PyExc_ValueError, "pitch: %lld bytes are no multiple of a %s's %lld",
			     (long long)pitch, view->dtype->name, (long long)item);
		return -1;
	}
	for (int i = view->ndim - 1; i > 0; i--) {
		if (view->shape[i] < 0) {
			PyErr_SetString(PyExc_ValueError,
					"shape: with a pitch only the first dimension, that of the "
					"rows, can be -1");
			return -1;
		}
		view->strides[i] = row;
		if (__builtin_mul_overflow(row, view->shape[i], &row))
			row = INT64_MAX;
	}
	view->strides[0] = pitch;
	if (open)
		view->shape[0] = row <= bytes ? (bytes - row) / pitch + 1 : 1;
	rows = view->shape[0];
	if (rows == 0 || (row <= pitch && row <= bytes && rows - 1 <= (bytes - row) / pitch))
		return 0;
	PyErr_Format(PyExc_ValueError,
		     "shape, pitch: %lld rows of %lld bytes, %lld from one to the next, do not fit "
		     "into %lld bytes",
		     (long long)rows, (long long)row, (long long)pitch, (long long)bytes);
	return -1;
}

static int view_dense(struct tensor *view, int64_t bytes)
{
	const int64_t item = item_bytes(view->dtype);
	int64_t total = item;

	if (shape_settle(view, bytes / item) < 0)
		return -1;
	for (int i = view->ndim - 1; i >= 0; i--) {
		view->strides[i] = total;
		if (__builtin_mul_overflow(total, view->shape[i], &total))
			total = -1;
		if (total < 0)
			break;
	}
	if (total == bytes)
		return 0;
	PyErr_Format(
		PyExc_ValueError,
		"shape: %s of this shape are %lld bytes, and there are %lld: they must be equal "
		"(rows further apart than they are long: pitch)",
		view->dtype->name, (long long)total, (long long)bytes);
	return -1;
}

PyObject *tensor_view(const struct tensor *bytes, struct lease *lease, PyObject *args,
		      PyObject *kwargs)
{
	static char *names[] = { "dtype", "shape", "pitch", NULL };
	PyObject *dtype = NULL, *shape = Py_None, *pitch = Py_None;
	struct tensor view = *bytes;
	int rc;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO$O:view", names, &dtype, &shape, &pitch))
		return NULL;
	view.dtype = dtype ? dtype_from_object(dtype) : dtype_uint8;
	if (!view.dtype || shape_from_object(&view, shape) < 0)
		return NULL;
	if ((uintptr_t)view.data %
	    (uintptr_t)(item_bytes(view.dtype) / (view.dtype->dl.code == DLPACK_COMPLEX ? 2 : 1))) {
		PyErr_Format(PyExc_ValueError,
			     "dtype: these bytes begin at an address that is no multiple of a %s's "
			     "size",
			     view.dtype->name);
		return NULL;
	}
	if (pitch == Py_None) {
		rc = view_dense(&view, bytes->shape[0]);
	} else {
		const long long between = PyLong_AsLongLong(pitch);

		rc = between == -1 && PyErr_Occurred() ? -1
						       : view_rows(&view, bytes->shape[0], between);
	}
	return rc < 0 ? NULL : array_new(array_type, &view, lease);
}

/* ---- buffer protocol ---- */

/* Beside a view: what it points to. */
struct buffer_part {
	struct lease *lease;
	Py_ssize_t shape[TENSOR_DIMS], strides[TENSOR_DIMS];
};

int tensor_get_buffer(PyObject *exporter, const struct tensor *tensor, struct lease *lease,
		      Py_buffer *view, int flags)
{
	const bool dense = is_contiguous(tensor);
	struct buffer_part *part;

	view->obj = NULL;
	if (tensor->device.type != DLPACK_CPU) {
		PyErr_SetString(
			PyExc_BufferError,
			"these bytes lie in GPU memory: use copy(), or torch.from_dlpack() and "
			"cupy.from_dlpack()");
		return -1;
	}
	if ((flags & PyBUF_WRITABLE) && tensor->read_only) {
		PyErr_SetString(PyExc_BufferError, "this can only be read");
		return -1;
	}
	if (!dense && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
		PyErr_SetString(PyExc_BufferError, "rows lie apart: a reader must know of strides");
		return -1;
	}
	part = PyMem_Malloc(sizeof(*part));
	if (!part) {
		PyErr_NoMemory();
		return -1;
	}
	part->lease = lease_ref(lease);
	for (int i = 0; i < tensor->ndim; i++) {
		part->shape[i] = tensor->shape[i];
		part->strides[i] = tensor->strides[i];
	}
	memset(view, 0, sizeof(*view));
	view->buf = tensor->data;
	view->obj = Py_NewRef(exporter);
	view->itemsize = item_bytes(tensor->dtype);
	view->len = tensor_count(tensor) * view->itemsize;
	view->readonly = tensor->read_only;
	view->ndim = tensor->ndim;
	view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)tensor->dtype->format : NULL;
	view->shape = flags & PyBUF_ND ? part->shape : NULL;
	view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? part->strides : NULL;
	view->internal = part;
	return 0;
}

void tensor_put_buffer(PyObject *exporter, Py_buffer *view)
{
	struct buffer_part *part = view->internal;

	lease_unref_gil(part->lease);
	PyMem_Free(part);
}

/* ---- the type ---- */

PyObject *array_new(PyTypeObject *type, const struct tensor *tensor, struct lease *lease)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct array_object *array = (struct array_object *)alloc(type, 0);

	if (!array)
		return NULL;
	array->lease = lease_ref(lease);
	array->tensor = *tensor;
	return (PyObject *)array;
}

static void array_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	lease_unref_gil(((struct array_object *)self)->lease);
	release(self);
	Py_DECREF(type);
}

static PyObject *array_shape(PyObject *self, void *closure)
{
	const struct tensor *tensor = &((struct array_object *)self)->tensor;
	const int64_t *of = closure ? tensor->strides : tensor->shape;
	PyObject *tuple = PyTuple_New(tensor->ndim);

	for (int i = 0; tuple && i < tensor->ndim; i++) {
		PyObject *number = PyLong_FromLongLong(of[i]);

		if (!number || PyTuple_SetItem(tuple, i, number) < 0)
			Py_CLEAR(tuple);
	}
	return tuple;
}

static PyObject *array_dtype(PyObject *self, void *closure)
{
	return PyUnicode_FromString(((struct array_object *)self)->tensor.dtype->name);
}

static PyObject *array_nbytes(PyObject *self, void *closure)
{
	const struct tensor *tensor = &((struct array_object *)self)->tensor;

	return PyLong_FromLongLong(tensor_count(tensor) * item_bytes(tensor->dtype));
}

static PyObject *array_address(PyObject *self, void *closure)
{
	return PyLong_FromVoidPtr(((struct array_object *)self)->tensor.data);
}

static PyObject *array_device(PyObject *self, void *closure)
{
	return tensor_dlpack_device(&((struct array_object *)self)->tensor);
}

static PyObject *array_cuda(PyObject *self, void *closure)
{
	struct array_object *array = (struct array_object *)self;

	return tensor_cuda_array_interface(&array->tensor, array->lease);
}

static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kwargs)
{
	struct array_object *array = (struct array_object *)self;

	return tensor_dlpack(&array->tensor, array->lease, args, kwargs);
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *unused)
{
	return array_device(self, NULL);
}

static int array_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
	struct array_object *array = (struct array_object *)self;

	return tensor_get_buffer(self, &array->tensor, array->lease, view, flags);
}

static Py_ssize_t array_length(PyObject *self)
{
	const struct tensor *tensor = &((struct array_object *)self)->tensor;

	if (tensor->ndim)
		return tensor->shape[0];
	PyErr_SetString(PyExc_TypeError, "a scalar has no length");
	return -1;
}

static PyGetSetDef array_getset[] = {
	{ "shape", array_shape, NULL, "Lengths of the dimensions, in elements.", NULL },
	{ "strides", array_shape, NULL, "Bytes from an element to the next, by dimension.",
	  (void *)1 },
	{ "dtype", array_dtype, NULL, "Name of the elements' type, as numpy has it: \"uint16\".",
	  NULL },
	{ "nbytes", array_nbytes, NULL, "Bytes of all elements, without what lies between rows.",
	  NULL },
	{ "address", array_address, NULL, "Of the first byte; a device pointer in GPU memory.",
	  NULL },
	{ "device", array_device, NULL,
	  "DLPack's (type, index): (1, 0) host, (2, n) CUDA device n.", NULL },
	{ "__cuda_array_interface__", array_cuda, NULL, "Version 3; AttributeError in host memory.",
	  NULL },
	{ 0 },
};
static PyMethodDef array_methods[] = {
	{ "__dlpack__", (PyCFunction)(void *)array_dlpack, METH_VARARGS | METH_KEYWORDS,
	  "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
	  "A DLPack capsule over the same memory, or a copy in host memory." },
	{ "__dlpack_device__", array_dlpack_device, METH_NOARGS,
	  "(type, index) of the memory: (1, 0) host, (2, n) CUDA device n." },
	{ 0 },
};
static PyType_Slot array_slots[] = {
	{ Py_tp_doc, "Elements of one type over an image's or a frame's memory, nothing copied.\n\n"
		     "The memory stays until this and all that was made of it are gone." },
	{ Py_tp_dealloc, (void *)array_dealloc },
	{ Py_tp_getset, array_getset },
	{ Py_tp_methods, array_methods },
	{ Py_bf_getbuffer, (void *)array_get_buffer },
	{ Py_bf_releasebuffer, (void *)tensor_put_buffer },
	{ Py_sq_length, (void *)array_length },
	{ 0, NULL },
};
static PyType_Spec array_spec = {
	.name = "gdrcap.Array",
	.basicsize = sizeof(struct array_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = array_slots,
};

int array_init(PyObject *module)
{
	array_type = type_add(module, &array_spec, NULL);
	return array_type ? 0 : -1;
}
