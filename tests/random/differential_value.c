/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_value.c: random expressions over all ops and dtypes. Which NaN an arithmetic
 * operation gives is not specified, so wherever the bits of a number would show (bitcast to an
 * integer, the sign that copysign takes) NaNs are replaced by one NaN first.
 */
#include "differential.h"
#include "tests/dtypes.h"

enum { CLASS_B = 1, CLASS_S = 2, CLASS_U = 4, CLASS_F = 8, CLASS_C = 16 };
enum {
    CLASSES_F = CLASS_F,
    CLASSES_SU = CLASS_S | CLASS_U,
    CLASSES_SUF = CLASS_S | CLASS_U | CLASS_F,
    CLASSES_BSU = CLASS_B | CLASS_S | CLASS_U,
    CLASSES_BSUF = CLASS_B | CLASS_S | CLASS_U | CLASS_F
};
enum { RULE_SAME, RULE_COMPARE, RULE_SELECT };

typedef struct op_row {
    int op, rule, arity, classes;
} op_row;
static const op_row op_rows[] = {
#define QN_OP(ID, name, rule, arity, classes, ...)                                                 \
    {QN_OP_##name, RULE_##rule, arity, CLASSES_##classes},
#include "quern/ops.def"
#undef QN_OP
};
enum { N_OPS = sizeof op_rows / sizeof *op_rows };

static int class_of(int dtype)
{
    static const uint8_t classes[QN_N_DTYPES] = {
#define QN_DTYPE(NAME, number, text, bytes, cls, ...) [number] = CLASS_##cls,
#include "quern/dtypes.def"
#undef QN_DTYPE
    };
    return classes[dtype];
}

void gen_pool(generator *g, qn_val v, int dtype)
{
    if (g->is_uniform_only) /* perhaps in a region, which ends the value */
        return;
    int at = g->n_pool < MAX_POOL ? g->n_pool++
                                  : g->n_uniform + random_below(g->r, MAX_POOL - g->n_uniform);
    g->pool[at] = (pooled){v, dtype};
}

/* ---------------------------------------------------------------- leaves */

static qn_val gen_const(generator *g, int dtype)
{
    return qn_const_bits(g->b, dtype, random_value(g->r, dtype));
}

qn_val gen_convert(generator *g, qn_val v, int from, int to)
{
    if (from == to)
        return v;
    if (to == QN_BOOL && is_float(from))
        return qn_ne(g->b, v, qn_const_float(g->b, from, 0));
    return qn_cast(g->b, to, v);
}

static qn_val gen_leaf(generator *g, int dtype)
{
    int n = g->is_uniform_only ? g->n_uniform : g->n_pool;
    if (n == 0 || random_percent(g->r, 25))
        return gen_const(g, dtype);
    /* One of the right dtype if a few tries find one. */
    const pooled *p = NULL;
    for (int tries = 0; tries < 6; tries++) {
        p = &g->pool[random_percent(g->r, 50) ? n - 1 - random_below(g->r, n < 6 ? n : 6)
                                              : random_below(g->r, n)];
        if (p->dtype == dtype)
            break;
    }
    return gen_convert(g, p->value, p->dtype, dtype);
}

/* ---------------------------------------------------------------- indices */

qn_val gen_lower(generator *g, int view, int d, int64_t plus)
{
    int64_t lower = g->t->view[view].lower[d];
    if (random_percent(g->r, 60))
        return qn_index(g->b, lower + plus);
    return qn_add(g->b, qn_lower(g->b, g->param[view], d), qn_index(g->b, plus));
}

/* Any i64 value, brought into [lower, lower + extent) by remainder or by clamping. */
static qn_val gen_wrapped(generator *g, int view, int d, qn_val any)
{
    int64_t lower = g->t->view[view].lower[d], extent = g->t->view[view].extent[d];
    if (random_percent(g->r, 50)) {
        qn_val first = qn_index(g->b, lower), last = qn_index(g->b, lower + extent - 1);
        return qn_min(g->b, qn_max(g->b, any, first), last);
    }
    qn_val wide = qn_cast(g->b, QN_U64, any);
    qn_val part = qn_rem(g->b, wide, qn_const_int(g->b, QN_U64, extent));
    return qn_add(g->b, gen_lower(g, view, d, 0), qn_cast(g->b, QN_I64, part));
}

/* c * axis + constant inside the dimension, or inert if the axis is too long. */
static qn_val gen_affine(generator *g, int view, int d, const axis *a)
{
    int64_t extent = g->t->view[view].extent[d], n = a->end - a->begin;
    int64_t factor = n > 1 && random_percent(g->r, 15) ? random_between(g->r, 2, 3) : 1;
    if (n <= 0 || (n - 1) * factor >= extent)
        factor = 1;
    int64_t room = extent - 1 - (n - 1) * factor;
    if (n <= 0 || room < 0)
        return (qn_val){0};
    int64_t shift = random_percent(g->r, 50) ? 0 : random_between(g->r, 0, room);
    if (random_percent(g->r, 12)) { /* backwards */
        qn_val high = gen_lower(g, view, d, shift + (n - 1 + a->begin) * factor);
        return qn_sub(g->b, high, qn_mul(g->b, a->value, qn_index(g->b, factor)));
    }
    qn_val low = gen_lower(g, view, d, shift - a->begin * factor);
    qn_val scaled = factor == 1 ? a->value : qn_mul(g->b, a->value, qn_index(g->b, factor));
    return qn_add(g->b, scaled, low);
}

/* The sum of two axes, as in a convolution; inert if they do not fit together. */
static qn_val gen_window(generator *g, int view, int d, const axis *a, const axis *c)
{
    int64_t extent = g->t->view[view].extent[d], n = a->end - a->begin, m = c->end - c->begin;
    if (n <= 0 || m <= 0 || n + m - 1 > extent || a == c)
        return (qn_val){0};
    qn_val low = gen_lower(g, view, d, -a->begin - c->begin);
    return qn_add(g->b, qn_add(g->b, a->value, c->value), low);
}

qn_val gen_any_index(generator *g)
{
    static const uint8_t dtypes[] = {QN_I64, QN_I64, QN_I32, QN_U8, QN_I16, QN_U64};
    int dtype = dtypes[random_below(g->r, 6)];
    return gen_convert(g, gen_value(g, dtype, 1), dtype, QN_I64);
}

static bool fits(int64_t low, int64_t high, int64_t limit)
{
    return low >= -limit && high < limit;
}

/* An index that another view holds, loaded anywhere there; inert if none does, or not in its dtype.
 */
static qn_val gen_indirect(generator *g, int view, int d)
{
    const test_view *v = &g->t->view[view];
    for (int i = 0; i < g->t->n_views; i++) {
        const test_view *from = &g->t->view[i];
        bool is_signed = from->dtype <= QN_I64, is_empty = false;
        int bits = 8 * (int)qn_dtype_bytes(from->dtype) - is_signed;
        for (int k = 0; k < from->rank; k++)
            is_empty = is_empty || from->extent[k] == 0;
        if (!g->param[i].id || from->target != v || from->target_dim != d || from->is_owner ||
            is_empty ||
            !fits(v->lower[d], v->lower[d] + v->extent[d],
                  bits >= 63 ? INT64_MAX : INT64_C(1) << bits) ||
            (!is_signed && v->lower[d] < 0))
            continue;
        qn_val index[VIEW_RANK] = {{0}};
        g->budget--;
        gen_indices(g, i, false, index);
        return gen_convert(g, qn_load(g->b, g->param[i], from->rank, index), from->dtype, QN_I64);
    }
    return (qn_val){0};
}

/* An index inside the view's dimension d, if it has any. */
static qn_val gen_index_inside(generator *g, int view, int d)
{
    int64_t extent = g->t->view[view].extent[d];
    qn_val v = {0};
    if (extent <= 0)
        return gen_lower(g, view, d, 0);
    if (g->budget > 0 && !g->is_uniform_only && random_percent(g->r, 40))
        v = gen_indirect(g, view, d);
    if (v.id)
        return v;
    if (g->n_axes > 0 && random_percent(g->r, 75)) {
        const axis *a = &g->axes[random_below(g->r, g->n_axes)];
        if (random_percent(g->r, 15))
            v = gen_window(g, view, d, a, &g->axes[random_below(g->r, g->n_axes)]);
        for (int tries = 0; !v.id && tries < 3; tries++)
            v = gen_affine(g, view, d, &g->axes[random_below(g->r, g->n_axes)]);
        return v.id ? v : gen_wrapped(g, view, d, a->value);
    }
    if (random_percent(g->r, 35) || g->budget <= 0)
        return gen_lower(g, view, d, random_between(g->r, 0, extent - 1));
    return gen_wrapped(g, view, d, gen_any_index(g));
}

static qn_val gen_index(generator *g, int view, int d, bool may_escape)
{
    const test_view *v = &g->t->view[view];
    if (may_escape && random_percent(g->r, 25)) {
        if (random_percent(g->r, 40))
            return gen_any_index(g);
        int64_t shift = random_between(g->r, -2, 2);
        return qn_add(g->b, gen_index_inside(g, view, d), qn_index(g->b, shift));
    }
    qn_val index = gen_index_inside(g, view, d);
    int64_t low = v->lower[d], high = v->lower[d] + v->extent[d];
    if (random_percent(g->r, 6) && fits(low, high, 32768))
        return qn_cast(g->b, QN_I16, index);
    return random_percent(g->r, 8) && fits(low, high, INT64_C(1) << 31)
               ? qn_cast(g->b, QN_I32, index)
               : index;
}

/* The index of an iteration's own element: the domain dimension itself, shifted or mirrored. */
static qn_val own_index(generator *g, int view, int d)
{
    const test_view *v = &g->t->view[view];
    const axis *a = &g->dims[v->source[d]];
    if (v->owner[d]) {
        int number = (int)(v->owner[d] - g->t->view);
        qn_val at = qn_add(g->b, a->value, gen_lower(g, number, 0, -a->begin));
        return gen_convert(g, qn_load(g->b, g->param[number], 1, &at), v->owner[d]->dtype, QN_I64);
    }
    if (v->is_mirrored[d])
        return qn_sub(g->b, gen_lower(g, view, d, a->end - 1), a->value);
    int64_t shift = v->lower[d] + v->shift[d] - a->begin;
    if (shift == 0)
        return a->value;
    return qn_add(g->b, a->value, gen_lower(g, view, d, v->shift[d] - a->begin));
}

void gen_indices(generator *g, int view, bool is_store, qn_val *index)
{
    const test_view *v = &g->t->view[view];
    bool may_escape = is_store ? g->t->stores_escape : g->t->loads_escape;
    for (int d = 0; d < v->rank; d++) {
        bool is_step = v->role == ROLE_STEPPING && !is_store;
        if (is_step && d == 0) /* the step before */
            index[d] = qn_add(g->b, g->dims[0].value, gen_lower(g, view, 0, -g->dims[0].begin));
        else if (v->source[d] != NO_SOURCE && !is_step)
            index[d] = own_index(g, v->role == ROLE_TWIN ? v->shares : view,
                                 d); /* the same value for both */
        else
            index[d] = gen_index(g, view, d, may_escape);
    }
}

static bool is_readable(const generator *g, int view)
{
    const test_view *v = &g->t->view[view];
    if (v->role == ROLE_ATOMIC || !g->param[view].id)
        return false;
    for (int d = 0; d < v->rank; d++)
        if (v->extent[d] <= 0 && !g->t->loads_escape)
            return false;
    return true;
}

qn_val gen_load(generator *g, int dtype, int depth)
{
    int n = g->t->n_views, first = random_below(g->r, n), view = -1;
    for (int i = 0; i < n && view < 0; i++)
        if (is_readable(g, (first + i) % n))
            view = (first + i) % n;
    if (view < 0 || g->is_uniform_only || depth <= 0)
        return gen_leaf(g, dtype);
    qn_val index[VIEW_RANK] = {{0}};
    g->budget--;
    gen_indices(g, view, false, index);
    const test_view *v = &g->t->view[view];
    int found = v->dtype;
    qn_val loaded = has_plain_elements(v) ? qn_load(g->b, g->param[view], v->rank, index)
                                          : gen_load_part(g, view, index, &found);
    if (random_percent(g->r, 50))
        gen_pool(g, loaded, found);
    return gen_convert(g, loaded, found, dtype);
}

/* ---------------------------------------------------------------- ops */

qn_val gen_one_nan(generator *g, qn_val v, int dtype)
{
    return qn_select(g->b, qn_eq(g->b, v, v), v, qn_const_bits(g->b, dtype, dtype_nan(dtype)));
}

/* A divisor that may be zero when the kernel runs but is no constant: constants of zero are
 * refused. */
static qn_val gen_divisor(generator *g, qn_val v, int dtype)
{
    int n = g->is_uniform_only ? 0 : g->n_axes;
    if (n + g->n_uniform == 0)
        return qn_or(g->b, v, qn_const_int(g->b, dtype, 1));
    int at = random_below(g->r, n + g->n_uniform);
    pooled p = at < n ? (pooled){g->axes[at].value, QN_I64} : g->pool[at - n];
    return qn_or(g->b, v, gen_convert(g, p.value, p.dtype, dtype));
}

static qn_val gen_op(generator *g, int dtype, int depth)
{
    for (int tries = 0; tries < 20; tries++) {
        const op_row *row = &op_rows[random_below(g->r, N_OPS)];
        if (row->rule == RULE_COMPARE && dtype != QN_BOOL)
            continue;
        int of = row->rule == RULE_COMPARE ? random_dtype(g->r) : dtype;
        if (!(class_of(of) & row->classes))
            continue;
        qn_val args[3];
        for (int i = 0; i < row->arity; i++)
            args[i] = gen_value(g, row->rule == RULE_SELECT && i == 0 ? QN_BOOL : of, depth - 1);
        if (row->op == QN_OP_copysign)
            args[1] = gen_one_nan(g, args[1], of);
        if ((row->op == QN_OP_div || row->op == QN_OP_rem) && is_integer(of))
            args[1] = gen_divisor(g, args[1], of);
        return qn_op(g->b, row->op, row->arity, args);
    }
    return gen_leaf(g, dtype);
}

/* Sums and products, which real kernels are made of. */
static qn_val gen_arithmetic(generator *g, int dtype, int depth)
{
    static const uint8_t ops[] = {QN_OP_add, QN_OP_add, QN_OP_sub, QN_OP_mul,
                                  QN_OP_mul, QN_OP_min, QN_OP_max};
    qn_val args[2];
    for (int i = 0; i < 2; i++)
        args[i] = gen_value(g, dtype, depth - 1);
    if (dtype == QN_BOOL)
        return random_percent(g->r, 50) ? qn_and(g->b, args[0], args[1])
                                        : qn_xor(g->b, args[0], args[1]);
    return qn_op(g->b, ops[random_below(g->r, 7)], 2, args);
}

static qn_val gen_bitcast(generator *g, int dtype, int depth)
{
    int from = dtype;
    for (int tries = 0; tries < 10 && from == dtype; tries++) {
        from = random_dtype(g->r);
        if (qn_dtype_bytes(from) != qn_dtype_bytes(dtype) || from == QN_BOOL || dtype == QN_BOOL)
            from = dtype;
    }
    qn_val v = gen_value(g, from, depth - 1);
    if (is_float(from))
        v = gen_one_nan(g, v, from);
    return qn_bitcast(g->b, dtype, v);
}

qn_val gen_value(generator *g, int dtype, int depth)
{
    if (depth <= 0 || g->budget <= 0)
        return gen_leaf(g, dtype);
    g->budget--;
    int kind = random_below(g->r, 100);
    if (kind < 20)
        return gen_leaf(g, dtype);
    if (kind < 38)
        return gen_load(g, dtype, depth);
    if (kind < 56)
        return gen_arithmetic(g, dtype, depth);
    if (kind < 76)
        return gen_op(g, dtype, depth);
    if (kind < 83)
        return gen_of_function(g, dtype, depth);
    if (kind < 89) {
        int from = random_dtype(g->r);
        return gen_convert(g, gen_value(g, from, depth - 1), from, dtype);
    }
    if (kind < 93)
        return gen_bitcast(g, dtype, depth);
    if (g->is_uniform_only)
        return gen_leaf(g, dtype);
    return kind < 97 ? gen_reduce(g, dtype) : gen_choice(g, dtype);
}
