/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_expert.c: what an expert writes by hand for one machine: a transposing copy of square
 * arrays with in-register transpositions of a cache line of each row, staged in a buffer, and
 * streaming stores; x = a + s b with streaming stores. AVX-512; without it both are plain loops (a
 * block at a time).
 */
#include "native.h"

#include <string.h>

#if defined(__AVX512BW__)
#include <immintrin.h>

/* Rows r, r + M, r + 2 M and r + 3 M of 16 bytes as one register. */
static inline __m512i rows(const char *at, int64_t row, int64_t m)
{
    const __m128i a = _mm_loadu_si128((const __m128i *)at);
    const __m128i b = _mm_loadu_si128((const __m128i *)(at + m * row));
    const __m128i c = _mm_loadu_si128((const __m128i *)(at + 2 * m * row));
    const __m128i d = _mm_loadu_si128((const __m128i *)(at + 3 * m * row));
    __m512i v = _mm512_inserti32x4(_mm512_castsi128_si512(a), b, 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(v, c, 2), d, 3);
}

#define LOW_1(a, b) _mm512_unpacklo_epi8(a, b)
#define HIGH_1(a, b) _mm512_unpackhi_epi8(a, b)
#define LOW_2(a, b) _mm512_unpacklo_epi16(a, b)
#define HIGH_2(a, b) _mm512_unpackhi_epi16(a, b)
#define LOW_4(a, b) _mm512_unpacklo_epi32(a, b)
#define HIGH_4(a, b) _mm512_unpackhi_epi32(a, b)
#define LOW_8(a, b) _mm512_unpacklo_epi64(a, b)
#define HIGH_8(a, b) _mm512_unpackhi_epi64(a, b)

/* 64 / BYTES rows of 16 bytes at `from`, `row` bytes apart, become 16 / BYTES lines. */
#define BLOCK(BYTES, NT)                                                                           \
    static inline void block_##BYTES##_##NT(char *to, int64_t line, const char *from, int64_t row) \
    {                                                                                              \
        enum { M = 16 / BYTES };                                                                   \
        __m512i r[M], next[M];                                                                     \
        _Pragma("clang loop unroll(full)") for (int k = 0; k < M; k++) r[k] =                      \
            rows(from + k * row, row, M);                                                          \
        _Pragma("clang loop unroll(full)") for (int n = M; n > 1; n /= 2)                          \
        {                                                                                          \
            _Pragma("clang loop unroll(full)") for (int k = 0; k < M / 2; k++)                     \
            {                                                                                      \
                next[2 * k] = LOW_##BYTES(r[k], r[k + M / 2]);                                     \
                next[2 * k + 1] = HIGH_##BYTES(r[k], r[k + M / 2]);                                \
            }                                                                                      \
            memcpy(r, next, sizeof r);                                                             \
        }                                                                                          \
        _Pragma("clang loop unroll(full)") for (int k = 0; k < M; k++)                             \
        {                                                                                          \
            if (NT)                                                                                \
                _mm512_stream_si512((__m512i *)(to + k * line), r[k]);                             \
            else                                                                                   \
                _mm512_storeu_si512(to + k * line, r[k]);                                          \
        }                                                                                          \
    }

#define TRANSPOSE(BYTES, NT)                                                                       \
    BLOCK(BYTES, NT)                                                                               \
    static void transpose_##BYTES##_##NT(char *to, const char *from, int64_t n)                    \
    {                                                                                              \
        enum { ROWS = 64 / BYTES, M = 16 / BYTES };                                                \
        char lines[ROWS * 64] __attribute__((aligned(64)));                                        \
        const int64_t line = n * BYTES;                                                            \
        for (int64_t i = 0; i < n; i += ROWS)                                                      \
            for (int64_t j = 0; j < n; j += ROWS) {                                                \
                for (int r = 0; r < ROWS; r++)                                                     \
                    memcpy(lines + r * 64, from + (i + r) * line + j * BYTES, 64);                 \
                for (int k = 0; k < ROWS; k += M)                                                  \
                    block_##BYTES##_##NT(to + (j + k) * line + i * BYTES, line, lines + k * BYTES, \
                                         64);                                                      \
            }                                                                                      \
        _mm_sfence();                                                                              \
    }
TRANSPOSE(1, 0)
TRANSPOSE(1, 1)
TRANSPOSE(2, 0)
TRANSPOSE(2, 1)
TRANSPOSE(4, 0)
TRANSPOSE(4, 1)
TRANSPOSE(8, 0)
TRANSPOSE(8, 1)

void native_transpose(void *restrict to, const void *restrict from, int64_t n, int bytes,
                      bool is_streamed)
{
    static void (*const functions[4][2])(char *, const char *, int64_t) = {
        {transpose_1_0, transpose_1_1},
        {transpose_2_0, transpose_2_1},
        {transpose_4_0, transpose_4_1},
        {transpose_8_0, transpose_8_1},
    };
    functions[bytes == 8 ? 3 : bytes / 2][is_streamed](to, from, n);
}

#define TRIAD(T, V, P, N)                                                                          \
    int64_t i = 0;                                                                                 \
    T *x = out;                                                                                    \
    const T *a = first, *b = second, s = (T)scale;                                                 \
    for (; i < n && (uintptr_t)(x + i) % 64; i++)                                                  \
        x[i] = a[i] + s * b[i];                                                                    \
    for (; i + N <= n; i += N)                                                                     \
        _mm512_stream_##P(x + i, _mm512_fmadd_##P(_mm512_set1_##P(s), _mm512_loadu_##P(b + i),     \
                                                  _mm512_loadu_##P(a + i)));                       \
    for (; i < n; i++)                                                                             \
        x[i] = a[i] + s * b[i];                                                                    \
    _mm_sfence()

void native_stream_triad(void *restrict out, const void *restrict first,
                         const void *restrict second, double scale, int64_t n, int bytes)
{
    if (bytes == 4) {
        TRIAD(float, __m512, ps, 16);
    } else {
        TRIAD(double, __m512d, pd, 8);
    }
}

double native_read(const double *from, int64_t n)
{
    __m512d sum[8];
    int64_t i = 0;
    for (int s = 0; s < 8; s++)
        sum[s] = _mm512_setzero_pd();
    for (; i + 64 <= n; i += 64)
        _Pragma("clang loop unroll(full)") for (int s = 0; s < 8; s++) sum[s] =
            _mm512_add_pd(sum[s], _mm512_loadu_pd(from + i + 8 * s));
    double all = 0;
    for (int s = 0; s < 8; s++)
        all += _mm512_reduce_add_pd(sum[s]);
    for (; i < n; i++)
        all += from[i];
    return all;
}

#else

void native_transpose(void *restrict to, const void *restrict from, int64_t n, int bytes,
                      bool is_streamed)
{
    enum { EDGE = 32 };
    char *out = to;
    const char *in = from;
    (void)is_streamed;
    for (int64_t i = 0; i < n; i += EDGE)
        for (int64_t j = 0; j < n; j += EDGE)
            for (int64_t y = j; y < j + EDGE; y++)
                for (int64_t x = i; x < i + EDGE; x++)
                    memcpy(out + (y * n + x) * bytes, in + (x * n + y) * bytes, (size_t)bytes);
}

void native_stream_triad(void *restrict out, const void *restrict first,
                         const void *restrict second, double scale, int64_t n, int bytes)
{
    for (int64_t i = 0; i < n; i++)
        if (bytes == 4)
            ((float *)out)[i] =
                ((const float *)first)[i] + (float)scale * ((const float *)second)[i];
        else
            ((double *)out)[i] = ((const double *)first)[i] + scale * ((const double *)second)[i];
}

double native_read(const double *from, int64_t n)
{
    double sum[8] = {0}, all = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int s = 0; s < 8; s++)
            sum[s] += from[i + s];
    for (; i < n; i++)
        all += from[i];
    for (int s = 0; s < 8; s++)
        all += sum[s];
    return all;
}

#endif
