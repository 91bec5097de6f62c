/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_run.c: the benchmark of GPUs. `bench_cuda [--quick] [--tiny] [--limit SECONDS] [--text
 * STAGE] [--plan FIELD=VALUE,...] [--model] [filter...]` times the lines whose names contain all
 * filters. Tab-separated lines; # marks comments. Without a GPU it says why and the exit status is
 * 0; it is 1 if a result is wrong or a call failed, 2 for bad arguments, 3 at the time limit.
 */
#define _GNU_SOURCE
#include "tests/bench/bench_cuda.h"
#include "tests/bench/bench_plan.h"
#include "tests/bench/bench_rank.h"

#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_LIMIT = 150, MAX_TEXT = 4096 };

double gpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double gpu_median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return n % 2 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

bool gpu_wants(const gpu_bench *b, const char *name)
{
    for (int i = 0; i < b->n_filters; i++)
        if (!strstr(name, b->filter[i]))
            return false;
    return true;
}

qn_kernel *gpu_kernel(const char *text, int dtype, qn_error *err)
{
    char full[MAX_TEXT];
    size_t n = 0;
    for (const char *p = text; *p && n + 8 < sizeof full; p++)
        if (*p == '@')
            n += (size_t)snprintf(full + n, sizeof full - n, "%s", qn_dtype_name(dtype));
        else
            full[n++] = *p;
    qn_kernel *k = NULL;
    (void)qn_kernel_parse(full, n, &k, err);
    return k;
}

/* ---------------------------------------------------------------- lines */

static const char *time_text(double seconds, char *buffer, size_t bytes)
{
    if (seconds <= 0)
        snprintf(buffer, bytes, "-");
    else if (seconds < 1e-6)
        snprintf(buffer, bytes, "%.4g ns", seconds * 1e9);
    else if (seconds < 1e-3)
        snprintf(buffer, bytes, "%.4g us", seconds * 1e6);
    else
        snprintf(buffer, bytes, "%.4g ms", seconds * 1e3);
    return buffer;
}

static const char *ratio_text(double x, char *buffer, size_t bytes)
{
    if (x > 0)
        snprintf(buffer, bytes, "%.3f", x);
    else
        snprintf(buffer, bytes, "-");
    return buffer;
}

/* Adds a goal to the text of goals; returns whether it is missed. */
static bool goal(char *text, size_t bytes, const char *what, double found, double wanted,
                 bool is_most)
{
    if (wanted <= 0 || found <= 0)
        return false;
    bool is_short = is_most ? found > wanted : found < wanted;
    size_t n = strlen(text);
    snprintf(text + n, bytes - n, "%s%s%s%.6g%s", n ? ", " : "", what,
             is_most ? " <= " : " >= ", wanted, is_short ? " (missed)" : "");
    return is_short;
}

void gpu_report(gpu_bench *b, const gpu_line *line)
{
    char ours[32], theirs[32], ratio[32], rate[32] = "-", copy[32], goals[256] = "", text[512];
    double relative = line->theirs > 0 && line->ours > 0 ? line->theirs / line->ours : 0;
    bool is_short = false;
    if (!b->is_tiny) {
        is_short |= goal(goals, sizeof goals, "peer", relative, line->peer_goal, false);
        is_short |= goal(goals, sizeof goals, "memcpy", line->to_memcpy, line->memcpy_goal, false);
        is_short |= goal(goals, sizeof goals, line->unit ? line->unit : "", line->rate,
                         line->rate_goal, false);
        is_short |=
            goal(goals, sizeof goals, "us", line->ours * 1e6, line->seconds_goal * 1e6, true);
    }
    if (line->rate > 0)
        snprintf(rate, sizeof rate, "%.5g %s", line->rate, line->unit);
    snprintf(text, sizeof text, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s%s", line->name,
             time_text(line->ours, ours, sizeof ours),
             time_text(line->theirs, theirs, sizeof theirs),
             ratio_text(relative, ratio, sizeof ratio), rate,
             ratio_text(line->to_memcpy, copy, sizeof copy), goals[0] ? goals : "-",
             is_short ? "SHORT" : "ok", line->remark ? "\t" : "", line->remark ? line->remark : "");
    puts(text);
    fflush(stdout);
    b->n_cases++;
    if (relative > 0 && line->is_counted) {
        b->log_sum += log(relative);
        if (b->n_ratios == 0 || relative < b->least) {
            b->least = relative;
            snprintf(b->least_name, sizeof b->least_name, "%s", line->name);
        }
        b->n_ratios++;
    }
    if (is_short && b->n_short < GPU_MAX_SHORT)
        b->short_lines[b->n_short++] = strdup(text);
}

void gpu_wrong(gpu_bench *b, const char *name, const char *format, ...)
{
    b->n_wrong++;
    printf("# WRONG %s: ", name);
    va_list ap;
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}

static void print_summary(gpu_bench *b, double seconds)
{
    for (int i = 0; i < b->n_short; i++) {
        printf("# short: %s\n", b->short_lines[i]);
        free(b->short_lines[i]);
    }
    if (b->n_ratios)
        printf("# least ratio to CUDA C: %.3f, %s\n", b->least, b->least_name);
    printf("bench_cuda: %d lines, %d short, %d wrong, %d ratios to CUDA C, geometric mean %.3f, "
           "minimum %.3f; %.1f s\n",
           b->n_cases, b->n_short, b->n_wrong, b->n_ratios,
           b->n_ratios ? exp(b->log_sum / b->n_ratios) : 0.0, b->least, seconds);
}

/* ---------------------------------------------------------------- program */

static const char *driver_path(void)
{
    const char *path = getenv("QUERN_CUDA_DRIVER");
    return path && path[0] ? path : "libcuda.so.1";
}

static void at_limit(int signal_number)
{
    static const char text[] = "\nbench_cuda: time limit reached, stopped (--limit SECONDS)\n";
    (void)signal_number;
    (void)!write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(3);
}

static int usage(void)
{
    fputs("usage: bench_cuda [--quick] [--tiny] [--limit SECONDS] [--text kernel|key|plan|ptx]"
          " [--plan FIELD=VALUE,...] [--model] [filter...]\n", stderr);
    return 2;
}

/* Options into *b; false if they are not understood. Filters go to the front of argv. */
static bool read_arguments(gpu_bench *b, int argc, char **argv, int *limit)
{
    b->plan.bytes = sizeof b->plan;
    b->filter = (const char *const *)argv;
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0)
            b->is_quick = true;
        else if (strcmp(argv[i], "--tiny") == 0)
            b->is_tiny = true;
        else if (strcmp(argv[i], "--limit") == 0 && has_value)
            *limit = atoi(argv[++i]);
        else if (strcmp(argv[i], "--text") == 0 && has_value)
            b->text = argv[++i];
        else if (strcmp(argv[i], "--plan") == 0 && has_value &&
                 bench_read_plan(argv[i + 1], &b->plan))
            printf("# plan of ours: %s\n", argv[++i]);
        else if (strcmp(argv[i], "--model") == 0)
            b->wants_model = true;
        else if (argv[i][0] == '-')
            return false;
        else
            argv[b->n_filters++] = argv[i];
    }
    return *limit > 0;
}

/* The kernels in CUDA C; without them there are fewer ratios. */
static void open_peers(gpu_bench *b)
{
    const char *path = getenv("QUERN_CUDA_PEERS");
    if (b->is_tiny || !path || !path[0]) {
        printf("# no peers: %s\n",
               b->is_tiny ? "--tiny" : "QUERN_CUDA_PEERS is not set (docs/benchmarks.md)");
        return;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL),
         *symbol = library ? dlsym(library, "peer_begin") : NULL;
    int (*begin)(void), result = -1;
    memcpy(&begin, &symbol, sizeof begin);
    if (symbol)
        result = begin();
    if (!library)
        gpu_wrong(b, "peers", "%s", dlerror());
    else if (result)
        gpu_wrong(b, "peers",
                  "%s: peer_begin failed: CUDA runtime error %d (35: the driver is too old for "
                  "this nvcc)",
                  path, result);
    b->peers = result == 0 ? library : NULL;
}

/* Device, driver and the code generator, which is loaded now. */
static void print_header(gpu_bench *b)
{
    const qn_cuda_device *d = &b->device;
    printf("# GPU: %s, compute capability %d.%d, %d multiprocessors, L2 %.0f MB, CUDA %d.%d\n",
           d->name, d->capability / 10, d->capability % 10, d->n_processors,
           (double)d->l2_bytes * 1e-6, d->driver / 1000, d->driver % 1000 / 10);
    if (b->is_tiny)
        puts("# --tiny: results are checked, times mean nothing");
    if (b->model)
        puts("# name\tplan\testimate, cycles\tmeasured, ns\tcycles a ns\tchosen");
    else
        puts("# name\tours\ttheirs\tratio\trate\tto memcpy\tgoals\tverdict");
    fflush(stdout);
}

static void run_cases(gpu_bench *b)
{
    qn_error err = {0};
    const char *why = "";
    qn_status status = qn_cuda_device_info(b->context, 0, &b->device, sizeof b->device, &err);
    if (!status)
        status = qn_stream_new(b->context, 0, &b->stream, &err);
    b->raw = status ? NULL : gpu_raw_open(driver_path(), &why);
    if (!status && !b->raw)
        gpu_wrong(b, "driver", "%s: %s", driver_path(), why);
    if (!status && b->raw)
        status = gpu_memory(b, &err);
    if (status)
        gpu_wrong(b, "device", "%s", err.message);
    if (!status && b->raw) {
        if (!b->model)
            open_peers(b);
        print_header(b);
        gpu_speed_cases(b);
        gpu_more_cases(b);
        gpu_unseen_cases(b);
        gpu_users_cases(b);
        if (!b->model) {
            gpu_math_cases(b);
            gpu_cost_cases(b);
        }
    }
    gpu_memory_release(b);
    qn_stream_release(b->stream);
}

int gpu_bench_run(gpu_bench *b, int argc, char **argv)
{
    double begin = gpu_now();
    int limit = DEFAULT_LIMIT, n = 0;
    qn_error err = {0};
    if (!read_arguments(b, argc, argv, &limit))
        return usage();
    setenv("CUDA_CACHE_DISABLE", "1",
           1); /* or the driver would remember what it compiled in an earlier run */
    if (qn_context_new(NULL, &b->context, &err)) {
        gpu_wrong(b, "context", "%s", err.message);
        return 1;
    }
    if (qn_cuda_device_count(b->context, &n, &err) || n == 0) {
        printf("bench_cuda: no GPU, nothing to do: %s\n",
               err.status ? err.message : "the driver has none");
        qn_context_release(b->context);
        return 0;
    }
    void (*before)(int) = signal(SIGALRM, at_limit);
    alarm((unsigned)limit);
    bench_ranking ranking;
    b->model = b->wants_model && bench_ranking_begin(&ranking) ? &ranking : NULL;
    run_cases(b);
    if (b->model)
        bench_ranking_end(b->model);
    qn_context_release(b->context);
    gpu_raw_close(b->raw);
    alarm(0);
    signal(SIGALRM, before);
    print_summary(b, gpu_now() - begin);
    return b->n_wrong ? 1 : 0;
}
