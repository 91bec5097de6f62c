/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile.c: the compile threads, see compile.h. Obligations, all under the lock of the context:
 *
 * (1) A job belongs to the one who waits and to the thread that runs it; the last of the two frees
 * it. (2) A thread that is given up is detached, no longer listed, and holds a reference of the
 * context; when it comes back it touches nothing but its job and that reference. (3) The code
 * generator is called without the lock.
 */
#define _GNU_SOURCE
#include "runtime/context.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 16 << 20, LOAD_MS = 60000 };
enum { JOB_QUEUED = 0, JOB_LOADING, JOB_RUNNING, JOB_DONE };

typedef struct qn_job {
    struct qn_job *next;
    int n_owners;
    int state;
    double since; /* the present state, in milliseconds */
    struct qn_worker *worker;
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
    qn_job *job;
    bool is_given_up;
    void *thread_state; /* of the code generator */
} qn_worker;

void qn__compiled_release(qn_compiled *c)
{
    qn__text_release(&c->code);
    qn__text_release(&c->plan);
    qn__text_release(&c->llvm);
    qn__text_release(&c->assembly);
}

static void disown(qn_job *job)
{
    if (--job->n_owners > 0)
        return;
    qn_kernel_release(job->kernel);
    qn__text_release(&job->key);
    qn__compiled_release(&job->result);
    qn__free(job);
}

static void finish(qn_context *c, qn_job *job, const qn_error *error)
{
    if (error)
        job->error = *error;
    job->state = JOB_DONE;
    pthread_cond_broadcast(&c->compiler.progress);
}

static void enter(qn_context *c, qn_job *job, int state)
{
    job->state = state;
    job->since = qn__now_ms();
    pthread_cond_broadcast(&c->compiler.progress);
}

/* ---------------------------------------------------------------- giving up */

/** No more code is generated in this context: jobs that wait for a thread end with this error. */
static void disable(qn_context *c, const qn_error *error)
{
    if (c->compiler.error.status == QN_OK)
        c->compiler.error = *error;
    while (c->compiler.first) {
        qn_job *job = c->compiler.first;
        c->compiler.first = job->next;
        finish(c, job, error);
        disown(job); /* the queue stood in for the thread */
    }
    c->compiler.last = &c->compiler.first;
}

/** Gives up the thread of a job and with it the engine. */
static void give_up(qn_context *c, qn_job *job, const qn_error *error)
{
    qn_worker *w = job->worker;
    qn_worker **link = &c->compiler.workers;
    while (*link && *link != w)
        link = &(*link)->next;
    if (*link)
        *link = w->next;
    c->compiler.n_workers--;
    c->compiler.n_strays++;
    w->is_given_up = true;
    qn__context_retain(c);
    pthread_detach(w->thread);
    finish(c, job, error);
    disable(c, error);
}

/** Called by the code generator on its thread; must not return. Locks inside it may be held for
 * ever, so the thread is parked, not ended. */
static void on_fatal(void *arg, const char *reason)
{
    qn_worker *w = arg;
    qn_context *c = w->context;
    qn_error error = {0};
    qn__fail(&error, QN_ERR_CODEGEN_FATAL, "qn__compile: fatal error of the code generator: %s",
             reason);
    qn__lock(c);
    if (!w->is_given_up)
        give_up(c, w->job, &error);
    qn__unlock(c);
    for (;;)
        pause();
}

/* ---------------------------------------------------------------- threads */

/** Loads the code generator, once per context. Called with the lock held, which is given up
 * meanwhile. */
static void load_provider(qn_context *c)
{
    qn_compiler *compiler = &c->compiler;
    while (compiler->provider == QN_PROVIDER_LOADING)
        pthread_cond_wait(&compiler->progress, &c->lock);
    if (compiler->provider != QN_PROVIDER_NONE)
        return;
    compiler->provider = QN_PROVIDER_LOADING;
    qn__unlock(c);
    double start = qn__now_ms();
    qn_error error = {0};
    qn_provider_function function = NULL;
    qn_status status = qn__provider_open(c->options.provider_path, &function, &error);
    double end = qn__now_ms();
    qn__lock(c);
    c->counters.provider_us += (int64_t)((end - start) * 1e3);
    compiler->function = function;
    compiler->provider = status == QN_OK ? QN_PROVIDER_READY : QN_PROVIDER_FAILED;
    if (status != QN_OK)
        disable(c, &error);
    pthread_cond_broadcast(&compiler->progress);
}

static void receive(void *arg, int what, const void *data, size_t n)
{
    qn_compiled *result = arg;
    qn_text *text = what == QN_SINK_CODE   ? &result->code
                    : what == QN_SINK_PLAN ? &result->plan
                    : what == QN_SINK_LLVM ? &result->llvm
                    : what == QN_SINK_ASM  ? &result->assembly
                                           : NULL;
    if (text)
        qn__text_bytes(text, data, n);
}

/** Runs a job on the code generator, without the lock. */
static void generate(qn_worker *w, qn_job *job, qn_provider_function provider, qn_error *error)
{
    qn_request r = {
        .bytes = sizeof r,
        .build_id = QN_BUILD_ID,
        .kind = QN_REQUEST_COMPILE,
        .loader = job->loader,
        .texts = job->texts,
        .kernel = job->kernel->canonical,
        .kernel_bytes = job->kernel->canonical_bytes,
        .key = job->key.data,
        .key_bytes = job->key.n,
        .thread_state = &w->thread_state,
        .sink = receive,
        .sink_arg = &job->result,
        .fatal = on_fatal,
        .fatal_arg = w,
    };
    int status = provider(&r);
    job->result.info = r.info;
    job->result.orc_entry = r.orc_entry;
    job->result.orc_handle = r.orc_handle;
    for (int i = 0; i < 4; i++)
        job->result.milliseconds += r.milliseconds[i];
    if (status != QN_OK)
        qn__fail(error, (qn_status)status, "qn__compile: %s",
                 r.error.message[0] ? r.error.message : qn_status_text(status));
    else if (job->result.code.failed)
        qn__fail(error, QN_ERR_MEMORY, "qn__compile: no memory for the code");
}

/** Takes a job through its states. Called with the lock held. */
static void serve(qn_worker *w, qn_job *job)
{
    qn_context *c = w->context;
    w->job = job;
    job->worker = w;
    enter(c, job, JOB_LOADING);
    load_provider(c);
    qn_error error = {0};
    if (c->compiler.error.status) {
        error = c->compiler.error;
    } else if (job->kernel) {
        qn_provider_function provider = c->compiler.function;
        enter(c, job, JOB_RUNNING);
        qn__unlock(c);
        generate(w, job, provider, &error);
        qn__lock(c);
    }
    if (!w->is_given_up)
        finish(c, job, error.status ? &error : NULL);
    w->job = NULL;
    disown(job);
}

/** Ends a thread's part in the code generator; the lock is not held. */
static void end_thread_state(qn_worker *w, qn_provider_function provider)
{
    if (!provider || !w->thread_state)
        return;
    qn_request r = {.bytes = sizeof r,
                    .build_id = QN_BUILD_ID,
                    .kind = QN_REQUEST_THREAD_END,
                    .thread_state = &w->thread_state};
    provider(&r);
}

static void *worker_main(void *arg)
{
    qn_worker *w = arg;
    qn_context *c = w->context;
    qn_compiler *compiler = &c->compiler;
    qn__lock(c);
    while (!w->is_given_up && (compiler->first || !compiler->stop)) {
        qn_job *job = compiler->first;
        if (!job) {
            compiler->n_idle++;
            pthread_cond_wait(&compiler->work, &c->lock);
            compiler->n_idle--;
            continue;
        }
        compiler->first = job->next;
        if (!compiler->first)
            compiler->last = &compiler->first;
        serve(w, job);
    }
    bool is_given_up = w->is_given_up;
    qn_provider_function provider = compiler->function;
    qn__unlock(c);
    end_thread_state(w, provider);
    if (is_given_up) {
        qn__lock(c);
        compiler->n_strays--;
        qn__unlock(c);
        qn__free(w);
        qn__context_drop(c);
    }
    return NULL;
}

/** Starts one more thread; false if the system refuses. Called with the lock held. */
static bool start_worker(qn_context *c)
{
    qn_worker *w = qn__zalloc(1, sizeof *w);
    pthread_attr_t attr;
    if (!w || pthread_attr_init(&attr) != 0) {
        qn__free(w);
        return false;
    }
    w->context = c;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setguardsize(&attr, 65536);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    bool is_started = pthread_create(&w->thread, &attr, worker_main, w) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (!is_started) {
        qn__free(w);
        return false;
    }
    w->next = c->compiler.workers;
    c->compiler.workers = w;
    c->compiler.n_workers++;
    return true;
}

/* ---------------------------------------------------------------- jobs */

static qn_job *new_job(const qn_kernel *k, const qn_text *key, int loader, uint32_t texts)
{
    qn_job *job = qn__zalloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->n_owners = 1;
    job->loader = loader;
    job->texts = texts;
    if (k)
        job->kernel =
            qn_kernel_retain((qn_kernel *)(uintptr_t)k); /* only its reference count changes */
    if (key)
        qn__text_bytes(&job->key, key->data, key->n);
    if (!job->key.failed)
        return job;
    disown(job);
    return NULL;
}

/** Queues a job for a thread. Called with the lock held. */
static qn_status enqueue(qn_context *c, qn_job *job, qn_error *err)
{
    qn_compiler *compiler = &c->compiler;
    if (compiler->error.status)
        return qn__fail(err, (qn_status)compiler->error.status, "%s", compiler->error.message);
    bool wants_thread = compiler->n_idle == 0 && compiler->n_workers < QN_COMPILE_THREADS;
    if (wants_thread && !start_worker(c) && compiler->n_workers == 0)
        return qn__fail(err, QN_ERR_MEMORY, "qn__compile: no thread could be started");
    job->n_owners++;
    job->next = NULL;
    job->since = qn__now_ms();
    *compiler->last = job;
    compiler->last = &job->next;
    pthread_cond_signal(&compiler->work);
    return QN_OK;
}

/** When a job in its present state has taken too long. */
static double deadline_of(const qn_context *c, const qn_job *job)
{
    double limit = c->options.compile_ms;
    return job->since + (job->state == JOB_RUNNING ? limit : limit + (double)LOAD_MS);
}

/** Waits until a job is done or takes too long. Called with the lock held. */
static void wait_for(qn_context *c, qn_job *job)
{
    while (job->state != JOB_DONE) {
        double deadline = deadline_of(c, job);
        if (qn__now_ms() >= deadline) {
            qn_error error = {0};
            qn__fail(&error, QN_ERR_COMPILE_TIMEOUT,
                     "qn__compile: kernel \"%s\": no code after %d ms", job->kernel->name,
                     c->options.compile_ms);
            if (job->worker)
                give_up(c, job, &error);
            else
                disable(c, &error);
            return;
        }
        int64_t ns = (int64_t)(deadline * 1e6) + 1;
        struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
        pthread_cond_timedwait(&c->compiler.progress, &c->lock, &t);
    }
}

qn_status qn__compile(qn_context *c, const qn_kernel *k, const qn_text *key, int loader,
                      uint32_t texts, qn_compiled *out, qn_error *err)
{
    qn_job *job = new_job(k, key, loader, texts);
    if (!job)
        return qn__fail(err, QN_ERR_MEMORY, "qn__compile: kernel \"%s\": no memory", k->name);
    qn__lock(c);
    qn_status status = enqueue(c, job, err);
    if (status == QN_OK) {
        wait_for(c, job);
        status = (qn_status)job->error.status;
        if (status != QN_OK) {
            qn__fail(err, status, "%s", job->error.message);
        } else {
            *out = job->result;
            memset(&job->result, 0, sizeof job->result);
        }
    }
    disown(job);
    qn__unlock(c);
    return status;
}

void qn__compile_start(qn_context *c)
{
    qn_job *job = new_job(NULL, NULL, QN_LOADER_ARENA, 0);
    if (!job)
        return;
    qn__lock(c);
    enqueue(c, job, NULL);
    disown(job);
    qn__unlock(c);
}

void qn__compile_free(qn_context *c, void *orc_handle)
{
    qn__lock(c);
    qn_provider_function provider = c->compiler.error.status ? NULL : c->compiler.function;
    c->compiler.n_strays += provider != NULL;
    qn__unlock(c);
    if (!provider)
        return;
    qn_request r = {.bytes = sizeof r,
                    .build_id = QN_BUILD_ID,
                    .kind = QN_REQUEST_FREE,
                    .orc_handle = orc_handle};
    provider(&r);
    qn__lock(c);
    c->compiler.n_strays--;
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
    bool is_inside = c->compiler.provider == QN_PROVIDER_LOADING || c->compiler.n_strays > 0;
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
