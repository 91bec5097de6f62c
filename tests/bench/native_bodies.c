/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_bodies.c: the bodies of bodies.h as C loops in the right order for each layout, clang-19
 * -O3 -march=native.
 */
#include "bodies.h"

#include <stddef.h>
#include <stdint.h>

typedef double real;
#if defined(__clang__)
#define root(x) __builtin_elementwise_sqrt(x) /* without errno */
#define size(x) __builtin_elementwise_abs(x)
#else
#define root(x) __builtin_sqrt(x)
#define size(x) __builtin_fabs(x)
#endif
#define real(x) ((real)(x))

#define ARRAYS                                                                                     \
    double *restrict o0 = p[0], *restrict o1 = p[1], *restrict o2 = p[2], *restrict o3 = p[3];     \
    double *restrict o4 = p[4], *restrict o5 = p[5], *restrict o6 = p[6], *restrict o7 = p[7];     \
    const double *restrict a0 = p[8], *restrict a1 = p[9], *restrict a2 = p[10];                   \
    const double *restrict a3 = p[11], *restrict a4 = p[12], *restrict a5 = p[13];                 \
    const double *restrict a6 = p[14], *restrict a7 = p[15];                                       \
    (void)o0, (void)o1, (void)o2, (void)o3, (void)o4, (void)o5, (void)o6, (void)o7;                \
    (void)a0, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7

#define O(...) o0[OUT(__VA_ARGS__)]
#define P(...) o1[OUT(__VA_ARGS__)]
#define Q(...) o2[OUT(__VA_ARGS__)]
#define R(...) o3[OUT(__VA_ARGS__)]
#define S(...) o4[OUT(__VA_ARGS__)]
#define U(...) o5[OUT(__VA_ARGS__)]
#define V(...) o6[OUT(__VA_ARGS__)]
#define W(...) o7[OUT(__VA_ARGS__)]
#define A(...) a0[IN(__VA_ARGS__)]
#define B(...) a1[IN(__VA_ARGS__)]
#define C(...) a2[IN(__VA_ARGS__)]
#define D(...) a3[IN(__VA_ARGS__)]
#define E(...) a4[IN(__VA_ARGS__)]
#define F(...) a5[IN(__VA_ARGS__)]
#define G(...) a6[IN(__VA_ARGS__)]
#define H(...) a7[IN(__VA_ARGS__)]

#define PICK(a, b, c, name, ...) name
#define RIGHT_1(i) (i)
#define RIGHT_2(i, j) ((i) * (int64_t)BODY_2D + (j))
#define RIGHT_3(i, j, k) (((i) * (int64_t)BODY_3D + (j)) * BODY_3D + (k))
#define RIGHT(...) PICK(__VA_ARGS__, RIGHT_3, RIGHT_2, RIGHT_1, )(__VA_ARGS__)
#define LEFT_1(i) (i)
#define LEFT_2(i, j) ((i) + (j) * (int64_t)BODY_2D)
#define LEFT_3(i, j, k) ((i) + ((j) + (k) * (int64_t)BODY_3D) * BODY_3D)
#define LEFT(...) PICK(__VA_ARGS__, LEFT_3, LEFT_2, LEFT_1, )(__VA_ARGS__)
#define STEP_1(i) ((i) * (int64_t)BODY_STEP)
#define STEP(...) PICK(__VA_ARGS__, LEFT_3, LEFT_2, STEP_1, )(__VA_ARGS__)
#define STEP_OUT(...) PICK(__VA_ARGS__, RIGHT_3, RIGHT_2, STEP_1, )(__VA_ARGS__)

#define FOR(x, first, last, n) for (int64_t x = (first); x < (n) - (last); x++)
#define NEST_1(f, l) FOR(i, f, l, BODY_1D)
#define NEST_2(f, l) FOR(i, f, l, BODY_2D) FOR(j, f, l, BODY_2D)
#define NEST_3(f, l) FOR(i, f, l, BODY_3D) FOR(j, f, l, BODY_3D) FOR(k, f, l, BODY_3D)
#define BACK_1(f, l) FOR(i, f, l, BODY_1D)
#define BACK_2(f, l) FOR(j, f, l, BODY_2D) FOR(i, f, l, BODY_2D)
#define BACK_3(f, l) FOR(k, f, l, BODY_3D) FOR(j, f, l, BODY_3D) FOR(i, f, l, BODY_3D)

#define OUT RIGHT
#define IN RIGHT
#define X(name, rank, n_out, n_in, first, last, ...)                                               \
    static void name##_right(double *const *p)                                                     \
    {                                                                                              \
        ARRAYS;                                                                                    \
        NEST_##rank(first, last) { __VA_ARGS__; }                                                  \
    }
BENCH_BODIES(X)
#undef X
#undef OUT
#undef IN

#define OUT LEFT
#define IN LEFT
#define X(name, rank, n_out, n_in, first, last, ...)                                               \
    static void name##_left(double *const *p)                                                      \
    {                                                                                              \
        ARRAYS;                                                                                    \
        BACK_##rank(first, last) { __VA_ARGS__; }                                                  \
    }
BENCH_BODIES(X)
#undef X
#undef OUT
#undef IN

#define OUT STEP_OUT
#define IN STEP
#define X(name, rank, n_out, n_in, first, last, ...)                                               \
    static void name##_mixed(double *const *p)                                                     \
    {                                                                                              \
        ARRAYS;                                                                                    \
        NEST_##rank(first, last) { __VA_ARGS__; }                                                  \
    }
BENCH_BODIES(X)
#undef X

const body_loop native_bodies[N_BODIES][N_BODY_LAYOUTS] = {
#define X(name, ...) {name##_right, name##_left, name##_mixed},
    BENCH_BODIES(X)
#undef X
};
