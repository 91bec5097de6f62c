/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_branch.c: masks, and branches that skip code where none of its lanes is active.
 */
#include "jit/llvm_lower.h"

LLVMValueRef qn__mask_and(lower *g, LLVMValueRef mask, LLVMValueRef more)
{
    return !mask ? more : !more ? mask : LLVMBuildAnd(g->b, mask, more, "");
}

LLVMValueRef qn__any(lower *g, LLVMValueRef mask)
{
    if (!mask)
        return LLVMConstInt(g->i1, 1, false);
    LLVMTypeRef t = LLVMTypeOf(mask);
    if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
        return mask;
    LLVMTypeRef bits = LLVMIntTypeInContext(g->context, LLVMGetVectorSize(t));
    LLVMValueRef all = LLVMBuildBitCast(g->b, mask, bits, "");
    return LLVMBuildICmp(g->b, LLVMIntNE, all, LLVMConstInt(bits, 0, false), "");
}

branch qn__begin_branch(lower *g, LLVMValueRef condition)
{
    branch x = {.from = LLVMGetInsertBlock(g->b), .then = qn__new_block(g, "then"), .join = qn__new_block(g, "join")};
    LLVMBuildCondBr(g->b, condition, x.then, x.join);
    qn__level_open(g, true, false, false);
    LLVMPositionBuilderAtEnd(g->b, x.then);
    return x;
}

LLVMValueRef qn__end_branch(lower *g, const branch *x, LLVMValueRef value)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, x->join);
    qn__level_close(g);
    LLVMPositionBuilderAtEnd(g->b, x->join);
    if (!value)
        return NULL;
    LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(value), "");
    LLVMValueRef values[2] = {value, LLVMConstNull(LLVMTypeOf(value))};
    LLVMBasicBlockRef blocks[2] = {from, x->from};
    LLVMAddIncoming(phi, values, blocks, 2);
    return phi;
}

void qn__choose_branch(lower *g, const branch *x, LLVMValueRef *values, const LLVMValueRef *others, int n)
{
    LLVMBasicBlockRef blocks[2] = {LLVMGetInsertBlock(g->b), x->from};
    qn__end_branch(g, x, NULL);
    for (int m = 0; m < n; m++) {
        LLVMValueRef both[2] = {values[m], others[m]};
        if (both[0] == both[1])
            continue;
        values[m] = LLVMBuildPhi(g->b, LLVMTypeOf(both[0]), "");
        LLVMAddIncoming(values[m], both, blocks, 2);
    }
}
