/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions with a count of who uses them. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "native.h"

static atomic_uint left;

struct handle *handle_new(void)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	pthread_mutexattr_t recursive;

	if (handle)
		handle->config = gdrcap_config_new();
	if (!handle || !handle->config) {
		free(handle);
		PyErr_NoMemory();
		return NULL;
	}
	atomic_init(&handle->refs, 1);
	pthread_mutex_init(&handle->copying, NULL);
	/* The collector may run anybody's code, which sends, in the middle of a call. */
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&handle->sending, &recursive);
	pthread_mutexattr_destroy(&recursive);
	pthread_mutex_init(&handle->dropping, NULL);
	handle->pid = getpid();
	return handle;
}

void handle_ref(struct handle *handle)
{
	atomic_fetch_add_explicit(&handle->refs, 1, memory_order_relaxed);
}

/* With the last reference. */
static void handle_end(struct handle *handle)
{
	leases_forget(handle);
	cuda_finish(handle);
	gdrcap_destroy(handle->session);
	kept_free(handle);
	if (handle->left)
		atomic_fetch_sub(&left, 1);
	gdrcap_config_free(handle->config);
	pthread_mutex_destroy(&handle->copying);
	pthread_mutex_destroy(&handle->sending);
	pthread_mutex_destroy(&handle->dropping);
	free(handle);
}

static bool handle_drop(struct handle *handle)
{
	/* Release: what other threads did with the session comes before its end; acquire: for who
	 * ends it. */
	return handle && atomic_fetch_sub_explicit(&handle->refs, 1, memory_order_acq_rel) == 1;
}

void handle_unref(struct handle *handle)
{
	if (handle_drop(handle))
		handle_end(handle);
}

void handle_leave(struct handle *handle)
{
	handle->left = true;
	atomic_fetch_add(&left, 1);
}

PyObject *handles_left(PyObject *module, PyObject *unused)
{
	return PyLong_FromUnsignedLong(atomic_load(&left));
}

void handle_let_go(struct handle *handle)
{
	if (!handle_drop(handle))
		return;
	Py_BEGIN_ALLOW_THREADS;
	handle_end(handle);
	Py_END_ALLOW_THREADS;
}

bool handle_is_childs(const struct handle *handle)
{
	return handle->pid != getpid();
}

int handle_check(const struct handle *handle)
{
	if (!handle_is_childs(handle))
		return 0;
	raise_code(-EPERM,
		   "this session is of process %ld, of which this is a child: fork before the "
		   "first session, or start another program in the child (subprocess; "
		   "multiprocessing: spawn)",
		   handle->pid);
	return -1;
}
