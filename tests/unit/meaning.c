/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meaning.c: ops and casts in other words than ir/eval.c: integers as 128-bit numbers and bit by
 * bit, floats as exact big integers that are rounded once.
 */
#include "tests/unit/meaning.h"

#include <string.h>

__extension__ typedef unsigned __int128 uwide;

/* ---------------------------------------------------------------- exact numbers */

/** An exact non-negative number: a fixed-point integer whose bit 0 stands for 2^-2200. */
enum { LIMBS = 150, POINT = 2200 };
typedef struct big {
    uint32_t limb[LIMBS];
} big;

static int big_bit(const big *x, int n)
{
    return n < 0 ? 0 : (int)(x->limb[n / 32] >> (n % 32) & 1);
}

/** Highest set bit, -1 if zero. */
static int big_top(const big *x)
{
    for (int n = LIMBS * 32 - 1; n >= 0; n--)
        if (x->limb[n / 32] == 0)
            n -= n % 32;
        else if (big_bit(x, n))
            return n;
    return -1;
}

/** mantissa * 2^exponent. */
static big big_make(uwide mantissa, int exponent)
{
    big x = {{0}};
    for (int n = 0; n < 128; n++)
        if ((mantissa >> n & 1) != 0)
            x.limb[(n + exponent + POINT) / 32] |= 1u << ((n + exponent + POINT) % 32);
    return x;
}

static int big_compare(const big *a, const big *b)
{
    for (int i = LIMBS - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/** a + b, or a - b where a >= b. */
static big big_add(const big *a, const big *b, bool subtract)
{
    big r;
    int64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (int64_t)a->limb[i] + (subtract ? -(int64_t)b->limb[i] : (int64_t)b->limb[i]);
        r.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    return r;
}

/** A float type: precision, exponent of the smallest number, number of bits. */
typedef struct format {
    int dtype, precision, least, top_exponent, bits;
} format;
static const format F32 = {QN_F32, 24, -149, 127, 32}, F64 = {QN_F64, 53, -1074, 1023, 64},
                    F16 = {QN_F16, 11, -24, 15, 16}, BF16 = {QN_BF16, 8, -133, 127, 16};

static const format *format_of(int dtype)
{
    return dtype == QN_F16 ? &F16 : dtype == QN_BF16 ? &BF16 : dtype == QN_F32 ? &F32 : &F64;
}

static uint64_t sign_bit(const format *f)
{
    return UINT64_C(1) << (f->bits - 1);
}

static uint64_t infinity_bits(const format *f)
{
    return (sign_bit(f) - 1) >> (f->precision - 1) << (f->precision - 1);
}

static bool is_nan(const format *f, uint64_t x)
{
    return (x & (sign_bit(f) - 1)) > infinity_bits(f);
}

static bool is_infinite(const format *f, uint64_t x)
{
    return (x & (sign_bit(f) - 1)) == infinity_bits(f);
}

static bool is_negative(const format *f, uint64_t x)
{
    return (x & sign_bit(f)) != 0;
}

static bool is_zero(const format *f, uint64_t x)
{
    return (x & (sign_bit(f) - 1)) == 0;
}

/** mantissa * 2^*exponent of a finite number's magnitude. */
static uint64_t split(const format *f, uint64_t x, int *exponent)
{
    uint64_t fraction = x & ((UINT64_C(1) << (f->precision - 1)) - 1);
    int biased = (int)((x & (sign_bit(f) - 1)) >> (f->precision - 1));
    *exponent = f->least + (biased > 0 ? biased - 1 : 0);
    return fraction | (biased > 0 ? UINT64_C(1) << (f->precision - 1) : 0);
}

static big magnitude(const format *f, uint64_t x)
{
    int exponent;
    uint64_t mantissa = split(f, x, &exponent);
    return big_make(mantissa, exponent);
}

/** Rounds to nearest, ties to even. The bits of neighbouring floats are consecutive numbers, so
 * counting up is enough. */
static uint64_t big_round(const format *f, bool negative, const big *x)
{
    uint64_t sign = negative ? sign_bit(f) : 0;
    int top = big_top(x), low = top - f->precision + 1;
    if (top < 0)
        return sign;
    if (low < f->least + POINT)
        low = f->least + POINT;
    uint64_t kept = 0;
    for (int n = top; n >= low; n--)
        kept = kept << 1 | (uint64_t)big_bit(x, n);
    bool rest = false;
    for (int n = 0; n < low - 1; n++)
        rest = rest || big_bit(x, n);
    bool half = big_bit(x, low - 1) != 0;
    kept += half && (rest || (kept & 1) != 0);
    int exponent =
        low - POINT; /* value = kept * 2^exponent; a carry to the next power is the next float */
    uint64_t bits = kept + ((uint64_t)(exponent - f->least) << (f->precision - 1));
    return sign | (bits > infinity_bits(f) ? infinity_bits(f) : bits);
}

/* ---------------------------------------------------------------- floats, in other words */

static const uint64_t SOME_NAN =
    UINT64_MAX; /* a NaN of both types, in the bits that the type has */

static uint64_t nan_bits(const format *f)
{
    return SOME_NAN >> (64 - f->bits);
}

static uint64_t float_fma(const format *f, uint64_t x, uint64_t y, uint64_t z)
{
    bool sign = is_negative(f, x) != is_negative(f, y);
    if (is_nan(f, x) || is_nan(f, y) || is_nan(f, z))
        return nan_bits(f);
    if (is_infinite(f, x) || is_infinite(f, y)) {
        bool is_invalid =
            is_zero(f, x) || is_zero(f, y) || (is_infinite(f, z) && is_negative(f, z) != sign);
        return is_invalid ? nan_bits(f) : infinity_bits(f) | (sign ? sign_bit(f) : 0);
    }
    if (is_infinite(f, z))
        return z;
    int ex, ey;
    uint64_t mx = split(f, x, &ex), my = split(f, y, &ey);
    big product = big_make((uwide)mx * my, ex + ey), addend = magnitude(f, z);
    bool same = sign == is_negative(f, z);
    int order = big_compare(&product, &addend);
    if (order == 0 && !same)
        return 0; /* exact zero of opposite signs: +0 */
    big sum =
        same || order > 0 ? big_add(&product, &addend, !same) : big_add(&addend, &product, true);
    return big_round(f, same || order > 0 ? sign : is_negative(f, z), &sum);
}

static uint64_t float_one(const format *f)
{
    return (uint64_t)f->top_exponent << (f->precision - 1);
}

static uint64_t float_mul(const format *f, uint64_t x, uint64_t y)
{
    /* adding a zero of the product's sign keeps the product */
    uint64_t zero = is_negative(f, x) != is_negative(f, y) ? sign_bit(f) : 0;
    return float_fma(f, x, y, zero);
}

/** Mantissa with its top bit at precision-1, also of subnormal numbers. */
static uint64_t split_normal(const format *f, uint64_t x, int *exponent)
{
    uint64_t m = split(f, x, exponent);
    for (; m >> (f->precision - 1) == 0; m <<= 1)
        --*exponent;
    return m;
}

static uint64_t float_div(const format *f, uint64_t x, uint64_t y)
{
    uint64_t sign = is_negative(f, x) != is_negative(f, y) ? sign_bit(f) : 0;
    if (is_nan(f, x) || is_nan(f, y) || (is_zero(f, x) && is_zero(f, y)) ||
        (is_infinite(f, x) && is_infinite(f, y)))
        return nan_bits(f);
    if (is_infinite(f, x) || is_zero(f, y))
        return sign | infinity_bits(f);
    if (is_zero(f, x) || is_infinite(f, y))
        return sign;
    int ex, ey;
    uwide numerator = (uwide)split_normal(f, x, &ex) << 70, divisor = split_normal(f, y, &ey);
    uwide quotient = numerator / divisor << 1 | (numerator % divisor != 0);
    big exact =
        big_make(quotient, ex - ey - 71); /* the last bit stands for what is left: never a tie */
    return big_round(f, sign != 0, &exact);
}

static uint64_t float_sqrt(const format *f, uint64_t x)
{
    if (is_zero(f, x))
        return x;
    if (is_nan(f, x) || is_negative(f, x))
        return nan_bits(f);
    if (is_infinite(f, x))
        return x;
    int exponent;
    uwide m = split_normal(f, x, &exponent);
    int shift = 70;
    if (((exponent - shift) & 1) != 0)
        shift++;
    m <<= shift;
    uwide root = 0;
    for (int bit = 63; bit >= 0; bit--) {
        uwide trial = root | (uwide)1 << bit;
        if (trial * trial <= m)
            root = trial;
    }
    big exact = big_make(root << 1 | (root * root != m), (exponent - shift) / 2 - 1);
    return big_round(f, false, &exact);
}

/** floor, ceil, round, trunc, from the integer and fraction bits. */
static uint64_t float_to_integral(const format *f, int op, uint64_t x)
{
    if (is_nan(f, x) || is_infinite(f, x) || is_zero(f, x))
        return x;
    int exponent;
    uint64_t m = split(f, x, &exponent), sign = x & sign_bit(f);
    if (exponent >= 0)
        return x;
    int cut = -exponent < 60 ? -exponent : 60; /* m < 2^53: more bits change nothing */
    uint64_t whole = m >> cut, rest = m & ((UINT64_C(1) << cut) - 1),
             half = UINT64_C(1) << (cut - 1);
    bool up = false;
    if (op == QN_OP_floor)
        up = sign && rest;
    else if (op == QN_OP_ceil)
        up = !sign && rest;
    else if (op == QN_OP_round)
        up = rest > half || (rest == half && (whole & 1) != 0);
    big exact = big_make((uwide)whole + up, 0);
    return big_round(f, sign != 0, &exact);
}

/** Floats in order as integers: -inf < ... < -0 = 0 < ... < inf. */
static int64_t order_key(const format *f, uint64_t x)
{
    int64_t size = (int64_t)(x & (sign_bit(f) - 1));
    return is_negative(f, x) ? -size : size;
}

static uint64_t expect_float(int op, int type, uint64_t a, uint64_t b, uint64_t c)
{
    const format *f = format_of(type);
    bool unordered = is_nan(f, a) || is_nan(f, b);
    int64_t ka = order_key(f, a), kb = order_key(f, b);
    switch (op) {
    case QN_OP_add: return float_fma(f, a, float_one(f), b);
    case QN_OP_sub: return float_fma(f, b, float_one(f) | sign_bit(f), a);
    case QN_OP_mul: return float_mul(f, a, b);
    case QN_OP_div: return float_div(f, a, b);
    case QN_OP_neg: return a ^ sign_bit(f);
    case QN_OP_abs: return a & ~sign_bit(f);
    case QN_OP_min: return unordered ? nan_bits(f) : kb <= ka ? b : a;
    case QN_OP_max: return unordered ? nan_bits(f) : kb >= ka ? b : a;
    case QN_OP_eq: return !unordered && ka == kb;
    case QN_OP_ne: return unordered || ka != kb;
    case QN_OP_lt: return !unordered && ka < kb;
    case QN_OP_le: return !unordered && ka <= kb;
    case QN_OP_gt: return !unordered && ka > kb;
    case QN_OP_ge: return !unordered && ka >= kb;
    case QN_OP_select: return a == 1 ? b : c;
    case QN_OP_sqrt: return float_sqrt(f, a);
    case QN_OP_fma: return float_fma(f, a, b, c);
    case QN_OP_floor:
    case QN_OP_ceil:
    case QN_OP_round:
    case QN_OP_trunc: return float_to_integral(f, op, a);
    case QN_OP_copysign: return (a & ~sign_bit(f)) | (b & sign_bit(f));
    }
    return 0;
}

/* ---------------------------------------------------------------- integers, in other words */

int meaning_width(int type)
{
    return type == QN_BOOL ? 1 : (int)qn_dtype_bytes(type) * 8;
}

bool meaning_is_signed(int type)
{
    return type >= QN_I8 && type <= QN_I64;
}

bool meaning_is_float(int type)
{
    return type == QN_F32 || type == QN_F64 || meaning_is_half(type);
}

bool meaning_is_half(int type)
{
    return type == QN_F16 || type == QN_BF16;
}

/** The number that canonical bits stand for. */
static wide number(int type, uint64_t bits)
{
    return meaning_is_signed(type) ? (wide)(int64_t)bits : (wide)bits;
}

/** Canonical bits of a number, modulo 2^width. */
uint64_t meaning_wrap(int type, wide x)
{
    wide modulus = (wide)1 << meaning_width(type);
    wide rest = x % modulus;
    if (rest < 0)
        rest += modulus;
    if (meaning_is_signed(type) && rest >= modulus / 2)
        rest -= modulus;
    return (uint64_t)rest;
}

static wide wide_abs(wide x)
{
    return x < 0 ? -x : x;
}

/** Truncated quotient by counting down bits; x/0 is 0. */
static wide divide(wide x, wide y)
{
    wide rest = wide_abs(x), divisor = wide_abs(y), quotient = 0;
    if (y == 0)
        return 0;
    for (int bit = 63; bit >= 0; bit--)
        if (rest >> bit >= divisor) {
            rest -= divisor << bit;
            quotient += (wide)1 << bit;
        }
    return (x < 0) != (y < 0) ? -quotient : quotient;
}

/** Bitwise ops and counts from the single bits. */
static uint64_t expect_bits(int op, int type, uint64_t a, uint64_t b)
{
    int w = meaning_width(type), ones = 0, leading = 0, trailing = 0;
    wide r = 0;
    bool seen = false;
    for (int n = w - 1; n >= 0; n--) {
        int x = (int)(a >> n & 1), y = (int)(b >> n & 1);
        int bit = op == QN_OP_and   ? x * y
                  : op == QN_OP_or  ? x + y > 0
                  : op == QN_OP_xor ? x != y
                                    : !x;
        r = r * 2 + bit;
        ones += x;
        seen = seen || x;
        leading += !seen;
        trailing = x ? 0 : trailing + 1;
    }
    switch (op) {
    case QN_OP_popcount: return (uint64_t)meaning_wrap(type, ones);
    case QN_OP_clz: return (uint64_t)meaning_wrap(type, leading);
    case QN_OP_ctz: return (uint64_t)meaning_wrap(type, trailing);
    }
    return meaning_wrap(type, r);
}

static uint64_t expect_shift(int op, int type, uint64_t a, uint64_t b)
{
    wide x = number(type, a), w = meaning_width(type), count = number(type, b) % w;
    if (count < 0)
        count += w; /* the width is a power of two: the same as the low bits of the count */
    for (; count > 0; count--) {
        if (op == QN_OP_shl)
            x = (wide)number(type, meaning_wrap(type, x + x));
        else
            x = (x - (x % 2 != 0)) / 2; /* floor(x / 2) */
    }
    return meaning_wrap(type, x);
}

static uint64_t expect_integer(int op, int type, uint64_t a, uint64_t b, uint64_t c)
{
    wide x = number(type, a), y = number(type, b);
    switch (op) {
    case QN_OP_add: return meaning_wrap(type, x + y);
    case QN_OP_sub: return meaning_wrap(type, x - y);
    case QN_OP_mul: {
        wide low = number(QN_U64, b & 0xffffffff), high = number(QN_U64, b >> 32);
        return meaning_wrap(type, x * low + ((x * high) % ((wide)1 << 64)) * ((wide)1 << 32));
    }
    case QN_OP_div: return meaning_wrap(type, divide(x, y));
    case QN_OP_rem: return meaning_wrap(type, x - divide(x, y) * y);
    case QN_OP_neg: return meaning_wrap(type, -x);
    case QN_OP_abs: return meaning_wrap(type, wide_abs(x));
    case QN_OP_min: return meaning_wrap(type, x - y < 0 ? x : y);
    case QN_OP_max: return meaning_wrap(type, x - y < 0 ? y : x);
    case QN_OP_shl:
    case QN_OP_shr: return expect_shift(op, type, a, b);
    case QN_OP_eq: return x - y == 0;
    case QN_OP_ne: return x - y != 0;
    case QN_OP_lt: return x - y < 0;
    case QN_OP_le: return x - y < 1;
    case QN_OP_gt: return y - x < 0;
    case QN_OP_ge: return y - x < 1;
    case QN_OP_select: return a == 1 ? b : c;
    }
    return expect_bits(op, type, a, b);
}

/** f32 holds all sums, products, quotients and roots of halves well enough to round again: +, -, x,
 * / and sqrt are those of exact numbers, rounded once. fma is not: its f32 result is what is
 * rounded. */
static uint64_t expect_half_fma(int type, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = meaning_cast(QN_F32, type, a), y = meaning_cast(QN_F32, type, b);
    uint64_t z = meaning_cast(QN_F32, type, c);
    return meaning_cast(type, QN_F32, float_fma(&F32, x, y, z));
}

uint64_t meaning_op(int op, int type, uint64_t a, uint64_t b, uint64_t c)
{
    if (op == QN_OP_fma && meaning_is_half(type))
        return expect_half_fma(type, a, b, c);
    return meaning_is_float(type) ? expect_float(op, type, a, b, c)
                                  : expect_integer(op, type, a, b, c);
}

/* ---------------------------------------------------------------- casts, in other words */

/** Float to integer: the integer bits of the magnitude, then compared with the type's limits. */
static uint64_t expect_truncate(int to, const format *f, uint64_t x)
{
    int w = meaning_width(to);
    wide most = ((wide)1 << (meaning_is_signed(to) ? w - 1 : w)) - 1,
         least = meaning_is_signed(to) ? -most - 1 : 0;
    if (is_nan(f, x))
        return 0;
    big exact = is_infinite(f, x) ? big_make(1, 100) : magnitude(f, x);
    wide value = 0;
    for (int n = big_top(&exact) - POINT; n >= 0; n--) {
        value = value * 2 + big_bit(&exact, n + POINT);
        if (value > ((wide)1 << 70))
            break;
    }
    if (is_negative(f, x))
        value = -value;
    return meaning_wrap(to, value > most ? most : value < least ? least : value);
}

uint64_t meaning_cast(int to, int from, uint64_t bits)
{
    if (meaning_is_float(from)) {
        const format *f = format_of(from);
        if (!meaning_is_float(to))
            return expect_truncate(to, f, bits);
        const format *g = format_of(to);
        if (is_nan(f, bits))
            return nan_bits(g);
        if (is_infinite(f, bits))
            return infinity_bits(g) | (is_negative(f, bits) ? sign_bit(g) : 0);
        big exact = magnitude(f, bits);
        return big_round(g, is_negative(f, bits), &exact);
    }
    wide x = number(from, bits);
    if (to == QN_BOOL)
        return x != 0;
    if (!meaning_is_float(to))
        return meaning_wrap(to, x);
    big exact = big_make((uwide)wide_abs(x), 0);
    return big_round(format_of(to), x < 0, &exact);
}

/* ---------------------------------------------------------------- awkward values */

static const double FLOATS[] = {0.0,
                                1.0,
                                0.5,
                                1.5,
                                2.5,
                                3.5,
                                2.0,
                                3.0,
                                0.1,
                                1e10,
                                127.5,
                                128.0,
                                255.5,
                                256.0,
                                32768.0,
                                65535.9,
                                2147483648.0,
                                4294967296.0,
                                9223372036854775808.0,
                                18446744073709551616.0,
                                1e30,
                                8388607.5,
                                8388609.0,
                                16777217.0,
                                1e-30,
                                0x1p-24};

/** Distinct awkward values of a dtype, canonical; returns how many. */
int meaning_awkward(int type, uint64_t *out)
{
    int n = 0, w = meaning_width(type);
    if (type == QN_BOOL) {
        out[0] = 0;
        out[1] = 1;
        return 2;
    }
    if (!meaning_is_float(type)) {
        static const int64_t small[] = {0,  1,  2,  3,   5,  7,  8,  10, 31,
                                        33, 63, 64, 100, -1, -2, -3, -7, -8};
        for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
            out[n++] = meaning_wrap(type, small[i]);
        for (int shift = 1; shift <= 2; shift++)
            for (int by = -1; by <= 1; by++)
                out[n++] = meaning_wrap(type, ((wide)1 << (w - shift)) + by);
        out[n++] = meaning_wrap(type, (wide)0x5a5a5a5a5a5a5a5a);
        out[n++] = meaning_wrap(type, (wide)INT64_MAX - 0x123456789);
        out[n++] = meaning_wrap(type, ((wide)0x101 << 52) + 1); /* above the middle of two bf16 */
        out[n++] = meaning_wrap(type, (wide)0x101 << 23);
        out[n++] = meaning_wrap(type, 65519);
        out[n++] = meaning_wrap(type, 65520);
        return n;
    }
    const format *f = format_of(type);
    for (size_t i = 0; i < sizeof FLOATS / sizeof FLOATS[0]; i++) {
        uint64_t bits;
        memcpy(&bits, &FLOATS[i], sizeof bits);
        out[n++] = type == QN_F64 ? bits : meaning_cast(type, QN_F64, bits);
    }
    uint64_t inf = infinity_bits(f), smallest_normal = UINT64_C(1) << (f->precision - 1);
    const uint64_t edges[] = {1,
                              smallest_normal - 1,
                              smallest_normal,
                              inf - 1,
                              inf,
                              float_one(f) - 1,
                              float_one(f) + 1,
                              inf + 1,
                              inf | smallest_normal >> 1};
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
        out[n++] = edges[i];
    if (type == QN_F64) {
        out[n++] = 0x4330000000000001; /* 2^52 + 1 */
        out[n++] = 0x432fffffffffffff; /* 2^52 - 0.5 */
        out[n++] = 0x36a0000000000000; /* 2^-149, the smallest f32 */
        out[n++] = 0x3690000000000000; /* half of it */
        out[n++] = 0x47efffffefffffff; /* just below where f32 overflows */
        out[n++] = 0x47effffff0000000; /* and there */
        out[n++] = 0x3ff0020000000001; /* above the middle of two neighbours in f16: a tie in f32 */
        out[n++] = 0x40effdffffffffff; /* just below where f16 overflows */
    }
    if (type == QN_F32) {
        out[n++] = 0x3f801000; /* the middle of two neighbours in f16 */
        out[n++] = 0x3f818000; /* and in bf16, to the even one above */
        out[n++] = 0x3f808001; /* just above the middle */
        out[n++] = 0x33000000; /* half the smallest f16 */
        out[n++] = 0x33000001; /* just above */
        out[n++] = 0x387fffff; /* rounds up to the smallest normal f16 */
        out[n++] = 0x477fefff; /* just below where f16 overflows */
        out[n++] = 0x477ff000; /* and there */    }
    for (int i = n, half = n; i < 2 * half && n < MEANING_VALUES; i++)
        out[n++] = out[i - half] ^ sign_bit(f);
    return n;
}

/** Bits equal, or both NaN where the bits of NaN are open. */
bool meaning_agrees(int type, bool nan_is_open, uint64_t found, uint64_t expected)
{
    if (found == expected)
        return true;
    return nan_is_open && meaning_is_float(type) && is_nan(format_of(type), found) &&
           is_nan(format_of(type), expected);
}
