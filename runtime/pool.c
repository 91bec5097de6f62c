/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c: the own pool of threads, see pool.h. One job at a time. Obligations:
 *
 * (1) A helper joins a job by taking one of its tickets; in the same step it is counted as active,
 * until it has left. It reads nothing of a job before. (2) The caller takes the tickets that are
 * left away when no chunk is left to take, and returns when nobody is active, so that nothing of a
 * job is touched after it, and `next` is never reset under a helper. (3) No lock is held while a
 * chunk runs; none is taken at all while everybody spins. (4) Who goes to sleep first says so, then
 * looks again; who has something to tell first does it, then looks who sleeps.
 */
#define _GNU_SOURCE
#include "runtime/pool.h"
#include "runtime/processor.h"
#include "runtime/thread.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 2000, STACK_BYTES = 1 << 20 };
/* Fields of the gate. */
enum { ACTIVE = 0xffff, TICKET = ACTIVE + 1 };

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

/** First chunk of a member's share. */
static int64_t first_chunk(const qn_pool *p, int member)
{
    return p->n_chunks / p->n_members * member + p->n_chunks % p->n_members * member / p->n_members;
}

/** The own share first, so that a thread finds in its caches what it left there at the last job of
 * this kind; then what is left of the others'. */
static void take_chunks(qn_pool *p, int thread)
{
    for (int n = 0; n < p->n_members; n++) {
        int member = (thread + n) % p->n_members;
        int64_t end = first_chunk(p, member + 1), i;
        while ((i = atomic_fetch_add_explicit(&p->next[member].chunk, 1, memory_order_relaxed)) <
               end)
            p->fn(p->arg, i);
    }
}

/** Takes a ticket of the job that is under way; false if there is none left. */
static bool join_job(qn_pool *p)
{
    uint64_t gate = atomic_load_explicit(&p->gate, memory_order_relaxed);
    while (gate >= TICKET)
        if (atomic_compare_exchange_weak_explicit(&p->gate, &gate, gate - TICKET + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

/** The last one to leave wakes a caller that sleeps. */
static void leave_job(qn_pool *p)
{
    bool is_last = (atomic_fetch_sub(&p->gate, 1) & ACTIVE) == 1;
    if (!is_last || !atomic_load(&p->caller_sleeps))
        return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
}

/** Waits for a job after `seen`, spinning first; false at the end. */
static bool wait_for_job(qn_pool *p, uint64_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->epoch, memory_order_relaxed) != seen)
            return true;
        qn__relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->n_sleepers, 1);
    while (!p->stop && atomic_load(&p->epoch) == seen)
        pthread_cond_wait(&p->wake, &p->lock);
    atomic_fetch_sub(&p->n_sleepers, 1);
    bool goes_on = !p->stop;
    pthread_mutex_unlock(&p->lock);
    return goes_on;
}

static void *helper(void *arg)
{
    qn_pool *p = arg;
    uint64_t seen = 0;
    int thread = 1 + atomic_fetch_add_explicit(&p->n_named, 1, memory_order_relaxed);
    while (wait_for_job(p, seen)) {
        seen = atomic_load_explicit(&p->epoch, memory_order_relaxed);
        if (!join_job(p))
            continue;
        take_chunks(p, thread);
        leave_job(p);
    }
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
    while (p->thread && p->n_started < n &&
           qn__thread_start(&p->thread[p->n_started], STACK_BYTES, helper, p))
        p->n_started++;
}

/* ---------------------------------------------------------------- jobs */

/** Opens a job for n helpers, starting or waking what is missing. */
static void open_job(qn_pool *p, int n)
{
    if (p->n_started < n) {
        pthread_mutex_lock(&p->lock);
        start_helpers(p, n);
        pthread_mutex_unlock(&p->lock);
    }
    atomic_store_explicit(&p->gate, (uint64_t)n * TICKET, memory_order_release);
    atomic_fetch_add(&p->epoch, 1);
    int n_sleepers = atomic_load(&p->n_sleepers);
    if (n_sleepers == 0)
        return;
    pthread_mutex_lock(&p->lock);
    if (n_sleepers <= n)
        pthread_cond_broadcast(&p->wake);
    for (int i = 0; i < n && n < n_sleepers; i++)
        pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

/** No helper joins any more; waits until none works on the job, spinning first. */
static void close_job(qn_pool *p)
{
    atomic_fetch_and_explicit(&p->gate, ACTIVE, memory_order_relaxed);
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&p->gate, memory_order_acquire) == 0)
            return;
        qn__relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (atomic_load(&p->gate) > 0)
        pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, false);
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
    p->fn = fn;
    p->arg = arg;
    p->n_chunks = n_chunks;
    p->n_members = (int)n;
    for (int m = 0; m < (int)n; m++)
        atomic_store_explicit(&p->next[m].chunk, first_chunk(p, m), memory_order_relaxed);
    open_job(p, (int)n - 1);
    take_chunks(p, 0);
    close_job(p);
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

/** Ends and joins the threads. */
static void stop(qn_pool *p)
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
    atomic_store(&p->n_named, 0);
    p->stop = false;
    pthread_mutex_unlock(&p->lock);
}

void qn__pool_release(qn_pool *p)
{
    stop(p);
    qn__free(p->thread);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
}

void qn__pool_forked(qn_pool *p)
{
    p->n_started = 0;
    atomic_store(&p->n_named, 0);
    atomic_store(&p->gate, 0);
    atomic_store(&p->n_sleepers, 0);
    atomic_store(&p->caller_sleeps, false);
    atomic_store(&p->is_busy, false);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    pthread_mutex_unlock(&p->lock);
}
