/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_random.c: normal numbers against the formula that docs/random.md states, in a wider type,
 * and the moments and tails of normal and uniform numbers. Words, uniform numbers and integers
 * stand in the case files math_philox.case and so on.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <math.h>

enum { N = 1 << 16 };
#define QUARTER 1.57079632679489661923132169163975144L

static qn_kernel *finish(qn_builder *b)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_finish(b, &k, &err) != QN_OK)
        tap_ok(false, "%s", err.message);
    qn_builder_release(b);
    return k;
}

/** x[i], y[i] = normal a[i], b[i] */
static qn_kernel *kernel_of_words(int word, int dtype)
{
    qn_builder *b = qn_builder_new("normal", 0);
    qn_param in[2] = {qn_view_param(b, "a", word, 1, 0), qn_view_param(b, "b", word, 1, 0)};
    qn_param out[2] = {qn_view_param(b, "x", dtype, 1, 0), qn_view_param(b, "y", dtype, 1, 0)};
    qn_val i = qn_parallel_over(b, out[0], 0), result[2] = {{0}};
    qn_val words[2] = {qn_load(b, in[0], 1, &i), qn_load(b, in[1], 1, &i)};
    qn_math(b, "normal", 2, words, result);
    for (int r = 0; r < 2; r++)
        qn_store(b, out[r], 1, &i, result[r]);
    return finish(b);
}

/** x[i] = draw(seed, i) */
static qn_kernel *kernel_of_index(int dtype, qn_val draw(qn_builder *, qn_val, qn_val))
{
    qn_builder *b = qn_builder_new("draw", 0);
    qn_param x = qn_view_param(b, "x", dtype, 1, 0);
    qn_val seed = qn_scalar_param(b, "seed", QN_U64), i = qn_parallel_over(b, x, 0);
    qn_store(b, x, 1, &i, draw(b, seed, i));
    return finish(b);
}

static void launch(qn_context *c, const qn_kernel *k, int n, const qn_arg *args)
{
    qn_error err = {0};
    if (qn_launch(c, k, n, args, NULL, &err) != QN_OK)
        tap_ok(false, "%s", err.message);
}

/** The radius and the angle in quarter turns of two words. */
static void polar(bool is_wide, uint64_t a, uint64_t b, long double *radius, long double *angle)
{
    long double u = is_wide ? (long double)((double)(a >> 11) * 0x1p-53 + 0x1p-54)
                            : (long double)fmaf((float)(int32_t)(a >> 1), 0x1p-31f, 0x1p-32f);
    *radius = sqrtl(-2 * logl(u));
    *angle = is_wide ? (long double)(b >> 62) + ((long double)(b << 2 >> 12) * 0x1p-52L - 0.5L)
                     : (long double)(b >> 30) + (long double)(int32_t)(uint32_t)(b << 2) * 0x1p-32L;
}

/** The least and the greatest words, words with few bits, and others. */
static uint64_t word_of(int i, uint64_t *state)
{
    static const uint64_t special[] = {
        0, 1, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, UINT64_C(1) << 31, UINT32_MAX};
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t word = (*state ^ *state >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    return i < 7 ? special[i] : i % 4 == 0 ? word >> (i / 4 % 64) : word ^ word >> 32;
}

/** Errors in units of the last place of the radius: near a zero of the sine that of the angle's
 * rounding counts, too. */
static void test_words(qn_context *c, bool is_wide)
{
    int word = is_wide ? QN_U64 : QN_U32, dtype = is_wide ? QN_F64 : QN_F32;
    qn_kernel *k = kernel_of_words(word, dtype);
    qn_view v[4] = {vector_of(c, "a", word, N), vector_of(c, "b", word, N),
                    vector_of(c, "x", dtype, N), vector_of(c, "y", dtype, N)};
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1]), qn_arg_view(&v[2]),
                           qn_arg_view(&v[3])};
    static uint64_t words[2][N];
    uint64_t state = 1;
    double worst = 0;
    for (int i = 0; i < 2 * N; i++) {
        uint64_t w = word_of(i / 2, &state);
        words[i % 2][i / 2] = is_wide ? w : (uint32_t)w;
        if (is_wide)
            ((uint64_t *)v[i % 2].data)[i / 2] = w;
        else
            ((uint32_t *)v[i % 2].data)[i / 2] = (uint32_t)w;
    }
    launch(c, k, 4, args);
    for (int i = 0; i < N; i++) {
        long double radius, angle, x, y;
        polar(is_wide, words[0][i], words[1][i], &radius, &angle);
        x = is_wide ? ((double *)v[2].data)[i] : ((float *)v[2].data)[i];
        y = is_wide ? ((double *)v[3].data)[i] : ((float *)v[3].data)[i];
        double unit = (is_wide ? 0x1p-52 : 0x1p-23) * (double)(radius + 1e-9L);
        worst = fmax(worst, (double)fmaxl(fabsl(x - radius * cosl(angle * QUARTER)),
                                          fabsl(y - radius * sinl(angle * QUARTER))) /
                                unit);
    }
    tap_ok(worst < 2, "normal of %s: %d pairs, error at most %.2f units of the radius",
           qn_dtype_name(word), N, worst);
    for (int i = 0; i < 4; i++)
        qn_view_release(&v[i]);
    qn_kernel_release(k);
}

typedef struct moments {
    double mean, variance, beyond; /* part of the numbers that lie further than 2 from 0 */
} moments;

static moments measure(const double *x)
{
    moments m = {0};
    for (int i = 0; i < N; i++)
        m.mean += x[i] / (double)N;
    for (int i = 0; i < N; i++) {
        m.variance += (x[i] - m.mean) * (x[i] - m.mean) / (double)N;
        m.beyond += (fabs(x[i]) > 2) / (double)N;
    }
    return m;
}

/** Mean, variance and tail within five standard deviations of what they should be. */
static void test_moments(qn_context *c, const char *name, int dtype,
                         qn_val draw(qn_builder *, qn_val, qn_val), moments exact,
                         moments deviation)
{
    static double x[N];
    qn_kernel *k = kernel_of_index(dtype, draw);
    qn_view v = vector_of(c, "x", dtype, N);
    const qn_arg args[] = {qn_arg_view(&v), qn_arg_int(QN_U64, 20260101)};
    launch(c, k, 2, args);
    for (int i = 0; i < N; i++)
        x[i] = dtype == QN_F64 ? ((double *)v.data)[i] : (double)((float *)v.data)[i];
    moments m = measure(x);
    tap_ok(fabs(m.mean - exact.mean) < 5 * deviation.mean &&
               fabs(m.variance - exact.variance) < 5 * deviation.variance &&
               fabs(m.beyond - exact.beyond) <= 5 * deviation.beyond,
           "%s: %d numbers have mean %.4f, variance %.4f; %.4f of them lie beyond 2", name, N,
           m.mean, m.variance, m.beyond);
    qn_view_release(&v);
    qn_kernel_release(k);
}

int main(void)
{
    qn_context *c = context_with(NULL);
    const moments normal = {0, 1, 0.0455003},
                  normal_deviation = {1 / sqrt((double)N), sqrt(2.0 / (double)N),
                                      sqrt(0.0455003 * 0.9544997 / (double)N)};
    const moments uniform = {0.5, 1 / 12.0, 0},
                  uniform_deviation = {sqrt(1 / 12.0 / (double)N), sqrt(1 / 180.0 / (double)N), 0};
    test_words(c, false);
    test_words(c, true);
    test_moments(c, "normal_f32", QN_F32, qn_normal_f32, normal, normal_deviation);
    test_moments(c, "normal_f64", QN_F64, qn_normal_f64, normal, normal_deviation);
    test_moments(c, "uniform_f32", QN_F32, qn_uniform_f32, uniform, uniform_deviation);
    test_moments(c, "uniform_f64", QN_F64, qn_uniform_f64, uniform, uniform_deviation);
    qn_context_release(c);
    return tap_done();
}
