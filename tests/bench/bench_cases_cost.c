/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_cost.c: what it costs to get to code that is there. A hit: from views to entered code
 * through qn_launch. A prepared call: qn_run on one thread with checks on. The first launch in a
 * context that has no code generator: code on disk. A launch of a new shape that does not wait:
 * what it takes beyond the run of the generic version. "Theirs" is the goal, the ratio is goal /
 * measured, and anything slower than the goal is SHORT.
 */
#define _POSIX_C_SOURCE 200809L
#include "bench.h"
#include "native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quern/cache.h"

enum { MAX_TINY = 16, N_SAMPLES = 15, N_CALLS = 20000 };

/* ---------------------------------------------------------------- launching */

/* Seconds of one qn_launch and of one qn_run, saxpy of n elements; medians of samples in turns. */
static bool time_calls(bench *b, const qn_kernel *k, int64_t n, double *launch, double *run)
{
    static float data[2][MAX_TINY];
    qn_error error = {0};
    qn_layout layout;
    qn_view y, x;
    qn_call *call = NULL;
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
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
        bench_report_cost(b, "hit/saxpy", bench_median(hit, MAX_TINY), 40e-9);
    if (wants_run)
        bench_report_cost(b, "prepared/saxpy", bench_median(run, MAX_TINY), 10e-9);
}

/* ---------------------------------------------------------------- code on disk */

enum { DISK_EDGE = 64, N_DISK = 41 };

/* Seconds of the first launch in a new context; the first of all compiles, the others have no code
 * generator. */
static bool launch_first(bench *b, const char *name, int kernel, const char *folder, bool is_cold,
                         double *seconds)
{
    static float data[2][DISK_EDGE * DISK_EDGE];
    static const int64_t extents[] = {DISK_EDGE, DISK_EDGE};
    const qn_context_options wanted = {
        .bytes = sizeof wanted, .disk_cache = folder, .provider_path = is_cold ? NULL : "/nowhere"};
    const qn_options o = {
        .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .specialize = QN_SPECIALIZE_EXACT};
    qn_error error = {0};
    qn_counters counters = {0};
    qn_context *c = NULL;
    qn_layout layout;
    qn_view view[2] = {0};
    qn_arg args[3] = {qn_arg_view(&view[0]), qn_arg_view(&view[1]), qn_arg_f32(0.5f)};
    qn_kernel *k = bench_kernel(kernel, QN_F32, &error);
    bool is_ok =
        k && qn_layout_right(kernel == KERNEL_FIVE ? 2 : 1, extents, &layout, &error) == QN_OK;
    for (int i = 0; i < 2 && is_ok; i++)
        is_ok = qn_view_wrap("view", data[i], QN_F32, &layout, 0, &view[i], &error) == QN_OK;
    is_ok = is_ok && qn_context_new(&wanted, &c, &error) == QN_OK;
    double begin = bench_now();
    is_ok = is_ok && qn_launch(c, k, bench_n_views(kernel) + bench_has_scalar(kernel), args, &o,
                               &error) == QN_OK;
    *seconds = bench_now() - begin;
    qn_context_counters(c, &counters, sizeof counters);
    is_ok = is_ok && counters.disk_hits == !is_cold;
    if (!is_ok)
        bench_wrong(b, name, "%s", error.status ? error.message : "not from disk");
    qn_context_release(c);
    qn_kernel_release(k);
    return is_ok;
}

/* Removes a cache with its folder. */
static void remove_folder(const char *folder)
{
    char lock[64], part[64];
    qn_cache_clear(folder, NULL, NULL);
    snprintf(lock, sizeof lock, "%s/lock", folder);
    unlink(lock);
    for (int n = 0; n < 256; n++) {
        snprintf(part, sizeof part, "%s/%02x", folder, (unsigned)n);
        rmdir(part);
    }
    rmdir(folder);
}

static void disk_cases(bench *b)
{
    static const struct {
        const char *name;
        int kernel;
    } cases[] = {{"cache/disk/first", KERNEL_SAXPY}, {"cache/disk/first/stencil5", KERNEL_FIVE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !b->assembly_of; i++) {
        char folder[] = "/tmp/bench_cache.XXXXXX";
        double seconds[N_DISK], cold;
        if (!bench_wants(b, cases[i].name) || !mkdtemp(folder))
            continue;
        bool is_ok = launch_first(b, cases[i].name, cases[i].kernel, folder, true, &cold);
        for (int s = 0; s < N_DISK && is_ok; s++)
            is_ok = launch_first(b, cases[i].name, cases[i].kernel, folder, false, &seconds[s]);
        if (is_ok)
            bench_report_cost(b, cases[i].name, bench_median(seconds, N_DISK), 0.1e-3);
        remove_folder(folder);
    }
}

/* ---------------------------------------------------------------- cold shapes */

enum { COLD_EDGE = 512, N_COLD = 15, N_WARM = 5 };

static void open_cold(qn_view *view, float *data, int64_t row)
{
    const int64_t extents[] = {COLD_EDGE, COLD_EDGE}, strides[] = {row, 1};
    qn_layout layout;
    qn_layout_strided(2, extents, strides, &layout, NULL);
    qn_view_wrap("view", data, QN_F32, &layout, 0, view, NULL);
}

/* Seconds by which the first launch of a shape that does not wait takes longer than the generic
 * version, which is on disk. */
static bool launch_cold(bench *b, const char *name, const qn_kernel *k, const char *folder,
                        int64_t row, double *seconds)
{
    static float data[2][COLD_EDGE * (COLD_EDGE + N_COLD + 1)];
    const qn_context_options wanted = {.bytes = sizeof wanted, .disk_cache = folder};
    const qn_options now = {.bytes = sizeof now, .compile = QN_COMPILE_NOW},
                     generic = {.bytes = sizeof generic,
                                .engine = QN_ENGINE_NATIVE,
                                .specialize = QN_SPECIALIZE_GENERIC};
    qn_error error = {0};
    qn_counters counters = {0};
    qn_context *c = NULL;
    qn_view view[2];
    const qn_arg args[] = {qn_arg_view(&view[0]), qn_arg_view(&view[1])};
    double warm[N_WARM];
    open_cold(&view[0], data[0], row);
    open_cold(&view[1], data[1], row);
    bool is_ok = qn_context_new(&wanted, &c, &error) == QN_OK;
    double begin = bench_now();
    is_ok = is_ok && qn_launch(c, k, 2, args, &now, &error) == QN_OK;
    double first = bench_now() - begin;
    qn_context_counters(c, &counters, sizeof counters);
    for (int i = 0; i < N_WARM && is_ok; i++) {
        begin = bench_now();
        is_ok = qn_launch(c, k, 2, args, &generic, &error) == QN_OK;
        warm[i] = bench_now() - begin;
    }
    *seconds = first - bench_median(warm, N_WARM);
    is_ok = is_ok && (row == COLD_EDGE || (counters.disk_hits == 1 && counters.interpreted == 0));
    if (!is_ok)
        bench_wrong(b, name, "%s",
                    error.status ? error.message : "the generic version was not taken from disk");
    qn_context_release(c);
    return is_ok;
}

static void cold_case(bench *b)
{
    const char *name = "cold/stencil5";
    char folder[] = "/tmp/bench_cache.XXXXXX";
    double seconds[N_COLD + 1];
    qn_error error = {0};
    if (b->assembly_of || !bench_wants(b, name) || !mkdtemp(folder))
        return;
    qn_kernel *k = bench_kernel(KERNEL_FIVE, QN_F32, &error);
    bool is_ok = k != NULL;
    for (int i = 0; i <= N_COLD && is_ok;
         i++) /* the first has nothing on disk, and makes the generic version */
        is_ok = launch_cold(b, name, k, folder, COLD_EDGE + i, &seconds[i]);
    if (is_ok)
        bench_report_cost(b, name, bench_median(seconds + 1, N_COLD), 0.2e-3);
    qn_kernel_release(k);
    remove_folder(folder);
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
            seconds[s] = (bench_now() - begin) / (double)N_CALLS;
        }
        if (is_ok)
            bench_report_cost(b, cases[i].name, bench_median(seconds, N_SAMPLES),
                              cases[i].goal_seconds);
        else
            bench_wrong(b, cases[i].name, "no view");
    }
}

void bench_cost_cases(bench *b)
{
    call_cases(b);
    disk_cases(b);
    cold_case(b);
    view_cases(b);
}
