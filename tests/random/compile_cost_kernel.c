/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compile_cost_kernel.c: kernels that are large in one way each: in their number of ops of one
 * kind, accesses of one view, regions. Few iterations, as nothing of it is run.
 */
#include "tests/random/compile_cost.h"

#include <stdio.h>
#include <string.h>

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
    const char *name;
    int op, rule, arity, classes;
} op_row;
static const op_row op_rows[] = {
#define QN_OP(ID, name, rule, arity, classes, ...)                                                 \
    {#name, QN_OP_##name, RULE_##rule, arity, CLASSES_##classes},
#include "quern/ops.def"
#undef QN_OP
};
enum { N_OPS = sizeof op_rows / sizeof *op_rows };

static const uint8_t class_of[QN_N_DTYPES] = {
#define QN_DTYPE(NAME, number, text, bytes, cls, ...) [number] = CLASS_##cls,
#include "quern/dtypes.def"
#undef QN_DTYPE
};

const char *cost_family_name(int family)
{
    static const char *const names[] = {
#define QN_X(name, text) text,
        COST_FAMILY_LIST(QN_X)
#undef QN_X
    };
    return names[family];
}

/* ---------------------------------------------------------------- arguments */

static qn_status random_digits(randoms *r, int rank, int64_t *extents, qn_layout *out,
                               qn_error *err)
{
    qn_digit digit[QN_MAX_DIGITS];
    int n_digits[MOST_COST_RANK], n = 0;
    int64_t stride = 1;
    for (int d = 0; d < rank; d++) {
        n_digits[d] = 1 + random_below(r, rank > 2 ? 4 : 9);
        extents[d] = 1;
        for (int i = 0; i < n_digits[d]; i++) {
            int64_t extent = stride < 4096 ? random_between(r, 2, 3) : 1;
            digit[n] = (qn_digit){.extent = extent, .stride = stride + (n % 3 == 0)};
            n++;
            extents[d] *= extent;
            stride = (stride + 1) * extent;
        }
    }
    return qn_layout_custom(rank, NULL, n_digits, digit, out, err);
}

static qn_status random_cost_layout(randoms *r, int rank, int64_t *extents, char *what,
                                    qn_layout *out, qn_error *err)
{
    static const char *const names[] = {"right", "left", "strided", "tiled", "morton", "digits"};
    int64_t strides[MOST_COST_RANK], tile[MOST_COST_RANK], stride = 2 + random_below(r, 3);
    int order[MOST_COST_RANK], kind = rank == 0 ? 0 : random_below(r, 6);
    for (int d = rank - 1; d >= 0; d--) {
        order[d] = d;
        extents[d] = rank > 5 ? 4 : rank > 2 ? 8 : random_between(r, 30, 200);
        tile[d] = rank > 5 ? 2 : 4;
        strides[d] = stride;
        stride *= extents[d] + 1;
    }
    snprintf(what + strlen(what), 16, " %s", names[kind]);
    switch (kind) {
    case 0:
        return qn_layout_right(rank, extents, out, err);
    case 1:
        return qn_layout_left(rank, extents, out, err);
    case 2:
        return qn_layout_strided(rank, extents, strides, out, err);
    case 3:
        return qn_layout_tiled(rank, extents, tile, order, order, out, err);
    case 4:
        for (int d = 0; d < rank; d++)
            extents[d] = rank > 5 ? 4 : rank > 2 ? 8 : 64;
        return qn_layout_morton(rank, extents, order, out, err);
    default:
        return random_digits(r, rank, extents, out, err);
    }
}

/** Whether the written view is the one that is accessed many times. */
static bool writes_much(const cost_case *c)
{
    return c->family == COST_STORES || c->family == COST_ATOMICS || c->family == COST_UPDATES;
}

/** Views: the written one is dense along the domain where it is not the one that is accessed many
 * times. */
static bool make_arguments(maker *m, void *memory, qn_error *err)
{
    cost_case *c = m->c;
    int64_t flat[1] = {1000};
    if (random_cost_layout(m->r, m->rank, m->extent, c->what, &c->layout[1], err) ||
        qn_layout_right(m->n_dims, m->extent, &c->layout[0], err) ||
        qn_layout_right(1, flat, &c->layout[2], err))
        return false;
    if (writes_much(c)) {
        qn_layout_release(&c->layout[0]);
        c->layout[0] = qn_layout_copy(&c->layout[1]);
    }
    int dtypes[3] = {m->dtype, m->dtype, QN_I32};
    char *at = memory;
    for (int i = 0; i < 3; i++) {
        at += COST_MEMORY / 4;
        if (qn_view_wrap("v", at, dtypes[i], &c->layout[i], 0, &c->view[i], err))
            return false;
        c->arg[c->n_args++] = qn_arg_view(&c->view[i]);
    }
    return true;
}

/* ---------------------------------------------------------------- values */

qn_val cost_pick(maker *m)
{
    return m->value[random_below(m->r, m->n_values)];
}

void cost_keep(maker *m, qn_val v)
{
    if (m->n_values < MOST_VALUES)
        m->value[m->n_values++] = v;
    else
        m->value[random_below(m->r, MOST_VALUES)] = v;
}

qn_val cost_convert(maker *m, qn_val v, int to)
{
    int from = (int)qn_type_of(m->b, v);
    return from == to                        ? v
           : to == QN_BOOL && is_float(from) ? qn_ne(m->b, v, qn_const_float(m->b, from, 0))
                                             : qn_cast(m->b, to, v);
}

/* Affine, brought into the view by remainders, loaded, or anything. */
void cost_indices(maker *m, qn_val *index)
{
    for (int d = 0; d < m->rank; d++) {
        qn_val v = m->n_dims ? m->at[d % m->n_dims] : qn_index(m->b, 0);
        int64_t shift = random_between(m->r, 0, 1000);
        if (m->style == 1)
            v = qn_rem(m->b,
                       qn_add(m->b, qn_mul(m->b, v, qn_index(m->b, shift)), qn_index(m->b, d)),
                       qn_index(m->b, m->extent[d]));
        else if (m->style == 2)
            v = qn_load(m->b, m->view[2], 1, (qn_val[]){qn_add(m->b, v, qn_index(m->b, shift))});
        else if (m->style == 3)
            v = cost_convert(m, cost_pick(m), QN_I64);
        else
            v = qn_add(m->b, v, qn_index(m->b, shift % 7 - 3));
        index[d] = v;
    }
}

static qn_val make_op(maker *m, const op_row *row, int dtype)
{
    qn_val arg[3];
    for (int i = 0; i < row->arity; i++)
        arg[i] =
            cost_convert(m, cost_pick(m), row->rule == RULE_SELECT && i == 0 ? QN_BOOL : dtype);
    return qn_op(m->b, row->op, row->arity, arg);
}

static const op_row *random_op(maker *m, int dtype)
{
    for (;;) {
        const op_row *row = &op_rows[random_below(m->r, N_OPS)];
        if (class_of[dtype] & row->classes)
            return row;
    }
}

qn_val cost_op(maker *m, int dtype)
{
    return make_op(m, random_op(m, dtype), dtype);
}

/* ---------------------------------------------------------------- families */

static bool is_full(const maker *m)
{
    return qn_builder_status(m->b, NULL) != QN_OK;
}

static void make_ops(maker *m)
{
    const op_row *row = random_op(m, m->dtype);
    bool is_chain = random_percent(m->r, 50);
    snprintf(m->c->what + strlen(m->c->what), 40, " op %s%s", row->name, is_chain ? ", chain" : "");
    for (int i = 0; i < m->n && !is_full(m); i++) {
        qn_val v = cost_convert(m, make_op(m, row, m->dtype), m->dtype);
        if (is_chain)
            m->n_values = m->n_values > 2 ? 2 : m->n_values;
        cost_keep(m, v);
    }
}

static void make_mixed(maker *m)
{
    for (int i = 0; i < m->n && !is_full(m); i++) {
        int dtype = random_dtype(m->r);
        cost_keep(m, random_percent(m->r, 15) ? cost_convert(m, cost_pick(m), dtype)
                                              : cost_op(m, dtype));
    }
}

static void make_accesses(maker *m)
{
    static const uint8_t combines[] = {QN_COMBINE_SUM, QN_COMBINE_MIN, QN_COMBINE_MAX,
                                       QN_COMBINE_EXCHANGE, QN_COMBINE_COMPARE_EXCHANGE};
    bool sums = random_percent(m->r, 50);
    for (int i = 0; i < m->n && !is_full(m); i++) {
        qn_val index[MOST_COST_RANK] = {{0}}, v;
        cost_indices(m, index);
        if (m->c->family == COST_LOADS) {
            v = qn_load(m->b, m->view[1], m->rank, index);
            if (sums && m->dtype != QN_BOOL) {
                m->value[0] = qn_add(m->b, m->value[0], v);
                m->n_values = 1;
            } else {
                cost_keep(m, v);
            }
        } else if (m->c->family == COST_STORES) {
            qn_store(m->b, m->view[0], m->rank, index, cost_pick(m));
        } else {
            int combine = m->dtype == QN_BOOL
                              ? QN_COMBINE_EXCHANGE
                              : combines[random_below(m->r, is_float(m->dtype) ? 4 : 5)];
            qn_val compare = combine == QN_COMBINE_COMPARE_EXCHANGE ? cost_pick(m) : (qn_val){0};
            v = qn_atomic(m->b, combine, m->view[0], m->rank, index, cost_pick(m), compare);
            if (random_percent(m->r, 30))
                cost_keep(m, v);
        }
    }
}

static void make_region(maker *m, int depth, int n_results);

static void make_inside(maker *m, int depth)
{
    for (int i = random_below(m->r, 4); i > 0; i--)
        cost_keep(m, cost_op(m, m->dtype));
    if (depth > 0)
        make_region(m, depth - 1, random_below(m->r, 3));
}

static void pick_values(maker *m, int n, qn_val *v)
{
    for (int i = 0; i < n; i++)
        v[i] = cost_convert(m, cost_pick(m), m->dtype);
}

/** One region with others in it. What is made in it is forgotten behind it. */
static void make_region(maker *m, int depth, int n_results)
{
    qn_val init[QN_MAX_CARRIED] = {{0}}, next[QN_MAX_CARRIED] = {{0}},
           carried[QN_MAX_CARRIED] = {{0}}, end[QN_MAX_CARRIED] = {{0}};
    qn_val kept[MOST_VALUES];
    int n_kept = m->n_values, n = n_results;
    memcpy(kept, m->value, sizeof kept);
    pick_values(m, n, init);
    int kind = random_below(m->r, 4);
    if (kind == 0) {
        qn_if(m->b, cost_convert(m, cost_pick(m), QN_BOOL));
        make_inside(m, depth);
        pick_values(m, n, next);
        m->n_values = n_kept;
        memcpy(m->value, kept, sizeof kept);
        qn_else(m->b, n, next);
        pick_values(m, n, next);
        qn_end_if(m->b, n, next, end);
    } else if (kind == 1) {
        qn_for(m->b, qn_index(m->b, 0), cost_convert(m, cost_pick(m), QN_I64), 1, n, init, carried);
        for (int i = 0; i < n; i++)
            cost_keep(m, carried[i]);
        make_inside(m, depth);
        pick_values(m, n, next);
        qn_end_for(m->b, n, next, end);
    } else if (kind == 2) {
        qn_while(m->b, qn_index(m->b, 1000), n, init, carried);
        for (int i = 0; i < n; i++)
            cost_keep(m, carried[i]);
        qn_val condition = cost_convert(m, cost_pick(m), QN_BOOL);
        qn_do(m->b, condition);
        make_inside(m, depth);
        pick_values(m, n, next);
        qn_end_while(m->b, n, next, end);
    } else {
        bool is_bool = m->dtype == QN_BOOL;
        qn_reduce(m->b,
                  is_bool                    ? QN_COMBINE_OR
                  : random_percent(m->r, 50) ? QN_COMBINE_SUM
                                             : QN_COMBINE_MAX,
                  random_below(m->r, 4), 1, &m->point);
        qn_val index[MOST_COST_RANK];
        qn_val before = m->at[0];
        m->at[0] = m->point;
        cost_indices(m, index);
        m->at[0] = before;
        qn_val v = qn_load(m->b, m->view[1], m->rank, index);
        v = is_bool ? qn_xor(m->b, v, cost_pick(m)) : qn_mul(m->b, v, cost_pick(m));
        m->n_values = n_kept;
        memcpy(m->value, kept, sizeof kept);
        cost_keep(m, qn_end_reduce(m->b, v));
        return;
    }
    m->n_values = n_kept;
    memcpy(m->value, kept, sizeof kept);
    for (int i = 0; i < n; i++)
        cost_keep(m, end[i]);
}

static void make_regions(maker *m)
{
    int most = m->n < 490 ? m->n : 490,
        depth = 1 + random_below(m->r, random_percent(m->r, 30) ? 60 : 4);
    for (int i = 0; i < most / depth && !is_full(m); i++)
        make_region(m, depth - 1,
                    random_percent(m->r, 10) ? QN_MAX_CARRIED : random_below(m->r, 3));
}

static void make_body(maker *m)
{
    switch (m->c->family) {
    case COST_OPS:
        make_ops(m);
        break;
    case COST_MIXED:
        make_mixed(m);
        break;
    case COST_REGIONS:
        make_regions(m);
        break;
    case COST_UPDATES:
        cost_updates(m);
        break;
    case COST_MATH:
        cost_math(m);
        break;
    case COST_CALLS:
        cost_calls(m);
        break;
    case COST_LOOKUPS:
        cost_lookups(m);
        break;
    default:
        make_accesses(m);
    }
}

/** All that is alive becomes one value, so that nothing of it is dead. */
static void make_end(maker *m)
{
    qn_val sum = cost_convert(m, m->value[0], m->dtype);
    for (int i = 1; i < m->n_values; i++) {
        qn_val v = cost_convert(m, m->value[i], m->dtype);
        sum = m->dtype == QN_BOOL ? qn_xor(m->b, sum, v) : qn_add(m->b, sum, v);
    }
    qn_val index[MOST_COST_RANK] = {{0}};
    for (int d = 0; d < m->rank; d++)
        index[d] = d < m->n_dims ? m->dim[d] : qn_index(m->b, 0);
    bool is_large = writes_much(m->c);
    qn_store(m->b, m->view[0], is_large ? m->rank : m->n_dims, index, sum);
}

static bool build(maker *m, qn_error *err)
{
    bool is_large = writes_much(m->c);
    m->b = qn_builder_new("cost", random_percent(m->r, 30) ? QN_CONTRACT : 0);
    m->view[0] = qn_view_param(m->b, "y", m->dtype, is_large ? m->rank : m->n_dims,
                               m->c->family == COST_UPDATES ? QN_ATOMIC : 0);
    m->view[1] = qn_view_param(m->b, "x", m->dtype, m->rank, 0);
    m->view[2] = qn_view_param(m->b, "index", QN_I32, 1, 0);
    qn_val scalar = qn_scalar_param(m->b, "s", m->dtype);
    for (int d = 0; d < m->n_dims; d++)
        m->at[d] = m->dim[d] = qn_parallel_over(m->b, m->view[0], d);
    m->point =
        qn_reduction(m->b, qn_index(m->b, 0), qn_index(m->b, random_percent(m->r, 50) ? 5 : 5000));
    if (m->n_dims == 0)
        m->at[0] = qn_index(m->b, 0);
    qn_val index[MOST_COST_RANK];
    for (int d = 0; d < m->rank; d++)
        index[d] = d < m->n_dims ? m->dim[d] : qn_index(m->b, 0);
    cost_keep(m, scalar);
    cost_keep(m, qn_load(m->b, m->view[1], m->rank, index));
    make_body(m);
    make_end(m);
    (void)qn_finish(m->b, &m->c->kernel, err);
    qn_builder_release(m->b);
    m->c->arg[m->c->n_args++] = qn_arg_int(m->dtype == QN_BOOL ? QN_BOOL : m->dtype, 1);
    return m->c->kernel != NULL;
}

static int random_size(randoms *r, int most)
{
    int bits = 0;
    while (1 << bits < most)
        bits++;
    int n = 1 << random_below(r, bits + 1);
    n += random_below(r, n);
    return n > most ? most : n;
}

static void choose_options(randoms *r, qn_options *o)
{
    *o = (qn_options){.bytes = sizeof *o,
                      .executor = QN_SERIAL,
                      .checks = random_percent(r, 70) ? 0 : random_below(r, 3)};
    o->specialize = random_percent(r, 50) ? QN_SPECIALIZE_EXACT : QN_SPECIALIZE_DYNAMIC;
    o->isa = random_percent(r, 50) && __builtin_cpu_supports("avx512bw") ? QN_ISA_V4 : QN_ISA_V3;
}

static bool make_random(cost_case *c, uint64_t seed, int size, qn_error *err)
{
    bool is_made = make_large_case(&c->random, seed, c->number, size, err);
    c->kernel = qn_kernel_retain(c->random.kernel);
    c->n_args = c->random.n_args;
    memcpy(c->arg, c->random.args, sizeof c->arg);
    snprintf(c->what, sizeof c->what, "budget %d", size);
    return is_made;
}

bool make_cost_case(cost_case *c, uint64_t seed, uint64_t number, int family, void *memory,
                    qn_error *err)
{
    randoms mixed = {seed}, r = {random_bits(&mixed) ^ (number * 0xd1342543de82ef95u)};
    (void)random_bits(&r);
    *c = (cost_case){.number = number,
                     .family = family >= 0 ? family : random_below(&r, N_COST_FAMILIES)};
    choose_options(&r, &c->options);
    maker m = {.c = c,
               .r = &r,
               .dtype = random_dtype(&r),
               .rank = random_below(&r, 3) ? 1 + random_below(&r, 3) : random_below(&r, 9)};
    m.n_dims = m.rank < 3 ? m.rank : 1 + random_below(&r, 3);
    m.style = random_below(&r, 4);
    m.n = random_size(&r, 9900);
    if (c->family == COST_RANDOM)
        return make_random(c, seed, random_size(&r, 9000), err);
    snprintf(c->what, sizeof c->what, "n %d %s rank %d", m.n, qn_dtype_name(m.dtype), m.rank);
    if (!make_arguments(&m, memory, err))
        return false;
    const randoms start = r;
    const size_t length = strlen(c->what);
    const int n_args = c->n_args;
    while (!build(&m, err)) { /* f16 takes several ops for one, indices some each */
        if (err->status != QN_ERR_LIMIT || m.n < 2)
            return false;
        m.n = m.n * 3 / 4;
        m.n_values = 0;
        r = start;
        c->n_args = n_args;
        c->what[length] = 0;
        *err = (qn_error){0};
    }
    return true;
}

void release_cost_case(cost_case *c)
{
    qn_kernel_release(c->kernel);
    for (int i = 0; i < COST_VIEWS; i++) {
        qn_view_release(&c->view[i]);
        qn_layout_release(&c->layout[i]);
    }
    if (c->family == COST_RANDOM)
        release_case(&c->random);
}
