/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h: who looks at launches as they run: the event hook of the host, and the counters of
 * kernels. A context in which nobody does takes the short ways (pinned hits, direct runs), which
 * know nothing of this file.
 */
#ifndef QN_RUNTIME_WATCH_H
#define QN_RUNTIME_WATCH_H

#include "runtime/context.h"

struct qn_task;

/** A launch that somebody may look at, from begin to end. */
typedef struct qn_watch {
    bool is_watched, is_hit;
    int64_t start_ns;
    qn_tool_span tools; /* of launches and copies */
} qn_watch;

/** Before and after a launch runs, on its thread. No lock is held. */
qn_watch qn__watch_launch(const struct qn_task *t, bool is_hit);
void qn__watch_end(const qn_watch *w, const struct qn_task *t);
/** Before and after a copy, in the same way. */
qn_watch qn__watch_copy(const qn_context *c, const qn_view *dst, const qn_view *src);
void qn__watch_copied(qn_context *c, const qn_watch *w, const qn_view *dst, const qn_view *src);
/** Before and after something else that takes a time: a compile, loading the code generator. */
qn_watch qn__watch_begin(const qn_context *c);
void qn__watch_ended(qn_context *c, const qn_watch *w, const char *category, const char *name);
/** A version of a kernel is ready. The lock is held. */
void qn__watch_version(qn_context *c, const qn_kernel *k, bool is_found, double milliseconds);

#endif
