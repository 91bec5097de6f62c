/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_strip.c: the loops of reduces whose sums are in memory, of the form that lower/strip.c
 * emits. For a reduce whose points are r and whose lanes are d, in steps of `block` iterations:
 *
 *   loop d.0 { place %i in bN {                     a strip
 *     loop r', ...                                  all other dimensions of the reduce
 *     loop r.0                                      blocks of 4096, where there may be several
 *     loop r                                        in the striped order: 32 pairs of partials, or
 *                                                   64, with an odd number of points at once
 *     loop r, loop d.1, loop r unrolled { lanes }   some points at once, for all of the strip
 *   } ... loop d.1 { lanes } }                      the rest of the body
 */
#include "jit/schedule/plan.h"
#include "jit/schedule/shape.h"

typedef struct chain {
    const qn_analysis *x;
    const qn_schedule *s;
    qn_node at;
} chain;

/** Steps of its dimension by which the loop that comes next moves; 0: it is no loop over dimension
 * d in this role, or stands beside another node. */
static int64_t next_weight(const chain *c, int d, int role)
{
    const qn_node_info *l = qn__node(c->s, c->at);
    if (l->kind != QN_NODE_LOOP || l->role != role || l->next.id ||
        qn__axis_dim(c->x, c->s, l->axis) != d)
        return 0;
    return qn__axis_weight(c->x, c->s, l->axis, NULL);
}

/** Goes into the loop that comes next, if that is one over dimension d in steps of `weight`. */
static bool enter(chain *c, int d, int role, int64_t weight)
{
    if (!weight || next_weight(c, d, role) != weight)
        return false;
    c->at = qn__node(c->s, c->at)->child;
    return true;
}

static bool has_extent(const chain *c, int64_t extent)
{
    return qn__axis_count(c->x, c->s, qn__node(c->s, c->at)->axis).most == extent;
}

/** Whether only loops of the block are around the statements [first, end) that come next. */
static bool is_block_of(chain *c, uint32_t first, uint32_t end)
{
    while (qn__is_of_block(c->x, c->s, c->at) && !qn__node(c->s, c->at)->next.id)
        c->at = qn__node(c->s, c->at)->child;
    const qn_node_info *l = qn__node(c->s, c->at);
    return l->kind == QN_NODE_DO && l->first == first && l->end == end && !l->next.id;
}

/** The loops over points and lanes inside a place. */
static bool read_points(chain *c, uint32_t reduce, int lanes, qn_strip *out)
{
    const qn_kernel *k = c->x->k;
    int order = qn__order_rule(k, reduce), slots = 1;
    int64_t points = qn__points(k, c->x->f, reduce), together, step;
    bool is_striped = order == QN_STRIPED,
         has_blocks = (is_striped || order == QN_INDEXED) &&
                      (points < 0 || points > QN_BLOCK_POINTS);
    for (int n = 0; n < k->inst[reduce].n_args; n++) {
        int d = qn__dim_of(k, reduce, n);
        if (d != out->dim && !enter(c, d, QN_ROLE_SEQUENTIAL, 1))
            return false;
    }
    if (has_blocks && !enter(c, out->dim, QN_ROLE_SEQUENTIAL, QN_BLOCK_POINTS))
        return false;
    if (is_striped) {
        slots = has_extent(c, QN_PARTIALS) ? QN_PARTIALS : QN_PARTIALS / 2;
        if (!has_extent(c, slots) || !enter(c, out->dim, QN_ROLE_SEQUENTIAL, 1))
            return false;
    }
    together = next_weight(c, out->dim, QN_ROLE_SEQUENTIAL);
    if (together % slots || !enter(c, out->dim, QN_ROLE_SEQUENTIAL, together))
        return false;
    together /= slots;
    step = next_weight(c, lanes, QN_ROLE_SEQUENTIAL);
    if (!step || !enter(c, lanes, QN_ROLE_SEQUENTIAL, step))
        return false;
    if (together > 1 &&
        (!has_extent(c, together) || !enter(c, out->dim, QN_ROLE_UNROLLED, slots)))
        return false;
    if (is_striped && (slots == QN_PARTIALS) != (together % 2 == 1))
        return false;
    bool is_same = !out->together || (out->together == together && out->step == step);
    out->together = (int)together;
    out->step = step;
    return is_same && together <= MOST_PLANNED &&
           is_block_of(c, k->inst[reduce].region[0], k->inst[reduce].region[1]);
}

/** Whether a dimension has no sections, and no steps that overlap or, of points, are masked. */
static bool have_rests(const qn_analysis *x, const qn_schedule *s, int d)
{
    for (int n = 0; n < s->n_cuts; n++) {
        const qn_cut *c = &s->cut[n];
        bool is_masked = c->tail == QN_TAIL_MASK && qn__is_reduction(x->k, d);
        if (qn__axis_dim(x, s, c->of) == d &&
            (c->kind == QN_CUT_SECTIONS || c->tail == QN_TAIL_OVERLAP || is_masked))
            return false;
    }
    return true;
}

static bool read_place(const qn_analysis *x, const qn_schedule *s, qn_node place, int lanes,
                       qn_strip *out)
{
    const qn_reduced *r = &s->reduction[qn__node(s, place)->index];
    chain c = {x, s, qn__node(s, place)->child};
    return r->n == 1 && r->buffer && s->buffer[r->buffer - 1].storage == QN_STORAGE_SCRATCH &&
           x->k->inst[r->inst[0]].op == QN_I_REDUCE && read_points(&c, r->inst[0], lanes, out);
}

/** Whether a node is a loop over the strip with statements alone. */
static bool is_rest(const qn_analysis *x, const qn_schedule *s, qn_node at, int lanes,
                    const qn_strip *strip)
{
    const qn_node_info *l = qn__node(s, at);
    chain c = {x, s, l->child};
    if (l->kind != QN_NODE_LOOP || l->role != QN_ROLE_SEQUENTIAL ||
        qn__axis_dim(x, s, l->axis) != lanes ||
        qn__axis_weight(x, s, l->axis, NULL) != strip->step)
        return false;
    while (qn__is_of_block(x, s, c.at) && !qn__node(s, c.at)->next.id)
        c.at = qn__node(s, c.at)->child;
    for (; c.at.id; c.at = qn__node(s, c.at)->next)
        if (qn__node(s, c.at)->kind != QN_NODE_DO)
            return false;
    return true;
}

bool qn__has_sums(const qn_schedule *s, qn_node loop)
{
    for (qn_node n = qn__node(s, loop)->child; n.id; n = qn__node(s, n)->next)
        if (qn__node(s, n)->kind == QN_NODE_PLACE &&
            s->reduction[qn__node(s, n)->index].buffer != 0)
            return true;
    return false;
}

bool qn__strip_of(const qn_analysis *x, const qn_schedule *s, qn_node loop, qn_strip *out)
{
    const qn_node_info *l = qn__node(s, loop);
    int lanes = qn__axis_dim(x, s, l->axis), n_places = 0;
    *out = (qn_strip){.length = qn__axis_weight(x, s, l->axis, NULL),
                      .dim = lanes < 0 ? -1 : qn__strip_dim(x, lanes)};
    if (out->dim < 0 || !have_rests(x, s, out->dim) || !have_rests(x, s, lanes))
        return false;
    for (qn_node n = l->child; n.id; n = qn__node(s, n)->next)
        if (qn__node(s, n)->kind == QN_NODE_PLACE && (n_places++, !read_place(x, s, n, lanes, out)))
            return false;
    for (qn_node n = l->child; n.id; n = qn__node(s, n)->next)
        if (qn__node(s, n)->kind != QN_NODE_PLACE && !is_rest(x, s, n, lanes, out))
            return false;
    return n_places > 0 && n_places == qn__n_top_reduces(x->k) && out->length % out->step == 0;
}
