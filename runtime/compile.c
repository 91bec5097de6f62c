/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.c: jobs for the compile threads, the queue and those who wait, see compile_job.h.
 */
#define _GNU_SOURCE
#include "runtime/compile_job.h"

#include <string.h>
#include <time.h>

enum { LOAD_MS = 60000, WALL_FACTOR = 10, MOST_STRAYS = 4 };

void qn__compiled_release(qn_compiled *c)
{
    qn__text_release(&c->code);
    qn__text_release(&c->plan);
    qn__text_release(&c->llvm);
    qn__text_release(&c->assembly);
    qn__text_release(&c->schedule);
    qn__text_release(&c->estimate);
    qn__text_release(&c->object);
}

/* ---------------------------------------------------------------- jobs */

void qn__job_disown(qn_job *job)
{
    if (--job->n_owners > 0)
        return;
    qn_kernel_release(job->kernel);
    qn__text_release(&job->key);
    qn__compiled_release(&job->result);
    qn__free(job);
}

void qn__job_finish(qn_context *c, qn_job *job, const qn_error *error)
{
    if (error)
        job->error = *error;
    job->state = QN_JOB_DONE;
    pthread_cond_broadcast(&c->compiler.progress);
}

/** Ends the jobs that wait for a thread with this error. The lock is held. */
static void end_queue(qn_context *c, const qn_error *error)
{
    while (c->compiler.first) {
        qn_job *job = c->compiler.first;
        c->compiler.first = job->next;
        qn__job_finish(c, job, error);
        qn__job_disown(job); /* the queue stood in for the thread */
    }
    c->compiler.last = &c->compiler.first;
}

void qn__engine_disable(qn_context *c, const qn_error *error)
{
    if (c->compiler.error.status == QN_OK)
        c->compiler.error = *error;
    end_queue(c, error);
}

static qn_job *new_job(const qn_kernel *k, const qn_text *key, int loader, uint32_t texts,
                       bool is_retry)
{
    qn_job *job = qn__zalloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->n_owners = 1;
    job->loader = loader;
    job->texts = texts;
    job->result.is_retry = is_retry;
    if (k)
        job->kernel =
            qn_kernel_retain((qn_kernel *)(uintptr_t)k); /* only its reference count changes */
    if (key)
        qn__text_bytes(&job->key, key->data, key->n);
    if (!job->key.failed)
        return job;
    qn__job_disown(job);
    return NULL;
}

/** Why no code is generated for now; QN_OK if nothing is in the way. */
static qn_status check_engine(const qn_compiler *compiler, qn_error *err)
{
    if (compiler->error.status)
        return qn__fail(err, (qn_status)compiler->error.status, "%s", compiler->error.message);
    if (compiler->is_late)
        return qn__fail(err, QN_ERR_BUSY,
                        "qn__compile: the code generator is not loaded after %d ms", LOAD_MS);
    if (compiler->n_strays >= MOST_STRAYS)
        return qn__fail(err, QN_ERR_BUSY, "qn__compile: %d compiles do not come to an end",
                        compiler->n_strays);
    return QN_OK;
}

/** Sees that there is a thread for one more job, or for those that are queued. */
static qn_status provide_thread(qn_context *c, qn_error *err)
{
    qn_compiler *compiler = &c->compiler;
    qn_status status = check_engine(compiler, err);
    bool wants_thread = compiler->n_idle == 0 && compiler->n_workers < QN_COMPILE_THREADS;
    if (status == QN_OK && wants_thread && !qn__worker_start(c) && compiler->n_workers == 0)
        status = qn__fail(err, QN_ERR_MEMORY, "qn__compile: no thread could be started");
    return status;
}

/** Queues a job for a thread. Called with the lock held. */
static qn_status enqueue(qn_context *c, qn_job *job, qn_error *err)
{
    qn_compiler *compiler = &c->compiler;
    qn_status status = provide_thread(c, err);
    if (status != QN_OK)
        return status;
    job->n_owners++;
    job->next = NULL;
    *compiler->last = job;
    compiler->last = &job->next;
    pthread_cond_signal(&compiler->work);
    return QN_OK;
}

/* ---------------------------------------------------------------- waiting */

/** Milliseconds until a job should be looked at again that has been waited for so long in its
 * present state; 0: it takes too long. A job that waits for a thread has no limit of its own. */
static double patience_for(const qn_context *c, const qn_job *job, double waited_ms)
{
    double limit = c->options.compile_ms, load = LOAD_MS;
    if (job->state == QN_JOB_RUNNING) {
        double left = limit - (qn__worker_used_ms(job->worker) - job->begin_ms);
        double wall = (double)WALL_FACTOR * limit - waited_ms;
        left = left <= 0 || left >= 1 ? left : 1;
        left = left < wall ? left : wall;
        return left > 0 ? left : 0;
    }
    if (c->compiler.provider == QN_PROVIDER_READY)
        return limit;
    if (c->compiler.is_late)
        return 0;
    return waited_ms < load ? load - waited_ms : 0;
}

/** Ends a job that takes too long: the thread that generates its code is given up, and another one
 * goes on with the queue. */
static void end_late(qn_context *c, qn_job *job)
{
    qn_error error = {0};
    if (job->state != QN_JOB_RUNNING) {
        c->compiler.is_late = true;
        check_engine(&c->compiler, &error);
        job->error = error; /* its thread or the queue still holds it, and does not begin it */
        return;
    }
    qn__fail(&error, QN_ERR_COMPILE_TIMEOUT,
             "qn__compile: kernel \"%s\": no code after %.0f ms of processor time; the limit is %d "
             "ms, and %d times as long in all",
             job->kernel->name, qn__worker_used_ms(job->worker) - job->begin_ms,
             c->options.compile_ms, WALL_FACTOR);
    qn__worker_give_up(c, job, &error);
    if (c->compiler.first && provide_thread(c, &error) != QN_OK)
        end_queue(c, &error);
}

void qn__compile_wait(qn_context *c, const volatile int32_t *cancel, double most_ms)
{
    const double look_ms = 4;
    double left = cancel && (most_ms < 0 || most_ms > look_ms) ? look_ms : most_ms;
    if (left < 0) {
        pthread_cond_wait(&c->compiler.progress, &c->lock);
        return;
    }
    int64_t ns = (int64_t)((qn__now_ms() + left) * 1e6) + 1;
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    pthread_cond_timedwait(&c->compiler.progress, &c->lock, &t);
}

/** Gives up threads whose job nobody waits for any more and which take too long: those who wait for
 * a thread do it. */
static void end_abandoned(qn_context *c)
{
    for (qn_worker *w = c->compiler.workers, *next; w; w = next) {
        next = w->next;
        if (w->job && w->job->is_abandoned && w->job->state == QN_JOB_RUNNING &&
            patience_for(c, w->job, qn__now_ms() - w->job->abandoned_ms) <= 0)
            end_late(c, w->job);
    }
}

/** Waits until a job is done or takes too long. Called with the lock held. Each wait counts for no
 * more than was asked for, so that a process may be stopped meanwhile. */
static void wait_for(qn_context *c, qn_job *job, const volatile int32_t *cancel)
{
    int state = job->state;
    double waited = 0, left;
    while (job->state != QN_JOB_DONE && !qn__is_stopped(cancel) &&
           (left = patience_for(c, job, waited)) > 0) {
        double before = qn__now_ms();
        qn__compile_wait(c, cancel, left);
        end_abandoned(c);
        double passed = qn__now_ms() - before;
        waited = job->state == state ? waited + (passed < left ? passed : left) : 0;
        state = job->state;
    }
    if (job->state == QN_JOB_DONE)
        return;
    if (!qn__is_stopped(cancel)) {
        end_late(c, job);
        return;
    }
    job->is_abandoned = true;
    job->abandoned_ms = qn__now_ms();
    qn__fail(&job->error, QN_ERR_CANCELLED, "cancelled while its code was generated");
}

qn_status qn__compile(qn_context *c, const qn_kernel *k, const qn_text *key, int loader,
                      uint32_t texts, const volatile int32_t *cancel, qn_compiled *out,
                      qn_error *err)
{
    qn_job *job = new_job(k, key, loader, texts, out->is_retry);
    if (!job)
        return qn__fail(err, QN_ERR_MEMORY, "qn__compile: kernel \"%s\": no memory", k->name);
    qn__lock(c);
    qn_status status = enqueue(c, job, err);
    if (status == QN_OK) {
        wait_for(c, job, cancel);
        status = (qn_status)job->error.status;
        if (status != QN_OK) {
            qn__fail(err, status, "%s", job->error.message);
        } else {
            *out = job->result;
            memset(&job->result, 0, sizeof job->result);
        }
    }
    qn__job_disown(job);
    qn__unlock(c);
    return status;
}

bool qn__compile_may_retry(const qn_context *c)
{
    return c->compiler.n_strays <= 1 && c->compiler.error.status == QN_OK;
}

void qn__compile_start(qn_context *c)
{
    qn_job *job = new_job(NULL, NULL, QN_LOADER_ARENA, 0, false);
    if (!job)
        return;
    qn__lock(c);
    enqueue(c, job, NULL);
    qn__job_disown(job);
    qn__unlock(c);
}

void qn__compile_free(qn_context *c, void *orc_handle)
{
    qn__lock(c);
    /* A thread that does not come back may hold the lock of the loader. */
    bool is_usable = c->compiler.error.status == QN_OK && c->compiler.n_strays == 0;
    qn_provider_function provider = is_usable ? c->compiler.function : NULL;
    c->compiler.n_guests += provider != NULL;
    qn__unlock(c);
    if (!provider)
        return;
    qn_request r = {.bytes = sizeof r,
                    .build_id = QN_BUILD_ID,
                    .kind = QN_REQUEST_FREE,
                    .orc_handle = orc_handle};
    provider(&r);
    qn__lock(c);
    c->compiler.n_guests--;
    qn__unlock(c);
}

/* ---------------------------------------------------------------- life */

static void init_conditions(qn_compiler *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->progress, &attr);
    pthread_condattr_destroy(&attr);
}

bool qn__compiler_init(qn_compiler *c)
{
    memset(c, 0, sizeof *c);
    c->last = &c->first;
    init_conditions(c);
    return true;
}

void qn__compiler_release(qn_context *c)
{
    qn__lock(c);
    c->compiler.stop = true;
    qn_worker *w = c->compiler.workers;
    pthread_cond_broadcast(&c->compiler.work);
    qn__unlock(c);
    while (w) { /* nobody waits for a job, so no thread is given up now */
        qn_worker *next = w->next;
        pthread_join(w->thread, NULL);
        qn__free(w);
        w = next;
    }
    pthread_cond_destroy(&c->compiler.work);
    pthread_cond_destroy(&c->compiler.progress);
}

bool qn__compiler_is_inside(const qn_context *c)
{
    bool is_inside = c->compiler.provider == QN_PROVIDER_LOADING || c->compiler.n_strays > 0 ||
                     c->compiler.n_guests > 0;
    for (const qn_worker *w = c->compiler.workers; w; w = w->next)
        is_inside |= w->job != NULL;
    return is_inside;
}

void qn__compiler_lose(qn_context *c)
{
    if (c->compiler.error.status == QN_OK)
        qn__fail(&c->compiler.error, QN_ERR_FORKED,
                 "qn__compile: the process was forked while code was generated; no more code here");
}

void qn__compiler_forked(qn_context *c)
{
    qn_compiler *compiler = &c->compiler;
    /* Threads, jobs and their memory stay behind: nothing may be freed that a lost thread was
     * using. */
    compiler->workers = NULL;
    compiler->first = NULL;
    compiler->last = &compiler->first;
    compiler->n_workers = compiler->n_idle = 0;
    compiler->stop = false;
    init_conditions(compiler);
}
