/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_atomics.c: what atomics are atomic against. Launches that share a histogram with other
 * launches and with threads of the host say so; the iterations of one launch may always meet. Which
 * instructions that takes stands in the code.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <pthread.h>

#define OVER_X " %0: i64 = const 0; %1: i64 = extent x, 0; %2: i64 = parallel %0, %1;"
/** y[x[i]] += 1, in i32 and in f64 */
#define COUNT_TEXT                                                                                 \
    "kernel \"count\" {\n view x: u8[1]; view y: i32[1];" OVER_X                                   \
    " %3: u8 = load x[%2]; %4: i64 = cast %3; %5: i32 = const 1; %6: i32 = atomic sum y[%4], %5; }"
#define COUNT_F64_TEXT                                                                             \
    "kernel \"count\" {\n view x: u8[1]; view y: f64[1];" OVER_X                                   \
    " %3: u8 = load x[%2]; %4: i64 = cast %3; %5: f64 = const 1.0; %6: f64 = atomic sum y[%4], "   \
    "%5; }"
/** Counts without an atomic: the argument says that the view is atomic. */
#define COUNT_PLAINLY_TEXT                                                                         \
    "kernel \"count\" {\n view x: u8[1]; view y: i32[1];" OVER_X                                   \
    " %3: u8 = load x[%2]; %4: i64 = cast %3; %5: i32 = const 1; %6: i32 = load y[%4]; %7: i32 = " \
    "add %6, %5;"                                                                                  \
    " store y[%4], %7; }"

enum { N_BINS = 2 };

/** x holds numbers of bins, one after the other. */
static qn_view bins_of(qn_context *c, int64_t n)
{
    qn_view x = vector_of(c, "x", QN_U8, n);
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)x.data)[i] = (uint8_t)(i % N_BINS);
    return x;
}

static double count_in(const qn_view *y, int bin)
{
    return y->dtype == QN_F64 ? ((const double *)y->data)[bin]
                              : (double)((const int32_t *)y->data)[bin];
}

/* ---------------------------------------------------------------- two threads of the host */

/** So many that the two overlap; the interpreter is slow. */
enum { N_LAUNCHES = 800, N_INTERPRETED = 40, N_SAMPLES = 20000 };

typedef struct worker {
    qn_context *c;
    qn_kernel *k;
    const qn_arg *args;
    const qn_options *o;
    bool is_prepared, is_host, failed;
    int n_launches;
    pthread_barrier_t *start;
} worker;

/** Adds what the launches of another worker add, with atomics of C. */
static void add_by_hand(const worker *w)
{
    int32_t *y = w->args[1].view->data;
    for (int64_t i = 0; i < (int64_t)w->n_launches * N_SAMPLES; i++)
        __atomic_fetch_add(&y[i % N_BINS], 1, __ATOMIC_RELAXED);
}

static void *work(void *arg)
{
    worker *w = arg;
    qn_error err = {0};
    qn_call *call = NULL;
    if (w->is_prepared)
        w->failed |= qn_prepare(w->c, w->k, 2, w->args, w->o, &call, &err) != QN_OK;
    pthread_barrier_wait(w->start);
    if (w->is_host)
        add_by_hand(w);
    for (int i = 0; i < w->n_launches && !w->is_host && !w->failed; i++)
        w->failed |=
            (call ? qn_run(call, &err) : qn_launch(w->c, w->k, 2, w->args, w->o, &err)) != QN_OK;
    qn_call_release(call);
    return NULL;
}

/** Two threads fill one histogram: by launches, by prepared calls, or one of them by hand. */
static void test_shared(const char *name, const char *text, int dtype, int executor, int engine,
                        bool is_prepared, bool has_host)
{
    const qn_context_options options = {.bytes = sizeof options, .n_threads = 3};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(text);
    qn_view x = bins_of(c, N_SAMPLES), y = vector_of(c, "y", dtype, N_BINS);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_plan_options plan = {.bytes = sizeof plan, .chunk = 1000};
    const qn_options o = {.bytes = sizeof o,
                          .engine = engine,
                          .executor = executor,
                          .atomics = QN_ATOMICS_SHARED,
                          .plan = &plan};
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, 2);
    const int n = engine == QN_ENGINE_INTERP ? N_INTERPRETED : N_LAUNCHES;
    worker w[2] = {{c, k, args, &o, is_prepared, false, false, n, &start},
                   {c, k, args, &o, is_prepared, has_host, false, n, &start}};
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, work, &w[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    const double expected = (double)((int64_t)n * N_SAMPLES);
    tap_ok(!w[0].failed && !w[1].failed && count_in(&y, 0) == expected &&
               count_in(&y, 1) == expected,
           "%s: %.0f and %.0f of %.0f", name, count_in(&y, 0), count_in(&y, 1), expected);
    pthread_barrier_destroy(&start);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- threads of a launch */

/** A launch whose iterations meet, with extents that are and are not known, in many chunks and in
 * one. */
static void test_launch(const char *name, const char *text, int dtype)
{
    const qn_context_options options = {.bytes = sizeof options, .n_threads = 4};
    qn_context *c = context_with(&options);
    qn_kernel *k = kernel_of(text);
    static const int64_t sizes[] = {1, 100, 5000, 300000};
    int n_wrong = 0;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int specialize = QN_SPECIALIZE_EXACT; specialize <= QN_SPECIALIZE_DYNAMIC;
             specialize++) {
            qn_view x = bins_of(c, sizes[s]), y = vector_of(c, "y", dtype, N_BINS);
            const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
            const qn_options o = {.bytes = sizeof o,
                                  .engine = QN_ENGINE_NATIVE,
                                  .executor = QN_THREADS,
                                  .specialize = specialize};
            qn_error err = {0};
            for (int i = 0; i < 5; i++)
                n_wrong += qn_launch(c, k, 2, args, &o, &err) != QN_OK;
            for (int bin = 0; bin < N_BINS; bin++)
                n_wrong += count_in(&y, bin) != (double)(5 * ((sizes[s] + 1 - bin) / 2));
            qn_view_release(&x);
            qn_view_release(&y);
        }
    tap_ok(n_wrong == 0, "%s: threads of a launch lose nothing", name);
    qn_kernel_release(k);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- the code */

enum { TEXT_BYTES = 1 << 20 };

/** Whether the code for n samples has atomic instructions; its plan goes into `plan`. */
static bool has_atomic_instructions(qn_context *c, const qn_kernel *k, qn_options o,
                                    uint32_t traits, int64_t n, char *plan, size_t plan_bytes)
{
    static char text[TEXT_BYTES];
    qn_view x = bins_of(c, n), y = vector_of(c, "y", QN_I32, N_BINS);
    y.traits |= traits;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_code *f = NULL;
    qn_error err = {0};
    o.bytes = sizeof o;
    o.engine = QN_ENGINE_NATIVE;
    if (qn_specialize(c, k, 2, args, &o, &f, &err) != QN_OK)
        tap_ok(false, "code: %s", err.message);
    text[0] = plan[0] = 0;
    qn_code_text(f, QN_DUMP_LLVM, text, sizeof text);
    qn_code_text(f, QN_DUMP_PLAN, plan, plan_bytes);
    qn_code_release(f);
    qn_view_release(&x);
    qn_view_release(&y);
    return strstr(text, "atomicrmw") || strstr(text, "cmpxchg") || strstr(text, "load atomic") ||
           strstr(text, "store atomic") || !text[0];
}

static void test_code(void)
{
    const qn_context_options options = {
        .bytes = sizeof options, .n_threads = 4, .dump = QN_DUMP_LLVM, .dump_dir = "/dev/null"};
    qn_context *c = context_with(&options);
    qn_kernel *atomic = kernel_of(COUNT_TEXT), *plain = kernel_of(COUNT_PLAINLY_TEXT);
    const int many = 1 << 20;
    const struct {
        const char *name;
        qn_options o;
        int64_t n;
        bool expected;
        const char *in_plan;
    } part[] = {
        {"one thread", {.executor = QN_SERIAL}, many, false, "atomics of one thread"},
        {"one thread, shared",
         {.executor = QN_SERIAL, .atomics = QN_ATOMICS_SHARED},
         many,
         true,
         "split"},
        {"threads", {.executor = QN_THREADS}, many, true, "atomics of the launch"},
        {"threads, shared",
         {.executor = QN_THREADS, .atomics = QN_ATOMICS_SHARED},
         many,
         true,
         "split"},
        {"threads, one of them",
         {.executor = QN_THREADS, .max_threads = 1},
         many,
         false,
         "atomics of one thread"},
        {"threads, one chunk", {.executor = QN_THREADS}, 100, false, "atomics of one thread"},
        {"threads, unknown extents",
         {.executor = QN_THREADS, .specialize = QN_SPECIALIZE_DYNAMIC},
         100,
         true,
         "atomics of the launch"},
    };
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        char plan[4096];
        qn_options o = part[i].o;
        o.specialize = o.specialize ? o.specialize : QN_SPECIALIZE_EXACT;
        tap_ok(has_atomic_instructions(c, atomic, o, 0, part[i].n, plan, sizeof plan) ==
                       part[i].expected &&
                   strstr(plan, part[i].in_plan),
               "%s: %s instructions", part[i].name, part[i].expected ? "atomic" : "plain");
        tap_ok(has_atomic_instructions(c, plain, o, QN_ATOMIC, part[i].n, plan, sizeof plan) ==
                   part[i].expected,
               "%s, atomic argument: %s instructions", part[i].name,
               part[i].expected ? "atomic" : "plain");
    }
    qn_kernel_release(atomic);
    qn_kernel_release(plain);
    qn_context_release(c);
}

/** A kernel without atomics has one version, whoever runs it. */
static void test_versions(void)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 100), y = vector_of(c, "y", QN_F32, 100);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_error err = {0};
    int n_failed = 0;
    for (int executor = QN_SERIAL; executor <= QN_THREADS; executor++)
        for (int atomics = QN_ATOMICS_LAUNCH; atomics <= QN_ATOMICS_SHARED; atomics++) {
            const qn_options o = {.bytes = sizeof o,
                                  .engine = QN_ENGINE_NATIVE,
                                  .executor = executor,
                                  .atomics = atomics};
            n_failed += qn_launch(c, k, 2, args, &o, &err) != QN_OK;
        }
    tap_ok(n_failed == 0 && counters_of(c).compiles == 1,
           "without atomics one version serves all: %" PRId64 " compiles", counters_of(c).compiles);
    const qn_options wrong = {.bytes = sizeof wrong, .atomics = 2};
    tap_ok(qn_launch(c, k, 2, args, &wrong, &err) == QN_ERR_ARGUMENT &&
               strstr(err.message, "option atomics: 2"),
           "an unknown value is refused: %s", err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- lanes */

#define LANES_HEAD "kernel \"lanes\" { view x: T[1]; view y: T[1]; view z: T[1];" OVER_X
/** Kernels whose lanes are one vector, one element, apart, under a condition, and whose old values
 * are used: y is combined, z takes what was there. */
static const struct {
    const char *name, *text;
} lane_kernels[] = {
    {"consecutive elements",
     " %4: T = load x[%2]; %5: T = atomic OP y[%2], %4; store z[%2], %5; }"},
    {"reversed elements", " %4: T = load x[%2]; %a: i64 = const -1; %b: i64 = add %1, %a; %c: i64 "
                          "= sub %b, %2; %5: T = atomic OP y[%c], %4;"
                          " store z[%2], %5; }"},
    {"one element", " %4: T = load x[%2]; %5: T = atomic OP y[%0], %4; }"},
    {"two elements apart", " %a: i64 = const 2; %b: i64 = mul %2, %a; %4: T = load x[%2]; %5: T = "
                           "atomic OP y[%b], %4; store z[%2], %5; }"},
    {"under a condition", " %4: T = load x[%2]; %a: T = const 3; %b: bool = lt %4, %a; if %b { %5: "
                          "T = atomic OP y[%2], %4; store z[%2], %5; }; }"},
    {"elements of a list", " %4: T = load x[%2]; %a: i64 = cast %4; %m: i64 = const 31; %d: i64 = "
                           "and %a, %m; %e: T = add %4, %4; %f: T = mul %e, %e;"
                           " %g: T = sub %f, %4; %5: T = atomic OP y[%d], %g; store z[%2], %5; }"},
};

/** The text with T and OP in place. */
static size_t fill_in(const char *from, const char *type, const char *op, char *to, size_t n)
{
    size_t at = 0;
    for (; *from && at + 24 < n; from++) {
        const bool is_type = *from == 'T', is_op = from[0] == 'O' && from[1] == 'P';
        const char *what = is_type ? type : is_op ? op : NULL;
        from += is_op;
        at += (size_t)snprintf(to + at, n - at, "%.*s", what ? 20 : 1, what ? what : from);
    }
    return at;
}

enum { MOST_LANES = 70 };

static bool run_lanes(qn_context *c, const qn_kernel *k, int dtype, int64_t n, const qn_options *o,
                      qn_view *y, qn_view *z)
{
    qn_view x = vector_of(c, "x", dtype, n);
    *y = vector_of(c, "y", dtype, 2 * MOST_LANES);
    *z = vector_of(c, "z", dtype, MOST_LANES);
    for (int64_t i = 0; i < n; i++) {
        const qn_arg value = qn_arg_int(dtype, (7 * i + 3) % 11);
        memcpy((char *)x.data + i * qn_dtype_bytes(dtype), &value.bits,
               (size_t)qn_dtype_bytes(dtype));
    }
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(y), qn_arg_view(z)};
    qn_error err = {0};
    const bool is_good = qn_launch(c, k, 3, args, o, &err) == QN_OK;
    if (!is_good)
        tap_note("%s", err.message);
    qn_view_release(&x);
    return is_good;
}

static int compare_lanes(qn_context *c, const qn_kernel *k, int dtype)
{
    int n_wrong = 0;
    static const int64_t sizes[] = {1, 3, 8, 16, 17, 33, MOST_LANES};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const qn_options reference = {.bytes = sizeof reference, .engine = QN_ENGINE_INTERP};
        qn_view y, z;
        n_wrong += !run_lanes(c, k, dtype, sizes[s], &reference, &y, &z);
        for (int way = 0; way < 8; way++) {
            const qn_options o = {.bytes = sizeof o,
                                  .engine = QN_ENGINE_NATIVE,
                                  .isa = way & 1 ? QN_ISA_V3 : QN_ISA_AUTO,
                                  .atomics = way & 2 ? QN_ATOMICS_SHARED : QN_ATOMICS_LAUNCH,
                                  .executor = way & 4 ? QN_THREADS : QN_SERIAL,
                                  .specialize =
                                      way & 4 ? QN_SPECIALIZE_DYNAMIC : QN_SPECIALIZE_EXACT};
            qn_view other_y, other_z;
            const size_t bytes = (size_t)qn_dtype_bytes(dtype) * MOST_LANES;
            const bool is_same = run_lanes(c, k, dtype, sizes[s], &o, &other_y, &other_z) &&
                                 memcmp(y.data, other_y.data, 2 * bytes) == 0 &&
                                 memcmp(z.data, other_z.data, bytes) == 0;
            if (!is_same)
                tap_note("%s, n %d, way %d", qn_dtype_name(dtype), (int)sizes[s], way);
            n_wrong += !is_same;
            qn_view_release(&other_y);
            qn_view_release(&other_z);
        }
        qn_view_release(&y);
        qn_view_release(&z);
    }
    return n_wrong;
}

/** Small integers, also as floats: their sums are exact, and iterations come in order on one
 * thread. */
static void test_lanes(void)
{
    qn_context *c = context_with(NULL);
    static const int dtypes[] = {QN_I32, QN_F64, QN_U8, QN_F32};
    static const char *const ops[] = {"sum", "max", "exchange"};
    for (size_t i = 0; i < sizeof lane_kernels / sizeof lane_kernels[0]; i++)
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            int n_wrong = 0;
            for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
                char text[2048];
                size_t n = fill_in(LANES_HEAD, qn_dtype_name(dtypes[d]), ops[o], text, sizeof text);
                fill_in(lane_kernels[i].text, qn_dtype_name(dtypes[d]), ops[o], text + n,
                        sizeof text - n);
                qn_kernel *k = kernel_of(text);
                n_wrong += !k || compare_lanes(c, k, dtypes[d]);
                qn_kernel_release(k);
            }
            tap_ok(n_wrong == 0, "%s, %s: as the interpreter does", lane_kernels[i].name, ops[o]);
        }
    qn_context_release(c);
}

/** Atomics that stand together: neighbours in rows of 8, a run of four and one of three, and those
 * of another combination, which have rows of their own. */
static const char *const group_kernels[] = {
    " atomic sum y[%j, %i], %4; atomic sum y[%j, %k], %5; atomic sum y[%l, %i], %6; atomic sum "
    "y[%l, %k], %4; }",
    " atomic sum y[%j, %i], %4; atomic sum y[%j, %k], %5; atomic sum y[%j, %m], %6; atomic sum "
    "y[%j, %n], %6;"
    " atomic max y[%l, %k], %5; }",
    " atomic sum y[%j, %k], %4; atomic sum y[%j, %m], %5; atomic sum y[%j, %n], %6; atomic max "
    "y[%l, %i], %6; atomic max y[%l, %k], %4;"
    " atomic sum y[%j, %k], %4; }",
};
#define GROUP_HEAD                                                                                 \
    "kernel \"group\" { view x: u8[1]; view y: T[2];" OVER_X                                       \
    " %3: u8 = load x[%2]; %a: u8 = const 7; %b: u8 = and %3, %a;"                                 \
    " %c: u8 = const 3; %d: u8 = shr %3, %c; %i: i64 = cast %b; %j: i64 = cast %d; %o: i64 = "     \
    "const 1; %k: i64 = add %i, %o;"                                                               \
    " %m: i64 = add %k, %o; %n: i64 = add %m, %o; %eight: i64 = const 8; %l: i64 = add %j, "       \
    "%eight; %4: T = cast %3; %5: T = add %4, %4; %6: T = add %5, %4;"

enum { GROUP_ROWS = 16, GROUP_COLUMNS = 8, GROUP_POINTS = 77 };

/** Rows and columns are in range but for one, at `bad`, which begins in the last column; -1: all
 * are. */
static qn_status run_group(qn_context *c, const qn_kernel *k, int dtype, int64_t bad,
                           const qn_options *o, qn_view *y, qn_error *err)
{
    qn_view x = vector_of(c, "x", QN_U8, GROUP_POINTS);
    for (int64_t i = 0; i < GROUP_POINTS; i++)
        ((uint8_t *)x.data)[i] = (uint8_t)(i * 5 % 7 << 3 | i * 3 % 5);
    if (bad >= 0)
        ((uint8_t *)x.data)[bad] = 5 << 3 | 7;
    if (qn_view_new(c, "y", dtype, 2, (int64_t[]){GROUP_ROWS, GROUP_COLUMNS}, y, err) != QN_OK)
        tap_ok(false, "test view: %s", err->message);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(y)};
    qn_status status = qn_launch(c, k, 2, args, o, err);
    qn_view_release(&x);
    return status;
}

static int compare_group(qn_context *c, const qn_kernel *k, int dtype, int64_t bad)
{
    const qn_options reference = {.bytes = sizeof reference, .engine = QN_ENGINE_INTERP};
    qn_view y;
    qn_error expected = {0};
    int n_wrong = 0;
    const qn_status status = run_group(c, k, dtype, bad, &reference, &y, &expected);
    for (int n = 0; n < (bad < 0 ? 24 : 12); n++) {
        const int way = n % 12;
        const qn_plan_options plan = {
            .bytes = sizeof plan, .lane_dim = 1, .width = way & 1 ? 0 : 4, .chunk = 20};
        const qn_options o = {.bytes = sizeof o,
                              .engine = QN_ENGINE_NATIVE,
                              .plan = &plan,
                              .isa = way & 2 ? QN_ISA_V3 : QN_ISA_AUTO,
                              .executor = way / 4 ? QN_THREADS : QN_SERIAL,
                              .checks = n < 12 ? QN_CHECKS_REPORT : QN_CHECKS_NONE,
                              .specialize =
                                  way / 4 == 2 ? QN_SPECIALIZE_DYNAMIC : QN_SPECIALIZE_EXACT};
        qn_view other;
        qn_error err = {0};
        bool is_same = run_group(c, k, dtype, bad, &o, &other, &err) == status &&
                       strcmp(err.message, expected.message) == 0;
        if (status == QN_OK)
            is_same = is_same &&
                      memcmp(y.data, other.data,
                             (size_t)(qn_dtype_bytes(dtype) * GROUP_ROWS * GROUP_COLUMNS)) == 0;
        if (!is_same)
            tap_note("%s, bad %d, way %d: %s", qn_dtype_name(dtype), (int)bad, n, err.message);
        n_wrong += !is_same;
        qn_view_release(&other);
    }
    n_wrong += status != (bad < 0 ? QN_OK : QN_ERR_BOUNDS);
    qn_view_release(&y);
    return n_wrong;
}

/** On one thread and without checks nothing decides whether atomics go together: they do, and
 * neighbours are one vector. */
static void test_groups_of_one_thread(qn_context *c)
{
    static char code[1 << 18];
    char form[2048];
    size_t n = fill_in(GROUP_HEAD, "f32", "", form, sizeof form);
    fill_in(group_kernels[0], "f32", "", form + n, sizeof form - n);
    qn_kernel *k = kernel_of(form);
    qn_view x = vector_of(c, "x", QN_U8, GROUP_POINTS), y = {0};
    qn_error err = {0};
    qn_code *f = NULL;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_plan_options plan = {.bytes = sizeof plan, .lane_dim = 1, .width = 4};
    const qn_options o = {.bytes = sizeof o,
                          .engine = QN_ENGINE_NATIVE,
                          .isa = QN_ISA_V3,
                          .checks = QN_CHECKS_NONE,
                          .plan = &plan};
    bool ok =
        qn_view_new(c, "y", QN_F32, 2, (int64_t[]){GROUP_ROWS, GROUP_COLUMNS}, &y, &err) == QN_OK &&
        qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
        qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    if (!tap_ok(ok && strstr(code, "fadd <2 x float>") && !strstr(code, "each"),
                "without checks they go together, and nothing else is in the code"))
        tap_note("%s", err.message);
    qn_code_release(f);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

static void test_groups(void)
{
    qn_context *c = context_with(NULL);
    test_groups_of_one_thread(c);
    static const int dtypes[] = {QN_F64, QN_F32, QN_I32, QN_U8};
    for (size_t i = 0; i < sizeof group_kernels / sizeof group_kernels[0]; i++) {
        int n_wrong = 0;
        for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
            char text[2048];
            size_t n = fill_in(GROUP_HEAD, qn_dtype_name(dtypes[d]), "", text, sizeof text);
            fill_in(group_kernels[i], qn_dtype_name(dtypes[d]), "", text + n, sizeof text - n);
            qn_kernel *k = kernel_of(text);
            for (int64_t bad = -1; k && bad < GROUP_POINTS; bad += 13)
                n_wrong += compare_group(c, k, dtypes[d], bad);
            n_wrong += !k;
            qn_kernel_release(k);
        }
        tap_ok(n_wrong == 0, "atomics that stand together, %zu: as the interpreter does", i);
    }
    qn_context_release(c);
}

/** The first index out of range is reported, wherever in a vector it is, and the others count. */
static void test_faults(void)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(
        "kernel \"counts\" { view x: f32[1]; view y: i32[1];" OVER_X
        " %3: f32 = load x[%2]; %a: f32 = const 2.0; %b: f32 = mul %3, %a; %d: f32 = add %b, %a;"
        " %e: f32 = mul %d, %d; %f: f32 = sub %e, %d; %4: i32 = cast %f; %5: i64 = cast %4; %6: "
        "i32 = const 1;"
        " %7: i32 = atomic sum y[%5], %6; }");
    int n_wrong = 0;
    for (int64_t at = 0; at < 50; at++)
        for (int atomics = QN_ATOMICS_LAUNCH; atomics <= QN_ATOMICS_SHARED; atomics++) {
            qn_view x = vector_of(c, "x", QN_F32, 50), y = vector_of(c, "y", QN_I32, 3);
            ((float *)x.data)[at] = 100;
            ((float *)x.data)[(at + 5) % 50] = -100;
            const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
            const qn_options reference = {.bytes = sizeof reference, .engine = QN_ENGINE_INTERP};
            const qn_options o = {.bytes = sizeof o,
                                  .engine = QN_ENGINE_NATIVE,
                                  .atomics = atomics,
                                  .executor = QN_SERIAL};
            qn_error expected = {0}, err = {0};
            qn_launch(c, k, 2, args, &reference, &expected);
            ((int32_t *)y.data)[2] = 0;
            n_wrong += qn_launch(c, k, 2, args, &o, &err) != QN_ERR_BOUNDS ||
                       strcmp(err.message, expected.message) != 0;
            n_wrong += ((int32_t *)y.data)[2] != 48;
            qn_view_release(&x);
            qn_view_release(&y);
        }
    tap_ok(n_wrong == 0, "the first index out of range is reported, the others count");
    qn_kernel_release(k);
    qn_context_release(c);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES + 40];
    test_shared("two threads launch, interpreted", COUNT_TEXT, QN_I32, QN_SERIAL, QN_ENGINE_INTERP,
                false, false);
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_shared("two threads launch", COUNT_TEXT, QN_I32, QN_SERIAL, QN_ENGINE_NATIVE, false,
                false);
    test_shared("two threads launch, f64", COUNT_F64_TEXT, QN_F64, QN_SERIAL, QN_ENGINE_NATIVE,
                false, false);
    test_shared("two prepared calls", COUNT_TEXT, QN_I32, QN_SERIAL, QN_ENGINE_NATIVE, true, false);
    test_shared("two threads launch on threads", COUNT_TEXT, QN_I32, QN_THREADS, QN_ENGINE_NATIVE,
                false, false);
    test_shared("a thread of the host and launches", COUNT_TEXT, QN_I32, QN_SERIAL,
                QN_ENGINE_NATIVE, false, true);
    test_launch("i32", COUNT_TEXT, QN_I32);
    test_launch("f64", COUNT_F64_TEXT, QN_F64);
    test_code();
    test_versions();
    test_lanes();
    test_groups();
    test_faults();
    return tap_done();
}
