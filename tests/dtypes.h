/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtypes.h: what tests ask of the rows of quern/dtypes.def.
 */
#ifndef QN_TESTS_DTYPES_H
#define QN_TESTS_DTYPES_H

#include "quern.h"

#define QN_TEST_INFINITY_B(fraction, bias) 0
#define QN_TEST_INFINITY_S(fraction, bias) 0
#define QN_TEST_INFINITY_U(fraction, bias) 0
#define QN_TEST_INFINITY_F(fraction, bias) (uint64_t)(2 * (bias) + 1) << (fraction)
#define QN_TEST_INFINITY_C(fraction, bias) 0

/** The bits of infinity of a float, above which those of NaN are; 0 for other dtypes. */
static inline uint64_t dtype_infinity(int dtype)
{
    static const uint64_t infinity[QN_N_DTYPES] = {
#define QN_DTYPE(NAME, number, text, bytes, cls, part, fraction, bias, ...)                        \
    [number] = QN_TEST_INFINITY_##cls(fraction, bias),
#include "quern/dtypes.def"
#undef QN_DTYPE
    };
    return infinity[dtype];
}

/** The bits of the quiet NaN without sign and payload. */
static inline uint64_t dtype_nan(int dtype)
{
    uint64_t inf = dtype_infinity(dtype);
    return inf | (inf & (0 - inf)) >> 1;
}

/** Whether a number is a dtype whose elements are one number or bool. */
static inline bool dtype_is_number(int dtype)
{
    static const char classes[QN_N_DTYPES][2] = {
#define QN_DTYPE(NAME, number, text, bytes, cls, ...) [number] = #cls,
#include "quern/dtypes.def"
#undef QN_DTYPE
    };
    return classes[dtype][0] && classes[dtype][0] != 'C';
}

/** Calls for the numbers of all dtypes that are a number or bool. */
#define FOR_NUMBERS(type)                                                                          \
    for (int type = 1; type < QN_N_DTYPES; type++)                                                 \
        if (dtype_is_number(type))

#endif
