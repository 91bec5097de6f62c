/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nest.c: loops over steps of a dimension, and what is left of whole steps: one smaller step, steps
 * of powers of two, or a last step that overlaps. The loop over the lanes is that of lower/lanes.c.
 */
#include "jit/lower/nest.h"

#include <string.h>

void qn__nest_some(lower *g, const steps *of, span s, int64_t step, bool guarded, int64_t most)
{
    int d = of->d;
    bool is_sequential = qn__dim_kind(g->k, d) == QN_DIM_SEQUENTIAL;
    loop l;
    if (qn__is_known_empty(s))
        return;
    if (is_sequential)
        qn__recurrence_open(g, d, s, guarded);
    const int n_recurrent = is_sequential ? g->recurrence.n : 0;
    qn__loop_open(g, &l, s, step,
                  (guarded ? LOOP_MAY_BE_EMPTY : 0) | (is_sequential ? LOOP_IS_SEQUENTIAL : 0));
    qn__loop_carry(g, &l, g->recurrence.value, n_recurrent);
    qn__loop_bound(g, &l, d);
    if (!l.is_single)
        qn__loop_most(&l, most);
    qn__set_index(g, d, l.index);
    of->inside(g, of);
    if (n_recurrent)
        qn__recurrence_step(g);
    qn__loop_close(g, &l);
    if (n_recurrent)
        g->recurrence.n = 0;
}

void qn__nest_over(lower *g, const steps *of, span s, int64_t step, bool guarded)
{
    qn__nest_some(g, of, s, step, guarded, INT64_MAX);
}

LLVMValueRef qn__whole_steps(lower *g, span s, int64_t step)
{
    LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, "");
    LLVMValueRef left = LLVMBuildURem(g->b, n, qn__const_i64(g, step), "");
    return LLVMBuildSub(g->b, s.high, left, "");
}

LLVMValueRef qn__pieces_open(lower *g, loop *l, span s, int64_t size)
{
    LLVMValueRef up = LLVMBuildAdd(g->b, s.high, qn__const_i64(g, size - 1), "");
    LLVMValueRef end = qn__whole_steps(g, (span){s.low, up}, size);
    qn__loop_open(g, l, (span){s.low, end}, size, LOOP_MAY_BE_EMPTY);
    return qn__umin(g, LLVMBuildSub(g->b, s.high, l->index, ""), qn__const_i64(g, size));
}

span qn__piece_at(lower *g, LLVMValueRef from, int64_t size, LLVMValueRef end)
{
    LLVMValueRef left = LLVMBuildSub(g->b, end, from, "");
    LLVMValueRef n = qn__umin(g, left, qn__const_i64(g, size));
    return (span){from, LLVMBuildAdd(g->b, from, n, "")};
}

void qn__nest_once(lower *g, const steps *of, LLVMValueRef middle, LLVMValueRef high,
                   LLVMValueRef first)
{
    int64_t from, to;
    loop l;
    if (qn__is_const(middle, &from) && qn__is_const(high, &to)) {
        if (from != to)
            qn__nest_over(g, of, (span){first, LLVMBuildAdd(g->b, first, qn__const_i64(g, 1), "")},
                          1, false);
        return;
    }
    qn__once_open(g, &l, LLVMBuildICmp(g->b, LLVMIntNE, middle, high, ""));
    qn__set_index(g, of->d, first);
    of->inside(g, of);
    qn__loop_close(g, &l);
}

void qn__steps_overlap(lower *g, const steps *of, span s, int64_t step)
{
    LLVMValueRef last = LLVMBuildSub(g->b, s.high, qn__const_i64(g, step), "");
    loop l;
    (void)qn__pieces_open(g, &l, s, step);
    qn__loop_bound(g, &l, of->d);
    qn__set_index(g, of->d, qn__smin(g, l.index, last));
    of->inside(g, of);
    qn__loop_close(g, &l);
}

int64_t qn__known_rest_of(const lower *g, int d, int64_t step)
{
    int64_t b, e;
    const bool is_known = qn__is_const(g->begin[d], &b) && qn__is_const(g->end[d], &e);
    return is_known && !qn__is_given(g->f, d) ? (e - b) % step : -1;
}

void qn__nest_jammed(lower *g, const steps *of, int64_t step, int64_t rest, bool guarded)
{
    const uint64_t all = g->jam_active;
    span s = of->all;
    LLVMValueRef middle = rest == 0 ? s.high : qn__whole_steps(g, s, step);
    qn__nest_over(g, of, (span){s.low, middle}, step, guarded);
    qn__set_active(g, all & qn__jammed_below(g, of->d, rest > 0 ? rest : 1));
    if (rest > 0)
        qn__nest_once(g, of, middle, s.high, middle);
    else if (rest < 0)
        qn__nest_over(g, of, (span){middle, s.high}, 1, true);
    qn__set_active(g, all);
}

void qn__rest_in_halves(lower *g, const steps *of, span s, int64_t step)
{
    const uint64_t all = g->jam_active;
    LLVMValueRef left = LLVMBuildSub(g->b, s.high, s.low, "");
    int64_t part = 1;
    while (2 * part < step)
        part *= 2;
    for (; part >= 1; part /= 2) {
        LLVMValueRef some = LLVMBuildAnd(g->b, left, qn__const_i64(g, part), "");
        LLVMValueRef next = LLVMBuildAdd(g->b, s.low, some, "");
        qn__set_active(g, all & qn__jammed_below(g, of->d, part));
        qn__nest_once(g, of, s.low, next, s.low);
        s.low = next;
    }
    qn__set_active(g, all);
}
