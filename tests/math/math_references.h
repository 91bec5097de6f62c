/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_references.h: reference functions of math_rows.def that the C library lacks, in double
 * (name) and in long double (namel).
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

/** Both in double, for x of f32; fmod is exact. */
static inline double sine_of_half_turns(double x)
{
    static const double pi = 3.14159265358979323846;
    double y = fmod(fabs(x), 2), sign = (x < 0) != (y > 1) ? -1 : 1;
    if (isinf(x) || isnan(x))
        return NAN;
    if (y == 0 || y == 1)
        return copysign(0, x);
    y = y > 1 ? y - 1 : y;
    y = y > 0.5 ? 1 - y : y;
    return sign * (y <= 0.25 ? sin(pi * y) : cos(pi * (0.5 - y)));
}

static inline double cosine_of_half_turns(double x)
{
    static const double pi = 3.14159265358979323846;
    double y = fmod(fabs(x), 2);
    if (isinf(x) || isnan(x))
        return NAN;
    y = y > 1 ? 2 - y : y;
    if (y == 0.5)
        return 0;
    double part = y > 0.5 ? 1 - y : y;
    return (y > 0.5 ? -1 : 1) * (part <= 0.25 ? cos(pi * part) : sin(pi * (0.5 - part)));
}

/**
 * x times the normal distribution of x, -0 at -inf: x erfc(t) / 2 with t = -x / sqrt(2) in two
 * parts, as the relative error of erfc is about 2 t^2 times that of t. The derivative of erfc takes
 * the second part.
 */
static inline double gelu(double x)
{
    static const double root = 0.70710678118654752440,
                        rest = -0x1.bdd3413b26456p-55; /* 1 / sqrt(2) */
    double t = -x * root, t2 = fma(-x, root, -t) - x * rest;
    if (!(x >= -1e3 && x <= 1e3))
        return x < 0 ? -0.0 : x;
    return x * (erfc(t) - 1.12837916709551257390 * exp(-t * t) * t2) / 2;
}
static inline long double gelul(long double x)
{
    static const long double root = 0.707106781186547524400844362104849039L,
                             rest = 0x1.65f626cdd52bp-66L; /* 1 / sqrt(2) */
    long double t = -x * root, t2 = fmal(-x, root, -t) - x * rest;
    if (!(x >= -1e3L && x <= 1e3L))
        return x < 0 ? -0.0L : x;
    return x * (erfcl(t) - 1.12837916709551257389615890312154517L * expl(-t * t) * t2) / 2;
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
