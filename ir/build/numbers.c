/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers.c: the builder for callers that cannot pass structs by value, quern/embed.h: values
 * and view parameters are numbers, `id` in the low half and `builder` in the high half. Lists are
 * converted here; how long they may be is checked by the functions that these call.
 */
#include "quern/embed.h"

#include "ir/build/builder.h"

/* Room for the longest lists that the functions take, and to see that a list is longer. */
enum { MOST = 2 * QN_MAX_CARRIED };

static qn_val value_of(uint64_t n)
{
    return (qn_val){.id = (uint32_t)n, .builder = (uint32_t)(n >> 32)};
}

static qn_param param_of(uint64_t n)
{
    return (qn_param){.id = (uint32_t)n, .builder = (uint32_t)(n >> 32)};
}

static uint64_t number_of(qn_val v)
{
    return (uint64_t)v.builder << 32 | v.id;
}

/** n values; a list that is too long or NULL is left to the function that gets it, which refuses n.
 */
static const qn_val *values_of(int n, const uint64_t *from, qn_val to[MOST])
{
    for (int i = 0; from && i < n && i < MOST; i++)
        to[i] = value_of(from[i]);
    return from ? to : NULL;
}

/** Where n results may go: NULL if there is no room, which the function that gets it refuses. */
static qn_val *room(int n, qn_val y[MOST])
{
    return n <= MOST ? y : NULL;
}

static void give_numbers(int n, const qn_val *from, uint64_t *to)
{
    for (int i = 0; to && n <= MOST && i < n; i++)
        to[i] = number_of(from[i]);
}

/* ---------------------------------------------------------------- parameters, constants, domain */

uint64_t qn_view_param_n(qn_builder *b, const char *name, int dtype, int rank, uint32_t traits)
{
    qn_param p = qn_view_param(b, name, dtype, rank, traits);
    return (uint64_t)p.builder << 32 | p.id;
}

uint64_t qn_scalar_param_n(qn_builder *b, const char *name, int dtype)
{
    return number_of(qn_scalar_param(b, name, dtype));
}

int qn_type_of_n(const qn_builder *b, uint64_t x)
{
    return (int)qn_type_of(b, value_of(x));
}

uint64_t qn_const_int_n(qn_builder *b, int dtype, int64_t value)
{
    return number_of(qn_const_int(b, dtype, value));
}

uint64_t qn_const_float_n(qn_builder *b, int dtype, double value)
{
    return number_of(qn_const_float(b, dtype, value));
}

uint64_t qn_const_complex_n(qn_builder *b, int dtype, double re, double im)
{
    return number_of(qn_const_complex(b, dtype, re, im));
}

uint64_t qn_extent_n(qn_builder *b, uint64_t view, int d)
{
    return number_of(qn_extent(b, param_of(view), d));
}

uint64_t qn_lower_n(qn_builder *b, uint64_t view, int d)
{
    return number_of(qn_lower(b, param_of(view), d));
}

uint64_t qn_dimension_n(qn_builder *b, int kind, uint64_t begin, uint64_t end)
{
    qn_val low = value_of(begin), high = value_of(end);
    switch (kind) {
    case QN_DIMENSION_PARALLEL:
        return number_of(qn_parallel(b, low, high));
    case QN_DIMENSION_REDUCTION:
        return number_of(qn_reduction(b, low, high));
    case QN_DIMENSION_SEQUENTIAL:
        return number_of(qn_sequential(b, low, high));
    default:
        if (qn__builder_ready(b, "qn_dimension_n"))
            qn__builder_fail(b, QN_ERR_ARGUMENT, "qn_dimension_n: kind %d: expected 0, 1 or 2",
                             kind);
        return 0;
    }
}

/* ---------------------------------------------------------------- accesses and ops */

uint64_t qn_load_n(qn_builder *b, uint64_t view, int n, const uint64_t *index)
{
    qn_val at[MOST] = {{0}};
    return number_of(qn_load(b, param_of(view), n, values_of(n, index, at)));
}

void qn_store_n(qn_builder *b, uint64_t view, int n, const uint64_t *index, uint64_t value)
{
    qn_val at[MOST] = {{0}};
    qn_store(b, param_of(view), n, values_of(n, index, at), value_of(value));
}

uint64_t qn_atomic_n(qn_builder *b, int combine, uint64_t view, int n, const uint64_t *index,
                     uint64_t value, uint64_t compare)
{
    qn_val at[MOST] = {{0}};
    return number_of(qn_atomic(b, combine, param_of(view), n, values_of(n, index, at),
                               value_of(value), value_of(compare)));
}

uint64_t qn_op_n(qn_builder *b, int op, int n, const uint64_t *args)
{
    qn_val x[MOST] = {{0}};
    return number_of(qn_op(b, op, n, values_of(n, args, x)));
}

uint64_t qn_cast_n(qn_builder *b, int dtype, uint64_t x)
{
    return number_of(qn_cast(b, dtype, value_of(x)));
}

uint64_t qn_bitcast_n(qn_builder *b, int dtype, uint64_t x)
{
    return number_of(qn_bitcast(b, dtype, value_of(x)));
}

uint64_t qn_complex_n(qn_builder *b, uint64_t re, uint64_t im)
{
    return number_of(qn_complex(b, value_of(re), value_of(im)));
}

uint64_t qn_part_n(qn_builder *b, uint64_t z, int part)
{
    return number_of(part ? qn_imag(b, value_of(z)) : qn_real(b, value_of(z)));
}

void qn_math_n(qn_builder *b, const char *name, int n, const uint64_t *args, uint64_t *results)
{
    qn_val x[MOST] = {{0}}, y[MOST] = {{0}};
    qn_math(b, name, n, values_of(n, args, x), y);
    for (int i = 0; results && i < MOST && y[i].id; i++) /* as many as the function has */
        results[i] = number_of(y[i]);
}

void qn_invoke_n(qn_builder *b, const qn_function *f, int n_values, const uint64_t *values,
                 int n_views, const uint64_t *views, uint64_t *results)
{
    qn_val x[MOST] = {{0}}, y[MOST] = {{0}};
    qn_param p[QN_MAX_PARAMS];
    for (int i = 0; views && i < n_views && i < QN_MAX_PARAMS; i++)
        p[i] = param_of(views[i]);
    qn_invoke(b, f, n_values, values_of(n_values, values, x), n_views, views ? p : NULL, y);
    give_numbers(qn_function_n_results(f), y, results);
}

uint32_t qn_const_array_n(qn_builder *b, int dtype, int64_t n, const void *elements)
{
    return qn_const_array(b, dtype, n, elements).id;
}

uint64_t qn_lookup_n(qn_builder *b, uint32_t array, uint64_t index)
{
    return number_of(qn_lookup(b, (qn_array){array}, value_of(index)));
}

/* ---------------------------------------------------------------- regions */

void qn_if_n(qn_builder *b, uint64_t condition, int is_rare)
{
    (is_rare ? qn_if_rare : qn_if)(b, value_of(condition));
}

void qn_else_n(qn_builder *b, int n, const uint64_t *values)
{
    qn_val x[MOST] = {{0}};
    qn_else(b, n, values_of(n, values, x));
}

void qn_end_if_n(qn_builder *b, int n, const uint64_t *values, uint64_t *results)
{
    qn_val x[MOST] = {{0}}, y[MOST] = {{0}};
    qn_end_if(b, n, values_of(n, values, x), room(n, y));
    give_numbers(n, y, results);
}

uint64_t qn_for_n(qn_builder *b, uint64_t begin, uint64_t end, int64_t step, int n,
                  const uint64_t *init, uint64_t *carried)
{
    qn_val x[MOST] = {{0}}, y[MOST] = {{0}};
    uint64_t index = number_of(
        qn_for(b, value_of(begin), value_of(end), step, n, values_of(n, init, x), room(n, y)));
    give_numbers(n, y, carried);
    return index;
}

void qn_end_for_n(qn_builder *b, int n, const uint64_t *next, uint64_t *results)
{
    qn_val x[MOST] = {{0}}, y[MOST] = {{0}};
    qn_end_for(b, n, values_of(n, next, x), room(n, y));
    give_numbers(n, y, results);
}

void qn_while_n(qn_builder *b, uint64_t max_trips, int n, const uint64_t *init, uint64_t *carried)
{
    qn_val x[MOST] = {{0}}, y[MOST] = {{0}};
    qn_while(b, value_of(max_trips), n, values_of(n, init, x), room(n, y));
    give_numbers(n, y, carried);
}

void qn_do_n(qn_builder *b, uint64_t condition)
{
    qn_do(b, value_of(condition));
}

void qn_end_while_n(qn_builder *b, int n, const uint64_t *next, uint64_t *results)
{
    qn_val x[MOST] = {{0}}, y[MOST] = {{0}};
    qn_end_while(b, n, values_of(n, next, x), room(n, y));
    give_numbers(n, y, results);
}

void qn_reduce_n(qn_builder *b, int combine, int order, int n, const uint64_t *dims)
{
    qn_val x[MOST] = {{0}};
    qn_reduce(b, combine, order, n, values_of(n, dims, x));
}

uint64_t qn_end_reduce_n(qn_builder *b, uint64_t value)
{
    return number_of(qn_end_reduce(b, value_of(value)));
}

void qn_assert_n(qn_builder *b, uint64_t condition, const char *message, int n,
                 const uint64_t *values)
{
    qn_val x[MOST] = {{0}};
    qn_assert(b, value_of(condition), message, n, values_of(n, values, x));
}

void qn_print_n(qn_builder *b, const char *message, int n, const uint64_t *values)
{
    qn_val x[MOST] = {{0}};
    qn_print(b, message, n, values_of(n, values, x));
}

qn_status qn_function_finish_n(qn_builder *b, int n, const uint64_t *results, qn_function **out,
                               qn_error *err)
{
    qn_val x[MOST] = {{0}};
    return qn_function_finish(b, n, values_of(n, results, x), out, err);
}

/* ---------------------------------------------------------------- records, kinds, rows, kernels */

uint64_t qn_record_param_n(qn_builder *b, const char *name, const qn_record *record, int rank,
                           uint32_t traits)
{
    qn_param p = qn_record_param(b, name, record, rank, traits);
    return (uint64_t)p.builder << 32 | p.id;
}

uint64_t qn_load_field_n(qn_builder *b, uint64_t view, int field, int n, const uint64_t *index)
{
    qn_val at[MOST] = {{0}};
    return number_of(qn_load_field(b, param_of(view), field, n, values_of(n, index, at)));
}

void qn_store_field_n(qn_builder *b, uint64_t view, int field, int n, const uint64_t *index,
                      uint64_t value)
{
    qn_val at[MOST] = {{0}};
    qn_store_field(b, param_of(view), field, n, values_of(n, index, at), value_of(value));
}

uint64_t qn_field_of_n(qn_builder *b, uint64_t x, int field)
{
    return number_of(qn_field_of(b, value_of(x), field));
}

uint64_t qn_with_field_n(qn_builder *b, uint64_t x, int field, uint64_t value)
{
    return number_of(qn_with_field(b, value_of(x), field, value_of(value)));
}

uint64_t qn_record_of_n(qn_builder *b, const qn_record *r, int n, const uint64_t *values)
{
    qn_val x[MOST] = {{0}};
    return number_of(qn_record_of(b, r, n, values_of(n, values, x)));
}

void qn_param_kinds_n(qn_builder *b, uint64_t view, const uint8_t *kinds)
{
    qn_param_kinds(b, param_of(view), kinds);
}

uint64_t qn_with_kind_n(qn_builder *b, uint64_t x, int kind)
{
    return number_of(qn_with_kind(b, value_of(x), kind));
}

uint64_t qn_row_begin_n(qn_builder *b, uint64_t map, uint64_t row)
{
    return number_of(qn_row_begin(b, param_of(map), value_of(row)));
}

uint64_t qn_row_end_n(qn_builder *b, uint64_t map, uint64_t row)
{
    return number_of(qn_row_end(b, param_of(map), value_of(row)));
}

uint64_t qn_row_at_n(qn_builder *b, uint64_t map, uint64_t row, uint64_t k)
{
    return number_of(qn_row_at(b, param_of(map), value_of(row), value_of(k)));
}

uint64_t qn_for_row_n(qn_builder *b, uint64_t map, uint64_t row, int n, const uint64_t *init,
                      uint64_t *carried)
{
    qn_val x[MOST] = {{0}}, y[MOST] = {{0}};
    uint64_t index = number_of(
        qn_for_row(b, param_of(map), value_of(row), n, values_of(n, init, x), room(n, y)));
    give_numbers(n, y, carried);
    return index;
}

void qn_apply_n(qn_builder *b, const qn_kernel *k, int n_index, const uint64_t *index, int n_values,
                const uint64_t *values, int n_views, const uint64_t *views)
{
    qn_val at[MOST] = {{0}}, x[MOST] = {{0}};
    qn_param p[QN_MAX_PARAMS];
    for (int i = 0; views && i < n_views && i < QN_MAX_PARAMS; i++)
        p[i] = param_of(views[i]);
    qn_apply(b, k, n_index, values_of(n_index, index, at), n_values, values_of(n_values, values, x),
             n_views, views ? p : NULL);
}

void qn_builder_name_n(qn_builder *b, uint64_t x, const char *name)
{
    qn_builder_name(b, value_of(x), name);
}
