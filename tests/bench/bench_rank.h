/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_rank.h: how well estimates tell candidates of one kernel apart, for the models of both
 * benchmarks: how much slower than the best candidate are the one of the least estimate and the
 * planner's, and how estimates and times of pairs of candidates rank.
 */
#ifndef QN_TESTS_BENCH_RANK_H
#define QN_TESTS_BENCH_RANK_H

#include "quern.h"

#include <stdbool.h>

enum { BENCH_MOST_PAIRS = 40000 };

/** Code for one kernel: the first candidate is the planner's. */
typedef struct bench_candidate {
    const char *plan; /* words of --plan */
    char *text;       /* the code */
    double estimate, seconds;
} bench_candidate;

typedef struct bench_ranking {
    double log_model, log_planner, worst_model, worst_planner; /* over the best */
    char worst_name[80];
    int n_kernels;
    double *estimated, *measured; /* ratios of pairs, as logarithms */
    int n_pairs, n_right;
} bench_ranking;

/** A stage of code as text, to be freed; NULL without memory. */
char *bench_text_of(const qn_code *f, int stage);
/** False without memory; bench_ranking_end releases what there is. */
bool bench_ranking_begin(bench_ranking *r);
/** Prints a line for each of n candidates of a kernel, and counts them. */
void bench_ranking_add(bench_ranking *r, const char *name, const bench_candidate *candidate, int n);
/** Prints what was counted, and releases memory. */
void bench_ranking_end(bench_ranking *r);

#endif
