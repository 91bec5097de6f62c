/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_uneven.c: lines of a GPU whose iterations differ in work or meet in memory: sparse
 * rows with and without checks, a `while`, a histogram. Results are compared with the host's, of
 * the `while` every 64th row; the peers do what the kernels say, thread by thread.
 */
#include "tests/fill.h"
#include "tests/bench/bench_cuda.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IN = 4, SAMPLES = 11, ROW_STEP = 64 };

/* An array of the host's, and the same on the device. */
typedef struct array {
    int dtype, rank;
    int64_t extent[2];
    void *data;
    qn_view view;
} array;

typedef struct uneven {
    const char *name, *peer, *text;
    int checks;
    array in[MOST_IN], out; /* out.data: what is expected */
    int n_in;
    int64_t row_step; /* rows of the result that are compared */
    double work;      /* 1e-9 x what the rate counts */
    const char *unit;
    double peer_goal;
} uneven;

/* in: where rows begin, columns, values, x */
static const char csr_text[] =
    "kernel \"csr\" contract {\n view start: i32[1]; view column: i32[1]; view value: f32[1]; view "
    "x: f32[1]; view y: f32[1];\n"
    " %0: i64 = const 0; %1: i64 = const 1; %n: i64 = extent y, 0; %i: i64 = parallel %0, %n; %j: "
    "i64 = add %i, %1;\n"
    " %b: i32 = load start[%i]; %e: i32 = load start[%j]; %bb: i64 = cast %b; %ee: i64 = cast %e; "
    "%z: f32 = const 0.0;\n"
    " %s: f32 = for %k: i64 = %bb to %ee step 1 (%a: f32 = %z) {\n"
    " %c: i32 = load column[%k]; %cc: i64 = cast %c; %v: f32 = load value[%k]; %x: f32 = load "
    "x[%cc];\n"
    " %p: f32 = mul %v, %x; %t: f32 = add %a, %p; yield %t;\n };\n store y[%i], %s;\n}\n";
/* GPU_MANDELBROT_MOST; the comparison tells whether the limit has to be counted. */
#define MANDELBROT(compare, last)                                                                  \
    "kernel \"mandelbrot\" {\n view y: i32[2];\n %0: i64 = const 0; %1: i64 = extent y, 0; %2: "   \
    "i64 = extent y, 1;\n"                                                                         \
    " %i: i64 = parallel %0, %1; %j: i64 = parallel %0, %2; %fi: f32 = cast %i; %fj: f32 = cast "  \
    "%j; %h: f32 = const 0x1p-11;\n"                                                               \
    " %l: f32 = const -2.0; %d: f32 = const -1.0; %cx: f32 = fma %fj, %h, %l; %cy: f32 = fma "     \
    "%fi, %h, %d;\n"                                                                               \
    " %z: f32 = const 0.0; %four: f32 = const 4.0; %zero: i32 = const 0; %one: i32 = const 1; "    \
    "%m: i32 = const " last "; %most: i64 = const 256;\n"                                          \
    " %u: f32, %v: f32, %n: i32 = while max %most (%a: f32 = %z, %b: f32 = %z, %c: i32 = %zero) "  \
    "{\n"                                                                                          \
    " %bb: f32 = mul %b, %b; %r: f32 = fma %a, %a, %bb; %in: bool = le %r, %four; %below: bool "   \
    "= " compare " %c, %m;\n"                                                                      \
    " %go: bool = and %in, %below; yield %go;\n } do {\n"                                          \
    " %vv: f32 = mul %b, %b; %x: f32 = sub %cx, %vv; %p: f32 = fma %a, %a, %x; %w: f32 = add %a, " \
    "%a; %q: f32 = fma %w, %b, %cy;\n"                                                             \
    " %t: i32 = add %c, %one; yield %p, %q, %t;\n };\n store y[%i, %j], %n;\n}\n"
static const char mandelbrot_text[] = MANDELBROT("lt", "256"),
                  counted_text[] = MANDELBROT("le", "255");
static const char histogram_text[] =
    "kernel \"histogram\" {\n view x: u8[1]; view h: u32[1] atomic;\n %0: i64 = const 0; %n: i64 = "
    "extent x, 0;\n"
    " %i: i64 = parallel %0, %n; %x: u8 = load x[%i]; %b: i64 = cast %x; %1: u32 = const 1; %o: "
    "u32 = atomic sum h[%b], %1;\n}\n";

/* ---------------------------------------------------------------- memory */

static int64_t elements(const array *s)
{
    return s->extent[0] * (s->rank > 1 ? s->extent[1] : 1);
}

static bool make_side(array *s, int dtype, int rank, int64_t n0, int64_t n1)
{
    *s = (array){.dtype = dtype, .rank = rank, .extent = {n0, n1}};
    s->data = calloc((size_t)elements(s), (size_t)qn_dtype_bytes(dtype));
    return s->data != NULL;
}

/* A view of the host's memory, and with `there` the same on the device. */
static qn_status wrap(gpu_bench *b, array *s, bool there, qn_view *host, qn_error *err)
{
    qn_layout l;
    qn_view_type type;
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = "array", .space = QN_SPACE_CUDA, .stream = b->stream};
    qn_status status = qn_layout_right(s->rank, s->extent, &l, err);
    if (!status)
        status = qn_view_wrap("host", s->data, s->dtype, &l, 0, host, err);
    if (status || !there)
        return status;
    status = qn_view_type_init(s->dtype, s->rank, NULL, QN_FAMILY_RIGHT, &type, err);
    type.space = QN_SPACE_CUDA;
    return status ? status
                  : qn_view_create(b->context, &type, s->rank, s->extent, &o, &s->view, err);
}

static qn_status upload(gpu_bench *b, uneven *u, qn_error *err)
{
    qn_view host;
    qn_status status = wrap(b, &u->out, true, &host, err);
    for (int i = 0; i < u->n_in && !status; i++) {
        status = wrap(b, &u->in[i], true, &host, err);
        if (!status)
            status = qn_stream_copy(b->stream, &u->in[i].view, &host, err);
    }
    return status ? status : qn_stream_fence(b->stream, err);
}

static void drop(uneven *u)
{
    for (int i = 0; i < u->n_in; i++) {
        qn_view_release(&u->in[i].view);
        free(u->in[i].data);
    }
    qn_view_release(&u->out.view);
    free(u->out.data);
}

/* ---------------------------------------------------------------- running */

typedef int (*peer_function)(void *stream, void *out, const void *a, const void *b);

typedef struct uneven_run {
    gpu_bench *b;
    uneven *u;
    qn_call *call;
    peer_function peer;
} uneven_run;

static qn_status run_side(uneven_run *r, bool is_ours, qn_error *err)
{
    const void *in[MOST_IN] = {NULL};
    if (is_ours)
        return qn_run(r->call, err);
    for (int i = 0; i < r->u->n_in; i++)
        in[i] = r->u->in[i].view.data;
    int result = r->peer(qn_stream_handle(r->b->stream), r->u->out.view.data, in, NULL);
    if (result)
        snprintf(err->message, sizeof err->message, "theirs: CUDA error %d", result);
    return result ? QN_ERR_CUDA : QN_OK;
}

/* Runs once into zeros, and compares. */
static bool run_and_check(uneven_run *r, bool is_ours)
{
    const array *out = &r->u->out;
    const size_t bytes = (size_t)(elements(out) * qn_dtype_bytes(out->dtype)),
                 row = bytes / (size_t)out->extent[0];
    array found = *out;
    qn_view host;
    qn_error err = {0};
    bool is_same = true;
    found.data = malloc(bytes);
    qn_status status =
        found.data ? stream_fill_bits(r->b->stream, &out->view, 0, &err) : QN_ERR_MEMORY;
    if (!status)
        status = run_side(r, is_ours, &err);
    if (!status)
        status = wrap(r->b, &found, false, &host, &err);
    if (!status)
        status = qn_stream_copy(r->b->stream, &host, &out->view, &err);
    if (!status)
        status = qn_stream_fence(r->b->stream, &err);
    for (int64_t i = 0; i < out->extent[0] && !status && is_same; i += r->u->row_step) {
        const size_t at = (size_t)i * row;
        is_same = memcmp((char *)found.data + at, (char *)out->data + at, row) == 0;
        if (!is_same)
            gpu_wrong(r->b, r->u->name, "%s: row %lld is not what the host expects",
                      is_ours ? "ours" : "theirs", (long long)i);
    }
    if (status)
        gpu_wrong(r->b, r->u->name, "%s", err.message);
    free(found.data);
    return !status && is_same;
}

static qn_status time_side(uneven_run *r, bool is_ours, double *seconds, qn_error *err)
{
    qn_mark *begin = NULL, *end = NULL;
    double ms = 0;
    qn_status status = qn_stream_mark(r->b->stream, 1, &begin, err);
    if (!status)
        status = run_side(r, is_ours, err);
    if (!status)
        status = qn_stream_mark(r->b->stream, 1, &end, err);
    if (!status)
        status = qn_stream_fence(r->b->stream, err);
    if (!status)
        status = qn_mark_milliseconds(begin, end, &ms, err);
    qn_mark_release(begin);
    qn_mark_release(end);
    *seconds = ms * 1e-3;
    return status;
}

static void time_line(uneven_run *r)
{
    double sample[2][SAMPLES], median[2] = {0};
    const int n = r->b->is_tiny ? 1 : SAMPLES;
    qn_error err = {0};
    qn_status status = QN_OK;
    for (int i = 0; i < n && !status; i++)
        for (int turn = 0; turn < 2 && !status; turn++) {
            const int who = (turn + i) % 2;
            if (who == 0 || r->peer)
                status = time_side(r, who == 0, &sample[who][i], &err);
        }
    if (status) {
        gpu_wrong(r->b, r->u->name, "%s", err.message);
        return;
    }
    for (int who = 0; who < (r->peer ? 2 : 1); who++)
        median[who] = gpu_median(sample[who], n);
    const gpu_line line = {.name = r->u->name,
                           .ours = median[0],
                           .theirs = median[1],
                           .rate = r->u->work / median[0],
                           .unit = r->u->unit,
                           .peer_goal = r->peer ? r->u->peer_goal : 0,
                           .is_counted = r->peer != NULL};
    gpu_report(r->b, &line);
}

static void run_line(gpu_bench *b, uneven *u)
{
    uneven_run r = {.b = b, .u = u};
    qn_error err = {0};
    qn_arg args[MOST_IN + 1];
    const qn_options o = {.bytes = sizeof o,
                          .executor = QN_CUDA,
                          .stream = b->stream,
                          .checks = u->checks,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .plan = &b->plan};
    qn_kernel *k = gpu_kernel(u->text, QN_F32, &err);
    void *symbol = b->peers ? dlsym(b->peers, u->peer) : NULL;
    memcpy(&r.peer, &symbol, sizeof r.peer);
    qn_status status = k ? upload(b, u, &err) : QN_ERR_PARSE;
    for (int i = 0; i < u->n_in; i++)
        args[i] = qn_arg_view(&u->in[i].view);
    args[u->n_in] = qn_arg_view(&u->out.view);
    if (!status)
        status = qn_prepare(b->context, k, u->n_in + 1, args, &o, &r.call, &err);
    if (status)
        gpu_wrong(b, u->name, "%s", err.message);
    else if (run_and_check(&r, true) && (!r.peer || run_and_check(&r, false)))
        time_line(&r);
    qn_call_release(r.call);
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- the lines */

static uint32_t next_number(uint32_t *state)
{
    return (*state = *state * 1664525 + 1013904223) >> 8;
}

/* Rows of 20 to 40 columns, and y = A x: all numbers are exact. */
static bool make_csr(const gpu_bench *b, uneven *u)
{
    const int64_t rows = b->is_tiny ? 300 : GPU_CSR_ROWS;
    uint32_t state = 1;
    int64_t n = 0;
    if (!make_side(&u->in[0], QN_I32, 1, rows + 1, 0) ||
        !make_side(&u->in[3], QN_F32, 1, rows, 0) || !make_side(&u->out, QN_F32, 1, rows, 0))
        return false;
    int32_t *start = u->in[0].data;
    for (int64_t i = 0; i < rows; i++) {
        start[i] = (int32_t)n;
        n += 20 + next_number(&state) % 21;
    }
    start[rows] = (int32_t)n;
    if (!make_side(&u->in[1], QN_I32, 1, n, 0) || !make_side(&u->in[2], QN_F32, 1, n, 0))
        return false;
    int32_t *column = u->in[1].data;
    float *value = u->in[2].data, *x = u->in[3].data, *y = u->out.data;
    for (int64_t i = 0; i < rows; i++)
        x[i] = (float)(next_number(&state) % 33) / 16;
    for (int64_t i = 0; i < rows; i++)
        for (int32_t k = start[i]; k < start[i + 1]; k++) {
            column[k] = (int32_t)((i + next_number(&state) % 20000) % rows);
            value[k] = (float)(next_number(&state) % 17) / 4 - 2;
            y[i] += value[k] * x[column[k]];
        }
    u->work = 8e-9 * (double)n;
    return true;
}

static bool make_mandelbrot(const gpu_bench *b, uneven *u)
{
    const int64_t n = b->is_tiny ? 65 : GPU_MANDELBROT;
    if (!make_side(&u->out, QN_I32, 2, n, n))
        return false;
    for (int64_t i = 0; i < n; i += ROW_STEP)
        for (int64_t j = 0; j < n; j++) {
            const float cx = fmaf((float)j, 0x1p-11f, -2), cy = fmaf((float)i, 0x1p-11f, -1);
            float x = 0, y = 0;
            int32_t count = 0;
            for (; fmaf(x, x, y * y) <= 4 && count < GPU_MANDELBROT_MOST; count++) {
                const float next = fmaf(x, x, cx - y * y);
                y = fmaf(x + x, y, cy);
                x = next;
            }
            ((int32_t *)u->out.data)[i * n + j] = count;
        }
    u->work = 1e-9 * (double)(n * n);
    return true;
}

static bool make_histogram(const gpu_bench *b, uneven *u)
{
    const int64_t n = b->is_tiny ? 3000 : GPU_HISTOGRAM;
    uint32_t state = 7;
    if (!make_side(&u->in[0], QN_U8, 1, n, 0) || !make_side(&u->out, QN_U32, 1, 256, 0))
        return false;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t at = (uint8_t)next_number(&state);
        ((uint8_t *)u->in[0].data)[i] = at;
        ((uint32_t *)u->out.data)[at]++;
    }
    u->work = 1e-9 * (double)n;
    return true;
}

void gpu_uneven_cases(gpu_bench *b)
{
    static const struct {
        uneven u;
        bool (*make)(const gpu_bench *b, uneven *u);
    } line[] = {
        {{.name = "csr/f32",
          .peer = "peer_csr",
          .text = csr_text,
          .n_in = 4,
          .row_step = 1,
          .unit = "GB/s",
          .peer_goal = 0.9},
         make_csr},
        {{.name = "csr/f32/unchecked",
          .peer = "peer_csr",
          .text = csr_text,
          .checks = QN_CHECKS_NONE,
          .n_in = 4,
          .row_step = 1,
          .unit = "GB/s",
          .peer_goal = 0.95},
         make_csr},
        {{.name = "mandelbrot/f32",
          .peer = "peer_mandelbrot",
          .text = mandelbrot_text,
          .row_step = ROW_STEP,
          .unit = "G/s",
          .peer_goal = 0.95},
         make_mandelbrot},
        {{.name = "mandelbrot/f32/counted",
          .peer = "peer_mandelbrot",
          .text = counted_text,
          .row_step = ROW_STEP,
          .unit = "G/s",
          .peer_goal = 0.8},
         make_mandelbrot},
        {{.name = "histogram/u8",
          .peer = "peer_histogram",
          .text = histogram_text,
          .n_in = 1,
          .row_step = 1,
          .unit = "G/s",
          .peer_goal = 0.95},
         make_histogram},
    };
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++) {
        uneven u = line[i].u;
        if (!gpu_wants(b, u.name))
            continue;
        if (line[i].make(b, &u))
            run_line(b, &u);
        else
            gpu_wrong(b, u.name, "no memory");
        drop(&u);
    }
}
