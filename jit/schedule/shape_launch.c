/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_launch.c: what a schedule that was verified says beside its loops and the block of its
 * statements: how steps end, what threads divide, what is non-temporal, what memory a launch needs.
 * A schedule that has no such record is refused with the name of the form that has no code.
 */
#include "jit/schedule/buffer.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/shape.h"

#include <string.h>

/** Whether an axis is a section, or made of one. */
static bool has_section(const qn_schedule *s, qn_axis a)
{
    for (; qn__axis(s, a)->kind == QN_AXIS_PART; a = qn__axis(s, a)->of)
        if (s->cut[qn__axis(s, a)->cut].kind == QN_CUT_SECTIONS)
            return true;
    return false;
}

int qn__ahead_of(const qn_analysis *x, const qn_schedule *s, const qn_block *b,
                 const qn_record_info *r)
{
    qn_axis root;
    const qn_kernel *k = x->k;
    uint32_t reduce = qn__enclosing_reduce(k, r->inst);
    int64_t weight = r->ahead ? qn__axis_weight(x, s, r->along, &root) : 0;
    if (!weight || k->inst[r->inst].op != QN_I_LOAD)
        return QN_AHEAD_NONE;
    const qn_axis_info *of = qn__axis(s, root);
    int across = b->n > 0 && b->extent[b->n - 1] > 1 ? qn__across(b) : -1;
    if (of->kind == QN_AXIS_POINT)
        return of->inst == reduce && root.id == r->along.id &&
                       of->number == qn__dim_of(k, reduce, 0) &&
                       qn__is_prefetched(x, b->lane_dim, across, r->inst)
                   ? QN_AHEAD_POINTS
                   : QN_AHEAD_NONE;
    if (of->kind != QN_AXIS_DIM || of->number != b->lane_dim)
        return QN_AHEAD_NONE;
    if (weight == (int64_t)b->width * b->unroll && qn__asked_by(x, b->lane_dim, r->inst) >= 0)
        return QN_AHEAD_STEPS;
    bool may_lead = weight == 1 && r->method == QN_METHOD_CONTIGUOUS && !k->inst[r->inst].parent &&
                    !qn__is_checked(x->f, k, qn__site_of(k, r->inst));
    return may_lead ? QN_AHEAD_LANES : QN_AHEAD_NONE;
}

/** What of the records has no code. */
static bool may_be_records(qn_reading *m, const qn_block *b)
{
    for (int n = 0; n < m->s->n_records; n++) {
        const qn_record_info *r = &m->s->record[n];
        if (r->ahead && qn__ahead_of(m->x, m->s, b, r) == QN_AHEAD_NONE)
            return qn__no_code(m, "prefetches like these", r->along);
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
        int d = qn__iteration_dim(m->x, m->s, c->of);
        if (c->kind != QN_CUT_DIGITS || c->tail != QN_TAIL_OVERLAP || d < 0)
            continue;
        int64_t step = qn__axis_weight(m->x, m->s, c->first, NULL);
        bool is_exact = qn__axis_count(m->x, m->s, c->of).most % step == 0;
        if (qn__axis_weight(m->x, m->s, c->of, NULL) != 1 ||
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
    if (last.id)
        return qn__axis_weight(m->x, m->s, qn__node(m->s, last)->axis, NULL) == size ||
               qn__no_code(m, "steps that are no multiple of the block",
                           qn__node(m->s, last)->axis);
    return qn__trips(m->x->f, d) == size ||
           qn__no_code(m, "a dimension that is emitted at once, and has a rest", (qn_axis){0});
}

/** What follows whole steps of the lanes. Those that begin at a cache line may leave some, of
 * whatever number. */
static int tail_of(const qn_reading *m, const qn_block *b)
{
    qn_node at = steps_over(m, b->lane_dim);
    bool has_masks = m->x->f->target->has_masks;
    int simple = has_masks ? QN_TAIL_MASK : QN_TAIL_SCALAR;
    if (!at.id)
        return QN_TAIL_NONE;
    int tail = qn__tail_of_steps(m->x, m->s, at);
    bool is_section = has_section(m->s, qn__node(m->s, at)->axis);
    if (!is_section && qn__is_multiple(m->x->f, b->lane_dim, (int64_t)b->width * b->unroll))
        tail = QN_TAIL_NONE;
    if (tail == QN_TAIL_NARROWER &&
        (is_section || qn__is_given(m->x->f, b->lane_dim) || qn__trips(m->x->f, b->lane_dim) < 0))
        tail = simple;
    return b->streams && (tail == QN_TAIL_NONE || tail == QN_TAIL_NARROWER) ? simple : tail;
}

/** What follows whole steps of lanes over points. */
static int tail_of_points(const qn_analysis *x, const qn_block *b)
{
    if (qn__is_multiple(x->f, b->lane_dim, QN_PARTIALS))
        return QN_TAIL_NONE;
    return x->f->target->has_masks && b->tail == QN_TAIL_MASK ? QN_TAIL_MASK : QN_TAIL_SCALAR;
}

/** The dimensions in the order of their innermost loops that are no part of the block. */
static void read_order(const qn_reading *m, qn_node n, qn_block *b)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        int d = qn__node_dim(m->x, m->s, l), at = 0;
        while (d >= 0 && at < b->n_loops && b->order[at] != d)
            at++;
        bool is_inner = at < b->n_loops && d >= 0 && !qn__is_of_block(m->x, m->s, n);
        b->n_loops -= is_inner;
        for (int i = at; is_inner && i < b->n_loops; i++)
            b->order[i] = b->order[i + 1];
        if (d >= 0 && (at == b->n_loops || is_inner))
            b->order[b->n_loops++] = d;
        read_order(m, l->child, b);
    }
}

/** Whether the rows that a store writes in one step of the lanes, or in the loops inside theirs,
 * begin at one place of a cache line. */
static bool are_rows_congruent(const qn_reading *m, const qn_block *b, const qn_record_info *r)
{
    int64_t line = LINE_BYTES / qn__access_bytes(m->x->k, r->inst), stride;
    bool is_inside = true; /* of the loop over steps of the lanes */
    for (qn_node n = r->at; n.id; n = qn__node(m->s, n)->parent) {
        const qn_node_info *l = qn__node(m->s, n);
        bool is_of_block = qn__is_of_block(m->x, m->s, n);
        int d = qn__node_dim(m->x, m->s, l);
        is_inside = is_inside && (d < 0 || d != b->lane_dim || is_of_block);
        if (d >= 0 && d != b->lane_dim && (is_inside || is_of_block) &&
            (!qn__access_stride(m->x, r->inst, d, &stride) || stride % line))
            return false;
    }
    return true;
}

bool qn__is_streamed(const qn_schedule *s, uint32_t i)
{
    for (int n = 0; n < s->n_records; n++)
        if (s->record[n].inst == i && s->record[n].streams &&
            s->record[n].method != QN_METHOD_THROUGH)
            return true;
    return false;
}

static bool read_streams(qn_reading *m, qn_block *b)
{
    b->streams = b->ends != 0;
    for (int n = 0; n < m->s->n_records; n++) {
        const qn_record_info *r = &m->s->record[n];
        if (!r->streams || r->method == QN_METHOD_THROUGH) /* of line ends */
            continue;
        if (!qn__may_fill_lines(m->x, b->lane_dim, b->width, qn__site_of(m->x->k, r->inst)) ||
            !are_rows_congruent(m, b, r))
            return qn__no_code(m, "streams whose rows begin anywhere in a line", (qn_axis){0});
        b->streams = true;
    }
    return true;
}

/** Whether atomics, and accesses of views that are atomic, are plain instructions, those of several
 * threads, or those of a launch that may have one. */
static int atomics_of(const qn_reading *m, const qn_block *b)
{
    bool is_plain = b->split_dim < 0 || b->n_shared;
    for (int n = 0; n < m->s->n_records; n++)
        is_plain = is_plain && (m->s->record[n].is_plain ||
                                m->x->k->inst[m->s->record[n].inst].op != QN_I_ATOMIC);
    return is_plain && m->x->f->atomics == QN_ATOMICS_OF_THREADS ? QN_ATOMICS_OF_ONE
                                                                 : m->x->f->atomics;
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

/** Whether a buffer is filled or flushed somewhere inside of a node. */
static bool has_buffers(const qn_schedule *s, qn_node n)
{
    int kind = qn__node(s, n)->kind;
    bool has = kind == QN_NODE_FILL || kind == QN_NODE_FLUSH;
    for (qn_node c = qn__node(s, n)->child; c.id && !has; c = qn__node(s, c)->next)
        has = has_buffers(s, c);
    return has;
}

/** What the begin of a chunk of a loop of threads is a multiple of. Pieces of a tile may be divided
 * at each step inside, if they fill no buffers. */
static int64_t granule_of(const qn_reading *m, qn_node n, int d)
{
    int64_t granule = qn__axis_weight(m->x, m->s, qn__node(m->s, n)->axis, NULL);
    if (qn__is_only_chunks(m->x, m->s, n) || has_buffers(m->s, n))
        return granule;
    for (qn_node in = n; (in = qn__loop_below(m->x, m->s, qn__node(m->s, in)->child, d)).id &&
                         !qn__is_of_block(m->x, m->s, in);)
        granule = qn__axis_weight(m->x, m->s, qn__node(m->s, in)->axis, NULL);
    return granule;
}

/** Where threads divide. */
static bool read_threads(qn_reading *m, qn_node n, qn_block *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        bool is_divided = l->kind == QN_NODE_LOOP && l->role == QN_ROLE_THREADS && !p->n_shared;
        int d = is_divided ? qn__iteration_dim(m->x, m->s, l->axis) : -1;
        if (is_divided && d < 0)
            return qn__no_code(m, "threads over points", l->axis);
        if (is_divided && !is_merged(m->x->f, d)) {
            int64_t granule = granule_of(m, n, d);
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
static bool put_merged_first(qn_reading *m, qn_block *b)
{
    const uint32_t *merged = m->x->f->merged;
    if (!b->second_granule || !merged[b->second_dim])
        return true;
    int d = b->split_dim;
    int64_t granule = b->granule;
    b->split_dim = b->second_dim;
    b->granule = b->second_granule;
    b->second_dim = d;
    b->second_granule = granule;
    return !merged[d] ||
           qn__no_code(m, "threads over two dimensions that are several each", (qn_axis){0});
}

/** The begin of a chunk is no multiple of the steps of a section. */
static bool may_divide(qn_reading *m, qn_node n, const qn_block *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        int d = qn__node_dim(m->x, m->s, l);
        bool is_divided =
            d >= 0 && (d == p->split_dim || (p->second_granule && d == p->second_dim));
        if (is_divided && has_section(m->s, l->axis) &&
            qn__axis_weight(m->x, m->s, l->axis, NULL) > 1)
            return qn__no_code(m, "threads over steps of a section", l->axis);
        if (!may_divide(m, l->child, p))
            return false;
    }
    return true;
}

qn_status qn__read_launch(qn_reading *m, qn_block *b)
{
    const qn_analysis *x = m->x;
    const qn_schedule *s = m->s;
    bool over_points = b->lane_dim >= 0 && qn__is_reduction(x->k, b->lane_dim);
    if (!may_be_records(m, b))
        return m->status;
    b->straight = qn__straight_of(x, s);
    read_order(m, s->root, b);
    for (int d = 0; d < x->k->n_dims; d++)
        if (!qn__is_reduction(x->k, d) && !is_block_whole(m, b, d))
            return m->status;
    if (!may_overlap(m, b) || !read_threads(m, s->root, b) || !put_merged_first(m, b) ||
        !may_divide(m, s->root, b) || !read_streams(m, b))
        return m->status;
    b->tail = over_points        ? tail_of_points(x, b)
              : b->trips.n       ? b->tail
              : b->lane_dim >= 0 ? tail_of(m, b)
                                 : QN_TAIL_NONE;
    b->scratch_bytes =
        b->strip.length ? qn__strip_bytes(x->k, x->f, b->strip.length, (int32_t)b->strip.together)
                        : qn__buffers_scratch(s, s->n_buffers);
    b->atomics = atomics_of(m, b);
    return QN_OK;
}

void qn__give_ranges(qn_block *b, int split_dim, int second_dim)
{
    b->split_dim = split_dim;
    b->granule = 1;
    b->second_dim = second_dim;
    b->second_granule = second_dim >= 0;
    b->n_shared = 0;
}
