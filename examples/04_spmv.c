/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 04_spmv.c [cuda]: sparse matrix times vector. The rows of a compressed sparse matrix have
 * different lengths, so each iteration runs a `for` whose bounds come from memory. Then one column
 * index is damaged: the launch says which, and the program goes on. With the argument `cuda` all of
 * it runs on a GPU.
 */
#include "place.h"

#include <math.h>

enum { ROWS = 2000, PER_ROW_MAX = 9 };

/* A matrix in compressed sparse rows: entries row[i] .. row[i+1]-1 belong to row i. */
typedef struct sparse {
    int32_t row[ROWS + 1], column[ROWS * PER_ROW_MAX];
    double value[ROWS * PER_ROW_MAX];
} sparse;

static void make_matrix(sparse *m)
{
    m->row[0] = 0;
    for (int32_t i = 0; i < ROWS; i++) {
        int32_t n = i % (PER_ROW_MAX + 1); /* rows of 0 to 9 entries */
        for (int32_t e = 0; e < n; e++) {
            m->column[m->row[i] + e] = (i * 31 + e * 97) % ROWS;
            m->value[m->row[i] + e] = 0.5 * e - 1;
        }
        m->row[i + 1] = m->row[i] + n;
    }
}

/* [spmv-build] */
static qn_kernel *build_spmv(void)
{
    qn_builder *b = qn_builder_new("spmv", 0);
    qn_param row = qn_view_param(b, "row", QN_I32, 1, 0);
    qn_param column = qn_view_param(b, "column", QN_I32, 1, 0);
    qn_param value = qn_view_param(b, "value", QN_F64, 1, 0);
    qn_param x = qn_view_param(b, "x", QN_F64, 1, 0);
    qn_param y = qn_view_param(b, "y", QN_F64, 1, 0);

    qn_val i = qn_parallel_over(b, y, 0);
    qn_val next_row = qn_add(b, i, qn_index(b, 1));
    qn_val begin = qn_load(b, row, 1, &i), end = qn_load(b, row, 1, &next_row);

    qn_val zero = qn_const_float(b, QN_F64, 0), partial, sum;
    qn_val k = qn_for(b, qn_cast(b, QN_I64, begin), qn_cast(b, QN_I64, end), 1, 1, &zero, &partial);
    qn_val j = qn_load(b, column, 1, &k);
    qn_val product = qn_mul(b, qn_load(b, value, 1, &k), qn_load(b, x, 1, &j));
    qn_val next = qn_add(b, partial, product);
    qn_end_for(b, 1, &next, &sum);
    qn_store(b, y, 1, &i, sum);

    qn_kernel *kernel = NULL;
    qn_error err = {0};
    must(qn_finish(b, &kernel, &err), &err);
    qn_builder_release(b);
    return kernel;
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

static bool is_product(const sparse *m, const double *x, const double *y)
{
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int e = m->row[i]; e < m->row[i + 1]; e++) {
            double product = m->value[e] * x[m->column[e]];
            sum += product;
        }
        if (y[i] != sum)
            return false;
    }
    return true;
}

/* y = A x. On a GPU with copies of the arrays, and what the launch has to tell is known after
 * waiting. */
static qn_status multiply(const place *at, const qn_kernel *k, const qn_view v[5], qn_error *err)
{
    qn_view there[5];
    qn_arg args[5];
    for (int p = 0; p < 5; p++) {
        there[p] = place_copy(at, &v[p]);
        args[p] = qn_arg_view(&there[p]);
    }
    qn_status status = qn_launch(at->context, k, 5, args, &at->options, err);
    if (status == QN_OK)
        status = place_wait(at, err);
    place_fetch(at, &v[4], &there[4]);
    for (int p = 0; p < 5; p++)
        qn_view_release(&there[p]);
    return status;
}

int main(int argc, char **argv)
{
    static sparse m;
    static double x[ROWS], y[ROWS];
    int failed = 0;
    qn_error err = {0};
    qn_context *c = NULL;
    make_matrix(&m);
    for (int i = 0; i < ROWS; i++)
        x[i] = 1.0 + 0.001 * i;

    must(qn_context_new(NULL, &c, &err), &err);
    place at = place_open(c, argc, argv);
    qn_kernel *k = build_spmv();
    int64_t n = m.row[ROWS];
    qn_view v[5] = {wrap("row", m.row, QN_I32, ROWS + 1), wrap("column", m.column, QN_I32, n),
                    wrap("value", m.value, QN_F64, n), wrap("x", x, QN_F64, ROWS),
                    wrap("y", y, QN_F64, ROWS)};
    printf("A %d x %d matrix with %" PRId64 " entries in rows of 0 to %d:\n", ROWS, ROWS, n,
           PER_ROW_MAX);
    must(multiply(&at, k, v, &err), &err);
    failed += check(is_product(&m, x, y), "y = A x, bit for bit");

    /* [spmv-damage] */
    int32_t good = m.column[1234];
    m.column[1234] = 123456;
    qn_status status = multiply(&at, k, v, &err);
    printf("With column[1234] = 123456 the launch returns %s:\n  %s\n", qn_status_name(err.status),
           err.message);
    m.column[1234] = good;
    /* [end] */
    failed += check(status == QN_ERR_BOUNDS, "the access outside x was reported");
    failed += check(strstr(err.message, "123456") && strstr(err.message, "x"),
                    "the message names the view and the index");

    puts("The program goes on with the repaired matrix:");
    must(multiply(&at, k, v, &err), &err);
    failed += check(is_product(&m, x, y), "y = A x again");

    qn_kernel_release(k);
    place_close(&at);
    qn_context_release(c);
    return failed != 0;
}
