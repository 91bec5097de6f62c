/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c: copies that a GPU takes part in, for any pair of layouts. What runs on without gaps
 * on both sides is one copy of the driver's; rows at even distances are a strided one. Everything
 * else takes a kernel: on the GPU where it reaches both sides; else the host and the GPU each do
 * half, with pinned memory between them (cuda/staging.c); and between two GPUs each does half, with
 * dense memory on both.
 */
#include "runtime/cuda/copy.h"

#include "runtime/context.h"

#include <string.h>

enum { SMALLEST_ROW_BYTES = 64 };

static bool is_on_gpu(const qn_view *v)
{
    return qn_exec_can_access(QN_EXEC_CUDA, v->space);
}

/* ---------------------------------------------------------------- waiting */

static qn_status wait_for_gpu(qn_gpu *g, const char *who, qn_error *err)
{
    bool is_pushed;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    status = QN_CU(g, who, context_sync, (), err);
    if (status == QN_OK) /* faults until now are not of the copy */
        status = qn__stream_wait(g->own, who, err);
    qn__gpu_leave(g, is_pushed);
    return status;
}

qn_status qn__cuda_take_over(qn_copier *p, const qn_view *dst, const qn_view *src, qn_error *err)
{
    qn_gpu *on_dst = qn__cuda_gpu(dst), *on_src = qn__cuda_gpu(src);
    qn_gpu *g = on_dst ? on_dst : on_src;
    if (!p->context)
        return qn__fail(err, QN_ERR_ARGUMENT,
                        "%s: context is NULL, and view \"%s\" is in space %s", p->who,
                        qn__label(dst->label), qn_space_name(dst->space));
    if (g &&
        g->owner != p->context) /* memory of another context: the same GPU, as seen by this one */
        g = on_dst = on_src = NULL;
    qn_status status = g ? QN_OK : qn__gpu_of(p->context, p->who, -1, &g, err);
    if (status == QN_OK)
        status = wait_for_gpu(g, p->who, err);
    if (status == QN_OK && on_src && on_src != g)
        status = wait_for_gpu(on_src, p->who, err);
    if (status)
        return status;
    p->executor = QN_CUDA;
    p->stream = g->own;
    p->takes_faults = !qn__stream_has_fault(g->own);
    return QN_OK;
}

qn_status qn__cuda_hand_back(const qn_copier *p, qn_status status, qn_error *err)
{
    bool is_pushed = false;
    if (!p->stream)
        return status;
    qn_gpu *g = p->stream->gpu;
    qn_status waited = qn__gpu_enter(g, p->who, &is_pushed, status ? NULL : err);
    if (waited == QN_OK)
        waited = qn__stream_wait(p->stream, p->who, status ? NULL : err);
    qn__gpu_leave(g, is_pushed);
    if (status == QN_OK && waited == QN_OK && p->takes_faults)
        status = qn__stream_take_fault(p->stream, p->who, err);
    return status ? status : waited;
}

/* ---------------------------------------------------------------- the driver's copies */

/** Work of the driver's on two views, with the references that it needs. */
typedef struct driver_work {
    const qn_copier *p;
    const qn_view *view[2];
    qn_status (*give)(struct driver_work *w, qn_error *err);
    qn_cu_ptr dst, src;
    size_t bytes, height, depth;
    size_t dst_pitch, src_pitch, dst_height, src_height;
    const unsigned char *element; /* fills */
    int64_t element_bytes;
    void *peer_dst, *peer_src; /* contexts, of copies between GPUs */
} driver_work;

static qn_status give_work(driver_work *w, qn_error *err)
{
    qn_stream *s = w->p->stream;
    const char *who = w->p->who;
    bool is_pushed, keep[2] = {false, false};
    qn_status status = qn__gpu_enter(s->gpu, who, &is_pushed, err);
    if (status)
        return status;
    for (int i = 0; i < 2 && status == QN_OK; i++)
        if (w->view[i] && !w->peer_dst)
            status = qn__cuda_use(s, who, w->view[i], &keep[i], err);
        else
            keep[i] = w->view[i] && w->view[i]->owner;
    if (status == QN_OK)
        status = qn__stream_begin(s, who, 2, NULL, NULL, err);
    if (status == QN_OK) {
        for (int i = 0; i < 2; i++) {
            if (!keep[i])
                continue;
            qn__buffer_retain(w->view[i]->owner);
            qn__stream_keep(s, qn__cuda_drop_owner, w->view[i]->owner);
        }
        status = w->give(w, err);
        qn__stream_end(s);
    }
    qn__gpu_leave(s->gpu, is_pushed);
    return status;
}

static qn_status give_bytes(driver_work *w, qn_error *err)
{
    qn_stream *s = w->p->stream;
    if (w->peer_dst)
        return QN_CU(s->gpu, w->p->who, copy_peer,
                     (w->dst, w->peer_dst, w->src, w->peer_src, w->bytes, s->handle), err);
    return QN_CU(s->gpu, w->p->who, copy, (w->dst, w->src, w->bytes, s->handle), err);
}

enum { UNIFIED = 4 }; /* the driver finds out where an address is */

static qn_status give_2d(driver_work *w, qn_error *err)
{
    qn_stream *s = w->p->stream;
    qn_cu_copy2d copy;
    memset(&copy, 0, sizeof copy);
    copy.src_type = copy.dst_type = UNIFIED;
    copy.src_device = w->src;
    copy.dst_device = w->dst;
    copy.src_pitch = w->src_pitch;
    copy.dst_pitch = w->dst_pitch;
    copy.width_bytes = w->bytes;
    copy.height = w->height;
    return QN_CU(s->gpu, w->p->who, copy_2d, (&copy, s->handle), err);
}

static qn_status give_3d(driver_work *w, qn_error *err)
{
    qn_stream *s = w->p->stream;
    qn_cu_copy3d copy;
    memset(&copy, 0, sizeof copy);
    copy.src_type = copy.dst_type = UNIFIED;
    copy.src_device = w->src;
    copy.dst_device = w->dst;
    copy.src_pitch = w->src_pitch;
    copy.dst_pitch = w->dst_pitch;
    copy.src_height = w->src_height;
    copy.dst_height = w->dst_height;
    copy.width_bytes = w->bytes;
    copy.height = w->height;
    copy.depth = w->depth;
    return QN_CU(s->gpu, w->p->who, copy_3d, (&copy, s->handle), err);
}

static qn_cu_ptr address(const void *p)
{
    return (qn_cu_ptr)(uintptr_t)p;
}

/** Lets g reach the memory of another GPU where it can: else copies of the driver's go through the
 * host. */
static qn_status connect(qn_gpu *g, qn_gpu *other, const char *who, qn_error *err)
{
    bool is_pushed, reaches;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status)
        return status;
    status = qn__gpu_reaches(g, other, who, &reaches, err);
    qn__gpu_leave(g, is_pushed);
    return status;
}

/** One run of bytes. */
static qn_status copy_run(const qn_copier *p, const qn_view *dst, const qn_view *src, char *to,
                          const char *from, int64_t bytes, qn_error *err)
{
    driver_work w = {.p = p,
                     .view = {dst, src},
                     .give = give_bytes,
                     .dst = address(to),
                     .src = address(from),
                     .bytes = (size_t)bytes};
    qn_gpu *a = qn__cuda_gpu(dst), *b = qn__cuda_gpu(src);
    if (a && b && a->device != b->device && dst->space == QN_SPACE_CUDA &&
        src->space == QN_SPACE_CUDA) {
        w.peer_dst = a->context;
        w.peer_src = b->context;
        qn_status status = connect(a, b, p->who, err);
        if (status == QN_OK)
            status = connect(b, a, p->who, err);
        if (status)
            return status;
    }
    return give_work(&w, err);
}

/** A pitch in bytes that the driver takes. */
static bool is_pitch(const qn_copier *p, int64_t stride, int64_t element, int64_t row)
{
    int64_t bytes;
    return stride > 0 && !__builtin_mul_overflow(stride, element, &bytes) && bytes >= row &&
           (uint64_t)bytes <= p->stream->gpu->max_pitch;
}

/** Whether a shape is rows at even distances, of one or two dimensions; fills the work. */
static bool find_rows(const qn_copier *p, const qn_copy_shape *s, driver_work *w)
{
    int last = s->rank - 1;
    int64_t element = s->dst_bytes;
    bool has_rows = s->rank >= 2 && s->dst_stride[last] == 1 && s->src_stride[last] == 1;
    int64_t row = has_rows ? s->extent[last] * element : 0;
    if (!has_rows || row < SMALLEST_ROW_BYTES || s->rank > 3 ||
        !is_pitch(p, s->dst_stride[last - 1], element, row) ||
        !is_pitch(p, s->src_stride[last - 1], element, row))
        return false;
    *w = (driver_work){.p = p,
                       .give = give_2d,
                       .dst = address(s->dst),
                       .src = address(s->src),
                       .bytes = (size_t)row,
                       .height = (size_t)s->extent[last - 1],
                       .depth = 1,
                       .dst_pitch = (size_t)(s->dst_stride[last - 1] * element),
                       .src_pitch = (size_t)(s->src_stride[last - 1] * element)};
    if (s->rank == 2)
        return true;
    int64_t dst_height = s->dst_stride[0] / s->dst_stride[1],
            src_height = s->src_stride[0] / s->src_stride[1];
    w->give = give_3d;
    w->depth = (size_t)s->extent[0];
    w->dst_height = (size_t)dst_height;
    w->src_height = (size_t)src_height;
    return s->dst_stride[0] % s->dst_stride[1] == 0 && s->src_stride[0] % s->src_stride[1] == 0 &&
           dst_height >= s->extent[1] && src_height >= s->extent[1];
}

/* ---------------------------------------------------------------- fills */

bool qn__cuda_can_set(const unsigned char *element, int64_t element_bytes)
{
    return element_bytes <= 4 || (element_bytes == 8 && memcmp(element, element + 4, 4) == 0);
}

static qn_status give_set(driver_work *w, qn_error *err)
{
    qn_stream *s = w->p->stream;
    const char *who = w->p->who;
    unsigned short half;
    unsigned word;
    if (w->element_bytes == 1)
        return QN_CU(s->gpu, who, set_8, (w->dst, w->element[0], w->bytes, s->handle), err);
    if (w->element_bytes == 2) {
        memcpy(&half, w->element, sizeof half);
        return QN_CU(s->gpu, who, set_16, (w->dst, half, w->bytes / 2, s->handle), err);
    }
    memcpy(&word, w->element, sizeof word);
    return QN_CU(s->gpu, who, set_32, (w->dst, word, w->bytes / 4, s->handle), err);
}

qn_status qn__cuda_set(const qn_copier *p, const qn_view *v, char *first,
                       const unsigned char *element, int64_t element_bytes, int64_t bytes,
                       qn_error *err)
{
    driver_work w = {.p = p,
                     .view = {v, NULL},
                     .give = give_set,
                     .dst = address(first),
                     .bytes = (size_t)bytes,
                     .element = element,
                     .element_bytes = element_bytes};
    if (!is_on_gpu(v))
        return qn__fail(err, QN_ERR_SPACE, "%s: view \"%s\": a GPU does not reach space %s", p->who,
                        qn__label(v->label), qn_space_name(v->space));
    return give_work(&w, err);
}

/* ---------------------------------------------------------------- through other memory */

/** A dense view of the extents of `like`, in their order, with its elements. */
static qn_status new_dense(const qn_copier *p, int space, qn_stream *home, const qn_view *like,
                           qn_view *out, qn_error *err)
{
    int64_t extents[QN_MAX_RANK];
    qn_layout l;
    const qn_alloc_options o = {
        .bytes = sizeof o, .uninitialised = 1, .space = space, .stream = home};
    for (int d = 0; d < like->layout.rank; d++)
        extents[d] = like->layout.dim[d].extent;
    qn_status status = qn_layout_right(like->layout.rank, extents, &l, err);
    return status ? status
                  : qn__allocate(p->who, p->context, "staging", like->dtype, like->record, &l, &o,
                                 out, err);
}

/** Copies on the host's side of a piece; it has waited for the GPU where it must. */
static qn_status copy_on_host(const qn_copier *p, const qn_view *dst, const qn_view *src,
                              qn_error *err)
{
    int executor = p->context->options.default_executor;
    return qn__copy(p->who, p->context, executor, dst, src, err);
}

static qn_status wait_for_stream(const qn_copier *p, qn_error *err)
{
    return qn__cuda_hand_back(p, QN_OK, err);
}

/** Between the host and a GPU, each of which does half, where the layouts have no common shape. The
 * memory between them is new, kept by the work. */
static qn_status stage_all(const qn_copier *p, const qn_view *dst, const qn_view *src,
                           qn_error *err)
{
    qn_view between = {0};
    qn_status status = new_dense(p, QN_SPACE_CUDA_PINNED, NULL, src, &between, err);
    if (status)
        return status;
    if (is_on_gpu(dst)) {
        status = copy_on_host(p, &between, src, err);
        if (status == QN_OK)
            status = qn__cuda_copy(p, dst, &between, err);
    } else {
        status = qn__cuda_copy(p, &between, src, err);
        if (status == QN_OK)
            status = wait_for_stream(p, err);
        if (status == QN_OK)
            status = copy_on_host(p, dst, &between, err);
    }
    qn_view_release(&between);
    return status;
}

/** Between two GPUs: dense memory on each side, where a side is not dense. */
static qn_status copy_between(const qn_copier *p, const qn_view *dst, const qn_view *src,
                              qn_error *err)
{
    qn_view here = {0}, there = {0};
    qn_copier on_src = *p, on_dst = *p;
    on_src.stream = qn__cuda_gpu(src)->own;
    on_dst.stream = qn__cuda_gpu(dst)->own;
    bool is_foreign =
        on_src.stream->gpu->owner != p->context || on_dst.stream->gpu->owner != p->context;
    if (is_foreign)
        return qn__fail(err, QN_ERR_UNSUPPORTED,
                        "%s: dst \"%s\" and src \"%s\" are on two devices and of other contexts",
                        p->who, qn__label(dst->label), qn__label(src->label));
    qn_status status = new_dense(p, QN_SPACE_CUDA, on_src.stream, src, &there, err);
    if (status == QN_OK)
        status = new_dense(p, QN_SPACE_CUDA, on_dst.stream, dst, &here, err);
    if (status == QN_OK) /* what was given to the copier's stream comes first */
        status = wait_for_stream(p, err);
    if (status == QN_OK)
        status = qn__cuda_copy(&on_src, &there, src, err);
    if (status == QN_OK)
        status = wait_for_stream(&on_src, err);
    if (status == QN_OK)
        status = copy_run(&on_dst, &here, &there, here.data, there.data,
                          qn_layout_size(&here.layout) * qn__element_bytes(&here), err);
    if (status == QN_OK)
        status = qn__cuda_copy(&on_dst, dst, &here, err);
    if (status == QN_OK)
        status = wait_for_stream(&on_dst, err);
    qn_view_release(&here);
    qn_view_release(&there);
    return status;
}

/** A conversion between host and GPU: first a copy to dst's side. */
static qn_status convert_there(const qn_copier *p, const qn_view *dst, const qn_view *src,
                               qn_error *err)
{
    qn_view there = {0};
    qn_stream *home = dst->space == QN_SPACE_CUDA && p->stream->is_own ? p->stream : NULL;
    qn_status status = new_dense(p, dst->space, home, src, &there, err);
    if (status == QN_OK)
        status = qn__cuda_copy(p, &there, src, err);
    if (status == QN_OK && is_on_gpu(dst)) {
        status = qn__copy_launch(p, dst, &there, 0, err);
    } else if (status == QN_OK) {
        status = wait_for_stream(p, err);
        if (status == QN_OK)
            status = qn_convert_copy(p->context, QN_EXECUTOR_DEFAULT, dst, &there, err);
    }
    qn_view_release(&there);
    return status;
}

/* ---------------------------------------------------------------- all */

/** Whether dst and src are device memory of two GPUs. */
static bool are_apart(const qn_view *dst, const qn_view *src)
{
    const qn_gpu *a = qn__cuda_gpu(dst), *b = qn__cuda_gpu(src);
    return a && b && a->device != b->device && dst->space == QN_SPACE_CUDA &&
           src->space == QN_SPACE_CUDA;
}

/** Copies a shape between host and GPU that is not one run on both sides. */
static qn_status copy_shape(const qn_copier *p, const qn_copy_shape *s, const qn_view *dst,
                            const qn_view *src, qn_error *err)
{
    driver_work w;
    if (!find_rows(p, s, &w))
        return qn__cuda_stage(p, s, dst, src, is_on_gpu(dst), err);
    w.view[0] = dst;
    w.view[1] = src;
    return give_work(&w, err);
}

/** Copies on one GPU, or between host and GPU. `is_one_gpu`: the GPU reaches both sides. */
static qn_status copy_here(const qn_copier *p, bool is_one_gpu, const qn_view *dst,
                           const qn_view *src, qn_error *err)
{
    qn_copy_shape s;
    bool has_shape = !dst->unit && !src->unit && qn__copy_shape(dst, src, &s);
    if (has_shape && qn__copy_is_run(&s, s.dst_stride) && qn__copy_is_run(&s, s.src_stride))
        return copy_run(p, dst, src, s.dst, s.src, (s.rank ? s.extent[0] : 1) * s.dst_bytes, err);
    if (!is_one_gpu)
        return has_shape ? copy_shape(p, &s, dst, src, err) : stage_all(p, dst, src, err);
    if (!has_shape)
        return qn__copy_launch(p, dst, src, 0, err);
    qn_view to = qn__copy_side(&s, dst, true), from = qn__copy_side(&s, src, false);
    return qn__copy_launch(p, &to, &from, 0, err);
}

qn_status qn__cuda_copy(const qn_copier *p, const qn_view *dst, const qn_view *src, qn_error *err)
{
    bool is_apart = are_apart(dst, src), is_one_gpu = is_on_gpu(dst) && is_on_gpu(src) && !is_apart;
    bool is_copy = dst->dtype == src->dtype;
    int64_t begin, end;
    if (!is_on_gpu(dst) && !is_on_gpu(src))
        return qn__fail(err, QN_ERR_SPACE, "%s: dst \"%s\" and src \"%s\" are both in space host",
                        p->who, qn__label(dst->label), qn__label(src->label));
    if (!is_copy)
        return is_one_gpu ? qn__copy_launch(p, dst, src, 0, err) : convert_there(p, dst, src, err);
    if (!dst->unit && !src->unit && qn__layout_equal(&dst->layout, &src->layout) &&
        qn_layout_is_contiguous(&dst->layout)) {
        qn__view_bytes(dst, &begin, &end);
        return copy_run(p, dst, src, (char *)dst->data + begin, (const char *)src->data + begin,
                        end - begin, err);
    }
    return is_apart ? copy_between(p, dst, src, err) : copy_here(p, is_one_gpu, dst, src, err);
}

qn_status qn__cuda_read(const char *who, const qn_view *v, void *element, qn_error *err)
{
    qn_gpu *g = qn__cuda_gpu(v);
    qn_view to = {.data = element, .dtype = v->dtype, .record = v->record, .space = QN_SPACE_HOST};
    if (!g)
        return qn__fail(err, QN_ERR_SPACE, "%s: view \"%s\": the host does not reach space %s", who,
                        qn__label(v->label), qn_space_name(v->space));
    return qn__copy(who, g->owner, QN_SERIAL, &to, v, err);
}
