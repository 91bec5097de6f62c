/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_fold.c: one reduce in index order (or in any) by all threads of a block, for a tile of
 * iterations along one dimension, in chunks of points: each thread evaluates some points of some
 * iterations, so that what it loads is coalesced, and leaves what they add in shared memory; the
 * first threads, one for each iteration, add it in order. Loads that cannot fail are made a chunk
 * ahead. There are two buffers, so one barrier for each chunk is enough: who comes to the next one
 * has read the buffer that is filled after it. Rows that are kept (plan->kept) stand where their
 * points do instead.
 *
 * Beyond the end of the tile's dimension, and in the last chunk beyond the last point, the last one
 * is evaluated again: what comes of it is not added.
 */
#include "jit/target/nvptx/block_parts.h"
#include "jit/target/nvptx/team.h"
#include "jit/schedule/grid.h"

#include <string.h>

/* ---------------------------------------------------------------- shape */

/** Where a block that keeps rows has what array n of a reduce holds. */
static const qn_kept *kept_of(const lower *g, uint32_t reduce, int n)
{
    const qn_kept *x = g->grid->kept;
    while (x->region != reduce || x->to != qn__added_value(g->k, reduce, n))
        x++;
    return x;
}

static void set_arrays(block_fold *m, const lower *g, uint32_t reduce)
{
    const qn_kernel *k = g->k;
    const qn_grid *p = g->grid;
    m->bytes = qn_dtype_bytes(k->inst[reduce].type);
    m->n_arrays = qn__contracted_product(k, reduce) ? 2 : 1;
    m->is_square =
        m->n_arrays == 2 && qn__added_value(k, reduce, 0) == qn__added_value(k, reduce, 1);
    m->n_arrays = m->is_square ? 1 : m->n_arrays;
    m->buffer_bytes = 0;
    m->has_all = p->n_kept > 0;
    for (int n = 0; n < m->n_arrays; n++) {
        block_array *v = &m->array[n];
        if (p->n_kept) {
            const qn_kept *kept = kept_of(g, reduce, n);
            *v = (block_array){
                .has_x = true, .first = kept->at, .by_x = kept->pitch, .by_k = m->bytes};
            m->has_all &= kept->writer != reduce;
            continue;
        }
        v->has_x = g->a.value[qn__added_value(k, reduce, n)].deps >> m->x & 1;
        v->is_thin = !v->has_x && qn__is_plain_reduce(g, &k->inst[reduce]);
        v->first = m->buffer_bytes;
        /* Rows of points are read in pieces of 16 bytes by threads side by side: an odd number of
         * them from row to row. */
        bool in_rows = p->is_along_points || !v->has_x;
        v->by_x = !v->has_x ? 0 : in_rows ? m->chunk * m->bytes + 16 : m->bytes;
        v->by_k = in_rows ? m->bytes : m->tile * m->bytes;
        int64_t bytes = in_rows && v->has_x ? m->tile * v->by_x : m->chunk * v->by_k;
        m->buffer_bytes += (bytes + 15) / 16 * 16;
    }
}

static void set_shape(block_fold *m, const qn_kernel *k, const qn_grid *p)
{
    m->x = p->axis[0];
    m->tile = p->block[m->x];
    m->chunk = qn__block_chunk(k, p, m->r.inst);
    m->threads = qn__nvptx_threads(p);
    int64_t rows = m->tile < m->threads / NEAR ? m->tile : m->threads / NEAR;
    int64_t near = p->is_along_points ? m->threads / rows : m->tile;
    m->step_x = p->is_along_points ? m->threads / near : near;
    m->step_k = p->is_along_points ? near : m->threads / near;
    m->each_x = (int)(m->tile / m->step_x);
    m->each_k = (int)(m->chunk / m->step_k);
}

/** The lesser of an index and the last one. */
static LLVMValueRef clamped(lower *g, LLVMValueRef v, int d)
{
    LLVMValueRef last = LLVMBuildSub(g->b, g->end[d], qn__const_i64(g, 1), "");
    return LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, v, last, ""), v, last, "");
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
        m->at_x[i] = first;
        if (!m->x_inside)
            m->at_x[i] =
                clamped(g, LLVMBuildAdd(g->b, first, qn__const_i64(g, i * m->step_x), ""), m->x);
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

/** Points of a chunk that each thread evaluates for one iteration. Of what is thin, some are
 * evaluated by several threads. */
static int each_point(const block_fold *m)
{
    return !m->is_thin ? m->each_k : m->chunk > m->threads ? (int)(m->chunk / m->threads) : 1;
}

/** Chooses what is evaluated together: a few points and iterations whose indices are constants
 * apart, where a region branches. The rare sides of `if` are behind one branch then, and what stands
 * between branches is long enough to fill the processor. */
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
    for (int j = 0; j < each_point(m); j += m->together_k) {
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

/** Whether only thin arrays need a load. */
static bool is_thin(const lower *g, const block_fold *m, uint32_t load)
{
    enum { MOST_REGION = 128 };
    bool needs[MOST_REGION] = {false}, found = false;
    const qn_inst *reduce = &g->k->inst[m->r.inst];
    uint32_t begin = reduce->region[0], size = reduce->region[2] - begin;
    if (size > MOST_REGION)
        return false;
    for (uint32_t i = 0; i < size; i++) {
        needs[i] = begin + i == load;
        for (int n = 0; n < g->k->inst[begin + i].n_args; n++) {
            uint32_t v = qn__args(g->k, begin + i)[n];
            needs[i] |= v >= begin && needs[v - begin];
        }
    }
    for (int n = 0; n < m->n_arrays; n++) {
        uint32_t v = qn__added_value(g->k, m->r.inst, n);
        bool is_needed = v >= begin && needs[v - begin];
        if (is_needed && !m->array[n].is_thin)
            return false;
        found |= is_needed;
    }
    return found;
}

/** Whether an earlier reduce has left what a load of this one reads in shared memory. */
static bool is_read_back(const lower *g, const block_fold *m, uint32_t load)
{
    bool is_found = false;
    for (int n = 0; n < g->grid->n_kept; n++) {
        const qn_kept *x = &g->grid->kept[n];
        is_found |= x->to == load && x->region == m->r.inst && x->writer != x->region;
    }
    return is_found;
}

/** The staged loads: those of the reduce, and those before it that its region may need. */
static void find_loads(lower *g, block_fold *m)
{
    m->n_loads = m->n_values = 0;
    m->together_x = m->together_k = 1;
    for (uint32_t s = 0; s < g->k->n_accesses && s < MOST_LOADS; s++) {
        uint32_t i = g->k->access[s].inst, deps = g->a.value[i].deps, parent = g->k->inst[i].parent;
        if (!(g->grid->staged >> s & 1) || (parent ? parent != m->r.inst : i > m->r.inst) ||
            is_read_back(g, m, i))
            continue;
        block_early *e = &m->load[m->n_loads++];
        *e = (block_early){i, deps >> m->x & 1, (deps & m->reduced) != 0,
                           parent && is_thin(g, m, i), m->n_values};
        m->is_thin = e->is_thin;
        m->n_values += !e->has_k ? 0 : (e->has_x ? m->each_x : 1) * each_point(m);
    }
    m->is_thin = false;
    if (m->n_values + LEVELS > MOST_VALUES) {
        g->failed = true;
        m->n_loads = m->n_values = 0;
    }
}

static int value_number(const block_fold *m, const block_early *e, int i, int j)
{
    return e->first + (e->has_x ? j * m->each_x + i : j);
}

static LLVMValueRef loaded(lower *g, uint32_t i)
{
    if (!g->value[i].is_set)
        qn__lower_load(g, i);
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

/** Sets what a point has before it is evaluated: its loads, the values of earlier reduces, and what
 * is kept. */
static void get_point(lower *g, const block_fold *m, int i, int j, const LLVMValueRef *values,
                      const LLVMValueRef *to, LLVMValueRef *held)
{
    for (int n = 0; n < m->n_loads; n++) {
        const block_early *e = &m->load[n];
        if (e->has_k && e->is_thin != m->is_thin)
            continue;
        LLVMValueRef v = e->has_k ? values[value_number(m, e, i, j)] : m->row[n][i];
        held[g->site[e->inst]] = v;
        qn__set(g, e->inst, 0, v, g->depth);
    }
    set_earlier(g, m, i);
    if (g->kept) {
        set_kept_row(g, m, i);
        qn__kept_read(g, m->r.inst, to[0], j * m->step_k);
        qn__kept_hold(g, m->r.inst, held);
    }
}

/** What a point adds, as number p of those that are together, is stored. */
static void store_point(lower *g, const block_fold *m, int i, int j, const addend *a, int p,
                        const LLVMValueRef *to)
{
    for (int n = 0; n < m->n_arrays; n++) {
        if (m->array[n].is_thin != m->is_thin || (!m->array[n].has_x && i > 0))
            continue;
        LLVMValueRef v = qn__to_memory(g, m->r.type, n ? a->factor[p] : a->value[p]);
        LLVMValueRef store =
            LLVMBuildStore(g->b, v,
                           qn__block_further(g, &m->array[n], to[n], i * m->step_x,
                                             j * (m->is_thin ? m->threads : m->step_k)));
        LLVMSetAlignment(store, (unsigned)m->bytes);
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
        get_point(g, m, i + p % m->together_x, j + p / m->together_x, values, to,
                  held + p * QN_MOST_HELD);
    }
    g->one_part = 0;
    r.n = n;
    g->held = held;
    g->team_reduce = m->r.inst;
    qn__evaluate_point(g, &r, &a);
    g->team_reduce = 0;
    g->held = NULL;
    for (int p = 0; p < n; p++) {
        const int x = i + p % m->together_x, k = j + p / m->together_x;
        g->one_part = 1 + p;
        if (!g->kept) {
            store_point(g, m, x, k, &a, p, to);
            continue;
        }
        set_kept_row(g, m, x);
        qn__kept_write(g, m->r.inst, to[0], k * m->step_k);
    }
    g->one_part = 0;
    g->kept_row = NULL;
    set_together(g, m, 1, 1);
}

/* ---------------------------------------------------------------- chunks */

static void put_at_once(lower *g, block_fold *m, int i, int j, LLVMValueRef *values,
                        const LLVMValueRef *to)
{
    fetch_point(g, m, i, j, values, NULL);
    put_point(g, m, i, j, values, to);
}

static void put_chunk(lower *g, block_fold *m, const block_part *c, LLVMValueRef *fetched)
{
    LLVMValueRef to[2] = {LLVMBuildAdd(g->b, m->off_k, c->q, "")};
    for (int n = 0; n < m->n_arrays && !g->kept; n++)
        to[n] =
            qn__block_place(g, m, n, c->q, m->off_x, m->array[n].is_thin ? m->thin_k : m->off_k);
    choose_together(g, m, c);
    for_points(g, m, c, c->left ? put_at_once : put_point, fetched, to);
    qn__nvptx_barrier(g);
}

/** The chunks from 0 to point `whole`, of which there is at least one; the next one's loads are
 * made before one is added. */
static void fold_whole(lower *g, block_fold *m, LLVMValueRef whole, LLVMValueRef *sums)
{
    LLVMValueRef state[MOST_VALUES], before[MOST_VALUES];
    LLVMValueRef zero = qn__const_i64(g, 0), size = qn__const_i64(g, m->chunk);
    int n_sums = m->r.n_levels + 1, n = n_sums + m->n_values;
    loop l;
    memcpy(state, sums, (size_t)n_sums * sizeof *sums);
    for_points(g, m, &(block_part){.q = zero}, fetch_point, state + n_sums, NULL);
    qn__loop_open(g, &l, (span){zero, whole}, m->chunk, 0);
    qn__loop_carry(g, &l, state, n);
    memcpy(before, state, (size_t)n * sizeof *state);
    const block_part now = {.q = l.index}, after = {.q = LLVMBuildAdd(g->b, l.index, size, "")};
    put_chunk(g, m, &now, state + n_sums);
    branch more = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntNE, after.q, whole, ""));
    for_points(g, m, &after, fetch_point, state + n_sums, NULL);
    qn__choose_branch(g, &more, state + n_sums, before + n_sums, m->n_values);
    state[0] = qn__block_add(g, m, &now, size, state[0]);
    qn__fold_up(g, &m->r, state, after.q);
    qn__loop_close(g, &l);
    memcpy(sums, state, (size_t)n_sums * sizeof *sums);
}

/** Whether a value is known to be zero, or not to be. */
static bool is_known(LLVMValueRef v, bool is_zero)
{
    int64_t n;
    return qn__is_const(v, &n) && (n == 0) == is_zero;
}

/** Runs the chunks of one kind if there are any. */
static void fold_some(lower *g, block_fold *m, LLVMValueRef whole, LLVMValueRef left,
                      LLVMValueRef *sums)
{
    LLVMValueRef before[LEVELS], some = left ? left : whole;
    bool is_open = !is_known(some, false);
    branch then = {0};
    if (is_known(some, true))
        return;
    memcpy(before, sums, sizeof before);
    if (is_open)
        then = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntNE, some, qn__const_i64(g, 0), ""));
    if (left) {
        LLVMValueRef values[MOST_VALUES];
        const block_part rest = {.q = whole, .is_clamped = !g->kept, .left = g->kept ? left : NULL};
        if (!rest.left)
            for_points(g, m, &rest, fetch_point, values, NULL);
        put_chunk(g, m, &rest, values);
        sums[0] = qn__block_add(g, m, &rest, left, sums[0]);
    } else {
        fold_whole(g, m, whole, sums);
    }
    if (is_open)
        qn__choose_branch(g, &then, sums, before, m->r.n_levels + 1);
}

/** The sums of rows that an earlier reduce has left, in the first threads: of blocks of 4096
 * points, if the order has any. */
static void add_rows(lower *g, block_fold *m, LLVMValueRef *sums)
{
    LLVMValueRef zero = qn__const_i64(g, 0), size = qn__const_i64(g, BLOCK),
                 whole = m->r.n_levels ? LLVMBuildAnd(g->b, m->points, qn__const_i64(g, -BLOCK), "")
                                       : zero;
    const int n = m->r.n_levels + 1;
    const block_part rest = {.q = whole};
    if (m->r.n_levels) {
        loop l;
        qn__loop_open(g, &l, (span){zero, whole}, BLOCK, LOOP_MAY_BE_EMPTY);
        qn__loop_carry(g, &l, sums, n);
        sums[0] = qn__block_add(g, m, &(block_part){.q = l.index}, size, sums[0]);
        qn__fold_up(g, &m->r, sums, LLVMBuildAdd(g->b, l.index, size, ""));
        qn__loop_close(g, &l);
    }
    sums[0] = qn__block_add(g, m, &rest, LLVMBuildSub(g->b, m->points, whole, ""), sums[0]);
}

/* ---------------------------------------------------------------- one reduce */

/** The value of a reduce, in the first threads. */
static LLVMValueRef fold(lower *g, block_fold *m)
{
    LLVMValueRef sums[LEVELS];
    for (int v = 0; v < LEVELS; v++)
        sums[v] = m->r.identity;
    if (m->has_all) {
        add_rows(g, m, sums);
    } else if (m->r.points != 0) {
        LLVMValueRef points = m->points,
                     whole = LLVMBuildAnd(g->b, points, qn__const_i64(g, -m->chunk), "");
        qn__nvptx_barrier(g); /* what stood there has been read */
        set_places(g, m);
        get_earlier(g, m);
        fetch_rows(g, m);
        fold_some(g, m, whole, NULL, sums);
        fold_some(g, m, whole, LLVMBuildSub(g->b, points, whole, ""), sums);
    }
    return qn__fold_levels(g, &m->r, sums, 1);
}

static void open_block(lower *g, block_fold *m, uint32_t reduce, LLVMValueRef thread,
                       LLVMValueRef low)
{
    memset(m, 0, sizeof *m);
    m->r = qn__describe_reduction(g, reduce);
    m->thread = thread;
    m->low = low;
    m->k = m->r.n_dims == 1 ? m->r.dim[0] : -1;
    for (int n = 0; n < m->r.n_dims; n++)
        m->reduced |= UINT32_C(1) << m->r.dim[n];
    set_shape(m, g->k, g->grid);
    set_arrays(m, g, reduce);
    m->first = qn__block_value_bytes(g);
    int64_t all = m->first + 2 * m->buffer_bytes;
    g->shared_bytes = all > g->shared_bytes ? (int32_t)all : g->shared_bytes;
    if (qn__order_rule(g->k, reduce) != QN_INDEXED)
        m->r.n_levels = 0;
    m->begin = m->k < 0 ? qn__const_i64(g, 0) : g->begin[m->k];
    m->points = m->all = qn__team_points(g, &m->r);
    find_loads(g, m);
}

LLVMValueRef qn__block_fold(lower *g, uint32_t reduce, LLVMValueRef low, LLVMValueRef number)
{
    block_fold m;
    open_block(g, &m, reduce, qn__nvptx_register(g, "tid.x", g->i64), low);
    if (number) {
        LLVMValueRef size = qn__const_i64(g, BLOCK), first = LLVMBuildMul(g->b, number, size, "");
        m.r.n_levels = 0;
        m.begin = LLVMBuildAdd(g->b, m.begin, first, "");
        m.points = m.r.points % BLOCK == 0
                       ? size
                       : qn__umin(g, LLVMBuildSub(g->b, m.points, first, ""), size);
    }
    return fold(g, &m);
}
