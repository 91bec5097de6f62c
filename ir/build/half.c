/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.c: f16 and bf16, expanded while a kernel is built, so that no engine knows arithmetic on
 * them. An op computes in f32 and rounds once; neg, abs and copysign work on the bits; casts from
 * and to other types than f32 go through f32. What is wider than f32 goes there with its last bit
 * made odd where something is lost, so that only the last step rounds.
 */
#include "ir/build/builder.h"

static uint32_t cast(qn_builder *b, const char *who, int dtype, uint32_t x)
{
    return x ? qn__append_cast(b, who, dtype, x) : 0;
}

static uint32_t bitcast(qn_builder *b, const char *who, int dtype, uint32_t x)
{
    return x ? qn__append_bitcast(b, who, dtype, x) : 0;
}

/* ---------------------------------------------------------------- ops */

/** neg, abs and copysign; 0 for other ops. */
static uint32_t append_sign_op(qn_builder *b, const char *who, int op, int type,
                               const uint32_t *args)
{
    int bits = qn__dtype_of_bits(qn_dtype_bytes(type));
    uint64_t sign_bit = UINT64_C(1) << (qn__dtype_width(type) - 1);
    uint32_t x = bitcast(b, who, bits, args[0]);
    uint32_t sign = qn__append_const(b, who, bits, sign_bit),
             rest = qn__append_const(b, who, bits, sign_bit - 1);
    if (op == QN_OP_neg)
        x = qn__op2(b, who, QN_OP_xor, x, sign);
    else
        x = qn__op2(b, who, QN_OP_and, x, rest);
    if (op == QN_OP_copysign) {
        uint32_t y = bitcast(b, who, bits, args[1]);
        x = qn__op2(b, who, QN_OP_or, x, qn__op2(b, who, QN_OP_and, y, sign));
    }
    return bitcast(b, who, type, x);
}

uint32_t qn__append_half_op(qn_builder *b, const char *who, int op, int type, const uint32_t *args)
{
    const qn_op_info *info = &qn__op_info[op];
    uint32_t wide[3] = {0};
    if (op == QN_OP_neg || op == QN_OP_abs || op == QN_OP_copysign)
        return append_sign_op(b, who, op, type, args);
    for (int i = 0; i < info->arity; i++) {
        wide[i] = cast(b, who, QN_F32, args[i]);
        if (wide[i] == 0)
            return 0;
    }
    uint32_t result = qn__append_op(b, who, op, wide);
    return info->rule == QN_RULE_COMPARE ? result : cast(b, who, type, result);
}

/* ---------------------------------------------------------------- casts */

/** An f64 as f32: exact, or next to it with an odd last bit. */
static uint32_t append_sticky_f32(qn_builder *b, const char *who, uint32_t x)
{
    uint32_t near = cast(b, who, QN_F32, x), back = cast(b, who, QN_F64, near);
    uint32_t bits = bitcast(b, who, QN_U32, near), one = qn__append_const(b, who, QN_U32, 1);
    uint32_t size = qn__op1(b, who, QN_OP_abs, x), back_size = qn__op1(b, who, QN_OP_abs, back);
    uint32_t is_larger = qn__op2(b, who, QN_OP_gt, back_size, size);
    uint32_t below = qn__op2(b, who, QN_OP_sub, bits, one);
    uint32_t odd = qn__op2(b, who, QN_OP_or, qn__choose(b, who, is_larger, below, bits), one);
    uint32_t is_exact = qn__op2(b, who, QN_OP_eq, back, x);
    uint32_t is_nan = qn__op2(b, who, QN_OP_ne, x, x);
    uint32_t keeps = qn__op2(b, who, QN_OP_or, is_exact, is_nan);
    return bitcast(b, who, QN_F32, qn__choose(b, who, keeps, bits, odd));
}

/** A 64-bit integer as f64 likewise. */
static uint32_t append_sticky_f64(qn_builder *b, const char *who, int from, uint32_t x)
{
    uint32_t zero = qn__append_const(b, who, from, 0),
             is_negative = qn__op2(b, who, QN_OP_lt, x, zero);
    uint32_t magnitude = from == QN_I64 ? qn__op1(b, who, QN_OP_abs, x) : x; /* 2^63 as u64 */
    magnitude = cast(b, who, QN_U64, magnitude);
    uint32_t low = qn__op2(b, who, QN_OP_and, magnitude, qn__append_const(b, who, QN_U64, 0x7ff));
    uint32_t high = qn__op2(b, who, QN_OP_sub, magnitude, low);
    uint32_t none = qn__append_const(b, who, QN_U64, 0);
    uint32_t sticky = qn__append_const(b, who, QN_U64, 0x800),
             is_inexact = qn__op2(b, who, QN_OP_ne, low, none);
    uint32_t rest = qn__choose(b, who, is_inexact, sticky, none);
    uint32_t is_wide =
        qn__op2(b, who, QN_OP_ge, magnitude, qn__append_const(b, who, QN_U64, UINT64_C(1) << 53));
    magnitude = qn__choose(b, who, is_wide, qn__op2(b, who, QN_OP_or, high, rest), magnitude);
    uint32_t value = cast(b, who, QN_F64, magnitude);
    return from == QN_I64
               ? qn__choose(b, who, is_negative, qn__op1(b, who, QN_OP_neg, value), value)
               : value;
}

uint32_t qn__append_half_cast(qn_builder *b, const char *who, int dtype, uint32_t x)
{
    int from = b->inst[x].type;
    if (qn__is_half(from))
        return cast(b, who, dtype, cast(b, who, QN_F32, x));
    switch (from) {
    case QN_I64:
    case QN_U64:
        x = append_sticky_f64(b, who, from, x);
        break;
    case QN_I32:
    case QN_U32:
        x = cast(b, who, QN_F64, x);
        break;
    case QN_F64:
        break;
    default: /* exact */
        return cast(b, who, dtype, cast(b, who, QN_F32, x));
    }
    return cast(b, who, dtype, x ? append_sticky_f32(b, who, x) : 0);
}
