/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece.h: a kernel with its facts and its plan, or two pieces that run one after the other for
 * blocks of iterations (analysis/distribute.h), or one for each section of a dimension
 * (analysis/partition.h). Each piece becomes a function of type qn_entry.
 */
#ifndef QN_JIT_PIECE_H
#define QN_JIT_PIECE_H

#include "jit/analysis/distribute.h"
#include "jit/analysis/partition.h"
#include "jit/schedule/planned.h"

/** Iterations of the block dimension for which two pieces run in turn: so many that a call is
 * little, so few that the rows of a matrix are still in the second-level cache when they are read
 * again. */
enum { QN_BLOCK_ITERATIONS = 64 };
static inline int64_t qn__block_iterations(const qn_facts *f)
{
    return f->plan.block > 0 ? f->plan.block : QN_BLOCK_ITERATIONS;
}

typedef struct qn_piece {
    qn_kernel *kernel;
    qn_facts facts;
    /** Dimensions whose range the caller of the function gives, -1: none. What a launch divides is
     * the planner's choice where is_free. */
    int split_dim, second_dim;
    bool is_free;
    qn_planned planned;           /* of a piece without parts */
    qn_distribution distribution; /* of one that has the reduces and the rest as parts */
    qn_sections sections;         /* of one that has its sections as parts */
    int n_parts;
    struct qn_piece *part[QN_MOST_SECTIONS];
} qn_piece;

/** The pieces of a kernel; NULL if it is only one, or memory runs out. may_cut: their instructions
 * may be other ones than those of the kernel. */
qn_piece *qn__pieces_of(const qn_kernel *k, const qn_facts *f, bool may_cut);
/** NULL is ignored. */
void qn__piece_release(qn_piece *p);
/** Plans of all pieces, for people. */
void qn__piece_print(const qn_piece *p, qn_text *out);

#endif
