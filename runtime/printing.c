/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printing.c: launches whose lines the host wants. The interpreter prints by itself. Elsewhere, and
 * where arguments have tables, the kernel that prints into a view (ir/printed.h) is launched
 * instead, with one more argument. When the launch has ended, its lines go to the function in the
 * options. A prepared call that prints is one of the latter kernel, on any engine, with the view
 * for all its runs.
 */
#include "runtime/cuda/stream.h"
#include "runtime/launch.h"

/** The rows of a launch; on a GPU they are in memory of the host that the GPU reaches. */
typedef struct rows {
    const qn_kernel *kernel; /* that the sites of the lines are of */
    qn_print_buffer buffer;
    int64_t room; /* bytes */
    qn_view view;
    bool is_on_gpu;
    bool is_unknown; /* work may still write to them */
} rows;

static qn_status no_memory(const char *who, qn_context *c, const rows *r, qn_error *err)
{
    char reason[QN_MEMORY_REASON_BYTES];
    return qn__fail(err, QN_ERR_MEMORY,
                    "%s: kernel \"%.60s\": no memory for %lld printed lines%s",
                    who, r->kernel->name, (long long)r->buffer.lines,
                    qn__memory_reason(c->memory, QN_MEMORY_HOST, r->room, reason));
}

static qn_status open_rows(const char *who, qn_context *c, const qn_kernel *k, const qn_options *o,
                           rows *r, qn_error *err)
{
    const int64_t lines = o->print_lines ? o->print_lines : QN_PRINT_LINES;
    const int64_t extents[2] = {lines + 1, qn__printed_words(k)};
    *r = (rows){.kernel = k, .buffer.lines = lines, .room = extents[0] * extents[1] * 8};
    int executor = o->executor ? o->executor : c->options.default_executor;
    r->is_on_gpu = executor == QN_CUDA;
    qn_layout layout;
    qn_status status = qn_layout_right(2, extents, &layout, err);
    if (status == QN_OK && r->is_on_gpu) {
        qn_view_type type;
        const qn_alloc_options pinned = {.bytes = sizeof pinned, .space = QN_SPACE_CUDA_PINNED};
        status = qn_view_type_init(QN_I64, 2, NULL, QN_FAMILY_RIGHT, &type, err);
        if (status == QN_OK)
            status = qn_view_create_layout(c, &type, &layout, &pinned, &r->view, err);
        r->buffer.word = r->view.data;
    } else if (status == QN_OK) {
        r->buffer.word = qn__memory_scratch(c->memory, r->room);
        status = r->buffer.word ? QN_OK : no_memory(who, c, r, err);
        r->view = (qn_view){.data = r->buffer.word, .dtype = QN_I64, .layout = layout};
    }
    if (status)
        return status;
    r->buffer.word[0] = 0;
    r->view.traits |= QN_UNCHECKED; /* the kernel looks before it stores */
    return QN_OK;
}

static void close_rows(qn_context *c, rows *r)
{
    if (r->is_on_gpu)
        qn_view_release(&r->view);
    else
        qn__memory_scratch_free(c->memory, r->buffer.word, r->room);
}

static void deliver(const rows *r, void (*print)(void *arg, const qn_printed *line), void *arg)
{
    int64_t n = r->buffer.word[0], kept = n < r->buffer.lines ? n : r->buffer.lines;
    qn_printed_line line;
    for (int64_t i = 1; i <= kept; i++) {
        qn__printed_read(r->kernel, r->buffer.word + i * qn__printed_words(r->kernel), &line);
        print(arg, &line.line);
        qn__printed_release(&line);
    }
    if (n == kept)
        return;
    qn__printed_lost(n - kept, &line);
    print(arg, &line.line);
    qn__printed_release(&line);
}

/** Waits for the work of a stream. Its faults stay for the next fence, as those of other launches.
 */
static qn_status wait_for_gpu(const char *who, qn_context *c, qn_stream *given, qn_error *err)
{
    bool is_pushed = false;
    qn_stream *s;
    qn_status status = qn__stream_of(c, who, given, &s, err);
    if (status)
        return status;
    status = qn__gpu_enter(s->gpu, who, &is_pushed, err);
    if (status == QN_OK)
        status = qn__stream_wait(s, who, err);
    qn__gpu_leave(s->gpu, is_pushed);
    return status;
}

/** Launches the kernel that prints into a view. */
static qn_status launch_into_view(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                                  const qn_options *o, rows *r, qn_error *err)
{
    const qn_kernel *printing;
    qn_arg all[QN_MAX_PARAMS];
    qn_options options = *o;
    qn_status status = qn__kernel_printing(k, &printing, err);
    if (status)
        return status;
    for (int i = 0; i < n; i++)
        all[i] = args[i];
    all[n] = qn_arg_view(&r->view);
    options.print = NULL;
    options.plan = NULL; /* this and the schedule are for a kernel with other dimensions */
    options.schedule = NULL;
    status = qn_launch(c, printing, n + 1, all, &options, err);
    if (!r->is_on_gpu)
        return status;
    /* A launch that failed or was cancelled may have given work. */
    qn_status waited = wait_for_gpu("qn_launch", c, o->stream, status ? NULL : err);
    r->is_unknown = waited != QN_OK;
    return status ? status : waited;
}

static qn_status check(const char *who, const qn_kernel *k, int n, const qn_arg *args,
                       const qn_options *o, qn_error *err)
{
    if (o->print_lines < 0 || o->print_lines > QN_MAX_PRINT_LINES)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: option print_lines: %lld not in [0,%d]", who,
                        (long long)o->print_lines, QN_MAX_PRINT_LINES);
    if (n != k->n_params)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: kernel \"%.60s\": %d arguments for %d parameters", who, k->name, n,
                        k->n_params);
    if (!args && n > 0)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: kernel \"%.60s\": args is NULL", who, k->name);
    if (o->debug && qn__has_tables(k, n, args))
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: kernel \"%.60s\": option print with option debug: not where "
                        "arguments have index lists or members",
                        who, k->name);
    return QN_OK;
}

qn_status qn__launch_printing(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                              const qn_options *o, qn_error *err)
{
    rows r;
    const char *who = "qn_launch";
    qn_status status = check(who, k, n, args, o, err);
    bool is_interpreted =
        o->engine == QN_ENGINE_INTERP && status == QN_OK && !qn__has_tables(k, n, args);
    if (!o->debug) /* what is found is named by the functions that it is in */
        k = qn__kernel_to_print(k);
    if (is_interpreted)
        status = qn__late_atomics(k, n, args, &k, err); /* lines name instructions of that kernel */
    if (status == QN_OK)
        status = open_rows(who, c, k, o, &r, err);
    if (status)
        return status;
    qn__context_retain(c);
    status = is_interpreted ? qn__launch_once(c, k, n, args, o, &r.buffer, err)
                            : launch_into_view(c, k, n, args, o, &r, err);
    if (!r.is_unknown)
        deliver(&r, o->print, o->print_arg);
    close_rows(c, &r);
    qn__context_drop(c);
    return status;
}

/* ---------------------------------------------------------------- prepared calls */

struct qn_print_call {
    rows rows;
    qn_kernel *kernel; /* with a reference */
    void (*print)(void *arg, const qn_printed *line);
    void *arg;
    qn_stream *stream; /* as the caller gave it; kept by the call */
};

static void free_print_call(qn_context *c, qn_print_call *p)
{
    close_rows(c, &p->rows);
    qn_kernel_release(p->kernel);
    qn__free(p);
}

/** Prepares the kernel that prints into the view of *p. */
static qn_status prepare_into_view(qn_context *c, qn_print_call *p, int n, const qn_arg *args,
                                   const qn_options *o, qn_call **out, qn_error *err)
{
    const qn_kernel *printing;
    qn_arg all[QN_MAX_PARAMS];
    qn_options options = *o;
    qn_status status = qn__kernel_printing(p->kernel, &printing, err);
    if (status)
        return status;
    for (int i = 0; i < n; i++)
        all[i] = args[i];
    all[n] = qn_arg_view(&p->rows.view);
    options.print = NULL;
    options.plan = NULL; /* this and the schedule are for a kernel with other dimensions */
    options.schedule = NULL;
    return qn_prepare(c, printing, n + 1, all, &options, out, err);
}

qn_status qn__prepare_printing(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                               const qn_options *o, qn_call **out, qn_error *err)
{
    const char *who = "qn_prepare";
    qn_status status = check(who, k, n, args, o, err);
    if (status == QN_OK && o->debug)
        status = qn__fail(err, QN_ERR_UNSUPPORTED,
                          "%s: kernel \"%.60s\": option print with option debug: only qn_launch "
                          "does both",
                          who, k->name);
    if (status)
        return status;
    qn_print_call *p = qn__zalloc(1, sizeof *p);
    if (!p)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who, k->name);
    k = qn__kernel_to_print(k);
    status = open_rows(who, c, k, o, &p->rows, err);
    if (status) {
        qn__free(p);
        return status;
    }
    p->kernel = qn_kernel_retain((qn_kernel *)(uintptr_t)k); /* only its reference count changes */
    p->print = o->print;
    p->arg = o->print_arg;
    p->stream = o->stream;
    status = prepare_into_view(c, p, n, args, o, out, err);
    if (status == QN_OK)
        qn__call_print(*out, p);
    else
        free_print_call(c, p);
    return status;
}

void qn__print_call_begin(qn_print_call *p)
{
    p->rows.buffer.word[0] = 0;
}

qn_status qn__print_call_end(qn_context *c, qn_print_call *p, qn_status status, qn_error *err)
{
    qn_status waited = QN_OK;
    if (p->rows.is_on_gpu) /* a run that failed may have given work */
        waited = wait_for_gpu("qn_run", c, p->stream, status ? NULL : err);
    if (waited == QN_OK)
        deliver(&p->rows, p->print, p->arg);
    return status ? status : waited;
}

void qn__print_call_release(qn_context *c, qn_print_call *p)
{
    if (p)
        free_print_call(c, p);
}
