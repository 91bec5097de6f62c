/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.c: a reduce over one dimension for a tile of two parallel ones, as in a matrix product. A
 * block of 256 threads takes 128 x 128 iterations, each thread 8 x 8 of them, in registers; or one
 * of 128 threads 64 x 64, each 4 x 8. The loads of the reduce depend on the reduced dimension and
 * on one of the two others: a chunk of 16 points of each is brought into shared memory by all
 * threads, and read from there in pieces of 16 bytes. The chunk after it is on its way from memory
 * while one is worked on.
 *
 * Each accumulator takes its points in index order; with more than 4096 of them the results of
 * blocks go to local memory and are added there. Beyond the end of a dimension the last element is
 * loaded again: what comes of it is not stored.
 */
#include "jit/lower/wide.h"
#include "jit/target/nvptx/nvptx.h"
#include "jit/schedule/grid.h"

#include <string.h>

enum {
    CHUNK = QN_PRODUCT_CHUNK,
    MOST_EACH = 8, /* iterations of a thread along a dimension */
    MOST_SUMS = MOST_EACH * MOST_EACH,
    TOGETHER = 4, /* points emitted at once */
    MOST_LOADS = 4,
    ELEMENTS = 8 /* of each load that a thread brings */
};

/** A load of the reduce: along one of the tile's dimensions. */
typedef struct operand {
    uint32_t inst, value; /* the load; what is kept of it */
    int d;                /* x or y */
    bool is_along_k;      /* neighbouring elements lie along the reduced dimension */
    int64_t bytes, first; /* of an element; of the array in shared memory */
} operand;

typedef struct product {
    reduction r;
    int x, y, k, n;
    int64_t side, threads;
    int each[2], across[2]; /* iterations of a thread, threads: along x and y */
    int n_sums;
    int piece; /* elements of a piece of 16 bytes of the widest */
    operand op[MOST_LOADS];
    LLVMValueRef low[2],
        of_thread[2]; /* of the tile; of this thread's first piece: along x and y */
    LLVMValueRef thread;
} product;

static int64_t pitch(int64_t side, int64_t bytes)
{
    return side + 16 / bytes;
}

static int64_t array_bytes(int64_t side, int64_t bytes)
{
    return CHUNK * pitch(side, bytes) * bytes;
}

static void set_shape(product *m, const qn_grid *p)
{
    bool is_big = p->block[p->axis[0]] == QN_PRODUCT_SIDE;
    m->side = p->block[p->axis[0]];
    m->threads = p->threads[p->axis[0]];
    m->each[0] = is_big ? 8 : 4;
    m->each[1] = 8;
    for (int n = 0; n < 2; n++)
        m->across[n] = (int)m->side / m->each[n];
    m->n_sums = m->each[0] * m->each[1];
}

int32_t qn__product_bytes(const qn_kernel *k, const qn_grid *p)
{
    int64_t sum = 0;
    for (uint32_t s = 0; s < k->n_accesses && s < 64; s++) {
        if (p->early >> s & 1)
            sum += array_bytes(p->block[p->axis[0]], qn__product_value_bytes(k, k->access[s].inst));
    }
    return (int32_t)sum;
}

int qn__product_blocks(const qn_kernel *k, const qn_grid *p)
{
    return p->block[p->axis[0]] == QN_PRODUCT_SIDE &&
                   qn_dtype_bytes(k->inst[qn__next_reduce(k, k->body)].type) == 4
               ? 2
               : 1;
}

static void find_operands(lower *g, product *m)
{
    int64_t first = 0, stride, widest = 4;
    for (uint32_t s = 0; s < g->k->n_accesses && s < 64 && m->n < MOST_LOADS; s++) {
        if (!(g->grid->early >> s & 1))
            continue;
        operand *o = &m->op[m->n++];
        o->inst = g->k->access[s].inst;
        o->d = g->a.value[o->inst].deps >> m->x & 1 ? m->x : m->y;
        o->is_along_k = qn__access_stride(&g->a, o->inst, m->k, &stride) && stride == 1;
        o->value = qn__product_value(g->k, o->inst);
        o->bytes = qn__product_value_bytes(g->k, o->inst);
        o->first = first;
        first += array_bytes(m->side, o->bytes);
        widest = o->bytes > widest ? o->bytes : widest;
    }
    m->piece = (int)(16 / widest);
}

/* ---------------------------------------------------------------- into shared memory */

/** This thread's place in the chunk of an operand: its first element, and what the next are
 * further. */
typedef struct share {
    LLVMValueRef k, d;
    int64_t step_k, step_d;
} share;

static share share_of(lower *g, const product *m, const operand *o)
{
    int64_t across = o->is_along_k ? CHUNK : m->side;
    LLVMValueRef near = LLVMBuildAnd(g->b, m->thread, qn__const_i64(g, across - 1), "");
    LLVMValueRef far = LLVMBuildUDiv(g->b, m->thread, qn__const_i64(g, across), "");
    int64_t step = m->threads / across;
    return o->is_along_k ? (share){near, far, 0, step} : (share){far, near, step, 0};
}

/** Loads this thread's elements of the chunk that begins at point `from`. */
static void fetch(lower *g, const product *m, LLVMValueRef from, LLVMValueRef *value)
{
    loop once;
    for (int n = 0; n < m->n; n++) {
        const operand *o = &m->op[n];
        share s = share_of(g, m, o);
        LLVMValueRef last_d = qn__last_unless(g, o->d, m->side, 1),
                     last_k = qn__last_unless(g, m->k, CHUNK, 1),
                     d = LLVMBuildAdd(g->b, m->low[o->d == m->y], s.d, ""),
                     k = LLVMBuildAdd(g->b, from, s.k, "");
        for (int e = 0; e < ELEMENTS; e++) {
            qn__once_open(g, &once, NULL);
            qn__set_clamped(g, o->d, d, e * s.step_d, last_d);
            qn__set_clamped(g, m->k, k, e * s.step_k, last_k);
            qn__lower_load(g, o->inst, 0);
            *value++ = qn__scalar(g, o->value, 0);
            qn__set_ahead(g, o->d, 0, 0);
            qn__set_ahead(g, m->k, 0, 0);
            qn__loop_close(g, &once);
        }
    }
}

/** Address of element (point, position) + constants in the array of an operand. */
static LLVMValueRef address_of(lower *g, const product *m, const operand *o, LLVMValueRef point,
                               LLVMValueRef position, int64_t points, int64_t positions)
{
    LLVMValueRef at =
        LLVMBuildMul(g->b, point, qn__const_i64(g, pitch(m->side, o->bytes) * o->bytes), "");
    at = LLVMBuildAdd(g->b, at, LLVMBuildMul(g->b, position, qn__const_i64(g, o->bytes), ""), "");
    at = qn__gep(g, g->i8, qn__nvptx_shared(g), at);
    return qn__ahead(g, at, o->first + (points * pitch(m->side, o->bytes) + positions) * o->bytes);
}

static void put(lower *g, const product *m, const LLVMValueRef *value)
{
    for (int n = 0; n < m->n; n++) {
        const operand *o = &m->op[n];
        share s = share_of(g, m, o);
        for (int e = 0; e < ELEMENTS; e++) {
            LLVMValueRef at = address_of(g, m, o, s.k, s.d, e * s.step_k, e * s.step_d);
            qn__store_at(g, *value++, at, (unsigned)o->bytes);
        }
    }
}

/* ---------------------------------------------------------------- in registers */

/** Iteration e of a thread along x (0) or y (1), from its first. */
static int64_t iteration(const product *m, int n, int e)
{
    return (int64_t)(e / m->piece) * m->across[n] * m->piece + e % m->piece;
}

/** This thread's elements of an operand for a point, in pieces. */
static void get(lower *g, const product *m, const operand *o, LLVMValueRef point, int64_t ahead,
                LLVMValueRef *value)
{
    const bundle b = {qn__memory_type(g, g->k->inst[o->value].type), (int)o->bytes, m->piece};
    int d = o->d == m->y;
    for (int e = 0; e < m->each[d]; e += m->piece) {
        LLVMValueRef at = address_of(g, m, o, point, m->of_thread[d], ahead, iteration(m, d, e));
        qn__load_bundle(g, b, at, value + e);
    }
}

static void set_iteration(lower *g, const product *m, int d, int e)
{
    int n = d == m->y;
    qn__set_index(g, d, LLVMBuildAdd(g->b, m->low[n], m->of_thread[n], ""));
    qn__set_ahead(g, d, iteration(m, n, e), g->depth);
}

/** Adds one point of the chunk to all accumulators. */
static void add_point(lower *g, const product *m, LLVMValueRef from, LLVMValueRef point,
                      int64_t ahead, LLVMValueRef *acc)
{
    LLVMValueRef value[MOST_LOADS][MOST_EACH], held[QN_MOST_HELD] = {NULL};
    for (int n = 0; n < m->n; n++)
        get(g, m, &m->op[n], point, ahead, value[n]);
    for (int e = 0; e < m->n_sums; e++) {
        loop once;
        qn__once_open(g, &once, NULL);
        set_iteration(g, m, m->x, e % m->each[0]);
        set_iteration(g, m, m->y, e / m->each[0]);
        qn__set_index(g, m->k, LLVMBuildAdd(g->b, from, point, ""));
        qn__set_ahead(g, m->k, ahead, g->depth);
        for (int n = 0; n < m->n; n++) {
            const operand *o = &m->op[n];
            LLVMValueRef v = value[n][o->d == m->x ? e % m->each[0] : e / m->each[0]];
            if (o->value == o->inst)
                held[g->site[o->inst]] = v;
            else
                qn__set(g, o->value, 0, v, g->depth);
        }
        g->held = held;
        qn__fold_point(g, &m->r, &acc[e]);
        g->held = NULL;
        qn__set_ahead(g, m->k, 0, 0);
        qn__loop_close(g, &once);
    }
    qn__set_ahead(g, m->x, 0, 0);
    qn__set_ahead(g, m->y, 0, 0);
}

enum { STATE = MOST_SUMS + MOST_LOADS * ELEMENTS };

/** A chunk that has been fetched: `points` of it, at least one, to the accumulators. */
static void use_chunk(lower *g, const product *m, LLVMValueRef from, LLVMValueRef points, int step,
                      LLVMValueRef *state)
{
    loop l;
    qn__loop_open(g, &l, qn__up_to(g, points), step, 0);
    qn__loop_carry(g, &l, state, m->n_sums);
    for (int n = 0; n < step; n++)
        add_point(g, m, from, l.index, n, state);
    qn__loop_close(g, &l);
}

static void share_chunk(lower *g, const product *m, const LLVMValueRef *fetched)
{
    qn__nvptx_barrier(g); /* the one before has been read */
    put(g, m, fetched);
    qn__nvptx_barrier(g);
}

/** Whether v is not 0; NULL: v is a known number. */
static LLVMValueRef unless_known(lower *g, LLVMValueRef v)
{
    int64_t n;
    return qn__is_const(v, &n) ? NULL : LLVMBuildICmp(g->b, LLVMIntNE, v, qn__const_i64(g, 0), "");
}

static bool is_zero(LLVMValueRef v)
{
    int64_t n;
    return qn__is_const(v, &n) && n == 0;
}

/** Adds `points` points from index `begin` on, at least one of them. */
static void fold_range(lower *g, const product *m, LLVMValueRef begin, LLVMValueRef points,
                       LLVMValueRef *acc)
{
    LLVMValueRef whole = LLVMBuildAnd(g->b, points, qn__const_i64(g, -CHUNK), "");
    LLVMValueRef left = LLVMBuildSub(g->b, points, whole, ""), zero = qn__const_i64(g, 0);
    LLVMValueRef last = LLVMBuildSub(g->b, points, qn__const_i64(g, 1), "");
    last = LLVMBuildAnd(g->b, last, qn__const_i64(g, -CHUNK), ""); /* where the last chunk begins */
    int n_state = m->n_sums + m->n * ELEMENTS;
    LLVMValueRef state[STATE] = {NULL};
    memcpy(state, acc, (size_t)m->n_sums * sizeof *state);
    fetch(g, m, begin, state + m->n_sums);
    if (!is_zero(whole)) {
        loop l;
        qn__loop_open(g, &l, (span){zero, whole}, CHUNK, LOOP_MAY_BE_EMPTY);
        qn__loop_carry(g, &l, state, n_state);
        LLVMValueRef from = LLVMBuildAdd(g->b, begin, l.index, "");
        share_chunk(g, m, state + m->n_sums);
        LLVMValueRef next =
            qn__umin(g, LLVMBuildAdd(g->b, l.index, qn__const_i64(g, CHUNK), ""), last);
        fetch(g, m, LLVMBuildAdd(g->b, begin, next, ""),
              state + m->n_sums); /* after the last: that again */
        use_chunk(g, m, from, qn__const_i64(g, CHUNK), TOGETHER, state);
        qn__loop_close(g, &l);
    }
    if (!is_zero(left)) {
        branch then = qn__begin_branch(g, unless_known(g, left));
        qn__branch_keep(g, &then, state, m->n_sums);
        share_chunk(g, m, state + m->n_sums);
        use_chunk(g, m, LLVMBuildAdd(g->b, begin, whole, ""), left, 1, state);
        qn__end_branch(g, &then, NULL);
    }
    memcpy(acc, state, (size_t)m->n_sums * sizeof *acc);
}

/* ---------------------------------------------------------------- blocks of 4096 points */

/** Level v of accumulator e in local memory. */
static LLVMValueRef level_at(lower *g, const product *m, LLVMValueRef levels, int v, LLVMValueRef e)
{
    LLVMValueRef at = LLVMBuildAdd(g->b, e, qn__const_i64(g, (int64_t)v * m->n_sums), "");
    return qn__gep(g, qn__memory_type(g, m->r.type), levels, at);
}

static LLVMValueRef get_level(lower *g, const product *m, LLVMValueRef levels, int v,
                              LLVMValueRef e)
{
    return LLVMBuildLoad2(g->b, qn__memory_type(g, m->r.type), level_at(g, m, levels, v, e), "");
}

static void set_level(lower *g, const product *m, LLVMValueRef levels, int v, LLVMValueRef e,
                      LLVMValueRef value)
{
    LLVMBuildStore(g->b, value, level_at(g, m, levels, v, e));
}

/** For all accumulators: a block of points goes up, or (`count` NULL) all levels become the result.
 */
static void for_sums(lower *g, const product *m, LLVMValueRef levels, LLVMValueRef count)
{
    LLVMValueRef sums[MOST_DEPTH + 1];
    loop l;
    qn__loop_open(g, &l, qn__up_to(g, qn__const_i64(g, m->n_sums)), 1, LOOP_IS_SEQUENTIAL);
    for (int v = 0; v <= m->r.n_levels; v++)
        sums[v] = get_level(g, m, levels, v, l.index);
    if (count)
        qn__fold_up(g, &m->r, sums, count);
    else
        sums[0] = qn__fold_levels(g, &m->r, sums, 1);
    for (int v = 0; v <= (count ? m->r.n_levels : 0); v++)
        set_level(g, m, levels, v, l.index, sums[v]);
    qn__loop_close(g, &l);
}

static void store_sums(lower *g, const product *m, LLVMValueRef levels, int v,
                       const LLVMValueRef *acc)
{
    for (int e = 0; e < m->n_sums; e++)
        set_level(g, m, levels, v, qn__const_i64(g, e), acc ? acc[e] : m->r.identity);
}

static void load_sums(lower *g, const product *m, LLVMValueRef levels, LLVMValueRef *acc)
{
    for (int e = 0; e < m->n_sums; e++)
        acc[e] = get_level(g, m, levels, 0, qn__const_i64(g, e));
}

/** Blocks of 4096 points one after the other; their results are added in local memory. */
static void fold_blocks(lower *g, const product *m, LLVMValueRef points, LLVMValueRef *acc)
{
    LLVMValueRef size = qn__const_i64(g, BLOCK);
    unsigned bytes = (unsigned)qn_dtype_bytes(m->r.type);
    LLVMValueRef end =
        LLVMBuildAnd(g->b, LLVMBuildAdd(g->b, points, qn__const_i64(g, BLOCK - 1), ""),
                     qn__const_i64(g, -BLOCK), "");
    LLVMValueRef levels =
        qn__new_buffer(g, (uint64_t)m->n_sums * (uint64_t)(m->r.n_levels + 1) * bytes, bytes);
    loop l;
    /* Grids have one dimension. The assembler of PTX does not know that this is 0: it would keep
     * all levels in registers. */
    LLVMValueRef none = qn__nvptx_register(g, "ctaid.y", g->i64);
    levels = qn__gep(g, qn__memory_type(g, m->r.type), levels, none);
    for (int v = 0; v <= m->r.n_levels; v++)
        store_sums(g, m, levels, v, NULL);
    qn__loop_open(g, &l, qn__up_to(g, end), BLOCK, LOOP_IS_SEQUENTIAL);
    LLVMValueRef now = qn__umin(g, LLVMBuildSub(g->b, points, l.index, ""), size);
    load_sums(g, m, levels, acc);
    fold_range(g, m, LLVMBuildAdd(g->b, g->begin[m->k], l.index, ""), now, acc);
    store_sums(g, m, levels, 0, acc);
    for_sums(g, m, levels, LLVMBuildAdd(g->b, l.index, now, ""));
    qn__loop_close(g, &l);
    for_sums(g, m, levels, NULL);
    load_sums(g, m, levels, acc);
}

static void fold(lower *g, const product *m, LLVMValueRef *acc)
{
    LLVMValueRef points = LLVMBuildSub(g->b, g->end[m->k], g->begin[m->k], "");
    for (int e = 0; e < m->n_sums; e++)
        acc[e] = m->r.identity;
    branch then = qn__begin_branch(g, unless_known(g, points));
    qn__branch_keep(g, &then, acc, m->n_sums);
    if (m->r.n_levels > 0)
        fold_blocks(g, m, points, acc);
    else
        fold_range(g, m, g->begin[m->k], points, acc);
    qn__end_branch(g, &then, NULL);
    for (int e = 0; e < m->n_sums; e++)
        acc[e] = qn__or_empty(g, &m->r, acc[e]);
}

/** The body for iteration e of this thread, with the value of its reduce; nothing beyond the
 * domain. */
static void finish(lower *g, const product *m, int e, LLVMValueRef value, const span *spans)
{
    loop once;
    qn__once_open(g, &once, NULL);
    set_iteration(g, m, m->x, e % m->each[0]);
    set_iteration(g, m, m->y, e / m->each[0]);
    branch then = qn__begin_branch(
        g, qn__mask_and(g, qn__is_inside(g, m->x, m->side), qn__is_inside(g, m->y, m->side)));
    qn__set(g, m->r.inst, 0, value, g->depth);
    qn__thread_body(g, spans);
    qn__end_branch(g, &then, NULL);
    qn__set_ahead(g, m->x, 0, 0);
    qn__set_ahead(g, m->y, 0, 0);
    qn__loop_close(g, &once);
}

void qn__product_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y, const span *spans)
{
    product m = {.x = g->grid->axis[0], .y = g->grid->tile_dim, .low = {low_x, low_y}};
    LLVMValueRef acc[MOST_SUMS];
    set_shape(&m, g->grid);
    m.r = qn__describe_reduction(g, qn__next_reduce(g->k, g->k->body));
    m.k = m.r.dim[0];
    if (qn__order_rule(g->k, m.r.inst) != QN_INDEXED)
        m.r.n_levels = 0;
    find_operands(g, &m);
    m.thread = qn__nvptx_register(g, "tid.x", g->i64);
    LLVMValueRef piece = qn__const_i64(g, m.piece), across = qn__const_i64(g, m.across[0]);
    m.of_thread[0] = LLVMBuildMul(g->b, LLVMBuildURem(g->b, m.thread, across, ""), piece, "");
    m.of_thread[1] = LLVMBuildMul(g->b, LLVMBuildUDiv(g->b, m.thread, across, ""), piece, "");
    fold(g, &m, acc);
    for (int e = 0; e < m.n_sums; e++)
        finish(g, &m, e, acc[e], spans);
}
