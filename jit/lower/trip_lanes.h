/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trip_lanes.h: steps of lanes that run over points of reduces, or over trips of loops of the body.
 * Private to lower/reduce_lanes.c and lower/trip_lanes.c.
 */
#ifndef QN_JIT_LLVM_TRIP_LANES_H
#define QN_JIT_LLVM_TRIP_LANES_H

#include "jit/lower/lower.h"

/** Values of a reduce: its accumulators, or vectors of partials by part. */
typedef LLVMValueRef sums[MOST_PARTS];

/** What the block outside of the lanes looked like. */
typedef struct outside {
    const qn_block *block;
    int width, unroll;
    LLVMValueRef mask[MOST_PARTS], tail_mask[MOST_PARTS];
} outside;
outside qn__enter_lanes(lower *g, const qn_block *block);
void qn__leave_lanes(lower *g, const outside *o);
/** Leaves the first n lanes of a step active, of those that are; i64, not above its lanes. */
void qn__keep_first(lower *g, LLVMValueRef n);
/** All lanes to one: l with l + 32, l + 16, ... First whole vectors, then halves of one. */
LLVMValueRef qn__across_lanes(lower *g, const reduction *r, LLVMValueRef *acc, int j);
/** Points of the lane dimension into acc: whole steps, then a masked one unless they are all. */
void qn__lane_range(lower *g, const reduction *r, int n_reduces, span s, bool is_whole, sums *acc);
/** Emits the trips of a step of a loop, of which g->iv has the first. acc[m]: what lanes have of
 * the values that they combine. */
void qn__lower_trips_of_step(lower *g, const reduction *r, int n_sums, sums *acc);

#endif
