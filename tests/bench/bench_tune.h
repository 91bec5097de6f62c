/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_tune.h: what tuning gains, see bench_tune.c.
 */
#ifndef QN_TESTS_BENCH_BENCH_TUNE_H
#define QN_TESTS_BENCH_BENCH_TUNE_H

#include "bench.h"

/** Tunes a case for as long as --tune says, and prints what that gains. */
void bench_tune_case(bench *b, const qn_kernel *k, int n, const qn_arg *args, const qn_options *o);
/** Whether a case fails to be prepared because it was tuned; then that is no error. */
bool bench_tune_leaves_out(bench *b);
void bench_tune_summary(const bench *b);

#endif
