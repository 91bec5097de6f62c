/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.h: private to the lowering: sums in register tiles, whose loads go through shared memory.
 */
#ifndef QN_JIT_LLVM_PRODUCT_H
#define QN_JIT_LLVM_PRODUCT_H

#include "jit/target/nvptx/nvptx.h"

/** Shared memory for the tile of a product. */
int32_t qn__product_bytes(const qn_kernel *k, const qn_grid *p);
/** Blocks that a multiprocessor should have registers for. */
int qn__product_blocks(const qn_kernel *k, const qn_grid *p);
/** Emits one tile of the dimensions axis[0] and stage_dim, which begins at (low_x, low_y): its
 * sums, and the body for each iteration. The other indices are set. */
void qn__product_tile(lower *g, LLVMValueRef low_x, LLVMValueRef low_y,
                      void (*body)(lower *g, void *arg), void *arg);

#endif
