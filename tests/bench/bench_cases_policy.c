/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_policy.c: what QN_SPECIALIZE_AUTO costs on traces of shapes. A trace is replayed by
 * qn_launch in a new context without a cache on disk, so that every compile wait is in its time.
 * "Theirs" is the same trace by who knows the best version of each shape: the faster of the exact
 * and the dynamic one, all of which are compiled before. The regret is what the replay took longer.
 * The median of five rounds counts. A trace is so long that the best versions run for `length`
 * compiles of this kernel. The last case sends 100,000 shapes through one kernel.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_ROUNDS = 5, MOST_SHAPES = 256, MOST_VIEWS = 3, N_SAMPLES = 9, ARRAY_BYTES = 4 << 20 };
enum { N_COMPILES = 5, N_SHAPES = 100000, EDGE = 47 };

static const char stencil_text[] =
    "kernel \"stencil5\" contract {\n view old: f64[2]; view new: f64[2];\n"
    " %one: i64 = const 1; %rows: i64 = extent old, 0; %columns: i64 = extent old, 1;\n"
    " %r: i64 = sub %rows, %one; %q: i64 = sub %columns, %one;\n"
    " %i: i64 = parallel %one, %r; %j: i64 = parallel %one, %q;\n"
    " %i0: i64 = sub %i, %one; %i1: i64 = add %i, %one;\n"
    " %j0: i64 = sub %j, %one; %j1: i64 = add %j, %one;\n"
    " %n: f64 = load old[%i0, %j]; %s: f64 = load old[%i1, %j];\n"
    " %w: f64 = load old[%i, %j0]; %e: f64 = load old[%i, %j1]; %h: f64 = load old[%i, %j];\n"
    " %a: f64 = add %n, %s; %b: f64 = add %w, %e; %c: f64 = add %a, %b; %d: f64 = add %c, %h;\n"
    " store new[%i, %j], %d;\n}\n";
static const char product_text[] =
    "kernel \"product\" contract {\n view a: f32[2]; view b: f32[2]; view c: f32[2];\n"
    " %0: i64 = const 0; %1: i64 = extent c, 0; %2: i64 = extent c, 1; %3: i64 = extent a, 1;\n"
    " %i: i64 = parallel %0, %1; %j: i64 = parallel %0, %2; %k: i64 = reduction %0, %3;\n"
    " %s: f32 = reduce sum over %k {\n"
    "  %x: f32 = load a[%i, %k]; %y: f32 = load b[%k, %j]; %p: f32 = mul %x, %y; yield %p;\n };\n"
    " store c[%i, %j], %s;\n}\n";
static const char scale_text[] =
    "kernel \"scale3\" {\n view a: f32[3]; view b: f32[3]; scalar s: f32;\n %0: i64 = const 0;\n"
    " %1: i64 = extent b, 0; %2: i64 = extent b, 1; %3: i64 = extent b, 2;\n"
    " %i: i64 = parallel %0, %1; %j: i64 = parallel %0, %2; %k: i64 = parallel %0, %3;\n"
    " %5: f32 = param s; %6: f32 = load a[%i, %j, %k]; %7: f32 = mul %6, %5;\n"
    " store b[%i, %j, %k], %7;\n}\n";

/* ---------------------------------------------------------------- shapes and launches */

/* Extents of a domain; of a product the third is that of the sum. */
typedef struct shape {
    int64_t n[3];
    double best;         /* seconds of a launch of its best version */
    double exact, other; /* of the exact and of the dynamic one */
} shape;

typedef struct replay replay;
struct replay {
    const char *name, *text;
    int n_shapes;
    shape (*shape_of)(int s);            /* 0 to n_shapes - 1 */
    int (*next)(int64_t i, double done); /* the shape of launch i; `done` of the trace: 0 to 1 */
    bool is_product;
    int length; /* of a trace, in compiles */
};

typedef struct arena {
    void *data[MOST_VIEWS];
} arena;

/* Makes the arguments for a shape; returns their number. */
static int bind(const replay *r, const arena *a, const shape *s, qn_view *view, qn_arg *arg)
{
    const int64_t of_product[3][2] = {{s->n[0], s->n[2]}, {s->n[2], s->n[1]}, {s->n[0], s->n[1]}};
    int n = r->is_product ? 3 : 2;
    for (int v = 0; v < n; v++) {
        qn_layout l;
        (void)qn_layout_right(2, r->is_product ? of_product[v] : s->n, &l, NULL);
        (void)qn_view_wrap("view", a->data[v], r->is_product ? QN_F32 : QN_F64, &l, 0, &view[v],
                           NULL);
        arg[v] = qn_arg_view(&view[v]);
    }
    return n;
}

static qn_context *open_context(bench *b, const char *name)
{
    const qn_context_options o = {
        .bytes = sizeof o, .disk_cache = "off", .start_provider = 1, .n_threads = 1};
    qn_context *c = NULL;
    qn_error err = {0};
    if (qn_context_new(&o, &c, &err) != QN_OK)
        bench_wrong(b, name, "%s", err.message);
    return c;
}

static qn_kernel *parse(bench *b, const char *name, const char *text)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_kernel_parse(text, strlen(text), &k, &err) != QN_OK)
        bench_wrong(b, name, "%s", err.message);
    return k;
}

/* Seconds of one launch of a version that is there, the median of samples of 0.1 ms at least. */
static double time_version(qn_context *c, const qn_kernel *k, const replay *r, const arena *a,
                           const shape *s, int specialize)
{
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .specialize = specialize};
    qn_view view[MOST_VIEWS];
    qn_arg arg[MOST_VIEWS];
    int n = bind(r, a, s, view, arg);
    double sample[N_SAMPLES];
    for (int i = 0; i < 3; i++)
        if (qn_launch(c, k, n, arg, &o, NULL) != QN_OK)
            return 0;
    double begin = bench_now();
    (void)qn_launch(c, k, n, arg, &o, NULL);
    int repeat = 1 + (int)(1e-4 / (bench_now() - begin));
    for (int i = 0; i < N_SAMPLES; i++) {
        begin = bench_now();
        for (int j = 0; j < repeat; j++)
            (void)qn_launch(c, k, n, arg, &o, NULL);
        sample[i] = (bench_now() - begin) / repeat;
    }
    return bench_median(sample, N_SAMPLES);
}

/* Times both versions of each shape in the context of who knows them; the mean of a compile of an
 * exact one. */
static double know_best(qn_context *c, const qn_kernel *k, const replay *r, const arena *a,
                        shape *shapes)
{
    qn_counters n;
    for (int s = 0; s < r->n_shapes; s++) {
        shapes[s] = r->shape_of(s);
        shapes[s].exact = time_version(c, k, r, a, &shapes[s], QN_SPECIALIZE_EXACT);
    }
    qn_context_counters(c, &n, sizeof n);
    for (int s = 0; s < r->n_shapes; s++) {
        shape *x = &shapes[s];
        x->other = time_version(c, k, r, a, x, QN_SPECIALIZE_DYNAMIC);
        x->best = x->exact < x->other ? x->exact : x->other;
    }
    return n.compiles ? (double)n.compile_us * 1e-6 / (double)n.compiles : 0;
}

/* ---------------------------------------------------------------- traces */

static uint32_t mix(uint64_t i)
{
    i = (i + 1) * 0x9e3779b97f4a7c15u;
    i = (i ^ i >> 32) * 0xd6e8feb86659fd93u;
    return (uint32_t)(i >> 32);
}

static shape shape_random(int s)
{
    if (s == 0)
        return (shape){.n = {300, 300, 0}};
    return (shape){.n = {100 + mix((uint64_t)s) % 300, 100 + mix((uint64_t)s + 1000) % 300, 0}};
}

/* Nine of ten launches are of the hot shape, which is not among the first ones. */
static int next_hot(int64_t i, double done)
{
    (void)done;
    return i > 30 && mix((uint64_t)i) % 10 ? 0 : 1 + (int)(mix((uint64_t)i + 77) % 200);
}

static shape shape_drifting(int s)
{
    return (shape){.n = {200 + s, 200 + s, 0}};
}

static int next_drifting(int64_t i, double done)
{
    (void)i;
    int s = (int)(done * 200);
    return s < 200 ? s : 199;
}

static shape shape_batch(int s)
{
    return (shape){.n = {1 + s, 128, 128}};
}

static int next_batch(int64_t i, double done)
{
    (void)done;
    return (int)(mix((uint64_t)i) % 64);
}

static shape shape_two(int s)
{
    return s ? (shape){.n = {96, 96, 96}} : (shape){.n = {64, 128, 100}};
}

static int next_two(int64_t i, double done)
{
    (void)done;
    return (int)(i & 1);
}

static const replay replays[] = {
    {"policy/hot", stencil_text, 201, shape_random, next_hot, false, 150},
    {"policy/drifting", stencil_text, 200, shape_drifting, next_drifting, false, 150},
    {"policy/batch", product_text, 64, shape_batch, next_batch, true, 150},
    {"policy/two", product_text, 2, shape_two, next_two, true, 150},
};
enum { N_REPLAYS = sizeof replays / sizeof replays[0] };

/* Seconds of a trace whose best versions take about `length`; `knows`: whose best versions run. */
static double replay_once(bench *b, qn_context *c, const qn_kernel *k, const replay *r,
                          const arena *a, const shape *shapes, double length, bool knows)
{
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    qn_view view[MOST_VIEWS];
    qn_arg arg[MOST_VIEWS];
    qn_error err = {0};
    qn_status status = QN_OK;
    double best = 0, begin = bench_now();
    for (int64_t i = 0; best < length && status == QN_OK; i++) {
        const shape *s = &shapes[r->next(i, best / length)];
        int n = bind(r, a, s, view, arg);
        if (knows)
            o.specialize = s->exact < s->other ? QN_SPECIALIZE_EXACT : QN_SPECIALIZE_DYNAMIC;
        status = qn_launch(c, k, n, arg, &o, &err);
        best += s->best;
    }
    if (status != QN_OK)
        bench_wrong(b, r->name, "%s", err.message);
    return bench_now() - begin;
}

/* Loads the code generator. */
static void load_generator(bench *b, qn_context *c, const arena *a)
{
    const int64_t one[3] = {1, 1, 1};
    qn_kernel *k = parse(b, "policy", scale_text);
    qn_layout l;
    qn_view v;
    qn_error err = {0};
    (void)qn_layout_right(3, one, &l, NULL);
    (void)qn_view_wrap("one", a->data[0], QN_F32, &l, 0, &v, NULL);
    const qn_arg args[] = {qn_arg_view(&v), qn_arg_view(&v), qn_arg_f32(1)};
    if (k && qn_launch(c, k, 3, args, NULL, &err) != QN_OK)
        bench_wrong(b, "policy", "%s", err.message);
    qn_kernel_release(k);
}

/* The round whose regret is the median: others may have been disturbed. */
static int median_round(const double *best, const double *took)
{
    for (int i = 0; i < N_ROUNDS; i++) {
        int n_less = 0;
        for (int j = 0; j < N_ROUNDS; j++) {
            double x = took[j] / best[j], y = took[i] / best[i];
            n_less += x < y || (x == y && j < i);
        }
        if (n_less == N_ROUNDS / 2)
            return i;
    }
    return 0;
}

static void compare(bench *b, const replay *r, const arena *a, qn_context *knower,
                    const qn_kernel *k)
{
    static shape shapes[MOST_SHAPES];
    qn_counters before, n;
    double exact = 0, other = 0, compile = know_best(knower, k, r, a, shapes);
    for (int s = 0; s < r->n_shapes; s++) {
        exact += shapes[s].exact / shapes[s].best / r->n_shapes;
        other += shapes[s].other / shapes[s].best / r->n_shapes;
    }
    double length = compile * r->length, best[N_ROUNDS], took[N_ROUNDS];
    for (int i = 0; i < N_ROUNDS; i++) {
        qn_context *c = open_context(b, r->name); /* which knows nothing */
        if (!c)
            return;
        load_generator(b, c, a);
        qn_context_counters(c, &before, sizeof before);
        best[i] = replay_once(b, knower, k, r, a, shapes, length, true);
        took[i] = replay_once(b, c, k, r, a, shapes, length, false);
        best[i] = (best[i] + replay_once(b, knower, k, r, a, shapes, length, true)) / 2;
        qn_context_counters(c, &n, sizeof n);
        qn_context_release(c);
    }
    int middle = median_round(best, took);
    double regret = took[middle] / best[middle] - 1;
    printf("# %s: %" PRId64 " launches, %.0f compiles of %.2f ms long; %" PRId64
           " compiles, %" PRId64 " of them dynamic; exact versions take %.3f of the best, dynamic "
           "ones %.3f; regret %.1f %%\n",
           r->name, n.launches, best[middle] / compile, compile * 1e3, n.compiles - before.compiles,
           n.dynamic_compiles, exact, other, regret * 100);
    const bench_line line = {.name = r->name,
                             .group = GROUP_COST,
                             .ours = took[middle],
                             .theirs = best[middle],
                             .ratio = best[middle] / took[middle],
                             .goal = 1 / 1.1,
                             .short_below = 1 / 1.1};
    bench_report(b, &line);
}

static void replay_case(bench *b, const replay *r, const arena *a)
{
    if (!bench_wants(b, r->name))
        return;
    qn_context *knower = open_context(b, r->name);
    qn_kernel *k = parse(b, r->name, r->text);
    if (knower && k)
        compare(b, r, a, knower, k);
    qn_kernel_release(k);
    qn_context_release(knower);
}

/* ---------------------------------------------------------------- 100,000 shapes */

/* Bytes of the process in memory. */
static int64_t resident_bytes(void)
{
    long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &all, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (int64_t)resident * (int64_t)sysconf(_SC_PAGESIZE);
}

typedef struct side {
    qn_context *c;
    qn_kernel *k;
    qn_options o;
    double seconds;
} side;

/* Launches the shapes [from, to), each once. */
static bool launch_shapes(bench *b, side *s, const arena *a, int from, int to)
{
    qn_error err = {0};
    double begin = bench_now();
    for (int i = from; i < to; i++) {
        const int64_t n[3] = {1 + i % EDGE, 1 + i / EDGE % EDGE, 1 + i / (EDGE * EDGE)};
        qn_layout l;
        qn_view x, y;
        (void)qn_layout_right(3, n, &l, NULL);
        (void)qn_view_wrap("x", a->data[0], QN_F32, &l, 0, &x, NULL);
        (void)qn_view_wrap("y", a->data[1], QN_F32, &l, 0, &y, NULL);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32(2)};
        if (qn_launch(s->c, s->k, 3, args, &s->o, &err) != QN_OK) {
            bench_wrong(b, "policy/shapes", "%s", err.message);
            return false;
        }
    }
    s->seconds += bench_now() - begin;
    return true;
}

/* Both sides in turns, a thousand shapes each, without the first few, which compile. */
static void shapes_case(bench *b, const arena *a)
{
    enum { STEP = 1000, FLAT_FROM = 30000 };
    static const char name[] = "policy/shapes";
    if (!bench_wants(b, name))
        return;
    side s[2] = {0};
    for (int i = 0; i < 2; i++) {
        s[i].c = open_context(b, name);
        s[i].k = parse(b, name, scale_text);
        s[i].o = (qn_options){.bytes = sizeof s[i].o,
                              .engine = QN_ENGINE_NATIVE,
                              .specialize = i ? QN_SPECIALIZE_DYNAMIC : QN_SPECIALIZE_AUTO};
    }
    int64_t middle = 0, middle_cache = 0, n = 0;
    bool is_ok = s[0].c && s[1].c && s[0].k && s[1].k;
    qn_counters counters = {0};
    for (int i = 0; i + STEP <= N_SHAPES && is_ok; i += STEP) {
        is_ok = launch_shapes(b, &s[i / STEP % 2], a, i, i + STEP) &&
                launch_shapes(b, &s[1 - i / STEP % 2], a, i, i + STEP);
        if (i == 0)
            s[0].seconds = s[1].seconds = 0;
        else
            n += STEP;
        qn_context_counters(s[0].c, &counters, sizeof counters);
        if (i == FLAT_FROM) {
            middle = resident_bytes();
            middle_cache = counters.cache_bytes;
        }
    }
    if (is_ok) {
        printf("# %s: %" PRId64 " compiles, %" PRId64 " KiB of cache after %d shapes and %" PRId64
               " after all, %" PRId64 " KiB in memory and %" PRId64 "\n",
               name, counters.compiles, middle_cache >> 10, FLAT_FROM, counters.cache_bytes >> 10,
               middle >> 10, resident_bytes() >> 10);
        const bench_line line = {.name = name,
                                 .group = GROUP_COST,
                                 .ours = s[0].seconds / (double)n,
                                 .theirs = s[1].seconds / (double)n,
                                 .ratio = s[1].seconds / s[0].seconds,
                                 .goal = 1 / 1.3,
                                 .short_below = 1 / 1.3};
        bench_report(b, &line);
    }
    for (int i = 0; i < 2; i++) {
        qn_kernel_release(s[i].k);
        qn_context_release(s[i].c);
    }
}

void bench_policy_cases(bench *b)
{
    arena a = {0};
    bool is_ok = true;
    for (int i = 0; i < MOST_VIEWS; i++) {
        is_ok = is_ok && (a.data[i] = aligned_alloc(4096, ARRAY_BYTES)) != NULL;
        if (a.data[i])
            memset(a.data[i], 0, ARRAY_BYTES);
    }
    for (int i = 0; i < N_REPLAYS && is_ok; i++)
        replay_case(b, &replays[i], &a);
    if (is_ok)
        shapes_case(b, &a);
    for (int i = 0; i < MOST_VIEWS; i++)
        free(a.data[i]);
}
