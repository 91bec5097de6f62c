/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_transform.c: what each transformation makes of a schedule, that the result gives the
 * interpreter's bits, and what is refused. No code generator is needed.
 */
#include "tests/tap.h"
#include "tests/unit/tree_case.h"

#include <stdlib.h>
#include <string.h>

static const tree_view squares[] = {{{6, 10}, false}, {{10, 6}, false}, {{6, 10}, false}};
static const tree_view points[] = {{{9, 11}, false}, {{9, 11}, false}};
static const tree_view products[] = {{{6, 5}, false}, {{5, 10}, false}, {{6, 10}, false}};
static const tree_view rows[] = {{{7}, false}, {{7, 8}, false}, {{7}, false}};
static const tree_view steps[] = {{{4, 6}, false}, {{4, 6}, false}};
static const tree_view tables[] = {{{16}, false}, {{40}, false}, {{40}, false}};
static const tree_view pairs[] = {{{2, 9000}, false}, {{9000, 2}, false}, {{2, 2}, false}};

static const tree_view columns[] = {{{5, 9}, false}, {{9}, false}, {{9}, false}};
static const tree_view sums[] = {{{4500}, false}, {{2}, false}};
static const tree_view twos[] = {{{40, 2}, false}, {{40}, false}};
static const tree_view softmax[] = {{{3, 9}, false}, {{3, 9}, false}};

static const char byte_table[] =
    "kernel \"bytes\" { view t: u8[1]; view n: u8[1]; view y: u8[1]; %z: i64 = const 0;\n"
    "%e: i64 = extent y, 0; %i: i64 = parallel %z, %e; %b: u8 = load n[%i]; %j: i64 = cast %b;\n"
    "%v: u8 = load t[%j]; store y[%i], %v; }";
/* two results of each column, with a store between the reduces */
static const char column_pair[] =
    "kernel \"pair\" { view x: f32[2]; view s: f32[1]; view y: f32[1];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %m: i64 = extent s, 0;\n"
    "%i: i64 = parallel %z, %m; %k: i64 = reduction %z, %n;\n"
    "%a: f32 = reduce sum over %k { %x: f32 = load x[%k, %i]; yield %x; }; store s[%i], %a;\n"
    "%b: f32 = reduce max over %k { %y: f32 = load x[%k, %i]; yield %y; }; store y[%i], %b; }";
/* the second reduce uses the first */
static const char column_use[] =
    "kernel \"use\" { view x: f32[2]; view s: f32[1]; view y: f32[1];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %m: i64 = extent s, 0;\n"
    "%i: i64 = parallel %z, %m; %k: i64 = reduction %z, %n;\n"
    "%a: f32 = reduce sum over %k { %x: f32 = load x[%k, %i]; yield %x; };\n"
    "%b: f32 = reduce max over %k { %v: f32 = load x[%k, %i]; %y: f32 = sub %v, %a; yield %y; };\n"
    "store s[%i], %a; store y[%i], %b; }";
/* the second reduce reads what is stored between */
static const char column_chain[] =
    "kernel \"chain\" { view x: f32[2]; view s: f32[1]; view y: f32[1];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %m: i64 = extent s, 0;\n"
    "%i: i64 = parallel %z, %m; %k: i64 = reduction %z, %n;\n"
    "%a: f32 = reduce sum over %k { %x: f32 = load x[%k, %i]; yield %x; }; store s[%i], %a;\n"
    "%b: f32 = reduce max over %k { %y: f32 = load s[%i]; yield %y; }; store y[%i], %b; }";
/* loads of a group, and a constant whose bits name no argument */
/* a reduce inside of an `if`, which has no loops in a schedule */
static const char column_if[] =
    "kernel \"if\" { view x: f32[2]; view s: f32[1]; view y: f32[1];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %m: i64 = extent s, 0;\n"
    "%i: i64 = parallel %z, %m; %k: i64 = reduction %z, %n; %s: f32 = load s[%i];\n"
    "%c: bool = gt %s, %s; if %c {\n"
    "%a: f32 = reduce sum over %k { %x: f32 = load x[%k, %i]; yield %x; }; store y[%i], %a; }; }";
static const char column_group[] =
    "kernel \"group\" { view x: f32[2]; view y: f32[1];\n"
    "%z: i64 = const 0; %u: i64 = const 1; %n: i64 = extent x, 0; %i: i64 = parallel %z, %n;\n"
    "%a: f32 = load x[%i, %z]; %b: f32 = load x[%i, %u]; %c: f32 = add %a, %b;\n"
    "%f: f64 = const 0x1p+300; %g: f32 = cast %f; %s: f32 = add %c, %g; store y[%i], %s; }";

/** One transformation, or several: what the nodes are afterwards. */
typedef struct row {
    const char *what, *text;
    const tree_view *views;
    const char *steps, *nodes;
    int isa;
} row;

static const row allowed[] = {
    {"split cuts every loop of an axis, slowest digit first", tree_copy, squares,
     "split d1 3 2 tail=scalar;",
     "loop d0 sequential { loop d1.0 sequential { loop d1.1 sequential { loop d1.2 sequential { do "
     "%6 %12; } } } }",
     QN_ISA_V4},
    {"split without a tail, as 10 is a multiple of 5", tree_copy, squares, "split d1 5 tail=none;",
     "loop d0 sequential { loop d1.0 sequential { loop d1.1 sequential { do %6 %12; } } }",
     QN_ISA_V4},
    {"split whose last step overlaps the one before", tree_stencil, points,
     "split d1 4 tail=overlap;",
     "loop d0 sequential { loop d1.0 sequential { loop d1.1 sequential { do %8 %22; } } }",
     QN_ISA_V4},
    {"reorder exchanges loops", tree_copy, squares, "reorder d1 d0;",
     "loop d1 sequential { loop d0 sequential { do %6 %12; } }", QN_ISA_V4},
    {"reorder passes loops that it does not name", tree_copy, squares,
     "split d0 4 tail=mask; reorder d1 d0.0;",
     "loop d1 sequential { loop d0.1 sequential { loop d0.0 sequential { do %6 %12; } } }",
     QN_ISA_V4},
    {"partition makes rims and an inner part", tree_stencil, points, "partition d1 begin+1 end-2;",
     "loop d0 sequential { loop d1.0 sequential { do %8 %22; } loop d1.1 sequential { do %8 %22; } "
     "loop d1.2 sequential { do %8 "
     "%22; } }",
     QN_ISA_V4},
    {"partition of few iterations has empty sections", tree_stencil, points,
     "partition d0 begin+5 end-5;",
     "loop d0.0 sequential { loop d1 sequential { do %8 %22; } } loop d0.1 sequential { loop d1 "
     "sequential { do %8 %22; } } loop "
     "d0.2 sequential { loop d1 sequential { do %8 %22; } }",
     QN_ISA_V4},
    {"partition at the index of a loop around cuts a triangle", tree_copy, squares,
     "partition d1 d0+1;",
     "loop d0 sequential { loop d1.0 sequential { do %6 %12; } loop d1.1 sequential { do %6 %12; } "
     "}",
     QN_ISA_V4},
    {"a section is split alone", tree_copy, squares,
     "partition d1 end-2; split d1.0 4 tail=none; vectorize d1.0.1;",
     "loop d0 sequential { loop d1.0.0 sequential { loop d1.0.1 vector { do %6 %12; } } loop d1.1 "
     "sequential { do %6 %12; } }",
     QN_ISA_V4},
    {"distribute gives each statement a loop of its own", tree_matmul, products,
     "split d1 8 tail=mask; vectorize d1.1; distribute d1.1;",
     "loop d0 sequential { loop d1.0 sequential { loop d1.1 vector { place %8 order indexed "
     "{ loop r8d2 sequential "
     "{ do %9 %13; } } } loop d1.1 vector { do %13 %14; } } }",
     QN_ISA_V4},
    {"place has accumulators for a register tile", tree_matmul, products,
     "tile d0 d1 4 8 tail=mask; vectorize d1.1; unroll d0.1; distribute d1.1; distribute d0.1; "
     "place %8 d1.1; place %8 d0.1; reorder r8d2 "
     "d0.1 d1.1;",
     "loop d0.0 sequential { loop d1.0 sequential { place %8 order indexed { loop "
     "r8d2 sequential { loop d0.1 "
     "unrolled { loop d1.1 vector { do %9 %13; } } } } loop d0.1 unrolled { loop d1.1 vector { do "
     "%13 %14; } } } }",
     QN_ISA_V4},
    {"tile walks tile by tile", tree_stencil, points, "tile d0 d1 4 8 tail=scalar;",
     "loop d0.0 sequential { loop d1.0 sequential { loop d0.1 sequential { loop d1.1 sequential { "
     "do %8 %22; } } } }",
     QN_ISA_V4},
    {"tail changes what follows whole steps", tree_copy, squares,
     "split d1 4 tail=mask; tail d1 tail=narrower;",
     "loop d0 sequential { loop d1.0 sequential { loop d1.1 sequential { do %6 %12; } } }",
     QN_ISA_V4},
    {"vectorize, unroll and parallelize give loops roles", tree_copy, squares,
     "split d1 2 4 tail=mask; vectorize d1.2; unroll d1.1; parallelize d0;",
     "loop d0 threads { loop d1.0 sequential { loop d1.1 unrolled { loop d1.2 vector { do %6 %12; "
     "} } } }",
     QN_ISA_V4},
    {"bind divides iterations among the threads of a GPU", tree_copy, squares,
     "tile d0 d1 2 4 tail=mask; bind d0.0 role=grid; bind d1.0 role=grid; bind d0.1 role=block; "
     "bind d1.1 role=block;",
     "loop d0.0 grid { loop d1.0 grid { loop d0.1 block { loop d1.1 block { do %6 %12; } } } }",
     QN_ISA_SM90},
    {"buffer copies what a load reads below a loop", tree_copy, squares,
     "buffer %9 d0 storage=frame;",
     "buffer b0 frame copy %9 over d1 bytes 80; loop d0 sequential { fill b0; loop d1 sequential { "
     "do %6 %12; } }",
     QN_ISA_V4},
    {"buffer packs an operand of a product", tree_matmul, products,
     "reorder d1 d0; split d1 4 tail=mask; buffer %9 storage=scratch;",
     "buffer b0 scratch copy %9 over d0 r8d2 bytes 240; fill b0; loop d1.0 sequential { loop d1.1 "
     "sequential { loop d0 sequential { "
     "place %8 order indexed { loop r8d2 sequential { do %9 %13; } } do %13 %14; "
     "} } }",
     QN_ISA_V4},
    {"more axes are the order of a buffer", tree_copy, squares,
     "split d1 5 tail=none; buffer %9 d0 d1.1 d1.0 storage=frame;",
     "buffer b0 frame copy %9 over d1.1 d1.0 bytes 80; loop d0 sequential { fill b0; loop d1.0 "
     "sequential { loop d1.1 sequential { do %6 %12; } } }",
     QN_ISA_V4},
    {"join keeps the ends of lines for the next step of the lanes", tree_copy, squares,
     "split d1 8 tail=mask; reorder d1.0 d0 d1.1; vectorize d1.1; join %11 d1.0;",
     "buffer b0 scratch ends %11 over d0 d1.1 bytes 384; loop d1.0 sequential { loop d0 sequential "
     "{ loop d1.1 vector { do %6 %12; } } } flush b0;",
     QN_ISA_V4},
    {"accumulate keeps sums of a strip in memory", tree_matmul, products,
     "split d1 8 tail=mask; vectorize d1.1; distribute d1.1; place %8 d1.1; reorder r8d2 d1.1; "
     "accumulate %8 storage=scratch;",
     "buffer b0 scratch sums %8 over d1.1 bytes 64; loop d0 sequential { loop d1.0 sequential { "
     "place %8 order indexed in "
     "b0 { loop r8d2 sequential { loop d1.1 vector { do %9 %13; } } } loop d1.1 vector { do %13 "
     "%14; } } }",
     QN_ISA_V4},
    {"stream, prefetch", tree_copy, squares, "vectorize d1; stream %11; prefetch %7 d0 2;",
     "loop d0 sequential { loop d1 vector { do %6 %12; } }", QN_ISA_V4},
    {"steps of a sequential dimension stay outside", tree_steps, steps,
     "reorder d2 d1; split d2 4 tail=mask;",
     "loop d0 sequential { loop d2.0 sequential { loop d2.1 sequential { loop d1 sequential { do "
     "%8 %13; } } } }",
     QN_ISA_V4},
    {"merge folds two reduces in one loop", tree_sums, sums, "merge %8;",
     "place %5 %8 order striped { loop r5d0 sequential { do %6 %8; do %9 %11; } } "
     "do %11 %13;",
     QN_ISA_V4},
    {"merge passes a store of what no reduce reads", column_pair, columns,
     "merge %10; split d0 4 tail=mask; vectorize d0.1; distribute d0.1; place %6 d0.1; reorder "
     "r6d1 d0.1;",
     "loop d0.0 sequential { place %6 %10 order indexed { loop r6d1 sequential { "
     "loop d0.1 vector { do %7 %9; do %11 %13; } } } loop d0.1 vector { do %9 %10; } loop d0.1 "
     "vector { do %13 %14; } }",
     QN_ISA_V4},
    {"a gather becomes a table in registers", tree_small_table, tables,
     "split d0 16 tail=mask; vectorize d0.1; table %6;",
     "loop d0.0 sequential { loop d0.1 vector { do %4 %8; } }", QN_ISA_V4},
    {"bytes are a table where registers of bytes are permuted", byte_table, tables,
     "split d0 16 tail=mask; vectorize d0.1; table %6;",
     "loop d0.0 sequential { loop d0.1 vector { do %4 %8; } }", QN_ISA_V4_BYTES},
    {"a loop of the body stays a statement", tree_rows, rows, "split d0 2 tail=scalar;",
     "loop d0.0 sequential { loop d0.1 sequential { do %4 %14; } }", QN_ISA_V4},
    {"blocks of 4096 points may come in any order", tree_matmul, pairs,
     "split r8d2 4096 tail=mask; parallelize r8d2.0;",
     "loop d0 sequential { loop d1 sequential { place %8 order indexed { loop "
     "r8d2.0 threads { loop r8d2.1 "
     "sequential { do %9 %13; } } } do %13 %14; } }",
     QN_ISA_V4},
};

static void test_allowed(void)
{
    for (size_t n = 0; n < sizeof allowed / sizeof allowed[0]; n++) {
        const row *r = &allowed[n];
        tree_case c;
        if (!tree_case_open(&c, r->text, r->views, r->isa, false))
            continue;
        const char *message = tree_case_apply(&c, r->steps);
        char *nodes = tree_case_nodes(c.schedule);
        bool is_so = tap_ok(!message && nodes && strcmp(nodes, r->nodes) == 0, "%s", r->what);
        if (!is_so)
            tap_note("%s\n# found    %s\n# expected %s", message ? message : "", nodes ? nodes : "",
                     r->nodes);
        tap_ok(tree_case_agrees(&c, c.schedule),
               "... with the bits of the interpreter");
        tap_ok(tree_case_is_read_again(&c, c.schedule), "... and its text is read again");
        free(nodes);
        tree_case_close(&c);
    }
}

/** What is refused, and why. */
static const row refused[] = {
    {"a tuple of reduces over dimensions that differ", tree_two_sums, softmax, "merge %11;",
     "no place with such loops", QN_ISA_V4},
    {"a tuple of reduces of which the second uses the first", column_use, columns, "merge %9;",
     "its reduces may fail, or need", QN_ISA_V4},
    {"a tuple of reduces of which the second reads what is stored between", column_chain, columns,
     "merge %10;", "its reduces may fail, or need", QN_ISA_V4},
    {"merging what is no place", tree_copy, squares, "merge %8;", "has no place", QN_ISA_V4},
    {"a split whose iterations are no multiple", tree_copy, squares, "split d1 4 tail=none;",
     "no tail", QN_ISA_V4},
    {"steps that overlap where the kernel reads what it writes", tree_steps, steps,
     "split d2 4 tail=overlap;", "may not overlap", QN_ISA_V4},
    {"points in another order", tree_matmul, products,
     "split r8d2 2 tail=scalar; reorder r8d2.1 r8d2.0;", "in the order of their index", QN_ISA_V4},
    {"lanes over points in index order", tree_matmul, products, "vectorize r8d2;",
     "lanes must be the partials", QN_ISA_V4},
    {"threads over points within a block", tree_matmul, products, "parallelize r8d2;",
     "whole blocks of 4096", QN_ISA_V4},
    {"a sequential dimension inside others", tree_steps, steps, "reorder d1 d0;",
     "sequential dimension inside", QN_ISA_V4},
    {"threads over time steps", tree_steps, steps, "parallelize d0;", "come in order", QN_ISA_V4},
    {"accumulators of a loop that is not unrolled", tree_matmul, products, "distribute d1;",
     "in no buffer|kept in no buffer", QN_ISA_V4},
    {"lanes inside of lanes", tree_copy, squares, "vectorize d1; vectorize d0;",
     "lanes inside of lanes", QN_ISA_V4},
    {"a grid on a processor", tree_copy, squares, "bind d0 role=grid;", "no grid", QN_ISA_V4},
    {"threads of the host on a GPU", tree_copy, squares, "parallelize d0;", "on a GPU",
     QN_ISA_SM90},
    {"a copy of what the kernel writes", tree_steps, steps, "buffer %8 d1 storage=frame;",
     "cannot be kept", QN_ISA_V4},
    {"a copy of what points without loops read", column_if, columns,
     "buffer %10 d0 storage=frame;", "that no loop walks", QN_ISA_V4},
    {"a buffer over other axes", tree_copy, squares, "buffer %9 d0 d0 storage=frame;",
     "over other axes", QN_ISA_V4},
    {"line ends without lanes", tree_copy, squares, "reorder d1 d0; join %11 d1;",
     "no loop over steps of lanes", QN_ISA_V4},
    {"line ends of lanes inside of their rows", tree_copy, squares,
     "split d1 8 tail=mask; vectorize d1.1; join %11 d0;", "no vectors of consecutive", QN_ISA_V4},
    {"a stream of a load", tree_copy, squares, "vectorize d1; stream %7;",
     "no store of whole vectors", QN_ISA_V4},
    {"a group of what is no access", column_group, twos,
     "split d0 8 tail=mask; vectorize d0.1; group %8 1;", "there is none", QN_ISA_V4},
    {"a table of bytes without permutations of them", byte_table, tables,
     "split d0 16 tail=mask; vectorize d0.1; table %6;", "do not hold", QN_ISA_V4},
    {"a table of a large view", tree_copy, squares, "vectorize d1; table %9;", "do not hold",
     QN_ISA_V4},
    {"a loop that is not there", tree_copy, squares, "split d0 2 tail=none; unroll d0;",
     "there is none", QN_ISA_V4},
    {"a prefetch along no loop around", tree_copy, squares,
     "split d1 5 tail=none; prefetch %7 d1 1;", "no loop around it", QN_ISA_V4},
    {"a word that is no transformation", tree_copy, squares, "skew d0;", "line 1: no step",
     QN_ISA_V4},
};

static void test_refused(void)
{
    for (size_t n = 0; n < sizeof refused / sizeof refused[0]; n++) {
        const row *r = &refused[n];
        tree_case c;
        if (!tree_case_open(&c, r->text, r->views, r->isa, false))
            continue;
        const char *message = tree_case_apply(&c, r->steps), *part = strchr(r->nodes, '|');
        bool is_so = message && (strstr(message, part ? part + 1 : r->nodes) != NULL);
        tap_ok(is_so, "refused: %s", r->what);
        if (!is_so)
            tap_note("%s", message ? message : "it was allowed");
        tap_ok(tree_case_agrees(&c, c.schedule), "... and what was there before is left");
        tree_case_close(&c);
    }
}

/** Arrays of a launch in iteration order may overlap in any way. */
static void test_ordered(void)
{
    for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
        tree_case c;
        if (!tree_case_open(&c, tree_copy, squares, QN_ISA_V4, false))
            return;
        c.facts.is_ordered = is_ordered;
        const char *message = tree_case_apply(&c, "buffer %9 d0 storage=frame;");
        if (is_ordered)
            tap_ok(message && strstr(message, "cannot be kept"),
                   "no copy of an array in iteration order, as stores to another may change it");
        else
            tap_ok(!message, "a copy of an array that no store meets");
        tree_case_close(&c);
    }
}

/* ---------------------------------------------------------------- random sequences */

/** A random axis of a schedule, by name. */
static void add_axis(const qn_schedule *s, uint32_t *seed, char *text)
{
    char name[QN_AXIS_NAME_BYTES];
    qn__axis_name(s, (qn_axis){(uint16_t)(1 + tree_random(seed, (uint32_t)s->n_axes))}, name);
    strcat(text, " ");
    strcat(text, name);
}

/** A random step: few of them are legal. */
static void make_step(const tree_case *c, uint32_t *seed, char *text)
{
    const qn_transform_info *t = &qn__transforms[tree_random(seed, (uint32_t)qn__n_transforms)];
    const char *bounds[] = {" begin+1", " end-1", " begin+3", " end-4"};
    strcpy(text, t->name);
    for (const char *kind = t->operands; *kind; kind++) {
        char number[32];
        bool is_repeated = kind[1] == '*';
        for (uint32_t n = is_repeated ? tree_random(seed, 3) : 1; n > 0; n--) {
            snprintf(number, sizeof number, *kind == 'i' ? " %%%u" : " %u",
                     *kind == 'i'
                         ? c->kernel->body + tree_random(seed, c->kernel->n_insts - c->kernel->body)
                         : 1 + tree_random(seed, 9));
            if (*kind == 'a')
                add_axis(c->schedule, seed, text);
            else
                strcat(text, *kind == 'b' ? bounds[tree_random(seed, 4)] : number);
        }
        kind += is_repeated;
    }
    if (t->options) {
        strcat(text, " ");
        strcat(text, t->option);
        strcat(text, "=");
        strcat(text, t->options[tree_random(seed, (uint32_t)t->n_options)]);
    }
    strcat(text, ";");
}

/** The way to a register tile, whose steps are seldom found at random. */
static void begin_tile(tree_case *c, uint32_t *seed)
{
    const char *tails[] = {"mask", "scalar", "narrower", "overlap"},
               *roles[] = {"vectorize", "unroll"};
    char text[256];
    uint32_t reduce = qn__next_reduce(c->kernel, c->kernel->body);
    if (reduce == c->kernel->n_insts || c->kernel->n_dims < 2)
        return;
    for (int d = 0; d < 2; d++) {
        snprintf(text, sizeof text,
                 "split d%d %u tail=%s; %s d%d.1; distribute d%d.1; place %%%u d%d.1;", d,
                 1 + tree_random(seed, 5), tails[tree_random(seed, 4)], roles[d], d, d, reduce, d);
        tree_case_apply(c, text);
        snprintf(text, sizeof text, "reorder r%ud2 d%d.1;", reduce, d);
        tree_case_apply(c, text);
    }
}

static void test_random(void)
{
    enum { SEEDS = 40, TRIES = 250 };
    int applied[64] = {0}, n_applied = 0;
    for (uint32_t n = 0; n < TREE_SAMPLES * SEEDS; n++) {
        const tree_sample *sample = &tree_samples[n % TREE_SAMPLES];
        uint32_t seed = n * 2654435761u + 1;
        tree_case c;
        char step[512];
        if (!tree_case_open(&c, sample->text, sample->view, n % 5 == 4 ? QN_ISA_SM90 : QN_ISA_V4,
                            n % 4 == 3))
            continue;
        if (n % 3 == 0)
            begin_tile(&c, &seed);
        for (int i = 0; i < TRIES && c.schedule->n_steps < 14; i++) {
            make_step(&c, &seed, step);
            if (c.schedule->n_nodes > 60 && strncmp(step, "partition", 9) == 0)
                continue; /* which doubles what is there */
            tree_case_apply(&c, step);
        }
        for (int i = 0; i < c.schedule->n_steps; i++)
            applied[c.schedule->step[i].which]++;
        n_applied += c.schedule->n_steps;
        bool is_right =
            tree_case_agrees(&c, c.schedule) && tree_case_is_read_again(&c, c.schedule);
        if (!is_right) {
            char *text = tree_case_text(c.schedule);
            tap_ok(false, "random transformations keep the meaning, number %u\n%s", n,
                   text ? text : "");
            free(text);
        }
        tree_case_close(&c);
    }
    tap_ok(n_applied > SEEDS * TREE_SAMPLES * 4,
           "random transformations keep the meaning: %d applied", n_applied);
    for (int t = 0; t < qn__n_transforms; t++)
        tap_note("%s: %d times", qn__transforms[t].name, applied[t]);
}

int main(void)
{
    test_allowed();
    test_refused();
    test_ordered();
    test_random();
    return tap_done();
}
