/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h: the own pool of threads. Threads are made on first need, block all signals, spin a little
 * and then sleep. The caller takes part; a call while the pool is busy, nested ones included, runs
 * on the caller alone.
 */
#ifndef QN_RUNTIME_POOL_H
#define QN_RUNTIME_POOL_H

#include "ir/ir.h"

#include <pthread.h>

enum { QN_MAX_THREADS = 256 };

/** The next chunk of a member's share, on a cache line of its own. */
typedef struct qn_pool_share {
    _Atomic int64_t chunk;
    char unused[56];
} qn_pool_share;

typedef struct qn_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int n_threads; /* with the caller; 0: not yet counted */
    int n_started; /* threads that run */
    bool stop;
    pthread_t *thread; /* [n_threads] */
    atomic_bool is_busy;
    _Atomic uint64_t epoch; /* counts jobs */
    _Atomic uint64_t
        gate; /* helpers that work on the job, and tickets of those that still may join */
    _Atomic int n_sleepers; /* helpers that wait for `wake` */
    atomic_bool caller_sleeps;
    _Atomic int n_named; /* helpers that have a number, 1, 2, ...; the caller is 0 */
    /* the job */
    int64_t n_chunks;
    int n_members; /* threads that may take part; each has a share of the chunks */
    qn_pool_share next[QN_MAX_THREADS];
    void (*fn)(void *arg, int64_t chunk);
    void *arg;
} qn_pool;

bool qn__pool_init(qn_pool *p);
void qn__pool_release(qn_pool *p);
/** The number of threads, with the caller; `wanted` and `limit` are 0 if they say nothing. Counted
 * once. */
int qn__pool_size(qn_pool *p, int wanted, int limit);
/** qn_parallel_for of this pool; qn__pool_size was called. */
void qn__pool_run(qn_pool *p, int64_t n_chunks, int max_threads,
                  void (*fn)(void *arg, int64_t chunk), void *arg);
/** After fork, in the child, with the lock held: the threads are gone. Unlocks. */
void qn__pool_forked(qn_pool *p);

#endif
