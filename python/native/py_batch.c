/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrcap.Batch and gdrcap.Frame: what came of a receive queue, for who judges frames himself. */
#include <string.h>

#include "native.h"

struct batch_object {
	PyObject ob_base;
	struct lease *lease; /* NULL: released */
	unsigned long long seq;
	unsigned int count;
};

struct frame_object {
	struct array_object array;
	uint32_t index;
};

static PyTypeObject *batch_type, *frame_type;

/* ---- frames ---- */

static const struct gdrcap_batch *frame_batch(PyObject *self)
{
	return ((struct frame_object *)self)->array.lease->batch;
}

static uint32_t frame_index(PyObject *self)
{
	return ((struct frame_object *)self)->index;
}

static PyObject *frame_wire_bytes(PyObject *self, void *closure)
{
	return PyLong_FromUnsignedLong(
		gdrcap_frame_wire_bytes(frame_batch(self), frame_index(self)));
}

static PyObject *frame_cut(PyObject *self, void *closure)
{
	return PyBool_FromLong(gdrcap_frame_is_cut(frame_batch(self), frame_index(self)));
}

static PyObject *frame_vlan(PyObject *self, void *closure)
{
	const struct array_object *array = (struct array_object *)self;
	const struct gdrcap_batch *batch = frame_batch(self);
	int vlan;

	if (array->tensor.device.type != DLPACK_CPU && !batch->heads) {
		PyErr_SetString(
			PyExc_BufferError,
			"vlan: the frame lies in GPU memory; option split puts its head into "
			"host memory");
		return NULL;
	}
	vlan = gdrcap_frame_vlan(batch, frame_index(self));
	if (vlan < 0)
		Py_RETURN_NONE;
	return PyLong_FromLong(vlan);
}

static PyObject *frame_time(PyObject *self, void *closure)
{
	const struct lease *lease = ((struct array_object *)self)->lease;

	if (!lease->batch->times)
		Py_RETURN_NONE;
	return PyLong_FromUnsignedLongLong(
		gdrcap_time_ns(lease->queue, lease->batch->times[frame_index(self)]));
}

static PyObject *frame_head(PyObject *self, void *closure)
{
	struct lease *lease = ((struct array_object *)self)->lease;
	struct tensor tensor;

	if (!lease->batch->heads)
		Py_RETURN_NONE;
	tensor_bytes(&tensor, gdrcap_frame_head(lease->batch, frame_index(self)),
		     gdrcap_frame_head_bytes(lease->batch, frame_index(self)),
		     (struct dlpack_device){ DLPACK_CPU, 0 });
	return array_new(array_type, &tensor, lease);
}

static PyGetSetDef frame_getset[] = {
	{ "wire_bytes", frame_wire_bytes, NULL,
	  "Bytes on the wire, with FCS, without preamble and gap; 0: it was cut, nobody knows.",
	  NULL },
	{ "cut", frame_cut, NULL, "Whether only its first bytes may have come.", NULL },
	{ "vlan", frame_vlan, NULL, "Id of its outermost VLAN tag, or None.", NULL },
	{ "time_ns", frame_time, NULL,
	  "Arrival, ns since the Unix epoch; 0: the card gave none; None: option batch_times is off.",
	  NULL },
	{ "head", frame_head, NULL,
	  "Its first bytes, in host memory, with option split; else None.", NULL },
	{ 0 },
};
static PyType_Slot frame_slots[] = {
	{ Py_tp_doc, "One frame of a batch: an array of its bytes (uint8), without FCS." },
	{ Py_tp_getset, frame_getset },
	{ 0, NULL },
};
static PyType_Spec frame_spec = {
	.name = "gdrcap.Frame",
	.basicsize = sizeof(struct frame_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = frame_slots,
};

/* ---- batches ---- */

static struct lease *batch_lease(PyObject *self)
{
	const struct batch_object *batch = (struct batch_object *)self;

	if (!batch->lease)
		PyErr_Format(
			PyExc_ValueError,
			"batch %llu was released: its slots are used again; copy what is to be "
			"kept, or release it later",
			batch->seq);
	return batch->lease;
}

PyObject *batch_new(struct lease *lease)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(batch_type, Py_tp_alloc);
	struct batch_object *batch = (struct batch_object *)alloc(batch_type, 0);

	if (!batch) {
		lease_unref_gil(lease);
		return NULL;
	}
	batch->lease = lease;
	batch->seq = lease->batch->seq;
	batch->count = lease->batch->count;
	return (PyObject *)batch;
}

static void batch_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	lease_unref_gil(((struct batch_object *)self)->lease);
	release(self);
	Py_DECREF(type);
}

static Py_ssize_t batch_length(PyObject *self)
{
	return ((struct batch_object *)self)->count;
}

static PyObject *batch_item(PyObject *self, Py_ssize_t index)
{
	struct lease *lease = batch_lease(self);
	struct tensor tensor;
	PyObject *frame;

	if (!lease)
		return NULL;
	if (index < 0 || index >= (Py_ssize_t)lease->batch->count) {
		PyErr_Format(PyExc_IndexError, "frame %zd: the batch has %u", index,
			     lease->batch->count);
		return NULL;
	}
	tensor_bytes(&tensor, gdrcap_frame(lease->batch, (uint32_t)index),
		     gdrcap_frame_bytes(lease->batch, (uint32_t)index), lease->device);
	frame = array_new(frame_type, &tensor, lease);
	if (frame)
		((struct frame_object *)frame)->index = (uint32_t)index;
	return frame;
}

static PyObject *batch_descriptors(PyObject *self, void *closure)
{
	struct lease *lease = batch_lease(self);
	struct tensor tensor;

	if (!lease)
		return NULL;
	tensor_bytes(&tensor, (uint8_t *)(uintptr_t)lease->batch->pkts, lease->batch->count,
		     (struct dlpack_device){ DLPACK_CPU, 0 });
	tensor.ndim = 2;
	tensor.shape[1] = sizeof(struct gdrcap_pkt);
	tensor.strides[0] = sizeof(struct gdrcap_pkt);
	tensor.strides[1] = 1;
	tensor.read_only = true;
	return array_new(array_type, &tensor, lease);
}

static PyObject *batch_address(PyObject *self, void *closure)
{
	const struct lease *lease = batch_lease(self);

	return lease ? PyLong_FromVoidPtr(lease->batch->data) : NULL;
}

static PyObject *batch_slot_bytes(PyObject *self, void *closure)
{
	const struct lease *lease = batch_lease(self);

	return lease ? PyLong_FromUnsignedLong(lease->batch->slot_bytes) : NULL;
}

static PyObject *batch_released(PyObject *self, void *closure)
{
	return PyBool_FromLong(!((struct batch_object *)self)->lease);
}

static PyObject *batch_gaps(PyObject *self, PyObject *unused)
{
	struct lease *lease = batch_lease(self);
	struct gdrcap_gap *gap;
	PyObject *list;
	int count;

	if (!lease)
		return NULL;
	gap = PyMem_Calloc((size_t)lease->batch->count + 1, sizeof(*gap));
	if (!gap)
		return PyErr_NoMemory();
	count = gdrcap_get_gaps(lease->queue, lease->batch, gap, lease->batch->count, sizeof(*gap));
	list = count < 0 ? raise_code(count,
				      "gaps: these frames' numbers cannot be read: they have none, "
				      "lie in GPU memory, or were asked for twice (%s)",
				      strerror(-count))
			 : results_gaps(gap, (uint32_t)count);
	PyMem_Free(gap);
	return list;
}

static int batch_let_go(PyObject *self, PyObject *stream)
{
	struct lease *lease = batch_lease(self);
	uint64_t handle;

	if (!lease)
		return -1;
	if (stream != Py_None) {
		if (lease->device.type != DLPACK_CUDA) {
			PyErr_SetString(PyExc_ValueError,
					"stream: these frames lie in host memory; leave it out");
			return -1;
		}
		if (stream_from_object(stream, &handle) < 0 || lease_add_stream(lease, handle) < 0)
			return -1;
	}
	((struct batch_object *)self)->lease = NULL;
	lease_unref_gil(lease);
	return 0;
}

static PyObject *batch_release(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = { "stream", NULL };
	PyObject *stream = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:release", names, &stream) ||
	    batch_let_go(self, stream) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *batch_enter(PyObject *self, PyObject *unused)
{
	return batch_lease(self) ? Py_NewRef(self) : NULL;
}

static PyObject *batch_exit(PyObject *self, PyObject *args)
{
	if (((struct batch_object *)self)->lease && batch_let_go(self, Py_None) < 0)
		return NULL;
	Py_RETURN_FALSE;
}

static PyMemberDef batch_members[] = {
	{ "seq", T_ULONGLONG, offsetof(struct batch_object, seq), READONLY,
	  "One more a batch of the queue, without gaps, from 0." },
	{ 0 },
};
static PyGetSetDef batch_getset[] = {
	{ "descriptors", batch_descriptors, NULL,
	  "An (n, 8) array of uint8 in host memory that a GPU reads too: of each frame its slot\n"
	  "(uint32), length in bytes (uint16), and offset in its slot in bytes (uint16, without its\n"
	  "highest bit, which says that the frame was cut).",
	  NULL },
	{ "address", batch_address, NULL,
	  "Of slot 0; frame i begins at address + slot * slot_bytes + offset.", NULL },
	{ "slot_bytes", batch_slot_bytes, NULL, "Bytes from one slot to the next.", NULL },
	{ "released", batch_released, NULL, "Whether release() was called.", NULL },
	{ 0 },
};
static PyMethodDef batch_methods[] = {
	{ "gaps", batch_gaps, METH_NOARGS,
	  "gaps($self, /)\n--\n\nSequence numbers that are missing before and in the batch, and frames "
	  "that came late:\n[{first, count, stream, frame, late}, ...]. To be asked once a batch, in "
	  "order." },
	{ "release", (PyCFunction)(void *)batch_release, METH_VARARGS | METH_KEYWORDS,
	  "release($self, /, stream=None)\n--\n\nGives the slots back, once all frames and tensors are "
	  "gone, too.\n\nstream: a CUDA stream that is to come this far first." },
	{ "__enter__", batch_enter, METH_NOARGS, NULL },
	{ "__exit__", batch_exit, METH_VARARGS, NULL },
	{ 0 },
};
static PyType_Slot batch_slots[] = {
	{ Py_tp_doc, "Frames that came together: a sequence of gdrcap.Frame.\n\n"
		     "A queue's slots go back to its port in the order of its batches." },
	{ Py_tp_dealloc, (void *)batch_dealloc },
	{ Py_tp_members, batch_members },
	{ Py_tp_getset, batch_getset },
	{ Py_tp_methods, batch_methods },
	{ Py_sq_length, (void *)batch_length },
	{ Py_sq_item, (void *)batch_item },
	{ 0, NULL },
};
static PyType_Spec batch_spec = {
	.name = "gdrcap.Batch",
	.basicsize = sizeof(struct batch_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = batch_slots,
};

int batch_init(PyObject *module)
{
	batch_type = type_add(module, &batch_spec, NULL);
	frame_type = array_type ? type_add(module, &frame_spec, array_type) : NULL;
	return batch_type && frame_type ? 0 : -1;
}
