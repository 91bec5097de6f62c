/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h: what the tests of the runtime share: a few kernels, contexts, small views, and the
 * question whether generated code can be had here.
 */
#ifndef QN_TESTS_UNIT_LAUNCH_H
#define QN_TESTS_UNIT_LAUNCH_H

#include "quern.h"
#include "tests/plan.h"
#include "tests/tap.h"

#include <stdlib.h>

#define SAXPY_TEXT                                                                                 \
    "kernel \"saxpy\" contract {\n view x: f32[1]; view y: f32[1]; scalar a: f32;\n"               \
    " %0: i64 = lower y, 0; %1: i64 = extent y, 0; %2: i64 = add %0, %1;\n"                        \
    " %3: i64 = parallel %0, %2; %4: f32 = param a;\n"                                             \
    " %5: f32 = load x[%3]; %6: f32 = load y[%3];\n"                                               \
    " %7: f32 = fma %4, %5, %6; store y[%3], %7;\n}\n"
/** y[i] = x[i] */
#define COPY_TEXT                                                                                  \
    "kernel \"copy\" {\n view x: f32[1]; view y: f32[1];\n %1: i64 = extent y, 0; %0: i64 = "      \
    "const 0;\n"                                                                                   \
    " %3: i64 = parallel %0, %1; %5: f32 = load x[%3]; store y[%3], %5;\n}\n"
/** y[i] = x[i + 1] over [0, extent y - 1) */
#define SHIFT_TEXT                                                                                 \
    "kernel \"shift\" {\n view x: f32[1]; view y: f32[1];\n %0: i64 = const 0; %1: i64 = extent "  \
    "y, 0;\n"                                                                                      \
    " %2: i64 = const 1; %3: i64 = sub %1, %2; %4: i64 = parallel %0, %3; %5: i64 = add %4, %2;\n" \
    " %6: f32 = load x[%5]; store y[%4], %6;\n}\n"
/** y[i] = x[index[i]] */
#define GATHER_TEXT                                                                                \
    "kernel \"gather\" {\n view x: f64[1]; view index: i64[1]; view y: f64[1];\n"                  \
    " %0: i64 = const 0; %1: i64 = extent y, 0; %2: i64 = parallel %0, %1;\n"                      \
    " %3: i64 = load index[%2]; %4: f64 = load x[%3]; store y[%2], %4;\n}\n"
/** b[i,j] = a[i,j] * s */
#define SCALE_TEXT                                                                                 \
    "kernel \"scale\" {\n view a: f64[2]; view b: f64[2]; scalar s: f64;\n %0: i64 = const 0;\n"   \
    " %1: i64 = extent b, 0; %2: i64 = extent b, 1; %3: i64 = parallel %0, %1;\n"                  \
    " %4: i64 = parallel %0, %2; %5: f64 = param s; %6: f64 = load a[%3, %4];\n"                   \
    " %7: f64 = mul %6, %5; store b[%3, %4], %7;\n}\n"
/** y[0..n) = 1 */
#define FILL_TEXT                                                                                  \
    "kernel \"fill\" {\n view y: f32[1]; scalar n: i64;\n %0: i64 = const 0; %1: i64 = param n;\n" \
    " %2: i64 = parallel %0, %1; %3: f32 = const 0x1p+0; store y[%2], %3;\n}\n"
/** u[i] = u[i] + t, for t in [0, steps) one after the other */
#define STEPS_TEXT                                                                                 \
    "kernel \"steps\" {\n view u: f64[1]; scalar steps: i64;\n %0: i64 = const 0; %1: i64 = "      \
    "param steps;\n"                                                                               \
    " %2: i64 = extent u, 0; %3: i64 = sequential %0, %1; %4: i64 = parallel %0, %2;\n"            \
    " %5: f64 = load u[%4]; %6: f64 = cast %3; %7: f64 = add %5, %6; store u[%4], %7;\n}\n"

static inline qn_kernel *kernel_of(const char *text)
{
    qn_error err = {0};
    qn_kernel *k = NULL;
    if (qn_kernel_parse(text, strlen(text), &k, &err) != QN_OK)
        tap_ok(false, "test kernel: line %d: %s", (int)err.line, err.message);
    return k;
}

/** A context whose code generator is that of QUERN_PROVIDER, else the one of this build. */
static inline qn_context *context_with(const qn_context_options *wanted)
{
    qn_context_options o = {.bytes = sizeof o};
    if (wanted)
        o = *wanted;
    if (!o.provider_path && !getenv("QUERN_PROVIDER"))
        o.provider_path = QN_BUILD_DIR "/libquern-llvm.so";
    qn_error err = {0};
    qn_context *c = NULL;
    if (qn_context_new(&o, &c, &err) != QN_OK)
        tap_ok(false, "test context: %s", err.message);
    return c;
}

static inline qn_view vector_of(qn_context *c, const char *label, int dtype, int64_t n)
{
    qn_view v = {0};
    qn_error err = {0};
    if (qn_view_new(c, label, dtype, 1, &n, &v, &err) != QN_OK)
        tap_ok(false, "test view: %s", err.message);
    return v;
}

static inline void fill_f32(const qn_view *v, float first, float step)
{
    for (int64_t i = 0; i < v->layout.dim[0].extent; i++)
        ((float *)v->data)[i] = first + step * (float)i;
}

/** Whether the processor runs code for x86-64-v4; without it, a skipped point says so. */
static inline bool has_v4(const char *what)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return true;
#endif
    char reason[QN_MESSAGE_BYTES];
    snprintf(reason, sizeof reason, "no AVX-512 here: %s", what);
    tap_skip(reason);
    return false;
}

/** Whether code can be generated here; the reason if not. */
static inline bool has_x86(char *reason, size_t reason_bytes)
{
    qn_context *c = context_with(NULL);
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 4), y = vector_of(c, "y", QN_F32, 4);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    qn_error err = {0};
    bool has = qn_launch(c, k, 2, args, &o, &err) == QN_OK;
    if (!has)
        snprintf(reason, reason_bytes, "no generated code here: %s", err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
    return has;
}

static inline qn_counters counters_of(const qn_context *c)
{
    qn_counters counters;
    qn_context_counters(c, &counters, sizeof counters);
    return counters;
}

/** Whether the history contains a text. */
static inline bool history_has(const qn_context *c, const char *part)
{
    static char text[65536];
    qn_context_history(c, text, sizeof text);
    bool has = strstr(text, part) != NULL;
    if (!has)
        tap_note("the history lacks \"%s\":\n# %s", part, text);
    return has;
}

#endif
