/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h: private to the lowering: loads of PTX through shared memory.
 */
#ifndef QN_JIT_LLVM_STAGE_H
#define QN_JIT_LLVM_STAGE_H

#include "jit/target/nvptx/nvptx.h"

/** Whether load i comes from shared memory where the lowering stands. */
bool qn__is_shared(const lower *g, uint32_t i);
/** Its value for the present iteration. */
LLVMValueRef qn__staged_value(lower *g, uint32_t i);
/** Bytes of shared memory of a block. */
int32_t qn__stage_bytes(const qn_kernel *k, const qn_grid *p);
/** Emits one tile of the dimensions axis[0] and stage_dim, which begins at (low_x, low_y): loads
 * into shared memory, and the body for each iteration. The other indices are set. */
void qn__stage_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y,
                    void (*body)(lower *g, void *arg), void *arg);

/** Shared memory for the tile of a product (target/nvptx/product.c). */
int32_t qn__product_bytes(const qn_kernel *k, const qn_grid *p);
/** Blocks that a multiprocessor should have registers for. */
int qn__product_blocks(const qn_kernel *k, const qn_grid *p);
void qn__product_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y,
                      void (*body)(lower *g, void *arg), void *arg);

#endif
