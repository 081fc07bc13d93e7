/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines on their way to Python.
 *
 * The library's own threads never take the GIL: a Python thread that holds it for long would hold up
 * the session's control thread, and an interpreter that ends keeps whoever asks for it. They put lines
 * into a queue; Python threads take them out.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "native.h"

#define LOG_LINES 4096u

struct log_entry {
	uintptr_t session;
	int level;
	char *text;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct log_entry entry[LOG_LINES];
	uint32_t first, count;
	uint64_t dropped; /* since the last was taken */
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER };

void log_line(void *context, enum gdrcap_log_level level, const char *line)
{
	char *text = strdup(line);

	pthread_mutex_lock(&queue.lock);
	if (!text || queue.count == LOG_LINES) {
		queue.dropped++;
		free(text);
	} else {
		queue.entry[(queue.first + queue.count++) % LOG_LINES] =
			(struct log_entry){ (uintptr_t)context, (int)level, text };
	}
	pthread_cond_signal(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
}

static bool wait_filled(uint32_t milliseconds)
{
	struct timespec until;
	bool filled;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += milliseconds / 1000;
	until.tv_nsec += milliseconds % 1000 * 1000000L;
	if (until.tv_nsec >= 1000000000L) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000L;
	}
	pthread_mutex_lock(&queue.lock);
	while (queue.count == 0 &&
	       pthread_cond_timedwait(&queue.filled, &queue.lock, &until) != ETIMEDOUT)
		;
	filled = queue.count != 0;
	pthread_mutex_unlock(&queue.lock);
	return filled;
}

PyObject *log_wait(PyObject *module, PyObject *args)
{
	unsigned int milliseconds;
	bool filled;

	if (!PyArg_ParseTuple(args, "I", &milliseconds))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	filled = wait_filled(milliseconds);
	Py_END_ALLOW_THREADS;
	return PyBool_FromLong(filled);
}

/* The oldest; false: there is none. */
static bool take(struct log_entry *entry, uint64_t *dropped)
{
	bool taken;

	pthread_mutex_lock(&queue.lock);
	taken = queue.count != 0;
	if (taken) {
		*entry = queue.entry[queue.first];
		queue.first = (queue.first + 1) % LOG_LINES;
		queue.count--;
	}
	*dropped = queue.dropped;
	queue.dropped = 0;
	pthread_mutex_unlock(&queue.lock);
	return taken;
}

PyObject *log_take(PyObject *module, PyObject *args)
{
	struct log_entry entry;
	PyObject *text, *row;
	uint64_t dropped;

	if (!PyArg_ParseTuple(args, ""))
		return NULL;
	if (!take(&entry, &dropped))
		Py_RETURN_NONE;
	text = text_from(entry.text);
	free(entry.text);
	row = text ? Py_BuildValue("(KiNK)", (unsigned long long)entry.session, entry.level, text,
				   (unsigned long long)dropped)
		   : NULL;
	return row;
}
