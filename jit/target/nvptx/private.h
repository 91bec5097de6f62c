/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h: private to the lowering: atomic updates that a block collects in shared memory.
 */
#ifndef QN_JIT_LLVM_PRIVATE_H
#define QN_JIT_LLVM_PRIVATE_H

#include "jit/target/nvptx/nvptx.h"

/** Shared memory of all copies. */
int32_t qn__private_all(const qn_kernel *k, const qn_facts *f, const qn_grid *p);
/** Before the first unit of work, and behind the last. */
void qn__private_open(lower *g);
void qn__private_close(lower *g);
/** Where the element at `pointer` stands in the copy; NULL: the update goes to the view. */
LLVMValueRef qn__private_place(lower *g, uint32_t update, LLVMValueRef pointer);

#endif
