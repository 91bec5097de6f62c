/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time.c: spans of launches on a GPU, see cuda/time.h. The driver tells the time between two
 * events. So a GPU has a clock: an event whose time on the host is known, because it was waited for
 * on a stream without other work. The driver gives times as floats of milliseconds; a clock is
 * replaced before they lose microseconds.
 */
#include "runtime/cuda/time.h"
#include "runtime/context.h"

/** A float of milliseconds has 24 bits: within 8 s its steps are at most half a microsecond. */
#define CLOCK_NS (8 * INT64_C(1000000000))

struct qn_gpu_clock {
    _Atomic int64_t references; /* one of the GPU, one of each span */
    void *event;
    int64_t ns; /* of CLOCK_MONOTONIC */
};

struct qn_gpu_span {
    qn_gpu *gpu; /* outlives its batches */
    qn_gpu_clock *clock;
    void *begin, *end;
    qn_kernel *kernel;
    qn_work work;
    int64_t n_iterations;
    uint64_t trial; /* what the time is for, too; 0: nothing */
    int n_timed;
    int stream;
};

/* ---------------------------------------------------------------- the clock */

static void drop_clock(qn_gpu *g, qn_gpu_clock *clock)
{
    if (!clock || atomic_fetch_sub(&clock->references, 1) != 1)
        return;
    if (qn__gpu_is_usable(g))
        g->cuda->api.event_destroy(clock->event);
    qn__free(clock);
}

/** Records an event and waits for it, on a stream of its own, so that no other work is between. */
static bool set_clock(qn_gpu *g, qn_gpu_clock *clock)
{
    const qn_cuda_api *api = &g->cuda->api;
    void *stream = NULL;
    if (api->stream_create(&stream, QN_CU_STREAM_NON_BLOCKING) != QN_CU_OK)
        return false;
    bool is_set = api->event_record(clock->event, stream) == QN_CU_OK &&
                  api->event_sync(clock->event) == QN_CU_OK;
    clock->ns = qn__now_ns();
    api->stream_destroy(stream);
    return is_set;
}

static qn_gpu_clock *make_clock(qn_gpu *g)
{
    qn_gpu_clock *clock = qn__zalloc(1, sizeof *clock);
    if (!clock)
        return NULL;
    atomic_init(&clock->references, 1);
    if (g->cuda->api.event_create(&clock->event, 0) != QN_CU_OK) {
        qn__free(clock);
        return NULL;
    }
    if (set_clock(g, clock))
        return clock;
    drop_clock(g, clock);
    return NULL;
}

/** The clock of a GPU with a reference, or NULL. */
static qn_gpu_clock *clock_of(qn_gpu *g)
{
    pthread_mutex_lock(&g->lock);
    if (!g->clock || qn__now_ns() - g->clock->ns > CLOCK_NS) {
        qn_gpu_clock *old = g->clock;
        g->clock = make_clock(g);
        drop_clock(g, old);
    }
    qn_gpu_clock *clock = g->clock;
    if (clock)
        atomic_fetch_add(&clock->references, 1);
    pthread_mutex_unlock(&g->lock);
    return clock;
}

void qn__gpu_clock_release(qn_gpu *g)
{
    drop_clock(g, g->clock);
    g->clock = NULL;
}

/* ---------------------------------------------------------------- spans */

/** The GPU's context is current, if it can be used. */
static void free_span(qn_gpu_span *span)
{
    qn_gpu *g = span->gpu;
    if (qn__gpu_is_usable(g) && span->begin)
        g->cuda->api.event_destroy(span->begin);
    if (qn__gpu_is_usable(g) && span->end)
        g->cuda->api.event_destroy(span->end);
    drop_clock(g, span->clock);
    qn_kernel_release(span->kernel);
    qn__free(span);
}

static void tell(const qn_gpu_span *span, int64_t start_ns, int64_t ns)
{
    qn_context *c = span->gpu->owner;
    if (c->options.summary) {
        qn_kernel_counters add = {
            .timed_ns = ns, .bytes = span->work.bytes, .flops = span->work.flops};
        qn__lock(c);
        qn__profile_add(&c->profile, span->kernel, &add);
        qn__unlock(c);
    }
    if (c->trace.is_on)
        qn__trace_gpu(c, span->gpu->device, span->stream, span->kernel->name, start_ns, ns,
                      span->n_iterations);
}

/** The work is done: its time is told, and the span given up. */
static void finish(void *what)
{
    qn_gpu_span *span = what;
    qn_gpu *g = span->gpu;
    bool is_pushed = false;
    float before = 0, during = 0;
    bool is_entered = qn__gpu_enter(g, "", &is_pushed, NULL) == QN_OK;
    bool is_known =
        is_entered && g->cuda->api.event_elapsed(&during, span->begin, span->end) == QN_CU_OK;
    int64_t ns = is_known ? (int64_t)((double)during * 1e6) : -1;
    if (span->trial)
        qn__trial_record(g->owner, span->kernel, span->trial, ns, span->n_timed, 0);
    if (is_known && span->clock &&
        g->cuda->api.event_elapsed(&before, span->clock->event, span->begin) == QN_CU_OK)
        tell(span, span->clock->ns + (int64_t)(before * 1e6F), ns);
    free_span(span);
    if (is_entered)
        qn__gpu_leave(g, is_pushed);
}

/** A trial that waits for the time of this launch is told that there is none. */
static qn_gpu_span *not_timed(const qn_task *t)
{
    if (t->trial)
        qn__trial_record(t->context, t->kernel, t->trial, -1, t->n_timed, 0);
    return NULL;
}

qn_gpu_span *qn__gpu_span_begin(qn_stream *s, const qn_task *t)
{
    qn_gpu *g = s->gpu;
    bool is_told = g->owner->options.summary || g->owner->trace.is_on;
    if (!is_told && !t->trial)
        return NULL;
    qn_gpu_span *span = qn__zalloc(1, sizeof *span);
    if (!span)
        return not_timed(t);
    span->gpu = g;
    span->stream = s->number;
    span->kernel =
        qn_kernel_retain((qn_kernel *)(uintptr_t)t->kernel); /* only its reference count */
    span->clock = is_told ? clock_of(g) : NULL;
    const qn_cuda_api *api = &g->cuda->api;
    if ((span->clock || !is_told) && api->event_create(&span->begin, 0) == QN_CU_OK &&
        api->event_create(&span->end, 0) == QN_CU_OK &&
        api->event_record(span->begin, s->handle) == QN_CU_OK) {
        qn__work_of(t->kernel, t->args, &span->work, NULL);
        span->n_iterations = t->n_iterations;
        span->trial = t->trial;
        span->n_timed = t->n_timed;
        return span;
    }
    free_span(span);
    return not_timed(t);
}

static void lose_span(qn_gpu_span *span)
{
    if (span->trial)
        qn__trial_record(span->gpu->owner, span->kernel, span->trial, -1, span->n_timed, 0);
    free_span(span);
}

void qn__gpu_span_end(qn_stream *s, qn_gpu_span *span)
{
    if (!span)
        return;
    if (span->gpu->cuda->api.event_record(span->end, s->handle) == QN_CU_OK)
        qn__stream_keep(s, finish, span);
    else
        lose_span(span);
}
