/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_trips.c: which loops of the body may have their trips as lanes, and which of them the
 * planner makes lanes. No code generator is needed.
 */
#include "jit/schedule/search.h"
#include "tests/tap.h"

#include <stdio.h>
#include <string.h>

enum { MOST_VIEWS = 3, ROWS = 40 };

typedef struct trips_case {
    const char *what, *text;
    int n_views, rank[MOST_VIEWS];
    uint32_t traits; /* of the views */
    int n_free;  /* loops whose trips may run at once, */
    int n_lanes; /* and those that are lanes in the planned schedule */
} trips_case;

#define KERNEL(body)                                                                               \
    "kernel t (a: f64[,], b: f64[,], s: i64[]) { for all i in dim(a, 0) {" body "} }"
#define VIEWS 3, {2, 2, 1}, 0
#define UNCHECKED 3, {2, 2, 1}, QN_UNCHECKED

static const trips_case cases[] = {
    {"a triangle in place", KERNEL("for j in i .. extent(a, 1) { a[i, j] = 0.5 * a[i, j] }"), VIEWS,
     1, 1},
    {"another row of the view", KERNEL("r = s[i]\n for j in 0 .. i { a[i, j] = a[r, j] + 1 }"),
     VIEWS, 1, 1},
    {"a range that was loaded", KERNEL("for j in s[i] .. s[i + 1] { a[i, j] = b[i, j] }"), VIEWS, 1,
     1},
    {"under a condition", KERNEL("for j in 0 .. i { if b[i, j] > 0 { a[i, j] = b[i, j] } }"), VIEWS,
     1, 1},
    {"the inner one of two",
     KERNEL("for k in 0 .. i { for j in k .. extent(a, 1) { a[i, j] = a[i, j] * b[k, j] } }"),
     VIEWS, 1, 1},
    {"the outer one of two, along which elements lie side by side",
     KERNEL("for j in 0 .. i { for k in 0 .. extent(b, 0) { a[i, j] = a[i, j] * b[k, j] } }"),
     VIEWS, 1, 1},
    {"an index that is the sum of the trips of two: only the inner one",
     KERNEL("for j in 0 .. 20 { for k in 0 .. 20 { a[i, j + k] = f64(j) } }"), VIEWS, 1, 1},
    {"two beside one another",
     KERNEL("for j in i .. 30 { a[i, j] = 1 }\n for j in 0 .. i { a[i, j] = b[i, j] }"), VIEWS, 2,
     2},
    {"integers that are added under a condition",
     KERNEL("n: i32 = 0\n"
            "for j in 0 .. i { if b[i, j] > 0 { n += i32(s[j]) } else { n = n - 1 } }\n"
            "a[i, 0] = f64(n)"),
     VIEWS, 1, 1},
    {"behind a sum of a row, whose points are lanes, too",
     KERNEL("m = sum striped k in dim(b, 1) of b[i, k]\n"
            "for j in dim(a, 1) { a[i, j] = b[i, j] - m }"),
     VIEWS, 1, 1},
    {"around a sum of a row, whose points are no lanes then",
     KERNEL("m = sum striped k in dim(b, 1) of b[i, k]\n"
            "for j in dim(a, 1) { t = sum ordered k in dim(b, 1) of b[i, k] * b[0, j]\n"
            "a[i, j] = m + t }"),
     VIEWS, 1, 0},
    {"a condition of any trip",
     KERNEL("any = false\n for j in 0 .. i { any = any || b[i, j] > 9 }\n"
            "a[i, 0] = select(any, 1.0, 2.0)"),
     VIEWS, 1, 1},
    {"the greatest of integers, and an index that is carried",
     KERNEL("m: i64 = 0\n p: i64 = 0\n for j in 0 .. i { m = max(m, s[p])\n p += 1 }\n"
            "a[i, 0] = f64(m + p)"),
     VIEWS, 1, 1},
    {"a condition of the trips so far, under which a store is",
     KERNEL("any = false\n for j in 0 .. i { any = any || b[i, j] > 9\n"
            "if any { a[i, j] = 1 } }"),
     VIEWS, 0, 0},
    {"a search",
     KERNEL("j: i64 = 0\n while j < extent(b, 1) && b[i, j] < 9 max 40 { j += 1 }\n"
            "a[i, 0] = f64(j)"),
     VIEWS, 1, 1},
    {"a search backwards, without a bound, that adds what it passes",
     KERNEL("j: i64 = i\n n: i64 = 0\n while b[i, j] < 9 max 40 { n += s[j]\n j = j - 2 }\n"
            "a[i, 0] = f64(n)"),
     VIEWS, 1, 1},
    {"a search that ends by what it adds",
     KERNEL("j: i64 = 0\n n: i64 = 0\n while n < 9 max 40 { n += s[j]\n j += 1 }\n"
            "a[i, 0] = f64(n)"),
     VIEWS, 0, 0},
    {"a search that data leads on",
     KERNEL("j: i64 = 0\n while b[i, j] < 9 max 40 { j = s[j] }\n a[i, 0] = f64(j)"), VIEWS, 0, 0},
    {"a search that looks where data says",
     KERNEL("j: i64 = 0\n while b[i, s[j]] < 9 max 40 { j += 1 }\n a[i, 0] = f64(j)"), VIEWS, 0, 0},
    {"a search that stores",
     KERNEL("j: i64 = 0\n while b[i, j] < 9 max 40 { a[i, j] = 1\n j += 1 }"), VIEWS, 0, 0},
    {"sums that are stored on the way",
     KERNEL("n: i64 = 0\n for j in 0 .. i { n += s[j]\n a[i, j] = f64(n) }"), VIEWS, 0, 0},
    {"a number that a product and a sum change",
     KERNEL("n: i64 = 0\n for j in 0 .. i { n = 3 * n + s[j] }\n a[i, 0] = f64(n)"), VIEWS, 0, 0},
    {"two numbers, one of which is made of the other",
     KERNEL("m: i64 = 0\n n: i64 = 0\n for j in 0 .. i { m += s[j]\n n += m }\n"
            "a[i, 0] = f64(n)"),
     VIEWS, 0, 0},
    {"a sum of floats",
     KERNEL("x: f64 = 0\n for j in 0 .. i { x += b[i, j] }\n a[i, 0] = x"), VIEWS, 0, 0},
    {"a value that is carried",
     KERNEL("x: f64 = 0\n for j in 0 .. i { x = x * 0.5 + b[i, j]\n a[i, j] = x }"), VIEWS, 0, 0},
    {"the element that the trip before stored",
     KERNEL("for j in 1 .. i { a[i, j] = a[i, j - 1] }"), VIEWS, 0, 0},
    {"the element that the trip eight before stored",
     KERNEL("for j in 8 .. i { a[i, j] = 0.5 * a[i, j - 8] + b[i, j] }"), VIEWS, 1, 1},
    {"the element that the trip three before stored: too few lanes",
     KERNEL("for j in 3 .. i { a[i, j] = 0.5 * a[i, j - 3] + b[i, j] }"), VIEWS, 1, 0},
    {"the element that the trip eight before stored, and the last one",
     KERNEL("for j in 8 .. i { a[i, j] = a[i, j - 1] + a[i, j - 8] }"), VIEWS, 0, 0},
    {"every second element, of those between",
     KERNEL("for j in 1 .. i step 2 { a[i, j] = a[i, j - 1] + b[i, j] }"), VIEWS, 1, 1},
    {"one element for all trips", KERNEL("for j in 1 .. i { a[i, 0] = b[i, j] }"), VIEWS, 0, 0},
    {"elements in range that only a test of each lane shows",
     KERNEL("for j in 0 .. i { a[i, j] = b[s[j], j] }"), VIEWS, 1, 0},
    {"elements that data names", KERNEL("for j in 1 .. i { a[i, s[j]] = b[i, j] }"), VIEWS, 0, 0},
    {"a loop inside that may be too long",
     KERNEL("for j in 0 .. i { x = b[i, j]\n while x > 1 max 9 { x = x * 0.5 }\n a[i, j] = x }"),
     VIEWS, 0, 0},
    {"a search that a check of its range keeps inside",
     KERNEL("is: bool = false\n for j in 0 .. s[i] { is = is || b[i, j] > 0 }\n"
            "s[i] = select(is, 1, 0)"),
     VIEWS, 1, 1},
    {"a search that only its own end keeps inside",
     KERNEL("is: bool = false\n for j in 0 .. s[i] { is = is || b[i, j] > 0 }\n"
            "s[i] = select(is, 1, 0)"),
     UNCHECKED, 0, 0},
    {"an assertion", KERNEL("for j in 0 .. i { assert b[i, j] > 0 \"positive\";\n a[i, j] = 1 }"),
     VIEWS, 0, 0},
};

static double memory[MOST_VIEWS][ROWS * ROWS];

static void test_case(const trips_case *c)
{
    qn_error err = {0};
    uint8_t proved[32] = {0};
    qn_view view[MOST_VIEWS];
    qn_arg args[MOST_VIEWS];
    qn_arg_value values[MOST_VIEWS];
    qn_domain domain;
    qn_kernel *k = NULL;
    qn_facts f;
    qn_planned planned;
    qn_straight straight;
    const qn_policy policy = {0};
    const int64_t extent[2] = {ROWS, ROWS};
    for (int p = 0; p < c->n_views; p++) {
        view[p] = (qn_view){.data = memory[p], .dtype = c->rank[p] == 1 ? QN_I64 : QN_F64,
                            .traits = c->traits};
        qn_layout_right(c->rank[p], extent, &view[p].layout, NULL);
        args[p] = qn_arg_view(&view[p]);
        values[p] = (qn_arg_value){.layout = &view[p].layout};
    }
    if (qn_kernel_parse(c->text, strlen(c->text), &k, &err) ||
        qn__domain(k, values, false, &domain, &err) ||
        !qn__prove_bounds(k, values, &domain, proved) ||
        qn__facts_collect(
            k, &(qn_launched){args, &domain, proved, NULL, &policy, QN_ISA_V4, false}, &f, &err)) {
        tap_ok(false, "%s: %s", c->what, err.message);
        qn_kernel_release(k);
        return;
    }
    bool is_straight = qn__plan_kernel(k, &f, &planned, &straight);
    const qn_analysis *x = &planned.analysis;
    int n_free = 0;
    for (uint32_t i = k->body; i < k->n_insts && !is_straight; i++)
        n_free += qn__trips_at_once(x, i) > 1;
    tap_ok(n_free == c->n_free, "%s: trips of %d loops may run at once", c->what, c->n_free);
    int n_lanes = planned.schedule ? qn__trip_lanes_of(x, planned.schedule).n : -1;
    tap_ok(n_lanes == c->n_lanes, "%s: %d are lanes", c->what, c->n_lanes);
    qn__planned_release(&planned);
    qn__straight_release(&straight);
    qn__facts_release(&f);
    qn_kernel_release(k);
}

int main(void)
{
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++)
        test_case(&cases[n]);
    return tap_done();
}
