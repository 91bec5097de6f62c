/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_unseen.h: the kernels of bench_cases_unseen.c as plain loops of C.
 */
#ifndef QN_TESTS_BENCH_NATIVE_UNSEEN_H
#define QN_TESTS_BENCH_NATIVE_UNSEEN_H

#include "native_schedule.h"

#define UNSEEN_KERNELS(X)                                                                          \
    X(star9)                                                                                       \
    X(box9) X(box27) X(upwind) X(wave) X(limiter) X(faces) X(matvec5) X(matvec4_soa)               \
        X(determinant3) X(product17) X(products8) X(rank1) X(quadratic_form) X(particles)          \
            X(bodies) X(pairs) X(sobel) X(median3) X(quantize) X(halve) X(filter5) X(blend)        \
                X(sweep) X(channels) X(prefix) X(row_stats) X(column_norms) X(cosine)              \
                    X(weighted_mean) X(center17) X(dequantize) X(widen) X(saturate) X(masked)      \
                        X(add_transposed) X(magnitude) X(scale_columns) X(every_third) X(rotate3)  \
                            X(horner) X(lower_copy) X(upper_product) X(newton) X(julia) X(collatz) \
                                X(depth3) X(triangle) X(search) X(parity) X(windows3)              \
                                    X(shuffle2) X(count_above) X(sum_until)

/** The loop of a kernel; NULL: there is none. */
native_schedule_loop native_unseen(const char *kernel);

#endif
