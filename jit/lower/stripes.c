/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stripes.c: the striped order rule in memory: arrays of 64 partials on the stack, one array for
 * each level of blocks and each accumulator. Level 0 takes points, level n + 1 the results of the
 * blocks of level n.
 */
#include "jit/lower/lower.h"

static LLVMValueRef element(lower *g, const stripes *s, LLVMValueRef array, LLVMValueRef n)
{
    return qn__gep(g, s->t, array, n);
}

/** Bytes of the widest floating-point type that is reduced. */
static unsigned widest_bytes(const qn_kernel *k)
{
    unsigned most = 4;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_REDUCE && k->inst[i].type == QN_F64)
            most = 8;
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
    for (int v = first; v <= r->n_levels; v++) {
        for (int n = 0; n < r->n; n++)
            s->array[v][n] = take_scratch(g);
        fill_identity(g, r, s, v);
    }
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

/** Halves the 64 partials to one; the arrays hold the identity again. */
static void close_stripe(lower *g, const reduction *r, const stripes *s, int depth,
                         LLVMValueRef *out)
{
    for (int64_t half = PARTIALS / 2; half > 0; half /= 2) {
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
    for (int n = 0; n < r->n; n++)
        out[n] =
            LLVMBuildLoad2(g->b, s->t, element(g, s, s->array[depth][n], qn__const_i64(g, 0)), "");
    fill_identity(g, r, s, depth);
}

LLVMValueRef qn__is_multiple_of_block(lower *g, LLVMValueRef count)
{
    LLVMValueRef rest = LLVMBuildAnd(g->b, count, qn__const_i64(g, BLOCK - 1), "");
    return LLVMBuildICmp(g->b, LLVMIntEQ, rest, qn__const_i64(g, 0), "");
}

void qn__stripes_push(lower *g, const reduction *r, const stripes *s, int depth, LLVMValueRef count,
                      const addend *a)
{
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

void qn__stripes_close(lower *g, const reduction *r, const stripes *s, int depth,
                       LLVMValueRef count, LLVMValueRef *acc)
{
    for (; depth < r->n_levels; depth++) {
        LLVMValueRef above = qn__count_blocks(g, count, BLOCK);
        branch left =
            qn__begin_branch(g, LLVMBuildNot(g->b, qn__is_multiple_of_block(g, count), ""));
        addend result = {0};
        close_stripe(g, r, s, depth, result.value);
        qn__stripes_push(g, r, s, depth + 1, above, &result);
        qn__end_branch(g, &left, NULL);
        count = above;
    }
    close_stripe(g, r, s, depth, acc);
}
