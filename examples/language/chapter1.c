/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chapter1.c: each operation is a C loop over whole arrays, and each result is an array. No Quern
 * yet.
 */
#include "language.h"

#include <math.h>

/* [row] */
/* The last dimension of an operation: n elements of operands that lie `by` elements apart. */
static void compute_row(op_id op, int64_t n, double *result, const double *const from[3],
                        const int64_t by[3])
{
    switch (op) {
#define X(NAME, text, n_args, class, quern, meaning)                                               \
    case OP_##NAME:                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double a = from[0][i * by[0]], b = from[1][i * by[1]], c = from[2][i * by[2]];   \
            (void)b, (void)c;                                                                      \
            result[i] = meaning;                                                                   \
        }                                                                                          \
        break;
        OPS(X)
#undef X
    case N_OPS:
        break;
    }
}
/* [end] */

/* Moves indices and the places of three operands to the next row; false behind the last one. */
static bool next_row(const value *v, int64_t *index, const double **from,
                     int64_t stride[3][MAX_RANK])
{
    for (int d = v->rank - 2; d >= 0; d--) {
        index[d]++;
        for (int i = 0; i < 3; i++)
            from[i] += stride[i][d];
        if (index[d] < v->extent[d])
            return true;
        for (int i = 0; i < 3; i++)
            from[i] -= v->extent[d] * stride[i][d];
        index[d] = 0;
    }
    return false;
}

static bool compute_elementwise(session *s, value *v)
{
    static const double zero;
    const int64_t n = v->rank ? v->extent[v->rank - 1] : 1;
    const double *from[3] = {&zero, &zero, &zero};
    int64_t stride[3][MAX_RANK] = {{0}}, by[3] = {0}, index[MAX_RANK] = {0};
    for (int i = 0; i < v->n_args; i++) {
        from[i] = v->arg[i]->data;
        strides_in(v->arg[i], v->rank, stride[i]);
        by[i] = v->rank ? stride[i][v->rank - 1] : 0;
    }
    if (value_size(v) == 0)
        return true;
    double *result = v->data;
    do {
        compute_row((op_id)v->op, n, result, from, by);
        result += n;
    } while (!is_cancelled(s, v->at) && next_row(v, index, from, stride));
    return !s->error[0];
}

static double combine(int reduction, double a, double b)
{
    switch (reduction) {
#define X(NAME, text, empty, quern, meaning)                                                       \
    case REDUCE_##NAME:                                                                            \
        return meaning;
        REDUCTIONS(X)
#undef X
    }
    return a;
}

/* Combines all elements of the dimensions from d on. */
static double reduce_part(int reduction, const value *x, int d, const double *data, double so_far)
{
    if (d == x->rank)
        return combine(reduction, so_far, *data);
    for (int64_t i = 0; i < x->extent[d]; i++)
        so_far = reduce_part(reduction, x, d + 1, data + i * x->stride[d], so_far);
    return so_far;
}

/* Combines along dimension v->dim, for each index of the others. */
static double *reduce_along(const value *v, int d, const double *data, double empty, double *result)
{
    const value *x = v->arg[0];
    if (d == v->dim)
        return reduce_along(v, d + 1, data, empty, result);
    if (d < x->rank) {
        for (int64_t i = 0; i < x->extent[d]; i++)
            result = reduce_along(v, d + 1, data + i * x->stride[d], empty, result);
        return result;
    }
    *result = empty;
    for (int64_t k = 0; k < x->extent[v->dim]; k++)
        *result = combine(v->op, *result, data[k * x->stride[v->dim]]);
    return result + 1;
}

static void compute_reduce(const value *v)
{
    static const double empty[] = {
#define X(NAME, text, empty, ...) empty,
        REDUCTIONS(X)
#undef X
    };
    if (v->dim >= 0)
        reduce_along(v, 0, v->arg[0]->data, empty[v->op], v->data);
    else
        *v->data = reduce_part(v->op, v->arg[0], 0, v->arg[0]->data, empty[v->op]);
}

/* An element of an operand at a position of the result, counted in C order. */
static double element_at(const value *arg, const value *v, int64_t position)
{
    int64_t stride[MAX_RANK], offset = 0;
    strides_in(arg, v->rank, stride);
    for (int d = v->rank - 1; d >= 0; d--) {
        offset += position % v->extent[d] * stride[d];
        position /= v->extent[d];
    }
    return arg->data[offset];
}

static bool compute_index(session *s, value *v)
{
    const value *x = v->arg[0];
    for (int64_t i = 0, n = value_size(v); i < n; i++) {
        int64_t offset = 0;
        for (int d = 0; d < x->rank; d++) {
            const double found = element_at(v->arg[d + 1], v, i), index = isnan(found) ? 0 : found;
            if (!(index > -1 && index < (double)x->extent[d]))
                return fail(s, v->at, "index %g is not in [0, %lld)", index,
                            (long long)x->extent[d]);
            offset += (int64_t)index * x->stride[d];
        }
        v->data[i] = x->data[offset];
    }
    return true;
}

static bool compute(session *s, value *v)
{
    if (!value_allocate(s, v))
        return false;
    if (v->kind == ELEMENTWISE)
        return compute_elementwise(s, v);
    if (v->kind == INDEX)
        return compute_index(s, v);
    if (v->kind == REDUCE)
        compute_reduce(v);
    for (int64_t i = 0; v->kind == IOTA && i < v->extent[0]; i++)
        v->data[i] = (double)i;
    return true;
}

const engine chapter1 = {.title = "loops in C", .compute = compute};
