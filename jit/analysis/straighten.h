/* SPDX-License-Identifier: Apache-2.0 */
/*
 * straighten.h: kernels written anew. Short loops are unrolled: the iterations of a dimension, the
 * points of a reduce and the trips of a `for` become statements that follow one another. What they
 * access lies a constant apart then, and moves as groups (group.h); values that all of them need
 * are computed once. And a dimension becomes two where quotients of its index by a constant are
 * used: x[i / 8, i % 8] is affine in the number of a part and in the index inside. The trips of a
 * `for` become a dimension where they are iterations that share the reduces before.
 */
#ifndef QN_JIT_STRAIGHTEN_H
#define QN_JIT_STRAIGHTEN_H

#include "jit/analysis/analyse.h"
#include "jit/analysis/weave.h"

/** Which loops become straight code. */
typedef struct qn_short_loops {
    uint32_t dims;  /* bit d: parallel dimension d, or all reduces over dimension d */
    bool has_trips; /* each `for` with a known, small number of trips */
    bool has_sides; /* both sides of each `if` that only loads and computes little */
    uint32_t loop;  /* a `for` whose trips become a new parallel dimension, the last one; 0: none */
    int64_t cut[QN_MAX_RANK]; /* parallel dimension d becomes two: one of parts of so many
                                 iterations, and a new one inside of a part; 0: it stays */
} qn_short_loops;

/** Loops of more iterations stay: a group has no more places. */
enum { QN_MOST_SHORT = QN_MOST_PLACES };

/** A quotient of i64 by a constant, or what is left: also written as shift or mask, which give
 * these of numbers that are not negative. */
typedef struct qn_quotient {
    uint32_t of;
    int64_t by;
    bool is_rest;
} qn_quotient;
/** Whether instruction i is one. */
bool qn__quotient(const qn_inst *inst, const uint32_t *operand, uint32_t i, qn_quotient *out);

/** Sets cut[d] for parallel dimensions of known ranges whose index, maybe with others added, is
 * divided by a constant that divides the range; whether there are any. cut: [QN_MAX_RANK]. */
bool qn__find_cuts(const qn_analysis *a, int64_t *cut);

/** Whether both sides of `if` i may be computed, and one be chosen: they load what is proved and
 * compute, and the elements that take the place of what is not loaded are there. */
bool qn__may_compute_both(const qn_kernel *k, const qn_facts *f, uint32_t i);
/** The loops of known, small length that lie between the lanes of some access: so many elements of
 * one another that groups may move what they access. */
uint32_t qn__dims_between(const qn_analysis *a);
/** The only `for` at the top of a body that does nothing else but compute, reduce, and store what
 * nobody else meets, if its trips are known, may run in any order and carry nothing: sets loop. */
bool qn__find_loop(const qn_analysis *a, qn_short_loops *out);
/** Whether some `for` has a known, small number of trips. */
bool qn__has_short_trips(const qn_analysis *a);
/** Makes these loops of a kernel and facts of the caller's own straight code with the same results,
 * bit by bit. A dimension has one index then, which nothing uses. What the ranges of the dimensions
 * tell of a value takes its place, and so does the taken side of a condition. False where the code
 * would be too long, where failures would be reported otherwise, or without memory: then the kernel
 * is as it was. */
bool qn__straighten(qn_kernel *k, qn_facts *f, const qn_short_loops *loops);

#endif
