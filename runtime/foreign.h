/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.h: what the imports and exports share. All imports end in qn__import; all exports to
 * formats with one stride a dimension begin with qn__export_strides.
 */
#ifndef QN_RUNTIME_FOREIGN_H
#define QN_RUNTIME_FOREIGN_H

#include "runtime/buffer.h"

/** An array as a foreign format describes it, in elements. */
typedef struct qn_foreign {
    const char *who;   /* entry point, for messages */
    const char *label; /* may be NULL */
    void *data;        /* address of the first element, before byte_offset */
    uint64_t byte_offset;
    int32_t dtype;
    int32_t space, device;
    int32_t rank;
    uint32_t traits;
    const int64_t *extents; /* rank entries */
    uint32_t unit;          /* as in a view */
    const int64_t *strides; /* elements or units; NULL: row-major */
    const int64_t *lower;   /* NULL: zeros */
} qn_foreign;

/** Makes an unmanaged view of it, after all checks. */
qn_status qn__import(const qn_foreign *f, qn_view *out, qn_error *err);

/** Checks the view and writes one stride for each dimension, in bytes; fails with the reason if
 * there are no such strides. */
qn_status qn__export_strides(const qn_view *v, const char *who, int64_t *strides, qn_error *err);

#endif
