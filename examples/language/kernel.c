/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c: a record as one kernel of Quern. A first walk over the record finds its operands, and a
 * key: all that the kernel depends on, and no extent is among that. If no kernel has the key, a
 * second walk builds one. A launch passes the operands as views.
 *
 * The domain of the kernel is the shape of the root; inside a reduction it is the shape of what is
 * reduced. An array is passed as a view of its domain, with strides of 0 where it is repeated. So
 * broadcasting needs no code.
 */
#include "language.h"
#include "quern/embed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEY = 13 * MAX_RECORDED };

/* [fusion] */
/** An operand of a kernel: a number, or a view in the shape of a domain. */
typedef struct leaf {
    const value *v, *domain;
    qn_param param; /* of a view */
    qn_val scalar;  /* of a number */
} leaf;

/** A reduction: the leaf whose extents it has, and its indices by dimension of the operand. */
typedef struct reduction {
    const value *v;
    int leaf;
    qn_val index[MAX_RANK];
} reduction;

/** A record on its way to a kernel. */
typedef struct fusion {
    session *s;
    value *root;
    int n_leaves, n_reductions, n_key;
    leaf leaves[MAX_LEAVES];
    reduction reductions[MAX_RECORDED];
    int32_t key[MAX_KEY];
    qn_builder *b;
} fusion;
/* [end] */

/* Ends the statement with an error of the library. A message that ends with a place in the source
 * belongs there. */
/* [quern-error] */
static _Noreturn void fail_with(session *s, place at, const qn_error *err)
{
    char message[QN_MESSAGE_BYTES], *end = NULL;
    memcpy(message, err->message, sizeof message);
    for (char *found = message; (found = strstr(found, "; at ")); found++)
        end = found;
    if (end) {
        const char *numbers = end + strlen("; at ") + strlen(s->file);
        sscanf(numbers, ":%d:%d", &at.line, &at.column);
        *end = 0;
    }
    fail(s, at, "%s", message);
}
/* [end] */

/* ---------------------------------------------------------------- operands and key */

static void add_key(fusion *f, int part)
{
    if (f->n_key == MAX_KEY)
        fail(f->s, f->root->at, "the expression is too large for one kernel");
    f->key[f->n_key++] = part;
}

static int find_leaf(const fusion *f, const value *v, const value *domain)
{
    int i = 0;
    while (i < f->n_leaves &&
           (f->leaves[i].v != v || (v->rank > 0 && f->leaves[i].domain != domain)))
        i++;
    return i;
}

static int add_leaf(fusion *f, const value *v, const value *domain)
{
    const int i = find_leaf(f, v, domain);
    if (i == MAX_LEAVES)
        fail(f->s, v->at, "more than %d operands in one kernel", MAX_LEAVES);
    if (i == f->n_leaves)
        f->leaves[f->n_leaves++] = (leaf){.v = v, .domain = domain};
    return i;
}

static int find_reduction(const fusion *f, const value *v)
{
    int i = 0;
    while (i < f->n_reductions && f->reductions[i].v != v)
        i++;
    return i;
}

/* [collect] */
static void collect(fusion *f, const value *v, const value *domain)
{
    add_key(f, (int)v->kind);
    if (v->kind == ARRAY) {
        add_key(f, add_leaf(f, v, domain));
        add_key(f, v->rank);
        return;
    }
    add_key(f, v->op);
    add_key(f, v->dim);
    add_key(f, v->at.line);
    add_key(f, v->at.column);
    for (int i = 0; i < v->n_args; i++) {
        const bool has_own_domain = v->kind == REDUCE || (v->kind == INDEX && i == 0);
        collect(f, v->arg[i], has_own_domain ? v->arg[i] : domain);
    }
    if (v->kind != REDUCE || find_reduction(f, v) < f->n_reductions)
        return;
    int shape = 0; /* of an array in the operand, or of a view that only tells extents */
    while (shape < f->n_leaves &&
           (f->leaves[shape].domain != v->arg[0] || f->leaves[shape].v->rank == 0))
        shape++;
    if (shape == f->n_leaves)
        shape = add_leaf(f, v->arg[0], v->arg[0]);
    f->reductions[f->n_reductions++] = (reduction){.v = v, .leaf = shape};
    add_key(f, shape);
    add_key(f, v->arg[0]->rank);
}
/* [end] */

/* ---------------------------------------------------------------- building */

/* [build-op] */
static qn_val build_op(qn_builder *b, int op, int n, qn_val *args)
{
    enum { SAME, COMPARE, CHOOSE, MATH };
    static const struct {
        int class;
        const char *name;
    } ops[] = {
#define X(NAME, text, n, power, class, quern, ...) {class, quern},
        OPS(X)
#undef X
    };
    qn_val result = {0};
    if (ops[op].class == MATH) {
        qn_math(b, ops[op].name, n, args, &result);
        return result;
    }
    if (ops[op].class == CHOOSE)
        args[0] = qn_ne(b, args[0], qn_const_float(b, QN_F64, 0));
    result = qn_op(b, qn_op_of_name(ops[op].name), n, args);
    return ops[op].class == COMPARE ? qn_cast(b, QN_F64, result) : result;
}
/* [end] */

static qn_val build(fusion *f, const value *v, const value *domain, const qn_val *index);

/* Whether dimension d of the operand of a reduction goes. */
static bool is_reduced(const value *v, int d)
{
    return v->dim < 0 || v->dim == d;
}

/* [build-reduce] */
static qn_val build_reduce(fusion *f, const value *v, const qn_val *index)
{
    static const int combinations[] = {
#define X(NAME, text, empty, quern, ...) quern,
        REDUCTIONS(X)
#undef X
    };
    const value *operand = v->arg[0];
    const reduction *r = &f->reductions[find_reduction(f, v)];
    qn_val at[MAX_RANK], dims[MAX_RANK];
    int n_dims = 0, n_kept = 0;
    for (int d = 0; d < operand->rank; d++)
        if (is_reduced(v, d))
            at[d] = dims[n_dims++] = r->index[d];
        else
            at[d] = index[n_kept++];
    const bool is_last = is_reduced(v, operand->rank - 1);
    qn_reduce(f->b, combinations[v->op], is_last ? QN_STRIPED : QN_INDEXED, n_dims, dims);
    return qn_end_reduce(f->b, build(f, operand, operand, at));
}
/* [end] */

/* [build-value] */
/* The element of a value at an index of the domain. */
static qn_val build(fusion *f, const value *v, const value *domain, const qn_val *index)
{
    const leaf *l =
        &f->leaves[v->kind == INDEX ? find_leaf(f, v->arg[0], v->arg[0]) : find_leaf(f, v, domain)];
    qn_val args[MAX_RANK + 1];
    if (v->kind == ARRAY)
        return v->rank == 0 ? l->scalar : qn_load(f->b, l->param, domain->rank, index);
    if (v->kind == REDUCE)
        return build_reduce(f, v, index);
    for (int i = v->kind == INDEX; i < v->n_args; i++)
        args[i] = build(f, v->arg[i], domain, index);
    qn_builder_at(f->b, f->s->file, v->at.line, v->at.column);
    if (v->kind == ELEMENTWISE)
        return build_op(f->b, v->op, v->n_args, args);
    if (v->kind == IOTA)
        return qn_cast(f->b, QN_F64, index[domain->rank - 1]);
    for (int i = 1; i < v->n_args; i++)
        args[i] = qn_cast(f->b, QN_I64, args[i]);
    return v->arg[0]->rank == 0 ? l->scalar : qn_load(f->b, l->param, v->arg[0]->rank, args + 1);
}
/* [end] */

/* [build-kernel] */
static qn_kernel *build_kernel(fusion *f)
{
    const value *root = f->root;
    qn_val index[MAX_RANK + 1];
    qn_kernel *k = NULL;
    qn_error err = {0};
    char name[32];
    qn_builder *b = f->b =
        qn_builder_new(f->s->engine->waits ? "expression" : "operation", QN_CONTRACT);
    qn_param to = qn_view_param(b, "result", QN_F64, root->rank, 0);
    for (int i = 0; i < f->n_leaves; i++) {
        leaf *l = &f->leaves[i];
        snprintf(name, sizeof name, "%s%d", l->v->rank ? "array" : "number", i + 1);
        if (l->v->rank)
            l->param = qn_view_param(b, name, QN_F64, l->domain->rank, QN_READ_ONLY);
        else
            l->scalar = qn_scalar_param(b, name, QN_F64);
    }
    for (int d = 0; d < root->rank; d++)
        index[d] = qn_parallel_over(b, to, d);
    for (int i = 0; i < f->n_reductions; i++) {
        reduction *r = &f->reductions[i];
        for (int d = 0; d < r->v->arg[0]->rank; d++)
            if (is_reduced(r->v, d))
                r->index[d] = qn_reduction_over(b, f->leaves[r->leaf].param, d);
    }
    qn_store(b, to, root->rank, index, build(f, root, root, index));
    const qn_status status = qn_finish(b, &k, &err);
    qn_builder_release(b);
    if (status)
        fail_with(f->s, root->at, &err);
    return k;
}
/* [end] */

/* ---------------------------------------------------------------- kernels by keys */

typedef struct kernel_entry {
    struct kernel_entry *next;
    qn_kernel *kernel;
    int n_key;
    int32_t key[];
} kernel_entry;

static void forget_kernels(session *s)
{
    for (int i = 0; i < N_BUCKETS; i++)
        for (kernel_entry *e = s->kernels[i], *next; e; e = next) {
            next = e->next;
            qn_kernel_release(e->kernel);
            free(e);
        }
    memset(s->kernels, 0, sizeof s->kernels);
    s->n_kernels = 0;
}

/* [find] */
/* The kernel of a record, which the session keeps. */
static const qn_kernel *kernel_of(fusion *f)
{
    session *s = f->s;
    const size_t bytes = (size_t)f->n_key * sizeof *f->key;
    uint32_t hash = 2166136261u; /* FNV-1a, by words */
    for (int i = 0; i < f->n_key; i++)
        hash = (hash ^ (uint32_t)f->key[i]) * 16777619u;
    kernel_entry **bucket = &s->kernels[(hash ^ hash >> 16) % N_BUCKETS];
    for (kernel_entry *e = *bucket; e; e = e->next)
        if (e->n_key == f->n_key && memcmp(e->key, f->key, bytes) == 0)
            return e->kernel;
    qn_kernel *k = build_kernel(f);
    if (s->n_kernels++ == MAX_KERNELS)
        forget_kernels(s);
    kernel_entry *e = malloc(sizeof *e + bytes);
    if (!e) {
        qn_kernel_release(k);
        fail(s, f->root->at, "out of memory");
    }
    *e = (kernel_entry){.next = *bucket, .kernel = k, .n_key = f->n_key};
    memcpy(e->key, f->key, bytes);
    return (*bucket = e)->kernel;
}
/* [end] */

/* ---------------------------------------------------------------- launching */

/* [array-view] */
/* A view of an array in the shape of a domain, or, of a record, one that only tells its extents. */
static void array_view(session *s, const value *v, const value *domain, qn_view *out)
{
    static double none;
    int64_t strides[MAX_RANK];
    qn_layout layout;
    qn_error err = {0};
    strides_in(v, domain->rank, strides);
    if (qn_layout_strided(domain->rank, domain->extent, strides, &layout, &err) ||
        qn_view_wrap(v->name, v->kind == ARRAY ? v->data : &none, QN_F64, &layout, 0, out, &err))
        fail_with(s, v->at, &err);
}
/* [end] */

static void launch(session *s, const qn_kernel *k, int n, const qn_arg *args, place at)
{
    qn_error err = {0};
    char text[32768];
    size_t needed;
    if (s->shows & SHOW_KERNEL) {
        qn_kernel_print(k, text, sizeof text);
        printf("%s", text);
    }
    if (s->shows & SHOW_PLAN) {
        qn_code *code = NULL;
        if (qn_specialize(s->context, k, n, args, s->options, &code, &err))
            fail_with(s, at, &err);
        qn_code_text(code, QN_DUMP_PLAN, text, sizeof text);
        qn_code_release(code);
        printf("%s", text);
    }
    if ((s->shows & SHOW_WHY) &&
        !qn_explain(s->context, k, n, args, s->options, text, sizeof text, &needed, &err))
        printf("%s", text);
    s->n_launches++;
    if (qn_launch(s->context, k, n, args, s->options, &err))
        fail_with(s, at, &err);
}

/* [launch] */
void compute_by_kernel(session *s, value *root)
{
    fusion f = {.s = s, .root = root};
    qn_view views[1 + MAX_LEAVES];
    qn_arg args[1 + MAX_LEAVES];
    add_key(&f, root->rank);
    collect(&f, root, root);
    value_allocate(s, root);
    const qn_kernel *k = kernel_of(&f);
    value result = *root; /* the array that it becomes */
    result.kind = ARRAY;
    array_view(s, &result, root, &views[0]);
    args[0] = qn_arg_view(&views[0]);
    for (int i = 0; i < f.n_leaves; i++) {
        const leaf *l = &f.leaves[i];
        if (l->v->rank)
            array_view(s, l->v, l->domain, &views[i + 1]);
        args[i + 1] = l->v->rank ? qn_arg_view(&views[i + 1]) : qn_arg_f64(*l->v->data);
    }
    launch(s, k, f.n_leaves + 1, args, root->at);
}
/* [end] */

/* ---------------------------------------------------------------- context and options */

void options_set(session *s, const char *text, int compile)
{
    qn_options *options;
    qn_error err = {0};
    if (qn_options_parse(text, NULL, &options, &err))
        fail_with(s, (place){s->line, 1}, &err);
    if (options->compile == QN_COMPILE_DEFAULT)
        options->compile = compile;
    options->cancel = s->cancel;
    qn_options_release(s->options);
    s->options = options;
}

void context_open(session *s, const char *disk_cache)
{
    qn_error err = {0};
    const qn_context_options o = {.bytes = sizeof o, .disk_cache = disk_cache};
    if (qn_context_new(&o, &s->context, &err))
        fail_with(s, (place){0}, &err);
    options_set(s, "", QN_COMPILE_WAIT);
}

void kernels_close(session *s)
{
    forget_kernels(s);
    qn_options_release(s->options);
    qn_context_release(s->context);
}
