/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_references.c: reference counts under threads (rows RC1, RC2, RC7). Threads copy, cut,
 * transform, assign, resize and release views of the same storage, tables of digits included;
 * counts come out right, the storage lives as long as anyone has it, and goes with the last one,
 * whichever thread that is. Meant for `./bootstrap races` too.
 */
#define _POSIX_C_SOURCE 200809L
#include "tests/unit/launch.h"
#include "tests/unit/layout.h"

#include <pthread.h>

enum { N_THREADS = 8, ROUNDS = 400, ROWS = 8, COLUMNS = 12 };

typedef struct job {
    const qn_view *plain, *tiled; /* shared: read by all */
    qn_view mine;                 /* a reference of this thread */
    pthread_barrier_t *start;
    int number;
    int64_t wrong;
} job;

/** The element at (1, 2) is what the shared views hold. */
static bool is_alive(const qn_view *v, int32_t expected)
{
    void *p = NULL;
    return qn_view_at(v, 2, INDEX(1, 2), &p, NULL) == QN_OK && *(int32_t *)p == expected;
}

static void cut(job *j, const qn_view *v)
{
    const qn_slice rows[] = {{.kind = QN_RANGE, .begin = 0, .end = 4}, {.kind = QN_ALL}},
                   none[] = {{.kind = QN_AT, .begin = 99}, {.kind = QN_ALL}};
    qn_view part, same;
    j->wrong += qn_subview(v, 2, rows, &part, NULL) != QN_OK || !is_alive(&part, 42);
    same = qn_view_copy(&part);
    qn_view_release(&part);
    j->wrong += !is_alive(&same, 42) || qn_view_use_count(&same) < 2;
    j->wrong += qn_subview(&same, 2, none, &part, NULL) != QN_ERR_BOUNDS;
    j->wrong += strcmp(same.label, v->label) != 0;
    qn_view_release(&same);
}

static void transform(job *j)
{
    qn_layout l;
    qn_view v;
    qn_layout_permute(&j->tiled->layout, (int[]){1, 0}, &l, NULL);
    j->wrong += qn_view_with_layout(j->tiled, &l, &v, NULL) != QN_OK;
    qn_layout_release(&l);
    void *p = NULL;
    j->wrong += qn_view_at(&v, 2, INDEX(2, 1), &p, NULL) != QN_OK || *(int32_t *)p != 42;
    qn_view_release(&v);
}

/** A handle of the shared storage gets storage of its own. */
static void resize(job *j)
{
    qn_view v = qn_view_copy(j->plain);
    int64_t rows = ROWS + 1 + j->number;
    j->wrong += qn_view_resize(NULL, &v, 2, INDEX(rows, COLUMNS), NULL, NULL) != QN_OK;
    j->wrong += qn_view_use_count(&v) != 1 || v.data == j->plain->data || !is_alive(&v, 42);
    qn_view_release(&v);
}

static void assign(job *j)
{
    qn_view_type type;
    qn_view dst = qn_view_copy(j->tiled);
    qn_view_type_init(QN_I32, 2, INDEX(ROWS, COLUMNS), QN_FAMILY_ANY, &type, NULL);
    j->wrong +=
        qn_view_assign(&dst, &type, j->plain, NULL) != QN_OK || !qn_view_equal(&dst, j->plain);
    type.extent[0] = 3;
    j->wrong += qn_view_assign(&dst, &type, j->tiled, NULL) != QN_ERR_EXTENT;
    qn_view traits;
    j->wrong += qn_view_with_traits(&dst, QN_READ_ONLY, &traits, NULL) != QN_OK;
    qn_view_release(&dst);
    qn_view_release(&traits);
}

static void *work(void *arg)
{
    job *j = arg;
    pthread_barrier_wait(j->start);
    for (int round = 0; round < ROUNDS; round++) {
        cut(j, round & 1 ? j->tiled : j->plain);
        transform(j);
        if (round % 8 == 0)
            resize(j);
        assign(j);
    }
    j->wrong += !is_alive(&j->mine, 42);
    qn_view_release(&j->mine); /* the last of them frees */
    return NULL;
}

static void set(const qn_view *v)
{
    void *p = NULL;
    qn_view_at(v, 2, INDEX(1, 2), &p, NULL);
    *(int32_t *)p = 42;
}

/** All threads work on two shared views; counts are as before. */
static void test_shared(void)
{
    qn_layout l;
    qn_view plain, tiled;
    pthread_t thread[N_THREADS];
    pthread_barrier_t start;
    job jobs[N_THREADS];
    qn_view_new(NULL, "plain", QN_I32, 2, INDEX(ROWS, COLUMNS), &plain, NULL);
    qn_layout_tiled(2, INDEX(ROWS, COLUMNS), INDEX(4, 4), NULL, NULL, &l, NULL);
    qn_view_alloc(NULL, "tiled", QN_I32, &l, 0, &tiled, NULL);
    set(&plain);
    set(&tiled);
    pthread_barrier_init(&start, NULL, N_THREADS);
    for (int t = 0; t < N_THREADS; t++) {
        jobs[t] = (job){.plain = &plain, .tiled = &tiled, .start = &start, .number = t};
        jobs[t].mine = qn_view_copy(t & 1 ? &plain : &tiled);
        pthread_create(&thread[t], NULL, work, &jobs[t]);
    }
    int64_t wrong = 0;
    for (int t = 0; t < N_THREADS; t++) {
        pthread_join(thread[t], NULL);
        wrong += jobs[t].wrong;
    }
    tap_is_int(wrong, 0, "RC2, RC7: views of shared storage are right in every thread");
    tap_is_int(qn_view_use_count(&plain), 1, "RC7: all references of strided views are given back");
    tap_is_int(qn_view_use_count(&tiled), 1, "RC7: ... and of tiled ones");
    tap_is_int(l.digits->references, 2, "RC7: ... and of their digits");
    pthread_barrier_destroy(&start);
    qn_view_release(&plain);
    qn_view_release(&tiled);
    qn_layout_release(&l);
}

static void *release_one(void *arg)
{
    job *j = arg;
    pthread_barrier_wait(j->start);
    j->wrong = !is_alive(&j->mine, 42);
    qn_view_release(&j->mine);
    return NULL;
}

/** Every thread holds one reference, nobody else does, and all let go at once. */
static void test_last_release(void)
{
    pthread_t thread[N_THREADS];
    pthread_barrier_t start;
    job jobs[N_THREADS];
    int64_t wrong = 0;
    pthread_barrier_init(&start, NULL, N_THREADS);
    for (int round = 0; round < 50; round++) {
        qn_view v;
        qn_view_new(NULL, "short", QN_I32, 2, INDEX(ROWS, COLUMNS), &v, NULL);
        set(&v);
        for (int t = 0; t < N_THREADS; t++)
            jobs[t] = (job){.start = &start, .mine = t ? qn_view_copy(&v) : v};
        for (int t = 0; t < N_THREADS; t++)
            pthread_create(&thread[t], NULL, release_one, &jobs[t]);
        for (int t = 0; t < N_THREADS; t++) {
            pthread_join(thread[t], NULL);
            wrong += jobs[t].wrong;
        }
    }
    tap_is_int(wrong, 0, "RC2: storage lives until the last reference of any thread goes");
    pthread_barrier_destroy(&start);
}

/** RC4: launches take no references of the views they use, prepared calls take one each. */
static void test_launches(void)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 100), y = vector_of(c, "y", QN_F32, 100);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    qn_call *call = NULL;
    qn_error err = {0};
    tap_ok(qn_launch(c, k, 2, args, &o, &err) == QN_OK && qn_view_use_count(&x) == 1,
           "RC4, VC21: a launch counts nothing %s", err.message);
    tap_ok(qn_prepare(c, k, 2, args, &o, &call, &err) == QN_OK && qn_view_use_count(&x) == 2,
           "RC4: a prepared call holds its views %s", err.message);
    tap_ok(qn_run(call, &err) == QN_OK && qn_view_use_count(&x) == 2,
           "RC4: its runs count nothing");
    qn_call_release(call);
    tap_is_int(qn_view_use_count(&x), 1, "RC4: and gives them back");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

int main(void)
{
    test_shared();
    test_last_release();
    test_launches();
    return tap_done();
}
