/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module.c: the module quern.core: the context, errors, and functions of the module. The modules in
 * Lua beside it are the interface that users see. A launch that fails in a child of fork makes a
 * new context; nothing else here depends on the process.
 */
#include "binding.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static const char registry_sources[] = "quern.sources", registry_error[] = "quern.Error";
static const char *const registry_kinds[LQ_N_KINDS] = {"quern.Array", "quern.Kernel",
                                                       "quern.Builder"};

lq_state *lq_state_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

qn_context *lq_context(lua_State *L)
{
    lq_state *s = lq_state_of(L);
    qn_context_options o = {.bytes = sizeof o};
    qn_error err = {0};
    if (!s->context && qn_context_new(&o, &s->context, &err))
        lq_raise(L, &err);
    return s->context;
}

static int state_gc(lua_State *L)
{
    lq_state *s = lua_touserdata(L, 1); /* its metatable is seen by nobody else */
    qn_context_release(s->context);
    s->context = NULL;
    return 0;
}

/* ---------------------------------------------------------------- errors */

/** Pushes "heat.lua:12: ", the place outside this package from which it was called; "" if there is
 * none. */
static void push_place(lua_State *L)
{
    lua_Debug at;
    lua_getfield(L, LUA_REGISTRYINDEX, registry_sources);
    for (int level = 0; lua_getstack(L, level, &at); level++) {
        lua_getinfo(L, "Sl", &at);
        if (at.currentline <= 0)
            continue;
        lua_getfield(L, -1, at.source);
        bool is_ours = lua_toboolean(L, -1);
        lua_pop(L, 1);
        if (is_ours)
            continue;
        lua_pop(L, 1);
        lua_pushfstring(L, "%s:%d: ", at.short_src, at.currentline);
        return;
    }
    lua_pop(L, 1);
    lua_pushliteral(L, "");
}

/** File and line of "...; at FILE:LINE" or "...; at FILE:LINE:COLUMN" into the table on top. */
static void set_source(lua_State *L, const qn_error *err)
{
    const char *at = NULL;
    for (const char *p = err->message; (p = strstr(p, "; at ")) != NULL; p++)
        at = p + 5;
    char line[16];
    lua_pushfstring(L, ":%d", (int)err->line);
    strncpy(line, lua_tostring(L, -1), sizeof line - 1);
    line[sizeof line - 1] = 0;
    lua_pop(L, 1);
    const char *end = at && err->line > 0 ? strstr(at, line) : NULL;
    if (end) {
        lua_pushlstring(L, at, (size_t)(end - at));
        lua_setfield(L, -2, "file");
    }
}

int lq_raise(lua_State *L, const qn_error *err)
{
    lua_createtable(L, 0, 5);
    lua_pushstring(L, err->message);
    lua_setfield(L, -2, "message");
    lua_pushstring(L, qn_status_name(err->status));
    lua_setfield(L, -2, "status");
    if (err->line > 0) {
        lua_pushinteger(L, err->line);
        lua_setfield(L, -2, "line");
    }
    set_source(L, err);
    push_place(L);
    lua_setfield(L, -2, "where");
    luaL_getmetatable(L, registry_error);
    lua_setmetatable(L, -2);
    return lua_error(L);
}

int lq_error(lua_State *L, qn_status status, const char *format, ...)
{
    qn_error err = {.status = (int32_t)status};
    va_list list;
    va_start(list, format);
    lua_pushvfstring(L, format, list);
    va_end(list);
    strncpy(err.message, lua_tostring(L, -1), sizeof err.message - 1);
    return lq_raise(L, &err);
}

static int error_tostring(lua_State *L)
{
    lua_getfield(L, 1, "where");
    lua_getfield(L, 1, "message");
    lua_concat(L, 2);
    return 1;
}

static int error_concat(lua_State *L)
{
    for (int i = 1; i <= 2; i++)
        if (!luaL_callmeta(L, i, "__tostring"))
            lua_pushvalue(L, i);
    lua_concat(L, 2);
    return 1;
}

/** fail(status, message): raises an error of the package. */
static int fail(lua_State *L)
{
    int64_t status = 0;
    qn_error err = {0};
    if (qn_number_by_name(luaL_checkstring(L, 1), &status, &err))
        return lq_raise(L, &err);
    return lq_error(L, (qn_status)status, "%s", luaL_checkstring(L, 2));
}

/* ---------------------------------------------------------------- kinds of userdata */

void lq_set_kind(lua_State *L, int kind)
{
    luaL_getmetatable(L, registry_kinds[kind]);
    lua_setmetatable(L, -2);
}

void *lq_test(lua_State *L, int index, int kind)
{
    void *found = lua_touserdata(L, index);
    if (!found || lua_islightuserdata(L, index) || !lua_getmetatable(L, index))
        return NULL;
    bool is_kind = lua_topointer(L, -1) == lq_state_of(L)->meta[kind];
    lua_pop(L, 1);
    return is_kind ? found : NULL;
}

void lq_new_kind(lua_State *L, int kind, const char *name, const luaL_Reg *functions)
{
    luaL_newmetatable(L, registry_kinds[kind]);
    lq_state_of(L)->meta[kind] = lua_topointer(L, -1);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
    lua_pushvalue(L, lua_upvalueindex(1));
    luaL_setfuncs(L, functions, 1);
}

/* ---------------------------------------------------------------- integers */

int64_t lq_integer(lua_State *L, int index, const char *what)
{
#if LQ_HAS_INTEGERS
    int is_integer;
    lua_Integer value = lua_tointegerx(L, index, &is_integer);
    if (is_integer && lua_type(L, index) == LUA_TNUMBER)
        return value;
#else
    lua_Number value = lua_tonumber(L, index);
    if (lua_type(L, index) == LUA_TNUMBER && value == floor(value) && fabs(value) <= 0x1p53)
        return (int64_t)value;
#endif
    if (lua_type(L, index) == LUA_TNUMBER)
        lq_error(L, QN_ERR_ARGUMENT, "%s: %f is no integer", what, lua_tonumber(L, index));
    return lq_error(L, QN_ERR_ARGUMENT, "%s: expected an integer, not a %s", what,
                    luaL_typename(L, index));
}

void lq_push_integer(lua_State *L, int64_t value)
{
#if LQ_HAS_INTEGERS
    lua_pushinteger(L, value);
#else
    if (value > (int64_t)1 << 53 || value < -((int64_t)1 << 53))
        lq_error(L, QN_ERR_OVERFLOW, "an integer beyond 2^53 is no number of LuaJIT");
    lua_pushnumber(L, (lua_Number)value);
#endif
}

int lq_integers(lua_State *L, int index, const char *what, int most, int64_t *out)
{
    if (lua_type(L, index) == LUA_TNUMBER) {
        out[0] = lq_integer(L, index, what);
        return 1;
    }
    if (!lua_istable(L, index))
        lq_error(L, QN_ERR_ARGUMENT, "%s: expected an integer or a table of them, not a %s", what,
                 luaL_typename(L, index));
    int64_t n = lq_length(L, index);
    if (n > most)
        lq_error(L, QN_ERR_RANK, "%s: %d of them, at most %d", what,
                 (int)(n < INT32_MAX ? n : INT32_MAX), most);
    for (int i = 0; i < (int)n; i++) {
        lua_rawgeti(L, index, i + 1);
        out[i] = lq_integer(L, -1, what);
        lua_pop(L, 1);
    }
    return (int)n;
}

/* ---------------------------------------------------------------- functions */

static int numbers(lua_State *L)
{
    int64_t value;
    const char *name;
    lua_newtable(L);
    for (int i = 0; (name = qn_number_name(i, &value)) != NULL; i++) {
        lua_pushnumber(L, (lua_Number)value);
        lua_setfield(L, -2, name);
    }
    return 1;
}

static int counters(lua_State *L)
{
    qn_counters n = {0};
    qn_context_counters(lq_context(L), &n, sizeof n);
    lua_newtable(L);
#define QN_X(name, text)                                                                           \
    lq_push_integer(L, n.name);                                                                    \
    lua_setfield(L, -2, #name);
    QN_COUNTER_LIST(QN_X)
#undef QN_X
    return 1;
}

/** ours(source): functions of this chunk are no place in the source of a user. Returns the table
 * whose keys these sources are. */
static int ours(lua_State *L)
{
    luaL_checkstring(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, registry_sources);
    lua_pushvalue(L, 1);
    lua_pushboolean(L, 1);
    lua_settable(L, -3);
    return 1;
}

/** math_functions(): the lists of arguments of the functions of quern/math.def, by their names; and
 * the numbers of arguments of those of random numbers. */
static int math_functions(lua_State *L)
{
    static const char *const rows[][2] = {
#define QN_MATH(name, arguments, results, doc) {#name, #arguments},
#include "quern/math.def"
#undef QN_MATH
    };
    static const struct {
        const char *name;
        int arity;
    } random[] = {
#define QN_MATH(name, arguments, results, doc)
#define QN_RANDOM(name, arity, doc) {#name, arity},
#include "quern/math.def"
#undef QN_MATH
    };
    lua_newtable(L);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lua_pushstring(L, rows[i][1]);
        lua_setfield(L, -2, rows[i][0]);
    }
    lua_newtable(L);
    for (size_t i = 0; i < sizeof random / sizeof random[0]; i++) {
        lua_pushinteger(L, random[i].arity);
        lua_setfield(L, -2, random[i].name);
    }
    return 2;
}

/** new_array(extents, dtype, lower, space, is_raw) */
static int new_array(lua_State *L)
{
    int64_t extents[QN_MAX_RANK], lower[QN_MAX_RANK];
    int rank = lq_integers(L, 1, "extents", QN_MAX_RANK, extents);
    int dtype = lq_dtype(L, 2);
    if (lua_istable(L, 3)) {
        if (lq_integers(L, 3, "lower bounds", QN_MAX_RANK, lower) != rank)
            lq_error(L, QN_ERR_RANK, "an array of rank %d has as many lower bounds", rank);
    } else {
        for (int d = 0; d < rank; d++)
            lower[d] = lua_isnoneornil(L, 3) ? 1 : lq_integer(L, 3, "lower bound");
    }
    int space = (int)lq_integer(L, 4, "space");
    lq_make_array(L, rank, extents, lower, dtype, space, lua_toboolean(L, 5));
    return 1;
}

static const luaL_Reg functions[] = {{"fail", fail},
                                     {"numbers", numbers},
                                     {"dtypes", lq_dtypes},
                                     {"counters", counters},
                                     {"ours", ours},
                                     {"parse", lq_parse},
                                     {"new_array", new_array},
                                     {"array", lq_from_table},
                                     {"new_builder", lq_builder_new},
                                     {"evaluate", lq_evaluate},
                                     {"dispatch", lq_dispatch},
                                     {"wrap", lq_wrap},
                                     {"math_functions", math_functions},
                                     {NULL, NULL}};

/** open(state): fills the table of the module. */
static int open_module(lua_State *L)
{
    lua_newtable(L);
    lua_setfield(L, LUA_REGISTRYINDEX, registry_sources);
    luaL_newmetatable(L, registry_error);
    lua_pushcfunction(L, error_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pushcfunction(L, error_concat);
    lua_setfield(L, -2, "__concat");
    lua_pushliteral(L, "quern.Error");
    lua_setfield(L, -2, "__name");
    lua_newtable(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    luaL_setfuncs(L, functions, 1);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "Error");
    lq_open_array(L);
    lua_setfield(L, -2, "Array");
    lq_open_kernel(L);
    lua_setfield(L, -2, "Kernel");
    lq_open_builder(L);
    lua_setfield(L, -2, "Builder");
    uint32_t v = qn_version();
    lua_pushfstring(L, "%d.%d.%d", (int)(v >> 16), (int)(v >> 8 & 255), (int)(v & 255));
    lua_setfield(L, -2, "version");
    lua_pushboolean(L, LQ_HAS_INTEGERS);
    lua_setfield(L, -2, "has_integers");
    return 1;
}

QN_API int luaopen_quern_core(lua_State *L);
int luaopen_quern_core(lua_State *L)
{
    lq_state *s = lq_newuserdata(L, sizeof *s);
    *s = (lq_state){0};
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, state_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    lua_pushcclosure(L, open_module, 1);
    lua_call(L, 0, 1);
    return 1;
}
