/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tools.h: libraries of others that are told of launches, copies and allocations: a tool of Kokkos,
 * by the functions kokkosp_... of its published interface, and NVTX, by the ranges of its library.
 * One tool and one NVTX serve the whole process. Libraries stay loaded.
 */
#ifndef QN_RUNTIME_TOOLS_H
#define QN_RUNTIME_TOOLS_H

#include "ir/ir.h"

/** What a launch or copy keeps from its begin to its end. */
typedef struct qn_tool_span {
    uint64_t id; /* the tool's */
    bool is_begun;
} qn_tool_span;

/** Loads what the options of a context name; if that cannot be, log and history say so. Whether
 * somebody is to be told. */
bool qn__tools_open(qn_context *c);
/** A context ends; the last one ends the tool. */
void qn__tools_close(qn_context *c);

qn_tool_span qn__tools_begin_launch(const qn_kernel *k, int executor);
void qn__tools_end_launch(const qn_kernel *k, const qn_tool_span *s);
qn_tool_span qn__tools_begin_copy(const qn_view *dst, const qn_view *src);
void qn__tools_end_copy(const qn_tool_span *s);
/** Memory was taken for views, or is about to be given back. */
void qn__tools_allocated(int space, const char *label, const void *data, size_t bytes);
void qn__tools_released(int space, const char *label, const void *data, size_t bytes);

#endif
