/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c: `quern bench`. Every figure is a median. A sample repeats the measured call until it
 * takes a millisecond, so that the clock does not matter. On a GPU a call returns before its kernel has run: the time of
 * the kernel is that between two marks of the stream, and a sample has few calls, so that none waits for room in it.
 */
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Runs longer than this vary by more than a hit takes. */
static const double lost_ns = 3000;

enum { N_COLD = 7, N_SAMPLES = 15, MAX_SAMPLES = 1001, MOST_GPU_CALLS = 256 };

static double now_ns(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* One measured call. */
typedef struct timed {
    const tool_job *job;
    const qn_options *options;
    qn_call *call;
    double device_ns; /* of the last sample, on a GPU */
    qn_error err;
} timed;

static qn_status once_launch(timed *t)
{
    return qn_launch(t->job->context, t->job->kernel, t->job->n, t->job->arg, t->options, &t->err);
}

static qn_status once_run(timed *t)
{
    return qn_run(t->call, &t->err);
}

/* Nanoseconds of the caller's for one of n calls. */
static double sample_calls(timed *t, qn_status (*once)(timed *), int64_t n, qn_status *status)
{
    double start = now_ns();
    for (int64_t i = 0; i < n && *status == QN_OK; i++)
        *status = once(t);
    return (now_ns() - start) / (double)n;
}

/* The same, and the time on the GPU if the calls are for one. */
static double sample(timed *t, qn_status (*once)(timed *), int64_t n, qn_status *status)
{
    qn_stream *s = t->job->stream;
    qn_mark *begin = NULL, *end = NULL;
    double ms = 0;
    if (s && *status == QN_OK)
        *status = qn_stream_mark(s, 1, &begin, &t->err);
    double ns = sample_calls(t, once, n, status);
    if (s && *status == QN_OK)
        *status = qn_stream_mark(s, 1, &end, &t->err);
    if (s && *status == QN_OK)
        *status = qn_stream_fence(s, &t->err);
    if (s && *status == QN_OK)
        *status = qn_mark_milliseconds(begin, end, &ms, &t->err);
    qn_mark_release(begin);
    qn_mark_release(end);
    t->device_ns = ms * 1e6 / (double)n;
    return ns;
}

/* Median nanoseconds of one call; -1 after an error. *device_ns, if not NULL, becomes that of the time on the GPU. */
static double measure(timed *t, qn_status (*once)(timed *), int n_samples, double *device_ns)
{
    double ns[MAX_SAMPLES], on_device[MAX_SAMPLES];
    int64_t most = t->job->stream ? MOST_GPU_CALLS : 1 << 20;
    qn_status status = QN_OK;
    int64_t n = 1;
    sample(t, once, 1, &status); /* the first call compiles */
    double one = sample(t, once, n, &status);
    while (one * (double)n < 1e6 && n < most && status == QN_OK) {
        n *= 4;
        one = sample(t, once, n, &status);
    }
    for (int i = 0; i < n_samples && status == QN_OK; i++) {
        ns[i] = sample(t, once, n, &status);
        on_device[i] = t->device_ns;
    }
    if (status != QN_OK)
        return -1;
    if (device_ns)
        *device_ns = median(on_device, n_samples);
    return median(ns, n_samples);
}

/* Compiles in a context of its own; milliseconds without the time to load the code generator, which
 * goes to *load_ms. */
static qn_status cold(const tool_line *line, const tool_job *job, const qn_options *given, double *ms,
                      double *load_ms, qn_error *err)
{
    qn_context *c = NULL;
    qn_context_options fresh = line->context;
    fresh.disk_cache = "off"; /* what is on disk is not compiled */
    qn_code *f = NULL;
    qn_counters counters = {0};
    qn_options o = *given;
    o.stream = NULL;
    qn_status status = qn_context_new(&fresh, &c, err);
    if (status == QN_OK && job->stream)
        status = qn_stream_default(c, &o.stream, err);
    double start = now_ns();
    if (status == QN_OK)
        status = qn_specialize(c, job->kernel, job->n, job->arg, &o, &f, err);
    *ms = (now_ns() - start) / 1e6;
    if (status == QN_OK)
        qn_context_counters(c, &counters, sizeof counters);
    *load_ms = (double)counters.provider_us / 1e3;
    *ms -= *load_ms;
    qn_code_release(f);
    qn_stream_release(o.stream);
    qn_context_release(c);
    return status;
}

static int bench_compile(const tool_line *line, const tool_job *job, const qn_options *o,
                         qn_error *err)
{
    double ms[N_COLD], load, first_load;
    if (cold(line, job, o, &ms[0], &first_load, err) != QN_OK)
        return EXIT_ERROR;
    for (int i = 0; i < N_COLD; i++)
        if (cold(line, job, o, &ms[i], &load, err) != QN_OK)
            return EXIT_ERROR;
    printf("load        %10.3f ms   the code generator, once in a process\n", first_load);
    printf("compile     %10.3f ms   from a finished kernel to code\n", median(ms, N_COLD));
    return EXIT_OK;
}

static void print_rates(const tool_job *job, double ns)
{
    qn_work work = {.flops = -1};
    qn_kernel_work(job->kernel, job->n, job->arg, &work, sizeof work, NULL);
    printf("traffic     %10.3f GB/s %" PRId64 " bytes of elements read and written\n",
           (double)work.bytes / ns, work.bytes);
    if (work.flops > 0)
        printf("arithmetic  %10.3f GF/s %" PRId64 " floating-point operations\n",
               (double)work.flops / ns, work.flops);
    else
        printf("arithmetic           - GF/s not evident from the text of the kernel\n");
}

static int bench_runs(const tool_job *job, const qn_options *o, int n_samples, bool is_compiled)
{
    timed t = {.job = job, .options = o};
    double run = -1, device_ns = 0, launch = measure(&t, once_launch, n_samples, NULL);
    if (launch >= 0 &&
        qn_prepare(job->context, job->kernel, job->n, job->arg, o, &t.call, &t.err) == QN_OK) {
        run = measure(&t, once_run, n_samples, &device_ns);
        qn_call_release(t.call);
    }
    if (run < 0)
        return tool_fail(EXIT_ERROR, "%s: %s", qn_status_name(t.err.status), t.err.message);
    printf("launch      %10.1f ns   check the arguments, find the code, run\n", launch);
    printf("prepared    %10.1f ns   run, arguments bound before\n", run);
    if (run < lost_ns && is_compiled)
        printf("hit         %10.1f ns   the difference: from known arguments to code\n",
               launch - run);
    else
        puts("hit                  - ns   the difference is lost in the run; take smaller arrays");
    if (job->stream)
        printf("kernel      %10.1f ns   on the GPU, from one call to the next\n", device_ns);
    print_rates(job, job->stream ? device_ns : run);
    return EXIT_OK;
}

int command_bench(const tool_line *line)
{
    tool_job job;
    qn_error err = {0};
    int status = job_open(line, &job);
    qn_options o = job.options;
    bool is_compiled = o.engine != QN_ENGINE_INTERP;
    if (status == EXIT_OK && is_compiled) {
        if (o.engine == QN_ENGINE_AUTO && !job.stream)
            o.engine = QN_ENGINE_X86;
        if (bench_compile(line, &job, &o, &err) != EXIT_OK)
            status = tool_fail(EXIT_ERROR, "%s: %s: %s; --engine interp works without code",
                               line->kernel_path, qn_status_name(err.status), err.message);
    }
    int n_samples = line->repeat == 0            ? N_SAMPLES
                    : line->repeat < MAX_SAMPLES ? line->repeat
                                                 : MAX_SAMPLES;
    if (status == EXIT_OK)
        status = bench_runs(&job, &o, n_samples, is_compiled);
    job_close(&job);
    return status;
}
