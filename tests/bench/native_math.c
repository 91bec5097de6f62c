/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_math.c: the loops around vector functions. All functions are called with vectors of
 * floats: those of doubles are passed in the same registers.
 */
#include "native_math.h"

/* A loop over arrays of floats for vectors of so many bytes. */
#define LOOP(name, n_bytes)                                                                        \
    typedef float name __attribute__((vector_size(n_bytes), may_alias));                           \
    static void name##_loop(const native_math *l)                                                  \
    {                                                                                              \
        const name *x = l->x, *z = l->z;                                                           \
        name *y = l->y;                                                                            \
        size_t n = l->bytes / sizeof *x;                                                           \
        if (l->arity == 1) {                                                                       \
            name (*f)(name) = (name(*)(name))l->function;                                          \
            for (size_t i = 0; i < n; i++)                                                         \
                y[i] = f(x[i]);                                                                    \
        } else {                                                                                   \
            name (*f)(name, name) = (name(*)(name, name))l->function;                              \
            for (size_t i = 0; i < n; i++)                                                         \
                y[i] = f(x[i], z[i]);                                                              \
        }                                                                                          \
    }

#ifdef __AVX__
LOOP(half_vector, 32)
#endif
#ifdef __AVX512F__
LOOP(vector, 64)
const int native_math_most_bytes = 64;
#else
const int native_math_most_bytes = 32;
#endif

void native_math_loop(const void *loop)
{
    const native_math *l = loop;
#ifdef __AVX512F__
    if (l->vector_bytes == 64)
        vector_loop(l);
#endif
#ifdef __AVX__
    if (l->vector_bytes == 32)
        half_vector_loop(l);
#endif
}
