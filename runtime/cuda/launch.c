/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c: gives a checked task to a stream: the words that its kernels take, scratch memory,
 * a launch of each step for each index of the sequential dimensions, and references to all that the
 * work uses. Obligation: what the work uses is kept from before its first launch on, also if a
 * later launch fails.
 */
#include "runtime/cuda/memory.h"
#include "runtime/cuda/module.h"
#include "runtime/cuda/time.h"
#include "runtime/launch.h"

#include <limits.h>
#include <string.h>

enum { SMALL_WORDS = 512, LABEL_BYTES = 80 };

static const char who[] = "qn_launch";

/** A launch being given to a stream. */
typedef struct work {
    const qn_task *task;
    qn_stream *stream;
    const qn_gpu_info *info;
    const qn_gpu_code *code;
    int64_t *words;
    qn_cu_ptr words_on_gpu; /* 0: the words are the parameter */
    qn_cu_ptr scratch;      /* 0: none */
    const volatile int32_t *cancel; /* looked at between launches; NULL: they cannot be cancelled */
    bool keep[QN_MAX_PARAMS];
    int n_keeps;
} work;

/* ---------------------------------------------------------------- arguments */

qn_status qn__cuda_check_views(qn_stream *s, const char *caller, int n, const qn_arg *args,
                               qn_error *err)
{
    bool is_pushed = false, keep;
    qn_status status = qn__gpu_enter(s->gpu, caller, &is_pushed, err);
    for (int i = 0; status == QN_OK && i < n; i++)
        if (args[i].view)
            status = qn__cuda_use(s, caller, args[i].view, &keep, err);
    qn__gpu_leave(s->gpu, is_pushed);
    return status;
}

/** What the memory of the views asks for. That of a prepared call was checked and is kept by it. */
static qn_status use_views(work *w, qn_error *err)
{
    const qn_task *t = w->task;
    for (int i = 0; i < t->n; i++) {
        w->keep[i] = false;
        if (!t->args[i].view || (t->call && !t->args[i].view->owner))
            continue;
        qn_status status = qn__cuda_use(w->stream, who, t->args[i].view, &w->keep[i], err);
        if (status)
            return status;
        w->keep[i] = w->keep[i] && !t->call;
        w->n_keeps += w->keep[i];
    }
    return QN_OK;
}

/* ---------------------------------------------------------------- reports */

/** Copies of the arguments, for a report after they may be gone. */
typedef struct copied_args {
    qn_kernel *kernel;
    int n;
    qn_arg *arg;
    qn_view *view;
    char (*label)[LABEL_BYTES];
} copied_args;

static void free_copies(void *what)
{
    copied_args *a = what;
    for (int i = 0; i < a->n; i++)
        qn_layout_release(&a->view[i].layout);
    qn_kernel_release(a->kernel);
    qn__free(a);
}

static copied_args *copy_arguments(const qn_task *t)
{
    size_t n = (size_t)t->n;
    copied_args *a =
        qn__zalloc(1, sizeof *a + n * (sizeof *a->arg + sizeof *a->view + sizeof *a->label));
    if (!a)
        return NULL;
    a->kernel = qn_kernel_retain((qn_kernel *)(uintptr_t)t->kernel); /* only its reference count */
    a->n = t->n;
    a->view = (qn_view *)(void *)(a + 1);
    a->arg = (qn_arg *)(void *)(a->view + n);
    a->label = (char(*)[LABEL_BYTES])(void *)(a->arg + n);
    for (int i = 0; i < t->n; i++) {
        const qn_view *v = t->args[i].view;
        a->arg[i] = t->args[i];
        if (!v)
            continue;
        a->view[i] = *v;
        a->view[i].owner = NULL;
        a->view[i].layout = qn_layout_copy(&v->layout);
        if (v->label) {
            strncpy(a->label[i], v->label, LABEL_BYTES - 1);
            a->view[i].label = a->label[i];
        }
        a->arg[i].view = &a->view[i];
    }
    return a;
}

/* ---------------------------------------------------------------- launching */

static qn_status launch_steps(work *w, qn_error *err)
{
    qn_gpu *g = w->stream->gpu;
    const qn_task *t = w->task;
    void *parameter[] = {w->words_on_gpu ? (void *)&w->words_on_gpu : (void *)w->words};
    qn_status status = QN_OK;
    if (w->words_on_gpu)
        status = QN_CU(g, who, copy,
                       (w->words_on_gpu, (qn_cu_ptr)(uintptr_t)w->words,
                        (size_t)w->info->n_words * sizeof *w->words, w->stream->handle),
                       err);
    for (int i = 0; status == QN_OK && i < w->info->n_steps; i++) {
        const qn_gpu_step *step = &w->info->step[i];
        int64_t units = qn__gpu_units(step, t->kernel, t->domain);
        if (units <= 0)
            continue;
        int64_t most = step->most_blocks ? step->most_blocks : INT_MAX;
        unsigned blocks = (unsigned)(units < most ? units : most);
        status = QN_CU(g, who, launch,
                       (w->code->step[i], blocks, 1, 1, (unsigned)step->threads[0],
                        (unsigned)step->threads[1], (unsigned)step->threads[2],
                        (unsigned)step->shared_bytes, w->stream->handle, parameter, NULL),
                       err);
    }
    return status;
}

/** All steps for each index of the sequential dimensions from d on; `at` of them are set. */
static qn_status launch_sequence(work *w, int d, int at, qn_error *err)
{
    const qn_kernel *k = w->task->kernel;
    const qn_domain *domain = w->task->domain;
    while (d < k->n_dims && qn__dim_kind(k, d) != QN_DIM_SEQUENTIAL)
        d++;
    if (d == k->n_dims)
        return launch_steps(w, err);
    int64_t *range = w->words + w->task->function->facts.n_slots + 2 * at;
    qn_status status = QN_OK;
    for (int64_t i = domain->begin[d]; status == QN_OK && i < domain->end[d]; i++) {
        if (qn__is_stopped(w->cancel))
            return qn__fail(
                err, QN_ERR_CANCELLED,
                "%s: kernel \"%.60s\": cancelled before index %lld of sequential dimension %d", who,
                k->name, (long long)i, d);
        range[0] = i;
        range[1] = i + 1;
        status = launch_sequence(w, d + 1, at + 1, err);
    }
    return status;
}

/** Keeps what the work uses until it is done. */
static void keep_all(work *w, copied_args *copies)
{
    const qn_task *t = w->task;
    if (t->call && qn__stream_keeps(w->stream, t->call))
        return; /* as where one call is run again and again */
    if (t->call) {
        qn__call_retain(t->call);
        qn__stream_keep(w->stream, qn__call_drop, t->call);
        return;
    }
    qn_code *f = (qn_code *)(uintptr_t)t->function; /* only its reference count changes */
    qn__code_retain(f);
    qn__stream_keep(w->stream, qn__code_drop, f);
    for (int i = 0; i < t->n; i++) {
        if (!w->keep[i])
            continue;
        qn__buffer_retain(t->args[i].view->owner);
        qn__stream_keep(w->stream, qn__cuda_drop_owner, t->args[i].view->owner);
    }
    if (copies)
        qn__stream_keep(w->stream, free_copies, copies);
}

static qn_status give(work *w, qn_error *err)
{
    const qn_task *t = w->task;
    copied_args *copies = NULL;
    qn_report report = {.kernel = t->kernel, .n = t->n, .args = t->args};
    bool may_fault = t->function->may_fault;
    qn_cu_ptr fault = 0;
    if (may_fault && !t->call) {
        copies = copy_arguments(t);
        if (!copies)
            return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who,
                            t->kernel->name);
        report = (qn_report){.kernel = copies->kernel, .n = copies->n, .args = copies->arg};
    }
    qn_status status =
        qn__stream_begin(w->stream, who, w->n_keeps + 3, may_fault ? &report : NULL, &fault, err);
    if (status) {
        if (copies)
            free_copies(copies);
        return status;
    }
    w->words[w->info->n_words - 2] = (int64_t)fault;
    w->words[w->info->n_words - 1] = (int64_t)w->scratch;
    keep_all(w, copies);
    qn_gpu_span *span = qn__gpu_span_begin(w->stream, t);
    status = launch_sequence(w, 0, 0, err);
    qn__gpu_span_end(w->stream, span);
    qn__stream_end(w->stream);
    return status;
}

qn_status qn__cuda_scratch(const qn_task *t, int64_t *bytes, qn_error *err)
{
    const qn_gpu_info *info = &t->function->info.gpu;
    int64_t units = qn__gpu_units(&info->step[0], t->kernel, t->domain);
    *bytes = 0;
    if (units > 0 && __builtin_mul_overflow(units, info->scratch_per_unit, bytes))
        return qn__fail(err, QN_ERR_OVERFLOW, "%s: kernel \"%.60s\": scratch memory of %lld units",
                        who, t->kernel->name, (long long)units);
    return QN_OK;
}

/** Memory on the GPU that only this work uses. */
static qn_status take_memory(work *w, qn_error *err)
{
    int64_t bytes = 0;
    qn_status status = qn__cuda_scratch(w->task, &bytes, err);
    if (status == QN_OK && bytes > 0)
        status = qn__gpu_alloc(w->stream, who, (size_t)bytes, &w->scratch, err);
    if (status == QN_OK && w->info->words_in_memory)
        status = qn__gpu_alloc(w->stream, who, (size_t)w->info->n_words * sizeof *w->words,
                               &w->words_on_gpu, err);
    return status;
}

static qn_status run_entered(work *w, const int64_t *slots, qn_error *err)
{
    const qn_task *t = w->task;
    int64_t small[SMALL_WORDS];
    size_t n_words = (size_t)w->info->n_words;
    qn_status status =
        qn__gpu_code_of(w->stream->gpu, who, (qn_code *)(uintptr_t)t->function, &w->code, err);
    if (status == QN_OK)
        status = use_views(w, err);
    if (status)
        return status;
    w->words = n_words <= SMALL_WORDS ? small : qn__alloc(n_words * sizeof *w->words);
    if (!w->words)
        return qn__fail(err, QN_ERR_MEMORY, "%s: kernel \"%.60s\": no memory", who,
                        t->kernel->name);
    memcpy(w->words, slots, (size_t)t->function->facts.n_slots * sizeof *slots);
    status = take_memory(w, err);
    if (status == QN_OK)
        status = give(w, err);
    if (w->scratch)
        qn__gpu_free(w->stream, w->scratch);
    if (w->words_on_gpu)
        qn__gpu_free(w->stream, w->words_on_gpu);
    if (w->words != small)
        qn__free(w->words);
    return status;
}

qn_status qn__cuda_capture(const qn_task *t, const int64_t *slots, qn_stream *s, uint64_t fault,
                           uint64_t scratch, qn_error *err)
{
    int64_t words[SMALL_WORDS];
    work w = {.task = t, .stream = s, .info = &t->function->info.gpu, .words = words};
    qn_status status =
        qn__gpu_code_of(s->gpu, who, (qn_code *)(uintptr_t)t->function, &w.code, err);
    if (status)
        return status;
    memcpy(words, slots, (size_t)t->function->facts.n_slots * sizeof *slots);
    words[w.info->n_words - 2] = (int64_t)fault;
    words[w.info->n_words - 1] = (int64_t)scratch;
    return launch_sequence(&w, 0, 0, err);
}

qn_status qn__cuda_run(const qn_task *t, const int64_t *slots, qn_error *err)
{
    work w = {.task = t, .stream = t->stream, .info = &t->function->info.gpu, .cancel = t->cancel};
    bool is_pushed = false;
    qn_status status = qn__gpu_enter(w.stream->gpu, who, &is_pushed, err);
    if (status)
        return status;
    status = run_entered(&w, slots, err);
    qn__gpu_leave(w.stream->gpu, is_pushed);
    return status;
}
