/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trips.c: which loops of the body may have their trips as lanes. That a trip stores to other
 * elements than all others follows from an index that differs between trips: no two index tuples of
 * a view that is stored to are one element.
 */
#include "jit/analysis/analyse.h"

/** Whether a value may differ between trips of a `for` whose index is `index`. *left: instructions
 * that may still be looked at. */
static bool may_differ(const qn_kernel *k, uint32_t value, uint32_t index, int *left)
{
    const qn_inst *x = &k->inst[value];
    if (value < index)
        return false;
    if (x->op == QN_I_INDEX && value != index && --*left >= 0) /* lanes are in one trip of a loop */
        return may_differ(k, qn__args(k, x->parent)[0], index, left);
    if (value == index || !(qn__is_pure(x) || x->op == QN_I_LOAD) || --*left < 0)
        return true;
    for (int n = 0; n < x->n_args; n++)
        if (may_differ(k, qn__args(k, value)[n], index, left))
            return true;
    return false;
}

/** How far an index moves from one trip to the next; false if that is not a known constant. */
static bool step_of_index(const qn_analysis *a, uint32_t value, uint32_t i, int64_t *step)
{
    const qn_kernel *k = a->k;
    const qn_affine *x = &a->affine[value];
    const uint32_t index = k->inst[i].region[0];
    int left = 64;
    *step = 0;
    if (a->trips.n) {
        *step = x->coef[qn__trips_dim(k)];
        for (int s = 0; s < 2; s++)
            if (x->sym[s] && a->value[x->sym[s]].shape != QN_UNIFORM)
                return false;
        return true;
    }
    for (int s = 0; s < 2; s++) {
        if (x->sym[s] == index)
            *step = qn__wrap_mul(x->sym_coef[s], (int64_t)k->inst[i].imm);
        else if (x->sym[s] && may_differ(k, x->sym[s], index, &left))
            return false;
    }
    return true;
}

bool qn__trip_stride(const qn_analysis *a, uint32_t inst, uint32_t i, int64_t *stride)
{
    const qn_kernel *k = a->k;
    const qn_param_fact *param = &a->f->param[k->inst[inst].imm];
    int64_t sum = 0, step;
    for (int r = 0; r < qn__n_indices(k, inst); r++) {
        const qn_dim_fact *dim = &param->dim[r];
        const qn_fact *digit = &a->f->digit[dim->first_digit].stride;
        if (dim->n_digits == 0)
            continue;
        if (!step_of_index(a, qn__args(k, inst)[r], i, &step))
            return false;
        if (step && (dim->n_digits != 1 || digit->kind != QN_FACT_EXACT))
            return false;
        sum = qn__wrap_add(sum, step ? qn__wrap_mul(step, digit->value) : 0);
    }
    *stride = sum;
    return true;
}

/** Whether two values are one sum in each trip. */
static bool is_same(const qn_analysis *a, uint32_t x, uint32_t y)
{
    const qn_affine *f = &a->affine[x], *h = &a->affine[y];
    bool is = f->constant == h->constant;
    for (int d = 0; d < QN_MAX_RANK; d++)
        is = is && f->coef[d] == h->coef[d];
    for (int s = 0; s < 2; s++)
        is = is && f->sym[s] == h->sym[s] && f->sym_coef[s] == h->sym_coef[s];
    return is;
}

/** Whether accesses m and n, in different trips of loop i, are of different elements: an index of
 * both, which tells elements apart, is one sum that moves from trip to trip. Indices are numbers of
 * 64 bits: they do not come back to where they were in fewer than 2^56 trips. */
static bool are_apart(const qn_analysis *a, uint32_t i, uint32_t m, uint32_t n)
{
    enum { MOST_STEP = 256 };
    const qn_kernel *k = a->k;
    int64_t step;
    for (int r = 0; r < qn__n_indices(k, m); r++) {
        const uint32_t value = qn__args(k, m)[r];
        if (a->f->param[k->inst[m].imm].dim[r].n_digits > 0 &&
            is_same(a, value, qn__args(k, n)[r]) && step_of_index(a, value, i, &step) && step &&
            step >= -MOST_STEP && step <= MOST_STEP)
            return true;
    }
    return false;
}

/** Whether instruction n of loop i may stand beside itself in other trips, whatever it accesses. */
static bool is_plain(const qn_analysis *a, uint32_t i, uint32_t n)
{
    const qn_inst *x = &a->k->inst[n];
    if (x->op == QN_I_REDUCE)
        return qn__order_rule(a->k, n) != QN_STRIPED;
    if (x->op == QN_I_WHILE || x->op == QN_I_ATOMIC || qn__effect(x) == QN_EFFECT_TELL)
        return false;
    if (!qn__is_access(x))
        return true;
    const bool is_clamped = a->f->param[x->imm].checks == QN_CHECKS_CLAMP;
    return !(a->k->param[x->imm].traits & QN_ATOMIC) && !a->k->param[x->imm].has_atomics &&
           !(is_clamped && qn__is_checked(a->f, a->k, qn__site_of(a->k, n))) &&
           (x->parent == i || qn__access_bytes(a->k, n) >= a->f->target->least_masked);
}

bool qn__trips_are_free(const qn_analysis *a, uint32_t i)
{
    const qn_kernel *k = a->k;
    const qn_inst *x = &k->inst[i];
    if (x->op != QN_I_FOR || x->n_args != 2 || a->f->is_ordered || qn__trips_dim(k) < 0)
        return false;
    for (uint32_t n = x->region[0]; n < x->region[2]; n++)
        if (!is_plain(a, i, n))
            return false;
    for (uint32_t m = x->region[0]; m < x->region[2]; m++) {
        if (k->inst[m].op != QN_I_STORE)
            continue;
        for (uint32_t n = x->region[0]; n < x->region[2]; n++)
            if (qn__is_access(&k->inst[n]) && qn__may_meet(a, k->inst[m].imm, k->inst[n].imm) &&
                !are_apart(a, i, m, n))
                return false;
    }
    return true;
}
