/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_product.c: yardsticks of bench_cases_product.c: the peak of the machine, by independent
 * chains of fma, and C for sums of products: plain loops in the right order with constant extents,
 * and a register tile written by hand. Compiled like native_*.c.
 */
#include "native.h"
#include "native_product.h"

typedef double f64x8 __attribute__((vector_size(64)));
typedef float f32x16 __attribute__((vector_size(64)));

/* ---------------------------------------------------------------- the peak */

/* Chains of 64-byte vectors: the compiler takes two registers for each where the machine has half
 * as wide ones. */
#define PEAK(name, T, V)                                                                           \
    double name(int64_t n, double start)                                                           \
    {                                                                                              \
        enum { CHAINS = 12, LANES = sizeof(V) / sizeof(T) };                                       \
        V sum[CHAINS], x = (V){0} + (T)(1 + 1e-7 * start), y = (V){0} + (T)(1e-9 * start);         \
        for (int c = 0; c < CHAINS; c++)                                                           \
            sum[c] = (V){0} + (T)c;                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int c = 0; c < CHAINS; c++)                                                       \
                sum[c] = sum[c] * x + y;                                                           \
        for (int c = 1; c < CHAINS; c++)                                                           \
            sum[0] += sum[c];                                                                      \
        native_sink = (double)sum[0][0];                                                           \
        return 2.0 * (double)n * CHAINS * LANES;                                                   \
    }
volatile double native_sink;
PEAK(native_peak_f64, double, f64x8)
PEAK(native_peak_f32, float, f32x16)

/* ---------------------------------------------------------------- a tile by hand */

/* Row-major product, extents multiples of the tile of 6 rows x 4 vectors. */
#define TILE(name, T, V, n)                                                                        \
    static void name(void *restrict c_data, const void *restrict a_data,                           \
                     const void *restrict b_data)                                                  \
    {                                                                                              \
        enum { ROWS = 6, VECTORS = 4, LANES = sizeof(V) / sizeof(T) };                             \
        const T *a = a_data, *b = b_data;                                                          \
        T *c = c_data;                                                                             \
        for (int64_t j = 0; j < (n); j += VECTORS * LANES)                                         \
            for (int64_t i = 0; i < (n); i += ROWS) {                                              \
                V sum[ROWS][VECTORS] = {{{0}}};                                                    \
                for (int64_t k = 0; k < (n); k++) {                                                \
                    V row[VECTORS];                                                                \
                    for (int v = 0; v < VECTORS; v++)                                              \
                        __builtin_memcpy(&row[v], b + k * (n) + j + v * LANES, sizeof(V));         \
                    for (int r = 0; r < ROWS; r++)                                                 \
                        for (int v = 0; v < VECTORS; v++)                                          \
                            sum[r][v] += a[(i + r) * (n) + k] * row[v];                            \
                }                                                                                  \
                for (int r = 0; r < ROWS; r++)                                                     \
                    for (int v = 0; v < VECTORS; v++)                                              \
                        __builtin_memcpy(c + (i + r) * (n) + j + v * LANES, &sum[r][v],            \
                                         sizeof(V));                                               \
            }                                                                                      \
    }
TILE(tile_f64_192, double, f64x8, 192)
TILE(tile_f64_960, double, f64x8, 960)
TILE(tile_f32_192, float, f32x16, 192)
TILE(tile_f32_960, float, f32x16, 960)

/* ---------------------------------------------------------------- plain loops */

/* c[b,i,j] = sum of a[b,i,k] * b[b,k,j], small and many. */
#define BATCH_FIRST(name, T, n, count)                                                             \
    static void name(void *restrict c_data, const void *restrict a_data,                           \
                     const void *restrict b_data)                                                  \
    {                                                                                              \
        const T *a = a_data, *b = b_data;                                                          \
        T *c = c_data;                                                                             \
        for (int64_t m = 0; m < (count); m++, a += (n) * (n), b += (n) * (n), c += (n) * (n))      \
            for (int i = 0; i < (n); i++) {                                                        \
                T row[n] = {0};                                                                    \
                for (int k = 0; k < (n); k++)                                                      \
                    for (int j = 0; j < (n); j++)                                                  \
                        row[j] += a[i * (n) + k] * b[k * (n) + j];                                 \
                for (int j = 0; j < (n); j++)                                                      \
                    c[i * (n) + j] = row[j];                                                       \
            }                                                                                      \
    }
/* Many products, the number of the product fastest. */
#define BATCH_LAST(name, T, n, count)                                                              \
    static void name(void *restrict c_data, const void *restrict a_data,                           \
                     const void *restrict b_data)                                                  \
    {                                                                                              \
        const T *a = a_data, *b = b_data;                                                          \
        T *c = c_data;                                                                             \
        for (int i = 0; i < (n); i++)                                                              \
            for (int j = 0; j < (n); j++)                                                          \
                for (int64_t m = 0; m < (count); m++) {                                            \
                    T sum = 0;                                                                     \
                    for (int k = 0; k < (n); k++)                                                  \
                        sum += a[(i * (n) + k) * (int64_t)(count) + m] *                           \
                               b[(k * (n) + j) * (int64_t)(count) + m];                            \
                    c[(i * (n) + j) * (int64_t)(count) + m] = sum;                                 \
                }                                                                                  \
    }
#define BATCHES(n)                                                                                 \
    BATCH_FIRST(batch_first_f64_##n, double, n, BATCH_COUNT(n))                                    \
    BATCH_LAST(batch_last_f64_##n, double, n, BATCH_COUNT(n))                                      \
    BATCH_FIRST(batch_first_f32_##n, float, n, BATCH_COUNT(n))                                     \
    BATCH_LAST(batch_last_f32_##n, float, n, BATCH_COUNT(n))
BATCHES(3) BATCHES(4) BATCHES(8) BATCHES(16) BATCHES(23) BATCHES(32)

/* y[i] = sum of a[i,k] * x[k]: rows, then columns. */
#define VECTORS(suffix, T, n)                                                                      \
    static void by_rows_##suffix##_##n(void *restrict y_data, const void *restrict a_data,         \
                                       const void *restrict x_data)                                \
    {                                                                                              \
        const T *a = a_data, *x = x_data;                                                          \
        T *y = y_data;                                                                             \
        for (int64_t i = 0; i < (n); i++) {                                                        \
            T sum = 0;                                                                             \
            for (int64_t k = 0; k < (n); k++)                                                      \
                sum += a[i * (n) + k] * x[k];                                                      \
            y[i] = sum;                                                                            \
        }                                                                                          \
    }                                                                                              \
    static void by_columns_##suffix##_##n(void *restrict y_data, const void *restrict a_data,      \
                                          const void *restrict x_data)                             \
    {                                                                                              \
        const T *a = a_data, *x = x_data;                                                          \
        T *y = y_data;                                                                             \
        for (int64_t i = 0; i < (n); i++)                                                          \
            y[i] = 0;                                                                              \
        for (int64_t k = 0; k < (n); k++)                                                          \
            for (int64_t i = 0; i < (n); i++)                                                      \
                y[i] += a[k * (n) + i] * x[k];                                                     \
    }
VECTORS(f64, double, 250)
VECTORS(f64, double, 1024)
VECTORS(f64, double, 4000)
VECTORS(f64, double, 4096)
VECTORS(f32, float, 250)
VECTORS(f32, float, 1024)
VECTORS(f32, float, 4000)
VECTORS(f32, float, 4096)

/* 27 points around each of an inner cube. */
#define CONVOLUTION(suffix, T)                                                                     \
    static void convolution_##suffix(void *restrict y_data, const void *restrict a_data,           \
                                     const void *restrict w_data)                                  \
    {                                                                                              \
        enum { N = CONVOLUTION_N, M = N + 2 };                                                     \
        const T *a = a_data, *w = w_data;                                                          \
        T *y = y_data;                                                                             \
        for (int64_t i = 0; i < N; i++)                                                            \
            for (int64_t j = 0; j < N; j++)                                                        \
                for (int64_t k = 0; k < N; k++) {                                                  \
                    T sum = 0;                                                                     \
                    for (int p = 0; p < 3; p++)                                                    \
                        for (int q = 0; q < 3; q++)                                                \
                            for (int r = 0; r < 3; r++)                                            \
                                sum += a[((i + p) * M + j + q) * M + k + r] *                      \
                                       w[(p * 3 + q) * 3 + r];                                     \
                    y[(i * N + j) * N + k] = sum;                                                  \
                }                                                                                  \
    }
CONVOLUTION(f64, double)
CONVOLUTION(f32, float)

#define BOTH(f) {f##_f32, f##_f64}
#define BOTH_N(f, n) {f##_f32_##n, f##_f64_##n}
#define BATCH_ROWS(n) {"first", n, BOTH_N(batch_first, n)}, {"last", n, BOTH_N(batch_last, n)}
#define VECTOR_ROWS(n) {"rows", n, BOTH_N(by_rows, n)}, {"columns", n, BOTH_N(by_columns, n)}
const native_product native_products[] = {
    {"tile", 192, BOTH_N(tile, 192)},       {"tile", 960, BOTH_N(tile, 960)},
    VECTOR_ROWS(250), VECTOR_ROWS(1024), VECTOR_ROWS(4000), VECTOR_ROWS(4096),
    BATCH_ROWS(3), BATCH_ROWS(4), BATCH_ROWS(8), BATCH_ROWS(16), BATCH_ROWS(23), BATCH_ROWS(32),
    {"convolution", CONVOLUTION_N, BOTH(convolution)},
    {0},
};
