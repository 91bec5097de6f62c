/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_run.h: an interpreter of schedules. It walks the tree and runs each statement for the
 * iteration that the loops say, by the meaning that ir/interp.c gives to instructions: the oracle
 * of transformations, and of what lowers them.
 */
#ifndef QN_TESTS_TREE_RUN_H
#define QN_TESTS_TREE_RUN_H

#include "jit/schedule/tree.h"

/** What a run noticed that no right schedule does. */
typedef struct tree_run_report {
    int64_t missing;  /* iterations of statements that were not run */
    int64_t repeated; /* that were run again, where no cut says that steps overlap */
    int64_t outside;  /* indices beyond the end of an axis whose cut has no tail */
    int64_t unfilled; /* elements that were read from a buffer before they were filled */
} tree_run_report;

/**
 * Runs a kernel whose arguments were checked, and whose schedule was verified. Vector loops, and
 * those that are divided among threads, run backwards, as nothing may depend on their order.
 * Small domains only: each iteration keeps all of its values. Errors: QN_ERR_LIMIT, QN_ERR_MEMORY.
 */
qn_status tree_run(const qn_analysis *x, const qn_schedule *s, int n, const qn_arg *args,
                   const qn_domain *domain, int checks, qn_fault *fault,
                   tree_run_report *report, qn_error *err);

#endif
