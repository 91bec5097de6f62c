/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c: values of the array language: arrays of f64 with strides, and records of operations on
 * them. A session has a list of all its values, and frees those that no variable has at the end of
 * a statement.
 */
#include "language.h"

#include <stdlib.h>
#include <string.h>

int64_t value_size(const value *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->rank; d++)
        n *= v->extent[d];
    return n;
}

value *value_new(session *s, value_kind kind, int op, place at, int n_args, value **args, int rank,
                 const int64_t *extents)
{
    int64_t n = 1;
    if (rank > MAX_RANK)
        fail(s, at, "an array has at most %d dimensions", MAX_RANK);
    for (int d = 0; d < rank; d++) { /* an extent of 0 does not excuse the others */
        if (extents[d] > MAX_ELEMENTS / n)
            fail(s, at, "the array would have more than 2^48 elements");
        n *= extents[d] > 0 ? extents[d] : 1;
    }
    value *v = calloc(1, sizeof *v);
    if (!v)
        fail(s, at, "out of memory");
    *v = (value){.kind = kind,
                 .op = op,
                 .dim = -1,
                 .at = at,
                 .rank = rank,
                 .n_args = n_args,
                 .size = 1,
                 .next = s->values};
    s->values = v;
    for (int d = 0; d < rank; d++)
        v->extent[d] = extents[d];
    for (int i = 0; i < n_args; i++) {
        v->arg[i] = args[i];
        v->size += args[i]->size;
    }
    return v;
}

value *value_number(session *s, double number)
{
    value *v = value_new(s, ARRAY, 0, (place){0}, 0, NULL, 0, NULL);
    v->number = number;
    v->data = &v->number;
    return v;
}

/* Bytes that the elements of a value take; 0 for those of others and of rank 0. */
static int64_t own_bytes(const value *v)
{
    return v->rank == 0 || v->base ? 0 : (value_size(v) * (int64_t)sizeof(double) + 64) / 64 * 64;
}

void value_allocate(session *s, value *v)
{
    const int64_t bytes = own_bytes(v);
    for (int64_t d = v->rank - 1, n = 1; d >= 0; n *= v->extent[d--])
        v->stride[d] = n;
    v->data = &v->number;
    if (bytes == 0)
        return;
    v->data = bytes > MAX_STORED_BYTES - s->bytes ? NULL : aligned_alloc(64, (size_t)bytes);
    if (!v->data)
        fail(s, v->at, "no memory for an array of %lld elements: all together may take 2 GiB",
             (long long)value_size(v));
    s->bytes += bytes;
}

static void free_elements(session *s, value *v)
{
    if (!v->data || own_bytes(v) == 0)
        return;
    s->bytes -= own_bytes(v);
    free(v->data);
    v->data = NULL;
}

void value_is_used(session *s, value *v)
{
    if (!v->is_shared)
        free_elements(s, v);
}

void free_values(session *s)
{
    for (int i = 0; i < s->n_definitions; i++)
        for (value *v = s->definitions[i].value; v && !v->is_kept; v = v->base)
            v->is_kept = true;
    for (value **link = &s->values; *link;) {
        value *v = *link;
        if (v->is_kept) {
            v->is_kept = false;
            link = &v->next;
            continue;
        }
        *link = v->next;
        free_elements(s, v);
        free(v);
    }
}

/* ---------------------------------------------------------------- shapes */

bool has_shape_of(const value *a, const value *b)
{
    return a->rank == b->rank &&
           memcmp(a->extent, b->extent, (size_t)a->rank * sizeof *a->extent) == 0;
}

/* [broadcast] */
int broadcast(session *s, place at, int n, value **args, int64_t *extents)
{
    int rank = 0;
    for (int i = 0; i < n; i++)
        rank = args[i]->rank > rank ? args[i]->rank : rank;
    for (int d = 0; d < rank; d++)
        extents[d] = 1;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < args[i]->rank; d++) {
            int64_t *extent = &extents[rank - args[i]->rank + d], own = args[i]->extent[d];
            if (*extent != 1 && own != 1 && own != *extent)
                fail(s, at, "extents %lld and %lld do not fit", (long long)*extent, (long long)own);
            *extent = *extent == 1 ? own : *extent;
        }
    return rank;
}

void strides_in(const value *v, int rank, int64_t *strides)
{
    for (int d = 0; d < rank; d++) {
        const int own = d - (rank - v->rank);
        strides[d] = v->kind != ARRAY || own < 0 || v->extent[own] == 1 ? 0 : v->stride[own];
    }
}
/* [end] */

/* ---------------------------------------------------------------- printing */

static void print_part(const value *v, int d, const double *data)
{
    enum { MAX_SHOWN = 8, SHOWN_AT_ENDS = 3 };
    if (d == v->rank) {
        printf("%.10g", *data == 0 ? 0 : *data); /* no -0 */
        return;
    }
    printf("[");
    for (int64_t i = 0; i < v->extent[d]; i++) {
        if (v->extent[d] > MAX_SHOWN && i == SHOWN_AT_ENDS) {
            printf(", ...");
            i = v->extent[d] - SHOWN_AT_ENDS;
        }
        printf("%s", i > 0 ? ", " : "");
        print_part(v, d + 1, data + i * v->stride[d]);
    }
    printf("]");
}

void value_print(const value *v)
{
    print_part(v, 0, v->data);
    printf("\n");
}
