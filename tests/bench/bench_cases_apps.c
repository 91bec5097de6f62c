/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_apps.c: the kernels of examples/math_kernels.h against the same loops in C, compiled
 * by gcc with -ffast-math and libmvec (native_apps.c): one thread, arrays in the second cache.
 * Times are those of an element of the matrix, an option, a pair of bodies, two points.
 */
#include "bench.h"
#include "examples/math_kernels.h"
#include "native_apps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ARRAYS = 10, MOST_SCALARS = 2, MOST_KERNELS = 4 };
enum { ROWS, MATRIX, OPTIONS, BODIES, POINT, N_SHAPES };
static const struct {
    int rank;
    int64_t extent[2], n;
} shapes[N_SHAPES] = {
    [ROWS] = {1, {SOFTMAX_ROWS}, SOFTMAX_ROWS},
    [MATRIX] = {2, {SOFTMAX_ROWS, SOFTMAX_COLUMNS}, SOFTMAX_ROWS * SOFTMAX_COLUMNS},
    [OPTIONS] = {1, {N_OPTIONS}, N_OPTIONS},
    [BODIES] = {1, {N_BODIES}, N_BODIES},
    [POINT] = {0, {0}, 1},
};

/* Kernels run in turn; the arrays of each are those whose numbers its text names. What is read
 * stands before what is written. */
typedef struct app {
    const char *name;
    int dtype, n_elements, n_arrays, first_out, first_result, n_scalars;
    int shape[MOST_ARRAYS];
    double low, high; /* of what is read */
    double scalar[MOST_SCALARS];
    qn_kernel *(*build[MOST_KERNELS])(int dtype, qn_error *err);
    const char *arrays[MOST_KERNELS];
    app_loop theirs;
} app;

static qn_kernel *build_pi_of(int dtype, qn_error *err)
{
    (void)dtype;
    return build_pi(err);
}

#define APPS(dtype, suffix)                                                                        \
    {"softmax",                                                                                    \
     dtype,                                                                                        \
     SOFTMAX_ROWS * SOFTMAX_COLUMNS,                                                               \
     4,                                                                                            \
     1,                                                                                            \
     3,                                                                                            \
     0,                                                                                            \
     {MATRIX, ROWS, ROWS, MATRIX},                                                                 \
     -8,                                                                                           \
     8,                                                                                            \
     {0},                                                                                          \
     {build_softmax_largest, build_softmax_exp, build_softmax_scale, build_softmax_scaled},        \
     {"01", "031", "32", "32"},                                                                    \
     softmax_##suffix},                                                                            \
        {"black_scholes",                                                                          \
         dtype,                                                                                    \
         N_OPTIONS,                                                                                \
         5,                                                                                        \
         3,                                                                                        \
         3,                                                                                        \
         2,                                                                                        \
         {OPTIONS, OPTIONS, OPTIONS, OPTIONS, OPTIONS},                                            \
         0.5,                                                                                      \
         2,                                                                                        \
         {APP_RATE, APP_VOLATILITY},                                                               \
         {build_black_scholes},                                                                    \
         {"01234"},                                                                                \
         black_scholes_##suffix},                                                                  \
    {                                                                                              \
        "n_body", dtype, N_BODIES *N_BODIES, 10, 4, 4, 2,                                          \
            {BODIES, BODIES, BODIES, BODIES, BODIES, BODIES, BODIES, BODIES, BODIES, BODIES}, 0,   \
            1, {APP_DT, APP_SOFTENING}, {build_n_body}, {"0123456789"}, n_body_##suffix            \
    }
static const app apps[] = {
    APPS(QN_F32, f32),
    APPS(QN_F64, f64),
    {"pi", QN_I64, N_PAIRS_OF_POINTS, 1, 0, 0, 0, {POINT}, 0, 0, {0}, {build_pi_of}, {"0"}, pi_i64},
};

typedef struct app_case {
    const app *app;
    char name[48];
    bench_memory memory;
    qn_view view[MOST_ARRAYS];
    qn_kernel *kernel[MOST_KERNELS];
    qn_call *call[MOST_KERNELS];
    int n_kernels;
} app_case;

static double get(const void *at, int dtype, int64_t i)
{
    return dtype == QN_F32   ? ((const float *)at)[i]
           : dtype == QN_F64 ? ((const double *)at)[i]
                             : (double)((const int64_t *)at)[i];
}

/** Uniform numbers. */
static void fill(const app_case *c)
{
    const app *a = c->app;
    uint64_t state = 1;
    for (int array = 0; array < a->first_out; array++)
        for (int64_t i = 0; i < shapes[a->shape[array]].n; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            double v = a->low + (a->high - a->low) * ((double)(state >> 11) * 0x1p-53);
            if (a->dtype == QN_F32)
                ((float *)c->memory.at[array])[i] = (float)v;
            else
                ((double *)c->memory.at[array])[i] = v;
        }
}

static bool make_views(app_case *c, qn_error *err)
{
    const app *a = c->app;
    size_t bytes[MOST_ARRAYS];
    for (int i = 0; i < a->n_arrays; i++)
        bytes[i] = (size_t)shapes[a->shape[i]].n * 8;
    if (bench_memory_make(&c->memory, a->n_arrays, bytes, err))
        return false;
    for (int i = 0; i < a->n_arrays; i++) {
        qn_layout layout;
        if (qn_layout_right(shapes[a->shape[i]].rank, shapes[a->shape[i]].extent, &layout, err) ||
            qn_view_wrap("array", c->memory.at[i], a->dtype, &layout, 0, &c->view[i], err))
            return false;
    }
    fill(c);
    return true;
}

/** The arguments of kernel k; returns how many. */
static int arguments(const app_case *c, int k, qn_arg *args)
{
    const app *a = c->app;
    int n = 0;
    for (const char *array = a->arrays[k]; *array; array++)
        args[n++] = qn_arg_view(&c->view[*array - '0']);
    for (int i = 0; i < a->n_scalars; i++)
        args[n++] = a->dtype == QN_F32 ? qn_arg_f32((float)a->scalar[i]) : qn_arg_f64(a->scalar[i]);
    if (a->dtype == QN_I64) {
        args[n++] = qn_arg_int(QN_U64, APP_SEED);
        args[n++] = qn_arg_int(QN_I64, N_PAIRS_OF_POINTS);
    }
    return n;
}

/** Makes the kernels and their calls; with --asm prints their code. */
static bool make_calls(bench *b, app_case *c, qn_error *err)
{
    qn_options o = bench_options(b);
    for (int k = 0; k < MOST_KERNELS && c->app->build[k]; k++, c->n_kernels++) {
        qn_arg args[MOST_ARRAYS + MOST_SCALARS];
        int n = arguments(c, k, args);
        c->kernel[k] = c->app->build[k](c->app->dtype, err);
        if (c->kernel[k] && b->assembly_of)
            bench_print_assembly(b, c->name, c->kernel[k], n, args, &o);
        else if (!c->kernel[k] ||
                 qn_prepare(b->context, c->kernel[k], n, args, &o, &c->call[k], err))
            return false;
    }
    return true;
}

/** What C and ours begin with: nothing is written. */
static void clear_results(const app_case *c)
{
    for (int array = c->app->first_out; array < c->app->n_arrays; array++)
        for (int64_t i = 0; i < shapes[c->app->shape[array]].n; i++)
            ((double *)c->memory.at[array])[i] = 0;
}

/** Whether all results are those of the loop in C but for roundings; integers are equal. */
static bool is_close(const app_case *c, const char *kept)
{
    const app *a = c->app;
    double tolerance = a->dtype == QN_F32 ? 1e-4 : a->dtype == QN_F64 ? 1e-12 : 0;
    for (int array = a->first_result; array < a->n_arrays; array++) {
        const char *ours = c->memory.at[array], *theirs = kept + (ours - c->memory.first);
        for (int64_t i = 0; i < shapes[a->shape[array]].n; i++) {
            double x = get(ours, a->dtype, i), y = get(theirs, a->dtype, i);
            if (!(fabs(x - y) <= tolerance * (1 + fabs(y))))
                return false;
        }
    }
    return true;
}

static void time_case(bench *b, const app_case *c)
{
    qn_error error = {0};
    bench_line line = {.name = c->name,
                       .group = GROUP_APPLICATION,
                       .goal = 1,
                       .short_below = 0.9,
                       .n_elements = c->app->n_elements};
    clear_results(c);
    c->app->theirs(c->memory.at);
    char *kept = bench_memory_keep(&c->memory);
    clear_results(c);
    for (int k = 0; k < c->n_kernels && error.status == QN_OK; k++)
        (void)qn_run(c->call[k], &error);
    if (!kept || error.status)
        bench_wrong(b, c->name, "%s", kept ? error.message : "no memory");
    else if (!is_close(c, kept))
        bench_wrong(b, c->name, "not the result of the loop in C");
    else
        bench_calls_in_turns(b, &line, c->n_kernels, c->call, c->app->theirs, c->memory.at);
    free(kept);
}

void bench_apps_cases(bench *b)
{
    for (size_t i = 0; i < sizeof apps / sizeof *apps; i++) {
        app_case c = {.app = &apps[i]};
        qn_error error = {0};
        snprintf(c.name, sizeof c.name, "app/%s/%s", c.app->name, qn_dtype_name(c.app->dtype));
        if (!bench_wants(b, c.name))
            continue;
        if (!make_views(&c, &error) || !make_calls(b, &c, &error))
            bench_wrong(b, c.name, "%s", error.message);
        else if (!b->assembly_of)
            time_case(b, &c);
        for (int k = 0; k < MOST_KERNELS; k++) {
            qn_call_release(c.call[k]);
            qn_kernel_release(c.kernel[k]);
        }
        bench_memory_free(&c.memory);
    }
}
