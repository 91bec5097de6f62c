/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h: builds the instructions of a finished kernel or function again, with the functions of
 * the builder, inside another kernel. What a rewrite changes, it does in `special`; all else is
 * copied, folded and numbered as if it had been written there. Products are not contracted anew: a
 * finished kernel has its fma already.
 */
#ifndef QN_IR_REPLAY_H
#define QN_IR_REPLAY_H

#include "ir/build/builder.h"

typedef struct qn_replay qn_replay;
struct qn_replay {
    const qn_kernel *k;
    qn_builder *b;
    qn_val *value;                 /* [k->n_insts]: of the new kernel */
    qn_param param[QN_MAX_PARAMS]; /* of the new kernel: where the view parameters of k are found */
    /** Does instruction i in its own way and returns true; false: it is copied. */
    bool (*special)(qn_replay *r, uint32_t i);
    void *data; /* of special */
};

/** Makes the builder of a new kernel and the table of values; qn__replay_end, which frees both, is
 * called in any case. False without memory. */
bool qn__replay_start(qn_replay *r, const char *name, uint32_t flags);
void qn__replay_end(qn_replay *r);
/** Builds the instructions [begin, end), which are whole regions or the top level. The builder has
 * the errors. */
void qn__replay_region(qn_replay *r, uint32_t begin, uint32_t end);
/** Builds the body of the function that i calls, with what is special to r (ir/inline.c). */
void qn__replay_body(qn_replay *r, uint32_t i);
/** The new values of n operands of instruction i from `first` on. */
void qn__replay_take(const qn_replay *r, uint32_t i, uint32_t first, uint32_t n, qn_val *out);
/** Builds access i with n new indices. */
void qn__replay_access(qn_replay *r, uint32_t i, int n, const qn_val *index);
/** Declares the parameters of k in the new kernel, with `extra_rank[p]` more dimensions of view p
 * (NULL: none), and gives the parameter values theirs. */
void qn__replay_declare(qn_replay *r, const int *extra_rank);

#endif
