/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range_float.c: intervals of floats. Both ends are canonical bits of the type. An operation that
 * is monotonic stays so when its result is rounded, so an end is what the operation itself gives of
 * ends of its operands: no bound is wider than the values.
 */
#include "ir/range.h"

#include <math.h>
#include <string.h>

static double number_of(int type, int64_t bits)
{
    double wide;
    float narrow;
    uint32_t low = (uint32_t)bits;
    memcpy(&wide, &bits, sizeof wide);
    memcpy(&narrow, &low, sizeof narrow);
    return type == QN_F32 ? (double)narrow : wide;
}

static int64_t bits_of(int type, double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return type == QN_F64 ? bits : (int64_t)qn__eval_cast(type, QN_F64, (uint64_t)bits);
}

qn_interval qn__floats(int type, double low, double high, bool may_be_nan)
{
    if (type != QN_F32 && type != QN_F64)
        return (qn_interval){INT64_MIN, INT64_MAX, true};
    return (qn_interval){bits_of(type, low), bits_of(type, high), may_be_nan};
}

static qn_interval anything(int type)
{
    return qn__floats(type, -INFINITY, INFINITY, true);
}

/** Nothing but NaN. */
static bool is_empty(int type, qn_interval a)
{
    return number_of(type, a.low) > number_of(type, a.high);
}

static bool has(int type, qn_interval a, double x)
{
    return number_of(type, a.low) <= x && x <= number_of(type, a.high);
}

static bool has_infinity(int type, qn_interval a)
{
    return isinf(number_of(type, a.low)) || isinf(number_of(type, a.high));
}

qn_interval qn__float_const(int type, uint64_t bits)
{
    double x = number_of(type, (int64_t)bits);
    if (type != QN_F32 && type != QN_F64)
        return anything(type);
    return isnan(x) ? qn__floats(type, INFINITY, -INFINITY, true)
                    : (qn_interval){(int64_t)bits, (int64_t)bits, false};
}

qn_interval qn__join_floats(int type, qn_interval a, qn_interval b)
{
    if (type != QN_F32 && type != QN_F64)
        return anything(type);
    bool may_be_nan = a.may_be_nan || b.may_be_nan;
    qn_interval r = {number_of(type, a.low) < number_of(type, b.low) ? a.low : b.low,
                     number_of(type, a.high) > number_of(type, b.high) ? a.high : b.high,
                     may_be_nan};
    return r;
}

/** The hull of what the op gives of all combinations of ends. A product of zero and an infinity is
 * NaN there, and 0 next to it; of other NaN nothing is concluded. */
static qn_interval of_ends(int op, int type, const qn_interval *v, int n, bool may_be_nan)
{
    double low = INFINITY, high = -INFINITY;
    for (int corner = 0; corner < 1 << n; corner++) {
        uint64_t end[3] = {0};
        for (int j = 0; j < n; j++)
            end[j] = (uint64_t)(corner >> j & 1 ? v[j].high : v[j].low);
        double x = number_of(type, (int64_t)qn__eval_op(op, type, end[0], end[1], end[2]));
        if (isnan(x) && op != QN_OP_mul)
            return anything(type);
        x = isnan(x) ? 0 : x;
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    return qn__floats(type, low, high, may_be_nan);
}

/** A sum or difference is NaN where infinities meet; so may be a product and sum, and a product
 * that has a zero and an infinity. */
static bool may_make_nan(int op, int type, const qn_interval *v, int n)
{
    bool is_infinite = false;
    for (int j = 0; j < n; j++)
        is_infinite |= has_infinity(type, v[j]);
    if (op == QN_OP_mul)
        return (has_infinity(type, v[0]) && has(type, v[1], 0)) ||
               (has_infinity(type, v[1]) && has(type, v[0], 0));
    return is_infinite &&
           (op == QN_OP_add || op == QN_OP_sub || op == QN_OP_fma || op == QN_OP_div);
}

static qn_interval of_magnitude(int type, qn_interval a, bool has_sign)
{
    double low = number_of(type, a.low), high = number_of(type, a.high),
           most = fabs(low) > fabs(high) ? fabs(low) : fabs(high);
    double least = has(type, a, 0) ? 0 : fabs(low) < fabs(high) ? fabs(low) : fabs(high);
    return qn__floats(type, has_sign ? -most : least, most, a.may_be_nan);
}

static qn_interval of_sqrt(int type, qn_interval a)
{
    bool has_negative = number_of(type, a.low) < 0;
    if (number_of(type, a.high) < 0)
        return anything(type);
    if (has_negative)
        a.low = bits_of(type, 0);
    return of_ends(QN_OP_sqrt, type, &a, 1, a.may_be_nan || has_negative);
}

qn_interval qn__float_op(int op, int type, int n, const qn_interval *v)
{
    if (type != QN_F32 && type != QN_F64)
        return anything(type);
    if (op == QN_OP_select)
        return qn__join_floats(type, v[1], v[2]);
    bool may_be_nan = may_make_nan(op, type, v, n);
    for (int j = 0; j < n; j++) {
        may_be_nan |= v[j].may_be_nan;
        if (is_empty(type, v[j]))
            return anything(type);
    }
    switch (op) {
    case QN_OP_add:
    case QN_OP_sub:
    case QN_OP_mul:
    case QN_OP_fma:
    case QN_OP_min:
    case QN_OP_max:
    case QN_OP_neg:
    case QN_OP_floor: case QN_OP_ceil: case QN_OP_round: case QN_OP_trunc:
        return of_ends(op, type, v, n, may_be_nan);
    case QN_OP_div:
        return has(type, v[1], 0) ? anything(type) : of_ends(op, type, v, n, may_be_nan);
    case QN_OP_abs: case QN_OP_copysign:
        return of_magnitude(type, v[0], op == QN_OP_copysign);
    case QN_OP_sqrt:
        return of_sqrt(type, v[0]);
    }
    return anything(type);
}

qn_interval qn__cast_to_float(int to, int from, qn_interval a)
{
    if (to != QN_F32 && to != QN_F64)
        return anything(to);
    bool is_float = qn__dtype_class(from) == QN_CLASS_F;
    if ((is_float && from != QN_F32 && from != QN_F64) || qn__dtype_class(from) == QN_CLASS_C)
        return anything(to);
    if (is_float && is_empty(from, a))
        return anything(to);
    if (from == QN_U64 && a.low < 0)
        return qn__floats(to, 0, 0x1p64, false);
    return (qn_interval){(int64_t)qn__eval_cast(to, from, (uint64_t)a.low),
                         (int64_t)qn__eval_cast(to, from, (uint64_t)a.high),
                         is_float && a.may_be_nan};
}

/** A NaN becomes what the cast makes of it. */
qn_interval qn__cast_from_float(int to, int from, qn_interval a, qn_interval all)
{
    if ((from != QN_F32 && from != QN_F64) || is_empty(from, a) || to == QN_BOOL)
        return all;
    int64_t v[3] = {(int64_t)qn__eval_cast(to, from, (uint64_t)a.low),
                    (int64_t)qn__eval_cast(to, from, (uint64_t)a.high)};
    v[2] = a.may_be_nan ? (int64_t)qn__eval_cast(to, from, (uint64_t)bits_of(from, (double)NAN))
                        : v[0];
    if (to == QN_U64 && (v[0] < 0 || v[1] < 0 || v[2] < 0))
        return all;
    qn_interval r = {v[0] < v[2] ? v[0] : v[2], v[1] > v[2] ? v[1] : v[2], false};
    return r;
}
