/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c: quern.Kernel: a finished kernel with the options of its launches. A call takes arrays
 * and numbers for the parameters, in their order or by name, and launches without the GIL.
 *
 * Ctrl-C. Python's handler of SIGINT only notes the signal, and the thread that would act on it is
 * in the launch. So a launch of the main thread has a cancel hook, which the library first calls
 * when a launch has taken some milliseconds: that puts a handler before Python's, which tells the
 * hook, until the launch is over. Short launches pay nothing for it.
 */
#define _POSIX_C_SOURCE 200809L
#include "binding.h"

#include <signal.h>
#include <string.h>
#include <time.h>

PyTypeObject *py_kernel_type;

/* ---------------------------------------------------------------- signals */

static struct {
    struct sigaction python; /* the handler that was there */
    bool is_installed; /* written by the thread that asks hooks, read when its launch is over */
    volatile sig_atomic_t is_interrupted;
} interrupt;

static void on_interrupt(int number, siginfo_t *info, void *context)
{
    interrupt.is_interrupted = 1;
    if (interrupt.python.sa_flags & SA_SIGINFO)
        interrupt.python.sa_sigaction(number, info, context);
    else
        interrupt.python.sa_handler(number);
}

static int32_t interrupt_hook(void *unused)
{
    (void)unused;
    if (!interrupt.is_installed && sigaction(SIGINT, NULL, &interrupt.python) == 0) {
        struct sigaction ours = interrupt.python;
        bool has_handler = (ours.sa_flags & SA_SIGINFO) ||
                           (ours.sa_handler != SIG_DFL && ours.sa_handler != SIG_IGN);
        ours.sa_sigaction = on_interrupt;
        ours.sa_flags |= SA_SIGINFO;
        interrupt.is_installed = has_handler && sigaction(SIGINT, &ours, NULL) == 0;
    }
    return interrupt.is_interrupted;
}

/** Puts Python's handler back, unless somebody replaced ours meanwhile. */
static void end_interrupt(void)
{
    struct sigaction now;
    if (interrupt.is_installed && sigaction(SIGINT, NULL, &now) == 0 &&
        now.sa_sigaction == on_interrupt)
        sigaction(SIGINT, &interrupt.python, NULL);
    interrupt.is_installed = false;
    interrupt.is_interrupted = 0;
}

/* ---------------------------------------------------------------- launches */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/** Keeps the descriptions of arguments, from which a plan can be had. Nothing looks at their memory
 * for that. */
static void keep_last(py_kernel *k, int n, const qn_arg *args)
{
    for (int i = 0; i < n && i < k->n; i++) {
        k->last_arg[i] = args[i];
        const qn_view *v = args[i].view;
        if (!v)
            continue;
        memcpy(&k->last_view[i], v,
               offsetof(qn_view, layout.dim) + (size_t)v->layout.rank * sizeof v->layout.dim[0]);
        k->last_view[i].owner = NULL;
        k->last_view[i].label = k->param[i].name;
        k->last_arg[i].view = &k->last_view[i];
    }
}

/** The launch itself, without the GIL; on a GPU it waits, so that failures are those of this call.
 */
static qn_status launch(qn_context *c, py_kernel *k, int n, const qn_arg *args, const qn_options *o,
                        qn_error *err)
{
    PyThreadState *thread = PyEval_SaveThread();
    int64_t begin = now_ns();
    qn_status status = qn_launch(c, k->kernel, n, args, o, err);
    if (o->stream) { /* also after an error, so that the stream has no work left */
        qn_status fenced = qn_stream_fence(o->stream, status ? NULL : err);
        status = status ? status : fenced;
    }
    int64_t ns = now_ns() - begin;
    PyEval_RestoreThread(thread);
    keep_last(k, n, args);
    k->last_ns = ns;
    k->launches++;
    return status;
}

/** A line that a kernel prints goes to sys.stdout, on the thread that launches. */
static void print_line(void *unused, const qn_printed *line)
{
    (void)unused;
    PyGILState_STATE gil = PyGILState_Ensure();
    PySys_FormatStdout("%s\n", line->text);
    PyGILState_Release(gil);
}

bool py_launch(py_kernel *k, int n, const qn_arg *args, qn_stream *stream)
{
    qn_context *c = py_context();
    if (!c)
        return false;
    qn_options o = {.bytes = sizeof o};
    if (k->options)
        memcpy(&o, k->options, sizeof o);
    qn_stream *own = NULL;
    if (!stream && o.executor == QN_CUDA) { /* as options want it, on memory that both can use */
        if (!py_need_stream(&own, -1))
            return false;
        stream = own;
    }
    if (stream) {
        o.executor = QN_CUDA;
        o.stream = stream;
    }
    bool is_main = py_is_main_thread() && !stream && !o.cancel_hook;
    if (is_main)
        o.cancel_hook = interrupt_hook;
    if (!o.print)
        o.print = print_line;
    qn_error err;
    err.status = 0;
    qn_status status = launch(c, k, n, args, &o, &err);
    if (is_main && interrupt.is_installed)
        end_interrupt();
    py_end_stream(own);
    if (status == QN_ERR_CANCELLED && PyErr_CheckSignals())
        return false;
    if (status)
        py_raise(&err);
    return status == QN_OK;
}

/** The value for parameter i: positional, or by name. Borrowed; NULL with an exception. */
static PyObject *value_of(const py_kernel *k, int i, PyObject *args, Py_ssize_t n_args,
                          PyObject *names)
{
    if (i < n_args)
        return PyTuple_GetItem(args, i);
    PyObject *value = names ? PyDict_GetItemString(names, k->param[i].name) : NULL;
    if (!value)
        PyErr_Format(PyExc_TypeError, "kernel \"%s\": no argument for parameter \"%s\"",
                     qn_kernel_name(k->kernel), k->param[i].name);
    return value;
}

typedef bool (*with_args)(py_kernel *k, int n, const qn_arg *args, qn_stream *stream, void *data);

/** Holds the arguments of a call, calls fn, and lets them go. */
static bool with_arguments(py_kernel *k, PyObject *args, PyObject *names, with_args fn, void *data)
{
    Py_ssize_t n_args = PyTuple_Size(args), n_names = names ? PyDict_Size(names) : 0;
    if (n_args + n_names != k->n) {
        PyErr_Format(PyExc_TypeError, "kernel \"%s\" takes %d arguments, not %zd",
                     qn_kernel_name(k->kernel), k->n, n_args + n_names);
        return false;
    }
    py_held held[QN_MAX_PARAMS];
    qn_arg arg[QN_MAX_PARAMS];
    qn_stream *stream = NULL;
    int n = 0;
    bool is_good = true;
    for (; is_good && n < k->n; n++) {
        const qn_param_info *p = &k->param[n];
        PyObject *value = value_of(k, n, args, n_args, names);
        held[n].kind = PY_OBJECT;
        held[n].object = NULL;
        if (!value) {
            is_good = false;
        } else if (p->rank < 0) {
            is_good = py_scalar(value, p->dtype, p->name, &arg[n]);
        } else if ((is_good = py_hold(value, p->name, &held[n], &stream))) {
            arg[n] = qn_arg_view(&held[n].view);
        } else {
            held[n].kind = PY_OBJECT;
            held[n].object = NULL;
        }
    }
    is_good = is_good && fn(k, n, arg, stream, data);
    while (n-- > 0)
        py_let_go(&held[n]);
    py_end_stream(stream);
    return is_good;
}

static bool launch_with(py_kernel *k, int n, const qn_arg *args, qn_stream *stream, void *data)
{
    (void)data;
    return py_launch(k, n, args, stream);
}

static PyObject *kernel_call(py_kernel *k, PyObject *args, PyObject *names)
{
    if (!with_arguments(k, args, names, launch_with, NULL))
        return NULL;
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- texts */

static PyObject *text_of(const qn_kernel *k)
{
    size_t n = qn_kernel_print(k, NULL, 0);
    char *buffer = PyMem_Malloc(n + 1);
    if (!buffer)
        return PyErr_NoMemory();
    qn_kernel_print(k, buffer, n + 1);
    PyObject *text = PyUnicode_FromStringAndSize(buffer, (Py_ssize_t)n);
    PyMem_Free(buffer);
    return text;
}

typedef struct question {
    int stage; /* QN_DUMP_...; 0: qn_explain */
    PyObject *text;
} question;

static bool answer(py_kernel *k, int n, const qn_arg *args, qn_stream *stream, void *data)
{
    (void)stream;
    question *q = data;
    qn_context *c = py_context();
    qn_error err = {0};
    qn_code *code = NULL;
    size_t needed = 0;
    if (!c)
        return false;
    qn_status status = q->stage
                           ? qn_specialize(c, k->kernel, n, args, k->options, &code, &err)
                           : qn_explain(c, k->kernel, n, args, k->options, NULL, 0, &needed, &err);
    if (status) {
        py_raise(&err);
        return false;
    }
    if (q->stage)
        needed = qn_code_text(code, q->stage, NULL, 0);
    char *buffer = PyMem_Malloc(needed + 1);
    if (buffer) {
        buffer[0] = 0;
        if (q->stage)
            qn_code_text(code, q->stage, buffer, needed + 1);
        else
            qn_explain(c, k->kernel, n, args, k->options, buffer, needed + 1, NULL, NULL);
        q->text = PyUnicode_FromString(buffer);
    }
    PyMem_Free(buffer);
    qn_code_release(code);
    return q->text != NULL;
}

static PyObject *kernel_explain(py_kernel *k, PyObject *args, PyObject *names)
{
    question q = {0};
    return with_arguments(k, args, names, answer, &q) ? q.text : NULL;
}

/** stage(name, *args): text of the code for these arguments. */
static PyObject *kernel_stage(py_kernel *k, PyObject *args, PyObject *names)
{
    PyObject *name = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL;
    const char *word = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    question q = {0};
#define QN_X(NAME, bit, text)                                                                      \
    if (word && strcmp(word, text) == 0)                                                           \
        q.stage = QN_DUMP_##NAME;
    QN_DUMP_LIST(QN_X)
#undef QN_X
    if (!q.stage) {
        PyErr_SetString(
            PyExc_ValueError,
            "stage(name, *args): name is kernel, key, plan, schedule, estimate, llvm, asm or ptx");
        return NULL;
    }
    PyObject *rest = PyTuple_GetSlice(args, 1, PyTuple_Size(args));
    bool is_good = rest && with_arguments(k, rest, names, answer, &q);
    Py_XDECREF(rest);
    return is_good ? q.text : NULL;
}

/** last_plan() -> str: the plan of the code of the last launch on the host; "" if there was none.
 */
static PyObject *kernel_last_plan(py_kernel *k, PyObject *none)
{
    (void)none;
    question q = {.stage = QN_DUMP_PLAN};
    for (int i = 0; i < k->n; i++)
        if (k->last_arg[i].view &&
            (k->last_arg[i].view->space != QN_SPACE_HOST || k->last_arg[i].view->layout.digits))
            return PyUnicode_FromString("");
    if (k->launches == 0)
        return PyUnicode_FromString("");
    return answer(k, k->n, k->last_arg, NULL, &q) ? q.text : NULL;
}

static PyObject *show(py_kernel *k, PyObject *none)
{
    (void)none;
    PyObject *module = PyImport_ImportModule("quern._show");
    PyObject *text = module ? PyObject_CallMethod(module, "kernel", "O", k) : NULL;
    Py_XDECREF(module);
    return text;
}

static PyObject *kernel_options(py_kernel *k, PyObject *args)
{
    const char *text;
    qn_options *o = NULL;
    qn_error err = {0};
    if (!PyArg_ParseTuple(args, "s", &text))
        return NULL;
    if (qn_options_parse(text, k->kernel, &o, &err))
        return py_raise(&err);
    py_kernel *other = (py_kernel *)py_kernel_new(qn_kernel_retain(k->kernel));
    if (other)
        other->options = o;
    else
        qn_options_release(o);
    return (PyObject *)other;
}

static PyObject *kernel_statements(py_kernel *k, PyObject *none)
{
    (void)none;
    int n = qn_kernel_n_statements(k->kernel);
    PyObject *list = PyList_New(0);
    for (int i = 1; list && i <= n; i++) {
        qn_statement s;
        qn_kernel_statement(k->kernel, i, &s, sizeof s, NULL);
        int64_t args[QN_MAX_PARAMS + QN_MAX_CARRIED];
        int n_args =
            s.n_args < QN_MAX_PARAMS + QN_MAX_CARRIED ? s.n_args : QN_MAX_PARAMS + QN_MAX_CARRIED;
        for (int a = 0; a < n_args; a++)
            args[a] = s.args[a];
        PyObject *entry = Py_BuildValue(
            "{sissszsNsIs(III)sisisKszszszsisi}", "number", i, "word", s.word, "dtype",
            s.dtype ? qn_dtype_name(s.dtype) : NULL, "args", py_tuple(n_args, args), "parent",
            s.parent, "region", s.region[0], s.region[1], s.region[2], "param", s.param, "dim",
            s.dim, "bits", (unsigned long long)s.bits, "text", s.text, "name", s.name, "file",
            s.file, "line", s.line, "column", s.column);
        if (!entry || PyList_Append(list, entry))
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

/* ---------------------------------------------------------------- fields and the type */

static PyObject *get_text(py_kernel *k, void *unused)
{
    (void)unused;
    return text_of(k->kernel);
}

static PyObject *get_name(py_kernel *k, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(qn_kernel_name(k->kernel));
}

static PyObject *get_params(py_kernel *k, void *unused)
{
    (void)unused;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < k->n; i++) {
        const qn_param_info *p = &k->param[i];
        PyObject *entry =
            Py_BuildValue("{sssssisOsO}", "name", p->name, "dtype", qn_dtype_name(p->dtype), "rank",
                          p->rank, "is_read", p->is_read ? Py_True : Py_False, "is_written",
                          p->is_written ? Py_True : Py_False);
        if (!entry || PyList_Append(list, entry))
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

static PyObject *get_last(py_kernel *k, void *unused)
{
    (void)unused;
    return PyFloat_FromDouble((double)k->last_ns * 1e-9);
}

static PyObject *get_launches(py_kernel *k, void *unused)
{
    (void)unused;
    return PyLong_FromLongLong(k->launches);
}

static PyObject *kernel_repr(py_kernel *k)
{
    return PyUnicode_FromFormat("<quern.Kernel \"%s\", %d parameters>", qn_kernel_name(k->kernel),
                                k->n);
}

static void kernel_dealloc(py_kernel *k)
{
    PyTypeObject *type = Py_TYPE((PyObject *)k);
    qn_kernel_release(k->kernel);
    qn_options_release(k->options);
    PyMem_Free(k->last_view);
    PyMem_Free(k->last_arg);
    PyObject_Free(k);
    Py_DECREF(type);
}

PyObject *py_kernel_new(qn_kernel *kernel)
{
    py_kernel *k = (py_kernel *)PyType_GenericAlloc(py_kernel_type, 0);
    if (!k) {
        qn_kernel_release(kernel);
        return NULL;
    }
    k->kernel = kernel;
    k->n = qn_kernel_n_params(kernel);
    k->last_view = PyMem_Calloc((size_t)k->n + 1, sizeof *k->last_view);
    k->last_arg = PyMem_Calloc((size_t)k->n + 1, sizeof *k->last_arg);
    if (!k->last_view || !k->last_arg) {
        Py_DECREF((PyObject *)k);
        return PyErr_NoMemory();
    }
    for (int i = 0; i < k->n; i++)
        qn_kernel_param(kernel, i, &k->param[i], sizeof k->param[i], NULL);
    return (PyObject *)k;
}

static PyGetSetDef kernel_fields[] = {
    {"text", (getter)get_text, NULL, "the kernel text", NULL},
    {"name", (getter)get_name, NULL, "the name of the kernel", NULL},
    {"params", (getter)get_params, NULL, "the parameters, as dictionaries", NULL},
    {"seconds", (getter)get_last, NULL, "what the last launch took", NULL},
    {"launches", (getter)get_launches, NULL, "how many there were", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

#define KEYWORDS(f) (PyCFunction)(void (*)(void)) f, METH_VARARGS | METH_KEYWORDS
static PyMethodDef kernel_methods[] = {
    {"explain", KEYWORDS(kernel_explain),
     "explain(*args) -> str: which code a call would run, and why"},
    {"stage", KEYWORDS(kernel_stage),
     "stage(name, *args) -> str: kernel, key, plan, schedule, estimate, llvm, asm or ptx for these "
     "arguments"},
    {"last_plan", (PyCFunction)kernel_last_plan, METH_NOARGS,
     "last_plan() -> str: the plan of the last launch"},
    {"_repr_html_", (PyCFunction)show, METH_NOARGS, "text, plan and time, for notebooks"},
    {"options", (PyCFunction)kernel_options, METH_VARARGS,
     "options(text) -> Kernel: the same kernel, launched with options"},
    {"statements", (PyCFunction)kernel_statements, METH_NOARGS,
     "statements() -> list of dictionaries, one a statement"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot kernel_slots[] = {
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_repr, kernel_repr},
    {Py_tp_call, kernel_call},
    {Py_tp_methods, kernel_methods},
    {Py_tp_getset, kernel_fields},
    {Py_tp_doc, "A kernel. quern.parse, quern.Builder and quern.kernel make one."},
    {0, NULL}};
static PyType_Spec kernel_spec = {"quern._quern.Kernel", sizeof(py_kernel), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  kernel_slots};

bool py_add_kernel(PyObject *module)
{
    py_kernel_type = (PyTypeObject *)PyType_FromSpec(&kernel_spec);
    return py_kernel_type &&
           PyModule_AddObjectRef(module, "Kernel", (PyObject *)py_kernel_type) == 0;
}
