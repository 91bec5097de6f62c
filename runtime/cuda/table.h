/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h: index lists and MultiViews as arguments of kernels on GPUs.
 */
#ifndef QN_RUNTIME_CUDA_TABLE_H
#define QN_RUNTIME_CUDA_TABLE_H

#include "runtime/launch.h"

struct qn_table_copy;

/**
 * Makes the tables of expanded arguments such that the GPU of a stream reaches them: views of lists
 * of the host become views of copies, which the arguments then own. The stream waits until the
 * members of MultiViews are ready. The GPU's context need not be current.
 */
qn_status qn__cuda_tables_place(const char *who, qn_stream *s, const qn_arg *given, qn_expanded *e,
                                qn_error *err);
/** After the work was given, or refused: it keeps members until it is done. */
void qn__cuda_tables_keep(const char *who, qn_stream *s, const qn_arg *given, const qn_expanded *e);
/** Before a prepared call runs again: copies the host's lists anew, and waits for members as above.
 * `given` are the views of the caller, `args` the expanded arguments. */
qn_status qn__cuda_tables_renew(const char *who, qn_stream *s, const qn_kernel *k,
                                const qn_view *given, const qn_arg *args, qn_error *err);
/** Whether an argument's list must be copied for each run. */
bool qn__cuda_is_copied(const qn_table *t);
/** Releases what is kept with a table. */
void qn__cuda_copies_release(struct qn_table_copy *list);

#endif
