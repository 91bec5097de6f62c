/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_tune.c: `bench_main --tune SECONDS [filter...]`: what tuning gains. Each case whose kernel
 * is prepared by bench_prepare is tuned for so many seconds instead of being timed. A line says the
 * gain over the planner's choice, both times, and the choice. At the end: the mean, and how many
 * cases gain more than 5 %.
 */
#include "bench_tune.h"
#include "quern/tune.h"

#include <math.h>
#include <stdio.h>

#define CLEAR_GAIN 1.05

static void report(bench *b, const qn_tune_result *r, const char *choice)
{
    printf("%s\t%.1f ns\t%.1f ns\t%.3f\t%d of %d\t%s\n", b->name, r->planned_ns, r->best_ns,
           r->gain, (int)r->n_measured, (int)r->n_candidates, choice[0] ? choice : "-");
    fflush(stdout);
    b->tuning.n++;
    b->tuning.n_gain += r->gain > CLEAR_GAIN;
    b->tuning.log_sum += log(r->gain);
    b->n_wrong += r->n_wrong;
}

void bench_tune_case(bench *b, const qn_kernel *k, int n, const qn_arg *args, const qn_options *o)
{
    char choice[1024] = "";
    qn_error error = {0};
    qn_tune_result result;
    qn_options plain = *o;
    const qn_tune_options t = {.bytes = sizeof t,
                               .seconds = b->tuning.seconds,
                               .keeps_nothing = 1,
                               .choice = choice,
                               .choice_bytes = sizeof choice};
    plain.plan = NULL;
    if (qn_tune(b->context, k, n, args, &plain, &t, &result, sizeof result, &error) == QN_OK)
        report(b, &result, choice);
    else
        printf("# not tuned: %s: %s\n", b->name, error.message);
    b->tuning.is_done = true;
}

bool bench_tune_leaves_out(bench *b)
{
    bool is_done = b->tuning.is_done;
    b->tuning.is_done = false;
    return is_done;
}

void bench_tune_summary(const bench *b)
{
    int n = b->tuning.n;
    printf("tuning: %d cases, gain %.3f in geometric mean, %d above %.2f\n", n,
           n ? exp(b->tuning.log_sum / n) : 1, b->tuning.n_gain, CLEAR_GAIN);
}
