/* SPDX-License-Identifier: Apache-2.0 */
/*
 * element.c: elements of arrays as values of Lua and back, and tables. Numbers of Lua become
 * elements only if they fit: an integer type takes integers in its range. A complex number is a
 * table {re, im}. Elements of u64 above 2^63 are the negative integers of Lua 5.4 with their bits.
 */
#include "binding.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- dtypes */

/** A row of quern/dtypes.def: "B", "S", "U", "F" or "C", the name, and the dtype of its parts. */
typedef struct dtype_row {
    const char *kind, *name;
    int dtype, bytes, part;
} dtype_row;
static const dtype_row dtypes[] = {
#define QN_DTYPE(NAME, number, text, bytes, cls, part, ...) {#cls, text, number, bytes, QN_##part},
#include "quern/dtypes.def"
#undef QN_DTYPE
};
enum { N_DTYPES = sizeof dtypes / sizeof dtypes[0] };

char lq_dtype_kind(int dtype)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return *dtypes[i].kind;
    return '\0';
}

int lq_dtypes(lua_State *L)
{
    lua_newtable(L);
    for (int i = 0; i < N_DTYPES; i++) {
        lua_newtable(L);
        lua_pushnumber(L, dtypes[i].dtype);
        lua_setfield(L, -2, "number");
        lua_pushstring(L, dtypes[i].kind);
        lua_setfield(L, -2, "kind");
        lua_pushnumber(L, 8 * dtypes[i].bytes);
        lua_setfield(L, -2, "bits");
        lua_pushstring(L, qn_dtype_name(dtypes[i].part));
        lua_setfield(L, -2, "part");
        lua_setfield(L, -2, dtypes[i].name);
    }
    return 1;
}

/* ---------------------------------------------------------------- one element */

void lq_push_element(lua_State *L, int dtype, const void *element)
{
    uint64_t bits[2] = {0};
    double parts[2];
    float halves[2];
    memcpy(bits, element, (size_t)qn_dtype_bytes(dtype));
    switch (lq_dtype_kind(dtype)) {
    case 'B':
        lua_pushboolean(L, bits[0] != 0);
        return;
    case 'F':
        bits[0] = qn_convert_value(QN_F64, dtype, bits[0]);
        memcpy(parts, bits, sizeof parts[0]);
        lua_pushnumber(L, parts[0]);
        return;
    case 'C':
        memcpy(parts, bits, sizeof parts);
        if (qn_dtype_bytes(dtype) == 8) {
            memcpy(halves, bits, sizeof halves);
            parts[0] = (double)halves[0];
            parts[1] = (double)halves[1];
        }
        break;
    case 'U':
#if !LQ_HAS_INTEGERS
        if (bits[0] > UINT64_C(1) << 53)
            lq_error(L, QN_ERR_OVERFLOW, "an integer beyond 2^53 is no number of LuaJIT");
#endif
        lq_push_integer(L, (int64_t)bits[0]);
        return;
    default:
        lq_push_integer(L, (int64_t)qn_convert_value(QN_I64, dtype, bits[0]));
        return;
    }
    lua_createtable(L, 2, 0);
    for (int i = 0; i < 2; i++) {
        lua_pushnumber(L, parts[i]);
        lua_rawseti(L, -2, i + 1);
    }
}

static double number(lua_State *L, int index, int dtype, const char *what)
{
    if (lua_type(L, index) != LUA_TNUMBER)
        lq_error(L, QN_ERR_TYPE, "%s: expected a number for %s, not a %s", what,
                 qn_dtype_name(dtype), luaL_typename(L, index));
    return lua_tonumber(L, index);
}

/** An integer, if it is a value of the dtype. */
static int64_t integer(lua_State *L, int index, int dtype, const char *what)
{
    number(L, index, dtype, what);
    int64_t value = lq_integer(L, index, what), width = 8 * qn_dtype_bytes(dtype);
    bool is_unsigned = lq_dtype_kind(dtype) == 'U';
    int64_t most = (int64_t)(UINT64_MAX >> (64 - width + !is_unsigned));
    bool fits = width == 64 ? LQ_HAS_INTEGERS || !is_unsigned || value >= 0
                            : value <= most && value >= (is_unsigned ? 0 : -most - 1);
    if (!fits)
        lq_error(L, QN_ERR_ARGUMENT, "%s: %f does not fit %s", what, lua_tonumber(L, index),
                 qn_dtype_name(dtype));
    return value;
}

/** Real and imaginary part of a number or a table {re, im}. */
static void complex_number(lua_State *L, int index, int dtype, const char *what, double parts[2])
{
    parts[1] = 0;
    if (!lua_istable(L, index)) {
        parts[0] = number(L, index, dtype, what);
        return;
    }
    for (int i = 0; i < 2; i++) {
        lua_rawgeti(L, index, i + 1);
        parts[i] = number(L, -1, dtype, what);
        lua_pop(L, 1);
    }
}

void lq_scalar(lua_State *L, int index, int dtype, const char *what, qn_arg *out)
{
    double parts[2];
    switch (lq_dtype_kind(dtype)) {
    case 'B':
        if (!lua_isboolean(L, index))
            lq_error(L, QN_ERR_TYPE, "%s: expected a boolean, not a %s", what,
                     luaL_typename(L, index));
        *out = qn_arg_int(dtype, lua_toboolean(L, index));
        return;
    case 'F':
        *out = qn_arg_f64(number(L, index, dtype, what));
        out->bits = qn_convert_value(dtype, QN_F64, out->bits);
        out->dtype = dtype;
        return;
    case 'C':
        complex_number(L, index, dtype, what, parts);
        *out = qn_dtype_bytes(dtype) == 8 ? qn_arg_c64((float)parts[0], (float)parts[1])
                                          : qn_arg_c128(parts[0], parts[1]);
        return;
    default:
        *out = qn_arg_int(dtype, integer(L, index, dtype, what));
    }
}

/** Stores the value at an index of the stack in memory of an element. */
static void store(lua_State *L, int index, const qn_view *v, void *element)
{
    qn_arg value;
    if (v->traits & QN_READ_ONLY)
        lq_error(L, QN_ERR_READ_ONLY, "the array is read-only");
    lq_scalar(L, index, v->dtype, "element", &value);
    const uint64_t bits[2] = {value.bits, value.high};
    memcpy(element, bits, (size_t)qn_dtype_bytes(v->dtype));
}

/* ---------------------------------------------------------------- indices */

/** Address of an element. Raises errors, also for memory of a GPU. */
static void *address(lua_State *L, const qn_view *v, int n, const int64_t *index)
{
    const qn_layout *l = &v->layout;
    if (!l->digits && !l->projected && !v->unit && v->space == QN_SPACE_HOST && n == l->rank) {
        int64_t offset = 0;
        int d = 0;
        for (; d < n; d++) {
            uint64_t i = (uint64_t)index[d] - (uint64_t)l->dim[d].lower;
            if (i >= (uint64_t)l->dim[d].extent)
                break;
            offset += (int64_t)i * l->dim[d].stride;
        }
        if (d == n)
            return (char *)v->data + offset * qn_dtype_bytes(v->dtype);
    }
    void *found = NULL;
    qn_error err = {0};
    if (qn_view_at(v, n, index, &found, &err))
        lq_raise(L, &err);
    return found;
}

/** Pushes the part of an array of rank 2 or more at an index of its first dimension. */
static int push_row(lua_State *L, const qn_view *v, int64_t index)
{
    qn_slice slices[QN_MAX_RANK] = {{.kind = QN_AT, .begin = index}};
    qn_view *out = lq_push_view(L, 1);
    qn_error err = {0};
    return qn_subview(v, v->layout.rank, slices, out, &err) ? lq_raise(L, &err) : 1;
}

int lq_index(lua_State *L)
{
    const lq_array *a = lq_array_at(L, 1, "index");
    int64_t index[QN_MAX_RANK];
    if (lua_type(L, 2) == LUA_TSTRING) {
        lua_getmetatable(L, 1);
        lua_pushvalue(L, 2);
        lua_rawget(L, -2);
        return 1;
    }
    int n = lq_integers(L, 2, "index", QN_MAX_RANK, index);
    if (n == 1 && a->view.layout.rank > 1)
        return push_row(L, &a->view, index[0]);
    lq_push_element(L, a->view.dtype, address(L, &a->view, n, index));
    return 1;
}

/** array(i, j), array:get(i, j) */
int lq_get(lua_State *L)
{
    const lq_array *a = lq_array_at(L, 1, "get");
    int64_t index[QN_MAX_RANK];
    int n = lua_gettop(L) - 1;
    if (n > QN_MAX_RANK)
        lq_error(L, QN_ERR_RANK, "%d indices, at most %d", n, QN_MAX_RANK);
    for (int d = 0; d < n; d++)
        index[d] = lq_integer(L, d + 2, "index");
    lq_push_element(L, a->view.dtype, address(L, &a->view, n, index));
    return 1;
}

/** array:set(i, j, value) */
int lq_set(lua_State *L)
{
    const lq_array *a = lq_array_at(L, 1, "set");
    int64_t index[QN_MAX_RANK];
    int n = lua_gettop(L) - 2;
    if (n < 0 || n > QN_MAX_RANK)
        lq_error(L, QN_ERR_RANK, "set: indices, at most %d, and a value", QN_MAX_RANK);
    for (int d = 0; d < n; d++)
        index[d] = lq_integer(L, d + 2, "index");
    store(L, n + 2, &a->view, address(L, &a->view, n, index));
    return 0;
}

/* ---------------------------------------------------------------- all elements */

/** Sets all elements of a view to the value at an index. */
static void fill(lua_State *L, const qn_view *v, int index)
{
    qn_arg value;
    qn_error err = {0};
    lq_scalar(L, index, v->dtype, "element", &value);
    if (qn_fill_arg(lq_context(L), v, &value, &err))
        lq_raise(L, &err);
}

/** array:fill(value). Returns the array. */
int lq_fill(lua_State *L)
{
    fill(L, &lq_array_at(L, 1, "fill")->view, 2);
    lua_settop(L, 1);
    return 1;
}

/** array[i] = x, array[{i, j}] = x. A row takes a number, or an array of its shape. */
int lq_newindex(lua_State *L)
{
    const lq_array *a = lq_array_at(L, 1, "index");
    int64_t index[QN_MAX_RANK];
    if (lua_type(L, 2) == LUA_TSTRING)
        return lq_error(L, QN_ERR_ARGUMENT, "an array has no field \"%s\" to assign to",
                        lua_tostring(L, 2));
    int n = lq_integers(L, 2, "index", QN_MAX_RANK, index);
    if (n != 1 || a->view.layout.rank <= 1) {
        store(L, 3, &a->view, address(L, &a->view, n, index));
        return 0;
    }
    push_row(L, &a->view, index[0]);
    lua_insert(L, 3); /* array, index, row, value */
    if (!lq_test(L, 4, LQ_ARRAY)) {
        fill(L, &lq_array_at(L, 3, "row")->view, 4);
        return 0;
    }
    lua_getfield(L, 3, "copy_from");
    lua_insert(L, 3);
    lua_call(L, 2, 0);
    return 0;
}

/** Pushes the elements from dimension d on, whose first one is at the indices. */
static void push_elements(lua_State *L, const qn_view *v, int d, int64_t index[QN_MAX_RANK])
{
    if (d == v->layout.rank) {
        lq_push_element(L, v->dtype, address(L, v, d, index));
        return;
    }
    const qn_dim *dim = &v->layout.dim[d];
    luaL_checkstack(L, 4, "totable");
    lua_createtable(L, dim->extent < INT32_MAX ? (int)dim->extent : 0, 0);
    for (int64_t i = 0; i < dim->extent; i++) {
        index[d] = dim->lower + i;
        push_elements(L, v, d + 1, index);
        lua_rawseti(L, -2, (int)(i + 1));
    }
}

/** array:totable(): elements as nested tables, which count from 1. */
int lq_totable(lua_State *L)
{
    const qn_view *v = &lq_array_at(L, 1, "totable")->view;
    int64_t index[QN_MAX_RANK] = {0};
    for (int d = 0; d < v->layout.rank; d++)
        if (v->layout.dim[d].extent >= INT32_MAX)
            lq_error(L, QN_ERR_LIMIT, "totable: extent %f is too long for a table",
                     (double)v->layout.dim[d].extent);
    push_elements(L, v, 0, index);
    return 1;
}

/** Whether the table on top is a complex number, of a complex dtype. */
static bool is_leaf(lua_State *L, int dtype)
{
    if (!lua_istable(L, -1))
        return true;
    if (lq_dtype_kind(dtype) != 'C')
        return false;
    lua_rawgeti(L, -1, 1);
    bool is_number = lua_type(L, -1) == LUA_TNUMBER;
    lua_pop(L, 1);
    return is_number && lq_length(L, -1) == 2;
}

/** Stores the table on top, dimension d, in elements of the view. */
static void take(lua_State *L, const qn_view *v, int d, int64_t index[QN_MAX_RANK])
{
    if (d == v->layout.rank) {
        store(L, lua_gettop(L), v, address(L, v, d, index));
        return;
    }
    const qn_dim *dim = &v->layout.dim[d];
    luaL_checkstack(L, 8, "array");
    if (!lua_istable(L, -1) || lq_length(L, -1) != dim->extent)
        lq_error(L, QN_ERR_EXTENT, "array: dimension %d: a table of another length than %d", d + 1,
                 (int)dim->extent);
    for (int i = 0; i < (int)dim->extent; i++) {
        index[d] = dim->lower + i;
        lua_rawgeti(L, -1, i + 1);
        take(L, v, d + 1, index);
        lua_pop(L, 1);
    }
}

/** array(table, dtype, lower): a new array with the elements of nested tables. */
int lq_from_table(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 3);
    bool is_typed = !lua_isnil(L, 2);
    int dtype = lq_dtype(L, 2), rank = 0;
    int64_t extents[QN_MAX_RANK], lower[QN_MAX_RANK], index[QN_MAX_RANK];
    lua_pushvalue(L, 1);
    while (!is_leaf(L, dtype)) {
        if (rank == QN_MAX_RANK)
            lq_error(L, QN_ERR_RANK, "array: tables nested more than %d deep", QN_MAX_RANK);
        extents[rank] = lq_length(L, -1);
        if (extents[rank++] > INT32_MAX)
            lq_error(L, QN_ERR_LIMIT, "array: a table that is too long");
        lua_rawgeti(L, -1, 1);
        lua_remove(L, -2);
    }
    if (!is_typed && lua_isboolean(L, -1))
        dtype = QN_BOOL;
    lua_settop(L, 3);
    for (int d = 0; d < rank; d++)
        lower[d] = 1;
    if (lua_istable(L, 3) && lq_integers(L, 3, "lower bounds", QN_MAX_RANK, lower) != rank)
        lq_error(L, QN_ERR_RANK, "array: an array of rank %d has as many lower bounds", rank);
    for (int d = 0; d < rank && lua_isnumber(L, 3); d++)
        lower[d] = lq_integer(L, 3, "lower bound");
    const lq_array *a = lq_make_array(L, rank, extents, lower, dtype, QN_SPACE_HOST, true);
    lua_pushvalue(L, 1);
    take(L, &a->view, 0, index);
    lua_settop(L, 4);
    return 1;
}
