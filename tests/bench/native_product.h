/* SPDX-License-Identifier: Apache-2.0 */
/* native_product.h: the yardsticks in native_product.c. */
#ifndef QN_TESTS_BENCH_NATIVE_PRODUCT_H
#define QN_TESTS_BENCH_NATIVE_PRODUCT_H

#include <stdint.h>

/** Small products of a batch: their arrays fit the second-level cache together. */
#define BATCH_COUNT(n) (24000 / ((n) * (n)) / 16 * 16 + 16)
enum { CONVOLUTION_N = 44 };

/** Runs n steps of independent fma; the floating-point operations done. `start` is a number that
 * the compiler must not know. */
double native_peak_f64(int64_t n, double start);
double native_peak_f32(int64_t n, double start);
extern volatile double native_sink;

typedef void (*native_product_loop)(void *restrict c, const void *restrict a,
                                    const void *restrict b);
/** One kernel in C for one extent, by the name that the cases have; loop: f32, f64. The last has no
 * name. */
typedef struct native_product {
    const char *name;
    int64_t n;
    native_product_loop loop[2];
} native_product;
extern const native_product native_products[];

#endif
