/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's results as dictionaries, member by member; _summary.py makes the JSON object of them. */
#include <string.h>

#include "native.h"

enum kind { COUNT, UINT32, INT32, UINT8, REAL, TEXT, POINTER };

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

static const struct member counts_members[] = {
	OF(gdrcap_counts, sent, COUNT),
	OF(gdrcap_counts, received, COUNT),
	OF(gdrcap_counts, valid, COUNT),
	OF(gdrcap_counts, damaged, COUNT),
	OF(gdrcap_counts, lost, COUNT),
	OF(gdrcap_counts, duplicate, COUNT),
	OF(gdrcap_counts, reordered, COUNT),
	OF(gdrcap_counts, filtered, COUNT),
	OF(gdrcap_counts, bits_checked, COUNT),
	OF(gdrcap_counts, bits_wrong, COUNT),
	OF(gdrcap_counts, bytes, COUNT),
	OF(gdrcap_counts, restarts, COUNT),
	END,
};
static const struct member summary_members[] = {
	OF(gdrcap_summary, seconds, REAL),
	OF(gdrcap_summary, known, UINT32),
	OF(gdrcap_summary, nic_missed, COUNT),
	OF(gdrcap_summary, nic_error, COUNT),
	OF(gdrcap_summary, unexplained, COUNT),
	OF(gdrcap_summary, tx_stalled, COUNT),
	OF(gdrcap_summary, gbps, REAL),
	OF(gdrcap_summary, mpps, REAL),
	OF(gdrcap_summary, memory, UINT32),
	OF(gdrcap_summary, gpu, TEXT),
	OF(gdrcap_summary, driver, TEXT),
	OF(gdrcap_summary, region_bytes, COUNT),
	OF(gdrcap_summary, slot_bytes, UINT32),
	OF(gdrcap_summary, slots, UINT32),
	OF(gdrcap_summary, blocks, UINT32),
	OF(gdrcap_summary, failed, INT32),
	OF(gdrcap_summary, lock_lost, COUNT),
	OF(gdrcap_summary, software_match, INT32),
	OF(gdrcap_summary, ended_by_sender, INT32),
	OF(gdrcap_summary, saved, COUNT),
	OF(gdrcap_summary, save_missed, COUNT),
	OF(gdrcap_summary, damaged_saved, COUNT),
	OF(gdrcap_summary, damaged_missed, COUNT),
	OF(gdrcap_summary, tx_seconds, REAL),
	OF(gdrcap_summary, tx_gbps, REAL),
	OF(gdrcap_summary, tx_mpps, REAL),
	OF(gdrcap_summary, asked_gbps, REAL),
	OF(gdrcap_summary, asked_mpps, REAL),
	OF(gdrcap_summary, asked_seconds, REAL),
	OF(gdrcap_summary, gap_p50_ns, COUNT),
	OF(gdrcap_summary, gap_p99_ns, COUNT),
	OF(gdrcap_summary, gap_max_ns, COUNT),
	OF(gdrcap_summary, tx_starved, COUNT),
	OF(gdrcap_summary, tx_error, COUNT),
	OF(gdrcap_summary, tx_bytes, COUNT),
	OF(gdrcap_summary, stale, COUNT),
	OF(gdrcap_summary, split, UINT32),
	OF(gdrcap_summary, steered, INT32),
	OF(gdrcap_summary, registration, TEXT),
	OF(gdrcap_summary, clock, TEXT),
	OF(gdrcap_summary, queue_restarts, UINT32),
	OF(gdrcap_summary, untracked, COUNT),
	OF(gdrcap_summary, conflicts, UINT32),
	OF(gdrcap_summary, senders_unheard, UINT32),
	OF(gdrcap_summary, streams_unheard, UINT32),
	OF(gdrcap_summary, tx_asked, COUNT),
	OF(gdrcap_summary, tx_missing, COUNT),
	OF(gdrcap_summary, cut, COUNT),
	OF(gdrcap_summary, pool_empty, COUNT),
	OF(gdrcap_summary, pool_empty_seconds, REAL),
	OF(gdrcap_summary, sending_submitted, COUNT),
	OF(gdrcap_summary, sending_sent, COUNT),
	OF(gdrcap_summary, sending_unsent, COUNT),
	OF(gdrcap_summary, sending_bytes, COUNT),
	OF(gdrcap_summary, sending_stalled, COUNT),
	OF(gdrcap_summary, sending_failed, COUNT),
	OF(gdrcap_summary, sending_refused, COUNT),
	OF(gdrcap_summary, rx_by, TEXT),
	OF(gdrcap_summary, tx_by, TEXT),
	OF(gdrcap_summary, tx_proxies, UINT32),
	OF(gdrcap_summary, start_ns, COUNT),
	OF(gdrcap_summary, start_late_ns, COUNT),
	OF(gdrcap_summary, elapsed_seconds, REAL),
	END,
};
static const struct member cause_members[] = {
	OF(gdrcap_cause, name, POINTER),
	OF(gdrcap_cause, count, COUNT),
	OF(gdrcap_cause, known, INT32),
	OF(gdrcap_cause, sender, INT32),
	END,
};
static const struct member rule_members[] = {
	OF(gdrcap_rule, text, POINTER),
	OF(gdrcap_rule, frames, COUNT),
	OF(gdrcap_rule, known, INT32),
	END,
};
static const struct member damage_members[] = {
	OF(gdrcap_damage, sequence, COUNT), OF(gdrcap_damage, stream, UINT32),
	OF(gdrcap_damage, queue, UINT32),   OF(gdrcap_damage, wrong_bits, UINT32),
	OF(gdrcap_damage, offset, UINT32),  OF(gdrcap_damage, expected, UINT8),
	OF(gdrcap_damage, got, UINT8),	    OF(gdrcap_damage, header_ok, UINT8),
	OF(gdrcap_damage, kind, POINTER),   END,
};
static const struct member image_members[] = {
	OF(gdrcap_image_counts, frames, COUNT),
	OF(gdrcap_image_counts, placed, COUNT),
	OF(gdrcap_image_counts, duplicate, COUNT),
	OF(gdrcap_image_counts, late, COUNT),
	OF(gdrcap_image_counts, no_room, COUNT),
	OF(gdrcap_image_counts, misfit, COUNT),
	OF(gdrcap_image_counts, filtered, COUNT),
	OF(gdrcap_image_counts, begun, COUNT),
	OF(gdrcap_image_counts, complete, COUNT),
	OF(gdrcap_image_counts, incomplete, COUNT),
	OF(gdrcap_image_counts, newer, COUNT),
	OF(gdrcap_image_counts, timeout, COUNT),
	OF(gdrcap_image_counts, stopped, COUNT),
	OF(gdrcap_image_counts, dropped, COUNT),
	OF(gdrcap_image_counts, open, COUNT),
	OF(gdrcap_image_counts, skipped, COUNT),
	OF(gdrcap_image_counts, restarts, COUNT),
	OF(gdrcap_image_counts, pieces_expected, COUNT),
	OF(gdrcap_image_counts, pieces_placed, COUNT),
	OF(gdrcap_image_counts, pieces_lost, COUNT),
	OF(gdrcap_image_counts, bytes, COUNT),
	OF(gdrcap_image_counts, has_skipped, INT32),
	END,
};
static const struct member incomplete_members[] = {
	OF(gdrcap_incomplete, number, COUNT),  OF(gdrcap_incomplete, stream_id, COUNT),
	OF(gdrcap_incomplete, stream, UINT32), OF(gdrcap_incomplete, end, UINT32),
	OF(gdrcap_incomplete, pieces, UINT32), OF(gdrcap_incomplete, received, UINT32),
	OF(gdrcap_incomplete, ranges, UINT32), END,
};
static const struct member event_members[] = {
	OF(gdrcap_event, kind, UINT32),	  OF(gdrcap_event, code, INT32),
	OF(gdrcap_event, time_ns, COUNT), OF(gdrcap_event, count, COUNT),
	OF(gdrcap_event, dropped, COUNT), OF(gdrcap_event, port, INT32),
	OF(gdrcap_event, sends, INT32),	  OF(gdrcap_event, queue, INT32),
	OF(gdrcap_event, text, TEXT),	  END,
};
static const struct member step_members[] = {
	OF(gdrcap_step, name, POINTER),
	OF(gdrcap_step, state, UINT32),
	OF(gdrcap_step, detail, TEXT),
	END,
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
	case UINT8:
		return PyLong_FromLong(*(const uint8_t *)at);
	case REAL:
		return PyFloat_FromDouble(*(const double *)at);
	case TEXT:
		return text_from(at);
	default:
		return text_from(*(const char *const *)at);
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

/* ---- lists ---- */

static PyObject *summary_get(struct gdrcap_session *session)
{
	struct gdrcap_summary summary = { 0 };
	PyObject *dict, *cores = PyList_New(0);

	gdrcap_get_summary(session, &summary, sizeof(summary));
	for (uint32_t i = 0; cores && i < summary.core_count && i < GDRCAP_CORES_MAX; i++)
		list_add(&cores, PyLong_FromLong(summary.cores[i]));
	dict = dict_of(&summary, summary_members);
	if (!dict || !cores || dict_put(dict, "cores", Py_NewRef(cores)) < 0 ||
	    dict_put(dict, "total", dict_of(&summary.total, counts_members)) < 0)
		Py_CLEAR(dict);
	Py_XDECREF(cores);
	return dict;
}

static PyObject *queues_get(const struct gdrcap_session *session)
{
	PyObject *list = PyList_New(0);
	struct gdrcap_counts counts;

	for (uint32_t i = 0; list && i < QUEUES_MAX &&
			     !gdrcap_get_queue_counts(session, i, &counts, sizeof(counts));
	     i++)
		list_add(&list, dict_of(&counts, counts_members));
	return list;
}

static PyObject *streams_get(const struct gdrcap_session *session)
{
	PyObject *list = PyList_New(0);
	struct gdrcap_counts counts;
	uint32_t stream;

	for (uint32_t i = 0;
	     list && i < GDRCAP_STREAMS_MAX &&
	     !gdrcap_get_stream_counts(session, i, &stream, &counts, sizeof(counts));
	     i++)
		list_add(&list, Py_BuildValue("(IN)", stream, dict_of(&counts, counts_members)));
	return list;
}

static PyObject *causes_get(const struct gdrcap_session *session)
{
	PyObject *list = PyList_New(0);
	struct gdrcap_cause cause;

	for (uint32_t i = 0; list && !gdrcap_get_cause(session, i, &cause, sizeof(cause)); i++)
		list_add(&list, dict_of(&cause, cause_members));
	return list;
}

static PyObject *rules_get(const struct gdrcap_session *session)
{
	PyObject *list = PyList_New(0);
	struct gdrcap_rule rule;

	for (uint32_t i = 0; list && !gdrcap_get_rule(session, i, &rule, sizeof(rule)); i++)
		list_add(&list, dict_of(&rule, rule_members));
	return list;
}

static PyObject *damage_get(const struct gdrcap_session *session)
{
	PyObject *list = PyList_New(0);
	struct gdrcap_damage damage;

	for (uint32_t i = 0; list && !gdrcap_get_damage(session, i, &damage, sizeof(damage)); i++)
		list_add(&list, dict_of(&damage, damage_members));
	return list;
}

static PyObject *messages_get(const struct gdrcap_session *session)
{
	PyObject *list = PyList_New(0);
	const char *message;

	for (uint32_t i = 0; list && (message = gdrcap_get_message(session, i)); i++)
		list_add(&list, text_from(message));
	return list;
}

/* ---- images ---- */

static PyObject *image_streams_get(const struct gdrcap_session *session, uint32_t index)
{
	PyObject *list = PyList_New(0);
	struct gdrcap_image_counts counts;
	uint64_t id;

	for (uint32_t i = 0;
	     list && i < GDRCAP_IMAGE_STREAMS_MAX &&
	     !gdrcap_get_image_stream(session, index, i, &id, &counts, sizeof(counts));
	     i++)
		list_add(&list, Py_BuildValue("(KN)", (unsigned long long)id,
					      dict_of(&counts, image_members)));
	return list;
}

static PyObject *incomplete_dict(const struct gdrcap_incomplete *incomplete)
{
	PyObject *dict = dict_of(incomplete, incomplete_members);
	PyObject *missing = PyList_New(0);

	for (uint32_t r = 0; missing && r < incomplete->ranges && r < GDRCAP_RANGES_MAX; r++)
		list_add(&missing,
			 Py_BuildValue("(KK)", (unsigned long long)incomplete->missing[r].from,
				       (unsigned long long)incomplete->missing[r].bytes));
	if (dict_put(dict, "missing", missing) < 0)
		Py_CLEAR(dict);
	return dict;
}

static PyObject *incomplete_get(const struct gdrcap_session *session, uint32_t index)
{
	PyObject *list = PyList_New(0);
	struct gdrcap_incomplete incomplete;

	for (uint32_t n = 0;
	     list && n < GDRCAP_INCOMPLETE_MAX &&
	     !gdrcap_get_incomplete(session, index, n, &incomplete, sizeof(incomplete));
	     n++)
		list_add(&list, incomplete_dict(&incomplete));
	return list;
}

static PyObject *images_get(struct gdrcap_session *session)
{
	PyObject *list = PyList_New(0);
	struct gdrcap_images *images;

	for (uint32_t i = 0; list && (images = gdrcap_get_images(session, i)); i++) {
		struct gdrcap_image_counts counts = { 0 };
		PyObject *dict;

		gdrcap_get_image_counts(session, i, &counts, sizeof(counts));
		dict = dict_of(&counts, image_members);
		if (dict && (dict_put(dict, "name", text_from(gdrcap_images_name(images))) < 0 ||
			     dict_put(dict, "streams", image_streams_get(session, i)) < 0 ||
			     dict_put(dict, "first_incomplete", incomplete_get(session, i)) < 0))
			Py_CLEAR(dict);
		list_add(&list, dict);
	}
	return list;
}

PyObject *results_get(struct gdrcap_session *session)
{
	PyObject *dict = PyDict_New();

	if (dict && (dict_put(dict, "summary", summary_get(session)) < 0 ||
		     dict_put(dict, "queues", queues_get(session)) < 0 ||
		     dict_put(dict, "streams", streams_get(session)) < 0 ||
		     dict_put(dict, "causes", causes_get(session)) < 0 ||
		     dict_put(dict, "rules", rules_get(session)) < 0 ||
		     dict_put(dict, "damage", damage_get(session)) < 0 ||
		     dict_put(dict, "images", images_get(session)) < 0 ||
		     dict_put(dict, "messages", messages_get(session)) < 0))
		Py_CLEAR(dict);
	return dict;
}

/* ---- others ---- */

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

PyObject *results_steps(const struct gdrcap_step *step, uint32_t count)
{
	PyObject *list = PyList_New(0);

	for (uint32_t i = 0; list && i < count; i++) {
		PyObject *causes = PyList_New(0), *dict = dict_of(&step[i], step_members);

		for (uint32_t n = 0; causes && step[i].causes && step[i].causes[n]; n++)
			list_add(&causes, text_from(step[i].causes[n]));
		if (dict_put(dict, "causes", causes) < 0)
			Py_CLEAR(dict);
		list_add(&list, dict);
	}
	return list;
}

PyObject *results_gaps(const struct gdrcap_gap *gap, uint32_t count)
{
	PyObject *list = PyList_New(0);

	for (uint32_t i = 0; list && i < count; i++)
		list_add(&list, dict_of(&gap[i], gap_members));
	return list;
}
