/* SPDX-License-Identifier: Apache-2.0 */
/* bench_model.h: what cases do for `bench_main --model`, which times them under several plans. */
#ifndef QN_TESTS_BENCH_MODEL_H
#define QN_TESTS_BENCH_MODEL_H

#include "bench.h"

/** Times candidates of all cases that are wanted, and prints how estimates rank them. */
void bench_model_run(bench *b);
/** Whether the case is the one that runs now. */
bool bench_model_wants(bench *b, const char *name);
/** Whether what failed is a candidate, which is left out then; else it counts as wrong. */
bool bench_model_leaves_out(bench *b);
/** Times the call of the candidate that runs, where b->model is set; false: it is not. */
bool bench_model_times(bench *b, qn_call *call);

#endif
