/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_rest.c: dimensions on which no reduce depends. A reduce is one number for all their
 * iterations, as the sum of a row by which each element of the row is divided. A team computes the
 * reduces once, and its threads divide the rest: the iterations of these dimensions. The team is a
 * warp where its lanes may share the points of all reduces, else a block (schedule/gpu_block.c). Or
 * it is one thread, where rows are short; or all blocks, where no dimension is left.
 */
#include "jit/schedule/gpu.h"
#include "jit/analysis/distribute.h"

#include <string.h>

/** The loops with the dimensions of the rest inside of all others. */
static void move_rest_inside(qn_grid *p)
{
    int order[QN_MAX_RANK], n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int at = 0; at < p->n_loops; at++)
            if ((p->rest_dims >> p->order[at] & 1) == (uint32_t)pass)
                order[n++] = p->order[at];
    memcpy(p->order, order, (size_t)n * sizeof order[0]);
}

bool qn__gpu_choose_rest(const gpu_planner *s)
{
    qn_grid *p = s->p, before = *p;
    int wanted = s->f->plan.team;
    if (s->has_assertions || wanted == QN_TEAM_THREAD || s->f->plan.distribute < 0)
        return false;
    p->rest_dims = qn__shared_dims(&s->a, !s->is_alone);
    if (!p->rest_dims)
        return false;
    move_rest_inside(p);
    const int lanes = qn__gpu_best_lanes(s);
    if (lanes < 0 && !wanted && !s->is_alone && qn__gpu_may_divide(s)) {
        p->team = QN_TEAM_GRID;
        qn__gpu_choose_warps(s);
        qn__gpu_widen_rest(s);
        return true;
    }
    if (s->is_alone) {
        qn__gpu_choose_threads(s, 0);
        qn__gpu_widen_rest(s);
        return true;
    }
    const bool is_of_rest =
        lanes >= 0 && (p->rest_dims >> lanes & 1); /* where a caller asks for it */
    const bool may_be_warp = wanted != QN_TEAM_BLOCK &&
                             (qn__gpu_may_share(s->k, false) || qn__gpu_may_share(s->k, true));
    if (may_be_warp) {
        p->team = QN_TEAM_WARP;
        qn__gpu_choose_kept(s);
    }
    if (wanted != QN_TEAM_WARP && !is_of_rest && qn__gpu_choose_block(s, lanes)) {
        qn__gpu_widen_rest(s);
        return true;
    }
    if (may_be_warp) {
        qn__gpu_choose_threads(s, 0);
        qn__gpu_widen_rest(s);
        return true;
    }
    *p = before;
    return false;
}
