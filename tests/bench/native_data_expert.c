/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_data_expert.c: cases of bench_cases_data.c as an expert writes them with AVX-512 intrinsics, where that differs
 * from what a compiler makes of plain loops. Sums keep the order of the kernel's rule.
 */
#include "native_data.h"

#include <stddef.h>

#if defined(__AVX512BW__) && defined(__AVX512VBMI__)
#include <immintrin.h>

#define LOOP(name) static void name(void *const *d)

const native_data native_data_expert[] = {
    {NULL, NULL},
};
#else
const native_data native_data_expert[] = {{NULL, NULL}};
#endif
