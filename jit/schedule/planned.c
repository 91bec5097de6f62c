/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planned.c: the schedule of a plan and its block, for the code generator. Data in, data out; knows
 * no LLVM.
 */
#include "jit/schedule/planned.h"
#include "jit/schedule/from_plan.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/search.h"

void qn__planned_make(const qn_kernel *k, const qn_facts *f, qn_planned *out)
{
    *out = (qn_planned){0};
    out->analysis = (qn_analysis){.k = k, .f = f};
    if (f->target->has_grid)
        qn__grid_make(k, f, &out->grid);
    else
        qn__search(k, f, out);
}

/** Room for a schedule, and the analysis that it is of. */
static qn_status begin(qn_planned *p, qn_error *err)
{
    const qn_kernel *k = p->analysis.k;
    qn_status status =
        p->analysis.value ? QN_OK : qn__analyse_scalar(k, p->analysis.f, &p->analysis, err);
    if (status == QN_OK && !p->schedule && !(p->schedule = qn__alloc(sizeof *p->schedule)))
        status = qn__fail(err, QN_ERR_MEMORY, "schedule of kernel \"%s\": no memory", k->name);
    return status;
}

qn_status qn__planned_schedule(qn_planned *p, qn_error *err)
{
    const qn_analysis *x = &p->analysis;
    if (p->schedule && !p->is_draft)
        return QN_OK;
    qn_status status = begin(p, err);
    if (status == QN_OK && !p->is_draft)
        status = x->f->target->has_grid ? qn__schedule_of_grid(x, &p->grid, p->schedule, err)
                                        : qn__schedule_draft(x, &p->plan, p->schedule, err);
    if (status == QN_OK)
        status = qn__schedule_verify(x, p->schedule, err);
    p->is_draft = false;
    if (status != QN_OK)
        qn__planned_forget(p);
    return status;
}

/** Loops alone. Lanes of the points of reduces have none in such a schedule. */
static qn_status say_plainly(qn_planned *p, qn_error *err)
{
    const qn_plan *plan = &p->plan;
    qn_status status = begin(p, err);
    if (status != QN_OK)
        return status;
    qn__plan_plainly(&p->plan);
    status = qn__schedule_plain(&p->analysis, plan, p->schedule, err);
    if (status == QN_OK)
        status = qn__block_of(&p->analysis, p->schedule, &p->block, err);
    if (status == QN_OK && qn__is_reduction(p->analysis.k, plan->lane_dim)) {
        p->block.lane_dim = plan->lane_dim;
        p->block.width = plan->width;
        p->block.unroll = plan->unroll;
        p->block.tail = plan->remainder;
    }
    return status;
}

qn_status qn__planned_say(qn_planned *p, qn_error *err)
{
    const qn_facts *f = p->analysis.f;
    qn_error why = {0};
    if (f->target->has_grid) {
        p->block = qn__block_of_grid(&p->grid);
        return QN_OK;
    }
    bool is_made = qn__planned_schedule(p, &why) == QN_OK &&
                   qn__block_of(&p->analysis, p->schedule, &p->block, &why) == QN_OK;
    qn_status status = is_made ? QN_OK : say_plainly(p, err);
    if (f->has_ranges)
        qn__give_ranges(&p->block, f->ranges[0], f->ranges[1]);
    return status;
}

void qn__planned_print(const qn_planned *p, qn_text *out)
{
    if (p->grid.team)
        qn__grid_print(&p->grid, out);
    else
        qn__plan_print(&p->plan, p->analysis.k, out);
}

qn_status qn__planned_read(const qn_analysis *x, const qn_schedule *s, qn_grid *grid,
                           qn_block *block, qn_error *err)
{
    if (!x->f->target->has_grid)
        return qn__block_of(x, s, block, err);
    qn_status status = qn__grid_of_schedule(x, s, grid, err);
    *block = qn__block_of_grid(grid);
    return status;
}

void qn__planned_forget(qn_planned *p)
{
    qn__free(p->schedule);
    p->schedule = NULL;
    p->is_draft = false;
}

void qn__planned_release(qn_planned *p)
{
    qn__planned_forget(p);
    qn__analysis_release(&p->analysis);
}
