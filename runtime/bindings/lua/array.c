/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.c: quern.Array: an array in memory of Quern or of somebody else; parts and other layouts of
 * the same memory; fields. Indices are those of kernels: an array counts from 1 unless it was made
 * with other lower bounds, and a range keeps the lower bound of its dimension.
 *
 * Lua's collector does not see the memory of arrays. So making arrays collects garbage once as much
 * has been made as is alive, and at least 64 MiB.
 */
#include "binding.h"

#include "quern/bytes.h"

#include <string.h>

enum { COLLECT_BYTES = 64 << 20 };

lq_array *lq_array_at(lua_State *L, int index, const char *what)
{
    lq_array *a = lq_test(L, index, LQ_ARRAY);
    if (!a)
        lq_error(L, QN_ERR_ARGUMENT, "%s: expected an array, not a %s", what,
                 luaL_typename(L, index));
    return a;
}

/** Pushes what an array keeps alive. */
static void push_base(lua_State *L, int index)
{
#if LQ_HAS_INTEGERS
    lua_getiuservalue(L, index, 1);
#else
    lua_getfenv(L, index);
#endif
}

/** Makes the array on top keep a value alive: the one at an index, or, of an array, what that
 * keeps. */
static void set_base(lua_State *L, int base)
{
    if (lq_test(L, base, LQ_ARRAY)) {
        push_base(L, base);
    } else {
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, base);
        lua_rawseti(L, -2, 1);
    }
#if LQ_HAS_INTEGERS
    lua_setiuservalue(L, -2, 1);
#else
    lua_setfenv(L, -2);
#endif
}

qn_view *lq_push_view(lua_State *L, int base)
{
    lq_array *a = lq_newuserdata(L, sizeof *a);
    memset(a, 0, sizeof *a);
    lq_set_kind(L, LQ_ARRAY);
    if (base)
        set_base(L, base);
    return &a->view;
}

lq_array *lq_make_array(lua_State *L, int rank, const int64_t *extents, const int64_t *lower,
                        int dtype, int space, bool is_raw)
{
    lq_state *s = lq_state_of(L);
    qn_context *c = lq_context(L);
    qn_counters n = {0};
    qn_view_type type;
    qn_view v = {0}, *out = lq_push_view(L, 0);
    qn_layout l;
    qn_error err = {0};
    if (s->made_bytes >= COLLECT_BYTES) {
        qn_context_counters(c, &n, sizeof n);
        if (s->made_bytes >= n.data_bytes + n.cuda_data_bytes - s->made_bytes) {
            lua_gc(L, LUA_GCCOLLECT, 0);
            s->made_bytes = 0;
        }
    }
    const qn_alloc_options o = {.bytes = sizeof o, .uninitialised = is_raw, .space = space};
    qn_status status = qn_view_type_init(dtype, rank, NULL, QN_FAMILY_RIGHT, &type, &err);
    type.space = space;
    if (!status)
        status = qn_view_create(c, &type, rank, extents, &o, &v, &err);
    if (status == QN_ERR_MEMORY) { /* garbage may hold it */
        lua_gc(L, LUA_GCCOLLECT, 0);
        status = qn_view_create(c, &type, rank, extents, &o, &v, &err);
    }
    if (!status)
        status = qn_layout_offset(&v.layout, lower, &l, &err);
    if (!status) {
        status = qn_view_with_layout(&v, &l, out, &err);
        qn_view_release(&v);
    }
    if (status)
        lq_raise(L, &err);
    s->made_bytes += qn_view_size(out) * qn_dtype_bytes(dtype);
    return (lq_array *)lua_touserdata(L, -1);
}

int lq_dtype(lua_State *L, int index)
{
    const char *name = lua_tostring(L, index);
    int dtype = name ? (int)qn_dtype_of_name(name) : lua_isnoneornil(L, index) ? QN_F64 : QN_VOID;
    if (dtype == QN_VOID)
        lq_error(L, QN_ERR_DTYPE, "\"%s\" is no element type: use \"f64\", \"i32\", \"bool\" ...",
                 name ? name : luaL_typename(L, index));
    return dtype;
}

static int array_gc(lua_State *L)
{
    lq_array *a = lq_test(L, 1, LQ_ARRAY);
    if (a)
        qn_view_release(&a->view);
    return 0;
}

/* ---------------------------------------------------------------- parts and other layouts */

/** Sets a new array, pushed with the one at index 1 as its base, to the memory of that one through
 * what a layout function gave, which is released. Raises the function's error. */
static int set_layout(lua_State *L, qn_view *out, qn_status status, qn_layout *l, qn_error *err)
{
    if (!status) {
        status = qn_view_with_layout(&lq_array_at(L, 1, "array")->view, l, out, err);
        qn_layout_release(l);
    }
    return status ? lq_raise(L, err) : 1;
}

/** A table {first, last, step} as a range, where last is included and step may be negative. */
static void read_range(lua_State *L, int index, const qn_dim *dim, qn_slice *out, bool *is_reversed)
{
    int64_t part[3] = {dim->lower, dim->lower + dim->extent - 1, 1};
    bool is_given[3];
    for (int i = 3; i >= 1; i--) {
        lua_rawgeti(L, index, i);
        is_given[i - 1] = !lua_isnil(L, -1);
        if (is_given[i - 1])
            part[i - 1] = lq_integer(L, -1, "range");
        lua_pop(L, 1);
    }
    int64_t step = part[2];
    if (step == 0 || step == INT64_MIN)
        lq_error(L, QN_ERR_ARGUMENT, "a range has a step other than 0");
    if (step < 0 && !is_given[0])
        part[0] = dim->lower + dim->extent - 1;
    if (step < 0 && !is_given[1])
        part[1] = dim->lower;
    int64_t first = step > 0 ? part[0] : part[1], last = step > 0 ? part[1] : part[0];
    if (last == INT64_MAX)
        lq_error(L, QN_ERR_RANGE, "a range ends below 2^63 - 1");
    *is_reversed = step < 0;
    if (last < first)
        *out = (qn_slice){.kind = QN_RANGE, .begin = dim->lower, .end = dim->lower};
    else if (step > 0)
        *out = (qn_slice){.kind = QN_RANGE, .begin = first, .end = last + 1, .step = step};
    else /* steps count from the end */
        *out =
            (qn_slice){.kind = QN_RANGE,
                       .begin = last - (int64_t)((uint64_t)last - (uint64_t)first) / -step * -step,
                       .end = last + 1,
                       .step = -step};
}

/** Reads one index of part(): an integer, a range, or nothing for all. */
static void read_part(lua_State *L, int index, const qn_dim *dim, qn_slice *out, bool *is_reversed)
{
    *is_reversed = false;
    *out = (qn_slice){.kind = QN_ALL};
    if (lua_type(L, index) == LUA_TNUMBER)
        *out = (qn_slice){.kind = QN_AT, .begin = lq_integer(L, index, "index")};
    else if (lua_istable(L, index))
        read_range(L, index, dim, out, is_reversed);
    else if (!lua_isnoneornil(L, index))
        lq_error(L, QN_ERR_ARGUMENT,
                 "part: an index is an integer, {first, last, step}, or nil for all, not a %s",
                 luaL_typename(L, index));
}

/** array:part(...) */
static int part(lua_State *L)
{
    const qn_view *v = &lq_array_at(L, 1, "part")->view;
    int rank = v->layout.rank, n = lua_gettop(L) - 1, kept = 0;
    qn_slice slices[QN_MAX_RANK];
    bool is_reversed[QN_MAX_RANK];
    int64_t lower[QN_MAX_RANK];
    if (n > rank)
        lq_error(L, QN_ERR_RANK, "part: %d indices of an array of rank %d", n, rank);
    for (int d = 0; d < rank; d++) {
        bool turn;
        read_part(L, d + 2, &v->layout.dim[d], &slices[d], &turn);
        if (slices[d].kind == QN_AT)
            continue;
        lower[kept] = v->layout.dim[d].lower;
        is_reversed[kept++] = turn;
    }
    qn_view cut = {0}, *out = lq_push_view(L, 1);
    qn_layout l, other;
    qn_error err = {0};
    qn_status status = qn_subview(v, rank, slices, &cut, &err);
    if (!status)
        l = qn_layout_copy(&cut.layout);
    for (int d = 0; !status && d < kept; d++) {
        if (!is_reversed[d] || l.dim[d].extent == 0)
            continue;
        status = qn_layout_reverse(&l, d, &other, &err);
        qn_layout_release(&l);
        l = other;
    }
    if (!status) {
        status = qn_layout_offset(&l, lower, &other, &err);
        qn_layout_release(&l);
    }
    if (!status) {
        status = qn_view_with_layout(&cut, &other, out, &err);
        qn_layout_release(&other);
    }
    qn_view_release(&cut);
    return status ? lq_raise(L, &err) : 1;
}

/** A dimension of a layout, counted from 1, as its number from 0; up to `most` of them. */
static int dimension_at(lua_State *L, int index, const char *what, int most)
{
    int64_t d = lq_integer(L, index, what);
    if (d < 1 || d > most)
        lq_error(L, QN_ERR_RANK, "%s: dimension %f is not in 1 to %d", what, (double)d, most);
    return (int)d - 1;
}

/** array:transpose(): dimensions reversed; array:transpose(2, 1, 3): dimension p is the p-th one
 * named. */
static int transpose(lua_State *L)
{
    const qn_layout *l = &lq_array_at(L, 1, "transpose")->view.layout;
    int n = lua_gettop(L) - 1, order[QN_MAX_RANK];
    qn_layout out;
    qn_view *made = lq_push_view(L, 1);
    qn_error err = {0};
    if (n != 0 && n != l->rank)
        lq_error(L, QN_ERR_RANK, "transpose: %d dimensions of an array of rank %d", n, l->rank);
    for (int d = 0; d < l->rank; d++)
        order[d] = n ? dimension_at(L, d + 2, "transpose", l->rank) : l->rank - 1 - d;
    qn_status status = qn_layout_permute(l, order, &out, &err);
    return set_layout(L, made, status, &out, &err);
}

/** array:reverse(d) */
static int reverse(lua_State *L)
{
    const qn_layout *l = &lq_array_at(L, 1, "reverse")->view.layout;
    int d = dimension_at(L, 2, "reverse", l->rank);
    qn_layout out;
    qn_view *made = lq_push_view(L, 1);
    qn_error err = {0};
    qn_status status = qn_layout_reverse(l, d, &out, &err);
    return set_layout(L, made, status, &out, &err);
}

/** array:reshape(extents): lower bounds are that of the first dimension. */
static int reshape(lua_State *L)
{
    const qn_layout *l = &lq_array_at(L, 1, "reshape")->view.layout;
    int64_t extents[QN_MAX_RANK], lower[QN_MAX_RANK];
    int rank = lq_integers(L, 2, "reshape", QN_MAX_RANK, extents);
    qn_layout out, moved;
    qn_view *made = lq_push_view(L, 1);
    qn_error err = {0};
    qn_status status = qn_layout_reshape(l, rank, extents, &out, &err);
    for (int d = 0; d < rank; d++)
        lower[d] = l->rank ? l->dim[0].lower : 1;
    if (!status) {
        status = qn_layout_offset(&out, lower, &moved, &err);
        qn_layout_release(&out);
    }
    return set_layout(L, made, status, &moved, &err);
}

/** array:broadcast(d, extent): a new dimension d, along which nothing changes. */
static int broadcast(lua_State *L)
{
    const qn_layout *l = &lq_array_at(L, 1, "broadcast")->view.layout;
    int at = dimension_at(L, 2, "broadcast", l->rank + 1);
    int64_t extent = lq_integer(L, 3, "broadcast");
    qn_layout out, moved;
    qn_view *made = lq_push_view(L, 1);
    qn_error err = {0};
    qn_status status = qn_layout_broadcast(l, at, extent, &out, &err);
    if (!status) {
        int64_t amount[QN_MAX_RANK] = {0};
        amount[at] = l->rank ? l->dim[0].lower : 1;
        status = qn_layout_shift(&out, amount, &moved, &err);
        qn_layout_release(&out);
    }
    return set_layout(L, made, status, &moved, &err);
}

/** array:squeeze(): without the dimensions of extent 1. */
static int squeeze(lua_State *L)
{
    qn_layout out;
    qn_view *made = lq_push_view(L, 1);
    qn_error err = {0};
    qn_status status =
        qn_layout_squeeze(&lq_array_at(L, 1, "squeeze")->view.layout, &out, &err);
    return set_layout(L, made, status, &out, &err);
}

/** array:with_lower(lower): the same elements with other lower bounds. */
static int with_lower(lua_State *L)
{
    const qn_layout *l = &lq_array_at(L, 1, "with_lower")->view.layout;
    int64_t lower[QN_MAX_RANK];
    qn_layout out;
    qn_view *made = lq_push_view(L, 1);
    qn_error err = {0};
    int n = lq_integers(L, 2, "with_lower", QN_MAX_RANK, lower);
    bool is_table = lua_istable(L, 2);
    if (is_table && n != l->rank)
        lq_error(L, QN_ERR_RANK, "with_lower: %d numbers for rank %d", n, l->rank);
    for (int d = 1; !is_table && d < l->rank; d++)
        lower[d] = lower[0];
    qn_status status = qn_layout_offset(l, lower, &out, &err);
    return set_layout(L, made, status, &out, &err);
}

/** complex_array:parts(1 or 2): real or imaginary parts. */
static int part_of_complex(lua_State *L)
{
    const qn_view *of = &lq_array_at(L, 1, "parts")->view;
    int64_t number = lq_integer(L, 2, "parts");
    if (number != 1 && number != 2)
        lq_error(L, QN_ERR_ARGUMENT, "parts: 1 is the real part, 2 the imaginary one");
    qn_view *out = lq_push_view(L, 1);
    qn_error err = {0};
    return qn_view_field(of, (int)number - 1, out, &err) ? lq_raise(L, &err) : 1;
}

/** array:read_only() */
static int read_only(lua_State *L)
{
    const qn_view *v = &lq_array_at(L, 1, "read_only")->view;
    qn_view *out = lq_push_view(L, 1);
    qn_error err = {0};
    return qn_view_with_traits(v, QN_READ_ONLY, out, &err) ? lq_raise(L, &err) : 1;
}

/* ---------------------------------------------------------------- copies */

/** array:copy_from(other): all elements, converted. Returns the array. */
static int copy_from(lua_State *L)
{
    const qn_view *to = &lq_array_at(L, 1, "copy_from")->view,
                  *from = &lq_array_at(L, 2, "copy_from")->view;
    qn_error err = {0};
    qn_context *c = lq_context(L);
    qn_status status = to->dtype == from->dtype ? qn_deep_copy(c, to, from, &err)
                                                : qn_convert_copy(c, QN_SERIAL, to, from, &err);
    if (status)
        lq_raise(L, &err);
    lua_settop(L, 1);
    return 1;
}

/** array:copy(dtype, space): a new array with the same elements and lower bounds. */
static int copy(lua_State *L)
{
    const qn_view *v = &lq_array_at(L, 1, "copy")->view;
    int dtype = lua_isnoneornil(L, 2) ? v->dtype : lq_dtype(L, 2);
    int space = lua_isnoneornil(L, 3) ? QN_SPACE_HOST : (int)lq_integer(L, 3, "space");
    int64_t extents[QN_MAX_RANK], lower[QN_MAX_RANK];
    for (int d = 0; d < v->layout.rank; d++) {
        extents[d] = v->layout.dim[d].extent;
        lower[d] = v->layout.dim[d].lower;
    }
    lua_settop(L, 1);
    lq_make_array(L, v->layout.rank, extents, lower, dtype, space, true);
    lua_insert(L, 1);
    return copy_from(L);
}

/* ---------------------------------------------------------------- memory of others */

/** wrap(memory, extents, dtype, strides, lower, base, is_read_only): memory is a light userdata, a
 * string, which is read-only, or an address as a number. Strides count elements. */
int lq_wrap(lua_State *L)
{
    int64_t extents[QN_MAX_RANK], strides[QN_MAX_RANK], lower[QN_MAX_RANK];
    lua_settop(L, 7);
    bool is_string = lua_type(L, 1) == LUA_TSTRING;
    void *memory = is_string               ? (void *)(uintptr_t)lua_tostring(L, 1)
                   : lua_isnumber(L, 1)    ? (void *)(uintptr_t)lq_integer(L, 1, "wrap")
                                           : lua_touserdata(L, 1);
    int rank = lq_integers(L, 2, "extents", QN_MAX_RANK, extents), dtype = lq_dtype(L, 3);
    qn_layout l;
    qn_view *out = lq_push_view(L, is_string ? 1 : 6);
    qn_error err = {0};
    if (!lua_isnil(L, 4) && lq_integers(L, 4, "strides", QN_MAX_RANK, strides) != rank)
        lq_error(L, QN_ERR_RANK, "wrap: an array of rank %d has as many strides", rank);
    qn_status status = lua_isnil(L, 4) ? qn_layout_right(rank, extents, &l, &err)
                                       : qn_layout_strided(rank, extents, strides, &l, &err);
    int64_t first = lua_isnil(L, 5) || lua_istable(L, 5) ? 1 : lq_integer(L, 5, "lower");
    for (int d = 0; d < rank; d++)
        lower[d] = first;
    if (lua_istable(L, 5) && lq_integers(L, 5, "lower", QN_MAX_RANK, lower) != rank)
        lq_error(L, QN_ERR_RANK, "wrap: an array of rank %d has as many lower bounds", rank);
    if (!status)
        status = qn_layout_offset(&l, lower, &l, &err);
    int64_t low = 0, high = -1, bytes = qn_dtype_bytes(dtype);
    if (!status && is_string) {
        status = qn_layout_range(&l, &low, &high, &err);
        if (!status && (low < 0 || high >= lq_length(L, 1) / bytes))
            lq_error(L, QN_ERR_BOUNDS, "wrap: the array is not inside its string of %d bytes",
                     (int)lq_length(L, 1));
    }
    bool is_read_only = is_string || lua_toboolean(L, 7);
    if (!status)
        status = qn_view_wrap(NULL, memory, dtype, &l, is_read_only ? QN_READ_ONLY : 0, out, &err);
    return status ? lq_raise(L, &err) : 1;
}

/** array:pointer(): the address of the element at the lower bounds. */
static int pointer(lua_State *L)
{
    lua_pushlightuserdata(L, lq_array_at(L, 1, "pointer")->view.data);
    return 1;
}

/* ---------------------------------------------------------------- fields */

enum { EXTENTS, LOWERS, STRIDES };

static void push_numbers(lua_State *L, const qn_view *v, int of)
{
    lua_createtable(L, v->layout.rank, 0);
    for (int d = 0; d < v->layout.rank; d++) {
        int64_t stride = 0;
        qn_error err = {0};
        if (of == STRIDES && qn_view_stride(v, d, &stride, &err))
            lq_raise(L, &err);
        lq_push_integer(L, of == EXTENTS  ? v->layout.dim[d].extent
                           : of == LOWERS ? v->layout.dim[d].lower
                                          : stride);
        lua_rawseti(L, -2, d + 1);
    }
}

static int shape(lua_State *L)
{
    push_numbers(L, &lq_array_at(L, 1, "shape")->view, EXTENTS);
    return 1;
}

static int lower(lua_State *L)
{
    push_numbers(L, &lq_array_at(L, 1, "lower")->view, LOWERS);
    return 1;
}

static int strides(lua_State *L)
{
    push_numbers(L, &lq_array_at(L, 1, "strides")->view, STRIDES);
    return 1;
}

static int rank(lua_State *L)
{
    lua_pushinteger(L, lq_array_at(L, 1, "rank")->view.layout.rank);
    return 1;
}

static int dtype_name(lua_State *L)
{
    lua_pushstring(L, qn_dtype_name(lq_array_at(L, 1, "dtype")->view.dtype));
    return 1;
}

static int space_name(lua_State *L)
{
    lua_pushstring(L, qn_space_name(lq_array_at(L, 1, "space")->view.space));
    return 1;
}

static int size(lua_State *L)
{
    lq_push_integer(L, qn_view_size(&lq_array_at(L, 1, "size")->view));
    return 1;
}

static int array_len(lua_State *L)
{
    const qn_layout *l = &lq_array_at(L, 1, "#")->view.layout;
    lq_push_integer(L, l->rank ? l->dim[0].extent : 1);
    return 1;
}

static int array_tostring(lua_State *L)
{
    const qn_view *v = &lq_array_at(L, 1, "tostring")->view;
    char layout[256];
    qn_layout_print(&v->layout, layout, sizeof layout);
    lua_pushfstring(L, "quern.Array(%s, %s, %s)", qn_dtype_name(v->dtype), layout,
                    qn_space_name(v->space));
    return 1;
}

static const luaL_Reg functions[] = {
    {"__gc", array_gc},         {"__tostring", array_tostring}, {"__len", array_len},
    {"__index", lq_index},      {"__newindex", lq_newindex},    {"__call", lq_get},
    {"get", lq_get},            {"set", lq_set},                {"fill", lq_fill},
    {"totable", lq_totable},    {"part", part},                 {"transpose", transpose},
    {"reverse", reverse},       {"reshape", reshape},           {"broadcast", broadcast},
    {"squeeze", squeeze},       {"with_lower", with_lower},     {"parts", part_of_complex},
    {"read_only", read_only},   {"copy_from", copy_from},       {"copy", copy},
    {"pointer", pointer},       {"shape", shape},               {"lower", lower},
    {"strides", strides},       {"rank", rank},                 {"dtype", dtype_name},
    {"space", space_name},      {"size", size},                 {NULL, NULL}};

void lq_open_array(lua_State *L)
{
    lq_new_kind(L, LQ_ARRAY, "quern.Array", functions);
}
