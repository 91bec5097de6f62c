/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_compile_texts.c: kernels of any size whose compile is timed (bench_cases_compile.c):
 * straight bodies, nests of branches, checked gathers, short reduces, calls of one function.
 */
#include "bench_compile.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A quarter of the operations are loads of 15 views and neighbouring elements; each other one takes
 * the value before it and two of the last twelve; none is left out. */
void bench_print_straight(char *at, int n)
{
    static const char *const op[] = {"add", "mul", "sub", "fma", "min", "fma"};
    enum { VIEWS = 15, NEIGHBOURS = 4, RECENT = 12 };
    uint32_t random = 1;
    at += sprintf(at, "kernel \"straight\" contract {\n  view o: f32[1];\n");
    for (int v = 0; v < VIEWS; v++)
        at += sprintf(at, "  view a%d: f32[1] read_only;\n", v);
    at += sprintf(at,
                  "  %%0: i64 = const 0; %%e: i64 = extent o, 0; %%n0: i64 = const %d; %%f: i64 = "
                  "sub %%e, %%n0;\n"
                  "  %%i0: i64 = parallel %%0, %%f;\n",
                  NEIGHBOURS);
    for (int d = 1; d < NEIGHBOURS; d++)
        at += sprintf(at, "  %%n%d: i64 = const %d; %%i%d: i64 = add %%i0, %%n%d;\n", d, d, d, d);
    for (int i = 0; i < n; i++) {
        random = random * 1664525u + 1013904223u;
        int a = i % 4 == 1 ? 2 : (int)(random >> 8) % RECENT + 1,
            b = (int)(random >> 16) % RECENT + 1;
        int o = (int)(random >> 24) % 6;
        if (i < RECENT || i % 4 == 0) {
            at += sprintf(at, "  %%v%d: f32 = load a%d[%%i%d];\n", i, (int)(random >> 10) % VIEWS,
                          (int)(random >> 20) % NEIGHBOURS);
            continue;
        }
        at += sprintf(at, "  %%v%d: f32 = %s %%v%d, %%v%d", i, op[o], i - 1, i - a);
        at += strcmp(op[o], "fma") ? sprintf(at, ";\n") : sprintf(at, ", %%v%d;\n", i - b);
    }
    sprintf(at, "  store o[%%i0], %%v%d;\n}\n", n - 1);
}

static char *print_rows(char *at, const char *name)
{
    return at +
           sprintf(at,
                   "kernel \"%s\" {\n  view o: f32[1]; view a: f32[2]; view b: i64[1];\n"
                   "  %%0: i64 = const 0; %%n: i64 = extent o, 0; %%i: i64 = parallel %%0, %%n;\n"
                   "  %%m: i64 = extent a, 1; %%k: i64 = reduction %%0, %%m; %%p: i64 = load "
                   "b[%%i]; %%s0: f32 = const 0.0;\n",
                   name);
}

/* Branches eight deep, of three operations each. */
void bench_print_branches(char *at, int n)
{
    enum { DEEP = 8 };
    at = print_rows(at, "branches");
    at += sprintf(at, "  %%x: f32 = load a[%%i, %%0];\n");
    for (int i = 0; i < n; i++) {
        int from = i % DEEP ? i - 1 : i, before = i / DEEP * DEEP;
        const char *value = i % DEEP ? "x" : "s";
        at += sprintf(at, "  %%c%d: f32 = const %d.5; %%t%d: bool = gt %%x, %%c%d;\n", i, i, i, i);
        at += sprintf(at, "  %%%s%d: f32 = if %%t%d {\n  %%x%d: f32 = add %%%s%d, %%c%d;\n",
                      i % DEEP ? "y" : "r", i, i, i, value, from, i);
        if (i % DEEP < DEEP - 1 && i + 1 < n)
            continue;
        at += sprintf(at, "  yield %%x%d; } else { yield %%s%d; };\n", i, before);
        for (int outer = i - 1; outer >= before; outer--)
            at += sprintf(
                at, "  %%z%d: f32 = mul %%y%d, %%c%d; yield %%z%d; } else { yield %%s%d; };\n",
                outer, outer + 1, outer, outer, before);
        at += sprintf(at, "  %%s%d: f32 = add %%s%d, %%r%d;\n", i + 1, before, before);
    }
    sprintf(at, "  store o[%%i], %%s%d;\n}\n", n);
}

/* Each index is loaded, moved and tested. */
void bench_print_gathers(char *at, int n)
{
    at = print_rows(at, "gathers");
    for (int i = 0; i < n; i++)
        at += sprintf(at,
                      "  %%c%d: i64 = const %d; %%q%d: i64 = mul %%p, %%c%d; %%x%d: f32 = load "
                      "a[%%q%d, %%0];\n"
                      "  %%s%d: f32 = add %%s%d, %%x%d;\n",
                      i, i + 2, i, i, i, i, i + 1, i, i);
    sprintf(at, "  store o[%%i], %%s%d;\n}\n", n);
}

/* Rows of 100 points, one after the other. */
void bench_print_reduces(char *at, int n)
{
    at = print_rows(at, "reduces");
    for (int i = 0; i < n; i++)
        at += sprintf(
            at,
            "  %%c%d: f32 = const %d.5;\n  %%r%d: f32 = reduce sum over %%k { %%x%d: f32 = load "
            "a[%%i, %%k];"
            " %%y%d: f32 = mul %%x%d, %%c%d; %%z%d: f32 = sub %%y%d, %%s%d; yield %%z%d; };\n"
            "  %%s%d: f32 = add %%s%d, %%r%d;\n",
            i, i, i, i, i, i, i, i, i, i, i, i + 1, i, i);
    sprintf(at, "  store o[%%i], %%s%d;\n}\n", n);
}

/* Of the elements of o, each times a constant. */
static void print_functions(char *at, const char *function, int n)
{
    at = print_rows(at, function);
    at += sprintf(at, "  %%x: f32 = load o[%%i];\n");
    for (int i = 0; i < n; i++)
        at += sprintf(
            at,
            "  %%y%d: f32 = mul %%x, %d.5; %%f%d: f32 = %s %%y%d; %%s%d: f32 = add %%s%d, %%f%d;\n",
            i, i, i, function, i, i + 1, i, i);
    sprintf(at, "  store o[%%i], %%s%d;\n}\n", n);
}

void bench_print_roots(char *at, int n)
{
    print_functions(at, "sqrt", n);
}

void bench_print_exps(char *at, int n)
{
    print_functions(at, "exp", n);
}

void bench_print_logs(char *at, int n)
{
    print_functions(at, "log", n);
}
