/* SPDX-License-Identifier: Apache-2.0 */
/*
 * collide.c: refuses kernels that provably break the contract of parallel dimensions: no iteration
 * reads or writes an element that another iteration writes, except through atomics. Only accesses
 * outside if, for and while count, as only they certainly happen. What cannot be proved is
 * accepted: it is the caller's promise.
 *
 * Indices are compared as affine forms: a constant plus coefficient x value over dimensions and
 * values that are not taken apart. Two accesses collide if some iterations i and j = i + delta,
 * delta not 0, touch one element.
 */
#include "ir/build/builder.h"
#include "ir/location.h"

enum {
    MAX_TERMS = 6,
    MAX_PAIRS =
        200000 /* of accesses that are compared, about 20 ms; more are accepted as they are */
};
#define ALL_DIMS UINT32_MAX

typedef struct term {
    uint32_t value; /* a dimension, or an instruction that is not taken apart */
    int64_t coefficient;
} term;

/** constant + sum of terms, by ascending value. */
typedef struct form {
    int64_t constant;
    int n;
    term term[MAX_TERMS];
} form;

typedef struct analysis {
    const qn_kernel *k;
    form *form;     /* of each instruction */
    uint32_t *dims; /* of each instruction: dimensions it may depend on */
    int n_pairs;    /* compared so far */
} analysis;

/* ---------------------------------------------------------------- forms */

/** out = x + scale * y; false if it has too many terms or wraps. */
static bool add_scaled(const form *x, const form *y, int64_t scale, form *out)
{
    int64_t product;
    form sum = {0};
    if (__builtin_mul_overflow(y->constant, scale, &product) ||
        __builtin_add_overflow(x->constant, product, &sum.constant))
        return false;
    for (int i = 0, j = 0; i < x->n || j < y->n;) {
        term t;
        if (j == y->n || (i < x->n && x->term[i].value < y->term[j].value)) {
            t = x->term[i++];
        } else {
            if (__builtin_mul_overflow(y->term[j].coefficient, scale, &product))
                return false;
            t = (term){y->term[j].value, product};
            if (i < x->n && x->term[i].value == t.value &&
                __builtin_add_overflow(x->term[i++].coefficient, product, &t.coefficient))
                return false;
            j++;
        }
        if (t.coefficient == 0)
            continue;
        if (sum.n == MAX_TERMS)
            return false;
        sum.term[sum.n++] = t;
    }
    *out = sum;
    return true;
}

/** The form of an i64 sum, difference, negation or product by a constant; false if it is none. */
static bool take_apart(const analysis *a, uint32_t i, form *out)
{
    const form zero = {0};
    const qn_inst *x = &a->k->inst[i];
    const uint32_t *args = qn__args(a->k, i);
    if (x->type != QN_I64)
        return false;
    if (x->op == QN_I_CONST) {
        *out = (form){.constant = (int64_t)x->imm};
        return true;
    }
    switch (qn__pure(x)) {
    case QN_OP_add:
        return add_scaled(&a->form[args[0]], &a->form[args[1]], 1, out);
    case QN_OP_sub:
        return add_scaled(&a->form[args[0]], &a->form[args[1]], -1, out);
    case QN_OP_neg:
        return add_scaled(&zero, &a->form[args[0]], -1, out);
    case QN_OP_mul:
        if (a->form[args[1]].n == 0)
            return add_scaled(&zero, &a->form[args[0]], a->form[args[1]].constant, out);
        return a->form[args[0]].n == 0 &&
               add_scaled(&zero, &a->form[args[1]], a->form[args[0]].constant, out);
    default:
        return false;
    }
}

static uint32_t dims_of(const analysis *a, uint32_t i)
{
    const qn_inst *x = &a->k->inst[i];
    if (x->op == QN_I_DIM)
        return 1u << x->imm;
    bool is_fixed_load = x->op == QN_I_LOAD && !a->k->param[x->imm].is_written;
    if (!qn__is_pure(x) && !is_fixed_load)
        return ALL_DIMS; /* memory that changes, loops, results */
    uint32_t dims = 0;
    for (uint32_t n = 0; n < x->n_args; n++)
        dims |= a->dims[qn__args(a->k, i)[n]];
    return dims;
}

static void analyse(analysis *a)
{
    for (uint32_t i = 1; i < a->k->n_insts; i++) {
        a->dims[i] = dims_of(a, i);
        if (!take_apart(a, i, &a->form[i]))
            a->form[i] = (form){.n = 1, .term = {{i, 1}}};
    }
}

/** The number of the dimension that a value is, or -1. */
static int dim_number(const analysis *a, uint32_t value)
{
    const qn_inst *x = &a->k->inst[value];
    return x->op == QN_I_DIM ? (int)x->imm : -1;
}

/** Whether dimension d certainly has at most n indices. */
static bool is_short(const analysis *a, int d, int64_t n)
{
    const uint32_t *bounds = qn__args(a->k, a->k->dim[d]);
    form extent;
    return add_scaled(&a->form[bounds[1]], &a->form[bounds[0]], -1, &extent) && extent.n == 0 &&
           extent.constant <= n;
}

/** Whether x - y is known to be <= 0. */
static bool is_at_most(const form *x, const form *y)
{
    form difference;
    return add_scaled(x, y, -1, &difference) && difference.n == 0 && difference.constant <= 0;
}

/* ---------------------------------------------------------------- pairs */

/** What makes two accesses collide. */
typedef struct solution {
    int64_t delta[QN_MAX_RANK]; /* per dimension */
    uint32_t fixed;             /* bit d: delta[d] follows from an index */
    uint32_t used;              /* bit d: an equation depends on dimension d */
    uint32_t
        free; /* bit d: any delta, as a reduction dimension takes its place in the other access */
} solution;

/** The equation of one index position, store and other with equal linear parts: A delta =
 * difference. */
static bool add_equation(const analysis *a, const form *x, int64_t difference, solution *s)
{
    int n_dims = 0, d = -1;
    int64_t coefficient = 0;
    for (int i = 0; i < x->n; i++) {
        s->used |= a->dims[x->term[i].value];
        if (dim_number(a, x->term[i].value) >= 0) {
            n_dims++;
            d = dim_number(a, x->term[i].value);
            coefficient = x->term[i].coefficient;
        }
    }
    if (n_dims == 0)
        return difference == 0;
    if (n_dims > 1)
        return true; /* checked when all deltas are known */
    if (coefficient == -1 ? difference == INT64_MIN : difference % coefficient != 0)
        return false;
    int64_t delta = difference / coefficient;
    if ((s->fixed >> d & 1) && s->delta[d] != delta)
        return false;
    s->delta[d] = delta;
    s->fixed |= 1u << d;
    return true;
}

/** Whether the deltas solve the equation, and leave alone what is not taken apart. */
static bool check_equation(const analysis *a, const form *x, int64_t difference, const solution *s)
{
    int64_t sum = 0;
    for (int i = 0; i < x->n; i++) {
        int d = dim_number(a, x->term[i].value);
        int64_t product;
        if (d >= 0) {
            if (__builtin_mul_overflow(x->term[i].coefficient, s->delta[d], &product) ||
                __builtin_add_overflow(sum, product, &sum))
                return false;
            continue;
        }
        for (int e = 0; e < a->k->n_dims; e++)
            if (s->delta[e] != 0 && (a->dims[x->term[i].value] >> e & 1))
                return false;
    }
    return sum == difference;
}

/** A parallel dimension in the store where the load has a reduction dimension: d in [0, rank), or
 * -1. */
static int find_free_dim(const analysis *a, const form *store, const form *load)
{
    if (store->n != 1 || load->n != 1 || store->term[0].coefficient != 1 ||
        load->term[0].coefficient != 1)
        return -1;
    int d = dim_number(a, store->term[0].value), r = dim_number(a, load->term[0].value);
    if (!qn__is_parallel(a->k, d) || !qn__is_reduction(a->k, r))
        return -1;
    const uint32_t *d_bounds = qn__args(a->k, a->k->dim[d]),
                   *r_bounds = qn__args(a->k, a->k->dim[r]);
    const form c = {.constant = store->constant}, e = {.constant = load->constant};
    form begin, end, r_begin, r_end;
    if (!add_scaled(&a->form[d_bounds[0]], &c, 1, &begin) ||
        !add_scaled(&a->form[d_bounds[1]], &c, 1, &end) ||
        !add_scaled(&a->form[r_bounds[0]], &e, 1, &r_begin) ||
        !add_scaled(&a->form[r_bounds[1]], &e, 1, &r_end))
        return -1;
    bool is_disjoint = is_at_most(&r_end, &begin) || is_at_most(&end, &r_begin);
    return is_disjoint || is_short(a, d, 1) ? -1 : d;
}

/** The dimension along which a store collides with another access of the same view, or -1 if none
 * is proved. */
static int find_collision(const analysis *a, uint32_t store, uint32_t other)
{
    const uint32_t *x = qn__args(a->k, store), *y = qn__args(a->k, other);
    int rank = qn__n_indices(a->k, store);
    solution s = {0};
    form difference[QN_MAX_RANK];
    for (int p = 0; p < rank; p++) {
        if (!add_scaled(&a->form[x[p]], &a->form[y[p]], -1, &difference[p]))
            return -1;
        int d = difference[p].n ? find_free_dim(a, &a->form[x[p]], &a->form[y[p]]) : -1;
        if (difference[p].n && (d < 0 || (s.free >> d & 1)))
            return -1;
        if (difference[p].n)
            s.free |= 1u << d;
        else if (!add_equation(a, &a->form[x[p]], difference[p].constant, &s))
            return -1;
    }
    if (s.used & s.free)
        return -1;
    for (int p = 0; p < rank; p++)
        if (difference[p].n == 0 && !check_equation(a, &a->form[x[p]], difference[p].constant, &s))
            return -1;
    int found = -1;
    for (int d = 0; d < a->k->n_dims; d++) {
        int64_t delta = s.delta[d];
        if (delta != 0 && (!qn__is_parallel(a->k, d) || delta == INT64_MIN ||
                           is_short(a, d, delta < 0 ? -delta : delta)))
            return -1;
        if (found < 0 && (delta != 0 || (s.free >> d & 1)))
            found = d;
    }
    return found;
}

/* ---------------------------------------------------------------- the check */

/** Whether an instruction runs in every iteration: nothing but reduces around it. */
static bool is_unconditional(const qn_kernel *k, uint32_t i)
{
    for (uint32_t p = k->inst[i].parent; p; p = k->inst[p].parent)
        if (k->inst[p].op != QN_I_REDUCE)
            return false;
    return true;
}

/** A parallel dimension on which no index of the store depends, or -1. */
static int find_unused_dim(const analysis *a, uint32_t store)
{
    uint32_t used = 0;
    for (int p = 0; p < qn__n_indices(a->k, store); p++)
        used |= a->dims[qn__args(a->k, store)[p]];
    for (int d = 0; d < a->k->n_dims; d++)
        if (qn__is_parallel(a->k, d) && !(used >> d & 1) && !is_short(a, d, 1))
            return d;
    return -1;
}

static qn_status check_store(analysis *a, uint32_t store, qn_error *err)
{
    const qn_kernel *k = a->k;
    const char *view = k->param[k->inst[store].imm].name;
    int d = find_unused_dim(a, store);
    if (d >= 0)
        return qn__fail(err, QN_ERR_COLLISION,
                        "qn_finish: view \"%.100s\": the indices of a store do not depend on "
                        "parallel dimension "
                        "%d: its iterations write the same element",
                        view, d);
    for (uint32_t n = 0; n < k->n_accesses && a->n_pairs < MAX_PAIRS; n++) {
        uint32_t other = k->access[n].inst;
        const qn_inst *x = &k->inst[other];
        if (x->imm != k->inst[store].imm || x->op == QN_I_ATOMIC || other == store ||
            x->sub != k->inst[store].sub || /* parts share no byte */
            !is_unconditional(k, other))
            continue;
        a->n_pairs++;
        d = find_collision(a, store, other);
        if (d >= 0)
            return qn__fail(err, QN_ERR_COLLISION,
                            "qn_finish: view \"%.100s\": along parallel dimension %d an iteration "
                            "%ss an element "
                            "that another one stores",
                            view, d, qn__inst_name(x->op));
    }
    return QN_OK;
}

static bool needs_check(const qn_kernel *k)
{
    bool has_parallel = false, has_store = false;
    for (int d = 0; d < k->n_dims; d++)
        has_parallel |= qn__is_parallel(k, d);
    for (uint32_t n = 0; n < k->n_accesses; n++)
        has_store |= k->inst[k->access[n].inst].op == QN_I_STORE;
    return has_parallel && has_store;
}

qn_status qn__check_collisions(const qn_kernel *k, qn_error *err)
{
    if (!needs_check(k))
        return QN_OK;
    analysis a = {.k = k,
                  .form = qn__zalloc(k->n_insts, sizeof *a.form),
                  .dims = qn__zalloc(k->n_insts, sizeof *a.dims)};
    qn_status status = QN_OK;
    if (!a.form || !a.dims)
        status = qn__fail(err, QN_ERR_MEMORY, "qn_finish: out of memory");
    else
        analyse(&a);
    for (uint32_t n = 0; !status && n < k->n_accesses; n++) {
        uint32_t i = k->access[n].inst;
        const qn_inst *x = &k->inst[i];
        bool is_atomic = k->param[x->imm].traits & QN_ATOMIC;
        if (x->op == QN_I_STORE && x->parent == 0 && !is_atomic)
            status = check_store(&a, i, err);
        if (status)
            qn__error_location(err, k, i);
    }
    qn__free(a.form);
    qn__free(a.dims);
    return status;
}
