/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c: quern.Kernel: a finished kernel with the options of its launches. A call takes arrays
 * and numbers in the order of the parameters, or one table with their names.
 */
#include "binding.h"

#include <string.h>

/** The kernel at index 1. */
static lq_kernel *self_of(lua_State *L)
{
    lq_kernel *k = lq_test(L, 1, LQ_KERNEL);
    if (!k || !k->kernel)
        lq_error(L, QN_ERR_ARGUMENT, "expected a kernel, not a %s", luaL_typename(L, 1));
    return k;
}

lq_kernel *lq_push_kernel(lua_State *L)
{
    lq_kernel *k = lq_newuserdata(L, sizeof *k);
    k->kernel = NULL;
    k->options = NULL;
    k->prints = false;
    k->n = 0;
    lq_set_kind(L, LQ_KERNEL);
    return k;
}

void lq_set_kernel(lq_kernel *k, qn_kernel *kernel)
{
    k->kernel = kernel;
    k->n = qn_kernel_n_params(kernel);
    for (int i = 0; i < k->n; i++)
        qn_kernel_param(kernel, i, &k->param[i], sizeof k->param[i], NULL);
    int n = qn_kernel_n_statements(kernel);
    qn_statement s;
    for (int i = 1; i <= n && !k->prints; i++)
        k->prints = qn_kernel_statement(kernel, i, &s, sizeof s, NULL) == QN_OK &&
                    strcmp(s.word, "print") == 0;
}

int lq_parse(lua_State *L)
{
    size_t n;
    const char *text = luaL_checklstring(L, 1, &n);
    lq_kernel *k = lq_push_kernel(L);
    qn_kernel *parsed = NULL;
    qn_error err = {0};
    if (qn_kernel_parse(text, n, &parsed, &err))
        lq_raise(L, &err);
    lq_set_kernel(k, parsed);
    return 1;
}

/* ---------------------------------------------------------------- launches */

/** Where lines that a kernel prints go: print_line is at the index. */
typedef struct printer {
    lua_State *L;
    int index;
} printer;

/** print(text) of a qn_printed, called by lua_pcall, as errors must not leave the launch. */
static int print_line(lua_State *L)
{
    const qn_printed *line = lua_touserdata(L, 1);
    lua_getglobal(L, "print");
    lua_pushstring(L, line->text);
    lua_call(L, 1, 0);
    return 0;
}

static void on_print(void *arg, const qn_printed *line)
{
    printer *p = arg;
    lua_pushvalue(p->L, p->index);
    lua_pushlightuserdata(p->L, (void *)(uintptr_t)line);
    if (lua_pcall(p->L, 1, 0, 0))
        lua_pop(p->L, 1);
}

/** Launches on the stream of a GPU and waits, so that failures are those of this call. */
static qn_status launch_on_device(qn_context *c, const qn_kernel *k, int n, const qn_arg *args,
                                  qn_options *o, const qn_view *there, qn_error *err)
{
    qn_status status = qn_stream_new(c, there->device, &o->stream, err);
    if (status)
        return status;
    o->executor = QN_CUDA;
    status = qn_launch(c, k, n, args, o, err);
    if (!status)
        status = qn_stream_fence(o->stream, err);
    qn_stream_release(o->stream);
    return status;
}

void lq_launch(lua_State *L, const lq_kernel *k, int n, const qn_arg *args)
{
    qn_options o = {.bytes = sizeof o};
    if (k->options)
        memcpy(&o, k->options, sizeof o);
    printer p = {L, 0};
    if (k->prints) {
        luaL_checkstack(L, 4, "launch");
        lua_pushcfunction(L, print_line);
        p.index = lua_gettop(L);
        o.print = on_print;
        o.print_arg = &p;
    }
    const qn_view *there = NULL;
    for (int i = 0; i < n; i++)
        if (args[i].view && args[i].view->space == QN_SPACE_CUDA)
            there = args[i].view;
    qn_error err = {0};
    for (int attempt = 0; attempt < 2; attempt++) {
        qn_context *c = lq_context(L);
        qn_status status = there ? launch_on_device(c, k->kernel, n, args, &o, there, &err)
                                 : qn_launch(c, k->kernel, n, args, &o, &err);
        if (!status)
            return;
        if (status != QN_ERR_FORKED || there)
            break;
        lq_state_of(L)->context = NULL; /* the parent's, whose threads are not here */
    }
    lq_raise(L, &err);
}

/** Puts the values for parameters, from a table with their names at index `first`, in its place. */
static void by_name(lua_State *L, const lq_kernel *k, int first)
{
    for (int i = 0; i < k->n; i++) {
        lua_getfield(L, first, k->param[i].name);
        if (lua_isnil(L, -1))
            lq_error(L, QN_ERR_ARGUMENT, "kernel \"%s\": no argument for parameter \"%s\"",
                     qn_kernel_name(k->kernel), k->param[i].name);
    }
    lua_pushnil(L);
    while (lua_next(L, first)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING ||
            qn_kernel_find_param(k->kernel, lua_tostring(L, -1)) < 0)
            lq_error(L, QN_ERR_ARGUMENT, "kernel \"%s\" has no parameter \"%s\"",
                     qn_kernel_name(k->kernel),
                     lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1));
    }
    lua_remove(L, first);
}

/** Arguments from the stack, from an index on. */
static void take_arguments(lua_State *L, const lq_kernel *k, int first, qn_arg *args)
{
    int n = lua_gettop(L) - first + 1;
    if (n == 1 && lua_istable(L, first)) {
        lua_rawgeti(L, first, 1);
        bool is_list = !lua_isnil(L, -1);
        lua_pop(L, 1);
        if (!is_list) {
            luaL_checkstack(L, k->n + 8, "arguments");
            by_name(L, k, first);
            n = k->n;
        }
    }
    if (n != k->n)
        lq_error(L, QN_ERR_ARGUMENT, "kernel \"%s\" takes %d arguments, not %d",
                 qn_kernel_name(k->kernel), k->n, n);
    for (int i = 0; i < n; i++) {
        const qn_param_info *p = &k->param[i];
        if (p->rank < 0) {
            lq_scalar(L, first + i, p->dtype, p->name, &args[i]);
        } else {
            const lq_array *a = lq_array_at(L, first + i, p->name);
            args[i] = qn_arg_view(&a->view);
        }
    }
}

/** kernel(...) */
static int kernel_call(lua_State *L)
{
    const lq_kernel *k = self_of(L);
    qn_arg args[QN_MAX_PARAMS];
    take_arguments(L, k, 2, args);
    lq_launch(L, k, k->n, args);
    return 0;
}

/* ---------------------------------------------------------------- texts */

static int text(lua_State *L)
{
    const qn_kernel *k = self_of(L)->kernel;
    size_t n = qn_kernel_print(k, NULL, 0);
    char *buffer = lq_newuserdata(L, n + 1);
    qn_kernel_print(k, buffer, n + 1);
    lua_pushlstring(L, buffer, n);
    return 1;
}

/** kernel:explain(...) */
static int explain(lua_State *L)
{
    const lq_kernel *k = self_of(L);
    qn_arg args[QN_MAX_PARAMS];
    qn_error err = {0};
    size_t n = 0;
    qn_context *c = lq_context(L);
    take_arguments(L, k, 2, args);
    if (qn_explain(c, k->kernel, k->n, args, k->options, NULL, 0, &n, &err))
        lq_raise(L, &err);
    char *buffer = lq_newuserdata(L, n + 1);
    buffer[0] = 0;
    qn_explain(c, k->kernel, k->n, args, k->options, buffer, n + 1, NULL, NULL);
    lua_pushstring(L, buffer);
    return 1;
}

/** Copies a text of the code for arguments; returns its length. */
static size_t code_text(lua_State *L, const lq_kernel *k, const qn_arg *args, int bit, char *buffer,
                        size_t bytes)
{
    qn_code *code = NULL;
    qn_error err = {0};
    if (qn_specialize(lq_context(L), k->kernel, k->n, args, k->options, &code, &err))
        lq_raise(L, &err);
    size_t n = qn_code_text(code, bit, buffer, bytes);
    qn_code_release(code);
    return n;
}

/** kernel:stage(name, ...): the text of a stage of the code for these arguments. */
static int stage(lua_State *L)
{
    const lq_kernel *k = self_of(L);
    const char *word = luaL_checkstring(L, 2);
    qn_arg args[QN_MAX_PARAMS];
    int bit = 0;
#define QN_X(NAME, number, name)                                                                   \
    if (strcmp(word, name) == 0)                                                                   \
        bit = QN_DUMP_##NAME;
    QN_DUMP_LIST(QN_X)
#undef QN_X
    if (!bit)
        lq_error(L, QN_ERR_ARGUMENT,
                 "stage: \"%s\" is not kernel, key, plan, schedule, estimate, llvm, asm or ptx",
                 word);
    take_arguments(L, k, 3, args);
    size_t n = code_text(L, k, args, bit, NULL, 0);
    char *buffer = lq_newuserdata(L, n + 1); /* no code is held while this may fail */
    buffer[0] = 0;
    code_text(L, k, args, bit, buffer, n + 1);
    lua_pushstring(L, buffer);
    return 1;
}

/* ---------------------------------------------------------------- what a kernel is */

/** kernel:options(text): the same kernel, launched with options. */
static int options(lua_State *L)
{
    const lq_kernel *k = self_of(L);
    const char *words = luaL_checkstring(L, 2);
    lq_kernel *other = lq_push_kernel(L);
    qn_error err = {0};
    if (qn_options_parse(words, k->kernel, &other->options, &err))
        lq_raise(L, &err);
    lq_set_kernel(other, qn_kernel_retain(k->kernel));
    return 1;
}

static int name(lua_State *L)
{
    lua_pushstring(L, qn_kernel_name(self_of(L)->kernel));
    return 1;
}

static void set_string(lua_State *L, const char *field, const char *value)
{
    lua_pushstring(L, value); /* nil for NULL */
    lua_setfield(L, -2, field);
}

static void set_integer(lua_State *L, const char *field, int64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, field);
}

static int params(lua_State *L)
{
    const lq_kernel *k = self_of(L);
    lua_createtable(L, k->n, 0);
    for (int i = 0; i < k->n; i++) {
        const qn_param_info *p = &k->param[i];
        lua_createtable(L, 0, 5);
        set_string(L, "name", p->name);
        set_string(L, "dtype", qn_dtype_name(p->dtype));
        if (p->rank >= 0)
            set_integer(L, "rank", p->rank);
        lua_pushboolean(L, p->is_read);
        lua_setfield(L, -2, "is_read");
        lua_pushboolean(L, p->is_written);
        lua_setfield(L, -2, "is_written");
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/** Pushes a statement as a table. */
static void push_statement(lua_State *L, const qn_statement *s)
{
    lua_createtable(L, 0, 10);
    set_string(L, "word", s->word);
    set_string(L, "dtype", s->dtype ? qn_dtype_name(s->dtype) : NULL);
    set_integer(L, "parent", s->parent);
    set_string(L, "text", s->text);
    set_string(L, "name", s->name);
    set_string(L, "file", s->file);
    if (s->line > 0)
        set_integer(L, "line", s->line);
    lua_createtable(L, s->n_args, 0);
    for (int i = 0; i < s->n_args; i++) {
        lua_pushinteger(L, (lua_Integer)s->args[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "args");
    lua_createtable(L, 3, 0);
    for (int i = 0; i < 3; i++) {
        lua_pushinteger(L, (lua_Integer)s->region[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "region");
}

static int statements(lua_State *L)
{
    const qn_kernel *k = self_of(L)->kernel;
    int n = qn_kernel_n_statements(k);
    qn_statement s;
    lua_createtable(L, n, 0);
    for (int i = 1; i <= n; i++) {
        qn_kernel_statement(k, i, &s, sizeof s, NULL);
        push_statement(L, &s);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

static int kernel_tostring(lua_State *L)
{
    const lq_kernel *k = self_of(L);
    lua_pushfstring(L, "quern.Kernel \"%s\", %d parameters", qn_kernel_name(k->kernel), k->n);
    return 1;
}

static int kernel_gc(lua_State *L)
{
    lq_kernel *k = lq_test(L, 1, LQ_KERNEL);
    if (!k)
        return 0;
    qn_kernel_release(k->kernel);
    qn_options_release(k->options);
    k->kernel = NULL;
    k->options = NULL;
    return 0;
}

static const luaL_Reg functions[] = {
    {"__gc", kernel_gc},  {"__tostring", kernel_tostring}, {"__call", kernel_call},
    {"text", text},       {"explain", explain},            {"stage", stage},
    {"options", options}, {"name", name},                  {"params", params},
    {"statements", statements}, {NULL, NULL}};

void lq_open_kernel(lua_State *L)
{
    lq_new_kind(L, LQ_KERNEL, "quern.Kernel", functions);
}
