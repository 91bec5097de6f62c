/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c: streams: their life, and waiting for them. A reference of a stream holds one of the
 * context; the own stream of a GPU holds none. A released stream leaves its batches to its GPU
 * (cuda/batch.c).
 */
#include "runtime/cuda/stream.h"

#include "runtime/context.h"

/* ---------------------------------------------------------------- life */

qn_status qn__stream_make(qn_gpu *g, const char *who, void *handle, bool is_wrapped,
                          qn_stream **out, qn_error *err)
{
    qn_stream *s = qn__zalloc(1, sizeof *s);
    if (!s || pthread_mutex_init(&s->lock, NULL) != 0) {
        qn__free(s);
        return qn__fail(err, QN_ERR_MEMORY, "%s: device %d: no memory for a stream", who,
                        g->device);
    }
    qn_status status = QN_OK;
    if (!is_wrapped)
        status = QN_CU(g, who, stream_create, (&handle, QN_CU_STREAM_NON_BLOCKING), err);
    if (status) {
        pthread_mutex_destroy(&s->lock);
        qn__free(s);
        return status;
    }
    atomic_init(&s->references, 1);
    atomic_init(&s->holds, 1);
    s->gpu = g;
    s->handle = handle;
    s->is_own = !is_wrapped;
    s->last = &s->first;
    pthread_mutex_lock(&g->lock);
    s->next = g->streams;
    s->link = &g->streams;
    if (s->next)
        s->next->link = &s->next;
    g->streams = s;
    s->number = g->n_streams++;
    pthread_mutex_unlock(&g->lock);
    qn__trace_stream(g->owner, g->device, s->number);
    *out = s;
    return QN_OK;
}

static void free_stream(qn_stream *s)
{
    qn_gpu *g = s->gpu;
    bool is_pushed = false;
    if (atomic_load(&g->cuda->is_forked)) { /* obligation 3 */
        qn__free(s);
        return;
    }
    pthread_mutex_lock(&g->lock);
    *s->link = s->next;
    if (s->next)
        s->next->link = s->link;
    pthread_mutex_unlock(&g->lock);
    qn__gpu_enter(g, "", &is_pushed, NULL);
    qn__stream_end_work(s);
    if (s->is_own && qn__gpu_is_usable(g))
        g->cuda->api.stream_destroy(s->handle);
    qn__gpu_leave(g, is_pushed);
    pthread_mutex_destroy(&s->lock);
    qn__free(s);
}

void qn__gpu_streams_release(qn_gpu *g)
{
    bool is_forked = atomic_load(&g->cuda->is_forked), is_pushed = false;
    if (g->own)
        free_stream(g->own);
    g->own = NULL;
    if (is_forked)
        return;
    if (g->context)
        qn__gpu_enter(g, "", &is_pushed, NULL);
    qn__gpu_sweep(g, true);
    qn__gpu_batches_release(g);
    qn__gpu_leave(g, is_pushed);
}

void qn__cuda_drain(qn_context *c)
{
    qn_cuda *cuda = atomic_load(&c->cuda);
    if (!cuda || atomic_load(&cuda->is_forked))
        return;
    pthread_mutex_lock(&cuda->lock);
    qn_gpu *g = cuda->gpus;
    pthread_mutex_unlock(&cuda->lock);
    for (; g; g = g->next) { /* GPUs are added in front and never removed */
        bool is_pushed;
        qn__gpu_enter(g, "", &is_pushed, NULL);
        qn__gpu_sweep(g, true);
        qn__gpu_leave(g, is_pushed);
    }
}

qn_status qn__stream_of(qn_context *c, const char *who, qn_stream *s, qn_stream **out,
                        qn_error *err)
{
    if (s && s->gpu->owner != c)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: the stream is of another context", who);
    if (s) {
        *out = s;
        return QN_OK;
    }
    qn_gpu *g = NULL;
    qn_status status = qn__gpu_of(c, who, -1, &g, err);
    if (status == QN_OK)
        *out = g->own;
    return status;
}

qn_status qn_stream_new(qn_context *c, int device, qn_stream **out, qn_error *err)
{
    const char *who = "qn_stream_new";
    qn_gpu *g = NULL;
    bool is_pushed = false;
    if (!c || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, c ? "out" : "context");
    qn_status status = qn__gpu_of(c, who, device, &g, err);
    if (status == QN_OK)
        status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    status = qn__stream_make(g, who, NULL, false, out, err);
    if (status == QN_OK)
        qn__context_retain(c);
    qn__gpu_leave(g, is_pushed);
    return status;
}

qn_status qn_stream_default(qn_context *c, qn_stream **out, qn_error *err)
{
    const char *who = "qn_stream_default";
    qn_stream *s = NULL;
    if (!c || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, c ? "out" : "context");
    qn_status status = qn__stream_of(c, who, NULL, &s, err);
    if (status == QN_OK)
        *out = qn_stream_retain(s);
    return status;
}

/** The CUDA context of a stream of the host's; NULL: none is current and the stream names none. */
static qn_status context_of(qn_cuda *cuda, const char *who, void *handle, void **out, qn_error *err)
{
    *out = NULL;
    int call = handle ? QN_CU_CALL_stream_context : QN_CU_CALL_context_current;
    int result = handle ? cuda->api.stream_context(handle, out) : cuda->api.context_current(out);
    return qn__cuda_fail(&cuda->api, who, -1, call, result, err);
}

qn_status qn_stream_wrap(qn_context *c, void *handle, qn_stream **out, qn_error *err)
{
    const char *who = "qn_stream_wrap";
    qn_cuda *cuda = NULL;
    qn_gpu *g = NULL;
    void *context = NULL;
    if (!c || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, c ? "out" : "context");
    qn_status status = qn__cuda_of(c, who, &cuda, err);
    if (status == QN_OK)
        status = context_of(cuda, who, handle, &context, err);
    if (status == QN_OK)
        status = context ? qn__gpu_of_context(c, who, context, &g, err)
                         : qn__gpu_of(c, who, -1, &g, err);
    if (status == QN_OK)
        status = qn__stream_make(g, who, handle, true, out, err);
    if (status == QN_OK)
        qn__context_retain(c);
    return status;
}

qn_stream *qn_stream_retain(qn_stream *s)
{
    if (s) {
        atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
        qn__context_retain(s->gpu->owner);
    }
    return s;
}

void qn_stream_release(qn_stream *s)
{
    if (!s)
        return;
    qn_gpu *g = s->gpu;
    qn_context *c = g->owner;
    bool is_pushed = false;
    if (atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) == 1) {
        if (!atomic_load(&g->cuda->is_forked)) {
            qn__gpu_enter(g, "", &is_pushed, NULL);
            qn__stream_end_work(s);
            qn__gpu_leave(g, is_pushed);
        }
        qn__stream_unhold(s);
    }
    qn__context_drop(c);
}

qn_stream *qn__stream_hold(qn_stream *s)
{
    atomic_fetch_add_explicit(&s->holds, 1, memory_order_relaxed);
    return s;
}

void qn__stream_unhold(qn_stream *s)
{
    if (atomic_fetch_sub_explicit(&s->holds, 1, memory_order_acq_rel) == 1)
        free_stream(s);
}

void *qn_stream_handle(const qn_stream *s)
{
    return s ? s->handle : NULL;
}

int qn_stream_device(const qn_stream *s)
{
    return s ? s->gpu->device : -1;
}

/* ---------------------------------------------------------------- waiting */

qn_status qn_stream_fence(qn_stream *s, qn_error *err)
{
    const char *who = "qn_stream_fence";
    bool is_pushed = false;
    if (!s)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: stream is NULL", who);
    qn_status status = qn__gpu_enter(s->gpu, who, &is_pushed, err);
    if (status)
        return status;
    status = qn__stream_wait(s, who, err);
    qn__gpu_leave(s->gpu, is_pushed);
    if (status)
        return status;
    return qn__stream_take_fault(s, NULL, err);
}

qn_status qn_stream_is_done(qn_stream *s, bool *out, qn_error *err)
{
    const char *who = "qn_stream_is_done";
    if (!s || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, s ? "out" : "stream");
    return qn__gpu_is_done(s->gpu, who, NULL, s->handle, out, err);
}
