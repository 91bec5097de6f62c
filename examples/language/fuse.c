/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse.c: a recorded expression as one kernel. Three walks over the record: the first finds
 * operands and a key, the second builds the kernel, unless there is one of this key, and a launch
 * passes the operands as views.
 *
 * The domain of the kernel is the shape of the root. An operand with fewer dimensions, or with
 * dimensions of extent 1, is a view of that shape whose strides are 0 where elements are repeated.
 * So the kernel is the same whatever is repeated.
 */
#include "language.h"
#include "quern/embed.h"

#include <string.h>

/* ---------------------------------------------------------------- operands and key */

/* Whether an array has the same view in two domains: of the last dimensions, as many as it has. */
static bool is_one_view(const value *v, const value *a, const value *b)
{
    return a == b || (a != v && b != v && v->rank <= a->rank && v->rank <= b->rank &&
                      memcmp(a->extent + (a->rank - v->rank), b->extent + (b->rank - v->rank),
                             (size_t)v->rank * sizeof *a->extent) == 0);
}

static int find_leaf(const fusion *f, const value *v, const value *domain)
{
    for (int i = 0; i < f->n_leaves; i++)
        if (f->leaves[i].v == v && (v->rank == 0 || is_one_view(v, f->leaves[i].domain, domain)))
            return i;
    return -1;
}

static int find_reduced(const fusion *f, const value *v)
{
    for (int i = 0; i < f->n_reduced; i++)
        if (f->reduced[i].v->dim == v->dim && has_shape_of(f->reduced[i].v->arg[0], v->arg[0]))
            return i;
    return -1;
}

static bool add_key(fusion *f, int32_t part)
{
    if (f->n_key == MAX_KEY)
        return fail(f->s, f->root->at, "the expression is too large for one kernel");
    f->key[f->n_key++] = part;
    return true;
}

static bool collect_leaf(fusion *f, const value *v, const value *domain)
{
    int i = find_leaf(f, v, domain);
    if (i < 0) {
        if (f->n_leaves == MAX_LEAVES)
            return fail(f->s, v->at, "more than %d operands in one kernel", MAX_LEAVES);
        i = f->n_leaves++;
        f->leaves[i].v = v;
        f->leaves[i].domain = domain;
    }
    return add_key(f, i) && add_key(f, v->rank);
}

static bool collect(fusion *f, value *v, const value *domain);

/* Finds leaves whose extents are those of the reduced dimensions: a reduction does not know the
 * number of its terms. */
static bool collect_reduce(fusion *f, value *v)
{
    int i = find_reduced(f, v);
    const bool is_new = i < 0;
    value *operand = v->arg[0];
    if (is_new) {
        i = f->n_reduced++;
        f->reduced[i].v = v;
    }
    reduced *r = &f->reduced[i];
    if (!add_key(f, i) || !collect(f, operand, operand))
        return false;
    for (int d = 0; is_new && d < operand->rank; d++) {
        r->extent_leaf[d] = -1;
        for (int l = 0; l < f->n_leaves; l++) {
            const value *array = f->leaves[l].v;
            const int own = d - (operand->rank - array->rank);
            const bool is_of_operand =
                f->leaves[l].domain == operand || is_one_view(array, f->leaves[l].domain, operand);
            if (own < 0 || !is_of_operand)
                continue;
            r->extent_leaf[d] = l;
            r->extent_dim[d] = own;
        }
        if (!add_key(f, r->extent_leaf[d]))
            return false;
    }
    return true;
}

/* [collect] */
static bool collect(fusion *f, value *v, const value *domain)
{
    if (!add_key(f, (int32_t)v->kind))
        return false;
    if (v->kind == ARRAY)
        return collect_leaf(f, v, domain);
    if (!add_key(f, v->op) || !add_key(f, v->dim) || !add_key(f, v->at.line) ||
        !add_key(f, v->at.column))
        return false;
    if (v->kind == REDUCE)
        return collect_reduce(f, v);
    for (int i = 0; i < v->n_args; i++) {
        const bool is_picked = v->kind == INDEX && i == 0;
        if (!collect(f, v->arg[i], is_picked ? v->arg[i] : domain))
            return false;
    }
    return true;
}

bool fusion_collect(fusion *f, session *s, value *root)
{
    f->s = s;
    f->root = root;
    f->n_leaves = f->n_reduced = f->n_key = 0;
    return add_key(f, root->rank) && collect(f, root, root);
}
/* [end] */

/* ---------------------------------------------------------------- the kernel */

static qn_val number_param(qn_builder *b, const char *kind, int i, int dtype)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", kind, i + 1);
    return qn_scalar_param(b, name, dtype);
}

static void make_parameters(fusion *f)
{
    for (int i = 0; i < f->n_leaves; i++) {
        leaf *l = &f->leaves[i];
        if (l->v->rank == 0)
            l->scalar = number_param(f->b, "number", i, QN_F64);
        else
            l->param = operand_param(f->b, "array", i, l->v->rank);
    }
}

/* Whether dimension d of the operand of a reduction goes. */
static bool is_reduced(const value *v, int d)
{
    return v->dim < 0 || v->dim == d;
}

/* The dimensions of reductions. Extents that no leaf has are arguments, in this order. */
static void make_reduced(fusion *f)
{
    qn_val extents[MAX_RECORDED][MAX_RANK];
    int n_extents = 0;
    for (int i = 0; i < f->n_reduced; i++)
        for (int d = 0; d < f->reduced[i].v->arg[0]->rank; d++)
            if (is_reduced(f->reduced[i].v, d) && f->reduced[i].extent_leaf[d] < 0)
                extents[i][d] = number_param(f->b, "extent", n_extents++, QN_I64);
    for (int i = 0; i < f->n_reduced; i++) {
        reduced *r = &f->reduced[i];
        for (int d = 0; d < r->v->arg[0]->rank; d++)
            if (!is_reduced(r->v, d))
                continue;
            else if (r->extent_leaf[d] < 0)
                r->index[d] = qn_reduction(f->b, qn_index(f->b, 0), extents[i][d]);
            else
                r->index[d] =
                    qn_reduction_over(f->b, f->leaves[r->extent_leaf[d]].param, r->extent_dim[d]);
    }
}

static qn_val build(fusion *f, const value *v, const value *domain, const qn_val *index);

static qn_val build_reduce(fusion *f, const value *v, const qn_val *index)
{
    const value *operand = v->arg[0];
    const reduced *r = &f->reduced[find_reduced(f, v)];
    qn_val at[MAX_RANK], dims[MAX_RANK];
    int n_dims = 0, n_kept = 0;
    for (int d = 0; d < operand->rank; d++)
        if (is_reduced(v, d))
            at[d] = dims[n_dims++] = r->index[d];
        else
            at[d] = index[n_kept++];
    const bool is_last = is_reduced(v, operand->rank - 1);
    qn_reduce(f->b, combination(v->op), is_last ? QN_STRIPED : QN_INDEXED, n_dims, dims);
    return qn_end_reduce(f->b, build(f, operand, operand, at));
}

/* [build-value] */
/* The element of a value at an index of the domain. */
static qn_val build(fusion *f, const value *v, const value *domain, const qn_val *index)
{
    const qn_val *own =
        index + (domain->rank - v->rank); /* dimensions are aligned at the last one */
    qn_val args[MAX_RANK + 1];
    if (v->kind == ARRAY) {
        const leaf *l = &f->leaves[find_leaf(f, v, domain)];
        return v->rank == 0 ? l->scalar : qn_load(f->b, l->param, v->rank, own);
    }
    if (v->kind == REDUCE)
        return build_reduce(f, v, own);
    for (int i = v->kind == INDEX; i < v->n_args; i++)
        args[i] = build(f, v->arg[i], domain, index);
    qn_builder_at(f->b, f->s->file, v->at.line, v->at.column);
    if (v->kind == ELEMENTWISE)
        return build_op(f->b, (op_id)v->op, v->n_args, args);
    if (v->kind == IOTA)
        return qn_cast(f->b, QN_F64, own[0]);
    for (int i = 1; i < v->n_args; i++)
        args[i] = qn_cast(f->b, QN_I64, args[i]);
    const leaf *l = &f->leaves[find_leaf(f, v->arg[0], v->arg[0])];
    return qn_load(f->b, l->param, v->arg[0]->rank, args + 1);
}
/* [end] */

/* [fusion-build] */
qn_kernel *fusion_build(fusion *f)
{
    const value *root = f->root;
    qn_val index[MAX_RANK + 1];
    f->b = qn_builder_new("expression", QN_CONTRACT);
    qn_param to = qn_view_param(f->b, "result", QN_F64, root->rank, 0);
    make_parameters(f);
    for (int d = 0; d < root->rank; d++)
        index[d] = qn_parallel_over(f->b, to, d);
    make_reduced(f);
    qn_store(f->b, to, root->rank, index, build(f, root, root, index));
    return finish(f->s, f->b, root->at);
}
/* [end] */

/* ---------------------------------------------------------------- the launch */

/* The view of a leaf: its array in the shape of the last dimensions of the domain. */
static bool leaf_view(const fusion *f, const leaf *l, qn_view *out)
{
    return array_view(f->s, l->v, l->v->rank, l->domain->extent + (l->domain->rank - l->v->rank),
                      out);
}

bool fusion_launch(fusion *f, const qn_kernel *k)
{
    qn_view views[1 + MAX_LEAVES];
    qn_arg args[1 + MAX_LEAVES + QN_MAX_PARAMS];
    int n = 0;
    if (!value_allocate(f->s, f->root) ||
        !array_view(f->s, f->root, f->root->rank, f->root->extent, &views[0]))
        return false;
    args[n++] = qn_arg_view(&views[0]);
    for (int i = 0; i < f->n_leaves; i++, n++) {
        const leaf *l = &f->leaves[i];
        if (l->v->rank == 0)
            args[n] = qn_arg_f64(*l->v->data);
        else if (leaf_view(f, l, &views[i + 1]))
            args[n] = qn_arg_view(&views[i + 1]);
        else
            return false;
    }
    for (int i = 0; i < f->n_reduced; i++)
        for (int d = 0; d < f->reduced[i].v->arg[0]->rank && n < QN_MAX_PARAMS; d++)
            if (is_reduced(f->reduced[i].v, d) && f->reduced[i].extent_leaf[d] < 0)
                args[n++] = qn_arg_int(QN_I64, f->reduced[i].v->arg[0]->extent[d]);
    return launch(f->s, k, n, args, f->root->at);
}
