/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_sum.h: kernels of RAJAPerf that reduce or sweep, and what an expert writes for some
 * kernels, as C for one layout each (native_sum.c, native_expert_body.c; clang-19 -O3
 * -march=native). Arrays as in bodies.h: those written from p[0] on, those read from p[8] on.
 */
#ifndef QN_TESTS_BENCH_NATIVE_SUM_H
#define QN_TESTS_BENCH_NATIVE_SUM_H

enum {
    SUM_N = 1000000, /* elements of vectors */
    SUM_EDGE = 1000, /* of square matrices */
    LTIMES_D = 64, LTIMES_G = 32, LTIMES_M = 25, LTIMES_Z = 488,
    PREDICT_N = 100000, PREDICT_INT = 13, PREDICT_DIFF = 14,
    LARGE_N = 17000003, LARGE_2D = 4134, LARGE_3D = 258, /* out of cache */
    PLANES_1003 = 24, PLANES_3003 = 6, /* planes larger than a cache */
    ROWS_0 = 26, ROWS_1 = 1000003 /* rows larger than a cache */
};

typedef void (*sum_loop)(void *const *p);

/* In the right order for each layout of the matrices; vectors have one. */
void dot(void *const *p);
void reduce_sum(void *const *p);
void pi_reduce(void *const *p);
void trap_int(void *const *p);
void reduce3_int(void *const *p);
void reduce_struct(void *const *p);
void gesummv_right(void *const *p), gesummv_left(void *const *p);
void rows_right(void *const *p), rows_left(void *const *p);       /* o = A b */
void columns_right(void *const *p), columns_left(void *const *p); /* o = A' b */
void add_rows_right(void *const *p), add_rows_left(void *const *p);
void add_columns_right(void *const *p), add_columns_left(void *const *p);
void gemver_w_right(void *const *p), gemver_w_left(void *const *p);
void ltimes_right(void *const *p), ltimes_left(void *const *p);
void adi_right(void *const *p), adi_left(void *const *p);
void int_predict(void *const *p);
void diff_predict(void *const *p);

/* By an expert: streaming stores, several accumulators, blocks of rows. */
void expert_copy(void *const *p);
void expert_stencil5(void *const *p);
void expert_stencil7(void *const *p);
void planes_1003(void *const *p), planes_3003(void *const *p); /* seven points, as plain loops */
void long_rows(void *const *p); /* five points */
void copy_rows(void *const *p); /* the inner points of a cube */
void expert_planes_1003(void *const *p), expert_planes_3003(void *const *p);
void expert_dot(void *const *p);
void expert_sum(void *const *p);
void expert_rows(void *const *p);
void expert_share_rows(void *const *p); /* each element over the sum of its row */
void expert_columns(void *const *p);

#endif
