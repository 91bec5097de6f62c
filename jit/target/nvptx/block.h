/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h: private to the lowering: reduces that are shared by the threads of a block of a GPU.
 */
#ifndef QN_JIT_LLVM_BLOCK_H
#define QN_JIT_LLVM_BLOCK_H

#include "jit/target/nvptx/nvptx.h"

/** The reduces, then the body for each iteration, for the tile of dimension axis[0] that begins at
 * `low`. */
void qn__block_tile(lower *g, LLVMValueRef low, void (*body)(lower *g, void *arg), void *arg);
/** What qn__block_tile emits, in two kernels: the first does block `number` of 4096 points of the
 * tile, the second the rest. `tile` is the tile's number, of `tiles`; i64. */
void qn__block_first(lower *g, LLVMValueRef low, LLVMValueRef tiles, LLVMValueRef tile,
                     LLVMValueRef number);
void qn__block_second(lower *g, LLVMValueRef low, LLVMValueRef tiles, LLVMValueRef tile,
                      void (*body)(lower *g, void *arg), void *arg);

/** Shared memory before the buffers for the values of reduces, where other threads than the one
 *  that added them need them; else 0. */
int64_t qn__block_value_bytes(const lower *g);
/** The value of a reduce for an iteration of the tile, which stands in shared memory. */
LLVMValueRef qn__block_value(lower *g, uint32_t reduce, LLVMValueRef iteration);

/** One reduce for the tile, or block `number` of its points (NULL: all): the fold from the identity
 * on, in the first threads (target/nvptx/block_fold.c, block_add.c). */
LLVMValueRef qn__block_fold(lower *g, uint32_t reduce, LLVMValueRef low, LLVMValueRef number);

#endif
