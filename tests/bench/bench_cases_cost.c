/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_cost.c: what it costs to get to the code. A compile: from a finished kernel to code
 * that is ready, every time for extents that were never met; the code generator is loaded before. A
 * hit: from views to entered code through qn_launch when the code is there. A prepared call: qn_run
 * on one thread with checks on. "Theirs" is the goal, the ratio is goal / measured, and anything
 * slower than the goal is SHORT.
 */
#include "bench.h"
#include "native.h"

#include <stdio.h>
#include <string.h>

enum { N_COMPILES = 30, MAX_TINY = 16, N_SAMPLES = 15, N_CALLS = 20000, MAX_RANK = 3 };

static void report_cost(bench *b, const char *name, double seconds, double goal_seconds)
{
    bench_line line = {.name = name,
                       .group = GROUP_COST,
                       .ours = seconds,
                       .theirs = goal_seconds,
                       .ratio = goal_seconds / seconds,
                       .goal = 1,
                       .short_below = 1};
    bench_report(b, &line);
}

/* ---------------------------------------------------------------- compiling */

typedef struct compile_case {
    const char *name;
    int kernel, rank;
    double goal_seconds;
} compile_case;

/* Milliseconds are for one kernel and one shape; `round` makes the shape a new one. */
static bool compile_once(bench *b, const compile_case *c, int round, double *seconds)
{
    static float data[3][64 * 64];
    qn_error error = {0};
    int64_t extents[MAX_RANK];
    for (int d = 0; d < c->rank; d++)
        extents[d] = (c->rank == 3 ? 8 : 20) + (d == c->rank - 1 ? round : d);
    qn_layout layout;
    qn_view views[2];
    qn_arg args[3];
    int n_views = bench_n_views(c->kernel), n = 0;
    qn_status status = qn_layout_right(c->rank, extents, &layout, &error);
    for (int i = 0; !status && i < n_views; i++) {
        status = qn_view_wrap("view", data[i], QN_F32, &layout, 0, &views[i], &error);
        args[n++] = qn_arg_view(&views[i]);
    }
    if (bench_has_scalar(c->kernel))
        args[n++] = qn_arg_f32(2);
    qn_kernel *k = status ? NULL : bench_kernel(c->kernel, QN_F32, &error);
    qn_function *f = NULL;
    if (k) {
        qn_options o = {
            .bytes = sizeof o, .engine = QN_ENGINE_X86, .specialize = QN_SPECIALIZE_EXACT};
        double begin = bench_now();
        status = qn_specialize(b->context, k, n, args, &o, &f, &error);
        *seconds = bench_now() - begin;
    }
    qn_function_release(f);
    qn_kernel_release(k);
    if (!k || status)
        bench_wrong(b, c->name, "%s", error.message);
    return k && !status;
}

static void compile_cases(bench *b)
{
    static const compile_case cases[] = {
        {"compile/saxpy", KERNEL_SAXPY, 1, 2.5e-3},
        {"compile/stencil5", KERNEL_FIVE, 2, 5e-3},
        {"compile/stencil7", KERNEL_SEVEN, 3, 5e-3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds[N_COMPILES];
        qn_counters before, after;
        bool is_ok = bench_wants(b, cases[i].name) && !b->assembly_of;
        bool is_wanted = is_ok;
        qn_context_counters(b->context, &before);
        for (int round = 0; is_ok && round < N_COMPILES; round++)
            is_ok = compile_once(b, &cases[i], round, &seconds[round]);
        qn_context_counters(b->context, &after);
        if (is_ok && after.compiles - before.compiles != N_COMPILES)
            bench_wrong(b, cases[i].name, "%lld compiles, expected %d",
                        (long long)(after.compiles - before.compiles), N_COMPILES);
        if (is_wanted && is_ok)
            report_cost(b, cases[i].name, bench_median(seconds, N_COMPILES), cases[i].goal_seconds);
    }
}

/* ---------------------------------------------------------------- launching */

/* Seconds of one qn_launch and of one qn_run, saxpy of n elements; medians of samples in turns. */
static bool time_calls(bench *b, const qn_kernel *k, int64_t n, double *launch, double *run)
{
    static float data[2][MAX_TINY];
    qn_error error = {0};
    qn_layout layout;
    qn_view y, x;
    qn_call *call = NULL;
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_X86};
    bool is_ok = qn_layout_right(1, &n, &layout, &error) == QN_OK &&
                 qn_view_wrap("y", data[0], QN_F32, &layout, 0, &y, &error) == QN_OK &&
                 qn_view_wrap("x", data[1], QN_F32, &layout, 0, &x, &error) == QN_OK;
    if (!is_ok) {
        bench_wrong(b, "call", "%s", error.message);
        return false;
    }
    qn_arg args[3] = {qn_arg_view(&y), qn_arg_view(&x), qn_arg_f32(0.5f)};
    if (qn_prepare(b->context, k, 3, args, &o, &call, &error) ||
        qn_launch(b->context, k, 3, args, &o, &error) || qn_run(call, &error)) {
        bench_wrong(b, "call", "%s", error.message);
        qn_call_release(call);
        return false;
    }
    double launches[N_SAMPLES], runs[N_SAMPLES];
    for (int s = 0; s < N_SAMPLES; s++) {
        double begin = bench_now();
        for (int i = 0; i < N_CALLS; i++)
            (void)qn_launch(b->context, k, 3, args, &o, &error);
        double middle = bench_now();
        for (int i = 0; i < N_CALLS; i++)
            (void)qn_run(call, &error);
        launches[s] = (middle - begin) / (double)N_CALLS;
        runs[s] = (bench_now() - middle) / (double)N_CALLS;
    }
    qn_call_release(call);
    *launch = bench_median(launches, N_SAMPLES);
    *run = bench_median(runs, N_SAMPLES);
    return true;
}

/* A launch less a prepared call is what it costs to get from views to the code. */
static void call_cases(bench *b)
{
    bool wants_hit = bench_wants(b, "hit/saxpy"), wants_run = bench_wants(b, "prepared/saxpy");
    if (b->assembly_of || (!wants_hit && !wants_run))
        return;
    qn_error error = {0};
    qn_kernel *k = bench_kernel(KERNEL_SAXPY, QN_F32, &error);
    double launch[MAX_TINY], run[MAX_TINY], hit[MAX_TINY];
    bool is_ok = k != NULL;
    for (int n = 1; is_ok && n <= MAX_TINY; n++) {
        is_ok = time_calls(b, k, n, &launch[n - 1], &run[n - 1]);
        hit[n - 1] = launch[n - 1] - run[n - 1];
    }
    qn_kernel_release(k);
    if (!is_ok)
        return;
    printf("# saxpy of 1 to %d elements: qn_launch %.1f ns, qn_run %.1f ns (medians)\n", MAX_TINY,
           bench_median(launch, MAX_TINY) * 1e9, bench_median(run, MAX_TINY) * 1e9);
    if (wants_hit)
        report_cost(b, "hit/saxpy", bench_median(hit, MAX_TINY), 100e-9);
    if (wants_run)
        report_cost(b, "prepared/saxpy", bench_median(run, MAX_TINY), 15e-9);
}

/* ---------------------------------------------------------------- views */

/* A view from three extents and memory of the caller: layout and wrapping. */
static bool create_view(const qn_view *from, qn_view *out)
{
    static const int64_t extents[] = {8, 8, 8};
    qn_layout l;
    return qn_layout_right(3, extents, &l, NULL) == QN_OK &&
           qn_view_wrap("view", from->data, QN_F32, &l, 0, out, NULL) == QN_OK;
}

/* An index, all, and a range of three dimensions. */
static bool cut_view(const qn_view *from, qn_view *out)
{
    const qn_slice cut[] = {{.kind = QN_AT, .begin = 3},
                            {.kind = QN_ALL},
                            {.kind = QN_RANGE, .begin = 2, .end = 7}};
    return qn_subview(from, 3, cut, out, NULL) == QN_OK;
}

static void view_cases(bench *b)
{
    static const struct {
        const char *name;
        bool (*make)(const qn_view *from, qn_view *out);
        double goal_seconds;
    } cases[] = {{"view/create", create_view, 60e-9}, {"view/subview", cut_view, 40e-9}};
    static float data[8 * 8 * 8];
    qn_view from = {.data = data}, made;
    if (b->assembly_of)
        return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds[N_SAMPLES];
        bool is_ok = create_view(&from, &from);
        if (!bench_wants(b, cases[i].name))
            continue;
        for (int s = 0; s < N_SAMPLES; s++) {
            double begin = bench_now();
            for (int n = 0; n < N_CALLS; n++)
                is_ok &= cases[i].make(&from, &made);
            seconds[s] = (bench_now() - begin) / N_CALLS;
        }
        if (is_ok)
            report_cost(b, cases[i].name, bench_median(seconds, N_SAMPLES), cases[i].goal_seconds);
        else
            bench_wrong(b, cases[i].name, "no view");
    }
}

void bench_cost_cases(bench *b)
{
    compile_cases(b);
    call_cases(b);
    view_cases(b);
}
