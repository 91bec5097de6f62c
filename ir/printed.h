/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printed.h: the lines that a launch prints, from kernel to host. A line is a row of 64-bit words
 * in a bounded buffer: where the print stands in the kernel, which dimensions have an index there,
 * their indices, and the bits of the values. Row 0 holds nothing but the number of lines that were
 * printed, which may be more than were kept. Lines are in the order in which the interpreter prints
 * them, so those that are kept are the first ones.
 *
 * The interpreter fills the buffer by itself. Other engines run a kernel in which each print is
 * stores to a further view, and all dimensions but those of reductions are sequential.
 */
#ifndef QN_IR_PRINTED_H
#define QN_IR_PRINTED_H

#include "ir/ir.h"

/** Words of a row: these, the index of each dimension, and the values. */
enum { QN_PRINTED_SITE = 0, QN_PRINTED_DIMS = 1, QN_PRINTED_INDICES = 2 };

static inline int qn__printed_words(const qn_kernel *k)
{
    return QN_PRINTED_INDICES + k->n_dims + QN_MAX_SHOWN;
}
/** The kernel that prints into a view of i64 and rank 2, its last parameter: a row for each line,
 *  and one more. Its other parameters are those of k. *out is borrowed, for the life of k. Threads
 *  may call it at once (ir/print_kernel.c). */
qn_status qn__kernel_printing(const qn_kernel *k, const qn_kernel **out, qn_error *err);

/** A line, as the host gets it; `line` points into it. It is the caller's until it is released. */
typedef struct qn_printed_line {
    qn_printed line;
    qn_text text;
    int32_t dtype[QN_MAX_SHOWN];
    uint64_t bits[QN_MAX_SHOWN];
    int64_t index[QN_MAX_RANK], point[QN_MAX_RANK];
} qn_printed_line;
/** Reads a row of the buffer of a launch of k. Without memory the text is that of the message only.
 */
void qn__printed_read(const qn_kernel *k, const int64_t *row, qn_printed_line *out);
/** The line that says how many were not kept. */
void qn__printed_lost(int64_t n, qn_printed_line *out);
void qn__printed_release(qn_printed_line *line);

#endif
