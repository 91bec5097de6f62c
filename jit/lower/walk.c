/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c: the loops of a schedule, node by node. A loop over an axis walks what is run of its
 * dimension in steps of the axis' weight. The loops of the block (schedule/shape.h) are not
 * emitted: the innermost loop around them that walks their dimension has its steps, and what is
 * left of the dimension follows as the tail of the cut says. Statements that have no loops of their
 * own are emitted as the body, or as a part of it.
 */
#include "jit/lower/nest.h"

#include <string.h>

typedef struct walk {
    lower *g;
    const qn_analysis *x;
    const qn_schedule *s;
    span of[QN_MAX_RANK];  /* what is run of each dimension inside the loops that are open */
    uint32_t open;         /* bit d: a loop over dimension d is open */
    uint32_t part;         /* bit d: of[d] may be less than the dimension */
    uint32_t is_set;       /* bit d: the index of d is that of a step or an iteration */
    int n_open;
    bool is_alone; /* nothing but copies stands beside the node that is emitted */
} walk;

typedef struct walk_steps {
    steps steps;
    walk *w;
    qn_node loop;
} walk_steps;

static void emit_nodes(walk *w, qn_node n);

/* ---------------------------------------------------------------- bounds */

/** Where a section ends: a place in the range of its axis, whose steps are `weight` iterations. */
static LLVMValueRef bound_at(walk *w, const qn_bound *b, int64_t weight, span s)
{
    lower *g = w->g;
    LLVMValueRef offset = qn__const_i64(g, b->offset), zero = qn__const_i64(g, 0);
    if (b->from == QN_FROM_AXIS) {
        qn_axis root;
        qn__axis_weight(w->x, w->s, b->axis, &root);
        offset = LLVMBuildAdd(g->b, g->iv[qn__axis(w->s, root)->number], offset, "");
        return qn__smin(g, qn__smax(g, offset, s.low), s.high);
    }
    LLVMValueRef length = LLVMBuildSub(g->b, s.high, s.low, ""), step = qn__const_i64(g, weight);
    LLVMValueRef up = LLVMBuildAdd(g->b, length, qn__const_i64(g, weight - 1), "");
    LLVMValueRef n = LLVMBuildUDiv(g->b, up, step, "");
    if (b->from == QN_FROM_END)
        offset = LLVMBuildAdd(g->b, n, qn__smin(g, offset, zero), "");
    LLVMValueRef at = LLVMBuildMul(g->b, qn__smin(g, qn__smax(g, offset, zero), n), step, "");
    return LLVMBuildAdd(g->b, s.low, qn__umin(g, at, length), "");
}

/** Section `number` of a cut of an axis of which s is all. */
static span section_of(walk *w, const qn_cut *c, int number, span s)
{
    LLVMValueRef low = s.low, high = s.low;
    int64_t weight = qn__axis_weight(w->x, w->s, c->of, NULL);
    for (int n = 0; n <= number; n++) {
        low = high;
        high = n == c->n - 1 ? s.high : bound_at(w, &c->bound[n], weight, s);
        high = qn__smax(w->g, low, high);
    }
    return (span){low, high};
}

/** What is run of the axis of a loop. Sections are those of the whole dimension. */
static span span_of(walk *w, qn_axis axis, int d)
{
    const qn_axis_info *a = qn__axis(w->s, axis);
    if (a->kind != QN_AXIS_PART)
        return w->of[d];
    const qn_cut *c = &w->s->cut[a->cut];
    if (c->kind == QN_CUT_DIGITS)
        return a->number == 0 ? span_of(w, c->of, d) : w->of[d];
    span all = {w->g->begin[d], w->g->end[d]};
    bool is_root = qn__axis(w->s, c->of)->kind == QN_AXIS_DIM;
    span s = section_of(w, c, a->number, is_root ? all : span_of(w, c->of, d));
    w->part |= UINT32_C(1) << d;
    bool is_all = w->of[d].low == all.low && w->of[d].high == all.high;
    return is_all ? s : qn__intersection(w->g, s, w->of[d]);
}

/* ---------------------------------------------------------------- steps */

static void inside(lower *g, const steps *of)
{
    const walk_steps *x = (const walk_steps *)of;
    (void)g;
    emit_nodes(x->w, qn__node(x->w->s, x->loop)->child);
}

/** What is left of the lanes behind strips: sums are in registers. */
static void inside_strip(lower *g, const steps *of)
{
    (void)of;
    qn__lower_body(g);
}

/** Dimensions whose tiles are open have loops inside as well. */
static void to_first(lower *g, const steps *of)
{
    const walk_steps *x = (const walk_steps *)of;
    const walk *w = x->w;
    const qn_node inside = qn__node(w->s, x->loop)->child;
    for (int d = 0; d < g->k->n_dims; d++) {
        qn_node below = qn__loop_below(w->x, w->s, inside, d);
        bool is_inside = below.id && !qn__is_of_block(w->x, w->s, below);
        if (!qn__is_reduction(g->k, d) && (d == of->d || is_inside))
            qn__set_index(g, d, d == of->d ? of->all.low : w->of[d].low);
    }
}

/** Iterations beyond the last whole step; -1: not known. */
static int64_t rest_of(const walk *w, const walk_steps *x, int64_t step)
{
    int d = x->steps.d;
    int64_t low, high;
    if (qn__is_const(x->steps.all.low, &low) && qn__is_const(x->steps.all.high, &high))
        return high > low ? (high - low) % step : 0;
    return w->part >> d & 1 ? -1 : qn__known_rest_of(w->g, d, step);
}

/** Steps of a dimension of which several iterations are jammed, and what is left. */
static void emit_jammed(walk *w, const walk_steps *x, int64_t step, int tail)
{
    lower *g = w->g;
    span s = x->steps.all;
    int64_t rest = rest_of(w, x, step);
    if (tail == QN_TAIL_NONE)
        rest = 0;
    if (tail == QN_TAIL_OVERLAP && rest != 0) {
        qn__steps_overlap(g, &x->steps, s, step);
        return;
    }
    if (rest >= 0 || tail != QN_TAIL_NARROWER) {
        qn__nest_jammed(g, &x->steps, step, rest, true);
        return;
    }
    LLVMValueRef middle = qn__whole_steps(g, s, step);
    qn__nest_over(g, &x->steps, (span){s.low, middle}, step, true);
    qn__rest_in_halves(g, &x->steps, (span){middle, s.high}, step);
}

/** Whole steps of the lanes whose stores write whole lines of rows that begin anywhere in one, then
 * the ends of these rows, then the rest. */
static void emit_joined(walk *w, walk_steps *x, int64_t step, uint32_t ends)
{
    lower *g = w->g;
    x->steps.is_inner = w->n_open > 2; /* in others than the loop over pieces of rows */
    span s = x->steps.all, rows = w->of[g->across];
    place here;
    qn__seek(g, g->lanes_level, &here);
    LLVMValueRef middle = qn__whole_steps(g, s, step);
    qn__unseek(g, &here);
    qn__line_ends_open(g, ends, rows.low, s.low);
    qn__lanes_whole(g, &x->steps, (span){s.low, middle}, true, STREAM_NONE);
    qn__line_ends_close(g, rows, middle);
    qn__lanes_rest(g, &x->steps, (span){middle, s.high}, step);
    g->width = g->unroll = 1;
}

/** Steps of the lanes; those that overlap are whole vectors. */
static void emit_lanes(walk *w, const walk_steps *x, int64_t step, int tail)
{
    lower *g = w->g;
    if (tail != QN_TAIL_OVERLAP || rest_of(w, x, step) == 0) {
        qn__nest_lanes(g, &x->steps);
        return;
    }
    g->width = g->block->width;
    g->unroll = g->block->unroll;
    qn__steps_overlap(g, &x->steps, x->steps.all, step);
    g->width = g->unroll = 1;
}

/** Pieces of a dimension, which loops inside walk: the last one may be shorter. */
static void emit_pieces(walk *w, const walk_steps *x, int64_t size)
{
    lower *g = w->g;
    span s = x->steps.all;
    int d = x->steps.d, lanes_level = g->lanes_level;
    loop l;
    if (qn__is_known_empty(s))
        return;
    LLVMValueRef n = qn__pieces_open(g, &l, s, size);
    qn__loop_bound(g, &l, d);
    w->of[d] = (span){l.index, LLVMBuildAdd(g->b, l.index, n, "")};
    g->lanes_level = d == g->block->lane_dim ? g->depth : lanes_level;
    emit_nodes(w, qn__node(w->s, x->loop)->child);
    g->lanes_level = lanes_level;
    qn__loop_close(g, &l);
}

/* ---------------------------------------------------------------- nodes */

/** Whether a loop over all of dimension d, whose index each step sets, stands inside loops over the
 * dimensions before it alone, in their order. What a launch prints behind a failure counts, too. */
static bool is_in_order(const walk *w, int d)
{
    const lower *g = w->g;
    uint32_t before = 0;
    for (int e = 0; e < d; e++)
        if (!qn__is_reduction(g->k, e) && qn__trips(g->f, e) != 1)
            before |= UINT32_C(1) << e;
    return w->is_alone && !g->f->prints_rows && g->in_order == w->open &&
           (before & ~w->open) == 0 && w->open >> d == 0 && !(w->part >> d & 1);
}

static void emit_loop(walk *w, qn_node at)
{
    lower *g = w->g;
    const qn_node_info *l = qn__node(w->s, at);
    const walk outer = *w;
    qn_axis root;
    int64_t weight = qn__axis_weight(w->x, w->s, l->axis, &root);
    int d = qn__axis(w->s, root)->number;
    qn_node below = qn__loop_below(w->x, w->s, l->child, d);
    span s = span_of(w, l->axis, d);
    int lanes_level = g->lanes_level;
    if (d == g->block->lane_dim && (s.low != w->of[d].low || s.high != w->of[d].high))
        g->lanes_level = g->depth; /* where the bounds of a section are known */
    if (qn__is_only_chunks(w->x, w->s, at)) {
        w->of[d] = s;
        emit_nodes(w, l->child);
        g->lanes_level = lanes_level;
        *w = outer;
        return;
    }
    bool is_divided =
             d == g->block->split_dim || (g->block->second_granule && d == g->block->second_dim),
         is_piece = w->open >> d & 1, is_part = w->part >> d & 1;
    walk_steps x = {.steps = {.d = d,
                              .all = s,
                              .is_inner = w->n_open > 0,
                              .may_be_short = is_divided || is_piece || is_part,
                              .may_be_empty = is_part,
                              .inside = inside,
                              .first = to_first},
                    .w = w,
                    .loop = at};
    const bool has_steps = weight == 1 || qn__is_of_block(w->x, w->s, below),
               has_sums = qn__has_sums(w->s, at);
    const uint32_t ends = qn__ends_behind(w->s, at), in_order = g->in_order;
    if (has_steps && !has_sums && !ends && is_in_order(w, d))
        g->in_order |= UINT32_C(1) << d;
    w->open |= UINT32_C(1) << d;
    if (has_steps)
        w->is_set |= UINT32_C(1) << d;
    w->n_open++;
    if (has_sums) {
        x.steps.inside = inside_strip;
        qn__nest_lanes(g, &x.steps);
    } else if (ends)
        emit_joined(w, &x, weight, ends);
    else if (weight == 1)
        qn__nest_over(g, &x.steps, s, 1, is_part);
    else if (!qn__is_of_block(w->x, w->s, below))
        emit_pieces(w, &x, weight);
    else if (d == g->block->lane_dim)
        emit_lanes(w, &x, weight, qn__tail_of_steps(w->x, w->s, at));
    else
        emit_jammed(w, &x, weight, qn__tail_of_steps(w->x, w->s, at));
    g->lanes_level = lanes_level;
    g->in_order = in_order;
    *w = outer;
}

/** Loads of earlier statements whose values are needed in [first, end) and are not there any more.
 */
static void load_again(lower *g, uint32_t first, uint32_t end)
{
    const qn_kernel *k = g->k;
    for (uint32_t i = first; i < end; i++) { /* tuples end behind what stands between */
        const qn_reduced *tuple = k->inst[i].op == QN_I_REDUCE ? qn__tuple_of(g, i) : NULL;
        uint32_t last = tuple ? k->inst[tuple->inst[tuple->n - 1]].region[2] : end;
        end = last > end ? last : end;
    }
    uint8_t *needed = qn__zalloc(end, 1);
    g->failed |= !needed;
    for (uint32_t i = end; needed && i-- > k->body;) {
        const qn_inst *x = &k->inst[i];
        bool is_value = qn__is_pure(x) || x->op == QN_I_LOAD;
        if (i < first && !(needed[i] && is_value && !g->value[i].is_set))
            continue;
        for (int n = 0; n < x->n_args; n++)
            if (qn__args(k, i)[n] < end)
                needed[qn__args(k, i)[n]] = 1;
    }
    for (uint32_t i = k->body; needed && i < first; i++)
        if (needed[i] && k->inst[i].op == QN_I_LOAD && !k->inst[i].parent && !g->value[i].is_set)
            qn__lower_load(g, i, 0);
    qn__free(needed);
}

/** Instructions [first, end) for the block, at the indices that are set. */
static void emit_statements(walk *w, uint32_t first, uint32_t end)
{
    lower *g = w->g;
    if (first == g->k->body && end == g->k->n_insts) {
        qn__lower_body(g);
    } else if (first < end) {
        load_again(g, first, end);
        qn__lower_region(g, first, end);
    }
}

/** Whether node n is emitted together with the statements beside it. */
static bool is_statement(const walk *w, qn_node n)
{
    return n.id && qn__node(w->s, n)->kind != QN_NODE_FILL && !qn__has_loops(w->x, w->s, n);
}

/** Nodes beside one another: those without loops are emitted together. */
static void emit_nodes(walk *w, qn_node n)
{
    int n_others = 0;
    for (qn_node at = n; at.id; at = qn__node(w->s, at)->next)
        n_others += qn__node(w->s, at)->kind != QN_NODE_FILL;
    while (n.id) {
        uint32_t first = UINT32_MAX, end = 0;
        qn_node from = n;
        for (; is_statement(w, n); n = qn__node(w->s, n)->next) {
            qn__statements_of(w->s, w->g->k, n, &first, &end);
            qn__go_through(w->g, n, true);
        }
        emit_statements(w, first, end);
        for (; from.id != n.id; from = qn__node(w->s, from)->next)
            qn__go_through(w->g, from, false);
        if (!n.id)
            break;
        if (qn__node(w->s, n)->kind == QN_NODE_FILL)
            qn__fill(w->g, n, w->of, w->is_set);
        else if (qn__node(w->s, n)->kind == QN_NODE_LOOP && !qn__is_of_block(w->x, w->s, n)) {
            w->is_alone = n_others == 1;
            emit_loop(w, n);
        } else
            emit_nodes(w, qn__node(w->s, n)->child);
        n = qn__node(w->s, n)->next;
    }
}

void qn__walk(lower *g, const span *spans)
{
    walk w = {.g = g, .x = g->scalar, .s = g->schedule};
    uint32_t stepped = 0;
    for (int d = 0; d < g->k->n_dims; d++) {
        if (qn__is_reduction(g->k, d))
            continue;
        w.of[d] = spans[d];
        qn_node at = qn__loop_below(w.x, w.s, w.s->root, d);
        if (!at.id || qn__is_of_block(w.x, w.s, at))
            qn__set_index(g, d, spans[d].low);
        else
            stepped |= UINT32_C(1) << d;
    }
    if (g->block->n_shared) {
        qn__lower_points(g);
        return;
    }
    w.is_set = ~stepped;
    bool are_lanes_whole =
        qn__is_parallel(g->k, g->block->lane_dim) && !(stepped >> g->block->lane_dim & 1);
    g->width = are_lanes_whole ? g->block->width : 1;
    g->unroll = are_lanes_whole ? g->block->unroll : 1;
    qn__set_jam(g, g->block->strip.length ? 1 : g->jam_max);
    emit_nodes(&w, w.s->root);
    g->width = g->unroll = 1;
}
