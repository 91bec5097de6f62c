/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_lanes.c: reductions whose lanes run over points: the 64 partials of the striped order are
 * the lanes of the vectors of one step. What may be combined in any order is reduced so, too; of
 * products of 16 bits two that stand side by side are added at once. Trips of a `for` that are
 * lanes run in the same steps (lower/trip_lanes.c).
 */
#include "jit/lower/hooks.h"
#include "jit/lower/trip_lanes.h"
#include "jit/schedule/plan.h"

#include <string.h>

outside qn__enter_lanes(lower *g, const qn_block *block)
{
    outside o = {.block = g->block, .width = g->width, .unroll = g->unroll};
    memcpy(o.mask, g->mask, sizeof o.mask);
    memcpy(o.tail_mask, g->tail_mask, sizeof o.tail_mask);
    g->block = block;
    g->width = block->width;
    g->unroll = block->unroll;
    FOR_PARTS (g, p) {
        LLVMValueRef m = o.mask[p % g->jam_max];
        g->mask[p] = m ? qn__splat(g, m, g->depth) : NULL;
        g->tail_mask[p] = NULL;
    }
    return o;
}

void qn__leave_lanes(lower *g, const outside *o)
{
    g->block = o->block;
    g->width = o->width;
    g->unroll = o->unroll;
    memcpy(g->mask, o->mask, sizeof o->mask);
    memcpy(g->tail_mask, o->tail_mask, sizeof o->tail_mask);
}

/** Whether points are products whose sum is taken of pairs: one instruction multiplies 16 bits and
 * adds what is side by side. */
static bool adds_pairs(const lower *g, const reduction *r)
{
    bool has_width = g->width >= 8 && 2 * g->width <= g->f->target->vector_bytes;
    return has_width && g->hooks->add_pairs && qn__paired_product(&g->a, r->inst);
}

/** What part p of the points adds, in half as many lanes. */
static LLVMValueRef pairs_of(lower *g, const reduction *r, int p)
{
    const uint32_t *arg = qn__args(g->k, qn__paired_product(&g->a, r->inst));
    LLVMValueRef v[2] = {qn__vector_bits(g, arg[0], p, 16), qn__vector_bits(g, arg[1], p, 16)};
    if (g->tail_mask[p])
        v[0] = LLVMBuildSelect(g->b, g->tail_mask[p], v[0], LLVMConstNull(LLVMTypeOf(v[0])), "");
    return g->hooks->add_pairs(g, v);
}

/** The type of accumulators. */
static LLVMTypeRef sums_type(const lower *g, const reduction *r)
{
    return adds_pairs(g, r) ? LLVMVectorType(g->i32, (unsigned)g->width / 2)
                            : qn__lane_type(g, r->type);
}

/** Adds part p of the point of one reduce to its accumulator. */
static void add_part(lower *g, const reduction *r, int p, LLVMValueRef *acc)
{
    addend a;
    a.factor[0] = NULL;
    if (adds_pairs(g, r)) {
        *acc = LLVMBuildAdd(g->b, *acc, pairs_of(g, r, p), "");
        return;
    }
    qn__take_point(g, r, p, true, &a, 0);
    LLVMValueRef sum = qn__add_point(g, r, *acc, &a, 0);
    *acc = g->tail_mask[p] ? LLVMBuildSelect(g->b, g->tail_mask[p], sum, *acc, "") : sum;
}

/** Whether what runs in the lanes is a loop of the body. */
static bool are_trips(const lower *g, const reduction *r)
{
    return g->k->inst[r->inst].op == QN_I_FOR;
}

/** Leaves lanes from `first` on active, NULL: 0, before `end`; i64, within a step. */
static void keep_lanes(lower *g, LLVMValueRef first, LLVMValueRef end)
{
    LLVMTypeRef small = g->i16;
    end = qn__splat(g, LLVMBuildTrunc(g->b, end, small, ""), g->depth);
    first = first ? qn__splat(g, LLVMBuildTrunc(g->b, first, small, ""), g->depth) : NULL;
    FOR_PARTS (g, p) {
        LLVMValueRef lane = qn__lanes(g, small, 1);
        lane = LLVMBuildAdd(g->b, lane, qn__int(LLVMTypeOf(lane), p / g->jam_max * g->width), "");
        LLVMValueRef is_in = LLVMBuildICmp(g->b, LLVMIntULT, lane, end, "");
        if (first)
            is_in = LLVMBuildAnd(g->b, is_in, LLVMBuildICmp(g->b, LLVMIntUGE, lane, first, ""), "");
        g->tail_mask[p] = is_in;
        g->mask[p] = qn__mask_and(g, g->mask[p], is_in);
    }
}

void qn__keep_first(lower *g, LLVMValueRef n)
{
    keep_lanes(g, NULL, n);
}

/** One step of width x unroll points; acc[m][p] of reduce m. With an end (i64) only lanes from the
 * first one to that, see keep_lanes. The points may be trips of a `for`, which may combine nothing.
 */
static void lane_step(lower *g, const reduction *r, int n_reduces, span active, sums *acc)
{
    LLVMValueRef outer[MOST_PARTS];
    memcpy(outer, g->mask, sizeof outer);
    if (active.high)
        keep_lanes(g, active.low, active.high);
    if (are_trips(g, r))
        qn__lower_trips_of_step(g, r, n_reduces, acc);
    for (int m = 0; m < n_reduces && !are_trips(g, r); m++) {
        const qn_inst *x = &g->k->inst[r[m].inst];
        qn__lower_region(g, x->region[0], x->region[2]);
        FOR_PARTS (g, p)
            add_part(g, &r[m], p, &acc[m][p]);
    }
    memset(g->tail_mask, 0, sizeof g->tail_mask);
    memcpy(g->mask, outer, sizeof outer);
}

/** Carries the accumulators of all parts through a loop that was just opened. */
static void carry_parts(lower *g, loop *l, int n_reduces, sums *acc)
{
    for (int m = 0; m < n_reduces; m++)
        FOR_PARTS (g, p)
            qn__loop_carry(g, l, &acc[m][p], 1);
}

void qn__lane_range(lower *g, const reduction *r, int n_reduces, span s, bool is_whole, sums *acc)
{
    int d = g->block->lane_dim;
    int64_t step = (int64_t)g->width * g->unroll, known;
    const int how = LOOP_MAY_BE_EMPTY | (are_trips(g, r) ? LOOP_IS_SEQUENTIAL : 0);
    LLVMValueRef n = LLVMBuildSub(g->b, s.high, s.low, "");
    LLVMValueRef left = LLVMBuildAnd(g->b, n, qn__const_i64(g, step - 1), "");
    LLVMValueRef whole = is_whole ? s.high : LLVMBuildSub(g->b, s.high, left, "");
    int64_t first, end;
    loop l;
    if (qn__is_const(s.low, &first) && qn__is_const(whole, &end) && end - first <= 2 * step) {
        for (; first < end; first += step) {
            qn__once_open(g, &l, NULL);
            qn__set_index(g, d, qn__const_i64(g, first));
            lane_step(g, r, n_reduces, (span){0}, acc);
            qn__loop_close(g, &l);
        }
    } else if (!qn__is_known_empty((span){s.low, whole})) {
        qn__loop_open(g, &l, (span){s.low, whole}, step, how);
        carry_parts(g, &l, n_reduces, acc);
        qn__set_index(g, d, l.index);
        lane_step(g, r, n_reduces, (span){0}, acc);
        qn__loop_close(g, &l);
    }
    if (is_whole || (qn__is_const(left, &known) && known == 0))
        return;
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, left, qn__const_i64(g, 0), "");
    some = LLVMBuildZExt(g->b, some, g->i64, "");
    qn__loop_open(g, &l, qn__up_to(g, some), 1, how);
    carry_parts(g, &l, n_reduces, acc);
    qn__set_index(g, d, whole);
    lane_step(g, r, n_reduces, (span){.high = left}, acc);
    qn__loop_close(g, &l);
}

LLVMValueRef qn__across_lanes(lower *g, const reduction *r, LLVMValueRef *acc, int j)
{
    LLVMValueRef v[MOST_PARTS];
    int n = g->unroll;
    for (int u = 0; u < n; u++)
        v[u] = acc[u * g->jam_max + j];
    for (; n > 1; n /= 2)
        for (int u = 0; u < n / 2; u++)
            v[u] = qn__combine(g, r, v[u], v[u + n / 2]);
    int half = (int)LLVMGetVectorSize(LLVMTypeOf(v[0])) / 2;
    for (; half > 1; half /= 2)
        v[0] = qn__combine(g, r, qn__resized(g, v[0], half), qn__part_of(g, v[0], half, half));
    if (half == 1) /* of two lanes: no vector of one, which would be scalars */
        v[0] = qn__combine(g, r, v[0], qn__part_of(g, v[0], 1, 2));
    return qn__extract(g, v[0], 0);
}

/* ---------------------------------------------------------------- rows */

/** What rows are added to. */
typedef struct rows {
    const reduction *r;
    int n;         /* reduces */
    bool has_rest; /* the last points of a row are added one by one, to */
    sums acc[MOST_JOINED], rest[MOST_JOINED];
    LLVMValueRef count; /* points so far where rows begin at any partial; else NULL */
    const stripes *blocks;
    outside outside;
} rows;

static void set_identity(lower *g, rows *x)
{
    for (int m = 0; m < x->n; m++)
        FOR_PARTS (g, p)
            x->acc[m][p] = qn__constant_like(sums_type(g, &x->r[m]), x->r[m].identity);
}

static void rows_open(lower *g, rows *x)
{
    x->outside = qn__enter_lanes(g, g->block);
    set_identity(g, x);
    for (int m = 0; m < x->n && x->has_rest; m++)
        for (int n = 0; n < x->r[m].n; n++)
            x->rest[m][n] = x->r[m].identity;
}

/** All lanes to one scalar for each accumulator. */
static void sum_lanes(lower *g, rows *x, sums *out)
{
    for (int m = 0; m < x->n; m++)
        for (int n = 0; n < x->r[m].n; n++)
            out[m][n] = qn__across_lanes(g, &x->r[m], x->acc[m], x->r[m].part[n] % g->jam_max);
}

static void rows_close(lower *g, rows *x, sums *out)
{
    sum_lanes(g, x, out);
    qn__leave_lanes(g, &x->outside);
    for (int m = 0; m < x->n && x->has_rest; m++)
        for (int n = 0; n < x->r[m].n; n++)
            out[m][n] = qn__combine(g, &x->r[m], out[m][n], x->rest[m][n]);
}

/** Carries all that rows are added to. */
static void carry_rows(lower *g, loop *l, rows *x)
{
    carry_parts(g, l, x->n, x->acc);
    for (int m = 0; m < x->n && x->has_rest; m++)
        qn__loop_carry(g, l, x->rest[m], x->r[m].n);
    qn__loop_carry(g, l, &x->count, 1);
}

/** A row that begins at the first lane: all its points in lanes, or what steps and then single
 * vectors leave one by one. */
static void whole_row(lower *g, rows *x, span s)
{
    if (!x->has_rest) {
        qn__lane_range(g, x->r, x->n, s, false, x->acc);
        return;
    }
    const int unroll = g->unroll;
    for (int vectors = unroll; vectors > 0; vectors = vectors > 1) {
        LLVMValueRef step = qn__const_i64(g, -(int64_t)g->width * vectors),
                     n = LLVMBuildAnd(g->b, LLVMBuildSub(g->b, s.high, s.low, ""), step, ""),
                     end = LLVMBuildAdd(g->b, s.low, n, "");
        g->unroll = vectors;
        qn__lane_range(g, x->r, x->n, (span){s.low, end}, true, x->acc);
        s.low = end;
    }
    g->unroll = unroll;
    qn__leave_lanes(g, &x->outside);
    for (int m = 0; m < x->n; m++)
        qn__fold_run(g, &x->r[m], g->block->lane_dim, s, LOOP_MAY_BE_EMPTY, x->rest[m]);
    x->outside = qn__enter_lanes(g, g->block);
}

/** The result of the block that ends with so many points goes up. */
static void push_result(lower *g, rows *x, LLVMValueRef points, sums *result)
{
    for (int m = 0; m < x->n; m++) {
        addend a = {0};
        memcpy(a.value, result[m], sizeof a.value);
        qn__stripes_push(g, &x->r[m], &x->blocks[m], 1, qn__count_blocks(g, points, BLOCK), &a);
    }
}

/** The block in the lanes, which ends with so many points, goes up. */
static void push_block(lower *g, rows *x, LLVMValueRef points)
{
    sums result[MOST_JOINED];
    sum_lanes(g, x, result);
    qn__leave_lanes(g, &x->outside);
    push_result(g, x, points, result);
    x->outside = qn__enter_lanes(g, g->block);
}

/** Closes the block if so many points fill it. */
static void push_if_full(lower *g, rows *x, LLVMValueRef points)
{
    if (x->r->n_levels == 0)
        return;
    branch full = qn__begin_branch(g, qn__is_multiple_of_block(g, points));
    for (int m = 0; m < x->n; m++)
        FOR_PARTS (g, p)
            qn__branch_keep(g, &full, &x->acc[m][p], 1);
    push_block(g, x, points);
    set_identity(g, x);
    qn__end_branch(g, &full, NULL);
}

/** A step of a row that begins at any partial, up to so many points from the begin of the reduce:
 * all its lanes, or those of a range. */
static void shifted_step(lower *g, rows *x, LLVMValueRef at, LLVMValueRef points, span active)
{
    qn__set_index(g, g->block->lane_dim, at);
    lane_step(g, x->r, x->n, active, x->acc);
    push_if_full(g, x, points);
}

/** A row that begins at any partial, in steps that begin at the first one: of the first step and of
 * the last one some lanes are outside. */
static void shifted_row(lower *g, rows *x, span s)
{
    LLVMValueRef step = qn__const_i64(g, PARTIALS), zero = qn__const_i64(g, 0),
                 shift = LLVMBuildAnd(g->b, x->count, qn__const_i64(g, PARTIALS - 1), ""),
                 base = LLVMBuildSub(g->b, s.low, shift, ""),
                 n = LLVMBuildSub(g->b, s.high, base, ""),
                 before = LLVMBuildSub(g->b, x->count, shift, ""),
                 last = LLVMBuildSub(g->b, n, qn__const_i64(g, 1), "");
    last = LLVMBuildAnd(g->b, last, qn__const_i64(g, -PARTIALS), "");
    LLVMValueRef has_two = LLVMBuildICmp(g->b, LLVMIntSGT, last, zero, ""),
                 is_some = LLVMBuildICmp(g->b, LLVMIntSGT, s.high, s.low, ""),
                 edges =
                     LLVMBuildSelect(g->b, has_two, qn__const_i64(g, 2), qn__const_i64(g, 1), "");
    loop edge, once, middle;
    edges = LLVMBuildSelect(g->b, is_some, edges, zero, "");
    qn__loop_open(g, &edge, qn__up_to(g, edges), 1, LOOP_MAY_BE_EMPTY);
    carry_parts(g, &edge, x->n, x->acc);
    LLVMValueRef is_first = LLVMBuildICmp(g->b, LLVMIntEQ, edge.index, zero, ""),
                 own = LLVMBuildSelect(g->b, is_first, zero, last, ""),
                 end = qn__umin(g, LLVMBuildSub(g->b, n, own, ""), step);
    qn__once_open(g, &once, NULL); /* what it makes for its index is not that of the middle */
    shifted_step(g, x, LLVMBuildAdd(g->b, base, own, ""),
                 LLVMBuildAdd(g->b, before, LLVMBuildAdd(g->b, own, end, ""), ""),
                 (span){LLVMBuildSelect(g->b, is_first, shift, zero, ""), end});
    qn__loop_close(g, &once);
    LLVMValueRef has_middle = LLVMBuildAnd(g->b, is_first, has_two, "");
    qn__loop_open(g, &middle, (span){step, LLVMBuildSelect(g->b, has_middle, last, step, "")},
                  PARTIALS, LOOP_MAY_BE_EMPTY);
    carry_parts(g, &middle, x->n, x->acc);
    LLVMValueRef after = LLVMBuildAdd(g->b, middle.index, step, "");
    shifted_step(g, x, LLVMBuildAdd(g->b, base, middle.index, ""),
                 LLVMBuildAdd(g->b, before, after, ""), (span){0});
    qn__loop_close(g, &middle);
    qn__loop_close(g, &edge);
    x->count = LLVMBuildAdd(g->b, x->count, LLVMBuildSub(g->b, s.high, s.low, ""), "");
}

/** Outer dimensions of reduces are loops around rows. */
static void walk_rows(lower *g, rows *x, int at)
{
    const reduction *r = x->r;
    loop l;
    if (at == r->n_dims - 1) {
        span s = qn__points_of(g, r, r->dim[at]);
        if (x->count)
            shifted_row(g, x, s);
        else
            whole_row(g, x, s);
        return;
    }
    qn__loop_points(g, &l, r, r->dim[at]);
    carry_rows(g, &l, x);
    walk_rows(g, x, at + 1);
    qn__loop_close(g, &l);
}

/** Points, at most a block of the striped order, to one scalar for each accumulator. */
static void lane_rows(lower *g, const reduction *r, int n_reduces, sums *out)
{
    rows x = {.r = r, .n = n_reduces, .has_rest = qn__has_scalar_rest(g->k, g->f, r->inst)};
    rows_open(g, &x);
    walk_rows(g, &x, 0);
    rows_close(g, &x, out);
}

/* ---------------------------------------------------------------- blocks */

static void open_blocks(lower *g, const reduction *r, int n_reduces, stripes *s)
{
    for (int m = 0; m < n_reduces; m++)
        qn__stripes_open(g, &r[m], &s[m], 1, qn__scalar_type(g, r[m].type));
}

static void close_blocks(lower *g, const reduction *r, int n_reduces, const stripes *s,
                         LLVMValueRef blocks, sums *acc)
{
    for (int m = 0; m < n_reduces; m++)
        qn__stripes_close(g, &r[m], &s[m], 1, blocks, acc[m]);
}

/** One row in blocks of 4096, each in 64 lanes; results of several blocks go through stripes of
 * their own. */
static void lane_blocks(lower *g, const reduction *r, int n_reduces, sums *acc)
{
    stripes s[MOST_JOINED] = {0};
    span all = qn__points_of(g, r, r->dim[0]);
    LLVMValueRef blocks = qn__count_blocks(g, LLVMBuildSub(g->b, all.high, all.low, ""), BLOCK),
                 are_several = qn__are_several(g, blocks);
    rows x = {.r = r, .n = n_reduces, .blocks = s};
    loop l;
    open_blocks(g, r, n_reduces, s);
    qn__loop_open(g, &l, qn__up_to(g, blocks), 1, LOOP_MAY_BE_EMPTY);
    for (int m = 0; m < n_reduces; m++)
        qn__loop_carry(g, &l, acc[m], r[m].n);
    rows_open(g, &x);
    whole_row(g, &x, qn__block_at(g, all, l.index, BLOCK));
    sum_lanes(g, &x, acc);
    qn__leave_lanes(g, &x.outside);
    branch several = qn__begin_branch(g, are_several);
    LLVMValueRef points = LLVMBuildMul(g->b, LLVMBuildAdd(g->b, l.index, qn__const_i64(g, 1), ""),
                                       qn__const_i64(g, BLOCK), "");
    push_result(g, &x, points, acc);
    qn__end_branch(g, &several, NULL);
    qn__loop_close(g, &l);
    several = qn__begin_branch(g, are_several);
    for (int m = 0; m < n_reduces; m++)
        qn__branch_keep(g, &several, acc[m], r[m].n);
    close_blocks(g, r, n_reduces, s, blocks, acc);
    qn__end_branch(g, &several, NULL);
}

/** Rows that begin at any partial. */
static void shifted_rows(lower *g, const reduction *r, int n_reduces, sums *acc)
{
    stripes s[MOST_JOINED] = {0};
    sums few[MOST_JOINED];
    open_blocks(g, r, n_reduces, s);
    rows x = {.r = r, .n = n_reduces, .count = qn__const_i64(g, 0), .blocks = s};
    rows_open(g, &x);
    walk_rows(g, &x, 0);
    if (r->n_levels == 0) {
        rows_close(g, &x, acc);
        return;
    }
    branch size = qn__begin_choice(g, qn__is_below_block(g, x.count), "few", "many");
    sum_lanes(g, &x, few);
    qn__begin_other(g, &size);
    LLVMValueRef is_full = qn__is_multiple_of_block(g, x.count);
    branch some = qn__begin_branch(g, LLVMBuildNot(g->b, is_full, ""));
    push_block(g, &x, x.count);
    qn__end_branch(g, &some, NULL);
    qn__leave_lanes(g, &x.outside);
    close_blocks(g, r, n_reduces, s, qn__count_blocks(g, x.count, BLOCK), acc);
    qn__end_branch(g, &size, NULL);
    for (int m = 0; m < n_reduces; m++)
        for (int n = 0; n < r[m].n; n++)
            acc[m][n] = qn__join(g, &size, few[m][n], acc[m][n]);
}

/** The order tells zeros of floats from one another, and nothing else: in theirs where one is the
 * least or greatest. */
static void tell_zeros(lower *g, const reduction *r, LLVMValueRef *acc)
{
    LLVMValueRef is_zero = NULL;
    for (int n = 0; n < r->n; n++) {
        LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(acc[n])),
                     own = LLVMBuildFCmp(g->b, LLVMRealOEQ, acc[n], zero, "");
        is_zero = is_zero ? LLVMBuildOr(g->b, is_zero, own, "") : own;
    }
    branch x = qn__begin_branch(g, is_zero);
    qn__branch_keep(g, &x, acc, r->n);
    for (int n = 0; n < r->n; n++)
        acc[n] = r->identity;
    qn__fold_from(g, r, 0, acc);
    qn__end_branch(g, &x, NULL);
}

void qn__lanes_reduce(lower *g, const reduction *r, int n_reduces, LLVMValueRef (*acc)[MOST_PARTS])
{
    bool is_striped = qn__order_rule(g->k, r->inst) == QN_STRIPED;
    if (is_striped && r->n_dims > 1)
        shifted_rows(g, r, n_reduces, acc);
    else if (is_striped && r->n_levels > 0)
        lane_blocks(g, r, n_reduces, acc);
    else
        lane_rows(g, r, n_reduces, acc);
    for (int m = 0; m < n_reduces; m++)
        if (qn__dtype_class(r[m].type) == QN_CLASS_F &&
            qn__order_rule(g->k, r[m].inst) != QN_STRIPED)
            tell_zeros(g, &r[m], acc[m]);
}
