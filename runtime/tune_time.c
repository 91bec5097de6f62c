/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_time.c: times of candidates, see tune.h. Candidates and the planner's choice run in turns,
 * so that what else happens on the machine meets all of them; figures are medians of quotients of
 * one turn. A sample is some runs of one call, from the same contents of the arrays if the kernel
 * reads what it writes.
 */
#include "quern/cuda.h"
#include "runtime/tune.h"

#include <stdlib.h>

/** A sample takes about so long, or one run; calls that work in place do not run more often in a
 * sample than the second number, as their contents drift. */
enum { SAMPLE_NS = 500000, MOST_RUNS = 1 << 16, MOST_RUNS_IN_PLACE = 256 };
/** After so many turns a candidate that is so much slower, in parts of a hundred, is given up. */
enum { FEW_TURNS = 3, SLOWER_PERCENT = 110 };

static qn_status sample(const qn_tune_clock *c, qn_call *call, int64_t *ns, qn_error *err)
{
    qn_status status = c->memory->is_in_place ? qn__tune_restore(c->memory, err) : QN_OK;
    if (status == QN_OK && c->memory->stream)
        status = qn_stream_fence(c->memory->stream, err);
    int64_t begin = qn__now_ns();
    for (int64_t i = 0; i < c->n_runs && status == QN_OK; i++)
        status = qn_run(call, err);
    if (status == QN_OK && c->memory->stream)
        status = qn_stream_fence(c->memory->stream, err);
    *ns = qn__now_ns() - begin;
    *ns = *ns > 0 ? *ns : 1;
    return status;
}

qn_status qn__tune_set_clock(qn_tune_clock *c, qn_error *err)
{
    int64_t most = c->memory->is_in_place ? MOST_RUNS_IN_PLACE : MOST_RUNS, ns = 0;
    c->n_runs = 1;
    qn_status status = sample(c, c->planned, &ns, err); /* the first one warms */
    while (status == QN_OK) {
        status = sample(c, c->planned, &ns, err);
        if (ns >= SAMPLE_NS || c->n_runs >= most)
            break;
        c->n_runs *= 2;
    }
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Sorts, too. */
static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/** Times of turns. */
typedef struct turns {
    int n;
    int64_t planned[QN_TUNE_MOST_TURNS], own[QN_TUNE_MOST_TURNS];
} turns;

static void set_figures(qn_tune_tried *t, const turns *times, int64_t n_runs)
{
    double gain[QN_TUNE_MOST_TURNS], own[QN_TUNE_MOST_TURNS], planned[QN_TUNE_MOST_TURNS];
    for (int i = 0; i < times->n; i++) {
        own[i] = (double)times->own[i] / (double)n_runs;
        planned[i] = (double)times->planned[i] / (double)n_runs;
        gain[i] = planned[i] / own[i];
    }
    if (times->n == 0)
        return;
    t->gain = median(gain, times->n);
    t->least = gain[times->n / 4];
    t->ns = median(own, times->n);
    t->planned_ns = median(planned, times->n);
}

/** Whether all turns so far say that a candidate is far slower. */
static bool is_hopeless(const turns *t)
{
    bool is_slower = t->n >= FEW_TURNS;
    for (int i = 0; i < t->n; i++)
        is_slower &= t->own[i] > t->planned[i] / 100 * SLOWER_PERCENT;
    return is_slower;
}

/** One turn: the planner's choice before the candidate, or behind it. */
static qn_status turn(const qn_tune_clock *c, qn_call *call, bool is_first, turns *t, qn_error *err)
{
    int64_t own = 0, planned = 0;
    qn_status status = is_first ? sample(c, call, &own, err) : sample(c, c->planned, &planned, err);
    if (status == QN_OK)
        status = is_first ? sample(c, c->planned, &planned, err) : sample(c, call, &own, err);
    if (status == QN_OK) {
        t->planned[t->n] = planned;
        t->own[t->n++] = own;
    }
    return status;
}

qn_status qn__tune_turns(const qn_tune_clock *c, qn_tune_tried *const *tried, int n, int most_turns,
                         int *n_turns, qn_error *err)
{
    turns *times = qn__zalloc((size_t)n, sizeof *times);
    qn_status status = times ? QN_OK : qn__fail(err, QN_ERR_MEMORY, "qn_tune: no memory");
    *n_turns = 0;
    bool goes_on = n > 0;
    for (int i = 0; i < most_turns && goes_on && status == QN_OK; i++) {
        goes_on = false;
        for (int m = 0; m < n && status == QN_OK; m++) {
            if (is_hopeless(&times[m]) || (i > 0 && qn__now_ns() > c->end_ns))
                continue;
            status = turn(c, tried[m]->call, i % 2 == 1, &times[m], err);
            goes_on = true;
        }
        *n_turns += goes_on;
    }
    for (int m = 0; m < n && status == QN_OK; m++)
        set_figures(tried[m], &times[m], c->n_runs);
    qn__free(times);
    return status;
}
