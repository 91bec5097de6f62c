/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_debug.c: the option `debug` of launches, beside what the case files race_*.case and
 * nan_*.case show: which options it goes with, prepared calls, counters, functions, parts of
 * elements, and that a run in iteration order does not race.
 */
#include "tests/unit/launch.h"

enum { N = 6 };

typedef struct setup {
    qn_context *c;
    qn_view x, y, at;
} setup;

/** y[at[i]] = x[i] */
static const char SCATTER[] =
    "kernel \"scatter\" {\n view x: f32[1]; view y: f32[1]; view at: i64[1];\n"
    " %b: i64 = const 0; %n: i64 = extent at, 0; %i: i64 = parallel %b, %n;\n"
    " %k: i64 = load at[%i]; %v: f32 = load x[%i]; %w: f32 = mul %v, 2; store y[%k], %w;\n}\n";

static void set_indices(const setup *s, int64_t last)
{
    fill_f32(&s->x, 1, 1);
    for (int64_t i = 0; i < N; i++)
        ((int64_t *)s->at.data)[i] = i < N - 1 ? i : last;
}

static void test_options(const setup *s)
{
    const qn_arg args[] = {qn_arg_view(&s->x), qn_arg_view(&s->y), qn_arg_view(&s->at)};
    qn_kernel *k = kernel_of(SCATTER);
    qn_error err = {0};
    qn_options o = {.bytes = sizeof o, .debug = QN_DEBUG_RACES};
    set_indices(s, 2);
    tap_ok(qn_launch(s->c, k, 3, args, &o, &err) == QN_ERR_ARGUMENT, "engine auto is refused");
    tap_contains(err.message, "option debug: 1 is for engine 1, the interpreter, not 0",
                 "... and why");
    o.engine = QN_ENGINE_INTERP;
    o.debug = 4;
    tap_ok(qn_launch(s->c, k, 3, args, &o, &err) == QN_ERR_ARGUMENT, "an unknown bit: %s",
           err.message);
    o.debug = QN_DEBUG_RACES;
    o.reserved = 1;
    tap_ok(qn_launch(s->c, k, 3, args, &o, &err) == QN_ERR_ARGUMENT, "reserved is 0: %s",
           err.message);
    o.reserved = 0;
    qn_counters before = counters_of(s->c);
    for (int i = 0; i < 2; i++)
        tap_ok(qn_launch(s->c, k, 3, args, &o, &err) == QN_ERR_RACE, "each launch looks: %s",
               err.message);
    tap_is_int(counters_of(s->c).faults - before.faults, 2, "races count as faults");
    o.debug = 0;
    tap_ok(qn_launch(s->c, k, 3, args, &o, NULL) == QN_OK,
           "the interpreter alone looks for nothing");
    tap_ok(qn_launch(s->c, k, 3, args, &o, NULL) == QN_OK,
           "... also where the arguments are known");
    o.debug = QN_DEBUG_RACES;
    tap_ok(qn_launch(s->c, k, 3, args, &o, NULL) == QN_ERR_RACE,
           "a debugged launch after it looks again");
    qn_call *call = NULL;
    tap_ok(qn_prepare(s->c, k, 3, args, &o, &call, &err) == QN_OK, "prepared: %s", err.message);
    tap_ok(qn_run(call, &err) == QN_ERR_RACE, "runs of prepared calls look: %s", err.message);
    set_indices(s, N - 1);
    tap_ok(qn_run(call, &err) == QN_OK && ((float *)s->y.data)[N - 1] == 2 * N,
           "and only that run found it");
    qn_call_release(call);
    qn_kernel_release(k);
}

static void test_order(const setup *s)
{
    qn_layout l;
    const int64_t n = N - 1;
    qn_view y;
    qn_error err = {0};
    qn_kernel *k =
        kernel_of("kernel \"later\" {\n view x: f32[1]; view y: f32[1]; %b: i64 = const 0; %n: i64 "
                  "= extent y, 0;\n"
                  " %i: i64 = parallel %b, %n; %v: f32 = load x[%i]; store y[%i], %v;\n}\n");
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("y", (float *)s->x.data + 1, QN_F32, &l, 0, &y, NULL);
    const qn_arg args[] = {qn_arg_view(&s->x), qn_arg_view(&y)};
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP, .debug = QN_DEBUG_RACES};
    fill_f32(&s->x, 1, 1);
    qn_status status = qn_launch(s->c, k, 2, args, &o, &err);
    tap_ok(status == QN_OK && ((float *)s->x.data)[N - 1] == 1,
           "overlapping views run in order and do not race: %s", err.message);
    o.strict = 1;
    tap_ok(qn_launch(s->c, k, 2, args, &o, &err) == QN_ERR_OVERLAP, "strict: %s", err.message);
    qn_kernel_release(k);
}

/** Stores part 0 of z[i] and loads a part of z[n - 1 - i] in a function. */
static void test_parts(const setup *s)
{
    static const char text[] = "function \"far\" {\n view z: c64[1]; scalar i: i64; %%i: i64 = "
                               "param i; %%v: f32 = load z[%%i] part %d; return %%v;\n}\n"
                               "kernel \"parts\" {\n view z: c64[1]; view y: f32[1]; %%b: i64 = "
                               "const 0; %%n: i64 = extent z, 0;\n"
                               " %%i: i64 = parallel %%b, %%n; %%m: i64 = sub %%n, 1; %%k: i64 = "
                               "sub %%m, %%i; %%v: f32 = call far(z, %%k);\n"
                               " store z[%%i] part 0, %%v; store y[%%i], %%v;\n}\n";
    const int64_t n = N;
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP, .debug = QN_DEBUG_RACES};
    qn_view z = {0};
    qn_error err = {0};
    qn_view_new(s->c, "z", QN_C64, 1, &n, &z, &err);
    for (int part = 0; part < 2; part++) {
        char here[1024];
        snprintf(here, sizeof here, text, part);
        qn_kernel *k = kernel_of(here);
        const qn_arg args[] = {qn_arg_view(&z), qn_arg_view(&s->y)};
        qn_status status = qn_launch(s->c, k, 2, args, &o, &err);
        if (part)
            tap_ok(status == QN_OK, "another part of the element does not race: %s",
                   status ? err.message : "");
        else
            tap_is_str(err.message,
                       "qn_launch: kernel \"parts\": race: store by iteration (2), load by "
                       "iteration (3); element [2] of view "
                       "\"z\", argument 0",
                       "the same part of the element, loaded in a function");
        qn_kernel_release(k);
    }
    qn_view_release(&z);
}

int main(void)
{
    setup s = {.c = context_with(NULL)};
    s.x = vector_of(s.c, "x", QN_F32, N);
    s.y = vector_of(s.c, "y", QN_F32, N);
    s.at = vector_of(s.c, "at", QN_I64, N);
    test_options(&s);
    test_order(&s);
    test_parts(&s);
    qn_view_release(&s.x);
    qn_view_release(&s.y);
    qn_view_release(&s.at);
    qn_context_release(s.c);
    return tap_done();
}
