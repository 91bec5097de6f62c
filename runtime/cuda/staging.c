/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staging.c: copies between the host and a GPU of which each does half, with the elements in pinned
 * memory between them, dense and in the order of dst. Large ones go in pieces through two pieces of
 * pinned memory, so that the host packs or unpacks one while the GPU moves the other. Pieces stay
 * with the GPU for the next copy: to pin memory takes longer than to fill it.
 */
#include "runtime/cuda/copy.h"

#include "runtime/context.h"

#include <string.h>

enum { PIECE_BYTES = 8 << 20, N_PIECES = 2 };

/** Pinned memory of PIECE_BYTES; in the list of its GPU while nobody has it. */
struct qn_piece {
    struct qn_piece *next;
    qn_gpu *gpu;
    void *data, *event; /* of the driver; after what was given last */
};

/** A copy in pieces. */
typedef struct staging {
    const qn_copier *p;
    const qn_view *dst, *src; /* of which the shape is */
    bool is_up;
    int n; /* pieces given so far */
    qn_piece *piece[N_PIECES];
    qn_view to[N_PIECES], between[N_PIECES]; /* down: what is to be unpacked */
    bool is_waiting[N_PIECES];
} staging;

/* ---------------------------------------------------------------- pieces */

static void free_piece(qn_piece *x)
{
    qn_gpu *g = x->gpu;
    bool is_pushed;
    if (qn__gpu_enter(g, "", &is_pushed, NULL) == QN_OK) {
        if (x->event)
            g->cuda->api.event_destroy(x->event);
        if (x->data)
            g->cuda->api.host_free(x->data);
        qn__gpu_leave(g, is_pushed);
    }
    qn__free(x);
}

void qn__gpu_pieces_release(qn_gpu *g)
{
    pthread_mutex_lock(&g->lock);
    qn_piece *list = g->pieces;
    g->pieces = NULL;
    pthread_mutex_unlock(&g->lock);
    while (list) {
        qn_piece *next = list->next;
        free_piece(list);
        list = next;
    }
}

/** Gives a piece back, for qn__stream_keep too: nothing uses it any more. */
static void give_back(void *what)
{
    qn_piece *x = what;
    pthread_mutex_lock(&x->gpu->lock);
    x->next = x->gpu->pieces;
    x->gpu->pieces = x;
    pthread_mutex_unlock(&x->gpu->lock);
}

static qn_status make_piece(qn_gpu *g, const char *who, qn_piece **out, qn_error *err)
{
    qn_piece *x = qn__zalloc(1, sizeof *x);
    bool is_pushed;
    if (!x)
        return qn__fail(err, QN_ERR_MEMORY, "%s: device %d: no memory", who, g->device);
    x->gpu = g;
    qn_status status = qn__gpu_enter(g, who, &is_pushed, err);
    if (status == QN_OK) {
        status = QN_CU(g, who, host_alloc,
                       (&x->data, PIECE_BYTES, QN_CU_HOST_PORTABLE | QN_CU_HOST_MAPPED), err);
        if (status == QN_OK)
            status = QN_CU(g, who, event_create, (&x->event, QN_CU_EVENT_NO_TIMING), err);
        qn__gpu_leave(g, is_pushed);
    }
    if (status)
        free_piece(x);
    else
        *out = x;
    return status;
}

static qn_status take_piece(qn_gpu *g, const char *who, qn_piece **out, qn_error *err)
{
    pthread_mutex_lock(&g->lock);
    qn_piece *x = g->pieces;
    if (x)
        g->pieces = x->next;
    pthread_mutex_unlock(&g->lock);
    *out = x;
    return x ? QN_OK : make_piece(g, who, out, err);
}

/** Notes that everything given so far uses a piece, or waits for what used it. */
static qn_status mark_piece(const staging *s, const qn_piece *x, bool wait, qn_error *err)
{
    qn_gpu *g = x->gpu;
    bool is_pushed;
    qn_status status = qn__gpu_enter(g, s->p->who, &is_pushed, err);
    if (status == QN_OK && wait)
        status = QN_CU(g, s->p->who, event_sync, (x->event), err);
    else if (status == QN_OK)
        status = QN_CU(g, s->p->who, event_record, (x->event, s->p->stream->handle), err);
    qn__gpu_leave(g, is_pushed);
    return status;
}

/* ---------------------------------------------------------------- one piece */

/** Copies on the host's side of a piece. */
static qn_status copy_on_host(const qn_copier *p, const qn_view *dst, const qn_view *src,
                              qn_error *err)
{
    return qn__copy(p->who, p->context, p->context->options.default_executor, dst, src, err);
}

/** A dense view of a piece's memory with the extents and elements of `like`. */
static qn_status view_piece(const qn_piece *x, const qn_view *like, qn_view *out, qn_error *err)
{
    int64_t extents[QN_MAX_RANK];
    for (int d = 0; d < like->layout.rank; d++)
        extents[d] = like->layout.dim[d].extent;
    *out = (qn_view){.data = x->data,
                     .dtype = like->dtype,
                     .record = like->record,
                     .space = QN_SPACE_CUDA_PINNED,
                     .label = "staging"};
    return qn_layout_right(like->layout.rank, extents, &out->layout, err);
}

/** Unpacks what piece number n was filled with. */
static qn_status unpack(staging *s, int n, qn_error *err)
{
    if (!s->is_waiting[n])
        return QN_OK;
    s->is_waiting[n] = false;
    qn_status status = mark_piece(s, s->piece[n], true, err);
    return status ? status : copy_on_host(s->p, &s->to[n], &s->between[n], err);
}

/** Gives one part of the copy. The host's half of the part before is done meanwhile, if it is the
 * second. */
static qn_status give_part(staging *s, const qn_view *to, const qn_view *from, qn_error *err)
{
    int n = s->n++ % N_PIECES;
    bool is_new = !s->piece[n];
    qn_status status = is_new ? take_piece(s->p->stream->gpu, s->p->who, &s->piece[n], err) : QN_OK;
    if (status == QN_OK)
        status = view_piece(s->piece[n], from, &s->between[n], err);
    if (status == QN_OK && s->is_up && !is_new)
        status = mark_piece(s, s->piece[n], true, err);
    if (status == QN_OK && s->is_up)
        status = copy_on_host(s->p, &s->between[n], from, err);
    if (status == QN_OK)
        status = s->is_up ? qn__cuda_copy(s->p, to, &s->between[n], err)
                          : qn__cuda_copy(s->p, &s->between[n], from, err);
    if (status == QN_OK)
        status = mark_piece(s, s->piece[n], false, err);
    if (status || s->is_up)
        return status;
    s->to[n] = *to;
    s->is_waiting[n] = true;
    return unpack(s, (n + 1) % N_PIECES, err);
}

/** The part [first, first + n) of dimension d. */
static void cut_part(const qn_copy_shape *s, int d, int64_t first, int64_t n, qn_copy_shape *out)
{
    *out = *s;
    out->extent[d] = n;
    out->dst += first * s->dst_stride[d] * s->dst_bytes;
    out->src += first * s->src_stride[d] * s->src_bytes;
}

/** A shape in parts of no more than PIECE_BYTES, along dimension d and those behind it. */
static qn_status give_parts(staging *g, const qn_copy_shape *s, int d, qn_error *err)
{
    int64_t bytes = s->dst_bytes;
    for (int k = 0; k < s->rank; k++)
        bytes = bytes > INT64_MAX / s->extent[k] ? INT64_MAX : bytes * s->extent[k];
    if (bytes <= PIECE_BYTES) {
        qn_view to = qn__copy_side(s, g->dst, true), from = qn__copy_side(s, g->src, false);
        return give_part(g, &to, &from, err);
    }
    int64_t each = bytes / s->extent[d], n = each >= PIECE_BYTES ? 1 : PIECE_BYTES / each;
    qn_status status = QN_OK;
    for (int64_t i = 0; i < s->extent[d] && status == QN_OK; i += n) {
        qn_copy_shape part;
        int64_t left = s->extent[d] - i;
        cut_part(s, d, i, left < n ? left : n, &part);
        status = give_parts(g, &part, d + 1, err);
    }
    return status;
}

/* ---------------------------------------------------------------- all of it */

/** Lets the work of the stream keep the pieces, or, where it cannot, waits for it. */
static qn_status leave_pieces(staging *s, qn_error *err)
{
    qn_stream *stream = s->p->stream;
    bool is_pushed = false;
    qn_status status = qn__gpu_enter(stream->gpu, s->p->who, &is_pushed, err), begun = status;
    if (status == QN_OK)
        begun = status = qn__stream_begin(stream, s->p->who, N_PIECES, NULL, NULL, err);
    if (begun)
        (void)qn__stream_wait(stream, "", NULL);
    for (int n = 0; n < N_PIECES; n++) {
        if (s->piece[n] && begun == QN_OK)
            qn__stream_keep(stream, give_back, s->piece[n]);
        else if (s->piece[n])
            give_back(s->piece[n]);
    }
    if (begun == QN_OK)
        qn__stream_end(stream);
    qn__gpu_leave(stream->gpu, is_pushed);
    return status;
}

qn_status qn__cuda_stage(const qn_copier *p, const qn_copy_shape *shape, const qn_view *dst,
                         const qn_view *src, bool is_up, qn_error *err)
{
    staging s = {.p = p, .dst = dst, .src = src, .is_up = is_up};
    qn_status status = give_parts(&s, shape, 0, err);
    for (int n = 0; n < N_PIECES && status == QN_OK;
         n++) /* the last part is the only one that may wait */
        status = unpack(&s, n, err);
    qn_status left = leave_pieces(&s, status ? NULL : err);
    return status ? status : left;
}
