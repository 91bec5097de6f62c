/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tier.c: launches that do not wait for their code (option compile): what they run instead,
 * when they change over to a better version, that nothing is compiled where that is forbidden, and
 * the life of the thread that builds versions.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "tests/sanitizer.h"
#include "tests/unit/launch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const qn_options now = {.bytes = sizeof now, .compile = QN_COMPILE_NOW},
                        never = {.bytes = sizeof never, .compile = QN_COMPILE_NEVER};

typedef struct job {
    qn_context *c;
    qn_kernel *k;
} job;

static job open_job(const qn_context_options *o)
{
    return (job){context_with(o), kernel_of(SCALE_TEXT)};
}

static void close_job(job *j)
{
    qn_kernel_release(j->k);
    qn_context_release(j->c);
}

/** Scales a dense matrix, whose strides are `step` times as large, and checks the result. */
static qn_status scale(const job *j, int64_t rows, int64_t columns, int64_t step,
                       const qn_options *o, qn_error *err)
{
    const int64_t extents[] = {rows, columns}, strides[] = {columns * step, step};
    qn_layout l;
    qn_view a = {0}, b = {0};
    qn_layout_strided(2, extents, strides, &l, NULL);
    qn_status status = qn_view_alloc(j->c, "a", QN_F64, &l, 0, &a, err);
    if (status == QN_OK)
        status = qn_view_alloc(j->c, "b", QN_F64, &l, 0, &b, err);
    for (int64_t i = 0; i < qn_layout_span(&l) && status == QN_OK; i++)
        ((double *)a.data)[i] = (double)i;
    const qn_arg args[] = {qn_arg_view(&a), qn_arg_view(&b), qn_arg_f64(3)};
    if (status == QN_OK)
        status = qn_launch(j->c, j->k, 3, args, o, err);
    for (int64_t i = 0; i < rows * columns && status == QN_OK; i++)
        if (((double *)b.data)[i * step] != 3.0 * (double)(i * step))
            status = QN_ERR_INTERNAL;
    qn_view_release(&a);
    qn_view_release(&b);
    return status;
}

/** Whether the counters have so many compiles, at most ten seconds from now. */
static bool has_compiled(qn_context *c, int64_t n)
{
    for (int i = 0; i < 10000 && counters_of(c).compiles < n; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return counters_of(c).compiles >= n;
}

static void test_first_launch(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    tap_ok(scale(&j, 5, 60, 1, &now, &err) == QN_OK && counters_of(j.c).interpreted == 1,
           "where nothing is there the first launch is interpreted: %s", err.message);
    tap_ok(has_compiled(j.c, 2), "two versions are made in the background");
    tap_ok(history_has(j.c, "scale: first version; exact"), "that of these arguments");
    tap_ok(history_has(j.c, "dynamic extents"), "and one for all");
    tap_ok(scale(&j, 5, 60, 1, &now, &err) == QN_OK && counters_of(j.c).interpreted == 1,
           "later launches run code");
    int64_t compiles = counters_of(j.c).compiles;
    tap_ok(scale(&j, 7, 33, 1, &now, &err) == QN_OK && counters_of(j.c).interpreted == 1,
           "an unknown shape runs in the generic version");
    tap_ok(scale(&j, 7, 33, 2, &now, &err) == QN_OK && counters_of(j.c).interpreted == 1,
           "... as do other strides");
    tap_ok(has_compiled(j.c, compiles + 2), "both get a version of their own");
    close_job(&j);
}

/** Many shapes at once, before any version is there: the policy counts what is ordered. */
static void test_burst(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    bool is_right = true;
    qn__lock(j.c);
    j.c->background.is_held = true;
    qn__unlock(j.c);
    for (int64_t n = 10; n < 60; n++)
        is_right &= scale(&j, 5, n, 1, &now, &err) == QN_OK;
    qn__lock(j.c);
    int n_orders = j.c->background.n_orders;
    qn__background_go_on(j.c);
    qn__unlock(j.c);
    tap_ok(is_right && n_orders >= 3 && n_orders <= 4,
           "50 shapes order 2 exact versions, a dynamic and the generic one, %d in all: %s",
           n_orders, err.message);
    tap_ok(has_compiled(j.c, n_orders), "which are made");
    close_job(&j);
}

/** The version that the last launch of these arguments ran is the exact one: its choice is no
 * provisional one. */
static void test_change_over(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    qn_view a = vector_of(j.c, "a", QN_F32, 100), b = vector_of(j.c, "b", QN_F32, 100);
    const qn_arg args[] = {qn_arg_view(&a), qn_arg_view(&b)};
    qn_kernel *k = kernel_of(COPY_TEXT);
    const qn_options generic = {.bytes = sizeof generic, .specialize = QN_SPECIALIZE_GENERIC};
    qn_code *f = NULL;
    tap_ok(qn_specialize(j.c, k, 2, args, &generic, &f, &err) == QN_OK &&
               qn_launch(j.c, k, 2, args, &now, &err) == QN_OK && counters_of(j.c).interpreted == 0,
           "a launch runs in the generic version that is there: %s", err.message);
    qn__lock(j.c);
    const qn_known_args *known = qn__cache_kernel(&j.c->cache, k)->recent;
    bool is_known = known != NULL;
    qn__unlock(j.c);
    tap_ok(has_compiled(j.c, 2), "its own version is made");
    int64_t misses = counters_of(j.c).misses, hits = counters_of(j.c).hits;
    bool ran = qn_launch(j.c, k, 2, args, &now, &err) == QN_OK;
    tap_ok(ran && counters_of(j.c).misses == misses + 1, "the next launch chooses again");
    ran = qn_launch(j.c, k, 2, args, &now, &err) == QN_OK;
    qn__lock(j.c);
    known = qn__cache_kernel(&j.c->cache, k)->recent;
    const qn_code *chosen = known ? known->choice[0].function : NULL;
    bool is_final = chosen && chosen != f && !known->choice[0].is_provisional;
    qn__unlock(j.c);
    tap_ok(ran && is_final && counters_of(j.c).hits == hits + 1,
           "and those after it hit the exact version");
    (void)is_known;
    qn_code_release(f);
    qn_view_release(&a);
    qn_view_release(&b);
    qn_kernel_release(k);
    close_job(&j);
}

static void test_never(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    for (int i = 0; i < 3; i++)
        tap_ok(scale(&j, 5, 60, 1, &never, &err) == QN_OK, "never: launch %d: %s", i, err.message);
    tap_ok(counters_of(j.c).interpreted == 3 && counters_of(j.c).compiles == 0,
           "they are interpreted, and nothing is compiled");
    qn_options strict = never;
    strict.engine = QN_ENGINE_NATIVE;
    tap_ok(scale(&j, 5, 60, 1, &strict, &err) == QN_ERR_NOT_FOUND &&
               strstr(err.message, "scale") != NULL,
           "where the interpreter may not run, a launch without code is refused: %s", err.message);
    tap_ok(scale(&j, 5, 60, 1, NULL, &err) == QN_OK && counters_of(j.c).compiles == 1,
           "a launch that waits compiles");
    tap_ok(scale(&j, 5, 60, 1, &strict, &err) == QN_OK && counters_of(j.c).interpreted == 3,
           "then its code is used");
    close_job(&j);
    const qn_context_options o = {.bytes = sizeof o, .default_compile = QN_COMPILE_NEVER};
    j = open_job(&o);
    tap_ok(scale(&j, 5, 60, 1, NULL, &err) == QN_OK && counters_of(j.c).compiles == 0,
           "the context has a default");
    close_job(&j);
    const qn_context_options bad = {.bytes = sizeof bad, .default_compile = 4};
    qn_context *c = NULL;
    tap_ok(qn_context_new(&bad, &c, &err) == QN_ERR_ARGUMENT &&
               strstr(err.message, "default_compile") != NULL,
           "which is checked: %s", err.message);
}

/** The generic version is on disk, and the code generator nowhere. */
static void test_disk(void)
{
    char folder[] = "/tmp/test_tier.XXXXXX", command[80];
    qn_error err = {0};
    qn_context_options o = {.bytes = sizeof o, .disk_cache = mkdtemp(folder)};
    const qn_options generic = {.bytes = sizeof generic, .specialize = QN_SPECIALIZE_GENERIC};
    job j = open_job(&o);
    tap_ok(scale(&j, 5, 60, 1, &generic, &err) == QN_OK && counters_of(j.c).disk_writes == 1,
           "the generic version is kept on disk: %s", err.message);
    close_job(&j);
    o.provider_path = "/nowhere";
    o.default_compile = QN_COMPILE_NEVER;
    j = open_job(&o);
    tap_ok(scale(&j, 7, 44, 1, NULL, &err) == QN_OK && counters_of(j.c).interpreted == 0 &&
               counters_of(j.c).disk_hits == 1,
           "a new process runs an unknown shape in it: %s", err.message);
    tap_ok(scale(&j, 8, 45, 1, NULL, &err) == QN_OK && counters_of(j.c).interpreted == 0 &&
               counters_of(j.c).disk_hits == 1,
           "... and reads it once");
    close_job(&j);
    snprintf(command, sizeof command, "rm -r %s", folder);
    tap_ok(system(command) == 0, "the folder is removed");
}

static void test_waiting(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    tap_ok(scale(&j, 600, 700, 1, &now, &err) == QN_OK && counters_of(j.c).interpreted == 0 &&
               counters_of(j.c).compiles >= 1,
           "a launch waits that would take the interpreter longer than a compile: %s", err.message);
    const qn_options must = {.bytes = sizeof must, .compile = QN_COMPILE_NOW, .must_generate = 1};
    tap_ok(scale(&j, 5, 60, 1, &must, &err) == QN_OK && counters_of(j.c).interpreted == 0,
           "and one that the interpreter may not run: %s", err.message);
    close_job(&j);
    j = open_job(NULL);
    bool ok = true;
    for (int64_t i = 0; i < 20; i++) /* queued, then wanted at once */
        ok = ok && scale(&j, 5, 60 + i, 1, &now, &err) == QN_OK &&
             scale(&j, 5, 60 + i, 1, NULL, &err) == QN_OK;
    tap_ok(ok, "launches that wait take over what is ordered: %s", err.message);
    close_job(&j);
}

/* ---------------------------------------------------------------- life of the thread */

static void test_releases(void)
{
    int n_failed = 0;
    qn_error err = {0};
    for (int i = 0; i < 30; i++) {
        job j = open_job(NULL);
        for (int64_t s = 0; s <= i % 4; s++)
            n_failed += scale(&j, 5, 60 + s, 1, &now, &err) != QN_OK;
        if (i % 3 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000 * i}, NULL);
        close_job(&j);
    }
    tap_ok(n_failed == 0, "contexts are released while versions are made: %s", err.message);
}

static void on_event(void *arg, const qn_event *e)
{
    qn_context *_Atomic *c = arg;
    if (e->kind == QN_EVENT_COMPILE)
        qn_context_release(atomic_exchange(c, NULL));
}

/** The hook hears of a compile on the thread that builds versions. */
static void test_release_inside(void)
{
    static qn_context *_Atomic shared;
    const qn_context_options o = {.bytes = sizeof o, .event_hook = on_event, .event_arg = &shared};
    job j = open_job(&o);
    qn_error err = {0};
    shared = j.c;
    bool ok = scale(&j, 5, 60, 1, &now, &err) == QN_OK;
    for (int i = 0; i < 10000 && atomic_load(&shared); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    tap_ok(ok && !atomic_load(&shared), "a hook may release the context from there: %s",
           err.message);
    nanosleep(&(struct timespec){.tv_nsec = 50000000},
              NULL); /* for the sanitizers: the thread ends meanwhile */
    qn_kernel_release(j.k);
}

static void test_fork(bool waits)
{
    job j = open_job(NULL);
    qn_error err = {0};
    bool ok = scale(&j, 5, 60, 1, &now, &err) == QN_OK && (!waits || has_compiled(j.c, 2));
    pid_t child = fork();
    if (child == 0) {
        const qn_options must = {.bytes = sizeof must, .engine = QN_ENGINE_NATIVE};
        bool runs =
            scale(&j, 5, 60, 1, &now, &err) == QN_OK && scale(&j, 6, 61, 1, &must, &err) == QN_OK;
        close_job(&j);
        _exit(runs ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    tap_ok(ok && WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "a child of fork launches, compiles and releases; %s",
           waits ? "nothing was built meanwhile" : "versions were being built");
    close_job(&j);
}

/** Code outlives the handle, whose thread has ended when the process forks. */
static void test_fork_after_release(void)
{
    job j = open_job(NULL);
    qn_error err = {0};
    qn_code *f[2] = {NULL, NULL};
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view a = vector_of(j.c, "a", QN_F32, 10), b = vector_of(j.c, "b", QN_F32, 10);
    const qn_arg args[] = {qn_arg_view(&a), qn_arg_view(&b)};
    bool ok = qn_launch(j.c, k, 2, args, &now, &err) == QN_OK && has_compiled(j.c, 2);
    for (int i = 0; i < 2; i++)
        ok = ok && qn_specialize(j.c, k, 2, args, NULL, &f[i], &err) == QN_OK;
    qn_view_release(&a);
    qn_view_release(&b);
    close_job(&j);
    pid_t child = fork();
    if (child == 0) {
        qn_code_release(f[0]);
        bool has_text = qn_code_text(f[1], QN_DUMP_PLAN, NULL, 0) > 0;
        qn_code_release(f[1]);
        _exit(has_text ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    tap_ok(ok && WIFEXITED(status) && WEXITSTATUS(status) == 0,
           "a child of fork holds code of a released context");
    qn_code_release(f[0]);
    qn_code_release(f[1]);
    qn_kernel_release(k);
}

/** Without a code generator launches are interpreted, which is told once, and nothing is ordered
 * again. */
static void test_no_generator(void)
{
    const qn_context_options o = {.bytes = sizeof o, .provider_path = "/nowhere"};
    job j = open_job(&o);
    qn_error err = {0};
    bool ok = scale(&j, 5, 60, 1, &now, &err) == QN_OK;
    for (int i = 0; i < 5000 && !history_has(j.c, "interpreted: QN_ERR_PROVIDER"); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    tap_ok(ok && history_has(j.c, "interpreted: QN_ERR_PROVIDER"),
           "the history says that there is no code generator: %s", err.message);
    for (int i = 0; i < 3; i++)
        ok = ok && scale(&j, 5, 60, 1, &now, &err) == QN_OK;
    int64_t misses = counters_of(j.c).misses;
    for (int i = 0; i < 3; i++)
        ok = ok && scale(&j, 5, 60, 1, &now, &err) == QN_OK;
    tap_ok(ok && counters_of(j.c).misses == misses && counters_of(j.c).interpreted == 7,
           "known arguments are then known to be interpreted");
    close_job(&j);
}

/** Two kernels of one text: what one orders serves the other. */
static void test_equal_texts(void)
{
    job j = open_job(NULL), other = {j.c, kernel_of(SCALE_TEXT)};
    qn_error err = {0};
    bool ok =
        scale(&j, 5, 60, 1, &now, &err) == QN_OK && scale(&other, 5, 60, 1, &now, &err) == QN_OK;
    ok = ok && has_compiled(j.c, 2);
    int64_t interpreted = counters_of(j.c).interpreted;
    ok = ok && scale(&j, 5, 60, 1, &now, &err) == QN_OK &&
         scale(&other, 5, 60, 1, &now, &err) == QN_OK;
    tap_ok(ok && counters_of(j.c).interpreted == interpreted,
           "kernels of one text change over together: %s", err.message);
    qn_kernel_release(other.k);
    close_job(&j);
}

enum { N_THREADS = 6, N_LAUNCHES = 60 };

typedef struct caller {
    job j;
    int number, n_failed;
} caller;

static void *call(void *arg)
{
    caller *x = arg;
    qn_error err = {0};
    for (int i = 0; i < N_LAUNCHES; i++) {
        int64_t shape = (i * (x->number + 3)) % 17;
        const qn_options *o = (i + x->number) % 5 == 0   ? NULL
                              : (i + x->number) % 7 == 0 ? &never
                                                         : &now;
        x->n_failed += scale(&x->j, 3 + shape % 4, 20 + shape, 1 + shape % 3, o, &err) != QN_OK;
    }
    return NULL;
}

static void test_threads(void)
{
    job j = open_job(NULL);
    pthread_t thread[N_THREADS];
    caller callers[N_THREADS];
    int n_failed = 0;
    for (int i = 0; i < N_THREADS; i++) {
        callers[i] = (caller){j, i, 0};
        pthread_create(&thread[i], NULL, call, &callers[i]);
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(thread[i], NULL);
        n_failed += callers[i].n_failed;
    }
    tap_is_int(n_failed, 0, "threads launch one kernel, waiting or not");
    close_job(&j);
}

int main(void)
{
    test_first_launch();
    test_burst();
    test_change_over();
    test_never();
    test_disk();
    test_waiting();
    test_releases();
    test_release_inside();
    if (IS_THREAD_SANITIZED) {
        tap_skip("the thread sanitizer starts no threads in a child of fork");
    } else {
        test_fork(true);
        test_fork(false);
    }
    test_fork_after_release();
    test_no_generator();
    test_equal_texts();
    test_threads();
    return tap_done();
}
