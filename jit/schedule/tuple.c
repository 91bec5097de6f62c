/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tuple.c: reduces over one range that are folded in one loop: an element that several of them read
 * is loaded once, and their accumulators do not wait for one another. Which have code, and which
 * the planner folds so. What is legal says qn__may_be_tuple.
 */
#include "jit/schedule/plan.h"
#include "jit/schedule/tree.h"

enum { MOST_SUMS = 32 }; /* accumulators in all: vectors by iterations by reduces */

static bool is_float(const qn_kernel *k, uint32_t reduce)
{
    return qn__dtype_class(k->inst[reduce].type) == QN_CLASS_F;
}

/** Whether results of blocks of 4096 points are added up through several dimensions. */
static bool has_counted_blocks(const qn_analysis *x, uint32_t reduce)
{
    int n_long;
    int64_t points = qn__points(x->k, x->f, reduce);
    (void)qn__long_dim(x->k, x->f, reduce, &n_long);
    return n_long > 1 && (points < 0 || points > QN_BLOCK_POINTS);
}

bool qn__has_scalar_rest(const qn_kernel *k, const qn_facts *f, uint32_t reduce)
{
    const qn_inst *x = &k->inst[reduce];
    FOR_ACCESSES (k, n, i)
        if (i >= x->region[0] && i < x->region[2] &&
            qn__access_bytes(k, i) < f->target->least_masked)
            return true;
    return false;
}

bool qn__tuple_has_code(const qn_analysis *x, int n, const uint32_t *reduce, int points_dim,
                        int64_t parts)
{
    const qn_kernel *k = x->k;
    int64_t points = qn__points(k, x->f, reduce[0]);
    bool are_blocks = has_counted_blocks(x, reduce[0]), has_lanes = points_dim >= 0;
    bool is_one_row = points >= 0 && points <= QN_BLOCK_POINTS && k->inst[reduce[0]].n_args == 1;
    for (int m = 0; m < n; m++) {
        uint32_t i = reduce[m];
        bool is_like = (is_float(k, i) == is_float(k, reduce[0]) &&
                        qn__order_rule(k, i) == qn__order_rule(k, reduce[0])) ||
                       is_one_row;
        if (!qn__is_straight(k, k->inst[i].region[0], k->inst[i].region[2]) ||
            (!has_lanes && qn__order_rule(k, i) == QN_STRIPED) ||
            (!has_lanes && qn__order_rule(k, i) == QN_INDEXED && are_blocks))
            return false;
        if (has_lanes && (!is_like || qn__has_scalar_rest(k, x->f, i) !=
                                          qn__has_scalar_rest(k, x->f, reduce[0])))
            return false;
    }
    return n * parts <= MOST_SUMS;
}

/** Whether two reduces load through one view. */
static bool share_view(const qn_kernel *k, uint32_t a, uint32_t b)
{
    for (uint32_t i = k->inst[a].region[0]; i < k->inst[a].region[1]; i++)
        for (uint32_t j = k->inst[b].region[0]; j < k->inst[b].region[1]; j++)
            if (k->inst[i].op == QN_I_LOAD && k->inst[j].op == QN_I_LOAD &&
                k->inst[i].imm == k->inst[j].imm)
                return true;
    return false;
}

/** Whether the accumulators leave a quarter of the registers to what is added. */
static bool fit_registers(const qn_analysis *x, const qn_plan *p, int n, const uint32_t *reduce,
                          int64_t parts)
{
    const qn_target *t = x->f->target;
    int64_t used = 0, most = 8 * t->vector_bytes;
    for (int m = 0; m < n; m++) {
        int64_t bits = (int64_t)qn__dtype_width(x->k->inst[reduce[m]].type) * p->width;
        used += (bits + most - 1) / most * parts;
    }
    return used <= t->vectors * 3 / 4;
}

bool qn__plan_joins(const qn_analysis *x, const qn_plan *p, int n, const uint32_t *reduce)
{
    const qn_kernel *k = x->k;
    if (p->strip || p->pack || p->transpose || n > QN_MOST_TUPLE ||
        !qn__have_one_range(k, reduce[0], reduce[n - 1]) ||
        qn__order_rule(k, reduce[0]) != qn__order_rule(k, reduce[n - 1]))
        return false;
    bool is_any = false, has_lanes = qn__may_have_lanes(x, reduce[0], p->lane_dim);
    int64_t parts = p->unroll * (has_lanes ? 1 : (int64_t)p->jam * p->cross);
    for (int m = 0; m < n - 1; m++)
        is_any |= has_lanes || share_view(k, reduce[m], reduce[n - 1]);
    return is_any && fit_registers(x, p, n, reduce, parts) &&
           qn__tuple_has_code(x, n, reduce, has_lanes ? p->lane_dim : -1, parts) &&
           qn__may_be_tuple(x, n, reduce);
}
