/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_speed.c: kernels against the same in CUDA C and against the driver's copy on the
 * device. Ours is a prepared call with exact extents and bounds checks on. A line is checked, ours
 * and theirs, before it is timed; then samples of ours, theirs and the copy are taken in turns
 * between two timed marks of one stream.
 */
#include "tests/bench/bench_cuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOT_TOLERANCE 1e-5

/* A case that is being run. */
typedef struct run {
    gpu_bench *b;
    const gpu_case *c;
    qn_kernel *k;
    qn_view view[3], from, to;
    qn_arg args[4];
    int n_args;
    qn_call *call;
    gpu_peer peer;
} run;

/* ---------------------------------------------------------------- what the host expects */

static double value_at(int64_t residue)
{
    return gpu_value((int)((residue % GPU_PRIME + GPU_PRIME) % GPU_PRIME)) / 16.0;
}

/* The result of a pointwise kernel or a stencil, by the residue of the result's index. */
static double expected_at(const gpu_case *c, int residue)
{
    const int64_t base = residue - c->out.seed, a = base + c->in[0].seed, b = base + c->in[1].seed;
    double sum = 0;
    switch (c->form) {
    case FORM_COPY:
        return value_at(a);
    case FORM_SAXPY:
        return GPU_SCALE * value_at(a) + value_at(residue);
    case FORM_TRIAD:
        return value_at(a) + GPU_SCALE * value_at(b);
    case FORM_STENCIL:
        for (int d = 0; d < c->out.rank; d++)
            sum += value_at(a - gpu_weight(d)) + value_at(a + gpu_weight(d));
        return value_at(a) + GPU_STEP * (sum - 2.0 * c->out.rank * value_at(a));
    case FORM_BRANCH:
        return value_at(a) > 0.5 ? GPU_SCALE * value_at(a) : value_at(a) + 0.5;
    case FORM_STEPS:
        sum = 1;
        for (int i = 0; i < 4; i++)
            sum = sum * value_at(a) + 0.5;
        return sum;
    default:
        return GPU_FILL;
    }
}

static bool check_table(const run *r, const char *who, qn_error *err)
{
    double table[GPU_PRIME];
    bool is_same = false;
    int64_t at = 0;
    for (int i = 0; i < GPU_PRIME; i++)
        table[i] = expected_at(r->c, i);
    if (gpu_compare(r->b, GPU_OUT, &r->c->out, table, r->c->form == FORM_STENCIL, &is_same, &at,
                    err))
        return false;
    if (!is_same)
        gpu_wrong(r->b, r->c->name, "%s: element %lld of the memory is not what the host expects",
                  who, (long long)at);
    return is_same;
}

static double number_of(int dtype, const void *p, int64_t i)
{
    return dtype == QN_F32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

/* The sum over one dimension of the first input at index `at` of the other one. */
static double line_sum(const gpu_array *a, int over, int64_t at)
{
    const int64_t index[3] = {over == 0 ? 0 : at, over == 0 ? at : 0, 0};
    int residue = gpu_residue(a, index);
    int64_t sum = 0;
    for (int64_t i = 0; i < a->extent[over]; i++) {
        sum += gpu_value(residue);
        residue += gpu_weight(over);
        residue -= residue >= GPU_PRIME ? GPU_PRIME : 0;
    }
    return (double)sum / 16.0;
}

static double dot_of(const gpu_array *x, const gpu_array *y)
{
    int64_t sum = 0, period = 0, n = gpu_elements(x);
    for (int64_t i = 0; i < GPU_PRIME; i++) {
        int64_t product = gpu_value(gpu_residue(x, &i)) * gpu_value(gpu_residue(y, &i));
        period += product;
        sum += i < n % GPU_PRIME ? product : 0;
    }
    return (double)(sum + n / GPU_PRIME * period) / 256.0;
}

static bool check_sums(const run *r, const char *who, qn_error *err)
{
    const gpu_case *c = r->c;
    const int64_t n = gpu_elements(&c->out);
    const void *found;
    if (gpu_get(r->b, GPU_OUT, &c->out, 0, n, &found, err))
        return false;
    for (int64_t i = 0; i < n; i++) {
        double is = number_of(c->dtype, found, i), wanted = 0, tolerance = 0;
        if (c->form == FORM_DOT) {
            wanted = dot_of(&c->in[0], &c->in[1]);
            tolerance = c->dtype == QN_F32 ? DOT_TOLERANCE * wanted : 0;
        } else {
            wanted = line_sum(&c->in[0], c->form == FORM_ROWS ? 1 : 0, i);
        }
        if (!(fabs(is - wanted) <= tolerance)) {
            gpu_wrong(r->b, c->name, "%s: sum %lld is %.9g, not %.9g", who, (long long)i, is,
                      wanted);
            return false;
        }
    }
    return true;
}

/* out[row] = sum of the matrix's row times x; all numbers are exact. */
static void times_vector(const gpu_array *m, const double *x, double *out)
{
    for (int64_t i = 0; i < m->extent[0]; i++) {
        const int64_t index[3] = {i, 0, 0};
        int residue = gpu_residue(m, index);
        out[i] = 0;
        for (int64_t j = 0; j < m->extent[1]; j++) {
            out[i] += gpu_value(residue) * x[j];
            residue += gpu_weight(1);
            residue -= residue >= GPU_PRIME ? GPU_PRIME : 0;
        }
        out[i] /= 16.0;
    }
}

/* y = A x; with values of 1/16 to 1 all sums are exact. */
static bool check_times(const run *r, const char *who, qn_error *err)
{
    const gpu_case *c = r->c;
    const int64_t m = c->in[0].extent[0], n = c->in[0].extent[1];
    double *x = malloc((size_t)(m + n) * sizeof *x), *y = x + n;
    const void *found;
    if (!x)
        return false;
    for (int64_t j = 0; j < n; j++)
        x[j] = value_at(gpu_residue(&c->in[1], &j));
    times_vector(&c->in[0], x, y);
    bool is_right = gpu_get(r->b, GPU_OUT, &c->out, 0, m, &found, err) == QN_OK;
    for (int64_t i = 0; i < m && is_right; i++) {
        is_right = number_of(c->dtype, found, i) == y[i];
        if (!is_right)
            gpu_wrong(r->b, c->name, "%s: element %lld is %.9g, not %.9g", who, (long long)i,
                      number_of(c->dtype, found, i), y[i]);
    }
    free(x);
    return is_right;
}

/* C x = A (B x) for a vector x of small numbers, exactly. */
static bool check_product(const run *r, const char *who, qn_error *err)
{
    const gpu_case *c = r->c;
    const int64_t n = c->out.extent[0], rows = gpu_chunk(r->b) / (n * qn_dtype_bytes(c->dtype));
    double *x = malloc((size_t)n * 3 * sizeof *x), *y = x + n, *z = y + n;
    if (!x)
        return false;
    for (int64_t i = 0; i < n; i++)
        x[i] = (double)gpu_value((int)(i * 37 % GPU_PRIME));
    times_vector(&c->in[1], x, y);
    times_vector(&c->in[0], y, z);
    bool is_right = true;
    for (int64_t first = 0; first < n && is_right; first += rows) {
        const int64_t count = n - first < rows ? n - first : rows;
        const void *found;
        is_right = gpu_get(r->b, GPU_OUT, &c->out, first * n, count * n, &found, err) == QN_OK;
        for (int64_t i = 0; i < count && is_right; i++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                sum += number_of(c->dtype, found, i * n + j) * x[j];
            is_right = sum == z[first + i];
            if (!is_right)
                gpu_wrong(r->b, c->name, "%s: row %lld times a vector is %.9g, not %.9g", who,
                          (long long)(first + i), sum, z[first + i]);
        }
    }
    free(x);
    return is_right;
}

/* One element of a product in a batch; all numbers are exact. */
static double batch_element(const gpu_case *c, const int64_t *at)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < c->out.extent[1]; k++) {
        const int64_t a[3] = {at[0], at[1], k}, b[3] = {at[0], k, at[2]};
        sum += gpu_value(gpu_residue(&c->in[0], a)) * gpu_value(gpu_residue(&c->in[1], b));
    }
    return (double)sum / 256.0;
}

/* A sample of the elements: all of the first, and of the last, of the memory. */
static bool check_batch(const run *r, const char *who, qn_error *err)
{
    const gpu_case *c = r->c;
    const int64_t all = gpu_elements(&c->out), most = gpu_chunk(r->b) / qn_dtype_bytes(c->dtype);
    const int64_t sample = most < 1 << 16 ? most : 1 << 16, n = all < sample ? all : sample;
    for (int end = 0; end < 2; end++) {
        const int64_t first = end ? all - n : 0;
        const void *found;
        if (gpu_get(r->b, GPU_OUT, &c->out, first, n, &found, err))
            return false;
        for (int64_t i = 0; i < n; i++) {
            int64_t at[3], element = first + i;
            for (int m = 0; m < 3; m++) {
                const int d = c->out.is_left ? m : 2 - m;
                at[d] = element % c->out.extent[d];
                element /= c->out.extent[d];
            }
            const double is = number_of(c->dtype, found, i), wanted = batch_element(c, at);
            if (is != wanted) {
                gpu_wrong(r->b, c->name, "%s: element %lld, %lld, %lld is %.9g, not %.9g", who,
                          (long long)at[0], (long long)at[1], (long long)at[2], is, wanted);
                return false;
            }
        }
    }
    return true;
}

static bool check(const run *r, const char *who, qn_error *err)
{
    if (r->c->form == FORM_BATCH)
        return check_batch(r, who, err);
    if (r->c->form == FORM_PRODUCT)
        return check_product(r, who, err);
    if (r->c->form == FORM_TIMES)
        return check_times(r, who, err);
    return r->c->form >= FORM_ROWS ? check_sums(r, who, err) : check_table(r, who, err);
}

/* ---------------------------------------------------------------- running */

static qn_status run_side(void *line, int side, qn_error *err)
{
    run *r = line;
    gpu_bench *b = r->b;
    void *stream = qn_stream_handle(b->stream), *out = b->slot[GPU_OUT].data;
    const void *x = b->slot[GPU_A].data, *y = b->slot[GPU_B].data;
    int result = 0;
    if (side == GPU_OURS)
        return qn_run(r->call, err);
    if (side == GPU_COPY)
        return qn_stream_copy(b->stream, &r->to, &r->from, err);
    const gpu_array *in = r->c->in;
    if (r->c->with_cublas && r->c->form == FORM_TIMES)
        result = gpu_raw_times(b->raw, stream, r->c->dtype, in->extent[0], in->extent[1],
                               in->is_left, out, x, y);
    else if (r->c->with_cublas && r->c->form == FORM_BATCH)
        result = gpu_raw_batch(b->raw, stream, r->c->dtype, r->c->out.extent[1],
                               r->c->out.extent[0], out, x, y);
    else if (r->c->with_cublas)
        result = gpu_raw_product(b->raw, stream, r->c->dtype, r->c->out.extent[0], in[0].is_left,
                                 in[1].is_left, out, x, y);
    else
        result = r->peer(stream, out, x, y);
    return gpu_peer_status(r->c->with_cublas ? "cuBLAS status" : "CUDA error", result, err);
}

/* The result's memory as it is before a call. */
static qn_status reset_out(run *r, qn_error *err)
{
    gpu_bench *b = r->b;
    if (!r->c->is_update)
        return gpu_poison(b, GPU_OUT, &r->c->out, err);
    b->holds[GPU_OUT].dtype = 0;
    return gpu_put(b, GPU_OUT, &r->c->out, err);
}

/* Runs one side and compares with the host; `times` > 1: the same bits every time. */
static bool run_and_check(run *r, int side, const char *who, int times)
{
    qn_error err = {0};
    char first[8] = {0};
    bool is_right = true;
    for (int i = 0; i < times && is_right; i++) {
        const void *bits;
        is_right = reset_out(r, &err) == QN_OK && run_side(r, side, &err) == QN_OK &&
                   qn_stream_fence(r->b->stream, &err) == QN_OK && check(r, who, &err);
        r->b->holds[GPU_OUT].dtype = 0;
        if (!is_right || times == 1 || gpu_get(r->b, GPU_OUT, &r->c->out, 0, 1, &bits, &err))
            continue;
        const size_t n = (size_t)qn_dtype_bytes(r->c->dtype);
        if (i > 0 && memcmp(first, bits, n) != 0) {
            gpu_wrong(r->b, r->c->name, "%s: other bits in run %d", who, i + 1);
            is_right = false;
        }
        memcpy(first, bits, n);
    }
    if (err.status)
        gpu_wrong(r->b, r->c->name, "%s: %s", who, err.message);
    return is_right && !err.status;
}

/* Whether there is something to compare with, and its results are right; the first call lets it
 * find its best variant. */
static bool ready_peer(run *r)
{
    qn_error err = {0};
    r->peer = r->c->with_cublas ? NULL : gpu_find_peer(r->b, r->c->name);
    if (!r->c->with_cublas && !r->peer) {
        if (r->b->peers && r->c->peer_goal > 0)
            gpu_wrong(r->b, r->c->name, "the peers have no kernel of this name");
        return false;
    }
    if (run_side(r, GPU_THEIRS, &err) || qn_stream_fence(r->b->stream, &err)) {
        if (r->c->with_cublas && !strcmp(err.message, "theirs: cuBLAS status -1"))
            printf("# %s: libcublas.so was not found\n", r->c->name);
        else
            gpu_wrong(r->b, r->c->name, "%s", err.message);
        return false;
    }
    return run_and_check(r, GPU_THEIRS, "theirs", 1);
}

/* Values, views, the kernel and a prepared call. */
static qn_status prepare(run *r, qn_error *err)
{
    gpu_bench *b = r->b;
    const gpu_case *c = r->c;
    qn_status status = gpu_view(b, GPU_OUT, &c->out, &r->view[0], err);
    r->args[r->n_args++] = qn_arg_view(&r->view[0]);
    for (int i = 0; i < c->n_in && !status; i++) {
        status = gpu_put(b, GPU_A + i, &c->in[i], err);
        if (!status)
            status = gpu_view(b, GPU_A + i, &c->in[i], &r->view[1 + i], err);
        r->args[r->n_args++] = qn_arg_view(&r->view[1 + i]);
    }
    if (c->has_scalar)
        r->args[r->n_args++] =
            c->dtype == QN_F32 ? qn_arg_f32((float)GPU_SCALE) : qn_arg_f64(GPU_SCALE);
    r->k = status ? NULL : gpu_kernel(c->text, c->dtype, err);
    if (!r->k)
        return status ? status : (qn_status)err->status;
    const qn_options o = {.bytes = sizeof o,
                          .executor = QN_CUDA,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .plan = &b->plan,
                          .stream = b->stream};
    if (b->text)
        gpu_print_text(b, c->name, r->k, r->n_args, r->args, &o);
    if (b->model)
        gpu_model_line(b, c->name, r->k, r->n_args, r->args, &o);
    return qn_prepare(b->context, r->k, r->n_args, r->args, &o, &r->call, err);
}

static void report(run *r, const double *median)
{
    const gpu_case *c = r->c;
    const double copied =
        2.0 * (double)r->b->memcpy_bytes / (median[GPU_COPY] > 0 ? median[GPU_COPY] : 1);
    gpu_line line = {.name = c->name,
                     .ours = median[GPU_OURS],
                     .theirs = median[GPU_THEIRS],
                     .peer_goal = c->peer_goal,
                     .memcpy_goal = c->memcpy_goal,
                     .rate_goal = c->rate_goal,
                     .is_counted = !c->with_cublas};
    if (median[GPU_OURS] <= 0) {
        gpu_wrong(r->b, c->name, "no time between two marks");
        return;
    }
    line.rate = (c->flops > 0 ? c->flops * 1e-12 : c->bytes * 1e-9) / median[GPU_OURS];
    line.unit = c->flops > 0 ? "TF/s" : "GB/s";
    line.to_memcpy =
        c->flops > 0 || median[GPU_COPY] <= 0 ? 0 : c->bytes / median[GPU_OURS] / copied;
    gpu_report(r->b, &line);
}

void gpu_run_case(gpu_bench *b, const gpu_case *c)
{
    if (!gpu_wants(b, c->name))
        return;
    qn_error err = {0};
    run r = {.b = b, .c = c, .from = b->slot[GPU_FROM], .to = b->slot[GPU_TO]};
    double median[GPU_SIDES] = {0};
    if (prepare(&r, &err)) {
        gpu_wrong(b, c->name, "%s", err.message);
    } else if (!b->model &&
               run_and_check(&r, GPU_OURS, "ours",
                             c->form >= FORM_ROWS && c->form <= FORM_DOT ? 3 : 1)) {
        const gpu_sides sides = {
            .b = b,
            .line = &r,
            .run = run_side,
            .is_there = {true, !(c->with_cublas && b->is_tiny) && ready_peer(&r), c->flops <= 0}};
        if (sides.is_there[GPU_THEIRS] || !c->with_cublas || c->memcpy_goal > 0) {
            if (gpu_time_sides(&sides, median, &err))
                gpu_wrong(b, c->name, "%s", err.message);
            else
                report(&r, median);
        }
    }
    b->holds[GPU_OUT].dtype = 0;
    qn_call_release(r.call);
    qn_kernel_release(r.k);
    for (int i = 0; i < 3; i++)
        qn_view_release(&r.view[i]);
}
