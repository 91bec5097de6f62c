/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_team.c: who runs one iteration on a GPU: a thread, or several that share the points of its
 * reduces: as the partials of the striped order say, or, if all reduces are associative, in pieces.
 */
#include "jit/schedule/gpu.h"

#include <string.h>

bool qn__may_share_points(const qn_kernel *k, uint32_t i)
{
    int order = qn__order_rule(k, i);
    return k->inst[i].op == QN_I_REDUCE && (!order || order == QN_STRIPED);
}

bool qn__gpu_may_share(const qn_kernel *k, bool in_pieces)
{
    FOR_REDUCES (k, i)
        if (!qn__enclosing_reduce(k, i) &&
            !(in_pieces ? qn__is_associative(k, i) : qn__may_share_points(k, i)))
            return false;
    return true;
}

/** The number of reduces that stand in no other; `points`: those of the longest. */
static int count_reduces(const gpu_planner *s, int64_t *points)
{
    int n = 0;
    *points = 0;
    FOR_REDUCES (s->k, i) {
        if (qn__enclosing_reduce(s->k, i))
            continue;
        int64_t here = qn__usual_points(s->k, s->f, i);
        *points = here < 0 ? INT64_MAX : here > *points ? here : *points;
        n++;
    }
    return n;
}

bool qn__gpu_wants_blocks(const gpu_planner *s)
{
    enum { ROUNDS = 8 }; /* of a block over a row that are worth its barriers */
    const qn_machine *m = &s->f->machine;
    const int64_t n = qn__gpu_iterations(s);
    int64_t points, held = s->p->n_kept ? m->shared_bytes / s->p->kept_bytes : m->threads / m->warp;
    count_reduces(s, &points);
    for (uint32_t i = s->k->body; i < s->k->n_insts; i = s->k->inst[i].region[2])
        if (s->k->inst[i].op == QN_I_FOR || s->k->inst[i].op == QN_I_WHILE)
            return false; /* whose trips the lanes of a warp share */
    held = n >= 0 && n / m->multiprocessors < held ? n / m->multiprocessors : held;
    return points >= ROUNDS * QN_BLOCK_THREADS &&
           (!s->p->n_kept || 2 * held * m->warp < m->threads);
}

/** Whether all that a body does is to compute, reduce what nobody writes, and store. */
static bool only_reduces(const gpu_planner *s)
{
    for (uint32_t i = s->k->body; i < s->k->n_insts; i++) {
        const qn_inst *x = &s->k->inst[i];
        if (x->op == QN_I_FOR || x->op == QN_I_WHILE || x->op == QN_I_ATOMIC ||
            (x->op == QN_I_LOAD && !s->f->param[x->imm].is_constant_memory) ||
            (qn__is_access(x) && qn__is_checked(s->f, s->k, qn__site_of(s->k, i))))
            return false;
    }
    return true;
}

/** Whether neighbouring partials of all reduces are sums of what one access loads. */
static bool are_pairs(const gpu_planner *s)
{
    bool has_loads = false;
    FOR_ACCESSES (s->k, n, i) {
        const uint32_t r = s->k->inst[i].parent;
        const int d = r ? qn__dim_of(s->k, r, 0) : -1;
        int64_t stride;
        if (!r)
            continue;
        if (s->k->inst[r].op != QN_I_REDUCE || s->k->inst[r].n_args != 1 ||
            s->k->inst[i].op != QN_I_LOAD || qn__is_checked(s->f, s->k, n) ||
            !qn__access_stride(&s->a, i, d, &stride) ||
            (stride && (s->f->begin[d].kind != QN_FACT_EXACT ||
                        !qn__gpu_is_aligned(s, n, d, 2, s->f->begin[d].value))))
            return false;
        has_loads |= stride != 0;
    }
    return has_loads;
}

void qn__gpu_choose_warps(const gpu_planner *s)
{
    enum { MOST_WARPS = 16 };
    qn_grid *p = s->p;
    const qn_machine *m = &s->f->machine;
    const int64_t n = qn__gpu_iterations(s), room = (int64_t)m->multiprocessors * m->threads / 2;
    int64_t points;
    count_reduces(s, &points);
    p->has_pairs =
        (p->team == QN_TEAM_WARP || p->team == QN_TEAM_GRID) && !p->n_kept && are_pairs(s);
    if (p->team == QN_TEAM_GRID)
        p->warps = 2 * MOST_WARPS; /* of the block that combines what all blocks leave */
    if (p->team != QN_TEAM_WARP || p->n_kept || p->rest_dims || s->has_assertions || n < 1 ||
        points == INT64_MAX || !only_reduces(s))
        return;
    int32_t warps = 1;
    while (warps < MOST_WARPS && 2 * warps * n * m->warp <= room &&
           warps * QN_BLOCK_POINTS < points)
        warps *= 2;
    if (warps == 1)
        return;
    p->warps = warps;
    for (int d = 0; d < s->k->n_dims; d++) {
        p->block[d] = qn__is_parallel(s->k, d) ? 1 : p->block[d];
        p->threads[d] = 1;
    }
    p->axis[0] = p->axis[1] = p->axis[2] = -1;
}

/** The reduce at the top in which an instruction stands, 0 if none. */
static uint32_t outermost_reduce(const qn_kernel *k, uint32_t i)
{
    uint32_t found = 0;
    for (; i; i = k->inst[i].parent)
        if (k->inst[i].op == QN_I_REDUCE)
            found = i;
    return found;
}

/** Cost of what is read in reduces if neighbouring threads take neighbouring points, or
 * neighbouring iterations. */
static void compare_costs(const gpu_planner *s, int lanes, double *points, double *iterations)
{
    *points = *iterations = 0;
    FOR_ACCESSES (s->k, n, i) {
        uint32_t r = outermost_reduce(s->k, i);
        if (!r)
            continue;
        *points += qn__gpu_access_cost(s, i, qn__dim_of(s->k, r, s->k->inst[r].n_args - 1));
        *iterations += lanes < 0 ? GPU_COST_APART : qn__gpu_access_cost(s, i, lanes);
    }
}

/* Iterations for each multiprocessor that leave threads idle. */
enum { FEW_ITERATIONS = 128, FEW_POINTS = 64 };
/* Blocks of 4096 points that are worth a second kernel. */
enum { FEW_BLOCKS = 2 };

bool qn__gpu_may_divide(const gpu_planner *s)
{
    int64_t points;
    const int n_reduces = count_reduces(s, &points);
    bool may_be = n_reduces > 0 && !s->has_assertions && points >= FEW_BLOCKS * QN_BLOCK_POINTS;
    FOR_TOP_REDUCES (s->k, i) {
        const bool is_in_order = !qn__may_share_points(s->k, i);
        may_be &=
            !is_in_order || (qn__order_rule(s->k, i) == QN_INDEXED && s->k->inst[i].n_args == 1);
    }
    return may_be && qn__are_independent(s->k, n_reduces);
}

int qn__gpu_choose_team(const gpu_planner *s, int lanes)
{
    int64_t points, iterations = qn__gpu_iterations(s);
    const int n_reduces = count_reduces(s, &points);
    double by_points, by_iterations;
    int wanted = s->f->plan.team;
    bool is_wanted = wanted == QN_TEAM_WARP || wanted == QN_TEAM_GRID;
    const bool in_pieces = lanes >= 0 && qn__gpu_may_share(s->k, true);
    if (lanes < 0 && wanted == QN_TEAM_NONE && qn__gpu_may_divide(s))
        return QN_TEAM_GRID;
    if (!n_reduces || !(in_pieces || qn__gpu_may_share(s->k, false)) ||
        (points < FEW_POINTS && !is_wanted) || (wanted != QN_TEAM_NONE && !is_wanted))
        return QN_TEAM_THREAD;
    if (lanes < 0)
        return qn__are_independent(s->k, n_reduces) ? QN_TEAM_GRID : QN_TEAM_WARP;
    if (wanted == QN_TEAM_WARP)
        return wanted;
    compare_costs(s, lanes, &by_points, &by_iterations);
    bool are_few = iterations >= 0 && iterations < FEW_ITERATIONS * s->f->machine.multiprocessors;
    return by_points < by_iterations * (are_few ? 4 : 1) ? QN_TEAM_WARP : QN_TEAM_THREAD;
}
