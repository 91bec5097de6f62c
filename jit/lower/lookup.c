/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookup.c: lookups in constant arrays. In lanes a small array is a permutation of registers
 * (lower/table.c), a larger one a gather from constants behind the code, or without AVX-512 a load
 * for each lane; a scalar is loaded from there. On a GPU an index that all threads share loads from
 * constant memory; one that differs loads from global memory, since constant memory gives the
 * threads of a warp one address after the other. An index that may be outside is clamped first.
 * Elements below 32 bits stand in 32, since nothing gathers less.
 */
#include "jit/lower/hooks.h"

#include <stdio.h>


LLVMTypeRef qn__array_element_type(const lower *g, const qn_elements *a)
{
    return qn_dtype_bytes(a->dtype) < 4 ? g->i32 : qn__scalar_type(g, a->dtype);
}

LLVMValueRef qn__array_element(const lower *g, const qn_elements *a, int64_t i)
{
    return qn_dtype_bytes(a->dtype) < 4 ? LLVMConstInt(g->i32, a->bits[i] & 0xffffffffu, false)
                                        : qn__const_bits(g, a->dtype, a->bits[i]);
}

/** The constants that lookup i looks in. */
static LLVMValueRef global_of(lower *g, uint32_t i)
{
    uint64_t n = g->k->inst[i].imm;
    const qn_elements *a = g->k->array[n];
    bool is_shared = g->a.value[qn__args(g->k, i)[0]].deps == 0;
    unsigned space = g->hooks->constant_space[is_shared];
    char name[32];
    snprintf(name, sizeof name,
             space != g->hooks->constant_space[true] ? "qn_table%d" : "qn_array%d", (int)n);
    LLVMValueRef found = LLVMGetNamedGlobal(g->module, name);
    if (found)
        return found;
    LLVMTypeRef element = qn__array_element_type(g, a),
                type = LLVMArrayType2(element, (uint64_t)a->n);
    LLVMValueRef *values = qn__alloc((size_t)a->n * sizeof *values);
    found = LLVMAddGlobalInAddressSpace(g->module, type, name, space);
    for (int e = 0; values && e < a->n; e++)
        values[e] = qn__array_element(g, a, e);
    LLVMSetInitializer(found, values ? LLVMConstArray2(element, values, (uint64_t)a->n)
                                     : LLVMConstNull(type));
    g->failed = g->failed || !values;
    qn__free(values);
    LLVMSetLinkage(found, LLVMInternalLinkage);
    LLVMSetGlobalConstant(found, true);
    LLVMSetAlignment(found, LINE_BYTES);
    return found;
}

/** An element as it stands in memory, as a value. */
static LLVMValueRef from_memory(lower *g, const qn_elements *a, LLVMValueRef v)
{
    return qn_dtype_bytes(a->dtype) >= 4
               ? v
               : LLVMBuildTrunc(g->b, v, qn__as_many(qn__scalar_type(g, a->dtype), v), "");
}

/** Loads one by one. Lookups at one index share the lanes that are taken out of the index; gathers
 * that LLVM turns into loads take the lanes out of addresses, which differ. */
static LLVMValueRef load_lanes(lower *g, uint32_t i, LLVMValueRef index)
{
    LLVMTypeRef element = qn__array_element_type(g, qn__array_of(g->k, i));
    LLVMValueRef all = LLVMConstNull(qn__vector_of(g, element));
    for (unsigned lane = 0; lane < LLVMGetVectorSize(LLVMTypeOf(all)); lane++) {
        LLVMValueRef at = LLVMConstInt(g->i32, lane, false);
        LLVMValueRef wide =
            LLVMBuildSExt(g->b, LLVMBuildExtractElement(g->b, index, at, ""), g->i64, "");
        LLVMValueRef pointer = qn__gep(g, element, global_of(g, i), wide);
        all = LLVMBuildInsertElement(g->b, all, LLVMBuildLoad2(g->b, element, pointer, ""), at, "");
    }
    return all;
}

static LLVMValueRef gather(lower *g, uint32_t i, LLVMValueRef index)
{
    const qn_elements *a = qn__array_of(g->k, i);
    LLVMTypeRef element = qn__array_element_type(g, a), t = qn__vector_of(g, element);
    if (!g->f->target->has_gathers)
        return load_lanes(g, i, index);
    LLVMValueRef wide = LLVMBuildSExt(g->b, index, qn__vector_of(g, g->i64), "");
    LLVMValueRef pointers = qn__gep(g, element, global_of(g, i), wide);
    LLVMValueRef all = qn__const_splat(g, LLVMConstInt(g->i1, 1, false));
    unsigned align = element == g->i32 ? 4 : (unsigned)qn_dtype_bytes(a->dtype);
    return qn__load_masked(g, t, pointers, align, all);
}

/** The index between the first and the last element. */
static LLVMValueRef clamp(lower *g, LLVMValueRef index, int n)
{
    LLVMTypeRef t = LLVMTypeOf(index);
    LLVMValueRef zero = LLVMConstNull(t), last = qn__constant_like(t, qn__const_i64(g, n - 1));
    LLVMValueRef high =
        LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, index, last, ""), index, last, "");
    return LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSGT, high, zero, ""), high, zero, "");
}

LLVMValueRef qn__lookup_index(lower *g, uint32_t i, int p)
{
    uint32_t index = qn__args(g->k, i)[0];
    if (g->width == 1 || g->a.value[i].shape != QN_VARYING)
        return qn__scalar(g, index, p);
    return qn__is_lookup_proved(g->k, i) ? qn__vector_bits(g, index, p, 32)
                                         : qn__vector(g, index, p);
}

LLVMValueRef qn__lower_lookup(lower *g, uint32_t i, LLVMValueRef index)
{
    const qn_elements *a = qn__array_of(g->k, i);
    bool is_vector = qn__is_vector(index);
    if (!qn__is_lookup_proved(g->k, i))
        index = clamp(g, index, a->n);
    if (is_vector) {
        LLVMTypeRef narrow = LLVMVectorType(g->i32, LLVMGetVectorSize(LLVMTypeOf(index)));
        if (LLVMTypeOf(index) != narrow)
            index = LLVMBuildTrunc(g->b, index, narrow, "");
        LLVMValueRef permuted = qn__permute_array(g, a, index);
        return from_memory(g, a, permuted ? permuted : gather(g, i, index));
    }
    LLVMTypeRef element = qn__array_element_type(g, a);
    LLVMValueRef pointer = qn__gep(g, element, global_of(g, i), index);
    return from_memory(g, a, LLVMBuildLoad2(g->b, element, pointer, ""));
}
