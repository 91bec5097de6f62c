/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_f32.c: the C loops for f32. Compiled with clang-19 -O3 -march=native; see native.h.
 */
#define NATIVE_T float
#define NATIVE_TABLE native_f32
#include "native_loops.h"

#if defined(__clang__)
const char *const native_compiler = "clang " __clang_version__;
#else
const char *const native_compiler = "gcc " __VERSION__ " (the goals are meant for clang-19)";
#endif
