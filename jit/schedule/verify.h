/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h: the state of a verification, as its files share it: verify.c walks the tree,
 * verify_loops.c looks at the loops around a statement, verify_claims.c at axes, buffers and access
 * records.
 */
#ifndef QN_JIT_VERIFY_H
#define QN_JIT_VERIFY_H

#include "jit/schedule/tree.h"

/** A region whose statements are being walked: that of the body, or those of a place. */
typedef struct qn_context {
    qn_node place;    /* 0: the body */
    int32_t n;        /* regions */
    int32_t n_around; /* loops around the place */
    uint32_t cursor[QN_MOST_TUPLE], end[QN_MOST_TUPLE];
    uint32_t ahead[QN_MOST_TUPLE]; /* reduces of the latest tuple that stand behind a cursor */
} qn_context;

typedef struct qn_verifier {
    const qn_analysis *x;
    const qn_schedule *s;
    qn_error *err;
    qn_status status;            /* of the first claim that does not hold */
    int32_t line;                /* of the node that is looked at; 0: not known */
    qn_node path[QN_MOST_DEPTH]; /* loops around, outermost first */
    int32_t n_path;
    qn_context context[QN_MOST_DEPTH];
    int32_t n_contexts;
    uint16_t *made_at; /* [n_insts] the node that makes a value; 0: none so far */
    uint8_t *seen;     /* [n_insts] scratch of one statement */
    bool is_visited[QN_MOST_NODES + 1], is_filled[QN_MOST_BUFFERS], is_pending[QN_MOST_BUFFERS];
    qn_node filled_at[QN_MOST_BUFFERS]; /* the fill */
    qn_axis entered[QN_MOST_DEPTH]; /* sections whose loops are around, or are being looked at */
    int32_t n_entered;
    int64_t copies; /* instructions in the code */
} qn_verifier;

/** Notes the first failure; false. */
bool qn__refuse(qn_verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The name of an axis for a message, in one of a few buffers of the caller's. */
typedef struct qn_axis_text {
    char name[QN_AXIS_NAME_BYTES];
} qn_axis_text;
static inline qn_axis_text qn__axis_text(const qn_verifier *v, qn_axis a)
{
    qn_axis_text t;
    qn__axis_name(v->s, a, t.name);
    return t;
}

/** Axes, cuts, buffers and reductions, each for itself. */
bool qn__verify_axes(qn_verifier *v);
bool qn__verify_buffers(qn_verifier *v);
bool qn__verify_reduction(qn_verifier *v, const qn_node_info *place);
/** Adds the records that statements lack. Axes and cuts are verified. */
qn_status qn__records_complete(const qn_analysis *x, qn_schedule *s, qn_error *err);
/** The access records of a statement. */
bool qn__verify_records(qn_verifier *v, qn_node at);
/** That the loops around a statement walk each iteration once, in an order that keeps its meaning.
 */
bool qn__verify_loops(qn_verifier *v, qn_node at);
/** That a loop may have its role where it stands. */
bool qn__verify_role(qn_verifier *v, qn_node at);
/** That values which instructions [first, end) use at a node are in registers, in a buffer, or can
 * be made again. */
bool qn__verify_values(qn_verifier *v, qn_node at, uint32_t first, uint32_t end);
/** The loop over the steps of lanes that a flush of line ends stands behind, for statement `at`; 0:
 * it is refused. */
qn_node qn__verify_steps(qn_verifier *v, qn_node at, int buffer, qn_node flush);
/** That what a fill leaves in a buffer, or a flush finds there, is all that accesses of statement
 * `at` mean by it. */
bool qn__verify_through(qn_verifier *v, qn_node at, int buffer, qn_node fill);

#endif
