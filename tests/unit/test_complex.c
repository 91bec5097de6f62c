/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_complex.c: the error of functions of complex numbers, as a distance in units in the last place of the number, against the C
 * library in long double. Special values stand in the case files math_complex*.case.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <complex.h>
#include <math.h>

enum { N = 1 << 15 };

static const struct function {
    const char *name;
    long double complex (*exact)(long double complex);
    double most[2]; /* of c64 and c128 */
} functions[] = {
    {"sqrt", csqrtl, {0.51, 0.9}},
    {"exp", cexpl, {1.2, 1.2}},
    {"log", clogl, {1, 1}},
};

/** w[i] = f(z[i]) */
static qn_kernel *kernel_of_function(const char *name, int dtype)
{
    qn_builder *b = qn_builder_new(name, 0);
    qn_param z = qn_view_param(b, "z", dtype, 1, 0), w = qn_view_param(b, "w", dtype, 1, 0);
    qn_val i = qn_parallel_over(b, w, 0), v = qn_load(b, z, 1, &i), result = {0};
    qn_math(b, name, 1, &v, &result);
    qn_store(b, w, 1, &i, result);
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_finish(b, &k, &err) != QN_OK)
        tap_ok(false, "%s: %s", name, err.message);
    qn_builder_release(b);
    return k;
}

static double uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 11) * 0x1p-53;
}

/** A number of the plane: near the origin, near the circle, of all magnitudes. */
static double complex draw(uint64_t *state, bool is_wide)
{
    double kind = uniform(state), x = 8 * uniform(state) - 4, y = 8 * uniform(state) - 4;
    if (kind < 0.3) { /* near the circle */
        double near = 1 + ldexp(x, -(int)(30 * uniform(state))) / 8;
        return CMPLX(near * cos(y), near * sin(y));
    }
    int range = is_wide ? 1000 : 120;
    return kind < 0.6 ? CMPLX(x, y) : CMPLX(ldexp(x, (int)(range * (2 * uniform(state) - 1))), ldexp(y, (int)(range * (2 * uniform(state) - 1))));
}

static void test_function(qn_context *c, const struct function *f, bool is_wide)
{
    int dtype = is_wide ? QN_C128 : QN_C64;
    qn_kernel *k = kernel_of_function(f->name, dtype);
    qn_view z = vector_of(c, "z", dtype, N), w = vector_of(c, "w", dtype, N);
    const qn_arg args[] = {qn_arg_view(&z), qn_arg_view(&w)};
    uint64_t state = 1;
    double worst = 0;
    double complex at = 0;
    qn_error err = {0};
    for (int i = 0; i < N; i++)
        if (is_wide)
            ((double complex *)z.data)[i] = draw(&state, true);
        else
            ((float complex *)z.data)[i] = (float complex)draw(&state, false);
    if (qn_launch(c, k, 2, args, NULL, &err) != QN_OK)
        tap_ok(false, "%s", err.message);
    for (int i = 0; i < N; i++) {
        double complex from = is_wide ? ((double complex *)z.data)[i] : (double complex)((float complex *)z.data)[i];
        double complex to = is_wide ? ((double complex *)w.data)[i] : (double complex)((float complex *)w.data)[i];
        long double complex exact = f->exact(from);
        long double ulp = cabsl(exact) * (is_wide ? 0x1p-52L : 0x1p-23L);
        long double least = is_wide ? 0x1p-1022L : 0x1p-126L, most = is_wide ? 0x1p1023L : 0x1p127L;
        if (!(cabsl(exact) > least && cabsl(exact) < most))
            continue;
        double error = (double)(cabsl(to - exact) / ulp);
        if (!(error <= worst)) {
            worst = error;
            at = from;
        }
    }
    tap_ok(worst <= f->most[is_wide], "%s of %s: %d numbers, error at most %.3f ulp, at %a %a", f->name, qn_dtype_name(dtype), N, worst,
           creal(at), cimag(at));
    qn_view_release(&z);
    qn_view_release(&w);
    qn_kernel_release(k);
}

int main(void)
{
    qn_context *c = context_with(NULL);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        test_function(c, &functions[i], false);
        test_function(c, &functions[i], true);
    }
    qn_context_release(c);
    return tap_done();
}
