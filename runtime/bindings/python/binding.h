/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binding.h: what the files of the Python extension share. The extension uses CPython's limited API
 * of 3.11, so that one file serves all later versions, and the public headers of Quern.
 */
#ifndef QUERN_PYTHON_BINDING_H
#define QUERN_PYTHON_BINDING_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "quern/cuda.h"
#include "quern/dlpack.h"
#include "quern/embed.h"

#include <stdbool.h>

#pragma GCC diagnostic ignored "-Wpedantic" /* CPython keeps functions in a void * */

/* ---------------------------------------------------------------- module.c */

/** The context of this process, made when it is first wanted; NULL with an exception. */
qn_context *py_context(void);
/** Raises the class of the status with message, status and line. Returns NULL. */
PyObject *py_raise(const qn_error *err);
/** Whether this is the thread that handles signals. */
bool py_is_main_thread(void);

/* ---------------------------------------------------------------- hold.c */

/** Who keeps the memory: a quern.Array, a buffer, the view itself, or any object. */
enum { PY_ARRAY, PY_BUFFER, PY_TAKEN, PY_OBJECT };
/** An array of any kind as a view, for as long as it is held. */
typedef struct py_held {
    qn_view view;
    Py_buffer buffer; /* of a kind */
    PyObject *object; /* with a reference; NULL: none */
    int kind;
} py_held;

/** Views an object, in this order: quern.Array, buffer protocol, __dlpack__,
 *  __cuda_array_interface__, __array_interface__. `label` is borrowed for as long. Where the memory
 *  is that of a GPU, *stream becomes a stream that what the owner of the memory did comes before;
 *  py_end_stream takes it. False with an exception. */
bool py_hold(PyObject *o, const char *label, py_held *h, qn_stream **stream);
void py_let_go(py_held *h);
/** A scalar of a dtype from a number. False with an exception. */
bool py_scalar(PyObject *o, int dtype, const char *label, qn_arg *out);

/* ---------------------------------------------------------------- stream.c */

/** The legacy default stream as the protocols of Python name it. */
enum { PY_LEGACY_STREAM = 1 };
/** Gives *stream a stream of the device, -1 for the context's, unless it has one. False with an
 *  exception. */
bool py_need_stream(qn_stream **stream, int device);
/** Gives *stream a stream of the device, unless it has one, that waits for all work that `theirs`
 *  has now, a stream as the protocols of Python give it: 1 the legacy default one, 2 that of the
 *  thread, else its handle. False with an exception. */
bool py_follow(qn_stream **stream, int device, uintptr_t theirs);
/** As py_follow, without exceptions. */
qn_status py_stream_after(qn_stream *stream, uintptr_t theirs, qn_error *err);
/** Takes a stream whose work is done; NULL is ignored. */
void py_end_stream(qn_stream *stream);
/** In a child of fork: the streams are the parent's. */
void py_forget_streams(void);
/** Memory of GPUs that is freed from now on is not used again before work that other libraries
 *  gave to their default stream is done. */
void py_free_after_others(void);

/* ---------------------------------------------------------------- array.c */

extern PyTypeObject *py_array_type;
/** The view of a quern.Array; borrowed. */
const qn_view *py_array_view(PyObject *array);
/** Whether another library was given its memory on a GPU. */
bool py_array_is_shared(PyObject *array);
/** A quern.Array that takes over the view, whose memory `base` keeps alive (NULL: the view does).
 */
PyObject *py_array_new(const qn_view *view, PyObject *base);
/** New memory, zeroed unless `is_raw`. */
PyObject *py_array_make(int n, const int64_t *extents, int dtype, int space, bool is_raw);
bool py_add_array(PyObject *module);
/** extents from a tuple or an integer; the rank, or -1 with an exception. */
int py_extents(PyObject *shape, int64_t out[QN_MAX_RANK]);
/** The dtype of a name, or of an object whose str() or `name` is one as "float32"; QN_VOID with an
 * exception. */
int py_dtype(PyObject *o);
/** A row of quern/dtypes.def: "B", "S", "U", "F" or "C", and names of quern, of numpy, of the
 * struct module ("": none) and of the array interface, which has one where the struct module has.
 */
typedef struct py_dtype_row {
    const char *kind, *name, *numpy, *format, *typestr;
    int dtype, bytes, part;
} py_dtype_row;
/** Row i, or NULL behind the last one. */
const py_dtype_row *py_dtype_at(int i);
/** 'B', 'S', 'U', 'F' or 'C'; 0 for what is no dtype. */
char py_dtype_kind(int dtype);
/** "<f8" of the array interface, or NULL. */
const char *py_typestr(int dtype);
/** A tuple of n integers. */
PyObject *py_tuple(int n, const int64_t *values);

/* ---------------------------------------------------------------- kernel.c, evaluate.c */

extern PyTypeObject *py_kernel_type;
/** What a Kernel is. */
typedef struct py_kernel {
    PyObject_HEAD qn_kernel *kernel;
    qn_options *options; /* NULL: the default ones */
    int n;
    qn_param_info param[QN_MAX_PARAMS];
    qn_view *last_view; /* [n], of the last launch, for its plan; its memory may be gone */
    qn_arg *last_arg;   /* [n] */
    int64_t last_ns;    /* what the last launch took; 0: none */
    int64_t launches;
} py_kernel;
/** A Kernel that takes the kernel over. */
PyObject *py_kernel_new(qn_kernel *k);
bool py_add_kernel(PyObject *module);
/** Launches with arguments that are held, without the GIL, and on a GPU if there is a stream. False
 *  with an exception. */
bool py_launch(py_kernel *k, int n, const qn_arg *args, qn_stream *stream);
/** _quern.evaluate and _quern.dispatch, see evaluate.c. */
PyObject *py_dispatch(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *py_evaluate(PyObject *module, PyObject *const *args, Py_ssize_t n);

/* ---------------------------------------------------------------- builder.c */

bool py_add_builder(PyObject *module);

#endif
