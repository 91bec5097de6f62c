/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_product.c: a reduce over one dimension for a tile of two parallel ones, as in a matrix product. A block of 256 threads
 * takes 128 x 128 iterations, each thread 8 x 8 of them, in registers. The loads of the reduce depend on the reduced
 * dimension and on one of the two others: a chunk of 16 points of each is brought into shared memory by all threads, and
 * read from there in pieces of 16 bytes. The chunk after it is on its way from memory while one is worked on.
 *
 * Each accumulator takes its points in index order, so the bits are those of the rule for up to 4096 points. Beyond the end
 * of a dimension the last element is loaded again: what comes of it is not stored.
 */
#include "jit/llvm_stage.h"

#include <string.h>

enum {
    SIDE = QN_PRODUCT_SIDE,
    CHUNK = QN_PRODUCT_CHUNK,
    THREADS = QN_STAGE_THREADS,
    EACH = 8,                /* iterations of a thread along each dimension */
    ACROSS = SIDE / EACH,    /* threads along each */
    TOGETHER = 4,            /* points emitted at once */
    MOST_LOADS = 4,
    ELEMENTS = SIDE * CHUNK / THREADS /* of each load that a thread brings */
};

/** A staged load: along one of the tile's dimensions. */
typedef struct operand {
    uint32_t inst;
    int d;              /* x or y */
    bool is_along_k;    /* neighbouring elements lie along the reduced dimension */
    int64_t bytes, first; /* of an element; of the array in shared memory */
} operand;

typedef struct product {
    reduction r;
    int x, y, k, n;
    int piece; /* elements of a piece of 16 bytes of the widest */
    operand op[MOST_LOADS];
    LLVMValueRef low[2], of_thread[2]; /* of the tile; of this thread's first piece: along x and y */
    LLVMValueRef thread;
} product;

static int64_t pitch(const operand *o)
{
    return SIDE + 16 / o->bytes;
}

static int64_t array_bytes(const operand *o)
{
    return CHUNK * pitch(o) * o->bytes;
}

static uint32_t find_reduce(const qn_kernel *k)
{
    for (uint32_t i = k->body; i < k->n_insts; i = k->inst[i].region[2])
        if (k->inst[i].op == QN_I_REDUCE)
            return i;
    return 0;
}

int32_t qn__product_bytes(const qn_kernel *k, const qn_plan *p)
{
    int64_t sum = 0;
    for (uint32_t s = 0; s < k->n_accesses && s < 64; s++) {
        operand o = {.bytes = qn_dtype_bytes(qn__access_dtype(k, k->access[s].inst))};
        if (p->staged >> s & 1)
            sum += array_bytes(&o);
    }
    return (int32_t)sum;
}

static void find_operands(lower *g, product *m)
{
    int64_t first = 0, stride, widest = 4;
    for (uint32_t s = 0; s < g->k->n_accesses && s < 64 && m->n < MOST_LOADS; s++) {
        if (!(g->p->staged >> s & 1))
            continue;
        operand *o = &m->op[m->n++];
        o->inst = g->k->access[s].inst;
        o->d = g->a.value[o->inst].deps >> m->x & 1 ? m->x : m->y;
        o->is_along_k = qn__access_stride(g->k, g->f, &g->a, o->inst, m->k, &stride) && stride == 1;
        o->bytes = qn_dtype_bytes(qn__access_dtype(g->k, o->inst));
        o->first = first;
        first += array_bytes(o);
        widest = o->bytes > widest ? o->bytes : widest;
    }
    m->piece = (int)(16 / widest);
}

/* ---------------------------------------------------------------- into shared memory */

static int64_t extent(const lower *g, int d)
{
    return LLVMConstIntGetSExtValue(g->end[d]) - LLVMConstIntGetSExtValue(g->begin[d]);
}

/** Sets the index of d to low + offset + n; no more than the last one, unless the whole is known to be inside. */
static void set_clamped(lower *g, int d, LLVMValueRef low, LLVMValueRef offset, int64_t n, bool is_inside)
{
    LLVMValueRef v = LLVMBuildAdd(g->b, low, offset, "");
    if (!is_inside) {
        LLVMValueRef last = LLVMBuildSub(g->b, g->end[d], qn__const_i64(g, 1), "");
        v = LLVMBuildAdd(g->b, v, qn__const_i64(g, n), "");
        LLVMValueRef less = LLVMBuildICmp(g->b, LLVMIntSLT, v, last, "");
        v = LLVMBuildSelect(g->b, less, v, last, "");
        n = 0;
    }
    g->iv[d] = v;
    g->iv_level[d] = g->depth;
    qn__set_ahead(g, d, n, g->depth);
}

/** This thread's place in the chunk of an operand: its first element, and what the next are further. */
typedef struct share {
    LLVMValueRef k, d;
    int64_t step_k, step_d;
} share;

static share share_of(lower *g, const product *m, const operand *o)
{
    int64_t across = o->is_along_k ? CHUNK : SIDE;
    LLVMValueRef near = LLVMBuildAnd(g->b, m->thread, qn__const_i64(g, across - 1), "");
    LLVMValueRef far = LLVMBuildUDiv(g->b, m->thread, qn__const_i64(g, across), "");
    int64_t step = THREADS / across;
    return o->is_along_k ? (share){near, far, 0, step} : (share){far, near, step, 0};
}

/** Loads this thread's elements of the chunk that begins at point `from`. */
static void fetch(lower *g, const product *m, LLVMValueRef from, LLVMValueRef *value)
{
    loop once;
    for (int n = 0; n < m->n; n++) {
        const operand *o = &m->op[n];
        share s = share_of(g, m, o);
        bool d_inside = extent(g, o->d) % SIDE == 0, k_inside = extent(g, m->k) % CHUNK == 0;
        for (int e = 0; e < ELEMENTS; e++) {
            qn__loop_open(g, &once, qn__const_i64(g, 0), qn__const_i64(g, 1), 1, false, false, 0, NULL, NULL);
            set_clamped(g, o->d, m->low[o->d == m->y], s.d, e * s.step_d, d_inside);
            set_clamped(g, m->k, from, s.k, e * s.step_k, k_inside);
            qn__lower_load(g, o->inst);
            *value++ = qn__scalar(g, o->inst, 0);
            qn__set_ahead(g, o->d, 0, 0);
            qn__set_ahead(g, m->k, 0, 0);
            qn__loop_close(g, &once, NULL, NULL);
        }
    }
}

/** Address of element (point, position) + constants in the array of an operand. */
static LLVMValueRef address_of(lower *g, const operand *o, LLVMValueRef point, LLVMValueRef position, int64_t points,
                               int64_t positions)
{
    LLVMValueRef at = LLVMBuildMul(g->b, point, qn__const_i64(g, pitch(o) * o->bytes), "");
    at = LLVMBuildAdd(g->b, at, LLVMBuildMul(g->b, position, qn__const_i64(g, o->bytes), ""), "");
    LLVMValueRef ahead = qn__const_i64(g, o->first + (points * pitch(o) + positions) * o->bytes);
    at = LLVMBuildGEP2(g->b, g->i8, qn__nvptx_shared(g), &at, 1, "");
    return LLVMBuildGEP2(g->b, g->i8, at, &ahead, 1, "");
}

static void put(lower *g, const product *m, const LLVMValueRef *value)
{
    for (int n = 0; n < m->n; n++) {
        const operand *o = &m->op[n];
        share s = share_of(g, m, o);
        for (int e = 0; e < ELEMENTS; e++) {
            LLVMValueRef at = address_of(g, o, s.k, s.d, e * s.step_k, e * s.step_d);
            LLVMSetAlignment(LLVMBuildStore(g->b, *value++, at), (unsigned)o->bytes);
        }
    }
}

/* ---------------------------------------------------------------- in registers */

/** Iteration e of a thread along a dimension, from its first. */
static int64_t iteration(const product *m, int e)
{
    return (int64_t)(e / m->piece) * ACROSS * m->piece + e % m->piece;
}

/** The EACH elements of an operand for a point, in pieces. */
static void get(lower *g, const product *m, const operand *o, LLVMValueRef point, int64_t ahead, LLVMValueRef *value)
{
    LLVMTypeRef t = qn__memory_type(g, g->k->inst[o->inst].type);
    for (int e = 0; e < EACH; e += m->piece) {
        LLVMValueRef at = address_of(g, o, point, m->of_thread[o->d == m->y], ahead, iteration(m, e));
        LLVMValueRef v = LLVMBuildLoad2(g->b, LLVMVectorType(t, (unsigned)m->piece), at, "");
        LLVMSetAlignment(v, (unsigned)(m->piece * o->bytes));
        for (int n = 0; n < m->piece; n++)
            value[e + n] = LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, (unsigned)n, false), "");
    }
}

static void set_iteration(lower *g, const product *m, int d, int e)
{
    int n = d == m->y;
    g->iv[d] = LLVMBuildAdd(g->b, m->low[n], m->of_thread[n], "");
    g->iv_level[d] = g->depth;
    qn__set_ahead(g, d, iteration(m, e), g->depth);
}

/** Adds one point of the chunk to all accumulators. */
static void add_point(lower *g, const product *m, LLVMValueRef from, LLVMValueRef point, int64_t ahead, LLVMValueRef *acc)
{
    LLVMValueRef value[MOST_LOADS][EACH], held[64] = {NULL};
    for (int n = 0; n < m->n; n++)
        get(g, m, &m->op[n], point, ahead, value[n]);
    for (int e = 0; e < EACH * EACH; e++) {
        loop once;
        qn__loop_open(g, &once, qn__const_i64(g, 0), qn__const_i64(g, 1), 1, false, false, 0, NULL, NULL);
        set_iteration(g, m, m->x, e % EACH);
        set_iteration(g, m, m->y, e / EACH);
        g->iv[m->k] = LLVMBuildAdd(g->b, from, point, "");
        g->iv_level[m->k] = g->depth;
        qn__set_ahead(g, m->k, ahead, g->depth);
        for (int n = 0; n < m->n; n++)
            held[g->site[m->op[n].inst]] = value[n][m->op[n].d == m->x ? e % EACH : e / EACH];
        g->held = held;
        qn__fold_point(g, &m->r, &acc[e]);
        g->held = NULL;
        qn__set_ahead(g, m->k, 0, 0);
        qn__loop_close(g, &once, NULL, NULL);
    }
    qn__set_ahead(g, m->x, 0, 0);
    qn__set_ahead(g, m->y, 0, 0);
}

static void barrier(lower *g)
{
    qn__call(g, "llvm.nvvm.barrier0", NULL, 0, NULL, 0);
}

enum { STATE = EACH * EACH + MOST_LOADS * ELEMENTS };

/** A chunk that has been fetched: into shared memory, then `points` of it to the accumulators. */
static void use_chunk(lower *g, const product *m, LLVMValueRef from, int64_t points, int step, LLVMValueRef *state)
{
    LLVMValueRef init[EACH * EACH], phi[EACH * EACH], next[EACH * EACH];
    loop l;
    memcpy(init, state, sizeof init);
    qn__loop_open(g, &l, qn__const_i64(g, 0), qn__const_i64(g, points), step, false, false, EACH * EACH, init, phi);
    memcpy(next, phi, sizeof next);
    for (int n = 0; n < step; n++)
        add_point(g, m, from, l.index, n, next);
    qn__loop_close(g, &l, next, state);
}

static void share_chunk(lower *g, const product *m, const LLVMValueRef *fetched)
{
    barrier(g); /* the one before has been read */
    put(g, m, fetched);
    barrier(g);
}

static void fold(lower *g, const product *m, LLVMValueRef *acc)
{
    int64_t points = extent(g, m->k), whole = points / CHUNK * CHUNK;
    int n_state = EACH * EACH + m->n * ELEMENTS;
    LLVMValueRef state[STATE], phi[STATE], init[STATE], after[STATE], begin = g->begin[m->k];
    for (int n = 0; n < EACH * EACH; n++)
        state[n] = m->r.identity;
    fetch(g, m, begin, state + EACH * EACH);
    if (whole) {
        loop l;
        memcpy(init, state, sizeof init);
        qn__loop_open(g, &l, qn__const_i64(g, 0), qn__const_i64(g, whole), CHUNK, false, false, n_state, init, phi);
        LLVMValueRef from = LLVMBuildAdd(g->b, begin, l.index, "");
        memcpy(after, phi, sizeof after);
        share_chunk(g, m, after + EACH * EACH);
        LLVMValueRef next = LLVMBuildAdd(g->b, l.index, qn__const_i64(g, CHUNK), "");
        next = qn__umin(g, next, qn__const_i64(g, (points - 1) / CHUNK * CHUNK)); /* after the last: that again */
        fetch(g, m, LLVMBuildAdd(g->b, begin, next, ""), after + EACH * EACH);
        use_chunk(g, m, from, CHUNK, TOGETHER, after);
        qn__loop_close(g, &l, after, state);
    }
    if (points > whole) {
        share_chunk(g, m, state + EACH * EACH);
        use_chunk(g, m, LLVMBuildAdd(g->b, begin, qn__const_i64(g, whole), ""), points - whole, 1, state);
    }
    memcpy(acc, state, EACH * EACH * sizeof *acc);
}

/** The body for iteration e of this thread, with the value of its reduce; nothing beyond the domain. */
static void finish(lower *g, const product *m, int e, LLVMValueRef value, void (*body)(lower *g, void *arg), void *arg)
{
    bool x_inside = extent(g, m->x) % SIDE == 0, y_inside = extent(g, m->y) % SIDE == 0;
    loop once;
    qn__loop_open(g, &once, qn__const_i64(g, 0), qn__const_i64(g, 1), 1, false, false, 0, NULL, NULL);
    set_iteration(g, m, m->x, e % EACH);
    set_iteration(g, m, m->y, e / EACH);
    LLVMValueRef ok = NULL;
    for (int n = 0; n < 2; n++) {
        int d = n ? m->y : m->x;
        LLVMValueRef at = LLVMBuildAdd(g->b, g->iv[d], qn__const_i64(g, g->ahead[d]), "");
        if (!(n ? y_inside : x_inside))
            ok = qn__mask_and(g, ok, LLVMBuildICmp(g->b, LLVMIntSLT, at, g->end[d], ""));
    }
    branch then = {0};
    if (ok)
        then = qn__begin_branch(g, ok);
    qn__set(g, m->r.inst, 0, value, g->depth);
    body(g, arg);
    if (ok)
        qn__end_branch(g, &then, NULL);
    qn__set_ahead(g, m->x, 0, 0);
    qn__set_ahead(g, m->y, 0, 0);
    qn__loop_close(g, &once, NULL, NULL);
}

void qn__product_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y, void (*body)(lower *g, void *arg), void *arg)
{
    product m = {.x = g->p->axis[0], .y = g->p->stage_dim, .low = {low_x, low_y}};
    LLVMValueRef acc[EACH * EACH];
    m.r = qn__describe_reduction(g, find_reduce(g->k));
    m.k = m.r.dim[0];
    find_operands(g, &m);
    m.thread = qn__nvptx_register(g, "tid.x", g->i64);
    LLVMValueRef piece = qn__const_i64(g, m.piece), across = qn__const_i64(g, ACROSS);
    m.of_thread[0] = LLVMBuildMul(g->b, LLVMBuildURem(g->b, m.thread, across, ""), piece, "");
    m.of_thread[1] = LLVMBuildMul(g->b, LLVMBuildUDiv(g->b, m.thread, across, ""), piece, "");
    fold(g, &m, acc);
    for (int e = 0; e < EACH * EACH; e++)
        finish(g, &m, e, acc[e], body, arg);
}
