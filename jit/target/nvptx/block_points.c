/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_points.c: the points of a chunk that a thread of a block evaluates (block_fold.c): its
 * places in the tile, the loads that are made ahead, and what each point leaves in shared memory.
 * Points of regions that branch are evaluated a few at a time.
 */
#include "jit/target/nvptx/block_parts.h"
#include "jit/schedule/grid.h"

/* ---------------------------------------------------------------- places */

/** The lesser of an index and the last one. */
static LLVMValueRef clamped(lower *g, LLVMValueRef v, int d)
{
    LLVMValueRef last = LLVMBuildSub(g->b, g->end[d], qn__const_i64(g, 1), "");
    return LLVMBuildSelect(g->b, qn__is_before(g, d, v, last), v, last, "");
}

/** This thread's place in the tile and in chunks. */
static void set_places(lower *g, block_fold *m)
{
    int64_t low, high;
    bool along = g->grid->is_along_points;
    LLVMValueRef by = qn__const_i64(g, along ? m->step_k : m->tile);
    LLVMValueRef near = LLVMBuildURem(g->b, m->thread, by, ""),
                 far = LLVMBuildUDiv(g->b, m->thread, by, "");
    m->off_x = along ? far : near;
    m->off_k = along ? near : far;
    m->thin_k = LLVMBuildURem(g->b, m->thread,
                              qn__const_i64(g, m->chunk < m->threads ? m->chunk : m->threads), "");
    m->x_inside = qn__is_const(g->begin[m->x], &low) && qn__is_const(g->end[m->x], &high) &&
                  (high - low) % m->tile == 0;
    m->level = g->depth;
    LLVMValueRef first = LLVMBuildAdd(g->b, m->low, m->off_x, "");
    for (int i = 0; i < m->each_x; i++) {
        LLVMValueRef at = LLVMBuildAdd(g->b, first, qn__const_i64(g, i * m->step_x), "");
        m->at_x[i] = m->x_inside ? first : clamped(g, at, m->x);
    }
}

/** Sets the index of the tile's dimension to iteration i of this thread. */
static void set_x(lower *g, const block_fold *m, int i)
{
    g->iv[m->x] = m->at_x[i];
    g->iv_level[m->x] = m->level;
    qn__set_ahead(g, m->x, m->x_inside ? i * m->step_x : 0, g->depth);
}

/** Sets the indices of point number j of this thread; `first` is the first, at level `at`. */
static void set_k(lower *g, const block_fold *m, LLVMValueRef first, int at, int j, bool is_clamped)
{
    int64_t step = j * (m->is_thin ? m->threads : m->step_k);
    LLVMValueRef point = LLVMBuildAdd(g->b, first, qn__const_i64(g, step), "");
    if (m->k < 0) {
        LLVMValueRef last = LLVMBuildSub(g->b, m->all, qn__const_i64(g, 1), "");
        qn__team_set_point(g, &m->r, is_clamped ? qn__umin(g, point, last) : point);
        return;
    }
    g->iv[m->k] = first;
    g->iv_level[m->k] = at;
    if (is_clamped)
        qn__set_index(g, m->k, clamped(g, point, m->k));
    qn__set_ahead(g, m->k, is_clamped ? 0 : step, g->depth);
}

typedef void (*point_function)(lower *g, block_fold *m, int i, int j, LLVMValueRef *values,
                               const LLVMValueRef *to);

/** Chooses what is evaluated together: a few points and iterations whose indices are constants
 * apart, where a region branches. The rare sides of `if` are behind one branch then, and what
 * stands between branches is long enough to fill the processor. */
static void choose_together(const lower *g, block_fold *m, const block_part *c)
{
    const qn_inst *x = &g->k->inst[m->r.inst];
    bool branches = false;
    for (uint32_t i = x->region[0]; i < x->region[2]; i++)
        branches |= g->k->inst[i].op == QN_I_IF;
    m->together_x = m->together_k = 1;
    if (!branches || c->left || c->is_clamped || m->is_thin)
        return;
    if (m->x_inside)
        m->together_x = m->each_x < MOST_AT_ONCE ? m->each_x : MOST_AT_ONCE;
    int most = MOST_AT_ONCE / m->together_x;
    if (m->k >= 0)
        m->together_k = m->each_k < most ? m->each_k : most;
}

/** Makes nx iterations and nk points, iterations first, those that are emitted together. */
static void set_together(lower *g, const block_fold *m, int nx, int nk)
{
    g->jam_max = nx * nk;
    for (int d = 0; d < g->k->n_dims; d++) {
        int64_t ahead[MOST_AT_ONCE] = {0};
        for (int p = 0; p < g->jam_max; p++)
            ahead[p] = d == m->x ? p % nx * m->step_x : d == m->k ? p / nx * m->step_k : 0;
        qn__set_jam_ahead(g, d, ahead);
    }
    qn__set_jam(g, g->jam_max);
}

/** Calls `run` for each point of each iteration of this thread, or the first of those that are
 * together, with the indices set; for what is thin, or for the rest. */
static void for_kind(lower *g, block_fold *m, const block_part *c, point_function run,
                     LLVMValueRef *values, const LLVMValueRef *to)
{
    loop outer, inner;
    LLVMValueRef first = LLVMBuildAdd(g->b, LLVMBuildAdd(g->b, m->begin, c->q, ""),
                                      m->is_thin ? m->thin_k : m->off_k, "");
    int at = g->depth;
    for (int j = 0; j < qn__block_each_point(m); j += m->together_k) {
        LLVMValueRef number = LLVMBuildAdd(g->b, m->off_k, qn__const_i64(g, j * m->step_k), "");
        qn__once_open(g, &outer,
                      c->left ? LLVMBuildICmp(g->b, LLVMIntULT, number, c->left, "") : NULL);
        set_k(g, m, first, at, j, c->is_clamped);
        for (int i = 0; i < (m->is_thin ? 1 : m->each_x); i += m->together_x) {
            qn__once_open(g, &inner, NULL);
            set_x(g, m, i);
            run(g, m, i, j, values, to);
            qn__loop_close(g, &inner);
        }
        qn__loop_close(g, &outer);
    }
    qn__set_ahead(g, m->x, 0, 0);
    if (m->k >= 0)
        qn__set_ahead(g, m->k, 0, 0);
}

static void for_points(lower *g, block_fold *m, const block_part *c, point_function run,
                       LLVMValueRef *values, const LLVMValueRef *to)
{
    for_kind(g, m, c, run, values, to);
    m->together_x = m->together_k = 1;
    for (int n = 0; n < m->n_arrays && !m->is_thin; n++)
        m->is_thin = m->array[n].is_thin;
    if (m->is_thin)
        for_kind(g, m, c, run, values, to);
    m->is_thin = false;
}

/* ---------------------------------------------------------------- loads */

static int value_number(const block_fold *m, const block_early *e, int i, int j)
{
    return e->first + (e->has_x ? j * m->each_x + i : j);
}

static LLVMValueRef loaded(lower *g, uint32_t i)
{
    if (!g->value[i].is_set)
        qn__lower_load(g, i, 0);
    return qn__scalar(g, i, 0);
}

static void fetch_point(lower *g, block_fold *m, int i, int j, LLVMValueRef *values,
                        const LLVMValueRef *to)
{
    (void)to;
    for (int n = 0; n < m->n_loads; n++) {
        const block_early *e = &m->load[n];
        if (e->has_k && e->is_thin == m->is_thin && (e->has_x || i == 0))
            values[value_number(m, e, i, j)] = loaded(g, e->inst);
    }
}

/** The loads that do not differ between points, in program order, because one may need another. */
static void fetch_rows(lower *g, block_fold *m)
{
    loop once;
    for (int i = 0; i < m->each_x; i++) {
        qn__once_open(g, &once, NULL);
        set_x(g, m, i);
        for (int n = 0; n < m->n_loads; n++)
            if (!m->load[n].has_k)
                m->row[n][i] = loaded(g, m->load[n].inst);
        qn__loop_close(g, &once);
    }
    qn__set_ahead(g, m->x, 0, 0);
}

/** Loads the values of earlier reduces for this thread's iterations. */
static void get_earlier(lower *g, block_fold *m)
{
    int n = 0;
    FOR_TOP_REDUCES (g->k, r) {
        for (int i = 0; g->grid->has_values && r < m->r.inst && i < m->each_x; i++) {
            LLVMValueRef at = qn__const_i64(g, i * m->step_x);
            m->value[n][i] = qn__block_value(g, r, LLVMBuildAdd(g->b, m->off_x, at, ""));
        }
        n++;
    }
}

static void set_earlier(lower *g, const block_fold *m, int i)
{
    int n = 0;
    FOR_TOP_REDUCES (g->k, r) {
        if (g->grid->has_values && r < m->r.inst)
            qn__set(g, r, 0, m->value[n][i], g->depth);
        n++;
    }
}

/* ---------------------------------------------------------------- points */

/** Makes the row of iteration i, of this thread's, that whose kept values are read and written. */
static void set_kept_row(lower *g, const block_fold *m, int i)
{
    g->kept_row = LLVMBuildAdd(g->b, m->off_x, qn__const_i64(g, i * m->step_x), "");
}

/** A point of this thread's: number j of iteration i; p: its part of those that are together. */
typedef struct spot {
    int i, j, p;
} spot;

static spot spot_of(const block_fold *m, int i, int j, int p)
{
    return (spot){i + p % m->together_x, j + p / m->together_x, p};
}

/** Sets what a point has before it is evaluated: its loads, the values of earlier reduces, and what
 * is kept. */
static void get_point(lower *g, const block_fold *m, spot at, const LLVMValueRef *values,
                      const LLVMValueRef *to, LLVMValueRef *held)
{
    for (int n = 0; n < m->n_loads; n++) {
        const block_early *e = &m->load[n];
        if (e->has_k && e->is_thin != m->is_thin)
            continue;
        LLVMValueRef v = e->has_k ? values[value_number(m, e, at.i, at.j)] : m->row[n][at.i];
        held[g->site[e->inst]] = v;
        qn__set(g, e->inst, 0, v, g->depth);
    }
    set_earlier(g, m, at.i);
    if (g->kept) {
        set_kept_row(g, m, at.i);
        qn__kept_read(g, m->r.inst, to[0], at.j * m->step_k);
        qn__kept_hold(g, m->r.inst, held);
    }
}

/** What a point adds is stored. */
static void store_point(lower *g, const block_fold *m, spot at, const addend *a,
                        const LLVMValueRef *to)
{
    for (int n = 0; n < m->n_arrays; n++) {
        if (m->array[n].is_thin != m->is_thin || (!m->array[n].has_x && at.i > 0))
            continue;
        const int64_t ahead = at.j * (m->is_thin ? m->threads : m->step_k);
        LLVMValueRef to_here = qn__block_further(g, &m->array[n], to[n], at.i * m->step_x, ahead);
        qn__store_as(g, m->r.type, n ? a->factor[at.p] : a->value[at.p], to_here, m->bytes);
    }
}

/** Evaluates the points from (i, j) on that are together, whose loads were made ahead; what each
 * adds is stored: in array n from to[n] on, or, where rows are kept, at this thread's place to[0]
 * of a row. What is evaluated and not stored, and its loads, are not emitted by the code generator.
 */
static void put_point(lower *g, block_fold *m, int i, int j, LLVMValueRef *values,
                      const LLVMValueRef *to)
{
    LLVMValueRef held[MOST_AT_ONCE * QN_MOST_HELD] = {NULL};
    const int n = m->together_x * m->together_k;
    reduction r = m->r;
    addend a;
    set_together(g, m, m->together_x, m->together_k);
    for (int p = 0; p < n; p++) {
        r.part[p] = p;
        g->one_part = 1 + p;
        get_point(g, m, spot_of(m, i, j, p), values, to, held + p * QN_MOST_HELD);
    }
    g->one_part = 0;
    r.n = n;
    g->held = held;
    g->team_reduce = m->r.inst;
    qn__evaluate_point(g, &r, &a);
    g->team_reduce = 0;
    g->held = NULL;
    for (int p = 0; p < n; p++) {
        const spot at = spot_of(m, i, j, p);
        g->one_part = 1 + p;
        if (!g->kept) {
            store_point(g, m, at, &a, to);
            continue;
        }
        set_kept_row(g, m, at.i);
        qn__kept_write(g, m->r.inst, to[0], at.j * m->step_k);
    }
    g->one_part = 0;
    g->kept_row = NULL;
    set_together(g, m, 1, 1);
}

static void put_at_once(lower *g, block_fold *m, int i, int j, LLVMValueRef *values,
                        const LLVMValueRef *to)
{
    fetch_point(g, m, i, j, values, NULL);
    put_point(g, m, i, j, values, to);
}

void qn__block_put_chunk(lower *g, block_fold *m, const block_part *c, LLVMValueRef *fetched)
{
    LLVMValueRef to[2] = {LLVMBuildAdd(g->b, m->off_k, c->q, "")};
    for (int n = 0; n < m->n_arrays && !g->kept; n++)
        to[n] =
            qn__block_place(g, m, n, c->q, m->off_x, m->array[n].is_thin ? m->thin_k : m->off_k);
    choose_together(g, m, c);
    for_points(g, m, c, c->left ? put_at_once : put_point, fetched, to);
    if (!m->by_lanes)
        qn__nvptx_barrier(g);
}

void qn__block_fetch(lower *g, block_fold *m, const block_part *c, LLVMValueRef *values)
{
    for_points(g, m, c, fetch_point, values, NULL);
}

void qn__block_set_row(lower *g, const block_fold *m, LLVMValueRef row)
{
    for (int n = 0; n < m->n_loads; n++)
        if (!m->load[n].has_k)
            loaded(g, m->load[n].inst);
    FOR_TOP_REDUCES (g->k, r) {
        if (g->grid->has_values && r < m->r.inst)
            qn__set(g, r, 0, qn__block_value(g, r, row), g->depth);
    }
    g->kept_row = row;
}

void qn__block_begin_points(lower *g, block_fold *m)
{
    set_places(g, m);
    get_earlier(g, m);
    fetch_rows(g, m);
}
