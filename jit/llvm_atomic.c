/* SPDX-License-Identifier: Apache-2.0 */
/*
 * llvm_atomic.c: atomic operations, relaxed. Lanes take their turns in order; what the machine cannot do in one
 * instruction is a loop around compare-exchange.
 */
#include "jit/llvm_team.h"

/* ---------------------------------------------------------------- atomics */

/** A value as the integer that stands in memory, and back. Of a bool any byte but 0 is true. */
static LLVMValueRef as_bits(lower *g, int dtype, LLVMValueRef v)
{
    if (dtype == QN_BOOL)
        return qn__lower_bitcast(g, QN_U8, dtype, v);
    LLVMTypeRef t = LLVMIntTypeInContext(g->context, (unsigned)(8 * qn_dtype_bytes(dtype)));
    return qn__dtype_class(dtype) == QN_CLASS_F ? LLVMBuildBitCast(g->b, v, t, "") : v;
}

static LLVMValueRef from_bits(lower *g, int dtype, LLVMValueRef v)
{
    if (dtype == QN_BOOL)
        return qn__lower_bitcast(g, dtype, QN_U8, v);
    return qn__dtype_class(dtype) == QN_CLASS_F ? LLVMBuildBitCast(g->b, v, qn__scalar_type(g, dtype), "") : v;
}

/** The bits that were there, and whether they were the expected ones. */
static LLVMValueRef exchange_compare(lower *g, LLVMValueRef pointer, LLVMValueRef expected, LLVMValueRef v)
{
    return LLVMBuildAtomicCmpXchg(g->b, pointer, expected, v, LLVMAtomicOrderingMonotonic, LLVMAtomicOrderingMonotonic,
                                  false);
}

/** f16 and bf16 are combined in f32 and rounded once, as everywhere. */
static LLVMValueRef combine_values(lower *g, int combine, int dtype, LLVMValueRef old, LLVMValueRef v)
{
    if (!qn__is_half(dtype))
        return qn__lower_combine(g, combine, dtype, old, v);
    LLVMValueRef x = qn__lower_cast(g, QN_F32, dtype, old), y = qn__lower_cast(g, QN_F32, dtype, v);
    return qn__lower_cast(g, dtype, QN_F32, qn__lower_combine(g, combine, QN_F32, x, y));
}

/** What no instruction does, floats and bool: a loop around compare-exchange with the op table's meaning. */
static LLVMValueRef combine_by_exchange(lower *g, int combine, int dtype, LLVMValueRef pointer, LLVMValueRef v)
{
    LLVMTypeRef t = LLVMTypeOf(as_bits(g, dtype, v));
    LLVMValueRef first = LLVMBuildLoad2(g->b, t, pointer, "");
    LLVMSetAlignment(first, (unsigned)qn_dtype_bytes(dtype));
    qn__make_relaxed(g, first);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b), again = qn__new_block(g, "again"), done = qn__new_block(g, "done");
    LLVMBuildBr(g->b, again);
    LLVMPositionBuilderAtEnd(g->b, again);
    LLVMValueRef old = LLVMBuildPhi(g->b, t, "");
    LLVMValueRef sum = combine_values(g, combine, dtype, from_bits(g, dtype, old), v);
    LLVMValueRef pair = exchange_compare(g, pointer, old, as_bits(g, dtype, sum));
    LLVMValueRef found = LLVMBuildExtractValue(g->b, pair, 0, "");
    LLVMValueRef values[2] = {first, found};
    LLVMBasicBlockRef blocks[2] = {before, LLVMGetInsertBlock(g->b)};
    LLVMAddIncoming(old, values, blocks, 2);
    LLVMBuildCondBr(g->b, LLVMBuildExtractValue(g->b, pair, 1, ""), done, again);
    LLVMPositionBuilderAtEnd(g->b, done);
    return from_bits(g, dtype, found);
}

/** One atomic operation on one element; the old value. */
static LLVMValueRef atomic_scalar(lower *g, uint32_t i, LLVMValueRef pointer, LLVMValueRef v, LLVMValueRef expected)
{
    int dtype = g->k->inst[i].type, combine = g->k->inst[i].sub;
    bool is_signed = qn__dtype_class(dtype) == QN_CLASS_S, is_float = qn__dtype_class(dtype) == QN_CLASS_F;
    if (combine == QN_COMBINE_COMPARE_EXCHANGE) {
        LLVMValueRef pair = exchange_compare(g, pointer, as_bits(g, dtype, expected), as_bits(g, dtype, v));
        return from_bits(g, dtype, LLVMBuildExtractValue(g->b, pair, 0, ""));
    }
    bool is_native = g->p->is_gpu && combine == QN_COMBINE_SUM && dtype == QN_F64; /* that of f32 flushes to zero */
    if (is_native)
        return LLVMBuildAtomicRMW(g->b, LLVMAtomicRMWBinOpFAdd, pointer, v, LLVMAtomicOrderingMonotonic, false);
    if ((is_float || dtype == QN_BOOL) && combine != QN_COMBINE_EXCHANGE)
        return combine_by_exchange(g, combine, dtype, pointer, v);
    static const LLVMAtomicRMWBinOp ops[QN_N_COMBINES] = {
        [QN_COMBINE_SUM] = LLVMAtomicRMWBinOpAdd, [QN_COMBINE_MIN] = LLVMAtomicRMWBinOpMin,
        [QN_COMBINE_MAX] = LLVMAtomicRMWBinOpMax, [QN_COMBINE_AND] = LLVMAtomicRMWBinOpAnd,
        [QN_COMBINE_OR] = LLVMAtomicRMWBinOpOr,   [QN_COMBINE_XOR] = LLVMAtomicRMWBinOpXor,
        [QN_COMBINE_EXCHANGE] = LLVMAtomicRMWBinOpXchg,
    };
    LLVMAtomicRMWBinOp op = ops[combine];
    if (!is_signed && combine == QN_COMBINE_MIN)
        op = LLVMAtomicRMWBinOpUMin;
    if (!is_signed && combine == QN_COMBINE_MAX)
        op = LLVMAtomicRMWBinOpUMax;
    LLVMValueRef old = LLVMBuildAtomicRMW(g->b, op, pointer, as_bits(g, dtype, v), LLVMAtomicOrderingMonotonic, false);
    return from_bits(g, dtype, old);
}

/** One lane after the other, in order; lanes that are not active give zero. */
static LLVMValueRef atomic_lanes(lower *g, uint32_t i, int p, const check *c)
{
    const qn_inst *inst = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    int n = qn__n_indices(g->k, i);
    LLVMValueRef mask = qn__access_mask(g, i, p, c), v = qn__vector(g, arg[n], p);
    LLVMValueRef expected = inst->n_args > n + 1 ? qn__vector(g, arg[n + 1], p) : NULL;
    address x;
    qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
    qn__displace(g, &x);
    LLVMValueRef pointers = qn__lane_pointers(g, &x), zero = LLVMConstNull(LLVMTypeOf(v)), all;
    loop l;
    LLVMValueRef phi, next;
    qn__loop_open(g, &l, qn__const_i64(g, 0), qn__const_i64(g, g->width), 1, false, false, 1, &zero, &phi);
    LLVMValueRef active = mask ? LLVMBuildExtractElement(g->b, mask, l.index, "") : NULL;
    branch then = {0};
    if (active)
        then = qn__begin_branch(g, active);
    LLVMValueRef old = atomic_scalar(g, i, LLVMBuildExtractElement(g->b, pointers, l.index, ""),
                                     LLVMBuildExtractElement(g->b, v, l.index, ""),
                                     expected ? LLVMBuildExtractElement(g->b, expected, l.index, "") : NULL);
    if (active)
        old = qn__end_branch(g, &then, old);
    next = LLVMBuildInsertElement(g->b, phi, old, l.index, "");
    qn__loop_close(g, &l, &next, &all);
    return all;
}

static LLVMValueRef atomic_single(lower *g, uint32_t i, int p, const check *c)
{
    const qn_inst *inst = &g->k->inst[i];
    const uint32_t *arg = qn__args(g->k, i);
    int n = qn__n_indices(g->k, i);
    LLVMValueRef v = qn__scalar(g, arg[n], p);
    LLVMValueRef expected = inst->n_args > n + 1 ? qn__scalar(g, arg[n + 1], p) : NULL;
    LLVMValueRef condition = c->is_needed ? qn__mask_and(g, g->mask[p], c->ok) : g->mask[p];
    branch then = {0};
    condition = qn__mask_and(g, condition, qn__team_begin(g));
    if (condition)
        then = qn__begin_branch(g, condition);
    address x;
    qn__make_address(g, i, p, c->is_clamped ? c->position : NULL, &x);
    qn__displace(g, &x);
    LLVMValueRef old = atomic_scalar(g, i, x.pointer, v, expected);
    if (condition)
        old = qn__end_branch(g, &then, old);
    qn__team_end(g);
    return g->is_team ? qn__team_same(g, old) : old;
}

void qn__lower_atomic(lower *g, uint32_t i)
{
    FOR_PARTS(g, p)
    {
        check c = qn__make_check(g, i, p);
        qn__report(g, i, p, &c);
        qn__set(g, i, p, g->width == 1 ? atomic_single(g, i, p, &c) : atomic_lanes(g, i, p, &c), g->depth);
    }
}
