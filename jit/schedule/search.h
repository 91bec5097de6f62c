/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h: the plan of a kernel that may be written anew for it.
 */
#ifndef QN_JIT_SEARCH_H
#define QN_JIT_SEARCH_H

#include "jit/jit.h"

/** A kernel whose short loops are straight code (analysis/straighten.h), and its plan. */
typedef struct qn_straight {
    qn_kernel *kernel; /* NULL: there is none */
    qn_facts facts;
    qn_plan plan;
} qn_straight;

/** Plans a kernel for a processor, and merges dimensions in *f. True: its short loops should be
 * straight code, which *out has; the caller releases it. Out of memory: they should not. */
bool qn__plan_kernel(const qn_kernel *k, qn_facts *f, qn_plan *plan, qn_straight *out);
void qn__straight_release(qn_straight *x);

#endif
