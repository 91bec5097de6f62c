/* SPDX-License-Identifier: Apache-2.0 */
/* math_accuracy_exact.c: the mathematical functions in MPFR, and the table of hard arguments
 * compared with them. */
#include "tests/math/math_accuracy.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define QN_MATH_EXACT(name, statements)                                                            \
    static void name##_exact(mpfr_t *r, mpfr_t x, mpfr_t y)                                        \
    {                                                                                              \
        (void)x, (void)y;                                                                          \
        statements;                                                                                \
    }
#include "tests/math/math_exact.def"
#undef QN_MATH_EXACT

static const math_exact exacts[] = {
#define QN_MATH_EXACT(name, statements) {#name, name##_exact},
#include "tests/math/math_exact.def"
#undef QN_MATH_EXACT
};

const math_exact *qn__find_exact(const char *name)
{
    if (strncmp(name, "cr_", 3) == 0)
        name += 3;
    for (size_t i = 0; i < sizeof exacts / sizeof exacts[0]; i++)
        if (strcmp(exacts[i].name, name) == 0)
            return &exacts[i];
    return NULL;
}

double qn__nearest_of(mpfr_t value, int dtype)
{
    return dtype == QN_F32 ? (double)mpfr_get_flt(value, MPFR_RNDN) : mpfr_get_d(value, MPFR_RNDN);
}

/** -log2 of the distance between a number and the middle of two numbers of the dtype, in ulp; no
 * smaller than 1. */
static double bits_to_middle(mpfr_t value, int dtype)
{
    mpfr_t ulps, below;
    mpfr_inits2(DIGITS, ulps, below, (mpfr_ptr)0);
    mpfr_mul_2si(ulps, value, (dtype == QN_F32 ? 24 : 53) - mpfr_get_exp(value), MPFR_RNDN);
    mpfr_floor(below, ulps);
    mpfr_sub(ulps, ulps, below, MPFR_RNDN);
    mpfr_sub_d(ulps, ulps, 0.5, MPFR_RNDN);
    double distance = fabs(mpfr_get_d(ulps, MPFR_RNDN));
    mpfr_clears(ulps, below, (mpfr_ptr)0);
    return -log2(distance);
}

/** One row: whether its result is MPFR's. */
static bool check_row(const char *name, int dtype, double x, double y, long double result,
                      bool is_rounded)
{
    const math_exact *exact = qn__find_exact(name);
    mpfr_t vx, vy, r[2];
    if (!exact)
        return false;
    mpfr_inits2(DIGITS, vx, vy, r[0], r[1], (mpfr_ptr)0);
    mpfr_set_d(vx, x, MPFR_RNDN);
    mpfr_set_d(vy, y, MPFR_RNDN);
    exact->f(r, vx, vy);
    bool is_good = is_rounded ? qn__nearest_of(r[0], dtype) == (double)result
                              : mpfr_get_ld(r[0], MPFR_RNDN) == result;
    printf("%s: %s of %s at %a, %a: %.1f bits from the middle of two numbers\n",
           is_good ? "ok" : "WRONG", name, qn_dtype_name(dtype), x, y, bits_to_middle(r[0], dtype));
    mpfr_clears(vx, vy, r[0], r[1], (mpfr_ptr)0);
    return is_good;
}

int qn__check_hard(void)
{
    bool is_good = true;
#define QN_MATH_HARD(name, dtype, x, y, exact)                                                     \
    is_good &= check_row(#name, dtype, x, y, exact, false);
#define QN_MATH_ROUNDED(name, x, nearest) is_good &= check_row(#name, QN_F32, x, 0, nearest, true);
#include "tests/math/math_hard.def"
#undef QN_MATH_HARD
#undef QN_MATH_ROUNDED
    return !is_good;
}
