/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.c: tells those who look at launches, see watch.h.
 */
#include "runtime/watch.h"
#include "runtime/launch.h"

qn_watch qn__watch_begin(const qn_context *c)
{
    qn_watch w = {.is_watched = qn__is_watched(c)};
    if (w.is_watched)
        w.start_ns = qn__now_ns();
    return w;
}

qn_watch qn__watch_launch(const qn_task *t, bool is_hit)
{
    qn_watch w = {.is_watched = qn__is_watched(t->context), .is_hit = is_hit};
    if (!w.is_watched)
        return w;
    if (t->context->has_tools)
        w.tools = qn__tools_begin_launch(t->kernel, t->executor);
    w.start_ns = qn__now_ns();
    return w;
}

qn_watch qn__watch_copy(const qn_context *c, const qn_view *dst, const qn_view *src)
{
    qn_watch w = {.is_watched = qn__is_watched(c)};
    if (w.is_watched && c->has_tools)
        w.tools = qn__tools_begin_copy(dst, src);
    if (w.is_watched)
        w.start_ns = qn__now_ns();
    return w;
}

static bool is_code(const qn_task *t)
{
    return t->function && (t->function->entry || t->executor == QN_CUDA);
}

static void trace_launch(const qn_watch *w, const qn_task *t, int64_t ns)
{
    static const char *const executor[] = {"", "serial", "threads", "cuda"};
    qn__trace_span(t->context, "launch", t->kernel->name, w->start_ns, ns,
                   "\"executor\": \"%s\", \"engine\": \"%s\", \"iterations\": %lld, \"is_hit\": %s",
                   executor[t->executor & 3], is_code(t) ? "code" : "interpreter",
                   (long long)t->n_iterations, w->is_hit ? "true" : "false");
}

static void count_launch(const qn_watch *w, const qn_task *t, int64_t ns)
{
    qn_work work = {0};
    bool is_host = t->executor != QN_CUDA;
    if (is_host)
        qn__work_of(t->kernel, t->args, &work, NULL);
    qn_kernel_counters add = {.launches = 1,
                              .hits = w->is_hit,
                              .on_gpu = !is_host,
                              .interpreted = !is_code(t) && !t->domain->is_empty,
                              .run_ns = ns,
                              .timed_ns = is_host ? ns : 0,
                              .bytes = work.bytes,
                              .flops = work.flops};
    qn__lock(t->context);
    qn__profile_add(&t->context->profile, t->kernel, &add);
    qn__unlock(t->context);
}

void qn__watch_end(const qn_watch *w, const qn_task *t)
{
    if (!w->is_watched)
        return;
    int64_t ns = qn__now_ns() - w->start_ns;
    qn__tools_end_launch(t->kernel, &w->tools);
    if (t->context->options.summary)
        count_launch(w, t, ns);
    if (t->context->trace.is_on)
        trace_launch(w, t, ns);
    qn__event(t->context, QN_EVENT_LAUNCH, t->kernel->name, NULL, qn__ms_of_ns(ns));
}

void qn__watch_copied(qn_context *c, const qn_watch *w, const qn_view *dst, const qn_view *src)
{
    int64_t end_ns = w->is_watched ? qn__now_ns() : 0;
    qn__tools_end_copy(&w->tools);
    if (!w->is_watched || !c->trace.is_on)
        return;
    qn__trace_span(c, "copy", qn__label(dst->label), w->start_ns, end_ns - w->start_ns,
                   "\"bytes\": %lld, \"from\": \"%s\", \"to\": \"%s\"",
                   (long long)(qn_view_size(src) * qn__element_bytes(src)),
                   qn_space_name(src->space), qn_space_name(dst->space));
}

void qn__watch_ended(qn_context *c, const qn_watch *w, const char *category, const char *name)
{
    if (w->is_watched && c->trace.is_on)
        qn__trace_span(c, category, name, w->start_ns, qn__now_ns() - w->start_ns, "%s", "");
}

void qn__watch_version(qn_context *c, const qn_kernel *k, bool is_found, double milliseconds)
{
    qn_kernel_counters add = {.versions = !is_found,
                              .found = is_found,
                              .compile_ns = is_found ? 0 : (int64_t)(milliseconds * 1e6)};
    if (c->options.summary)
        qn__profile_add(&c->profile, k, &add);
}
