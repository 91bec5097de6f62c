/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_plan_access.c: what a plan says of accesses, as marks of the schedule that is made of it:
 * copies, streams, prefetches, tables.
 */
#include "jit/schedule/from_plan_parts.h"

/** A step QN_DO_... of access i, and of a loop if there is one. */
static qn_step of_access(int which, uint32_t i, qn_axis a)
{
    qn_step how = {.which = (uint8_t)which, .inst = i};
    qn__add_axis(&how, a);
    return how;
}

static void mark(maker *m, int which, uint32_t i, qn_axis a, int option)
{
    qn_step how = of_access(which, i, a);
    how.option = (uint8_t)option;
    qn__mark(m, &how);
}

/** Copies what load i reads in some steps of the jammed dimension: step by step, in a step point by
 * point, and of a point the jammed iterations. */
static void buffer_rows(maker *m, uint32_t i)
{
    const pieces *rows = &m->of[m->p->jam_dim];
    uint32_t reduce = qn__enclosing_reduce(m->x->k, i);
    qn_step copy = of_access(QN_DO_buffer, i, rows->digit[0]);
    qn__add_axis(&copy, rows->digit[1]);
    qn__add_axis(&copy, qn__axis_over(m->s, reduce, qn__dim_of(m->x->k, reduce, 0)));
    qn__add_axis(&copy, rows->digit[2]);
    copy.option = QN_STORAGE_SCRATCH;
    qn__mark(m, &copy);
}

/** Asks for what load i reads so many iterations of a loop ahead. */
static void prefetch(maker *m, uint32_t i, qn_axis along, int64_t ahead)
{
    qn_step how = of_access(QN_DO_prefetch, i, along);
    how.n_numbers = 1;
    how.number[0] = ahead;
    qn__mark(m, &how);
}

/** Loads that meet new memory ask for what comes so many bytes later. */
static void ask_for_fronts(maker *m, const pieces *lanes)
{
    const qn_kernel *k = m->x->k;
    bool *fronts = qn__zalloc(k->n_accesses + 1, sizeof *fronts);
    if (!fronts || !qn__find_fronts(m->x, m->p, fronts)) {
        qn__free(fronts);
        return;
    }
    FOR_ACCESSES (k, n, i)
        if (fronts[n])
            prefetch(m, i, lanes->digit[lanes->n - 1], m->p->front_bytes / qn__access_bytes(k, i));
    qn__free(fronts);
}

void qn__mark_accesses(maker *m)
{
    const qn_plan *p = m->p;
    const qn_analysis *x = m->x;
    const qn_kernel *k = x->k;
    const pieces *lanes = qn__is_parallel(k, p->lane_dim) ? &m->of[p->lane_dim] : NULL;
    const qn_axis none = {0};
    FOR_ACCESSES (k, n, i) {
        uint32_t reduce = qn__enclosing_reduce(k, i);
        if (lanes && p->pack == i)
            mark(m, QN_DO_buffer, i, lanes->digit[0], QN_STORAGE_SCRATCH);
        if (lanes && p->pack_rows == i)
            buffer_rows(m, i);
        if (p->streams && (qn__is_stream(x, p, n) || qn__has_line_ends(x, p, n)))
            mark(m, QN_DO_stream, i, none, 0);
        if (p->prefetch && reduce && i != p->pack && i != p->pack_rows &&
            qn__is_prefetched(x, p->lane_dim, p->jam > 1 ? p->jam_dim : -1, i))
            prefetch(m, i, qn__axis_over(m->s, reduce, qn__dim_of(k, reduce, 0)), p->prefetch);
        if (lanes && p->steps_ahead && qn__asked_by(x, p->lane_dim, i) >= 0)
            prefetch(m, i, lanes->digit[0], p->steps_ahead);
        if (k->inst[i].op == QN_I_LOAD && lanes && qn__table_registers(x, i))
            mark(m, QN_DO_table, i, none, 0);
    }
    for (uint32_t n = k->n_accesses; p->end_rows && n-- > 0;)
        if (qn__has_line_ends(x, p, n))
            mark(m, QN_DO_join, k->access[n].inst, lanes->digit[lanes->n - 2], 0);
    if (lanes && p->front_bytes)
        ask_for_fronts(m, lanes);
}
