/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of send queues: what reserving and submitting share. */
#ifndef GDRCAP_PYTHON_SENDER_H
#define GDRCAP_PYTHON_SENDER_H

#include "native.h"

struct sender_object {
	PyObject ob_base;
	struct handle *handle; /* NULL: closed */
	struct gdrcap_tx *tx;
	uint32_t index, bytes_max;
};

/* The session stays, and its queues are this thread's, until sender_end(). NULL with an exception. */
struct handle *sender_begin(struct sender_object *sender);
void sender_end(struct handle *handle);

/* Slots that were reserved: how many, or a negative errno; or there is an exception. */
struct taken {
	int count;
	bool raised;
};

/* Waits for one until then (microseconds of the monotonic clock; 0: not at all). */
struct taken sender_take(struct sender_object *sender, struct gdrcap_tx_frame *frames,
			 unsigned int max, int64_t until);
/* Seconds from now on to such a time; None: for ever. 0; -1 with an exception. */
int until_from(PyObject *seconds, int64_t *until);
PyObject *raise_over(void);

PyObject *sender_submit(PyObject *self, PyObject *args);
PyObject *sender_send(PyObject *self, PyObject *args);

#endif
