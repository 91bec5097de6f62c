/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stripes.c: the striped order rule where points are no lanes. Partials are in arrays of 64 on the
 * stack, one array for each level of blocks and each accumulator: level 0 takes points, level n + 1
 * the results of the blocks of level n. Of a plain region over one dimension no point is added in
 * memory: partials l, l + 8, ..., l + 56 of a block are made at once, in registers, for
 * l = 0 .. 7; what the rule makes of the eight is one entry of an array. Of several accumulators
 * fewer partials are made at once.
 */
#include "jit/lower/lower.h"
#include "jit/schedule/forms.h"

#include <string.h>

static LLVMValueRef element(lower *g, const stripes *s, LLVMValueRef array, LLVMValueRef n)
{
    return qn__gep(g, s->t, array, n);
}

/** Bytes of the widest floating-point type that is reduced. */
static unsigned widest_bytes(const qn_kernel *k)
{
    unsigned most = 4;
    FOR_REDUCES (k, i)
        most = k->inst[i].type == QN_F64 ? 8 : most;
    return most;
}

/** An array of 64 of the widest elements that are reduced, in the function's frame. */
static LLVMValueRef new_scratch(lower *g)
{
    const bool over_points = qn__is_reduction(g->k, g->block->lane_dim);
    const int own = over_points ? 1 : g->block->width, trips = g->trip_block.width;
    const uint64_t lanes = (uint64_t)(own > trips ? own : trips);
    return qn__new_buffer(g, widest_bytes(g->k) * lanes * PARTIALS, 64);
}

static LLVMValueRef take_scratch(lower *g)
{
    if (g->scratch_used == MOST_SCRATCH) {
        g->failed = true;
        return g->scratch[0];
    }
    if (g->scratch_used == g->n_scratch)
        g->scratch[g->n_scratch++] = new_scratch(g);
    return g->scratch[g->scratch_used++];
}

static void fill_identity(lower *g, const reduction *r, const stripes *s, int depth)
{
    loop l;
    qn__loop_times(g, &l, PARTIALS);
    for (int n = 0; n < r->n; n++)
        LLVMBuildStore(g->b, qn__constant_like(s->t, r->identity),
                       element(g, s, s->array[depth][n], l.index));
    qn__loop_close(g, &l);
}

void qn__stripes_open(lower *g, const reduction *r, stripes *s, int first, LLVMTypeRef t)
{
    s->t = t;
    for (int v = first; v <= r->n_levels; v++)
        for (int n = 0; n < r->n; n++)
            s->array[v][n] = take_scratch(g);
    if (first == 0)
        fill_identity(g, r, s, 0);
}

/** partial[count mod 64] = it combined with value. */
static void add_to_stripe(lower *g, const reduction *r, const stripes *s, int depth,
                          LLVMValueRef count, const addend *a)
{
    LLVMValueRef at = LLVMBuildAnd(g->b, count, qn__const_i64(g, PARTIALS - 1), "");
    for (int n = 0; n < r->n; n++) {
        LLVMValueRef where = element(g, s, s->array[depth][n], at);
        LLVMValueRef old = LLVMBuildLoad2(g->b, s->t, where, "");
        LLVMBuildStore(g->b, qn__add_point(g, r, old, a, n), where);
    }
}

/** Combines the first `count` entries of a level: l with l + count / 2, ..., l with l + 1. The last
 * few are loaded once. */
static void join(lower *g, const reduction *r, const stripes *s, int depth, int64_t count,
                 LLVMValueRef *out)
{
    enum { FEW = 8 };
    LLVMValueRef last[FEW];
    int64_t half = count / 2;
    for (; half >= FEW; half /= 2) {
        loop l;
        qn__loop_times(g, &l, half);
        LLVMValueRef other = LLVMBuildAdd(g->b, l.index, qn__const_i64(g, half), "");
        for (int n = 0; n < r->n; n++) {
            LLVMValueRef a = element(g, s, s->array[depth][n], l.index),
                         b = element(g, s, s->array[depth][n], other);
            LLVMValueRef sum = qn__combine(g, r, LLVMBuildLoad2(g->b, s->t, a, ""),
                                           LLVMBuildLoad2(g->b, s->t, b, ""));
            LLVMBuildStore(g->b, sum, a);
        }
        qn__loop_close(g, &l);
    }
    for (int n = 0; n < r->n; n++) {
        for (int l = 0; l < 2 * half; l++)
            last[l] = LLVMBuildLoad2(g->b, s->t,
                                     element(g, s, s->array[depth][n], qn__const_i64(g, l)), "");
        for (int64_t apart = half; apart > 0; apart /= 2)
            for (int l = 0; l < apart; l++)
                last[l] = qn__combine(g, r, last[l], last[l + apart]);
        out[n] = last[0];
    }
}

/** The result of a level of 64 partials; the arrays hold the identity again. */
static void close_stripe(lower *g, const reduction *r, const stripes *s, int depth,
                         LLVMValueRef *out)
{
    join(g, r, s, depth, PARTIALS, out);
    fill_identity(g, r, s, depth);
}

LLVMValueRef qn__are_several(lower *g, LLVMValueRef blocks)
{
    int64_t known;
    return qn__is_const(blocks, &known)
               ? NULL
               : LLVMBuildICmp(g->b, LLVMIntUGT, blocks, qn__const_i64(g, 1), "");
}

LLVMValueRef qn__is_multiple_of_block(lower *g, LLVMValueRef count)
{
    LLVMValueRef rest = LLVMBuildAnd(g->b, count, qn__const_i64(g, BLOCK - 1), "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, rest, qn__const_i64(g, 0), "");
}

LLVMValueRef qn__is_below_block(lower *g, LLVMValueRef count)
{
    return LLVMBuildICmp(g->b, LLVMIntULT, count, qn__const_i64(g, BLOCK), "");
}

void qn__stripes_push(lower *g, const reduction *r, const stripes *s, int depth, LLVMValueRef count,
                      const addend *a)
{
    if (depth > 0) {
        LLVMValueRef is_first = LLVMBuildICmp(g->b, LLVMIntEQ, count, qn__const_i64(g, 1), "");
        branch first = qn__begin_branch(g, is_first);
        fill_identity(g, r, s, depth);
        qn__end_branch(g, &first, NULL);
    }
    add_to_stripe(g, r, s, depth, LLVMBuildSub(g->b, count, qn__const_i64(g, 1), ""), a);
    if (depth == r->n_levels)
        return;
    branch full = qn__begin_branch(g, qn__is_multiple_of_block(g, count));
    addend result = {0};
    close_stripe(g, r, s, depth, result.value);
    qn__stripes_push(g, r, s, depth + 1, LLVMBuildLShr(g->b, count, qn__const_i64(g, 12), ""),
                     &result);
    qn__end_branch(g, &full, NULL);
}

/** Of a level of which blocks have gone up: the rest of it does, and the levels above end. */
static void close_above(lower *g, const reduction *r, const stripes *s, int depth,
                        LLVMValueRef count, LLVMValueRef *acc)
{
    LLVMValueRef above = qn__count_blocks(g, count, BLOCK);
    branch left = qn__begin_branch(g, LLVMBuildNot(g->b, qn__is_multiple_of_block(g, count), ""));
    addend result = {0};
    join(g, r, s, depth, PARTIALS, result.value);
    qn__stripes_push(g, r, s, depth + 1, above, &result);
    qn__end_branch(g, &left, NULL);
    qn__stripes_close(g, r, s, depth + 1, above, acc);
}

void qn__stripes_close(lower *g, const reduction *r, const stripes *s, int depth,
                       LLVMValueRef count, LLVMValueRef *acc)
{
    LLVMValueRef few[MOST_PARTS];
    if (depth == r->n_levels) {
        join(g, r, s, depth, PARTIALS, acc);
        return;
    }
    branch x = qn__begin_choice(g, qn__is_below_block(g, count), "few", "many");
    join(g, r, s, depth, PARTIALS, few);
    qn__begin_other(g, &x);
    close_above(g, r, s, depth, count, acc);
    qn__end_branch(g, &x, NULL);
    for (int n = 0; n < r->n; n++)
        acc[n] = qn__join(g, &x, few[n], acc[n]);
}

/** Adds points one by one, in memory. */
static LLVMValueRef push_points(lower *g, const reduction *r, const stripes *s, int at,
                                LLVMValueRef count)
{
    if (at == r->n_dims) {
        addend a;
        qn__evaluate_point(g, r, &a);
        count = LLVMBuildAdd(g->b, count, qn__const_i64(g, 1), "");
        qn__stripes_push(g, r, s, 0, count, &a);
        return count;
    }
    loop l;
    qn__loop_points(g, &l, r, r->dim[at]);
    qn__loop_carry(g, &l, &count, 1);
    count = push_points(g, r, s, at + 1, count);
    qn__loop_close(g, &l);
    return count;
}

/* ---------------------------------------------------------------- partials in registers */

/** Adds the point at an index, if the condition holds; NULL: always. */
static void add_point(lower *g, const reduction *r, LLVMValueRef at, LLVMValueRef condition,
                      LLVMValueRef *acc)
{
    loop once;
    branch x = qn__begin_branch(g, condition);
    qn__branch_keep(g, &x, acc, r->n);
    qn__once_open(g, &once, NULL);
    qn__set_index(g, r->dim[0], at);
    qn__fold_point(g, r, acc);
    qn__loop_close(g, &once);
    qn__end_branch(g, &x, NULL);
}

/** Adds the points at at.low, at.low + apart, ... to a partial each. at.high: how many points there
 * are from at.low on, which is no index: one beyond the last may be no number of 64 bits. left:
 * points of this round for all turns; -1: not known. */
static void add_round(lower *g, const reduction *r, span at, int64_t apart, int64_t left,
                      LLVMValueRef *acc)
{
    for (int64_t m = 0; m * apart < PARTIALS; m++, acc += r->n) {
        LLVMValueRef more = qn__const_i64(g, m * apart);
        LLVMValueRef point = LLVMBuildAdd(g->b, at.low, more, "");
        bool is_there = left >= (m + 1) * apart;
        if (left < 0 || left > m * apart)
            add_point(g, r, point,
                      is_there ? NULL : LLVMBuildICmp(g->b, LLVMIntSLT, more, at.high, ""), acc);
    }
}

/** The result of up to 4096 points. */
static void fold_block(lower *g, const reduction *r, const stripes *s, span points,
                       LLVMValueRef *out)
{
    LLVMValueRef acc[QN_PARTIALS_AT_ONCE + MOST_PARTS];
    int64_t at_once = QN_PARTIALS_AT_ONCE, left;
    while (at_once > 1 && at_once * r->n > QN_PARTIALS_AT_ONCE)
        at_once /= 2;
    const int n_sums = (int)at_once * r->n;
    LLVMValueRef n = LLVMBuildSub(g->b, points.high, points.low, ""),
                 rest = LLVMBuildAnd(g->b, n, qn__const_i64(g, PARTIALS - 1), "");
    span whole = {points.low, LLVMBuildSub(g->b, points.high, rest, "")};
    left = qn__is_const(rest, &left) ? left : -1;
    loop turn, round;
    qn__loop_times(g, &turn, PARTIALS / at_once);
    for (int m = 0; m < n_sums; m++)
        acc[m] = qn__constant_like(s->t, r->identity);
    if (!qn__is_known_empty(whole)) {
        qn__loop_open(g, &round, whole, PARTIALS, LOOP_MAY_BE_EMPTY);
        qn__loop_carry(g, &round, acc, n_sums);
        add_round(g, r, (span){LLVMBuildAdd(g->b, round.index, turn.index, ""), NULL},
                  PARTIALS / at_once, PARTIALS, acc);
        qn__loop_close(g, &round);
    }
    span last = {LLVMBuildAdd(g->b, whole.high, turn.index, ""),
                 LLVMBuildSub(g->b, rest, turn.index, "")};
    add_round(g, r, last, PARTIALS / at_once, left, acc);
    for (int half = n_sums / 2; half >= r->n; half /= 2)
        for (int m = 0; m < half; m++)
            acc[m] = qn__combine(g, r, acc[m], acc[m + half]);
    for (int m = 0; m < r->n; m++)
        LLVMBuildStore(g->b, acc[m], element(g, s, s->array[0][m], turn.index));
    qn__loop_close(g, &turn);
    join(g, r, s, 0, PARTIALS / at_once, out);
}

/** Blocks of 4096 points of one dimension. */
static void fold_blocks(lower *g, const reduction *r, LLVMValueRef *acc)
{
    stripes s = {0};
    addend result = {0};
    span all = qn__points_of(g, r, r->dim[0]);
    loop l;
    s.t = qn__accumulator_type(g, r);
    for (int m = 0; m < r->n; m++)
        s.array[0][m] = take_scratch(g);
    if (r->n_levels == 0) {
        fold_block(g, r, &s, all, acc);
        return;
    }
    LLVMValueRef blocks = qn__count_blocks(g, LLVMBuildSub(g->b, all.high, all.low, ""), BLOCK),
                 are_several = qn__are_several(g, blocks);
    qn__stripes_open(g, r, &s, 1, s.t);
    qn__loop_open(g, &l, qn__up_to(g, blocks), 1, LOOP_MAY_BE_EMPTY);
    qn__loop_carry(g, &l, acc, r->n);
    fold_block(g, r, &s, qn__block_at(g, all, l.index, BLOCK), acc);
    memcpy(result.value, acc, (size_t)r->n * sizeof *acc);
    branch several = qn__begin_branch(g, are_several);
    qn__stripes_push(g, r, &s, 1, LLVMBuildAdd(g->b, l.index, qn__const_i64(g, 1), ""), &result);
    qn__end_branch(g, &several, NULL);
    qn__loop_close(g, &l);
    several = qn__begin_branch(g, are_several);
    qn__branch_keep(g, &several, acc, r->n);
    qn__stripes_close(g, r, &s, 1, blocks, acc);
    qn__end_branch(g, &several, NULL);
}

void qn__fold_striped(lower *g, const reduction *r, LLVMValueRef *acc)
{
    stripes s = {0};
    if (!r->results && qn__keeps_partials(g->k, g->f, r->inst)) {
        fold_blocks(g, r, acc);
        return;
    }
    qn__stripes_open(g, r, &s, 0, qn__accumulator_type(g, r));
    LLVMValueRef count = push_points(g, r, &s, 0, qn__const_i64(g, 0));
    qn__stripes_close(g, r, &s, 0, count, acc);
}
