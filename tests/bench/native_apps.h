/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_apps.h: the kernels of examples/math_kernels.h as C (native_apps.c), and their sizes. The
 * compiler is gcc with -O3 -ffast-math, which calls the vector functions of glibc's libmvec.
 */
#ifndef QN_TESTS_BENCH_NATIVE_APPS_H
#define QN_TESTS_BENCH_NATIVE_APPS_H

enum {
    SOFTMAX_ROWS = 64,
    SOFTMAX_COLUMNS = 1000,
    N_OPTIONS = 4096,
    N_BODIES = 1024,
    N_PAIRS_OF_POINTS = 1 << 16
};
#define APP_RATE 0.03
#define APP_VOLATILITY 0.3
#define APP_DT 0.01
#define APP_SOFTENING 0.001
#define APP_SEED 20260101

/** The arrays in the order of the parameters of the kernel. */
typedef void (*app_loop)(const void *arrays);
void softmax_f32(const void *arrays), softmax_f64(const void *arrays);
void black_scholes_f32(const void *arrays), black_scholes_f64(const void *arrays);
void n_body_f32(const void *arrays), n_body_f64(const void *arrays);
void pi_i64(const void *arrays);

#endif
