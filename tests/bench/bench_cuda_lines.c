/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cuda_lines.c: the kernels that are timed on a GPU, with their extents and goals. Each is
 * written the plain way; in texts @ is the dtype. How they are timed is in bench_cuda_speed.c.
 */
#include "tests/bench/bench_cuda.h"

#include <stdio.h>

#define PLANE_HEAD                                                                                 \
    " %0: i64 = const 0; %1: i64 = extent y, 0; %2: i64 = extent y, 1;\n"                          \
    " %i: i64 = parallel %0, %1; %j: i64 = parallel %0, %2;\n"
/* inner points: indices and their neighbours' */
#define INNER_HEAD                                                                                 \
    " %one: i64 = const 1; %h: i64 = extent y, 0; %w: i64 = extent y, 1;\n"                        \
    " %he: i64 = sub %h, %one; %we: i64 = sub %w, %one;\n"

static const char copy_text[] = "kernel \"copy\" {\n view y: @[1]; view x: @[1];\n" GPU_VECTOR_HEAD
                                " %3: @ = load x[%2]; store y[%2], %3;\n}\n";
static const char saxpy_text[] =
    "kernel \"saxpy\" contract {\n view y: @[1]; view x: @[1]; scalar s: @;\n" GPU_VECTOR_HEAD
    " %3: @ = param s; %4: @ = load x[%2]; %5: @ = load y[%2];\n"
    " %6: @ = mul %3, %4; %7: @ = add %6, %5; store y[%2], %7;\n}\n";
static const char triad_text[] =
    "kernel \"triad\" contract {\n view y: @[1]; view a: @[1]; view b: @[1]; scalar s: "
    "@;\n" GPU_VECTOR_HEAD " %3: @ = param s; %4: @ = load a[%2]; %5: @ = load b[%2];\n"
    " %6: @ = mul %3, %5; %7: @ = add %4, %6; store y[%2], %7;\n}\n";
static const char fill_text[] = "kernel \"fill\" {\n view y: @[1];\n" GPU_VECTOR_HEAD
                                " %3: @ = const 0x1.8p-1; store y[%2], %3;\n}\n";
static const char transpose_text[] =
    "kernel \"transpose\" {\n view y: @[2]; view x: @[2];\n" PLANE_HEAD
    " %3: @ = load x[%i, %j]; store y[%i, %j], %3;\n}\n";
static const char five_text[] =
    "kernel \"stencil5\" contract {\n view y: @[2]; view x: @[2];\n" INNER_HEAD
    " %i: i64 = parallel %one, %he; %j: i64 = parallel %one, %we;\n"
    " %im: i64 = sub %i, %one; %ip: i64 = add %i, %one; %jm: i64 = sub %j, %one; %jp: i64 = add "
    "%j, %one;\n"
    " %c: @ = load x[%i, %j]; %n: @ = load x[%im, %j]; %s: @ = load x[%ip, %j];\n"
    " %l: @ = load x[%i, %jm]; %r: @ = load x[%i, %jp];\n"
    " %a: @ = add %n, %s; %b: @ = add %l, %r; %ab: @ = add %a, %b;\n"
    " %m: @ = const -4.0; %p: @ = mul %m, %c; %f: @ = add %ab, %p;\n"
    " %k: @ = const 0x1p-3; %q: @ = mul %k, %f; %t: @ = add %c, %q; store y[%i, %j], %t;\n}\n";
static const char seven_text[] =
    "kernel \"stencil7\" contract {\n view y: @[3]; view x: @[3];\n" INNER_HEAD
    " %d: i64 = extent y, 2; %de: i64 = sub %d, %one;\n"
    " %i: i64 = parallel %one, %he; %j: i64 = parallel %one, %we; %k: i64 = parallel %one, %de;\n"
    " %im: i64 = sub %i, %one; %ip: i64 = add %i, %one; %jm: i64 = sub %j, %one; %jp: i64 = add "
    "%j, %one;\n"
    " %km: i64 = sub %k, %one; %kp: i64 = add %k, %one; %c: @ = load x[%i, %j, %k];\n"
    " %a: @ = load x[%im, %j, %k]; %b: @ = load x[%ip, %j, %k]; %e: @ = load x[%i, %jm, %k];\n"
    " %f: @ = load x[%i, %jp, %k]; %g: @ = load x[%i, %j, %km]; %o: @ = load x[%i, %j, %kp];\n"
    " %ab: @ = add %a, %b; %ef: @ = add %e, %f; %go: @ = add %g, %o; %s: @ = add %ab, %ef; %t: @ = "
    "add %s, %go;\n"
    " %m: @ = const -6.0; %p: @ = mul %m, %c; %u: @ = add %t, %p;\n"
    " %z: @ = const 0x1p-3; %q: @ = mul %z, %u; %v: @ = add %c, %q; store y[%i, %j, %k], %v;\n}\n";
static const char rows_text[] = "kernel \"rows\" {\n view y: @[1]; view x: @[2];\n %0: i64 = const "
                                "0; %1: i64 = extent x, 0; %2: i64 = extent x, 1;\n"
                                " %i: i64 = parallel %0, %1; %j: i64 = reduction %0, %2;\n"
                                " %r: @ = reduce sum over %j {\n %3: @ = load x[%i, %j]; yield "
                                "%3;\n };\n store y[%i], %r;\n}\n";
static const char columns_text[] = "kernel \"columns\" {\n view y: @[1]; view x: @[2];\n %0: i64 = "
                                   "const 0; %1: i64 = extent x, 0; %2: i64 = extent x, 1;\n"
                                   " %j: i64 = parallel %0, %2; %i: i64 = reduction %0, %1;\n"
                                   " %r: @ = reduce sum over %i {\n %3: @ = load x[%i, %j]; yield "
                                   "%3;\n };\n store y[%j], %r;\n}\n";
static const char times_text[] =
    "kernel \"times\" contract {\n view y: @[1]; view a: @[2]; view x: @[1];\n"
    " %0: i64 = const 0; %1: i64 = extent a, 0; %2: i64 = extent a, 1;\n"
    " %i: i64 = parallel %0, %1; %j: i64 = reduction %0, %2;\n %r: @ = reduce sum over %j {\n"
    " %3: @ = load a[%i, %j]; %4: @ = load x[%j]; %5: @ = mul %3, %4; yield %5;\n };\n store "
    "y[%i], %r;\n}\n";
static const char dot_text[] = "kernel \"dot\" contract {\n view y: @[0]; view a: @[1]; view b: "
                               "@[1];\n %0: i64 = const 0; %1: i64 = extent a, 0;\n"
                               " %i: i64 = reduction %0, %1;\n %r: @ = reduce sum over %i {\n"
                               " %2: @ = load a[%i]; %3: @ = load b[%i]; %4: @ = mul %2, %3; yield "
                               "%4;\n };\n store y[], %r;\n}\n";
static const char product_text[] =
    "kernel \"product\" contract {\n view y: @[2]; view a: @[2]; view b: @[2];\n" PLANE_HEAD
    " %3: i64 = extent a, 1; %k: i64 = reduction %0, %3;\n %r: @ = reduce sum over %k {\n"
    " %4: @ = load a[%i, %k]; %5: @ = load b[%k, %j]; %6: @ = mul %4, %5; yield %6;\n };\n store "
    "y[%i, %j], %r;\n}\n";

static void vector_lines(gpu_bench *b, int dtype)
{
    static const struct {
        const char *name, *text;
        int form, n_in;
        double arrays, peer_goal, rate_goal;
    } line[] = {
        {"fill", fill_text, FORM_FILL, 0, 1, 0.98, 0},
        {"copy", copy_text, FORM_COPY, 1, 2, 0.98, 4100},
        {"saxpy", saxpy_text, FORM_SAXPY, 1, 3, 0.98, 4100},
        {"triad", triad_text, FORM_TRIAD, 2, 3, 0.98, 4100},
    };
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++) {
        const bool is_best = line[i].form == FORM_TRIAD && dtype == QN_F64;
        gpu_case c = {.text = line[i].text,
                      .form = line[i].form,
                      .dtype = dtype,
                      .n_in = line[i].n_in,
                      .is_update = line[i].form == FORM_SAXPY,
                      .has_scalar = line[i].form == FORM_SAXPY || line[i].form == FORM_TRIAD,
                      .peer_goal = line[i].peer_goal,
                      .rate_goal = is_best ? 4300 : line[i].rate_goal};
        c.out = c.in[0] = c.in[1] =
            gpu_array_of(b, dtype, 1, GPU_VECTOR_BYTES / qn_dtype_bytes(dtype), 0, 0);
        c.out.seed = 11;
        c.in[1].seed = 1700;
        c.bytes = line[i].arrays * (double)(gpu_elements(&c.out) * qn_dtype_bytes(dtype));
        snprintf(c.name, sizeof c.name, "%s/%s", line[i].name, qn_dtype_name(dtype));
        gpu_run_case(b, &c);
    }
}

/* is_odd: rows are not a multiple of 16 bytes apart. */
static void stencil_lines(gpu_bench *b, int dtype, bool is_odd)
{
    static const char *const layout[] = {"right", "left", "mixed"};
    static const int64_t plane[2][2] = {{GPU_2D_0, GPU_2D_1}, {GPU_ODD_0, GPU_ODD_1}},
                         edge[2] = {GPU_3D, GPU_ODD_3D};
    for (int rank = 2; rank <= 3; rank++)
        for (int l = 0; l < 3; l++) {
            gpu_case c = {.text = rank == 2 ? five_text : seven_text,
                          .form = FORM_STENCIL,
                          .dtype = dtype,
                          .n_in = 1,
                          .peer_goal = 0.95};
            c.out = rank == 2 ? gpu_array_of(b, dtype, 2, plane[is_odd][0], plane[is_odd][1], 0)
                              : gpu_array_of(b, dtype, 3, edge[is_odd], edge[is_odd], edge[is_odd]);
            c.in[0] = c.out;
            c.out.is_left = l > 0;
            c.in[0].is_left = l == 1;
            c.bytes = 2.0 * (double)(gpu_elements(&c.out) * qn_dtype_bytes(dtype));
            snprintf(c.name, sizeof c.name, "%s%d/%s/%s", is_odd ? "odd" : "stencil", 2 * rank + 1,
                     qn_dtype_name(dtype), layout[l]);
            gpu_run_case(b, &c);
        }
}

/* The last one: no row begins at a multiple of 16 bytes, neither those that are read nor those that
 * are written. */
static void transpose_lines(gpu_bench *b)
{
    static const struct {
        int dtype;
        const char *name;
        int64_t extent[2];
        double goal;
    } line[] = {{QN_F32, "f32", {GPU_SQUARE, GPU_SQUARE}, 0.92},
                {QN_F64, "f64", {GPU_SQUARE, GPU_SQUARE}, 0.92},
                {QN_U8, "u8", {GPU_SQUARE, GPU_SQUARE}, 0.6},
                {QN_F32, "f32/odd", {GPU_SQUARE / 2 - 1, GPU_SQUARE / 2 + 1}, 0.7}};
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++) {
        gpu_case c = {.text = transpose_text,
                      .form = FORM_COPY,
                      .dtype = line[i].dtype,
                      .n_in = 1,
                      .memcpy_goal = line[i].goal};
        c.in[0] = c.out =
            gpu_array_of(b, line[i].dtype, 2, line[i].extent[0], line[i].extent[1], 0);
        c.out.is_left = true;
        c.bytes = 2.0 * (double)(gpu_elements(&c.out) * qn_dtype_bytes(line[i].dtype));
        snprintf(c.name, sizeof c.name, "transpose/%s", line[i].name);
        gpu_run_case(b, &c);
    }
}

static void sum_lines(gpu_bench *b, int dtype)
{
    static const char *const name[] = {"rows", "columns", "dot"}, *const text[] = {rows_text,
                                                                                   columns_text,
                                                                                   dot_text};
    static const int forms[] = {FORM_ROWS, FORM_COLUMNS, FORM_DOT};
    for (int i = 0; i < 3; i++) {
        const int form = forms[i];
        gpu_case c = {.text = text[i],
                      .form = form,
                      .dtype = dtype,
                      .n_in = form == FORM_DOT ? 2 : 1,
                      .memcpy_goal = 0.9};
        c.in[0] = c.in[1] =
            form == FORM_DOT
                ? gpu_array_of(b, dtype, 1, GPU_VECTOR_BYTES / qn_dtype_bytes(dtype), 0, 0)
                : gpu_array_of(b, dtype, 2, GPU_2D_0, GPU_2D_1, 0);
        c.in[1].seed = 1700;
        c.out = (gpu_array){
            .dtype = dtype, .rank = form == FORM_DOT ? 0 : 1, .extent = {c.in[0].extent[i % 2]}};
        c.bytes = (double)(c.n_in * gpu_elements(&c.in[0]) * qn_dtype_bytes(dtype));
        snprintf(c.name, sizeof c.name, "%s/%s", name[i], qn_dtype_name(dtype));
        gpu_run_case(b, &c);
    }
}

static void product_lines(gpu_bench *b, int dtype)
{
    for (int with_cublas = 0; with_cublas < 2; with_cublas++) {
        gpu_case c = {.text = product_text,
                      .form = FORM_PRODUCT,
                      .dtype = dtype,
                      .n_in = 2,
                      .with_cublas = with_cublas,
                      .peer_goal = with_cublas && dtype == QN_F32 ? 0.75 : 0,
                      .rate_goal = dtype == QN_F64 ? 20 : 0};
        c.out = gpu_array_of(b, dtype, 2, GPU_PRODUCT, GPU_PRODUCT, 0);
        if (b->is_tiny)
            c.out.extent[1] = c.out.extent[0];
        c.in[0] = c.in[1] = c.out;
        c.in[1].seed = 1700;
        const double n = (double)c.out.extent[0];
        c.flops = 2.0 * n * n * n;
        snprintf(c.name, sizeof c.name, "product/%s%s", qn_dtype_name(dtype),
                 with_cublas ? "/cublas" : "");
        if (!b->is_tiny || !with_cublas)
            gpu_run_case(b, &c);
    }
}

/* A matrix times a vector, against cuBLAS; its rows lie along memory, or its columns. */
static void times_lines(gpu_bench *b, int dtype)
{
    for (int is_left = 0; is_left < 2; is_left++) {
        gpu_case c = {.text = times_text,
                      .form = FORM_TIMES,
                      .dtype = dtype,
                      .n_in = 2,
                      .with_cublas = true,
                      .memcpy_goal = 0.9};
        c.in[0] = gpu_array_of(b, dtype, 2, GPU_2D_0, GPU_2D_1, 0);
        c.in[0].is_left = is_left;
        c.in[1] =
            (gpu_array){.dtype = dtype, .rank = 1, .extent = {c.in[0].extent[1]}, .seed = 1700};
        c.out = (gpu_array){.dtype = dtype, .rank = 1, .extent = {c.in[0].extent[0]}};
        c.bytes = (double)(gpu_elements(&c.in[0]) * qn_dtype_bytes(dtype));
        snprintf(c.name, sizeof c.name, "times/%s/%s/cublas", qn_dtype_name(dtype),
                 is_left ? "left" : "right");
        gpu_run_case(b, &c);
    }
}

/* Products of other extents and layouts, against cuBLAS. */
static void more_product_lines(gpu_bench *b, int dtype)
{
    static const struct {
        const char *layouts;
        int64_t n;
    } line[] = {{"nn", 1021},        {"nn", 1024},        {"nn", 2048},
                {"nt", GPU_PRODUCT}, {"tn", GPU_PRODUCT}, {"tt", GPU_PRODUCT}};
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++) {
        gpu_case c = {.text = product_text,
                      .form = FORM_PRODUCT,
                      .dtype = dtype,
                      .n_in = 2,
                      .with_cublas = true};
        c.out = gpu_array_of(b, dtype, 2, line[i].n, line[i].n, 0);
        c.out.extent[1] = c.out.extent[0];
        c.in[0] = c.in[1] = c.out;
        c.in[0].is_left = line[i].layouts[0] == 't';
        c.in[1].is_left = line[i].layouts[1] == 't';
        c.in[1].seed = 1700;
        const double n = (double)c.out.extent[0];
        c.flops = 2.0 * n * n * n;
        snprintf(c.name, sizeof c.name, "product/%s/%s/%lld/cublas", qn_dtype_name(dtype),
                 line[i].layouts, (long long)line[i].n);
        gpu_run_case(b, &c);
    }
}

void gpu_speed_cases(gpu_bench *b)
{
    static const int dtypes[] = {QN_F32, QN_F64};
    for (int i = 0; i < 2; i++)
        vector_lines(b, dtypes[i]);
    for (int i = 0; i < 2; i++)
        stencil_lines(b, dtypes[i], false);
    transpose_lines(b);
    for (int i = 0; i < 2; i++)
        sum_lines(b, dtypes[i]);
    for (int i = 0; i < 2; i++)
        times_lines(b, dtypes[i]);
    for (int i = 0; i < 2; i++)
        product_lines(b, dtypes[i]);
    for (int i = 0; i < 2; i++)
        more_product_lines(b, dtypes[i]);
    for (int i = 0; i < 2; i++)
        stencil_lines(b, dtypes[i], true);
}
