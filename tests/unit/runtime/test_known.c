/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_known.c: what stays known of numbers that are no constants: multiples of powers of two,
 * numbers below 2^31, and extents of at least one vector. Code that relies on that has no remainder
 * loop and narrow lanes; it never runs for arguments of which it does not hold, be they launched,
 * prepared, or found on disk or in a bundle.
 */
#define _GNU_SOURCE
#include "quern/cache.h"
#include "runtime/context.h"
#include "tests/unit/launch.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/** y[i] = x[i + k] */
#define OFFSET_TEXT                                                                                \
    "kernel \"offset\" {\n view x: f32[1]; view y: f32[1]; scalar k: i64;\n %0: i64 = const 0;\n"  \
    " %1: i64 = extent y, 0; %2: i64 = param k; %3: i64 = parallel %0, %1; %4: i64 = add %3, "     \
    "%2;\n"                                                                                        \
    " %5: f32 = load x[%4]; store y[%3], %5;\n}\n"
/** y[i] = f32(i) */
#define COUNT_TEXT                                                                                 \
    "kernel \"count\" {\n view y: f32[1];\n %0: i64 = const 0; %1: i64 = extent y, 0;\n"           \
    " %2: i64 = parallel %0, %1; %3: f32 = cast %2; store y[%2], %3;\n}\n"
/** y[i] = 2 x[i] over the half of what y has, less so many */
#define HALF_TEXT                                                                                  \
    "kernel \"half\" {\n view x: f32[1]; view y: f32[1]; scalar less: i32;\n %0: i64 = const 0;\n" \
    " %1: i64 = extent y, 0; %2: i64 = const 2; %3: i64 = div %1, %2; %4: i32 = param less;\n"     \
    " %5: i64 = cast %4; %6: i64 = sub %3, %5; %7: i64 = parallel %0, %6;\n"                       \
    " %8: f32 = load x[%7]; %9: f32 = add %8, %8; store y[%7], %9;\n}\n"

/** y[i, j] = x[i, j] */
#define ROWS_TEXT                                                                                  \
    "kernel \"rows\" {\n view x: f32[2]; view y: f32[2];\n %0: i64 = const 0;\n"                  \
    " %1: i64 = extent y, 0; %2: i64 = extent y, 1; %3: i64 = parallel %0, %1;\n"                  \
    " %4: i64 = parallel %0, %2; %5: f32 = load x[%3, %4]; store y[%3, %4], %5;\n}\n"

enum { MOST = 1200, EDGE = 512 };
#define FLOATS (MOST + 2 * EDGE)
static float memory[2][FLOATS];
static qn_error err;

typedef struct job {
    qn_context *c;
    qn_kernel *k;
} job;

static job open_job(const char *text)
{
    return (job){context_with(NULL), kernel_of(text)};
}

static void close_job(job *j)
{
    qn_kernel_release(j->k);
    qn_context_release(j->c);
}

static qn_view row(int which, int64_t n)
{
    qn_layout l;
    qn_view v = {0};
    if (qn_layout_right(1, &n, &l, &err) ||
        qn_view_wrap("row", memory[which] + EDGE, QN_F32, &l, 0, &v, &err))
        tap_ok(false, "test view: %s", err.message);
    return v;
}

static void fill(void)
{
    for (int i = 0; i < FLOATS; i++) {
        memory[0][i] = (float)(i - EDGE);
        memory[1][i] = -1;
    }
}

/** Elements of y that differ from x[i] at first, and from what they were behind and before. */
static int count_wrong(int64_t n)
{
    int wrong = 0;
    for (int i = 0; i < FLOATS; i++)
        wrong += memory[1][i] != (i >= EDGE && i < EDGE + n ? (float)(i - EDGE) : -1);
    return wrong;
}

static bool copy(const job *j, int64_t n, const qn_options *o)
{
    qn_view x = row(0, n), y = row(1, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    fill();
    return qn_launch(j->c, j->k, 2, args, o, &err) == QN_OK && count_wrong(n) == 0;
}

/** The text of a version for copies of n elements, without running; or what qn_explain says. */
static const char *text_of(const job *j, int64_t n, const qn_options *o, int stage)
{
    static char text[20000];
    qn_view x = row(0, n), y = row(1, n);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_code *f = NULL;
    text[0] = 0;
    if (stage < 0)
        (void)qn_explain(j->c, j->k, 2, args, o, text, sizeof text, NULL, &err);
    else if (qn_specialize(j->c, j->k, 2, args, o, &f, &err) == QN_OK)
        qn_code_text(f, stage, text, sizeof text);
    qn_code_release(f);
    return text;
}

/* ---------------------------------------------------------------- multiples */

static const qn_fact_pin of_64[] = {{0, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0},
                                    {1, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0},
                                    {0, QN_PIN_EXTENT, 0, QN_PIN_MULTIPLE, 64},
                                    {1, QN_PIN_EXTENT, 0, QN_PIN_MULTIPLE, 64}};
static const qn_options pinned = {.bytes = sizeof pinned, .n_pins = 4, .pins = of_64},
                        dynamic = {.bytes = sizeof dynamic, .n_pins = 2, .pins = of_64};

static void test_multiple(void)
{
    job j = open_job(COPY_TEXT);
    tap_contains(text_of(&j, 640, &pinned, QN_DUMP_PLAN), "remainder none",
                 "whole steps have no remainder");
    tap_contains(text_of(&j, 640, &pinned, QN_DUMP_KEY), "multiple of 64", "the key says so");
    tap_contains(
        text_of(&j, 640, &pinned, -1),
        "relies on: extent 0 of view x a multiple of 64, extent 0 of view y a multiple of 64\n",
        "so does qn_explain");
    tap_ok(!strstr(text_of(&j, 641, &pinned, QN_DUMP_PLAN), "remainder none"),
           "one more element has one");
    tap_contains(
        text_of(&j, 641, &pinned, -1),
        "faster: a multiple of 64, as is pinned, for extent 0 of argument x, which is 641\n",
        "which qn_explain tells");
    tap_ok(!strstr(text_of(&j, 640, &dynamic, QN_DUMP_PLAN), "remainder none"),
           "without the pin nothing is known");
    close_job(&j);
}

/** Every number of elements, those that break the pin in between. */
static void test_hostile(void)
{
    job j = open_job(COPY_TEXT);
    int n_wrong = 0;
    for (int64_t n = 0; n <= 1024; n += 64)
        for (int64_t off = -1; off <= 1; off++)
            n_wrong += n + off >= 0 && !copy(&j, n + off, &pinned);
    for (int64_t n = 1; n < 300; n++)
        n_wrong += !copy(&j, n, &pinned);
    tap_ok(n_wrong == 0, "any number of elements is copied, and nothing beside: %s", err.message);
    tap_is_int(counters_of(j.c).compiles, 2, "by a version for multiples and one for all");
    int64_t hits = counters_of(j.c).hits;
    n_wrong += !copy(&j, 128, &pinned) || !copy(&j, 129, &pinned) || !copy(&j, 128, &dynamic);
    tap_ok(n_wrong == 0 && counters_of(j.c).hits == hits + 2,
           "what is known of one number is not found by another");
    const qn_options on_threads = {.bytes = sizeof on_threads,
                                   .n_pins = 4,
                                   .pins = of_64,
                                   .executor = QN_THREADS,
                                   .plan = PLAN_WITH(.chunk = 1)};
    for (int64_t n = 64; n <= 1152; n += 64)
        n_wrong += !copy(&j, n, &on_threads);
    tap_ok(n_wrong == 0, "threads divide whole steps: %s", err.message);
    close_job(&j);
}

/** Only one of the two extents is what the pins say; the other one decides the domain, or does not.
 */
static void test_one_of_two(void)
{
    job j = open_job(COPY_TEXT);
    qn_view x = row(0, 130), y = row(1, 128);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    fill();
    tap_ok(qn_launch(j.c, j.k, 2, args, &pinned, &err) == QN_OK && count_wrong(128) == 0,
           "x has 130 elements, y 128");
    x = row(0, 128);
    y = row(1, 120);
    fill();
    tap_ok(qn_launch(j.c, j.k, 2, args, &pinned, &err) == QN_OK && count_wrong(120) == 0,
           "x has 128 elements, y 120");
    y = row(1, 192);
    x = row(0, 192);
    fill();
    tap_ok(qn_launch(j.c, j.k, 2, args, &pinned, &err) == QN_OK && count_wrong(192) == 0,
           "both have 192");
    close_job(&j);
}

/* ---------------------------------------------------------------- scalars and computed bounds */

static const qn_fact_pin offset_of_8[] = {{2, QN_PIN_SCALAR, 0, QN_PIN_MULTIPLE, 8}};
static const qn_options of_8 = {.bytes = sizeof of_8, .n_pins = 1, .pins = offset_of_8};

static bool copy_from(const job *j, int64_t offset, const qn_options *o)
{
    qn_view x = row(0, 100), y = row(1, 50);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_int(QN_I64, offset)};
    fill();
    bool is_right = qn_launch(j->c, j->k, 3, args, o, &err) == QN_OK;
    for (int64_t i = 0; i < 50; i++)
        is_right = is_right && memory[1][EDGE + i] == (float)(offset + i);
    return is_right;
}

static void test_scalar(void)
{
    job j = open_job(OFFSET_TEXT);
    int n_wrong = 0;
    for (int64_t k = 0; k <= 50; k++)
        n_wrong += !copy_from(&j, k, &of_8);
    tap_ok(n_wrong == 0, "any offset is added: %s", err.message);
    qn_view x = row(0, 100), y = row(1, 50);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_int(QN_I64, 16)};
    qn_call *call = NULL;
    tap_ok(qn_prepare(j.c, j.k, 3, args, &of_8, &call, &err) == QN_OK,
           "a call with an offset of 16");
    tap_ok(qn_call_set_scalar(call, 2, 24, &err) == QN_OK && qn_run(call, &err) == QN_OK &&
               memory[1][EDGE] == 24,
           "is set to 24: %s", err.message);
    tap_ok(qn_call_set_scalar(call, 2, 25, &err) == QN_ERR_ARGUMENT &&
               strstr(err.message, "argument 2 (k): 25, but the code relies on a multiple of 8"),
           "but not to 25: %s", err.message);
    tap_ok(qn_run(call, &err) == QN_OK && memory[1][EDGE] == 24, "and goes on with 24");
    qn_call_release(call);
    close_job(&j);
}

static void test_computed(void)
{
    const qn_fact_pin pins[] = {{1, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0},
                                {1, QN_PIN_EXTENT, 0, QN_PIN_MULTIPLE, 128},
                                {2, QN_PIN_SCALAR, 0, QN_PIN_MULTIPLE, 64},
                                {0, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0}};
    const qn_options o = {.bytes = sizeof o, .n_pins = 4, .pins = pins};
    job j = open_job(HALF_TEXT);
    int n_wrong = 0, n_none = 0;
    char plan[2000];
    for (int64_t n = 250; n <= 262; n++)
        for (int less = 0; less <= 70; less += less == 63 || less == 64 ? 1 : 63) {
            qn_view x = row(0, n), y = row(1, n);
            const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_int(QN_I32, less)};
            qn_code *f = NULL;
            fill();
            n_wrong += qn_launch(j.c, j.k, 3, args, &o, &err) != QN_OK;
            for (int64_t i = 0; i < n; i++)
                n_wrong += memory[1][EDGE + i] != (i < n / 2 - less ? 2 * (float)i : -1);
            if (qn_specialize(j.c, j.k, 3, args, &o, &f, &err) == QN_OK &&
                qn_code_text(f, QN_DUMP_PLAN, plan, sizeof plan))
                n_none += strstr(plan, "remainder none") != NULL;
            qn_code_release(f);
        }
    tap_ok(n_wrong == 0, "a range that is computed from pinned numbers has its iterations: %s",
           err.message);
    tap_is_int(n_none, 2, "and whole steps where both pins hold");
    close_job(&j);
}

/* ---------------------------------------------------------------- small numbers */

static void test_small(void)
{
    job j = open_job(COUNT_TEXT);
    const qn_fact_pin pin = {0, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0};
    const qn_options o = {.bytes = sizeof o, .n_pins = 1, .pins = &pin};
    static char text[40000];
    qn_view y = row(1, 1000);
    const qn_arg args[] = {qn_arg_view(&y)};
    qn_code *f = NULL;
    bool is_right = qn_launch(j.c, j.k, 1, args, &o, &err) == QN_OK;
    for (int i = 0; i < 1000; i++)
        is_right = is_right && memory[1][EDGE + i] == (float)i;
    tap_ok(is_right, "elements count: %s", err.message);
    tap_ok(qn_specialize(j.c, j.k, 1, args, &o, &f, &err) == QN_OK,
           "a version for any extent below 2^31");
    qn_code_text(f, QN_DUMP_LLVM, text, sizeof text);
    tap_contains(text, "x i32>", "its lanes count in 32 bits");
    tap_ok(!strstr(text, "x i64>"), "and nothing in 64");
    qn_code_text(f, QN_DUMP_KEY, text, sizeof text);
    tap_contains(text, "below 2^31", "as the key says");
    qn_code_release(f);
    close_job(&j);
}

/** Elements that all lie at one place: a view of more than 2^31 needs no memory. */
static void test_large(void)
{
    const int64_t n = INT64_C(3) << 30;
    const qn_fact_pin pin = {0, QN_PIN_EXTENT, 0, QN_PIN_DYNAMIC, 0};
    const qn_options o = {.bytes = sizeof o, .n_pins = 1, .pins = &pin};
    static const char text[] =
        "kernel \"last\" {\n view x: f32[1]; view y: f64[0];\n %0: i64 = extent x, 0; %1: i64 = "
        "const 16;\n"
        " %2: i64 = sub %0, %1; %3: i64 = reduction %2, %0;\n %4: f64 = reduce sum over %3 {\n"
        " %5: f32 = load x[%3]; %6: f64 = cast %3; %7: f64 = cast %5; %8: f64 = mul %6, %7; yield "
        "%8; };\n"
        " store y[], %4;\n}\n";
    job j = {context_with(NULL), kernel_of(text)};
    float one = 1;
    double sums[2] = {0};
    const int64_t extents[2] = {1000, n}, stride = 0;
    char key[4000] = "";
    for (int i = 0; i < 2; i++) {
        qn_layout l, scalar;
        qn_view x = {0}, y = {0};
        qn_code *f = NULL;
        (void)qn_layout_strided(1, &extents[i], &stride, &l, &err);
        (void)qn_layout_right(0, NULL, &scalar, &err);
        (void)qn_view_wrap("x", &one, QN_F32, &l, 0, &x, &err);
        (void)qn_view_wrap("y", &sums[i], QN_F64, &scalar, 0, &y, &err);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
        tap_ok(qn_launch(j.c, j.k, 2, args, &o, &err) == QN_OK,
               "the last 16 of %" PRId64 " elements: %s", extents[i], err.message);
        tap_ok(sums[i] == 16 * ((double)extents[i] - 8.5), "have the sum of their indices");
        if (qn_specialize(j.c, j.k, 2, args, &o, &f, &err) == QN_OK)
            qn_code_text(f, QN_DUMP_KEY, key, sizeof key);
        qn_code_release(f);
        tap_ok((strstr(key, "extent slot 1 below 2^31") != NULL) == (i == 0),
               "the extent is %s 2^31", i ? "above" : "below");
    }
    tap_is_int(counters_of(j.c).compiles, 2, "so there are two versions");
    close_job(&j);
}

/* ---------------------------------------------------------------- learning */

static const char *history_of(const job *j)
{
    static char text[20000];
    qn_context_history(j->c, text, sizeof text);
    return text;
}

/** Extents of 64 n, then of 16 n, then any: the version of each relies on what all before had in
 * common. */
static void test_learned(void)
{
    static const int64_t unlike[] = {128, 192, 64, 320, 448, 512};
    job j = open_job(COPY_TEXT);
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof unlike / sizeof unlike[0]; i++)
        n_wrong += !copy(&j, unlike[i], NULL);
    int64_t compiles = counters_of(j.c).compiles;
    for (int64_t n = 576; n <= 1152; n += 64)
        n_wrong += !copy(&j, n, NULL);
    tap_ok(n_wrong == 0 && counters_of(j.c).compiles == compiles,
           "one version serves multiples of 64: %s", err.message);
    tap_contains(text_of(&j, 640, NULL, -1), "relies on: extent 0 of view x a multiple of 64",
                 "and relies on that");
    tap_contains(text_of(&j, 640, NULL, QN_DUMP_PLAN), "remainder none", "without a remainder");
    tap_contains(
        history_of(&j),
        "dynamic extents; relies on extent 0 of view x a multiple of 64, extent 0 of view "
        "x at least 64, extent 0 of view y a multiple of 64, extent 0 of view y at least 64",
        "as the history says");
    (void)text_of(&j, 1001, NULL, -1);
    tap_contains(text_of(&j, 640, NULL, -1), "relies on: extent 0 of view x a multiple of 64",
                 "a question teaches nothing");
    n_wrong += !copy(&j, 208, NULL);
    tap_ok(n_wrong == 0 && counters_of(j.c).compiles == compiles + 1,
           "208 elements get another version");
    tap_contains(history_of(&j),
                 "extent 0 of view x: 208, all before were multiples of 64; dynamic extents; "
                 "relies on extent 0 of "
                 "view x a multiple of 16",
                 "with a reason");
    for (int64_t n = 1; n < 200; n++)
        n_wrong += !copy(&j, n, NULL);
    tap_ok(n_wrong == 0 && counters_of(j.c).compiles == compiles + 2, "and one more serves all: %s",
           err.message);
    n_wrong += !copy(&j, 640, NULL);
    tap_ok(n_wrong == 0 && !strstr(text_of(&j, 1024, NULL, -1), "relies on"),
           "which relies on nothing");
    close_job(&j);
}

/** y[i, j] = x[i, j] for so many rows, which lie apart, and columns; whether nothing else is
 * written. */
static bool copy_rows(const job *j, int64_t rows, int64_t columns, const qn_options *o, char *llvm,
                      size_t bytes)
{
    enum { APART = 400 };
    const int64_t extents[] = {rows, columns}, strides[] = {APART, 1};
    qn_layout l;
    qn_view v[2] = {{0}, {0}};
    qn_code *f = NULL;
    bool is_right = qn_layout_strided(2, extents, strides, &l, &err) == QN_OK;
    for (int i = 0; i < 2; i++)
        is_right &= qn_view_wrap("m", memory[i], QN_F32, &l, 0, &v[i], &err) == QN_OK;
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    fill();
    is_right = is_right && qn_launch(j->c, j->k, 2, args, o, &err) == QN_OK;
    for (int i = 0; i < FLOATS; i++) {
        bool is_copied = i / APART < rows && i % APART < columns;
        is_right &= memory[1][i] == (is_copied ? (float)(i - EDGE) : -1);
    }
    if (llvm && qn_specialize(j->c, j->k, 2, args, o, &f, &err) == QN_OK)
        qn_code_text(f, QN_DUMP_LLVM, llvm, bytes);
    qn_code_release(f);
    return is_right;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
        n++;
    return n;
}

/** Rows of at least one vector need no test whether they have one, as long as none is shorter. */
static void test_long(void)
{
    static char known[60000], unknown[60000];
    static const int64_t columns[] = {101, 250, 77, 333, 64, 399};
    const qn_options all_dynamic = {.bytes = sizeof all_dynamic,
                                    .specialize = QN_SPECIALIZE_DYNAMIC};
    job j = open_job(ROWS_TEXT), other = open_job(ROWS_TEXT);
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        n_wrong += !copy_rows(&j, 2 + (int64_t)i % 3, columns[i], NULL, known, sizeof known);
    tap_ok(n_wrong == 0 && counters_of(j.c).dynamic_compiles == 1,
           "one version serves rows of 64 columns and more: %s", err.message);
    tap_contains(history_of(&j), "relies on extent 1 of view x at least 64", "and relies on that");
    n_wrong += !copy_rows(&other, 3, 101, &all_dynamic, unknown, sizeof unknown);
    tap_ok(n_wrong == 0 && count(known, "br i1") > 0 &&
               count(known, "br i1") < count(unknown, "br i1"),
           "its rows have fewer branches, %d instead of %d", count(known, "br i1"),
           count(unknown, "br i1"));
    for (int64_t n = 63; n > 0; n -= 2)
        n_wrong += !copy_rows(&j, 1 + n % 5, n, NULL, NULL, 0);
    for (int64_t n = 1; n < 400; n += 7)
        n_wrong += !copy_rows(&j, 1 + n % 5, n, NULL, NULL, 0);
    tap_ok(n_wrong == 0 && counters_of(j.c).dynamic_compiles == 2,
           "shorter rows get one version more, which serves all: %s", err.message);
    tap_contains(history_of(&j), "extent 1 of view x: 63, all before were at least 64",
                 "with a reason");
    close_job(&j);
    close_job(&other);
}

/** A learned fact goes with the kernel, not with a pin that makes the number dynamic. */
static void test_learned_and_pinned(void)
{
    job j = open_job(COPY_TEXT);
    int n_wrong = 0;
    for (int64_t n = 64; n <= 640; n += 64)
        n_wrong += !copy(&j, n, &dynamic);
    n_wrong += !copy(&j, 641, &dynamic);
    tap_ok(n_wrong == 0 && counters_of(j.c).compiles == 1,
           "of what is pinned to be dynamic nothing is learned");
    close_job(&j);
}

/* ---------------------------------------------------------------- pins of kernels */

#define PINNED_TEXT                                                                                \
    "kernel \"pinned\" {\n  view x: f32[2] read_only {extent 0 dynamic, extent 0 multiple_of 64, " \
    "extent 1 constexpr, stride 0 "                                                                \
    "dynamic, lower 1 multiple_of 4};\n  view y: f32[1];\n  scalar n: i64 {multiple_of 8};\n  "    \
    "scalar w: f32 {constexpr};\n"
/** y[i] = x[i], by a kernel that says itself that extents are multiples of 64. */
#define COPY_64_TEXT                                                                               \
    "kernel \"copy\" {\n view x: f32[1] {extent 0 dynamic, extent 0 multiple_of 64}; view y: "     \
    "f32[1] {extent 0 multiple_of 192, "                                                           \
    "extent 0 dynamic};\n %1: i64 = extent y, 0; %0: i64 = const 0;\n %3: i64 = parallel %0, %1; " \
    "%5: f32 = load x[%3]; "                                                                       \
    "store y[%3], %5;\n}\n"
/** y[i] = s x[i] */
#define SCALED_TEXT                                                                                \
    "kernel \"scaled\" {\n view x: f32[1]; view y: f32[1]; scalar s: f32 {constexpr};\n %1: i64 "  \
    "= extent y, 0; %0: i64 = const 0;\n"                                                          \
    " %2: f32 = param s; %3: i64 = parallel %0, %1; %5: f32 = load x[%3]; %6: f32 = mul %5, %2; "  \
    "store y[%3], %6;\n}\n"

static void test_text(void)
{
    qn_kernel *k = kernel_of(
        PINNED_TEXT "  %0: i64 = param n;\n  %1: i64 = const 0;\n  %2: i64 = parallel %1, %0;\n"
                    "  %3: f32 = param w;\n  store y[%2], %3;\n}\n");
    char text[2000] = "", again[2000] = "";
    qn_kernel_print(k, text, sizeof text);
    tap_ok(strncmp(text, PINNED_TEXT, strlen(PINNED_TEXT)) == 0,
           "pins are printed as they are written in canonical form");
    qn_kernel *copy_of_k = kernel_of(text);
    qn_kernel_print(copy_of_k, again, sizeof again);
    tap_is_str(again, text, "and read again");
    qn_kernel_release(copy_of_k);
    qn_kernel_release(k);
    k = kernel_of("kernel \"k\" {\n view x: f32[1] {stride 0 multiple_of 12, extent 0 multiple_of "
                  "9, extent 0 constexpr, stride 0 "
                  "multiple_of 0x100000};\n %0: i64 = const 0; %1: i64 = const 4; %2: i64 = "
                  "parallel %0, %1;\n"
                  " %3: f32 = const 0x1p+0; store x[%2], %3;\n}\n");
    qn_kernel_print(k, text, sizeof text);
    tap_contains(text, "view x: f32[1] {extent 0 constexpr, stride 0 multiple_of 4096};",
                 "in order, and as powers of two");
    qn_kernel_release(k);
}

static void test_bad_text(void)
{
    static const char *const bad[][2] = {
        {"view x: f32[1] {};", "expected \"extent\", \"stride\" or \"lower\""},
        {"view x: f32[1] {constexpr};", "expected \"extent\", \"stride\" or \"lower\""},
        {"view x: f32[1] {extent 0};", "expected \"constexpr\", \"dynamic\" or \"multiple_of\""},
        {"view x: f32[1] {extent 0 multiple_of};", "integer"},
        {"view x: f32[1] {extent 0 multiple_of 0};", "pin.multiple: 0 is below 1"},
        {"view x: f32[1] {extent 0 multiple_of -8};", "pin.multiple: -8 is below 1"},
        {"view x: f32[1] {extent 1 dynamic};", "pin.dim: 1 of parameter 0 (x) not in [0,1)"},
        {"view x: f32[1] {extent -1 dynamic};", "pin.dim: -1"},
        {"view x: f32[1] {extent 0 dynamic, extent 0 constexpr};",
         "extent 0 of parameter 0 (x) is made constant here, and dynamic by another pin"},
        {"view x: f32[1] {extent 0 dynamic extent 0 dynamic};", "}"},
        {"scalar s: f32 {multiple_of 8};", "which is f32 and no integer"},
        {"scalar s: f32 {extent 0 dynamic};",
         "expected \"constexpr\", \"dynamic\" or \"multiple_of\""},
        {"scalar s: f32 {dynamic, constexpr};", "is made constant here"},
        {"array a: f32 = 1 {constexpr};", ";"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[300];
        qn_kernel *k = NULL;
        snprintf(text, sizeof text, "kernel \"k\" {\n %s\n}\n", bad[i][0]);
        tap_ok(qn_kernel_parse(text, strlen(text), &k, &err) != QN_OK &&
                   strstr(err.message, bad[i][1]),
               "%s: %s", bad[i][0], err.message);
        qn_kernel_release(k);
    }
    static const char function[] =
        "function \"f\" {\n scalar s: i64 {constexpr};\n %0: i64 = param s;\n return %0;\n}\n"
        "kernel \"k\" {\n}\n";
    qn_kernel *k = NULL;
    tap_ok(qn_kernel_parse(function, strlen(function), &k, &err) != QN_OK &&
               strstr(err.message, "parameters of functions have no pins"),
           "%s", err.message);
    qn_kernel_release(k);
}

static void test_of_kernel(void)
{
    job j = open_job(COPY_64_TEXT);
    int n_wrong = 0;
    for (int64_t n = 0; n <= 1024; n += 64)
        for (int64_t off = -1; off <= 1; off++)
            n_wrong += n + off >= 0 && !copy(&j, n + off, NULL);
    tap_ok(n_wrong == 0 && counters_of(j.c).compiles == 2,
           "pins of a kernel make a version for multiples and one for all: %s", err.message);
    tap_contains(text_of(&j, 640, NULL, QN_DUMP_PLAN), "remainder none",
                 "of which the first has no remainder");
    tap_contains(text_of(&j, 641, NULL, -1),
                 "faster: a multiple of 64, as is pinned, for extent 0 of argument x",
                 "a hint tells of them");
    const qn_fact_pin constant = {0, QN_PIN_EXTENT, 0, QN_PIN_CONSTANT, 0};
    const qn_options o = {.bytes = sizeof o, .n_pins = 1, .pins = &constant};
    tap_ok(!copy(&j, 64, &o) &&
               strstr(err.message,
                      "option pins[0].as: extent 0 of parameter 0 (x) is made constant here"),
           "options must not contradict them: %s", err.message);
    close_job(&j);
    j = open_job(SCALED_TEXT);
    for (int i = 0; i < 6; i++) {
        qn_view x = row(0, 100), y = row(1, 100);
        const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_f32((float)(i % 3))};
        fill();
        n_wrong += qn_launch(j.c, j.k, 3, args, NULL, &err) != QN_OK;
        n_wrong += memory[1][EDGE + 99] != 99 * (float)(i % 3);
    }
    tap_ok(n_wrong == 0 && counters_of(j.c).compiles == 3 && counters_of(j.c).hits == 3,
           "a constant of the kernel has a version for each value, and the right one is found: %s",
           err.message);
    close_job(&j);
}

/* ---------------------------------------------------------------- GPUs */

static const qn_fact_pin rows_of_16_bytes[] = {{0, QN_PIN_STRIDE, 0, QN_PIN_MULTIPLE, 2},
                                               {1, QN_PIN_STRIDE, 0, QN_PIN_MULTIPLE, 2},
                                               {1, QN_PIN_EXTENT, 1, QN_PIN_MULTIPLE, 2}};

/** PTX of scale for rows so far apart. */
static const char *ptx_of(const job *j, int64_t columns, int64_t pitch, int n_pins)
{
    static char text[40000];
    static double data[2][64 * 64] __attribute__((aligned(64)));
    const int64_t extents[] = {40, columns}, strides[] = {pitch, 1};
    const qn_options o = {.bytes = sizeof o,
                          .isa = QN_ISA_SM80,
                          .specialize = QN_SPECIALIZE_DYNAMIC,
                          .n_pins = n_pins,
                          .pins = rows_of_16_bytes};
    qn_view v[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        qn_layout l;
        (void)qn_layout_strided(2, extents, strides, &l, &err);
        (void)qn_view_wrap("v", data[i], QN_F64, &l, 0, &v[i], &err);
    }
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1]), qn_arg_f64(2)};
    qn_code *f = NULL;
    text[0] = 0;
    tap_ok(qn_specialize(j->c, j->k, 3, args, &o, &f, &err) == QN_OK,
           "PTX for rows of %" PRId64 ", %" PRId64 " apart %s", columns, pitch, err.message);
    qn_code_text(f, QN_DUMP_PTX, text, sizeof text);
    qn_code_release(f);
    return text;
}

static bool has_wide(const char *ptx)
{
    return strstr(ptx, "ld.global.nc.v2") && strstr(ptx, "st.global.v2");
}

static void test_wide(void)
{
    job j = open_job(SCALE_TEXT);
    tap_ok(has_wide(ptx_of(&j, 40, 64, 3)),
           "rows at multiples of 16 bytes, whatever their length, move 16 bytes at once");
    tap_ok(has_wide(ptx_of(&j, 41, 64, 3)), "also where the length is odd");
    const char *odd = ptx_of(&j, 40, 63, 3);
    tap_ok(!has_wide(odd) && odd[0], "odd strides have no such version, whatever the pins say");
    const char *not_pinned = ptx_of(&j, 40, 64, 0);
    tap_ok(!has_wide(not_pinned) && not_pinned[0], "nor is there one without pins");
    close_job(&j);
}

/* ---------------------------------------------------------------- kept code */

static char root[] = "/tmp/test_known.XXXXXX";

static job open_with(const char *folder, bool is_bundle)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    qn_context_options o = {.bytes = sizeof o, .disk_cache = is_bundle ? "off" : path};
    if (is_bundle) {
        o.bundle = path;
        o.provider_path = "/nowhere/libquern-llvm.so";
    }
    return (job){context_with(&o), kernel_of(COPY_TEXT)};
}

static void test_disk(void)
{
    job j = open_with("cache", false);
    tap_ok(copy(&j, 128, &pinned) && counters_of(j.c).compiles == 1,
           "a version for multiples is compiled and kept on disk");
    close_job(&j);
    j = open_with("cache", false);
    tap_ok(copy(&j, 100, &pinned) && counters_of(j.c).disk_hits == 0 &&
               counters_of(j.c).compiles == 1,
           "another context does not run it for 100 elements: %s", err.message);
    tap_ok(copy(&j, 192, &pinned) && counters_of(j.c).disk_hits == 1, "but for 192");
    close_job(&j);
    j = open_with("cache", false);
    tap_ok(copy(&j, 101, &pinned) && copy(&j, 256, &pinned) && counters_of(j.c).disk_hits == 2 &&
               counters_of(j.c).compiles == 0,
           "a third one finds both");
    close_job(&j);
}

static void test_bundle(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s/bundle", root);
    job j = open_job(COPY_TEXT);
    qn_view x = row(0, 256), y = row(1, 256);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options none = {.bytes = sizeof none};
    tap_ok(qn_bundle_add(j.c, path, j.k, 2, args, &pinned, &err) == QN_OK,
           "code for multiples goes into a bundle: %s", err.message);
    close_job(&j);
    j = open_with("bundle", true);
    tap_ok(copy(&j, 320, &pinned) && counters_of(j.c).disk_hits == 1 &&
               counters_of(j.c).interpreted == 0,
           "which serves other multiples: %s", err.message);
    tap_ok(copy(&j, 100, &pinned) && counters_of(j.c).interpreted == 1, "but no other number");
    tap_ok(copy(&j, 256, &none) && counters_of(j.c).interpreted == 2,
           "and nobody who has not its pins");
    close_job(&j);
}

int main(void)
{
    char reason[400], remove[100];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    test_multiple();
    test_hostile();
    test_one_of_two();
    test_scalar();
    test_computed();
    test_small();
    test_large();
    test_text();
    test_bad_text();
    test_of_kernel();
    test_wide();
    test_learned();
    test_learned_and_pinned();
    test_long();
    tap_ok(mkdtemp(root) != NULL, "a folder for code");
    test_disk();
    test_bundle();
    snprintf(remove, sizeof remove, "rm -rf %s", root);
    tap_ok(system(remove) == 0, "which goes");
    return tap_done();
}
