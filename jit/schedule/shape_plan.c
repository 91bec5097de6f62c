/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_plan.c: what a schedule that was verified says of statements, as the fields of a plan:
 * lanes, threads, what is non-temporal. A schedule that has no such plan is refused with the name
 * of the form that has no code.
 */
#include "jit/schedule/buffer.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/shape.h"

#include <string.h>

/** Whether an axis is a section, or made of one. */
static bool has_section(const qn_schedule *s, qn_axis a)
{
    for (;;) {
        const qn_axis_info *info = qn__axis(s, a);
        if (info->kind != QN_AXIS_PART)
            return false;
        if (s->cut[info->cut].kind == QN_CUT_SECTIONS)
            return true;
        a = info->of[0];
    }
}

/** What of the records has no code. */
static bool may_be_records(qn_reading *m)
{
    for (int n = 0; n < m->s->n_records; n++) {
        const qn_record_info *r = &m->s->record[n];
        if (r->ahead)
            return qn__no_code(m, "prefetches", (qn_axis){0});
        if (r->check == QN_CHECK_HOISTED)
            return qn__no_code(m, "checks before a loop", (qn_axis){0});
    }
    return true;
}

/** The last loop over dimension d that is no part of the block. */
static qn_node steps_over(const qn_reading *m, int d)
{
    qn_node at = qn__loop_below(m->x, m->s, m->s->root, d), last = {0};
    for (; at.id && !qn__is_of_block(m->x, m->s, at);
         at = qn__loop_below(m->x, m->s, qn__node(m->s, at)->child, d))
        last = at;
    return last;
}

/** Iterations of the block along d. */
static int64_t block_size(const qn_block *b, int d)
{
    int64_t size = d == b->lane_dim ? (int64_t)b->width * b->unroll : 1;
    for (int n = 0; n < b->n; n++)
        size *= b->dim[n] == d ? b->extent[n] : 1;
    return size;
}

/** Of steps only those of the block overlap. */
static bool may_overlap(qn_reading *m, const qn_block *b)
{
    for (int n = 0; n < m->s->n_cuts; n++) {
        const qn_cut *c = &m->s->cut[n];
        qn_axis root;
        int d = qn__iteration_dim(m->x, m->s, c->of);
        if (c->kind != QN_CUT_DIGITS || c->tail != QN_TAIL_OVERLAP || d < 0)
            continue;
        int64_t step = qn__axis_weight(m->x, m->s, c->first, &root);
        bool is_exact = qn__axis_count(m->x, m->s, c->of).most % step == 0;
        if (qn__axis_weight(m->x, m->s, c->of, &root) != 1 ||
            (!is_exact && step != block_size(b, d)))
            return qn__no_code(m, "steps that overlap and are no blocks", c->of);
    }
    return true;
}

/** Whether a loop of the tree walks steps of so many iterations along d as the block has. */
static bool is_block_whole(qn_reading *m, const qn_block *b, int d)
{
    int64_t size = block_size(b, d);
    qn_node last = steps_over(m, d);
    qn_axis root;
    if (last.id)
        return qn__axis_weight(m->x, m->s, qn__node(m->s, last)->axis, &root) == size ||
               qn__no_code(m, "steps that are no multiple of the block",
                           qn__node(m->s, last)->axis);
    return qn__trips(m->x->f, d) == size ||
           qn__no_code(m, "a dimension that is emitted at once, and has a rest", (qn_axis){0});
}

/** What follows whole steps of the lanes, as the plan says. */
static int remainder_of(const qn_reading *m, const qn_block *b)
{
    static const int remainder[] = {
        [QN_TAIL_NONE] = QN_REMAINDER_NONE,     [QN_TAIL_MASK] = QN_REMAINDER_MASK,
        [QN_TAIL_SCALAR] = QN_REMAINDER_SCALAR, [QN_TAIL_NARROWER] = QN_REMAINDER_TILE,
        [QN_TAIL_OVERLAP] = QN_REMAINDER_OVERLAP};
    qn_node at = steps_over(m, b->lane_dim);
    if (!at.id)
        return QN_REMAINDER_NONE;
    int tail = qn__tail_of_steps(m->x, m->s, at);
    bool is_section = has_section(m->s, qn__node(m->s, at)->axis),
         has_masks = m->x->f->target->has_masks;
    if (!is_section && qn__is_multiple(m->x->f, b->lane_dim, (int64_t)b->width * b->unroll))
        return QN_REMAINDER_NONE;
    if (tail == QN_TAIL_NARROWER && (is_section || qn__trips(m->x->f, b->lane_dim) < 0))
        return has_masks ? QN_REMAINDER_MASK : QN_REMAINDER_SCALAR;
    return remainder[tail];
}

/** What follows whole steps of lanes over points. */
static int remainder_of_points(const qn_scheduled *x, const qn_block *b)
{
    if (qn__is_multiple(x->f, b->points_dim, QN_PARTIALS))
        return QN_REMAINDER_NONE;
    bool has_masks = x->f->target->has_masks && b->points_tail == QN_TAIL_MASK;
    return has_masks ? QN_REMAINDER_MASK : QN_REMAINDER_SCALAR;
}

/** The dimensions in the order of their first loops. */
static void read_order(const qn_reading *m, qn_node n, qn_plan *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        int d = qn__node_dim(m->x, m->s, l);
        if (d >= 0 && qn__place_of(p, d) == p->n_loops)
            p->order[p->n_loops++] = d;
        if (l->kind != QN_NODE_FILL)
            read_order(m, l->child, p);
    }
}

/** The plan with the order that the loops have around node n: dimensions with a loop inside of the
 * steps of the lanes come behind these. Digits of one dimension may stand on both sides. */
static qn_plan plan_around(const qn_reading *m, const qn_plan *p, qn_node n)
{
    qn_plan around = *p;
    uint32_t inside = 0;
    int at = 0;
    for (; n.id; n = qn__node(m->s, n)->parent) {
        const qn_node_info *l = qn__node(m->s, n);
        int d = qn__node_dim(m->x, m->s, l);
        if (d < 0 || qn__is_of_block(m->x, m->s, n))
            continue;
        if (d == p->lane_dim)
            break;
        inside |= UINT32_C(1) << d;
    }
    for (int part = 0; part < 3; part++) /* outside, the lanes, inside */
        for (int i = 0; i < p->n_loops; i++) {
            int d = p->order[i], own = d == p->lane_dim ? 1 : inside >> d & 1 ? 2 : 0;
            if (own == part)
                around.order[at++] = d;
        }
    return around;
}

/** Non-temporal stores: rows begin alike in a line, and nothing is jammed. */
static bool read_streams(qn_reading *m, const qn_block *b, qn_plan *p)
{
    for (int n = 0; n < m->s->n_records; n++) {
        const qn_record_info *r = &m->s->record[n];
        if (!r->streams)
            continue;
        if (r->method == QN_METHOD_THROUGH) /* of line ends */
            continue;
        const qn_plan around = plan_around(m, p, r->at);
        if (b->n > 0 || !qn__is_stream(m->x->k, m->x->f, &m->x->a, &around,
                                       qn__site_of(m->x->k, r->inst)))
            return qn__no_code(m, "streams whose rows begin anywhere in a line", (qn_axis){0});
        p->streams = 1;
    }
    return true;
}

/** Memory of the launch for buffers. */
static void read_scratch(const qn_reading *m, const qn_block *b, qn_plan *p)
{
    p->streams |= b->ends != 0;
    if (b->strip.length) {
        p->strip = (int32_t)b->strip.length;
        p->jam_dim = b->strip.dim;
        p->jam = b->strip.together;
        p->scratch_bytes = qn__strip_bytes(m->x->k, m->x->f, p->strip, p->jam);
    }
}

/** Whether dimension d runs within another one: its own loop has one iteration, while the launch
 * knows it by the iterations that it had. */
static bool is_merged(const qn_facts *f, int d)
{
    bool is_so = false;
    for (int other = 0; d >= 0 && other < f->n_dims; other++)
        is_so |= (f->merged[other] >> d & 1) != 0;
    return is_so;
}

/** Where threads divide. */
static bool read_threads(qn_reading *m, qn_node n, qn_plan *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        bool is_divided =
            l->kind == QN_NODE_LOOP && l->role == QN_ROLE_THREADS && !p->n_shared_reduces;
        int d = is_divided ? qn__iteration_dim(m->x, m->s, l->axis) : -1;
        if (is_divided && d < 0)
            return qn__no_code(m, "threads over points", l->axis);
        if (is_divided && !is_merged(m->x->f, d)) {
            qn_axis root;
            int64_t granule = qn__axis_weight(m->x, m->s, l->axis, &root);
            if (p->split_dim < 0 || p->split_dim == d) {
                p->split_dim = d;
                p->granule = granule > p->granule ? granule : p->granule;
            } else if (!p->second_granule || p->second_dim == d) {
                p->second_dim = d;
                p->second_granule = granule > p->second_granule ? granule : p->second_granule;
            } else {
                return qn__no_code(m, "threads over three dimensions", l->axis);
            }
        }
        if (!read_threads(m, l->child, p))
            return false;
    }
    return true;
}

/** The launch counts the iterations of dimensions that run within another one for the first
 * dimension that is divided, not for the second. */
static bool put_merged_first(qn_reading *m, qn_plan *p)
{
    if (!p->second_granule || !p->merged[p->second_dim])
        return true;
    int d = p->split_dim;
    int64_t granule = p->granule;
    p->split_dim = p->second_dim;
    p->granule = p->second_granule;
    p->second_dim = d;
    p->second_granule = granule;
    return !p->merged[d] ||
           qn__no_code(m, "threads over two dimensions that are several each", (qn_axis){0});
}

/** The begin of a chunk is no multiple of the steps of a section. */
static bool may_divide(qn_reading *m, qn_node n, const qn_plan *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        int d = qn__node_dim(m->x, m->s, l);
        bool is_divided =
            d >= 0 && (d == p->split_dim || (p->second_granule && d == p->second_dim));
        qn_axis root;
        if (is_divided && has_section(m->s, l->axis) &&
            qn__axis_weight(m->x, m->s, l->axis, &root) > 1)
            return qn__no_code(m, "threads over steps of a section", l->axis);
        if (!may_divide(m, l->child, p))
            return false;
    }
    return true;
}

qn_status qn__plan_of_schedule(const qn_scheduled *x, const qn_schedule *s, qn_plan *p,
                               qn_error *err)
{
    qn_reading m = {.x = x, .s = s, .err = err};
    qn_block b;
    memset(p, 0, sizeof *p);
    memcpy(p->merged, x->f->merged, sizeof p->merged);
    p->lane_dim = p->jam_dim = p->cross_dim = p->tile_at = p->split_dim = p->second_dim = -1;
    p->width = p->unroll = p->jam = p->cross = 1;
    p->granule = 1;
    if (x->f->target->has_grid)
        return qn__plan_of_grid(x, s, p, err);
    if (m.status != QN_OK || !may_be_records(&m))
        return m.status;
    m.status = qn__block_of(x, s, &b, err);
    if (m.status != QN_OK)
        return m.status;
    bool over_points = b.points_dim >= 0;
    p->lane_dim = over_points ? b.points_dim : b.lane_dim;
    p->width = over_points ? b.points_width : b.width;
    p->unroll = over_points ? b.points_unroll : b.unroll;
    p->straight = qn__plan_straight(x->k);
    read_order(&m, s->root, p);
    for (int d = 0; d < x->k->n_dims; d++)
        if (!qn__is_reduction(x->k, d) && !is_block_whole(&m, &b, d))
            return m.status;
    if (b.n_shared) {
        p->n_shared_reduces = b.n_shared;
        p->split_dim = b.shared_dim;
        p->granule = QN_BLOCK_POINTS;
    }
    if (!may_overlap(&m, &b) || !read_threads(&m, s->root, p) || !put_merged_first(&m, p) ||
        !may_divide(&m, s->root, p) || !read_streams(&m, &b, p))
        return m.status;
    p->remainder = over_points       ? remainder_of_points(x, &b)
                   : b.lane_dim >= 0 ? remainder_of(&m, &b)
                                     : QN_REMAINDER_NONE;
    p->scratch_bytes = qn__buffers_scratch(s, s->n_buffers);
    read_scratch(&m, &b, p);
    if (p->lane_dim >= 0)
        qn__plan_apart(x->k, x->f, &x->a, p);
    bool is_alone = p->split_dim < 0 || p->n_shared_reduces;
    p->atomics = x->f->atomics == QN_ATOMICS_OF_THREADS && is_alone ? QN_ATOMICS_OF_ONE
                                                                     : x->f->atomics;
    return QN_OK;
}
