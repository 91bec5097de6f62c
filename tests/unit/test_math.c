/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_math.c: the error of the mathematical functions in units in the last place, against the C library in a wider type:
 * f32 against double, f64 against long double. A sample of all f32 numbers, or with the argument "all" every one of them, and
 * random f64 numbers, as many as the second argument says. Special values stand in the case files math_*.case.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <math.h>

enum { N = 1 << 16 };

static const struct function {
    const char *name;
    double (*f32)(double);
    long double (*f64)(long double);
    double range;    /* of the random f64 arguments */
    double most[2];  /* ulp, of f32 and f64 */
} functions[] = {
    {"exp", exp, expl, 760, {0.76, 0.76}},
    {"exp2", exp2, exp2l, 1100, {0.76, 0.76}},
    {"exp10", exp10, exp10l, 330, {0.76, 0.76}},
};

/** y[i] = f(x[i]) */
static qn_kernel *kernel_of_function(const char *name, int dtype)
{
    qn_builder *b = qn_builder_new(name, 0);
    qn_param x = qn_view_param(b, "x", dtype, 1, 0), y = qn_view_param(b, "y", dtype, 1, 0);
    qn_val i = qn_parallel_over(b, y, 0), v = qn_load(b, x, 1, &i), result;
    qn_math(b, name, 1, &v, &result);
    qn_store(b, y, 1, &i, result);
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_finish(b, &k, &err) != QN_OK)
        tap_ok(false, "%s: %s", name, err.message);
    qn_builder_release(b);
    return k;
}

typedef struct errors {
    int64_t n, n_wrong; /* values; infinities and NaN that are not what they should be */
    double worst, at;   /* ulp */
} errors;

/** Adds the error of y, which is to be near `exact`. */
static void add_error(errors *e, double x, double y, long double exact, double nearest, int digits, int least)
{
    e->n++;
    if (isnan(exact) || isinf(nearest) || isinf(y)) {
        e->n_wrong += isnan(exact) ? !isnan(y) : y != nearest;
        return;
    }
    int exponent;
    frexpl(exact, &exponent);
    double ulp = ldexp(1, exponent - digits < least ? least : exponent - digits);
    double error = (double)(fabsl(y - exact) / ulp);
    if (!(error <= e->worst)) {
        e->worst = error;
        e->at = x;
    }
}

static void launch(qn_context *c, const qn_kernel *k, const qn_view *x, const qn_view *y)
{
    const qn_arg args[] = {qn_arg_view(x), qn_arg_view(y)};
    qn_error err = {0};
    if (qn_launch(c, k, 2, args, NULL, &err) != QN_OK)
        tap_ok(false, "%s", err.message);
}

static void report(const struct function *f, const char *dtype, const errors *e, double most)
{
    tap_ok(e->n_wrong == 0 && e->worst <= most, "%s of %s: %" PRId64 " values, error at most %.4f ulp, at %a", f->name, dtype,
           e->n, e->worst, e->at);
    if (e->n_wrong)
        tap_note("%" PRId64 " infinities or NaN are wrong", e->n_wrong);
}

static void test_f32(qn_context *c, const struct function *f, uint64_t step)
{
    qn_kernel *k = kernel_of_function(f->name, QN_F32);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    errors e = {0};
    for (uint64_t bits = 0; bits <= UINT32_MAX;) {
        int n = 0;
        for (; n < N && bits <= UINT32_MAX; n++, bits += step) {
            uint32_t number = (uint32_t)bits;
            memcpy((float *)x.data + n, &number, sizeof number);
        }
        launch(c, k, &x, &y);
        for (int i = 0; i < n; i++) {
            double at = ((float *)x.data)[i], exact = f->f32(at);
            add_error(&e, at, ((float *)y.data)[i], exact, (float)exact, 24, -149);
        }
    }
    report(f, "f32", &e, f->most[0]);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

/** A uniform number in [0, 1). */
static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

/** A third over the range, a third in [-1, 1), a third of all small magnitudes. */
static double draw(const struct function *f, uint64_t *state)
{
    double kind = uniform(state), v = 2 * uniform(state) - 1;
    return kind < 0.33 ? v * f->range : kind < 0.66 ? v : ldexp(v, -(int)(60 * uniform(state)));
}

static void test_f64(qn_context *c, const struct function *f, int64_t count)
{
    static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 0x1p-1074, -0x1p-1074, 1, -1, 0.5};
    enum { N_SPECIAL = sizeof special / sizeof special[0] };
    qn_kernel *k = kernel_of_function(f->name, QN_F64);
    qn_view x = vector_of(c, "x", QN_F64, N), y = vector_of(c, "y", QN_F64, N);
    uint64_t state = 1;
    errors e = {0};
    for (int64_t done = 0; done < count; done += N) {
        for (int i = 0; i < N; i++)
            ((double *)x.data)[i] = done == 0 && i < N_SPECIAL ? special[i] : draw(f, &state);
        launch(c, k, &x, &y);
        for (int i = 0; i < N; i++) {
            double at = ((double *)x.data)[i];
            long double exact = f->f64(at);
            add_error(&e, at, ((double *)y.data)[i], exact, (double)exact, 53, -1074);
        }
    }
    report(f, "f64", &e, f->most[1]);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

/** A name that there is none of, and a dtype that a function does not take. */
static void test_refused(void)
{
    static const char *const names[] = {"expo", "exp"};
    for (int i = 0; i < 2; i++) {
        qn_builder *b = qn_builder_new("k", 0);
        qn_val x = qn_scalar_param(b, "x", i ? QN_I32 : QN_F32), y;
        qn_error err = {0};
        qn_math(b, names[i], 1, &x, &y);
        tap_ok(qn_builder_status(b, &err) == QN_ERR_NOT_FOUND, "refused: %s", err.message);
        qn_builder_release(b);
    }
}

int main(int argc, char **argv)
{
    bool is_all = argc > 1 && strcmp(argv[1], "all") == 0;
    int64_t count = argc > 2 ? atoll(argv[2]) : 200000;
    qn_context *c = context_with(NULL);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        test_f32(c, &functions[i], is_all ? 1 : 1021);
        test_f64(c, &functions[i], count);
    }
    test_refused();
    qn_context_release(c);
    return tap_done();
}
