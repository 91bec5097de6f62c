/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c: each operation is a C loop over whole arrays, and each result is an array. No Quern yet.
 */
#include "language.h"

#include <math.h>

/* [row] */
/* The last dimension of an operation: n elements of operands that lie `by` elements apart. */
static void compute_row(int op, int64_t n, double *result, const double *const from[3],
                        const int64_t by[3])
{
    switch (op) {
#define X(NAME, text, n_args, power, class, quern, meaning)                                        \
    case OP_##NAME:                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const double a = from[0][i * by[0]], b = from[1][i * by[1]], c = from[2][i * by[2]];   \
            (void)b, (void)c;                                                                      \
            result[i] = meaning;                                                                   \
        }                                                                                          \
        break;
        OPS(X)
#undef X
    }
}
/* [end] */

/* All rows of the dimensions from d on; returns the place behind their results. */
static double *compute_rows(const value *v, int d, double *result, const double *const from[3],
                            int64_t stride[3][MAX_RANK])
{
    if (d >= v->rank - 1) {
        const int64_t n = v->rank ? v->extent[d] : 1,
                      by[3] = {stride[0][d], stride[1][d], stride[2][d]};
        compute_row(v->op, n, result, from, by);
        return result + n;
    }
    for (int64_t i = 0; i < v->extent[d]; i++) {
        const double *at[3] = {from[0] + i * stride[0][d], from[1] + i * stride[1][d],
                               from[2] + i * stride[2][d]};
        result = compute_rows(v, d + 1, result, at, stride);
    }
    return result;
}

static void compute_elementwise(const value *v)
{
    static const double zero;
    const double *from[3] = {&zero, &zero, &zero};
    int64_t stride[3][MAX_RANK] = {{0}};
    for (int i = 0; i < v->n_args; i++) {
        from[i] = v->arg[i]->data;
        strides_in(v->arg[i], v->rank, stride[i]);
    }
    compute_rows(v, 0, v->data, from, stride);
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

/* Combines the elements of the dimensions from d on with results that lie `by` elements apart: 0 in
 * dimensions that go. */
static void reduce_part(const value *v, int d, const double *from, double *to,
                        const int64_t by[MAX_RANK])
{
    const value *x = v->arg[0];
    for (int64_t i = 0; i < x->extent[d]; i++)
        if (d < x->rank - 1)
            reduce_part(v, d + 1, from + i * x->stride[d], to + i * by[d], by);
        else
            to[i * by[d]] = combine(v->op, to[i * by[d]], from[i * x->stride[d]]);
}

static void compute_reduce(const value *v)
{
    static const double empty[] = {
#define X(NAME, text, empty, ...) empty,
        REDUCTIONS(X)
#undef X
    };
    int64_t by[MAX_RANK] = {0};
    for (int64_t i = 0, n = value_size(v); i < n; i++)
        v->data[i] = empty[v->op];
    for (int d = 0, kept = 0; v->dim >= 0 && d < v->arg[0]->rank; d++)
        by[d] = d == v->dim ? 0 : v->stride[kept++];
    reduce_part(v, 0, v->arg[0]->data, v->data, by);
}

/* An element of an operand at a position of the result, counted in C order. */
static double element_at(const value *arg, const value *v, int64_t position)
{
    int64_t stride[MAX_RANK], offset = 0;
    strides_in(arg, v->rank, stride);
    for (int d = v->rank - 1; d >= 0; position /= v->extent[d--])
        offset += position % v->extent[d] * stride[d];
    return arg->data[offset];
}

static void compute_index(session *s, value *v)
{
    const value *x = v->arg[0];
    for (int64_t i = 0, n = value_size(v); i < n; i++) {
        int64_t offset = 0;
        for (int d = 0; d < x->rank; d++) {
            const double found = element_at(v->arg[d + 1], v, i), index = isnan(found) ? 0 : found;
            if (!(index > -1 && index < (double)x->extent[d]))
                fail(s, v->at, "index %g is not in [0, %lld)", index, (long long)x->extent[d]);
            offset += (int64_t)index * x->stride[d];
        }
        v->data[i] = x->data[offset];
    }
}

void compute_by_loops(session *s, value *v)
{
    value_allocate(s, v);
    if (v->kind == ELEMENTWISE)
        compute_elementwise(v);
    else if (v->kind == INDEX)
        compute_index(s, v);
    else if (v->kind == REDUCE)
        compute_reduce(v);
    for (int64_t i = 0; v->kind == IOTA && i < v->extent[0]; i++)
        v->data[i] = (double)i;
}
