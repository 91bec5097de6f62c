/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_cancel.c: loops of 2^63 - 1 trips of every kind end when the flag of the launch is set, by
 * another thread or a signal handler, and when its time is over: on every engine, executor and
 * instruction set, in launches and prepared calls, and while code is generated. Without that the
 * program would not end; then an alarm ends it.
 */
#define _DEFAULT_SOURCE
#include "tests/sanitizer.h"
#include "tests/unit/launch.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_SECONDS = 100, N = 37 };

#define HEAD                                                                                       \
    "{\n view y: i64[1] atomic; scalar n: i64;\n %z: i64 = const 0; %one: i64 = const 1; %n: i64 " \
    "= param n;\n"                                                                                 \
    " %six: i64 = const 6; %f: i64 = shr %n, %six;\n"
#define ROWS " %e: i64 = extent y, 0; %i: i64 = parallel %z, %e;\n"
#define SUM(order, over, dim)                                                                      \
    " %s: i64 = reduce sum " order " over " over " {\n  %v: i64 = mul " dim ", " dim               \
    ";\n  yield %v;\n };\n"

/** A kernel that does not end; n is the scalar. */
static const struct endless {
    const char *name, *text;
} kernels[] = {
    {"for", HEAD ROWS " %r: i64 = for %k: i64 = %z to %n step 1 (%x: i64 = %z) {\n  %w: i64 = xor "
                      "%x, %k;\n  yield %w;\n };\n"
                      " store y[%i], %r;\n}\n"},
    {"for, step 2", HEAD ROWS
     " %r: i64 = for %k: i64 = %z to %n step 2 (%x: i64 = %z) {\n  %w: i64 = xor %x, %k;\n"
     "  yield %w;\n };\n store y[%i], %r;\n}\n"},
    {"for of more trips than a signed number is", HEAD ROWS
     " %b: i64 = sub %z, %n; %r: i64 = for %k: i64 = %b to %n step 1 (%x: i64 = %z) {\n"
     "  %w: i64 = xor %x, %k;\n  yield %w;\n };\n store y[%i], %r;\n}\n"},
    {"for, trips of lanes differ",
     HEAD ROWS " %m: i64 = sub %n, %i;\n %r: i64 = for %k: i64 = %i to %m step 1 (%x: i64 = %z) {\n"
               "  %w: i64 = xor %x, %k;\n  yield %w;\n };\n store y[%i], %r;\n}\n"},
    {"for of loads and stores", HEAD ROWS
     " for %k: i64 = %z to %n step 1 () {\n  %w: i64 = load y[%i]; %u: i64 = add %w, %k;\n"
     "  store y[%i], %u;\n  yield;\n };\n}\n"},
    {"for of loops without a trip",
     HEAD ROWS " %r: i64 = for %k: i64 = %z to %n step 1 (%x: i64 = %z) {\n"
               "  %q: i64 = for %j: i64 = %n to %z step 1 (%p: i64 = %x) {\n   %w: i64 = xor %p, "
               "%j;\n   yield %w;\n  };\n"
               "  yield %q;\n };\n store y[%i], %r;\n}\n"},
    {"for in for in for", HEAD ROWS " %three: i64 = const 3; %m: i64 = min %n, %three;\n"
                                    " %r: i64 = for %k: i64 = %z to %n step 1 (%x: i64 = %z) {\n"
                                    "  %q: i64 = for %j: i64 = %z to %m step 1 (%p: i64 = %x) {\n"
                                    "   %t: i64 = for %l: i64 = %z to %m step 1 (%o: i64 = %p) {\n "
                                    "   %w: i64 = xor %o, %l;\n    yield %w;\n   };\n"
                                    "   yield %t;\n  };\n  yield %q;\n };\n store y[%i], %r;\n}\n"},
    {"while", HEAD ROWS
     " %r: i64 = while max %n (%x: i64 = %z) {\n  %c: bool = lt %x, %n;\n  yield %c;\n } do {\n"
     "  %w: i64 = add %x, %one;\n  yield %w;\n };\n store y[%i], %r;\n}\n"},
    {"while, trips of lanes differ", HEAD ROWS
     " %r: i64 = while max %n (%x: i64 = %i) {\n  %c: bool = lt %x, %n;\n  yield %c;\n } do {\n"
     "  %w: i64 = add %x, %one;\n  yield %w;\n };\n store y[%i], %r;\n}\n"},
    {"domain", HEAD " %i: i64 = parallel %z, %n;\n %o: i64 = atomic sum y[%z], %i;\n}\n"},
    {"domain of two dimensions", HEAD
     " %b: i64 = const 2147483648; %m: i64 = min %n, %b;\n %i: i64 = parallel %z, %m;\n"
     " %j: i64 = parallel %z, %m;\n %p: i64 = add %i, %j;\n %o: i64 = atomic sum y[%z], %p;\n}\n"},
    {"domain of short rows", HEAD
     " %b: i64 = const 3; %m: i64 = min %n, %b;\n %i: i64 = parallel %z, %f;\n"
     " %j: i64 = parallel %z, %m;\n %p: i64 = add %i, %j;\n %o: i64 = atomic sum y[%z], %p;\n}\n"},
    {"sequential",
     HEAD " %e: i64 = extent y, 0; %t: i64 = sequential %z, %f;\n %i: i64 = parallel %z, %e;\n"
          " %w: i64 = add %t, %i;\n store y[%i], %w;\n}\n"},
    {"two sequential dimensions",
     HEAD " %b: i64 = const 2147483648; %m: i64 = min %n, %b;\n %e: i64 = extent y, 0;\n"
          " %d: i64 = const 33554432; %q: i64 = min %n, %d;\n %t: i64 = sequential %z, %m; %u: i64 "
          "= sequential %z, %q;\n %i: i64 = parallel %z, %e;\n"
          " %v: i64 = add %t, %u; %w: i64 = add %v, %i;\n store y[%i], %w;\n}\n"},
    {"reduce, in order",
     HEAD " %e: i64 = extent y, 0; %i: i64 = parallel %z, %e;\n %p: i64 = reduction %z, %f;\n" SUM(
         "ordered", "%p", "%p") " store y[%i], %s;\n}\n"},
    {"reduce in blocks",
     HEAD " %e: i64 = extent y, 0; %i: i64 = parallel %z, %e;\n %p: i64 = reduction %z, %f;\n"
          " %s: f64 = reduce sum indexed over %p {\n  %v: f64 = cast %p;\n  yield %v;\n };\n"
          " %r: i64 = cast %s; store y[%i], %r;\n}\n"},
    {"reduce in stripes",
     HEAD " %e: i64 = extent y, 0; %i: i64 = parallel %z, %e;\n %p: i64 = reduction %z, %f;\n"
          " %s: f64 = reduce sum striped over %p {\n  %v: f64 = cast %p;\n  yield %v;\n };\n"
          " %r: i64 = cast %s; store y[%i], %r;\n}\n"},
    {"reduce of two dimensions",
     HEAD " %b: i64 = const 3; %m: i64 = min %n, %b;\n %e: i64 = extent y, 0; %i: i64 = parallel "
          "%z, %e;\n"
          " %d: i64 = const 134217728; %c: i64 = min %n, %d;\n"
          " %p: i64 = reduction %z, %c; %q: i64 = reduction %z, %c;\n" SUM(
              "ordered", "%p, %q", "%q") " %t: i64 = add %s, %m;\n store y[%i], %t;\n}\n"},
};
enum { N_KERNELS = sizeof kernels / sizeof kernels[0] };

/** Ways to run them. */
static const struct way {
    const char *name;
    qn_options o;
    bool is_prepared;
} ways[] = {
    {"interpreter",
     {.bytes = sizeof(qn_options), .engine = QN_ENGINE_INTERP, .executor = QN_SERIAL},
     false},
    {"v3",
     {.bytes = sizeof(qn_options),
      .engine = QN_ENGINE_NATIVE,
      .executor = QN_SERIAL,
      .isa = QN_ISA_V3},
     false},
    {"v3, exact",
     {.bytes = sizeof(qn_options),
      .engine = QN_ENGINE_NATIVE,
      .executor = QN_SERIAL,
      .isa = QN_ISA_V3,
      .constant_scalars = 1},
     true},
    {"v4",
     {.bytes = sizeof(qn_options),
      .engine = QN_ENGINE_NATIVE,
      .executor = QN_SERIAL,
      .isa = QN_ISA_V4},
     true},
    {"v4, exact",
     {.bytes = sizeof(qn_options),
      .engine = QN_ENGINE_NATIVE,
      .executor = QN_SERIAL,
      .isa = QN_ISA_V4,
      .constant_scalars = 1},
     false},
    {"threads",
     {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .executor = QN_THREADS},
     false},
    {"threads, prepared, dynamic",
     {.bytes = sizeof(qn_options),
      .engine = QN_ENGINE_NATIVE,
      .executor = QN_THREADS,
      .specialize = QN_SPECIALIZE_DYNAMIC},
     true},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void sleep_ms(int n)
{
    const struct timespec t = {.tv_sec = n / 1000, .tv_nsec = n % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* ---------------------------------------------------------------- who cancels */

static volatile int32_t flag;
static _Atomic double set_at;

/** As a caller would write it while a launch may read it. */
static void set(int32_t value)
{
    __atomic_store_n(&flag, value, __ATOMIC_RELAXED);
}

static void *set_flag(void *delay)
{
    sleep_ms(*(const int *)delay);
    set_at = now_ms();
    set(1);
    return NULL;
}

static void on_signal(int number)
{
    (void)number;
    set(1);
}

typedef struct setup {
    qn_context *c;
    qn_view y;
    double worst_ms; /* from the cancel to the return */
} setup;

static qn_status run(const setup *s, const qn_kernel *k, const qn_options *o, bool is_prepared,
                     int64_t n, qn_error *err)
{
    const qn_arg args[] = {qn_arg_view(&s->y), qn_arg_int(QN_I64, n)};
    if (!is_prepared)
        return qn_launch(s->c, k, 2, args, o, err);
    qn_call *call = NULL;
    qn_status status = qn_prepare(s->c, k, 2, args, o, &call, err);
    if (status == QN_OK)
        status = qn_run(call, err);
    qn_call_release(call);
    return status;
}

/** One kernel in one way, ended by a flag and by its time. */
static bool ends(setup *s, const qn_kernel *k, const struct way *w, char *why, size_t bytes)
{
    qn_options o = w->o;
    qn_error err = {0};
    pthread_t thread;
    int delay = 2;
    if (run(s, k, &o, w->is_prepared, 2, &err)) {
        snprintf(why, bytes, "with n = 2: %s", err.message);
        return false;
    }
    o.cancel = &flag;
    set(0);
    pthread_create(&thread, NULL, set_flag, &delay);
    qn_status by_flag = run(s, k, &o, w->is_prepared, INT64_MAX, &err);
    double ms = now_ms() - set_at;
    pthread_join(thread, NULL);
    s->worst_ms = ms > s->worst_ms ? ms : s->worst_ms;
    snprintf(why, bytes, "by a flag: %s, after %.1f ms", err.message, ms);
    if (by_flag != QN_ERR_CANCELLED)
        return false;
    o.cancel = NULL;
    o.timeout_ns = 2000000;
    double begin = now_ms();
    qn_status by_time = run(s, k, &o, w->is_prepared, INT64_MAX, &err);
    ms = now_ms() - begin - 2;
    s->worst_ms = ms > s->worst_ms ? ms : s->worst_ms;
    snprintf(why, bytes, "by time: %s, after %.1f ms", err.message, ms);
    return by_time == QN_ERR_CANCELLED;
}

static void test_kernels(setup *s)
{
    char reason[QN_MESSAGE_BYTES];
    bool has = has_x86(reason, sizeof reason);
    for (int i = 0; i < N_KERNELS; i++) {
        char text[2048], why[QN_MESSAGE_BYTES + 64] = "";
        snprintf(text, sizeof text, "kernel \"endless\" %s", kernels[i].text);
        qn_kernel *k = kernel_of(text);
        int n = 0;
        for (int w = 0; k && w < N_WAYS; w++) {
            if ((w && !has) || (ways[w].o.isa == QN_ISA_V4 && !__builtin_cpu_supports("avx512f")))
                continue;
            bool ended = ends(s, k, &ways[w], why, sizeof why);
            n += ended;
            if (!ended)
                tap_ok(false, "%s, %s: %s", kernels[i].name, ways[w].name, why);
        }
        tap_ok(n > 0, "%s: ended in %d ways", kernels[i].name, n);
        qn_kernel_release(k);
    }
    tap_note("longest time from cancel to return: %.1f ms", s->worst_ms);
}

/* ---------------------------------------------------------------- flags and limits */

static const char count_text[] =
    "kernel \"count\" {\n view y: i64[1]; scalar n: i64;\n %z: i64 = const 0; %one: i64 = const "
    "1;\n"
    " %n: i64 = param n; %e: i64 = extent y, 0; %i: i64 = parallel %z, %e;\n"
    " %r: i64 = for %k: i64 = %z to %n step 1 (%x: i64 = %i) {\n  %w: i64 = add %x, %one;\n"
    "  yield %w;\n };\n store y[%i], %r;\n}\n";

static bool counted(const setup *s, int64_t n)
{
    for (int i = 0; i < N; i++)
        if (((int64_t *)s->y.data)[i] != n + i)
            return false;
    return true;
}

static void test_signal(setup *s, const qn_kernel *k, const qn_options *o)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 3000}};
    qn_error err = {0};
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &soon, NULL);
    tap_ok(run(s, k, o, false, INT64_MAX, &err) == QN_ERR_CANCELLED,
           "a signal handler may set the flag");
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE_SECONDS);
}

static void test_flag(setup *s)
{
    qn_kernel *k = kernel_of(count_text);
    qn_error err = {0};
    for (int w = 0; w < 2; w++) {
        qn_options o = {
            .bytes = sizeof o, .engine = w ? QN_ENGINE_AUTO : QN_ENGINE_INTERP, .cancel = &flag};
        const qn_arg args[] = {qn_arg_view(&s->y), qn_arg_int(QN_I64, 5)};
        qn_call *call = NULL;
        qn_code *code = NULL;
        set(0);
        memset(s->y.data, 0xff, N * sizeof(int64_t));
        tap_ok(qn_prepare(s->c, k, 2, args, &o, &call, &err) == QN_OK,
               "a call with a flag is prepared: %s", err.message);
        set(-1);
        tap_ok(qn_run(call, &err) == QN_ERR_CANCELLED,
               "its run does not start while the flag is set: %s", err.message);
        tap_ok(qn_launch(s->c, k, 2, args, &o, &err) == QN_ERR_CANCELLED, "nor does a launch: %s",
               err.message);
        tap_ok(qn_specialize(s->c, k, 2, args, &o, &code, &err) == QN_ERR_CANCELLED,
               "nor a compile: %s", err.message);
        tap_ok(((int64_t *)s->y.data)[0] == -1, "nothing is written then");
        set(0);
        tap_ok(qn_run(call, &err) == QN_OK && counted(s, 5),
               "a run after the flag is cleared is whole");
        o.timeout_ns = INT64_MAX;
        tap_ok(run(s, k, &o, true, 100000, &err) == QN_OK && counted(s, 100000),
               "long enough a time limit ends nothing");
        o.timeout_ns = -1;
        tap_ok(qn_launch(s->c, k, 2, args, &o, &err) == QN_ERR_ARGUMENT &&
                   strstr(err.message, "timeout_ns: -1"),
               "a negative time limit: %s", err.message);
        o.timeout_ns = 1;
        tap_ok(run(s, k, &o, false, INT64_MAX, &err) == QN_ERR_CANCELLED &&
                   strstr(err.message, "time limit"),
               "the message says that it was the time: %s", err.message);
        o.timeout_ns = 60 * INT64_C(1000000000);
        pthread_t thread;
        int delay = 5;
        pthread_create(&thread, NULL, set_flag, &delay);
        tap_ok(run(s, k, &o, false, INT64_MAX, &err) == QN_ERR_CANCELLED &&
                   !strstr(err.message, "time limit"),
               "a flag counts beside a time limit: %s", err.message);
        pthread_join(thread, NULL);
        set(0);
        o.timeout_ns = 0;
        if (IS_THREAD_SANITIZED)
            tap_skip("the thread sanitizer holds signals back while generated code runs");
        else
            test_signal(s, k, &o);
        qn_call_release(call);
    }
    set(0);
    qn_kernel_release(k);
}

/** A child has no thread for time limits at first. */
static void test_fork(setup *s)
{
    qn_kernel *k = kernel_of(count_text);
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP, .timeout_ns = 2000000};
    fflush(stdout);
    pid_t child = IS_THREAD_SANITIZED ? -1 : fork();
    if (child == 0) {
        alarm(PATIENCE_SECONDS);
        _exit(run(s, k, &o, false, INT64_MAX, NULL) == QN_ERR_CANCELLED ? 0 : 1);
    }
    int status = 1;
    if (IS_THREAD_SANITIZED) {
        tap_skip("the thread sanitizer refuses threads in a child");
    } else {
        waitpid(child, &status, 0);
        tap_is_int(status, 0, "time limits work in a child of fork");
    }
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- compiles */

/** A kernel whose compile takes some time: a chain of divisions. */
static qn_kernel *slow_kernel(int n_ops)
{
    qn_builder *b = qn_builder_new("slow", 0);
    qn_param y = qn_view_param(b, "y", QN_I64, 1, 0);
    qn_val n = qn_scalar_param(b, "n", QN_I64), i = qn_parallel_over(b, y, 0), v = n;
    for (int j = 0; j < n_ops; j++)
        v = qn_xor(b, qn_mul(b, v, i), qn_add(b, v, qn_index(b, j)));
    qn_store(b, y, 1, &i, v);
    qn_kernel *k = NULL;
    qn_error err = {0};
    tap_ok(qn_finish(b, &k, &err) == QN_OK, "a large kernel: %s", err.message);
    qn_builder_release(b);
    return k;
}

typedef struct other {
    const setup *s;
    const qn_kernel *k;
    qn_status status;
    qn_error err;
} other;

static void *launch_other(void *arg)
{
    other *x = arg;
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    sleep_ms(2);
    x->status = run(x->s, x->k, &o, false, 3, &x->err);
    return NULL;
}

/** A launch is cancelled while its code is generated; one that waits for the same code is not. */
static void test_compile(setup *s)
{
    char reason[QN_MESSAGE_BYTES];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return;
    }
    qn_kernel *k = slow_kernel(2000);
    qn_options o = {.bytes = sizeof o, .cancel = &flag};
    qn_error err = {0};
    pthread_t setter, waiter;
    other x = {.s = s, .k = k};
    int delay = 6;
    set(0);
    pthread_create(&setter, NULL, set_flag, &delay);
    pthread_create(&waiter, NULL, launch_other, &x);
    qn_status status = run(s, k, &o, false, 3, &err);
    double ms = now_ms() - set_at;
    tap_ok(status == QN_ERR_CANCELLED, "cancelled while code is generated: %s", err.message);
    tap_note("returned after %.1f ms", ms);
    pthread_join(setter, NULL);
    pthread_join(waiter, NULL);
    tap_ok(x.status == QN_OK, "another launch that needs the same code gets it: %s", x.err.message);
    set(0);
    tap_ok(run(s, k, &o, false, 3, &err) == QN_OK, "and so does the first one, later: %s",
           err.message);
    qn_kernel_release(k);
}

/** A hook that counts its calls and cancels from one of them on. */
typedef struct asked {
    _Atomic int n_calls;
    int last;             /* the call that cancels; 0: none */
    atomic_bool is_mine;  /* called by the thread that launches */
    pthread_t launcher;
} asked;

static int32_t ask(void *arg)
{
    asked *x = arg;
    int n = atomic_fetch_add(&x->n_calls, 1) + 1;
    if (pthread_equal(pthread_self(), x->launcher))
        atomic_store(&x->is_mine, true);
    return x->last && n >= x->last;
}

/** A hook ends launches and runs, on every way to run; the launch has it not called any more. */
static void test_hook(setup *s)
{
    qn_kernel *k = kernel_of(count_text);
    for (int i = 0; i < 6; i++) {
        bool is_prepared = i % 2;
        asked x = {.last = 3, .launcher = pthread_self()};
        qn_options o = {.bytes = sizeof o,
                        .engine = i < 2 ? QN_ENGINE_INTERP : QN_ENGINE_AUTO,
                        .cancel_hook = ask,
                        .cancel_arg = &x,
                        .executor = i < 4 ? QN_SERIAL : QN_THREADS};
        qn_error err = {0};
        qn_status status = run(s, k, &o, is_prepared, INT64_MAX, &err);
        int n = atomic_load(&x.n_calls);
        tap_ok(status == QN_ERR_CANCELLED && !strstr(err.message, "time limit"),
               "a hook cancels way %d: %s", i, err.message);
        tap_ok(n >= x.last && !atomic_load(&x.is_mine), "by call %d, of another thread", n);
        sleep_ms(20);
        tap_is_int(atomic_load(&x.n_calls), n, "after the launch it is not called");
        x.last = 0;
        o.timeout_ns = 30000000;
        tap_ok(run(s, k, &o, is_prepared, INT64_MAX, &err) == QN_ERR_CANCELLED &&
                   strstr(err.message, "time limit") && atomic_load(&x.n_calls) > n,
               "a time limit counts beside a hook: %s", err.message);
        o.timeout_ns = 0;
        tap_ok(run(s, k, &o, is_prepared, 100, &err) == QN_OK && counted(s, 100),
               "a hook that says no ends nothing: %s", err.message);
    }
    qn_kernel_release(k);
}

/** A hook ends the wait for code. */
static void test_hook_of_compile(setup *s)
{
    char reason[QN_MESSAGE_BYTES];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return;
    }
    qn_kernel *k = slow_kernel(2001);
    asked x = {.last = 1, .launcher = pthread_self()};
    const qn_options o = {.bytes = sizeof o, .cancel_hook = ask, .cancel_arg = &x};
    qn_error err = {0};
    tap_ok(run(s, k, &o, false, 3, &err) == QN_ERR_CANCELLED,
           "a hook cancels while code is generated: %s", err.message);
    qn_kernel_release(k);
}

int main(void)
{
    alarm(PATIENCE_SECONDS);
    const qn_context_options o = {.bytes = sizeof o, .n_threads = 2};
    setup s = {.c = context_with(&o)};
    s.y = vector_of(s.c, "y", QN_I64, N);
    test_kernels(&s);
    test_flag(&s);
    test_fork(&s);
    test_compile(&s);
    test_hook(&s);
    test_hook_of_compile(&s);
    qn_view_release(&s.y);
    qn_context_release(s.c);
    return tap_done();
}
