/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadline.h: time limits of launches. Generated code, chunks and the interpreter look at one word; a thread of the context,
 * which is started by the first time limit, sets that word when the time is over, or the caller's own flag is set.
 */
#ifndef QN_RUNTIME_DEADLINE_H
#define QN_RUNTIME_DEADLINE_H

#include "ir/ir.h"

#include <pthread.h>

/** A time limit that runs; in the frame of the launch. */
typedef struct qn_deadline {
    volatile int32_t stop;           /* what the launch looks at */
    bool is_over;                    /* the time is */
    const volatile int32_t *cancel;  /* the caller's flag, or NULL */
    int64_t at_ns;
    struct qn_deadline *next, **link;
} qn_deadline;

/** The time limits of a context. */
typedef struct qn_timer {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool is_started, stop;
    int64_t wakes_ns; /* when the thread looks again, INT64_MAX: when it is told to */
    qn_deadline *first;
} qn_timer;

bool qn__timer_init(qn_timer *t);
void qn__timer_release(qn_timer *t);
/** In a child of fork: the thread is gone, and so are all launches but that of the caller. */
void qn__timer_forked(qn_timer *t);
/** Starts a time limit of so many nanoseconds; false if the system has no thread. */
bool qn__deadline_open(qn_timer *t, qn_deadline *d, const volatile int32_t *cancel, int64_t timeout_ns);
void qn__deadline_close(qn_timer *t, qn_deadline *d);

#endif
