/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_data_list.c: the kernels of bench_cases_data.c, as text, and the arrays that they meet.
 */
#include "bench_data.h"
#include "native_data.h"
#include "quern.h"

#include <stddef.h>

/* ---------------------------------------------------------------- kernels */

#define OVER(index, kind, view, d)                                                                 \
    " %n" index ": i64 = extent " view ", " d "; %" index ": i64 = " kind " %zero, %n" index ";"
#define ZERO " %zero: i64 = const 0;"

#define COPY(T)                                                                                    \
    "kernel \"copy\" { view y: " T "[1]; view x: " T "[1];" ZERO OVER("i", "parallel", "y", "0")   \
    " %v: " T " = load x[%i]; store y[%i], %v; }"
#define PERMUTE(T, index)                                                                          \
    "kernel \"permute\" { view y: " T "[3]; view x: " T                                            \
    "[3];" ZERO OVER("i", "parallel", "y", "0") OVER("j", "parallel", "y", "1")                    \
        OVER("k", "parallel", "y", "2") " %v: " T " = load x[" index                               \
                                        "]; store y[%i, %j, %k], %v; }"
#define SPREAD(T)                                                                                  \
    "kernel \"spread\" { view y: " T "[2]; view x: " T                                             \
    "[1];" ZERO OVER("i", "parallel", "x", "0") " %v: " T " = load x[%i]; %a: " T                  \
                                                " = const 1.5; %p: " T                             \
                                                " = mul %v, %a; store y[%i, %zero], %p; }"
#define COLLECT(T)                                                                                 \
    "kernel \"collect\" { view y: " T "[1]; view x: " T                                            \
    "[2];" ZERO OVER("i", "parallel", "y", "0") " %v: " T " = load x[%i, %zero]; %a: " T           \
                                                " = const 1.5; %p: " T                             \
                                                " = mul %v, %a; store y[%i], %p; }"
#define SUM(T, order)                                                                              \
    "kernel \"sum\" { view y: " T "[1]; view a: " T "[2];" ZERO OVER("i", "parallel", "a", "0")    \
        OVER("k", "reduction", "a", "1") " %s: " T " = reduce sum " order " over %k { %v: " T      \
                                         " = load a[%i, %k]; yield %v; }; store y[%i], %s; }"
#define DOT(T, A, order)                                                                           \
    "kernel \"dot\" contract { view s: " T "[1]; view x: " A "[1]; view y: " A "[1];" ZERO OVER(   \
        "k", "reduction", "x", "0") " %s: " T " = reduce sum " order " over %k { %a: " A           \
                                    " = load x[%k]; %b: " A " = load y[%k];"                       \
                                    " %c: " T " = cast %a; %d: " T " = cast %b; %p: " T            \
                                    " = mul %c, %d; yield %p; }; store s[%zero], %s; }"
#define COLUMNS                                                                                    \
    "kernel \"columns\" { view y: f64[1]; view a: f32[2];" ZERO OVER("i", "parallel", "a", "1")    \
        OVER("k", "reduction", "a",                                                                \
             "0") " %s: f64 = reduce sum indexed over %k { %v: f32 = load a[%k, %i]; %w: f64 = "   \
                  "cast %v; yield %w; }; store y[%i], %s; }"
#define SPMV                                                                                       \
    "kernel \"spmv\" contract { view y: f64[1]; view start: i32[1]; view column: i32[1]; view "    \
    "value: f64[1];"                                                                               \
    " view x: f64[1];" ZERO OVER(                                                                  \
        "i", "parallel", "y",                                                                      \
        "0") " %one: i64 = const 1; %next: i64 = add %i, %one; %b: i32 = load start[%i]; %e: i32 " \
             "= load start[%next];"                                                                \
             " %bb: i64 = cast %b; %ee: i64 = cast %e; %z: f64 = const 0.0;"                       \
             " %s: f64 = for %k: i64 = %bb to %ee step 1 (%acc: f64 = %z) {"                       \
             " %c: i32 = load column[%k]; %cc: i64 = cast %c; %v: f64 = load value[%k]; %u: f64 "  \
             "= load x[%cc];"                                                                      \
             " %p: f64 = mul %v, %u; %t: f64 = add %acc, %p; yield %t; }; store y[%i], %s; }"
#define GATHER(T)                                                                                  \
    "kernel \"gather\" { view y: " T "[1]; view at: i32[1]; view x: " T "[1];" ZERO                \
        OVER("i", "parallel", "at", "0")                                                           \
    " %a: i32 = load at[%i]; %b: i64 = cast %a; %v: " T " = load x[%b]; store y[%i], %v; }"
#define SCATTER(T)                                                                                 \
    "kernel \"scatter\" { view y: " T "[1]; view at: i32[1]; view x: " T "[1];" ZERO               \
        OVER("i", "parallel", "at", "0")                                                           \
    " %a: i32 = load at[%i]; %b: i64 = cast %a; %v: " T " = load x[%i]; store y[%b], %v; }"
#define TABLE(T, index)                                                                            \
    "kernel \"table\" { view y: " T "[1]; view x: u8[1]; view t: " T "[1];" ZERO                   \
        OVER("i", "parallel", "x", "0")                                                            \
    " %mask: u8 = const 15; %a: u8 = load x[%i]; %low: u8 = and %a, %mask; %b: i64 = cast " index  \
    "; %v: " T " = load t[%b]; store y[%i], %v; }"

#define CLAMPED                                                                                    \
    " %most: f32 = const 255.0; %least: f32 = const 0.0; %h: f32 = min %f, %most; %g: f32 = max "  \
    "%h, %least;"                                                                                  \
    " %o: u8 = cast %g;"
#define BIN " %v: f32 = load x[%i]; %scale: f32 = const 256.0; %f: f32 = mul %v, %scale;" CLAMPED
#define PIXELS " { view y: u8[1]; view x: " /* T[1]; */
#define BINS_F32                                                                                   \
    "kernel \"bins\"" PIXELS "f32[1];" ZERO OVER("i", "parallel", "y", "0") BIN                    \
        " store y[%i], %o; }"
#define HISTOGRAM(T, value)                                                                        \
    "kernel \"histogram\" { view y: i32[1]; view x: " T                                            \
    "[1];" ZERO OVER("i", "parallel", "x", "0") value                                              \
        " %b: i64 = cast %o; %once: i32 = const 1; %old: i32 = atomic sum y[%b], %once; }"
/* What is left of the position at a node along an axis, of (NODES - 1) steps. */
#define AROUND(n, view)                                                                            \
    " %v" n ": f64 = load " view "[%p]; %at" n ": f64 = mul %v" n ", %steps; %c" n                 \
    ": i32 = cast %at" n "; %r" n ": f64 = cast %c" n "; %part" n ": f64 = sub %at" n ", %r" n     \
    "; %i" n ": i64 = cast %c" n "; %j" n ": i64 = add %i" n ", %next;"
#define DEPOSIT                                                                                    \
    "kernel \"deposit\" { view node: f64[2]; view x: f64[1]; view y: f64[1];" ZERO OVER(           \
        "p", "parallel", "x",                                                                      \
        "0") " %next: i64 = const 1; %steps: f64 = const 63.0; %one: f64 = const 1.0; %half: f64 " \
             "= const 0.5;" AROUND("x", "x")                                                       \
                 AROUND("y", "y") " %left: f64 = sub %one, %partx; %above: f64 = mul %party, "     \
                                  "%half; %below: f64 = sub %half, %above;"                        \
                                  " %a: f64 = mul %below, %left; %b: f64 = mul %below, %partx; "   \
                                  "%c: f64 = mul %above, %left; %d: f64 = mul %above, %partx;"     \
                                  " %olda: f64 = atomic sum node[%iy, %ix], %a; %oldb: f64 = "     \
                                  "atomic sum node[%iy, %jx], %b;"                                 \
                                  " %oldc: f64 = atomic sum node[%jy, %ix], %c; %oldd: f64 = "     \
                                  "atomic sum node[%jy, %jx], %d; }"
#define DEPOSITS(name)                                                                             \
    {                                                                                              \
        "deposit/" name, DEPOSIT, 0,                                                               \
        {                                                                                          \
            {QN_F64, FILL_ZERO, 2, 0, {NODES, NODES}}, VECTOR(F64, UNIT, PARTICLES),               \
                VECTOR(F64, UNIT, PARTICLES)                                                       \
        }                                                                                          \
    }
#define CHANNEL(n, weight)                                                                         \
    " %v" n ": u8 = load x[%i, %c" n "]; %i" n ": i32 = cast %v" n "; %w" n                        \
    ": i32 = const " weight "; %p" n ": i32 = mul %i" n ", %w" n ";"
#define BINS_U8                                                                                    \
    "kernel \"bins\" { view y: u8[1]; view x: u8[2];" ZERO OVER(                                   \
        "i", "parallel", "y",                                                                      \
        "0") " %c0: i64 = const 0; %c1: i64 = const 1; %c2: i64 = const 2;" CHANNEL("0", "77")     \
        CHANNEL("1", "150")                                                                        \
            CHANNEL("2", "29") " %q: i32 = add %p0, %p1; %r: i32 = add %q, %p2; %eight: i32 = "    \
                               "const 8; %s: i32 = shr %r, %eight; %o: u8 = cast %s;"              \
                               " store y[%i], %o; }"
#define SCALE_U8                                                                                   \
    "kernel \"scale\"" PIXELS "u8[1];" ZERO OVER(                                                  \
        "i", "parallel", "y", "0") " %v: u8 = load x[%i]; %f: i32 = cast %v; %a: i32 = const 19; " \
                                   "%b: i32 = const 500; %c: i32 = const 4;"                       \
                                   " %p: i32 = mul %f, %a; %q: i32 = add %p, %b; %r: i32 = shr "   \
                                   "%q, %c; %most: i32 = const 255; %s: i32 = min %r, %most;"      \
                                   " %o: u8 = cast %s; store y[%i], %o; }"
#define SCALE_F32                                                                                  \
    "kernel \"scale\" contract" PIXELS "u8[1];" ZERO OVER("i", "parallel", "y", "0")               \
    " %v: u8 = load x[%i]; %u: f32 = cast %v; %a: f32 = const 1.25; %b: f32 = const 3.0;"          \
    " %p: f32 = mul %u, %a; %f: f32 = add %p, %b;" CLAMPED " store y[%i], %o; }"

/* Pixel (i + di, j + dj) of channel c, as i32. */
#define PIXEL(n, index) " %v" n ": u8 = load x[" index "]; %p" n ": i32 = cast %v" n ";"
#define ADD(n, a, b) " %" n ": i32 = add %" a ", %" b ";"
#define BLUR(D0, D1, D2, AT)                                                                       \
    "kernel \"blur\" { view y: u8[3]; view x: u8[3];" ZERO OVER(                                   \
        "c", "parallel", "y",                                                                      \
        D2) " %one: i64 = const 1; %ny: i64 = extent y, " D0 "; %nx: i64 = extent y, " D1          \
            "; %ey: i64 = sub %ny, %one;"                                                          \
            " %ex: i64 = sub %nx, %one; %i: i64 = parallel %one, %ey; %j: i64 = parallel %one, "   \
            "%ex;"                                                                                 \
            " %u: i64 = sub %i, %one; %d: i64 = add %i, %one; %l: i64 = sub %j, %one; %r: i64 = "  \
            "add %j, %one;" PIXEL("0", AT("%u", "%l")) PIXEL("1", AT("%u", "%j")) PIXEL(           \
                "2", AT("%u", "%r")) PIXEL("3", AT("%i", "%l")) PIXEL("4", AT("%i", "%j"))         \
                PIXEL("5", AT("%i", "%r")) PIXEL("6", AT("%d", "%l")) PIXEL("7", AT("%d", "%j"))   \
                    PIXEL("8", AT("%d", "%r")) ADD("s0", "p0", "p2") ADD("s1", "s0", "p6")         \
                        ADD("s2", "s1", "p8") ADD("e0", "p1", "p3") ADD("e1", "e0", "p5") ADD(     \
                            "e2", "e1",                                                            \
                            "p7") " %two: i32 = const 2; %four: i32 = const 4; %eight: i32 = "     \
                                  "const 8; %e3: i32 = mul %two, %e2; %m: i32 = mul %four, "       \
                                  "%p4;" ADD("t0", "s2", "e3") ADD("t1", "t0", "m")                \
                                      ADD("t2", "t1",                                              \
                                          "eight") " %t3: i32 = shr %t2, %four; %o: u8 = cast "    \
                                                   "%t3; store y[" AT("%i", "%j") "], %o; }"
#define AT_INTERLEAVED(i, j) i ", " j ", %c"
#define AT_PLANAR(i, j) "%c, " i ", " j

/* ---------------------------------------------------------------- cases */

#define VECTOR(T, fill, n) {QN_##T, FILL_##fill, 1, 0, {n}}
#define COPIES(n, T)                                                                               \
    {"copy/" #n "/in", COPY(#n), 0, {VECTOR(T, ZERO, COPY_IN), VECTOR(T, ANY, COPY_IN)}},          \
    {"copy/" #n "/out", COPY(#n), 0, {VECTOR(T, ZERO, COPY_OUT), VECTOR(T, ANY, COPY_OUT)}},       \
    {"permute/" #n "/rows", PERMUTE(#n, "%j, %i, %k"), 0,                                          \
     {{QN_##T, FILL_ZERO, 3, 0, {PERMUTE_0, PERMUTE_1, PERMUTE_2}},                                \
      {QN_##T, FILL_ANY, 3, 0, {PERMUTE_1, PERMUTE_0, PERMUTE_2}}}},                               \
    {"permute/" #n "/all", PERMUTE(#n, "%k, %i, %j"), 0,                                           \
     {{QN_##T, FILL_ZERO, 3, 0, {PERMUTE_0, PERMUTE_1, PERMUTE_2}},                                \
      {QN_##T, FILL_ANY, 3, 0, {PERMUTE_2, PERMUTE_0, PERMUTE_1}}}}
#define SPREAD_OF(n, T, s, place, N)                                                               \
    {"spread/" #n "/" #s "/" place,                                                                \
     SPREAD(#n),                                                                                   \
     0,                                                                                            \
     {{QN_##T, FILL_ZERO, 2, 0, {N, s}}, VECTOR(T, ANY, N)}},                                      \
    {                                                                                              \
        "collect/" #n "/" #s "/" place, COLLECT(#n), 0,                                            \
        {                                                                                          \
            VECTOR(T, ZERO, N),                                                                    \
            {                                                                                      \
                QN_##T, FILL_ANY, 2, 0,                                                            \
                {                                                                                  \
                    N, s                                                                           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define SPREADS(n, T, place, N)                                                                    \
    SPREAD_OF(n, T, 2, place, N), SPREAD_OF(n, T, 3, place, N), SPREAD_OF(n, T, 4, place, N),      \
        SPREAD_OF(n, T, 9, place, N)
#define SUMS_OF(n, T, order, left, layout, place, P)                                               \
    {"sum/" #n "/" #order "/" layout "/" place, SUM(#n, #order), 1,                                \
     {VECTOR(T, ZERO, SUM_##P##_ROWS), {QN_##T, FILL_ANY, 2, left, {SUM_##P##_ROWS, SUM_##P}}}}
#define SUMS(n, T, order)                                                                          \
    SUMS_OF(n, T, order, 0, "right", "in", IN), SUMS_OF(n, T, order, 1, "left", "in", IN),         \
    SUMS_OF(n, T, order, 0, "right", "out", OUT), SUMS_OF(n, T, order, 1, "left", "out", OUT)
#define POWERS_OF(n, T, order, left, layout, N)                                                    \
    {                                                                                              \
        "sum/" #n "/" #order "/" layout "/" #N, SUM(#n, #order), 1,                                \
        {                                                                                          \
            VECTOR(T, ZERO, N),                                                                    \
            {                                                                                      \
                QN_##T, FILL_ANY, 2, left,                                                         \
                {                                                                                  \
                    N, N                                                                           \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define POWERS(n, T, N)                                                                            \
    POWERS_OF(n, T, indexed, 0, "right", N), POWERS_OF(n, T, indexed, 1, "left", N),               \
    POWERS_OF(n, T, striped, 0, "right", N), POWERS_OF(n, T, striped, 1, "left", N)
#define DOTS(name, kernel, T, A, N)                                                                \
    {"dot/" name, kernel, 1, {VECTOR(T, ZERO, 1), VECTOR(A, ANY, N), VECTOR(A, ANY, N)}}
#define GRID(name, n)                                                                              \
    {                                                                                              \
        "spmv/7/" name, SPMV, 0,                                                                   \
        {                                                                                          \
            VECTOR(F64, ZERO, n *n *n), VECTOR(I32, GRID_STARTS, n *n *n + 1),                     \
                VECTOR(I32, GRID, 7 * n * n * n), VECTOR(F64, ANY, 7 * n * n * n),                 \
                VECTOR(F64, ANY, n *n *n)                                                          \
        }                                                                                          \
    }
#define ROWS(name, n)                                                                              \
    {"spmv/30/" name, SPMV, 0,                                                                     \
     {VECTOR(F64, ZERO, n), VECTOR(I32, STARTS, n + 1), VECTOR(I32, COLUMNS, ROW_MOST * n),        \
      VECTOR(F64, ANY, ROW_MOST * n), VECTOR(F64, ANY, n)}}
#define LISTS(n, T, place, N)                                                                      \
    {"gather/" #n "/" place,                                                                       \
     GATHER(#n),                                                                                   \
     0,                                                                                            \
     {VECTOR(T, ZERO, N), VECTOR(I32, PERMUTATION, N), VECTOR(T, ANY, N)}},                        \
    {                                                                                              \
        "scatter/" #n "/" place, SCATTER(#n), 0,                                                   \
        {                                                                                          \
            VECTOR(T, ZERO, N), VECTOR(I32, PERMUTATION, N), VECTOR(T, ANY, N)                     \
        }                                                                                          \
    }
#define TABLES(name, n, T, index, entries)                                                         \
    {                                                                                              \
        "table/" name, TABLE(n, index), 0,                                                         \
        {                                                                                          \
            VECTOR(T, ZERO, TABLE_N), VECTOR(U8, ANY, TABLE_N), VECTOR(T, ANY, entries)            \
        }                                                                                          \
    }
#define PIXELS_OF(name, kernel, T, fill) \
    {name, kernel, 0, {VECTOR(U8, ZERO, PIXELS_IN), VECTOR(T, fill, PIXELS_IN)}}
#define COUNTS(name, n, T, value, fill)                                                            \
    {name, HISTOGRAM(n, value), 0, {VECTOR(I32, ZERO, BINS), VECTOR(T, fill, PIXELS_IN)}}
#define BLURS(place, Y, X)                                                                         \
    {"blur/interleaved/" place, BLUR("0", "1", "2", AT_INTERLEAVED), 0,                            \
     {{QN_U8, FILL_ZERO, 3, 0, {Y, X, 3}}, {QN_U8, FILL_ANY, 3, 0, {Y, X, 3}}}},                   \
    {"blur/planar/" place, BLUR("1", "2", "0", AT_PLANAR), 0,                                      \
     {{QN_U8, FILL_ZERO, 3, 0, {3, Y, X}}, {QN_U8, FILL_ANY, 3, 0, {3, Y, X}}}}

const data_case data_cases[] = {
    COPIES(u8, U8),
    COPIES(u16, U16),
    COPIES(f32, F32),
    COPIES(f64, F64),
    SUMS(f32, F32, indexed),
    SUMS(f32, F32, striped),
    SUMS(f64, F64, indexed),
    SUMS(f64, F64, striped),
    POWERS(f32, F32, 1024),
    POWERS(f64, F64, 1024),
    POWERS(f32, F32, 4096),
    POWERS(f64, F64, 4096),
    SPREADS(f32, F32, "in", SPREAD_IN),
    SPREADS(f64, F64, "in", SPREAD_IN),
    SPREADS(f32, F32, "out", SPREAD_OUT),
    SPREADS(f64, F64, "out", SPREAD_OUT),
    DOTS("f32/in", DOT("f32", "f32", "striped"), F32, F32, DOT_IN),
    DOTS("f64/in", DOT("f64", "f64", "striped"), F64, F64, DOT_IN),
    DOTS("f32/out", DOT("f32", "f32", "striped"), F32, F32, DOT_OUT),
    DOTS("f64/out", DOT("f64", "f64", "striped"), F64, F64, DOT_OUT),
    DOTS("mixed/in", DOT("f64", "f32", "striped"), F64, F32, DOT_IN),
    DOTS("u8/in", DOT("i32", "u8", ""), I32, U8, DOT_IN),
    {"columns/mixed/in",
     COLUMNS,
     1,
     {VECTOR(F64, ZERO, SUM_IN), {QN_F32, FILL_ANY, 2, 0, {SUM_IN_ROWS, SUM_IN}}}},
    GRID("in", GRID_IN),
    GRID("out", GRID_OUT),
    ROWS("in", ROWS_IN),
    ROWS("out", ROWS_OUT),
    LISTS(f32, F32, "in", LIST_IN),
    LISTS(f64, F64, "in", LIST_IN),
    LISTS(f32, F32, "out", LIST_OUT),
    LISTS(f64, F64, "out", LIST_OUT),
    TABLES("256", "f32", F32, "%a", 256),
    TABLES("16", "f32", F32, "%low", 16),
    TABLES("u8", "u8", U8, "%a", 256),
    PIXELS_OF("bins/f32", BINS_F32, F32, UNIT),
    {"bins/u8", BINS_U8, 0, {VECTOR(U8, ZERO, PIXELS_IN), {QN_U8, FILL_ANY, 2, 0, {PIXELS_IN, 3}}}},
    COUNTS("histogram/f32", "f32", F32, BIN, UNIT),
    COUNTS("histogram/u8", "u8", U8, " %o: u8 = load x[%i];", ANY),
    COUNTS("histogram/u8/shared", "u8", U8, " %o: u8 = load x[%i];", ANY),
    COUNTS("histogram/i32/checked", "i32", I32, " %o: i32 = load x[%i];", BINS),
    COUNTS("histogram/i32/unchecked", "i32", I32, " %o: i32 = load x[%i];", BINS),
    DEPOSITS("checked"),
    DEPOSITS("unchecked"),
    PIXELS_OF("scale/u8", SCALE_U8, U8, ANY),
    PIXELS_OF("scale/f32", SCALE_F32, U8, ANY),
    BLURS("in", BLUR_IN_Y, BLUR_IN_X),
    BLURS("out", BLUR_OUT_Y, BLUR_OUT_X),
    {.name = NULL},
};
