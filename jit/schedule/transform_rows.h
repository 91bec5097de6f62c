/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transform_rows.h: the functions of the table of transformations, and what these share.
 */
#ifndef QN_JIT_TRANSFORM_ROWS_H
#define QN_JIT_TRANSFORM_ROWS_H

#include "jit/schedule/transform.h"

#define QN_TRANSFORMATION(name)                                                                    \
    qn_status name(const qn_scheduled *x, qn_schedule *s, const qn_step *how, qn_error *err)
QN_TRANSFORMATION(qn__apply_split); /* transform_loops.c */
QN_TRANSFORMATION(qn__apply_fuse);
QN_TRANSFORMATION(qn__apply_reorder);
QN_TRANSFORMATION(qn__apply_partition);
QN_TRANSFORMATION(qn__apply_distribute);
QN_TRANSFORMATION(qn__apply_move_place);
QN_TRANSFORMATION(qn__apply_tile);
QN_TRANSFORMATION(qn__apply_set_tail);
QN_TRANSFORMATION(qn__apply_vectorize);
QN_TRANSFORMATION(qn__apply_unroll);
QN_TRANSFORMATION(qn__apply_parallelize);
QN_TRANSFORMATION(qn__apply_bind);
QN_TRANSFORMATION(qn__apply_version);
QN_TRANSFORMATION(qn__apply_buffer); /* transform_access.c */
QN_TRANSFORMATION(qn__apply_accumulate);
QN_TRANSFORMATION(qn__apply_stream);
QN_TRANSFORMATION(qn__apply_prefetch);
QN_TRANSFORMATION(qn__apply_hoist);
QN_TRANSFORMATION(qn__apply_group);
QN_TRANSFORMATION(qn__apply_table);

/** The next node after `after` that is a loop over an axis; 0: none. */
qn_node qn__next_loop(const qn_schedule *s, qn_axis a, qn_node after);
/** An error about an axis. */
qn_status qn__fail_axis(const qn_schedule *s, qn_axis a, qn_status status, const char *what,
                        qn_error *err);

#endif
