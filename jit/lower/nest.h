/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nest.h: private to the lowering: loops over steps of a dimension (lower/nest.c, lower/lanes.c),
 * those of a schedule (lower/walk.c), and those that call the parts of a piece.
 */
#ifndef QN_JIT_LLVM_NEST_H
#define QN_JIT_LLVM_NEST_H

#include "jit/lower/lower.h"

/** The loop over a dimension, or over steps of it. */
typedef struct steps {
    int d;
    span all;          /* what of the dimension is run */
    bool is_inner;     /* loops are around */
    bool may_be_short; /* `all` may be less than the dimension */
    bool may_be_empty; /* `all` may have no iteration, though the dimension has some */
    /** Emits what one iteration, or a step, runs; the index is set. */
    void (*inside)(lower *g, const struct steps *of);
    /** Sets the index, and those of all loops inside, to the first. */
    void (*first)(lower *g, const struct steps *of);
} steps;

/** [low, high) in steps; high - low is a multiple of step. */
void qn__nest_over(lower *g, const steps *of, span s, int64_t step, bool guarded);
/** qn__nest_over of a range that has at most `most` indices. */
void qn__nest_some(lower *g, const steps *of, span s, int64_t step, bool guarded, int64_t most);
/** One step at `first`, if middle != high; no branch where that is known. */
void qn__nest_once(lower *g, const steps *of, LLVMValueRef middle, LLVMValueRef high,
                   LLVMValueRef first);
/** Steps that cover [low, high), which is longer than one; the last one begins so early that it
 * ends at high. */
void qn__steps_overlap(lower *g, const steps *of, span s, int64_t step);
/** Whole steps of a dimension of which several iterations are jammed, and what is left of them:
 * `rest` iterations at once, 0: none, -1: not known, one by one. */
void qn__nest_jammed(lower *g, const steps *of, int64_t step, int64_t rest, bool guarded);
/** Fewer iterations than a step has, whose number is not known: in powers of two, each once or not
 * at all, by the jammed iterations that are emitted now. */
void qn__rest_in_halves(lower *g, const steps *of, span s, int64_t step);
/** The loop over the lanes (lower/lanes.c). */
void qn__nest_lanes(lower *g, const steps *of);
/** Begins the loop over s of a sequential dimension: g->recurrence.n values are carried through it.
 */
void qn__recurrence_open(lower *g, int d, span s, bool guarded);
/** The step that was emitted becomes the one before. */
void qn__recurrence_step(lower *g);
/** Whole steps of the lanes; `streaming`: STREAM_... */
void qn__lanes_whole(lower *g, const steps *of, span s, bool guarded, int streaming);
/** Lanes of a range shorter than `step`: under masks, or one by one. */
void qn__lanes_rest(lower *g, const steps *of, span s, int64_t step);
/** high - (high - low) mod step */
LLVMValueRef qn__whole_steps(lower *g, span s, int64_t step);
/** Opens the loop over pieces of `size` iterations of s, the last of which may be shorter: how many
 * the piece has that begins at the index of the loop. */
LLVMValueRef qn__pieces_open(lower *g, loop *l, span s, int64_t size);
/** The piece of at most `size` iterations of [.., end) that begins at `from`. Bounds may be so
 * large that from + size is none. */
span qn__piece_at(lower *g, LLVMValueRef from, int64_t size, LLVMValueRef end);
/** Iterations of a dimension beyond the last multiple of `step`, -1 if not known. A chunk of a
 * split dimension has as many or none. */
int64_t qn__known_rest_of(const lower *g, int d, int64_t step);

/** Emits the loops of g->schedule and what is inside of them. spans[d]: what is run of dimension d,
 * which is no dimension of reduces. */
void qn__walk(lower *g, const span *spans);

/* ---- lower/fill.c */
/** Fills the buffer of a node of the schedule. of[d]: what is run of dimension d. Bit d of is_set:
 * the index of d is set. Accesses that the fill makes go to memory. */
void qn__fill(lower *g, qn_node at, const span *of, uint32_t is_set);

/** Emits what a piece with parts does, where the entry of its function, `symbol`, ends
 * (lower/distribute.c). scratch_word: where the memory that a part needs stands in the range, -1:
 * none does. */
void qn__lower_parts(lower *g, const struct qn_piece *p, const char *symbol, int scratch_word);

#endif
