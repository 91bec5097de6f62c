/* SPDX-License-Identifier: Apache-2.0 */
/* math_accuracy.h: the mathematical functions in MPFR (math_accuracy_exact.c). */
#ifndef QN_TESTS_MATH_ACCURACY_H
#define QN_TESTS_MATH_ACCURACY_H

#include "quern.h"

#include <mpfr.h>

/** Precision of arguments and results, in bits: of doubles and their hardest results, with many to spare. */
enum { DIGITS = 200 };

/** A row of math_exact.def. */
typedef struct math_exact {
    const char *name;
    void (*f)(mpfr_t *r, mpfr_t x, mpfr_t y);
} math_exact;

/** The function without its cr_; NULL if MPFR has none. */
const math_exact *qn__find_exact(const char *name);
/** MPFR's number rounded once to the dtype, subnormal results too. */
double qn__nearest_of(mpfr_t value, int dtype);
/** Compares math_hard.def with MPFR, and prints how close each result is to the middle of two numbers; 0 if all is right. */
int qn__check_hard(void);

#endif
