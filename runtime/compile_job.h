/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile_job.h: what the two halves of the compile threads share: compile.c has the jobs and those
 * who wait for them, compile_thread.c the threads. Obligations, all under the lock of the context:
 *
 * (1) A job belongs to the one who waits and to the thread that runs it; the last of the two frees
 * it. (2) A thread that is given up is detached, no longer listed, and holds a reference of the
 * context; when it comes back it touches nothing but its job and that reference. (3) The code
 * generator is called without the lock. (4) Whoever gives up a thread sees that queued jobs have
 * another one, or end. (5) A job that nobody waits for is not begun.
 */
#ifndef QN_RUNTIME_COMPILE_JOB_H
#define QN_RUNTIME_COMPILE_JOB_H

#include "runtime/context.h"

enum { QN_JOB_QUEUED = 0, QN_JOB_LOADING, QN_JOB_RUNNING, QN_JOB_DONE };

typedef struct qn_job {
    struct qn_job *next;
    int n_owners;
    int state;
    double begin_ms; /* running: processor time of the thread when the code generator was called */
    struct qn_worker *worker;
    bool is_abandoned; /* nobody waits for it: the launch was cancelled */
    double abandoned_ms;
    qn_kernel *kernel; /* NULL: only load the code generator */
    qn_text key;
    int loader;
    uint32_t texts;
    qn_compiled result;
    qn_error error;
} qn_job;

typedef struct qn_worker {
    struct qn_worker *next;
    qn_context *context;
    pthread_t thread;
    clockid_t clock; /* processor time of the thread */
    qn_job *job;
    bool is_given_up;
    void *thread_state; /* of the code generator */
} qn_worker;

/* All of these are called with the lock held. */

/** Gives up one of the two parts in a job. */
void qn__job_disown(qn_job *job);
/** Ends a job; `error` may be NULL. */
void qn__job_finish(qn_context *c, qn_job *job, const qn_error *error);
/** No more code is generated in this context. */
void qn__engine_disable(qn_context *c, const qn_error *error);

/** Starts one more thread; false if the system refuses. */
bool qn__worker_start(qn_context *c);
/** Gives up the thread of a job, which ends with this error. */
void qn__worker_give_up(qn_context *c, qn_job *job, const qn_error *error);
/** Processor time that a thread has used, in milliseconds. */
double qn__worker_used_ms(const qn_worker *w);

#endif
