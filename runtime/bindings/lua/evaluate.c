/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate.c: one call of an expression, and one of a function that becomes a kernel.
 *
 *   evaluate(table, make, values, out, reduced)
 *
 * Arguments are broadcast, dimensions that all of them walk alike become one, a kernel is looked up
 * by their dtypes and the number of dimensions that is left, and is launched with the result as its
 * first argument. `table` maps keys to {kernel, dtype}; for a new key make(key) gives one. A key
 * has a byte for the number of dimensions, one that is 1 if all are reduced, and one for each
 * value: its dtype for an array, its dtype and 64 for a number, and 128 too for a number that takes
 * the type of what it meets. `reduced` says what a reduction takes away: a bit for each dimension
 * from the last one, -1 for all of them, 0 for none. `out` is nil or an array. Returns the array; a
 * number for a result of rank 0.
 *
 *   dispatch(table, make, values...) launches the kernel for arguments as they are; its key has a
 * second byte for each, the rank.
 */
#include "binding.h"

#include "broadcast.h"

#include <string.h>

/** One call. Views are borrowed copies of those of arrays, which are on the stack. */
typedef struct call {
    int n;
    bool is_view[QN_MAX_PARAMS];
    qn_arg arg[QN_MAX_PARAMS];
    qn_view view[QN_MAX_PARAMS]; /* [0] is the result */
    bind_shape shape;
} call;

static void copy_view(qn_view *to, const qn_view *from)
{
    memcpy(to, from,
           offsetof(qn_view, layout.dim) + (size_t)from->layout.rank * sizeof from->layout.dim[0]);
}

/** Takes the value at an index of the stack as operand i, and gives its byte of the key. */
static char take(lua_State *L, call *c, int i, int index)
{
    const lq_array *a = lq_test(L, index, LQ_ARRAY);
    c->is_view[i] = a != NULL;
    if (a) {
        copy_view(&c->view[i], &a->view);
        return (char)a->view.dtype;
    }
    int dtype = QN_VOID, weak = 128;
    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        dtype = QN_BOOL;
        weak = 0;
        break;
    case LUA_TNUMBER:
#if LQ_HAS_INTEGERS
        dtype = lua_isinteger(L, index) ? QN_I64 : QN_F64;
#else
        dtype = QN_F64;
#endif
        break;
    case LUA_TTABLE:
        dtype = QN_C128;
        break;
    default:
        lq_error(L, QN_ERR_ARGUMENT, "operand %d: expected an array or a number, not a %s", i,
                 luaL_typename(L, index));
    }
    lq_scalar(L, index, dtype, "operand", &c->arg[i]);
    return (char)(dtype | 64 | weak);
}

/** Pushes the entry of a key: {kernel, dtype}. Table and function are at indices 1 and 2. */
static void push_entry(lua_State *L, const char *key, int n)
{
    lua_pushlstring(L, key, (size_t)n);
    lua_pushvalue(L, -1);
    lua_rawget(L, 1);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushvalue(L, 2);
        lua_pushvalue(L, -2);
        lua_call(L, 1, 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, 1);
    }
    lua_remove(L, -2);
}

/** The kernel of the entry at an index, which stays in its table. */
static const lq_kernel *kernel_of(lua_State *L, int entry)
{
    lua_rawgeti(L, entry, 1);
    const lq_kernel *k = lq_test(L, -1, LQ_KERNEL);
    if (!k)
        lq_error(L, QN_ERR_ARGUMENT, "make(key) gives a kernel and a dtype");
    lua_pop(L, 1);
    return k;
}

/** Where a new result is made: on the GPU if an operand is there. */
static int space_of(const call *c)
{
    for (int i = 1; i < c->n; i++)
        if (c->is_view[i] && c->view[i].space == QN_SPACE_CUDA)
            return QN_SPACE_CUDA;
    return QN_SPACE_HOST;
}

/** Pushes the result: the given array, whose extents must be these, or a new one. */
static void push_result(lua_State *L, call *c, int entry, int n, const int64_t *extents)
{
    int64_t lower[QN_MAX_RANK];
    for (int d = 0; d < n; d++)
        lower[d] = 1;
    if (lua_isnil(L, 4)) {
        lua_rawgeti(L, entry, 2);
        int dtype = lq_dtype(L, -1);
        lua_pop(L, 1);
        lq_make_array(L, n, extents, lower, dtype, space_of(c), true);
    } else {
        lua_pushvalue(L, 4);
    }
    const lq_array *a = lq_array_at(L, -1, "out");
    bool fits = a->view.layout.rank == n;
    for (int d = 0; fits && d < n; d++)
        fits = a->view.layout.dim[d].extent == extents[d];
    if (!fits)
        lq_error(L, QN_ERR_EXTENT, "the array for the result has another shape");
    copy_view(&c->view[0], &a->view);
    for (int d = 0; d < n; d++)
        c->view[0].layout.dim[d].lower = 0;
}

/** Takes the values of the table at index 3, and broadcasts them. */
static void take_values(lua_State *L, call *c, char *key)
{
    int64_t n = lq_length(L, 3), two[2];
    if (n >= QN_MAX_PARAMS)
        lq_error(L, QN_ERR_LIMIT, "%d operands, at most %d", (int)n, QN_MAX_PARAMS - 1);
    c->n = c->shape.n = 1 + (int)n;
    c->shape.layout[0] = NULL;
    luaL_checkstack(L, (int)n + 16, "operands");
    for (int i = 1; i < c->n; i++) {
        lua_rawgeti(L, 3, i);
        key[1 + i] = take(L, c, i, lua_gettop(L));
        c->shape.layout[i] = c->is_view[i] ? &c->view[i].layout : NULL;
        if (c->is_view[i] && !qn_layout_is_strided(&c->view[i].layout))
            lq_error(L, QN_ERR_UNSUPPORTED, "operand %d: its layout has no strides", i);
    }
    if (!bind_extents(&c->shape, two))
        lq_error(L, QN_ERR_EXTENT, "operands do not broadcast: extents %d and %d", (int)two[0],
                 (int)two[1]);
    bind_stretch(&c->shape);
}

/** Pushes the element of a result without dimensions. */
static void push_number(lua_State *L, const qn_view *v)
{
    qn_error err = {0};
    if (v->space == QN_SPACE_CUDA) {
        const lq_array *here = lq_make_array(L, 0, NULL, NULL, v->dtype, QN_SPACE_HOST, true);
        if (qn_deep_copy(lq_context(L), &here->view, v, &err))
            lq_raise(L, &err);
        v = &here->view;
    }
    lq_push_element(L, v->dtype, v->data);
}

int lq_evaluate(lua_State *L)
{
    call c;
    char key[QN_MAX_PARAMS + 2];
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 5);
    int64_t reduced = lq_integer(L, 5, "reduced"), extents[QN_MAX_RANK];
    take_values(L, &c, key);
    int n = bind_kept(&c.shape, reduced, extents), rank = c.shape.rank;
    if (reduced == -1)
        bind_join(&c.shape);
    key[0] = (char)c.shape.rank;
    key[1] = (char)(reduced == -1);
    push_entry(L, key, c.n + 1);
    int entry = lua_gettop(L);
    push_result(L, &c, entry, n, extents);
    int result = lua_gettop(L);
    if (reduced == 0) { /* the result takes part in what is joined; until now it was only known
                           which dtype it has, of a kernel of any rank */
        c.shape.layout[0] = &c.view[0].layout;
        bind_join(&c.shape);
        if (c.shape.rank != rank) {
            key[0] = (char)c.shape.rank;
            push_entry(L, key, c.n + 1);
            entry = lua_gettop(L);
        }
    }
    for (int i = 0; i < c.n; i++)
        if (i == 0 || c.is_view[i]) {
            c.view[i].label = NULL; /* messages have the name of the parameter */
            c.arg[i] = qn_arg_view(&c.view[i]);
        }
    lq_launch(L, kernel_of(L, entry), c.n, c.arg);
    if (n == 0 && lua_isnil(L, 4))
        push_number(L, &c.view[0]);
    else
        lua_pushvalue(L, result);
    return 1;
}

int lq_dispatch(lua_State *L)
{
    int n = lua_gettop(L) - 2;
    qn_arg args[QN_MAX_PARAMS];
    char key[2 * QN_MAX_PARAMS];
    call c; /* of which only the scalars are used */
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_checktype(L, 2, LUA_TFUNCTION);
    if (n >= QN_MAX_PARAMS)
        lq_error(L, QN_ERR_LIMIT, "%d arguments, at most %d", n, QN_MAX_PARAMS - 1);
    for (int i = 0; i < n; i++) {
        const lq_array *a = lq_test(L, i + 3, LQ_ARRAY);
        key[i] = a ? (char)a->view.dtype : take(L, &c, i, i + 3);
        key[n + i] = (char)(a ? a->view.layout.rank : 0);
        args[i] = a ? qn_arg_view(&a->view) : c.arg[i];
    }
    push_entry(L, key, 2 * n);
    lq_launch(L, kernel_of(L, lua_gettop(L)), n, args);
    return 0;
}
