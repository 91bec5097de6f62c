/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpret.c FOLDER: runs the kernels of use_object.c, whose texts are in the folder, with the
 * interpreter, and prints the same lines.
 */
#include "inputs.h"

#include <quern.h>

#include <string.h>

static const char *folder;

/* An array of a kernel, dense; `data` is freed. */
typedef struct array {
    int dtype, rank;
    int64_t extent[2];
    void *data;
} array;

static qn_kernel *read_kernel(const char *name, qn_error *err)
{
    static char text[1 << 16], path[600];
    qn_kernel *k = NULL;
    snprintf(path, sizeof path, "%s/%s.qn", folder, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f)
        fclose(f);
    return qn_kernel_parse(text, n, &k, err) == QN_OK ? k : NULL;
}

/* Launches, and shows array number `result`. */
static int run(const char *label, const char *name, int n_arrays, const array *a, int result,
               int n_scalars, const float *scalar, int is_double)
{
    qn_view view[8] = {{0}};
    qn_arg arg[8];
    qn_error err = {0};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    qn_kernel *k = read_kernel(name, &err);
    int status = k == NULL;
    for (int i = 0; i < n_arrays && !status; i++) {
        status =
            qn_view_new(NULL, NULL, a[i].dtype, a[i].rank, a[i].extent, &view[i], &err) != QN_OK;
        if (!status)
            memcpy(view[i].data, a[i].data,
                   (size_t)qn_layout_size(&view[i].layout) * (size_t)qn_dtype_bytes(a[i].dtype));
        arg[i] = qn_arg_view(&view[i]);
    }
    for (int i = 0; i < n_scalars; i++)
        arg[n_arrays + i] = is_double ? qn_arg_f64((double)scalar[i]) : qn_arg_f32(scalar[i]);
    qn_context *c = NULL;
    status = status || qn_context_new(NULL, &c, &err) != QN_OK ||
             qn_launch(c, k, n_arrays + n_scalars, arg, &o, &err) != QN_OK;
    if (status)
        printf("%s: %s\n", label, err.message);
    else
        show(label, view[result].data,
             (size_t)qn_layout_size(&view[result].layout) *
                 (size_t)qn_dtype_bytes(a[result].dtype));
    for (int i = 0; i < n_arrays; i++) {
        qn_view_release(&view[i]);
        free(a[i].data);
    }
    qn_kernel_release(k);
    qn_context_release(c);
    return status;
}

static int multiply(int64_t rows, int64_t inner, int64_t columns)
{
    const array a[] = {{QN_F64, 2, {rows, inner}, doubles(5, rows * inner)},
                       {QN_F64, 2, {inner, columns}, doubles(6, inner * columns)},
                       {QN_F64, 2, {rows, columns}, doubles(7, rows * columns)}};
    return run("matmul", "matmul", 3, a, 2, 0, NULL, 0);
}

int main(int n_words, char **word)
{
    const float a = 2.5f, c = 0.2f, place[3] = {-2, -1, 0.05f};
    int status = 0;
    folder = n_words > 1 ? word[1] : ".";
    for (int i = 0; i < 3; i++)
        status |= run("saxpy", "saxpy", 2,
                      (array[]){{QN_F32, 1, {SAXPY_N}, floats(1, SAXPY_N)},
                                {QN_F32, 1, {SAXPY_N}, floats(2, SAXPY_N)}},
                      1, 1, &a, 0);
    status |= run("stencil5", "stencil5", 2,
                  (array[]){{QN_F64, 2, {ROWS, COLUMNS}, doubles(3, ROWS * COLUMNS)},
                            {QN_F64, 2, {ROWS, COLUMNS}, doubles(4, ROWS * COLUMNS)}},
                  1, 1, &c, 1);
    status |= multiply(M_ROWS, M_INNER, M_COLUMNS);
    status |= multiply(P_ROWS, P_INNER, P_COLUMNS);
    status |= run("dot", "dot", 3,
                  (array[]){{QN_F64, 1, {DOT_N}, doubles(8, DOT_N)},
                            {QN_F64, 1, {DOT_N}, doubles(9, DOT_N)},
                            {QN_F64, 0, {0}, doubles(10, 1)}},
                  2, 0, NULL, 0);
    status |= run("rowsum", "rowsum", 2,
                  (array[]){{QN_F32, 2, {SUM_ROWS, SAXPY_N}, floats(11, SUM_ROWS * SAXPY_N)},
                            {QN_F32, 1, {SUM_ROWS}, floats(12, SUM_ROWS)}},
                  1, 0, NULL, 0);
    status |= run("gather", "gather", 3,
                  (array[]){{QN_F64, 1, {FROM_N}, doubles(13, FROM_N)},
                            {QN_I32, 1, {TO_N}, integers(14, TO_N, FROM_N, 0)},
                            {QN_F64, 1, {TO_N}, doubles(15, TO_N)}},
                  2, 0, NULL, 0);
    status |= run("histogram", "histogram", 2,
                  (array[]){{QN_U8, 1, {BYTES_N}, bytes(16, BYTES_N)},
                            {QN_U32, 1, {256}, integers(17, 256, 9, 0)}},
                  1, 0, NULL, 0);
    status |= run(
        "spmv", "spmv", 5,
        (array[]){{QN_I32, 1, {SPARSE_ROWS + 1}, integers(0, SPARSE_ROWS + 1, 1, EACH)},
                  {QN_I32, 1, {SPARSE_ROWS * EACH}, integers(18, SPARSE_ROWS * EACH, FROM_N, 0)},
                  {QN_F64, 1, {SPARSE_ROWS * EACH}, doubles(19, SPARSE_ROWS * EACH)},
                  {QN_F64, 1, {FROM_N}, doubles(20, FROM_N)},
                  {QN_F64, 1, {SPARSE_ROWS}, doubles(21, SPARSE_ROWS)}},
        4, 0, NULL, 0);
    status |=
        run("mandelbrot", "mandelbrot", 1,
            (array[]){{QN_I32, 2, {PIXEL_ROWS, PIXELS}, integers(22, PIXEL_ROWS * PIXELS, 9, 0)}},
            0, 3, place, 0);
    return status;
}
