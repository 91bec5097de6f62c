/* SPDX-License-Identifier: Apache-2.0 */
/* range.h: intervals of floats (ir/range_float.c), and by loops and branches (ir/range_region.c),
 * for ir/range.c. Of floats but f32 and f64 nothing is known. */
#ifndef QN_IR_RANGE_H
#define QN_IR_RANGE_H

#include "ir/ir.h"

/** From low to high, with infinities; low above high: nothing but NaN. */
qn_interval qn__floats(int type, double low, double high, bool may_be_nan);
qn_interval qn__join_floats(int type, qn_interval a, qn_interval b);
/** Of an op of the table with n operands and a result of this type. */
qn_interval qn__float_op(int op, int type, int n, const qn_interval *v);
/** Of casts; `all`: all values of an integer type. */
qn_interval qn__cast_to_float(int to, int from, qn_interval a);
qn_interval qn__cast_from_float(int to, int from, qn_interval a, qn_interval all);

/** Of value i that a loop carries, by those of the instructions before it: each trip adds numbers
 * to it. False: that is not so. */
bool qn__carried_range(const qn_kernel *k, const qn_interval *value, uint32_t i, qn_interval *out);
/** Of operand 1 or 2 of a select of integers, where it is the one that is taken. */
qn_interval qn__range_of_side(const qn_kernel *k, const qn_interval *value, uint32_t select,
                              int side);
/** Of value i where instruction `at` runs. */
qn_interval qn__range_at(const qn_kernel *k, const qn_interval *value, uint32_t i, uint32_t at);

#endif
