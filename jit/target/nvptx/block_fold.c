/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_fold.c: one reduce in index order (or in any) by all threads of a block, for a tile of
 * iterations along one dimension, in chunks of points: each thread evaluates some points of some
 * iterations, so that what it loads is coalesced, and leaves what they add in shared memory; the
 * first threads, one for each iteration, add it in order. Loads that cannot fail are made a chunk
 * ahead. There are two buffers, so one barrier for each chunk is enough: who comes to the next one
 * has read the buffer that is filled after it. Rows that are kept (qn_grid) stand where their
 * points do instead.
 *
 * Beyond the end of the tile's dimension, and in the last chunk beyond the last point, the last one
 * is evaluated again: what comes of it is not added.
 */
#include "jit/target/nvptx/block_parts.h"
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
    m->buffer_bytes = 0;
    for (int n = 0; n < m->n_arrays; n++) {
        block_array *v = &m->array[n];
        if (m->by_lanes) {
            *v = (block_array){.has_x = true};
            continue;
        }
        if (p->n_kept) {
            const qn_kept *kept = kept_of(g, reduce, n);
            *v = (block_array){
                .has_x = true, .first = kept->at, .by_x = kept->pitch, .by_k = m->bytes};
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
    int64_t rows = m->tile < m->threads / WARP_LANES ? m->tile : m->threads / WARP_LANES;
    int64_t near = p->is_along_points ? m->threads / rows : m->tile;
    m->step_x = p->is_along_points ? m->threads / near : near;
    m->step_k = p->is_along_points ? near : m->threads / near;
    m->each_x = (int)(m->tile / m->step_x);
    m->each_k = (int)(m->chunk / m->step_k);
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

/** The early loads: those of the reduce, and those before it that its region may need. */
static void find_loads(lower *g, block_fold *m)
{
    m->n_loads = m->n_values = 0;
    m->together_x = m->together_k = 1;
    for (uint32_t s = 0; s < g->k->n_accesses && s < MOST_LOADS; s++) {
        uint32_t i = g->k->access[s].inst, deps = g->a.value[i].deps, parent = g->k->inst[i].parent;
        if (!(g->grid->early >> s & 1) || (parent ? parent != m->r.inst : i > m->r.inst) ||
            is_read_back(g, m, i))
            continue;
        block_early *e = &m->load[m->n_loads++];
        *e = (block_early){i, deps >> m->x & 1, (deps & m->reduced) != 0,
                           parent && is_thin(g, m, i), m->n_values};
        m->is_thin = e->is_thin;
        m->n_values += !e->has_k ? 0 : (e->has_x ? m->each_x : 1) * qn__block_each_point(m);
    }
    m->is_thin = false;
    if (m->n_values + LEVELS > MOST_VALUES) {
        g->failed = true;
        m->n_loads = m->n_values = 0;
    }
}

/* ---------------------------------------------------------------- chunks */

/** The chunks from 0 to point `whole`, of which there is at least one; the next one's loads are
 * made before one is added. */
static void fold_whole(lower *g, block_fold *m, LLVMValueRef whole, LLVMValueRef *sums)
{
    LLVMValueRef state[MOST_VALUES];
    LLVMValueRef zero = qn__const_i64(g, 0), size = qn__const_i64(g, m->chunk);
    int n_sums = m->r.n_levels + 1, n = n_sums + m->n_values;
    loop l;
    memcpy(state, sums, (size_t)n_sums * sizeof *sums);
    qn__block_fetch(g, m, &(block_part){.q = zero}, state + n_sums);
    qn__loop_open(g, &l, (span){zero, whole}, m->chunk, 0);
    qn__loop_carry(g, &l, state, n);
    const block_part now = {.q = l.index}, after = {.q = LLVMBuildAdd(g->b, l.index, size, "")};
    qn__block_put_chunk(g, m, &now, state + n_sums);
    branch more = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntNE, after.q, whole, ""));
    qn__branch_keep(g, &more, state + n_sums, m->n_values);
    qn__block_fetch(g, m, &after, state + n_sums);
    qn__end_branch(g, &more, NULL);
    if (!m->by_lanes) {
        state[0] = qn__block_add(g, m, &now, size, state[0]);
        qn__fold_up(g, &m->r, state, after.q);
    }
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
    LLVMValueRef some = left ? left : whole;
    if (is_known(some, true))
        return;
    branch then = qn__begin_branch(
        g, is_known(some, false) ? NULL
                                 : LLVMBuildICmp(g->b, LLVMIntNE, some, qn__const_i64(g, 0), ""));
    qn__branch_keep(g, &then, sums, m->r.n_levels + 1);
    if (left) {
        LLVMValueRef values[MOST_VALUES];
        const block_part rest = {.q = whole, .is_clamped = !g->kept, .left = g->kept ? left : NULL};
        if (!rest.left)
            qn__block_fetch(g, m, &rest, values);
        qn__block_put_chunk(g, m, &rest, values);
        if (!m->by_lanes)
            sums[0] = qn__block_add(g, m, &rest, left, sums[0]);
    } else {
        fold_whole(g, m, whole, sums);
    }
    qn__end_branch(g, &then, NULL);
}

/* ---------------------------------------------------------------- one reduce */

/** Makes the points of a row those that are read, on the level that is open; from what is kept, if
 * something is. */
static void open_row(lower *g, const block_fold *m, LLVMValueRef row)
{
    LLVMValueRef end = LLVMBuildSub(g->b, g->end[m->x], qn__const_i64(g, 1), "");
    qn__set_index(g, m->x, qn__umin(g, LLVMBuildAdd(g->b, m->low, row, ""), end));
    qn__block_set_row(g, m, row);
    g->kept_is_read = g->kept != NULL;
}

static void close_row(lower *g)
{
    g->kept_is_read = false;
    g->kept_row = NULL;
    g->lane = NULL;
}

static LLVMValueRef own_lane(lower *g, const block_fold *m)
{
    return LLVMBuildURem(g->b, m->thread, qn__const_i64(g, WARP_LANES), "");
}

/** Leaves the values of rows in shared memory: of each row by the lanes of a warp. */
static void put_rows(lower *g, const block_fold *m, const reduction *r)
{
    const int64_t warps = m->threads / WARP_LANES;
    LLVMValueRef warp = LLVMBuildUDiv(g->b, m->thread, qn__const_i64(g, WARP_LANES), "");
    loop l, once;
    g->lane = own_lane(g, m);
    qn__loop_open(g, &l, qn__up_to(g, qn__const_i64(g, (m->tile + warps - 1) / warps * warps)),
                  warps, 0);
    LLVMValueRef row = LLVMBuildAdd(g->b, l.index, warp, ""), tile = qn__const_i64(g, m->tile);
    qn__once_open(g, &once,
                  m->tile % warps ? LLVMBuildICmp(g->b, LLVMIntULT, row, tile, "") : NULL);
    open_row(g, m, row);
    team_source s = {.r = r, .total = m->points};
    LLVMValueRef v;
    qn__team_fold(g, &s, qn__is_associative(g->k, r->inst), &v);
    branch then = qn__begin_branch(g, qn__is_lane(g, 0));
    qn__block_put_value(g, r, row, v);
    qn__end_branch(g, &then, NULL);
    qn__loop_close(g, &once);
    qn__loop_close(g, &l);
    close_row(g);
}

/** The value of the only row, which may come in any order, by all threads. */
static LLVMValueRef fold_together(lower *g, const block_fold *m, const reduction *r)
{
    const int64_t warps = m->threads / WARP_LANES;
    loop once;
    qn__once_open(g, &once, NULL);
    open_row(g, m, qn__const_i64(g, 0));
    g->lane = m->thread;
    const team_source s = {.r = r, .total = m->points, .lanes = m->threads};
    LLVMValueRef v = qn__team_pieces(g, &s),
                 warp = LLVMBuildUDiv(g->b, m->thread, qn__const_i64(g, WARP_LANES), "");
    branch then = qn__begin_branch(
        g, LLVMBuildICmp(g->b, LLVMIntEQ, own_lane(g, m), qn__const_i64(g, 0), ""));
    qn__store_as(g, r->type, v, qn__block_word(g, warp), 8);
    qn__end_branch(g, &then, NULL);
    qn__nvptx_barrier(g);
    v = r->identity;
    for (int64_t n = 0; n < warps; n++)
        v = qn__combine(
            g, r, v,
            qn__load_as(g, r->type, qn__block_word(g, qn__const_i64(g, n)), 8));
    qn__loop_close(g, &once);
    close_row(g);
    return v;
}

/** Blocks of 4096 points of the only row of a reduce in the striped order, of each of which 64
 * threads have the partials; 0: there are too many, or their number is not known. */
static int64_t blocks_apart(const lower *g, const block_fold *m, const reduction *r)
{
    const int64_t blocks = r->points > 0 ? (r->points + BLOCK - 1) / BLOCK : 0;
    const bool is_striped = qn__order_rule(g->k, r->inst) == QN_STRIPED;
    return is_striped && m->tile == 1 && PARTIALS * blocks <= m->threads ? blocks : 0;
}

/** What has 64 partials: the iterations of the tile, or the blocks of 4096 points of its only row.
 * Threads take one partial after the other, neighbours those whose points lie side by side; partial
 * l of number n is word n x PARTIALS_PITCH + l of shared memory. */
enum { PARTIALS_PITCH = PARTIALS + 1 };
typedef struct parts {
    const block_fold *m;
    const team_source *s;
    span of; /* points of an iteration, or of the row */
    int64_t n;
    bool are_blocks;
} parts;

static void put_partial(lower *g, LLVMValueRef q, LLVMValueRef condition, void *arg)
{
    const parts *x = arg;
    LLVMValueRef by = qn__const_i64(g, x->are_blocks ? PARTIALS : x->n), v,
                 far = LLVMBuildUDiv(g->b, q, by, ""), near = LLVMBuildURem(g->b, q, by, ""),
                 number = x->are_blocks ? far : near, lane = x->are_blocks ? near : far;
    loop once;
    qn__once_open(g, &once, condition);
    if (!x->s->array)
        open_row(g, x->m, x->are_blocks ? qn__const_i64(g, 0) : number);
    g->lane = lane;
    qn__team_block(g, x->s, x->are_blocks ? qn__block_at(g, x->of, number, BLOCK) : x->of, &v);
    number = LLVMBuildMul(g->b, number, qn__const_i64(g, PARTIALS_PITCH), "");
    qn__store_as(g, x->s->r->type, v, qn__block_word(g, LLVMBuildAdd(g->b, number, lane, "")), 8);
    close_row(g);
    qn__loop_close(g, &once);
}

/** What a warp makes of `count` words of shared memory, from `first` on: right in lane 0. */
static LLVMValueRef join_words(lower *g, const parts *x, LLVMValueRef first, int64_t pitch,
                               int64_t count)
{
    const team_source s = {.r = x->s->r,
                           .array = qn__block_word(g, first),
                           .pitch = pitch > 1 ? qn__const_i64(g, pitch) : NULL};
    LLVMValueRef v;
    g->lane = own_lane(g, x->m);
    qn__team_block(g, &s, qn__up_to(g, qn__const_i64(g, count)), &v);
    return v;
}

/** The partials of number n joined by a warp, in the first word of its own. */
static void join_partials(lower *g, LLVMValueRef n, LLVMValueRef condition, void *arg)
{
    const parts *x = arg;
    loop once;
    qn__once_open(g, &once, condition);
    n = LLVMBuildMul(g->b, n, qn__const_i64(g, PARTIALS_PITCH), "");
    LLVMValueRef v = join_words(g, x, n, 1, PARTIALS);
    branch then = qn__begin_branch(g, qn__is_lane(g, 0));
    qn__store_as(g, x->s->r->type, v, qn__block_word(g, n), 8);
    qn__end_branch(g, &then, NULL);
    qn__loop_close(g, &once);
    g->lane = NULL;
}

/** Leaves the value of each in the first word of its own. */
static void put_parts(lower *g, parts *x)
{
    const block_fold *m = x->m;
    LLVMValueRef warp = LLVMBuildUDiv(g->b, m->thread, qn__const_i64(g, WARP_LANES), "");
    qn__share_out(g, qn__const_i64(g, PARTIALS * x->n), m->thread, m->threads, put_partial, x);
    qn__nvptx_barrier(g);
    qn__share_out(g, qn__const_i64(g, x->n), warp, m->threads / WARP_LANES, join_partials, x);
    qn__nvptx_barrier(g);
}

/** Leaves the value of the only row in shared memory, of whose blocks threads have the partials. */
static void put_row_by_partials(lower *g, const block_fold *m, const reduction *r, int64_t blocks)
{
    const team_source s = {.r = r, .total = m->points, .lanes = PARTIALS};
    LLVMValueRef zero = qn__const_i64(g, 0), lanes = qn__const_i64(g, WARP_LANES);
    parts x = {m, &s, qn__up_to(g, m->points), blocks, true};
    put_parts(g, &x);
    branch then = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntULT, m->thread, lanes, ""));
    LLVMValueRef v = join_words(g, &x, zero, PARTIALS_PITCH, blocks);
    branch first = qn__begin_branch(g, qn__is_lane(g, 0));
    qn__block_put_value(g, r, zero, v);
    qn__end_branch(g, &first, NULL);
    qn__end_branch(g, &then, NULL);
    g->lane = NULL;
}

/** At most 4096 points of a source, in the striped order, for each iteration of the tile: right in
 * the first threads. */
static LLVMValueRef fold_columns(lower *g, const block_fold *m, const team_source *s, span points)
{
    parts x = {m, s, points, m->tile, false};
    qn__nvptx_barrier(g); /* what stood there has been read */
    put_parts(g, &x);
    LLVMValueRef own = LLVMBuildURem(g->b, m->thread, qn__const_i64(g, m->tile), "");
    own = LLVMBuildMul(g->b, own, qn__const_i64(g, PARTIALS_PITCH), "");
    return qn__load_as(g, m->r.type, qn__block_word(g, own), 8);
}

/** The value of a reduce whose rows are in shared memory, in the first threads. Of one row the
 * least or the greatest f32 is found in any order first, and then in the order of its points, if
 * that is a zero. */
static LLVMValueRef fold_rows(lower *g, const block_fold *m)
{
    const reduction r = qn__describe_reduction(g, m->r.inst);
    const bool is_extremum = qn__is_extremum(&r),
               is_integer = qn__dtype_class(r.type) != QN_CLASS_F;
    LLVMValueRef last = qn__const_i64(g, m->tile - 1), zero = qn__const_i64(g, 0);
    qn__nvptx_barrier(g);
    const int64_t blocks = blocks_apart(g, m, &r);
    if (m->tile > 1 || !(is_extremum || is_integer)) {
        if (blocks)
            put_row_by_partials(g, m, &r, blocks);
        else
            put_rows(g, m, &r);
    } else {
        reduction any = r;
        any.is_unordered = is_extremum;
        LLVMValueRef v = fold_together(g, m, &any);
        branch first = qn__begin_branch(g, LLVMBuildICmp(g->b, LLVMIntEQ, m->thread, zero, ""));
        qn__block_put_value(g, &r, zero, v);
        qn__end_branch(g, &first, NULL);
        if (is_extremum) {
            branch again = qn__begin_branch(
                g, LLVMBuildFCmp(g->b, LLVMRealOEQ, v, LLVMConstNull(g->f32), ""));
            put_rows(g, m, &r);
            qn__end_branch(g, &again, NULL);
        }
    }
    qn__nvptx_barrier(g);
    return qn__block_value(g, r.inst, qn__umin(g, m->thread, last));
}

/** Whether points of a reduce leave something in shared memory. */
static bool keeps(const lower *g, uint32_t reduce)
{
    bool does = false;
    for (int n = 0; n < g->grid->n_kept; n++)
        does |= g->grid->kept[n].writer == reduce;
    return does;
}

/** The value of a reduce, in the first threads. */
static LLVMValueRef fold(lower *g, block_fold *m)
{
    LLVMValueRef sums[LEVELS];
    for (int v = 0; v < LEVELS; v++)
        sums[v] = m->r.identity;
    if (m->r.points != 0) {
        LLVMValueRef points = m->points,
                     whole = LLVMBuildAnd(g->b, points, qn__const_i64(g, -m->chunk), "");
        qn__nvptx_barrier(g); /* what stood there has been read */
        if (!m->by_lanes || keeps(g, m->r.inst)) {
            qn__block_begin_points(g, m);
            fold_some(g, m, whole, NULL, sums);
            fold_some(g, m, whole, LLVMBuildSub(g->b, points, whole, ""), sums);
        }
    }
    return m->by_lanes && m->r.points != 0 ? fold_rows(g, m) : qn__fold_levels(g, &m->r, sums, 1);
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
    m->by_lanes = qn__block_is_by_lanes(g->k, g->grid, reduce);
    set_arrays(m, g, reduce);
    m->first = qn__block_value_bytes(g);
    if (qn__block_is_by_partials(g->k, g->grid, reduce))
        m->buffer_bytes = 8 * (PARTIALS_PITCH + 1) / 2 * m->tile; /* which are no buffers */
    int64_t all = m->first + 2 * m->buffer_bytes;
    g->shared_bytes = all > g->shared_bytes ? (int32_t)all : g->shared_bytes;
    if (qn__order_rule(g->k, reduce) != QN_INDEXED)
        m->r.n_levels = 0;
    m->begin = m->k < 0 ? qn__const_i64(g, 0) : g->begin[m->k];
    m->points = m->all = qn__team_points(g, &m->r);
    find_loads(g, m);
}

LLVMValueRef qn__block_join(lower *g, uint32_t reduce, LLVMValueRef from, LLVMValueRef pitch,
                            LLVMValueRef blocks)
{
    block_fold m;
    open_block(g, &m, reduce, qn__nvptx_register(g, "tid.x", g->i64), NULL);
    const team_source s = {.r = &m.r, .array = from, .pitch = pitch, .lanes = PARTIALS};
    return fold_columns(g, &m, &s, qn__up_to(g, blocks));
}

LLVMValueRef qn__block_fold(lower *g, uint32_t reduce, LLVMValueRef low, LLVMValueRef number)
{
    block_fold m;
    open_block(g, &m, reduce, qn__nvptx_register(g, "tid.x", g->i64), low);
    if (qn__block_is_by_partials(g->k, g->grid, reduce)) {
        const team_source s = {.r = &m.r, .total = m.points, .lanes = PARTIALS};
        const span all = qn__up_to(g, m.points);
        return fold_columns(g, &m, &s, number ? qn__block_at(g, all, number, BLOCK) : all);
    }
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
