/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c: which loops of a schedule are the block that each statement is emitted for, and which
 * are emitted as loops. A schedule that was verified but has a form that the code generator has no
 * code for is refused here with the name of the form.
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
        if (r->ahead)
            return refuse(m, "prefetches", (qn_axis){0});
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
    if (may_be(&m, s->root))
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

/** Iterations of the block along d. */
static int64_t block_size(const qn_block *b, int d)
{
    int64_t size = d == b->lane_dim ? (int64_t)b->width * b->unroll : 1;
    for (int n = 0; n < b->n; n++)
        size *= b->dim[n] == d ? b->extent[n] : 1;
    return size;
}

/** Of steps only those of the block overlap. */
static bool may_overlap(shaper *m, const qn_block *b)
{
    for (int n = 0; n < m->s->n_cuts; n++) {
        const qn_cut *c = &m->s->cut[n];
        qn_axis root;
        int d = iteration_dim(m->x, m->s, c->of);
        if (c->kind != QN_CUT_DIGITS || c->tail != QN_TAIL_OVERLAP || d < 0)
            continue;
        int64_t step = qn__axis_weight(m->x, m->s, c->first, &root);
        bool is_exact = qn__axis_count(m->x, m->s, c->of).most % step == 0;
        if (qn__axis_weight(m->x, m->s, c->of, &root) != 1 ||
            (!is_exact && step != block_size(b, d)))
            return refuse(m, "steps that overlap and are no blocks", c->of);
    }
    return true;
}

/** Whether a loop of the tree walks steps of so many iterations along d as the block has. */
static bool is_block_whole(shaper *m, const qn_block *b, int d)
{
    int64_t size = block_size(b, d);
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
static void read_order(const shaper *m, qn_node n, qn_plan *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        int d = l->kind == QN_NODE_LOOP ? iteration_dim(m->x, m->s, l->axis) : -1;
        if (d >= 0 && qn__place_of(p, d) == p->n_loops)
            p->order[p->n_loops++] = d;
        read_order(m, l->child, p);
    }
}

/** Non-temporal stores: rows begin alike in a line, and nothing is jammed. */
static bool read_streams(shaper *m, const qn_block *b, qn_plan *p)
{
    for (int n = 0; n < m->s->n_records; n++) {
        const qn_record_info *r = &m->s->record[n];
        if (!r->streams)
            continue;
        if (b->n > 0 || !qn__is_stream(m->x->k, m->x->f, &m->x->a, p,
                                       qn__site_of(m->x->k, r->inst)))
            return refuse(m, "streams whose rows begin anywhere in a line", (qn_axis){0});
        p->streams = 1;
    }
    return true;
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
static bool read_threads(shaper *m, qn_node n, qn_plan *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        bool is_divided = l->kind == QN_NODE_LOOP && l->role == QN_ROLE_THREADS;
        int d = is_divided ? iteration_dim(m->x, m->s, l->axis) : -1;
        if (is_divided && d < 0)
            return refuse(m, "threads over points", l->axis);
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
                return refuse(m, "threads over three dimensions", l->axis);
            }
        }
        if (!read_threads(m, l->child, p))
            return false;
    }
    return true;
}

/** The launch counts the iterations of dimensions that run within another one for the first
 * dimension that is divided, not for the second. */
static bool put_merged_first(shaper *m, qn_plan *p)
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
           refuse(m, "threads over two dimensions that are several each", (qn_axis){0});
}

/** The begin of a chunk is no multiple of the steps of a section. */
static bool may_divide(shaper *m, qn_node n, const qn_plan *p)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        int d = l->kind == QN_NODE_LOOP ? iteration_dim(m->x, m->s, l->axis) : -1;
        bool is_divided =
            d >= 0 && (d == p->split_dim || (p->second_granule && d == p->second_dim));
        qn_axis root;
        if (is_divided && has_section(m->s, l->axis) &&
            qn__axis_weight(m->x, m->s, l->axis, &root) > 1)
            return refuse(m, "threads over steps of a section", l->axis);
        if (!may_divide(m, l->child, p))
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
    bool over_points = b.points_dim >= 0;
    p->lane_dim = over_points ? b.points_dim : b.lane_dim;
    p->width = over_points ? b.points_width : b.width;
    p->unroll = over_points ? b.points_unroll : b.unroll;
    p->straight = qn__plan_straight(x->k);
    read_order(&m, s->root, p);
    for (int d = 0; d < x->k->n_dims; d++)
        if (!qn__is_reduction(x->k, d) && !is_block_whole(&m, &b, d))
            return m.status;
    if (!may_overlap(&m, &b) || !read_threads(&m, s->root, p) || !put_merged_first(&m, p) ||
        !may_divide(&m, s->root, p) || !read_streams(&m, &b, p))
        return m.status;
    p->remainder = over_points       ? remainder_of_points(x, &b)
                   : b.lane_dim >= 0 ? remainder_of(&m, &b)
                                     : QN_REMAINDER_NONE;
    if (p->lane_dim >= 0)
        qn__plan_apart(x->k, x->f, &x->a, p);
    p->atomics = x->f->atomics == QN_ATOMICS_OF_THREADS && p->split_dim < 0 ? QN_ATOMICS_OF_ONE
                                                                             : x->f->atomics;
    return QN_OK;
}
