/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stress.c: eight threads do random things with one context whose cache is too small for them:
 * launch, prepare and run, keep calls and functions for a while, read texts, counters and history,
 * and now and then replace the context by a new one while calls of the old one live on. Every
 * result is checked. Runs three seconds, or as many as the first argument says, at most ten.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "tests/unit/launch.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N_THREADS = 8, N_KEPT = 6, MOST = 70000, CACHE_BYTES = 60000 };

/** A context and who uses it; the last one releases it. */
typedef struct turn {
    qn_context *c;
    int64_t n_users; /* with `shared`, while it is the present one */
} turn;

typedef struct shared {
    pthread_mutex_t lock;
    turn *present;
    qn_kernel *kernel[2];
    double end;
    bool has_x86;
} shared;

typedef struct kept {
    qn_call *call;
    qn_code *function;
    qn_view x, y;
    float factor; /* what a run adds, in multiples of x; 0: y becomes x */
} kept;

typedef struct thread {
    shared *s;
    uint64_t random;
    int64_t n_done, n_failed;
    qn_error first;
    kept kept[N_KEPT];
} thread;

static uint64_t draw(thread *t, uint64_t below)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return (t->random >> 11) % below;
}

static void expect(thread *t, bool is_fine, const qn_error *err, const char *what)
{
    t->n_done++;
    if (is_fine)
        return;
    if (t->n_failed++ == 0)
        snprintf(t->first.message, sizeof t->first.message, "%s: %.400s", what, err->message);
}

/* ---------------------------------------------------------------- one thing to run */

/** Sizes that repeat and sizes that do not, some worth several threads. */
static int64_t draw_size(thread *t)
{
    switch (draw(t, 8)) {
    case 0:
        return 1 + (int64_t)draw(t, 3000);
    case 1:
        return MOST - (int64_t)draw(t, 3);
    default:
        return 16 * (1 + (int64_t)draw(t, 6));
    }
}

static qn_options draw_options(thread *t, int64_t n)
{
    static const int specialize[] = {QN_SPECIALIZE_AUTO, QN_SPECIALIZE_EXACT,
                                     QN_SPECIALIZE_DYNAMIC};
    bool is_interpreted = !t->s->has_x86 || (draw(t, 6) == 0 && n < MOST / 10);
    return (qn_options){.bytes = sizeof(qn_options),
                        .engine = is_interpreted ? QN_ENGINE_INTERP : QN_ENGINE_NATIVE,
                        .executor = 1 + (int)draw(t, 2),
                        .specialize = specialize[draw(t, 3)],
                        .loader = draw(t, 10) == 0 ? QN_LOADER_ORC : QN_LOADER_AUTO,
                        .constant_scalars = draw(t, 5) == 0};
}

/** Whether y is `times` runs on from its start. */
static bool is_right(const qn_view *y, float factor, int times)
{
    int64_t n = y->layout.dim[0].extent;
    const float *at = y->data;
    for (int64_t i = 0; i < n; i += 1 + n / 50) {
        float x = (float)(i % 100);
        if (at[i] != (factor != 0 ? factor * x * (float)times : x))
            return false;
    }
    return at[n - 1] ==
           (factor != 0 ? factor * (float)((n - 1) % 100) * (float)times : (float)((n - 1) % 100));
}

static void make_views(const qn_context *c, int64_t n, kept *k)
{
    k->x = vector_of((qn_context *)(uintptr_t)c, "x", QN_F32, n);
    k->y = vector_of((qn_context *)(uintptr_t)c, "y", QN_F32, n);
    for (int64_t i = 0; i < n; i++)
        ((float *)k->x.data)[i] = (float)(i % 100);
}

static void drop(kept *k)
{
    qn_call_release(k->call);
    qn_code_release(k->function);
    qn_view_release(&k->x);
    qn_view_release(&k->y);
    *k = (kept){0};
}

/** Launches twice, or prepares, runs and keeps, or specializes and keeps. */
static void use(thread *t, qn_context *c, kept *place)
{
    kept now = {.factor = draw(t, 2) ? 2 : 0};
    int64_t n = draw_size(t);
    make_views(c, n, &now);
    const qn_options o = draw_options(t, n);
    const qn_kernel *k = t->s->kernel[now.factor != 0 ? 0 : 1];
    const qn_arg args[] = {qn_arg_view(&now.x), qn_arg_view(&now.y), qn_arg_f32(now.factor)};
    int n_args = now.factor != 0 ? 3 : 2;
    qn_error err = {0};
    bool is_fine = true;
    switch (draw(t, 4)) {
    case 0:
        is_fine = qn_prepare(c, k, n_args, args, &o, &now.call, &err) == QN_OK &&
                  qn_run(now.call, &err) == QN_OK && is_right(&now.y, now.factor, 1) &&
                  qn_run(now.call, &err) == QN_OK && is_right(&now.y, now.factor, 2);
        expect(t, is_fine, &err, "prepare and run");
        break;
    case 1:
        is_fine = qn_specialize(c, k, n_args, args, &o, &now.function, &err) == QN_OK;
        expect(t, is_fine, &err, "specialize");
        break;
    default:
        is_fine =
            qn_launch(c, k, n_args, args, &o, &err) == QN_OK && is_right(&now.y, now.factor, 1) &&
            qn_launch(c, k, n_args, args, &o, &err) == QN_OK && is_right(&now.y, now.factor, 2);
        expect(t, is_fine, &err, "launch");
    }
    if (now.call || now.function) {
        drop(place);
        *place = now;
    } else {
        drop(&now);
    }
}

/** Something with a call or function that was kept, whose context may be gone. */
static void use_kept(thread *t, kept *k)
{
    qn_error err = {0};
    if (k->call) {
        memset(k->y.data, 0, (size_t)k->y.layout.dim[0].extent * sizeof(float));
        bool is_fine = qn_run(k->call, &err) == QN_OK && is_right(&k->y, k->factor, 1);
        expect(t, is_fine, &err, "run what was kept");
    }
    if (k->function) {
        int stage = draw(t, 20) ? QN_DUMP_PLAN : QN_DUMP_ASM;
        qn_code_text(k->function, stage, NULL, 0);
        expect(t, qn_code_text(k->function, QN_DUMP_KEY, NULL, 0) > 0, &err, "text");
    }
    if (draw(t, 2))
        drop(k);
}

/* ---------------------------------------------------------------- contexts */

static qn_context *new_context(void)
{
    const qn_context_options o = {.bytes = sizeof o, .n_threads = 3, .cache_bytes = CACHE_BYTES};
    return context_with(&o);
}

/** Reads a context as a monitor would. */
static void look(thread *t, const qn_context *c)
{
    qn_counters n = counters_of(c);
    const qn_error none = {0};
    expect(t, n.live_functions >= 0 && n.code_bytes >= 0 && n.launches >= n.hits, &none,
           "counters");
    qn_context_history(c, NULL, 0);
}

static turn *new_turn(void)
{
    turn *made = malloc(sizeof *made);
    if (!made)
        abort();
    *made = (turn){.c = new_context(), .n_users = 1};
    return made;
}

static turn *enter(shared *s)
{
    pthread_mutex_lock(&s->lock);
    turn *present = s->present;
    present->n_users++;
    pthread_mutex_unlock(&s->lock);
    return present;
}

static void leave(shared *s, turn *left)
{
    pthread_mutex_lock(&s->lock);
    bool is_last = --left->n_users == 0;
    pthread_mutex_unlock(&s->lock);
    if (!is_last)
        return;
    qn_context_release(left->c);
    free(left);
}

static void replace_context(shared *s)
{
    turn *fresh = new_turn();
    pthread_mutex_lock(&s->lock);
    turn *old = s->present;
    s->present = fresh;
    pthread_mutex_unlock(&s->lock);
    leave(s, old);
}

static void *work(void *arg)
{
    thread *t = arg;
    shared *s = t->s;
    while (qn__now_ms() < s->end) {
        turn *now = enter(s);
        use(t, now->c, &t->kept[draw(t, N_KEPT)]);
        if (draw(t, 8) == 0)
            look(t, now->c);
        leave(s, now);
        use_kept(t, &t->kept[draw(t, N_KEPT)]);
        if (draw(t, 100) == 0)
            replace_context(s);
    }
    for (int i = 0; i < N_KEPT; i++)
        drop(&t->kept[i]);
    return NULL;
}

int main(int n_args, char **arg)
{
    static thread each[N_THREADS];
    pthread_t id[N_THREADS];
    char reason[600];
    double seconds = n_args > 1 ? atof(arg[1]) : 3;
    seconds = seconds > 10 ? 10 : seconds;
    shared s = {.lock = PTHREAD_MUTEX_INITIALIZER, .has_x86 = has_x86(reason, sizeof reason)};
    s.kernel[0] = kernel_of(SAXPY_TEXT);
    s.kernel[1] = kernel_of(COPY_TEXT);
    s.present = new_turn();
    s.end = qn__now_ms() + seconds * 1e3;
    for (int i = 0; i < N_THREADS; i++) {
        each[i] = (thread){.s = &s, .random = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1)};
        pthread_create(&id[i], NULL, work, &each[i]);
    }
    int64_t n_done = 0;
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(id[i], NULL);
        n_done += each[i].n_done;
        tap_ok(each[i].n_failed == 0, "thread %d: %s", i, each[i].first.message);
    }
    tap_ok(n_done > 0, "eight threads, one small cache, changing contexts");
    tap_note("%lld things were done", (long long)n_done);
    qn_kernel_release(s.kernel[0]);
    qn_kernel_release(s.kernel[1]);
    leave(&s, s.present);
    return tap_done();
}
