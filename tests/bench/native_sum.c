/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_sum.c: see native_sum.h. Plain loops in the right order: where a matrix lies by the index
 * that is summed, its rows are dot products; else whole rows are added to the result.
 */
#include "native_sum.h"

#include <math.h>
#include <stdint.h>

#define OUT(n, name) double *restrict name = p[n]
#define IN(n, name) const double *restrict name = p[8 + (n)]
#define EDGE SUM_EDGE
#define FOR(i, n) for (int64_t i = 0; i < (n); i++)

void dot(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    IN(1, b);
    double s = 0;
    FOR(i, SUM_N) s += a[i] * b[i];
    *o = s;
}

void reduce_sum(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    double s = 0;
    FOR(i, SUM_N) s += a[i];
    *o = s;
}

void pi_reduce(void *const *p)
{
    OUT(0, o);
    double s = 0;
    FOR(i, SUM_N)
    {
        double x = ((double)i + 0.5) * 0.000001;
        s += 0.000001 / (1.0 + x * x);
    }
    *o = 4.0 * s;
}

void trap_int(void *const *p)
{
    OUT(0, o);
    double s = 0;
    FOR(i, SUM_N)
    {
        double x = 0.1 + (double)i * 0.0000006 - 0.3, y = 0.2 - 0.4;
        s += 1.0 / sqrt(x * x + y * y);
    }
    *o = s * 0.0000006;
}

void reduce3_int(void *const *p)
{
    int32_t *restrict sum = p[0], *restrict least = p[1], *restrict most = p[2];
    const int32_t *restrict a = p[8];
    uint32_t s = 0;
    int32_t low = INT32_MAX, high = INT32_MIN;
    FOR(i, SUM_N)
    {
        s += (uint32_t)a[i];
        low = a[i] < low ? a[i] : low;
        high = a[i] > high ? a[i] : high;
    }
    *sum = (int32_t)s;
    *least = low;
    *most = high;
}

void reduce_struct(void *const *p)
{
    IN(0, a);
    IN(1, b);
    double s = 0, t = 0, low = INFINITY, high = -INFINITY, lowest = INFINITY, highest = -INFINITY;
    FOR(i, SUM_N)
    {
        s += a[i];
        low = a[i] < low ? a[i] : low;
        high = a[i] > high ? a[i] : high;
        t += b[i];
        lowest = b[i] < lowest ? b[i] : lowest;
        highest = b[i] > highest ? b[i] : highest;
    }
    const double all[6] = {s, low, high, t, lowest, highest};
    FOR(n, 6) *(double *)p[n] = all[n];
}

void gesummv_right(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    IN(1, b);
    IN(2, x);
    FOR(i, EDGE)
    {
        double s = 0, t = 0;
        FOR(j, EDGE)
        {
            s += a[i * EDGE + j] * x[j];
            t += b[i * EDGE + j] * x[j];
        }
        o[i] = 1.5 * s + 1.2 * t;
    }
}

void gesummv_left(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    IN(1, b);
    IN(2, x);
    FOR(i, EDGE) o[i] = 0;
    FOR(j, EDGE) FOR(i, EDGE) o[i] += (1.5 * a[j * EDGE + i] + 1.2 * b[j * EDGE + i]) * x[j];
}

/* o[i] = START + FACTOR times the sum of a[i][j] b[j]; the matrix by rows of j, or by rows of i. */
#define BY_DOTS(name, START, FACTOR)                                                               \
    void name(void *const *p)                                                                      \
    {                                                                                              \
        OUT(0, o);                                                                                 \
        IN(0, a);                                                                                  \
        IN(1, b);                                                                                  \
        FOR(i, EDGE)                                                                               \
        {                                                                                          \
            double s = 0;                                                                          \
            FOR(j, EDGE) s += a[i * EDGE + j] * b[j];                                              \
            o[i] = START + FACTOR * s;                                                             \
        }                                                                                          \
    }
#define BY_ROWS(name, START, FACTOR)                                                               \
    void name(void *const *p)                                                                      \
    {                                                                                              \
        OUT(0, o);                                                                                 \
        IN(0, a);                                                                                  \
        IN(1, b);                                                                                  \
        FOR(i, EDGE) o[i] = START;                                                                 \
        FOR(j, EDGE) FOR(i, EDGE) o[i] += a[j * EDGE + i] * (FACTOR * b[j]);                       \
    }
BY_DOTS(rows_right, 0, 1)
BY_ROWS(rows_left, 0, 1)
BY_ROWS(columns_right, 0, 1)
BY_DOTS(columns_left, 0, 1)
BY_DOTS(add_rows_right, o[i], 1)
BY_ROWS(add_rows_left, o[i], 1)
BY_ROWS(add_columns_right, o[i], 1)
BY_DOTS(add_columns_left, o[i], 1)
BY_DOTS(gemver_w_right, o[i], 1.5)
BY_ROWS(gemver_w_left, o[i], 1.5)

void ltimes_right(void *const *p)
{
    OUT(0, phi);
    IN(0, psi);
    IN(1, ell);
    FOR(z, LTIMES_Z) FOR(g, LTIMES_G) FOR(m, LTIMES_M)
    {
        int64_t row = z * LTIMES_G + g;
        double s = 0;
        FOR(d, LTIMES_D) s += ell[m * LTIMES_D + d] * psi[row * LTIMES_D + d];
        phi[row * LTIMES_M + m] += s;
    }
}

void ltimes_left(void *const *p)
{
    OUT(0, phi);
    IN(0, psi);
    IN(1, ell);
    FOR(m, LTIMES_M)
    FOR(g, LTIMES_G) FOR(d, LTIMES_D) FOR(z, LTIMES_Z) phi[(m * LTIMES_G + g) * LTIMES_Z + z] +=
        ell[d * LTIMES_M + m] * psi[(d * LTIMES_G + g) * LTIMES_Z + z];
}

/* The forward sweep along j for each i. */
#define SWEEP(at, across)                                                                          \
    double t = 1.0 / (0.3 * o[at(i, j - 1)] + 1.6);                                                \
    o[at(i, j)] = -0.3 * t;                                                                        \
    q[at(i, j)] = (1.4 * a[across(i, j)] - 0.2 * (a[across(i - 1, j)] + a[across(i + 1, j)]) -     \
                   0.3 * q[at(i, j - 1)]) * t
#define FIRST(i, j) ((i) * EDGE + (j))
#define SECOND(i, j) ((j) * EDGE + (i))

void adi_right(void *const *p)
{
    OUT(0, o);
    OUT(1, q);
    IN(0, a);
    for (int64_t i = 1; i < EDGE - 1; i++)
        for (int64_t j = 1; j < EDGE - 1; j++) {
            SWEEP(FIRST, SECOND);
        }
}

void adi_left(void *const *p)
{
    OUT(0, o);
    OUT(1, q);
    IN(0, a);
    for (int64_t j = 1; j < EDGE - 1; j++)
        for (int64_t i = 1; i < EDGE - 1; i++) {
            SWEEP(SECOND, FIRST);
        }
}

void int_predict(void *const *p)
{
    OUT(0, o);
    enum { N = PREDICT_N };
    FOR(i, N)
    o[i] = 0.1 * o[12 * N + i] + 0.2 * o[11 * N + i] + 0.3 * o[10 * N + i] + 0.4 * o[9 * N + i] +
           0.5 * o[8 * N + i] + 0.6 * o[7 * N + i] + 0.7 * o[6 * N + i] +
           0.8 * (o[4 * N + i] + o[5 * N + i]) + o[2 * N + i];
}

void diff_predict(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    enum { N = PREDICT_N };
    FOR(i, N)
    {
        double r = a[4 * N + i];
        for (int n = 4; n < 13; n++) {
            double next = r - o[n * N + i];
            o[n * N + i] = r;
            r = next;
        }
        o[13 * N + i] = r;
    }
}

#define PLANES(N0, N)                                                                              \
    OUT(0, o);                                                                                     \
    IN(0, a);                                                                                      \
    for (int64_t i = 1; i < (N0)-1; i++)                                                           \
        for (int64_t j = 1; j < (N)-1; j++)                                                        \
            for (int64_t k = 1; k < (N)-1; k++) {                                                  \
                const double *x = a + (i * (N) + j) * (N) + k;                                     \
                o[(i * (N) + j) * (N) + k] =                                                       \
                    *x + 0.1 * ((x[-(N)] + x[N]) + (x[-1] + x[1]) +                                \
                                (x[-(N) * (N)] + x[(N) * (N)]) - 6.0 * *x);                        \
            }

void planes_1003(void *const *p)
{
    PLANES(PLANES_1003, 1003)
}

void planes_3003(void *const *p)
{
    PLANES(PLANES_3003, 3003)
}

void long_rows(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    enum { N = ROWS_1 };
    for (int64_t i = 1; i < ROWS_0 - 1; i++)
        for (int64_t j = 1; j < N - 1; j++) {
            const double *x = a + i * N + j;
            o[i * N + j] = *x + 0.1 * ((x[-N] + x[N]) + (x[-1] + x[1]) - 4.0 * *x);
        }
}

void copy_rows(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    enum { N = LARGE_3D };
    for (int64_t i = 1; i < N - 1; i++)
        for (int64_t j = 1; j < N - 1; j++)
            for (int64_t k = 1; k < N - 1; k++)
                o[(i * N + j) * N + k] = a[(i * N + j) * N + k];
}
