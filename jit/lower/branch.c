/* SPDX-License-Identifier: Apache-2.0 */
/*
 * branch.c: masks, branches that skip code where none of its lanes is active, and choices between
 * two pieces of code. Each piece is a level of its own, out of which nothing is hoisted.
 */
#include "jit/lower/lower.h"

#include <string.h>

void qn__clear_masks(lower *g)
{
    g->first_lanes.mask = g->first_lanes.count = NULL;
    memset(g->mask, 0, sizeof g->mask);
    memset(g->tail_mask, 0, sizeof g->tail_mask);
    memset(g->edges, 0, sizeof g->edges);
    memset(g->side, 0, sizeof g->side);
}

/**
 * A mask of constant lanes whose lanes LLVM does not know. LLVM 19 may give the upper half of a
 * masked load no mask at all where its lanes follow from an `and` with constants, as in <1, 1, 1,
 * 0, 0, 0, 0, 0> of 256-bit registers, and then reads beyond the view (tests/unit/jit/test_code.c).
 * No address of a user's process has the uppermost bit, which LLVM cannot know.
 */
static LLVMValueRef hidden(lower *g, LLVMValueRef mask)
{
    LLVMTypeRef type = LLVMTypeOf(mask);
    if (!qn__is_vector(mask) || !LLVMIsConstant(mask))
        return mask;
    LLVMTypeRef bits = qn__int_type(g, LLVMGetVectorSize(type));
    LLVMValueRef zero = LLVMBuildAShr(g->b, LLVMBuildPtrToInt(g->b, g->slots, g->i64, ""),
                                      qn__const_i64(g, 63), "");
    zero = LLVMGetVectorSize(type) < 64 ? LLVMBuildTrunc(g->b, zero, bits, "") : zero;
    return LLVMBuildBitCast(g->b, LLVMBuildOr(g->b, LLVMConstBitCast(mask, bits), zero, ""), type,
                            "");
}

LLVMValueRef qn__mask_and(lower *g, LLVMValueRef mask, LLVMValueRef more)
{
    return !mask ? more : !more ? mask : LLVMBuildAnd(g->b, hidden(g, mask), hidden(g, more), "");
}

LLVMValueRef qn__mask_bits(lower *g, LLVMValueRef mask)
{
    return LLVMBuildBitCast(g->b, mask, qn__int_type(g, LLVMGetVectorSize(LLVMTypeOf(mask))), "");
}

LLVMValueRef qn__every(lower *g, LLVMValueRef mask)
{
    LLVMValueRef all = qn__mask_bits(g, mask);
    return LLVMBuildICmp(g->b, LLVMIntEQ, all, LLVMConstAllOnes(LLVMTypeOf(all)), "");
}

LLVMValueRef qn__first_set(lower *g, LLVMValueRef bits)
{
    LLVMValueRef v[2] = {LLVMBuildIntCast2(g->b, bits, g->i64, false, ""),
                         LLVMConstInt(g->i1, 0, false)};
    return qn__call(g, "llvm.cttz", &g->i64, 1, v, 2);
}

LLVMValueRef qn__any(lower *g, LLVMValueRef mask)
{
    if (!mask)
        return LLVMConstInt(g->i1, 1, false);
    if (!qn__is_vector(mask))
        return mask;
    LLVMValueRef all = qn__mask_bits(g, mask);
    return LLVMBuildICmp(g->b, LLVMIntNE, all, LLVMConstNull(LLVMTypeOf(all)), "");
}

static void begin_side(lower *g, LLVMBasicBlockRef block)
{
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, block);
}

static void end_side(lower *g, branch *x, int n)
{
    x->last[n] = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, x->join);
    qn__level_close(g);
}

branch qn__begin_choice(lower *g, LLVMValueRef condition, const char *then, const char *other)
{
    branch x = {.from = LLVMGetInsertBlock(g->b)};
    LLVMBasicBlockRef first = qn__new_block(g, then);
    x.other = other ? qn__new_block(g, other) : NULL;
    x.join = qn__new_block(g, "join");
    LLVMBuildCondBr(g->b, condition, first, other ? x.other : x.join);
    begin_side(g, first);
    return x;
}

branch qn__begin_branch(lower *g, LLVMValueRef condition)
{
    return condition ? qn__begin_choice(g, condition, "then", NULL) : (branch){.from = NULL};
}

void qn__begin_other(lower *g, branch *x)
{
    end_side(g, x, 0);
    LLVMPositionBuilderAtEnd(g->b, x->from);
    begin_side(g, x->other);
}

LLVMValueRef qn__phi(lower *g, LLVMValueRef first, LLVMBasicBlockRef from, LLVMValueRef other,
                     LLVMBasicBlockRef from_other)
{
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(first), ""), values[2] = {first, other};
    LLVMBasicBlockRef blocks[2] = {from, from_other};
    LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
}

LLVMValueRef qn__join(lower *g, const branch *x, LLVMValueRef taken, LLVMValueRef other)
{
    return qn__phi(g, taken, x->last[0], other, x->last[1]);
}

LLVMValueRef qn__end_branch(lower *g, branch *x, LLVMValueRef value)
{
    if (!x->from)
        return value;
    end_side(g, x, x->other ? 1 : 0);
    if (!x->other)
        x->last[1] = x->from;
    LLVMPositionBuilderAtEnd(g->b, x->join);
    for (int n = 0; n < x->kept.n; n++) {
        const carried_value *k = &x->kept.of[n];
        *k->value = *k->value == k->init ? k->init : qn__join(g, x, *k->value, k->init);
    }
    qn__free(x->kept.of);
    return value ? qn__join(g, x, value, LLVMConstNull(LLVMTypeOf(value))) : NULL;
}
