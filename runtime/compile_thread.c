/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile_thread.c: the compile threads themselves, see compile_job.h: they load the code generator
 * and serve the queue.
 */
#define _GNU_SOURCE
#include "runtime/compile_job.h"
#include "runtime/thread.h"
#include "runtime/watch.h"

#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 16 << 20 };

static void enter(qn_context *c, qn_job *job, int state)
{
    job->state = state;
    pthread_cond_broadcast(&c->compiler.progress);
}

double qn__worker_used_ms(const qn_worker *w)
{
    struct timespec t = {0};
    clock_gettime(w->clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void qn__worker_give_up(qn_context *c, qn_job *job, const qn_error *error)
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
    qn__job_finish(c, job, error);
}

/** Called by the code generator on its thread; must not return. Locks inside it may be held for
 * ever, so the thread is parked, not ended, and no other one is sent there. */
static void on_fatal(void *arg, const char *reason)
{
    qn_worker *w = arg;
    qn_context *c = w->context;
    qn_error error = {0};
    qn__fail(&error, QN_ERR_CODEGEN_FATAL, "qn__compile: fatal error of the code generator: %s",
             reason);
    qn__lock(c);
    if (!w->is_given_up)
        qn__worker_give_up(c, w->job, &error);
    qn__engine_disable(c, &error);
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
    qn_maker maker = {0};
    const qn_watch watch = qn__watch_begin(c);
    qn_status status = qn__provider_open(c->options.provider_path, &function, &maker, &error);
    qn__watch_ended(c, &watch, "compile", "load the code generator");
    double end = qn__now_ms();
    qn__lock(c);
    c->counters.provider_us += (int64_t)((end - start) * 1e3);
    compiler->function = function;
    compiler->maker = maker;
    compiler->is_late = false;
    compiler->provider = status == QN_OK ? QN_PROVIDER_READY : QN_PROVIDER_FAILED;
    if (status != QN_OK)
        qn__engine_disable(c, &error);
    pthread_cond_broadcast(&compiler->progress);
}

static void receive(void *arg, int what, const void *data, size_t n)
{
    qn_compiled *result = arg;
    qn_text *text = what == QN_SINK_CODE   ? &result->code
                    : what == QN_SINK_PLAN ? &result->plan
                    : what == QN_SINK_LLVM ? &result->llvm
                    : what == QN_SINK_ASM  ? &result->assembly
                    : what == QN_SINK_SCHEDULE ? &result->schedule
                    : what == QN_SINK_ESTIMATE ? &result->estimate
                    : what == QN_SINK_OBJECT ? &result->object
                                           : NULL;
    if (text)
        qn__text_bytes(text, data, n);
}

/** Runs a job on the code generator, without the lock. */
static void generate(qn_worker *w, qn_job *job, qn_provider_function provider, qn_error *error)
{
    qn_text path = {0};
    char name[QN_DEBUG_NAME_BYTES];
    bool has_lines =
        job->loader == QN_LOADER_ARENA && qn__symbols_source(w->context, job->kernel, name, &path);
    qn_request r = {
        .bytes = sizeof r,
        .build_id = QN_BUILD_ID,
        .debug_path = has_lines ? path.data : NULL,
        .debug_name = has_lines ? name : NULL,
        .kind = QN_REQUEST_COMPILE,
        .loader = job->loader,
        .texts = job->texts,
        .most_units = w->context->compiler.most_units,
        .is_retry = job->result.is_retry,
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
    qn__text_release(&path);
    job->result.info = r.info;
    job->result.descent = r.descent;
    job->result.orc_entry = r.orc_entry;
    job->result.orc_handle = r.orc_handle;
    for (int i = 0; i < QN_N_TIMES; i++)
        job->result.milliseconds += r.milliseconds[i];
    job->result.planning_milliseconds += r.milliseconds[QN_TIME_PLAN];
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
    enter(c, job, QN_JOB_LOADING);
    load_provider(c);
    qn_error error = {0};
    if (c->compiler.error.status) {
        error = c->compiler.error;
    } else if (job->kernel && job->n_owners > 1) {
        qn_provider_function provider = c->compiler.function;
        job->begin_ms = qn__worker_used_ms(w);
        enter(c, job, QN_JOB_RUNNING);
        qn__unlock(c);
        const qn_watch watch = qn__watch_begin(c);
        generate(w, job, provider, &error);
        qn__watch_ended(c, &watch, "compile", job->kernel->name);
        qn__lock(c);
    }
    if (!w->is_given_up)
        qn__job_finish(c, job, error.status ? &error : NULL);
    w->job = NULL;
    qn__job_disown(job);
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
    pthread_getcpuclockid(pthread_self(), &w->clock);
    if (c->options.trace)
        qn__trace_thread(c, "compile thread");
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

bool qn__worker_start(qn_context *c)
{
    qn_worker *w = qn__zalloc(1, sizeof *w);
    if (w)
        w->context = c;
    if (!w || !qn__thread_start(&w->thread, STACK_BYTES, worker_main, w)) {
        qn__free(w);
        return false;
    }
    w->next = c->compiler.workers;
    c->compiler.workers = w;
    c->compiler.n_workers++;
    return true;
}

