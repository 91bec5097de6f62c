/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.h: what the functions that make views share (create.c): properties of an allocation, dense
 * layouts with or without padding, storage.
 */
#ifndef QN_RUNTIME_CREATE_H
#define QN_RUNTIME_CREATE_H

#include "ir/ir.h"

/** Reads and checks properties; the executor becomes the one that is meant. */
qn_status qn__properties(const char *who, const qn_context *c, const qn_alloc_options *o,
                         qn_alloc_options *out, qn_error *err);
/** A Right or Left layout, padded if asked for. `label` is for messages. */
qn_status qn__dense_layout(const char *who, const char *label, int64_t element_bytes, bool is_left,
                           bool is_padded, int rank, const int64_t *extents, qn_layout *out,
                           qn_error *err);
/** Allocates a view of a checked layout with the properties; `label` instead of theirs. */
qn_status qn__allocate(const char *who, qn_context *c, const char *label, int dtype,
                       const qn_record *record, const qn_layout *l, const qn_alloc_options *o,
                       qn_view *out, qn_error *err);

#endif
