/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_policy.c: what QN_SPECIALIZE_AUTO makes of the shapes that a kernel meets: versions whose
 * varying extents are dynamic give the bits of the interpreter for every extent, and their plans
 * suit extents that are not known. Shapes that come back get their exact version, which stays only
 * if it was faster; what is known of shapes is bounded.
 */
#define _GNU_SOURCE
#include "runtime/context.h"
#include "tests/unit/launch.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define PRODUCT_TEXT                                                                               \
    "kernel \"product\" {\n view a: f32[2]; view b: f32[2]; view c: f32[2];\n"                     \
    " %0: i64 = const 0; %1: i64 = extent c, 0; %2: i64 = extent c, 1;\n"                          \
    " %3: i64 = extent a, 1; %i: i64 = parallel %0, %1; %j: i64 = parallel %0, %2;\n"              \
    " %k: i64 = reduction %0, %3;\n %s: f32 = reduce sum over %k {\n"                              \
    " %x: f32 = load a[%i, %k]; %y: f32 = load b[%k, %j]; %p: f32 = mul %x, %y; yield %p;\n };\n"  \
    " store c[%i, %j], %s;\n}\n"

enum { ROWS = 40, COLUMNS = 96, POINTS = 20 };
/* So many elements, 16 MiB in both views, are beyond all caches near a core: a copy takes longer
 * than SHORT_NS of trial.c on any processor. */
enum { LONG = 1 << 21 };

typedef struct job {
    qn_context *c;
    qn_kernel *k;
} job;

static qn_error err;

static job open_job(const char *text)
{
    return (job){context_with(NULL), kernel_of(text)};
}

static void close_job(job *j)
{
    qn_kernel_release(j->k);
    qn_context_release(j->c);
}

static qn_view matrix(float *data, int64_t rows, int64_t columns)
{
    const int64_t extents[] = {rows, columns};
    qn_layout l;
    qn_view v = {0};
    if (qn_layout_right(2, extents, &l, &err) || qn_view_wrap("m", data, QN_F32, &l, 0, &v, &err))
        tap_ok(false, "test view: %s", err.message);
    return v;
}

/** c = a b with so many rows, on code and on the interpreter; whether all bits are those. */
static bool multiply(const job *j, int64_t rows, char *plan, size_t plan_bytes)
{
    static float a[ROWS * POINTS], b[POINTS * COLUMNS], c[2][(ROWS + 1) * COLUMNS];
    for (int i = 0; i < ROWS * POINTS; i++)
        a[i] = (float)(i % 37) * 0.31F - 2;
    for (int i = 0; i < POINTS * COLUMNS; i++)
        b[i] = (float)(i % 41) * 0.17F - 3;
    memset(c, 0, sizeof c);
    bool is_same = true;
    for (int side = 0; side < 2; side++) {
        qn_view x = matrix(a, rows, POINTS), y = matrix(b, POINTS, COLUMNS);
        qn_view z = matrix(c[side], rows, COLUMNS);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_view(&z)};
        const qn_options o = {.bytes = sizeof o,
                              .engine = side ? QN_ENGINE_INTERP : QN_ENGINE_NATIVE};
        qn_code *f = NULL;
        is_same = is_same && qn_launch(j->c, j->k, 3, args, &o, &err) == QN_OK;
        if (side == 0 && plan && qn_specialize(j->c, j->k, 3, args, &o, &f, &err) == QN_OK)
            qn_code_text(f, QN_DUMP_PLAN, plan, plan_bytes);
        qn_code_release(f);
    }
    return is_same && memcmp(c[0], c[1], sizeof c[0]) == 0;
}

/** Rows vary, columns and points do not: the rest of the rows runs in halves of steps. */
static void test_rows(void)
{
    job j = open_job(PRODUCT_TEXT);
    char plan[2000] = "";
    int n_wrong = 0;
    for (int64_t rows = 1; rows <= ROWS; rows++)
        n_wrong += !multiply(&j, rows, NULL, 0);
    for (int64_t rows = 1; rows <= ROWS; rows++)
        n_wrong += !multiply(&j, rows, rows == ROWS ? plan : NULL, sizeof plan);
    tap_ok(n_wrong == 0, "a product of 1 to %d rows has the bits of the interpreter: %s", ROWS,
           err.message);
    tap_is_int(counters_of(j.c).dynamic_compiles, 1, "one version serves most of them");
    tap_contains(plan, "rest tile", "what is left of the rows runs in halves of steps");
    close_job(&j);
}

/* ---------------------------------------------------------------- shapes that come back */

typedef struct vectors {
    qn_context *c;
    qn_kernel *k;
    qn_view x, y;
    qn_arg args[2];
    qn_error *err; /* NULL in threads */
} vectors;

static void open_vectors(vectors *v, const qn_context_options *o)
{
    *v = (vectors){.c = context_with(o), .k = kernel_of(COPY_TEXT), .err = &err};
    v->x = vector_of(v->c, "x", QN_F32, LONG + 1);
    v->y = vector_of(v->c, "y", QN_F32, LONG + 1);
    fill_f32(&v->x, 1, 1);
    v->args[0] = qn_arg_view(&v->x);
    v->args[1] = qn_arg_view(&v->y);
}

static void close_vectors(vectors *v)
{
    qn_view_release(&v->x);
    qn_view_release(&v->y);
    qn_kernel_release(v->k);
    qn_context_release(v->c);
}

/** Copies so many elements, by one thread a struct; whether they, and no more, are there. */
static bool copy(vectors *v, int64_t n, const qn_options *o)
{
    float *y = v->y.data;
    v->x.layout.dim[0].extent = v->y.layout.dim[0].extent = n;
    y[0] = y[n - 1] = y[n] = -1;
    return qn_launch(v->c, v->k, 2, v->args, o, v->err) == QN_OK && y[0] == 1 &&
           y[n - 1] == (float)n && y[n] == -1;
}

/** Copies of two sizes, and of one more, for which the dynamic version is made. */
static int make_dynamic(vectors *v)
{
    int n_failed = 0;
    for (int64_t n = 100; n < 103; n++)
        n_failed += !copy(v, n, NULL);
    return n_failed;
}

/** The trial of the arguments as they are now, or NULL. The lock is held. */
static qn_trial *trial_of(vectors *v, int state)
{
    qn_known_kernel *known = qn__cache_kernel(&v->c->cache, v->k);
    for (int i = 0; known && known->trials.of && i < QN_TRIALS; i++)
        if (known->trials.of[i].name && known->trials.of[i].state == state)
            return &known->trials.of[i];
    return NULL;
}

static bool is_in_state(vectors *v, int state)
{
    qn__lock(v->c);
    bool is = trial_of(v, state) != NULL;
    qn__unlock(v->c);
    return is;
}

/** Real launches: a shape that is launched often is tried, once, and then hits. */
static void test_hot(void)
{
    vectors v;
    open_vectors(&v, NULL);
    int n_wrong = make_dynamic(&v);
    tap_ok(n_wrong == 0 && counters_of(v.c).dynamic_compiles == 1, "a third size is dynamic");
    double end = qn__now_ms() + 20000;
    while (counters_of(v.c).trials == 0 && qn__now_ms() < end)
        n_wrong += !copy(&v, LONG, NULL);
    qn_counters n = counters_of(v.c);
    tap_ok(n_wrong == 0 && n.trials == 1, "a size that comes back is tried: %s", err.message);
    tap_is_int(n.compiles, 4, "with one more version");
    tap_ok(history_has(v.c, "the shape came back: "), "whose reason is told");
    tap_ok(history_has(v.c, n.trials_kept ? "the exact one is kept" : "the exact one is dropped"),
           "and so is what became of it");
    for (int i = 0; i < 3; i++)
        n_wrong += !copy(&v, LONG, NULL);
    n = counters_of(v.c);
    for (int i = 0; i < 100; i++)
        n_wrong += !copy(&v, LONG, NULL);
    qn_counters after = counters_of(v.c);
    tap_ok(n_wrong == 0 && after.hits == n.hits + 100 && after.live_functions == 3 + n.trials_kept,
           "then its launches hit, and the slower version is gone");
    qn__lock(v.c);
    const qn_choice *choice = &qn__cache_kernel(&v.c->cache, v.k)->recent->choice[0];
    bool is_final = choice->is_ready && !choice->is_provisional && !choice->trial;
    qn__unlock(v.c);
    tap_ok(is_final, "and no clock is read for them");
    close_vectors(&v);
}

/** Brings a size to the state in which both versions run in turns; its name. */
static uint64_t begin_turns(vectors *v, int64_t n)
{
    uint64_t name = 0;
    bool is_right = copy(v, n, NULL);
    qn__lock(v->c);
    const qn_trial *t = trial_of(v, QN_TRIAL_NEW);
    name = t && is_right ? t->name : 0;
    qn__unlock(v->c);
    qn__trial_record(v->c, v->k, name, INT64_C(3600000000000), 1, 0);
    for (int i = 0; i < 10000 && !is_in_state(v, QN_TRIAL_TURNS); i++) {
        is_right &= copy(v, n, NULL);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return is_right ? name : 0;
}

/** Times that are given: what stays depends on them alone. */
static void test_decision(bool is_faster)
{
    vectors v;
    open_vectors(&v, NULL);
    int n_wrong = make_dynamic(&v);
    qn__lock(v.c); /* the third size is not to be found as a new one */
    qn_trial *third = trial_of(&v, QN_TRIAL_NEW);
    if (third)
        third->state = QN_TRIAL_USUAL;
    qn__unlock(v.c);
    uint64_t name = begin_turns(&v, 9000);
    tap_ok(n_wrong == 0 && third && name && is_in_state(&v, QN_TRIAL_TURNS),
           "a size that has taken long runs in both versions: %s", err.message);
    for (int i = 0; i < 8; i++) {
        qn__trial_record(v.c, v.k, name, 10 + i, 1, 0);
        qn__trial_record(v.c, v.k, name | 1, is_faster ? 5 + i : 10 + i, 1, 0);
    }
    qn__lock(v.c);
    const qn_known_kernel *known = qn__cache_kernel(&v.c->cache, v.k);
    bool is_learned =
        known->trials.n_tried[0] == 1 && known->trials.saved[0] == (is_faster ? 0.5 : 0);
    qn__unlock(v.c);
    tap_ok(is_learned, "what it saved decides when the next one is tried");
    int64_t kept = counters_of(v.c).trials_kept, live = counters_of(v.c).live_functions;
    tap_ok(kept == is_faster && counters_of(v.c).trials == 1 && live == 4, "%s",
           is_faster ? "the exact one is faster" : "the exact one is not faster");
    for (int i = 0; i < 20; i++)
        n_wrong += !copy(&v, 9000, NULL);
    tap_ok(n_wrong == 0 && is_in_state(&v, is_faster ? QN_TRIAL_SPECIAL : QN_TRIAL_USUAL) &&
               counters_of(v.c).live_functions == 3 + is_faster,
           "%s", is_faster ? "it is kept" : "it is dropped");
    tap_is_int(counters_of(v.c).compiles, 4, "it was made once");
    close_vectors(&v);
}

typedef struct runner {
    qn_context *c;
    const qn_kernel *k;
    int n_wrong;
} runner;

/** Launches one size and some others until a trial has ended. */
static void *run_until_tried(void *arg)
{
    runner *r = arg;
    vectors v = {.c = r->c, .k = (qn_kernel *)(uintptr_t)r->k};
    v.x = vector_of(v.c, "x", QN_F32, LONG + 1);
    v.y = vector_of(v.c, "y", QN_F32, LONG + 1);
    v.args[0] = qn_arg_view(&v.x);
    v.args[1] = qn_arg_view(&v.y);
    fill_f32(&v.x, 1, 1);
    double end = qn__now_ms() + 20000;
    for (int64_t i = 0; counters_of(r->c).trials == 0 && qn__now_ms() < end; i++)
        r->n_wrong += !copy(&v, i % 8 ? LONG : 200 + i % 300, NULL);
    qn_view_release(&v.x);
    qn_view_release(&v.y);
    return NULL;
}

/** Threads that launch the same shapes try one of them together. */
static void test_threads(void)
{
    enum { N = 4 };
    vectors v;
    open_vectors(&v, NULL);
    int n_wrong = make_dynamic(&v), n_started = 0;
    runner r[N];
    pthread_t thread[N];
    for (int i = 0; i < N; i++) {
        r[i] = (runner){v.c, v.k, 0};
        n_started += pthread_create(&thread[n_started], NULL, run_until_tried, &r[i]) == 0;
    }
    for (int i = 0; i < n_started; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < N; i++)
        n_wrong += r[i].n_wrong;
    tap_ok(n_wrong == 0 && n_started == N && counters_of(v.c).trials >= 1,
           "%d threads try a shape together", N);
    close_vectors(&v);
}

/** A launch may say that nothing is made; who only asks for code runs nothing. */
static void test_not_tried(void)
{
    const qn_options never = {.bytes = sizeof never, .compile = QN_COMPILE_NEVER};
    vectors v;
    open_vectors(&v, NULL);
    int n_wrong = make_dynamic(&v);
    n_wrong += !copy(&v, 7000, &never);
    v.x.layout.dim[0].extent = v.y.layout.dim[0].extent = 8000;
    qn_code *f = NULL;
    bool is_there = qn_specialize(v.c, v.k, 2, v.args, NULL, &f, &err) == QN_OK;
    qn__lock(v.c);
    int n = 0;
    const qn_known_kernel *known = qn__cache_kernel(&v.c->cache, v.k);
    for (int i = 0; known->trials.of && i < QN_TRIALS; i++)
        n += known->trials.of[i].name != 0;
    qn__unlock(v.c);
    tap_ok(n_wrong == 0 && is_there && n == 1,
           "where nothing may be made, and for code alone, no shape is on trial");
    qn_code_release(f);
    close_vectors(&v);
}

/** Whether launches are not timed any more after some that took so long each, and before whose time
 * a trial took so much. */
static bool ends_timing(int64_t ns, int64_t before_ns)
{
    vectors v;
    open_vectors(&v, NULL);
    int n_wrong = make_dynamic(&v);
    bool is_right = copy(&v, 200, NULL);
    qn__lock(v.c);
    qn_trial *t = trial_of(&v, QN_TRIAL_NEW);
    uint64_t name = t ? t->name : 0;
    if (t) /* forgets the launch that began the trial */
        t->n_timed[0] = 0, t->recording_ns = 0;
    qn__unlock(v.c);
    for (int i = 0; i < 16; i++)
        qn__trial_record(v.c, v.k, name, ns, 1, before_ns);
    bool is = n_wrong == 0 && is_right && name && is_in_state(&v, QN_TRIAL_USUAL);
    close_vectors(&v);
    return is;
}

static void test_short(void)
{
    enum { LONG_NS = 50000 };
    tap_ok(ends_timing(50, 0), "short launches stay dynamic, and are not timed any more");
    tap_ok(ends_timing(LONG_NS, LONG_NS / 2) && !ends_timing(LONG_NS, 0),
           "nor are launches of which a trial takes a tenth before their time begins");
}

/** Many sizes, once each: neither versions nor what is known of sizes grows. */
static void test_many(void)
{
    enum { MANY = 30000 };
    const qn_context_options small = {.bytes = sizeof small, .cache_bytes = 4 << 20};
    vectors v;
    open_vectors(&v, &small);
    int n_wrong = make_dynamic(&v);
    int64_t most = 0;
    qn_layout l = v.x.layout;
    for (int64_t i = 0; i < MANY; i++) {
        l.dim[0].stride = 1 + i / 15000; /* of two elements at most */
        v.x.layout = v.y.layout = l;
        v.x.layout.dim[0].extent = v.y.layout.dim[0].extent = 1 + i % 9000;
        n_wrong += qn_launch(v.c, v.k, 2, v.args, NULL, &err) != QN_OK;
        int64_t bytes = counters_of(v.c).cache_bytes;
        most = bytes > most ? bytes : most;
    }
    qn_counters n = counters_of(v.c);
    tap_ok(n_wrong == 0 && n.compiles < 12, "%d launches of 18,000 shapes: %" PRId64 " compiles",
           MANY, n.compiles);
    tap_ok(most <= small.cache_bytes, "%" PRId64 " bytes at most are known of them", most);
    close_vectors(&v);
}

/* ---------------------------------------------------------------- what stays, and pins */

/** Rows that lie 128 apart in all shapes: only what varied is dynamic. */
static void test_strides(void)
{
    job j = open_job(PRODUCT_TEXT);
    static float data[3][ROWS * 128];
    char key[4000] = "";
    int n_failed = 0;
    for (int64_t rows = 1; rows <= 8; rows++) {
        qn_view v[3];
        qn_arg args[3];
        for (int i = 0; i < 3; i++) {
            const int64_t extents[] = {i == 1 ? 16 : rows, i == 0 ? 16 : 32}, strides[] = {128, 1};
            qn_layout l;
            (void)qn_layout_strided(2, extents, strides, &l, &err);
            n_failed += qn_view_wrap("m", data[i], QN_F32, &l, 0, &v[i], &err) != QN_OK;
            args[i] = qn_arg_view(&v[i]);
        }
        n_failed += qn_launch(j.c, j.k, 3, args, NULL, &err) != QN_OK;
        qn_code *f = NULL;
        n_failed += qn_specialize(j.c, j.k, 3, args, NULL, &f, &err) != QN_OK;
        qn_code_text(f, QN_DUMP_KEY, key, sizeof key);
        qn_code_release(f);
    }
    tap_ok(n_failed == 0 && counters_of(j.c).dynamic_compiles == 1, "rows vary: %s", err.message);
    tap_contains(key, "dimension 0: lower 0, extent slot 1 below 2^31, stride 128",
                 "a stride that all shapes had stays a constant beside an extent that varied");
    close_job(&j);
}

/** A pin decides whether a number is a constant, whatever the policy says. */
static void test_pins(void)
{
    const qn_fact_pin dynamic[] = {{0, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0},
                                   {1, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0}};
    qn_options o = {.bytes = sizeof o, .n_pins = 2, .pins = dynamic};
    vectors v;
    open_vectors(&v, NULL);
    int n_wrong = 0;
    for (int64_t n = 1; n < 100; n++)
        n_wrong += !copy(&v, n, &o);
    tap_ok(n_wrong == 0 && counters_of(v.c).compiles == 1,
           "with dynamic extents one version serves all from the first launch on: %s", err.message);
    tap_ok(history_has(v.c, "first version; exact but for what is pinned"),
           "which the history does not call exact");
    const qn_fact_pin constant[] = {{0, QN_PIN_EXTENT, 0, QN_PIN_CONSTANT, 0},
                                    {1, QN_PIN_EXTENT, 0, QN_PIN_CONSTANT, 0}};
    o.pins = constant;
    o.specialize = QN_SPECIALIZE_DYNAMIC;
    int64_t compiles = counters_of(v.c).compiles;
    for (int64_t n = 1; n < 6; n++)
        n_wrong += !copy(&v, n, &o);
    tap_ok(n_wrong == 0 && counters_of(v.c).compiles == compiles + 5,
           "with constant ones each size is a dynamic version's own");
    o.pins = dynamic;
    o.specialize = QN_SPECIALIZE_EXACT;
    compiles = counters_of(v.c).compiles;
    int64_t hits = counters_of(v.c).hits;
    n_wrong += !copy(&v, 5, &o) || !copy(&v, 5, &o);
    tap_ok(n_wrong == 0 && counters_of(v.c).hits == hits + 1,
           "launches of other pins are not those that are known, and become known");
    tap_is_int(counters_of(v.c).compiles, compiles, "and the same facts are one version");
    close_vectors(&v);
}

static double scaled(job *j, double s, const qn_options *o)
{
    double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {0};
    const int64_t extents[] = {2, 3};
    qn_layout l;
    qn_view x = {0}, y = {0};
    (void)qn_layout_right(2, extents, &l, &err);
    (void)qn_view_wrap("a", a, QN_F64, &l, 0, &x, &err);
    (void)qn_view_wrap("b", b, QN_F64, &l, 0, &y, &err);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f64(s)};
    return qn_launch(j->c, j->k, 3, args, o, &err) == QN_OK ? b[5] / 6 : -1;
}

/** A scalar that is pinned is a constant of the code, by itself. */
static void test_pinned_scalar(void)
{
    job j = open_job(SCALE_TEXT);
    qn_fact_pin pin = {2, QN_PIN_SCALAR, 0, QN_PIN_CONSTANT, 0};
    qn_options o = {.bytes = sizeof o, .n_pins = 1, .pins = &pin};
    bool is_right = scaled(&j, 2, &o) == 2 && scaled(&j, 3, &o) == 3 && scaled(&j, 2, &o) == 2;
    tap_ok(is_right && counters_of(j.c).compiles == 2,
           "each value of a constant scalar is a version");
    pin.as = QN_PIN_DYNAMIC;
    o.constant_scalars = 1;
    is_right = scaled(&j, 5, &o) == 5 && scaled(&j, 7, &o) == 7 && scaled(&j, 2, &o) == 2;
    tap_ok(is_right && counters_of(j.c).compiles == 3,
           "a dynamic one is none, whatever others are");
    close_job(&j);
}

static void test_prepared_pin(void)
{
    job j = open_job(SCALE_TEXT);
    const qn_fact_pin pin = {2, QN_PIN_SCALAR, 0, QN_PIN_CONSTANT, 0};
    const qn_options o = {.bytes = sizeof o, .n_pins = 1, .pins = &pin};
    const int64_t extents[] = {2, 3};
    double a[6] = {1}, b[6] = {0};
    qn_layout l;
    qn_view x = {0}, y = {0};
    (void)qn_layout_right(2, extents, &l, &err);
    (void)qn_view_wrap("a", a, QN_F64, &l, 0, &x, &err);
    (void)qn_view_wrap("b", b, QN_F64, &l, 0, &y, &err);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f64(4)};
    qn_call *call = NULL;
    bool is_right = qn_prepare(j.c, j.k, 3, args, &o, &call, &err) == QN_OK &&
                    qn_run(call, &err) == QN_OK && b[0] == 4;
    tap_ok(is_right && qn_call_set_scalar(call, 2, 0, &err) == QN_ERR_ARGUMENT &&
               strstr(err.message, "constant"),
           "a constant of a prepared call cannot be set: %s", err.message);
    qn_call_release(call);
    close_job(&j);
}

static void test_bad_pins(void)
{
    static const struct {
        qn_fact_pin pin;
        const char *field;
    } bad[] = {{{2, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0}, "param: 2"},
               {{-1, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0}, "param: -1"},
               {{0, QN_PIN_SCALAR, 0, QN_PIN_DYNAMIC, 0}, "of: 3"},
               {{0, 9, 0, QN_PIN_DYNAMIC, 0}, "of: 9"},
               {{0, QN_PIN_STRIDE, 1, QN_PIN_DYNAMIC, 0}, "dim: 1"},
               {{0, QN_PIN_LOWER, 0, 0, 0}, "as: 0"},
               {{0, QN_PIN_LOWER, 0, 4, 0}, "as: 4"},
               {{0, QN_PIN_EXTENT, 0, QN_PIN_MULTIPLE, 0}, "multiple: 0 is below 1"},
               {{0, QN_PIN_EXTENT, 0, QN_PIN_MULTIPLE, -8}, "multiple: -8 is below 1"},
               {{0, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 8}, "multiple: 8 is not 0"}};
    vectors v;
    open_vectors(&v, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const qn_options o = {.bytes = sizeof o, .n_pins = 1, .pins = &bad[i].pin};
        qn_status status = qn_launch(v.c, v.k, 2, v.args, &o, &err);
        tap_ok(status == QN_ERR_ARGUMENT && strstr(err.message, bad[i].field), "%s", err.message);
    }
    const qn_fact_pin both[] = {{0, QN_PIN_EXTENT, 0, QN_PIN_CONSTANT, 0},
                                {0, QN_PIN_EXTENT, 0, QN_PIN_MULTIPLE, 8},
                                {0, QN_PIN_STRIDE, 0, QN_PIN_DYNAMIC, 0},
                                {0, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0}};
    qn_options contradicting = {.bytes = sizeof contradicting, .n_pins = 4, .pins = both};
    tap_ok(qn_launch(v.c, v.k, 2, v.args, &contradicting, &err) == QN_ERR_ARGUMENT &&
               strstr(err.message, "pins[3].as: extent 0 of parameter 0 (x) is made dynamic here, "
                                   "and constant by another pin"),
           "%s", err.message);
    contradicting.n_pins = 3;
    tap_ok(qn_launch(v.c, v.k, 2, v.args, &contradicting, &err) == QN_OK,
           "a constant may be a multiple, too");
    const qn_options none = {.bytes = sizeof none, .n_pins = 1},
                     many = {.bytes = sizeof many, .n_pins = 257, .pins = &bad[0].pin},
                     few = {.bytes = sizeof few, .n_pins = -1, .pins = &bad[0].pin};
    tap_ok(qn_launch(v.c, v.k, 2, v.args, &none, &err) == QN_ERR_ARGUMENT, "%s", err.message);
    tap_ok(qn_launch(v.c, v.k, 2, v.args, &many, &err) == QN_ERR_ARGUMENT, "%s", err.message);
    tap_ok(qn_launch(v.c, v.k, 2, v.args, &few, &err) == QN_ERR_ARGUMENT, "%s", err.message);
    close_vectors(&v);
}

int main(void)
{
    char reason[400];
    test_bad_pins();
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_rows();
    test_hot();
    test_threads();
    test_decision(true);
    test_decision(false);
    test_not_tried();
    test_short();
    test_many();
    test_strides();
    test_pins();
    test_pinned_scalar();
    test_prepared_pin();
    return tap_done();
}
