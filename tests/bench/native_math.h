/* SPDX-License-Identifier: Apache-2.0 */
/* native_math.h: loops that call a vector function of a mathematical library (native_math.c). */
#ifndef QN_TESTS_BENCH_NATIVE_MATH_H
#define QN_TESTS_BENCH_NATIVE_MATH_H

#include <stddef.h>

/** y[i] = function(x[i]) or function(x[i], z[i]), whole vectors of 32 or 64 bytes, on arrays that
 * begin a cache line. */
typedef struct native_math {
    void (*function)(void); /* takes and returns vectors */
    int arity, vector_bytes;
    const void *x, *z;
    void *y;
    size_t bytes; /* of each array: whole vectors */
} native_math;

/** Runs a native_math. */
void native_math_loop(const void *loop);

/** The longest vectors that loops are compiled for: 64 with AVX-512, else 32. */
extern const int native_math_most_bytes;

#endif
