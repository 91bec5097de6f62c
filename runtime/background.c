/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.c: the queue of ordered versions and its thread, see background.h.
 *
 * Obligations: (1) An order holds a reference of its code, which holds context and kernel. (2) The
 * thread holds a reference of the context, which it gives up as its last act. (3) Whoever releases
 * the handle ends the thread before; if that is the thread itself, in a hook of the host, it ends
 * when the hook has returned.
 */
#include "runtime/background.h"
#include "runtime/thread.h"
#include "runtime/tier.h"

#include <string.h>

enum { MOST_ORDERS = 64, STACK_BYTES = 1 << 20 };

/** What is to be built, and for which arguments: views without digit tables, of which nothing but
 * extents and strides is looked at (policy.c). */
typedef struct qn_order {
    struct qn_order *next;
    qn_code *code;
    bool is_dynamic;
    qn_launch_state state;
    qn_arg *arg;   /* these two stand behind the struct */
    qn_view *view;
} qn_order;

static qn_order *new_order(const qn_launch_state *l, qn_code *f, bool is_dynamic)
{
    size_t n = (size_t)l->n, at = (sizeof(qn_order) + 63) / 64 * 64;
    char *memory = qn__zalloc(1, at + n * (sizeof(qn_arg) + sizeof(qn_view)));
    if (!memory)
        return NULL;
    qn_order *o = (qn_order *)(void *)memory;
    o->view = (qn_view *)(void *)(memory + at);
    o->arg = (qn_arg *)(void *)(o->view + n);
    o->code = f;
    qn__code_retain(f);
    o->is_dynamic = is_dynamic;
    o->state = *l;
    o->state.kernel = f->kernel;
    o->state.args = o->arg;
    o->state.given = NULL;
    o->state.options.plan = &o->state.plan;
    o->state.options.cancel = &l->context->background.stop;
    o->state.options.pins = NULL; /* the caller's; facts have been made of them */
    o->state.options.n_pins = 0;
    o->state.options.schedule = NULL;
    o->state.stream = NULL;
    for (size_t i = 0; i < n; i++) {
        o->arg[i] = l->args[i];
        if (!l->args[i].view)
            continue;
        o->view[i] = *l->args[i].view;
        o->view[i].layout.digits = NULL;
        o->arg[i].view = &o->view[i];
    }
    return o;
}

/** The lock is not held. */
static void release_order(qn_order *o)
{
    qn_code_release(o->code);
    qn__free(o);
}

static qn_order *next_order(qn_background *b)
{
    qn_order *o = b->first;
    b->first = o->next;
    if (!b->first)
        b->last = &b->first;
    b->n_orders--;
    return o;
}

static void *background_main(void *arg)
{
    qn_context *c = arg;
    qn_background *b = &c->background;
    if (c->options.trace)
        qn__trace_thread(c, "background versions");
    qn__lock(c);
    while (!b->stop) {
        if (!b->first || b->is_held) {
            pthread_cond_wait(&b->work, &c->lock);
            continue;
        }
        qn_order *o = next_order(b);
        b->is_building = true;
        qn__unlock(c);
        qn_error error = {0};
        qn_status status = qn__version_build(&o->state, o->code, o->is_dynamic, &error);
        if (status != QN_OK && status != QN_ERR_CANCELLED)
            qn__version_note_failure(&o->state, &error);
        release_order(o);
        qn__lock(c);
        b->is_building = false;
        pthread_cond_broadcast(&c->compiler.progress);
    }
    b->has_thread = false;
    qn__unlock(c);
    qn__context_drop(c);
    return NULL;
}

static bool provide_thread(qn_context *c)
{
    qn_background *b = &c->background;
    if (b->has_thread)
        return true;
    qn__context_retain(c);
    b->has_thread = qn__thread_start(&b->thread, STACK_BYTES, background_main, c);
    if (!b->has_thread)
        qn__context_drop(c);
    return b->has_thread;
}

bool qn__background_order(qn_launch_state *l, qn_code *f, bool is_dynamic)
{
    qn_background *b = &l->context->background;
    if (b->stop || b->n_orders >= MOST_ORDERS || !provide_thread(l->context))
        return false;
    qn_order *o = new_order(l, f, is_dynamic);
    if (!o)
        return false;
    qn__version_order(l, f, is_dynamic);
    *b->last = o;
    b->last = &o->next;
    b->n_orders++;
    pthread_cond_signal(&b->work);
    pthread_cond_broadcast(
        &l->context->compiler.progress); /* who waits for this code may build it */
    return true;
}

bool qn__background_take(qn_context *c, const qn_code *f)
{
    qn_background *b = &c->background;
    for (qn_order **link = &b->first; *link; link = &(*link)->next) {
        qn_order *o = *link;
        if (o->code != f)
            continue;
        *link = o->next;
        if (b->last == &o->next)
            b->last = link;
        b->n_orders--;
        atomic_fetch_sub_explicit(&o->code->references, 1,
                                  memory_order_relaxed); /* the caller has one, too */
        qn__free(o);
        return true;
    }
    return false;
}

void qn__background_init(qn_background *b)
{
    memset(b, 0, sizeof *b);
    b->last = &b->first;
    pthread_cond_init(&b->work, NULL);
}

void qn__background_stop(qn_context *c)
{
    qn_background *b = &c->background;
    qn__lock(c);
    __atomic_store_n(&b->stop, 1, __ATOMIC_RELAXED);
    bool has_thread = b->has_thread;
    pthread_cond_signal(&b->work);
    qn__unlock(c);
    if (has_thread && pthread_equal(b->thread, pthread_self()))
        pthread_detach(b->thread);
    else if (has_thread)
        pthread_join(b->thread, NULL);
    qn__lock(c);
    while (b->first) {
        qn_order *o = next_order(b);
        qn__version_drop(o->code);
        qn__unlock(c);
        release_order(o);
        qn__lock(c);
    }
    qn__unlock(c);
}

void qn__background_hold(qn_context *c)
{
    const double most_ms = 1000;
    double end = qn__now_ms() + most_ms, left = most_ms;
    c->background.is_held = true;
    for (; c->background.is_building && left > 0; left = end - qn__now_ms())
        qn__compile_wait(c, NULL, left);
}

void qn__background_go_on(qn_context *c)
{
    c->background.is_held = false;
    pthread_cond_signal(&c->background.work);
}

void qn__background_release(qn_background *b)
{
    pthread_cond_destroy(&b->work);
}

void qn__background_forked(qn_context *c)
{
    qn_background *b = &c->background;
    if (b->has_thread) /* its reference: the handle and others hold more */
        atomic_fetch_sub_explicit(&c->references, 1, memory_order_relaxed);
    int32_t stop = b->stop;
    qn__background_init(b); /* orders stay behind: their code is dropped by the cache */
    b->stop = stop;
}
