/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_estimate.c: what schedules are estimated to take: cases whose bytes and cycles are known,
 * and pairs of schedules of which one is faster on any processor. No code generator is needed.
 */
#include "jit/schedule/estimate.h"
#include "tests/tap.h"
#include "tests/unit/tree_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* y[i] = 2 x[i] */
static const char scale[] =
    "kernel \"scale\" { view x: f64[1]; view y: f64[1]; %z: i64 = const 0; %n: i64 = extent y, 0;\n"
    "%i: i64 = parallel %z, %n; %t: f64 = const 0x1p+1; %a: f64 = load x[%i];\n"
    "%b: f64 = mul %t, %a; store y[%i], %b; }";
/* y[i] = 2 / x[i] */
static const char inverse[] =
    "kernel \"inverse\" { view x: f64[1]; view y: f64[1]; %z: i64 = const 0;\n"
    "%n: i64 = extent y, 0; %i: i64 = parallel %z, %n; %t: f64 = const 0x1p+1;\n"
    "%a: f64 = load x[%i]; %b: f64 = div %t, %a; store y[%i], %b; }";
/* s = sum of x */
static const char total[] =
    "kernel \"total\" { view x: f32[1]; view s: f32[1]; %z: i64 = const 0;\n"
    "%n: i64 = extent x, 0; %k: i64 = reduction %z, %n;\n"
    "%a: f32 = reduce sum striped over %k { %x: f32 = load x[%k]; yield %x; }; store s[%z], %a; }";

static const tree_view vectors[] = {{{1 << 14}, false}, {{1 << 14}, false}};
static const char lanes[] = "split d0 4 8 tail=mask; unroll d0.1; vectorize d0.2;";

/** The estimate of a kernel under steps; all NAN, after a failed test point, if there is none. */
static qn_estimate estimate_of(tree_case *c, const char *steps)
{
    qn_estimate e = {.cycles = NAN};
    qn_error err = {0};
    const char *refused = tree_case_apply(c, steps);
    if (refused || qn__schedule_estimate(&c->x, c->schedule, &e, &err) != QN_OK)
        tap_ok(false, "an estimate of \"%s\": %s", steps, refused ? refused : err.message);
    return e;
}

/** The estimate of a new case. `bytes`: of the caches; NULL: the usual ones. */
static qn_estimate estimate(const char *text, const tree_view *views, const int64_t *bytes,
                            const char *steps)
{
    qn_estimate e = {.cycles = NAN};
    tree_case c;
    if (!tree_case_open(&c, text, views, QN_ISA_V4, false))
        return e;
    for (int n = 0; bytes && n < QN_N_CACHES; n++)
        c.facts.machine.cache[n].bytes = bytes[n];
    e = estimate_of(&c, steps);
    tree_case_close(&c);
    return e;
}

/* ---------------------------------------------------------------- bytes */

static const int64_t small[QN_N_CACHES] = {4096, 16384, 65536}; /* than the arrays of 128 KiB */

static void test_streams(void)
{
    double bytes = (double)(1 << 14) * 8;
    qn_estimate e = estimate(scale, vectors, small, lanes);
    for (int n = 0; n < QN_N_CACHES; n++)
        tap_is_int((int64_t)e.bytes[n], (int64_t)(3 * bytes),
                   "each level moves what is read, and what is written twice");
    e = estimate(scale, vectors, small,
                 "split d0 4 8 tail=mask; unroll d0.1; vectorize d0.2; stream %7;");
    tap_is_int((int64_t)e.bytes[QN_CACHE_FIRST], (int64_t)bytes,
               "non-temporal stores pass the caches");
    tap_is_int((int64_t)e.bytes[QN_CACHE_LAST], (int64_t)(2 * bytes),
               "... and read no line that they write");
    e = estimate(scale, vectors, NULL, lanes);
    tap_is_int((int64_t)e.bytes[QN_CACHE_FIRST], (int64_t)(3 * bytes),
               "arrays of 256 KiB are not in a first cache of 32 KiB");
    tap_is_int((int64_t)e.bytes[QN_CACHE_SECOND], 0, "... but in a second one of 1 MiB");
}

/** Extents that are not known, of a launch that is known to be large. */
static void test_large(void)
{
    tree_case c;
    for (int is_large = 0; is_large < 2; is_large++) {
        if (!tree_case_open(&c, scale, vectors, QN_ISA_V4, true))
            return;
        c.facts.is_large = is_large;
        qn_estimate e = estimate_of(&c, lanes);
        tap_ok((e.bytes[QN_CACHE_LAST] > 0) == (is_large != 0),
               is_large ? "... and moves all of it where the launch is large"
                        : "a loop of unknown length finds in a cache what it accesses");
        tree_case_close(&c);
    }
}

/** Rows of a stencil: three of them fit a cache, or do not. */
static void test_layers(void)
{
    static const tree_view points[] = {{{66, 514}, false}, {{66, 514}, false}};
    static const int64_t three[QN_N_CACHES] = {65536, 131072, 262144};
    static const int64_t one[QN_N_CACHES] = {8192, 131072, 262144};
    const char *steps = "split d1 8 tail=mask; vectorize d1.1;";
    qn_estimate few = estimate(tree_stencil, points, one, steps),
                many = estimate(tree_stencil, points, three, steps);
    double rows = few.bytes[QN_CACHE_FIRST] / (514 * 8);
    tap_ok(many.bytes[QN_CACHE_FIRST] < 0.65 * few.bytes[QN_CACHE_FIRST],
           "a cache that holds three rows of a stencil moves each once");
    tap_ok(rows > 0.95 * 64 * 5 && rows < 1.05 * 64 * 5,
           "... else each row of points moves three that are read, and one written");
    tap_note("%.1f rows, %.0f bytes", rows, many.bytes[QN_CACHE_FIRST]);
}

static void test_conflicts(void)
{
    static const tree_view apart[] = {{{16, 64}, false}, {{64, 520}, false}, {{16, 64}, false}};
    static const tree_view aligned[] = {{{16, 64}, false}, {{64, 512}, false}, {{16, 64}, false}};
    qn_estimate even = estimate(tree_copy, aligned, NULL, "split d1 8 tail=none; vectorize d1.1;"),
                odd = estimate(tree_copy, apart, NULL, "split d1 8 tail=none; vectorize d1.1;");
    tap_is_int((int64_t)odd.bytes[QN_CACHE_FIRST], 0, "columns of a matrix are in the first cache");
    tap_ok(even.bytes[QN_CACHE_FIRST] >= 16 * 64 * 64,
           "... but not where all their lines share a set: each access moves one");
    tap_ok(even.cycles > odd.cycles, "... which takes longer");
}

/** Data says which row is read: all elements of a line are of one row. */
static void test_rows_of_data(void)
{
    static const char rows[] =
        "kernel \"rows\" { view w: f64[2]; view n: i64[1]; view y: f64[2]; %z: i64 = const 0;\n"
        "%b: i64 = extent y, 0; %e: i64 = extent y, 1; %i: i64 = parallel %z, %b;\n"
        "%j: i64 = parallel %z, %e; %r: i64 = load n[%i]; %a: f64 = load w[%r, %j];\n"
        "store y[%i, %j], %a; }";
    static const tree_view views[] = {{{4096, 64}, false}, {{1024}, false}, {{1024, 64}, false}};
    static const int64_t caches[QN_N_CACHES] = {4096, 4096, 4096};
    const qn_estimate e = estimate(rows, views, caches, "split d1 8 tail=mask; vectorize d1.1;");
    tap_is_int((int64_t)e.bytes[QN_CACHE_FIRST], 3 * 1024 * 64 * 8 + 1024 * 8,
               "rows that data says are read once, and rows written");
}

/** Atomics of lanes that no other thread meets: one element of each lane after the other. */
static void test_turns_of_lanes(void)
{
    static const char adds[] =
        "kernel \"adds\" { view x: f64[1]; view n: i64[1]; view y: f64[1]; %z: i64 = const 0;\n"
        "%e: i64 = extent x, 0; %i: i64 = parallel %z, %e; %a: f64 = load x[%i];\n"
        "%j: i64 = load n[%i]; %o: f64 = atomic sum y[%j], %a; }";
    static const tree_view views[] = {{{4096}, false}, {{4096}, false}, {{4096}, false}};
    tree_case c;
    qn_error err = {0};
    if (!tree_case_open(&c, adds, views, QN_ISA_V3, false))
        return;
    c.facts.atomics = QN_ATOMICS_OF_ONE;
    memset(c.facts.proved, 1, c.facts.n_accesses);
    tap_is_int(qn__schedule_begin(&c.x, c.schedule, &err), QN_OK, "atomics of one thread");
    const qn_estimate e = estimate_of(&c, "split d0 4 tail=none; vectorize d0.1;");
    tap_ok(e.arithmetic > 0 && e.arithmetic < 2 * 4096,
           "atomics of lanes in turns are no scatters: %.0f cycles", e.arithmetic);
    tree_case_close(&c);
}

/** Shifts of bytes by a number are no chain of shifts by each bit. */
static void test_byte_shifts(void)
{
#define SHIFTS(type, by)                                                                           \
    "kernel \"shifts\" { view x: " type "[1]; view y: " type "[1]; %z: i64 = const 0;\n"           \
    "%n: i64 = extent y, 0; %i: i64 = parallel %z, %n; %a: " type " = load x[%i];\n"               \
    "%c: " type " = const 3; %d: " type " = " by ";\n"                                             \
    "%s: " type " = shr %a, %d; %t: " type " = shr %s, %d; store y[%i], %t; }"
    static const tree_view rows[] = {{{4096}, false}, {{4096}, false}};
    static const char *const scalar = "split d0 4 tail=none;",
                             *const vectors_of_bytes = "split d0 64 tail=none; vectorize d0.1;";
    qn_estimate one = estimate(SHIFTS("u8", "add %c, %c"), rows, NULL, scalar),
                pair = estimate(SHIFTS("u16", "add %c, %c"), rows, NULL, scalar),
                known = estimate(SHIFTS("u8", "add %c, %c"), rows, NULL, vectors_of_bytes),
                loaded = estimate(SHIFTS("u8", "add %a, %c"), rows, NULL, vectors_of_bytes);
#undef SHIFTS
    tap_ok(one.cycles <= pair.cycles, "scalars of 8 bits are shifted as those of 16");
    tap_ok(2 * known.cycles < loaded.cycles, "vectors of them are, by a number");
    tap_note("%.0f, %.0f; %.0f, %.0f cycles", one.cycles, pair.cycles, known.cycles, loaded.cycles);
}

/** Eight rows that one step reads in turn. */
static void test_interleaved(void)
{
    static const char *const text =
        "kernel \"plane\" { view x: f64[2]; view y: f64[2]; %z: i64 = const 0;\n"
        "%n: i64 = extent y, 0; %m: i64 = extent y, 1; %i: i64 = parallel %z, %n;\n"
        "%j: i64 = parallel %z, %m; %a: f64 = load x[%i, %j]; store y[%i, %j], %a; }";
    static const char *const eight =
        "split d1 8 tail=none; split d0 8 tail=none; reorder d0.0 d1.0 d0.1 d1.1; unroll d0.1;"
        "vectorize d1.1;";
    static const tree_view rows[] = {{{128, 128}, false}, {{128, 128}, false}};
    static const tree_view short_rows[] = {{{512, 32}, false}, {{512, 32}, false}};
    qn_estimate one = estimate(text, rows, small, "split d1 8 tail=none; vectorize d1.1;"),
                many = estimate(text, rows, small, eight),
                few = estimate(text, short_rows, small, eight);
    tap_ok(many.waiting[QN_CACHE_LAST] > 0 && many.cycles > one.cycles,
           "the core waits for lines of rows that are read in turn");
    tap_ok(one.waiting[QN_CACHE_LAST] <= 0, "... and not for those of one row");
    tap_ok(few.waiting[QN_CACHE_LAST] <= 0, "... nor for those of rows of four lines");
}

static void test_tile(void)
{
    static const tree_view products[] = {{{48, 48}, false}, {{48, 48}, false}, {{48, 48}, false}};
    static const char *const tile =
        "split d0 6 tail=none; split d1 2 8 tail=none; reorder d0.0 d1.0 d0.1 d1.1 d1.2;"
        "unroll d0.1; unroll d1.1; vectorize d1.2;"
        "distribute d1.2; place %8 d1.2; reorder r8d2 d1.2;"
        "distribute d1.1; place %8 d1.1; reorder r8d2 d1.1;"
        "distribute d0.1; place %8 d0.1; reorder r8d2 d0.1;";
    static const char *const row = "split d1 8 tail=none; vectorize d1.1;"
                                   "distribute d1.1; place %8 d1.1; reorder r8d2 d1.1;";
    qn_estimate tiled = estimate(tree_matmul, products, small, tile),
                plain = estimate(tree_matmul, products, small, row);
    tap_ok(tiled.loads < 0.4 * plain.loads, "a register tile loads less for each product");
    tap_ok(tiled.bytes[QN_CACHE_FIRST] < 0.5 * plain.bytes[QN_CACHE_FIRST],
           "... moves less into the first cache");
    tap_ok(tiled.chains < 0.5 * plain.chains, "... and has sums that do not wait for one another");
    tap_ok(tiled.cycles < 0.5 * plain.cycles, "... so it is faster");
    tap_note("%.0f and %.0f cycles", tiled.cycles, plain.cycles);
}

/** What copies alone read. */
static void test_copies(void)
{
    static const tree_view products[] = {{{48, 48}, false}, {{48, 48}, false}, {{48, 48}, false}};
    static const char *const row = "split d1 8 tail=none; vectorize d1.1; reorder d1.0 d0 d1.1;"
                                   "distribute d1.1; place %8 d1.1; reorder r8d2 d1.1;",
                             *const copied = "split d1 8 tail=none; vectorize d1.1;"
                                             "reorder d1.0 d0 d1.1; distribute d1.1;"
                                             "place %8 d1.1; reorder r8d2 d1.1;"
                                             "buffer %10 d1.0 storage=scratch;";
    qn_estimate plain = estimate(tree_matmul, products, small, row),
                packed = estimate(tree_matmul, products, small, copied);
    tap_ok(plain.waiting[QN_CACHE_SECOND] <= 0 && packed.waiting[QN_CACHE_SECOND] > 0,
           "the core waits for what a copy reads: nothing else runs meanwhile");
}

/** 36 squares of 8 x 8 elements are copied; only the second copy is transposed. */
static void test_transposed_copy(void)
{
    static const tree_view side[] = {{{48, 48}, false}, {{48, 48}, false}, {{48, 48}, false}},
                           across[] = {{{48, 48}, false}, {{48, 48}, true}, {{48, 48}, false}};
    static const char *const steps = "split d1 8 tail=none; vectorize d1.1; reorder d1.0 d0 d1.1;"
                                     "distribute d1.1; place %8 d1.1; reorder r8d2 d1.1;"
                                     "buffer %10 d1.0 storage=scratch;";
    qn_estimate plain = estimate(tree_matmul, side, NULL, steps),
                transposed = estimate(tree_matmul, across, NULL, steps);
    tap_is_int((int64_t)(transposed.instructions * 6 - plain.instructions * 6 + 0.5),
               36 * 8 * (3 - 1),
               "a copy that transposes squares of 8 rows has three shuffles for each row");
}

/* ---------------------------------------------------------------- the core */

static void test_chains(void)
{
    static const tree_view values[] = {{{4096}, false}, {{1}, false}};
    static const tree_view products[] = {{{2, 1024}, false}, {{1024, 5}, false}, {{2, 5}, false}};
    qn_estimate one = estimate(total, values, NULL, ""),
                vector =
                    estimate(total, values, NULL, "split r4d0 16 tail=none; vectorize r4d0.1;"),
                four = estimate(total, values, NULL,
                                "split r4d0 4 16 tail=none; unroll r4d0.1; vectorize r4d0.2;");
    tap_ok(one.chains >= 4 * 4096 / 8 && one.chains < 4.5 * 4096 / 8,
           "eight partials at once: each waits four cycles for its own points");
    tap_ok(vector.core < one.core / 2, "... lanes have sums of their own");
    tap_ok(four.core < vector.core / 2, "... and so have vectors that are emitted together");
    qn_estimate in_order = estimate(tree_matmul, products, NULL, ""),
                unrolled =
                    estimate(tree_matmul, products, NULL, "split r8d2 4 tail=none; unroll r8d2.1;");
    tap_ok(in_order.chains >= 4 * 1024 * 10 && in_order.chains < 4.5 * 1024 * 10,
           "a sum in order waits for the one before it: four cycles for each point");
    tap_ok(unrolled.chains > 0.9 * in_order.chains,
           "points that are added in order are one chain, unrolled or not");
    tap_ok(unrolled.loops < 0.5 * in_order.loops, "... but fewer loops count");
}

/** Sums in the striped order of two dimensions, whose points are no lanes. */
static void test_partials(void)
{
    static const char plane[] =
        "kernel \"plane\" { view x: f32[2]; view s: f32[1]; %z: i64 = const 0;\n"
        "%m: i64 = extent x, 0; %j: i64 = reduction %z, %m; %n: i64 = extent x, 1;\n"
        "%k: i64 = reduction %z, %n; %a: f32 = reduce sum striped over %j, %k {\n"
        "%x: f32 = load x[%j, %k]; yield %x; }; store s[%z], %a; }";
    static const tree_view values[] = {{{4096}, false}, {{1}, false}},
                           rows[] = {{{64, 64}, false}, {{1}, false}};
    qn_estimate one = estimate(total, values, NULL, ""), two = estimate(plane, rows, NULL, "");
    tap_ok(one.stores < 64 && two.stores * 2 >= 4096,
           "points of two dimensions are added in memory, those of one in registers");
    tap_ok(two.instructions * 6 >= one.instructions * 6 + 4096 * 4,
           "... with their places, which loops over one dimension do not need");
    tap_note("%.0f, %.0f stores; %.0f, %.0f instructions", one.stores, two.stores, one.instructions,
             two.instructions);
}

static void test_monotony(void)
{
    static const tree_view longer[] = {{{1 << 15}, false}, {{1 << 15}, false}};
    static const tree_view ends[] = {{{(1 << 14) + 5}, false}, {{(1 << 14) + 5}, false}};
    qn_estimate vector = estimate(scale, vectors, NULL, lanes),
                scalar = estimate(scale, vectors, NULL, ""),
                twice = estimate(scale, longer, NULL, lanes),
                rest = estimate(scale, ends, NULL, lanes),
                single = estimate(scale, vectors, NULL, "split d0 8 tail=mask; vectorize d0.1;"),
                divided = estimate(inverse, vectors, NULL, lanes);
    tap_ok(scalar.core > 3 * vector.core, "scalar code takes several times as long as vectors");
    tap_ok(twice.cycles > 1.9 * vector.cycles && twice.cycles < 2.1 * vector.cycles,
           "twice as many iterations take twice as long");
    tap_ok(single.loops > 3 * vector.loops, "four vectors in a step need a fourth of the loops");
    tap_ok(vector.tails == 0 && rest.tails > 0 && rest.core > vector.core,
           "iterations that are left cost something");
    tap_ok(divided.arithmetic > 4 * vector.arithmetic, "a quotient takes longer than a product");
    qn_estimate moved = estimate(scale, vectors, small, lanes);
    tap_ok(moved.cycles > vector.cycles, "smaller caches are slower");
}

/* Nine bytes beside one another, all loaded before they are added as i32. */
static const char nine[] =
    "kernel nine (x: u8[], y: u8[]) { for all i in 0 .. 4096 {"
    " a = i32(x[i])\n b = i32(x[i + 1])\n c = i32(x[i + 2])\n d = i32(x[i + 3])\n"
    " e = i32(x[i + 4])\n f = i32(x[i + 5])\n g = i32(x[i + 6])\n h = i32(x[i + 7])\n"
    " j = i32(x[i + 8])\n y[i] = u8((a + b + c + d + e + f + g + h + j) >> 4) } }";
/* Products of 16 x 16, whose number is fastest. */
static const char batch[] =
    "kernel batch (a: f32[,,], b: f32[,,], c: f32[,,]) contract { for all i, j, n in c {"
    " c[i, j, n] = sum k in dim(a, 1) of a[i, k, n] * b[k, j, n] } }";

static void test_registers(void)
{
    const tree_view bytes[] = {{{4104}, false}, {{4096}, false}},
                    products[] = {
                        {{16, 16, 96}, false}, {{16, 16, 96}, false}, {{16, 16, 96}, false}};
    qn_estimate e =
        estimate(nine, bytes, NULL, "split d0 2 32 tail=none; unroll d0.1; vectorize d0.2;");
    tap_is_int((int64_t)e.stores, 4096 / 32, "lanes that are held in 16 bits need no stack");
    e = estimate(batch, products, NULL,
                 "split d2 16 tail=none; reorder d2.0 d0 d1 d2.1; vectorize d2.1;");
    tap_ok(e.loads >= 2 * 16 * 16 * 16 * 6, "each reduce loads its points: %.0f cycles", e.loads);
}

/** Rows of `for` in lanes that lie apart: of one length, or of lengths of their own. */
static void test_masked_lanes(void)
{
    static const tree_view planes[] = {{{64, 203}, false}, {{64, 203}, false}};
    static const char *const text =
        "kernel \"rows\" { view x: f32[2]; view y: f32[2]; %%z: i64 = const 0;\n"
        "%%o: i64 = const 1; %%n: i64 = extent y, 0; %%m: i64 = extent y, 1;\n"
        "%%i: i64 = parallel %%z, %%n;\n"
        "%%h: i64 = %s; for %%k: i64 = %%z to %%h step 1 () {\n"
        "%%a: f32 = load x[%%i, %%k]; store y[%%i, %%k], %%a; yield; }; }";
    const char *steps = "split d0 8 tail=none; vectorize d0.1;";
    char even[512], uneven[512];
    snprintf(even, sizeof even, text, "add %m, %z");
    snprintf(uneven, sizeof uneven, text, "add %i, %o");
    qn_estimate whole = estimate(even, planes, NULL, steps),
                masked = estimate(uneven, planes, NULL, steps);
    tap_ok(masked.arithmetic / 32.5 > 3 * whole.arithmetic / 203,
           "lanes apart are gathers where some may be off, in loops of uneven lengths only");
    tap_note("%.0f and %.0f cycles", whole.arithmetic, masked.arithmetic);
}

/** What is left of lanes that lie apart: its number is known, or threads divide the lanes. */
static void test_masked_rest(void)
{
    static const tree_view planes[] = {{{100, 203}, false}, {{100, 203}, false}};
    static const char *const text =
        "kernel \"rows\" { view x: f32[2]; view y: f32[2]; %z: i64 = const 0;\n"
        "%n: i64 = extent y, 0; %m: i64 = extent y, 1; %i: i64 = parallel %z, %n;\n"
        "for %k: i64 = %z to %m step 1 () {\n"
        "%a: f32 = load x[%i, %k]; store y[%i, %k], %a; yield; }; }";
    qn_estimate known = estimate(text, planes, NULL, "split d0 8 tail=mask; vectorize d0.1;"),
                divided = estimate(text, planes, NULL,
                                   "split d0 8 tail=mask; vectorize d0.1; parallelize d0.0;");
    tap_ok(divided.tails > 2 * known.tails, "a rest that threads divide runs under masks");
    tap_ok(divided.arithmetic <= known.arithmetic && known.arithmetic <= divided.arithmetic,
           "... which does not count as whole steps");
}

/* ---------------------------------------------------------------- all of them */

static void test_samples(void)
{
    for (int n = 0; n < TREE_SAMPLES; n++)
        for (int dynamic = 0; dynamic < 2; dynamic++) {
            tree_case c;
            if (!tree_case_open(&c, tree_samples[n].text, tree_samples[n].view, QN_ISA_V3, dynamic))
                continue;
            qn_estimate first = estimate_of(&c, ""), second = estimate_of(&c, "");
            qn_text text = {0};
            qn__estimate_print(&first, &c.facts.machine, &text);
            tap_ok(isfinite(first.cycles) && first.cycles > 0 && first.core > 0,
                   "sample %d has an estimate", n);
            tap_ok(memcmp(&first, &second, sizeof first) == 0, "... which is always the same");
            tap_ok(!text.failed && strstr(text.data, "cycles a call, limit: "), "... and a text");
            qn__text_release(&text);
            tree_case_close(&c);
        }
}

/* ---------------------------------------------------------------- grids */

/** The estimate of the planner's grid of a case. `plan`: fields that are fixed, or NULL. */
static qn_grid_estimate estimate_grid(tree_case *c, const qn_plan_options *plan)
{
    qn_grid_estimate e = {.cycles = NAN};
    qn_grid grid;
    if (plan)
        c->facts.plan = *plan;
    qn__grid_make(c->kernel, &c->facts, &grid);
    if (!qn__grid_estimate(&c->x, &grid, &e))
        tap_ok(false, "there is an estimate of the grid");
    return e;
}

static void test_grid_bytes(void)
{
    tree_case c;
    if (!tree_case_open(&c, scale, vectors, QN_ISA_SM90, false))
        return;
    qn_grid_estimate near = estimate_grid(&c, NULL);
    c.facts.machine.far_bytes = 1 << 16;
    qn_grid_estimate far = estimate_grid(&c, NULL);
    tap_is_int((int64_t)near.memory_bytes, 0, "arrays stay in the second-level cache of a GPU");
    tap_is_int((int64_t)far.memory_bytes, 2 * (1 << 14) * 8,
               "... and move once to and once from memory where that is smaller");
    tap_is_int((int64_t)far.far_bytes, 2 * (1 << 14) * 8, "blocks move what they touch once");
    c.facts.machine.multiprocessors = 1;
    tap_ok(estimate_grid(&c, NULL).issue > 8 * near.issue,
           "a single multiprocessor takes longer than 128 for the instructions of 16 blocks");
    tree_case_close(&c);
}

/** Transposes: lanes of a warp that lie apart touch as many sectors. */
static void test_grid_sectors(void)
{
    static const tree_view planes[] = {{{128, 128}, false}, {{128, 128}, false}};
    tree_case c;
    qn_plan_options rows = {.lane_dim = 2, .width = 1, .jam = 1},
                    columns = {.lane_dim = 1, .width = 1, .jam = 1};
    if (!tree_case_open(&c, tree_stencil, planes, QN_ISA_SM90, false))
        return;
    qn_grid_estimate along = estimate_grid(&c, &rows), across = estimate_grid(&c, &columns);
    tap_ok(across.near > 8 * along.near,
           "lanes in different lines take a GPU's first-level cache a cycle each");
    tap_note("%.0f and %.0f cycles", across.near, along.near);
    tree_case_close(&c);
}

static void test_grid_samples(void)
{
    for (int n = 0; n < TREE_SAMPLES; n++)
        for (int dynamic = 0; dynamic < 2; dynamic++) {
            tree_case c;
            qn_grid grid;
            qn_grid_estimate first, second;
            if (!tree_case_open(&c, tree_samples[n].text, tree_samples[n].view, QN_ISA_SM90,
                                dynamic))
                continue;
            qn__grid_make(c.kernel, &c.facts, &grid);
            bool has = qn__grid_estimate(&c.x, &grid, &first),
                 has_again = qn__grid_estimate(&c.x, &grid, &second);
            qn_text text = {0};
            qn__grid_estimate_print(&first, &text);
            tap_ok(has == has_again && memcmp(&first, &second, sizeof first) == 0,
                   "the grid of sample %d has one estimate", n);
            tap_ok(!has || (isfinite(first.cycles) && first.issue > 0 && first.near > 0 &&
                            first.waiting > 0),
                   "... of which all parts are finite");
            tap_ok(!text.failed && strstr(text.data, "cycles a launch, limit: "), "... and a text");
            qn__text_release(&text);
            tree_case_close(&c);
        }
}

static void test_grid_forms(void)
{
    tree_case c;
    qn_estimate e;
    qn_grid_estimate of_grid;
    qn_error err = {0};
    qn_grid one = qn__grid_of_one();
    if (!tree_case_open(&c, scale, vectors, QN_ISA_SM90, false))
        return;
    tap_is_int(qn__schedule_estimate(&c.x, c.schedule, &e, &err), QN_ERR_UNSUPPORTED,
               "a GPU has estimates of grids, not of schedules");
    tap_is_str(err.message, "estimate: target \"sm_90\" has grids instead of schedules",
               "... as the message says");
    tap_ok(!qn__grid_estimate(&c.x, &one, &of_grid), "a single thread has no estimate");
    tree_case_close(&c);
}

int main(void)
{
    test_streams();
    test_large();
    test_layers();
    test_conflicts();
    test_rows_of_data();
    test_turns_of_lanes();
    test_byte_shifts();
    test_interleaved();
    test_tile();
    test_copies();
    test_transposed_copy();
    test_chains();
    test_partials();
    test_monotony();
    test_registers();
    test_masked_lanes();
    test_masked_rest();
    test_samples();
    test_grid_bytes();
    test_grid_sectors();
    test_grid_samples();
    test_grid_forms();
    return tap_done();
}
