/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_complex.c: the error of functions of complex numbers, as a distance in units in the last
 * place of the number, against the C library in long double. An argument is how many numbers are
 * looked at. Special values stand in the case files math_complex*.case.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>


/* A function of z, of z and w, or of the parts of z. */
typedef struct function {
    const char *name;
    int arity;
    long double complex (*exact)(long double complex z, long double complex w);
    double most[2]; /* of c64 and c128 */
} function;

/** x + iy; the parts of a complex number are an array. */
static double complex number(double x, double y)
{
    const double parts[2] = {x, y};
    double complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}

static long double complex wide_number(long double x, long double y)
{
    const long double parts[2] = {x, y};
    long double complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}

static long double complex exact_sqrt(long double complex z, long double complex w)
{
    (void)w;
    return csqrtl(z);
}

static long double complex exact_exp(long double complex z, long double complex w)
{
    (void)w;
    return cexpl(z);
}

static long double complex exact_log(long double complex z, long double complex w)
{
    (void)w;
    return clogl(z);
}

static long double complex exact_sin(long double complex z, long double complex w)
{
    (void)w;
    return csinl(z);
}

static long double complex exact_cos(long double complex z, long double complex w)
{
    (void)w;
    return ccosl(z);
}

static long double complex exact_polar(long double complex z, long double complex w)
{
    (void)w;
    return wide_number(creall(z) * cosl(cimagl(z)), creall(z) * sinl(cimagl(z)));
}

/* The reference of pow is wrong by |w log z| 2^-64: up to 0.2 ulp of c128. */
static const function functions[] = {
    {"sqrt", 1, exact_sqrt, {0.51, 1.15}}, {"exp", 1, exact_exp, {1.25, 1.25}},
    {"log", 1, exact_log, {1.4, 1.4}},     {"sin", 1, exact_sin, {0.51, 1.55}},
    {"cos", 1, exact_cos, {0.51, 1.55}},   {"polar", 0, exact_polar, {0.97, 0.95}},
    {"pow", 2, cpowl, {0.51, 1.45}},
};

/** q[i] = f(z[i], w[i]) */
static qn_kernel *kernel_of_function(const function *f, int dtype)
{
    qn_builder *b = qn_builder_new(f->name, 0);
    qn_param z = qn_view_param(b, "z", dtype, 1, 0), w = qn_view_param(b, "w", dtype, 1, 0),
             q = qn_view_param(b, "q", dtype, 1, 0);
    qn_val i = qn_parallel_over(b, q, 0), from = qn_load(b, z, 1, &i), result = {0};
    const qn_val both[2] = {from, qn_load(b, w, 1, &i)},
                 parts[2] = {qn_real(b, from), qn_imag(b, from)};
    qn_math(b, f->name, f->arity == 1 ? 1 : 2, f->arity == 0 ? parts : both, &result);
    qn_store(b, q, 1, &i, result);
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_finish(b, &k, &err) != QN_OK)
        tap_ok(false, "%s: %s", f->name, err.message);
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
        return number(near * cos(y), near * sin(y));
    }
    int range = is_wide ? 1000 : 120;
    return kind < 0.6 ? number(x, y)
                      : number(ldexp(x, (int)(range * (2 * uniform(state) - 1))),
                               ldexp(y, (int)(range * (2 * uniform(state) - 1))));
}

/** An exponent with which |w log z| is as large as the powers of a dtype allow, or smaller; of c64
 * also much larger, where the power is mostly an angle. */
static double complex draw_exponent(uint64_t *state, double complex z, bool is_wide)
{
    double size = (is_wide ? 700 : 85) * ldexp(uniform(state), -(int)(12 * uniform(state))),
           angle = 8 * uniform(state);
    double length = cabs(clog(z));
    if (!is_wide && uniform(state) < 0.3)
        return number(80 * uniform(state) - 40, ldexp(uniform(state), (int)(20 * uniform(state)))) /
               clog(z);
    return length > 0 ? number(size * cos(angle) / length, size * sin(angle) / length) : 1;
}

static double complex number_at(const qn_view *v, int i, bool is_wide)
{
    return is_wide ? ((const double complex *)v->data)[i]
                   : (double complex)((const float complex *)v->data)[i];
}

static void set_number(qn_view *v, int i, bool is_wide, double complex x)
{
    if (is_wide)
        ((double complex *)v->data)[i] = x;
    else
        ((float complex *)v->data)[i] = (float complex)x;
}

static void test_function(qn_context *c, const function *f, bool is_wide, int n)
{
    int dtype = is_wide ? QN_C128 : QN_C64, n_seen = 0;
    qn_kernel *k = kernel_of_function(f, dtype);
    qn_view z = vector_of(c, "z", dtype, n), w = vector_of(c, "w", dtype, n),
            q = vector_of(c, "q", dtype, n);
    const qn_arg args[] = {qn_arg_view(&z), qn_arg_view(&w), qn_arg_view(&q)};
    uint64_t state = 1;
    double worst = 0;
    double complex at = 0, to_the = 0;
    qn_error err = {0};
    for (int i = 0; i < n; i++) {
        set_number(&z, i, is_wide, draw(&state, is_wide));
        set_number(&w, i, is_wide,
                   f->arity == 2 ? draw_exponent(&state, number_at(&z, i, is_wide), is_wide) : 0);
    }
    if (qn_launch(c, k, 3, args, NULL, &err) != QN_OK)
        tap_ok(false, "%s", err.message);
    for (int i = 0; i < n; i++) {
        double complex from = number_at(&z, i, is_wide), power = number_at(&w, i, is_wide);
        long double complex exact = f->exact(from, power);
        long double ulp = cabsl(exact) * (is_wide ? 0x1p-52L : 0x1p-23L);
        long double least = is_wide ? 0x1p-1022L : 0x1p-126L, most = is_wide ? 0x1p1023L : 0x1p127L;
        if (!(cabsl(exact) > least && cabsl(exact) < most))
            continue;
        n_seen++;
        double error = (double)(cabsl(number_at(&q, i, is_wide) - exact) / ulp);
        if (!(error <= worst)) {
            worst = error;
            at = from;
            to_the = power;
        }
    }
    tap_ok(worst <= f->most[is_wide] && n_seen > n / 4,
           "%s of %s: %d numbers, error at most %.3f ulp, at %a %a, %a %a", f->name,
           qn_dtype_name(dtype), n_seen, worst, creal(at), cimag(at), creal(to_the), cimag(to_the));
    qn_view_release(&z);
    qn_view_release(&w);
    qn_view_release(&q);
    qn_kernel_release(k);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1 << 15;
    qn_context *c = context_with(NULL);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        test_function(c, &functions[i], false, n);
        test_function(c, &functions[i], true, n);
    }
    qn_context_release(c);
    return tap_done();
}
