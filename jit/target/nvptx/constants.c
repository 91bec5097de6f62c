/* SPDX-License-Identifier: Apache-2.0 */
/*
 * constants.c: constants of f64 as operands from constant memory. An instruction of a GPU holds 32
 * bits of a constant. A wider one takes two instructions that fill a pair of registers, which is
 * more than the arithmetic of a polynomial. From constant memory it takes one, or none in a loop.
 */
#include "jit/lower/access.h"
#include "jit/target/nvptx/nvptx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** The bits of v, a constant of f64 whose lower half is not zero, else 0. */
static uint64_t wide_bits(const lower *g, LLVMValueRef v)
{
    LLVMBool loses;
    uint64_t bits;
    if (LLVMTypeOf(v) != g->f64 || !LLVMIsAConstantFP(v))
        return 0;
    double number = LLVMConstRealGetDouble(v, &loses);
    memcpy(&bits, &number, sizeof bits);
    return (uint32_t)bits ? bits : 0;
}

/** Whether the operands of an instruction are those of an addition or a product. */
static bool is_arithmetic(LLVMValueRef x)
{
    LLVMOpcode op = LLVMGetInstructionOpcode(x);
    LLVMValueRef called = op == LLVMCall ? LLVMIsAFunction(LLVMGetCalledValue(x)) : NULL;
    return op == LLVMFAdd || op == LLVMFSub || op == LLVMFMul ||
           (called && LLVMGetIntrinsicID(called) == LLVMLookupIntrinsicID("llvm.fma", 8));
}

/** The constant in memory, loaded where the function begins. LLVM does not know its value, and
 * leaves the load. */
static LLVMValueRef load_constant(lower *g, LLVMValueRef v, uint64_t bits)
{
    char name[32];
    snprintf(name, sizeof name, "qn_f64_%016" PRIx64, bits);
    LLVMValueRef at = LLVMGetNamedGlobal(g->module, name);
    if (!at) {
        at = LLVMAddGlobalInAddressSpace(g->module, LLVMArrayType2(g->f64, 1), name,
                                         g->hooks->constant_space[true]);
        LLVMSetInitializer(at, LLVMConstArray2(g->f64, &v, 1));
        LLVMSetAlignment(at, sizeof bits);
        LLVMSetLinkage(at, LLVMInternalLinkage);
    }
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(g->function);
    LLVMPositionBuilderBefore(g->b, LLVMGetFirstInstruction(entry));
    LLVMValueRef load = LLVMBuildLoad2(g->b, g->f64, at, "");
    qn__mark_invariant(g, load);
    return load;
}

void qn__nvptx_constants(lower *g)
{
    LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(g->function), last = LLVMGetInsertBlock(g->b);
    for (; block; block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef x = LLVMGetFirstInstruction(block); x; x = LLVMGetNextInstruction(x))
            for (int n = 0; is_arithmetic(x) && n < LLVMGetNumOperands(x); n++) {
                LLVMValueRef v = LLVMGetOperand(x, (unsigned)n);
                uint64_t bits = wide_bits(g, v);
                if (bits)
                    LLVMSetOperand(x, (unsigned)n, load_constant(g, v, bits));
            }
    LLVMPositionBuilderAtEnd(g->b, last);
}
