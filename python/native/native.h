/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The extension behind the Python package: what its files share.
 *
 * Three kinds of things. A handle is a session with a count of who uses it, and is destroyed with the last.
 * A lease is one image, batch or slot to be sent, with a count of the Python objects, buffers and tensors
 * over its memory, and is given back with the last; it keeps its handle. Both are plain C with atomic counts, since a
 * tensor's deleter may be called on any thread, without the GIL, also after the interpreter is gone. What
 * is left are Python objects that hold a handle or a lease, and never each other: so there are no circles,
 * and nothing for the collector to visit.
 */
#ifndef GDRCAP_PYTHON_NATIVE_H
#define GDRCAP_PYTHON_NATIVE_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <structmember.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gdrcap.h>

#include "dlpack.h"

#define QUEUES_MAX (GDRCAP_PORTS_MAX * GDRCAP_QUEUES_MAX)
#define WAIT_SLICE_US 50000 /* between two looks for signals */

/* ---- handles: py_handle.c ---- */

struct cuda_lanes;
struct lease;
struct kept;

struct handle {
	atomic_uint refs;
	long pid; /* of the process that made it */
	struct gdrcap_config *config;
	struct gdrcap_session *session; /* NULL: not created yet */
	struct cuda_lanes *cuda;	/* NULL: without a GPU */
	void *log;			/* context of log_line() */
	bool left;			/* closed, while others use it */
	atomic_bool stopped;		/* stop() has returned */
	pthread_mutex_t copying;	/* over gdrcap_image_copy(), without the GIL */
	/* One caller thread at a time. */
	atomic_bool image_busy[GDRCAP_IMAGES_MAX], queue_busy[QUEUES_MAX];
	/* Where memory lies, found out with the first image or batch: with the GIL. */
	struct dlpack_device image_device[GDRCAP_IMAGES_MAX], frame_device, slot_device;
	int slot_gpu; /* on which streams write slots, in pinned memory too */
	/* Over the calls of send queues, of which some are made without the GIL. */
	pthread_mutex_t sending;
	/* Over these two lists, and never over a call. */
	pthread_mutex_t dropping;
	struct lease *dropped; /* slots that nobody submitted: to be cancelled by who sends next */
	struct kept *kept;     /* memory that frames are still sent from */
};

/* NULL with an exception. */
struct handle *handle_new(void);
/* Refuses, with an exception, in a child of the process that made it. */
int handle_check(const struct handle *handle);
void handle_ref(struct handle *handle);
/* Any thread, with or without the GIL. */
void handle_unref(struct handle *handle);
/* The same with the GIL, which is released meanwhile. NULL: nothing. */
void handle_let_go(struct handle *handle);
/* Its session is closed, and others' claims keep it and its ports. */
void handle_leave(struct handle *handle);
PyObject *handles_left(PyObject *module, PyObject *unused);
/* True in a child of the process that made it: nothing of it can be used there. */
bool handle_is_childs(const struct handle *handle);

/* ---- log lines: py_log.c ---- */

/* A log function of the library's; context: a number that names the session. */
void log_line(void *context, enum gdrcap_log_level level, const char *line);
PyObject *log_wait(PyObject *module, PyObject *args);
PyObject *log_take(PyObject *module, PyObject *args);

/* ---- leases: py_lease.c ---- */

#define LEASE_STREAMS 8u

struct lease {
	atomic_uint refs;
	struct handle *handle;
	struct gdrcap_images *images; /* NULL: a batch */
	const struct gdrcap_image *image;
	struct gdrcap_queue *queue;
	const struct gdrcap_batch *batch;
	struct gdrcap_tx *tx;	      /* NULL: no slot */
	struct gdrcap_tx_frame frame; /* as it is to be submitted */
	bool submitted;
	struct dlpack_device device; /* of the memory */
	/* On which somebody may still read or write it: with the GIL. */
	uint64_t stream[LEASE_STREAMS];
	uint32_t streams;
	/* Of a slot that was dropped. */
	void *mark; /* passed once those streams have come that far; NULL: there are none */
	struct lease *next;
};

struct lease *lease_new_image(struct handle *handle, uint32_t index, struct gdrcap_images *images,
			      const struct gdrcap_image *image);
struct lease *lease_new_batch(struct handle *handle, struct gdrcap_queue *queue,
			      const struct gdrcap_batch *batch);
struct lease *lease_new_slot(struct handle *handle, struct gdrcap_tx *tx,
			     const struct gdrcap_tx_frame *frame);
struct lease *lease_ref(struct lease *lease);
/* Any thread, with or without the GIL. */
void lease_unref(struct lease *lease);
/* The same with the GIL, which is released where this is the last. */
void lease_unref_gil(struct lease *lease);
/* Copies bytes of an image to host memory, without the GIL: 0 or a negative errno. */
int lease_copy(struct lease *lease, uint64_t from, uint64_t bytes, void *to);
/* 0; -1 with an exception. 0 stands for no stream: nothing is remembered. */
int lease_add_stream(struct lease *lease, uint64_t stream);
/* Cancels the slots that were dropped: with the lock `sending`. */
void leases_cancel(struct handle *handle);
/* At the session's end: forgets them. */
void leases_forget(struct handle *handle);
/* A stream as Python gives it: a handle, or an object with `__cuda_stream__()` (version, handle), `cuda_stream` (torch)
 * or `ptr` (cupy). */
int stream_from_object(PyObject *object, uint64_t *stream);

/* ---- CUDA, of the driver that the process has: py_cuda.c ---- */

#define CUDA_STREAM_LEGACY 1u /* the default stream of a device */
#define CUDA_STREAM_THREAD 2u /* the default stream of a thread */

/* NULL: no memory. cuda_finish() ends them. */
struct cuda_lanes *cuda_lanes_new(void);
/* Where `data` lies. */
struct dlpack_device cuda_device_of(const void *data);
/* The GPU that the memory is of, or that it was pinned for. */
int cuda_gpu_of(const void *data);
/* What kind of memory it is: without a GPU host. */
enum gdrcap_memory cuda_memory_of(const struct handle *handle, const void *data);
/* Calls `then` with a stream that comes behind all of these, and on which the session's end waits. 0 or a
 * negative errno. */
int cuda_behind(struct handle *handle, int device, const uint64_t *stream, uint32_t streams,
		int (*then)(void *context, struct CUstream_st *behind), void *context);
/* Sets the lease's mark behind all of its streams. */
int cuda_mark(struct handle *handle, struct lease *lease);
/* True: the mark was passed, and is gone. `ends`: it is gone in any case. */
bool cuda_marked(struct handle *handle, struct lease *lease, bool ends);
/* Gives the lease's image or batch back behind all of its streams. 0 or a negative errno: then it is
 * still the caller's. */
int cuda_release(struct handle *handle, const struct lease *lease);
/* Waits until all that was given back so has come back. */
void cuda_finish(struct handle *handle);

/* ---- arrays over memory: py_array.c, py_dlpack.c ---- */

#define TENSOR_DIMS 8

struct dtype {
	const char *name;	/* "uint16" */
	const char *typestr;	/* "<u2": as numpy writes it */
	const char *format;	/* "H": of the struct module */
	struct dlpack_dtype dl; /* code, bits, lanes */
};

struct tensor {
	uint8_t *data;
	const struct dtype *dtype;
	int ndim;
	int64_t shape[TENSOR_DIMS];
	int64_t strides[TENSOR_DIMS]; /* bytes */
	struct dlpack_device device;
	bool read_only;
};

extern const struct dtype *const dtype_uint8, *const dtype_uint32;
const struct dtype *dtype_from_object(PyObject *object);
void tensor_bytes(struct tensor *tensor, uint8_t *data, int64_t bytes, struct dlpack_device device);
int64_t tensor_count(const struct tensor *tensor); /* elements */

/* All take the tensor and the lease that keeps its memory. */
PyObject *tensor_dlpack(const struct tensor *tensor, struct lease *lease, PyObject *args,
			PyObject *kwargs);
PyObject *tensor_dlpack_device(const struct tensor *tensor);
PyObject *tensor_cuda_array_interface(const struct tensor *tensor, struct lease *lease);
/* bf_getbuffer; pairs with tensor_put_buffer(). */
int tensor_get_buffer(PyObject *exporter, const struct tensor *tensor, struct lease *lease,
		      Py_buffer *view, int flags);
void tensor_put_buffer(PyObject *exporter, Py_buffer *view);
PyObject *tensor_view(const struct tensor *bytes, struct lease *lease, PyObject *args,
		      PyObject *kwargs);

struct array_object {
	PyObject ob_base;
	struct lease *lease; /* NULL: the type was called */
	struct tensor tensor;
};

extern PyTypeObject *array_type;
/* Of `type`, which is array_type or made from it. */
PyObject *array_new(PyTypeObject *type, const struct tensor *tensor, struct lease *lease);

/* ---- images, batches and where they come from ---- */

PyObject *image_new(struct lease *lease);
PyObject *batch_new(struct lease *lease);
PyObject *source_new(struct handle *handle, int images, Py_ssize_t index);

/* ---- sending: py_sender.c, py_submit.c, py_slot.c, py_memory.c, py_headers.c ---- */

/* Send queue `index`, or None behind the last. */
PyObject *sender_new(struct handle *handle, Py_ssize_t index);
/* Takes the lease. */
PyObject *slot_new(struct lease *lease);
/* The lease of slot `i` of those that are submitted, which the slot has no more, and on which nobody else
 * looks; NULL with an exception. */
struct lease *slot_take(PyObject *object, const struct gdrcap_tx *tx, Py_ssize_t i);
/* It was not submitted. */
void slot_put_back(PyObject *object, struct lease *lease);
/* Bytes in one piece, of a buffer or an array on a GPU: where they lie. 0; -1 with an exception. */
int span_of(PyObject *object, uint64_t *address, uint64_t *bytes);
PyObject *memory_new(struct handle *handle, PyObject *object);
/* After the session's end: any thread, with or without the GIL. */
void kept_free(struct handle *handle);
PyObject *headers_write(PyObject *module, PyObject *args);

/* ---- stream-ordered calls: py_stream.c ---- */

/* (which call, index, seq, count, stream). */
PyObject *stream_order(struct handle *handle, PyObject *args);
/* (the first call of its kind, index): bytes for a kernel. */
PyObject *stream_view(struct handle *handle, PyObject *args);

int array_init(PyObject *module);
int image_init(PyObject *module);
int batch_init(PyObject *module);
int source_init(PyObject *module);
int session_init(PyObject *module);
int sender_init(PyObject *module);
int slot_init(PyObject *module);
int memory_init(PyObject *module);

/* ---- results: py_results.c ---- */

PyObject *results_event(const struct gdrcap_event *event);
PyObject *results_sending(const struct gdrcap_session *session, uint32_t index);
PyObject *results_gaps(const struct gdrcap_gap *gap, uint32_t count);

/* ---- errors and texts: py_module.c ---- */

/* Raises what the library says; returns NULL. */
PyObject *raise_error(const struct gdrcap_error *error);
/* gdrcap.Error with a text of ours. */
PyObject *raise_code(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Text of any bytes: what is no UTF-8 is replaced by "?". NULL: None. */
PyObject *text_from(const char *text);
/* Adds a type to the module; NULL with an exception. */
PyTypeObject *type_add(PyObject *module, PyType_Spec *spec, PyTypeObject *base);
/* Puts a new reference, or NULL, which is an error, into a dictionary. */
int dict_put(PyObject *dict, const char *key, PyObject *value);

#endif
