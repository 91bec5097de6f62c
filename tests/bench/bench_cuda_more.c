/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_more.c: lines of a GPU beside those of bench_cuda_lines.c: bodies with branches and
 * loops, batches of small products, copies between host and device, and between two devices.
 */
#include "tests/bench/bench_cuda.h"

#include <stdio.h>


/* GPU_BRANCH_LIMIT, GPU_SCALE */
static const char branch_text[] =
    "kernel \"branch\" {\n view y: @[1]; view x: @[1];\n" GPU_VECTOR_HEAD
    " %3: @ = load x[%2]; %l: @ = const 0x1p-1; %c: bool = gt %3, %l;\n"
    " %r: @ = if %c {\n %s: @ = const 0x1.8p-2; %a: @ = mul %3, %s; yield %a;\n } else {\n"
    " %b: @ = add %3, %l; yield %b;\n };\n store y[%2], %r;\n}\n";
/* Four steps of r = r * x + 1/2 from 1. */
static const char steps_text[] =
    "kernel \"steps\" {\n view y: @[1]; view x: @[1];\n" GPU_VECTOR_HEAD
    " %3: @ = load x[%2]; %o: @ = const 1.0; %h: @ = const 0x1p-1; %n: i64 = const 4;\n"
    " %r: @ = for %t: i64 = %0 to %n step 1 (%v: @ = %o) {\n"
    " %a: @ = mul %v, %3; %b: @ = add %a, %h; yield %b;\n };\n store y[%2], %r;\n}\n";
static const char batch_text[] =
    "kernel \"batch\" contract {\n view y: @[3]; view a: @[3]; view b: @[3];\n"
    " %0: i64 = const 0; %1: i64 = extent y, 0; %2: i64 = extent y, 1;\n"
    " %b: i64 = parallel %0, %1; %i: i64 = parallel %0, %2; %j: i64 = parallel %0, %2; %k: i64 = "
    "reduction %0, %2;\n"
    " %r: @ = reduce sum over %k {\n"
    " %4: @ = load a[%b, %i, %k]; %5: @ = load b[%b, %k, %j]; %6: @ = mul %4, %5; yield %6;\n };\n"
    " store y[%b, %i, %j], %r;\n}\n";

static void body_lines(gpu_bench *b, int dtype)
{
    static const struct {
        const char *name, *text;
        int form;
    } line[] = {{"branch", branch_text, FORM_BRANCH}, {"steps", steps_text, FORM_STEPS}};
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++) {
        gpu_case c = {.text = line[i].text,
                      .form = line[i].form,
                      .dtype = dtype,
                      .n_in = 1,
                      .peer_goal = 0.98};
        c.out = c.in[0] = gpu_array_of(b, dtype, 1, GPU_VECTOR_BYTES / qn_dtype_bytes(dtype), 0, 0);
        c.bytes = 2.0 * (double)(gpu_elements(&c.out) * qn_dtype_bytes(dtype));
        snprintf(c.name, sizeof c.name, "%s/%s", line[i].name, qn_dtype_name(dtype));
        gpu_run_case(b, &c);
    }
}

/* Batches of products of n x n: matrices one after the other, against cuBLAS, or the number in the
 * batch fastest. */
static void batch_lines(gpu_bench *b, int dtype)
{
    static const int64_t sizes[] = {3, 4, 5, 8, 13, 16, 32};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int is_last = 0; is_last < 2; is_last++) {
            const int64_t n = sizes[i],
                          count =
                              b->is_tiny ? 75 : GPU_BATCH_BYTES / (n * n * qn_dtype_bytes(dtype));
            gpu_case c = {.text = batch_text,
                          .form = FORM_BATCH,
                          .dtype = dtype,
                          .n_in = 2,
                          .with_cublas = !is_last};
            c.memcpy_goal = n <= 16 ? 0.8 : 0;
            c.out =
                (gpu_array){.dtype = dtype, .rank = 3, .extent = {count, n, n}, .is_left = is_last};
            c.in[0] = c.in[1] = c.out;
            c.in[1].seed = 1700;
            c.bytes = 3.0 * (double)(gpu_elements(&c.out) * qn_dtype_bytes(dtype));
            snprintf(c.name, sizeof c.name, "batch/%s/%s/%lld%s", qn_dtype_name(dtype),
                     is_last ? "last" : "first", (long long)n, is_last ? "" : "/cublas");
            gpu_run_case(b, &c);
        }
}

/* ---------------------------------------------------------------- between host and device */

typedef struct transfer {
    const char *name;
    bool is_up, is_turned,
        is_gapped; /* the host's side has the other order; every other element of it */
    double goal;   /* part of the speed of the driver's copy of as many bytes of pinned memory */
} transfer;

static double time_transfer(gpu_bench *b, const qn_view *to, const qn_view *from, qn_error *err)
{
    double sample[3];
    qn_status status = qn_stream_copy(b->stream, to, from, err);
    for (int i = 0; i < 3 && !status; i++) {
        double begin = gpu_now();
        status = qn_stream_copy(b->stream, to, from, err);
        if (!status)
            status = qn_stream_fence(b->stream, err);
        sample[i] = gpu_now() - begin;
    }
    return status ? 0 : gpu_median(sample, 3);
}

static qn_status host_view(gpu_bench *b, int space, bool is_turned, const int64_t *extent,
                           qn_view *out, qn_error *err)
{
    qn_view_type type;
    const qn_alloc_options o = {.bytes = sizeof o, .label = "host", .space = space};
    qn_status status = qn_view_type_init(QN_F32, 2, NULL,
                                         is_turned ? QN_FAMILY_LEFT : QN_FAMILY_RIGHT, &type, err);
    type.space = space;
    return status ? status : qn_view_create(b->context, &type, 2, extent, &o, out, err);
}

static void transfer_line(gpu_bench *b, const transfer *t)
{
    const int64_t rows = b->is_tiny ? 64 : 4096, columns = b->is_tiny ? 64 : 8192,
                  all[2] = {rows, columns * (1 + t->is_gapped)};
    const gpu_array dense = {.dtype = QN_F32, .rank = 2, .extent = {rows, columns}};
    const qn_slice cut[2] = {
        {.kind = QN_RANGE, .begin = 0, .end = rows, .step = 1},
        {.kind = QN_RANGE, .begin = 0, .end = all[1], .step = 1 + t->is_gapped}};
    qn_view there = {0}, whole = {0}, here = {0}, pinned = {0};
    qn_error err = {0};
    double ours = 0, theirs = 0;
    if (!gpu_wants(b, t->name))
        return;
    qn_status status = gpu_view(b, GPU_A, &dense, &there, &err);
    if (!status)
        status = host_view(b, QN_SPACE_HOST, t->is_turned, all, &whole, &err);
    if (!status)
        status = qn_subview(&whole, 2, cut, &here, &err);
    if (!status)
        status = host_view(b, QN_SPACE_CUDA_PINNED, false, dense.extent, &pinned, &err);
    if (!status)
        ours = time_transfer(b, t->is_up ? &there : &here, t->is_up ? &here : &there, &err);
    if (!status)
        theirs = time_transfer(b, t->is_up ? &there : &pinned, t->is_up ? &pinned : &there, &err);
    b->holds[GPU_A].dtype = 0;
    if (status || err.status) {
        gpu_wrong(b, t->name, "%s", err.message);
    } else {
        gpu_line line = {.name = t->name,
                         .ours = ours,
                         .theirs = theirs,
                         .unit = "GB/s",
                         .peer_goal = t->goal,
                         .rate = (double)(rows * columns) * 4e-9 / ours,
                         .remark = "theirs is of pinned memory, dense"};
        gpu_report(b, &line);
    }
    qn_view_release(&pinned);
    qn_view_release(&here);
    qn_view_release(&whole);
    qn_view_release(&there);
}

/* ---------------------------------------------------------------- between two devices */

/* As many bytes as `transfer` moves, before any kernel has used memory of the other device. */
static void peer_line(gpu_bench *b)
{
    static const char name[] = "transfer/peer/dense";
    const int64_t n = b->is_tiny ? 4096 : 128 << 20;
    qn_view near = {0}, far = {0};
    qn_view_type type;
    qn_stream *other = NULL;
    qn_error err = {0};
    double seconds = 0;
    int n_devices = 0;
    if (!gpu_wants(b, name) || qn_cuda_device_count(b->context, &n_devices, &err) || n_devices < 2)
        return;
    qn_alloc_options o = {
        .bytes = sizeof o, .label = "near", .space = QN_SPACE_CUDA, .stream = b->stream};
    qn_status status = qn_stream_new(b->context, 1, &other, &err);
    if (!status)
        status = qn_view_type_init(QN_U8, 1, NULL, QN_FAMILY_ANY, &type, &err);
    type.space = QN_SPACE_CUDA;
    if (!status)
        status = qn_view_create(b->context, &type, 1, &n, &o, &near, &err);
    o.stream = other;
    if (!status)
        status = qn_view_create(b->context, &type, 1, &n, &o, &far, &err);
    if (!status)
        seconds = time_transfer(b, &far, &near, &err);
    if (status || err.status || seconds <= 0)
        gpu_wrong(b, name, "%s", err.message);
    else
        gpu_report(b, &(gpu_line){.name = name,
                                  .ours = seconds,
                                  .unit = "GB/s",
                                  .rate = (double)n * 1e-9 / seconds});
    qn_view_release(&far);
    qn_view_release(&near);
    qn_stream_release(other);
}

void gpu_more_cases(gpu_bench *b)
{
    static const int dtypes[] = {QN_F32, QN_F64};
    static const transfer copies[] = {{"transfer/up/dense", true, false, false, 0},
                                      {"transfer/down/dense", false, false, false, 0},
                                      {"transfer/up/gaps", true, false, true, 0},
                                      {"transfer/down/gaps", false, false, true, 0},
                                      {"transfer/up/turned", true, true, false, 0},
                                      {"transfer/down/turned", false, true, false, 0}};
    for (int i = 0; i < 2; i++)
        body_lines(b, dtypes[i]);
    for (int i = 0; i < 2; i++)
        batch_lines(b, dtypes[i]);
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++)
        transfer_line(b, &copies[i]);
    peer_line(b);
}
