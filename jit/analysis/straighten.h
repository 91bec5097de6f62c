/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straighten.h: full unrolling of short loops. The iterations of a dimension, the points of a
 * reduce and the trips of a `for` become statements that follow one another. What they access lies
 * a constant apart then, and moves as groups (group.h); values that all of them need are computed
 * once.
 */
#ifndef QN_JIT_STRAIGHTEN_H
#define QN_JIT_STRAIGHTEN_H

#include "jit/analysis/analyse.h"
#include "jit/analysis/weave.h"

/** Which loops become straight code. */
typedef struct qn_short_loops {
    uint32_t dims;  /* bit d: parallel dimension d, or all reduces over dimension d */
    bool has_trips; /* each `for` with a known, small number of trips */
} qn_short_loops;

/** The loops of known, small length that lie between the lanes of some access: so many elements of
 * one another that groups may move what they access. */
uint32_t qn__dims_between(const qn_analysis *a);
/** Whether some `for` has a known, small number of trips. */
bool qn__has_short_trips(const qn_analysis *a);
/** Makes these loops of a kernel and facts of the caller's own straight code with the same results,
 * bit by bit. A dimension has one index then, which nothing uses. False where the code would be too
 * long, where an iteration may fail, or without memory: then the kernel is as it was. */
bool qn__straighten(qn_kernel *k, qn_facts *f, const qn_short_loops *loops);

#endif
