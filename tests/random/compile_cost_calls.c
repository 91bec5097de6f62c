/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile_cost_calls.c: kernels that are large by what one instruction stands for: mathematical
 * functions, functions that call functions, lookups of constant arrays, updates of elements by
 * expressions.
 */
#include "tests/random/compile_cost.h"

#include <stdio.h>
#include <string.h>

static bool is_full(const maker *m)
{
    return qn_builder_status(m->b, NULL) != QN_OK;
}

/* Stores of what an op makes of the stored element and a value, or of it alone twice. */
void cost_updates(maker *m)
{
    for (int i = 0; i < m->n && !is_full(m); i++) {
        qn_val index[MOST_COST_RANK] = {{0}};
        cost_indices(m, index);
        qn_val old = qn_load(m->b, m->view[0], m->rank, index), other = cost_pick(m), next;
        if (m->dtype == QN_BOOL)
            next = random_percent(m->r, 50) ? qn_not(m->b, old) : qn_xor(m->b, old, other);
        else if (random_percent(m->r, 40))
            next = qn_mul(m->b, old, other);
        else if (random_percent(m->r, 50))
            next = qn_select(m->b, qn_lt(m->b, old, other), other, old);
        else
            next = qn_sub(m->b, qn_mul(m->b, old, old), other);
        qn_store(m->b, m->view[0], m->rank, index, next);
    }
}

/* One function many times, or all. */
void cost_math(maker *m)
{
    static const struct {
        const char *name, *arguments;
    } functions[] = {
#define QN_MATH(name, arguments, results, doc) {#name, #arguments},
#include "quern/math.def"
#undef QN_MATH
    };
    static const uint8_t floats[] = {QN_F32, QN_F64, QN_F32, QN_F64, QN_F16, QN_BF16};
    int n = (int)(sizeof functions / sizeof *functions);
    int dtype = is_float(m->dtype) ? m->dtype : floats[random_below(m->r, 6)];
    int only = random_percent(m->r, 60) ? random_below(m->r, n) : -1;
    bool is_chain = random_percent(m->r, 50);
    if (only >= 0 && strncmp(functions[only].name, "cr_", 3) == 0)
        dtype = QN_F32;
    snprintf(m->c->what + strlen(m->c->what), 40, " %s of %s%s",
             only >= 0 ? functions[only].name : "all", qn_dtype_name(dtype),
             is_chain ? ", chain" : "");
    for (int i = 0; i < m->n && !is_full(m); i++) {
        int f = only >= 0 ? only : random_below(m->r, n);
        if (dtype == QN_F64 && strncmp(functions[f].name, "cr_", 3) == 0) /* which takes no f64 */
            continue;
        int arity = (int)strlen(functions[f].arguments);
        qn_val result[QN_MAX_CARRIED], args[2] = {cost_convert(m, cost_pick(m), dtype)};
        if (arity == 2)
            args[1] =
                cost_convert(m, cost_pick(m), functions[f].arguments[1] == 'I' ? QN_I32 : dtype);
        qn_math(m->b, functions[f].name, arity, args, result);
        if (is_chain)
            m->n_values = m->n_values > 2 ? 2 : m->n_values;
        cost_keep(m, cost_convert(m, result[0], m->dtype));
    }
}

/* Each function does some ops, maybe in a branch or a loop, and calls the one before a few times.
 */
static qn_function *make_function(maker *m, int number, qn_function *before)
{
    char name[16];
    qn_function *f = NULL;
    maker inside = {.c = m->c, .r = m->r, .dtype = m->dtype};
    snprintf(name, sizeof name, "f%d", number);
    inside.b = qn_function_new(name, 0);
    for (int i = 0; i < 2; i++)
        cost_keep(&inside, qn_scalar_param(inside.b, i ? "y" : "x", m->dtype));
    qn_val end[1], init = cost_pick(&inside), carried;
    int kind = random_below(m->r, 6);
    if (kind == 0)
        qn_if(inside.b, cost_convert(&inside, cost_pick(&inside), QN_BOOL));
    if (kind == 1)
        (void)qn_for(inside.b, qn_index(inside.b, 0), qn_index(inside.b, 5), 1, 1, &init, &carried);
    for (int i = 1 + random_below(m->r, 20); i > 0; i--)
        cost_keep(&inside, cost_op(&inside, m->dtype));
    for (int i = before ? 1 + random_below(m->r, 2) : 0; i > 0; i--) {
        qn_val args[2] = {cost_convert(&inside, cost_pick(&inside), m->dtype),
                          cost_convert(&inside, cost_pick(&inside), m->dtype)},
               v;
        qn_invoke(inside.b, before, 2, args, 0, NULL, &v);
        cost_keep(&inside, v);
    }
    qn_val result = cost_convert(&inside, inside.value[inside.n_values - 1], m->dtype);
    if (kind == 0) {
        qn_else(inside.b, 1, &result);
        qn_end_if(inside.b, 1, &init, end);
    } else if (kind == 1) {
        qn_end_for(inside.b, 1, &result, end);
    }
    (void)qn_function_finish(inside.b, 1, kind < 2 ? end : &result, &f, NULL);
    qn_builder_release(inside.b);
    return f;
}

void cost_calls(maker *m)
{
    qn_function *f[QN_MAX_CALL_DEPTH] = {NULL};
    int n = 0, depth = 1 + random_below(m->r, random_percent(m->r, 30) ? QN_MAX_CALL_DEPTH - 1 : 4);
    for (; n < depth && (n == 0 || f[n - 1]); n++)
        f[n] = make_function(m, n, n ? f[n - 1] : NULL);
    snprintf(m->c->what + strlen(m->c->what), 40, " depth %d", depth);
    for (int i = 0; i < m->n && !is_full(m) && f[n - 1]; i++) {
        qn_val args[2] = {cost_convert(m, cost_pick(m), m->dtype),
                          cost_convert(m, cost_pick(m), m->dtype)},
               v;
        qn_invoke(m->b, f[random_percent(m->r, 70) ? n - 1 : random_below(m->r, n)], 2, args, 0,
                  NULL, &v);
        cost_keep(m, v);
    }
    for (int i = 0; i < n; i++)
        qn_function_release(f[i]);
}

/* Of arrays of any size, at indices that are known to be inside or not. */
void cost_lookups(maker *m)
{
    static uint64_t elements[QN_MAX_ARRAY_ELEMENTS];
    qn_array array[QN_MAX_ARRAYS];
    int size[QN_MAX_ARRAYS],
        n = 1 + random_below(m->r, random_percent(m->r, 50) ? 3 : QN_MAX_ARRAYS);
    bool is_small = random_percent(m->r, 60);
    for (int i = 0; i < QN_MAX_ARRAY_ELEMENTS; i++)
        elements[i] = m->dtype == QN_BOOL ? random_bits(m->r) & UINT64_C(0x0101010101010101)
                                          : random_bits(m->r) & UINT64_C(0x3fff3fff3fff3fff);
    for (int i = 0; i < n; i++) {
        size[i] = 1 << random_below(m->r, is_small ? 7 : 13);
        array[i] = qn_const_array(m->b, m->dtype, size[i], elements);
    }
    snprintf(m->c->what + strlen(m->c->what), 40, " arrays %d%s", n, is_small ? ", small" : "");
    for (int i = 0; i < m->n && !is_full(m); i++) {
        int of = random_below(m->r, n);
        qn_val index = cost_convert(m, cost_pick(m), QN_I64);
        if (random_percent(m->r, 60))
            index = qn_and(m->b, index, qn_index(m->b, size[of] - 1));
        cost_keep(m, qn_lookup(m->b, array[of], index));
    }
}
