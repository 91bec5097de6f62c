/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 06_overlap_and_bounds.c: what a launch checks. Arguments of the wrong kind are refused before
 * anything runs; views that overlap are run in iteration order, or refused on request; an index
 * outside a view is reported or clamped. Nothing here ends the program or writes outside a view.
 */
#include "example.h"

#include <string.h>

enum { N = 100 };

/* [overlap-build] */
/* to[i] = from[i + shift] */
static qn_kernel *build_shift(void)
{
    qn_builder *b = qn_builder_new("shift", 0);
    qn_param from = qn_view_param(b, "from", QN_I32, 1, 0);
    qn_param to = qn_view_param(b, "to", QN_I32, 1, 0);
    qn_val shift = qn_scalar_param(b, "shift", QN_I64);
    qn_val i = qn_parallel_over(b, to, 0);
    qn_val at = qn_add(b, i, shift);
    qn_store(b, to, 1, &i, qn_load(b, from, 1, &at));
    qn_kernel *k = NULL;
    qn_error err = {0};
    must(qn_finish(b, &k, &err), &err);
    qn_builder_release(b);
    return k;
}
/* [end] */

static qn_view wrap(const char *label, void *data, int dtype, int64_t n)
{
    qn_error err = {0};
    qn_layout l;
    qn_view v;
    must(qn_layout_right(1, &n, &l, &err), &err);
    must(qn_view_wrap(label, data, dtype, &l, 0, &v, &err), &err);
    return v;
}

static void count_up(int32_t *x)
{
    for (int i = 0; i < N; i++)
        x[i] = i;
}

/* A launch that must fail with this status; prints its message. */
static int refuse(qn_context *c, const qn_kernel *k, int n, const qn_arg *args, const qn_options *o,
                  qn_status expected)
{
    qn_error err = {0};
    char what[QN_MESSAGE_BYTES + 40];
    qn_status status = qn_launch(c, k, n, args, o, &err);
    snprintf(what, sizeof what, "%s: %s", qn_status_name(err.status), err.message);
    return check(status == expected, what);
}

static int show_arguments(qn_context *c, const qn_kernel *k)
{
    static int32_t x[N], y[N];
    static double wide[N];
    qn_view vx = wrap("x", x, QN_I32, N), vy = wrap("y", y, QN_I32, N),
            vw = wrap("wide", wide, QN_F64, N), none = {0};
    qn_view fixed = vy;
    fixed.traits = QN_READ_ONLY;
    qn_arg zero = qn_arg_int(QN_I64, 0);
    qn_arg few[] = {qn_arg_view(&vx), qn_arg_view(&vy)};
    qn_arg dtype[] = {qn_arg_view(&vw), qn_arg_view(&vy), zero};
    qn_arg kind[] = {qn_arg_view(&vx), zero, zero};
    qn_arg read_only[] = {qn_arg_view(&vx), qn_arg_view(&fixed), zero};
    qn_arg empty[] = {qn_arg_view(&vx), qn_arg_view(&none), zero};
    puts("Arguments that do not fit are refused:");
    int failed = refuse(c, k, 2, few, NULL, QN_ERR_ARGUMENT);
    failed += refuse(c, k, 3, dtype, NULL, QN_ERR_DTYPE);
    failed += refuse(c, k, 3, kind, NULL, QN_ERR_ARGUMENT);
    failed += refuse(c, k, 3, read_only, NULL, QN_ERR_READ_ONLY);
    qn_error err = {0};
    qn_status status = qn_launch(c, k, 3, empty, NULL, &err);
    printf("         %s: %s\n", qn_status_name(err.status), err.message);
    return failed + check(status != QN_OK, "a view that was never made");
}

static int show_overlap(qn_context *c, const qn_kernel *k)
{
    static int32_t x[N];
    int failed = 0;
    qn_error err = {0};
    /* [overlap-run] */
    count_up(x);
    qn_view all = wrap("x", x, QN_I32, N), first, last;
    must(qn_subview(&all, QN_SLICES(qn_range(0, N - 1)), &first, &err), &err);
    must(qn_subview(&all, QN_SLICES(qn_range(1, N)), &last, &err), &err);
    qn_arg args[] = {qn_arg_view(&first), qn_arg_view(&last), qn_arg_int(QN_I64, 0)};
    must(qn_launch(c, k, 3, args, NULL, &err), &err);
    /* [end] */
    puts("x[1..] = x[..99] through two views of one array. They overlap, so it runs in iteration "
         "order, and each step reads\n"
         "what the step before has written:");
    failed += check(x[0] == 0 && x[1] == 0 && x[N - 1] == 0, "x[0] was copied into all of x");

    qn_options strict = {.bytes = sizeof strict, .strict = 1};
    puts("With the option `strict` it is refused:");
    failed += refuse(c, k, 3, args, &strict, QN_ERR_OVERLAP);
    qn_view_release(&first);
    qn_view_release(&last);
    return failed;
}

static int show_bounds(qn_context *c, const qn_kernel *k)
{
    static int32_t x[N], y[N + 2];
    int failed = 0;
    qn_error err = {0};
    count_up(x);
    memset(y, 0x55, sizeof y);
    qn_view from = wrap("x", x, QN_I32, N), to = wrap("y", y + 1, QN_I32, N);
    qn_arg args[] = {qn_arg_view(&from), qn_arg_view(&to), qn_arg_int(QN_I64, 3)};
    puts("y[i] = x[i + 3] leaves x near the end. The first access outside is reported:");
    failed += refuse(c, k, 3, args, NULL, QN_ERR_BOUNDS);

    qn_options clamp = {.bytes = sizeof clamp, .checks = QN_CHECKS_CLAMP};
    must(qn_launch(c, k, 3, args, &clamp, &err), &err);
    puts("With checks set to clamp, the nearest element is read instead:");
    failed += check(y[1] == 3 && y[N - 3] == N - 1 && y[N] == N - 1, "y ends with 98 99 99 99 99");
    failed += check(y[0] == 0x55555555 && y[N + 1] == 0x55555555, "nothing around y was written");
    return failed;
}

int main(void)
{
    qn_error err = {0};
    qn_context *c = NULL;
    must(qn_context_new(NULL, &c, &err), &err);
    qn_kernel *k = build_shift();
    int failed = show_arguments(c, k) + show_overlap(c, k) + show_bounds(c, k);
    qn_kernel_release(k);
    qn_context_release(c);
    return failed != 0;
}
