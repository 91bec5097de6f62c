/* SPDX-License-Identifier: Apache-2.0 */
/*
 * from_plan_access.c: what a plan says of accesses, as marks of the schedule that is made of it:
 * copies, streams, prefetches, tables.
 */
#include "jit/schedule/from_plan_parts.h"

#include <stdio.h>

/** Elements that load i moves with dimension d. */
static int64_t distance(const maker *m, uint32_t i, int d)
{
    int64_t stride = 0;
    (void)qn__access_stride(m->x, i, d, &stride);
    return stride < 0 ? qn__wrap_sub(0, stride) : stride;
}

/** Copies what load i reads in several steps of the lanes: step by step, in a step point by point,
 * and of a point the vectors of the step. The dimension along which the load moves least is the
 * last one. The rest of the lanes is read where it is. */
static void buffer_steps(maker *m, uint32_t i)
{
    const qn_kernel *k = m->x->k;
    const pieces *lanes = &m->of[m->p->lane_dim];
    int dim[QN_MAX_RANK], n_dims = 0, n_outside = lanes->n - lanes->n_inner;
    uint32_t dims = qn__packed_dims(m->x, m->p, i);
    uint32_t reduce = qn__enclosing_reduce(k, i);
    char text[600] = "", points[32];
    for (int d = 0; d < k->n_dims; d++) {
        int at = n_dims;
        if (!(dims >> d & 1))
            continue;
        for (; at > 0 && distance(m, i, dim[at - 1]) < distance(m, i, d); at--)
            dim[at] = dim[at - 1];
        dim[at] = d;
        n_dims++;
    }
    for (int n = 1; n < n_outside; n++)
        qn__add_name(text, sizeof text, lanes->name[n]);
    for (int n = 0; n < n_dims; n++) {
        snprintf(points, sizeof points, "r%ud%d", reduce, dim[n]);
        if (qn__is_reduction(k, dim[n]))
            qn__add_name(text, sizeof text, points);
        for (int a = 0; !qn__is_reduction(k, dim[n]) && a < m->of[dim[n]].n; a++)
            qn__add_name(text, sizeof text, m->of[dim[n]].name[a]);
    }
    for (int n = n_outside; n < lanes->n; n++)
        qn__add_name(text, sizeof text, lanes->name[n]);
    qn__mark(m, "buffer %%%u %s%s storage=scratch;", i, lanes->name[0], text);
    for (int r = 0; r < m->s->n_records; r++) {
        qn_record_info *of = &m->s->record[r];
        if (of->inst != i || !of->is_tail)
            continue;
        of->index = 0;
        qn__record_derive(m->x, m->s, of);
    }
    qn__records_ask(m->x, m->s, 0);
}

/** A copy of a load's rows for each block of the jammed dimension, of each lane one. */
static void copy_rows(maker *m, uint32_t i)
{
    const pieces *across = &m->of[m->p->jam_dim], *lanes = &m->of[m->p->lane_dim];
    char order[600] = "";
    for (int n = lanes->n - lanes->n_inner; n < lanes->n; n++)
        qn__add_name(order, sizeof order, lanes->name[n]);
    for (int n = across->n - 2; n < across->n; n++)
        qn__add_name(order, sizeof order, across->name[n]);
    qn__mark(m, "buffer %%%u %s%s storage=frame;", i, across->name[across->n - 3], order);
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
    for (uint32_t n = 0; n < k->n_accesses; n++)
        if (fronts[n])
            qn__mark(m, "prefetch %%%u %s %d;", k->access[n].inst, lanes->name[lanes->n - 1],
                     (int)(m->p->front_bytes / qn__access_bytes(k, k->access[n].inst)));
    qn__free(fronts);
}

void qn__mark_accesses(maker *m)
{
    const qn_plan *p = m->p;
    const qn_analysis *x = m->x;
    const qn_kernel *k = x->k;
    const pieces *lanes = qn__is_parallel(k, p->lane_dim) ? &m->of[p->lane_dim] : NULL;
    FOR_ACCESSES (k, n, i) {
        uint32_t reduce = qn__enclosing_reduce(k, i);
        if (qn__has_row_copy(x, p, n))
            copy_rows(m, i);
        if (lanes && p->pack == i)
            qn__mark(m, "buffer %%%u %s storage=scratch;", i, lanes->name[0]);
        if (lanes && p->pack_steps && qn__is_packed_in_steps(x, p, i))
            buffer_steps(m, i);
        if (p->streams && (qn__is_stream(x, p, n) || qn__has_line_ends(x, p, n)))
            qn__mark(m, "stream %%%u;", i);
        if (p->prefetch && reduce && i != p->pack &&
            qn__is_prefetched(x, p->lane_dim, p->jam > 1 ? p->jam_dim : -1, i))
            qn__mark(m, "prefetch %%%u r%ud%d %d;", i, reduce, qn__dim_of(k, reduce, 0),
                 p->prefetch);
        if (lanes && p->steps_ahead && qn__asked_by(x, p->lane_dim, i) >= 0)
            qn__mark(m, "prefetch %%%u %s %d;", i, lanes->name[0], p->steps_ahead);
        if (k->inst[i].op == QN_I_LOAD && lanes && qn__table_registers(x, i))
            qn__mark(m, "table %%%u;", i);
    }
    for (uint32_t n = k->n_accesses; p->end_rows && n-- > 0;)
        if (qn__has_line_ends(x, p, n))
            qn__mark(m, "join %%%u %s;", k->access[n].inst, lanes->name[lanes->n - 2]);
    if (lanes && p->front_bytes)
        ask_for_fronts(m, lanes);
}
