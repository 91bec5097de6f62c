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
/** Shared memory of all records that a block moves. */
int32_t qn__moved_bytes(const qn_grid *p);
/** Moves the records of this block's iterations, before its threads take theirs, and behind; the
 * index of each thread is set, also of one that has no iteration. */
void qn__moved_fetch(lower *g);
void qn__moved_flush(lower *g);
/** Where the element at `pointer` stands in the copy; NULL: the access goes to the view. */
LLVMValueRef qn__place_in_block(lower *g, uint32_t update, LLVMValueRef pointer);

#endif
