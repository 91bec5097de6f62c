/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c: which loops of a schedule are the block that each statement is emitted for, and which are
 * emitted as loops. A schedule that was verified but has a form that the code generator has no code
 * for is refused here with the name of the form.
 */
#include "jit/schedule/shape.h"
#include "jit/schedule/plan.h"

#include <string.h>

/* ---------------------------------------------------------------- loops */

/** The dimension of a loop over iterations, -1: it is over points of a reduce, or trips. */
static int iteration_dim(const qn_scheduled *x, const qn_schedule *s, qn_axis a)
{
    int d = qn__axis_dim(x, s, a);
    return d >= 0 && !qn__is_reduction(x->k, d) ? d : -1;
}

bool qn__is_of_block(const qn_scheduled *x, const qn_schedule *s, qn_node loop)
{
    const qn_node_info *l = qn__node(s, loop);
    int d = l->kind == QN_NODE_LOOP ? iteration_dim(x, s, l->axis) : -1;
    return d >= 0 &&
           (l->role == QN_ROLE_VECTOR || (l->role == QN_ROLE_UNROLLED && !x->f->is_ordered &&
                                          qn__is_parallel(x->k, d)));
}

qn_node qn__loop_below(const qn_scheduled *x, const qn_schedule *s, qn_node n, int d)
{
    for (; n.id; n = qn__node(s, n)->next) {
        const qn_node_info *l = qn__node(s, n);
        if (l->kind == QN_NODE_LOOP && qn__axis_dim(x, s, l->axis) == d)
            return n;
        qn_node below = qn__loop_below(x, s, l->child, d);
        if (below.id)
            return below;
    }
    return (qn_node){0};
}

bool qn__has_loops(const qn_scheduled *x, const qn_schedule *s, qn_node n)
{
    const qn_node_info *l = qn__node(s, n);
    bool is_loop = l->kind == QN_NODE_LOOP && iteration_dim(x, s, l->axis) >= 0;
    if (is_loop && !qn__is_of_block(x, s, n))
        return true;
    for (qn_node c = l->child; c.id; c = qn__node(s, c)->next)
        if (qn__has_loops(x, s, c))
            return true;
    return false;
}

void qn__statements_of(const qn_schedule *s, const qn_kernel *k, qn_node n, uint32_t *first,
                       uint32_t *end)
{
    const qn_node_info *l = qn__node(s, n);
    const qn_reduced *r = l->kind == QN_NODE_PLACE ? &s->reduction[l->index] : NULL;
    if (r || l->kind == QN_NODE_DO) {
        uint32_t from = r ? r->inst[0] : l->first,
                 to = r ? k->inst[r->inst[r->n - 1]].region[2] : l->end;
        *first = from < *first ? from : *first;
        *end = to > *end ? to : *end;
        return;
    }
    for (qn_node c = l->child; c.id; c = qn__node(s, c)->next)
        qn__statements_of(s, k, c, first, end);
}

/* ---------------------------------------------------------------- forms that have code */

typedef struct shaper {
    const qn_scheduled *x;
    const qn_schedule *s;
    qn_error *err;
    qn_status status;
    qn_node path[QN_MOST_DEPTH];
    int n_path;
    qn_axis block[QN_MOST_DEPTH]; /* axes of the block of the first statement */
    int n_block;
    bool has_block;
    qn_node vector; /* a loop over lanes; 0: none so far */
} shaper;

static bool refuse(shaper *m, const char *what, qn_axis a)
{
    char name[QN_AXIS_NAME_BYTES] = "";
    if (a.id)
        qn__axis_name(m->s, a, name);
    if (m->status == QN_OK)
        m->status = qn__fail(m->err, QN_ERR_UNSUPPORTED,
                             "schedule of kernel \"%.60s\": no code is generated for %s%s%s yet",
                             m->x->k->name, what, a.id ? ": " : "", name);
    return false;
}

static const qn_node_info *loop_at(const shaper *m, int n)
{
    return qn__node(m->s, m->path[n]);
}

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

/** A section that ends at the index of a dimension ends elsewhere in each iteration of a block. */
static bool has_own_anchors(shaper *m, const qn_cut *c)
{
    for (int n = 0; n < c->n - 1; n++) {
        const qn_bound *b = &c->bound[n];
        if (b->from != QN_FROM_AXIS)
            continue;
        int d = qn__axis_dim(m->x, m->s, b->axis);
        qn_node at = qn__loop_below(m->x, m->s, m->s->root, d);
        for (; at.id; at = qn__loop_below(m->x, m->s, qn__node(m->s, at)->child, d))
            if (qn__is_of_block(m->x, m->s, at))
                return refuse(m, "sections that differ in a block", b->axis);
        if (qn__axis(m->s, b->axis)->kind != QN_AXIS_DIM)
            return refuse(m, "sections that end at a part of an index", b->axis);
    }
    return true;
}

/** A loop: what it walks, and that digits of one dimension stand slowest first. */
static bool may_be_loop(shaper *m, int n)
{
    const qn_node_info *l = loop_at(m, n);
    qn_axis root, other;
    int64_t weight = qn__axis_weight(m->x, m->s, l->axis, &root);
    const qn_axis_info *of = qn__axis(m->s, root);
    if (!weight || of->kind == QN_AXIS_TRIP)
        return refuse(m, "loops over fused axes and trips", l->axis);
    if (of->kind == QN_AXIS_POINT)
        return true;
    for (int c = 0; c < m->s->n_cuts; c++)
        if (m->s->cut[c].kind == QN_CUT_SECTIONS && !has_own_anchors(m, &m->s->cut[c]))
            return false;
    for (int i = 0; i < n; i++) {
        int64_t around = qn__axis_weight(m->x, m->s, loop_at(m, i)->axis, &other);
        if (other.id == root.id && around <= weight)
            return refuse(m, "faster digits around slower ones", l->axis);
        if (other.id == root.id && qn__is_of_block(m->x, m->s, m->path[i]) &&
            !qn__is_of_block(m->x, m->s, m->path[n]))
            return refuse(m, "loops inside of unrolled ones", l->axis);
    }
    return true;
}

/** The block of a statement must be that of the others. */
static bool has_same_block(shaper *m)
{
    qn_axis own[QN_MOST_DEPTH];
    int n_own = 0, found = 0;
    for (int n = 0; n < m->n_path; n++) {
        if (loop_at(m, n)->role == QN_ROLE_VECTOR && !m->vector.id)
            m->vector = m->path[n];
        if (qn__is_of_block(m->x, m->s, m->path[n]))
            own[n_own++] = loop_at(m, n)->axis;
    }
    if (!m->has_block) {
        memcpy(m->block, own, sizeof own);
        m->n_block = n_own;
        m->has_block = true;
    }
    for (int n = 0; n < n_own; n++)
        for (int i = 0; i < m->n_block; i++)
            found += own[n].id == m->block[i].id;
    return (found == n_own && n_own == m->n_block) ||
           refuse(m, "statements with different loops over lanes or unrolled loops",
                  (qn_axis){0});
}

/** A reduce in registers whose points are walked in their order, one statement inside. */
static bool may_be_place(shaper *m, const qn_node_info *place, qn_node n, int *at)
{
    const qn_reduced *r = &m->s->reduction[place->index];
    const qn_kernel *k = m->x->k;
    const qn_node_info *l = qn__node(m->s, n);
    if (r->buffer || k->inst[r->inst[0]].op != QN_I_REDUCE)
        return refuse(m, "accumulators in memory, and places of loops", (qn_axis){0});
    if (l->kind == QN_NODE_DO)
        return (l->first == k->inst[r->inst[r->n - 1]].region[0] || r->n > 1 ||
                l->first == k->inst[r->inst[0]].region[0]) ||
               refuse(m, "reduces of several statements", (qn_axis){0});
    if (l->kind != QN_NODE_LOOP)
        return refuse(m, "reduces inside of reduces", (qn_axis){0});
    int d = qn__axis_dim(m->x, m->s, l->axis);
    if (qn__axis(m->s, l->axis)->kind == QN_AXIS_POINT) {
        if (*at >= k->inst[r->inst[0]].n_args || qn__dim_of(k, r->inst[0], *at) != d ||
            l->role == QN_ROLE_THREADS || l->role == QN_ROLE_VECTOR)
            return refuse(m, "points in this order", l->axis);
        (*at)++;
    } else if (d >= 0 && qn__is_reduction(k, d)) {
        return refuse(m, "points that are cut", l->axis);
    } else if (!qn__is_of_block(m->x, m->s, n)) {
        return refuse(m, "loops over iterations inside of a reduce", l->axis);
    }
    return true;
}

static bool may_be_places(shaper *m, qn_node place)
{
    const qn_node_info *p = qn__node(m->s, place);
    int at = 0;
    for (qn_node n = p->child; n.id; n = qn__node(m->s, n)->child) {
        const qn_node_info *l = qn__node(m->s, n);
        if (l->next.id && m->s->reduction[p->index].n == 1)
            return refuse(m, "several nodes inside of a reduce", (qn_axis){0});
        if (!may_be_place(m, p, n, &at))
            return false;
    }
    return true;
}

static bool may_be(shaper *m, qn_node n);

static bool may_be_node(shaper *m, qn_node n)
{
    const qn_node_info *l = qn__node(m->s, n);
    switch (l->kind) {
    case QN_NODE_DO:
        return has_same_block(m);
    case QN_NODE_PLACE:
        return may_be_places(m, n) && may_be(m, l->child);
    case QN_NODE_LOOP: {
        m->path[m->n_path++] = n;
        bool is_possible = may_be_loop(m, m->n_path - 1) && may_be(m, l->child);
        m->n_path--;
        return is_possible;
    }
    default:
        return refuse(m, "buffers and versions", (qn_axis){0});
    }
}

static bool may_be(shaper *m, qn_node n)
{
    for (; n.id; n = qn__node(m->s, n)->next)
        if (!may_be_node(m, n))
            return false;
    return true;
}

/** What of the records has no code. */
static bool may_be_records(shaper *m)
{
    for (int n = 0; n < m->s->n_records; n++) {
        const qn_record_info *r = &m->s->record[n];
        if (r->method == QN_METHOD_GROUP)
            return refuse(m, "groups of accesses", (qn_axis){0});
        if (r->ahead || r->streams)
            return refuse(m, "prefetches and streams", (qn_axis){0});
        if (r->check == QN_CHECK_HOISTED)
            return refuse(m, "checks before a loop", (qn_axis){0});
    }
    return m->s->n_buffers == 0 || refuse(m, "buffers", (qn_axis){0});
}

/* ---------------------------------------------------------------- the block */

enum { MOST_BLOCK = 32 }; /* vectors of a value */

static void add_axis(shaper *m, qn_axis a, qn_block *b)
{
    qn_axis root;
    qn_count count = qn__axis_count(m->x, m->s, a);
    int n = b->n;
    if (count.most > MOST_BLOCK || n == QN_MOST_BLOCK_AXES) {
        refuse(m, "so many iterations at once", a);
        return;
    }
    b->axis[n] = a;
    b->weight[n] = qn__axis_weight(m->x, m->s, a, &root);
    b->dim[n] = qn__axis(m->s, root)->number;
    b->extent[n] = count.most;
    b->n++;
}

static void read_block(shaper *m, qn_block *b)
{
    const qn_node_info *v = qn__node(m->s, m->vector);
    int64_t all = 1;
    qn_axis root;
    *b = (qn_block){.lane_dim = -1, .width = 1, .unroll = 1};
    if (m->vector.id) {
        int64_t width = qn__axis_count(m->x, m->s, v->axis).most;
        b->lane_dim = qn__axis_dim(m->x, m->s, v->axis);
        b->width = (int)width;
        if (qn__axis_weight(m->x, m->s, v->axis, &root) != 1 || (width & (width - 1)))
            refuse(m, "lanes that are not neighbours, or no power of two", v->axis);
    }
    for (int n = 0; n < m->n_block && m->status == QN_OK; n++) {
        qn_axis a = m->block[n];
        if (m->vector.id && a.id == v->axis.id)
            continue;
        bool is_vectors = qn__axis_dim(m->x, m->s, a) == b->lane_dim;
        int64_t extent = qn__axis_count(m->x, m->s, a).most;
        all *= extent;
        if (is_vectors && (b->unroll > 1 || qn__axis_weight(m->x, m->s, a, &root) != b->width))
            refuse(m, "vectors that are not neighbours", a);
        else if (is_vectors)
            b->unroll = (int)extent;
        else
            add_axis(m, a, b);
        if (all > MOST_BLOCK)
            refuse(m, "so many iterations at once", a);
    }
}

qn_status qn__block_of(const qn_scheduled *x, const qn_schedule *s, qn_block *out, qn_error *err)
{
    shaper m = {.x = x, .s = s, .err = err};
    if (may_be(&m, s->root))
        read_block(&m, out);
    return m.status;
}

/* ---------------------------------------------------------------- as a plan */

/** The last loop over dimension d that is no part of the block. */
static qn_node steps_over(const shaper *m, int d)
{
    qn_node at = qn__loop_below(m->x, m->s, m->s->root, d), last = {0};
    for (; at.id && !qn__is_of_block(m->x, m->s, at);
         at = qn__loop_below(m->x, m->s, qn__node(m->s, at)->child, d))
        last = at;
    return last;
}

/** Iterations of the block along d, and whether a loop of the tree walks steps of so many. */
static bool is_block_whole(shaper *m, const qn_block *b, int d)
{
    int64_t size = d == b->lane_dim ? (int64_t)b->width * b->unroll : 1;
    for (int n = 0; n < b->n; n++)
        size *= b->dim[n] == d ? b->extent[n] : 1;
    qn_node last = steps_over(m, d);
    qn_axis root;
    if (last.id)
        return qn__axis_weight(m->x, m->s, qn__node(m->s, last)->axis, &root) == size ||
               refuse(m, "steps that are no multiple of the block",
                      qn__node(m->s, last)->axis);
    return qn__trips(m->x->f, d) == size ||
           refuse(m, "a dimension that is emitted at once, and has a rest", (qn_axis){0});
}

/** What follows whole steps of the lanes, as the plan says. */
static int remainder_of(const shaper *m, const qn_block *b)
{
    static const int remainder[] = {
        [QN_TAIL_NONE] = QN_REMAINDER_NONE,     [QN_TAIL_MASK] = QN_REMAINDER_MASK,
        [QN_TAIL_SCALAR] = QN_REMAINDER_SCALAR, [QN_TAIL_NARROWER] = QN_REMAINDER_TILE,
        [QN_TAIL_OVERLAP] = QN_REMAINDER_OVERLAP};
    qn_node at = steps_over(m, b->lane_dim);
    if (!at.id)
        return QN_REMAINDER_NONE;
    qn_axis axis = qn__node(m->s, at)->axis;
    const qn_axis_info *a = qn__axis(m->s, axis);
    int tail = a->kind == QN_AXIS_PART ? m->s->cut[a->cut].tail : QN_TAIL_NONE;
    bool is_section = has_section(m->s, axis), has_masks = m->x->f->target->has_masks;
    if (!is_section && qn__is_multiple(m->x->f, b->lane_dim, (int64_t)b->width * b->unroll))
        return QN_REMAINDER_NONE;
    if (tail == QN_TAIL_NARROWER && (is_section || qn__trips(m->x->f, b->lane_dim) < 0))
        return has_masks ? QN_REMAINDER_MASK : QN_REMAINDER_SCALAR;
    return remainder[tail];
}

/** Where threads divide. */
static bool read_threads(shaper *m, qn_node n, qn_plan *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        qn_axis root;
        if (l->kind == QN_NODE_LOOP && l->role == QN_ROLE_THREADS) {
            int64_t granule = qn__axis_weight(m->x, m->s, l->axis, &root);
            int d = iteration_dim(m->x, m->s, l->axis);
            if (d < 0)
                return refuse(m, "threads over points", l->axis);
            if (p->split_dim < 0 || p->split_dim == d) {
                p->split_dim = d;
                p->granule = granule > p->granule ? granule : p->granule;
            } else if (!p->second_granule || p->second_dim == d) {
                p->second_dim = d;
                p->second_granule = granule > p->second_granule ? granule : p->second_granule;
            } else {
                return refuse(m, "threads over three dimensions", l->axis);
            }
            if (has_section(m->s, l->axis) && granule > 1)
                return refuse(m, "threads over steps of a section", l->axis);
        }
        if (!read_threads(m, l->child, p))
            return false;
    }
    return true;
}

qn_status qn__plan_of_schedule(const qn_scheduled *x, const qn_schedule *s, qn_plan *p,
                               qn_error *err)
{
    shaper m = {.x = x, .s = s, .err = err};
    qn_block b;
    memset(p, 0, sizeof *p);
    memcpy(p->merged, x->f->merged, sizeof p->merged);
    p->lane_dim = p->jam_dim = p->cross_dim = p->tile_at = p->split_dim = p->second_dim = -1;
    p->width = p->unroll = p->jam = p->cross = 1;
    p->granule = 1;
    if (x->f->target->has_grid)
        refuse(&m, "schedules of a GPU", (qn_axis){0});
    if (m.status != QN_OK || !may_be_records(&m))
        return m.status;
    m.status = qn__block_of(x, s, &b, err);
    if (m.status != QN_OK)
        return m.status;
    p->lane_dim = b.lane_dim;
    p->width = b.width;
    p->unroll = b.unroll;
    p->straight = qn__plan_straight(x->k);
    for (int d = 0; d < x->k->n_dims; d++)
        if (!qn__is_reduction(x->k, d)) {
            p->order[p->n_loops++] = d;
            if (!is_block_whole(&m, &b, d))
                return m.status;
        }
    if (!read_threads(&m, s->root, p))
        return m.status;
    p->remainder = p->lane_dim >= 0 ? remainder_of(&m, &b) : QN_REMAINDER_NONE;
    if (p->lane_dim >= 0)
        qn__plan_apart(x->k, x->f, &x->a, p);
    p->atomics = x->f->atomics == QN_ATOMICS_OF_THREADS && p->split_dim < 0 ? QN_ATOMICS_OF_ONE
                                                                             : x->f->atomics;
    return QN_OK;
}
