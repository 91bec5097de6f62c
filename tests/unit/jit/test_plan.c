/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan.c: which plan comes out of which layouts, and that overrides are taken or refused.
 * Plans are data, so no code generator is needed.
 */
#include "jit/schedule/estimate.h"
#include "jit/schedule/forms.h"
#include "jit/schedule/plan.h"
#include "jit/schedule/planned.h"
#include "jit/schedule/search.h"
#include "jit/jit.h"
#include "tests/plan.h"
#include "tests/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char copy2[] =
    "kernel \"copy\" { view x: f32[2]; view y: f32[2];\n"
    "%b0: i64 = lower y, 0; %n0: i64 = extent y, 0; %e0: i64 = add %b0, %n0;\n"
    "%b1: i64 = lower y, 1; %n1: i64 = extent y, 1; %e1: i64 = add %b1, %n1;\n"
    "%i: i64 = parallel %b0, %e0; %j: i64 = parallel %b1, %e1;\n"
    "%v: f32 = load x[%i, %j]; store y[%i, %j], %v; }";
static const char update[] =
    "kernel \"update\" { view x: f32[1]; view y: f32[2]; %z: i64 = const 0;\n"
    "%m: i64 = extent y, 0; %n: i64 = extent y, 1; %i: i64 = parallel %z, %m;\n"
    "%j: i64 = parallel %z, %n; %a: f32 = load x[%j]; %b: f32 = load y[%i, %j];\n"
    "%p: f32 = mul %a, %b; store y[%i, %j], %p; }";
/* x at (step j + 1) / 2 */
static const char quotient[] =
    "kernel \"quotient\" { view x: f32[1]; view y: f32[1]; %%z: i64 = const 0;\n"
    "%%o: i64 = const 1; %%two: i64 = const 2; %%s: i64 = const %d; %%n: i64 = extent y, 0;\n"
    "%%j: i64 = parallel %%z, %%n; %%m: i64 = mul %%s, %%j; %%e: i64 = add %%m, %%o;\n"
    "%%h: i64 = %s %%e, %s; %%a: f32 = load x[%%h]; store y[%%j], %%a; }";
static const char second[] =
    "kernel \"second\" { view x: f32[1]; view y: f32[1]; %z: i64 = const 0; %two: i64 = const 2;\n"
    "%n: i64 = extent x, 0; %h: i64 = div %n, %two; %i: i64 = parallel %z, %h;\n"
    "%j: i64 = mul %i, %two; %a: f32 = load x[%j]; %b: f32 = load y[%j]; %s: f32 = add %a, %b;\n"
    "store y[%j], %s; }";
static const char dot[] =
    "kernel \"dot\" { view x: f64[1]; view y: f64[1]; view s: f64[0];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %k: i64 = reduction %z, %n;\n"
    "%r: f64 = reduce sum over %k { %a: f64 = load x[%k]; %b: f64 = load y[%k];\n"
    "%p: f64 = mul %a, %b; yield %p; }; store s[], %r; }";
static const char matmul[] =
    "kernel \"matmul\" { view a: f64[2]; view b: f64[2]; view c: f64[2];\n"
    "%z: i64 = const 0; %m: i64 = extent c, 0; %n: i64 = extent c, 1; %l: i64 = extent a, 1;\n"
    "%i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n; %k: i64 = reduction %z, %l;\n"
    "%r: f64 = reduce sum over %k { %x: f64 = load a[%i, %k]; %y: f64 = load b[%k, %j];\n"
    "%p: f64 = mul %x, %y; yield %p; }; store c[%i, %j], %r; }";

static const char batch3[] =
    "kernel \"batch\" { view a: f64[3]; view b: f64[3]; view c: f64[3];\n"
    "%z: i64 = const 0; %m: i64 = extent c, 0; %n: i64 = extent c, 1; %l: i64 = extent a, 1; %h: "
    "i64 = extent c, 2;\n"
    "%i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n; %o: i64 = parallel %z, %h; %k: i64 = "
    "reduction %z, %l;\n"
    "%r: f64 = reduce sum over %k { %x: f64 = load a[%i, %k, %o]; %y: f64 = load b[%k, %j, %o];\n"
    "%p: f64 = mul %x, %y; yield %p; }; store c[%i, %j, %o], %r; }";

static const char five[] =
    "kernel \"five\" { view x: f64[2]; view y: f64[2]; %o: i64 = const 1;\n"
    "%m: i64 = extent y, 0; %n: i64 = extent y, 1; %m1: i64 = sub %m, %o; %n1: i64 = sub %n, %o;\n"
    "%i: i64 = parallel %o, %m1; %j: i64 = parallel %o, %n1; %i0: i64 = sub %i, %o; %i2: i64 = add "
    "%i, %o;\n"
    "%a: f64 = load x[%i, %j]; %b: f64 = load x[%i0, %j]; %c: f64 = load x[%i2, %j];\n"
    "%s: f64 = add %a, %b; %t: f64 = add %s, %c; store y[%i, %j], %t; }";
static const char seven[] =
    "kernel \"seven\" { view x: f64[3]; view y: f64[3]; %o: i64 = const 1;\n"
    "%l: i64 = extent y, 0; %m: i64 = extent y, 1; %n: i64 = extent y, 2;\n"
    "%l1: i64 = sub %l, %o; %m1: i64 = sub %m, %o; %n1: i64 = sub %n, %o;\n"
    "%i: i64 = parallel %o, %l1; %j: i64 = parallel %o, %m1; %k: i64 = parallel %o, %n1;\n"
    "%i0: i64 = sub %i, %o; %i2: i64 = add %i, %o; %j0: i64 = sub %j, %o; %j2: i64 = add %j, %o;\n"
    "%a: f64 = load x[%i, %j, %k]; %b: f64 = load x[%i0, %j, %k]; %c: f64 = load x[%i2, %j, %k];\n"
    "%d: f64 = load x[%i, %j0, %k]; %e: f64 = load x[%i, %j2, %k]; %s: f64 = add %a, %b;\n"
    "%t: f64 = add %c, %d; %u: f64 = add %s, %t; %v: f64 = add %u, %e; store y[%i, %j, %k], %v; }";
static const char planes[] =
    "kernel \"planes\" { view x: f32[3]; view y: f32[1]; %z: i64 = const 0; %n: i64 = extent y, "
    "0;\n"
    "%h: i64 = extent x, 0; %w: i64 = extent x, 1; %i: i64 = parallel %z, %n;\n"
    "%k: i64 = reduction %z, %h; %l: i64 = reduction %z, %w;\n"
    "%r: f32 = reduce sum over %k, %l { %v: f32 = load x[%k, %l, %i]; yield %v; }; store y[%i], "
    "%r; }";
static const char number2[] = "kernel \"number\" { view y: f32[2]; %z: i64 = const 0;\n"
                              "%n0: i64 = extent y, 0; %n1: i64 = extent y, 1;\n"
                              "%i: i64 = parallel %z, %n0; %j: i64 = parallel %z, %n1;\n"
                              "%v: f32 = cast %j; store y[%i, %j], %v; }";

/** y[i] = sum over j of a[i, j] in an order. */
#define ROWS(ORDER)                                                                                \
    "kernel \"rows\" { view y: f64[1]; view a: f64[2]; %zero: i64 = const 0; %m: i64 = extent a, " \
    "0;\n"                                                                                         \
    "%n: i64 = extent a, 1; %i: i64 = parallel %zero, %m; %j: i64 = reduction %zero, %n;\n"        \
    "%s: f64 = reduce sum " ORDER                                                                  \
    " over %j { %v: f64 = load a[%i, %j]; yield %v; }; store y[%i], %s; }"

static double storage[64];

/** A view that is only described: its data is never touched. */
static qn_view view(int dtype, int rank, const int64_t *extents, bool left)
{
    qn_view v = {.data = storage, .dtype = dtype};
    if (left)
        qn_layout_left(rank, extents, &v.layout, NULL);
    else
        qn_layout_right(rank, extents, &v.layout, NULL);
    return v;
}

/** Rows with `gap` elements between them. */
static qn_view padded(int dtype, int64_t rows, int64_t columns, int64_t gap)
{
    qn_view v = {.data = storage, .dtype = dtype};
    v.layout.rank = 2;
    v.layout.dim[0] = (qn_dim){0, rows, columns + gap};
    v.layout.dim[1] = (qn_dim){0, columns, 1};
    return v;
}

/** Kernel and facts as the provider has them before the plan is made. */
static bool facts_of(const char *text, qn_view *views, int n, const qn_options *o, int isa,
                     bool ordered, qn_kernel **k, qn_facts *f)
{
    qn_error err = {0};
    qn_arg args[4];
    qn_arg_value values[4] = {{0}};
    qn_domain domain;
    uint8_t proved[16] = {0};
    for (int i = 0; i < n; i++) {
        args[i] = qn_arg_view(&views[i]);
        values[i].layout = &views[i].layout;
    }
    qn_policy policy = {0};
    if (qn_kernel_parse(text, strlen(text), k, &err) ||
        qn__domain(*k, values, false, &domain, &err) ||
        !qn__prove_bounds(*k, values, &domain, proved) ||
        qn__facts_collect(*k, &(qn_launched){args, &domain, proved, o, &policy, isa, ordered}, f,
                          &err)) {
        tap_ok(false, "plan: %s", err.message);
        return false;
    }
    qn__select_sides(*k, f);
    qn__share_loads(*k, f);
    qn__collapse(*k, f);
    return true;
}

/** The plan alone. */
static void make_plan(const qn_kernel *k, const qn_facts *f, qn_plan *out)
{
    qn_planned p;
    qn__planned_make(k, f, &p);
    *out = p.plan;
    qn__planned_release(&p);
}

static qn_plan plan_of(const char *text, qn_view *views, int n, const qn_options *o, int isa,
                       bool ordered)
{
    qn_kernel *k = NULL;
    qn_facts f;
    qn_plan p = {0};
    if (!facts_of(text, views, n, o, isa, ordered, &k, &f))
        return p;
    make_plan(k, &f, &p);
    qn__facts_release(&f);
    qn_kernel_release(k);
    return p;
}

/** Accesses that are left of a kernel of three vectors. */
static int accesses_of(const char *body, qn_view last, bool ordered)
{
    char text[600];
    int64_t n[1] = {100};
    qn_view v[3] = {view(QN_F32, 1, n, false), view(QN_F32, 1, n, false), last};
    qn_kernel *k = NULL;
    qn_facts f;
    snprintf(text, sizeof text,
             "kernel \"k\" { view o: f32[1]; view a: f32[1]; view b: f32[1]; %%one: i64 = const 1; "
             "%%n: i64 = extent o, 0;\n"
             "%%i: i64 = parallel %%one, %%n; %%m: i64 = sub %%i, %%one; %s }",
             body);
    if (!facts_of(text, v, 3, NULL, QN_ISA_V4, ordered, &k, &f))
        return -1;
    int left = f.n_accesses == k->n_accesses ? (int)f.n_accesses : -1;
    if (left > 0 && k->access[left - 1].site + 1 < k->n_accesses)
        left = -1; /* the last one keeps its number */
    qn__facts_release(&f);
    qn_kernel_release(k);
    return left;
}

static void test_sharing(void)
{
    static const char twice[] =
        "%x: f32 = load a[%i]; store o[%i], %x; %y: f32 = load a[%i]; store b[%i], %y;";
    static const char apart[] = "%x: f32 = load a[%i]; %w: f32 = load a[%m]; store o[%i], %x;\n"
                                "%y: f32 = load a[%i]; %s: f32 = add %y, %w; store b[%i], %s;";
    static const char own[] =
        "%x: f32 = load o[%i]; store o[%i], %x; %y: f32 = load o[%i]; store b[%i], %y;";
    static const char before[] =
        "%x: f32 = load a[%i]; %q: i64 = add %m, %one; %y: f32 = load a[%q];\n"
        "%s: f32 = add %x, %y; store o[%i], %s;";
    static const char around[] =
        "%x: f32 = load b[%i]; store o[%i], %x; %y: f32 = load b[%i]; store a[%i], %y;";
    int64_t n[1] = {100}, far[1] = {2}, longer[1] = {101};
    qn_view same = view(QN_F32, 1, n, false), strided = same;
    strided.layout.dim[0].stride = far[0];
    tap_is_int(accesses_of(before, same, false), 2, "loads of one element are one");
    tap_is_int(accesses_of(before, same, true), 3, "not in iteration order");
    tap_is_int(accesses_of(twice, same, false), 4,
               "not across a store to what may be the same view");
    tap_is_int(accesses_of(apart, same, false), 4,
               "but where another index shows that it is another view");
    tap_is_int(accesses_of(own, strided, false), 4, "not across a store to the view itself");
    tap_is_int(accesses_of(around, same, false), 4, "nor to one with the same layout");
    tap_is_int(accesses_of(around, strided, false), 3, "but to one with other strides");
    tap_is_int(accesses_of(around, view(QN_F32, 1, longer, false), false), 3,
               "or other extents: a launch of such views that overlap runs in order");
}

/** How many `if` are left of a kernel of rows that combines what `value` says; its lanes. */
static int branches_of(const char *type, const char *what, const char *value, int *lane_dim)
{
    char text[600];
    int64_t n[1] = {100}, m[2] = {100, 200};
    qn_view v[2] = {view(QN_F32, 2, m, false), view(QN_I64, 1, n, false)};
    qn_kernel *k = NULL;
    qn_facts f;
    qn_plan p;
    int left = 0;
    snprintf(text, sizeof text,
             "kernel k (x: f32[,], y: i64[]) { for all i in y {\n"
             "t: %s = %s j in dim(x, 1) of %s\n y[i] = i64(t) } }",
             type, what, value);
    if (!facts_of(text, v, 2, NULL, QN_ISA_V4, false, &k, &f))
        return -1;
    make_plan(k, &f, &p);
    *lane_dim = p.lane_dim;
    for (uint32_t i = k->body; i < k->n_insts; i++)
        left += k->inst[i].op == QN_I_IF;
    qn__facts_release(&f);
    qn_kernel_release(k);
    return left;
}

/** Sides that only compute are selected, and rows are lanes. */
static void test_selected(void)
{
    int lanes;
    tap_is_int(branches_of("i64", "sum", "x[i, j] < 1 || x[i, j] > 2 ? i64(1) : i64(0)", &lanes), 0,
               "conditions of two parts have no branch");
    tap_is_int(lanes, 1, "... so that lanes run along the row");
    tap_is_int(branches_of("i64", "sum", "x[i, j] < 1 && x[i, 3] > 2 ? i64(1) : i64(0)", &lanes), 0,
               "nor do those that load what is in range");
    tap_is_int(
        branches_of("i64", "sum", "j < 199 && x[i, j + 1] > 2 ? i64(1) : i64(0)", &lanes), 1,
        "what only its condition keeps in range stays in a branch");
    tap_is_int(branches_of("i64", "sum", "x[i, j] < 1 ? i64(exp(x[i, j])) : 0", &lanes), 1,
               "and so does a side that costs more than a branch");
    tap_is_int(branches_of("bool", "or", "x[i, j] < 1", &lanes), 0, "truth values");
    tap_is_int(lanes, 1, "... are combined in lanes along the row, too");
}

static void test_layouts(void)
{
    int64_t e[2] = {100, 64}, odd[2] = {101, 63};
    qn_view right[2] = {padded(QN_F32, 100, 64, 1), padded(QN_F32, 100, 64, 1)};
    qn_view left[2] = {view(QN_F32, 2, odd, true), view(QN_F32, 2, odd, true)};
    qn_view mixed[2] = {right[0], view(QN_F32, 2, e, true)};
    qn_plan p = plan_of(copy2, right, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 1, "right: lanes run over the last dimension");
    tap_is_int(p.width, 16, "16 lanes of f32 on v4");
    tap_is_int(p.remainder, QN_TAIL_NONE, "64 iterations leave no remainder");
    tap_is_int(p.order[0], 0, "right: the first dimension is outside");
    tap_is_int(p.split_dim, 0, "threads divide the outer dimension");
    p = plan_of(copy2, left, 2, NULL, QN_ISA_V3, false);
    tap_is_int(p.lane_dim, 0, "left: lanes run over the first dimension");
    tap_is_int(p.width, 8, "8 lanes of f32 on v3");
    tap_is_int(p.remainder, QN_TAIL_SCALAR, "v3: what is left runs one by one");
    p = plan_of(copy2, mixed, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 0, "mixed: the store's unit stride weighs more");
    p = plan_of(copy2, right, 2, NULL, QN_ISA_V4, true);
    tap_ok(p.lane_dim == -1 && p.width == 1 && p.order[0] == 0 && p.order[1] == 1 &&
               p.split_dim == -1,
           "overlapping views: scalar code in declared order on one thread");
}

/** Short reduces have no loops as long as all of them together are small. */
static void test_straight(void)
{
    static const char text[] =
        "kernel \"sums\" {\n  view x: f64[2]; view y: f64[2]; view z: f64[1];\n"
        "  %0: i64 = const 0; %n: i64 = extent x, 0; %m: i64 = extent x, 1;\n"
        "  %i: i64 = parallel %0, %n; %j: i64 = reduction %0, %m;\n"
        "  %a: f64 = reduce sum over %j { %x: f64 = load x[%i, %j]; yield %x; };\n"
        "  %b: f64 = reduce max over %j { %y: f64 = load y[%i, %j]; yield %y; };\n"
        "  %c: f64 = add %a, %b;\n  store z[%i], %c;\n}\n";
    int64_t m[2] = {40, 40};
    qn_view w[3] = {view(QN_F64, 2, m, false), view(QN_F64, 2, m, false),
                    view(QN_F64, 1, m, false)};
    tap_is_int(plan_of(text, w, 3, NULL, QN_ISA_V4, false).straight, 64,
               "two reduces have 64 additions each without a loop");
}

/** Iterations of the last tile may run twice where nothing that they read can be what they write.
 */
static void test_repeated(void)
{
    static const char text[] =
        "kernel \"added\" { view a: f64[2]; view b: f64[2]; view d: f64[2]; view c: f64[2];\n"
        "  %0: i64 = const 0; %n: i64 = extent c, 0; %m: i64 = extent c, 1; %l: i64 = extent a, "
        "1;\n"
        "  %i: i64 = parallel %0, %n; %j: i64 = parallel %0, %m; %k: i64 = reduction %0, %l;\n"
        "  %s: f64 = reduce sum over %k { %x: f64 = load a[%i, %k]; %y: f64 = load b[%k, %j]; %p: "
        "f64 = mul %x, %y; yield %p; };\n"
        "  %e: f64 = load d[%i, %j]; %t: f64 = add %s, %e;\n  store c[%i, %j], %t;\n}\n";
    int64_t m[2] = {97, 96}, longer[2] = {98, 96};
    qn_view v[4] = {view(QN_F64, 2, m, false), view(QN_F64, 2, m, false),
                    view(QN_F64, 2, longer, false), view(QN_F64, 2, m, false)};
    qn_plan p = plan_of(text, v, 4, NULL, QN_ISA_V4, false);
    tap_ok(p.jam > 1 && p.jam_rest == QN_TAIL_OVERLAP,
           "a view of other extents is not the one that is written: the last tile overlaps");
    v[2] = view(QN_F64, 2, m, false);
    p = plan_of(text, v, 4, NULL, QN_ISA_V4, false);
    tap_ok(p.jam > 1 && p.jam_rest == QN_TAIL_SCALAR,
           "a view of these extents may be: no iteration runs twice");
}

static void test_reductions(void)
{
    int64_t n[1] = {1000}, m[2] = {96, 96};
    qn_view v[3] = {view(QN_F64, 1, n, false), view(QN_F64, 1, n, false),
                    view(QN_F64, 0, NULL, false)};
    qn_plan p = plan_of(dot, v, 3, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 0, "dot product: lanes run over the reduction");
    tap_is_int(p.width * p.unroll, 64, "its 64 partials are the lanes of one step");
    qn_view w[3] = {view(QN_F64, 2, m, false), view(QN_F64, 2, m, false),
                    view(QN_F64, 2, m, false)};
    p = plan_of(matmul, w, 3, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 1, "matrix product, right: lanes run over the columns");
    tap_ok(p.jam_dim == 0 && p.jam >= 4 && p.unroll >= 2 && p.jam * p.unroll >= 16,
           "a register tile of rows and columns: %d x %d", p.jam, p.unroll);
    tap_ok(p.order[0] == 1 && p.order[1] == 0,
           "the rows are inside: columns that were loaded serve all of them");
    tap_is_int(p.jam_rest, QN_TAIL_OVERLAP, "the last tile of rows overlaps the one before");
    const int64_t edge[4] = {200, 512, 1024, 4096};
    for (int i = 0; i < 4; i++) {
        int64_t e[2] = {edge[i], edge[i]};
        qn_view x[3] = {view(QN_F64, 2, e, false), view(QN_F64, 2, e, false),
                        view(QN_F64, 2, e, false)};
        qn_plan big = plan_of(matmul, x, 3, NULL, QN_ISA_V4, false);
        tap_ok((big.pack > 0) == (i > 0) && !big.streams, "n = %d: %s", (int)edge[i],
               i == 0 ? "no copy" : "rows a power of two apart, or long ones, are copied");
        tap_ok(big.split_dim == 1 && big.granule == big.width * big.unroll &&
                   big.second_granule == (i < 3 ? big.jam : 0),
               "threads divide its columns%s, in steps: each copies its own",
               i < 3 ? " and rows" : "");
    }
    const int64_t odd[2] = {257, 257}, even[2] = {264, 264};
    qn_view x[3] = {view(QN_F64, 2, odd, false), view(QN_F64, 2, odd, false),
                    view(QN_F64, 2, odd, false)};
    tap_ok(plan_of(matmul, x, 3, NULL, QN_ISA_V4, false).pack,
           "n = 257: rows whose vectors cross lines are copied");
    x[0] = x[1] = x[2] = view(QN_F64, 2, even, false);
    tap_ok(!plan_of(matmul, x, 3, NULL, QN_ISA_V4, false).pack, "n = 264: others as long are not");
    const int64_t far[2] = {300, 300};
    qn_view t[3] = {view(QN_F64, 2, far, true), view(QN_F64, 2, far, false),
                    view(QN_F64, 2, far, false)};
    p = plan_of(matmul, t, 3, NULL, QN_ISA_V4, false);
    tap_ok(p.prefetch > 0 && !p.pack_rows,
           "the first operand by columns is asked for ahead of time");
    const int64_t further[2] = {1000, 1000};
    t[0] = view(QN_F64, 2, further, true);
    t[1] = t[2] = view(QN_F64, 2, further, false);
    p = plan_of(matmul, t, 3, NULL, QN_ISA_V4, false);
    int64_t rows = (int64_t)p.jam * p.row_steps;
    tap_ok(p.pack && p.pack_rows && p.pack_rows != p.pack && !p.prefetch && rows < 1000,
           "one larger than the cache is copied, %d x %d rows at a time", p.row_steps, p.jam);
    tap_ok(p.second_dim == 0 && p.second_granule == rows, "threads divide these pieces");
    t[0] = t[1] = view(QN_F64, 2, far, false);
    t[2] = t[0];
    p = plan_of(matmul, t, 3, NULL, QN_ISA_V4, false);
    tap_is_int(p.prefetch, 0, "by rows the hardware does that");
    qn_plan narrow = plan_of(matmul, w, 3, NULL, QN_ISA_V3, false);
    tap_ok(narrow.jam * narrow.unroll <= 14 && narrow.jam >= 4,
           "fewer registers, a smaller tile: %d x %d", narrow.jam, narrow.unroll);
    qn_view l[3] = {view(QN_F64, 2, m, true), view(QN_F64, 2, m, true), view(QN_F64, 2, m, true)};
    p = plan_of(matmul, l, 3, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 0, "matrix product, left: lanes run over the rows");
}

/** Lanes over points that are no single row of the striped order. */
static void test_lanes_of_points(void)
{
    const int64_t e[2] = {136, 232}, few[2] = {136, 9}, n[1] = {136};
    qn_view rows[2] = {view(QN_F64, 2, e, false), view(QN_F64, 1, n, false)};
    const char *most = "kernel most (x: f64[,], s: f64[]) {"
                       " for all i in s { s[i] = max j in dim(x, 1) of x[i, j] } }",
               *count = "kernel count (x: f32[,], s: i64[0]) { for all i in 0 .. 1 {"
                        " s[] = sum a in dim(x, 0), b in dim(x, 1) of x[a, b] > 0.5 ? 1 : 0 } }",
               *total = "kernel total (x: f32[,], s: f32[0]) striped { for all i in 0 .. 1 {"
                        " s[] = sum a in dim(x, 0), b in dim(x, 1) of x[a, b] } }";
    qn_plan p = plan_of(most, rows, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 1, "greatest values of rows: lanes run over the points");
    rows[0] = view(QN_F64, 2, few, false);
    p = plan_of(most, rows, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 0, "of 9 points: over the rows, as it takes longer to join lanes");
    const int64_t side[2] = {100, 100};
    qn_view square = view(QN_F32, 2, side, false), paths[3] = {square, square, square};
    p = plan_of("kernel paths (a: f32[,], b: f32[,], c: f32[,]) { for all i, j in c {"
                " c[i, j] = min k in dim(a, 1) of a[i, k] + b[j, k] } }",
                paths, 3, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim == 1 && p.jam > 1, "least sums, as in a product, keep their register tile");
    qn_view sum[2] = {view(QN_F32, 2, e, true), view(QN_I64, 0, NULL, false)};
    p = plan_of(count, sum, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 1, "points of integers, left: lanes run over their first dimension");
    sum[0] = view(QN_F32, 2, e, false);
    p = plan_of(count, sum, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 2, "right: over the last one");
    sum[1] = view(QN_F32, 0, NULL, false);
    p = plan_of(total, sum, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim == 2 && p.width * p.unroll == 64,
           "striped rows that begin at any partial: lanes run over them");
    sum[0] = view(QN_F32, 2, few, true);
    p = plan_of(total, sum, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim != 2, "not over rows of 9 points");
    qn_view form[2] = {view(QN_F32, 2, e, false), view(QN_F32, 0, NULL, false)};
    p = plan_of("kernel form (x: f32[,], s: f32[0]) striped { for all q in 0 .. 1 {"
                " s[] = sum a in dim(x, 0) of x[a, 0] * (sum b in dim(x, 1) of x[a, b]) } }",
                form, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.lane_dim, 2, "sums inside of a sum: lanes run over the inner points");
}

/** Sums of rows: in memory for a strip of i where the points of a large matrix lie far apart. */
static void test_strips(void)
{
    const int64_t n[1] = {1000}, large[2] = {1000, 1000}, few[1] = {50}, small[2] = {50, 50};
    qn_view v[2] = {view(QN_F64, 1, n, false), view(QN_F64, 2, large, true)};
    qn_plan p = plan_of(ROWS("indexed"), v, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.strip >= 1000 && p.jam_dim == 1 && p.jam > 1 && p.scratch_bytes >= 8000,
           "by columns: %d sums in memory, %d points at once", p.strip, p.jam);
    tap_ok(p.strip % (p.width * p.unroll) == 0 && p.lane_dim == 0,
           "a strip is whole steps of the lanes");
    const qn_options never = {.bytes = sizeof never, .plan = PLAN_WITH(.strip = -1)};
    tap_is_int(plan_of(ROWS("indexed"), v, 2, &never, QN_ISA_V4, false).strip, 0,
               "unless the caller wants none");
    tap_is_int(plan_of(ROWS("indexed"), v, 2, NULL, QN_ISA_V4, true).strip, 0,
               "nor in iteration order");
    qn_view both[3] = {v[0], v[1], v[0]};
    p = plan_of("kernel both (y: f64[], a: f64[,], z: f64[]) { for all i in y {"
                " s = sum j in dim(a, 1) of a[i, j]\n"
                " t = sum j in dim(a, 1) of a[i, j] * a[i, j]\n y[i] = s\n z[i] = t } }",
                both, 3, NULL, QN_ISA_V4, false);
    tap_ok(p.strip == 0 && p.unroll * p.width >= 8,
           "nor of several sums of the same elements, which a strip would load for each");
    v[1] = view(QN_F64, 2, large, false);
    tap_is_int(plan_of(ROWS("indexed"), v, 2, NULL, QN_ISA_V4, false).strip, 0,
               "by rows: the points lie together");
    qn_view w[2] = {view(QN_F64, 1, few, false), view(QN_F64, 2, small, true)};
    tap_is_int(plan_of(ROWS("indexed"), w, 2, NULL, QN_ISA_V4, false).strip, 0,
               "a small matrix: sums in registers");
    const qn_options always = {.bytes = sizeof always,
                               .plan = PLAN_WITH(.strip = 20, .unroll = 1, .jam = 3)};
    p = plan_of(ROWS("indexed"), w, 2, &always, QN_ISA_V4, false);
    tap_ok(p.strip == 24 && p.jam == 3,
           "where the caller wants it: strips of %d, %d points at once", p.strip, p.jam);
}

/** The sums of a strip belong to a reduce, which accesses no view. */
static void test_estimate_of_strip(void)
{
    const int64_t n[1] = {1000}, large[2] = {1000, 1000};
    qn_view v[2] = {view(QN_F64, 1, n, false), view(QN_F64, 2, large, true)};
    qn_kernel *k = NULL;
    qn_error err = {0};
    qn_estimate e = {0};
    qn_planned p;
    qn_facts f;
    if (!facts_of(ROWS("ordered"), v, 2, NULL, QN_ISA_V4, false, &k, &f))
        return;
    qn__planned_make(k, &f, &p);
    bool has_estimate = p.plan.strip > 0 && qn__planned_schedule(&p, &err) == QN_OK &&
                        qn__schedule_estimate(&p.analysis, p.schedule, &e, &err) == QN_OK;
    tap_ok(has_estimate && e.cycles > 1000 * 1000 / 64,
           "a strip of sums has an estimate: %.0f cycles %s", e.cycles, err.message);
    qn__planned_release(&p);
    qn__facts_release(&f);
    qn_kernel_release(k);
}

/** Strips in the striped order: pairs of partials, as many points at once as the sets of the
 * nearest cache hold rows. */
static void test_striped_strips(void)
{
    const int64_t n[1] = {1000}, large[2] = {1000, 1000}, m[1] = {512}, power[2] = {512, 1000};
    qn_view v[2] = {view(QN_F64, 1, n, false), view(QN_F64, 2, large, true)};
    qn_plan p = plan_of(ROWS("striped"), v, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.strip == 1000 && p.jam == 16 && p.unroll == 1,
           "striped: strips of %d, %d points at once", p.strip, p.jam);
    tap_is_int(p.scratch_bytes, (int64_t)(1 + 33) * 125 * 64,
               "an array for each pair, one more, and one of results");
    tap_is_int(plan_of(ROWS("striped"), v, 2, NULL, QN_ISA_V3, false).jam, 8,
               "fewer registers, fewer factors");
    qn_view w[2] = {view(QN_F64, 1, m, false), view(QN_F64, 2, power, true)};
    tap_is_int(plan_of(ROWS("striped"), w, 2, NULL, QN_ISA_V4, false).jam, 8,
               "rows in the same sets: so many as there are ways");
}

static void test_batches(void)
{
    int64_t e[3] = {16, 16, 96};
    qn_view v[3] = {view(QN_F64, 3, e, false), view(QN_F64, 3, e, false),
                    view(QN_F64, 3, e, false)};
    qn_plan p = plan_of(batch3, v, 3, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim == 2 && p.order[0] == 2 && p.unroll == 1,
           "products whose number is fastest: lanes run over it, outermost");
    tap_ok(p.jam > 2 && p.cross > 2 && p.jam * p.cross >= 16 && p.jam_dim != p.cross_dim,
           "a tile of both other dimensions: %d x %d", p.jam, p.cross);
    tap_is_int(p.steps_ahead, 0, "small ones ask for nothing ahead of time");
    qn_plan narrow = plan_of(batch3, v, 3, NULL, QN_ISA_V3, false);
    tap_ok(narrow.jam * narrow.cross < 16 && narrow.jam * narrow.cross >= 4,
           "fewer registers, a smaller tile: %d x %d", narrow.jam, narrow.cross);
    qn_options o = {.bytes = sizeof o,
                    .plan = PLAN_WITH(.jam_dim = 2, .jam = 3, .cross_dim = 1, .cross = 5)};
    p = plan_of(batch3, v, 3, &o, QN_ISA_V4, false);
    tap_ok(p.jam_dim == 1 && p.jam == 3 && p.cross_dim == 0 && p.cross == 5,
           "both are taken from the caller");
    o.plan = PLAN_WITH(.cross = 1);
    p = plan_of(batch3, v, 3, &o, QN_ISA_V4, false);
    tap_ok(p.cross == 1 && p.cross_dim == -1, "or left away");
    e[2] = 5000;
    for (int n = 0; n < 3; n++)
        v[n] = view(QN_F64, 3, e, false);
    p = plan_of(batch3, v, 3, NULL, QN_ISA_V4, false);
    tap_is_int(p.steps_ahead, 1, "larger ones ask for the next step");
    for (int n = 0; n < 3; n++)
        v[n] = view(QN_F64, 3, (int64_t[3]){4, 4, 100000}, false);
    p = plan_of(batch3, v, 3, NULL, QN_ISA_V4, false);
    tap_ok(p.steps_ahead > 1, "short steps are asked for earlier: %d ahead", p.steps_ahead);
    v[0] = v[1] = v[2] = view(QN_F64, 3, (int64_t[3]){16, 16, 65552}, false);
    p = plan_of(batch3, v, 3, NULL, QN_ISA_V4, false);
    tap_ok(p.steps_ahead == 1 && p.streams && p.split_dim == p.lane_dim,
           "results beyond the caches are streamed, and threads divide the lanes");
}

/** A copy for a tile holds what one iteration of each of its dimensions reads. */
static void test_copies_of_tiles(void)
{
    const int64_t e[3] = {16, 16, 96};
    qn_view v[3] = {view(QN_F64, 3, e, false), view(QN_F64, 3, e, false),
                    view(QN_F64, 3, e, false)};
    qn_options o = {.bytes = sizeof o};
    o.plan = PLAN_WITH(.lane_dim = 3, .width = 4, .order = {2, 3, 1}, .jam_dim = 1, .jam = 2,
                       .cross_dim = 2, .cross = 3, .pack = 1);
    qn_plan p = plan_of(batch3, v, 3, &o, QN_ISA_V4, false);
    tap_ok(p.jam_dim == 0 && p.jam == 2 && p.cross_dim == 1 && p.cross == 3,
           "a tile of three dimensions with the lanes inside");
    tap_ok(!p.pack && !p.scratch_bytes,
           "has no copy where each operand depends on one of its other dimensions");
    o.plan = PLAN_WITH(.lane_dim = 3, .width = 4, .order = {2, 3, 1}, .jam_dim = 1, .jam = 2,
                       .cross = 1, .pack = 1);
    p = plan_of(batch3, v, 3, &o, QN_ISA_V4, false);
    tap_ok(p.cross == 1 && p.pack && p.scratch_bytes,
           "one of two dimensions has a copy of the operand that is shared");
}

/** A side of an `if` that is skipped while no lane takes it computes in f64, `n` times; what is
 * usual in f32. */
static const char *rare_text(char *out, size_t bytes, int n)
{
    size_t at = (size_t)snprintf(
        out, bytes,
        "kernel \"rare\" { view x: f32[1]; view y: f32[1];\n%%z: i64 = const 0; %%n: i64 = extent "
        "y, 0;\n"
        "%%i: i64 = parallel %%z, %%n; %%a: f32 = load x[%%i]; %%b: bool = gt %%a, 1000;\n"
        "%%r: f32 = if %%b { %%v0: f64 = cast %%a;");
    for (int m = 1; m <= n; m++)
        at += (size_t)snprintf(out + at, bytes - at, " %%v%d: f64 = fma %%v%d, %%v%d, %d;", m,
                               m - 1, m - 1, m);
    snprintf(out + at, bytes - at,
             " %%w: f32 = cast %%v%d; yield %%w; } else { yield %%a; };\nstore y[%%i], %%r; }\n",
             n);
    return out;
}

static void test_rare_sides(void)
{
    const int64_t e[1] = {4096};
    qn_view v[2] = {view(QN_F32, 1, e, false), view(QN_F32, 1, e, false)};
    char text[4000];
    qn_plan p = plan_of(rare_text(text, sizeof text, 60), v, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim == 0 && p.width == 16,
           "a side that is skipped where no lane takes it does not narrow the lanes: width %d",
           p.width);
    p = plan_of(rare_text(text, sizeof text, 2), v, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim == 0 && p.width == 8, "one that all lanes compute does: width %d", p.width);
}

/** Sums of bytes that are cut at `limit`. */
static int width_of_sums(int limit)
{
    const int64_t e[1] = {4096};
    qn_view v[3] = {view(QN_U8, 1, e, false), view(QN_U8, 1, e, false), view(QN_U8, 1, e, false)};
    char text[400];
    snprintf(text, sizeof text,
             "kernel sums (a: u8[], b: u8[], y: u8[]) {\n"
             "for all i in y { y[i] = u8(min(i32(a[i]) + i32(b[i]), %d)) } }",
             limit);
    return plan_of(text, v, 3, NULL, QN_ISA_V4, false).width;
}

/** Lanes take a side that stores whole vectors under masks, one that gathers around a branch. */
static void test_under_mask(void)
{
    const int64_t e[1] = {4096};
    qn_view f = view(QN_F32, 1, e, false), v[3] = {f, f, view(QN_I32, 1, e, false)};
    const char *few = "kernel few (x: f32[], y: f32[], m: i32[]) {"
                      " for all i in y { if m[i] > 5 { y[i] = y[i] + x[i] } } }",
               *far = "kernel far (x: f32[], y: f32[], m: i32[]) {"
                      " for all i in y { if m[i] > 5 { y[i] = y[i] + x[m[i]] } } }";
    qn_plan p = plan_of(few, v, 3, NULL, QN_ISA_V4, false);
    tap_ok(p.width == 16 && p.unroll > 1, "what is under masks has several vectors in a step: %d",
           p.unroll);
    p = plan_of(far, v, 3, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim < 0 || p.unroll == 1, "what a branch goes around has one: %d", p.unroll);
}

static void test_saturating(void)
{
    tap_is_int(width_of_sums(255), 64, "a sum that saturates is computed in its own bits");
    tap_is_int(width_of_sums(254), 32, "a sum that is cut below the limit is not");
}

static void test_overrides(void)
{
    int64_t e[2] = {100, 64};
    qn_view right[2] = {view(QN_F32, 2, e, false), view(QN_F32, 2, e, false)};
    qn_options o = {.bytes = sizeof o};
    o.plan = PLAN_WITH(.lane_dim = 1, .width = 4, .unroll = 3, .jam_dim = 2, .jam = 5);
    qn_plan p = plan_of(copy2, right, 2, &o, QN_ISA_V4, false);
    tap_ok(p.lane_dim == 0 && p.width == 4 && p.unroll == 3 && p.jam_dim == 1 && p.jam == 5,
           "lane dimension, width, unroll and jam are taken");
    o.plan = PLAN_WITH(.lane_dim = -1);
    p = plan_of(copy2, right, 2, &o, QN_ISA_V4, false);
    tap_ok(p.lane_dim == -1 && p.width == 1, "scalar code on request");
    o.plan = PLAN_WITH(.order = {2, 1}, .lane_dim = -1);
    p = plan_of(copy2, right, 2, &o, QN_ISA_V4, false);
    tap_ok(p.order[0] == 1 && p.order[1] == 0, "order on request");
    o.plan = PLAN_WITH(.lane_dim = 9, .jam_dim = 7, .jam = 3, .order = {1, 1});
    p = plan_of(copy2, right, 2, &o, QN_ISA_V4, false);
    tap_ok(p.lane_dim == 1 && p.jam_dim == -1 && p.order[0] == 0,
           "impossible requests are left to the planner");
}

static void test_collapse(void)
{
    int64_t e[2] = {100, 65};
    qn_view right[2] = {view(QN_F32, 2, e, false), view(QN_F32, 2, e, false)};
    qn_plan p = plan_of(copy2, right, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.merged[1] == 1 && p.lane_dim == 1 && p.split_dim == 1,
           "rows without gaps are one dimension");
    qn_view left[2] = {view(QN_F32, 2, e, true), view(QN_F32, 2, e, true)};
    p = plan_of(copy2, left, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.merged[0] == 2 && p.lane_dim == 0, "so are columns");
    qn_view gaps[2] = {right[0], padded(QN_F32, 100, 65, 3)};
    p = plan_of(copy2, gaps, 2, NULL, QN_ISA_V4, false);
    tap_ok(!p.merged[0] && !p.merged[1] && p.split_dim == 0, "a gap in one view keeps them apart");
    qn_view mixed[2] = {right[0], left[1]};
    p = plan_of(copy2, mixed, 2, NULL, QN_ISA_V4, false);
    tap_ok(!p.merged[0] && !p.merged[1], "so does another order");
    qn_options o = {.bytes = sizeof o, .plan = PLAN_WITH(.lane_dim = 1)};
    p = plan_of(copy2, right, 2, &o, QN_ISA_V4, false);
    tap_ok(!p.merged[1] && p.lane_dim == 0, "so does a plan that names a dimension");
    p = plan_of(copy2, right, 2, NULL, QN_ISA_V4, true);
    tap_ok(!p.merged[1], "so does overlap");
    p = plan_of(number2, right, 1, NULL, QN_ISA_V4, false);
    tap_ok(!p.merged[1], "so does an index used as a value");
}

static void test_streams(void)
{
    int64_t e[2] = {5000, 5000};
    qn_view large[2] = {padded(QN_F32, e[0], e[1], 3), padded(QN_F32, e[0], e[1], 3)};
    qn_plan p = plan_of(copy2, large, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.streams == 1 && p.remainder == QN_TAIL_MASK,
           "100 MB are not kept in a cache of 32 MiB");
    qn_view both[2] = {padded(QN_F32, 1000, 5000, 3), padded(QN_F32, 1000, 5000, 3)};
    p = plan_of(copy2, both, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.streams, 1, "nor are 20 MB that are read and 20 that are written");
    qn_view half[2] = {padded(QN_F32, 500, 5000, 3), padded(QN_F32, 500, 5000, 3)};
    p = plan_of(copy2, half, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.streams, 0, "10 and 10 MB are");
    qn_options o = {.bytes = sizeof o, .plan = PLAN_WITH(.streams = 1)};
    p = plan_of(copy2, half, 2, &o, QN_ISA_V4, false);
    tap_is_int(p.streams, 1, "unless asked otherwise");
    o.plan = PLAN_WITH(.streams = -1);
    p = plan_of(copy2, large, 2, &o, QN_ISA_V4, false);
    tap_is_int(p.streams, 0, "none on request");
    qn_view thin[2] = {padded(QN_F32, 1000000, 20, 3), padded(QN_F32, 1000000, 20, 3)};
    p = plan_of(copy2, thin, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.streams, 0, "short rows have too few whole lines");
    e[0] = e[1] = 3000;
    qn_view rows[2] = {view(QN_F64, 2, e, false), view(QN_F64, 2, e, false)};
    p = plan_of(five, rows, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.streams == 1 && p.front_bytes > 0,
           "of three rows that are read, the first is asked for ahead of time");
    o.plan = PLAN_WITH(.prefetch = -1);
    p = plan_of(five, rows, 2, &o, QN_ISA_V4, false);
    tap_ok(p.streams == 1 && p.front_bytes == 0, "not on request");
    e[0] = e[1] = 1000;
    for (int n = 0; n < 2; n++)
        rows[n] = view(QN_F64, 2, e, false);
    p = plan_of(five, rows, 2, NULL, QN_ISA_V4, false);
    tap_is_int(p.front_bytes, 0, "not in a cache");
}

/** Whether lanes that load at `op` of step * j + 1 and a value are near one another, or neighbours
 * but at limits. */
static bool is_near(int step, const char *op, const char *value, int isa)
{
    char text[512];
    int64_t n[2] = {1000, 500};
    qn_view views[2] = {view(QN_F32, 1, &n[0], false), view(QN_F32, 1, &n[1], false)};
    qn_kernel *k = NULL;
    qn_facts f;
    qn_analysis a;
    snprintf(text, sizeof text, quotient, step, op, value);
    if (!facts_of(text, views, 2, NULL, isa, false, &k, &f))
        return false;
    int near = qn__analyse(k, &f, 0, 0, &a) ? qn__nearness(&a, 0, k->access[0].inst) : -1;
    bool is = near == QN_NEAR_LIMITED || near == QN_NEAR_CERTAIN;
    qn__analysis_release(&a);
    qn__facts_release(&f);
    qn_kernel_release(k);
    return is;
}

static void test_near(void)
{
    tap_ok(is_near(1, "div", "%two", QN_ISA_V4), "x[(j + 1) / 2] is a vector that is permuted");
    tap_ok(is_near(2, "div", "%two", QN_ISA_V4), "x[(2 j + 1) / 2], too");
    tap_ok(!is_near(3, "div", "%two", QN_ISA_V4),
           "lanes of x[(3 j + 1) / 2] are in more than one vector");
    tap_ok(!is_near(1, "div", "%two", QN_ISA_V3), "v3 has no such permutations");
    tap_ok(is_near(1, "min", "%n", QN_ISA_V4) && is_near(1, "max", "%two", QN_ISA_V4),
           "lanes that end at a bound are neighbours but there");
    tap_ok(!is_near(2, "min", "%n", QN_ISA_V4), "... but not two elements apart");
    tap_ok(!is_near(1, "mul", "%two", QN_ISA_V4), "... and no other operation is a bound");
}

/** Rows that are updated in place, with `gap` elements between them. */
static int rest_of_update(int64_t gap)
{
    int64_t n = 205;
    qn_view views[2] = {view(QN_F32, 1, &n, false), padded(QN_F32, 100, n, gap)};
    return plan_of(update, views, 2, NULL, QN_ISA_V4, false).remainder;
}

static void test_rows_in_place(void)
{
    tap_is_int(rest_of_update(0), QN_TAIL_SCALAR,
               "no store under a mask touches the row that is loaded next");
    tap_is_int(rest_of_update(3), QN_TAIL_MASK, "three idle lanes stand before that row");
}

static void test_line_ends(void)
{
    int64_t odd[2] = {5003, 5003}, even[2] = {5008, 5008};
    qn_view v[2] = {view(QN_F32, 2, odd, true), view(QN_F32, 2, odd, false)};
    qn_plan p = plan_of(copy2, v, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.streams == 1 && p.end_rows >= 512 && p.end_rows % p.transpose == 0 &&
               p.scratch_bytes == (int64_t)p.end_rows * 64,
           "rows that begin anywhere in a line: the end of one waits, of %d rows", (int)p.end_rows);
    tap_ok(!plan_of(copy2, v, 2, NULL, QN_ISA_V3, false).end_rows,
           "not where no instruction joins two lines");
    qn_options o = {.bytes = sizeof o, .plan = PLAN_WITH(.streams = -1)};
    p = plan_of(copy2, v, 2, &o, QN_ISA_V4, false);
    tap_ok(!p.end_rows && !p.scratch_bytes && !p.streams, "not on request");
    v[0] = view(QN_F32, 2, even, true);
    v[1] = view(QN_F32, 2, even, false);
    p = plan_of(copy2, v, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.streams == 1 && !p.end_rows, "nothing waits where all rows begin at a line together");
    odd[0] = odd[1] = 203;
    v[0] = view(QN_F32, 2, odd, true);
    v[1] = view(QN_F32, 2, odd, false);
    tap_ok(!plan_of(copy2, v, 2, NULL, QN_ISA_V4, false).end_rows, "nor in cache");
}

/** What is read in steps of two elements counts with what lies between. */
static void test_streams_of_lines(void)
{
    qn_view v[2] = {padded(QN_F32, 1000, 7000, 0), padded(QN_F32, 1000, 3500, 0)};
    v[0].layout.dim[1].extent = 3500;
    tap_is_int(plan_of(copy2, v, 2, NULL, QN_ISA_V4, false).streams, 0,
               "14 MB that are read and 14 MB that are written fit 32 MiB");
    v[0].layout.dim[1] = (qn_dim){0, 3500, 2};
    tap_is_int(plan_of(copy2, v, 2, NULL, QN_ISA_V4, false).streams, 1,
               "... but not with as many bytes between those that are read");
}

/** Accesses of the schedule whose lanes are taken one by one; -1: there is none. */
static int singles_on(int core, const char *text, qn_view *views, int n, const qn_options *o,
                      int isa)
{
    qn_kernel *k = NULL;
    qn_facts f;
    qn_planned p = {0};
    qn_error err = {0};
    int found = -1;
    if (!facts_of(text, views, n, o, isa, false, &k, &f))
        return found;
    f.machine = *qn__machine_of_core(isa, core);
    qn__planned_make(k, &f, &p);
    if (qn__planned_say(&p, &err) == QN_OK)
        found = 0;
    for (int r = 0; found >= 0 && r < p.schedule->n_records; r++)
        found += p.schedule->record[r].is_single && !p.schedule->record[r].is_tail;
    qn__planned_release(&p);
    qn__facts_release(&f);
    qn_kernel_release(k);
    return found;
}

static int singles_of(const char *text, qn_view *views, int n, const qn_options *o, int isa)
{
    return singles_on(QN_CORE_USUAL, text, views, n, o, isa);
}

static void test_apart(void)
{
    qn_view v[2] = {padded(QN_F32, 1000, 12000, 0), padded(QN_F32, 1000, 12000, 0)};
    tap_is_int(singles_of(copy2, v, 2, NULL, QN_ISA_V4), 0, "neighbours are not apart");
    for (int n = 0; n < 2; n++)
        v[n].layout.dim[1] = (qn_dim){0, 6000, 2};
    tap_is_int(singles_of(copy2, v, 2, NULL, QN_ISA_V4), 1,
               "every other one of 96 MB is stored by itself");
    tap_is_int(singles_on(QN_CORE_GOLDEN_COVE, copy2, v, 2, NULL, QN_ISA_V4), 0,
               "... not where lines that are written under masks are fetched ahead");
    qn_options o = {.bytes = sizeof o, .plan = PLAN_WITH(.apart = -1)};
    tap_is_int(singles_of(copy2, v, 2, &o, QN_ISA_V3), 0, "not on request");
    for (int n = 0; n < 2; n++)
        v[n].layout.dim[0].extent = 10;
    tap_is_int(singles_of(copy2, v, 2, NULL, QN_ISA_V4), 0, "in cache the stride decides");
}

/** Stores of few sums are streams, of many are not; where their number is not known it may be
 * large. */
static void test_streams_of_sums(void)
{
    const int64_t n[3] = {2, 2, 5000000};
    for (int unknown = 0; unknown < 3; unknown++) {
        qn_view v[2] = {view(QN_F32, 3, n, false), view(QN_F32, 1, n + 2, false)};
        qn_kernel *k = NULL;
        qn_facts f;
        qn_plan p;
        if (!facts_of(planes, v, 2, NULL, QN_ISA_V4, false, &k, &f))
            return;
        f.is_large = unknown > 0;
        for (int d = 3 - unknown; d < 3; d++)
            f.end[d].kind = QN_FACT_DYNAMIC;
        make_plan(k, &f, &p);
        tap_ok(p.streams == (unknown == 0), "%d dimensions of a sum are not known", unknown);
        qn__facts_release(&f);
        qn_kernel_release(k);
    }
}

/** A larger second-level cache keeps more rows of each plane. */
static void test_caches(void)
{
    const int64_t e[3] = {24, 1003, 1003};
    qn_view v[2] = {view(QN_F64, 3, e, false), view(QN_F64, 3, e, false)};
    qn_kernel *k = NULL;
    qn_facts f;
    qn_plan p, larger, largest;
    if (!facts_of(seven, v, 2, NULL, QN_ISA_V4, false, &k, &f))
        return;
    make_plan(k, &f, &p);
    f.machine.cache[QN_CACHE_SECOND].bytes *= 2;
    make_plan(k, &f, &larger);
    f.machine.cache[QN_CACHE_SECOND].bytes = 1 << 28;
    make_plan(k, &f, &largest);
    tap_ok(larger.tile[1] >= 2 * p.tile[1] && largest.tile_at == -1,
           "tiles of %d rows, of %d in twice the cache, none where planes fit", (int)p.tile[1],
           (int)larger.tile[1]);
    qn__facts_release(&f);
    qn_kernel_release(k);
}

/** The texts of a plan for another machine, and of its schedule. */
static char *plan_on(const qn_machine *m, const qn_kernel *k, qn_facts *f)
{
    qn_text text = {0};
    qn_planned p;
    qn_error err = {0};
    f->machine = *m;
    qn__machine_classify(&f->machine, f->isa);
    qn__planned_make(k, f, &p);
    qn__planned_print(&p, &text);
    if (qn__planned_say(&p, &err) == QN_OK && p.schedule)
        qn__schedule_print(p.schedule, &text);
    qn__planned_release(&p);
    qn__text_bytes(&text, "", 1);
    return text.data;
}

/* Records that differ in one cache, or in the core. */
enum { FIRST_48, SECOND_2M, LAST_64M, OTHER_CORE, N_RECORDS };
static qn_machine record(int n)
{
    qn_machine m = *qn__machine_usual(QN_ISA_V4);
    switch (n) {
    case FIRST_48:
        m.cache[QN_CACHE_FIRST].bytes = 48 << 10;
        m.cache[QN_CACHE_FIRST].ways = 12;
        break;
    case SECOND_2M:
        m.cache[QN_CACHE_SECOND].bytes = 2 << 20;
        break;
    case OTHER_CORE:
        m.core = QN_CORE_GOLDEN_COVE;
        break;
    default:
        m.cache[QN_CACHE_LAST].bytes = 64 << 20;
    }
    return m;
}

/** A number of the record changes the plans that ask for it, and leaves others as they are. */
static void test_records(void)
{
    static const char *const names[N_RECORDS] = {"48 KiB in 12 ways", "2 MiB", "64 MiB",
                                                 "another core"};
    const int64_t small[2] = {60, 400}, wide[2] = {2048, 1536}, long_rows[2] = {20001, 300},
                  cube[3] = {24, 1003, 1003}, flat[2] = {1000, 5000}, pairs[1] = {1 << 25};
    qn_view v[6][2] = {
        {view(QN_F32, 2, small, false), view(QN_F32, 2, small, false)},
        {view(QN_F64, 1, wide, false), view(QN_F64, 2, wide, true)},
        {view(QN_F64, 1, long_rows, false), view(QN_F64, 2, long_rows, true)},
        {view(QN_F64, 3, cube, false), view(QN_F64, 3, cube, false)},
        {view(QN_F32, 2, flat, false), view(QN_F32, 2, flat, false)},
        {view(QN_F32, 1, pairs, false), view(QN_F32, 1, pairs, false)},
    };
    const struct {
        const char *what, *text;
        bool changes[N_RECORDS];
    } list[6] = {
        {"a small copy", copy2, {false}},
        {"striped sums of columns in the same sets", ROWS("striped"), {[FIRST_48] = true}},
        {"indexed sums of columns", ROWS("indexed"), {false}},
        {"a stencil of planes", seven, {[SECOND_2M] = true}},
        {"a large copy", copy2, {[LAST_64M] = true}},
        {"a large sum of every second element", second, {[OTHER_CORE] = true}},
    };
    for (int n = 0; n < 6; n++) {
        qn_kernel *k = NULL;
        qn_facts f;
        if (!facts_of(list[n].text, v[n], 2, NULL, QN_ISA_V4, false, &k, &f))
            return;
        char *usual = plan_on(qn__machine_usual(QN_ISA_V4), k, &f);
        for (int r = 0; r < N_RECORDS; r++) {
            const qn_machine m = record(r);
            char *other = plan_on(&m, k, &f);
            tap_ok((strcmp(usual, other) != 0) == list[n].changes[r], "%s: %s %s the plan",
                   list[n].what, names[r], list[n].changes[r] ? "change" : "do not change");
            qn__free(other);
        }
        qn__free(usual);
        qn__facts_release(&f);
        qn_kernel_release(k);
    }
}

/** The plan that a search finds on a machine. */
static qn_plan searched_on(const qn_machine *m, const qn_kernel *k, qn_facts *f)
{
    qn_planned p = {0};
    f->machine = *m;
    qn__machine_classify(&f->machine, f->isa);
    qn__search(k, f, &p);
    qn_plan found = p.plan;
    qn__planned_release(&p);
    return found;
}

/** What the lanes of a product load is copied for each piece of the rows: long pieces save that. */
static void test_pieces_of_rows(void)
{
    const int64_t square[2] = {2048, 2048};
    const qn_machine golden = record(OTHER_CORE);
    qn_view v[3] = {view(QN_F64, 2, square, true), view(QN_F64, 2, square, false),
                    view(QN_F64, 2, square, false)};
    qn_options fixed = {.bytes = sizeof fixed, .plan = PLAN_WITH(.pack = 16)};
    qn_kernel *k = NULL;
    qn_facts f;
    if (!facts_of(matmul, v, 3, NULL, QN_ISA_V4, false, &k, &f))
        return;
    qn_analysis a;
    qn_plan rules = {0}, found = searched_on(&golden, k, &f);
    if (qn__analyse(k, &f, -1, 0, &a))
        qn__plan_by_rules(&a, &rules);
    qn__analysis_release(&a);
    tap_ok(rules.row_steps > 0 && found.row_steps >= 4 * rules.row_steps,
           "pieces of %d steps, of which the copies stay in the second cache, become such of %d",
           (int)rules.row_steps, (int)found.row_steps);
    qn__facts_release(&f);
    qn_kernel_release(k);
    tap_is_int(plan_of(matmul, v, 3, &fixed, QN_ISA_V4, false).row_steps, 16,
               "those that the caller wants");
}

static void test_gathers(void)
{
    const char *sums = "kernel sums (a: f64[,], b: f64[,], c: f64[,]) {"
                       " for all i, j in c { c[i, j] = a[i, j] + b[i, j] } }",
               *copy = "kernel copy (b: f64[,], c: f64[,]) {"
                       " for all i, j in c { c[i, j] = b[i, j] } }";
    const int64_t plane[2] = {133, 129}, large[2] = {1024, 1024};
    const qn_machine golden = record(OTHER_CORE);
    qn_view row = view(QN_F64, 2, plane, false), v[3] = {row, view(QN_F64, 2, plane, true), row},
            w[2] = {view(QN_F64, 2, large, true), view(QN_F64, 2, large, false)};
    qn_kernel *k = NULL;
    qn_facts f;
    if (facts_of(sums, v, 3, NULL, QN_ISA_V4, false, &k, &f)) {
        qn_analysis a;
        qn_plan rules = {0};
        if (qn__analyse(k, &f, -1, 0, &a))
            qn__plan_by_rules(&a, &rules);
        tap_ok(rules.transpose > 0 && searched_on(&golden, k, &f).transpose == 0,
               "gathers that are estimated to take less than the block of the rules are taken");
        qn__analysis_release(&a);
        qn__facts_release(&f);
        qn_kernel_release(k);
    }
    if (facts_of(copy, w, 2, NULL, QN_ISA_V4, false, &k, &f)) {
        tap_ok(searched_on(&golden, k, &f).transpose > 0,
               "of a copy of lines far apart they are not");
        qn__facts_release(&f);
        qn_kernel_release(k);
    }
}

/** Fewer multiprocessors are busy with fewer tiles, which are larger then; a copy is walked alike.
 */
static void test_record_of_gpu(void)
{
    const int64_t square[2] = {1024, 1024};
    const char *const texts[2] = {matmul, copy2};
    qn_machine few = *qn__machine_usual(QN_ISA_SM90);
    few.multiprocessors = 16;
    for (int n = 0; n < 2; n++) {
        qn_view v[3] = {view(n ? QN_F32 : QN_F64, 2, square, false),
                        view(n ? QN_F32 : QN_F64, 2, square, false),
                        view(QN_F64, 2, square, false)};
        qn_kernel *k = NULL;
        qn_facts f;
        if (!facts_of(texts[n], v, 3 - n, NULL, QN_ISA_SM90, false, &k, &f))
            return;
        f.param[0].is_constant_memory = f.param[1].is_constant_memory =
            !n; /* the views are one memory here */
        char *usual = plan_on(qn__machine_usual(QN_ISA_SM90), k, &f), *other = plan_on(&few, k, &f);
        tap_ok((strcmp(usual, other) != 0) == (n == 0), "16 multiprocessors %s of a %s",
               n ? "leave the plan" : "change the tiles", n ? "copy" : "product");
        qn__free(usual);
        qn__free(other);
        qn__facts_release(&f);
        qn_kernel_release(k);
    }
}

/** The plan for two f64 views of these extents. */
static qn_plan plan_for(const char *text, int rank, const int64_t *e, const qn_options *o, int isa)
{
    qn_view v[2] = {view(QN_F64, rank, e, false), view(QN_F64, rank, e, false)};
    return plan_of(text, v, 2, o, isa, false);
}

static void test_tiles(void)
{
    int64_t thick[3] = {24, 1003, 1003}, thin[3] = {6, 3003, 3003}, small[3] = {60, 40, 400},
            wide[2] = {26, 1000003};
    qn_plan p = plan_for(seven, 3, thick, NULL, QN_ISA_V4);
    tap_ok(p.tile[1] >= 8 && p.tile[1] <= 64 && !p.tile[0] && !p.tile[2] && p.tile_at == 0 &&
               p.streams,
           "large planes: tiles of %d rows", (int)p.tile[1]);
    p = plan_for(seven, 3, thin, NULL, QN_ISA_V4);
    tap_ok(p.tile[1] >= 4 && p.tile[1] <= 8, "fewer of long rows: %d", (int)p.tile[1]);
    tap_is_int(plan_for(seven, 3, small, NULL, QN_ISA_V4).tile_at, -1, "none in cache");
    p = plan_for(five, 2, wide, NULL, QN_ISA_V4);
    tap_ok(p.tile[1] >= 4096 && p.tile[1] % ((int64_t)p.width * p.unroll) == 0,
           "rows larger than a cache: tiles of the lanes");
    qn_options o = {.bytes = sizeof o, .plan = PLAN_WITH(.tile = -1)};
    tap_is_int(plan_for(seven, 3, thick, &o, QN_ISA_V4).tile_at, -1, "none on request");
    o.plan = PLAN_WITH(.tile_dim = 3, .tile = 9, .width = 4, .unroll = 2);
    p = plan_for(seven, 3, small, &o, QN_ISA_V3);
    tap_ok(p.tile[2] == 16 && p.tile_at == 0, "those that the caller wants, in whole steps");
}

static void test_transpose(void)
{
    int64_t e[2] = {128, 1000}, large[2] = {6000, 6000};
    qn_view mixed[2] = {view(QN_F32, 2, e, true), view(QN_F32, 2, e, false)};
    qn_plan p = plan_of(copy2, mixed, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim >= 0 && p.jam_dim == !p.lane_dim && p.jam == 8 && p.order[1] == p.jam_dim,
           "left to right: lanes along one dimension, the other one jammed and innermost");
    tap_is_int(p.transpose, 8, "in blocks of the jammed iterations");
    tap_is_int(p.tile[0], 0, "no tiles in cache");
    qn_options o = {.bytes = sizeof o, .plan = PLAN_WITH(.transpose = -1)};
    p = plan_of(copy2, mixed, 2, &o, QN_ISA_V4, false);
    tap_ok(p.transpose == 0 && p.jam == 1, "not on request");
    qn_view far[2] = {view(QN_F32, 2, large, true), view(QN_F32, 2, large, false)};
    p = plan_of(copy2, far, 2, NULL, QN_ISA_V4, false);
    tap_ok(p.streams == 1 && p.tile[0] == 0, "out of cache: streamed");
    o.plan = PLAN_WITH(.streams = -1);
    p = plan_of(copy2, far, 2, &o, QN_ISA_V4, false);
    tap_ok(p.streams == 0 && p.tile[0] == 512, "or tiled");
    static const char most[] =
        "kernel \"most\" { view t: f32[2]; view x: f32[2]; view y: f32[2]; view z: f32[2];\n"
        "%0: i64 = const 0; %h: i64 = extent x, 0; %w: i64 = extent x, 1; %i: i64 = parallel %0, "
        "%h;\n"
        "%j: i64 = parallel %0, %w; %v: f32 = load t[%j, %i]; %a: f32 = load x[%i, %j]; %b: f32 = "
        "load y[%i, %j];\n"
        "%c: f32 = load z[%i, %j]; %d: f32 = add %a, %v; %e: f32 = add %b, %v; %f: f32 = add %c, "
        "%v;\n"
        "store x[%i, %j], %d; store y[%i, %j], %e; store z[%i, %j], %f; }";
    int64_t square[2] = {200, 200};
    qn_view right[4];
    for (int i = 0; i < 4; i++)
        right[i] = view(QN_F32, 2, square, false);
    p = plan_of(most, right, 4, NULL, QN_ISA_V4, false);
    tap_ok(p.lane_dim == 1 && p.jam_dim == 0 && !p.transpose && p.order[0] == 0 && p.order[1] == 1,
           "what runs along the lanes is most: they are innermost");
    o.plan = PLAN_WITH(.order = {2, 1});
    p = plan_of(most, right, 4, &o, QN_ISA_V4, false);
    tap_ok(p.jam_dim == 0 && p.order[0] == 1 && p.order[1] == 0,
           "unless the caller wants another order");
}

int main(void)
{
    test_strips();
    test_estimate_of_strip();
    test_striped_strips();
    test_transpose();
    test_caches();
    test_records();
    test_gathers();
    test_pieces_of_rows();
    test_record_of_gpu();
    test_tiles();
    test_collapse();
    test_streams();
    test_rows_in_place();
    test_near();
    test_streams_of_lines();
    test_apart();
    test_line_ends();
    test_streams_of_sums();
    test_layouts();
    test_sharing();
    test_selected();
    test_straight();
    test_repeated();
    test_reductions();
    test_lanes_of_points();
    test_batches();
    test_copies_of_tiles();
    test_rare_sides();
    test_saturating();
    test_under_mask();
    test_overrides();
    return tap_done();
}
