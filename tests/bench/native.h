/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native.h: the C loops that the benchmark measures against, and the sizes both sides share. The
 * loops stand in native_f32.c and native_f64.c (bodies: native_loops.h), which are compiled with
 * clang-19 -O3 -march=native and the compiler's default contraction: extents are constants,
 * pointers are restrict, the loops run in the right order for the layout. They are called through
 * pointers from another translation unit, so nothing is inlined into the timing.
 */
#ifndef QN_TESTS_BENCH_NATIVE_H
#define QN_TESTS_BENCH_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

/* The axes of the cases: X(NAME, "text"). */
#define BENCH_KERNELS(X)                                                                           \
    X(SAXPY, "saxpy") X(TRIAD, "triad") X(FIVE, "stencil5") X(SEVEN, "stencil7")
#define BENCH_PLACES(X) X(IN, "in") X(OUT, "out")
#define BENCH_LAYOUTS(X) X(RIGHT, "right") X(LEFT, "left") X(SUB, "sub")

enum {
#define X(name, text) KERNEL_##name,
    BENCH_KERNELS(X) N_KERNELS
#undef X
};
enum {
#define X(name, text) PLACE_##name,
    BENCH_PLACES(X) N_PLACES
#undef X
};
enum {
#define X(name, text) LAYOUT_##name,
    BENCH_LAYOUTS(X) N_LAYOUTS
#undef X
};

/*
 * Extents. In cache: the arrays of a case fit the second-level cache together. Out: every array has
 * at least 64 MiB. None is a multiple of a vector in its unit-stride dimension. The subviews: every
 * second element of a vector, and the part of a larger array that leaves out BEFORE and AFTER
 * elements at the ends of each dimension.
 */
enum {
    IN_N = 4003,
    OUT_N = 17000003,
    IN_2D_0 = 134,
    IN_2D_1 = 134,
    OUT_2D_0 = 4134,
    OUT_2D_1 = 4134,
    IN_3D_0 = 36,
    IN_3D_1 = 26,
    IN_3D_2 = 36,
    OUT_3D_0 = 266,
    OUT_3D_1 = 256,
    OUT_3D_2 = 266,
    SUB_STEP = 2,
    SUB_BEFORE = 3,
    SUB_AFTER = 5
};
/* The coefficient of both stencils. */
#define BENCH_COEFFICIENT 0.1

/** out: the written array; a, b: read arrays (b may be unused); scale: the scalar of saxpy and
 * triad. */
typedef void (*native_loop)(void *restrict out, const void *restrict a, const void *restrict b,
                            double scale);

extern const native_loop native_f32[N_KERNELS][N_PLACES][N_LAYOUTS];
extern const native_loop native_f64[N_KERNELS][N_PLACES][N_LAYOUTS];
/** The compiler of the loops and its version. Static. */
extern const char *const native_compiler;

/* What an expert writes for this machine (native_expert.c). */
/** to[j][i] = from[i][j] for n x n elements; n is a multiple of 64, `to` stands at a cache line. */
void native_transpose(void *restrict to, const void *restrict from, int64_t n, int bytes,
                      bool is_streamed);
/** x = a + scale b with streaming stores, for f32 (4 bytes) and f64. */
void native_stream_triad(void *restrict out, const void *restrict first,
                         const void *restrict second, double scale, int64_t n, int bytes);
/** The sum of n elements of f64, with eight accumulators: as fast as memory can be read. */
double native_read(const double *from, int64_t n);

#endif
