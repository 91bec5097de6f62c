/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_summary.c: counters by kernel, what they say of work and time, the table, and who is told of
 * it when a context is released.
 */
#define _GNU_SOURCE
#include "tests/unit/launch.h"

#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000 };

static qn_context *counting(int32_t summary, void (*log)(void *, int32_t, const char *), void *arg)
{
    const qn_context_options o = {
        .bytes = sizeof o, .disk_cache = "off", .summary = summary, .log = log, .log_arg = arg};
    return context_with(&o);
}

/** Launches saxpy n times on vectors of N elements, and runs it n times prepared. */
static bool run_saxpy(qn_context *c, const qn_kernel *k, int engine, int n)
{
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), {.dtype = QN_F32}};
    const qn_options o = {.bytes = sizeof o, .engine = engine};
    qn_call *call = NULL;
    bool is_fine = qn_prepare(c, k, 3, args, &o, &call, NULL) == QN_OK;
    for (int i = 0; i < n && is_fine; i++)
        is_fine = qn_launch(c, k, 3, args, &o, NULL) == QN_OK && qn_run(call, NULL) == QN_OK;
    qn_call_release(call);
    qn_view_release(&x);
    qn_view_release(&y);
    return is_fine;
}

static void test_work(void)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT), *gather = kernel_of(GATHER_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N);
    qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), {.dtype = QN_F32}};
    qn_work work;
    qn_error err = {0};
    tap_ok(qn_kernel_work(k, 3, args, &work, sizeof work, &err) == QN_OK, "work of saxpy: %s",
           err.message);
    tap_ok(work.bytes == 12 * N && work.flops == 2 * N, "3 arrays, and an fma for each point");
    x.layout.dim[0].stride = 0;
    tap_ok(qn_kernel_work(k, 3, args, &work, sizeof work, NULL) == QN_OK && work.bytes == 8 * N + 4,
           "an element that is read again and again counts once");
    x.layout.dim[0].stride = 1;
    tap_ok(qn_kernel_work(k, 2, args, &work, sizeof work, &err) == QN_ERR_ARGUMENT,
           "an argument is missing");
    tap_contains(err.message, "kernel \"saxpy\": 2 arguments for 3 parameters", "which is said");
    args[1].view = NULL;
    tap_ok(qn_kernel_work(k, 3, args, &work, sizeof work, &err) == QN_ERR_ARGUMENT,
           "a view is NULL");
    tap_contains(err.message, "argument 1 (y) is no view", "which is said, too");
    tap_ok(qn_kernel_work(NULL, 3, args, &work, sizeof work, NULL) == QN_ERR_ARGUMENT,
           "a kernel of NULL is refused");
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(gather);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_counters(int engine)
{
    qn_context *c = counting(QN_SUMMARY_COUNT, NULL, NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT), *again = kernel_of(SAXPY_TEXT),
              *other = kernel_of(COPY_TEXT);
    qn_kernel_counters n = {0};
    qn_error err = {0};
    bool is_code = engine == QN_ENGINE_NATIVE;
    tap_ok(run_saxpy(c, k, engine, 5), "5 launches and 5 prepared runs, %s",
           is_code ? "code" : "interpreter");
    tap_ok(qn_context_kernel(c, again, &n, sizeof n, &err) == QN_OK,
           "another handle names the kernel: %s", err.message);
    tap_is_int(n.launches, 10, "all are counted");
    tap_ok(n.hits == 9 || n.hits == 10, "all but the first are hits: %d", (int)n.hits);
    tap_is_int(n.interpreted, is_code ? 0 : 10, "... by engine");
    tap_is_int(n.versions, is_code, "... and versions");
    tap_ok(n.bytes == 10 * 12 * N && n.flops == 10 * 2 * N, "bytes and operations add up");
    tap_ok(n.run_ns > 0 && n.timed_ns == n.run_ns && (n.compile_ns > 0) == is_code,
           "time was measured");
    tap_ok(qn_context_kernel(c, other, &n, sizeof n, &err) == QN_ERR_NOT_FOUND,
           "a kernel that was not launched");
    tap_contains(err.message, "kernel \"copy\" was not launched", "is not found");
    qn_kernel_release(other);
    qn_kernel_release(again);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void test_table(void)
{
    char text[4000];
    const qn_peaks peaks = {.gigabytes = 1e-9, .gigaflops = 1e-9}, none = {0};
    qn_context *c = counting(QN_SUMMARY_COUNT, NULL, NULL), *off = context_with(NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT), *copy = kernel_of(COPY_TEXT);
    qn_kernel_counters n;
    qn_error err = {0};
    tap_ok(run_saxpy(c, k, QN_ENGINE_INTERP, 1), "saxpy runs");
    size_t bytes = qn_context_summary(c, NULL, text, sizeof text);
    tap_ok(bytes == strlen(text) && bytes == qn_context_summary(c, &none, NULL, 0),
           "the table's size is as promised");
    tap_contains(text, "  saxpy\n", "the table has the kernel");
    tap_contains(text, "  (all)\n", "and a last line for all");
    tap_ok(!strchr(text, '%'), "without peaks there are no shares");
    qn_context_summary(c, &peaks, text, sizeof text);
    tap_ok(strchr(text, '%') != NULL, "with peaks there are");
    tap_ok(qn_context_summary(off, NULL, NULL, 0) == 0,
           "a context that does not count has no table");
    tap_ok(qn_context_kernel(off, k, &n, sizeof n, &err) == QN_ERR_NOT_FOUND, "and no counters");
    tap_contains(err.message, "its option summary is 0", "for a reason");
    qn_kernel_release(copy);
    qn_kernel_release(k);
    qn_context_release(c);
    qn_context_release(off);
}

/** The kernel that took most time is the first of the table. */
static void test_order(void)
{
    char text[4000];
    qn_context *c = counting(QN_SUMMARY_COUNT, NULL, NULL);
    qn_kernel *k = kernel_of(SAXPY_TEXT), *fill = kernel_of(FILL_TEXT);
    qn_view y = vector_of(c, "y", QN_F32, 100000);
    const qn_arg args[] = {qn_arg_view(&y), {.dtype = QN_I64, .bits = 100000}};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    tap_ok(qn_launch(c, fill, 2, args, &o, NULL) == QN_OK && run_saxpy(c, k, QN_ENGINE_INTERP, 1),
           "a long kernel and a short one");
    qn_context_summary(c, NULL, text, sizeof text);
    const char *first = strstr(text, "  fill\n"), *second = strstr(text, "  saxpy\n");
    tap_ok(first && second && first < second, "the long one comes first");
    qn_view_release(&y);
    qn_kernel_release(fill);
    qn_kernel_release(k);
    qn_context_release(c);
}

static void on_line(void *arg, int32_t level, const char *line)
{
    char *text = arg;
    size_t n = strlen(text);
    (void)level;
    snprintf(text + n, 4000 - n, "%s\n", line);
}

static void test_release(void)
{
    char text[4000] = {0}, variable[4000] = {0};
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    for (int32_t summary = QN_SUMMARY_COUNT; summary <= QN_SUMMARY_RELEASE; summary++) {
        qn_context *c = counting(summary, on_line, text);
        tap_ok(run_saxpy(c, k, QN_ENGINE_INTERP, 1) && !text[0],
               "nothing is told before the release");
        qn_context_release(c);
        tap_ok((strstr(text, "  saxpy\n") != NULL) == (summary == QN_SUMMARY_RELEASE),
               "the table is told if it is asked for");
    }
    int ends[2], status = -1;
    tap_ok(pipe(ends) == 0, "a pipe");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        dup2(ends[1], STDERR_FILENO);
        setenv("QUERN_SUMMARY", "1", 1);
        setenv("QUERN_PEAKS", "1e-9,1e-9", 1);
        qn_context *c = counting(0, NULL, NULL);
        bool is_fine = run_saxpy(c, k, QN_ENGINE_INTERP, 1);
        qn_context_release(c);
        _exit(is_fine ? 0 : 1);
    }
    close(ends[1]);
    FILE *file = fdopen(ends[0], "r");
    size_t n = file ? fread(variable, 1, sizeof variable - 1, file) : 0;
    variable[n] = 0;
    if (file)
        fclose(file);
    waitpid(child, &status, 0);
    tap_ok(status == 0, "a child with QUERN_SUMMARY=1");
    tap_contains(variable, "  saxpy\n", "standard error has the table");
    tap_contains(variable, "%", "with the shares of QUERN_PEAKS");
    qn_kernel_release(k);
}

static void test_peaks(void)
{
    qn_context *c = context_with(NULL);
    qn_peaks peaks = {0};
    qn_error err = {0};
    tap_ok(qn_measure_peaks(c, QN_SERIAL, 0, &peaks, sizeof peaks, &err) == QN_OK,
           "peaks are measured: %s", err.message);
    tap_ok(peaks.gigabytes > 0.01 && peaks.gigaflops > 0.01, "%.1f GB/s, %.1f GFLOP/s",
           peaks.gigabytes, peaks.gigaflops);
    tap_ok(qn_measure_peaks(c, QN_CUDA, 0, &peaks, sizeof peaks, &err) == QN_ERR_UNSUPPORTED,
           "those of a GPU are not");
    tap_ok(qn_measure_peaks(NULL, QN_SERIAL, 0, &peaks, sizeof peaks, &err) == QN_ERR_ARGUMENT,
           "nor without a context");
    qn_context_release(c);
}

int main(void)
{
    char reason[600];
    test_work();
    test_counters(QN_ENGINE_INTERP);
    test_table();
    test_order();
    test_release();
    if (has_x86(reason, sizeof reason)) {
        test_counters(QN_ENGINE_NATIVE);
        test_peaks();
    } else {
        tap_skip(reason);
    }
    return tap_done();
}
