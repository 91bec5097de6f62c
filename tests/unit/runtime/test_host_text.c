/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_host_text.c: texts of the library have the same bytes, and are read alike, whatever the host
 * has set: rounding, flush-to-zero, traps, and a locale with a decimal comma. The test makes such a
 * locale, as not every machine has one.
 */
#define _GNU_SOURCE
#include "quern/tune.h"
#include "tests/unit/launch.h"

#include <locale.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
enum { N_MODES = 8 };
static const uint32_t modes[N_MODES] = {0x1f80, 0x3f80, 0x5f80, 0x7f80,
                                        0x9fc0, 0x0000, 0x0f80, 0xc040};
static const char *const mode_names[N_MODES] = {
    "nearest", "down",    "up",      "to zero", "flush, denormals are zero", "all traps",
    "traps of inexact", "up, flush, all traps"};
static uint32_t set_mode(uint32_t bits)
{
    uint32_t before = _mm_getcsr();
    _mm_setcsr(bits);
    return before;
}
#else
#include <fenv.h>
enum { N_MODES = 4 };
static const uint32_t modes[N_MODES] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
static const char *const mode_names[N_MODES] = {"nearest", "down", "up", "to zero"};
static uint32_t set_mode(uint32_t bits)
{
    int before = fegetround();
    fesetround((int)bits);
    return (uint32_t)before;
}
#endif

typedef struct report {
    char text[1 << 16];
    size_t n;
} report;

static void say(report *r, const char *text)
{
    size_t n = strlen(text);
    if (r->n + n + 2 > sizeof r->text)
        return;
    memcpy(r->text + r->n, text, n);
    r->n += n;
    r->text[r->n++] = '\n';
    r->text[r->n] = 0;
}

/* ---------------------------------------------------------------- values in messages */

/** One value of each float dtype. */
typedef struct row {
    uint32_t f32;
    uint64_t f64;
    uint16_t f16, bf16;
    const char *text; /* as messages show them */
} row;

static const row rows[] = {
    {0xbdcccccd, 0xbfb999999999999a, 0xae66, 0xbdcd, "-0.1, -0.1, -0.1, -0.1"},
    {0x3eaaaaab, 0x3fd5555555555555, 0x3555, 0x3eab,
     "0.33333334, 0.3333333333333333, 0.3333, 0.334"},
    {0x00000001, 0x0000000000000001, 0x0001, 0x0001, "1e-45, 5e-324, 6e-08, 9e-41"},
    {0x80000001, 0x800fffffffffffff, 0x83ff, 0x807f,
     "-1e-45, -2.225073858507201e-308, -6.1e-05, -1.17e-38"},
    {0x7f7fffff, 0x7fefffffffffffff, 0x7bff, 0x7f7f,
     "3.4028235e+38, 1.7976931348623157e+308, 65504, 3.39e+38"},
    {0x80000000, 0x8000000000000000, 0x8000, 0x8000, "-0, -0, -0, -0"},
    {0xff800000, 0x7ff0000000000000, 0xfc00, 0x7f80, "-inf, inf, -inf, inf"},
    {0x7fc00000, 0xfff8000000000000, 0x7e00, 0xffc0, "nan, nan, nan, nan"},
    {0x4b7fffff, 0x4340000000000000, 0x6400, 0x4b80, "16777215, 9007199254740992, 1024, 16777216"},
};

#define VALUES_TEXT                                                                                \
    "kernel \"values\" {\n view y: f32[1]; scalar a: f32; scalar b: f64; scalar c: f16; "          \
    "scalar d: bf16;\n"                                                                            \
    " %z: i64 = const 0; %n: i64 = extent y, 0; %i: i64 = parallel %z, %n;\n"                      \
    " %a: f32 = param a; %b: f64 = param b; %c: f16 = param c; %d: bf16 = param d;\n"              \
    " print \"\" %a, %b, %c, %d;\n %no: bool = ne %z, %z;\n"                                       \
    " assert %no \"it holds\" %a, %b, %c, %d;\n store y[%i], %a;\n}\n"

static void take_line(void *arg, const qn_printed *line)
{
    say(arg, line->text);
}

/** Assertions of both engines, and prints. */
static void say_values(report *r, qn_context *c)
{
    qn_kernel *k = kernel_of(VALUES_TEXT);
    qn_view y = vector_of(c, "y", QN_F32, 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const qn_arg args[] = {qn_arg_view(&y),
                               {.dtype = QN_F32, .bits = rows[i].f32},
                               {.dtype = QN_F64, .bits = rows[i].f64},
                               {.dtype = QN_F16, .bits = rows[i].f16},
                               {.dtype = QN_BF16, .bits = rows[i].bf16}};
        for (int way = 0; way < 3; way++) {
            qn_options o = {.bytes = sizeof o,
                            .engine = way == 0 ? QN_ENGINE_INTERP : QN_ENGINE_AUTO,
                            .print = way == 2 ? take_line : NULL,
                            .print_arg = r};
            qn_error err = {0};
            qn_launch(c, k, 5, args, &o, &err);
            say(r, err.message);
        }
    }
    qn_view_release(&y);
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- other texts */

/** A kernel of decimal literals, read and printed. */
static void say_kernel(report *r)
{
    qn_kernel *k = kernel_of("kernel \"literals\" {\n view y: f64[1]; %z: i64 = const 0;\n"
                             " %n: i64 = extent y, 0; %i: i64 = parallel %z, %n;\n"
                             " %a: f64 = const 0.1; %b: f64 = const 4.9e-324; %c: f64 = add %a, "
                             "1.25; %d: f64 = mul %b, %c; store y[%i], %d;\n}\n");
    char text[2048];
    qn_kernel_print(k, text, sizeof text);
    say(r, text);
    qn_kernel_release(k);
}

/** A message with a number of the caller. */
static void say_tuning(report *r, qn_context *c)
{
    qn_kernel *k = kernel_of(SAXPY_TEXT);
    qn_view x = vector_of(c, "x", QN_F32, 1000), y = vector_of(c, "y", QN_F32, 1000);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), {.dtype = QN_F32, .bits = 0x3f800000}};
    qn_tune_options t = {.bytes = sizeof t};
    const uint64_t seconds = 0xc028cccccccccccd; /* -12.4 */
    memcpy(&t.seconds, &seconds, sizeof seconds);
    qn_error err = {0};
    qn_tune_result result;
    qn_tune(c, k, 3, args, NULL, &t, &result, sizeof result, &err);
    say(r, err.message);
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

static void say_all(report *r)
{
    qn_context *c = context_with(NULL);
    r->n = 0;
    r->text[0] = 0;
    say_values(r, c);
    say_kernel(r);
    say_tuning(r, c);
    qn_context_release(c);
}

/* ---------------------------------------------------------------- texts with times */

/** Whether a text has a digit, a comma and a digit. */
static bool has_comma_in_number(const char *text)
{
    for (const char *at = text; (at = strchr(at, ',')) != NULL; at++)
        if (at > text && at[-1] >= '0' && at[-1] <= '9' && at[1] >= '0' && at[1] <= '9')
            return true;
    return false;
}

static void take_log(void *arg, int32_t level, const char *line)
{
    (void)level;
    say(arg, line);
}

/** The table, which is told on release with shares of the peaks of the environment, and the
 * history. */
static void check_times(const char *where)
{
    static report logged, history;
    logged.n = history.n = 0;
    setenv("QUERN_PEAKS", "12.5,1e2", 1);
    qn_context *c = context_with(&(qn_context_options){.bytes = sizeof(qn_context_options),
                                                       .disk_cache = "off",
                                                       .summary = QN_SUMMARY_RELEASE,
                                                       .log = take_log,
                                                       .log_arg = &logged});
    unsetenv("QUERN_PEAKS");
    qn_kernel *k = kernel_of(FILL_TEXT);
    qn_view y = vector_of(c, "y", QN_F32, 1000);
    const qn_arg args[] = {qn_arg_view(&y), {.dtype = QN_I64, .bits = 1000}};
    bool has_run = qn_launch(c, k, 2, args, NULL, NULL) == QN_OK;
    history.n = qn_context_history(c, history.text, sizeof history.text);
    qn_view_release(&y);
    qn_kernel_release(k);
    qn_context_release(c);
    tap_ok(has_run && strstr(logged.text, "  fill\n") != NULL, "%s: the table is told", where);
    tap_ok(strchr(logged.text, '%') != NULL, "%s: with shares of the peaks", where);
    tap_ok(!has_comma_in_number(logged.text), "%s: its numbers have points", where);
    tap_ok(!has_comma_in_number(history.text), "%s: and those of the history", where);
}

/* ---------------------------------------------------------------- a locale */

/** The numbers of a locale with a decimal comma, in the form that the C library of GNU reads. */
static size_t comma_numbers(unsigned char *out)
{
    enum { N_ITEMS = 6, HEAD = 4 * (N_ITEMS + 2) };
    static const unsigned char item[] = ",\0.\0\3\0\0\0" /* comma, point between groups of three */
                                        ",\0\0\0.\0\0\0" /* both as wide characters */
                                        "UTF-8";
    const uint32_t head[N_ITEMS + 2] = {0x20031115 ^ LC_NUMERIC, N_ITEMS,   HEAD,     HEAD + 2,
                                        HEAD + 4,                HEAD + 8, HEAD + 12, HEAD + 16};
    memcpy(out, head, sizeof head);
    memcpy(out + HEAD, item, sizeof item);
    return HEAD + sizeof item;
}

/** The host takes a locale with a decimal comma; false if the C library does not read it. */
static bool take_comma(char *folder)
{
    unsigned char bytes[128];
    char path[256], shown[16];
    size_t n = comma_numbers(bytes);
    if (!mkdtemp(folder))
        return false;
    snprintf(path, sizeof path, "%s/comma", folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
    FILE *f = fopen(path, "wb");
    bool is_written = f && fwrite(bytes, 1, n, f) == n;
    if (f)
        fclose(f);
    setenv("LOCPATH", folder, 1);
    bool is_taken = is_written && setlocale(LC_NUMERIC, "comma") != NULL;
    snprintf(shown, sizeof shown, "%.1f", 0.5);
    return is_taken && strcmp(shown, "0,5") == 0;
}

static void remove_comma(const char *folder)
{
    char path[256];
    snprintf(path, sizeof path, "%s/comma/LC_NUMERIC", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/comma", folder);
    rmdir(path);
    rmdir(folder);
}

/* ---------------------------------------------------------------- all */

static report expected, found;

static void check_expected(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        tap_ok(strstr(expected.text, rows[i].text) != NULL, "values have the fewest digits: %s",
               rows[i].text);
    tap_ok(strstr(expected.text, "seconds -12.4,") != NULL, "a number of the caller is shown");
}

static void check_modes(const char *where)
{
    for (int m = 0; m < N_MODES; m++) {
        uint32_t before = set_mode(modes[m]);
        say_all(&found);
        set_mode(before);
        bool is_equal = strcmp(found.text, expected.text) == 0;
        tap_ok(is_equal, "%s, %s: every text has the bytes that it has by default", where,
               mode_names[m]);
        size_t at = 0;
        while (!is_equal && found.text[at] == expected.text[at])
            at++;
        if (!is_equal)
            tap_note("at byte %zu: \"%.60s\", expected \"%.60s\"", at, found.text + at,
                     expected.text + at);
    }
}

int main(void)
{
    char folder[] = "/tmp/quern-locale-XXXXXX";
    say_all(&expected);
    check_expected();
    check_modes("locale C");
    check_times("locale C");
    if (take_comma(folder)) {
        check_modes("decimal comma");
        check_times("decimal comma");
        char shown[16];
        snprintf(shown, sizeof shown, "%.1f", 0.5);
        tap_ok(strcmp(shown, "0,5") == 0, "the locale of the host is as before");
    } else {
        tap_skip("the C library does not read a locale that is made here");
    }
    remove_comma(folder);
    return tap_done();
}
