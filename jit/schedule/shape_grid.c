/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_grid.c: what a schedule of a GPU that was verified says, as a grid. Each dimension is
 * walked by blocks of a grid, by the threads of a block and by the iterations that a thread
 * computes at once, one inside the other; or by a loop in each thread. The loops of each role stand
 * once, apart from unrolled ones, of which statements and reduces may have some each.
 */
#include "jit/schedule/gpu.h"
#include "jit/schedule/shape.h"

typedef struct dim_roles {
    int64_t units;   /* iterations of a step of the loop over the grid, 0: there is none */
    int64_t threads; /* count and weight of the loop over the threads of a block */
    int64_t apart;
    int64_t at_once; /* iterations of the unrolled loop */
    bool is_walked;  /* a loop in each thread */
} dim_roles;

/* Threads of a block along z (CUDA C++ Programming Guide, technical specifications). */
enum { MOST_LAYERS = 64 };

typedef struct reader {
    const qn_analysis *x;
    const qn_schedule *s;
    qn_reading *r;
    qn_grid *p;
    dim_roles of[QN_MAX_RANK];
    int block[QN_MAX_RANK]; /* dimensions of the threads of a block, slowest first */
    int n_block;
    uint32_t shared; /* reduces whose points the lanes of a warp share */
} reader;

/* ---------------------------------------------------------------- loops */

/** A loop over the points of a reduce: all of them in order, or so that a warp's lanes share them.
 */
static bool read_points(reader *m, const qn_node_info *l, int64_t weight, int64_t count)
{
    const qn_axis_info *a = qn__axis(m->s, l->axis);
    if (l->role == QN_ROLE_SEQUENTIAL || l->role == QN_ROLE_UNROLLED)
        return a->kind == QN_AXIS_POINT || a->number == 0 ||
               qn__no_code(m->r, "points of a GPU in pieces", l->axis);
    bool is_warp = l->role == QN_ROLE_THREAD && weight == 1 && count == m->x->f->machine.warp;
    if (!is_warp || m->s->cut[a->cut].n != 2)
        return qn__no_code(m->r, "points that other threads than a warp's share", l->axis);
    m->shared++;
    return true;
}

static bool read_loop(reader *m, const qn_node_info *l, bool is_walked)
{
    int64_t weight = qn__axis_weight(m->x, m->s, l->axis, NULL),
            count = qn__axis_count(m->x, m->s, l->axis).most;
    int d = qn__iteration_dim(m->x, m->s, l->axis);
    if (!weight)
        return qn__no_code(m->r, "loops over parts of 2^63 iterations", l->axis);
    if (d < 0)
        return read_points(m, l, weight, count);
    dim_roles *of = &m->of[d];
    switch (l->role) {
    case QN_ROLE_GRID:
        if (of->units || of->threads || of->at_once || is_walked)
            return qn__no_code(m->r, "a grid inside of other loops over a dimension", l->axis);
        of->units = weight;
        return true;
    case QN_ROLE_BLOCK:
        if (of->threads || of->at_once || !of->units)
            return qn__no_code(m->r, "threads of a block outside of its grid", l->axis);
        of->threads = count;
        of->apart = weight;
        m->block[m->n_block++] = d;
        return true;
    case QN_ROLE_UNROLLED:
        if (weight != 1 || !of->units || (of->at_once && of->at_once != count))
            return qn__no_code(m->r, "unrolled loops that are not what a thread takes of a grid",
                               l->axis);
        of->at_once = count;
        return true;
    case QN_ROLE_SEQUENTIAL:
        if (of->units || of->is_walked || weight != 1)
            return qn__no_code(m->r, "steps of a block", l->axis);
        of->is_walked = true;
        return true;
    default:
        return qn__no_code(m->r, "this role of a GPU", l->axis);
    }
}

static bool has_dim(const qn_grid *p, int d)
{
    for (int n = 0; n < p->n_loops; n++)
        if (p->order[n] == d)
            return true;
    return false;
}

/** is_walked: loops of each thread over parallel dimensions are around node n. */
static bool read_loops(reader *m, qn_node n, bool is_walked)
{
    for (int n_loops = 0; n.id; n = qn__node(m->s, n)->next) {
        const qn_node_info *l = qn__node(m->s, n);
        int d = qn__node_dim(m->x, m->s, l);
        if (l->kind == QN_NODE_FILL || l->kind == QN_NODE_FLUSH)
            return qn__no_code(m->r, "buffers of a GPU", (qn_axis){0});
        bool is_here = l->kind == QN_NODE_LOOP && l->role == QN_ROLE_SEQUENTIAL && d >= 0 &&
                       qn__is_parallel(m->x->k, d);
        if (d >= 0 && l->role != QN_ROLE_UNROLLED && n_loops++ > 0)
            return qn__no_code(m->r, "statements of a GPU in loops of their own", l->axis);
        if (l->kind == QN_NODE_LOOP && !read_loop(m, l, is_walked))
            return false;
        if (d >= 0 && !has_dim(m->p, d))
            m->p->order[m->p->n_loops++] = d;
        if (!read_loops(m, l->child, is_walked || is_here))
            return false;
    }
    return true;
}

/* ---------------------------------------------------------------- the plan */

/** Blocks, threads and what they take, of every dimension. */
static bool set_tiles(reader *m)
{
    qn_grid *p = m->p;
    const qn_kernel *k = m->x->k;
    for (int d = 0; d < k->n_dims; d++) {
        const dim_roles *of = &m->of[d];
        int64_t at_once = of->at_once ? of->at_once : 1, threads = of->threads ? of->threads : 1;
        p->threads[d] = (int32_t)threads;
        p->block[d] = of->units ? threads * at_once : 0;
        if (of->units != p->block[d] || (of->threads && of->apart != at_once))
            return qn__no_code(m->r, "blocks that take several tiles", (qn_axis){0});
        if (of->units && !qn__is_parallel(k, d))
            return qn__no_code(m->r, "iterations in order on a grid", (qn_axis){0});
    }
    return true;
}

/** The dimensions of threadIdx.x, y and z: the fastest one is the innermost loop. A warp whose
 * lanes share points is x. */
static bool set_axes(reader *m)
{
    qn_grid *p = m->p;
    int64_t all = p->team == QN_TEAM_WARP ? m->x->f->machine.warp : 1;
    int n = p->team == QN_TEAM_WARP;
    for (int i = m->n_block - 1; i >= 0; i--, n++) {
        if (n == 3)
            return qn__no_code(m->r, "threads of a block in four dimensions", (qn_axis){0});
        p->axis[n] = m->block[i];
        all *= p->threads[m->block[i]];
        if (all > QN_MOST_BLOCK_THREADS)
            return qn__no_code(m->r, "so many threads of a block", (qn_axis){0});
        if (n == 2 && p->threads[m->block[i]] > MOST_LAYERS)
            return qn__no_code(m->r, "so many threads along z", (qn_axis){0});
    }
    return true;
}

/** Iterations that a thread computes at once: along the threads of a row, and along one more
 * dimension. */
static bool set_at_once(reader *m)
{
    qn_grid *p = m->p;
    const qn_kernel *k = m->x->k;
    gpu_planner s = {
        .k = k, .f = m->x->f, .a = *m->x, .p = p, .has_assertions = qn__has_assertions(k)};
    int x = p->axis[0], n_insts = (int)(k->n_insts - k->body), kind;
    for (int d = 0; d < k->n_dims; d++) {
        int64_t at_once = m->of[d].at_once;
        if (at_once <= 1)
            continue;
        if (d == x) {
            p->wide = (int32_t)at_once;
        } else if (p->tall_dim < 0) {
            p->tall_dim = d;
            p->tall = (int32_t)at_once;
        } else {
            return qn__no_code(m->r, "iterations of three dimensions in a thread", (qn_axis){0});
        }
    }
    if (p->wide == 1 && p->tall == 1)
        return true;
    if (x < 0 || p->team != QN_TEAM_THREAD)
        return qn__no_code(m->r, "several iterations in a thread without neighbours", (qn_axis){0});
    if (p->wide * p->tall > QN_MOST_AT_ONCE || p->wide * p->tall * n_insts > MOST_EMITTED)
        return qn__no_code(m->r, "so many iterations in a thread", (qn_axis){0});
    kind = qn__gpu_kind_of_body(&s);
    if (kind == BODY_OTHER)
        return qn__no_code(m->r, "several iterations of these statements in a thread",
                           (qn_axis){0});
    if (p->wide > 1 && m->x->f->begin[x].kind != QN_FACT_EXACT)
        return qn__no_code(m->r, "several iterations from a begin that is not known", (qn_axis){0});
    p->wide_dim = x;
    p->wide_lead = p->wide > 1 ? qn__gpu_lead(&s, x, p->wide) : 0;
    return true;
}

/** All points of all reduces at the top are shared by warps, or none. */
static bool set_team(reader *m)
{
    const qn_kernel *k = m->x->k;
    uint32_t n = 0;
    bool may_be = true;
    FOR_TOP_REDUCES (k, i) {
        n++;
        may_be = may_be && qn__may_share_points(k, i);
    }
    m->p->team = m->shared ? QN_TEAM_WARP : QN_TEAM_THREAD;
    return !m->shared || (m->shared == n && may_be) ||
           qn__no_code(m->r, "warps that share the points of some reduces", (qn_axis){0});
}

static bool may_be_records(reader *m)
{
    for (int n = 0; n < m->s->n_records; n++) {
        const qn_record_info *r = &m->s->record[n];
        if (r->method == QN_METHOD_GROUP || r->ahead || r->streams)
            return qn__no_code(m->r, "this way to access memory on a GPU", (qn_axis){0});
    }
    for (int n = 0; n < m->s->n_cuts; n++)
        if (m->s->cut[n].kind == QN_CUT_SECTIONS || m->s->cut[n].tail == QN_TAIL_OVERLAP)
            return qn__no_code(m->r, "sections, and steps that overlap, on a GPU", m->s->cut[n].of);
    return m->s->n_buffers == 0 || qn__no_code(m->r, "buffers of a GPU", (qn_axis){0});
}

qn_block qn__block_of_grid(const qn_grid *p)
{
    qn_block b = qn__block_of_one();
    b.lane_dim = p->wide_dim;
    b.width = p->wide;
    b.straight = p->straight;
    b.n_loops = p->n_loops;
    for (int n = 0; n < p->n_loops; n++)
        b.order[n] = p->order[n];
    b.team = p->team;
    b.is_product = p->is_product != 0;
    b.skew = p->skew;
    if (p->tall > 1) {
        b.n = 1;
        b.dim[0] = p->tall_dim;
        b.extent[0] = p->tall;
        b.weight[0] = 1;
    }
    return b;
}

qn_status qn__grid_of_schedule(const qn_analysis *x, const qn_schedule *s, qn_grid *p,
                               qn_error *err)
{
    qn_reading r = {.x = x, .s = s, .err = err};
    reader m = {.x = x, .s = s, .r = &r, .p = p};
    *p = qn__grid_of_one();
    p->straight = qn__straight_of(x, s);
    (void)(may_be_records(&m) && read_loops(&m, s->root, false) && set_team(&m) && set_tiles(&m) &&
           set_axes(&m) && set_at_once(&m));
    return r.status;
}
