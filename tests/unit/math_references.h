/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_references.h: reference functions of math_rows.def that the C library lacks, in double (name) and in long double (namel).
 */
#ifndef QN_TESTS_UNIT_MATH_REFERENCES_H
#define QN_TESTS_UNIT_MATH_REFERENCES_H

#include <math.h>

/** sin(pi x): x less the nearest integer is exact. */
static inline double sine_of_half_turns(double x)
{
    double n = nearbyint(x), rest = x - n, s = sin(3.14159265358979323846 * rest);
    return isinf(x) ? NAN : rest == 0 ? copysign(0, x) : fmod(n, 2) != 0 ? -s : s;
}

/** cos(pi x), which is the sine of pi (1/2 - |x|), computed from the nearest of the two. */
static inline double cosine_of_half_turns(double x)
{
    double n = nearbyint(x), rest = fabs(x - n);
    double c = rest < 0.25 ? cos(3.14159265358979323846 * rest) : sin(3.14159265358979323846 * (0.5 - rest));
    return isinf(x) ? NAN : fmod(n, 2) != 0 && c != 0 ? -c : c;
}

#endif
