/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_data.h: the yardsticks in native_data.c (plain loops in the right order) and
 * native_data_expert.c (intrinsics), and the sizes both sides share. In: all arrays fit the
 * second-level cache together; out: larger than the last level, where that makes sense.
 */
#ifndef QN_TESTS_BENCH_NATIVE_DATA_H
#define QN_TESTS_BENCH_NATIVE_DATA_H

#include <stdint.h>

enum {
    COPY_IN = 50021,
    COPY_OUT = 8 << 20,
    PERMUTE_0 = 120,
    PERMUTE_1 = 250,
    PERMUTE_2 = 260,
    SPREAD_IN = 10007,
    SPREAD_OUT = 4000037,
    SUM_IN_ROWS = 100,
    SUM_IN = 1003,
    SUM_OUT_ROWS = 4000,
    SUM_OUT = 4003,
    DOT_IN = 50021,
    DOT_OUT = 10000019,
    GRID_IN = 20,  /* rows of about 7: the points of a cube and their neighbours */
    GRID_OUT = 100,
    ROWS_IN = 2000, /* rows of 20 to 40 random columns */
    ROWS_OUT = 100000,
    ROW_LEAST = 20,
    ROW_MOST = 40,
    PIXELS_IN = 100019,
    BLUR_IN_Y = 180,
    BLUR_IN_X = 319,
    BLUR_OUT_Y = 2160,
    BLUR_OUT_X = 3840,
    LIST_IN = 40009,
    LIST_OUT = 6000011,
    TABLE_N = 100019,
    BINS = 256,
    PARTICLES = 20011,
    NODES = 64 /* along each dimension */
};

/** Runs a case over its arguments, the result first. */
typedef void (*native_data_loop)(void *const *data);
/** By the name of the case. The last has no name. */
typedef struct native_data {
    const char *name;
    native_data_loop loop;
} native_data;
extern const native_data native_data_plain[];
/** native_data_expert.c: where plain loops are not the best that is known; empty without AVX-512.
 */
extern const native_data native_data_expert[];

#endif
