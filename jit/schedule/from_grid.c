/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_grid.c: the grid of a GPU as a schedule, made by transformations of the kernel as declared.
 * What goes through shared memory is left out, as the tree has no words for that yet.
 */
#include "jit/schedule/from_plan.h"
#include "jit/schedule/from_plan_parts.h"
#include "jit/schedule/grid.h"

#include <string.h>

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
        qn__cut(m, d, 3, (int64_t[]){steps, threads, at_once}, 1, "mask");
        qn__step(m, "bind %s role=grid;", m->of[d].name[0]);
        if (threads > 1)
            qn__step(m, "bind %s role=block;", m->of[d].name[m->of[d].n - 1 - (at_once > 1)]);
    }
}

/** The dimensions in their order, and inside of them the iterations that a thread computes at once.
 */
static void order_loops(maker *m, const qn_grid *p)
{
    const int inside[2] = {p->tall_dim, p->wide_dim};
    char text[900] = "";
    int n_loops = 0;
    for (int n = 0; n < p->n_loops; n++) {
        const pieces *x = &m->of[p->order[n]];
        for (int i = 0; i < x->n - x->n_inner; i++, n_loops++)
            qn__add_name(text, sizeof text, x->name[i]);
    }
    for (int n = 0; n < 2; n++)
        if (qn__is_parallel(m->x->k, inside[n]) && m->of[inside[n]].n_inner) {
            const pieces *x = &m->of[inside[n]];
            qn__add_name(text, sizeof text, x->name[x->n - 1]);
            memcpy(m->inner[m->n_inner++], x->name[x->n - 1], NAME_BYTES);
            n_loops++;
        }
    if (n_loops > 1)
        qn__step(m, "reorder%s;", text);
    for (int n = 0; n < m->n_inner; n++)
        qn__step(m, "unroll %s;", m->inner[n]);
    for (int n = m->n_inner - 1; n >= 0; n--)
        qn__move_inside(m, m->inner[n]);
}

/** The points of a warp's reduces are shared by its lanes, those of a whole kernel by all blocks.
 */
static void share_points(maker *m, const qn_grid *p)
{
    const qn_kernel *k = m->x->k;
    bool is_shared = p->team == QN_TEAM_WARP || p->team == QN_TEAM_GRID;
    FOR_TOP_REDUCES (k, i) {
        int d = qn__dim_of(k, i, k->inst[i].n_args - 1);
        if (!is_shared || !qn__may_share_points(k, i))
            continue;
        bool is_grid = p->team == QN_TEAM_GRID && k->inst[i].n_args == 1;
        qn__step(m, "split r%ud%d%s 32 tail=scalar;", i, d, is_grid ? " 128" : "");
        qn__step(m, "bind r%ud%d.%d role=thread;", i, d, 1 + is_grid);
        if (is_grid)
            qn__step(m, "bind r%ud%d.0 role=grid;", i, d);
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
    if (m.status == QN_OK)
        m.status = qn__schedule_derive(x, out, err);
    return m.status == QN_OK ? qn__schedule_verify(x, out, err) : m.status;
}
