/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c: one call of an expression: arguments are broadcast as numpy does, dimensions that all
 * of them walk alike become one, a kernel is looked up by their dtypes and the number of dimensions
 * that is left, and is launched with the result as its first argument.
 *
 *   evaluate(table, make, args, out, empty, reduced)
 *
 * `table` maps keys to kernels; for a new key make(key) gives one. A key has a byte for the number
 * of dimensions, one that is 1 if they were joined, and one for each argument: its dtype for an
 * array, its dtype and 64 for a number, and 128 too for a number of Python, which takes the type of
 * what it meets. `reduced` says what a reduction takes away: a bit for each dimension from the last
 * one, -1 for all of them, 0 for none. `out` is None or an array; empty(shape, dtype) makes one.
 * Returns the array, and for a full reduction of rank 0 too.
 *
 *   dispatch(table, make, args) launches the kernel for arguments as they are; its key has a second
 * byte for each, the rank.
 */
#include "binding.h"

#include "broadcast.h"

#include <string.h>

/** One call. */
typedef struct call {
    int n;
    py_held held[QN_MAX_PARAMS]; /* [0] is the result */
    qn_arg arg[QN_MAX_PARAMS];
    bool is_view[QN_MAX_PARAMS];
    bind_shape shape;
    qn_stream *stream; /* of arrays on a GPU */
} call;

/** The dtype of a number: of Python's own ones, or by what it can do. */
static int dtype_of_number(PyObject *o)
{
    if (PyBool_Check(o))
        return QN_BOOL;
    if (PyFloat_Check(o))
        return QN_F64;
    if (PyLong_Check(o))
        return QN_I64;
    if (PyComplex_Check(o))
        return QN_C128;
    return QN_VOID;
}

/** Makes a number of what numpy calls a scalar: an array without dimensions that cannot be written.
 */
static bool is_number(const py_held *h, qn_arg *out)
{
    const qn_view *v = &h->view;
    if (h->kind != PY_BUFFER || v->layout.rank != 0 || !(v->traits & QN_READ_ONLY) ||
        qn_dtype_bytes(v->dtype) > (int64_t)sizeof out->bits)
        return false;
    *out = (qn_arg){.dtype = v->dtype};
    memcpy(&out->bits, v->data, (size_t)qn_dtype_bytes(v->dtype));
    return true;
}

/** Takes the arguments as views and numbers. */
static bool take(call *c, PyObject *args, char *key)
{
    Py_ssize_t n = PyTuple_Size(args);
    if (n >= QN_MAX_PARAMS) {
        PyErr_Format(PyExc_ValueError, "%zd operands, at most %d", n, QN_MAX_PARAMS - 1);
        return false;
    }
    for (Py_ssize_t i = 1; i <= n; i++) {
        PyObject *o = PyTuple_GetItem(args, i - 1);
        int dtype = dtype_of_number(o);
        py_held *h = &c->held[i];
        h->kind = PY_OBJECT;
        h->object = NULL;
        c->is_view[i] = dtype == QN_VOID;
        int is_weak = dtype == QN_BOOL ? 0 : 128;
        if (dtype != QN_VOID) {
            if (!py_scalar(o, dtype, "number", &c->arg[i]))
                return false;
        } else if (!py_hold(o, "operand", h, &c->stream)) {
            h->kind = PY_OBJECT;
            h->object = NULL;
            return false;
        } else {
            dtype = h->view.dtype;
            h->view.label = NULL; /* so that messages have the name of the parameter */
            c->is_view[i] = !is_number(h, &c->arg[i]);
            is_weak = 0;
        }
        key[1 + i] = (char)(dtype | (c->is_view[i] ? 0 : 64 | is_weak));
        c->n = (int)i + 1;
    }
    return true;
}

/** The layouts of the operands, and the extents that they have together; false with an exception
 * where two differ and none is 1. */
static bool broadcast_extents(call *c)
{
    int64_t two[2];
    c->shape.n = c->n;
    c->shape.layout[0] = NULL;
    for (int i = 1; i < c->n; i++)
        c->shape.layout[i] = c->is_view[i] ? &c->held[i].view.layout : NULL;
    if (bind_extents(&c->shape, two))
        return true;
    PyErr_Format(PyExc_ValueError, "operands do not broadcast: extents %lld and %lld",
                 (long long)two[0], (long long)two[1]);
    return false;
}

/** Makes the result or takes the given one, whose extents must be these; a new reference. */
static PyObject *result_of(call *c, PyObject *out, PyObject *empty, int n, const int64_t *extents,
                           PyObject *dtype)
{
    if (out == Py_None) {
        PyObject *shape = py_tuple(n, extents);
        out = shape ? PyObject_CallFunctionObjArgs(empty, shape, dtype, NULL) : NULL;
        Py_XDECREF(shape);
    } else {
        Py_INCREF(out);
    }
    if (!out || !py_hold(out, "result", &c->held[0], &c->stream)) {
        c->held[0].kind = PY_OBJECT;
        c->held[0].object = NULL;
        Py_XDECREF(out);
        return NULL;
    }
    const qn_layout *l = &c->held[0].view.layout;
    bool fits = l->rank == n;
    for (int d = 0; fits && d < n; d++)
        fits = l->dim[d].extent == extents[d];
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the array for the result has another shape");
        Py_DECREF(out);
        return NULL;
    }
    return out;
}

/** The kernel of a key with the dtype of its result: (kernel, dtype), borrowed from the table. */
static PyObject *entry_of(PyObject *table, PyObject *make, const char *key, int n)
{
    PyObject *bytes = PyBytes_FromStringAndSize(key, n);
    PyObject *entry = bytes ? PyDict_GetItemWithError(table, bytes) : NULL;
    if (!entry && bytes && !PyErr_Occurred()) {
        PyObject *made = PyObject_CallFunctionObjArgs(make, bytes, NULL);
        if (made && PyDict_SetItem(table, bytes, made) == 0)
            entry = PyDict_GetItemWithError(table, bytes);
        Py_XDECREF(made);
    }
    Py_XDECREF(bytes);
    if (!entry)
        return NULL;
    if ((!PyTuple_Check(entry) || PyTuple_Size(entry) != 2 ||
         Py_TYPE(PyTuple_GetItem(entry, 0)) != py_kernel_type)) {
        PyErr_SetString(PyExc_TypeError, "make(key) gives a kernel and a dtype");
        return NULL;
    }
    return entry;
}

static PyObject *run(call *c, PyObject *const *args, long long reduced, char *key)
{
    if (!take(c, args[2], key) || !broadcast_extents(c))
        return NULL;
    bind_stretch(&c->shape);
    int64_t extents[QN_MAX_RANK];
    int n = bind_kept(&c->shape, reduced, extents);
    if (reduced == -1)
        bind_join(&c->shape);
    PyObject *out = NULL, *entry = NULL;
    if (reduced == 0) { /* the result takes part in what is joined, so it comes first, with a kernel
                           of any rank for its dtype */
        int rank = c->shape.rank;
        key[0] = (char)rank;
        entry = entry_of(args[0], args[1], key, c->n + 1);
        out = entry ? result_of(c, args[3], args[4], n, extents, PyTuple_GetItem(entry, 1)) : NULL;
        c->shape.layout[0] = &c->held[0].view.layout;
        if (out)
            bind_join(&c->shape);
        if (out && c->shape.rank != rank) {
            key[0] = (char)c->shape.rank;
            entry = entry_of(args[0], args[1], key, c->n + 1);
        }
    } else {
        key[0] = (char)c->shape.rank;
        entry = entry_of(args[0], args[1], key, c->n + 1);
        out = entry ? result_of(c, args[3], args[4], n, extents, PyTuple_GetItem(entry, 1)) : NULL;
    }
    if (!out || !entry) {
        Py_XDECREF(out);
        return NULL;
    }
    for (int i = 0; i < c->n; i++)
        if (i == 0 || c->is_view[i])
            c->arg[i] = qn_arg_view(&c->held[i].view);
    if (!py_launch((py_kernel *)PyTuple_GetItem(entry, 0), c->n, c->arg, c->stream))
        Py_CLEAR(out);
    return out;
}

PyObject *py_evaluate(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 6 || !PyDict_Check(args[0]) || !PyTuple_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "evaluate(table, make, args, out, empty, reduced)");
        return NULL;
    }
    long long reduced = PyLong_AsLongLong(args[5]);
    if (reduced == -1 && PyErr_Occurred())
        return NULL;
    call c;
    c.n = 1;
    c.stream = NULL;
    c.held[0].kind = PY_OBJECT;
    c.held[0].object = NULL;
    c.is_view[0] = false;
    char key[QN_MAX_PARAMS + 2];
    key[1] = (char)(reduced == -1);
    PyObject *out = run(&c, args, reduced, key);
    for (int i = 0; i < c.n; i++)
        py_let_go(&c.held[i]);
    py_end_stream(c.stream);
    return out;
}

PyObject *py_dispatch(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    (void)module;
    if (n != 3 || !PyDict_Check(args[0]) || !PyTuple_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "dispatch(table, make, args)");
        return NULL;
    }
    call c;
    c.n = 1;
    c.stream = NULL;
    char key[2 * QN_MAX_PARAMS + 2];
    PyObject *entry = NULL;
    bool is_done = take(&c, args[2], key);
    for (int i = 1; is_done && i < c.n; i++) {
        key[c.n + i] = (char)(c.is_view[i] ? c.held[i].view.layout.rank : 0);
        if (c.is_view[i])
            c.arg[i] = qn_arg_view(&c.held[i].view);
    }
    if (is_done)
        entry = entry_of(args[0], args[1], key + 2, 2 * (c.n - 1));
    is_done =
        entry && py_launch((py_kernel *)PyTuple_GetItem(entry, 0), c.n - 1, c.arg + 1, c.stream);
    for (int i = 1; i < c.n; i++)
        py_let_go(&c.held[i]);
    py_end_stream(c.stream);
    if (!is_done)
        return NULL;
    Py_RETURN_NONE;
}
