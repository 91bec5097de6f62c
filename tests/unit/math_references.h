/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_references.h: reference functions of math_rows.def that the C library lacks, in double (name) and in long double (namel).
 */
#ifndef QN_TESTS_UNIT_MATH_REFERENCES_H
#define QN_TESTS_UNIT_MATH_REFERENCES_H

#include <math.h>

/** sin(pi x). The argument is reduced exactly; zeros have the sign of x (C23, F.10.1). */
static inline long double sine_of_half_turnsl(long double x)
{
    static const long double pi = 3.14159265358979323846264338327950288L;
    long double y = fmodl(fabsl(x), 2), sign = x < 0 ? -1 : 1;
    if (isinf(x) || isnan(x))
        return NAN;
    if (y == 0 || y == 1)
        return copysignl(0, x);
    if (y > 1) {
        y -= 1;
        sign = -sign;
    }
    y = y > 0.5L ? 1 - y : y;
    return sign * (y <= 0.25L ? sinl(pi * y) : cosl(pi * (0.5L - y)));
}

/** cos(pi x). The argument is reduced exactly; zeros are +0 (C23, F.10.1). */
static inline long double cosine_of_half_turnsl(long double x)
{
    static const long double pi = 3.14159265358979323846264338327950288L;
    long double y = fmodl(fabsl(x), 2);
    if (isinf(x) || isnan(x))
        return NAN;
    y = y > 1 ? 2 - y : y;
    if (y == 0.5L)
        return 0;
    long double part = y > 0.5L ? 1 - y : y;
    return (y > 0.5L ? -1 : 1) * (part <= 0.25L ? cosl(pi * part) : sinl(pi * (0.5L - part)));
}

static inline double sine_of_half_turns(double x)
{
    return (double)sine_of_half_turnsl(x);
}

static inline double cosine_of_half_turns(double x)
{
    return (double)cosine_of_half_turnsl(x);
}

/** x times the normal distribution of x, -0 at -inf. */
static inline double gelu(double x)
{
    return x < -1e3 ? -0.0 : x * erfc(-x * 0.70710678118654752440) / 2;
}
static inline long double gelul(long double x)
{
    return x < -1e3L ? -0.0L : x * erfcl(-x * 0.707106781186547524400844362104849039L) / 2;
}

/** log(1 + e^x) */
static inline double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static inline long double softplusl(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

#endif
