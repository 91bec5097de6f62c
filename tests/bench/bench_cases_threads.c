/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_threads.c: what threads gain. T = 1, 2, 4, ... up to all processors: matrix products
 * and a body that only computes against T threads of the fma chains that measure the peak (so that
 * clocks that fall and processors that share a core count for both); out of cache a triad, a
 * stencil in space and a transposition against T threads of a triad with streaming stores that
 * moves as many bytes, sums of rows and columns against T threads that only read. From which size
 * on threads are used is checked by short vectors, serial against threads.
 *
 * Times are those of the clock, from the start of all threads to the end of the last. The program
 * lets go of its one processor for these cases; they come last.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "native.h"
#include "native_product.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_THREADS = 256, N_SAMPLES = 9, MOST_VIEWS = 3, N_SAMPLED = 32 };
#define SAMPLE_SECONDS 20e-3
#define SMALL_SECONDS 1e-3

/* ---------------------------------------------------------------- threads of their own */

typedef struct team {
    int n;
    void (*fn)(void *arg, int member, int n);
    void *arg;
    pthread_barrier_t start;
} team;

typedef struct member {
    team *t;
    int at;
    pthread_t thread;
} member;

static void *run_member(void *arg)
{
    member *m = arg;
    pthread_barrier_wait(&m->t->start);
    m->t->fn(m->t->arg, m->at, m->t->n);
    return NULL;
}

/* Seconds from the moment at which all n threads are there to the end of the last; negative if they
 * cannot be had. */
static double run_team(int n, void (*fn)(void *arg, int member, int n), void *arg)
{
    team t = {.n = n, .fn = fn, .arg = arg};
    member m[MOST_THREADS];
    if (pthread_barrier_init(&t.start, NULL, (unsigned)n))
        return -1;
    for (int i = 1; i < n; i++) {
        m[i] = (member){.t = &t, .at = i};
        if (pthread_create(&m[i].thread, NULL, run_member, &m[i])) {
            fprintf(stderr, "bench_main: no thread %d\n", i);
            exit(1); /* those that wait at the barrier would do so for ever */
        }
    }
    pthread_barrier_wait(&t.start);
    double begin = bench_now();
    fn(arg, 0, n);
    for (int i = 1; i < n; i++)
        pthread_join(m[i].thread, NULL);
    double seconds = bench_now() - begin;
    pthread_barrier_destroy(&t.start);
    return seconds;
}

static void fma_member(void *arg, int at, int n)
{
    const double *operations = arg;
    (void)native_peak_f64((int64_t)(*operations / n / 192) + 1, at);
}

/* Seconds in which n threads do so many operations. */
static double fma_seconds(int n, double operations)
{
    double all = operations;
    while (all < 1e9 * n) /* long against the start of threads */
        all *= 2;
    return run_team(n, fma_member, &all) * operations / all;
}

/* ---------------------------------------------------------------- cases */

typedef struct threads_case {
    const char *name, *text;
    int n_views, rank;
    int64_t extent; /* of each dimension */
    double flops;   /* 0: against streams */
    double goal;
    const char *ranks; /* of the views, where they differ */
    bool is_read;      /* against reading; else against a triad */
} threads_case;

static const char product_text[] =
    "kernel \"product\" contract { view a: f64[2]; view b: f64[2]; view c: f64[2];\n"
    "%z: i64 = const 0; %n: i64 = extent c, 0; %i: i64 = parallel %z, %n; %j: i64 = parallel %z, "
    "%n;\n"
    "%k: i64 = reduction %z, %n;\n"
    "%r: f64 = reduce sum over %k { %x: f64 = load a[%i, %k]; %y: f64 = load b[%k, %j]; %p: f64 = "
    "mul %x, %y; yield %p; };\n"
    "store c[%i, %j], %r; }\n";
/* Eight orbits of x*x + c. */
static const char orbit_text[] =
    "kernel \"orbits\" contract { view x: f64[1]; view y: f64[1];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %i: i64 = parallel %z, %n; %most: i64 = const 64; "
    "%h: f64 = const 0.5;\n"
    "%c0: f64 = load x[%i]; %c1: f64 = mul %c0, %h; %c2: f64 = mul %c1, %h; %c3: f64 = mul %c2, "
    "%h; %c4: f64 = mul %c3, %h;\n"
    "%c5: f64 = mul %c4, %h; %c6: f64 = mul %c5, %h; %c7: f64 = mul %c6, %h;\n"
    "%r0: f64, %r1: f64, %r2: f64, %r3: f64, %r4: f64, %r5: f64, %r6: f64, %r7: f64 = for %k: i64 "
    "= %z to %most step 1 (\n"
    "%p0: f64 = %c0, %p1: f64 = %c1, %p2: f64 = %c2, %p3: f64 = %c3, %p4: f64 = %c4, %p5: f64 = "
    "%c5, %p6: f64 = %c6, %p7: f64 = %c7) {\n"
    "%q0: f64 = mul %p0, %p0; %s0: f64 = add %q0, %c0; %q1: f64 = mul %p1, %p1; %s1: f64 = add "
    "%q1, %c1;\n"
    "%q2: f64 = mul %p2, %p2; %s2: f64 = add %q2, %c2; %q3: f64 = mul %p3, %p3; %s3: f64 = add "
    "%q3, %c3;\n"
    "%q4: f64 = mul %p4, %p4; %s4: f64 = add %q4, %c4; %q5: f64 = mul %p5, %p5; %s5: f64 = add "
    "%q5, %c5;\n"
    "%q6: f64 = mul %p6, %p6; %s6: f64 = add %q6, %c6; %q7: f64 = mul %p7, %p7; %s7: f64 = add "
    "%q7, %c7;\n"
    "yield %s0, %s1, %s2, %s3, %s4, %s5, %s6, %s7; };\n"
    "%t0: f64 = add %r0, %r1; %t1: f64 = add %t0, %r2; %t2: f64 = add %t1, %r3; %t3: f64 = add "
    "%t2, %r4;\n"
    "%t4: f64 = add %t3, %r5; %t5: f64 = add %t4, %r6; %t6: f64 = add %t5, %r7; store y[%i], %t6; "
    "}\n";
static const char triad_text[] =
    "kernel \"triad\" contract { view a: f64[1]; view b: f64[1]; view x: f64[1];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %i: i64 = parallel %z, %n; %s: f64 = const 0.375;\n"
    "%p: f64 = load a[%i]; %q: f64 = load b[%i]; %t: f64 = mul %q, %s; %u: f64 = add %p, %t; store "
    "x[%i], %u; }\n";

static const char stencil_text[] =
    "kernel \"stencil7\" contract { view a: f64[3]; view x: f64[3]; %o: i64 = const 1; %e: i64 = "
    "extent x, 0; %n: i64 = sub %e, %o;\n"
    "%i: i64 = parallel %o, %n; %j: i64 = parallel %o, %n; %k: i64 = parallel %o, %n; %h: f64 = "
    "const 0.125;\n"
    "%i0: i64 = sub %i, %o; %i1: i64 = add %i, %o; %j0: i64 = sub %j, %o; %j1: i64 = add %j, %o; "
    "%k0: i64 = sub %k, %o; %k1: i64 = add %k, %o;\n"
    "%c: f64 = load a[%i, %j, %k]; %p: f64 = load a[%i0, %j, %k]; %q: f64 = load a[%i1, %j, %k]; "
    "%r: f64 = load a[%i, %j0, %k];\n"
    "%s: f64 = load a[%i, %j1, %k]; %t: f64 = load a[%i, %j, %k0]; %u: f64 = load a[%i, %j, %k1];\n"
    "%s0: f64 = add %p, %q; %s1: f64 = add %r, %s; %s2: f64 = add %t, %u; %s3: f64 = add %s0, %s1; "
    "%s4: f64 = add %s3, %s2;\n"
    "%s5: f64 = mul %s4, %h; %s6: f64 = add %s5, %c; store x[%i, %j, %k], %s6; }\n";
static const char rows_text[] =
    "kernel \"rows\" { view a: f64[2]; view x: f64[1]; %z: i64 = const 0; %n: i64 = extent x, 0;\n"
    "%i: i64 = parallel %z, %n; %k: i64 = reduction %z, %n;\n"
    "%s: f64 = reduce sum over %k { %v: f64 = load a[%i, %k]; yield %v; }; store x[%i], %s; }\n";
static const char columns_text[] =
    "kernel \"columns\" { view a: f64[2]; view x: f64[1]; %z: i64 = const 0; %n: i64 = extent x, "
    "0;\n"
    "%i: i64 = parallel %z, %n; %k: i64 = reduction %z, %n;\n"
    "%s: f64 = reduce sum over %k { %v: f64 = load a[%k, %i]; yield %v; }; store x[%i], %s; }\n";
static const char transpose_text[] = "kernel \"transpose\" { view a: f64[2]; view x: f64[2]; %z: "
                                     "i64 = const 0; %n: i64 = extent x, 0;\n"
                                     "%i: i64 = parallel %z, %n; %j: i64 = parallel %z, %n; %v: "
                                     "f64 = load a[%j, %i]; store x[%i, %j], %v; }\n";

typedef struct arrays {
    qn_context *context;
    qn_options options; /* on one thread */
    qn_kernel *k;
    qn_view view[MOST_VIEWS];
    qn_arg args[MOST_VIEWS];
    int64_t n_elements[MOST_VIEWS];
} arrays;

static double *data_of(const arrays *a, int v)
{
    return a->view[v].data;
}

static qn_status make(const bench *b, const threads_case *c, qn_context *context, arrays *a,
                      qn_error *err)
{
    int64_t extents[3] = {c->extent, c->extent, c->extent};
    *a = (arrays){.context = context, .options = bench_options(b)};
    qn_status status = qn_kernel_parse(c->text, strlen(c->text), &a->k, err);
    for (int v = 0; v < c->n_views && !status; v++) {
        qn_layout l;
        int rank = c->ranks ? c->ranks[v] - '0' : c->rank;
        a->n_elements[v] = 1;
        for (int d = 0; d < rank; d++)
            a->n_elements[v] *= c->extent;
        status = qn_layout_right(rank, extents, &l, err);
        if (!status)
            status = qn_view_alloc(context, "array", QN_F64, &l, 0, &a->view[v], err);
        a->args[v] = qn_arg_view(&a->view[v]);
        for (int64_t i = 0; !status && i < a->n_elements[v]; i++)
            data_of(a, v)[i] = (double)(i * 7919 % 1009 + v) / 4096 - 0.125;
    }
    return status;
}

static void release(arrays *a)
{
    for (int v = 0; v < MOST_VIEWS; v++)
        qn_view_release(&a->view[v]);
    qn_kernel_release(a->k);
}

static qn_status prepare(const arrays *a, const threads_case *c, int n_threads, qn_call **out,
                         qn_error *err)
{
    qn_options o = a->options;
    o.max_threads = n_threads;
    o.executor = n_threads > 1 ? QN_THREADS : QN_SERIAL;
    return qn_prepare(a->context, a->k, c->n_views, a->args, &o, out, err);
}

/* The share of a member: whole cache lines. */
static int64_t share(int64_t elements, int at, int n)
{
    return at == n ? elements : elements / 8 * at / n * 8;
}

static void triad_member(void *arg, int at, int n)
{
    const arrays *a = arg;
    int64_t low = share(a->n_elements[0], at, n), high = share(a->n_elements[0], at + 1, n);
    native_stream_triad(data_of(a, 2) + low, data_of(a, 0) + low, data_of(a, 1) + low, 0.375,
                        high - low, 8);
}

static void read_member(void *arg, int at, int n)
{
    const arrays *a = arg;
    int64_t low = share(a->n_elements[0], at, n), high = share(a->n_elements[0], at + 1, n);
    native_sink = native_read(data_of(a, 0) + low, high - low);
}

/* Bytes that a case reads and writes. */
static double bytes_of(const arrays *a)
{
    double n = 0;
    for (int v = 0; v < MOST_VIEWS; v++)
        n += (double)a->n_elements[v] * sizeof(double);
    return n;
}

/* Seconds in which n threads do the operations of the case, or move its bytes: those of the
 * streams, but that reading takes the array of the case. */
static double theirs_seconds(const threads_case *c, arrays *a, arrays *streams, int n)
{
    if (c->flops > 0)
        return fma_seconds(n, c->flops);
    if (c->is_read)
        return run_team(n, read_member, a);
    return run_team(n, triad_member, streams) * bytes_of(a) / bytes_of(streams);
}

/* ---------------------------------------------------------------- checks */

/* The last view after n threads is bit for bit that of one thread, and that is right. */
static bool check(const threads_case *c, const arrays *a, qn_call *serial, qn_call *call,
                  qn_error *err)
{
    double *out = data_of(a, c->n_views - 1);
    int64_t n_elements = a->n_elements[c->n_views - 1];
    size_t bytes = (size_t)n_elements * sizeof *out;
    double *kept = malloc(bytes);
    memset(out, 0, bytes); /* also what the kernel does not write */
    bool is_same = kept && !qn_run(serial, err);
    if (is_same)
        memcpy(kept, out, bytes);
    memset(out, 0, bytes);
    is_same = is_same && !qn_run(call, err) && memcmp(kept, out, bytes) == 0;
    for (int s = 0; is_same && s < N_SAMPLED; s++) {
        int64_t at = s == 0 ? n_elements - 1 : rand() % n_elements, n = c->extent;
        double sum = -0.0;
        if (c->text == product_text)
            for (int64_t k = 0; k < n; k++)
                sum = fma(data_of(a, 0)[at / n * n + k], data_of(a, 1)[k * n + at % n], sum);
        else if (c->text == triad_text)
            sum = fma(data_of(a, 1)[at], 0.375, data_of(a, 0)[at]);
        else
            sum = out[at];
        is_same = memcmp(&sum, &out[at], sizeof sum) == 0;
    }
    free(kept);
    return is_same;
}

/* ---------------------------------------------------------------- timing */

static double run_times(qn_call *call, int n)
{
    double begin = bench_now();
    for (int i = 0; i < n; i++)
        (void)qn_run(call, NULL);
    return (bench_now() - begin) / n;
}

/* So many calls take at least so long. */
static int calls_of(qn_call *call, double seconds)
{
    int n = 1;
    while (n < 1 << 20 && run_times(call, n) * n < seconds)
        n *= 2;
    return n;
}

static void time_case(bench *b, const char *name, const threads_case *c, arrays *a, arrays *streams,
                      qn_call *call, int n_threads)
{
    double ours[N_SAMPLES], theirs[N_SAMPLES];
    int n = calls_of(call, SAMPLE_SECONDS);
    for (int i = 0; i < N_SAMPLES; i++) {
        ours[i] = run_times(call, n);
        theirs[i] = theirs_seconds(c, a, streams, n_threads);
    }
    bench_line line = {.name = name, .group = GROUP_PEAK, .goal = c->goal, .short_below = c->goal};
    bench_report_pairs(b, &line, ours, theirs, N_SAMPLES);
    double work = c->flops > 0 ? c->flops : bytes_of(a);
    printf("# %s: %.1f %s\n", name, work / line.ours * 1e-9, c->flops > 0 ? "GF/s" : "GB/s");
}

static bool wants_case(bench *b, const threads_case *c, int most)
{
    char name[96];
    bool is_wanted = false;
    for (int t = 1; t <= most; t = t < most && t * 2 > most ? most : t * 2) {
        snprintf(name, sizeof name, "%s/%d", c->name, t);
        is_wanted |= bench_wants(b, name);
    }
    return is_wanted;
}

static void run_case(bench *b, qn_context *context, const threads_case *c, arrays *streams,
                     int most)
{
    arrays a;
    qn_error error = {0};
    char name[96];
    if (!wants_case(b, c, most))
        return;
    qn_call *serial = NULL;
    qn_status status = make(b, c, context, &a, &error);
    if (!status)
        status = prepare(&a, c, 1, &serial, &error);
    for (int t = 1; !status && t <= most; t = t < most && t * 2 > most ? most : t * 2) {
        qn_call *call = NULL;
        snprintf(name, sizeof name, "%s/%d", c->name, t);
        if (!bench_wants(b, name))
            continue;
        status = prepare(&a, c, t, &call, &error);
        if (!status && !check(c, &a, serial, call, &error))
            bench_wrong(b, name, "%s", error.status ? error.message : "elements differ");
        else if (!status)
            time_case(b, name, c, &a, streams, call, t);
        qn_call_release(call);
    }
    if (status)
        bench_wrong(b, c->name, "%s", error.message);
    qn_call_release(serial);
    release(&a);
}

/* threads/small/triad/N: all threads against one, in cache. */
static void small_cases(bench *b, qn_context *context, int most)
{
    for (int64_t n = 4096; n <= 1 << 20; n *= 2) {
        char name[96];
        arrays a;
        qn_error error = {0};
        qn_call *call[2] = {NULL, NULL};
        double seconds[2][N_SAMPLES] = {{0}}, ratio[N_SAMPLES] = {0};
        threads_case c = {.name = name, .text = triad_text, .n_views = 3, .rank = 1, .extent = n};
        snprintf(name, sizeof name, "threads/small/triad/%lld", (long long)n);
        if (!bench_wants(b, name))
            continue;
        qn_status status = make(b, &c, context, &a, &error);
        for (int i = 0; i < 2 && !status; i++)
            status = prepare(&a, &c, i ? most : 1, &call[i], &error);
        bool is_right = !status && check(&c, &a, call[0], call[1], &error);
        if (!is_right)
            bench_wrong(b, name, "%s", status ? error.message : "elements differ");
        for (int i = 0; i < N_SAMPLES && is_right; i++) {
            for (int w = 0; w < 2; w++)
                seconds[w][i] = run_times(call[w], calls_of(call[w], SMALL_SECONDS));
            ratio[i] = seconds[0][i] / seconds[1][i];
        }
        bench_line line = {.name = name, .group = GROUP_COST, .goal = 1, .short_below = 0.95};
        line.ours = bench_median(seconds[1], N_SAMPLES);
        line.theirs = bench_median(seconds[0], N_SAMPLES);
        line.ratio = bench_median(ratio, N_SAMPLES);
        if (is_right)
            bench_report(b, &line);
        qn_call_release(call[0]);
        qn_call_release(call[1]);
        release(&a);
    }
}

/* All processors that the system lets this process have. */
static int release_processor(void)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        CPU_SET(i, &all);
    sched_setaffinity(0, sizeof all, &all);
    int n = sched_getaffinity(0, sizeof all, &all) ? 1 : CPU_COUNT(&all);
    return n > MOST_THREADS ? MOST_THREADS : n;
}

void bench_threads_cases(bench *b)
{
    static const threads_case cases[] = {
        {"threads/product/512", product_text, 3, 2, 512, 2.0 * 512 * 512 * 512, 0.6, NULL, false},
        {"threads/product/1024", product_text, 3, 2, 1024, 2.0 * 1024 * 1024 * 1024, 0.8, NULL,
         false},
        {"threads/product/1536", product_text, 3, 2, 1536, 2.0 * 1536 * 1536 * 1536, 0.8, NULL,
         false},
        {"threads/product/2048", product_text, 3, 2, 2048, 2.0 * 2048 * 2048 * 2048, 0.8, NULL,
         false},
        {"threads/orbits", orbit_text, 2, 1, 1 << 19, (1 << 19) * (64.0 * 8 * 2 + 14), 0.8, NULL,
         false},
        {"threads/triad", triad_text, 3, 1, 1 << 25, 0, 0.95, NULL, false},
        {"threads/stencil7", stencil_text, 2, 3, 324, 0, 0.9, NULL, false},
        {"threads/transpose", transpose_text, 2, 2, 6016, 0, 0.6, NULL, false},
        {"threads/rows", rows_text, 2, 2, 8100, 0, 0.9, "21", true},
        {"threads/columns", columns_text, 2, 2, 8100, 0, 0.9, "21", true},
    };
    if (b->assembly_of)
        return;
    qn_context *context = NULL;
    qn_error error = {0};
    int most = release_processor();
    qn_context_options o = {.bytes = sizeof o, .n_threads = most};
    const threads_case *triad = &cases[5];
    bool has_streams = false;
    arrays streams = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        has_streams |= cases[i].flops == 0 && wants_case(b, &cases[i], most);
    qn_status status = qn_context_new(&o, &context, &error);
    if (!status && has_streams)
        status = make(b, triad, context, &streams, &error);
    if (status) {
        bench_wrong(b, "threads", "%s", error.message);
        most = 0;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases && most; i++)
        run_case(b, context, &cases[i], &streams, most);
    release(&streams);
    if (most)
        small_cases(b, context, most);
    qn_context_release(context);
}
