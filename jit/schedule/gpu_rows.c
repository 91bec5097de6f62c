/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_rows.c: what several iterations in a thread of a GPU may run together, and of how many rows
 * and columns a thread computes the reduces: those that load the same, as the rows of a small
 * matrix product and the results of a filter do.
 * Blocks are 32 threads wide then, so that what rows of other threads share comes from the
 * first-level cache.
 */
#include "jit/schedule/gpu.h"

#include <string.h>

/* ---------------------------------------------------------------- bodies */

/** Instructions of loops that all iterations of a thread run together, but for constants and rare
 * sides. */
enum { MOST_LOOPED = 40 };

/** Whether a branch or loop takes no memory and, a loop, as many trips in all iterations. Branches
 * that only compute may be long: each iteration takes its own. */
static bool is_quiet(const gpu_planner *s, uint32_t i, uint32_t parallel)
{
    const qn_inst *x = &s->k->inst[i];
    bool is_loop = x->op == QN_I_FOR;
    if (!is_loop && x->op != QN_I_IF)
        return false;
    bool has_loop = is_loop;
    uint32_t n_looped = 1,
             after_rare = 0; /* of a rare side, one iteration after the other is computed */
    for (uint32_t j = i + 1; j < x->region[2]; j++) {
        const qn_inst *y = &s->k->inst[j];
        if (qn__is_access(y) || y->op == QN_I_WHILE || y->op == QN_I_REDUCE)
            return false;
        has_loop |= y->op == QN_I_FOR;
        n_looped += j >= after_rare && y->op != QN_I_CONST;
        if (y->op == QN_I_IF && y->sub && j >= after_rare)
            after_rare = y->region[1];
    }
    if (has_loop && n_looped > MOST_LOOPED)
        return false;
    for (int n = 0; is_loop && n < 2; n++) /* where it begins and ends */
        if (s->a.value[qn__args(s->k, i)[n]].deps & parallel)
            return false;
    return true;
}

/** Whether rows of a reduce may be computed side by side: it holds nothing but arithmetic and loads
 * that cannot fail. */
static bool is_plain_reduce(const gpu_planner *s, uint32_t i)
{
    const qn_inst *x = &s->k->inst[i];
    if (x->op != QN_I_REDUCE || qn__order_rule(s->k, i) == QN_STRIPED)
        return false;
    for (uint32_t j = i + 1; j < x->region[2]; j = s->k->inst[j].region[2])
        if (s->k->inst[j].region[2] != j + 1 && !is_plain_reduce(s, j))
            return false;
    FOR_ACCESSES (s->k, site, j) {
        if (j > i && j < x->region[2] &&
            (s->k->inst[j].op != QN_I_LOAD || qn__is_checked(s->f, s->k, site)))
            return false;
    }
    return true;
}

int qn__gpu_kind_of_body(const gpu_planner *s)
{
    uint32_t parallel = 0;
    int kind = BODY_SIMPLE;
    bool has_branches = false;
    for (int d = 0; d < s->k->n_dims; d++)
        parallel |= qn__is_parallel(s->k, d) ? 1u << d : 0;
    for (uint32_t i = s->k->body; i < s->k->n_insts; i = s->k->inst[i].region[2]) {
        bool is_atomic = s->k->inst[i].op == QN_I_ATOMIC && !qn__gpu_is_privatized(s, i);
        if (is_atomic || s->has_assertions)
            return BODY_OTHER;
        if (s->k->inst[i].region[2] == i + 1)
            continue;
        bool is_reduce = is_plain_reduce(s, i);
        if (!is_reduce && !is_quiet(s, i, parallel))
            return BODY_OTHER;
        kind = is_reduce ? BODY_REDUCES : kind;
        has_branches |= !is_reduce;
    }
    return kind == BODY_REDUCES && has_branches ? BODY_OTHER : kind;
}

/* ---------------------------------------------------------------- rows of reduces */

/** Loads in reduces that are the same for all iterations of d. */
static int count_same(const gpu_planner *s, int d)
{
    int n = 0;
    FOR_ACCESSES (s->k, a, i) {
        n += s->k->inst[i].parent && !(s->a.value[i].deps >> d & 1);
    }
    return n;
}

bool qn__gpu_loads_points(const gpu_planner *s, int x)
{
    const qn_kernel *k = s->k;
    bool is_found = false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const int op = k->inst[i].op;
        const bool is_striped = op == QN_I_REDUCE && qn__order_rule(k, i) == QN_STRIPED;
        if (op == QN_I_IF || op == QN_I_FOR || op == QN_I_WHILE || op == QN_I_ATOMIC ||
            op == QN_I_ASSERT || is_striped || s->has_assertions)
            return false;
    }
    FOR_ACCESSES (k, site, i) {
        const uint32_t reduce = k->inst[i].parent;
        int64_t stride;
        if (qn__is_checked(s->f, k, site))
            return false;
        if (!reduce || k->inst[i].op != QN_I_LOAD || (s->a.value[i].deps >> x & 1))
            continue;
        const int d = qn__dim_of(k, reduce, k->inst[reduce].n_args - 1);
        is_found |= qn__access_stride(&s->a, i, d, &stride) && stride == 1;
    }
    return is_found;
}

/** So many of `trips` rows in a thread that none are left, about half of `most`; else all, or
 * those. */
static int reduced_rows(int64_t trips, int most)
{
    for (int n = most / 2; n > 0 && 4 * n > most; n--)
        if (trips % n == 0)
            return n;
    return trips <= most ? (int)trips : most / 2;
}

/* Threads of a multiprocessor that keep it busy, and sums in a thread's registers: of rows alone,
 * and of tiles. */
enum { ENOUGH_THREADS = 1 << 10, MOST_SUMS = 16, MOST_TILE_SUMS = 32, MOST_COLUMNS = 4 };
/* Steps of columns along x: fewer leave threads of a block far apart in memory. */
enum { FEWEST_STEPS = 8 };

/** Whether `n` iterations in a thread leave all of the GPU work, as where their number is not
 * known, and are not too much code. */
static bool are_enough(const gpu_planner *s, int64_t n)
{
    const int64_t all = qn__gpu_iterations(s);
    return n * (int64_t)(s->k->n_insts - s->k->body) <= MOST_EMITTED &&
           (all < 0 || all / n >= ENOUGH_THREADS * s->f->machine.multiprocessors);
}

/** The iterations of a dimension, or about so many. */
static int64_t trips_of(const gpu_planner *s, int d)
{
    return qn__usual_trips(s->f, d, QN_NOMINAL_EXTENT);
}

/** Rows of a dimension along which most of the loads in reduces are the same: few enough that all
 * accumulators stay in registers. */
static void choose_jam(const gpu_planner *s, int x, int n_reduces)
{
    qn_grid *p = s->p;
    int best = -1, most = 0, wanted = s->f->plan.jam_dim - 1;
    for (int n = 0; n < p->n_loops; n++) {
        int d = p->order[n];
        if (!qn__is_parallel(s->k, d))
            continue;
        int same = d == x || qn__trips(s->f, d) == 1 ? 0
                   : d == wanted                     ? INT32_MAX
                                                     : count_same(s, d);
        best = same > most ? d : best;
        most = same > most ? same : most;
    }
    if (best < 0 || s->f->plan.jam == 1)
        return;
    int limit = s->f->plan.jam > 1 ? s->f->plan.jam : MOST_SUMS / n_reduces;
    while (limit > 1 && (limit > MOST_JAM || (s->f->plan.jam <= 1 && !are_enough(s, limit))))
        limit /= 2;
    if (limit > 1 && s->f->plan.jam <= 1)
        limit = reduced_rows(trips_of(s, best), limit);
    limit = limit > trips_of(s, best) ? (int)trips_of(s, best) : limit;
    if (limit < 2)
        return;
    p->tall_dim = best;
    p->tall = limit;
}

/** Neighbours along x in a thread where loads in reduces are the same for them, as the weights of a
 * filter are. */
static void choose_columns(const gpu_planner *s, int x, int n_reduces)
{
    qn_grid *p = s->p;
    const int wanted = s->f->plan.width;
    int width = wanted > 0 ? wanted : count_same(s, x) ? MOST_COLUMNS : 1;
    const int64_t trips = trips_of(s, x);
    if (s->f->begin[x].kind != QN_FACT_EXACT)
        return;
    while (width > 1 &&
           (width * p->tall > QN_MOST_AT_ONCE || trips < width ||
            (!wanted && (width * p->tall * n_reduces > MOST_TILE_SUMS ||
                         trips < FEWEST_STEPS * width || !are_enough(s, width * p->tall)))))
        width /= 2;
    p->wide = width;
    p->wide_lead = width > 1 ? qn__gpu_lead(s, x, width) : 0;
}

bool qn__gpu_choose_rows(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    const int n_reduces = qn__n_top_reduces(s->k);
    if (qn__gpu_iterations(s) == 0)
        return false;
    choose_jam(s, x, n_reduces);
    choose_columns(s, x, n_reduces);
    if (p->tall < 2 && p->wide < 2)
        return false;
    p->wide_dim = x;
    return true;
}

void qn__gpu_order_batches(const gpu_planner *s)
{
    qn_grid *p = s->p;
    int order[QN_MAX_RANK], n = 0;
    if (p->tall == 1 || !qn__has_insts(s->k, s->k->body, s->k->n_insts, 1u << QN_I_REDUCE))
        return;
    for (int pass = 0; pass < 3; pass++)
        for (int at = 0; at < p->n_loops; at++) {
            int d = p->order[at], kind = !qn__is_parallel(s->k, d) ? 0
                                         : qn__is_batch(&s->a, d)  ? 1
                                                                   : 2;
            if (kind == pass)
                order[n++] = d;
        }
    memcpy(p->order, order, (size_t)n * sizeof order[0]);
}
