/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scalar.c: whether a kernel is better off without lanes, where its estimate does not say that.
 * What only moves elements that lie elsewhere for each lane gains nothing by lanes. Sums of rows in
 * index order would gather a column at a time; scalar code adds several rows at once, each in its
 * order.
 */
#include "jit/schedule/plan.h"

/* In vector operations: in scalar code an access or an operation takes a part of one, as several
 * are done at once. */
#define ROW_GATHER 1.5 /* a cache line for each lane */
#define SCALAR_COST 0.5

/** Whether each lane of access i is an access of its own. */
static bool is_lane_by_lane(const qn_analysis *a, uint32_t i, int d, int width)
{
    bool is_load = a->k->inst[i].op == QN_I_LOAD;
    int64_t stride;
    return qn__access_cost(a, i, d) >= COST_GATHER &&
           (!qn__access_stride(a, i, d, &stride) || !stride ||
            qn__is_one_by_one(a->f, a->f->plan.apart, is_load, qn__access_bytes(a->k, i), width,
                              stride));
}

/* Iterations compute nothing but indices and move elements that lie elsewhere for each lane of d: a
 * scatter, or where there are no good gathers one of those. Each element is an access of its own
 * then, with lanes or without. */
bool qn__plan_is_scalar(const qn_analysis *a, int d, int width)
{
    const qn_kernel *k = a->k;
    bool is_apart = false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        bool is_access = x->op == QN_I_LOAD || x->op == QN_I_STORE;
        if (!is_access && x->op != QN_I_CONST && !(qn__is_pure(x) && x->type == QN_I64))
            return false;
        if (is_access && (x->op == QN_I_STORE || !a->f->target->has_gathers))
            is_apart |= is_lane_by_lane(a, i, d, width);
    }
    return is_apart;
}

bool qn__plan_is_counting(const qn_analysis *a, int d)
{
    const qn_kernel *k = a->k;
    /* that cost as much as to take the lanes of an atomic apart; of several, more at once */
    enum { OPS_OF_ONE = 5, OPS_OF_EACH = 2 };
    int n_atomics = 0, n_ops = 0;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        bool is_data = qn__is_pure(x) && x->op != QN_I_CONST && x->type != QN_I64;
        if (x->region[2] != i + 1)
            return false;
        if (x->op == QN_I_ATOMIC && qn__access_cost(a, i, d) < COST_GATHER)
            return false;
        n_atomics += x->op == QN_I_ATOMIC;
        n_ops += is_data && (a->value[i].deps >> d & 1);
    }
    return n_ops < (n_atomics == 1 ? OPS_OF_ONE : OPS_OF_EACH * n_atomics);
}

/** Whether load i lies elsewhere for each lane of d, but together along the points of its reduce.
 */
static bool runs_along_points(const qn_analysis *a, uint32_t i, int d)
{
    const qn_kernel *k = a->k;
    uint32_t reduce = qn__enclosing_reduce(k, i);
    int64_t stride;
    int last = reduce ? qn__dim_of(k, reduce, k->inst[reduce].n_args - 1) : -1;
    return last >= 0 && qn__access_cost(a, i, d) >= COST_GATHER &&
           qn__access_stride(a, i, last, &stride) && stride == 1;
}

bool qn__plan_is_rows(const qn_analysis *a, int d, int width)
{
    const qn_kernel *k = a->k;
    double vector = 0, scalar = 0;
    bool has_rows = false;
    for (uint32_t i = k->body; i < k->n_insts; i++) {
        const qn_inst *x = &k->inst[i];
        bool is_inside = qn__enclosing_reduce(k, i) != 0,
             is_sum = x->op == QN_I_REDUCE && !qn__contracted_product(k, i);
        bool is_data = qn__is_pure(x) && x->type != QN_I64 && x->op != QN_I_CONST;
        if (!is_sum && !(is_inside && (is_data || x->op == QN_I_LOAD)))
            continue;
        bool is_row = x->op == QN_I_LOAD && runs_along_points(a, i, d);
        vector += is_row ? ROW_GATHER * width : x->op == QN_I_LOAD ? qn__access_cost(a, i, d) : 1;
        scalar += SCALAR_COST * width;
        has_rows |= is_row;
    }
    return has_rows && scalar < vector;
}
