/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.c: the meaning of ops, casts and reduction steps on single values in canonical form. The op
 * functions are the columns of quern/ops.def, one switch per class, so the table is the definition.
 * Relies on IEEE arithmetic in the default environment (ir/fpu.h), without contraction
 * (-ffp-contract=off) and without excess precision.
 */
#include "ir/eval.h"

#include "ir/ir.h"

#include <float.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "f32 must be computed in float and f64 in double"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* ---------------------------------------------------------------- bits */

static float f32_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

static uint64_t bits_of_f32(float x)
{
    uint32_t low;
    memcpy(&low, &x, sizeof low);
    return low;
}

static double f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/** Cuts a value to w bits and sign-extends it. Shifting right keeps the sign with gcc and clang. */
static uint64_t cut_signed(uint64_t bits, uint64_t w)
{
    return (uint64_t)((int64_t)(bits << (64 - w)) >> (64 - w));
}

/* ---------------------------------------------------------------- ops */

/* A column that a class does not take. */
#define NONE 0

static uint64_t eval_signed(int op, uint64_t w, uint64_t ua, uint64_t ub, uint64_t uc, bool *cut)
{
    int64_t sa = (int64_t)ua, sb = (int64_t)ub;
    switch (op) {
#define CUT_SAME true
#define CUT_SELECT true
#define CUT_COMPARE false
#define QN_OP(ID, name, rule, arity, classes, for_signed, ...)                                     \
    case QN_OP_##name:                                                                             \
        *cut = CUT_##rule;                                                                         \
        return (uint64_t)(for_signed);
#include "quern/ops.def"
#undef QN_OP
    }
    return 0;
}

static uint64_t eval_unsigned(int op, uint64_t w, uint64_t ua, uint64_t ub, uint64_t uc)
{
    switch (op) {
#define QN_OP(ID, name, rule, arity, classes, for_signed, for_unsigned, ...)                       \
    case QN_OP_##name:                                                                             \
        return (uint64_t)(for_unsigned);
#include "quern/ops.def"
#undef QN_OP
    }
    return 0;
}

static uint64_t eval_f32(int op, uint64_t ua, uint64_t ub, uint64_t uc)
{
    float xa = f32_of(ua), xb = f32_of(ub), xc = f32_of(uc);
    switch (op) {
#define RESULT_SAME(x) bits_of_f32(x)
#define RESULT_SELECT(x) bits_of_f32(x)
#define RESULT_COMPARE(x) (uint64_t)(x)
#define QN_OP(ID, name, rule, arity, classes, for_signed, for_unsigned, for_float, ...)            \
    case QN_OP_##name:                                                                             \
        return RESULT_##rule(for_float);
#include "quern/ops.def"
#undef QN_OP
#undef RESULT_SAME
#undef RESULT_SELECT
    }
    return 0;
}

static uint64_t eval_f64(int op, uint64_t ua, uint64_t ub, uint64_t uc)
{
    double xa = f64_of(ua), xb = f64_of(ub), xc = f64_of(uc);
    switch (op) {
#define RESULT_SAME(x) bits_of_f64(x)
#define RESULT_SELECT(x) bits_of_f64(x)
#define QN_OP(ID, name, rule, arity, classes, for_signed, for_unsigned, for_float, ...)            \
    case QN_OP_##name:                                                                             \
        return RESULT_##rule(for_float);
#include "quern/ops.def"
#undef QN_OP
    }
    return 0;
}

/* Class and width of each dtype; static here because this is the interpreter's inner loop. */
typedef struct type_row {
    uint8_t cls, width;
} type_row;
#define ROW_B(bytes) {QN_CLASS_B, 1}
#define ROW_S(bytes) {QN_CLASS_S, 8 * (bytes)}
#define ROW_U(bytes) {QN_CLASS_U, 8 * (bytes)}
#define ROW_F(bytes)                                                                               \
    {(bytes) < 4 ? QN_CLASS_U : QN_CLASS_F, 8 * (bytes)}                                           \
    /* narrow ones as bits: no arithmetic on these */
#define ROW_C(bytes) {0, 0}
static const type_row TYPE[QN_N_DTYPES] = {
#define QN_DTYPE(NAME, number, text, bytes, cls, ...) [number] = ROW_##cls(bytes),
#include "quern/dtypes.def"
#undef QN_DTYPE
};

uint64_t qn__raw_op(int op, int type, uint64_t a, uint64_t b, uint64_t c)
{
    type_row t = TYPE[type];
    if (t.cls == QN_CLASS_F)
        return type == QN_F32 ? eval_f32(op, a, b, c) : eval_f64(op, a, b, c);
    if (t.cls == QN_CLASS_S) {
        bool cut = false;
        uint64_t value = eval_signed(op, t.width, a, b, c, &cut);
        return cut ? cut_signed(value, t.width) : value;
    }
    return qn__low_bits(eval_unsigned(op, t.width, a, b, c), t.width);
}

/* ---------------------------------------------------------------- half-width floats */

/* A narrow float has the exponents of f32 (bf16), so that it is the upper part of one, or fewer
 * (f16). */
enum { FRACTION = 23, BIAS = 127 }; /* of f32 */

static float power_of_two(int exponent)
{
    return f32_of((uint64_t)(BIAS + exponent) << FRACTION);
}

/** The f32 of the same value. With fewer exponents a NaN comes out quiet, as the processors do it;
 * else it has the same bits. */
static uint64_t f32_of_half(int from, uint64_t bits)
{
    qn_float_format f = qn__float_format(from);
    int width = TYPE[from].width, cut = FRACTION - f.fraction_bits;
    if (f.bias == BIAS)
        return bits << (32 - width);
    uint64_t sign = (bits >> (width - 1)) << 31, exponent = (bits & f.infinity) >> f.fraction_bits;
    uint64_t fraction = qn__low_bits(bits, (uint64_t)f.fraction_bits);
    if (exponent == f.infinity >> f.fraction_bits)
        return sign | 0x7f800000 | fraction << cut | (fraction ? 0x400000 : 0);
    if (exponent == 0) /* f16: fraction x 2^-24, exact in f32 */
        return sign | bits_of_f32((float)fraction * power_of_two(1 - f.bias - f.fraction_bits));
    return sign | (exponent + (uint64_t)(BIAS - f.bias)) << FRACTION | fraction << cut;
}

/** Rounds an f32 once, to nearest even. A NaN keeps its sign and the upper part of its fraction,
 * and comes out quiet. */
static uint64_t half_of_f32(int to, uint64_t bits)
{
    qn_float_format f = qn__float_format(to);
    int width = TYPE[to].width, cut = FRACTION - f.fraction_bits;
    uint64_t sign = (bits >> 31) << (width - 1), magnitude = bits & 0x7fffffff;
    uint64_t quiet = UINT64_C(1) << (f.fraction_bits - 1);
    if (magnitude > 0x7f800000)
        return sign | f.infinity | quiet |
               qn__low_bits(magnitude >> cut, (uint64_t)f.fraction_bits);
    uint64_t biased = magnitude;
    if (f.bias != BIAS) {
        if (magnitude >= (uint64_t)(BIAS + f.bias + 1) << FRACTION) /* f16: 2^16 */
            return sign | f.infinity;
        if (magnitude < (uint64_t)(BIAS - f.bias + 1)
                            << FRACTION) /* f16: below 2^-14, a multiple of 2^-24 */
            return sign |
                   (uint64_t)qn__roundeven_f64((double)f32_of(magnitude) *
                                               (double)power_of_two(f.bias - 1 + f.fraction_bits));
        biased = magnitude - ((uint64_t)(BIAS - f.bias) << FRACTION);
    }
    uint64_t odd = biased >> cut & 1, half = UINT64_C(1) << (cut - 1);
    return sign | (biased + half - 1 + odd) >> cut;
}

/** The f32 that stands for x when x is rounded further: exact, or next to it with an odd last bit.
 */
static uint64_t sticky_f32(double x)
{
    uint64_t bits = bits_of_f32((float)x);
    double near = (double)f32_of(bits);
    if (near == x || x != x)
        return bits;
    return (fabs(near) > fabs(x) ? bits - 1 : bits) | 1;
}

/** The f64 that stands for a 64-bit integer likewise. */
static double sticky_f64(int from, uint64_t bits)
{
    bool is_negative = TYPE[from].cls == QN_CLASS_S && bits >> 63;
    uint64_t magnitude = is_negative ? 0 - bits : bits;
    if (magnitude >> 53)
        magnitude = (magnitude & ~UINT64_C(0x7ff)) | (magnitude & 0x7ff ? 0x800 : 0);
    return is_negative ? -(double)magnitude : (double)magnitude;
}

/* ---------------------------------------------------------------- casts */

static uint64_t float_to_signed(double x, uint64_t w)
{
    double limit = (double)(UINT64_C(1) << (w - 1)); /* exact */
    if (x != x)
        return 0;
    if (x >= limit)
        return (UINT64_C(1) << (w - 1)) - 1;
    return x <= -limit ? cut_signed(UINT64_C(1) << (w - 1), w) : (uint64_t)(int64_t)x;
}

static uint64_t float_to_unsigned(double x, uint64_t w)
{
    double limit = 2.0 * (double)(UINT64_C(1) << (w - 1)); /* exact */
    if (!(x >= 1.0)) /* NaN too; (-1, 1) truncates to 0 and what is below saturates at 0 */
        return 0;
    return x >= limit ? qn__low_bits(UINT64_MAX, w) : (uint64_t)x;
}

static uint64_t cast_from_float(int to, int from, uint64_t bits)
{
    double x = from == QN_F32 ? (double)f32_of(bits) : f64_of(bits);
    switch (TYPE[to].cls) {
    case QN_CLASS_B:
        return x != 0;
    case QN_CLASS_S:
        return float_to_signed(x, TYPE[to].width);
    case QN_CLASS_U:
        return float_to_unsigned(x, TYPE[to].width);
    }
    return to == QN_F32 ? bits_of_f32((float)x) : bits_of_f64(x);
}

/** To a float the compilers' conversions round once, to nearest, also from 64 bits to f32. */
static uint64_t cast_from_integer(int to, int from, uint64_t bits)
{
    bool is_signed = TYPE[from].cls == QN_CLASS_S;
    switch (TYPE[to].cls) {
    case QN_CLASS_B:
        return bits != 0;
    case QN_CLASS_S:
        return cut_signed(bits, TYPE[to].width);
    case QN_CLASS_U:
        return qn__low_bits(bits, TYPE[to].width);
    }
    if (to == QN_F32)
        return bits_of_f32(is_signed ? (float)(int64_t)bits : (float)bits);
    return bits_of_f64(is_signed ? (double)(int64_t)bits : (double)bits);
}

uint64_t qn__raw_cast(int to, int from, uint64_t bits)
{
    if (to == from)
        return bits;
    if (qn__is_half(from)) {
        bits = f32_of_half(from, bits);
        from = QN_F32;
        if (to == QN_F32)
            return bits;
    }
    if (qn__is_half(to)) {
        if (from == QN_F64)
            bits = sticky_f32(f64_of(bits));
        else if (from != QN_F32)
            bits = sticky_f32(sticky_f64(from, bits));
        return half_of_f32(to, bits);
    }
    return TYPE[from].cls == QN_CLASS_F ? cast_from_float(to, from, bits)
                                        : cast_from_integer(to, from, bits);
}

uint64_t qn__eval_bitcast(int to, int from, uint64_t bits)
{
    (void)from; /* the canonical form keeps the element's bits at the low end, whatever the type */
    switch (TYPE[to].cls) {
    case QN_CLASS_B:
        return (bits & 0xff) != 0; /* a bool is one byte; any but zero is true */
    case QN_CLASS_S:
        return cut_signed(bits, TYPE[to].width);
    }
    return qn__low_bits(bits, TYPE[to].width);
}

/* ---------------------------------------------------------------- reductions */

uint64_t qn__eval_combine(int combine, int type, uint64_t accumulated, uint64_t next)
{
    int op = qn__combine_op(combine);
    if (op && qn__is_half(type)) { /* in f32, rounded once, as the builder does it */
        uint64_t x = qn__raw_cast(QN_F32, type, accumulated), y = qn__raw_cast(QN_F32, type, next);
        return qn__raw_cast(type, QN_F32, qn__raw_op(op, QN_F32, x, y, 0));
    }
    return op ? qn__raw_op(op, type, accumulated, next, 0) : next;
}

/** Largest and smallest value of a type; of floats the infinities or, if `finite`, the largest
 * finite magnitude. */
static uint64_t extreme(int type, bool largest, bool finite)
{
    uint64_t w = TYPE[type].width;
    switch (TYPE[type].cls) {
    case QN_CLASS_S:
        return largest ? (UINT64_C(1) << (w - 1)) - 1 : cut_signed(UINT64_C(1) << (w - 1), w);
    case QN_CLASS_F:
        if (type == QN_F32)
            return bits_of_f32((largest ? 1.0f : -1.0f) * (finite ? FLT_MAX : INFINITY));
        return bits_of_f64((largest ? 1.0 : -1.0) * (finite ? DBL_MAX : (double)INFINITY));
    }
    return largest ? qn__low_bits(UINT64_MAX, w) : 0;
}

uint64_t qn__reduce_identity(int combine, int type)
{
    switch (qn__reducer_info[combine].neutral) {
    case QN_NEUTRAL_ZERO:
        return TYPE[type].cls == QN_CLASS_F ? qn__raw_op(QN_OP_neg, type, 0, 0, 0) : 0;
    case QN_NEUTRAL_LARGEST:
        return extreme(type, true, false);
    case QN_NEUTRAL_LOWEST:
        return extreme(type, false, false);
    }
    return qn__reduce_empty(combine, type);
}

uint64_t qn__reduce_empty(int combine, int type)
{
    switch (qn__reducer_info[combine].neutral) {
    case QN_NEUTRAL_ONE:
        return qn__raw_cast(type, QN_U8, 1);
    case QN_NEUTRAL_LARGEST:
        return extreme(type, true, true);
    case QN_NEUTRAL_LOWEST:
        return extreme(type, false, true);
    case QN_NEUTRAL_ONES:
        return qn__raw_op(QN_OP_not, type, 0, 0, 0);
    }
    return 0;
}
