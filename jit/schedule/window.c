/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.c: reduces of few points that are emitted one beside the other, so that an element which
 * several points or jammed iterations read is loaded once: sums of windows, filters, pooling.
 */
#include "jit/schedule/plan.h"

#include <string.h>

enum { MOST_POSITIONS = 64 };

/** Points and jammed iterations of a window move one index of a load: how many positions of that
 * index there are, of n by m steps; n * m: all differ, or they are too many to count. */
static int64_t positions(int64_t n, int64_t step, int64_t m, int64_t other)
{
    int64_t seen[MOST_POSITIONS];
    int count = 0;
    if (n * m > MOST_POSITIONS)
        return n * m;
    for (int64_t i = 0; i < n * m; i++) {
        int64_t at = i / m * step + i % m * other;
        int found = 0;
        while (found < count && seen[found] != at)
            found++;
        if (found == count)
            seen[count++] = at;
    }
    return count;
}

double qn__window_share(const qn_analysis *a, uint32_t i, int lane_dim, int jam_dim, int64_t jam)
{
    const qn_kernel *k = a->k;
    uint32_t reduce = qn__enclosing_reduce(k, i);
    double share = 1;
    for (int n = 0; reduce && n < k->inst[reduce].n_args; n++) {
        int d = qn__dim_of(k, reduce, n);
        int64_t trips = qn__trips(a->f, d), step, lanes;
        for (int r = 0; r < qn__n_indices(k, i) && jam_dim >= 0; r++) {
            const qn_affine *x = &a->affine[qn__args(k, i)[r]];
            if (x->coef[d] && x->coef[jam_dim])
                share *= (double)positions(trips, x->coef[d], jam, x->coef[jam_dim]) /
                         (double)(trips * jam);
        }
        if (qn__access_stride(a, i, d, &step) && step == 1 &&
            qn__access_stride(a, i, lane_dim, &lanes) && lanes > 1 &&
            qn__is_small_stride(lanes)) /* loads are shared, permutations are not */
            share *= 0.5 + 0.5 * (double)((trips + lanes - 1) / lanes) / (double)trips;
    }
    return share;
}

bool qn__plan_unrolls_points(const qn_analysis *a, const qn_plan *p, uint32_t reduce)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[reduce];
    int64_t points = qn__points(k, a->f, reduce), parts = (int64_t)p->unroll * p->jam * p->cross;
    if (a->f->target->has_grid || p->lane_dim < 0 || !qn__is_parallel(k, p->lane_dim) ||
        x->parent || points < 2 || points * parts > p->straight ||
        qn__order_rule(k, reduce) == QN_STRIPED)
        return false;
    bool is_shared = false;
    for (uint32_t i = x->region[0]; i < x->region[1]; i++) {
        if (k->inst[i].region[2] != i + 1)
            return false;
        is_shared |= k->inst[i].op == QN_I_LOAD &&
                     qn__window_share(a, i, p->lane_dim, p->jam > 1 ? p->jam_dim : -1, p->jam) < 1;
    }
    return is_shared;
}
