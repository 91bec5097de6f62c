/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_kernels.h: the kernels of test_fence.c and the views that each takes.
 *
 * In a text $T is the element type of the case, $I an index type, $O an order rule, $0 and $2 are
 * literals of $T. All dimensions of all views have the same lower bound. The extent of a dimension
 * is n x case.n + m x case.m + c.
 */
#ifndef QN_TESTS_UNIT_GUARD_KERNELS_H
#define QN_TESTS_UNIT_GUARD_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct guard_extent {
    int8_t n, m, c;
} guard_extent;

/** What a view holds. */
enum { FILL_VALUES, FILL_INDEX, FILL_ROTATION, FILL_STARTS, FILL_COUNTS };

typedef struct guard_view {
    const char *label; /* NULL ends the list */
    char type;         /* T: of the case; I: index type of the case; b: bool */
    int8_t rank, fill;
    bool is_written;
    guard_extent extent[2];
} guard_view;

typedef struct guard_kernel {
    const char *name;
    const char *types; /* u8, i16, f32, f64, bool as u h f d b */
    const char *text;
    guard_view view[6];
} guard_kernel;

#define RANGE(v, d, i)                                                                             \
    "%" i "l: i64 = lower " v ", " d "; %" i "n: i64 = extent " v ", " d "; %" i "e: i64 = add %"  \
    i "l, %" i "n;\n"
#define PARALLEL(v, d, i) RANGE(v, d, i) "%" i ": i64 = parallel %" i "l, %" i "e;\n"
#define REDUCTION(v, d, i) RANGE(v, d, i) "%" i ": i64 = reduction %" i "l, %" i "e;\n"
#define ONE "%one: i64 = const 1;\n"

#define VECTOR(l) {l, 'T', 1, FILL_VALUES, false, {{1, 0, 0}}}
#define OUTPUT(l) {l, 'T', 1, FILL_VALUES, true, {{1, 0, 0}}}
#define MATRIX(l) {l, 'T', 2, FILL_VALUES, false, {{1, 0, 0}, {0, 1, 0}}}
#define SCALAR(l) {l, 'T', 0, FILL_VALUES, true, {{0, 0, 0}}}
#define INDEX(l, f) {l, 'I', 1, f, false, {{1, 0, 0}}}
#define BOOLS(l) {l, 'b', 1, FILL_VALUES, false, {{1, 0, 0}}}

static const guard_kernel guard_kernels[] = {
    {"copy",
     "uhfdb",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL("y", "0",
                                                "i") "%a: $T = load x[%i]; store y[%i], %a;",
     {VECTOR("x"), OUTPUT("y")}},
    {"scale",
     "uhfd",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL(
         "y", "0",
         "i") "%c: $T = const $2; %a: $T = load x[%i]; %b: $T = mul %a, %c; store y[%i], %b;",
     {VECTOR("x"), OUTPUT("y")}},
    {"two sizes",
     "uhfd",
     "view x: $T[1]; view k: $I[1]; view y: $T[1];\n" PARALLEL(
         "y", "0", "i") "%a: $T = load x[%i]; %c: $I = const 7; store k[%i], %c; store y[%i], %a;",
     {VECTOR("x"), {"k", 'I', 1, FILL_VALUES, true, {{1, 0, 0}}}, OUTPUT("y")}},
    {"saxpy in place",
     "uhfd",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL(
         "y", "0",
         "i") "%c: $T = const $2; %a: $T = load x[%i]; %b: $T = load y[%i]; %p: $T = mul %a, %c;\n"
              "%s: $T = add %p, %b; store y[%i], %s;",
     {VECTOR("x"), OUTPUT("y")}},
    {"mirror",
     "uhfdb",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL("y", "0", "i") ONE
     "%s: i64 = add %il, %ie; %t: i64 = sub %s, %one; %r: i64 = sub %t, %i;\n"
     "%a: $T = load x[%r]; store y[%i], %a;",
     {VECTOR("x"), OUTPUT("y")}},
    {"every third",
     "uhfdb",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL(
         "y", "0", "i") "%three: i64 = const 3; %d: i64 = sub %i, %il; %s: i64 = mul %d, %three; "
                        "%k: i64 = add %s, %il;\n"
                        "%a: $T = load x[%k]; store y[%i], %a;",
     {{"x", 'T', 1, FILL_VALUES, false, {{3, 0, -2}}}, OUTPUT("y")}},
    {"stencil",
     "uhfd",
     "view x: $T[2]; view y: $T[2];\n" RANGE("y", "0", "i") RANGE("y", "1", "j") ONE
     "%ib: i64 = add %il, %one; %id: i64 = sub %ie, %one; %jb: i64 = add %jl, %one; %jd: i64 = sub "
     "%je, %one;\n"
     "%i: i64 = parallel %ib, %id; %j: i64 = parallel %jb, %jd;\n"
     "%iu: i64 = sub %i, %one; %iv: i64 = add %i, %one; %ju: i64 = sub %j, %one; %jv: i64 = add "
     "%j, %one;\n"
     "%a: $T = load x[%iu, %j]; %b: $T = load x[%iv, %j]; %c: $T = load x[%i, %ju]; %d: $T = load "
     "x[%i, %jv];\n"
     "%m: $T = load x[%i, %j]; %ab: $T = add %a, %b; %cd: $T = add %c, %d; %s: $T = add %ab, %cd;\n"
     "%t: $T = add %s, %m; store y[%i, %j], %t;",
     {{"x", 'T', 2, FILL_VALUES, false, {{0, 1, 2}, {1, 0, 2}}},
      {"y", 'T', 2, FILL_VALUES, true, {{0, 1, 2}, {1, 0, 2}}}}},
    {"transpose",
     "uhfdb",
     "view x: $T[2]; view y: $T[2];\n" PARALLEL("y", "0", "i")
         PARALLEL("y", "1", "j") "%a: $T = load x[%j, %i]; store y[%i, %j], %a;",
     {MATRIX("x"), {"y", 'T', 2, FILL_VALUES, true, {{0, 1, 0}, {1, 0, 0}}}}},
    {"add row",
     "uhfd",
     "view x: $T[2]; view r: $T[1]; view y: $T[2];\n" PARALLEL("y", "0", "i")
         PARALLEL("y", "1", "j") "%a: $T = load x[%i, %j]; %b: $T = load r[%i]; %s: $T = add %a, "
                                 "%b; store y[%i, %j], %s;",
     {MATRIX("x"), VECTOR("r"), {"y", 'T', 2, FILL_VALUES, true, {{1, 0, 0}, {0, 1, 0}}}}},
    {"gather",
     "uhfdb",
     "view x: $T[1]; view k: $I[1]; view y: $T[1];\n" PARALLEL(
         "y", "0",
         "i") "%n: $I = load k[%i]; %at: i64 = cast %n; %a: $T = load x[%at]; store y[%i], %a;",
     {VECTOR("x"), INDEX("k", FILL_INDEX), OUTPUT("y")}},
    {"gather in two dimensions",
     "uhfdb",
     "view x: $T[2]; view p: $I[1]; view q: $I[1]; view y: $T[1];\n" PARALLEL(
         "y", "0",
         "i") "%n: $I = load p[%i]; %m: $I = load q[%i]; %at: i64 = cast %n; %to: i64 = cast %m;\n"
              "%a: $T = load x[%at, %to]; store y[%i], %a;",
     {{"x", 'T', 2, FILL_VALUES, false, {{1, 0, 0}, {1, 0, 0}}},
      INDEX("p", FILL_INDEX),
      INDEX("q", FILL_INDEX),
      OUTPUT("y")}},
    {"scatter",
     "uhfdb",
     "view x: $T[1]; view k: $I[1]; view y: $T[1];\n" PARALLEL(
         "k", "0",
         "i") "%n: $I = load k[%i]; %at: i64 = cast %n; %a: $T = load x[%i]; store y[%at], %a;",
     {VECTOR("x"), INDEX("k", FILL_ROTATION), OUTPUT("y")}},
    {"histogram",
     "uhfd",
     "view k: $I[1]; view h: $T[1];\n" PARALLEL(
         "k", "0",
         "i") "%c: $T = const $2; %n: $I = load k[%i]; %at: i64 = cast %n; atomic sum h[%at], %c;",
     {INDEX("k", FILL_INDEX), OUTPUT("h")}},
    {"atomics under if",
     "uhfd",
     "view m: bool[1]; view h: $T[1]; view y: $T[1];\n" PARALLEL(
         "m", "0", "i") "%c: $T = const $2; %b: bool = load m[%i];\n"
                        "if %b { %o: $T = atomic max h[%i], %c; store y[%i], %o; };",
     {BOOLS("m"), OUTPUT("h"), OUTPUT("y")}},
    {"row sums",
     "fd",
     "view x: $T[2]; view y: $T[1];\n" PARALLEL("x", "0", "i")
         REDUCTION("x", "1", "j") "%s: $T = reduce sum $O over %j { %a: $T = load x[%i, %j]; yield "
                                  "%a; }; store y[%i], %s;",
     {MATRIX("x"), OUTPUT("y")}},
    {"column sums",
     "fd",
     "view x: $T[2]; view y: $T[1];\n" PARALLEL("x", "1", "j")
         REDUCTION("x", "0", "i") "%s: $T = reduce sum $O over %i { %a: $T = load x[%i, %j]; yield "
                                  "%a; }; store y[%j], %s;",
     {MATRIX("x"), {"y", 'T', 1, FILL_VALUES, true, {{0, 1, 0}}}}},
    {"dot product",
     "fd",
     "view x: $T[1]; view z: $T[1]; view y: $T[0];\n" REDUCTION(
         "x", "0", "i") "%s: $T = reduce sum $O over %i { %a: $T = load x[%i]; %b: $T = load "
                        "z[%i]; %p: $T = mul %a, %b; yield %p; };\n"
                        "store y[], %s;",
     {VECTOR("x"), VECTOR("z"), SCALAR("y")}},
    {"sum of all",
     "uhfd",
     "view x: $T[2]; view y: $T[0];\n" REDUCTION("x", "0", "i")
         REDUCTION("x", "1", "j") "%s: $T = reduce sum over %i, %j { %a: $T = load x[%i, %j]; "
                                  "yield %a; }; store y[], %s;",
     {MATRIX("x"), SCALAR("y")}},
    {"maximum of a gather",
     "uhfd",
     "view x: $T[1]; view k: $I[1]; view y: $T[0];\n" REDUCTION(
         "k", "0", "i") "%s: $T = reduce max over %i { %n: $I = load k[%i]; %at: i64 = cast %n; "
                        "%a: $T = load x[%at]; yield %a; };\n"
                        "store y[], %s;",
     {VECTOR("x"), INDEX("k", FILL_INDEX), SCALAR("y")}},
    {"perhaps empty sums",
     "uhfd",
     "view x: $T[2]; view w: $T[1]; view y: $T[1];\n" PARALLEL("y", "0", "i")
         REDUCTION("w", "0", "j") "%s: $T = reduce sum over %j { %a: $T = load x[%i, %j]; %b: $T = "
                                  "load w[%jl]; %p: $T = mul %a, %b; yield %p; };\n"
                                  "store y[%i], %s;",
     {{"x", 'T', 2, FILL_VALUES, false, {{1, 0, 0}, {0, 1, -1}}},
      {"w", 'T', 1, FILL_VALUES, false, {{0, 1, -1}}},
      OUTPUT("y")}},
    {"perhaps empty loop",
     "uhfd",
     "view w: $T[1]; view y: $T[1];\n" PARALLEL("y", "0", "i")
         RANGE("w", "0",
               "j") "%z: $T = const $0; %s: $T = for %j: i64 = %jl to %je step 1 (%t: $T = %z) {\n"
                    "%a: $T = load w[%jl]; %b: $T = load w[%j]; %p: $T = mul %a, %b; %u: $T = add "
                    "%t, %p; yield %u; };\n"
                    "store y[%i], %s;",
     {{"w", 'T', 1, FILL_VALUES, false, {{0, 1, -1}}}, OUTPUT("y")}},
    {"matrix product",
     "uhfd",
     "view a: $T[2]; view b: $T[2]; view y: $T[2];\n" PARALLEL("y", "0", "i")
         PARALLEL("y", "1", "j")
             REDUCTION("b", "0", "k") "%s: $T = reduce sum over %k { %u: $T = load a[%i, %k]; %v: "
                                      "$T = load b[%k, %j]; %p: $T = mul %u, %v; yield %p; };\n"
                                      "store y[%i, %j], %s;",
     {{"a", 'T', 2, FILL_VALUES, false, {{0, 1, 0}, {0, 1, 1}}},
      {"b", 'T', 2, FILL_VALUES, false, {{0, 1, 1}, {1, 0, 0}}},
      {"y", 'T', 2, FILL_VALUES, true, {{0, 1, 0}, {1, 0, 0}}}}},
    {"load guarded below",
     "uhfdb",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL("y", "0", "i") ONE
     "%c: bool = gt %i, %il; if %c { %k: i64 = sub %i, %one; %a: $T = load x[%k]; store y[%i], %a; "
     "};",
     {VECTOR("x"), OUTPUT("y")}},
    {"load guarded above",
     "uhfdb",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL("y", "0", "i") ONE
     "%k: i64 = add %i, %one; %c: bool = lt %k, %ie;\n"
     "%v: $T = if %c { %a: $T = load x[%k]; yield %a; } else { %b: $T = load x[%il]; yield %b; }; "
     "store y[%i], %v;",
     {VECTOR("x"), OUTPUT("y")}},
    {"masked copy",
     "uhfdb",
     "view x: $T[1]; view m: bool[1]; view y: $T[1];\n" PARALLEL(
         "y", "0", "i") "%c: bool = load m[%i]; if %c { %a: $T = load x[%i]; store y[%i], %a; };",
     {VECTOR("x"), BOOLS("m"), OUTPUT("y")}},
    {"index chosen under if",
     "uhfdb",
     "view x: $T[1]; view m: bool[1]; view q: bool[1]; view y: $T[1];\n" PARALLEL("y", "0", "i") ONE
     "%last: i64 = sub %ie, %one; %c: bool = load m[%i]; %d: bool = load q[%i];\n"
     "if %c { %k: i64 = if %d { %z: $T = load x[%i]; store y[%i], %z; yield %last; } else { yield "
     "%i; };\n"
     "%a: $T = load x[%k]; store y[%i], %a; };",
     {VECTOR("x"), BOOLS("m"), BOOLS("q"), OUTPUT("y")}},
    {"uniform load under if",
     "uhfdb",
     "view x: $T[1]; view k: $I[1]; view m: bool[1]; view y: $T[1];\n" PARALLEL(
         "y", "0", "i") "%n: $I = load k[%il]; %at: i64 = cast %n; %c: bool = load m[%i];\n"
                        "if %c { %a: $T = load x[%at]; store y[%i], %a; };",
     {VECTOR("x"), INDEX("k", FILL_INDEX), BOOLS("m"), OUTPUT("y")}},
    {"for, from the lane on",
     "uhfd",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL(
         "y", "0",
         "i") "%z: $T = const $0; %s: $T = for %k: i64 = %i to %ie step 1 (%t: $T = %z) {\n"
              "%a: $T = load x[%k]; %u: $T = add %t, %a; yield %u; }; store y[%i], %s;",
     {VECTOR("x"), OUTPUT("y")}},
    {"for, up to the lane by 3",
     "uhfd",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL(
         "y", "0",
         "i") "%z: $T = const $0; %s: $T = for %k: i64 = %il to %i step 3 (%t: $T = %z) {\n"
              "%a: $T = load x[%k]; %u: $T = add %t, %a; yield %u; }; store y[%i], %s;",
     {VECTOR("x"), OUTPUT("y")}},
    {"for, from the row on",
     "uhfd",
     "view x: $T[1]; view y: $T[2];\n" PARALLEL("y", "0", "i") PARALLEL(
         "y", "1",
         "j") "%z: $T = const $0; %s: $T = for %k: i64 = %i to %ie step 1 (%t: $T = %z) {\n"
              "%a: $T = load x[%k]; %u: $T = add %t, %a; yield %u; }; store y[%i, %j], %s;",
     {{"x", 'T', 1, FILL_VALUES, false, {{0, 1, 0}}},
      {"y", 'T', 2, FILL_VALUES, true, {{0, 1, 0}, {1, 0, 0}}}}},
    {"for, trips from memory",
     "uhfd",
     "view x: $T[1]; view k: $I[1]; view y: $T[1];\n" PARALLEL(
         "y", "0",
         "i") "%z: $T = const $0; %n: $I = load k[%i]; %m: i64 = cast %n; %e: i64 = add %il, %m;\n"
              "%s: $T = for %j: i64 = %il to %e step 1 (%t: $T = %z) {\n"
              "%a: $T = load x[%j]; %u: $T = add %t, %a; yield %u; }; store y[%i], %s;",
     {VECTOR("x"), INDEX("k", FILL_COUNTS), OUTPUT("y")}},
    {"sparse rows",
     "uhfd",
     "view start: $I[1]; view x: $T[1]; view y: $T[1];\n" PARALLEL("y", "0", "i") ONE
     "%i1: i64 = add %i, %one; %b: $I = load start[%i]; %e: $I = load start[%i1]; %bb: i64 = cast "
     "%b;\n"
     "%ee: i64 = cast %e; %z: $T = const $0; %s: $T = for %k: i64 = %bb to %ee step 1 (%t: $T = "
     "%z) {\n"
     "%a: $T = load x[%k]; %u: $T = add %t, %a; yield %u; }; store y[%i], %s;",
     {{"start", 'I', 1, FILL_STARTS, false, {{1, 0, 1}}},
      {"x", 'T', 1, FILL_VALUES, false, {{2, 0, 0}}},
      OUTPUT("y")}},
    {"while",
     "uhfd",
     "view x: $T[1]; view y: $T[1];\n" PARALLEL("y", "0", "i") ONE
     "%z: $T = const $0; %most: i64 = const 1000; %two: $T = const $2;\n"
     "%j1: i64, %s: $T = while max %most (%j: i64 = %i, %t: $T = %z) {\n"
     "%c: bool = lt %j, %ie; %d: bool = if %c { %v: $T = load x[%j]; %q: bool = gt %v, %two; yield "
     "%q; }\n"
     "else { %f: bool = const false; yield %f; }; yield %d; } do {\n"
     "%a: $T = load x[%j]; %u: $T = add %t, %a; %n: i64 = add %j, %one; yield %n, %u; };\n"
     "store y[%i], %s;",
     {VECTOR("x"), OUTPUT("y")}},
    {"store in a loop",
     "uhfd",
     "view k: $I[1]; view y: $T[2];\n" PARALLEL("y", "0", "i") RANGE(
         "y", "1",
         "j") "%c: $T = const $2; %n: $I = load k[%i]; %m: i64 = cast %n; %e: i64 = add %jl, %m;\n"
              "for %j: i64 = %jl to %e step 1 () { store y[%i, %j], %c; };",
     {INDEX("k", FILL_COUNTS), {"y", 'T', 2, FILL_VALUES, true, {{1, 0, 0}, {0, 1, 1}}}}},
};

#endif
