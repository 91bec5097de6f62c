/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_trial.c: versions that are tried on real launches: with constants for scalars that never
 * changed, for prepared calls, and on a GPU. A scalar that changes after all never gives a wrong
 * result, whatever was decided before. What is kept depends on times alone, which some of these
 * tests give themselves.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "tests/sanitizer.h"
#include "tests/unit/gpu.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

/** y[i] = x[i] / d */
#define DIVIDE_TEXT                                                                                \
    "kernel \"divide\" {\n view x: i32[1]; view y: i32[1]; scalar d: i32;\n %0: i64 = const 0;\n"  \
    " %1: i64 = extent y, 0; %i: i64 = parallel %0, %1; %d: i32 = param d;\n"                      \
    " %a: i32 = load x[%i]; %q: i32 = div %a, %d; store y[%i], %q;\n}\n"
/** y[i] = x[i] / d for i below n */
#define PART_TEXT                                                                                  \
    "kernel \"part\" {\n view x: i32[1]; view y: i32[1]; scalar d: i32; scalar n: i64;\n"          \
    " %0: i64 = const 0; %n: i64 = param n; %i: i64 = parallel %0, %n; %d: i32 = param d;\n"       \
    " %a: i32 = load x[%i]; %q: i32 = div %a, %d; store y[%i], %q;\n}\n"

/* So many elements, so that a launch takes longer than taking its time. */
enum { N = 40000 };
#define HOUR_NS INT64_C(3600000000000)

/** A version is tried after its compile's time in launches, several times over; sanitizers make
 * compiles slow and code as fast as ever. */
enum { LONGEST_MS = IS_SANITIZED ? 120000 : 20000 };

static qn_error err;

typedef struct job {
    qn_context *c;
    qn_kernel *k;
    qn_view x, y;
    qn_arg args[3];
    int64_t n;
    qn_error *err; /* NULL in threads */
} job;

static void open_views(job *j)
{
    j->n = N;
    j->x = vector_of(j->c, "x", QN_I32, N);
    j->y = vector_of(j->c, "y", QN_I32, N);
    j->args[0] = qn_arg_view(&j->x);
    j->args[1] = qn_arg_view(&j->y);
    int32_t *x = j->x.data;
    for (int i = 0; i < N; i++)
        x[i] = i * 3 - N;
}

static void open_job(job *j, const char *text)
{
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = "off"};
    *j = (job){.c = context_with(&o), .k = kernel_of(text), .err = &err};
    open_views(j);
}

static void close_views(job *j)
{
    qn_view_release(&j->x);
    qn_view_release(&j->y);
}

static void close_job(job *j)
{
    close_views(j);
    qn_kernel_release(j->k);
    qn_context_release(j->c);
}

/** Whether y is x / d in its first n elements and what it was behind them. */
static bool is_divided(const job *j, int32_t d)
{
    const int32_t *x = j->x.data, *y = j->y.data;
    int n_wrong = 0;
    for (int64_t i = 0; i < N; i++)
        n_wrong += y[i] != (i < j->n ? x[i] / d : -7);
    return n_wrong == 0;
}

static void clear(const job *j)
{
    int32_t *y = j->y.data;
    for (int64_t i = 0; i < N; i++)
        y[i] = -7;
}

/** Divides the first n elements; whether that is right. */
static bool divide(job *j, int32_t d, const qn_options *o)
{
    clear(j);
    j->x.layout.dim[0].extent = j->y.layout.dim[0].extent = j->n;
    j->args[2] = qn_arg_int(QN_I32, d);
    return qn_launch(j->c, j->k, 3, j->args, o, j->err) == QN_OK && is_divided(j, d);
}

/** The trial of this kind and state, or NULL. The lock is held. */
static qn_trial *trial_of(const job *j, int kind, int state)
{
    qn_known_kernel *known = qn__cache_kernel(&j->c->cache, j->k);
    for (int i = 0; known && known->trials.of && i < QN_TRIALS; i++) {
        qn_trial *t = &known->trials.of[i];
        if (t->name && t->kind == kind && t->state == state)
            return t;
    }
    return NULL;
}

/** Its name, or 0. */
static uint64_t name_of(const job *j, int kind, int state)
{
    qn__lock(j->c);
    const qn_trial *t = trial_of(j, kind, state);
    uint64_t name = t ? t->name : 0;
    qn__unlock(j->c);
    return name;
}

static const char *explain(job *j)
{
    static char text[8000];
    text[0] = 0;
    (void)qn_explain(j->c, j->k, 3, j->args, NULL, text, sizeof text, NULL, &err);
    return text;
}

static void wait_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---------------------------------------------------------------- scalars */

/** Real launches with one divisor, until both versions were timed. */
static void test_real(void)
{
    job j;
    open_job(&j, DIVIDE_TEXT);
    int n_wrong = 0;
    double end = qn__now_ms() + LONGEST_MS;
    while (counters_of(j.c).trials == 0 && qn__now_ms() < end)
        n_wrong += !divide(&j, 7, NULL);
    qn_counters n = counters_of(j.c);
    tap_ok(n_wrong == 0 && n.trials == 1 && n.compiles == 2,
           "a divisor that never changes is tried as a constant: %s", err.message);
    tap_ok(history_has(j.c, "scalars that never changed: d: ") &&
               history_has(j.c, "relies on scalar d being this one"),
           "the history says why that version was made, and what it is");
    tap_ok(history_has(j.c, n.trials_kept ? "they stay constants" : "they stay arguments"),
           "and what became of it");
    tap_contains(explain(&j),
                 n.trials_kept ? "scalars that never changed: d: the constant version is faster"
                               : "scalars that never changed: d: the constant version was not",
                 "so does qn_explain");
    for (int i = 0; i < 3; i++)
        n_wrong += !divide(&j, 7, NULL);
    n = counters_of(j.c);
    for (int i = 0; i < 20; i++)
        n_wrong += !divide(&j, 7, NULL);
    tap_ok(n_wrong == 0 && counters_of(j.c).hits == n.hits + 20, "then its launches hit");
    close_job(&j);
}

/** Brings the trial of scalars to its turns; its name. */
static uint64_t begin_turns(job *j, int32_t d)
{
    bool is_right = true;
    uint64_t name = 0;
    for (int i = 0; i < 40 && !name; i++) {
        is_right &= divide(j, d, NULL);
        name = name_of(j, QN_TRIAL_OF_SCALARS, QN_TRIAL_NEW);
    }
    for (int i = 0; i < 40 && name_of(j, QN_TRIAL_OF_SCALARS, QN_TRIAL_NEW) == name; i++) {
        qn__trial_record(j->c, j->k, name, HOUR_NS / 1000, 1, 0);
        is_right &= divide(j, d, NULL);
    }
    for (int i = 0; i < 10000 && !name_of(j, QN_TRIAL_OF_SCALARS, QN_TRIAL_TURNS); i++) {
        is_right &= divide(j, d, NULL);
        wait_a_little();
    }
    return is_right ? name : 0;
}

static void record_turns(const job *j, uint64_t name, bool is_faster)
{
    for (int i = 0; i < 2 * QN_TRIAL_PAIRS; i++) {
        qn__trial_record(j->c, j->k, name, 10 + i, 1, 0);
        qn__trial_record(j->c, j->k, name | 1, is_faster ? 5 : 20, 1, 0);
    }
}

/** Times that are given: what stays depends on them alone. Then the scalar changes. */
static void test_decision(bool is_faster)
{
    job j;
    open_job(&j, DIVIDE_TEXT);
    uint64_t name = begin_turns(&j, 7);
    tap_ok(name && counters_of(j.c).compiles == 2, "both versions are there: %s", err.message);
    record_turns(&j, name, is_faster);
    bool is_right = divide(&j, 7, NULL) && divide(&j, 7, NULL);
    qn_counters n = counters_of(j.c);
    tap_ok(is_right && n.trials == 1 && n.trials_kept == is_faster &&
               n.live_functions == 1 + is_faster,
           "%s", is_faster ? "the faster one is kept" : "the slower one is dropped");
    char key[4000] = "";
    qn_code *f = NULL;
    bool has_code = qn_specialize(j.c, j.k, 3, j.args, NULL, &f, &err) == QN_OK;
    qn_code_text(f, QN_DUMP_KEY, key, sizeof key);
    qn_code_release(f);
    tap_ok(has_code && !strstr(key, "scalar d: slot") == is_faster,
           "its divisor is %s", is_faster ? "a constant of the code" : "an argument");
    tap_ok(divide(&j, 5, NULL), "another divisor divides");
    n = counters_of(j.c);
    for (int32_t d = 1; d < 60; d++)
        is_right &= divide(&j, d % 3 ? d : 7, NULL) && divide(&j, -d, NULL);
    tap_ok(is_right, "so does any: %s", err.message);
    tap_ok(counters_of(j.c).hits >= n.hits + 115 && counters_of(j.c).compiles == 2,
           "all by the version that takes the divisor as an argument");
    tap_ok(!strstr(explain(&j), "scalars that never changed"), "which is no candidate any more");
    close_job(&j);
}

/** What is no candidate: a scalar that a pin makes dynamic, and a launch that makes nothing. */
static void test_not_tried(void)
{
    job j;
    open_job(&j, DIVIDE_TEXT);
    const qn_fact_pin pin = {2, QN_PIN_SCALAR, 0, QN_PIN_DYNAMIC, 0};
    const qn_options pinned = {.bytes = sizeof pinned, .n_pins = 1, .pins = &pin},
                     exact = {.bytes = sizeof exact, .specialize = QN_SPECIALIZE_EXACT},
                     never = {.bytes = sizeof never, .compile = QN_COMPILE_NEVER};
    bool is_right = true;
    for (int i = 0; i < 30; i++)
        is_right &= divide(&j, 7, &pinned) && divide(&j, 7, &exact);
    is_right &= divide(&j, 7, &never);
    qn__lock(j.c);
    const qn_known_kernel *known = qn__cache_kernel(&j.c->cache, j.k);
    bool has_trials = known && known->trials.of;
    qn__unlock(j.c);
    tap_ok(is_right && !has_trials, "what the caller decides is not tried: %s", err.message);
    close_job(&j);
}

/** A scalar that decides the domain may be a constant, too. */
static void test_domain(void)
{
    job j;
    open_job(&j, PART_TEXT);
    bool is_right = true;
    qn_arg args[4] = {j.args[0], j.args[1]};
    uint64_t name = 0;
    for (int i = 0; i < 2000 && !name_of(&j, QN_TRIAL_OF_SCALARS, QN_TRIAL_TURNS); i++) {
        args[2] = qn_arg_int(QN_I32, 9);
        args[3] = qn_arg_int(QN_I64, j.n = N - 100);
        clear(&j);
        is_right &= qn_launch(j.c, j.k, 4, args, NULL, &err) == QN_OK && is_divided(&j, 9);
        name = name_of(&j, QN_TRIAL_OF_SCALARS, QN_TRIAL_NEW);
        if (name)
            qn__trial_record(j.c, j.k, name, HOUR_NS / 1000, 1, 0);
        wait_a_little();
    }
    name = name_of(&j, QN_TRIAL_OF_SCALARS, QN_TRIAL_TURNS);
    record_turns(&j, name, true);
    tap_ok(is_right && name && counters_of(j.c).trials_kept == 1, "both scalars are constants: %s",
           err.message);
    for (int64_t n = 1; n < 200; n += 3) {
        args[2] = qn_arg_int(QN_I32, (int32_t)n % 5 + 1);
        args[3] = qn_arg_int(QN_I64, j.n = n * 7);
        clear(&j);
        is_right &= qn_launch(j.c, j.k, 4, args, NULL, &err) == QN_OK &&
                    is_divided(&j, (int32_t)n % 5 + 1);
    }
    tap_ok(is_right, "other numbers of iterations and divisors are right: %s", err.message);
    close_job(&j);
}

typedef struct runner {
    const job *of;
    int32_t d;
    int n_wrong;
} runner;

/** Divides by one number, and now and then by another one. */
static void *run(void *arg)
{
    runner *r = arg;
    job j = {.c = r->of->c, .k = r->of->k};
    open_views(&j);
    for (int i = 0; i < 4000; i++)
        r->n_wrong += !divide(&j, i > 2000 && i % 50 == 0 ? 1 + i % 11 : r->d, NULL);
    close_views(&j);
    return NULL;
}

/** Threads whose divisors are one at first and then differ. */
static void test_threads(void)
{
    enum { THREADS = 3 };
    job j;
    open_job(&j, DIVIDE_TEXT);
    runner r[THREADS];
    pthread_t thread[THREADS];
    int n_started = 0, n_wrong = 0;
    for (int i = 0; i < THREADS; i++) {
        r[i] = (runner){&j, 7, 0};
        n_started += pthread_create(&thread[n_started], NULL, run, &r[i]) == 0;
    }
    for (int i = 0; i < n_started; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++)
        n_wrong += r[i].n_wrong;
    tap_ok(n_started == THREADS && n_wrong == 0,
           "threads whose divisors change while one is tried are right");
    close_job(&j);
}

/* ---------------------------------------------------------------- prepared calls */

/** Runs a call until no trial is open, or that takes too long. */
static int run_until_decided(job *j, qn_call *call, int64_t n_trials, int32_t d)
{
    int n_wrong = 0;
    double end = qn__now_ms() + LONGEST_MS;
    while (counters_of(j->c).trials < n_trials && qn__now_ms() < end) {
        clear(j);
        n_wrong += qn_run(call, &err) != QN_OK || !is_divided(j, d);
    }
    return n_wrong;
}

static void test_prepared_scalar(void)
{
    job j;
    open_job(&j, DIVIDE_TEXT);
    j.args[2] = qn_arg_int(QN_I32, 7);
    qn_call *call = NULL;
    tap_ok(qn_prepare(j.c, j.k, 3, j.args, NULL, &call, &err) == QN_OK, "a call: %s", err.message);
    int n_wrong = run_until_decided(&j, call, 1, 7);
    qn_counters n = counters_of(j.c);
    tap_ok(n_wrong == 0 && n.trials == 1 && n.compiles == 2,
           "its divisor is tried as a constant: %s", err.message);
    for (int32_t d = 1; d < 30; d++) {
        clear(&j);
        n_wrong += qn_call_set_scalar(call, 2, (uint64_t)(uint32_t)-d, &err) != QN_OK ||
                   qn_run(call, &err) != QN_OK || !is_divided(&j, -d);
    }
    tap_ok(n_wrong == 0, "and may be set nevertheless: %s", err.message);
    qn_call_release(call);
    close_job(&j);
}

/** The constant version was kept; a call gets it, and leaves it when the scalar is set. */
static void test_prepared_kept(void)
{
    job j;
    open_job(&j, DIVIDE_TEXT);
    uint64_t name = begin_turns(&j, 7);
    record_turns(&j, name, true);
    qn_call *call = NULL, *second = NULL;
    j.args[2] = qn_arg_int(QN_I32, 7);
    bool is_right = name && qn_prepare(j.c, j.k, 3, j.args, NULL, &call, &err) == QN_OK &&
                    qn_prepare(j.c, j.k, 3, j.args, NULL, &second, &err) == QN_OK;
    clear(&j);
    is_right = is_right && qn_run(call, &err) == QN_OK && is_divided(&j, 7);
    tap_ok(is_right && counters_of(j.c).compiles == 2, "a call runs the constant version: %s",
           err.message);
    const int32_t divisors[] = {3, 7, -2, 7};
    for (int i = 0; i < 4 && is_right; i++) {
        clear(&j);
        is_right = qn_call_set_scalar(call, 2, (uint64_t)(uint32_t)divisors[i], &err) == QN_OK &&
                   qn_run(call, &err) == QN_OK && is_divided(&j, divisors[i]);
        clear(&j);
        is_right = is_right && qn_run(second, &err) == QN_OK && is_divided(&j, 7);
    }
    tap_ok(is_right, "until its scalar is set; other calls keep theirs: %s", err.message);
    qn_call_release(call);
    qn_call_release(second);
    close_job(&j);
}

/** A shape of a kernel whose versions are dynamic, which only a call runs. */
static void test_prepared_shape(void)
{
    job j;
    open_job(&j, DIVIDE_TEXT);
    const qn_fact_pin pin = {2, QN_PIN_SCALAR, 0, QN_PIN_DYNAMIC, 0};
    const qn_options o = {.bytes = sizeof o, .n_pins = 1, .pins = &pin};
    bool is_right = true;
    for (j.n = 100; j.n < 103; j.n++)
        is_right &= divide(&j, 7, &o);
    j.n = N - 1;
    j.x.layout.dim[0].extent = j.y.layout.dim[0].extent = j.n;
    qn_call *call = NULL;
    is_right &= qn_prepare(j.c, j.k, 3, j.args, &o, &call, &err) == QN_OK;
    int n_wrong = is_right ? run_until_decided(&j, call, 1, 7) : 1;
    qn_counters n = counters_of(j.c);
    tap_ok(n_wrong == 0 && n.trials == 1 && n.compiles == 4 && n.dynamic_compiles == 1,
           "a prepared shape gets its exact version on trial: %s", err.message);
    for (int i = 0; i < 3 && n_wrong == 0; i++) {
        clear(&j);
        n_wrong += qn_run(call, &err) != QN_OK || !is_divided(&j, 7);
    }
    tap_ok(n_wrong == 0 &&
               history_has(j.c, n.trials_kept ? "the exact one is kept" : "the exact one is drop"),
           "and then runs the faster one");
    qn_call_release(call);
    close_job(&j);
}

/* ---------------------------------------------------------------- GPUs */

typedef struct gpu_job {
    qn_context *c;
    qn_stream *s;
    qn_kernel *k;
    qn_view x, y;
    qn_options o;
} gpu_job;

static bool launch_gpu(gpu_job *j, int64_t n, qn_call *call)
{
    qn_view x = j->x, y = j->y;
    x.layout.dim[0].extent = y.layout.dim[0].extent = n;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    return (call ? qn_run(call, &err) : qn_launch(j->c, j->k, 2, args, &j->o, &err)) == QN_OK;
}

/** Launches a size, which the stub says takes 1.5 ms each time, until it was tried: in either
 * version, so that the exact one is not faster. */
static void try_on_gpu(gpu_job *j, int64_t n, bool is_prepared)
{
    bool is_right = true;
    qn_view x = j->x, y = j->y;
    x.layout.dim[0].extent = y.layout.dim[0].extent = n;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_call *call = NULL;
    if (is_prepared)
        is_right = qn_prepare(j->c, j->k, 2, args, &j->o, &call, &err) == QN_OK;
    double end = qn__now_ms() + LONGEST_MS;
    int64_t before = counters_of(j->c).trials, n_launches = 0;
    for (; is_right && counters_of(j->c).trials == before && qn__now_ms() < end; n_launches++) {
        is_right = launch_gpu(j, n, call);
        if (n_launches % 8 == 0)
            is_right = is_right && qn_stream_fence(j->s, &err) == QN_OK;
    }
    qn_counters c = counters_of(j->c);
    tap_ok(is_right && c.trials == before + 1 && c.trials_kept == 0,
           "a size is tried by times of the driver's events, %s: %s",
           is_prepared ? "prepared" : "launched", err.message);
    for (int i = 0; i < 3; i++)
        is_right = is_right && launch_gpu(j, n, call);
    tap_ok(is_right && qn_stream_fence(j->s, &err) == QN_OK &&
               history_has(j->c, "takes 1500.000 us in its exact version, 1500.000 us in the"),
           "and the times are those");
    qn_call_release(call);
}

static void test_gpu(void)
{
    const stub_control *stub = stub_open(STUB_PATH);
    const qn_context_options options = {
        .bytes = sizeof options, .disk_cache = "off", .cuda_driver = STUB_PATH};
    gpu_job j = {.c = stub ? context_with(&options) : NULL};
    if (!stub || qn_stream_new(j.c, -1, &j.s, &err) != QN_OK) {
        tap_skip("no stub of a driver");
        return;
    }
    j.o = (qn_options){.bytes = sizeof j.o, .executor = QN_CUDA, .stream = j.s};
    j.k = kernel_of(COPY_TEXT);
    j.x = vector_in(j.c, QN_SPACE_CUDA, j.s, "x", QN_F32, 1000);
    j.y = vector_in(j.c, QN_SPACE_CUDA, j.s, "y", QN_F32, 1000);
    bool is_right = true;
    for (int64_t n = 100; n < 103; n++)
        is_right = is_right && launch_gpu(&j, n, NULL);
    tap_ok(is_right && counters_of(j.c).dynamic_compiles == 1, "a third size is dynamic: %s",
           err.message);
    try_on_gpu(&j, 777, false);
    try_on_gpu(&j, 999, true);
    qn_view_release(&j.x);
    qn_view_release(&j.y);
    qn_kernel_release(j.k);
    qn_stream_release(j.s);
    qn_context_release(j.c);
    tap_ok(is_clean(stub), "all events are given back");
}

int main(void)
{
    char reason[400];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_real();
    test_decision(true);
    test_decision(false);
    test_not_tried();
    test_domain();
    test_threads();
    test_prepared_scalar();
    test_prepared_kept();
    test_prepared_shape();
    test_gpu();
    return tap_done();
}
