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

int qn__iteration_dim(const qn_analysis *x, const qn_schedule *s, qn_axis a)
{
    int d = qn__axis_dim(x, s, a);
    return d >= 0 && !qn__is_reduction(x->k, d) ? d : -1;
}

int qn__node_dim(const qn_analysis *x, const qn_schedule *s, const qn_node_info *n)
{
    return n->kind == QN_NODE_LOOP ? qn__iteration_dim(x, s, n->axis) : -1;
}

bool qn__is_of_block(const qn_analysis *x, const qn_schedule *s, qn_node loop)
{
    const qn_node_info *l = qn__node(s, loop);
    int d = qn__node_dim(x, s, l);
    return d >= 0 && (l->role == QN_ROLE_VECTOR || (l->role == QN_ROLE_UNROLLED &&
                                                    !x->f->is_ordered && qn__is_parallel(x->k, d)));
}

qn_node qn__loop_below(const qn_analysis *x, const qn_schedule *s, qn_node n, int d)
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

bool qn__has_loops(const qn_analysis *x, const qn_schedule *s, qn_node n)
{
    const qn_node_info *l = qn__node(s, n);
    bool is_loop = qn__node_dim(x, s, l) >= 0;
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
        uint32_t from = r ? r->inst[0] : l->first, to = r ? k->inst[from].region[2] : l->end;
        *first = from < *first ? from : *first;
        *end = to > *end ? to : *end;
        return;
    }
    for (qn_node c = l->child; c.id; c = qn__node(s, c)->next)
        qn__statements_of(s, k, c, first, end);
}

bool qn__is_only_chunks(const qn_analysis *x, const qn_schedule *s, qn_node loop)
{
    const qn_node_info *l = qn__node(s, loop);
    int d = qn__axis_dim(x, s, l->axis);
    qn_node n = l->child;
    if (l->role != QN_ROLE_THREADS)
        return false;
    for (bool is_inner = false; qn__node(s, n)->kind == QN_NODE_LOOP; is_inner = true) {
        const qn_node_info *inside = qn__node(s, n);
        if (qn__axis_dim(x, s, inside->axis) == d)
            return qn__ends_behind(s, n) != 0 ||
                   (!is_inner && !inside->next.id && !qn__is_of_block(x, s, n));
        if (inside->next.id)
            return false;
        n = inside->child;
    }
    return false;
}

int qn__tail_of_steps(const qn_analysis *x, const qn_schedule *s, qn_node loop)
{
    const qn_node_info *l = qn__node(s, loop);
    int d = qn__axis_dim(x, s, l->axis);
    for (qn_node n = l->child; (n = qn__loop_below(x, s, n, d)).id; n = qn__node(s, n)->child)
        for (qn_axis a = qn__node(s, n)->axis; qn__axis(s, a)->kind == QN_AXIS_PART;
             a = qn__axis(s, a)->of) {
            const qn_cut *c = &s->cut[qn__axis(s, a)->cut];
            if (c->kind == QN_CUT_DIGITS && c->tail != QN_TAIL_NONE)
                return c->tail;
        }
    return QN_TAIL_NONE;
}

/* ---------------------------------------------------------------- forms that have code */

/* Vectors of a value; lanes of a `while`, a bit each of an i64. */
enum { MOST_BLOCK = 32, MOST_SEARCHED = 64 };

typedef struct shaper {
    const qn_analysis *x;
    const qn_schedule *s;
    qn_reading *r;
    qn_node path[QN_MOST_DEPTH];
    int n_path;
    qn_axis block[QN_MOST_DEPTH]; /* axes of the block of the first statement */
    int n_block;
    bool has_block;
    qn_node vector;         /* a loop over lanes; 0: none so far */
    qn_steps points, trips; /* lanes over points of reduces, over trips; width 0: none so far */
    qn_node strip_loop;     /* 0: none so far */
    qn_strip strip;
    int n_shared;   /* reduces whose points threads divide */
    bool is_shared; /* the reduce that is looked at is one of them */
} shaper;

bool qn__no_code(qn_reading *r, const char *what, qn_axis a)
{
    char name[QN_AXIS_NAME_BYTES] = "";
    if (r->status)
        return false;
    if (a.id)
        qn__axis_name(r->s, a, name);
    r->status = qn__fail(r->err, QN_ERR_UNSUPPORTED,
                         "schedule of kernel \"%.60s\": no code is generated for %s%s%s yet",
                         r->x->k->name, what, a.id ? ": " : "", name);
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
                return qn__no_code(m->r, "sections that differ in a block", b->axis);
        if (qn__axis(m->s, b->axis)->kind != QN_AXIS_DIM)
            return qn__no_code(m->r, "sections that end at a part of an index", b->axis);
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
    if (!weight)
        return qn__no_code(m->r, "loops over parts of 2^63 iterations", l->axis);
    if (of->kind == QN_AXIS_POINT || of->kind == QN_AXIS_TRIP)
        return true;
    for (int c = 0; c < m->s->n_cuts; c++)
        if (m->s->cut[c].kind == QN_CUT_SECTIONS && !has_own_anchors(m, &m->s->cut[c]))
            return false;
    for (int i = 0; i < n; i++) {
        int64_t around = qn__axis_weight(m->x, m->s, loop_at(m, i)->axis, &other);
        bool is_slower = around > weight || (around == weight && weight > 1 &&
                                             qn__axis_count(m->x, m->s, l->axis).most == 1);
        if (other.id == root.id && !is_slower)
            return qn__no_code(m->r, "faster digits around slower ones", l->axis);
        if (other.id == root.id && around % weight != 0)
            return qn__no_code(m->r, "steps that do not divide the pieces around them", l->axis);
        if (other.id == root.id && qn__is_of_block(m->x, m->s, m->path[i]) &&
            !qn__is_of_block(m->x, m->s, m->path[n]))
            return qn__no_code(m->r, "loops inside of unrolled ones", l->axis);
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
           qn__no_code(m->r, "statements with different loops over lanes or unrolled loops",
                       (qn_axis){0});
}

/* ---------------------------------------------------------------- reduces */

/** Threads over points: whole blocks of 4096 of the only dimension that has several. */
static bool may_be_shared(shaper *m, uint32_t reduce, qn_node loop)
{
    const qn_node_info *l = qn__node(m->s, loop);
    const qn_axis_info *a = qn__axis(m->s, l->axis);
    const qn_cut *c = &m->s->cut[a->cut];
    int n;
    bool is_it = a->kind == QN_AXIS_PART && c->kind == QN_CUT_DIGITS && a->number == 0 &&
                 qn__axis(m->s, c->of)->kind == QN_AXIS_POINT && c->tail != QN_TAIL_OVERLAP &&
                 qn__axis_weight(m->x, m->s, l->axis, NULL) == QN_BLOCK_POINTS &&
                 !m->x->k->inst[reduce].parent &&
                 qn__axis_dim(m->x, m->s, l->axis) == qn__shared_dim(m->x->k, m->x->f, &n);
    m->is_shared |= is_it;
    return is_it || qn__no_code(m->r, "threads over points of reduces like these", l->axis);
}

/** Whether a loop walks the points of a block that threads divide, one after the other. */
static bool are_single_points(const shaper *m, qn_node n)
{
    const qn_node_info *l = qn__node(m->s, n);
    const qn_axis_info *a = qn__axis(m->s, l->axis);
    return l->kind == QN_NODE_LOOP && !l->next.id && l->role == QN_ROLE_SEQUENTIAL &&
           a->kind == QN_AXIS_PART && a->number == 1 && m->s->cut[a->cut].n == 2 &&
           m->s->cut[a->cut].extent[1] == QN_BLOCK_POINTS;
}

/** Whether the loops over digits `first` and on of a cut stand one right inside the other: the
 * steps of lanes, where there are three the vectors, which are unrolled, and the lanes. `own`: how
 * many. */
static bool are_steps(const qn_schedule *s, qn_node n, int first, qn_steps *own)
{
    const qn_node_info *l = qn__node(s, n);
    const qn_axis_info *a = qn__axis(s, l->axis);
    const qn_cut *c = &s->cut[a->cut];
    bool are_tails =
        c->tail == QN_TAIL_SCALAR || c->tail == QN_TAIL_MASK || c->tail == QN_TAIL_NONE;
    int64_t extent[2] = {1, 1};
    if (a->kind != QN_AXIS_PART || c->kind != QN_CUT_DIGITS || a->number != first ||
        l->role != QN_ROLE_SEQUENTIAL || !are_tails || c->n > 3 + first || c->n < 2 + first)
        return false;
    for (int i = first + 1; i < c->n; i++) {
        n = qn__node(s, n)->child;
        const qn_node_info *part = qn__node(s, n);
        int role = i == c->n - 1 ? QN_ROLE_VECTOR : QN_ROLE_UNROLLED;
        if (part->kind != QN_NODE_LOOP || part->axis.id != qn__axis_part(c, i).id ||
            part->role != role || part->next.id)
            return false;
        extent[i - first - 1 + (c->n == first + 2)] = c->extent[i];
    }
    if (extent[1] > QN_MOST_LANES || extent[0] > QN_MOST_UNROLLED ||
        (extent[1] & (extent[1] - 1)) || (extent[0] & (extent[0] - 1)))
        return false;
    own->width = (int)extent[1];
    own->unroll = (int)extent[0];
    own->tail = c->tail;
    return true;
}

/** Bit n: a loop over dimension number n of a reduce stands outside. */
typedef uint32_t walked;

/** The bit of dimension d; 0: the reduce is not over that. */
static walked place_of(const shaper *m, uint32_t reduce, int d)
{
    for (int n = 0; n < m->x->k->inst[reduce].n_args; n++)
        if (qn__dim_of(m->x->k, reduce, n) == d)
            return UINT32_C(1) << n;
    return 0;
}

/** Whether a loop over a dimension of a reduce comes in the order in which they are declared; that
 * of lanes over points may be left for later. */
static bool is_next(const shaper *m, uint32_t reduce, walked own, walked at)
{
    walked left = own ? (own - 1) & ~at : 0;
    int d = left ? qn__dim_of(m->x->k, reduce, __builtin_ctz(left)) : -1;
    bool is_left_for_lanes = (left & (left - 1)) == 0 && qn__may_have_lanes(m->x, reduce, d);
    return own && own > at && (!left || is_left_for_lanes);
}

/** Lanes over points: a dimension of a reduce inside of all others, cut by vectors and lanes, which
 * are all partials of the striped order. */
static bool may_be_lanes(shaper *m, uint32_t reduce, qn_node n, walked *at)
{
    const qn_schedule *s = m->s;
    const qn_node_info *l = qn__node(s, n);
    const qn_axis_info *a = qn__axis(s, l->axis);
    int n_args = m->x->k->inst[reduce].n_args;
    qn_steps own = {.dim = qn__axis_dim(m->x, s, l->axis)};
    int first = m->is_shared; /* digit of the lanes' steps; threads divide the one before */
    walked others = (UINT32_C(1) << n_args) - 1 - place_of(m, reduce, own.dim);
    bool is_last = a->kind == QN_AXIS_PART &&
                   qn__axis(s, s->cut[a->cut].of)->kind == QN_AXIS_POINT && *at == others &&
                   qn__may_have_lanes(m->x, reduce, own.dim);
    if (!is_last || !are_steps(s, n, first, &own))
        return qn__no_code(m->r, "points that are cut like this", l->axis);
    if (own.width * own.unroll != QN_PARTIALS ||
        (m->points.width && memcmp(&own, &m->points, sizeof own) != 0))
        return qn__no_code(m->r, "lanes over points that are not all partials", l->axis);
    m->points = own;
    *at |= place_of(m, reduce, own.dim);
    return true;
}

/** The place of a `for`: its trips come in order, or are lanes. */
static bool may_be_trips(shaper *m, uint32_t loop, qn_node n)
{
    const qn_node_info *l = qn__node(m->s, n);
    qn_steps own = {.dim = qn__trips_dim(m->x->k)};
    bool is_whole = qn__axis(m->s, l->axis)->kind == QN_AXIS_TRIP;
    if (l->kind != QN_NODE_LOOP || l->next.id || qn__axis_loop(m->x, m->s, l->axis) != loop)
        return qn__no_code(m->r, "places of loops like these", l->axis);
    if (is_whole)
        return l->role == QN_ROLE_SEQUENTIAL ||
               qn__no_code(m->r, "trips that are emitted together", l->axis);
    if (own.dim < 0 || qn__axis(m->s, qn__axis(m->s, l->axis)->of)->kind != QN_AXIS_TRIP ||
        !are_steps(m->s, n, 0, &own))
        return qn__no_code(m->r, "trips that are cut like this", l->axis);
    if ((own.tail == QN_TAIL_MASK && !m->x->f->target->has_masks) || own.width < 2 ||
        own.unroll > MOST_BLOCK || own.unroll * qn__trips_sums(m->x, loop) > MOST_BLOCK ||
        (m->x->k->inst[loop].op == QN_I_WHILE && own.width * own.unroll > MOST_SEARCHED) ||
        (m->trips.width && memcmp(&own, &m->trips, sizeof own) != 0))
        return qn__no_code(m->r, "lanes over trips like these", l->axis);
    m->trips = own;
    return true;
}

/** A loop inside the place of a reduce: over its points in their order, or of the block. */
static bool may_be_point_loop(shaper *m, uint32_t reduce, qn_node *n, walked *at)
{
    const qn_node_info *l = qn__node(m->s, *n);
    const qn_axis_info *a = qn__axis(m->s, l->axis);
    int d = qn__axis_dim(m->x, m->s, l->axis);
    if (qn__is_of_block(m->x, m->s, *n))
        return true;
    if (d < 0 || !qn__is_reduction(m->x->k, d))
        return qn__no_code(m->r, "loops over iterations inside of a reduce", l->axis);
    if (l->next.id)
        return qn__no_code(m->r, "several nodes inside of a reduce", l->axis);
    if (a->kind == QN_AXIS_POINT) {
        walked own = place_of(m, reduce, d);
        bool is_in_order = is_next(m, reduce, own, *at);
        *at |= own;
        return (is_in_order && (l->role == QN_ROLE_SEQUENTIAL || l->role == QN_ROLE_UNROLLED)) ||
               qn__no_code(m->r, "points in this order", l->axis);
    }
    if (l->role == QN_ROLE_THREADS) {
        if (!may_be_shared(m, reduce, *n))
            return false;
        *n = l->child;
        if (are_single_points(m, *n)) {
            *at |= place_of(m, reduce, d);
            return true;
        }
    }
    if (!may_be_lanes(m, reduce, *n, at))
        return false;
    while (qn__node(m->s, *n)->role != QN_ROLE_VECTOR)
        *n = qn__node(m->s, *n)->child;
    return true;
}

static bool may_be_place(shaper *m, qn_node place);

/** What stands inside a place: loops, then statements and reduces. */
static bool may_be_inside(shaper *m, uint32_t reduce, qn_node n, walked at)
{
    for (; n.id; n = qn__node(m->s, n)->next) {
        qn_node last = n;
        int kind = qn__node(m->s, n)->kind;
        walked next = at;
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

/** A loop around a place whose accumulators are in memory. */
static bool may_be_strip(shaper *m, qn_node loop)
{
    if (loop.id && loop.id == m->strip_loop.id)
        return true;
    bool is_it = loop.id && qn__node(m->s, loop)->kind == QN_NODE_LOOP && !m->strip_loop.id &&
                 qn__strip_of(m->x, m->s, loop, &m->strip);
    m->strip_loop = loop;
    return is_it || qn__no_code(m->r, "accumulators in memory like these", (qn_axis){0});
}

static bool may_be_place(shaper *m, qn_node place)
{
    const qn_reduced *r = &m->s->reduction[qn__node(m->s, place)->index];
    if (r->buffer)
        return may_be_strip(m, qn__node(m->s, place)->parent);
    if (qn__is_body_loop(m->x->k, r->inst[0]))
        return may_be_trips(m, r->inst[0], qn__node(m->s, place)->child);
    for (int n = 0; n < r->n; n++) {
        const qn_reduced *other = qn__reduction_of(m->s, r->inst[n]);
        if (other->n != r->n || memcmp(other->inst, r->inst, (size_t)r->n * sizeof *r->inst) != 0)
            return qn__no_code(m->r, "reduces in tuples that differ", (qn_axis){0});
    }
    const bool is_around_shared = m->is_shared;
    m->is_shared = false;
    if (!may_be_inside(m, r->inst[0], qn__node(m->s, place)->child, 0))
        return false;
    m->n_shared += m->is_shared ? r->n : 0;
    m->is_shared = is_around_shared;
    return true;
}

/** A statement has no reduce that another section has in a tuple. */
static bool has_no_tuple(shaper *m, const qn_node_info *statement)
{
    for (uint32_t i = statement->first; i < statement->end; i++) {
        const qn_reduced *r = qn__reduction_of(m->s, i);
        if (r && r->n > 1)
            return qn__no_code(m->r, "reduces in tuples that differ", (qn_axis){0});
    }
    return true;
}

/* ---------------------------------------------------------------- the tree */

static bool may_be(shaper *m, qn_node n);

static bool may_be_node(shaper *m, qn_node n)
{
    const qn_node_info *l = qn__node(m->s, n);
    switch (l->kind) {
    case QN_NODE_DO:
        return has_same_block(m) && has_no_tuple(m, l);
    case QN_NODE_PLACE:
        return may_be_place(m, n) && may_be(m, l->child);
    case QN_NODE_LOOP: {
        m->path[m->n_path++] = n;
        bool is_possible = may_be_loop(m, m->n_path - 1) && may_be(m, l->child);
        m->n_path--;
        return is_possible;
    }
    default: /* buffers are looked at once the block is known */
        return true;
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

static void add_axis(shaper *m, qn_axis a, qn_block *b)
{
    qn_axis root;
    qn_count count = qn__axis_count(m->x, m->s, a);
    int n = b->n;
    if (count.most > MOST_BLOCK || n == QN_MOST_BLOCK_AXES) {
        qn__no_code(m->r, "so many iterations at once", a);
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
    *b = qn__block_of_one();
    if (m->vector.id) {
        int64_t width = qn__axis_count(m->x, m->s, v->axis).most;
        b->lane_dim = qn__axis_dim(m->x, m->s, v->axis);
        b->width = (int)width;
        if (qn__axis_weight(m->x, m->s, v->axis, NULL) != 1 || (width & (width - 1)))
            qn__no_code(m->r, "lanes that are not neighbours, or no power of two", v->axis);
    }
    for (int n = 0; n < m->n_block && m->r->status == QN_OK; n++) {
        qn_axis a = m->block[n];
        if (m->vector.id && a.id == v->axis.id)
            continue;
        bool is_vectors = qn__axis_dim(m->x, m->s, a) == b->lane_dim;
        int64_t extent = qn__axis_count(m->x, m->s, a).most;
        all *= extent;
        if (is_vectors && (b->unroll > 1 || qn__axis_weight(m->x, m->s, a, NULL) != b->width))
            qn__no_code(m->r, "vectors that are not neighbours", a);
        else if (is_vectors)
            b->unroll = (int)extent;
        else
            add_axis(m, a, b);
        if (all > MOST_BLOCK)
            qn__no_code(m->r, "so many iterations at once", a);
    }
}

int qn__across(const qn_block *b)
{
    bool is_next = b->n > 0 && b->weight[b->n - 1] == 1 && b->dim[b->n - 1] != b->lane_dim;
    return is_next ? b->dim[b->n - 1] : -1;
}

/** Points that are added at once for a strip are jammed. */
static void read_strip(shaper *m, qn_block *b)
{
    const qn_strip *strip = &m->strip;
    b->strip = *strip;
    if (strip->length && (b->n > 0 || strip->step != (int64_t)b->width * b->unroll ||
                          strip->together * b->unroll > MOST_BLOCK))
        qn__no_code(m->r, "accumulators in memory like these", (qn_axis){0});
    if (strip->together > 1) {
        b->dim[0] = strip->dim;
        b->extent[0] = strip->together;
        b->weight[0] = 1;
        b->n = 1;
    }
}

/** Tuples of reduces, which are folded in one loop. */
static void read_tuples(shaper *m, const qn_block *b)
{
    int64_t parts = b->unroll;
    for (int n = 0; n < b->n; n++)
        parts *= b->extent[n];
    for (int n = 1; n <= m->s->n_nodes && m->r->status == QN_OK; n++) {
        const qn_node_info *l = &m->s->node[n];
        const qn_reduced *r = l->kind == QN_NODE_PLACE ? &m->s->reduction[l->index] : NULL;
        if (r && r->n > 1 &&
            !qn__tuple_has_code(m->x, r->n, r->inst, m->points.width ? m->points.dim : -1, parts))
            qn__no_code(m->r, "reduces in one loop like these", (qn_axis){0});
    }
}

/** What buffers are. Memory of the launch is that of copies, of line ends or of a strip. */
static void read_buffers(shaper *m, qn_block *b)
{
    bool has_copies = false;
    for (int n = 0; n < m->s->n_buffers && m->r->status == QN_OK; n++) {
        b->ends |= (uint32_t)qn__are_line_ends(m->x, m->s, b, n) << n;
        has_copies |= m->s->buffer[n].content == QN_CONTENT_COPY &&
                      m->s->buffer[n].storage == QN_STORAGE_SCRATCH;
    }
    const char *form = qn__buffers_without_code(m->x, m->s, b->ends);
    if (form)
        qn__no_code(m->r, form, (qn_axis){0});
    if (b->strip.length + b->ends > 0 && (has_copies || (b->strip.length && b->ends)))
        qn__no_code(m->r, "buffers of several kinds in the memory of a launch", (qn_axis){0});
}

/** Lanes over points, over trips, or over both, in scalar code: no point is in a trip then, and no
 * trip in a point. */
static void read_inner_lanes(shaper *m, qn_block *b)
{
    const qn_steps *inner = m->points.width ? &m->points : &m->trips;
    if (!inner->width || m->r->status != QN_OK)
        return;
    if (b->lane_dim >= 0 || b->n > 0)
        qn__no_code(m->r, "lanes over points inside of a block", (qn_axis){0});
    b->lane_dim = inner->dim;
    b->width = inner->width;
    b->unroll = inner->unroll;
    b->tail = inner->tail;
    b->trip_steps = m->trips;
    if (m->trips.width)
        b->trips = qn__trip_lanes_of(m->x, m->s);
    if (m->points.width && qn__trips_meet(m->x, &b->trips, b->lane_dim))
        qn__no_code(m->r, "lanes over points that are inside of trips", (qn_axis){0});
}

qn_block qn__block_of_one(void)
{
    return (qn_block){
        .lane_dim = -1, .width = 1, .unroll = 1, .split_dim = -1, .granule = 1, .second_dim = -1};
}

void qn__block_of_trips(const qn_block *around, qn_block *out)
{
    *out = *around;
    out->lane_dim = around->trip_steps.dim;
    out->width = around->trip_steps.width;
    out->unroll = around->trip_steps.unroll;
    out->tail = around->trip_steps.tail;
}

qn_status qn__block_of(const qn_analysis *x, const qn_schedule *s, qn_block *out, qn_error *err)
{
    qn_reading r = {.x = x, .s = s, .err = err};
    shaper m = {.x = x, .s = s, .r = &r};
    int shared_dim, n_reduces = 0;
    if (may_be(&m, s->root))
        read_block(&m, out);
    if (r.status == QN_OK)
        read_strip(&m, out);
    if (r.status == QN_OK)
        read_buffers(&m, out);
    shared_dim = m.n_shared ? qn__shared_dim(x->k, x->f, &n_reduces) : -1;
    if (m.n_shared && m.n_shared != n_reduces)
        qn__no_code(m.r, "threads over points of reduces like these", (qn_axis){0});
    read_inner_lanes(&m, out);
    if (r.status != QN_OK)
        return r.status;
    if (m.n_shared) {
        out->n_shared = m.n_shared;
        out->split_dim = shared_dim;
        out->granule = QN_BLOCK_POINTS;
    }
    read_tuples(&m, out);
    return r.status ? r.status : qn__read_launch(&r, out);
}
