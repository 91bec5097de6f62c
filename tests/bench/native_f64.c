/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_f64.c: the C loops for f64. Compiled with clang-19 -O3 -march=native; see native.h.
 */
#define NATIVE_T double
#define NATIVE_TABLE native_f64
#include "native_loops.h"
