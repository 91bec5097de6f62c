/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c: memory of the CUDA spaces as storage of views; see cuda/memory.h. Our own is known
 * by its release function; of any other the driver is asked, when it is wrapped and when a kernel
 * is launched on it.
 */
#include "runtime/cuda/memory.h"

#include "runtime/buffer.h"
#include "runtime/context.h"

#include <string.h>

/** Storage of ours. */
typedef struct qn_cuda_memory {
    qn_context *context; /* with a reference */
    qn_gpu *gpu;
    qn_stream *home; /* held; of device memory */
    int space;
    qn_cu_ptr start; /* what was allocated */
    void *event;     /* happens when it is ready; NULL: it is */
    atomic_bool is_ready;
    qn_memory *account; /* that counts it; NULL: none does */
    int64_t counted;
} qn_cuda_memory;

/* ---------------------------------------------------------------- raw memory */

static int alloc_raw(qn_stream *s, size_t bytes, qn_cu_ptr *out)
{
    const qn_cuda_api *api = &s->gpu->cuda->api;
    return s->gpu->pool ? api->pool_alloc(out, bytes, s->gpu->pool, s->handle)
                        : api->memory_alloc(out, bytes);
}

qn_status qn__gpu_alloc(qn_stream *s, const char *who, size_t bytes, qn_cu_ptr *out, qn_error *err)
{
    qn_gpu *g = s->gpu;
    int call = g->pool ? QN_CU_CALL_pool_alloc : QN_CU_CALL_memory_alloc;
    int result = alloc_raw(s, bytes, out);
    if (result == QN_CU_OUT_OF_MEMORY) { /* what finished work and the pool hold may be enough */
        qn__gpu_sweep(g, true);
        if (g->pool)
            g->cuda->api.pool_trim(g->pool, 0);
        result = alloc_raw(s, bytes, out);
    }
    return qn__gpu_check(g, who, call, result, err);
}

void qn__gpu_free(qn_stream *s, qn_cu_ptr p)
{
    const qn_cuda_api *api = &s->gpu->cuda->api;
    int result = s->gpu->pool ? api->pool_free(p, s->handle) : api->memory_free(p);
    qn__gpu_check(s->gpu, "", QN_CU_CALL_pool_free, result, NULL); /* notes a lost context */
}

static void free_start(qn_cuda_memory *m)
{
    const qn_cuda_api *api = &m->gpu->cuda->api;
    if (!m->start)
        return;
    if (m->space == QN_SPACE_CUDA)
        qn__gpu_free(m->home, m->start);
    else if (m->space == QN_SPACE_CUDA_MANAGED)
        api->memory_free(m->start);
    else
        api->host_free((void *)(uintptr_t)m->start);
}

static void free_memory(qn_cuda_memory *m)
{
    bool is_pushed;
    if (qn__gpu_enter(m->gpu, "", &is_pushed, NULL) == QN_OK) {
        free_start(m);
        if (m->event)
            m->gpu->cuda->api.event_destroy(m->event);
        qn__gpu_leave(m->gpu, is_pushed);
    }
    qn_context *c = m->context;
    qn__memory_uncount(m->account, QN_MEMORY_CUDA, m->counted);
    if (m->home)
        qn__stream_unhold(m->home);
    qn__free(m);
    qn__context_drop(c);
}

static void release_memory(void *arg)
{
    free_memory(arg);
}

static qn_cuda_memory *memory_of(const qn_buffer *b)
{
    return b && b->release_data == release_memory ? b->release_arg : NULL;
}

/* ---------------------------------------------------------------- allocation */

/** Memory of a space; zeroed memory is so for work that its home is given later. */
static qn_status take_memory(qn_cuda_memory *m, const char *who, size_t bytes, bool is_zeroed,
                             qn_error *err)
{
    qn_gpu *g = m->gpu;
    qn_stream *s = m->home ? m->home : g->own;
    void *host = NULL;
    qn_status status;
    if (m->space == QN_SPACE_CUDA_PINNED) {
        status = QN_CU(g, who, host_alloc,
                       (&host, bytes, QN_CU_HOST_PORTABLE | QN_CU_HOST_MAPPED), err);
        m->start = (qn_cu_ptr)(uintptr_t)host;
        if (status == QN_OK && is_zeroed)
            memset(host, 0, bytes);
        return status;
    }
    if (m->space == QN_SPACE_CUDA_MANAGED)
        status = QN_CU(g, who, managed_alloc, (&m->start, bytes, QN_CU_MANAGED_GLOBAL), err);
    else
        status = qn__gpu_alloc(s, who, bytes, &m->start, err);
    if (status == QN_OK && is_zeroed)
        status = QN_CU(g, who, set_8, (m->start, 0, bytes, s->handle), err);
    return status;
}

/** Waits until memory is ready, or makes the event that tells. */
static qn_status settle_memory(qn_cuda_memory *m, const char *who, bool wait, qn_error *err)
{
    qn_gpu *g = m->gpu;
    if (m->space == QN_SPACE_CUDA_PINNED)
        return QN_OK;
    qn_stream *s = m->home ? m->home : g->own;
    if (wait)
        return QN_CU(g, who, stream_sync, (s->handle), err);
    qn_status status = QN_OK;
    if (!m->event)
        status = QN_CU(g, who, event_create, (&m->event, QN_CU_EVENT_NO_TIMING), err);
    if (status == QN_OK)
        status = QN_CU(g, who, event_record, (m->event, s->handle), err);
    atomic_store(&m->is_ready, false);
    return status;
}

/** The stream whose order memory follows: one of ours. That of a stream of the host's is its GPU's
 * own, for which it waits. */
static qn_status find_home(qn_context *c, const char *who, qn_stream *s, qn_stream **out,
                           qn_error *err)
{
    qn_status status = qn__stream_of(c, who, s, out, err);
    if (status == QN_OK && !(*out)->is_own)
        *out = (*out)->gpu->own;
    return status;
}

static qn_status make_memory(const char *who, qn_context *c, int space, qn_stream *wanted,
                             size_t bytes, bool is_zeroed, qn_cuda_memory **out, qn_error *err)
{
    qn_stream *home = NULL;
    bool is_pushed = false;
    qn_status status = find_home(c, who, wanted, &home, err);
    if (status)
        return status;
    qn_cuda_memory *m = qn__zalloc(1, sizeof *m);
    if (!m)
        return qn__fail(err, QN_ERR_MEMORY, "%s: no memory", who);
    qn__context_retain(c);
    *m = (qn_cuda_memory){.context = c, .gpu = home->gpu, .space = space};
    atomic_init(&m->is_ready, true);
    if (space == QN_SPACE_CUDA)
        m->home = qn__stream_hold(home);
    char reason[QN_MEMORY_REASON_BYTES];
    if (qn__memory_count(c->memory, QN_MEMORY_CUDA, (int64_t)bytes)) {
        m->account = c->memory;
        m->counted = (int64_t)bytes;
        status = qn__gpu_enter(m->gpu, who, &is_pushed, err);
    } else
        status = qn__fail(err, QN_ERR_MEMORY, "%s: %lld bytes are beyond the bound%s", who,
                          (long long)bytes,
                          qn__memory_reason(c->memory, QN_MEMORY_CUDA, (int64_t)bytes, reason));
    if (status == QN_OK) {
        status = take_memory(m, who, bytes, is_zeroed, err);
        if (status == QN_OK)
            status = settle_memory(m, who, wanted != home || space != QN_SPACE_CUDA, err);
        qn__gpu_leave(m->gpu, is_pushed);
    }
    if (status)
        free_memory(m);
    else
        *out = m;
    return status;
}

qn_status qn__cuda_allocate(const char *who, qn_context *c, const char *label, int dtype,
                            const qn_record *record, const qn_layout *l, const qn_alloc_options *o,
                            qn_view *out, qn_error *err)
{
    enum { DRIVER_ALIGNMENT = 256 };
    int64_t bytes, first_byte;
    qn_cuda_memory *m = NULL;
    qn_error inner = {0};
    const char *space = qn_space_name(o->space);
    if (!c)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: view \"%s\": context is NULL, and space %s needs one", who,
                        qn__label(label), space);
    qn_status status = qn__view_storage(who, label, dtype, record, l, &bytes, &first_byte, err);
    if (status)
        return status;
    size_t slack = o->alignment > DRIVER_ALIGNMENT ? (size_t)o->alignment : 0;
    size_t room = (size_t)bytes + slack;
    status = make_memory(who, c, o->space, o->stream, room ? room : DRIVER_ALIGNMENT,
                         !o->uninitialised, &m, &inner);
    if (status == QN_ERR_MEMORY)
        return qn__fail(err, status, "%s: view \"%s\": no memory for %lld bytes in space %s: %s",
                        who, qn__label(label), (long long)bytes, space, inner.message);
    if (status)
        return qn__fail(err, status, "%s", inner.message);
    char *data = (char *)(uintptr_t)m->start;
    if (slack)
        data += (slack - (uintptr_t)data % slack) % slack;
    qn_buffer *owner =
        qn__buffer_foreign(label ? label : "", data, (size_t)bytes, release_memory, m);
    if (!owner) {
        free_memory(m);
        return qn__fail(err, QN_ERR_MEMORY, "%s: view \"%s\": no memory", who, qn__label(label));
    }
    qn__view_on(owner, first_byte, label != NULL, dtype, record, o->space, l, out);
    out->device = m->gpu->device;
    return QN_OK;
}

qn_status qn__cuda_upload(const char *who, qn_stream *s, const char *label, int64_t n,
                          const int64_t *values, qn_view *out, qn_error *err)
{
    qn_layout l;
    qn_view made;
    bool is_pushed = false;
    const qn_alloc_options o = {
        .bytes = sizeof o, .uninitialised = 1, .space = QN_SPACE_CUDA, .stream = s};
    qn_status status = qn_layout_right(1, &n, &l, err);
    if (status == QN_OK)
        status = qn__cuda_allocate(who, s->gpu->owner, label, QN_I64, NULL, &l, &o, &made, err);
    if (status)
        return status;
    qn_cuda_memory *m = memory_of(made.owner);
    status = qn__gpu_enter(m->gpu, who, &is_pushed, err);
    if (status == QN_OK)
        status = QN_CU(
            m->gpu, who, copy,
            (m->start, (qn_cu_ptr)(uintptr_t)values, (size_t)n * sizeof *values, m->home->handle),
            err);
    if (status == QN_OK)
        status = settle_memory(m, who, false, err);
    qn__gpu_leave(m->gpu, is_pushed);
    if (status)
        qn_view_release(&made);
    else
        *out = made;
    return status;
}

/* ---------------------------------------------------------------- pointers of others */

/** What the driver says of an address. */
typedef struct pointer_info {
    unsigned type, is_managed;
    int device;
    unsigned is_legacy; /* from cuMemAlloc, cudaMalloc */
    void *pool;
    qn_cu_ptr start; /* of the allocation */
    size_t bytes;    /* 0: not known */
} pointer_info;

static qn_status ask_pointer(qn_gpu *g, const char *who, uintptr_t at, pointer_info *out,
                             qn_error *err)
{
    int wanted[] = {QN_CU_POINTER_MEMORY_TYPE, QN_CU_POINTER_IS_MANAGED,  QN_CU_POINTER_DEVICE,
                    QN_CU_POINTER_IS_LEGACY,   QN_CU_POINTER_RANGE_START, QN_CU_POINTER_RANGE_BYTES,
                    QN_CU_POINTER_POOL};
    void *to[] = {&out->type,  &out->is_managed, &out->device, &out->is_legacy,
                  &out->start, &out->bytes,      &out->pool};
    *out = (pointer_info){.device = -1};
    return QN_CU(g, who, pointer_attributes,
                 (sizeof wanted / sizeof wanted[0], wanted, to, (qn_cu_ptr)at), err);
}

/** Whether memory was mapped piece by piece, so that an array may lie in several allocations, one
 * behind the other. */
static bool is_mapped(const pointer_info *p)
{
    return p->type == QN_CU_MEMORY_DEVICE && !p->is_managed && !p->is_legacy && !p->pool;
}

/** Whether memory is what views of a space refer to. */
static bool is_of_space(const pointer_info *p, int space)
{
    if (space == QN_SPACE_CUDA_MANAGED)
        return p->is_managed != 0;
    if (space == QN_SPACE_CUDA_PINNED)
        return p->type == QN_CU_MEMORY_HOST && !p->is_managed;
    return p->type == QN_CU_MEMORY_DEVICE || p->is_managed;
}

static qn_status fail_pointer(const char *who, const qn_view *v, const void *at,
                              const pointer_info *p, qn_error *err)
{
    const char *found = p->is_managed                        ? "managed"
                        : p->type == QN_CU_MEMORY_HOST       ? "pinned host"
                        : p->type == QN_CU_MEMORY_DEVICE     ? "device"
                                                             : "no CUDA";
    return qn__fail(err, QN_ERR_SPACE,
                    "%s: view \"%.80s\": %p is %s memory, the view is in space %s", who,
                    qn__label(v->label), at, found, qn_space_name(v->space));
}

/** Checks the first element of memory that is not ours, and that it is on this GPU. */
static qn_status check_foreign(qn_gpu *g, const char *who, const qn_view *v, qn_error *err)
{
    pointer_info p;
    if (!v->data || qn_view_size(v) == 0)
        return QN_OK;
    qn_status status = ask_pointer(g, who, (uintptr_t)v->data, &p, err);
    if (status)
        return status;
    if (!is_of_space(&p, v->space))
        return fail_pointer(who, v, v->data, &p, err);
    if (v->space == QN_SPACE_CUDA && !p.is_managed && p.device != g->handle)
        return qn__fail(err, QN_ERR_SPACE,
                        "%s: view \"%.80s\": its memory is on device %d, the stream on %d", who,
                        qn__label(v->label), p.device, g->device);
    return QN_OK;
}

/** Checks that bytes [begin, end] of a view are in one allocation of its space, or in mapped ones
 * without a gap, and notes the device. */
static qn_status check_range(qn_gpu *g, const char *who, qn_view *v, uintptr_t begin, uintptr_t end,
                             qn_error *err)
{
    pointer_info first, p;
    qn_status status = ask_pointer(g, who, begin, &first, err);
    if (status)
        return status;
    if (!is_of_space(&first, v->space))
        return fail_pointer(who, v, (void *)begin, &first, err);
    v->device = first.device;
    p = first;
    while (status == QN_OK && p.bytes && is_mapped(&p) && p.start + p.bytes <= end &&
           is_of_space(&p, v->space) && p.device == first.device)
        status = ask_pointer(g, who, (uintptr_t)(p.start + p.bytes), &p, err);
    if (status)
        return status;
    if (p.bytes && p.start + p.bytes <= end)
        return qn__fail(
            err, QN_ERR_BOUNDS,
            "%s: view \"%.80s\": its elements, up to %p, leave their allocation of %zu bytes at %p",
            who, qn__label(v->label), (void *)end, p.bytes, (void *)(uintptr_t)p.start);
    status = ask_pointer(g, who, end, &p, err);
    if (status == QN_OK && (!is_of_space(&p, v->space) || p.device != first.device))
        return qn__fail(
            err, QN_ERR_BOUNDS,
            "%s: view \"%.80s\": its last element, at %p, is no longer in memory of space %s", who,
            qn__label(v->label), (void *)end, qn_space_name(v->space));
    return status;
}

qn_status qn_cuda_wrap(qn_context *c, int space, const char *label, void *data, int dtype,
                       const qn_layout *l, uint32_t traits, qn_view *out, qn_error *err)
{
    const char *who = "qn_cuda_wrap";
    qn_view made = {0};
    qn_gpu *g = NULL;
    qn_error inner = {0};
    bool is_pushed = false;
    if (!c || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": %s is NULL", who, qn__label(label),
                        c ? "out" : "context");
    if (!qn__space_is_cuda(space))
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: view \"%s\": space %d (%s) is none of CUDA's",
                        who, qn__label(label), space, qn_space_name(space));
    qn_status status = qn_view_wrap(label, data, dtype, l, traits, &made, &inner);
    if (status) { /* its message has the label already */
        const char *message = strstr(inner.message, ": ");
        return qn__fail(err, status, "%s%s", who, message ? message : "");
    }
    made.space = space;
    int64_t low, high; /* bytes */
    qn__view_bytes(&made, &low, &high);
    if (high > low) {
        status = qn__gpu_of(c, who, -1, &g, err);
        if (status == QN_OK)
            status = qn__gpu_enter(g, who, &is_pushed, err);
        uintptr_t at = (uintptr_t)made.data;
        if (status == QN_OK)
            status = check_range(g, who, &made, at + (uintptr_t)low, at + (uintptr_t)high - 1, err);
        if (g)
            qn__gpu_leave(g, is_pushed);
    }
    if (status)
        qn_view_release(&made);
    else
        *out = made;
    return status;
}

/* ---------------------------------------------------------------- use */

qn_gpu *qn__cuda_gpu(const qn_view *v)
{
    const qn_cuda_memory *m = memory_of(v->owner);
    return m ? m->gpu : NULL;
}

void qn__cuda_drop_owner(void *owner)
{
    qn__buffer_release(owner);
}

/** Lets a stream wait until memory of another home is ready. */
static qn_status wait_ready(qn_stream *s, const char *who, qn_cuda_memory *m, qn_error *err)
{
    if (!m->event || atomic_load_explicit(&m->is_ready, memory_order_acquire))
        return QN_OK;
    if (s->gpu->cuda->api.event_query(m->event) == QN_CU_OK) {
        atomic_store_explicit(&m->is_ready, true, memory_order_release);
        return QN_OK;
    }
    return QN_CU(s->gpu, who, stream_wait, (s->handle, m->event, 0), err);
}

qn_status qn__cuda_use(qn_stream *s, const char *who, const qn_view *v, bool *keep, qn_error *err)
{
    qn_cuda_memory *m = memory_of(v->owner);
    *keep = v->owner != NULL && !(m && m->home == s);
    if (!m)
        return qn__space_is_cuda(v->space) ? check_foreign(s->gpu, who, v, err) : QN_OK;
    if (m->space != QN_SPACE_CUDA)
        return QN_OK;
    if (m->gpu->device != s->gpu->device) {
        bool reaches = false;
        qn_status status = qn__gpu_reaches(s->gpu, m->gpu, who, &reaches, err);
        if (status)
            return status;
        if (!reaches)
            return qn__fail(err, QN_ERR_SPACE,
                            "%s: view \"%.80s\": its memory is on device %d, which device %d of "
                            "the stream does not reach",
                            who, qn__label(v->label), m->gpu->device, s->gpu->device);
    }
    return m->home == s ? QN_OK : wait_ready(s, who, m, err);
}
