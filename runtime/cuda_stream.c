/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_stream.c: streams, batches of work, and marks; see cuda_stream.h. Obligations:
 *
 * (1) References of a batch are given up without any lock, since that may free memory, code, or
 * call the host. (2) A released stream leaves its batches to its GPU, which gives them up as their
 * events happen, at the latest when the context goes. (3) Once a context is lost, batches count as
 * done; in a forked child they are left as they are, whoever was changing them is not there. (4) A
 * reference of a stream holds one of the context; the own stream of a GPU holds none.
 */
#include "runtime/cuda_stream.h"

#include "runtime/context.h"

#include <string.h>

/* ---------------------------------------------------------------- batches */

static void free_batch(qn_gpu *g, qn_batch *b)
{
    if (qn__gpu_is_usable(g)) {
        if (b->faults)
            g->cuda->api.memory_free(b->faults);
        if (b->seen)
            g->cuda->api.host_free(b->seen);
        if (b->event)
            g->cuda->api.event_destroy(b->event);
    }
    qn__free(b);
}

/** An empty batch, used before or new. */
static qn_status new_batch(qn_gpu *g, const char *who, qn_batch **out, qn_error *err)
{
    pthread_mutex_lock(&g->lock);
    qn_batch *b = g->free_batches;
    if (b)
        g->free_batches = b->next;
    pthread_mutex_unlock(&g->lock);
    if (!b) {
        b = qn__zalloc(1, sizeof *b);
        if (!b)
            return qn__fail(err, QN_ERR_MEMORY, "%s: device %d: no memory for work", who,
                            g->device);
        qn_status status = QN_CU(g, who, event_create, (&b->event, QN_CU_EVENT_NO_TIMING), err);
        if (status) {
            qn__free(b);
            return status;
        }
    }
    b->next = NULL;
    b->n_launches = b->n_keeps = b->n_faults = 0;
    *out = b;
    return QN_OK;
}

/** Gives up what batches held, and keeps them for use. No lock is held. */
static void retire(qn_gpu *g, qn_batch *list)
{
    while (list) {
        qn_batch *b = list;
        list = b->next;
        for (int i = 0; i < b->n_keeps; i++)
            b->keep[i].release(b->keep[i].what);
        pthread_mutex_lock(&g->lock);
        b->next = g->free_batches;
        g->free_batches = b;
        pthread_mutex_unlock(&g->lock);
    }
}

/** Counts a fault, if there is one; the first one is kept in *first. */
static void read_fault(qn_gpu *g, const qn_report *r, const qn_fault *fault, qn_error *first)
{
    if (fault->iteration == UINT64_MAX)
        return;
    qn__lock(g->owner);
    g->owner->counters.faults++;
    qn__unlock(g->owner);
    if (first && first->status == QN_OK)
        qn__fault_report(r->kernel, fault, r->n, r->args, first);
}

/** Reads the faults of a batch that is done. */
static void read_faults(qn_gpu *g, qn_batch *b, qn_error *first)
{
    for (int i = 0; i < b->n_faults; i++) {
        const qn_report *r = &b->report[i];
        for (int j = 0; j < r->n_more; j++)
            read_fault(g, &r->more[j], &r->seen[j].fault, first);
        if (r->n_more == 0)
            read_fault(g, r, &b->seen[i].fault, first);
    }
}

/** Takes the batches off a list, oldest first, whose work is done; with `wait`, all of them. The lock of the
 * list is held, the GPU's context current. */
static qn_batch *take_done(qn_gpu *g, qn_batch **list, bool wait, qn_error *first)
{
    qn_batch *done = NULL, **last = &done;
    while (*list) {
        qn_batch *b = *list;
        int call = wait ? QN_CU_CALL_event_sync : QN_CU_CALL_event_query;
        int result = !qn__gpu_is_usable(g) ? QN_CU_CONTEXT_IS_DESTROYED
                     : wait                ? g->cuda->api.event_sync(b->event)
                                           : g->cuda->api.event_query(b->event);
        if (result == QN_CU_NOT_READY)
            break;
        qn__gpu_check(g, "", call, result, NULL);
        if (result == QN_CU_OK)
            read_faults(g, b, first);
        *list = b->next;
        b->next = NULL;
        *last = b;
        last = &b->next;
    }
    return done;
}

/** Takes finished batches off a stream, whose lock is held. */
static qn_batch *take_done_of(qn_stream *s, bool wait)
{
    qn_batch *done = take_done(s->gpu, &s->first, wait, &s->fault);
    s->n_closed = 0;
    s->last = &s->first;
    for (qn_batch *b = s->first; b; b = b->next) {
        s->n_closed++;
        s->last = &b->next;
    }
    return done;
}

/** Closes the open batch: copies its faults to the host and records its event. The lock is held. A batch whose
 * event could not be recorded counts as done when the stream is. */
static qn_status close_batch(qn_stream *s, const char *who, qn_error *err)
{
    qn_gpu *g = s->gpu;
    qn_batch *b = s->open;
    qn_status status = QN_OK;
    if (!b || (b->n_launches == 0 && b->n_keeps == 0))
        return QN_OK;
    bool is_usable = qn__gpu_is_usable(g); /* else it counts as done, see take_done */
    if (is_usable && b->n_faults)
        status = QN_CU(g, who, copy,
                       ((qn_cu_ptr)(uintptr_t)b->seen, b->faults,
                        (size_t)b->n_faults * sizeof *b->seen, s->handle),
                       err);
    if (is_usable && status == QN_OK)
        status = QN_CU(g, who, event_record, (b->event, s->handle), err);
    if (status) { /* no event will tell: wait, so that nothing is given up early */
        b->n_faults = 0;
        g->cuda->api.stream_sync(s->handle);
    }
    s->open = NULL;
    *s->last = b;
    s->last = &b->next;
    s->n_closed++;
    return status;
}

/** Memory for the faults of a batch. */
static qn_status make_faults(qn_gpu *g, const char *who, qn_batch *b, qn_error *err)
{
    size_t bytes = QN_BATCH_FAULTS * sizeof(qn_gpu_fault);
    qn_status status = QN_OK;
    if (!b->seen) {
        void *seen = NULL;
        status = QN_CU(g, who, host_alloc, (&seen, bytes, QN_CU_HOST_PORTABLE), err);
        b->seen = seen;
    }
    if (status == QN_OK && !b->faults)
        status = QN_CU(g, who, memory_alloc, (&b->faults, bytes), err);
    return status;
}

/** The device address of a cleared record in the open batch. The first one clears all. */
static qn_status add_fault(qn_stream *s, const char *who, const qn_report *report, qn_cu_ptr *out,
                           qn_error *err)
{
    qn_gpu *g = s->gpu;
    qn_batch *b = s->open;
    if (b->n_faults == 0) {
        qn_gpu_fault cleared[QN_BATCH_FAULTS];
        memset(cleared, 0, sizeof cleared);
        for (int i = 0; i < QN_BATCH_FAULTS; i++)
            qn__fault_clear(&cleared[i].fault);
        qn_status status = make_faults(g, who, b, err);
        if (status == QN_OK)
            status = QN_CU(g, who, copy,
                           (b->faults, (qn_cu_ptr)(uintptr_t)cleared, sizeof cleared, s->handle),
                           err);
        if (status)
            return status;
    }
    *out = b->faults + (qn_cu_ptr)b->n_faults * sizeof(qn_gpu_fault);
    b->report[b->n_faults++] = *report;
    return QN_OK;
}

/* ---------------------------------------------------------------- giving work */

/** A stream of the host's that is being captured takes no work of ours: its references would have no end. */
static qn_status check_capture(qn_stream *s, const char *who, qn_error *err)
{
    int state = 0;
    if (s->is_own)
        return QN_OK;
    qn_status status = QN_CU(s->gpu, who, capture_query, (s->handle, &state), err);
    if (status == QN_OK && state != 0)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: device %d: the stream is being captured: use qn_graph_new", who,
                        s->gpu->device);
    return status;
}

/** Makes sure of an open batch with room. *done gets batches to be given up. */
static qn_status make_room(qn_stream *s, const char *who, int n_keeps, bool faults, qn_batch **done,
                           qn_error *err)
{
    qn_batch *b = s->open;
    if (b && (b->n_launches >= QN_BATCH_LAUNCHES || b->n_keeps + n_keeps > QN_BATCH_KEEPS ||
              (faults && b->n_faults >= QN_BATCH_FAULTS))) {
        qn_status status = close_batch(s, who, err);
        if (status)
            return status;
        *done = take_done_of(s, s->n_closed >= QN_MOST_BATCHES);
    }
    return s->open ? QN_OK : new_batch(s->gpu, who, &s->open, err);
}

qn_status qn__stream_begin(qn_stream *s, const char *who, int n_keeps, const qn_report *report,
                           qn_cu_ptr *fault, qn_error *err)
{
    qn_status status = check_capture(s, who, err);
    if (status)
        return status;
    for (;;) {
        qn_batch *done = NULL;
        pthread_mutex_lock(&s->lock);
        status = make_room(s, who, n_keeps, report != NULL, &done, err);
        if (status == QN_OK && !done && report)
            status = add_fault(s, who, report, fault, err);
        if (status == QN_OK && !done)
            return QN_OK;
        pthread_mutex_unlock(&s->lock);
        retire(s->gpu, done);
        if (status)
            return status;
    }
}

void qn__stream_keep(qn_stream *s, void (*release)(void *what), void *what)
{
    qn_batch *b = s->open;
    b->keep[b->n_keeps++] = (qn_keep){release, what};
}

bool qn__stream_keeps(const qn_stream *s, const void *what)
{
    const qn_batch *b = s->open;
    return (b->n_keeps > 0 && b->keep[b->n_keeps - 1].what == what) || (b->n_keeps > 1 && b->keep[b->n_keeps - 2].what == what);
}

void qn__stream_end(qn_stream *s)
{
    s->open->n_launches++;
    pthread_mutex_unlock(&s->lock);
    if (atomic_load_explicit(&s->gpu->owner->is_released, memory_order_relaxed))
        qn__stream_wait(s, "", NULL); /* nobody would sweep later */
}

qn_status qn__stream_wait(qn_stream *s, const char *who, qn_error *err)
{
    qn_gpu *g = s->gpu;
    pthread_mutex_lock(&s->lock);
    qn_status status = close_batch(s, who, err), waited = QN_OK;
    pthread_mutex_unlock(&s->lock);
    if (qn__gpu_is_usable(g))
        waited = QN_CU(g, who, stream_sync, (s->handle), status ? NULL : err);
    pthread_mutex_lock(&s->lock);
    qn_batch *done = take_done_of(s, false);
    pthread_mutex_unlock(&s->lock);
    retire(g, done);
    return status ? status : waited;
}

/** Adds a reference to a stream that may be about to go; false if it is. */
static bool retain_alive(qn_stream *s)
{
    int64_t n = atomic_load_explicit(&s->references, memory_order_relaxed);
    while (n > 0)
        if (atomic_compare_exchange_weak(&s->references, &n, n + 1)) {
            qn__context_retain(s->gpu->owner);
            return true;
        }
    return false;
}

/** The next stream of a sweep, with a reference, or NULL. */
static qn_stream *next_stream(qn_gpu *g, uint64_t pass)
{
    pthread_mutex_lock(&g->lock);
    qn_stream *s = g->streams;
    while (s && (s->pass == pass || atomic_load(&s->is_captured) || !retain_alive(s)))
        s = s->next;
    if (s)
        s->pass = pass;
    pthread_mutex_unlock(&g->lock);
    return s;
}

static void sweep_stream(qn_stream *s)
{
    pthread_mutex_lock(&s->lock);
    close_batch(s, "", NULL);
    qn_batch *done = take_done_of(s, false);
    pthread_mutex_unlock(&s->lock);
    retire(s->gpu, done);
}

void qn__gpu_sweep(qn_gpu *g, bool wait)
{
    pthread_mutex_lock(&g->lock);
    uint64_t pass = ++g->n_sweeps;
    pthread_mutex_unlock(&g->lock);
    for (qn_stream *s = next_stream(g, pass); s; s = next_stream(g, pass)) {
        if (wait)
            qn__stream_wait(s, "", NULL);
        else
            sweep_stream(s);
        qn_stream_release(s);
    }
    pthread_mutex_lock(&g->lock);
    qn_batch *done = take_done(g, &g->orphans, wait, NULL);
    pthread_mutex_unlock(&g->lock);
    retire(g, done);
}

/* ---------------------------------------------------------------- life */

qn_status qn__stream_make(qn_gpu *g, const char *who, void *handle, bool is_wrapped, qn_stream **out,
                          qn_error *err)
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
    pthread_mutex_unlock(&g->lock);
    *out = s;
    return QN_OK;
}

/** Leaves the batches of a stream to its GPU. */
static void orphan_batches(qn_stream *s)
{
    qn_gpu *g = s->gpu;
    pthread_mutex_lock(&g->lock);
    qn_batch **last = &g->orphans;
    while (*last)
        last = &(*last)->next;
    *last = s->first;
    s->first = NULL;
    s->last = &s->first;
    s->n_closed = 0;
    pthread_mutex_unlock(&g->lock);
}

/** Gives up what finished work held, and leaves the rest to the GPU. No more work will be given. */
static void end_work(qn_stream *s)
{
    close_batch(s, "", NULL);
    retire(s->gpu, take_done_of(s, atomic_load(&s->gpu->owner->is_released)));
    orphan_batches(s);
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
    end_work(s);
    if (s->open)
        retire(g, s->open); /* nothing is in it */
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
    while (g->free_batches) {
        qn_batch *b = g->free_batches;
        g->free_batches = b->next;
        free_batch(g, b);
    }
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

qn_status qn__stream_of(qn_context *c, const char *who, qn_stream *s, qn_stream **out, qn_error *err)
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
            end_work(s);
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

bool qn__stream_has_fault(qn_stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool has_fault = s->fault.status != QN_OK;
    pthread_mutex_unlock(&s->lock);
    return has_fault;
}

qn_status qn__stream_take_fault(qn_stream *s, const char *who, qn_error *err)
{
    pthread_mutex_lock(&s->lock);
    qn_error fault = s->fault;
    s->fault.status = QN_OK;
    pthread_mutex_unlock(&s->lock);
    if (fault.status == QN_OK)
        return QN_OK;
    return qn__fail(err, (qn_status)fault.status, "%s%s%s", who ? who : "", who ? ": " : "", fault.message);
}

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
    bool is_pushed = false;
    if (!s || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, s ? "out" : "stream");
    qn_gpu *g = s->gpu;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    int result = g->cuda->api.stream_query(s->handle);
    if (result == QN_CU_NOT_READY)
        *out = false;
    else if ((status = qn__gpu_check(g, who, QN_CU_CALL_stream_query, result, err)) == QN_OK)
        *out = true;
    qn__gpu_leave(g, is_pushed);
    return status;
}

/* ---------------------------------------------------------------- marks */

struct qn_mark {
    qn_stream *stream;
    void *event;
    bool is_timed;
};

qn_status qn_stream_mark(qn_stream *s, int timed, qn_mark **out, qn_error *err)
{
    const char *who = "qn_stream_mark";
    bool is_pushed = false;
    if (!s || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, s ? "out" : "stream");
    if (timed < 0 || timed > 1)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: timed %d: expected 0 or 1", who, timed);
    qn_gpu *g = s->gpu;
    qn_mark *m = qn__zalloc(1, sizeof *m);
    if (!m)
        return qn__fail(err, QN_ERR_MEMORY, "%s: device %d: no memory", who, g->device);
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status == QN_OK)
        status = QN_CU(g, who, event_create, (&m->event, timed ? 0 : QN_CU_EVENT_NO_TIMING), err);
    if (status == QN_OK) {
        status = QN_CU(g, who, event_record, (m->event, s->handle), err);
        if (status)
            g->cuda->api.event_destroy(m->event);
    }
    qn__gpu_leave(g, is_pushed);
    if (status) {
        qn__free(m);
        return status;
    }
    m->stream = qn_stream_retain(s);
    m->is_timed = timed != 0;
    *out = m;
    return QN_OK;
}

qn_status qn_stream_after(qn_stream *s, const qn_mark *m, qn_error *err)
{
    const char *who = "qn_stream_after";
    bool is_pushed = false;
    if (!s || !m)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, s ? "mark" : "stream");
    if (s->gpu->cuda != m->stream->gpu->cuda)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: stream and mark are of different contexts", who);
    qn_status status = qn__gpu_enter(s->gpu, who, &is_pushed, err);
    if (status)
        return status;
    status = QN_CU(s->gpu, who, stream_wait, (s->handle, m->event, 0), err);
    qn__gpu_leave(s->gpu, is_pushed);
    return status;
}

qn_status qn_mark_wait(const qn_mark *m, qn_error *err)
{
    const char *who = "qn_mark_wait";
    bool is_pushed = false;
    if (!m)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: mark is NULL", who);
    qn_gpu *g = m->stream->gpu;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    status = QN_CU(g, who, event_sync, (m->event), err);
    qn__gpu_leave(g, is_pushed);
    return status;
}

qn_status qn_mark_is_done(const qn_mark *m, bool *out, qn_error *err)
{
    const char *who = "qn_mark_is_done";
    bool is_pushed = false;
    if (!m || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, m ? "out" : "mark");
    qn_gpu *g = m->stream->gpu;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    int result = g->cuda->api.event_query(m->event);
    if (result == QN_CU_NOT_READY)
        *out = false;
    else if ((status = qn__gpu_check(g, who, QN_CU_CALL_event_query, result, err)) == QN_OK)
        *out = true;
    qn__gpu_leave(g, is_pushed);
    return status;
}

qn_status qn_mark_milliseconds(const qn_mark *begin, const qn_mark *end, double *out, qn_error *err)
{
    const char *who = "qn_mark_milliseconds";
    bool is_pushed = false;
    float ms = 0;
    if (!begin || !end || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who,
                        !begin ? "begin"
                        : !end ? "end"
                               : "out");
    if (!begin->is_timed || !end->is_timed)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is not timed", who,
                        begin->is_timed ? "end" : "begin");
    qn_gpu *g = end->stream->gpu;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    status = QN_CU(g, who, event_elapsed, (&ms, begin->event, end->event), err);
    qn__gpu_leave(g, is_pushed);
    if (status == QN_OK)
        *out = (double)ms;
    return status;
}

void qn_mark_release(qn_mark *m)
{
    if (!m)
        return;
    qn_gpu *g = m->stream->gpu;
    bool is_pushed;
    if (qn__gpu_enter(g, "", &is_pushed, NULL) == QN_OK) {
        g->cuda->api.event_destroy(m->event);
        qn__gpu_leave(g, is_pushed);
    }
    qn_stream_release(m->stream);
    qn__free(m);
}
