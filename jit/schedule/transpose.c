/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transpose.c: accesses that run along another dimension than the lanes. One that moves far with
 * the lanes, but by one element with a second parallel dimension, is done for a block of both: a
 * vector along the second dimension for each lane, and a transposition in registers. The second
 * dimension is the jammed one then, and the innermost loop.
 *
 * "May this access be transposed?" is asked by the lowering too; "is it worth it?" is not.
 */
#include "jit/analysis/weave.h"
#include "jit/schedule/plan.h"

enum { PIECE_BYTES = QN_CHUNK_BYTES, LIVE_VECTORS = 24, SMALL_BODY = 24, LARGE_BODY = 160,
       STREAM_RATIO = 4, MOST_STREAMS = 8 };

bool qn__is_transposed(const qn_analysis *a, int lanes, int across, uint32_t site)
{
    const qn_kernel *k = a->k;
    uint32_t i = k->access[site].inst;
    const qn_inst *x = &k->inst[i];
    int64_t far, near;
    if (!qn__is_plain_access(k, a->f, i) || x->op == QN_I_ATOMIC || x->parent ||
        (k->param[x->imm].traits & QN_ATOMIC) || PIECE_BYTES % qn__access_bytes(k, i) ||
        qn__is_checked(a->f, k, site))
        return false;
    return qn__access_stride(a, i, lanes, &far) && qn__access_stride(a, i, across, &near) &&
           near == 1 && !qn__is_small_stride(far);
}

int qn__transposed_across(const qn_analysis *a, int lanes, uint32_t i)
{
    const qn_kernel *k = a->k;
    if (!qn__is_parallel(k, lanes) || !qn__is_straight(k, k->body, k->n_insts))
        return -1;
    uint32_t site = qn__site_of(k, i);
    for (int d = 0; d < k->n_dims; d++)
        if (d != lanes && qn__is_parallel(k, d) && qn__trips_or(a->f, d, INT64_MAX) >= 4 &&
            qn__is_transposed(a, lanes, d, site))
            return d;
    return -1;
}

/** Loads and stores that are transposed for a dimension across, and their widest element. */
static int count_transposed(const qn_analysis *a, int lanes, int across, int64_t *widest)
{
    const qn_kernel *k = a->k;
    int count = 0;
    *widest = 1;
    FOR_ACCESSES (k, n, i)
        if (qn__is_transposed(a, lanes, across, n)) {
            int64_t bytes = qn__access_bytes(k, i);
            *widest = bytes > *widest ? bytes : *widest;
            count++;
        }
    return count;
}

/** Moves dimension d inwards to place `to` of the order, unless it is further in: the caller may
 * want it there. */
static void move_inwards(qn_plan *p, int d, int to)
{
    int at = qn__place_of(p, d);
    for (; at < to; at++) {
        p->order[at] = p->order[at + 1];
        p->order[at + 1] = d;
    }
}

/** What moves through memory along the lanes and what is transposed: a view that is read counts 1,
 * one that is written 2. Also how many views run along the lanes. */
static int count_streams(const qn_analysis *a, const qn_plan *p, int across, int *along,
                         int *transposed)
{
    const qn_kernel *k = a->k;
    int views = 0;
    *along = *transposed = 0;
    for (int q = 0; q < k->n_params; q++) {
        bool is_along = false, is_transposed = false;
        FOR_ACCESSES (k, n, i) {
            int64_t stride;
            if (k->inst[i].imm != (uint64_t)q)
                continue;
            is_transposed |= qn__is_transposed(a, p->lane_dim, across, n);
            is_along |= qn__access_stride(a, i, p->lane_dim, &stride) && stride == 1;
        }
        int traffic = k->param[q].is_read + 2 * k->param[q].is_written;
        *along += is_along ? traffic : 0;
        *transposed += is_transposed ? traffic : 0;
        views += is_along;
    }
    return views;
}

/** Where several arrays that are read and written run along the lanes, and one is transposed, the
 * lanes are the innermost loop, so that those arrays are streams: one for each jammed iteration,
 * and not more than are prefetched. */
static bool lanes_carry_most(const qn_analysis *a, qn_plan *p, int across)
{
    int along, transposed, views = count_streams(a, p, across, &along, &transposed);
    if (along < STREAM_RATIO * transposed)
        return false;
    while (p->jam > 2 && p->jam * views > MOST_STREAMS)
        p->jam /= 2;
    return true;
}

void qn__plan_transpose(const qn_analysis *a, qn_plan *p)
{
    const qn_kernel *k = a->k;
    const qn_facts *f = a->f;
    int most = 0, across = -1;
    int64_t widest = 1, bytes;
    uint32_t size = k->n_insts - k->body;
    if (p->lane_dim < 0 || !qn__is_parallel(k, p->lane_dim) || p->jam_dim >= 0 ||
        f->plan.transpose < 0 || f->plan.jam_dim ||
        !qn__is_straight(k, k->body, k->n_insts) || size > LARGE_BODY)
        return;
    for (int d = 0; d < k->n_dims; d++) {
        if (d == p->lane_dim || !qn__is_parallel(k, d) || qn__trips_or(f, d, INT64_MAX) < 4)
            continue;
        int count = count_transposed(a, p->lane_dim, d, &bytes);
        if (count > most) {
            most = count;
            across = d;
            widest = bytes;
        }
    }
    if (across < 0)
        return;
    int32_t piece = (int32_t)(PIECE_BYTES / widest),
            jam = piece < 8 && size <= SMALL_BODY ? 8 : piece;
    while (jam > 2 && (jam * most > LIVE_VECTORS || jam > qn__trips_or(f, across, INT64_MAX)))
        jam /= 2;
    p->jam_dim = across;
    p->jam = jam;
    p->unroll = f->target->vector_bytes < LINE_BYTES && jam * 2 <= LIVE_VECTORS
                    ? 2
                    : 1; /* a cache line of each row */
    while (p->unroll > 1 && (int64_t)p->unroll * p->width > qn__trips_or(f, p->lane_dim, INT64_MAX))
        p->unroll = 1;
    if (lanes_carry_most(a, p, across)) {
        move_inwards(p, across, p->n_loops - 2);
        return;
    }
    p->transpose = p->jam;
    move_inwards(p, across, p->n_loops - 1);
}
