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

/* ---- lower/weave_memory.c: units, which are integers, and registers and chunks of them in memory
 */
enum { QN_MOST_UNITS = 64, QN_MOST_REGISTERS = 16 };

/** A vector of n integers of so many bytes. */
LLVMTypeRef qn__units(const lower *g, int bytes, int n);
/** The bits of a vector as n units of so many bytes. */
LLVMValueRef qn__as_units(lower *g, LLVMValueRef v, int bytes, int n);
/** `n` elements of `unit` bytes from byte `at` on. */
LLVMValueRef qn__load_plain(lower *g, const woven *x, int at, int unit, int n);
void qn__store_plain(lower *g, const woven *x, int at, LLVMValueRef v);
/** Chunk c as 16 bytes. Where reading on would end beyond the last lane, it begins earlier. */
LLVMValueRef qn__load_chunk(lower *g, const woven *x, int c);
/** What lies behind a chunk inside the step is stored later. */
void qn__store_chunk(lower *g, const woven *x, int c, LLVMValueRef v);
/** Register r, as units: of chunks their bytes are sorted. Lanes that are counted, or elements that
 * are not its own, are masked. */
LLVMValueRef qn__load_register(lower *g, const woven *x, int r);
void qn__store_register(lower *g, const woven *x, int r, LLVMValueRef v);
/** Units of a register. */
int qn__weave_units(const qn_weave *w);
/** Sorts the bytes of each chunk by place, or back. */
LLVMValueRef qn__sort_chunks(lower *g, const qn_weave *w, LLVMValueRef v, int bytes,
                             bool is_load);

#endif
