/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill.c: the loops that fill a buffer of a schedule (schedule/buffer.h): point by point, or over
 * steps of the lanes. Only elements that the load would read are read. Squares of lanes and points
 * that are transposed stand in lower/fill_rows.c.
 */
#include "jit/lower/fill.h"

#include <string.h>

/* ---------------------------------------------------------------- what the block has */

/** Loads all parts and stores them. */
static void copy_block(fill *f)
{
    lower *g = f->g;
    qn__lower_load(g, f->inst);
    FOR_PARTS(g, p)
        if (qn__canonical_part(g, f->inst, p) == p)
            qn__store_copy(g, f->inst, g->value[f->inst].part[p],
                              qn__buffer_pointer(g, f->buffer, p));
}

static void copy_points(fill *f, int at);

/** Steps of the block along a dimension of the fill, or along the lanes. */
typedef struct fill_steps {
    steps steps;
    fill *f;
    int at; /* the place of the dimension, -1: the lanes, which are outside of all */
} fill_steps;

static void inside_steps(lower *g, const steps *of)
{
    const fill_steps *x = (const fill_steps *)of;
    (void)g;
    copy_points(x->f, x->at + 1);
}

/** Iterations of dimension d that the block has at once. */
static int64_t step_of(const fill *f, int d)
{
    const qn_buffer_layout *l = &f->g->filled[f->buffer].layout;
    int64_t step = 1;
    for (int n = 0; n < l->n; n++)
        step = l->digit[n].d == d ? l->digit[n].range : step; /* of the fastest digit */
    return step;
}

static void copy_in_steps(fill *f, int at)
{
    int d = f->how.dim[at];
    int64_t low, high, step = step_of(f, d);
    const fill_steps x = {.steps = {.d = d, .all = f->of[d], .inside = inside_steps},
                           .f = f,
                           .at = at};
    bool is_known = qn__is_const(x.steps.all.low, &low) && qn__is_const(x.steps.all.high, &high);
    qn__nest_jammed(f->g, &x.steps, step, is_known ? (high - low) % step : -1, !is_known);
}

/** Loops over the dimensions of the fill from place `at` on, inside of them the block. */
static void copy_points(fill *f, int at)
{
    lower *g = f->g;
    if (at == f->how.n) {
        copy_block(f);
        return;
    }
    int d = f->how.dim[at];
    span s = f->of[d];
    if (f->how.in_steps >> d & 1) {
        copy_in_steps(f, at);
        return;
    }
    loop l;
    if (qn__is_known_empty(s))
        return;
    qn__loop_open(g, &l, s, 1, LOOP_MAY_BE_EMPTY);
    qn__set_index(g, d, l.index);
    copy_points(f, at + 1);
    qn__loop_close(g, &l);
}

/* ---------------------------------------------------------------- steps of the lanes */

static void first_of_lanes(lower *g, const steps *of)
{
    qn__set_index(g, of->d, of->all.low);
}

/** Steps of the lanes; what is left of them only for accesses that go through the buffer there. */
static void copy_all_steps(fill *f)
{
    lower *g = f->g;
    int lanes = g->block->lane_dim;
    const span s = f->of[lanes];
    const fill_steps x = {.steps = {.d = lanes,
                                    .all = s,
                                    .is_inner = true,
                                    .may_be_short = true,
                                    .inside = inside_steps,
                                    .first = first_of_lanes},
                          .f = f,
                          .at = -1};
    if (f->has_rest) {
        qn__nest_lanes(g, &x.steps);
        return;
    }
    bool is_cut = !f->is_whole && g->block->tail != QN_TAIL_NONE;
    LLVMValueRef high = is_cut ? qn__whole_steps(g, s, (int64_t)g->block->width * g->block->unroll)
                               : s.high;
    qn__lanes_whole(g, &x.steps, (span){s.low, high}, is_cut, STREAM_NONE);
}

/* ---------------------------------------------------------------- all of it */

/** Where the buffer begins along each dimension: at the index that is set, or at the first one of
 * what is run. Points are those of the whole range. */
static void set_bases(fill *f, uint32_t is_set)
{
    lower *g = f->g;
    filled *b = &g->filled[f->buffer];
    for (int d = 0; d < g->k->n_dims; d++) {
        if (qn__is_reduction(g->k, d))
            f->of[d] = (span){g->begin[d], g->end[d]};
        bool is_point = qn__is_reduction(g->k, d), is_index = !is_point && (is_set >> d & 1);
        b->base[d] = is_index ? g->iv[d] : f->of[d].low;
        b->base_level[d] = is_index ? g->iv_level[d] : is_point ? 0 : g->depth;
    }
}

/** Whether lanes are masked of which it is not known how many run: a row of a lane beyond the end
 * may not be read. */
static bool has_unknown_lanes(const lower *g)
{
    bool is_masked = false;
    FOR_PARTS(g, p)
        is_masked |= g->tail_mask[p] != NULL;
    return is_masked && !g->rest_lanes;
}

/** The jammed iterations of which the fill walks no dimension index by index. */
static uint64_t active_of(const fill *f)
{
    uint64_t active = f->g->jam_active;
    for (int n = 0; n < f->how.n; n++)
        if ((f->g->jam_dims & ~f->how.in_steps) >> f->how.dim[n] & 1)
            active &= qn__jammed_below(f->g, f->how.dim[n], 1);
    return active;
}

/** Memory in the frame, made when the buffer is first filled, or of the launch. */
static LLVMValueRef memory_of(lower *g, int buffer)
{
    const qn_buffer_info *b = &g->schedule->buffer[buffer];
    if (b->storage == QN_STORAGE_SCRATCH)
        return g->scratch_memory;
    if (!g->filled[buffer].memory)
        g->filled[buffer].memory = qn__new_buffer(g, (uint64_t)b->bytes, LINE_BYTES);
    return g->filled[buffer].memory;
}

static void emit(fill *f)
{
    if (f->g->schedule->buffer[f->buffer].storage == QN_STORAGE_REGISTERS)
        qn__lower_load(f->g, f->inst);
    else if (f->how.is_transposed && !has_unknown_lanes(f->g))
        qn__fill_rows(f);
    else if (f->how.has_steps)
        copy_all_steps(f);
    else
        copy_points(f, 0);
}

/** Whether a buffer that is filled at node n, beside or below these nodes, is used by tails. */
static bool is_any_used_by_tails(const qn_schedule *s, qn_node n)
{
    for (; n.id; n = qn__node(s, n)->next)
        if (qn__node(s, n)->kind == QN_NODE_FILL ? qn__is_used_by_tails(s, qn__node(s, n)->index)
                                                 : is_any_used_by_tails(s, qn__node(s, n)->child))
            return true;
    return false;
}

bool qn__fills_whole_steps(const lower *g, qn_node n)
{
    bool has_steps = false;
    if (is_any_used_by_tails(g->schedule, n))
        return false;
    for (; qn__node(g->schedule, n)->kind == QN_NODE_FILL; n = qn__node(g->schedule, n)->next) {
        qn_fill_loops how;
        if (qn__fill_of(g->scalar, g->schedule, n, &how))
            return false;
        has_steps |= how.has_steps;
    }
    return has_steps;
}

void qn__fill(lower *g, qn_node at, const span *of, uint32_t is_set, bool is_whole)
{
    fill f = {.g = g, .buffer = qn__node(g->schedule, at)->index, .is_whole = is_whole};
    LLVMValueRef iv[QN_MAX_RANK];
    int iv_level[QN_MAX_RANK], width = g->width, unroll = g->unroll;
    uint64_t active = g->jam_active;
    if (qn__fill_of(g->scalar, g->schedule, at, &f.how)) { /* it was asked before */
        g->failed = true;
        return;
    }
    f.inst = g->schedule->buffer[f.buffer].inst;
    f.has_rest = qn__is_used_by_tails(g->schedule, f.buffer);
    g->filled[f.buffer].has_rest = f.has_rest || !f.how.has_steps;
    memcpy(f.of, of, sizeof f.of);
    memcpy(iv, g->iv, sizeof iv);
    memcpy(iv_level, g->iv_level, sizeof iv_level);
    set_bases(&f, is_set);
    for (int d = 0; d < g->k->n_dims; d++) /* what does not move the access may have any index */
        if (!g->iv[d]) {
            g->iv[d] = f.of[d].low;
            g->iv_level[d] = g->depth;
        }
    if (g->schedule->buffer[f.buffer].storage != QN_STORAGE_REGISTERS)
        g->filled[f.buffer].memory = memory_of(g, f.buffer);
    qn__set_active(g, active_of(&f));
    emit(&f);
    qn__set_active(g, active);
    g->width = width;
    g->unroll = unroll;
    memcpy(g->iv, iv, sizeof iv);
    memcpy(g->iv_level, iv_level, sizeof iv_level);
}
