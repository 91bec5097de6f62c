/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_arrays.c: lines that say what their arrays hold. On small arrays all results have the
 * interpreter's bits; on large ones ours have those of the processor's code, and theirs are equal,
 * or near where an order of roundings is their own.
 */
#include "tests/bench/bench_cuda_arrays.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- arrays */

typedef struct array {
    const gpu_shape *shape;
    int64_t extent[GPU_RANK], n, item;
    void *initial, *wanted, *found; /* of the host; the last two of results only */
    qn_view there;
} array;

/* A line at one size. */
typedef struct run {
    gpu_bench *b;
    const gpu_arrays_line *u;
    const gpu_arrays_how *how;
    qn_kernel *kernel;
    qn_call *call;
    gpu_peer peer;
    array array[GPU_ARRAYS];
} run;

static uint32_t next_number(uint32_t *state)
{
    return (*state = *state * 1664525 + 1013904223) >> 8;
}

static bool is_starts(const gpu_shape *s)
{
    return s->holds == ROW_STARTS || s->holds == EVEN_STARTS;
}

/* Elements of sparse row i. */
static int64_t row_length(const gpu_shape *s, int64_t i)
{
    const int64_t n = (i * 7 + i / 16) % 16;
    return s->holds == EVEN_STARTS ? 20 + (i * 7 + i / 16) % 21 : n * n + 1;
}

/* Extents; those of elements of sparse rows once the rows are known. */
static void measure(run *r, bool is_small)
{
    int64_t n_in_rows = 0;
    for (int i = 0; i < r->u->n; i++) {
        array *a = &r->array[i];
        a->shape = &r->u->array[i];
        a->item = a->shape->dtype == QN_RECORD ? GPU_MEMBERS * (int64_t)sizeof(float)
                                               : qn_dtype_bytes(a->shape->dtype);
        a->n = 1;
        for (int d = 0; d < a->shape->rank; d++) {
            const int64_t n = is_small ? a->shape->tiny[d] : a->shape->extent[d];
            a->extent[d] = n ? n : n_in_rows;
            a->n *= a->extent[d];
        }
        for (int64_t row = 0; is_starts(a->shape) && row < a->n - 1; row++)
            n_in_rows += row_length(a->shape, row);
    }
}

static void fill_array(const run *r, array *a, int seed)
{
    static const uint16_t half[8] = {0x3400, 0x3800, 0x3a00, 0x3c00,
                                     0x3d00, 0x3e00, 0x3f00, 0x4000};
    uint32_t state = (uint32_t)seed * 7919 + 1;
    const int64_t n = a->shape->dtype == QN_RECORD ? GPU_MEMBERS * a->n : a->n;
    const array *first = &r->array[0];
    const int32_t *starts = first->initial;
    const int64_t below = is_starts(first->shape) ? first->n - 1 : first->n;
    int64_t row = 0;
    int32_t start = 0;
    for (int64_t i = 0; i < n; i++)
        switch (a->shape->holds) {
        case SIXTEENTHS:
            ((float *)a->initial)[i] = (float)(next_number(&state) % 16 + 1) / 16;
            break;
        case HALVES:
            ((uint16_t *)a->initial)[i] = half[next_number(&state) % 8];
            break;
        case BYTES:
            ((uint8_t *)a->initial)[i] = (uint8_t)next_number(&state);
            break;
        case INDICES:
            ((int32_t *)a->initial)[i] = (int32_t)(next_number(&state) % below);
            break;
        case PERMUTATION:
            ((int32_t *)a->initial)[i] = (int32_t)((uint32_t)i * 2654435761u % (uint32_t)a->n);
            break;
        case NEAR_ROW:
            while (i >= starts[row + 1])
                row++;
            ((int32_t *)a->initial)[i] = (int32_t)((row + next_number(&state) % 20000) % below);
            break;
        case ROW_STARTS:
        case EVEN_STARTS:
            ((int32_t *)a->initial)[i] = start;
            start += (int32_t)row_length(a->shape, i);
            break;
        default:
            break;
        }
}

/* A view of memory of the host. */
static qn_status wrap(const run *r, const array *a, void *data, qn_view *out, qn_error *err)
{
    qn_layout l;
    qn_status status = qn_layout_right(a->shape->rank, a->extent, &l, err);
    if (status)
        return status;
    return a->shape->dtype == QN_RECORD
               ? qn_view_wrap_record("array", data, r->how->record, &l, 0, out, err)
               : qn_view_wrap("array", data, a->shape->dtype, &l, 0, out, err);
}

static qn_status make_array(run *r, array *a, int seed, qn_error *err)
{
    qn_view_type type;
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = "array", .space = QN_SPACE_CUDA, .stream = r->b->stream};
    const size_t bytes = (size_t)(a->n * a->item);
    a->initial = calloc(bytes, 1);
    a->wanted = a->shape->is_result ? malloc(bytes) : NULL;
    a->found = a->shape->is_result ? malloc(bytes) : NULL;
    if (!a->initial || (a->shape->is_result && (!a->wanted || !a->found)))
        return QN_ERR_MEMORY;
    fill_array(r, a, seed);
    if (a->wanted)
        memcpy(a->wanted, a->initial, bytes);
    qn_status status =
        a->shape->dtype == QN_RECORD
            ? qn_view_type_init_record(r->how->record, a->shape->rank, NULL, QN_FAMILY_RIGHT, &type,
                                       err)
            : qn_view_type_init(a->shape->dtype, a->shape->rank, NULL, QN_FAMILY_RIGHT, &type, err);
    type.space = QN_SPACE_CUDA;
    return status ? status
                  : qn_view_create(r->b->context, &type, a->shape->rank, a->extent, &o, &a->there,
                                   err);
}

/* Arrays of the device get what they hold at first; `all`: else the results only. */
static qn_status upload(run *r, bool all, qn_error *err)
{
    qn_status status = QN_OK;
    for (int i = 0; i < r->u->n && !status; i++) {
        qn_view host;
        if (!all && !r->array[i].shape->is_result)
            continue;
        status = wrap(r, &r->array[i], r->array[i].initial, &host, err);
        if (!status)
            status = qn_stream_copy(r->b->stream, &r->array[i].there, &host, err);
    }
    return status ? status : qn_stream_fence(r->b->stream, err);
}

/* The results as the processor has them: by the interpreter, or compiled. */
static qn_status expect(run *r, bool by_interpreter, qn_error *err)
{
    const qn_options o = {.bytes = sizeof o,
                          .engine = by_interpreter ? QN_ENGINE_INTERP : QN_ENGINE_AUTO,
                          .executor = by_interpreter ? QN_SERIAL : QN_THREADS};
    qn_view host[GPU_ARRAYS];
    qn_arg args[GPU_ARRAYS];
    qn_status status = QN_OK;
    for (int i = 0; i < r->u->n && !status; i++) {
        array *a = &r->array[i];
        status = wrap(r, a, a->shape->is_result ? a->wanted : a->initial, &host[i], err);
        args[i] = qn_arg_view(&host[i]);
    }
    return status ? status : qn_launch(r->b->context, r->kernel, r->u->n, args, &o, err);
}

/* ---------------------------------------------------------------- running */

static qn_status run_side(void *line, int side, qn_error *err)
{
    run *r = line;
    const void *pointer[GPU_ARRAYS] = {NULL};
    if (side == GPU_OURS)
        return qn_run(r->call, err);
    for (int i = 0; i < r->u->n; i++)
        pointer[i] = r->array[i].there.data;
    return gpu_peer_status(
        "CUDA error",
        r->peer(qn_stream_handle(r->b->stream), r->array[r->u->n - 1].there.data, pointer, NULL),
        err);
}

static bool is_near(const run *r, const array *a)
{
    const float *found = a->found, *wanted = a->wanted;
    for (int64_t i = 0; i < a->n; i++)
        if (!(fabs((double)found[i] - (double)wanted[i]) <=
              r->u->tolerance * (1e-3 + fabs((double)wanted[i]))))
            return false;
    return true;
}

/* Runs once and compares. */
static bool run_and_check(run *r, int side, const char *what)
{
    qn_error err = {0};
    qn_status status = upload(r, false, &err);
    const bool is_ours = side == GPU_OURS;
    bool is_right = true;
    if (!status)
        status = run_side(r, side, &err);
    for (int i = 0; i < r->u->n && !status && is_right; i++) {
        array *a = &r->array[i];
        qn_view host;
        if (!a->shape->is_result)
            continue;
        status = wrap(r, a, a->found, &host, &err);
        if (!status)
            status = qn_stream_copy(r->b->stream, &host, &a->there, &err);
        if (!status)
            status = qn_stream_fence(r->b->stream, &err);
        is_right = memcmp(a->found, a->wanted, (size_t)(a->n * a->item)) == 0 ||
                   (!is_ours && r->u->tolerance > 0 && is_near(r, a));
        if (!is_right && !status)
            gpu_wrong(r->b, r->u->name, "%s: array %d is not %s", is_ours ? "ours" : "theirs", i,
                      what);
    }
    if (status)
        gpu_wrong(r->b, r->u->name, "%s: %s", is_ours ? "ours" : "theirs", err.message);
    return !status && is_right;
}

static void time_line(run *r)
{
    const gpu_sides sides = {
        .b = r->b, .line = r, .run = run_side, .is_there = {true, r->peer != NULL, false}};
    double median[GPU_SIDES], bytes = 0;
    qn_error err = {0};
    if (gpu_time_sides(&sides, median, &err)) {
        gpu_wrong(r->b, r->u->name, "%s", err.message);
        return;
    }
    for (int i = 0; i < r->u->n; i++)
        bytes += (double)(r->array[i].n * r->array[i].item) *
                 (r->array[i].shape->holds != ZEROS && r->array[i].shape->is_result ? 2 : 1);
    const gpu_line line = {.name = r->u->name,
                           .ours = median[GPU_OURS],
                           .theirs = median[GPU_THEIRS],
                           .rate = (r->u->flops > 0 ? r->u->flops * 1e-12 : bytes * 1e-9) /
                                   median[GPU_OURS],
                           .unit = r->u->flops > 0 ? "TF/s" : "GB/s",
                           .peer_goal = r->peer ? r->u->goal : 0,
                           .is_counted = r->peer != NULL};
    gpu_report(r->b, &line);
}

/* A line at one size: checked, and timed unless it is small. */
static bool run_size(gpu_bench *b, const gpu_arrays_line *u, qn_kernel *kernel,
                     const gpu_arrays_how *how, bool is_small)
{
    run r = {.b = b, .u = u, .kernel = kernel, .how = how};
    qn_error err = {0};
    qn_arg args[GPU_ARRAYS];
    const qn_options o = {.bytes = sizeof o,
                          .executor = QN_CUDA,
                          .stream = b->stream,
                          .checks = how->checks,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .plan = &b->plan};
    if (!is_small)
        r.peer = gpu_find_peer(b, how->peer ? how->peer : u->name);
    measure(&r, is_small);
    qn_status status = QN_OK;
    for (int i = 0; i < u->n && !status; i++) {
        status = make_array(&r, &r.array[i], i, &err);
        args[i] = qn_arg_view(&r.array[i].there);
    }
    if (!status)
        status = upload(&r, true, &err);
    if (!status && b->text && !is_small)
        gpu_print_text(b, u->name, kernel, u->n, args, &o);
    if (!status && b->model) {
        if (!is_small)
            gpu_model_line(b, u->name, kernel, u->n, args, &o);
        status = QN_ERR_CANCELLED;
    }
    if (!status)
        status = expect(&r, is_small, &err);
    if (!status)
        status = qn_prepare(b->context, kernel, u->n, args, &o, &r.call, &err);
    if (status && !b->model)
        gpu_wrong(b, u->name, "%s", err.message);
    bool is_right =
        !status &&
        run_and_check(&r, GPU_OURS, is_small ? "the interpreter's" : "the processor's") &&
        (!r.peer || run_and_check(&r, GPU_THEIRS, "the processor's"));
    if (is_right && (!is_small || b->is_tiny))
        time_line(&r);
    qn_call_release(r.call);
    for (int i = 0; i < u->n; i++) {
        qn_view_release(&r.array[i].there);
        free(r.array[i].initial);
        free(r.array[i].wanted);
        free(r.array[i].found);
    }
    return is_right || b->model;
}

void gpu_arrays_run(gpu_bench *b, const gpu_arrays_line *line, const gpu_arrays_how *how)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (!gpu_wants(b, line->name))
        return;
    if (qn_kernel_parse(line->text, strlen(line->text), &k, &err))
        gpu_wrong(b, line->name, "%s", err.message);
    else if (run_size(b, line, k, how, true) && !b->is_tiny)
        run_size(b, line, k, how, false);
    qn_kernel_release(k);
}
