/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadline.c: the thread that watches time limits, see deadline.h. It sleeps until the earliest
 * one; where a flag of the caller's has to be passed on, or a hook asked, it looks every few
 * milliseconds. Launches come and go without waking it unless theirs is the earliest.
 */
#define _GNU_SOURCE
#include "runtime/context.h"

#include <signal.h>
#include <time.h>

enum { STACK_BYTES = 64 << 10 };
#define LOOK_NS INT64_C(4000000)
#define SECOND_NS INT64_C(1000000000)

/** Whether a flag or hook has to be looked at meanwhile. */
static bool is_asked(const qn_stops *s)
{
    return s->cancel || s->hook;
}

/** Sets the words that are due; when to look again. The lock is held while hooks are called: their
 * launch cannot end then. */
static int64_t look(qn_timer *t, int64_t now)
{
    int64_t again = INT64_MAX;
    for (qn_deadline *d = t->first; d; d = d->next) {
        if (qn__is_stopped(&d->stop))
            continue;
        d->is_over = d->at_ns <= now;
        const qn_stops *s = &d->stops;
        if (d->is_over || qn__is_stopped(s->cancel) ||
            (s->hook && now >= d->first_look_ns && s->hook(s->hook_arg))) {
            __atomic_store_n(&d->stop, 1, __ATOMIC_RELAXED);
            continue;
        }
        int64_t at = is_asked(s) && d->at_ns - now > LOOK_NS ? now + LOOK_NS : d->at_ns;
        again = at < again ? at : again;
    }
    return again;
}

static void *watch(void *arg)
{
    qn_timer *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        t->wakes_ns = look(t, qn__now_ns());
        if (t->wakes_ns == INT64_MAX) {
            pthread_cond_wait(&t->wake, &t->lock);
            continue;
        }
        const struct timespec at = {.tv_sec = t->wakes_ns / SECOND_NS,
                                    .tv_nsec = t->wakes_ns % SECOND_NS};
        pthread_cond_timedwait(&t->wake, &t->lock, &at);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/** Signals stay with the host's threads. The lock is held. */
static bool start(qn_timer *t)
{
    pthread_attr_t attr;
    if (t->is_started)
        return true;
    if (pthread_attr_init(&attr) != 0)
        return false;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    t->is_started = pthread_create(&t->thread, &attr, watch, t) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return t->is_started;
}

static bool init_condition(qn_timer *t)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return false;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    bool is_good = pthread_cond_init(&t->wake, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return is_good;
}

bool qn__timer_init(qn_timer *t)
{
    *t = (qn_timer){.wakes_ns = INT64_MAX};
    if (pthread_mutex_init(&t->lock, NULL) != 0)
        return false;
    if (init_condition(t))
        return true;
    pthread_mutex_destroy(&t->lock);
    return false;
}

void qn__timer_release(qn_timer *t)
{
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (t->is_started)
        pthread_join(t->thread, NULL);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
}

void qn__timer_forked(qn_timer *t)
{
    pthread_mutex_unlock(&t->lock); /* as the fork found it */
    qn__timer_init(t);
}

bool qn__deadline_open(qn_timer *t, qn_deadline *d, const qn_stops *stops)
{
    int64_t now = qn__now_ns(), limit = stops->timeout_ns ? stops->timeout_ns : INT64_MAX;
    *d = (qn_deadline){.stops = *stops,
                       .at_ns = limit < INT64_MAX - now ? now + limit : INT64_MAX - 1};
    d->first_look_ns = is_asked(stops) && limit > LOOK_NS ? now + LOOK_NS : d->at_ns;
    pthread_mutex_lock(&t->lock);
    bool is_started = start(t);
    if (is_started) {
        d->next = t->first;
        d->link = &t->first;
        if (d->next)
            d->next->link = &d->next;
        t->first = d;
        if (d->first_look_ns < t->wakes_ns)
            pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&t->lock);
    return is_started;
}

void qn__deadline_close(qn_timer *t, qn_deadline *d)
{
    pthread_mutex_lock(&t->lock);
    if (d->link) {
        *d->link = d->next;
        if (d->next)
            d->next->link = d->link;
    }
    pthread_mutex_unlock(&t->lock);
}
