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

/* LLVM does not know the value that is loaded, and leaves the load. */
LLVMValueRef qn__nvptx_constant(lower *g, LLVMValueRef v, uint64_t bits)
{
    char name[32];
    if (LLVMTypeOf(v) != g->f64 || !(uint32_t)bits)
        return v;
    snprintf(name, sizeof name, "qn_f64_%016" PRIx64, bits);
    LLVMValueRef at = LLVMGetNamedGlobal(g->module, name);
    if (!at) {
        at = LLVMAddGlobalInAddressSpace(g->module, LLVMArrayType2(g->f64, 1), name,
                                         g->hooks->constant_space[true]);
        LLVMSetInitializer(at, LLVMConstArray2(g->f64, &v, 1));
        LLVMSetAlignment(at, sizeof bits);
        LLVMSetLinkage(at, LLVMInternalLinkage);
    }
    LLVMValueRef load = LLVMBuildLoad2(g->b, g->f64, at, "");
    qn__mark_invariant(g, load);
    return load;
}
