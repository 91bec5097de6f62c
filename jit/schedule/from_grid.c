/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_grid.c: the grid of a GPU as a schedule, made by transformations of the kernel as declared.
 * What goes through shared memory is left out, as the tree has no words for that yet.
 */
#include "jit/schedule/from_plan.h"
#include "jit/schedule/from_plan_parts.h"
#include "jit/schedule/grid.h"

#include <string.h>

static void bind(maker *m, qn_axis a, int role)
{
    qn__step(m, &(qn_step){.which = QN_DO_bind,
                           .n_axes = 1,
                           .axis[0] = a,
                           .option = (uint8_t)(role - QN_ROLE_GRID)});
}

/** The grid, then what a block takes, then its threads, then what a thread takes at once. */
static void cut_blocks(maker *m, const qn_grid *p)
{
    for (int n = 0; n < p->n_loops; n++) {
        int d = p->order[n];
        int64_t at_once = qn__grid_at_once(p, d), threads = p->threads[d] > 1 ? p->threads[d] : 1;
        bool is_axis = d == p->axis[0] || d == p->axis[1] || d == p->axis[2];
        threads = is_axis ? threads : 1;
        int64_t steps = p->block[d] > at_once * threads ? p->block[d] / (at_once * threads) : 1;
        if (!qn__is_parallel(m->x->k, d) || p->block[d] == 0)
            continue;
        qn__cut(m, d, 3, (int64_t[]){steps, threads, at_once}, 1, QN_TAIL_MASK);
        bind(m, m->of[d].digit[0], QN_ROLE_GRID);
        if (threads > 1)
            bind(m, m->of[d].digit[m->of[d].n - 1 - (at_once > 1)], QN_ROLE_BLOCK);
    }
}

/** The dimensions in their order, and inside of them the iterations that a thread computes at once.
 */
static void order_loops(maker *m, const qn_grid *p)
{
    const int inside[2] = {p->tall_dim, p->wide_dim};
    qn_step order = {.which = QN_DO_reorder};
    for (int n = 0; n < p->n_loops; n++) {
        const pieces *x = &m->of[p->order[n]];
        for (int i = 0; i < x->n - x->n_inner; i++)
            qn__add_axis(&order, x->digit[i]);
    }
    qn__order_loops(m, &order, inside, 2);
    for (int n = 0; n < m->n_inner; n++)
        qn__step_on(m, QN_DO_unroll, m->inner[n]);
    for (int n = m->n_inner - 1; n >= 0; n--)
        qn__move_inside(m, m->inner[n]);
}

/** The points of a warp's reduces are shared by its lanes, those of a whole kernel by all blocks.
 */
static void share_points(maker *m, const qn_grid *p)
{
    const qn_kernel *k = m->x->k;
    bool is_shared = p->team == QN_TEAM_WARP || p->team == QN_TEAM_GRID;
    const int64_t extent[2] = {128, 32};
    qn_axis part[3] = {{0}};
    FOR_TOP_REDUCES (k, i) {
        int d = qn__dim_of(k, i, k->inst[i].n_args - 1);
        if (!is_shared || !qn__may_share_points(k, i))
            continue;
        bool is_grid = p->team == QN_TEAM_GRID && k->inst[i].n_args == 1;
        qn__split(m, qn__axis_over(m->s, i, d), 1 + is_grid, extent + !is_grid, QN_TAIL_SCALAR,
                  part);
        bind(m, part[1 + is_grid], QN_ROLE_THREAD);
        if (is_grid)
            bind(m, part[0], QN_ROLE_GRID);
    }
}

qn_status qn__schedule_of_grid(const qn_analysis *x, const qn_grid *p, qn_schedule *out,
                               qn_error *err)
{
    maker m = {.x = x, .s = out, .err = err};
    m.status = qn__schedule_begin(x, out, err);
    out->straight = p->straight == qn__plan_straight(x->k, x->f) ? -1 : p->straight;
    qn__pieces_begin(&m);
    cut_blocks(&m, p);
    order_loops(&m, p);
    share_points(&m, p);
    return m.status == QN_OK ? qn__schedule_derive(x, out, err) : m.status;
}
