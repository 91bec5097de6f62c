/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builder.c: the builder of quern.h with values as integers (quern/embed.h), for the modules in Lua
 * beside it, which put values with operators on top. A value is the lower half of its number, which
 * every number of Lua can hold; the upper half, the builder's, is kept here. Errors stick and are
 * raised by check and finish.
 */
#include "binding.h"

#include <string.h>

typedef struct builder {
    qn_builder *b;
    uint64_t high; /* of all its values; 0: none was made yet */
} builder;

enum { MOST = QN_MAX_CARRIED };

/** The builder at index 1. */
static builder *self_of(lua_State *L)
{
    builder *b = lq_test(L, 1, LQ_BUILDER);
    if (!b || !b->b)
        lq_error(L, QN_ERR_BUILD, "expected a builder that is not finished, not a %s",
                 luaL_typename(L, 1));
    return b;
}

static uint64_t value_at(lua_State *L, const builder *b, int index)
{
    uint64_t id = (uint64_t)lq_integer(L, index, "value");
    return id ? b->high | (uint32_t)id : 0;
}

/** Values from an index of the stack to its top. */
static int values_at(lua_State *L, const builder *b, int first, uint64_t *out)
{
    int n = lua_gettop(L) - first + 1;
    if (n > MOST)
        lq_error(L, QN_ERR_LIMIT, "%d values, at most %d", n, MOST);
    for (int i = 0; i < n; i++)
        out[i] = value_at(L, b, first + i);
    return n > 0 ? n : 0;
}

static int push_value(lua_State *L, builder *b, uint64_t value)
{
    if (value)
        b->high = value >> 32 << 32;
    lua_pushnumber(L, (lua_Number)(uint32_t)value);
#if LQ_HAS_INTEGERS
    lua_pop(L, 1);
    lua_pushinteger(L, (lua_Integer)(uint32_t)value);
#endif
    return 1;
}

static int push_values(lua_State *L, builder *b, int n, const uint64_t *values)
{
    luaL_checkstack(L, n + 1, "values");
    for (int i = 0; i < n; i++)
        push_value(L, b, values[i]);
    return n;
}

/** An enumerator that fits an int. */
static int int_at(lua_State *L, int index, const char *what)
{
    int64_t value = lq_integer(L, index, what);
    return value >= INT32_MIN && value <= INT32_MAX ? (int)value : -1;
}

/* ---------------------------------------------------------------- parameters and constants */

/** view_param(name, dtype, rank, traits) */
static int view_param(lua_State *L)
{
    builder *b = self_of(L);
    uint32_t traits = (uint32_t)(lua_isnoneornil(L, 5) ? 0 : lq_integer(L, 5, "traits"));
    return push_value(L, b,
                      qn_view_param_n(b->b, luaL_checkstring(L, 2), lq_dtype(L, 3),
                                      int_at(L, 4, "rank"), traits));
}

/** scalar_param(name, dtype) */
static int scalar_param(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_scalar_param_n(b->b, luaL_checkstring(L, 2), lq_dtype(L, 3)));
}

/** type_of(value): the name of its dtype. */
static int type_of(lua_State *L)
{
    builder *b = self_of(L);
    lua_pushstring(L, qn_dtype_name(qn_type_of_n(b->b, value_at(L, b, 2))));
    return 1;
}

/** constant(dtype, number) */
static int constant(lua_State *L)
{
    builder *b = self_of(L);
    int dtype = lq_dtype(L, 2);
    qn_arg bits;
    double parts[2];
    float halves[2];
    lq_scalar(L, 3, dtype, "constant", &bits);
    const uint64_t both[2] = {bits.bits, bits.high};
    memcpy(parts, both, sizeof parts);
    memcpy(halves, both, sizeof halves);
    if (dtype == QN_C64)
        return push_value(L, b,
                          qn_const_complex_n(b->b, dtype, (double)halves[0], (double)halves[1]));
    if (dtype == QN_C128)
        return push_value(L, b, qn_const_complex_n(b->b, dtype, parts[0], parts[1]));
    qn_val v = qn_const_bits(b->b, dtype, bits.bits);
    return push_value(L, b, (uint64_t)v.builder << 32 | v.id);
}

/** extent(view, d), lower(view, d): d counts from 1. */
static int extent(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_extent_n(b->b, value_at(L, b, 2), int_at(L, 3, "dimension") - 1));
}

static int lower(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_lower_n(b->b, value_at(L, b, 2), int_at(L, 3, "dimension") - 1));
}

/** dimension(kind, begin, end) */
static int dimension(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b,
                      qn_dimension_n(b->b, int_at(L, 2, "kind"), value_at(L, b, 3),
                                     value_at(L, b, 4)));
}

/** array(dtype, numbers): a constant array. */
static int const_array(lua_State *L)
{
    builder *b = self_of(L);
    int dtype = lq_dtype(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    int64_t n = lq_length(L, 3), bytes = qn_dtype_bytes(dtype);
    if (n > QN_MAX_ARRAY_ELEMENTS)
        lq_error(L, QN_ERR_LIMIT, "a constant array of %d elements, at most %d", (int)n,
                 QN_MAX_ARRAY_ELEMENTS);
    char *elements = lua_newuserdata(L, (size_t)(n * bytes) + 1);
    for (int i = 0; i < (int)n; i++) {
        qn_arg value;
        lua_rawgeti(L, 3, i + 1);
        lq_scalar(L, -1, dtype, "constant", &value);
        lua_pop(L, 1);
        memcpy(elements + i * bytes, &value.bits, (size_t)(bytes < 8 ? bytes : 8));
    }
    lua_pushinteger(L, (lua_Integer)qn_const_array_n(b->b, dtype, n, elements));
    return 1;
}

/** lookup(array, index) */
static int lookup(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_lookup_n(b->b, (uint32_t)lq_integer(L, 2, "array"),
                                        value_at(L, b, 3)));
}

/** pin(parameter, of, dimension, as, multiple): numbers from 0. */
static int pin(lua_State *L)
{
    const qn_fact_pin p = {int_at(L, 2, "parameter"), int_at(L, 3, "of"), int_at(L, 4, "dimension"),
                           int_at(L, 5, "as"), lq_integer(L, 6, "multiple")};
    qn_builder_pin(self_of(L)->b, &p);
    return 0;
}

/* ---------------------------------------------------------------- loads, stores, ops */

/** load(view, index...) */
static int load(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t index[MOST];
    int n = values_at(L, b, 3, index);
    return push_value(L, b, qn_load_n(b->b, value_at(L, b, 2), n, index));
}

/** store(view, value, index...) */
static int store(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t index[MOST];
    int n = values_at(L, b, 4, index);
    qn_store_n(b->b, value_at(L, b, 2), n, index, value_at(L, b, 3));
    return 0;
}

/** atomic(combine, view, value, compare, index...) */
static int atomic(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t index[MOST];
    int n = values_at(L, b, 6, index);
    return push_value(L, b,
                      qn_atomic_n(b->b, int_at(L, 2, "combine"), value_at(L, b, 3), n, index,
                                  value_at(L, b, 4), value_at(L, b, 5)));
}

/** op(name, value...) by the keyword of quern/ops.def */
static int op(lua_State *L)
{
    builder *b = self_of(L);
    const char *name = luaL_checkstring(L, 2);
    uint64_t values[MOST];
    int n = values_at(L, b, 3, values), number = qn_op_of_name(name);
    if (number == 0)
        lq_error(L, QN_ERR_NOT_FOUND, "no op has the name \"%s\"", name);
    return push_value(L, b, qn_op_n(b->b, number, n, values));
}

/** math(name, value...): its results */
static int math(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t values[MOST], results[2 * MOST] = {0};
    int n = values_at(L, b, 3, values), n_results = 0;
    qn_math_n(b->b, luaL_checkstring(L, 2), n, values, results);
    while (n_results < MOST && results[n_results])
        n_results++;
    return push_values(L, b, n_results, results);
}

/** cast(dtype, value), bitcast(dtype, value) */
static int cast(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_cast_n(b->b, lq_dtype(L, 2), value_at(L, b, 3)));
}

static int bitcast(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_bitcast_n(b->b, lq_dtype(L, 2), value_at(L, b, 3)));
}

/** complex(re, im), part(z, 0 or 1) */
static int complex_of(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_complex_n(b->b, value_at(L, b, 2), value_at(L, b, 3)));
}

static int part(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_part_n(b->b, value_at(L, b, 2), int_at(L, 3, "part")));
}

/* ---------------------------------------------------------------- regions */

/** begin_if(condition, is_rare) */
static int begin_if(lua_State *L)
{
    builder *b = self_of(L);
    qn_if_n(b->b, value_at(L, b, 2), lua_toboolean(L, 3));
    return 0;
}

/** begin_else(value...) */
static int begin_else(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t values[MOST];
    int n = values_at(L, b, 2, values);
    qn_else_n(b->b, n, values);
    return 0;
}

typedef void (*end_function)(qn_builder *, int, const uint64_t *, uint64_t *);
/** The end of a region with n values and n results. */
static int end(lua_State *L, end_function function)
{
    builder *b = self_of(L);
    uint64_t values[MOST], results[MOST] = {0};
    int n = values_at(L, b, 2, values);
    function(b->b, n, values, results);
    return push_values(L, b, n, results);
}

static int end_if(lua_State *L)
{
    return end(L, qn_end_if_n);
}

static int end_for(lua_State *L)
{
    return end(L, qn_end_for_n);
}

static int end_while(lua_State *L)
{
    return end(L, qn_end_while_n);
}

/** begin_for(begin, end, step, init...): index and carried values */
static int begin_for(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t init[MOST], carried[MOST] = {0};
    int n = values_at(L, b, 5, init);
    uint64_t index = qn_for_n(b->b, value_at(L, b, 2), value_at(L, b, 3),
                              lq_integer(L, 4, "step"), n, init, carried);
    push_value(L, b, index);
    return 1 + push_values(L, b, n, carried);
}

/** begin_while(max_trips, init...): carried values */
static int begin_while(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t init[MOST], carried[MOST] = {0};
    int n = values_at(L, b, 3, init);
    qn_while_n(b->b, value_at(L, b, 2), n, init, carried);
    return push_values(L, b, n, carried);
}

/** begin_do(condition) */
static int begin_do(lua_State *L)
{
    builder *b = self_of(L);
    qn_do_n(b->b, value_at(L, b, 2));
    return 0;
}

/** begin_reduce(combine, order, dimension...) */
static int begin_reduce(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t dims[MOST];
    int n = values_at(L, b, 4, dims);
    qn_reduce_n(b->b, int_at(L, 2, "combine"), int_at(L, 3, "order"), n, dims);
    return 0;
}

/** end_reduce(value) */
static int end_reduce(lua_State *L)
{
    builder *b = self_of(L);
    return push_value(L, b, qn_end_reduce_n(b->b, value_at(L, b, 2)));
}

/** assert_that(condition, message, value...) */
static int assert_that(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t values[MOST];
    int n = values_at(L, b, 4, values);
    qn_assert_n(b->b, value_at(L, b, 2), luaL_checkstring(L, 3), n, values);
    return 0;
}

/** print_line(message, value...) */
static int print_line(lua_State *L)
{
    builder *b = self_of(L);
    uint64_t values[MOST];
    int n = values_at(L, b, 3, values);
    qn_print_n(b->b, luaL_checkstring(L, 2), n, values);
    return 0;
}

/* ---------------------------------------------------------------- places and the end */

/** at(file, line) */
static int at(lua_State *L)
{
    qn_builder_at(self_of(L)->b, luaL_optstring(L, 2, NULL), int_at(L, 3, "line"), 0);
    return 0;
}

/** at_column(text, column): a place in an expression. */
static int at_column(lua_State *L)
{
    qn_builder_at(self_of(L)->b, luaL_checkstring(L, 2), 1, int_at(L, 3, "column"));
    return 0;
}

/** set_name(value, name) */
static int set_name(lua_State *L)
{
    builder *b = self_of(L);
    qn_builder_name_n(b->b, value_at(L, b, 2), luaL_checkstring(L, 3));
    return 0;
}

/** check(): raises the first error so far. */
static int check(lua_State *L)
{
    qn_error err = {0};
    return qn_builder_status(self_of(L)->b, &err) ? lq_raise(L, &err) : 0;
}

static int finish(lua_State *L)
{
    builder *b = self_of(L);
    lq_kernel *k = lq_push_kernel(L);
    qn_kernel *made = NULL;
    qn_error err = {0};
    qn_status status = qn_finish(b->b, &made, &err);
    qn_builder_release(b->b);
    b->b = NULL;
    if (status)
        lq_raise(L, &err);
    lq_set_kernel(k, made);
    return 1;
}

/** new_builder(name, flags) */
int lq_builder_new(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    uint32_t flags = (uint32_t)(lua_isnoneornil(L, 2) ? 0 : lq_integer(L, 2, "flags"));
    builder *b = lq_newuserdata(L, sizeof *b);
    *b = (builder){0};
    lq_set_kind(L, LQ_BUILDER);
    b->b = qn_builder_new(name, flags);
    if (!b->b)
        lq_error(L, QN_ERR_MEMORY, "no memory for a builder");
    return 1;
}

static int builder_gc(lua_State *L)
{
    builder *b = lq_test(L, 1, LQ_BUILDER);
    if (!b)
        return 0;
    qn_builder_release(b->b);
    b->b = NULL;
    return 0;
}

static const luaL_Reg functions[] = {
    {"__gc", builder_gc},
    {"view_param", view_param},
    {"scalar_param", scalar_param},
    {"type_of", type_of},
    {"constant", constant},
    {"extent", extent},
    {"lower", lower},
    {"dimension", dimension},
    {"const_array", const_array},
    {"lookup", lookup},
    {"pin", pin},
    {"load", load},
    {"store", store},
    {"atomic", atomic},
    {"op", op},
    {"math", math},
    {"cast", cast},
    {"bitcast", bitcast},
    {"complex", complex_of},
    {"part", part},
    {"begin_if", begin_if},
    {"begin_else", begin_else},
    {"end_if", end_if},
    {"begin_for", begin_for},
    {"end_for", end_for},
    {"begin_while", begin_while},
    {"begin_do", begin_do},
    {"end_while", end_while},
    {"begin_reduce", begin_reduce},
    {"end_reduce", end_reduce},
    {"assert_that", assert_that},
    {"print_line", print_line},
    {"at", at},
    {"at_column", at_column},
    {"set_name", set_name},
    {"check", check},
    {"finish", finish},
    {NULL, NULL}};

void lq_open_builder(lua_State *L)
{
    lq_new_kind(L, LQ_BUILDER, "quern.Builder", functions);
}
