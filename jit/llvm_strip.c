/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_strip.c: reduces whose points lie far apart in memory and whose lanes lie together, with the points outside. For a
 * strip of the lanes (plan->strip iterations) what has been added so far is in memory that stays in the nearest cache; a few
 * points at a time (plan->jam of the reduction dimension plan->jam_dim) are added to all of the strip, whose rows are then
 * read as streams. When all reduces at the top are done, in program order, the body runs for the strip and finds their
 * values there.
 *
 * The memory is that of the launch (range, behind the sequential dimensions): arrays of plan->strip accumulators, so many for
 * each reduce as qn__strip_arrays says. The order rule is kept for every iteration:
 *
 *   folds    array v holds blocks of level v: points, results of blocks of 4096, ...
 *   stripes  in a block the 64 partials are made one after the other, number l = q with its six bits reversed for q = 0, 1,
 *            ...: what the rule combines first is then next to one another, and of each size of a combined part at most one
 *            waits, in array 1 + log2 of how many partials it holds. Array 0 is for work.
 *
 * Only whole steps of the lanes are done so; what is left runs as ever.
 */
#include "jit/llvm_lower.h"
#include "jit/plan.h"

#include <string.h>

enum { LOG_PARTIALS = 6 };

static void set_index(lower *g, int d, LLVMValueRef index)
{
    g->iv[d] = index;
    g->iv_level[d] = g->depth;
}

/* ---------------------------------------------------------------- arrays */

/** Array number `slot` of a reduce, as the address that the element of iteration 0 would have. */
static LLVMValueRef array_at(lower *g, const reduction *r, LLVMValueRef slot)
{
    int64_t bytes = qn_dtype_bytes(r->type);
    LLVMValueRef at = LLVMBuildMul(g->b, slot, qn__const_i64(g, g->p->strip * bytes), "");
    at = LLVMBuildAdd(g->b, at, qn__const_i64(g, qn__strip_offset(g->k, g->f, r->inst, g->p->strip)), "");
    at = LLVMBuildSub(g->b, at, LLVMBuildMul(g->b, g->strip.low, qn__const_i64(g, bytes), ""), "");
    return LLVMBuildGEP2(g->b, g->i8, g->strip.memory, &at, 1, "");
}

static LLVMValueRef array_number(lower *g, const reduction *r, int slot)
{
    return array_at(g, r, qn__const_i64(g, slot));
}

/** Vector u of the step of the lanes that stands in g->iv. */
static LLVMValueRef vector_at(lower *g, const reduction *r, LLVMValueRef array, int u)
{
    int d = g->p->lane_dim;
    int64_t bytes = qn_dtype_bytes(r->type);
    LLVMValueRef first = qn__element_pointer(g, array, g->iv[d], g->iv_level[d], bytes);
    LLVMValueRef ahead = qn__const_i64(g, u * g->width * bytes);
    return LLVMBuildGEP2(g->b, g->i8, first, &ahead, 1, "");
}

static void load_sums(lower *g, const reduction *r, LLVMValueRef array, LLVMValueRef *acc)
{
    for (int u = 0; u < g->unroll; u++) {
        LLVMTypeRef t = qn__vector_of(g, qn__memory_type(g, r->type));
        LLVMValueRef v = LLVMBuildLoad2(g->b, t, vector_at(g, r, array, u), "");
        LLVMSetAlignment(v, (unsigned)qn_dtype_bytes(r->type));
        acc[u] = qn__to_register(g, r->type, v);
    }
}

static void store_sums(lower *g, const reduction *r, LLVMValueRef array, LLVMValueRef *acc)
{
    for (int u = 0; u < g->unroll; u++) {
        LLVMValueRef store = LLVMBuildStore(g->b, qn__to_memory(g, r->type, acc[u]), vector_at(g, r, array, u));
        LLVMSetAlignment(store, (unsigned)qn_dtype_bytes(r->type));
    }
}

/* ---------------------------------------------------------------- loops over the strip */

static void lanes_open(lower *g, loop *l)
{
    qn__loop_open(g, l, g->strip.low, g->strip.high, (int64_t)g->width * g->unroll, false, false, 0, NULL, NULL);
    set_index(g, g->p->lane_dim, l->index);
}

static void fill_identity(lower *g, const reduction *r, LLVMValueRef array)
{
    LLVMValueRef acc[MOST_PARTS];
    loop l;
    for (int u = 0; u < g->unroll; u++)
        acc[u] = qn__constant_like(qn__lane_type(g, r->type), r->identity);
    lanes_open(g, &l);
    store_sums(g, r, array, acc);
    qn__loop_close(g, &l, NULL, NULL);
}

/** to = a combined with b, for all of the strip. */
static void combine(lower *g, const reduction *r, LLVMValueRef to, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef left[MOST_PARTS], right[MOST_PARTS];
    loop l;
    lanes_open(g, &l);
    load_sums(g, r, a, left);
    load_sums(g, r, b, right);
    for (int u = 0; u < g->unroll; u++)
        left[u] = qn__combine(g, r, left[u], right[u]);
    store_sums(g, r, to, left);
    qn__loop_close(g, &l, NULL, NULL);
}

/** Adds g->jam points, from the one in g->iv on, in order, to what is in the array or, if that is `fresh`, to the identity.
 *  What the top computes before the reduce may be used in it. */
static void add_points(lower *g, const reduction *r, LLVMValueRef array, bool fresh)
{
    const qn_inst *x = &g->k->inst[r->inst];
    LLVMValueRef acc[MOST_PARTS];
    addend a;
    loop l;
    memset(&a, 0, sizeof a);
    lanes_open(g, &l);
    qn__lower_region(g, g->k->body, r->inst);
    if (!fresh)
        load_sums(g, r, array, acc);
    for (int u = 0; u < g->unroll && fresh; u++)
        acc[u] = qn__constant_like(qn__lane_type(g, r->type), r->identity);
    g->loads_on_demand = qn__is_plain_reduce(g, x);
    if (!g->loads_on_demand)
        qn__lower_region(g, x->region[0], x->region[2]);
    for (int u = 0; u < g->unroll; u++)
        for (int j = 0; j < g->jam; j++) {
            qn__take_point(g, r, u * g->jam_max + j, true, &a, 0);
            acc[u] = qn__add_point(g, r, acc[u], &a, 0);
        }
    g->loads_on_demand = false;
    store_sums(g, r, array, acc);
    qn__loop_close(g, &l, NULL, NULL);
}

/* ---------------------------------------------------------------- points */

/** Points of one accumulator: first, first + apart, ...; n of them. */
typedef struct run {
    LLVMValueRef array, first, n;
    int64_t apart;
} run;

/** Adds points number m, m + 1, ..., so many as `together`. */
static void add_step(lower *g, const reduction *r, const run *x, LLVMValueRef m, int together, bool fresh)
{
    LLVMValueRef ahead = LLVMBuildMul(g->b, m, qn__const_i64(g, x->apart), "");
    set_index(g, r->dim[r->n_dims - 1], LLVMBuildAdd(g->b, x->first, ahead, ""));
    g->jam_step = x->apart;
    g->jam = together;
    add_points(g, r, x->array, fresh);
    g->jam_step = g->jam = 1;
}

/** Points [from, to), `together` at a time. */
static void add_steps(lower *g, const reduction *r, const run *x, LLVMValueRef from, LLVMValueRef to, int together)
{
    int64_t low, high;
    loop l;
    if (qn__is_const(from, &low) && qn__is_const(to, &high) && low == high)
        return;
    qn__loop_open(g, &l, from, to, together, true, false, 0, NULL, NULL);
    add_step(g, r, x, l.index, together, false);
    qn__loop_close(g, &l, NULL, NULL);
}

/** All points of a run, one by one what is left beyond whole steps. */
static void add_run(lower *g, const reduction *r, const run *x)
{
    LLVMValueRef zero = qn__const_i64(g, 0), rest = LLVMBuildURem(g->b, x->n, qn__const_i64(g, g->jam_max), "");
    LLVMValueRef whole = LLVMBuildSub(g->b, x->n, rest, "");
    add_steps(g, r, x, zero, whole, g->jam_max);
    if (g->jam_max > 1)
        add_steps(g, r, x, whole, x->n, 1);
}

/** A run of n points, or of n + 1 where `is_longer` holds (NULL: never): what is left beyond whole steps is one smaller one. */
static void add_known_run(lower *g, const reduction *r, const run *x, int64_t n, LLVMValueRef is_longer, bool fresh)
{
    int64_t whole = n / g->jam_max * g->jam_max;
    LLVMValueRef at = qn__const_i64(g, whole);
    loop l;
    fresh = fresh && whole == 0;
    if (whole)
        add_steps(g, r, x, qn__const_i64(g, 0), at, g->jam_max);
    for (int more = 0; more < (is_longer ? 2 : 1); more++) {
        int rest = (int)(n - whole) + more;
        if (!rest && !fresh)
            continue;
        if (is_longer)
            qn__once_open(g, &l, more ? is_longer : LLVMBuildNot(g->b, is_longer, ""));
        else
            qn__loop_open(g, &l, qn__const_i64(g, 0), qn__const_i64(g, 1), 1, false, false, 0, NULL, NULL);
        if (rest)
            add_step(g, r, x, at, rest, fresh);
        else
            fill_identity(g, r, x->array);
        qn__loop_close(g, &l, NULL, NULL);
    }
}

static LLVMValueRef length_of(lower *g, const reduction *r, int d)
{
    return LLVMBuildSub(g->b, qn__high_of(g, r, d), qn__low_of(g, r, d), "");
}

/** n points from `first` on, in order. */
static void fold_run(lower *g, const reduction *r, LLVMValueRef array, LLVMValueRef first, LLVMValueRef n, bool fresh)
{
    run x = {array, first, n, 1};
    int64_t known;
    bool is_known = qn__is_const(n, &known);
    if (fresh && !(is_known && known < g->jam_max))
        fill_identity(g, r, array);
    if (is_known)
        add_known_run(g, r, &x, known, NULL, fresh);
    else
        add_run(g, r, &x);
}

/** Strict order over dimensions from `at` on. */
static void fold(lower *g, const reduction *r, int at, LLVMValueRef array)
{
    int d = r->dim[at];
    if (at + 1 == r->n_dims) {
        fold_run(g, r, array, qn__low_of(g, r, d), length_of(g, r, d), false);
        return;
    }
    loop l;
    qn__loop_open(g, &l, qn__low_of(g, r, d), qn__high_of(g, r, d), 1, qn__reduce_may_be_empty(g, r, d), false, 0, NULL, NULL);
    set_index(g, d, l.index);
    fold(g, r, at + 1, array);
    qn__loop_close(g, &l, NULL, NULL);
}

static int64_t block_size(int depth)
{
    int64_t size = 1;
    for (int v = 0; v < depth; v++)
        size *= BLOCK;
    return size;
}

/** Blocks of `size` points that n have. */
static LLVMValueRef count_blocks(lower *g, LLVMValueRef n, int64_t size)
{
    LLVMValueRef up = LLVMBuildAdd(g->b, n, qn__const_i64(g, size - 1), "");
    return LLVMBuildUDiv(g->b, up, qn__const_i64(g, size), "");
}

/** Points of block number i of n points. */
static LLVMValueRef block_points(lower *g, LLVMValueRef n, LLVMValueRef i, int64_t size)
{
    LLVMValueRef by = qn__const_i64(g, size), before = LLVMBuildMul(g->b, i, by, "");
    return qn__umin(g, LLVMBuildSub(g->b, n, before, ""), by);
}

/** n points from `first` on in blocks of 4096^depth, in index order; the result is in array `depth`. */
static void fold_blocks(lower *g, const reduction *r, int depth, LLVMValueRef first, LLVMValueRef n)
{
    LLVMValueRef array = array_number(g, r, depth);
    int64_t size = block_size(depth);
    loop l;
    if (depth == 0) {
        fold_run(g, r, array, first, n, true);
        return;
    }
    fill_identity(g, r, array);
    qn__loop_open(g, &l, qn__const_i64(g, 0), count_blocks(g, n, size), 1, true, false, 0, NULL, NULL);
    LLVMValueRef from = LLVMBuildAdd(g->b, first, LLVMBuildMul(g->b, l.index, qn__const_i64(g, size), ""), "");
    fold_blocks(g, r, depth - 1, from, block_points(g, n, l.index, size));
    combine(g, r, array, array, array_number(g, r, depth - 1));
    qn__loop_close(g, &l, NULL, NULL);
}

/* ---------------------------------------------------------------- stripes */

static LLVMValueRef fold_stripes(lower *g, const reduction *r, int depth, LLVMValueRef first, LLVMValueRef n);

/** Arrays of level `depth` begin with this one. */
static LLVMValueRef level_array(lower *g, const reduction *r, int depth, LLVMValueRef slot)
{
    return array_at(g, r, LLVMBuildAdd(g->b, slot, qn__const_i64(g, (int64_t)depth * (LOG_PARTIALS + 1)), ""));
}

/** Partial l of `count` points into an array. */
static void stripe_of_points(lower *g, const reduction *r, LLVMValueRef first, LLVMValueRef count, LLVMValueRef partial,
                             LLVMValueRef entries, LLVMValueRef array)
{
    run x = {array, LLVMBuildAdd(g->b, first, partial, ""), entries, PARTIALS};
    int64_t known;
    bool is_known = qn__is_const(count, &known);
    if (!is_known || known / PARTIALS >= g->jam_max)
        fill_identity(g, r, array);
    if (!is_known) {
        add_run(g, r, &x);
        return;
    }
    LLVMValueRef rest = qn__const_i64(g, known % PARTIALS);
    LLVMValueRef is_longer = known % PARTIALS ? LLVMBuildICmp(g->b, LLVMIntULT, partial, rest, "") : NULL;
    add_known_run(g, r, &x, known / PARTIALS, is_longer, true);
}

/** Partial l of `count` entries (points, or results of blocks) into an array. */
static void one_stripe(lower *g, const reduction *r, int depth, LLVMValueRef first, LLVMValueRef n, LLVMValueRef count,
                       LLVMValueRef partial, LLVMValueRef array)
{
    LLVMValueRef up = LLVMBuildAdd(g->b, count, LLVMBuildSub(g->b, qn__const_i64(g, PARTIALS - 1), partial, ""), "");
    LLVMValueRef entries = LLVMBuildLShr(g->b, up, qn__const_i64(g, LOG_PARTIALS), "");
    int64_t size = block_size(depth);
    loop l;
    if (depth == 0) {
        stripe_of_points(g, r, first, count, partial, entries, array);
        return;
    }
    fill_identity(g, r, array);
    qn__loop_open(g, &l, qn__const_i64(g, 0), entries, 1, true, false, 0, NULL, NULL);
    LLVMValueRef block = LLVMBuildAdd(g->b, LLVMBuildMul(g->b, l.index, qn__const_i64(g, PARTIALS), ""), partial, "");
    LLVMValueRef from = LLVMBuildAdd(g->b, first, LLVMBuildMul(g->b, block, qn__const_i64(g, size), ""), "");
    LLVMValueRef result = fold_stripes(g, r, depth - 1, from, block_points(g, n, block, size));
    combine(g, r, array, array, level_array(g, r, depth - 1, result));
    qn__loop_close(g, &l, NULL, NULL);
}

/** Combines what waits in arrays 1 to `last` with array 0, which is later than all of them; the result is in array last + 1,
 *  or in array 0 when it is that of all partials. */
static void combine_waiting(lower *g, const reduction *r, int depth, LLVMValueRef last)
{
    LLVMValueRef one = qn__const_i64(g, 1), zero = qn__const_i64(g, 0), after = LLVMBuildAdd(g->b, last, one, "");
    LLVMValueRef is_all = LLVMBuildICmp(g->b, LLVMIntEQ, last, qn__const_i64(g, LOG_PARTIALS), "");
    LLVMValueRef end = LLVMBuildSelect(g->b, is_all, zero, after, "");
    loop l;
    qn__loop_open(g, &l, one, after, 1, true, false, 0, NULL, NULL);
    LLVMValueRef is_last = LLVMBuildICmp(g->b, LLVMIntEQ, l.index, last, "");
    LLVMValueRef to = level_array(g, r, depth, LLVMBuildSelect(g->b, is_last, end, zero, ""));
    combine(g, r, to, level_array(g, r, depth, l.index), level_array(g, r, depth, zero));
    qn__loop_close(g, &l, NULL, NULL);
}

/** n points from `first` on in the striped order; returns the number of the array of level `depth` that holds the result. One
 *  entry alone is the result. */
static LLVMValueRef fold_stripes(lower *g, const reduction *r, int depth, LLVMValueRef first, LLVMValueRef n)
{
    LLVMValueRef one = qn__const_i64(g, 1), zero = qn__const_i64(g, 0), q, partial, number[2], last[2];
    LLVMValueRef count = depth ? count_blocks(g, n, block_size(depth)) : n;
    LLVMValueRef is_single = LLVMBuildICmp(g->b, LLVMIntULE, count, one, "");
    LLVMValueRef rounds = LLVMBuildSelect(g->b, is_single, one, qn__const_i64(g, PARTIALS), "");
    loop l;
    qn__loop_open(g, &l, zero, rounds, 1, false, false, 0, NULL, NULL);
    q = number[0] = l.index;
    partial = qn__call(g, "llvm.bitreverse", &g->i64, 1, number, 1);
    partial = LLVMBuildLShr(g->b, partial, qn__const_i64(g, 64 - LOG_PARTIALS), "");
    LLVMValueRef work = LLVMBuildXor(g->b, LLVMBuildAnd(g->b, q, one, ""), one, ""); /* 1 if it has to wait */
    one_stripe(g, r, depth, first, n, count, partial, level_array(g, r, depth, work));
    last[0] = LLVMBuildNot(g->b, q, "");
    last[1] = LLVMConstInt(g->i1, 0, false);
    combine_waiting(g, r, depth, qn__call(g, "llvm.cttz", &g->i64, 1, last, 2));
    qn__loop_close(g, &l, NULL, NULL);
    return LLVMBuildSelect(g->b, is_single, one, zero, "");
}

/* ---------------------------------------------------------------- a strip */

/** One reduce for the strip; returns the array of results. */
static LLVMValueRef reduce_strip(lower *g, const reduction *r)
{
    int order = qn__order_rule(g->k, r->inst);
    int d = r->dim[0];
    if (order == QN_STRIPED)
        return level_array(g, r, r->n_levels, fold_stripes(g, r, r->n_levels, qn__low_of(g, r, d), length_of(g, r, d)));
    if (order == QN_INDEXED && r->n_levels > 0) {
        fold_blocks(g, r, r->n_levels, qn__low_of(g, r, d), length_of(g, r, d));
        return array_number(g, r, r->n_levels);
    }
    LLVMValueRef array = array_number(g, r, 0);
    fill_identity(g, r, array);
    fold(g, r, 0, array);
    return array;
}

static void lower_strip(lower *g)
{
    int n = 0;
    loop l;
    for (uint32_t i = g->k->body; i < g->k->n_insts; i = g->k->inst[i].region[2]) {
        if (g->k->inst[i].op != QN_I_REDUCE)
            continue;
        reduction r = qn__describe_reduction(g, i);
        g->strip.done = i;
        g->strip.result[n++] = reduce_strip(g, &r);
    }
    g->strip.done = g->k->n_insts;
    lanes_open(g, &l);
    qn__lower_region(g, g->k->body, g->k->n_insts);
    qn__loop_close(g, &l, NULL, NULL);
    g->strip.done = 0;
}

void qn__lower_strips(lower *g, LLVMValueRef low, LLVMValueRef high)
{
    LLVMValueRef by = qn__const_i64(g, g->p->strip), pair[2];
    int64_t first, last;
    loop l;
    if (qn__is_const(low, &first) && qn__is_const(high, &last) && first >= last)
        return;
    g->width = g->p->width;
    g->unroll = g->p->unroll;
    LLVMValueRef n = count_blocks(g, LLVMBuildSub(g->b, high, low, ""), g->p->strip);
    qn__loop_open(g, &l, low, LLVMBuildAdd(g->b, low, LLVMBuildMul(g->b, n, by, ""), ""), g->p->strip, true, false, 0, NULL, NULL);
    pair[0] = high;
    pair[1] = LLVMBuildAdd(g->b, l.index, by, "");
    g->strip.low = l.index;
    g->strip.high = qn__is_const(high, &last) && qn__is_const(pair[1], &first)
                        ? qn__const_i64(g, first < last ? first : last)
                        : qn__call(g, "llvm.smin", &g->i64, 1, pair, 2);
    lower_strip(g);
    qn__loop_close(g, &l, NULL, NULL);
}

bool qn__strip_value(lower *g, uint32_t i)
{
    LLVMValueRef v[MOST_PARTS];
    int n = 0;
    if (i >= g->strip.done || g->k->inst[i].parent)
        return false;
    for (uint32_t m = g->k->body; m < i; m = g->k->inst[m].region[2])
        n += g->k->inst[m].op == QN_I_REDUCE;
    reduction r = qn__describe_reduction(g, i);
    load_sums(g, &r, g->strip.result[n], v);
    for (int m = 0; m < r.n; m++)
        qn__set(g, i, r.part[m], qn__or_empty(g, &r, v[m]), g->depth);
    return true;
}
