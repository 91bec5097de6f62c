/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aarch64.c: what code for AArch64 has of its own, which is nothing but how LLVM is told of it:
 * LLVM finds the instructions of NEON by itself. In the tiny code model, code and constants reach
 * each other within 1 MiB by single instructions, whatever the address of the blob is; the small
 * one would need a blob whose page offset is known.
 */
#include "jit/target/target.h"

#include <llvm-c/Target.h>

static void initialize(void)
{
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

/* Nothing: cpu and features of the target machine hold for all functions, and nothing is tuned. */
static void add_attributes(LLVMValueRef function, const qn_target *target, const char *tune)
{
    (void)function;
    (void)target;
    (void)tune;
}

const qn_hooks qn__aarch64_hooks = {
    .same_i64 = "=r,0",
    .code_model = LLVMCodeModelTiny,
    .initialize = initialize,
    .attributes = add_attributes,
    .open = qn__lower_open,
    .run = qn__lower_run,
};
