/* SPDX-License-Identifier: Apache-2.0 */
/*
 * points.c: which kernels have reduces whose points several threads, or all blocks of a GPU, can
 * share: each computes the results of blocks of 4096 points, and what the order rule makes of them
 * comes after (jit/lower/points.c, jit/target/nvptx/team.c).
 */
#include "jit/schedule/plan.h"

#include <string.h>

/** Whether a top-level instruction before the last reduce may be done by everyone. */
static bool may_be_repeated(const qn_kernel *k, uint32_t i, const uint8_t *tainted)
{
    const qn_inst *x = &k->inst[i];
    return qn__is_pure(x) || (x->op == QN_I_LOAD && !k->param[x->imm].is_written && !tainted[i]);
}

bool qn__region_uses(const qn_kernel *k, uint32_t i, const uint8_t *marked)
{
    for (uint32_t m = k->inst[i].region[0]; m < k->inst[i].region[2]; m++)
        for (int n = 0; n < k->inst[m].n_args; n++)
            if (marked[qn__args(k, m)[n]])
                return true;
    return false;
}

bool qn__have_one_range(const qn_kernel *k, uint32_t reduce, uint32_t other)
{
    int n = k->inst[reduce].n_args;
    return n == k->inst[other].n_args &&
           memcmp(qn__args(k, reduce), qn__args(k, other), (size_t)n * sizeof(uint32_t)) == 0;
}

bool qn__are_independent(const qn_kernel *k, int n_reduces)
{
    uint32_t first = 0;
    int seen = 0;
    uint8_t *tainted = qn__zalloc(k->n_insts, 1); /* by the value of a reduce */
    bool ok = tainted && n_reduces <= MOST_SHARED_REDUCES;
    for (uint32_t i = k->body; i < k->n_insts && ok && seen < n_reduces; i = k->inst[i].region[2]) {
        const qn_inst *x = &k->inst[i];
        for (int n = 0; n < x->n_args; n++)
            tainted[i] |= tainted[qn__args(k, i)[n]];
        if (x->op != QN_I_REDUCE) {
            ok = may_be_repeated(k, i, tainted);
            continue;
        }
        first = first ? first : i;
        ok = qn__have_one_range(k, i, first) && !qn__region_uses(k, i, tainted);
        tainted[i] = 1;
        seen++;
    }
    qn__free(tainted);
    return ok && seen == n_reduces;
}

/** Fewer points are not worth a second pass over results. */
enum { FEW_POINTS = 1 << 15 };

/** The product of the trips of a reduce's dimensions; -1: some are not known. */
static int64_t count_points(const qn_kernel *k, const qn_facts *f, uint32_t reduce,
                            int64_t (*trips)(const qn_facts *, int, int64_t))
{
    int64_t n = 1;
    for (int m = 0; m < k->inst[reduce].n_args; m++) /* one known to be empty is enough */
        if (qn__trips(f, qn__dim_of(k, reduce, m)) == 0)
            return 0;
    for (int m = 0; m < k->inst[reduce].n_args; m++) {
        int64_t t = trips(f, qn__dim_of(k, reduce, m), -1);
        if (t < 0 || __builtin_mul_overflow(n, t, &n))
            return -1;
    }
    return n;
}

int64_t qn__points(const qn_kernel *k, const qn_facts *f, uint32_t reduce)
{
    return count_points(k, f, reduce, qn__trips_or);
}

int64_t qn__usual_points(const qn_kernel *k, const qn_facts *f, uint32_t reduce)
{
    return count_points(k, f, reduce, qn__usual_trips);
}

int qn__long_dim(const qn_kernel *k, const qn_facts *f, uint32_t reduce, int *n)
{
    int found = qn__dim_of(k, reduce, k->inst[reduce].n_args - 1);
    *n = 0;
    for (int m = 0; m < k->inst[reduce].n_args; m++)
        if (qn__trips(f, qn__dim_of(k, reduce, m)) != 1) {
            found = qn__dim_of(k, reduce, m);
            ++*n;
        }
    return found;
}

bool qn__has_shifted_rows(const qn_kernel *k, const qn_facts *f, uint32_t reduce)
{
    int n_long;
    (void)qn__long_dim(k, f, reduce, &n_long);
    return qn__order_rule(k, reduce) == QN_STRIPED && n_long > 1;
}

bool qn__is_small_region(const qn_kernel *k, uint32_t reduce)
{
    enum { SMALL_REGION = 24 };
    const qn_inst *x = &k->inst[reduce];
    return x->region[2] - x->region[0] <= SMALL_REGION &&
           qn__is_straight(k, x->region[0], x->region[2]);
}

bool qn__keeps_partials(const qn_kernel *k, const qn_facts *f, uint32_t reduce)
{
    int n_long;
    (void)qn__long_dim(k, f, reduce, &n_long);
    return n_long <= 1 && qn__is_small_region(k, reduce) &&
           !qn__region_may_fail(k, f, reduce + 1, k->inst[reduce].region[2]);
}

/** Whether an access is at a sum of indices along dimension d, and at one digit. */
static bool is_sum_along(const qn_analysis *a, uint32_t i, int d)
{
    const qn_dim_fact *dim = a->f->param[a->k->inst[i].imm].dim;
    bool is_sum = true;
    for (int r = 0; r < qn__n_indices(a->k, i); r++) {
        uint32_t index = qn__args(a->k, i)[r];
        const uint32_t *sym = a->affine[index].sym;
        bool is_along = a->value[index].deps >> d & 1;
        for (int n = 0; n < 2; n++)
            is_sum &= !is_along || !sym[n] || !(a->value[sym[n]].deps >> d & 1);
        is_sum &= !is_along || dim[r].n_digits <= 1;
    }
    return is_sum;
}

/** Whether lanes may stand before a row along dimension d. */
static bool may_be_shifted(const qn_analysis *a, uint32_t reduce, int d)
{
    FOR_ACCESSES (a->k, n, i)
        if (i > reduce && i < a->k->inst[reduce].region[2] &&
            (qn__is_checked(a->f, a->k, n) || !is_sum_along(a, i, d)))
            return false;
    return true;
}

bool qn__may_have_lanes(const qn_analysis *a, uint32_t reduce, int d)
{
    const qn_kernel *k = a->k;
    const int last = qn__dim_of(k, reduce, k->inst[reduce].n_args - 1);
    if (!qn__is_over(k, reduce, d) || qn__is_associative(k, reduce))
        return qn__is_over(k, reduce, d);
    return qn__order_rule(k, reduce) == QN_STRIPED && last == d &&
           (!qn__has_shifted_rows(k, a->f, reduce) || may_be_shifted(a, reduce, d));
}

int qn__shared_dim(const qn_kernel *k, const qn_facts *f, int *n)
{
    int d = -1, n_long = 0;
    *n = 0;
    for (int other = 0; other < k->n_dims; other++)
        if (!qn__is_reduction(k, other))
            return -1;
    FOR_REDUCES (k, i) {
        if (qn__enclosing_reduce(k, i))
            continue;
        d = (*n)++ ? d : qn__long_dim(k, f, i, &n_long);
        if (n_long != 1 || k->inst[i].parent || qn__order_rule(k, i) == QN_ORDERED)
            return -1;
    }
    return !f->is_ordered && qn__are_independent(k, *n) ? d : -1;
}

void qn__plan_points(const qn_kernel *k, const qn_facts *f, qn_plan *p)
{
    int n, d = qn__shared_dim(k, f, &n);
    if (d < 0 || f->has_ranges || qn__trips_or(f, d, INT64_MAX) < FEW_POINTS)
        return;
    p->n_shared_reduces = n;
    p->split_dim = d;
    p->granule = QN_BLOCK_POINTS;
}
