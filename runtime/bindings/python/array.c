/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.c: quern.Array, an array in memory of Quern, or of another object that it keeps alive. It
 * exports the buffer protocol, DLPack and the array interfaces; indexing gives elements and parts
 * of the same memory.
 */
#include "binding.h"

#include "quern/bytes.h"

#include <string.h>

PyTypeObject *py_array_type;

typedef struct array {
    PyObject_HEAD qn_view view;
    PyObject *base; /* keeps the memory alive; NULL: the view does */
    bool is_shared; /* another library was given its memory on a GPU */
    Py_ssize_t shape[QN_MAX_RANK], strides[QN_MAX_RANK];
} array;

const qn_view *py_array_view(PyObject *o)
{
    return &((array *)o)->view;
}

bool py_array_is_shared(PyObject *o)
{
    return ((array *)o)->is_shared;
}

PyObject *py_array_new(const qn_view *view, PyObject *base)
{
    qn_view v = *view;
    int64_t extents[QN_MAX_RANK], strides[QN_MAX_RANK];
    qn_error err = {0};
    if (qn_view_to_bytes(&v, extents, strides, NULL, &err)) {
        qn_view_release(&v);
        return py_raise(&err);
    }
    array *a = (array *)PyType_GenericAlloc(py_array_type, 0);
    if (!a) {
        qn_view_release(&v);
        return NULL;
    }
    a->view = v;
    a->base = base;
    Py_XINCREF(base);
    for (int d = 0; d < v.layout.rank; d++) {
        a->shape[d] = extents[d];
        a->strides[d] = strides[d];
    }
    return (PyObject *)a;
}

PyObject *py_array_make(int n, const int64_t *extents, int dtype, int space, bool is_raw)
{
    qn_context *c = py_context();
    qn_view_type type;
    qn_view v = {0};
    qn_error err = {0};
    if (!c)
        return NULL;
    qn_status status = qn_view_type_init(dtype, n, NULL, QN_FAMILY_RIGHT, &type, &err);
    const qn_alloc_options o = {.bytes = sizeof o, .uninitialised = is_raw, .space = space};
    type.space = space;
    if (!status)
        status = qn_view_create(c, &type, n, extents, &o, &v, &err);
    return status ? py_raise(&err) : py_array_new(&v, NULL);
}

static void array_dealloc(array *a)
{
    PyTypeObject *type = Py_TYPE((PyObject *)a);
    if (a->is_shared)
        py_free_after_others();
    qn_view_release(&a->view);
    Py_XDECREF(a->base);
    PyObject_Free(a);
    Py_DECREF(type);
}

/* ---------------------------------------------------------------- words for shapes and dtypes */

PyObject *py_tuple(int n, const int64_t *values)
{
    PyObject *tuple = PyTuple_New(n);
    for (int d = 0; tuple && d < n; d++) {
        PyObject *item = PyLong_FromLongLong(values[d]);
        if (!item || PyTuple_SetItem(tuple, d, item))
            Py_CLEAR(tuple);
    }
    return tuple;
}

int py_extents(PyObject *shape, int64_t out[QN_MAX_RANK])
{
    if (PyIndex_Check(shape)) {
        out[0] = PyLong_AsLongLong(shape);
        return PyErr_Occurred() ? -1 : 1;
    }
    Py_ssize_t n = PySequence_Size(shape);
    if (n > QN_MAX_RANK)
        PyErr_Format(PyExc_ValueError, "%zd dimensions, at most %d", n, QN_MAX_RANK);
    for (int d = 0; d < n && !PyErr_Occurred(); d++) {
        PyObject *item = PySequence_GetItem(shape, d);
        out[d] = item ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
    }
    return PyErr_Occurred() ? -1 : (int)n;
}

/** The dtypes; the class is the first letter of `kind`, and what has no type string has "" as its
 * format. */
static const py_dtype_row dtypes[] = {
#define TYPESTR_(letter, bytes) (bytes) == 1 ? "|" letter "1" : "<" letter #bytes
#define TYPESTR_B(bytes) "|b" #bytes
#define TYPESTR_S(bytes) TYPESTR_("i", bytes)
#define TYPESTR_U(bytes) TYPESTR_("u", bytes)
#define TYPESTR_F(bytes) TYPESTR_("f", bytes)
#define TYPESTR_C(bytes) TYPESTR_("c", bytes)
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, c, format, numpy, dlpack,   \
                 doc)                                                                              \
    {#cls, text, numpy, format, TYPESTR_##cls(bytes), number, bytes, QN_##part},
#include "quern/dtypes.def"
#undef QN_DTYPE
};
enum { N_ROWS = sizeof dtypes / sizeof dtypes[0] };

const py_dtype_row *py_dtype_at(int i)
{
    return i >= 0 && i < N_ROWS ? &dtypes[i] : NULL;
}

static const py_dtype_row *row_of(int dtype)
{
    for (int i = 0; i < N_ROWS; i++)
        if (dtypes[i].dtype == dtype)
            return &dtypes[i];
    return NULL;
}

char py_dtype_kind(int dtype)
{
    const py_dtype_row *row = row_of(dtype);
    return row ? *row->kind : '\0';
}

const char *py_typestr(int dtype)
{
    const py_dtype_row *row = row_of(dtype);
    return row && *row->format ? row->typestr : NULL;
}

int py_dtype(PyObject *o)
{
    PyObject *name = PyUnicode_Check(o)                      ? o
                     : PyObject_HasAttrString(o, "name")     ? PyObject_GetAttrString(o, "name")
                     : PyObject_HasAttrString(o, "__name__") ? PyObject_GetAttrString(o, "__name__")
                                                             : PyObject_Str(o);
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    int dtype = text ? (int)qn_dtype_of_name(text) : QN_VOID;
    for (int i = 0; text && dtype == QN_VOID && i < N_ROWS; i++)
        if (strcmp(dtypes[i].numpy, text) == 0 ||
            (*dtypes[i].format && strcmp(dtypes[i].typestr, text) == 0))
            dtype = dtypes[i].dtype;
    if (text && dtype == QN_VOID && strcmp(text, "float") == 0)
        dtype = QN_F64;
    if (text && dtype == QN_VOID && strcmp(text, "int") == 0)
        dtype = QN_I64;
    if (text && dtype == QN_VOID && strcmp(text, "complex") == 0)
        dtype = QN_C128;
    if (dtype == QN_VOID && !PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%R is no dtype", o);
    if (name && name != o)
        Py_DECREF(name);
    return dtype;
}

/* ---------------------------------------------------------------- buffers and interfaces */

static const char *format_of(int dtype)
{
    const py_dtype_row *row = row_of(dtype);
    return row && *row->format ? row->format : NULL;
}

static int array_getbuffer(array *a, Py_buffer *b, int flags)
{
    const qn_view *v = &a->view;
    const char *format = format_of(v->dtype);
    bool is_read_only = (v->traits & QN_READ_ONLY) != 0;
    const char *problem =
        !qn_exec_can_access(QN_EXEC_SERIAL, v->space) ? "its memory is on a device"
        : !format                                     ? "its dtype has no buffer format"
        : is_read_only && (flags & PyBUF_WRITABLE)    ? "it is read-only"
        : (flags & PyBUF_STRIDES) != PyBUF_STRIDES && !qn_layout_is_right(&v->layout)
            ? "it is not contiguous"
            : NULL;
    if (problem) {
        PyErr_Format(PyExc_BufferError, "array: %s", problem);
        b->obj = NULL;
        return -1;
    }
    static Py_ssize_t empty[1];
    *b = (Py_buffer){.buf = v->data ? v->data : (void *)empty,
                     .obj = (PyObject *)a,
                     .itemsize = (Py_ssize_t)qn_dtype_bytes(v->dtype),
                     .readonly = is_read_only,
                     .ndim = v->layout.rank,
                     .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)format : NULL,
                     .shape = a->shape,
                     .strides = a->strides};
    b->len = b->itemsize * (Py_ssize_t)qn_view_size(v);
    Py_INCREF((PyObject *)a);
    return 0;
}

static PyObject *get_shape(array *a, void *unused)
{
    (void)unused;
    int64_t extents[QN_MAX_RANK];
    for (int d = 0; d < a->view.layout.rank; d++)
        extents[d] = a->shape[d];
    return py_tuple(a->view.layout.rank, extents);
}

static PyObject *get_strides(array *a, void *unused)
{
    (void)unused;
    int64_t strides[QN_MAX_RANK];
    for (int d = 0; d < a->view.layout.rank; d++)
        strides[d] = a->strides[d];
    return py_tuple(a->view.layout.rank, strides);
}

static PyObject *get_dtype(array *a, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(qn_dtype_name(a->view.dtype));
}

static PyObject *get_space(array *a, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(qn_space_name(a->view.space));
}

static PyObject *interface_of(array *a, bool is_cuda)
{
    const char *type = py_typestr(a->view.dtype);
    if (!type || (a->view.space == QN_SPACE_CUDA) != is_cuda) {
        PyErr_SetString(PyExc_AttributeError,
                        "this array has no such interface: see space and dtype");
        return NULL;
    }
    return Py_BuildValue("{sNsssNs(NO)si}", "shape", get_shape(a, NULL), "typestr", type, "strides",
                         get_strides(a, NULL), "data", PyLong_FromVoidPtr(a->view.data),
                         a->view.traits & QN_READ_ONLY ? Py_True : Py_False, "version", 3);
}

static PyObject *get_interface(array *a, void *unused)
{
    (void)unused;
    return interface_of(a, false);
}

static PyObject *get_cuda_interface(array *a, void *unused)
{
    (void)unused;
    PyObject *interface = interface_of(a, true);
    a->is_shared = a->is_shared || interface;
    return interface;
}

/* ---------------------------------------------------------------- DLPack */

/** The array that a tensor was made of is kept by it, and is let go last. */
static void drop_array(void *o)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)o);
    PyGILState_Release(gil);
}

static void end_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        qn_dl_managed_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        m->deleter(m);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        qn_dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
        m->deleter(m);
    }
}

static PyObject *array_dlpack(array *a, PyObject *args, PyObject *options)
{
    static char *words[] = { /* calls wait for their work, so any stream may use the array */
                            "stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = NULL, *version = NULL, *device = NULL, *copy = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, options, "|OOOO", words, &stream, &version, &device,
                                     &copy))
        return NULL;
    long major = 0;
    if (version && PyTuple_Check(version))
        major = PyLong_AsLong(PyTuple_GetItem(version, 0));
    if (copy && copy != Py_None && PyObject_IsTrue(copy)) {
        PyErr_SetString(PyExc_BufferError, "__dlpack__: copies are not made");
        return NULL;
    }
    qn_error err = {0};
    void *managed = NULL;
    qn_status status =
        major >= 1
            ? qn_view_to_dlpack_versioned(&a->view, drop_array, a,
                                          (qn_dl_managed_versioned **)&managed, &err)
            : qn_view_to_dlpack(&a->view, drop_array, a, (qn_dl_managed **)&managed, &err);
    if (status) {
        PyErr_SetString(PyExc_BufferError, err.message);
        return NULL;
    }
    Py_INCREF((PyObject *)a);
    a->is_shared = a->is_shared || a->view.space == QN_SPACE_CUDA;
    return PyCapsule_New(managed, major >= 1 ? "dltensor_versioned" : "dltensor", end_capsule);
}

static PyObject *array_dlpack_device(array *a, PyObject *none)
{
    (void)none;
    static const int types[QN_N_SPACES] = {[QN_SPACE_HOST] = 1,
                                           [QN_SPACE_CUDA] = 2,
                                           [QN_SPACE_CUDA_PINNED] = 3,
                                           [QN_SPACE_CUDA_MANAGED] = 13};
    return Py_BuildValue("(ii)", types[a->view.space], (int)a->view.device);
}

/* ---------------------------------------------------------------- elements and parts */

static PyObject *element(const qn_view *v)
{
    uint64_t bits[2] = {0};
    memcpy(bits, v->data, (size_t)qn_dtype_bytes(v->dtype));
    double parts[2];
    float halves[2];
    switch (py_dtype_kind(v->dtype)) {
    case 'B':
        return PyBool_FromLong(bits[0] != 0);
    case 'C':
        if (qn_dtype_bytes(v->dtype) == 8) {
            memcpy(halves, bits, sizeof halves);
            return PyComplex_FromDoubles((double)halves[0], (double)halves[1]);
        }
        memcpy(parts, bits, sizeof parts);
        return PyComplex_FromDoubles(parts[0], parts[1]);
    case 'F':
        bits[0] = qn_convert_value(QN_F64, v->dtype, bits[0]);
        memcpy(parts, bits, sizeof parts[0]);
        return PyFloat_FromDouble(parts[0]);
    case 'U':
        return PyLong_FromUnsignedLongLong(bits[0]);
    default:
        return PyLong_FromLongLong((int64_t)qn_convert_value(QN_I64, v->dtype, bits[0]));
    }
}

/** The slice of one dimension, and whether it is walked backwards. False with an exception. */
static bool read_slice(PyObject *o, Py_ssize_t extent, qn_slice *out, bool *is_reversed)
{
    *is_reversed = false;
    if (PyIndex_Check(o)) {
        Py_ssize_t i = PyNumber_AsSsize_t(o, PyExc_IndexError);
        if (i == -1 && PyErr_Occurred())
            return false;
        if (i < -extent || i >= extent) {
            PyErr_Format(PyExc_IndexError, "index %zd is not in an extent of %zd", i, extent);
            return false;
        }
        *out = (qn_slice){.kind = QN_AT, .begin = i < 0 ? i + extent : i};
        return true;
    }
    Py_ssize_t begin, end, step;
    if (!PySlice_Check(o)) {
        PyErr_SetString(PyExc_TypeError, "an index is an integer or a slice");
        return false;
    }
    if (PySlice_Unpack(o, &begin, &end, &step))
        return false;
    Py_ssize_t n = PySlice_AdjustIndices(extent, &begin, &end, step);
    *is_reversed = step < 0;
    if (n == 0)
        *out = (qn_slice){.kind = QN_RANGE};
    else if (step < 0)
        *out = (qn_slice){
            .kind = QN_RANGE, .begin = begin + (n - 1) * step, .end = begin + 1, .step = -step};
    else
        *out = (qn_slice){
            .kind = QN_RANGE, .begin = begin, .end = begin + (n - 1) * step + 1, .step = step};
    return true;
}

static PyObject *array_subscript(array *a, PyObject *key)
{
    qn_slice slices[QN_MAX_RANK] = {{0}};
    bool reversed[QN_MAX_RANK] = {false};
    int rank = a->view.layout.rank;
    bool is_tuple = PyTuple_Check(key);
    Py_ssize_t n = is_tuple ? PyTuple_Size(key) : 1;
    if (n > rank) {
        PyErr_Format(PyExc_IndexError, "%zd indices of %d dimensions", n, rank);
        return NULL;
    }
    int kept = 0;
    for (int d = 0; d < n; d++) {
        bool is_reversed;
        if (!read_slice(is_tuple ? PyTuple_GetItem(key, d) : key, a->shape[d], &slices[d],
                        &is_reversed))
            return NULL;
        reversed[kept] = is_reversed;
        kept += slices[d].kind != QN_AT;
    }
    qn_view part = {0}, turned;
    qn_error err = {0};
    qn_status status = qn_subview(&a->view, rank, slices, &part, &err);
    for (int d = 0; !status && d < part.layout.rank; d++) {
        qn_layout l;
        if (!reversed[d] || part.layout.dim[d].extent == 0)
            continue;
        status = qn_layout_reverse(&part.layout, d, &l, &err);
        if (!status)
            status = qn_view_with_layout(&part, &l, &turned, &err);
        if (!status) {
            qn_view_release(&part);
            part = turned;
        }
    }
    if (status) {
        qn_view_release(&part);
        return py_raise(&err);
    }
    if (part.layout.rank == 0 && qn_exec_can_access(QN_EXEC_SERIAL, part.space)) {
        PyObject *value = element(&part);
        qn_view_release(&part);
        return value;
    }
    return py_array_new(&part, a->base);
}

static PyObject *array_tolist(array *a, PyObject *none)
{
    (void)none;
    const char *format = format_of(a->view.dtype);
    bool is_plain = format && *format != 'Z' && *format != 'e'; /* what memoryview reads itself */
    PyObject *view = is_plain ? PyMemoryView_FromObject((PyObject *)a) : NULL;
    PyObject *list = view ? PyObject_CallMethod(view, "tolist", NULL) : NULL;
    Py_XDECREF(view);
    if (is_plain)
        return list;
    if (a->view.layout.rank == 0)
        return element(&a->view);
    list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < a->shape[0]; i++) {
        PyObject *index = PyLong_FromSsize_t(i), *item = index ? array_subscript(a, index) : NULL;
        PyObject *value =
            item && Py_TYPE(item) == py_array_type ? array_tolist((array *)item, NULL) : item;
        if (value != item)
            Py_XDECREF(item);
        if (!value || PyList_Append(list, value))
            Py_CLEAR(list);
        Py_XDECREF(value);
        Py_XDECREF(index);
    }
    return list;
}

static Py_ssize_t array_length(array *a)
{
    return a->view.layout.rank ? a->shape[0] : 0;
}

static PyObject *array_repr(array *a)
{
    char layout[256];
    qn_layout_print(&a->view.layout, layout, sizeof layout);
    return PyUnicode_FromFormat("quern.Array(%s, %s, %s)", qn_dtype_name(a->view.dtype), layout,
                                qn_space_name(a->view.space));
}

/* ---------------------------------------------------------------- the type */

static PyGetSetDef array_fields[] = {
    {"shape", (getter)get_shape, NULL, "extents", NULL},
    {"strides", (getter)get_strides, NULL, "strides in bytes", NULL},
    {"dtype", (getter)get_dtype, NULL, "name of the element type, as \"f64\"", NULL},
    {"space", (getter)get_space, NULL, "where the memory is, as \"host\"", NULL},
    {"__array_interface__", (getter)get_interface, NULL, "for numpy", NULL},
    {"__cuda_array_interface__", (getter)get_cuda_interface, NULL, "for CuPy and others", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef array_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))array_dlpack, METH_VARARGS | METH_KEYWORDS,
     "a DLPack capsule"},
    {"__dlpack_device__", (PyCFunction)array_dlpack_device, METH_NOARGS,
     "type and number of the device"},
    {"tolist", (PyCFunction)array_tolist, METH_NOARGS, "elements as nested lists"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot array_slots[] = {
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_repr, array_repr},
    {Py_tp_methods, array_methods},
    {Py_tp_getset, array_fields},
    {Py_mp_subscript, array_subscript},
    {Py_mp_length, array_length},
    {Py_bf_getbuffer, array_getbuffer},
    {Py_tp_doc, "An array of Quern. quern.empty and quern.view make one."},
    {0, NULL}};
static PyType_Spec array_spec = {"quern.Array", sizeof(array), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 array_slots};

bool py_add_array(PyObject *module)
{
    py_array_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
    return py_array_type && PyModule_AddObjectRef(module, "Array", (PyObject *)py_array_type) == 0;
}
