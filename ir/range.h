/* SPDX-License-Identifier: Apache-2.0 */
/* range.h: intervals of floats (ir/range_float.c), for ir/range.c. Of types but f32 and f64 nothing
 * is known. */
#ifndef QN_IR_RANGE_H
#define QN_IR_RANGE_H

#include "ir/ir.h"

/** From low to high, with infinities; low above high: nothing but NaN. */
qn_interval qn__floats(int type, double low, double high, bool may_be_nan);
qn_interval qn__float_const(int type, uint64_t bits);
qn_interval qn__join_floats(int type, qn_interval a, qn_interval b);
/** Of an op of the table with n operands and a result of this type. */
qn_interval qn__float_op(int op, int type, int n, const qn_interval *v);
/** Of casts; `all`: all values of an integer type. */
qn_interval qn__cast_to_float(int to, int from, qn_interval a);
qn_interval qn__cast_from_float(int to, int from, qn_interval a, qn_interval all);

#endif
