/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_block.c: random statements. A region gets copies of what was in scope before it and
 * leaves only its results behind. Loops are kept short and nesting shallow, so that a kernel takes
 * milliseconds in the interpreter.
 */
#include "differential.h"

#include <string.h>

enum { MAX_REPEATS = 40000, LOOP_TRIPS = 7, MAX_RESULTS = 3, MAX_NEST = 3 };

/* What is in scope, kept while a region is built. */
typedef struct scope {
    int n_pool, n_axes;
    int64_t repeats;
    pooled pool[MAX_POOL];
} scope;

static void enter(generator *g, scope *s)
{
    s->n_pool = g->n_pool;
    s->n_axes = g->n_axes;
    s->repeats = g->repeats;
    for (int i = 0; i < g->n_pool; i++)
        s->pool[i] = g->pool[i];
    g->nesting++;
}

static void leave(generator *g, const scope *s)
{
    g->n_pool = s->n_pool;
    g->n_axes = s->n_axes;
    g->repeats = s->repeats;
    for (int i = 0; i < s->n_pool; i++)
        g->pool[i] = s->pool[i];
    g->nesting--;
}

/* Values that depend on scalars and constants only. */
static qn_val gen_uniform(generator *g, int dtype)
{
    bool was_uniform = g->is_uniform_only;
    g->is_uniform_only = true;
    qn_val v = gen_value(g, dtype, 2);
    g->is_uniform_only = was_uniform;
    return v;
}

static int choose_types(generator *g, int *types)
{
    int n = random_below(g->r, MAX_RESULTS + 1);
    for (int i = 0; i < n; i++)
        types[i] = random_dtype(g->r);
    return n;
}

static void gen_values(generator *g, int n, const int *types, qn_val *values)
{
    for (int i = 0; i < n; i++)
        values[i] = gen_value(g, types[i], 2);
}

static void pool_values(generator *g, int n, const int *types, const qn_val *values)
{
    for (int i = 0; i < n; i++)
        gen_pool(g, values[i], types[i]);
}

/* ---------------------------------------------------------------- if */

/* Many operations on a value, each with a constant: one NaN stays one. */
static qn_val gen_chain(generator *g, qn_val v, int dtype)
{
    if (!is_float(dtype) && !is_half(dtype) && !is_integer(dtype))
        return v;
    for (int n = (int)random_between(g->r, 15, 50); n > 0; n--) {
        bool is_whole = is_integer(dtype);
        qn_val factor = is_whole ? qn_const_int(g->b, dtype, 3 + n % 5)
                                 : qn_const_float(g->b, dtype, 0.5 + n % 3 * 0.25);
        qn_val term =
            is_whole ? qn_const_int(g->b, dtype, n) : qn_const_float(g->b, dtype, n * 0.125);
        v = qn_add(g->b, qn_mul(g->b, v, factor), term);
    }
    return v;
}

/* A side that computes much and accesses nothing, of values from outside: code may go around it
 * where no lane takes it. */
static void gen_pure_side(generator *g, int n, const int *types, const qn_val *outside,
                          qn_val *values)
{
    bool is_long = random_percent(g->r, 70);
    for (int i = 0; i < n; i++)
        values[i] = is_long ? gen_chain(g, outside[i], types[i]) : outside[i];
}

static void gen_side(generator *g, int n, const int *types, const qn_val *outside, qn_val *values)
{
    scope s;
    enter(g, &s);
    if (outside) {
        gen_pure_side(g, n, types, outside, values);
    } else {
        gen_block(g, random_below(g->r, 3));
        gen_values(g, n, types, values);
    }
    leave(g, &s);
}

static void gen_branches(generator *g, int n, const int *types, qn_val *results)
{
    qn_val values[MAX_RESULTS] = {{0}}, outside[MAX_RESULTS] = {{0}};
    const qn_val *pure = n > 0 && random_percent(g->r, 20) ? outside : NULL;
    if (pure)
        gen_values(g, n, types, outside);
    qn_val condition =
        random_percent(g->r, 25) ? gen_uniform(g, QN_BOOL) : gen_value(g, QN_BOOL, 3);
    (random_percent(g->r, 20) ? qn_if_rare : qn_if)(g->b, condition);
    gen_side(g, n, types, pure, values);
    if (n > 0 || random_percent(g->r, 40)) {
        qn_else(g->b, n, values);
        gen_side(g, n, types, pure, values);
    }
    qn_end_if(g->b, n, values, results);
    pool_values(g, n, types, results);
}

qn_val gen_choice(generator *g, int dtype)
{
    qn_val results[MAX_RESULTS];
    if (g->nesting >= MAX_NEST)
        return gen_load(g, dtype, 1);
    gen_branches(g, 1, &dtype, results);
    return results[0];
}

/* ---------------------------------------------------------------- what is stored */

static bool is_own(const test_view *v)
{
    return v->role == ROLE_OUTPUT || v->role == ROLE_STEPPING;
}

/* A value that often takes in what was computed last, so that little of a kernel is dead. */
static qn_val gen_stored(generator *g, int dtype)
{
    qn_val v = gen_value(g, dtype, 4);
    if (g->n_pool == g->n_uniform || random_percent(g->r, 40))
        return v;
    const pooled *last = &g->pool[g->n_pool - 1];
    qn_val other = gen_convert(g, last->value, last->dtype, dtype);
    return dtype == QN_BOOL ? qn_xor(g->b, v, other) : qn_add(g->b, v, other);
}

/* ---------------------------------------------------------------- loops */

/* A loop bound from 0 to LOOP_TRIPS: a constant, a scalar's, or one that varies. */
static qn_val gen_bound(generator *g)
{
    if (random_percent(g->r, 40))
        return qn_index(g->b, random_between(g->r, 0, LOOP_TRIPS));
    qn_val any = random_percent(g->r, 40) ? gen_uniform(g, QN_I64) : gen_value(g, QN_I64, 2);
    return qn_and(g->b, any, qn_index(g->b, LOOP_TRIPS));
}

/* What a trip makes of a carried value and a value of its own: integers in ways that lanes of trips
 * may combine. */
static qn_val gen_combined(generator *g, int dtype, qn_val carried, qn_val own)
{
    static qn_val (*const ways[])(qn_builder *, qn_val, qn_val) = {qn_xor, qn_or,  qn_and, qn_add,
                                                                   qn_sub, qn_min, qn_max};
    const int most = dtype == QN_BOOL ? 3 : 7;
    if (dtype != QN_BOOL && !is_integer(dtype))
        return own;
    qn_val next = ways[random_below(g->r, most)](g->b, carried, own);
    return random_percent(g->r, 70) ? next
                                    : qn_select(g->b, gen_value(g, QN_BOOL, 2), next, carried);
}

static void gen_for(generator *g)
{
    const bool are_sums = random_percent(g->r, 40);
    int types[MAX_RESULTS], n = choose_types(g, types);
    qn_val init[MAX_RESULTS], carried[MAX_RESULTS], next[MAX_RESULTS], results[MAX_RESULTS];
    gen_values(g, n, types, init);
    qn_val begin = random_percent(g->r, 60) ? qn_index(g->b, 0) : gen_bound(g);
    qn_val end = gen_bound(g);
    scope s;
    enter(g, &s);
    g->repeats *= LOOP_TRIPS;
    qn_val index = qn_for(g->b, begin, end, 1 + random_percent(g->r, 30) * 2, n, init, carried);
    if (g->n_axes < MAX_AXES)
        g->axes[g->n_axes++] = (axis){index, 0, LOOP_TRIPS};
    gen_pool(g, index, QN_I64);
    if (!are_sums)
        pool_values(g, n, types, carried);
    gen_block(g, 1 + random_below(g->r, 2));
    gen_values(g, n, types, next);
    for (int i = 0; i < n && are_sums; i++)
        next[i] = gen_combined(g, types[i], carried[i], next[i]);
    leave(g, &s);
    qn_end_for(g->b, n, next, results);
    pool_values(g, n, types, results);
}

bool gen_row(generator *g)
{
    int number = random_below(g->r, g->t->n_views), d = -1;
    const test_view *v = &g->t->view[number];
    qn_val index[VIEW_RANK] = {{0}};
    for (int i = 0; i < v->rank; i++)
        d = v->source[i] == NO_SOURCE && v->extent[i] > 0 ? i : d;
    if (d < 0 || !is_own(v) || !has_plain_elements(v) || v->traits & QN_ATOMIC ||
        g->is_in_reduce || g->is_function || g->repeats * v->extent[d] > MAX_REPEATS) {
        gen_for(g);
        return false;
    }
    int64_t n = v->extent[d], first = random_percent(g->r, 50) ? 0 : random_between(g->r, 0, n);
    qn_val begin = gen_lower(g, number, d, first), end = gen_lower(g, number, d, n);
    if (random_percent(g->r, 50))
        end = qn_min(g->b, end, qn_add(g->b, begin, gen_bound(g)));
    scope s;
    enter(g, &s);
    g->repeats *= n;
    qn_val at = qn_for(g->b, begin, end, 1 + random_percent(g->r, 10), 0, NULL, NULL);
    if (g->n_axes < MAX_AXES)
        g->axes[g->n_axes++] = (axis){at, v->lower[d], v->lower[d] + n};
    gen_pool(g, at, QN_I64);
    if (random_percent(g->r, 30))
        gen_block(g, 1);
    gen_indices(g, number, true, index);
    index[d] = at;
    qn_store(g->b, g->param[number], v->rank, index, gen_stored(g, v->dtype));
    leave(g, &s);
    qn_end_for(g->b, 0, NULL, NULL);
    return true;
}

/* Counts in carried value 0 up to a bound that may vary, and stops early sometimes. */
static void gen_while(generator *g)
{
    enum { N = 2 };
    int types[N] = {QN_I64, random_dtype(g->r)};
    qn_val init[N] = {qn_index(g->b, 0), gen_value(g, types[1], 2)};
    qn_val carried[N], next[N], results[N], bound = gen_bound(g);
    bool may_reach = g->t->loads_escape && random_percent(g->r, 50);
    const bool is_sum = random_percent(g->r, 40);
    scope s;
    enter(g, &s);
    g->repeats *= LOOP_TRIPS;
    qn_while(g->b, qn_index(g->b, may_reach ? 4 : LOOP_TRIPS + 3), N, init, carried);
    if (g->n_axes < MAX_AXES)
        g->axes[g->n_axes++] = (axis){carried[0], 0, LOOP_TRIPS + 1};
    if (!is_sum)
        gen_pool(g, carried[1], types[1]);
    qn_val goes_on = qn_lt(g->b, carried[0], bound);
    if (random_percent(g->r, 40))
        goes_on = qn_and(g->b, goes_on, gen_value(g, QN_BOOL, 2));
    leave(g, &s);
    enter(g, &s);
    g->repeats *= LOOP_TRIPS;
    qn_do(g->b, goes_on);
    pool_values(g, is_sum ? 1 : N, types, carried);
    if (g->n_axes < MAX_AXES)
        g->axes[g->n_axes++] = (axis){carried[0], 0, LOOP_TRIPS};
    if (!is_sum)
        gen_block(g, 1 + random_below(g->r, 2));
    next[0] = qn_add(g->b, carried[0], qn_index(g->b, 1));
    next[1] = gen_value(g, types[1], 2);
    if (is_sum)
        next[1] = gen_combined(g, types[1], carried[1], next[1]);
    leave(g, &s);
    qn_end_while(g->b, N, next, results);
    pool_values(g, N, types, results);
}

/* ---------------------------------------------------------------- reductions */

int random_reduction(generator *g, int dtype)
{
    static const uint8_t logical[] = {QN_COMBINE_AND, QN_COMBINE_OR, QN_COMBINE_XOR};
    static const uint8_t numeric[] = {QN_COMBINE_SUM, QN_COMBINE_PROD, QN_COMBINE_MIN,
                                      QN_COMBINE_MAX};
    bool is_logical = dtype == QN_BOOL || (is_integer(dtype) && random_percent(g->r, 40));
    return is_logical ? logical[random_below(g->r, 3)] : numeric[random_below(g->r, 4)];
}

/* Some of the reduction dimensions, in the order of their declaration. */
static int choose_reduction(generator *g, const axis **chosen, int64_t *points)
{
    int n = 0;
    *points = 1;
    for (int d = 0; d < g->t->n_dims; d++)
        if (g->t->dim[d].kind == KIND_REDUCTION && !g->is_function &&
            (n == 0 || random_percent(g->r, 70))) {
            chosen[n++] = &g->dims[d];
            *points *= g->dims[d].end - g->dims[d].begin;
        }
    return n;
}

qn_val gen_reduce(generator *g, int dtype)
{
    const axis *chosen[MAX_DIMS];
    int64_t points;
    int n = choose_reduction(g, chosen, &points);
    if (n == 0 || g->is_in_reduce || g->nesting >= MAX_NEST || g->repeats * points > MAX_REPEATS)
        return gen_load(g, dtype, 1);
    qn_val dims[MAX_DIMS];
    scope s;
    enter(g, &s);
    g->is_in_reduce = true;
    g->repeats *= points;
    for (int i = 0; i < n; i++) {
        dims[i] = chosen[i]->value;
        if (g->n_axes < MAX_AXES)
            g->axes[g->n_axes++] = *chosen[i];
    }
    qn_reduce(g->b, random_reduction(g, dtype), random_below(g->r, 4), n, dims);
    pool_values(g, 1, (int[]){QN_I64}, dims);
    gen_block(g, random_below(g->r, 2));
    qn_val value = gen_value(g, dtype, 3);
    leave(g, &s);
    g->is_in_reduce = false;
    qn_val result = qn_end_reduce(g->b, value);
    gen_pool(g, result, dtype);
    return result;
}

/* ---------------------------------------------------------------- effects */

void gen_store(generator *g, int view)
{
    const test_view *v = &g->t->view[view];
    qn_val index[VIEW_RANK] = {{0}};
    if (v->traits & QN_ATOMIC && random_percent(g->r, 50)) {
        gen_own_update(g, view);
        return;
    }
    gen_indices(g, view, true, index);
    if (v->n_parts > 1 || v->dtype == QN_RECORD)
        gen_store_part(g, view, index);
    else
        qn_store(g->b, g->param[view], v->rank, index, gen_stored(g, v->dtype));
}

/* One operation for all iterations, whose old value depends on the order and is not used. */
static void gen_combine(generator *g, int view, const qn_val *index)
{
    const test_view *v = &g->t->view[view];
    (void)qn_atomic(g->b, v->combine, g->param[view], v->rank, index, gen_value(g, v->dtype, 2),
                    (qn_val){0});
}

/* Atomics of elements that are a constant apart, as of a particle and the nodes around it: the
 * first is far enough from the last of each dimension. */
static void gen_neighbours(generator *g, int view)
{
    enum { MOST_NEIGHBOURS = 9 };
    test_view *v = &g->t->view[view];
    qn_val first[VIEW_RANK] = {{0}};
    int64_t extent[VIEW_RANK], reach[VIEW_RANK] = {0};
    memcpy(extent, v->extent, sizeof extent);
    g->t->has_neighbours = true;
    for (int d = 0; d < v->rank; d++) {
        reach[d] = v->extent[d] > 2 ? random_below(g->r, 3) : random_below(g->r, (int)v->extent[d]);
        v->extent[d] -= reach[d];
    }
    gen_indices(g, view, true, first);
    memcpy(v->extent, extent, sizeof extent);
    for (int i = 2 + random_below(g->r, MOST_NEIGHBOURS - 1); i > 0; i--) {
        qn_val index[VIEW_RANK] = {{0}};
        for (int d = 0; d < v->rank; d++)
            index[d] = qn_add(g->b, qn_cast(g->b, QN_I64, first[d]),
                              qn_index(g->b, random_between(g->r, 0, reach[d])));
        gen_combine(g, view, index);
    }
}

static void gen_shared_atomic(generator *g, int view)
{
    qn_val index[VIEW_RANK] = {{0}};
    if (g->t->view[view].rank > 0 && random_percent(g->r, 60)) {
        gen_neighbours(g, view);
        return;
    }
    gen_indices(g, view, true, index);
    gen_combine(g, view, index);
}

void gen_shared(generator *g, int view)
{
    if (g->t->view[view].update)
        gen_shared_update(g, view);
    else
        gen_shared_atomic(g, view);
}

/* Any operation on an element of the iteration's own, whose old value is used. */
static void gen_own_atomic(generator *g, int view)
{
    static const uint8_t on_integer[] = {
        QN_COMBINE_SUM, QN_COMBINE_MIN, QN_COMBINE_MAX,      QN_COMBINE_AND,
        QN_COMBINE_OR,  QN_COMBINE_XOR, QN_COMBINE_EXCHANGE, QN_COMBINE_COMPARE_EXCHANGE};
    static const uint8_t on_float[] = {QN_COMBINE_SUM, QN_COMBINE_MIN, QN_COMBINE_MAX,
                                       QN_COMBINE_EXCHANGE};
    const test_view *v = &g->t->view[view];
    int combine = is_float(v->dtype)      ? on_float[random_below(g->r, 4)]
                  : v->dtype == QN_BOOL ? on_integer[3 + random_below(g->r, 4)]
                                        : on_integer[random_below(g->r, 8)];
    qn_val index[VIEW_RANK] = {{0}}, compare = {0};
    gen_indices(g, view, true, index);
    if (combine == QN_COMBINE_COMPARE_EXCHANGE)
        compare = gen_value(g, v->dtype, 1);
    qn_val value = gen_value(g, v->dtype, 2);
    qn_val old = qn_atomic(g->b, combine, g->param[view], v->rank, index, value, compare);
    gen_pool(g, old, v->dtype);
}

/* A store or an atomic through a view that is written, where that is allowed. */
static void gen_effect(generator *g)
{
    int view = random_below(g->r, g->t->n_views);
    const test_view *v = &g->t->view[view];
    if (g->is_in_reduce || g->is_function || v->role == ROLE_INPUT || v->role == ROLE_TWIN)
        return;
    g->budget--;
    if (v->role == ROLE_ATOMIC)
        gen_shared(g, view);
    else if (is_own(v) && has_plain_elements(v) && random_percent(g->r, 20))
        gen_own_atomic(g, view);
    else
        gen_store(g, view);
}

static void gen_shared_value(generator *g)
{
    int dtype = random_dtype(g->r);
    gen_pool(g, gen_value(g, dtype, 3), dtype);
}

/* An assertion: of what holds, or of what fails in few iterations, with values of any dtypes. */
static void gen_assert(generator *g)
{
    enum { MAX_SHOWN = 3 };
    int n = random_below(g->r, MAX_SHOWN + 1), types[MAX_SHOWN];
    qn_val shown[MAX_SHOWN], condition = gen_value(g, QN_BOOL, 2);
    if (random_percent(g->r, 70)) {
        qn_val mask = qn_index(g->b, 255), any = gen_value(g, QN_I64, 2);
        condition = qn_or(g->b, condition, qn_ne(g->b, qn_and(g->b, any, mask), mask));
    } else {
        condition = qn_or(g->b, condition, qn_not(g->b, condition));
    }
    for (int i = 0; i < n; i++)
        types[i] = random_dtype(g->r);
    gen_values(g, n, types, shown);
    qn_assert(g->b, condition, "generated", n, shown);
}

/* A line with values of any dtypes. */
static void gen_print(generator *g)
{
    enum { MAX_SHOWN = 3 };
    static const char *const messages[] = {"", "a", "another"};
    int n = random_below(g->r, MAX_SHOWN + 1), types[MAX_SHOWN];
    qn_val shown[MAX_SHOWN];
    for (int i = 0; i < n; i++)
        types[i] = random_dtype(g->r);
    gen_values(g, n, types, shown);
    qn_print(g->b, messages[random_below(g->r, 3)], n, shown);
}

void gen_block(generator *g, int n)
{
    for (int i = 0; i < n && g->budget > 0; i++) {
        bool may_nest = g->nesting < MAX_NEST;
        bool may_loop = may_nest && g->repeats * LOOP_TRIPS <= MAX_REPEATS;
        int kind = random_below(g->r, 100), types[MAX_RESULTS];
        qn_val results[MAX_RESULTS];
        if (random_percent(g->r, 10))
            gen_assert(g);
        if (random_percent(g->r, 5))
            gen_print(g);
        else if (kind < 35)
            gen_effect(g);
        else if (kind < 55 || !may_nest)
            gen_shared_value(g);
        else if (kind < 80 || !may_loop)
            gen_branches(g, choose_types(g, types), types, results);
        else if (kind < 86)
            (void)gen_row(g);
        else if (kind < 91)
            gen_for(g);
        else
            gen_while(g);
    }
}
