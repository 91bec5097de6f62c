/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvptx.h: private to the lowering: what the files of NVPTX show one another.
 */
#ifndef QN_JIT_LLVM_NVPTX_H
#define QN_JIT_LLVM_NVPTX_H

#include "jit/lower/hooks.h"

enum { QN_MOST_HELD = 64 }; /* sites of g->held for each part */

/** The hook `run`: the body for all iterations of this thread (target/nvptx/units.c). */
void qn__nvptx_run(lower *g, const span *spans);
/** Whether the body is straight code and branches of a thread that loads little: more registers
 * than its values need would only let fewer threads have loads under way. */
bool qn__nvptx_is_light(const qn_kernel *k, const qn_grid *p);
/** Units of work if the domain is exact and not empty, else 0. Merged dimensions are one here. */
int64_t qn__nvptx_units(const qn_facts *f, const qn_grid *p);
/** Whether each unit has a block of its own, so that blocks need no loop over units. */
bool qn__nvptx_has_block_for_each(const qn_kernel *k, const qn_facts *f, const qn_grid *p);
/** Address of the scratch memory. */
LLVMValueRef qn__nvptx_scratch(lower *g);
/** Shared memory of the block; its size is given at the launch. */
LLVMValueRef qn__nvptx_shared(lower *g);
/** The number of this thread in its block, i64, and how many there are. */
LLVMValueRef qn__nvptx_thread(lower *g);
int64_t qn__nvptx_threads(const qn_grid *p);
/** The hook `constant`: those of f64 that no instruction holds come from constant memory. */
LLVMValueRef qn__nvptx_constant(lower *g, LLVMValueRef v, uint64_t bits);
/** The hook `combine`. */
bool qn__nvptx_combine(lower *g, int combine, int dtype, LLVMValueRef pointer, LLVMValueRef v);
/** All threads of the block wait for one another. */
void qn__nvptx_barrier(lower *g);
/** A special register, "tid.x", as i32 or i64. */
LLVMValueRef qn__nvptx_register(lower *g, const char *name, LLVMTypeRef t);
/** The last index of dimension d at which `each` elements begin; NULL: the dimension is known to be
 * whole tiles of `side`. */
LLVMValueRef qn__last_unless(lower *g, int d, int64_t side, int64_t each);
/** Sets the index of d to v + n, no more than `last` unless that is NULL: beyond the end of a
 * dimension its last element is loaded again. */
void qn__set_clamped(lower *g, int d, LLVMValueRef v, int64_t n, LLVMValueRef last);
/** The condition under which the index of d is inside; NULL as above. */
LLVMValueRef qn__is_inside(lower *g, int d, int64_t side);
/** The body for first, first + step, ... below end, unsigned; i32 or i64. */
void qn__nvptx_stride(lower *g, LLVMValueRef first, LLVMValueRef end, LLVMValueRef step,
                      void (*body)(lower *g, LLVMValueRef index, void *arg), void *arg);
#endif
