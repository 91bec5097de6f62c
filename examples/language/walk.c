/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c: the interpreter. It walks the nodes of a statement, finds the shape of each operation,
 * and records the operation as a value. Unless the engine waits, the record is computed at once.
 */
#include "language.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A call of a function: its parameters have values. */
typedef struct scope {
    const statement *function;
    value *value[MAX_ARGS];
} scope;

static value *evaluate(session *s, const node *n, const scope *in);

_Noreturn void fail(session *s, place at, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(s->error, sizeof s->error, format, list);
    va_end(list);
    s->error_at = at;
    longjmp(s->on_error, 1);
}

static void check_cancelled(session *s, place at)
{
    if (s->cancel && *s->cancel)
        fail(s, at, "cancelled");
}

/* Whether a record is an operation on single numbers, which is not worth a kernel. */
static bool is_of_numbers(const value *v)
{
    for (int i = 0; i < v->n_args; i++)
        if (v->arg[i]->kind != ARRAY)
            return false;
    return v->kind == ELEMENTWISE && v->rank == 0;
}

void force(session *s, value *v)
{
    if (v->kind == ARRAY)
        return;
    check_cancelled(s, v->at);
    if (is_of_numbers(v))
        compute_by_loops(s, v);
    else
        s->engine->compute(s, v);
    v->kind = ARRAY;
    v->size = 1;
    while (v->n_args > 0)
        value_is_used(s, v->arg[--v->n_args]);
}

/* ---------------------------------------------------------------- operations */

/** A call of an operation or of a function of the language; `id` is an op or a reduction. */
typedef struct call {
    session *s;
    place at;
    int id, n;
    value **args;
} call;

/* [record] */
/* Records an operation whose shape is known. It is computed now unless the engine waits and the
 * record is small. */
static value *record(const call *c, value_kind kind, int dim, int rank, const int64_t *extents)
{
    const engine *e = c->s->engine;
    value *v = value_new(c->s, kind, c->id, c->at,
                         kind == IOTA     ? 0
                         : kind == REDUCE ? 1
                                          : c->n,
                         c->args, rank, extents);
    v->dim = dim;
    if (v->size > MAX_RECORDED) {
        for (int i = 0; i < v->n_args; i++)
            force(c->s, v->arg[i]);
        v->size = 1 + v->n_args;
    }
    if (!e->waits || !e->waits(v) || is_of_numbers(v))
        force(c->s, v);
    return v;
}

static value *elementwise(const call *c)
{
    int64_t extents[MAX_RANK];
    const int rank = broadcast(c->s, c->at, c->n, c->args, extents);
    return record(c, ELEMENTWISE, -1, rank, extents);
}
/* [end] */

/* args[0][args[1], ...]: the elements of an array at indices, which have one shape. */
static value *pick(const call *c)
{
    int64_t extents[MAX_RANK];
    value *x = c->args[0];
    if (c->n - 1 != x->rank)
        fail(c->s, c->at, "an array of %d dimensions takes %d indices, not %d", x->rank, x->rank,
             c->n - 1);
    force(c->s, x);
    const int rank = broadcast(c->s, c->at, c->n - 1, c->args + 1, extents);
    return record(c, INDEX, -1, rank, extents);
}

/* Argument i, which is an integer from 0 to `most`. */
static int64_t integer_of(const call *c, int i, int64_t most)
{
    value *v = c->args[i];
    force(c->s, v);
    if (most < 0)
        fail(c->s, c->at, "a number has no dimensions");
    if (v->rank != 0)
        fail(c->s, c->at, "expected a number, found an array of %d dimensions", v->rank);
    const double x = *v->data;
    if (!(x >= 0 && x <= (double)most) || x != floor(x))
        fail(c->s, c->at, "expected an integer from 0 to %lld, found %g", (long long)most, x);
    return (int64_t)x;
}

/* reduction(x) or reduction(x, dimension) */
static value *reduce(const call *c)
{
    value *x = c->args[0];
    int64_t extents[MAX_RANK];
    int rank = 0;
    const int dim = c->n == 2 ? (int)integer_of(c, 1, x->rank - 1) : -1;
    if (x->rank == 0)
        return x;
    for (int d = 0; dim >= 0 && d < x->rank; d++)
        if (d != dim)
            extents[rank++] = x->extent[d];
    const int64_t n_terms = dim >= 0 ? x->extent[dim] : value_size(x);
    if (n_terms == 0 && (c->id == REDUCE_LEAST || c->id == REDUCE_GREATEST))
        fail(c->s, c->at, "of no elements none is the least or the greatest");
    return record(c, REDUCE, dim, rank, extents);
}

/* iota(n): 0, 1, ..., n - 1 */
static value *iota(const call *c)
{
    const int64_t extent = integer_of(c, 0, MAX_ELEMENTS);
    return record(c, IOTA, -1, 1, &extent);
}

/* extent(x, d) */
static value *extent_of(const call *c)
{
    return value_number(c->s, (double)c->args[0]->extent[integer_of(c, 1, c->args[0]->rank - 1)]);
}

/* [views] */
/* The elements of args[0] with other extents and strides. No element moves. */
static value *view(const call *c, int rank, const int64_t *extents, const int64_t *strides)
{
    value *v = value_new(c->s, ARRAY, 0, c->at, 0, NULL, rank, extents);
    memcpy(v->stride, strides, (size_t)rank * sizeof *strides);
    v->base = c->args[0];
    v->base->is_shared = true;
    v->data = v->base->data;
    return v;
}

/* transpose(x): the dimensions in reverse order. */
static value *transpose(const call *c)
{
    value *x = c->args[0];
    int64_t extents[MAX_RANK], strides[MAX_RANK];
    force(c->s, x);
    for (int d = 0; d < x->rank; d++) {
        extents[d] = x->extent[x->rank - 1 - d];
        strides[d] = x->stride[x->rank - 1 - d];
    }
    return view(c, x->rank, extents, strides);
}

/* expand(x, d): one dimension more, of extent 1 and number d. */
static value *expand(const call *c)
{
    value *x = c->args[0];
    int64_t extents[MAX_RANK + 1], strides[MAX_RANK + 1];
    const int64_t d = integer_of(c, 1, x->rank);
    force(c->s, x);
    for (int from = 0, to = 0; to <= x->rank; to++) {
        extents[to] = to == d ? 1 : x->extent[from];
        strides[to] = to == d ? 0 : x->stride[from++];
    }
    return view(c, x->rank + 1, extents, strides);
}
/* [end] */

/* Copies an array with strides, its first index slowest; returns the end. */
static double *copy_out(const value *v, int d, const double *data, double *to)
{
    if (d == v->rank) {
        *to = *data;
        return to + 1;
    }
    for (int64_t i = 0; i < v->extent[d]; i++)
        to = copy_out(v, d + 1, data + i * v->stride[d], to);
    return to;
}

/* reshape(x, n, ...): a copy of the elements, in C order, in another shape. */
static value *reshape(const call *c)
{
    value *x = c->args[0];
    int64_t extents[MAX_ARGS];
    force(c->s, x);
    for (int d = 0; d < c->n - 1; d++)
        extents[d] = integer_of(c, d + 1, MAX_ELEMENTS);
    value *v = value_new(c->s, ARRAY, 0, c->at, 0, NULL, c->n - 1, extents);
    if (value_size(v) != value_size(x))
        fail(c->s, c->at, "%lld elements do not fill a shape of %lld", (long long)value_size(x),
             (long long)value_size(v));
    value_allocate(c->s, v);
    copy_out(x, 0, x->data, v->data);
    return v;
}

/* [a, b, ...]: elements of one shape, which gets a dimension in front. */
static value *list(session *s, const node *n, const scope *in)
{
    value *v = NULL, *first = NULL;
    double *to = NULL;
    for (const node *element = n->first; element; element = element->next) {
        value *x = evaluate(s, element, in);
        force(s, x);
        if (!v) {
            int64_t extents[MAX_RANK + 1] = {n->n};
            memcpy(extents + 1, x->extent, (size_t)x->rank * sizeof *extents);
            v = value_new(s, ARRAY, 0, n->at, 0, NULL, x->rank + 1, extents);
            value_allocate(s, v);
            to = v->data;
            first = x;
        }
        if (!has_shape_of(x, first))
            fail(s, element->at, "the elements of a list differ in shape");
        to = copy_out(x, 0, x->data, to);
    }
    return v;
}

/* ---------------------------------------------------------------- names and calls */

static definition *find(session *s, const char *name)
{
    for (int i = 0; i < s->n_definitions; i++)
        if (strcmp(s->definitions[i].name, name) == 0)
            return &s->definitions[i];
    return NULL;
}

static value *evaluate_name(session *s, const node *n, const scope *in)
{
    value *v = NULL;
    for (int p = 0; in && !v && p < in->function->n_parameters; p++)
        if (strcmp(in->function->parameter[p], n->name) == 0)
            v = in->value[p];
    const definition *d = v ? NULL : find(s, n->name);
    if (!v && (!d || !d->value))
        fail(s, n->at, d ? "%s is a function: it wants arguments" : "%s is not defined", n->name);
    v = v ? v : d->value;
    v->is_shared = true;
    return v;
}

/* [builtins] */
/* Functions that the language has: operations on elements, reductions, and what concerns shapes. */
typedef struct builtin {
    const char *name;
    int least, most; /* arguments */
    value *(*call)(const call *c);
    int id;
} builtin;

static const builtin builtins[] = {
#define X(NAME, text, n, ...) {text, n, n, elementwise, OP_##NAME},
    OPS(X)
#undef X
#define X(NAME, text, ...) {text, 1, 2, reduce, REDUCE_##NAME},
        REDUCTIONS(X)
#undef X
            {"iota", 1, 1, iota, 0},
    {"extent", 2, 2, extent_of, 0},
    {"transpose", 1, 1, transpose, 0},
    {"expand", 2, 2, expand, 0},
    {"reshape", 2, MAX_RANK + 1, reshape, 0},
};
/* [end] */

static const builtin *find_builtin(const char *name)
{
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    return NULL;
}

/* [call] */
/* A call of a function of the program passes records: kernels reach through it. */
static value *call_function(session *s, const node *n, value **args)
{
    const builtin *f = find_builtin(n->name);
    const definition *d = f ? NULL : find(s, n->name);
    if (!f && (!d || d->value))
        fail(s, n->at, d ? "%s is no function" : "no function %s", n->name);
    const int least = f ? f->least : d->function.n_parameters, most = f ? f->most : least;
    if ((n->n < least || n->n > most) && least != most)
        fail(s, n->at, "%s takes %d to %d arguments, not %d", n->name, least, most, n->n);
    if (n->n < least || n->n > most)
        fail(s, n->at, "%s takes %d argument%s, not %d", n->name, least, least == 1 ? "" : "s",
             n->n);
    if (f)
        return f->call(&(call){s, n->at, f->id, n->n, args});
    scope in = {.function = &d->function};
    memcpy(in.value, args, (size_t)n->n * sizeof *args);
    return evaluate(s, d->function.body, &in);
}
/* [end] */

/* An operation, a call or an index: operands first. */
static value *evaluate_operands(session *s, const node *n, const scope *in)
{
    value *args[MAX_ARGS];
    int n_args = 0;
    if (n->n > (n->kind == PICK ? MAX_RANK + 1 : MAX_ARGS))
        fail(s, n->at, "too many operands");
    for (const node *operand = n->first; operand; operand = operand->next)
        args[n_args++] = evaluate(s, operand, in);
    const call c = {s, n->at, n->op, n_args, args};
    return n->kind == OP ? elementwise(&c) : n->kind == PICK ? pick(&c) : call_function(s, n, args);
}

/* [evaluate] */
static value *evaluate(session *s, const node *n, const scope *in)
{
    check_cancelled(s, n->at);
    if (s->depth == MAX_DEPTH)
        fail(s, n->at, "more than %d operations and calls inside each other", MAX_DEPTH);
    s->depth++;
    value *result = n->kind == NUMBER ? value_number(s, n->number)
                    : n->kind == NAME ? evaluate_name(s, n, in)
                    : n->kind == LIST ? list(s, n, in)
                                      : evaluate_operands(s, n, in);
    s->depth--;
    return result;
}
/* [end] */

/* ---------------------------------------------------------------- statements */

/* Defines a variable, or a function if `v` is NULL, which takes the nodes of the statement. */
static void define(session *s, statement *t, value *v)
{
    definition *d = find(s, t->name);
    if (find_builtin(t->name))
        fail(s, t->at, "%s is a function of the language", t->name);
    if (!d && s->n_definitions == MAX_NAMES)
        fail(s, t->at, "more than %d names", MAX_NAMES);
    if (d)
        statement_free(&d->function);
    else
        d = &s->definitions[s->n_definitions++];
    *d = (definition){.value = v};
    memcpy(d->name, t->name, sizeof d->name);
    if (v && !v->name[0])
        memcpy(v->name, t->name, sizeof v->name);
    if (!v) {
        d->function = *t;
        t->newest = NULL;
    }
}

void run_statement(session *s, const char *text, bool prints)
{
    statement *t = &s->statement;
    statement_free(t);
    parse(s, text, t);
    s->depth = 0;
    if (t->n_parameters >= 0) {
        define(s, t, NULL);
    } else if (t->body) {
        value *v = evaluate(s, t->body, NULL);
        force(s, v);
        if (t->name[0])
            define(s, t, v);
        else if (prints)
            value_print(v);
    }
    free_values(s);
}

bool session_run(session *s, const char *line, bool prints)
{
    s->error[0] = 0;
    s->shows = 0;
    if (setjmp(s->on_error) == 0) {
        if (line[0] == ':' && s->engine->command)
            s->engine->command(s, line);
        else
            run_statement(s, line, prints);
    }
    free_values(s);
    statement_free(&s->statement);
    return !s->error[0];
}

const value *session_variable(session *s, const char *name)
{
    const definition *d = find(s, name);
    return d ? d->value : NULL;
}

static bool is_open(session *s)
{
    if (setjmp(s->on_error) == 0 && s->engine->open)
        s->engine->open(s);
    return !s->error[0];
}

session *session_new(const engine *e, const char *file, const volatile int32_t *cancel)
{
    session *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->engine = e;
    s->file = file;
    s->cancel = cancel;
    if (is_open(s))
        return s;
    fprintf(stderr, "%s\n", s->error);
    session_free(s);
    return NULL;
}

void session_free(session *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_definitions; i++)
        statement_free(&s->definitions[i].function);
    s->n_definitions = 0;
    free_values(s);
    kernels_close(s);
    free(s);
}
