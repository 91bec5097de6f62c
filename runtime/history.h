/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.h: the last lines of what a context did and why: one line a compile or step down. The
 * caller holds the lock of the context.
 */
#ifndef QN_RUNTIME_HISTORY_H
#define QN_RUNTIME_HISTORY_H

#include "ir/ir.h"

enum { QN_HISTORY_LINES = 256 };

typedef struct qn_history {
    char *line[QN_HISTORY_LINES]; /* a ring */
    int64_t n;                    /* lines ever added */
} qn_history;

/** Adds "kernel: reason" and, if not negative, the time. Without memory the line is left out. */
void qn__history_add(qn_history *h, const char *kernel, const char *reason, double milliseconds);
/** Whether one of the lines is "kernel: reason". */
bool qn__history_has(const qn_history *h, const char *kernel, const char *reason);
void qn__history_print(const qn_history *h, qn_text *out);
void qn__history_release(qn_history *h);

#endif
