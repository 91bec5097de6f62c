/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c: graphs of prepared calls. Their kernels are given to a stream of the graph's own
 * while the driver captures it. Scratch memory belongs to the graph; the calls use it one after the
 * other. So two runs of a graph must not overlap: the driver orders those of one graph.
 *
 * Calls that may fault have a record each in memory of the graph. Its first node clears them; after
 * a run, the stream copies them to pinned memory of that run, which its batch reads when it is
 * done. An event puts the next run of the graph, on whatever stream, behind that copy.
 */
#include "runtime/cuda/memory.h"
#include "runtime/launch.h"

#include <string.h>

/** Pinned memory for the records of one run. */
typedef struct graph_run {
    struct graph_run *next;
    struct qn_graph *graph;
    qn_gpu_fault *seen;
} graph_run;

struct qn_graph {
    _Atomic int64_t references; /* the caller's, and those of runs under way */
    qn_stream *stream;          /* captured; with the only reference */
    qn_context *context;        /* with a reference */
    void *exec;
    qn_cu_ptr scratch; /* 0: none */
    int n_faults;      /* calls that may fault */
    qn_report *report; /* [n_faults] */
    qn_cu_ptr records; /* [n_faults], then as many that are cleared; 0: none */
    void *copied;      /* event: the records of the last run were copied */
    pthread_mutex_t order, lock; /* of giving runs; of free_runs */
    graph_run *free_runs;
    int n;
    qn_call *call[]; /* with references */
};

/** Frees what is of the driver's. */
static void free_handles(qn_graph *g)
{
    const qn_cuda_api *api = &g->stream->gpu->cuda->api;
    if (g->exec)
        api->graph_exec_free(g->exec);
    if (g->scratch)
        qn__gpu_free(g->stream, g->scratch);
    if (g->records)
        qn__gpu_free(g->stream, g->records);
    if (g->copied)
        api->event_destroy(g->copied);
    for (graph_run *r = g->free_runs; r; r = r->next)
        if (r->seen)
            api->host_free(r->seen);
}

static void drop_graph(void *what)
{
    qn_graph *g = what;
    if (atomic_fetch_sub_explicit(&g->references, 1, memory_order_acq_rel) != 1)
        return;
    qn_gpu *gpu = g->stream->gpu;
    bool is_pushed;
    if (qn__gpu_enter(gpu, "", &is_pushed, NULL) == QN_OK) {
        free_handles(g);
        qn__gpu_leave(gpu, is_pushed);
    }
    while (g->free_runs) {
        graph_run *r = g->free_runs;
        g->free_runs = r->next;
        qn__free(r);
    }
    qn__free(g->report);
    pthread_mutex_destroy(&g->order);
    pthread_mutex_destroy(&g->lock);
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
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: call %d was not prepared for a stream of this context", who, i);
    if (g && own != g)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: call %d is for device %d, call 0 for device %d",
                        who, i, own->device, g->device);
    const char *list = qn__call_copied_list(call);
    if (list)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: call %d, kernel \"%.60s\": list \"%.80s\" is in host memory, and a "
                        "graph does not copy it",
                        who, i, t->kernel->name, list);
    if (qn__call_prints(call))
        return qn__fail(
            err, QN_ERR_UNSUPPORTED,
            "%s: call %d, kernel \"%.60s\": it prints, and a graph gives no lines to the host", who,
            i, t->kernel->name);
    if (t->function && t->function->info.gpu.words_in_memory)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: call %d, kernel \"%.60s\": it has too many arguments for a graph", who,
                        i, t->kernel->name);
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

/** What the calls that may fault are reported with. */
static qn_status list_reports(qn_graph *g, const char *who, qn_error *err)
{
    g->report = qn__zalloc((size_t)g->n, sizeof *g->report);
    if (!g->report)
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory for %d calls", who, g->n);
    for (int i = 0; i < g->n; i++) {
        const int64_t *slots;
        const qn_task *t = qn__call_task(g->call[i], &slots);
        if (t->function && t->function->may_fault)
            g->report[g->n_faults++] = (qn_report){.kernel = t->kernel, .n = t->n, .args = t->args};
    }
    return QN_OK;
}

/** Memory for the records of all calls, with the cleared ones. */
static qn_status make_records(qn_graph *g, const char *who, qn_error *err)
{
    qn_stream *s = g->stream;
    size_t n = (size_t)g->n_faults;
    if (n == 0)
        return QN_OK;
    qn_gpu_fault *cleared = qn__zalloc(n, sizeof *cleared);
    if (!cleared)
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory for %d records", who, g->n_faults);
    for (size_t i = 0; i < n; i++)
        qn__fault_clear(&cleared[i].fault, &qn__never);
    qn_status status = qn__gpu_alloc(s, who, 2 * n * sizeof *cleared, &g->records, err);
    if (status == QN_OK)
        status = QN_CU(s->gpu, who, copy,
                       (g->records + n * sizeof *cleared, (qn_cu_ptr)(uintptr_t)cleared,
                        n * sizeof *cleared, s->handle),
                       err);
    if (status == QN_OK) /* other streams will use it */
        status = QN_CU(s->gpu, who, stream_sync, (s->handle), err);
    if (status == QN_OK)
        status = QN_CU(s->gpu, who, event_create, (&g->copied, QN_CU_EVENT_NO_TIMING), err);
    qn__free(cleared);
    return status;
}

/** Captures call i, whose record, if it needs one, is number *at. */
static qn_status capture_call(qn_graph *g, int i, int *at, qn_error *err)
{
    const int64_t *slots;
    const qn_task *t = qn__call_task(g->call[i], &slots);
    if (!t->function)
        return QN_OK;
    qn_cu_ptr fault =
        t->function->may_fault ? g->records + (qn_cu_ptr)(*at)++ * sizeof(qn_gpu_fault) : 0;
    return qn__cuda_capture(t, slots, g->stream, fault, g->scratch, err);
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
    size_t bytes = (size_t)g->n_faults * sizeof(qn_gpu_fault);
    if (bytes)
        status = QN_CU(s->gpu, who, copy, (g->records, g->records + bytes, bytes, s->handle), err);
    for (int i = 0, at = 0; i < g->n && status == QN_OK; i++)
        status = capture_call(g, i, &at, err);
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

/** A graph of nothing that holds the calls. */
static qn_status new_graph(qn_context *c, const char *who, const qn_gpu *gpu, int n,
                           qn_call *const *calls, qn_graph **out, qn_error *err)
{
    qn_graph *g = qn__zalloc(1, sizeof *g + (size_t)n * sizeof(qn_call *));
    qn_error inner = {0};
    if (!g || pthread_mutex_init(&g->order, NULL) != 0) {
        qn__free(g);
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory for %d calls", who, n);
    }
    pthread_mutex_init(&g->lock, NULL);
    qn_status status = qn_stream_new(c, gpu->device, &g->stream, &inner);
    if (status) {
        pthread_mutex_destroy(&g->order);
        pthread_mutex_destroy(&g->lock);
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
    *out = g;
    return QN_OK;
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
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %d calls not in [1,%d]", who, n,
                        (int)MOST_CALLS);
    qn_gpu *gpu = NULL;
    for (int i = 0; i < n; i++) {
        qn_status status = check_call(who, c, i, calls[i], gpu, err);
        if (status)
            return status;
        const int64_t *slots;
        gpu = qn__call_task(calls[i], &slots)->stream->gpu;
    }
    qn_graph *g = NULL;
    qn_status status = new_graph(c, who, gpu, n, calls, &g, err);
    if (status)
        return status;
    status = list_reports(g, who, err);
    if (status == QN_OK)
        status = qn__gpu_enter(gpu, who, &is_pushed, err);
    if (status == QN_OK)
        status = take_scratch(g, who, err);
    if (status == QN_OK)
        status = make_records(g, who, err);
    if (status == QN_OK)
        status = capture(g, who, err);
    qn__gpu_leave(gpu, is_pushed);
    if (status)
        drop_graph(g);
    else
        *out = g;
    return status;
}

/* ---------------------------------------------------------------- running */

/** Pinned memory for a run, used before or new. */
static qn_status take_run(qn_graph *g, const char *who, graph_run **out, qn_error *err)
{
    pthread_mutex_lock(&g->lock);
    graph_run *r = g->free_runs;
    if (r)
        g->free_runs = r->next;
    pthread_mutex_unlock(&g->lock);
    *out = r;
    if (r)
        return QN_OK;
    void *seen = NULL;
    r = qn__zalloc(1, sizeof *r);
    if (!r)
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory", who);
    qn_status status =
        QN_CU(g->stream->gpu, who, host_alloc,
              (&seen, (size_t)g->n_faults * sizeof *r->seen, QN_CU_HOST_PORTABLE), err);
    if (status) {
        qn__free(r);
        return status;
    }
    r->graph = g;
    r->seen = seen;
    *out = r;
    return QN_OK;
}

/** Gives the memory of a run back, and its reference to the graph. Its records were read. */
static void drop_run(void *what)
{
    graph_run *r = what;
    qn_graph *g = r->graph;
    pthread_mutex_lock(&g->lock);
    r->next = g->free_runs;
    g->free_runs = r;
    pthread_mutex_unlock(&g->lock);
    drop_graph(g);
}

/** Runs a graph whose calls may fault, after the last run of it. */
static qn_status run_reported(qn_graph *g, qn_stream *s, const char *who, qn_error *err)
{
    qn_gpu *gpu = s->gpu;
    graph_run *r = NULL;
    qn_cu_ptr unused;
    size_t bytes = (size_t)g->n_faults * sizeof *r->seen;
    qn_status status = take_run(g, who, &r, err);
    if (status)
        return status;
    atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
    for (int i = 0; i < g->n_faults; i++) /* in case they are never copied */
        qn__fault_clear(&r->seen[i].fault, &qn__never);
    const qn_report report = {.n_more = g->n_faults, .more = g->report, .seen = r->seen};
    status = qn__stream_begin(s, who, 1, &report, &unused, err);
    if (status) {
        drop_run(r);
        return status;
    }
    qn__stream_keep(s, drop_run, r);
    status = QN_CU(gpu, who, stream_wait, (s->handle, g->copied, 0), err);
    if (status == QN_OK)
        status = QN_CU(gpu, who, graph_launch, (g->exec, s->handle), err);
    if (status == QN_OK)
        status = QN_CU(gpu, who, copy,
                       ((qn_cu_ptr)(uintptr_t)r->seen, g->records, bytes, s->handle), err);
    if (status == QN_OK)
        status = QN_CU(gpu, who, event_record, (g->copied, s->handle), err);
    qn__stream_end(s);
    return status;
}

static qn_status run_plain(qn_graph *g, qn_stream *s, const char *who, qn_error *err)
{
    qn_status status = qn__stream_begin(s, who, 1, NULL, NULL, err);
    if (status)
        return status;
    atomic_fetch_add_explicit(&g->references, 1, memory_order_relaxed);
    qn__stream_keep(s, drop_graph, g);
    status = QN_CU(s->gpu, who, graph_launch, (g->exec, s->handle), err);
    qn__stream_end(s);
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
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: the graph is of device %d, the stream of another CUDA context", who,
                        gpu->device);
    qn_status status = qn__gpu_enter(gpu, who, &is_pushed, err);
    if (status)
        return status;
    for (int i = 0; i < g->n && status == QN_OK; i++)
        status = order_call(g->call[i], s, who, err);
    if (status == QN_OK && g->n_faults) {
        pthread_mutex_lock(&g->order);
        status = run_reported(g, s, who, err);
        pthread_mutex_unlock(&g->order);
    } else if (status == QN_OK) {
        status = run_plain(g, s, who, err);
    }
    qn__gpu_leave(gpu, is_pushed);
    return status;
}

void qn_graph_release(qn_graph *g)
{
    if (g)
        drop_graph(g);
}
