/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c: the order of the loops on a processor, once lanes and jam are chosen.
 */
#include "jit/schedule/plan.h"

#include <string.h>

typedef struct nest {
    const qn_kernel *k;
    const qn_facts *f;
    const qn_analysis *a;
    bool has_tile;
    qn_plan *p;
} nest;

double qn__distance(const qn_analysis *a, uint32_t i, int d)
{
    const qn_kernel *k = a->k;
    int64_t stride;
    double far = 0;
    if (qn__access_stride(a, i, d, &stride))
        return stride < 0 ? -(double)stride : (double)stride;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        int32_t reach = a->f->param[k->inst[i].imm].dim[r].reach;
        if ((a->value[qn__args(k, i)[r]].deps >> d & 1) && reach)
            far += (double)(UINT64_C(1) << (3 * reach));
    }
    return far;
}

/** How far accesses move along d: the larger, the further out. */
static double reach(const nest *s, int d)
{
    double sum = 0;
    FOR_ACCESSES (s->k, n, i)
        sum += (s->k->inst[i].op == QN_I_LOAD ? 1 : 2) * qn__distance(s->a, i, d);
    return sum;
}

/** Parallel dimensions from place `first` on, those that move furthest outermost: batches or what
 * is not one (with a register tile), without the lanes and what is jammed in a tile. The next
 * place. */
static int order_by_reach(const nest *s, int first, bool batches)
{
    qn_plan *p = s->p;
    double far[QN_MAX_RANK] = {0};
    int n = first;
    for (int d = 0; d < s->k->n_dims; d++) {
        if (!qn__is_parallel(s->k, d) || d == p->lane_dim || (s->has_tile && d == p->jam_dim) ||
            d == p->cross_dim || (s->has_tile && qn__is_batch(s->a, d)) != batches)
            continue;
        far[d] = s->f->is_ordered || !s->a->value ? 0 : reach(s, d);
        int at = n++;
        while (at > first && far[p->order[at - 1]] < far[d]) {
            p->order[at] = p->order[at - 1];
            at--;
        }
        p->order[at] = d;
    }
    return n;
}

/** Batches outermost, so that what one of them shares is used up before the next; if the lanes are
 * one, then what is jammed, because what a tile loads for its jammed iterations is most, and stays
 * for all others, of which a third dimension of the tile is last. Of the others the lanes are last,
 * and in a register tile what is jammed: then what the lanes load serves one tile after another
 * from the nearest cache. */
static void choose_order(const nest *s)
{
    qn_plan *p = s->p;
    bool has_lanes = qn__is_parallel(s->k, p->lane_dim);
    bool has_jam = s->has_tile && p->jam_dim >= 0;
    bool are_lanes_batch = s->has_tile && has_lanes && qn__is_batch(s->a, p->lane_dim);
    int n = 0;
    for (int d = 0; d < s->k->n_dims; d++)
        if (qn__dim_kind(s->k, d) == QN_DIM_SEQUENTIAL)
            p->order[n++] = d;
    n = order_by_reach(s, n, true);
    for (int is_last = 0; is_last < 2; is_last++) {
        if (has_lanes && are_lanes_batch != is_last)
            p->order[n++] = p->lane_dim;
        if (has_jam && (are_lanes_batch || qn__is_batch(s->a, p->jam_dim)) != is_last)
            p->order[n++] = p->jam_dim;
        if (is_last && p->cross_dim >= 0)
            p->order[n++] = p->cross_dim;
        if (!is_last)
            n = order_by_reach(s, n, false);
    }
    p->n_loops = n;
}

/** The caller's order of the parallel loops; the lanes are innermost if they are not named. Their
 * number, 0 if not each of them is named. */
static int find_wanted_order(const qn_kernel *k, const qn_facts *f, int lane_dim, int32_t *order)
{
    uint32_t left = 0;
    int n = 0;
    for (int d = 0; d < k->n_dims; d++)
        left |= qn__is_parallel(k, d) ? 1u << d : 0;
    for (int m = 0; m < QN_MAX_RANK; m++) {
        int d = f->plan.order[m] - 1;
        if (d < 0 || !(left >> d & 1))
            continue;
        left &= ~(1u << d);
        order[n++] = d;
    }
    if (lane_dim >= 0 && left == 1u << lane_dim) {
        left = 0;
        order[n++] = lane_dim;
    }
    return left || f->is_ordered ? 0 : n;
}

bool qn__may_lanes_be_inner(const qn_kernel *k, const qn_facts *f, int lane_dim)
{
    int32_t order[QN_MAX_RANK];
    int n = find_wanted_order(k, f, lane_dim, order);
    return n == 0 || order[n - 1] == lane_dim;
}

void qn__plan_order(const qn_analysis *a, bool has_tile, qn_plan *p)
{
    const nest s = {a->k, a->f, a, has_tile, p};
    int32_t order[QN_MAX_RANK];
    int n = find_wanted_order(a->k, a->f, p->lane_dim, order);
    choose_order(&s);
    memcpy(p->order + p->n_loops - n, order,
           (size_t)n * sizeof *order); /* sequential ones stay outermost */
}
