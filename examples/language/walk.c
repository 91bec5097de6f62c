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

bool fail(session *s, place at, const char *format, ...)
{
    if (s->error[0])
        return false;
    va_list list;
    va_start(list, format);
    vsnprintf(s->error, sizeof s->error, format, list);
    va_end(list);
    s->error_at = at;
    return false;
}

bool is_cancelled(session *s, place at)
{
    return s->cancel && *s->cancel && !fail(s, at, "cancelled");
}

/* Whether a record is an operation on single numbers, which is not worth a kernel. */
static bool is_of_numbers(const value *v)
{
    for (int i = 0; i < v->n_args; i++)
        if (v->arg[i]->kind != ARRAY)
            return false;
    return v->kind == ELEMENTWISE && v->rank == 0;
}

bool force(session *s, value *v)
{
    if (v->kind == ARRAY)
        return true;
    const engine *e = is_of_numbers(v) ? &chapter1 : s->engine;
    if (is_cancelled(s, v->at) || !e->compute(s, v))
        return false;
    value_is_computed(v);
    return true;
}

static void release_all(int n, value **values)
{
    for (int i = 0; i < n; i++)
        value_release(values[i]);
}

/* ---------------------------------------------------------------- operations */

/* [record] */
/* Records an operation whose shape is known. It is computed now unless the engine waits and the
 * record is small. */
static value *record(session *s, value_kind kind, int op, int dim, place at, int n, value **args,
                     int rank, const int64_t *extents)
{
    value *v = value_record(s, kind, op, at, n, args, rank, extents);
    if (!v)
        return NULL;
    v->dim = dim;
    if (v->size > MAX_RECORDED) {
        v->size = 1;
        for (int i = 0; i < n; i++, v->size++)
            if (!force(s, args[i]))
                goto failed;
    }
    if ((s->engine->waits && s->engine->waits(v) && !is_of_numbers(v)) || force(s, v))
        return v;
failed:
    value_release(v);
    return NULL;
}
/* [end] */

static value *elementwise(session *s, op_id op, place at, int n, value **args)
{
    int rank;
    int64_t extents[MAX_RANK];
    if (!broadcast(s, at, n, args, &rank, extents))
        return NULL;
    return record(s, ELEMENTWISE, (int)op, -1, at, n, args, rank, extents);
}

/* The elements of an array at indices, which have one shape; args[0] is the array. */
static value *pick(session *s, place at, int n, value **args)
{
    int rank;
    int64_t extents[MAX_RANK];
    if (n - 1 != args[0]->rank) {
        fail(s, at, "an array of %d dimensions takes %d indices, not %d", args[0]->rank,
             args[0]->rank, n - 1);
        return NULL;
    }
    if (!force(s, args[0]) || !broadcast(s, at, n - 1, args + 1, &rank, extents))
        return NULL;
    return record(s, INDEX, 0, -1, at, n, args, rank, extents);
}

/* An operand that is an integer from 0 to `most`. */
static bool integer_of(session *s, place at, value *v, int64_t most, int64_t *out)
{
    if (!force(s, v))
        return false;
    if (most < 0)
        return fail(s, at, "a number has no dimensions");
    if (v->rank != 0)
        return fail(s, at, "expected a number, found an array of %d dimensions", v->rank);
    if (!(v->number >= 0 && v->number <= (double)most) || v->number != floor(v->number))
        return fail(s, at, "expected an integer from 0 to %lld, found %g", (long long)most,
                    v->number);
    *out = (int64_t)v->number;
    return true;
}

/* reduction(x) or reduction(x, dimension) */
static value *reduce(session *s, int reduction, place at, int n, value **args)
{
    int64_t dim = -1, extents[MAX_RANK];
    int rank = 0;
    if (n == 2 && !integer_of(s, at, args[1], args[0]->rank - 1, &dim))
        return NULL;
    if (args[0]->rank == 0)
        return value_retain(args[0]);
    for (int d = 0; n == 2 && d < args[0]->rank; d++)
        if (d != dim)
            extents[rank++] = args[0]->extent[d];
    const int64_t n_terms = n == 2 ? args[0]->extent[dim] : value_size(args[0]);
    if (n_terms == 0 && (reduction == REDUCE_LEAST || reduction == REDUCE_GREATEST)) {
        fail(s, at, "of no elements none is the least or the greatest");
        return NULL;
    }
    return record(s, REDUCE, reduction, (int)dim, at, 1, args, rank, extents);
}

/* iota(n): 0, 1, ..., n - 1 */
static value *iota(session *s, place at, int n, value **args)
{
    int64_t extent;
    (void)n;
    if (!integer_of(s, at, args[0], MAX_ELEMENTS, &extent))
        return NULL;
    return record(s, IOTA, 0, -1, at, 0, NULL, 1, &extent);
}

/* extent(x, d) */
static value *extent_of(session *s, place at, int n, value **args)
{
    int64_t d;
    (void)n;
    if (!integer_of(s, at, args[1], args[0]->rank - 1, &d))
        return NULL;
    return value_number((double)args[0]->extent[d]);
}

/* [views] */
/* transpose(x): the dimensions in reverse order. No element moves. */
static value *transpose(session *s, place at, int n, value **args)
{
    value *x = args[0];
    int64_t extents[MAX_RANK], strides[MAX_RANK];
    (void)n;
    if (!force(s, x))
        return NULL;
    for (int d = 0; d < x->rank; d++) {
        extents[d] = x->extent[x->rank - 1 - d];
        strides[d] = x->stride[x->rank - 1 - d];
    }
    return value_view(s, x, at, x->rank, extents, strides);
}

/* expand(x, d): one dimension more, of extent 1 and number d. */
static value *expand(session *s, place at, int n, value **args)
{
    value *x = args[0];
    int64_t d, extents[MAX_RANK + 1], strides[MAX_RANK + 1];
    (void)n;
    if (!integer_of(s, at, args[1], x->rank, &d) || !force(s, x))
        return NULL;
    for (int from = 0, to = 0; to <= x->rank; to++) {
        extents[to] = to == d ? 1 : x->extent[from];
        strides[to] = to == d ? 0 : x->stride[from++];
    }
    return value_view(s, x, at, x->rank + 1, extents, strides);
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
static value *reshape(session *s, place at, int n, value **args)
{
    int64_t extents[MAX_ARGS];
    if (!force(s, args[0]))
        return NULL;
    for (int d = 0; d < n - 1; d++)
        if (!integer_of(s, at, args[d + 1], MAX_ELEMENTS, &extents[d]))
            return NULL;
    value *v = value_record(s, REDUCE, 0, at, 0, NULL, n - 1, extents);
    if (!v)
        return NULL;
    if (value_size(v) != value_size(args[0]))
        fail(s, at, "%lld elements do not fill a shape of %lld", (long long)value_size(args[0]),
             (long long)value_size(v));
    else if (value_allocate(s, v)) {
        copy_out(args[0], 0, args[0]->data, v->data);
        value_is_computed(v);
        return v;
    }
    value_release(v);
    return NULL;
}

/* [a, b, ...]: elements of one shape, which gets a dimension in front. */
static value *list(session *s, const node *n, const scope *in)
{
    value *v = NULL;
    double *to = NULL;
    for (const node *element = n->first; element; element = element->next) {
        value *x = evaluate(s, element, in);
        bool is_good = x && force(s, x);
        if (is_good && !v) {
            int64_t extents[MAX_RANK + 1] = {n->n};
            memcpy(extents + 1, x->extent, (size_t)x->rank * sizeof *extents);
            v = value_record(s, REDUCE, 0, n->at, 0, NULL, x->rank + 1, extents);
            is_good = v && value_allocate(s, v);
            to = is_good ? v->data : NULL;
        }
        if (is_good && (x->rank != v->rank - 1 ||
                        memcmp(x->extent, v->extent + 1, (size_t)x->rank * sizeof *x->extent) != 0))
            is_good = fail(s, element->at, "the elements of a list differ in shape");
        if (is_good)
            to = copy_out(x, 0, x->data, to);
        value_release(x);
        if (!is_good) {
            value_release(v);
            return NULL;
        }
    }
    value_is_computed(v);
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
    for (int p = 0; in && p < in->function->n_parameters; p++)
        if (strcmp(in->function->parameter[p], n->name) == 0)
            return value_retain(in->value[p]);
    const definition *d = find(s, n->name);
    if (d && d->value)
        return value_retain(d->value);
    fail(s, n->at, d ? "%s is a function: it wants arguments" : "%s is not defined", n->name);
    return NULL;
}

/* Functions that the language has: operations on elements, reductions, and what concerns shapes. */
typedef struct builtin {
    const char *name;
    int least, most;                                           /* operands */
    value *(*call)(session *s, place at, int n, value **args); /* NULL: an op or a reduction */
    int op, reduction;
} builtin;

static const builtin builtins[] = {
#define X(NAME, text, n, ...) {text, n, n, NULL, OP_##NAME, -1},
    OPS(X)
#undef X
#define X(NAME, text, ...) {text, 1, 2, NULL, -1, REDUCE_##NAME},
        REDUCTIONS(X)
#undef X
            {"iota", 1, 1, iota, -1, -1},
    {"extent", 2, 2, extent_of, -1, -1},
    {"transpose", 1, 1, transpose, -1, -1},
    {"expand", 2, 2, expand, -1, -1},
    {"reshape", 2, MAX_RANK + 1, reshape, -1, -1},
};

static const builtin *find_builtin(const char *name)
{
    for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    return NULL;
}

static value *call_builtin(session *s, const builtin *f, place at, int n, value **args)
{
    if (f->call)
        return f->call(s, at, n, args);
    return f->op >= 0 ? elementwise(s, (op_id)f->op, at, n, args)
                      : reduce(s, f->reduction, at, n, args);
}

static void fail_count(session *s, const node *n, int least, int most, int found)
{
    if (least == most)
        fail(s, n->at, "%s takes %d argument%s, not %d", n->name, least, least == 1 ? "" : "s",
             found);
    else
        fail(s, n->at, "%s takes %d to %d arguments, not %d", n->name, least, most, found);
}

static value *call(session *s, const node *n, int n_args, value **args)
{
    const builtin *f = find_builtin(n->name);
    const definition *d = f ? NULL : find(s, n->name);
    const bool is_function = f || (d && !d->value);
    const int least = f ? f->least : is_function ? d->function.n_parameters : 0;
    const int most = f ? f->most : least;
    if (!is_function)
        fail(s, n->at, d ? "%s is no function" : "no function %s", n->name);
    else if (n_args < least || n_args > most)
        fail_count(s, n, least, most, n_args);
    else if (f)
        return call_builtin(s, f, n->at, n_args, args);
    else {
        scope in = {.function = &d->function};
        memcpy(in.value, args, (size_t)n_args * sizeof *args);
        return evaluate(s, d->function.body, &in);
    }
    return NULL;
}

/* An operation, a call or an index: operands first. */
static value *evaluate_operands(session *s, const node *n, const scope *in)
{
    value *args[MAX_ARGS], *result = NULL;
    int n_args = 0;
    if (n->n > (n->kind == NODE_INDEX ? MAX_RANK + 1 : MAX_ARGS)) {
        fail(s, n->at, "too many operands");
        return NULL;
    }
    for (const node *operand = n->first; operand; operand = operand->next, n_args++)
        if (!(args[n_args] = evaluate(s, operand, in)))
            break;
    if (n_args == n->n)
        result = n->kind == NODE_OP     ? elementwise(s, n->op, n->at, n_args, args)
                 : n->kind == NODE_CALL ? call(s, n, n_args, args)
                                        : pick(s, n->at, n_args, args);
    release_all(n_args, args);
    return result;
}

/* [evaluate] */
static value *evaluate(session *s, const node *n, const scope *in)
{
    value *result = NULL;
    if (is_cancelled(s, n->at))
        return NULL;
    if (s->depth == MAX_DEPTH) {
        fail(s, n->at, "more than %d operations and calls inside each other", MAX_DEPTH);
        return NULL;
    }
    s->depth++;
    if (n->kind == NODE_NUMBER)
        result = value_number(n->number);
    else if (n->kind == NODE_NAME)
        result = evaluate_name(s, n, in);
    else if (n->kind == NODE_LIST)
        result = list(s, n, in);
    else
        result = evaluate_operands(s, n, in);
    s->depth--;
    if (!result)
        fail(s, n->at, "out of memory");
    return result;
}
/* [end] */

/* ---------------------------------------------------------------- statements */

static void undefine(definition *d)
{
    value_release(d->value);
    statement_free(&d->function);
}

/* Defines a variable, or a function if `v` is NULL; the definition owns both then. */
static bool define(session *s, const statement *t, value *v)
{
    definition *d = find(s, t->name);
    if (find_builtin(t->name))
        return fail(s, t->at, "%s is a function of the language", t->name);
    if (!d && s->n_definitions == MAX_NAMES)
        return fail(s, t->at, "more than %d names", MAX_NAMES);
    if (d)
        undefine(d);
    else
        d = &s->definitions[s->n_definitions++];
    *d = (definition){.value = v};
    memcpy(d->name, t->name, sizeof d->name);
    if (!v)
        d->function = *t;
    else if (!v->name[0])
        memcpy(v->name, t->name, sizeof v->name);
    return true;
}

bool session_run(session *s, const char *text, bool prints)
{
    statement t;
    s->error[0] = 0;
    if (!parse(s, text, &t))
        return false;
    if (t.n_parameters >= 0) {
        if (define(s, &t, NULL))
            return true;
        statement_free(&t);
        return false;
    }
    value *v = t.body ? evaluate(s, t.body, NULL) : NULL;
    bool is_good = !t.body || (v && force(s, v));
    if (is_good && t.name[0]) {
        is_good = define(s, &t, v);
        v = is_good ? NULL : v;
    } else if (is_good && v && prints)
        value_print(v);
    value_release(v);
    statement_free(&t);
    return is_good;
}

const value *session_variable(session *s, const char *name)
{
    const definition *d = find(s, name);
    return d ? d->value : NULL;
}

session *session_new(const engine *e, const char *file, const volatile int32_t *cancel)
{
    session *s = calloc(1, sizeof *s);
    if (!s || !(s->definitions = calloc(MAX_NAMES, sizeof *s->definitions))) {
        free(s);
        return NULL;
    }
    s->engine = e;
    s->file = file;
    s->cancel = cancel;
    if (!e->open || e->open(s))
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
        undefine(&s->definitions[i]);
    free(s->definitions);
    storage_free_spare(s);
    session_close_kernels(s);
    free(s);
}
