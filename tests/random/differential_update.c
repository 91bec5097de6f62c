/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_update.c: random updates of elements through atomic views, as stores of expressions
 * of the stored element. All iterations that may meet in an element update it by functions that
 * commute, so that one answer is right: products, largest numbers by select, sums in a wider type,
 * or one and the same function. Where the elements are an iteration's own, any expression does.
 */
#include "differential.h"

enum {
    UPDATE_NONE,
    UPDATE_STORED,
    UPDATE_PRODUCT,
    UPDATE_LARGEST,
    UPDATE_WIDE,
    UPDATE_SAME,
    N_UPDATES
};

void choose_update(test_case *t, test_view *v)
{
    randoms *r = &t->random;
    v->update = random_percent(r, 45) ? UPDATE_NONE : 1 + random_below(r, N_UPDATES - 1);
    if (!is_integer(v->dtype) && v->update > UPDATE_STORED)
        v->update = UPDATE_SAME;
    for (int n = 0; n < 2; n++)
        v->constant[n] = random_value(r, v->dtype);
    if (v->update != UPDATE_NONE)
        v->traits |= QN_ATOMIC;
}

/* The table op of a combination. */
static int op_of(int combine)
{
    static const uint8_t ops[QN_N_COMBINES] = {
        [QN_COMBINE_SUM] = QN_OP_add, [QN_COMBINE_MIN] = QN_OP_min, [QN_COMBINE_MAX] = QN_OP_max,
        [QN_COMBINE_AND] = QN_OP_and, [QN_COMBINE_OR] = QN_OP_or,   [QN_COMBINE_XOR] = QN_OP_xor};
    return ops[combine];
}

/* One function of the element in all updates of a view: of constants, and of the element once
 * more. */
static qn_val gen_same(generator *g, const test_view *v, qn_val old, qn_val again)
{
    qn_val first = qn_const_bits(g->b, v->dtype, v->constant[0]),
           second = qn_const_bits(g->b, v->dtype, v->constant[1]);
    if (v->dtype == QN_BOOL)
        return qn_not(g->b, old);
    if (!is_integer(v->dtype))
        return qn_add(g->b, qn_mul(g->b, old, first), v->constant[1] % 2 ? again : second);
    qn_val mixed = qn_xor(g->b, qn_mul(g->b, old, first),
                          qn_shr(g->b, again, qn_const_int(g->b, v->dtype, 3)));
    return qn_sub(g->b, second, mixed);
}

void gen_shared_update(generator *g, int view)
{
    const test_view *v = &g->t->view[view];
    qn_val index[VIEW_RANK] = {{0}};
    gen_indices(g, view, true, index);
    qn_val operand = gen_value(g, v->dtype, 2), old = qn_load(g->b, g->param[view], v->rank, index),
           next = {0};
    switch (v->update) {
    case UPDATE_STORED:
        next = qn_op(g->b, op_of(v->combine), 2, (const qn_val[]){old, operand});
        break;
    case UPDATE_PRODUCT:
        next = qn_mul(g->b, old, operand);
        break;
    case UPDATE_LARGEST:
        next = qn_select(g->b, qn_lt(g->b, old, operand), operand, old);
        break;
    case UPDATE_WIDE:
        next = qn_add(g->b, qn_cast(g->b, QN_U64, old), qn_cast(g->b, QN_U64, operand));
        next = qn_cast(g->b, v->dtype, next);
        break;
    default:
        next = gen_same(g, v, old, qn_load(g->b, g->param[view], v->rank, index));
    }
    qn_store(g->b, g->param[view], v->rank, index, next);
    g->t->has_updates = true;
}

void gen_own_update(generator *g, int view)
{
    enum { MOST_STEPS = 3 };
    const test_view *v = &g->t->view[view];
    qn_val index[VIEW_RANK] = {{0}}, operand[MOST_STEPS];
    int dtype = v->dtype, n = 1 + random_below(g->r, MOST_STEPS);
    gen_indices(g, view, true, index);
    for (int i = 0; i < n; i++)
        operand[i] = gen_value(g, dtype, 2);
    qn_val next = qn_load(g->b, g->param[view], v->rank, index);
    for (int i = 0; i < n; i++) {
        int kind = random_below(g->r, 4);
        qn_val other = kind == 3 ? qn_load(g->b, g->param[view], v->rank, index) : operand[i];
        if (dtype == QN_BOOL)
            next = kind % 2 ? qn_and(g->b, other, next) : qn_not(g->b, qn_or(g->b, next, other));
        else if (kind == 2)
            next = qn_select(g->b, qn_le(g->b, next, other), other, next);
        else
            next = random_percent(g->r, 50) ? qn_mul(g->b, next, other) : qn_sub(g->b, other, next);
    }
    qn_store(g->b, g->param[view], v->rank, index, next);
    g->t->has_updates = true;
}

bool drop_atomics(test_case *t)
{
    bool has_any = false;
    for (int i = 0; i < t->n_views; i++) {
        test_view *v = &t->view[i];
        bool is_dropped = v->role != ROLE_ATOMIC && (v->traits & QN_ATOMIC);
        v->traits &= is_dropped ? ~(uint32_t)QN_ATOMIC : UINT32_MAX;
        has_any = has_any || is_dropped;
    }
    t->has_updates = false;
    return has_any;
}

void choose_late_atomic(test_case *t)
{
    test_view *v = &t->view[random_below(&t->random, t->n_views)];
    if (random_percent(&t->random, 6) && v->role == ROLE_OUTPUT && has_plain_elements(v) &&
        !has_lists(t))
        v->view.traits |= QN_ATOMIC;
}
