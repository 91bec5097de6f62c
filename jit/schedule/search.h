/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h: the plan of a kernel, and of one whose short loops may be straight code.
 */
#ifndef QN_JIT_SEARCH_H
#define QN_JIT_SEARCH_H

#include "jit/schedule/planned.h"

/** The part of the least estimate below which code of another form is taken: with other lanes, as
 * straight code, in sections. Estimates are not exact, and those of other forms least. */
#define QN_OTHER_FORM 0.85

/** A kernel whose short loops are straight code (analysis/straighten.h), and how it is walked. */
typedef struct qn_straight {
    qn_kernel *kernel; /* NULL: there is none */
    qn_facts facts;
    qn_planned planned;
} qn_straight;

/** Copies of a kernel and its facts; false, and none, without memory. */
bool qn__copy_both(const qn_kernel *k, const qn_facts *f, qn_kernel **kernel, qn_facts *facts);
/** Makes the plan of *out, which is zeroed, and what it is scheduled of, where that was searched
 * with its draft. */
void qn__search(const qn_kernel *k, const qn_facts *f, qn_planned *out);
/** Plans a kernel for a processor, and merges dimensions in *f. True: its short loops should be
 * straight code, which *out has; the caller releases or takes it. Out of memory: they should not.
 */
bool qn__plan_kernel(const qn_kernel *k, qn_facts *f, qn_planned *p, qn_straight *out);
/** Plans a kernel that is run for few iterations beside those of another one, as qn__plan_kernel,
 * with less code where that takes up to `slack` cycles more. Its short loops stay. */
void qn__plan_rim(const qn_kernel *k, qn_facts *f, double slack, qn_planned *p);
/** Moves all of *x to where the caller keeps it, and releases it there. */
void qn__straight_take(qn_straight *x, qn_kernel **k, qn_facts *f, qn_planned *p);
void qn__straight_release(qn_straight *x);

#endif
