/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.c: what the instructions of PTX compute. A register holds 64 bits; an instruction
 * takes as many of them as its type has.
 */
#include "ir/ir.h"
#include "tests/ptx/inside.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- bits and numbers */

uint64_t ptx_cut(uint64_t bits, int width)
{
    return width >= 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

int64_t ptx_extend(uint64_t bits, int width)
{
    return width >= 64 ? (int64_t)bits : (int64_t)(bits << (64 - width)) >> (64 - width);
}

uint64_t ptx_held(ptx_type t, uint64_t bits)
{
    return t.kind == 's' ? (uint64_t)ptx_extend(bits, t.bits) : ptx_cut(bits, t.bits);
}

double ptx_as_double(ptx_type t, uint64_t bits)
{
    double d;
    float f;
    uint32_t low = (uint32_t)bits;
    if (t.bits == 64) {
        memcpy(&d, &bits, sizeof d);
        return d;
    }
    if (t.bits == 16)
        low = (uint32_t)qn__eval_cast(QN_F32, QN_F16, ptx_cut(bits, 16));
    memcpy(&f, &low, sizeof f);
    return (double)f;
}

uint64_t ptx_f64_bits(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

uint64_t ptx_f32_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/** Rounds once to the type; d is exact, or of the type already. */
uint64_t float_bits(ptx_type t, double d)
{
    if (t.bits == 64)
        return ptx_f64_bits(d);
    if (t.bits == 32)
        return ptx_f32_bits((float)d);
    return qn__eval_cast(QN_F16, QN_F32, ptx_f32_bits((float)d));
}

/* ---------------------------------------------------------------- operations */

static double rounded(const ptx_inst *i, double d)
{
    return ptx_has(i, WORD_rzi)   ? trunc(d)
           : ptx_has(i, WORD_rmi) ? floor(d)
           : ptx_has(i, WORD_rpi) ? ceil(d)
           : ptx_has(i, WORD_rni) ? rint(d)
                                  : d;
}

/** Saturates. NaN is 0 from f32 to at most 32 bits, else the highest bit. d is an integer. */
static uint64_t float_to_int(ptx_type to, ptx_type from, double d)
{
    double low = to.kind == 's' ? -ldexp(1, to.bits - 1) : 0,
           high = ldexp(1, to.bits - (to.kind == 's'));
    if (d != d)
        return from.bits < 64 && to.bits < 64 ? 0 : UINT64_C(1) << (to.bits - 1);
    if (d < low)
        return to.kind == 's' ? UINT64_C(1) << (to.bits - 1) : 0;
    if (d >= high)
        return to.kind == 's' ? (UINT64_C(1) << (to.bits - 1)) - 1 : UINT64_MAX;
    return to.kind == 's' ? (uint64_t)(int64_t)d : (uint64_t)d;
}

static uint64_t convert(const ptx_inst *i, uint64_t bits)
{
    ptx_type to = i->type[0], from = i->type[1];
    uint64_t u = ptx_cut(bits, from.bits);
    int64_t s = ptx_extend(bits, from.bits);
    if (from.kind == 'f' && to.kind == 'f' && from.bits == to.bits)
        return float_bits(to, rounded(i, ptx_as_double(from, u)));
    if (from.kind == 'f' && to.kind == 'f')
        return float_bits(to, ptx_as_double(from, u));
    if (from.kind == 'f')
        return float_to_int(to, from, rounded(i, ptx_as_double(from, u)));
    if (to.kind != 'f')
        return from.kind == 's' ? (uint64_t)s : u;
    if (to.bits == 32)
        return ptx_f32_bits(from.kind == 's' ? (float)s : (float)u);
    return float_bits(to, from.kind == 's' ? (double)s : (double)u);
}

static bool compare(const ptx_inst *i, ptx_type t, uint64_t a, uint64_t b)
{
    int order; /* -1, 0, 1; 2: unordered */
    if (t.kind == 'f') {
        double x = ptx_as_double(t, a), y = ptx_as_double(t, b);
        order = x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
    } else if (t.kind == 's') {
        order = ptx_extend(a, t.bits) < ptx_extend(b, t.bits)
                    ? -1
                    : ptx_extend(a, t.bits) > ptx_extend(b, t.bits);
    } else {
        order =
            ptx_cut(a, t.bits) < ptx_cut(b, t.bits) ? -1 : ptx_cut(a, t.bits) > ptx_cut(b, t.bits);
    }
    if (ptx_has(i, WORD_equ) || ptx_has(i, WORD_neu) || ptx_has(i, WORD_ltu) ||
        ptx_has(i, WORD_leu) || ptx_has(i, WORD_gtu) || ptx_has(i, WORD_geu))
        if (order == 2)
            return true;
    if (ptx_has(i, WORD_num) || ptx_has(i, WORD_nan))
        return (order == 2) == ptx_has(i, WORD_nan);
    if (order == 2)
        return false; /* ne of floats is ordered in PTX */
    return (ptx_has(i, WORD_eq) || ptx_has(i, WORD_equ))                          ? order == 0
           : (ptx_has(i, WORD_ne) || ptx_has(i, WORD_neu))                        ? order != 0
           : (ptx_has(i, WORD_lt) || ptx_has(i, WORD_ltu) || ptx_has(i, WORD_lo)) ? order < 0
           : (ptx_has(i, WORD_le) || ptx_has(i, WORD_leu) || ptx_has(i, WORD_ls)) ? order <= 0
           : (ptx_has(i, WORD_gt) || ptx_has(i, WORD_gtu) || ptx_has(i, WORD_hi)) ? order > 0
                                                                                  : order >= 0;
}

static uint64_t float_op(const ptx_inst *i, uint64_t a, uint64_t b, uint64_t c, const char **wrong)
{
    ptx_type type = i->type[0];
    double x = ptx_as_double(type, a), y = ptx_as_double(type, b), z = ptx_as_double(type, c);
    bool is_f32 = type.bits == 32;
    if (ptx_has(i, WORD_NaN) && (x != x || y != y))
        return ptx_f64_bits(NAN) >> (64 - type.bits);
    switch (i->base) {
    case BASE_add:
        return is_f32 ? ptx_f32_bits((float)x + (float)y) : ptx_f64_bits(x + y);
    case BASE_sub:
        return is_f32 ? ptx_f32_bits((float)x - (float)y) : ptx_f64_bits(x - y);
    case BASE_mul:
        return is_f32 ? ptx_f32_bits((float)x * (float)y) : ptx_f64_bits(x * y);
    case BASE_div:
        return is_f32 ? ptx_f32_bits((float)x / (float)y) : ptx_f64_bits(x / y);
    case BASE_fma:
        return is_f32 ? ptx_f32_bits(fmaf((float)x, (float)y, (float)z))
                      : ptx_f64_bits(fma(x, y, z));
    case BASE_sqrt:
        return is_f32 ? ptx_f32_bits(sqrtf((float)x)) : ptx_f64_bits(sqrt(x));
    case BASE_rcp:
        return is_f32 ? ptx_f32_bits(1 / (float)x) : ptx_f64_bits(1 / x);
    case BASE_neg: /* NaN: any */
        return x != x ? ptx_f64_bits(NAN) >> (64 - type.bits) : a ^ UINT64_C(1) << (type.bits - 1);
    case BASE_abs:
        return x != x ? ptx_f64_bits(NAN) >> (64 - type.bits) : ptx_cut(a, type.bits - 1);
    case BASE_min:
        return x != x || y < x ? b : y != y || x < y ? a : a | b;
    case BASE_max:
        return x != x || y > x ? b : y != y || x > y ? a : a & b;
    default:
        *wrong = "unknown operation on floats";
        return 0;
    }
}

static uint64_t product(const ptx_inst *i, uint64_t a, uint64_t b)
{
    ptx_type t = i->type[0];
    if (t.kind == 's') {
        __extension__ typedef __int128 wide;
        wide p = (wide)ptx_extend(a, t.bits) * ptx_extend(b, t.bits);
        return ptx_has(i, WORD_hi) ? (uint64_t)(p >> t.bits) : (uint64_t)p;
    }
    __extension__ typedef unsigned __int128 unsigned_wide;
    unsigned_wide p = (unsigned_wide)ptx_cut(a, t.bits) * ptx_cut(b, t.bits);
    return ptx_has(i, WORD_hi) ? (uint64_t)(p >> t.bits) : (uint64_t)p;
}

/** By zero PTX promises some value, and code divides ahead of the branch that uses it or does not:
 * a value that nobody expects. */
static uint64_t divide(const ptx_inst *i, uint64_t a, uint64_t b)
{
    ptx_type type = i->type[0];
    int64_t x = ptx_extend(a, type.bits), y = ptx_extend(b, type.bits);
    bool is_div = i->base == BASE_div;
    if (ptx_cut(b, type.bits) == 0)
        return ~(a + 1) * UINT64_C(0x9e3779b97f4a7c15);
    if (type.kind == 's')
        return y == -1 ? (is_div ? 0 - (uint64_t)x : 0) : (uint64_t)(is_div ? x / y : x % y);
    a = ptx_cut(a, type.bits);
    b = ptx_cut(b, type.bits);
    return is_div ? a / b : a % b;
}

static uint64_t shifted(const ptx_inst *i, uint64_t a, uint64_t b)
{
    ptx_type t = i->type[0];
    uint64_t n = ptx_cut(b, 32);
    if (t.kind == 's')
        return (uint64_t)(ptx_extend(a, t.bits) >> (n >= t.bits ? t.bits - 1 : (int)n));
    if (n >= t.bits)
        return 0;
    return i->base == BASE_shl ? ptx_cut(a, t.bits) << n : ptx_cut(a, t.bits) >> n;
}

/** Of the 64 bits of b above a: the upper half after a shift to the left, the lower half after one
 * to the right. */
static uint64_t funnel(const ptx_inst *i, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t both = ptx_cut(b, 32) << 32 | ptx_cut(a, 32), n = ptx_cut(c, 32);
    n = ptx_has(i, WORD_wrap) ? n % 32 : n > 32 ? 32 : n;
    return ptx_has(i, WORD_l) ? both << n >> 32 : both >> n;
}

static uint64_t int_op(const ptx_inst *i, uint64_t a, uint64_t b, uint64_t c, const char **wrong)
{
    ptx_type type = i->type[0];
    uint64_t u = ptx_cut(a, type.bits);
    switch (i->base) {
    case BASE_add:
        return a + b;
    case BASE_sub:
        return a - b;
    case BASE_mul:
        return product(i, a, b);
    case BASE_mad:
        return product(i, a, b) + c;
    case BASE_div:
    case BASE_rem:
        return divide(i, a, b);
    case BASE_neg:
        return 0 - a;
    case BASE_abs:
        return ptx_extend(a, type.bits) < 0 ? 0 - a : a;
    case BASE_min:
    case BASE_max: {
        bool less = type.kind == 's' ? ptx_extend(a, type.bits) < ptx_extend(b, type.bits)
                                     : u < ptx_cut(b, type.bits);
        return less == (i->base == BASE_min) ? a : b;
    }
    case BASE_and:
        return a & b;
    case BASE_or:
        return a | b;
    case BASE_xor:
        return a ^ b;
    case BASE_not:
        return ~a;
    case BASE_shl:
    case BASE_shr:
        return shifted(i, a, b);
    case BASE_shf:
        return funnel(i, a, b, c);
    case BASE_popc:
        return (uint64_t)__builtin_popcountll(u);
    case BASE_clz:
        return u ? (uint64_t)__builtin_clzll(u) - (64 - type.bits) : type.bits;
    case BASE_brev: {
        uint64_t r = 0;
        for (int n = 0; n < type.bits; n++)
            r |= (u >> n & 1) << (type.bits - 1 - n);
        return r;
    }
    case BASE_bfe: {
        int first = (int)ptx_cut(b, 8), n = (int)ptx_cut(c, 8),
            last = first + n < type.bits ? first + n : type.bits;
        uint64_t field = first >= type.bits ? 0 : ptx_cut(u >> first, n);
        if (type.kind == 's' && n > 0 && (u >> (last - 1) & 1))
            field |= UINT64_MAX << (last > first ? last - first : 0);
        return field;
    }
    default:
        *wrong = "unknown operation";
        return 0;
    }
}

/** The low in[3] bits of in[0] in the place of those of in[1] from bit in[2] on. */
static uint64_t inserted(ptx_type type, const uint64_t *in)
{
    const int first = (int)ptx_cut(in[2], 8), n = (int)ptx_cut(in[3], 8);
    const uint64_t field = first >= type.bits ? 0 : ptx_cut(UINT64_MAX, n) << first;
    return (in[1] & ~field) | (in[0] << (first & 63) & field);
}

uint64_t ptx_calculate(const ptx_inst *i, const uint64_t *in, const char **wrong)
{
    uint64_t out;
    ptx_type type = i->type[0];
    if (i->base == BASE_setp) {
        out = compare(i, type, in[0], in[1]);
        type = (ptx_type){'p', 1};
    } else if (i->base == BASE_selp) {
        out = in[2] ? in[0] : in[1];
    } else if (i->base == BASE_bfi) {
        out = inserted(type, in);
    } else if (i->base == BASE_cvt) {
        out = convert(i, in[0]);
    } else if (i->base == BASE_cvta) {
        out = in[0];
    } else if (type.kind == 'f') {
        out = float_op(i, in[0], in[1], in[2], wrong);
    } else {
        out = int_op(i, in[0], in[1], in[2], wrong);
        if (ptx_has(i, WORD_wide))
            type.bits = (uint8_t)(2 * type.bits);
        if (i->base == BASE_popc || i->base == BASE_clz)
            type = (ptx_type){'u', 32};
    }
    return ptx_held(type, out);
}
