/* SPDX-License-Identifier: Apache-2.0 */
/* bench_compile.h: texts of kernels of n operations, branches, gathers, reduces or functions; `at`
 * has room for LARGE_BYTES. */
#ifndef QN_TESTS_BENCH_BENCH_COMPILE_H
#define QN_TESTS_BENCH_BENCH_COMPILE_H

enum { LARGE_BYTES = 1 << 20, REDUCE_POINTS = 100 };

void bench_print_straight(char *at, int n);
void bench_print_branches(char *at, int n);
void bench_print_gathers(char *at, int n);
void bench_print_reduces(char *at, int n);
/** Values of a function, added. */
void bench_print_roots(char *at, int n);
void bench_print_exps(char *at, int n);
void bench_print_logs(char *at, int n);

#endif
