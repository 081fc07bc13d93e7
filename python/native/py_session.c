/* SPDX-License-Identifier: BSD-3-Clause */
/* The session as gdrcap.Session uses it: a configuration, and then a session, by the library's calls. */
#include <errno.h>
#include <string.h>

#include "native.h"

struct session_object {
	PyObject ob_base;
	struct handle *handle; /* NULL: closed */
};

static PyTypeObject *session_type;

static PyObject *session_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct session_object *object;
	unsigned long long log;

	if (!PyArg_ParseTuple(args, "K:Session", &log))
		return NULL;
	object = (struct session_object *)alloc(type, 0);
	if (!object)
		return NULL;
	object->handle = handle_new();
	if (!object->handle) {
		Py_DECREF((PyObject *)object);
		return NULL;
	}
	object->handle->log = (void *)(uintptr_t)log;
	gdrcap_config_set_log(object->handle->config, log_line, object->handle->log);
	return (PyObject *)object;
}

static void session_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);
	freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

	handle_let_go(((struct session_object *)self)->handle);
	release(self);
	Py_DECREF(type);
}

/* NULL with an exception: closed, or of another process. */
static struct handle *session_handle(PyObject *self)
{
	struct handle *handle = ((struct session_object *)self)->handle;

	if (!handle)
		PyErr_SetString(PyExc_ValueError, "the session is closed");
	return handle && handle_check(handle) == 0 ? handle : NULL;
}

/* The same, and the session is there. */
static struct handle *session_opened(PyObject *self)
{
	struct handle *handle = session_handle(self);

	if (handle && !handle->session) {
		PyErr_SetString(PyExc_ValueError, "the session was not opened");
		return NULL;
	}
	return handle;
}

/* ---- configuration ---- */

static PyObject *config_done(int ret, const struct gdrcap_error *error)
{
	if (ret < 0)
		return raise_error(error);
	Py_RETURN_NONE;
}

static PyObject *session_set(PyObject *self, PyObject *args)
{
	struct handle *handle = session_handle(self);
	struct gdrcap_error error = { 0 };
	const char *key, *value;

	if (!handle || !PyArg_ParseTuple(args, "sz:set", &key, &value))
		return NULL;
	return config_done(gdrcap_config_set(handle->config, key, value, &error), &error);
}

static PyObject *session_add(PyObject *self, PyObject *args)
{
	struct handle *handle = session_handle(self);
	struct gdrcap_error error = { 0 };
	const char *key, *value;

	if (!handle || !PyArg_ParseTuple(args, "ss:add", &key, &value))
		return NULL;
	return config_done(gdrcap_config_add(handle->config, key, value, &error), &error);
}

static PyObject *session_get(PyObject *self, PyObject *args)
{
	struct handle *handle = session_handle(self);
	Py_ssize_t index = 0;
	const char *key;

	if (!handle || !PyArg_ParseTuple(args, "s|n:get", &key, &index))
		return NULL;
	if (index < 0 || index > UINT32_MAX)
		Py_RETURN_NONE;
	return text_from(gdrcap_config_get(handle->config, key, (uint32_t)index));
}

static PyObject *session_load(PyObject *self, PyObject *args)
{
	struct handle *handle = session_handle(self);
	struct gdrcap_error error = { 0 };
	PyObject *path = NULL, *done;

	if (!handle || !PyArg_ParseTuple(args, "O&:load", PyUnicode_FSConverter, &path))
		return NULL;
	done = config_done(gdrcap_config_load(handle->config, PyBytes_AsString(path), &error),
			   &error);
	Py_DECREF(path);
	return done;
}

static PyObject *session_parse(PyObject *self, PyObject *args)
{
	struct handle *handle = session_handle(self);
	struct gdrcap_error error = { 0 };
	const char *name, *text;
	Py_ssize_t bytes;

	if (!handle || !PyArg_ParseTuple(args, "ss#:parse", &name, &text, &bytes))
		return NULL;
	return config_done(gdrcap_config_parse(handle->config, name, text, (size_t)bytes, &error),
			   &error);
}

/* ---- control ---- */

static PyObject *session_create(PyObject *self, PyObject *unused)
{
	struct handle *handle = session_handle(self);
	struct gdrcap_summary summary = { 0 };
	struct gdrcap_session *session = NULL;
	struct gdrcap_error error = { 0 };
	int ret;

	if (!handle)
		return NULL;
	handle_ref(handle);
	Py_BEGIN_ALLOW_THREADS;
	ret = gdrcap_create(handle->config, &session, &error);
	if (ret == 0)
		gdrcap_get_summary(session, &summary, sizeof(summary));
	Py_END_ALLOW_THREADS;
	if (ret == 0) {
		handle->session = session;
		if (!strcmp(summary.driver, "gpu_cuda"))
			handle->cuda = cuda_lanes_new();
	}
	handle_let_go(handle);
	return config_done(ret, &error);
}

static PyObject *session_start(PyObject *self, PyObject *unused)
{
	struct handle *handle = session_opened(self);
	struct gdrcap_error error = { 0 };
	int ret;

	if (!handle)
		return NULL;
	handle_ref(handle);
	Py_BEGIN_ALLOW_THREADS;
	ret = gdrcap_start(handle->session, &error);
	Py_END_ALLOW_THREADS;
	handle_let_go(handle);
	return config_done(ret, &error);
}

static PyObject *session_stop(PyObject *self, PyObject *unused)
{
	struct handle *handle = session_opened(self);
	struct gdrcap_error error = { 0 };
	int ret;

	if (!handle)
		return NULL;
	handle_ref(handle);
	Py_BEGIN_ALLOW_THREADS;
	ret = gdrcap_stop(handle->session, &error);
	atomic_store(&handle->stopped, true);
	Py_END_ALLOW_THREADS;
	handle_let_go(handle);
	return config_done(ret, &error);
}

/* Gives up this object's claim. True: others' are left, and the session stays until they are gone. */
static PyObject *session_close(PyObject *self, PyObject *unused)
{
	struct session_object *object = (struct session_object *)self;
	struct handle *handle = object->handle;
	bool kept;

	object->handle = NULL;
	if (!handle)
		Py_RETURN_FALSE;
	kept = atomic_load(&handle->refs) > 1;
	if (kept)
		handle_leave(handle);
	handle_let_go(handle);
	return PyBool_FromLong(kept);
}

static PyObject *session_wait_end(PyObject *self, PyObject *args)
{
	struct handle *handle = session_opened(self);
	unsigned int milliseconds;
	int ret;

	if (!handle || !PyArg_ParseTuple(args, "I:wait_end", &milliseconds))
		return NULL;
	handle_ref(handle);
	Py_BEGIN_ALLOW_THREADS;
	ret = gdrcap_wait_end(handle->session, milliseconds);
	Py_END_ALLOW_THREADS;
	handle_let_go(handle);
	if (ret < 0)
		return raise_code(ret, "waiting for the run's end: %s", strerror(-ret));
	return PyErr_CheckSignals() < 0 ? NULL : PyBool_FromLong(ret);
}

/* ---- self-test ---- */

/* (0, None), or a negative errno and the text of the failure; its steps are in the results. */
static PyObject *session_selftest(PyObject *self, PyObject *unused)
{
	struct handle *handle = session_opened(self);
	struct gdrcap_error error = { 0 };
	int ret;

	if (!handle)
		return NULL;
	handle_ref(handle);
	Py_BEGIN_ALLOW_THREADS;
	ret = gdrcap_selftest(handle->session, NULL, NULL, &error);
	Py_END_ALLOW_THREADS;
	handle_let_go(handle);
	return Py_BuildValue("(iN)", ret, text_from(ret < 0 ? error.text : NULL));
}

/* ---- results ---- */

/* As JSON. */
static PyObject *session_results(PyObject *self, PyObject *unused)
{
	struct handle *handle = session_opened(self);
	PyObject *text;
	char *json;
	int ret;

	if (!handle)
		return NULL;
	handle_ref(handle);
	Py_BEGIN_ALLOW_THREADS;
	ret = gdrcap_get_json(handle->session, GDRCAP_JSON_ALL, &json);
	Py_END_ALLOW_THREADS;
	handle_let_go(handle);
	if (ret < 0)
		return PyErr_NoMemory();
	text = PyUnicode_FromString(json);
	gdrcap_free_json(json);
	return text;
}

static PyObject *session_event(PyObject *self, PyObject *unused)
{
	struct handle *handle = session_opened(self);
	struct gdrcap_event event;
	int ret;

	if (!handle)
		return NULL;
	ret = gdrcap_get_event(handle->session, &event, sizeof(event));
	if (ret < 0)
		return raise_code(ret, "events: %s", strerror(-ret));
	if (ret == 0)
		Py_RETURN_NONE;
	return results_event(&event);
}

static PyObject *session_event_fd(PyObject *self, PyObject *unused)
{
	struct handle *handle = session_opened(self);
	int fd;

	if (!handle)
		return NULL;
	fd = gdrcap_event_fd(handle->session);
	return fd < 0 ? raise_code(fd, "events: %s", strerror(-fd)) : PyLong_FromLong(fd);
}

static PyObject *session_image_name(PyObject *self, PyObject *args)
{
	struct handle *handle = session_opened(self);
	unsigned int index;

	if (!handle || !PyArg_ParseTuple(args, "I:image_name", &index))
		return NULL;
	return text_from(gdrcap_images_name(gdrcap_get_images(handle->session, index)));
}

static PyObject *session_source(PyObject *self, PyObject *args)
{
	struct handle *handle = session_opened(self);
	Py_ssize_t index;
	int images;

	if (!handle || !PyArg_ParseTuple(args, "pn:source", &images, &index))
		return NULL;
	return source_new(handle, images, index);
}

/* A send queue; None behind the last. */
static PyObject *session_sender(PyObject *self, PyObject *args)
{
	struct handle *handle = session_opened(self);
	Py_ssize_t index;

	if (!handle || !PyArg_ParseTuple(args, "n:sender", &index))
		return NULL;
	return sender_new(handle, index);
}

static PyObject *session_register(PyObject *self, PyObject *args)
{
	struct handle *handle = session_opened(self);
	PyObject *object;

	if (!handle || !PyArg_ParseTuple(args, "O:register", &object))
		return NULL;
	return memory_new(handle, object);
}

static PyObject *session_on_stream(PyObject *self, PyObject *args)
{
	struct handle *handle = session_opened(self);

	return handle ? stream_order(handle, args) : NULL;
}

static PyObject *session_stream_view(PyObject *self, PyObject *args)
{
	struct handle *handle = session_opened(self);

	return handle ? stream_view(handle, args) : NULL;
}

static PyMethodDef session_methods[] = {
	{ "set", session_set, METH_VARARGS, NULL },
	{ "add", session_add, METH_VARARGS, NULL },
	{ "get", session_get, METH_VARARGS, NULL },
	{ "load", session_load, METH_VARARGS, NULL },
	{ "parse", session_parse, METH_VARARGS, NULL },
	{ "create", session_create, METH_NOARGS, NULL },
	{ "start", session_start, METH_NOARGS, NULL },
	{ "stop", session_stop, METH_NOARGS, NULL },
	{ "close", session_close, METH_NOARGS, NULL },
	{ "wait_end", session_wait_end, METH_VARARGS, NULL },
	{ "selftest", session_selftest, METH_NOARGS, NULL },
	{ "results", session_results, METH_NOARGS, NULL },
	{ "event", session_event, METH_NOARGS, NULL },
	{ "event_fd", session_event_fd, METH_NOARGS, NULL },
	{ "image_name", session_image_name, METH_VARARGS, NULL },
	{ "source", session_source, METH_VARARGS, NULL },
	{ "sender", session_sender, METH_VARARGS, NULL },
	{ "register", session_register, METH_VARARGS, NULL },
	{ "on_stream", session_on_stream, METH_VARARGS, NULL },
	{ "stream_view", session_stream_view, METH_VARARGS, NULL },
	{ 0 },
};
static PyType_Slot session_slots[] = {
	{ Py_tp_new, (void *)session_new },
	{ Py_tp_dealloc, (void *)session_dealloc },
	{ Py_tp_methods, session_methods },
	{ 0, NULL },
};
static PyType_Spec session_spec = {
	.name = "gdrcap._native.Session",
	.basicsize = sizeof(struct session_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = session_slots,
};

int session_init(PyObject *module)
{
	session_type = type_add(module, &session_spec, NULL);
	return session_type ? 0 : -1;
}
