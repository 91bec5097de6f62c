/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.c: which accesses move whole vectors together.
 */
#include "jit/analysis/group.h"

/** What group.c asks about. */
typedef struct grouper {
    const qn_kernel *k;
    const qn_facts *f;
    const qn_analysis *a;
    int lane_dim;
    uint32_t i;      /* the access that was asked for */
    int64_t bytes;   /* of it */
    int64_t step;    /* bytes from lane to lane */
    bool is_written; /* its elements may change while the kernel runs */
} grouper;

/* ---------------------------------------------------------------- addresses */

int64_t qn__unit_of(const qn_kernel *k, const qn_facts *f, uint32_t access)
{
    const qn_kernel_parameter *p = &k->param[k->inst[access].imm];
    int64_t unit = f->param[k->inst[access].imm].unit;
    return unit ? unit : p->record ? p->record->bytes : qn_dtype_bytes(p->dtype);
}

/** Bytes from lane to lane; false: not a known number. */
static bool lane_bytes(const grouper *s, uint32_t i, int64_t *bytes)
{
    int64_t stride;
    return qn__access_stride(s->a, i, s->lane_dim, &stride) &&
           !__builtin_mul_overflow(stride, qn__unit_of(s->k, s->f, i), bytes);
}

/** The constant part of the address of access i; accesses of one view that lie a constant apart
 * differ by nothing else. */
static bool constant_bytes(const qn_analysis *a, uint32_t i, int64_t *bytes)
{
    const qn_kernel *k = a->k;
    int64_t sum = 0, move;
    for (int r = 0; r < qn__n_indices(k, i); r++) {
        const qn_dim_fact *dim = &a->f->param[k->inst[i].imm].dim[r];
        if (dim->n_digits == 0)
            continue;
        const qn_fact *stride = &a->f->digit[dim->first_digit].stride;
        int64_t constant = a->affine[qn__args(k, i)[r]].constant;
        if (constant == 0)
            continue;
        if (dim->n_digits != 1 || stride->kind != QN_FACT_EXACT ||
            __builtin_mul_overflow(constant, stride->value, &move) ||
            __builtin_add_overflow(sum, move, &sum))
            return false;
    }
    return !__builtin_mul_overflow(sum, qn__unit_of(k, a->f, i), &sum) &&
           !__builtin_add_overflow(sum, qn__access_offset(k, i), bytes);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

bool qn__bytes_apart(const qn_analysis *a, uint32_t i, uint32_t m, int64_t *apart)
{
    int64_t elements, at, other;
    return qn__elements_apart(a, i, m, &elements) && constant_bytes(a, i, &at) &&
           constant_bytes(a, m, &other) && !__builtin_sub_overflow(at, other, apart);
}

/** Whether access m is known to touch none of the bytes of i, in any lane. Both are of one view, or
 * of two that are the same elements if they share memory: then the layout of one is that of both.
 */
static bool is_between(const grouper *s, uint32_t i, uint32_t m)
{
    int64_t step, apart;
    if (!lane_bytes(s, m, &step) || step != s->step || !qn__bytes_apart(s->a, m, i, &apart))
        return false;
    int64_t inside = apart - floor_div(apart, step) * step;
    return inside >= qn__access_bytes(s->k, i) && inside + qn__access_bytes(s->k, m) <= step;
}

/** Places from lane 0 on, the first of which is `place` places before access i, that are elements
 * of the view in every lane: parts of one element, or indices of a dimension that has no lanes. */
static uint32_t known_places(const grouper *s, int place, int n)
{
    const qn_kernel *k = s->k;
    const qn_param_fact *view = &s->f->param[k->inst[s->i].imm];
    uint32_t all = (UINT32_C(1) << n) - 1, known = 0;
    int64_t offset = qn__access_offset(k, s->i), unit = qn__unit_of(s->k, s->f, s->i);
    if (unit == s->step && offset == place * s->bytes)
        return all;
    for (int r = 0; r < qn__n_indices(k, s->i) && unit == s->bytes; r++) {
        const qn_dim_fact *dim = &view->dim[r];
        const qn_affine *x = &s->a->affine[qn__args(k, s->i)[r]];
        bool is_constant = !x->sym[0] && !x->sym[1];
        for (int d = 0; d < k->n_dims; d++)
            is_constant = is_constant && x->coef[d] == 0;
        if (!is_constant || dim->n_digits != 1 || dim->extent.kind != QN_FACT_EXACT ||
            dim->lower.kind != QN_FACT_EXACT ||
            s->f->digit[dim->first_digit].stride.kind != QN_FACT_EXACT ||
            s->f->digit[dim->first_digit].stride.value != 1)
            continue;
        for (int p = 0; p < n; p++) {
            int64_t index = qn__wrap_sub(qn__wrap_add(x->constant, p - place), dim->lower.value);
            if (index >= 0 && index < dim->extent.value)
                known |= UINT32_C(1) << p;
        }
    }
    return known;
}

/* ---------------------------------------------------------------- what stands between */

/** Whether m is an access of the kind, the view and the region of i, of as many bytes. */
static bool is_alike(const qn_kernel *k, uint32_t i, uint32_t m)
{
    const qn_inst *x = &k->inst[i], *y = &k->inst[m];
    return x->op == y->op && x->imm == y->imm && x->parent == y->parent &&
           qn__access_dtype(k, i) == qn__access_dtype(k, m) &&
           (!x->parent || k->inst[x->parent].op != QN_I_IF ||
            (i < k->inst[x->parent].region[1]) == (m < k->inst[x->parent].region[1]));
}

/** Whether instruction m may write the element of load i, or touch that of store i. */
static bool disturbs(const grouper *s, uint32_t i, uint32_t m)
{
    const qn_kernel *k = s->k;
    const qn_inst *y = &k->inst[m];
    bool is_load = k->inst[i].op == QN_I_LOAD;
    if (qn__is_pure(y) || (is_load && y->op == QN_I_LOAD))
        return false;
    if (y->op != QN_I_LOAD && y->op != QN_I_STORE)
        return true;
    return qn__may_meet(s->a, y->imm, k->inst[i].imm) && !is_between(s, i, m);
}

/** Whether what access i does may be done anywhere from instruction `from` up to `to`. */
static bool is_undisturbed(const grouper *s, uint32_t i, uint32_t from, uint32_t to)
{
    for (uint32_t m = from; m < to; m = s->k->inst[m].region[2])
        if (m != i && disturbs(s, i, m))
            return false;
    return true;
}

/* ---------------------------------------------------------------- members */

enum { MOST_ALIKE = 64 };

/** Accesses of the window of i, in the order of the program; their places. -1: too many, or two
 * that overlap. */
static int find_alike(const grouper *s, uint32_t *inst, int *place)
{
    int64_t own;
    int n = 0;
    if (!constant_bytes(s->a, s->i, &own))
        return -1;
    const int64_t window = floor_div(own, s->step);
    FOR_ACCESSES (s->k, site, m) {
        int64_t apart, other, at;
        if (!is_alike(s->k, s->i, m) || !lane_bytes(s, m, &other) || other != s->step ||
            !qn__bytes_apart(s->a, m, s->i, &apart) ||
            floor_div(at = own + apart, s->step) != window)
            continue;
        int64_t inside = at - window * s->step;
        if (inside % s->bytes || n == MOST_ALIKE)
            return -1;
        inst[n] = m;
        place[n++] = (int)(inside / s->bytes);
    }
    return n;
}

/** Whether a store that may write the element of a load stands before `from`, but is made behind
 * `from`, with its group. */
static bool is_stored_late(const grouper *s, uint32_t load, uint32_t from)
{
    qn_group stores;
    FOR_ACCESSES (s->k, site, i)
        if (i < from && s->k->inst[i].op == QN_I_STORE && disturbs(s, load, i) &&
            qn__group_of(s->a, s->lane_dim, i, &stores) && stores.last > from)
            return true;
    return false;
}

/** The first of the accesses alike from which on load `m` may be made. */
static uint32_t earliest(const grouper *s, const uint32_t *inst, int n, uint32_t m)
{
    if (!s->is_written)
        return inst[0];
    for (int n_first = 0; n_first < n && inst[n_first] < m; n_first++)
        if (is_undisturbed(s, m, inst[n_first], m) && !is_stored_late(s, m, inst[n_first]))
            return inst[n_first];
    return m;
}

/** Adds m, unless its place has a load already; false: two stores of one place. */
static bool add_member(const grouper *s, uint32_t m, int place, qn_group *out)
{
    if (out->inst[place])
        return s->k->inst[m].op == QN_I_LOAD;
    out->inst[place] = m;
    out->first = m < out->first ? m : out->first;
    out->last = m > out->last ? m : out->last;
    return true;
}

bool qn__group_of(const qn_analysis *a, int lane_dim, uint32_t i, qn_group *out)
{
    const qn_kernel *k = a->k;
    grouper s = {k, a->f, a, lane_dim, i, qn__access_bytes(k, i), 0, false};
    uint32_t inst[MOST_ALIKE];
    int place[MOST_ALIKE], n_members = 0;
    *out = (qn_group){.first = UINT32_MAX};
    if (lane_dim < 0 || k->inst[i].op == QN_I_ATOMIC || a->f->is_ordered ||
        (k->param[k->inst[i].imm].traits & QN_ATOMIC) || k->param[k->inst[i].imm].has_atomics ||
        !lane_bytes(&s, i, &s.step) || s.bytes > 8 || s.step < 2 * s.bytes ||
        s.step > QN_MOST_PLACES * s.bytes || s.step % s.bytes)
        return false;
    int n = find_alike(&s, inst, place);
    if (n < 2)
        return false;
    bool is_load = k->inst[i].op == QN_I_LOAD;
    s.is_written = qn__is_written_too(a, k->inst[i].imm);
    uint32_t from = is_load ? earliest(&s, inst, n, i) : 0;
    out->n = (int)(s.step / s.bytes);
    for (int m = 0; m < n; m++) {
        out->place = inst[m] == i ? place[m] : out->place;
        if (is_load && earliest(&s, inst, n, inst[m]) != from)
            continue;
        bool is_new = !out->inst[place[m]];
        if (!add_member(&s, inst[m], place[m], out))
            return false;
        n_members += is_new;
    }
    for (int m = 0; m < n && !is_load; m++)
        if (!is_undisturbed(&s, inst[m], inst[m], out->last))
            return false;
    out->known = known_places(&s, out->place, out->n);
    return n_members >= 2;
}

bool qn__may_wait(const qn_analysis *a, int lane_dim, uint32_t load, const qn_group *stores)
{
    grouper s = {a->k, a->f, a, lane_dim, load, qn__access_bytes(a->k, load), 0, false};
    if (!lane_bytes(&s, load, &s.step))
        return false;
    for (uint32_t m = load; m < stores->last; m = a->k->inst[m].region[2]) {
        bool is_member = false;
        if (qn__is_pure(&a->k->inst[m]))
            continue;
        for (int p = 0; p < stores->n; p++)
            is_member |= stores->inst[p] == m;
        if (!is_member && disturbs(&s, load, m))
            return false;
    }
    return true;
}

int qn__held_bytes(const qn_analysis *a, const qn_group *x)
{
    const qn_kernel *k = a->k;
    int least = 64;
    for (int p = 0; p < x->n; p++) {
        uint32_t i = x->inst[p], v = i;
        if (!i)
            continue;
        bool is_store = k->inst[i].op == QN_I_STORE;
        if (is_store)
            v = qn__args(k, i)[k->inst[i].n_args - 1];
        if (!qn__is_integer(k->inst[v].type))
            return (int)qn__access_bytes(k, i);
        bool is_cut = is_store && k->inst[v].op == QN_I_CAST;
        int bits = is_cut     ? a->value[qn__args(k, v)[0]].bits
                   : is_store ? a->value[v].bits
                              : a->value[i].wanted;
        least = bits < least ? bits : least;
    }
    return (least + 7) / 8; /* a bool has one bit */
}

bool qn__weave_of_group(const qn_analysis *a, const qn_group *x, uint32_t i, int lanes,
                        uint32_t places, qn_weave *out)
{
    uint32_t all = 0;
    for (int p = 0; p < x->n; p++)
        all |= (uint32_t)(x->inst[p] != 0) << p;
    *out = (qn_weave){.bytes = (int)qn__access_bytes(a->k, i),
                      .n = x->n,
                      .lanes = lanes,
                      .places = places ? places : all,
                      .known = x->known};
    return qn__weave_of(a->f->target, a->k->inst[i].op == QN_I_LOAD, qn__held_bytes(a, x), out);
}

bool qn__is_of_group(const qn_analysis *a, int lane_dim, uint32_t m, const qn_group *x)
{
    qn_group own;
    return qn__group_of(a, lane_dim, m, &own) && own.first == x->first && own.n == x->n;
}
