/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow_store.c: integers that are stored narrower than they were computed, several vectors at
 * once. Where no instruction cuts lanes (target->truncates), each vector would be cut into halves
 * and packed alone; together two or four fill a register.
 */
#include "jit/lower/hooks.h"

#include <string.h>

static int register_bits(const lower *g)
{
    return 8 * g->f->target->vector_bytes;
}

/** Whether v calls the intrinsic with constant n in all lanes as its second argument. */
static bool is_limit(LLVMValueRef v, const char *name, int64_t n)
{
    if (!LLVMIsAIntrinsicInst(v) ||
        LLVMGetIntrinsicID(LLVMGetCalledValue(v)) != LLVMLookupIntrinsicID(name, strlen(name)))
        return false;
    return LLVMGetOperand(v, 1) == qn__int(LLVMTypeOf(v), n);
}

/** What was limited to integers of so many bits before it was cut, or NULL: packing limits to the
 * same. */
static LLVMValueRef limited(LLVMValueRef v, int bits, bool is_signed)
{
    int64_t low = is_signed ? -(INT64_C(1) << (bits - 1)) : 0,
            high = (INT64_C(1) << (bits - is_signed)) - 1;
    LLVMValueRef above = is_limit(v, "llvm.smin", high) ? LLVMGetOperand(v, 0) : NULL;
    return above && is_limit(above, "llvm.smax", low) ? LLVMGetOperand(above, 0) : NULL;
}

/** The wide integers that a stored vector was cut from, a whole register; or NULL. */
static LLVMValueRef wide_of(const lower *g, LLVMValueRef v)
{
    LLVMValueRef wide = LLVMIsATruncInst(v) ? LLVMGetOperand(v, 0) : NULL;
    bool is_vector = wide && qn__is_vector(wide);
    unsigned bits = is_vector ? LLVMGetIntTypeWidth(LLVMGetElementType(LLVMTypeOf(wide))) : 0;
    return (bits == 16 || bits == 32) && bits * (unsigned)g->width == (unsigned)register_bits(g)
               ? wide
               : NULL;
}

/** Whether the lanes of a part are side by side, and `n` parts each, of so many bytes. */
static bool are_parts_together(lower *g, uint32_t i, int64_t bytes, int n)
{
    address x, first;
    FOR_PARTS (g, p) {
        const int ahead = p_u % n;
        qn__make_address(g, i, p, NULL, &x);
        qn__make_address(g, i, p - ahead * g->jam_max, NULL, &first);
        if (x.kind != ADDRESS_UNIT || x.pointer != first.pointer ||
            qn__wrap_sub(x.constant, first.constant) != ahead * bytes)
            return false;
    }
    return true;
}

/** Whether store i is of narrow integers, for all lanes of all parts, to elements side by side. */
static bool may_join(lower *g, uint32_t i)
{
    int dtype = qn__access_dtype(g->k, i), bits = qn__dtype_width(dtype);
    if (g->f->target->truncates || !g->hooks->pack || !qn__is_integer(dtype) || bits > 16 ||
        qn__is_tested(g, i) || (g->k->param[g->k->inst[i].imm].traits & QN_ATOMIC) ||
        bits * g->width >= register_bits(g) || g->unroll % (register_bits(g) / (bits * g->width)))
        return false;
    FOR_PARTS (g, p)
        if (g->mask[p] || g->tail_mask[p])
            return false;
    return are_parts_together(g, i, bits / 8 * g->width, register_bits(g) / (bits * g->width));
}

int qn__stored_together(lower *g, uint32_t i, uint32_t value)
{
    if (g->a.value[value].shape != QN_VARYING || !may_join(g, i))
        return 1;
    FOR_PARTS (g, p)
        if (!wide_of(g, qn__vector(g, value, p)))
            return 1;
    return register_bits(g) / (qn__dtype_width(qn__access_dtype(g->k, i)) * g->width);
}

/** The parts of `n` vectors from part p on, as wide integers that packing makes the stored ones;
 * whether as signed ones. */
static bool unpacked(lower *g, uint32_t value, int p, int n, int dtype, LLVMValueRef *v)
{
    int bits = qn__dtype_width(dtype);
    bool is_signed = qn__dtype_class(dtype) == QN_CLASS_S, are_limited = true;
    for (int u = 0; u < n; u++) {
        v[u] = wide_of(g, qn__vector(g, value, p + u * g->jam_max));
        are_limited = are_limited && limited(v[u], bits, is_signed);
    }
    for (int u = 0; u < n; u++) {
        LLVMValueRef low = qn__int(LLVMTypeOf(v[u]), (INT64_C(1) << bits) - 1);
        v[u] = are_limited ? limited(v[u], bits, is_signed) : LLVMBuildAnd(g->b, v[u], low, "");
    }
    return are_limited && is_signed;
}

LLVMValueRef qn__pack_vectors(lower *g, uint32_t i, int p, uint32_t value, int n)
{
    LLVMValueRef v[4];
    int dtype = qn__access_dtype(g->k, i);
    bool is_signed = unpacked(g, value, p, n, dtype, v);
    return g->hooks->pack(g, v, n, qn__dtype_width(dtype), is_signed);
}
