/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_rows.h: the functions of the table of transformations, declared by its rows, and what
 * these share.
 */
#ifndef QN_JIT_TRANSFORM_ROWS_H
#define QN_JIT_TRANSFORM_ROWS_H

#include "jit/schedule/transform.h"

#define QN_TRANSFORM(name, operands, options, option, function, doc)                               \
    qn_status function(const qn_analysis *x, qn_schedule *s, const qn_step *how, qn_error *err);
#include "jit/schedule/transforms.def"
#undef QN_TRANSFORM

/** The next node after `after` that is a loop over an axis; 0: none. */
qn_node qn__next_loop(const qn_schedule *s, qn_axis a, qn_node after);

#endif
