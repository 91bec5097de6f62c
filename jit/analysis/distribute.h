/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribute.h: loop distribution. A reduce whose points do not depend on some parallel dimension
 * is the same number in all iterations of that dimension: a row's sum by which each element of the
 * row is divided. A kernel with such reduces becomes two, which run one after the other for a block
 * of iterations of the dimensions that the reduces do depend on: the first computes the reduces,
 * the rest reads their results from memory.
 */
#ifndef QN_JIT_DISTRIBUTE_H
#define QN_JIT_DISTRIBUTE_H

#include "jit/analysis/analyse.h"

enum { QN_MOST_DISTRIBUTED = 8 }; /* reduces of one distribution */

typedef struct qn_distribution {
    uint32_t dims; /* bit d: parallel dimension d is one of the first kernel, too */
    int block_dim; /* the last of these: what both kernels run together is a piece of it; -1: none
                    */
    int n;
    uint32_t reduce[QN_MOST_DISTRIBUTED]; /* instructions at the top, in order */
} qn_distribution;

/** Bits: the parallel dimensions of more than one index on which no reduce at the top depends, if
 * all reduces there may be computed before everything else, and, if asked, that saves enough for a
 * team of threads; else 0. */
uint32_t qn__shared_dims(const qn_analysis *a, bool is_worth_a_team);
/** Whether it may and should be done. False also where memory runs out. */
bool qn__distribution_of(const qn_kernel *k, const qn_facts *f, qn_distribution *out);

/**
 * Makes of a copy of the kernel and its facts the first kernel, or the rest. Each gets a view more
 * for each reduce, of rank 1 over block_dim, or of rank 0 without one; its data pointers are the
 * last slots, in the order of the reduces, and an index is one of the domain. Dimensions of the
 * first kernel but the last one are sequential in both, and one launch has one index of them; that
 * of block_dim is dynamic. False if memory runs out; the copy is good for nothing then.
 */
bool qn__distribute_first(qn_kernel *k, qn_facts *f, const qn_distribution *d);
bool qn__distribute_rest(qn_kernel *k, qn_facts *f, const qn_distribution *d);

#endif
