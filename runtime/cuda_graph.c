/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_graph.c: graphs of prepared calls. Their kernels are given to a stream of the graph's own
 * while the driver captures it. Scratch memory belongs to the graph; the calls use it one after the
 * other. So two runs of a graph must not overlap: the driver orders those of one graph. Calls with
 * something to report are refused: a graph has no fault records.
 */
#include "runtime/cuda_memory.h"
#include "runtime/launch.h"

#include <string.h>

struct qn_graph {
    _Atomic int64_t references; /* the caller's, and those of runs under way */
    qn_stream *stream;          /* captured; with the only reference */
    qn_context *context;        /* with a reference */
    void *exec;
    qn_cu_ptr scratch; /* 0: none */
    int n;
    qn_call *call[]; /* with references */
};

static void drop_graph(void *what)
{
    qn_graph *g = what;
    if (atomic_fetch_sub_explicit(&g->references, 1, memory_order_acq_rel) != 1)
        return;
    qn_gpu *gpu = g->stream->gpu;
    bool is_pushed;
    if (qn__gpu_enter(gpu, "", &is_pushed, NULL) == QN_OK) {
        if (g->exec)
            gpu->cuda->api.graph_exec_free(g->exec);
        if (g->scratch)
            qn__gpu_free(g->stream, g->scratch);
        qn__gpu_leave(gpu, is_pushed);
    }
    for (int i = 0; i < g->n; i++)
        qn__call_drop(g->call[i]);
    qn_context *c = g->context;
    qn_stream_release(g->stream);
    qn__free(g);
    qn__context_drop(c);
}

/** What every call of a graph must be. */
static qn_status check_call(const char *who, qn_context *c, int i, const qn_call *call,
                            const qn_gpu *g, qn_error *err)
{
    const int64_t *slots;
    const qn_task *t = call ? qn__call_task(call, &slots) : NULL;
    const qn_gpu *own = t && t->stream ? t->stream->gpu : NULL;
    if (!call)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: call %d is NULL", who, i);
    if (!own || own->owner != c)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: call %d was not prepared for a stream of this context",
                        who, i);
    if (g && own != g)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: call %d is for device %d, call 0 for device %d", who,
                        i, own->device, g->device);
    const char *list = qn__call_copied_list(call);
    if (list)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: call %d, kernel \"%.60s\": list \"%.80s\" is in host memory, and a graph does not copy it", who,
                        i, t->kernel->name, list);
    if (t->function && (t->function->may_fault || t->function->info.gpu.words_in_memory))
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: call %d, kernel \"%.60s\": %s", who, i, t->kernel->name,
                        t->function->may_fault ? "its accesses are not proved, and a graph reports nothing"
                                               : "it has too many arguments for a graph");
    return QN_OK;
}

/** Memory for the call that needs most. */
static qn_status take_scratch(qn_graph *g, const char *who, qn_error *err)
{
    int64_t most = 0;
    for (int i = 0; i < g->n; i++) {
        const int64_t *slots;
        const qn_task *t = qn__call_task(g->call[i], &slots);
        int64_t bytes = 0;
        qn_status status = t->function ? qn__cuda_scratch(t, &bytes, err) : QN_OK;
        if (status)
            return status;
        most = bytes > most ? bytes : most;
    }
    if (most == 0)
        return QN_OK;
    qn_status status = qn__gpu_alloc(g->stream, who, (size_t)most, &g->scratch, err);
    if (status == QN_OK) /* other streams will use it */
        status = QN_CU(g->stream->gpu, who, stream_sync, (g->stream->handle), err);
    return status;
}

static qn_status capture_call(qn_graph *g, int i, qn_error *err)
{
    const int64_t *slots;
    const qn_task *t = qn__call_task(g->call[i], &slots);
    return t->function ? qn__cuda_capture(t, slots, g->stream, g->scratch, err) : QN_OK;
}

/** Lets a stream wait until the memory of a call is ready. */
static qn_status order_call(const qn_call *call, qn_stream *s, const char *who, qn_error *err)
{
    const int64_t *slots;
    const qn_task *t = qn__call_task(call, &slots);
    qn_status status = qn__call_renew(call, who, s, err);
    bool keep;
    for (int i = 0; i < t->n && status == QN_OK; i++)
        if (t->args[i].view && t->args[i].view->owner)
            status = qn__cuda_use(s, who, t->args[i].view, &keep, err);
    return status;
}

/** Captures the calls; the GPU's context is current. */
static qn_status capture(qn_graph *g, const char *who, qn_error *err)
{
    qn_stream *s = g->stream;
    void *captured = NULL;
    qn_status status = QN_CU(s->gpu, who, capture_begin, (s->handle, QN_CU_CAPTURE_THREAD), err);
    if (status)
        return status;
    for (int i = 0; i < g->n && status == QN_OK; i++)
        status = capture_call(g, i, err);
    qn_status ended =
        QN_CU(s->gpu, who, capture_end, (s->handle, &captured), status ? NULL : err);
    if (status == QN_OK)
        status = ended;
    if (status == QN_OK)
        status = QN_CU(s->gpu, who, graph_make, (&g->exec, captured, 0), err);
    if (captured)
        s->gpu->cuda->api.graph_free(captured);
    return status;
}

qn_status qn_graph_new(qn_context *c, int n, qn_call *const *calls, qn_graph **out, qn_error *err)
{
    enum { MOST_CALLS = 65536 };
    const char *who = "qn_graph_new";
    bool is_pushed = false;
    if (!c || !calls || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !c       ? "context"
                        : !calls ? "calls"
                                 : "out");
    if (n < 1 || n > MOST_CALLS)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %d calls not in [1,%d]", who, n, (int)MOST_CALLS);
    qn_gpu *gpu = NULL;
    for (int i = 0; i < n; i++) {
        qn_status status = check_call(who, c, i, calls[i], gpu, err);
        if (status)
            return status;
        const int64_t *slots;
        gpu = qn__call_task(calls[i], &slots)->stream->gpu;
    }
    qn_graph *g = qn__zalloc(1, sizeof *g + (size_t)n * sizeof(qn_call *));
    if (!g)
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory for %d calls", who, n);
    qn_error inner = {0};
    qn_status status = qn_stream_new(c, gpu->device, &g->stream, &inner);
    if (status) {
        qn__free(g);
        return qn__fail(err, status, "%s: %s", who, inner.message);
    }
    atomic_init(&g->references, 1);
    atomic_store(&g->stream->is_captured, true);
    g->context = c;
    qn__context_retain(c);
    for (g->n = 0; g->n < n; g->n++) {
        g->call[g->n] = calls[g->n];
        qn__call_retain(calls[g->n]);
    }
    status = qn__gpu_enter(gpu, who, &is_pushed, err);
    if (status == QN_OK)
        status = take_scratch(g, who, err);
    if (status == QN_OK)
        status = capture(g, who, err);
    qn__gpu_leave(gpu, is_pushed);
    if (status)
        drop_graph(g);
    else
        *out = g;
    return status;
}

qn_status qn_graph_run(qn_graph *g, qn_stream *s, qn_error *err)
{
    const char *who = "qn_graph_run";
    bool is_pushed = false;
    if (!g || !s)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, g ? "stream" : "graph");
    qn_gpu *gpu = g->stream->gpu;
    if (s->gpu != gpu)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: the graph is of device %d, the stream of another CUDA context", who,
                        gpu->device);
    qn_status status = qn__gpu_enter(gpu, who, &is_pushed, err);
    if (status)
        return status;
    for (int i = 0; i < g->n && status == QN_OK; i++)
        status = order_call(g->call[i], s, who, err);
    if (status == QN_OK)
        status = qn__stream_begin(s, who, 1, NULL, NULL, err);
    if (status == QN_OK) {
        atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
        qn__stream_keep(s, drop_graph, g);
        status = QN_CU(gpu, who, graph_launch, (g->exec, s->handle), err);
        qn__stream_end(s);
    }
    qn__gpu_leave(gpu, is_pushed);
    return status;
}

void qn_graph_release(qn_graph *g)
{
    if (g)
        drop_graph(g);
}
