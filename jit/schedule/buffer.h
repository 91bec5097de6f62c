/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.h: how the elements of a buffer lie in memory, by which loops a buffer is filled, and
 * which buffers the code generator has code for.
 */
#ifndef QN_JIT_BUFFER_H
#define QN_JIT_BUFFER_H

#include "jit/schedule/tree.h"

/** What a part of the index of a dimension adds to the place of an element. With r iterations from
 * where the buffer begins, digit = r / weight, of the slowest digit of a dimension; of the others
 * r mod range / weight. */
typedef struct qn_buffer_digit {
    int d;          /* dimension */
    int64_t weight; /* iterations of d from one to the next */
    int64_t range;  /* iterations of d that it tells apart; INT64_MAX: the slowest of d */
    int64_t bytes;  /* in the buffer from one to the next */
} qn_buffer_digit;

/** Digits of one dimension that lie in memory as in the dimension are one. */
typedef struct qn_buffer_layout {
    int n;
    qn_buffer_digit digit[QN_MOST_BUFFER_AXES];
    int64_t offset; /* bytes of the launch's memory before it; 0: it is no such buffer */
} qn_buffer_layout;

void qn__buffer_layout(const qn_analysis *x, const qn_schedule *s, int buffer,
                       qn_buffer_layout *out);
/** Bytes of the launch's memory that the first n buffers take; each begins at a cache line. */
int64_t qn__buffers_scratch(const qn_schedule *s, int n);

enum { QN_MOST_TRANSPOSED = 16 }; /* lanes */

/** The loops by which a copy is made, outermost first: over dimensions and points, index by index;
 * over steps of the lanes; then what the block of the statements has at once. */
typedef struct qn_fill_loops {
    int n;
    int dim[QN_MAX_RANK];
    uint32_t in_steps;  /* dimensions of these, as bits, that are walked in steps of the block */
    bool has_steps;     /* over steps of the lanes */
    bool is_transposed; /* over vectors of the lanes, inside of it over points that lie side by side
                           in the view: squares of lanes and points are transposed in registers */
} qn_fill_loops;

/** The loops of a fill, over the axes of the buffer in their order, those of the lanes last.
 * Returns NULL, or the name of a form that has no code. */
const char *qn__fill_of(const qn_analysis *x, const qn_schedule *s, qn_node fill,
                        qn_fill_loops *out);
/** Whether an access goes through a buffer where steps of the lanes are not whole. */
bool qn__is_used_by_tails(const qn_schedule *s, int buffer);
/** Whether a dimension is cut into steps of which the last one may begin early, to end with it. */
bool qn__begins_early(const qn_analysis *x, const qn_schedule *s, int d);
/** Whether all copies of a schedule that was verified have code: NULL, or the name of the first
 * form that has none. Sums are looked at where their place is; `others`, as bits, elsewhere. */
const char *qn__buffers_without_code(const qn_analysis *x, const qn_schedule *s, uint32_t others);

#endif
