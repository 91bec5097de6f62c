/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.h: the helper functions that the meaning columns of quern/ops.def name. Included by
 * ir/eval.c, which expands the table. Integer helpers are total. Float helpers are macros that
 * choose by the type of their operand, so that f32 is computed in float and f64 in double.
 */
#ifndef QN_IR_EVAL_H
#define QN_IR_EVAL_H

#include <math.h>
#include <stdint.h>

/** Quotients: truncated; x/0 is 0; MIN/-1 is MIN once the result is cut to the width. */
static inline uint64_t qn__sdiv(int64_t a, int64_t b)
{
    if (b == 0)
        return 0;
    return b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

static inline uint64_t qn__udiv(uint64_t a, uint64_t b)
{
    return b == 0 ? 0 : a / b;
}

/** Remainders of these quotients: x rem 0 is x; MIN rem -1 is 0. */
static inline uint64_t qn__srem(int64_t a, int64_t b)
{
    if (b == 0)
        return (uint64_t)a;
    return b == -1 ? 0 : (uint64_t)(a % b);
}

static inline uint64_t qn__urem(uint64_t a, uint64_t b)
{
    return b == 0 ? a : a % b;
}

/** The low w bits of a sign- or zero-extended value. */
static inline uint64_t qn__low_bits(uint64_t a, uint64_t w)
{
    return w == 64 ? a : a & ((UINT64_C(1) << w) - 1);
}

static inline uint64_t qn__popcount(uint64_t a, uint64_t w)
{
    return (uint64_t)__builtin_popcountll(qn__low_bits(a, w));
}

static inline uint64_t qn__clz(uint64_t a, uint64_t w)
{
    uint64_t x = qn__low_bits(a, w);
    return x == 0 ? w : (uint64_t)__builtin_clzll(x) - (64 - w);
}

static inline uint64_t qn__ctz(uint64_t a, uint64_t w)
{
    uint64_t x = qn__low_bits(a, w);
    return x == 0 ? w : (uint64_t)__builtin_ctzll(x);
}

/** Nearest integer, ties to even, whatever the rounding mode: every step is exact. */
static inline double qn__roundeven_f64(double x)
{
    if (!(fabs(x) < 0x1p52))
        return x; /* an integer, an infinity or NaN */
    double whole = trunc(x), rest = fabs(x - whole);
    if (rest > 0.5 || (rest == 0.5 && ((int64_t)whole & 1) != 0))
        whole += x < 0 ? -1.0 : 1.0;
    return copysign(whole, x);
}

static inline float qn__roundeven_f32(float x)
{
    return (float)qn__roundeven_f64((double)x); /* both conversions are exact */
}

#define qn__of_type(x, f32_function, f64_function)                                                 \
    _Generic((x), float: f32_function, double: f64_function)
#define qn__fabs(x) qn__of_type(x, fabsf, fabs)(x)
#define qn__sqrt(x) qn__of_type(x, sqrtf, sqrt)(x)
#define qn__fma(x, y, z) qn__of_type(x, fmaf, fma)(x, y, z)
#define qn__floor(x) qn__of_type(x, floorf, floor)(x)
#define qn__ceil(x) qn__of_type(x, ceilf, ceil)(x)
#define qn__trunc(x) qn__of_type(x, truncf, trunc)(x)
#define qn__roundeven(x) qn__of_type(x, qn__roundeven_f32, qn__roundeven_f64)(x)
#define qn__copysign(x, y) qn__of_type(x, copysignf, copysign)(x, y)

#endif
