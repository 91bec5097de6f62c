/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_cost.c: what it costs on a GPU to compile a kernel for extents that were never met, to
 * load code that is kept, and to launch. The yardsticks are NVRTC and the driver itself.
 */
#include "tests/bench/bench_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLD = 30, BATCH = 250, MAX_BATCHES = 40, SMALL = 128, PTX_BYTES = 1 << 18 };
#define CACHED_ALLOWANCE 0.5e-6
#define PREPARED_ALLOWANCE 0.1e-6

static const char saxpy_text[] =
    "kernel \"saxpy\" contract {\n view y: @[1]; view x: @[1]; scalar s: @;\n"
    " %0: i64 = const 0; %1: i64 = extent y, 0; %2: i64 = parallel %0, %1; %3: @ = param s;\n"
    " %4: @ = load x[%2]; %5: @ = load y[%2]; %6: @ = mul %3, %4; %7: @ = add %6, %5; store y[%2], "
    "%7;\n}\n";

/* A saxpy of some length. */
typedef struct saxpy {
    qn_view x, y;
    qn_arg args[3];
    qn_options o;
} saxpy;

static qn_status make_saxpy(gpu_bench *b, int64_t n, saxpy *out, qn_error *err)
{
    const gpu_array a = {.dtype = QN_F32, .rank = 1, .extent = {n}};
    qn_status status = gpu_view(b, GPU_OUT, &a, &out->y, err);
    if (!status)
        status = gpu_view(b, GPU_A, &a, &out->x, err);
    b->holds[GPU_OUT].dtype = 0;
    out->args[0] = qn_arg_view(&out->y);
    out->args[1] = qn_arg_view(&out->x);
    out->args[2] = qn_arg_f32((float)GPU_SCALE);
    out->o = (qn_options){.bytes = sizeof out->o,
                          .executor = QN_CUDA,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .stream = b->stream};
    return status;
}

static int64_t cold_length(const gpu_bench *b, int i)
{
    return (b->is_tiny ? 301 : 100003) + 17 * i;
}

static int n_cold(const gpu_bench *b)
{
    return b->is_tiny ? 2 : b->is_quick ? 10 : MAX_COLD;
}

/* Median seconds of NVRTC for the same kernel, from its source to a function; 0 if that cannot be
 * had. */
static double time_nvrtc(gpu_bench *b)
{
    double seconds[MAX_COLD];
    for (int i = 0; i < n_cold(b); i++) {
        char source[512];
        snprintf(source, sizeof source,
                 "extern \"C\" __global__ void saxpy(float *__restrict__ y, const float "
                 "*__restrict__ x, float s) {\n"
                 " int i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i < %lld) y[i] = s * x[i] "
                 "+ y[i];\n}\n",
                 (long long)cold_length(b, i));
        int result = gpu_raw_nvrtc(b->raw, source, "saxpy", &seconds[i]);
        if (result) {
            printf("# cold: no NVRTC to compare with (%d)\n", result);
            return 0;
        }
    }
    return gpu_median(seconds, n_cold(b));
}

/* From a kernel to a launch that has been given to the driver, every time for a new length. */
static qn_status cold_line(gpu_bench *b, const qn_kernel *k, qn_error *err)
{
    double seconds[MAX_COLD];
    qn_counters before, after;
    qn_status status = QN_OK;
    qn_context_counters(b->context, &before, sizeof before);
    for (int i = -1; i < n_cold(b) && !status;
         i++) { /* the first one is not counted: it loads the code generator */
        saxpy s;
        status = make_saxpy(b, cold_length(b, i), &s, err);
        double begin = gpu_now();
        if (!status)
            status = qn_launch(b->context, k, 3, s.args, &s.o, err);
        if (i >= 0)
            seconds[i] = gpu_now() - begin;
        if (!status)
            status = qn_stream_fence(b->stream, err);
        if (i < 0)
            qn_context_counters(b->context, &before, sizeof before);
    }
    qn_context_counters(b->context, &after, sizeof after);
    if (status)
        return status;
    char remark[96];
    snprintf(remark, sizeof remark, "compiles %lld, in compilers %.3f ms each; theirs is NVRTC",
             (long long)(after.compiles - before.compiles),
             (double)(after.compile_us - before.compile_us) * 1e-3 / n_cold(b));
    gpu_line line = {.name = "cold/saxpy",
                     .ours = gpu_median(seconds, n_cold(b)),
                     .theirs = b->is_tiny ? 0 : time_nvrtc(b),
                     .peer_goal = 1,
                     .seconds_goal = 10e-3,
                     .remark = remark};
    gpu_report(b, &line);
    return QN_OK;
}

/* ---------------------------------------------------------------- loading again */

/* Seconds in which the driver loads the cubin of a function; 0 if that cannot be had. */
static double time_load(gpu_bench *b, qn_code *f)
{
    char *ptx = malloc(PTX_BYTES);
    void *cubin = NULL;
    size_t n = ptx ? qn_code_text(f, QN_DUMP_PTX, ptx, PTX_BYTES) : 0;
    double seconds[MAX_COLD], median = 0;
    int result = n > 0 && n < PTX_BYTES ? gpu_raw_assemble(b->raw, ptx, n, &cubin) : -1;
    char entry[64] = "";
    const char *name = result == 0 ? strstr(ptx, ".entry") : NULL;
    if (name)
        (void)sscanf(name, ".entry %63[A-Za-z0-9_$]", entry);
    for (int i = 0; i < n_cold(b) && cubin && result == 0; i++)
        result = gpu_raw_load(b->raw, cubin, entry, &seconds[i]);
    if (cubin && result == 0)
        median = gpu_median(seconds, n_cold(b));
    else
        printf("# reload: nothing to compare with (%d)\n", result);
    free(cubin);
    free(ptx);
    return median;
}

/* A view like another one, in the context of another stream. */
static qn_status view_there(gpu_bench *b, qn_stream *there, const char *label, int64_t n,
                            qn_view *out, qn_error *err)
{
    qn_view_type type;
    const qn_alloc_options o = {
        .bytes = sizeof o, .label = label, .space = QN_SPACE_CUDA, .stream = there};
    qn_status status = qn_view_type_init(QN_F32, 1, NULL, QN_FAMILY_ANY, &type, err);
    type.space = QN_SPACE_CUDA;
    return status ? status : qn_view_create(b->context, &type, 1, &n, &o, out, err);
}

/* Seconds that preparing a call takes, on a stream of another CUDA context. */
static qn_status time_prepare(gpu_bench *b, qn_stream *there, const qn_kernel *k, int64_t n,
                              double *seconds, qn_error *err)
{
    saxpy s = {.args = {{0}}};
    qn_call *call = NULL;
    qn_status status = view_there(b, there, "y", n, &s.y, err);
    if (!status)
        status = view_there(b, there, "x", n, &s.x, err);
    const qn_arg args[] = {qn_arg_view(&s.y), qn_arg_view(&s.x), qn_arg_f32((float)GPU_SCALE)};
    const qn_options o = {
        .bytes = sizeof o, .executor = QN_CUDA, .specialize = QN_SPECIALIZE_EXACT, .stream = there};
    for (int i = 0; i < 2 && !status; i++) {
        double begin = gpu_now();
        status = qn_prepare(b->context, k, 3, args, &o, &call, err);
        seconds[i] = gpu_now() - begin;
        if (!status)
            status = qn_run(call, err);
        if (!status)
            status = qn_stream_fence(there, err);
        qn_call_release(call);
        call = NULL;
    }
    qn_view_release(&s.x);
    qn_view_release(&s.y);
    return status;
}

/* The functions of the cold line in a CUDA context where they never ran: their cubins are kept.
 * What preparing takes longer the first time is the load. */
static qn_status reload_line(gpu_bench *b, const qn_kernel *k, qn_error *err)
{
    double seconds[MAX_COLD];
    void *handle = NULL;
    qn_stream *there = NULL;
    saxpy s = {.args = {{0}}};
    qn_code *f = NULL;
    int result = gpu_raw_other_stream(b->raw, &handle);
    if (result) {
        printf("# reload: no second CUDA context (%d)\n", result);
        return QN_OK;
    }
    qn_status status = qn_stream_wrap(b->context, handle, &there, err);
    for (int i = -1; i < n_cold(b) && !status; i++) {
        double pair[2];
        status = time_prepare(b, there, k, cold_length(b, i), pair, err);
        if (i >= 0)
            seconds[i] = pair[0] - pair[1];
    }
    if (!status)
        status = make_saxpy(b, cold_length(b, 0), &s, err);
    if (!status)
        status = qn_specialize(b->context, k, 3, s.args, &s.o, &f, err);
    if (!status) {
        gpu_line line = {.name = "reload/saxpy",
                         .ours = gpu_median(seconds, n_cold(b)),
                         .theirs = time_load(b, f),
                         .seconds_goal = 0.04e-3,
                         .remark = "theirs is cuModuleLoadData and cuModuleGetFunction"};
        gpu_report(b, &line);
    }
    qn_code_release(f);
    qn_stream_release(there);
    return status;
}

/* ---------------------------------------------------------------- launches */

enum { BARE, CACHED, PREPARED, WAYS };

/* Gives BATCH launches to the stream, and then waits; the seconds of the first part and of both,
 * for each launch. */
static qn_status time_batch(gpu_bench *b, int way, const qn_kernel *k, saxpy *s, qn_call *call,
                            double *given, double *done, qn_error *err)
{
    qn_status status = QN_OK;
    double begin = gpu_now();
    int result = way == BARE ? gpu_raw_launch(b->raw, qn_stream_handle(b->stream),
                                              b->slot[GPU_OUT].data, BATCH)
                             : 0;
    for (int i = 0; i < BATCH && way == CACHED && !status; i++)
        status = qn_launch(b->context, k, 3, s->args, &s->o, err);
    for (int i = 0; i < BATCH && way == PREPARED && !status; i++)
        status = qn_run(call, err);
    *given = (gpu_now() - begin) / (double)BATCH;
    if (!status)
        status = qn_stream_fence(b->stream, err);
    *done = (gpu_now() - begin) / (double)BATCH;
    if (result) {
        err->status = QN_ERR_CUDA;
        snprintf(err->message, sizeof err->message, "a bare cuLaunchKernel failed: %d", result);
        return QN_ERR_CUDA;
    }
    return status;
}

static qn_status launch_lines(gpu_bench *b, const qn_kernel *k, qn_error *err)
{
    static const char *const name[WAYS] = {"", "launch/cached", "launch/prepared"};
    static const double allowance[WAYS] = {0, CACHED_ALLOWANCE, PREPARED_ALLOWANCE};
    double given[WAYS][MAX_BATCHES], done[WAYS][MAX_BATCHES], bare = 0, bare_done = 0;
    const int n = b->is_tiny ? 1 : MAX_BATCHES;
    saxpy s = {.args = {{0}}};
    qn_call *call = NULL;
    qn_status status = make_saxpy(b, SMALL, &s, err);
    if (!status)
        status = qn_prepare(b->context, k, 3, s.args, &s.o, &call, err);
    for (int i = -1; i < n && !status; i++) /* one round to warm up */
        for (int way = 0; way < WAYS && !status; way++)
            status = time_batch(b, way, k, &s, call, &given[way][i < 0 ? 0 : i],
                                &done[way][i < 0 ? 0 : i], err);
    for (int way = 0; way < WAYS && !status; way++) {
        const double median = gpu_median(given[way], n), finished = gpu_median(done[way], n);
        char remark[128];
        if (way == BARE) {
            bare = median;
            bare_done = finished;
            continue;
        }
        snprintf(remark, sizeof remark, "%+.0f ns; with the wait %.0f ns, bare %.0f ns",
                 (median - bare) * 1e9, finished * 1e9, bare_done * 1e9);
        gpu_line line = {.name = name[way],
                         .ours = median,
                         .theirs = bare,
                         .seconds_goal = bare + allowance[way],
                         .remark = remark};
        gpu_report(b, &line);
    }
    qn_call_release(call);
    return status;
}

void gpu_cost_cases(gpu_bench *b)
{
    const bool wants_cold = gpu_wants(b, "cold/saxpy"), wants_reload = gpu_wants(b, "reload/saxpy");
    const bool wants_launch = gpu_wants(b, "launch/cached") || gpu_wants(b, "launch/prepared");
    qn_error err = {0};
    qn_kernel *k = gpu_kernel(saxpy_text, QN_F32, &err);
    qn_status status = k ? QN_OK : (qn_status)err.status;
    if (!status && (wants_cold || wants_reload))
        status = cold_line(b, k, &err);
    if (!status && wants_reload)
        status = reload_line(b, k, &err);
    if (status)
        gpu_wrong(b, "cold or reload", "%s", err.message);
    if (k && wants_launch && launch_lines(b, k, &err))
        gpu_wrong(b, "launch", "%s", err.message);
    qn_kernel_release(k);
}
