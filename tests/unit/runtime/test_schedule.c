/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_schedule.c: the option `schedule`: a text that is given decides how the domain is walked, is
 * part of the key, and a text that is refused fails the launch before anything is written.
 */
#include "quern/embed.h"
#include "tests/unit/launch.h"

enum { N = 100 };

/** y = x + a y of N elements, and the text of its schedule as planned. */
typedef struct setup {
    qn_context *c;
    qn_kernel *k;
    qn_view x, y;
    char planned[8192];
} setup;

static qn_error err;

static void fill(setup *s)
{
    fill_f32(&s->x, 1, 1);
    fill_f32(&s->y, 5, 2);
}

static const qn_options plain = {.bytes = sizeof plain, .engine = QN_ENGINE_NATIVE};

static qn_status launch(setup *s, const qn_options *o)
{
    const qn_arg args[] = {qn_arg_view(&s->x), qn_arg_view(&s->y), qn_arg_f32(2)};
    fill(s);
    return qn_launch(s->c, s->k, 3, args, o, &err);
}

static bool is_written(const setup *s)
{
    for (int i = 0; i < N; i++)
        if (((float *)s->y.data)[i] != 2 * (1 + (float)i) + 5 + 2 * (float)i)
            return false;
    return true;
}

static bool is_untouched(const setup *s)
{
    for (int i = 0; i < N; i++)
        if (((float *)s->y.data)[i] != 5 + 2 * (float)i)
            return false;
    return true;
}

/** A text of a stage of the code that a launch with these options runs. */
static const char *stage(setup *s, const qn_options *o, int which)
{
    static char text[2][16384];
    static int n;
    char *at = text[n++ % 2];
    const qn_arg args[] = {qn_arg_view(&s->x), qn_arg_view(&s->y), qn_arg_f32(2)};
    qn_code *code = NULL;
    *at = 0;
    if (qn_specialize(s->c, s->k, 3, args, o, &code, &err) == QN_OK)
        qn_code_text(code, which, at, sizeof text[0]);
    qn_code_release(code);
    return at;
}

static void set_up(setup *s)
{
    s->c = context_with(NULL);
    s->k = kernel_of(SAXPY_TEXT);
    s->x = vector_of(s->c, "x", QN_F32, N);
    s->y = vector_of(s->c, "y", QN_F32, N);
    snprintf(s->planned, sizeof s->planned, "%s", stage(s, &plain, QN_DUMP_SCHEDULE));
    tap_contains(s->planned, "schedule {", "what was planned is a schedule");
}

/* ---------------------------------------------------------------- schedules of this kernel */

static const char scalar[] = "schedule {\n"
                             "  axis d0 100;\n"
                             "  loop d0 sequential { do %6 %10; }\n"
                             "}\n";
static const char vectors[] = "schedule {\n"
                              "  axis d0 100;\n"
                              "  cut d0 by 2 8 tail mask;  # by hand\n"
                              "  loop d0.0 threads { loop d0.1 unrolled { loop d0.2 vector {\n"
                              "    do %6 %10;\n"
                              "  } } }\n"
                              "}\n";

/** Steps on what was planned. */
static const char steps[] = "planned { tail d0 tail=scalar; reorder d0.0 d0.1; }\n";

static bool is_taken(setup *s, const char *text)
{
    const qn_options o = {.bytes = sizeof o, .schedule = text};
    return launch(s, &o) == QN_OK && is_written(s) &&
           history_has(s->c, "by the schedule that was given");
}

static void test_taken(setup *s)
{
    tap_ok(is_taken(s, s->planned), "the schedule that was planned, given back: %s", err.message);
    tap_ok(is_taken(s, scalar), "one that was written by hand: %s", err.message);
    tap_ok(is_taken(s, "planned { tail d0 tail=scalar; }") && is_taken(s, "planned{}"),
           "steps on the one that was planned: %s", err.message);
    tap_ok(is_taken(s, vectors), "... with vectors: %s", err.message);
    const qn_options own = {.bytes = sizeof own,
                            .schedule = "declared { split d0 8 tail=scalar; vectorize d0.1; }"};
    tap_ok(is_taken(s, own.schedule), "steps on the kernel as declared: %s", err.message);
    tap_contains(stage(s, &own, QN_DUMP_PLAN), "loop d0.1 vector", "... give their loops");
    tap_contains(stage(s, &own, QN_DUMP_PLAN), "tail scalar", "... and their tail");
}

/* ---------------------------------------------------------------- texts that are refused */

static char *repeated(const char *word, size_t bytes)
{
    size_t n = strlen(word);
    char *text = calloc(1, bytes + 1);
    for (size_t at = 0; text && at + n <= bytes; at += n)
        memcpy(text + at, word, n);
    return text;
}

static void test_refused(setup *s)
{
    static const struct {
        const char *text, *message, *what;
        qn_status status;
    } wrong[] = {
        {"", "line 1: expected schedule", "an empty text", QN_ERR_PARSE},
        {"vectorize d0;", "line 1: expected schedule", "steps instead of a schedule", QN_ERR_PARSE},
        {"schedule {\n  axis d0 100;\n  loop d7 vector;\n}", "line 3: expected an axis",
         "an axis that is not declared", QN_ERR_PARSE},
        {"schedule { axis d0 99; loop d0 sequential { do %6 %10; } }", "d0", "another extent",
         QN_ERR_ARGUMENT},
        {"schedule { axis d0 symbolic; loop d0 sequential { do %6 %10; } }", "d0",
         "an extent that is a constant of the code", QN_ERR_ARGUMENT},
        {"schedule {\n axis d0 100;\n cut d0 by 8 tail mask;\n loop d0.0 sequential {\n"
         " loop d0.1 vector {\n do %6 %10 { %6 strided 3 proved; } } } }",
         "line 6: ", "a stride that the view has not", QN_ERR_ARGUMENT},
        {"schedule { axis d0 100; axis d1 7; loop d0 sequential { loop d1 sequential {\n"
         "do %8 %22; } } }",
         "d1", "the schedule of another kernel", QN_ERR_ARGUMENT},
        {"schedule { axis d0 100; loop d0 sequential { do %6 %4000000000; } }", "%4000000000",
         "instructions that are not there", QN_ERR_ARGUMENT},
        {"schedule { axis d0 100; loop d0 grid { do %6 %10; } }", "grid",
         "a role of another target", QN_ERR_ARGUMENT},
        {"schedule { axis d0 100; cut d0 by 100 tail none;\n"
         "loop d0.0 sequential { loop d0.1 vector { do %6 %10; } } }",
         "d0.1", "a vector of too many lanes", QN_ERR_ARGUMENT},
    };
    int64_t before = counters_of(s->c).interpreted;
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
        const qn_options o = {.bytes = sizeof o, .schedule = wrong[n].text};
        qn_status status = launch(s, &o);
        bool says = strstr(err.message, "option schedule is refused: schedule") &&
                    strstr(err.message, wrong[n].message) &&
                    strstr(err.message, "qn_launch: kernel \"saxpy\"");
        if (!tap_ok(status == wrong[n].status && says && is_untouched(s), "refused: %s",
                    wrong[n].what))
            tap_note("%s: %s", qn_status_name((int)status), err.message);
    }
    tap_is_int(counters_of(s->c).interpreted, before, "none of them was interpreted instead");
    tap_ok(launch(s, NULL) == QN_OK && is_written(s), "a launch without a schedule goes on");
}

static void test_long(setup *s)
{
    char *most = repeated("# ", QN_MAX_SCHEDULE_BYTES),
         *more = repeated("#\n", QN_MAX_SCHEDULE_BYTES + 2);
    char *deep = repeated("schedule { loop ", QN_MAX_SCHEDULE_BYTES);
    const qn_options of_most = {.bytes = sizeof of_most, .schedule = most},
                     of_more = {.bytes = sizeof of_more, .schedule = more},
                     of_deep = {.bytes = sizeof of_deep, .schedule = deep};
    tap_ok(launch(s, &of_more) == QN_ERR_LIMIT && is_untouched(s), "a text that is too long");
    tap_contains(err.message, "qn_launch: option schedule: longer than 65536 bytes", "... says so");
    tap_ok(launch(s, &of_most) == QN_ERR_PARSE && is_untouched(s), "the longest text is read");
    tap_ok(launch(s, &of_deep) == QN_ERR_PARSE && is_untouched(s), "... whatever it says");
    const size_t at = (size_t)snprintf(more, 64, "schedule { axis d0 100; ");
    const char *nested = "loop d0 sequential { ";
    for (size_t n = at; n + strlen(nested) < QN_MAX_SCHEDULE_BYTES; n += strlen(nested))
        memcpy(more + n, nested, strlen(nested) + 1);
    tap_ok(launch(s, &of_more) == QN_ERR_LIMIT && is_untouched(s), "nodes that are too deep");
    free(most);
    free(more);
    free(deep);
}

/* ---------------------------------------------------------------- other options */

static void test_other_options(setup *s)
{
    const qn_options interp = {
        .bytes = sizeof interp, .engine = QN_ENGINE_INTERP, .schedule = "not read"};
    tap_ok(launch(s, &interp) == QN_OK && is_written(s), "the interpreter does not read it");
    const qn_options soon = {.bytes = sizeof soon, .compile = QN_COMPILE_NOW, .schedule = "?"};
    tap_ok(launch(s, &soon) == QN_ERR_PARSE && is_untouched(s),
           "a launch that would not wait for code waits for the answer");
    const qn_options dynamic = {
        .bytes = sizeof dynamic, .specialize = QN_SPECIALIZE_DYNAMIC, .schedule = scalar};
    tap_ok(launch(s, &dynamic) == QN_ERR_ARGUMENT, "of dynamic extents numbers are not known");
    const qn_options symbolic = {.bytes = sizeof symbolic,
                                 .specialize = QN_SPECIALIZE_DYNAMIC,
                                 .schedule = "schedule { axis d0 symbolic; loop d0 sequential { do "
                                             "%6 %10; } }"};
    tap_ok(launch(s, &symbolic) == QN_OK && is_written(s), "... they are symbolic: %s",
           err.message);
    const qn_context_options nobody = {.bytes = sizeof nobody, .provider_path = "/nowhere"};
    setup t = *s;
    t.c = context_with(&nobody);
    const qn_options o = {.bytes = sizeof o, .schedule = scalar};
    tap_ok(launch(&t, &o) == QN_OK && is_written(&t),
           "without a code generator the interpreter runs, as ever");
    qn_context_release(t.c);
}

static void test_prepared(setup *s)
{
    const qn_arg args[] = {qn_arg_view(&s->x), qn_arg_view(&s->y), qn_arg_f32(2)};
    char *text = calloc(1, sizeof vectors);
    const qn_options o = {.bytes = sizeof o, .schedule = text};
    qn_call *call = NULL;
    memcpy(text, vectors, sizeof vectors);
    fill(s);
    qn_status status = qn_prepare(s->c, s->k, 3, args, &o, &call, &err);
    memset(text, '?', sizeof vectors - 1);
    free(text);
    tap_ok(status == QN_OK && qn_run(call, &err) == QN_OK && is_written(s),
           "a call that is prepared needs the text no more: %s", err.message);
    qn_call_release(call);
}

/* ---------------------------------------------------------------- the key */

static void test_key(setup *s)
{
    const qn_options a = {.bytes = sizeof a, .schedule = scalar},
                     b = {.bytes = sizeof b, .schedule = vectors};
    tap_ok(!strstr(stage(s, &plain, QN_DUMP_KEY), "schedule"), "no key has a schedule unasked");
    tap_contains(stage(s, &a, QN_DUMP_KEY), "schedule:   loop d0 sequential",
                 "the key has the text");
    tap_ok(strcmp(stage(s, &a, QN_DUMP_SCHEDULE), stage(s, &b, QN_DUMP_SCHEDULE)) != 0,
           "two texts are two versions");
    tap_contains(stage(s, &b, QN_DUMP_SCHEDULE), "cut d0 by 2 8 tail mask",
                 "each walks as it says");
    qn_counters before = counters_of(s->c);
    tap_ok(launch(s, &a) == QN_OK && launch(s, &b) == QN_OK && launch(s, &a) == QN_OK,
           "launches in turns");
    qn_counters after = counters_of(s->c);
    tap_ok(after.compiles == before.compiles && after.hits - before.hits >= 2,
           "... find the code of their text");
}

/* ---------------------------------------------------------------- random texts */

/** One random change of a text: a byte, or a piece of the text moved elsewhere. */
static void mutate(char *text, size_t room, uint32_t *seed)
{
    size_t n = strlen(text);
    *seed = *seed * 1664525 + 1013904223;
    size_t at = (*seed >> 8) % (n + 1), from = (*seed >> 5) % (n + 1), length = *seed % 23;
    length = length > n - from ? n - from : length;
    if (*seed >> 30 == 0 && at < n) {
        text[at] = (char)(32 + (*seed >> 12) % 95);
    } else if (*seed >> 30 == 1 && at < n) {
        length = length > n - at ? n - at : length;
        memmove(text + at, text + at + length, n - at - length + 1);
    } else if (n + length + 1 < room) {
        char piece[24];
        memcpy(piece, text + from, length);
        memmove(text + at + length, text + at, n - at + 1);
        memcpy(text + at, piece, length);
    }
}

/** What is refused leaves y alone; what is not gives the values of the kernel. */
static void test_random(setup *s)
{
    char text[4096];
    uint32_t seed = 12345;
    int n_taken = 0, n_wrong = 0;
    const qn_options o = {.bytes = sizeof o, .schedule = text};
    for (int n = 0; n < 400; n++) {
        snprintf(text, sizeof text, "%s", n % 3 == 0 ? s->planned : n % 3 == 1 ? vectors : steps);
        for (uint32_t changes = 1 + seed % 3; changes > 0; changes--)
            mutate(text, sizeof text, &seed);
        qn_status status = launch(s, &o);
        bool is_taken_now = status == QN_OK, is_not_lowered = status == QN_ERR_UNSUPPORTED;
        bool is_refused = status == QN_ERR_PARSE || status == QN_ERR_ARGUMENT ||
                          status == QN_ERR_LIMIT || is_not_lowered;
        n_taken += is_taken_now || is_not_lowered;
        if (!(is_taken_now ? is_written(s) : is_refused && is_untouched(s)) && n_wrong++ == 0)
            tap_note("%s: %s\n%s", qn_status_name((int)status), err.message, text);
    }
    tap_ok(n_wrong == 0, "random texts are refused, or give the right values");
    tap_ok(n_taken > 5, "... and some are taken");
    tap_note("%d of 400 taken", n_taken);
}

/** One word of some kind becomes another one of that kind: roles, tails, numbers behind `by`; with
 * five kinds where a copy is and what it is over, too. */
static void mutate_word(char *text, size_t room, int n_kinds, uint32_t *seed)
{
    static const char *const kinds[5][5] = {
        {"sequential", "threads", "vector", "unrolled", "vector"},
        {"none", "mask", "scalar", "narrower", "overlap"},
        {" 1 ", " 2 ", " 3 ", " 4 ", " 8 "},
        {"frame", "scratch", "registers", "through b0", "contiguous"},
        {" d0.0 ", " r13d2 ", " d1.1 ", " d0.1 ", " d1.0 "}};
    *seed = *seed * 1664525 + 1013904223;
    const char *const *words = kinds[(*seed >> 8) % (uint32_t)n_kinds],
                      *from = words[(*seed >> 12) % 5], *to = words[(*seed >> 16) % 5];
    size_t n_from = strlen(from), n_to = strlen(to);
    int nth = (int)((*seed >> 20) % 4);
    char *at = strstr(text, from);
    for (; at && nth > 0; nth--)
        at = strstr(at + 1, from) ? strstr(at + 1, from) : at;
    if (!at || strlen(text) + n_to >= room)
        return;
    memmove(at + n_to, at + n_from, strlen(at + n_from) + 1);
    memcpy(at, to, n_to);
}

static const char product_text[] =
    "kernel product (a: f64[,], b: f64[,], c: f64[,]) contract {\n"
    "  for all i, j in c { c[i, j] = sum k in dim(a, 1) of a[i, k] * b[k, j] }\n}\n";
static const char product_schedule[] =
    "schedule { axis d0 14; axis d1 27; axis r13d2 9; cut d0 by 3 tail narrower; cut d1 by 2 4 "
    "tail "
    "mask ;\n"
    "  loop d0.0 sequential { loop d1.0 sequential {\n"
    "    place %13 order indexed { loop r13d2 sequential {\n"
    "      loop d0.1 unrolled { loop d1.1 unrolled { loop d1.2 vector { do %14 %18; } } } } }\n"
    "    loop d0.1 unrolled { loop d1.1 unrolled { loop d1.2 vector { do %18 %19; } } } } } }\n";
static const char copied_schedule[] =
    "schedule { axis d0 14; axis d1 27; axis r13d2 9; cut d0 by 3 tail narrower; cut d1 by 2 4 "
    "tail mask ;\n"
    "  buffer b0 frame copy %14 over d0.0 r13d2 d0.1 bytes 1080; buffer b1 scratch copy %15 over "
    "r13d2 d1.1 d1.2 bytes 576;\n"
    "  fill b0 ; loop d1.0 sequential { fill b1 ; loop d0.0 sequential {\n"
    "    place %13 order indexed { loop r13d2 sequential {\n"
    "      loop d0.1 unrolled { loop d1.1 unrolled { loop d1.2 vector { do %14 %18 {\n"
    "        %14 through b0 proved; tail %14 through b0 proved; %15 through b1 proved;\n"
    "        tail %15 through b1 proved; } } } } } }\n"
    "    loop d0.1 unrolled { loop d1.1 unrolled { loop d1.2 vector { do %18 %19; } } } } } }\n";
enum { ROWS = 14, COLUMNS = 27, POINTS = 9 };

/** Launches a product by `n` random schedules; how many are taken. *n_wrong: how many of them have
 * other bits. */
static int run_random(const setup *s, const qn_kernel *k, const qn_arg *args, double *found,
                      const double *expected, const char *base, int n_kinds, int n, int *n_wrong)
{
    const size_t bytes = ROWS * COLUMNS * sizeof *found;
    char text[4096];
    uint32_t seed = 99;
    int n_taken = 0;
    for (int i = 0; i < n; i++) {
        snprintf(text, sizeof text, "%s", base);
        for (int changes = i % 4; changes > 0; changes--)
            mutate_word(text, sizeof text, n_kinds, &seed);
        const qn_options o = {.bytes = sizeof o,
                              .schedule = text,
                              .isa = i % 3 ? QN_ISA_AUTO : QN_ISA_V3,
                              .executor = i % 2 ? QN_THREADS : QN_SERIAL};
        memset(found, 0, bytes);
        bool is_taken_now = qn_launch(s->c, k, 3, args, &o, &err) == QN_OK;
        n_taken += is_taken_now;
        if (is_taken_now && memcmp(found, expected, bytes) != 0 && (*n_wrong)++ == 0)
            tap_note("%s", text);
    }
    return n_taken;
}

/** What is taken of the random schedules of a product has the bits of the interpreter. */
static void test_random_product(const setup *s)
{
    static const int64_t extents[3][2] = {{ROWS, POINTS}, {POINTS, COLUMNS}, {ROWS, COLUMNS}};
    static double expected[ROWS * COLUMNS];
    qn_kernel *k = kernel_of(product_text);
    qn_view view[3] = {{0}};
    qn_arg args[3];
    uint32_t seed = 99;
    for (int v = 0; v < 3; v++) {
        qn_view_new(s->c, "v", QN_F64, 2, extents[v], &view[v], &err);
        args[v] = qn_arg_view(&view[v]);
        for (int64_t i = 0; i < extents[v][0] * extents[v][1]; i++) {
            seed = seed * 1664525 + 1013904223;
            ((double *)view[v].data)[i] = (double)(seed >> 8) * 0x1p-24 - 0.4;
        }
    }
    const qn_options interp = {.bytes = sizeof interp, .engine = QN_ENGINE_INTERP};
    tap_ok(qn_launch(s->c, k, 3, args, &interp, &err) == QN_OK, "a product: %s", err.message);
    memcpy(expected, view[2].data, sizeof expected);
    int n_wrong = 0, n_taken = run_random(s, k, args, view[2].data, expected, product_schedule, 3,
                                          300, &n_wrong);
    tap_ok(n_wrong == 0, "random schedules of a product are refused, or have its bits");
    tap_ok(n_taken > 75, "... and some are taken");
    tap_note("%d of 300 taken", n_taken);
    n_taken = run_random(s, k, args, view[2].data, expected, copied_schedule, 5, 400, &n_wrong);
    tap_ok(n_wrong == 0, "... with copies of both factors, too");
    tap_ok(n_taken > 120, "... and some are taken");
    tap_note("%d of 400 taken", n_taken);
    for (int v = 0; v < 3; v++)
        qn_view_release(&view[v]);
    qn_kernel_release(k);
}

static void test_text(void)
{
    qn_options *o = NULL;
    tap_ok(qn_options_parse("engine=native schedule=schedule { axis d0 100;\n}", NULL, &o, &err) ==
                   QN_OK &&
               o->engine == QN_ENGINE_NATIVE,
           "options as text: %s", err.message);
    tap_is_str(o ? o->schedule : NULL, "schedule { axis d0 100;\n}",
               "... whose schedule is the rest of it");
    qn_options_release(o);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES + 64];
    static setup s;
    test_text();
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    set_up(&s);
    test_taken(&s);
    test_refused(&s);
    test_long(&s);
    test_other_options(&s);
    test_prepared(&s);
    test_key(&s);
    test_random(&s);
    test_random_product(&s);
    qn_view_release(&s.x);
    qn_view_release(&s.y);
    qn_kernel_release(s.k);
    qn_context_release(s.c);
    return tap_done();
}
