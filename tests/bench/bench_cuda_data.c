/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_data.c: memory on the device, values in it, results against the host's. The value of
 * an element depends on (seed + sum of index x weight) modulo a prime, so that any element in a
 * wrong place is seen, and what a pointwise kernel or a stencil computes is a function of this
 * residue alone: the host makes a table of it and compares memory.
 */
#include "tests/fill.h"
#include "tests/bench/bench_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BYTES = 16 }; /* of an element */

static const int weight[3] = {1009, 517, 29};

int gpu_weight(int dimension)
{
    return weight[dimension];
}

int gpu_residue(const gpu_array *a, const int64_t *index)
{
    int64_t r = a->seed;
    for (int d = 0; d < a->rank; d++)
        r += index[d] * weight[d];
    return (int)(r % GPU_PRIME);
}

int gpu_value(int residue)
{
    return (int)(((uint32_t)residue * 2654435761u) >> 28) + 1;
}

gpu_array gpu_array_of(const gpu_bench *b, int dtype, int rank, int64_t n0, int64_t n1, int64_t n2)
{
    gpu_array a = {.dtype = dtype, .rank = rank, .extent = {n0, n1, n2}};
    static const int64_t tiny[3][3] = {{5003}, {67, 93}, {13, 11, 37}};
    if (b->is_tiny && rank > 0)
        memcpy(a.extent, tiny[rank - 1], sizeof a.extent);
    return a;
}

int64_t gpu_elements(const gpu_array *a)
{
    int64_t n = 1;
    for (int d = 0; d < a->rank; d++)
        n *= a->extent[d];
    return n;
}

int64_t gpu_chunk(const gpu_bench *b)
{
    return b->staging.layout.dim[0].extent;
}

/* ---------------------------------------------------------------- memory */

static qn_status allocate(gpu_bench *b, int space, const char *label, int64_t bytes, qn_view *out,
                          qn_error *err)
{
    qn_view_type type;
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = label, .uninitialised = 1, .space = space};
    qn_status status = qn_view_type_init(QN_U8, 1, NULL, QN_FAMILY_ANY, &type, err);
    type.space = space;
    return status ? status : qn_view_create(b->context, &type, 1, &bytes, &o, out, err);
}

qn_status gpu_memory(gpu_bench *b, qn_error *err)
{
    static const char *const label[GPU_SLOTS] = {"out", "a", "b", "from", "to"};
    const int64_t large = b->is_tiny ? 1 << 20 : GPU_SQUARE * GPU_SQUARE * 8;
    const int64_t chunk = b->is_tiny ? 4096 * 8 : 64 << 20;
    b->memcpy_bytes = b->is_tiny ? 1 << 16 : GPU_VECTOR_BYTES;
    qn_status status = QN_OK;
    for (int i = 0; i < GPU_SLOTS && !status; i++)
        status = allocate(b, QN_SPACE_CUDA, label[i], i < GPU_FROM ? large : b->memcpy_bytes,
                          &b->slot[i], err);
    if (!status)
        status = allocate(b, QN_SPACE_CUDA_PINNED, "staging", chunk, &b->staging, err);
    b->scratch = malloc((size_t)chunk);
    return status;
}

void gpu_memory_release(gpu_bench *b)
{
    for (int i = 0; i < GPU_SLOTS; i++)
        qn_view_release(&b->slot[i]);
    qn_view_release(&b->staging);
    free(b->scratch);
}

static qn_status layout_of(const gpu_array *a, qn_layout *out, qn_error *err)
{
    return a->is_left ? qn_layout_left(a->rank, a->extent, out, err)
                      : qn_layout_right(a->rank, a->extent, out, err);
}

qn_status gpu_view(gpu_bench *b, int slot, const gpu_array *a, qn_view *out, qn_error *err)
{
    qn_layout l;
    qn_status status = layout_of(a, &l, err);
    return status ? status
                  : qn_cuda_wrap(b->context, QN_SPACE_CUDA, b->slot[slot].label, b->slot[slot].data,
                                 a->dtype, &l, 0, out, err);
}

/* Bytes [first, first + n) of a vector of bytes. */
static qn_status part(const qn_view *v, int64_t first, int64_t n, qn_view *out, qn_error *err)
{
    const qn_slice cut = {.kind = QN_RANGE, .begin = first, .end = first + n, .step = 1};
    return qn_subview(v, 1, &cut, out, err);
}

/* Copies between a slot, from byte `first`, and the staging memory. */
static qn_status move(gpu_bench *b, int slot, int64_t first, int64_t n, bool is_up, qn_error *err)
{
    qn_view there = {0}, here = {0};
    qn_status status = part(&b->slot[slot], first, n, &there, err);
    if (!status)
        status = part(&b->staging, 0, n, &here, err);
    if (!status)
        status = qn_stream_copy(b->stream, is_up ? &there : &here, is_up ? &here : &there, err);
    if (!status)
        status = qn_stream_fence(b->stream, err);
    qn_view_release(&there);
    qn_view_release(&here);
    return status;
}

qn_status gpu_get(gpu_bench *b, int slot, const gpu_array *a, int64_t first, int64_t n,
                  const void **out, qn_error *err)
{
    const int64_t bytes = qn_dtype_bytes(a->dtype);
    *out = b->staging.data;
    return move(b, slot, first * bytes, n * bytes, false, err);
}

qn_status gpu_poison(gpu_bench *b, int slot, const gpu_array *a, qn_error *err)
{
    qn_view v = {0};
    b->holds[slot].dtype = 0;
    qn_status status = part(&b->slot[slot], 0, gpu_elements(a) * qn_dtype_bytes(a->dtype), &v, err);
    if (!status)
        status = stream_fill_bits(b->stream, &v, 0xFF, err);
    qn_view_release(&v);
    return status;
}

/* ---------------------------------------------------------------- values */

static void element_of(int dtype, double value, void *out)
{
    float f = (float)value;
    unsigned char byte = (unsigned char)(value * 16 * 13); /* all values differ */
    if (dtype == QN_F64)
        memcpy(out, &value, sizeof value);
    else if (dtype == QN_F32)
        memcpy(out, &f, sizeof f);
    else
        memcpy(out, &byte, sizeof byte);
}

/* The elements of a step along the fastest dimension, two periods of them: run[t] is table[t *
 * step]. */
typedef struct runs {
    const gpu_array *a;
    int fastest, place[GPU_PRIME]; /* of a residue in the run */
    bool has_border;
    size_t bytes;
    char run[2 * GPU_PRIME * MAX_BYTES];
} runs;

static void make_runs(runs *r, const gpu_array *a, const double *table, bool has_border)
{
    r->a = a;
    r->has_border = has_border;
    r->bytes = (size_t)qn_dtype_bytes(a->dtype);
    r->fastest = a->is_left || a->rank == 0 ? 0 : a->rank - 1;
    for (int t = 0; t < 2 * GPU_PRIME; t++) {
        int residue = (int)((int64_t)t * weight[r->fastest] % GPU_PRIME);
        if (t < GPU_PRIME)
            r->place[residue] = t;
        element_of(a->dtype, table[residue], r->run + (size_t)t * r->bytes);
    }
}

/* The index of an element in the order of memory. */
static void index_of(const gpu_array *a, int64_t element, int64_t *index)
{
    for (int n = 0; n < a->rank; n++) {
        int d = a->is_left ? n : a->rank - 1 - n;
        index[d] = element % a->extent[d];
        element /= a->extent[d];
    }
}

/* Writes the elements of one row, from index[fastest] on. */
static void write_row(const runs *r, const int64_t *index, int64_t n, char *out)
{
    const gpu_array *a = r->a;
    bool is_outside = false;
    for (int d = 0; d < a->rank; d++)
        if (d != r->fastest)
            is_outside = is_outside || index[d] == 0 || index[d] == a->extent[d] - 1;
    if (r->has_border && is_outside) {
        memset(out, 0xFF, (size_t)n * r->bytes);
        return;
    }
    int64_t at = r->place[gpu_residue(a, index)];
    for (int64_t done = 0; done < n;) {
        int64_t count = n - done < GPU_PRIME ? n - done : GPU_PRIME;
        memcpy(out + (size_t)done * r->bytes, r->run + (size_t)at * r->bytes,
               (size_t)count * r->bytes);
        done += count; /* after a whole period the place is the same */
    }
    int64_t begin = a->rank ? index[r->fastest] : 0, last = a->rank ? a->extent[r->fastest] - 1 : 0;
    if (r->has_border && begin == 0)
        memset(out, 0xFF, r->bytes);
    if (r->has_border && begin + n - 1 == last)
        memset(out + (size_t)(n - 1) * r->bytes, 0xFF, r->bytes);
}

/* The elements [first, first + n) in the order of memory. */
static void write_elements(const runs *r, int64_t first, int64_t n, char *out)
{
    while (n > 0) {
        int64_t index[3] = {0}, count = n;
        index_of(r->a, first, index);
        int64_t left = r->a->rank ? r->a->extent[r->fastest] - index[r->fastest] : 1;
        count = count < left ? count : left;
        write_row(r, index, count, out);
        out += (size_t)count * r->bytes;
        first += count;
        n -= count;
    }
}

static bool same_array(const gpu_array *x, const gpu_array *y)
{
    bool is_same = x->dtype == y->dtype && x->rank == y->rank && x->is_left == y->is_left &&
                   x->seed == y->seed;
    for (int d = 0; is_same && d < x->rank; d++)
        is_same = x->extent[d] == y->extent[d];
    return is_same;
}

qn_status gpu_put(gpu_bench *b, int slot, const gpu_array *a, qn_error *err)
{
    static runs r;
    double table[GPU_PRIME];
    if (same_array(&b->holds[slot], a))
        return QN_OK;
    for (int i = 0; i < GPU_PRIME; i++)
        table[i] = gpu_value(i) / 16.0;
    make_runs(&r, a, table, false);
    b->holds[slot].dtype = 0;
    const int64_t n = gpu_elements(a), bytes = (int64_t)r.bytes, chunk = gpu_chunk(b) / bytes;
    qn_status status = QN_OK;
    for (int64_t first = 0; first < n && !status; first += chunk) {
        int64_t count = n - first < chunk ? n - first : chunk;
        write_elements(&r, first, count, b->staging.data);
        status = move(b, slot, first * bytes, count * bytes, true, err);
    }
    if (!status)
        b->holds[slot] = *a;
    return status;
}

qn_status gpu_compare(gpu_bench *b, int slot, const gpu_array *a, const double *table,
                      bool has_border, bool *is_same, int64_t *at, qn_error *err)
{
    static runs r;
    make_runs(&r, a, table, has_border);
    const int64_t n = gpu_elements(a), bytes = (int64_t)r.bytes, chunk = gpu_chunk(b) / bytes;
    *is_same = true;
    for (int64_t first = 0; first < n && *is_same; first += chunk) {
        int64_t count = n - first < chunk ? n - first : chunk;
        const void *found;
        qn_status status = gpu_get(b, slot, a, first, count, &found, err);
        if (status)
            return status;
        write_elements(&r, first, count, b->scratch);
        const char *x = found, *y = b->scratch;
        if (memcmp(x, y, (size_t)(count * bytes)) == 0)
            continue;
        int64_t byte = 0;
        while (x[byte] == y[byte])
            byte++;
        *at = first + byte / bytes;
        *is_same = false;
    }
    return QN_OK;
}
