/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_clamp.c: what clamped indices cost inside: a kernel with its neighbours clamped at
 * the edges of x, against the kernel on an x that has these neighbours, where nothing is clamped.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOAL 0.95

typedef struct clamp_case {
    const char *name, *text;
    int dtype, rank;
    int64_t extent[2];
} clamp_case;

#define HEAD                                                                                       \
    "%0: i64 = const 0; %1: i64 = const 1; %n: i64 = extent y, 0; %i: i64 = parallel %0, %n;\n"
#define BESIDE "%u: i64 = sub %i, %1; %d: i64 = add %i, %1;\n"
#define THREE(T)                                                                                   \
    "kernel \"blur\" {\nview x: " T "[1]; view y: " T "[1];\n" HEAD BESIDE "%a: " T                \
    " = load x[%u]; %b: " T " = load x[%i]; %c: " T " = load x[%d]; %ab: " T                       \
    " = add %a, %b; %s: " T " = add %ab, %c; store y[%i], %s;\n}\n"
#define FIVE(T)                                                                                    \
    "kernel \"plus\" {\nview x: " T "[2]; view y: " T "[2];\n" HEAD                                \
    "%m: i64 = extent y, 1; %j: i64 = parallel %0, %m;\n" BESIDE                                   \
    "%l: i64 = sub %j, %1; %r: i64 = add %j, %1;\n%a: " T " = load x[%u, %j]; %b: " T              \
    " = load x[%d, %j]; %c: " T " = load x[%i, %l]; %e: " T " = load x[%i, %r]; %f: " T            \
    " = load x[%i, %j]; %ab: " T " = add %a, %b; %ce: " T " = add %c, %e; %abce: " T               \
    " = add %ab, %ce; %s: " T " = add %abce, %f; store y[%i, %j], %s;\n}\n"

static const clamp_case cases[] = {{"clamp/three/f32", THREE("f32"), QN_F32, 1, {100000, 0}},
                                   {"clamp/three/u8", THREE("u8"), QN_U8, 1, {1000000, 0}},
                                   {"clamp/five/f32", FIVE("f32"), QN_F32, 2, {1000, 4000}},
                                   {"clamp/five/f64", FIVE("f64"), QN_F64, 2, {1000, 4000}},
                                   {"clamp/five/i16", FIVE("i16"), QN_I16, 2, {1000, 8000}}};

static void run_call(const void *call)
{
    (void)qn_run((qn_call *)(uintptr_t)call, NULL);
}

/** Both views of a case, x with one more element at every side or without. */
static bool make_call(bench *b, const clamp_case *c, const qn_kernel *k, bool is_clamped, void *x,
                      void *y, qn_call **out, qn_error *err)
{
    int64_t extent[2], lower[2] = {is_clamped ? 0 : -1, is_clamped ? 0 : -1};
    qn_layout inner = {0}, plain = {0}, outer = {0};
    qn_view views[2];
    qn_options o = bench_options(b);
    o.checks = QN_CHECKS_CLAMP;
    for (int d = 0; d < c->rank; d++)
        extent[d] = c->extent[d] + (is_clamped ? 0 : 2);
    bool is_ok = qn_layout_right(c->rank, c->extent, &inner, err) == QN_OK &&
                 qn_layout_right(c->rank, extent, &plain, err) == QN_OK &&
                 qn_layout_offset(&plain, lower, &outer, err) == QN_OK &&
                 qn_view_wrap("x", (char *)x, c->dtype, &outer, 0, &views[0], err) == QN_OK &&
                 qn_view_wrap("y", y, c->dtype, &inner, 0, &views[1], err) == QN_OK;
    const qn_arg args[] = {qn_arg_view(&views[0]), qn_arg_view(&views[1])};
    return is_ok && qn_prepare(b->context, k, 2, args, &o, out, err) == QN_OK;
}

static void run_case(bench *b, const clamp_case *c)
{
    qn_error error = {0};
    qn_kernel *k = NULL;
    qn_call *clamped = NULL, *free_of_it = NULL;
    bench_memory m = {0};
    size_t bytes =
        (size_t)qn_dtype_bytes(c->dtype) * (size_t)(c->extent[0] + 2) * (size_t)(c->extent[1] + 2);
    const size_t sizes[] = {bytes, bytes};
    bool is_ok = qn_kernel_parse(c->text, strlen(c->text), &k, &error) == QN_OK &&
                 bench_memory_make(&m, 2, sizes, &error) == QN_OK &&
                 make_call(b, c, k, true, m.at[0], m.at[1], &clamped, &error) &&
                 make_call(b, c, k, false, m.at[0], m.at[1], &free_of_it, &error);
    bench_line line = {.name = c->name, .group = GROUP_COST, .goal = GOAL, .short_below = GOAL};
    if (is_ok)
        bench_in_turns(b, &line, clamped, run_call, free_of_it);
    else
        bench_wrong(b, c->name, "%s", error.message);
    qn_call_release(clamped);
    qn_call_release(free_of_it);
    bench_memory_free(&m);
    qn_kernel_release(k);
}

void bench_clamp_cases(bench *b)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases && !b->assembly_of; i++)
        if (bench_wants(b, cases[i].name))
            run_case(b, &cases[i]);
}
