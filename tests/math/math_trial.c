/* SPDX-License-Identifier: Apache-2.0 */
/* math_trial.c: kernels, arguments and references of the mathematical functions for test_math.c and
 * math_accuracy.c. */
#define _GNU_SOURCE
#include "tests/math/math_trial.h"
#include "tests/unit/launch.h"
#include "tests/math/math_references.h"

#include <float.h>

#define RANGE(low, high, near)                                                                     \
    {                                                                                              \
        low, high, near                                                                            \
    }

#define QN_MATH_ROW(name, arguments, results, range_x, range_y, least, f32, f64, most_f32,         \
                    most_f64)                                                                      \
    static void name##_f32(double x, double y, double *r)                                          \
    {                                                                                              \
        (void)x, (void)y;                                                                          \
        f32;                                                                                       \
    }                                                                                              \
    static void name##_f64(long double x, long double y, long double *r)                           \
    {                                                                                              \
        (void)x, (void)y;                                                                          \
        f64;                                                                                       \
    }
#include "tests/math/math_rows.def"
#undef QN_MATH_ROW

static const math_row rows[] = {
#define QN_MATH_ROW(name, arguments, results, range_x, range_y, least, f32, f64, most_f32,         \
                    most_f64)                                                                      \
    {#name, arguments,  results,    {range_x, range_y},                                            \
     least, name##_f32, name##_f64, {most_f32, most_f64}},
#include "tests/math/math_rows.def"
#undef QN_MATH_ROW
};

const math_row *qn__math_row(int i)
{
    return i < (int)(sizeof rows / sizeof rows[0]) ? &rows[i] : NULL;
}

static int dtype_of(char kind, int dtype)
{
    return kind == 'f' ? dtype : kind == 'b' ? QN_BOOL : QN_I32;
}

/** results[i] = f(arguments[i]) */
static qn_kernel *kernel_of_function(const math_trial *t)
{
    static const char *const labels[] = {"x", "y", "r", "s"};
    qn_builder *b = qn_builder_new(t->row->name, 0);
    qn_param arguments[2], results[MOST_RESULTS];
    qn_val v[2], r[QN_MAX_CARRIED];
    for (int a = 0; a < t->n_arguments; a++)
        arguments[a] = qn_view_param(b, labels[a], dtype_of(t->row->arguments[a], t->dtype), 1, 0);
    for (int a = 0; a < t->n_results; a++)
        results[a] = qn_view_param(b, labels[2 + a], dtype_of(t->row->results[a], t->dtype), 1, 0);
    qn_val i = qn_parallel_over(b, results[0], 0);
    for (int a = 0; a < t->n_arguments; a++)
        v[a] = qn_load(b, arguments[a], 1, &i);
    qn_math(b, t->row->name, t->n_arguments, v, r);
    for (int a = 0; a < t->n_results; a++)
        qn_store(b, results[a], 1, &i, r[a]);
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_finish(b, &k, &err) != QN_OK)
        tap_ok(false, "%s: %s", t->row->name, err.message);
    qn_builder_release(b);
    return k;
}

math_trial qn__trial_begin(qn_context *c, const math_row *row, int dtype)
{
    math_trial t = {.row = row, .dtype = dtype, .c = c};
    t.n_arguments = (int)strlen(row->arguments);
    t.n_results = (int)strlen(row->results);
    t.k = kernel_of_function(&t);
    for (int a = 0; a < t.n_arguments; a++)
        t.views[a] = vector_of(c, "argument", dtype_of(row->arguments[a], dtype), TRIAL_ELEMENTS);
    for (int a = 0; a < t.n_results; a++)
        t.views[t.n_arguments + a] =
            vector_of(c, "result", dtype_of(row->results[a], dtype), TRIAL_ELEMENTS);
    return t;
}

void qn__trial_end(math_trial *t)
{
    for (int a = 0; a < t->n_arguments + t->n_results; a++)
        qn_view_release(&t->views[a]);
    qn_kernel_release(t->k);
}

void qn__trial_compute(const math_trial *t)
{
    qn_arg args[2 + MOST_RESULTS];
    qn_error err = {0};
    for (int a = 0; a < t->n_arguments + t->n_results; a++)
        args[a] = qn_arg_view(&t->views[a]);
    if (qn_launch(t->c, t->k, t->n_arguments + t->n_results, args, NULL, &err) != QN_OK)
        tap_ok(false, "%s", err.message);
}

double qn__trial_get(const qn_view *v, int i)
{
    switch (v->dtype) {
    case QN_F32: return ((float *)v->data)[i];
    case QN_F64: return ((double *)v->data)[i];
    case QN_I32: return ((int32_t *)v->data)[i];
    default: return ((uint8_t *)v->data)[i];
    }
}

void qn__trial_read(const qn_view *v, double values[TRIAL_ELEMENTS])
{
    if (v->dtype == QN_F32)
        for (int i = 0; i < TRIAL_ELEMENTS; i++)
            values[i] = (double)((const float *)v->data)[i];
    else
        for (int i = 0; i < TRIAL_ELEMENTS; i++)
            values[i] = qn__trial_get(v, i);
}

void qn__trial_set(const qn_view *v, int i, double value)
{
    switch (v->dtype) {
    case QN_F32: ((float *)v->data)[i] = (float)value; break;
    case QN_F64: ((double *)v->data)[i] = value; break;
    default: ((int32_t *)v->data)[i] = (int32_t)fmin(fmax(value, INT32_MIN), INT32_MAX); break;
    }
}

double qn__ulp_of(long double exact, double least, int dtype)
{
    int exponent = 0, digits = dtype == QN_F32 ? 24 : 53, smallest = dtype == QN_F32 ? -149 : -1074;
    if (exact == 0 && least == 0)
        return ldexp(1, smallest);
    frexpl(fmaxl(fabsl(exact), least), &exponent);
    return ldexp(1, exponent - digits < smallest ? smallest : exponent - digits);
}

/** A uniform number in [0, 1). */
static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

/** A magnitude of [least, most], log-uniform. */
static double magnitude(double least, double most, uint64_t *state)
{
    return exp2(log2(least) + uniform(state) * (log2(most) - log2(least)));
}

double qn__trial_draw(const math_range *of, int dtype, uint64_t *state)
{
    double bound = dtype == QN_F32 ? FLT_MAX : DBL_MAX,
           smallest = dtype == QN_F32 ? 0x1p-149 : 0x1p-1074;
    double low = fmax(of->low, -bound), high = fmin(of->high, bound), most = fmax(-low, high),
           kind = uniform(state);
    double v = 0;
    if (of->near != 0 &&
        kind <
            0.3) { /* from far below the step to many steps, and off by a few units to a quarter */
        double times = round(magnitude(0.6, fmin(most / of->near, 0x1p40), state));
        v = times * of->near * (1 + (2 * uniform(state) - 1) * magnitude(0x1p-53, 0.25, state));
    } else if (kind < 0.5) {
        v = 2 * uniform(state) - 1;
    } else if (kind < 0.75) {
        v = magnitude(smallest, most, state);
    } else {
        v = low + uniform(state) * (high / 2 - low / 2) * 2;
    }
    if (kind < 0.75 && uniform(state) < 0.5)
        v = -v;
    return fmin(fmax(v, low), high);
}
