/* SPDX-License-Identifier: Apache-2.0 */
/* bench_rank.c: see bench_rank.h. */
#include "bench_rank.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIFFERENT 1.1
/* The planner's plan is left only for an estimate that is less by more than this. */
#define CLEAR 0.97

char *bench_text_of(const qn_code *f, int stage)
{
    size_t n = qn_code_text(f, stage, NULL, 0);
    char *text = malloc(n + 1);
    if (text && qn_code_text(f, stage, text, n + 1) != n)
        text[0] = 0;
    if (text)
        text[n] = 0;
    return text;
}

bool bench_ranking_begin(bench_ranking *r)
{
    *r = (bench_ranking){.estimated = calloc(BENCH_MOST_PAIRS, sizeof(double)),
                         .measured = calloc(BENCH_MOST_PAIRS, sizeof(double))};
    return r->estimated && r->measured;
}

static void add_pairs(bench_ranking *r, const bench_candidate *candidate, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const bench_candidate *x = &candidate[i], *y = &candidate[j];
            double ratio = x->seconds / y->seconds;
            if ((ratio < DIFFERENT && ratio > 1 / DIFFERENT) || r->n_pairs == BENCH_MOST_PAIRS)
                continue;
            r->measured[r->n_pairs] = log(ratio);
            r->estimated[r->n_pairs++] = log(x->estimate / y->estimate);
            r->n_right += (ratio > 1) == (x->estimate > y->estimate) && x->estimate != y->estimate;
        }
}

void bench_ranking_add(bench_ranking *r, const char *name, const bench_candidate *candidate, int n)
{
    const bench_candidate *best = &candidate[0], *chosen = best;
    for (int i = 0; i < n; i++) {
        best = candidate[i].seconds < best->seconds ? &candidate[i] : best;
        bool is_less = candidate[i].estimate < chosen->estimate;
        bool is_clear = candidate[i].estimate < CLEAR * candidate[0].estimate;
        chosen = is_less && is_clear ? &candidate[i] : chosen;
    }
    double model = chosen->seconds / best->seconds;
    double planner = candidate[0].seconds / best->seconds;
    for (int i = 0; i < n; i++) {
        const bench_candidate *c = &candidate[i];
        printf("%s\t%s\t%.4g\t%.4g\t%.2f\t%s%s\n", name, c->plan[0] ? c->plan : "planner",
               c->estimate, c->seconds * 1e9, c->estimate / (c->seconds * 1e9),
               c == chosen ? "model " : "", c == best ? "best" : "");
    }
    fflush(stdout);
    r->log_model += log(model);
    r->log_planner += log(planner);
    if (model > r->worst_model)
        snprintf(r->worst_name, sizeof r->worst_name, "%s", name);
    r->worst_model = model > r->worst_model ? model : r->worst_model;
    r->worst_planner = planner > r->worst_planner ? planner : r->worst_planner;
    r->n_kernels++;
    add_pairs(r, candidate, n);
}

/* ---------------------------------------------------------------- ranks */

typedef struct ranked {
    double value;
    int at;
} ranked;

static int by_value(const void *a, const void *b)
{
    double x = ((const ranked *)a)->value, y = ((const ranked *)b)->value;
    return (x > y) - (x < y);
}

/** Replaces numbers by their ranks; equal ones share theirs. */
static void rank(double *x, int n, ranked *room)
{
    for (int i = 0; i < n; i++)
        room[i] = (ranked){x[i], i};
    qsort(room, (size_t)n, sizeof *room, by_value);
    for (int i = 0, end; i < n; i = end) {
        for (end = i; end < n && room[end].value <= room[i].value; end++)
            continue;
        for (int at = i; at < end; at++)
            x[room[at].at] = 0.5 * (i + end - 1);
    }
}

/** Spearman's coefficient: the correlation of the ranks. */
static double spearman(const bench_ranking *r)
{
    int n = r->n_pairs;
    ranked *room = malloc((size_t)(n > 0 ? n : 1) * sizeof *room);
    double xy = 0, xx = 0, yy = 0, mean = 0.5 * (n - 1);
    if (!room || n < 2) {
        free(room);
        return 0;
    }
    rank(r->estimated, n, room);
    rank(r->measured, n, room);
    for (int i = 0; i < n; i++) {
        double x = r->estimated[i] - mean, y = r->measured[i] - mean;
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    free(room);
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : 0;
}

void bench_ranking_end(bench_ranking *r)
{
    double n = r->n_kernels ? r->n_kernels : 1;
    if (r->estimated && r->measured) {
        printf("# over the best candidate, %d kernels: least estimate %.3f in geometric mean, %.2f "
               "at worst (%s); planner %.3f, %.2f\n",
               r->n_kernels, exp(r->log_model / n), r->worst_model, r->worst_name,
               exp(r->log_planner / n), r->worst_planner);
        printf("# %d pairs that differ by 10 %%: %.3f in the right order, Spearman's coefficient "
               "%.3f\n",
               r->n_pairs / 2, r->n_pairs ? (double)r->n_right / r->n_pairs : 0, spearman(r));
    }
    free(r->estimated);
    free(r->measured);
}
