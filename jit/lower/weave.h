/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weave.h: private to the lowering: members that lie between one another in memory, as vectors of
 * their own (analysis/weave.h).
 */
#ifndef QN_JIT_LLVM_WEAVE_H
#define QN_JIT_LLVM_WEAVE_H

#include "jit/analysis/weave.h"
#include "jit/lower/lower.h"

/** Where the lanes of a step lie. */
typedef struct woven {
    const qn_weave *w;
    LLVMTypeRef element;  /* in memory */
    LLVMValueRef pointer; /* to place 0 of lane 0 */
    LLVMValueRef count;   /* i64: so many lanes are active, the first ones; NULL: all */
} woven;

/** Whether a weave can be made for the first lanes alone. */
bool qn__may_count_lanes(const qn_weave *w);
/** Vectors of the places of a weave; others become NULL. */
void qn__load_woven(lower *g, const woven *x, LLVMValueRef *member);
/** Stores those of all places of a weave. */
void qn__store_woven(lower *g, const woven *x, const LLVMValueRef *member);

/* ---- lower/transpose.c */
/** q vectors of n elements: transposes each group of q elements. */
void qn__transpose_groups(lower *g, LLVMValueRef *r, int q, int n);
/** Joins a power of two of vectors of q elements; `v` is overwritten. */
LLVMValueRef qn__join_pieces(lower *g, LLVMValueRef *v, int n, int q);

#endif
