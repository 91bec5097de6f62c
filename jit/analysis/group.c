/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c: which accesses move whole vectors together.
 */
#include "jit/analysis/group.h"

/** Bytes of an element of the view that access i moves a part of. */
static int64_t unit_of(const qn_kernel *k, const qn_facts *f, uint32_t i)
{
    const qn_kernel_parameter *p = &k->param[k->inst[i].imm];
    int64_t unit = f->param[k->inst[i].imm].unit;
    return unit ? unit : p->record ? p->record->bytes : qn_dtype_bytes(p->dtype);
}

/** Bytes from lane to lane; false: not a known number. */
static bool lane_bytes(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, int lane_dim,
                       uint32_t i, int64_t *bytes)
{
    int64_t stride;
    return qn__access_stride(k, f, a, i, lane_dim, &stride) &&
           !__builtin_mul_overflow(stride, unit_of(k, f, i), bytes);
}

/** The constant part of the address of access i; accesses of one view that lie a constant apart
 * differ by nothing else. */
static bool constant_bytes(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, uint32_t i,
                           int64_t *bytes)
{
    int64_t sum = 0, move;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        const qn_dim_fact *dim = &f->param[k->inst[i].imm].dim[r];
        if (dim->n_digits == 0)
            continue;
        const qn_fact *stride = &f->digit[dim->first_digit].stride;
        int64_t constant = a->affine[qn__args(k, i)[r]].constant;
        if (constant == 0)
            continue;
        if (dim->n_digits != 1 || stride->kind != QN_FACT_EXACT ||
            __builtin_mul_overflow(constant, stride->value, &move) ||
            __builtin_add_overflow(sum, move, &sum))
            return false;
    }
    return !__builtin_mul_overflow(sum, unit_of(k, f, i), &sum) &&
           !__builtin_add_overflow(sum, qn__access_offset(k, i), bytes);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/** Whether m is an access of the kind, the view and the region of i, of as many bytes. */
static bool is_alike(const qn_kernel *k, uint32_t i, uint32_t m)
{
    const qn_inst *x = &k->inst[i], *y = &k->inst[m];
    return x->op == y->op && x->imm == y->imm && x->parent == y->parent &&
           qn__access_dtype(k, i) == qn__access_dtype(k, m) &&
           (!x->parent || k->inst[x->parent].op != QN_I_IF ||
            (i < k->inst[x->parent].region[1]) == (m < k->inst[x->parent].region[1]));
}

/** Whether nothing between the first and the last member is disturbed if all members move together.
 */
static bool is_undisturbed(const qn_kernel *k, uint64_t written, const qn_group *x)
{
    bool are_loads = k->inst[x->first].op == QN_I_LOAD;
    uint64_t view = k->inst[x->first].imm;
    if (are_loads && !(written >> view & 1))
        return true;
    for (uint32_t m = x->first; m < x->last; m = k->inst[m].region[2]) {
        const qn_inst *y = &k->inst[m];
        bool is_member = y->op == QN_I_STORE && y->imm == view;
        bool is_other_load = y->op == QN_I_LOAD && (are_loads || !(written >> y->imm & 1));
        if (!qn__is_pure(y) && !is_other_load && !(is_member && !are_loads))
            return false;
    }
    return true;
}

bool qn__group_of(const qn_kernel *k, const qn_facts *f, const qn_analysis *a, int lane_dim,
                 uint64_t written, uint32_t i, qn_group *out)
{
    int64_t bytes = qn__access_bytes(k, i), step, own, n_members = 0;
    *out = (qn_group){.first = UINT32_MAX};
    if ((bytes != 4 && bytes != 8) || lane_dim < 0 || k->inst[i].op == QN_I_ATOMIC ||
        (k->param[k->inst[i].imm].traits & QN_ATOMIC) ||
        !lane_bytes(k, f, a, lane_dim, i, &step) || step < 2 * bytes ||
        step > QN_MOST_MEMBERS * bytes || step % bytes || !constant_bytes(k, f, a, i, &own))
        return false;
    const int64_t window = floor_div(own, step);
    out->n = (int)(step / bytes);
    for (uint32_t s = 0; s < k->n_accesses; s++) {
        uint32_t m = k->access[s].inst;
        int64_t apart, other, at;
        if (!is_alike(k, i, m) || !lane_bytes(k, f, a, lane_dim, m, &other) || other != step ||
            !qn__elements_apart(k, f, a, i, m, &apart) || !constant_bytes(k, f, a, m, &at) ||
            floor_div(at, step) != window)
            continue;
        int64_t inside = at - window * step;
        if (inside % bytes || out->inst[inside / bytes])
            return false; /* members that overlap, or two accesses of one place */
        out->inst[inside / bytes] = m;
        out->first = m < out->first ? m : out->first;
        out->last = m > out->last ? m : out->last;
        out->place = m == i ? (int)(inside / bytes) : out->place;
        n_members++;
    }
    return n_members >= 2 && is_undisturbed(k, written, out);
}
