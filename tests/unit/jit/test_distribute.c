/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_distribute.c: which reduces are computed apart from the iterations that share them, which
 * dimensions are cut into sections, and what the pieces are. Results are those of
 * tests/cases/reduce/shared_*.case and tests/cases/layout/sections.case. No code generator is
 * needed.
 */
#include "jit/schedule/piece.h"
#include "tests/plan.h"
#include "tests/tap.h"

#include <stdio.h>

/* `body` with the indices i, j of a matrix y and the points k of x's rows, l of its columns. */
#define KERNEL(body)                                                                               \
    "kernel \"shared\" { view x: f64[2]; view y: f64[2]; %z: i64 = const 0; %m: i64 = extent x, "  \
    "0;\n"                                                                                         \
    "%n: i64 = extent x, 1; %i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n;\n"               \
    "%l: i64 = reduction %z, %m; %k: i64 = reduction %z, %n;\n" body "}"
#define ROW "%r: f64 = reduce sum over %k { %a: f64 = load x[%i, %k]; yield %a; };\n"
#define COLUMN "%c: f64 = reduce sum over %l { %d: f64 = load x[%l, %j]; yield %d; };\n"
#define ALL "%t: f64 = reduce max over %l, %k { %e: f64 = load x[%l, %k]; yield %e; };\n"

static double memory[2][100 * 90];

/** The pieces of a kernel on two matrices of m x n, or on one that is both; NULL if there are none.
 */
static qn_piece *pieces_of(const char *text, int64_t m, int64_t n, bool is_one, const qn_options *o,
                           int isa)
{
    qn_error err = {0};
    qn_kernel *k = NULL;
    qn_facts f;
    qn_domain domain;
    uint8_t proved[16] = {0};
    const int64_t extents[2] = {m, n};
    qn_view v[2] = {{.data = memory[0], .dtype = QN_F64},
                    {.data = memory[is_one ? 0 : 1], .dtype = QN_F64}};
    const qn_policy policy = {0};
    for (int p = 0; p < 2; p++)
        qn_layout_right(2, extents, &v[p].layout, NULL);
    qn_arg args[2] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    qn_arg_value values[2] = {{.layout = &v[0].layout}, {.layout = &v[1].layout}};
    if (qn_kernel_parse(text, strlen(text), &k, &err) ||
        qn__domain(k, values, false, &domain, &err) ||
        !qn__prove_bounds(k, values, &domain, proved) ||
        qn__facts_collect(k, &(qn_launched){args, &domain, proved, o, &policy, isa, is_one}, &f,
                          &err)) {
        tap_ok(false, "%s", err.message);
        qn_kernel_release(k);
        return NULL;
    }
    qn__select_sides(k, &f);
    qn__share_loads(k, &f);
    qn_piece *p = qn__pieces_of(k, &f, true);
    qn__facts_release(&f);
    qn_kernel_release(k);
    return p;
}

static bool has_pieces(const char *text, const qn_options *o, int isa)
{
    qn_piece *p = pieces_of(text, 100, 90, false, o, isa);
    bool has = p != NULL;
    qn__piece_release(p);
    return has;
}

static void test_rows(void)
{
    static const char text[] = KERNEL(ROW "store y[%i, %j], %r;");
    qn_piece *p = pieces_of(text, 100, 90, false, NULL, QN_ISA_V4);
    tap_ok(p && p->distribution.n == 1 && p->distribution.dims == 1 &&
               p->distribution.block_dim == 0,
           "a row's sum is computed once for the row");
    tap_ok(p && p->split_dim == 0 && p->part[0]->planned.plan.split_dim == 0 &&
               p->part[1]->planned.plan.split_dim == 0,
           "threads divide the rows, and each part takes the rows that it is given");
    tap_ok(
        p && p->part[0]->kernel->n_accesses == 2 && p->part[1]->kernel->n_accesses == 2,
        "one part loads the points and stores the result, the other loads the result and stores");
    tap_ok(p && p->part[1]->planned.plan.lane_dim == 1, "the lanes of the rest run along the row");
    qn_text plan = {0};
    if (p)
        qn__piece_print(p, &plan);
    tap_ok(plan.data && strstr(plan.data, "distributed 1 reduces, in blocks of 64 of dimension 0"),
           "the plan says so");
    qn__text_release(&plan);
    qn__piece_release(p);
}

static void test_inside_each_other(void)
{
    static const char text[] =
        KERNEL(ROW COLUMN ALL "%u: f64 = add %r, %c; %v: f64 = add %u, %t; store y[%i, %j], %v;");
    qn_piece *p = pieces_of(text, 100, 90, false, NULL, QN_ISA_V4);
    const qn_piece *rest = p ? p->part[1] : NULL, *inner = rest ? rest->part[1] : NULL;
    tap_ok(p && p->distribution.dims == 0 && p->is_free,
           "what all iterations share is computed once");
    tap_ok(rest && rest->part[0] && rest->distribution.dims == 1, "then what a row shares");
    tap_ok(inner && inner->part[0] && inner->distribution.dims == 2, "then what a column shares");
    tap_ok(inner && inner->part[1] && inner->part[1]->planned.plan.second_dim == 0 &&
               inner->part[1]->planned.plan.second_granule == 1,
           "and what is left takes a range of rows and one of columns");
    qn__piece_release(p);
}

static void test_refused(void)
{
    const qn_options off = {.bytes = sizeof off, .plan = PLAN_WITH(.distribute = -1)};
    const qn_options named = {.bytes = sizeof named, .plan = PLAN_WITH(.lane_dim = 1)};
    static const char row[] = KERNEL(ROW "store y[%i, %j], %r;");
    tap_ok(has_pieces(row, NULL, QN_ISA_V3), "x86-64-v3 distributes");
    tap_ok(!has_pieces(row, &off, QN_ISA_V4), "distribute=-1 does not");
    tap_ok(!has_pieces(row, &named, QN_ISA_V4), "nor does a plan that names a dimension");
    tap_ok(!has_pieces(row, NULL, QN_ISA_SM90), "nor is PTX distributed");
    qn_piece *p = pieces_of(row, 100, 90, true, NULL, QN_ISA_V4);
    tap_ok(!p, "nor a launch that runs in iteration order");
    qn__piece_release(p);
    p = pieces_of(row, 3, 2, false, NULL, QN_ISA_V4);
    tap_ok(!p, "nor what two calls would cost more than");
    qn__piece_release(p);
    tap_ok(
        !has_pieces(
            KERNEL(
                "%r: f64 = reduce sum over %k { %a: f64 = load x[%i, %k]; %b: f64 = load x[%k, %j];"
                "%p: f64 = mul %a, %b; yield %p; }; store y[%i, %j], %r;"),
            NULL, QN_ISA_V4),
        "a product shares nothing");
    tap_ok(!has_pieces(KERNEL("%r: f64 = reduce sum over %k { %q: i64 = add %k, %k; %a: f64 = load "
                              "x[%i, %q]; yield %a; };"
                              "store y[%i, %j], %r;"),
                       NULL, QN_ISA_V4),
           "what may fail stays where it is");
}

/* ---------------------------------------------------------------- sections */

#define RING                                                                                       \
    KERNEL("%one: i64 = const 1; %b: i64 = add %j, %one; %q: i64 = rem %b, %n;"                    \
           "%a: f64 = load x[%i, %q]; store y[%i, %j], %a;")

static bool has_op(const qn_kernel *k, int op)
{
    for (uint32_t i = k->body; i < k->n_insts; i++)
        if (k->inst[i].op == QN_I_PURE + op)
            return true;
    return false;
}

static void test_sections(void)
{
    qn_piece *p = pieces_of(RING, 100, 90, false, NULL, QN_ISA_V4);
    tap_ok(p && p->sections.n == 2 && p->n_parts == 2 && p->sections.dim == 1,
           "the dimension of a periodic index is cut");
    tap_ok(p && p->sections.of[0].begin == 89 && p->sections.of[0].end == 90 &&
               p->sections.of[1].begin == 0 && p->sections.of[1].end == 89,
           "where it begins anew; the interior is the last");
    tap_ok(p && !has_op(p->part[0]->kernel, QN_OP_rem) && !has_op(p->part[1]->kernel, QN_OP_rem),
           "no section has a remainder");
    tap_ok(p && p->split_dim == 0 && p->part[1]->planned.plan.split_dim == 0 &&
               p->part[1]->planned.plan.lane_dim == 1,
           "threads divide the rows, lanes run along them");
    qn_text plan = {0};
    if (p)
        qn__piece_print(p, &plan);
    tap_ok(plan.data && strstr(plan.data, "cut dimension 1\n-- from 89 up to 90\n"),
           "the plan says so");
    qn__text_release(&plan);
    qn__piece_release(p);
    p = pieces_of(KERNEL("%low: i64 = const -1; %high: i64 = const 2; %zero: i64 = const 0;"
                         "%b: i64 = add %i, %low; %c: i64 = max %b, %zero;"
                         "%d: i64 = add %j, %high; %r: i64 = rem %d, %n;"
                         "%a: f64 = load x[%c, %r]; store y[%i, %j], %a;"),
                  100, 90, false, NULL, QN_ISA_V4);
    const qn_piece *inner = p ? p->part[p->n_parts - 1] : NULL;
    tap_ok(p && p->sections.dim == 1 && p->sections.of[1].end == 88 && inner->sections.dim == 0 &&
               inner->sections.of[1].begin == 1 && !has_op(inner->part[1]->kernel, QN_OP_max) &&
               !has_op(inner->part[1]->kernel, QN_OP_rem),
           "limits and remainders of two dimensions");
    qn__piece_release(p);
}

/** A ring in both dimensions: rims on both sides of each. */
static void test_rims(void)
{
    qn_piece *p = pieces_of(
        KERNEL("%one: i64 = const 1; %b: i64 = add %i, %one; %q: i64 = rem %b, %m;"
               "%c: i64 = sub %i, %one; %d: i64 = add %c, %m; %e: i64 = rem %d, %m;"
               "%f: i64 = add %j, %one; %g: i64 = rem %f, %n;"
               "%h: i64 = sub %j, %one; %o: i64 = add %h, %n; %p: i64 = rem %o, %n;"
               "%s: f64 = load x[%q, %j]; %t: f64 = load x[%e, %j]; %u: f64 = load x[%i, %g];"
               "%v: f64 = load x[%i, %p]; %w: f64 = add %s, %t; %aa: f64 = add %u, %v;"
               "%ab: f64 = add %w, %aa; store y[%i, %j], %ab;"),
        100, 90, false, NULL, QN_ISA_V4);
    const qn_piece *inner = p && p->n_parts == 3 ? p->part[2] : NULL;
    tap_ok(p && p->n_parts == 3 && p->sections.of[0].begin == 0 && p->sections.of[0].end == 1 &&
               p->sections.of[1].begin == 89 && p->sections.of[1].end == 90,
           "both rims of a dimension stand before the interior");
    const qn_piece *rows = inner && inner->n_parts == 3 ? inner->part[0] : NULL;
    tap_ok(rows && rows->n_parts == 0 && !has_op(rows->kernel, QN_OP_rem) &&
               rows->facts.end[0].value == 1,
           "indices of a rim have no remainder");
    tap_ok(rows && rows->planned.plan.lane_dim == 1 && rows->planned.plan.unroll == 1 &&
               inner->part[2]->planned.plan.unroll > 1,
           "rims of whole rows have lanes, and one vector in a step");
    qn__piece_release(p);
}

static void test_uncut(void)
{
    const qn_options off = {.bytes = sizeof off, .plan = PLAN_WITH(.distribute = -1)};
    tap_ok(!has_pieces(RING, &off, QN_ISA_V4), "distribute=-1 cuts nothing");
    tap_ok(!has_pieces(RING, NULL, QN_ISA_SM90), "nor is a grid cut");
    qn_piece *p = pieces_of(RING, 100, 90, true, NULL, QN_ISA_V4);
    tap_ok(!p, "nor a launch that runs in iteration order");
    qn__piece_release(p);
    p = pieces_of(RING, 3, 9, false, NULL, QN_ISA_V4);
    tap_ok(!p, "nor what is short");
    qn__piece_release(p);
    tap_ok(!has_pieces(KERNEL("%b: i64 = min %i, %j; %a: f64 = load x[%i, %b];"
                              "store y[%i, %j], %a;"),
                       NULL, QN_ISA_V4),
           "nor a triangle");
    tap_ok(!has_pieces(KERNEL("%two: i64 = const 7; %b: i64 = rem %j, %two;"
                              "%a: f64 = load x[%i, %b]; store y[%i, %j], %a;"),
                       NULL, QN_ISA_V4),
           "nor a dimension of many periods");
}

int main(void)
{
    test_rows();
    test_inside_each_other();
    test_refused();
    test_sections();
    test_rims();
    test_uncut();
    return tap_done();
}
