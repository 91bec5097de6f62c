/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.c: arrays of Python as views, without copies, and numbers as scalars. What an exporter says
 * of its memory is checked by qn_view_from_bytes and the functions of DLPack.
 */
#include "binding.h"

#include "quern/bytes.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- dtypes */

/** The dtype of a class with so many bytes that the struct module has a letter for. */
static int dtype_of_class(char kind, Py_ssize_t bytes)
{
    const py_dtype_row *row;
    for (int i = 0; (row = py_dtype_at(i)) != NULL; i++)
        if (*row->kind == kind && row->bytes == bytes && *row->format)
            return row->dtype;
    return QN_VOID;
}

/** The dtype of a letter of the struct module with so many bytes. */
static int dtype_of_letter(char letter, Py_ssize_t bytes)
{
    if (strchr("bhilqnc", letter))
        return dtype_of_class('S', bytes);
    if (strchr("BHILQN", letter))
        return dtype_of_class('U', bytes);
    if (strchr("efd", letter))
        return dtype_of_class('F', bytes);
    return letter == '?' ? QN_BOOL : QN_VOID;
}

/** The dtype of a format of the buffer protocol. */
static int dtype_of_format(const char *format, Py_ssize_t bytes)
{
    if (!format)
        return QN_U8;
    bool is_foreign = (*format == '>' || *format == '!') && bytes > 1;
    if (strchr("@=<>!", *format))
        format++;
    if (is_foreign || !*format)
        return QN_VOID;
    if (*format == 'Z' && format[1] && !format[2])
        return dtype_of_class('C', bytes);
    return format[1] ? QN_VOID : dtype_of_letter(*format, bytes);
}

/** The dtype of a type string of the array interface, "<f8". */
static int dtype_of_typestr(const char *text)
{
    if (!text || !text[0] || !text[1] || (text[0] == '>' && strcmp(text + 2, "1") != 0))
        return QN_VOID;
    static const struct {
        char letter, kind;
    } kinds[] = {{'b', 'B'}, {'i', 'S'}, {'u', 'U'}, {'f', 'F'}, {'c', 'C'}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (text[1] == kinds[i].letter)
            return dtype_of_class(kinds[i].kind, atoi(text + 2));
    return QN_VOID;
}

/* ---------------------------------------------------------------- buffers */

/** Of a buffer that was had; gives it back on failure. */
static bool hold_buffer(const char *label, py_held *h)
{
    const Py_buffer *b = &h->buffer;
    qn_error err = {0};
    int dtype = dtype_of_format(b->format, b->itemsize);
    if (dtype == QN_VOID) {
        PyErr_Format(
            PyExc_TypeError,
            "argument %s: elements of the format \"%s\" (%zd bytes) are of no dtype of Quern",
            label, b->format ? b->format : "", b->itemsize);
    } else if (b->ndim > QN_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "argument %s: %d dimensions, at most %d", label, b->ndim,
                     QN_MAX_RANK);
    } else {
        int64_t extents[QN_MAX_RANK], strides[QN_MAX_RANK];
        for (int d = 0; d < b->ndim; d++) {
            extents[d] = b->shape[d];
            strides[d] = b->strides[d];
        }
        uint32_t traits = b->readonly ? QN_READ_ONLY : 0;
        if (!qn_view_from_bytes(label, b->buf, dtype, b->ndim, extents, strides, NULL, traits,
                                &h->view, &err)) {
            h->kind = PY_BUFFER;
            return true;
        }
        py_raise(&err);
    }
    PyBuffer_Release(&h->buffer);
    return false;
}

/* ---------------------------------------------------------------- the array interfaces */

/** An entry of a dictionary, borrowed; NULL without an exception if it is missing or None. */
static PyObject *entry_of(PyObject *dict, const char *name)
{
    PyObject *value = PyDict_GetItemString(dict, name);
    return value == Py_None ? NULL : value;
}

static bool read_list(PyObject *tuple, int n, int64_t *out)
{
    for (int d = 0; d < n; d++) {
        PyObject *item = PySequence_GetItem(tuple, d);
        out[d] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return false;
    }
    return true;
}

/** Waits for the stream that a __cuda_array_interface__ names. Before version 3 it named none, and
 *  producers meant their default stream. */
static bool follow_interface(PyObject *dict, int device, qn_stream **stream)
{
    PyObject *theirs = entry_of(dict, "stream"), *version = entry_of(dict, "version");
    long v = version ? PyLong_AsLong(version) : 0;
    unsigned long long handle = theirs   ? PyLong_AsUnsignedLongLong(theirs)
                                : v >= 3 ? 0
                                         : PY_LEGACY_STREAM;
    if (PyErr_Occurred())
        return false;
    if (theirs && handle == 0) {
        PyErr_SetString(PyExc_ValueError, "__cuda_array_interface__: stream 0 has no meaning");
        return false;
    }
    return handle ? py_follow(stream, device, (uintptr_t)handle) : py_need_stream(stream, device);
}

/** Reads the dictionary of an array interface; with `stream` that of memory of a GPU. */
static bool read_interface(PyObject *dict, const char *label, py_held *h, qn_stream **stream)
{
    PyObject *shape = entry_of(dict, "shape"), *type = entry_of(dict, "typestr"),
             *data = entry_of(dict, "data");
    PyObject *strides = entry_of(dict, "strides");
    if (!shape || !type || !data || !PyTuple_Check(shape) || !PyTuple_Check(data) ||
        PyTuple_Size(data) != 2) {
        PyErr_Format(PyExc_TypeError,
                     "argument %s: its array interface lacks shape, typestr or data", label);
        return false;
    }
    int64_t extents[QN_MAX_RANK], stride[QN_MAX_RANK];
    Py_ssize_t rank = PyTuple_Size(shape);
    int dtype = dtype_of_typestr(PyUnicode_AsUTF8AndSize(type, NULL));
    if (rank > QN_MAX_RANK || dtype == QN_VOID) {
        PyErr_Format(PyExc_TypeError, "argument %s: %zd dimensions of %R", label, rank, type);
        return false;
    }
    void *address = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    int is_read_only = PyObject_IsTrue(PyTuple_GetItem(data, 1));
    if (PyErr_Occurred() || !read_list(shape, (int)rank, extents) ||
        (strides && !read_list(strides, (int)rank, stride)))
        return false;
    qn_error err = {0};
    uint32_t traits = is_read_only ? QN_READ_ONLY : 0;
    qn_status status = qn_view_from_bytes(label, address, dtype, (int)rank, extents,
                                          strides ? stride : NULL, NULL, traits, &h->view, &err);
    if (!status && stream) {
        qn_layout layout = h->view.layout;
        qn_context *c = py_context();
        if (!c)
            return false;
        status =
            qn_cuda_wrap(c, QN_SPACE_CUDA, label, address, dtype, &layout, traits, &h->view, &err);
    }
    if (status)
        py_raise(&err);
    return status == QN_OK && (!stream || follow_interface(dict, h->view.device, stream));
}

static bool hold_interface(PyObject *o, PyObject *dict, const char *label, py_held *h,
                           qn_stream **stream)
{
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "argument %s: its array interface is no dictionary", label);
        return false;
    }
    if (!read_interface(dict, label, h, stream))
        return false;
    h->kind = PY_OBJECT;
    h->object = o;
    Py_INCREF(o);
    return true;
}

/* ---------------------------------------------------------------- DLPack */

static bool take_capsule(PyObject *capsule, const char *label, py_held *h)
{
    static const char versioned[] = "dltensor_versioned", plain[] = "dltensor";
    qn_error err = {0};
    qn_status status;
    if (PyCapsule_IsValid(capsule, versioned)) {
        status = qn_view_take_dlpack_versioned(label, PyCapsule_GetPointer(capsule, versioned), 0,
                                               &h->view, &err);
        if (!status)
            PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else if (PyCapsule_IsValid(capsule, plain)) {
        status =
            qn_view_take_dlpack(label, PyCapsule_GetPointer(capsule, plain), 0, &h->view, &err);
        if (!status)
            PyCapsule_SetName(capsule, "used_dltensor");
    } else {
        PyErr_Format(PyExc_TypeError, "argument %s: __dlpack__ gave no tensor", label);
        return false;
    }
    h->kind = PY_TAKEN;
    if (status)
        py_raise(&err);
    return status == QN_OK;
}

/** Calls __dlpack__ for use in a stream, NULL: none. NULL with an exception. Producers before
 * DLPack 1.0 take no version. */
static PyObject *capsule_of(PyObject *method, qn_stream *stream)
{
    PyObject *none = PyTuple_New(0), *capsule = NULL;
    PyObject *options = Py_BuildValue("{s(ii)}", "max_version", 1, 0);
    PyObject *handle = stream ? PyLong_FromVoidPtr(qn_stream_handle(stream)) : NULL;
    bool is_good = none && options && (!stream || handle);
    if (is_good && (!handle || !PyDict_SetItemString(options, "stream", handle)))
        capsule = PyObject_Call(method, none, options);
    if (is_good && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        if (!PyDict_DelItemString(options, "max_version"))
            capsule = PyObject_Call(method, none, options);
    }
    Py_XDECREF(handle);
    Py_XDECREF(options);
    Py_XDECREF(none);
    return capsule;
}

/** The device of a producer: its type in *type and its number; a host where it tells none. */
static bool device_of(PyObject *o, long *type, int *number)
{
    PyObject *device = PyObject_CallMethod(o, "__dlpack_device__", NULL);
    *type = 1;
    *number = 0;
    if (!device) { /* as producers of the first version */
        PyErr_Clear();
        return true;
    }
    PyObject *first = PySequence_GetItem(device, 0), *second = PySequence_GetItem(device, 1);
    if (first && second) {
        *type = PyLong_AsLong(first);
        *number = (int)PyLong_AsLong(second);
    }
    Py_XDECREF(first);
    Py_XDECREF(second);
    Py_DECREF(device);
    return !PyErr_Occurred();
}

/** Takes the tensor of an object. The producer of one on a GPU lets our stream wait for its own; if
 *  it did not tell that the tensor is on a GPU, the work of the default stream comes first. */
static bool hold_dlpack(PyObject *o, PyObject *method, const char *label, py_held *h,
                        qn_stream **stream)
{
    enum { CUDA = 2, MANAGED = 13 }; /* devices of DLPack */
    long type;
    int device;
    if (!device_of(o, &type, &device))
        return false;
    bool is_told = type == CUDA || type == MANAGED;
    if (is_told && !py_need_stream(stream, device))
        return false;
    PyObject *capsule = capsule_of(method, is_told ? *stream : NULL);
    if (!capsule)
        return false;
    bool is_held = take_capsule(capsule, label, h);
    Py_DECREF(capsule);
    if (!is_held || is_told || h->view.space != QN_SPACE_CUDA)
        return is_held;
    if (py_follow(stream, h->view.device, PY_LEGACY_STREAM))
        return true;
    qn_view_release(&h->view);
    return false;
}

/* ---------------------------------------------------------------- any of them */

/** An array of ours, which lives as long as its object. */
static bool hold_array(PyObject *o, py_held *h, qn_stream **stream)
{
    h->view = *py_array_view(o);
    h->kind = PY_ARRAY;
    if (h->view.space == QN_SPACE_CUDA &&
        !(py_array_is_shared(o) ? py_follow(stream, h->view.device, PY_LEGACY_STREAM)
                                : py_need_stream(stream, h->view.device)))
        return false;
    h->object = o;
    Py_INCREF(o);
    return true;
}

/** After a failure: whether an object has the array interface of GPUs, too. The exception is
 * dropped then. */
static bool has_interface_instead(PyObject *o)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool has = PyObject_HasAttrString(o, "__cuda_array_interface__") == 1;
    if (!has) {
        PyErr_Restore(type, value, traceback);
        return false;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return true;
}

/** By the first attribute of three that an object has; false without an exception if it has none.
 * Where DLPack fails, the array interface of GPUs is tried: CuPy 14 divides negative strides as
 * unsigned numbers. */
static bool hold_attribute(PyObject *o, const char *label, py_held *h, qn_stream **stream)
{
    static const char *const attributes[] = {"__dlpack__", "__cuda_array_interface__",
                                             "__array_interface__"};
    for (int i = 0; i < 3; i++) {
        PyObject *value = PyObject_GetAttrString(o, attributes[i]);
        if (!value) {
            PyErr_Clear(); /* an attribute may refuse, as that of a tensor on the host does */
            continue;
        }
        bool is_held = i == 0 ? hold_dlpack(o, value, label, h, stream)
                              : hold_interface(o, value, label, h, i == 1 ? stream : NULL);
        Py_DECREF(value);
        if (is_held || i > 0 || !has_interface_instead(o))
            return is_held;
    }
    return false;
}

bool py_hold(PyObject *o, const char *label, py_held *h, qn_stream **stream)
{
    h->object = NULL;
    h->view = (qn_view){0};
    if (Py_TYPE(o) == py_array_type)
        return hold_array(o, h, stream);
    PyObject *refusal[3] = {NULL, NULL, NULL}; /* type, value and traceback of an exception */
    if (PyObject_CheckBuffer(o)) {
        if (PyObject_GetBuffer(o, &h->buffer, PyBUF_STRIDES | PyBUF_FORMAT) == 0)
            return hold_buffer(label, h);
        PyErr_Fetch(&refusal[0], &refusal[1],
                    &refusal[2]); /* arrays of CuPy refuse a buffer on the host */
    }
    bool is_held = hold_attribute(o, label, h, stream);
    if (is_held || PyErr_Occurred()) {
        for (int i = 0; i < 3; i++)
            Py_XDECREF(refusal[i]);
        return is_held;
    }
    if (refusal[0])
        PyErr_Restore(refusal[0], refusal[1], refusal[2]);
    else
        PyErr_Format(PyExc_TypeError, "argument %s: expected an array, not %R", label,
                     (PyObject *)Py_TYPE(o));
    return false;
}

void py_let_go(py_held *h)
{
    if (h->kind == PY_BUFFER)
        PyBuffer_Release(&h->buffer);
    else if (h->kind == PY_TAKEN)
        qn_view_release(&h->view);
    Py_XDECREF(h->object);
}

/* ---------------------------------------------------------------- scalars */

/** The bits of an integer, if it is a value of the dtype. */
static bool integer(PyObject *o, int dtype, const char *label, uint64_t *bits)
{
    PyObject *index = PyNumber_Index(o);
    if (!index)
        return false;
    bool is_unsigned = py_dtype_kind(dtype) == 'U';
    int64_t width = 8 * qn_dtype_bytes(dtype);
    bool fits;
    if (is_unsigned) {
        *bits = PyLong_AsUnsignedLongLong(index);
        fits = width == 64 || *bits >> width == 0;
    } else {
        int64_t value = PyLong_AsLongLong(index), most = (int64_t)(UINT64_MAX >> (65 - width));
        *bits = (uint64_t)value;
        fits = value >= -most - 1 && value <= most;
    }
    Py_DECREF(index);
    if (!fits && !PyErr_Occurred())
        PyErr_Format(PyExc_OverflowError, "argument %s: %R does not fit %s", label, o,
                     qn_dtype_name(dtype));
    return !PyErr_Occurred();
}

bool py_scalar(PyObject *o, int dtype, const char *label, qn_arg *out)
{
    double value;
    uint64_t bits;
    switch (py_dtype_kind(dtype)) {
    case 'F':
        value = PyFloat_AsDouble(o);
        memcpy(&bits, &value, sizeof bits);
        *out = (qn_arg){.dtype = dtype, .bits = qn_convert_value(dtype, QN_F64, bits)};
        break;
    case 'C':
        value = PyComplex_RealAsDouble(o);
        *out = qn_dtype_bytes(dtype) == 8
                   ? qn_arg_c64((float)value, (float)PyComplex_ImagAsDouble(o))
                   : qn_arg_c128(value, PyComplex_ImagAsDouble(o));
        break;
    case 'B': {
        int truth = PyObject_IsTrue(o);
        *out = qn_arg_int(QN_BOOL, truth > 0);
        break;
    }
    default:
        if (!integer(o, dtype, label, &bits))
            return false;
        *out = (qn_arg){.dtype = dtype, .bits = bits};
    }
    return !PyErr_Occurred();
}
