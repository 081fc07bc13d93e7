/* SPDX-License-Identifier: BSD-3-Clause */
/* Events, gaps and counts of send queues as dictionaries, member by member. */
#include <string.h>

#include "native.h"

enum kind { COUNT, UINT32, INT32, REAL, TEXT };

struct member {
	const char *name;
	enum kind kind;
	size_t offset;
};

#define OF(type, name, kind)                                                                       \
	{                                                                                          \
#name, kind, offsetof(struct type, name)                                           \
	}
#define END                                                                                        \
	{                                                                                          \
		NULL, COUNT, 0                                                                     \
	}

static const struct member event_members[] = {
	OF(gdrcap_event, kind, UINT32),	  OF(gdrcap_event, code, INT32),
	OF(gdrcap_event, time_ns, COUNT), OF(gdrcap_event, count, COUNT),
	OF(gdrcap_event, dropped, COUNT), OF(gdrcap_event, port, INT32),
	OF(gdrcap_event, sends, INT32),	  OF(gdrcap_event, queue, INT32),
	OF(gdrcap_event, text, TEXT),	  END,
};
static const struct member gap_members[] = {
	OF(gdrcap_gap, first, COUNT),  OF(gdrcap_gap, count, COUNT), OF(gdrcap_gap, stream, UINT32),
	OF(gdrcap_gap, frame, UINT32), OF(gdrcap_gap, late, UINT32), END,
};

static const struct member sending_members[] = {
	OF(gdrcap_tx_counts, submitted, COUNT),	   OF(gdrcap_tx_counts, sent, COUNT),
	OF(gdrcap_tx_counts, bytes, COUNT),	   OF(gdrcap_tx_counts, stalled, COUNT),
	OF(gdrcap_tx_counts, unsent, COUNT),	   OF(gdrcap_tx_counts, failed, COUNT),
	OF(gdrcap_tx_counts, at_port, COUNT),	   OF(gdrcap_tx_counts, seconds, REAL),
	OF(gdrcap_tx_counts, failed_known, INT32), END,
};

static PyObject *value_of(const void *at, enum kind kind)
{
	switch (kind) {
	case COUNT:
		return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
	case UINT32:
		return PyLong_FromUnsignedLong(*(const uint32_t *)at);
	case INT32:
		return PyLong_FromLong(*(const int32_t *)at);
	case REAL:
		return PyFloat_FromDouble(*(const double *)at);
	default:
		return text_from(at);
	}
}

static PyObject *dict_of(const void *from, const struct member *member)
{
	PyObject *dict = PyDict_New();

	for (; dict && member->name; member++)
		if (dict_put(dict, member->name,
			     value_of((const char *)from + member->offset, member->kind)) < 0)
			Py_CLEAR(dict);
	return dict;
}

/* Takes `item` over; a failure empties *list. False: an exception is set. */
static bool list_add(PyObject **list, PyObject *item)
{
	if (!*list || !item || PyList_Append(*list, item) < 0)
		Py_CLEAR(*list);
	Py_XDECREF(item);
	return *list != NULL;
}

PyObject *results_event(const struct gdrcap_event *event)
{
	return dict_of(event, event_members);
}

PyObject *results_sending(const struct gdrcap_session *session, uint32_t index)
{
	struct gdrcap_tx_counts counts = { 0 };
	const int ret = gdrcap_get_tx_counts(session, index, &counts, sizeof(counts));

	return ret < 0 ? raise_code(ret, "counts of send queue %u: %s", index, strerror(-ret))
		       : dict_of(&counts, sending_members);
}

PyObject *results_gaps(const struct gdrcap_gap *gap, uint32_t count)
{
	PyObject *list = PyList_New(0);

	for (uint32_t i = 0; list && i < count; i++)
		list_add(&list, dict_of(&gap[i], gap_members));
	return list;
}
