/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interp.h: the state of a run of the interpreter, as its files share it: ir/interp.c runs
 * instructions, ir/interp_watch.c tells a watch of what they did.
 */
#ifndef QN_IR_INTERP_H
#define QN_IR_INTERP_H

#include "ir/function.h"
#include "ir/printed.h"
#include "ir/watch.h"

/** A view argument, ready for access. */
typedef struct qn_place {
    unsigned char *data;
    const qn_layout *layout;
    int64_t unit; /* bytes that offsets count */
    int32_t rank;
    int checks; /* QN_CHECKS_... */
    int argument; /* its number in the launch */
    int first_value; /* of a function's scalar parameter: where its parts stand in interp.given */
    bool is_atomic;
} qn_place;

typedef struct qn_interp {
    const qn_kernel *k;
    const qn_kernel *launched; /* the kernel, also in its functions */
    int checks;                /* of the launch, QN_CHECKS_... */
    const qn_arg *args;
    const qn_domain *domain;
    qn_fault *fault;
    qn_watch *watch; /* NULL: nothing is looked for */
    const qn_print_buffer *printed; /* NULL: prints do nothing */
    const uint64_t *outermost;      /* the values of the launched kernel */
    uint32_t dims;                  /* bit d: dimension d of it has an index now */
    qn_place *place;    /* [n_params]; those of the functions called from here follow */
    uint64_t *value; /* [n_insts], canonical; those of the functions called from here follow */
    const uint64_t *given; /* in a function: the values of its scalar parameters, part by part */
    uint64_t iteration, point;
    int64_t left; /* instructions until it is time to look whether the launch was cancelled; below
                     0: it was */
    int n_looks_behind; /* after an access that was out of range */
} qn_interp;

/** Keeps the first fault in iteration order; within one iteration the first in time. A fault in a
 *  function names the view, which has no site in the kernel. */
void qn__interp_record(qn_interp *s, qn_status status, int64_t site, int rank,
                       const int64_t *index);

/** Starts a run: room for its values, its views. The prologue, instructions [1, k->body), is to be
 * run first. Errors: memory only; in any case qn__interp_close frees what was made. `k` is a kernel
 * that runs, arguments were checked, and the domain is not empty. */
qn_status qn__interp_open(qn_interp *s, const qn_kernel *k, int n, const qn_arg *args,
                          const qn_domain *domain, int checks, qn_fault *fault, qn_error *err);
void qn__interp_close(qn_interp *s);
/** Runs instructions [begin, end), whole ones of one region, on the values of s->value. */
void qn__interp_run(qn_interp *s, uint32_t begin, uint32_t end);

/* All need a watch. */

/** Keeps the op that gave a result, if it is the first that made a NaN of its operands. */
void qn__look_for_nan(qn_interp *s, uint32_t i, int dtype, uint64_t bits, int n, const int *dtypes,
                      const uint64_t *operands);
/** Looks for that at an op of the table that was run. */
void qn__look_at_result(qn_interp *s, uint32_t i);
/** Looks for that at the call of a mathematical function. */
void qn__look_at_call(qn_interp *s, uint32_t i, const qn_kernel *body, const uint32_t *returned,
                      int n_results, const uint64_t *results);
/** Looks for races at an access to an element that stands at `at`. */
void qn__look_at_access(qn_interp *s, uint32_t i, const qn_place *p, const int64_t *index,
                        const void *at);

#endif
