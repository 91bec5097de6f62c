/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h: private to the lowering: accesses that move whole vectors together.
 */
#ifndef QN_JIT_LLVM_GROUP_H
#define QN_JIT_LLVM_GROUP_H

#include "jit/lower/lower.h"

/** Part p of load i, which has address x, out of the vectors that its group loads; the type of an
 * element in memory is t. NULL: it has no group, or is to be loaded alone. */
LLVMValueRef qn__load_grouped(lower *g, uint32_t i, int p, const address *x, LLVMTypeRef t);
/** Whether access i is made with the other members of a flat group (lower/flat.h). */
bool qn__is_flat(const lower *g, uint32_t i);
/** Whether store i was done, or will be done by a later store of its group. */
bool qn__store_grouped(lower *g, uint32_t i);
/** Sets g->lanes_are_free. */
void qn__find_lane_order(lower *g);

#endif
