/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.h: the order rules of reductions, by which the interpreter adds points (ir/order.c).
 */
#ifndef QN_IR_ORDER_H
#define QN_IR_ORDER_H

#include "ir/ir.h"

enum { QN_ORDER_LEVELS = 6 }; /* 4096^6 > 2^63 */

/** What was combined so far. Level 0 takes the points, each other level the results of blocks of
 * the one below. */
typedef struct qn_ordered_sum {
    uint64_t identity;
    int64_t block;      /* values in one block */
    int64_t n_partials; /* 1 or 64 */
    int combine, type, top;
    int64_t count[QN_ORDER_LEVELS];
    uint64_t partial[QN_ORDER_LEVELS][QN_PARTIALS];
} qn_ordered_sum;

/** Starts a reduction that has points. */
void qn__order_start(qn_ordered_sum *s, int combine, int type, int order);
/** Adds the next point, or one that is a product, see qn__contracted_product. */
void qn__order_add(qn_ordered_sum *s, uint64_t value);
void qn__order_add_product(qn_ordered_sum *s, uint64_t x, uint64_t y);
/** The result of all points. */
uint64_t qn__order_end(qn_ordered_sum *s);

#endif
