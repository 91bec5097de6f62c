/* SPDX-License-Identifier: Apache-2.0 */
/*
 * math_trial.h: what the programs that measure errors of mathematical functions share: the
 * functions of unit/math_rows.def, a kernel for one of them with its arguments and results, random
 * arguments, and what an ulp is.
 */
#ifndef QN_TESTS_MATH_TRIAL_H
#define QN_TESTS_MATH_TRIAL_H

#include "quern.h"

#include <stdint.h>

enum { TRIAL_ELEMENTS = 1 << 16, MOST_RESULTS = 2 };

typedef struct math_range {
    double low, high, near;
} math_range;

/** A row of math_rows.def. */
typedef struct math_row {
    const char *name, *arguments, *results;
    math_range range[2];
    double least;
    void (*f32)(double x, double y, double *r);
    void (*f64)(long double x, long double y, long double *r);
    double most[2]; /* ulp, of f32 and f64; negative: there is no function of that dtype */
} math_row;

/** Row i; NULL behind the last. */
const math_row *qn__math_row(int i);

/** What a function of one dtype is tried with. */
typedef struct math_trial {
    const math_row *row;
    int dtype, n_arguments, n_results;
    qn_context *c;
    qn_kernel *k;
    qn_view views[2 + MOST_RESULTS]; /* arguments, then results, of TRIAL_ELEMENTS elements */
} math_trial;

/** Makes kernel and views; a failure is a failed test. */
math_trial qn__trial_begin(qn_context *c, const math_row *row, int dtype);
void qn__trial_end(math_trial *t);
/** Computes all elements. */
void qn__trial_compute(const math_trial *t);

/** Element i of an argument or result, all elements, and the change of one. */
double qn__trial_get(const qn_view *v, int i);
void qn__trial_read(const qn_view *v, double values[TRIAL_ELEMENTS]);
void qn__trial_set(const qn_view *v, int i, double value);
/** A number of the range: see math_rows.def. */
double qn__trial_draw(const math_range *of, int dtype, uint64_t *state);
/** The distance between neighbouring numbers at `exact`, or at the magnitude `least` where that is
 * larger. */
double qn__ulp_of(long double exact, double least, int dtype);

#endif
