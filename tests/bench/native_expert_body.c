/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_expert_body.c: what an expert writes for some kernels of f64 on a machine with AVX-512:
 * streaming stores where arrays are larger than the caches, several accumulators for sums, blocks
 * of rows. Elsewhere these are plain loops with the same idea, left to the compiler.
 */
#include "native_sum.h"

#include <stdint.h>

#define OUT(n, name) double *restrict name = p[n]
#define IN(n, name) const double *restrict name = p[8 + (n)]
#define EDGE SUM_EDGE

enum { LANES = 8, ACCUMULATORS = 8 };

#if defined(__AVX512F__)
#include <immintrin.h>
#define STREAM(to, v) _mm512_stream_pd(to, v)
#define FENCE() _mm_sfence()
typedef __m512d vector;
static inline vector load(const double *p) { return _mm512_loadu_pd(p); }
static inline void store(double *p, vector v) { _mm512_storeu_pd(p, v); }
static inline vector all(double x) { return _mm512_set1_pd(x); }
static inline vector fused(vector a, vector b, vector c) { return _mm512_fmadd_pd(a, b, c); }
#else
typedef double vector __attribute__((vector_size(64), aligned(8)));
#define STREAM(to, v) store(to, v)
#define FENCE() (void)0
static inline vector load(const double *p) { return *(const vector *)p; }
static inline void store(double *p, vector v) { *(vector *)p = v; }
static inline vector all(double x) { return (vector){x, x, x, x, x, x, x, x}; }
static inline vector fused(vector a, vector b, vector c) { return a * b + c; }
#endif

static double total(vector v)
{
    double x[LANES], s = 0;
    store(x, v);
    for (int n = 0; n < LANES; n++)
        s += x[n];
    return s;
}

/* Elements until x stands at a cache line, at most n. */
static int64_t gap(const double *x, int64_t n)
{
    int64_t m = (int64_t)((64 - (uintptr_t)x % 64) % 64 / 8);
    return m < n ? m : n;
}

void expert_copy(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    int64_t i = 0, begin = gap(o, LARGE_N);
    for (; i < begin; i++)
        o[i] = a[i];
    for (; i + 4 * LANES <= LARGE_N; i += 4 * LANES)
        for (int u = 0; u < 4; u++)
            STREAM(o + i + u * LANES, load(a + i + u * LANES));
    for (; i < LARGE_N; i++)
        o[i] = a[i];
    FENCE();
}

/* A row of points at distances of `row` and `plane`; FIVE: no planes. */
static inline void stencil_row(double *restrict o, const double *restrict a, int64_t n, int64_t row,
                               int64_t plane)
{
    const double centre = plane ? -6.0 : -4.0;
    int64_t i = 0, begin = gap(o, n);
#define POINT                                                                                      \
    (a[i] + 0.1 * (centre * a[i] + (a[i - row] + a[i + row]) + (a[i - 1] + a[i + 1]) +             \
                   (plane ? a[i - plane] + a[i + plane] : 0)))
    for (; i < begin; i++)
        o[i] = POINT;
    for (; i + LANES <= n; i += LANES) {
        vector s = (load(a + i - row) + load(a + i + row)) + (load(a + i - 1) + load(a + i + 1));
        if (plane)
            s = s + (load(a + i - plane) + load(a + i + plane));
        vector middle = load(a + i);
        STREAM(o + i, fused(all(0.1), fused(all(centre), middle, s), middle));
    }
    for (; i < n; i++)
        o[i] = POINT;
}

void expert_stencil5(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    for (int64_t i = 1; i < LARGE_2D - 1; i++)
        stencil_row(o + i * LARGE_2D + 1, a + i * LARGE_2D + 1, LARGE_2D - 2, LARGE_2D, 0);
    FENCE();
}

void expert_stencil7(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    const int64_t n = LARGE_3D;
    for (int64_t i = 1; i < n - 1; i++)
        for (int64_t j = 1; j < n - 1; j++)
            stencil_row(o + (i * n + j) * n + 1, a + (i * n + j) * n + 1, n - 2, n, n * n);
    FENCE();
}

/* Planes so large that three of them are in no cache: a few rows of all planes, then the next rows.
 */
static void tiled_planes(double *restrict o, const double *restrict a, int64_t planes, int64_t n)
{
    const int64_t tile = 393216 / (3 * 8 * n) + 1;
    for (int64_t from = 1; from < n - 1; from += tile)
        for (int64_t i = 1; i < planes - 1; i++)
            for (int64_t j = from; j < n - 1 && j < from + tile; j++)
                stencil_row(o + (i * n + j) * n + 1, a + (i * n + j) * n + 1, n - 2, n, n * n);
    FENCE();
}

void expert_planes_1003(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    tiled_planes(o, a, PLANES_1003, 1003);
}

void expert_planes_3003(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    tiled_planes(o, a, PLANES_3003, 3003);
}

#define SUM_OF(n, STEP, REST)                                                                      \
    vector s[ACCUMULATORS];                                                                        \
    int64_t i = 0;                                                                                 \
    for (int u = 0; u < ACCUMULATORS; u++)                                                         \
        s[u] = all(0);                                                                             \
    for (; i + ACCUMULATORS * LANES <= n; i += ACCUMULATORS * LANES)                               \
        for (int u = 0; u < ACCUMULATORS; u++) {                                                   \
            const int64_t at = i + u * LANES;                                                      \
            s[u] = STEP;                                                                           \
        }                                                                                          \
    for (int u = 1; u < ACCUMULATORS; u++)                                                         \
        s[0] = s[0] + s[u];                                                                        \
    double sum = total(s[0]);                                                                      \
    for (; i < n; i++)                                                                             \
        sum += REST

void expert_dot(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    IN(1, b);
    SUM_OF(SUM_N, fused(load(a + at), load(b + at), s[u]), a[i] * b[i]);
    *o = sum;
}

void expert_sum(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    SUM_OF(SUM_N, s[u] + load(a + at), a[i]);
    *o = sum;
}

/* o = A b, four rows at a time with two accumulators each. */
void expert_rows(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    IN(1, b);
    for (int64_t i = 0; i < EDGE; i += 4) {
        vector s[4][2];
        int64_t j = 0;
        for (int r = 0; r < 4; r++)
            s[r][0] = s[r][1] = all(0);
        for (; j + 2 * LANES <= EDGE; j += 2 * LANES)
            for (int u = 0; u < 2; u++) {
                vector x = load(b + j + u * LANES);
                for (int r = 0; r < 4; r++)
                    s[r][u] = fused(load(a + (i + r) * EDGE + j + u * LANES), x, s[r][u]);
            }
        for (int r = 0; r < 4; r++) {
            double sum = total(s[r][0] + s[r][1]);
            for (int64_t m = j; m < EDGE; m++)
                sum += a[(i + r) * EDGE + m] * b[m];
            o[i + r] = sum;
        }
    }
}

/* o = A(i,j) / (sum of row i), a row after the other: its sum with four accumulators, then its
 * elements. */
void expert_share_rows(void *const *p)
{
    OUT(0, o);
    IN(0, a);
    for (int64_t i = 0; i < EDGE; i++) {
        const double *row = a + i * EDGE;
        vector s[4] = {all(0), all(0), all(0), all(0)};
        int64_t j = 0;
        for (; j + 4 * LANES <= EDGE; j += 4 * LANES)
            for (int u = 0; u < 4; u++)
                s[u] = s[u] + load(row + j + u * LANES);
        double sum = total((s[0] + s[1]) + (s[2] + s[3]));
        for (; j < EDGE; j++)
            sum += row[j];
        for (j = 0; j < EDGE; j++)
            o[i * EDGE + j] = row[j] / sum;
    }
}

/* o = A' b, eight rows at a time: o is loaded and stored once for them. */
void expert_columns(void *const *p)
{
    enum { ROWS = 8 };
    OUT(0, o);
    IN(0, a);
    IN(1, b);
    for (int64_t i = 0; i < EDGE; i++)
        o[i] = 0;
    for (int64_t j = 0; j < EDGE; j += ROWS)
        for (int64_t i = 0; i < EDGE; i += LANES) {
            vector s = load(o + i);
            for (int r = 0; r < ROWS; r++)
                s = fused(load(a + (j + r) * EDGE + i), all(b[j + r]), s);
            store(o + i, s);
        }
}
