/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_late_traits.c: traits that arguments get just before a launch, of parameters declared
 * without (rows MT3 to MT7 of the specification of views): on the interpreter and generated code,
 * one thread and several, through launches, prepared calls and specializations.
 */
#include "tests/fill.h"
#include "tests/unit/launch.h"

#include <pthread.h>

enum { N = 200000, BINS = 7 };

/** h[v[i]] = h[v[i]] + 1 */
#define COUNT_TEXT                                                                                 \
    "kernel \"count\" {\n view v: i32[1]; view h: i64[1];\n %0: i64 = const 0;\n"                  \
    " %1: i64 = extent v, 0; %2: i64 = parallel %0, %1; %3: i32 = load v[%2]; %4: i64 = cast "     \
    "%3;\n"                                                                                        \
    " %5: i64 = const 1; %6: i64 = load h[%4]; %7: i64 = add %6, %5; store h[%4], %7;\n}\n"
/** h[v[i]] = fma(-w[i], a, h[v[i]]): what a contracting kernel makes of h - w * a */
#define WEIGH_TEXT                                                                                 \
    "kernel \"weigh\" contract {\n view v: i32[1]; view w: f64[1]; view h: f64[1];\n"              \
    " scalar a: f64;\n %0: i64 = const 0; %1: i64 = extent v, 0; %2: i64 = parallel %0, %1;\n"     \
    " %3: i32 = load v[%2]; %4: i64 = cast %3; %5: f64 = load w[%2]; %6: f64 = param a;\n"         \
    " %7: f64 = neg %5; %8: f64 = load h[%4]; %9: f64 = fma %7, %6, %8; store h[%4], %9;\n}\n"

/** The ways to run a kernel. */
static const struct way {
    const char *name;
    int engine, executor;
} ways[] = {{"interpreter", QN_ENGINE_INTERP, QN_SERIAL},
            {"x86", QN_ENGINE_NATIVE, QN_SERIAL},
            {"x86 threads", QN_ENGINE_NATIVE, QN_THREADS}};
enum { N_WAYS = 3 };

typedef struct setup {
    qn_context *c;
    bool has_code;
    qn_view values, weights;
    int64_t expected[BINS];
} setup;

static qn_options options_of(const struct way *w)
{
    return (qn_options){.bytes = sizeof(qn_options), .engine = w->engine, .executor = w->executor};
}

static qn_view with(const qn_view *v, uint32_t traits)
{
    qn_view out = {0};
    qn_error err = {0};
    tap_ok(qn_view_with_traits(v, traits, &out, &err) == QN_OK, "traits 0x%x: %s", (unsigned)traits,
           err.message);
    return out;
}

static void fill(const qn_view *v, uint64_t bits)
{
    fill_bits(NULL, v, bits, NULL);
}

static bool are_counts(const setup *s, const qn_view *h, int64_t times)
{
    for (int b = 0; b < BINS; b++)
        if (((int64_t *)h->data)[b] != times * s->expected[b]) {
            tap_note("bin %d: %lld, expected %lld", b, (long long)((int64_t *)h->data)[b],
                     (long long)(times * s->expected[b]));
            return false;
        }
    return true;
}

/** X1.20 with the trait on the argument only: counts are exact on every engine and any number of
 * threads. */
static void test_histogram(const setup *s)
{
    qn_kernel *k = kernel_of(COUNT_TEXT);
    qn_view plain = vector_of(s->c, "h", QN_I64, BINS), h = with(&plain, QN_ATOMIC);
    const qn_arg args[] = {qn_arg_view(&s->values), qn_arg_view(&h)};
    for (int w = 0; w < N_WAYS; w++) {
        qn_options o = options_of(&ways[w]);
        if (o.engine == QN_ENGINE_NATIVE && !s->has_code) {
            tap_skip("no generated code");
            continue;
        }
        qn_error err = {0};
        fill(&plain, 0);
        qn_status status = qn_launch(s->c, k, 2, args, &o, &err);
        tap_ok(status == QN_OK && are_counts(s, &plain, 1), "%s: counts %s", ways[w].name,
               err.message);
        int64_t hits = counters_of(s->c).hits;
        status = qn_launch(s->c, k, 2, args, &o, &err);
        tap_ok(status == QN_OK && are_counts(s, &plain, 2), "%s: counts again", ways[w].name);
        tap_ok(counters_of(s->c).hits == hits + 1, "%s: and the arguments are known", ways[w].name);
        qn_call *call = NULL;
        status = qn_prepare(s->c, k, 2, args, &o, &call, &err);
        tap_ok(status == QN_OK && qn_run(call, &err) == QN_OK && are_counts(s, &plain, 3),
               "%s: a prepared call counts %s", ways[w].name, err.message);
        qn_call_release(call);
        qn_code *f = NULL;
        char text[2000] = "";
        if (qn_specialize(s->c, k, 2, args, &o, &f, &err) == QN_OK)
            qn_code_text(f, QN_DUMP_KERNEL, text, sizeof text);
        tap_contains(text, "view h: i64[1] atomic",
                     "the kernel that runs has the parameter atomic");
        tap_contains(text, "atomic sum h", "... and updates in one step");
        qn_code_release(f);
    }
    qn_view_release(&h);
    qn_view_release(&plain);
    qn_kernel_release(k);
}

/** A product contracted before the parameter became atomic. The numbers are small integers: every
 * order is exact. */
static void test_contracted(const setup *s)
{
    qn_kernel *k = kernel_of(WEIGH_TEXT);
    qn_view plain = vector_of(s->c, "h", QN_F64, BINS), h = with(&plain, QN_ATOMIC);
    const qn_arg args[] = {qn_arg_view(&s->values), qn_arg_view(&s->weights), qn_arg_view(&h),
                           qn_arg_f64(-2)};
    for (int w = 0; w < N_WAYS; w++) {
        qn_options o = options_of(&ways[w]);
        if (o.engine == QN_ENGINE_NATIVE && !s->has_code)
            continue;
        qn_error err = {0};
        fill(&plain, 0);
        qn_status status = qn_launch(s->c, k, 4, args, &o, &err);
        bool same = status == QN_OK;
        for (int b = 0; b < BINS; b++)
            same = same && ((double *)plain.data)[b] == 2 * 3 * (double)s->expected[b];
        tap_ok(same, "%s: a contracted update is atomic %s", ways[w].name, err.message);
    }
    qn_view_release(&h);
    qn_view_release(&plain);
    qn_kernel_release(k);
}

/** Copies through atomic arguments, and a store that several iterations make to one element. */
static void test_plain_accesses(const setup *s)
{
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(s->c, "x", QN_F32, 1000), y = vector_of(s->c, "y", QN_F32, 1000);
    fill_f32(&x, 1, 0.5f);
    qn_view ax = with(&x, QN_ATOMIC), ay = with(&y, QN_ATOMIC), one = {0};
    qn_layout all, broadcast;
    qn_error err = {0};
    float cell = 0;
    qn_layout_right(0, NULL, &all, NULL);
    qn_layout_broadcast(&all, 0, 1000, &broadcast, NULL);
    tap_is_int(qn_view_wrap("cell", &cell, QN_F32, &broadcast, 0, &one, &err), QN_OK, err.message);
    for (int w = 0; w < N_WAYS; w++) {
        qn_options o = options_of(&ways[w]);
        if (o.engine == QN_ENGINE_NATIVE && !s->has_code)
            continue;
        fill(&y, 0);
        const qn_arg args[] = {qn_arg_view(&ax), qn_arg_view(&ay)};
        tap_ok(qn_launch(s->c, k, 2, args, &o, &err) == QN_OK &&
                   memcmp(x.data, y.data, 1000 * sizeof(float)) == 0,
               "%s: loads and stores %s", ways[w].name, err.message);
        qn_arg to[] = {qn_arg_view(&x), qn_arg_view(&one)};
        one.traits = 0;
        tap_is_int(qn_launch(s->c, k, 2, to, &o, NULL), QN_ERR_NOT_INJECTIVE,
                   "one element is refused");
        one.traits = QN_ATOMIC;
        cell = 0;
        bool ran = qn_launch(s->c, k, 2, to, &o, &err) == QN_OK;
        float index = (cell - 1) * 2;
        tap_ok(ran && index >= 0 && index < 1000 && index == (float)(int)index,
               "%s: ... if it is not atomic; then it has one of the values", ways[w].name);
    }
    qn_view_release(&ax);
    qn_view_release(&ay);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

/** MT4, MT5, MT6 and read-only: claims of arguments are checked like those of parameters. */
static void test_claims(const setup *s)
{
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(s->c, "x", QN_F32, 64), y = {0}, apart = vector_of(s->c, "y", QN_F32, 64);
    qn_subview(&x, 1, &(qn_slice){.kind = QN_RANGE, .begin = 1, .end = 41, .step = 1}, &y, NULL);
    const struct {
        const char *what;
        const qn_view *from, *to;
        uint32_t from_traits, to_traits;
        int status;
        const char *words;
    } rows[] = {
        {"restrict source", &x, &y, QN_RESTRICT, 0, QN_ERR_OVERLAP, "against the claim restrict"},
        {"restrict target", &x, &y, 0, QN_RESTRICT, QN_ERR_OVERLAP, "against the claim restrict"},
        {"restrict apart", &x, &apart, QN_RESTRICT, QN_RESTRICT, QN_OK, ""},
        {"random access", &x, &y, QN_RANDOM_ACCESS, 0, QN_ERR_OVERLAP,
         "against the claim random_access"},
        {"random access apart", &x, &apart, QN_RANDOM_ACCESS, 0, QN_OK, ""},
        {"random access written", &x, &apart, 0, QN_RANDOM_ACCESS, QN_ERR_OVERLAP,
         "is written against the claim"},
        {"read-only source", &x, &apart, QN_READ_ONLY, 0, QN_OK, ""},
        {"read-only target", &x, &apart, 0, QN_READ_ONLY, QN_ERR_READ_ONLY,
         "is read-only and the kernel writes it"},
        {"aligned", &x, &apart, QN_ALIGNED, QN_ALIGNED, QN_OK, ""},
        {"not aligned", &y, &apart, QN_ALIGNED, 0, QN_ERR_ALIGNMENT,
         "claims alignment to 64 bytes"},
        {"streaming", &x, &apart, QN_STREAMING, QN_STREAMING, QN_OK, ""},
        {"atomic and overlapping", &x, &y, QN_ATOMIC, QN_ATOMIC, QN_OK, ""},
        {"all that go together", &x, &apart,
         QN_READ_ONLY | QN_RESTRICT | QN_RANDOM_ACCESS | QN_ALIGNED,
         QN_ATOMIC | QN_RESTRICT | QN_ALIGNED | QN_STREAMING, QN_OK, ""},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int w = 0; w < N_WAYS; w++) {
            qn_options o = options_of(&ways[w]);
            if (o.engine == QN_ENGINE_NATIVE && !s->has_code)
                continue;
            qn_view from = *rows[r].from, to = *rows[r].to;
            from.traits |= rows[r].from_traits; /* by hand: qn_view_with_traits refuses some */
            to.traits |= rows[r].to_traits;
            const qn_arg args[] = {qn_arg_view(&from), qn_arg_view(&to)};
            qn_error err = {0};
            for (int again = 0; again < 2; again++)
                tap_ok((int)qn_launch(s->c, k, 2, args, &o, &err) == rows[r].status &&
                           strstr(err.message, rows[r].words),
                       "%s, %s: %s", rows[r].what, ways[w].name, err.message);
        }
    qn_view_release(&y);
    qn_view_release(&x);
    qn_view_release(&apart);
    qn_kernel_release(k);
}

/* ------------------------------------------------------------------------------------------------
 * several threads */

typedef struct job {
    const setup *s;
    const qn_kernel *k;
    qn_view h;
    bool is_good;
} job;

static void *launch_some(void *arg)
{
    job *j = arg;
    const qn_arg args[] = {qn_arg_view(&j->s->values), qn_arg_view(&j->h)};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    j->is_good = true;
    for (int i = 0; i < 3; i++)
        j->is_good = qn_launch(j->s->c, j->k, 2, args, &o, NULL) == QN_OK && j->is_good;
    return NULL;
}

/** Threads that meet a kernel's first late trait at once, and count into one view. */
static void test_threads(void)
{
    enum { N_THREADS = 4, SMALL = 500 };
    setup s = {.c = context_with(NULL)};
    s.values = vector_of(s.c, "values", QN_I32, SMALL);
    for (int i = 0; i < SMALL; i++)
        ((int32_t *)s.values.data)[i] = i % BINS;
    qn_kernel *k = kernel_of(COUNT_TEXT);
    qn_view plain = vector_of(s.c, "h", QN_I64, BINS), h = with(&plain, QN_ATOMIC);
    pthread_t thread[N_THREADS];
    job jobs[N_THREADS];
    for (int t = 0; t < N_THREADS; t++) {
        jobs[t] = (job){.s = &s, .k = k, .h = h};
        pthread_create(&thread[t], NULL, launch_some, &jobs[t]);
    }
    bool good = true;
    for (int t = 0; t < N_THREADS; t++) {
        pthread_join(thread[t], NULL);
        good = good && jobs[t].is_good;
    }
    int64_t sum = 0;
    for (int b = 0; b < BINS; b++)
        sum += ((int64_t *)plain.data)[b];
    tap_ok(good && sum == 3 * N_THREADS * SMALL, "launches of several threads count together");
    qn_view_release(&h);
    qn_view_release(&plain);
    qn_view_release(&s.values);
    qn_kernel_release(k);
    qn_context_release(s.c);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES + 40];
    setup s = {.c = context_with(
                   &(qn_context_options){.bytes = sizeof(qn_context_options), .n_threads = 3})};
    s.has_code = has_x86(reason, sizeof reason);
    s.values = vector_of(s.c, "values", QN_I32, N);
    s.weights = vector_of(s.c, "weights", QN_F64, N);
    for (int i = 0; i < N; i++) {
        int bin = (int)((unsigned)i * 2654435761u >> 7) % BINS;
        ((int32_t *)s.values.data)[i] = bin;
        ((double *)s.weights.data)[i] = 3;
        s.expected[bin]++;
    }
    test_histogram(&s);
    test_contracted(&s);
    test_plain_accesses(&s);
    test_claims(&s);
    test_threads();
    qn_view_release(&s.values);
    qn_view_release(&s.weights);
    qn_context_release(s.c);
    return tap_done();
}
