/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.h: the passes that turn modules into code, made once for a target machine. One thread at a
 * time.
 */
#ifndef QN_JIT_LLVM_PASSES_H
#define QN_JIT_LLVM_PASSES_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <stddef.h>

typedef struct qn_passes qn_passes;

/** For a machine that must outlive them, to object bytes or assembly text; NULL without memory, or
 * if it has no such format. `not_for_large`: as in qn_hooks. */
qn_passes *qn__passes_new(LLVMTargetMachineRef machine, int is_text,
                          const char *const *not_for_large);
/** Runs them on a module, which is used up; of a large one, those that pay there. *bytes is good
 * until the next run, and a zero follows the n bytes. */
void qn__passes_run(qn_passes *p, LLVMModuleRef module, int is_large, const char **bytes,
                    size_t *n);
/** NULL is ignored. */
void qn__passes_free(qn_passes *p);

#endif
