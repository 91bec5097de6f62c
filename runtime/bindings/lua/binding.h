/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binding.h: what the files of the Lua module share. The module is C on the interface that Lua 5.4
 * and LuaJIT have in common, and uses the public headers of Quern; it is compiled once for each.
 */
#ifndef QUERN_LUA_BINDING_H
#define QUERN_LUA_BINDING_H

#include <lauxlib.h>
#include <lua.h>

#include "quern/cuda.h"
#include "quern/embed.h"

/* ---------------------------------------------------------------- versions of Lua */

#if LUA_VERSION_NUM >= 504
#define LQ_HAS_INTEGERS 1
/** New userdata with room for one value that it keeps alive. */
#define lq_newuserdata(L, bytes) lua_newuserdatauv(L, bytes, 1)
#define lq_length(L, i) ((int64_t)lua_rawlen(L, i))
#else
#define LQ_HAS_INTEGERS 0
#define lq_newuserdata(L, bytes) lua_newuserdata(L, bytes)
#define lq_length(L, i) ((int64_t)lua_objlen(L, i))
#endif

/* ---------------------------------------------------------------- module.c */

/** Kinds of userdata with a metatable. */
enum { LQ_ARRAY, LQ_KERNEL, LQ_BUILDER, LQ_N_KINDS };
/** What all functions of the module share: their first upvalue, one for each Lua state. */
typedef struct lq_state {
    qn_context *context; /* NULL: not made yet */
    const void *meta[LQ_N_KINDS];
    int64_t made_bytes; /* of arrays, since garbage was last collected on their account */
} lq_state;

/** The state of the function that runs. */
lq_state *lq_state_of(lua_State *L);
/** The context, made when it is first wanted. */
qn_context *lq_context(lua_State *L);
/** Raises the error of a call as a table with message, status, line and place. Does not return. */
int lq_raise(lua_State *L, const qn_error *err);
/** Raises an error of the binding, whose message is formatted as by lua_pushfstring. */
int lq_error(lua_State *L, qn_status status, const char *format, ...);
/** Gives the userdata on top the metatable of a kind. */
void lq_set_kind(lua_State *L, int kind);
/** The userdata at an index if it is of a kind, else NULL. */
void *lq_test(lua_State *L, int index, int kind);
/** Makes the metatable of a kind with these functions, which its field __index has too. */
void lq_new_kind(lua_State *L, int kind, const char *name, const luaL_Reg *functions);
/** The integer at an index. Raises an error that names `what` for all else. */
int64_t lq_integer(lua_State *L, int index, const char *what);
/** Pushes an integer. */
void lq_push_integer(lua_State *L, int64_t value);
/** Integers of a table, or of one integer. Returns their number, at most `most`. */
int lq_integers(lua_State *L, int index, const char *what, int most, int64_t *out);

/* ---------------------------------------------------------------- array.c, element.c */

/** An array. What it keeps alive, if the view does not own its memory, is its user value. */
typedef struct lq_array {
    qn_view view;
} lq_array;

/** The array at an index. Raises an error that names `what` for all else. */
lq_array *lq_array_at(lua_State *L, int index, const char *what);
/** Pushes an array without memory, whose view the caller sets. `base` is the index of what keeps
 * the memory, or of an array whose base that is, or 0. Arrays are pushed before they are made, so
 * that nothing is lost where Lua has no memory. */
qn_view *lq_push_view(lua_State *L, int base);
/** Pushes a new array. */
lq_array *lq_make_array(lua_State *L, int rank, const int64_t *extents, const int64_t *lower,
                        int dtype, int space, bool is_raw);
/** A dtype by name, f64 for nil. */
int lq_dtype(lua_State *L, int index);
/** wrap(memory, extents, dtype, strides, lower, base, is_read_only). */
int lq_wrap(lua_State *L);
void lq_open_array(lua_State *L);

/** 'B', 'S', 'U', 'F' or 'C', the class of quern/dtypes.def; 0 for what is no dtype. */
char lq_dtype_kind(int dtype);
/** dtypes(): a table of number, kind, bits and part by name. */
int lq_dtypes(lua_State *L);
/** Pushes an element. */
void lq_push_element(lua_State *L, int dtype, const void *element);
/** The scalar of a dtype for the value at an index. Raises an error that names `what` for values
 * that do not fit. */
void lq_scalar(lua_State *L, int index, int dtype, const char *what, qn_arg *out);
/** Functions on elements and tables: __index, __newindex, get, set, fill, totable, array. */
int lq_index(lua_State *L);
int lq_newindex(lua_State *L);
int lq_get(lua_State *L);
int lq_set(lua_State *L);
int lq_fill(lua_State *L);
int lq_totable(lua_State *L);
int lq_from_table(lua_State *L);

/* ---------------------------------------------------------------- kernel.c, evaluate.c */

typedef struct lq_kernel {
    qn_kernel *kernel;
    qn_options *options; /* NULL: the default ones */
    bool prints;
    int n;
    qn_param_info param[QN_MAX_PARAMS];
} lq_kernel;
/** Pushes a kernel that is none yet. */
lq_kernel *lq_push_kernel(lua_State *L);
/** Sets the kernel of a new one, which takes it over. */
void lq_set_kernel(lq_kernel *k, qn_kernel *kernel);
/** Launches. Raises errors. */
void lq_launch(lua_State *L, const lq_kernel *k, int n, const qn_arg *args);
int lq_parse(lua_State *L);
void lq_open_kernel(lua_State *L);
/** evaluate(table, make, values, out, reduced) and dispatch(table, make, values...). */
int lq_evaluate(lua_State *L);
int lq_dispatch(lua_State *L);

/* ---------------------------------------------------------------- builder.c */

int lq_builder_new(lua_State *L);
void lq_open_builder(lua_State *L);

#endif
