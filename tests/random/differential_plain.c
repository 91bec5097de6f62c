/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_plain.c: plain kernels, as most programs have them: views at indices that are
 * dimensions of the domain, or stand a little beside them; little arithmetic; reduces at the top.
 * Such kernels leave plans a choice (register and cache tiles, copies, strips, transpositions,
 * teams of a GPU), which random statements do rarely.
 */
#include "differential.h"

#include <stdio.h>

enum {
    MOST_ALIKE = 16, /* above: a row for each iteration, which a loop of the body walks */
    MOST_ELEMENTS = 400000
};

/* ---------------------------------------------------------------- views */

static int64_t trips(const test_case *t, int d)
{
    return t->dim[d].end - t->dim[d].begin;
}

/* Dimensions of the domain in the order of a view's, declared or random: so many percent of them,
 * or all but `without`. */
static int choose_dims(test_case *t, const test_view *v, int percent, int without, int *order)
{
    randoms *r = &t->random;
    bool is_declared = random_percent(r, t->rows                                           ? 100
                                         : t->has_channels || t->has_members || t->n_alike ? 90
                                                                                           : 50);
    const bool has_last_first =
        v->role == ROLE_INPUT && (t->rows == ROWS_ACROSS || (t->is_tall && random_percent(r, 60)));
    int n = 0;
    for (int d = 0; d < t->n_dims && n < VIEW_RANK; d++) {
        bool may = t->dim[d].kind == KIND_PARALLEL ||
                   (t->dim[d].kind == KIND_REDUCTION && v->role == ROLE_INPUT);
        if (!may || d == without || !random_percent(r, percent))
            continue;
        int at = has_last_first ? 0 : is_declared ? n : random_below(r, n + 1);
        for (int i = n++; i > at; i--)
            order[i] = order[i - 1];
        order[at] = d;
    }
    return n;
}

static void choose_plain_output(test_case *t, test_view *v)
{
    randoms *r = &t->random;
    int order[VIEW_RANK], n = choose_dims(t, v, 100, -1, order);
    for (int i = 0; i < n; i++) {
        int64_t slack = random_percent(r, 10) ? random_between(r, 1, 3) : 0;
        v->source[v->rank] = order[i];
        v->along[v->rank] = NO_SOURCE;
        v->is_mirrored[v->rank] = slack == 0 && random_percent(r, 5);
        v->shift[v->rank] = random_between(r, 0, slack);
        v->extent[v->rank] = trips(t, order[i]) + slack;
        v->extent[v->rank] -= t->stores_escape && v->extent[v->rank] > 1 && random_percent(r, 30);
        v->rank++;
    }
    if (t->n_alike && v->rank < VIEW_RANK) {
        v->source[v->rank] = v->along[v->rank] = NO_SOURCE;
        v->extent[v->rank++] = t->n_alike;
    }
}

/* The parallel dimension that a factor of a product does not have: those of neighbouring views
 * differ. */
static int factor_without(const test_case *t, int view)
{
    int parallel[MAX_DIMS], n = 0;
    for (int d = 0; d < t->n_dims; d++)
        if (t->dim[d].kind == KIND_PARALLEL && d != t->longest)
            parallel[n++] = d;
    return parallel[view % n];
}

static void choose_plain_input(test_case *t, test_view *v)
{
    randoms *r = &t->random;
    bool is_factor = t->is_contraction && random_percent(r, 90);
    int without = is_factor ? factor_without(t, v->shares) : -1, order[VIEW_RANK];
    int n = choose_dims(t, v,
                        is_factor || t->has_channels ? 100
                        : t->is_shared               ? 97
                        : t->rows                    ? 100
                        : t->has_windows             ? 95
                                                     : 78,
                        without, order);
    int64_t size = 1;
    bool has_channels = (t->has_channels || t->n_alike) && v->rank + n < VIEW_RANK &&
                        random_percent(r, 70); /* else a part of the elements of rows */
    for (int i = 0; i < n; i++) {
        int64_t factor = random_percent(r, t->has_channels && !has_channels ? 60 : 5)
                             ? random_between(r, 2, 4)
                             : 1,
                last = trips(t, order[i]) - 1;
        int64_t slack = t->has_windows ? 2 : random_percent(r, 8) ? random_between(r, 1, 2) : 0;
        int64_t extent = (last < 0 ? 0 : last * factor + 1) + slack;
        if (size * extent > MOST_ELEMENTS)
            continue;
        v->source[v->rank] = NO_SOURCE;
        v->along[v->rank] = order[i];
        v->factor[v->rank] = factor;
        v->extent[v->rank++] = extent - (t->loads_escape && extent > 1 && random_percent(r, 20));
        size *= extent > 0 ? extent : 1;
    }
    if (has_channels) {
        v->source[v->rank] = v->along[v->rank] = NO_SOURCE;
        v->extent[v->rank++] = t->n_alike ? t->n_alike : random_between(r, 2, 4);
    }
}

static void choose_plain_view(test_case *t, int role)
{
    static const char *const names[] = {"in", "out"};
    test_view *v = &t->view[t->n_views];
    v->role = role;
    v->shares = t->n_views;
    const bool is_alike = t->has_channels || t->n_alike || t->is_shared || t->rows;
    v->dtype = random_percent(&t->random, is_alike ? 90 : 75) ? t->dtype : random_dtype(&t->random);
    snprintf(v->name, sizeof v->name, "%s%d", names[role], t->n_views++);
    if (role == ROLE_INPUT)
        choose_plain_input(t, v);
    else
        choose_plain_output(t, v);
    if (random_percent(&t->random, is_alike ? 5 : 20))
        choose_elements(t, v);
    else
        add_part(v, v->dtype, 0);
}

/* An input that registers hold. */
static void choose_table(test_case *t, randoms *r)
{
    static const uint8_t dtypes[] = {QN_F32, QN_F32, QN_I32, QN_F64};
    test_view *v = &t->view[t->n_views];
    v->role = ROLE_INPUT;
    v->shares = t->n_views;
    v->dtype = dtypes[random_below(r, 4)];
    v->rank = 1;
    v->source[0] = v->along[0] = NO_SOURCE;
    v->extent[0] = (2 << random_below(r, 4)) + random_below(r, 3);
    snprintf(v->name, sizeof v->name, "table%d", t->n_views++);
    add_part(v, v->dtype, 0);
    t->table = t->n_views;
}

void choose_plain_views(test_case *t)
{
    randoms *r = &t->random;
    static const uint8_t often[] = {QN_F32, QN_F64, QN_I32, QN_I64};
    static const uint8_t small[] = {QN_U8, QN_U16, QN_I8, QN_I16, QN_F16};
    t->dtype = t->has_channels         ? small[random_below(r, 5)]
               : random_percent(r, 50) ? often[random_below(r, 4)]
                                       : random_dtype(r);
    randoms digits = {~r->state};
    t->has_windows = !t->is_contraction && random_percent(r, t->has_channels ? 20 : 65);
    t->has_digits = !t->has_channels && random_percent(&digits, 15);
    t->has_bends = random_percent(&digits, 25);
    t->has_guards = random_percent(&digits, t->has_channels ? 50 : 25);
    if (t->has_guards && t->has_channels && random_percent(&digits, 60)) /* records of words */
        t->dtype = often[random_below(&digits, 4)];
    t->has_far_rows = t->has_far_rows || (t->has_windows && random_percent(r, 40));
    randoms alike = {r->state ^ 0xa11ce};
    if (t->is_shared || t->rows) {
        t->has_windows = t->rows == ROWS_BESIDE;
        t->has_digits = t->has_bends = t->has_guards = false;
        t->has_far_rows = t->has_windows && random_percent(&alike, 50);
        t->dtype = often[random_below(&alike, 4)];
    } else if ((t->is_batch || t->is_tall) && random_percent(&alike, 70)) {
        t->has_digits = t->has_bends = t->has_guards = false;
    } else if (t->n_dims > 0 && t->iterations == t->points && t->points <= FEW_POINTS &&
               random_percent(&alike, 40))
        t->n_alike = (int)(random_percent(&alike, 35)   ? random_between(&alike, 17, 70)
                           : random_percent(&alike, 70) ? random_between(&alike, 2, 5)
                                                        : random_between(&alike, 2, MOST_ALIKE));
    if (t->n_alike) {
        t->has_guards = t->has_guards && random_percent(&alike, 20);
        t->has_bends = t->has_bends && random_percent(&alike, 20);
    }
    for (int i = random_percent(r, 15); i >= 0; i--)
        choose_plain_view(t, ROLE_OUTPUT);
    for (int i = random_below(r, 3) + t->is_contraction; i >= 0 && t->n_views < MAX_VIEWS; i--)
        choose_plain_view(t, ROLE_INPUT);
    randoms tables = {r->state ^ 0x7ab1e};
    if (t->n_views < MAX_VIEWS && random_percent(&tables, t->is_shared || t->rows ? 5 : 30))
        choose_table(t, &tables);
}

/* ---------------------------------------------------------------- body */

/* Whether the dimensions that index a view may be used here: those of a reduce within it only. */
static bool is_in_scope(const generator *g, const test_view *v, bool is_in_reduce)
{
    for (int k = 0; k < v->rank; k++)
        if (v->along[k] != NO_SOURCE && g->t->dim[v->along[k]].kind == KIND_REDUCTION &&
            !is_in_reduce)
            return false;
    return v->role == ROLE_INPUT;
}

/* An index inside dimension k of a view, bent: its quotient or remainder by a small number, or what
 * ends at a bound, counted from the lowest index. That is inside, too. */
static qn_val gen_bent(generator *g, int view, int k, qn_val index)
{
    static const uint8_t ops[] = {QN_OP_div, QN_OP_rem, QN_OP_min, QN_OP_max};
    int op = random_below(g->r, 4);
    int64_t extent = g->t->view[view].extent[k],
            bound = extent > 0 ? random_between(g->r, 0, extent - 1) : 0;
    qn_val low = gen_lower(g, view, k, 0), at = qn_sub(g->b, index, low),
           by = qn_index(g->b, op < 2 ? random_between(g->r, 1, 9) : bound);
    return qn_add(g->b, low, qn_op(g->b, ops[op], 2, (qn_val[]){at, by}));
}

static qn_val gen_element(generator *g, int view, const qn_val *index, int dtype)
{
    const test_view *v = &g->t->view[view];
    int found = v->dtype;
    qn_val x = has_plain_elements(v) || v->unit ? qn_load(g->b, g->param[view], v->rank, index)
                                                : gen_load_part(g, view, index, &found);
    return gen_convert(g, x, found, dtype);
}

/* A few elements beside an index, or all channels there, where a condition says that the view has
 * them; else 0. */
static qn_val gen_guarded(generator *g, int view, qn_val *index, int dtype)
{
    const test_view *v = &g->t->view[view];
    const int k = v->rank ? random_below(g->r, v->rank) : 0;
    if (v->rank == 0 || v->along[k] == NO_SOURCE)
        return gen_element(g, view, index, dtype);
    const int64_t far = random_between(g->r, -3, 3);
    qn_val low = gen_lower(g, view, k, 0), extent = qn_extent(g->b, g->param[view], k),
           at = qn_add(g->b, index[k], qn_index(g->b, far)), of = at,
           bound[2] = {low, qn_add(g->b, low, extent)}, holds[2], more;
    if (random_percent(g->r, 50)) { /* of the index that is moved, not of the one moved to */
        of = index[k];
        for (int n = 0; n < 2; n++)
            bound[n] = qn_sub(g->b, bound[n], qn_index(g->b, far));
    }
    index[k] = at;
    holds[0] = qn_op(g->b, QN_OP_ge, 2, (qn_val[]){of, bound[0]});
    holds[1] = qn_op(g->b, QN_OP_lt, 2, (qn_val[]){of, bound[1]});
    qn_if(g->b, random_percent(g->r, 40) ? qn_and(g->b, holds[0], holds[1]) : holds[far > 0]);
    qn_val x = gen_element(g, view, index, dtype);
    for (int d = 0; d < v->rank; d++)
        for (int64_t c = 0; v->along[d] == NO_SOURCE && c < v->extent[d] && c < 4; c++) {
            index[d] = gen_lower(g, view, d, c);
            more = gen_element(g, view, index, dtype);
            x = dtype == QN_BOOL ? qn_xor(g->b, x, more) : qn_add(g->b, x, more);
        }
    qn_else(g->b, 1, &x);
    qn_val none = qn_const_bits(g->b, dtype, 0);
    qn_end_if(g->b, 1, &none, &x);
    return x;
}

/* A load at the index that a dimension of the domain gives, or a little beside it where there is
 * room. */
static qn_val gen_beside(generator *g, int view, int dtype)
{
    const test_view *v = &g->t->view[view];
    qn_val index[VIEW_RANK] = {{0}};
    for (int k = 0; k < v->rank; k++) {
        if (v->along[k] == NO_SOURCE) { /* a channel, often the last */
            int64_t last = v->extent[k] - 1,
                    at = random_percent(g->r, 50) ? last : random_between(g->r, 0, last);
            if (g->t->n_alike) /* in order, or in another one */
                at += g->member * (random_percent(g->r, 60) ? 1 : random_between(g->r, 0, last));
            index[k] = gen_lower(g, view, k, at % (last + 1));
            continue;
        }
        const axis *a = &g->dims[v->along[k]];
        int64_t room = v->extent[k] - (a->end - a->begin - 1) * v->factor[k] - 1;
        int64_t shift = room > 0 && a->end > a->begin ? random_between(g->r, 0, room) : 0;
        if (g->t->loads_escape && random_percent(g->r, 40)) /* beyond either end, or both */
            shift = random_between(g->r, -2, room + 2);
        qn_val scaled =
            v->factor[k] == 1 ? a->value : qn_mul(g->b, a->value, qn_index(g->b, v->factor[k]));
        index[k] = qn_add(g->b, scaled, gen_lower(g, view, k, shift - a->begin * v->factor[k]));
        if (g->t->has_bends && random_percent(g->r, 50))
            index[k] = gen_bent(g, view, k, index[k]);
    }
    return g->t->has_guards && random_percent(g->r, 40) ? gen_guarded(g, view, index, dtype)
                                                        : gen_element(g, view, index, dtype);
}

static qn_val gen_plain_leaf(generator *g, int dtype, bool is_in_reduce);

/* An element of the table, at the lowest bits of a value. */
static qn_val gen_from_table(generator *g, int dtype, bool is_in_reduce)
{
    int view = g->t->table - 1;
    const test_view *v = &g->t->view[view];
    int64_t most = 2;
    int of = random_percent(g->r, 50) ? QN_U8 : QN_I64;
    while (2 * most <= v->extent[0])
        most *= 2;
    qn_val bits = gen_convert(g, gen_plain_leaf(g, of, is_in_reduce), of, QN_I64),
           low = qn_and(g->b, bits, qn_index(g->b, most - 1));
    qn_val index = qn_add(g->b, low, gen_lower(g, view, 0, 0));
    return gen_convert(g, qn_load(g->b, g->param[view], 1, &index), v->dtype, dtype);
}

/* What a plain kernel loads: of an input, or sometimes a scalar, an index, or an iteration's own
 * element of an output. */
static qn_val gen_plain_leaf(generator *g, int dtype, bool is_in_reduce)
{
    if (g->t->table && g->budget-- > 0 && random_percent(g->r, 40))
        return gen_from_table(g, dtype, is_in_reduce);
    for (int tries = 0; tries < 5 && random_percent(g->r, 93); tries++) {
        int view = random_below(g->r, g->t->n_views);
        if (is_in_scope(g, &g->t->view[view], is_in_reduce))
            return gen_beside(g, view, dtype);
    }
    return random_percent(g->r, 20) ? gen_load(g, dtype, 1) : gen_value(g, dtype, 0);
}

static qn_val gen_joined(generator *g, int dtype, qn_val a, qn_val b)
{
    static const uint8_t ops[] = {QN_OP_add, QN_OP_add, QN_OP_mul, QN_OP_mul,
                                  QN_OP_mul, QN_OP_sub, QN_OP_max};
    if (dtype == QN_BOOL)
        return qn_xor(g->b, a, b);
    return qn_op(g->b, ops[random_below(g->r, sizeof ops)], 2, (qn_val[]){a, b});
}

/* A few loads joined: a product of two in most reduces. */
static qn_val gen_plain_value(generator *g, int dtype, bool is_in_reduce)
{
    int n = is_in_reduce ? 1 + random_percent(g->r, 70) + random_percent(g->r, 10)
                         : 1 + random_below(g->r, g->t->rows == ROWS_ACROSS ? 2 : 3);
    int view = random_below(g->r, g->t->n_views);
    qn_val x = gen_plain_leaf(g, dtype, is_in_reduce);
    if (g->t->has_windows &&
        is_in_scope(g, &g->t->view[view], is_in_reduce)) /* the points of a stencil */
        for (int i = 3 + random_below(g->r, 6); i > 0; i--)
            x = gen_joined(g, dtype, x, gen_beside(g, view, dtype));
    for (int i = 1; i < n; i++)
        x = gen_joined(g, dtype, x, gen_plain_leaf(g, dtype, is_in_reduce));
    if (random_percent(g->r, 15))
        x = gen_applied(g, dtype, x);
    return x;
}

/* A product of two inputs, maybe with a third. */
static qn_val gen_product(generator *g, int dtype)
{
    qn_val x = {0};
    int n = 0;
    for (int view = 0; view < g->t->n_views && n < (random_percent(g->r, 90) ? 2 : 3); view++)
        if (g->t->view[view].role == ROLE_INPUT) {
            qn_val y = gen_beside(g, view, dtype);
            x = n++ == 0 ? y : dtype == QN_BOOL ? qn_and(g->b, x, y) : qn_mul(g->b, x, y);
        }
    return x;
}

static int random_order(generator *g)
{
    return random_percent(g->r, 50) ? QN_INDEXED : random_below(g->r, 4);
}

/* Over all reduction dimensions; what is added of a point is joined with a sum before, if any. */
static qn_val gen_plain_reduce(generator *g, int dtype, int order, const pooled *before)
{
    qn_val dims[MAX_DIMS];
    int n = 0, combine = random_reduction(g, dtype);
    for (int d = 0; d < g->t->n_dims; d++)
        if (g->t->dim[d].kind == KIND_REDUCTION)
            dims[n++] = g->dims[d].value;
    if (dtype != QN_BOOL && random_percent(g->r, 60))
        combine = QN_COMBINE_SUM;
    qn_reduce(g->b, combine, order, n, dims);
    g->is_in_reduce = true;
    int n_pool = g->n_pool;
    qn_val value = g->t->is_contraction && random_percent(g->r, 80)
                       ? gen_product(g, dtype)
                       : gen_plain_value(g, dtype, true);
    g->n_pool = n_pool;
    g->is_in_reduce = false;
    if (before)
        value = gen_joined(g, dtype, value, gen_convert(g, before->value, before->dtype, dtype));
    return qn_end_reduce(g->b, value);
}

/* One to three reduces. Some draw of a point what the one before them draws, as sums of what a row
 * is above its least element do. */
static void gen_plain_reduces(generator *g, int order)
{
    const int n_before = g->n_pool;
    randoms alike = {g->r->state ^ 0x5a3e}, drawn = *g->r;
    pooled sum[3];
    int budget = g->budget, n = 0;
    for (int i = g->t->is_shared ? 1 + random_below(&alike, 2)
                                 : random_percent(g->r, 20) + random_percent(g->r, 20);
         i >= 0; i--) {
        const bool is_again = n > 0 && random_percent(&alike, g->t->is_shared ? 85 : 40);
        if (is_again) {
            *g->r = drawn;
            g->budget = budget;
            g->n_pool = n_before;
        }
        drawn = *g->r;
        budget = g->budget;
        int dtype = random_percent(g->r, 80) ? g->t->dtype : random_dtype(g->r),
            own = g->t->is_shared || random_percent(g->r, 75) ? order : random_order(g);
        sum[n] = (pooled){gen_plain_reduce(g, dtype, own, is_again ? &sum[n - 1] : NULL), dtype};
        g->n_pool = n_before; /* what stood behind may be of the reduce */
        n++;
        for (int m = 0; m < n; m++)
            gen_pool(g, sum[m].value, sum[m].dtype);
    }
}

/* Stores all members of an iteration's element but one, maybe: each draws what the first one draws,
 * but for the members that are loaded. */
static void gen_alike(generator *g, int view)
{
    const test_view *v = &g->t->view[view];
    const int n = g->t->n_alike, left_out = random_below(g->r, 3 * n);
    qn_val index[VIEW_RANK] = {{0}};
    gen_indices(g, view, true, index);
    const randoms drawn = *g->r;
    const int budget = g->budget, n_pool = g->n_pool;
    for (g->member = 0; g->member < n; g->member++) {
        *g->r = drawn;
        g->budget = budget;
        g->n_pool = n_pool;
        qn_val x = gen_plain_value(g, v->dtype, false);
        index[v->rank - 1] = gen_lower(g, view, v->rank - 1, g->member);
        if (g->member != left_out)
            qn_store(g->b, g->param[view], v->rank, index, x);
    }
    g->member = 0;
    g->n_pool = n_pool;
}

void gen_plain_body(generator *g)
{
    test_case *t = g->t;
    bool has_reduction = t->n_dims > 0 && t->dim[t->n_dims - 1].kind == KIND_REDUCTION;
    if (random_percent(g->r, t->is_shared || t->rows ? 1 : t->has_channels ? 4 : 12))
        gen_block(g, 1);
    const int order = t->is_shared ? random_below(g->r, 4) : random_order(g), n_before = g->n_pool;
    if (has_reduction)
        gen_plain_reduces(g, order);
    const int n_sums = g->n_pool - n_before;
    for (int i = 0; i < t->n_views; i++) {
        const test_view *v = &t->view[i];
        qn_val index[VIEW_RANK] = {{0}};
        if (v->role == ROLE_ATOMIC)
            gen_shared(g, i);
        if (v->role != ROLE_OUTPUT)
            continue;
        if (v->n_parts > 1 || v->traits & QN_ATOMIC || v->dtype == QN_RECORD ||
            random_percent(g->r, t->is_shared || t->rows ? 2 : 10)) {
            gen_store(g, i);
            continue;
        }
        if (t->n_alike && v->rank > 0 && v->source[v->rank - 1] == NO_SOURCE && !has_reduction) {
            if (t->n_alike <= MOST_ALIKE && !random_percent(g->r, 10))
                gen_alike(g, i);
            else if (!gen_row(g)) /* a kernel that stores nothing is none */
                gen_store(g, i);
            continue;
        }
        const pooled *sum = &g->pool[g->n_pool - 1];
        qn_val x = has_reduction ? gen_convert(g, sum->value, sum->dtype, v->dtype)
                                 : gen_plain_value(g, v->dtype, false);
        for (int n = 2; n <= n_sums; n++) /* a sum that nothing uses is none */
            x = gen_joined(g, v->dtype, x,
                           gen_convert(g, g->pool[g->n_pool - n].value,
                                       g->pool[g->n_pool - n].dtype, v->dtype));
        if (random_percent(g->r, has_reduction ? 40 : 10))
            x = gen_joined(g, v->dtype, x,
                           has_reduction ? gen_plain_value(g, v->dtype, false)
                                         : gen_value(g, v->dtype, 2));
        gen_indices(g, i, true, index);
        qn_store(g->b, g->param[i], v->rank, index, x);
    }
}
