/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_straighten.c: short loops as straight code, and dimensions that became two, give the bits of
 * the kernel as declared, in the interpreter; which kernels are planned so. No code generator is
 * needed.
 */
#include "jit/analysis/straighten.h"
#include "jit/schedule/search.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>

enum { MOST_VIEWS = 3, MOST_ELEMENTS = 4096 };

/** A kernel on views of f64 with these extents; the first one is written. */
typedef struct straight_case {
    const char *what, *text;
    int n_views, rank[MOST_VIEWS];
    int64_t extent[MOST_VIEWS][3];
    qn_short_loops loops;
    bool is_done;        /* whether the kernel may be written anew so */
    uint32_t n_accesses; /* of the straight code */
} straight_case;

static double memory[2][MOST_VIEWS][MOST_ELEMENTS];

typedef struct collected {
    qn_kernel *k;
    qn_facts f;
    qn_domain domain;
    qn_view view[2][MOST_VIEWS];
    qn_arg args[2][MOST_VIEWS];
} collected;

/** Kernel, facts and two sets of equal arguments; false: a test has failed. */
static bool collect(const straight_case *c, collected *out)
{
    qn_error err = {0};
    uint8_t proved[16] = {0};
    qn_arg_value values[MOST_VIEWS];
    const qn_policy policy = {0};
    memset(out, 0, sizeof *out);
    for (int p = 0; p < c->n_views; p++)
        for (int side = 0; side < 2; side++) {
            qn_view *v = &out->view[side][p];
            *v = (qn_view){.data = memory[side][p], .dtype = QN_F64};
            qn_layout_right(c->rank[p], c->extent[p], &v->layout, NULL);
            out->args[side][p] = qn_arg_view(v);
            for (int i = 0; i < MOST_ELEMENTS; i++)
                memory[side][p][i] = (double)((i * 7 + p * 5) % 23) / 11 - 1;
        }
    for (int p = 0; p < c->n_views; p++)
        values[p] = (qn_arg_value){.layout = &out->view[0][p].layout};
    if (qn_kernel_parse(c->text, strlen(c->text), &out->k, &err) ||
        qn__domain(out->k, values, false, &out->domain, &err) ||
        !qn__prove_bounds(out->k, values, &out->domain, proved) ||
        qn__facts_collect(
            out->k,
            &(qn_launched){out->args[0], &out->domain, proved, NULL, &policy, QN_ISA_V4, false},
            &out->f, &err)) {
        tap_ok(false, "%s: %s", c->what, err.message);
        qn_kernel_release(out->k);
        return false;
    }
    return true;
}

static void release(collected *x)
{
    qn__facts_release(&x->f);
    qn_kernel_release(x->k);
}

/* y is the first view, x the second, w the third */
#define PIXELS                                                                                     \
    "kernel p (y: f64[,], x: f64[,], w: f64[,]) contract { for all n, c in y {"                    \
    " y[n, c] = sum k in dim(x, 0) of x[k, n] * w[c, k] } }"
#define ROWS(order)                                                                                \
    "kernel r (y: f64[], x: f64[,]) contract { for all n in y {"                                   \
    " y[n] = (sum " order " k in dim(x, 1) of x[n, k] * x[n, 0])"                                  \
    " + (prod " order " k in dim(x, 1) of x[n, k]) - (max k in dim(x, 1) of x[n, k]) } }"
#define TRIPS                                                                                      \
    "kernel t (y: f64[], x: f64[,]) { for all n in y { s = x[n, 0]\n t: f64 = 1\n"                 \
    " for k in 1 .. 8 step 3 { s, t = t * x[n, k] + 1, s }\n for k in 5 .. 5 { s = 0 }\n"          \
    " for k in 0 .. 8 { if x[n, k] > 0 { t += x[n, k] } }\n y[n] = s - t } }"
#define HORNER                                                                                     \
    "kernel h (y: f64[], x: f64[,]) { for all n in y { s = x[n, 0]\n"                              \
    " for k in 1 .. extent(x, 1) { s = s * 0.5 + x[n, k] }\n y[n] = s } }"
#define IN_PLACE                                                                                   \
    "kernel i (y: f64[,], x: f64[,]) { for all n, c in y {"                                        \
    " y[n, c] = y[n, c] * 0.5 + x[n, 2 - c]\n y[n, c] += f64(c) } }"
/* all indices that data say are in range, which nobody knows before */
#define TRIANGLES                                                                                  \
    "kernel g (y: f64[], x: f64[,], w: f64[]) { for all n in y { s = f64(0)\n"                     \
    " for k in 0 .. 3 { s += w[i64(abs(x[n, k]) * 3)] }\n"                                         \
    " for k in 0 .. 3 { s += w[i64(abs(x[n, k]) * 3)] * f64(k) }\n y[n] = s } }"
#define SLICES                                                                                     \
    "kernel s (y: f64[], x: f64[], w: f64[]) { for all n in y {"                                   \
    " y[n] = w[i64(abs(x[n / 8]) * 3)] * f64(n % 8) } }"
#define ROWS_OF_SLICES                                                                             \
    "kernel q (y: f64[,], x: f64[], w: f64[]) { for all n, c in y {"                               \
    " y[n, c] = w[i64(abs(x[n / 8]) * 3)] * f64(n % 8) } }"
#define WHILE                                                                                      \
    "kernel w (y: f64[,]) { for all n, c in y { t = y[n, c]\n"                                     \
    " while t > 1 max 9 { t = t * 0.5 }\n y[n, c] = t } }"
#define BLOCKS                                                                                     \
    "kernel b (y: f64[,], x: f64[,,]) { for all n, p in y {"                                       \
    " y[n, p] = x[n, p / 7, p % 7] + f64((p + 3) / 7 * 5 + (p + 10) % 7) } }"
#define NESTED                                                                                     \
    "kernel m (y: f64[,], x: f64[,,]) { for all n, p in y {"                                       \
    " y[n, p] = x[n, p / 12, p % 12 / 3] * f64(p % 3 + (p >> 2) + (p & 1) * 100) } }"
#define INSIDE                                                                                     \
    "kernel n (y: f64[,], x: f64[,]) { for all i in 1 .. extent(y, 0) - 1, j in dim(y, 1) {"       \
    " y[i, j] += x[(i + 1) / 2, j] * f64(i & 1) } }"

static const straight_case cases[] = {
    {"channels", PIXELS, 3, {2, 2, 2}, {{40, 3}, {4, 40}, {3, 4}}, {.dims = 2}, true, 9},
    {"channels and points",
     PIXELS,
     3,
     {2, 2, 2},
     {{40, 3}, {4, 40}, {3, 4}},
     {.dims = 6},
     true,
     19},
    {"points in index order", ROWS("indexed"), 2, {1, 2}, {{50}, {50, 5}}, {.dims = 2}, true, 6},
    {"points in partials", ROWS("striped"), 2, {1, 2}, {{50}, {50, 7}}, {.dims = 2}, true, 8},
    {"points in turn", ROWS("ordered"), 2, {1, 2}, {{50}, {50, 16}}, {.dims = 2}, true, 17},
    {"trips", TRIPS, 2, {1, 2}, {{50}, {50, 8}}, {.has_trips = true}, true, 9},
    {"trips up to an extent", HORNER, 2, {1, 2}, {{50}, {50, 8}}, {.has_trips = true}, true, 9},
    {"members in place", IN_PLACE, 2, {2, 2}, {{50, 3}, {50, 3}}, {.dims = 2}, true, 15},
    {"blocks", BLOCKS, 2, {2, 3}, {{5, 42}, {5, 6, 7}}, {.cut = {0, 7}}, true, 2},
    {"blocks of twelve", NESTED, 2, {2, 3}, {{5, 48}, {5, 4, 4}}, {.cut = {0, 12}}, true, 2},
    {"blocks of three", NESTED, 2, {2, 3}, {{5, 48}, {5, 4, 4}}, {.cut = {0, 3}}, true, 2},
    {"pairs that begin at 1", INSIDE, 2, {2, 2}, {{42, 10}, {21, 10}}, {.cut = {2, 0}}, true, 3},
    {"trips with checks",
     TRIANGLES,
     3,
     {1, 2, 1},
     {{50}, {50, 3}, {8}},
     {.has_trips = true},
     true,
     7},
    {"a dimension with checks",
     TRIANGLES,
     3,
     {1, 2, 1},
     {{5}, {5, 3}, {8}},
     {.dims = 1},
     false,
     0},
    {"slices with checks", SLICES, 3, {1, 1, 1}, {{48}, {6}, {8}}, {.cut = {8}}, true, 3},
    {"slices with checks, not last",
     ROWS_OF_SLICES,
     3,
     {2, 1, 1},
     {{48, 2}, {6}, {8}},
     {.cut = {8}},
     false,
     0},
    {"trips that may be too many", WHILE, 1, {2}, {{50, 3}}, {.dims = 2}, false, 0},
};

static void test_bits(const straight_case *c)
{
    collected x;
    qn_error err = {0};
    qn_fault fault = {0};
    if (!collect(c, &x))
        return;
    qn_kernel *k = qn__kernel_copy(x.k);
    bool is_done = k && qn__straighten(k, &x.f, &c->loops);
    tap_ok(is_done == c->is_done, "%s: %s", c->what, c->is_done ? "straight code" : "left alone");
    if (is_done) {
        tap_ok(k->n_accesses == c->n_accesses && x.f.n_accesses == c->n_accesses, "%s: %u accesses",
               c->what, k->n_accesses);
        qn__interpret(x.k, c->n_views, x.args[0], &x.domain, QN_CHECKS_REPORT, &fault, &err);
        for (int d = 0; d < k->n_dims; d++) {
            x.domain.begin[d] = x.f.begin[d].value;
            x.domain.end[d] = x.f.end[d].value;
        }
        qn__interpret(k, c->n_views, x.args[1], &x.domain, QN_CHECKS_REPORT, &fault, &err);
        tap_ok(memcmp(memory[0], memory[1], sizeof memory[0]) == 0, "%s: the same bits", c->what);
    }
    qn_kernel_release(k);
    release(&x);
}

/** Whether short loops of a kernel are planned as straight code. */
static void test_plan(const char *what, const straight_case *c, bool is_expected)
{
    collected x;
    qn_straight straight;
    qn_planned planned;
    if (!collect(c, &x))
        return;
    bool is = qn__plan_kernel(x.k, &x.f, &planned, &straight);
    tap_ok(is == is_expected, "%s", what);
    qn__planned_release(&planned);
    qn__straight_release(&straight);
    release(&x);
}

/** Which dimensions become two, and that what is left is affine: no access is a quotient's. */
static void test_cuts(void)
{
    static const struct {
        const char *what, *text;
        int64_t rows, cut[2];
    } row[] = {
        {"the greatest of the divisors is taken",
         "kernel c (y: f64[,], x: f64[,]) { for all n, p in y { y[n, p] = x[p / 4, p % 4] + x[p / "
         "12, p % 3] } }",
         40,
         {0, 12}},
        {"both dimensions, of which one begins at 1",
         "kernel c (y: f64[,], x: f64[,]) { for all n in 1 .. 41, p in 0 .. 48 { y[n, p] = x[n / "
         "2, p & 3] } }",
         42,
         {2, 4}},
        {"a range that is not whole parts stays",
         "kernel c (y: f64[,], x: f64[,]) { for all n, p in y { y[n, p] = x[p / 5, p % 5] } }",
         40,
         {0, 0}},
        {"an index times two stays",
         "kernel c (y: f64[,], x: f64[,]) { for all n, p in y { y[n, p] = x[p * 2 / 4, 0] } }",
         40,
         {0, 0}},
    };
    for (size_t n = 0; n < sizeof row / sizeof row[0]; n++) {
        const straight_case c = {.what = row[n].what,
                                 .text = row[n].text,
                                 .n_views = 2,
                                 .rank = {2, 2},
                                 .extent = {{row[n].rows, 48}, {48, 48}}};
        collected x;
        qn_analysis a;
        int64_t cut[QN_MAX_RANK];
        if (!collect(&c, &x))
            continue;
        bool is_known = qn__analyse(x.k, &x.f, -1, 0, &a), is = is_known && qn__find_cuts(&a, cut);
        tap_ok(is_known && is == (row[n].cut[0] || row[n].cut[1]) && cut[0] == row[n].cut[0] &&
                   cut[1] == row[n].cut[1],
               "%s: %d, %d", row[n].what, (int)cut[0], (int)cut[1]);
        qn__analysis_release(&a);
        release(&x);
    }
    test_plan("an index in blocks is planned as two dimensions",
              &(straight_case){.what = "blocks",
                               .text = BLOCKS,
                               .n_views = 2,
                               .rank = {2, 3},
                               .extent = {{20, 168}, {20, 24, 7}}},
              true);
}

int main(void)
{
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++)
        test_bits(&cases[n]);
    test_plan("channels of pixels are stored together",
              &(straight_case){.what = "pixels",
                               .text = "kernel p (y: f64[,], x: f64[,]) { for all n, c in y {"
                                       " y[n, c] = x[c, n] * 2 } }",
                               .n_views = 2,
                               .rank = {2, 2},
                               .extent = {{1000, 3}, {3, 1000}}},
              true);
    test_plan("rows that are stored as they are loaded need no straight code",
              &(straight_case){.what = "rows",
                               .text = "kernel p (y: f64[,], x: f64[,]) { for all n, c in y {"
                                       " y[n, c] = x[n, c] * 2 } }",
                               .n_views = 2,
                               .rank = {2, 2},
                               .extent = {{1000, 3}, {1000, 3}}},
              false);
    test_plan("trips up to an extent are planned as straight code",
              &(straight_case){.what = "polynomials",
                               .text = HORNER,
                               .n_views = 2,
                               .rank = {1, 2},
                               .extent = {{1000}, {1000, 8}}},
              true);
    test_cuts();
    return tap_done();
}
