/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.c: `quern bench`. Every figure is a median. A sample repeats the measured call until it
 * takes a millisecond, so that the clock does not matter. On a GPU a call returns before its kernel
 * has run: the time of the kernel is that between two marks of the stream, and a sample has few
 * calls, so that none waits for room in it.
 */
#include "tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs longer than this vary by more than a hit takes. */
static const double lost_ns = 3000;

enum { N_COLD = 7, N_SAMPLES = 15, MAX_SAMPLES = 1001, MOST_GPU_CALLS = 256 };

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
    const tool_manner *how;
    const char *what; /* begins the line of progress */
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

/* Median nanoseconds of one call; -1 after an error. *device_ns, if not NULL, becomes that of the
 * time on the GPU. */
static double measure(timed *t, qn_status (*once)(timed *), int n_samples, double *device_ns)
{
    double ns[MAX_SAMPLES], on_device[MAX_SAMPLES];
    int64_t most = t->job->stream ? MOST_GPU_CALLS : 1 << 20;
    qn_status status = QN_OK;
    double shown = 0;
    int64_t n = 1;
    sample(t, once, 1, &status); /* the first call compiles */
    double one = sample(t, once, n, &status);
    while (one * (double)n < 1e6 && n < most && status == QN_OK) {
        n *= 4;
        one = sample(t, once, n, &status);
    }
    for (int i = 0; i < n_samples && status == QN_OK; i++) {
        if (i == 0 || now_ns() - shown > 1e8) {
            shown = now_ns();
            progress_show(t->how, "%s: %s, sample %d of %d", t->what,
                          once == once_run ? "run" : "launch", i + 1, n_samples);
        }
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
static qn_status cold(const tool_line *line, const tool_job *job, const qn_options *given,
                      double *ms, double *load_ms, qn_error *err)
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
                         const char *what, figures *out)
{
    double ms[N_COLD], load;
    qn_error err = {0};
    qn_status status = QN_OK;
    for (int i = -1; i < N_COLD && status == QN_OK; i++) {
        progress_show(&line->how, "%s: compiling, sample %d of %d", what, i + 1, N_COLD);
        status = cold(line, job, o, &ms[i < 0 ? 0 : i], i < 0 ? &out->load_ms : &load, &err);
    }
    if (status != QN_OK)
        return tool_fail(EXIT_ERROR, "%s: %s: %s; --engine interp works without code",
                         line->kernel_path, qn_status_name(err.status), err.message);
    out->compile_ms = median(ms, N_COLD);
    return EXIT_OK;
}

static int bench_runs(const tool_line *line, const tool_job *job, const qn_options *o,
                      const char *what, figures *out)
{
    timed t = {.job = job, .options = o, .how = &line->how, .what = what};
    int n_samples = line->repeat == 0            ? N_SAMPLES
                    : line->repeat < MAX_SAMPLES ? line->repeat
                                                 : MAX_SAMPLES;
    out->launch_ns = measure(&t, once_launch, n_samples, NULL);
    if (out->launch_ns >= 0 &&
        qn_prepare(job->context, job->kernel, job->n, job->arg, o, &t.call, &t.err) == QN_OK) {
        out->prepared_ns = measure(&t, once_run, n_samples, job->stream ? &out->device_ns : NULL);
        qn_call_release(t.call);
    }
    if (out->prepared_ns < 0)
        return tool_fail(EXIT_ERROR, "%s: %s", qn_status_name(t.err.status), t.err.message);
    if (out->prepared_ns < lost_ns && out->compile_ms >= 0)
        out->hit_ns = out->launch_ns - out->prepared_ns;
    qn_kernel_work(job->kernel, job->n, job->arg, &out->work, sizeof out->work, NULL);
    return EXIT_OK;
}

int bench_measure(const tool_line *line, const tool_job *job, const char *what, figures *out)
{
    int status = EXIT_OK;
    qn_options o = job->options;
    *out = (figures){-1, -1, -1, -1, -1, {.flops = -1}, -1};
    if (o.engine != QN_ENGINE_INTERP) {
        if (o.engine == QN_ENGINE_AUTO && !job->stream)
            o.engine = QN_ENGINE_NATIVE;
        status = bench_compile(line, job, &o, what, out);
    }
    if (status == EXIT_OK)
        status = bench_runs(line, job, &o, what, out);
    progress_clear();
    return status;
}

double figures_run_ns(const figures *f)
{
    return f->device_ns >= 0 ? f->device_ns : f->prepared_ns;
}

/* ---------------------------------------------------------------- what is told */

static void print_figures(const figures *f)
{
    double ns = figures_run_ns(f);
    if (f->compile_ms >= 0) {
        printf("load        %10.3f ms   the code generator, once in a process\n", f->load_ms);
        printf("compile     %10.3f ms   from a finished kernel to code\n", f->compile_ms);
    }
    printf("launch      %10.1f ns   check the arguments, find the code, run\n", f->launch_ns);
    printf("prepared    %10.1f ns   run, arguments bound before\n", f->prepared_ns);
    if (f->hit_ns >= 0)
        printf("hit         %10.1f ns   the difference: from known arguments to code\n", f->hit_ns);
    else
        puts("hit                  - ns   the difference is lost in the run; take smaller arrays");
    if (f->device_ns >= 0)
        printf("kernel      %10.1f ns   on the GPU, from one call to the next\n", f->device_ns);
    printf("traffic     %10.3f GB/s %" PRId64 " bytes of elements read and written\n",
           (double)f->work.bytes / ns, f->work.bytes);
    if (f->work.flops > 0)
        printf("arithmetic  %10.3f GF/s %" PRId64 " floating-point operations\n",
               (double)f->work.flops / ns, f->work.flops);
    else
        printf("arithmetic           - GF/s not evident from the text of the kernel\n");
}

/* A time, or null where it was not measured. */
static void json_time(json *j, const char *name, double value)
{
    if (value >= 0)
        json_real(j, name, value, 6);
    else
        json_word(j, name, "null");
}

void figures_json(json *j, const figures *f)
{
    double ns = figures_run_ns(f);
    json_time(j, "load_ms", f->load_ms);
    json_time(j, "compile_ms", f->compile_ms);
    json_time(j, "launch_ns", f->launch_ns);
    json_time(j, "prepared_ns", f->prepared_ns);
    json_time(j, "hit_ns", f->hit_ns);
    json_time(j, "device_ns", f->device_ns);
    json_int(j, "bytes", f->work.bytes);
    json_real(j, "gigabytes_per_s", (double)f->work.bytes / ns, 6);
    if (f->work.flops > 0)
        json_int(j, "flops", f->work.flops);
    else
        json_word(j, "flops", "null");
    json_time(j, "gigaflops_per_s", f->work.flops > 0 ? (double)f->work.flops / ns : -1);
}

int command_bench(const tool_line *line)
{
    tool_job job;
    figures f;
    json j = {0};
    if (line->over || line->plot)
        return command_sweep(line);
    int status = job_open(line, &job);
    if (status == EXIT_OK)
        status = bench_measure(line, &job, "bench", &f);
    if (status == EXIT_OK && line->how.json) {
        if (json_begin(&j, "bench")) {
            json_text(&j, "kernel", qn_kernel_name(job.kernel));
            figures_json(&j, &f);
        } else {
            status = tool_fail(EXIT_ERROR, "out of memory");
        }
    } else if (status == EXIT_OK) {
        print_figures(&f);
    }
    job_close(&job);
    return json_end(&j, status);
}
