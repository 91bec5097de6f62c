/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tree.c: schedules as values: that of a kernel as declared, footprints, schedules written by
 * hand that are right or claim too much, hostile and random texts. What verifies gives the
 * interpreter's bits, whatever the text was.
 */
#include "tests/tap.h"
#include "tests/unit/tree_case.h"

#include <stdlib.h>
#include <string.h>

static const tree_view products[] = {{{6, 5}, false}, {{5, 10}, false}, {{6, 10}, false}};

/* ---------------------------------------------------------------- as declared */

static void test_declared(void)
{
    static const char *const nodes[TREE_SAMPLES] = {
        "loop d0 sequential { loop d1 sequential { do %6 %12; } }",
        "loop d0 sequential { loop d1 sequential { do %8 %22; } }",
        "loop d0 sequential { loop d1 sequential { place %8 order indexed { loop "
        "r8d2 sequential { do %9 %13; } } do %13 "
        "%14; } }",
        "place %5 order striped { loop r5d0 sequential { do %6 %8; } } place %8 "
        "order striped { loop r8d0 "
        "sequential { do %9 %11; } } do %11 %13;",
        "loop d0 sequential { loop d1 sequential { place %8 order indexed { loop "
        "r8d2 sequential { do %9 %11; } } place "
        "%11 order indexed { loop r11d3 sequential { do %12 %16; } } do %16 %20; "
        "} }",
        "loop d0 sequential { do %4 %14; }",
        "loop d0 sequential { loop d1 sequential { loop d2 sequential { do %8 %13; } } }",
    };
    for (int n = 0; n < TREE_SAMPLES; n++)
        for (int dynamic = 0; dynamic < 2; dynamic++) {
            tree_case c;
            if (!tree_case_open(&c, tree_samples[n].text, tree_samples[n].view, QN_ISA_V4, dynamic))
                continue;
            char *found = tree_case_nodes(c.schedule);
            tap_is_str(found, nodes[n], "the schedule of a kernel as declared");
            tap_ok(tree_case_agrees(&c, c.schedule) && tree_case_is_read_again(&c, c.schedule),
                   "... runs as it, and is read again");
            free(found);
            tree_case_close(&c);
        }
}

/* ---------------------------------------------------------------- footprints */

/** What a view's accesses touch in so many iterations of each dimension. */
static void check_box(tree_case *c, const int64_t *spans, int param, int64_t rows, int64_t columns,
                      const char *what)
{
    qn_box all = {0};
    FOR_ACCESSES (c->x.k, n, i) {
        qn_box b;
        if (c->x.k->inst[i].imm != (uint64_t)param)
            continue;
        qn__box_of_spans(&c->x, i, spans, &b);
        if (all.rank)
            qn__box_widen(&all, &b);
        else
            all = b;
    }
    if (!tap_ok(all.extent[0] == rows && all.extent[1] == columns, "%s", what))
        tap_note("%lld x %lld", (long long)all.extent[0], (long long)all.extent[1]);
}

static void test_footprint(void)
{
    static const tree_view large[] = {{{102, 202}, false}, {{102, 202}, false}};
    tree_case c;
    if (tree_case_open(&c, tree_stencil, large, QN_ISA_V4, false)) {
        check_box(&c, (const int64_t[]){100, 200}, 0, 102, 202, "five points touch the whole view");
        check_box(&c, (const int64_t[]){1, 200}, 0, 3, 202,
                  "... three rows in one row of iterations");
        check_box(&c, (const int64_t[]){1, 1}, 0, 3, 3, "... three by three around one point");
        check_box(&c, (const int64_t[]){10, 20}, 0, 12, 22, "... a tile and its rim");
        check_box(&c, (const int64_t[]){10, 20}, 1, 10, 20, "... which writes what is inside");
        tree_case_close(&c);
    }
    if (tree_case_open(&c, tree_matmul, products, QN_ISA_V4, false)) {
        check_box(&c, (const int64_t[]){1, 10, 5}, 1, 5, 10,
                  "a row of a product reads all of the second factor");
        check_box(&c, (const int64_t[]){1, 1, 5}, 1, 5, 1, "... one column for each element");
        check_box(&c, (const int64_t[]){1, 1, 1}, 1, 1, 1, "... one element for each point");
        tree_case_close(&c);
    }
    if (tree_case_open(&c, tree_rows, tree_samples[5].view, QN_ISA_V4, false)) {
        check_box(&c, (const int64_t[]){1}, 1, 1, 8,
                  "a row whose length is data may be as long as the view");
        tree_case_close(&c);
    }
}

/* ---------------------------------------------------------------- written by hand */

static const char register_tile[] =
    "schedule { axis d0 6; axis d1 10; axis r8d2 5; cut d0 by 2 tail none; cut d1 by 4 tail mask;\n"
    "  buffer b0 scratch copy %10 over r8d2 d1.1 bytes 160;\n"
    "  loop d1.0 threads { fill b0;\n"
    "    loop d0.0 sequential { place %8 order indexed {\n"
    "      loop r8d2 sequential { loop d0.1 unrolled { loop d1.1 vector { do %9 %13 {\n"
    "        %9 uniform proved ahead 2 r8d2; %10 through b0 proved; } } } } }\n"
    "      loop d0.1 unrolled { loop d1.1 vector { do %13 %14 { %13 contiguous proved streams; } } "
    "} } } }\n";

/** Texts made of that one, by one replacement: NULL if it is right, else a part of the message. */
static const struct {
    const char *from, *to, *message, *what;
} edits[] = {
    {"none", "none", NULL, "a register tile with a packed operand, written by hand"},
    {"d0 6", "d0 7", "has not so many iterations", "another number of iterations"},
    {"axis r8d2 5", "axis r9d2 5", "expected bytes", "points of what is no reduce"},
    {"cut d0 by 2 tail none", "cut d0 by 4 tail none", "no tail", "parts that do not divide"},
    {"tail mask", "tail overlap", NULL, "steps that overlap, as nothing that is read is written"},
    {"160", "80", "it has 160 bytes", "a buffer that is too small"},
    {"copy %10", "copy %9", "no such buffer", "a buffer of another load"},
    {"copy %10", "sums %8", "buffer holds sums", "a buffer of sums that is filled"},
    {"over r8d2 d1.1", "over r8d2", "it has 40 bytes", "a buffer without an axis"},
    {"fill b0;", "", "not filled before", "a buffer that nobody fills"},
    {"loop d1.0 threads { fill b0;", "fill b0; loop d1.0 threads {", "not over loop d1.0",
     "a buffer of less than threads inside use"},
    {"fill b0;", "fill b0 { loop r8d2 sequential { loop d1.1 vector; } }", "nodes are inside",
     "a fill with loops of its own"},
    {"order indexed", "order striped", "its order rule is indexed", "another order rule"},
    {"{ loop d0.1 unrolled { loop d1.1 vector { do %9",
     "{ loop d0.1 sequential { loop d1.1 vector { do %9", "in no buffer over it",
     "accumulators that are in no registers"},
    {"{ loop d0.1 unrolled { loop d1.1 vector { do %9",
     "{ loop d0.1 threads { loop d1.1 vector { do %9", "belong to a chunk",
     "accumulators that threads would share"},
    {"%9 uniform", "%9 contiguous", "not contiguous there", "an access that is not contiguous"},
    {"%9 uniform", "%9 gather", NULL, "a gather in the place of a splat, which is only slow"},
    {"%13 contiguous", "%13 strided 2", "not strided there", "a wrong stride"},
    {"%10 through b0 proved", "%10 contiguous unchecked", "is not unchecked",
     "a check that is left out"},
    {"%10 through b0 proved;", "", "has no record", "an access without a record"},
    {"%9 uniform proved ahead 2 r8d2;", "%9 uniform proved; %9 uniform proved;", "two records",
     "two records of an access"},
    {"do %9 %13", "do %9 %12", "statements end before %12", "a region that ends too early"},
    {"do %9 %13", "do %9 %4000000000", "not what comes next", "instructions that are not there"},
    {"do %13 %14", "do %12 %14", "not what comes next", "an instruction twice"},
    {"loop d0.0 sequential", "loop r8d2 sequential", "no loops walk dimension 0",
     "a dimension that nothing walks"},
    {"loop d1.1 vector { do %13", "loop d1 vector { do %13", "loops are around it|walk",
     "a dimension that is walked twice"},
    {"streams", "streams plain", "other threads", "a plain atomic that is none"},
    {"schedule {", "schedule { cut d0 by 2 tail mask;", "expected an axis",
     "an axis of an axis that comes later"},
    {"by 2", "by 4611686018427387904 4", "too many", "parts whose product is too large"},
    {"by 2", "by 0", "less than one", "empty parts"},
    {"by 2", "by", "a cut of no parts", "no parts"},
    {"threads", "grid", "no grid", "a grid on a processor"},
};

static char *replaced(const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    char *out = malloc(strlen(text) + strlen(to) + 8);
    if (at && out)
        sprintf(out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    else if (out)
        *out = 0;
    return out;
}

/** Whether a message has one of the parts that `|` separates. */
static bool has_part(const char *message, const char *parts)
{
    char part[96];
    for (; *parts; parts += strcspn(parts, "|"), parts += *parts == '|') {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(parts, "|"), parts);
        if (strstr(message, part))
            return true;
    }
    return false;
}

static void test_edits(void)
{
    tree_case c;
    qn_schedule *s = calloc(1, sizeof *s);
    if (!s || !tree_case_open(&c, tree_matmul, products, QN_ISA_V4, false))
        return;
    for (size_t n = 0; n < sizeof edits / sizeof edits[0]; n++) {
        char *text = replaced(register_tile, edits[n].from, edits[n].to);
        qn_error err = {0};
        qn_status status = text ? qn__schedule_parse(text, strlen(text), s, &err) : QN_ERR_MEMORY;
        if (status == QN_OK)
            status = qn__schedule_verify(&c.x, s, &err);
        bool is_so = edits[n].message ? status != QN_OK && has_part(err.message, edits[n].message)
                                      : status == QN_OK && tree_case_agrees(&c, s);
        if (!tap_ok(is_so, "%s: %s", edits[n].message ? "refused" : "right", edits[n].what))
            tap_note("%s: %s", qn_status_name((int)status), err.message);
        free(text);
    }
    tree_case_close(&c);
    free(s);
}

/* A loop of the body whose range, or what it stores, is read before it is written. */
static const char counted[] =
    "kernel counted (y: i64[], z: i64[]) { for all i in y { n = y[i] & 3; y[i] = n + 1;\n"
    "  s = i64(5); for j in 0..n { s = s * 3 + j }; z[i] = s } }";
static const char rewritten[] = "kernel rewritten (y: i64[]) { for all i in y { a = y[i];\n"
                                "  for j in 0..(i & 3) { y[i] = a * j + 7 } } }";

#define AXES "schedule { axis d0 9; axis t%1$u data; loop d0 sequential { do %%%2$u %%%1$u; "
#define TRIPS "place %%%1$u order ordered { loop t%1$u sequential { "

/** Loops by their kernel: %1 is the loop of the body, %2 the first statement, %3 the inside of the
 * loop, %4 the first store in there, %5 the end of the loop, %6 the end. NULL: it
 * is right. */
static const struct {
    const char *kernel, *text, *message, *what;
} loops[] = {
    {counted, AXES TRIPS "do %%%3$u %%%5$u; } } do %%%5$u %%%6$u; } }", NULL,
     "a range that is written again before its loop"},
    {counted, AXES "} loop d0 sequential { " TRIPS "do %%%3$u %%%5$u; } } do %%%5$u %%%6$u; } }",
     "kept in no buffer", "a range that another loop has read"},
    {rewritten, AXES TRIPS "do %%%3$u %%%4$u; do %%%4$u %%%5$u; } } } }", NULL,
     "an element that trips write after they used it"},
    {rewritten, AXES "} loop d0 sequential { " TRIPS "do %%%3$u %%%4$u; do %%%4$u %%%5$u; } } } }",
     "kept in no buffer", "an element that another loop has read, and trips write"},
};

static void test_loops(void)
{
    static const tree_view nine[] = {{{9}, false}, {{9}, false}};
    for (size_t n = 0; n < sizeof loops / sizeof loops[0]; n++) {
        tree_case c;
        char text[1024];
        qn_error err = {0};
        qn_schedule *s = calloc(1, sizeof *s);
        if (!s || !tree_case_open(&c, loops[n].kernel, nine, QN_ISA_V4, false))
            return;
        const qn_kernel *k = c.x.k;
        uint32_t loop = k->body, store;
        while (k->inst[loop].op != QN_I_FOR)
            loop++;
        for (store = loop; store + 1 < k->inst[loop].region[1] && k->inst[store].op != QN_I_STORE;)
            store++;
        snprintf(text, sizeof text, loops[n].text, loop, k->body, k->inst[loop].region[0], store,
                 k->inst[loop].region[2], k->n_insts);
        qn_status status = qn__schedule_parse(text, strlen(text), s, &err);
        if (status == QN_OK)
            status = qn__schedule_complete(&c.x, s, &err);
        if (status == QN_OK)
            status = qn__schedule_verify(&c.x, s, &err);
        bool is_so = loops[n].message ? status != QN_OK && has_part(err.message, loops[n].message)
                                      : status == QN_OK && tree_case_agrees(&c, s);
        if (!tap_ok(is_so, "%s: %s", loops[n].message ? "refused" : "right", loops[n].what))
            tap_note("%s: %s: %s", qn_status_name((int)status), err.message, text);
        tree_case_close(&c);
        free(s);
    }
}

/** The schedule that docs/schedule-text.md shows. */
static void test_page(void)
{
    static char page[32768];
    FILE *in = fopen(QN_SOURCE_DIR "/docs/schedule-text.md", "rb");
    size_t n = in ? fread(page, 1, sizeof page - 1, in) : 0;
    const char *begin = strstr(page, "schedule {"), *end = begin ? strstr(begin, "```") : NULL;
    tree_case c;
    qn_error err = {0};
    qn_schedule *s = calloc(1, sizeof *s);
    if (in)
        fclose(in);
    if (!s || !tree_case_open(&c, tree_matmul, products, QN_ISA_V4, false))
        return;
    bool is_read = n && end && qn__schedule_parse(begin, (size_t)(end - begin), s, &err) == QN_OK &&
                   qn__schedule_verify(&c.x, s, &err) == QN_OK;
    if (!tap_ok(is_read && tree_case_agrees(&c, s),
                "the schedule of the page verifies, with the bits of the interpreter"))
        tap_note("%s", err.message);
    tree_case_close(&c);
    free(s);
}

/* ---------------------------------------------------------------- the oracle */

/** Schedules that do not verify, and whose bits, or counts, the interpreter of schedules must find
 * wrong: else it would find nothing. */
static void test_oracle(void)
{
    static const char *const wrong[] = {
        "schedule { axis d0 6; axis d1 10; axis r8d2 5; loop d0 sequential { loop d1 sequential { "
        "place %8 order indexed "
        "{ loop r8d2 vector { do %9 %13; } } do %13 %14; } } }",
        "schedule { axis d0 6; axis d1 10; axis r8d2 5; cut d1 by 4 tail none; loop d0 sequential "
        "{ loop d1.0 sequential { loop d1.1 "
        "sequential { place %8 order indexed { loop r8d2 sequential { do %9 %13; "
        "} } do %13 %14; } } } }",
        "schedule { axis d0 6; axis d1 10; axis r8d2 5; cut d1 at begin+4; loop d0 sequential { "
        "loop d1.0 sequential { place %8 order "
        "indexed { loop r8d2 sequential { do %9 %13; } } do %13 %14; } } }",
        "schedule { axis d0 6; axis d1 10; axis r8d2 5; buffer b0 frame copy %10 over r8d2 bytes "
        "40; loop d0 sequential { fill b0; loop d1 "
        "sequential { place %8 order indexed { loop r8d2 sequential { do %9 %13 { "
        "%10 through b0 proved; } } } do %13 "
        "%14; } } }",
        "schedule { axis d0 6; axis d1 10; buffer b0 frame copy %10 over d1 bytes 80; fill b0; "
        "loop d0 sequential { loop d1 sequential { do %8 %14 { %10 through b0 proved; } } } }",
    };
    static const char *const what[] = {"points that come backwards", "steps beyond the end",
                                       "a section that is missing",
                                       "a buffer that is not filled for each column",
                                       "a copy of the first point that others read, too"};
    tree_case c;
    qn_schedule *s = calloc(1, sizeof *s);
    if (!s || !tree_case_open(&c, tree_matmul, products, QN_ISA_V4, false))
        return;
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
        qn_error err = {0};
        bool is_read = qn__schedule_parse(wrong[n], strlen(wrong[n]), s, &err) == QN_OK;
        tap_ok(is_read && qn__schedule_verify(&c.x, s, &err) != QN_OK, "%s do not verify", what[n]);
        tap_ok(is_read && !tree_case_agrees(&c, s),
               "... and the interpreter of schedules finds them (as noted)");
    }
    tree_case_close(&c);
    free(s);
}

/* ---------------------------------------------------------------- elements that are met twice */

/** Y is stored to twice by each iteration. */
static void test_met_twice(void)
{
    static const char text[] =
        "kernel \"twice\" { view x: f64[1]; view y: f64[1]; %z: i64 = const 0;\n"
        "%n: i64 = extent y, 0; %i: i64 = parallel %z, %n; %a: f64 = load x[%i];\n"
        "store y[%i], %a; %b: f64 = add %a, %a; store y[%i], %b; }";
    static const tree_view views[] = {{{9}, false}, {{9}, false}};
    tree_case c;
    uint32_t store = 0;
    char step[64];
    if (!tree_case_open(&c, text, views, QN_ISA_V4, false))
        return;
    while (c.kernel->inst[store].op != QN_I_STORE)
        store++;
    snprintf(step, sizeof step, "join %%%u d0;", store);
    const char *why = tree_case_apply(&c, step);
    tap_contains(why ? why : "", "cannot be kept so",
                 "a store is not kept for later where its element is stored to again");
    tree_case_close(&c);
}

/* ---------------------------------------------------------------- random texts */

/** Words that stand in texts of schedules. */
static const char *const words[] = {
    "sequential", "threads",    "vector", "unrolled", "mask",
    "none",       "overlap",    "scalar", "d0",       "d1",
    "d0.0",       "d1.1",       "d0.1",   "d1.0",     "t1",
    "1",          "2",          "0",      "-1",       "9223372036854775807",
    "%9",         "%10",        "%13",    "%8",       "loop",
    "do",         "place",      "fill",   "b0",       "b1",
    "{",          "}",          ";",      "proved",   "per_lane",
    "uniform",    "contiguous", "gather", "through",  "begin+1",
    "end-1",      "tail",       "cut",    "axis",     "straight",
    "block",      "flush",      "by",     "order",    "ordered",
    "any",        "r8d2",       "r8d2.0", "r8d2.1"};

/** One to three random changes: bytes, or whole words, or pieces of the text itself. */
static void mutate(char *text, size_t room, uint32_t *seed)
{
    for (uint32_t n = 1 + tree_random(seed, 3); n > 0; n--) {
        size_t length = strlen(text), at = tree_random(seed, (uint32_t)length + 1), end = at;
        char tail[4096], word[64] = "";
        while (end < length && !strchr(" \n;{}", text[end]))
            end++;
        switch (tree_random(seed, 4)) {
        case 0: /* a byte */
            if (at < length)
                text[at] = (char)tree_random(seed, 256);
            if (strlen(text) < length)
                text[at] = ' ';
            continue;
        case 1: /* nothing in the place of a word */
            break;
        case 2:
            snprintf(word, sizeof word, " %s ",
                     words[tree_random(seed, sizeof words / sizeof words[0])]);
            while (at > 0 && !strchr(" \n;{}", text[at - 1]))
                at--;
            break;
        default: { /* a piece of the text again, or a line less */
            size_t from = tree_random(seed, (uint32_t)length + 1);
            snprintf(word, sizeof word, "%.*s", (int)tree_random(seed, 60), text + from);
            end = tree_random(seed, 2) ? at : end;
        }
        }
        snprintf(tail, sizeof tail, "%s", text + end);
        if (at + strlen(word) + strlen(tail) + 1 < room)
            snprintf(text + at, room - at, "%s%s", word, tail);
    }
}

static void test_mutations(void)
{
    enum { SEEDS = 30000, ROOM = 4096 };
    static const char steps[] =
        "tile d0 d1 4 8 tail=mask; vectorize d1.1; unroll d0.1; distribute d1.1; distribute d0.1; "
        "place %8 d1.1; "
        "place %8 d0.1; reorder r8d2 d0.1 d1.1; buffer %10 d1.0 storage=frame;";
    char *base[3] = {NULL, NULL, NULL}, *text = malloc(ROOM);
    int n_read = 0, n_right = 0, n_wrong = 0;
    tree_case c;
    qn_schedule *s = calloc(1, sizeof *s);
    if (!s || !text || !tree_case_open(&c, tree_matmul, products, QN_ISA_V4, false))
        return;
    base[0] = tree_case_text(c.schedule);
    base[1] = replaced(register_tile, "none", "none");
    const char *message = tree_case_apply(&c, steps);
    tap_ok(!message, "a tile by transformations%s%s", message ? ": " : "", message ? message : "");
    base[2] = tree_case_text(c.schedule);
    for (uint32_t n = 0; n < SEEDS; n++) {
        uint32_t seed = n * 2654435761u + 3;
        qn_error err = {0};
        snprintf(text, ROOM, "%s", base[n % 3]);
        mutate(text, ROOM, &seed);
        if (qn__schedule_parse(text, strlen(text), s, &err) != QN_OK) {
            n_wrong += err.status == QN_OK || !err.message[0];
            continue;
        }
        n_read++;
        if (qn__schedule_verify(&c.x, s, &err) != QN_OK)
            continue;
        n_right++;
        if (tree_case_agrees(&c, s) && tree_case_is_read_again(&c, s))
            continue;
        n_wrong++;
        tap_note("number %u:\n%s", n, text);
    }
    tap_ok(n_wrong == 0 && n_read > SEEDS / 20 && n_right > SEEDS / 100,
           "random texts are refused, or give the interpreter's bits: %d of %d are schedules, %d "
           "are right",
           n_read, SEEDS, n_right);
    for (int n = 0; n < 3; n++)
        free(base[n]);
    free(text);
    free(s);
    tree_case_close(&c);
}

int main(void)
{
    test_declared();
    test_footprint();
    test_edits();
    test_loops();
    test_met_twice();
    test_page();
    test_oracle();
    test_mutations();
    return tap_done();
}
