/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fpu.c: results do not depend on what the host has set as its floating-point environment, and
 * the host finds its own again: every public entry that computes with floats runs under other
 * roundings, flush-to-zero and traps, and must say what it says under the default. The test itself
 * computes with integers and bits only.
 */
#include "tests/unit/launch.h"

#if !defined(__x86_64__)
int main(void)
{
    tap_skip("the control bits are those of x86");
    return tap_done();
}
#else
#include <xmmintrin.h>

/** What an entry said. */
typedef struct report {
    char text[1 << 20];
    size_t n;
} report;

__attribute__((format(printf, 2, 3))) static void say(report *r, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(r->text + r->n, sizeof r->text - r->n, format, ap);
    va_end(ap);
    if (n > 0 && r->n + (size_t)n < sizeof r->text)
        r->n += (size_t)n;
}

static void say_bytes(report *r, const void *data, size_t n)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < n; i++)
        say(r, "%02x", at[i]);
    say(r, "\n");
}

static void say_status(report *r, const char *what, qn_status status, const qn_error *err)
{
    say(r, "%s: %d %s\n", what, (int)status, status ? err->message : "");
}

/* ---------------------------------------------------------------- values */

static const uint64_t f64_bits[] = {
    0,
    0x8000000000000000,
    1,
    0x000fffffffffffff,
    0x3ff0000000000001,
    0x3fb999999999999a,
    0xbfb999999999999a,
    0x36a0000000000000,
    0x369fffffffffffff,
    0x3810000000000001,
    0x47efffffffffffff,
    0x7fefffffffffffff,
    0x7ff0000000000000,
    0x7ff8000000000001,
    0x43e0000000000001,
    0x4340000000000001,
    0xc2ffffffffffffff,
};
enum { N_VALUES = sizeof f64_bits / sizeof f64_bits[0] };
static const int64_t integers[] = {
    0, 1, -1, 16777217, -16777219, 9007199254740993, -9007199254740995, INT64_MAX, INT64_MIN};
enum { N_INTEGERS = sizeof integers / sizeof integers[0] };
static const int floats[] = {QN_F32, QN_F64, QN_F16, QN_BF16};

static void convert_values(report *r)
{
    for (int i = 0; i < N_VALUES; i++)
        for (int from = QN_BOOL; from <= QN_BF16; from++)
            for (int to = QN_BOOL; to <= QN_BF16; to++)
                say(r, "%llx ",
                    (unsigned long long)qn_convert_value(to, from,
                                                         f64_bits[i] ^ f64_bits[i] >> 29));
    for (int i = 0; i < N_VALUES; i++)
        for (int to = QN_BOOL; to <= QN_BF16; to++)
            say(r, "%llx ", (unsigned long long)qn_convert_value(to, QN_F64, f64_bits[i]));
}

static void make_arguments(report *r)
{
    for (int i = 0; i < N_INTEGERS; i++)
        for (int to = QN_BOOL; to <= QN_C128; to++) {
            qn_arg a = qn_arg_int(to, integers[i]);
            say(r, "%llx %llx ", (unsigned long long)a.bits, (unsigned long long)a.high);
        }
}

/* ---------------------------------------------------------------- builder and text */

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void say_kernel(report *r, const char *what, qn_status status, qn_kernel *k,
                       const qn_error *err)
{
    say_status(r, what, status, err);
    if (k)
        r->n += qn_kernel_print(k, r->text + r->n, sizeof r->text - r->n);
    qn_kernel_release(k);
}

/** A kernel that stores constants made from every value, and ops on all of them, which the builder
 * folds. */
static void fold_constants(report *r)
{
    for (size_t t = 0; t < sizeof floats / sizeof floats[0]; t++) {
        qn_builder *b = qn_builder_new("fold", QN_CONTRACT);
        qn_param y = qn_view_param(b, "y", floats[t], 1, 0);
        qn_val at = qn_parallel_over(b, y, 0);
        for (int i = 0; i < N_VALUES; i++) {
            qn_val x = qn_const_float(b, floats[t], double_of(f64_bits[i]));
            qn_val z = qn_const_float(b, floats[t], double_of(f64_bits[(i + 5) % N_VALUES]));
            qn_val n = qn_const_int(b, floats[t], integers[i % N_INTEGERS]);
            qn_val made[] = {x,
                             n,
                             qn_add(b, x, z),
                             qn_sub(b, x, n),
                             qn_mul(b, x, z),
                             qn_div(b, x, z),
                             qn_sqrt(b, n),
                             qn_fma(b, x, z, n),
                             qn_min(b, x, z),
                             qn_floor(b, x),
                             qn_round(b, x),
                             qn_cast(b, floats[t], qn_cast(b, QN_I16, z)),
                             qn_select(b, qn_lt(b, x, z), x, z)};
            for (size_t j = 0; j < sizeof made / sizeof made[0]; j++)
                qn_store(b, y, 1, &at, made[j]);
        }
        qn_kernel *k = NULL;
        qn_error err = {0};
        qn_status status = qn_finish(b, &k, &err);
        say_kernel(r, "fold", status, k, &err);
        qn_builder_release(b);
    }
    qn_builder *b = qn_builder_new("complex", 0);
    qn_param y = qn_view_param(b, "y", QN_C64, 1, 0);
    qn_val at = qn_parallel_over(b, y, 0),
           z = qn_const_complex(b, QN_C64, double_of(f64_bits[5]), double_of(f64_bits[7]));
    qn_store(b, y, 1, &at, qn_div(b, qn_mul(b, z, z), qn_const_int(b, QN_C64, 16777217)));
    qn_kernel *k = NULL;
    qn_error err = {0};
    qn_status status = qn_finish(b, &k, &err);
    say_kernel(r, "complex", status, k, &err);
    qn_builder_release(b);
}

/** Literals of every form, and one op on each. */
static void read_text(report *r)
{
    static const char *const literals[] = {
        "0.1",    "1e-40",      "3.4028235e38",   "0x1.8p+1",
        "1e-7",   "16777217.5", "0x1p-149",       "123456789.123456789",
        "5e-324", "inf",        "nan(0x7fc00001)"};
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < sizeof literals / sizeof literals[0]; i++) {
            char text[1024];
            const char *type = qn_dtype_name(floats[t]);
            snprintf(text, sizeof text,
                     "kernel \"t\" { view y: %s[1]; %%0: i64 = const 0; %%1: i64 = extent y, 0; "
                     "%%2: i64 = parallel %%0, %%1;"
                     " %%3: %s = const %s; %%4: %s = const 3.0; %%5: %s = div %%3, %%4; %%6: f16 = "
                     "cast %%5; %%7: %s = cast %%6;"
                     " store y[%%2], %%3; store y[%%2], %%5; store y[%%2], %%7; }",
                     type, type, literals[i], type, type, type);
            qn_kernel *k = NULL;
            qn_error err = {0};
            qn_status status = qn_kernel_parse(text, strlen(text), &k, &err);
            say_kernel(r, literals[i], status, k, &err);
        }
}

/* ---------------------------------------------------------------- launches */

/** y[i] = x[i] / 3 + x[i] * x[i] at half the range, its end a float; s is its sum in another order.
 */
#define WORK_TEXT                                                                                  \
    "kernel \"work\" {\n view x: f32[1]; view y: f32[1]; view h: f16[1]; view s: f32[0]; scalar "  \
    "n: f64; scalar m: i64;\n"                                                                     \
    " %0: i64 = const 0; %1: f64 = param n; %2: f64 = const 0.7; %3: f64 = mul %1, %2; %4: i64 = " \
    "cast %3;\n"                                                                                   \
    " %5: i64 = parallel %0, %4; %6: f32 = load x[%5]; %7: f32 = const 3.0; %8: f32 = div %6, "    \
    "%7;\n"                                                                                        \
    " %9: f32 = mul %6, %6; %10: f32 = add %8, %9; %11: i64 = param m; %12: f32 = cast %11; %13: " \
    "f32 = mul %10, %12;\n"                                                                        \
    " store y[%5], %13; %14: f16 = cast %13; store h[%5], %14;\n}\n"
#define SUM_TEXT                                                                                   \
    "kernel \"sum\" {\n view x: f32[1]; view s: f32[0];\n %0: i64 = const 0; %1: i64 = extent x, " \
    "0;\n"                                                                                         \
    " %2: i64 = reduction %0, %1; %3: f32 = reduce sum over %2 { %4: f32 = load x[%2]; yield %4; " \
    "}; store s[], %3;\n}\n"
/** x[i * n / 3], which leaves the view; the fault's index is computed anew for the message. */
#define FAULT_TEXT                                                                                 \
    "kernel \"fault\" {\n view x: f32[1]; view y: f32[1]; scalar n: f64;\n %0: i64 = const 0; "    \
    "%1: i64 = extent y, 0;\n"                                                                     \
    " %2: i64 = parallel %0, %1; %3: f64 = param n; %4: f64 = cast %2; %5: f64 = mul %4, %3; %6: " \
    "f64 = const 3.0;\n"                                                                           \
    " %7: f64 = div %5, %6; %8: i64 = cast %7; %9: f32 = load x[%8]; store y[%2], %9;\n}\n"

enum { N = 5000 };

static void count_event(void *arg, const qn_event *e)
{
    (void)e;
    ++*(int *)arg;
}

/** 0x1p-140 * i and other awkward numbers, as bits. */
static void fill_awkward(const qn_view *x)
{
    uint32_t *bits = x->data;
    for (uint32_t i = 0; i < N; i++)
        bits[i] = i % 3 == 0 ? 512 * i : 0x3dcccccd + (i << 9);
}

/** Runs a kernel in every way; says what it wrote. */
static void run_all_ways(report *r, qn_context *c, const char *text, int n, const qn_arg *args,
                         const qn_view *result, int n_results)
{
    static const int engines[] = {QN_ENGINE_INTERP, QN_ENGINE_AUTO},
                     executors[] = {QN_SERIAL, QN_THREADS};
    static const qn_plan_options plan = {.bytes = sizeof plan, .chunk = 500};
    qn_kernel *k = kernel_of(text);
    for (int e = 0; e < 4; e++) {
        qn_options o = {.bytes = sizeof o,
                        .engine = engines[e / 2],
                        .executor = executors[e % 2],
                        .plan = &plan};
        for (int again = 0; again < 4; again++) {
            qn_error err = {0};
            qn_call *call = NULL;
            o.constant_scalars = again == 3;
            for (int v = 0; v < n_results; v++)
                memset(result[v].data, 0,
                       (size_t)(qn_view_size(&result[v]) * qn_dtype_bytes(result[v].dtype)));
            qn_status status = again == 2 ? qn_prepare(c, k, n, args, &o, &call, &err)
                                          : qn_launch(c, k, n, args, &o, &err);
            if (call)
                status = qn_run(call, &err);
            qn_call_release(call);
            say_status(r, "run", status, &err);
            for (int v = 0; v < n_results; v++)
                say_bytes(r, result[v].data,
                          (size_t)(qn_view_size(&result[v]) * qn_dtype_bytes(result[v].dtype)) /
                              16);
        }
    }
    qn_kernel_release(k);
}

static void launch_with(report *r, const qn_context_options *o)
{
    qn_context *c = context_with(o);
    int64_t none = 0;
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N),
            h = vector_of(c, "h", QN_F16, N), s = {0};
    qn_view_new(c, "s", QN_F32, 0, &none, &s, NULL);
    fill_awkward(&x);
    qn_arg n = {.dtype = QN_F64, .bits = 0x40a3880000000000}; /* 2500 */
    const qn_arg work[] = {qn_arg_view(&x),
                           qn_arg_view(&y),
                           qn_arg_view(&h),
                           qn_arg_view(&s),
                           n,
                           qn_arg_int(QN_I64, 16777219)};
    run_all_ways(r, c, WORK_TEXT, 6, work, (qn_view[]){y, h}, 2);
    run_all_ways(r, c, SUM_TEXT, 2, (qn_arg[]){qn_arg_view(&x), qn_arg_view(&s)}, &s, 1);
    run_all_ways(r, c, FAULT_TEXT, 3, (qn_arg[]){qn_arg_view(&x), qn_arg_view(&y), n}, &y, 1);
    qn_counters counters = counters_of(c);
    say(r, "%lld %lld %lld\n", (long long)counters.launches, (long long)counters.compiles,
        (long long)counters.interpreted);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&h);
    qn_view_release(&s);
    qn_context_release(c);
}

static void launch(report *r)
{
    launch_with(r, NULL);
}

/** With events, so with clocks. */
static void launch_watched(report *r)
{
    int n = 0;
    const qn_context_options o = {
        .bytes = sizeof o, .event_hook = count_event, .event_arg = &n, .start_provider = 1};
    launch_with(r, &o);
    say(r, "%d events\n", n);
}

/** The code that is made is the code of the default environment, constants and all. */
static void compile(report *r)
{
    qn_context *c = context_with(NULL);
    qn_view x = vector_of(c, "x", QN_F32, N), y = vector_of(c, "y", QN_F32, N),
            h = vector_of(c, "h", QN_F16, N), s = {0};
    qn_view_new(c, "s", QN_F32, 0, (int64_t[]){0}, &s, NULL);
    qn_arg n = {.dtype = QN_F64, .bits = 0x40a3880000000000};
    const qn_arg args[] = {qn_arg_view(&x),
                           qn_arg_view(&y),
                           qn_arg_view(&h),
                           qn_arg_view(&s),
                           n,
                           qn_arg_int(QN_I64, 16777219)};
    qn_kernel *k = kernel_of(WORK_TEXT);
    for (int specialize = QN_SPECIALIZE_EXACT; specialize <= QN_SPECIALIZE_DYNAMIC; specialize++) {
        const qn_options o = {.bytes = sizeof o,
                              .engine = QN_ENGINE_NATIVE,
                              .specialize = specialize,
                              .constant_scalars = 1};
        qn_code *f = NULL;
        qn_error err = {0};
        say_status(r, "specialize", qn_specialize(c, k, 6, args, &o, &f, &err), &err);
        static const int stages[] = {QN_DUMP_KEY, QN_DUMP_PLAN, QN_DUMP_LLVM, QN_DUMP_ASM};
        for (int i = 0; i < 4 && f; i++)
            r->n += qn_code_text(f, stages[i], r->text + r->n, sizeof r->text - r->n);
        qn_code_release(f);
    }
    char history[4096];
    qn_context_history(c, history, sizeof history);
    qn_kernel_release(k);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&h);
    qn_view_release(&s);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- views */

static void copy_views(report *r)
{
    static const int dtypes[] = {QN_F32, QN_F64, QN_F16, QN_BF16, QN_I16, QN_U64, QN_BOOL};
    qn_context *c = context_with(NULL);
    qn_view x = vector_of(c, "x", QN_F32, N);
    fill_awkward(&x);
    for (int executor = QN_SERIAL; executor <= QN_THREADS; executor++)
        for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
            qn_error err = {0};
            qn_view y = vector_of(c, "y", dtypes[i], N);
            say_status(r, "convert", qn_convert_copy(c, executor, &y, &x, &err), &err);
            say_bytes(r, y.data, 512);
            say_status(r, "copy", qn_deep_copy_on(c, executor, &y, &y, &err), &err);
            int64_t fewer = N / 2, bounds[] = {0};
            say_status(r, "resize", qn_view_resize(c, &y, 1, &fewer, NULL, &err), &err);
            qn_layout l;
            qn_layout_strided(1, (int64_t[]){N / 4}, (int64_t[]){2}, &l, &err);
            qn_view part = {0}, mirror = {0};
            say_status(r, "layout", qn_view_with_layout(&y, &l, &part, &err), &err);
            say_status(r, "mirror",
                       qn_create_mirror_copy(c, QN_SPACE_CUDA_PINNED, &part, &mirror, &err), &err);
            say(r, "%lld\n", (long long)bounds[0]);
            qn_view_release(&part);
            qn_view_release(&mirror);
            qn_view_release(&y);
        }
    qn_view_release(&x);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- all */

static report expected, found;

static void check(const char *name, void (*entry)(report *))
{
    static const struct {
        const char *name;
        uint32_t bits;
    } modes[] = {
        {"down", 0x3f80},
        {"up", 0x5f80},
        {"to zero", 0x7f80},
        {"flush, denormals are zero", 0x9fc0},
        {"all traps", 0x0000},
        {"traps of inexact", 0x0f80},
        {"up, flush, all traps", 0xc040},
    };
    expected.n = 0;
    memset(expected.text, 0, sizeof expected.text);
    entry(&expected);
    tap_ok(expected.n > 50 && expected.n < sizeof expected.text - 1,
           "%s: says something, %zu bytes", name, expected.n);
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        found.n = 0;
        memset(found.text, 0, sizeof found.text);
        uint32_t before = _mm_getcsr();
        _mm_setcsr(modes[m].bits);
        entry(&found);
        uint32_t after = _mm_getcsr();
        _mm_setcsr(before);
        bool is_equal = strcmp(found.text, expected.text) == 0;
        tap_ok(is_equal, "%s: under \"%s\" the same", name, modes[m].name);
        size_t at = 0;
        while (!is_equal && found.text[at] == expected.text[at])
            at++;
        if (!is_equal)
            tap_note("at byte %zu: \"%.60s\", expected \"%.60s\"", at, found.text + at,
                     expected.text + at);
        tap_ok((after & ~0x3fu) == modes[m].bits, "%s: the host's control bits are back", name);
    }
}

int main(void)
{
    check("qn_convert_value", convert_values);
    check("qn_arg_int", make_arguments);
    check("folding", fold_constants);
    check("kernel text", read_text);
    check("copies", copy_views);
    check("launches", launch);
    check("launches with events", launch_watched);
    char reason[600];
    if (has_x86(reason, sizeof reason))
        check("generated code", compile);
    else
        tap_skip(reason);
    return tap_done();
}
#endif
