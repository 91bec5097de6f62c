/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.h: private to the lowering: the iterations that share the reduces of a team of a GPU.
 */
#ifndef QN_JIT_LLVM_REST_H
#define QN_JIT_LLVM_REST_H

#include "jit/target/nvptx/team.h"

/** The reduces by all lanes of a warp, then what is left of the body by the lanes, each of which
 *  takes other iterations of grid->rest_dims. */
void qn__rest_of_warp(lower *g);
/** The body for all iterations of grid->rest_dims and of the tile that begins at `low`, by all
 *  threads of a block; set_values sets the values of the reduces for row number `row` of the
 *  tile. */
void qn__rest_of_block(lower *g, LLVMValueRef low, void (*set_values)(lower *g, LLVMValueRef row));

/** `one` for q = first, first + threads, ... below count, of which `threads`, a power of two,
 * threads take some each; where that may reach beyond the count, under a condition. */
void qn__share_out(lower *g, LLVMValueRef count, LLVMValueRef first, int64_t threads,
                   void (*one)(lower *g, LLVMValueRef q, LLVMValueRef condition, void *arg),
                   void *arg);

#endif
