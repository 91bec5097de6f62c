/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_schedule.c: the kernels of tests/schedules as an expert writes them: vectors of the
 * compiler, intrinsics of AVX-512 for shuffles; without AVX-512 plain loops in the place of
 * intrinsics. Sums keep the order of the kernel's rule.
 */
#include "native_schedule.h"

#include <stdint.h>
#include <string.h>

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#define HAS_AVX512 1
#else
#define HAS_AVX512 0
#endif

#define LOOP(name) static void name(void *const *d)
#define UNROLLED _Pragma("clang loop unroll(full)")

typedef float f32x16 __attribute__((vector_size(64)));
typedef double f64x8 __attribute__((vector_size(64)));

static inline f32x16 load_f32(const float *at)
{
    f32x16 v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline f64x8 load_f64(const double *at)
{
    f64x8 v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* ---------------------------------------------------------------- interleaved members */

LOOP(complex_product)
{
    enum { N = 1003 };
    const float *restrict a = d[0], *restrict b = d[1];
    float *restrict c = d[2];
    int i = 0;
#if HAS_AVX512
    for (; i < 2 * N; i += 16) {
        __mmask16 m = (__mmask16)(2 * N - i >= 16 ? 0xffff : (1 << (2 * N - i)) - 1);
        __m512 x = _mm512_maskz_loadu_ps(m, a + i), y = _mm512_maskz_loadu_ps(m, b + i);
        __m512 crossed = _mm512_mul_ps(_mm512_permute_ps(x, 0xb1), _mm512_movehdup_ps(y));
        _mm512_mask_storeu_ps(c + i, m, _mm512_fmaddsub_ps(x, _mm512_moveldup_ps(y), crossed));
    }
#endif
    for (; i < 2 * N; i += 2) {
        float re = a[i] * b[i] - a[i + 1] * b[i + 1], im = a[i] * b[i + 1] + a[i + 1] * b[i];
        c[i] = re;
        c[i + 1] = im;
    }
}

#if HAS_AVX512
/* Grey values of 16 pixels of four bytes. */
static inline __m128i grey(__m512i pixels)
{
    const __m512i weights = _mm512_set1_epi32(29 << 16 | 77), green = _mm512_set1_epi32(150);
    __m512i others = _mm512_and_si512(pixels, _mm512_set1_epi32(0x00ff00ff));
    __m512i sum = _mm512_madd_epi16(others, weights);
    __m512i middle = _mm512_and_si512(_mm512_srli_epi32(pixels, 8), _mm512_set1_epi32(0xff));
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(middle, green));
    return _mm512_cvtepi32_epi8(_mm512_srli_epi32(sum, 8));
}
#endif

static inline uint8_t grey_of(const uint8_t *p)
{
    return (uint8_t)((77 * p[0] + 150 * p[1] + 29 * p[2]) >> 8);
}

enum { PIXELS = 50 * 203 };

LOOP(image3)
{
    const uint8_t *restrict rgb = d[0];
    uint8_t *restrict gray = d[1];
    int i = 0;
#if HAS_AVX512
    const __m512i words = _mm512_setr_epi32(0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 12);
    const __m512i bytes = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
    for (; i + 22 <= PIXELS; i += 16) {
        __m512i p = _mm512_permutexvar_epi32(words, _mm512_loadu_si512(rgb + 3 * i));
        _mm_storeu_si128((__m128i *)(void *)(gray + i), grey(_mm512_shuffle_epi8(p, bytes)));
    }
#endif
    for (; i < PIXELS; i++)
        gray[i] = grey_of(rgb + 3 * i);
}

LOOP(image4)
{
    const uint8_t *restrict rgba = d[0];
    uint8_t *restrict gray = d[1];
    int i = 0;
#if HAS_AVX512
    for (; i + 16 <= PIXELS; i += 16)
        _mm_storeu_si128((__m128i *)(void *)(gray + i), grey(_mm512_loadu_si512(rgba + 4 * i)));
#endif
    for (; i < PIXELS; i++)
        gray[i] = grey_of(rgba + 4 * i);
}

/* Nine vectors hold 16 records; members that are not updated get 0 times dt added. */
LOOP(record9)
{
    enum { N = 1003 };
    float *restrict r = d[0];
    int i = 0;
#if HAS_AVX512
    __mmask16 updated[9];
    const __m512 dt = _mm512_set1_ps(0.125f);
    for (int v = 0; v < 9; v++) {
        unsigned bits = 0;
        for (int l = 0; l < 16; l++)
            bits |= (unsigned)((16 * v + l) % 9 < 6) << l;
        updated[v] = (__mmask16)bits;
    }
    for (; i + 17 <= N; i += 16)
        UNROLLED for (int v = 0; v < 9; v++)
        {
            float *at = r + 9 * i + 16 * v;
            __m512 x = _mm512_loadu_ps(at), change = _mm512_loadu_ps(at + 3);
            _mm512_storeu_ps(at, _mm512_mask3_fmadd_ps(dt, change, x, updated[v]));
        }
#endif
    for (; i < N; i++)
        for (int m = 0; m < 6; m++)
            r[9 * i + m] += 0.125f * r[9 * i + m + 3];
}

LOOP(matvec3)
{
    enum { N = 1003 };
    const float *restrict m = d[0], *restrict x = d[1];
    float *restrict y = d[2];
    for (int n = 0; n < N; n++)
        UNROLLED for (int i = 0; i < 3; i++)
        {
            const float *row = m + 9 * n + 3 * i, *v = x + 3 * n;
            y[3 * n + i] = row[0] * v[0] + row[1] * v[1] + row[2] * v[2];
        }
}

/* ---------------------------------------------------------------- reductions */

/* Coordinates of 32 queries stay in registers. */
LOOP(distance)
{
    enum { N = 1003, POINTS = 50, COORDINATES = 8 };
    const float *restrict p = d[0], *restrict q = d[1];
    float *restrict y = d[2];
    int i = 0;
    for (; i + 32 <= N; i += 32) {
        f32x16 at[COORDINATES][2], best[2];
        UNROLLED for (int c = 0; c < COORDINATES; c++)
        {
            at[c][0] = load_f32(p + c * N + i);
            at[c][1] = load_f32(p + c * N + i + 16);
        }
        best[0] = best[1] = (f32x16){0} + __builtin_inff();
        for (int k = 0; k < POINTS; k++)
            UNROLLED for (int v = 0; v < 2; v++)
            {
                f32x16 sum = at[0][v] - q[k * COORDINATES];
                sum *= sum;
                UNROLLED for (int c = 1; c < COORDINATES; c++)
                {
                    f32x16 apart = at[c][v] - q[k * COORDINATES + c];
                    sum += apart * apart;
                }
                best[v] = __builtin_elementwise_min(best[v], sum);
            }
        memcpy(y + i, best, sizeof best);
    }
    for (; i < N; i++) {
        float best = __builtin_inff();
        for (int k = 0; k < POINTS; k++) {
            float sum = 0;
            for (int c = 0; c < COORDINATES; c++) {
                float apart = p[c * N + i] - q[k * COORDINATES + c];
                sum += apart * apart;
            }
            best = sum < best ? sum : best;
        }
        y[i] = best;
    }
}

/* Even and odd elements of 32. */
#define EVEN(a, b)                                                                                 \
    __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODD(a, b)                                                                                  \
    __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)

/* ROWS rows of sums: each row of elements is taken apart once for all of them. */
LOOP(window)
{
    enum { M = 50, N = 200, ROWS = 5, ROW = 403 };
    const float *restrict x = d[0];
    float *restrict y = d[1];
    for (int i = 0; i < M; i += ROWS) {
        int j = 0;
        for (; j + 16 <= N; j += 16) {
            f32x16 sum[ROWS] = {0};
            UNROLLED for (int p = 0; p < 2 * ROWS + 3; p++)
            {
                const float *at = x + (2 * i + p) * ROW + 2 * j;
                f32x16 a = load_f32(at), b = load_f32(at + 16), e = load_f32(at + 2),
                       f = load_f32(at + 18), g = load_f32(at + 4), h = load_f32(at + 20);
                f32x16 v[5] = {EVEN(a, b), ODD(a, b), EVEN(e, f), ODD(e, f), EVEN(g, h)};
                UNROLLED for (int r = 0; r < ROWS; r++)
                {
                    if (p < 2 * r || p > 2 * r + 4)
                        continue;
                    UNROLLED for (int c = 0; c < 5; c++) sum[r] += v[c];
                }
            }
            UNROLLED for (int r = 0; r < ROWS; r++) memcpy(y + (i + r) * N + j, &sum[r], 64);
        }
        for (int r = 0; r < ROWS; r++)
            for (int c = j; c < N; c++) {
                float sum = 0;
                for (int p = 0; p < 5; p++)
                    for (int q = 0; q < 5; q++)
                        sum += x[(2 * (i + r) + p) * ROW + 2 * c + q];
                y[(i + r) * N + c] = sum;
            }
    }
}

LOOP(moments)
{
    enum { N = 203, POINTS = 100 };
    const float *restrict x = d[0];
    float *restrict s = d[1], *restrict q = d[2];
    int i = 0;
    for (; i + 64 <= N; i += 64) {
        f32x16 sum[4] = {0}, square[4] = {0};
        for (int k = 0; k < POINTS; k++)
            UNROLLED for (int v = 0; v < 4; v++)
            {
                f32x16 at = load_f32(x + k * N + i + 16 * v);
                sum[v] += at;
                square[v] += at * at;
            }
        memcpy(s + i, sum, sizeof sum);
        memcpy(q + i, square, sizeof square);
    }
    for (; i < N; i++) {
        float sum = 0, square = 0;
        for (int k = 0; k < POINTS; k++) {
            sum += x[k * N + i];
            square += x[k * N + i] * x[k * N + i];
        }
        s[i] = sum;
        q[i] = square;
    }
}

LOOP(rows)
{
    enum { N = 100 };
    const int32_t *restrict first = d[0], *restrict last = d[1], *restrict column = d[2];
    const double *restrict value = d[3], *restrict x = d[4];
    double *restrict y = d[5];
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = first[i]; k < last[i]; k++)
            sum += value[k] * x[column[k]];
        y[i] = sum;
    }
}

/* ---------------------------------------------------------------- products */

/* Rows i to i + 8 and columns j to j + 24 of the product. */
LOOP(atb)
{
    enum { N = 96, POINTS = 70, ROWS = 8, VECTORS = 3 };
    const double *restrict a = d[0], *restrict b = d[1];
    double *restrict c = d[2];
    for (int j = 0; j < N; j += 8 * VECTORS)
        for (int i = 0; i < N; i += ROWS) {
            f64x8 sum[ROWS][VECTORS] = {{{0}}};
            for (int k = 0; k < POINTS; k++) {
                f64x8 at[VECTORS];
                UNROLLED for (int v = 0; v < VECTORS; v++) at[v] = load_f64(b + k * N + j + 8 * v);
                UNROLLED for (int r = 0; r < ROWS; r++) UNROLLED for (int v = 0; v < VECTORS; v++)
                    sum[r][v] += a[k * N + i + r] * at[v];
            }
            UNROLLED for (int r = 0; r < ROWS; r++)
                memcpy(c + (i + r) * N + j, sum[r], sizeof sum[r]);
        }
}

/* Tiles that are above the diagonal are left out, and those on it stored row by row. */
LOOP(triangle)
{
    enum { N = 90, POINTS = 61, ROWS = 6, VECTORS = 2, COLUMNS = 8 * VECTORS };
    const double *restrict a = d[0], *restrict b = d[1];
    double *restrict c = d[2];
    for (int i = 0; i < N; i += ROWS)
        for (int j = 0; j < i + ROWS; j += COLUMNS) {
            f64x8 sum[ROWS][VECTORS] = {{{0}}};
            int left = N - j < COLUMNS ? N - j : COLUMNS;
            for (int k = 0; k < POINTS; k++) {
                f64x8 at[VECTORS] = {{0}};
                if (left == COLUMNS)
                    memcpy(at, b + k * N + j, sizeof at);
                else
                    memcpy(at, b + k * N + j, (size_t)left * sizeof(double));
                UNROLLED for (int r = 0; r < ROWS; r++)
                    UNROLLED for (int v = 0; v < VECTORS; v++) sum[r][v] +=
                        a[(i + r) * POINTS + k] * at[v];
            }
            for (int r = 0; r < ROWS; r++) {
                int n = i + r + 1 - j;
                n = n < 0 ? 0 : n > left ? left : n;
                memcpy(c + (i + r) * N + j, sum[r], (size_t)n * sizeof(double));
            }
        }
}

/* ---------------------------------------------------------------- streams */

LOOP(stencil)
{
    enum { N = 4003 };
    const float *restrict x = d[0];
    float *restrict y = d[1];
    for (int i = 1; i < N - 1; i++)
        y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

/* Both arrays have one layout, so elements may come as they lie. */
LOOP(tiled)
{
    enum { N = 64 * 128 };
    const float *restrict x = d[0];
    float *restrict y = d[1];
    for (int i = 0; i < N; i++)
        y[i] = 3 * x[i] + y[i];
}

static const struct {
    const char *name;
    native_schedule_loop loop;
} loops[] = {{"complex", complex_product}, {"image3", image3},     {"image4", image4},
             {"record9", record9},         {"matvec3", matvec3},   {"distance", distance},
             {"window", window},           {"moments", moments},   {"rows", rows},
             {"atb", atb},                 {"triangle", triangle}, {"stencil", stencil},
             {"tiled", tiled}};

native_schedule_loop native_schedule(const char *kernel)
{
    for (unsigned n = 0; n < sizeof loops / sizeof loops[0]; n++)
        if (strcmp(loops[n].name, kernel) == 0)
            return loops[n].loop;
    return 0;
}
