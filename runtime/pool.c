/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c: the own pool of threads, see pool.h. One job at a time. Obligations:
 *
 * (1) A helper joins a job only under the lock and only while it is open; it is counted in n_active
 * until it has left. (2) The caller closes the job when no chunk is left to take and returns when
 * n_active is 0, so that nothing of a job is touched after it, and `next` is never reset under a
 * helper. (3) No lock is held while a chunk runs.
 */
#define _GNU_SOURCE
#include "runtime/pool.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 2000, STACK_BYTES = 1 << 20 };

#if defined(__x86_64__)
static inline void relax(void)
{
    __builtin_ia32_pause();
}
#else
static inline void relax(void)
{
}
#endif

/* ---------------------------------------------------------------- size */

/** Processors that cpu.max of a cgroup v2 folder allows, rounded up; 0 if it does not say. */
static int quota_of(const char *folder)
{
    char path[4200];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", folder);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    long long quota = 0, period = 0;
    int n = fscanf(file, "%lld %lld", &quota, &period);
    fclose(file);
    if (n != 2 || quota <= 0 || period <= 0)
        return 0;
    long long processors = quota / period + (quota % period != 0);
    return processors > QN_MAX_THREADS ? QN_MAX_THREADS : (int)processors;
}

/** The smallest quota of the own cgroup and of those around it; 0: none. */
static int cgroup_quota(void)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return 0;
    char line[4096];
    int least = 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        char *folder = line + 3;
        folder[strcspn(folder, "\n")] = 0;
        for (;;) {
            int quota = quota_of(strcmp(folder, "/") == 0 ? "" : folder);
            if (quota > 0 && (least == 0 || quota < least))
                least = quota;
            char *slash = strrchr(folder, '/');
            if (!slash)
                break;
            *slash = 0;
        }
    }
    fclose(file);
    return least;
}

static int usable_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int quota = cgroup_quota();
    n = quota > 0 && quota < n ? quota : n;
    return n < 1 ? 1 : n > QN_MAX_THREADS ? QN_MAX_THREADS : n;
}

int qn__pool_size(qn_pool *p, int wanted, int limit)
{
    pthread_mutex_lock(&p->lock);
    if (p->n_threads == 0) {
        int n = wanted > 0 ? wanted : usable_processors();
        n = wanted <= 0 && limit > 0 && limit < n ? limit : n;
        p->n_threads = n > QN_MAX_THREADS ? QN_MAX_THREADS : n;
    }
    int n = p->n_threads;
    pthread_mutex_unlock(&p->lock);
    return n;
}

/* ---------------------------------------------------------------- helpers */

static void take_chunks(qn_pool *p)
{
    int64_t n = p->n_chunks;
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= n)
            return;
        p->fn(p->arg, i);
    }
}

/** Waits for a job after `seen` or for the end; spins first. Takes the lock. */
static void wait_for_job(qn_pool *p, uint64_t seen)
{
    for (int i = 0; i < SPINS && atomic_load_explicit(&p->epoch, memory_order_relaxed) == seen; i++)
        relax();
    pthread_mutex_lock(&p->lock);
    while (!p->stop && atomic_load_explicit(&p->epoch, memory_order_relaxed) == seen)
        pthread_cond_wait(&p->wake, &p->lock);
}

static void *helper(void *arg)
{
    qn_pool *p = arg;
    uint64_t seen = 0;
    for (;;) {
        wait_for_job(p, seen);
        if (p->stop)
            break;
        seen = atomic_load_explicit(&p->epoch, memory_order_relaxed);
        bool joins = p->is_open && p->n_joined < p->most;
        if (joins) {
            p->n_joined++;
            atomic_fetch_add_explicit(&p->n_active, 1, memory_order_relaxed);
        }
        pthread_mutex_unlock(&p->lock);
        if (!joins)
            continue;
        take_chunks(p);
        if (atomic_fetch_sub_explicit(&p->n_active, 1, memory_order_release) == 1) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/** Starts helpers up to n, fewer if the system refuses. Called with the lock held. Signals stay
 * with the host's threads. */
static void start_helpers(qn_pool *p, int n)
{
    if (p->n_started >= n)
        return;
    if (!p->thread)
        p->thread = qn__zalloc((size_t)p->n_threads, sizeof *p->thread);
    pthread_attr_t attr;
    if (!p->thread || pthread_attr_init(&attr) != 0)
        return;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (p->n_started < n && pthread_create(&p->thread[p->n_started], &attr, helper, p) == 0)
        p->n_started++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

/* ---------------------------------------------------------------- jobs */

/** Waits until no helper works on the job, spinning first; then the job is over. */
static void wait_for_helpers(qn_pool *p)
{
    for (int i = 0; i < SPINS && atomic_load_explicit(&p->n_active, memory_order_acquire) > 0; i++)
        relax();
    pthread_mutex_lock(&p->lock);
    p->is_open = false;
    while (atomic_load_explicit(&p->n_active, memory_order_acquire) > 0)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void qn__pool_run(qn_pool *p, int64_t n_chunks, int max_threads,
                  void (*fn)(void *arg, int64_t chunk), void *arg)
{
    int64_t n = p->n_threads;
    n = max_threads > 0 && max_threads < n ? max_threads : n;
    n = n_chunks < n ? n_chunks : n;
    if (n <= 1 || atomic_exchange_explicit(&p->is_busy, true, memory_order_acquire)) {
        for (int64_t i = 0; i < n_chunks; i++)
            fn(arg, i);
        return;
    }
    pthread_mutex_lock(&p->lock);
    start_helpers(p, (int)n - 1);
    p->fn = fn;
    p->arg = arg;
    p->n_chunks = n_chunks;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->is_open = true;
    p->n_joined = 0;
    p->most = (int)n - 1;
    atomic_fetch_add_explicit(&p->epoch, 1, memory_order_relaxed);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    take_chunks(p);
    wait_for_helpers(p);
    atomic_store_explicit(&p->is_busy, false, memory_order_release);
}

/* ---------------------------------------------------------------- life */

bool qn__pool_init(qn_pool *p)
{
    memset(p, 0, sizeof *p);
    if (pthread_mutex_init(&p->lock, NULL) != 0)
        return false;
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    return true;
}

void qn__pool_stop(qn_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    int n = p->n_started;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < n; i++)
        pthread_join(p->thread[i], NULL);
    pthread_mutex_lock(&p->lock);
    p->n_started = 0;
    p->stop = false;
    pthread_mutex_unlock(&p->lock);
}

void qn__pool_release(qn_pool *p)
{
    qn__pool_stop(p);
    qn__free(p->thread);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
}

void qn__pool_forked(qn_pool *p)
{
    p->n_started = 0;
    p->is_open = false;
    atomic_store(&p->n_active, 0);
    atomic_store(&p->is_busy, false);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    pthread_mutex_unlock(&p->lock);
}
