/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_debug.c: assertions beside what the case files assert*.case show (checks, plans, the
 * builder); and the option `debug` of launches, beside what the case files race_*.case and
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
    o.n_pins = 1;
    tap_ok(qn_launch(s->c, k, 3, args, &o, &err) == QN_ERR_ARGUMENT, "pins that are not there: %s",
           err.message);
    o.n_pins = 0;
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

/* ---------------------------------------------------------------- assertions */

/** y[i] = 2 x[i], and x[i] is below 100. */
static const char ASSERTS[] = "function \"same\" {\n scalar x: f32; %x: f32 = param x; %l: f32 = "
                              "const 100; %c: bool = lt %x, %l;\n"
                              " assert %c \"below 100\" %x; return %x;\n}\n"
                              "kernel \"asserts\" {\n view x: f32[1]; view y: f32[1]; %b: i64 = "
                              "const 0; %n: i64 = extent y, 0;\n"
                              " %i: i64 = parallel %b, %n; %v: f32 = load x[%i]; %s: f32 = call "
                              "same(%v); %w: f32 = mul %v, 2;\n"
                              " store y[%i], %w;\n}\n";

enum { MANY = 1000 };

static void test_checks(const setup *s, const qn_kernel *k, const qn_arg *args, const char *engines)
{
    const qn_view *y = args[1].view;
    for (int way = 0; way < 9; way++) {
        int executor = way < 6 ? QN_SERIAL : QN_THREADS, checks = way % 3;
        const qn_options o = {.bytes = sizeof o,
                              .engine = way < 3 ? QN_ENGINE_INTERP : QN_ENGINE_NATIVE,
                              .executor = executor,
                              .checks = checks};
        qn_error err = {0};
        if (way == 3 && engines[0]) {
            tap_skip(engines);
            return;
        }
        fill_f32(y, 0, 0);
        qn_status status = qn_launch(s->c, k, 2, args, &o, &err);
        tap_ok(status == (checks == QN_CHECKS_NONE ? QN_OK : QN_ERR_ASSERT),
               "engine %d, executor %d, checks %d: %s", o.engine, executor, checks,
               qn_status_name((int)status));
        if (checks != QN_CHECKS_NONE)
            tap_is_str(err.message,
                       "qn_launch: kernel \"asserts\": assertion \"below 100\" failed: 100; "
                       "iteration (200)",
                       "... the first failure");
        tap_ok(((float *)y->data)[MANY - 1] == MANY - 1, "... and all iterations ran");
    }
}

/** The line of the plan that begins with a word. */
static void line_of(const qn_code *f, const char *word, char *out, size_t out_bytes)
{
    char text[4096] = "";
    qn_code_text(f, QN_DUMP_PLAN, text, sizeof text);
    const char *at = strstr(text, word);
    snprintf(out, out_bytes, "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
}

/** With assertions the code has the lanes that it has without; without checks it is the same code.
 */
static void test_code(const setup *s, const qn_kernel *k, const qn_arg *args)
{
    char text[1024], lanes[2][80] = {"", ""}, bodies[2][20000] = {"", ""};
    snprintf(text, sizeof text, "%s", ASSERTS);
    char *at = strstr(text, "assert %c \"below 100\" %x;");
    memset(at, ' ', strcspn(at, ";") + 1);
    qn_kernel *plain = kernel_of(text);
    const qn_kernel *kernels[2] = {k, plain};
    for (int checks = QN_CHECKS_REPORT; checks <= QN_CHECKS_NONE; checks += QN_CHECKS_NONE) {
        for (int i = 0; i < 2; i++) {
            const qn_options o = {
                .bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V3, .checks = checks};
            qn_code *f = NULL;
            qn_specialize(s->c, kernels[i], 2, args, &o, &f, NULL);
            line_of(f, "width", lanes[i], sizeof lanes[i]);
            bodies[i][0] = 0;
            qn_code_text(f, QN_DUMP_ASM, bodies[i], sizeof bodies[i]);
            qn_code_release(f);
        }
        tap_ok(lanes[0][0] && strcmp(lanes[0], lanes[1]) == 0,
               "checks %d: \"%s\" with and without assertions", checks, lanes[0]);
        bool is_same = bodies[0][0] && strcmp(bodies[0], bodies[1]) == 0;
        tap_ok(is_same == (checks == QN_CHECKS_NONE), "... their code is %s",
               is_same ? "the same" : "not the same");
    }
    qn_kernel_release(plain);
}

static void test_builder(void)
{
    qn_builder *b = qn_builder_new("built", 0);
    qn_param z = qn_view_param(b, "z", QN_C64, 1, 0);
    qn_val i = qn_parallel_over(b, z, 0), v = qn_load(b, z, 1, &i), shown[] = {v, i};
    char text[1024] = "";
    qn_error err = {0};
    qn_kernel *k = NULL;
    qn_assert(b, qn_gt(b, qn_real(b, v), qn_imag(b, v)), "the real part is larger", 2, shown);
    qn_assert(b, qn_const_int(b, QN_BOOL, 1), "this holds", 0, NULL);
    qn_store(b, z, 1, &i, qn_conj(b, v));
    tap_ok(qn_finish(b, &k, &err) == QN_OK, "built: %s", err.message);
    qn_kernel_print(k, text, sizeof text);
    tap_contains(text, "assert %6 \"the real part is larger\" %4, %5, %3;",
                 "complex values are shown by parts");
    tap_ok(!strstr(text, "this holds"), "what holds always is left out");
    qn_kernel_release(k);
    qn_builder_release(b);
    b = qn_builder_new("built", 0);
    qn_assert(b, qn_const_int(b, QN_BOOL, 0), NULL, 0, NULL);
    tap_ok(qn_builder_status(b, &err) == QN_ERR_ARGUMENT, "no message: %s", err.message);
    qn_builder_release(b);
    char many[QN_MAX_MESSAGE_BYTES + 2];
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = 0;
    b = qn_builder_new("built", 0);
    qn_assert(b, qn_const_int(b, QN_BOOL, 0), many, 0, NULL);
    tap_ok(qn_builder_status(b, &err) == QN_ERR_LIMIT, "a long message: %s", err.message);
    qn_builder_release(b);
}

static void test_messages(void)
{
    qn_builder *b = qn_builder_new("many", 0);
    qn_error err = {0};
    char text[32];
    for (int n = 0; n <= QN_MAX_MESSAGES; n++) {
        snprintf(text, sizeof text, "message %d", n);
        if (n == QN_MAX_MESSAGES)
            tap_ok(qn_builder_status(b, &err) == QN_OK, "%d messages: %s", n, err.message);
        qn_assert(b, qn_const_int(b, QN_BOOL, 0), text, 0, NULL);
    }
    tap_ok(qn_builder_status(b, &err) == QN_ERR_LIMIT, "one more: %s", err.message);
    qn_builder_release(b);
}

static void test_assertions(const setup *s)
{
    char reason[600] = "";
    if (has_x86(reason, sizeof reason))
        reason[0] = 0;
    qn_view x = vector_of(s->c, "x", QN_F32, MANY), y = vector_of(s->c, "y", QN_F32, MANY);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    qn_kernel *k = kernel_of(ASSERTS);
    fill_f32(&x, 0, 0.5f);
    test_checks(s, k, args, reason);
    if (reason[0])
        tap_skip(reason);
    else
        test_code(s, k, args);
    qn_kernel_release(k);
    qn_view_release(&x);
    qn_view_release(&y);
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
    test_assertions(&s);
    test_builder();
    test_messages();
    qn_view_release(&s.x);
    qn_view_release(&s.y);
    qn_view_release(&s.at);
    qn_context_release(s.c);
    return tap_done();
}
