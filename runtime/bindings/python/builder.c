/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.c: quern._quern.Builder: the builder of quern.h with values as integers (quern/embed.h).
 * Each method is one function; errors stick and are raised by finish. The Python part of the
 * package puts values with operators on top.
 */
#include "binding.h"

#include <string.h>

typedef struct builder {
    PyObject_HEAD qn_builder *b;
} builder;

enum { MOST = QN_MAX_CARRIED };

/** A sequence of integers; its length, or -1 with an exception. */
static int read_values(PyObject *list, uint64_t out[MOST])
{
    Py_ssize_t n = PySequence_Size(list);
    if (n > MOST)
        PyErr_Format(PyExc_ValueError, "%zd values, at most %d", n, MOST);
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++) {
        PyObject *item = PySequence_GetItem(list, i);
        out[i] = item ? PyLong_AsUnsignedLongLong(item) : 0;
        Py_XDECREF(item);
    }
    return PyErr_Occurred() ? -1 : (int)n;
}

static PyObject *number(uint64_t n)
{
    return PyLong_FromUnsignedLongLong(n);
}

static PyObject *number_list(int n, const uint64_t *values)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++)
        if (PyList_SetItem(list, i, number(values[i])))
            Py_CLEAR(list);
    return list;
}

#define METHOD(name) static PyObject *name(builder *self, PyObject *args)
#define READ(...)                                                                                  \
    if (!PyArg_ParseTuple(args, __VA_ARGS__))                                                      \
    return NULL

METHOD(view_param)
{
    const char *name;
    int dtype, rank;
    unsigned traits = 0;
    READ("sii|I", &name, &dtype, &rank, &traits);
    return number(qn_view_param_n(self->b, name, dtype, rank, traits));
}

METHOD(scalar_param)
{
    const char *name;
    int dtype;
    READ("si", &name, &dtype);
    return number(qn_scalar_param_n(self->b, name, dtype));
}

METHOD(type_of)
{
    unsigned long long x;
    READ("K", &x);
    return PyLong_FromLong(qn_type_of_n(self->b, x));
}

/** constant(dtype, number) */
METHOD(constant)
{
    int dtype;
    PyObject *value;
    READ("iO", &dtype, &value);
    qn_arg bits;
    if (py_dtype_kind(dtype) == 'C') {
        double re = PyComplex_RealAsDouble(value), im = PyComplex_ImagAsDouble(value);
        return PyErr_Occurred() ? NULL : number(qn_const_complex_n(self->b, dtype, re, im));
    }
    if (!py_scalar(value, dtype, "constant", &bits))
        return NULL;
    qn_val v = qn_const_bits(self->b, dtype, bits.bits);
    return number((uint64_t)v.builder << 32 | v.id);
}

METHOD(extent)
{
    unsigned long long view;
    int d;
    READ("Ki", &view, &d);
    return number(qn_extent_n(self->b, view, d));
}

METHOD(lower)
{
    unsigned long long view;
    int d;
    READ("Ki", &view, &d);
    return number(qn_lower_n(self->b, view, d));
}

METHOD(dimension)
{
    unsigned long long begin, end;
    int kind;
    READ("iKK", &kind, &begin, &end);
    return number(qn_dimension_n(self->b, kind, begin, end));
}

METHOD(load)
{
    unsigned long long view;
    PyObject *list;
    uint64_t index[MOST];
    READ("KO", &view, &list);
    int n = read_values(list, index);
    return n < 0 ? NULL : number(qn_load_n(self->b, view, n, index));
}

METHOD(store)
{
    unsigned long long view, value;
    PyObject *list;
    uint64_t index[MOST];
    READ("KOK", &view, &list, &value);
    int n = read_values(list, index);
    if (n < 0)
        return NULL;
    qn_store_n(self->b, view, n, index, value);
    Py_RETURN_NONE;
}

METHOD(atomic)
{
    unsigned long long view, value, compare = 0;
    PyObject *list;
    int combine;
    uint64_t index[MOST];
    READ("iKOK|K", &combine, &view, &list, &value, &compare);
    int n = read_values(list, index);
    return n < 0 ? NULL : number(qn_atomic_n(self->b, combine, view, n, index, value, compare));
}

/** op(name, *values) by the keyword of quern/ops.def */
METHOD(op)
{
    const char *name;
    PyObject *list;
    uint64_t values[MOST];
    READ("sO", &name, &list);
    int n = read_values(list, values), op = qn_op_of_name(name);
    if (n >= 0 && op == 0)
        PyErr_Format(PyExc_ValueError, "no op has the name %s", name);
    return n < 0 || op == 0 ? NULL : number(qn_op_n(self->b, op, n, values));
}

METHOD(math)
{
    const char *name;
    PyObject *list;
    uint64_t values[MOST], results[2 * MOST] = {0};
    READ("sO", &name, &list);
    int n = read_values(list, values), n_results = 0;
    if (n < 0)
        return NULL;
    qn_math_n(self->b, name, n, values, results);
    while (n_results < MOST && results[n_results])
        n_results++;
    return number_list(n_results, results);
}

METHOD(cast)
{
    int dtype;
    unsigned long long x;
    READ("iK", &dtype, &x);
    return number(qn_cast_n(self->b, dtype, x));
}

METHOD(bitcast)
{
    int dtype;
    unsigned long long x;
    READ("iK", &dtype, &x);
    return number(qn_bitcast_n(self->b, dtype, x));
}

METHOD(complex_of)
{
    unsigned long long re, im;
    READ("KK", &re, &im);
    return number(qn_complex_n(self->b, re, im));
}

METHOD(part)
{
    unsigned long long z;
    int part;
    READ("Ki", &z, &part);
    return number(qn_part_n(self->b, z, part));
}

/* ---------------------------------------------------------------- regions */

METHOD(if_)
{
    unsigned long long condition;
    int is_rare = 0;
    READ("K|p", &condition, &is_rare);
    qn_if_n(self->b, condition, is_rare);
    Py_RETURN_NONE;
}

METHOD(else_)
{
    PyObject *list;
    uint64_t values[MOST];
    READ("O", &list);
    int n = read_values(list, values);
    if (n < 0)
        return NULL;
    qn_else_n(self->b, n, values);
    Py_RETURN_NONE;
}

/** The ends of regions with n values and n results. */
static PyObject *end(builder *self, PyObject *args,
                     void (*fn)(qn_builder *, int, const uint64_t *, uint64_t *))
{
    PyObject *list;
    uint64_t values[MOST], results[MOST] = {0};
    READ("O", &list);
    int n = read_values(list, values);
    if (n < 0)
        return NULL;
    fn(self->b, n, values, results);
    return number_list(n, results);
}

METHOD(end_if)
{
    return end(self, args, qn_end_if_n);
}

METHOD(end_for)
{
    return end(self, args, qn_end_for_n);
}

METHOD(end_while)
{
    return end(self, args, qn_end_while_n);
}

/** for_(begin, end, step, init) -> (index, carried) */
METHOD(for_)
{
    unsigned long long first, last;
    long long step;
    PyObject *list;
    uint64_t init[MOST], carried[MOST] = {0};
    READ("KKLO", &first, &last, &step, &list);
    int n = read_values(list, init);
    if (n < 0)
        return NULL;
    uint64_t index = qn_for_n(self->b, first, last, step, n, init, carried);
    return Py_BuildValue("(NN)", number(index), number_list(n, carried));
}

METHOD(while_)
{
    unsigned long long most;
    PyObject *list;
    uint64_t init[MOST], carried[MOST] = {0};
    READ("KO", &most, &list);
    int n = read_values(list, init);
    if (n < 0)
        return NULL;
    qn_while_n(self->b, most, n, init, carried);
    return number_list(n, carried);
}

METHOD(do_)
{
    unsigned long long condition;
    READ("K", &condition);
    qn_do_n(self->b, condition);
    Py_RETURN_NONE;
}

METHOD(reduce)
{
    int combine, order;
    PyObject *list;
    uint64_t dims[MOST];
    READ("iiO", &combine, &order, &list);
    int n = read_values(list, dims);
    if (n < 0)
        return NULL;
    qn_reduce_n(self->b, combine, order, n, dims);
    Py_RETURN_NONE;
}

METHOD(end_reduce)
{
    unsigned long long value;
    READ("K", &value);
    return number(qn_end_reduce_n(self->b, value));
}

METHOD(assert_)
{
    unsigned long long condition;
    const char *message;
    PyObject *list;
    uint64_t values[MOST];
    READ("KsO", &condition, &message, &list);
    int n = read_values(list, values);
    if (n < 0)
        return NULL;
    qn_assert_n(self->b, condition, message, n, values);
    Py_RETURN_NONE;
}

METHOD(print)
{
    const char *message;
    PyObject *list;
    uint64_t values[MOST];
    READ("sO", &message, &list);
    int n = read_values(list, values);
    if (n < 0)
        return NULL;
    qn_print_n(self->b, message, n, values);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- places and the end */

METHOD(at)
{
    const char *file;
    int line, column = 0;
    READ("zi|i", &file, &line, &column);
    qn_builder_at(self->b, file, line, column);
    Py_RETURN_NONE;
}

METHOD(name)
{
    unsigned long long x;
    const char *text;
    READ("Ks", &x, &text);
    qn_builder_name_n(self->b, x, text);
    Py_RETURN_NONE;
}

static PyObject *check(builder *self, PyObject *none)
{
    (void)none;
    qn_error err = {0};
    if (qn_builder_status(self->b, &err))
        return py_raise(&err);
    Py_RETURN_NONE;
}

static PyObject *finish(builder *self, PyObject *none)
{
    (void)none;
    qn_kernel *k = NULL;
    qn_error err = {0};
    return qn_finish(self->b, &k, &err) ? py_raise(&err) : py_kernel_new(k);
}

static int builder_init(builder *self, PyObject *args, PyObject *options)
{
    static char *words[] = {"name", "flags", NULL};
    const char *name;
    unsigned flags = 0;
    if (!PyArg_ParseTupleAndKeywords(args, options, "s|I", words, &name, &flags))
        return -1;
    qn_builder_release(self->b);
    self->b = qn_builder_new(name, flags);
    if (!self->b)
        PyErr_NoMemory();
    return self->b ? 0 : -1;
}

static void builder_dealloc(builder *self)
{
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    qn_builder_release(self->b);
    PyObject_Free(self);
    Py_DECREF(type);
}

#define ROW(name, function, doc) {name, (PyCFunction)(void (*)(void))function, METH_VARARGS, doc}
static PyMethodDef methods[] = {
    ROW("view_param", view_param, "view_param(name, dtype, rank, traits=0)"),
    ROW("scalar_param", scalar_param, "scalar_param(name, dtype)"),
    ROW("type_of", type_of, "type_of(value)"),
    ROW("constant", constant, "constant(dtype, number)"),
    ROW("extent", extent, "extent(view, d)"),
    ROW("lower", lower, "lower(view, d)"),
    ROW("dimension", dimension,
        "dimension(kind, begin, end): 0 parallel, 1 reduction, 2 sequential"),
    ROW("load", load, "load(view, indices)"),
    ROW("store", store, "store(view, indices, value)"),
    ROW("atomic", atomic, "atomic(combine, view, indices, value, compare=0)"),
    ROW("op", op, "op(name, values)"),
    ROW("math", math, "math(name, values) -> list"),
    ROW("cast", cast, "cast(dtype, value)"),
    ROW("bitcast", bitcast, "bitcast(dtype, value)"),
    ROW("complex", complex_of, "complex(re, im)"),
    ROW("part", part, "part(z, 0 or 1)"),
    ROW("if_", if_, "if_(condition, is_rare=False)"),
    ROW("else_", else_, "else_(values)"),
    ROW("end_if", end_if, "end_if(values) -> list"),
    ROW("for_", for_, "for_(begin, end, step, init) -> (index, carried)"),
    ROW("end_for", end_for, "end_for(next) -> list"),
    ROW("while_", while_, "while_(max_trips, init) -> carried"),
    ROW("do_", do_, "do_(condition)"),
    ROW("end_while", end_while, "end_while(next) -> list"),
    ROW("reduce", reduce, "reduce(combine, order, dims)"),
    ROW("end_reduce", end_reduce, "end_reduce(value)"),
    ROW("assert_", assert_, "assert_(condition, message, values)"),
    ROW("print", print, "print(message, values)"),
    ROW("at", at, "at(file, line, column=0)"),
    ROW("name", name, "name(value, text)"),
    {"check", (PyCFunction)check, METH_NOARGS, "check(): raises the first error so far"},
    {"finish", (PyCFunction)finish, METH_NOARGS, "finish() -> Kernel"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, builder_dealloc},
    {Py_tp_init, builder_init},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Builder(name, flags=0): a kernel under construction; values are integers."},
    {0, NULL}};
static PyType_Spec spec = {"quern._quern.Builder", sizeof(builder), 0, Py_TPFLAGS_DEFAULT, slots};

bool py_add_builder(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    bool is_added = type && PyModule_AddObjectRef(module, "Builder", type) == 0;
    Py_XDECREF(type);
    return is_added;
}
