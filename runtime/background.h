/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.h: versions that are built while launches run others (option compile, tier.c). One
 * thread of the context builds them one after the other; it is started by the first order and lives
 * as long as the handle of the context.
 */
#ifndef QN_RUNTIME_BACKGROUND_H
#define QN_RUNTIME_BACKGROUND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct qn_context;
struct qn_code;
struct qn_launch_state;

typedef struct qn_background {
    struct qn_order *first, **last; /* queue */
    int n_orders;
    bool has_thread;
    bool is_building, is_held; /* held: nothing is begun */
    pthread_t thread;
    pthread_cond_t work;
    volatile int32_t stop; /* 1: the handle is gone; cancels what is built */
} qn_background;

void qn__background_init(qn_background *b);
/** Orders code that stands in the cache as being built, for a launch whose arguments are copied.
 * False without memory or a thread, or if too many are ordered. The lock is held. */
bool qn__background_order(struct qn_launch_state *l, struct qn_code *f, bool is_dynamic);
/** Takes back the order of code that is not begun, so that the caller, who holds a reference, may
 * build it; false if there is none. The lock is held. */
bool qn__background_take(struct qn_context *c, const struct qn_code *f);
/** Ends the thread. The caller holds a reference of the context, and no lock. */
void qn__background_stop(struct qn_context *c);
/** Destroys what the queue is made of. */
void qn__background_release(qn_background *b);
/** Before fork: waits until nothing is built, at most a second, and holds the queue; in the parent
 * it goes on after that. A fork that meets the code generator at work loses it for the child. The
 * lock is held. */
void qn__background_hold(struct qn_context *c);
void qn__background_go_on(struct qn_context *c);
/** After fork, in the child: the thread and its orders are gone. */
void qn__background_forked(struct qn_context *c);

#endif
