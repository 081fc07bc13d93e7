/* SPDX-License-Identifier: BSD-3-Clause */
/* The module gdrcap._native: its types, the option table, errors and texts. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "native.h"

static PyObject *error_class, *config_error_class;

/* ---- texts and errors ---- */

PyObject *text_from(const char *text)
{
	PyObject *string;
	char clean[1024];

	if (!text)
		Py_RETURN_NONE;
	string = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), NULL);
	if (string)
		return string;
	PyErr_Clear();
	snprintf(clean, sizeof(clean), "%s", text);
	for (char *c = clean; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	return PyUnicode_FromString(clean);
}

static PyObject *raise_text(PyObject *class, int code, const char *text)
{
	PyObject *string = text_from(text);
	PyObject *error = string ? PyObject_CallFunction(class, "iO", -code, string) : NULL;

	if (error)
		PyErr_SetObject(class, error);
	Py_XDECREF(error);
	Py_XDECREF(string);
	return NULL;
}

PyObject *raise_error(const struct gdrcap_error *error)
{
	return raise_text(error->kind == GDRCAP_ERROR_CONFIG ? config_error_class : error_class,
			  error->code, error->text);
}

PyObject *raise_code(int code, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return raise_text(error_class, code, text);
}

int dict_put(PyObject *dict, const char *key, PyObject *value)
{
	int rc = -1;

	if (dict && value)
		rc = PyDict_SetItemString(dict, key, value);
	Py_XDECREF(value);
	return rc;
}

PyTypeObject *type_add(PyObject *module, PyType_Spec *spec, PyTypeObject *base)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, (PyObject *)base);
	const char *dot = strrchr(spec->name, '.');

	if (type && PyModule_AddObjectRef(module, dot + 1, type) < 0)
		Py_CLEAR(type);
	return (PyTypeObject *)type;
}

/* ---- functions ---- */

static PyObject *module_version(PyObject *module, PyObject *unused)
{
	return text_from(gdrcap_version());
}

static PyObject *option_words(const struct gdrcap_option *option)
{
	PyObject *list = PyList_New(0);

	for (size_t i = 0; list && option->words && option->words[i]; i++) {
		PyObject *word = text_from(option->words[i]);

		if (!word || PyList_Append(list, word) < 0)
			Py_CLEAR(list);
		Py_XDECREF(word);
	}
	return list;
}

static PyObject *module_options(PyObject *module, PyObject *unused)
{
	const struct gdrcap_option *option;
	PyObject *list = PyList_New(0);

	for (size_t i = 0; list && (option = gdrcap_option_at(i)); i++) {
		PyObject *row = Py_BuildValue(
			"{s:N, s:N, s:N, s:N, s:O, s:N, s:N}", "key", text_from(option->key),
			"flag", text_from(option->flag), "argument", text_from(option->argument),
			"help", text_from(option->help), "is_list",
			option->is_list ? Py_True : Py_False, "group", text_from(option->group),
			"words", option_words(option));

		if (!row || PyList_Append(list, row) < 0)
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	return list;
}

static PyObject *module_address_of(PyObject *module, PyObject *args)
{
	uint64_t address, bytes;
	PyObject *object;

	if (!PyArg_ParseTuple(args, "O:address_of", &object) ||
	    span_of(object, &address, &bytes) < 0)
		return NULL;
	return PyLong_FromUnsignedLongLong(address);
}

/* ---- the module ---- */

/* What the extension holds is the process's, so one interpreter has it. */
static int only_here(void)
{
	static int64_t owner = -1;
	const int64_t here = PyInterpreterState_GetID(PyInterpreterState_Get());

	if (owner >= 0 && owner != here) {
		PyErr_SetString(PyExc_ImportError,
				"gdrcap is in use by another interpreter of this process");
		return -1;
	}
	owner = here;
	return 0;
}

static int module_exec(PyObject *module)
{
	PyObject *errors;

	if (only_here() < 0)
		return -1;
	errors = PyImport_ImportModule("gdrcap._errors");
	if (!errors)
		return -1;
	error_class = PyObject_GetAttrString(errors, "Error");
	config_error_class = PyObject_GetAttrString(errors, "ConfigError");
	Py_DECREF(errors);
	if (!error_class || !config_error_class)
		return -1;
	if (array_init(module) < 0 || image_init(module) < 0 || batch_init(module) < 0 ||
	    source_init(module) < 0 || slot_init(module) < 0 || sender_init(module) < 0 ||
	    memory_init(module) < 0 || session_init(module) < 0)
		return -1;
	return PyModule_AddStringConstant(module, "VERSION", GDRCAP_VERSION);
}

static PyMethodDef module_methods[] = {
	{ "version", module_version, METH_NOARGS,
	  "version()\n--\n\nVersions of the library, DPDK and CUDA, in one line." },
	{ "options", module_options, METH_NOARGS,
	  "options()\n--\n\nThe option table: a list of dictionaries with key, flag, argument, help, "
	  "is_list,\ngroup and words." },
	{ "left", handles_left, METH_NOARGS, NULL },
	{ "address_of", module_address_of, METH_VARARGS, NULL },
	{ "headers", headers_write, METH_VARARGS, NULL },
	{ "log_wait", log_wait, METH_VARARGS, NULL },
	{ "log_take", log_take, METH_VARARGS, NULL },
	{ 0 },
};
static PyModuleDef_Slot module_slots[] = {
	{ Py_mod_exec, (void *)module_exec },
	{ 0, NULL },
};
static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "gdrcap._native",
	.m_doc = "The library's sessions, images and batches as Python objects.",
	.m_methods = module_methods,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
	return PyModuleDef_Init(&module_def);
}
