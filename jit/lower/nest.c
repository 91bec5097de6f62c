/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nest.c: the nest of loops over the domain: plan->order, outermost first. A jammed dimension
 * runs in steps of `jam`, and what is left overlaps the last whole step, or is a smaller step where
 * its number is known, or runs in halves of steps, or one by one. Loops over cache tiles stand
 * before loop plan->tile_at. The loop over the lanes is that of lower/lanes.c.
 */
#include "jit/lower/nest.h"
#include "jit/lower/wide.h"

#include <string.h>

void qn__nest_some(lower *g, const steps *of, span s, int64_t step, bool guarded, int64_t most)
{
    int d = of->d;
    bool is_sequential = qn__dim_kind(g->k, d) == QN_DIM_SEQUENTIAL;
    loop l;
    if (qn__is_known_empty(&s))
        return;
    qn__loop_open(g, &l, s.low, s.high, step, guarded, is_sequential, 0, NULL, NULL);
    qn__loop_bound(g, &l, d);
    if (!l.is_single)
        qn__loop_most(&l, most);
    qn__set_index(g, d, l.index);
    of->inside(g, of);
    qn__loop_close(g, &l, NULL, NULL);
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
    qn__loop_close(g, &l, NULL, NULL);
}

/** Steps that cover [low, high), which is longer than one; the last one begins so early that it
 * ends at high. */
void qn__steps_overlap(lower *g, const steps *of, span s, int64_t step)
{
    LLVMValueRef last = LLVMBuildSub(g->b, s.high, qn__const_i64(g, step), "");
    LLVMValueRef up = LLVMBuildAdd(g->b, s.high, qn__const_i64(g, step - 1), "");
    LLVMValueRef end = qn__whole_steps(g, (span){s.low, up}, step);
    loop l;
    qn__loop_open(g, &l, s.low, end, step, true, false, 0, NULL, NULL);
    qn__loop_bound(g, &l, of->d);
    qn__set_index(g, of->d, qn__smin(g, l.index, last));
    of->inside(g, of);
    qn__loop_close(g, &l, NULL, NULL);
}

int64_t qn__known_rest_of(const lower *g, int d, int64_t step)
{
    int64_t b, e;
    return qn__is_const(g->begin[d], &b) && qn__is_const(g->end[d], &e) ? (e - b) % step : -1;
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

static void loop_jammed(lower *g, const steps *of)
{
    span s = of->all;
    int jam = g->p->jam;
    int64_t rest = qn__known_rest_of(g, g->p->jam_dim, jam);
    qn__set_jam(g, jam * g->p->cross);
    if (g->p->jam_rest == QN_REMAINDER_OVERLAP && rest != 0) {
        qn__steps_overlap(g, of, s, jam);
    } else {
        LLVMValueRef middle = rest == 0 ? s.high : qn__whole_steps(g, s, jam);
        qn__nest_over(g, of, (span){s.low, middle}, jam, true);
        if (rest < 0 && g->p->jam_rest == QN_REMAINDER_TILE) {
            qn__rest_in_halves(g, of, (span){middle, s.high}, jam);
        } else {
            qn__set_jam(g, rest > 0 ? (int)rest : 1);
            if (rest > 0)
                qn__nest_once(g, of, middle, s.high, middle);
            else if (rest < 0)
                qn__nest_over(g, of, (span){middle, s.high}, 1, true);
        }
    }
    qn__set_jam(g, 1);
}

/** The third dimension of a register tile: whole steps, or the last one overlaps. */
static void loop_crossed(lower *g, const steps *of)
{
    int cross = g->p->cross;
    if (qn__known_rest_of(g, g->p->cross_dim, cross) == 0)
        qn__nest_over(g, of, of->all, cross, true);
    else
        qn__steps_overlap(g, of, of->all, cross);
}

/** Loop number `at` of the plan's order. */
typedef struct nest_steps {
    steps steps;
    const span *spans; /* of all loops, by their place */
    int at;
} nest_steps;

static void inside_nest(lower *g, const steps *of)
{
    const nest_steps *x = (const nest_steps *)of;
    qn__nest_emit(g, x->spans, x->at + 1);
}

static void first_of_nest(lower *g, const steps *of)
{
    const nest_steps *x = (const nest_steps *)of;
    for (int n = x->at; n < g->p->n_loops; n++)
        qn__set_index(g, g->p->order[n], x->spans[n].low);
}

/** A chunk of a thread, or a tile, may be shorter than the dimension. */
static nest_steps steps_of_nest(const lower *g, const span *spans, int at)
{
    const qn_plan *p = g->p;
    int d = p->order[at];
    bool is_divided = d == p->split_dim || (p->second_granule && d == p->second_dim);
    return (nest_steps){.steps = {.d = d,
                                  .all = spans[at],
                                  .is_inner = at > 0,
                                  .may_be_short = is_divided || (p->tile_at >= 0 && p->tile[d] > 0),
                                  .inside = inside_nest,
                                  .first = first_of_nest},
                        .spans = spans,
                        .at = at};
}

static void emit_loop(lower *g, const span *spans, int at);

/** Loops over tiles of the dimensions from place `tiled` on that have any, around the loops from
 * `at` on, which sweep each tile. */
static void loop_tiles(lower *g, const span *spans, int at, int tiled)
{
    while (tiled < g->p->n_loops && !g->p->tile[g->p->order[tiled]])
        tiled++;
    if (tiled == g->p->n_loops) {
        emit_loop(g, spans, at);
        return;
    }
    int lanes_level = g->lanes_level;
    int64_t tile = g->p->tile[g->p->order[tiled]];
    span inner[QN_MAX_RANK], s = spans[tiled];
    loop l;
    memcpy(inner, spans, sizeof inner);
    LLVMValueRef up = LLVMBuildAdd(g->b, s.high, qn__const_i64(g, tile - 1), "");
    LLVMValueRef end = qn__whole_steps(g, (span){s.low, up}, tile);
    if (qn__is_known_empty(&(span){s.low, end}))
        return;
    qn__loop_open(g, &l, s.low, end, tile, true, false, 0, NULL, NULL);
    inner[tiled] = (span){
        l.index, qn__smin(g, s.high, LLVMBuildAdd(g->b, l.index, qn__const_i64(g, tile), ""))};
    g->lanes_level = g->p->order[tiled] == g->p->lane_dim ? g->depth : lanes_level;
    loop_tiles(g, inner, at, tiled + 1);
    g->lanes_level = lanes_level;
    qn__loop_close(g, &l, NULL, NULL);
}

/** What is inside loop at - 1. */
void qn__nest_emit(lower *g, const span *spans, int at)
{
    if (at == g->p->tile_at)
        loop_tiles(g, spans, at, at);
    else
        emit_loop(g, spans, at);
}

/** Loop number `at` and what is inside. */
static void emit_loop(lower *g, const span *spans, int at)
{
    bool is_sequential =
        at < g->p->n_loops && qn__dim_kind(g->k, g->p->order[at]) == QN_DIM_SEQUENTIAL;
    if (at == g->p->n_loops) {
        qn__wide_begin(g);
        qn__lower_body(g);
        return;
    }
    const nest_steps x = steps_of_nest(g, spans, at);
    if (qn__is_grid(g->p) && (is_sequential || g->p->tile[g->p->order[at]] > 0)) {
        if (is_sequential) /* a launch runs one index */
            qn__set_index(g, g->p->order[at], spans[at].low);
        qn__nest_emit(g, spans, at + 1);
    } else if (g->p->order[at] == g->p->lane_dim) {
        qn__nest_lanes(g, &x.steps);
    } else if (g->p->order[at] == g->p->jam_dim) {
        loop_jammed(g, &x.steps);
    } else if (g->p->order[at] == g->p->cross_dim) {
        loop_crossed(g, &x.steps);
    } else {
        qn__nest_over(g, &x.steps, spans[at], 1, false);
    }
}
