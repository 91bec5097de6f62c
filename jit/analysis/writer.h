/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h: a kernel that is written anew from another one, instruction by instruction: what is
 * written, and how (writer.c), what ranges tell of values and sides (sides.c), and the loops that
 * become straight code (straighten.c).
 */
#ifndef QN_JIT_WRITER_H
#define QN_JIT_WRITER_H

#include "jit/analysis/partition.h"
#include "jit/analysis/straighten.h"

/* Code of more instructions stays as it is: it takes time to compile. */
enum { QN_MOST_WRITTEN = 512, QN_MOST_TERMS = 8 };

typedef struct qn_writer {
    const qn_kernel *k;
    const qn_facts *f;
    const qn_short_loops *loops;
    const qn_analysis *a;  /* of the kernel before */
    uint64_t written;      /* bit p: what parameter p names may be written */
    qn_interval *range;    /* [k->n_insts] */
    qn_inst *inst;         /* [QN_MOST_WRITTEN] */
    uint32_t *operand;     /* [most_operands] */
    uint32_t *origin;      /* [QN_MOST_WRITTEN]: the instruction that it is a copy of */
    uint32_t *visible;     /* [n_visible]: values that can be used here */
    uint32_t *map;         /* [k->n_insts]: what stands for an instruction now */
    uint32_t n, n_operands, most_operands, n_visible;
    uint32_t parent; /* of what is written */
    uint32_t guard;  /* the condition under which the original loads here; 0: always */
    uint32_t body;   /* where it begins in what is written */
    int n_dims;
    uint32_t dim[QN_MAX_RANK];  /* in what is written */
    int64_t trips[QN_MAX_RANK]; /* of those that begin at 0; 0: not known, or of another one */
    bool is_full;
} qn_writer;

/** constant + sum of coef[n] x term[n], of which only the constant may be negative. */
typedef struct qn_linear {
    int n;
    uint32_t term[QN_MOST_TERMS];
    int64_t coef[QN_MOST_TERMS], constant;
} qn_linear;

/** A copy of x, an instruction that `origin` is the original of; 0: there is none. */
uint32_t qn__write(qn_writer *w, const qn_inst *x, const uint32_t *args, uint32_t origin);
/** A value that an earlier instruction may have. */
uint32_t qn__write_value(qn_writer *w, const qn_inst *x, const uint32_t *args, uint32_t origin);
uint32_t qn__write_number(qn_writer *w, int type, int64_t value);
uint32_t qn__write_op(qn_writer *w, int op, int type, int n, const uint32_t *args);
uint32_t qn__write_linear(qn_writer *w, const qn_linear *x);
/** Whether what was written is a number. */
bool qn__is_written_number(const qn_writer *w, uint32_t i, int64_t *value);
/** A quotient or its rest without the terms that the divisor divides; 0: there are none. */
uint32_t qn__write_quotient(qn_writer *w, uint32_t i);

/** Writes a pure instruction that is a number or one of its operands, but for a number; false: it
 * is neither. */
bool qn__write_known(qn_writer *w, uint32_t i);
/** Writes both sides of an `if`, of whose results one is chosen; false: it stays. */
bool qn__write_both(qn_writer *w, uint32_t i);
/** The indices of load i, whose place one of the view's elements takes where the load would not be
 * made: in the dimensions that it might leave then, or in the last where the load would move memory
 * in vain. */
void qn__guard_indices(qn_writer *w, uint32_t i, uint32_t *args);

/** Instructions from begin up to end, but for `without`. */
void qn__write_body(qn_writer *w, uint32_t begin, uint32_t end, uint32_t without);

#endif
