/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flat.h: private to the lowering: stores of members that are computed alike, in the order of
 * memory (analysis/flat.h).
 */
#ifndef QN_JIT_LLVM_FLAT_H
#define QN_JIT_LLVM_FLAT_H

#include "jit/lower/lower.h"

/** Store i of a flat group: where it is the last one, computes and stores all members. */
void qn__store_flat(lower *g, uint32_t i);

#endif
