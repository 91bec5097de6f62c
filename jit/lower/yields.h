/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yields.h: what regions end with, on its way to the instructions that receive it. Private to the
 * lowering of control flow: lower/control.c (regions, loops over the domain, `if`) and
 * lower/loops.c and lower/while.c (`for` and `while`).
 */
#ifndef QN_JIT_LLVM_YIELDS_H
#define QN_JIT_LLVM_YIELDS_H

#include "jit/lower/lower.h"

/** Values of one region's end: [n * MOST_PARTS + p]. Only canonical parts of the receiving
 * instruction are set. */
typedef struct yields {
    LLVMValueRef *value;
    uint32_t receiver[QN_MAX_CARRIED]; /* result or carried instruction, 0: nobody */
    int n;
} yields;

static inline LLVMValueRef *slot_of(const yields *y, int n, int p)
{
    return &y->value[(size_t)n * MOST_PARTS + (size_t)p];
}

/** For n values; false if memory runs out. qn__free(y->value) releases it. */
bool qn__yields_new(lower *g, yields *y, int n);
/** The `result` instructions that follow instruction i. */
void qn__find_results(const qn_kernel *k, uint32_t i, yields *y);
/** For the n results of instruction i, in two versions; false if memory runs out. */
bool qn__results_new(lower *g, uint32_t i, int n, yields *a, yields *b);
/** Whether the receiver of a value takes one for each lane. */
bool qn__wants_vector(const lower *g, uint32_t receiver);
/** Reads the operands of a yield in the shape of their receivers. */
void qn__collect(lower *g, yields *y, const uint32_t *operand);
/** Joins what the two pieces of a choice that has ended have left for the same receivers. */
void qn__join_yields(lower *g, const yields *then, const yields *other, const branch *x);
/** Whether any lane of any part is active, as i1. */
LLVMValueRef qn__any_part(lower *g);

/* ---- lower/loops.c */
void qn__lower_for(lower *g, uint32_t i);
/** Collects what loop i carries into its first trip; false without memory. */
bool qn__open_carried(lower *g, uint32_t i, yields *y);
/** Values become those of receivers, or of the results of loop i. */
void qn__set_yields(lower *g, const yields *y, const uint32_t *receiver);
void qn__set_results(lower *g, const yields *y, uint32_t i);
/** Trips of a `for`, scalars or vectors. */
LLVMValueRef qn__count_trips(lower *g, LLVMValueRef begin, LLVMValueRef end, int64_t step);
LLVMValueRef qn__index_of_trip(lower *g, LLVMValueRef begin, LLVMValueRef trip, int64_t step);
/** Sets the index of a loop, by part; is_vector: v[p] are vectors. */
void qn__set_trip_index(lower *g, uint32_t index, LLVMValueRef *v, bool is_vector);
/** Whether the trips of loop i may be lanes. */
bool qn__has_trip_lanes(const lower *g, uint32_t i);

/* ---- lower/trip_lanes.c */
/** Trips 0 to n of a `for` in the lanes; is_whole: they are whole steps. carried: what the loop
 * carries, before and then behind them. */
void qn__lanes_trips(lower *g, uint32_t i, LLVMValueRef n, bool is_whole, yields *carried);
/** The first trips of a `while` in the lanes, `most` at most, while all go on: how many ran. */
LLVMValueRef qn__lanes_while(lower *g, uint32_t i, LLVMValueRef most, yields *carried);

/* ---- lower/while.c */
void qn__lower_while(lower *g, uint32_t i);
/** A `for` whose trips differ between lanes. */
void qn__lower_divergent_for(lower *g, uint32_t i);
/** The `if` whose result alone ends the region [begin, end), and is false where the condition of
 * the `if` is; 0: there is none. */
uint32_t qn__last_condition(const lower *g, uint32_t begin, uint32_t end);

/* ---- lower/version.c */
/** Whether `for` i runs ahead of its checks where loads are waited for: it does nothing but load
 * and compute, so that nothing is lost if it is run again with checks. Its first version notes in
 * g->in_range whether they would have held, and loads another element where one does not. */
bool qn__runs_ahead(const lower *g, uint32_t i);
/** Whether reduce i may run ahead of its checks in the same way, as i1: views have elements; NULL:
 * it has no checks, or may not. */
LLVMValueRef qn__ahead_of_points(lower *g, uint32_t i);
/** Whether all accesses of a `for` that are made at its index are in range, and it does not end
 * before it begins, as i1; they are entered in g->covered. NULL: there are none, or two versions of
 * the loop are not worth it. */
LLVMValueRef qn__cover(lower *g, uint32_t i);
void qn__uncover(lower *g, uint32_t i);

#endif
