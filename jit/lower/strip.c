/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip.c: reduces whose points lie far apart in memory and whose lanes lie together, with the
 * points outside (schedule/shape_strip.c has the loops). For a strip of the lanes what has been
 * added so far is in memory that stays in the nearest cache; a few points at a time are added to
 * all of the strip, whose rows are then read as streams. When all reduces at the top are done, in
 * program order, the body runs for the strip and finds their values there.
 *
 * The memory is that of the launch (range, behind the sequential dimensions): an array of
 * accumulators for the result of each reduce, one for each iteration of a strip, then arrays that
 * all reduces work in (qn__strip_offset and qn__strip_pitch). The order rule is kept for every
 * iteration:
 *
 *   folds    array v holds blocks of level v: points, results of blocks of 4096, ...; the last one
 *            is the result
 *   stripes  each level has 64 arrays of partials and one for what is added to them. Points are
 *            taken in pairs of partials, l and l + 32, which the rule combines first, for l = 0, 1,
 *            ...: where a row of the lanes is one strip, each of the rows that are read at once
 *            then goes on where the last one ended. A pair is one array when it is done, and at the
 *            end a loop over the strip combines all arrays.
 *
 * Only whole steps of the lanes are done so; what is left runs as ever.
 */
#include "jit/lower/lower.h"
#include "jit/lower/nest.h"
#include "jit/schedule/forms.h"

#include <string.h>

enum { PAIR = 2 };

/* ---------------------------------------------------------------- arrays */

/** The array at so many bytes, as the address that the element of iteration 0 would have. */
static LLVMValueRef array_at(lower *g, const reduction *r, LLVMValueRef offset)
{
    LLVMValueRef before =
        LLVMBuildMul(g->b, g->strip.low, qn__const_i64(g, qn_dtype_bytes(r->type)), "");
    return qn__gep(g, g->i8, g->scratch_memory, LLVMBuildSub(g->b, offset, before, ""));
}

static LLVMValueRef result_array(lower *g, const reduction *r)
{
    int64_t bytes = qn__strip_offset(g->k, r->inst, g->block->strip.length);
    return array_at(g, r, qn__const_i64(g, bytes));
}

/** Array number `slot` of those that all reduces work in. */
static LLVMValueRef work_array(lower *g, const reduction *r, LLVMValueRef slot)
{
    int64_t length = g->block->strip.length, first = qn__strip_offset(g->k, g->k->n_insts, length);
    LLVMValueRef pitch = qn__const_i64(g, qn__strip_pitch(r->type, length));
    LLVMValueRef at = LLVMBuildMul(g->b, slot, pitch, "");
    return array_at(g, r, LLVMBuildAdd(g->b, at, qn__const_i64(g, first), ""));
}

/** What lies `ahead` bytes behind the elements of the step of the lanes that stands in g->iv. */
static LLVMValueRef vector_at(lower *g, const reduction *r, LLVMValueRef array, int64_t ahead)
{
    int d = g->block->lane_dim;
    LLVMValueRef first =
        qn__element_pointer(g, array, g->iv[d], g->iv_level[d], qn_dtype_bytes(r->type));
    return qn__ahead(g, first, ahead);
}

static void load_sums(lower *g, const reduction *r, LLVMValueRef array, int64_t ahead,
                      LLVMValueRef *acc)
{
    int64_t bytes = qn_dtype_bytes(r->type);
    for (int u = 0; u < g->unroll; u++) {
        LLVMTypeRef t = qn__vector_of(g, qn__memory_type(g, r->type));
        LLVMValueRef at = vector_at(g, r, array, ahead + u * g->width * bytes),
                     v = qn__load_at(g, t, at, (unsigned)bytes);
        acc[u] = qn__to_register(g, r->type, v);
    }
}

static void store_sums(lower *g, const reduction *r, LLVMValueRef array, LLVMValueRef *acc)
{
    int64_t bytes = qn_dtype_bytes(r->type);
    for (int u = 0; u < g->unroll; u++) {
        LLVMValueRef at = vector_at(g, r, array, u * g->width * bytes);
        qn__store_at(g, qn__to_memory(g, r->type, acc[u]), at, (unsigned)bytes);
    }
}

static void set_identity(lower *g, const reduction *r, LLVMValueRef *acc)
{
    for (int u = 0; u < g->unroll; u++)
        acc[u] = qn__constant_like(qn__lane_type(g, r->type), r->identity);
}

/* ---------------------------------------------------------------- loops over the strip */

static void lanes_open(lower *g, loop *l)
{
    qn__loop_open(g, l, (span){g->strip.low, g->strip.high}, (int64_t)g->width * g->unroll, 0);
    qn__set_index(g, g->block->lane_dim, l->index);
}

static void fill_identity(lower *g, const reduction *r, LLVMValueRef array)
{
    LLVMValueRef acc[MOST_PARTS];
    loop l;
    set_identity(g, r, acc);
    lanes_open(g, &l);
    store_sums(g, r, array, acc);
    qn__loop_close(g, &l);
}

/** to = a combined with b, for all of the strip. */
static void combine(lower *g, const reduction *r, LLVMValueRef to, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef left[MOST_PARTS], right[MOST_PARTS];
    loop l;
    lanes_open(g, &l);
    load_sums(g, r, a, 0, left);
    load_sums(g, r, b, 0, right);
    for (int u = 0; u < g->unroll; u++)
        left[u] = qn__combine(g, r, left[u], right[u]);
    store_sums(g, r, to, left);
    qn__loop_close(g, &l);
}

/* ---------------------------------------------------------------- points */

/** Points first, first + apart, ..., n of them, that go into one array, or in turns into two. */
typedef struct run {
    const reduction *r;
    LLVMValueRef array[PAIR], first, n;
    int n_arrays;
    int64_t apart;
} run;

/** What has been added so far: the array where `keep` holds, which is the same for all lanes, else
 * the identity. */
static void begin_sums(lower *g, const reduction *r, LLVMValueRef array, LLVMValueRef keep,
                       LLVMValueRef *acc)
{
    LLVMValueRef old[MOST_PARTS];
    bool is_known = LLVMIsConstant(keep), is_kept = is_known && !LLVMIsNull(keep);
    set_identity(g, r, acc);
    if (is_known && !is_kept)
        return;
    load_sums(g, r, array, 0, old);
    for (int u = 0; u < g->unroll; u++)
        acc[u] = is_kept ? old[u] : LLVMBuildSelect(g->b, keep, old[u], acc[u], "");
}

/** Jammed iterations are points so many apart. */
static void set_points(lower *g, int64_t apart)
{
    int64_t ahead[MOST_PARTS];
    for (int j = 0; j < g->jam_max; j++)
        ahead[j] = j * apart;
    if (g->jam_max > 1)
        qn__set_jam_ahead(g, g->block->strip.dim, ahead);
}

/** Adds g->jam points, from the one in g->iv on, in order. The last step of a pair leaves both
 * combined in the first array. What the top computes before the reduce may be used in it. */
static void add_points(lower *g, const run *x, LLVMValueRef keep, bool is_last)
{
    const qn_inst *reduce = &g->k->inst[x->r->inst];
    LLVMValueRef acc[PAIR][MOST_PARTS];
    addend a;
    loop l;
    memset(&a, 0, sizeof a);
    lanes_open(g, &l);
    qn__lower_region(g, g->k->body, x->r->inst);
    for (int m = 0; m < x->n_arrays; m++)
        begin_sums(g, x->r, x->array[m], keep, acc[m]);
    g->loads_on_demand = qn__is_plain_reduce(g, reduce);
    if (!g->loads_on_demand)
        qn__lower_region(g, reduce->region[0], reduce->region[2]);
    for (int u = 0; u < g->unroll; u++)
        for (int j = 0; j < g->jam; j++) {
            LLVMValueRef *to = &acc[j % x->n_arrays][u];
            qn__take_point(g, x->r, u * g->jam_max + j, true, &a, 0);
            *to = qn__add_point(g, x->r, *to, &a, 0);
        }
    g->loads_on_demand = false;
    bool joins = is_last && x->n_arrays == PAIR;
    for (int u = 0; u < g->unroll && joins; u++)
        acc[0][u] = qn__combine(g, x->r, acc[0][u], acc[1][u]);
    for (int m = 0; m < (joins ? 1 : x->n_arrays); m++)
        store_sums(g, x->r, x->array[m], acc[m]);
    qn__loop_close(g, &l);
}

/** Adds points number m, m + 1, ..., so many as `together`. */
static void add_step(lower *g, const run *x, LLVMValueRef m, int together, LLVMValueRef keep,
                     bool is_last)
{
    LLVMValueRef ahead = LLVMBuildMul(g->b, m, qn__const_i64(g, x->apart), "");
    qn__set_index(g, x->r->dim[x->r->n_dims - 1], LLVMBuildAdd(g->b, x->first, ahead, ""));
    set_points(g, x->apart);
    qn__set_jam(g, together);
    add_points(g, x, keep, is_last);
    set_points(g, 1);
    qn__set_jam(g, 1);
}

/** Points, so many at a time as are jammed; fresh: the first step begins with the identity. */
static void add_steps(lower *g, const run *x, span s, bool fresh)
{
    LLVMValueRef keep = LLVMConstInt(g->i1, 1, false);
    loop l;
    if (qn__is_known_empty(s))
        return;
    qn__loop_open(g, &l, s, g->jam_max, LOOP_MAY_BE_EMPTY);
    if (fresh)
        keep = LLVMBuildICmp(g->b, LLVMIntNE, l.index, s.low, "");
    if (!LLVMIsConstant(keep))
        keep = qn__splat(g, keep, g->depth);
    add_step(g, x, l.index, g->jam_max, keep, false);
    qn__loop_close(g, &l);
}

/** Points one by one. */
static void add_singles(lower *g, const run *x, span s)
{
    run one = *x;
    loop l;
    one.n_arrays = 1;
    qn__loop_open(g, &l, s, 1, LOOP_MAY_BE_EMPTY);
    if (x->n_arrays == PAIR) { /* steps are of whole pairs */
        LLVMValueRef is_second = LLVMBuildTrunc(g->b, l.index, g->i1, "");
        one.array[0] = LLVMBuildSelect(g->b, is_second, x->array[1], x->array[0], "");
    }
    add_step(g, &one, l.index, 1, LLVMConstInt(g->i1, 1, false), false);
    qn__loop_close(g, &l);
}

/** All points of a run of unknown length, one by one what is left beyond whole steps. */
static void add_unknown_run(lower *g, const run *x, bool fresh)
{
    LLVMValueRef rest = LLVMBuildURem(g->b, x->n, qn__const_i64(g, g->jam_max), "");
    LLVMValueRef whole = LLVMBuildSub(g->b, x->n, rest, "");
    for (int m = 0; m < x->n_arrays && fresh; m++)
        fill_identity(g, x->r, x->array[m]);
    add_steps(g, x, qn__up_to(g, whole), false);
    if (g->jam_max > 1)
        add_singles(g, x, (span){whole, x->n});
    if (x->n_arrays == PAIR)
        combine(g, x->r, x->array[0], x->array[0], x->array[1]);
}

/** What is left of a known run beyond the first `whole` points, `rest` points: one smaller step. */
static void add_rest(lower *g, const run *x, int64_t whole, int rest, bool fresh)
{
    bool keep = whole || !fresh;
    if (rest)
        add_step(g, x, qn__const_i64(g, whole), rest, LLVMConstInt(g->i1, keep, false), true);
    else if (!keep)
        fill_identity(g, x->r, x->array[0]);
    else if (x->n_arrays == PAIR)
        combine(g, x->r, x->array[0], x->array[0], x->array[1]);
}

static void add_known_run(lower *g, const run *x, int64_t n, bool fresh)
{
    int64_t whole = n / g->jam_max * g->jam_max;
    loop l;
    if (x->n_arrays == PAIR && n) /* the last step combines, so there is one */
        whole = (n - 1) / g->jam_max * g->jam_max;
    if (whole)
        add_steps(g, x, qn__up_to(g, qn__const_i64(g, whole)), fresh);
    if (whole == n && x->n_arrays == 1 && !(fresh && !whole))
        return;
    qn__once_open(g, &l, NULL);
    add_rest(g, x, whole, (int)(n - whole), fresh);
    qn__loop_close(g, &l);
}

static void add_run(lower *g, const run *x, bool fresh)
{
    int64_t known;
    if (qn__is_const(x->n, &known))
        add_known_run(g, x, known, fresh);
    else
        add_unknown_run(g, x, fresh);
}

/** Points in order. */
static void fold_run(lower *g, const reduction *r, LLVMValueRef array, span s, bool fresh)
{
    run x = {.r = r, .array = {array}, .n_arrays = 1, .first = s.low, .apart = 1};
    x.n = LLVMBuildSub(g->b, s.high, s.low, "");
    add_run(g, &x, fresh);
}

/** Strict order over dimensions from `at` on. */
static void fold(lower *g, const reduction *r, int at, LLVMValueRef array)
{
    int d = r->dim[at];
    if (at + 1 == r->n_dims) {
        fold_run(g, r, array, qn__points_of(g, r, d), false);
        return;
    }
    loop l;
    qn__loop_points(g, &l, r, d);
    fold(g, r, at + 1, array);
    qn__loop_close(g, &l);
}

/** Points in blocks of 4096^depth, in index order; the result is in array `depth`, which is that of
 * the reduce at the top. */
static void fold_blocks(lower *g, const reduction *r, int depth, span s)
{
    LLVMValueRef array =
        depth == r->n_levels ? result_array(g, r) : work_array(g, r, qn__const_i64(g, depth));
    int64_t size = qn__block_size(depth);
    loop l;
    if (depth == 0) {
        fold_run(g, r, array, s, true);
        return;
    }
    fill_identity(g, r, array);
    LLVMValueRef blocks = qn__count_blocks(g, LLVMBuildSub(g->b, s.high, s.low, ""), size);
    qn__loop_open(g, &l, qn__up_to(g, blocks), 1, LOOP_MAY_BE_EMPTY);
    fold_blocks(g, r, depth - 1, qn__block_at(g, s, l.index, size));
    combine(g, r, array, array, work_array(g, r, qn__const_i64(g, depth - 1)));
    qn__loop_close(g, &l);
}

/* ---------------------------------------------------------------- stripes */

/** Arrays of level `depth`; those of points, which may be fewer, come last. */
static LLVMValueRef level_array(lower *g, const reduction *r, int depth, LLVMValueRef slot)
{
    int before = depth ? depth - 1 : r->n_levels;
    return work_array(
        g, r, LLVMBuildAdd(g->b, slot, qn__const_i64(g, (int64_t)before * (PARTIALS + 1)), ""));
}

/** Partial l of n, as it is when those further than `apart` from one another have been combined. */
static void join(lower *g, const reduction *r, LLVMValueRef first, int l, int apart, int n,
                 LLVMValueRef *out)
{
    LLVMValueRef right[MOST_PARTS];
    if (apart == n) {
        load_sums(g, r, first, l * qn__strip_pitch(r->type, g->block->strip.length), out);
        return;
    }
    join(g, r, first, l, 2 * apart, n, out);
    join(g, r, first, l + apart, 2 * apart, n, right);
    for (int u = 0; u < g->unroll; u++)
        out[u] = qn__combine(g, r, out[u], right[u]);
}

/** Combines the first n arrays of a level, a power of two: l with l + n / 2, ..., l with l + 1. */
static void join_all(lower *g, const reduction *r, int depth, int n, LLVMValueRef to)
{
    LLVMValueRef first = level_array(g, r, depth, qn__const_i64(g, 0)), acc[MOST_PARTS];
    loop l;
    lanes_open(g, &l);
    join(g, r, first, 0, 1, n, acc);
    store_sums(g, r, to, acc);
    qn__loop_close(g, &l);
}

/** The partials of some slots, each of n points; NULL: as many as there are of `all`. */
static void stripe_slots(lower *g, const reduction *r, span all, span some, int slots,
                         LLVMValueRef n)
{
    run x = {.r = r, .n_arrays = PARTIALS / slots, .n = n, .apart = slots};
    LLVMValueRef count = qn__const_i64(g, slots);
    loop l;
    if (qn__is_known_empty(some))
        return;
    qn__loop_open(g, &l, some, 1, 0);
    x.first = LLVMBuildAdd(g->b, all.low, l.index, "");
    x.array[0] = level_array(g, r, 0, l.index);
    x.array[1] = level_array(g, r, 0, count);
    if (!n) {
        LLVMValueRef up = LLVMBuildSub(g->b, all.high, x.first, "");
        up = LLVMBuildAdd(g->b, up, qn__const_i64(g, slots - 1), "");
        x.n = LLVMBuildUDiv(g->b, up, count, "");
    }
    add_run(g, &x, true);
    qn__loop_close(g, &l);
}

/** Up to 4096 points. */
static void stripe_points(lower *g, const reduction *r, span s, LLVMValueRef to)
{
    int slots = g->jam_max % PAIR ? PARTIALS : PARTIALS / PAIR;
    LLVMValueRef zero = qn__const_i64(g, 0), count = qn__const_i64(g, slots);
    int64_t n;
    if (qn__is_const(LLVMBuildSub(g->b, s.high, s.low, ""), &n)) { /* the first have one more */
        LLVMValueRef more = qn__const_i64(g, n % slots);
        stripe_slots(g, r, s, (span){zero, more}, slots, qn__const_i64(g, n / slots + 1));
        stripe_slots(g, r, s, (span){more, count}, slots, qn__const_i64(g, n / slots));
    } else {
        stripe_slots(g, r, s, (span){zero, count}, slots, NULL);
    }
    join_all(g, r, 0, slots, to);
}

/** Points in the striped order. One entry of a level alone is its result. */
static void fold_stripes(lower *g, const reduction *r, int depth, span s, LLVMValueRef to)
{
    LLVMValueRef zero = qn__const_i64(g, 0), one = qn__const_i64(g, 1);
    int64_t size = qn__block_size(depth);
    loop l, once;
    if (depth == 0) {
        stripe_points(g, r, s, to);
        return;
    }
    LLVMValueRef count = qn__count_blocks(g, LLVMBuildSub(g->b, s.high, s.low, ""), size),
                 entry = level_array(g, r, depth, qn__const_i64(g, PARTIALS));
    LLVMValueRef is_single = LLVMBuildICmp(g->b, LLVMIntULE, count, one, "");
    LLVMValueRef is_many = LLVMBuildNot(g->b, is_single, "");
    count = LLVMBuildSelect(g->b, is_single, one, count, "");
    LLVMValueRef partials =
        LLVMBuildSelect(g->b, is_single, zero, qn__const_i64(g, PARTIALS), "");
    qn__loop_open(g, &l, (span){zero, partials}, 1, LOOP_MAY_BE_EMPTY);
    fill_identity(g, r, level_array(g, r, depth, l.index));
    qn__loop_close(g, &l);
    qn__loop_open(g, &l, (span){zero, count}, 1, 0);
    fold_stripes(g, r, depth - 1, qn__block_at(g, s, l.index, size),
                 LLVMBuildSelect(g->b, is_single, to, entry, ""));
    qn__once_open(g, &once, is_many);
    LLVMValueRef partial =
        level_array(g, r, depth, LLVMBuildAnd(g->b, l.index, qn__const_i64(g, PARTIALS - 1), ""));
    combine(g, r, partial, partial, entry);
    qn__loop_close(g, &once);
    qn__loop_close(g, &l);
    qn__once_open(g, &once, is_many);
    join_all(g, r, depth, PARTIALS, to);
    qn__loop_close(g, &once);
}

/* ---------------------------------------------------------------- a strip */

/** One reduce for the strip. */
static void reduce_strip(lower *g, const reduction *r)
{
    int order = qn__order_rule(g->k, r->inst);
    LLVMValueRef to = result_array(g, r);
    const span s = qn__points_of(g, r, r->dim[0]);
    if (order == QN_STRIPED) {
        fold_stripes(g, r, r->n_levels, s, to);
    } else if (order == QN_INDEXED && r->n_levels > 0) {
        fold_blocks(g, r, r->n_levels, s);
    } else {
        fill_identity(g, r, to);
        fold(g, r, 0, to);
    }
}

static void lower_strip(lower *g)
{
    int n = 0;
    loop l;
    FOR_TOP_REDUCES (g->k, i) {
        reduction r = qn__describe_reduction(g, i);
        g->strip.done = i;
        g->strip.result[n++] = result_array(g, &r);
        reduce_strip(g, &r);
    }
    g->strip.done = g->k->n_insts;
    lanes_open(g, &l);
    qn__lower_region(g, g->k->body, g->k->n_insts);
    qn__loop_close(g, &l);
    g->strip.done = 0;
}

void qn__lower_strips(lower *g, LLVMValueRef low, LLVMValueRef high)
{
    const span s = {low, high};
    loop l;
    if (qn__is_known_empty(s))
        return;
    g->width = g->block->width;
    g->unroll = g->block->unroll;
    LLVMValueRef n = qn__pieces_open(g, &l, s, g->block->strip.length);
    g->strip.low = l.index;
    g->strip.high = LLVMBuildAdd(g->b, l.index, n, "");
    lower_strip(g);
    qn__loop_close(g, &l);
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
    load_sums(g, &r, g->strip.result[n], 0, v);
    for (int m = 0; m < r.n; m++)
        qn__set(g, i, r.part[m], qn__or_empty(g, &r, v[m]), g->depth);
    return true;
}
