/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c: what the processor can do at most: `quern peaks`, and the rates of each cache and of
 * the arithmetic of a dtype for `quern roofline`. All are measured by kernels, and the best run
 * counts.
 */
#define _DEFAULT_SOURCE
#include "tool.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_CHAINS = 10, N_STEPS = 1000, N_POINTS = 4096 };
#define MEMORY_BYTES (INT64_C(256) << 20)
static const double MEASURE_NS = 6e7;

/* ---------------------------------------------------------------- one kernel */

/* Nanoseconds of the best run, each of as many calls as fill 0.2 ms. */
static qn_status best_run(qn_call *call, double *best, qn_error *err)
{
    qn_status status = qn_run(call, err);
    double begin = now_ns(), end = begin;
    int64_t n = 1;
    *best = 0;
    while (status == QN_OK && (*best == 0 || end - begin < MEASURE_NS)) {
        double start = now_ns();
        for (int64_t i = 0; i < n && status == QN_OK; i++)
            status = qn_run(call, err);
        end = now_ns();
        if (end - start < 2e5 && n < 1 << 20) {
            n *= 2;
            continue;
        }
        double one = (end - start) / (double)n;
        *best = *best == 0 || one < *best ? one : *best;
    }
    return status;
}

/* The best run of a kernel on n_views arrays of n ones each. */
static qn_status measure(qn_context *c, const char *text, int dtype, int n_views, int64_t n,
                         double *ns, qn_error *err)
{
    const qn_options o = {.bytes = sizeof o, .checks = QN_CHECKS_NONE, .must_generate = 1};
    qn_kernel *k = NULL;
    qn_call *call = NULL;
    qn_view view[3] = {{0}};
    qn_arg arg[3], one = qn_arg_f64(1);
    one.bits = qn_convert_value(dtype, QN_F64, one.bits);
    one.dtype = dtype;
    qn_status status = qn_kernel_parse(text, strlen(text), &k, err);
    for (int i = 0; status == QN_OK && i < n_views; i++) {
        status = qn_view_new(c, "peak", dtype, 1, &n, &view[i], err);
        arg[i] = qn_arg_view(&view[i]);
        if (status ==
            QN_OK) /* pages that nobody wrote are one page of zeros, which is in the cache */
            status = qn_fill(c, &view[i], one, err);
    }
    if (status == QN_OK)
        status = qn_prepare(c, k, n_views, arg, &o, &call, err);
    if (status == QN_OK)
        status = best_run(call, ns, err);
    qn_call_release(call);
    for (int i = 0; i < n_views; i++)
        qn_view_release(&view[i]);
    qn_kernel_release(k);
    return status;
}

/* ---------------------------------------------------------------- rates */

/* a = b + 3*c on arrays that take a third each of so many bytes. */
static qn_status measure_memory(qn_context *c, int64_t bytes, double *gigabytes, qn_error *err)
{
    static const char text[] =
        "kernel \"rate of memory\" contract {\n view a: f64[1]; view b: f64[1]; view c: f64[1];\n"
        " %0: i64 = const 0; %1: i64 = extent a, 0; %i: i64 = parallel %0, %1;\n"
        " %b: f64 = load b[%i]; %c: f64 = load c[%i]; %s: f64 = const 3.0; %r: f64 = fma %s, %c, "
        "%b; store a[%i], %r;\n}\n";
    double ns = 1;
    int64_t n = bytes / 24;
    qn_status status = measure(c, text, QN_F64, 3, n, &ns, err);
    *gigabytes = 24.0 * (double)n / ns;
    return status;
}

/* Chains of fma that are independent of one another. */
static qn_status measure_arithmetic(qn_context *c, int dtype, double *gigaflops, qn_error *err)
{
    const char *t = qn_dtype_name(dtype);
    char *text = NULL;
    size_t n_text = 0;
    double ns = 1;
    FILE *f = open_memstream(&text, &n_text);
    if (!f) {
        snprintf(err->message, sizeof err->message, "out of memory");
        return QN_ERR_MEMORY;
    }
    fprintf(f,
            "kernel \"rate of arithmetic\" contract { view x: %s[1]; %%z: i64 = const 0; %%n: i64 "
            "= const %d;\n"
            "%%e: i64 = extent x, 0; %%i: i64 = parallel %%z, %%e; %%x: %s = load x[%%i]; %%a: %s "
            "= const 0x1.fep-1;\n",
            t, N_STEPS, t, t);
    for (int i = 0; i < N_CHAINS; i++)
        fprintf(f, "%s%%r%d: %s", i ? ", " : "", i, t);
    fputs(" = for %k: i64 = %z to %n step 1 (", f);
    for (int i = 0; i < N_CHAINS; i++)
        fprintf(f, "%s%%c%d: %s = %%x", i ? ", " : "", i, t);
    fputs(") {\n", f);
    for (int i = 0; i < N_CHAINS; i++) /* addends differ, so that no chain is another one */
        fprintf(f, "%%b%d: %s = const 0x1p-%d; %%d%d: %s = fma %%c%d, %%a, %%b%d;\n", i, t, 8 + i,
                i, t, i, i);
    for (int i = 0; i < N_CHAINS; i++)
        fprintf(f, "%s%%d%d", i ? ", " : "yield ", i);
    fprintf(f, "; };\n%%s0: %s = neg %%r0;\n", t);
    for (int i = 1; i < N_CHAINS; i++)
        fprintf(f, "%%s%d: %s = add %%s%d, %%r%d;\n", i, t, i - 1, i);
    fprintf(f, "store x[%%i], %%s%d; }\n", N_CHAINS - 1);
    fclose(f);
    qn_status status = measure(c, text, dtype, 1, N_POINTS, &ns, err);
    *gigaflops = 2.0 * (double)N_CHAINS * (double)N_STEPS * (double)N_POINTS / ns;
    free(text);
    return status;
}

/* The first line of a file about cache i of the first processor; empty if there is none. */
static void read_cache_file(int i, const char *name, char line[32])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, name);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, 32, f))
        line[0] = 0;
    if (f)
        fclose(f);
}

/* Bytes of the data cache of a level as the kernel of the system knows it, else as libc does, which
 * in some virtual machines counts all caches of this level; 0: unknown. */
static int64_t cache_bytes(int level)
{
    static const int names[] = {0, _SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE,
                                _SC_LEVEL3_CACHE_SIZE};
    char line[32];
    for (int i = 0; i < 8; i++) {
        read_cache_file(i, "level", line);
        if (atoi(line) != level)
            continue;
        read_cache_file(i, "type", line);
        if (strncmp(line, "Instruction", 11) == 0)
            continue;
        read_cache_file(i, "size", line);
        char *unit;
        long size = strtol(line, &unit, 10);
        if (size > 0 && (*unit == 'K' || *unit == 'M'))
            return (int64_t)size * (*unit == 'K' ? 1 << 10 : 1 << 20);
    }
    long bytes = sysconf(names[level]);
    return bytes > 0 ? bytes : 0;
}

int machine_measure(const tool_manner *how, int dtype, machine *out)
{
    static const char *const names[] = {"", "L1", "L2", "L3"};
    const qn_context_options o = {.bytes = sizeof o, .n_threads = 1, .disk_cache = "off"};
    qn_context *c = NULL;
    qn_error err = {0};
    int64_t below = 0; /* size of the cache before */
    *out = (machine){0};
    qn_status status = qn_context_new(&o, &c, &err);
    for (int level = 1; level <= 3 && status == QN_OK; level++) {
        const int64_t size = cache_bytes(level);
        if (size == 0) /* this machine does not say, or has none */
            continue;
        progress_show(how, "measuring %s", names[level]);
        /* Four times the cache before is far from it; half of a large cache may be more than one
         * thread has of it. */
        int64_t bytes = below > 0 && 4 * below < size / 2 ? 4 * below : size / 2;
        below = size;
        out->level[out->n_levels].name = names[level];
        out->level[out->n_levels].bytes = size;
        status = measure_memory(c, bytes, &out->level[out->n_levels++].gigabytes, &err);
    }
    if (status == QN_OK) {
        progress_show(how, "measuring memory");
        out->level[out->n_levels].name = "memory";
        out->level[out->n_levels].bytes = INT64_MAX;
        status = measure_memory(c, MEMORY_BYTES, &out->level[out->n_levels++].gigabytes, &err);
    }
    progress_show(how, "measuring arithmetic of %s", qn_dtype_name(dtype));
    if (status == QN_OK)
        status = measure_arithmetic(c, dtype, &out->gigaflops, &err);
    progress_clear();
    qn_context_release(c);
    return status == QN_OK
               ? EXIT_OK
               : tool_fail(EXIT_ERROR, "%s: %s", qn_status_name((int)status), err.message);
}

int machine_level(const machine *m, int64_t bytes)
{
    int i = 0;
    while (i + 1 < m->n_levels && bytes > m->level[i].bytes)
        i++;
    return i;
}

/* ---------------------------------------------------------------- peaks */

int command_peaks(const tool_manner *how, int argc, char **argv)
{
    qn_context *c = NULL;
    qn_error err = {0};
    qn_peaks peaks;
    int64_t n_threads = 1;
    if (argc == 2 && strcmp(argv[0], "--threads") == 0 &&
        text_to_int(argv[1], strlen(argv[1]), &n_threads) && n_threads >= 1 && n_threads <= 256)
        argc = 0;
    if (argc != 0)
        return tool_fail(EXIT_USAGE, "peaks takes --threads N, from 1 to 256, or nothing");
    const qn_context_options o = {
        .bytes = sizeof o, .n_threads = (int32_t)n_threads, .disk_cache = "off"};
    qn_status status = qn_context_new(&o, &c, &err);
    progress_show(how, "measuring memory and arithmetic");
    if (status == QN_OK)
        status = qn_measure_peaks(c, n_threads > 1 ? QN_THREADS : QN_SERIAL, 0, &peaks,
                                  sizeof peaks, &err);
    progress_clear();
    qn_context_release(c);
    if (status != QN_OK)
        return tool_fail(EXIT_ERROR, "%s: %s", qn_status_name(err.status), err.message);
    if (how->json) {
        json j;
        if (!json_begin(&j, "peaks"))
            return tool_fail(EXIT_ERROR, "out of memory");
        json_int(&j, "threads", n_threads);
        json_real(&j, "gigabytes_per_s", peaks.gigabytes, 6);
        json_real(&j, "gigaflops_per_s", peaks.gigaflops, 6);
        return json_end(&j, EXIT_OK);
    }
    printf("# %d thread%s: GB/s of memory, GFLOP/s of f64\n", (int)n_threads,
           n_threads > 1 ? "s" : "");
    printf("QUERN_PEAKS=%.2f,%.2f\n", peaks.gigabytes, peaks.gigaflops);
    return EXIT_OK;
}
