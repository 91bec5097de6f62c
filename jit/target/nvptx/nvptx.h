/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvptx.h: private to the lowering: what it does differently for PTX. g->p->is_gpu says that it does.
 */
#ifndef QN_JIT_LLVM_NVPTX_H
#define QN_JIT_LLVM_NVPTX_H

#include "jit/lower/lower.h"

/** How far this thread's first iteration is from where threads begin, and how far the domain's end: along the lanes
 *  (plan->lane_dim) and the jammed dimension. Both i32 or both i64. */
typedef struct thread_place {
    LLVMValueRef ahead[2], extent[2];
} thread_place;

/** Opens the kernel of a step (0, 1): its parameter, g->slots, g->range and g->fault. Stands in its entry block then. */
void qn__nvptx_open(lower *g, const char *symbol, int step);
/** Address of the scratch memory. */
LLVMValueRef qn__nvptx_scratch(lower *g);
/** Shared memory of the block; its size is given at the launch. */
LLVMValueRef qn__nvptx_shared(lower *g);
/** All threads of the block wait for one another. */
void qn__nvptx_barrier(lower *g);
/** A special register, "tid.x", as i32 or i64. */
LLVMValueRef qn__nvptx_register(lower *g, const char *name, LLVMTypeRef t);
/** The body for first, first + step, ... below end, unsigned; i32 or i64. */
void qn__nvptx_stride(lower *g, LLVMValueRef first, LLVMValueRef end, LLVMValueRef step,
                      void (*body)(lower *g, LLVMValueRef index, void *arg), void *arg);
/** What a launch must know; block_bytes: shared memory of reduces by blocks. */
void qn__nvptx_info(const qn_kernel *k, const qn_facts *f, const qn_plan *p, int32_t block_bytes, qn_gpu_info *info);
/** Whether a dimension is divided between blocks and threads, so that no loop runs over it. */
bool qn__nvptx_is_tiled(const lower *g, int d);
/** Emits the loop over units of work and in it the body, for each thread that has an iteration, with the indices of the
 *  tiled dimensions set. low and high are the bounds of the loops of plan->order. */
void qn__nvptx_units(lower *g, const LLVMValueRef *low, const LLVMValueRef *high, void (*body)(lower *g, void *arg),
                     void *arg);
/** Combines v with the element at `pointer` in one atomic step; nobody learns what was there. False if there is no such instruction. */
bool qn__nvptx_reduce(lower *g, int combine, int dtype, LLVMValueRef pointer, LLVMValueRef v);
/** Takes the lock of the fault record or goes to `retry`; stands in `locked` then. */
void qn__nvptx_lock(lower *g, LLVMBasicBlockRef retry, LLVMBasicBlockRef locked);
void qn__nvptx_unlock(lower *g);

#endif
