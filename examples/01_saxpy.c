/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 01_saxpy.c: the first program. It builds y = a*x + y, runs it on two arrays, looks at the
 * kernel's text, and runs the same kernel again on every other element of the arrays.
 */
#include "example.h"

#include <math.h>

/* [saxpy-build] */
static qn_kernel *build_saxpy(void)
{
    qn_builder *b = qn_builder_new("saxpy", QN_CONTRACT);
    qn_param px = qn_view_param(b, "x", QN_F32, 1, 0);
    qn_param py = qn_view_param(b, "y", QN_F32, 1, 0);
    qn_val a = qn_scalar_param(b, "a", QN_F32);

    qn_val i = qn_parallel_over(b, py, 0);
    qn_val x = qn_load(b, px, QN_AT(i));
    qn_val y = qn_load(b, py, QN_AT(i));
    qn_store(b, py, QN_AT(i), qn_add(b, qn_mul(b, a, x), y));

    qn_kernel *k = NULL;
    qn_error err = {0};
    must(qn_finish(b, &k, &err), &err);
    qn_builder_release(b);
    return k;
}
/* [end] */

static void print_kernel(const qn_kernel *k)
{
    char text[2048];
    qn_kernel_print(k, text, sizeof text);
    printf("The kernel as text; `contract` made the product and the sum one fma:\n\n%s\n", text);
}

static bool is_right(const float *y, const float *old, float a, int n, int step)
{
    for (int i = 0; i < n; i++) {
        float expected = i % step == 0 ? fmaf(a, (float)i, old[i]) : old[i];
        if (y[i] != expected)
            return false;
    }
    return true;
}

int main(void)
{
    enum { N = 1000 };
    static float x[N], y[N], old[N];
    int failed = 0;
    qn_error err = {0};
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = old[i] = 0.25f * (float)(i % 7);
    }

    qn_kernel *k = build_saxpy();
    print_kernel(k);

    /* [saxpy-run] */
    qn_context *c = NULL;
    must(qn_context_new(NULL, &c, &err), &err);

    qn_layout layout;
    qn_view vx, vy;
    int64_t extent = N;
    must(qn_layout_right(1, &extent, &layout, &err), &err);
    must(qn_view_wrap("x", x, QN_F32, &layout, 0, &vx, &err), &err);
    must(qn_view_wrap("y", y, QN_F32, &layout, 0, &vy, &err), &err);

    must(qn_launch(c, k, QN_ARGS(qn_arg_view(&vx), qn_arg_view(&vy), qn_arg_f32(2.5f)), NULL, &err),
         &err);
    /* [end] */
    printf("y = 2.5*x + y on %d elements: y[10] = %g\n", N, (double)y[10]);
    failed += check(is_right(y, old, 2.5f, N, 1), "every element is fma(a, x, y)");

    /* [saxpy-subview] */
    qn_slice every_other = qn_range_step(0, N, 2);
    qn_view sx, sy;
    must(qn_subview(&vx, 1, &every_other, &sx, &err), &err);
    must(qn_subview(&vy, 1, &every_other, &sy, &err), &err);
    must(qn_launch(c, k, QN_ARGS(qn_arg_view(&sx), qn_arg_view(&sy), qn_arg_f32(-1)), NULL, &err),
         &err);
    /* [end] */
    for (int i = 0; i < N; i++)
        old[i] = fmaf(2.5f, (float)i, old[i]);
    printf("The same kernel with a = -1 on elements 0, 2, 4, ...: y[10] = %g, y[11] = %g\n",
           (double)y[10], (double)y[11]);
    failed += check(is_right(y, old, -1.0f, N, 2), "even elements changed, odd ones did not");

    qn_view_release(&sx);
    qn_view_release(&sy);
    qn_context_release(c);
    qn_kernel_release(k);
    return failed != 0;
}
