/* SPDX-License-Identifier: Apache-2.0 */
/* math_accuracy.h: what the files of math_accuracy share: rows of the table, functions in MPFR. */
#ifndef QN_TESTS_MATH_ACCURACY_H
#define QN_TESTS_MATH_ACCURACY_H

#include "tests/math/math_trial.h"

#include <mpfr.h>
#include <stdbool.h>

/** Precision in MPFR, in bits: the hardest results of doubles need 130. */
enum { DIGITS = 200 };

enum { MOST_WRONG = 64 };

/** What was found in some blocks of arguments. */
typedef struct math_found {
    int64_t n;
    int64_t n_wrong;             /* not correctly rounded, as far as the filter can tell */
    int64_t n_special;           /* infinities and NaN that are not what they should be */
    double worst, at_x, at_y;    /* ulp */
    double wrong[MOST_WRONG][2]; /* the first n_listed arguments with a wrong result */
    int n_listed;
} math_found;

/** A row of the table: a function of one dtype. */
typedef struct math_line {
    const math_row *row;
    int dtype;
    int64_t n_blocks, next; /* blocks of N arguments; the first one that was not looked at */
    math_found found;
} math_line;

/* ---- math_accuracy_search.c */

/** Whether all arguments are looked at. */
bool qn__is_exhaustive(const math_row *row, int dtype);
/** Whether the function is rounded once by its bound: half an ulp, or none. */
bool qn__is_rounded(const math_row *row, int dtype);
double qn__seconds_now(void);
/** Looks at blocks from `next` on for so many seconds; false if a process failed. */
bool qn__search_line(math_line *l, double seconds);

/* ---- math_accuracy_exact.c */

/** A row of math_exact.def. */
typedef struct math_exact {
    const char *name;
    void (*f)(mpfr_t *r, mpfr_t x, mpfr_t y);
} math_exact;

/** The function without its cr_; NULL if MPFR has none. */
const math_exact *qn__find_exact(const char *name);
/** MPFR's number rounded once to the dtype, subnormal results too. */
double qn__nearest_of(mpfr_t value, int dtype);
/** Compares math_hard.def with MPFR, and prints how close each result is to the middle of two
 * numbers; 0 if all is right. */
int qn__check_hard(void);

#endif
