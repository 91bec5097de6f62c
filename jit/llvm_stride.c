/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_stride.c: loads and stores of lanes a small constant number of elements apart. They lie in |stride| vectors: each is
 * accessed under a constant mask, so that no byte between the elements is touched, and a permutation brings the lanes
 * together.
 */
#include "jit/llvm_lower.h"

enum { MOST_STRIDE = 4 };

bool qn__is_small_stride(const lower *g, const address *x, int dtype, LLVMValueRef mask)
{
    int64_t n = x->stride < 0 ? -x->stride : x->stride;
    return x->kind == ADDRESS_LANES && !mask && n >= 2 && n <= MOST_STRIDE &&
           (g->f->isa >= QN_ISA_V4 || qn_dtype_bytes(dtype) >= 4);
}

/** Pointer of vector k; the first starts at the lowest element. */
static LLVMValueRef vector_pointer(lower *g, const address *x, int64_t bytes, int k)
{
    int64_t first = x->stride < 0 ? (g->width - 1) * x->stride * bytes : 0;
    LLVMValueRef n = qn__const_i64(g, first + (int64_t)k * g->width * bytes);
    return LLVMBuildGEP2(g->b, g->i8, x->pointer, &n, 1, "");
}

/** Lane whose element is element e of vector k, or -1. */
static int lane_of(const lower *g, const address *x, int k, int e)
{
    int n = (int)(x->stride < 0 ? -x->stride : x->stride), at = k * g->width + e;
    if (at % n)
        return -1;
    return x->stride < 0 ? g->width - 1 - at / n : at / n;
}

static LLVMValueRef elements_of(const lower *g, const address *x, int k)
{
    LLVMValueRef lane[64];
    for (int e = 0; e < g->width; e++)
        lane[e] = LLVMConstInt(g->i1, lane_of(g, x, k, e) >= 0, false);
    return LLVMConstVector(lane, (unsigned)g->width);
}

LLVMValueRef qn__load_strided(lower *g, const address *x, LLVMTypeRef t, int64_t bytes, unsigned align)
{
    int n = (int)(x->stride < 0 ? -x->stride : x->stride);
    LLVMTypeRef types[2] = {t, g->ptr};
    LLVMValueRef all = NULL;
    for (int k = 0; k < n; k++) {
        LLVMValueRef args[4] = {vector_pointer(g, x, bytes, k), LLVMConstInt(g->i32, align, false),
                                elements_of(g, x, k), LLVMConstNull(t)};
        LLVMValueRef v = qn__call(g, "llvm.masked.load", types, 2, args, 4), pick[64];
        for (int l = 0; l < g->width; l++)
            pick[l] = LLVMConstInt(g->i32, (unsigned long long)l, false);
        for (int e = 0; e < g->width; e++)
            if (lane_of(g, x, k, e) >= 0)
                pick[lane_of(g, x, k, e)] = LLVMConstInt(g->i32, (unsigned long long)(g->width + e), false);
        all = LLVMBuildShuffleVector(g->b, all ? all : v, v, LLVMConstVector(pick, (unsigned)g->width), "");
    }
    return all;
}

void qn__store_strided(lower *g, const address *x, LLVMValueRef v, int64_t bytes, unsigned align)
{
    int n = (int)(x->stride < 0 ? -x->stride : x->stride);
    LLVMTypeRef types[2] = {LLVMTypeOf(v), g->ptr};
    for (int k = 0; k < n; k++) {
        LLVMValueRef pick[64];
        for (int e = 0; e < g->width; e++) {
            int lane = lane_of(g, x, k, e);
            pick[e] = LLVMConstInt(g->i32, lane < 0 ? 0 : (unsigned long long)lane, false);
        }
        LLVMValueRef spread = LLVMBuildShuffleVector(g->b, v, LLVMConstNull(LLVMTypeOf(v)),
                                                     LLVMConstVector(pick, (unsigned)g->width), "");
        LLVMValueRef args[4] = {spread, vector_pointer(g, x, bytes, k),
                                LLVMConstInt(g->i32, align, false), elements_of(g, x, k)};
        qn__call(g, "llvm.masked.store", types, 2, args, 4);
    }
}
