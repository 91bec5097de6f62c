/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_loops.h: the loops for one element type, a template. The includer defines NATIVE_T, the
 * element type, and NATIVE_TABLE, the name of the table of functions, and includes this file once.
 *
 * The sums are written in the same order as the kernels of bench_cases_speed.c, so that with
 * contraction of a*b+c both sides round at the same places and the results can be compared bit for
 * bit.
 */
#include "native.h"

typedef NATIVE_T T;

#define HEAD(name)                                                                                 \
    static void name(void *restrict out_data, const void *restrict a_data,                         \
                     const void *restrict b_data, double scale_f64)
#define NAMES                                                                                      \
    T *out = out_data;                                                                             \
    const T *a = a_data, *b = b_data;                                                              \
    const T scale = (T)scale_f64;                                                                  \
    (void)b;                                                                                       \
    (void)scale

/* y = scale * x + y */
#define SAXPY(name, n, step)                                                                       \
    HEAD(name)                                                                                     \
    {                                                                                              \
        NAMES;                                                                                     \
        for (int64_t i = 0; i < (n); i++)                                                          \
            out[i * (step)] = scale * a[i * (step)] + out[i * (step)];                             \
    }

/* x = a + scale * b */
#define TRIAD(name, n, step)                                                                       \
    HEAD(name)                                                                                     \
    {                                                                                              \
        NAMES;                                                                                     \
        for (int64_t i = 0; i < (n); i++)                                                          \
            out[i * (step)] = a[i * (step)] + scale * b[i * (step)];                               \
    }

#define PAIR(o, s) (a[(o) - (s)] + a[(o) + (s)])
#define STEP(sum, points, u) ((u) + (T)BENCH_COEFFICIENT * ((sum) + (T) - (points) * (u)))

/* One step of heat flow on the inner points. n0, n1: extents; s0, s1: strides of dimensions 0
 * and 1. */
#define FIVE_POINT(o, s0, s1) out[o] = STEP(PAIR(o, s0) + PAIR(o, s1), 4, a[o])
#define FIVE_RIGHT(name, n0, n1, s0)                                                               \
    HEAD(name)                                                                                     \
    {                                                                                              \
        NAMES;                                                                                     \
        for (int64_t i = 1; i < (n0)-1; i++)                                                       \
            for (int64_t j = 1; j < (n1)-1; j++)                                                   \
                FIVE_POINT(i *(s0) + j, s0, 1);                                                    \
    }
#define FIVE_LEFT(name, n0, n1, s1)                                                                \
    HEAD(name)                                                                                     \
    {                                                                                              \
        NAMES;                                                                                     \
        for (int64_t j = 1; j < (n1)-1; j++)                                                       \
            for (int64_t i = 1; i < (n0)-1; i++)                                                   \
                FIVE_POINT(i + j * (s1), 1, s1);                                                   \
    }

/* Loops in three dimensions. */
#define SEVEN_POINT(o, s0, s1, s2) out[o] = STEP((PAIR(o, s0) + PAIR(o, s1)) + PAIR(o, s2), 6, a[o])
#define SEVEN_RIGHT(name, n0, n1, n2, s0, s1)                                                      \
    HEAD(name)                                                                                     \
    {                                                                                              \
        NAMES;                                                                                     \
        for (int64_t i = 1; i < (n0)-1; i++)                                                       \
            for (int64_t j = 1; j < (n1)-1; j++)                                                   \
                for (int64_t k = 1; k < (n2)-1; k++)                                               \
                    SEVEN_POINT(i *(s0) + j * (s1) + k, s0, s1, 1);                                \
    }
#define SEVEN_LEFT(name, n0, n1, n2, s1, s2)                                                       \
    HEAD(name)                                                                                     \
    {                                                                                              \
        NAMES;                                                                                     \
        for (int64_t k = 1; k < (n2)-1; k++)                                                       \
            for (int64_t j = 1; j < (n1)-1; j++)                                                   \
                for (int64_t i = 1; i < (n0)-1; i++)                                               \
                    SEVEN_POINT(i + j * (s1) + k * (s2), 1, s1, s2);                               \
    }

/* Strides are 64-bit, so that products with constant extents cannot wrap. */
#define WIDE(n) ((int64_t)(n))
#define SUB_EXTENT(n) (WIDE(n) + SUB_BEFORE + SUB_AFTER)

#define ALL_OF_PLACE(P, p)                                                                         \
    SAXPY(saxpy_##p, P##_N, 1)                                                                     \
    SAXPY(saxpy_##p##_sub, P##_N, SUB_STEP)                                                        \
    TRIAD(triad_##p, P##_N, 1)                                                                     \
    TRIAD(triad_##p##_sub, P##_N, SUB_STEP)                                                        \
    FIVE_RIGHT(five_##p##_right, P##_2D_0, P##_2D_1, WIDE(P##_2D_1))                               \
    FIVE_LEFT(five_##p##_left, P##_2D_0, P##_2D_1, WIDE(P##_2D_0))                                 \
    FIVE_RIGHT(five_##p##_sub, P##_2D_0, P##_2D_1, SUB_EXTENT(P##_2D_1))                           \
    SEVEN_RIGHT(seven_##p##_right, P##_3D_0, P##_3D_1, P##_3D_2, WIDE(P##_3D_1) * P##_3D_2,        \
                WIDE(P##_3D_2))                                                                    \
    SEVEN_LEFT(seven_##p##_left, P##_3D_0, P##_3D_1, P##_3D_2, WIDE(P##_3D_0),                     \
               WIDE(P##_3D_0) * P##_3D_1)                                                          \
    SEVEN_RIGHT(seven_##p##_sub, P##_3D_0, P##_3D_1, P##_3D_2,                                     \
                SUB_EXTENT(P##_3D_1) * SUB_EXTENT(P##_3D_2), SUB_EXTENT(P##_3D_2))

ALL_OF_PLACE(IN, in)
ALL_OF_PLACE(OUT, out)

/* A vector is the same in Right and Left order. */
const native_loop NATIVE_TABLE[N_KERNELS][N_PLACES][N_LAYOUTS] = {
    [KERNEL_SAXPY] = {{saxpy_in, saxpy_in, saxpy_in_sub}, {saxpy_out, saxpy_out, saxpy_out_sub}},
    [KERNEL_TRIAD] = {{triad_in, triad_in, triad_in_sub}, {triad_out, triad_out, triad_out_sub}},
    [KERNEL_FIVE] = {{five_in_right, five_in_left, five_in_sub},
                     {five_out_right, five_out_left, five_out_sub}},
    [KERNEL_SEVEN] = {{seven_in_right, seven_in_left, seven_in_sub},
                      {seven_out_right, seven_out_left, seven_out_sub}},
};
