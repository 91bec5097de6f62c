/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c: values of the array language: counted arrays of f64 with strides, and records of
 * operations on them.
 */
#include "language.h"

#include <stdlib.h>
#include <string.h>

struct storage {
    int references;
    int64_t bytes;
    session *s; /* outlives all values */
};

enum {
    STORAGE_HEADER = 64
}; /* bytes before the elements, so that these are aligned to cache lines */

int64_t value_size(const value *v)
{
    int64_t n = 1;
    for (int d = 0; d < v->rank; d++)
        n *= v->extent[d];
    return n;
}

/* Whether a shape has at most MAX_ELEMENTS elements. An extent of 0 does not excuse the others. */
static bool check_shape(session *s, place at, int rank, const int64_t *extents)
{
    int64_t n = 1;
    if (rank > MAX_RANK)
        return fail(s, at, "an array has at most %d dimensions", MAX_RANK);
    for (int d = 0; d < rank; d++) {
        if (extents[d] > MAX_ELEMENTS / n)
            return fail(s, at, "the array would have more than 2^48 elements");
        n *= extents[d] > 0 ? extents[d] : 1;
    }
    return true;
}

value *value_record(session *s, value_kind kind, int op, place at, int n_args, value **args,
                    int rank, const int64_t *extents)
{
    if (!check_shape(s, at, rank, extents))
        return NULL;
    value *v = calloc(1, sizeof *v);
    if (!v) {
        fail(s, at, "out of memory");
        return NULL;
    }
    v->kind = kind;
    v->op = op;
    v->dim = -1;
    v->at = at;
    v->rank = rank;
    v->references = 1;
    v->size = 1;
    for (int d = 0; d < rank; d++)
        v->extent[d] = extents[d];
    for (; v->n_args < n_args; v->n_args++) {
        v->arg[v->n_args] = value_retain(args[v->n_args]);
        v->size += args[v->n_args]->size;
    }
    return v;
}

value *value_number(double number)
{
    value *v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->references = 1;
    v->size = 1;
    v->number = number;
    v->data = &v->number;
    return v;
}

/* Memory of an array that is gone, of just this size: fresh memory costs more than most operations.
 */
static storage *take_spare(session *s, int64_t bytes)
{
    for (int i = 0; i < N_SPARE; i++)
        if (s->spare[i] && s->spare[i]->bytes == bytes) {
            storage *memory = s->spare[i];
            s->spare[i] = NULL;
            memory->references = 1;
            return memory;
        }
    return NULL;
}

static void storage_free(storage *memory)
{
    if (memory)
        memory->s->bytes -= memory->bytes;
    free(memory);
}

void storage_free_spare(session *s)
{
    for (int i = 0; i < N_SPARE; i++) {
        storage_free(s->spare[i]);
        s->spare[i] = NULL;
    }
}

static storage *new_storage(session *s, const value *v, int64_t bytes)
{
    if (bytes > MAX_STORED_BYTES - s->bytes)
        storage_free_spare(s);
    storage *memory = bytes > MAX_STORED_BYTES - s->bytes ? NULL : aligned_alloc(64, (size_t)bytes);
    if (!memory) {
        fail(s, v->at, "no memory for an array of %lld elements: all together may take 2 GiB",
             (long long)value_size(v));
        return NULL;
    }
    *memory = (storage){.references = 1, .bytes = bytes, .s = s};
    s->bytes += bytes;
    return memory;
}

bool value_allocate(session *s, value *v)
{
    if (v->rank == 0) {
        v->data = &v->number;
        return true;
    }
    int64_t n = 1;
    for (int d = v->rank - 1; d >= 0; d--) {
        v->stride[d] = n;
        n *= v->extent[d];
    }
    const int64_t bytes = (STORAGE_HEADER + n * (int64_t)sizeof(double) + 63) / 64 * 64;
    storage *memory = take_spare(s, bytes);
    if (!memory)
        memory = new_storage(s, v, bytes);
    if (!memory)
        return false;
    v->owner = memory;
    v->data = (double *)(void *)((char *)memory + STORAGE_HEADER);
    return true;
}

static void release_arguments(value *v)
{
    while (v->n_args > 0)
        value_release(v->arg[--v->n_args]);
}

void value_is_computed(value *v)
{
    v->kind = ARRAY;
    v->size = 1;
    release_arguments(v);
}

static void storage_release(storage *memory)
{
    if (!memory || --memory->references > 0)
        return;
    session *s = memory->s;
    storage_free(s->spare[s->next_spare]);
    s->spare[s->next_spare] = memory;
    s->next_spare = (s->next_spare + 1) % N_SPARE;
}

value *value_retain(value *v)
{
    v->references++;
    return v;
}

void value_release(value *v)
{
    if (!v || --v->references > 0)
        return;
    release_arguments(v); /* records are at most MAX_RECORDED deep */
    storage_release(v->owner);
    free(v);
}

value *value_view(session *s, value *v, place at, int rank, const int64_t *extents,
                  const int64_t *strides)
{
    value *view = value_record(s, ARRAY, 0, at, 0, NULL, rank, extents);
    if (!view)
        return NULL;
    memcpy(view->stride, strides, (size_t)rank * sizeof *strides);
    view->number = v->rank == 0 ? v->number : 0;
    view->data = v->rank == 0 ? &view->number : v->data;
    view->owner = v->owner;
    if (view->owner)
        view->owner->references++;
    return view;
}

bool has_shape_of(const value *a, const value *b)
{
    return a->rank == b->rank &&
           memcmp(a->extent, b->extent, (size_t)a->rank * sizeof *a->extent) == 0;
}

bool broadcast(session *s, place at, int n, value **args, int *rank, int64_t *extents)
{
    *rank = 0;
    for (int i = 0; i < n; i++)
        *rank = args[i]->rank > *rank ? args[i]->rank : *rank;
    for (int d = 0; d < *rank; d++)
        extents[d] = 1;
    for (int i = 0; i < n; i++)
        for (int d = 0; d < args[i]->rank; d++) {
            int64_t *extent = &extents[*rank - args[i]->rank + d];
            if (*extent == 1)
                *extent = args[i]->extent[d];
            else if (args[i]->extent[d] != 1 && args[i]->extent[d] != *extent)
                return fail(s, at, "extents %lld and %lld do not fit", (long long)*extent,
                            (long long)args[i]->extent[d]);
        }
    return true;
}

void strides_in(const value *array, int rank, int64_t *strides)
{
    for (int d = 0; d < rank; d++) {
        const int own = d - (rank - array->rank);
        strides[d] = own < 0 || array->extent[own] == 1 ? 0 : array->stride[own];
    }
}

/* ---------------------------------------------------------------- printing */

enum { MAX_SHOWN = 8, SHOWN_AT_ENDS = 3 };

static void print_part(const value *v, int d, const double *data)
{
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
