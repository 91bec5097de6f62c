/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_model.c: `bench_cuda --model`: how well estimates tell grids apart. Each line is run
 * under the planner's grid and under others that the kernel allows. Its results are not checked
 * then, and no peer runs.
 */
#include "tests/bench/bench_cuda.h"
#include "tests/bench/bench_plan.h"
#include "tests/bench/bench_rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CANDIDATES = 16, N_SAMPLES = 5, MOST_REPEATS = 200 };
#define SAMPLE_SECONDS 1e-3
#define SLOW_TIMES 20 /* the planner's: one run is enough */

/* The first is the planner's. A field that a kernel does not follow gives code that was there. */
static const char *const plans[] = {"",
                                    "team=1",
                                    "team=2",
                                    "team=4",
                                    "distribute=-1",
                                    "width=1",
                                    "width=2",
                                    "width=4",
                                    "width=8",
                                    "jam=1",
                                    "lane_dim=1",
                                    "lane_dim=2",
                                    "lane_dim=3",
                                    "jam_dim=1,jam=2",
                                    "jam_dim=1,jam=4",
                                    "jam_dim=2,jam=2",
                                    "jam_dim=2,jam=4",
                                    "jam_dim=3,jam=4"};
enum { N_PLANS = sizeof plans / sizeof plans[0] };

/** Seconds of one of so many runs, between two marks. */
static double seconds_of(gpu_bench *b, qn_call *call, int runs)
{
    qn_mark *begin = NULL, *end = NULL;
    double ms = INFINITY;
    qn_status status = qn_stream_mark(b->stream, 1, &begin, NULL);
    for (int i = 0; i < runs && !status; i++)
        status = qn_run(call, NULL);
    if (!status)
        status = qn_stream_mark(b->stream, 1, &end, NULL);
    if (!status)
        status = qn_stream_fence(b->stream, NULL);
    if (!status)
        status = qn_mark_milliseconds(begin, end, &ms, NULL);
    qn_mark_release(begin);
    qn_mark_release(end);
    return status ? INFINITY : ms * 1e-3 / runs;
}

/** The shortest of some samples. */
static double shortest_of(gpu_bench *b, qn_call *call, double planners)
{
    (void)seconds_of(b, call, 1);
    double least = seconds_of(b, call, 1);
    if (planners > 0 && least > SLOW_TIMES * planners)
        return least;
    double repeats = ceil(SAMPLE_SECONDS / (least + 1e-9));
    for (int n = 0; n < N_SAMPLES; n++) {
        double here =
            seconds_of(b, call, repeats < (double)MOST_REPEATS ? (int)repeats : (int)MOST_REPEATS);
        least = here < least ? here : least;
    }
    return least;
}

/** Adds a candidate, unless its code is there already or nothing is estimated; whether it was. */
static bool try_plan(gpu_bench *b, const qn_kernel *k, int n_args, const qn_arg *args,
                     const qn_options *o, bench_candidate *candidate, int n)
{
    bench_candidate *c = &candidate[n];
    qn_code *f = NULL;
    qn_call *call = NULL;
    qn_error err = {0};
    c->text = NULL;
    if (qn_specialize(b->context, k, n_args, args, o, &f, &err) == QN_OK) {
        char *estimate = bench_text_of(f, QN_DUMP_ESTIMATE);
        c->text = bench_text_of(f, QN_DUMP_PTX);
        c->estimate = estimate && !strncmp(estimate, "estimate ", 9) ? atof(estimate + 9) : 0;
        free(estimate);
    }
    qn_code_release(f);
    bool is_new = c->text && c->estimate > 0;
    for (int i = 0; i < n && is_new; i++)
        is_new = strcmp(candidate[i].text, c->text) != 0;
    if (is_new && qn_prepare(b->context, k, n_args, args, o, &call, &err) == QN_OK)
        c->seconds = shortest_of(b, call, n > 0 ? candidate[0].seconds : 0);
    is_new = is_new && call && c->seconds < INFINITY;
    qn_call_release(call);
    if (!is_new)
        free(c->text);
    return is_new;
}

void gpu_model_line(gpu_bench *b, const char *name, const qn_kernel *kernel, int n_args,
                    const qn_arg *args, const qn_options *o)
{
    bench_candidate candidate[MOST_CANDIDATES];
    int n = 0;
    for (int i = 0; i < N_PLANS && n < MOST_CANDIDATES && (n > 0 || i == 0); i++) {
        qn_plan_options plan;
        qn_options own = *o;
        if (!bench_read_plan(plans[i], &plan))
            continue;
        own.plan = &plan;
        candidate[n] = (bench_candidate){.plan = plans[i]};
        n += try_plan(b, kernel, n_args, args, &own, candidate, n);
    }
    if (n > 1)
        bench_ranking_add(b->model, name, candidate, n);
    for (int i = 0; i < n; i++)
        free(candidate[i].text);
}
