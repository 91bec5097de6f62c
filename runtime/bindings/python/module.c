/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c: the module quern._quern: the context, errors as exceptions, and functions of the
 * module. The Python part of the package gives the exception classes (_set_errors), and is the
 * interface that users see.
 */
#include "binding.h"

#include <stdio.h>

static struct {
    qn_context *context;
    PyObject *errors; /* status -> class */
    PyObject *error;  /* the class of all others */
    unsigned long main_thread;
    char provider[4096]; /* the code generator beside this module; "": wherever libquern looks */
} state;

qn_context *py_context(void)
{
    if (state.context)
        return state.context;
    qn_context_options o = {.bytes = sizeof o,
                            .provider_path = *state.provider ? state.provider : NULL};
    qn_error err = {0};
    if (qn_context_new(&o, &state.context, &err))
        py_raise(&err);
    return state.context;
}

bool py_is_main_thread(void)
{
    return PyThread_get_thread_ident() == state.main_thread;
}

PyObject *py_raise(const qn_error *err)
{
    PyObject *key = PyLong_FromLong(err->status);
    PyObject *class = key && state.errors ? PyDict_GetItemWithError(state.errors, key) : NULL;
    Py_XDECREF(key);
    if (!class)
        class = state.error ? state.error : PyExc_RuntimeError;
    PyObject *e =
        PyObject_CallFunction(class, "sii", err->message, (int)err->status, (int)err->line);
    if (e)
        PyErr_SetObject(class, e);
    Py_XDECREF(e);
    return NULL;
}

/* ---------------------------------------------------------------- functions */

static PyObject *set_errors(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *errors, *error;
    const char *provider;
    if (!PyArg_ParseTuple(args, "OOsk", &errors, &error, &provider, &state.main_thread))
        return NULL;
    Py_INCREF(errors);
    Py_INCREF(error);
    state.errors = errors;
    state.error = error;
    snprintf(state.provider, sizeof state.provider, "%s", provider);
    Py_RETURN_NONE;
}

static PyObject *after_fork(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    state.context =
        NULL; /* the parent's, whose threads are not here; what was made with it stays readable */
    state.main_thread = PyThread_get_thread_ident();
    py_forget_streams();
    Py_RETURN_NONE;
}

static PyObject *parse(PyObject *module, PyObject *args)
{
    (void)module;
    const char *text;
    Py_ssize_t n;
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (!PyArg_ParseTuple(args, "s#", &text, &n))
        return NULL;
    return qn_kernel_parse(text, (size_t)n, &k, &err) ? py_raise(&err) : py_kernel_new(k);
}

static PyObject *empty(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *shape, *dtype;
    int space = QN_SPACE_HOST, is_raw = 1;
    if (!PyArg_ParseTuple(args, "OO|ip", &shape, &dtype, &space, &is_raw))
        return NULL;
    int64_t extents[QN_MAX_RANK];
    int n = py_extents(shape, extents), type = n < 0 ? QN_VOID : py_dtype(dtype);
    return type == QN_VOID ? NULL : py_array_make(n, extents, type, space, is_raw != 0);
}

static PyObject *view(PyObject *module, PyObject *o)
{
    (void)module;
    py_held h;
    qn_stream *stream = NULL;
    qn_error err = {0};
    bool is_held = py_hold(o, "array", &h, &stream);
    if (stream && is_held) { /* later calls know nothing of streams of the owner */
        PyThreadState *thread = PyEval_SaveThread();
        qn_stream_fence(stream, &err);
        PyEval_RestoreThread(thread);
    }
    py_end_stream(stream);
    if (!is_held)
        return NULL;
    if (err.status) {
        py_let_go(&h);
        return py_raise(&err);
    }
    qn_view copy = qn_view_copy(&h.view);
    copy.label = NULL;
    if (h.kind == PY_BUFFER) {
        PyObject *base = PyMemoryView_FromObject(o); /* keeps the buffer as long as it lives */
        py_let_go(&h);
        PyObject *array = base ? py_array_new(&copy, base) : NULL;
        Py_XDECREF(base);
        return array;
    }
    PyObject *array = py_array_new(&copy, h.object);
    py_let_go(&h);
    return array;
}

static PyObject *number(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    int64_t value;
    qn_error err = {0};
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    return qn_number_by_name(name, &value, &err) ? py_raise(&err) : PyLong_FromLongLong(value);
}

static PyObject *numbers(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    PyObject *dict = PyDict_New();
    int64_t value;
    const char *name;
    for (int i = 0; dict && (name = qn_number_name(i, &value)) != NULL; i++) {
        PyObject *n = PyLong_FromLongLong(value);
        if (!n || PyDict_SetItemString(dict, name, n))
            Py_CLEAR(dict);
        Py_XDECREF(n);
    }
    return dict;
}

static PyObject *dtypes(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    PyObject *list = PyList_New(0);
    const py_dtype_row *row;
    for (int i = 0; list && (row = py_dtype_at(i)) != NULL; i++) {
        PyObject *item = Py_BuildValue("(sissis)", row->name, row->dtype, row->kind, row->numpy,
                                       8 * row->bytes, qn_dtype_name(row->part));
        if (!item || PyList_Append(list, item))
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *counters(PyObject *module, PyObject *none)
{
    (void)module;
    (void)none;
    qn_context *c = py_context();
    if (!c)
        return NULL;
    qn_counters n = {0};
    qn_context_counters(c, &n, sizeof n);
    PyObject *dict = PyDict_New();
#define QN_X(name, text)                                                                           \
    if (dict) {                                                                                    \
        PyObject *value = PyLong_FromLongLong(n.name);                                             \
        if (!value || PyDict_SetItemString(dict, #name, value))                                    \
            Py_CLEAR(dict);                                                                        \
        Py_XDECREF(value);                                                                         \
    }
    QN_COUNTER_LIST(QN_X)
#undef QN_X
    return dict;
}

#define TEXT_OF(x) #x
#define NUMBER(x) TEXT_OF(x)
#define VERSION NUMBER(QN_VERSION_MAJOR) "." NUMBER(QN_VERSION_MINOR) "." NUMBER(QN_VERSION_PATCH)

static PyMethodDef methods[] = {
    {"_set_errors", set_errors, METH_VARARGS,
     "_set_errors(classes by status, class, code generator, main thread)"},
    {"_after_fork", after_fork, METH_NOARGS, "_after_fork(): this is a child process"},
    {"parse", parse, METH_VARARGS, "parse(text) -> Kernel: reads a kernel text"},
    {"empty", empty, METH_VARARGS, "empty(shape, dtype, space=0, is_raw=True) -> Array"},
    {"view", view, METH_O, "view(array) -> Array of the same memory"},
    {"number", number, METH_VARARGS, "number(name) -> int: an enumerator of the C headers"},
    {"numbers", numbers, METH_NOARGS, "numbers() -> dict of all enumerators of the C headers"},
    {"dtypes", dtypes, METH_NOARGS,
     "dtypes() -> list of (name, number, class, numpy's name, bits, part) of all element types"},
    {"counters", counters, METH_NOARGS,
     "counters() -> dict: what was launched, compiled and found so far"},
    {"evaluate", (PyCFunction)(void (*)(void))py_evaluate, METH_FASTCALL,
     "evaluate(table, make, args, out, empty, reduced): see evaluate.c"},
    {"dispatch", (PyCFunction)(void (*)(void))py_dispatch, METH_FASTCALL,
     "dispatch(table, make, args): see evaluate.c"},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module_def = {PyModuleDef_HEAD_INIT,
                                        "quern._quern",
                                        "The C part of quern.",
                                        -1,
                                        methods,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__quern(void);
PyMODINIT_FUNC PyInit__quern(void)
{
    PyObject *module = PyModule_Create(&module_def);
    if (module && py_add_array(module) && py_add_kernel(module) && py_add_builder(module) &&
        PyModule_AddStringConstant(module, "version", VERSION) == 0)
        return module;
    Py_XDECREF(module);
    return NULL;
}
