/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_threads.c: the threads executor against the serial one, sequential dimensions, faults that
 * do not depend on the number of threads, the host's own parallel_for, and contexts, functions and
 * calls used from several threads at once.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { MANY = 1 << 20 };

static void test_same_result(int engine, const char *name)
{
    const qn_context_options options = {.bytes = sizeof options, .n_threads = 4};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    const int64_t sizes[] = {1, 100, 32768, 65536, 65537, 1000003};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int64_t n = engine == QN_ENGINE_INTERP && sizes[s] > 70000 ? 70000 : sizes[s];
        qn_view x = vector_of(c, "x", QN_F32, n), y = vector_of(c, "y", QN_F32, n),
                z = vector_of(c, "z", QN_F32, n);
        fill_f32(&x, 0.1f, 0.3f);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(1.7f)};
        const qn_arg serial_args[] = {qn_arg_view(&x), qn_arg_view(&z), qn_arg_f32(1.7f)};
        const qn_options threads = {
            .bytes = sizeof threads, .engine = engine, .executor = QN_THREADS};
        const qn_options two = {
            .bytes = sizeof two, .engine = engine, .executor = QN_THREADS, .max_threads = 2};
        const qn_options serial = {.bytes = sizeof serial, .engine = engine, .executor = QN_SERIAL};
        qn_error err = {0};
        qn_call *call = NULL;
        bool is_fine = qn_launch(c, k, 3, args, &threads, &err) == QN_OK &&
                       qn_launch(c, k, 3, args, &two, &err) == QN_OK &&
                       qn_prepare(c, k, 3, args, &threads, &call, &err) == QN_OK &&
                       qn_run(call, &err) == QN_OK;
        for (int i = 0; i < 3; i++)
            is_fine &= qn_launch(c, k, 3, serial_args, &serial, &err) == QN_OK;
        tap_ok(is_fine && memcmp(y.data, z.data, (size_t)n * sizeof(float)) == 0,
               "%s: %" PRId64 " elements, threads give the serial result: %s", name, n,
               err.message);
        qn_call_release(call);
        qn_view_release(&x);
        qn_view_release(&y);
        qn_view_release(&z);
    }
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_sequential(int engine, const char *name)
{
    const qn_context_options options = {.bytes = sizeof options, .n_threads = 3};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(STEPS_TEXT);
    int64_t n = engine == QN_ENGINE_INTERP ? 1000 : 200000;
    qn_view u = vector_of(c, "u", QN_F64, n);
    const qn_options o = {.bytes = sizeof o, .engine = engine, .executor = QN_THREADS};
    const qn_arg args[] = {qn_arg_view(&u), qn_arg_int(QN_I64, 7)};
    qn_error err = {0};
    int n_wrong = qn_launch(c, k, 2, args, &o, &err) != QN_OK;
    for (int64_t i = 0; i < n; i++)
        n_wrong += ((double *)u.data)[i] != 21;
    tap_ok(n_wrong == 0, "%s: seven steps, one after the other: %s", name, err.message);
    qn_view_release(&u);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_fault(int engine, const char *name)
{
    qn_kernel *k = kernel_of(GATHER_TEXT);
    char first[QN_MESSAGE_BYTES] = "";
    for (int threads = 1; threads <= 8; threads *= 2) {
        const qn_context_options options = {.bytes = sizeof options, .n_threads = threads};
        qn_context *c = context_with(&options);
        int64_t n = 300000;
        qn_view x = vector_of(c, "x", QN_F64, 10), index = vector_of(c, "index", QN_I64, n),
                y = vector_of(c, "y", QN_F64, n);
        ((int64_t *)index.data)[290001] = -7;
        ((int64_t *)index.data)[150002] = 11;
        ((int64_t *)index.data)[150003] = 12;
        const qn_options o = {.bytes = sizeof o, .engine = engine, .executor = QN_THREADS};
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&index), qn_arg_view(&y)};
        qn_error err = {0};
        tap_ok(qn_launch(c, k, 3, args, &o, &err) == QN_ERR_BOUNDS, "%s: a fault with %d threads",
               name, threads);
        tap_contains(err.message, "index 11 not in [0,10)", "is the first in iteration order");
        if (threads == 1)
            snprintf(first, sizeof first, "%s", err.message);
        tap_is_str(err.message, first, "and the same message");
        qn_view_release(&x);
        qn_view_release(&index);
        qn_view_release(&y);
        qn_context_release(c);
    }
    qn_kernel_release(k);
}

typedef struct host_pool {
    int64_t n_calls, n_chunks;
    int max_threads;
} host_pool;

/** Runs the chunks backwards, one after the other. */
static void host_for(void *pool, int64_t n_chunks, int max_threads,
                     void (*fn)(void *arg, int64_t chunk), void *arg)
{
    host_pool *p = pool;
    p->n_calls++;
    p->n_chunks += n_chunks;
    p->max_threads = max_threads;
    for (int64_t i = n_chunks - 1; i >= 0; i--)
        fn(arg, i);
}

static void test_host_pool(void)
{
    host_pool pool = {0};
    const qn_context_options options = {.bytes = sizeof options,
                                        .n_threads = 4,
                                        .parallel_for = host_for,
                                        .parallel_pool = &pool,
                                        .default_executor = QN_THREADS};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, MANY), y = vector_of(c, "y", QN_F32, MANY);
    fill_f32(&x, 1, 1);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .max_threads = 3};
    qn_call *call = NULL;
    tap_ok(qn_launch(c, k, 2, args, &o, NULL) == QN_OK &&
               memcmp(x.data, y.data, MANY * sizeof(float)) == 0,
           "the host's parallel_for runs the chunks in its own order");
    tap_ok(pool.n_calls == 1 && pool.n_chunks > 1 && pool.max_threads == 3,
           "it is called once, with the hint");
    qn_prepare(c, k, 2, args, &o, &call, NULL);
    qn_context_release(c);
    tap_ok(qn_run(call, NULL) == QN_OK && pool.n_calls == 1,
           "and not after the context is released");
    qn_call_release(call);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

/** A product whose lanes have a few steps only is divided in both dimensions. */
static void test_both_dimensions(void)
{
    enum { ROWS = 203, COLUMNS = 60, INNER = 50, STEP = 8 };
    host_pool pool = {0};
    const qn_context_options options = {
        .bytes = sizeof options, .n_threads = 16, .parallel_for = host_for, .parallel_pool = &pool};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(
        "kernel \"product\" { view a: f64[2]; view b: f64[2]; view c: f64[2];\n"
        "%z: i64 = const 0; %m: i64 = extent c, 0; %n: i64 = extent c, 1; %p: i64 = extent a, 1;\n"
        "%i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n; %k: i64 = reduction %z, %p;\n"
        "%s: f64 = reduce sum over %k { %a: f64 = load a[%i, %k]; %b: f64 = load b[%k, %j];\n"
        "%t: f64 = mul %a, %b; yield %t; }; store c[%i, %j], %s; }");
    const int64_t extents[3][2] = {{ROWS, INNER}, {INNER, COLUMNS}, {ROWS, COLUMNS}};
    qn_view v[3];
    double *data[3];
    for (int i = 0; i < 3; i++) {
        qn_view_new(c, "m", QN_F64, 2, extents[i], &v[i], NULL);
        data[i] = v[i].data;
        for (int64_t n = 0; n < extents[i][0] * extents[i][1]; n++)
            data[i][n] = 0.3 * (double)(n % 17) - 1;
    }
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1]), qn_arg_view(&v[2])};
    qn_options o = {
        .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .executor = QN_SERIAL, .isa = QN_ISA_V3};
    o.plan = PLAN_WITH(.lane_dim = 2, .width = 4, .unroll = 2, .jam_dim = 1, .jam = 4, .chunk = 1);
    static double serial[ROWS * COLUMNS];
    bool is_run = qn_launch(c, k, 3, args, &o, NULL) == QN_OK;
    memcpy(serial, data[2], sizeof serial);
    memset(data[2], 0, sizeof serial);
    o.executor = QN_THREADS;
    is_run = is_run && qn_launch(c, k, 3, args, &o, NULL) == QN_OK;
    tap_ok(is_run && memcmp(serial, data[2], sizeof serial) == 0,
           "a product on 16 threads is the serial one");
    tap_ok(pool.n_chunks == 16, "in %lld chunks, while the lanes have %d steps",
           (long long)pool.n_chunks, (COLUMNS + STEP - 1) / STEP);
    for (int i = 0; i < 3; i++)
        qn_view_release(&v[i]);
    qn_kernel_release(k);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- several threads of the host */

typedef struct shared {
    qn_context *c;
    qn_kernel *kernel[4];
    int engine, number, n_failed;
} shared;

static void *hammer(void *arg)
{
    shared *s = arg;
    for (int i = 0; i < 120; i++) {
        int64_t n = 64 + 8 * (i % 20);
        const qn_kernel *k = s->kernel[(i + s->number) % 2];
        bool is_saxpy = k == s->kernel[0];
        qn_view x = vector_of(s->c, "x", QN_F32, n), y = vector_of(s->c, "y", QN_F32, n);
        fill_f32(&x, 1, 1);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
        const qn_options o = {.bytes = sizeof o, .engine = s->engine, .executor = 1 + i % 2};
        qn_code *f = NULL;
        s->n_failed += qn_launch(s->c, k, is_saxpy ? 3 : 2, args, &o, NULL) != QN_OK;
        s->n_failed += ((float *)y.data)[n - 1] != (float)n * (is_saxpy ? 2 : 1);
        if (i % 10 == 0) {
            s->n_failed += qn_specialize(s->c, k, is_saxpy ? 3 : 2, args, &o, &f, NULL) != QN_OK;
            qn_code_release(f);
            counters_of(s->c);
            qn_context_history(s->c, NULL, 0);
        }
        qn_view_release(&x);
        qn_view_release(&y);
    }
    return NULL;
}

static void test_shared_context(int engine, const char *name, int64_t cache_bytes)
{
    const qn_context_options options = {
        .bytes = sizeof options, .n_threads = 2, .cache_bytes = cache_bytes};
    shared base = {.c = context_with(&options),
                   .kernel = {kernel_of(SAXPY_TEXT), kernel_of(COPY_TEXT)},
                   .engine = engine};
    shared each[4];
    pthread_t thread[4];
    int n_failed = 0;
    for (int i = 0; i < 4; i++) {
        each[i] = base;
        each[i].number = i;
        pthread_create(&thread[i], NULL, hammer, &each[i]);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        n_failed += each[i].n_failed;
    }
    qn_counters n = counters_of(base.c);
    tap_is_int(n_failed, 0, name);
    tap_is_int(n.launches, 480, "all launches are counted");
    if (engine == QN_ENGINE_NATIVE && cache_bytes == 0)
        tap_ok(n.compiles <= 40, "no key is compiled twice (%" PRId64 " compiles)", n.compiles);
    qn_kernel_release(base.kernel[0]);
    qn_kernel_release(base.kernel[1]);
    qn_context_release(base.c);
}

/** Four threads that want one key at the same time. */
static void *launch_once(void *arg)
{
    shared *s = arg;
    qn_view x = vector_of(s->c, "x", QN_F32, 100), y = vector_of(s->c, "y", QN_F32, 100);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = s->engine};
    s->n_failed += qn_launch(s->c, s->kernel[1], 2, args, &o, NULL) != QN_OK;
    qn_view_release(&x);
    qn_view_release(&y);
    return NULL;
}

static void test_compile_once(void)
{
    shared base = {.c = context_with(NULL),
                   .kernel = {NULL, kernel_of(COPY_TEXT)},
                   .engine = QN_ENGINE_NATIVE};
    shared each[8];
    pthread_t thread[8];
    int n_failed = 0;
    for (int i = 0; i < 8; i++) {
        each[i] = base;
        pthread_create(&thread[i], NULL, launch_once, &each[i]);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(thread[i], NULL);
        n_failed += each[i].n_failed;
    }
    tap_ok(n_failed == 0 && counters_of(base.c).compiles == 1,
           "eight threads that miss one key compile it once");
    qn_kernel_release(base.kernel[1]);
    qn_context_release(base.c);
}

/* ---------------------------------------------------------------- signals */

static pthread_t main_thread;
static volatile sig_atomic_t n_signals, n_strayed;

static void on_signal(int number)
{
    (void)number;
    n_signals++;
    n_strayed += !pthread_equal(pthread_self(), main_thread);
}

static void test_signals(void)
{
    const qn_context_options options = {
        .bytes = sizeof options, .n_threads = 3, .default_executor = QN_THREADS};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, MANY), y = vector_of(c, "y", QN_F32, MANY);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    main_thread = pthread_self();
    signal(SIGUSR1, on_signal);
    int n_failed = 0;
    for (int i = 0; i < 50; i++) {
        kill(getpid(), SIGUSR1);
        n_failed += qn_launch(c, k, 2, args, NULL, NULL) != QN_OK;
    }
    signal(SIGUSR1, SIG_DFL);
    tap_ok(n_failed == 0 && n_signals > 0 && n_strayed == 0,
           "signals stay with the host's threads");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_engine(int engine, const char *name)
{
    test_same_result(engine, name);
    test_sequential(engine, name);
    test_fault(engine, name);
    test_shared_context(engine, name, 0);
}

int main(void)
{
    char reason[600];
    test_engine(QN_ENGINE_INTERP, "interpreter");
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_engine(QN_ENGINE_NATIVE, "x86");
    test_shared_context(QN_ENGINE_NATIVE, "x86, a small cache", 40000);
    test_compile_once();
    test_host_pool();
    test_both_dimensions();
    test_signals();
    return tap_done();
}
