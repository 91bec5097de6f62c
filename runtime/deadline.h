/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadline.h: time limits of launches, and hooks that cancel them. Generated code, chunks and the
 * interpreter look at one word; a thread of the context, which is started by the first time limit
 * or hook, sets that word when the time is over, the hook says so, or the caller's own flag is set.
 */
#ifndef QN_RUNTIME_DEADLINE_H
#define QN_RUNTIME_DEADLINE_H

#include "ir/ir.h"

#include <pthread.h>

/** What may end a launch, as its options say. */
typedef struct qn_stops {
    const volatile int32_t *cancel; /* a flag of the caller's, or NULL */
    int64_t timeout_ns;             /* 0: none */
    int32_t (*hook)(
        void *arg); /* of the caller's, or NULL; called with the lock of the timer held */
    void *hook_arg;
} qn_stops;
/** Whether a thread has to look on. */
static inline bool qn__are_watched(const qn_stops *s)
{
    return s->timeout_ns != 0 || s->hook;
}

/** A time limit or hook that runs; in the frame of the launch. */
typedef struct qn_deadline {
    volatile int32_t stop;           /* what the launch looks at */
    bool is_over;                    /* the time is */
    qn_stops stops;
    int64_t at_ns;                   /* when the time is over */
    int64_t first_look_ns;           /* when the hook is first called */
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
/** Starts a time limit, or calls of a hook; false if the system has no thread. */
bool qn__deadline_open(qn_timer *t, qn_deadline *d, const qn_stops *stops);
/** Ends it: the hook is not being called, and will not be. */
void qn__deadline_close(qn_timer *t, qn_deadline *d);

#endif
