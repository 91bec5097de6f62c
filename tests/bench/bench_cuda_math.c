/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_math.c: mathematical functions on a GPU against those of CUDA C at nvcc's default
 * accuracy (cuda_math.def), on arrays beyond the L2 cache, and from registers: each thread adds up
 * a function of many arguments that it makes itself. Then Black-Scholes and softmax as whole
 * kernels (examples/math_kernels.h). The first results are those of the interpreter in every bit;
 * the peer's are near them.
 */
#include "tests/bench/bench_cuda.h"
#include "examples/math_kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNIFORM, LOGARITHMIC };
enum { MOST_ARGS = 8, MOST_CALLS = 2, MOST_ARRAYS = 5 };
enum { ARRAY_SAMPLE = 4096, THREAD_SAMPLE = 64 }; /* results that are compared */

static const struct math_function {
    const char *name;
    int arity, spread;
    double low, high, low2, high2, goal;
    const char *text;
} functions[] = {
#define GPU_MATH(name, arity, spread, low, high, low2, high2, goal, ours, theirs) \
    {#name, arity, spread, low, high, low2, high2, goal, ours},
#include "tests/bench/cuda_math.def"
#undef GPU_MATH
};

/* A line. Arrays lie each in its slot; the last n_out are results. The sample are rows of the first
 * dimension. */
typedef struct math_run {
    gpu_bench *b;
    char name[GPU_NAME_BYTES];
    int dtype, n_arrays, n_out, n_scalars, n_calls;
    int n_theirs; /* results that the peer has, the first ones */
    gpu_array array[MOST_ARRAYS];
    int slot[MOST_ARRAYS];
    double scalar[4];
    int64_t sample;
    qn_kernel *kernel[MOST_CALLS];
    const char *arrays[MOST_CALLS]; /* digits: the arguments of each kernel */
    qn_call *call[MOST_CALLS];
    qn_view view[MOST_ARRAYS];
    const void *peer_a, *peer_b;
    gpu_peer peer;
    double n_results, bytes, goal; /* of a run */
} math_run;

/* ---------------------------------------------------------------- ours */

static int arguments(const math_run *r, const char *arrays, const qn_view *view, qn_arg *args)
{
    int n = 0;
    for (; *arrays; arrays++)
        args[n++] = qn_arg_view(&view[*arrays - '0']);
    for (int i = 0; i < r->n_scalars; i++)
        args[n++] = r->dtype == QN_F32 ? qn_arg_f32((float)r->scalar[i]) : qn_arg_f64(r->scalar[i]);
    return n;
}

static qn_status prepare(math_run *r, qn_error *err)
{
    const qn_options o = {.bytes = sizeof o,
                          .executor = QN_CUDA,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .plan = &r->b->plan,
                          .stream = r->b->stream};
    qn_status status = QN_OK;
    for (int i = 0; i < r->n_arrays && !status; i++) {
        r->b->holds[r->slot[i]].dtype = 0;
        status = gpu_view(r->b, r->slot[i], &r->array[i], &r->view[i], err);
    }
    for (int k = 0; k < r->n_calls && !status; k++) {
        qn_arg args[MOST_ARGS];
        const int n = arguments(r, r->arrays[k], r->view, args);
        if (!r->kernel[k])
            return err->status ? (qn_status)err->status : QN_ERR_PARSE;
        if (r->b->text)
            gpu_print_text(r->b, r->name, r->kernel[k], n, args, &o);
        status = qn_prepare(r->b->context, r->kernel[k], n, args, &o, &r->call[k], err);
    }
    return status;
}

static qn_status run_side(void *line, int side, qn_error *err)
{
    math_run *r = line;
    qn_status status = QN_OK;
    if (side == GPU_THEIRS)
        return gpu_peer_status("CUDA error",
                               r->peer(qn_stream_handle(r->b->stream),
                                       r->view[r->n_arrays - r->n_out].data, r->peer_a, r->peer_b),
                               err);
    for (int k = 0; k < r->n_calls && !status; k++)
        status = qn_run(r->call[k], err);
    return status;
}

/* ---------------------------------------------------------------- values on the device */

/* Values between low and high, by the index. */
static qn_kernel *values_kernel(int dtype, int spread, qn_error *err)
{
#define VALUES_HEAD                                                                                \
    "kernel \"values\" {\n view y: @[1]; scalar low: @; scalar width: @;\n" GPU_VECTOR_HEAD        \
    " %a: i64 = mul %2, 2654435761; %s: i64 = shr %a, 8; %u: i64 = and %s, 0xffffff; %f: @ = "     \
    "cast %u;\n"                                                                                   \
    " %l: @ = param low; %w: @ = param width; %v: @ = fma %f, %w, %l;\n"
    static const char uniform[] = VALUES_HEAD " store y[%2], %v;\n}\n";
    static const char logarithmic[] = VALUES_HEAD " %e: @ = exp2 %v; store y[%2], %e;\n}\n";
    return gpu_kernel(spread == UNIFORM ? uniform : logarithmic, dtype, err);
}

static qn_status put_values(math_run *r, int array, int spread, double low, double high,
                            qn_error *err)
{
    const qn_options o = {.bytes = sizeof o, .executor = QN_CUDA, .stream = r->b->stream};
    gpu_array line = {.dtype = r->dtype, .rank = 1, .extent = {gpu_elements(&r->array[array])}};
    qn_view view;
    qn_status status = gpu_view(r->b, r->slot[array], &line, &view, err);
    if (status)
        return status;
    if (spread == LOGARITHMIC) {
        low = log2(low);
        high = log2(high);
    }
    const double scalar[2] = {low, (high - low) * 0x1p-24};
    qn_arg args[3] = {qn_arg_view(&view)};
    for (int i = 0; i < 2; i++)
        args[1 + i] = r->dtype == QN_F32 ? qn_arg_f32((float)scalar[i]) : qn_arg_f64(scalar[i]);
    qn_kernel *k = values_kernel(r->dtype, spread, err);
    status = k ? qn_launch(r->b->context, k, 3, args, &o, err) : QN_ERR_PARSE;
    qn_kernel_release(k);
    qn_view_release(&view);
    return status;
}

/* ---------------------------------------------------------------- results */

/* The first rows of an array. */
static gpu_array first_rows(const math_run *r, int array)
{
    gpu_array a = r->array[array];
    a.extent[0] = a.extent[0] < r->sample ? a.extent[0] : r->sample;
    return a;
}

static size_t sample_bytes(const math_run *r, int array)
{
    const gpu_array a = first_rows(r, array);
    return (size_t)gpu_elements(&a) * (size_t)qn_dtype_bytes(r->dtype);
}

/* Copies the first rows of arrays [from, to) into memory of the host; `host` are views of it. */
static qn_status get_sample(math_run *r, int from, int to, void **memory, qn_view *host,
                            qn_error *err)
{
    for (int i = from; i < to; i++) {
        const gpu_array rows = first_rows(r, i);
        qn_view there;
        qn_layout l;
        qn_status status = qn_layout_right(rows.rank, rows.extent, &l, err);
        if (!status)
            status = qn_view_wrap("sample", memory[i], r->dtype, &l, 0, &host[i], err);
        if (!status)
            status = gpu_view(r->b, r->slot[i], &rows, &there, err);
        if (status)
            return status;
        status = qn_stream_copy(r->b->stream, &host[i], &there, err);
        if (!status)
            status = qn_stream_fence(r->b->stream, err);
        qn_view_release(&there);
        if (status)
            return status;
    }
    return QN_OK;
}

/* Runs the kernels on the interpreter, on memory that holds the sample of all arrays; the results
 * stay there. */
static qn_status interpret(math_run *r, const qn_view *host, qn_error *err)
{
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP, .executor = QN_SERIAL};
    qn_status status = QN_OK;
    for (int k = 0; k < r->n_calls && !status; k++) {
        qn_arg args[MOST_ARGS];
        const int n = arguments(r, r->arrays[k], host, args);
        status = qn_launch(r->b->context, r->kernel[k], n, args, &o, err);
    }
    return status;
}

static double number_of(int dtype, const void *at, size_t i)
{
    return dtype == QN_F32 ? ((const float *)at)[i] : ((const double *)at)[i];
}

/* Whether results are those of the interpreter, ours in every bit. */
static bool compare(const math_run *r, int side, int array, const void *found, const void *wanted)
{
    const size_t item = (size_t)qn_dtype_bytes(r->dtype), n = sample_bytes(r, array) / item;
    const double tolerance = r->dtype == QN_F32 ? 1e-4 : 1e-11;
    for (size_t i = 0; i < n; i++) {
        const double x = number_of(r->dtype, found, i), y = number_of(r->dtype, wanted, i);
        const bool is_same =
            side == GPU_OURS
                ? memcmp((const char *)found + i * item, (const char *)wanted + i * item, item) == 0
                : fabs(x - y) <= tolerance * (1 + fabs(y)) || x == y || (isnan(x) && isnan(y));
        if (!is_same) {
            gpu_wrong(r->b, r->name,
                      "%s: element %zu of array %d is %.17g, and %.17g by the interpreter",
                      side == GPU_OURS ? "ours" : "theirs", i, array, x, y);
            return false;
        }
    }
    return true;
}

/* Runs a side once and compares the sample with the interpreter's. */
static bool run_and_check(math_run *r, int side)
{
    const int first = r->n_arrays - r->n_out;
    void *memory[2][MOST_ARRAYS] = {{NULL}};
    qn_view host[2][MOST_ARRAYS] = {{{0}}};
    qn_error err = {0};
    bool is_right = true;
    for (int i = 0; i < 2 * r->n_arrays; i++)
        memory[i / r->n_arrays][i % r->n_arrays] = malloc(sample_bytes(r, i % r->n_arrays));
    qn_status status = QN_OK;
    for (int i = first; i < r->n_arrays && !status; i++)
        status = gpu_poison(r->b, r->slot[i], &r->array[i], &err);
    if (!status)
        status = get_sample(r, 0, r->n_arrays, memory[1], host[1], &err);
    if (!status)
        status = interpret(r, host[1], &err);
    if (!status)
        status = run_side(r, side, &err);
    if (!status)
        status = get_sample(r, first, r->n_arrays, memory[0], host[0], &err);
    const int end = side == GPU_OURS ? r->n_arrays : first + r->n_theirs;
    for (int i = first; i < end && !status && is_right; i++)
        is_right = compare(r, side, i, memory[0][i], memory[1][i]);
    if (status)
        gpu_wrong(r->b, r->name, "%s", err.message);
    for (int i = 0; i < 2 * r->n_arrays; i++)
        free(memory[i / r->n_arrays][i % r->n_arrays]);
    return is_right && !status;
}

/* ---------------------------------------------------------------- timing */

static void time_line(math_run *r)
{
    const gpu_sides sides = {
        .b = r->b, .line = r, .run = run_side, .is_there = {true, r->peer != NULL, false}};
    double median[GPU_SIDES];
    qn_error err = {0};
    if (gpu_time_sides(&sides, median, &err)) {
        gpu_wrong(r->b, r->name, "%s", err.message);
        return;
    }
    const double work = r->bytes > 0 ? r->bytes : r->n_results;
    gpu_report(r->b, &(gpu_line){.name = r->name,
                                 .ours = median[GPU_OURS],
                                 .theirs = median[GPU_THEIRS],
                                 .unit = r->bytes > 0 ? "GB/s" : "G/s",
                                 .rate = median[GPU_OURS] > 0 ? work * 1e-9 / median[GPU_OURS] : 0,
                                 .peer_goal = r->peer ? r->goal : 0,
                                 .is_counted = r->peer != NULL});
}

/* Checks and times; the arrays that are read have their values. Releases the kernels. */
static void run_line(math_run *r, qn_status status, qn_error *err)
{
    r->peer = gpu_find_peer(r->b, r->name);
    if (r->b->peers && !r->peer)
        gpu_wrong(r->b, r->name, "the peers have no kernel of this name");
    if (status)
        gpu_wrong(r->b, r->name, "%s", err->message);
    else if (run_and_check(r, GPU_OURS) && (!r->peer || run_and_check(r, GPU_THEIRS)))
        time_line(r);
    for (int i = 0; i < MOST_CALLS; i++) {
        qn_call_release(r->call[i]);
        qn_kernel_release(r->kernel[i]);
    }
    for (int i = 0; i < r->n_arrays; i++)
        qn_view_release(&r->view[i]);
}

/* ---------------------------------------------------------------- functions */

enum { KERNEL_BYTES = 2048 };
/* GPU_VECTOR_HEAD in a format */
#define GPU_LINE_HEAD " %%0: i64 = const 0; %%1: i64 = extent y, 0; %%2: i64 = parallel %%0, %%1;\n"

static qn_kernel *function_kernel(const char *format, const struct math_function *f, int dtype,
                                  qn_error *err)
{
    char text[KERNEL_BYTES];
    snprintf(text, sizeof text, format, f->text);
    return gpu_kernel(text, dtype, err);
}

/* With --tiny short, as the machine for PTX takes its time. */
static gpu_array vector_of(const gpu_bench *b, int dtype, int64_t n)
{
    enum { TINY = 83 };
    return (gpu_array){.dtype = dtype, .rank = 1, .extent = {b->is_tiny ? TINY : n}};
}

static void array_line(gpu_bench *b, const struct math_function *f, int dtype)
{
    static const char one[] = "kernel \"one\" {\n view x: @[1]; view y: @[1];\n" GPU_LINE_HEAD
                              " %%x: @ = load x[%%2]; %s\n store y[%%2], %%r;\n}\n";
    static const char two[] =
        "kernel \"two\" {\n view x: @[1]; view z: @[1]; view y: @[1];\n" GPU_LINE_HEAD
        " %%x: @ = load x[%%2]; %%z: @ = load z[%%2]; %s\n store y[%%2], %%r;\n}\n";
    math_run r = {.b = b,
                  .dtype = dtype,
                  .n_arrays = 1 + f->arity,
                  .n_out = 1,
                  .n_theirs = 1,
                  .n_calls = 1,
                  .sample = ARRAY_SAMPLE,
                  .goal = 1};
    qn_error err = {0};
    snprintf(r.name, sizeof r.name, "math/%s/%s/array", f->name, qn_dtype_name(dtype));
    if (!gpu_wants(b, r.name))
        return;
    for (int i = 0; i < r.n_arrays; i++) {
        r.array[i] = vector_of(b, dtype, GPU_MATH_ARRAY);
        r.slot[i] = i + 1 == r.n_arrays ? GPU_OUT : GPU_A + i;
    }
    r.arrays[0] = f->arity == 1 ? "01" : "012";
    r.bytes = (1.0 + f->arity) * (double)(gpu_elements(&r.array[0]) * qn_dtype_bytes(dtype));
    r.peer_a = b->slot[GPU_A].data;
    r.peer_b = b->slot[GPU_B].data;
    r.kernel[0] = function_kernel(f->arity == 1 ? one : two, f, dtype, &err);
    qn_status status = prepare(&r, &err);
    if (!status)
        status = put_values(&r, 0, f->spread, f->low, f->high, &err);
    if (!status && f->arity == 2)
        status = put_values(&r, 1, UNIFORM, f->low2, f->high2, &err);
    run_line(&r, status, &err);
}

/* A thread begins somewhere in the first half of the range, so that neighbouring threads differ,
 * and walks through half of it. */
static void register_line(gpu_bench *b, const struct math_function *f, int dtype)
{
    static const char text[] =
        "kernel \"steps\" {\n view y: @[1]; scalar low: @; scalar step: @; scalar low2: @; scalar "
        "step2: @;\n" GPU_LINE_HEAD " %%a: i64 = mul %%2, 40503; %%b: i64 = and %%a, 0xffff; %%at: "
                                    "@ = cast %%b; %%zero: @ = const 0.0;\n"
        " %%l: @ = param low; %%s: @ = param step; %%l2: @ = param low2; %%s2: @ = param step2; "
        "%%n: i64 = const 256;\n"
        " %%w: @ = mul %%s, 0x1p-8; %%w2: @ = mul %%s2, 0x1p-8; %%x0: @ = fma %%at, %%w, %%l; "
        "%%z0: @ = fma %%at, %%w2, %%l2;\n"
        " %%t: @, %%u: @, %%v: @ = for %%k: i64 = %%0 to %%n step 1 (%%sum: @ = %%zero, %%x: @ = "
        "%%x0, %%z: @ = %%z0) {\n"
        " %s\n %%more: @ = add %%sum, %%r; %%xn: @ = add %%x, %%s; %%zn: @ = add %%z, %%s2; yield "
        "%%more, %%xn, %%zn;\n };\n"
        " store y[%%2], %%t;\n}\n";
    math_run r = {.b = b,
                  .dtype = dtype,
                  .n_arrays = 1,
                  .n_out = 1,
                  .n_theirs = 1,
                  .n_calls = 1,
                  .n_scalars = 4,
                  .sample = THREAD_SAMPLE,
                  .arrays = {"0"},
                  .goal = dtype == QN_F64 ? 0.9 : f->goal,
                  .slot = {GPU_OUT}};
    qn_error err = {0};
    snprintf(r.name, sizeof r.name, "math/%s/%s/registers", f->name, qn_dtype_name(dtype));
    if (!gpu_wants(b, r.name))
        return;
    r.array[0] = vector_of(b, dtype, GPU_MATH_THREADS);
    const double scalar[4] = {f->low, (f->high - f->low) / (2 * GPU_MATH_STEPS), f->low2,
                              (f->high2 - f->low2) / (2 * GPU_MATH_STEPS)};
    memcpy(r.scalar, scalar, sizeof scalar);
    r.peer_a = r.scalar;
    r.n_results = (double)GPU_MATH_STEPS * (double)gpu_elements(&r.array[0]);
    r.kernel[0] = function_kernel(text, f, dtype, &err);
    run_line(&r, prepare(&r, &err), &err);
}

/* ---------------------------------------------------------------- whole kernels */

static void black_scholes_line(gpu_bench *b, int dtype)
{
    math_run r = {.b = b,
                  .dtype = dtype,
                  .n_arrays = 5,
                  .n_out = 2,
                  .n_theirs = 2,
                  .n_calls = 1,
                  .n_scalars = 2,
                  .sample = ARRAY_SAMPLE,
                  .arrays = {"01234"},
                  .slot = {GPU_A, GPU_B, GPU_FROM, GPU_OUT, GPU_TO},
                  .goal = 1,
                  .scalar = {GPU_INTEREST, GPU_VOLATILITY}};
    qn_error err = {0};
    snprintf(r.name, sizeof r.name, "app/black_scholes/%s", qn_dtype_name(dtype));
    if (!gpu_wants(b, r.name))
        return;
    for (int i = 0; i < r.n_arrays; i++)
        r.array[i] = vector_of(b, dtype, GPU_OPTIONS);
    const void *pointers[] = {b->slot[GPU_A].data, b->slot[GPU_B].data, b->slot[GPU_FROM].data,
                              b->slot[GPU_TO].data};
    r.peer_a = pointers;
    r.bytes = 5.0 * (double)(gpu_elements(&r.array[0]) * qn_dtype_bytes(dtype));
    r.kernel[0] = build_black_scholes(dtype, &err);
    qn_status status = prepare(&r, &err);
    for (int i = 0; i < 3 && !status; i++)
        status = put_values(&r, i, UNIFORM, 0.5 + 0.25 * i, 2 + i, &err);
    run_line(&r, status, &err);
}

/* The softmax of math_kernels.h as one kernel: a row's elements are stored by a loop behind its
 * reduces. */
static const char softmax_text[] =
    "kernel \"softmax\" contract striped {\n view x: @[2]; view y: @[2];\n"
    " %0: i64 = const 0; %1: i64 = extent x, 0; %2: i64 = extent x, 1; %one: @ = const 1.0;\n"
    " %i: i64 = parallel %0, %1; %k: i64 = reduction %0, %2;\n"
    " %most: @ = reduce max over %k {\n %a: @ = load x[%i, %k]; yield %a;\n };\n"
    " %sum: @ = reduce sum over %k {\n %b: @ = load x[%i, %k]; %c: @ = sub %b, %most; %d: @ = exp "
    "%c; yield %d;\n };\n"
    " %scale: @ = div %one, %sum;\n"
    " for %j: i64 = %0 to %2 step 1 () {\n %e: @ = load x[%i, %j]; %f: @ = sub %e, %most; %g: @ = "
    "exp %f;\n"
    " %h: @ = mul %g, %scale; store y[%i, %j], %h;\n };\n}\n";

static void softmax_line(gpu_bench *b, const char *name, int64_t rows, int64_t columns)
{
    math_run r = {.b = b,
                  .dtype = QN_F32,
                  .n_arrays = 2,
                  .n_out = 1,
                  .n_theirs = 1,
                  .n_calls = 1,
                  .sample = 2,
                  .arrays = {"01"},
                  .slot = {GPU_A, GPU_OUT},
                  .goal = 1};
    qn_error err = {0};
    snprintf(r.name, sizeof r.name, "%s", name);
    if (!gpu_wants(b, r.name))
        return;
    r.array[0] = r.array[1] = gpu_array_of(b, QN_F32, 2, rows, columns, 0);
    r.peer_a = b->slot[GPU_A].data;
    r.bytes = 8.0 * (double)gpu_elements(&r.array[0]);
    r.kernel[0] = gpu_kernel(softmax_text, QN_F32, &err);
    qn_status status = prepare(&r, &err);
    if (!status)
        status = put_values(&r, 0, UNIFORM, -8, 8, &err);
    run_line(&r, status, &err);
}

void gpu_math_cases(gpu_bench *b)
{
    static const int dtypes[] = {QN_F32, QN_F64};
    for (size_t i = 0; i < 2; i++)
        black_scholes_line(b, dtypes[i]);
    softmax_line(b, "app/softmax/f32/long", GPU_SOFTMAX_0, GPU_SOFTMAX_1);
    softmax_line(b, "app/softmax/f32/short", GPU_SOFTMAX_2, GPU_SOFTMAX_3);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        for (int d = 0; d < 2; d++) {
            array_line(b, &functions[i], dtypes[d]);
            register_line(b, &functions[i], dtypes[d]);
        }
}
