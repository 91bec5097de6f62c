/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c: work of streams in batches, what it keeps alive, and its faults; see cuda/stream.h.
 * Obligations:
 *
 * (1) References of a batch are given up without any lock, since that may free memory, code, or
 * call the host. (2) A released stream leaves its batches to its GPU, which gives them up as their
 * events happen, at the latest when the context goes. (3) Once a context is lost, batches count as
 * done; in a forked child they are left as they are, whoever was changing them is not there.
 */
#include "runtime/context.h"
#include "runtime/cuda/stream.h"

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

/** Takes the batches off a list, oldest first, whose work is done; with `wait`, all of them. The
 * lock of the list is held, the GPU's context current. */
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

/** Closes the open batch: copies its faults to the host and records its event. The lock is held. A
 * batch whose event could not be recorded counts as done when the stream is. */
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
            qn__fault_clear(&cleared[i].fault, &qn__never);
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

/** A stream of the host's that is being captured takes no work of ours: its references would have
 * no end. */
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
    return (b->n_keeps > 0 && b->keep[b->n_keeps - 1].what == what) ||
           (b->n_keeps > 1 && b->keep[b->n_keeps - 2].what == what);
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
void qn__stream_end_work(qn_stream *s)
{
    close_batch(s, "", NULL);
    retire(s->gpu, take_done_of(s, atomic_load(&s->gpu->owner->is_released)));
    orphan_batches(s);
    if (s->open) /* nothing is in it */
        retire(s->gpu, s->open);
    s->open = NULL;
}

void qn__gpu_batches_release(qn_gpu *g)
{
    while (g->free_batches) {
        qn_batch *b = g->free_batches;
        g->free_batches = b->next;
        free_batch(g, b);
    }
}

/* ---------------------------------------------------------------- faults */

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
    return qn__fail(err, (qn_status)fault.status, "%s%s%s", who ? who : "", who ? ": " : "",
                    fault.message);
}
