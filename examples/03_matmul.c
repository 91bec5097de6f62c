/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 03_matmul.c [cuda]: a matrix product, C[i,j] = sum over k of A[i,k] * B[k,j], with a reduction
 * dimension. The kernel is written once; the program runs it on row-major and column-major matrices
 * and on a block of a larger matrix. With the argument `cuda` all of it runs on a GPU.
 */
#include "place.h"

#include <math.h>

enum { M = 70, N = 90, K = 110 };

/* [matmul-build] */
static qn_kernel *build_matmul(void)
{
    qn_builder *b = qn_builder_new("matmul", QN_CONTRACT);
    qn_param pa = qn_view_param(b, "A", QN_F64, 2, 0);
    qn_param pb = qn_view_param(b, "B", QN_F64, 2, 0);
    qn_param pc = qn_view_param(b, "C", QN_F64, 2, 0);
    qn_val i = qn_parallel_over(b, pc, 0);
    qn_val j = qn_parallel_over(b, pc, 1);
    qn_val k = qn_reduction_over(b, pa, 1);

    qn_reduce(b, QN_COMBINE_SUM, QN_ORDER_DEFAULT, QN_AT(k));
    qn_val product = qn_mul(b, qn_load(b, pa, QN_AT(i, k)), qn_load(b, pb, QN_AT(k, j)));
    qn_store(b, pc, QN_AT(i, j), qn_end_reduce(b, product));

    qn_kernel *kernel = NULL;
    qn_error err = {0};
    must(qn_finish(b, &kernel, &err), &err);
    qn_builder_release(b);
    return kernel;
}
/* [end] */

static double a_at(int64_t i, int64_t k)
{
    return (double)((i * 7 + k * 3) % 11) - 5;
}

static double b_at(int64_t k, int64_t j)
{
    return (double)((k * 5 + j * 2) % 13) / 4;
}

static double *element(const qn_view *v, int64_t i, int64_t j)
{
    void *p = NULL;
    qn_error err = {0};
    int64_t index[2] = {i, j};
    must(qn_view_at(v, 2, index, &p, &err), &err);
    return p;
}

static void fill(const qn_view *v, double (*value)(int64_t, int64_t))
{
    for (int64_t i = 0; i < v->layout.dim[0].extent; i++)
        for (int64_t j = 0; j < v->layout.dim[1].extent; j++)
            *element(v, i, j) = value(i, j);
}

/* The products are multiples of 1/4 and small: every order of summation gives the same bits. */
static bool is_product(const qn_view *c)
{
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += a_at(i, k) * b_at(k, j);
            if (*element(c, i, j) != sum)
                return false;
        }
    }
    return true;
}

static qn_view make_matrix(qn_context *c, const char *label, int64_t rows, int64_t columns,
                           bool is_left)
{
    qn_error err = {0};
    qn_layout l;
    qn_view v;
    int64_t extents[2] = {rows, columns};
    must(is_left ? qn_layout_left(2, extents, &l, &err) : qn_layout_right(2, extents, &l, &err),
         &err);
    must(qn_view_alloc(c, label, QN_F64, &l, 0, &v, &err), &err);
    return v;
}

/* Multiplies, on copies of the matrices if this is on a GPU; returns the milliseconds of the second
 * time. */
static double multiply(const place *at, const qn_kernel *k, const qn_view *a, const qn_view *b,
                       const qn_view *p)
{
    qn_error err = {0};
    qn_view there[3] = {place_copy(at, a), place_copy(at, b), place_copy(at, p)};
    qn_arg args[] = {qn_arg_view(&there[0]), qn_arg_view(&there[1]), qn_arg_view(&there[2])};
    must(qn_launch(at->context, k, 3, args, &at->options, &err), &err);
    must(place_wait(at, &err), &err);
    double start = now_ms();
    must(qn_launch(at->context, k, 3, args, &at->options, &err), &err);
    must(place_wait(at, &err), &err);
    double ms = now_ms() - start;
    place_fetch(at, p, &there[2]);
    for (int i = 0; i < 3; i++)
        qn_view_release(&there[i]);
    return ms;
}

static int run_layouts(const place *at, const qn_kernel *k, unsigned lefts)
{
    qn_context *c = at->context;
    qn_view a = make_matrix(c, "A", M, K, lefts & 1), b = make_matrix(c, "B", K, N, lefts & 2);
    qn_view p = make_matrix(c, "C", M, N, lefts & 4);
    fill(&a, a_at);
    fill(&b, b_at);
    double ms = multiply(at, k, &a, &b, &p);
    char what[96];
    snprintf(what, sizeof what, "A %s, B %s, C %s: %.3f ms, %.2f GF/s",
             lefts & 1 ? "left " : "right", lefts & 2 ? "left " : "right",
             lefts & 4 ? "left " : "right", ms, (double)(2 * M * N * K) / ms / 1e6);
    int failed = check(is_product(&p), what);
    qn_view_release(&a);
    qn_view_release(&b);
    qn_view_release(&p);
    return failed;
}

/* The product is written into a block of a larger matrix; what is around it must not change. */
static int run_block(const place *at, const qn_kernel *k)
{
    qn_error err = {0};
    qn_context *c = at->context;
    qn_view a = make_matrix(c, "A", M, K, false), b = make_matrix(c, "B", K, N, false);
    qn_view whole = make_matrix(c, "whole", M + 4, N + 6, false), block;
    fill(&a, a_at);
    fill(&b, b_at);
    must(qn_subview(&whole, QN_SLICES(qn_range(2, M + 2), qn_range(3, N + 3)), &block, &err), &err);
    multiply(at, k, &a, &b, &block);
    int failed = check(is_product(&block), "C is a block in the middle of a larger matrix");
    bool is_clean = true;
    for (int64_t i = 0; i < M + 4; i++)
        for (int64_t j = 0; j < N + 6; j++)
            if (i < 2 || i >= M + 2 || j < 3 || j >= N + 3)
                is_clean = is_clean && *element(&whole, i, j) == 0;
    failed += check(is_clean, "nothing was written around it");
    qn_view_release(&block);
    qn_view_release(&whole);
    qn_view_release(&a);
    qn_view_release(&b);
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    qn_error err = {0};
    qn_context *c = NULL;
    must(qn_context_new(NULL, &c, &err), &err);
    place at = place_open(c, argc, argv);
    qn_kernel *k = build_matmul();
    printf("(%d x %d) times (%d x %d), one kernel, all eight combinations of layouts:\n", M, K, K,
           N);
    for (unsigned lefts = 0; lefts < 8; lefts++)
        failed += run_layouts(&at, k, lefts);
    failed += run_block(&at, k);
    qn_kernel_release(k);
    place_close(&at);
    qn_context_release(c);
    return failed != 0;
}
