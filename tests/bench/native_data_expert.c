/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_data_expert.c: cases of bench_cases_data.c as an expert writes them with AVX-512
 * intrinsics, where that differs from what a compiler makes of plain loops. Sums keep the order of
 * the kernel's rule.
 */
#include "native_data.h"

#include <stddef.h>

#if defined(__AVX512BW__) && defined(__AVX512DQ__)
#include <immintrin.h>

#define LOOP(name) static void name(void *const *d)

/* ---------------------------------------------------------------- sums */

/* Rows in index order: eight rows at once, eight columns of each transposed in registers. */
static inline void transpose_8(__m512d *r)
{
    __m512d t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_pd(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_pd(r[i], r[i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        const __m512d a = _mm512_shuffle_f64x2(t[i], t[i + 2], 0x88),
                      b = _mm512_shuffle_f64x2(t[i], t[i + 2], 0xdd);
        const __m512d c = _mm512_shuffle_f64x2(t[i + 4], t[i + 6], 0x88),
                      e = _mm512_shuffle_f64x2(t[i + 4], t[i + 6], 0xdd);
        r[i] = _mm512_shuffle_f64x2(a, c, 0x88);
        r[i + 2] = _mm512_shuffle_f64x2(b, e, 0x88);
        r[i + 4] = _mm512_shuffle_f64x2(a, c, 0xdd);
        r[i + 6] = _mm512_shuffle_f64x2(b, e, 0xdd);
    }
}

static inline void rows_f64(double *restrict y, const double *restrict a, int rows, int n)
{
    int i = 0;
    for (; i + 8 <= rows; i += 8) {
        __m512d s = _mm512_setzero_pd(), r[8];
        const double *at = a + (int64_t)i * n;
        int k = 0;
        for (; k + 8 <= n; k += 8) {
            for (int m = 0; m < 8; m++)
                r[m] = _mm512_loadu_pd(at + (int64_t)m * n + k);
            transpose_8(r);
            for (int m = 0; m < 8; m++)
                s = _mm512_add_pd(s, r[m]);
        }
        _mm512_storeu_pd(y + i, s);
        for (; k < n; k++)
            for (int m = 0; m < 8; m++)
                y[i + m] += at[(int64_t)m * n + k];
    }
    for (; i < rows; i++) {
        double s = 0;
        for (int k = 0; k < n; k++)
            s += a[(int64_t)i * n + k];
        y[i] = s;
    }
}
LOOP(rows_f64_in)
{
    rows_f64(d[0], d[1], SUM_IN_ROWS, SUM_IN);
}
LOOP(rows_f64_out)
{
    rows_f64(d[0], d[1], SUM_OUT_ROWS, SUM_OUT);
}

/* 64 partials in registers */
#define STRIPES(T, V, P, N, name, product)                                                         \
    static inline T stripes_##name(const T *restrict x, const T *restrict z, int n)                \
    {                                                                                              \
        enum { VECTORS = 64 / N };                                                                 \
        V s[VECTORS];                                                                              \
        T partial[64];                                                                             \
        int k = 0;                                                                                 \
        (void)z;                                                                                   \
        for (int m = 0; m < VECTORS; m++)                                                          \
            s[m] = _mm512_setzero_##P();                                                           \
        for (; k + 64 <= n; k += 64)                                                               \
            for (int m = 0; m < VECTORS; m++)                                                      \
                s[m] = product;                                                                    \
        for (int m = 0; m < VECTORS; m++)                                                          \
            _mm512_storeu_##P(partial + m * N, s[m]);                                              \
        for (int l = 0; k + l < n; l++)                                                            \
            partial[l] += z ? x[k + l] * z[k + l] : x[k + l];                                      \
        for (int half = 32; half > 0; half /= 2)                                                   \
            for (int l = 0; l < half; l++)                                                         \
                partial[l] += partial[l + half];                                                   \
        return partial[0];                                                                         \
    }
STRIPES(float, __m512, ps, 16, sum_f32, _mm512_add_ps(s[m], _mm512_loadu_ps(x + k + m * 16)))
STRIPES(double, __m512d, pd, 8, sum_f64, _mm512_add_pd(s[m], _mm512_loadu_pd(x + k + m * 8)))
STRIPES(float, __m512, ps, 16, dot_f32,
        _mm512_fmadd_ps(_mm512_loadu_ps(x + k + m * 16), _mm512_loadu_ps(z + k + m * 16), s[m]))
STRIPES(double, __m512d, pd, 8, dot_f64,
        _mm512_fmadd_pd(_mm512_loadu_pd(x + k + m * 8), _mm512_loadu_pd(z + k + m * 8), s[m]))

#define STRIPED(T, name, place, PLACE)                                                             \
    LOOP(striped_##name##_##place)                                                                 \
    {                                                                                              \
        for (int64_t i = 0; i < SUM_##PLACE##_ROWS; i++)                                           \
            ((T *)d[0])[i] =                                                                       \
                stripes_sum_##name((const T *)d[1] + i * SUM_##PLACE, NULL, SUM_##PLACE);          \
    }                                                                                              \
    LOOP(dot_##name##_##place)                                                                     \
    {                                                                                              \
        *(T *)d[0] = stripes_dot_##name(d[1], d[2], DOT_##PLACE);                                  \
    }
STRIPED(float, f32, in, IN)
STRIPED(float, f32, out, OUT)
STRIPED(double, f64, in, IN)
STRIPED(double, f64, out, OUT)

/* ---------------------------------------------------------------- tables */

LOOP(table_16)
{
    const __m512 t = _mm512_loadu_ps(d[2]);
    const uint8_t *x = d[1];
    float *y = d[0];
    int i = 0;
    for (; i + 16 <= TABLE_N; i += 16)
        _mm512_storeu_ps(
            y + i,
            _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(x + i))), t));
    for (; i < TABLE_N; i++)
        y[i] = ((const float *)d[2])[x[i] & 15];
}

LOOP(table_256)
{
    __m512 t[16], r[8];
    const uint8_t *x = d[1];
    float *y = d[0];
    int i = 0;
    for (int k = 0; k < 16; k++)
        t[k] = _mm512_loadu_ps((const float *)d[2] + 16 * k);
    for (; i + 16 <= TABLE_N; i += 16) {
        const __m512i v = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(x + i)));
        for (int k = 0; k < 8; k++)
            r[k] = _mm512_permutex2var_ps(t[2 * k], v, t[2 * k + 1]);
        for (int n = 4, bit = 32; n > 0; n /= 2, bit *= 2)
            for (int k = 0; k < n; k++)
                r[k] = _mm512_mask_blend_ps(_mm512_test_epi32_mask(v, _mm512_set1_epi32(bit)),
                                            r[2 * k], r[2 * k + 1]);
        _mm512_storeu_ps(y + i, r[0]);
    }
    for (; i < TABLE_N; i++)
        y[i] = ((const float *)d[2])[x[i]];
}

/* ---------------------------------------------------------------- pixels, as u16 */

static inline __m512i wide(const uint8_t *x)
{
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)x));
}

/* Row i of n bytes, whose neighbours are `step` bytes and `row` bytes away. */
static inline void blur_row(uint8_t *restrict y, const uint8_t *restrict x, int n, int step,
                            int row)
{
    int j = 0;
    for (; j + 32 <= n; j += 32) {
        const uint8_t *at = x + j;
        __m512i corners = _mm512_add_epi16(wide(at - row - step), wide(at - row + step));
        corners = _mm512_add_epi16(corners,
                                   _mm512_add_epi16(wide(at + row - step), wide(at + row + step)));
        __m512i edges = _mm512_add_epi16(wide(at - row), wide(at + row));
        edges = _mm512_add_epi16(edges, _mm512_add_epi16(wide(at - step), wide(at + step)));
        __m512i s = _mm512_add_epi16(corners, _mm512_slli_epi16(edges, 1));
        s = _mm512_add_epi16(_mm512_add_epi16(s, _mm512_slli_epi16(wide(at), 2)),
                             _mm512_set1_epi16(8));
        _mm256_storeu_si256((void *)(y + j), _mm512_cvtepi16_epi8(_mm512_srli_epi16(s, 4)));
    }
    for (; j < n; j++) {
        const uint8_t *at = x + j;
        const int corners = at[-row - step] + at[-row + step] + at[row - step] + at[row + step];
        y[j] =
            (uint8_t)((corners + 2 * (at[-row] + at[-step] + at[step] + at[row]) + 4 * at[0] + 8) >>
                      4);
    }
}

#define BLUR(place, PLACE)                                                                         \
    LOOP(interleaved_##place)                                                                      \
    {                                                                                              \
        enum { ROW = BLUR_##PLACE##_X * 3 };                                                       \
        for (int i = 1; i < BLUR_##PLACE##_Y - 1; i++)                                             \
            blur_row((uint8_t *)d[0] + i * ROW + 3, (const uint8_t *)d[1] + i * ROW + 3, ROW - 6,  \
                     3, ROW);                                                                      \
    }                                                                                              \
    LOOP(planar_##place)                                                                           \
    {                                                                                              \
        enum { ROW = BLUR_##PLACE##_X };                                                           \
        for (int c = 0; c < 3; c++)                                                                \
            for (int i = 1; i < BLUR_##PLACE##_Y - 1; i++) {                                       \
                const int64_t at = (int64_t)(c * BLUR_##PLACE##_Y + i) * ROW + 1;                  \
                blur_row((uint8_t *)d[0] + at, (const uint8_t *)d[1] + at, ROW - 2, 1, ROW);       \
            }                                                                                      \
    }
BLUR(in, IN)
BLUR(out, OUT)

LOOP(scale_u8)
{
    uint8_t *y = d[0];
    const uint8_t *x = d[1];
    int i = 0;
    for (; i + 32 <= PIXELS_IN; i += 32) {
        __m512i v = _mm512_add_epi16(_mm512_mullo_epi16(wide(x + i), _mm512_set1_epi16(19)),
                                     _mm512_set1_epi16(500));
        v = _mm512_min_epu16(_mm512_srli_epi16(v, 4), _mm512_set1_epi16(255));
        _mm256_storeu_si256((void *)(y + i), _mm512_cvtepi16_epi8(v));
    }
    for (; i < PIXELS_IN; i++) {
        const int v = (x[i] * 19 + 500) >> 4;
        y[i] = (uint8_t)(v > 255 ? 255 : v);
    }
}

const native_data native_data_expert[] = {
    {"sum/f64/indexed/right/in", rows_f64_in},
    {"sum/f64/indexed/right/out", rows_f64_out},
    {"sum/f32/striped/right/in", striped_f32_in},
    {"sum/f32/striped/right/out", striped_f32_out},
    {"sum/f64/striped/right/in", striped_f64_in},
    {"sum/f64/striped/right/out", striped_f64_out},
    {"dot/f32/in", dot_f32_in},
    {"dot/f32/out", dot_f32_out},
    {"dot/f64/in", dot_f64_in},
    {"dot/f64/out", dot_f64_out},
    {"table/16", table_16},
    {"table/256", table_256},
    {"blur/interleaved/in", interleaved_in},
    {"blur/interleaved/out", interleaved_out},
    {"blur/planar/in", planar_in},
    {"blur/planar/out", planar_out},
    {"scale/u8", scale_u8},
    {NULL, NULL},
};
#else
const native_data native_data_expert[] = {{NULL, NULL}};
#endif
