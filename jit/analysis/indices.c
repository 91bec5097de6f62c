/* SPDX-License-Identifier: Apache-2.0 */
/*
 * indices.c: what the indices of accesses tell: how far an access moves with a dimension, how two
 * accesses of one view lie, and which addresses are known before the body begins.
 */
#include "jit/analysis/analyse.h"

bool qn__access_stride(const qn_analysis *a, uint32_t inst, int d, int64_t *stride)
{
    const qn_kernel *k = a->k;
    const qn_param_fact *param = &a->f->param[k->inst[inst].imm];
    const uint32_t *arg = qn__args(k, inst);
    int64_t sum = 0;
    for (int r = 0; r < qn__n_indices(k, inst); r++) {
        if (!(a->value[arg[r]].deps >> d & 1) || param->dim[r].n_digits == 0)
            continue;
        const qn_affine *x = &a->affine[arg[r]];
        for (int s = 0; s < 2; s++)
            if (x->sym[s] && (a->value[x->sym[s]].deps >> d & 1))
                return false;
        const qn_digit_fact *digit = &a->f->digit[param->dim[r].first_digit];
        if (param->dim[r].n_digits != 1 || digit->stride.kind != QN_FACT_EXACT)
            return false;
        sum = qn__wrap_add(sum, qn__wrap_mul(x->coef[d], digit->stride.value));
    }
    *stride = sum;
    return true;
}

bool qn__is_within_digit(const qn_analysis *a, uint32_t value, const qn_dim_fact *dim, int lane_dim,
                         int64_t w)
{
    const qn_affine *x = &a->affine[value];
    const qn_digit_fact *digit = &a->f->digit[dim->first_digit];
    if (dim->n_digits < 2 || x->coef[lane_dim] != 1 || x->sym[0] || x->sym[1] ||
        a->f->begin[lane_dim].kind != QN_FACT_EXACT || dim->lower.kind != QN_FACT_EXACT ||
        digit->extent.kind != QN_FACT_EXACT || digit->stride.kind != QN_FACT_EXACT ||
        digit->extent.value % w)
        return false;
    for (int d = 0; d < a->k->n_dims; d++)
        if (d != lane_dim && x->coef[d] % w)
            return false;
    int64_t first = qn__wrap_add(a->f->begin[lane_dim].value, x->constant);
    return qn__wrap_sub(first, dim->lower.value) % w == 0;
}

static bool is_one_sum(const qn_affine *x, const qn_affine *y)
{
    return x->constant == y->constant && qn__differ_by_constant(x, y);
}

/** Whether something holds for each two indices of two accesses. */
static bool for_all_indices(const qn_analysis *a, uint32_t i, uint32_t m,
                            bool (*holds)(const qn_affine *, const qn_affine *))
{
    bool is = true;
    for (int r = 0; r < qn__n_indices(a->k, i) && is; r++)
        is = holds(&a->affine[qn__args(a->k, i)[r]], &a->affine[qn__args(a->k, m)[r]]);
    return is;
}

bool qn__walk_alike(const qn_analysis *a, uint32_t i, uint32_t m)
{
    return for_all_indices(a, i, m, qn__differ_by_constant);
}

bool qn__have_same_indices(const qn_analysis *a, uint32_t i, uint32_t m)
{
    return for_all_indices(a, i, m, is_one_sum);
}

uint32_t qn__index_deps(const qn_analysis *a, uint32_t inst)
{
    uint32_t deps = 0;
    for (int r = 0; r < qn__n_indices(a->k, inst); r++)
        deps |= a->value[qn__args(a->k, inst)[r]].deps;
    return deps;
}

uint32_t qn__moving_dims(const qn_analysis *a, uint32_t inst)
{
    uint32_t deps = 0;
    for (int r = 0; r < qn__n_indices(a->k, inst); r++)
        if (a->f->param[a->k->inst[inst].imm].dim[r].n_digits > 0)
            deps |= a->value[qn__args(a->k, inst)[r]].deps;
    return deps;
}

bool qn__elements_apart(const qn_analysis *a, uint32_t i, uint32_t m, int64_t *apart)
{
    return qn__elements_apart_along(a, i, m, UINT32_MAX, apart);
}

/** Whether an affine form moves with one of these dimensions; of all of them any form counts. */
static bool is_along(const qn_affine *x, uint32_t dims)
{
    bool is = dims == UINT32_MAX;
    for (int d = 0; d < QN_MAX_RANK; d++)
        is |= (dims >> d & 1) && x->coef[d];
    return is;
}

bool qn__elements_apart_along(const qn_analysis *a, uint32_t i, uint32_t m, uint32_t dims,
                              int64_t *apart)
{
    const qn_kernel *k = a->k;
    *apart = 0;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        const qn_dim_fact *dim = &a->f->param[k->inst[i].imm].dim[r];
        const qn_affine *x = &a->affine[qn__args(k, i)[r]], *y = &a->affine[qn__args(k, m)[r]];
        if (dim->n_digits == 0 || !is_along(x, dims))
            continue;
        if (!qn__differ_by_constant(x, y))
            return false;
        if (x->constant == y->constant)
            continue;
        const qn_fact *stride = &a->f->digit[dim->first_digit].stride;
        if (dim->n_digits != 1 || stride->kind != QN_FACT_EXACT)
            return false;
        *apart = qn__wrap_add(*apart,
                              qn__wrap_mul(stride->value, qn__wrap_sub(x->constant, y->constant)));
    }
    return true;
}

/** *left: operations that may still be looked at, so that an expression that uses its parts often
 * takes no time. */
static bool is_made_of_indices(const qn_kernel *k, uint32_t i, int *left)
{
    const qn_inst *x = &k->inst[i];
    if (i < k->body)
        return true;
    if (!qn__is_pure(x) || --*left < 0)
        return false;
    for (int n = 0; n < x->n_args; n++)
        if (!is_made_of_indices(k, qn__args(k, i)[n], left))
            return false;
    return true;
}

bool qn__is_made_of_indices(const qn_kernel *k, uint32_t value)
{
    int left = 64;
    return is_made_of_indices(k, value, &left);
}

bool qn__is_known_ahead(const qn_kernel *k, uint32_t inst)
{
    for (int r = 0; r < qn__n_indices(k, inst); r++)
        if (!qn__is_made_of_indices(k, qn__args(k, inst)[r]))
            return false;
    return true;
}
