/* SPDX-License-Identifier: BSD-3-Clause */
/* A send queue: slots to reserve, frames to submit, and what has become of them. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "sender.h"

#define DONE_MOST 256u	      /* that are told at once */
#define RESERVE_MOST 1048576u /* slots that are asked for at once */

static PyTypeObject *sender_type;

/* ---- one thread at a time ---- */

struct handle *sender_begin(struct sender_object *sender)
{
	struct handle *handle = sender->handle;

	if (!handle) {
		PyErr_SetString(PyExc_ValueError, "the session is closed");
		return NULL;
	}
	if (handle_check(handle) < 0)
		return NULL;
	handle_ref(handle);
	/* Who has it may be without the GIL, and never waits for that while he has it. */
	if (pthread_mutex_trylock(&handle->sending)) {
		Py_BEGIN_ALLOW_THREADS;
		pthread_mutex_lock(&handle->sending);
		Py_END_ALLOW_THREADS;
	}
	return handle;
}

void sender_end(struct handle *handle)
{
	pthread_mutex_unlock(&handle->sending);
	handle_let_go(handle);
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

/* Waits for slots that come back, so that signals are looked for 20 times a second; and so is what the
 * descriptor says nothing of: slots that were dropped, and those that come back after a stop. 0; -1 with an
 * exception. */
static int wait_slice(int fd, int64_t left_us)
{
	const int64_t slice = left_us < WAIT_SLICE_US ? left_us : WAIT_SLICE_US;
	struct pollfd entry = { .fd = fd, .events = POLLIN };

	Py_BEGIN_ALLOW_THREADS;
	poll(&entry, 1, (int)((slice + 999) / 1000));
	Py_END_ALLOW_THREADS;
	return PyErr_CheckSignals();
}

int until_from(PyObject *seconds, int64_t *until)
{
	double value;

	*until = INT64_MAX;
	if (seconds == Py_None)
		return 0;
	value = PyFloat_AsDouble(seconds);
	if (value == -1 && PyErr_Occurred())
		return -1;
	if (!(value >= 0)) {
		PyErr_SetString(PyExc_ValueError, "timeout: seconds, 0 or more, or None");
		return -1;
	}
	if (value == 0)
		*until = 0;
	else if (value < 1e12)
		*until = now_us() + (int64_t)(value * 1e6);
	return 0;
}

PyObject *raise_over(void)
{
	PyErr_SetString(PyExc_EOFError, "the run is over: nothing is sent any more");
	return NULL;
}

/* ---- reserving ---- */

struct taken sender_take(struct sender_object *sender, struct gdrcap_tx_frame *frames,
			 unsigned int max, int64_t until)
{
	struct taken taken = { 0 };
	int64_t left;

	do {
		struct handle *handle = sender_begin(sender);
		int fd = -1;

		taken.raised = !handle;
		if (!handle)
			return taken;
		/* Asked for before the look that finds nothing, which then arms it. */
		if (until)
			fd = gdrcap_tx_fd(sender->tx);
		leases_cancel(handle);
		taken.count = gdrcap_tx_reserve(sender->tx, frames, max);
		left = taken.count == 0 && until ? until - now_us() : 0;
		pthread_mutex_unlock(&handle->sending);
		if (left > 0)
			taken.raised = wait_slice(fd, left) < 0;
		handle_let_go(handle);
	} while (left > 0 && !taken.raised);
	return taken;
}

static PyObject *slots_list(struct handle *handle, struct gdrcap_tx *tx,
			    const struct gdrcap_tx_frame *frames, int count)
{
	PyObject *list = PyList_New(count);

	for (int i = 0; i < count; i++) {
		struct lease *lease = list ? lease_new_slot(handle, tx, &frames[i]) : NULL;
		PyObject *slot = lease ? slot_new(lease) : NULL;

		if (!list)
			gdrcap_tx_cancel(tx, &frames[i], 1);
		else if (!slot || PyList_SetItem(list, i, slot) < 0)
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *sender_reserve(PyObject *self, PyObject *args)
{
	struct sender_object *sender = (struct sender_object *)self;
	struct gdrcap_tx_frame *frames;
	struct handle *handle;
	PyObject *seconds, *list = NULL;
	struct taken taken;
	Py_ssize_t count;
	int64_t until;

	if (!PyArg_ParseTuple(args, "nO:reserve", &count, &seconds) ||
	    until_from(seconds, &until) < 0)
		return NULL;
	if (count < 0) {
		PyErr_Format(PyExc_ValueError, "count: %zd slots; allowed: 0 and more", count);
		return NULL;
	}
	if (count > RESERVE_MOST)
		count = RESERVE_MOST;
	frames = PyMem_Calloc((size_t)count + 1, sizeof(*frames));
	if (!frames)
		return PyErr_NoMemory();
	taken = sender_take(sender, frames, (unsigned int)count, until);
	if (taken.raised)
		;
	else if (taken.count == -ESHUTDOWN)
		raise_over();
	else if (taken.count < 0)
		raise_code(taken.count, "reserving slots: %s", strerror(-taken.count));
	else {
		handle = sender_begin(sender);
		if (handle) {
			list = slots_list(handle, sender->tx, frames, taken.count);
			sender_end(handle);
		}
	}
	PyMem_Free(frames);
	return list;
}

/* ---- what became of them ---- */

static PyObject *done_list(const struct gdrcap_tx_done *done, int count)
{
	PyObject *list = PyList_New(count);

	for (int i = 0; list && i < count; i++) {
		PyObject *row = Py_BuildValue("(KO)", (unsigned long long)done[i].tag,
					      done[i].code ? Py_False : Py_True);

		if (!row || PyList_SetItem(list, i, row) < 0)
			Py_CLEAR(list);
	}
	return list;
}

/* stop() has returned: of frames that are not told then, nobody may ever tell. */
static PyObject *sender_stopped(PyObject *self, PyObject *unused)
{
	const struct sender_object *sender = (struct sender_object *)self;

	return PyBool_FromLong(sender->handle && atomic_load(&sender->handle->stopped));
}

/* poll(seconds) */
static PyObject *sender_poll(PyObject *self, PyObject *args)
{
	struct sender_object *sender = (struct sender_object *)self;
	struct gdrcap_tx_done done[DONE_MOST];
	PyObject *seconds;
	int64_t until, left;
	int ret, waited;
	bool stopped;

	if (!PyArg_ParseTuple(args, "O:poll", &seconds) || until_from(seconds, &until) < 0)
		return NULL;
	do {
		struct handle *handle = sender_begin(sender);
		int fd = -1;

		if (!handle)
			return NULL;
		if (until)
			fd = gdrcap_tx_fd(sender->tx);
		stopped = atomic_load(&handle->stopped);
		ret = gdrcap_tx_poll(sender->tx, done, DONE_MOST);
		left = ret == 0 && until ? until - now_us() : 0;
		pthread_mutex_unlock(&handle->sending);
		waited = left > 0 ? wait_slice(fd, left) : 0;
		handle_let_go(handle);
		if (waited < 0)
			return NULL;
	} while (left > 0 && !stopped);
	if (ret == 0 && until && stopped)
		ret = -ESHUTDOWN;
	if (ret >= 0)
		return done_list(done, ret);
	if (ret != -ESHUTDOWN)
		return raise_code(ret, "what was sent: %s", strerror(-ret));
	PyErr_SetString(PyExc_EOFError, "the run is over, and no frame will be told any more");
	return NULL;
}

static PyObject *sender_fileno(PyObject *self, PyObject *unused)
{
	struct sender_object *sender = (struct sender_object *)self;
	struct handle *handle = sender_begin(sender);
	int fd;

	if (!handle)
		return NULL;
	fd = gdrcap_tx_fd(sender->tx);
	sender_end(handle);
	return fd < 0 ? raise_code(fd, "a descriptor: %s", strerror(-fd)) : PyLong_FromLong(fd);
}

/* Whether a slot is free now. False arms the descriptor. */
static PyObject *sender_has_room(PyObject *self, PyObject *unused)
{
	struct sender_object *sender = (struct sender_object *)self;
	struct handle *handle = sender_begin(sender);
	struct gdrcap_tx_frame frame;
	int ret;

	if (!handle)
		return NULL;
	leases_cancel(handle);
	ret = gdrcap_tx_reserve(sender->tx, &frame, 1);
	if (ret > 0)
		gdrcap_tx_cancel(sender->tx, &frame, 1);
	sender_end(handle);
	return ret == -ESHUTDOWN ? raise_over() : PyBool_FromLong(ret > 0);
}

static PyObject *sender_counts(PyObject *self, PyObject *unused)
{
	struct sender_object *sender = (struct sender_object *)self;
	struct handle *handle = sender->handle;
	PyObject *counts;

	if (!handle) {
		PyErr_SetString(PyExc_ValueError, "the session is closed");
		return NULL;
	}
	if (handle_check(handle) < 0)
		return NULL;
	handle_ref(handle);
	counts = results_sending(handle->session, sender->index);
	handle_let_go(handle);
	return counts;
}

/* ---- the type ---- */

/* Where slots lie, and how much a frame may have: a slot says. */
static void sender_ask(struct sender_object *sender)
{
	struct gdrcap_tx_frame frame;

	if (gdrcap_tx_reserve(sender->tx, &frame, 1) != 1)
		return;
	sender->bytes_max = frame.bytes;
	if (sender->handle->slot_device.type == 0 && sender->handle->cuda) {
		sender->handle->slot_device = cuda_device_of(frame.data);
		sender->handle->slot_gpu = cuda_gpu_of(frame.data);
	} else if (sender->handle->slot_device.type == 0) {
		sender->handle->slot_device = (struct dlpack_device){ DLPACK_CPU, 0 };
	}
	gdrcap_tx_cancel(sender->tx, &frame, 1);
}

PyObject *sender_new(struct handle *handle, Py_ssize_t index)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(sender_type, Py_tp_alloc);
	struct gdrcap_tx *tx = index >= 0 && index < QUEUES_MAX
				       ? gdrcap_get_tx(handle->session, (uint32_t)index)
				       : NULL;
	struct sender_object *sender;

	if (!tx)
		Py_RETURN_NONE;
	if (strcmp(gdrcap_config_get(handle->config, "sender", 0), "gpu") == 0) {
		PyErr_SetString(PyExc_ValueError,
				"sender: gpu: these queues are a running kernel's, by "
				"gdrcap_device_tx.cuh; Python sends with sender=\"host\"");
		return NULL;
	}
	sender = (struct sender_object *)alloc(sender_type, 0);
	if (!sender)
		return NULL;
	handle_ref(handle);
	sender->handle = handle;
	sender->tx = tx;
	sender->index = (uint32_t)index;
	if (sender_begin(sender)) {
		leases_cancel(handle);
		sender_ask(sender);
		sender_end(handle);
		return (PyObject *)sender;
	}
	Py_DECREF((PyObject *)sender);
	return NULL;
}

static PyObject *sender_hold(PyObject *self, PyObject *unused)
{
	const struct sender_object *sender = (struct sender_object *)self;

	if (sender->handle)
		return sender_new(sender->handle, sender->index);
	PyErr_SetString(PyExc_ValueError, "the session is closed");
	return NULL;
}

static PyObject *sender_close(PyObject *self, PyObject *unused)
{
	struct sender_object *sender = (struct sender_object *)self;
	struct handle *handle = sender->handle;

	sender->handle = NULL;
	handle_let_go(handle);
	Py_RETURN_NONE;
}

static void sender_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	handle_let_go(((struct sender_object *)self)->handle);
	release(self);
	Py_DECREF(type);
}

static PyMethodDef sender_methods[] = {
	{ "reserve", sender_reserve, METH_VARARGS, NULL },
	{ "submit", sender_submit, METH_VARARGS, NULL },
	{ "send", sender_send, METH_VARARGS, NULL },
	{ "poll", sender_poll, METH_VARARGS, NULL },
	{ "fileno", sender_fileno, METH_NOARGS, NULL },
	{ "has_room", sender_has_room, METH_NOARGS, NULL },
	{ "stopped", sender_stopped, METH_NOARGS, NULL },
	{ "counts", sender_counts, METH_NOARGS, NULL },
	{ "hold", sender_hold, METH_NOARGS, NULL },
	{ "close", sender_close, METH_NOARGS, NULL },
	{ 0 },
};
static PyMemberDef sender_members[] = {
	{ "index", T_UINT, offsetof(struct sender_object, index), READONLY, NULL },
	{ "bytes_max", T_UINT, offsetof(struct sender_object, bytes_max), READONLY, NULL },
	{ 0 },
};
static PyType_Slot sender_slots[] = {
	{ Py_tp_dealloc, (void *)sender_dealloc },
	{ Py_tp_methods, sender_methods },
	{ Py_tp_members, sender_members },
	{ 0, NULL },
};
static PyType_Spec sender_spec = {
	.name = "gdrcap._native.Sender",
	.basicsize = sizeof(struct sender_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = sender_slots,
};

int sender_init(PyObject *module)
{
	sender_type = type_add(module, &sender_spec, NULL);
	return sender_type ? 0 : -1;
}
