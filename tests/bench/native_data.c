/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_data.c: the cases of bench_cases_data.c as plain loops in C, in the right order for each
 * layout, clang-19 -O3 -march=native: extents are constants, pointers restrict.
 */
#include "native_data.h"

#include <stddef.h>

#define LOOP(name) static void name(void *const *d)

/* ---------------------------------------------------------------- copies */

#define COPIES(T, name)                                                                            \
    COPY(T, copy_##name##_in, COPY_IN)                                                             \
    COPY(T, copy_##name##_out, COPY_OUT)                                                           \
    LOOP(permute_##name##_rows) /* y[i,j,k] = x[j,i,k] */                                          \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const T *restrict x = d[1];                                                                \
        for (int i = 0; i < PERMUTE_0; i++)                                                        \
            for (int j = 0; j < PERMUTE_1; j++)                                                    \
                for (int k = 0; k < PERMUTE_2; k++)                                                \
                    y[(i * PERMUTE_1 + j) * PERMUTE_2 + k] =                                       \
                        x[(j * PERMUTE_0 + i) * PERMUTE_2 + k];                                    \
    }                                                                                              \
    LOOP(permute_##name##_all) /* y[i,j,k] = x[k,i,j] */                                           \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const T *restrict x = d[1];                                                                \
        for (int i = 0; i < PERMUTE_0; i++)                                                        \
            for (int j = 0; j < PERMUTE_1; j++)                                                    \
                for (int k = 0; k < PERMUTE_2; k++)                                                \
                    y[(i * PERMUTE_1 + j) * PERMUTE_2 + k] =                                       \
                        x[(k * PERMUTE_0 + i) * PERMUTE_1 + j];                                    \
    }
#define COPY(T, name, n)                                                                           \
    LOOP(name)                                                                                     \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const T *restrict x = d[1];                                                                \
        for (int i = 0; i < n; i++)                                                                \
            y[i] = x[i];                                                                           \
    }
COPIES(uint8_t, u8)
COPIES(uint16_t, u16)
COPIES(float, f32)
COPIES(double, f64)

/* y[s i] = 1.5 x[i], and y[i] = 1.5 x[s i] */
#define SPREADS(T, name)                                                                           \
    SPREAD(T, name##_2_in, 2, SPREAD_IN)                                                  \
    SPREAD(T, name##_3_in, 3, SPREAD_IN)                                                  \
    SPREAD(T, name##_4_in, 4, SPREAD_IN)                                                  \
    SPREAD(T, name##_9_in, 9, SPREAD_IN)                                                  \
    SPREAD(T, name##_2_out, 2, SPREAD_OUT)                                                \
    SPREAD(T, name##_3_out, 3, SPREAD_OUT)                                                \
    SPREAD(T, name##_4_out, 4, SPREAD_OUT)                                                \
    SPREAD(T, name##_9_out, 9, SPREAD_OUT)
#define SPREAD(T, name, s, n)                                                                      \
    LOOP(collect_##name)                                                                           \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const T *restrict x = d[1];                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (T)1.5 * x[s * i];                                                              \
    }                                                                                              \
    LOOP(spread_##name)                                                                            \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const T *restrict x = d[1];                                                                \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[s * i] = (T)1.5 * x[i];                                                              \
    }
SPREADS(float, f32)
SPREADS(double, f64)

/* ---------------------------------------------------------------- sums */

/* y[i] = sum over k of a[i,k]. Right: a row lies together; left: a column does. Striped: 64
 * partials a row. */
#define SUMS(T, name, ROWS, N)                                                                     \
    LOOP(sum_##name##_indexed_right)                                                               \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const T *restrict a = d[1];                                                                \
        for (int i = 0; i < ROWS; i++) {                                                           \
            T s = 0;                                                                               \
            for (int k = 0; k < N; k++)                                                            \
                s += a[(int64_t)i * N + k];                                                        \
            y[i] = s;                                                                              \
        }                                                                                          \
    }                                                                                              \
    LOOP(sum_##name##_indexed_left)                                                                \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const T *restrict a = d[1];                                                                \
        for (int i = 0; i < ROWS; i++)                                                             \
            y[i] = 0;                                                                              \
        for (int k = 0; k < N; k++)                                                                \
            for (int i = 0; i < ROWS; i++)                                                         \
                y[i] += a[(int64_t)k * ROWS + i];                                                  \
    }                                                                                              \
    LOOP(sum_##name##_striped_right)                                                               \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const T *restrict a = d[1];                                                                \
        for (int i = 0; i < ROWS; i++) {                                                           \
            T s[64] = {0}, sum = 0;                                                                \
            int k = 0;                                                                             \
            for (; k + 64 <= N; k += 64)                                                           \
                for (int l = 0; l < 64; l++)                                                       \
                    s[l] += a[(int64_t)i * N + k + l];                                             \
            for (int l = 0; k + l < N; l++)                                                        \
                s[l] += a[(int64_t)i * N + k + l];                                                 \
            for (int l = 0; l < 64; l++)                                                           \
                sum += s[l];                                                                       \
            y[i] = sum;                                                                            \
        }                                                                                          \
    }                                                                                              \
    LOOP(sum_##name##_striped_left)                                                                \
    {                                                                                              \
        enum { TOGETHER = 64 / sizeof(T) };                                                        \
        T *restrict y = d[0];                                                                      \
        const T *restrict a = d[1];                                                                \
        for (int i = 0; i < ROWS; i += TOGETHER) {                                                 \
            T s[64][TOGETHER] = {{0}};                                                             \
            const int n = ROWS - i < TOGETHER ? ROWS - i : TOGETHER;                               \
            if (n == TOGETHER)                                                                     \
                for (int k = 0; k < N; k++)                                                        \
                    for (int l = 0; l < TOGETHER; l++)                                             \
                        s[k % 64][l] += a[(int64_t)k * ROWS + i + l];                              \
            else                                                                                   \
                for (int k = 0; k < N; k++)                                                        \
                    for (int l = 0; l < n; l++)                                                    \
                        s[k % 64][l] += a[(int64_t)k * ROWS + i + l];                              \
            for (int half = 32; half > 0; half /= 2)                                               \
                for (int k = 0; k < half; k++)                                                     \
                    for (int l = 0; l < TOGETHER; l++)                                             \
                        s[k][l] += s[k + half][l];                                                 \
            for (int l = 0; l < n; l++)                                                            \
                y[i + l] = s[0][l];                                                                \
        }                                                                                          \
    }
SUMS(float, f32_in, SUM_IN_ROWS, SUM_IN)
SUMS(double, f64_in, SUM_IN_ROWS, SUM_IN)
SUMS(float, f32_out, SUM_OUT_ROWS, SUM_OUT)
SUMS(double, f64_out, SUM_OUT_ROWS, SUM_OUT)
SUMS(float, f32_1024, 1024, 1024)
SUMS(double, f64_1024, 1024, 1024)
SUMS(float, f32_4096, 4096, 4096)
SUMS(double, f64_4096, 4096, 4096)

/* Products of `A`, summed as `T` in 64 partials. */
#define DOT(T, A, name, N)                                                                         \
    LOOP(dot_##name)                                                                               \
    {                                                                                              \
        T s[64] = {0}, sum = 0;                                                                    \
        const A *restrict x = d[1], *restrict y = d[2];                                            \
        int k = 0;                                                                                 \
        for (; k + 64 <= N; k += 64)                                                               \
            for (int l = 0; l < 64; l++)                                                           \
                s[l] += (T)x[k + l] * (T)y[k + l];                                                 \
        for (int l = 0; k + l < N; l++)                                                            \
            s[l] += (T)x[k + l] * (T)y[k + l];                                                     \
        for (int l = 0; l < 64; l++)                                                               \
            sum += s[l];                                                                           \
        *(T *)d[0] = sum;                                                                          \
    }
DOT(float, float, f32_in, DOT_IN)
DOT(double, double, f64_in, DOT_IN)
DOT(float, float, f32_out, DOT_OUT)
DOT(double, double, f64_out, DOT_OUT)
DOT(double, float, mixed_in, DOT_IN)

LOOP(dot_u8_in)
{
    int32_t s = 0;
    const uint8_t *restrict x = d[1], *restrict y = d[2];
    for (int k = 0; k < DOT_IN; k++)
        s += (int32_t)x[k] * (int32_t)y[k];
    *(int32_t *)d[0] = s;
}

/* y[i] (f64) = sum over k of a[k,i] (f32), by columns */
LOOP(columns_mixed)
{
    double *restrict y = d[0];
    const float *restrict a = d[1];
    for (int i = 0; i < SUM_IN; i++)
        y[i] = 0;
    for (int k = 0; k < SUM_IN_ROWS; k++)
        for (int i = 0; i < SUM_IN; i++)
            y[i] += (double)a[k * SUM_IN + i];
}

/* ---------------------------------------------------------------- sparse rows, lists, tables */

#define SPMV(name, N)                                                                              \
    LOOP(spmv_##name)                                                                              \
    {                                                                                              \
        double *restrict y = d[0];                                                                 \
        const int32_t *restrict start = d[1], *restrict column = d[2];                             \
        const double *restrict value = d[3], *restrict x = d[4];                                   \
        for (int i = 0; i < N; i++) {                                                              \
            double s = 0;                                                                          \
            for (int k = start[i]; k < start[i + 1]; k++)                                          \
                s += value[k] * x[column[k]];                                                      \
            y[i] = s;                                                                              \
        }                                                                                          \
    }
SPMV(7_in, GRID_IN *GRID_IN *GRID_IN)
SPMV(7_out, GRID_OUT *GRID_OUT *GRID_OUT)
SPMV(30_in, ROWS_IN)
SPMV(30_out, ROWS_OUT)

#define LISTS(T, name, N)                                                                          \
    LOOP(gather_##name)                                                                            \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const int32_t *restrict at = d[1];                                                         \
        const T *restrict x = d[2];                                                                \
        for (int i = 0; i < N; i++)                                                                \
            y[i] = x[at[i]];                                                                       \
    }                                                                                              \
    LOOP(scatter_##name)                                                                           \
    {                                                                                              \
        T *restrict y = d[0];                                                                      \
        const int32_t *restrict at = d[1];                                                         \
        const T *restrict x = d[2];                                                                \
        for (int i = 0; i < N; i++)                                                                \
            y[at[i]] = x[i];                                                                       \
    }
LISTS(float, f32_in, LIST_IN)
LISTS(double, f64_in, LIST_IN)
LISTS(float, f32_out, LIST_OUT)
LISTS(double, f64_out, LIST_OUT)

LOOP(table_256)
{
    float *restrict y = d[0];
    const uint8_t *restrict x = d[1];
    const float *restrict t = d[2];
    for (int i = 0; i < TABLE_N; i++)
        y[i] = t[x[i]];
}

LOOP(table_16)
{
    float *restrict y = d[0];
    const uint8_t *restrict x = d[1];
    const float *restrict t = d[2];
    for (int i = 0; i < TABLE_N; i++)
        y[i] = t[x[i] & 15];
}

LOOP(table_u8)
{
    uint8_t *restrict y = d[0];
    const uint8_t *restrict x = d[1], *restrict t = d[2];
    for (int i = 0; i < TABLE_N; i++)
        y[i] = t[x[i]];
}

/* ---------------------------------------------------------------- pixels */

static inline uint8_t bin_of(float x)
{
    float t = x * 256.0f;
    t = t < 255.0f ? t : 255.0f;
    t = t > 0.0f ? t : 0.0f;
    return (uint8_t)(int)t;
}

LOOP(bins_f32)
{
    uint8_t *restrict y = d[0];
    const float *restrict x = d[1];
    for (int i = 0; i < PIXELS_IN; i++)
        y[i] = bin_of(x[i]);
}

/* brightness of three interleaved bytes, in 256 steps */
LOOP(bins_u8)
{
    uint8_t *restrict y = d[0];
    const uint8_t *restrict x = d[1];
    for (int i = 0; i < PIXELS_IN; i++)
        y[i] = (uint8_t)((77 * (int32_t)x[3 * i] + 150 * (int32_t)x[3 * i + 1] +
                          29 * (int32_t)x[3 * i + 2]) >>
                         8);
}

LOOP(histogram_f32)
{
    int32_t *restrict y = d[0];
    const float *restrict x = d[1];
    for (int i = 0; i < PIXELS_IN; i++)
        y[bin_of(x[i])]++;
}

LOOP(histogram_u8)
{
    int32_t *restrict y = d[0];
    const uint8_t *restrict x = d[1];
    for (int i = 0; i < PIXELS_IN; i++)
        y[x[i]]++;
}

LOOP(histogram_u8_shared)
{
    int32_t *restrict y = d[0];
    const uint8_t *restrict x = d[1];
    for (int i = 0; i < PIXELS_IN; i++)
        __atomic_fetch_add(&y[x[i]], 1, __ATOMIC_RELAXED);
}

LOOP(histogram_i32)
{
    int32_t *restrict y = d[0];
    const int32_t *restrict x = d[1];
    for (int i = 0; i < PIXELS_IN; i++)
        y[x[i]]++;
}

/* The charge of each particle goes to the four nodes around it. */
LOOP(deposit)
{
    double *restrict node = d[0];
    const double *restrict x = d[1], *restrict y = d[2];
    for (int p = 0; p < PARTICLES; p++) {
        const double at_x = x[p] * (NODES - 1), at_y = y[p] * (NODES - 1);
        const int i = (int)at_x, j = (int)at_y;
        const double right = at_x - i, left = 1 - right, above = 0.5 * (at_y - j),
                     below = 0.5 - above;
        double *corner = node + j * NODES + i;
        corner[0] += below * left;
        corner[1] += below * right;
        corner[NODES] += above * left;
        corner[NODES + 1] += above * right;
    }
}

/* y = (x * 19 + 500) / 32 in i32, clamped to a byte */
LOOP(scale_u8)
{
    uint8_t *restrict y = d[0];
    const uint8_t *restrict x = d[1];
    for (int i = 0; i < PIXELS_IN; i++) {
        int32_t v = ((int32_t)x[i] * 19 + 500) >> 4;
        y[i] = (uint8_t)(v > 255 ? 255 : v);
    }
}

/* y = x * 1.25 + 3 in f32, clamped to a byte */
LOOP(scale_f32)
{
    uint8_t *restrict y = d[0];
    const uint8_t *restrict x = d[1];
    for (int i = 0; i < PIXELS_IN; i++) {
        float v = (float)x[i] * 1.25f + 3.0f;
        v = v < 255.0f ? v : 255.0f;
        v = v > 0.0f ? v : 0.0f;
        y[i] = (uint8_t)(int)v;
    }
}

/* 1 2 1, 2 4 2, 1 2 1 */
#define BLUR(name, Y, X, AT)                                                                       \
    LOOP(blur_##name)                                                                              \
    {                                                                                              \
        uint8_t *restrict y = d[0];                                                                \
        const uint8_t *restrict x = d[1];                                                          \
        BLUR_##name                                                                                \
        {                                                                                          \
            int32_t corners = x[AT(i - 1, j - 1)] + x[AT(i - 1, j + 1)] + x[AT(i + 1, j - 1)] +    \
                              x[AT(i + 1, j + 1)];                                                 \
            int32_t edges = x[AT(i - 1, j)] + x[AT(i, j - 1)] + x[AT(i, j + 1)] + x[AT(i + 1, j)]; \
            y[AT(i, j)] = (uint8_t)((corners + 2 * edges + 4 * x[AT(i, j)] + 8) >> 4);             \
        }                                                                                          \
    }
#define BLUR_NEST_INTERLEAVED(Y, X)                                                                \
    for (int i = 1; i < Y - 1; i++)                                                                \
        for (int j = 1; j < X - 1; j++)                                                            \
            for (int c = 0; c < 3; c++)
#define BLUR_NEST_PLANAR(Y, X)                                                                     \
    for (int c = 0; c < 3; c++)                                                                    \
        for (int i = 1; i < Y - 1; i++)                                                            \
            for (int j = 1; j < X - 1; j++)
#define BLUR_interleaved_in BLUR_NEST_INTERLEAVED(BLUR_IN_Y, BLUR_IN_X)
#define BLUR_interleaved_out BLUR_NEST_INTERLEAVED(BLUR_OUT_Y, BLUR_OUT_X)
#define BLUR_planar_in BLUR_NEST_PLANAR(BLUR_IN_Y, BLUR_IN_X)
#define BLUR_planar_out BLUR_NEST_PLANAR(BLUR_OUT_Y, BLUR_OUT_X)
#define AT_INTERLEAVED_IN(i, j) (((i) * BLUR_IN_X + (j)) * 3 + c)
#define AT_INTERLEAVED_OUT(i, j) (((i) * BLUR_OUT_X + (j)) * 3 + c)
#define AT_PLANAR_IN(i, j) ((c * BLUR_IN_Y + (i)) * BLUR_IN_X + (j))
#define AT_PLANAR_OUT(i, j) ((c * BLUR_OUT_Y + (i)) * BLUR_OUT_X + (j))
BLUR(interleaved_in, BLUR_IN_Y, BLUR_IN_X, AT_INTERLEAVED_IN)
BLUR(interleaved_out, BLUR_OUT_Y, BLUR_OUT_X, AT_INTERLEAVED_OUT)
BLUR(planar_in, BLUR_IN_Y, BLUR_IN_X, AT_PLANAR_IN)
BLUR(planar_out, BLUR_OUT_Y, BLUR_OUT_X, AT_PLANAR_OUT)

/* ---------------------------------------------------------------- the table */

#define LIST_COPIES(n)                                                                             \
    {"copy/" #n "/in", copy_##n##_in}, {"copy/" #n "/out", copy_##n##_out},            \
        {"permute/" #n "/rows", permute_##n##_rows}, {"permute/" #n "/all", permute_##n##_all}
#define LIST_SPREAD(n, s, p)                                                                       \
    {"spread/" #n "/" #s "/" #p, spread_##n##_##s##_##p},                                          \
    {                                                                                              \
        "collect/" #n "/" #s "/" #p, collect_##n##_##s##_##p                                       \
    }
#define LIST_SPREADS(n, p)                                                                         \
    LIST_SPREAD(n, 2, p), LIST_SPREAD(n, 3, p), LIST_SPREAD(n, 4, p), LIST_SPREAD(n, 9, p)
#define LIST_SUMS(n, p)                                                                            \
    {"sum/" #n "/indexed/right/" #p, sum_##n##_##p##_indexed_right},                         \
        {"sum/" #n "/indexed/left/" #p, sum_##n##_##p##_indexed_left},                       \
        {"sum/" #n "/striped/right/" #p, sum_##n##_##p##_striped_right},                     \
        {"sum/" #n "/striped/left/" #p, sum_##n##_##p##_striped_left}
/* Blocks of columns meet one set of each cache: there index order is faster, one row after the
 * other. */
#define LIST_POWERS(n, p)                                                                          \
    {"sum/" #n "/indexed/right/" #p, sum_##n##_##p##_indexed_right},                         \
        {"sum/" #n "/indexed/left/" #p, sum_##n##_##p##_indexed_left},                       \
        {"sum/" #n "/striped/right/" #p, sum_##n##_##p##_striped_right},                     \
        {"sum/" #n "/striped/left/" #p, sum_##n##_##p##_indexed_left}
#define LIST_LISTS(n, p)                                                                           \
    {"gather/" #n "/" #p, gather_##n##_##p}, {"scatter/" #n "/" #p, scatter_##n##_##p}

const native_data native_data_plain[] = {
    LIST_COPIES(u8),
    LIST_COPIES(u16),
    LIST_COPIES(f32),
    LIST_COPIES(f64),
    LIST_SUMS(f32, in),
    LIST_SUMS(f64, in),
    LIST_SUMS(f32, out),
    LIST_SUMS(f64, out),
    LIST_POWERS(f32, 1024),
    LIST_POWERS(f64, 1024),
    LIST_POWERS(f32, 4096),
    LIST_POWERS(f64, 4096),
    LIST_SPREADS(f32, in),
    LIST_SPREADS(f64, in),
    LIST_SPREADS(f32, out),
    LIST_SPREADS(f64, out),
    {"dot/f32/in", dot_f32_in},
    {"dot/f64/in", dot_f64_in},
    {"dot/f32/out", dot_f32_out},
    {"dot/f64/out", dot_f64_out},
    {"dot/mixed/in", dot_mixed_in},
    {"dot/u8/in", dot_u8_in},
    {"columns/mixed/in", columns_mixed},
    {"spmv/7/in", spmv_7_in},
    {"spmv/7/out", spmv_7_out},
    {"spmv/30/in", spmv_30_in},
    {"spmv/30/out", spmv_30_out},
    LIST_LISTS(f32, in),
    LIST_LISTS(f64, in),
    LIST_LISTS(f32, out),
    LIST_LISTS(f64, out),
    {"table/256", table_256},
    {"table/16", table_16},
    {"table/u8", table_u8},
    {"bins/f32", bins_f32},
    {"bins/u8", bins_u8},
    {"histogram/f32", histogram_f32},
    {"histogram/u8", histogram_u8},
    {"histogram/u8/shared", histogram_u8_shared},
    {"histogram/i32/checked", histogram_i32},
    {"histogram/i32/unchecked", histogram_i32},
    {"deposit/checked", deposit},
    {"deposit/unchecked", deposit},
    {"scale/u8", scale_u8},
    {"scale/f32", scale_f32},
    {"blur/interleaved/in", blur_interleaved_in},
    {"blur/interleaved/out", blur_interleaved_out},
    {"blur/planar/in", blur_planar_in},
    {"blur/planar/out", blur_planar_out},
    {NULL, NULL},
};
