/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peaks.c: what the processor can do at most, measured by kernels: a triad on arrays larger than
 * caches, and chains of fma that are independent of one another. Nothing is measured unless the
 * host asks, and the best of some runs counts.
 */
#include "runtime/context.h"

#include <string.h>

enum { N_CHAINS = 10, N_STEPS = 1000, N_POINTS = 16384 };
#define TRIAD_ELEMENTS ((int64_t)11184810) /* 3 arrays of f64: 256 MiB */
#define ONE UINT64_C(0x3ff0000000000000) /* 1.0 */
#define MEASURE_NS INT64_C(150000000)

static const char triad_text[] =
    "kernel \"peak of memory\" contract {\n view a: f64[1]; view b: f64[1]; view c: f64[1];\n"
    " %0: i64 = const 0; %1: i64 = extent a, 0; %2: i64 = parallel %0, %1;\n"
    " %3: f64 = load b[%2]; %4: f64 = load c[%2]; %5: f64 = const 0x1.8p+1;\n"
    " %6: f64 = fma %5, %4, %3; store a[%2], %6;\n}\n";

/** A loop of chains: c0 = fma c0, a, b and so on, whose sum is stored. */
static void print_chains(qn_text *t)
{
    qn__text_add(t,
                 "kernel \"peak of arithmetic\" contract {\n view x: f64[1]; %%z: i64 = const 0; "
                 "%%n: i64 = const %d;\n"
                 " %%e: i64 = extent x, 0; %%i: i64 = parallel %%z, %%e; %%x: f64 = load x[%%i];\n"
                 " %%a: f64 = const 0x1.fffp-1; %%b: f64 = const 0x1p-12;\n",
                 N_STEPS);
    for (int i = 0; i < N_CHAINS; i++)
        qn__text_add(t, "%s%%r%d: f64", i ? ", " : " ", i);
    qn__text_add(t, " = for %%k: i64 = %%z to %%n step 1 (");
    for (int i = 0; i < N_CHAINS; i++)
        qn__text_add(t, "%s%%c%d: f64 = %%x", i ? ", " : "", i);
    qn__text_add(t, ") {\n");
    for (int i = 0; i < N_CHAINS; i++) /* b differs, so that no chain is another one */
        qn__text_add(t, "  %%b%d: f64 = const 0x1p-%d; %%d%d: f64 = fma %%c%d, %%a, %%b%d;\n", i,
                     12 + i, i, i, i);
    for (int i = 0; i < N_CHAINS; i++)
        qn__text_add(t, "%s%%d%d", i ? ", " : "  yield ", i);
    qn__text_add(t, ";\n };\n %%s0: f64 = add %%r0, %%b;\n");
    for (int i = 1; i < N_CHAINS; i++)
        qn__text_add(t, " %%s%d: f64 = add %%s%d, %%r%d;\n", i, i - 1, i);
    qn__text_add(t, " store x[%%i], %%s%d;\n}\n", N_CHAINS - 1);
}

/** Nanoseconds of the fastest run. */
static qn_status best_run(qn_call *call, int64_t *ns, qn_error *err)
{
    qn_status status = qn_run(call, err);
    int64_t begin = qn__now_ns(), end = begin;
    *ns = INT64_MAX;
    for (int i = 0; status == QN_OK && (i < 3 || end - begin < MEASURE_NS); i++) {
        int64_t start = qn__now_ns();
        status = qn_run(call, err);
        end = qn__now_ns();
        *ns = end - start < *ns ? end - start : *ns;
    }
    *ns = *ns > 0 ? *ns : 1;
    return status;
}

/** Runs a kernel on n_views arrays of so many elements, filled with ones. */
static qn_status measure(qn_context *c, const char *text, size_t n_text, int n_views, int64_t n,
                         const qn_options *o, int64_t *ns, qn_error *err)
{
    qn_kernel *k = NULL;
    qn_call *call = NULL;
    qn_view view[3] = {{0}};
    qn_arg arg[3];
    qn_status status = qn_kernel_parse(text, n_text, &k, err);
    for (int i = 0; status == QN_OK && i < n_views; i++) {
        status = qn_view_new(c, "peak", QN_F64, 1, &n, &view[i], err);
        arg[i] = qn_arg_view(&view[i]);
        if (status ==
            QN_OK) /* pages that nobody wrote are one page of zeros, which is in the cache */
            status = qn_fill(c, &view[i], (qn_arg){.dtype = QN_F64, .bits = ONE}, err);
    }
    if (status == QN_OK)
        status = qn_prepare(c, k, n_views, arg, o, &call, err);
    if (status == QN_OK)
        status = best_run(call, ns, err);
    qn_call_release(call);
    for (int i = 0; i < n_views; i++)
        qn_view_release(&view[i]);
    qn_kernel_release(k);
    return status;
}

static double rate(double n, int64_t ns)
{
    uint32_t host = qn__fpu_enter();
    double result = n / (double)ns;
    qn__fpu_leave(host);
    return result;
}

qn_status qn_measure_peaks(qn_context *c, int executor, int max_threads, qn_peaks *out,
                           size_t out_bytes, qn_error *err)
{
    const char *who = "qn_measure_peaks";
    const qn_options o = {.bytes = sizeof o,
                          .executor = executor,
                          .max_threads = max_threads,
                          .checks = QN_CHECKS_NONE,
                          .must_generate = 1};
    qn_peaks peaks = {0};
    qn_text chains = {0};
    qn_error inner = {0};
    int64_t triad_ns = 1, chains_ns = 1;
    if (!c || !out)
        return qn__fail(err, QN_ERR_ARGUMENT, "%s: %s is NULL", who, c ? "out" : "context");
    if (executor == QN_CUDA)
        return qn__fail(err, QN_ERR_UNSUPPORTED, "%s: of a GPU they are not measured", who);
    print_chains(&chains);
    qn_status status = chains.failed ? qn__fail(&inner, QN_ERR_MEMORY, "no memory") : QN_OK;
    if (status == QN_OK)
        status =
            measure(c, triad_text, sizeof triad_text - 1, 3, TRIAD_ELEMENTS, &o, &triad_ns, &inner);
    if (status == QN_OK)
        status = measure(c, chains.data, chains.n, 1, N_POINTS, &o, &chains_ns, &inner);
    qn__text_release(&chains);
    if (status)
        return qn__fail(err, status, "%s: %s", who, inner.message);
    peaks.gigabytes = rate(3.0 * 8.0 * (double)TRIAD_ELEMENTS, triad_ns);
    peaks.gigaflops = rate((double)(INT64_C(2) * N_CHAINS * N_STEPS * N_POINTS), chains_ns);
    qn__struct_give(&peaks, sizeof peaks, out, out_bytes);
    return QN_OK;
}
