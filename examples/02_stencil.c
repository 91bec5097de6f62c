/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 02_stencil.c [cuda]: heat spreads on a plate. A 5-point stencil steps in time between two
 * buffers, through calls that are prepared once. The same kernel then runs on plates of other
 * sizes; the history says what was compiled and why. With the argument `cuda` all of it runs on a
 * GPU.
 */
#include "place.h"

#include <math.h>

/* [stencil-build] */
static qn_val load_at(qn_builder *b, qn_param p, qn_val i, qn_val j, int di, int dj)
{
    return qn_load(b, p, QN_AT(qn_add(b, i, qn_index(b, di)), qn_add(b, j, qn_index(b, dj))));
}

static qn_kernel *build_stencil(void)
{
    qn_builder *b = qn_builder_new("heat", QN_CONTRACT);
    qn_param old = qn_view_param(b, "old", QN_F64, 2, QN_READ_ONLY);
    qn_param new = qn_view_param(b, "new", QN_F64, 2, 0);
    qn_val c = qn_scalar_param(b, "c", QN_F64);
    qn_val one = qn_index(b, 1);
    qn_val i = qn_parallel(b, one, qn_sub(b, qn_extent(b, old, 0), one));
    qn_val j = qn_parallel(b, one, qn_sub(b, qn_extent(b, old, 1), one));

    qn_val north = load_at(b, old, i, j, -1, 0), south = load_at(b, old, i, j, 1, 0);
    qn_val west = load_at(b, old, i, j, 0, -1), east = load_at(b, old, i, j, 0, 1);
    qn_val here = load_at(b, old, i, j, 0, 0);
    qn_val sum = qn_add(b, qn_add(b, north, south), qn_add(b, west, east));
    qn_val laplace = qn_sub(b, sum, qn_mul(b, qn_const_float(b, QN_F64, 4.0), here));
    qn_val index[2] = {i, j};
    qn_store(b, new, 2, index, qn_add(b, qn_mul(b, c, laplace), here));

    qn_kernel *k = NULL;
    qn_error err = {0};
    must(qn_finish(b, &k, &err), &err);
    qn_builder_release(b);
    return k;
}
/* [end] */

/* A step in C, for the check; one fma where the kernel has one. */
static void step_in_c(const double *old, double *new, int rows, int columns, double c)
{
    for (int i = 1; i < rows - 1; i++) {
        for (int j = 1; j < columns - 1; j++) {
            const double *p = old + i * columns + j;
            double sum = (p[-columns] + p[columns]) + (p[-1] + p[1]);
            new[i * columns + j] = fma(c, sum - 4.0 * p[0], p[0]);
        }
    }
}

/* A hot spot in the middle. */
static void heat_up(double *plate, int rows, int columns)
{
    memset(plate, 0, sizeof(double) * (size_t)(rows * columns));
    plate[rows / 2 * columns + columns / 2] = 1000;
}

/* [stencil-prepare] */
/* Steps a plate n times; even and odd steps swap the two views. Returns milliseconds a step. */
static double run_steps(const place *at, const qn_kernel *k, const qn_view plate[2], int n)
{
    qn_error err = {0};
    qn_call *step[2];
    for (int s = 0; s < 2; s++) {
        qn_arg args[] = {qn_arg_view(&plate[s]), qn_arg_view(&plate[1 - s]), qn_arg_f64(0.2)};
        must(qn_prepare(at->context, k, 3, args, &at->options, &step[s], &err), &err);
    }
    double start = now_ms();
    for (int t = 0; t < n; t++)
        must(qn_run(step[t % 2], &err), &err);
    must(place_wait(at, &err), &err);
    double ms = (now_ms() - start) / n;
    for (int s = 0; s < 2; s++)
        qn_call_release(step[s]);
    return ms;
}
/* [end] */

/* Steps a plate n times with Quern and n times in C; returns whether all elements agree. */
static bool run_plate(const place *at, const qn_kernel *k, int rows, int columns, int n)
{
    qn_error err = {0};
    qn_view plate[2], there[2];
    int64_t extents[2] = {rows, columns};
    double *expected[2];
    for (int s = 0; s < 2; s++) {
        must(qn_view_new(at->context, s ? "odd" : "even", QN_F64, 2, extents, &plate[s], &err),
             &err);
        expected[s] = malloc(sizeof(double) * (size_t)(rows * columns));
        if (!expected[s])
            exit(1);
        heat_up(plate[s].data, rows, columns);
        heat_up(expected[s], rows, columns);
        there[s] = place_copy(at, &plate[s]);
    }
    double ms = run_steps(at, k, there, n);
    place_fetch(at, &plate[n % 2], &there[n % 2]);
    for (int t = 0; t < n; t++)
        step_in_c(expected[t % 2], expected[1 - t % 2], rows, columns, 0.2);
    const double *found = plate[n % 2].data;
    bool is_equal = true;
    for (int i = 0; i < rows * columns; i++)
        is_equal = is_equal && found[i] == expected[n % 2][i];
    printf("  %4d x %-4d %d steps, %.4f ms a step, centre %.6f\n", rows, columns, n, ms,
           found[rows / 2 * columns + columns / 2]);
    for (int s = 0; s < 2; s++) {
        qn_view_release(&there[s]);
        qn_view_release(&plate[s]);
        free(expected[s]);
    }
    return is_equal;
}

static void print_history(const qn_context *c)
{
    char text[8192];
    qn_counters counters;
    qn_context_counters(c, &counters, sizeof counters);
    qn_context_history(c, text, sizeof text);
    printf("\n%" PRId64 " compilations, %" PRId64
           " of them for extents that stay variable, in %.1f ms together:\n%s\n",
           counters.compiles, counters.dynamic_compiles, (double)counters.compile_us / 1e3, text);
}

int main(int argc, char **argv)
{
    int failed = 0;
    qn_error err = {0};
    qn_context *c = NULL;
    must(qn_context_new(NULL, &c, &err), &err);
    place at = place_open(c, argc, argv);
    qn_kernel *k = build_stencil();

    puts("One kernel on plates of twelve sizes. Each new size is compiled for its exact extents, "
         "until the context has\n"
         "seen so many that it compiles one version whose extents are read at run time:");
    bool is_equal = true;
    for (int i = 0; i < 12; i++)
        is_equal = run_plate(&at, k, 40 + 4 * i, 64 + 16 * i, 20) && is_equal;
    puts("A size that was met before needs no compilation:");
    is_equal = run_plate(&at, k, 40, 64, 20) && is_equal;
    print_history(c);
    failed += check(is_equal, "all plates agree with the loop in C, bit for bit");

    qn_kernel_release(k);
    place_close(&at);
    qn_context_release(c);
    return failed != 0;
}
