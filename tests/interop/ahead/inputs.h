/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs.h: arrays with the same contents in the programs that run kernels of an object file and in
 * those that interpret them, and a line for each result, so that the lines can be compared.
 */
#ifndef INPUTS_H
#define INPUTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Elements of each case: vectors, the grid of a stencil, products of matrices, and so on. */
enum { SAXPY_N = 1000, ROWS = 37, COLUMNS = 53, DOT_N = 100000, SUM_ROWS = 33 };
enum { FROM_N = 500, TO_N = 300, BYTES_N = 10000 };
enum { M_ROWS = 40, M_INNER = 30, M_COLUMNS = 20, P_ROWS = 32, P_INNER = 512, P_COLUMNS = 512 };
enum { SPARSE_ROWS = 50, EACH = 3, PIXEL_ROWS = 30, PIXELS = 40 };

/* Numbers from 0 to 65535, others for each seed. */
static inline uint32_t noise(uint32_t seed, int64_t i)
{
    uint32_t x = seed * 2654435761u + (uint32_t)i * 40503u;
    x = (x ^ x >> 15) * 2246822519u;
    return x >> 16;
}

static inline float *floats(uint32_t seed, int64_t n)
{
    float *p = (float *)malloc((size_t)n * sizeof *p);
    for (int64_t i = 0; p && i < n; i++)
        p[i] = (float)noise(seed, i) / 65536.0f - 0.25f;
    return p;
}

static inline double *doubles(uint32_t seed, int64_t n)
{
    double *p = (double *)malloc((size_t)n * sizeof *p);
    for (int64_t i = 0; p && i < n; i++)
        p[i] = (double)noise(seed, i) / 65536.0 - 0.25;
    return p;
}

/* Integers below `most`; with a step, its multiples instead. */
static inline int32_t *integers(uint32_t seed, int64_t n, uint32_t most, int32_t step)
{
    int32_t *p = (int32_t *)malloc((size_t)n * sizeof *p);
    for (int64_t i = 0; p && i < n; i++)
        p[i] = step ? (int32_t)i * step : (int32_t)(noise(seed, i) % most);
    return p;
}

static inline uint8_t *bytes(uint32_t seed, int64_t n)
{
    uint8_t *p = (uint8_t *)malloc((size_t)n);
    for (int64_t i = 0; p && i < n; i++)
        p[i] = (uint8_t)noise(seed, i);
    return p;
}

/* A line with all the bits of a result. */
static inline void show(const char *name, const void *result, size_t n)
{
    uint64_t sum = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++)
        sum = (sum ^ ((const uint8_t *)result)[i]) * UINT64_C(1099511628211);
    printf("%s %016llx\n", name, (unsigned long long)sum);
}

#endif
