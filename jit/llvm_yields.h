/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_yields.h: what regions end with, on its way to the instructions that receive it. Private to the lowering of control
 * flow: llvm_control.c (regions, loops over the domain, `if`) and llvm_loops.c (`for` and `while`).
 */
#ifndef QN_JIT_LLVM_YIELDS_H
#define QN_JIT_LLVM_YIELDS_H

#include "jit/llvm_lower.h"

/** Values of one region's end: [n * MOST_PARTS + p]. Only canonical parts of the receiving instruction are set. */
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
/** Whether the receiver of a value takes one for each lane. */
bool qn__wants_vector(const lower *g, uint32_t receiver);
/** Reads the operands of a yield in the shape of their receivers. */
void qn__collect(lower *g, yields *y, const uint32_t *operand);
/** Joins what the two pieces of a choice that has ended have left for the same receivers. */
void qn__join_yields(lower *g, const yields *then, const yields *other, const branch *x);
/** Whether any lane of any part is active, as i1. */
LLVMValueRef qn__any_part(lower *g);

/* ---- llvm_loops.c */
void qn__lower_for(lower *g, uint32_t i);
void qn__lower_while(lower *g, uint32_t i);

/* ---- llvm_version.c */
/** Whether all accesses of a `for` that are made at its index are in range, and it does not end before it begins, as i1; they
 *  are entered in g->covered. NULL: there are none, or two versions of the loop are not worth it. */
LLVMValueRef qn__cover(lower *g, uint32_t i);
void qn__uncover(lower *g, uint32_t i);

#endif
