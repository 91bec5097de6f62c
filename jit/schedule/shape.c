/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c: which loops of a schedule are the block that each statement is emitted for, and which
 * are emitted as loops. A schedule that was verified but has a form that the code generator has no
 * code for is refused here with the name of the form.
 */
#include "jit/schedule/shape.h"
#include "jit/schedule/buffer.h"
#include "jit/schedule/plan.h"

#include <string.h>

/* ---------------------------------------------------------------- loops */

int qn__iteration_dim(const qn_scheduled *x, const qn_schedule *s, qn_axis a)
{
    int d = qn__axis_dim(x, s, a);
    return d >= 0 && !qn__is_reduction(x->k, d) ? d : -1;
}

bool qn__is_of_block(const qn_scheduled *x, const qn_schedule *s, qn_node loop)
{
    const qn_node_info *l = qn__node(s, loop);
    int d = l->kind == QN_NODE_LOOP ? qn__iteration_dim(x, s, l->axis) : -1;
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
        bool is_copy = l->kind == QN_NODE_FILL || l->kind == QN_NODE_FLUSH;
        qn_node below = is_copy ? (qn_node){0} : qn__loop_below(x, s, l->child, d);
        if (below.id)
            return below;
    }
    return (qn_node){0};
}

bool qn__has_loops(const qn_scheduled *x, const qn_schedule *s, qn_node n)
{
    const qn_node_info *l = qn__node(s, n);
    bool is_loop = l->kind == QN_NODE_LOOP && qn__iteration_dim(x, s, l->axis) >= 0;
    if (is_loop && !qn__is_of_block(x, s, n))
        return true;
    if (l->kind == QN_NODE_FILL)
        return false;
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

int qn__tail_of_steps(const qn_scheduled *x, const qn_schedule *s, qn_node loop)
{
    const qn_node_info *l = qn__node(s, loop);
    int d = qn__axis_dim(x, s, l->axis);
    for (qn_node n = l->child; (n = qn__loop_below(x, s, n, d)).id; n = qn__node(s, n)->child)
        for (qn_axis a = qn__node(s, n)->axis; qn__axis(s, a)->kind == QN_AXIS_PART;
             a = qn__axis(s, a)->of[0]) {
            const qn_cut *c = &s->cut[qn__axis(s, a)->cut];
            if (c->kind == QN_CUT_DIGITS && c->tail != QN_TAIL_NONE)
                return c->tail;
        }
    return QN_TAIL_NONE;
}

/* ---------------------------------------------------------------- forms that have code */

/** Lanes over the points of reduces along dimension d. */
typedef struct points_lanes {
    int d, width, unroll, tail;
} points_lanes;

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
    points_lanes points; /* lanes over points; width 0: none so far */
} shaper;

qn_status qn__no_code(const qn_scheduled *x, const qn_schedule *s, const char *what, qn_axis a,
                      qn_error *err)
{
    char name[QN_AXIS_NAME_BYTES] = "";
    if (a.id)
        qn__axis_name(s, a, name);
    return qn__fail(err, QN_ERR_UNSUPPORTED,
                    "schedule of kernel \"%.60s\": no code is generated for %s%s%s yet", x->k->name,
                    what, a.id ? ": " : "", name);
}

static bool refuse(shaper *m, const char *what, qn_axis a)
{
    if (m->status == QN_OK)
        m->status = qn__no_code(m->x, m->s, what, a, m->err);
    return false;
}

static const qn_node_info *loop_at(const shaper *m, int n)
{
    return qn__node(m->s, m->path[n]);
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
        if (other.id == root.id && around % weight != 0)
            return refuse(m, "steps that do not divide the pieces around them", l->axis);
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
        bool is_lanes = loop_at(m, n)->role == QN_ROLE_VECTOR;
        if (is_lanes && qn__is_of_block(m->x, m->s, m->path[n]) && !m->vector.id)
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

/* ---------------------------------------------------------------- reduces */

/** Lanes over points: the last dimension of a reduce, cut by vectors and lanes, which are all
 * partials of the striped order. */
static bool may_be_lanes(shaper *m, uint32_t reduce, qn_node n, int *at)
{
    const qn_schedule *s = m->s;
    const qn_node_info *l = qn__node(s, n);
    const qn_axis_info *a = qn__axis(s, l->axis);
    const qn_cut *c = &s->cut[a->cut];
    int n_args = m->x->k->inst[reduce].n_args, d = qn__axis_dim(m->x, s, l->axis);
    bool is_last = a->kind == QN_AXIS_PART && c->kind == QN_CUT_DIGITS && a->number == 0 &&
                   qn__axis(s, c->of)->kind == QN_AXIS_POINT && *at == n_args - 1 &&
                   qn__dim_of(m->x->k, reduce, n_args - 1) == d && l->role == QN_ROLE_SEQUENTIAL;
    bool are_tails =
        c->tail == QN_TAIL_SCALAR || c->tail == QN_TAIL_MASK || c->tail == QN_TAIL_NONE;
    int64_t extent[2] = {1, 1};
    if (!is_last || !are_tails || c->n > 3)
        return refuse(m, "points that are cut like this", l->axis);
    for (int i = 1; i < c->n; i++) {
        n = qn__node(s, n)->child;
        const qn_node_info *part = qn__node(s, n);
        int role = i == c->n - 1 ? QN_ROLE_VECTOR : QN_ROLE_UNROLLED;
        if (part->kind != QN_NODE_LOOP || part->axis.id != qn__axis_part(c, i).id ||
            part->role != role || part->next.id)
            return refuse(m, "points that are cut like this", l->axis);
        extent[i - 1 + (c->n == 2)] = c->extent[i];
    }
    points_lanes own = {d, (int)extent[1], (int)extent[0], c->tail};
    if (own.width * own.unroll != QN_PARTIALS || (own.width & (own.width - 1)) ||
        (m->points.width && memcmp(&own, &m->points, sizeof own) != 0))
        return refuse(m, "lanes over points that are not all partials", l->axis);
    m->points = own;
    (*at)++;
    return true;
}

/** A loop inside the place of a reduce: over its points in their order, or of the block. */
static bool may_be_point_loop(shaper *m, uint32_t reduce, qn_node *n, int *at)
{
    const qn_node_info *l = qn__node(m->s, *n);
    const qn_axis_info *a = qn__axis(m->s, l->axis);
    int d = qn__axis_dim(m->x, m->s, l->axis);
    if (qn__is_of_block(m->x, m->s, *n))
        return true;
    if (d < 0 || !qn__is_reduction(m->x->k, d))
        return refuse(m, "loops over iterations inside of a reduce", l->axis);
    if (l->next.id)
        return refuse(m, "several nodes inside of a reduce", l->axis);
    if (a->kind == QN_AXIS_POINT) {
        bool is_next = *at < m->x->k->inst[reduce].n_args && qn__dim_of(m->x->k, reduce, *at) == d;
        (*at)++;
        return (is_next && (l->role == QN_ROLE_SEQUENTIAL || l->role == QN_ROLE_UNROLLED)) ||
               refuse(m, "points in this order", l->axis);
    }
    if (!may_be_lanes(m, reduce, *n, at))
        return false;
    while (qn__node(m->s, *n)->role != QN_ROLE_VECTOR)
        *n = qn__node(m->s, *n)->child;
    return true;
}

static bool may_be_place(shaper *m, qn_node place);

/** What stands inside a place: loops, then statements and reduces. */
static bool may_be_inside(shaper *m, uint32_t reduce, qn_node n, int at)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        qn_node last = n;
        int kind = qn__node(m->s, n)->kind, next = at;
        if (kind == QN_NODE_PLACE && !may_be_place(m, n))
            return false;
        if (kind != QN_NODE_LOOP)
            continue;
        if (!may_be_point_loop(m, reduce, &last, &next) ||
            !may_be_inside(m, reduce, qn__node(m->s, last)->child, next))
            return false;
    }
    return true;
}

static bool may_be_place(shaper *m, qn_node place)
{
    const qn_reduced *r = &m->s->reduction[qn__node(m->s, place)->index];
    if (r->buffer || m->x->k->inst[r->inst[0]].op != QN_I_REDUCE)
        return refuse(m, "accumulators in memory, and places of loops", (qn_axis){0});
    return may_be_inside(m, r->inst[0], qn__node(m->s, place)->child, 0);
}

/* ---------------------------------------------------------------- the tree */

static bool may_be(shaper *m, qn_node n);

static bool may_be_node(shaper *m, qn_node n)
{
    const qn_node_info *l = qn__node(m->s, n);
    switch (l->kind) {
    case QN_NODE_DO:
        return has_same_block(m);
    case QN_NODE_PLACE:
        return may_be_place(m, n) && may_be(m, l->child);
    case QN_NODE_LOOP: {
        m->path[m->n_path++] = n;
        bool is_possible = may_be_loop(m, m->n_path - 1) && may_be(m, l->child);
        m->n_path--;
        return is_possible;
    }
    case QN_NODE_FILL:
        return true; /* by qn__buffers_without_code */
    default:
        return refuse(m, "versions and buffers that are flushed", (qn_axis){0});
    }
}

static bool may_be(shaper *m, qn_node n)
{
    for (; n.id; n = qn__node(m->s, n)->next)
        if (!may_be_node(m, n))
            return false;
    return true;
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
    *b = (qn_block){.lane_dim = -1, .width = 1, .unroll = 1, .points_dim = -1};
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
    const char *form = qn__buffers_without_code(x, s);
    if (form)
        refuse(&m, form, (qn_axis){0});
    else if (may_be(&m, s->root))
        read_block(&m, out);
    if (m.points.width && (out->lane_dim >= 0 || out->n > 0))
        refuse(&m, "lanes over points inside of a block", (qn_axis){0});
    if (m.points.width) {
        out->points_dim = m.points.d;
        out->points_width = m.points.width;
        out->points_unroll = m.points.unroll;
        out->points_tail = m.points.tail;
    }
    return m.status;
}
