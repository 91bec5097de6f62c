/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill.h: private to the lowering: loops that fill buffers of a schedule (lower/fill.c,
 * lower/fill_rows.c).
 */
#ifndef QN_JIT_LLVM_FILL_H
#define QN_JIT_LLVM_FILL_H

#include "jit/lower/nest.h"

/** A buffer that is being filled. */
typedef struct fill {
    lower *g;
    int buffer;
    uint32_t inst;        /* the load */
    qn_fill_loops how;
    bool is_whole;        /* what is run of the lanes is whole steps */
    bool has_rest;        /* accesses go through it in steps of the lanes that are not whole, too */
    span of[QN_MAX_RANK]; /* what is run of each dimension */
} fill;

/** Fills the buffer of a node of the schedule. of[d]: what is run of dimension d, of the lanes
 * whole steps if is_whole. Bit d of is_set: the index of d is set. Accesses that the fill makes go
 * to memory. */
void qn__fill(lower *g, qn_node at, const span *of, uint32_t is_set, bool is_whole);
/** Whether nodes from n on are fills, one of them over whole steps of the lanes, and nothing goes
 * through their buffers, or through those that are filled in loops behind them, but in whole steps.
 */
bool qn__fills_whole_steps(const lower *g, qn_node n);
/** Fills by transposing squares of lanes and points. */
void qn__fill_rows(fill *f);

#endif
