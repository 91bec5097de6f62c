/* SPDX-License-Identifier: Apache-2.0 */
/*
 * use_object.c: calls kernels of an object file through its header; knows nothing of Quern. Prints
 * a line for each result, and ends with 1 if an array that the code is not for is let through.
 * Compiles as C11 and as C++.
 */
#include "inputs.h"
#include "kernels.h"

static int n_failed;

static quern_array vector(void *data, size_t element_bytes, int64_t n)
{
    return quern_array_right(data, (int64_t)element_bytes, 1, &n);
}

static quern_array matrix(void *data, size_t element_bytes, int64_t rows, int64_t columns)
{
    const int64_t extent[2] = {rows, columns};
    return quern_array_right(data, (int64_t)element_bytes, 2, extent);
}

/* A status that is expected. */
static void expect(const char *what, int found, int wanted)
{
    if (found == wanted)
        return;
    printf("%s: status %d, expected %d\n", what, found, wanted);
    n_failed++;
}

/* ---------------------------------------------------------------- results */

static void run_saxpy(int (*function)(const quern_array *, const quern_array *, float,
                                      quern_fault *))
{
    float *from = floats(1, SAXPY_N), *to = floats(2, SAXPY_N);
    const quern_array x = vector(from, sizeof *from, SAXPY_N), y = vector(to, sizeof *to, SAXPY_N);
    expect("saxpy", function(&x, &y, 2.5f, NULL), QUERN_OK);
    show("saxpy", to, SAXPY_N * sizeof *to);
    free(from);
    free(to);
}

static void run_stencil(void)
{
    double *old_data = doubles(3, ROWS * COLUMNS), *new_data = doubles(4, ROWS * COLUMNS);
    const quern_array old_array = matrix(old_data, sizeof *old_data, ROWS, COLUMNS),
                      new_array = matrix(new_data, sizeof *new_data, ROWS, COLUMNS);
    expect("stencil5", stencil5(&old_array, &new_array, (double)0.2f, NULL), QUERN_OK);
    show("stencil5", new_data, ROWS * COLUMNS * sizeof *new_data);
    free(old_data);
    free(new_data);
}

static void run_product(int (*function)(const quern_array *, const quern_array *,
                                        const quern_array *, quern_fault *),
                        int64_t rows, int64_t inner, int64_t columns)
{
    double *left = doubles(5, rows * inner), *right = doubles(6, inner * columns);
    double *product = doubles(7, rows * columns);
    const quern_array a = matrix(left, sizeof *left, rows, inner);
    const quern_array b = matrix(right, sizeof *right, inner, columns);
    const quern_array c = matrix(product, sizeof *product, rows, columns);
    expect("matmul", function(&a, &b, &c, NULL), QUERN_OK);
    show("matmul", product, (size_t)(rows * columns) * sizeof *product);
    free(left);
    free(right);
    free(product);
}

static void run_reduces(void)
{
    double *left = doubles(8, DOT_N), *right = doubles(9, DOT_N), *sum = doubles(10, 1);
    const quern_array x = vector(left, sizeof *left, DOT_N),
                      y = vector(right, sizeof *right, DOT_N),
                      s = quern_array_right(sum, sizeof *sum, 0, NULL);
    expect("dot", dot(&x, &y, &s, NULL), QUERN_OK);
    show("dot", sum, sizeof *sum);
    float *rows = floats(11, SUM_ROWS * SAXPY_N), *sums = floats(12, SUM_ROWS);
    const quern_array a = matrix(rows, sizeof *rows, SUM_ROWS, SAXPY_N),
                      t = vector(sums, sizeof *sums, SUM_ROWS);
    expect("rowsum", rowsum(&a, &t, NULL), QUERN_OK);
    show("rowsum", sums, SUM_ROWS * sizeof *sums);
    free(left);
    free(right);
    free(sum);
    free(rows);
    free(sums);
}

static void run_indirect(void)
{
    double *from = doubles(13, FROM_N), *to = doubles(15, TO_N);
    int32_t *place = integers(14, TO_N, FROM_N, 0);
    quern_fault fault;
    const quern_array x = vector(from, sizeof *from, FROM_N),
                      at = vector(place, sizeof *place, TO_N), y = vector(to, sizeof *to, TO_N);
    expect("gather", gather(&x, &at, &y, NULL), QUERN_OK);
    show("gather", to, TO_N * sizeof *to);
    place[7] = FROM_N;
    expect("gather beyond the end", gather(&x, &at, &y, &fault), QUERN_ERR_BOUNDS);
    expect("... iteration", (int)fault.iteration, 7);
    expect("... index", (int)fault.index[0], FROM_N);
    expect("... array", fault.array ? fault.array[0] : 0, 'x');
    uint8_t *values = bytes(16, BYTES_N);
    int32_t *counts = integers(17, 256, 9, 0);
    const quern_array v = vector(values, 1, BYTES_N), h = vector(counts, sizeof *counts, 256);
    expect("histogram", histogram(&v, &h, NULL), QUERN_OK);
    show("histogram", counts, 256 * sizeof *counts);
    free(from);
    free(to);
    free(place);
    free(values);
    free(counts);
}

static void run_assertions(void)
{
    enum { N = 50 };
    double *from = doubles(13, N), *to = doubles(15, N), shown;
    quern_fault fault;
    const quern_array x = vector(from, sizeof *from, N), y = vector(to, sizeof *to, N);
    for (int i = 0; i < N; i++)
        from[i] = i;
    expect("assertions hold", roots(&x, &y, NULL), QUERN_OK);
    from[20] = -4;
    from[31] = 2e6;
    expect("an assertion fails", roots(&x, &y, &fault), QUERN_ERR_ASSERT);
    expect("... iteration", (int)fault.iteration, 20);
    expect("... message", fault.message && strcmp(fault.message, "not negative") == 0, 1);
    expect("... first value", (int)fault.index[0], 20);
    memcpy(&shown, &fault.index[1], sizeof shown);
    expect("... second value", (int)shown, -4);
    from[20] = 4;
    expect("another one", roots(&x, &y, &fault), QUERN_ERR_ASSERT);
    expect("... message", fault.message && strcmp(fault.message, "is it \"small\"?") == 0, 1);
    from[31] = 0;
    expect("none again", roots(&x, &y, &fault), QUERN_OK);
    free(from);
    free(to);
}

static void run_loops(void)
{
    int32_t *row = integers(0, SPARSE_ROWS + 1, 1, EACH),
            *column = integers(18, SPARSE_ROWS * EACH, FROM_N, 0);
    double *value = doubles(19, SPARSE_ROWS * EACH), *from = doubles(20, FROM_N),
           *to = doubles(21, SPARSE_ROWS);
    const quern_array r = vector(row, sizeof *row, SPARSE_ROWS + 1),
                      c = vector(column, sizeof *column, SPARSE_ROWS * EACH);
    const quern_array v = vector(value, sizeof *value, SPARSE_ROWS * EACH),
                      x = vector(from, sizeof *from, FROM_N),
                      y = vector(to, sizeof *to, SPARSE_ROWS);
    expect("spmv", spmv(&r, &c, &v, &x, &y, NULL), QUERN_OK);
    show("spmv", to, SPARSE_ROWS * sizeof *to);
    int32_t *pixel = integers(22, PIXEL_ROWS * PIXELS, 9, 0);
    const quern_array p = matrix(pixel, sizeof *pixel, PIXEL_ROWS, PIXELS);
    expect("mandelbrot", mandelbrot(&p, -2, -1, 0.05f, NULL), QUERN_OK);
    show("mandelbrot", pixel, PIXEL_ROWS * PIXELS * sizeof *pixel);
    free(row);
    free(column);
    free(value);
    free(from);
    free(to);
    free(pixel);
}

/* ---------------------------------------------------------------- arrays that the code is not for
 */

static void refuse_arrays(void)
{
    float *from = floats(1, 2 * SAXPY_N), *to = floats(2, 2 * SAXPY_N);
    const quern_array x = vector(from, sizeof *from, SAXPY_N), y = vector(to, sizeof *to, SAXPY_N);
    const float before = to[0];
    quern_array bad = x;
    quern_fault fault;
    expect("no array", saxpy1000(NULL, &y, 1, &fault), QUERN_ERR_ARGUMENT);
    bad.rank = 2;
    expect("rank", saxpy1000(&bad, &y, 1, &fault), QUERN_ERR_RANK);
    expect("... of array", fault.array ? fault.array[0] : 0, 'x');
    bad = x;
    bad.element_bytes = 8;
    expect("element", saxpy1000(&bad, &y, 1, NULL), QUERN_ERR_DTYPE);
    bad = x;
    bad.dim[0].extent = SAXPY_N - 1;
    expect("extent", saxpy1000(&bad, &y, 1, &fault), QUERN_ERR_EXTENT);
    expect("... dimension", fault.dimension, 0);
    expect("extent of generic code", saxpy(&bad, &y, 1, &fault), QUERN_ERR_BOUNDS);
    bad.dim[0].extent = -1;
    expect("extent below 0", saxpy(&bad, &y, 1, NULL), QUERN_ERR_EXTENT);
    bad = x;
    bad.dim[0].stride = 2;
    expect("stride", saxpy1000(&bad, &y, 1, NULL), QUERN_ERR_UNSUPPORTED);
    expect("stride of generic code", saxpy(&bad, &y, 0, NULL), QUERN_OK);
    bad = x;
    bad.dim[0].lower = 1;
    expect("lower bound", saxpy1000(&bad, &y, 1, NULL), QUERN_ERR_UNSUPPORTED);
    bad = x;
    bad.data = NULL;
    expect("no data", saxpy1000(&bad, &y, 1, NULL), QUERN_ERR_NULL_DATA);
    bad.data = (char *)from + 2;
    expect("alignment", saxpy1000(&bad, &y, 1, NULL), QUERN_ERR_ALIGNMENT);
    bad.data = to + 1;
    expect("overlap", saxpy1000(&bad, &y, 1, NULL), QUERN_ERR_OVERLAP);
    bad = y;
    bad.dim[0].stride = 0;
    expect("one element for all", saxpy(&x, &bad, 1, NULL), QUERN_ERR_NOT_INJECTIVE);
    bad = x;
    bad.dim[0].stride = INT64_MAX / 2;
    expect("size", saxpy(&bad, &y, 1, NULL), QUERN_ERR_OVERFLOW);
    expect("another constant", saxpy_constant(&x, &y, 3, NULL), QUERN_ERR_ARGUMENT);
    to[0] = before;
    expect("its constant", saxpy_constant(&x, &y, 2.5f, NULL), QUERN_OK);
    expect("the same array", saxpy1000(&y, &y, 1, NULL), QUERN_OK);
    bad = matrix(to, sizeof(double), 10, 9);
    const quern_array large = matrix(from, sizeof(double), 11, 9);
    expect("access outside", stencil5(&large, &bad, 1, &fault), QUERN_OK);
    bad.dim[0].extent = 9;
    expect("access outside", stencil5(&large, &bad, 1, &fault), QUERN_ERR_RANGE);
    free(from);
    free(to);
}

/* Elements backwards, and every third, with other lower bounds. */
static void run_strides(void)
{
    enum { N = 100 };
    float *from = floats(1, 3 * N), *to = floats(2, N), *first = floats(2, N);
    quern_array x = vector(from + N - 1, sizeof *from, N), y = vector(to, sizeof *to, N);
    x.dim[0].stride = -1;
    x.dim[0].lower = y.dim[0].lower = 5;
    expect("backwards", saxpy(&x, &y, 1, NULL), QUERN_OK);
    for (int i = 0; i < N; i++)
        expect("... element", to[i] == from[N - 1 - i] + first[i], 1);
    x.data = from;
    x.dim[0].stride = 3;
    expect("every third", saxpy(&x, &y, 0, NULL), QUERN_OK);
    y.dim[0].extent = 0;
    y.data = NULL;
    expect("nothing", saxpy(&x, &y, 1, NULL), QUERN_OK);
    free(from);
    free(to);
    free(first);
}

/* Steps that follow one another: each adds its number. A range of scalars may be reversed. */
static void run_steps(void)
{
    double *data = doubles(23, SAXPY_N), *first = doubles(23, SAXPY_N);
    const quern_array u = vector(data, sizeof *data, SAXPY_N);
    expect("steps", steps(&u, 5, NULL), QUERN_OK);
    for (int i = 0; i < SAXPY_N; i++)
        expect("... element", data[i] == first[i] + 0 + 1 + 2 + 3 + 4, 1);
    expect("no steps", steps(&u, -3, NULL), QUERN_OK);
    free(data);
    free(first);
}

/* Scalars of several types, and three dimensions that the code walks as one. */
static void run_scalars(void)
{
    enum { N = 4 * 5 * 600 };
    const int64_t extent[3] = {4, 5, 600};
    const float z[2] = {2, 0.5f};
    float *from = floats(24, N), *to = floats(25, N);
    const quern_array a = quern_array_right(from, sizeof *from, 3, extent);
    const quern_array b = quern_array_right(to, sizeof *to, 3, extent);
    for (int is_on = 0; is_on < 2; is_on++) {
        expect("scalars", scalars(&a, &b, z, is_on, -7, NULL), QUERN_OK);
        for (int i = 0; i < N; i++)
            expect("... element", to[i] == (is_on ? from[i] * 2 + 0.5f : from[i]) - 7, 1);
    }
    free(from);
    free(to);
}

int main(void)
{
    run_saxpy(saxpy);
    run_saxpy(saxpy_v3);
    run_saxpy(saxpy1000);
    run_stencil();
    run_product(matmul, M_ROWS, M_INNER, M_COLUMNS);
    run_product(matmul_packed, P_ROWS, P_INNER, P_COLUMNS);
    run_reduces();
    run_indirect();
    run_assertions();
    run_loops();
    refuse_arrays();
    run_strides();
    run_steps();
    run_scalars();
    return n_failed != 0;
}
