/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_calls.c: random calls of the builder, most of them wrong: values and parameters that are not
 * there or belong elsewhere, dtypes, counts and ranks of any size, regions that end in any order,
 * NULL. Nothing crashes; the first error is kept; what can be finished all the same prints, parses
 * and prints again as the same text.
 */
#include "quern.h"
#include "tests/tap.h"

#include <stdlib.h>

enum { N_BUILDERS = 6000, MOST_CALLS = 60, MOST_VALUES = 200, MOST_ARGS = 6 };

typedef struct caller {
    uint64_t state;
    qn_builder *b;
    qn_val value[MOST_VALUES];
    int n;
    qn_param param[8];
    int n_params, rank[8], dtype[8];
    int wrong; /* percent of arguments that are anything */
} caller;

static uint64_t next(caller *c)
{
    uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int below(caller *c, int n)
{
    return (int)(next(c) % (uint64_t)n);
}

static bool is_wrong(caller *c)
{
    return below(c, 100) < c->wrong;
}

static int64_t any_number(caller *c)
{
    static const int64_t numbers[] = {
        0, 1, -1, 2, 7, 64, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    return numbers[below(c, 11)];
}

/** Mostly the builder's own number. */
static uint32_t any_builder(caller *c)
{
    return below(c, 4) ? (c->n          ? c->value[0].builder
                          : c->n_params ? c->param[0].builder
                                        : 0)
                       : (uint32_t)next(c);
}

static qn_val any_value(caller *c)
{
    if (c->n == 0 || is_wrong(c))
        return (qn_val){below(c, 3) ? (uint32_t)below(c, 300) : (uint32_t)next(c), any_builder(c)};
    return c->value[below(c, 2) ? c->n - 1 - below(c, c->n < 5 ? c->n : 5) : below(c, c->n)];
}

/** One of this dtype, if a few tries find one. */
static qn_val value_of(caller *c, int dtype)
{
    qn_val v = any_value(c);
    for (int tries = 0; tries < 12 && (int)qn_type_of(c->b, v) != dtype && c->n && !is_wrong(c);
         tries++)
        v = c->value[below(c, c->n)];
    return (int)qn_type_of(c->b, v) == dtype || dtype != QN_I64 || is_wrong(c)
               ? v
               : qn_index(c->b, below(c, 5));
}

static qn_param any_param(caller *c)
{
    if (c->n_params == 0 || is_wrong(c))
        return (qn_param){below(c, 3) ? (uint32_t)below(c, 10) : (uint32_t)next(c), any_builder(c)};
    return c->param[below(c, c->n_params)];
}

static int any_dtype(caller *c)
{
    static const uint8_t often[] = {QN_F32, QN_F64, QN_I64, QN_BOOL, QN_C64, QN_I32};
    return is_wrong(c)   ? (int)any_number(c)
           : below(c, 2) ? often[below(c, 6)]
                         : 1 + below(c, QN_N_DTYPES);
}

static int any_count(caller *c, int right)
{
    return is_wrong(c) ? below(c, MOST_ARGS + 1) - (below(c, 20) == 0) : right;
}

static const char *any_name(caller *c)
{
    static const char *const names[] = {"x", "y", "a b", "", "\n", "%0", "x"};
    return is_wrong(c) && below(c, 3) == 0 ? NULL : names[below(c, 7)];
}

static void keep(caller *c, qn_val v)
{
    if (c->n < MOST_VALUES)
        c->value[c->n++] = v;
}

static void call_leaf(caller *c)
{
    switch (below(c, 9)) {
    case 0:
        if (c->n_params < 8) {
            int p = c->n_params++;
            char name[8] = {'a', (char)('0' + p)};
            c->rank[p] = is_wrong(c) ? (int)any_number(c) : below(c, 4);
            c->dtype[p] = any_dtype(c);
            c->param[p] = qn_view_param(c->b, is_wrong(c) ? any_name(c) : name, c->dtype[p],
                                        c->rank[p], is_wrong(c) ? (uint32_t)next(c) : 0);
        }
        break;
    case 1:
        if (is_wrong(c))
            keep(c, qn_scalar_param(c->b, any_name(c), any_dtype(c)));
        break;
    case 2:
        keep(c, qn_const_int(c->b, any_dtype(c), any_number(c)));
        break;
    case 3:
        keep(c, qn_const_float(c->b, any_dtype(c), (double)any_number(c) * 0.5));
        break;
    case 4:
        keep(c, qn_const_bits(c->b, any_dtype(c), next(c)));
        break;
    case 5:
        keep(c, qn_index(c->b, any_number(c)));
        break;
    case 6:
        keep(c, below(c, 2) ? qn_extent(c->b, any_param(c), below(c, 5) - 1)
                            : qn_lower(c->b, any_param(c), below(c, 5) - 1));
        break;
    case 7:
        keep(c, below(c, 2) ? qn_parallel(c->b, value_of(c, QN_I64), value_of(c, QN_I64))
                              : qn_reduction(c->b, value_of(c, QN_I64), value_of(c, QN_I64)));
        break;
    default:
        if (is_wrong(c))
            keep(c, below(c, 2) ? qn_sequential(c->b, any_value(c), any_value(c))
                                : qn_parallel_over(c->b, any_param(c), below(c, 3)));
    }
}

static void call_memory(caller *c)
{
    int p = c->n_params ? below(c, c->n_params) : -1, n = p >= 0 ? c->rank[p] : 1;
    qn_param param = p < 0 || is_wrong(c) ? any_param(c) : c->param[p];
    qn_val index[MOST_ARGS];
    for (int i = 0; i < MOST_ARGS; i++)
        index[i] = value_of(c, QN_I64);
    n = any_count(c, n < 0 || n > MOST_ARGS ? 1 : n);
    if (p < 0 && !is_wrong(c))
        return;
    if (below(c, 2))
        keep(c, qn_load(c->b, param, n, index));
    else
        qn_store(c->b, param, n, index, value_of(c, p < 0 ? QN_F32 : c->dtype[p]));
}

static void call_value(caller *c, const qn_val *args)
{
    int kind = below(c, is_wrong(c) ? 12 : 4);
    switch (kind == 1 && !is_wrong(c) ? 9 : kind) {
    case 0:
        keep(c, qn_cast(c->b, any_dtype(c), args[0]));
        break;
    case 1:
        keep(c, qn_bitcast(c->b, any_dtype(c), args[0]));
        break;
    case 2:
    case 3:
        call_memory(c);
        break;
    case 4:
        keep(c, qn_atomic(c->b, below(c, 12) - 1, any_param(c), any_count(c, 1), args, any_value(c),
                          any_value(c)));
        break;
    case 5:
        keep(c, qn_load_field(c->b, any_param(c), (int)any_number(c), any_count(c, 1), args));
        break;
    case 6:
        keep(c, below(c, 2) ? qn_complex(c->b, args[0], args[1]) : qn_magnitude(c->b, args[0]));
        break;
    case 7:
        keep(c, below(c, 2) ? qn_with_field(c->b, args[0], below(c, 4) - 1, args[1])
                            : qn_field_of(c->b, args[0], below(c, 4) - 1));
        break;
    case 8:
        keep(c, below(c, 2) ? qn_row_at(c->b, any_param(c), args[0], args[1])
                            : qn_row_end(c->b, any_param(c), args[0]));
        break;
    default:
        keep(c, is_wrong(c) ? qn_op(c->b, below(c, 2) ? (int)any_number(c) : below(c, 60),
                                    any_count(c, 1 + below(c, 3)), args)
                            : qn_add(c->b, args[0], args[1]));
    }
}

static void call_region(caller *c, const qn_val *args)
{
    qn_val out[2 * MOST_ARGS] = {{0}};
    int n = any_count(c, below(c, 3)), kind = is_wrong(c) ? below(c, 11) : 11;
    if (kind == 11 && c->n) { /* a whole one */
        qn_val x = any_value(c);
        (void)qn_for(c->b, qn_index(c->b, 0), value_of(c, QN_I64), 1, 1, &x, out);
        qn_end_for(c->b, 1, below(c, 2) ? &x : out, out);
        n = 1;
    }
    if (kind == 0)
        qn_if(c->b, args[0]);
    else if (kind == 1)
        qn_else(c->b, n, args);
    else if (kind == 2)
        qn_end_if(c->b, n, args, out);
    else if (kind == 3)
        keep(c, qn_for(c->b, args[0], args[1], is_wrong(c) ? any_number(c) : 1, n, args, out));
    else if (kind == 4)
        qn_end_for(c->b, n, args, out);
    else if (kind == 5)
        qn_while(c->b, args[0], n, args, out);
    else if (kind == 6)
        qn_do(c->b, args[0]);
    else if (kind == 7)
        qn_end_while(c->b, n, args, out);
    else if (kind == 8)
        qn_reduce(c->b, below(c, 12) - 1, below(c, 6) - 1, n, args);
    else if (kind == 9)
        keep(c, qn_end_reduce(c->b, args[0]));
    else if (kind == 10)
        keep(c, qn_for_row(c->b, any_param(c), args[0], n, args, out));
    for (int i = 0; i < n; i++)
        if (out[i].id)
            keep(c, out[i]);
}

/** Whether the text of a kernel is a fixed point. */
static bool is_fixed(const qn_kernel *k)
{
    size_t n = qn_kernel_print(k, NULL, 0), m = 0;
    char *text = malloc(n + 1), *again = malloc(n + 1);
    qn_kernel *parsed = NULL;
    bool is_same = text && again && qn_kernel_print(k, text, n + 1) == n &&
                   qn_kernel_parse(text, n, &parsed, NULL) == QN_OK;
    if (is_same)
        m = qn_kernel_print(parsed, again, n + 1);
    is_same = is_same && m == n && memcmp(text, again, n) == 0;
    if (!is_same)
        tap_note("%s", text ? text : "no memory");
    qn_kernel_release(parsed);
    free(text);
    free(again);
    return is_same;
}

int main(void)
{
    int n_finished = 0, n_lost = 0, n_changed = 0;
    for (int seed = 0; seed < N_BUILDERS; seed++) {
        caller c = {.state = (uint64_t)seed, .wrong = seed % 3 == 0 ? 30 : seed % 3 == 1 ? 3 : 0};
        qn_kernel *k = NULL;
        qn_error first = {0}, err = {0};
        c.b = qn_builder_new(seed % 50 ? "calls" : NULL, seed % 5 ? 0 : (uint32_t)next(&c));
        qn_param out = c.b ? qn_view_param(c.b, "out", QN_I64, 0, 0) : (qn_param){0};
        for (int i = 1 + below(&c, MOST_CALLS); i > 0; i--) {
            qn_val args[2 * MOST_ARGS];
            for (int a = 0; a < 2 * MOST_ARGS; a++)
                args[a] = a && below(&c, 100) >= c.wrong
                              ? value_of(&c, (int)qn_type_of(c.b, args[0]))
                              : any_value(&c);
            int kind = below(&c, 10);
            if (kind < 4)
                call_leaf(&c);
            else if (kind < 8)
                call_value(&c, args);
            else
                call_region(&c, args);
            qn_error now = {0};
            if (c.b && first.status == QN_OK)
                qn_builder_status(c.b, &first);
            else if (c.b && qn_builder_status(c.b, &now) != (qn_status)first.status)
                n_lost++;
        }
        if (c.b && first.status == QN_OK) /* a kernel stores something */
            qn_atomic(c.b, QN_COMBINE_SUM, out, 0, NULL, qn_index(c.b, 1), (qn_val){0});
        if (qn_finish(c.b, &k, &err) == QN_OK) {
            n_finished++;
            n_changed += !is_fixed(k);
        }
        qn_kernel_release(k);
        qn_builder_release(c.b);
    }
    tap_ok(n_finished > N_BUILDERS / 100, "%d of %d sequences of random calls make a kernel",
           n_finished, N_BUILDERS);
    tap_is_int(n_changed, 0, "the text of which is a fixed point");
    tap_is_int(n_lost, 0, "the first error is kept");
    return tap_done();
}
