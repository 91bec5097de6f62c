/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.h: private to the lowering: several iterations in one thread of a grid. Each part is a
 * scalar.
 */
#ifndef QN_JIT_LLVM_WIDE_H
#define QN_JIT_LLVM_WIDE_H

#include "jit/lower/lower.h"

/** How far this thread's first iteration is from where threads begin, and how far the domain's end:
 * along the lanes (grid->wide_dim) and the jammed dimension. Both i32 or both i64. */
typedef struct thread_place {
    LLVMValueRef ahead[2], extent[2];
} thread_place;

/** Elements in memory that one instruction moves, up to 16 bytes. In registers those of 4 and 8
 * bytes are a vector, smaller ones parts of words. */
typedef struct bundle {
    LLVMTypeRef element;
    int bytes, n; /* of an element */
} bundle;
/** Makes a bundle of elements. */
LLVMValueRef qn__bundle(lower *g, bundle b, const LLVMValueRef *value);
/** Loads a bundle, which is aligned, as elements. */
void qn__load_bundle(lower *g, bundle b, LLVMValueRef pointer, LLVMValueRef *out);

/** What the address of an access of a thread of a grid is known to be a multiple of, up to 16
 * bytes: the code generator joins accesses that follow one another. */
unsigned qn__wide_align(lower *g, uint32_t i, const address *x);
/** At the begin of the body: loads what can be loaded before anything else. */
void qn__wide_begin(lower *g);
/** All parts of a load or store; false if it is to be done as usual. */
bool qn__wide_load(lower *g, uint32_t i);
/** Stores that follow may be done with it: nothing is left to be done for them then. */
bool qn__wide_store(lower *g, uint32_t i);
/** Emits `point` for points [first, first + n) of dimension d of a reduce, counted from the index
 * that is set; where a thread computes several rows, what the points load is loaded before all of
 * them. */
void qn__wide_points(lower *g, const reduction *r, int d, int first, int n,
                     void (*point)(lower *g, void *arg), void *arg);
/** Emits the body for all iterations of this thread, at least one of which is in the domain. The
 * indices of the tiled dimensions are set to the thread's first. */
void qn__wide_unit(lower *g, const thread_place *at, void (*body)(lower *g, void *arg), void *arg);

#endif
