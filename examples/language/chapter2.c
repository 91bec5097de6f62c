/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chapter2.c: each operation is a kernel. A kernel knows the number of dimensions and no extent, so
 * one kernel for each operation and rank serves all arrays. It is built when it is first needed.
 */
#include "language.h"

/* [build] */
/* The kernel of an operation on elements: result[i, ...] = op(a[i, ...], ...). */
static void build_elementwise(qn_builder *b, const value *v)
{
    qn_param from[3], to = qn_view_param(b, "result", QN_F64, v->rank, 0);
    qn_val index[MAX_RANK], args[3];
    for (int i = 0; i < v->n_args; i++)
        from[i] = operand_param(b, "operand", i, v->rank);
    for (int d = 0; d < v->rank; d++)
        index[d] = qn_parallel_over(b, to, d);
    for (int i = 0; i < v->n_args; i++)
        args[i] = qn_load(b, from[i], v->rank, index);
    qn_store(b, to, v->rank, index, build_op(b, (op_id)v->op, v->n_args, args));
}
/* [end] */

static void build_reduce(qn_builder *b, const value *v)
{
    const value *x = v->arg[0];
    qn_param to = qn_view_param(b, "result", QN_F64, v->rank, 0);
    qn_param from = operand_param(b, "operand", 0, x->rank);
    qn_val index[MAX_RANK], at[MAX_RANK], dims[MAX_RANK];
    int n_dims = 0;
    for (int d = 0; d < v->rank; d++)
        at[d < v->dim ? d : d + 1] = index[d] = qn_parallel_over(b, to, d);
    for (int d = 0; d < x->rank; d++)
        if (v->dim < 0 || d == v->dim)
            at[d] = dims[n_dims++] = qn_reduction_over(b, from, d);
    qn_reduce(b, combination(v->op), QN_ORDER_DEFAULT, n_dims, dims);
    qn_val sum = qn_end_reduce(b, qn_load(b, from, x->rank, at));
    qn_store(b, to, v->rank, index, sum);
}

static void build_index(qn_builder *b, const value *v)
{
    const int n = v->n_args - 1;
    qn_param to = qn_view_param(b, "result", QN_F64, v->rank, 0), where[MAX_RANK];
    qn_param from = operand_param(b, "array", 0, n);
    qn_val index[MAX_RANK], at[MAX_RANK];
    for (int i = 0; i < n; i++)
        where[i] = operand_param(b, "index", i, v->rank);
    for (int d = 0; d < v->rank; d++)
        index[d] = qn_parallel_over(b, to, d);
    for (int i = 0; i < n; i++)
        at[i] = qn_cast(b, QN_I64, qn_load(b, where[i], v->rank, index));
    qn_store(b, to, v->rank, index, qn_load(b, from, n, at));
}

static void build_iota(qn_builder *b)
{
    qn_param to = qn_view_param(b, "result", QN_F64, 1, 0);
    qn_val i = qn_parallel_over(b, to, 0);
    qn_store(b, to, 1, &i, qn_cast(b, QN_F64, i));
}

static qn_kernel *build(session *s, const value *v)
{
    qn_builder *b = qn_builder_new("operation", 0);
    if (v->kind == ELEMENTWISE)
        build_elementwise(b, v);
    else if (v->kind == REDUCE)
        build_reduce(b, v);
    else if (v->kind == INDEX)
        build_index(b, v);
    else
        build_iota(b);
    return finish(s, b, v->at);
}

/* [compute] */
static const qn_kernel *kernel_of(session *s, const value *v)
{
    const int32_t key[] = {(int32_t)v->kind, v->op, v->dim, v->rank,
                           v->n_args ? v->arg[0]->rank : 0};
    const int n = sizeof key / sizeof *key;
    const qn_kernel *k = kernel_find(s, n, key);
    return k ? k : kernel_keep(s, n, key, build(s, v));
}

static bool compute(session *s, value *v)
{
    qn_view view[MAX_RANK + 2];
    qn_arg args[MAX_RANK + 2];
    if (!value_allocate(s, v) || !array_view(s, v, v->rank, v->extent, &view[0]))
        return false;
    for (int i = 0; i < v->n_args; i++) {
        const bool is_whole = v->kind == REDUCE || (v->kind == INDEX && i == 0);
        const value *shape = is_whole ? v->arg[i] : v;
        if (!array_view(s, v->arg[i], shape->rank, shape->extent, &view[i + 1]))
            return false;
    }
    for (int i = 0; i <= v->n_args; i++)
        args[i] = qn_arg_view(&view[i]);
    const qn_kernel *k = kernel_of(s, v);
    return k && launch(s, k, v->n_args + 1, args, v->at);
}
/* [end] */

static bool open_context(session *s)
{
    return context_open(s, "off");
}

const engine chapter2 = {
    .title = "a kernel for each operation", .open = open_context, .compute = compute};
